"""Exchange messages between clients in many languages over real brokers, and judge the results."""
