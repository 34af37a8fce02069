"""Both directions with babelqueue 1.24.0, on every real transport: same bytes, same fields."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tallystick import App
from tallystick.core.binding import project
from tallystick.core.envelope import decode, encode
from tallystick.core.transport import Delivery
from tallystick.runtime.address import link_to
from tallystick.runtime.handlers import Message
from tallystick.runtime.retry import Backoff

pytestmark = pytest.mark.xdist_group("brokers")

URN = "urn:babel:orders:created"
COUNT = 5
PEER = Path(__file__).with_name("peer_babelqueue.py")
SUBJECT = Path(__file__).parents[2] / "subjects" / "babelqueue"
BROKERS = ("redis", "redis-laravel", "rabbitmq", "sqs", "kafka", "pulsar", "artemis", "servicebus")
SERVICEBUS = "Endpoint={};SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true"
OPTIONS = {"redis-laravel": "?laravel=1"}
OURS = {"kafka": "?tiers=100&group_protocol=classic&reinject=0"}

ADDED = {
    "redis": set[str](),
    "sqs": {"attributes"},
    "kafka": set[str](),
    "rabbitmq": set[str](),
    "pulsar": {"message"},
    "artemis": {"header"},
    "servicebus": set[str](),
}
"""Sections that the broker itself adds to a delivery."""


@pytest.fixture(scope="session")
def peer() -> Callable[..., list[Any]]:
    """Give a way to run the peer; its client libraries are ours, babelqueue is its own."""
    build = "\n".join((SUBJECT / "start").read_text().splitlines()[:-1]) + '\necho "$built"'
    made = subprocess.run(
        ["sh", "-c", build], cwd=SUBJECT, capture_output=True, text=True, check=True, timeout=300
    )
    python = Path(made.stdout.strip()) / "bin" / "python"
    environment = {
        **os.environ,
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }

    def run(verb: str, url: str, queue: str, count: int = COUNT) -> list[Any]:
        command = [str(python), "-B", str(PEER), verb, url, queue, str(count)]
        environment["AZURE_SERVICEBUS_CONNECTION_STRING"] = SERVICEBUS.format(url)
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        return [json.loads(line[2:]) for line in lines if line.startswith("@@")]

    return run


@pytest.fixture(params=BROKERS)
def urls(request: pytest.FixtureRequest, broker_url: Callable[[str], str]) -> tuple[str, str]:
    """Give their URL of a broker, and ours."""
    base = broker_url(request.param.removesuffix("-laravel"))
    theirs = base + OPTIONS.get(request.param, "")
    return theirs, theirs + OURS.get(request.param, "")


def new_queue(app_url: str) -> str:
    queue = f"tally-{uuid4().hex[:12]}"
    transport = link_to(app_url).open()
    transport.ensure([queue])
    transport.close()
    return queue


def test_their_message_reaches_our_handler(
    peer: Callable[..., list[Any]], urls: tuple[str, str]
) -> None:
    theirs, ours = urls
    queue = new_queue(ours)
    peer("produce", theirs, queue)
    app = App(ours, queue=queue)
    seen: list[Any] = []

    @app.handler(URN)
    def handle(data: Any, message: Message) -> None:
        seen.append((data["n"], data["text"], message.attempts))

    assert app.run(limit=COUNT) == {"handled": COUNT}
    assert sorted(seen) == [(n, "Grüße/…", 0) for n in range(COUNT)]


def test_our_message_reaches_their_handler(
    peer: Callable[..., list[Any]], urls: tuple[str, str]
) -> None:
    theirs, ours = urls
    queue = new_queue(ours)
    with App(ours, queue=queue) as app:
        ids = app.publish_all([(URN, {"n": n, "text": "Grüße/…"}) for n in range(COUNT)])
    seen = peer("consume", theirs, queue)
    assert sorted(one["id"] for one in seen) == sorted(ids)
    assert {one["data"]["text"] for one in seen} == {"Grüße/…"}
    assert {one["attempts"] for one in seen} == {0}


def test_their_frame_is_the_frame_that_we_would_send(
    peer: Callable[..., list[Any]], urls: tuple[str, str]
) -> None:
    theirs, ours = urls
    queue = new_queue(ours)
    peer("produce", theirs, queue, 1)
    link = link_to(ours)
    transport = link.open()
    taken: list[Delivery] = []
    for _ in range(30):
        taken = taken or transport.receive(queue, 1, 1.0)
    (delivery,) = taken
    transport.ack(taken)
    transport.close()
    envelope = decode(delivery.frame.body)
    assert delivery.frame.body == encode(envelope)
    added = ADDED[link.address.broker]
    found = {name: held for name, held in delivery.frame.sections.items() if name not in added}
    options = dict(transport.capabilities.options)
    expected = project(link.binding, envelope, queue=queue, **options).sections
    assert readable(found) == readable(expected)


def readable(sections: Any) -> Any:
    """Leave out what no receiver can tell: an absent key, and a time that the client took away."""
    return {
        section: {
            key: value
            for key, value in held.items()
            if value is not None and key not in ("creation-time", "delivery_count")
        }
        for section, held in sections.items()
        if held
    }


def test_a_message_that_failed_on_one_side_is_counted_on_the_other(
    peer: Callable[..., list[Any]], urls: tuple[str, str]
) -> None:
    theirs, ours = urls
    queue = new_queue(ours)
    app = App(ours, queue=queue, backoff=Backoff())
    attempts: list[int] = []

    @app.handler(URN)
    def handle(_: Any, message: Message) -> None:
        attempts.append(message.attempts)
        if len(attempts) == 1:
            raise ValueError("once")

    app.publish(URN, {"n": 1})
    assert app.run(limit=1) == {"retried": 1}
    if theirs.startswith("kafka"):  # they have no tiers to park in: our way back brings it to them
        wait_for_the_way_back(ours, queue)
        (theirs_saw,) = peer("consume", theirs, queue, 1)
        assert theirs_saw["attempts"] == 1
        app.close()
        return
    (theirs_saw,) = peer("fail", theirs, queue, 1)
    assert theirs_saw["attempts"] == 1
    assert app.run(limit=1) == {"handled": 1}
    assert attempts == [0, 2]
    app.close()


def wait_for_the_way_back(ours: str, queue: str) -> None:
    transport = link_to(ours.replace("reinject=0", "reinject=1&group=watch")).open()
    seen: list[Delivery] = []
    for _ in range(60):
        if len(seen) < 2:
            seen += transport.receive(queue, 2, 0.5)
    transport.close()
    assert [one.frame.get("headers", "bq-attempts") for one in seen] == [b"0", b"1"]
