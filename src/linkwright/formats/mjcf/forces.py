"""The forces of an MJCF model that act by themselves, put into a Builder; what cannot be held is listed."""

from __future__ import annotations

from collections.abc import Mapping

from linkwright.base.arrays import Floats
from linkwright.formats.mjcf.actuators import Actuator, control_name
from linkwright.formats.mjcf.bodies import Bodies, Joint, Site, claimed
from linkwright.formats.mjcf.inertias import Weight
from linkwright.formats.mjcf.settings import Settings
from linkwright.formats.mjcf.tendons import Tendon, odd_powers, powers, spring_place
from linkwright.model.builder import Builder
from linkwright.model.checks import listed
from linkwright.model.expression import Expression, Name, as_expression, total

_Q, _V, _D, _DD = Name("q"), Name("v"), Name("d"), Name("dd")


class Forces:
    """Adds forces to a builder and collects what is left out."""

    def __init__(self, b: Builder, bodies: Bodies, settings: Settings, frames: Mapping[Site, str]) -> None:
        self.b, self.bodies, self.settings, self.frames = b, bodies, settings, frames
        self._left: dict[str, list[str]] = {}
        self._controls: set[str] = set()

    @property
    def left_out(self) -> list[str]:
        """What MuJoCo would have in the motion, in words."""
        return [f"{what} {listed(names)}" if names != [""] else what for what, names in self._left.items()]

    def leave(self, what: str, name: str = "") -> None:
        names = self._left.setdefault(what, [])
        if name not in names:
            names.append(name)

    # -- joints -----------------------------------------------------------------------------------------------
    def joints(self) -> None:
        """Springs of joints, and dampings that are more than a number."""
        for joint in self.bodies.joints.values():
            node, disabled = joint.node, self.settings.disabled
            stiffness, damping = (node.numbers(key, 1, 3) for key in ("stiffness", "damping"))
            if stiffness is not None and stiffness.any() and "spring" not in disabled:
                if joint.scalar:
                    if node.number("springyield", 0.0) > 0.0:
                        self.leave("the yield of the springs of joints", joint.name)
                    self._spring(joint, stiffness)
                else:
                    self.leave("the springs of the ball and free joints", joint.name)
            if damping is not None and damping[1:].any() and "damper" not in disabled:
                if joint.scalar:
                    self.b.joint_force(joint.name, -odd_powers(damping, _V), name=f"{joint.name} drag")
                else:
                    self.leave("the dampers of the ball and free joints", joint.name)
            if joint.kind == "free" and joint.armature:
                self._free_armature(joint)
        if self.settings.fluid is not None:
            self.leave("the fluid around bodies (density, viscosity and wind of <option>)")

    def _spring(self, joint: Joint, stiffness: Floats) -> None:
        slack = spring_place(joint, self.settings)
        if stiffness[1:].any():
            self.b.joint_force(joint.name, -powers(stiffness, _Q - slack), name=f"{joint.name} spring")
        else:
            self.b.joint_spring(joint.name, float(stiffness[0]), slack, name=f"{joint.name} spring")

    def _free_armature(self, joint: Joint) -> None:
        """MuJoCo's rates of a free joint are along the world's axes: its armature does not see the body turn."""
        v = [self.b.rate(joint.name, k) for k in range(6)]
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            law = -(as_expression(joint.armature) * (v[3 + i] * v[j] - v[3 + j] * v[i]))
            self.b.joint_force(joint.name, law, index=k, name=f"{joint.name} armature {k}")

    # -- tendons ------------------------------------------------------------------------------------------------
    def tendons(self, tendons: Mapping[str, Tendon]) -> None:
        """Springs, dampers and friction along tendons."""
        for one in tendons.values():
            if one.limited and "constraint" not in self.settings.disabled:
                self.leave("the limits of tendons", one.name)
            if one.armature:
                self.leave("the armature of tendons", one.name)
            if not one.passive:
                continue
            if not one.read:
                self.leave("the springs and dampers of tendons over more than two sites", one.name)
            elif one.node.number("springyield", 0.0) > 0.0:
                self.leave("the yield of tendons", one.name)
            if one.read:
                law = one.law(*self._length(one), self.settings)
                if law is not None:
                    self._pull(one, f"{one.name} tendon", law)

    def _length(self, tendon: Tendon) -> tuple[Expression, Expression]:
        """A tendon's length and its rate."""
        if not tendon.joints:
            return _D, _DD
        length = total([as_expression(c) * self.b.coordinate(joint.name) for joint, c in tendon.joints])
        return length, total([as_expression(c) * self.b.rate(joint.name) for joint, c in tendon.joints])

    def _pull(self, tendon: Tendon, name: str, law: Expression) -> None:
        """A force along a tendon, on its joints or between its sites."""
        for joint, coefficient in tendon.joints:
            if coefficient:
                self.b.joint_force(joint.name, as_expression(coefficient) * law, name=f"{name} {joint.name}")
        if tendon.sites is not None:
            first, second = (self.frames[site] for site in tendon.sites)
            self.b.point_force(first, second, law, name=name)

    # -- the rest -------------------------------------------------------------------------------------------------
    def gravity_compensation(self, weighed: list[Weight], taken: set[str]) -> None:
        """A force at the centre of mass against gravity."""
        for body, weight in zip(self.bodies.rows, weighed, strict=True):
            if body.gravcomp and weight.mass and self.settings.gravity.any():
                name = claimed(f"{body.name} (centre of mass)", taken)
                place = self.b.frame(body.name, origin=weight.com, name=name)
                force = -body.gravcomp * weight.mass * self.settings.gravity
                self.b.applied_wrench(place, force, axes="ground", name=f"{body.name} gravity compensation")

    def actuators(self, driving: list[Actuator], tendons: Mapping[str, Tendon], *, apply: bool) -> None:
        """The actuators' own damping; with `apply`, their forces too, by a parameter for each control."""
        on = "actuation" not in self.settings.disabled
        for one in driving:
            tendon = one.node.named("tendon", "tendon", tendons) if one.tendon else None
            gear = float(one.gear[0])
            damping = one.node.numbers("damping", 1, 3)
            if damping is not None and damping.any():
                if one.joint is not None and one.joint.scalar:
                    law = -(odd_powers(damping, as_expression(gear) * _V) * gear)
                    self.b.joint_force(one.joint.name, law, name=f"{one.name} damping of the actuator")
                else:
                    self.leave("the damping of actuators", one.name)
            if not apply and on and (one.unread or one.dynamic or one.bias.any() or one.gain[1:].any()):
                self.leave('the laws of actuators that are more than motors (actuators="apply" has them),', one.name)
            if not apply or not on:
                continue
            if one.unread or (tendon is not None and not tendon.read):
                self.leave(f"an actuator that {one.unread or 'acts on a tendon that is not read'}:", one.name)
                continue
            if one.dynamic:
                self.leave("the activation dynamics (controls act at once) of the actuators", one.name)
            self._apply(one, tendon, gear)

    def _apply(self, one: Actuator, tendon: Tendon | None, gear: float) -> None:
        control = self.b.parameter(control_name(one.name, self._controls), 0.0)
        length, rate = (as_expression(gear) * x for x in ((_Q, _V) if tendon is None else self._length(tendon)))
        law = one.law(length, rate, control, clamp="clampctrl" not in self.settings.disabled) * gear
        if tendon is not None:
            self._pull(tendon, f"{one.name} actuator", law)
        elif one.joint is not None:
            self.b.joint_force(one.joint.name, law, name=f"{one.name} actuator")
