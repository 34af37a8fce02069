"""A broker inside the process, for tests and examples; the reference for the other brokers."""
