"""What is said of a mechanism that cannot be assembled, or cannot go on: the driver, axis, point or dyad to blame."""

import numpy as np
import pytest
from jansen_leg import leg
from linkages import slider_crank

import linkwright as lw
from linkwright.errors import AssemblyError
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.model.expression import TIME

MODEL = """MODEL four
PARAMETER L = {size};
BODY g (ground);
BODY a (pqr = [(0,0,0), (0,0,1), (0,1,0)]);
BODY b (pqr = [(0,L,0), (0,L,1), (2*L,2*L,0)]);
BODY c (pqr = [(2*L,0,0), (2*L,0,1), (2*L,2*L,0)]);
TRIAD foot (associated body = g, origin = (2*L,0,0));
TRIAD ta (associated body = a, origin = (L,0,0));
TRIAD tb (associated body = b, origin = (sqrt(5)*L,0,{z}*L), {axis});
TRIAD tc (associated body = c, origin = (2*L,0,0));
REVOLUTE JOINT jA0 (triad = g, triad = a);
REVOLUTE JOINT jA (triad = ta, triad = b);
REVOLUTE JOINT jB0 (triad = foot, triad = c);
REVOLUTE JOINT jB (triad = tb, triad = tc);
DRIVER d (jA0.angle = 90 deg + 0.5*TIME);
{more}
ENDMODEL"""
UPRIGHT = "h = (0,0,1), f = (1,0,0)"


def four_bar(more: str = "", *, size: float = 1.0, z: float = 0.0, axis: str = UPRIGHT) -> lw.Mechanism:
    return lw.Mechanism(parse_mks(MODEL.format(more=more, size=size, z=z, axis=axis)))


def refusal(mech: lw.Mechanism) -> AssemblyError:
    with pytest.raises(AssemblyError) as told:
        lw.analyse(mech, times=[0.0, 0.1])
    return told.value


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("law", ["jB0.angle = 100 deg", "jA0.angle = 95 deg"])
def test_two_drivers_on_one_freedom_are_named(law: str, size: float) -> None:
    error = refusal(four_bar(f"DRIVER d2 ({law});", size=size))
    assert "the drivers 'd', 'd2' drive the same degree of freedom and contradict each other" in str(error)
    assert error.element in ("d", "d2")
    assert "length" not in str(error)


def test_a_driver_given_twice_is_named_first_among_what_is_redundant() -> None:
    mech = four_bar("DRIVER d2 (jA0.angle = 90 deg + 0.5*TIME);")
    assert mech.dof().redundant[0].startswith("driver 'd2'")
    sol = lw.analyse(mech, times=[0.0, 0.1])
    assert sol.status.notes[0] == "drivers 'd2' and 'd' drive the same degree of freedom; remove one of them"


def test_a_driver_that_is_redundant_for_a_moment_is_not_called_so() -> None:
    # A slider that drives its crank out of the dead centre: no other driver repeats it, and nothing holds it.
    mech = slider_crank(1.0, 2.0, None, 0.0)
    with lw.Builder("dead centre") as b:
        crank, rod, block = b.body("crank"), b.body("rod"), b.body("block")
        b.place(rod, (1, 0, 0))
        b.place(block, (3, 0, 0))
        rail = {"h": (1, 0, 0), "f": (0, 1, 0)}
        b.joint("revolute", b.ground, crank, "A")
        b.joint("revolute", b.triad(crank, (1, 0, 0)), rod, "B")
        b.joint("revolute", b.triad(rod, (2, 0, 0)), block, "C")
        slide = b.joint("prismatic", b.triad(b.ground, **rail), b.triad(block, **rail), "slide")
        b.driver("joint", slide, 3.0 - TIME, name="push")
    mech = b.build()
    sol = lw.analyse(mech, times=[0.0, 0.1])
    assert sol.status.reason == "dead centre"
    assert not any("hold already" in note or "same degree" in note for note in sol.status.notes)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("tilt", [6.0, 90.0])
def test_an_axis_out_of_parallel_is_named_with_its_angle(tilt: float, size: float) -> None:
    axis = f"h = (0, sin({tilt} deg), cos({tilt} deg)), f = (1,0,0)"
    error = refusal(four_bar(size=size, axis=axis))
    assert error.element == "jB"
    assert f"frame 'tb' on body 'b' and frame 'tc' on body 'c' are {tilt:.3g}° out of parallel" in str(error)
    assert "the axis of frame 'tb' on body 'b' is not parallel to the other joints of that body" in str(error)
    assert "length" not in str(error)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_a_pivot_out_of_plane_is_named_with_its_offset(size: float) -> None:
    error = refusal(four_bar(size=size, z=0.01))
    assert error.element == "jB"
    assert f"are {0.01 * size:.3g} m apart along the joint axis, out of plane (frame 'tb' on body 'b'" in str(error)
    # The whole offset, at whichever joint is let go; not a share of it.
    np.testing.assert_allclose(list(error.misses.values()), 0.01 * size, rtol=1e-3)
    assert "length" not in str(error)


#: The frames of a four-bar's joints, by the letter of their body: crank a, coupler b, rocker c.
FRAMES = {
    "g1": (0, 0),
    "a1": (0, 0),
    "a2": (1, 0),
    "b1": (0, 0),
    "b2": (5**0.5, 0),
    "c2": (2, 0),
    "c1": (0, 0),
    "g2": (2, 0),
}
PAIRS = {"jA0": ("g1", "a1"), "jA": ("a2", "b1"), "jB": ("b2", "c2"), "jB0": ("g2", "c1")}


def faulty(fault: str, tilt: float, z: float, *, poses: bool, cut: str, size: float = 1.0) -> lw.Mechanism:
    """A four-bar one of whose frames is out of parallel, or out of plane."""
    with lw.Builder("faulty") as b:
        for body, at in (("a", (0, 0, 0)), ("b", (0, size, 0)), ("c", (2 * size, 0, 0))):
            b.body(body)
            if poses:
                b.place(body, at, f=(0.9, 1.0, 0) if body == "b" else (0.1, 1.0, 0))
        ends = {}
        for name, (x, y) in FRAMES.items():
            off = name == fault
            h = (0, np.sin(np.radians(tilt)), np.cos(np.radians(tilt))) if off else (0, 0, 1)
            body = b.ground if name[0] == "g" else name[0]
            ends[name] = b.triad(body, (x * size, y * size, z * size * off), h=h, f=(1, 0, 0), name=name)
        for joint, (one, two) in PAIRS.items():
            b.joint("revolute", ends[one], ends[two], joint, cut=joint == cut)
        b.driver("joint", "jA0", np.pi / 2 + 0.5 * TIME, name="d")
    return b.build()


@pytest.mark.parametrize("cut", ["jA", "jB"])
@pytest.mark.parametrize("poses", [True, False])
@pytest.mark.parametrize(("tilt", "z"), [(6.0, 0.0), (0.0, 0.01)])
@pytest.mark.parametrize("fault", FRAMES)
def test_the_body_with_an_odd_frame_is_named_whichever_joint_is_drawn_open(
    fault: str, tilt: float, z: float, poses: bool, cut: str
) -> None:
    error = refusal(faulty(fault, tilt, z, poses=poses, cut=cut))
    amount = (
        "6° out of parallel (the axis of frame" if tilt else "0.01 m apart along the joint axis, out of plane (frame"
    )
    # Of two joints on a body either may be the odd one.
    assert any(f"{amount} '{fault[0]}{k}' on " in str(error) for k in (1, 2)), str(error)
    assert "length" not in str(error)


def test_a_gap_that_no_position_of_the_driver_closes_is_reported_so() -> None:
    """A crank of 1 turns at 3 from the foot of a dyad of 1.25 in all: where they are in line 0.75 are missing."""
    with lw.Builder("short") as b:
        for body, at in (("a", (0, 0, 0)), ("b", (0.6, 0.8, 0)), ("c", (3, 0, 0))):
            b.place(b.body(body), at)
        b.joint("revolute", b.ground, "a", "jA0")
        b.joint("revolute", b.triad("a", (1, 0, 0)), "b", "jA")
        b.joint("revolute", b.triad("b", (1, 0, 0)), b.triad("c", (0.25, 0, 0)), "jB")
        b.joint("revolute", b.triad(b.ground, (3, 0, 0)), "c", "jB0")
        b.driver("joint", "jA0", 0.9 + TIME, name="d")
    error = refusal(b.build())
    assert "when the rest is closed, wherever drivers move it: " in str(error)
    assert "have a gap of 0.75 m across the joint axis" in str(error)


def test_a_driver_out_of_reach_at_the_start_says_what_can_be_reached() -> None:
    error = refusal(four_bar("DRIVER d2 (tc.x = 5);").lock({}))
    assert "'d2'" in str(error)
    mech = slider_crank(1.0, 2.0, None, 0.5)
    error = refusal(_with_driver(mech, 7.0))
    assert "asks for 7, which is out of reach; the nearest is 3" in str(error)
    assert "another assembly mode" in str(error)


def _with_driver(mech: lw.Mechanism, value: float) -> lw.Mechanism:
    from dataclasses import replace

    from linkwright.model.elements import Driver
    from linkwright.model.expression import Number

    d = mech.description
    joint = next(name for k, name in enumerate(d.joint_names) if d.kind_of(k).name == "prismatic")
    return lw.Mechanism(replace(d, drivers=(Driver("push", "joint", joint, Number(value)),)))


@pytest.mark.parametrize("scale", [1e-3, 1.0])
@pytest.mark.parametrize("sides", [(1, 1, -1, 1, 1), (-1, 1, 1, -1, 1), (1, -1, -1, 1, 1)])
def test_a_jansen_leg_on_another_branch_names_the_dyad_that_is_stretched(sides: tuple[int, ...], scale: float) -> None:
    sol = lw.analyse(leg(0.0, sides, TIME, scale), times=np.linspace(0.0, 6.2, 63))
    status = sol.status
    assert status.reason == "out of reach"
    assert status.element in ("motor", "jF")
    assert "'lower', 'f' are stretched; a little later joint 'jF' has" in status.message
    assert "jE1" not in status.message
    assert "another assembly mode" in status.advice
    assert 0.0 < status.residual < 0.01 * scale


JANSEN = """MODEL leg
BODY g (ground);
BODY crank (origin = (0,0,0), f = (1,0,0));
BODY upper (origin = (-38,-7.8,0), f = (0,1,0));
BODY lower (origin = (-38,-7.8,0), f = (-0.1,-1,0));
BODY link_j (origin = (15,0,0), f = (-50,35,0));
BODY link_k (origin = (15,0,0), f = (-46,-42,0));
BODY link_f (origin = (-78,-8,0), f = (0,-1,0));
BODY foot (origin = (-40,-47,0), f = (-1,0,0));
TRIAD pivot (associated body = g, origin = (-38,-7.8,0));
TRIAD pin (associated body = crank, origin = (15,0,0));
REVOLUTE JOINT jO (triad = g, triad = crank);
REVOLUTE JOINT jP (triad = pivot, triad = upper);
REVOLUTE JOINT jQ (triad = pivot, triad = lower);
REVOLUTE JOINT jJ (triad = pin, triad = link_j);
REVOLUTE JOINT jK (triad = pin, triad = link_k);
REVOLUTE JOINT jT (triad = (associated body = link_j, origin = (50,0,0)),
                   triad = (associated body = upper, origin = (41.5,0,0)));
REVOLUTE JOINT jC (triad = (associated body = link_k, origin = ({k},0,0)),
                   triad = (associated body = lower, origin = (39.3,0,0)));
REVOLUTE JOINT jF (triad = (associated body = upper, origin = (2.609,40.015,0)), triad = link_f);
REVOLUTE JOINT jL (triad = (associated body = lower, origin = (39.3,0,0)), triad = foot);
REVOLUTE JOINT jE (triad = (associated body = link_f, origin = (39.4,0,0)),
                   triad = (associated body = foot, origin = (36.7,0,0)));
DRIVER motor (jO.angle = TIME);
ENDMODEL"""


def test_a_mode_out_of_reach_is_not_blamed_on_an_axis_and_the_mode_that_exists_is_mentioned() -> None:
    """With a coupler of 20 the dyad of the drawing is 2.7 too short; with the elbow up it closes (two circles)."""
    assert lw.analyse(lw.Mechanism(parse_mks(JANSEN.format(k=61.9))), times=[0.0]).status
    error = refusal(lw.Mechanism(parse_mks(JANSEN.format(k=20))))
    assert "wrong way round" not in str(error)
    assert "another assembly mode meant? It exists" in str(error)
    assert all(gap > 1e-3 for gap in error.misses.values())  # a gap of rounding is none


@pytest.mark.parametrize("size", [1e-6, 1.0])
def test_a_driver_is_not_blamed_where_the_mechanism_is_rigid_without_it(size: float) -> None:
    """Three parallel cranks on a bar whose middle pin is off by 0.4 %: the bar cannot move."""
    with lw.Builder("three cranks") as b:
        bar = b.body("bar")
        b.place(bar, (0.25 * size, 0.25 * 3**0.5 * size, 0))
        for k in range(3):
            crank = b.body(f"crank{k}")
            b.place(crank, (k * size, 0, 0), f=(1, 3**0.5, 0))
            hinge = b.joint("revolute", b.triad(b.ground, (k * size, 0, 0)), crank, f"a{k}")
            pin = (1.004 * size if k == 1 else k * size, 0, 0)
            b.joint("revolute", b.triad(crank, (0.5 * size, 0, 0)), b.triad(bar, pin), f"b{k}")
            if not k:
                b.driver("joint", hinge, np.pi / 3 + TIME, name="motor")
    error = refusal(b.build())
    assert "without its drivers it is a rigid structure" in str(error)
    assert "out of reach" not in str(error)
    assert error.element == "b1"
    assert error.misses["joint 'b1'"] == pytest.approx(0.004 * size * np.cos(np.pi / 3), rel=0.02)
