"""The REST face of the schema registry."""
