"""Faults in a description's numbers: each gets its own error, which names the thing."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwright.errors import LinkwrightWarning, ModelError
from linkwright.model.description import ARRAYS, Frames, Names
from linkwright.model.elements import AppliedWrench, Driver, JointForce, Mimic, PointForce
from linkwright.model.expression import TIME, Call, Lookup, Name, Number
from linkwright.model.generators import chain, random_tree
from linkwright.model.model_checks import _check_finite_law, check_numbers, impossible_inertias
from linkwright.model.parameter_cases import with_parameters
from linkwright.model.placements import full_inertia
from linkwright.tape.operations import Table


def changed(array, index, value, n=4):
    """A random tree with one number replaced."""
    d = random_tree(n, 0, joints=["revolute"])
    new = np.array(getattr(d, array))
    new[index] = value
    return replace(d, **{array: new})


@pytest.mark.parametrize("seed", range(5))
def test_generated_mechanisms_pass(seed):
    check_numbers(random_tree(30, seed))
    check_numbers(chain(5))


@pytest.mark.parametrize("array", ["mass", "com", "inertia"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_body_number_that_is_not_finite_names_the_body(array, value):
    index = 2 if array == "mass" else (2, 1)
    with pytest.raises(ModelError, match=f"body 'body3'.*{value}; give finite numbers") as caught:
        check_numbers(changed(array, index, value))
    assert caught.value.element == "body3"


@pytest.mark.parametrize("array", ["ri", "pi", "rj", "pj", "pitch", "armature", "damping", "friction"])
def test_a_joint_number_that_is_not_finite_names_the_joint(array):
    with pytest.raises(ModelError, match=r"joint 'joint2'.*nan") as caught:
        check_numbers(changed(array, 1, np.nan))
    assert caught.value.element == "joint2"


@pytest.mark.parametrize(("array", "value"), [("mass", 1e200), ("com", -1e200), ("pi", 1e101)])
def test_numbers_whose_products_overflow_are_refused_by_name(array, value):
    with pytest.raises(ModelError, match="numbers beyond 1e100 overflow; take larger units"):
        check_numbers(changed(array, 1, value))
    check_numbers(changed(array, 1, 1.0))


def test_limits_may_be_infinite_but_not_nan():
    check_numbers(changed("upper", 1, np.inf))
    with pytest.raises(ModelError, match="its upper has the number nan"):
        check_numbers(changed("upper", 1, np.nan))


def test_limits_the_wrong_way_round_are_told():
    d = replace(changed("upper", 1, -1.0), lower=np.zeros(4))
    with pytest.raises(ModelError, match="'joint2' has the lower limit 0 above its upper limit -1"):
        check_numbers(d)


@pytest.mark.parametrize("part", [{"r": np.full((1, 3, 3), np.nan)}, {"p": np.full((1, 3), np.inf)}])
def test_a_frame_number_that_is_not_finite_names_the_frame(part):
    frames = Frames(Names(["tool"]), np.zeros(1, np.int32), np.eye(3)[None], np.zeros((1, 3)))
    with pytest.raises(ModelError, match="frame 'tool'"):
        check_numbers(replace(chain(2), frames=replace(frames, **part)))


def test_gravity_and_parameters_must_be_finite():
    with pytest.raises(ModelError, match="gravity is"):
        check_numbers(replace(chain(2), gravity=np.array([0.0, np.nan, 0.0])))
    with pytest.raises(ModelError, match="parameter 'p' is inf"):
        check_numbers(replace(chain(2), parameters={"p": np.inf}))


def test_a_negative_mass_names_the_body_and_zero_is_allowed():
    check_numbers(changed("mass", 0, 0.0))
    with pytest.raises(ModelError, match=r"body 'body1' has the negative mass -0\.5; give 0 or more"):
        check_numbers(changed("mass", 0, -0.5))


@pytest.mark.parametrize(
    ("inertia", "why"),
    [
        ((1.0, 1.0, 2.1, 0, 0, 0), r"1 \+ 1 are less than 2.1"),
        ((-0.1, 1.0, 1.0, 0, 0, 0), "-0.1 is negative"),
        ((1.0, 1.0, 1.0, 2.0, 0, 0), "-1 is negative"),
        ((1.0, 1.0, 1.0, 0.6, 0, 0), r"0\.4 \+ 1 are less than 1\.6"),
        ((0.0, 0.0, 0.0, 0, 1e-5, 0), "is negative"),
        ((0.0, 0.0, 1e-12, 0, 0, 0), "are less than"),
    ],
)
def test_an_inertia_that_no_body_can_have_says_why(inertia, why):
    with pytest.raises(ModelError, match=f"no body can have the inertia of 'body2': .*{why}"):
        check_numbers(changed("inertia", 1, inertia))


@pytest.mark.parametrize(
    "inertia",
    [
        (0, 0, 0, 0, 0, 0),  # a point
        (1, 1, 0, 0, 0, 0),  # a rod
        (1, 2, 3, 0, 0, 0),  # a plate
        (1e-9, 1e-9, 2e-9, 0, 0, 0),
        (1.0, 1.0, 2.0 * (1 + 1e-10), 0, 0, 0),  # rounded
    ],
)
def test_rods_plates_and_points_are_bodies(inertia):
    check_numbers(changed("inertia", 1, inertia))


def test_impossible_inertias_can_be_told_in_one_warning():
    d = changed("inertia", slice(1, 3), (1.0, 1.0, 3.0, 0, 0, 0))
    with pytest.warns(LinkwrightWarning, match="the inertia of 'body2', 'body3'") as caught:
        check_numbers(d, inertias="warn")
    assert len(caught) == 1


@given(st.lists(st.floats(-2, 2), min_size=6, max_size=6))
def test_the_quick_test_of_inertias_agrees_with_principal_moments(inertia):
    a, b, c = np.linalg.eigvalsh(full_inertia(inertia))
    margin, slack = min(a, a + b - c), 1e-7 * max(abs(x) for x in [*inertia, 1e-300])
    if abs(margin) > slack:
        assert impossible_inertias(np.array([inertia]))[0] == (margin < 0)


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3), st.integers(0, 1000))
def test_turned_inertias_of_real_bodies_pass_even_in_the_equality(second, seed):
    # Second moments that are not negative, some zero, turned to any axes: rounding must not make them impossible.
    r = random_tree(1, seed).ri[0]
    full = r @ np.diag(np.sum(second) - np.array(second)) @ r.T
    assert not impossible_inertias(full[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]][None])[0]


@pytest.mark.parametrize(("array", "side"), [("ri", "parent"), ("rj", "child")])
def test_a_rotation_that_is_none_is_told_with_its_joint(array, side):
    with pytest.raises(ModelError, match=f"frame on the {side} of joint 'joint3' is off by 1"):
        check_numbers(changed(array, (2,), np.diag([1.0, 1.0, 0.0])))
    with pytest.raises(ModelError, match=f"frame on the {side} of joint 'joint3' is left-handed"):
        check_numbers(changed(array, (2,), np.diag([1.0, 1.0, -1.0])))


def test_faults_are_found_beyond_the_first_block_of_rows():
    with pytest.raises(ModelError, match="'joint10001'"):
        check_numbers(changed("ri", (10_000,), np.zeros((3, 3)), n=10_002))


def test_a_joint_between_a_body_and_itself_is_named():
    with pytest.raises(ModelError, match="joint 'joint3' joins 'body3' to itself"):
        check_numbers(changed("parent", 2, 2))
    d = changed("child", 0, -1)
    with pytest.raises(ModelError, match="joint 'joint1' joins 'ground' to itself"):
        check_numbers(d)


@pytest.mark.parametrize("number", [-2, 4])
def test_a_joint_to_a_body_that_is_not_there_is_named(number):
    with pytest.raises(ModelError, match=f"joint 'joint4' has body number {number} as its parent; there are 4"):
        check_numbers(changed("parent", 3, number))


def test_a_name_twice_is_told():
    with pytest.raises(ModelError, match="two body or frame names are 'a'"):
        check_numbers(replace(chain(2), body_names=Names(["a", "a"])))
    with pytest.raises(ModelError, match="two joint names are 'j'"):
        check_numbers(replace(chain(2), joint_names=Names(["j", "j"])))
    with pytest.raises(ModelError, match="two body or frame names are 'ground'"):
        check_numbers(replace(chain(2), body_names=Names(["a", "ground"])))


def test_a_frame_with_the_name_of_a_generated_body_is_told():
    frames = Frames(Names(["link2"]), np.zeros(1, np.int32), np.eye(3)[None], np.zeros((1, 3)))
    with pytest.raises(ModelError, match="two body or frame names are 'link2'"):
        check_numbers(replace(chain(2), frames=frames))


def test_a_coupling_must_join_two_different_joints_of_one_coordinate():
    d = random_tree(4, 0, joints=["revolute"])
    check_numbers(replace(d, mimics=(Mimic(2, 0, 2.0, 0.1),)))
    check_numbers(replace(d, mimics=(Mimic(2, 1), Mimic(1, 0))))
    for mimics, message in (
        ((Mimic(2, 0, name="g"), Mimic(1, 0, name="g")), "two gears are named 'g'"),
        ((Mimic(1, 1),), "'joint2' follows itself"),
        ((Mimic(2, 1), Mimic(1, 0), Mimic(0, 2)), "in a circle, joint1 → joint3 → joint2 → joint1; remove one"),
        ((Mimic(2, 1), Mimic(2, 0)), "'joint3' follows two joints"),
        ((Mimic(2, 1, np.nan),), "ratio nan"),
    ):
        with pytest.raises(ModelError, match=message):
            check_numbers(replace(d, mimics=mimics))
    free = random_tree(4, 0, joints=["revolute"], floating=True)
    with pytest.raises(ModelError, match="'joint1' is free and cannot follow or lead"):
        check_numbers(replace(free, mimics=(Mimic(1, 0),)))


def test_changed_parameters_are_checked():
    from linkwright.model.builder import Builder

    b = Builder()
    b.body("arm", b.parameter("m", 1.0))
    b.joint("revolute", "ground", "arm")
    d = b.description()
    with pytest.raises(ModelError, match="body 'arm' has the negative mass -1"):
        with_parameters(d, {"m": -1.0})
    with pytest.raises(ModelError, match="parameter 'm' is nan"):
        with_parameters(d, {"m": np.nan})


@pytest.mark.parametrize("array", ["armature", "damping", "friction", "velocity_limit", "effort_limit"])
def test_what_cannot_be_negative_names_the_joint(array):
    word = array.replace("_", " ")
    with pytest.raises(ModelError, match=f"joint 'joint2' has the negative {word} -1; give 0 or more") as caught:
        check_numbers(changed(array, 1, -1.0))
    assert caught.value.element == "joint2"
    check_numbers(changed(array, 1, 0.0))


LOOKUP = Lookup(Table.spline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0]), Name("v") / np.nan)


@pytest.mark.parametrize(
    "law", [Number(np.inf), 2.0 * (Name("v") - np.nan), Call("min", (TIME, Number(-np.inf))), LOOKUP]
)
def test_a_law_with_a_number_that_is_not_finite_is_named(law):
    d = chain(2)
    for element in (
        JointForce("f", "joint1", law),
        PointForce("f", "link1", "link2", law),
        AppliedWrench("f", "link1", (Number(0.0),) * 5 + (law,)),
    ):
        with pytest.raises(
            ModelError, match=r"the law of force 'f' has the number (-?inf|nan) in it; give finite"
        ) as e:
            check_numbers(replace(d, elements=(element,)))
        assert e.value.element == "f"
    with pytest.raises(ModelError, match="the law of driver 'motor' has the number"):
        check_numbers(replace(d, drivers=(Driver("motor", "joint", "joint1", law),)))


def test_a_law_of_shared_parts_is_walked_once():
    law = Name("v")
    for _ in range(60):
        law = law + law
    _check_finite_law(law, "force", "f")


@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_q_has_no_place_in_the_laws_of_joints_whose_rates_are_no_derivatives(kind):
    d = chain(2, kind)
    with pytest.raises(ModelError, match=f"joint 'joint2' is {kind}.*v and TIME only"):
        check_numbers(replace(d, elements=(JointForce("f", "joint2", -Name("q"), 1),)))
    check_numbers(replace(d, elements=(JointForce("f", "joint2", -Name("v") + TIME, 1),)))
    with pytest.raises(ModelError, match=f"drives joint 'joint2', which is {kind}"):
        check_numbers(replace(d, drivers=(Driver("motor", "joint", "joint2", TIME),)))


def test_the_arrays_and_mappings_of_a_description_cannot_be_changed():
    mass, parameters = np.ones(3), {"p": 1.0}
    frames = Frames(Names(["tool"]), np.zeros(1, np.int32), np.eye(3)[None], np.zeros((1, 3)))
    ground = (1.0, np.zeros(3), np.ones(6))
    d = replace(chain(3), mass=mass, frames=frames, gravity=np.ones(3), ground_inertia=ground, parameters=parameters)
    digest = d.digest
    mass[0], parameters["p"], frames.p[0], ground[1][0] = 5.0, 2.0, 7.0, 3.0
    assert (d.mass[0], d.parameters["p"], d.frames.p[0, 0], d.ground_inertia[1][0]) == (1.0, 1.0, 0.0, 0.0)
    for made in (d, pickle.loads(pickle.dumps(d)), copy.deepcopy(d), replace(d, name="other")):
        arrays = [getattr(made, name) for name in ARRAYS]
        for array in (*arrays, made.frames.body, made.frames.r, made.frames.p, made.gravity, *made.ground_inertia[1:]):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
        for mapping in (made.parameters, made.bindings):
            with pytest.raises(TypeError):
                mapping["p"] = 3.0
        assert made.rj is made.ri
        assert made.digest == digest


def test_equal_rows_stay_one_row():
    d = chain(1000)
    assert d.mass.strides == (0,)
    assert replace(d, name="other").ri is d.ri
