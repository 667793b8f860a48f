"""What is given to a simulation is looked at before anything runs."""

from __future__ import annotations

import numpy as np
import pytest
from moving_models import double_pendulum, top

import linkwright as lw
from linkwright.errors import DtypeError, LinkwrightError, ModelError, NameNotFound, ShapeError
from run_settings import settings

BAD = [
    ({"q0": [1.0]}, ShapeError, r"q0 has shape \(1,\); it must be \(2,\)"),
    ({"v0": np.zeros(3)}, ShapeError, "v0 has shape"),
    ({"q0": [np.nan, 0.0]}, ModelError, r"q0\[0\] is nan"),
    ({"q0": "up"}, DtypeError, "q0 has dtype <U2; needed is float64"),
    ({"tau": [1.0]}, ShapeError, "tau has shape"),
    ({"tau": [np.inf, 0.0]}, ModelError, r"tau\[0\] is inf"),
    ({"method": "rk54"}, NameNotFound, "did you mean 'rk4' or 'rk45'"),
    ({"method": "rk4"}, ModelError, "give dt"),
    ({"method": "radau", "dt": 0.1}, ModelError, "leave dt out"),
    ({"dt": 0.0}, ModelError, "dt must be a number greater than zero"),
    ({"dt": -1.0}, ModelError, "dt must be a number greater than zero"),
    ({"rtol": 0.0}, ModelError, "rtol must be a number greater than zero"),
    ({"atol": np.nan}, ModelError, "atol must be a finite number"),
    ({"t_start": 1.0}, ModelError, "t_end = 1 is not after t_start = 1"),
    ({"t_end": np.inf}, ModelError, "t_end must be a finite number"),
    ({"t_end": "soon"}, ModelError, "t_end must be a number"),
    ({"times": [0.0, 2.0]}, ModelError, "outside"),
    ({"times": [0.5, 0.2]}, ModelError, "each larger"),
    ({"times": [0.5], "interval": 0.1}, ModelError, "both given"),
    ({"interval": 0.0}, ModelError, "interval must be a number greater than zero"),
    ({"max_step": 0.0}, ModelError, "max_step"),
    ({"events": 5}, ModelError, r"events are lw\.Event"),
    ({"t_start": "a"}, ModelError, "t_start must be a number"),
    ({"dt": 1e-300, "method": "rk4"}, ModelError, "do not fit into memory"),
]


@pytest.mark.parametrize(("options", "error", "text"), BAD)
def test_what_cannot_be_is_told(options, error, text):
    options = {"t_end": 1.0, **options}
    with pytest.raises(error, match=text):
        lw.simulate(double_pendulum(), **settings(**options))


def test_euler_parameters_far_from_unit_length_are_refused_and_near_ones_made_exact():
    q0 = np.array([0.0, 0.0, 0.0, 1.0, 0.1, 0.0, 0.0])
    sol = lw.simulate(top(), 0.1, q0=q0)
    np.testing.assert_allclose(sol.q[0, 3:], q0[3:] / np.linalg.norm(q0[3:]))
    with pytest.raises(ModelError, match="flight"):
        lw.simulate(top(), 0.1, q0=np.zeros(7))


def test_a_mechanism_that_cannot_move_is_told():
    with lw.Builder("post") as b:
        b.joint("fixed", b.ground, b.body("post", mass=1.0, inertia=(1.0, 1.0, 1.0)))
    with pytest.raises(ModelError, match="nothing moves in 'post'"):
        lw.simulate(b.build(), 1.0)


def test_given_arrays_are_not_changed():
    q0, v0 = np.array([0.3, 0.2]), np.array([1.0, 0.0])
    kept = q0.copy(), v0.copy()
    sol = lw.simulate(double_pendulum(), 0.1, q0=q0, v0=v0, dt=0.01)
    assert np.array_equal(q0, kept[0])
    assert np.array_equal(v0, kept[1])
    with pytest.raises(ValueError, match="read-only"):
        sol.q[0] = 1.0


def test_other_values_of_parameters_can_be_given():
    with lw.Builder("pendulum") as b:
        length = b.parameter("length", 1.0)
        bob = b.body("bob", mass=1.0, com=(length, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
        b.joint("revolute", b.ground, bob, name="hinge", axis=(0.0, 1.0, 0.0))
    mech = b.build()
    one, other = (lw.simulate(m, 0.5) for m in (mech, mech.with_parameters(length=0.5)))
    assert abs(one.q[-1, 0] - other.q[-1, 0]) > 1e-3
    with pytest.raises(LinkwrightError, match="lenght"):
        lw.simulate(mech.with_parameters(lenght=0.5), 0.5)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"events": lambda t, q, v: q[0]}, "lw.Event"),
        ({"interval": 1e-14}, "asks for"),
        ({"checkpoint": 3}, "a checkpoint is given by its path"),
        ({"progress": 3}, "progress"),
    ],
)
def test_what_is_no_event_interval_path_or_progress_is_told(options, text):
    with pytest.raises(ModelError, match=text):
        lw.simulate(lw.chain(2), 1.0, **settings(**options))


def test_an_unfinished_mechanism_is_told_to_be_built():
    with pytest.raises(ModelError, match="build"):
        lw.simulate(lw.Builder("x"), 1.0)
    with pytest.raises(ModelError, match="mechanism or the path"):
        lw.simulate(None, 1.0)


@pytest.mark.parametrize("direction", ["up", 5])
def test_the_direction_of_an_event_is_a_sign(direction):
    with pytest.raises(ModelError, match="direction"):
        lw.Event(lambda t, q, v: q[0], direction=direction)


@pytest.mark.parametrize("setting", [{"rtol": 1e-3}, {"atol": 1e-3}, {"max_step": 0.1}])
def test_a_setting_of_chosen_steps_is_noted_where_steps_are_of_one_length(setting) -> None:
    given = lw.simulate(double_pendulum(), 0.02, method="rk4", dt=0.01, **settings(**setting))
    plain = lw.simulate(double_pendulum(), 0.02, method="rk4", dt=0.01)
    assert any(f"{next(iter(setting))} did nothing" in note for note in given.status.notes)
    assert not plain.status.notes
    assert np.array_equal(given.q, plain.q)


def test_energy_is_conserved_only_where_nothing_but_gravity_acts() -> None:
    mech = lw.chain(2)
    with pytest.raises(NameNotFound, match="energy"):
        lw.simulate(mech, t_end=0.1, stepping=lw.Stepping(conserve="momentum"))
    with pytest.raises(ModelError, match="tau takes or gives energy"):
        lw.simulate(mech, t_end=0.1, tau=np.ones(2), stepping=lw.Stepping(conserve="energy"))
    with pytest.raises(ModelError, match="radau"):
        lw.simulate(mech, t_end=0.1, method="radau", stepping=lw.Stepping(conserve="energy"))
    sol = lw.simulate(
        mech, t_end=2.0, q0=[1.0, 0.5], v0=[9.0, -2.0], rtol=1e-4, stepping=lw.Stepping(conserve="energy")
    )
    energy = mech.kinetic_energy(sol.q, sol.v) + mech.potential_energy(sol.q)
    assert np.ptp(energy) < 1e-12 * mech.kinetic_energy(sol.q, sol.v).max()
