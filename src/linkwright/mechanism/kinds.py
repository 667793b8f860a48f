"""Joint kinds: each one object that knows its transform, motion subspace, velocity product and coordinates.

A joint joins triad i of its parent body to triad j of its child; axes are the triads' h (z) axes. Everything is
written over any scalar. `motion(q, ...)` gives what the recursions need of one configuration; twists are
those of triad j relative to triad i, in the axes of triad j.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.errors import ModelError
from linkwright.spatial.algebra import Array, cross
from linkwright.spatial.rotation import (
    Chain,
    General,
    Rotation,
    Turn,
    euler_parameters_matrix,
    quaternion_product,
)
from linkwright.spatial.transform import Transform
from linkwright.tape.functions import arctan2, equal, floor, where


def _unit(k: int) -> list[float]:
    return [1.0 if i == k else 0.0 for i in range(6)]


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

    def terms(self, q: Array, pitch: Any) -> Array:
        """The functions of q that the other methods take in its place, so that none is computed twice."""
        return q

    def rotation(self, terms: Array) -> Rotation:
        """The axes of triad j in triad i."""
        return Chain(())

    def shift(self, terms: Array, pitch: Any) -> Array:
        """The origin of triad j in triad i."""
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
        """The terms of a pose of triad j in triad i, as far as twists and wrenches need them."""
        return np.zeros(0)

    def coordinates(self, e: Array, p: Array, pitch: Any) -> Array:
        """q of a pose of triad j in triad i (Euler parameters, origin); angles in (−π, π], a screw's by its shift."""
        return np.zeros((0, *np.shape(p)[1:]))

    def gap(self, r: Array, p: Array) -> Array:
        """Numbers that are zero where triad j, at this pose in triad i, can be joined to it."""
        return np.concatenate([p, (r - np.eye(3)).reshape(-1)])

    def rate(self, q: Array, v: Array) -> Array:
        """q̇."""
        return v

    def neutral(self) -> Array:
        """The coordinates at which the triads coincide (or are nearest to it)."""
        return np.zeros(self.nq)

    def checked(self, q: Array, joint: str) -> Array:
        """Coordinates given for a joint of this name, made exact: Euler parameters have unit length."""
        return q

    def integrate(self, q: Array, dv: Array) -> Array:
        """The coordinates reached from q by the twist coordinates dv held for a unit of time."""
        return q + dv

    def difference(self, q0: Array, q1: Array) -> Array:
        """The dv that integrates q0 to q1."""
        return q1 - q0


class Fixed(JointKind):
    """No motion."""

    name = "fixed"


class Revolute(JointKind):
    """One angle about h."""

    name, nq, nv, selects, turns, angles = "revolute", 1, 1, (5,), True, (0,)

    def terms(self, q: Array, pitch: Any) -> Array:
        return np.array([np.cos(q[0]), np.sin(q[0])])

    def coordinates(self, e: Array, p: Array, pitch: Any) -> Array:
        return np.array([_angle(e)])

    def rotation(self, terms: Array) -> Rotation:
        return Turn(2, terms[0], terms[1])

    def gap(self, r: Array, p: Array) -> Array:
        return np.concatenate([p, _tilt(r)])


class Prismatic(JointKind):
    """One shift along h."""

    name, nq, nv, selects = "prismatic", 1, 1, (2,)

    def coordinates(self, e: Array, p: Array, pitch: Any) -> Array:
        return np.array([p[2]])

    def shift(self, terms: Array, pitch: Any) -> Array:
        return np.array([0.0 * terms[0], 0.0 * terms[0], terms[0]])

    def gap(self, r: Array, p: Array) -> Array:
        return FIXED.gap(r, p)[[0, 1, *range(3, 12)]]


class Screw(JointKind):
    """One angle about h, with a shift of `pitch` metres a radian along it."""

    name, nq, nv, selects, turns, angles = "screw", 1, 1, None, True, (0,)

    def rotation(self, terms: Array) -> Rotation:
        return Turn(2, terms[0], terms[1])

    def terms(self, q: Array, pitch: Any) -> Array:
        return np.array([np.cos(q[0]), np.sin(q[0]), pitch * q[0]])

    def shift(self, terms: Array, pitch: Any) -> Array:
        return np.array([0.0 * terms[2], 0.0 * terms[2], terms[2]])

    def subspace(self, terms: Array, pitch: Any) -> Array:
        zero = 0.0 * pitch
        return np.array([[zero], [zero], [pitch], [zero], [zero], [1.0 + zero]])

    def complement(self, terms: Array, pitch: Any) -> Array:
        across = np.array([_unit(k) for k in (0, 1, 3, 4)]).T
        return np.concatenate([across, np.array([[0.0, 0.0, 1.0, 0.0, 0.0, -pitch]]).T], axis=1)

    def dual(self, terms: Array, pitch: Any) -> Array:
        return REVOLUTE.subspace(terms, pitch)

    def coordinates(self, e: Array, p: Array, pitch: Any) -> Array:
        # The shift tells the whole turns, unless the pitch is zero.
        angle = _angle(e)
        flat = equal(pitch, 0.0)
        by_shift = p[2] / where(flat, 1.0, pitch)
        turns = floor((by_shift - angle) / (2.0 * np.pi) + 0.5)
        return np.array([angle + where(flat, 0.0, 2.0 * np.pi * turns)])

    def gap(self, r: Array, p: Array) -> Array:
        return CYLINDRICAL.gap(r, p)


class Cylindrical(JointKind):
    """An angle about h and a shift along it."""

    name, nq, nv, selects, turns, angles = "cylindrical", 2, 2, (5, 2), True, (0,)

    def terms(self, q: Array, pitch: Any) -> Array:
        return np.array([np.cos(q[0]), np.sin(q[0]), q[1]])

    def coordinates(self, e: Array, p: Array, pitch: Any) -> Array:
        return np.array([_angle(e), p[2]])

    def rotation(self, terms: Array) -> Rotation:
        return Turn(2, terms[0], terms[1])

    def shift(self, terms: Array, pitch: Any) -> Array:
        return np.array([0.0 * terms[2], 0.0 * terms[2], terms[2]])

    def gap(self, r: Array, p: Array) -> Array:
        return np.concatenate([p[:2], _tilt(r)])


class Universal(JointKind):
    """An angle about the parent's h, then one about the child's h; at zero the f axes coincide, h_j = g_i."""

    name, nq, nv, selects, steady, angles = "universal", 2, 2, None, False, (0, 1)

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

    def coordinates(self, e: Array, p: Array, pitch: Any) -> Array:
        # Turns by q0 about z, −π/2 about x and q1 about z: the angle of (e0, e3) is half the sum, that of
        # (−e1, −e2) half the difference.
        e0, e1, e2, e3 = e
        first = arctan2(-(e0 * e2 + e1 * e3), e2 * e3 - e0 * e1)
        return np.array([first, arctan2(e0 * e2 - e1 * e3, -(e0 * e1 + e2 * e3))])

    def gap(self, r: Array, p: Array) -> Array:
        return np.array([*p, r[2, 2]])


class Planar(JointKind):
    """x and y in the parent's f–g plane, then an angle about h; v = q̇."""

    name, nq, nv, selects, steady, angles = "planar", 3, 3, None, False, (2,)

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

    def coordinates(self, e: Array, p: Array, pitch: Any) -> Array:
        return np.array([p[0], p[1], _angle(e)])

    def gap(self, r: Array, p: Array) -> Array:
        return np.array([p[2], *_tilt(r)])


class Spherical(JointKind):
    """Any rotation: Euler parameters e0..e3; v = ω of the child, in its own axes."""

    name, nq, nv, selects, paired = "spherical", 4, 3, (3, 4, 5), False

    def rotation(self, terms: Array) -> Rotation:
        return General(euler_parameters_matrix(terms))

    def rate(self, q: Array, v: Array) -> Array:
        zero = 0.0 * v[0]
        return 0.5 * quaternion_product(q, np.array([zero, v[0], v[1], v[2]]))

    def neutral(self) -> Array:
        return np.array([1.0, 0.0, 0.0, 0.0])

    def checked(self, q: Array, joint: str) -> Array:
        size = np.sqrt(q @ q)
        if not 0.5 < size < 2.0:
            raise ModelError(f"the Euler parameters of joint {joint!r} have length {size:g}; give 1", element=joint)
        return q / size

    def integrate(self, q: Array, dv: Array) -> Array:
        return _normalised(quaternion_product(q, _exponential(dv)))

    def difference(self, q0: Array, q1: Array) -> Array:
        back = np.array([q0[0], -q0[1], -q0[2], -q0[3]])
        return _logarithm(quaternion_product(back, q1))

    def coordinates(self, e: Array, p: Array, pitch: Any) -> Array:
        return e

    def gap(self, r: Array, p: Array) -> Array:
        return p


class Free(JointKind):
    """Any motion: x, y, z in the parent's axes and Euler parameters; v is the child's twist in its own axes."""

    name, nq, nv, selects, paired = "free", 7, 6, (0, 1, 2, 3, 4, 5), False

    def rotation(self, terms: Array) -> Rotation:
        return General(euler_parameters_matrix(terms[3:]))

    def shift(self, terms: Array, pitch: Any) -> Array:
        return terms[:3]

    def rate(self, q: Array, v: Array) -> Array:
        r = euler_parameters_matrix(q[3:])
        return np.concatenate([r @ v[:3], SPHERICAL.rate(q[3:], v[3:])])

    def neutral(self) -> Array:
        return np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])

    def checked(self, q: Array, joint: str) -> Array:
        return np.concatenate([q[:3], SPHERICAL.checked(q[3:], joint)])

    def integrate(self, q: Array, dv: Array) -> Array:
        # The exponential of a twist: the path of a body whose twist is held in its own axes.
        r = euler_parameters_matrix(q[3:])
        moved = q[:3] + r @ _left_jacobian_times(dv[3:], dv[:3])
        return np.concatenate([moved, SPHERICAL.integrate(q[3:], dv[3:])])

    def difference(self, q0: Array, q1: Array) -> Array:
        turn = SPHERICAL.difference(q0[3:], q1[3:])
        local = euler_parameters_matrix(q0[3:]).T @ (q1[:3] - q0[:3])
        return np.concatenate([_left_jacobian_inverse_times(turn, local), turn])

    def coordinates(self, e: Array, p: Array, pitch: Any) -> Array:
        return np.concatenate([p, e])

    def gap(self, r: Array, p: Array) -> Array:
        return np.zeros(0)


FIXED, REVOLUTE, PRISMATIC, CYLINDRICAL = Fixed(), Revolute(), Prismatic(), Cylindrical()
UNIVERSAL, SPHERICAL, PLANAR, SCREW, FREE = Universal(), Spherical(), Planar(), Screw(), Free()

#: Every kind by name; the order is the number that arrays keep.
KINDS: dict[str, JointKind] = {
    kind.name: kind for kind in (FIXED, REVOLUTE, PRISMATIC, CYLINDRICAL, UNIVERSAL, SPHERICAL, PLANAR, SCREW, FREE)
}
KIND_LIST: tuple[JointKind, ...] = tuple(KINDS.values())


class Reversed(JointKind):
    """A joint whose child is nearer to ground than its parent: the same coordinates, seen from the other side."""

    def __init__(self, kind: JointKind) -> None:
        self.kind = kind
        self.name, self.nq, self.nv = f"reversed {kind.name}", kind.nq, kind.nv
        self.selects = None if kind.nv else ()
        self.steady = not kind.nv
        self.paired = kind.paired

    def terms(self, q: Array, pitch: Any) -> Array:
        return self.kind.terms(q, pitch)

    def rotation(self, terms: Array) -> Rotation:
        return General(self.kind.rotation(terms).matrix().T)

    def shift(self, terms: Array, pitch: Any) -> Array:
        return -self.kind.rotation(terms).outward(self.kind.shift(terms, pitch))

    def _across(self, terms: Array, pitch: Any, w: Array) -> Array:
        """A relative twist, turned round and taken to the axes and origin of the other triad."""
        rotation, p = self.kind.rotation(terms), self.kind.shift(terms, pitch)
        o = rotation.inward(w[3:])
        return -np.concatenate([rotation.inward(w[:3]) + cross(p, o), o])

    def subspace(self, terms: Array, pitch: Any) -> Array:
        s = self.kind.subspace(terms, pitch)
        columns = [self._across(terms, pitch, s[:, k]) for k in range(self.nv)]
        return np.stack(columns, axis=1) if columns else np.zeros((6, 0))

    def subspace_rate(self, terms: Array, pitch: Any, v: Array) -> Array:
        return self._across(terms, pitch, self.kind.subspace_rate(terms, pitch, v))

    def _held(self, terms: Array, pitch: Any, wrenches: Array) -> Array:
        """Columns of wrenches, taken to the axes and origin of the other triad."""
        there = Transform(self.kind.rotation(terms), self.kind.shift(terms, pitch))
        return there.inward_columns(wrenches)

    def complement(self, terms: Array, pitch: Any) -> Array:
        return self._held(terms, pitch, self.kind.complement(terms, pitch))

    def dual(self, terms: Array, pitch: Any) -> Array:
        return -self._held(terms, pitch, self.kind.dual(terms, pitch))

    def rate(self, q: Array, v: Array) -> Array:
        return self.kind.rate(q, v)

    def neutral(self) -> Array:
        return self.kind.neutral()

    def checked(self, q: Array, joint: str) -> Array:
        return self.kind.checked(q, joint)

    def integrate(self, q: Array, dv: Array) -> Array:
        return self.kind.integrate(q, dv)

    def difference(self, q0: Array, q1: Array) -> Array:
        return self.kind.difference(q0, q1)


_REVERSED = {name: Reversed(kind) for name, kind in KINDS.items()}


def reverse(kind: JointKind) -> JointKind:
    """The same joint, seen from its child."""
    return _REVERSED[kind.name]


def _angle(e: Array) -> Any:
    """The turn about z of Euler parameters, in (−π, π]."""
    return arctan2(2.0 * e[0] * e[3], e[0] * e[0] - e[3] * e[3])


def _tilt(r: Array) -> Array:
    """Zero where the two h axes are the same."""
    return np.array([r[0, 2], r[1, 2], r[2, 2] - 1.0])


# -- finite rotations: series near zero, so that recorded functions are smooth there -----------------------
def _half_angle(w: Array) -> tuple[Any, Any]:
    """cos(|w|/2) and sin(|w|/2)/|w|."""
    x = 0.25 * (w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    small = x < 1e-6
    safe = where(small, 1.0, x)
    root = np.sqrt(safe)
    cosine = where(small, 1.0 - x / 2 + x * x / 24, np.cos(root))
    sine = where(small, 0.5 * (1.0 - x / 6 + x * x / 120), 0.5 * np.sin(root) / root)
    return cosine, sine


def _exponential(w: Array) -> Array:
    c, s = _half_angle(w)
    return np.array([c, s * w[0], s * w[1], s * w[2]])


def _normalised(e: Array) -> Array:
    return e / np.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2] + e[3] * e[3])


def _logarithm(e: Array) -> Array:
    flip = where(e[0] < 0.0, -1.0, 1.0)
    e0 = flip * e[0]
    square = e[1] * e[1] + e[2] * e[2] + e[3] * e[3]
    small = square < 1e-12
    size = np.sqrt(where(small, 1.0, square))
    near = where(small, e0, 1.0)
    factor = where(small, 2.0 / near * (1.0 - square / (3.0 * near * near)), 2.0 * arctan2(size, e0) / size)
    return flip * factor * e[1:4]


def _jacobian_factors(w: Array) -> tuple[Any, Any]:
    """(1 − cos θ)/θ² and (θ − sin θ)/θ³ for θ = |w|."""
    x = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    small = x < 1e-4
    safe = where(small, 1.0, x)
    angle = np.sqrt(safe)
    first = where(small, 0.5 - x / 24 + x * x / 720, (1.0 - np.cos(angle)) / safe)
    second = where(small, 1.0 / 6 - x / 120 + x * x / 5040, (angle - np.sin(angle)) / (safe * angle))
    return first, second


def _left_jacobian_times(w: Array, x: Array) -> Array:
    a, b = _jacobian_factors(w)
    first = cross(w, x)
    return x + a * first + b * cross(w, first)


def _left_jacobian_inverse_times(w: Array, x: Array) -> Array:
    a, b = _jacobian_factors(w)
    square = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    small = square < 1e-4
    safe = where(small, 1.0, square)
    # (1 − θ sin θ / (2 (1 − cos θ)))/θ², with its series near zero.
    factor = where(
        small, 1.0 / 12 + square / 720 + square * square / 30240, (1.0 - (1.0 - b * square) / (2.0 * a)) / safe
    )
    first = cross(w, x)
    return x - 0.5 * first + factor * cross(w, first)
