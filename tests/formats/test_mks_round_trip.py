"""What is printed reads back as the same description."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from same_description import assert_same

import robots
from linkwright.errors import LinkwrightWarning, ModelError
from linkwright.formats.dh import from_dh
from linkwright.formats.mks.mks_reader import parse_mks, read_mks
from linkwright.formats.mks.mks_text import expression_text
from linkwright.formats.mks.mks_writer import write_mks
from linkwright.formats.mks.parser import parsed_by_grammar
from linkwright.formats.mks.syntax import Fault, Word
from linkwright.formats.mks.values import Scope, Value
from linkwright.formats.model_files import read
from linkwright.model.builder import Builder
from linkwright.model.description import Description
from linkwright.model.expression import FUNCTIONS, TIME, Call, Expression, Lookup, Name, Number
from linkwright.model.generators import random_tree
from linkwright.model.joint_kinds import KINDS
from linkwright.model.quantities import friction, saturated, stop
from linkwright.tape.block import maximum, where
from linkwright.tape.operations import Table

SAMPLE = Path(__file__).resolve().parents[2] / "examples/models/slider_crank.mks"
ROBOTS = ["panda.urdf", "ur5_robot.urdf", "talos_reduced.urdf", "go1.urdf", "allegro_left_hand.urdf", "anymal.urdf"]


def assert_round(d: Description) -> str:
    text = write_mks(d)
    again = parse_mks(text)
    assert_same(d, again)
    assert write_mks(again) == text
    return text


def test_the_sample_comes_back():
    text = assert_round(read_mks(SAMPLE))
    assert "DRIVER d1 (block.x = 8 + 3*sin(TIME));" in text
    assert "REVOLUTE JOINT rev1 (triad = rev1ground, triad = rev1pend1);" in text
    assert "TRANSLATIONAL JOINT trans1 (triad = trans1block," in text


@pytest.mark.parametrize("options", [{}, {"base": "floating"}, {"fixed": "keep", "friction": "apply"}], ids=str)
@pytest.mark.parametrize("name", ROBOTS)
def test_a_robot_comes_back_to_the_last_bit(name, options):
    assert_round(read(robots.find(name), **options))


@pytest.mark.parametrize("seed", range(12))
def test_a_random_tree_of_all_kinds_of_joints_comes_back(seed):
    assert_round(random_tree(15, seed))


def test_a_symbolic_table_comes_back_with_its_expressions():
    rows = [("a1", "alpha", "d1", 0.3, "R", "m1", ("x", 0, 0), ("i", 1, 1)), ("a2", 0.5, 0, "theta", "P", "m2")]
    d = from_dh(rows, "modified", parameters={"alpha": 0.3, "i": 0.8})
    assert len(d.bindings) > 10
    assert_round(d)


@pytest.mark.parametrize("name", ["three_link", "puma560", "panda"])
def test_a_published_arm_comes_back_with_gravity_losses_and_motors(name):
    assert_round(read(SAMPLE.with_name(f"{name}.dh.toml")))


def test_gears_keep_their_names_and_those_without_get_free_ones():
    b = Builder("train")
    for name in ("one", "two", "three", "four"):
        b.joint("revolute", b.ground, b.body(name, 1.0), name)
    b.mimic("two", "one", -2.0, name="Gear1")
    b.mimic("three", "one", name="the driver's ring")
    b.mimic("four", "one", 3.0)
    again = parse_mks(assert_round(b.description()))
    assert [m.name for m in again.mimics] == ["Gear1", "the driver's ring", "gear2"]


def test_everything_the_builder_can_say_comes_back():
    b = Builder("every thing", ground="the ground")
    length = b.parameter("length", 0.7)
    b.parameter("time", 3.0)
    b.gravity((0.0, -9.81, 0.5))
    arm = b.body("arm-1", 2.0 * length, (length / 2, 0.0, 0.0), (1.0, 2.0, 2.5, 0.1, 0.0, -0.1))
    block, ball = b.body("block", 1.0), b.body("ball")
    tip = b.triad(arm, (length, 0.0, 0.1), (0.3, 0.2, 1.0), (1.0, 0.0, length), name="tip of arm")
    b.place(arm, (1.0, length, 0.0), h=(0.0, 1.0, 0.0))
    b.place(block, (0.1, 0.2, 0.3), h=(0.1, 0.5, 0.3), f=(1.0, 1.0, 0.0))
    b.joint("screw", b.ground, arm, "j 1", pitch=length / 10, lower=-1.0, damping=0.3, armature=0.1, actuated=False)
    b.joint("revolute", b.triad(arm, (0, 0, 0), (0, 0, -1.0)), block, "turn", upper=2.0, effort=5.0, velocity=7.0)
    b.joint("free", arm, ball, "loose", actuated=True)
    b.joint("prismatic", b.ground, block, "closing", cut=True)
    b.mimic("turn", "j 1", -2.0 * length, 0.1)
    b.rod(tip, ball, 1.0 + length, "rod 1")
    b.point_on_plane(b.ground, ball, "floor")
    b.point_on_line(tip, block, "slot")
    b.driver("absolute", block, 2.0 * TIME, coordinate="z", name="lift")
    b.driver("joint", "j 1", -(TIME**2.0), name="spin")
    b.driver("distance", tip, length + Name("time"), other=block, name="stretch")
    b.driver("angle", tip, 0.1, other=block, axes=("g", "h"), name="bend")
    b.shape(arm, "capsule", (0.1, length), "#12ab34", name="skin")
    b.shape(tip, "mesh", 0.001, file="meshes/a b.stl")
    b.trace(tip, "#ff0000", name="path")
    b.system(start=1.0, end=2.0, interval=0.25, freedom="pivoting")
    assert_round(b.description())


def loaded() -> Builder:
    """Two bodies on a hinge and a tube, a ball, and a parameter."""
    b = Builder()
    b.joint("revolute", b.ground, b.body("a", 1.0), "j", damping=0.1, friction=0.2, lower=-1, upper=1, effort=7)
    b.joint("cylindrical", "a", b.body("b", 1.0), "tube")
    b.joint("spherical", "b", b.body("c", 1.0), "ball 1")
    b.joint("planar", b.ground, b.body("table", 1.0), "flat")
    b.triad("b", (1, 0, 0), name="tip")
    b.triad("c", (0, 0, 1), name="ground.tip")
    b.parameter("k", 3.0)
    return b


K, V, Q = Name("k"), Name("v"), Name("q")
FORCES = {
    "spring": (lambda b: b.joint_spring("j", K, 0.1, 2.0), "SPRING x (joint = j, stiffness = k, rest = 0.1, damping"),
    "shift": (lambda b: b.joint_spring("tube", K, index=1), "SPRING x (joint = tube.shift, stiffness = k, rest = 0)"),
    "damper": (lambda b: b.joint_damper("ball 1", 2 * K, index=1), 'DAMPER x (joint = "ball 1".v1, damping = 2*k)'),
    "friction": (lambda b: b.joint_friction("j", 0.5), "FRICTION x (joint = j, friction = 0.5, speed = 0.01)"),
    "stop": (lambda b: b.stop("j", stiffness=5.0), "STOP x (joint = j, stiffness = 5, lower = -1, upper = 1, damping"),
    "one stop": (
        lambda b: b.stop("tube", upper=K, index=1),
        "STOP x (joint = tube.shift, stiffness = 10000, upper = k",
    ),
    "actuator": (
        lambda b: b.actuator("j", lambda q, v, t: np.sin(t) - K * v),
        "ACTUATOR x (joint = j, law = sin(TIME) - k*j.rate, effort limit = 7)",
    ),
    "law": (
        lambda b: b.joint_force("tube", -(V**3) + b.rate("tube") * b.coordinate("j") * b.coordinate("flat")),
        "TORQUE x (joint = tube.angle, law = -tube.angle_rate^3 + tube.angle_rate*j.angle*flat.q0)",
    ),
    "choice": (
        lambda b: b.joint_force("j", lambda q: where(q > 0.5, 1.0, maximum(q, 2.0))),
        "law = if(0.5 < j.angle, 1, max(j.angle, 2)))",
    ),
    "coil": (
        lambda b: b.spring("tip", "ground", K, 0.5),
        "SPRING x (triad = tip, triad = ground, stiffness = k, length",
    ),
    "piston": (lambda b: b.damper("tip", "ground", 3.0), "DAMPER x (triad = tip, triad = ground, damping = 3)"),
    "bumper": (
        lambda b: b.bumper("tip", "ground", 0.1, stiffness=K, damping=0.2),
        "STOP x (triad = tip, triad = ground, stiffness = k, lower = 0.1, damping = 0.2)",
    ),
    "attraction": (
        lambda b: b.point_force("tip", "ground", lambda d, dd, t: -1 / d**2 + dd * t),
        "law = -1/distance(tip, ground)^2 + distance_rate(tip, ground)*TIME)",
    ),
    "wrench": (
        lambda b: b.applied_wrench("tip", (1, 2, TIME), (0, 0, K), axes="ground"),
        "FORCE x (triad = tip, force = (1, 2, TIME), torque = (0, 0, k), axes = ground)",
    ),
    "pin": (
        lambda b: b.reaction_friction("j", K, 0.01, length=0.1),
        "FRICTION x (joint = j, coefficient = k, radius = 0.01, length = 0.1, speed = 0.01)",
    ),
    "bushing": (
        lambda b: b.bushing("tip", "ground", K, (1, K, 2), preload=(0, 0, K)),
        "BUSHING x (triad = tip, triad = ground, stiffness = k, torsional stiffness = (1, k, 2), preload = (0, 0, k))",
    ),
    "torque": (
        lambda b: b.applied_wrench("ground.tip", torque=(1, b.component("tip", "vx"), 0), reaction="a", axes="tip"),
        'TORQUE x (triad = "ground.tip", torque = (1, tip.vx, 0), axes = tip, reaction = a)',
    ),
}


@pytest.mark.parametrize("kind", FORCES)
def test_forces_are_printed_in_the_words_that_made_them(kind):
    b = loaded()
    force = FORCES[kind][0](b)
    d = b.description()
    made = replace(d, elements=tuple(replace(e, name="x") if e == force else e for e in d.elements))
    text = write_mks(made)
    assert FORCES[kind][1] in " ".join(text.split())
    assert "lossless" not in text
    assert_same(made, parse_mks(text))


UNSAID = {
    "stiffness": lambda b: b.joint_spring("j", -5.0),
    "parameter": lambda b: b.joint_spring("j", -K),
    "damping": lambda b: b.joint_damper("j", -2.0),
    "damping of a spring": lambda b: b.joint_spring("tube", 3.0, 0.1, -2.0, index=1),
    "friction": lambda b: b.joint_friction("j", -0.5),
    "speed": lambda b: b.joint_force("j", friction(V, 0.5, -0.01)),
    "no speed": lambda b: b.joint_force("j", friction(V, 0.5, K - K)),
    "length": lambda b: b.spring("tip", "ground", 3.0, -1.0),
    "stop": lambda b: b.stop("j", stiffness=-5.0),
    "damping of a stop": lambda b: b.bumper("tip", "ground", 0.1, damping=-1.0),
    "limits": lambda b: b.joint_force("j", stop(Q, V, 1.0, -1.0, 5.0, 0.0)),
    "effort": lambda b: b.joint_force("j", saturated(TIME, -2.0)),
    "coordinate": lambda b: b.joint_spring("j", b.coordinate("tube") ** 2),
    "rest": lambda b: b.joint_spring("j", 1.0, b.distance("tip", "ground")),
}


@pytest.mark.parametrize("constant", UNSAID)
def test_a_constant_that_an_element_cannot_have_is_printed_as_a_law(constant):
    b = loaded()
    UNSAID[constant](b)
    text = assert_round(b.description())
    assert "law =" in text


def test_initial_conditions_and_settings_of_simulation_come_back():
    b = loaded()
    b.initial("j", 0.5, rate=K)
    b.initial("tube", rate=-1.0, index=1)
    b.initial("ball 1", rate=2.0, index=2)
    b.initial(b.component("table", "x"), 1.0)
    b.initial(b.component("table", "wz"), 1.0)
    b.initial(b.distance("tip", "ground"), 2.0)
    b.system(analysis="inverse dynamic", method="semi-implicit-euler", rtol=1e-5, atol=1e-7, dt=1e-3)
    d = b.description()
    assert len(d.initial) == 7
    assert_same(d, parse_mks(write_mks(d)))


def test_names_that_differ_by_case_alone_cannot_be_printed():
    b = Builder()
    b.body("Arm", 1.0)
    b.body("arm", 1.0)
    with pytest.raises(ModelError, match="'Arm' and 'arm' differ by case alone"):
        write_mks(b.description())


def test_a_mesh_outside_the_folder_is_left_out():
    b = Builder()
    b.shape(b.body("a", 1.0), "mesh", 1.0, file="package://robot/part.stl", name="skin")
    with pytest.warns(LinkwrightWarning, match="the shape skin"):
        text = write_mks(b.description())
    assert "SHAPE" not in text


# -- expressions ------------------------------------------------------------------------------------------------
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.one_of(
    NUMBERS.map(Number), st.sampled_from([TIME, Name("p"), Name("pi"), Name("Time2"), Number(math.pi), Number(-0.0)])
)


def larger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    calls = [
        st.tuples(*[inner] * count).map(lambda arguments, name=name: Call(name, arguments))
        for name, (count, _) in FUNCTIONS.items()
    ]
    spline = Table.spline([0.0, 0.5, 2.0], [1.0, -1.0, 3.0])
    return st.one_of(*calls, inner.map(lambda x: Lookup(spline, x)))


@settings(max_examples=300, deadline=None)
@given(st.recursive(LEAVES, larger, max_leaves=12))
def test_an_expression_comes_back_as_the_same_tree(tree):
    scope = Scope()
    for name in ("p", "pi", "Time2"):
        scope.define(Word(0, 0, name), Value(Number(1.0), 1.0))
    text = f"DRIVER d (a.x = {expression_text(tree)});"
    node = parsed_by_grammar(text, 0, len(text)).items[0].value
    try:
        made = scope.value(node, None, time=True).expression
    except Fault:  # a constant part of it is no finite number
        reject()
    assert repr(made) == repr(tree)  # which tells −0 from 0


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ((TIME + 1.0) * 2.0, "(TIME + 1)*2"),
        (TIME + Number(1.0) * 2.0, "TIME + 1*2"),
        (TIME - (TIME - 1.0), "TIME - (TIME - 1)"),
        ((TIME**2.0) ** 3.0, "(TIME^2)^3"),
        (TIME ** (TIME**3.0), "TIME^TIME^3"),
        (-(TIME**2.0), "-TIME^2"),
        ((-TIME) ** 2.0, "(-TIME)^2"),
        (-Number(3.0), "-(3)"),
        (Number(-3.0) * TIME, "-3*TIME"),
        (TIME / (TIME * 2.0), "TIME/(TIME*2)"),
        (Call("log", (TIME,)), "ln(TIME)"),
        (Call("lt", (TIME, Number(1.0))) * 2.0, "(TIME < 1)*2"),
    ],
)
def test_an_expression_has_no_more_parentheses_than_it_needs(tree, text):
    assert expression_text(tree) == text


def test_a_table_s_points_give_the_same_table():
    rng = np.random.default_rng(3)
    for n in (2, 3, 4, 9, 40):
        table = Table.spline(np.cumsum(rng.uniform(0.1, 2.0, n)), rng.normal(size=n))
        assert Table.spline(*zip(*table.points(), strict=True)) == table


def test_a_piecewise_cubic_that_is_no_natural_spline_cannot_be_printed():
    table = Table((0.0, 1.0, 2.0), ((0.0, 1.0, 1.0, 0.0), (2.0, 0.0, 0.0, 1.0)))
    with pytest.raises(ModelError, match="no natural spline"):
        expression_text(Lookup(table, TIME))


def test_the_text_of_an_expression_in_python_has_its_table_in_it():
    assert str(Lookup(Table.spline([0, 1], [2, 3]), TIME)) == "table(TIME, (0.0, 2.0), (1.0, 3.0))"


# -- models -----------------------------------------------------------------------------------------------------
SIZES = st.floats(0.1, 10.0)


@st.composite
def models(draw: st.DrawFn) -> Description:
    """A tree with drawn bodies, parameters in any number that may have some, drivers and ties."""
    b = Builder("m")
    names = [f"p{k}" for k in range(draw(st.integers(0, 3)))]
    parameters = [b.parameter(name, draw(SIZES)) for name in names]

    def number():
        value = draw(SIZES)
        if not parameters or draw(st.booleans()):
            return value
        p = draw(st.sampled_from(parameters))
        return draw(st.sampled_from([p, value * p, p / 2.0 + value, np.sqrt(p), -p - value, p**2.0]))

    bodies = [b.ground]
    for k in range(draw(st.integers(1, 5))):
        body = b.body(f"body {k}", abs(draw(SIZES)), [number() for _ in range(3)], (1.0, 1.0, 1.5))
        if draw(st.booleans()):
            b.place(body, [number() for _ in range(3)], (draw(SIZES), 1.0, 0.0), (0.0, 0.3, draw(SIZES)))
        i = b.triad(draw(st.sampled_from(bodies)), [number() for _ in range(3)], (0.0, draw(SIZES), 1.0))
        name = f"t{k}" if draw(st.booleans()) else None
        j = b.triad(body, [number() for _ in range(3)], (number(), 0.5, 1.0), (0.0, 1.0, -2.0), name=name)
        kind = draw(st.sampled_from(list(KINDS)))
        b.joint(kind, i, j, f"j{k}", pitch=draw(SIZES) if kind == "screw" else 0.0, armature=draw(SIZES))
        if name is not None:
            b.driver("absolute", name, number() * TIME, coordinate="y")
        bodies.append(body)
    return b.description()


@settings(max_examples=60, deadline=None)
@given(models())
def test_a_model_with_parameters_comes_back(d):
    assert_round(d)
