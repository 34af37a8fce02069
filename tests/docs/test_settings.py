"""The runtime guide lists every setting with its default, and every option of `publish`."""

from __future__ import annotations

import re
from inspect import signature
from typing import Any, Final

import pytest

from tallystick import App
from tallystick.core.delay import DEFAULT_RETRY_TIERS_MS
from tallystick.runtime.retry import Backoff
from tallystick.runtime.settings import Settings
from tests.docs.pages import ROOT

GUIDE: Final = (ROOT / "docs" / "guides" / "runtime.md").read_text()


def table(header: str) -> dict[str, Any]:
    """Read the table that has this header: the name and the default in each row."""
    rows = GUIDE.split(f"| {header} | default | meaning |\n|---|---|---|\n")[1].split("\n\n")[0]
    found = re.findall(r"^\| `(\w+)` \| `(.+?)` \|", rows, re.MULTILINE)
    assert len(found) == len(rows.splitlines())
    return {name: eval(default, {"Backoff": Backoff}) for name, default in found}


def test_the_guide_lists_every_setting_with_its_default() -> None:
    defaults = Settings()
    names = Settings.__dataclass_fields__
    assert table("setting") == {name: getattr(defaults, name) for name in names}


def test_the_guide_lists_every_option_of_publish_with_its_default() -> None:
    options = signature(App.publish).parameters.values()
    assert table("option of `publish`") == {
        option.name: option.default for option in options if option.kind is option.KEYWORD_ONLY
    }


def test_the_guide_names_every_argument_of_an_app() -> None:
    names = [name for name in signature(App).parameters if name not in ("url", "settings")]
    assert f"App(url, *, {', '.join(names)}, **settings)" in GUIDE


@pytest.mark.parametrize("seconds", DEFAULT_RETRY_TIERS_MS)
def test_the_guide_names_the_waits_of_kafka(seconds: int) -> None:
    shown = f"{seconds // 60_000} min" if seconds >= 60_000 else f"{seconds // 1000} s"
    (row,) = [line for line in GUIDE.splitlines() if line.startswith("| Kafka, without a key")]
    assert shown in row
