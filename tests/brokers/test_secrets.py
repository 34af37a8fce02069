"""A password in a URL is nowhere else: no log, capture, dead letter, repr, error or status has it.

Every transport is taken through all of them, against a broker that takes the login, one that
refuses it or does not ask, and one that is not there; client libraries log all they can.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from traceback import format_exception
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
import redis

from tallystick import App
from tallystick.cli import main
from tallystick.core.errors import Unavailable

pytestmark = pytest.mark.xdist_group("brokers")

URN = "urn:babel:orders:created"
SECRET = "zq7/DEN+pa55="
FORMS = (SECRET, quote(SECRET, safe=""), quote(SECRET), "zq7", "pa55")
"""As it is, as URLs write it, and its parts: one that is cut in two is no better hidden."""

URLS = {
    "redis": "redis://tally:{secret}@{place}",
    "rabbitmq": "amqp://tally:{secret}@{place}?timeout=3",
    "kafka": "kafka://tally:{secret}@{place}?timeout=2",
    "sqs": "sqs://key:{secret}@us-east-1?endpoint=http://{place}&timeout=3",
    "pulsar": "pulsar://:{secret}@{place}?timeout=3",
    "artemis": "artemis://tally:{secret}@{place}?timeout=3",
    "servicebus": "sb://tally:{secret}@{place}?timeout=3",
}


@pytest.fixture
def nowhere() -> str:
    """Give a place where nobody listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture(params=URLS)
def urls(
    request: pytest.FixtureRequest, broker_url: Callable[[str], str], nowhere: str
) -> Iterator[list[str]]:
    """Give the URL of a broker that is there, and of one that is not, with the password."""
    server = request.param
    address = broker_url(server)
    there = address.partition("endpoint=http://")[2] or address.partition("://")[2]
    place = there.rpartition("@")[2].partition("?")[0].partition("&")[0].partition("/")[0]
    made = [
        URLS[server].format(secret=quote(SECRET, safe=""), place=one) for one in (place, nowhere)
    ]
    if server != "redis":
        yield made
        return
    with redis.Redis.from_url(address) as client:
        client.acl_setuser(
            "tally", enabled=True, passwords=[f"+{SECRET}"], keys="*", commands=["+@all"]
        )
        yield made
        client.acl_deluser("tally")


def tell(error: BaseException) -> str:
    return "".join(format_exception(error)) + repr(error) + getattr(error, "hint", "")


def work(url: str, folder: Path) -> list[str]:
    """Publish, fail, dead-letter and capture; give everything that was said about it."""
    queue = f"tally-{uuid4().hex[:12]}"
    app = App(url, queue=queue, max_attempts=1, capture=folder)

    @app.handler(URN)
    def handle(_: Any) -> None:
        raise ValueError(f"cannot reach {url}")

    transport = app.link.open()
    said = [repr(one) for one in (app, app.link, app.link.address, app.settings, transport)]
    said.append(str(app.link.address))
    try:
        app.publish(URN, {"n": 1})
        app.run(limit=1, signals=False)
        said.append(repr(app.status()))
    except Unavailable as error:
        said.append(tell(error))
    app.close()
    transport.close()
    return said


def ask(url: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Do what has a command; give what it printed."""
    name = f"shop_{uuid4().hex[:8]}"
    (folder / f"{name}.py").write_text(
        f"from tallystick import App\napp = App({url!r}, queue='tally-{name}')\n"
    )
    capsys.readouterr()
    main(["run", f"{name}:app", "--idle", "0.1", "--json"])
    main(["redrive", url, f"tally-{name}"])
    main(["capture", url, f"tally-{name}", "-o", str(folder / "tapped"), "--limit", "0"])
    main(["broker", "status", "--json"])
    main(["broker", "status"])
    (folder / f"{name}.py").unlink()
    return "".join(capsys.readouterr())


def test_a_password_is_nowhere_but_in_the_url(
    urls: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    caplog.set_level(logging.DEBUG)
    said = {}
    for url in urls:
        said[f"work {url}"] = "\n".join(work(url, tmp_path / "captures"))
        said[f"commands {url}"] = ask(url, tmp_path, capsys)
    files = [one for one in tmp_path.rglob("*") if one.is_file()]
    said |= {str(one.relative_to(tmp_path)): one.read_text(errors="replace") for one in files}
    said["logs"] = caplog.text + "".join(repr(one.__dict__) for one in caplog.records)
    found = [(place, form) for place, text in said.items() for form in FORMS if form in text]
    assert found == []
    assert any(said.values())
