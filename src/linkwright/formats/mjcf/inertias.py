"""The inertia of MJCF bodies: as <inertial> says, or of their geoms and meshes, with the compiler's bounds and
repairs.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.errors import FormatError
from linkwright.formats.includes import MAX_FILES, Folder
from linkwright.formats.mesh_files import MAX_BYTES, MAX_TRIANGLES, read_mesh
from linkwright.formats.mjcf.body_tree import Bodies, Body, Geom
from linkwright.formats.mjcf.mjcf_settings import Defaults, Settings, quaternion, rotation_of
from linkwright.formats.mjcf.nodes import Node
from linkwright.formats.model_files import read_bytes
from linkwright.formats.xml import Pose
from linkwright.model.placements import combined_inertia, full_inertia

Ints = NDArray[np.int64]


@dataclass(eq=False)
class Weight:
    """Mass, centre of mass and inertia about it, in one frame.

    Of a mesh they are those of density one, in its own axes: the mass is the volume, or the area of a shell.
    """

    mass: float
    com: Floats
    inertia: Floats  # 3×3


class Meshes:
    """The <mesh> elements of a model by name; files are read only when something needs them."""

    def __init__(self, root: Node, settings: Settings, defaults: Defaults, folder: Folder) -> None:
        self._settings, self._folder = settings, folder
        self._nodes: dict[str, Node] = {}
        self._solids: dict[str, Weight] = {}
        self._read = 0
        for raw in root.each_in("asset", "mesh"):
            node = defaults.resolved(raw)
            name = node.get("name") or Path(node.get("file") or "").stem
            if not name:
                raise node.fail('has neither a name nor a file; add name="..."')
            if name in self._nodes:
                raise node.fail(f"there is a mesh {name!r} already, on line {self._nodes[name].line}; rename one")
            self._nodes[name] = node

    def node(self, geom: Node) -> Node:
        return geom.named("mesh", "mesh", self._nodes)

    def path(self, node: Node) -> Path:
        """Where the file of a <mesh> is."""
        name = node.get("file") or ""
        if self._settings.strippath:
            name = PureWindowsPath(name).name
        try:
            return self._folder.find(name, base=self._settings.meshdir)
        except FormatError as error:
            raise node.fail(str(error).removeprefix(f"{self._folder.file}: ")) from None

    def drawn(self, geom: Node) -> tuple[str, float, Pose] | None:
        """A mesh's file from the model's folder, its scale, and its pose in the geom; None if it is not drawn."""
        node = self.node(geom)
        scale = node.vector("scale", (1.0, 1.0, 1.0))
        even = scale[0] > 0.0 and bool((scale == scale[0]).all())
        if not node.get("file") or not even or not (node.get("file") or "").lower().endswith((".stl", ".obj")):
            return None
        try:
            path = self.path(node)
        except FormatError:
            return None  # it is not drawn; where a weight depends on the file, an error says why it is not read
        back = self._reference(node).inverse()
        file = os.path.relpath(path, os.path.realpath(self._folder.model.parent)).replace(os.sep, "/")
        return file, float(scale[0]), Pose(back.r, back.p * float(scale[0]))

    def _reference(self, node: Node) -> Pose:
        q = node.vector("refquat", (1.0, 0.0, 0.0, 0.0))
        return Pose(quaternion(node, "refquat", q), node.vector("refpos", (0.0, 0.0, 0.0)))

    def solid(self, geom: Node) -> Weight:
        """What a geom of this mesh weighs."""
        node = self.node(geom)
        name = geom.get("mesh") or ""
        if name not in self._solids:
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
                self._solids[name] = self._weighed(node)
        return self._solids[name]

    def _weighed(self, node: Node) -> Weight:
        corners, faces = self._triangles(node)
        if not np.isfinite(corners).all():
            raise node.fail("has corners that are not finite; correct its numbers, or its scale")
        rule = node.word("inertia", "legacy", ("legacy", "convex", "exact", "shell"))
        if rule == "convex" or not len(faces):
            faces = _hull(node, corners)
        solid = _shell(node, corners, faces) if rule == "shell" else _solid(node, corners, faces, rule)
        if not (np.isfinite(solid.com).all() and np.isfinite(solid.inertia).all()):
            raise node.fail("is too large to be weighed; correct its numbers, or its scale")
        return solid

    def _triangles(self, node: Node) -> tuple[Floats, Ints]:
        """Corners, placed and scaled as the <mesh> says, and faces; none where only corners are given."""
        if node.get("builtin", "none") != "none":
            raise node.fail("builtin meshes are not read; save the model with MuJoCo, or give a file")
        if node.get("vertex"):
            corners = node.numbers("vertex", 12, 3 * MAX_TRIANGLES)
            faces = node.numbers("face", 3, 3 * MAX_TRIANGLES)
            if corners is None or len(corners) % 3 or (faces is not None and len(faces) % 3):
                raise node.fail("vertex= and face= have three numbers per corner and per face; complete them")
            corners = corners.astype(np.float32).astype(np.float64).reshape(-1, 3)  # as MuJoCo has all corners
            index = np.zeros((0, 3), np.int64) if faces is None else faces.astype(np.int64).reshape(-1, 3)
            if len(index) and not (index.min() >= 0 and index.max() < len(corners)):
                raise node.fail("face= names corners that are not there; they count from 0")
        else:
            corners, index = self._file(node)
        reference = self._reference(node)
        scale = node.vector("scale", (1.0, 1.0, 1.0))
        if not np.prod(scale):
            raise node.fail("scale= has a zero; give three numbers that are not")
        corners = ((corners - reference.p) @ reference.r) * scale
        return corners, index[:, ::-1] if np.prod(scale) < 0.0 else index

    def _file(self, node: Node) -> tuple[Floats, Ints]:
        name = node.get("file")
        if not name:
            raise node.fail('has neither a file nor corners; add file="..."')
        path = self.path(node)
        self._read += 1
        if self._read > MAX_FILES:
            raise node.fail(f"is one of more than {MAX_FILES} meshes with a weight; give their bodies an <inertial>")
        try:
            if path.suffix.lower() == ".msh":
                return _msh(read_bytes(path, MAX_BYTES), str(path))
            mesh = read_mesh(str(path.parent), path.name)
        except FormatError as error:
            raise node.fail(str(error)) from error
        return mesh.vertices.astype(np.float64), mesh.triangles.astype(np.int64)


def _msh(content: bytes, file: str) -> tuple[Floats, Ints]:
    """MuJoCo's own format: four counts, then corners, normals and texture places as floats, and faces."""
    wrong = FormatError("is no MSH mesh of MuJoCo; write it anew", file=file)
    if len(content) < 16:
        raise wrong
    corners, normals, places, faces = (int(n) for n in np.frombuffer(content, "<i4", 4))
    if min(corners, normals, places, faces) < 0 or corners < 4 or faces > MAX_TRIANGLES:
        raise wrong
    if len(content) != 16 + 12 * (corners + normals + faces) + 8 * places:
        raise wrong
    points = np.frombuffer(content, "<f4", 3 * corners, 16).astype(np.float64).reshape(-1, 3)
    index = np.frombuffer(content, "<i4", 3 * faces, 16 + 12 * (corners + normals) + 8 * places).astype(np.int64)
    if not np.isfinite(points).all() or (faces and not (index.min() >= 0 and index.max() < corners)):
        raise wrong
    return points, index.reshape(-1, 3)


def _hull(node: Node, corners: Floats) -> Ints:
    """The faces of the convex hull, turned outward."""
    from scipy.spatial import ConvexHull, QhullError  # type: ignore[import-untyped]  # weight: scipy

    try:
        hull = ConvexHull(corners)
    except QhullError:
        raise node.fail("is flat, and has no volume; give it a thickness, or inertia='shell'") from None
    faces: Ints = hull.simplices.astype(np.int64)
    a, b, c = (corners[faces[:, k]] for k in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
    faces[inward] = faces[inward][:, ::-1]
    return faces


def _surface(node: Node, corners: Floats, faces: Ints) -> tuple[Floats, Floats, Floats]:
    """The triangles (3, n, 3), their areas (n,), and the centre of all of them."""
    triangles = np.stack([corners[faces[:, k]] for k in range(3)])
    a, b, c = triangles
    areas = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
    if not areas.sum() > 0.0:
        raise node.fail("has no area; correct its file")
    return triangles, areas, (areas[:, None] * (a + b + c) / 3.0).sum(axis=0) / areas.sum()


def _inertia(weights: Floats, triangles: Floats, com: Floats) -> Floats:
    """The inertia about `com` of triangles, or of pyramids on them with their tops there: Σ weight Σ x xᵀ."""
    x, y, z = triangles - com
    second = np.zeros((3, 3))
    for corner in (x + y + z, x, y, z):
        second = second + np.einsum("n,ni,nj->ij", weights, corner, corner)
    return np.asarray(np.trace(second) * np.eye(3) - second)


def _shell(node: Node, corners: Floats, faces: Ints) -> Weight:
    """A thin skin: triangles of area density one."""
    triangles, areas, com = _surface(node, corners, faces)
    return Weight(float(areas.sum()), com, _inertia(areas / 12.0, triangles, com))


def _solid(node: Node, corners: Floats, faces: Ints, rule: str) -> Weight:
    """Pyramids from a point within to every face; the rule "legacy" counts those that face inward as well."""
    triangles, _, top = _surface(node, corners, faces)

    def volumes(top: Floats) -> Floats:
        x, y, z = triangles - top
        signed = np.einsum("ij,ij->i", x, np.cross(y, z)) / 6.0
        return np.asarray(np.abs(signed) if rule == "legacy" else signed)

    parts = volumes(top)
    volume = float(parts.sum())
    if not volume > 1e-14:
        raise node.fail(f"has the volume {volume:g}; turn its faces outward, or set inertia='shell' or 'convex'")
    com = (parts[:, None] * (triangles.sum(axis=0) + top)).sum(axis=0) / 4.0 / volume
    parts = volumes(com)  # "legacy" gives another sum from here, which is the one that counts
    return Weight(float(parts.sum()), com, _inertia(parts / 20.0, triangles, com))


GEOMS = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf")
_SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
_DENSITY = 1000.0
_NOTHING = 1e-15  # mass and inertia below which MuJoCo refuses a body that moves


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
        volume, com, unit = solid.mass, solid.com, solid.inertia
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
