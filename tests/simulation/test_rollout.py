"""Many motions side by side."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from moving_models import oscillator, out_of_reach

import linkwright as lw
from closed_mechanisms import four_bar
from linkwright.errors import ModelError, NameNotFound, ShapeError


def states(mech: lw.Mechanism, *shape: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    q = mech.integrate(np.broadcast_to(mech.neutral(), (*shape, mech.nq)).copy(), rng.normal(size=(*shape, mech.nv)))
    return q, rng.normal(size=(*shape, mech.nv))


def test_each_motion_is_the_one_of_simulate() -> None:
    mech = lw.chain(3)
    q, v = states(mech, 5)
    many = lw.rollout(mech, q, v, 1e-2, 40)
    assert many.q is not None
    assert many.v is not None
    assert many.q.shape == (5, 41, 3)
    one = lw.simulate(mech, 0.4, q0=q[3], v0=v[3], method="rk4", dt=1e-2)
    assert many.q[3] == pytest.approx(one.q, abs=1e-12)
    assert many.v[3] == pytest.approx(one.v, abs=1e-12)
    assert many.time == pytest.approx(one.time, abs=1e-12)


def test_closed_mechanisms_stay_closed() -> None:
    mech = four_bar()
    q, v = mech.project(np.tile(mech.assemble(), (6, 1)), np.random.default_rng(1).normal(size=(6, 3)))
    many = lw.rollout(mech, q, v, 5e-3, 100, samples=lw.Samples(every=50))
    _, phi = mech.kernels.position_correction(many.final_q)
    _, rate = mech.kernels.velocity_projection(many.final_q, many.final_v)
    assert np.abs(phi).max() < 1e-10
    assert np.abs(rate).max() < 1e-9


def test_samples_are_every_so_many_steps_and_the_last() -> None:
    mech = lw.chain(2)
    q, v = states(mech, 3)
    all_of_them = lw.rollout(mech, q, v, 1e-2, 25)
    some = lw.rollout(mech, q, v, 1e-2, 25, samples=lw.Samples(every=10))
    assert some.time == pytest.approx([0.0, 0.1, 0.2, 0.25])
    assert some.q is not None
    assert all_of_them.q is not None
    assert np.array_equal(some.q, all_of_them.q[:, [0, 10, 20, 25]])


@pytest.mark.parametrize("method", ["rk4", "rk45", "dop853", "semi-implicit-euler"])
def test_every_explicit_method_runs(method: str) -> None:
    mech = lw.chain(2)
    q, v = states(mech, 9)
    fine = lw.rollout(mech, q, v, 1e-4, 1000, samples=lw.Samples(every=1000))
    found = lw.rollout(mech, q, v, 1e-3, 100, method=method, samples=lw.Samples(every=100))
    tolerance = 0.05 if method == "semi-implicit-euler" else 1e-6
    assert found.final_q == pytest.approx(fine.final_q, abs=tolerance)


def test_forces_are_constant_given_for_each_step_or_a_law() -> None:
    mech = lw.chain(2)
    q, v = states(mech, 4)
    force = np.random.default_rng(2).normal(size=(4, 2))
    constant = lw.rollout(mech, q, v, 1e-2, 20, force)
    stepwise = lw.rollout(mech, q, v, 1e-2, 20, np.repeat(force[:, None], 20, axis=1))
    assert constant.q == pytest.approx(stepwise.q, abs=1e-13)
    damped = lw.rollout(mech, q, v, 1e-2, 20, lambda t, q, v: -0.3 * v + np.sin(t))
    one = lw.simulate(mech, 0.2, q0=q[1], v0=v[1], tau=lambda t, q, v: -0.3 * v + np.sin(t), method="rk4", dt=1e-2)
    assert damped.q is not None
    assert damped.q[1] == pytest.approx(one.q, abs=1e-12)


@pytest.mark.parametrize("make", [lambda: lw.chain(2), four_bar], ids=["tree", "closed"])
@pytest.mark.parametrize("method", ["rk4", "semi-implicit-euler"])
def test_forces_for_each_step_are_those_of_their_own_step(method: str, make: Callable[[], lw.Mechanism]) -> None:
    mech = make()
    q, v = states(mech, 3)
    if mech.closed:
        q, v = mech.project(np.tile(mech.assemble(), (3, 1)), v)
    force = 5.0 * np.random.default_rng(3).normal(size=(3, 6, mech.nv))
    found = lw.rollout(mech, q, v, 1e-2, 6, force, method=method)
    assert found.q is not None
    assert found.v is not None
    for k in range(6):
        one = lw.rollout(mech, q, v, 1e-2, 1, force[:, k], method=method)
        q, v = one.final_q, one.final_v
        assert found.q[:, k + 1] == pytest.approx(q, abs=1e-12)
        assert found.v[:, k + 1] == pytest.approx(v, abs=1e-12)


def test_a_pulse_of_one_step_acts_in_that_step() -> None:
    mech = oscillator(stiffness=0.0)
    pulse = np.zeros((1, 3, 1))
    pulse[0, 1, 0] = 5.0
    found = lw.rollout(mech, [[0.0]], [[0.0]], 0.1, 3, pulse, method="semi-implicit-euler")
    assert found.v is not None
    assert found.v[0, :, 0] == pytest.approx([0.0, 0.0, 0.5, 0.5], abs=1e-14)


def test_motions_whose_drivers_go_beyond_reach_are_told() -> None:
    mech = out_of_reach()
    q = mech.assemble([0.0, 1.0])
    found = lw.rollout(mech, [q, q], np.zeros(2), 0.01, 100, t_start=0.0)
    assert found.q is not None
    assert found.ok.tolist() == [False, False]
    good = np.isfinite(found.q[0, :, 0])
    assert 10 < good.sum() < 100
    assert good[: good.sum()].all()
    assert np.abs(mech.program("position_correction")(found.q[0, good], found.time[good])[1]).max() < 1e-9
    assert not lw.rollout(mech, q, np.zeros(2), 0.01, 1, t_start=1.5).ok


def test_only_what_is_asked_for_is_kept() -> None:
    mech = lw.chain(2)
    q, v = states(mech, 2, 3)
    found = lw.rollout(mech, q, v, 1e-2, 10, samples=lw.Samples(outputs=lambda t, q, v: np.array([t, q[0] * v[1]])))
    assert found.q is None
    assert found.y is not None
    assert found.y.shape == (2, 3, 11, 2)
    assert found.y[1, 2, :, 0] == pytest.approx(found.time)
    full = lw.rollout(mech, q, v, 1e-2, 10, samples=lw.Samples(outputs=("q", "v", "a")))
    assert full.q is not None
    assert full.v is not None
    assert full.a is not None
    assert found.y[..., 1] == pytest.approx(full.q[..., 0] * full.v[..., 1], abs=1e-13)
    assert full.a[1, 2, 4] == pytest.approx(
        mech.forward_dynamics(full.q[1, 2, 4], full.v[1, 2, 4], np.zeros(2)), abs=1e-10
    )


def test_no_motions_at_all_have_laws_too() -> None:
    none = np.zeros((0, 2))
    found = lw.rollout(
        lw.chain(2), none, none, 1e-2, 5, lambda t, q, v: -v, samples=lw.Samples(outputs=lambda t, q, v: q + v)
    )
    assert found.y is not None
    assert found.y.shape == (0, 6, 2)


def test_a_motion_that_blows_up_leaves_the_others_alone() -> None:
    mech = lw.chain(2)
    q, v = states(mech, 3)
    v[1] = 1e200
    found = lw.rollout(mech, q, v, 1e-2, 10)
    assert found.ok.tolist() == [True, False, True]
    alone = lw.rollout(mech, q[[0, 2]], v[[0, 2]], 1e-2, 10)
    assert np.array_equal(found.final_q[[0, 2]], alone.final_q)
    assert "1 without finite numbers" in repr(found)


def test_bad_arguments_are_named() -> None:
    mech = lw.chain(2)
    q, v = states(mech, 3)
    with pytest.raises(ShapeError, match="q0"):
        lw.rollout(mech, q[:, :1], v, 1e-2, 10)
    with pytest.raises(ShapeError, match="tau"):
        lw.rollout(mech, q, v, 1e-2, 10, np.zeros(3))
    with pytest.raises(ShapeError, match="agree"):
        lw.rollout(mech, q, v[:2], 1e-2, 10)
    with pytest.raises(NameNotFound, match="radau"):
        lw.rollout(mech, q, v, 1e-2, 10, method="radau")
    with pytest.raises(ModelError, match="steps"):
        lw.rollout(mech, q, v, 1e-2, 0)
    with pytest.raises(ModelError, match="dt"):
        lw.rollout(mech, q, v, -1.0, 10)
    with pytest.raises(ModelError, match="dt"):
        lw.rollout(mech, q, v, "a", 10)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="t_start"):
        lw.rollout(mech, q, v, 1e-2, 10, t_start="a")  # type: ignore[arg-type]
    with pytest.raises(NameNotFound, match="energy"):
        lw.rollout(mech, q, v, 1e-2, 10, samples=lw.Samples(outputs=("energy",)))
    with pytest.raises(ModelError, match="NumPy syntax"):
        lw.rollout(mech, q, v, 1e-2, 10, lambda t, q, v: v if q[0] > 0 else -v)


@pytest.mark.parametrize("dt", [0.0, -1.0, np.inf, np.nan, "fast", None, [0.1]], ids=str)
def test_a_step_that_is_no_length_of_time_is_told(dt):
    mech = lw.chain(1)
    with pytest.raises(ModelError, match=r"dt must be a (finite )?number"):
        lw.rollout(mech, mech.neutral(), np.zeros(mech.nv), dt=dt, steps=1)
