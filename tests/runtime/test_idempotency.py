"""One effect for many deliveries of one `meta.id`."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.runtime.idempotency import MemorySeen, decide, effects, run_once

ids = st.sampled_from(["a", "b", "c"])


def ok(message_id: str, **more: Any) -> dict[str, Any]:
    return {"meta_id": message_id, "outcome": "ok", **more}


def test_a_second_delivery_is_skipped() -> None:
    assert effects([ok("a"), ok("a"), ok("b"), ok("a")]) == ["run", "skip", "run", "skip"]


def test_a_handler_that_threw_runs_again_and_counts_as_run() -> None:
    thrown = {"meta_id": "a", "outcome": "throw"}
    found = effects([thrown, thrown, ok("a"), ok("a")])
    assert found == ["run", "run", "run", "skip"]


@pytest.mark.parametrize("missing", ["", None])
def test_a_message_without_an_id_always_runs(missing: str | None) -> None:
    delivery = {"meta_id": missing, "outcome": "ok"}
    assert effects([delivery, delivery]) == ["run", "run"]
    assert effects([{"outcome": "ok"}, {"outcome": "ok"}]) == ["run", "run"]


def test_a_forgotten_message_runs_again() -> None:
    assert effects([ok("a"), ok("a"), ok("a", forget_before=True)]) == ["run", "skip", "run"]
    assert effects([ok("a", forget_before=True)]) == ["run"]


@given(st.lists(ids))
def test_there_is_one_effect_for_each_distinct_id(deliveries: list[str]) -> None:
    found = effects([ok(each) for each in deliveries])
    assert found.count("run") == len(set(deliveries))


@given(st.lists(st.tuples(ids, st.booleans())))
def test_the_live_guard_agrees_with_the_replay(deliveries: list[tuple[str, bool]]) -> None:
    seen, found = MemorySeen(), []

    def handler(succeeds: bool) -> None:
        if not succeeds:
            raise ValueError

    for message_id, succeeds in deliveries:
        try:
            found.append(run_once(seen, message_id, partial(handler, succeeds)))
        except ValueError:
            found.append("run")
    stated = [{"meta_id": i, "outcome": "ok" if good else "throw"} for i, good in deliveries]
    assert found == effects(stated)


def test_a_handler_runs_once_and_its_exception_passes_through() -> None:
    seen, calls = MemorySeen(), []
    assert run_once(seen, "a", lambda: calls.append(1)) == "run"
    assert run_once(seen, "a", lambda: calls.append(2)) == "skip"
    assert run_once(seen, "", lambda: calls.append(3)) == "run"
    assert calls == [1, 3]
    with pytest.raises(ZeroDivisionError):
        run_once(seen, "b", lambda: 1 // 0)
    assert decide(seen, "b") == "run"


def test_a_bounded_store_forgets_the_oldest_first() -> None:
    seen = MemorySeen(limit=2)
    for each in ("a", "b", "c"):
        seen.remember(each)
    assert [seen.seen(each) for each in ("a", "b", "c")] == [False, True, True]
    seen.forget("c")
    seen.forget("never")
    assert not seen.seen("c")
