"""Turn what a case sent and received into captures: the lab's traffic for the pipeline.

Only envelope circuits report whole messages. Sent are the messages that a sender was given and
reports as sent, with the native fields of the binding; received are those that a receiver kept (a
delivery that it returned is delivered again). The queue is named after its case, because its real
name is new in every run. A report has the times before its first and after its last message: a
capture has the middle of the two, and half of the difference as its clock error.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from tallystick.brokers.rabbitmq.binding import BINDING
from tallystick.core.binding import project
from tallystick.core.capture import Capture
from tallystick.core.envelope import decode
from tallystick.core.frame import Frame
from tallystick.lab.content import plain_value
from tallystick.lab.control import Control
from tallystick.lab.instance import Instance
from tallystick.lab.payload import read_runs

__all__ = ["capture_case"]


def capture_case(broker: str, instance: Instance, reports: Mapping[int, Control]) -> list[Capture]:
    """Give the captures of a case; none when it sent no envelopes or lacks a report."""
    if instance.test != "Envelope" or len(reports) < len(instance.parts):
        return []
    sender, receiver = instance.parts
    told, heard = reports[0].body, reports[1].body
    bodies = [base64.b64decode(one) for one in sender.body["envelopes"]]
    sent = [bodies[number] for runs in told["sent"] for number in read_runs(runs)]
    frames = [project(BINDING, decode(body)) for body in sent]
    kept = [_frame(one) for one in heard["echo"][receiver.body["requeue_first"] :]]
    queue = instance.name.partition("/")[2]
    found = []
    for direction, node, window, seen in (
        ("sent", sender.client, (told["started_ns"], told["ended_ns"]), frames),
        ("received", receiver.client, (heard["first_ns"], heard["last_ns"]), kept),
    ):
        if seen:
            first, last = map(int, window)
            error = (last - first + 1) // 2
            found += [
                Capture(direction, broker, queue, node, first + error, number, frame, error)
                for number, frame in enumerate(seen)
            ]
    return found


def _frame(delivery: Mapping[str, Any]) -> Frame:
    headers = {name: plain_value(value) for name, value in delivery["headers"].items()}
    sections = {"properties": dict(delivery["properties"]), "headers": headers}
    return Frame(base64.b64decode(delivery["body"]), sections)
