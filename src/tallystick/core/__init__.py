"""The contract itself: values and pure functions, no I/O."""
