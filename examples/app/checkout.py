"""An order and its message in one transaction: both are committed, or neither."""

from __future__ import annotations

import sqlite3

from tallystick.runtime.outbox import Outbox

outbox = Outbox("sqlite:///orders.db")
outbox.create()

connection = sqlite3.connect("orders.db")
connection.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER, amount REAL)")
with connection:  # commits at the end of the block, rolls back on an exception
    connection.execute("INSERT INTO orders VALUES (7, 9.5)")
    outbox.add(connection, "urn:babel:orders:created", {"id": 7, "amount": 9.5}, queue="orders")

connection.close()
outbox.close()
