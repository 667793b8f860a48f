"""Model files in the language .mks: what they say is what the description holds."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import FormatError, MksError
from linkwright.formats.mks.mks_reader import parse_mks, read_mks
from linkwright.model.elements import Mimic, PointOnLine, PointOnPlane, Rod
from linkwright.model.expression import TIME, Call, Expression, Lookup, Name, Number
from linkwright.model.parameter_cases import with_parameters
from linkwright.model.requested_analysis import System
from linkwright.tape.operations import Table

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "examples/models/slider_crank.mks"
TWO = "BODY g (ground);\nBODY a (mass = 1);\n"
HINGE = TWO + "REVOLUTE JOINT j (triad = g, triad = a);\n"


def model(text: str, **options):
    return parse_mks(f"MODEL m\n{text}\nENDMODEL", **options)


def law(text: str, before: str = "", target: str = "a.x") -> Expression:
    return model(f"{before}{HINGE}DRIVER d ({target} = {text});").drivers[0].law


# -- the sample -----------------------------------------------------------------------------------------------
def test_the_paper_s_file_is_read_unchanged():
    d = read_mks(SAMPLE)
    assert d.name == "slider_crank"
    assert list(d.body_names) == ["pend1", "pend2", "block"]
    assert d.ground_name == "g1"
    assert [d.kind_of(k).name for k in range(d.nj)] == ["revolute", "spherical", "spherical", "prismatic"]
    assert d.system == System(start=0.0, end=8.0, interval=0.1, lu_tolerance=1e-10, assembly_tolerance=1e-3)
    (driver,) = d.drivers
    assert (driver.name, driver.kind, driver.target) == ("d1", "absolute", "block.x")
    assert driver.law == Number(8.0) + Number(3.0) * Call("sin", (TIME,))
    np.testing.assert_array_equal(d.start.p, [[0, 3, 0], [4, 3, 0], [8, 0, 0]])


def test_the_paper_s_joints_close_as_drawn():
    # Every joint's two triads, with the bodies where they are drawn, fit together to rounding.
    d = read_mks(SAMPLE)
    poses = {-1: (np.eye(3), np.zeros(3)), **{k: (d.start.r[k], d.start.p[k]) for k in range(d.nb)}}
    for k in range(d.nj):
        (ra, pa), (rb, pb) = poses[int(d.parent[k])], poses[int(d.child[k])]
        ri, pi, rj, pj = ra @ d.ri[k], pa + ra @ d.pi[k], rb @ d.rj[k], pb + rb @ d.pj[k]
        assert np.abs(d.kind_of(k).gap(ri.T @ rj, ri.T @ (pj - pi))).max() < 1e-12


def test_a_model_file_is_loaded_as_a_mechanism():
    assert lw.load(SAMPLE).loops == ("sph2",)


def test_the_model_of_the_page_is_read():
    page = (ROOT / "docs/mks.md").read_text(encoding="utf-8")
    d = parse_mks(re.search(r"```\n(MODEL.*?)```", page, re.S)[1])
    assert d.name == "crank_and_slider"
    assert float(d.start.p[1, 0]) == 8.0
    assert d.shapes[0].place == "middle"  # the bar reaches from the bearing to the pin


# -- words ----------------------------------------------------------------------------------------------------
def test_keywords_attributes_and_references_do_not_mind_their_case():
    d = parse_mks("model M body G (GROUND); Body Arm (MASS = 1); revolute JOINT j (Triad = g, TRIAD = ARM); endmodel;")
    assert (d.name, d.ground_name, list(d.body_names)) == ("M", "G", ["Arm"])


def test_comments_of_three_kinds_are_skipped():
    text = 'BODY g (ground); # one ;\n// two ;\nBODY /* three; */ "a # b" (mass = 1);'
    assert list(model(text).body_names) == ["a # b"]


def test_words_of_the_language_may_be_names():
    d = model("BODY ground (ground); BODY body (mass = 1); TRIAD triad (associated body = body, origin = (1,0,0));")
    assert list(d.frames.names) == ["triad"]


def test_names_in_quotes_stand_wherever_names_do():
    d = model(
        'BODY "the frame" (ground); BODY "arm 1" (mass = 1);'
        'REVOLUTE JOINT "j-1" (triad = "the frame", triad = "arm 1"); DRIVER "d 1" ("j-1".angle = TIME);'
    )
    assert (d.ground_name, d.joint_names[0], d.drivers[0].target) == ("the frame", "j-1", "j-1")


# -- expressions ----------------------------------------------------------------------------------------------
t = TIME


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("-TIME^2", -(t ** Number(2.0))),
        ("2^3^TIME", Number(2.0) ** (Number(3.0) ** t)),
        ("2**-TIME", Number(2.0) ** (-t)),
        ("1 - TIME - 2", (Number(1.0) - t) - Number(2.0)),
        ("8/TIME/2", (Number(8.0) / t) / Number(2.0)),
        ("-3*TIME", Number(-3.0) * t),
        ("-(3)*TIME", -Number(3.0) * t),
        ("+TIME", t),
        ("1 + TIME < 2", Call("lt", (Number(1.0) + t, Number(2.0)))),
        ("TIME >= 2", Call("le", (Number(2.0), t))),
        ("max(1, 2, TIME)", Call("max", (Call("max", (Number(1.0), Number(2.0))), t))),
        ("LN(Time)", Call("log", (t,))),
        ("pi*1e-3", Number(math.pi) * Number(1e-3)),
        ("TIME − 1", t - Number(1.0)),
        ("table(2*TIME, (0,0), (1,1), (2,4))", Lookup(Table.spline([0, 1, 2], [0, 1, 4]), Number(2.0) * t)),
    ],
)
def test_an_expression_is_the_tree_that_mathematics_expects(text, tree):
    assert law(text) == tree


def test_thousands_of_points_make_a_table():
    points = ", ".join(f"({k}, {k * k % 17})" for k in range(5000))
    made = law(f"table(TIME, {points})")
    assert float(made.evaluate({"TIME": 4000.0})) == pytest.approx(4000 * 4000 % 17, abs=1e-9)


# -- angles ---------------------------------------------------------------------------------------------------
def test_units_always_work():
    assert law("30 deg + 90° + 1 rad", target="j.angle") == Number(math.radians(30)) + Number(
        math.radians(90)
    ) + Number(1.0)


DEGREES = "SYSTEM (KINEMATIC ANALYSIS, angle unit = degree);\n"


@pytest.mark.parametrize(
    ("text", "target", "value"),
    [
        ("90", "j.angle", math.pi / 2),
        ("90 deg", "j.angle", math.pi / 2),
        ("1 rad + 0", "j.angle", 1.0),
        ("90 + 0*TIME", "j.angle", math.pi / 2),
        ("atan2(1, 0)", "j.angle", math.pi / 2),
        ("90", "angle(g, a)", math.pi / 2),
        ("90", "a.x", 90.0),
        ("2*sin(90 deg)", "a.x", 2.0),
        ("90*sin(90 deg)", "j.angle", math.pi / 2),
    ],
)
def test_an_angle_without_unit_is_in_the_unit_of_the_model(text, target, value):
    assert float(law(text, DEGREES, target).evaluate({"TIME": 0.0})) == pytest.approx(value, abs=1e-15)


def test_a_parameter_with_a_unit_is_an_angle():
    made = law("start", DEGREES + "PARAMETER start = 30 deg;\n", "j.angle")
    assert made == Name("start")


def test_limits_and_offsets_of_what_turns_are_angles():
    d = model(
        DEGREES + "BODY g (ground); BODY a (mass = 1); BODY b (mass = 1);"
        "REVOLUTE JOINT j (triad = g, triad = a, lower = -90, upper = 1 rad);"
        "TRANSLATIONAL JOINT s (triad = g, triad = b, upper = 3);"
        "REVOLUTE JOINT k (triad = g, triad = b, cut); GEAR one (joint = k, joint = j, ratio = 2, offset = 180);"
        "GEAR two (joint = s, joint = j, offset = 5);"
    )
    assert (d.lower[0], d.upper[0], d.upper[1]) == (-math.pi / 2, 1.0, 3.0)
    assert d.mimics == (Mimic(2, 0, 2.0, math.pi, "one"), Mimic(1, 0, 1.0, 5.0, "two"))


# -- parameters -----------------------------------------------------------------------------------------------
def test_only_independent_parameters_remain_and_the_others_are_put_in():
    d = model("PARAMETER l = 2; PARAMETER half = l/2; BODY g (ground); BODY a (mass = 3*half);")
    assert dict(d.parameters) == {"l": 2.0}
    assert d.bindings == {("mass", 0): Number(3.0) * (Name("l") / 2.0)}
    assert d.mass[0] == 3.0
    assert with_parameters(d, {"l": 4.0}).mass[0] == 6.0


def test_a_value_from_outside_makes_a_parameter_independent(tmp_path):
    file = tmp_path / "m.mks"
    file.write_text("MODEL m PARAMETER L = 2; PARAMETER half = L/2; BODY g (ground); BODY a (mass = half); ENDMODEL")
    assert lw.load(file, parameters={"HALF": 7}).parameters == {"L": 2.0, "half": 7.0}
    with pytest.raises(FormatError, match="no parameter 'halb'; did you mean 'half'"):
        lw.load(file, parameters={"halb": 7})
    with pytest.raises(FormatError, match="finite"):
        lw.load(file, parameters={"half": math.nan})


def test_a_length_along_an_axis_does_not_bind_the_axes():
    text = "PARAMETER l = 2; BODY g (ground); BODY a (pqr = [(l/2,0,0), (l/2,0,1), (l/2,l,0)], mass = 1);"
    d = model(text)
    assert set(d.bindings) == {("start_p", 0)}
    np.testing.assert_array_equal(d.start.r[0], [[0, -1, 0], [1, 0, 0], [0, 0, 1]])


def test_axes_that_depend_on_a_parameter_follow_it():
    text = "PARAMETER l = 1; BODY g (ground); BODY a (pqr = [(0,0,0), (0,0,1), (1,l,0)], mass = 1);"
    other = with_parameters(model(text), {"l": 0.0})
    np.testing.assert_allclose(other.start.r[0], np.eye(3), atol=1e-15)


# -- bodies and triads ----------------------------------------------------------------------------------------
def test_the_centre_of_gravity_is_drawn_in_global_axes():
    d = model("BODY g (ground); BODY a (pqr = [(1,0,0), (1,0,1), (1,1,0)], center of gravity = (1,2,3), mass = 1);")
    np.testing.assert_array_equal(d.com[0], [2, 0, 3])


def test_com_is_the_same_in_the_axes_of_the_body():
    d = model("BODY g (ground); BODY a (pqr = [(1,0,0), (1,0,1), (1,1,0)], com = (2,0,3), mass = 1);")
    np.testing.assert_array_equal(d.com[0], [2, 0, 3])


def test_a_body_with_nothing_but_its_centre_of_gravity_is_there():
    d = model("BODY g (ground); BODY a (centre of gravity = (1,2,3));")
    np.testing.assert_array_equal(d.start.p[0], [1, 2, 3])
    np.testing.assert_array_equal(d.com[0], [0, 0, 0])


def test_further_grounds_are_frames_on_the_first():
    d = model(
        "BODY g (ground); BODY wall (ground, pqr = [(1,0,0), (1,0,1), (1,1,0)]); BODY a (mass = 1);"
        "TRIAD hook (associated body = wall, origin = (2, 0, 0)); SPHERICAL JOINT s (triad = hook, triad = a);"
    )
    assert (d.ground_name, d.more_grounds, list(d.frames.names)) == ("g", ("wall",), ["wall", "hook"])
    np.testing.assert_array_equal(d.frames.body, [-1, -1])
    np.testing.assert_array_equal(d.pi[0], [1, 2, 0])


def test_a_first_ground_that_is_moved_is_a_frame_too():
    d = model("BODY wall (ground, origin = (1,0,0)); BODY a (mass = 1); TRIAD t (associated body = wall);")
    assert (d.ground_name, d.more_grounds) == ("ground", ("wall",))
    np.testing.assert_array_equal(d.frames.p, [[1, 0, 0], [1, 0, 0]])


def test_a_first_ground_that_is_drawn_where_ground_is_gives_ground_its_name():
    d = model("BODY wall (ground, pqr = [(0,0,0), (0,0,1), (1,0,0)]); BODY a (mass = 1);")
    assert (d.ground_name, d.more_grounds, len(d.frames.names)) == ("wall", (), 0)


@pytest.mark.parametrize(
    "axes",
    [
        "pqr = [(1,2,3), (2,2,3), (1,9,3)]",
        "origin = (1,2,3), h = (5,0,0), f = (1,1,0)",
        "origin = (1,2,3), axes = [(0,1,0), (0,0,1), (1,0,0)]",
        "origin = (1,2,3), h = (1,0,0)",
    ],
)
def test_axes_are_said_in_four_ways(axes):
    d = model(TWO + f"TRIAD t (associated body = a, {axes});")
    np.testing.assert_array_equal(d.frames.p[0], [1, 2, 3])
    np.testing.assert_array_equal(d.frames.r[0], [[0, 0, 1], [1, 0, 0], [0, 1, 0]])


def test_an_inertia_that_no_body_can_have_passes_if_it_is_meant():
    d = model("BODY g (ground); BODY a (mass = 1, inertia = (1,1,3), unphysical);")
    np.testing.assert_array_equal(d.inertia[0], [1, 1, 3, 0, 0, 0])


# -- joints ---------------------------------------------------------------------------------------------------
DRAWN = "BODY g (ground); BODY a (origin = (0,0,0), mass = 1);\n"


@pytest.mark.parametrize("kind", ["REVOLUTE", "CYLINDRICAL", "PLANAR"])
def test_h_axes_drawn_opposite_are_one_axis(kind):
    d = model(
        DRAWN + f"TRIAD t (associated body = a, h = (0,0,-1), f = (1,0,0)); {kind} JOINT j (triad = g, triad = t);"
    )
    np.testing.assert_array_equal(d.rj[0], np.eye(3))
    np.testing.assert_array_equal(d.frames.r[0], np.diag([1, -1, -1]))


@pytest.mark.parametrize("f", ["(0,1,0)", "(0,-1,0)", "(-1,0,0)", "(1,0.1,0)"])
def test_the_f_axes_of_a_translational_joint_are_turned_to_the_nearest_quarter(f):
    text = f"TRIAD t (associated body = a, h = (0,0,1), f = {f}); TRANSLATIONAL JOINT j (triad = g, triad = t);"
    d = model(DRAWN + text)
    assert d.rj[0, 0, 0] > 0.99


def test_an_exact_joint_keeps_its_axes():
    text = "TRIAD t (associated body = a, h = (0,0,-1), f = (1,0,0)); REVOLUTE JOINT j (triad = g, triad = t, exact);"
    np.testing.assert_array_equal(model(DRAWN + text).rj[0], np.diag([1, -1, -1]))


def test_triads_without_a_name_leave_no_frame():
    text = "REVOLUTE JOINT j (triad = (associated body = g, origin = (1,0,0), h = (1,0,0)), triad = a);"
    d = model(TWO + text)
    assert len(d.frames.names) == 0
    np.testing.assert_array_equal(d.pi[0], [1, 0, 0])


def test_the_numbers_of_a_joint_are_kept_and_its_losses_act():
    d = model(
        TWO + "SCREW JOINT j (triad = g, triad = a, pitch = 0.5, lower = -1, upper = 2, velocity limit = 3, "
        "effort limit = 4, damping = 0.1, friction = 0.2, armature = 0.3, passive);"
    )
    arrays = (d.pitch, d.lower, d.upper, d.velocity_limit, d.effort_limit, d.damping, d.friction, d.armature)
    assert [float(x[0]) for x in arrays] == [0.5, -1, 2, 3, 4, 0.1, 0.2, 0.3]
    assert d.passive == {0}
    assert [e.name for e in d.elements] == ["j damping"]


def test_losses_may_be_noted_only():
    d = model(TWO + "REVOLUTE JOINT j (triad = g, triad = a, damping = 0.1, lossless);")
    assert d.damping[0] == 0.1
    assert d.elements == ()


def test_a_body_held_by_rods_alone_gets_a_free_joint():
    d = model(
        "BODY g (ground); BODY a (mass = 1); BODY b (mass = 1); REVOLUTE JOINT j (triad = a, triad = b);"
        "ROD r (triad = g, triad = a, length = 1);"
    )
    assert list(d.joint_names) == ["j", "a_free"]
    assert d.kind_of(1).name == "free"
    assert d.passive == {1}
    assert lw.Mechanism(d).nv == 7


def test_ties_keep_the_order_of_the_file():
    d = model(
        HINGE + "POINT ON PLANE p (plane = g, point = a); ROD r (triad = g, triad = a, length = 1 + 1);"
        "POINT ON LINE l (line = g, point = a);"
    )
    assert d.point_constraints == (
        PointOnPlane("p", "g", "a"),
        Rod("r", "g", "a", Number(1.0) + 1.0),
        PointOnLine("l", "g", "a"),
    )


@pytest.mark.parametrize(
    ("kind", "part", "index"),
    [
        ("REVOLUTE", "angle", 0),
        ("TRANSLATIONAL", "shift", 0),
        ("TRANSLATIONAL", "q", 0),
        ("CYLINDRICAL", "shift", 1),
        ("UNIVERSAL", "angle2", 1),
        ("PLANAR", "y", 1),
        ("PLANAR", "q2", 2),
    ],
)
def test_a_joint_s_coordinates_are_driven_by_name(kind, part, index):
    d = model(TWO + f"{kind} JOINT j (triad = g, triad = a); DRIVER d (j.{part} = TIME);")
    assert (d.drivers[0].kind, d.drivers[0].target, d.drivers[0].index) == ("joint", "j", index)


def test_distances_and_angles_are_driven_between_triads():
    d = model(HINGE + "DRIVER d (distance(g, a) = 1 + TIME); DRIVER e (angle(g.h, a) = 0.1);")
    assert [(x.kind, x.target, x.other, x.axes) for x in d.drivers] == [
        ("distance", "g", "a", ("f", "f")),
        ("angle", "g", "a", ("h", "f")),
    ]


# -- drawing --------------------------------------------------------------------------------------------------
def test_shapes_have_sizes_and_colours_and_bodies_lend_theirs():
    d = model(
        "BODY g (ground); BODY a (mass = 1, colour = teal);"
        "SHAPE s (associated body = a, sphere = 2); SHAPE t (triad = a, box = (1,2,3), colour = (1, 0.5, 0));"
        'SHAPE u (triad = g, mesh = "meshes/part.stl", scale = 0.001, colour = "#ABCDEF"); TRACE w (triad = a);'
    )
    assert [(s.kind, s.color, s.file) for s in d.shapes] == [
        ("sphere", "#008080", ""),
        ("box", "#ff8000", ""),
        ("mesh", "#abcdef", "meshes/part.stl"),
    ]
    assert d.traces[0].color == "#008080"


def test_the_folder_of_the_file_is_kept_for_its_meshes(tmp_path):
    file = tmp_path / "m.mks"
    file.write_text(f"MODEL m {TWO} ENDMODEL")
    assert read_mks(file).folder == str(tmp_path)


# -- size -----------------------------------------------------------------------------------------------------
def test_a_model_of_thousands_of_joints_is_read():
    n = 1000
    lines = ["BODY b0 (ground);"]
    for k in range(1, n + 1):
        lines.append(f"BODY b{k} (pqr = [({k},0,0),({k},0,1),({k + 1},0,0)], mass = 1);")
        lines.append(f"TRIAD t{k} (associated body = b{k - 1}, origin = (0.5,0,0));")
        lines.append(f"REVOLUTE JOINT j{k} (triad = t{k}, triad = b{k});")
    assert model("\n".join(lines)).nj == n


def test_what_follows_a_broken_statement_is_not_blamed_for_it():
    with pytest.raises(MksError) as caught:
        model("BODY g (ground); BODY a (mass = ); REVOLUTE JOINT j (triad = g, triad = a); DRIVER d (j.angle = TIME);")
    assert len(caught.value.problems) == 1
