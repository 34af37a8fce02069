"""How a delivery ends: turned away, exhausted, poison. Every combination, on every broker."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.brokers import BROKERS, find_binding
from tallystick.core.errors import UsageError
from tallystick.core.settle import (
    EXHAUSTED,
    GATED,
    KINDS,
    MAX_ATTEMPTS,
    STRATEGIES,
    Settlement,
    exhaust,
    settle_gated,
    settle_poison,
)

RULES = {broker: row.binding.settle for broker, row in BROKERS.items()}
RULES["redis/laravel"] = find_binding("redis", "laravel").settle
GATE = {"sqs": "native", "servicebus": "native", "pulsar": "ack", "artemis": "ack", "kafka": "ack"}
ON_OFF = (True, False)
brokers = pytest.mark.parametrize("broker", RULES)
gate_brokers = pytest.mark.parametrize("broker", GATE)
strategies = st.sampled_from([None, *STRATEGIES])


def test_the_tables_are_complete() -> None:
    assert set(GATED) == set(product(STRATEGIES, ON_OFF))
    assert set(EXHAUSTED) == set(product(KINDS, STRATEGIES, ON_OFF))


@gate_brokers
def test_a_gated_message_that_may_be_deleted_is_acknowledged(broker: str) -> None:
    for on, write in product(ON_OFF, ("ok", "fails")):
        assert settle_gated(RULES[broker], "delete", on, dlq_write=write) == "ack"


@gate_brokers
@pytest.mark.parametrize("strategy", [None, "fail", "release"])
def test_a_gated_message_is_written_as_it_came_or_left(broker: str, strategy: str | None) -> None:
    rule = RULES[broker]
    assert settle_gated(rule, strategy, dead_letter=True) == "dlq_raw"
    assert settle_gated(rule, strategy, dead_letter=True, dlq_write="fails") == "unsettled"
    for writer, write in product(ON_OFF, ("ok", "fails")):
        settled = settle_gated(rule, strategy, dead_letter=False, writer=writer, dlq_write=write)
        assert settled == GATE[broker]


@gate_brokers
@pytest.mark.parametrize("on", ON_OFF)
def test_the_dead_letter_strategy_writes_where_it_can(broker: str, on: bool) -> None:
    rule = RULES[broker]
    assert settle_gated(rule, "dead_letter", on) == "dlq_raw"
    assert settle_gated(rule, "dead_letter", on, dlq_write="fails") == "unsettled"
    without = settle_gated(rule, "dead_letter", on, writer=False)
    assert without == ("dlq_raw" if on else GATE[broker])


@pytest.mark.parametrize("broker", sorted(set(RULES) - set(GATE)))
def test_a_broker_without_a_gate_has_nothing_to_settle(broker: str) -> None:
    with pytest.raises(UsageError) as caught:
        settle_gated(RULES[broker], "fail", dead_letter=True)
    assert caught.value.code == "no_gate"


@brokers
@given(strategies, st.booleans(), st.integers(0, 20), st.integers(1, 9))
def test_a_handler_that_failed_is_retried_below_the_maximum(
    broker: str, strategy: str | None, dead_letter: bool, attempts: int, maximum: int
) -> None:
    settled = exhaust(
        RULES[broker],
        "failed",
        attempts,
        strategy=strategy,
        dead_letter=dead_letter,
        max_attempts=maximum,
    )
    counted = attempts + 1
    if counted < maximum:
        assert settled == Settlement("retry", counted)
    elif dead_letter:
        assert settled == Settlement("dlq", counted, "failed")
    else:
        assert settled == Settlement("drop", counted)


def test_three_deliveries_is_the_default() -> None:
    rule = RULES["redis"]
    assert MAX_ATTEMPTS == 3
    assert [exhaust(rule, "failed", n).outcome for n in range(4)] == [
        "retry",
        "retry",
        "drop",
        "drop",
    ]


@brokers
@pytest.mark.parametrize("on", ON_OFF)
def test_an_unknown_urn_follows_its_strategy(broker: str, on: bool) -> None:
    rule = RULES[broker]
    last = Settlement("dlq", 3, "unknown_urn") if on else Settlement("drop", 3)
    assert exhaust(rule, "unknown_urn", 2, strategy="fail", dead_letter=on) == last
    assert exhaust(rule, "unknown_urn", 1, dead_letter=on) == Settlement("retry", 2)
    deleted = exhaust(rule, "unknown_urn", 0, strategy="delete", dead_letter=on)
    assert deleted == Settlement("drop", 1)
    direct = exhaust(rule, "unknown_urn", 0, strategy="dead_letter", dead_letter=on)
    assert direct == Settlement("dlq", 1, "unknown_urn")
    released = exhaust(rule, "unknown_urn", 5, strategy="release", dead_letter=on)
    assert released == Settlement("release", 5)


@brokers
def test_without_a_writer_the_dead_letter_strategy_drops(broker: str) -> None:
    rule = RULES[broker]
    for kind in ("unknown_urn", "poison"):
        kept = exhaust(rule, kind, 0, strategy="dead_letter", dead_letter=True, writer=False)
        assert kept.outcome == "dlq"
        lost = exhaust(rule, kind, 0, strategy="dead_letter", dead_letter=False, writer=False)
        assert lost == Settlement("drop", 1)


@brokers
@pytest.mark.parametrize("strategy", [None, "fail", "release", "dead_letter"])
def test_poison_is_dead_lettered_at_once_and_never_retried(
    broker: str, strategy: str | None
) -> None:
    settled = settle_poison(RULES[broker], 0, strategy=strategy, dead_letter=True)
    assert settled == Settlement("dlq", 1, "poison")
    failed = settle_poison(RULES[broker], 0, strategy=strategy, dead_letter=True, dlq_write="fails")
    assert failed == Settlement("unsettled", 1)


@pytest.mark.parametrize(
    ("broker", "outcomes"),
    [
        ("memory", ["retry", "retry", "drop"]),
        ("rabbitmq", ["retry", "retry", "drop"]),
        ("pulsar", ["retry", "retry", "drop"]),
        ("artemis", ["retry", "retry", "drop"]),
        ("kafka", ["retry", "retry", "drop"]),
        ("sqs", ["native", "native", "native"]),
        ("servicebus", ["native", "native", "native"]),
        ("redis", ["dlq", "dlq", "dlq"]),
        ("redis/laravel", ["dlq", "dlq", "dlq"]),
    ],
)
@pytest.mark.parametrize("strategy", [None, "fail", "release"])
def test_poison_with_dead_lettering_off_ends_as_the_broker_can(
    broker: str, outcomes: list[str], strategy: str | None
) -> None:
    found = [settle_poison(RULES[broker], n, strategy=strategy).outcome for n in range(3)]
    assert found == outcomes


def test_kafka_without_tiers_drops_poison() -> None:
    assert settle_poison(RULES["kafka"], 0, tiers=False) == Settlement("drop", 1)
    assert settle_poison(RULES["pulsar"], 0, tiers=False) == Settlement("retry", 1)


@brokers
@pytest.mark.parametrize("on", ON_OFF)
def test_poison_that_may_be_deleted_is_dropped_but_on_redis(broker: str, on: bool) -> None:
    settled = settle_poison(RULES[broker], 0, strategy="delete", dead_letter=on)
    expected = "dlq" if broker.startswith("redis") else "drop"
    assert settled.outcome == expected


@brokers
def test_every_outcome_of_a_broker_has_a_native_verb(broker: str) -> None:
    verbs = RULES[broker].verbs
    assert {"ack", "retry", "unsettled"} <= set(verbs)
    assert ("native" in verbs) == ("native" in (RULES[broker].gated_off, RULES[broker].poison_off))


@pytest.mark.parametrize("maximum", [0, -1])
def test_a_maximum_below_one_is_a_usage_error(maximum: int) -> None:
    with pytest.raises(UsageError):
        exhaust(RULES["kafka"], "failed", 0, max_attempts=maximum)


def test_what_is_not_in_the_tables_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        exhaust(RULES["kafka"], "tired", 0)
    with pytest.raises(UsageError):
        exhaust(RULES["kafka"], "failed", 0, strategy="retry")
    with pytest.raises(UsageError):
        settle_gated(RULES["kafka"], "retry", dead_letter=True)
    with pytest.raises(UsageError):
        settle_gated(RULES["kafka"], "fail", dead_letter=True, dlq_write="maybe")
    with pytest.raises(UsageError):
        settle_poison(RULES["kafka"], 0, dead_letter=True, dlq_write="maybe")
