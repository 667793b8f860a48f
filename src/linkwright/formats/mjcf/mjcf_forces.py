"""Forces of an MJCF model: springs, dampers and actuators, as laws of coordinates and control parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.formats.mjcf.body_tree import Bodies, Joint, Site, claimed
from linkwright.formats.mjcf.equalities import Tendon, odd_powers, powers, spring_place
from linkwright.formats.mjcf.inertias import Weight
from linkwright.formats.mjcf.mjcf_settings import Defaults, Settings
from linkwright.formats.mjcf.nodes import Node
from linkwright.model.builder import Builder
from linkwright.model.expression import Call, Expression, Number, as_expression, total
from linkwright.model.model_checks import listed
from linkwright.model.quantities import DD, D, Q, V


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
                    self.b.joint_force(joint.name, -odd_powers(damping, V), name=f"{joint.name} drag")
                else:
                    self.leave("the dampers of the ball and free joints", joint.name)
            if joint.kind == "free" and joint.armature:
                self._free_armature(joint)
        if self.settings.fluid is not None:
            self.leave("the fluid around bodies (density, viscosity and wind of <option>)")

    def _spring(self, joint: Joint, stiffness: Floats) -> None:
        slack = spring_place(joint, self.settings)
        if stiffness[1:].any():
            self.b.joint_force(joint.name, -powers(stiffness, Q - slack), name=f"{joint.name} spring")
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
            return D, DD
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
                    law = -(odd_powers(damping, as_expression(gear) * V) * gear)
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
        length, rate = (as_expression(gear) * x for x in ((Q, V) if tendon is None else self._length(tendon)))
        law = one.law(length, rate, control, clamp="clampctrl" not in self.settings.disabled) * gear
        if tendon is not None:
            self._pull(tendon, f"{one.name} actuator", law)
        elif one.joint is not None:
            self.b.joint_force(one.joint.name, law, name=f"{one.name} actuator")


_ELSEWHERE = ("tendon", "site", "body", "slidersite", "cranksite", "refsite")
_SHORTCUTS = ("general", "motor", "position", "velocity", "intvelocity", "damper")
#: What these set gaintype, biastype and dyntype to.
_SHORTCUT_KINDS = {
    "motor": {"gain": "fixed", "bias": "none", "dyn": "none"},
    "position": {"gain": "fixed", "bias": "affine", "dyn": "none"},
    "velocity": {"gain": "fixed", "bias": "affine", "dyn": "none"},
    "intvelocity": {"gain": "fixed", "bias": "affine", "dyn": "integrator"},
    "damper": {"gain": "affine", "bias": "none", "dyn": "none"},
}
_GAINS = ("fixed", "affine", "muscle", "user", "dcmotor")
_BIASES = ("none", "affine", "muscle", "user", "dcmotor")


@dataclass(eq=False)
class Actuator:
    """One actuator: force = (g0 + g1 l + g2 l̇) u + b0 + b1 l + b2 l̇, where l = gear · coordinate."""

    name: str
    node: Node
    gear: Floats
    gain: Floats = field(default_factory=lambda: np.array([1.0, 0.0, 0.0]))
    bias: Floats = field(default_factory=lambda: np.zeros(3))
    control: tuple[float, float] | None = None
    force: tuple[float, float] | None = None
    dynamic: bool = False  # its activation has a state of its own
    joint: Joint | None = None
    tendon: str = ""
    unread: str = ""  # why it cannot be a law

    @property
    def strongest(self) -> float:
        """The largest force on the joint that ranges allow."""
        limits = [] if self.force is None else [max(map(abs, self.force))]
        if self.control is not None and not self.gain[1:].any() and not self.bias.any() and not self.dynamic:
            limits.append(abs(float(self.gain[0])) * max(map(abs, self.control)))
        return abs(float(self.gear[0])) * min(limits) if limits else float("inf")

    def law(self, length: Expression, rate: Expression, control: Expression, *, clamp: bool) -> Expression:
        """The force along a length, of the control."""
        if self.control is not None and clamp:
            control = _between(control, self.control)
        law = _affine(self.gain, length, rate) * control
        if self.bias.any():
            law = law + _affine(self.bias, length, rate)
        return law if self.force is None else _between(law, self.force)


def _affine(numbers: Floats, length: Expression, rate: Expression) -> Expression:
    parts: list[Expression] = [Number(float(numbers[0]))] if numbers[0] or not numbers.any() else []
    parts += [as_expression(float(k)) * x for k, x in zip(numbers[1:], (length, rate), strict=True) if k]
    return total(parts)


def _between(law: Expression, limits: tuple[float, float]) -> Expression:
    return Call("min", (Call("max", (law, Number(limits[0]))), Number(limits[1])))


def read_actuators(root: Node, bodies: Bodies, settings: Settings, defaults: Defaults) -> list[Actuator]:
    """The actuators of a model. Those that drive joints strengthen these: effort limits, armature, damping."""
    actuators: dict[str, Actuator] = {}
    for raw in root.each_in("actuator"):
        name = raw.get("name") or f"actuator{len(actuators)}"
        if name in actuators:
            raise raw.fail("there is an actuator of this name already; rename one")
        actuators[name] = _actuator(name, defaults.actuator(raw), bodies, settings)
    _strengthen(list(actuators.values()))
    return list(actuators.values())


def _actuator(name: str, elements: list[Node], bodies: Bodies, settings: Settings) -> Actuator:
    last = elements[-1]
    merged: dict[str, str] = {}
    for element in elements:
        merged = element.over(merged).attributes
    node = Node(last.tag, {**merged, "name": last.get("name") or name}, last.file, last.line)
    actuator = Actuator(name, node, node.padded("gear", (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)))
    kinds = {"gain": "fixed", "bias": "none", "dyn": "none"}
    damped = False
    for element in elements:
        damped = _law(actuator, element, kinds) or damped
    if last.tag not in _SHORTCUTS:
        actuator.unread = f"is a {last.tag}"
    elif kinds["gain"] not in ("fixed", "affine") or kinds["bias"] not in ("none", "affine"):
        actuator.unread = f"has gaintype {kinds['gain']} and biastype {kinds['bias']}"
    elif damped:
        actuator.unread = "has a dampratio, whose damping depends on the whole model"
    actuator.dynamic = kinds["dyn"] != "none"
    if kinds["gain"] == "fixed":
        actuator.gain[1:] = 0.0
    if kinds["bias"] == "none":
        actuator.bias[:] = 0.0
    _transmission(actuator, node, bodies)
    for key in ("ctrl", "force"):
        if node.limited(f"{key}limited", f"{key}range", settings.autolimits):
            setattr(actuator, "control" if key == "ctrl" else "force", node.interval(f"{key}range"))
    inherited = node.number("inheritrange", 0.0)
    joint = actuator.joint
    if inherited > 0.0 and actuator.control is None and last.tag == "position" and joint is not None:
        middle, half = 0.5 * (joint.upper + joint.lower), 0.5 * (joint.upper - joint.lower)
        if np.isfinite(half):
            actuator.control = (middle - inherited * half, middle + inherited * half)
    return actuator


def _law(actuator: Actuator, node: Node, kinds: dict[str, str]) -> bool:
    """What one element, of a class or the actuator itself, makes of the law; whether its damping is a ratio."""
    tag = node.tag
    if tag == "general":
        kinds["gain"] = node.word("gaintype", kinds["gain"], _GAINS)
        kinds["bias"] = node.word("biastype", kinds["bias"], _BIASES)
        kinds["dyn"] = node.get("dyntype", kinds["dyn"]) or ""
        for key, target in (("gainprm", actuator.gain), ("biasprm", actuator.bias)):
            first = node.numbers(key, 1, 10)
            if first is not None:
                target[: len(first)] = first[:3]
        return False
    kinds.update(_SHORTCUT_KINDS.get(tag, {}))
    if tag == "motor":
        actuator.gain[:], actuator.bias[:] = (1.0, 0.0, 0.0), 0.0
    elif tag in ("position", "intvelocity"):
        stiffness = node.number("kp", float(actuator.gain[0]))
        actuator.gain[0], actuator.bias[1] = stiffness, -stiffness
        if node.get("kv") is not None:
            actuator.bias[2] = -node.number("kv", 0.0)
        if node.number("timeconst", 0.0) > 0.0:
            kinds["dyn"] = "filterexact"
        return node.number("dampratio", 0.0) > 0.0
    elif tag == "velocity":
        damping = node.number("kv", float(actuator.gain[0]))
        actuator.gain[0], actuator.bias[:] = damping, (0.0, 0.0, -damping)
    elif tag == "damper":
        actuator.gain[:], actuator.bias[:] = (0.0, 0.0, -node.number("kv", 0.0)), 0.0
    return False


def _transmission(actuator: Actuator, node: Node, bodies: Bodies) -> None:
    for key in ("joint", "jointinparent"):
        if node.get(key) is not None:
            actuator.joint = bodies.joint(node, key)
            if not actuator.joint.scalar:
                actuator.unread = actuator.unread or f"is on the {actuator.joint.kind} joint {actuator.joint.name!r}"
            return
    where = next((key for key in _ELSEWHERE if node.get(key) is not None), None)
    if where is None:
        raise node.fail('drives nothing; add joint="..."')
    if where == "tendon":
        actuator.tendon = node.get(where) or ""
    else:
        actuator.unread = actuator.unread or f"acts on a {where if where in ('site', 'body') else 'slider-crank'}"


def _strengthen(actuators: list[Actuator]) -> None:
    """Joints are actuated by what drives them, and can bear what all of that can give together."""
    sums: dict[Joint, float] = {}
    for one in actuators:
        joint = one.joint
        if joint is None:
            continue
        joint.actuated = True
        if joint.scalar:
            sums[joint] = sums.get(joint, 0.0) + one.strongest
            gear = float(one.gear[0])
            joint.armature += gear * gear * one.node.number("armature", 0.0)
    for joint, most in sums.items():
        joint.effort = min(joint.effort, most)


def control_name(name: str, taken: set[str]) -> str:
    """What the parameter of an actuator's control is called; it is taken then."""
    return claimed("ctrl_" + re.sub(r"\W", "_", name, flags=re.ASCII), taken, "_")
