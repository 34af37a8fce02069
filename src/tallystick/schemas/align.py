"""The field policy: find the fields that a new schema adds.

Wherever both schemas describe the same object, a property that only the new one names is set to
`false` in a copy of the old one. Documents of that copy are the old documents that never used the
name, so an optional field may be added to an open model, while a required one still breaks. What
`allOf` joins is one object. A name is not new when the old schema demands it, names it in any
branch, or describes it by a pattern or as one of `additionalProperties`; and a name that no new
document can have is not added, but forbidden.

Branches are paired with what they are most like, wherever they stand; an object that became one of
several (`anyOf: [..., {"type": "null"}]`) with the one that is most like it. What stands beside a
`$ref` counts where the dialect lets it: the reference is then one more branch of `allOf`.

A definition may be used at several places, and what is new at one may have been described at
another by what stands around it. A name is ruled out where a reference stands, and only if it is
new for all who come by there.

What is removed is another question (`tallystick.schemas.removals`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Final
from urllib.parse import unquote

from tallystick.schemas.align_copies import join_references, rule_out
from tallystick.schemas.cases import Cases, are_apart
from tallystick.schemas.containment.nodes import Exhausted, make_source
from tallystick.schemas.containment.search import make_space
from tallystick.schemas.refs import children, find_pointer
from tallystick.schemas.removals import find_removals, is_patterned, patterned
from tallystick.schemas.values import escape
from tallystick.schemas.witness import is_empty

__all__ = ["Alignment", "align_fields"]

_BELOW: Final = (
    "properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "items",
    "prefixItems", "additionalItems", "unevaluatedItems", "contains",
)  # fmt: skip
"""Keywords about a member or an item."""
_CONDITIONS: Final = ("then", "else", "dependentSchemas", "dependencies")
"""Keywords about the same value under a condition."""
_STEPS: Final = 10_000
"""What the question may cost whether new documents can have the new names, all together."""
_WORK: Final = 400_000
"""Maximum steps of the walk; beyond it the result is `unknown`."""
_MANY: Final = 10_000
_FEW: Final = 64
_UNIONS: Final = ("anyOf", "oneOf")
_JOINED: Final = ("allOf", *_UNIONS)
"""Branches of these speak of the same object."""
_BRANCHES: Final = (*_JOINED, *_CONDITIONS)


@dataclass(frozen=True, slots=True)
class _Kin:
    """What is said of an object around a place: old schemas that hold too, and demands."""

    before: tuple[dict[str, Any], ...] = ()
    demanded: frozenset[str] = frozenset()

    def joined(self, other: _Kin) -> _Kin:
        said = {id(one): one for one in (*self.before, *other.before)}
        return _Kin(tuple(said.values()), self.demanded | other.demanded)


_ALONE: Final = _Kin()


@dataclass(frozen=True, slots=True)
class Alignment:
    """A copy of the old schema with added names ruled out; pointers of what was added and removed.

    Under `oneOf` or `not` the copy may accept more than the old schema: both must hold. `complete`
    says that nothing else was added or removed; if the walk was too long, no document is of `base`.
    """

    base: Any = True
    added: frozenset[str] = frozenset()
    removed: tuple[str, ...] = ()
    complete: bool = True


def align_fields(old: Any, new: Any) -> Alignment:
    """Align the fields of two self-contained schemas."""
    gone = find_removals(old, new)
    work = _Walk(join_references(old), join_references(new))
    try:
        work.visit(*work.roots, "")
        free = work.settle()
    except Exhausted:
        return Alignment(False, frozenset(), gone.pointers, complete=False)
    base = rule_out(work.roots[0], free) if free else True
    added = frozenset(at for at, (place, name) in work.pointers.items()
                      if name in free.get(place, ()))  # fmt: skip
    return Alignment(base, added, gone.pointers, gone.complete)


class _Walk:
    """One walk over both documents; `added` maps the identity of an old place to new names."""

    def __init__(self, old: Any, new: Any) -> None:
        self.roots = (old, new)
        self.cases = (Cases(old), Cases(new))
        self.added: dict[int, set[str]] = {}
        self.around: dict[int, list[_Kin]] = {}
        self.pointers: dict[str, tuple[int, str]] = {}
        self.seen: set[tuple[int, int, frozenset[int], frozenset[str]]] = set()
        self.left = _WORK
        self.known: dict[tuple[int, tuple[str, ...]], dict[str, Any]] = {}
        self.space = make_space(_STEPS)
        self.source = make_source(new)

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise Exhausted("the schemas have too many fields to compare")

    def follow(self, side: int, schema: Any) -> Any:
        for _ in range(50):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                break
            try:
                schema = find_pointer(self.roots[side], unquote(schema["$ref"][1:]))
            except KeyError:
                break
        return schema

    def visit(self, place: Any, new: Any, at: str, kin: _Kin = _ALONE) -> None:
        old, new = self.follow(0, place), self.follow(1, new)
        if not isinstance(old, dict) or not isinstance(new, dict):
            return
        place = place if place.keys() == {"$ref"} else old
        visit = (id(place), id(new), frozenset(map(id, kin.before)), kin.demanded)
        if visit in self.seen:
            return
        self.seen.add(visit)
        kin = self.join(old, kin)
        self.fields(place, old, new, at, kin)
        if isinstance(old.get("allOf"), list) and isinstance(new.get("allOf"), list):
            told = [one for key in _BRANCHES for one in _schemas(key, old.get(key, []))]
            for spot, one, two in self.pair(old["allOf"], new["allOf"]):
                beside = self.told([other for other in told if other is not one])
                self.visit(one, two, f"{at}/allOf/{spot}", kin.joined(beside))
        self.unions(place, old, new, at, kin)
        before, after = self.held(old, _CONDITIONS), self.held(new, _CONDITIONS)
        for place in [one for one in before if one in after]:
            self.visit(before[place], after[place], f"{at}{place}", kin)
        self.below(old, new, at, kin)

    def below(self, old: dict[str, Any], new: dict[str, Any], at: str, kin: _Kin) -> None:
        """Visit what both say of a member or an item, whatever branch of `allOf` says it."""
        before, after = (list(self.parts(side, one, ("allOf",)))
                         for side, one in ((0, old), (1, new)))  # fmt: skip
        said = [*kin.before, *self.parts(0, old, _BRANCHES)]
        later = {place for part in after for place in self.held(part, _BELOW)}
        places = dict.fromkeys(one for part in before for one in self.held(part, _BELOW))
        self.spend(len(places) * (len(before) + len(after) + len(said)))
        for place in places:
            if place not in later:
                continue
            olds, news, known = ([held[place] for part in parts
                                  if place in (held := self.held(part, _BELOW))]
                                 for parts in (before, after, said))  # fmt: skip
            if len(olds) * len(news) <= _FEW:  # else nothing is free: an alarm rather than a miss
                for one, two in product(olds, news):
                    others = self.told([held for held in known if held is not one])
                    self.visit(one, two, f"{at}{place}", others)

    def unions(
        self, place: Any, old: dict[str, Any], new: dict[str, Any], at: str, kin: _Kin
    ) -> None:
        """Pair alternatives with alternatives, under either keyword, or with what had none.

        Where each side has one union, it may stand in any branch of `allOf`.
        """
        joined = list(self.parts(0, old, ("allOf",)))
        kin = kin.joined(self.told([one for part in joined for key in _CONDITIONS
                                    for one in _schemas(key, part.get(key, []))]))  # fmt: skip
        before, after = _unions(joined), _unions(self.parts(1, new, ("allOf",)))
        if len(before) != 1 or len(after) != 1:
            before, after = _unions([old]), _unions([new])
        if len(before) == len(after) == 1:
            ((_, one),), ((_, two),) = before, after
            pairs = list(self.pair(one, two))
        else:
            later = dict(after)
            pairs = [pair for key, held in before if key in later
                     for pair in self.pair(held, later[key])]  # fmt: skip
            pairs += [(spot, one, new) for key, held in before if key not in later
                      for spot, one in enumerate(held)]  # fmt: skip
        for spot, one, two in pairs:
            self.visit(one, two, f"{at}/{before[0][0]}/{spot}", kin)
        for key, held in after if not before else ():
            for _, _, two in self.pair([old], held):
                self.visit(place, two, f"{at}/{key}/{held.index(two)}", kin)

    def told(self, schemas: list[Any]) -> _Kin:
        """Give what schemas say that hold of the same value as another one."""
        said = tuple(part for one in schemas for part in self.parts(0, one, _BRANCHES))
        return _Kin(said, frozenset(name for one in schemas for name in self.demanded(one)))

    def held(self, schema: Any, keys: tuple[str, ...]) -> dict[str, Any]:
        """Give the subschemas of some keywords by their places; found once."""
        known = self.known.get((id(schema), keys))
        if known is None:
            known = self.known[id(schema), keys] = {
                place: one for place, one in children(schema) if place.split("/", 2)[1] in keys
            }
            self.spend(len(known))
        return known

    def join(self, old: dict[str, Any], kin: _Kin) -> _Kin:
        """Give what is said of one object by this schema and by those around it."""
        return kin.joined(_Kin(tuple(self.parts(0, old, ("allOf",))), self.demanded(old)))

    def parts(self, side: int, schema: Any, keys: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        """Give a schema of an object and its branches under these keywords, each once."""
        waiting, seen = [schema], set[int]()
        while waiting:
            part = self.follow(side, waiting.pop())
            if isinstance(part, dict) and id(part) not in seen:
                seen.add(id(part))
                self.spend(1)
                yield part
                for key in keys:
                    held = part.get(key, [])
                    waiting += _schemas(key, held)

    def demanded(self, schema: Any) -> frozenset[str]:
        """Give the names that the old schema demands of the object, perhaps under a condition."""
        found: set[str] = set()
        for part in self.parts(0, schema, (*_JOINED, "then", "else")):
            found.update(part.get("required", ()))
            for key in ("dependencies", "dependentRequired"):
                for demand in part.get(key, {}).values():
                    found.update(demand if isinstance(demand, list) else ())
        return frozenset(found)

    def fields(
        self, place: Any, old: dict[str, Any], new: dict[str, Any], at: str, kin: _Kin
    ) -> None:
        self.around.setdefault(id(place), []).append(kin)
        said = (*kin.before, *self.parts(0, old, _BRANCHES))
        joined = list(self.parts(1, new, ("allOf",)))
        wider = list(self.parts(1, new, ("allOf", *_CONDITIONS)))
        always, names = _names(joined), _names(wider)
        self.spend(len(names) * _breadth((*said, *wider)))
        fresh = {
            name
            for name in sorted(names - kin.demanded)
            if not any(_describes(part, name) for part in said)
            and self.may_have(joined if name in always else wider, name)
        }
        if fresh and old.get("additionalProperties", True) is not False:
            self.added.setdefault(id(place), set()).update(fresh)
            pointers = {f"{at}/properties/{escape(name)}": (id(place), name) for name in fresh}
            self.pointers.update(pointers)

    def settle(self) -> dict[int, set[str]]:
        """Give by place the names that are new there, whatever stands around it."""
        free = {}
        for place, names in self.added.items():
            kins = self.around[place]
            said = {id(one): one for kin in kins for one in kin.before}.values()
            self.spend(len(names) * _breadth(said))
            names.difference_update(*(kin.demanded for kin in kins))
            free[place] = {name for name in names
                           if not any(_describes(part, name) for part in said)}  # fmt: skip
        return {place: names for place, names in free.items() if names}

    def may_have(self, parts: list[dict[str, Any]], name: str) -> bool:
        """Tell whether a new object may have a member of this name; only a proof says no."""
        held = [part["properties"][name] for part in parts if name in part.get("properties", {})]
        held += [one for part in parts for one in patterned(part, name)]
        names = [part["propertyNames"] for part in parts if "propertyNames" in part]
        return not any(
            is_empty(self.space, one, self.source) for one in (held, [{"const": name}, *names])
        )

    def pair(self, before: list[Any], after: list[Any]) -> Iterator[tuple[int, Any, Any]]:
        """Pair branches: the same with the same, then each with the most like it that is left.

        Where there are very many, what is left is paired in order.
        """
        self.spend(len(before) + len(after))
        left = list(after)
        rest = []
        for spot, one in enumerate(before):
            if one in left:
                yield spot, one, left.pop(left.index(one))
            else:
                rest.append((spot, one))
        few = len(rest) * len(left) <= _MANY
        for spot, one in rest:
            if left and not few:
                yield spot, one, left.pop(0)
            elif left:
                best = max(left, key=lambda two: self.likeness(one, two))
                left.remove(best)
                yield spot, one, best

    def likeness(self, one: Any, two: Any) -> int:
        """Count what two branches share: a type, names, and above all their tags."""
        old, new = (list(self.parts(side, held, _JOINED)) for side, held in ((0, one), (1, two)))
        before, after = _names(old), _names(new)
        self.spend(len(before) + len(after))
        case, other = self.cases[0].of(one), self.cases[1].of(two)
        tags = dict(other.tags)
        same = len([name for name, tag in case.tags
                    if name in tags and not are_apart(tag, tags[name])])  # fmt: skip
        if are_apart(case, other):
            return same - 100
        shared = before & after
        return 100 * same + 2 * len(shared) + bool(_types(old) & _types(new))


def _names(parts: Iterable[dict[str, Any]]) -> frozenset[str]:
    """Give the properties that some schemas of an object name."""
    return frozenset(name for part in parts for name in part.get("properties", {}))


def _unions(parts: Iterable[dict[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Give the alternatives that some schemas of one value hold, by their keyword."""
    return [(key, part[key]) for part in parts for key in _UNIONS if key in part]


def _breadth(schemas: Iterable[dict[str, Any]]) -> int:
    """Say about how often something is looked at to ask some schemas for one name."""
    return sum(1 + 4 * len(one.get("patternProperties", ())) for one in schemas)


def _describes(schema: dict[str, Any], name: str) -> bool:
    """Tell whether a schema of an object says what a member of this name is."""
    if name in schema.get("properties", {}) or is_patterned(schema, name):
        return True
    rest = (schema.get(key) for key in ("additionalProperties", "unevaluatedProperties"))
    return any(isinstance(held, dict) and held for held in rest)


def _types(parts: list[dict[str, Any]]) -> set[str]:
    """Give the types that some schemas name; properties speak of an object."""
    types = {"object" for part in parts if "properties" in part}
    for part in parts:
        named = part.get("type", [])
        types.update([named] if isinstance(named, str) else named)
    return types


def _schemas(keyword: str, held: Any) -> list[Any]:
    """Give the schemas that a keyword holds: a list, a map, or one."""
    if isinstance(held, list):
        return held
    return list(held.values()) if keyword.startswith("depend") else [held]
