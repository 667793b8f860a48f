"""URDF read leniently into a description: kinematics, inertias, limits and mimics; xacro files through the package
`xacro`.

xacro evaluates Python expressions of the file and reads files that it names anywhere, so that it is asked for only
by those who trust the file.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from warnings import warn

import numpy as np

from linkwright.base.arguments import shortened
from linkwright.base.arrays import Floats
from linkwright.errors import FormatError, LinkwrightError, LinkwrightWarning
from linkwright.formats.model_files import check_options
from linkwright.formats.passive_forces import with_losses
from linkwright.formats.xml import ElementReader, parse_bytes, parse_xml
from linkwright.model.description import (
    GROUND,
    GROUND_NAMES,
    LOSSES,
    Description,
    Frames,
    Names,
    joint_defaults,
    kind_number,
)
from linkwright.model.elements import Mimic
from linkwright.model.merge import merge_fixed
from linkwright.model.model_checks import check_numbers, listed
from linkwright.model.placements import axis_frame, full_inertia, pack_inertia, rpy_matrix
from linkwright.model.topology import circle

_KINDS = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
}
_WITH_AXIS = ("revolute", "continuous", "prismatic", "planar")
_OF_ONE_COORDINATE = ("revolute", "continuous", "prismatic")
_INF = float("inf")
LARGEST = sys.float_info.max  # a limit that is none, where "inf" cannot be read
INERTIA = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")  # as SDF has it too


@dataclass(eq=False)
class _Link:
    name: str
    line: int
    mass: float = 0.0
    com: Floats | None = None
    inertia: Floats | None = None
    has_inertial: bool = False
    lacks: str = "<inertial>"  # what it does not have of an <inertial>, or nothing


@dataclass(eq=False)
class _Joint:
    name: str
    line: int
    type: str
    parent: str
    child: str
    turn: Floats
    origin: Floats
    axis: Floats
    limits: tuple[float, float, float, float] = (-_INF, _INF, _INF, _INF)
    damping: float = 0.0
    friction: float = 0.0
    mimic: tuple[str, float, float] | None = None


def read_urdf(
    path: str | Path,
    *,
    base: Literal["fixed", "floating"] = "fixed",
    mimic: Literal["follow", "independent"] = "follow",
    fixed: Literal["merge", "keep"] = "merge",
    friction: Literal["ignore", "apply"] = "ignore",
) -> Description:
    """The mechanism of a URDF file.

    `base`: the root link is part of ground, or floats on a free joint `root_joint`. `mimic`: a mimic joint
    follows its leader, or keeps a coordinate of its own. `fixed`: links on fixed joints are merged into what
    carries them (their names stay as frames), or kept as bodies. `friction`: the file's damping and friction are
    only kept in the arrays of these names, or act as forces −damping · v − friction · sign(v) on their joints.
    """
    return describe(parse_xml(path), str(path), base=base, mimic=mimic, fixed=fixed, friction=friction)


def describe(robot: Any, file: str, *, base: str, mimic: str, fixed: str, friction: str) -> Description:
    """The mechanism of a `<robot>` element; options as those of `read_urdf`."""
    check_options(file, read_urdf, base=base, mimic=mimic, fixed=fixed, friction=friction)
    if robot.tag != "robot":
        text = f"is not a URDF: its outermost element is <{robot.tag}>, not <robot>"
        raise FormatError(text, file=file, line=robot.sourceline)
    reader = _Reader(file)
    links = [reader.link(e) for e in robot.iterchildren("link")]
    joints = [reader.joint(e) for e in robot.iterchildren("joint")]
    if not links:
        text = "has no <link>: there is no robot in it (was it generated from a xacro file without its macro call?)"
        raise FormatError(text, file=file, line=robot.sourceline)
    root = _check_graph(file, links, joints)
    description = _describe(robot.get("name") or Path(file).stem, links, joints, root, floating=base == "floating")
    if mimic == "follow":
        description = _with_mimics(file, description, joints)
    if friction == "apply":
        description = with_losses(description)
    check_numbers(description, inertias="warn")
    _warn_of_massless(file, links, joints, root, merged=fixed == "merge")
    return merge_fixed(description) if fixed == "merge" else description


class _Reader(ElementReader):
    """Links and joints; entries are attributes. Parsers that know no "inf" have the largest number for it."""

    unbounded = LARGEST

    def entry(self, element: Any, key: str) -> tuple[Any, str | None, str]:
        text = element.get(key)
        return element, text, f"{key}={shortened(text or '')} of <{element.tag}>"

    def origin(self, element: Any, owner: str) -> tuple[Floats, Floats]:
        origin = element.find("origin")
        zero = (0.0, 0.0, 0.0)
        return rpy_matrix(self.numbers(origin, "rpy", zero, owner)), self.numbers(origin, "xyz", zero, owner)

    def link(self, element: Any) -> _Link:
        name = self.name(element)
        link = _Link(name, element.sourceline)
        inertial = element.find("inertial")
        if inertial is None:
            return link
        mass, inertia = inertial.find("mass"), inertial.find("inertia")
        link.mass = self.not_negative(mass, "value", 0.0, name, f"link {name!r} has the negative mass")
        turn, link.com = self.origin(inertial, name)
        packed = np.array([self.number(inertia, key, 0.0, name) for key in INERTIA])
        link.inertia = pack_inertia(turn @ full_inertia(packed) @ turn.T)
        link.has_inertial = mass is not None and mass.get("value") is not None
        link.lacks = "" if inertia is not None and inertia.attrib else "<inertia>"
        if not link.has_inertial:
            link.lacks = "<mass value>"
        return link

    def joint(self, element: Any) -> _Joint:
        name, kind = self.name(element), element.get("type")
        if kind not in _KINDS:
            message = f"joint {name!r} has the type {kind!r}; URDF knows {', '.join(_KINDS)}"
            raise self.fail(element, message, name)
        ends = []
        for side in ("parent", "child"):
            end = element.find(side)
            link = None if end is None else end.get("link")
            if not link:
                raise self.fail(element, f'joint {name!r} names no {side}; add <{side} link="..."/>', name)
            ends.append(str(link))
        turn, origin = self.origin(element, name)
        axis = np.array([1.0, 0.0, 0.0])
        if kind in _WITH_AXIS and element.find("axis") is not None:
            axis = self.numbers(element.find("axis"), "xyz", (1.0, 0.0, 0.0), name)
            if not axis.any():
                raise self.fail(element.find("axis"), f"joint {name!r} has a zero axis; give it a direction", name)
        joint = _Joint(name, element.sourceline, str(kind), ends[0], ends[1], turn, origin, axis)
        joint.limits = self._limits(element.find("limit"), joint)
        joint.damping, joint.friction = (
            self.not_negative(element.find("dynamics"), word, 0.0, name, f"joint {name!r} has the negative {word}")
            for word in LOSSES
        )
        mimic = element.find("mimic")
        if mimic is not None and kind != "fixed":
            leader = mimic.get("joint")
            if not leader:
                raise self.fail(mimic, f'joint {name!r} mimics no joint; add joint="..."', name)
            ratio, offset = self.number(mimic, "multiplier", 1.0, name), self.number(mimic, "offset", 0.0, name)
            joint.mimic = (str(leader), ratio, offset)
        return joint

    def _limits(self, element: Any, joint: _Joint) -> tuple[float, float, float, float]:
        """Lower, upper, velocity and effort. URDF counts a bound that <limit> leaves out as 0."""
        name, bounded = joint.name, joint.type in ("revolute", "prismatic") and element is not None
        lower, upper = self.limits(element, (0.0, 0.0), name) if bounded else (-_INF, _INF)
        velocity, effort = (self.limit(element, word, _INF, name) for word in ("velocity", "effort"))
        for word, value in (("velocity", velocity), ("effort", effort)):
            if value < 0.0:
                message = f"joint {name!r} has the negative {word} limit {value:g}; give 0 or more"
                raise self.fail(element, message, name)
        return lower, upper, velocity, effort


def _check_graph(file: str, links: list[_Link], joints: list[_Joint]) -> str:
    """The one root; every way in which links and joints fail to be a tree has its own error."""
    for what, things in (("links", links), ("joints", joints)):
        lines: dict[str, int] = {}
        for thing in things:
            if thing.name in lines:
                text = f"two {what} are named {thing.name!r} (the first on line {lines[thing.name]}); rename one"
                raise FormatError(text, file=file, line=thing.line, element=thing.name)
            lines[thing.name] = thing.line
    names = {link.name for link in links}
    carrier: dict[str, _Joint] = {}
    for joint in joints:
        for side, end in (("parent", joint.parent), ("child", joint.child)):
            if end not in names:
                text = f"joint {joint.name!r} names {end!r} as its {side}, but there is no such link; define it"
                raise FormatError(text, file=file, line=joint.line, element=end)
        if joint.child in carrier:
            text = (
                f"link {joint.child!r} is the child of two joints, {carrier[joint.child].name!r} and {joint.name!r}; "
                "a URDF is a tree: remove one (loops are described in .mks)"
            )
            raise FormatError(text, file=file, line=joint.line, element=joint.child)
        carrier[joint.child] = joint
    roots = [link.name for link in links if link.name not in carrier]
    _check_cycles(file, joints, roots)
    if len(roots) > 1:
        text = f"has {len(roots)} root links, {listed(roots)}; connect all but one of them by a joint"
        raise FormatError(text, file=file, element=roots[1])
    return roots[0]


def _check_cycles(file: str, joints: list[_Joint], roots: list[str]) -> None:
    """Refuse joints that no root carries: going up from one of them leads round."""
    carried = {joint.child for joint in _outward(joints, roots)}
    carrier = {joint.child: joint for joint in joints if joint.child not in carried}
    if not carrier:
        return
    at, path = next(iter(carrier)), dict[str, None]()
    while at not in path:
        path[at] = None
        at = carrier[at].parent
    around = list(path)[list(path).index(at) :][::-1]
    way = " → ".join([*around, around[0]])
    text = f"the joints form a cycle, {way}; a URDF is a tree: remove one of these joints"
    raise FormatError(text, file=file, line=carrier[at].line, element=at)


def _describe(name: str, links: list[_Link], joints: list[_Joint], root: str, *, floating: bool) -> Description:
    bodies = [link for link in links if floating or link.name != root]
    index = {link.name: k for k, link in enumerate(bodies)}
    first = int(floating)
    n = len(joints) + first
    a: dict[str, Any] = {key: np.array(value) for key, value in joint_defaults(n).items()}
    kind, parent, child = np.zeros(n, np.int32), np.full(n, GROUND, np.int32), np.zeros(n, np.int32)
    joint_names = [joint.name for joint in joints]
    if floating:
        free = "root_joint" if "root_joint" not in joint_names else f"root_joint of {root}"
        joint_names.insert(0, free)
        kind[0], child[0] = kind_number("free"), index[root]
    for k, joint in enumerate(joints, first):
        kind[k] = kind_number(_KINDS[joint.type])
        parent[k], child[k] = index.get(joint.parent, GROUND), index[joint.child]
        frame = axis_frame(joint.axis) if joint.type in _WITH_AXIS else np.eye(3)
        a["ri"][k], a["pi"][k], a["rj"][k] = joint.turn @ frame, joint.origin, frame
        a["lower"][k], a["upper"][k], a["velocity_limit"][k], a["effort_limit"][k] = joint.limits
        a["damping"][k], a["friction"][k] = joint.damping, joint.friction
    zero3, zero6 = np.zeros(3), np.zeros(6)
    frames, ground_inertia = Frames(), None
    if not floating:
        base = next(link for link in links if link.name == root)
        frames = Frames(Names([root]), np.array([GROUND], np.int32), np.eye(3)[None], np.zeros((1, 3)))
        if base.has_inertial and base.com is not None and base.inertia is not None:
            ground_inertia = (base.mass, base.com, base.inertia)
    taken = {link.name for link in links}
    return Description(
        name=name,
        body_names=Names([link.name for link in bodies]),
        mass=np.array([link.mass for link in bodies]),
        com=np.array([zero3 if link.com is None else link.com for link in bodies]).reshape(-1, 3),
        inertia=np.array([zero6 if link.inertia is None else link.inertia for link in bodies]).reshape(-1, 6),
        joint_names=Names(joint_names),
        kind=kind,
        parent=parent,
        child=child,
        frames=frames,
        passive=frozenset(np.flatnonzero(kind == kind_number("free")).tolist()),
        ground_name=next(name for name in GROUND_NAMES if name not in taken),
        ground_inertia=ground_inertia,
        **a,
    )


def _with_mimics(file: str, d: Description, joints: list[_Joint]) -> Description:
    """The mimics; one whose leader is not in the file stays independent."""
    by_name = {joint.name: joint for joint in joints}
    orphans = [joint for joint in joints if joint.mimic is not None and joint.mimic[0] not in by_name]
    if orphans:
        pairs = [f"{joint.name} (of {joint.mimic[0]})" for joint in orphans if joint.mimic is not None]
        text = f"{file}: no such joints to mimic for {listed(pairs)}; these stay independent: correct the names"
        warn(text, LinkwrightWarning, stacklevel=6)
    mimics = []
    leaders: dict[str, str] = {}
    for joint in joints:
        if joint.mimic is None or joint in orphans:
            continue
        leader, ratio, offset = by_name[joint.mimic[0]], *joint.mimic[1:]
        passed = circle(leaders, joint.name, leader.name)
        if passed:
            text = f"joints mimic each other in a circle, {' → '.join(passed)}; remove one <mimic>"
            raise FormatError(text, file=file, line=joint.line, element=joint.name)
        leaders[joint.name] = leader.name
        for end in (joint, leader):
            if end.type not in _OF_ONE_COORDINATE:
                text = f"joint {joint.name!r} mimics {leader.name!r}, but {end.name!r} is {end.type}"
                raise FormatError(f"{text}; remove the <mimic>", file=file, line=joint.line, element=end.name)
        follower, led_by = (d.joint_names.position("joint", x.name) for x in (joint, leader))
        mimics.append(Mimic(follower, led_by, ratio, offset))
    return replace(d, mimics=tuple(mimics))


def _warn_of_massless(file: str, links: list[_Link], joints: list[_Joint], root: str, *, merged: bool) -> None:
    """One warning for all links without an inertial, which says where that makes forward dynamics singular.

    A link without one that is merged into a body with mass, and carries nothing that moves, is a mere frame.
    """
    if not any(link.lacks for link in links):
        return
    beyond = {link.name: link.mass for link in links}  # the mass of a link and of all that it carries
    whole = dict(beyond)  # at the first link of those that fixed joints hold together: their mass
    first = {root: root}
    carries_moving: set[str] = set()
    outward = _outward(joints, [root])
    for joint in outward:
        first[joint.child] = first[joint.parent] if joint.type == "fixed" else joint.child
        if joint.type == "fixed":
            whole[first[joint.child]] += whole[joint.child]
    for joint in reversed(outward):
        beyond[joint.parent] += beyond[joint.child]
        if joint.type != "fixed" or joint.child in carries_moving:
            carries_moving.add(joint.parent)
    held = {joint.child for joint in joints if joint.type == "fixed"} if merged else set()
    lacking: dict[str, list[str]] = {"<inertial>": [], "<mass value>": [], "<inertia>": []}
    for link in links:
        name = link.name
        frame = name in held and name not in carries_moving and whole[first[name]] > 0.0
        if link.lacks and not (frame and link.lacks == "<inertial>"):
            lacking[link.lacks].append(name)
    texts = [
        f"no {what} in {listed(names)}; taken as {'point masses' if what == '<inertia>' else 'massless'}"
        for what, names in lacking.items()
        if names
    ]
    if not texts:
        return
    moved = {joint.child for joint in joints if joint.type != "fixed"}
    loose = [x.name for x in links if not x.has_inertial and x.name in moved and beyond[x.name] == 0.0]
    text = f"{file}: {'. There is '.join(texts)}"
    if loose:
        text += (
            f". Of these, {listed(loose)} hang on moving joints with no mass beyond: forward dynamics is singular "
            "there; give them a mass, or lock their joints"
        )
    warn(text, LinkwrightWarning, stacklevel=6)


def _outward(joints: list[_Joint], roots: list[str]) -> list[_Joint]:
    """The joints of trees, each after the one that carries its parent."""
    carried: dict[str, list[_Joint]] = {}
    for joint in joints:
        carried.setdefault(joint.parent, []).append(joint)
    outward = [joint for root in roots for joint in carried.get(root, ())]
    for joint in outward:  # grows as it is read
        outward += carried.get(joint.child, ())
    return outward


def read_xacro(
    path: str | os.PathLike[str],
    *,
    arguments: Mapping[str, Any] | None = None,
    trust: bool = False,
    base: Literal["fixed", "floating"] = "fixed",
    mimic: Literal["follow", "independent"] = "follow",
    fixed: Literal["merge", "keep"] = "merge",
    friction: Literal["ignore", "apply"] = "ignore",
) -> Description:
    """The mechanism of a xacro file; `arguments` are its `<xacro:arg>`, other options those of URDF.

    `trust=True` is needed, because xacro runs the file's expressions and reads whatever files it names.
    """
    file = os.fspath(path)
    if trust is not True:
        text = "is a xacro file, whose expressions are run as code and which may read any file; if you trust it, give "
        raise FormatError(text + "trust=True to lw.load, or --trust on the command line", file=file)
    robot = parse_bytes(expanded(file, arguments or {}), file)
    return describe(robot, file, base=base, mimic=mimic, fixed=fixed, friction=friction)


def expanded(file: str, arguments: Mapping[str, Any]) -> bytes:
    """The XML that xacro makes of a file."""
    try:
        import xacro  # type: ignore[import-not-found, import-untyped, unused-ignore]  # weight: xacro
    except ImportError:
        raise LinkwrightError(f"{file}: xacro files need the package xacro: pip install xacro") from None
    wanted = {str(key): str(value) for key, value in arguments.items()}
    warnings = io.StringIO()  # it warns on stderr
    try:
        with redirect_stderr(warnings):
            document = xacro.process_file(file, mappings=wanted)
    except (Exception, SystemExit) as error:  # whatever the file's expressions may raise
        reason = " ".join(str(error).split()).partition(" [Errno")[0] or type(error).__name__
        raise FormatError(f"xacro cannot expand it: {reason}", file=file) from error
    if warnings.getvalue().strip():
        warn(f"{file}: xacro warns: {' '.join(warnings.getvalue().split())}", LinkwrightWarning, stacklevel=5)
    return bytes(document.toxml(encoding="utf-8"))
