"""What is Kafka's own: commits in order, tiers from the URL, the way back."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from hypothesis import given
from hypothesis import strategies as st

from tallystick.brokers.kafka.progress import Partition
from tallystick.core.errors import UsageError
from tallystick.core.frame import Frame
from tallystick.runtime.address import link_to


@given(st.permutations(range(20)), st.integers(0, 20))
def test_an_offset_is_committed_only_when_all_before_it_are_done(
    order: list[int], finished: int
) -> None:
    partition = Partition()
    for offset in range(20):
        partition.hand_out(offset)
    for offset in order[:finished]:
        partition.finish(offset)
    done = set(order[:finished])
    expected = next((offset for offset in range(20) if offset not in done), 20)
    assert partition.position() == expected


def test_a_rewind_begins_at_the_first_that_is_not_done_and_ends_what_is_out() -> None:
    partition = Partition()
    for offset in range(5):
        partition.hand_out(offset)
    partition.finish(0)
    partition.finish(3)
    before = partition.epoch
    assert partition.rewind() == 1
    assert (partition.epoch, partition.out, partition.position()) == (before + 1, set(), 1)


def test_a_log_that_begins_anew_is_not_committed_to_where_the_old_one_ended() -> None:
    partition = Partition()
    for offset in range(10):
        partition.hand_out(offset)
    partition.finish(*range(10))
    partition.hand_out(0)
    partition.finish(0)
    assert partition.position() == 1


@pytest.mark.parametrize("tiers", ["x", "0", "-5", "5,x"])
def test_tiers_that_are_no_milliseconds_are_refused(tiers: str) -> None:
    with pytest.raises(UsageError):
        link_to(f"kafka://127.0.0.1?tiers={tiers}")


def test_no_tiers_can_be_asked_for() -> None:
    link = link_to("kafka://127.0.0.1?tiers=")
    assert link.open().capabilities.options == {"tiers_ms": ()}
    assert not link.open().capabilities.delays


@pytest.mark.xdist_group("brokers")
def test_a_consumer_without_room_lets_another_into_the_group_and_skips_nothing(
    broker_url: Callable[[str], str],
) -> None:
    topic, end = f"busy-{uuid4().hex}", monotonic() + 60
    open_transport = link_to(f"{broker_url('kafka')}?group={topic}&partitions=2&reinject=0").open
    busy, other = open_transport(), open_transport()
    try:
        busy.ensure([topic])
        keys = [b"%d" % n for n in range(50)]
        busy.send(topic, [Frame(key, {"record": {"key": key}}) for key in keys])
        first: list[bytes] = []
        while len(first) < 2 and monotonic() < end:
            assert busy.receive(topic, 0, 0) == []
            taken = busy.receive(topic, 1, 1.0)
            busy.ack(taken)
            first += [one.frame.body for one in taken]
        seen: list[bytes] = []
        while not seen and monotonic() < end:
            assert busy.receive(topic, 0, 0) == []
            seen += [one.frame.body for one in other.receive(topic, 100, 0.1)]
        assert seen
        while len({*first, *seen}) < len(keys) and monotonic() < end:
            for one in (busy, other):
                seen += [taken.frame.body for taken in one.receive(topic, 100, 0.1)]
        assert sorted({*first, *seen}) == sorted(keys)
        assert not {*first} & {*seen}
    finally:
        busy.close()
        other.close()


@pytest.mark.xdist_group("brokers")
def test_a_broker_of_ours_deletes_no_record_because_its_message_is_old(
    broker_url: Callable[[str], str],
) -> None:
    url, topic = broker_url("kafka"), f"old-{uuid4().hex}"
    transport = link_to(url).open()
    transport.ensure([topic])
    transport.close()
    admin = AdminClient({"bootstrap.servers": url.partition("://")[2]})
    asked = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)])
    (found,) = [future.result(60) for future in asked.values()]
    assert found["retention.ms"].value == "-1"
