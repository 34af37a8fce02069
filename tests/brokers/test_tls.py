"""TLS and logins on the real servers: checked by default, refused in one line, secrets nowhere."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from tests.brokers.authority import (
    PASSWORD,
    TOKEN,
    Authority,
    make_authority,
    secured,
    write_token,
)
from tests.brokers.tls_front import fronted

from tallystick import App
from tallystick.brokers.servers import running
from tallystick.core.errors import TallystickError, Unavailable, UsageError
from tallystick.runtime.address import link_to

pytestmark = pytest.mark.xdist_group("brokers")

URN = "urn:babel:orders:created"
BROKERS = ("redis", "rabbitmq", "kafka", "pulsar", "artemis")
WRONG = {"pulsar": write_token(b"another key that is as long as a key has to be")}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("other"))


Url = Callable[..., str]


@pytest.fixture(scope="module", params=BROKERS)
def url(request: pytest.FixtureRequest, authority: Authority) -> Iterator[Url]:
    """Give a way to write the URL of a broker that speaks TLS and knows `tally`."""
    name = request.param
    right = TOKEN if name == "pulsar" else PASSWORD
    with running(name, recipe=secured(name, authority)) as server:
        scheme, _, host = server.urls["tls"].replace("127.0.0.1", "localhost").partition("://")

        def write(password: str = "", **options: object) -> str:
            secret = quote({"": right, "wrong": WRONG.get(name, "wrong-9X")}[password], safe="")
            user = "" if name == "pulsar" else "tally"
            given = "&".join(f"{key}={value}" for key, value in options.items())
            return f"{scheme}://{user}:{secret}@{host}?{given}"

        yield write


def carry(url: str) -> list[Any]:
    """Publish one message and handle it."""
    seen: list[Any] = []
    with App(url, queue=f"tally-{uuid4().hex[:12]}") as app:
        app.handler(URN)(seen.append)
        app.publish(URN, {"n": 1})
        app.run(limit=1)
    return seen


def refusal(url: str) -> Unavailable:
    """Give the error of a publish, and find no secret in anything that it shows."""
    app = App(url, queue="orders")
    with pytest.raises(Unavailable) as caught:
        app.publish(URN, {"n": 1})
    app.close()
    error = caught.value
    shown = "".join(traceback.format_exception(error)) + repr(app) + repr(app.link) + error.hint
    secrets = (PASSWORD, quote(PASSWORD, safe=""), TOKEN, "wrong-9X", *WRONG.values())
    assert not [one for one in secrets if one in shown]
    assert "\n" not in str(error)
    return error


def test_a_server_whose_authority_is_given_is_trusted(url: Url, authority: Authority) -> None:
    assert carry(url(ca=authority.ca)) == [{"n": 1}]


def test_a_server_of_another_authority_is_refused(url: Url, stranger: Authority) -> None:
    assert refusal(url(ca=stranger.ca, timeout=4)).code == "untrusted"


def test_without_an_authority_the_systems_own_decide(url: Url) -> None:
    assert refusal(url(timeout=4)).code == "untrusted"


def test_checking_is_turned_off_only_by_asking(url: Url) -> None:
    assert carry(url(verify=0)) == [{"n": 1}]


def test_a_wrong_password_is_refused_in_one_line_with_a_hint(
    url: Url, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "tallystick"):
        error = refusal(url("wrong", ca=authority.ca, timeout=4))
    assert error.code == "login"
    assert "password" in error.hint
    assert "wrong-9X" not in caplog.text


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_sqs_is_trusted_over_https_by_the_same_options(
    broker_url: Callable[[str], str], authority: Authority, stranger: Authority
) -> None:
    plain = broker_url("sqs")
    port = int(plain.rpartition(":")[2])
    with fronted(authority, port) as secure:
        keys = f"AKIDEXAMPLE:{quote(PASSWORD, safe='')}"
        base = f"sqs://{keys}@us-east-1?endpoint=https://localhost:{secure}"
        assert carry(f"{base}&ca={authority.ca}") == [{"n": 1}]
        assert carry(f"{base}&verify=0") == [{"n": 1}]
        assert refusal(f"{base}&ca={stranger.ca}").code == "untrusted"
        assert refusal(base).code == "untrusted"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis://h?ca=x.pem", "does not use TLS"),
        ("amqp://h?verify=0", "does not use TLS"),
        ("kafka://h?ca=x.pem", "does not use TLS"),
        ("pulsar://h?verify=1", "does not use TLS"),
        ("artemis://h?ca=x.pem", "does not use TLS"),
        ("sqs://eu?endpoint=http://h&ca=x.pem", "does not use TLS"),
        ("sb://localhost?ca=x.pem", "does not use TLS"),
        ("sb://a:b@shop.example.net?verify=0", "needs a checked TLS certificate"),
        ("rediss://h?ca=/nowhere/ca.pem", "No such file"),
        ("rediss://h?ca=/dev/null", "no PEM certificate"),
        ("amqps://h?verify=perhaps", "`verify` must be 1 or 0, found 'perhaps'"),
    ],
)
def test_an_option_that_cannot_hold_is_refused_before_anything_is_opened(
    url: str, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        link_to(url)


def test_what_a_handler_says_carries_no_password_into_the_dead_letter(
    broker_url: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    host = broker_url("redis").partition("://")[2]
    secret = "default:plan-TED"
    app = App(f"redis://{host}", queue=f"tally-{uuid4().hex[:12]}", max_attempts=1)
    url = f"redis://{secret}@{host}"
    known = App(url, queue=app.settings.queue, max_attempts=1)

    @app.handler(URN)
    def handle(_: Any) -> None:
        raise ValueError("plain")

    app.publish(URN, {})
    assert app.run(limit=1) == {"dead_lettered": 1}
    assert known._redact(f"cannot reach {url}") == f"cannot reach redis://default:***@{host}"
    assert "plan-TED" not in repr(known) + repr(known.link) + caplog.text
    app.close()


def test_a_planted_secret_is_in_no_text_of_an_address(tmp_path: Path) -> None:
    link = link_to(f"amqp://tally:{quote(PASSWORD, safe='')}@h/{tmp_path.name}")
    shown = f"{link.address} {link.address!r} {link!r}"
    assert PASSWORD not in shown
    assert quote(PASSWORD, safe="") not in shown
    with pytest.raises(TallystickError) as caught:
        link_to(f"amqp://tally:{quote(PASSWORD, safe='')}@h?nonsense=1")
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
