"""What holds for a whole MJCF model: <compiler>, <option>, default classes, how orientations are written; the
elements and attributes that MJCF has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.formats.mjcf.nodes import Node
from linkwright.formats.xml import Pose
from linkwright.model.placements import snapped
from linkwright.spatial.rotation import euler_parameters_matrix

#: The shortcuts of <general>: all of them set the attributes of one default.
ACTUATORS = (
    *("general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "muscle", "adhesion"),
    *("orientation", "pid", "dcmotor", "plugin"),
)
_MOST = 5  # listed in full
_TURN = "quat axisangle xyaxes zaxis euler"
_SOFT = "solref solimp"
_LOSS = "limited range actuatorfrclimited actuatorfrcrange armature damping frictionloss stiffness springyield margin "
_LOSS += "solreflimit solimplimit solreffriction solimpfriction group user name class"
_DRIVE = """
    name class group user input interp nsample delay joint jointinparent tendon site refsite body cranksite slidersite
    cranklength gear lengthrange ctrllimited ctrlrange forcelimited forcerange actlimited actrange actdim actearly
    inheritrange posrange velrange ffrange damping armature dyntype gaintype biastype dynprm gainprm biasprm kp kv ki
    imax slewmax dampratio timeconst area diameter bias range force scale lmin lmax vmax fpmax fvmax tausmooth gain
    motorconst resistance nominal saturation inductance cogging controller thermal lugre plugin instance
"""
#: The attributes of the elements that motion depends on, those of older versions too.
ATTRIBUTES: dict[str, frozenset[str]] = {
    tag: frozenset(words.split())
    for tag, words in {
        "mujoco": "model",
        "compiler": """alignfree angle assetdir autolimits balanceinertia boundinertia boundmass conflict convexhull
            coordinate discardvisual eulerseq exactmeshinertia fitaabb fusestatic inertiafromgeom inertiagrouprange
            meshdir passthrough savecanonical savecompiled saveinertial settotalmass strippath texturedir usethread""",
        "option": """actuatorgroupdisable apirate ccd_iterations ccd_tolerance collision cone density gravity impratio
            integrator iterations jacobian ls_iterations ls_tolerance magnetic mpr_iterations mpr_tolerance
            noslip_iterations noslip_tolerance o_friction o_margin o_solimp o_solref sdf_initpoints sdf_iterations
            sleep_tolerance solver timestep tolerance viscosity wind""",
        "flag": """actuation autoreset clampctrl constraint contact damper diagexact energy equality eulerdamp
            filterparent frictionloss fwdinv gravity invdiscrete ipc island limit midphase multiccd nativeccd override
            passive refsafe sensor sensornoise sleep speculative spring warmstart""",
        "default": "class",
        "worldbody": f"name childclass pos {_TURN}",
        "body": f"name childclass pos {_TURN} mocap gravcomp user sleep simple fuse",
        "frame": f"name childclass pos {_TURN}",
        "inertial": f"pos {_TURN} mass diaginertia fullinertia",
        "freejoint": "name group align",
        "joint": f"type pos axis ref springref springdamper actuatorgravcomp joint coef {_LOSS} "
        f"joint1 joint2 polycoef active {_SOFT}",
        "geom": f"""name class type group size pos {_TURN} fromto mass density shellinertia mesh hfield fitscale
            material rgba user contype conaffinity condim priority friction solmix {_SOFT} margin gap fluidshape
            fluidcoef adhesion surfacevel castshadow geom sidesite""",
        "site": f"name class type group size pos {_TURN} fromto mesh material rgba user site",
        "mesh": """name class file content_type vertex normal texcoord face refpos refquat scale inertia smoothnormal
            maxhullvert material builtin params octree_maxdepth""",
        "equality": f"active {_SOFT}",
        "connect": f"name class active {_SOFT} body1 body2 anchor site1 site2",
        "weld": f"name class active {_SOFT} body1 body2 anchor relpose torquescale site1 site2",
        "tendon": f"{_LOSS} springlength width material rgba tendon1 tendon2 polycoef active {_SOFT}",
        "spatial": f"{_LOSS} springlength width material rgba",
        "fixed": f"{_LOSS} springlength",
        "pulley": "divisor",
        **dict.fromkeys(ACTUATORS, _DRIVE),
    }.items()
}
_READ = ("compiler", "option", "default", "worldbody", "equality", "tendon", "actuator")
SECTIONS = (
    *(*_READ, "size", "statistic", "visual", "extension", "asset", "deformable"),
    *("contact", "sensor", "custom", "keyframe"),
)
#: What <default> may hold that motion does not depend on.
_DRAWN = ("camera", "light", "material", "texture", "pair", "skin", "flex")


def unknown_words(root: Node) -> str:
    """What MJCF has no such element or attribute for, where it would count; empty if there is none."""
    texts: list[str] = []
    more = 0
    for node, what, word, known in _unknown(root):
        if len(texts) == _MOST:
            more += 1
            continue
        alike = get_close_matches(word[:40].lower(), known, n=1)
        hint = f" ({alike[0]}?)" if alike else ""
        texts.append(f"{what}{hint} on line {node.line}" + (f" of {node.file}" if node.file != root.file else ""))
    return "; ".join(texts) + (f"; and {more} more" if more else "")


#: An element, what is strange in words, the word, and those that could stand there.
_Strange = tuple[Node, str, str, Collection[str]]


def _unknown(root: Node) -> Iterator[_Strange]:
    yield from _of(root)
    for section in root.children:
        if section.tag not in SECTIONS:
            yield section, f"<{section.tag[:40]}>", section.tag, SECTIONS
        left = list(section.each("mesh")) if section.tag == "asset" else [section] if section.tag in _READ else []
        while left:
            node = left.pop()
            yield from _of(node)
            if node.tag == "default":
                for child in node.children:
                    if child.tag not in ATTRIBUTES and child.tag not in _DRAWN:
                        yield child, f"<{child.tag[:40]}> in <default>", child.tag, ATTRIBUTES
            left += reversed(node.children)


def _of(node: Node) -> Iterator[_Strange]:
    known = ATTRIBUTES.get(node.tag)
    for word in node.attributes if known is not None else ():
        if known is not None and word not in known:
            yield node, f"{word[:40]}= of {node.spoken}", word, known


_SHARED = {"fixed": "tendon", "spatial": "tendon"}
_SHARED |= dict.fromkeys(("connect", "weld", "joint_equality", "flex", "flexvert", "flexstrain"), "equality")
#: What <default> elements may have in all: every class holds what those around it say.
MAX_DEFAULTS = 4000
_LONGEST = 1000  # letters of an attribute in a default: it is read again for every element that takes it
#: Attributes of <compiler> that are numbers, or true or false: what the settings call them.
_COMPILER_NUMBERS = {"boundmass": "least_mass", "boundinertia": "least_inertia", "settotalmass": "total_mass"}
_COMPILER_FLAGS = {
    "autolimits": "autolimits",
    "balanceinertia": "balance",
    "strippath": "strippath",
    "fitaabb": "fit_box",
    "alignfree": "align_free",
}
_FLAGS = ("gravity", "spring", "damper", "passive", "equality", "constraint", "frictionloss", "actuation", "clampctrl")


@dataclass
class Settings:
    """The compiler's settings and the physics options; later elements have the last word, as in MuJoCo."""

    radian: bool = False
    eulerseq: str = "xyz"
    autolimits: bool = True
    inertia_from_geom: Literal["auto", "true", "false"] = "auto"
    inertia_groups: tuple[int, int] = (0, 5)
    least_mass: float = 0.0
    least_inertia: float = 0.0
    balance: bool = False
    total_mass: float = -1.0
    meshdir: str = ""
    strippath: bool = False
    fit_box: bool = False
    align_free: bool = False
    gravity: Floats = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    disabled: set[str] = field(default_factory=set)
    fluid: Node | None = None  # where a density, a viscosity or a wind is set

    @property
    def angle(self) -> float:
        """What an angle of the file is to be multiplied by."""
        return 1.0 if self.radian else float(np.pi / 180.0)


def read_settings(root: Node) -> Settings:
    """The settings that all <compiler> and <option> elements make together."""
    s = Settings()
    for node in root.each("compiler"):
        _compiler(s, node)
    for node in root.each("option"):
        s.gravity = node.vector("gravity", s.gravity.tolist())
        still = node.number("density", 0.0) == 0.0 and node.number("viscosity", 0.0) == 0.0
        s.fluid = s.fluid if still else node
        for flags in node.each("flag"):
            for key in _FLAGS:
                word = flags.word(key, "enable", ("enable", "disable"))
                if word == "disable":
                    s.disabled.add(key)
                elif flags.get(key):
                    s.disabled.discard(key)
    if "passive" in s.disabled:
        s.disabled |= {"spring", "damper"}
    if "constraint" in s.disabled:
        s.disabled |= {"equality", "frictionloss"}
    if "gravity" in s.disabled:
        s.gravity = np.zeros(3)
    return s


def _compiler(s: Settings, node: Node) -> None:
    if node.get("coordinate", "local") != "local":
        raise node.fail("coordinate='global' is not read; load and save the model with MuJoCo 2.3.3 to make it local")
    s.radian = node.word("angle", "radian" if s.radian else "degree", ("radian", "degree")) == "radian"
    s.eulerseq = node.get("eulerseq", s.eulerseq) or ""
    if len(s.eulerseq) != 3 or not set(s.eulerseq) <= set("xyzXYZ"):
        raise node.fail(f"eulerseq={s.eulerseq[:80]!r} is not three of xyzXYZ")
    chosen = node.word("inertiafromgeom", s.inertia_from_geom, ("auto", "true", "false"))
    s.inertia_from_geom = "true" if chosen == "true" else "false" if chosen == "false" else "auto"
    low, high = node.vector("inertiagrouprange", s.inertia_groups)
    s.inertia_groups = (int(low), int(high))
    s.meshdir = node.get("meshdir", node.get("assetdir", s.meshdir)) or ""
    for key, name in _COMPILER_NUMBERS.items():
        setattr(s, name, node.number(key, getattr(s, name)))
    for key, name in _COMPILER_FLAGS.items():
        setattr(s, name, node.flag(key, getattr(s, name)))
    if node.get("exactmeshinertia") == "true":
        raise node.fail("exactmeshinertia is of old versions; write inertia='exact' at each <mesh>")


@dataclass
class _Class:
    """One default class: attributes by element, and what the actuators' shortcuts say, in their order."""

    by_tag: dict[str, dict[str, str]] = field(default_factory=dict)
    actuators: list[Node] = field(default_factory=list)

    def copied(self) -> _Class:
        return _Class(dict(self.by_tag), list(self.actuators))


class Defaults:
    """The default classes of a model."""

    def __init__(self, root: Node) -> None:
        self._main = _Class()
        self._classes: dict[str, _Class] = {}
        self._left = MAX_DEFAULTS
        for node in root.each("default"):
            self._classes.setdefault(node.get("class") or "main", self._main)
            self._fill(self._main, node)

    def _fill(self, filled: _Class, node: Node) -> None:
        # What a class says itself comes before its subclasses take it over, wherever it stands.
        for child in node.children:
            self._check(child)
            if child.tag in ACTUATORS:
                filled.actuators.append(child)
            elif child.tag != "default":
                # A new dictionary: that of the class around is shared.
                filled.by_tag[child.tag] = child.over(filled.by_tag.get(child.tag, {})).attributes
        for child in node.each("default"):
            name = child.get("class")
            if not name:
                raise child.fail('a nested <default> has no class; add class="..."')
            if name in self._classes:
                raise child.fail(f"there is a default class {name!r} already; rename one")
            self._classes[name] = filled.copied()
            self._fill(self._classes[name], child)

    def _check(self, node: Node) -> None:
        self._left -= 1
        if self._left < 0:
            raise node.fail(f"is one of more than {MAX_DEFAULTS} elements in <default>; a model never needs so many")
        for key, value in node.attributes.items():
            if len(value) > _LONGEST:
                raise node.fail(f"{key[:80]}= has {len(value)} letters; a default never has so many: shorten it")

    def resolved(self, node: Node, child_class: str | None = None) -> Node:
        """An element over the defaults of its class, of the childclass around it, or of all."""
        return node.over(self._of(node, child_class).by_tag.get(_SHARED.get(node.tag, node.tag), {}))

    def equality(self, node: Node) -> Node:
        """An element of <equality>, whose <joint> is no joint."""
        return node.over(self._of(node, None).by_tag.get("equality", {}))

    def actuator(self, node: Node) -> list[Node]:
        """An actuator after all that its class says of actuators: the later element overrides."""
        return [*self._of(node, None).actuators, node]

    def _of(self, node: Node, child_class: str | None) -> _Class:
        name = node.get("class") or child_class
        if not name:
            return self._main
        if name not in self._classes:
            if name == "main":
                return self._main
            raise node.fail(f"there is no default class {name[:80]!r}; define it, or correct the name")
        return self._classes[name]


_FORMS = ("axisangle", "xyaxes", "zaxis", "euler")


def pose_of(node: Node, settings: Settings) -> Pose:
    """The pose that pos= and an orientation give."""
    return Pose(rotation_of(node, settings), node.vector("pos", (0.0, 0.0, 0.0)))


def rotation_of(node: Node, settings: Settings) -> Floats:
    """The orientation by whichever attribute gives it; none is no turn."""
    forms = [key for key in _FORMS if node.get(key) is not None]
    if len(forms) > 1:
        raise node.fail(f"gives its orientation twice, by {forms[0]} and {forms[1]}; keep one")
    if "axisangle" in forms:
        values = node.vector("axisangle", (0.0,) * 4)
        return about(_unit(node, "axisangle", values[:3]), float(values[3]) * settings.angle)
    if "xyaxes" in forms:
        values = node.vector("xyaxes", (0.0,) * 6)
        x = _unit(node, "xyaxes", values[:3])
        y = _unit(node, "xyaxes", values[3:] - x * (x @ values[3:]))
        return snapped(np.stack([x, y, np.cross(x, y)], axis=1))
    if "zaxis" in forms:
        return along(_unit(node, "zaxis", node.vector("zaxis", (0.0,) * 3)))
    if "euler" in forms:
        angles = node.vector("euler", (0.0,) * 3) * settings.angle
        r = np.eye(3)
        for letter, angle in zip(settings.eulerseq, angles.tolist(), strict=True):
            turn = about(np.eye(3)["xyz".index(letter.lower())], angle)
            r = r @ turn if letter.islower() else turn @ r  # about turned axes, or about those that stay
        return snapped(r)
    return quaternion(node, "quat", node.vector("quat", (1.0, 0.0, 0.0, 0.0)))


def quaternion(node: Node, key: str, q: Floats) -> Floats:
    """The rotation of a quaternion, scalar first, of any length but zero."""
    return snapped(euler_parameters_matrix(_unit(node, key, q)))


def about(axis: Floats, angle: float) -> Floats:
    """The turn by an angle about a unit vector."""
    c, s = float(snapped(np.cos(angle))), float(snapped(np.sin(angle)))
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return snapped(c * np.eye(3) + s * cross + (1.0 - c) * np.outer(axis, axis))


def along(axis: Floats) -> Floats:
    """The least turn that takes z to a unit vector."""
    across = np.array([-axis[1], axis[0], 0.0])  # z × axis
    size = float(np.linalg.norm(across))
    if size < 1e-10:
        return np.eye(3) if axis[2] > 0.0 else np.diag([1.0, -1.0, -1.0])
    return about(across / size, float(np.arctan2(size, axis[2])))


def _unit(node: Node, key: str, vector: Floats) -> Floats:
    largest = float(np.abs(vector).max())
    if largest < 1e-14:
        raise node.fail(f"{key}={(node.get(key) or '')[:80]!r} has no direction; give a vector that is not zero")
    scaled = vector / largest
    return np.asarray(scaled / np.sqrt(scaled @ scaled))
