"""Apache Kafka, with retry tiers."""
