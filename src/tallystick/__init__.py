"""Tallystick checks that every message arrives exactly as it was sent.

Importing this package is fast: heavy libraries are imported when they are first used.
`tallystick.App` publishes and handles messages. It is imported on first access, so that the lower
layers do not depend on it. `__init__.pyi` declares its type for type checkers.
"""

__version__ = "0.2.0"
__all__ = ["App", "__version__"]


def __getattr__(name: str) -> object:
    """Import what was not needed until now."""
    if name != "App":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 (importing this package is quick)

    return import_module("tallystick.runtime.app").App
