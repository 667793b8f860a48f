"""Joints of SDF into a builder's: where their frames are, what their axes carry, gearboxes and mimics.

A joint's coordinates are zero where the file's poses put its links, so that loops are closed as they are drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.errors import ModelError
from linkwright.formats.sdf.scopes import WORLD, Place, Scope, Values
from linkwright.formats.xml import Pose
from linkwright.model.builder import Builder
from linkwright.model.builder_parts import Frame
from linkwright.model.joint_kinds import UNIVERSAL
from linkwright.model.placements import axis_frame, snapped

TYPES = (*("revolute", "continuous", "prismatic", "screw", "ball", "universal", "revolute2", "fixed", "gearbox"),)
_ONE_AXIS = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "screw": "screw"}
_PARALLEL = 1e-3  # how far from ±1 the cosine of two gear axes may be
_PERPENDICULAR = 1e-6


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis of a joint, in the axes of the joint's frame, with its limits and losses."""

    direction: Floats
    limits: tuple[float, float]
    velocity: float
    effort: float
    damping: float
    friction: float
    stiffness: float
    reference: float


@dataclass(frozen=True, eq=False)
class Link:
    """A link that the builder knows: its body (ground's for what is static) and the body's pose in the world."""

    body: str
    pose: Pose


@dataclass(frozen=True, eq=False)
class _Hinge:
    """A revolute joint that a gearbox may use: its links and its axis in the world."""

    name: str
    parent: str
    child: str
    axis: Floats


class Joints:
    """Puts the joints of scopes into a builder."""

    def __init__(self, builder: Builder, links: dict[str, Link], notes: dict[str, list[str]]) -> None:
        self.b, self.links, self.notes = builder, links, notes
        self.hinges: dict[frozenset[str], _Hinge] = {}  # by their two links; the first, where there are more
        self.later: list[tuple[Scope, Place, str]] = []  # gearboxes, which need the other joints
        self.mimics: list[tuple[Values, Any, str, str, tuple[float, float]]] = []

    def note(self, what: str, name: str) -> None:
        self.notes.setdefault(what, []).append(name)

    def add(self, scope: Scope, place: Place, name: str, ends: tuple[str, str], *, cut: bool) -> None:
        """The joint of an element; `name` and `ends` (parent's, child's link) as the builder knows them."""
        kind = _type(scope.values, place)
        with scope.values.errors_at(place.element, name):
            if kind == "gearbox":
                self.later.append((scope, place, name))
            elif kind in _ONE_AXIS:
                self._one(scope, place, name, ends, cut)
            elif kind in ("fixed", "ball"):
                frame = scope.frame_in_world(place.name, place.element)
                word = "spherical" if kind == "ball" else kind
                self.b.joint(word, *self._frames(ends, frame, np.eye(3)), name, cut=cut)
                dynamics = place.element.find("axis/dynamics")
                if kind == "ball" and dynamics is not None and _loses(scope.values, dynamics, name):
                    self.note("<dynamics> of ball joints, which SDF has none for", name)
            else:
                self._two(scope, place, name, ends, cut)

    def finish(self) -> None:
        """Gearboxes and mimics, once all joints are there."""
        for scope, place, name in self.later:
            self._gear(scope, place, name)
        for values, element, follower, leader, (ratio, offset) in self.mimics:
            with values.errors_at(element, follower):
                self.b.mimic(follower, leader, ratio, offset)

    # -- kinds --------------------------------------------------------------------------------------------------
    def _one(self, scope: Scope, place: Place, name: str, ends: tuple[str, str], cut: bool) -> None:
        values, element, kind = scope.values, place.element, _type(scope.values, place)
        frame = scope.frame_in_world(place.name, element)
        axis = self._axis(scope, element, "axis", frame, name)
        if kind == "continuous":
            axis = replace(axis, limits=(-math.inf, math.inf))
        options: dict[str, Any] = {"pitch": _pitch(values, element, name)} if kind == "screw" else {}
        self._about(axis, _ONE_AXIS[kind], ends, frame, name, actuated=axis.effort != 0.0, cut=cut, **options)
        if kind in ("revolute", "continuous"):
            hinge = _Hinge(name, *ends, frame.r @ axis.direction / np.linalg.norm(axis.direction))
            self.hinges.setdefault(frozenset(ends), hinge)
        self._mimic(scope, element.find("axis/mimic"), name)

    def _two(self, scope: Scope, place: Place, name: str, ends: tuple[str, str], cut: bool) -> None:
        """The first axis is on the parent, the second on the child."""
        element = place.element
        frame = scope.frame_in_world(place.name, element)
        axes = [self._axis(scope, element, tag, frame, name) for tag in ("axis", "axis2")]
        u, w = (a.direction / np.linalg.norm(a.direction) for a in axes)
        if abs(float(u @ w)) > 1.0 - _PERPENDICULAR:
            raise ModelError(f"joint {name!r} has two parallel axes; give it two directions", element=name)
        if abs(float(u @ w)) > _PERPENDICULAR:
            if place.element.get("type") == "universal":
                angle = math.degrees(math.acos(float(np.clip(u @ w, -1.0, 1.0))))
                text = f"universal joint {name!r} has axes {angle:.3g}° apart; make them perpendicular, or the joint "
                raise ModelError(text + "revolute2", element=name)
            between = f"{name} between"
            self.b.body(between)
            self.links[between] = Link(between, frame)
            self._about(axes[0], "revolute", (ends[0], between), frame, name, cut=cut)
            self._about(axes[1], "revolute", (between, ends[1]), frame, f"{name} axis2")
            return
        # Of a universal joint h of the parent's frame is the first axis and g the second.
        w = w - u * (u @ w)
        w = w / np.linalg.norm(w)
        near = snapped(np.stack([np.cross(w, u), w, u], axis=1))
        far = near @ UNIVERSAL.neutral_rotation()
        frame_i, _ = self._frames(ends, frame, near)
        _, frame_j = self._frames(ends, frame, far)
        self.b.joint("universal", frame_i, frame_j, name, cut=cut)
        for k, axis in enumerate(axes):
            if axis.damping:
                self.b.joint_damper(name, axis.damping, index=k, name=f"{name} damping {k}")
            if axis.friction:
                self.b.joint_friction(name, axis.friction, index=k, name=f"{name} friction {k}")
            if axis.stiffness:
                self.b.joint_spring(name, axis.stiffness, axis.reference, index=k, name=f"{name} spring {k}")
            if any(map(math.isfinite, axis.limits)):
                self.note("limits of joints with two axes", name)

    def _gear(self, scope: Scope, place: Place, name: str) -> None:
        """θ₂ = −ratio · θ₁, of child and parent against the reference body, each about its own axis."""
        values, element = scope.values, place.element
        ratio = values.number(element, "gearbox_ratio", 1.0, name)
        if ratio == 0.0:
            raise values.fail(element, f"gearbox {name!r} has the ratio 0; give it a ratio", name)
        reference = values.text(element, "gearbox_reference_body")
        frame = scope.frame_in_world(place.name, element)
        hinges: list[tuple[str, float]] = []
        for tag, side in (("axis", "parent"), ("axis2", "child")):
            ends = [link_label(scope, link, element) for link in (values.text(element, side), reference)]
            axis = frame.r @ self._axis(scope, element, tag, frame, name).direction
            axis = axis / np.linalg.norm(axis)
            hinge = self.hinges.get(frozenset(ends))
            if hinge is None:
                text = f"no revolute joint joins {ends[0]!r} to its reference body {ends[1]!r}; add one"
                raise values.fail(element, f"gearbox {name!r}: {text}", name)
            along = float(hinge.axis @ axis)
            if abs(along) < 1.0 - _PARALLEL:
                text = f"gearbox {name!r}: its <{tag}> is not along the axis of joint {hinge.name!r}; turn it there"
                raise values.fail(element, text, name)
            hinges.append((hinge.name, math.copysign(1.0, along) * (1.0 if hinge.parent == ends[1] else -1.0)))
        (motor, s1), (output, s2) = hinges
        self.mimics.append((values, element, motor, output, (-(s1 * s2) / ratio, 0.0)))

    def _mimic(self, scope: Scope, element: Any, name: str) -> None:
        """q = multiplier · (leader's − reference) + offset."""
        if element is None:
            return
        values = scope.values
        leader = str(element.get("joint") or "")
        if not leader:
            raise values.fail(element, f"joint {name!r} mimics no joint; add joint=...", name)
        if element.get("axis", "axis") != "axis":
            text = f"joint {name!r} mimics the second axis of {leader!r}, which is not read; split that joint in two"
            raise values.fail(element, text, name)
        ratio = values.number(element, "multiplier", 1.0, name)
        offset = values.number(element, "offset", 0.0, name) - ratio * values.number(element, "reference", 0.0, name)
        prefix = name[: len(name) - len(name.rpartition("::")[2])]
        self.mimics.append((values, element, name, prefix + leader, (ratio, offset)))

    # -- parts --------------------------------------------------------------------------------------------------
    def _about(self, axis: Axis, kind: str, ends: tuple[str, str], frame: Pose, name: str, **options: Any) -> None:
        """A joint of one axis, with the axis's limits, losses and spring."""
        self.b.joint(
            kind,
            *self._frames(ends, frame, axis_frame(axis.direction)),
            name,
            lower=axis.limits[0],
            upper=axis.limits[1],
            velocity=axis.velocity,
            effort=axis.effort,
            damping=axis.damping,
            friction=axis.friction,
            **options,
        )
        if axis.stiffness:
            self.b.joint_spring(name, axis.stiffness, axis.reference, name=f"{name} spring")

    def _frames(self, ends: tuple[str, str], frame: Pose, turn: Floats) -> tuple[Frame, Frame]:
        """The joint's frames on its two bodies, given by its frame in the world and by axes in that frame."""
        joint_frames = []
        for end in ends:
            link = self.links[end]
            inside = link.pose.inverse() @ frame
            joint_frames.append(self.b.frame(link.body, snapped(inside.r @ turn), inside.p))
        return joint_frames[0], joint_frames[1]

    def _axis(self, scope: Scope, joint: Any, tag: str, frame: Pose, name: str) -> Axis:
        values, element = scope.values, joint.find(tag)
        xyz = None if element is None else element.find("xyz")
        direction = values.numbers(element, "xyz", (0.0, 0.0, 1.0), name)
        if not direction.any():
            raise values.fail(xyz, f"joint {name!r} has a zero <{tag}>; give it a direction", name)
        direction = direction / np.abs(direction).max()  # however long it is written, its square is a number
        within = "" if xyz is None else str(xyz.get("expressed_in") or "")
        # Up to 1.4 axes are in the model's frame; from 1.5 in the joint's, unless a switch says the model's.
        model = values.switch(element, "use_parent_model_frame", scope.version <= (1, 4), name)
        if within:
            direction = frame.r.T @ scope.frame_in_world(within, xyz).r @ direction
        elif model:
            direction = frame.r.T @ scope.in_world().r @ direction
        limit, dynamics = (None if element is None else element.find(part) for part in ("limit", "dynamics"))
        return Axis(
            snapped(direction),
            values.limits(limit, (-math.inf, math.inf), name),
            values.limit(limit, "velocity", math.inf, name),
            values.limit(limit, "effort", math.inf, name),
            values.not_negative(dynamics, "damping", 0.0, name, f"{name} has the negative <damping>"),
            values.not_negative(dynamics, "friction", 0.0, name, f"{name} has the negative <friction>"),
            values.number(dynamics, "spring_stiffness", 0.0, name),
            values.number(dynamics, "spring_reference", 0.0, name),
        )


def _type(values: Values, place: Place) -> str:
    kind = str(place.element.get("type") or "")
    if kind not in TYPES:
        raise values.fail(
            place.element, f"joint {place.name!r} has the type {kind!r}; SDF knows {', '.join(TYPES)}", place.name
        )
    return kind


def _loses(values: Values, dynamics: Any, name: str) -> bool:
    words = ("damping", "friction", "spring_stiffness")
    return any(values.number(dynamics, word, 0.0, name) != 0.0 for word in words)


def _pitch(values: Values, element: Any, name: str) -> float:
    """Metres per radian, from metres per turn (1.10 on) or from −radians per metre."""
    if element.find("screw_thread_pitch") is None and element.find("thread_pitch") is not None:
        turns = values.number(element, "thread_pitch", 1.0, name)
        if turns == 0.0:
            raise values.fail(element, f"screw joint {name!r} has the <thread_pitch> 0; give it a pitch", name)
        return -1.0 / turns
    return values.number(element, "screw_thread_pitch", 1.0, name) / (2.0 * math.pi)


def link_label(scope: Scope, name: str, asker: Any) -> str:
    """The label of the link that a name stands for; the world's own name for the world."""
    body = scope.body(name, asker)
    return WORLD if body is None else label(*body)


def label(scope: Scope, name: str) -> str:
    """The name of a link or joint with those of the models it is in, but for the outermost if that stands alone."""
    parts = scope.path.split("::") if scope.path else []
    top = scope
    while top.parent is not None and not top.parent.is_world:
        top = top.parent
    alone = top.parent is None or len(top.parent.models) == 1
    return "::".join([*parts[1 if alone else 0 :], name])
