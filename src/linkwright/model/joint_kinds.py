"""Joint kinds: each one object that knows its transform, motion subspace, velocity product and coordinates.

A joint joins frame i of its parent body to frame j of its child; axes are the frames' h (z) axes. Everything is
written over any scalar. `motion(q, ...)` gives what the recursions need of one configuration; twists are
those of frame j relative to frame i, in the axes of frame j.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.errors import ModelError
from linkwright.spatial.algebra import Array
from linkwright.spatial.rotation import (
    Chain,
    General,
    Rotation,
    Turn,
    euler_parameters_matrix,
    exponential,
    left_jacobian_inverse_times,
    left_jacobian_times,
    logarithm,
    normalised,
    quaternion_matrix,
    quaternion_product,
)
from linkwright.tape.block import arctan2, equal, floor, where


def _unit(k: int) -> list[float]:
    return [1.0 if i == k else 0.0 for i in range(6)]


@dataclass(frozen=True)
class Measure:
    """A coordinate read off a pose: a shift, or an angle by numbers along its cosine and sine."""

    shift: Any = None
    cosine: Any = None
    sine: Any = None


_POINT = ("meeting along f", "meeting along g", "meeting along h")
_TILT = ("h axes parallel, about g", "h axes parallel, about f")
_NO_TURN = "no turn about h"
_PERPENDICULAR = "h axes perpendicular"


def bearing_loads(subspace: Array, dual: Array, loads: Array) -> Array:
    """(..., 6, n): what the bearing surfaces of a joint carry of its loads (..., 6, n), all but the drive along its own
    freedom: f − T Sᵀ f, with S and T (..., 6, nv)."""
    return np.asarray(loads - dual @ (np.swapaxes(subspace, -1, -2) @ loads))


class JointKind:
    """One kind of joint. `selects` names the twist components that it frees, if they are always the same."""

    name: str = ""
    nq: int = 0
    nv: int = 0
    selects: tuple[int, ...] | None = ()
    steady: bool = True  # its motion subspace is constant in the child's axes
    turns: bool = False  # its first coordinate is an angle about z, which the link frame may absorb
    paired: bool = True  # its rates are the derivatives of its coordinates; if not, its last four are Euler parameters
    angles: tuple[int, ...] = ()  # the coordinates that are angles, known from a pose but for whole turns
    #: Its transform as a product: Rx Ry Rz turns, Tx Ty Tz shifts, Hz a screw, each by a coordinate of its own; "Rx-" a
    #: quarter turn back about x, by none. A spherical joint's angles are yaw, pitch and roll: Rz Ry Rx.
    parts: tuple[str, ...] = ()

    @property
    def lengths(self) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
        """Which of its coordinates, and which of its rates, are lengths and not turns."""
        if self.paired:
            shifts = tuple(k not in self.angles for k in range(self.nq))
            return shifts, shifts
        return (True,) * (self.nq - 4) + (False,) * 4, (True,) * (self.nv - 3) + (False,) * 3

    def terms(self, q: Array, pitch: Any) -> Array:
        """The functions of q that the other methods take in its place, so that none is computed twice."""
        return q

    def rotation(self, terms: Array) -> Rotation:
        """The axes of frame j in frame i."""
        return Chain(())

    def shift(self, terms: Array, pitch: Any) -> Array:
        """The origin of frame j in frame i."""
        return np.zeros(3)

    def subspace(self, terms: Array, pitch: Any) -> Array:
        """S (6, nv): the twist is S v."""
        return np.array([_unit(k) for k in self.selects or ()]).reshape(-1, 6).T

    def subspace_rate(self, terms: Array, pitch: Any, v: Array) -> Array:
        """Ṡ v."""
        return np.zeros(6)

    def complement(self, terms: Array, pitch: Any) -> Array:
        """Q (6, 6 − nv): the wrenches Q n that the joint holds, Qᵀ S = 0."""
        return np.array([_unit(k) for k in range(6) if k not in (self.selects or ())]).reshape(-1, 6).T

    def dual(self, terms: Array, pitch: Any) -> Array:
        """T (6, nv) with Tᵀ S = 1: the wrench T tau has the joint forces tau, Tᵀ takes a twist S v to v."""
        return self.subspace(terms, pitch)

    def terms_between(self, r: Array, p: Array) -> Array:
        """The terms of a pose of frame j in frame i, as far as twists and wrenches need them."""
        return np.zeros(0)

    def coordinates(self, e: Array, p: Array, pitch: Any) -> Array:
        """q of a pose of frame j in frame i (Euler parameters, origin); angles in (−π, π], a screw's by its shift."""
        r = euler_parameters_matrix(e)
        q = [self.coordinate(k, r, p, pitch) for k in range(self.nq)]
        return np.array(q).reshape(self.nq, *np.shape(p)[1:])

    def coordinate(self, index: int, r: Array, p: Array, pitch: Any) -> Any:
        """One of `coordinates` at a pose of frame j in frame i (axes, origin), where they are angles and shifts."""
        measure = self.measures(r, p)[index]
        if measure.shift is not None:
            return measure.shift
        return self.through(arctan2(measure.sine, measure.cosine), p, pitch)

    def through(self, angle: Any, p: Array, pitch: Any) -> Any:
        """An angle about h with its whole turns, as far as the origin of frame j in frame i tells them."""
        return angle

    def gap(self, r: Array, p: Array) -> Array:
        """Numbers that are zero where frame j, at this pose in frame i, can be joined to it.

        With poses r (3, 3, ...) and p (3, ...), for each of these.
        """
        names = self.equation_names
        numbers = [p[k] for k, name in enumerate(_POINT) if name in names]
        if _NO_TURN in names:
            numbers += [r[i, j] - float(i == j) for i in range(3) for j in range(3)]
        elif _TILT[0] in names:
            numbers += [r[0, 2], r[1, 2], r[2, 2] - 1.0]
        elif _PERPENDICULAR in names:
            numbers += [r[2, 2]]
        return np.array(numbers)

    #: What each of `equations` is about, in words.
    equation_names: tuple[str, ...] = ()

    def equations(self, r: Array, p: Array, pitch: Any, turned: Any) -> Array:
        """6 − nv independent numbers, zero where frame j at this pose in frame i is joined to it.

        `turned` is the angle about h, through all its turns; screws alone use it. Directions enter by products of
        axes, as in paper 3, which vanish for opposite axes too: `gap` tells these apart.
        """
        numbers = dict(zip((*_POINT, *_TILT), (*p, r[0, 2], r[1, 2]), strict=True))
        numbers |= {_NO_TURN: r[1, 0], _PERPENDICULAR: r[2, 2]}
        return np.array([numbers[name] for name in self.equation_names])

    def measures(self, r: Array, p: Array) -> tuple[Measure, ...]:
        """Its coordinates at a pose that joins the frames, where they are angles and shifts."""
        return tuple(_measure(part, r, p) for part in self.parts) if self.paired else ()

    def rate(self, q: Array, v: Array) -> Array:
        """q̇."""
        return v

    def neutral(self) -> Array:
        """The coordinates at which the frames coincide (or are nearest to it)."""
        return np.zeros(self.nq)

    def neutral_rotation(self) -> Floats:
        """The axes of frame j in frame i at the neutral coordinates: the same, but for universal joints."""
        return np.asarray(self.rotation(self.terms(self.neutral(), 0.0)).matrix(), dtype=np.float64)

    def checked(self, q: Array, joint: str) -> Array:
        """Coordinates given for a joint of this name, made exact: Euler parameters have unit length."""
        return q

    def integrate(self, q: Array, dv: Array) -> Array:
        """The coordinates reached from q by the twist coordinates dv held for a unit of time."""
        return q + dv

    def difference(self, q0: Array, q1: Array) -> Array:
        """The dv that integrates q0 to q1."""
        return q1 - q0

    def turning(self, v: Array) -> Array:
        """K (nv, nv) of δ' = δv − K δ for a state moved by a small twist δ: rates may be seen from axes that turn."""
        return np.zeros((self.nv, self.nv))


class _Turning(JointKind):
    """Kinds whose first coordinate is an angle about h; `terms` begin with its cosine and sine."""

    turns, angles = True, (0,)

    def rotation(self, terms: Array) -> Rotation:
        return Turn(2, terms[0], terms[1])


class _Sliding(JointKind):
    """Kinds with a shift along h, the last of the `terms`."""

    def shift(self, terms: Array, pitch: Any) -> Array:
        return np.array([0.0 * terms[-1], 0.0 * terms[-1], terms[-1]])


class Fixed(JointKind):
    """No motion."""

    name = "fixed"
    equation_names = (*_POINT, *_TILT, _NO_TURN)


class Revolute(_Turning):
    """One angle about h."""

    name, nq, nv, selects = "revolute", 1, 1, (5,)
    parts = ("Rz",)
    equation_names = (*_POINT, *_TILT)

    def terms(self, q: Array, pitch: Any) -> Array:
        return np.array([np.cos(q[0]), np.sin(q[0])])


class Prismatic(_Sliding):
    """One shift along h."""

    name, nq, nv, selects = "prismatic", 1, 1, (2,)
    parts = ("Tz",)
    equation_names = (*_POINT[:2], *_TILT, _NO_TURN)


class Screw(_Turning, _Sliding):
    """One angle about h, with a shift of `pitch` (m/rad) along it."""

    name, nq, nv, selects = "screw", 1, 1, None
    parts = ("Hz",)
    equation_names = (*_POINT[:2], *_TILT, "shift as the screw turns")

    def terms(self, q: Array, pitch: Any) -> Array:
        return np.array([np.cos(q[0]), np.sin(q[0]), pitch * q[0]])

    def subspace(self, terms: Array, pitch: Any) -> Array:
        zero = 0.0 * pitch
        return np.array([[zero], [zero], [pitch], [zero], [zero], [1.0 + zero]])

    def complement(self, terms: Array, pitch: Any) -> Array:
        across = np.array([_unit(k) for k in (0, 1, 3, 4)]).T
        return np.concatenate([across, np.array([[0.0, 0.0, 1.0, 0.0, 0.0, -pitch]]).T], axis=1)

    def dual(self, terms: Array, pitch: Any) -> Array:
        return REVOLUTE.subspace(terms, pitch)

    def through(self, angle: Any, p: Array, pitch: Any) -> Any:
        # The shift tells the whole turns, unless the pitch is zero.
        flat = equal(pitch, 0.0)
        by_shift = p[2] / where(flat, 1.0, pitch)
        turns = floor((by_shift - angle) / (2.0 * np.pi) + 0.5)
        return angle + where(flat, 0.0, 2.0 * np.pi * turns)

    def equations(self, r: Array, p: Array, pitch: Any, turned: Any) -> Array:
        return np.array([*CYLINDRICAL.equations(r, p, pitch, turned), p[2] - pitch * turned])


class Cylindrical(_Turning, _Sliding):
    """An angle about h and a shift along it."""

    name, nq, nv, selects = "cylindrical", 2, 2, (5, 2)
    parts = ("Rz", "Tz")
    equation_names = (*_POINT[:2], *_TILT)

    def terms(self, q: Array, pitch: Any) -> Array:
        return np.array([np.cos(q[0]), np.sin(q[0]), q[1]])


class Universal(JointKind):
    """An angle about the parent's h, then one about the child's h; at zero the f axes coincide, h_j = g_i."""

    name, nq, nv, selects, steady, angles = "universal", 2, 2, None, False, (0, 1)
    parts = ("Rz", "Rx-", "Rz")
    equation_names = (*_POINT, _PERPENDICULAR)

    def terms(self, q: Array, pitch: Any) -> Array:
        return np.array([np.cos(q[0]), np.sin(q[0]), np.cos(q[1]), np.sin(q[1])])

    def rotation(self, terms: Array) -> Rotation:
        return Chain((Turn(2, terms[0], terms[1]), Turn(0, 0.0, -1.0), Turn(2, terms[2], terms[3])))

    def subspace(self, terms: Array, pitch: Any) -> Array:
        c, s = terms[2], terms[3]
        zero = 0.0 * c
        rows = [[zero, zero], [zero, zero], [zero, zero], [-s, zero], [-c, zero], [zero, zero + 1.0]]
        return np.array(rows)

    def subspace_rate(self, terms: Array, pitch: Any, v: Array) -> Array:
        c, s = terms[2], terms[3]
        both = v[0] * v[1]
        zero = 0.0 * both
        return np.array([zero, zero, zero, -c * both, s * both, zero])

    def complement(self, terms: Array, pitch: Any) -> Array:
        c, s = terms[2], terms[3]
        zero = 0.0 * c
        across = np.array([[zero, zero, zero, c, -s, zero]]).T
        return np.concatenate([np.eye(6)[:, :3], across], axis=1)

    def terms_between(self, r: Array, p: Array) -> Array:
        return np.array([r[1, 2], -r[0, 2], -r[2, 1], -r[2, 0]])

    def measures(self, r: Array, p: Array) -> tuple[Measure, ...]:
        return (Measure(cosine=r[1, 2], sine=-r[0, 2]), Measure(cosine=-r[2, 1], sine=-r[2, 0]))


class Planar(JointKind):
    """x and y in the parent's f–g plane, then an angle about h; v = q̇."""

    name, nq, nv, selects, steady, angles = "planar", 3, 3, None, False, (2,)
    parts = ("Tx", "Ty", "Rz")
    equation_names = (_POINT[2], *_TILT)

    def terms(self, q: Array, pitch: Any) -> Array:
        return np.array([q[0], q[1], np.cos(q[2]), np.sin(q[2])])

    def rotation(self, terms: Array) -> Rotation:
        return Turn(2, terms[2], terms[3])

    def shift(self, terms: Array, pitch: Any) -> Array:
        return np.array([terms[0], terms[1], 0.0 * terms[0]])

    def subspace(self, terms: Array, pitch: Any) -> Array:
        c, s = terms[2], terms[3]
        z = 0.0 * c
        return np.array([[c, s, z], [-s, c, z], [z, z, z], [z, z, z], [z, z, z], [z, z, z + 1.0]])

    def subspace_rate(self, terms: Array, pitch: Any, v: Array) -> Array:
        c, s = terms[2], terms[3]
        x, y, o = v
        zero = 0.0 * o
        return np.array([o * (c * y - s * x), -(o * (c * x + s * y)), zero, zero, zero, zero])

    def complement(self, terms: Array, pitch: Any) -> Array:
        return np.eye(6)[:, 2:5]

    def terms_between(self, r: Array, p: Array) -> Array:
        return np.array([p[0], p[1], r[0, 0], r[1, 0]])


class Spherical(JointKind):
    """Any rotation: Euler parameters e0..e3; v = ω of the child, in its own axes."""

    name, nq, nv, selects, paired = "spherical", 4, 3, (3, 4, 5), False
    parts = ("Rz", "Ry", "Rx")
    equation_names = _POINT

    def rotation(self, terms: Array) -> Rotation:
        return General(quaternion_matrix(terms))

    def rate(self, q: Array, v: Array) -> Array:
        zero = 0.0 * v[0]
        return 0.5 * quaternion_product(q, np.array([zero, v[0], v[1], v[2]]))

    def neutral(self) -> Array:
        return np.array([1.0, 0.0, 0.0, 0.0])

    def checked(self, q: Array, joint: str) -> Array:
        largest = float(np.max(np.abs(q))) or 1.0  # so that no square is beyond numbers
        size = largest * np.sqrt((q / largest) @ (q / largest))
        if not 0.5 < size < 2.0:
            raise ModelError(f"the Euler parameters of joint {joint!r} have length {size:g}; give 1", element=joint)
        return q / size

    def integrate(self, q: Array, dv: Array) -> Array:
        return normalised(quaternion_product(q, exponential(dv)))

    def difference(self, q0: Array, q1: Array) -> Array:
        back = np.array([q0[0], -q0[1], -q0[2], -q0[3]])
        return logarithm(normalised(quaternion_product(back, q1)))

    def turning(self, v: Array) -> Array:
        return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])

    def coordinates(self, e: Array, p: Array, pitch: Any) -> Array:
        return e


class Free(JointKind):
    """Any motion: x, y, z in the parent's axes and Euler parameters; v is the child's twist in its own axes."""

    name, nq, nv, selects, paired = "free", 7, 6, (0, 1, 2, 3, 4, 5), False
    parts = ("Tx", "Ty", "Tz", "Rz", "Ry", "Rx")

    def rotation(self, terms: Array) -> Rotation:
        return General(quaternion_matrix(terms[3:]))

    def shift(self, terms: Array, pitch: Any) -> Array:
        return terms[:3]

    def rate(self, q: Array, v: Array) -> Array:
        r = quaternion_matrix(q[3:])
        return np.concatenate([r @ v[:3], SPHERICAL.rate(q[3:], v[3:])])

    def neutral(self) -> Array:
        return np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])

    def checked(self, q: Array, joint: str) -> Array:
        return np.concatenate([q[:3], SPHERICAL.checked(q[3:], joint)])

    def integrate(self, q: Array, dv: Array) -> Array:
        # The exponential of a twist: the path of a body whose twist is held in its own axes.
        r = quaternion_matrix(q[3:])
        moved = q[:3] + r @ left_jacobian_times(dv[3:], dv[:3])
        return np.concatenate([moved, SPHERICAL.integrate(q[3:], dv[3:])])

    def difference(self, q0: Array, q1: Array) -> Array:
        turn = SPHERICAL.difference(q0[3:], q1[3:])
        local = quaternion_matrix(q0[3:]).T @ (q1[:3] - q0[:3])
        return np.concatenate([left_jacobian_inverse_times(turn, local), turn])

    def turning(self, v: Array) -> Array:
        line, turn = SPHERICAL.turning(v[:3]), SPHERICAL.turning(v[3:])
        return np.block([[turn, line], [np.zeros((3, 3)), turn]])

    def coordinates(self, e: Array, p: Array, pitch: Any) -> Array:
        return np.concatenate([p, e])


FIXED, REVOLUTE, PRISMATIC, CYLINDRICAL = Fixed(), Revolute(), Prismatic(), Cylindrical()
UNIVERSAL, SPHERICAL, PLANAR, SCREW, FREE = Universal(), Spherical(), Planar(), Screw(), Free()

#: Every kind by name; the order is the number that arrays keep.
KINDS: dict[str, JointKind] = {
    kind.name: kind for kind in (FIXED, REVOLUTE, PRISMATIC, CYLINDRICAL, UNIVERSAL, SPHERICAL, PLANAR, SCREW, FREE)
}
KIND_LIST: tuple[JointKind, ...] = tuple(KINDS.values())


def _measure(part: str, r: Array, p: Array) -> Measure:
    """The coordinate of a shift along an axis of frame i, or of a turn about h."""
    if part[0] == "T":
        return Measure(shift=p["xyz".index(part[1])])
    return Measure(cosine=r[0, 0], sine=r[1, 0])
