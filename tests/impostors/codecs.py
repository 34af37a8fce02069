"""Impostors of the codec that are more than one changed piece: other ways to write and read."""

from __future__ import annotations

import base64
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

from tallystick.core import canonical, envelope, scan, splice
from tallystick.core.errors import Rejected
from tests.impostors.patches import Patches
from tests.impostors.rows import row_mutants
from tests.impostors.tables import Mutant

__all__ = ["codec_mutants"]

WRITE = ("standard/bytes/**", "standard/make/**")
READ = ("standard/bytes/**", "standard/identity_verdict/**", "standard/cases/**")
SPLICE = (
    "standard/retry_bytes/**", "standard/dead_letter_bytes/**", "standard/redrive_bytes/**",
    "standard/poison_dlq/**",
)  # fmt: skip

Apply = Callable[[Patches], None]


def codec_mutants() -> Iterator[Mutant]:
    """Give every impostor of the codec that is no row."""
    for mutant in row_mutants():
        if mutant.name.startswith("canonical/") and "quick" not in mutant.name:
            yield Mutant(f"{mutant.name}/whole", mutant.globs, _exactly(mutant.apply))
    for name, change in _TEXTS.items():
        yield Mutant(f"strings/{name}", WRITE, _text(change))
        yield Mutant(f"strings/{name}/whole", WRITE, _exactly(_text(change)))
    for name, prepare in _PREPARED.items():
        yield Mutant(f"decode/{name}", READ, _before(prepare))
    for name in ("retry", "dead_letter", "redrive", "poison_record"):
        yield Mutant(f"splice/{name}-re-encodes", SPLICE, _reencoding(name))
    yield Mutant("splice/base64-with-newlines", SPLICE, lambda p: p.set(splice, "base64", _Mime))
    for limit in (999, 1001):
        apply = _constant("core.canonical:MAX_DEPTH", limit)
        yield Mutant(f"depth/{limit}", ("standard/bytes/depth/**",), apply)
    for version in (0, 2):
        apply = _constant("core.envelope:SCHEMA_VERSION", version)
        yield Mutant(f"version/{version}", (*READ, *WRITE), apply)


def _constant(path: str, value: Any) -> Apply:
    return lambda patches: patches.constant(path, value)


def _exactly(apply: Apply) -> Apply:
    """Switch the quick way off, then make the mistake: it is made on every message."""

    def both(patches: Patches) -> None:
        patches.function("core.canonical:canonical", canonical.canonical_exact)
        patches.function("core.canonical:canonical_message", canonical.canonical_message_exact)
        apply(patches)

    return both


def _text(change: Callable[[str], str]) -> Apply:
    """Write each string a little differently."""

    def apply(patches: Patches) -> None:
        right = canonical.string_text
        patches.function("core.canonical:string_text", lambda text: change(right(text)))

    return apply


def _escaping(*chars: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        for char in chars:
            text = text.replace(char, f"\\u{ord(char):04x}")
        return text

    return change


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode().replace("\\x", "\\u00")


_TEXTS: dict[str, Callable[[str], str]] = {
    "slash-escaped": lambda text: text.replace("/", "\\/"),
    "separators-escaped": _escaping("\u2028", "\u2029"),
    "line-separator-escaped": _escaping("\u2028"),
    "del-escaped": _escaping("\x7f"),
    "html-escaped": _escaping("<", ">", "&"),
    "latin-escaped": _ascii,
    "normalized": lambda text: unicodedata.normalize("NFC", text),
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
    "mark-removed": lambda text: text.replace("\ufeff", ""),
    "noncharacters-replaced": lambda text: text.replace("\uffff", "\ufffd"),
    "quotes-single": lambda text: f"'{text[1:-1]}'",
}


def _before(change: Callable[[bytes], bytes]) -> Apply:
    """Change every body before it is decoded."""

    def apply(patches: Patches) -> None:
        right = envelope.decode
        patches.function("core.envelope:decode", lambda body: right(change(body)))

    return apply


def _rebuilt(body: bytes, change: Callable[[Any], Any]) -> bytes:
    """Change the value of a body that is good JSON; leave any other body alone."""
    try:
        scan.scan(body)
    except Rejected:
        return body
    return canonical.canonical_exact(change(scan.load(body)))


def _lower(value: Any) -> Any:
    if isinstance(value, dict):
        return {name.lower(): _lower(inner) for name, inner in value.items()}
    return value


def _strip(body: bytes) -> bytes:
    return body.decode("utf-8", "surrogateescape").strip().encode("utf-8", "surrogateescape")


_PREPARED: dict[str, Callable[[bytes], bytes]] = {
    "mark-stripped": lambda body: body.removeprefix(b"\xef\xbb\xbf"),
    "space-stripped-by-unicode": _strip,
    "not-utf8-replaced": lambda body: body.decode("utf-8", "replace").encode(),
    "nul-stripped": lambda body: body.rstrip(b"\0"),
    "nan-as-null": lambda body: body.replace(b":NaN", b":null"),
    "single-quotes": lambda body: body if b'"' in body else body.replace(b"'", b'"'),
    "comments-removed": lambda body: body.replace(b"/* one */", b"").replace(b"/* */", b""),
    "comma-last-removed": lambda body: body.replace(b",}", b"}").replace(b",]", b"]"),
    "leading-zeros-removed": lambda body: body.replace(b":01", b":1"),
    "case-blind-names": lambda body: _rebuilt(body, _lower),
}


def _reencoding(name: str) -> Apply:
    """Write the body anew before it is spliced."""

    def apply(patches: Patches) -> None:
        right = getattr(splice, name)

        def again(body: bytes, *arguments: Any) -> bytes:
            return bytes(right(_rebuilt(body, lambda value: value), *arguments))

        patches.function(f"core.splice:{name}", again)

    return apply


class _Mime:
    """A base64 that breaks lines."""

    @staticmethod
    def b64encode(data: bytes) -> bytes:
        """Encode as MIME does."""
        return base64.encodebytes(data)
