"""Check captured traffic of any size, on Spark."""
