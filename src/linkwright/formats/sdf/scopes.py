"""Scopes of SDF: models with their links, joints, frames and nested models, where each frame is, and the values of
elements.

A scope is a `<model>` or the `<world>`. Poses are resolved by following `relative_to` (in SDF up to 1.6: `frame`) to
the scope's own frame; what a frame is fixed to, by following `attached_to` to a link.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwright.base.arguments import shortened
from linkwright.base.arrays import Floats
from linkwright.errors import FormatError
from linkwright.formats.includes import Folder
from linkwright.formats.xml import HERE, ElementReader, Pose, number
from linkwright.model.model_checks import listed
from linkwright.model.placements import rpy_matrix, snapped
from linkwright.spatial.rotation import euler_parameters_matrix

_TRUE = ("1", "true")


class Values(ElementReader):
    """Reads values of one file; `exact_turns`: angles written as 1.5708 are the quarter turns that they mean."""

    unbounded = 1e16  # what SDF before 1.9 has for "no limit"

    def __init__(self, file: str, exact_turns: bool = True) -> None:
        super().__init__(file)
        self.exact_turns = exact_turns

    def entry(self, element: Any, key: str) -> tuple[Any, str | None, str]:
        child = element.find(key)
        text = None if child is None else child.text or ""
        return child, text, f"<{key}> {shortened((text or '').strip())}"

    def name(self, element: Any) -> str:
        name = super().name(element)
        if "::" in name:
            text = f"the name {name!r} has '::', which parts the names of nested models; choose another"
            raise self.fail(element, text, name)
        return name

    def text(self, element: Any, tag: str, default: str = "") -> str:
        text = None if element is None else self.entry(element, tag)[1]
        return default if text is None else text.strip()

    def limit(self, element: Any, key: str, default: float, owner: str) -> float:
        value = super().limit(element, key, default, owner)
        return math.inf if key in ("effort", "velocity") and value < 0.0 else value

    def switch(self, parent: Any, tag: str, default: bool, owner: str) -> bool:
        word = self.text(parent, tag, str(default)).lower()
        if word not in (*_TRUE, "0", "false"):
            raise self.fail(parent.find(tag), f"{owner}: <{tag}> {shortened(word)} is neither true nor false", owner)
        return word in _TRUE

    def pose(self, parent: Any, owner: str) -> Pose:
        """The <pose> of x y z roll pitch yaw, or (1.9 on) with degrees or a quaternion x y z w."""
        element = parent.find("pose")
        if element is None or not (element.text or "").strip():
            return HERE
        form = element.get("rotation_format", "euler_rpy")
        if form == "quat_xyzw":
            x = self.numbers(parent, "pose", (0.0,) * 7, owner)
            return Pose(self._quaternion(element, x[3:], owner), x[:3])
        if form != "euler_rpy":
            raise self.fail(element, f"{owner}: rotation_format={form!r}; SDF knows euler_rpy and quat_xyzw", owner)
        x = self.numbers(parent, "pose", (0.0,) * 6, owner)
        degrees = is_true(element, "degrees")
        if self.exact_turns and not degrees:
            x[3:] = [exact_turn(word) for word in element.text.split()[3:]]
        return Pose(rpy_matrix(np.radians(x[3:]) if degrees else x[3:]), x[:3])

    def _quaternion(self, element: Any, xyzw: Floats, owner: str) -> Floats:
        size = float(np.linalg.norm(xyzw))
        if not 0.5 < size < 2.0:
            raise self.fail(
                element, f"{owner}: the quaternion of <{element.tag}> has the length {size:g}, not 1", owner
            )
        x, y, z, w = xyzw / size
        return snapped(euler_parameters_matrix(np.array([w, x, y, z])))


def is_true(element: Any, attribute: str) -> bool:
    """Whether a switch of an element is set."""
    return str(element.get(attribute, "")).strip().lower() in _TRUE


def exact_turn(word: str) -> float:
    """An angle; where it is quarter turns rounded to four decimals or more, as 1.5708, these quarter turns.

    Axes that are parallel but for such rounding would lock a loop that is free to move.
    """
    value = number(word)
    decimals = len(word.partition(".")[2]) if word.lstrip("+-").replace(".", "", 1).isdecimal() else 0
    turn = round(value / (math.pi / 2)) * (math.pi / 2) if abs(value) < 1e3 else 0.0
    return turn if turn and decimals >= 4 and abs(value - turn) <= 1.001 * 10.0**-decimals else value


MAX_MODELS = 50  # nested in each other
WORLD = "world"
MODEL = "__model__"
Version = tuple[int, int]


@dataclass(eq=False)
class Place:
    """Something that has a pose in its scope: a link, a joint, a frame or a nested model."""

    name: str
    element: Any
    kind: str  # "link", "joint", "frame", "model"
    pose: Pose
    relative_to: str  # "" is the scope's own frame
    attached_to: str = ""  # of a frame


@dataclass(eq=False)
class Scope:
    """A model or the world, with what is directly in it."""

    name: str
    element: Any
    values: Values
    version: Version
    parent: Scope | None = None
    is_world: bool = False
    static: bool = False
    places: dict[str, Place] = field(default_factory=dict)
    models: dict[str, Scope] = field(default_factory=dict)
    canonical: str = ""  # the name of the canonical link, empty: the first
    placement: str = ""  # the frame that the model's pose is meant for
    _poses: dict[str, Pose] = field(default_factory=dict)  # those that have been resolved
    _busy: set[str] = field(default_factory=set)  # whose poses are being looked for
    _world: Pose | None = None

    def of_kind(self, kind: str) -> Iterator[Place]:
        return (place for place in self.places.values() if place.kind == kind)

    @property
    def path(self) -> str:
        """The names of the models that it is in and its own, but for the world's."""
        above = self.parent.path if self.parent is not None else ""
        return "" if self.is_world else f"{above}::{self.name}" if above else self.name

    def in_world(self) -> Pose:
        """Where the scope's own frame is in the outermost scope's parent."""
        if self._world is None:
            if self.parent is not None:
                self._world = self.parent.in_world() @ self.parent.pose(self.name, self.element)
            else:
                self._world = HERE if self.is_world else self.values.pose(self.element, self.name) @ self._placed()
        return self._world

    def _placed(self) -> Pose:
        return self.pose(self.placement, self.element).inverse() if self.placement else HERE

    def pose(self, name: str, asker: Any) -> Pose:
        """Where a frame of this scope, or of a model in it, is in the scope's own frame."""
        inner, inside = self._inner(name, asker)
        if inner is not None:
            return self.pose(inner.name, asker) @ inner.pose(inside, asker)
        if name in ("", MODEL) or (name == WORLD and self.is_world):
            return HERE
        chain: list[Place] = []
        at = name
        while at not in ("", MODEL) and not (at == WORLD and self.is_world) and at not in self._poses:
            if "::" in at:
                break
            place = self._place(at, asker if not chain else chain[-1].element)
            if at in self._busy:
                ring = listed([p.name for p in chain] or [at])
                raise self.values.fail(place.element, f"poses are relative to each other in a ring: {ring}", at)
            self._busy.add(at)
            chain.append(place)
            at = place.relative_to
        if at in self._poses:
            pose = self._poses[at]
        else:
            pose = self.pose(at, chain[-1].element) if "::" in at else HERE
        self._busy.difference_update(place.name for place in chain)
        for place in reversed(chain):
            pose = pose @ place.pose
            if place.kind == "model":
                pose = pose @ self.models[place.name]._placed()
            self._poses[place.name] = pose
        return pose

    def body(self, name: str, asker: Any) -> tuple[Scope, str] | None:
        """The link that a name stands for, with its scope; None for the world."""
        passed: set[tuple[int, str]] = set()
        scope: Scope = self
        while True:
            key = id(scope), name
            if key in passed:
                raise scope.values.fail(asker, f"frames are attached to each other in a ring at {name!r}", name)
            passed.add(key)
            if name == WORLD and (scope.is_world or scope.parent is None or name not in scope.places):
                return None
            inner, name = scope._inner(name, asker)
            if inner is not None:
                scope = inner
                continue
            if name == MODEL:
                if scope.is_world:
                    return None
                name = scope.canonical or next((p.name for p in scope.of_kind("link")), "")
                if not name:
                    nested = next(iter(scope.models.values()), None)
                    if nested is None:
                        raise scope.values.fail(asker, f"model {scope.name!r} has no link", scope.name)
                    scope, name = nested, MODEL
                continue
            place = scope._place(name, asker)
            if place.kind == "link":
                return scope, name
            if place.kind == "model":
                scope, name = scope.models[name], MODEL
                continue
            asker = place.element
            if place.kind == "joint":
                name = scope.values.text(place.element, "child")
            else:
                name = place.attached_to or (WORLD if scope.is_world else MODEL)

    def frame_in_world(self, name: str, asker: Any) -> Pose:
        if name == WORLD and name not in self.places:
            return HERE
        return self.in_world() @ self.pose(name, asker)

    def _inner(self, name: str, asker: Any) -> tuple[Scope | None, str]:
        """The nested model that a name such as arm::hand begins with, and the name in it."""
        first, parted, inside = name.partition("::")
        if not parted:
            return None, name
        if first not in self.models:
            raise self._unknown(name, asker, "no nested model", first, list(self.models))
        return self.models[first], inside

    def _place(self, name: str, asker: Any) -> Place:
        if name not in self.places:
            raise self._unknown(name, asker, "no link, frame, joint or model", name, list(self.places))
        return self.places[name]

    def _unknown(self, name: str, asker: Any, what: str, missing: str, known: list[str]) -> FormatError:
        there = f"; there are {listed(known)}" if known else ""
        of = "the world" if self.is_world else f"model {self.name!r}"
        return self.values.fail(asker, f"{name!r} is named, but there is {what} {missing!r} in {of}{there}", name)


def read_scope(
    element: Any,
    folder: Folder,
    version: Version,
    exact_turns: bool,
    parent: Scope | None = None,
    name: str | None = None,
    depth: int = 0,
) -> Scope:
    """A `<model>` or `<world>` with all that is in it, included files too."""
    values = Values(folder.file, exact_turns)
    if depth > MAX_MODELS:
        raise values.fail(element, f"models are nested more than {MAX_MODELS} deep; flatten them")
    world = element.tag == "world"
    scope = Scope(name or values.name(element), element, values, version, parent, world)
    scope.static = not world and values.switch(element, "static", False, scope.name)
    scope.canonical = str(element.get("canonical_link") or "")
    scope.placement = str(element.get("placement_frame") or "")
    for child in element:
        tag = child.tag
        if tag in ("link", "joint", "frame"):
            _add(scope, _place_of(child, scope), values)
        elif tag == "model":
            inner = read_scope(child, folder, version, exact_turns, scope, depth=depth + 1)
            pose, relative_to = _pose_of(child, values, inner.name)
            _add(scope, Place(inner.name, child, "model", pose, relative_to), values, inner)
        elif tag == "include":
            _include(child, folder, scope, depth)
    return scope


def _add(scope: Scope, place: Place, values: Values, inner: Scope | None = None) -> None:
    if place.name in (WORLD, MODEL) or (place.name.startswith("__") and place.name.endswith("__")):
        text = f"a <{place.element.tag}> is named {place.name!r}, which SDF keeps for itself; choose another name"
        raise values.fail(place.element, text, place.name)
    if place.name in scope.places:
        first = scope.places[place.name]
        text = f"two things in {scope.name!r} are named {place.name!r} (a {first.kind} on line "
        text += f"{first.element.sourceline} and a {place.kind}); rename one"
        # Before 1.7 only things of one kind needed different names; a link and a joint may then share one.
        if first.kind == place.kind or scope.version >= (1, 7) or "joint" not in (first.kind, place.kind):
            raise values.fail(place.element, text, place.name)
        if place.kind == "joint":
            place.name = f"{place.name} (joint)"
        else:
            scope.places[f"{first.name} (joint)"] = first
            first.name = f"{first.name} (joint)"
    scope.places[place.name] = place
    if inner is not None:
        scope.models[place.name] = inner


def _place_of(element: Any, scope: Scope) -> Place:
    values = scope.values
    name = values.name(element)
    pose, relative_to = _pose_of(element, values, name)
    if element.tag == "joint" and not relative_to:
        relative_to = values.text(element, "child")
        if relative_to == WORLD and WORLD not in scope.places:
            relative_to = "" if scope.is_world else values.text(element, "parent")
    attached = str(element.get("attached_to") or "")
    if element.tag == "frame" and attached and not relative_to:
        relative_to = attached
    return Place(name, element, element.tag, pose, relative_to, attached)


def _pose_of(element: Any, values: Values, name: str) -> tuple[Pose, str]:
    pose = element.find("pose")
    relative_to = "" if pose is None else str(pose.get("relative_to") or pose.get("frame") or "")
    return values.pose(element, name), relative_to


# -- includes -----------------------------------------------------------------------------------------------------
def _include(element: Any, folder: Folder, scope: Scope, depth: int) -> None:
    values = scope.values
    uri = values.text(element, "uri")
    if not uri:
        raise values.fail(element, "an <include> has no <uri>; name the file or model:// folder")
    if is_true(element, "merge"):
        raise values.fail(element, f'<include merge="true"> of {uri!r} is not read; include it without merge', uri)
    with folder.open(_model_file(uri, folder, element, values), element) as part:
        root = part.root
        inner_version = version_of(root, folder.file)
        models = root.findall("model")
        if len(models) != 1:
            text = f"has {len(models)} <model>; a file that is included has one"
            raise FormatError(text, file=folder.file, line=root.sourceline)
        name = values.text(element, "name") or Values(folder.file).name(models[0])
        inner = read_scope(models[0], folder, inner_version, values.exact_turns, scope, name, depth + 1)
    inner.static = values.switch(element, "static", inner.static, name)
    inner.placement = values.text(element, "placement_frame") or inner.placement
    # A pose here takes the place of the model's own.
    pose, relative_to = _pose_of(element if element.find("pose") is not None else models[0], values, name)
    place = Place(name, element, "model", pose, relative_to)
    _add(scope, place, values, inner)


def _model_file(uri: str, folder: Folder, element: Any, values: Values) -> str:
    """The file that a uri means: itself, or what is in its folder."""
    kind, parted, path = uri.partition("://")
    if parted and kind not in ("model", "file", "package"):
        text = f"includes {uri!r}; nothing is fetched over a network: put the model beside the file and name its folder"
        raise values.fail(element, text, uri)
    name = path if parted else uri
    if folder.exists(f"{name}/model.config", element):
        config = Values(str(name))
        with folder.open(f"{name}/model.config", element) as part:
            named = [x for x in part.root.findall("sdf") if (x.text or "").strip()]
            if named:
                newest = max(named, key=lambda x: _version(x.get("version") or "1.0") or (0, 0))
                return f"{name}/{newest.text.strip()}"
        raise config.fail(element, "its model.config names no <sdf> file", name)
    return f"{name}/model.sdf" if folder.exists(f"{name}/model.sdf", element) else name


def version_of(root: Any, file: str) -> Version:
    """The version that an `<sdf>` says; any other outermost element is an error."""
    if root.tag != "sdf":
        text = f"is not an SDF: its outermost element is <{root.tag}>, not <sdf>"
        raise FormatError(text, file=file, line=root.sourceline)
    text = root.get("version")
    version = _version(text or "")
    if version is None or version < (1, 4) or version > (1, 99):
        shown = "says no version" if text is None else f"says version={text!r}"
        raise FormatError(f"{shown}; SDF 1.4 to 1.12 is read", file=file, line=root.sourceline)
    return version


def _version(text: str) -> Version | None:
    major, _, minor = text.strip().partition(".")
    minor = minor.partition(".")[0]
    if not (major.isdecimal() and minor.isdecimal() and text.isascii() and len(text) < 20):
        return None
    return int(major), int(minor)
