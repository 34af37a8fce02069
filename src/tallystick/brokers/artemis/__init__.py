"""Apache ActiveMQ Artemis over AMQP 1.0."""
