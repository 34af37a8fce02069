"""One real call of every verb: its words, its exit code, and the extra that it needs.

A chain is a list of calls that run one after the other in a folder of their own, each on the files
of those before it. Chains run side by side. `needs` has the extras without which the call must end
with 2 and name the first one that is missing. Without `needs` the call works bare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["CHAINS", "Call", "verb_of"]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a program; `verb` is what `walk.py` calls it."""

    words: str
    needs: str = ""
    exit: int = 0
    until: str = ""
    """Wait for this text, then send SIGINT: for what runs until it is stopped."""


def verb_of(call: Call, verbs: frozenset[str]) -> str:
    """Give the verb of a call: the longest one that its words begin with."""
    words = call.words.split()
    for length in (3, 2):
        if " ".join(words[:length]) in verbs:
            return " ".join(words[:length])
    raise AssertionError(f"{call.words} calls no verb")


_REGISTRY: Final = "--registry registry/registry.json"
_SCHEMA: Final = "registry/schemas/orders-created"
_PAIR: Final = f"{_SCHEMA}.json {_SCHEMA}.v2-breaking.json"

CHAINS: Final[dict[str, list[Call]]] = {
    "messages": [
        Call("tally examples written"),
        Call("tally envelope show written/messages/untidy.json"),
        Call("tally envelope show messages/order-created.json"),
        Call("tally envelope encode messages/order-created.json"),
        Call("tally envelope project --broker kafka messages/order-created.json"),
        Call("tally envelope reconcile --broker redis messages/order-created.json"),
        Call("tally envelope portable messages/order-created.json", exit=1),
        Call("tally event convert --to xml events/order.json"),
        Call("tally event convert --to protobuf -o order.bin events/order.json", needs="events"),
        Call("tally event validate events/order.json"),
        Call("tally replay captures/orders.jsonl --dry-run"),
        Call("tally run shop:app --idle 0.2"),
    ],
    "registry": [
        Call(f"tally schema check {_REGISTRY}", needs="schemas"),
        Call(f"tally schema validate {_REGISTRY} registry/messages/order-created.json",
             needs="schemas"),
        Call(f"tally schema compat {_PAIR}", needs="schemas", exit=1),
        Call(f"tally schema export-asyncapi {_REGISTRY}", needs="schemas"),
        Call(f"tally schema gdpr {_REGISTRY}", needs="schemas"),
        Call(f"tally schema serve {_REGISTRY} --port 0", needs="server", until="catalog on http"),
        Call(f"tally schema serve {_REGISTRY} --write-ids-lock"),
        Call(f"bqschema check {_REGISTRY}"),
        Call(f"bqschema validate {_REGISTRY} registry/messages/order-created.json"),
        Call(f"bqschema compat {_PAIR}", needs="schemas", exit=1),
        Call(f"bqschema export-asyncapi {_REGISTRY}"),
        Call(f"bqschema gdpr {_REGISTRY}"),
        Call(f"bqschema serve {_REGISTRY} --addr :0", needs="server", until="REST on"),
        Call(f"python -m tallystick.cli.outputs.workflow check {_REGISTRY}", needs="schemas"),
    ],
    "outbox": [
        Call("tally outbox create --store sqlite:///outbox.db"),
        Call("tally outbox status --store sqlite:///outbox.db"),
        Call("tally outbox retry --store sqlite:///outbox.db"),
        Call("tally outbox relay --store sqlite:///outbox.db --broker memory:// --idle 0.1"),
        Call("tally outbox status --store postgresql://127.0.0.1:1/none", needs="postgresql",
             exit=2),
    ],
    "suite": [
        Call("tally doctor"),
        Call("tally config"),
        Call("tally suite list"),
        Call("tally suite subjects"),
        Call("tally suite implementations"),
        Call("tally completion bash"),
        Call("tally suite run standard/** --journal old.jsonl"),
        Call("tally suite run cloudevents/** --journal new.jsonl", needs="events"),
        Call("tally journal show old.jsonl"),
        Call("tally journal diff old.jsonl old.jsonl"),
        Call("tally report build old.jsonl -o page.html"),
        Call("tally standard check", needs="schemas"),
        Call("tally standard sync ."),
        Call("tally prove --implementation tallystick"),
    ],
    "broker": [
        Call("tally broker list"),
        Call("tally broker fetch redis"),
        Call("tally broker up redis"),
        Call("tally broker status"),
        Call("tally replay captures/orders.jsonl --to redis --queue orders", needs="redis"),
        Call("tally capture redis orders --idle 0.5 -o captured", needs="redis"),
        Call("tally redrive redis orders.dlq", needs="redis"),
        Call("tally broker down redis --wipe"),
        Call("tally broker up servicebus", needs="artemis"),
        Call("tally faults list"),
        Call("tally faults run redis --messages 20 --kill-broker 0 --kill-worker 0", needs="redis"),
    ],
    "lab": [
        Call("tally lab clients", needs="lab"),
        Call("tally lab run --broker vm --clients python", needs="lab"),
        Call("tally lab circuit single_role=false --broker vm --clients python", needs="lab"),
        Call("tally lab perf --broker vm --clients python --messages 20 --rate 20 --duration 1",
             needs="lab"),
        Call("tally lab attach -p 1", needs="lab", exit=2),
    ],
    "tiers": [
        Call("tally lab combinations pairwise --count", needs="lab"),
        Call("tally lab expected auto/no_body/durable", needs="lab"),
        Call("tally lab run-tier pairwise --broker vm", needs="lab"),
        Call("tally lab fields 0-9-1 --broker rabbitmq --url amqp://127.0.0.1:1", needs="lab",
             exit=2),
        Call("tally lab fields 1.0 --broker qpid --url amqp://127.0.0.1:1",
             needs="lab artemis"),
        Call("tally lab clock local", needs="lab"),
        Call("tally lab clock udp", needs="lab"),
        Call("tally lab clock-reference --udp 0", needs="lab", until="\n"),
        Call("tally lab all --list", needs="lab"),
    ],
    "pipeline": [
        Call(f"tally pipeline run --input captures {_REGISTRY} --out lake --lineage lineage.jsonl",
             needs="pipeline lineage"),
        Call("tally pipeline tables --lake lake", needs="capture"),
        Call("tally pipeline show deliveries --lake lake", needs="capture"),
        Call("tally pipeline page --lake lake", needs="capture"),
        Call("tally pipeline export --lake lake --to shared", needs="pipeline"),
        Call("tally pipeline clean --lake lake", needs="capture"),
        Call(f"tally schema replay {_SCHEMA}.json --urn "
             "urn:babel:orders:created --lake lake", needs="capture"),
        # a whole stream takes Spark a minute of work: tests/pipeline/test_stream.py has that
        Call(f"tally pipeline stream --input nothing {_REGISTRY} --out stream --available-now",
             needs="pipeline", exit=2),
    ],
}  # fmt: skip
