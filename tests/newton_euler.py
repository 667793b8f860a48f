"""Newton's and Euler's equations of the bodies of a drawn mechanism, written out in NumPy.

Nothing here goes through the package but names and the numbers that it reports: how bodies move, and what joints,
gears and drivers exert. Arrays over time come first; all vectors are in ground's axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import linkwright as lw
from mechanism_parts import GROUND, RATES, Coupled, Drawn, Joint, Push

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Motion:
    """How each body moves: axes (T, 3, 3), and (T, 3) of its origin and its turning."""

    time: Floats
    r: dict[str, Floats]
    p: dict[str, Floats]
    v: dict[str, Floats]
    w: dict[str, Floats]
    a: dict[str, Floats]
    b: dict[str, Floats]

    def point(self, body: str, at: Floats) -> Floats:
        return self.p[body] + self.r[body] @ at

    def velocity(self, body: str, x: Floats) -> Floats:
        """Of the body's point that is at x."""
        return self.v[body] + np.cross(self.w[body], x - self.p[body])

    def acceleration(self, body: str, x: Floats) -> Floats:
        arm = x - self.p[body]
        return self.a[body] + np.cross(self.b[body], arm) + np.cross(self.w[body], np.cross(self.w[body], arm))


def motion_of(sol: lw.Solution, bodies: list[str]) -> Motion:
    """The motion that a solution reports."""
    still = np.zeros((len(sol.time), 3))
    names = [*bodies, GROUND]
    e = {name: sol.orientation(name) for name in bodies}
    r = {name: _axes(x) for name, x in e.items()} | {GROUND: np.tile(np.eye(3), (len(sol.time), 1, 1))}
    ways = (sol.position, sol.velocity, sol.angular_velocity, sol.acceleration, sol.angular_acceleration)
    parts = [{name: still if name == GROUND else way(name) for name in names} for way in ways]
    return Motion(sol.time, r, *parts)


def _axes(e: Floats) -> Floats:
    s, x, y, z = e.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - s * z), 2 * (x * z + s * y)],
        [2 * (x * y + s * z), 1 - 2 * (x * x + z * z), 2 * (y * z - s * x)],
        [2 * (x * z - s * y), 2 * (y * z + s * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


class Balance:
    """The wrenches on every body, at its centre of mass, of which the sum moves it."""

    def __init__(self, drawn: Drawn, motion: Motion) -> None:
        self.drawn, self.motion = drawn, motion
        self.total = {name: np.zeros((len(motion.time), 6)) for name in drawn.solids}
        self.size = {name: np.zeros(len(motion.time)) for name in drawn.solids}
        for name, solid in drawn.solids.items():
            self.push(name, self._centre(name), solid.mass * drawn.gravity, np.zeros(3))

    def _centre(self, body: str) -> Floats:
        return self.motion.point(body, self.drawn.solids[body].com)

    def push(self, body: str, at: Floats, force: Floats, moment: Floats) -> None:
        if body != GROUND:
            about = np.broadcast_to(moment + np.cross(at - self._centre(body), force), at.shape)
            self.total[body] += np.concatenate([np.broadcast_to(force, at.shape), about], axis=1)
            self.size[body] += np.linalg.norm(np.broadcast_to(force, at.shape), axis=1) + np.linalg.norm(about, axis=1)

    def between(self, bodies: tuple[str, str], at: Floats, force: Floats, moment: Floats) -> None:
        """A wrench on the first body and its opposite on the second, at one point in space."""
        self.push(bodies[0], at, force, moment)
        self.push(bodies[1], at, -force, -moment)

    def loads(self) -> None:
        """What elements exert that is no joint's: forces between points, and applied wrenches."""
        m, t = self.motion, self.motion.time
        for load in self.drawn.pair_loads:
            line, rate = pair_line(m, load.ends)
            d = np.linalg.norm(line, axis=1)
            unit = line / d[:, None]
            value = load.value(d, np.sum(unit * rate, axis=1), t)
            for (body, at), sign in zip(load.ends, (-1.0, 1.0), strict=True):
                self.push(body, m.point(body, at), sign * value[:, None] * unit, np.zeros(3))
        for w in self.drawn.wrenches:
            values = w.start + w.rate * t[:, None]
            axes = m.r[w.axes[0]] @ w.axes[1]
            force, moment = (np.einsum("tij,tj->ti", axes, part) for part in (values[:, :3], values[:, 3:]))
            self.between((w.body, w.reaction or GROUND), m.point(w.body, w.at), force, moment)

    def along_lines(self, pushes: Mapping[str, Push], forces: Mapping[str, Floats]) -> None:
        """Ties, and drivers of points: what they exert along their lines."""
        m = self.motion
        for name, push in pushes.items():
            body, at = push.ends[0]
            other = push.ends[1][0] if push.axis is None else push.axis[0]
            if push.axis is None:
                line = pair_line(m, push.ends)[0]
                axis = -line / np.linalg.norm(line, axis=1)[:, None]
            else:
                axis = m.r[other] @ push.axis[1]
            self.between((body, other), m.point(body, at), forces[name][:, None] * axis, np.zeros(3))

    def gears(self, forces: Mapping[str, Floats]) -> None:
        """A gear's force along its follower's coordinate, and −ratio times it along its leader's."""
        for gear in self.drawn.gears:
            for name, share in ((gear.follower, 1.0), (gear.leader, -gear.ratio)):
                joint = self.drawn.joints[name]
                self.between((joint.child, joint.parent), *along(joint, self.motion, 0, share * forces[gear.name]))

    def couplings(self, forces: Mapping[str, Floats]) -> None:
        """A coupling's force times ∂Φ/∂x along each of its coordinates x."""
        for coupling in self.drawn.couplings:
            pairs = [(self.drawn.joints[name], index) for name, index in coupling.coordinates]
            for (joint, index), slope in zip(pairs, self.slopes(coupling), strict=False):
                force = slope * forces[coupling.name]
                self.between((joint.child, joint.parent), *along(joint, self.motion, index, force))

    def slopes(self, coupling: Coupled) -> list[Floats]:
        """∂Φ/∂x of a coupling for each of its coordinates, and last ∂Φ/∂t."""
        pairs = [(self.drawn.joints[name], index) for name, index in coupling.coordinates]
        x = [coordinates(joint, self.motion, index)[0] for joint, index in pairs]
        return list(coupling.slopes(x, self.motion.time))

    def _rate(self, body: str) -> Floats:
        """(T, 6): how the momentum of a body changes, about its centre of mass."""
        m, solid = self.motion, self.drawn.solids[body]
        inertia = m.r[body] @ solid.inertia @ np.swapaxes(m.r[body], 1, 2)
        force = solid.mass * m.acceleration(body, self._centre(body))
        spin = np.einsum("tij,tj->ti", inertia, m.w[body])
        return np.concatenate([force, np.einsum("tij,tj->ti", inertia, m.b[body]) + np.cross(m.w[body], spin)], axis=1)

    def residual(self) -> Floats:
        """(bodies, T, 6): what is left, as a part of the wrenches that act."""
        rates = {name: self._rate(name) for name in self.total}
        scale = {name: 1.0 + self.size[name] + np.linalg.norm(rate, axis=1) for name, rate in rates.items()}
        return np.array([(self.total[name] - rate) / scale[name][:, None] for name, rate in rates.items()])

    def power(self) -> Floats:
        """(T,): the power of the wrenches, less the rate of the kinetic energy."""
        return np.asarray(sum(_dot(self.total[name] - self._rate(name), self._twist(name)) for name in self.total))

    def power_size(self) -> float:
        """The size of the terms of `power`."""
        parts = (np.abs(self._rate(name) * self._twist(name)) + np.abs(self.total[name]) for name in self.total)
        return float(max(np.max(part) for part in parts))

    def _twist(self, body: str) -> Floats:
        m = self.motion
        return np.concatenate([m.velocity(body, self._centre(body)), m.w[body]], axis=1)


def pair_line(m: Motion, ends: tuple[tuple[str, Floats], ...]) -> tuple[Floats, Floats]:
    """The line from the first point to the second, and how it changes."""
    (xa, va), (xb, vb) = ((x, m.velocity(body, x)) for body, at in ends for x in [m.point(body, at)])
    return xb - xa, vb - va


def along(joint: Joint, m: Motion, index: int, force: Floats) -> tuple[Floats, Floats, Floats]:
    """The wrench on a joint's child of a force on one of its coordinates: where, force and moment."""
    ri, rj = m.r[joint.parent] @ joint.i[0], m.r[joint.child] @ joint.j[0]
    at, none, f = m.point(joint.child, joint.j[1]), np.zeros_like(ri[..., 0]), force[:, None]
    pushes = {"prismatic": (0,), "cylindrical": (1,), "planar": (0, 1)}.get(joint.kind, ())
    if joint.kind == "universal":
        axis = (ri, rj)[index][..., 2]
    elif joint.kind == "spherical":
        axis = rj[..., index]
    else:
        axis = ri[..., index] if joint.kind == "planar" and index < 2 else ri[..., 2]
    return (at, f * axis, none) if index in pushes else (at, none, f * axis)


def coordinates(joint: Joint, m: Motion, index: int) -> tuple[Floats, Floats, Floats]:
    """A coordinate about or along h, its rate and its acceleration; the angle is between −π and π."""
    ri, rj = m.r[joint.parent] @ joint.i[0], m.r[joint.child] @ joint.j[0]
    h, xi, xj = ri[..., 2], m.point(joint.parent, joint.i[1]), m.point(joint.child, joint.j[1])
    if joint.kind == "prismatic" or (joint.kind == "cylindrical" and index == 1):
        rate = m.velocity(joint.child, xj) - m.velocity(joint.parent, xj)
        change = m.acceleration(joint.child, xj) - m.acceleration(joint.parent, xj)
        return _dot(h, xj - xi), _dot(h, rate), _dot(h, change)
    angle = np.arctan2(_dot(ri[..., 1], rj[..., 0]), _dot(ri[..., 0], rj[..., 0]))
    return angle, _dot(h, m.w[joint.child] - m.w[joint.parent]), _dot(h, m.b[joint.child] - m.b[joint.parent])


def power_along(joint: Joint, m: Motion, at: Floats, force: Floats, moment: Floats) -> Floats:
    """(rates, T): the part of a wrench on the child, at a point, that works along each of a joint's rates."""
    moment = moment + np.cross(at - m.point(joint.child, joint.j[1]), force)
    parts = []
    for k in range(RATES[joint.kind]):
        _, push, turn = along(joint, m, k, np.ones(len(m.time)))
        if joint.kind == "screw":
            push = joint.pitch * turn
        parts.append(_dot(push, force) + _dot(turn, moment))
    return np.array(parts)


def rate_along(joint: Joint, m: Motion, index: int) -> Floats:
    """A rate of a joint: of a unit force on its coordinate, the power."""
    at, push, turn = along(joint, m, index, np.ones(len(m.time)))
    across = m.velocity(joint.child, at) - m.velocity(joint.parent, at)
    return _dot(push, across) + _dot(turn, m.w[joint.child] - m.w[joint.parent])


def _dot(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.sum(a * b, axis=-1))
