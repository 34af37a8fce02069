"""The REST API of the schema registry."""
