"""`bqschema` as its README shows it, and what it says when it cannot do its work."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.cli.reference import COMPATIBLE, run

pytestmark = pytest.mark.usefixtures("examples")

SCRIPT = Path(sys.executable).parent / "bqschema"


def words_of(text: str) -> list[str]:
    return text.removeprefix("bqschema ").split()


README: list[tuple[str, int, str]] = [
    ("bqschema validate --registry examples/registry.json examples/messages/order-created.json", 0,
     "examples/messages/order-created.json [urn:babel:orders:created]: ok\n"),
    (("bqschema compat examples/schemas/orders-created.json "
     "examples/schemas/orders-created.v2-breaking.json"), 1,
     ("4 breaking change(s) — mint a new URN instead (versioning-policy §3):\n"
     "  - currency: enum value USD removed\n"
     "  - note: property removed\n"
     '  - order_id: type changed "integer" → "string"\n'
     '  - property "customer_id" is now required\n')),
    ("bqschema compat examples/schemas/orders-created.json examples/schemas/orders-created.json",
     0, COMPATIBLE),
    ("bqschema check --registry examples/registry.json", 0,
     "  ok urn:babel:orders:created\n  ok urn:babel:users:registered\n2 URN(s) in registry.\n"),
    ("bqschema gdpr --registry examples/registry.json", 0,
     ("  urn:babel:orders:created: no sensitive fields\n"
     "  urn:babel:users:registered: 5 sensitive field(s)\n"
     "    - addresses[].line\n    - email (email)\n    - phone\n    - profile.full_name\n"
     "    - profile.tckn (national_id)\n2 URN(s), 5 sensitive field(s).\n")),
    ("bqschema gdpr --registry examples/registry.json --require", 0,
     "ok: every PII-named field across 2 URN(s) is marked x-gdpr-sensitive.\n"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "code", "text"), README)
def test_every_command_of_the_readme_says_what_is_documented(
    command: str, code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, *words_of(command)) == (code, text, "")
    single = [re.sub("^--", "-", word) for word in words_of(command)]
    assert run(capsys, *single) == (code, text, "")


def test_the_readme_masks_its_message(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("gdpr --registry examples/registry.json --mask "
               "examples/messages/user-registered.json")  # fmt: skip
    code, out, err = run(capsys, *words_of(command))
    assert (code, err) == (0, "")
    data = json.loads(out)["data"]
    assert data["email"] == "a***"
    assert data["profile"] == {"full_name": "A***", "tckn": "1***"}
    assert data["addresses"] == [{"city": "Ankara", "line": "1***"}]
    assert list(json.loads(out)) == sorted(json.loads(out))
    assert out.startswith('{\n  "attempts": 0,\n')


def test_the_readme_exports_its_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    command = "export-asyncapi --registry examples/registry.json -o asyncapi.json"
    assert run(capsys, *words_of(command)) == (0, "", "wrote asyncapi.json (2 URN(s))\n")
    document = json.loads(Path("asyncapi.json").read_text())
    assert document["asyncapi"] == "3.0.0"
    assert document["info"] == {"title": "BabelQueue Event Catalog", "version": "1.0.0"}
    name = "urn_babel_users_registered"
    assert document["channels"]["urn:babel:users:registered"] == {
        "address": "urn:babel:users:registered",
        "messages": {name: {"$ref": f"#/components/messages/{name}"}},
    }
    verbatim = json.loads(Path("examples/schemas/users-registered.json").read_text())
    message = {"name": "urn:babel:users:registered", "payload": verbatim}
    assert document["components"]["messages"][name] == message


def test_the_readme_serves_the_registry() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(SCRIPT), "serve", "--registry", "examples/registry.json", "--addr", f":{port}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            assert server.stderr.readline() == (
                f"bqschema serve: Confluent-compatible REST on :{port} "
                "(2 subject(s), compatibility=BACKWARD)\n"
            )
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/subjects", timeout=20) as answer:
                assert json.load(answer) == ["urn:babel:orders:created",
                                             "urn:babel:users:registered"]  # fmt: skip
            taken = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
            assert taken.returncode == 2
            assert taken.stderr == (
                f"bqschema: serve: listen tcp :{port}: bind: address already in use\n"
            )
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=20)


def test_the_console_script_is_installed() -> None:
    done = subprocess.run([SCRIPT, "help"], capture_output=True, text=True, check=True, timeout=60)
    head, *_, last = done.stdout.splitlines()
    assert head == "bqschema — file-based per-URN schema governance for BabelQueue"
    assert last == 'Schemas are draft-07 JSON Schema (subset) for the envelope\'s "data" block.'
    order = [done.stdout.index(f"bqschema {name}") for name in
             ("validate", "compat", "check", "export-asyncapi", "serve", "gdpr")]  # fmt: skip
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("words", "code", "begins"),
    [
        ([], 2, "bqschema — file-based"),
        (["frob"], 2, 'bqschema: unknown command "frob"\n\nbqschema — file-based'),
        (["check", "-nope"], 2, "flag provided but not defined: -nope\nUsage of check:\n"),
        (["check", "-h"], 0, "Usage of check:\n  -registry string\n    \tpath"),
        (["check", "--registry"], 2, "flag needs an argument: -registry\nUsage of check:\n"),
        (["gdpr", "-require=maybe"], 2,
         'invalid boolean value "maybe" for -require: parse error\nUsage of gdpr:\n'),
        (["check", "-=x"], 2, "bad flag syntax: -=x\n"),
        (["validate"], 2, "bqschema: validate: pass one or more envelope JSON files\n"),
        (["compat", "a"], 2, "bqschema: compat: need exactly two schema files: <old> <new>\n"),
        (["compat", "x", "y"], 2, "bqschema: read x: open x: no such file or directory\n"),
        (["check"], 2,
         "bqschema: registry: read registry.json: open registry.json: no such file or directory\n"),
        (["validate", "-registry", "examples/registry.json", "none.json"], 2,
         "bqschema: read none.json: open none.json: no such file or directory\n"),
        (["gdpr", "-registry=examples/registry.json", "-require", "-pattern", "(?=a)"], 2,
         "bqschema: gdpr: invalid PII name pattern: error parsing regexp: "),
        (["gdpr", "-registry=examples/registry.json", "-require", "-pattern", "(a"], 2,
         "bqschema: gdpr: invalid PII name pattern: error parsing regexp: missing closing ): `(a`"),
        (["export-asyncapi", "-registry=examples/registry.json", "-o", "no/where"], 2,
         "bqschema: write no/where: open no/where: no such file or directory\n"),
        (["serve", "-registry=examples/registry.json", "-compatibility", "banana"], 2,
         "bqschema: unknown compatibility level 'banana'"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_goes_to_stderr_with_the_right_code(
    words: list[str], code: int, begins: str, capsys: pytest.CaptureFixture[str]
) -> None:
    got, out, err = run(capsys, *words)
    assert (got, out) == (code, "")
    assert err.startswith(begins)


def test_a_flag_behind_the_first_word_is_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "compat", "a", "b", "--registry")
    assert (code, err) == (
        2, "bqschema: compat: need exactly two schema files: <old> <new>\n",
    )  # fmt: skip
