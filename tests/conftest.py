"""Generated tests are never judged by the clock: a busy machine is no failure."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "tallystick",
    parent=settings.get_profile(settings.get_current_profile_name()),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tallystick")
