"""CloudEvents: the event model, its formats and its modes."""
