"""Which constraint equations of a closed mechanism repeat others, the motions that they allow, and loops that
rounded numbers leave open.

A loop may ask for the same thing twice everywhere (a planar loop of revolute joints, Bennett's linkage), or only in a
singular position (a parallelogram laid flat). The size of a pivot at one state does not tell these apart; assembled
positions nearby do. Gauss and Newton's method leads to them, over the spanning tree's coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import outside
from linkwright.base.arrays import Floats
from linkwright.constraints.nearest_mechanism import Poses, closing_mechanism
from linkwright.constraints.newton import GAPS, MISFIT
from linkwright.errors import LinkwrightWarning
from linkwright.model.body_motion import body_states
from linkwright.model.description import Description
from linkwright.model.placements import coordinate_units
from linkwright.spatial.algebra import Array
from linkwright.spatial.rotation import euler_parameters_matrix

if TYPE_CHECKING:
    from linkwright.dynamics.requests import RequestRules
    from linkwright.mechanism import Mechanism

#: A singular value of G below this part of the largest counts as zero.
MOTION_RANK = 1e-9
#: Where the square of an angle between equations is less, a position is singular: rounding errors of derivatives are
#: about 1e-16 over it.
SINGULAR = 1e-8


def constraint_jacobian(mech: Mechanism, q: Floats, t: Any = 0.0) -> tuple[Floats, Floats]:
    """G (..., m, nv) and Φ_t (..., m): the constraints' rates are G v + Φ_t."""
    nv = mech.nv
    batch = q.shape[:-1]
    if not mech.closed:
        return np.zeros((*batch, 0, nv)), np.zeros((*batch, 0))
    units = mech.programs.rate_units
    still = np.zeros((*batch, len(mech.programs.constraint_units)))
    if mech.programs.needs_time:
        still = mech.auxiliary.weighed.kernels.velocity_projection(q, np.zeros((*batch, nv)), t)[1]
        # Rates as fast as what drivers ask for, so that these do not swallow them.
        pace = float(np.max(np.abs(still) / mech.programs.constraint_units, initial=0.0, where=np.isfinite(still)))
        units = units * (pace or 1.0)
    every = np.broadcast_to(q[..., None, :], (*batch, nv, q.shape[-1]))
    when = t if np.ndim(t) == 0 else np.broadcast_to(np.asarray(t)[..., None], (*batch, nv))
    _, rates = mech.auxiliary.weighed.kernels.velocity_projection(
        every, np.broadcast_to(np.diag(units), (*batch, nv, nv)), when
    )
    return np.swapaxes(rates - still[..., None, :], -1, -2) / units, still


def inverse(mech: Mechanism, g: Floats) -> Floats:
    """(..., nv, m): the generalised inverse of G with the least change of rates, shifts counted in its length."""
    pseudoinverse = np.linalg.pinv(mech.programs.without_units(g), rcond=MOTION_RANK)
    return np.asarray(pseudoinverse * mech.programs.rate_units[:, None] / mech.programs.constraint_units)


def allowed(mech: Mechanism, g: Floats) -> tuple[Floats, Floats]:
    """Z (nv, d): a basis of the rates with G v = 0 for one state, and P (d, nv) with P Z = 1.

    Z is orthonormal where shifts are counted in the mechanism's length, so that it is the same in every unit; what P
    leaves out of rates is perpendicular to it in that sense.
    """
    nv = g.shape[1]
    if not g.shape[0]:
        return np.eye(nv), np.eye(nv)
    _, sizes, directions = np.linalg.svd(mech.programs.without_units(g))
    rank = int(np.sum(sizes > MOTION_RANK * max(sizes.max(initial=0.0), 1e-300)))
    free, units = np.asarray(directions[rank:].T), mech.programs.rate_units
    return units[:, None] * free, free.T / units


#: Φ (S, m) and G (S, m, nv) of positions (S, n): equations by their scales, rates by their units, so that all of them
#: are plain numbers; and the positions reached from some by rates.
Evaluate = Callable[[Floats], tuple[Floats, Floats]]
Move = Callable[[Floats, Floats], Floats]

#: How far from the drawing positions are looked for, in radians and parts of the mechanism's size; and how many
#: anywhere else, if none of these can be assembled.
NEAR, FAR = (0.1, 0.2, 0.05), 16
#: Singular values below this part of the largest are none, in positions that are assembled to rounding.
RANK = 1e-7
#: Singular values that a step of Gauss and Newton leaves out: gaps of rounded numbers must not drive it along what is
#: free.
CUT = 1e-4
#: A position is assembled when its gap, as a part of the mechanism's size, is below this, or when it is as near as it
#: can be and the gap is below `MISFIT`.
CLOSED = 1e-10
ROUNDS, LONGEST = 20, 0.5
#: The most equations that are eliminated together: code grows with their cube.
TOGETHER = 40


@dataclass(frozen=True, eq=False)
class Position:
    """G at an assembled position, and the gap that rounded numbers leave there."""

    g: Floats
    gap: float

    def rank(self, rows: Sequence[int]) -> int:
        """How many of these equations are independent."""
        if not len(rows):
            return 0
        sizes = np.linalg.svd(self.g[list(rows)], compute_uv=False)
        return int(np.sum(sizes > max(RANK, GAPS * self.gap) * self.largest))

    @property
    def largest(self) -> float:
        return float(np.sqrt(np.max(np.sum(self.g**2, axis=1), initial=1e-300)))


class Redundancy:
    """The ranks of a mechanism's equations at regular positions; unknown where none could be assembled."""

    def __init__(self, positions: Sequence[Position]) -> None:
        self.positions = tuple(positions)

    @classmethod
    def of_arrays(cls, arrays: Sequence[Floats]) -> Redundancy:
        """What `arrays` gave numbers of."""
        gaps, *jacobians = arrays
        return cls([Position(g, gap) for g, gap in zip(jacobians, gaps.tolist(), strict=True)])

    def arrays(self) -> list[Floats]:
        """The gaps of the positions, and G of each."""
        return [np.array([p.gap for p in self.positions]), *(p.g for p in self.positions)]

    @property
    def gap(self) -> float:
        """What rounded numbers leave open in redundant loops, as a part of the mechanism's size."""
        return max((p.gap for p in self.positions), default=0.0)

    def rank(self, rows: Sequence[int]) -> int:
        """How many of these equations are independent at regular positions; 0 where that is not known."""
        return max((p.rank(rows) for p in self.positions), default=0)

    def rates(self, rows: Sequence[int]) -> int:
        """How many rates take part in these equations: no more of them can be independent."""
        if not self.positions:
            return len(rows)
        return int(np.sum(np.any([np.any(p.g[list(rows)] != 0.0, axis=0) for p in self.positions], axis=0)))

    def groups(self, blocks: Sequence[Sequence[int]]) -> list[list[int]]:
        """The numbers of blocks of equations, put together where some repeat what others of them ask.

        What a block repeats of itself is its own matter. Of each dependence only what goes beyond that counts.
        """
        together = list(range(len(blocks)))
        for a, b in self._shared(blocks):
            old, new = together[b], together[a]
            if sum(len(blocks[k]) for k, x in enumerate(together) if x in (old, new)) <= TOGETHER:
                together = [new if x == old else x for x in together]
        return [[k for k, x in enumerate(together) if x == name] for name in dict.fromkeys(together)]

    def _shared(self, blocks: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
        """Pairs of blocks that take part in one dependence."""
        rows = [row for block in blocks for row in block]
        if not self.positions or sum(map(self.rank, blocks)) == self.rank(rows):
            return []
        position = max(self.positions, key=lambda p: p.rank(rows))
        beyond = []
        for block in blocks:  # orthonormal combinations of a block's equations that are independent
            u, _, _ = np.linalg.svd(position.g[list(block)])
            beyond.append(u[:, : position.rank(block)])
        g = np.concatenate([u.T @ position.g[list(b)] for u, b in zip(beyond, blocks, strict=True)])
        u, _, _ = np.linalg.svd(g)
        null = u[:, position.rank(rows) :]
        ends = np.cumsum([0, *(b.shape[1] for b in beyond)])
        share = null @ null.T
        sizes = [
            [float(np.abs(share[i0:i1, j0:j1]).max(initial=0.0)) for j0, j1 in pairwise(ends)]
            for i0, i1 in pairwise(ends)
        ]
        count = range(len(blocks))
        return [(a, b) for a in count for b in count if a < b and sizes[a][b] > 1e-6]


class Blocks:
    """The equations of a mechanism in the blocks in which they are eliminated: one per constraint, or one for several
    that repeat each other's equations.

    Ranks are `certain` for the model's own numbers; where parameters are left free, others may repeat more.
    """

    def __init__(self, ranks: Redundancy, sizes: Sequence[int], *, certain: bool = True) -> None:
        self.certain = certain
        first = np.cumsum([0, *sizes]).tolist()
        rows = [list(range(i, j)) for i, j in pairwise(first)]
        self.ranks, self.sizes = ranks, list(sizes)
        self.groups = ranks.groups(rows)  # the numbers of the constraints in each block
        self.rows = [[row for k in group for row in rows[k]] for group in self.groups]

    def rank(self, block: int, before: Sequence[int]) -> int | None:
        """How many equations of a block are independent of each other and of the blocks before; None if unknown."""
        if not self.ranks.positions:
            return None
        earlier = [row for k in before for row in self.rows[k]]
        return self.ranks.rank([*earlier, *self.rows[block]]) - self.ranks.rank(earlier)

    def alike(self, other: Blocks) -> bool:
        """Whether both are eliminated in the same blocks, with the same ranks."""
        if self.groups != other.groups:
            return False
        blocks = range(len(self.groups))
        before = [(k, some) for k in blocks for some in ([], *([j] for j in blocks), [j for j in blocks if j != k])]
        same = all(self.rank(k, some) == other.rank(k, some) for k, some in before)
        most = ([min(x.most(k), len(x.rows[k])) for k in blocks] for x in (self, other))
        return same and next(most) == next(most)

    def most(self, block: int) -> int:
        """The most of a block's equations that can be independent anywhere."""
        return self.ranks.rates(self.rows[block])

    def split(self, values: Sequence[Array]) -> list[Array]:
        """Numbers of the equations of each block, by constraints."""
        parts: dict[int, Array] = {}
        for group, value in zip(self.groups, values, strict=True):
            ends = np.cumsum([0, *(self.sizes[k] for k in group)]).tolist()
            parts.update({k: value[i:j] for k, (i, j) in zip(group, pairwise(ends), strict=True)})
        return [parts[k] for k in range(len(self.sizes))]


def redundancy(evaluate: Evaluate, move: Move, q: Floats, driven: NDArray[np.bool_], rates: int) -> Redundancy:
    """What positions around q show; equations of drivers, whose laws would lead back, are not met there."""
    rng = np.random.default_rng(0)
    signs, parts = rng.choice([-1.0, 1.0], (len(NEAR) + FAR, rates)), rng.uniform(0.5, 1.0, (len(NEAR) + FAR, rates))
    amounts = np.concatenate([NEAR, rng.uniform(0.3, np.pi, FAR)])
    starts = move(np.tile(q, (len(amounts), 1)), amounts[:, None] * signs * parts)
    phi, g = evaluate(np.concatenate([q[None], starts[:1]]))
    here = Position(g[0], float(np.abs(phi[0, ~driven]).max(initial=0.0)))
    if here.gap <= MISFIT and np.isfinite(g[0]).all():
        # Equations that are zero everywhere are no matter. If the others are independent here, they are around.
        some = np.flatnonzero(np.any(g != 0.0, axis=(0, 2))).tolist()
        if here.rank(some) == len(some):
            return Redundancy([Position(g[0], 0.0)])
    positions = assembled_positions(evaluate, move, starts[: len(NEAR)], driven)
    positions = positions or assembled_positions(evaluate, move, starts[len(NEAR) :], driven)
    closed = [p for p in positions if not p.gap]
    return Redundancy(closed if 2 * len(closed) >= len(positions) else [p for p in positions if p.gap])


def assembled_positions(evaluate: Evaluate, move: Move, q: Floats, driven: NDArray[np.bool_]) -> list[Position]:
    """The assembled positions nearest to each of these (S, n), as far as there are."""
    positions: list[Position] = []
    for _ in range(ROUNDS):
        phi, g = evaluate(q)
        finite = np.isfinite(phi).all(axis=1) & np.isfinite(g).all(axis=(1, 2))
        q, phi, g = q[finite], phi[finite][:, ~driven], g[finite]
        step = -(np.linalg.pinv(g[:, ~driven], rcond=CUT) @ phi[..., None])[..., 0]
        gap, size = np.abs(phi).max(axis=1, initial=0.0), np.abs(step).max(axis=1, initial=0.0)
        closed = (gap <= CLOSED) & (size <= 1e-6)
        ended = closed | (size <= 1e-11)
        for k in np.flatnonzero(ended & (gap <= MISFIT)):
            positions.append(Position(g[k], 0.0 if closed[k] else float(gap[k])))
        q, step = q[~ended], step[~ended] * np.minimum(1.0, LONGEST / size[~ended])[:, None]
        if not len(q):
            break
        q = move(q, step)
    return positions


@dataclass(frozen=True)
class Actuation:
    """How many actuators there are, the degrees of freedom, and how many of these the actuators reach; at regular
    positions."""

    actuators: int
    freedom: int
    reached: int


def actuation(factory: RequestRules) -> Actuation:
    """What positions around the drawing show; ranks that are not known count as none."""
    actuated, nv = factory.actuated, len(factory.rate_units)
    every = range(sum(c.form.size for c in factory.loop_constraints))
    rank, reached = factory.redundancy.rank(every), 0
    for position in factory.redundancy.positions:
        allowed_rates = np.linalg.svd(position.g)[2][rank:]
        sizes = np.linalg.svd(allowed_rates[:, actuated], compute_uv=False)
        reached = max(reached, int(np.sum(sizes > RANK)))
    return Actuation(int(actuated.sum()), nv - rank, reached)


#: At an angle θ from a singular position, a gap ε lets rates err by about ε/θ². Motion is unsure where θ² is below so
#: many times the gap.
UNSURE = 30.0
#: The arrays of joint frames.
FRAMES = ("ri", "pi", "rj", "pj")


UNCERTAIN = "the motion is the nearest to all constraints, and uncertain near singular positions; give more digits"


@dataclass(frozen=True, eq=False)
class NearestClosed:
    """The mechanism that is used in place of another, and what a person should know of that."""

    mechanism: Mechanism
    note: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        return (self.note,) if self.note else ()


def nearest_closed(mech: Mechanism) -> NearestClosed:
    """The mechanism itself where its loops close; else the nearest one whose loops do, if it is within rounding."""
    return _nearest(mech, mech.programs.gap) if mech.programs.gap else NearestClosed(mech)


def with_free(mech: Mechanism, free: Collection[str]) -> NearestClosed:
    """The same for programs that leave parameters free; a mechanism whose joint frames these set stays as it is."""
    nearest = mech.auxiliary.nearest
    bound = {name for (array, _), law in mech.description.bindings.items() if array in FRAMES for name in law.names()}
    if nearest.mechanism is mech or bound.isdisjoint(free):
        return nearest
    return NearestClosed(mech, f"{_open(mech.programs.gap)}, and free parameters set joint frames: {UNCERTAIN}")


def warned(nearest: NearestClosed) -> Mechanism:
    """The mechanism that is used; where it has a note, a warning of it: for answers that have no status."""
    if nearest.note:
        warn(f"{nearest.mechanism.name!r}: {nearest.note}", LinkwrightWarning, stacklevel=outside())
    return nearest.mechanism


def _open(gap: float) -> str:
    return f"redundant loops are open by {gap:.1g} of the mechanism's size, by rounded numbers"


def _nearest(mech: Mechanism, gap: float) -> NearestClosed:
    text = _open(gap)
    changed = _description(mech)
    if changed is not None:
        near = type(mech)(changed)
        if not near.programs.gap:
            moved = _moved(mech.description, changed)
            return NearestClosed(
                near,
                f"{text}: joint frames were moved by at most {moved:.1g} (rad, or of that size) to close",
            )
    return NearestClosed(mech, f"{text}: {UNCERTAIN}")


def _description(mech: Mechanism) -> Description | None:
    """The nearest description whose joints close their loops; the other constraints take no part."""
    d = mech.description
    factory = type(mech.programs)(
        replace(d, mimics=(), point_constraints=(), drivers=(), elements=(), initial=(), bindings={})
    )
    if not factory.closed or not factory.gap:
        return None
    rank = factory.redundancy.rank(range(sum(c.form.size for c in factory.loop_constraints)))
    rank += sum(6 - kind.nv for kind in factory.tree.kinds)
    drawn = body_states(factory.description, factory.drawn)
    turns = np.moveaxis(euler_parameters_matrix(drawn[:, 3:].T), -1, 0)
    bodies = Poses(turns, drawn[:, :3] / d.length_scale)
    near = closing_mechanism(factory.description, bodies, rank, factory.gap)
    return None if near is None else replace(d, ri=near.ri, pi=near.pi, rj=near.rj, pj=near.pj)


def _moved(d: Description, other: Description) -> float:
    shifts = [np.abs(getattr(d, name) - getattr(other, name)).max() / d.length_scale for name in ("pi", "pj")]
    turns = [np.abs(getattr(d, name) - getattr(other, name)).max() for name in ("ri", "rj")]
    return float(max(*shifts, *turns))


def unsure(mech: Mechanism, q: Floats, t: Floats) -> NDArray[np.bool_]:
    """(S,): at which states of a motion a gap of rounded numbers leaves open how it goes on.

    These are beside a singular position, or nearer to one than the step that leads on from there.
    """
    gap = mech.programs.gap if mech.closed else 0.0
    ranks = mech.programs.redundancy if gap else None
    rank = ranks.rank(range(sum(c.form.size for c in mech.programs.loop_constraints))) if ranks is not None else 0
    if ranks is None or not rank:
        return np.zeros(len(q), bool)
    g = mech.programs.without_units(constraint_jacobian(mech, q, t)[0])
    regular = float(_least(np.array([position.g for position in ranks.positions]), rank).max())
    angle = _least(np.where(np.isfinite(g), g, 0.0), rank) / regular
    step = np.max(np.abs(np.diff(q, axis=0)) / coordinate_units(mech.tree)[0], axis=1, initial=0.0)
    return np.asarray((angle**2 < UNSURE * gap) | (angle < np.append(step, 0.0)))


def _least(g: Floats, rank: int) -> Floats:
    """(S,): the last singular value that counts of G (S, m, nv)."""
    return np.asarray(np.linalg.svd(g, compute_uv=False)[:, rank - 1], dtype=np.float64)
