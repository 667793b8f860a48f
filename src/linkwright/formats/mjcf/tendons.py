"""MJCF tendons: sums of joint coordinates and straight lines between two sites, with their springs and dampers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.formats.mjcf.bodies import Bodies, Joint, Site
from linkwright.formats.mjcf.chains import Chains
from linkwright.formats.mjcf.nodes import Node
from linkwright.formats.mjcf.settings import Defaults, Settings
from linkwright.formats.poses import HERE, Pose
from linkwright.model.expression import Call, Expression, Number, as_expression, total
from linkwright.model.force_laws import friction as friction_law


@dataclass(eq=False)
class Tendon:
    """A length: Σ coefficient · coordinate over `joints`, or between two `sites`; neither where it is not read."""

    name: str
    node: Node
    joints: list[tuple[Joint, float]]
    sites: tuple[Site, Site] | None
    stiffness: Floats
    damping: Floats
    friction: float
    slack: tuple[float, float]  # the lengths between which its spring does not pull
    limited: bool
    armature: float

    @property
    def read(self) -> bool:
        return bool(self.joints) or self.sites is not None

    @property
    def passive(self) -> bool:
        """Whether it pulls by itself."""
        return bool(self.stiffness.any() or self.damping.any() or self.friction)

    def law(self, length: Expression, rate: Expression, settings: Settings) -> Expression | None:
        """The force along its length, without parts that are zero or disabled; None if there is none."""
        parts: list[Expression] = []
        if self.stiffness.any() and "spring" not in settings.disabled:
            low, high = self.slack
            over: Expression = length - high
            if low < high:  # nothing between the two
                zero = Number(0.0)
                over = Call("max", (over, zero)) + Call("min", (length - low, zero))
            parts.append(-powers(self.stiffness, over))
        if self.damping.any() and "damper" not in settings.disabled:
            parts.append(-odd_powers(self.damping, rate))
        if self.friction and "frictionloss" not in settings.disabled:
            parts.append(friction_law(rate, self.friction))
        return total(parts) if parts else None


def powers(numbers: Floats, x: Expression) -> Expression:
    """c0 x + c1 x² + c2 x³."""
    return _series(numbers, [x, x * x, x * x * x])


def odd_powers(numbers: Floats, v: Expression) -> Expression:
    """c0 v + c1 v |v| + c2 v³: always against the motion."""
    return _series(numbers, [v, v * abs(v), v * v * v])


def _series(numbers: Floats, terms: list[Expression]) -> Expression:
    parts = [as_expression(float(c)) * term for c, term in zip(numbers, terms, strict=False) if c]
    return total(parts)


def read_tendons(
    root: Node, bodies: Bodies, chains: Chains, defaults: Defaults, settings: Settings
) -> dict[str, Tendon]:
    """The tendons of a model by name."""
    tendons: dict[str, Tendon] = {}
    relaxed = _Relaxed(chains, settings)
    for raw in root.each_in("tendon"):
        if raw.tag not in ("fixed", "spatial"):
            raise raw.fail("is neither a <fixed> nor a <spatial> tendon; remove it")
        node = defaults.resolved(raw)
        name = node.get("name") or f"tendon{len(tendons)}"
        if name in tendons:
            raise raw.fail("there is a tendon of this name already; rename one")
        tendons[name] = _tendon(name, node, bodies, relaxed, settings)
    return tendons


def _tendon(name: str, node: Node, bodies: Bodies, relaxed: _Relaxed, settings: Settings) -> Tendon:
    joints: list[tuple[Joint, float]] = []
    sites: tuple[Site, Site] | None = None
    length = 0.0
    if node.tag == "fixed":
        for part in node.each("joint"):
            joint = bodies.joint(part, "joint")
            if not joint.scalar:
                raise part.fail(f"joint {joint.name!r} is {joint.kind}; only hinges and slides make up a tendon")
            joints.append((joint, part.number("coef", 1.0)))
        length = sum(c * spring_place(joint, settings) for joint, c in joints)
    else:
        parts = node.children
        if len(parts) == 2 and all(part.tag == "site" for part in parts):
            one, two = (bodies.site(part, "site") for part in parts)
            if bodies.mover(one.body) != bodies.mover(two.body):
                sites = (one, two)
                length = relaxed.distance(one, two)
    slack = node.numbers("springlength", 1, 2)
    if slack is None or slack[0] < 0.0:
        slack = np.array([length])
    return Tendon(
        name,
        node,
        joints,
        sites,
        node.padded("stiffness", (0.0, 0.0, 0.0)),
        node.padded("damping", (0.0, 0.0, 0.0)),
        node.number("frictionloss", 0.0),
        (float(slack[0]), float(slack[-1])),
        node.limited("limited", "range", settings.autolimits),
        node.number("armature", 0.0),
    )


def spring_place(joint: Joint, settings: Settings) -> float:
    """Where a joint's spring is at rest, which is where MuJoCo measures lengths that are not given."""
    return joint.node.number("springref", 0.0) * (settings.angle if joint.kind == "revolute" else 1.0)


class _Relaxed:
    """Where the links are with all joints where their springs are at rest, found when first asked for."""

    def __init__(self, chains: Chains, settings: Settings) -> None:
        self._chains, self._settings = chains, settings
        self._places: list[Pose] | None = None

    def distance(self, one: Site, two: Site) -> float:
        if self._places is None:
            joints = [link.joint for link in self._chains.links if link.joint is not None and link.joint.scalar]
            self._places = self._chains.places({joint.name: spring_place(joint, self._settings) for joint in joints})
        last = self._chains.last
        ends = [(HERE if s.body < 0 else self._places[last[s.body]]) @ s.pose for s in (one, two)]
        return float(np.linalg.norm(ends[1].p - ends[0].p))
