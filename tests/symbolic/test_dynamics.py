"""Closed forms of every joint kind against the numeric recursions, at random states."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from closed_forms import ByAngles, dynamics, numbers

import linkwright as lw
from linkwright.errors import ModelError
from linkwright.model.expression import Name, tabulated
from linkwright.symbolic.formulas.formula import Root, symbols
from robots import relative

KINDS = ["revolute", "prismatic", "cylindrical", "universal", "planar", "screw", "spherical", "free"]


def agree(mech: lw.Mechanism, seed: int = 0, **options: Any) -> None:
    """M, g, and M ẍ + h + g with the joints' own laws are those of the mechanism, within 1e-10 of the largest."""
    dy = dynamics(mech, **options)
    rng = np.random.default_rng(seed)
    for _ in range(2):
        x, dx, ddx = rng.uniform(-1.2, 1.2, (3, dy.n))
        q, v, a, e = ByAngles(mech).state(x, dx, ddx)
        m, h, g, own = numbers(dy, x, dx)
        assert relative(m, e.T @ mech.mass_matrix(q) @ e) < 1e-10
        held = e.T @ mech.gravity_forces(q)
        assert np.abs(g - held).max() <= 1e-10 * max(1.0, np.abs(held).max())
        assert relative(m @ ddx + h + g + own, e.T @ mech.inverse_dynamics(q, v, a)) < 1e-10


def bodies(b: lw.Builder, count: int, seed: int = 7) -> list[Any]:
    """Bodies with inertias of general shape."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(count):
        root = rng.uniform(-1.0, 1.0, (3, 3)) * 0.3
        inertia = np.trace(root @ root.T) * np.eye(3) - root @ root.T
        found.append(b.body(f"b{k + 1}", rng.uniform(0.5, 2.0), rng.uniform(-0.3, 0.3, 3), inertia))
    return found


def place(b: lw.Builder, body: Any, rng: np.random.Generator) -> Any:
    """A triad at a place of no special direction."""
    return b.triad(body, rng.uniform(-0.3, 0.3, 3), rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3))


def square(b: lw.Builder, body: Any, rng: np.random.Generator) -> Any:
    """A triad whose axes are axes of the body, in some order."""
    axes = np.eye(3)[rng.permutation(3)] * rng.choice([-1.0, 1.0], 3)[:, None]
    return b.triad(body, rng.uniform(-0.3, 0.3, 3), axes[0], axes[1])


# -- joint kinds ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_a_joint_of_each_kind_between_two_turning_bodies_gives_the_mechanisms_equations(kind: str) -> None:
    rng = np.random.default_rng(3)
    with lw.Builder(kind) as b:
        first, second, third = bodies(b, 3)
        b.joint("revolute", square(b, b.ground, rng), square(b, first, rng))
        b.joint(kind, square(b, first, rng), square(b, second, rng), pitch=0.17)
        b.joint("revolute", square(b, second, rng), square(b, third, rng))
    agree(b.build())


@pytest.mark.parametrize("kind", KINDS)
def test_a_reversed_joint_keeps_its_coordinates(kind: str) -> None:
    rng = np.random.default_rng(4)
    with lw.Builder(kind) as b:
        first, second, third = bodies(b, 3)
        b.joint("revolute", square(b, b.ground, rng), square(b, first, rng))
        b.joint(kind, square(b, second, rng), square(b, first, rng), pitch=0.17)
        b.joint("revolute", square(b, third, rng), square(b, second, rng))
    agree(b.build())


@pytest.mark.parametrize("kind", KINDS)
def test_axes_of_no_special_direction_give_the_mechanisms_equations(kind: str) -> None:
    rng = np.random.default_rng(5)
    with lw.Builder(kind) as b:
        first, second = bodies(b, 2)
        b.joint(kind, place(b, b.ground, rng), place(b, first, rng), pitch=0.17)
        b.joint("revolute", place(b, first, rng), place(b, second, rng))
    agree(b.build(), digits=16)


def test_a_fixed_joint_carries_its_body_with_it() -> None:
    rng = np.random.default_rng(6)
    with lw.Builder("fixed") as b:
        first, second, third = bodies(b, 3)
        b.joint("revolute", square(b, b.ground, rng), square(b, first, rng))
        b.joint("fixed", square(b, second, rng), square(b, first, rng))
        b.joint("revolute", square(b, second, rng), square(b, third, rng))
    agree(b.build())


@pytest.mark.parametrize("seed", [0, 2, 3, 4, 5])
def test_random_trees_of_all_kinds_give_the_mechanisms_equations(seed: int) -> None:
    agree(lw.random_tree(3, seed), digits=16)


@pytest.mark.parametrize("sums", [True, False])
def test_branches_with_parallel_axes_give_the_mechanisms_equations(sums: bool) -> None:
    agree(lw.tree(5, 2), sums=sums)
    with lw.Builder("plane tree") as b:
        for k, (body, up) in enumerate(zip(bodies(b, 5), [None, 0, 0, 1, 2], strict=True)):
            before = b.ground if up is None else f"b{up + 1}"
            b.joint("revolute", before, body, axis=(0, 1 if k % 2 else -1, 0), at=(0.1 * k, 0.2, 0.3))
    agree(b.build(), sums=sums)


def test_both_ways_to_the_mass_matrix_are_one() -> None:
    for kind in ("universal", "planar", "screw", "spherical"):
        mech = lw.chain(2, kind)
        assert dynamics(mech).m == dynamics(mech, way="trace").m


# -- couplings ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("ratio", [-1.0, 2.0, 0.5, 0.377, -1.5, 20.0])
@pytest.mark.parametrize("kind", ["revolute", "prismatic", "screw"])
def test_a_following_joint_gives_the_mechanisms_equations(kind: str, ratio: float) -> None:
    with lw.Builder("gear") as b:
        first, second, third = bodies(b, 3)
        b.joint("revolute", b.ground, first, "a", axis=(1, 0, 0))
        b.joint("revolute", first, second, "b", axis=(0, 1, 0), at=(0, 0.2, 0.3))
        b.joint(kind, second, third, "c", axis=(0, 1, 0), at=(0.1, 0.2, 0.3), pitch=0.2, armature=0.03)
        b.mimic("c", "b", ratio, 0.3)
    agree(b.build())


def test_a_chain_of_followers_with_armature_gives_the_mechanisms_equations() -> None:
    with lw.Builder("finger") as b:
        before = b.ground
        for k, body in enumerate(bodies(b, 4)):
            b.joint("revolute", before, body, f"j{k}", axis=(0, 1, 0), at=(0, 0, 0.2), armature=0.01 * (k + 1))
            before = body
        b.mimic("j2", "j1", -2.0, math.pi / 2)
        b.mimic("j1", "j0", 0.5, 0.25)
    agree(b.build())


def test_a_reversed_follower_gives_the_mechanisms_equations() -> None:
    with lw.Builder("gear") as b:
        first, second = bodies(b, 2)
        b.joint("revolute", b.ground, first, "a", axis=(1, 0, 0))
        b.joint("revolute", second, first, "b", axis=(0, 1, 0), at=(0, 0.2, 0.3))
        b.mimic("b", "a", -2.0, 0.4)
    agree(b.build())


# -- angles of the placement ----------------------------------------------------------------------------------------
def turned(degrees: float) -> lw.Mechanism:
    inertia = (0.2, 0.3, 0.4, 0.01, 0.02, 0.03)
    rows = [
        {"a": 0.0, "alpha": 0.0, "d": 0.1, "theta": 0.0, "mass": 1.0, "com": (0.1, 0.2, 0.3), "inertia": inertia},
        {"a": 0.3, "alpha": math.radians(degrees), "d": 0.1, "theta": math.radians(degrees), "mass": 2.0},
        {"a": 0.2, "alpha": math.radians(-degrees), "d": 0.2, "theta": 0.0, "mass": 1.5, "com": (0.1, 0, 0.2)},
    ]
    return lw.from_dh(rows, convention="modified")


@pytest.mark.parametrize("degrees", [15, 30, 45, 60, 75, 90, 120, 135, 150, 180, 285])
def test_multiples_of_fifteen_degrees_are_algebraic_numbers(degrees: float) -> None:
    mech = turned(degrees)
    agree(mech)
    dy = dynamics(mech)
    assert not dy.model.values
    wanted = {15: {2, 3}, 30: {3}, 45: {2}, 60: {3}, 90: set()}.get(degrees)
    assert wanted is None or {f.of for f in dy.ring.at if isinstance(f, Root)} == wanted


@pytest.mark.parametrize("degrees", [37.0, -37.0, 127.0, 0.5])
def test_any_other_angle_is_a_symbol_of_its_value(degrees: float) -> None:
    mech = turned(degrees)
    agree(mech)
    dy = dynamics(mech)
    assert len(dy.model.values) == 1, "one symbol for an angle, its negative, and these a quarter turn on"
    assert set(symbols(dy.ring.formula(dy.m[0, 0]))) & set(dy.model.values)


@pytest.mark.parametrize("degrees", [37.0, -127.0])
def test_any_other_angle_may_be_rounded(degrees: float) -> None:
    mech = turned(degrees)
    agree(mech, digits=16)
    assert not dynamics(mech, digits=16).model.values


# -- parameters and laws --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_symbols_of_a_table_take_their_values(convention: str) -> None:
    rows = [
        {"a": "l1", "alpha": math.pi / 2, "d": "h", "theta": 0.3, "mass": "m1", "com": ("x1", 0.0, "z1"), "kind": k}
        for k in ("revolute", "prismatic", "revolute")
    ]
    given = {"l1": 0.3, "h": 0.2, "m1": 1.7, "x1": 0.21, "z1": -0.13}
    agree(lw.from_dh(rows, convention=convention, parameters=given))


def test_twists_of_a_table_may_be_symbols() -> None:
    rows = [
        {"a": 0.3, "alpha": "twist", "d": 0.2, "theta": "phi", "mass": 1.0, "com": (0.1, 0.2, 0.3)},
        {"a": 0.1, "alpha": 2.0 * Name("twist"), "d": 0.2, "theta": 0.0, "mass": 1.0, "com": (0.1, 0.2, 0.3)},
    ]
    agree(lw.from_dh(rows, parameters={"twist": 0.7, "phi": 0.4}))


def test_laws_of_the_joints_are_held_against() -> None:
    with lw.Builder("laws") as b:
        first, second, third = bodies(b, 3)
        k = b.parameter("k", 3.0)
        b.joint("revolute", b.ground, first, "a", axis=(1, 0, 0), damping=0.3, friction=0.2, armature=0.05)
        b.joint("cylindrical", first, second, "b", axis=(0, 1, 0), at=(0, 0, 0.2), damping=0.4)
        b.joint("revolute", second, third, "c", axis=(0, 0, 1), at=(0.2, 0, 0.2), damping=0.1, friction=0.5)
        b.mimic("c", "a", -0.5, 0.2)
        b.joint_spring("a", k, rest=0.2, damping=0.1)
        b.joint_spring("b", 5.0, rest=0.1, index=1)
        b.joint_force("c", lambda q, v: -np.sin(2.0 * q) * 3.0 - 0.1 * v**3 - q**3)
    agree(b.build())


def test_laws_without_a_formula_in_the_coordinates_are_named_as_left_out() -> None:
    with lw.Builder("laws") as b:
        (body,) = bodies(b, 1)
        b.joint("revolute", b.ground, body, "a", damping=0.1)
        b.joint_force("a", lambda q, t: -q * np.sin(t), name="shaken")
        b.joint_force("a", 2.0 * tabulated(Name("q"), [(-2, 1), (0, 3), (2, 0)]), name="measured")
    model = dynamics(b.build()).model
    assert model.left_out == ("joint force 'shaken'", "joint force 'measured'")
    assert len(model.friction[0].terms) == 1
    assert not model.springs[0]


def test_a_parameter_that_is_a_table_is_refused_by_a_sentence() -> None:
    with lw.Builder("bound") as b:
        b.joint("revolute", b.ground, b.body("a", tabulated(b.parameter("p", 0.5), [(0, 1), (1, 3)])), "a")
    with pytest.raises(ModelError, match="table of numbers, which has no closed form"):
        dynamics(b.build())
