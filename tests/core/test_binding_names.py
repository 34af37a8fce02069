"""What brokers call the keys, topics and queues of one logical queue."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.brokers import BROKERS, find_binding
from tallystick.core.errors import UsageError
from tallystick.core.names import is_fifo, name, names

TABLE = {broker: row.binding.names for broker, row in BROKERS.items()}
LARAVEL = find_binding("redis", "laravel").names
DOTTED = [broker for broker in TABLE if broker != "sqs"]
queues = st.text(min_size=1, max_size=30).filter(lambda text: not text.endswith(".fifo"))


@pytest.mark.parametrize("broker", DOTTED)
@given(queues)
def test_the_dead_letter_queue_ends_in_dlq(broker: str, queue: str) -> None:
    assert name(TABLE[broker], "work", queue) == queue
    assert name(TABLE[broker], "dead_letter", queue) == f"{queue}.dlq"
    assert name(TABLE[broker], "dead_letter", queue, suffix="-x") == f"{queue}-x"


@given(queues)
def test_sqs_knows_no_dot_in_a_suffix(queue: str) -> None:
    assert name(TABLE["sqs"], "dead_letter", queue) == f"{queue}-dlq"
    assert name(TABLE["sqs"], "dead_letter", queue, suffix="-x") == f"{queue}-x"


@given(queues, st.sampled_from([None, "-x", "-x.fifo"]))
def test_on_an_ordered_queue_the_suffix_stands_before_fifo(queue: str, suffix: str | None) -> None:
    expected = f"{queue}-dlq.fifo" if suffix is None else f"{queue}-x.fifo"
    assert name(TABLE["sqs"], "dead_letter", f"{queue}.fifo", suffix=suffix) == expected
    assert name(TABLE["sqs"], "dead_letter", queue, suffix=suffix, fifo=True) == expected


@given(queues)
def test_an_ordered_queue_is_called_fifo_once(queue: str) -> None:
    assert name(TABLE["sqs"], "work", queue, fifo=True) == f"{queue}.fifo"
    assert name(TABLE["sqs"], "work", f"{queue}.fifo") == f"{queue}.fifo"
    assert name(TABLE["sqs"], "work", f"{queue}.fifo", fifo=True) == f"{queue}.fifo"


def test_only_sqs_has_ordered_queues_by_name() -> None:
    ordered = [broker for broker, table in TABLE.items() if is_fifo(table, "q.fifo")]
    assert ordered == ["sqs"]
    assert not is_fifo(TABLE["kafka"], "q", fifo=True)
    assert not is_fifo(TABLE["sqs"], "q.fifo", fifo=False)
    assert not is_fifo(TABLE["sqs"], "q")


@pytest.mark.parametrize("queue", ["orders", "emails.high", "Billing_Retry-1"])
def test_the_keys_of_both_redis_layouts(queue: str) -> None:
    assert names(TABLE["redis"], queue) == {
        "work": queue,
        "processing": f"{queue}:processing",
        "deadlines": f"{queue}:processing:deadlines",
        "dead_letter": f"{queue}.dlq",
    }
    assert names(LARAVEL, queue) == {
        "work": f"queues:{queue}",
        "delayed": f"queues:{queue}:delayed",
        "reserved": f"queues:{queue}:reserved",
        "notify": f"queues:{queue}:notify",
        "dead_letter": f"queues:{queue}.dlq",
    }
    assert names(LARAVEL, queue, prefix="app:")["delayed"] == f"app:{queue}:delayed"


def test_the_names_of_the_other_brokers() -> None:
    plain = {"work": "orders", "dead_letter": "orders.dlq"}
    assert names(TABLE["memory"], "orders") == plain
    assert names(TABLE["rabbitmq"], "orders") == plain
    assert names(TABLE["artemis"], "orders") == plain
    assert names(TABLE["sqs"], "orders") == {"work": "orders", "dead_letter": "orders-dlq"}
    assert names(TABLE["servicebus"], "orders") == {
        **plain,
        "native_dead_letter": "orders/$DeadLetterQueue",
    }
    assert names(TABLE["pulsar"], "orders") == {
        **plain,
        "topic": "persistent://public/default/orders",
        "subscription": "babelqueue",
    }
    assert names(TABLE["kafka"], "orders", tiers=2) == {
        **plain,
        "retry": ["orders.retry.1", "orders.retry.2"],
        "group": "babelqueue",
        "reinject_group": "babelqueue-retry-reinject",
    }


@given(queues, st.integers(1, 99))
def test_a_retry_topic_is_counted_from_one(topic: str, n: int) -> None:
    assert name(TABLE["kafka"], "retry", topic, n=n) == f"{topic}.retry.{n}"


@pytest.mark.parametrize("n", [0, -1])
def test_there_is_no_tier_before_the_first(n: int) -> None:
    with pytest.raises(UsageError) as caught:
        name(TABLE["kafka"], "retry", "orders", n=n)
    assert caught.value.code == "tier"


def test_an_unknown_role_names_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        name(TABLE["sqs"], "retry", "orders")
    assert "dead_letter" in caught.value.hint


def test_braces_in_a_queue_are_only_characters() -> None:
    assert name(TABLE["kafka"], "dead_letter", "{n}{x}") == "{n}{x}.dlq"
