"""Joints by the workshop's words, drawn between bodies by a point and an axis, and drawings in the plane."""

import math

import numpy as np
import pytest

import linkwright as lw
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.formats.mks.mks_writer import write_mks
from linkwright.formats.mks.syntax import JOINT_WORDS, SHORT_JOINTS

FOUR_BAR = """MODEL four_bar
SYSTEM (KINEMATIC ANALYSIS, ending time = 6, print interval = 0.5);
BODY base (ground); BODY crank; BODY coupler; BODY rocker;
HINGE a (body = base, body = crank, at = (0, 0));
HINGE b (body = crank, body = coupler, at = (1, 0));
HINGE c (body = coupler, body = rocker, at = (3.5, 2.5));
HINGE d (body = base, body = rocker, at = (3, 0));
DRIVER motor (a.angle = TIME);
ENDMODEL"""
WEIGHTS = "mass = 2, inertia = (0.3, 0.25, 0.2, 0.01, 0.02, 0.03)"


def model(text: str, **options):
    return parse_mks(f"MODEL m\n{text}\nENDMODEL", **options)


@pytest.mark.parametrize("word", SHORT_JOINTS)
def test_a_word_of_the_workshop_is_a_joint_with_and_without_the_word_joint(word: str) -> None:
    text = "BODY g (ground);\nBODY a (mass = 1);\n{} j (triad = g, triad = a);"
    kind = {"prismatic": "TRANSLATIONAL"}.get(JOINT_WORDS[word], JOINT_WORDS[word].upper())
    long = model(text.format(f"{kind} JOINT")).digest
    assert model(text.format(word.upper())).digest == long
    assert model(text.format(f"{word} joint")).digest == long


def test_a_body_may_be_called_by_such_a_word() -> None:
    d = model("BODY pin (ground); BODY ball (mass = 1); HINGE hinge (triad = pin, triad = ball); HINGE slider "
              "(body = pin, body = ball, at = (0, 0), cut);")  # fmt: skip
    assert list(d.joint_names) == ["hinge", "slider"]


def test_a_four_bar_in_ten_lines_without_a_frame_moves_as_its_loop_closes() -> None:
    assert len(FOUR_BAR.splitlines()) <= 10
    assert "TRIAD" not in FOUR_BAR
    solution = lw.analyse(lw.Mechanism(parse_mks(FOUR_BAR)))
    crank, coupler, rocker = 1.0, math.hypot(2.5, 2.5), math.hypot(0.5, 2.5)
    turned = solution.joint("d")[:, 0] + math.atan2(2.5, 0.5)  # the rocker's direction
    for t, angle in zip(solution.time, turned, strict=True):
        # The distance from the crank's pin to the rocker's is the coupler's length.
        gap = np.array([3 + rocker * math.cos(angle) - crank * math.cos(t), rocker * math.sin(angle) - math.sin(t)])
        assert math.hypot(*gap) == pytest.approx(coupler, abs=1e-12)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "cylindrical", "universal", "spherical", "planar", "fixed"])
def test_a_drawn_joint_is_at_its_neutral_coordinates_where_bodies_are_drawn(kind: str) -> None:
    word = {"prismatic": "translational"}.get(kind, kind).upper()
    d = model(
        f"BODY g (ground);\nBODY a (origin = (1, 2, 3), h = (1, 1, 0), f = (0, 0, 1), {WEIGHTS});\n"
        f"BODY b (origin = (0, -1, 2), h = (0, 2, 1), f = (1, 0, 0), {WEIGHTS});\n"
        f"BALL s (body = g, body = a, at = (0, 0, 1));\n"
        f"{word} JOINT j (body = a, body = b, at = (0.3, 0.4, 0.5), axis = (1, 2, 2));"
    )
    mech = lw.Mechanism(d)
    poses = {name: (d.start.r[k], d.start.p[k]) for k, name in enumerate(d.body_names)}
    (ra, pa), (rb, pb) = poses["a"], poses["b"]
    for k, (r, p) in enumerate(((ra, pa), (rb, pb))):
        frame_r, frame_p = (d.ri[1], d.pi[1]) if k == 0 else (d.rj[1], d.pj[1])
        np.testing.assert_allclose(r @ frame_p + p, (0.3, 0.4, 0.5), atol=1e-15)
        if k == 0 or kind != "universal":
            np.testing.assert_allclose((r @ frame_r)[:, 2], np.array([1, 2, 2]) / 3, atol=1e-15)
    q = mech.assemble(mech.neutral())
    np.testing.assert_allclose(mech.pose(q, "b")[:3, 3] - mech.pose(q, "a")[:3, 3],
                               mech.pose(q, "a")[:3, :3] @ ra.T @ (pb - pa), atol=1e-12)  # fmt: skip


def test_the_builder_draws_joints_with_the_same_meaning() -> None:
    text = (
        "PARAMETER l = 0.7;\nBODY g (ground);\n"
        f"BODY a (origin = (1, 2, 3), h = (1, 1, 0), f = (0, 0, 1), {WEIGHTS});\n"
        f"BODY b ({WEIGHTS});\nHINGE i (body = g, body = a, at = (l, l/2, 1), axis = (1, 2, 2));\n"
        "SLIDER j (body = a, body = b, axis = (0, 1));"
    )
    builder = lw.Builder("m", ground="g")
    length = builder.parameter("l", 0.7)
    weights = {"mass": 2, "inertia": (0.3, 0.25, 0.2, 0.01, 0.02, 0.03)}
    a, b = builder.body("a", **weights), builder.body("b", **weights)
    builder.place(a, (1, 2, 3), h=(1, 1, 0), f=(0, 0, 1))
    builder.joint("revolute", builder.ground, a, "i", at=(length, length / 2, 1), axis=(1, 2, 2), drawn=True)
    builder.joint("prismatic", a, b, "j", axis=(0, 1, 0), drawn=True)
    read, built = model(text), builder.description()
    for name in ("ri", "rj", "pi", "pj", "start_r", "start_p"):
        np.testing.assert_allclose(getattr(read, name), getattr(built, name), atol=1e-15)
    again = lw.Mechanism(read).with_parameters(l=0.9).description
    np.testing.assert_allclose(again.pj, model(text, parameters={"l": 0.9}).pj, atol=1e-15)


def test_a_parameter_in_the_axis_of_a_joint_stays_one() -> None:
    text = (
        "PARAMETER tilt = 20 deg;\nBODY g (ground);\nBODY a (mass = 1);\n"
        "SLIDER s (body = g, body = a, axis = (cos(tilt), sin(tilt)));\nDRIVER d (s.shift = TIME);"
    )
    mech = lw.Mechanism(model(text)).with_parameters(tilt=0.8)
    position = lw.analyse(mech, times=[0.0, 2.0]).position("a")
    np.testing.assert_allclose(position[1] - position[0], [2 * math.cos(0.8), 2 * math.sin(0.8), 0], atol=1e-14)


def test_two_coordinates_are_a_point_of_the_plane() -> None:
    plane = model(
        "BODY g (ground);\nBODY a (origin = (1, 2), f = (1, 1), com = (0.5, 0), mass = 1);\n"
        "BODY b (pqr = [(0, 1), (0, 1, 1), (1, 1)], mass = 1);\nBODY c (center of gravity = (4, 5), mass = 1);\n"
        "TRIAD t (associated body = a, origin = (3, 0));\nHINGE h (triad = g, triad = t);\n"
        "FORCE f (triad = t, force = (1, TIME));\nGRAVITY (0, -9.81);"
    )
    space = model(
        "BODY g (ground);\nBODY a (origin = (1, 2, 0), f = (1, 1, 0), com = (0.5, 0, 0), mass = 1);\n"
        "BODY b (pqr = [(0, 1, 0), (0, 1, 1), (1, 1, 0)], mass = 1);\n"
        "BODY c (center of gravity = (4, 5, 0), mass = 1);\n"
        "TRIAD t (associated body = a, origin = (3, 0, 0));\nHINGE h (triad = g, triad = t);\n"
        "FORCE f (triad = t, force = (1, TIME, 0));\nGRAVITY (0, -9.81, 0);"
    )
    assert plane.digest == space.digest


def test_drawn_joints_have_the_dynamics_of_the_same_mechanism_by_frames() -> None:
    bars = {"crank": ((0, 0), (1, 0)), "coupler": ((1, 0), (3.5, 2.5)), "rocker": ((3, 0), (3.5, 2.5))}
    drawn = FOUR_BAR.replace("KINEMATIC", "INVERSE DYNAMIC")
    frames = drawn
    for name, (p, q) in bars.items():
        middle = f"({(p[0] + q[0]) / 2}, {(p[1] + q[1]) / 2})"
        weight = f"center of gravity = {middle}, mass = 2, inertia = (1, 1, 0.3)"
        drawn = drawn.replace(f"BODY {name};", f"BODY {name} ({weight});")
        along = f"f = ({q[0] - p[0]}, {q[1] - p[1]})"
        frames = frames.replace(f"BODY {name};", f"BODY {name} ({weight}, origin = ({p[0]}, {p[1]}), {along});")
    long = [math.hypot(q[0] - p[0], q[1] - p[1]) for p, q in bars.values()]
    for name, sides in {
        "a": "triad = base, triad = crank",
        "b": f"triad = (body = crank, origin = ({long[0]}, 0)), triad = coupler",
        "c": f"triad = (body = coupler, origin = ({long[1]}, 0)), triad = (body = rocker, origin = ({long[2]}, 0))",
        "d": "triad = (body = base, origin = (3, 0)), triad = rocker",
    }.items():
        line = next(line for line in frames.splitlines() if line.startswith(f"HINGE {name}"))
        frames = frames.replace(line, f"REVOLUTE JOINT {name} ({sides});")
    one, other = (lw.analyse(lw.Mechanism(parse_mks(text))) for text in (drawn, frames))
    np.testing.assert_allclose(one.series["motor.torque"].values, other.series["motor.torque"].values, rtol=1e-9)
    assert np.ptp(one.series["motor.torque"].values) > 1.0


def test_what_was_drawn_is_printed_by_frames_and_reads_the_same() -> None:
    d = parse_mks(FOUR_BAR)
    assert parse_mks(write_mks(d)).digest == d.digest


@pytest.mark.parametrize("name", ["joint", "j", "joint[2]", '"j"'])
def test_hinge_joint_is_read_with_any_name_and_expression(name):
    text = "MODEL m PARAMETER a = 1; BODY g (ground); BODY b;"
    text += " HINGE JOINT {} (body = g, body = b, at = (a, 0)); ENDMODEL"
    (joint,) = parse_mks(text.format(name)).joint_names
    assert joint == name.strip('"')
    assert list(parse_mks(text.format(name).replace(" JOINT", "")).joint_names) == [joint]
