"""The geoms of an MJCF model as shapes to be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.formats.mjcf.bodies import WORLD, Bodies, Geom, claimed
from linkwright.formats.mjcf.inertias import geom_kind, geom_size
from linkwright.formats.mjcf.meshes import Meshes
from linkwright.formats.mjcf.nodes import Node
from linkwright.formats.poses import Pose
from linkwright.model.builder import Builder
from linkwright.model.description import colour_text

_SHOWN_GROUPS = 3  # MuJoCo's viewer shows groups 0 to 2; the others are for collisions


def add_shapes(b: Builder, bodies: Bodies, meshes: Meshes, root: Node, taken: set[str]) -> None:
    """A shape for each geom that MuJoCo would show; planes and height fields are left out."""
    colours = _materials(root)
    owners = [(WORLD, bodies.world), *((body.name, body.geoms) for body in bodies.rows)]
    for owner, geoms in owners:
        for number, geom in enumerate(geoms):
            shape = _shape(geom, meshes)
            if shape is None:
                continue
            kind, size, pose, file = shape
            name = claimed(geom.node.get("name") or f"{owner} geom {number}", taken)
            place: Any = owner if pose.is_here else b.frame(owner, pose.r, pose.p, name)
            b.shape(place, kind, size, _colour(geom.node, colours), file=file, name=name)


def _shape(geom: Geom, meshes: Meshes) -> tuple[Any, Any, Pose, str] | None:
    node = geom.node
    kind = geom_kind(node)
    rgba = node.numbers("rgba", 4)
    hidden = rgba is not None and rgba[3] == 0.0
    if hidden or not 0 <= node.number("group", 0.0) < _SHOWN_GROUPS or kind in ("plane", "hfield", "sdf"):
        return None
    if kind == "mesh":
        drawn = meshes.drawn(node)
        if drawn is None:
            return None
        file, scale, pose = drawn
        return "mesh", [scale], geom.pose @ pose, file
    if node.get("mesh"):
        return None
    size = geom_size(node, kind)
    if kind == "ellipsoid":
        # There is no such shape: a ball of the same volume.
        return "sphere", [float(np.cbrt(np.prod(size)))], geom.pose, ""
    return kind, geom_sizes(kind, size, 2.0), geom.pose, ""


def geom_sizes(kind: str, size: Sequence[float] | Floats, factor: float) -> Floats:
    """The sizes of a geom from those of a shape (factor 1/2) or the other way round (2): lengths, but no radii."""
    lengths = factor * np.asarray(size, dtype=np.float64)
    return lengths if kind == "box" else np.array([size[0], *lengths[1:]])


def _materials(root: Node) -> dict[str, Floats]:
    colours = {node.get("name") or "": node.numbers("rgba", 4) for node in root.each_in("asset", "material")}
    return {name: rgba for name, rgba in colours.items() if rgba is not None}


def _colour(node: Node, materials: dict[str, Floats]) -> str:
    rgba = node.numbers("rgba", 4)
    if rgba is None:
        rgba = materials.get(node.get("material") or "")
    return "" if rgba is None else colour_text(np.clip(rgba[:3], 0.0, 1.0))
