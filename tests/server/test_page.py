"""The catalog page in a real browser: load, search, try a breaking change, see the witness."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import browse
from tests.server.serving import ODD, ORDERS, USERS, Served, start, stop, write_registry

HERE = Path(__file__).parent / "page"
HOSTILE = "urn:babel:<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("page") / "registry"
    manifest = write_registry(folder)
    value = json.loads(manifest.read_bytes())
    value["schemas"].append({"urn": HOSTILE, "schema": "any.json", "owner": "<b>eve</b>"})
    manifest.write_text(json.dumps(value, ensure_ascii=False))
    served = start(folder)
    yield served
    stop(served)


@pytest.fixture(scope="module")
def seen(served: Served, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the browser once."""
    return browse(served.url, HERE / "check.mjs", tmp_path_factory.mktemp("seen"))


def test_the_page_loads_alone_and_without_errors(seen: dict[str, Any]) -> None:
    (asked,) = seen["errors"]  # the browser notes the answer to the candidate that is no JSON
    assert "422" in asked
    assert seen["elsewhere"] == []
    assert {ORDERS, USERS, ODD} < set(seen["all"])


def test_search_finds_fields_owners_and_nothing(seen: dict[str, Any]) -> None:
    assert seen["byField"] == [USERS]
    assert seen["byOwner"] == [USERS]
    assert seen["byNothing"] == []
    assert seen["count"].startswith("0 of")
    assert seen["personal"] == [USERS]


def test_a_subject_shows_its_owner_and_its_personal_data(seen: dict[str, Any]) -> None:
    assert "identity" in seen["facts"]
    assert "active" in seen["facts"]
    assert seen["marks"] == [
        "email", "phone", "profile.full_name", "profile.tckn", "addresses[].line",
    ]  # fmt: skip


def test_a_breaking_candidate_shows_its_witness(seen: dict[str, Any]) -> None:
    assert seen["current"] == ORDERS
    told = seen["breaking"]
    assert told["verdict"] == "breaking"
    assert "/properties/order_id" in told["text"]
    assert "The registered schema accepts the following message" in told["text"]
    assert isinstance(json.loads(told["witness"])["order_id"], int)


def test_a_compatible_and_an_unreadable_candidate_are_told_apart(seen: dict[str, Any]) -> None:
    assert seen["compatible"]["verdict"] == "compatible"
    assert seen["compatible"]["witness"] == ""
    assert seen["unreadable"]["verdict"] == "fault"
    assert seen["reset"] == ""


def test_text_from_the_registry_is_never_markup(seen: dict[str, Any]) -> None:
    assert HOSTILE in seen["all"]
    assert seen["dialogs"] == 0


def test_the_page_is_accessible_in_light_and_dark(seen: dict[str, Any]) -> None:
    assert seen["faultsLight"] == []
    assert seen["faultsDark"] == []


def test_the_page_fits_a_telephone(seen: dict[str, Any]) -> None:
    assert seen["overflow"] is False


def test_an_unknown_subject_is_told(seen: dict[str, Any]) -> None:
    assert "urn:nobody" in seen["missing"]
