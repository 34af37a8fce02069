from __future__ import annotations

from collections import Counter
from uuid import RFC_4122, UUID

from tallystick.runtime.ids import new_uuid


def test_an_id_is_a_version_4_uuid_in_its_one_spelling() -> None:
    ids = [new_uuid() for _ in range(2000)]
    for one in ids:
        parsed = UUID(one)
        assert (str(parsed), parsed.version, parsed.variant) == (one, 4, RFC_4122)
    assert len(set(ids)) == len(ids)
    assert set(Counter(one[19] for one in ids)) == set("89ab")
