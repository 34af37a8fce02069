from tallystick.runtime.app import App as App

__version__: str
