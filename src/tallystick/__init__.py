"""Tallystick proves that what one program sent is what another one received.

Importing this package does nothing and is quick; heavy libraries load when they are used.
"""

__version__ = "0.1.0"
__all__ = ["__version__"]
