"""SDF files into descriptions: models and worlds, loops too; no sensors, no plugins, no contact."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal
from warnings import warn

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.errors import FormatError, LinkwrightWarning
from linkwright.formats.includes import Folder
from linkwright.formats.model_files import check_options, errors_in
from linkwright.formats.passive_forces import without_losses
from linkwright.formats.sdf.scopes import WORLD, Place, Scope, Values, is_true, read_scope, version_of
from linkwright.formats.sdf.sdf_joints import Joints, Link, label, link_label
from linkwright.formats.urdf import INERTIA
from linkwright.formats.xml import HERE, present
from linkwright.model.builder import Builder
from linkwright.model.description import FREE_FALL, Description
from linkwright.model.merge import merge_fixed
from linkwright.model.model_checks import listed
from linkwright.model.placements import full_inertia
from linkwright.model.topology import Groups

#: How many freedoms the joints have that have not one.
_FREES = {"fixed": 0, "universal": 2, "revolute2": 2, "ball": 3}
_WORLD_GRAVITY = (0.0, 0.0, -9.8)
#: Elements of links and models that would change the motion and are not read.
_UNREAD = ("kinematic", "enable_wind", "particle_emitter", "gripper")

#: What joints and inertias may have in them; anything else there is a slip of the pen, or an extension.
_KNOWN = {
    "joint": "parent child pose frame origin axis axis2 gearbox_ratio gearbox_reference_body thread_pitch "
    "screw_thread_pitch physics sensor plugin",
    "axis": "xyz initial_position use_parent_model_frame dynamics limit mimic",
    "dynamics": "damping friction spring_reference spring_stiffness",
    "limit": "lower upper effort velocity stiffness dissipation",
    "mimic": "multiplier offset reference",
    "inertial": "mass density pose frame origin inertia fluid_added_mass auto_inertia_params",
    "inertia": " ".join(INERTIA),
}
_KNOWN["axis2"] = _KNOWN["axis"]


def read_sdf(
    path: str | os.PathLike[str],
    *,
    base: Literal["fixed", "floating"] | None = None,
    fixed: Literal["merge", "keep"] = "merge",
    friction: Literal["apply", "ignore"] = "apply",
    angles: Literal["exact turns", "as written"] = "exact turns",
    folders: Sequence[str | os.PathLike[str]] = (),
) -> Description:
    """The mechanism of an SDF file: its one model, or all models of its world.

    `base`: a model that no joint holds to the world floats, as SDF has it; "fixed" holds its first link where it is,
    "floating" lets static models float too. `fixed`: links on fixed joints are merged into what carries them (their
    names stay as frames), or kept as bodies. `friction`: damping and friction of joints act, or are only kept in the
    arrays of these names; springs always act. `angles`: quarter turns that a pose has rounded to four decimals or
    more (1.5708) are made exact, since axes that are not quite parallel lock loops; or not. `folders`: further
    folders whose files may be included.
    """
    file = os.fspath(path)
    check_options(file, read_sdf, base=base, fixed=fixed, friction=friction, angles=angles)
    folder = Folder.of(path, folders)
    root = folder.parse()
    version = version_of(root, file)
    tops = [e for e in root if e.tag in ("model", "world")]
    if len(tops) != 1:
        text = f"has {len(tops)} <model> and <world> elements; one is wanted (several models go into one <world>)"
        raise FormatError(text, file=file, line=root.sourceline)
    try:
        top = read_scope(tops[0], folder, version, angles == "exact turns")
        description = _Reader(file, top, base).description()
    except RecursionError:
        raise FormatError("its models and frames refer to each other too deeply; flatten them", file=file) from None
    if friction == "ignore":
        description = without_losses(description)
    with errors_in(file):
        return merge_fixed(description) if fixed == "merge" else description


class _Reader:
    """Makes one description of the outermost scope."""

    def __init__(self, file: str, top: Scope, base: str | None) -> None:
        self.file, self.top, self.base = file, top, base
        self.b = Builder(top.name, ground=WORLD)
        self.links: dict[str, Link] = {WORLD: Link(WORLD, HERE)}
        self.notes: dict[str, list[str]] = {}
        self.joints = Joints(self.b, self.links, self.notes)
        self.floating: list[str] = []  # bodies that a free joint may carry, the canonical ones first
        self.light: list[str] = []
        self.weightless: list[tuple[str, str, float]] = []  # bodies without gravity: centre of mass, name, mass
        self.gravity = np.array(FREE_FALL)

    def description(self) -> Description:
        scopes = list(_scopes(self.top, self.base == "floating"))
        for scope, static in scopes:
            self._look(scope)
            for place in scope.of_kind("link"):
                self._link(scope, place, static)
            if not static and not scope.is_world:
                self._canonical(scope)
        if all(link.body == WORLD for link in self.links.values()):
            what = "is static" if len(self.links) > 1 else "has no <link>"
            raise FormatError(f"nothing in it can move: all of it {what}", file=self.file)
        joints = [(s, p, self._ends(s, p)) for s, static in scopes for p in s.of_kind("joint") if not static]
        cuts = self._tree([(str(place.element.get("type")), ends) for _, place, ends in joints])
        for k, (scope, place, ends) in enumerate(joints):
            self.joints.add(scope, place, label(scope, place.name), ends, cut=k in cuts)
        self.joints.finish()
        for scope, _ in scopes:
            for place in scope.of_kind("frame"):
                self._frame(scope, place)
        if self.top.is_world:
            self.gravity = self.top.values.numbers(self.top.element, "gravity", _WORLD_GRAVITY, "the world")
            self.b.gravity(self.gravity)
        for centre, name, mass in self.weightless:
            self.b.applied_wrench(centre, -mass * self.gravity, axes="ground", name=f"{name} without gravity")
        self._warn()
        with errors_in(self.file):
            return self.b.description(inertias="warn")

    # -- links ----------------------------------------------------------------------------------------------------
    def _link(self, scope: Scope, place: Place, static: bool) -> None:
        values, element, name = scope.values, place.element, label(scope, place.name)
        pose = scope.frame_in_world(place.name, element)
        if static:
            self.b.frame(WORLD, pose.r, pose.p, name)
            self.links[name] = Link(WORLD, HERE)
            return
        mass, com, inertia = self._inertial(values, element.find("inertial"), name)
        with values.errors_at(element, name):
            self.b.body(name, mass, com, inertia)
        self.links[name] = Link(name, pose)
        self.floating.append(name)
        if not values.switch(element, "gravity", True, name) and mass:
            centre = f"{name} centre of mass"
            self.b.frame(name, np.eye(3), com, centre)
            self.weightless.append((centre, name, mass))

    def _inertial(self, values: Values, element: Any, name: str) -> tuple[float, Floats, Floats]:
        if element is None:
            self.light.append(name)
            return 1.0, np.zeros(3), np.eye(3)
        if is_true(element, "auto"):
            text = f'link {name!r} has <inertial auto="true">, which is not read; write mass and inertia out'
            raise values.fail(element, text, name)
        if element.find("fluid_added_mass") is not None:
            self.joints.note("<fluid_added_mass>", name)
        pose = values.pose(element, name)
        inertia, diagonal = element.find("inertia"), (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
        pairs = zip(INERTIA, diagonal, strict=True)
        packed = np.array([values.number(inertia, key, default, name) for key, default in pairs])
        mass = values.not_negative(element, "mass", 1.0, name, f"{name} has the negative <mass>")
        return mass, pose.p, pose.r @ full_inertia(packed) @ pose.r.T

    def _frame(self, scope: Scope, place: Place) -> None:
        link = self.links[link_label(scope, place.name, place.element)]
        inside = link.pose.inverse() @ scope.frame_in_world(place.name, place.element)
        with scope.values.errors_at(place.element, place.name):
            self.b.frame(link.body, inside.r, inside.p, label(scope, place.name))

    # -- the tree -------------------------------------------------------------------------------------------------
    def _ends(self, scope: Scope, place: Place) -> tuple[str, str]:
        values, element, ends = scope.values, place.element, []
        for side in ("parent", "child"):
            name = values.text(element, side)
            if not name:
                raise values.fail(element, f"joint {place.name!r} names no <{side}>; add one", place.name)
            ends.append(link_label(scope, name, element))
        if ends[0] == ends[1]:
            text = f"joint {place.name!r} joins {ends[0]!r} to itself; name two different links"
            raise values.fail(element, text, place.name)
        return ends[0], ends[1]

    def _canonical(self, scope: Scope) -> None:
        if scope.canonical:
            name = link_label(scope, scope.canonical, scope.element)
            if name in self.floating:
                self.floating.remove(name)
                self.floating.insert(0, name)

    def _tree(self, joined: list[tuple[str, tuple[str, str]]]) -> set[int]:
        """Which joints close loops; each part that no joint holds to the world gets a joint of its own here.

        Joints that free little come into the tree first, in the order of the file, so that it has few coordinates.
        """
        groups = Groups[str]()
        for name, link in self.links.items():
            if link.body == WORLD:
                groups.join(name, WORLD)
        cuts, children = set(), set()
        for k in sorted(range(len(joined)), key=lambda k: _FREES.get(joined[k][0], 1)):
            kind, (parent, child) = joined[k]
            if kind == "gearbox":
                continue
            children.add(child)
            if not groups.join(parent, child):
                cuts.add(k)
        # Of each part, the first link that no joint has as its child.
        parts: list[str] = []
        for name in sorted(self.floating, key=lambda x: x in children):
            if groups.join(name, WORLD):
                parts.append(name)
        for name in parts:
            pose, joint = self.links[name].pose, "root_joint" if len(parts) == 1 else f"root_joint of {name}"
            kind = "fixed" if self.base == "fixed" else "free"
            self.b.joint(kind, self.b.frame(WORLD, pose.r, pose.p), self.b.frame(name), joint)
        return cuts

    # -- what is left out -----------------------------------------------------------------------------------------
    def _look(self, scope: Scope) -> None:
        for element in (scope.element, *(p.element for p in scope.of_kind("link"))):
            for child in element:
                if child.tag in _UNREAD and (child.text or "").strip().lower() not in ("0", "false"):
                    self.joints.note(f"<{child.tag}>", scope.name)
                elif isinstance(child.tag, str) and ("}" in child.tag or ":" in child.tag):
                    tag = child.tag.rpartition("}")[2]
                    shown = f"{child.prefix}:{tag}" if child.prefix else tag
                    self.joints.note(f"<{shown}>", str(child.get("name") or scope.name))
        for place in (*scope.of_kind("joint"), *scope.of_kind("link")):
            parts = [place.element] if place.element.tag == "joint" else place.element.findall("inertial")
            for part in parts:
                self._look_inside(part, place.name)

    def _look_inside(self, element: Any, name: str) -> None:
        known = _KNOWN[element.tag].split()
        for child in element:
            if child.tag not in known:
                self.joints.note(f"<{str(child.tag)[:80]}> in <{element.tag}>", name)
            elif child.tag in _KNOWN:
                self._look_inside(child, name)

    def _warn(self) -> None:
        notes = "; ".join(f"{what} ({listed(names)})" for what, names in self.notes.items())
        warnings = {
            f"no <inertial> in {listed(self.light)}; taken as SDF says, 1 kg and 1 kg m² about each axis": self.light,
            f"not read, though it may change the motion: {notes}": notes,
        }
        for text in present(warnings):
            warn(f"{self.file}: {text}", LinkwrightWarning, stacklevel=6)


def _scopes(top: Scope, mobile: bool) -> Iterator[tuple[Scope, bool]]:
    """Every scope, with whether it is static: by itself or by a model that it is in."""
    todo = [(top, False)]
    for scope, held in todo:  # grows as it is read
        static = (held or scope.static) and not mobile
        yield scope, static
        todo += [(inner, static) for inner in scope.models.values()]
