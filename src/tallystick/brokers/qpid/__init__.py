"""Apache Qpid Broker-J: a server for the interop lab; it has no binding of its own."""
