"""Curves on the page and in notebooks: closed solids that have the curve's outline, walls beside slots, pins in them;
the massless bodies of curves are not drawn."""

from __future__ import annotations

import numpy as np
import pytest
from test_gear_parts import is_closed, volume

import linkwright as lw
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.mechanism import Mechanism
from linkwright.viewer.curve_outlines import area, around, inside, plate, ring, shifted
from linkwright.viewer.curve_parts import bodies_shown, curve_rims, curve_solids
from linkwright.viewer.notebook import drawn
from linkwright.viewer.page import checked
from linkwright.viewer.scene import scene

CAM = """
MODEL cam
SYSTEM (INVERSE DYNAMIC ANALYSIS, ending time = 0.5, print interval = 0.05, length unit = mm, angle unit = degree);
GRAVITY (0, 0, 0);
BODY g (ground);
BODY shaft (mass = 1, inertia = (1, 1, 1));
BODY tappet (origin = (0, 37, 0), mass = 0.4);
BODY lever (origin = (160, 40, 0), mass = 1, inertia = (1, 1, 1));
TRIAD tip (associated body = lever, origin = (-60, -15, 0));
HINGE crank (body = g, body = shaft, at = (0, 0));
SLIDER slide (body = g, body = tappet, at = (0, 0), axis = (0, 1));
HINGE pivot (body = g, body = lever, at = (160, 40));
CURVE disc (body = shaft, x = 10 + 30*cos(u), y = 30*sin(u), range = (0, 360 deg), closed);
CURVE roller (body = tappet, circle = 8);
CURVE ON CURVE touch (curve = disc, curve = roller);
CURVE slot (body = shaft, points = [(60, 10), (90, 20), (120, 30), (140, 40)]);
POINT ON CURVE pin (curve = slot, point = tip, start = 40);
DRIVER motor (crank.angle = 10*TIME);
{}
ENDMODEL
"""


def motion(more: str = "") -> tuple[lw.Solution, dict]:
    text = CAM.format(more)
    sol = lw.analyse(Mechanism(parse_mks(text)))
    assert sol.status, str(sol.status)
    return sol, scene(sol.description, sol.time, sol.arrays)


def solids(sol: lw.Solution) -> list:
    d = sol.description
    joined = {d.body_names.position("body", "shaft"): np.zeros((1, 3))}
    m = checked(sol.time, sol.arrays, d.nb, bodies_shown(d))
    return list(curve_solids(d, m, 0.003, lambda body: "#000000", joined))


def test_curves_are_closed_solids_on_their_bodies() -> None:
    sol, _ = motion()
    d = sol.description
    meshes = [(d.body_name(body), mesh) for body, _, mesh in solids(sol) if mesh is not None]
    assert [name for name, _ in meshes] == ["shaft", "tappet", "shaft"]
    assert all(is_closed(mesh) and volume(mesh) > 0 for _, mesh in meshes)
    disc = meshes[0][1]
    x, y = disc.vertices[:, :2].astype(float).T
    np.testing.assert_allclose(np.hypot(x - 0.01, y), 0.03, atol=1e-8)
    width = np.ptp(disc.vertices[:, 2])
    np.testing.assert_allclose(volume(disc), np.pi * 0.03**2 * width, rtol=1e-3)
    pins = [body for body, part, mesh in solids(sol) if mesh is None and part.kind == "cylinder"]
    assert {d.body_name(body) for body in pins} == {"tappet", "lever"}  # the roller's hub and the pin
    bars = [body for body, part, mesh in solids(sol) if mesh is None and part.kind == "capsule"]
    assert [d.body_name(body) for body in bars].count("shaft") == 1  # from the axle to the slot
    assert [d.body_name(body) for body in bars].count("tappet") == 5  # spokes


def test_massless_bodies_of_curves_are_not_on_the_page_and_the_view_is_planar() -> None:
    sol, page = motion()
    assert [body["name"] for body in page["bodies"]] == ["shaft", "tappet", "lever"]
    assert page["view"]["planar"]
    assert not page["notes"]
    picture = drawn(
        sol.description, sol.states.q[0] if sol.states is not None else Mechanism(sol.description).assemble()
    )
    assert "along" not in picture
    assert "touch point" not in picture
    assert picture.count("fill-opacity='.15'") == 3


def test_a_path_of_contact_is_drawn() -> None:
    _, page = motion('TRACE path (body = "touch point");')
    assert [trace["name"] for trace in page["traces"]] == ["path"]
    names = [body["name"] for body in page["bodies"]]
    assert names[page["traces"][0]["body"]] == "touch point"
    assert page["view"]["planar"]


def test_an_outline_becomes_a_plate_whatever_its_shape() -> None:
    u = np.linspace(0, 2 * np.pi, 150, endpoint=False)
    for lobes, depth in ((2, 0.3), (5, 0.6), (0, 0.0)):
        radius = 1.0 + depth * np.cos(lobes * u)
        line = np.stack([radius * np.cos(u), radius * np.sin(u)], axis=1) + 3.0
        for way in (line, line[::-1]):
            mesh = plate(way, 0.5)
            assert mesh is not None
            assert is_closed(mesh)
            np.testing.assert_allclose(volume(mesh), 0.5 * abs(area(line)), rtol=1e-6)
    spiral = np.concatenate([np.stack([r * np.cos(3 * u), r * np.sin(3 * u)], axis=1) for r in (1 + u, (2 + u)[::-1])])
    spiral[150:] = np.stack([(1.3 + u[::-1]) * np.cos(3 * u[::-1]), (1.3 + u[::-1]) * np.sin(3 * u[::-1])], axis=1)
    mesh = plate(spiral, 0.5)
    assert mesh is not None
    np.testing.assert_allclose(volume(mesh), 0.5 * abs(area(spiral)), rtol=1e-5)


def test_lines_beside_a_line_are_at_their_distance() -> None:
    x = np.linspace(0, 1, 80)
    line = np.stack([x, 0.2 * np.sin(3 * x)], axis=1)
    rim = around(line, 0.05)
    gaps = np.linalg.norm(rim[:, None] - line[None], axis=-1).min(axis=1)
    np.testing.assert_allclose(gaps, 0.05, atol=2e-3)
    assert area(rim) > 0
    assert inside(line, rim).all()
    assert not inside(rim, around(line, 0.04)).any()
    mesh = ring(around(line, 0.06), rim, 0.1)
    assert is_closed(mesh)
    circle = np.stack([np.cos(6.28 * x[:-1]), np.sin(6.28 * x[:-1])], axis=1)
    assert np.abs(np.linalg.norm(shifted(circle, 0.1, closed=True), axis=1) - 1.1).max() < 1e-2


@pytest.mark.parametrize("hollow", [False, True])
def test_a_curve_with_its_follower_inside_is_a_ring(hollow: bool) -> None:
    with lw.Builder("ring") as b:
        b.gravity((0, 0, 0))
        bob = b.body("bob", 1.0, inertia=(0.01, 0.01, 0.01))
        b.place(bob, (0.06 if hollow else 0.14, 0, 0))
        b.joint("planar", b.ground, bob, "plane")
        rim = b.curve("rim", b.ground, lambda u: (0.1 * np.cos(u), 0.1 * np.sin(u)), closed=True)
        b.curve_on_curve(rim, b.curve("wheel", bob, circle=0.04), "touch")
        b.system(analysis="kinematic", end=0.1, interval=0.1)
    sol = lw.analyse(b.build())
    d = sol.description
    m = checked(sol.time, sol.arrays, d.nb, bodies_shown(d))
    body, _, mesh = next(curve_solids(d, m, 0.003, lambda body: "#000000", {}))
    assert d.body_name(body) == "ground"
    radii = np.linalg.norm(mesh.vertices[:, :2], axis=1)
    assert radii.min() > 0.0999
    assert (radii.max() > 0.101) == hollow
    assert len(list(curve_rims(d, m, 0.003))) == 2
