"""Inverse dynamics of closed chains by the virtual cut."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from closed_mechanisms import MECHANISMS, four_bar, geared_wheels, platform, rssr, state
from coupled_mechanisms import draw
from linkwright.errors import DtypeError, ModelError, ShapeError


def forces(mech: lw.Mechanism, seed: int = 3) -> np.ndarray:
    return np.where(mech.actuated, np.random.default_rng(seed).normal(size=mech.nv), 0.0)


@pytest.mark.parametrize("make", [four_bar, platform, rssr])
def test_inverse_undoes_forward_dynamics(make) -> None:
    mech = make()
    q, v = state(mech)
    tau = forces(mech)
    a = mech.forward_dynamics(q, v, tau)
    found = mech.inverse_dynamics(q, v, a)
    if make is not rssr:  # whose two actuators share one motion
        assert found == pytest.approx(tau, abs=1e-8)
    assert mech.forward_dynamics(q, v, found) == pytest.approx(a, abs=1e-8)
    assert not found[~mech.actuated].any()


def test_redundant_actuators_share_by_their_weights() -> None:
    mech = four_bar(actuated=("A", "D"))
    q, v = state(mech)
    a = mech.forward_dynamics(q, v, np.zeros(3))
    plain = mech.inverse_dynamics(q, v, a)
    assert plain == pytest.approx(np.zeros(3), abs=1e-9)
    a = mech.forward_dynamics(q, v, np.array([5.0, 0.0, 0.0]))
    even = mech.inverse_dynamics(q, v, a)
    heavy = mech.inverse_dynamics(q, v, a, weights=[1e6, 1.0])
    at, other = (mech.joints[n].v_slice for n in ("A", "D"))
    assert abs(heavy[at]) < 1e-4 * abs(even[at])
    for tau in (even, heavy):
        assert mech.forward_dynamics(q, v, tau) == pytest.approx(a, abs=1e-8)
    # Of all pairs that do it, the even ones have the least sum of squares.
    apart = heavy - even
    assert even @ apart == pytest.approx(0.0, abs=1e-8)
    assert abs(apart[other]) > 1e-3


@pytest.mark.compiled
def test_states_come_in_batches() -> None:
    mech = four_bar()
    q, v = mech.project(np.tile(mech.assemble(), (4, 1)), np.random.default_rng(0).normal(size=(4, 3)))
    tau = np.zeros((4, 3))
    tau[:, mech.joints["A"].v_slice] = [[1.0], [2.0], [3.0], [4.0]]
    a = mech.forward_dynamics(q, v, tau)
    assert mech.inverse_dynamics(q, v, a) == pytest.approx(tau, abs=1e-8)


def test_accelerations_that_open_a_loop_are_refused() -> None:
    mech = four_bar()
    q, v = state(mech)
    with pytest.raises(ModelError, match="'C'"):
        mech.inverse_dynamics(q, v, np.array([1.0, 0.0, 0.0]))


def test_a_motion_that_no_actuator_produces_is_named() -> None:
    """The coupler's spin about itself."""
    mech = rssr()
    q, v = state(mech)
    a = mech.forward_dynamics(q, v, np.zeros(mech.nv))
    spin = np.zeros(mech.nv)
    spin[mech.joints["B"].v_slice] = (1.0, 0.0, 0.0)
    with pytest.raises(ModelError, match="motion of 'B'"):
        mech.inverse_dynamics(q, v, a + spin)


@pytest.mark.parametrize("size", [0.0, 1e-9])
@pytest.mark.parametrize("make", [rssr, four_bar, lambda: four_bar(actuated=())])
def test_a_motion_that_needs_nearly_no_actuation_is_not_refused(make, size: float) -> None:
    mech = make()
    q, v = state(mech)
    tau = size * forces(mech)
    a = mech.forward_dynamics(q, v, tau)
    assert mech.inverse_dynamics(q, v, a) == pytest.approx(tau, abs=1e-8)


def test_a_parallelogram_that_hangs_at_rest_needs_no_actuator() -> None:
    """Every term vanishes there but for rounding."""
    with lw.Builder("swing") as b:
        left, right, floor = (b.body(n, 1.0, (0.5, 0, 0), (1e-3, 0.1, 0.1)) for n in ("left", "right", "floor"))
        b.gravity((0, -9.81, 0))
        b.joint("revolute", b.ground, left, "A", actuated=False)
        b.joint("revolute", b.triad(b.ground, (1, 0, 0)), right, "D", actuated=False)
        b.joint("revolute", b.triad(left, (1, 0, 0)), floor, "B", actuated=False)
        b.joint("revolute", b.triad(floor, (1, 0, 0)), b.triad(right, (1, 0, 0)), "C", cut=True)
    mech = b.build()
    q = np.zeros(3)
    for name, angle in (("A", -np.pi / 2), ("D", -np.pi / 2), ("B", np.pi / 2)):
        q[mech.joints[name].q_slice] = angle
    assert not mech.inverse_dynamics(q, np.zeros(3), np.zeros(3)).any()


def test_a_motion_without_actuators_that_needs_one_is_refused() -> None:
    mech = four_bar(actuated=())
    q, v = state(mech)
    with pytest.raises(ModelError, match="cannot produce"):
        mech.inverse_dynamics(q, v, mech.forward_dynamics(q, v, np.array([1e-3, 0.0, 0.0])))


def test_a_state_that_is_not_finite_has_no_forces_and_spoils_no_other() -> None:
    mech = four_bar()
    q, v = mech.project(np.tile(mech.assemble(), (3, 1)), np.random.default_rng(0).normal(size=(3, 3)))
    a = mech.forward_dynamics(q, v, np.zeros((3, 3)))
    right = mech.inverse_dynamics(q, v, a)
    for spoilt in (q, v, a):
        kept = spoilt[1].copy()
        spoilt[1] = np.nan
        found = mech.inverse_dynamics(q, v, a)
        assert np.isnan(found[1]).all()
        assert found[[0, 2]] == pytest.approx(right[[0, 2]], abs=1e-12)
        spoilt[1] = kept


def test_out_takes_the_forces_or_is_refused() -> None:
    mech = four_bar()
    q, v = state(mech)
    a = mech.forward_dynamics(q, v, np.ones(3))
    right, out = mech.inverse_dynamics(q, v, a), np.zeros(3)
    assert mech.inverse_dynamics(q, v, a, out=out) is out
    assert out == pytest.approx(right, abs=1e-12)
    with pytest.raises(DtypeError, match="float64"):
        mech.inverse_dynamics(q, v, a, out=np.zeros(3, np.float32))
    with pytest.raises(ShapeError, match=r"needed is \(3,\)"):
        mech.inverse_dynamics(q, v, a, out=np.zeros((2, 3)))
    assert mech.inverse_dynamics(q, v, a, out=a) == pytest.approx(right, abs=1e-12)


@pytest.mark.parametrize("function", ["inverse_dynamics", "reactions"])
def test_what_is_no_single_program_is_refused_with_what_to_ask_instead(function: str) -> None:
    mech = four_bar()
    with pytest.raises(ModelError, match=f"mech.{function}"):
        mech.program(function)
    q, v = state(mech)
    a = np.ones(3)
    tree = mech.program("tree_forces")(q, v, a)
    assert tree == pytest.approx(mech.mass_matrix(q) @ a + mech.bias_forces(q, v), abs=1e-10)


def test_weights_are_refused_where_no_loop_shares_forces() -> None:
    still = np.zeros(3)
    with pytest.raises(ModelError, match="weights share forces among the actuators of loops"):
        lw.chain(3).inverse_dynamics(still, still, still, weights=[1.0, 2.0, 3.0])


def careful(mech: lw.Mechanism, monkeypatch: pytest.MonkeyPatch) -> lw.Mechanism:
    """The mechanism without straight code: every state is worked out by singular values."""
    other = lw.Mechanism(mech.description)
    monkeypatch.setitem(other.auxiliary.actuators.__dict__, "straight", False)
    return other


SHARED = {
    "two actuators": lambda: four_bar(actuated=("A", "D")),
    "all actuated": lambda: four_bar(actuated=("A", "B", "D")),
    "none actuated": lambda: four_bar(actuated=()),
    "geared": lambda: geared_wheels(loop=True),
}


@pytest.mark.parametrize("name", [*MECHANISMS, *SHARED])
def test_straight_code_gives_the_forces_of_singular_values(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mech = {**MECHANISMS, **SHARED}[name]()
    q, v = state(mech, 0.2)
    other, rng = careful(mech, monkeypatch), np.random.default_rng(5)
    weights, wrenches = rng.uniform(0.1, 9.0, int(mech.actuated.sum())), rng.normal(size=(mech.nb, 6))
    for options in ({}, {"weights": weights}, {"wrenches": wrenches}):
        wrench = {"wrenches": wrenches} if "wrenches" in options else {}
        a = mech.forward_dynamics(q, v, forces(mech), t=0.2, **wrench)
        answers = [m.inverse_dynamics(q, v, a, t=0.2, **options) for m in (mech, other)]
        assert answers[0] == pytest.approx(answers[1], rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("seed", [1, 13, 29])
def test_straight_code_of_random_mechanisms_does_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mech = draw(seed).mech
    q, v = state(mech, 0.3)
    a = mech.forward_dynamics(q, v, forces(mech), t=0.3)
    other = careful(mech, monkeypatch)
    one, two = (m.inverse_dynamics(q, v, a, t=0.3) for m in (mech, other))
    assert one == pytest.approx(two, rel=1e-10, abs=1e-10)


def test_regular_states_do_not_take_the_careful_path(monkeypatch: pytest.MonkeyPatch) -> None:
    mech = four_bar()
    q, v = mech.project(np.tile(mech.assemble(), (4, 1)), np.random.default_rng(0).normal(size=(4, 3)))
    a = mech.forward_dynamics(q, v, np.zeros(3))
    mech.inverse_dynamics(q, v, a)
    asked = []
    monkeypatch.setattr(type(mech.auxiliary.actuators), "_careful", lambda *x, **_: asked.append(x))
    mech.inverse_dynamics(q, v, a)
    for k in range(4):
        mech.inverse_dynamics(q[k], v[k], a[k])
    assert not asked


def test_a_dead_centre_takes_the_careful_path_and_its_neighbours_agree() -> None:
    """The coupler and the rocker in line: the crank's share of the motion vanishes, and both can be actuated."""
    mech = four_bar(actuated=("A", "D"))
    rng = np.random.default_rng(1)
    states = []
    for angle in np.linspace(0.0, 2 * np.pi, 41):
        q = mech.assemble()
        q[mech.joints["A"].q_slice] = angle
        q = mech.assemble(q, fixed=["A"])
        states.append(mech.project(q, rng.normal(size=3)))
    q, v = (np.array(x) for x in zip(*states, strict=True))
    tau = np.where(mech.actuated, rng.normal(size=(41, 3)), 0.0)
    a = mech.forward_dynamics(q, v, tau)
    assert mech.forward_dynamics(q, v, mech.inverse_dynamics(q, v, a)) == pytest.approx(a, rel=1e-9, abs=1e-9)
