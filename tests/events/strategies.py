"""Valid events of every shape, for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tallystick.events.event import Event, make
from tallystick.events.extensions import Extensions, declare, extension
from tallystick.events.payload import ABSENT
from tallystick.events.timestamp import Timestamp
from tallystick.events.values import Uri, UriReference, kind_of

_TEXT = st.characters(
    exclude_categories=["Cc", "Cs"],
    exclude_characters=[
        *(chr(point) for point in range(0xFDD0, 0xFDF0)),
        *(chr(plane * 0x10000 + last) for plane in range(17) for last in (0xFFFE, 0xFFFF)),
    ],
)
strings = st.text(_TEXT, max_size=20)
filled = st.text(_TEXT, min_size=1, max_size=20)
uris = st.sampled_from(
    ["https://a.example/b?c=d", "urn:isbn:0451450523", "mailto:a@b.example", "http://[::1]:80/%20"]
)
references = st.one_of(
    uris, st.sampled_from(["#f", "/a/b;c=d", "//authority/path", "a?b#c", "./a:b", "https://x#y"])
)
timestamps = st.builds(
    Timestamp.of_nanoseconds, st.integers(-62_135_596_800 * 10**9, 253_402_300_799 * 10**9)
) | st.sampled_from(
    [
        Timestamp("2018-04-05t17:31:00.120z"),
        Timestamp("2018-04-05T17:31:00.123456789012-11:59"),
        Timestamp("2016-12-31T23:59:60Z"),
        Timestamp("2017-01-01T09:59:60+10:00"),
    ]
)
values: st.SearchStrategy[Any] = st.one_of(
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    strings,
    st.binary(max_size=20),
    uris.map(Uri),
    references.map(UriReference),
    timestamps,
)
names = st.from_regex(r"[a-z0-9]{1,20}", fullmatch=True).filter(
    lambda name: name
    not in {
        "data", "id", "source", "type", "specversion", "time", "subject", "dataschema",
        "datacontenttype",
    }
)  # fmt: skip
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**17, 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
texts = st.text(max_size=40)
xml_texts = st.text(
    st.characters(
        exclude_categories=["Cs"],
        exclude_characters=[
            *(chr(point) for point in range(32) if point not in (9, 10, 13)),
            "\ufffe",
            "\uffff",
        ],
    ),
    max_size=40,
)
json_types = st.sampled_from(
    ["application/json", "text/json", "application/vnd.a+json; charset=utf-8", "APPLICATION/JSON"]
)
text_types = st.sampled_from(
    ["text/plain", 'text/plain; charset="utf-8"', "application/xml", "image/png", "text/csv;x=y"]
)


@st.composite
def events(draw: st.DrawFn, texts: st.SearchStrategy[str] = texts) -> Event:
    content_type, data = draw(
        st.one_of(
            st.tuples(st.none() | json_types | text_types, st.just(ABSENT)),
            st.tuples(st.none() | json_types | text_types, st.binary(max_size=40)),
            st.tuples(st.none() | json_types, json_values),
            st.tuples(text_types, texts),
        )
    )
    return make(
        id=draw(filled),
        source=draw(references),
        type=draw(filled),
        datacontenttype=content_type,
        dataschema=draw(st.none() | uris),
        subject=draw(st.none() | filled),
        time=draw(st.none() | timestamps),
        extensions=draw(st.dictionaries(names, values, max_size=4)),
        data=data,
    )


def declared(event: Event) -> Extensions:
    """Declare the extensions of an event with the types that they have."""
    return declare(*(extension(n, kind_of(v)) for n, v in event.extensions.items()))
