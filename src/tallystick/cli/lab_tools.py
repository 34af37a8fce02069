"""tools"""
from __future__ import annotations
from typing import Any
def register_tools(verbs: Any) -> None:
    """x."""
