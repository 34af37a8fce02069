"""The public suite 1.8.0: fetched safely, enumerated whole, and passed by Tallystick."""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tallystick.core.errors import Unavailable
from tallystick.core.verdict import Outcome
from tallystick.suites import public as module
from tallystick.suites.protocol import Answer
from tallystick.suites.public import fetch, read_member
from tallystick.suites.run import NEEDS, run_cases
from tallystick.suites.tallystick_subject import TallystickSubject

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tallystick.suites.load import Suite

LIVE = "needs a live Redis: `tally broker up redis`, or set TALLY_REDIS_URL"


def test_all_710_cases_of_32_sections_are_enumerated(public: Suite) -> None:
    sections = Counter(case.name.split("/")[1] for case in public.cases)
    assert (public.version, len(sections), sum(sections.values())) == ("1.8.0", 32, 710)
    assert sections["identity_verdict"] == 97
    assert sections["redis_layout"] == 59
    assert "public/identity_verdict/job number" in {case.name for case in public.cases}


def test_tallystick_passes_every_case_that_needs_no_live_broker(public: Suite) -> None:
    subject = TallystickSubject()
    verdicts = {v.case: v for v in run_cases(public.cases, subject, subject.start())}
    live = {case.name for case in public.cases if NEEDS in case.given}
    wrong = [
        verdict
        for verdict in verdicts.values()
        if verdict.outcome is not Outcome.PASSED and verdict.case not in live
    ]
    assert wrong == []
    assert len(verdicts) - len(live) == 654


def test_the_live_redis_cases_are_listed_by_name_with_the_reason(public: Suite) -> None:
    subject = TallystickSubject()
    verdicts = list(run_cases(public.cases, subject, subject.start()))
    unsupported = [v for v in verdicts if v.outcome is Outcome.UNSUPPORTED]
    assert len(unsupported) == 56
    assert {v.reason for v in unsupported} == {LIVE}
    assert all(v.case.startswith("public/redis_layout/") for v in unsupported)


def test_with_a_live_redis_tallystick_passes_all_710(
    broker_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLY_REDIS_URL", broker_url("redis"))
    suite, subject = module.load_public(lambda _: None), TallystickSubject()
    verdicts = list(run_cases(suite.cases, subject, subject.start()))
    assert [v for v in verdicts if v.outcome is not Outcome.PASSED] == []
    assert len(verdicts) == 710


def test_every_live_redis_case_can_fail(
    broker_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLY_REDIS_URL", broker_url("redis"))
    suite, silent = module.load_public(lambda _: None), Silent()
    live = [case for case in suite.cases if case.operation == "redis_steps"]
    verdicts = list(run_cases(live, silent, silent.start()))
    assert len(verdicts) == 56
    assert {v.outcome for v in verdicts} == {Outcome.FAILED}


def test_a_redis_that_is_named_and_does_not_answer_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TALLY_REDIS_URL", "redis://127.0.0.1:1/0")
    suite, subject = module.load_public(lambda _: None), TallystickSubject()
    live = [case for case in suite.cases if case.operation == "redis_steps"]
    with pytest.raises(Unavailable):
        list(run_cases(live, subject, subject.start()))


def test_every_public_case_can_fail(public: Suite) -> None:
    silent = Silent()
    asked = [case for case in public.cases if NEEDS not in case.given]
    verdicts = list(run_cases(asked, silent, silent.start()))
    assert [v.case for v in verdicts if v.outcome is not Outcome.FAILED] == []


class Silent(TallystickSubject):
    """Says nothing to everything."""

    def call(self, case: str, operation: str, given: dict[str, Any]) -> Answer:  # noqa: ARG002
        return Answer(id=1, result={})


def genuine() -> bytes:
    return fetch(lambda _: None, module.cache_folder()).read_bytes()


def test_a_fetched_suite_is_checked_and_renamed_into_the_cache(tmp_path: Path) -> None:
    content, said = genuine(), list[str]()

    def download(folder: Path) -> str:
        (folder / "babelqueue-1.24.0.tar.gz").write_bytes(content)
        return ""

    archive = fetch(said.append, tmp_path / "cache", download)
    assert archive.read_bytes() == content
    assert [path.name for path in archive.parent.iterdir()] == [archive.name]
    assert len(said) == 1

    def never(_: Path) -> str:
        pytest.fail("the cache was not used")

    assert fetch(said.append, tmp_path / "cache", never) == archive


def test_a_damaged_cache_is_fetched_again(tmp_path: Path) -> None:
    content = genuine()
    (tmp_path / "babelqueue-1.24.0.tar.gz").write_bytes(content[:-1])

    def download(folder: Path) -> str:
        (folder / "babelqueue-1.24.0.tar.gz").write_bytes(content)
        return ""

    assert fetch(lambda _: None, tmp_path, download).read_bytes() == content


def test_a_suite_with_another_checksum_is_never_used(tmp_path: Path) -> None:
    pauses: list[float] = []

    def download(folder: Path) -> str:
        (folder / "babelqueue-1.24.0.tar.gz").write_bytes(b"something else")
        return ""

    with pytest.raises(Unavailable, match="SHA-256"):
        fetch(lambda _: None, tmp_path, download, pauses.append)
    assert pauses == sorted(pauses)
    assert len(pauses) == 4
    assert list(tmp_path.iterdir()) == []


def test_a_busy_registry_is_asked_again_with_growing_pauses(tmp_path: Path) -> None:
    content, pauses = genuine(), list[float]()

    def download(folder: Path) -> str:
        if len(pauses) < 2:
            return "429 Too Many Requests"
        (folder / "babelqueue-1.24.0.tar.gz").write_bytes(content)
        return ""

    said: list[str] = []
    fetch(said.append, tmp_path, download, pauses.append)
    assert len(pauses) == 2
    assert any("429" in line for line in said)


def test_a_file_that_is_not_in_the_archive_is_a_lookup_error(tmp_path: Path) -> None:
    with tarfile.open(fetch(lambda _: None, module.cache_folder())) as archive:
        with pytest.raises(LookupError):
            read_member(archive, "fixtures/none.json")
        with pytest.raises(LookupError):
            read_member(archive, "fixtures")
        assert json.loads(read_member(archive, "manifest.json"))["schema_version"] == 1


def test_the_cache_follows_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert module.cache_folder() == tmp_path / "tallystick"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert module.cache_folder() == tmp_path / ".cache" / "tallystick"
