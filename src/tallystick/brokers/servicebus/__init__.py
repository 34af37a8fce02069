"""Azure Service Bus over AMQP 1.0."""
