"""CURVE, POINT ON CURVE and CURVE ON CURVE mean what the builder makes, in any units, and come back when written."""

from __future__ import annotations

import numpy as np
import pytest
from same_description import assert_same

import linkwright as lw
from linkwright.errors import ModelError
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.formats.mks.mks_writer import write_mks
from linkwright.model.description import Description

CAM = """MODEL cam
SYSTEM (INVERSE DYNAMIC ANALYSIS, ending time = 1, print interval = 0.1);
PARAMETER e = 10 mm;
BODY g (ground);
BODY shaft (origin = (0, 0, 0), mass = 1, inertia = (0.01, 0.01, 0.002));
BODY tappet (origin = (0, 48 mm, 0), mass = 0.4);
REVOLUTE JOINT crank (body = g, body = shaft, at = (0, 0, 0));
TRANSLATIONAL JOINT slide (body = g, body = tappet, axis = (0, 1, 0));
{curves}
DRIVER motor (crank.angle = 3*TIME);
ENDMODEL
"""
CURVES = {
    "expressions": "CURVE disc (body = shaft, x = e + 30 mm*cos(u), y = 30 mm*sin(u), range = (0, 360 deg), closed);",
    "plain": "CURVE disc (body = shaft, x = e + 0.03*cos(u), y = 0.03*sin(u), range = (0, 2*pi), closed);",
    "circle": "CURVE disc (triad = (body = shaft, origin = (e, 0, 0)), circle = 30 mm);",
}
TOUCH = "\nCURVE roller (body = tappet, circle = 8 mm);\nCURVE ON CURVE touch (curve = disc, curve = roller{more});"


def text_of(curve: str, more: str = "") -> str:
    return CAM.replace("{curves}", CURVES[curve] + TOUCH.replace("{more}", more))


def round_trip(d: Description) -> str:
    text = write_mks(d)
    again = parse_mks(text)
    assert_same(d, again)
    assert (d.curves, d.contacts) == (again.curves, again.contacts)
    assert d.digest == again.digest
    assert write_mks(again) == text
    return text


@pytest.mark.parametrize("curve", CURVES)
def test_a_cam_of_a_file_lifts_its_roller_and_comes_back(curve: str) -> None:
    d = parse_mks(text_of(curve))
    written = round_trip(d)
    assert "CURVE ON CURVE touch (curve = disc, curve = roller);" in written
    assert "along" not in written
    sol = lw.analyse(lw.Mechanism(d))
    angle = 3.0 * sol.time
    height = 0.01 * np.sin(angle) + np.sqrt(0.038**2 - (0.01 * np.cos(angle)) ** 2)
    np.testing.assert_allclose(sol.position("tappet")[:, 1], height, atol=1e-12)


def test_starts_that_are_not_as_drawn_are_written() -> None:
    d = parse_mks(text_of("circle", ", start = (90 deg, 270 deg)"))
    assert "start = (1.5707963267948966 rad, 4.71238898038469 rad)" in round_trip(d)
    rolling = CAM.replace("{curves}", CURVES["circle"] + TOUCH.replace("{more}", ", rolling, start = (1.0, 2.0)"))
    assert "rolling, start = (1 rad, 2 rad)" in round_trip(parse_mks(rolling))


def test_points_and_lines_and_points_on_them_come_back() -> None:
    held = (
        "CURVE slot (body = g, points = [(0, 0), (10 mm, 2 mm), (20 mm, 0)]);\n"
        "CURVE ring (triad = shaft, points = [(0.1, 0), (0, 0.1), (-0.1, 0), (0, -0.1)], closed);\n"
        "CURVE edge (body = g, line = 2*e);\n"
        "POINT ON CURVE one (curve = slot, point = (body = tappet, origin = (0, -48 mm, 0)));\n"
        "POINT ON CURVE two (curve = edge, point = (body = tappet, origin = (0, -48 mm, 0)), start = 1 mm);\n"
        'TRACE spot (body = "two along");\nINITIAL ("one along".rate = 0.5);'
    )
    d = parse_mks(CAM.replace("{curves}", held))
    text = round_trip(d)
    assert "CURVE edge (triad = g, line = 2*e);" in text
    assert "POINT ON CURVE two (curve = edge, point = two_place, start = 0.001);" in text


def test_a_builder_puts_what_curves_bring_along_behind_the_rest_as_a_file_does() -> None:
    b = lw.Builder("order")
    ring = b.curve("ring", b.ground, circle=0.1)
    for name in ("one", "two"):
        body = b.body(name, 1.0, com=(0.01, 0, 0), inertia=(0.01, 0.01, 0.01))
        b.place(body, (0.1, 0, 0))
        b.joint("planar", b.ground, body, f"{name} plane")
        b.point_on_curve(ring, b.triad(body, (0.0, 0.01, 0), name=f"{name} pin"), f"{name} held")
    b.mimic("two held along", "one held along", -1.0, name="mirror")
    d = b.description()
    assert list(d.body_names) == ["one", "two", "one held along", "two held along"]
    assert d.mimics[0].follower == 3
    round_trip(d)
    b.trace(body)  # the builder itself goes on as before
    assert b.description().traces


def test_a_curve_of_a_parameter_that_is_called_u_is_not_written() -> None:
    b = lw.Builder("named")
    size = b.parameter("u", 0.1)
    b.joint("revolute", b.ground, b.body("arm", 1.0))
    b.curve("ring", "arm", lambda u: (size * np.cos(u), size * np.sin(u)), closed=True)
    with pytest.raises(ModelError, match="depends on a parameter 'u'"):
        write_mks(b.description())


def test_lengths_of_curves_are_in_the_model_s_units() -> None:
    si = "CURVE disc (body = shaft, x = 0.01*u, y = 0.02*u^2, range = (-1, 1));"
    mm = "CURVE disc (body = shaft, x = 10*u, y = 20*u^2, range = (-1, 1));"
    curves = []
    for curve, unit in ((si, ""), (mm, ", length unit = mm")):
        text = CAM.replace("{curves}", curve).replace("interval = 0.1", f"interval = 0.1{unit}")
        (read,) = parse_mks(text).curves
        names = {"e": 0.01, "curve u": 0.5}
        curves.append((float(read.x.evaluate(names)), float(read.y.evaluate(names))))
    assert curves[0] == pytest.approx((0.005, 0.005), abs=1e-17)
    assert curves[1] == pytest.approx(curves[0], abs=1e-17)


def test_a_parameter_with_a_unit_is_a_length_or_an_angle() -> None:
    text = "CURVE disc (body = shaft, x = u, y = 0.1*u, range = (0, 40 mm));"
    (curve,) = parse_mks(CAM.replace("{curves}", text)).curves
    assert float(curve.x.evaluate({"curve u": 0.04})) == 0.04
    spiral = "CURVE disc (body = shaft, x = 5 mm*u*cos(u), y = 5 mm*u*sin(u), range = (90 deg, 400 deg));"
    assert parse_mks(CAM.replace("{curves}", spiral)).curves


def test_parts_have_curves_of_their_own_in_files_and_in_python() -> None:
    part = """MODEL two
    BODY g (ground);
    PART cam (base, at = 0) {
      BODY shaft (origin = (at, 0, 0), mass = 1);
      BODY tappet (origin = (at, 48 mm, 0), mass = 0.4);
      REVOLUTE JOINT crank (body = base, body = shaft, at = (at, 0, 0));
      TRANSLATIONAL JOINT slide (body = base, body = tappet, axis = (0, 1, 0));
      CURVE disc (body = shaft, x = 0.01 + 0.03*cos(u), y = 0.03*sin(u), range = (0, 2*pi), closed);
      CURVE roller (body = tappet, circle = 8 mm);
      CURVE ON CURVE touch (curve = disc, curve = roller);
      TRACE spot (body = "touch point");
    }
    REPEAT i = 1 .. 2 { USE cam AS cam[i] (base = g, at = i*0.2); }
    ENDMODEL
    """
    d = parse_mks(part)
    assert [x.point for x in d.contacts] == ["cam[1].touch point", "cam[2].touch point"]
    assert [x.place for x in d.traces] == ["cam[1].touch point", "cam[2].touch point"]
    round_trip(d)
    b = lw.Builder("one")
    with b.part("cam[1]"):
        b.joint("revolute", b.ground, b.body("shaft", 1.0), "crank")
        b.curve("disc", "shaft", circle=0.1)
        b.point_on_curve("disc", "ground", "pin")
    assert [x.name for x in b.description().point_constraints] == ["cam[1].pin"]
