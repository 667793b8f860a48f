"""Inverse dynamics of closed chains by the virtual cut."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from closed_mechanisms import four_bar, platform, rssr, state
from linkwright.errors import ModelError


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
