"""Mobility explained: counts by family against textbook values, and relaxations against mechanisms built with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from linkages import four_bar

import linkwright as lw
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.model.description import kind_number
from redundant_linkages import bennett_rows, bricard_rows, goldberg_rows, loop
from scaled_models import Scale

MODELS = Path(__file__).parents[2] / "examples" / "models"


def parallelogram(cranks: int) -> lw.Mechanism:
    """A plate on equal parallel cranks."""
    with lw.Builder("parallelogram") as b:
        plate = b.body("plate")
        b.place(plate, (0.3, 0.4, 0.0))
        for k in range(cranks):
            crank = b.body(f"crank{k}")
            b.place(crank, (float(k), 0.0, 0.0))
            b.joint("revolute", b.triad(b.ground, origin=(k, 0, 0)), crank, f"foot{k}")
            b.joint("revolute", b.triad(crank, origin=(0.3, 0.4, 0)), b.triad(plate, origin=(k, 0, 0)), f"head{k}")
    return b.build()


def spherical_four_bar(arcs: tuple[float, ...], centre: tuple[float, float, float] = (0.2, -0.1, 0.4)) -> lw.Mechanism:
    """Four axes through one point: the last link closes on ground by solving for its axis."""
    a, c, r, g = arcs
    z = np.array([0.0, 0.0, 1.0])
    first, last = z, np.array([np.sin(g), 0.0, np.cos(g)])
    turn = 0.9
    second = np.array([np.sin(a) * np.cos(turn), np.sin(a) * np.sin(turn), np.cos(a)])
    # The third axis makes the arcs c and r with the second and the last.
    along = np.array([second, last])
    base = np.linalg.lstsq(along, np.cos([c, r]), rcond=None)[0]
    across = np.cross(second, last)
    third = base + across * np.sqrt((1.0 - base @ base) / (across @ across))
    with lw.Builder("spherical four-bar") as b:
        bodies = [b.body(name) for name in ("crank", "coupler", "rocker")]
        for body in bodies:
            b.place(body, (0.0, 0.0, 0.0))
        sides = [b.ground, *bodies, b.ground]
        for k, axis in enumerate((first, second, third, last)):
            ends = [b.triad(x, origin=centre, h=axis, f=np.cross(axis, [0.3, 0.5, 0.8])) for x in sides[k : k + 2]]
            b.joint("revolute", *ends, f"pivot{k}")
    return b.build()


def sarrus() -> lw.Mechanism:
    """Two hinged pairs of plates at a right angle, which lead a platform along a straight line."""
    with lw.Builder("sarrus") as b:
        top = b.body("top")
        b.place(top, (0.0, 0.0, 1.0))
        for k, axis in enumerate(((0.0, 1.0, 0.0), (1.0, 0.0, 0.0))):
            out = np.array([1.0, 0.0, 0.0]) if k == 0 else np.array([0.0, 1.0, 0.0])
            lower, upper = b.body(f"lower{k}"), b.body(f"upper{k}")
            b.place(lower, (0.0, 0.0, 0.0))
            b.place(upper, (0.0, 0.0, 0.0))
            side = np.cross(axis, [0.3, 0.5, 0.8])
            ends = {"h": axis, "f": side}
            for name, one, other, point in (
                ("foot", b.ground, lower, out),
                ("knee", lower, upper, 1.6 * out + np.array([0, 0, 0.5])),
            ):
                b.joint("revolute", *(b.triad(x, origin=point, **ends) for x in (one, other)), f"{name}{k}")
            first = b.triad(upper, origin=out + np.array([0, 0, 1.0]), **ends)
            b.joint("revolute", first, b.triad(top, origin=out, **ends), f"head{k}")
    return b.build()


CASES = {
    "four_bar": ("planar", 1, -2, 1, 3),
    "peaucellier": ("planar", 1, -8, 1, 9),
    "quick_return": ("planar", 1, -3, 1, 4),
    "rssr": ("spatial", 2, 2, 2, 0),
    "stewart": ("spatial", 6, 6, 6, 0),
    "cardan": ("spatial", -5, -5, 1, 6),
    "parallelogram": ("planar", 1, -2, 1, 3),
    "three cranks": ("planar", 0, -6, 1, 7),
    "spherical": ("spherical", 1, -2, 1, 3),
    "sarrus": ("spatial", 0, 0, 1, 1),
    "bennett": ("spatial", -2, -2, 1, 3),
    "goldberg": ("spatial", -1, -1, 1, 2),
    "bricard": ("spatial", 0, 0, 1, 1),
}


def mechanism(name: str) -> lw.Mechanism:
    makers = {
        "parallelogram": lambda: parallelogram(2),
        "three cranks": lambda: parallelogram(3),
        "spherical": lambda: spherical_four_bar((0.5, 1.1, 0.9, 1.2)),
        "sarrus": sarrus,
        "bennett": lambda: loop(name, bennett_rows(0.5, 0.5, 0.9)),
        "goldberg": lambda: loop(name, goldberg_rows()),
        "bricard": lambda: loop(name, bricard_rows()),
    }
    return makers[name]() if name in makers else lw.load(MODELS / f"{name}.mks")


def relaxed(mech: lw.Mechanism) -> lw.Mechanism:
    """The mechanism with the joints that its report proposes."""
    d = mech.description
    kinds = d.kind.copy()
    for relaxation in mech.dof().mobility.relaxations:
        kinds[d.joint_names.position("joint", relaxation.joint)] = kind_number(relaxation.other)
    return lw.Mechanism(replace(d, kind=kinds))


@pytest.mark.parametrize("name", CASES)
def test_counts_and_rank_are_those_of_the_textbooks(name):
    mobility = mechanism(name).dof().mobility
    counts = mobility.family, mobility.count, mobility.in_space, mobility.by_rank, mobility.redundant
    assert counts == CASES[name]
    assert mobility.by_rank - mobility.redundant == mobility.in_space  # rank and nullity of J
    assert mobility.redundant_after == 0
    assert sum(x.freed for x in mobility.relaxations) == mobility.redundant


@pytest.mark.parametrize("name", ["four_bar", "spherical", "sarrus", "bennett", "goldberg", "bricard"])
def test_with_the_joints_replaced_nothing_is_redundant_and_the_freedom_is_the_same(name):
    mech = mechanism(name)
    report = relaxed(mech).dof()
    assert report.redundant == ()
    assert report.degrees_of_freedom == mech.dof().degrees_of_freedom
    assert report.mobility.in_space == report.mobility.by_rank
    assert report.mobility.relaxations == ()


def test_the_relaxed_four_bar_moves_as_the_first_one_does():
    mech = four_bar((1.0, 3.0, 2.5, 3.0), 0.9 + lw.TIME, 0.9)
    times = np.linspace(0.0, 6.0, 25)
    motions = [lw.analyse(m, times=times).position("top") for m in (mech, relaxed(mech))]
    np.testing.assert_allclose(motions[1], motions[0], atol=1e-9)


@pytest.mark.parametrize("length", [1e-3, 1e3])
def test_units_of_length_change_no_count(length):
    for name in ("three cranks", "spherical", "bennett"):
        d = mechanism(name).description
        mobility = lw.Mechanism(Scale(d, length, 1.0).description()).dof().mobility
        assert (mobility.family, mobility.count, mobility.in_space, mobility.by_rank, mobility.redundant) == CASES[name]


def test_parts_in_different_planes_are_counted_apart():
    with lw.Builder("two planes") as b:
        for name, h, f, far in (("one", (0, 0, 1), (1, 0, 0), (3, 0, 0)), ("two", (0, 1, 0), (1, 0, 0), (3, 0, 0))):
            side = np.cross(h, f).astype(float)
            points = [np.zeros(3), 0.4 * np.array(f) + side, np.array(far) + 1.5 * side, np.array(far, float)]
            sides = [b.ground, *(b.body(f"{name}{k}") for k in range(3)), b.ground]
            for body in sides[1:4]:
                b.place(body, (0.0, 0.0, 0.0))
            for k, point in enumerate(points):
                ends = [b.triad(x, origin=point, h=h, f=f) for x in sides[k : k + 2]]
                b.joint("revolute", *ends, f"{name} pivot {k}")
        loose = b.body("loose")
        b.joint("free", b.ground, loose, "fly")
    mobility = b.build().dof().mobility
    assert [(x.family, x.degrees_of_freedom) for x in mobility.counts] == [("planar", 1), ("planar", 1), ("spatial", 6)]
    assert {x.about for x in mobility.counts} == {(0.0, 0.0, 1.0), (0.0, 1.0, 0.0), None}
    assert (mobility.family, mobility.count, mobility.by_rank, mobility.redundant) == ("mixed", 8, 8, 6)
    assert any("'fly'" in text for text in mobility.free)


def test_a_linkage_on_a_moving_arm_is_counted_in_its_own_plane():
    with lw.Builder("arm") as b:
        mast = b.body("mast")
        b.place(mast, (0.0, 0.0, 0.0))
        b.joint("revolute", b.ground, mast, "yaw")
        sides = [mast, *(b.body(f"bar{k}") for k in range(3)), mast]
        for body in sides[1:4]:
            b.place(body, (0.0, 0.0, 0.0))
        for k, point in enumerate(((0.1, 0, 0), (0.1, 0, 1.0), (0.9, 0, 1.2), (0.9, 0, 0.1))):
            ends = [b.triad(x, origin=point, h=(0, 1, 0), f=(1, 0, 0)) for x in sides[k : k + 2]]
            b.joint("revolute", *ends, f"pivot{k}")
    mobility = b.build().dof().mobility
    assert [(x.family, x.degrees_of_freedom) for x in mobility.counts] == [("planar", 1), ("planar", 1)]
    assert (mobility.count, mobility.by_rank, mobility.in_space) == (2, 2, -1)


def test_an_idle_turn_is_described_by_its_body():
    mobility = mechanism("rssr").dof().mobility
    assert mobility.free == ("body 'rod' turns about itself between 's1' and 's2', which moves nothing else",)
    assert mobility.driven == ("r1.angle by 'motor'",)


def test_undriven_degrees_of_freedom_are_named_by_joints_at_ground():
    assert mechanism("bennett").dof().mobility.free[0].startswith("revolute joint")
    report = four_bar((1.0, 3.0, 2.5, 3.0), None, 0.9).dof()
    assert report.mobility.free in [("revolute joint 'A'",), ("revolute joint 'D'",)]


def test_sentences_say_what_is_counted_and_what_to_do():
    text = str(mechanism("three cranks").dof().mobility)
    assert "planar (all move parallel to a plane with normal (0, 0, 1)): 3·4 of the moving bodies − 12 held" in text
    assert "1 degree of freedom, 1 more than the count: special dimensions" in text
    assert "7 equations are redundant" in text
    assert "with these none is redundant, and the count in space is 1 too; the choice is not unique" in text
    mobility = mechanism("four_bar").dof().mobility
    once = "the translation along its axis of revolute joint 'c' is constrained twice, a cylindrical joint frees it; "
    assert once in str(mobility)
    summary = mobility.summary
    assert summary == (
        "mobility: Grübler–Kutzbach count planar 3·3 − 8 = 1; by rank 1 degree of freedom; 1 driven, 0 undriven; "
        "3 redundant: replace revolute joint 'b' by a spherical joint, "
        "replace revolute joint 'c' by a cylindrical joint"
    )


def test_open_chains_and_large_mechanisms_have_no_explanation():
    assert lw.chain(3).dof().mobility is None
    assert loop("long", bennett_rows(0.5, 0.5, 0.9), beside=60).dof().mobility is None


CURVES = """MODEL cam
SYSTEM (KINEMATIC ANALYSIS, ending time = 1, print interval = 0.1);
BODY base (ground); BODY shaft; BODY tappet (origin = (0, 0.048));{arm}
HINGE crank (body = base, body = shaft, at = (0, 0));
SLIDER slide (body = base, body = {slider}, at = (0, 0.048), axis = (0, 1));{pin}
CURVE disc (body = shaft, x = 0.01 + 0.03*cos(u), y = 0.03*sin(u), range = (0, 2*pi), closed);
CURVE roller (body = tappet, circle = 0.008);
{touch}
{driver}
ENDMODEL"""
POINT = "POINT ON CURVE touch (curve = disc, point = tappet);"
SLIDING = "CURVE ON CURVE touch (curve = disc, curve = roller);"
ROLLING = "CURVE ON CURVE touch (curve = disc, curve = roller, rolling);"


def cam(touch: str, *, wheel: bool = False, driver: str = "DRIVER motor (crank.angle = TIME);") -> lw.Mechanism:
    """A disc cam; the follower on a slide, or as a wheel on a pin of the slide."""
    arm = "BODY arm (origin = (0, 0.048));" if wheel else ""
    pin = "HINGE pin (body = arm, body = tappet, at = (0, 0.048));" if wheel else ""
    words = {"arm": arm, "pin": pin, "slider": "arm" if wheel else "tappet", "touch": touch, "driver": driver}
    return lw.Mechanism(parse_mks(CURVES.format(**words)))


@pytest.mark.parametrize(
    ("touch", "wheel", "moving", "held", "joints", "half", "freedom"),
    [  # Kutzbach: 3 (n − 1) − 2 j1 − j2
        (POINT, False, 2, 5, 2, 1, 1),
        (SLIDING, False, 2, 5, 2, 1, 1),
        (SLIDING, True, 3, 7, 3, 1, 2),
        (ROLLING, True, 3, 8, 4, 0, 1),
    ],
)
def test_contacts_of_curves_are_half_joints_and_rolling_ones_joints(touch, wheel, moving, held, joints, half, freedom):
    mobility = cam(touch, wheel=wheel).dof().mobility
    (part,) = mobility.counts
    assert (part.family, part.about) == ("planar", (0.0, 0.0, 1.0))
    assert (part.moving, part.held, part.joints, part.half_joints) == (moving, held, joints, half)
    assert part.degrees_of_freedom == mobility.by_rank == freedom
    assert not any("touch" in name for name in part.bodies)
    assert ("1 half joint" in str(part)) == bool(half)


def test_the_undriven_degree_of_freedom_of_a_cam_is_a_joint_of_the_user():
    assert cam(SLIDING, driver="").dof().mobility.free[0].endswith(("joint 'crank'", "joint 'slide'"))


def test_a_contact_that_another_statement_holds_is_counted_with_its_bodies():
    for held in (False, True):
        b = lw.Builder("ring")
        bead = b.body("bead", 1.0)
        b.place(bead, (0.1, 0, 0))
        b.joint("planar", b.ground, bead, "plane")
        b.point_on_curve(b.curve("ring", b.ground, circle=0.1), bead, "touch")
        if held:
            b.point_on_plane(b.ground, "touch along", "stop")
        (part,) = b.build().dof().mobility.counts
        assert ("touch along" in part.bodies) is held
        assert part.half_joints == (0 if held else 1)
