"""The catalog page: one file without dependencies, and a strict content security policy.

The browser runs only the script and the style of this file (by their hash) and connects
only to this server, so text from a schema can never become code.
"""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from tallystick.server.answers import Answer

__all__ = ["load_page"]


@cache
def load_page() -> Answer:
    """Give the page with its headers."""
    page = files("tallystick.server").joinpath("page.html").read_bytes()
    policy = (
        f"default-src 'none'; script-src {_hash(page, b'script')}; "
        f"style-src {_hash(page, b'style')}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {"content-security-policy": policy, "referrer-policy": "no-referrer"}
    return Answer(200, page, "text/html; charset=utf-8", headers)


def _hash(page: bytes, tag: bytes) -> str:
    held = re.findall(b"<%b>(.*?)</%b>" % (tag, tag), page, re.DOTALL)
    return " ".join(f"'sha256-{b64encode(sha256(one).digest()).decode()}'" for one in held)
