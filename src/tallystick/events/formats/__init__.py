"""One table of the event formats: how each is called, and the functions that read and write it."""

from __future__ import annotations
