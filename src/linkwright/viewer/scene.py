"""A mechanism and its motion as plain data for the page: what is drawn, where it goes, and from where it is seen."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from linkwright.base.arguments import counted
from linkwright.base.arrays import Floats
from linkwright.errors import FormatError, LinkwrightWarning
from linkwright.formats.mesh_files import Mesh, read_mesh
from linkwright.model.body_motion import place
from linkwright.model.description import GROUND, Description
from linkwright.model.elements import Rod
from linkwright.spatial.rotation import euler_parameters
from linkwright.viewer.curve_parts import bodies_shown, curve_extent, curve_solids, massless_bodies
from linkwright.viewer.gear_parts import gear_solids
from linkwright.viewer.page import Motion, View, along, box, checked, outermost, view_of
from linkwright.viewer.shapes import (
    PIN,
    Part,
    Skeleton,
    anchors,
    bar,
    body_colors,
    corners,
    joint_parts,
    skeleton,
    solid,
    sticks,
    stretched,
)

MAX_BODIES = 2000
MAX_FRAMES = 400
MAX_JOINTS = 60  # whose series are on a page
MESH_BUDGET = 5_000_000  # bytes of all meshes on one page
_FORMAT = 1
_SPOKEN = ("s", "m", "m/s", "m/s^2", "rad", "rad/s", "rad/s^2")


def scene(
    description: Description,
    time: Any,
    quantities: Mapping[str, Any],
    *,
    joints: Sequence[tuple[str, bool, Any]] = (),
    loads: Sequence[tuple[str, Sequence[tuple[str, str, Any]]]] = (),
    title: str | None = None,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """The scene of a motion: time (T,), and by name the quantities of its bodies.

    These are position (T, nb, 3), orientation (T, nb, 4) e0..e3 and, if known, velocity, angular_velocity,
    acceleration and angular_acceleration (T, nb, 3), in ground's axes.

    Of joints with one coordinate it takes the name, whether it turns, and (3, T): coordinate, rate, acceleration.
    Of loads it takes the name and up to three sheets, each with its heading, its unit and (T,) or (3, T) numbers.
    Everything in it is JSON; arrays are base64 of little-endian numbers.
    """
    remarks = list(notes)
    shown = bodies_shown(description)
    drawn = min(shown, MAX_BODIES)
    if drawn < shown:
        remarks.append(f"the first {drawn:,} of {shown:,} bodies are drawn")
    motion = checked(time, quantities, description.nb, drawn)
    remarks += motion.notes
    meshes: list[Mesh] = []
    color_of, massless = body_colors(description), massless_bodies(description)
    shapes = _shapes(description, motion, meshes, remarks)
    extent = [motion.places(body, _bounds(part, meshes))[0] for body, parts in shapes.items() for part in parts]
    bones = skeleton(description, motion, np.concatenate([curve_extent(description, motion), *extent]))
    parts = {body: list(shapes.get(body, ())) for body in range(GROUND, drawn)}
    outlined = _outlines(description, motion, bones, parts, meshes, remarks)
    glyphs = joint_parts(description, motion, bones.radius, color_of)
    sliders = {body for body, part in glyphs if body >= 0 and part.color == color_of(body)}
    for body in range(drawn):
        # A body that is one point is its slider where it has one.
        if body in massless:
            parts[body].append(solid("sphere", 0.7 * bones.radius, np.zeros(3), np.eye(3), PIN))
        elif body not in shapes and (bones.bars[body] or body not in sliders | outlined):
            parts[body] += sticks(bones, body, color_of(body))
    for body, part in glyphs:
        if body in shapes and part.color == color_of(body):
            continue  # and its shape is its slider
        is_slider = body in sliders and part.color == color_of(body) and not bones.bars[body]
        parts[body].append(replace(part, layer="body") if is_slider else part)

    view = view_of(_without(motion, massless), _first_points(motion, parts, meshes), description.gravity)
    reach = np.concatenate(
        [
            motion.places(body, _hull(body_parts, meshes)).reshape(-1, 3)
            for body, body_parts in parts.items()
            if body_parts
        ]
        or [np.zeros((1, 3))]
    )
    origin, half = box(reach, view.axes)
    floor = _floor(view, origin, half, bones)
    if GROUND not in shapes:
        posts = _posts(anchors(description, motion, bones.radius), floor, view, bones, color_of(GROUND))
        parts[GROUND] += posts
        reach = np.concatenate([reach, *(corners(post) for post in posts)])
    origin = np.array([_round(x) for x in origin])
    return {
        "format": _FORMAT,
        "name": description.name,
        "title": description.name if title is None else title,
        "notes": remarks,
        "unit": _round(bones.radius),
        "size": _round(bones.size),
        "units": _units(description),
        "origin": origin.tolist(),
        "view": {
            "planar": view.planar,
            "axes": _rows(view.axes),
            "half": _row(np.maximum(half, 2.0 * bones.radius)),
            "floor": _row(floor),
            "reach": _rows(outermost(reach) - origin),
        },
        "bodies": [
            {
                "name": description.body_names[body],
                "color": color_of(body),
                "middle": _row(_hull(parts[body], meshes).mean(axis=0)),
                "parts": [_part(part) for part in parts[body]],
            }
            for body in range(drawn)
        ],
        "ground": {"name": description.ground_name, "parts": [_part(part) for part in parts[GROUND]]},
        "show": {"joints": not (bones.crowded or all(body in shapes for body in range(drawn)))},
        "meshes": [
            {"vertices": _packed(mesh.vertices, "<f4"), "triangles": _packed(mesh.triangles, "<u4")} for mesh in meshes
        ],
        "triads": _frames(description, drawn, remarks),
        "links": _links(description, drawn),
        "traces": _traces(description, drawn),
        "joints": [
            {"name": name, "turns": turns, "values": _packed(_at(motion.time, time, series), "<f4")}
            for name, turns, series in joints[:MAX_JOINTS]
        ],
        "loads": [
            {"name": name, "charts": [_sheet(motion.time, time, description, *sheet) for sheet in sheets[:3]]}
            for name, sheets in loads[:MAX_JOINTS]
        ],
        "data": {
            "count": len(motion.time),
            "time": _packed(motion.time, "<f8"),
            **{
                name: _packed(array - origin if name == "position" else array, "<f4")
                for name, array in motion.values.items()
            },
        },
    }


def _without(motion: Motion, bodies: set[int]) -> Motion:
    """The motion of the other bodies."""
    others = [k for k in range(motion.count) if k not in bodies]
    return Motion(motion.time, {name: array[:, others] for name, array in motion.values.items()})


def _shapes(description: Description, motion: Motion, meshes: list[Mesh], remarks: list[str]) -> dict[int, list[Part]]:
    """The shapes of the model on their bodies. A mesh that cannot be drawn leaves a remark, and sticks."""
    shapes: dict[int, list[Part]] = {}
    known: dict[str, int | FormatError] = {}
    color_of = body_colors(description)
    for shape in description.shapes:
        at = place(description, shape.place)
        if at.body >= motion.count:
            continue
        size = tuple(float(x.evaluate(description.parameters)) for x in shape.size)
        mesh = -1
        if shape.kind == "mesh":
            if shape.file not in known:
                known[shape.file] = _mesh(description.folder, shape.file, meshes)
            entry = known[shape.file]
            if isinstance(entry, FormatError):
                text = f"shape {shape.name!r} is not drawn: {entry}"
                remarks.append(text)
                warnings.warn(LinkwrightWarning(text), stacklevel=4)
                continue
            mesh = entry
        color = shape.color or color_of(at.body)
        shapes.setdefault(at.body, []).append(Part(shape.kind, size, at.p, at.r, color, "body", mesh))
    return shapes


def _outlines(
    d: Description,
    motion: Motion,
    bones: Skeleton,
    parts: dict[int, list[Part]],
    meshes: list[Mesh],
    remarks: list[str],
) -> set[int]:
    """Put gears with their teeth, racks, belts, cams and slots to the parts of their bodies; the bodies with some."""
    outlined: set[int] = set()
    used, colors = sum(mesh.bytes for mesh in meshes), body_colors(d)
    for body, part, mesh in chain(
        gear_solids(d, motion, bones.radius, colors), curve_solids(d, motion, bones.radius, colors, bones.joined)
    ):
        if mesh is None:
            parts[body].append(part)
            continue
        used += mesh.bytes
        if used > MESH_BUDGET:
            remarks.append("some gears or curves are not drawn: they have too many points for one page")
            break
        meshes.append(mesh)
        parts[body].append(replace(part, mesh=len(meshes) - 1))
        outlined.add(body)
    return outlined


def _mesh(folder: str, file: str, meshes: list[Mesh]) -> int | FormatError:
    try:
        mesh = read_mesh(folder, file)
    except FormatError as error:
        return error
    if sum(other.bytes for other in meshes) + mesh.bytes > MESH_BUDGET:
        return FormatError("the meshes together are too large for one page; draw coarser ones", file=file)
    meshes.append(mesh)
    return len(meshes) - 1


def _bounds(part: Part, meshes: list[Mesh]) -> Floats:
    """The corners (8, 3) of the box around a part, in its body's axes."""
    if part.mesh < 0:
        return corners(part)
    low, high = (f(meshes[part.mesh].vertices, axis=0) * part.size[0] for f in (np.min, np.max))
    middle, half = 0.5 * (low + high).astype(np.float64), 0.5 * (high - low).astype(np.float64)
    around = Part("box", tuple(2.0 * half), part.at + part.turn @ middle, part.turn, "")
    return corners(around)


def _hull(parts: list[Part], meshes: list[Mesh]) -> Floats:
    """The corners (8, 3) of the box around all parts of a body, in its axes."""
    points = np.concatenate([_bounds(part, meshes) for part in parts])
    low, high = points.min(axis=0), points.max(axis=0)
    return corners(Part("box", tuple(high - low), 0.5 * (low + high), np.eye(3), ""))


def _first_points(motion: Motion, parts: dict[int, list[Part]], meshes: list[Mesh]) -> Floats:
    points = [motion.places(body, _bounds(part, meshes))[0] for body, many in parts.items() for part in many]
    return np.concatenate(points or [np.zeros((1, 3))])


def _floor(view: View, middle: Floats, half: Floats, bones: Skeleton) -> Floats:
    """A point of the floor below a spatial mechanism, or of the board behind a planar one."""
    axis, reach = (view.axes[2], half[2]) if view.planar else (view.axes[1], half[1])
    point: Floats = middle - axis * (reach + (2.0 if view.planar else 1.2) * bones.radius)
    return point


def _posts(points: list[Floats], floor: Floats, view: View, bones: Skeleton, color: str) -> list[Part]:
    """What carries ground's joints: posts on the board behind a planar mechanism, short stands elsewhere."""
    unit, posts = bones.radius, []
    down = -view.axes[2] if view.planar else -view.axes[1]
    for point in points:
        deep = float((floor - point) @ down)
        if not deep > 0.5 * unit:
            continue
        length = deep if view.planar or deep < 0.6 * bones.size else 4.0 * unit
        end = point + length * down
        posts.append(bar(point, end, 0.8 * unit, color, kind="cylinder", layer="joint"))
        foot = end - 0.3 * unit * down
        posts.append(solid("cylinder", (2.8 * unit, 0.6 * unit), foot, along(down), color))
    return posts


def _frames(description: Description, drawn: int, remarks: list[str]) -> list[dict[str, Any]]:
    frames = description.frames
    rows = [k for k, body in enumerate(frames.body.tolist()) if body < drawn]
    if len(rows) > MAX_FRAMES:
        remarks.append(f"{MAX_FRAMES} of {counted(len(rows), 'frame')} are drawn")
    return [
        {
            "name": frames.names[k],
            "body": int(frames.body[k]),
            "at": _row(frames.p[k]),
            "turn": _row(euler_parameters(frames.r[k])),
        }
        for k in rows[:MAX_FRAMES]
    ]


def _links(description: Description, drawn: int) -> list[dict[str, Any]]:
    return [
        {
            "name": thing.name,
            "kind": "rod" if isinstance(thing, Rod) else "force",
            "ends": [{"body": end.body, "at": _row(end.p)} for end in ends],
        }
        for thing, *ends in stretched(description, drawn)
    ]


def _traces(description: Description, drawn: int) -> list[dict[str, Any]]:
    entries = []
    color_of = body_colors(description)
    for trace in description.traces:
        at = place(description, trace.place)
        if 0 <= at.body < drawn:
            color = trace.color or color_of(at.body)
            entry = {"name": trace.name, "place": trace.place, "body": at.body, "at": _row(at.p), "color": color}
            entries.append(entry)
    return entries


def _part(part: Part) -> dict[str, Any]:
    entry: dict[str, Any] = {"kind": part.kind, "size": _row(part.size), "color": part.color, "layer": part.layer}
    entry["at"], entry["turn"] = _row(part.at), _row(euler_parameters(part.turn))
    if part.mesh >= 0:
        entry["mesh"] = part.mesh
    return entry


def _at(times: Floats, time: Any, series: Any) -> Any:
    """A series (3, T) at the time points that the page keeps; what is not finite there is a gap."""
    rows = np.searchsorted(np.asarray(time), times)
    return np.asarray(series)[:, np.minimum(rows, np.shape(series)[1] - 1)]


def _units(description: Description) -> dict[str, list[Any]]:
    """The model's units where they are not those of SI: text and factor, by the SI unit of motion."""
    each = {unit: description.units.shown(unit) for unit in _SPOKEN}
    return {unit: [shown.text, float(shown.of(1.0))] for unit, shown in each.items() if shown.text != unit}


def _sheet(times: Floats, time: Any, d: Description, heading: str, unit: str, values: Any) -> dict[str, Any]:
    """What one chart shows of a load, in the model's units: a number, or three components one after another, at every
    kept time point.
    """
    single, shown = np.ndim(values) == 1, d.units.shown(unit)
    rows = shown.of(_at(times, time, np.atleast_2d(values)))
    return {"heading": heading, "unit": shown.text, "single": single, "values": _packed(rows.T, "<f4")}


def _packed(array: Any, dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=np.dtype(dtype)).tobytes()).decode("ascii")


def _round(x: Any) -> float:
    return float(f"{float(x):.8g}")


def _row(values: Any) -> list[float]:
    return [_round(x) for x in np.asarray(values, dtype=np.float64).reshape(-1)]


def _rows(matrix: Any) -> list[list[float]]:
    return [_row(row) for row in matrix]
