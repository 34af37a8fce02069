"""An emulator of Azure Service Bus: AMQP 1.0, in memory, for tests (brokers sheet, 10).

Its behaviour is our own reading of the documentation, not Microsoft's code. Use it to test
programs, not as proof of how the service behaves.
"""
