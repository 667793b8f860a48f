"""The ways to forward dynamics agree, in both forms, and refuse what they cannot do by name."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from test_identities import MOVING, numbers, states, turned_round

import linkwright as lw
from linkwright.dynamics.functions import FORWARD_METHODS, FREE_BODY_METHODS, LOOP_METHODS
from linkwright.dynamics.methods.by_name import METHODS
from linkwright.errors import LinkwrightWarning, ModelError
from linkwright.model.joint_kinds import KINDS
from robots import relative

#: The others ask every link for an inertia of its own, and close loops.
CLASSIC = tuple(method for method in FORWARD_METHODS if method not in FREE_BODY_METHODS)
OTHERS = FORWARD_METHODS[1:]
FORMS = ("unrolled", "rolled")


def tolerance(mech: lw.Mechanism, q: np.ndarray, method: str) -> float:
    if method != "mass-matrix":
        return 1e-10
    conditions = np.linalg.cond(mech.mass_matrix(q))
    return max(1e-9, 10 * np.finfo(float).eps * float(np.max(conditions)))


def geared(mech: lw.Mechanism, seed: int) -> lw.Mechanism:
    """The same mechanism with an armature on some of its joints."""
    rng = np.random.default_rng(seed)
    d = mech.description
    n = len(d.joint_names)
    return lw.Mechanism(replace(d, armature=np.where(rng.random(n) < 0.5, rng.uniform(0.01, 0.2, n), 0.0)))


#: Seeds and bases; the short run has each seed on one base.
SHORT = [(seed, seed % 2 == 1) for seed in range(4)]
LONG = [(seed, seed % 2 == 0) for seed in range(4)]


@pytest.mark.parametrize(("seed", "floating"), [*SHORT, *(pytest.param(*x, marks=pytest.mark.slow) for x in LONG)])
def test_the_classic_methods_agree_on_random_trees_with_wrenches_and_armatures(seed: int, floating: bool) -> None:
    mech = geared(lw.random_tree(12, seed, floating=floating), seed)
    q, v, tau = states(mech, seed)
    wrenches = np.random.default_rng(seed).standard_normal((3, mech.nb, 6))
    inputs = (q, v, tau, wrenches)
    wanted = numbers(mech, "forward_dynamics", *inputs, wrenches=True, form="unrolled")
    for method in CLASSIC:
        for form in FORMS:
            a = numbers(mech, "forward_dynamics", *inputs, wrenches=True, method=method, form=form)
            assert relative(a, wanted) < tolerance(mech, q, method), (method, form)


def test_those_trees_have_every_joint_kind() -> None:
    met = {joint.kind for seed, floating in SHORT for joint in lw.random_tree(12, seed, floating=floating).joints}
    assert met == set(KINDS)


@pytest.mark.parametrize("kind", MOVING)
def test_all_methods_agree_on_joints_described_from_their_far_side(kind: str) -> None:
    mech = turned_round(lw.random_tree(5, 8, joints=[kind]), range(1, 5, 2))
    q, v, tau = states(mech, 8)
    wanted = numbers(mech, "forward_dynamics", q, v, tau)
    for method in OTHERS:
        for form in FORMS:
            a = numbers(mech, "forward_dynamics", q, v, tau, method=method, form=form)
            assert relative(a, wanted) < tolerance(mech, q, method), (method, form)


@pytest.mark.compiled
@pytest.mark.parametrize("n", [1, 2, 24, *(pytest.param(n, marks=pytest.mark.slow) for n in (64, 200)), 65])
def test_all_methods_agree_on_chains_in_native_code(n: int) -> None:
    mech = lw.chain(n)
    q, v, tau = 0.5 * np.random.default_rng(n).standard_normal((3, 5, n))
    wanted = mech.forward_dynamics(q, v, tau)
    for method in OTHERS:
        limit = tolerance(mech, q, method)
        assert relative(mech.forward_dynamics(q, v, tau, method=method), wanted) < limit, method
        assert relative(mech.forward_dynamics(q[0], v[0], tau[0], method=method), wanted[0]) < limit, method


@pytest.mark.compiled
@pytest.mark.slow
def test_all_methods_agree_on_a_long_mixed_tree_in_native_code() -> None:
    mech = lw.random_tree(90, 3, floating=True)
    rng = np.random.default_rng(3)
    q = mech.integrate(mech.neutral(), 0.5 * rng.standard_normal(mech.nv))
    v, tau = rng.standard_normal((2, mech.nv))
    wanted = mech.forward_dynamics(q, v, tau)
    for method in OTHERS:
        assert relative(mech.forward_dynamics(q, v, tau, method=method), wanted) < tolerance(mech, q, method), method


@pytest.mark.compiled
def test_the_linear_methods_agree_on_a_bent_chain_of_32768_links() -> None:
    n = 32_768
    q, v, tau = 0.3 * np.random.default_rng(1).standard_normal((3, n))
    mech = lw.chain(n)
    wanted = mech.forward_dynamics(q, v, tau)
    for method in ("diagonal", "virtual-work", "assembly"):
        assert relative(mech.forward_dynamics(q, v, tau, method=method), wanted) < 1e-10, method


@pytest.mark.parametrize("method", FORWARD_METHODS)
@pytest.mark.parametrize("form", FORMS)
def test_a_single_free_body_falls(method: str, form: str) -> None:
    with lw.Builder("stone") as b:
        stone = b.body("stone", mass=2.0, inertia=(0.1, 0.2, 0.25))
        b.joint("free", b.ground, stone)
    mech = b.build()
    q = mech.neutral()[None]
    zero = np.zeros((1, 6))
    a = numbers(mech, "forward_dynamics", q, zero, zero, method=method, form=form)
    assert relative(a, np.array([[*mech.gravity, 0.0, 0.0, 0.0]])) < 1e-14


@pytest.mark.parametrize("method", CLASSIC[1:])
def test_rolled_methods_have_both_derivatives_of_the_unrolled_articulated_bodies(method: str) -> None:
    mech = lw.random_tree(7, 1, joints=["revolute", "cylindrical", "fixed", "planar"])
    q, v, tau = (x[0] for x in states(mech, 1))
    rng = np.random.default_rng(0)
    ahead, back = rng.standard_normal((3, mech.nv)), rng.standard_normal(mech.nv)
    exact = mech.program("forward_dynamics", form="unrolled")
    program = mech.program("forward_dynamics", method=method, form="rolled")
    _, wanted = exact.forward()(q, v, tau, *ahead)
    _, got = program.forward()(q, v, tau, *ahead)
    assert relative(got, wanted) < 1e-9
    for got, wanted in zip(program.reverse()(q, v, tau, back), exact.reverse()(q, v, tau, back), strict=True):
        assert relative(got, wanted) < 1e-9


def test_coupled_coordinates_go_through_the_mass_matrix_and_a_warning_says_so_of_other_names() -> None:
    with lw.Builder("gripper") as b:
        left, right = (b.body(name, mass=1.0, com=(0.1, 0, 0), inertia=(0.01, 0.02, 0.03)) for name in ("l", "r"))
        first = b.joint("revolute", b.ground, left, name="first", axis=(0, 0, 1))
        second = b.joint("revolute", b.ground, right, name="second", axis=(0, 1, 0))
        b.mimic(second, first, ratio=-2.0)
    mech = b.build()
    q, v, tau = np.array([[0.3]]), np.array([[0.7]]), np.array([[0.2]])
    found = {}
    for method in FORWARD_METHODS:
        dropped = method != "mass-matrix"
        with pytest.warns(LinkwrightWarning, match=f"'{method}' is not used") if dropped else nullcontext():
            found[method] = numbers(mech, "forward_dynamics", q, v, tau, method=method)
    m, h = numbers(mech, "mass_matrix", q), numbers(mech, "bias_forces", q, v)
    assert relative(found["mass-matrix"], (tau - h) / m[0]) < 1e-13
    assert all(np.array_equal(a, found["mass-matrix"]) for a in found.values())


def test_every_method_of_the_list_is_there() -> None:
    assert FORWARD_METHODS[0] == "articulated-body"
    assert set(FORWARD_METHODS) == {*METHODS, "assembly"}


# -- what has no answer ----------------------------------------------------------------------------------------
SOLID = {"mass": 1.0, "com": (0.1, 0.0, 0.0), "inertia": (1e-3, 2e-3, 2e-3)}


def arm(*links: tuple[dict, tuple[float, float, float]], armature: float = 0.0) -> lw.Mechanism:
    """A chain of revolute joints: each link's numbers and its axis."""
    with lw.Builder("arm") as b:
        last = b.ground
        for k, (body, axis) in enumerate(links):
            link = b.body(f"link{k}", **body)
            b.joint("revolute", last, link, name=f"joint{k}", axis=axis, armature=armature)
            last = link
    return b.build()


X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
UNDETERMINED = {
    "a point mass on its own axis": (arm(({"mass": 1.0, "com": (0, 0, 0.3)}, Z)), "joint0"),
    "a point mass on a slanted axis": (arm(({"mass": 0.7, "com": (0.3, 0.6, -0.9)}, (1, 2, -3))), "joint0"),
    "a link of nothing at the tip": (arm((SOLID, Z), ({}, X)), "joint1"),
    "a link of nothing between two joints of one axis": (arm((SOLID, X), ({}, Z), (SOLID, Z)), "joint1"),
}


@pytest.mark.parametrize("case", UNDETERMINED)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", [*CLASSIC, "assembly"])
def test_a_joint_without_inertia_along_its_freedom_is_named(case: str, form: str, method: str) -> None:
    mech, joint = UNDETERMINED[case]
    with pytest.raises(ModelError, match=f"joint '{joint}' (has no inertia|carries no mass)") as told:
        mech.program("forward_dynamics", method=method, form=form)
    assert told.value.element == joint


def test_a_rod_without_inertia_about_itself_cannot_hang_on_a_ball() -> None:
    with lw.Builder("rod") as b:
        rod = b.body("rod", mass=1.0, com=(0, 0, 0.5), inertia=(0.1, 0.1, 0.0))
        b.joint("spherical", b.ground, rod, name="ball")
    with pytest.raises(ModelError, match="joint 'ball' has no inertia along its freedom"):
        b.build().program("forward_dynamics", form="rolled")


DETERMINED = {
    "a link of nothing between crossed axes": arm(({}, Z), (SOLID, X)),
    "two links of nothing between crossed axes": arm(({}, Z), ({}, (0, 1, 0)), (SOLID, X)),
    "a point mass off its axis": arm(({"mass": 1.0, "com": (0.3, 0, 0)}, Z)),
    "nothing but an armature": arm((SOLID, X), ({}, Z), (SOLID, Z), armature=0.1),
}


@pytest.mark.parametrize("case", DETERMINED)
def test_links_without_inertia_are_fine_where_others_resist(case: str) -> None:
    mech = DETERMINED[case]
    q, v, tau = states(mech, 2)
    for method in (*CLASSIC, "assembly"):
        for form in FORMS:
            a = numbers(mech, "forward_dynamics", q, v, tau, method=method, form=form)
            assert relative(numbers(mech, "inverse_dynamics", q, v, a), tau) < 1e-10, (method, form)


@pytest.mark.parametrize("method", [method for method in FORWARD_METHODS if method not in LOOP_METHODS])
def test_a_closed_loop_is_refused_with_the_methods_that_can(method: str) -> None:
    with lw.Builder("loop") as b:
        one, two = (b.body(name, **SOLID) for name in ("one", "two"))
        b.joint("revolute", b.ground, one, name="a")
        b.joint("revolute", one, two, name="b")
        b.joint("revolute", two, b.ground, name="c")
    mech = b.build()
    with pytest.raises(ModelError, match=f"joint '{mech.loops[0]}' closes a loop") as told:
        mech.program("forward_dynamics", method=method)
    assert all(name in str(told.value) for name in (method, *LOOP_METHODS))


@pytest.mark.parametrize("method", FORWARD_METHODS)
def test_a_mechanism_that_cannot_move_has_no_accelerations(method: str) -> None:
    nothing = np.zeros(0)
    assert lw.chain(3, joint="fixed").forward_dynamics(nothing, nothing, nothing, method=method).shape == (0,)
