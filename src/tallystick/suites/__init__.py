"""Run the executable contract on any implementation, in any language."""
