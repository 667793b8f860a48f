"""The nearest mechanism whose redundant loops close: joint frames moved by as little as their numbers are rounded.

Loops that repeat each other's equations close in every position only if the mechanism's numbers fit together. Numbers
typed with a few digits do not quite, and near a singular position no choice of equations tells the motion that was
meant from others. So the frames of joints are moved by the least δ with which the loops close in positions all around:

    J_k V_k + P_k δ = −Φ_k  in every position k,      N_kᵀ P_k δ = −N_kᵀ Φ_k,   N_kᵀ J_k = 0

Φ_k are the equations of all joints, J_k their rates by the twists of the bodies, P_k those by the twists of the joints'
frames, and N_k has as many columns as equations are redundant in regular positions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints.constraint_forms import SCREW_BY_SHIFT, Form, at_many, joint
from linkwright.constraints.newton import GAPS, MISFIT
from linkwright.model.description import Description
from linkwright.spatial.algebra import skew
from linkwright.spatial.rotation import exponential, quaternion_matrix

#: Walks away from the first position, there and back: the length of a step (rad, or parts of the mechanism's size), the
#: steps of all walks one way, and the most walks.
STEP, STEPS, WALKS = 0.3, 12, 4
#: Singular positions are looked for where the least singular value is below this part of the largest, and are taken
#: where the gap is at most so many times that of regular ones; the change by which slopes are measured.
NEAR, LOST, DIFFERENCE = 0.1, 10.0, 1e-6
#: A position is regular where the equations that should be independent are so by so many times what the others are.
APART = 10.0
#: Gaps below this part of the mechanism's size are rounding.
EXACT = 1e-12
#: Singular positions nearer to each other than this are one.
SAME = 0.03
ROUNDS = 12
#: How far frames may be moved, as a multiple of the gap.
FAR = 30.0
#: The most numbers in the Jacobian of one position.
DENSE = 250_000


@dataclass(frozen=True, eq=False)
class Poses:
    """Rotations (..., 3, 3) and origins (..., 3) of frames; lengths are parts of the mechanism's size."""

    r: Floats
    p: Floats

    def __getitem__(self, k: Any) -> Poses:
        return Poses(self.r[k], self.p[k])

    def __matmul__(self, other: Poses) -> Poses:
        return Poses(self.r @ other.r, self.p + np.einsum("...ij,...j->...i", self.r, other.p))

    @property
    def inverse(self) -> Poses:
        r = np.swapaxes(self.r, -1, -2)
        return Poses(r, -np.einsum("...ij,...j->...i", r, self.p))

    @property
    def adjoint(self) -> Floats:
        """(..., 6, 6): takes twists in this frame to those of its parent frame; linear first."""
        zero = np.zeros_like(self.r)
        across = np.moveaxis(skew(np.moveaxis(self.p, -1, 0)), (0, 1), (-2, -1))
        return np.block([[self.r, across @ self.r], [zero, self.r]])

    def moved(self, twist: Floats) -> Poses:
        """Moved by twists (..., 6) in their own axes."""
        e = np.moveaxis(np.asarray(exponential(np.moveaxis(twist[..., 3:], -1, 0))), 0, -1)
        turn = np.moveaxis(np.asarray(quaternion_matrix(np.moveaxis(e, -1, 0))), (0, 1), (-2, -1))
        return self @ Poses(turn, twist[..., :3])


class Geometry:
    """The joints of a mechanism between bodies, with frames that may be moved; lengths as parts of its size."""

    def __init__(self, d: Description) -> None:
        self.d, self.size = d, d.length_scale
        joints = [j for j in range(d.nj) if d.kind_of(j).nv < 6]
        self.joints = sorted(joints, key=lambda j: int(d.kind[j]))  # those of one kind are evaluated together
        self.first = Poses(d.ri[self.joints], d.pi[self.joints] / self.size)
        self.second = Poses(d.rj[self.joints], d.pj[self.joints] / self.size)
        self.ends = d.parent[self.joints].astype(int), d.child[self.joints].astype(int)
        kinds = [d.kind_of(j).name for j in self.joints]
        self.groups = [(_form(name), [n for n, k in enumerate(kinds) if k == name]) for name in dict.fromkeys(kinds)]
        self.count = sum(form.size * len(members) for form, members in self.groups)

    def equations(self, bodies: Poses) -> tuple[Floats, Floats, Floats]:
        """Φ (m,), J (m, 6 nb) by the bodies' twists, P (m, 12 n) by those of the joints' frames, all in own axes."""
        nb, n = len(bodies.p), len(self.joints)
        every = Poses(np.concatenate([bodies.r, np.eye(3)[None]]), np.concatenate([bodies.p, np.zeros((1, 3))]))
        a, b = self.ends  # ground, −1, is the last
        pose = (every[a] @ self.first).inverse @ (every[b] @ self.second)
        by_first, to_second = -pose.inverse.adjoint, self.second.inverse.adjoint
        to_first = by_first @ self.first.inverse.adjoint
        phi, j, p = np.zeros(self.count), np.zeros((self.count, nb + 1, 6)), np.zeros((self.count, n, 2, 6))
        end = 0
        for form, members in self.groups:
            pitch = self.d.pitch[[self.joints[k] for k in members]] / self.size
            numbers = pitch[:, None][:, : form.numbers]
            value, jacobian = at_many(form, pose.r[members], pose.p[members], numbers)
            for k, member in enumerate(members):
                rows = slice(end, end := end + form.size)
                phi[rows] = value[k]
                p[rows, member, 0], p[rows, member, 1] = jacobian[k] @ by_first[member], jacobian[k]
                j[rows, a[member]] += jacobian[k] @ to_first[member]
                j[rows, b[member]] += jacobian[k] @ to_second[member]
        return phi, j[:, :nb].reshape(self.count, -1), p.reshape(self.count, -1)

    def move_frames(self, change: Floats) -> None:
        """Move the joints' frames by twists (12 n,), each in its own axes."""
        twists = change.reshape(len(self.joints), 2, 6)
        self.first, self.second = self.first.moved(twists[:, 0]), self.second.moved(twists[:, 1])

    @property
    def description(self) -> Description:
        """The mechanism with the frames as they are now."""
        ri, pi, rj, pj = (np.array(x) for x in (self.d.ri, self.d.pi, self.d.rj, self.d.pj))
        ri[self.joints], pi[self.joints] = self.first.r, self.first.p * self.size
        rj[self.joints], pj[self.joints] = self.second.r, self.second.p * self.size
        return replace(self.d, ri=ri, pi=pi, rj=rj, pj=pj)


@dataclass(frozen=True, eq=False)
class Position:
    """A position of the bodies, and how many of the equations are independent in it."""

    bodies: Poses
    rank: int
    normal: Floats | None = None  # of a singular position, the combination of equations that is lost there

    def moved(self, twists: Floats) -> Position:
        return replace(self, bodies=self.bodies.moved(twists.reshape(-1, 6)))


class Split:
    """The equations at one position: Φ, P, and J = U S Vᵀ, of which `rank` singular values count."""

    def __init__(self, geometry: Geometry, x: Position) -> None:
        self.phi, self.j, self.p = geometry.equations(x.bodies)
        self.rank = x.rank
        self.u, self.s, self.vt = np.linalg.svd(self.j)
        self.gap = float(np.abs(self.phi).max())

    def solve(self, right: Floats) -> Floats:
        """The least twists V with J V = r."""
        return np.asarray(self.vt[: self.rank].T @ ((self.u[:, : self.rank].T @ right) / self.s[: self.rank]))

    @property
    def redundant(self) -> Floats:
        """N: the combinations of equations that the bodies' twists do not change."""
        return self.u[:, self.rank :]

    @property
    def free(self) -> Floats:
        """The twists that the equations leave free, in rows."""
        return self.vt[self.rank :]

    @property
    def least(self) -> float:
        """The least singular value of those that count."""
        return float(self.s[self.rank - 1])

    def regular(self, gap: float) -> bool:
        beyond = float(self.s[self.rank]) if self.rank < len(self.s) else 0.0
        return self.least > APART * max(beyond, gap)


def closing_mechanism(d: Description, bodies: Poses, rank: int, gap: float) -> Description | None:
    """The nearest mechanism whose loops close all around a position, or None if none is within rounding.

    `bodies` are poses in which the loops are closed but for `gap`, a part of the mechanism's size. So many of the
    joints' equations as `rank` are independent in regular positions. Positions that are singular but for the gap are
    made so.
    """
    geometry = Geometry(d)
    if not 0 < rank < 6 * d.nb or rank >= geometry.count or geometry.count * 6 * d.nb > DENSE:
        return None
    positions = _walks(geometry, Position(bodies, rank), gap)
    total = np.zeros(12 * len(geometry.joints))
    for _ in range(ROUNDS if positions else 0):
        splits = [Split(geometry, x) for x in positions]
        left = max(split.gap for split in splits)
        if left <= EXACT:
            return geometry.description
        matrix = np.concatenate([split.redundant.T @ split.p for split in splits])
        right = np.concatenate([split.redundant.T @ split.phi for split in splits])
        change = -np.linalg.lstsq(matrix, right, rcond=min(max(GAPS * left, 1e-9), 1e-2))[0]
        total += change
        if not np.abs(total).max() <= FAR * gap:
            return None
        geometry.move_frames(change)
        twists = [-split.solve(split.phi + split.p @ change) for split in splits]
        positions = [x.moved(w) for x, w in zip(positions, twists, strict=True)]
        positions = [x if x.normal is None else _singular(geometry, x, 1) or x for x in positions]
    return None


def _walks(geometry: Geometry, start: Position, gap: float) -> list[Position]:
    """Positions all around: regular ones, and singular ones between them; as nearly closed as they can be."""
    rng = np.random.default_rng(0)
    positions: list[Position] = []
    start, split = _closed(geometry, start)
    if split is None:
        return []
    freedoms = len(split.free)
    walks = min(freedoms, WALKS)
    for along in rng.standard_normal((walks, freedoms)) @ split.free:
        for sign in (1.0, -1.0):
            x, at, way = start, split, sign * along
            for _ in range(max(4, STEPS // walks)):
                way = at.free.T @ (at.free @ way)
                way = way / max(np.abs(way).max(), 1e-300)
                x, following = _closed(geometry, x.moved(STEP * way))
                if following is None:
                    break
                if following.least < NEAR * split.s[0]:
                    lost = _singular(geometry, replace(x, rank=x.rank - 1, normal=following.u[:, x.rank - 1]))
                    if lost is not None and _is_new(lost, positions) and Split(geometry, lost).gap <= LOST * gap:
                        positions.append(lost)
                at = following
                if at.regular(gap):
                    positions.append(x)
    return positions


def _is_new(x: Position, positions: list[Position]) -> bool:
    """Whether a singular position is none of those that are known."""
    known = [y.bodies for y in positions if y.normal is not None]
    return all(np.abs(y.p - x.bodies.p).max() + np.abs(y.r - x.bodies.r).max() > SAME for y in known)


def _closed(geometry: Geometry, x: Position) -> tuple[Position, Split | None]:
    """The nearest position in which the equations hold as well as they can; None for the second if they do not."""
    for _ in range(8):
        split = Split(geometry, x)
        step = -split.solve(split.phi)
        if not np.abs(step).max() < 2.0:
            return x, None
        if np.abs(step).max() < 1e-9:
            break
        x = x.moved(step)
    return x, split if split.gap <= 10.0 * MISFIT else None


def _singular(geometry: Geometry, x: Position, rounds: int = 10) -> Position | None:
    """The singular position near another: there a combination n of the equations has no rate, nᵀ J V = 0.

    V are the twists that the other equations leave free. Newton's method on nᵀ J V, with its slopes by differences.
    """
    for _ in range(rounds):
        split = Split(geometry, x)
        free = split.free
        assert x.normal is not None
        normal = split.redundant @ (split.redundant.T @ x.normal)
        normal = normal / np.linalg.norm(normal)
        rate = normal @ split.j @ free.T
        slopes = np.zeros((len(free), len(free)))
        for k, way in enumerate(free):
            ahead = geometry.equations(x.moved(DIFFERENCE * way).bodies)[1]
            slopes[k] = (normal @ ahead @ free.T - rate) / DIFFERENCE
        slopes = 0.5 * (slopes + slopes.T)
        step = -split.solve(split.phi) - free.T @ np.linalg.lstsq(slopes, rate, rcond=1e-3)[0]
        size = float(np.abs(step).max())
        if not size < 0.7:
            return None
        x = replace(x.moved(step), normal=normal)
        if size < 1e-7:
            return x
    return x if rounds == 1 else None


def _form(kind: str) -> Form:
    return SCREW_BY_SHIFT if kind == "screw" else joint(kind)
