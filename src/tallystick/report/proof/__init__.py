"""The proof as values, as one sentence and as one page."""
