"""The catalog page in a real browser: load, search, try a breaking change, see the witness."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.serving import ODD, ORDERS, USERS, Served, start, stop, write_registry

HERE = Path(__file__).parent / "page"
RETRY = Path(__file__).parents[2] / "tools" / "retry"
HOSTILE = "urn:babel:<img src=x onerror=alert(1)>"


def need(program: str, package: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.fail(f"{program} is missing: apt-get install {package}", pytrace=False)
    return found


@pytest.fixture(scope="module")
def modules() -> Path:
    """Give the folder with playwright-core and axe-core, installed once for this lock."""
    need("npm", "npm")
    lock = (HERE / "package-lock.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tallystick"
    home = cache / f"page-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not home.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as made:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, made)
            command = [str(RETRY), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            subprocess.run(command, cwd=made, check=True, capture_output=True)
            if not home.exists():
                shutil.copytree(made, home)
    return home


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
def seen(served: Served, modules: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the browser once; the pictures stay in TALLYSTICK_PICTURES when it is set."""
    chromium = need("chromium", "chromium")
    node = need("node", "nodejs")
    profile = tmp_path_factory.mktemp("profile")
    pictures = os.environ.get("TALLYSTICK_PICTURES") or str(tmp_path_factory.mktemp("pictures"))
    done = subprocess.run(
        [node, str(HERE / "check.mjs"), str(modules), served.url, chromium, str(profile), pictures],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def test_the_page_loads_alone_and_without_errors(seen: dict[str, Any]) -> None:
    assert seen["errors"] == []
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
    assert "the registered schema accepts and this one refuses" in told["text"]
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
