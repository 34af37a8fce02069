"""The name of a running broker stands for its URL: in `App`, in a store, on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallystick import App
from tallystick.brokers.servers import resolve_url
from tallystick.cli import main
from tallystick.core.errors import UsageError
from tallystick.runtime.claims import open_claims
from tallystick.runtime.outbox import Outbox

URN = "urn:babel:orders:created"


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a Redis as a user does, apart from all others, and give the URL that is printed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        program = str(Path(sys.executable).with_name("tally"))
        started = subprocess.run(
            [program, "broker", "up", "redis"], capture_output=True, text=True, check=True
        )
        try:
            assert started.stdout.startswith("redis is up: redis://127.0.0.1:")
            assert 'App("redis")' in started.stderr
            assert "tally broker down redis" in started.stderr
            yield started.stdout.split()[3]
        finally:
            assert main(["broker", "down", "redis", "--wipe"]) == 0


def test_an_app_takes_the_name_of_a_running_broker(redis: str) -> None:
    with App("redis", queue="named") as app:
        app.publish(URN, {"id": 7})
    handled: list[object] = []
    with App(redis, queue="named") as other:
        other.handler(URN)(handled.append)
        assert other.run(limit=1) == {"handled": 1}
    assert handled == [{"id": 7}]


def test_options_follow_a_name_as_they_follow_a_url(redis: str) -> None:
    assert resolve_url("redis?laravel=1") == f"{redis}?laravel=1"
    with App("redis?laravel=1") as app:
        assert app.link.binding != App("redis").link.binding


def test_a_store_takes_the_name_of_a_running_one(redis: str) -> None:
    by_name, by_url = open_claims("redis?scope=named"), open_claims(f"{redis}?scope=named")
    assert by_name.claim("m-1").verdict == "run"
    assert by_url.claim("m-1").verdict == "held"
    by_name.close()
    by_url.close()


def test_the_commands_take_the_name(redis: str, tmp_path: Path) -> None:
    (tmp_path / "named_shop.py").write_text(
        "from tallystick import App\n"
        'app = App("redis", queue="commands")\n'
        f"@app.handler({URN!r})\n"
        "def created(data: dict) -> None:\n"
        '    print(data["id"])\n'
    )
    with App(redis, queue="commands") as app:
        app.publish(URN, {"id": 8})

    def tally(*words: str) -> str:
        program = str(Path(sys.executable).with_name("tally"))
        done = subprocess.run(
            [program, *words], cwd=tmp_path, env=os.environ, capture_output=True, text=True,
            check=True, timeout=60,
        )  # fmt: skip
        return done.stdout

    tally("capture", "redis", "commands", "-o", "seen", "--limit", "1", "--json")
    assert json.loads(tally("replay", "seen", "--to", "redis", "--json"))["sent"] == 1
    shown = tally("run", "named_shop:app", "--limit", "2", "--json").splitlines()
    assert shown == ["8", "8", '{"handled": 2}']
    assert json.loads(tally("redrive", "redis", "commands:dlq", "--json"))["redriven"] == 0
    tally("outbox", "create", "--store", "sqlite:///o.db")
    told = tally("outbox", "relay", "--store", "sqlite:///o.db", "--broker", "redis", "--idle", "0")
    assert told == "0 sent, 0 failed\n"


@pytest.mark.parametrize(
    "use",
    [lambda: App("redis"), lambda: Outbox("postgresql"), lambda: open_claims("redis")],
    ids=["App", "Outbox", "claims"],
)
def test_a_broker_that_is_not_running_names_the_command_that_starts_it(
    use: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert callable(use)
    with pytest.raises(UsageError, match="is not running on this machine") as caught:
        use()
    assert "tally broker up" in caught.value.hint


def test_a_word_that_is_no_broker_gets_the_list_of_names() -> None:
    with pytest.raises(UsageError, match="neither a broker URL nor the name of a broker") as caught:
        App("reddis")
    assert "redis, rabbitmq, kafka" in caught.value.hint
    assert "postgresql" not in caught.value.hint
