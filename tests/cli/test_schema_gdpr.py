from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from tallystick.cli import schema
from tallystick.core.errors import Unavailable, UsageError

EXAMPLE = Path(__file__).parents[2] / "examples" / "registry"
USER = "urn:babel:users:registered"


def gdpr(*words: str, registry: Path = EXAMPLE) -> int:
    parser = argparse.ArgumentParser()
    schema.register(parser)
    args = parser.parse_args(["gdpr", "--registry", str(registry), *words])
    return int(args.run(args))


@pytest.fixture
def leaky(tmp_path: Path) -> Path:
    """Give a registry with an e-mail address that nobody marked, on line 2."""
    (tmp_path / "a.json").write_text('{"properties": {\n"email": {"type": "string"}}}')
    manifest = {"schemas": [{"urn": "urn:babel:a:one", "schema": "a.json"}]}
    (tmp_path / "registry.json").write_text(json.dumps(manifest))
    return tmp_path


def waive(folder: Path, **changes: Any) -> None:
    row = {"urn": "urn:babel:a:one", "path": "email", "reason": "agreed", "expires": "2026-12-31"}
    (folder / "waivers.json").write_text(json.dumps({"waivers": [{**row, **changes}]}))


def test_the_inventory_reads_as_documented(capsys: pytest.CaptureFixture[str]) -> None:
    assert gdpr() == 0
    assert capsys.readouterr().out == (
        "  urn:babel:orders:created: no sensitive fields\n"
        "  urn:babel:users:registered: 5 sensitive field(s)\n"
        "    - addresses[].line\n"
        "    - email (email)\n"
        "    - phone\n"
        "    - profile.full_name\n"
        "    - profile.tckn (national_id)\n"
        "2 URN(s), 5 sensitive field(s).\n"
    )


def test_the_example_registry_needs_no_mark(capsys: pytest.CaptureFixture[str]) -> None:
    assert gdpr("--require") == 0
    assert capsys.readouterr().out == (
        "ok: every PII-named field across 2 URN(s) is marked x-gdpr-sensitive.\n"
    )


def test_a_field_without_its_mark_fails_the_gate(
    leaky: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gdpr("--require", registry=leaky) == 1
    assert f"  x urn:babel:a:one: email ({leaky}/a.json:2: " in capsys.readouterr().out
    assert gdpr("--require", "--pattern", "^nothing$", registry=leaky) == 0


def test_json_and_annotations_name_the_place(
    leaky: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gdpr("--require", "--json", registry=leaky) == 1
    out = json.loads(capsys.readouterr().out)
    assert [(one["path"], one["line"]) for one in out["suspects"]] == [("email", 2)]
    assert gdpr("--require", "--github", registry=leaky) == 1
    assert capsys.readouterr().out.startswith(f"::error file={leaky}/a.json,line=2,")
    assert gdpr("--json", registry=leaky) == 0
    assert json.loads(capsys.readouterr().out) == {"urns": 1, "sensitive": 0, "fields": []}


def test_a_waiver_clears_a_finding_until_it_ends(
    leaky: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waive(leaky)
    assert gdpr("--require", "--today", "2026-12-31", registry=leaky) == 0
    assert gdpr("--require", "--today", "2027-01-01", registry=leaky) == 1
    out = capsys.readouterr().out
    assert "the waiver for urn:babel:a:one: email expired on 2026-12-31" in out
    assert "x urn:babel:a:one: email (" in out


def test_an_expired_waiver_is_a_finding_even_when_nothing_is_left_to_clear(
    leaky: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waive(leaky, path="gone")
    (leaky / "a.json").write_text("{}")
    assert gdpr("--require", "--today", "2027-01-01", registry=leaky) == 1
    assert gdpr("--require", "--today", "2026-01-01", registry=leaky) == 0
    assert "matches no finding" in capsys.readouterr().out


def test_a_message_is_masked_and_otherwise_kept(capsys: pytest.CaptureFixture[str]) -> None:
    path = EXAMPLE / "messages" / "user-registered.json"
    assert gdpr("--mask", str(path)) == 0
    masked = capsys.readouterr().out
    text = path.read_text()
    for secret, kept in (
        ("alice@example.com", "a***"), ("+905551112233", "+***"), ("Alice Example", "A***"),
        ("10000000146", "1***"), ("1 Example Street", "1***"),
    ):  # fmt: skip
        text = text.replace(f'"{secret}"', f'"{kept}"')
    assert masked == text


def test_bare_data_is_masked_by_its_urn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "data.json"
    path.write_text('{"user_id": 9007199254740993, "email": "bob@example.com"}')
    assert gdpr("--mask", str(path), "--urn", USER) == 0
    out = capsys.readouterr().out
    assert out == '{"user_id": 9007199254740993, "email": "b***"}\n'


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--mask", "m.json"], UsageError),
        (["--mask", "m.json", "--urn", "urn:babel:no:where"], UsageError),
        (["--mask", "none.json"], Unavailable),
        (["--mask", "e.json", "--urn", USER], UsageError),
        (["--mask", "m.json", "--urn", USER, "--json"], UsageError),
        (["--pattern", "x"], UsageError),
        (["--urn", "x"], UsageError),
        (["--require", "--pattern", "("], UsageError),
        (["--require", "--waivers", "none.json"], Unavailable),
    ],
)
def test_what_cannot_be_done_is_said(
    words: list[str], error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.json").write_text("{}")
    Path("e.json").write_text('{"job": "urn:babel:orders:created", "data": {}}')
    with pytest.raises(error):
        gdpr(*words)
