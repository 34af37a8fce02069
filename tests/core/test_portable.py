from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tallystick.core.portable import LIBRARIES, find_alterations

NUMBERS = [
    "1.0",
    "99.90",
    "1e21",
    "1E2",
    "1e-7",
    "0.000001",
    "1e16",
    "-0.0",
    "123456789.5",
    "5e-324",
]


def becomes(body: bytes, language: str) -> dict[str, str]:
    return {a.pointer: a.becomes for a in find_alterations(body) if a.language == language}


@pytest.mark.parametrize(
    ("text", "language", "pointer", "written"),
    [
        ('{"a":9007199254740993}', "javascript", "/a", "9007199254740992"),
        ('{"a":9007199254740993}', "go", "/a", "9007199254740992"),
        ('{"a":1.0}', "go", "/a", "1"),
        ('{"a":-0}', "java", "/a", "0"),
        ('{"a":1e21}', "java", "/a", "1.0E21"),
        ('{"a":1e15}', "dotnet", "/a", "1E+15"),
        ('{"a":1e400}', "javascript", "/a", "null"),
        ('{"a":{}}', "php", "/a", "[]"),
        ('{"a":"a/b"}', "php", "/a", '"a\\/b"'),
        ('{"a":"<"}', "go", "/a", '"\\u003c"'),
        ('{"a":"\u2028"}', "go", "/a", '"\\u2028"'),
        ('{"b":1,"a":2}', "go", "", "a, b"),
        ('{"b":1,"10":2,"2":3}', "javascript", "", "2, 10, b"),
        ('{"a":1,"a":2}', "java", "", "the last one"),
    ],
)
def test_what_a_library_alters_is_named(
    text: str, language: str, pointer: str, written: str
) -> None:
    assert becomes(text.encode(), language)[pointer] == written


def test_go_keeps_the_sign_of_zero() -> None:
    assert "/a" not in becomes(b'{"a":-0}', "go")


def test_a_portable_message_has_no_alterations() -> None:
    assert not list(find_alterations(b'{"a":"text","b":[1,0.5,true,null],"c":{"x":1}}'))


def test_node_alters_exactly_what_the_table_says() -> None:
    assert shutil.which("node"), "node is missing: install Node.js 20 or newer"
    body = ('{"n":[' + ",".join(NUMBERS) + "]}").encode()
    script = "console.log(JSON.stringify(JSON.parse(require('fs').readFileSync(0))))"
    done = subprocess.run(
        ["node", "-e", script], input=body, capture_output=True, check=True, timeout=60
    )
    table = becomes(body, "javascript")
    ours = [table.get(f"/n/{index}", literal) for index, literal in enumerate(NUMBERS)]
    assert done.stdout.decode().strip() == '{"n":[' + ",".join(ours) + "]}"


def test_python_reads_every_written_number_as_the_same_number() -> None:
    for literal in NUMBERS:
        for library in LIBRARIES:
            body = ('{"a":' + literal + "}").encode()
            written = becomes(body, library.language).get("/a", literal)
            assert float(json.loads(written)) == float(literal)
