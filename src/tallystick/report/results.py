"""Write the `results.json` of conformance suite 1.8.0 (ADR-0032 section 2) from a journal.

`pass` is a passed case; `fail` is a failed or errored one, with the reason. A `skip` must cite the
ADR that allows it, so an unsupported case is a skip only if its reason cites one; otherwise it is a
`fail` that says it is not covered. If every case of a scope is unsupported, the implementation does
not carry that binding, and its sections are left out, as the format requires.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.errors import UsageError
from tallystick.core.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tallystick.core.journal import Journal
    from tallystick.suites.load import Suite

__all__ = ["results"]

_CORE: Final = "core"
_ADR: Final = re.compile(r"ADR-[0-9]{4}")


def results(journal: Journal, suite: Suite) -> dict[str, Any]:
    """Return the results of one implementation on one whole suite; the format has no parts."""
    versions, scopes = journal.head.versions, suite.scopes
    verdicts = _by_section(journal, suite.name)
    ran = {record.verdict.case for record in journal.records}
    lacking = [case.name for case in suite.cases if case.name not in ran]
    if lacking:
        raise UsageError(
            f"results.json needs the whole suite, but {len(lacking)} cases were not run",
            code="partial_results",
            hint=f"run '{suite.name}/**', or use --journal or --junit instead",
        )
    carried = [
        scope
        for scope in dict.fromkeys(scopes.values())
        if scope != _CORE and any(_asked(verdicts.get(s, {})) for s in scopes if scopes[s] == scope)
    ]
    return {
        "sdk": versions.get("subject.name", journal.head.subject),
        "version": versions.get("subject.version") or "0",
        "conformance_version": versions[f"suite.{suite.name}"],
        "generated_at": journal.head.time,
        "bindings": carried,
        "sections": {
            section: {name: _result(verdict) for name, verdict in cases.items()}
            for section, cases in verdicts.items()
            if scopes[section] in {_CORE, *carried}
        },
    }


def _by_section(journal: Journal, suite: str) -> dict[str, dict[str, Verdict]]:
    sections: dict[str, dict[str, Verdict]] = {}
    for record in journal.records:
        root, section, name = record.verdict.case.split("/", maxsplit=2)
        if root == suite:
            sections.setdefault(section, {})[name] = record.verdict
    return sections


def _asked(cases: Mapping[str, Verdict]) -> bool:
    return any(verdict.outcome is not Outcome.UNSUPPORTED for verdict in cases.values())


def _result(verdict: Verdict) -> dict[str, str]:
    if verdict.outcome is Outcome.PASSED:
        return {"status": "pass"}
    if verdict.outcome is Outcome.UNSUPPORTED:
        status = "skip" if _ADR.search(verdict.reason) else "fail"
        return {"status": status, "reason": f"unsupported: {verdict.reason}"}
    places = ", ".join(one.pointer or "the root" for one in verdict.differences)
    return {"status": "fail", "reason": verdict.reason or f"differs at {places}"}
