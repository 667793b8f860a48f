"""Joint coordinates and rates, found from how the bodies of a solution move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.types import Floats
from linkwright.mechanism.description import GROUND
from linkwright.mechanism.kinds import JointKind
from linkwright.mechanism.topology import span
from linkwright.mechanism.tree import Coordinates, Tree
from linkwright.results.places import Motion, turned, turned_back
from linkwright.results.whole_turns import TURN, References, angle_references, near
from linkwright.spatial.algebra import cross, point_acceleration, point_velocity
from linkwright.spatial.rotation import euler_parameters_matrix, quaternion_product

if TYPE_CHECKING:
    from linkwright.results.solution import Solution

#: Rates count turns where accelerations explain them to half a turn, and they lead to a tenth of a turn (rad).
EXPLAINED, REACHED = 0.5 * TURN, 0.1 * TURN


def tree_coordinates(solution: Solution) -> tuple[Floats, Floats]:
    """q (T, nq) and v (T, nv) of the spanning tree."""
    d = solution.description
    topology = span(d)
    x: Coordinates = Tree(d, topology).coordinates
    q, v = np.zeros((len(solution), x.nq)), np.zeros((len(solution), x.nv))
    own = np.flatnonzero(~x.follows)
    for number in np.unique(d.kind[topology.joint[own]]):
        at = own[d.kind[topology.joint[own]] == number]
        found_q, found_v = joint_coordinates(solution, topology.joint[at])
        q[:, x.q_at[at, None] + np.arange(len(found_q))] = np.moveaxis(found_q, 0, -1)
        v[:, x.v_at[at, None] + np.arange(len(found_v))] = np.moveaxis(found_v, 0, -1)
    return q, v


def tree_accelerations(solution: Solution) -> Floats:
    """(T, nv): how the rates of the spanning tree change."""
    d = solution.description
    topology = span(d)
    x: Coordinates = Tree(d, topology).coordinates
    a = np.zeros((len(solution), x.nv))
    own = np.flatnonzero(~x.follows)
    for number in np.unique(d.kind[topology.joint[own]]):
        at = own[d.kind[topology.joint[own]] == number]
        found = joint_motion(solution, topology.joint[at])[2]
        a[:, x.v_at[at, None] + np.arange(len(found))] = np.moveaxis(found, 0, -1)
    return a


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
    ratio = np.where(x.follows[at], x.ratio[at], 1.0)[:, None]
    q = states.q[:, x.q_at[at, None] + np.arange(kind.nq)]
    q = np.where(x.follows[at, None], q * ratio + x.offset[at, None], q)
    v, a = (y[:, x.v_at[at, None] + np.arange(kind.nv)] * ratio for y in (states.v, states.a))
    return np.moveaxis(q, -1, 0), np.moveaxis(v, -1, 0), np.moveaxis(a, -1, 0)


def joint_coordinates(solution: Solution, joints: NDArray[Any]) -> tuple[Floats, Floats]:
    """(nq, T, n) and (nv, T, n): coordinates and rates of n joints of one kind."""
    return joint_motion(solution, joints)[:2]


def joint_motion(solution: Solution, joints: NDArray[Any]) -> tuple[Floats, Floats, Floats]:
    """(nq, T, n), (nv, T, n) and (nv, T, n): coordinates, rates and accelerations of n joints of one kind.

    Whole turns are those of drivers, initial values and gears (`angle_references`). Else the first angle is in
    (−π, π]; from there it is accumulated over turns, as many as rates and accelerations say where these agree, else the
    fewest. A screw's shift tells its turns at every time.
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
    said: dict[int, Floats] = {}
    for k in kind.angles:
        columns = [references.get((j, k)) for j in joints.tolist()]
        if any(x is not None for x in columns):
            nothing = np.full((len(solution), 1), np.nan)
            said[k] = np.concatenate([nothing if x is None else x for x in columns], axis=1)
    ends = [_carried(solution, bodies) for bodies in (d.parent[joints], d.child[joints])]
    frames = [(_first(r[joints]), p[joints].T) for r, p in ((d.ri, d.pi), (d.rj, d.pj))]
    return relative_motion(kind, ends, frames, d.pitch[joints], solution.time, said)


@dataclass(frozen=True, eq=False)
class Carried:
    """The motion of bodies in ground's axes, components first: e (4, T, n), the others (3, T, n)."""

    e: Floats
    position: Floats
    velocity: Floats
    omega: Floats
    acceleration: Floats
    alpha: Floats

    def accelerations(self, p: Floats) -> tuple[Floats, Floats]:
        """Those of points p (3, n) of the bodies, and the bodies' angular ones."""
        arm = turned(self.e, p)
        return point_acceleration(self.acceleration, self.alpha, self.omega, arm), self.alpha


def relative_motion(
    kind: JointKind,
    ends: Sequence[Carried],
    frames: Sequence[tuple[Floats, Floats]],
    pitch: Floats,
    time: Floats,
    references: Mapping[int, Floats] = MappingProxyType({}),
) -> tuple[Floats, Floats, Floats]:
    """Coordinates, rates and accelerations of n joints of one kind, as `joint_motion` gives them.

    `ends` are the bodies of both sides, `frames` the joints' triads on them: rotations (3, 3, n) and origins (3, n);
    `references` (T, n) of angles, by index, say their whole turns where they are finite.
    """
    (ri, pi), (rj, pj) = frames
    i, j = (Motion(x.e, x.position, x.velocity, x.omega) for x in ends)
    i, j = i.at(ri, pi), j.at(rj, pj)
    # The pose of triad j in triad i, and its relative twist in the axes of j.
    arm = j.position - i.position
    back = i.e * np.array([1.0, -1.0, -1.0, -1.0])[:, None, None]
    e, p = quaternion_product(back, j.e), turned_back(i.e, arm)
    twist = np.concatenate(
        [turned_back(j.e, j.velocity - point_velocity(i.velocity, i.omega, arm)), turned_back(j.e, j.omega - i.omega)]
    )
    full = np.broadcast_to(pitch, e.shape[1:])
    terms = kind.terms_between(euler_parameters_matrix(e), p)
    v = np.einsum("ki...,k...->i...", _trailing(kind.dual(terms, full), twist.ndim - 1), twist)
    q = np.array(kind.coordinates(e, p, full), dtype=np.float64)
    # The twist changes by S a + Ṡ v.
    (ai, alpha_i), (aj, alpha_j) = (x.accelerations(at) for x, at in zip(ends, (pi, pj), strict=True))
    across, relative = j.velocity - i.velocity, j.omega - i.omega
    shifting = aj - ai - cross(alpha_i, arm) - cross(i.omega, across) - cross(j.omega, across - cross(i.omega, arm))
    turning = alpha_j - alpha_i - cross(j.omega, relative)
    change = np.concatenate([turned_back(j.e, shifting), turned_back(j.e, turning)])
    change = change - _trailing(kind.subspace_rate(terms, full, v), twist.ndim - 1, 1)
    a = np.einsum("ki...,k...->i...", _trailing(kind.dual(terms, full), twist.ndim - 1), change)
    if kind.angles:
        known = pitch != 0.0 if kind.name == "screw" else np.zeros(len(pitch), bool)
        for k in kind.angles:
            q[k] = np.where(known, q[k], _accumulated(q[k], v[k], a[k], time, references.get(k)))
    if not kind.paired:
        q[-4:] = _steady_sign(q[-4:])
    return q, v, a


def one_coordinate(solution: Solution) -> list[tuple[str, bool, Floats]]:
    """The joints with one coordinate, in the model's order: name, whether it turns, and coordinate, rate and
    acceleration (3, T)."""
    d = solution.description
    found: dict[int, tuple[str, bool, Floats]] = {}
    for number in np.unique(d.kind):
        joints = np.flatnonzero(d.kind == number)
        kind = d.kind_of(int(joints[0]))
        if kind.nq == 1:
            all_of_it = np.concatenate(joint_motion(solution, joints))
            found |= {
                int(j): (d.joint_names[int(j)], bool(kind.angles), all_of_it[..., k]) for k, j in enumerate(joints)
            }
    return [found[j] for j in sorted(found)]


def _carried(solution: Solution, bodies: NDArray[Any]) -> Carried:
    """The motion of these bodies (−1 is ground)."""
    names = ("orientation", "position", "velocity", "angular_velocity", "acceleration", "angular_acceleration")
    return Carried(*(_of_bodies(solution, name, bodies) for name in names))


def _of_bodies(solution: Solution, quantity: str, bodies: NDArray[Any]) -> Floats:
    """A quantity of these bodies, components first."""
    array = solution.arrays[quantity]
    if (bodies == GROUND).any():
        # Row −1 of a body is ground's, put behind the others.
        still = np.zeros((len(array), 1, array.shape[2]))
        still[..., 0] = quantity == "orientation"
        array = np.concatenate([array, still], axis=1)
    return np.moveaxis(array[:, bodies], -1, 0)


def _first(r: Floats) -> Floats:
    return np.moveaxis(r, 0, -1)


def _trailing(x: Any, axes: int, own: int = 2) -> Any:
    """A matrix (6, nv) or a vector (6,), or one for every time and joint, with `axes` trailing axes."""
    x = np.asarray(x)
    return x.reshape(*x.shape, *(1,) * (axes - (x.ndim - own)))


def _accumulated(angle: Floats, rate: Floats, acceleration: Floats, time: Floats, reference: Floats | None) -> Floats:
    """Angles (T, n) over whole turns: near the reference where there is one, else as they go on from the point before.

    Of all that differ by whole turns, an angle goes on to the one that rates and accelerations lead to.

    Two points tell the turns between them only if the motion is plain there: a rocker seen once in a turn of its crank
    has a rate, and goes nowhere. So the rates must change as the accelerations say, and the angle reached be near one
    that is possible; if not, the fewest turns are taken.
    """
    if not len(time):
        return angle
    step = np.diff(time)[:, None]
    before, after = acceleration[:-1], acceleration[1:]
    expected = step * (0.5 * (rate[1:] + rate[:-1]) + step * (before - after) / 12.0)
    unexplained = step * (np.diff(rate, axis=0) - 0.5 * step * (before + after))
    change = np.diff(angle, axis=0)
    missed = expected - change
    turns = np.round(missed / TURN)
    with np.errstate(invalid="ignore"):  # what is not finite is not plain
        plain = (np.abs(unexplained) < EXPLAINED) & (np.abs(missed - TURN * turns) < REACHED)
    turns = np.where(plain, turns, np.round(-change / TURN))
    turns = np.cumsum(np.where(np.isfinite(turns), turns, 0.0), axis=0)
    angle = np.concatenate([angle[:1], angle[1:] + TURN * turns])
    if reference is None:
        return angle
    return near(angle + near(angle[:1], reference[:1]) - angle[:1], reference)


def _steady_sign(e: Floats) -> Floats:
    """Euler parameters (4, T, n) whose sign does not jump; the first e0 is not negative."""
    if not e.shape[1]:
        return e
    first = np.where(e[0, :1] < 0.0, -1.0, 1.0)
    stays = np.where(np.sum(e[:, 1:] * e[:, :-1], axis=0) < 0.0, -1.0, 1.0)
    return np.asarray(e * np.cumprod(np.concatenate([first, stays]), axis=0))
