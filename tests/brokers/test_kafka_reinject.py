"""A parked record goes back as it was, without the two headers that parked it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.brokers import BROKERS
from tallystick.brokers.kafka.reinject import PARKED_HEADERS, return_topic, returned_headers
from tallystick.core.binding import delay_fields, retry_fields
from tallystick.core.errors import Rejected

KAFKA = BROKERS["kafka"].binding


@given(st.dictionaries(st.text(), st.none() | st.binary()))
def test_every_other_header_stays_in_its_order(headers: dict[str, Any]) -> None:
    others = {key: value for key, value in headers.items() if key not in PARKED_HEADERS}
    parked = {"bq-delay": b"5000", **others, "bq-original-topic": b"orders"}
    assert list(returned_headers(parked).items()) == list(others.items())


def test_a_parked_record_knows_its_way_back() -> None:
    options = {"queue": "orders.v2", "tiers_ms": [5000]}
    for sections in (delay_fields(KAFKA, 1, **options), retry_fields(KAFKA, 0, **options)):
        headers = sections["headers"]
        assert return_topic(headers) == "orders.v2"
        assert not set(returned_headers(headers)) & set(PARKED_HEADERS)


def test_a_retry_keeps_its_count_on_the_way_back() -> None:
    headers = retry_fields(KAFKA, 3, queue="orders", tiers_ms=[5000])["headers"]
    assert returned_headers(headers) == {"bq-attempts": b"4"}


@pytest.mark.parametrize(
    "headers", [{}, {"bq-original-topic": None}, {"bq-original-topic": b""}, {"bq-delay": b"1"}]
)
def test_a_record_that_does_not_say_where_it_belongs_is_rejected(headers: dict[str, Any]) -> None:
    with pytest.raises(Rejected) as caught:
        return_topic(headers)
    assert caught.value.code == "no_original_topic"
