"""One leg of a hexapod over any scalar: posture, rates, accelerations, joint forces, its share of τ_G.

A scalar is a number, a recorded scalar, or an array: of poses, of legs, or of both. A leg's sines and cosines are
algebraic in the plate's pose, so that nothing here needs an angle. Frames are those of `hexapod`: 3 is the rod's, 4
and 5 those of the wrist's crosses; u_3 is a vector u in the rod's axes. With α the rod's angle in the crank's plane
(θ₁ + θ₂), l and r the lengths of crank and rod, and P the wrist point,

    v_P,3 = θ̇₁ l (c₃ s₂, c₂, s₃ s₂) + α̇ r c₃ e_y − θ̇₃ r e_z,    ω_plate,4 − ω_3,4 = θ̇₄ e_z + θ̇₅ e_y + θ̇₆ (c₅, 0, −s₅).

Their solutions are rates and accelerations; their transposes take the joint forces τ_O of Newton and Euler's equations
to a force at P and a moment on the plate, Wᵀ τ_O. W is never formed. Both have 1/c₅: the crosses have inertia, and at
the wrist's singular ±90° their motion itself is unbounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.control.parallel.hexapod import Hexapod, LinkInertia
from linkwright.spatial.algebra import cross, point_acceleration, point_velocity
from linkwright.tape.block import absolute, arctan2, maximum, minimum

Vector = Sequence[Any]
KNEE = -1  # which of the crank's two solutions: −1 has the knee outside, 1 inside
COLUMNS = 8


class Leg(NamedTuple):
    """Where one leg stands; of all legs at once, arrays."""

    cos: Any  # of the direction of the crank at zero angle, in ground's horizontal plane
    sin: Any
    base: Vector  # B in the leg's axes (m)
    wrist: Vector  # P in the plate's axes (m)


class Posture(NamedTuple):
    """Sines and cosines of a leg at a pose. `arm` is from the plate's origin to the wrist point, in ground's axes."""

    c1: Any
    s1: Any
    c2: Any
    s2: Any
    c3: Any
    s3: Any
    ca: Any
    sa: Any
    c4: Any
    s4: Any
    c5: Any
    s5: Any
    arm: Vector


class Motion(NamedTuple):
    """Rates or accelerations of θ₁, α = θ₁ + θ₂, θ₃ … θ₆."""

    first: Any
    raised: Any
    third: Any
    fourth: Any
    fifth: Any
    sixth: Any

    def joints(self) -> list[Any]:
        """Of θ₁ … θ₆."""
        return [self.first, self.raised - self.first, self.third, self.fourth, self.fifth, self.sixth]


class Forces(NamedTuple):
    """The joint forces τ_O that move the links of the leg: those of joints 1 to 5; joint 6 has no link behind it."""

    first: Any
    second: Any
    third: Any
    fourth: Any
    fifth: Any
    sixth: Any = 0.0


def leg_table(geometry: Hexapod) -> Floats:
    """The legs' constants (COLUMNS, 6): a row for each number of `Leg`, in its order."""
    frames = geometry.frames
    base = np.einsum("lji,lj->li", frames, geometry.base_points)
    return np.stack([frames[:, 0, 0], frames[:, 1, 0], *base.T, *geometry.wrist_points.T])


def leg_of(column: Vector) -> Leg:
    """A leg from its column of `leg_table`; of the whole table, all legs."""
    return Leg(column[0], column[1], column[2:5], column[5:8])


# -- vectors -----------------------------------------------------------------------------------------------
def plus(a: Vector, b: Vector) -> list[Any]:
    return [x + y for x, y in zip(a, b, strict=True)]


def minus(a: Vector, b: Vector) -> list[Any]:
    return [x - y for x, y in zip(a, b, strict=True)]


def _turn(c: Any, s: Any, i: int, j: int, u: Vector) -> list[Any]:
    turned = list(u)
    turned[i], turned[j] = c * u[i] - s * u[j], s * u[i] + c * u[j]
    return turned


def about_z(c: Any, s: Any, u: Vector) -> list[Any]:
    """Rz u; with −s, Rzᵀ u."""
    return _turn(c, s, 0, 1, u)


def about_y(c: Any, s: Any, u: Vector) -> list[Any]:
    """Ry u; with −s, Ryᵀ u."""
    return _turn(c, s, 2, 0, u)


def onto_leg(leg: Leg, u: Vector) -> list[Any]:
    """A vector of ground's axes in the leg's."""
    return [leg.cos * u[0] + leg.sin * u[1], u[2], leg.sin * u[0] - leg.cos * u[1]]


def onto_ground(leg: Leg, u: Vector) -> list[Any]:
    """A vector of the leg's axes in ground's."""
    return [leg.cos * u[0] + leg.sin * u[2], leg.sin * u[0] - leg.cos * u[2], u[1]]


def onto_rod(at: Posture, u: Vector) -> list[Any]:
    """A vector of the leg's axes in the rod's."""
    return about_y(at.c3, -at.s3, about_z(at.ca, -at.sa, u))


def from_rod(at: Posture, u: Vector) -> list[Any]:
    """A vector of the rod's axes in the leg's."""
    return about_z(at.ca, at.sa, about_y(at.c3, at.s3, u))


# -- the parts ---------------------------------------------------------------------------------------------
def wrist_point(leg: Leg, place: Vector, turn: Any) -> tuple[list[Any], list[Any]]:
    """The arm R·P in ground's axes, and the wrist point seen from the leg's base, in the leg's axes."""
    arm = [turn[i][0] * leg.wrist[0] + turn[i][1] * leg.wrist[1] + turn[i][2] * leg.wrist[2] for i in range(3)]
    return arm, minus(onto_leg(leg, plus(place, arm)), leg.base)


def reach_margin(geometry: Hexapod, p: Vector) -> Any:
    """How far (m) the wrist point can go in the crank's plane before crank and rod are in line; negative beyond."""
    crank, rod = geometry.crank, geometry.rod
    flat = np.sqrt(p[0] * p[0] + p[1] * p[1])
    seen = np.sqrt(maximum(rod * rod - p[2] * p[2], 0.0))  # the rod, seen along the driven axis
    inside = minimum(crank + seen - flat, flat - absolute(crank - seen))
    return minimum(inside, rod - absolute(p[2]))


def crank_terms(crank: Any, rod: Any, p: Vector) -> tuple[Any, Any]:
    """p_x² + p_y², and k of p_x cos θ₁ + p_y sin θ₁ = k, by which a crank and a rod of these lengths reach p."""
    flat = p[0] * p[0] + p[1] * p[1]
    return flat, (flat + (p[2] * p[2] + (crank * crank - rod * rod))) * (0.5 / crank)


def crank_direction(p: Vector, flat: Any, k: Any, knee: int = KNEE) -> tuple[Any, Any]:
    """Cosine and sine of θ₁, from the terms of `crank_terms`: θ₁ = atan2(p_y, p_x) ± acos(k / √(p_x² + p_y²))."""
    root = np.sqrt(maximum(flat - k * k, 0.0))
    inverse = 1.0 / flat
    return (p[0] * k - knee * (p[1] * root)) * inverse, (p[1] * k + knee * (p[0] * root)) * inverse


def posture(geometry: Hexapod, leg: Leg, place: Vector, turn: Any) -> tuple[Posture, list[Any]]:
    """The leg with the plate at `place`, turned by the matrix `turn`; and the wrist point in the leg's axes."""
    crank, rod = geometry.crank, geometry.rod
    arm, p = wrist_point(leg, place, turn)
    direction = crank_direction(p, *crank_terms(crank, rod, p))
    return posture_of(leg, turn, arm, direction, along_rod(crank, p, direction), rod), p


def along_rod(crank: Any, p: Vector, direction: tuple[Any, Any]) -> list[Any]:
    """From the crank's end to the wrist point p, in the leg's axes."""
    return [p[0] - crank * direction[0], p[1] - crank * direction[1], p[2]]


def posture_of(leg: Leg, turn: Any, arm: Vector, direction: tuple[Any, Any], along: Vector, rod: Any) -> Posture:
    """The posture whose crank has this direction (cos θ₁, sin θ₁) and whose rod, of this length, lies along `along`."""
    c1, s1 = direction
    seen = np.sqrt(along[0] * along[0] + along[1] * along[1])
    inverse = 1.0 / seen
    ca, sa = along[0] * inverse, along[1] * inverse
    c3, s3 = seen * (1.0 / rod), along[2] * (-1.0 / rod)
    c2, s2 = ca * c1 + sa * s1, sa * c1 - ca * s1
    # The sixth joint's axis is the leg's x axis, held by the plate.
    axis = [turn[i][0] * leg.cos + turn[i][1] * leg.sin for i in range(3)]
    x, y, z = about_y(c3, -s3, about_z(ca, -sa, onto_leg(leg, axis)))
    c5 = np.sqrt(x * x + y * y)
    inverse = 1.0 / c5
    return Posture(c1, s1, c2, s2, c3, s3, ca, sa, x * inverse, y * inverse, c5, -z, arm)


def turned(angles: Vector, arm: Vector) -> Posture:
    """The posture from joint angles, as a program that is given them begins."""
    c, s = [np.cos(x) for x in angles], [np.sin(x) for x in angles]
    raised = angles[0] + angles[1]
    ca, sa = np.cos(raised), np.sin(raised)
    return Posture(c[0], s[0], c[1], s[1], c[2], s[2], ca, sa, c[3], s[3], c[4], s[4], arm)


def joint_angles(leg: Leg, at: Posture, turn: Any) -> list[Any]:
    """θ₁ … θ₆ of a posture (rad)."""
    fifth_axis = onto_ground(leg, from_rod(at, about_z(at.c4, at.s4, [0.0, 1.0, 0.0])))
    columns = [  # the leg's y and z axes as the plate holds them, in ground's axes
        [turn[i][2] for i in range(3)],
        [turn[i][0] * leg.sin - turn[i][1] * leg.cos for i in range(3)],
    ]
    c6, s6 = (sum(a * b for a, b in zip(fifth_axis, column, strict=True)) for column in columns)
    return [
        arctan2(at.s1, at.c1),
        arctan2(at.s2, at.c2),
        arctan2(at.s3, at.c3),
        arctan2(at.s4, at.c4),
        arctan2(at.s5, at.c5),
        arctan2(-s6, c6),
    ]


def _solved(geometry: Hexapod, at: Posture, u: Vector) -> tuple[Any, Any, Any]:
    """x of u = x₁ l (c₃s₂, c₂, s₃s₂) + x₂ r e_y − x₃ r e_z: what moves the wrist point by u (in the rod's axes)."""
    crank, rod = geometry.crank, geometry.rod
    first = u[0] / (crank * (at.c3 * at.s2))
    knee = crank * first
    return first, (u[1] - knee * at.c2) * (1.0 / rod), (knee * (at.s3 * at.s2) - u[2]) * (1.0 / rod)


def _wrist_solved(at: Posture, u: Vector) -> tuple[Any, Any, Any]:
    """x of u = x₄ e_z + x₅ e_y + x₆ (c₅, 0, −s₅), in the first cross's axes."""
    sixth = u[0] / at.c5
    return u[2] + at.s5 * sixth, u[1], sixth


def rod_turning(at: Posture, rates: Motion) -> list[Any]:
    """ω of the rod, in its axes."""
    return [-(at.s3 * rates.raised), rates.third, at.c3 * rates.raised]


def joint_rates(geometry: Hexapod, leg: Leg, at: Posture, v: Vector, w: Vector) -> Motion:
    """Of the plate's velocity and angular velocity, in ground's axes."""
    moved = onto_rod(at, onto_leg(leg, point_velocity(v, w, at.arm)))
    first, across, third = _solved(geometry, at, moved)
    raised = across / at.c3
    crank_and_rod = Motion(first, raised, third, 0.0, 0.0, 0.0)
    relative = minus(onto_rod(at, onto_leg(leg, w)), rod_turning(at, crank_and_rod))
    return Motion(first, raised, third, *_wrist_solved(at, about_z(at.c4, -at.s4, relative)))


def joint_accelerations(
    geometry: Hexapod, leg: Leg, at: Posture, rates: Motion, w: Vector, a: Vector, dw: Vector
) -> Motion:
    """Of the plate's acceleration and angular acceleration, in ground's axes."""
    crank, rod = geometry.crank, geometry.rod
    moved = onto_rod(at, onto_leg(leg, point_acceleration(a, dw, w, at.arm)))
    x, y, z = rod_turning(at, rates)
    inward = crank * (rates.first * rates.first)
    moved = [
        moved[0] + inward * (at.c3 * at.c2) + rod * (y * y + z * z),
        moved[1] - inward * at.s2 - rod * (x * y),
        moved[2] + inward * (at.s3 * at.c2) - rod * (x * z),
    ]
    first, spin, third = _solved(geometry, at, moved)
    both = rates.raised * rates.third
    raised = (spin + at.s3 * both) / at.c3
    crank_and_rod = Motion(first, raised, third, 0.0, 0.0, 0.0)
    w3, dw3 = _rod(at, rates, crank_and_rod)
    w4, dw4 = _outer(at, rates, crank_and_rod, w3, dw3)
    axis = [at.c5, 0.0, -at.s5]
    w5 = [w4[0], w4[1] + rates.fifth, w4[2]]
    known = plus(dw4, [-(w4[2] * rates.fifth), 0.0, w4[0] * rates.fifth])  # θ̇₅ ω₄ × e_y
    known = plus(known, [rates.sixth * x for x in cross(w5, axis)])
    relative = minus(about_z(at.c4, -at.s4, onto_rod(at, onto_leg(leg, dw))), known)
    return Motion(first, raised, third, *_wrist_solved(at, relative))


def _rod(at: Posture, rates: Motion, rise: Motion) -> tuple[list[Any], list[Any]]:
    both = rates.raised * rates.third
    dw = [-(at.s3 * rise.raised) - at.c3 * both, rise.third, at.c3 * rise.raised - at.s3 * both]
    return rod_turning(at, rates), dw


def _outer(at: Posture, rates: Motion, rise: Motion, w: Vector, dw: Vector) -> tuple[list[Any], list[Any]]:
    w, dw = about_z(at.c4, -at.s4, w), about_z(at.c4, -at.s4, dw)
    n = rates.fourth
    return [w[0], w[1], w[2] + n], [dw[0] + w[1] * n, dw[1] - w[0] * n, dw[2] + rise.fourth]


def _inner(at: Posture, rates: Motion, rise: Motion, w: Vector, dw: Vector) -> tuple[list[Any], list[Any]]:
    w, dw = about_y(at.c5, -at.s5, w), about_y(at.c5, -at.s5, dw)
    n = rates.fifth
    return [w[0], w[1] + n, w[2]], [dw[0] - w[2] * n, dw[1] + rise.fifth, dw[2] + w[0] * n]


def link_wrench(inertia: LinkInertia, w: Vector, dw: Vector, a: Vector) -> tuple[list[Any], list[Any]]:
    """Force, and moment about the link's origin, that move a link whose origin accelerates by a (all in its axes)."""
    mass, com, moments = inertia
    f = [mass * x for x in point_acceleration(a, dw, w, com)]
    spin = [i * x for i, x in zip(moments, w, strict=True)]
    n = plus([i * x for i, x in zip(moments, dw, strict=True)], cross(w, spin))
    return f, plus(n, cross(com, f))


def newton_euler(geometry: Hexapod, at: Posture, rates: Motion, rise: Motion) -> Forces:
    """The joint forces τ_O that move the links of the leg, without the plate."""
    g, crank, rod = geometry, geometry.crank, geometry.rod
    up = g.gravity
    fast = rates.first * rates.first
    # The knee's acceleration in the axes of the universal's cross, with gravity as the acceleration of ground.
    tangent, inward = crank * rise.first, crank * fast
    knee = [
        tangent * at.s2 - inward * at.c2 + up * at.sa,
        tangent * at.c2 + inward * at.s2 + up * at.ca,
        0.0,
    ]
    knee3 = about_y(at.c3, -at.s3, knee)
    w3, dw3 = _rod(at, rates, rise)
    x, y, z = w3
    wrist = plus(knee3, [-rod * (y * y + z * z), rod * (dw3[2] + x * y), rod * (x * z - dw3[1])])
    w4, dw4 = _outer(at, rates, rise, w3, dw3)
    w5, dw5 = _inner(at, rates, rise, w4, dw4)
    wrist4 = about_z(at.c4, -at.s4, wrist)
    f5, n5 = link_wrench(g.second_cross_inertia, w5, dw5, about_y(at.c5, -at.s5, wrist4))
    f4, n4 = link_wrench(g.first_cross_inertia, w4, dw4, wrist4)
    fifth = n5[1]
    f4, n4 = plus(f4, about_y(at.c5, at.s5, f5)), plus(n4, about_y(at.c5, at.s5, n5))
    fourth = n4[2]
    f, n = about_z(at.c4, at.s4, f4), about_z(at.c4, at.s4, n4)
    f3, n3 = link_wrench(g.rod_inertia, w3, dw3, knee3)
    n3 = plus(plus(n3, n), [0.0, -(rod * f[2]), rod * f[1]])
    f3 = plus(f3, f)
    third = n3[1]
    f2, n2 = link_wrench(g.universal_inertia, [0.0, 0.0, rates.raised], [0.0, 0.0, rise.raised], knee)
    f2 = plus(f2, about_y(at.c3, at.s3, f3))
    second = n2[2] + about_y(at.c3, at.s3, n3)[2]
    _, n1 = link_wrench(g.crank_inertia, [0.0, 0.0, rates.first], [0.0, 0.0, rise.first], [up * at.s1, up * at.c1, 0.0])
    first = n1[2] + second + crank * (at.s2 * f2[0] + at.c2 * f2[1])
    return Forces(first, second, third, fourth, fifth)


def share(geometry: Hexapod, leg: Leg, at: Posture, tau: Forces) -> tuple[list[Any], list[Any]]:
    """Wᵀ τ_O: the force and the moment about the plate's origin, in ground's axes, that hold the leg by its plate.

    The moment at the wrist balances joints 4 to 6, the force at the wrist point then joints 1 to 3.
    """
    crank, rod = geometry.crank, geometry.rod
    n = about_z(at.c4, at.s4, [(tau.sixth + at.s5 * tau.fourth) / at.c5, tau.fifth, tau.fourth])
    raised = tau.second - (at.c3 * n[2] - at.s3 * n[0])
    y = raised / (rod * at.c3)
    z = (n[1] - tau.third) * (1.0 / rod)
    along = (tau.first - tau.second) * (1.0 / crank) - at.c2 * y - at.s3 * at.s2 * z
    f = onto_ground(leg, from_rod(at, [along / (at.c3 * at.s2), y, z]))
    return f, plus(onto_ground(leg, from_rod(at, n)), cross(at.arm, f))


def row(geometry: Hexapod, leg: Leg, at: Posture) -> tuple[list[Any], Any]:
    """The rod's direction and its moment about the plate's origin (6), and l c₃ s₂: their quotient is a row of S."""
    d = onto_ground(leg, from_rod(at, [1.0, 0.0, 0.0]))
    return [*d, *cross(at.arm, d)], geometry.crank * (at.c3 * at.s2)


def joint_axes(leg: Leg, at: Posture) -> list[list[Any]]:
    """The axes of the six joints, unit vectors in ground's axes."""
    fifth = about_z(at.c4, at.s4, [0.0, 1.0, 0.0])
    sixth = about_z(at.c4, at.s4, about_y(at.c5, at.s5, [1.0, 0.0, 0.0]))
    driven = onto_ground(leg, [0.0, 0.0, 1.0])
    third = onto_ground(leg, [-at.sa, at.ca, 0.0])
    return [driven, driven, third, *(onto_ground(leg, from_rod(at, u)) for u in ([0.0, 0.0, 1.0], fifth, sixth))]


def crank_end(geometry: Hexapod, leg: Leg, c1: Any, s1: Any) -> list[Any]:
    """The crank's end, in ground's axes, by the cosine and sine of θ₁."""
    return onto_ground(leg, plus(leg.base, [geometry.crank * c1, geometry.crank * s1, 0.0]))


def every_leg(geometry: Hexapod) -> list[Leg]:
    """The six legs as numbers."""
    return [leg_of(column) for column in leg_table(geometry).T.tolist()]
