"""How each broker waits: nothing is capped silently, and Kafka's two rules stay two."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.brokers import BROKERS, find_binding
from tallystick.core.binding import delay_fields, retry_fields
from tallystick.core.delay import (
    DEFAULT_RETRY_TIERS_MS,
    LONGEST,
    Tier,
    due_at,
    milliseconds,
    requested_tier,
    retry_tier,
    score,
    visibility,
)
from tallystick.core.errors import Refused, UsageError
from tallystick.core.slot import Long, native_type

TABLE = {name: row.binding for name, row in BROKERS.items()}
SQS, KAFKA = TABLE["sqs"], TABLE["kafka"]
LARAVEL = find_binding("redis", "laravel")
tiers = st.lists(st.integers(1, 10**7), min_size=1, max_size=6, unique=True).map(sorted)


def refusal(name: str, delay: float, **options: Any) -> str:
    with pytest.raises(Refused) as caught:
        delay_fields(TABLE[name], delay, **options)
    return caught.value.code


@given(st.integers(1, 900))
def test_sqs_carries_whole_seconds_up_to_its_cap(seconds: int) -> None:
    assert delay_fields(SQS, seconds) == {"parameters": {"DelaySeconds": seconds}}


@given(st.floats(min_value=0.001, max_value=899.9))
def test_sqs_never_delivers_early(seconds: float) -> None:
    sent = delay_fields(SQS, seconds)["parameters"]["DelaySeconds"]
    assert type(sent) is int
    assert seconds <= sent < seconds + 1


@given(st.one_of(st.integers(901), st.floats(900.001, 1e300), st.integers(max_value=0)))
def test_sqs_refuses_what_it_cannot_keep(seconds: float) -> None:
    assert refusal("sqs", seconds) == "delay_range"


@given(st.floats(0.001, 900))
def test_sqs_refuses_any_delay_on_fifo(seconds: float) -> None:
    assert refusal("sqs", seconds, fifo=True) == "delay_on_fifo"
    assert refusal("sqs", seconds, queue="orders.fifo") == "delay_on_fifo"


@pytest.mark.parametrize("name", ["memory", "servicebus", "pulsar", "artemis", "sqs", "kafka"])
@pytest.mark.parametrize("delay", [0, -1, nan, inf, -inf, LONGEST + 1])
def test_a_delay_is_a_positive_number_everywhere(name: str, delay: float) -> None:
    assert refusal(name, delay, now=1.0, tiers_ms=[5000]) == "delay_range"


def test_the_longest_delay_is_kept() -> None:
    assert delay_fields(TABLE["pulsar"], LONGEST)["message"]["deliver_after"] == LONGEST * 1000


def test_brokers_that_cannot_wait_say_so() -> None:
    assert refusal("redis", 1) == "delay_unsupported"
    assert refusal("rabbitmq", 1) == "delay_unsupported"


def test_rabbitmq_waits_behind_a_delayed_exchange_only() -> None:
    fields = delay_fields(TABLE["rabbitmq"], 1.5, delayed_exchange=True)
    assert fields == {"headers": {"x-delay": 1500}}
    assert delay_fields(TABLE["rabbitmq"], 4294967, delayed_exchange=True)
    assert refusal("rabbitmq", 4294968, delayed_exchange=True) == "delay_range"


def test_service_bus_schedules_and_says_so() -> None:
    fields = delay_fields(TABLE["servicebus"], 2.5, now=1700000000.123)
    assert fields == {
        "message": {"scheduled_enqueue_time": 1700000002623},
        "application_properties": {"bq-delay": 2500},
    }
    assert type(fields["message"]["scheduled_enqueue_time"]) is Long
    assert type(fields["application_properties"]["bq-delay"]) is Long


def test_pulsar_delivers_after_and_says_so() -> None:
    assert delay_fields(TABLE["pulsar"], 2.5) == {
        "message": {"deliver_after": 2500},
        "properties": {"bq-delay": "2500"},
    }


def test_artemis_delivers_at_a_time_and_says_so() -> None:
    assert delay_fields(TABLE["artemis"], 2.5, now=10.0) == {
        "annotations": {"x-opt-delivery-time": 12500},
        "application_properties": {"bq_delay": "2500"},
    }


def test_memory_delivers_at_a_time() -> None:
    assert delay_fields(TABLE["memory"], 2.5, now=10.0) == {"message": {"due": 12500}}


def test_the_fields_of_a_delay_have_the_types_of_the_broker() -> None:
    bindings = [*TABLE.values(), LARAVEL]
    types = {
        (binding.name, key): native_type(value)
        for binding in bindings
        if binding.delay
        for held in delay_fields(
            binding, 5, now=1.0, tiers_ms=[5000], delayed_exchange=True
        ).values()
        for key, value in held.items()
    }
    assert types == {
        ("memory", "due"): "long",
        ("redis", "score"): "integer",
        ("rabbitmq", "x-delay"): "integer",
        ("sqs", "DelaySeconds"): "integer",
        ("servicebus", "scheduled_enqueue_time"): "long",
        ("servicebus", "bq-delay"): "long",
        ("pulsar", "deliver_after"): "long",
        ("pulsar", "bq-delay"): "text",
        ("kafka", "topic"): "text",
        ("kafka", "bq-delay"): "bytes",
        ("kafka", "bq-original-topic"): "bytes",
        ("artemis", "x-opt-delivery-time"): "long",
        ("artemis", "bq_delay"): "text",
    }


@pytest.mark.parametrize("binding", [LARAVEL, TABLE["servicebus"], TABLE["artemis"]])
def test_a_delay_until_a_time_needs_the_time(binding: Any) -> None:
    with pytest.raises(UsageError) as caught:
        delay_fields(binding, 5)
    assert caught.value.code == "now"


@pytest.mark.parametrize(
    ("now", "delay", "expected"),
    [
        (1000.7, 1.5, 1002),
        (1000.2, 0.1, 1001),
        (1000.9, 2, 1002),
        (1000.5, 3.0, 1003),
        (1000.0, 2.001, 1003),
        (1000.0, 3600, 4600),
    ],
)
def test_a_redis_score_floors_now_and_ceils_the_delay(
    now: float, delay: float, expected: int
) -> None:
    assert score(now, delay) == expected
    assert delay_fields(LARAVEL, delay, now=now) == {"delayed": {"score": expected}}


@given(st.floats(0, 4e9), st.floats(0.001, 1e6))
def test_a_redis_score_is_whole_and_at_most_a_second_from_the_time(
    now: float, delay: float
) -> None:
    found = score(now, delay)
    assert type(found) is int
    assert now + delay - 1 <= found + 1e-6
    assert found <= now + delay + 1 + 1e-6


@given(st.integers(0, 10**11))
def test_milliseconds_survive_the_way_through_seconds(count: int) -> None:
    assert milliseconds(count / 1000) == count


@pytest.mark.parametrize(("seconds", "count"), [(1.1, 1100), (0.0001, 1), (2, 2000), (0.0015, 2)])
def test_milliseconds_round_up(seconds: float, count: int) -> None:
    assert milliseconds(seconds) == count


def test_the_shortest_delay_is_one_millisecond() -> None:
    assert delay_fields(TABLE["pulsar"], 1e-9)["message"] == {"deliver_after": 1}


@pytest.mark.parametrize(
    ("delay", "expected"),
    [(0, 0), (30, 30), (43200, 43200), (43201, 43200), (1.9, 1), (-5, 0), (nan, 0), (inf, 43200)],
)
def test_a_release_clamps_and_cuts_the_visibility(delay: float, expected: int) -> None:
    found = visibility(SQS.visibility, delay)
    assert (found, type(found)) == (expected, int)


def test_only_sqs_has_a_visibility() -> None:
    assert [name for name, binding in TABLE.items() if binding.visibility] == ["sqs"]
    with pytest.raises(Refused):
        visibility(TABLE["kafka"].visibility, 1)


def test_the_recommended_tiers() -> None:
    assert DEFAULT_RETRY_TIERS_MS == (5000, 30000, 300000, 1800000)


@given(tiers, st.integers(1, 10**7))
def test_a_requested_delay_takes_the_smallest_tier_that_is_long_enough(
    tiers_ms: list[int], wanted: int
) -> None:
    if wanted > tiers_ms[-1]:
        with pytest.raises(Refused) as caught:
            requested_tier(tiers_ms, wanted)
        assert caught.value.code == "no_tier"
        return
    tier = requested_tier(tiers_ms, wanted)
    assert tier.milliseconds >= wanted
    assert tiers_ms[tier.n - 1] == tier.milliseconds
    assert all(each < wanted for each in tiers_ms[: tier.n - 1])


def test_tiers_out_of_order_keep_their_own_index() -> None:
    assert requested_tier([300, 100, 200], 150) == Tier(3, 200)


@given(tiers, st.integers(0, 50))
def test_a_retry_takes_the_tier_of_its_count_and_stays_on_the_last(
    tiers_ms: list[int], attempts: int
) -> None:
    tier = retry_tier(tiers_ms, attempts)
    assert tier.n == min(attempts, len(tiers_ms) - 1) + 1
    assert tier.milliseconds == tiers_ms[tier.n - 1]


def test_without_tiers_both_rules_refuse() -> None:
    assert refusal("kafka", 1) == "no_tier"
    with pytest.raises(Refused) as caught:
        retry_fields(KAFKA, 0)
    assert caught.value.code == "no_tier"


def test_the_two_kafka_rules_are_not_merged() -> None:
    options = {"queue": "orders", "tiers_ms": [5000, 30000]}
    assert delay_fields(KAFKA, 6, **options) == {
        "record": {"topic": "orders.retry.2"},
        "headers": {"bq-delay": b"6000", "bq-original-topic": b"orders"},
    }
    assert retry_fields(KAFKA, 0, **options) == {
        "record": {"topic": "orders.retry.1"},
        "headers": {
            "bq-attempts": b"1",
            "bq-delay": b"5000",
            "bq-original-topic": b"orders",
        },
    }
    assert retry_fields(KAFKA, 9, **options)["headers"]["bq-attempts"] == b"10"
    assert retry_fields(KAFKA, 9, **options)["record"] == {"topic": "orders.retry.2"}


@given(st.integers(0, 10**13), st.integers(1, 10**7), st.integers(0, 10**13))
def test_a_parked_record_waits_no_longer_than_its_tier_from_now(
    stamp: int, tier: int, now: int
) -> None:
    due = due_at(stamp, tier, now)
    assert now <= due <= now + tier
    if now - tier <= stamp <= now:
        assert due == stamp + tier


def test_a_parked_record_without_a_time_waits_a_whole_tier() -> None:
    assert due_at(None, 5000, 1000) == 6000
