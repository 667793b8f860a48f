"""Quantities of bodies and joints, computed from the coordinates or the poses of a solution when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.model.body_motion import QUANTITIES, body_motion, of_ground
from linkwright.model.description import GROUND, Description
from linkwright.model.joint_kinds import JointKind
from linkwright.model.joint_motion import FrameMotion, References, angle_references, relative_motion
from linkwright.model.topology import span
from linkwright.model.tree import Coordinates, Tree

if TYPE_CHECKING:
    from linkwright.results.solution import Solution


class BodyArrays(Mapping[str, Floats]):
    """The quantities of all bodies by name, computed when one is first asked for."""

    def __init__(self, description: Description, q: Floats, v: Floats, a: Floats) -> None:
        self._states = description, q, v, a
        self._motion: dict[str, Floats] | None = None

    def __getitem__(self, name: str) -> Floats:
        if name not in QUANTITIES:
            raise KeyError(name)
        if self._motion is None:
            self._motion = body_motion(*self._states)
        return self._motion[name]

    def __iter__(self) -> Iterator[str]:
        return iter(QUANTITIES)

    def __len__(self) -> int:
        return len(QUANTITIES)


def tree_motion(solution: Solution) -> tuple[Floats, Floats, Floats]:
    """q (T, nq), v (T, nv) and a (T, nv) of the spanning tree, from how its bodies move."""
    d = solution.description
    topology = span(d)
    x: Coordinates = Tree(d, topology).coordinates
    q, v, a = (np.zeros((len(solution), n)) for n in (x.nq, x.nv, x.nv))
    leading = np.flatnonzero(~x.follows)
    kinds = d.kind[topology.joint[leading]]
    for number in np.unique(kinds):
        at = leading[kinds == number]
        parts = joint_motion(solution, topology.joint[at])
        for whole, first, part in zip((q, v, a), (x.q_at, x.v_at, x.v_at), parts, strict=True):
            whole[:, first[at, None] + np.arange(len(part))] = np.moveaxis(part, 0, -1)
    return q, v, a


def _from_states(solution: Solution, joints: NDArray[Any], kind: JointKind) -> tuple[Floats, Floats, Floats] | None:
    """The motion of joints of the spanning tree, where the solution has its coordinates."""
    states = solution.states
    if states is None:
        return None
    topology = span(solution.description)
    x: Coordinates = Tree(solution.description, topology).coordinates
    place = np.full(len(solution.description.kind), -1)
    place[topology.joint] = np.arange(len(topology))
    at = place[joints]
    if (at < 0).any():
        return None
    ratio = x.ratio[at, None]
    q = states.q[:, x.q_at[at, None] + np.arange(kind.nq)]
    q = q * ratio + x.offset[at, None]
    v, a = (y[:, x.v_at[at, None] + np.arange(kind.nv)] * ratio for y in (states.v, states.a))
    return np.moveaxis(q, -1, 0), np.moveaxis(v, -1, 0), np.moveaxis(a, -1, 0)


def joint_motion(solution: Solution, joints: NDArray[Any]) -> tuple[Floats, Floats, Floats]:
    """(nq, T, n), (nv, T, n) and (nv, T, n): coordinates, rates and accelerations of n joints of one kind.

    Whole turns are those of drivers, initial values and gears (`angle_references`). Else the first angle is in
    (−π, π]; from there it is accumulated over turns, as many as rates and accelerations say where these agree, else the
    fewest. A screw's shift determines its turns at every time.
    """
    kind: JointKind = solution.description.kind_of(int(joints[0]))
    known_states = _from_states(solution, joints, kind)
    if known_states is not None:
        return known_states
    return _from_poses(solution, joints, solution.angle_references)


def references_of(solution: Solution) -> References:
    """Near which values (T, 1) the angles of joints are."""
    d = solution.description

    def measured(j: int, reference: Floats | None) -> Floats:
        coordinates = _from_poses(solution, np.array([j]), {} if reference is None else {(j, 0): reference})[0]
        return np.asarray(coordinates[0])

    return angle_references(d, d.parameters, d.gear[None], solution.time, measured)


def _from_poses(solution: Solution, joints: NDArray[Any], references: References) -> tuple[Floats, Floats, Floats]:
    """The motion of n joints of one kind, by how their bodies move."""
    d = solution.description
    kind: JointKind = d.kind_of(int(joints[0]))
    turns: dict[int, Floats] = {}
    for k in kind.angles:
        columns = [references.get((j, k)) for j in joints.tolist()]
        if any(x is not None for x in columns):
            nothing = np.full((len(solution), 1), np.nan)
            turns[k] = np.concatenate([nothing if x is None else x for x in columns], axis=1)
    ends = [_body_motion(solution, bodies) for bodies in (d.parent[joints], d.child[joints])]
    frames = [(np.moveaxis(r[joints], 0, -1), p[joints].T) for r, p in ((d.ri, d.pi), (d.rj, d.pj))]
    return relative_motion(kind, ends, frames, d.pitch[joints], solution.time, turns)


def one_coordinate(solution: Solution) -> list[tuple[str, bool, Floats]]:
    """The joints with one coordinate, in the model's order: name, whether it turns, and coordinate, rate and
    acceleration (3, T)."""
    d = solution.description
    motions: dict[int, tuple[str, bool, Floats]] = {}
    for number in np.unique(d.kind):
        joints = np.flatnonzero(d.kind == number)
        kind = d.kind_of(int(joints[0]))
        if kind.nq == 1:
            rows = np.concatenate(joint_motion(solution, joints))
            motions |= {int(j): (d.joint_names[int(j)], bool(kind.angles), rows[..., k]) for k, j in enumerate(joints)}
    return [motions[j] for j in sorted(motions)]


def _body_motion(solution: Solution, bodies: NDArray[Any]) -> FrameMotion:
    """The motion of these bodies (−1 is ground)."""

    def quantity(name: str) -> Floats:
        array = solution.arrays[name]
        if (bodies == GROUND).any():
            # Row −1 of a body is ground's, put behind the others.
            array = np.concatenate([array, np.moveaxis(of_ground(name, len(array), 1), 0, -1)], axis=1)
        return np.moveaxis(array[:, bodies], -1, 0)

    return FrameMotion.of(quantity)
