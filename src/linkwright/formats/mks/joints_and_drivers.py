"""Joints, gears, rods and drivers of a model file."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linkwright.base.arguments import free_name
from linkwright.formats.mks.attributes import Attributes, Registry
from linkwright.formats.mks.bodies_and_frames import Places, turn_as_drawn, turned
from linkwright.formats.mks.parser import Parsed
from linkwright.formats.mks.syntax import (
    JOINT_WORDS,
    Applied,
    Dotted,
    Fault,
    Item,
    Node,
    Problems,
    Statement,
    Word,
    did_you_mean,
    either,
)
from linkwright.formats.mks.values import Scope
from linkwright.model.builder_parts import Frame, Joint
from linkwright.model.curve_elements import Curve, CurveOnCurve
from linkwright.model.description import LOSSES
from linkwright.model.elements import PointConstraint, is_bound
from linkwright.model.expression import Expression
from linkwright.model.joint_kinds import KINDS
from linkwright.model.quantities import COORDINATES, POSITIONS, Numeric, joint_index
from linkwright.model.topology import Groups, circle
from linkwright.model.units import (
    ANGLE,
    DAMPING,
    FORCE,
    FREQUENCY,
    INERTIA,
    LENGTH,
    MASS,
    PITCH,
    SPEED,
    TORQUE,
    TURN_DAMPING,
    Dimension,
)

#: Kinds whose coordinates are all angles, so that their limits are.
ANGULAR = ("revolute", "screw", "universal")
#: What the numbers of a joint are: where it slides, and where it turns. Per radian, whatever the angle unit.
JOINT_NUMBERS = {
    "lower": (LENGTH, ANGLE),
    "upper": (LENGTH, ANGLE),
    "velocity limit": (SPEED, FREQUENCY),
    "effort limit": (FORCE, TORQUE),
    "damping": (DAMPING, TURN_DAMPING),
    "friction": (FORCE, TORQUE),
    "armature": (MASS, INERTIA),
}
#: The limits of a joint by label: what the builder calls them. The description adds "_limit" to the last two.
LIMITS = {"lower": "lower", "upper": "upper", "velocity limit": "velocity", "effort limit": "effort"}
DRAWN = ("associated body", "at", "axis")  # what a joint between bodies is drawn by
FLAGS = ("cut", "passive", "actuated", "exact", "lossless")


def dimension_of_joint(kind: str, label: str) -> Dimension | None:
    """The dimension of a number of a joint; None for joints that slide and turn, whose numbers are in SI units."""
    turning = {not is_length for is_length in KINDS[kind].lengths[1]}
    return JOINT_NUMBERS[label][turning.pop()] if len(turning) == 1 else None


def gear_ratio(follower: Dimension, leader: Dimension) -> Dimension:
    """The dimension of a gear's ratio, by those of its coordinates; a rack on a pinion has a radius."""
    return follower.times(leader, -1)._replace(angle=0)


class Links(Places):
    """Reads what stands between bodies."""

    def __init__(self, parsed: Parsed, problems: Problems, scope: Scope) -> None:
        super().__init__(parsed, problems, scope)
        self.joints: Registry[Joint | PointConstraint | CurveOnCurve] = Registry(
            "joint, rod or point constraint", parsed.broken
        )
        self.edges: list[tuple[int, int]] = []  # bodies that joints hold together in the tree
        self.drivers: Registry[bool] = Registry("driver or force", parsed.broken)
        self.gears: Registry[bool] = Registry("gear", parsed.broken)
        self.gear_of: dict[str, str] = {}  # the gear of every follower
        self.curves: Registry[Curve] = Registry("curve", parsed.broken)
        self.leaders: dict[str, str] = {}  # the leader of every follower

    # -- joints -------------------------------------------------------------------------------------------
    def read_joint(self, s: Statement) -> None:
        assert s.kind is not None
        name = self.name(s)
        self.joints.claim(name)
        kind = JOINT_WORDS[s.kind.text.lower()]
        pitch = ("pitch",) if kind == "screw" else ()
        labels = ("triad", "associated body", "at", "axis", *pitch, *LIMITS, *LOSSES, "armature")
        a = self.attributes(s, "joint", labels, FLAGS)
        drawn = self._drawing(a, kind)
        first, second = a.pair("associated body" if drawn else "triad")
        i, j = (self.body_of(x.value) if drawn else self.side(x, a.owner) for x in (first, second))
        if i.body == j.body:
            raise Fault(second.value, f"{a.owner} joins {i.body.name!r} to itself; name frames of two bodies")
        options = {**self._joint_options(a, kind), "lossless": "lossless" in a.flags}
        if drawn:
            joint = self.b.joint(kind, i.body, j.body, name.text, drawn=True, **drawn, **options)
        else:
            joint = self.b.joint(kind, i, j if "exact" in a.flags else self._agreeing(kind, i, j), name.text, **options)
        self.joints.put(name, joint)
        if "cut" not in a.flags:
            self.edges.append((i.body.number, j.body.number))

    def _drawing(self, a: Attributes, kind: str) -> dict[str, Any]:
        """The point and axis of a joint that is drawn between two bodies; nothing of one between frames."""
        parts = [item for item in map(a.get, DRAWN) if item is not None]
        if not parts:
            return {}
        if "triad" in a:
            text = f"{a.owner} has frames, which hold its place; name two bodies in their stead, or leave this out"
            raise Fault(parts[0], text)
        place, axis = a.get("at"), a.get("axis")
        if axis is None and kind == "prismatic":
            raise Fault(a.at, f"{a.owner} slides along an axis; add axis = (x, y, z)")
        direction: list[Numeric] = [0.0, 0.0, 1.0]
        if axis is not None:
            direction = self.straight(self.scope.point(axis.value, None))
        if axis is not None and not any(self._now(direction)):
            raise Fault(axis.value, f"the axis of {a.owner} is zero; give it a direction")
        if place is None and kind not in ("prismatic", "fixed", "free"):
            raise Fault(a.at, f"{a.owner} has no point; add at = (x, y, z), in ground's axes as drawn")
        return {"axis": direction, "at": None if place is None else self.scope.point(place.value, LENGTH)}

    def _agreeing(self, kind: str, i: Frame, j: Frame) -> Frame:
        """Frame j with its axes turned to agree with those of i, as the bodies are drawn."""
        if i.body.number not in self.drawn or j.body.number not in self.drawn:
            return j
        drawn = [self.drawn[t.body.number][0] @ self._rotation_now(t) for t in (i, j)]
        turn = turn_as_drawn(kind, drawn[0], drawn[1])
        return j if turn is None else Frame(j.body, turned(j.rotation, turn), j.origin, None)

    def _rotation_now(self, frame: Frame) -> Any:
        r = frame.rotation
        return np.array(self._now(list(r.reshape(-1)))).reshape(3, 3) if is_bound(r) else r

    def _joint_options(self, a: Attributes, kind: str) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for label, key in LIMITS.items():
            item = a.get(label)
            if item is not None:
                options[key] = self.scope.constant(item.value, dimension_of_joint(kind, label))
        if options.get("lower", -math.inf) > options.get("upper", math.inf):
            raise Fault(a.need("lower"), f"the lower limit of {a.owner} is above its upper limit; swap them")
        for key in ("velocity", "effort"):
            if options.get(key, 0.0) < 0.0:
                raise Fault(a.need(f"{key} limit").value, f"the {key} limit of {a.owner} is negative; give 0 or more")
        for key in (*LOSSES, "armature"):
            item = a.get(key)
            if item is not None:
                dimension = dimension_of_joint(kind, key)
                read = self.scope.numeric if key == "armature" else self.scope.constant
                options[key] = read(item.value, dimension)
                if self._now([options[key]])[0] < 0.0:
                    raise Fault(item.value, f"the {key} of {a.owner} is negative; give 0 or more")
        if kind == "screw":
            item = a.need("pitch")
            options["pitch"] = self.scope.numeric(item.value, PITCH)
            if options["pitch"] == 0.0:
                raise Fault(item.value, f"the pitch of {a.owner} is zero; give m/rad")
        options["cut"] = "cut" in a.flags
        if "passive" in a.flags and "actuated" in a.flags:
            raise Fault(a.flags["actuated"], f"{a.owner} is passive and actuated; keep one")
        if "passive" in a.flags or "actuated" in a.flags:
            options["actuated"] = "actuated" in a.flags
        return options

    def hold_loose_bodies(self) -> None:
        """A free joint from ground to the first body of each group that no joint connects to ground."""
        bodies = [p.body for p in map(self.bodies.find, self.bodies.names) if p is not None]
        bodies = sorted({x for x in bodies if x != self.b.ground}, key=lambda x: x.number)
        groups = Groups[int]()
        for a, b in self.edges:
            groups.join(a, b)
        for body in bodies:
            if groups.join(body.number, self.b.ground.number):
                name = free_name(f"{body.name}_free", self.joints)
                self.joints.put(Word(0, 0, name), self.b.joint("free", self.b.ground, body, name))

    # -- gears and constraints -----------------------------------------------------------------------------------
    def read_gear(self, s: Statement) -> None:
        name = self.name(s)
        self.gears.put(name, True)
        a = self.attributes(s, "gear", ("joint", "ratio", "offset"))
        ends = a.pair("joint")
        follower, leader = (self._one_coordinate(item, a.owner) for item in ends)
        if follower == leader:
            raise Fault(ends[1].value, f"{a.owner} couples {follower.name!r} with itself; name two joints")
        if follower.name in self.gear_of:
            other = self.gear_of[follower.name]
            text = f"joint {follower.name!r} follows another in gear {other!r} already; keep one"
            raise Fault(ends[0].value, text)
        passed = circle(self.leaders, follower.name, leader.name)
        if passed:
            text = f"joints follow each other in a circle, {' → '.join(passed)}; remove one gear"
            raise Fault(ends[1].value, text)
        ratio, offset = a.get("ratio"), a.get("offset")
        driven, driving = (ANGLE if joint.kind in ANGULAR else LENGTH for joint in (follower, leader))
        r: Numeric = 1.0 if ratio is None else self.scope.numeric(ratio.value, gear_ratio(driven, driving))
        o: Numeric = 0.0 if offset is None else self.scope.numeric(offset.value, driven)
        self.b.mimic(follower, leader, r, o, name=name.text)
        self.gear_of[follower.name], self.leaders[follower.name] = name.text, leader.name

    def _one_coordinate(self, item: Item, owner: str) -> Joint:
        joint = self.joint_of(item.value)
        if KINDS[joint.kind].nq != 1:
            has = f"{joint.name!r} is {joint.kind} and has {KINDS[joint.kind].nq}"
            text = f"{owner} needs joints of one coordinate; {has}"
            raise Fault(item.value, text)
        return joint

    def joint_of(self, node: Node) -> Joint:
        if not isinstance(node, Word):
            raise Fault(node, "expected the name of a joint")
        place = self.places.find(node.text)
        if place is not None and self.joints.find(node.text) is None and not self.joints.is_broken(node.text):
            what = "frame" if self.bodies.find(node.text) is None else "body"
            raise Fault(node, f"{node.text!r} is a {what}, not a joint; name a joint")
        joint = self.joints.get(node, "joint")
        if not isinstance(joint, Joint):
            raise Fault(node, f"{node.text!r} is not a joint; name a joint")
        return joint

    def read_point_constraint(self, s: Statement) -> None:
        name, what = self.name(s), s.head.text.lower().split()[-1]
        self.joints.claim(name)
        self.joints.put(name, self._rod(s, name) if what == "rod" else self._point_on(s, name, what))

    def _rod(self, s: Statement, name: Word) -> PointConstraint:
        a = self.attributes(s, "rod", ("triad", "length"))
        ends = a.pair("triad")
        first, second = self.two_places(ends[0].value, ends[1].value, a.owner, name.text)
        item = a.need("length")
        value = self.scope.value(item.value, LENGTH)
        if not self.scope.now(value, item.value) > 0.0:
            raise Fault(item.value, f"the length of {a.owner} is not positive; two points that meet are a joint")
        return self.b.rod(first, second, value.expression, name.text)

    def _point_on(self, s: Statement, name: Word, what: str) -> PointConstraint:
        a = self.attributes(s, f"point on {what}", (what, "point"))
        first, second = self.two_places(a.need(what).value, a.need("point").value, a.owner, name.text)
        return (self.b.point_on_line if what == "line" else self.b.point_on_plane)(first, second, name.text)

    def two_places(self, first: Node, second: Node, owner: str, name: str = "") -> tuple[str, str]:
        """The names of two places on different bodies; those without a name get one of `name`."""
        a, b = (self.place_of(node, "frame", owner=owner, name=name) for node in (first, second))
        if a.body == b.body:
            text = f"{owner} is between {a.label!r} and {b.label!r}, both on {a.body.name!r}; name two bodies"
            raise Fault(second, text)
        return a.label, b.label

    # -- drivers ------------------------------------------------------------------------------------------
    def read_driver(self, s: Statement) -> None:
        name = self.name(s)
        self.drivers.put(name, True)
        if len(s.items) != 1:
            raise Fault(s.items[1], f"driver {name.text!r} drives one thing; write another DRIVER for the next")
        item = s.items[0]
        if isinstance(item.label, Dotted):
            self._drive_coordinate(name, item.label, item.value)
        elif isinstance(item.label, Applied):
            self._drive_between(name, item.label, item.value)
        else:
            text = "expected what is driven and its law, such as: block.x = 2*sin(TIME), rev1.angle = TIME, "
            raise Fault(item, text + "distance(a, b) = 3 or angle(a.f, b.f) = TIME")

    def _law_of(self, node: Node, dimension: Dimension) -> Expression:
        return self.scope.value(node, dimension, time=True).expression

    def place_or_joint(self, node: Dotted, parts: tuple[str, ...]) -> Frame | Joint:
        """What a coordinate is of: a place if it has a part of this name, or if no joint has the name."""
        word = node.name
        place, linked = self.places.find(word.text), self.joints.find(word.text)
        if place is not None and (node.part.text.lower() in parts or linked is None):
            return place
        if linked is None:
            if self.places.is_broken(word.text) or self.joints.is_broken(word.text):
                raise Fault
            hint = did_you_mean(word.text, [*self.places.names, *self.joints.names])
            raise Fault(word, f"there is no body, frame or joint {word.text!r}{hint}")
        return self.joint_of(word)

    def _drive_coordinate(self, name: Word, target: Dotted, law: Node) -> None:
        part = target.part.text.lower()
        joint = self.place_or_joint(target, POSITIONS)
        if isinstance(joint, Frame):
            place = joint
            if part not in POSITIONS:
                text = f"{place.label!r} has the coordinates x, y and z, not {target.part.text!r}"
                raise Fault(target.part, text)
            if place.body == self.b.ground:
                text = f"driver {name.text!r} drives {place.label!r}, which is on ground and cannot move"
                raise Fault(target.name, text)
            self.b.driver("absolute", place.label, self._law_of(law, LENGTH), coordinate=part, name=name.text)
            return
        names = COORDINATES.get(joint.kind, ())
        if not names:
            text = f"joint {joint.name!r} is {joint.kind}: its coordinates cannot be driven one by one; "
            raise Fault(target, text + "drive a point, a distance or an angle instead")
        index = joint_index(joint.kind, part, 0)
        if index is None:
            text = f"joint {joint.name!r} is {joint.kind} and has no coordinate {target.part.text!r}; drive its "
            raise Fault(target.part, text + either(list(names)))
        prescribed = self._law_of(law, ANGLE if names[index].startswith("angle") else LENGTH)
        self.b.driver("joint", joint, prescribed, index=index, name=name.text)

    def _drive_between(self, name: Word, target: Applied, law: Node) -> None:
        what = target.function.text.lower()
        if what not in ("distance", "angle"):
            hint = did_you_mean(what, ["distance", "angle"]) or "; there are distance(a, b) and angle(a.f, b.f)"
            raise Fault(target.function, f"{target.function.text!r} cannot be driven{hint}")
        if len(target.arguments) != 2:
            raise Fault(target.function, f"{what} is between two frames, not {len(target.arguments)}")
        owner = f"driver {name.text!r}"
        ends, axes = [], []
        for argument in target.arguments:
            axis = "f"
            if isinstance(argument, Dotted) and what == "angle":
                axis = argument.part.text.lower()
                if axis not in ("f", "g", "h"):
                    raise Fault(argument.part, f"a frame has the axes f, g and h, not {argument.part.text!r}")
                argument = argument.name
            ends.append(argument)
            axes.append(axis)
        first, second = self.two_places(ends[0], ends[1], owner, name.text)
        prescribed = self._law_of(law, ANGLE if what == "angle" else LENGTH)
        self.b.driver(what, first, prescribed, other=second, axes=(axes[0], axes[1]), name=name.text)  # type: ignore[arg-type]
