"""The same mechanism in other units of length, mass and time: every number of a description by its unit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import linkwright as lw
from linkwright.model.curve_elements import Curve, PointOnCurve
from linkwright.model.description import Description
from linkwright.model.elements import (
    AppliedWrench,
    Bushing,
    Coupling,
    Driver,
    Element,
    GearPair,
    JointForce,
    PointConstraint,
    PointForce,
    PointOnLine,
    PointOnPlane,
    ReactionFriction,
    Rod,
)
from linkwright.model.expression import Expression, Name, replaced
from linkwright.model.quantities import Quantity, quantities, turns


class Scale:
    """A description with lengths `length` times, masses `mass` times and times `time` times as large."""

    def __init__(self, d: Description, length: float, mass: float, time: float = 1.0) -> None:
        self.d, self.length, self.mass, self.time = d, length, mass, time
        self.force, self.torque = mass * length / time**2, mass * length**2 / time**2

    def joint_kind(self, name: str) -> str:
        return self.d.kind_of(self.d.joint_names.position("joint", name)).name

    def shifts(self, joint: str, index: int) -> bool:
        return not turns(self.joint_kind(joint), index)

    def long(self, x: Quantity) -> bool:
        """Whether a quantity, or its rate, is a length."""
        if x.kind == "joint":
            return self.shifts(x.of[0], x.index)
        return x.kind == "distance" or not (x.rate and x.index >= 3)

    def unit(self, x: Quantity) -> float:
        """By what a quantity grows."""
        return (self.length if self.long(x) else 1.0) / (self.time if x.rate else 1.0)

    def law(self, law: Expression, factor: float, *, long: bool = False) -> Expression:
        """factor · law, of times, quantities and its own coordinate, a length if `long`, and rate as they were."""
        own = self.length if long else 1.0
        small: dict[Expression, Expression] = {x: x / self.unit(x) for x in quantities(law)}
        small |= {Name(name): Name(name) / own for name in ("q", "d")}
        small |= {Name(name): Name(name) * (self.time / own) for name in ("v", "dd")}
        return replaced(law, small | {Name("TIME"): Name("TIME") / self.time}) * factor

    def element(self, e: Element) -> Element:
        if isinstance(e, JointForce):
            shifts = self.shifts(e.joint, e.index)
            return replace(e, law=self.law(e.law, self.force if shifts else self.torque, long=shifts))
        if isinstance(e, PointForce):
            return replace(e, law=self.law(e.law, self.force, long=True))
        if isinstance(e, Bushing):
            units = np.outer([1.0, self.time, 1.0], [self.force / self.length, self.torque]).ravel()  # k, kt, c, ct
            units[4:] = self.force, self.torque
            return replace(e, laws=tuple(self.law(x, f) for x, f in zip(e.laws, np.repeat(units, 3), strict=True)))
        if isinstance(e, ReactionFriction):
            speed = (self.length if self.shifts(e.joint, 0) else 1.0) / self.time
            units = (1.0, self.length, self.length, self.length, speed)  # coefficient, three lengths, speed
            return replace(e, laws=tuple(law * unit for law, unit in zip(e.laws, units, strict=True)))
        assert isinstance(e, AppliedWrench)
        factors = (self.force,) * 3 + (self.torque,) * 3
        return replace(e, laws=tuple(self.law(x, f) for x, f in zip(e.laws, factors, strict=True)))

    def point_constraint(self, x: PointConstraint) -> PointConstraint:
        if isinstance(x, Rod):
            return replace(x, length=x.length * self.length)
        if isinstance(x, GearPair):
            phase, drawn = (None if y is None else y * self.length for y in (x.phase, x.drawn_radius))
            return replace(x, radius=x.radius * self.length, phase=phase, drawn_radius=drawn)
        if isinstance(x, Coupling):
            unit = self.unit(x.coordinates[0])  # that of the follower, which stands on the left
            return replace(x, left=self.law(x.left, unit), right=self.law(x.right, unit))
        if isinstance(x, PointOnCurve):
            rate = None if x.rate is None else x.rate / self.length
            return replace(x, curve=self.curve(x.curve), rate=rate)
        assert isinstance(x, PointOnLine | PointOnPlane)
        return x

    def curve(self, x: Curve) -> Curve:
        """The curve so many times as large, its parameter u as it was."""
        long = {
            name: None if part is None else part * self.length for name, part in (("size", x.size), ("speed", x.speed))
        }
        points = tuple((a * self.length, b * self.length) for a, b in x.points)
        return replace(x, x=x.x * self.length, y=x.y * self.length, points=points, **long)

    def driver(self, x: Driver) -> Driver:
        turning = x.kind == "angle" or (x.kind == "joint" and not self.shifts(x.target, x.index))
        return replace(x, law=self.law(x.law, 1.0 if turning else self.length))

    def description(self) -> Description:
        d, s, t = self.d, self.length, self.time
        first = np.array([d.kind_of(j).nv > 0 and self.shifts(d.joint_names[j], 0) for j in range(d.nj)], dtype=bool)
        along = np.where(first, s, 1.0)
        inertial = np.where(first, self.mass, self.mass * s**2)
        mimics = []
        for m in d.mimics:
            own, other = along[m.follower], along[m.leader]
            mimics.append(replace(m, ratio=m.ratio * own / other, offset=m.offset * own))
        initial = [replace(x, value=x.value * self.unit(x.quantity)) for x in d.initial]
        start = None if d.start is None else replace(d.start, p=d.start.p * s)
        system = d.system
        if system is not None:
            gaps = {name: getattr(system, name) for name in ("assembly_tolerance", "constraint_tolerance")}
            times = {"start": system.start * t, "end": system.end * t, "interval": system.interval * t}
            times["dt"] = None if system.dt is None else system.dt * t
            system = replace(system, **times, **{name: None if x is None else x * s for name, x in gaps.items()})
        return replace(
            d,
            mass=d.mass * self.mass,
            com=d.com * s,
            inertia=d.inertia * (self.mass * s**2),
            pi=d.pi * s,
            pj=d.pj * s,
            pitch=d.pitch * s,
            armature=d.armature * inertial,
            damping=d.damping * inertial / t,
            friction=d.friction * inertial * along / t**2,
            lower=d.lower * along,
            upper=d.upper * along,
            velocity_limit=d.velocity_limit * along / t,
            effort_limit=d.effort_limit * inertial * along / t**2,
            gravity=d.gravity * s / t**2,
            frames=replace(d.frames, p=d.frames.p * s),
            start=start,
            system=system,
            mimics=tuple(mimics),
            curves=tuple(self.curve(x) for x in d.curves),
            point_constraints=tuple(self.point_constraint(x) for x in d.point_constraints),
            drivers=tuple(self.driver(x) for x in d.drivers),
            elements=tuple(self.element(x) for x in d.elements),
            initial=tuple(initial),
            bindings={},
            shapes=(),
            traces=(),
        )


def scaled(mech: lw.Mechanism, length: float, mass: float, time: float = 1.0) -> lw.Mechanism:
    """The mechanism with lengths and masses so many times as large, that moves in so many times the time."""
    return lw.Mechanism(Scale(mech.description, length, mass, time).description())
