"""From a journal to a page."""
