"""The rules for JUnit XML: a grammar of our own, its counts, and others' schemas where given.

`junit.rng` is written from what readers of JUnit XML document. The schemas of Jenkins and Surefire
are asked too when `TALLY_OFFICIAL` has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from lxml import etree  # type: ignore[import-untyped]
from tests.official import JUNIT

__all__ = ["BOTH", "JENKINS", "SUREFIRE", "check_junit", "schema"]

GRAMMAR = Path(__file__).parent / "junit.rng"
JENKINS, SUREFIRE = "jenkins-junit-10.xsd", "surefire-test-report.xsd"
BOTH = (JENKINS, SUREFIRE)
COUNTED = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}


@cache
def _grammar() -> etree.RelaxNG:
    return etree.RelaxNG(etree.parse(GRAMMAR))


@cache
def schema(name: str) -> etree.XMLSchema:
    """Give one of the schemas of others, which must be here."""
    assert JUNIT is not None
    return etree.XMLSchema(etree.parse(JUNIT / name))


def check_junit(root: etree._Element, official: Sequence[str] = BOTH) -> None:
    """Raise what is wrong with a document; `official` are the schemas that it must conform to."""
    _grammar().assertValid(root)
    for suite in root.iter("testsuites", "testsuite"):
        for name, element in COUNTED.items():
            found = sum(1 for _ in suite.iter(element))
            assert suite.get(name, "0") == str(found), f"{name} is not the count of {element}"
    for name in official if JUNIT else ():
        schema(name).assertValid(root)
