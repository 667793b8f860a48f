"""Equilibria with known answers, and against the mechanism's own search for one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from closed_forms import dynamics
from scipy.optimize import brentq

import linkwright as lw
from linkwright.errors import LinkwrightError, ModelError, NameNotFound
from linkwright.symbolic.equilibria import quarter_turns as quarters
from linkwright.symbolic.equilibria.states_of_rest import Equilibria, equilibria
from linkwright.symbolic.printing.formula_writer import text

G = 9.81


def planar(count: int) -> lw.Mechanism:
    """Links of length l and mass m in a vertical plane, angles from the horizontal."""
    row = {"alpha": 0.0, "d": 0.0, "theta": 0.0, "mass": "m", "com": ("c", 0, 0)}
    rows = [{"a": "l" if k else 0.0, **row} for k in range(count)]
    parameters = {"m": 1.3, "c": 0.5, **({"l": 0.8} if count > 1 else {})}
    return lw.from_dh(rows, convention="modified", gravity=(0, -G, 0), parameters=parameters)


def cart_pole() -> lw.Mechanism:
    with lw.Builder("cart-pole") as b:
        mass, bob, length = b.parameter("M", 2.0), b.parameter("m", 0.5), b.parameter("l", 0.7)
        cart, pole = b.body("cart", mass), b.body("pole", bob, (0, 0, length))
        b.joint("prismatic", b.ground, cart, "slide", axis=(1, 0, 0))
        b.joint("revolute", cart, pole, "pivot", axis=(0, 1, 0))
    return b.build()


def sprung(stiffness: float = 4.0, rest: float = 0.0) -> lw.Mechanism:
    """An upright pendulum that a spring holds."""
    with lw.Builder("sprung") as b:
        b.joint("revolute", b.ground, b.body("bob", 1.0, (0, 0, 1.0), (0.1, 0.1, 0.1)), "j", axis=(0, 1, 0))
        b.joint_spring("j", b.parameter("k", stiffness), rest=rest)
    return b.build()


def written(found: Equilibria) -> list[tuple[str, ...]]:
    return [tuple(p.written().values()) for p in found]


# -- exact ones -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_link_of_a_planar_arm_stands_or_hangs(count: int) -> None:
    """In angles from the vertical K is diagonal: as many modes grow as links stand up."""
    found = equilibria(dynamics(planar(count)))
    assert len(found) == 2**count
    for point in found:
        assert point.exact
        up = np.sin(np.cumsum(point.q))
        assert np.abs(up) == pytest.approx(np.ones(count), abs=1e-12)
        assert point.growing == (up > 0).sum()
        assert point.stability == ("unstable" if point.growing else "stable")
        assert len(point.frequencies) == count - point.growing
    assert found.notes == ()


def test_a_cart_rests_wherever_it_is() -> None:
    up, down = equilibria(dynamics(cart_pole()))
    assert [up.written(), down.written()] == [{"q1": "any", "q2": "0"}, {"q1": "any", "q2": "pi"}]
    assert (up.stability, up.growing, down.stability) == ("unstable", 1, "neutral")
    # The published frequency of a pole that hangs from a free cart: √((M + m) g / (M l)).
    assert down.frequencies * 2 * math.pi == pytest.approx([math.sqrt(2.5 * G / (2.0 * 0.7))], rel=1e-12)
    assert text(up.linearised().A.entries[13]) == "(9.81*M + 9.81*m)/(M*l)"


def test_springs_hold_shifts_by_a_formula() -> None:
    with lw.Builder("elastic pendulum") as b:
        arm, bob = b.body("arm"), b.body("bob", b.parameter("m", 2.0), inertia=(0.1, 0.1, 0.1))
        b.joint("revolute", b.ground, arm, axis=(0, 1, 0))
        b.joint("prismatic", arm, bob, "s")
        b.joint_spring("s", b.parameter("k", 100.0), rest=b.parameter("x0", 1.0))
    up, down = equilibria(dynamics(b.build()))
    assert list(up.written().values()) == ["0", "(-9.81*m + k*x0)/k"]
    assert list(down.written().values()) == ["pi", "(9.81*m + k*x0)/k"]
    assert down.q == pytest.approx([math.pi, 1.0 + 2.0 * G / 100.0], rel=1e-12)
    assert (up.growing, down.stability) == (1, "stable")
    moment = 2.0 * down.q[1] ** 2 + 0.1
    swings = np.sqrt([2.0 * G * down.q[1] / moment, 100.0 / 2.0]) / (2 * math.pi)
    assert down.frequencies == pytest.approx(sorted(swings), rel=1e-10)


def test_angles_that_do_not_matter_at_a_point_are_free_there() -> None:
    """A body on a spherical joint at the middle of its top: standing or hanging, it may turn about the vertical."""
    found = equilibria(dynamics(lw.chain(1, "spherical")))
    assert written(found)[:2] == [("0", "any", "0"), ("0", "any", "pi")]
    assert [p.growing for p in found][:2] == [2, 0]


def test_a_gear_that_halves_turns_twice_before_it_is_back() -> None:
    with lw.Builder("gear") as b:
        for k in range(2):
            bob = b.body(f"bob{k}", 1.0, (0, 0, -1.0), (0.1, 0.1, 0.1))
            b.joint("revolute", b.ground, bob, f"j{k}", axis=(0, 1, 0), at=(0, k, 0))
        b.mimic("j1", "j0", 0.5)
    found = equilibria(dynamics(b.build()))
    # sin q + ½ sin(q/2) = 0, so sin(q/2) = 0 or cos(q/2) = −¼.
    other = 2.0 * math.acos(-0.25)
    assert sorted(p.q[0] for p in found) == pytest.approx(sorted([-other, 0.0, other, 2 * math.pi]), abs=1e-9)


# -- as numbers -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("force", [5.0, -11.0])
def test_a_constant_torque_leans_the_first_link(force: float) -> None:
    """(m c + m l) g cos q1 = T and cos(q1 + q2) = 0: two answers each."""
    found = equilibria(dynamics(planar(2)), {"q1": force})
    lean = math.acos(force / (1.3 * G * (0.5 + 0.8)))
    wanted = [(a, b) for a in (lean, -lean) for b in (math.pi / 2, -math.pi / 2)]
    assert len(found) == 4
    for first, both in wanted:
        apart = [np.abs(np.exp(1j * np.cumsum(p.q)) - np.exp(1j * np.array([first, both]))).max() for p in found]
        assert min(apart) < 1e-9
        point = found[int(np.argmin(apart))]
        assert not point.exact
        assert point.growing == (math.sin(first) > 0) + (math.sin(both) > 0)


def test_a_torque_that_gravity_cannot_hold_has_no_equilibrium() -> None:
    found = equilibria(dynamics(planar(2)), [50.0, 0.0])
    assert not found
    assert "from no start did the forces come to balance; try less force" in str(found)


def test_a_force_may_be_a_symbol_of_its_own() -> None:
    dy = dynamics(planar(2))
    without = equilibria(dy, {"q1": "T"})
    assert not without
    assert "no value is known of T" in without.notes[0]
    plain, named = equilibria(dy, {"q1": 5}), equilibria(dy, {"q1": "T"}, {"T": 5.0})
    assert [p.q.tolist() for p in plain] == [p.q.tolist() for p in named]


def test_a_weak_spring_lets_a_pendulum_lean_to_both_sides() -> None:
    """k q = m g l sin q: leaning answers as long as k < m g l."""
    dy = dynamics(sprung())
    lean = brentq(lambda q: 4.0 * q - G * math.sin(q), 0.5, 3.0, xtol=1e-14)
    found = equilibria(dy)
    assert sorted(p.q[0] for p in found) == pytest.approx([-lean, 0.0, lean], abs=1e-9)
    assert [p.stability for p in sorted(found, key=lambda p: abs(p.q[0]))] == ["unstable", "stable", "stable"]
    (upright,) = equilibria(dy, values={"k": 12.0})
    assert (upright.q[0], upright.stability, upright.exact) == (0.0, "stable", True)
    assert upright.frequencies * 2 * math.pi == pytest.approx([math.sqrt((12.0 - G) / 1.1)], rel=1e-12)


def test_forces_that_laws_leave_at_rest_are_counted() -> None:
    with lw.Builder("drive") as b:
        b.joint("prismatic", b.ground, b.body("cart", 1.0), "s", axis=(1, 0, 0))
        b.joint_spring("s", 10.0)
        b.joint_force("s", lambda v: 4.0 * np.sqrt(1.0 + v * v))
    (point,) = equilibria(dynamics(b.build()))
    assert point.q == pytest.approx([0.4], rel=1e-12)


@pytest.mark.parametrize("mech", [planar(2), sprung(), sprung(7.0, 0.8), lw.chain(3)])
def test_stable_ones_are_those_that_the_mechanism_falls_to(mech: lw.Mechanism) -> None:
    found = equilibria(dynamics(mech))
    stable = [p for p in found if p.stability == "stable"]
    assert stable
    for point in stable:
        there = mech.equilibrium(point.q + 0.05)
        assert there.q == pytest.approx(point.q, abs=1e-8)
        assert sorted(m.frequency for m in there.linear.modes) == pytest.approx(sorted(point.frequencies), rel=1e-6)
    start = mech.equilibrium(np.random.default_rng(0).uniform(-0.5, 0.5, mech.nv)).q
    turns = [np.abs(np.exp(1j * start) - np.exp(1j * p.q)).max() for p in stable]
    assert min(turns) < 1e-7


def test_every_point_is_at_rest_in_the_mechanism() -> None:
    mech = lw.random_tree(3, 5, joints=["revolute"])
    found = equilibria(dynamics(mech, digits=16))
    assert found
    rest = np.zeros(mech.nv)
    for point in found:
        assert np.abs(mech.forward_dynamics(point.q, rest, rest)).max() < 1e-7
        linear = mech.linearise(point.q, rest, rest)
        assert (linear.eigenvalues.real > 1e-4).sum() == point.growing


# -- what is said ---------------------------------------------------------------------------------------------------
def falling() -> lw.Mechanism:
    with lw.Builder("fall") as b:
        b.joint("prismatic", b.ground, b.body("stone", b.parameter("m", 2.0)), "slide")
    return b.build()


def test_what_falls_wherever_it_is_has_no_equilibrium_but_one_by_force() -> None:
    dy = dynamics(falling())
    found = equilibria(dy)
    assert not found
    assert str(found).startswith("there is no equilibrium: q1 (joint 'slide') is pushed by -9.81*m wherever it is")
    (held,) = equilibria(dy, [2.0 * G])
    assert (held.written(), held.stability, held.exact) == ({"q1": "any"}, "neutral", False)


def test_too_many_combinations_are_said_and_numbers_still_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarters, "MOST", 15)
    found = equilibria(dynamics(planar(2)))
    assert len(found) == 4
    assert not any(p.exact for p in found)
    assert "2 angles have 16 combinations" in found.notes[0]


def test_points_on_a_curve_are_listed_in_part_and_said() -> None:
    """Gimbal lock of a spherical joint: whole curves of angles are one place."""
    found = equilibria(dynamics(lw.chain(1, "spherical")))
    assert any("one beside the other" in note for note in found.notes)
    assert len(found) < 30


def ball(com: tuple[float, float, float]) -> lw.Mechanism:
    """A pendulum on a ball joint."""
    with lw.Builder("ball") as b:
        b.joint("spherical", b.ground, b.body("bob", 1.0, com, (0.1, 0.1, 0.1)), "ball")
    return b.build()


@pytest.mark.parametrize("com", [(0.0, 0.0, -0.5), (0.3, 0.2, -0.5), (0.5, 0.0, 0.0)])
def test_a_ball_jointed_pendulum_rests_only_where_it_hangs_or_stands(com: tuple[float, float, float]) -> None:
    """Also at a pitch of 90°, where the forces on the angles vanish with the pendulum horizontal."""
    found = equilibria(dynamics(ball(com)))
    assert found
    for point in found:
        _, pitch, roll = point.q
        level = math.sin(roll) * com[1] + math.cos(roll) * com[2]
        height = -math.sin(pitch) * com[0] + math.cos(pitch) * level
        assert abs(height) == pytest.approx(math.hypot(*com), rel=1e-9)
        assert (point.growing > 0) == (height > 0)


def test_points_that_only_seem_at_rest_and_stability_at_gimbal_lock_are_told() -> None:
    assert any("such points are not listed" in note for note in equilibria(dynamics(ball((0, 0, -0.5)))).notes)
    hanging, standing = equilibria(dynamics(ball((0.5, 0, 0))))
    assert (hanging.stability, standing.stability) == ("unknown", "unstable")


def test_a_force_on_the_pitch_does_not_hold_what_the_angles_miss() -> None:
    """At a pitch of 90° and a roll of −90°, the moment of gravity is about the axis that no angle turns about."""
    found = equilibria(dynamics(ball((0, 0, -0.5))), {"q2": 0.1})
    assert found
    assert not any(abs(math.cos(p.q[1])) < 1e-4 for p in found)


def test_no_gravity_leaves_every_coordinate_free() -> None:
    (point,) = equilibria(dynamics(lw.from_dh([{"a": 1.0, "alpha": 0, "d": 0, "theta": 0, "mass": 1.0}] * 2)))
    assert point.free == ("q1", "q2")
    assert point.exact


@pytest.mark.parametrize(
    ("forces", "values", "message"),
    [
        ({"q9": 1.0}, None, "q9"),
        ([1.0], None, "there are 1 forces; give one for each of the 2 coordinates"),
        ({"q1": math.inf}, None, "the force on q1 is inf; give a finite number"),
        ({"q1": "2 T"}, None, "one plain name"),
        ({"q1": None}, None, "the force on q1 is None; give a finite number, or the name of a parameter"),
        ({"q1": "q2"}, None, "the force on q1 is 'q2', which moves"),
        ({"q1": "dq1"}, None, "the force on q1 is 'dq1', which moves"),
        ({"q1": "ddq2"}, None, "the force on q1 is 'ddq2', which moves"),
        (1.5, None, "the forces are 1.5; give one for each coordinate"),
        ("T", None, "the forces are 'T'; give one for each coordinate"),
        (None, {"mass": 1.0}, "mass"),
        (None, {"m": None}, "the value of m is None; give a finite number"),
        (None, {"q1": 1.0}, "no parameter named 'q1'"),
    ],
)
def test_bad_forces_and_values_are_refused_by_a_sentence(forces: Any, values: Any, message: str) -> None:
    with pytest.raises((ModelError, NameNotFound), match=message):
        equilibria(dynamics(planar(2)), forces, values)


def test_a_part_of_the_mass_matrix_is_not_enough_for_stability() -> None:
    dy = dynamics(planar(2))
    del dy.m[0, 1]
    with pytest.raises(LinkwrightError, match="the derivation was interrupted: M12 is missing; derive again"):
        equilibria(dy)
