"""A coupling's equation over plain names, and what it says of whole turns that nothing else accumulates."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.errors import ModelError
from linkwright.model.description import Description
from linkwright.model.elements import Coupling
from linkwright.model.expression import Call, Expression, Lookup, Name, Number
from linkwright.model.joint_kinds import KINDS
from linkwright.tape.block import equal, floor, where

TURN = 2.0 * np.pi
#: A change of Φ over a whole turn that differs by less, as a part of Φ's size, is the same everywhere.
ALIKE = 1e-9
_SAMPLES = 7


@dataclass(frozen=True)
class Relation:
    """Φ over plain names: x0, x1, … for coordinates, p0, p1, … for parameters and numbers, and TIME.

    - `kinds`: of the joints, in the order in which Φ names them.
    - `coordinates`: of each x, the place of its joint in `kinds` and its number there.
    - `parameters`: how many p there are.
    """

    phi: Expression
    kinds: tuple[str, ...]
    coordinates: tuple[tuple[int, int], ...]
    parameters: int

    @property
    def clock(self) -> bool:
        """Whether TIME stands in it."""
        return "TIME" in self.phi.names()

    @property
    def turning(self) -> tuple[bool, ...]:
        """Which coordinates are angles."""
        return tuple(index in KINDS[self.kinds[k]].angles for k, index in self.coordinates)

    @property
    def is_length(self) -> bool:
        """Whether Φ is a length: as its first coordinate is."""
        return not self.turning[0]

    def value(self, x: Sequence[Any], p: Sequence[Any], t: Any) -> Any:
        """Φ."""
        names = {f"x{k}": y for k, y in enumerate(x)} | {f"p{k}": y for k, y in enumerate(p)}
        return self.phi.evaluate({**names, "TIME": t})


def couplings(d: Description) -> Iterator[Coupling]:
    """The couplings of a description."""
    return (x for x in d.point_constraints if isinstance(x, Coupling))


def timed_couplings(d: Description) -> list[Coupling]:
    """The couplings with TIME in them: they move a mechanism as drivers do."""
    return [x for x in couplings(d) if "TIME" in x.relation.names()]


def relation_of(d: Description, coupling: Coupling) -> tuple[Relation, tuple[int, ...], tuple[Expression, ...]]:
    """Φ of a coupling, its joints by their numbers, and what its p stand for: parameters and numbers.

    So relations that differ by numbers alone are one, and share their code.
    """
    named = coupling.coordinates
    joints = tuple(dict.fromkeys(d.joint_names.position("joint", x.of[0]) for x in named))
    by: dict[Expression, Expression] = {x: Name(f"x{k}") for k, x in enumerate(named)}
    numbers: dict[Expression, Expression] = {}
    phi = numbered(coupling.relation, by, numbers, d.parameters)
    places = tuple((joints.index(d.joint_names.position("joint", x.of[0])), x.index) for x in named)
    kinds = tuple(d.kind_of(j).name for j in joints)
    return Relation(phi, kinds, places, len(numbers)), joints, tuple(numbers)


def numbered(
    e: Expression, by: Mapping[Expression, Expression], numbers: dict[Expression, Expression], names: Container[str]
) -> Expression:
    """An expression with plain names for its coordinates, parameters and numbers that are not whole; these are put
    into `numbers`. Exponents stay: a square is a product.
    """
    if isinstance(e, Lookup):
        return Lookup(e.table, numbered(e.argument, by, numbers, names))
    if isinstance(e, Call):
        still = 1 if e.function == "pow" and isinstance(e.arguments[1], Number) else len(e.arguments)
        changed = tuple(numbered(a, by, numbers, names) for a in e.arguments[:still])
        return Call(e.function, (*changed, *e.arguments[still:]))
    if (isinstance(e, Number) and not e.value.is_integer()) or (isinstance(e, Name) and e.name in names):
        return numbers.setdefault(e, Name(f"p{len(numbers)}"))
    return by.get(e, e)


# -- whole turns ----------------------------------------------------------------------------------------------------
def change_by_turn(relation: Relation, k: int, x: Sequence[Any], p: Sequence[Any], t: Any) -> Any:
    """How much Φ changes as coordinate k makes a whole turn."""
    turned = [y + TURN if i == k else y for i, y in enumerate(x)]
    return relation.value(turned, p, t) - relation.value(x, p, t)


def whole_turns(relation: Relation, k: int, x: Sequence[Any], p: Sequence[Any], t: Any) -> Any:
    """The whole turns of coordinate k that bring Φ nearest to zero; none where Φ does not depend on them."""
    change = change_by_turn(relation, k, x, p, t)
    periodic = equal(change, 0.0)
    return where(periodic, 0.0, floor(0.5 - relation.value(x, p, t) / where(periodic, 1.0, change)))


def constant_changes(relation: Relation, p: Sequence[float]) -> list[float | None]:
    """How much Φ changes as each coordinate makes a whole turn, if that is the same everywhere; else None.

    So are sums of multiples and periodic functions of an angle. Judged by samples within a turn or a metre.
    """
    rng = np.random.default_rng(0)
    changes: list[float | None] = []
    for k, turns in enumerate(relation.turning):
        points = rng.uniform(-np.pi, np.pi, (_SAMPLES, len(relation.turning) + 1))
        with np.errstate(all="ignore"):
            sampled = [
                (float(change_by_turn(relation, k, x[:-1].tolist(), p, x[-1])), relation.value(x[:-1], p, x[-1]))
                for x in points
            ]
        rows = np.array(sampled, dtype=np.float64)
        rows = rows[np.isfinite(rows).all(axis=1)]
        size = max(float(np.abs(rows).max(initial=0.0)), 1e-300)
        change = float(np.median(rows[:, 0])) if len(rows) else np.nan
        same = turns and len(rows) > 1 and bool(np.all(np.abs(rows[:, 0] - change) <= ALIKE * size))
        changes.append((0.0 if abs(change) <= ALIKE * size else change) if same else None)
    return changes


def counted_by_relation(
    d: Description, relation: Relation, joints: Sequence[int], p: Sequence[float], loops: Collection[int], name: str
) -> int | None:
    """Of the angles of joints that close loops, whose turns nothing counts, the one whose turns Φ tells.

    None where no turns matter. Raises ModelError, which says what to cut, where Φ cannot tell them.
    """
    uncounted = [k for k, (at, _) in enumerate(relation.coordinates) if relation.turning[k] and joints[at] in loops]
    if not uncounted:
        return None
    changes = constant_changes(relation, p)
    sizes = sorted((abs(changes[k] or 0.0), k) for k in uncounted if changes[k])
    unlike = [k for size, k in sizes if abs(size / sizes[0][0] - round(size / sizes[0][0])) > ALIKE]
    for k in (*(k for k in uncounted if changes[k] is None), *unlike):
        joint = d.joint_names[joints[relation.coordinates[k][0]]]
        text = f"coupling {name!r} names joint {joint!r}, which closes a loop, so that nothing counts its turns"
        raise ModelError(f"{text}; mark another joint of its loop as cut", element=name)
    return sizes[0][1] if sizes else None
