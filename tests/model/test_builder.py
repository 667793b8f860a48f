"""The Builder: what it makes, and what it says when misused."""

import doctest

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import ModelError, NameNotFound
from linkwright.model import builder, builder_forces
from linkwright.model import builder_parts as builder_kinematics
from linkwright.model.builder import Builder
from linkwright.model.elements import AppliedWrench, Driver, JointForce, Mimic, PointForce, joint_losses
from linkwright.model.expression import TIME, Name
from linkwright.model.joint_kinds import KIND_LIST, KINDS
from linkwright.model.parameter_cases import with_parameters
from linkwright.model.topology import reverse, span


@pytest.fixture
def b():
    """Two bodies on revolute joints."""
    made = Builder("pair")
    made.body("one", 1.0, (0, 0, 0.1), (0.1, 0.1, 0.1))
    made.body("two", 2.0, (0, 0, 0.2), (0.2, 0.2, 0.2))
    made.joint("revolute", "ground", "one", "first")
    made.joint("revolute", made.triad("one", (0, 0, 1)), "two", "second")
    return made


def test_bodies_and_joints_stand_in_the_order_in_which_they_are_given(b):
    d = b.description()
    assert (d.name, list(d.body_names), list(d.joint_names)) == ("pair", ["one", "two"], ["first", "second"])
    assert d.parent.tolist() == [-1, 0]
    assert d.child.tolist() == [0, 1]
    assert d.pi.tolist() == [[0, 0, 0], [0, 0, 1]]
    assert d.mass.tolist() == [1.0, 2.0]


def test_a_finished_block_is_checked():
    with pytest.raises(ModelError, match="negative mass"), Builder() as b:
        b.body("one", -1.0)


def test_a_failed_block_keeps_its_own_error():
    with pytest.raises(ZeroDivisionError), Builder() as b:
        b.body("one", -1.0 / 0)


def test_a_mechanism_without_bodies_is_told():
    with pytest.raises(ModelError, match="'empty' has no bodies"):
        Builder("empty").description()


@pytest.mark.parametrize(
    "inertia", [(1, 2, 2.5), (1, 2, 2.5, 0, 0, 0), np.diag([1, 2, 2.5]), [[1, 0, 0], [0, 2, 0], [0, 0, 2.5]]]
)
def test_an_inertia_is_three_or_six_numbers_or_a_matrix(inertia):
    b = Builder()
    b.body("one", 1.0, inertia=inertia)
    b.joint("free", b.ground, "one")
    assert b.description().inertia.tolist() == [[1, 2, 2.5, 0, 0, 0]]


def test_products_of_inertia_are_the_entries_of_the_matrix():
    b = Builder()
    b.body("one", 1.0, inertia=[[1, 0.1, 0.2], [0.1, 1, 0.3], [0.2, 0.3, 1]])
    b.joint("free", b.ground, "one")
    assert b.description().inertia.tolist() == [[1, 1, 1, 0.1, 0.2, 0.3]]


def test_a_triad_has_z_along_h_and_x_in_the_plane_of_h_and_f(b):
    t = b.triad("one", (1, 2, 3), h=(0, 2, 0), f=(0, 5, 3), name="t")
    np.testing.assert_array_equal(t.rotation[:, 2], [0, 1, 0])
    np.testing.assert_array_equal(t.rotation[:, 0], [0, 0, 1])
    assert np.linalg.det(t.rotation) == 1.0


@pytest.mark.parametrize(("h", "f"), [((0, 0, 1), (0, 0, -2)), ((0, 0, 0), (1, 0, 0)), ((0, 0, 1), (0, 0, 0))])
def test_a_triad_with_parallel_or_zero_directions_is_named(b, h, f):
    with pytest.raises(ModelError, match="h and f of frame 't' are parallel or zero") as caught:
        b.triad("one", h=h, f=f, name="t")
    assert caught.value.element == "t"


def test_named_triads_become_frames(b):
    b.triad("two", (0, 0, 3), name="tip")
    b.frame("ground", np.eye(3), (1, 0, 0), name="wall")
    b.triad("one", (9, 9, 9))
    d = b.description()
    assert list(d.frames.names) == ["tip", "wall"]
    assert d.frames.body.tolist() == [1, -1]
    assert d.frames.p.tolist() == [[0, 0, 3], [1, 0, 0]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_joint_at_a_point_holds_its_bodies_parallel_at_neutral(kind):
    b = Builder()
    b.body("one", 1.0)
    b.joint(kind, b.ground, "one", at=(1, 2, 3), axis=(0, 3, 4), pitch=0.1 if kind == "screw" else 0.0)
    d = b.description()
    made = KIND_LIST[d.kind[0]]
    turn = made.rotation(made.terms(made.neutral(), 0.1)).matrix()
    np.testing.assert_allclose(d.ri[0] @ turn @ d.rj[0].T, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(d.ri[0][:, 2], [0, 0.6, 0.8], atol=1e-15)
    assert d.pi[0].tolist() == [1, 2, 3]


def test_limits_damping_and_friction_are_kept():
    b = Builder()
    b.body("one", 1.0)
    b.joint("prismatic", "ground", "one", lower=-1, upper=2, velocity=3, effort=4, damping=5, friction=6, armature=7)
    d = b.description()
    names = ("lower", "upper", "velocity_limit", "effort_limit", "damping", "friction", "armature")
    assert [float(getattr(d, n)[0]) for n in names] == [-1, 2, 3, 4, 5, 6, 7]
    assert d.joint_names[0] == "joint1"


def test_loops_are_joints_like_others_and_a_cut_says_which_closes_them(b):
    b.joint("spherical", "two", "ground", "closing")
    assert [b.description().joint_names[j] for j in span(b.description()).loops] == ["second"]
    assert b.description().cuts == frozenset()
    c = Builder()
    for name in ("one", "two"):
        c.body(name, 1.0)
    c.joint("revolute", "ground", "one", "first", cut=True)
    c.joint("revolute", "one", "two", "second")
    c.joint("revolute", "two", "ground", "third")
    d = c.description()
    assert [d.joint_names[j] for j in span(d).loops] == ["first"]


def test_free_joints_have_no_actuator_unless_said_so():
    b = Builder()
    for k, (kind, actuated) in enumerate([("free", None), ("free", True), ("revolute", None), ("revolute", False)]):
        b.body(f"b{k}", 1.0)
        b.joint(kind, "ground", f"b{k}", actuated=actuated)
    assert b.description().passive == {0, 3}


def test_translational_is_prismatic(b):
    joint = b.joint("translational", "ground", b.body("three", 1.0))
    assert joint.kind == "prismatic"


def test_couplings_drivers_and_forces_are_kept(b):
    omega = b.parameter("omega", 2.0)
    tip = b.triad("two", (0, 0, 1))
    b.mimic("second", "first", -1.0, 0.5)
    b.driver("joint", "first", omega * TIME, name="motor")
    b.driver("absolute", "two", 0.1 * TIME, coordinate="x")
    b.driver("absolute", "two.y", 0.0)
    b.driver("distance", tip, 1.0, other="ground")
    b.joint_force("first", -3.0 * Name("v") ** 3)
    b.joint_spring("second", 10.0, rest=0.1, damping=0.2)
    b.joint_damper("second", 0.3)
    b.spring(tip, "ground", 100.0, 0.5, damping=1.0, name="coil")
    b.applied_wrench(tip, force=(0, 0, np.sin(TIME)), axes="ground")
    d = b.description()
    assert d.mimics == (Mimic(1, 0, -1.0, 0.5),)
    motor, x, y, distance = d.drivers
    assert motor == Driver("motor", "joint", "first", omega * TIME)
    assert (x.target, y.target) == ("two.x", "two.y")
    assert (distance.target, distance.other) == ("triad1", "ground")
    assert list(d.frames.names) == ["triad1"]
    force, spring, damper, coil, wrench = d.elements
    assert isinstance(force, JointForce)
    assert spring.law.evaluate({"q": 0.3, "v": 2.0}) == pytest.approx(-10 * 0.2 - 0.2 * 2)
    assert damper.law.evaluate({"v": 2.0}) == pytest.approx(-0.6)
    assert isinstance(coil, PointForce)
    assert coil.law.evaluate({"d": 0.7, "dd": 3.0}) == pytest.approx(-100 * 0.2 - 3)
    assert isinstance(wrench, AppliedWrench)
    assert len(wrench.laws) == 6
    assert wrench.frame == "triad1"


def test_gravity_is_earths_unless_given(b):
    assert b.description().gravity.tolist() == [0, 0, -9.81]
    b.gravity((1, 2, 3))
    assert b.description().gravity.tolist() == [1, 2, 3]


def test_gravity_may_depend_on_a_parameter(b):
    b.gravity((0, 0, -b.parameter("g", 1.62)))
    moon = b.description()
    assert moon.gravity.tolist() == [0, 0, -1.62]
    assert with_parameters(moon, {"g": 3.7}).gravity.tolist() == [0, 0, -3.7]


# -- parameters ---------------------------------------------------------------------------------------------
def test_a_parameter_may_stand_in_any_number():
    b = Builder()
    s = b.parameter("s", 0.5)
    b.body("one", 2 * s, (s, 0, 0), (s, s, s))
    b.body("two", 1.0)
    tip = b.triad("one", (0, s, 0), h=(s, 0, 1), f=(0, 1, 0), name="tip")
    b.joint("revolute", "ground", "one", armature=s / 10)
    b.joint("screw", tip, b.frame("two", origin=(0, 0, -s)), pitch=s / 2)
    d = b.description()
    arrays = {array for array, _ in d.bindings}
    assert arrays == {"mass", "com", "inertia", "pi", "ri", "pj", "pitch", "armature", "frame_r", "frame_p"}
    for value in (0.5, 0.8):
        at = with_parameters(d, {"s": value})
        assert at.mass[0] == 2 * value
        assert at.com[0].tolist() == [value, 0, 0]
        assert at.inertia[0].tolist() == [value] * 3 + [0] * 3
        assert at.armature[0] == pytest.approx(value / 10)
        assert at.pitch[1] == value / 2
        assert at.pi[1].tolist() == at.frames.p[0].tolist() == [0, value, 0]
        assert at.pj[1].tolist() == [0, 0, -value]
        np.testing.assert_allclose(at.ri[1][:, 2], np.array([value, 0, 1]) / np.hypot(value, 1))
        np.testing.assert_allclose(at.frames.r[0], at.ri[1])


def test_a_binding_says_where_its_number_stands():
    b = Builder()
    length = b.parameter("length", 0.4)
    for k in range(3):
        b.body(f"b{k}", 1.0, (0, 0, length if k == 2 else 0.0))
        b.joint("revolute", "ground", f"b{k}")
    assert b.description().bindings == {("com", 8): length}


def test_an_unused_parameter_may_be_changed_too():
    b = Builder()
    b.parameter("spare", 1.0)
    b.body("one", 1.0)
    b.joint("free", "ground", "one")
    assert with_parameters(b.description(), {"spare": 2.0}).parameters == {"spare": 2.0}
    with pytest.raises(NameNotFound, match="no parameter named 'spar'; did you mean 'spare'"):
        with_parameters(b.description(), {"spar": 2.0})


# -- misuse -------------------------------------------------------------------------------------------------
MISUSE = {
    "a kind misspelt": (lambda b: b.joint("revolut", "one", "two"), "no joint kind named 'revolut'; did you mean"),
    "an unknown body": (
        lambda b: b.joint("revolute", "one", "tow"),
        "no body or frame named 'tow'; did you mean 'two'",
    ),
    "a triad on an unknown body": (lambda b: b.triad("three"), "no body named 'three'"),
    "a body of another builder": (lambda b: b.triad(Builder().body("else")), "no body named 'else'"),
    "a body twice": (lambda b: b.body("one"), "there is a body or frame 'one' already"),
    "a body named as ground": (lambda b: b.body("ground"), "there is a body or frame 'ground' already"),
    "a nameless body": (lambda b: b.body(""), "needs a name"),
    "a joint twice": (lambda b: b.joint("revolute", "one", "two", "first"), "there is a joint 'first' already"),
    "a parameter twice": (lambda b: (b.parameter("p", 1), b.parameter("p", 2)), "there is a parameter 'p' already"),
    "a parameter named TIME": (lambda b: b.parameter("TIME", 1), "'TIME' cannot name a parameter"),
    "a parameter that is no name": (lambda b: b.parameter("2 x", 1), "'2 x' cannot name a parameter"),
    "a parameter that is no number": (lambda b: b.parameter("p", "x"), "parameter 'p' is 'x'"),
    "a joint of a body to itself": (lambda b: b.joint("revolute", "one", "one", "j"), "'j' joins 'one' to itself"),
    "a screw without a pitch": (lambda b: b.joint("screw", "one", "two", "s"), "screw joint 's' has no pitch"),
    "a zero axis": (lambda b: b.joint("revolute", "one", "two", "j", axis=(0, 0, 0)), "the axis of joint 'j' is"),
    "an axis for triads": (
        lambda b: b.joint("revolute", b.triad("one"), "two", "j", axis=(0, 0, 1)),
        "joint 'j' has frames, which hold its place",
    ),
    "a word for a mass": (lambda b: b.body("x", "heavy"), "mass of 'x' is 'heavy'; give numbers"),
    "two numbers for a place": (lambda b: b.body("x", 1, (1, 2)), "com of 'x' needs 3 numbers, 2 given"),
    "four numbers for an inertia": (lambda b: b.body("x", 1, inertia=(1, 2, 3, 4)), "needs 6 numbers, 4 given"),
    "rows of an inertia of different lengths": (lambda b: b.body("x", 1, inertia=((1, 2), (3,))), "inertia of 'x'"),
    "an inertia that is not symmetric": (
        lambda b: b.body("x", 1, inertia=[[1, 0.1, 0], [0.2, 1, 0], [0, 0, 1]]),
        "inertia of 'x' is not symmetric: 0.1 and 0.2",
    ),
    "an undeclared parameter": (
        lambda b: (b.body("x", Name("p")), b.description()),
        "no parameter or variable named 'p'",
    ),
    "an unknown name in a law": (lambda b: b.joint_force("first", -2 * Name("vv")), "law named 'vv'; did you mean 'v'"),
    "a law of the wrong coordinate": (lambda b: b.driver("joint", "first", Name("q")), "law named 'q'"),
    "a parameter named as a coordinate": (
        lambda b: (b.parameter("q", 1.0), b.joint_force("first", Name("q"))),
        "'q' is a variable of this law .* and a parameter too; rename",
    ),
    "a coordinate's name taken after a law": (
        lambda b: (b.joint_force("first", Name("q")), b.parameter("q", 1.0)),
        "'q' means a coordinate",
    ),
    "a coordinate that the joint does not have": (
        lambda b: b.joint_force("first", 1.0, index=1, name="f"),
        "'f' acts on coordinate 1 of 'first', which is revolute and has 1",
    ),
    "an unknown joint": (lambda b: b.mimic("second", "frist"), "no joint named 'frist'; did you mean 'first'"),
    "a driver of an unknown kind": (lambda b: b.driver("relative", "one", 1.0), "no driver kind named 'relative'"),
    "a driver without a coordinate": (lambda b: b.driver("absolute", "one", 1.0, name="m"), "give 'x', 'y' or 'z'"),
    "a distance to nothing": (lambda b: b.driver("distance", "one", 1.0), "name the second frame with other="),
    "a force between a place and itself": (lambda b: b.point_force("one", "one", 1.0), "between 'one' and itself"),
    "a force twice": (
        lambda b: (b.joint_force("first", 1.0, name="f"), b.joint_damper("first", 1.0, name="f")),
        "there is a driver or force 'f' already",
    ),
    "wrong axes": (lambda b: b.applied_wrench("one", axes="body"), "no kind of axes named 'body'"),
    "a limit that depends on a parameter": (
        lambda b: b.joint("revolute", "one", "two", "j", upper=b.parameter("p", 1)),
        "upper of 'j' cannot depend on a parameter",
    ),
    "gravity of two numbers": (lambda b: b.gravity((0, 1)), "gravity needs 3 numbers, 2 given"),
    "a second gear of one name": (
        lambda b: (b.mimic("second", "first", name="g"), b.mimic("first", "second", name="g")),
        "there is a gear 'g' already; choose another name",
    ),
    "a follower of itself": (lambda b: (b.mimic("first", "first"), b.description()), "'first' follows itself"),
    "a frame that is no rotation": (
        lambda b: (b.frame("one", 2 * np.eye(3), name="f"), b.description()),
        "rotation of frame 'f' is off by 3",
    ),
    "an impossible inertia": (
        lambda b: (b.body("x", 1, inertia=(1, 1, 3)), b.description()),
        "no body can have the inertia of 'x'",
    ),
}


@pytest.mark.parametrize("misuse", MISUSE)
def test_misuse_is_told_in_words(b, misuse):
    call, message = MISUSE[misuse]
    with pytest.raises((ModelError, NameNotFound), match=message):
        call(b)


def test_a_body_that_nothing_connects_to_ground_is_named(b):
    b.body("lost", 1.0)
    with pytest.raises(ModelError, match="no joint connects 'lost' to ground"):
        span(b.description())


def test_kinds_are_paired_whose_rates_are_the_derivatives_of_their_coordinates():
    assert [name for name, kind in KINDS.items() if not kind.paired] == ["spherical", "free"]
    assert [kind.name for kind in KIND_LIST if reverse(kind).paired != kind.paired] == []
    for kind in KIND_LIST:
        q, v = kind.neutral(), np.arange(1.0, kind.nv + 1)
        assert np.array_equal(kind.rate(q, v), v) == kind.paired


@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_laws_of_q_and_drivers_are_refused_on_joints_that_are_not_paired(b, kind):
    b.joint(kind, "two", b.body("ball", 1.0), "socket")
    for misuse in (
        lambda: b.joint_force("socket", Name("q") * 2.0),
        lambda: b.joint_spring("socket", 10.0),
    ):
        with pytest.raises(ModelError, match=f"joint 'socket' is {kind}.*v and TIME only"):
            misuse()
    with pytest.raises(ModelError, match=f"drives joint 'socket', which is {kind}"):
        b.driver("joint", "socket", TIME)
    b.joint_damper("socket", 0.5, index=2)
    b.joint_force("socket", TIME * Name("v"), index=1)
    assert [e.index for e in b.description().elements] == [2, 1]


def test_damping_and_friction_are_forces_on_each_rate():
    b = Builder()
    b.joint("revolute", "ground", b.body("one", 1.0), "first", damping=0.5, friction=0.25)
    b.joint("spherical", "one", b.body("two", 1.0), "second", friction=2.0)
    b.joint("prismatic", "two", b.body("three", 1.0), "third")
    b.joint("fixed", "three", b.body("four", 1.0), "fourth", damping=1.0)
    d = b.description()
    assert [(e.name, e.joint, e.index) for e in d.elements] == [
        ("first damping", "first", 0),
        *((f"second damping {k}", "second", k) for k in range(3)),
    ]
    assert d.elements[0].law.evaluate({"v": -2.0}) == 1.25
    assert [d.elements[2].law.evaluate({"v": v}) for v in (-3.0, 0.0, 3.0)] == [2.0, 0.0, -2.0]
    assert "sign" not in str(joint_losses("x", 1, 1.0, 0.0)[0].law)
    assert d.damping.tolist() == [0.5, 0.0, 0.0, 1.0]
    assert d.friction.tolist() == [0.25, 2.0, 0.0, 0.0]


def test_a_joint_whose_damping_cannot_be_named_is_not_added(b):
    b.joint_force("first", 1.0, name="third damping")
    b.body("three", 1.0)
    with pytest.raises(ModelError, match="there is a driver or force 'third damping' already"):
        b.joint("revolute", "two", "three", "third", damping=1.0)
    b.joint("revolute", "two", "three", "third")
    assert list(b.description().joint_names) == ["first", "second", "third"]


def test_a_negative_damping_is_told(b):
    b.joint("revolute", "two", b.body("three", 1.0), "third", damping=-1.0)
    with pytest.raises(ModelError, match="joint 'third' has the negative damping -1"):
        b.description()


@pytest.mark.parametrize("module", [builder, builder_kinematics, builder_forces], ids=lambda module: module.__name__)
def test_the_examples_of_the_builder_run(module):
    failed, tried = doctest.testmod(module, extraglobs={"lw": lw, "np": np})
    assert tried > 0
    assert failed == 0
