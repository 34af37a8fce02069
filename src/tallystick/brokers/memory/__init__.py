"""A broker inside the process: for tests, examples and the reference of the others."""
