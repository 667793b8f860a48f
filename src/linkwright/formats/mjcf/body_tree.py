"""The bodies of an MJCF model with their joints, geoms and sites, as links with one joint each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwright.base.arguments import free_name
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.formats.mjcf.mjcf_settings import Defaults, Settings, about, along, pose_of, quaternion
from linkwright.formats.mjcf.nodes import Node
from linkwright.formats.xml import HERE, Pose
from linkwright.model.placements import axis_frame

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


WORLD = "world"
_KINDS = {"hinge": "revolute", "slide": "prismatic", "ball": "spherical", "free": "free"}
_UNREAD = {
    "composite": "write its bodies out",
    "flexcomp": "flexible bodies have no place here",
    "attach": "save the whole model with MuJoCo and load that",
    "replicate": "save the whole model with MuJoCo and load that",
    "plugin": "plugins are programs",
}
_DRAWN = ("camera", "light")


@dataclass(eq=False)
class Joint:
    """A joint: its anchor and axis in the body's frame, and the coordinate (`ref`) of the pose that the file gives."""

    name: str
    node: Node
    kind: str
    body: int
    at: Floats
    axis: Floats
    ref: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf
    armature: float = 0.0
    friction: float = 0.0
    effort: float = np.inf
    actuated: bool = False
    drawn: Pose = HERE  # of a free joint: where the file has its body

    @property
    def scalar(self) -> bool:
        return self.kind in ("revolute", "prismatic")


@dataclass(eq=False)
class Geom:
    """A geom, where it is in its body."""

    node: Node
    pose: Pose


@dataclass(eq=False)
class Site:
    """A site, where it is in its body."""

    name: str
    body: int
    pose: Pose


@dataclass(eq=False)
class Body:
    """A body; `pose` is in its parent, −1 being the world."""

    name: str
    node: Node
    parent: int
    pose: Pose
    mocap: bool = False
    gravcomp: float = 0.0
    inertial: Node | None = None
    joints: list[Joint] = field(default_factory=list)
    geoms: list[Geom] = field(default_factory=list)


@dataclass(eq=False)
class Bodies:
    """All of them, depth first, as MuJoCo numbers them."""

    rows: list[Body] = field(default_factory=list)
    world: list[Geom] = field(default_factory=list)  # what is drawn on the world
    sites: list[Site] = field(default_factory=list)
    joints: dict[str, Joint] = field(default_factory=dict)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {WORLD: -1, **{body.name: k for k, body in enumerate(self.rows)}}

    @cached_property
    def _sites(self) -> dict[str, Site]:
        return {site.name: site for site in self.sites}

    def position(self, node: Node, key: str) -> int:
        """The number of the body that an attribute names; −1 for the world."""
        return node.named(key, "body", self._numbers)

    def joint(self, node: Node, key: str) -> Joint:
        return node.named(key, "joint", self.joints)

    def site(self, node: Node, key: str) -> Site:
        return node.named(key, "site", self._sites)

    def mover(self, body: int) -> int:
        """The nearest body from here to the world that has joints: what these bodies move with."""
        while body >= 0 and not self.rows[body].joints:
            body = self.rows[body].parent
        return body

    def place(self, body: int) -> Pose:
        """Where a body is in the world as the file draws it."""
        pose = HERE
        while body >= 0:
            pose = self.rows[body].pose @ pose
            body = self.rows[body].parent
        return pose


def read_bodies(root: Node, settings: Settings, defaults: Defaults) -> Bodies:
    """The bodies of all <worldbody> elements."""
    reader = _Reader(settings, defaults)
    for node in root.each("worldbody"):
        for key in ("childclass", "pos", "quat"):
            if node.get(key):
                raise node.fail(f"has {key}; the world has none: put it on a <frame> in it")
        reader.children(node, -1, HERE, None)
    for body in reader.found.rows:
        if body.mocap and (body.parent >= 0 or body.joints):
            raise body.node.fail("is a mocap body: a child of the world without joints; move it, or remove mocap=")
    reader.name_all()
    return reader.found


def aligned(bodies: Bodies, settings: Settings) -> list[str]:
    """The free bodies whose frames MuJoCo turns to their inertia; those that carry others stay as they are."""
    carrying = {body.parent for body in bodies.rows}
    turned = []
    for k, body in enumerate(bodies.rows):
        if k not in carrying and body.joints and body.joints[0].kind == "free":
            word = body.joints[0].node.word("align", "auto", ("true", "false", "auto"))
            if word == "true" or (word == "auto" and settings.align_free):
                turned.append(body.name)
    return turned


class _Reader:
    """Walks through the tree."""

    def __init__(self, settings: Settings, defaults: Defaults) -> None:
        self.settings, self.defaults = settings, defaults
        self.found = Bodies()
        self._unnamed: list[Joint] = []
        self._lines: dict[tuple[str, str], int | None] = {}

    def children(self, node: Node, body: int, frame: Pose, child_class: str | None) -> None:
        """What a body or a frame has in it, depth first; `frame` is where its pose starts from, in the body."""
        # Not by recursion, which Python bounds sooner than files are.
        left = [(iter(node.children), body, frame, child_class)]
        while left:
            children, body, frame, child_class = left[-1]
            child = next(children, None)
            if child is None:
                left.pop()
                continue
            tag = child.tag
            if tag == "body":
                self._body(child, body, frame)
                inside = child.get("childclass") or child_class
                left.append((iter(child.children), len(self.found.rows) - 1, HERE, inside))
            elif tag == "frame":
                inner = frame @ pose_of(child, self.settings)
                left.append((iter(child.children), body, inner, child.get("childclass") or child_class))
            elif tag in ("joint", "freejoint"):
                self._joint(child, body, frame, child_class)
            elif tag == "geom":
                resolved = self.defaults.resolved(child, child_class)
                self._new("geom", child)
                geom = Geom(resolved, frame @ self._geom_pose(resolved))
                (self.found.world if body < 0 else self.found.rows[body].geoms).append(geom)
            elif tag == "site":
                self._site(child, body, frame, child_class)
            elif tag == "inertial":
                self._inertial(child, body)
            elif tag in _UNREAD:
                raise child.fail(f"<{tag}> is not read; {_UNREAD[tag]}")
            elif tag not in _DRAWN:
                raise child.fail(f"<{tag}> does not belong into a body; remove it, or correct its name")

    def _new(self, kind: str, node: Node) -> None:
        """Refuse a second element of one name and kind."""
        name = node.get("name")
        if name and (kind, name) in self._lines:
            raise node.fail(f"there is a {kind} of this name already, on line {self._lines[kind, name]}; rename one")
        self._lines[kind, name or ""] = node.line

    def _body(self, node: Node, parent: int, frame: Pose) -> None:
        name = node.get("name") or ""
        if name == WORLD:
            raise node.fail("is named world, as the world itself is; rename it")
        self._new("body", node)
        body = Body(name, node, parent, frame @ pose_of(node, self.settings))
        body.mocap, body.gravcomp = node.flag("mocap", False), node.number("gravcomp", 0.0)
        self.found.rows.append(body)

    def _inertial(self, node: Node, body: int) -> None:
        if body < 0:
            raise node.fail("the world has no inertia; remove it")
        if self.found.rows[body].inertial is not None:
            raise node.fail(f"is the second of body {self.found.rows[body].name!r}; keep one")
        self.found.rows[body].inertial = node

    def _site(self, node: Node, body: int, frame: Pose, child_class: str | None) -> None:
        self._new("site", node)
        if node.get("name"):
            resolved = self.defaults.resolved(node, child_class)
            self.found.sites.append(Site(node.get("name") or "", body, frame @ self._geom_pose(resolved)))

    def _geom_pose(self, node: Node) -> Pose:
        """The pose of a geom or site; fromto= gives its middle and its z axis."""
        ends = node.numbers("fromto", 6)
        if ends is None:
            return pose_of(node, self.settings)
        back = ends[:3] - ends[3:]
        length = float(np.linalg.norm(back))
        if length < 1e-14:
            raise node.fail("fromto= gives one point twice; give two")
        return Pose(along(back / length), 0.5 * (ends[:3] + ends[3:]))

    # -- joints ---------------------------------------------------------------------------------------------
    def _joint(self, raw: Node, body: int, frame: Pose, child_class: str | None) -> None:
        if body < 0:
            raise raw.fail("is in the world, which does not move; put it into a <body>")
        owner = self.found.rows[body]
        # A <freejoint> takes no defaults.
        node = raw if raw.tag == "freejoint" else self.defaults.resolved(raw, child_class)
        self._new("joint", raw)
        word = "free" if raw.tag == "freejoint" else node.word("type", "hinge", tuple(_KINDS))
        kind = _KINDS[word]
        if kind == "free" and owner.parent >= 0:
            raise raw.fail("is a free joint in a body that is no child of the world; move the body there")
        if owner.joints and "free" in (kind, owner.joints[0].kind):
            raise raw.fail("is beside a free joint, which is alone in its body; remove one of them")
        before = next((j for j in owner.joints if j.kind == "spherical"), None)
        if before is not None and kind in ("revolute", "spherical"):
            raise raw.fail(f"is a turn after ball joint {before.name!r} of the same body; put it into a body inside")
        axis = node.vector("axis", (0.0, 0.0, 1.0))
        if not np.abs(axis).max() > 1e-14:
            raise raw.fail("has a zero axis; give it a direction")
        joint = Joint(raw.get("name") or "", node, kind, body, np.zeros(3), frame.r @ axis)
        if kind != "free":
            joint.at = frame.p + frame.r @ node.vector("pos", (0.0, 0.0, 0.0))
        self._numbers(joint)
        owner.joints.append(joint)
        if joint.name:
            self.found.joints[joint.name] = joint
        else:
            self._unnamed.append(joint)

    def _numbers(self, joint: Joint) -> None:
        node = joint.node
        unit = self.settings.angle if joint.kind == "revolute" else 1.0
        if joint.scalar:
            joint.ref = unit * node.number("ref", 0.0)
            if node.limited("limited", "range", self.settings.autolimits):
                low, high = node.interval("range")
                joint.lower, joint.upper = unit * low, unit * high
        joint.armature, joint.friction = node.not_negative("armature"), node.not_negative("frictionloss")
        if node.limited("actuatorfrclimited", "actuatorfrcrange", self.settings.autolimits):
            joint.effort = float(np.abs(node.vector("actuatorfrcrange", (0.0, 0.0))).max())
        if node.vector("springdamper", (0.0, 0.0)).any():
            raise node.fail("springdamper= is not read; write stiffness= and damping= instead")

    # -- names ----------------------------------------------------------------------------------------------
    def name_all(self) -> None:
        """Names for bodies and joints that have none: by their numbers in MuJoCo."""
        taken = {body.name for body in self.found.rows} | {site.name for site in self.found.sites}
        for k, body in enumerate(self.found.rows):
            if not body.name:
                body.name = claimed(f"body{k + 1}", taken)
        every = [joint for body in self.found.rows for joint in body.joints]
        taken = set(self.found.joints)
        for k, joint in enumerate(every):
            if not joint.name:
                joint.name = claimed(f"joint{k}", taken)
        self.found.joints = {joint.name: joint for joint in every}  # in the order of their coordinates


def claimed(stem: str, taken: set[str], between: str = " ") -> str:
    """The stem, or the first of "stem 2", "stem 3" and so on that is not taken; it is taken then."""
    name = free_name(stem, taken, between)
    taken.add(name)
    return name
