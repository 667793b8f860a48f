"""The elements and attributes of MJCF; any other in a file, mostly a misspelling, is listed for a warning."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches

from linkwright.formats.mjcf.nodes import Node
from linkwright.formats.mjcf.settings import ACTUATORS

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
