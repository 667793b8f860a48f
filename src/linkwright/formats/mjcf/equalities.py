"""MJCF's <equality>: what is held equal, as joints that close loops, as followers, and as locked joints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwright.formats.mjcf.bodies import Bodies, Joint
from linkwright.formats.mjcf.nodes import Node
from linkwright.formats.mjcf.places import quaternion
from linkwright.formats.mjcf.settings import Defaults
from linkwright.formats.poses import Pose
from linkwright.model.topology import circle, of_first_leader


@dataclass(frozen=True, eq=False)
class Closure:
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

    closures: list[Closure]
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
            closure = _closure(node.get("name") or f"{node.tag}{number}", node, bodies)
            # Bodies that move together already need no closure.
            if bodies.mover(closure.first) != bodies.mover(closure.second):
                equalities.closures.append(closure)
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


def _closure(name: str, node: Node, bodies: Bodies) -> Closure:
    # Without torque the turn of a weld is free, and the points alone are held.
    welded = node.tag == "weld" and node.number("torquescale", 1.0) != 0.0
    kind = "fixed" if welded else "spherical"
    if node.get("site1") is not None or node.get("site2") is not None:
        one, two = bodies.site(node, "site1"), bodies.site(node, "site2")
        return Closure(name, kind, one.body, one.pose, two.body, two.pose)
    first, second = _bodies(node, bodies)
    between = bodies.place(first).inverse() @ bodies.place(second)
    if node.tag == "connect" and node.get("anchor") is None:
        raise node.fail('has no anchor; add anchor="x y z" in the frame of body1')
    anchor = Pose(np.eye(3), node.vector("anchor", (0.0, 0.0, 0.0)))
    if node.tag == "connect":
        return Closure(name, kind, first, anchor, second, between.inverse() @ anchor)
    pose = node.vector("relpose", (0.0,) * 7)
    if pose[3:].any():  # where the anchor is in body1, not where body2 is
        return Closure(name, kind, first, Pose(quaternion(node, "relpose", pose[3:]), pose[:3]), second, anchor)
    return Closure(name, kind, first, between @ anchor, second, anchor)


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
