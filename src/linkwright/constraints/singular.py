"""What goes wrong in a singular position: the equations that depend on each other there, and not around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.constraints.inertial import CentralLayout, jacobian, position_correction
from linkwright.constraints.masses import CentralEquations
from linkwright.constraints.newton import GAPS
from linkwright.model.description import Description
from linkwright.model.frames import coordinate_units
from linkwright.model.topology import span
from linkwright.model.tree import Tree
from linkwright.tape.program import Program

#: How far, in joint coordinates (rad, or parts of the mechanism's length), one looks around, and how much smaller the
#: least singular value of the equations must be than there.
AROUND, SMALLER = 0.03, 0.1
#: Singular values below this part of the largest are none, in positions that are assembled to rounding.
RANK = 1e-8
#: Constraints with less than this part of the largest share in a dependence are not named.
SHARE = 1e-3
#: The largest Jacobian, in entries, whose singular values are computed.
DENSE = 2_000_000


def singular(description: Description, q: Floats, t: float = 0.0) -> list[tuple[str, str]]:
    """The constraints that become dependent at the tree's coordinates q, each with its direction in words.

    ("joint 'C'", "meeting along f") of loop constraints, gears and drivers; of the tree's own joints only
    if no other has a share. Equations that are redundant everywhere around are left out; nothing if q is regular.
    """
    return _Position(description, t).dependent(np.asarray(q, dtype=np.float64))


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
    def _jacobian(self) -> Program:
        return jacobian(self.layout, self.inputs)

    @cached_property
    def _undriven(self) -> CentralLayout:
        # Drivers would lead back to where they are now; the mechanism goes elsewhere without them.
        undriven = replace(self.tree.description, drivers=())
        return CentralLayout(CentralEquations(Tree(undriven, self.tree.topology)))

    @cached_property
    def _correction(self) -> Program:
        return position_correction(self._undriven, self.inputs[:1])

    def dependent(self, q: Floats) -> list[tuple[str, str]]:
        if self.e.count * self.e.nb * self.layout.width > DENSE:
            return []
        here, _ = self._equations(q, 0.0)
        around = [self._equations(*self._beside(q, seed)) for seed in range(3)]
        around = [x for x in around if np.isfinite(x[0]).all()]
        if not around or not np.isfinite(here).all():
            return []
        left, sizes, _ = np.linalg.svd(here)
        most = max(rank for _, rank in around)
        # Equations that are redundant everywhere are no matter: the rank is the same here. Their number is the same
        # around, though not which of them repeat which.
        beside, _ = max((x for x in around if x[1] == most), key=lambda x: float(_sizes(x[0])[most - 1]))
        least = float(_sizes(beside)[most - 1]) if most else 0.0
        rank = int(np.sum(sizes > SMALLER * least))
        if rank >= most:
            return []
        null, regular = left[:, rank:], np.linalg.svd(beside)[0][:, most:]
        # Of the dependences here those count that are farthest from the dependences beside.
        _, _, turned = np.linalg.svd(null - regular @ (regular.T @ null))
        lost = np.abs(null @ turned[: most - rank].T)
        share = (lost / lost.max(axis=0)).max(axis=1)
        return self._named([int(row) for row in np.argsort(-share, kind="stable") if share[row] > SHARE])

    def _equations(self, q: Floats, gap: float) -> tuple[Floats, int]:
        """J in the metric of the masses, each equation by its own size, and how many are independent."""
        stored = self._jacobian(q, *((self.t,) if self.timed else ()))
        e, width = self.e, self.layout.width
        j = np.zeros((e.count, e.nb, width))
        for x in self.layout.incidences:
            first, end = int(e.first[x.constraint]), int(e.first[x.constraint + 1])
            j[first:end, x.body] = stored[x.at : x.at + (end - first) * width].reshape(-1, width)
        rows = (j * np.sqrt(e.masses.inverse[: e.nb])).reshape(e.count, -1)
        scale = np.sqrt(np.sum(rows * rows, axis=1, keepdims=True))
        rows = rows / np.where(scale > 0.0, scale, 1.0)
        if not np.isfinite(rows).all():
            return rows, 0
        sizes = _sizes(rows)
        return rows, int(np.sum(sizes > max(RANK, GAPS * gap) * sizes.max(initial=0.0)))

    def _beside(self, q: Floats, seed: int) -> tuple[Floats, float]:
        """An assembled position not far away, and the gap that is left there, as a part of the mechanism's size."""
        rng, x = np.random.default_rng(seed), self.tree.coordinates
        units, arms = coordinate_units(self.tree)[1], self._undriven.equations.kept_arms() / self.e.size
        q = self._moved(q, AROUND * units * rng.choice([-1.0, 1.0], x.nv) * rng.uniform(0.5, 1.0, x.nv))
        for _ in range(10):
            dv, phi = self._correction(q)
            size, gap = (float(np.max(np.abs(x), initial=0.0)) for x in (dv / units, phi * arms))
            if not size < 1.0 or gap < 1e-12:
                break
            q = self._moved(q, dv)
        return q, gap

    def _moved(self, q: Floats, dv: Floats) -> Floats:
        x, moved = self.tree.coordinates, q.copy()
        for i, kind in enumerate(self.tree.kinds):
            if not x.follows[i] and kind.nv:
                at, rates = int(x.q_at[i]), int(x.v_at[i])
                moved_joint = kind.integrate(q[at : at + kind.nq], dv[rates : rates + kind.nv])
                moved[at : at + kind.nq] = np.asarray(moved_joint, dtype=np.float64)
        return moved

    def _named(self, rows: Sequence[int]) -> list[tuple[str, str]]:
        besides_tree = set(self.e.kept_rows)
        chosen = [row for row in rows if row in besides_tree] or list(rows)
        named = [(str(c), about) for c, about in map(self.e.equation, chosen)]
        return list(dict.fromkeys(named))


def _sizes(j: Floats) -> Floats:
    return np.asarray(np.linalg.svd(j, compute_uv=False))
