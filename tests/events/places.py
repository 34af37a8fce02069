"""Where the official data stands: read in place, never copied."""

from __future__ import annotations

from pathlib import Path

OFFICIAL = Path(__file__).parents[3] / "shared" / "data" / "cloudevents-conformance"
