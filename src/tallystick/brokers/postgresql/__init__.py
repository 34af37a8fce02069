"""PostgreSQL: a store for what the runtime must remember; it carries no messages."""
