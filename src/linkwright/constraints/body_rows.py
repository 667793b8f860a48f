"""How the rows of bodies stand for their states: in space, or in a plane where all bodies move in one.

Rows are origins (3), axes, twists [ẋ; ω] and wrenches [f; l], ω and l in the body's own axes. In a plane, which is then
z = constant, axes are a cosine and a sine, and of twists and wrenches there are x, y and what turns about z.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.model.element_steps import BodyFrame
from linkwright.model.frames import axis_frame, snapped
from linkwright.model.tree import Tree
from linkwright.spatial.algebra import Array, cross, wrench_at

#: Axes within this sine of each other are parallel.
PARALLEL = 1e-12


@dataclass(frozen=True)
class Space:
    """The numbers that a body's rows have."""

    motion: int  # numbers of a twist or a wrench
    turn: int  # numbers of its axes
    components: tuple[int, ...]  # of a twist or wrench in space

    def axes(self, row: Array) -> Array:
        """R of a row."""
        if self.turn == 9:
            return row.reshape(3, 3)
        c, s = row
        return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])

    def row(self, r: Array) -> Array:
        """The row of R."""
        return r.reshape(-1) if self.turn == 9 else np.array([r[0, 0], r[1, 0]])

    def whole(self, motion: Array) -> Array:
        """A twist or wrench with all six numbers."""
        if self.motion == 6:
            return motion
        x, y, turn = motion
        return np.array([x, y, 0.0, 0.0, 0.0, turn])

    def part(self, motion: Array) -> Array:
        """The numbers that count of a twist or wrench."""
        return motion if self.motion == 6 else np.array([motion[k] for k in self.components])


@dataclass(frozen=True)
class CentralFrame(BodyFrame):
    """A frame on a body in rows of a space, whose twist and wrenches have their linear part in the axes of `world`."""

    space: Space
    world: Floats  # the axes of the rows' ground, in ground's own

    @property
    def velocity(self) -> Array:
        return self.w[:3] + self.r @ cross(self.w[3:], self.p)

    def wrench(self, force: Array, moment: Array) -> Array:
        turned = wrench_at(self.r.T @ force, self.r.T @ moment, self.p)
        return self.space.part(np.concatenate([force, turned[3:]]))

    def to_ground(self, vector: Array) -> Array:
        return self.world @ vector

    def from_ground(self, vector: Array) -> Array:
        return self.world.T @ vector


SPATIAL = Space(6, 9, (0, 1, 2, 3, 4, 5))
PLANAR = Space(3, 2, (0, 1, 5))


def plane(tree: Tree) -> tuple[Floats, Floats] | None:
    """The normal of the plane in which a tree's joints let its bodies move: in ground, and (nb, 3) in every body.

    None if there is no such plane. What else holds the bodies does not matter: it cannot move them out of it.
    """
    t = tree.topology
    kinds = [tree.description.kind_of(int(j)).name for j in t.joint]
    if not {"revolute", "planar"} & set(kinds) or set(kinds) - {"revolute", "planar", "prismatic", "fixed"}:
        return None
    r_up, _, r_own, _ = tree.sides(slice(None))
    rotations = np.empty((tree.n, 3, 3))  # of the bodies, where all coordinates are zero
    normal: Floats | None = None
    for i, kind in enumerate(kinds):
        up = rotations[t.parent[i]] if t.parent[i] >= 0 else np.eye(3)
        axes_here = up @ r_up[i]
        rotations[i] = axes_here @ r_own[i].T
        if kind in ("revolute", "planar"):
            normal = axes_here[:, 2] if normal is None else normal
            if np.abs(cross(normal, axes_here[:, 2])).max() > PARALLEL:
                return None
    assert normal is not None
    axes = [rotations[i] @ r_own[i][:, 2] for i, kind in enumerate(kinds) if kind == "prismatic"]
    if any(abs(float(axis @ normal)) > PARALLEL for axis in axes):
        return None
    normal = snapped(normal * (1.0 if normal[int(np.argmax(np.abs(normal)))] > 0.0 else -1.0))
    in_bodies = np.empty((tree.n, 3))
    in_bodies[t.body] = snapped(np.einsum("nji,j->ni", rotations, normal))
    return normal, in_bodies


def facing(normal: Floats) -> Floats:
    """A rotation whose third column is the normal; none if that is z already."""
    return np.eye(3) if normal[2] == 1.0 else axis_frame(normal)
