"""MJCF actuators: which joints they drive, how strong they are, and their forces as laws of a control parameter."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from linkwright.base.types import Floats
from linkwright.formats.mjcf.bodies import Bodies, Joint
from linkwright.formats.mjcf.nodes import Node
from linkwright.formats.mjcf.settings import Defaults, Settings
from linkwright.mechanism.expression import Call, Expression, Number, as_expression

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
    law = parts[0]
    for part in parts[1:]:
        law = law + part
    return law


def _between(law: Expression, limits: tuple[float, float]) -> Expression:
    return Call("min", (Call("max", (law, Number(limits[0]))), Number(limits[1])))


def read_actuators(root: Node, bodies: Bodies, settings: Settings, defaults: Defaults) -> list[Actuator]:
    """The actuators of a model. Those that drive joints strengthen these: effort limits, armature, damping."""
    found: list[Actuator] = []
    names: set[str] = set()
    for section in root.each("actuator"):
        for raw in section.children:
            name = raw.get("name") or f"actuator{len(found)}"
            if name in names:
                raise raw.fail("there is an actuator of this name already; rename one")
            names.add(name)
            found.append(_actuator(name, defaults.actuator(raw), bodies, settings))
    _strengthen(found)
    return found


def _actuator(name: str, elements: list[Node], bodies: Bodies, settings: Settings) -> Actuator:
    last = elements[-1]
    merged: dict[str, str] = {}
    for element in elements:
        merged = element.over(merged).attributes
    node = Node(last.tag, {**merged, "name": last.get("name") or name}, last.file, last.line)
    made = Actuator(name, node, node.padded("gear", (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)))
    kinds = {"gain": "fixed", "bias": "none", "dyn": "none"}
    damped = False
    for element in elements:
        damped = _law(made, element, kinds) or damped
    if last.tag not in _SHORTCUTS:
        made.unread = f"is a {last.tag}"
    elif kinds["gain"] not in ("fixed", "affine") or kinds["bias"] not in ("none", "affine"):
        made.unread = f"has gaintype {kinds['gain']} and biastype {kinds['bias']}"
    elif damped:
        made.unread = "has a dampratio, whose damping depends on the whole model"
    made.dynamic = kinds["dyn"] != "none"
    if kinds["gain"] == "fixed":
        made.gain[1:] = 0.0
    if kinds["bias"] == "none":
        made.bias[:] = 0.0
    _transmission(made, node, bodies)
    for key in ("ctrl", "force"):
        if node.limited(f"{key}limited", f"{key}range", settings.autolimits):
            low, high = node.vector(f"{key}range", (0.0, 0.0))
            if not low < high:
                raise node.fail(f"{key}range={node.get(f'{key}range')!r} is not from a lower to a higher number")
            setattr(made, "control" if key == "ctrl" else "force", (float(low), float(high)))
    inherited = node.number("inheritrange", 0.0)
    if inherited > 0.0 and made.control is None and last.tag == "position" and made.joint is not None:
        middle, half = 0.5 * (made.joint.upper + made.joint.lower), 0.5 * (made.joint.upper - made.joint.lower)
        if np.isfinite(half):
            made.control = (middle - inherited * half, middle + inherited * half)
    return made


def _law(made: Actuator, node: Node, kinds: dict[str, str]) -> bool:
    """What one element, of a class or the actuator itself, makes of the law; whether its damping is a ratio."""
    tag = node.tag
    if tag == "general":
        kinds["gain"] = node.word("gaintype", kinds["gain"], _GAINS)
        kinds["bias"] = node.word("biastype", kinds["bias"], _BIASES)
        kinds["dyn"] = node.get("dyntype", kinds["dyn"]) or ""
        for key, target in (("gainprm", made.gain), ("biasprm", made.bias)):
            given = node.numbers(key, 1, 10)
            if given is not None:
                target[: len(given)] = given[:3]
        return False
    if tag == "motor":
        made.gain[:], made.bias[:] = (1.0, 0.0, 0.0), 0.0
        kinds.update(gain="fixed", bias="none", dyn="none")
    elif tag in ("position", "intvelocity"):
        stiffness = node.number("kp", float(made.gain[0]))
        made.gain[0], made.bias[1] = stiffness, -stiffness
        if node.get("kv") is not None:
            made.bias[2] = -node.number("kv", 0.0)
        slow = node.number("timeconst", 0.0) > 0.0
        kinds.update(gain="fixed", bias="affine", dyn="integrator" if tag == "intvelocity" else "none")
        if slow:
            kinds["dyn"] = "filterexact"
        return node.number("dampratio", 0.0) > 0.0
    elif tag == "velocity":
        damping = node.number("kv", float(made.gain[0]))
        made.gain[0], made.bias[:] = damping, (0.0, 0.0, -damping)
        kinds.update(gain="fixed", bias="affine", dyn="none")
    elif tag == "damper":
        made.gain[:], made.bias[:] = (0.0, 0.0, -node.number("kv", 0.0)), 0.0
        kinds.update(gain="affine", bias="none", dyn="none")
    return False


def _transmission(made: Actuator, node: Node, bodies: Bodies) -> None:
    for key in ("joint", "jointinparent"):
        if node.get(key) is not None:
            made.joint = bodies.joint(node, key)
            if not made.joint.scalar:
                made.unread = made.unread or f"is on the {made.joint.kind} joint {made.joint.name!r}"
            return
    where = next((key for key in _ELSEWHERE if node.get(key) is not None), None)
    if where is None:
        raise node.fail('drives nothing; add joint="..."')
    if where == "tendon":
        made.tendon = node.get(where) or ""
    else:
        made.unread = made.unread or f"acts on a {where if where in ('site', 'body') else 'slider-crank'}"


def _strengthen(found: list[Actuator]) -> None:
    """Joints are actuated by what drives them, and can bear what all of that can give together."""
    sums: dict[Joint, float] = {}
    for one in found:
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
    stem = "ctrl_" + re.sub(r"\W", "_", name, flags=re.ASCII)
    made = next(n for k in range(1, len(taken) + 2) if (n := stem if k == 1 else f"{stem}_{k}") not in taken)
    taken.add(made)
    return made
