"""Load a manifest in the grammar of conformance suite 1.8.0 as a list of cases.

The manifest names its `sections`; each is a list of cases, or an object with `cases` and
sub-blocks. Case ids (suite 1.8.0, results.schema): an element of `cases` is its `name`, else
`<section>#<index>`; an element of a sub-block's `cases` is `<sub>/<name or index>`; any other
sub-object is one case called like its key. `description` and `schema` are never cases. A case's
full name is `<suite>/<section>/<id>`, for our own standard and the public suite alike.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.errors import Rejected
from tallystick.suites.compare import parse
from tallystick.suites.raw import Raw
from tallystick.suites.sections import adapt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tallystick.core.verdict import Case

__all__ = ["Suite", "load"]

_NEVER_CASES: Final = frozenset({"description", "schema"})


@dataclass(frozen=True, slots=True)
class Suite:
    """A loaded suite: its name, its version, the scope of each section, and the cases."""

    name: str
    version: str
    scopes: Mapping[str, str]
    cases: tuple[Case, ...]


def load(name: str, read: Callable[[str], bytes]) -> Suite:
    """Load the manifest and fixtures that `read` gives (paths relative to the manifest)."""
    try:
        manifest = parse(read("manifest.json"))
        sections = manifest["sections"]
        scopes = {section: str(about["scope"]) for section, about in sections.items()}
        version = str(manifest["conformance_version"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _rejected(name, f"cannot read manifest.json ({error!r})") from error
    cases = tuple(
        case for section in sections for case in _load_section(name, section, manifest, read)
    )
    twice = [one for one, times in Counter(case.name for case in cases).items() if times > 1]
    if twice:
        raise _rejected(name, f"two cases have the name {twice[0]!r}")
    return Suite(name, version, scopes, cases)


def _load_section(
    suite: str, section: str, manifest: dict[str, Any], read: Callable[[str], bytes]
) -> Iterator[Case]:
    if section not in manifest:
        raise _rejected(suite, f"section {section!r} is listed in `sections` but missing")
    block = manifest[section]
    whole = {"cases": block} if isinstance(block, list) else block
    if not isinstance(whole, dict):
        raise _rejected(suite, f"section {section!r} must be a list or an object")
    for identifier, sub, case, around in _enumerate(suite, section, whole):
        name = f"{suite}/{section}/{identifier}"
        if not name.isprintable():
            raise _rejected(suite, f"the case name {name!r} is not printable")
        try:
            yield adapt(name, Raw(section, sub, case, around, whole, read))
        except (ValueError, KeyError, TypeError, AttributeError, LookupError) as error:
            raise _rejected(suite, f"cannot read case {name!r} ({error!r})") from error


def _enumerate(
    suite: str, section: str, block: dict[str, Any]
) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Give (id, sub-block, the case, the block around it) of each case of a section."""
    for key, value in block.items():
        if key in _NEVER_CASES:
            continue
        if key == "cases":
            for index, case in _objects(suite, section, value):
                yield case.get("name", f"{section}#{index}"), "", case, block
        elif isinstance(value, dict) and "cases" in value:
            for index, case in _objects(suite, f"{section}/{key}", value["cases"]):
                yield f"{key}/{case.get('name', index)}", key, case, value
        elif isinstance(value, dict):
            yield key, key, value, block


def _objects(suite: str, place: str, cases: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
        raise _rejected(suite, f"the cases of {place} must be a list of objects")
    return enumerate(cases)


def _rejected(suite: str, why: str) -> Rejected:
    return Rejected(f"suite {suite}: {why}", code="suite_unreadable")
