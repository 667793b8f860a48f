"""The same mechanism in other units of length and mass: every number of a description by its unit, time as it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import linkwright as lw
from linkwright.mechanism.description import Description
from linkwright.mechanism.elements import AppliedWrench, Driver, Element, JointForce, PointForce, Rod
from linkwright.mechanism.expression import Expression, Name, replaced
from linkwright.mechanism.quantities import Quantity, quantities, turns


class Scale:
    """A description with lengths `length` times and masses `mass` times as large."""

    def __init__(self, d: Description, length: float, mass: float) -> None:
        self.d, self.length, self.mass = d, length, mass
        self.force, self.torque = mass * length, mass * length**2

    def joint_kind(self, name: str) -> str:
        return self.d.kind_of(self.d.joint_names.position("joint", name)).name

    def shifts(self, joint: str, index: int) -> bool:
        return not turns(self.joint_kind(joint), index)

    def long(self, x: Quantity) -> bool:
        """Whether a quantity, or its rate, is a length."""
        if x.kind == "joint":
            return self.shifts(x.of[0], x.index)
        return x.kind == "distance" or not (x.rate and x.index >= 3)

    def law(self, law: Expression, factor: float, *lengths: str) -> Expression:
        """factor · law, of quantities and names in lengths as they were."""
        small: dict[Expression, Expression] = {x: x / self.length for x in quantities(law) if self.long(x)}
        small |= {Name(name): Name(name) / self.length for name in lengths}
        return replaced(law, small) * factor

    def element(self, e: Element) -> Element:
        if isinstance(e, JointForce):
            if self.shifts(e.joint, e.index):
                return replace(e, law=self.law(e.law, self.force, "q", "v"))
            return replace(e, law=self.law(e.law, self.torque))
        if isinstance(e, PointForce):
            return replace(e, law=self.law(e.law, self.force, "d", "dd"))
        assert isinstance(e, AppliedWrench)
        factors = (self.force,) * 3 + (self.torque,) * 3
        return replace(e, laws=tuple(self.law(x, f) for x, f in zip(e.laws, factors, strict=True)))

    def driver(self, x: Driver) -> Driver:
        turning = x.kind == "angle" or (x.kind == "joint" and not self.shifts(x.target, x.index))
        return x if turning else replace(x, law=x.law * self.length)

    def description(self) -> Description:
        d, s = self.d, self.length
        first = np.array([d.kind_of(j).nv > 0 and self.shifts(d.joint_names[j], 0) for j in range(d.nj)], dtype=bool)
        along = np.where(first, s, 1.0)
        inertial = np.where(first, self.mass, self.torque)
        mimics = []
        for m in d.mimics:
            own, other = along[m.follower], along[m.leader]
            mimics.append(replace(m, ratio=m.ratio * own / other, offset=m.offset * own))
        ties = [replace(x, length=x.length * s) if isinstance(x, Rod) else x for x in d.ties]
        initial = [replace(x, value=x.value * (s if self.long(x.quantity) else 1.0)) for x in d.initial]
        start = None if d.start is None else replace(d.start, p=d.start.p * s)
        system = d.system
        if system is not None and system.assembly_tolerance is not None:
            system = replace(system, assembly_tolerance=system.assembly_tolerance * s)
        return replace(
            d,
            mass=d.mass * self.mass,
            com=d.com * s,
            inertia=d.inertia * self.torque,
            pi=d.pi * s,
            pj=d.pj * s,
            pitch=d.pitch * s,
            armature=d.armature * inertial,
            damping=d.damping * inertial,
            friction=d.friction * inertial * along,
            lower=d.lower * along,
            upper=d.upper * along,
            velocity_limit=d.velocity_limit * along,
            effort_limit=d.effort_limit * inertial * along,
            gravity=d.gravity * s,
            frames=replace(d.frames, p=d.frames.p * s),
            start=start,
            system=system,
            mimics=tuple(mimics),
            ties=tuple(ties),
            drivers=tuple(self.driver(x) for x in d.drivers),
            elements=tuple(self.element(x) for x in d.elements),
            initial=tuple(initial),
            bindings={},
            shapes=(),
            traces=(),
        )


def scaled(mech: lw.Mechanism, length: float, mass: float) -> lw.Mechanism:
    """The mechanism with lengths and masses so many times as large, at the same times."""
    return lw.Mechanism(Scale(mech.description, length, mass).description())
