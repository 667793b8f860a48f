"""MJCF's <equality>: what is held equal, as joints that close loops, as followers, and as locked joints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwright.formats.mjcf.bodies import Bodies, Joint
from linkwright.formats.mjcf.nodes import Node
from linkwright.formats.mjcf.places import quaternion
from linkwright.formats.mjcf.settings import Defaults
from linkwright.formats.poses import Pose


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
    found = Equalities([], [])
    number = 0
    for section in root.each("equality"):
        for raw in section.children:
            node = defaults.equality(raw)
            number += 1
            if not node.flag("active", True):
                continue
            name = node.get("name") or f"{node.tag}{number}"
            if node.tag == "connect":
                _add(found, bodies, _connect(name, node, bodies))
            elif node.tag == "weld":
                _add(found, bodies, _weld(name, node, bodies))
            elif node.tag == "joint":
                found.couplings.append(_coupling(node, bodies))
            else:
                text = f"<{node.tag}> is not read: only connect, weld and joint are; set active='false', or load with "
                raise node.fail(text + "equality='ignore'")
    return found


def _add(found: Equalities, bodies: Bodies, made: Closure) -> None:
    """Bodies that move together already need no closure."""
    if bodies.mover(made.first) != bodies.mover(made.second):
        found.closures.append(made)


def _bodies(node: Node, bodies: Bodies) -> tuple[int, int]:
    first = bodies.position(node, "body1")
    second = -1 if node.get("body2") is None else bodies.position(node, "body2")
    if first == second:
        raise node.fail("holds a body to itself; name two")
    return first, second


def _at_sites(name: str, kind: str, node: Node, bodies: Bodies) -> Closure | None:
    if node.get("site1") is None and node.get("site2") is None:
        return None
    one, two = bodies.site(node, "site1"), bodies.site(node, "site2")
    return Closure(name, kind, one.body, one.pose, two.body, two.pose)


def _connect(name: str, node: Node, bodies: Bodies) -> Closure:
    made = _at_sites(name, "spherical", node, bodies)
    if made is not None:
        return made
    first, second = _bodies(node, bodies)
    anchor = node.numbers("anchor", 3)
    if anchor is None:
        raise node.fail('has no anchor; add anchor="x y z" in the frame of body1')
    here = Pose(np.eye(3), anchor)
    return Closure(name, "spherical", first, here, second, bodies.place(second).inverse() @ bodies.place(first) @ here)


def _weld(name: str, node: Node, bodies: Bodies) -> Closure:
    # Without torque the turn is free, and the points alone are held.
    kind = "spherical" if node.number("torquescale", 1.0) == 0.0 else "fixed"
    made = _at_sites(name, kind, node, bodies)
    if made is not None:
        return made
    first, second = _bodies(node, bodies)
    anchor = Pose(np.eye(3), node.vector("anchor", (0.0, 0.0, 0.0)))
    given = node.vector("relpose", (0.0,) * 7)
    if given[3:].any():  # where the anchor is in body1, not where body2 is
        at = Pose(quaternion(node, "relpose", given[3:]), given[:3])
    else:
        at = bodies.place(first).inverse() @ bodies.place(second) @ anchor
    return Closure(name, kind, first, at, second, anchor)


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


def follow(couplings: list[Coupling]) -> tuple[list[Coupling], list[Coupling]]:
    """Couplings that move, and those that stand still, as their first leader does, with where."""
    by_follower: dict[Joint, Coupling] = {}
    for one in couplings:
        if one.follower in by_follower or one.follower is one.leader:
            raise one.node.fail(f"joint {one.follower.name!r} follows itself, or a second joint; keep one coupling")
        by_follower[one.follower] = one
    done: dict[Joint, Coupling] = {}
    for one in couplings:
        chain = _chain(one, by_follower, done)
        for link in reversed(chain):
            above = None if link.leader is None else done.get(link.leader)
            if above is None:
                done[link.follower] = link
            else:
                offset = link.offset + link.ratio * above.offset
                done[link.follower] = Coupling(link.node, link.follower, above.leader, link.ratio * above.ratio, offset)
    still = [done[one.follower] for one in couplings if done[one.follower].leader is None]
    return [one for one in couplings if done[one.follower].leader is not None], still


def _chain(one: Coupling, by_follower: dict[Joint, Coupling], done: dict[Joint, Coupling]) -> list[Coupling]:
    """A coupling and those of its leaders that are not yet followed to their ends."""
    chain: list[Coupling] = []
    passed: set[Joint] = set()
    link: Coupling | None = one
    while link is not None and link.follower not in done:
        if link.follower in passed:
            raise one.node.fail(f"joints follow each other in a circle from {one.follower.name!r}; remove one")
        passed.add(link.follower)
        chain.append(link)
        link = None if link.leader is None else by_follower.get(link.leader)
    return chain
