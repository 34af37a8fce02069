"""Clients in many languages on real brokers, coordinated and judged."""
