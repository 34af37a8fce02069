"""Laws of the 9216 parameter sets and of the covering arrays over them (Appendix C)."""

from __future__ import annotations

from itertools import product

import pytest

from tallystick.core.errors import UsageError
from tallystick.lab.combinations import (
    ACK_MODE_NAMES,
    FLAGS,
    Parameters,
    all_combinations,
    as_mapping,
    local_combinations,
    name_of,
    read_name,
)
from tallystick.lab.covering import count_tuples, cover


def test_there_are_exactly_9216_sets_and_each_is_different() -> None:
    sets = all_combinations()
    assert len(sets) == 4 * 48 * 16 * 3 == 9216
    assert len(set(sets)) == 9216


def test_every_flag_mode_and_size_meets_every_other() -> None:
    seen = {tuple(as_mapping(one).values()) for one in all_combinations()}
    sizes = ("no_body", "one_body", "multi_body")
    every = product(*[(False, True)] * len(FLAGS), ACK_MODE_NAMES, sizes)
    assert seen == set(every)


def test_the_defaults_are_those_of_appendix_c() -> None:
    assert {name for name, value in as_mapping(Parameters()).items() if value is True} == {
        "bind_out_route",
        "consumer_out_active",
    }
    assert (Parameters().ack_mode, Parameters().message_size) == ("auto", "one_body")


def test_the_local_tier_has_768_sets() -> None:
    assert len(local_combinations()) == 768
    assert (
        len({(one.persistent, one.durable, one.message_size) for one in local_combinations()}) == 1
    )


def test_a_name_gives_back_its_set_and_no_two_sets_share_one() -> None:
    names = [name_of(one) for one in all_combinations()]
    assert len(set(names)) == 9216
    assert [read_name(name) for name in names] == list(all_combinations())


def test_flags_may_be_named_in_any_order() -> None:
    assert read_name("auto/one_body/durable+persistent") == read_name(
        "auto/one_body/persistent+durable"
    )


@pytest.mark.parametrize(
    "name",
    ["", "auto", "auto/one_body", "auto/one_body/", "auto/one_body/durable+durable",
     "auto/one_body/nonsense", "never/one_body/none", "auto/half_body/none"],
)  # fmt: skip
def test_what_names_no_set_is_refused(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_name(name)
    assert refused.value.code == "combination"


@pytest.mark.parametrize(("strength", "tuples"), [(2, 324), (3, 2292), (4, 10656)])
def test_a_covering_array_covers_every_tuple(strength: int, tuples: int) -> None:
    rows = cover(strength)
    assert count_tuples(rows, strength) == (tuples, tuples)
    assert len(rows) < len(all_combinations()) / 50


def test_a_missing_row_is_noticed_by_the_count() -> None:
    covered, every = count_tuples(cover(2)[1:], 2)
    assert covered < every


def test_pairs_need_eighteen_rows_which_is_the_least() -> None:
    assert len(cover(2)) == 18
