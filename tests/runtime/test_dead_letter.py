"""Where a message that is given up goes, and where it says that it came from."""

from __future__ import annotations

from tallystick.brokers import BROKERS
from tallystick.runtime.dead_letter import dead_letter_queue, original_queue

REDIS, SQS, KAFKA = (BROKERS[name].binding for name in ("redis", "sqs", "kafka"))


def test_the_configured_queue_wins_over_the_suffix() -> None:
    assert dead_letter_queue(REDIS, "orders") == "orders.dlq"
    assert dead_letter_queue(REDIS, "orders", suffix="-dead") == "orders-dead"
    assert dead_letter_queue(REDIS, "orders", explicit="graveyard", suffix="-x") == "graveyard"
    assert dead_letter_queue(SQS, "orders.fifo") == "orders-dlq.fifo"


def test_the_original_queue_is_that_of_the_message_else_the_consumed_one() -> None:
    assert original_queue(REDIS, "orders", "consumed", {}) == "orders"
    assert original_queue(REDIS, None, "consumed", {}) == "consumed"
    assert original_queue(REDIS, "", "consumed", {}) == "consumed"


def test_kafka_says_the_original_topic_in_a_header() -> None:
    held = {"headers": {"bq-original-topic": b"orders"}}
    assert original_queue(KAFKA, "logical", "orders.retry.1", held) == "orders"
    assert original_queue(KAFKA, "logical", "orders", {}) == "orders"
    assert original_queue(KAFKA, "logical", "orders", {"headers": {"bq-original-topic": None}}) == (
        "orders"
    )
    assert original_queue(REDIS, "logical", "orders", held) == "logical"
