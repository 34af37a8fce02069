"""What the tests of bindings share: every table, and a message with everything in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tallystick.brokers import BROKERS

BINDINGS = [
    binding
    for row in BROKERS.values()
    for binding in (row.binding, *(each for each in row.layouts.values() if each != row.binding))
]
every_binding = pytest.mark.parametrize("binding", BINDINGS, ids=lambda each: each.name)
TABLE = {name: row.binding for name, row in BROKERS.items()}


def message(**changes: Any) -> bytes:
    document = {
        "job": "urn:babel:orders:created",
        "trace_id": "11111111-2222-4333-8444-555555555555",
        "data": {"n": 1.50},
        "meta": {
            "id": "66666666-7777-4888-9999-000000000000",
            "queue": "orders",
            "lang": "cobol",
            "schema_version": 1,
            "created_at": 1700000000123,
        },
        "attempts": 4,
    }
    return json.dumps({**document, **changes}, indent=1).encode()
