"""MJCF's <equality> and <tendon>: loop joints, followers, locked joints, and lines between sites."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.formats.mjcf.body_tree import Bodies, Chains, Joint, Site
from linkwright.formats.mjcf.mjcf_settings import Defaults, Settings, quaternion
from linkwright.formats.mjcf.nodes import Node
from linkwright.formats.xml import HERE, Pose
from linkwright.model.expression import Call, Expression, Number, as_expression, total
from linkwright.model.quantities import friction as friction_law
from linkwright.model.topology import circle, of_first_leader


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
    relaxed: list[Pose] = []  # where bodies are with all joints where their springs are at rest
    if any(raw.tag == "spatial" for raw in root.each_in("tendon")):
        links = chains.places({x.name: spring_place(x, settings) for x in bodies.joints.values() if x.scalar})
        relaxed = [*(links[k] for k in chains.last), HERE]  # the world is the last
    for raw in root.each_in("tendon"):
        if raw.tag not in ("fixed", "spatial"):
            raise raw.fail("is neither a <fixed> nor a <spatial> tendon; remove it")
        node = defaults.resolved(raw)
        name = node.get("name") or f"tendon{len(tendons)}"
        if name in tendons:
            raise raw.fail("there is a tendon of this name already; rename one")
        tendons[name] = _tendon(name, node, bodies, relaxed, settings)
    return tendons


def _tendon(name: str, node: Node, bodies: Bodies, relaxed: list[Pose], settings: Settings) -> Tendon:
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
                ends = [relaxed[site.body] @ site.pose for site in sites]
                length = float(np.linalg.norm(ends[1].p - ends[0].p))
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


@dataclass(frozen=True, eq=False)
class LoopJoint:
    """A joint that closes a loop: kind, and where it is on two bodies (−1 the world)."""

    name: str
    kind: str
    first: int
    on_first: Pose
    second: int
    on_second: Pose


@dataclass(frozen=True, eq=False)
class Coupling:
    """follower = ratio · leader + offset; without a leader the follower stands still."""

    node: Node
    follower: Joint
    leader: Joint | None
    ratio: float
    offset: float


@dataclass(eq=False)
class Equalities:
    """All that are active."""

    loop_joints: list[LoopJoint]
    couplings: list[Coupling]


def read_equalities(root: Node, bodies: Bodies, defaults: Defaults) -> Equalities:
    """Each element of <equality> that is active and holds anything."""
    equalities = Equalities([], [])
    for number, raw in enumerate(root.each_in("equality"), 1):
        node = defaults.equality(raw)
        if not node.flag("active", True):
            continue
        if node.tag == "joint":
            equalities.couplings.append(_coupling(node, bodies))
        elif node.tag in ("connect", "weld"):
            joint = _loop_joint(node.get("name") or f"{node.tag}{number}", node, bodies)
            # Bodies that move together already need no constraint.
            if bodies.mover(joint.first) != bodies.mover(joint.second):
                equalities.loop_joints.append(joint)
        else:
            text = f"<{node.tag}> is not read: only connect, weld and joint are; set active='false', or load with "
            raise node.fail(text + "equality='ignore'")
    return equalities


def _bodies(node: Node, bodies: Bodies) -> tuple[int, int]:
    first = bodies.position(node, "body1")
    second = -1 if node.get("body2") is None else bodies.position(node, "body2")
    if first == second:
        raise node.fail("holds a body to itself; name two")
    return first, second


def _loop_joint(name: str, node: Node, bodies: Bodies) -> LoopJoint:
    # Without torque the turn of a weld is free, and the points alone are held.
    welded = node.tag == "weld" and node.number("torquescale", 1.0) != 0.0
    kind = "fixed" if welded else "spherical"
    if node.get("site1") is not None or node.get("site2") is not None:
        one, two = bodies.site(node, "site1"), bodies.site(node, "site2")
        return LoopJoint(name, kind, one.body, one.pose, two.body, two.pose)
    first, second = _bodies(node, bodies)
    between = bodies.place(first).inverse() @ bodies.place(second)
    if node.tag == "connect" and node.get("anchor") is None:
        raise node.fail('has no anchor; add anchor="x y z" in the frame of body1')
    anchor = Pose(np.eye(3), node.vector("anchor", (0.0, 0.0, 0.0)))
    if node.tag == "connect":
        return LoopJoint(name, kind, first, anchor, second, between.inverse() @ anchor)
    pose = node.vector("relpose", (0.0,) * 7)
    if pose[3:].any():  # where the anchor is in body1, not where body2 is
        return LoopJoint(name, kind, first, Pose(quaternion(node, "relpose", pose[3:]), pose[:3]), second, anchor)
    return LoopJoint(name, kind, first, between @ anchor, second, anchor)


def _coupling(node: Node, bodies: Bodies) -> Coupling:
    follower = bodies.joint(node, "joint1")
    leader = None if node.get("joint2") is None else bodies.joint(node, "joint2")
    for joint in (follower, leader):
        if joint is not None and not joint.scalar:
            raise node.fail(f"couples joint {joint.name!r}, which is {joint.kind}; only hinges and slides can be")
    c = node.padded("polycoef", (0.0, 1.0, 0.0, 0.0, 0.0))
    if leader is None:
        return Coupling(node, follower, None, 0.0, follower.ref + float(c[0]))
    if c[2:].any():
        text = f"polycoef={node.get('polycoef')!r} is not linear; its first two numbers alone can be held: leave out "
        raise node.fail(text + "the others, or load with equality='ignore'")
    return Coupling(node, follower, leader, float(c[1]), follower.ref + float(c[0]) - float(c[1]) * leader.ref)


def follow(couplings: list[Coupling]) -> tuple[list[Coupling], dict[str, float]]:
    """Couplings that move, and the coordinates of joints that stand still, as their first leaders do."""
    gears: dict[Joint | None, tuple[Joint | None, float, float]] = {}
    leaders: dict[Joint, Joint] = {}
    for one in couplings:
        if one.follower in gears or one.follower is one.leader:
            raise one.node.fail(f"joint {one.follower.name!r} follows itself, or a second joint; keep one coupling")
        gears[one.follower] = (one.leader, one.ratio, one.offset)
        if one.leader is not None:
            if circle(leaders, one.follower, one.leader):
                raise one.node.fail(f"joints follow each other in a circle from {one.follower.name!r}; remove one")
            leaders[one.follower] = one.leader
    moving, still = [], {}
    for one in couplings:
        first, _, offset = of_first_leader(gears, one.follower)
        if first is None:
            still[one.follower.name] = float(offset)
        else:
            moving.append(one)
    return moving, still
