"""A worker that handles orders, and a program that places three.

tally broker up redis
cd examples/app
SHOP_URL=redis python shop.py                   places three orders
SHOP_URL=redis tally run shop:app --idle 1      handles them
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from tallystick import App
from tallystick.runtime.handlers import Message

CREATED = "urn:babel:orders:created"

app = App(os.environ.get("SHOP_URL", "memory://shop"), queue="orders", concurrency=4)


@dataclass
class Order:
    id: int
    amount: float


@app.handler(CREATED)
async def created(order: Order, message: Message) -> None:
    print(f"order {order.id}: {order.amount:.2f} (attempt {message.attempts + 1})")


if __name__ == "__main__":
    app.publish_all((CREATED, Order(number, 9.5 * number)) for number in range(1, 4))
    app.close()
