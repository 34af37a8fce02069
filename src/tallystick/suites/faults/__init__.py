"""Break brokers, workers and connections on purpose; compare sent and received messages."""
