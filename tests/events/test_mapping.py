"""Messages as events, events as messages: nothing is lost either way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.canonical import canonical_message
from tallystick.core.envelope import accepts, decode, encode
from tallystick.core.envelope import make as make_envelope
from tallystick.core.errors import Refused, Rejected
from tallystick.events.event import Event, make
from tallystick.events.golden import EVENTS
from tallystick.events.mapping import to_envelope, to_event
from tallystick.events.neutral import from_neutral, to_neutral
from tests.core.messages import names, payloads, scalars, values
from tests.events.strategies import events, filled

metas = st.fixed_dictionaries(
    {"id": filled},
    optional={
        "queue": st.none() | st.text(max_size=8),
        "lang": st.none() | st.text(max_size=8),
        "schema_version": st.none() | st.integers(-(2**63), 2**63 - 1),
        "created_at": st.none() | st.integers(-(2**63), 2**63 - 1),
        "ext": scalars
        | st.dictionaries(st.sampled_from(["cloudevents", "x"]), values, max_size=2)
        | st.fixed_dictionaries(
            {"cloudevents": st.fixed_dictionaries({"attributes": st.dictionaries(names, values)})}
        ),
    },
)
documents: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"job": filled.filter(lambda job: job.strip(" ") != ""), "meta": metas},
    optional={
        "trace_id": st.none() | st.text(max_size=8),
        "data": st.none() | payloads,
        "attempts": st.none() | st.integers(-(2**63), 2**63 - 1),
        "dead_letter": st.fixed_dictionaries({"reason": st.text(max_size=4), "x": values}),
        "extra": values,
    },
)


@given(documents)
def test_a_message_comes_back_from_its_event(document: dict[str, Any]) -> None:
    envelope = decode(canonical_message(document))
    assert encode(to_envelope(to_event(envelope))) == encode(envelope)


@given(events().filter(lambda event: event.type.strip(" ") != ""))
def test_an_event_comes_back_from_its_message(event: Event) -> None:
    assert to_event(to_envelope(event)) == event


@given(documents)
def test_a_message_survives_two_trips(document: dict[str, Any]) -> None:
    event = to_event(decode(canonical_message(document)))
    assert to_event(to_envelope(event)) == event


@given(events())
def test_the_neutral_form_shows_all_of_an_event(event: Event) -> None:
    assert from_neutral(to_neutral(event)) == event


def test_the_table_of_the_mapping_holds() -> None:
    envelope = make_envelope(
        "urn:babel:orders:created", {"order": 1}, now_ms=1_749_132_727_000,
        new_id=lambda: "7b9c", trace_id="trace", queue="orders/eu",
    )  # fmt: skip
    event = to_event(envelope)
    assert event == make(
        id="7b9c",
        source="/queues/orders%2Feu",
        type="urn:babel:orders:created",
        time="2025-06-05T14:12:07Z",
        datacontenttype="application/json",
        data={"order": 1},
        extensions={
            "traceid": "trace", "attempts": 0, "queue": "orders/eu", "lang": "python",
            "schemaversion": 1,
        },
    )  # fmt: skip


@pytest.mark.parametrize("name", EVENTS)
def test_a_golden_event_makes_a_message_that_is_accepted(name: str) -> None:
    envelope = to_envelope(EVENTS[name])
    assert accepts(envelope)
    assert to_event(envelope) == EVENTS[name]


def test_a_type_that_is_blank_is_no_urn() -> None:
    with pytest.raises(Refused) as refused:
        to_envelope(make(id="1", source="/s", type=" "))
    assert refused.value.pointer == "/type"


def test_the_order_of_members_does_not_matter() -> None:
    ours, theirs = (
        to_event(decode(f'{{"job":"a:b",{more},"meta":{{"id":"1"}}}}'.encode()))
        for more in ('"y":1,"x":{"b":1,"a":2}', '"x":{"a":2,"b":1},"y":1')
    )
    assert ours == theirs


def test_a_message_without_an_id_is_no_event() -> None:
    with pytest.raises(Refused) as refused:
        to_event(decode(b'{"job":"urn:a:b","meta":{}}'))
    assert refused.value.pointer == "/id"


@pytest.mark.parametrize(
    "neutral",
    [None, {}, {"id": "1"}, {"id": 1, "source": "/s", "type": "t", "specversion": "1.0"},
     {"id": "1", "source": "/s", "type": "t", "specversion": "1.0", "x": 1},
     {"id": "1", "source": "/s", "type": "t", "specversion": "1.0", "extensions": []},
     {"id": "1", "source": "/s", "type": "t", "specversion": "1.0", "extensions": {"x": 1}},
     {"id": "1", "source": "/s", "type": "t", "specversion": "1.0",
      "extensions": {"x": {"Integer": "1"}}},
     {"id": "1", "source": "/s", "type": "t", "specversion": "1.0", "data": "x"},
     {"id": "1", "source": "/s", "type": "t", "specversion": "1.0", "data": {"base64": "x"}}],
)  # fmt: skip
def test_what_is_no_neutral_event_is_rejected(neutral: Any) -> None:
    with pytest.raises(Rejected):
        from_neutral(neutral)
