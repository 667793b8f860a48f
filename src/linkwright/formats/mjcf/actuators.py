"""MJCF actuators: which joints they drive, how strong they are, and their forces as laws of a control parameter."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.formats.mjcf.bodies import Bodies, Joint, claimed
from linkwright.formats.mjcf.nodes import Node
from linkwright.formats.mjcf.settings import Defaults, Settings
from linkwright.model.expression import Call, Expression, Number, as_expression, total

_ELSEWHERE = ("tendon", "site", "body", "slidersite", "cranksite", "refsite")
_SHORTCUTS = ("general", "motor", "position", "velocity", "intvelocity", "damper")
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
    if tag == "motor":
        actuator.gain[:], actuator.bias[:] = (1.0, 0.0, 0.0), 0.0
        kinds.update(gain="fixed", bias="none", dyn="none")
    elif tag in ("position", "intvelocity"):
        stiffness = node.number("kp", float(actuator.gain[0]))
        actuator.gain[0], actuator.bias[1] = stiffness, -stiffness
        if node.get("kv") is not None:
            actuator.bias[2] = -node.number("kv", 0.0)
        slow = node.number("timeconst", 0.0) > 0.0
        kinds.update(gain="fixed", bias="affine", dyn="integrator" if tag == "intvelocity" else "none")
        if slow:
            kinds["dyn"] = "filterexact"
        return node.number("dampratio", 0.0) > 0.0
    elif tag == "velocity":
        damping = node.number("kv", float(actuator.gain[0]))
        actuator.gain[0], actuator.bias[:] = damping, (0.0, 0.0, -damping)
        kinds.update(gain="fixed", bias="affine", dyn="none")
    elif tag == "damper":
        actuator.gain[:], actuator.bias[:] = (0.0, 0.0, -node.number("kv", 0.0)), 0.0
        kinds.update(gain="affine", bias="none", dyn="none")
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
