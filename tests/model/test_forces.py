"""Forces of a Builder: their laws, laws as Python functions, and what they may name."""

import math

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import ModelError, NameNotFound
from linkwright.model.builder import Builder
from linkwright.model.expression import TIME, Name, Number
from linkwright.model.merge import lock
from linkwright.model.quantities import Quantity, match, quantities, recognised


@pytest.fixture
def b() -> Builder:
    b = Builder()
    b.joint("revolute", "ground", b.body("one", 1.0), "hinge", effort=7.0, lower=-0.5, upper=0.5)
    b.joint("cylindrical", "one", b.body("two", 1.0), "tube")
    b.joint("spherical", "two", b.body("three", 1.0), "ball")
    b.triad("two", (1, 0, 0), name="tip")
    return b


@pytest.mark.parametrize(
    ("q", "v", "force"),
    [
        (0.0, 3.0, 0.0),  # between the limits
        (0.7, 0.0, -20.0),  # 0.2 beyond the upper one
        (0.7, 2.0, -24.0),  # going deeper
        (0.7, -20.0, 0.0),  # leaving so fast that it would pull
        (-0.6, 0.0, 10.0),
        (-0.6, -2.0, 12.0),
        (-0.6, 20.0, 0.0),
    ],
)
def test_a_stop_pushes_back_beyond_its_limits_and_never_pulls(b, q, v, force):
    law = b.stop("hinge", stiffness=100.0, damping=0.1).law
    assert law.evaluate({"q": q, "v": v}) == pytest.approx(force)


def test_a_stop_may_have_one_end(b):
    law = b.stop("tube", lower=0.0, stiffness=10.0, index=1).law
    assert [float(law.evaluate({"q": q, "v": 0.0})) for q in (-1.0, 0.0, 5.0)] == [10.0, 0.0, 0.0]
    law = b.bumper("tip", "ground", upper=2.0, stiffness=10.0).law
    assert [float(law.evaluate({"d": d, "dd": 0.0})) for d in (1.0, 3.0)] == [0.0, -10.0]


def test_friction_is_smooth_and_full_beyond_a_few_speeds(b):
    law = b.joint_friction("hinge", 2.0, 0.1).law
    assert law.evaluate({"v": 0.0}) == 0.0
    assert law.evaluate({"v": 0.1}) == pytest.approx(-2.0 * math.tanh(1.0))
    assert law.evaluate({"v": 1.0}) == pytest.approx(-2.0, abs=1e-8)
    assert law.evaluate({"v": -1.0}) == pytest.approx(2.0, abs=1e-8)


def test_an_actuator_keeps_to_its_limit_or_the_joints(b):
    own = b.actuator("hinge", lambda q: -100.0 * q).law
    assert [float(own.evaluate({"q": q})) for q in (0.01, 1.0, -1.0)] == [-1.0, -7.0, 7.0]
    given = b.actuator("hinge", -100.0 * Name("q"), 3.0).law
    assert float(given.evaluate({"q": 1.0})) == -3.0
    free = b.actuator("tube", -100.0 * Name("q")).law
    assert float(free.evaluate({"q": 1.0})) == -100.0


def test_a_function_becomes_the_expression_that_it_computes(b):
    k = b.parameter("k", 2.0)
    law = b.joint_force("hinge", lambda q, v, t: -k * np.sin(q) + lw.where(v > 1.0, t, np.arctan2(q, 2.0))).law
    assert law.names() == {"q", "v", "k", "TIME"}
    for q, v, t in ((0.3, 0.5, 7.0), (0.3, 1.5, 7.0)):
        wanted = -2.0 * math.sin(q) + (t if v > 1.0 else math.atan2(q, 2.0))
        assert law.evaluate({"q": q, "v": v, "TIME": t, "k": 2.0}) == pytest.approx(wanted)
    assert b.joint_force("hinge", lambda q: 3).law == Number(3.0)
    assert b.joint_force("hinge", lambda q, *, scale=2.0: scale * q).law == 2.0 * Name("q")
    assert b.point_force("tip", "ground", lambda d, dd: -d * np.abs(dd)).law == -Name("d") * abs(Name("dd"))
    assert b.applied_wrench("tip", force=lambda t: (t, 0, np.sqrt(t))).laws[0] == TIME


def test_a_function_gets_what_its_parameters_name_in_any_order(b):
    q, v = Name("q"), Name("v")
    assert b.joint_force("hinge", lambda t: 10 * np.sin(t)).law == 10 * np.sin(TIME)
    assert b.actuator("hinge", lambda t: t, 3.0).law.names() == {"TIME"}
    assert b.joint_force("hinge", lambda v, q: q - 2 * v).law == q - 2 * v
    assert b.joint_force("hinge", lambda TIME, /, *, v: v * TIME).law == v * TIME
    assert b.joint_force("hinge", lambda time, q=2.0, **rest: q * time).law == 2.0 * TIME
    assert b.joint_force("hinge", lambda: 4.0).law == Number(4.0)
    assert b.point_force("tip", "ground", lambda dd: -dd).law == -Name("dd")


def test_a_driver_is_a_function_of_time_or_its_expression(b):
    assert b.driver("joint", "hinge", lambda t: 2 * np.sin(t)).law == 2 * np.sin(TIME)
    assert b.driver("distance", "tip", lambda time: 1 + time, other="ground").law == 1 + TIME
    with pytest.raises(ModelError, match=r"driver 'motor' has the parameter 'q'; .* names: t, time, TIME"):
        b.driver("joint", "tube", lambda q: q, name="motor")


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda q: 1.0 if q > 0 else 2.0, r"lw\.where.*lw\.simulate\(tau"),
        (lambda q: max(q, 0.0), r"lw\.maximum"),
        (lambda q: math.sin(q), r"np\.sin"),
        (lambda q, v, t, more: q, "parameter 'more'; .* names: q, v, t, time, TIME"),
        (lambda d: d, "parameter 'd'"),
        (lambda *args: args[0], r"parameter '\*args'"),
        (np.sin, "names: q, v, t"),
        (lambda q: "much", "law that is str"),
        (lambda q: q / 0.0 if q is None else [q, q], "law that is list"),
    ],
)
def test_a_function_that_cannot_be_a_law_is_told_why(b, function, told):
    with pytest.raises(ModelError, match=told):
        b.joint_force("hinge", function)
    assert not b.description().elements


def test_laws_name_coordinates_places_and_distances(b):
    law = b.joint_force("tube", b.coordinate("hinge") * b.rate("ball", 2) + b.distance("tip", "ground")).law
    law = law + b.joint_force("hinge", b.component("tip", "wz")).law
    assert [str(x) for x in quantities(law)] == ["hinge.q0", "ball.v2", "distance('tip', 'ground')", "tip.wz"]


def test_a_law_s_own_coordinate_is_q_however_it_is_named(b):
    assert b.joint_force("hinge", b.coordinate("hinge") * b.rate("hinge")).law == Name("q") * Name("v")
    assert b.joint_force("tube", b.coordinate("tube", 1), index=0).law == Quantity("joint", ("tube",), 1)
    assert b.point_force("tip", "ground", b.distance("ground", "tip")).law == Name("d")


@pytest.mark.parametrize(
    ("misuse", "told"),
    [
        (lambda b: b.coordinate("ball"), "no plain coordinates"),
        (lambda b: b.coordinate("hinge", 1), "hinge.q1 is not there"),
        (lambda b: b.component("tip", "w"), "no component named 'w'"),
        (lambda b: b.distance("tip", "two"), "both on 'two'"),
        (lambda b: b.joint_force("hinge", Quantity("joint", ("hing",))), "no joint named 'hing'"),
        (lambda b: b.driver("joint", "hinge", b.coordinate("tube")), "parameter or variable of a law"),
        (lambda b: b.joint_friction("hinge", 1.0, 0.0), "friction must be a number greater than zero, not 0"),
        (lambda b: b.stop("tube", index=1), "the stop of 'tube' has no limit"),
        (lambda b: b.stop("hinge", 1.0, -1.0), "lower limit above"),
        (lambda b: b.applied_wrench("tip", (1, 0, 0), reaction="two"), "both on 'two'"),
        (lambda b: b.initial("hinge"), "neither a value nor a rate"),
        (lambda b: [b.initial("hinge", 1.0), b.initial("hinge", 2.0)], "has an initial value already"),
        (lambda b: b.initial(b.component("ground", "x"), 1.0), "is on ground"),
    ],
)
def test_misuse_of_forces_is_told_in_words(b, misuse, told):
    with pytest.raises((ModelError, NameNotFound), match=told):
        misuse(b)


def test_a_locked_joint_leaves_its_value_in_the_laws_of_others(b):
    b.joint_force("hinge", b.coordinate("tube") + 3.0 * b.rate("tube"), name="f")
    b.joint_force("tube", Name("q"), name="gone")
    b.initial("tube", 0.5)
    d = lock(b.description(), {"tube": [0.25, 0.0]})
    (force,) = d.elements
    assert float(force.law.evaluate({"q": 0.0, "v": 0.0})) == 0.25
    assert d.initial == ()


def test_a_pattern_is_found_only_where_its_slots_hold_constants():
    x, v, k = Name("q"), Name("v"), Name("k")
    assert recognised(-(k * (x - 1.0)), x, v, {"k"}) == ("spring", {"stiffness": k, "rest": Number(1.0)})
    assert recognised(-(TIME * (x - 1.0)), x, v, {"k"}) is None
    assert match(x + v, x + x, ()) is None
