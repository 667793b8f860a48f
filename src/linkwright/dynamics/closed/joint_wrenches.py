r"""How reactions of closed mechanisms are recorded: Newton and Euler's equations of the links with the multipliers of
their constraints, in straight code.

Where constraints repeat each other, λ + N y are the multipliers of the same motion, the columns of N being a basis of
what Gᵀ takes to zero, block by block. Those are taken for which Σ |force|² + |moment/L|² over all joints, rods and
point constraints is least (`joint_reactions`): a tree joint's wrench is f − (what N y brings to it) less its part
along the joint's freedom, (1 − T Sᵀ) f, so that y solves a small system of full rank.

The answer is NaN where straight code does not tell it: beside singular positions, and where more equations are
independent than at the positions that ranks were counted at. `joint_reactions` answers there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from linkwright.dynamics import recording_context as gears
from linkwright.dynamics.closed.closed_recorders import accelerations, blocks_of, constraints_of, geometric, moving
from linkwright.dynamics.closed.constraint_space import ROUNDING, carried, gradient
from linkwright.dynamics.closed.loop_constraints import ConstraintAtState, together
from linkwright.dynamics.closed.redundancy import SINGULAR
from linkwright.dynamics.methods import newton_euler
from linkwright.dynamics.recording_context import RecordingContext
from linkwright.dynamics.requests import RequestRules
from linkwright.dynamics.traversals.traversal import Unrolled, add_to
from linkwright.model.joint_kinds import bearing_loads
from linkwright.model.topology import reacting_bodies
from linkwright.spatial.algebra import Array, Limit, Pivoted, cross, dot, is_zero, swept
from linkwright.tape.block import maximum, minimum, where

#: Squares of angles between constraints that straight code takes: the answer's rounding errors are about 1e-16 over
#: them.
REGULAR = 1e-6


def joint_wrenches(context: RecordingContext) -> Array:
    """(nb + loops, 6) as `Mechanism.reactions`; NaN where `joint_reactions` has to be asked."""
    factory = context.factory
    a, multipliers = accelerations(context)
    t = moving(context)
    constraints, blocks = constraints_of(context, t), blocks_of(context)
    grouped = together(constraints, blocks.groups)
    g = [gradient(t, constraint) for constraint in grouped]
    k = geometric(context, t, grouped, g, blocks)
    pushes = list(context.elements.loop_pushes())
    wrenches: dict[int, Array] = {}
    held = [(handle, columns @ x) for c, x in zip(constraints, multipliers, strict=True) for handle, columns in c.ends]
    for handle, wrench in [*held, *(end for _, ends in pushes for end in ends)]:
        own = handle.on_own_link
        if own.position >= 0:
            add_to(wrenches, own.position, own.inward(wrench))
    applied = context.applied(loops=False, more=wrenches.items())
    t = context.traversal(a=a)
    newton_euler.joint_forces(t, context.gravity, wrenches=applied)
    through = _without_gears(context, t, constraints, multipliers)
    certain: Any = k.least > REGULAR
    repeating = [b for b, rows in enumerate(blocks.rows) if (blocks.rank(b, ()) or 0) < len(rows)]
    if repeating:
        least = _Least(t, context.parameters, context.inputs["size"])
        for b in repeating:
            some = [(constraints[n], multipliers[n]) for n in blocks.groups[b]]
            least.add(some, k.k[b, b] if (b, b) in k.k else np.zeros((len(g[b]), len(g[b]))), blocks.rank(b, ()) or 0)
        changes, through = least.solved(through)
        certain = where(least.pivot > REGULAR, certain, 0.0)
        certain = where(least.further <= SINGULAR, certain, 0.0)
        for b, change in zip(repeating, changes, strict=True):
            ends = np.cumsum([0, *(blocks.sizes[n] for n in blocks.groups[b])]).tolist()
            for n, first, last in zip(blocks.groups[b], ends, ends[1:], strict=False):
                multipliers[n] = multipliers[n] + change[first:last]
    rows = [link.frame.inward(f) for link, f in zip(t.links, through, strict=True)]
    rows += _of_loops(factory, t, constraints, multipliers, pushes)
    with np.errstate(invalid="ignore"):
        return np.array([[where(certain, x, np.nan) for x in row] for row in rows])


def _without_gears(
    context: RecordingContext, t: Unrolled, constraints: Sequence[ConstraintAtState], multipliers: Sequence[Array]
) -> list[Array]:
    """The wrench of each tree joint on its link, at the link frame, without those of gears."""
    laws = dict(context.elements.tree_laws) if context.factory.coupled else {}
    geared: list[tuple[int, int, Any]] = []
    for c, constraint, x in zip(context.factory.loop_constraints, constraints, multipliers, strict=True):
        for d in constraint.direct:
            push = dot(d.row, x)
            add_to(laws, (d.position, d.index), push)
            if c.group in ("gear", "coupling"):
                geared.append((d.position, d.index, push))
    wrenches = gears.without_gears(t, gears.gear_forces(t, laws))
    for i, index, push in geared:
        link = t.links[i]
        along = np.array([push if k == index else 0.0 for k in range(link.kind.nv)])
        wrenches[i] = wrenches[i] - link.joint_wrench(t.rows[i]["terms"], along)
    return wrenches


def _of_loops(
    factory: RequestRules,
    t: Unrolled,
    constraints: Sequence[ConstraintAtState],
    multipliers: Sequence[Array],
    pushes: Sequence[tuple[int, Any]],
) -> list[Array]:
    """The wrenches of the joints that close loops, with those of their drivers and forces."""
    positions = {int(b): i for i, b in enumerate(factory.topology.body)}
    d = factory.description
    reacting = dict(reacting_bodies(d, factory.topology)[t.n :])
    side = {joint: int(d.child[joint] != body) for joint, body in reacting.items()}
    total: dict[int, Array] = {}
    for c, constraint, x in zip(factory.loop_constraints, constraints, multipliers, strict=True):
        joint = c.source.joints[0] if c.source.joints else -1
        if c.group in ("joint", "driver") and joint in reacting:
            handle, columns = constraint.ends[side[joint]]
            add_to(total, joint, handle.on_own_link.inward(columns @ x))
    for joint, ends in pushes:
        handle, push = ends[side[joint]]
        add_to(total, joint, handle.on_own_link.inward(push))
    rows = []
    for joint, body in reacting.items():
        rows.append(t.links[positions[body]].frame.inward(total.get(joint, np.zeros(6))))
    return rows


class _Least:
    """The changes of multipliers of some blocks that make the wrenches of all joints least."""

    def __init__(self, traversal: Unrolled, parameters: Mapping[str, Any], size: Any) -> None:
        self.t, self.parameters, self.size = traversal, parameters, size
        self.bases: list[Array] = []  # N of each block
        self.at_joints: list[dict[int, Array]] = []  # what multipliers of a block bring to joints of the tree
        self.on_loops: list[list[tuple[Array, Array]]] = []  # the wrench of each constraint, and its columns
        self.pivot: Any = 1.0  # the least of the pivots of independent equations, as a part of its size
        self.further: Any = 0.0  # the largest of those of others; the rank is larger here if that is not nothing

    def add(self, some: Sequence[tuple[ConstraintAtState, Array]], k: Array, rank: int) -> None:
        """A block of constraints and their multipliers, with its part of G Gᵀ."""
        constraint = together([c for c, _ in some], [list(range(len(some)))])[0]
        self.bases.append(self._null(k, rank))
        self.at_joints.append(carried(self.t, [(handle.on_own_link, columns) for handle, columns in constraint.ends]))
        first, loops = 0, []
        for c, x in some:
            columns = _at_last_frame(c)
            loops.append((columns @ x, _widened(columns, first, len(k))))
            first += c.size
        self.on_loops.append(loops)

    def _null(self, k: Array, rank: int) -> Array:
        """A basis, in columns, of what a semidefinite K of known rank takes to zero; the columns of some are zero."""
        count = len(k)
        rows = [n for n in range(count) if not is_zero(k[n][n])]
        if len(rows) == rank:
            return np.eye(count)[:, [n for n in range(count) if n not in rows]]
        scales = np.array([k[n][n] if n in rows else 1.0 for n in range(count)])
        pivots = Pivoted(k, scales, [Limit(ROUNDING, scales)] * (rank + 1))
        self.pivot = minimum(self.pivot, pivots.least(rank))
        self.further = maximum(self.further, pivots.steps[rank].part)
        steps = pivots.steps[:rank]
        columns = []
        for n in range(count):
            vector: dict[int, Any] = dict.fromkeys(rows, 0.0)
            if n not in rows:
                columns.append(np.eye(count)[n])
                continue
            vector[n] = 1.0
            for step in steps:
                vector[n] = where(step.chosen[n], 0.0, vector[n])
            for step in reversed(steps):
                part = dot([step.share[m] for m in rows], [vector[m] for m in rows])
                vector = {m: where(step.chosen[m], vector[m] - part, x) for m, x in vector.items()}
            columns.append(np.array([vector.get(m, 0.0) for m in range(count)]))
        return np.stack(columns, axis=1)

    def solved(self, through: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """The change of each block's multipliers, and the wrenches through the tree's joints with them."""
        widths = [basis.shape[1] for basis in self.bases]
        ends = np.cumsum([0, *widths]).tolist()
        count = ends[-1]
        m: list[list[Any]] = [[0.0] * count for _ in range(count)]
        right: list[Any] = [0.0] * count
        for now, columns in self._wrenches(through, ends):
            active = [k for k in range(count) if any(not is_zero(x) for x in columns[:, k])]
            for i in active:
                right[i] = right[i] - dot(columns[:, i], now)
                for j in active:
                    if i <= j:
                        m[i][j] = m[j][i] = m[i][j] + dot(columns[:, i], columns[:, j])
        matrix, wanted = np.array(m).reshape(count, count), np.array(right)
        inverse, _ = swept(matrix, np.diagonal(matrix), ROUNDING)
        y = inverse @ wanted
        y = y + inverse @ (wanted - matrix @ y)
        changes = [basis @ y[i:j] for basis, i, j in zip(self.bases, ends, ends[1:], strict=False)]
        wrenches = list(through)
        for at, change in zip(self.at_joints, changes, strict=True):
            for i, columns in at.items():
                if i >= 0:
                    wrenches[i] = wrenches[i] - columns @ change
        return changes, wrenches

    def _wrenches(self, through: Sequence[Array], ends: Sequence[int]) -> Iterator[tuple[Array, Array]]:
        """Every wrench that multipliers change, with its columns for y; moments count as forces at the size."""

        def wide(columns: Array, b: int) -> Array:
            return _widened(columns @ self.bases[b], ends[b], ends[-1])

        for b, loops in enumerate(self.on_loops):
            for now, columns in loops:
                yield self._sized(now[:, None])[:, 0], self._sized(wide(columns, b))
        for i in sorted({i for at in self.at_joints for i in at if i >= 0}):
            link, terms = self.t.links[i], self.t.rows[i]["terms"]
            if link.kind.nv == 6:
                continue
            parts = [wide(at[i], b) for b, at in enumerate(self.at_joints) if i in at]
            columns = np.concatenate([through[i][:, None], -sum(parts[1:], parts[0])], axis=1)
            if link.kind.nv:  # what the joint's own forces do along its freedom is not counted
                columns = bearing_loads(link.subspace(terms), link.dual(terms), columns)
            origin = self._last_origin(i)
            moments = [x[3:] - cross(origin, x[:3]) for x in columns.T]
            sized = self._sized(np.concatenate([columns[:3], np.stack(moments, axis=1)]))
            yield sized[:, 0], sized[:, 1:]

    def _sized(self, columns: Array) -> Array:
        return np.concatenate([columns[:3], columns[3:] / self.size])

    def _last_origin(self, i: int) -> Array:
        """The origin, in the axes of a tree joint's link, of the last of the joint's frames that is on a body."""
        joint = int(self.t.tree.topology.joint[i])
        (_, _, first), (position, _, second) = self.t.tree.joint_frames(joint, self.parameters)
        if position in (i, -1):
            return np.asarray(first if position < 0 else second)
        x = self.t.links[i].transform(self.t.rows[i]["terms"])  # the joint's child carries the link
        return np.asarray(x.rotation.outward(second - x.p))


def _at_last_frame(constraint: ConstraintAtState) -> Array:
    """The wrenches (6, m) of a constraint's equations at the last of its frames that is on a body."""
    (second, columns), (first, others) = constraint.ends
    if second.on_own_link.position >= 0:
        return columns
    return first.way[-1].inward_columns(others)


def _widened(columns: Array, before: int, count: int) -> Array:
    """Columns among `count`, the others zero."""
    left, right = (np.zeros((len(columns), n)) for n in (before, count - before - columns.shape[1]))
    return np.concatenate([left, columns, right], axis=1)
