"""Bad input as a user sees it, through `tally run`: one line, a hint, exit code 2, nothing lost."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest

from tallystick import App
from tallystick.brokers.servers import find_server, running
from tallystick.cli import main
from tallystick.core.errors import Unavailable
from tallystick.core.frame import Frame
from tallystick.runtime.address import link_to

pytestmark = pytest.mark.xdist_group("brokers")

URN = "urn:babel:orders:created"
PATIENCE = 60.0
SERVERS = ("redis", "rabbitmq", "kafka", "sqs", "pulsar", "artemis", "servicebus")
DEAD = {
    "redis": "redis://127.0.0.1:{}",
    "rabbitmq": "amqp://tally:hid-DEN@127.0.0.1:{}",
    "kafka": "kafka://127.0.0.1:{}?timeout=2",
    "sqs": "sqs://key:hid-DEN@us-east-1?endpoint=http://127.0.0.1:{}",
    "pulsar": "pulsar://127.0.0.1:{}?timeout=2",
    "artemis": "artemis://tally:hid-DEN@127.0.0.1:{}",
    "servicebus": "sb://tally:hid-DEN@127.0.0.1:{}",
}


@dataclass
class Run:
    """What `tally run` said and how it ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def tally_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Run]:
    """Give a way to run an app of this URL and queue; its one handler does nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def run(url: str, queue: str = "orders", *words: str, body: str = "pass") -> Run:
        name = f"shop_{uuid4().hex[:8]}"
        (tmp_path / f"{name}.py").write_text(
            f"from tallystick import App\n"
            f"app = App({url!r}, queue={queue!r}, max_attempts=1)\n"
            f"@app.handler({URN!r})\n"
            f"def created(data):\n    {body}\n"
        )
        capsys.readouterr()
        code = main(["run", f"{name}:app", "--json", *words])
        return Run(code, *capsys.readouterr())

    return run


@pytest.fixture
def closed_port() -> int:
    """Give a port on which nobody listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port: int = taken.getsockname()[1]
    return port


def said(run: Run) -> list[str]:
    """Give the lines of an error: what, and a hint; the greeting before them is not one."""
    lines = [one for one in run.err.splitlines() if "stop with Ctrl-C" not in one]
    assert len(lines) == 2, run.err
    assert lines[0].startswith("tally: ")
    assert lines[1].startswith("  hint: ")
    assert "Traceback" not in run.err
    if run.out:  # with --json: the same, for a program
        assert json.loads(run.out)["error"]["message"] in lines[0]
    return lines


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redsi://127.0.0.1", "no broker uses the URL scheme 'redsi'"),
        ("127.0.0.1:6379", "neither a broker URL nor the name of a broker"),
        ("redis://127.0.0.1:99999", "the redis URL is not valid"),
        ("redis://127.0.0.1/first", "the Redis database must be a number"),
        ("redis://127.0.0.1?nonsense=1", "redis has no URL option 'nonsense'"),
        (
            "amqp://127.0.0.1?prefetch=many",
            "`prefetch` must be a number from 0 to 2000000, found 'many'",
        ),
        ("amqp://127.0.0.1?queue_type=round", "unknown queue_type 'round'"),
        ("kafka://127.0.0.1?tls=maybe", "`tls` must be 1 or 0, found 'maybe'"),
        ("sqs://eu-west-1?fifo=perhaps", "`fifo` must be 1 or 0, found 'perhaps'"),
        (
            "pulsar://127.0.0.1?timeout=-1",
            "`timeout` must be a number from 0 to 2000000, found '-1'",
        ),
        ("artemis://127.0.0.1?credits=1", "artemis has no URL option 'credits'"),
        ("sb://shop.servicebus.windows.net", "Service Bus needs a key"),
    ],
)
def test_a_url_that_makes_no_sense_is_said_before_anything_is_opened(
    tally_run: Callable[..., Run], url: str, says: str
) -> None:
    ended = tally_run(url)
    assert ended.code == 2
    assert says in said(ended)[0]


@pytest.mark.parametrize("server", SERVERS)
def test_a_broker_that_is_not_there_is_said_in_one_line(
    tally_run: Callable[..., Run], closed_port: int, server: str
) -> None:
    ended = tally_run(DEAD[server].format(closed_port))
    assert ended.code == 2
    assert "is the broker running?" in said(ended)[1] or "login" in said(ended)[1]
    assert "hid-DEN" not in ended.err


@pytest.mark.parametrize(
    ("server", "login"), [("redis", "nobody:hid-DEN"), ("rabbitmq", "guest:hid-DEN")]
)
def test_a_refused_login_is_said_and_takes_no_message(
    tally_run: Callable[..., Run], broker_url: Callable[[str], str], server: str, login: str
) -> None:
    url, queue = broker_url(server), f"tally-{uuid4().hex[:12]}"
    with App(url, queue=queue) as app:
        app.publish(URN, {"n": 1})
    scheme, _, rest = url.partition("://")
    ended = tally_run(f"{scheme}://{login}@{rest.rpartition('@')[2]}", queue)
    assert ended.code == 2
    assert "refused the login" in said(ended)[1]
    assert "hid-DEN" not in ended.err
    assert json.loads(tally_run(url, queue, "--limit", "1").out) == {"handled": 1}


@pytest.mark.parametrize("server", SERVERS)
def test_a_broken_message_is_put_aside_and_said(
    tally_run: Callable[..., Run], broker_url: Callable[[str], str], server: str
) -> None:
    queue = f"tally-{uuid4().hex[:12]}"
    url = broker_url(server) + (f"?group={queue}&reinject=0" if server == "kafka" else "")
    transport = link_to(url).open()
    graveyard = App(url, queue=queue)._graveyard(queue)
    transport.ensure([queue, graveyard])
    transport.send(queue, [Frame(b'{"job": broken')])
    ended = tally_run(url, queue, "--limit", "1")
    assert ended.code == 0
    assert json.loads(ended.out) == {"dead_lettered": 1}
    (frame,) = take(transport, graveyard)
    assert b"broken" in frame.body
    transport.close()


def take(transport: Any, queue: str) -> list[Frame]:
    end = monotonic() + PATIENCE
    while monotonic() < end:
        taken = transport.receive(queue, 1, 1.0)
        if taken:
            transport.ack(taken)
            return [one.frame for one in taken]
    raise AssertionError(f"nothing came from {queue}")


def test_a_full_redis_takes_nothing_and_loses_nothing(tally_run: Callable[..., Run]) -> None:
    import redis  # noqa: PLC0415

    with running("redis") as server, redis.Redis.from_url(server.url) as client:
        url = f"{server.url}?retry_after=1"
        with App(url, queue="orders") as app:
            app.publish(URN, {"n": 1})
            client.config_set("maxmemory", "1")
            with pytest.raises(Unavailable) as caught:
                app.publish(URN, {"n": 2})
            assert caught.value.code == "full"
            assert "is full" in caught.value.hint
        ended = tally_run(url, "orders", "--idle", "0.1", body="raise ValueError")
        assert ended.code == 2
        assert "is full" in said(ended)[1]
        client.config_set("maxmemory", "0")
        assert json.loads(tally_run(url, "orders", "--limit", "1").out) == {"handled": 1}
        assert client.llen("orders") == client.llen("orders:dlq") == 0


def test_a_broker_that_goes_away_for_good_is_no_quiet_queue(
    tally_run: Callable[..., Run],
) -> None:
    with running("redis") as server:
        with App(server.url, queue="orders") as app:
            app.publish(URN, {"n": 1})
        body = f"import os; os.kill({server.pid}, 9)"
        ended = tally_run(server.url, "orders", "--idle", "0.5", body=body)
        assert ended.code == 2
        assert "is the broker running?" in said(ended)[1]


def publish_until_refused(app: App) -> None:
    """Go on until the broker's alarm goes off, which takes it a second or two."""
    end = monotonic() + PATIENCE
    while monotonic() < end:
        app.publish(URN, {"n": 1})


def test_a_rabbitmq_without_room_blocks_and_says_so() -> None:
    recipe = find_server("rabbitmq")
    limit = "vm_memory_high_watermark.absolute = 20MB\n"
    files = {**recipe.files, "rabbitmq.conf": recipe.files["rabbitmq.conf"] + limit}
    with (
        running("rabbitmq", recipe=replace(recipe, files=files)) as server,
        App(f"{server.url}?timeout=3", queue="orders") as app,
        pytest.raises(Unavailable) as caught,
    ):
        publish_until_refused(app)
    assert caught.value.code == "full"
