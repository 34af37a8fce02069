"""The frame of every page: one style, one content security policy, no network; it opens from disk.

A template has slots such as `<!--data-->`. The policy allows only the template's own script and
style, by their hash, so no text in a slot can become code.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Final

__all__ = ["fill"]

_SLOT: Final = re.compile(r"<!--([a-z]+)-->")


def fill(template: str, *styles: str, **slots: str) -> str:
    """Give the page of a template: the shared style and `styles`, the policy, and its slots."""
    sheets = "".join(_read(name) for name in ("style.css", *styles))
    page = _read(template).replace("<!--style-->", sheets)
    policy = (
        f"default-src 'none'; script-src {_hash(page, 'script')}; "
        f"style-src {_hash(page, 'style')}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    held = {**slots, "policy": meta}
    return _SLOT.sub(lambda found: held[found[1]], page)


def _read(name: str) -> str:
    return files("tallystick.report").joinpath(name).read_text("utf-8")


def _hash(page: str, tag: str) -> str:
    """Give the hash of the one element with this tag; a page without it allows none."""
    texts = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    if not texts:
        return "'none'"
    (text,) = texts
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
