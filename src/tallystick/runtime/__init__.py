"""Publish and handle messages over any transport."""
