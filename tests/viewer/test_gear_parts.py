"""Gears on the page: closed solids, teeth in the spaces of their mates at all times, each wheel once, bounded."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.mechanism import Mechanism
from linkwright.model.elements import GearPair
from linkwright.viewer.gear_outlines import belt, conical, cylindrical, outline, rack, thread, wheel
from linkwright.viewer.gear_parts import gear_solids
from linkwright.viewer.notebook import drawn
from linkwright.viewer.page import checked
from linkwright.viewer.scene import scene

GEARS = """
MODEL gears
SYSTEM (KINEMATIC ANALYSIS, starting time = 0, ending time = 0.5, print interval = 0.02,
        length unit = mm, angle unit = degree);
BODY g (ground);
BODY pinion (mass = 1, inertia = (1, 1, 1));
BODY wheel (origin = (45, 0, 0), mass = 1, inertia = (1, 1, 1));
BODY slab (origin = (0, -24, 0), mass = 1, inertia = (1, 1, 1));
BODY small (origin = (100, 30, 0), mass = 1, inertia = (1, 1, 1));
BODY ring (origin = (100, 0, 0), mass = 1, inertia = (1, 1, 1));
BODY pulley (origin = (-70, 0, 0), mass = 1, inertia = (1, 1, 1));
BODY crossed (origin = (-70, 60, 0), mass = 1, inertia = (1, 1, 1));
BODY worm (origin = (45, 33, 0), mass = 1, inertia = (1, 1, 1));
HINGE jp (body = g, body = pinion, at = (0, 0));
HINGE jw (body = g, body = wheel, at = (45, 0));
HINGE js (body = g, body = small, at = (100, 30));
HINGE jr (body = g, body = ring, at = (100, 0));
HINGE jq (body = g, body = pulley, at = (-70, 0));
HINGE jc (body = g, body = crossed, at = (-70, 60));
SLIDER jl (body = g, body = slab, at = (0, -24), axis = (1, 0));
TRIAD along (associated body = slab, h = (1, 0, 0), f = (0, 1, 0));
TRIAD axle (associated body = worm, h = (1, 0, 0), f = (0, 1, 0));
TRIAD stand (associated body = g, origin = (45, 33, 0), h = (1, 0, 0), f = (0, 1, 0));
HINGE jx (triad = stand, triad = axle);
GEAR m1 (body = pinion, body = wheel, teeth = 24, teeth = 21, module = 2);
GEAR m2 (kind = rack, body = pinion, triad = along, teeth = 24, module = 2);
GEAR m3 (kind = internal, body = small, body = ring, teeth = 20, teeth = 50, module = 2);
GEAR m4 (kind = belt, body = pinion, body = pulley, radius = 14, radius = 28);
GEAR m5 (kind = crossed belt, body = pulley, body = crossed, radius = 14, radius = 21);
GEAR m6 (kind = worm, triad = axle, body = wheel, teeth = 1, teeth = 21, radius = 12, lead angle = 4.76364169072618);
DRIVER d (jp.angle = 90*TIME);
DRIVER e (js.angle = 60*TIME);
ENDMODEL
"""
CONE = """
MODEL cones
SYSTEM (KINEMATIC ANALYSIS, starting time = 0, ending time = 0.5, print interval = 0.05);
BODY g (ground);
BODY a (origin = (0, 0, 0.03), mass = 1, inertia = (1, 1, 1));
TRIAD upright (associated body = g, origin = (0.02, 0, 0), h = (1, 0, 0), f = (0, 1, 0));
BODY b (mass = 1, inertia = (1, 1, 1));
HINGE ja (body = g, body = a, at = (0, 0, 0.03));
HINGE jb (triad = upright, triad = b);
GEAR m (kind = bevel, body = a, body = b, teeth = 20, teeth = 30, module = 0.002);
DRIVER d (ja.angle = TIME);
ENDMODEL
"""
MODULE = 0.002


def solids(text):
    sol = lw.analyse(Mechanism(parse_mks(text)))
    assert sol.status
    d = sol.description
    motion = checked(sol.time, sol.arrays, d.nb, d.nb)
    return sol, list(gear_solids(d, motion, 0.003, lambda body: "#000000"))


def is_closed(mesh):
    """Whether every edge is that of two triangles, once in each direction."""
    edges = mesh.triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2).astype(int)
    forward = {tuple(edge) for edge in edges.tolist()}
    return len(forward) == len(edges) and forward == {(b, a) for a, b in forward}


def volume(mesh):
    a, b, c = (mesh.vertices[mesh.triangles[:, k]].astype(float) for k in range(3))
    return np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0


def depth_inside(points, polygon):
    """How far points (n, 2) are inside a polygon (m, 2); 0 outside."""
    a, b = polygon, np.roll(polygon, -1, axis=0)
    x, y = points[:, :1], points[:, 1:]
    crosses = (a[:, 1] > y) != (b[:, 1] > y)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = a[:, 0] + (y - a[:, 1]) * (b[:, 0] - a[:, 0]) / (b[:, 1] - a[:, 1])
    inside = (crosses & (x < at)).sum(axis=1) % 2 == 1
    along = b - a
    share = np.clip(((points[:, None] - a) * along).sum(axis=2) / (along**2).sum(axis=1), 0.0, 1.0)
    near = np.linalg.norm(points[:, None] - a - share[..., None] * along, axis=2).min(axis=1)
    return np.where(inside, near, 0.0)


@pytest.mark.parametrize("teeth", [5, 12, 24, 89, 150, 400])
@pytest.mark.parametrize("ring", [False, True])
def test_teeth_are_half_a_pitch_thick_at_the_pitch_circle(teeth, ring) -> None:
    rim = outline(1.0, teeth, np.radians(20.0), 0.3, ring=ring)
    per = len(rim) // teeth
    radii, angles = rim[: per // 2].T  # a flank of the first tooth, or of the first space of a ring
    middle = 0.3 + (np.pi / teeth if ring else 0.0)
    half = middle - np.interp(1.0, radii, angles)
    assert half == pytest.approx(0.5 * np.pi / teeth, rel=0.15 if per == 4 else 1e-9)
    assert rim[:, 0].max() <= 1.0 + 2.5 / teeth + 1e-12


@pytest.mark.parametrize(
    "mesh",
    [
        wheel(outline(1.0, 24, 0.35, 0.1), 0.3, cylindrical(0.4, 0.1)),
        wheel(outline(1.0, 60, 0.35, 0.1, ring=True), 1.2, cylindrical(0.4)),
        wheel(outline(1.0, 0, 0.0, 0.0), 0.8, cylindrical(0.4)),
        wheel(outline(1.0, 20, 0.35, 0.0), 0.7, conical(1.0, -0.5, 0.3, 0.15)),
        wheel(outline(1.0, 20, 0.35, 0.0), 0.7, conical(1.0, 0.9, 0.3, 0.15)),
        thread(0.5, 2, -0.4, 0.2, 1.5, 0.1),
        rack(0.1, 0.35, -1.0, 1.3, 0.05, 0.2),
        belt((0.5, 1.0), 2.0, crossed=False, thickness=0.05, width=0.1),
    ],
    ids=["spur", "ring", "smooth", "bevel", "bevel down", "worm", "rack", "belt"],
)
def test_solids_are_closed_and_seen_from_outside(mesh) -> None:
    assert is_closed(mesh)
    assert volume(mesh) > 0.0


def test_a_wheel_has_the_volume_of_its_cylinder() -> None:
    mesh = wheel(outline(1.0, 24, np.radians(20.0), 0.0), 0.3, cylindrical(0.4))
    assert volume(mesh) == pytest.approx(np.pi * (1.0 - 0.09) * 0.4, rel=0.06)


def test_teeth_stand_in_the_spaces_of_their_mates_at_all_times() -> None:
    sol, parts = solids(GEARS)
    d = sol.description
    names = {d.body_name(body): (part, mesh) for body, part, mesh in parts if mesh is not None and body >= 0}

    def rim(name, step):
        """A wheel's rim, or a rack's teeth, in ground's axes at a time point (in the plane of the gears)."""
        part, mesh = names[name]
        front = mesh.vertices[mesh.vertices[:, 2] < 0.0].astype(float)
        front = front[: len(front) // 2]  # the rim goes before the hub, and teeth before the rack's back
        e0, _, _, e3 = sol.orientation(name)[step]
        turn = 2.0 * np.arctan2(e3, e0)
        r = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        return (front @ part.turn.T + part.at)[:, :2] @ r.T + sol.position(name)[step, :2]

    for step in range(0, len(sol), 3):
        pinion, other = rim("pinion", step), rim("wheel", step)
        assert depth_inside(pinion, other).max() < 0.04 * MODULE
        assert depth_inside(other, pinion).max() < 0.04 * MODULE
        teeth = rim("slab", step)
        assert depth_inside(teeth, pinion).max() < 0.04 * MODULE
        # A ring's rim goes around its spaces: teeth of the small gear stay inside it.
        small, ring = rim("small", step), rim("ring", step)
        outside = np.abs(depth_inside(small, ring)) == 0.0
        deviation = depth_inside(ring, small)
        assert deviation.max() < 0.04 * MODULE
        assert outside.sum() < 0.1 * len(small)


def test_each_wheel_is_drawn_once_and_belts_are_on_what_carries_both_wheels() -> None:
    sol, parts = solids(GEARS)
    bodies = [sol.description.body_name(body) for body, _, mesh in parts if mesh is not None]
    assert sorted(bodies) == sorted(
        ["pinion", "wheel", "slab", "small", "ring", "pinion", "pulley", "g", "pulley", "crossed", "g", "worm"]
    )
    spokes = [part for _, part, mesh in parts if mesh is None]
    assert len(spokes) == 5 * 4


def test_bevel_teeth_end_in_the_point_where_the_axes_meet() -> None:
    _, parts = solids(CONE)
    (first, second) = ((part, mesh) for _, part, mesh in parts)
    for (part, mesh), radius, apex in ((first, 0.02, -0.03), (second, 0.03, -0.02)):
        assert part.kind == "mesh"
        far = np.abs(mesh.vertices[:, 2] - apex)
        across = np.hypot(mesh.vertices[:, 0], mesh.vertices[:, 1])
        assert np.median(across / far) == pytest.approx(radius / abs(apex), rel=0.35)


def test_many_teeth_make_no_large_page() -> None:
    for teeth in (90, 200, 399, 5000):
        mesh = wheel(outline(1.0, teeth, 0.35, 0.0), 0.3, cylindrical(0.4))
        assert len(mesh.triangles) <= 13_000
        assert mesh.bytes < 250_000


def test_pictures_in_notebooks_have_the_teeth() -> None:
    mech = Mechanism(parse_mks(GEARS))
    picture = drawn(mech.description, mech.initial_state()[0])
    polygons = [
        path.split("z'")[0].count("L") + 1 for path in picture.split("<path d='M")[1:] if "fill-opacity='.15'" in path
    ]
    assert {80, 96, 160, 168, 192, 400} <= set(polygons)  # belts, smooth wheels and 20, 21, 24 and 50 teeth


def test_the_scene_has_the_teeth_and_no_cube_in_them() -> None:
    d = parse_mks(GEARS)
    sol = lw.analyse(Mechanism(d))
    page = scene(d, sol.time, sol.arrays)
    gears = [x for x in d.point_constraints if isinstance(x, GearPair)]
    assert len(gears) == 6
    kinds = {body["name"]: [part["kind"] for part in body["parts"]] for body in page["bodies"]}
    assert kinds["wheel"].count("mesh") == 1
    assert "box" not in kinds["wheel"]
    assert len(page["meshes"]) == 12
