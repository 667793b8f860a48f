"""The inertia of MJCF bodies: as <inertial> says, or of their geoms, with the compiler's bounds and repairs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.formats.mjcf.bodies import Bodies, Body, Geom
from linkwright.formats.mjcf.meshes import Meshes
from linkwright.formats.mjcf.nodes import Node
from linkwright.formats.mjcf.places import rotation_of
from linkwright.formats.mjcf.settings import Settings
from linkwright.model.frames import combined_inertia, full_inertia

GEOMS = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf")
_SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
_DENSITY = 1000.0
_NOTHING = 1e-15  # mass and inertia below which MuJoCo refuses a body that moves


@dataclass(eq=False)
class Weight:
    """Mass, centre of mass and inertia about it, in one frame."""

    mass: float
    com: Floats
    inertia: Floats  # 3×3


def weigh(bodies: Bodies, settings: Settings, meshes: Meshes) -> list[Weight]:
    """What every body weighs."""
    with np.errstate(over="ignore", invalid="ignore"):  # what no number can hold is refused
        weights = [_bounded(body, _weight(body, settings, meshes), settings) for body in bodies.rows]
    total = sum(weight.mass for weight in weights)
    if settings.total_mass > 0.0 and total > 0.0:
        for weight in weights:
            weight.mass *= settings.total_mass / total
            weight.inertia = weight.inertia * (settings.total_mass / total)
    return weights


def _weight(body: Body, settings: Settings, meshes: Meshes) -> Weight:
    if body.inertial is not None and settings.inertia_from_geom != "true":
        return _explicit(body.inertial, settings)
    if settings.inertia_from_geom == "false":
        return Weight(0.0, np.zeros(3), np.zeros((3, 3)))
    low, high = settings.inertia_groups
    parts = [_geom(geom, meshes) for geom in body.geoms if low <= geom.node.number("group", 0.0) <= high]
    return Weight(*combined_inertia([(part.mass, part.com, part.inertia) for part in parts if part.mass > 0.0]))


def _explicit(node: Node, settings: Settings) -> Weight:
    mass, com = node.not_negative("mass"), node.vector("pos", (0.0, 0.0, 0.0))
    full = node.numbers("fullinertia", 6)
    if full is not None:
        if node.get("diaginertia"):
            raise node.fail("gives its inertia twice, by fullinertia and diaginertia; keep one")
        return Weight(mass, com, full_inertia(full))
    diagonal = node.vector("diaginertia", (0.0, 0.0, 0.0))
    if (diagonal < 0.0).any():
        raise node.fail(f"has the negative inertia {diagonal.tolist()}; give 0 or more")
    turn = rotation_of(node, settings)
    return Weight(mass, com, turn @ np.diag(diagonal) @ turn.T)


def _bounded(body: Body, weight: Weight, settings: Settings) -> Weight:
    """The compiler's least mass and inertia, and its repair of inertias that no body can have."""
    node = body.inertial or body.node
    weight.mass = max(weight.mass, settings.least_mass)
    if not all(np.isfinite(x).all() for x in (weight.mass, weight.com, weight.inertia)):
        raise node.fail("weighs more than a number can hold; make its sizes, density or mass smaller")
    moments, axes = np.linalg.eigh(weight.inertia)
    fixed = np.maximum(moments, settings.least_inertia) if settings.least_inertia > 0.0 else moments
    if fixed[0] + fixed[1] < fixed[2] * (1.0 - 1e-9):
        if not settings.balance:
            text = f"no body can have the principal moments of inertia {fixed.tolist()}: the sum of two is at least "
            raise node.fail(text + "the third; correct them, or set balanceinertia in <compiler>")
        fixed = np.full(3, fixed.mean())
    if not np.array_equal(fixed, moments):
        weight.inertia = axes @ np.diag(fixed) @ axes.T
    return weight


def check_movers(bodies: Bodies, weights: list[Weight]) -> None:
    """Refuse, as MuJoCo does, a body that moves and, with all that is fixed to it, weighs nothing."""
    mass, most = [weight.mass for weight in weights], [float(np.trace(weight.inertia)) for weight in weights]
    for k in reversed(range(len(bodies.rows))):
        body = bodies.rows[k]
        if not body.joints and body.parent >= 0:
            mass[body.parent] += mass[k]
            most[body.parent] += most[k] + mass[k]
    for k, body in enumerate(bodies.rows):
        if body.joints and (mass[k] < _NOTHING or most[k] < _NOTHING):
            text = "moves, but has no mass or no inertia; give it an <inertial>, geoms that weigh something, or set "
            raise body.node.fail(f"{text}boundmass and boundinertia in <compiler> ({body.name!r})")


# -- geoms ------------------------------------------------------------------------------------------------------
def geom_kind(node: Node) -> str:
    """The type of a geom: a sphere unless it says another."""
    return node.word("type", "sphere", GEOMS)


def geom_size(node: Node, kind: str) -> Floats:
    """The half sizes of a geom that is no mesh: radius, or radius and half length, or three."""
    wanted = _SIZES[kind]
    size = node.padded("size", (0.0, 0.0, 0.0))
    ends = node.numbers("fromto", 6)
    if ends is not None:
        if kind == "sphere":
            raise node.fail("fromto= is for capsules, cylinders, ellipsoids and boxes; give pos=")
        half = 0.5 * float(np.linalg.norm(ends[3:] - ends[:3]))
        size = np.array([size[0], half, 0.0]) if wanted == 2 else np.array([size[0], size[0], half])
    if not (size[:wanted] > 0.0).all():
        raise node.fail(f"size={node.get('size')!r} of a {kind} needs {wanted} positive numbers; give them")
    return size[:wanted]


def _geom(geom: Geom, meshes: Meshes) -> Weight:
    """The weight of a geom, in the frame of its body."""
    node, pose = geom.node, geom.pose
    kind = geom_kind(node)
    mass, density = node.number("mass", -1.0), node.number("density", _DENSITY)
    if density < 0.0 or (node.get("mass") is not None and mass < 0.0):
        raise node.fail("has a negative mass or density; give 0 or more")
    if kind in ("plane", "hfield") or mass == 0.0 or (density == 0.0 and mass < 0.0):
        return Weight(0.0, np.zeros(3), np.zeros((3, 3)))
    if kind == "sdf":
        raise node.fail("type='sdf' is not read: its shape is a plugin's; give the body an <inertial>")
    shell = node.get("shellinertia") is not None and node.flag("shellinertia", False)
    if kind == "mesh":
        if shell:
            raise node.fail("shellinertia belongs to the <mesh>, as inertia='shell'; move it there")
        solid = meshes.solid(node)
        volume, com, unit = solid.volume, solid.com, solid.inertia
    else:
        if node.get("mesh"):
            raise node.fail(f"a {kind} fitted to a mesh is not read; give size= and pos=, or an <inertial>")
        if shell:
            raise node.fail(f"shellinertia of a {kind} is not read; give the body an <inertial>")
        volume, moments = _primitive(kind, geom_size(node, kind))
        com, unit = np.zeros(3), volume * np.diag(moments)
    if not 0.0 < volume < math.inf:
        raise node.fail("is too large or too small for its volume to be a number; correct its size")
    mass = density * volume if mass < 0.0 else mass
    return Weight(mass, pose.p + pose.r @ com, pose.r @ (unit * (mass / volume)) @ pose.r.T)


def _primitive(kind: str, size: Floats) -> tuple[float, Floats]:
    """Volume, and the principal moments of inertia of a unit mass."""
    if kind == "sphere":
        r = float(size[0])
        return 4.0 / 3.0 * math.pi * r * r * r, np.full(3, 0.4 * r * r)
    if kind in ("cylinder", "capsule"):
        r, length = float(size[0]), 2.0 * float(size[1])
        tube, ball = math.pi * r * r * length, 4.0 / 3.0 * math.pi * r * r * r if kind == "capsule" else 0.0
        volume = tube + ball
        across = tube * (3.0 * r * r + length * length) / 12.0
        across += ball * (0.4 * r * r + length * (2.0 * length + 3.0 * r) / 8.0)
        through = tube * 0.5 * r * r + ball * 0.4 * r * r
        return volume, np.array([across, across, through]) / volume
    squares = size * size
    around = squares.sum() - squares
    if kind == "ellipsoid":
        return 4.0 / 3.0 * math.pi * float(np.prod(size)), around / 5.0
    return 8.0 * float(np.prod(size)), around / 3.0
