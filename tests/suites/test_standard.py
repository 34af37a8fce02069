"""Our own standard: Tallystick passes all of it, and silence passes none of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tallystick.core.verdict import Outcome
from tallystick.suites.find import find_suites, load_standard
from tallystick.suites.load import Suite
from tallystick.suites.protocol import Answer
from tallystick.suites.run import run_cases
from tallystick.suites.tallystick_subject import TallystickSubject


@pytest.fixture(scope="module")
def standard() -> Suite:
    return load_standard()


class Silent(TallystickSubject):
    """Says nothing to everything."""

    def call(self, case: str, operation: str, given: dict[str, Any]) -> Answer:  # noqa: ARG002
        return Answer(id=1, result={})


def test_tallystick_passes_every_case(standard: Suite) -> None:
    subject = TallystickSubject()
    verdicts = list(run_cases(standard.cases, subject, subject.start()))
    assert [v for v in verdicts if v.outcome is not Outcome.PASSED] == []


def test_silence_passes_nothing(standard: Suite) -> None:
    silent = Silent()
    verdicts = list(run_cases(standard.cases, silent, silent.start()))
    assert [v.case for v in verdicts if v.outcome is not Outcome.FAILED] == []


def test_every_broker_has_a_block_and_there_are_byte_vectors(standard: Suite) -> None:
    sections = Counter(case.name.split("/")[1] for case in standard.cases)
    brokers = {"redis", "rabbitmq", "sqs", "servicebus", "pulsar", "kafka", "artemis"}
    assert brokers <= set(sections)
    assert sections["bytes"] >= 150


def test_the_standard_is_what_runs_without_a_pattern(standard: Suite) -> None:
    (found,) = find_suites([], None, lambda _: None)
    assert found == standard
