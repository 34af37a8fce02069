"""One trial for every ordered pair of clients: its own queue, a sender and a receiver.

Perf circuits, tiers between clients, envelopes and field tables are all trials; they differ only in
the parameters of the two clients and in the judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

from tallystick.lab.cases import Settings
from tallystick.lab.control import Role
from tallystick.lab.instance import Group, Instance, Judge, Part, QueueSpec

__all__ = ["Trial", "trial_group"]

_DIRECT: Final = "amq.direct"


@dataclass(frozen=True, slots=True)
class Trial:
    """What a pair does. `sending` has `num_messages`; `share` is what the receiver waits for.

    Both are of each of the `batches`.
    """

    test: str
    path: str
    sending: Mapping[str, Any]
    receiving: Mapping[str, Any]
    judge: Judge
    share: int
    bound: bool = True
    durable: bool = False
    timed: bool = False
    refusal: str = ""
    batches: int = 1


def trial_group(settings: Settings, trial: Trial) -> Group:
    """Give a trial for all pairs, under one invite."""

    def make(senders: Sequence[str], receivers: Sequence[str]) -> list[Instance]:
        return [
            _pair(settings, trial, sender, receiver, f"{at}.{index}")
            for at, sender in enumerate(senders)
            for index, receiver in enumerate(receivers)
        ]

    return Group(trial.test, make, {}, {**trial.sending, **trial.receiving})


def _pair(settings: Settings, trial: Trial, sender: str, receiver: str, number: str) -> Instance:
    name = f"iop.{settings.run}.{crc32(trial.path.encode()):08x}.{number}"
    common = {
        "pattern": "p2p",
        "destinations": [{"exchange": _DIRECT, "key": name, "queue": name}],
        "consumers": [{"index": 0, "destination": 0}],
    }
    return Instance(
        f"{settings.broker}/{trial.path}/{sender}/{receiver}",
        trial.test,
        (
            Part(sender, Role.SENDER, {}, {**common, **trial.sending}),
            Part(receiver, Role.RECEIVER, {}, {**common, **trial.receiving}, trial.share),
        ),
        trial.judge,
        queues=(QueueSpec(name, _DIRECT if trial.bound else "", name, durable=trial.durable),),
        messages=int(trial.sending["num_messages"]),
        total=trial.share,
        batches=trial.batches,
        timed=trial.timed,
        refusal=trial.refusal,
    )
