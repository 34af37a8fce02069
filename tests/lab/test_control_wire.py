"""What goes over the wire in a run, seen by a listener on all control keys."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

import pika  # type: ignore[import-untyped]
import pika.data  # type: ignore[import-untyped]
import pytest

from tallystick.core.errors import Rejected
from tallystick.core.verdict import Outcome
from tallystick.lab.cases import DEFAULTS, SIZES, Settings, pair_groups
from tallystick.lab.control import read_control
from tallystick.lab.shell import Place
from tallystick.lab.vm_server import Vm
from tests.lab.company import PATIENCE, Book, Guest, client, company, run

NAMES = ("one", "two")


class Sniffer:
    """Everything that was published to `iop.#`, in order."""

    def __init__(self, place: Place) -> None:
        self.seen: list[tuple[str, Any, bytes]] = []
        self._place = place
        self._stop = Event()
        self._ready = Event()
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    def _listen(self) -> None:
        connection = pika.BlockingConnection(self._place.parameters())
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, "amq.topic", "iop.#")
        channel.basic_consume(queue, self._take, auto_ack=True)
        self._ready.set()
        while not self._stop.is_set():
            connection.process_data_events(0.05)
        connection.close()

    def _take(self, _channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self.seen.append((method.routing_key, properties, body))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)

    def of(self, kind: str) -> list[tuple[str, Any, bytes]]:
        return [one for one in self.seen if one[1].headers.get("CONTROL_TYPE") == kind]


@pytest.fixture(scope="module")
def wire(vm: Vm) -> tuple[Sniffer, Book, dict[str, Guest]]:
    """One run of all test cases between two clients, and all that was said."""
    place = Place(vm.host, vm.port)
    sniffer = Sniffer(place)
    with company(place, dict.fromkeys(NAMES, client.Client)) as guests:
        book = run(place, NAMES, cases=["TC[123]*", "TC[45]*/63K/*"])
        for guest in guests.values():
            guest.join()
    sniffer.stop()
    return sniffer, book, guests


def test_every_pair_also_with_itself_passes_every_case(
    wire: tuple[Sniffer, Book, dict[str, Guest]],
) -> None:
    """IOP-50, IOP-51, IOP-52, IOP-56, IOP-60."""
    _, book, _ = wire
    assert len(book.verdicts) == 5 * 4
    assert {one.outcome for one in book.verdicts} == {Outcome.PASSED}


def test_control_goes_over_the_topic_exchange_on_the_control_keys(
    wire: tuple[Sniffer, Book, dict[str, Guest]],
) -> None:
    """IOP-7, IOP-36: broadcasts on iop.control, the rest on iop.control.<name>."""
    sniffer, _, _ = wire
    keys = {
        kind: {key for key, _, _ in sniffer.of(kind)}
        for kind in ("INVITE", "TERMINATE", "ASSIGN_ROLE", "START", "STATUS_REQUEST")
    }
    assert keys["INVITE"] == keys["TERMINATE"] == {"iop.control"}
    private = {"iop.control.one", "iop.control.two"}
    assert keys["ASSIGN_ROLE"] == keys["START"] == keys["STATUS_REQUEST"] == private


def test_every_broadcast_has_an_address_for_replies(
    wire: tuple[Sniffer, Book, dict[str, Guest]],
) -> None:
    """IOP-48."""
    sniffer, _, _ = wire
    control = [one for one in sniffer.seen if one[0].startswith("iop.control")]
    assert control
    assert all(properties.reply_to for _, properties, _ in control)


def test_the_first_invite_has_no_test_name_and_all_others_have_one(
    wire: tuple[Sniffer, Book, dict[str, Guest]],
) -> None:
    """IOP-25, IOP-26: absent, not empty."""
    sniffer, _, _ = wire
    first, *rest = [properties.headers for _, properties, _ in sniffer.of("INVITE")]
    assert "TEST_NAME" not in first
    assert all(headers["TEST_NAME"] for headers in rest)


def test_roles_come_with_the_fields_the_specification_names(
    wire: tuple[Sniffer, Book, dict[str, Guest]],
) -> None:
    """IOP-28, IOP-45, IOP-47, IOP-54, IOP-58."""
    sniffer, _, _ = wire
    by_test: dict[str, dict[str, Any]] = {}
    for _, properties, _ in sniffer.of("ASSIGN_ROLE"):
        by_test[properties.headers["TEST_NAME"]] = properties.headers
        assert properties.headers["ROLE"] in ("SENDER", "RECEIVER")
    assert by_test["TC2_BasicP2P"]["P2P_NUM_MESSAGES"] == 6
    assert by_test["TC2_BasicP2P"]["P2P_QUEUE_AND_KEY_NAME"]
    assert by_test["TC3_BasicPubSub"]["PUBSUB_NUM_RECEIVERS"] == 2
    assert by_test["TC3_BasicPubSub"]["PUBSUB_NUM_MESSAGES"] == 4
    assert by_test["TC3_BasicPubSub"]["PUBSUB_KEY"]
    assert by_test["TC4_P2PMessageSize"]["messageSize"] == 63 * 1024
    assert by_test["TC5_PubSubMessageSize"]["messageSize"] == 63 * 1024
    invites = {p.headers.get("TEST_NAME"): p.headers for _, p, _ in sniffer.of("INVITE")}
    assert invites["TC3_BasicPubSub"]["PUBSUB_NUM_RECEIVERS"] == 2
    assert invites["TC5_PubSubMessageSize"]["messageSize"] == 63 * 1024


def test_names_are_fresh_for_every_instance(wire: tuple[Sniffer, Book, dict[str, Guest]]) -> None:
    """IOP-44, IOP-46, IOP-53, IOP-57."""
    sniffer, _, _ = wire
    seen: dict[str, set[str]] = {}
    for _, properties, _ in sniffer.of("ASSIGN_ROLE"):
        headers = properties.headers
        name = headers.get("P2P_QUEUE_AND_KEY_NAME", headers.get("PUBSUB_KEY"))
        if name:
            seen.setdefault(name, set()).add(properties.correlation_id.rpartition("/")[0])
    assert len(seen) == 4 * 4
    assert all(len(instances) == 1 for instances in seen.values())


def test_a_sender_is_silent_before_start(wire: tuple[Sniffer, Book, dict[str, Guest]]) -> None:
    """IOP-30: pub/sub messages pass the listener too, and none comes before its START."""
    sniffer, _, _ = wire
    test_messages = [at for at, one in enumerate(sniffer.seen) if "SEQUENCE" in one[1].headers]
    starts = [
        at for at, one in enumerate(sniffer.seen) if one[1].headers.get("CONTROL_TYPE") == "START"
    ]
    assert test_messages
    for at in test_messages:
        key = sniffer.seen[at][0]
        owner = next(
            p.correlation_id for _, p, _ in sniffer.of("ASSIGN_ROLE")
            if p.headers["ROLE"] == "SENDER" and p.headers.get("PUBSUB_KEY") == key
        )  # fmt: skip
        begun = [one for one in starts if sniffer.seen[one][1].correlation_id == owner]
        assert begun
        assert begun[0] < at


def test_test_messages_say_who_sent_them(wire: tuple[Sniffer, Book, dict[str, Guest]]) -> None:
    """IOP-38, IOP-42: the client's name, and one correlation id for each instance."""
    sniffer, _, _ = wire
    by_key: dict[str, set[tuple[str, str]]] = {}
    for key, properties, _ in sniffer.seen:
        if "SEQUENCE" in properties.headers:
            whose = (properties.headers["CLIENT_NAME"], properties.correlation_id)
            by_key.setdefault(key, set()).add(whose)
    assert all(len(whose) == 1 for whose in by_key.values())
    ids = [correlation for whose in by_key.values() for _, correlation in whose]
    assert len(set(ids)) == len(ids)


def test_all_clients_end_when_told_to(wire: tuple[Sniffer, Book, dict[str, Guest]], vm: Vm) -> None:
    """IOP-34: exit 0, and no queue is left behind."""
    _, _, guests = wire
    assert [guest.join() for guest in guests.values()] == [0, 0]
    assert not [name for name in vm.server.broker.queues if name.startswith("iop.")]


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"CONTROL_TYPE": "INVITE"}, b""),
        ({"CONTROL_TYPE": "REPORT", "CLIENT_NAME": "a", "CLIENT_INSTANCE": "1"}, b""),
        ({"CONTROL_TYPE": "ACCEPT_ROLE", "CLIENT_NAME": "a", "CLIENT_INSTANCE": "1"}, b"{"),
        ({"CONTROL_TYPE": "ACCEPT_ROLE", "CLIENT_NAME": "a", "CLIENT_INSTANCE": "1"}, b"[]"),
        ({"CONTROL_TYPE": "REPORT", "CLIENT_NAME": "a", "CLIENT_INSTANCE": "1",
          "MESSAGE_COUNT": 2**31}, b""),
        ({"CONTROL_TYPE": "ENLIST", "CLIENT_NAME": "a", "CLIENT_INSTANCE": "1",
          "CLIENT_PRIVATE_CONTROL_KEY": "k"}, b'{"a":' + b"[" * 100_000),
        ({}, b""),
    ],
)  # fmt: skip
def test_what_breaks_the_protocol_is_rejected(headers: dict[str, Any], body: bytes) -> None:
    with pytest.raises(Rejected) as rejection:
        read_control(headers, body, "")
    assert rejection.value.code == "control_message"


def test_sizes_and_counts_are_those_of_the_specification() -> None:
    """IOP-21, IOP-55, IOP-59, and Appendix D."""
    assert SIZES == (0, 63, 64, 65, 127, 128, 129, 255, 256, 257)
    assert DEFAULTS == {
        "P2P_NUM_MESSAGES": 50, "PUBSUB_NUM_RECEIVERS": 5, "PUBSUB_NUM_MESSAGES": 10,
    }  # fmt: skip
    groups = pair_groups(Settings("r", "x", given={"P2P_NUM_MESSAGES": "7"}))
    assert len(groups) == 3 + 10 + 10
    (case,) = groups[1].make(["a"], ["a"])
    assert case.messages == 7
    sizes = [group.make(["a"], ["a"])[0].parts[0].body["message_bytes"] for group in groups[3:]]
    assert sizes == [size * 1024 for size in SIZES] * 2
    (pubsub,) = groups[2].make(["a"], ["b"])
    assert pubsub.total == 50, "received is sent times receivers"
