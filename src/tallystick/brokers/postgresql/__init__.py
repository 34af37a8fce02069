"""PostgreSQL: a store for the runtime; it carries no messages."""
