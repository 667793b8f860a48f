"""Cams as DXF, SVG and CSV, read back; and as figures."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import LinkwrightError, ModelError

SEGMENTS = [("100 deg", 0.02, "rise345"), ("160 deg", 0.02), ("280 deg", 0.0, "rise345")]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def cam() -> lw.CamProfile:
    return lw.cam_profile(SEGMENTS, 0.04, lw.CamFollower(radius=0.008, offset=0.005))


def entities(text: str) -> list[list[tuple[int, str]]]:
    """The entities of a DXF file as lists of (code, value): a reader of its own."""
    lines = text.split("\n")
    assert lines[-1] == ""
    groups = [(int(code), value) for code, value in zip(lines[0:-1:2], lines[1::2], strict=True)]
    assert groups[0] == (0, "SECTION")
    assert groups[-1] == (0, "EOF")
    begin = groups.index((2, "ENTITIES")) + 1
    entities: list[list[tuple[int, str]]] = []
    for group in groups[begin : groups.index((0, "ENDSEC"), begin)]:
        if group[0] == 0:
            entities.append([])
        entities[-1].append(group)
    return entities


@pytest.mark.parametrize(("unit", "metre", "number"), [("mm", 1e3, "4"), ("m", 1.0, "6"), ("inch", 1 / 0.0254, "1")])
def test_a_dxf_has_the_closed_profile_in_its_unit(
    cam: lw.CamProfile, tmp_path: Path, unit: str, metre: float, number: str
) -> None:
    cam.save(tmp_path / "cam.dxf", unit=unit)
    text = (tmp_path / "cam.dxf").read_text(encoding="ascii")
    assert f"$INSUNITS\n 70\n{number}\n" in text
    curves: dict[str, list[tuple[float, float]]] = {}
    for entity in entities(text):
        codes = dict(entity)
        if codes[0] == "POLYLINE":
            assert codes[70] == "1"  # closed
        if codes[0] == "VERTEX":
            curves.setdefault(codes[8], []).append((float(codes[10]), float(codes[20])))
        if codes[0] == "CIRCLE":
            assert float(codes[40]) == pytest.approx(0.04 * metre, rel=1e-14)
    np.testing.assert_allclose(curves["CAM"], metre * cam.profile, atol=1e-14 * metre)
    np.testing.assert_allclose(curves["PITCH"], metre * cam.pitch, atol=1e-14 * metre)
    layers = set(re.findall(r"LAYER\n  2\n(\w+)\n", text))
    assert layers == {entity_layer for entity in entities(text) for code, entity_layer in entity if code == 8}


def test_an_svg_is_drawn_one_to_one(cam: lw.CamProfile, tmp_path: Path) -> None:
    cam.save(tmp_path / "cam.svg", unit="inch")
    root = ET.parse(tmp_path / "cam.svg").getroot()
    left, top, wide, tall = map(float, root.attrib["viewBox"].split())
    assert float(root.attrib["width"].removesuffix("mm")) == pytest.approx(25.4 * wide, rel=1e-6)
    assert float(root.attrib["height"].removesuffix("mm")) == pytest.approx(25.4 * tall, rel=1e-6)
    paths = {path.attrib["id"]: path.attrib["d"] for path in root.iter(f"{SVG}path")}
    assert paths["cam"].endswith("Z")
    points = np.array([[float(x) for x in pair.split(",")] for pair in paths["cam"][1:-1].split("L")])
    np.testing.assert_allclose(points * [0.0254, -0.0254], cam.profile, atol=1e-12)
    for curve in (points, np.array([[float(x) for x in pair.split(",")] for pair in paths["pitch"][1:-1].split("L")])):
        assert (curve.min(axis=0) > [left, top]).all()
        assert (curve.max(axis=0) < [left + wide, top + tall]).all()


def test_a_csv_has_every_quantity_to_the_last_digit(cam: lw.CamProfile, tmp_path: Path) -> None:
    cam.save(tmp_path / "cam.csv", unit="m", count=360)
    table = np.genfromtxt(tmp_path / "cam.csv", delimiter=",", names=True)
    assert len(table) == 360
    names = {"angle_rad": cam.angles, "displacement_m": cam.displacement, "velocity_m_per_rad": cam.velocity}
    names |= {"acceleration_m_per_rad2": cam.acceleration, "profile_x_m": cam.profile[:, 0]}
    names |= {"profile_y_m": cam.profile[:, 1], "pitch_x_m": cam.pitch[:, 0], "curvature_per_m": cam.curvature}
    for name, values in names.items():
        np.testing.assert_array_equal(table[name], values[::2], err_msg=name)
    np.testing.assert_allclose(np.radians(table["pressure_angle_deg"]), cam.pressure_angle[::2], rtol=1e-14)
    swing = lw.cam_profile([(1.5, 0.2, "rise345"), (4.0, 0.0, "cycloidal")], 0.04, lw.CamFollower("flat", pivot=0.1))
    swing.save(tmp_path / "swing.csv")
    head = (tmp_path / "swing.csv").read_text().split("\n")[0]
    assert head.startswith(
        "angle_rad,angle_deg,displacement_rad,velocity_rad_per_rad,acceleration_rad_per_rad2,profile"
    )


@pytest.mark.parametrize(
    ("name", "unit", "message"),
    [
        ("cam.step", "mm", r"written as \.dxf, \.svg or \.csv"),
        ("cam", "mm", r"written as \.dxf"),
        ("cam.dxf", "kg", "'kg', which is a mass; give a length"),
        ("cam.dxf", "mmm", "no unit 'mmm'"),
        ("cam.dxf", 3, "the unit of a cam's file is 3"),
        ("absent/cam.dxf", "mm", "choose a folder that exists"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(
    cam: lw.CamProfile, tmp_path: Path, name: str, unit: str, message: str
) -> None:
    with pytest.raises(LinkwrightError, match=message):
        cam.save(tmp_path / name, unit=unit)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file(cam: lw.CamProfile, tmp_path: Path) -> None:
    place = tmp_path / "cam.dxf"
    cam.save(place)
    before = place.read_bytes()
    with pytest.raises(ModelError):
        cam.save(place, unit="s")
    with pytest.raises(LinkwrightError):
        cam.save(place, count=3)
    assert place.read_bytes() == before


@pytest.mark.parametrize(
    "follower",
    [
        *(lw.CamFollower(radius=0.008, offset=0.005), lw.CamFollower("flat"), lw.CamFollower("knife")),
        lw.CamFollower(radius=0.008, pivot=0.09, arm=0.07),
        lw.CamFollower("flat", pivot=0.09, offset=0.005),
    ],
    ids=["roller", "flat", "knife", "arm", "face"],
)
def test_every_cam_has_a_figure(follower: lw.CamFollower, tmp_path: Path) -> None:
    motion = SEGMENTS if not follower.oscillates else [("100 deg", 0.15, "rise345"), ("280 deg", 0.0, "rise345")]
    figure = lw.cam_profile(motion, 0.05, follower).plot(tmp_path / "cam.svg")
    assert ET.parse(tmp_path / "cam.svg").getroot().tag == f"{SVG}svg"
    drawing, *rows = figure.axes
    assert [ax.get_ylabel().split("\n")[0] for ax in rows][:3] == ["displacement", "velocity", "acceleration"]
    low, high = drawing.get_ylim()
    assert low < -50 < 50 < high  # millimetres, the whole cam


def test_the_figure_of_a_cam_that_cannot_be_made_shows_where() -> None:
    quick = [("35 deg", 0.02, "rise345"), ("160 deg", 0.02), ("280 deg", 0.0, "rise345")]
    cam = lw.cam_profile(quick, 0.04, lw.CamFollower(radius=0.02), check=False)
    legend = cam.plot().axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["undercut"]
