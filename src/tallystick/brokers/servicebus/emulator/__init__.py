"""An emulator of Azure Service Bus: AMQP 1.0, in memory, for tests (brokers sheet, 10).

Its semantics are ours, not Microsoft's: it exercises programs and adapters, it is no oracle.
"""
