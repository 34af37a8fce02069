"""One table says which extra brings which module, and one error says that it is missing."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from tallystick.core.errors import MissingExtra, Unavailable, exit_code
from tallystick.core.extras import (
    EXTRAS,
    WHOLE,
    check_extra,
    explain_import,
    importing,
    missing_modules,
)

ROOT: Final = Path(__file__).parents[2]
_DISTRIBUTIONS: Final = {
    "pika": "pika", "redis": "redis", "boto3": "boto3", "azure.servicebus": "azure-servicebus",
    "pulsar": "pulsar-client", "confluent_kafka": "confluent-kafka", "proton": "python-qpid-proton",
    "jsonschema_rs": "jsonschema-rs", "starlette": "starlette", "uvicorn": "uvicorn",
    "google.protobuf": "protobuf", "psycopg": "psycopg", "opentelemetry.sdk": "opentelemetry-sdk",
    "opentelemetry": "opentelemetry-api", "pyarrow": "pyarrow", "pamqp": "pamqp",
    "hdrh": "hdrhistogram", "covertable": "covertable", "pyspark": "pyspark",
    "deltalake": "deltalake", "openlineage.client": "openlineage-python",
}  # fmt: skip
_BROUGHT_ALONG: Final = {"botocore"}


def _declared() -> dict[str, list[str]]:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras: dict[str, list[str]] = document["project"]["optional-dependencies"]
    return extras


def _resolved(name: str, extras: dict[str, list[str]]) -> set[str]:
    """Give the distributions of an extra, with those of the extras that it names."""
    found: set[str] = set()
    for requirement in extras[name]:
        distribution = re.match(r"[A-Za-z0-9.-]+", requirement)
        inner = re.match(r"tallystick\[([^\]]*)\]", requirement)
        if inner:
            for other in inner[1].split(","):
                found |= _resolved(other, extras)
        elif distribution:
            found.add(distribution[0])
    return found


def test_the_table_has_every_extra_of_the_package() -> None:
    assert set(EXTRAS) == set(_declared()) - {"all"}


@pytest.mark.parametrize("name", EXTRAS)
def test_a_row_names_a_module_for_each_library_of_its_extra(name: str) -> None:
    modules = set(EXTRAS[name].modules) - _BROUGHT_ALONG
    assert {_DISTRIBUTIONS[module] for module in modules} == _resolved(name, _declared())


def test_everything_is_all_with_the_extras_that_all_leaves_out() -> None:
    extras = _declared()
    every = {one for name in EXTRAS for one in _resolved(name, extras)}
    assert set().union(*(_resolved(name, extras) for name in WHOLE)) == every


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("redis", "redis"),
        ("pika", "rabbitmq"),
        ("pika.exceptions", "rabbitmq"),
        ("azure", "servicebus"),
        ("google", "events"),
        ("google.protobuf", "events"),
        ("jsonschema_rs", "schemas"),
        ("pyarrow", "capture"),
        ("pyspark.sql", "pipeline"),
        ("pamqp", "lab"),
    ],
)
def test_an_import_of_a_known_module_that_failed_names_its_extra(module: str, extra: str) -> None:
    found = explain_import(ModuleNotFoundError(name=module))
    assert found is not None
    assert found.extra == extra
    assert found.hint == f"pip install 'tallystick[{extra}]'"


@pytest.mark.parametrize("module", ["", "tallystick.cli.nothing", "google.cloud", "pikachu", "re"])
def test_any_other_module_is_no_extra(module: str) -> None:
    assert explain_import(ModuleNotFoundError(name=module)) is None


def test_a_guarded_import_says_which_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pika", None)
    with pytest.raises(MissingExtra) as caught, importing("lab"):
        import pika  # type: ignore[import-untyped]  # noqa: F401, PLC0415
    assert isinstance(caught.value, Unavailable)
    assert caught.value.message == (
        "this needs the extra `lab` (the Python module pika is not installed)"
    )
    assert caught.value.code == "missing_extra"
    assert exit_code(caught.value) == 2


def test_a_guarded_import_does_not_hide_a_fault_of_our_own() -> None:
    with pytest.raises(ModuleNotFoundError), importing("lab"):
        import_module("tallystick.no_such_module")


def test_an_extra_is_complete_or_its_first_missing_module_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "hdrh", None)
    assert missing_modules("lab") == ["hdrh"]
    with pytest.raises(MissingExtra, match="hdrh"):
        check_extra("lab")
    monkeypatch.delitem(sys.modules, "hdrh")
    check_extra("lab")


def test_the_install_page_has_a_row_for_each_extra_and_says_which_are_in_all() -> None:
    page = (ROOT / "docs" / "guides" / "install.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (yes|no)", page, re.MULTILINE)
    assert {name: used_for for name, used_for, _ in rows} == {
        name: extra.used_for for name, extra in EXTRAS.items()
    }
    extras = _declared()
    named = {one for text in extras["all"] for one in re.findall(r"\w+", text)} - {"tallystick"}
    assert {name for name, _, whether in rows if whether == "yes"} == named
