"""What goes wrong in a singular position: the equations that depend on each other there, and not around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from linkwright.base.locks import cached_property
from linkwright.constraints import inertial
from linkwright.constraints.central import CentralEquations
from linkwright.constraints.central_layout import CentralLayout
from linkwright.mechanism.description import Description
from linkwright.mechanism.topology import span
from linkwright.mechanism.tree import Tree
from linkwright.tape.program import Program

Floats = NDArray[np.float64]
#: A pivot below this part of its row's size makes a position singular, or next to it: about the square of an angle.
NEAR = 1e-5
#: How far, in joint coordinates, one looks around, and how much larger a pivot must be there.
AROUND, LARGER = 0.03, 30.0
#: Constraints with less than this part of the largest share in a dependence are not named.
SHARE = 1e-3


def singular(description: Description, q: Floats, t: float = 0.0) -> list[tuple[str, str]]:
    """The constraints that become dependent at the tree's coordinates q, each with its direction in words.

    ("joint 'C'", "meeting along f") of joints that close loops, ties, gears and drivers; of the tree's own joints only
    if no other has a share. Equations that are redundant everywhere around are not told; nothing if q is regular.
    """
    return _Position(description, t).told(np.asarray(q, dtype=np.float64))


class _Position:
    def __init__(self, description: Description, t: float) -> None:
        # Rotors give way and take no freedom; those of spherical and free joints have no equations.
        description = replace(description, armature=np.zeros(description.nj))
        self.tree = Tree(description, span(description))
        self.layout = CentralLayout(CentralEquations(self.tree), whole=True)
        self.e = self.layout.equations
        self.t = t
        self.timed = bool(description.drivers)

    @cached_property
    def inputs(self) -> list[tuple[str, tuple[int, ...]]]:
        return [("q", (self.tree.coordinates.nq,)), *([("t", ())] if self.timed else [])]

    @cached_property
    def _dependence(self) -> Program:
        return inertial.dependence(self.layout, self.inputs)

    @cached_property
    def _closing(self) -> Program:
        # Drivers would lead back to where they are now; the mechanism goes elsewhere without them.
        undriven = replace(self.tree.description, drivers=())
        layout = CentralLayout(CentralEquations(Tree(undriven, self.tree.topology)))
        return inertial.closing(layout, self.inputs[:1])

    def _ask(self, q: Floats, tolerance: float, direction: Floats) -> dict[str, Floats]:
        clock = (self.t,) if self.timed else ()
        program = self._dependence
        found = program(q, *clock, np.array([tolerance]), direction)
        return dict(zip((b.name for b in program.outputs), found, strict=True))

    def told(self, q: Floats) -> list[tuple[str, str]]:
        none = np.zeros(self.e.count)
        there = self._ask(q, NEAR, none)
        lost = np.flatnonzero(there["pivots"] <= NEAR)
        if not len(lost):
            return []
        # The same equations need not be lost around here, but as many are if they are redundant everywhere.
        around = np.array([self._pivots(self._beside(q, seed)) for seed in range(3)]).max(axis=0)
        rows = [k for k in lost if around[k] > max(NEAR, LARGER * abs(there["pivots"][k]))]
        shares: dict[int, float] = {}
        for k in rows:
            unit = none.copy()
            unit[k] = 1.0
            dependence = (unit - self._ask(q, NEAR, unit)["found"]) * np.sqrt(there["sizes"][: self.e.count])
            share = np.abs(dependence) / np.abs(dependence).max()
            for row in np.flatnonzero(share > SHARE).tolist():
                shares[row] = max(shares.get(row, 0.0), float(share[row]))
        return self._named(sorted(shares, key=lambda row: -shares[row]))

    def _pivots(self, q: Floats) -> Floats:
        return self._ask(q, inertial.RANK_TOLERANCE, np.zeros(self.e.count))["pivots"]

    def _beside(self, q: Floats, seed: int) -> Floats:
        """A closed position not far away."""
        rng, x = np.random.default_rng(seed), self.tree.coordinates
        q = self._moved(q, AROUND * rng.choice([-1.0, 1.0], x.nv) * rng.uniform(0.5, 1.0, x.nv))
        for _ in range(10):
            dv, phi = self._closing(q)
            size = float(np.abs(dv).max(initial=0.0))
            if not size < 1.0 or np.abs(phi).max(initial=0.0) < 1e-12:
                break
            q = self._moved(q, dv)
        return q

    def _moved(self, q: Floats, dv: Floats) -> Floats:
        x, moved = self.tree.coordinates, q.copy()
        for i, kind in enumerate(self.tree.kinds):
            if not x.follows[i] and kind.nv:
                at, rates = int(x.q_at[i]), int(x.v_at[i])
                own = kind.integrate(q[at : at + kind.nq], dv[rates : rates + kind.nv])
                moved[at : at + kind.nq] = np.asarray(own, dtype=np.float64)
        return moved

    def _named(self, rows: Sequence[int]) -> list[tuple[str, str]]:
        kept = set(self.e.kept_rows)
        chosen = [row for row in rows if row in kept] or list(rows)
        found = [(str(c), about) for c, about in map(self.e.equation, chosen)]
        return list(dict.fromkeys(found))
