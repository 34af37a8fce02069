"""Break brokers, workers and connections on purpose, and judge what was sent against what came."""
