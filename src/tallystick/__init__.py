"""Tallystick proves that what one program sent is what another one received.

Importing this package does nothing and is quick; heavy libraries load when they are used.
`tallystick.App` publishes and handles messages; it is imported when it is first asked for, by name,
so that the layers below it do not depend on it. `__init__.pyi` tells type checkers what it is.
"""

__version__ = "0.2.0"
__all__ = ["App", "__version__"]


def __getattr__(name: str) -> object:
    """Import what was not needed until now."""
    if name != "App":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 (importing this package is quick)

    return import_module("tallystick.runtime.app").App
