"""Cam profiles as files: DXF (R12, which every CAD program reads), SVG drawn one to one, and CSV."""

from __future__ import annotations

import csv
import io
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linkwright.base.arguments import path_text, shown
from linkwright.base.arrays import Floats
from linkwright.base.files import check_target, write_text
from linkwright.errors import LinkwrightError, ModelError
from linkwright.model.units import LENGTH, Unit, in_words, unit

if TYPE_CHECKING:
    from linkwright.design.cam_profiles import CamProfile

ENDINGS = (".dxf", ".svg", ".csv")
#: Layers of a drawing, with the numbers of their colours in AutoCAD.
LAYERS = {"CAM": 7, "PITCH": 5, "BASE": 8, "AXIS": 1}
#: DXF's numbers of units, by their size in metres.
_DXF_UNITS = {1.0: 6, 0.1: 14, 0.01: 5, 0.001: 4, 1e-6: 13, 1000.0: 7, 0.0254: 1, 0.3048: 2}
_CROSS = 0.15  # of the base radius: half the length of the lines through the axis


def save_cam(cam: CamProfile, path: str | os.PathLike[str], unit_text: str) -> None:
    """Write a profile to a path in .dxf, .svg or .csv, in this unit of length."""
    ending = Path(path_text("a cam's profile", path)).suffix.lower()
    if ending not in ENDINGS:
        raise LinkwrightError(f"{path}: the profile of a cam is written as .dxf, .svg or .csv; give such a name")
    length = _length(unit_text)
    check_target(path)
    write_text(path, {".dxf": dxf_text, ".svg": svg_text, ".csv": csv_text}[ending](cam, length))


def _length(text: str) -> Unit:
    if not isinstance(text, str):
        raise ModelError(f"the unit of a cam's file is {shown(text)}; give a length such as 'mm' or 'inch'")
    length = unit(text)
    if length.dimension != LENGTH:
        given = in_words(length.dimension)
        raise ModelError(
            f"the unit of a cam's file is {text!r}, which is {given}; give a length such as 'mm' or 'inch'"
        )
    return length


def dxf_text(cam: CamProfile, length: Unit) -> str:
    """The profile and pitch curve as closed polylines, the base circle and the axis, each on its layer."""
    scale = 1.0 / length.factor
    groups: list[tuple[int, object]] = [(0, "SECTION"), (2, "HEADER"), (9, "$ACADVER"), (1, "AC1009")]
    groups += [(9, "$INSUNITS"), (70, _DXF_UNITS.get(length.factor, 0)), (0, "ENDSEC")]
    groups += [(0, "SECTION"), (2, "TABLES"), (0, "TABLE"), (2, "LAYER"), (70, len(LAYERS))]
    for layer, colour in LAYERS.items():
        groups += [(0, "LAYER"), (2, layer), (70, 0), (62, colour), (6, "CONTINUOUS")]
    groups += [(0, "ENDTAB"), (0, "ENDSEC"), (0, "SECTION"), (2, "ENTITIES")]
    groups += _polyline("CAM", scale * cam.profile)
    if cam.follower.radius:
        groups += _polyline("PITCH", scale * cam.pitch)
    groups += [(0, "CIRCLE"), (8, "BASE"), (10, 0.0), (20, 0.0), (30, 0.0), (40, scale * cam.base_radius)]
    half = _CROSS * scale * cam.base_radius
    for x, y in ((half, 0.0), (0.0, half)):
        groups += [(0, "LINE"), (8, "AXIS"), (10, -x), (20, -y), (30, 0.0), (11, x), (21, y), (31, 0.0)]
    groups += [(0, "ENDSEC"), (0, "EOF")]
    return "".join(f"{code:>3}\n{_number(x)}\n" for code, x in groups)


def _polyline(layer: str, points: Floats) -> list[tuple[int, object]]:
    groups: list[tuple[int, object]] = [(0, "POLYLINE"), (8, layer), (66, 1), (10, 0.0), (20, 0.0), (30, 0.0), (70, 1)]
    for x, y in points.tolist():
        groups += [(0, "VERTEX"), (8, layer), (10, x), (20, y), (30, 0.0)]
    return [*groups, (0, "SEQEND"), (8, layer)]


def _number(x: object) -> str:
    """A group's value; numbers with 16 digits and no exponent that old readers stumble over."""
    return f"{x + 0.0:.15f}".rstrip("0") + "0" if isinstance(x, float) else str(x)


def svg_text(cam: CamProfile, length: Unit) -> str:
    """A drawing whose size on paper is the cam's: y upward, the axis at the origin of the cam's frame."""
    scale, to_mm = 1.0 / length.factor, 1e3
    curves = [cam.profile, cam.pitch, cam.base_radius * np.array([[-1.0, -1.0], [1.0, 1.0]])]
    corners = np.array([extreme for curve in curves for extreme in (curve.min(axis=0), curve.max(axis=0))])
    margin = 0.08 * np.ptp(corners, axis=0).max()
    low, high = corners.min(axis=0) - margin, corners.max(axis=0) + margin
    (x, y), (wide, tall) = scale * np.array([low[0], -high[1]]), scale * (high - low)
    thin = 0.003 * max(wide, tall)
    half = _CROSS * scale * cam.base_radius
    dashes = f'stroke-dasharray="{4 * thin:.6g} {3 * thin:.6g}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{to_mm * (high - low)[0]:.6f}mm" '
        f'height="{to_mm * (high - low)[1]:.6f}mm" viewBox="{x:.9g} {y:.9g} {wide:.9g} {tall:.9g}">',
        f"<desc>Plate cam; lengths in {length.text}</desc>",
        f'<g fill="none" stroke-linejoin="round" stroke-width="{thin:.6g}">',
        f'<circle id="base" r="{scale * cam.base_radius:.9g}" stroke="#777777" {dashes}/>',
    ]
    if cam.follower.radius:
        lines.append(f'<path id="pitch" d="{_path(scale * cam.pitch)}" stroke="#0072B2" {dashes}/>')
    lines += [
        f'<path id="cam" d="{_path(scale * cam.profile)}" stroke="#222222" stroke-width="{2 * thin:.6g}"/>',
        f'<path id="axis" d="M{-half:.9g},0H{half:.9g}M0,{-half:.9g}V{half:.9g}" stroke="#222222"/>',
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _path(points: Floats) -> str:
    return "M" + "L".join(f"{x:.12g},{-y:.12g}" for x, y in points.tolist()) + "Z"


def csv_text(cam: CamProfile, length: Unit) -> str:
    """A row for each angle of the cam, with numbers that are read back exactly."""
    scale, name = 1.0 / length.factor, length.text
    moves, size = ("rad", 1.0) if cam.follower.oscillates else (name, scale)
    columns: dict[str, Floats] = {
        "angle_rad": cam.angles,
        "angle_deg": cam.angles * math.degrees(1.0),
        f"displacement_{moves}": size * cam.displacement,
        f"velocity_{moves}_per_rad": size * cam.velocity,
        f"acceleration_{moves}_per_rad2": size * cam.acceleration,
        f"profile_x_{name}": scale * cam.profile[:, 0],
        f"profile_y_{name}": scale * cam.profile[:, 1],
        f"pitch_x_{name}": scale * cam.pitch[:, 0],
        f"pitch_y_{name}": scale * cam.pitch[:, 1],
        "pressure_angle_deg": np.degrees(cam.pressure_angle),
        f"curvature_per_{name}": cam.curvature / scale,
    }
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(x.tolist() for x in columns.values()), strict=True))
    return file.getvalue()
