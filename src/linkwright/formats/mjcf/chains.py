"""MJCF bodies as links with one joint each: of several joints in a body, all but the last carry massless links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.formats.mjcf.bodies import Bodies, Joint, claimed
from linkwright.formats.mjcf.places import about, quaternion
from linkwright.formats.poses import HERE, Pose
from linkwright.model.frames import axis_frame

_Z = np.array([0.0, 0.0, 1.0])


@dataclass(eq=False)
class Link:
    """A link: its joint (None if it is fixed), where that is on the parent link (−1 the world), and on this one."""

    name: str
    parent: int
    joint: Joint | None
    i: Pose
    j: Pose
    body: int | None = None  # the body that it is; None for a massless link


@dataclass(eq=False)
class Chains:
    """All links, parents first; `last` is the link that each body is."""

    links: list[Link]
    last: list[int]

    def places(self, q: Mapping[str, Any]) -> list[Pose]:
        """Where links are in the world: joints at these coordinates, and where the file draws them if not given."""
        poses: list[Pose] = []
        for link in self.links:
            base = HERE if link.parent < 0 else poses[link.parent]
            moved = HERE if link.joint is None else _moved(link.joint, q.get(link.joint.name))
            poses.append(base @ link.i @ moved @ link.j.inverse())
        return poses


def _moved(joint: Joint, q: Any) -> Pose:
    """What a joint at a coordinate puts between its two frames."""
    if joint.kind == "revolute":
        return Pose(about(_Z, float(joint.ref if q is None else q)), np.zeros(3))
    if joint.kind == "prismatic":
        return Pose(np.eye(3), float(joint.ref if q is None else q) * _Z)
    if joint.kind == "spherical":
        return HERE if q is None else Pose(quaternion(joint.node, "qpos", np.asarray(q)), np.zeros(3))
    return free_pose(joint, q)


def free_pose(joint: Joint, q: Any) -> Pose:
    return joint.drawn if q is None else Pose(quaternion(joint.node, "qpos", np.asarray(q[3:])), np.asarray(q[:3]))


def chains_of(bodies: Bodies) -> Chains:
    """The links of all bodies."""
    chains = Chains([], [])
    taken = {body.name for body in bodies.rows}
    for k, body in enumerate(bodies.rows):
        at = -1 if body.parent < 0 else chains.last[body.parent]
        base = body.pose  # of the body in the link before, until a joint takes it over
        if not body.joints:
            chains.links.append(Link(body.name, at, None, base, HERE, k))
        for n, joint in enumerate(body.joints):
            last = n == len(body.joints) - 1
            name = body.name if last else claimed(f"{body.name} ({joint.name})", taken)
            i, j = _frames(joint, base)
            chains.links.append(Link(name, at, joint, i, j, k if last else None))
            at, base = len(chains.links) - 1, HERE
        chains.last.append(len(chains.links) - 1)
    return chains


def _frames(joint: Joint, base: Pose) -> tuple[Pose, Pose]:
    """A joint's frames on the link before and on its own: they coincide, but for `ref`, where the file draws them."""
    if joint.kind == "free":
        joint.drawn = base
        return HERE, HERE
    turn = axis_frame(joint.axis) if joint.scalar else np.eye(3)
    j = Pose(turn, joint.at)
    i = base @ j
    if joint.kind == "revolute" and joint.ref:
        i = i @ Pose(about(_Z, -joint.ref), np.zeros(3))
    elif joint.kind == "prismatic" and joint.ref:
        i = i @ Pose(np.eye(3), -joint.ref * _Z)
    return i, j
