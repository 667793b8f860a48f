"""Views of a mechanism's bodies and joints, and the report on its freedom: what `Mechanism` hands out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar, overload

import numpy as np

from linkwright.base.arguments import counted
from linkwright.base.arrays import Floats
from linkwright.base.html import ROWS, folded, line, shown, table, vector
from linkwright.errors import visible
from linkwright.model.mobility_report import Mobility

T = TypeVar("T")


@dataclass(frozen=True)
class Body:
    """A view of one moving body; the inertia is about the centre of mass, in body axes."""

    name: str
    mass: float
    com: Floats
    inertia: Floats
    parent: str
    joint: str


@dataclass(frozen=True)
class Joint:
    """A view of one joint: its place in q and v, its bodies and its limits."""

    name: str
    kind: str
    q_slice: slice
    v_slice: slice
    parent: str
    child: str
    lower: float
    upper: float
    velocity_limit: float
    effort_limit: float
    mimics: str | None = None
    shares: bool = False  # whether its coordinate is that of the joint it mimics; else an equation couples them


class View(Sequence[T]):
    """A sequence whose entries are made when asked for; also indexed by name."""

    def __init__(
        self, n: int, make: Callable[[int], T], find: Callable[[str], int], table: Callable[[Sequence[T]], str]
    ) -> None:
        """`make` and `find` give an entry and its position; `table` the HTML table of some entries."""
        self._n, self._make, self._find, self._table = n, make, find, table

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, k: int | str) -> T: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[T]: ...
    def __getitem__(self, k: int | str | slice) -> T | Sequence[T]:
        if isinstance(k, str):
            return self._make(self._find(k))
        if isinstance(k, slice):
            return [self._make(i) for i in range(*k.indices(self._n))]
        if not -self._n <= k < self._n:
            raise IndexError(f"{k} is not among the {self._n} entries")
        return self._make(k % self._n)

    def __iter__(self) -> Iterator[T]:
        return (self._make(i) for i in range(self._n))

    def __repr__(self) -> str:
        shown = ", ".join(str(getattr(x, "name", x)) for x in self[:6])
        return visible(f"<{self._n}: {shown}{', ...' if self._n > 6 else ''}>")

    def _repr_html_(self) -> str:
        return shown(self._table(self) if len(self) else line("none"))


@dataclass(frozen=True)
class DofReport:
    """How many coordinates and degrees of freedom a mechanism has.

    Of a mechanism with loops, rods, point constraints or drivers that can be assembled as drawn: `rank` is that of all
    constraint equations of its bodies, drivers included; `drivers` is how many of the drivers' equations are
    independent; `left` are the undriven degrees of freedom; `redundant` names equations that follow from the others
    (the choice is not unique); `mobility` explains all this for mechanisms of up to about fifty bodies, and is None of
    larger ones. If it cannot be assembled, `problem` says which gap is left, and the degrees of freedom are by count.
    """

    bodies: int
    coordinates: int
    rates: int
    loop_equations: int
    couplings: int
    rank: int | None = None
    drivers: int = 0
    left: int = 0
    redundant: tuple[str, ...] = ()
    problem: str = ""
    mobility: Mobility | None = None

    @property
    def degrees_of_freedom(self) -> int:
        """Without drivers: by rank where it is known, else rates less loop equations."""
        return self.rates - self.loop_equations if self.rank is None else self.left + self.drivers

    def __str__(self) -> str:
        parts = [
            counted(self.bodies, "body", "bodies"),
            counted(self.coordinates, "coordinate"),
            counted(self.rates, "rate"),
        ]
        if self.couplings:
            parts.append(counted(self.couplings, "joint that follows another", "joints that follow another"))
        if self.loop_equations:
            parts.append(counted(self.loop_equations, "loop equation"))
        least = "at least " if self.loop_equations and self.rank is None else ""
        freedom = counted(max(self.degrees_of_freedom, 0), "degree of freedom", "degrees of freedom")
        driven = f", {self.drivers} driven, {self.left} undriven" if self.drivers else ""
        open_ = " by count; it cannot be assembled as drawn" if self.problem else ""
        return f"{', '.join(parts)}: {least}{freedom}{driven}{open_}"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("degrees of freedom", self.degrees_of_freedom),
            *((("driven", self.drivers), ("undriven", self.left)) if self.drivers else ()),
            ("bodies", self.bodies),
            ("coordinates", self.coordinates),
            ("rates", self.rates),
            *((("loop equations", self.loop_equations),) if self.loop_equations else ()),
            *((("joints that follow another", self.couplings),) if self.couplings else ()),
            *((("rank of the constraints", self.rank),) if self.rank is not None else ()),
        ]
        redundant = table(("redundant equation",), ((x,) for x in self.redundant[:ROWS]), len(self.redundant))
        return shown(
            line(str(self)),
            line(self.problem, bad=True) if self.problem else "",
            table(("", ""), rows),
            *(() if self.mobility is None else map(line, self.mobility.sentences())),
            folded(counted(len(self.redundant), "redundant equation"), redundant if self.redundant else ""),
        )


def body_table(bodies: Sequence[Body]) -> str:
    """The bodies of a mechanism as an HTML table."""
    rows = ((b.name, b.mass, vector(b.com), b.parent, b.joint) for b in bodies[:ROWS])
    return table(("body", "mass (kg)", "centre of mass (m)", "on", "by joint"), rows, len(bodies))


def joint_table(joints: Sequence[Joint]) -> str:
    """The joints of a spanning tree as an HTML table, with limits where the first of them have some."""
    first = joints[:ROWS]
    bounded = any(np.isfinite((j.lower, j.upper)).any() for j in first)
    rows = (
        (j.name, j.kind, j.parent, j.child, _range(j.q_slice), _range(j.v_slice))
        + ((_limit(j.lower), _limit(j.upper)) if bounded else ())
        for j in first
    )
    head = ("joint", "kind", "from", "to", "q", "v", *(("lower limit", "upper limit") if bounded else ()))
    return table(head, rows, len(joints))


def _range(s: slice) -> str:
    size = s.stop - s.start
    return "" if not size else f"{s.start}" if size == 1 else f"{s.start} … {s.stop - 1}"


def _limit(x: float) -> object:
    return float(x) if np.isfinite(x) else ""
