"""Settings objects of runs and rollouts: where their fields belong, and that the examples of their docstrings hold."""

import doctest
from dataclasses import fields
from inspect import signature

import numpy as np
import pytest

import linkwright as lw
from linkwright.analysis import analyse as analysis
from linkwright.errors import ArgumentError
from linkwright.results import solution
from linkwright.results import solution_files as storage
from linkwright.simulation import events, rollout, simulate
from linkwright.simulation import run_settings as settings

MECH = lw.chain(1)
FIELDS = [(kind, field.name) for kind in (lw.Stepping, lw.Saving) for field in fields(kind)]


@pytest.mark.parametrize(("kind", "name"), FIELDS)
def test_a_field_that_is_given_as_an_argument_is_refused_with_its_settings_object(kind, name):
    with pytest.raises(ArgumentError, match=rf"{name!r}; give \w+=lw.{kind.__name__}\({name}=...\)") as caught:
        lw.simulate(MECH, 0.1, **{name: 0.5})
    assert isinstance(caught.value, TypeError)
    assert caught.value.argument == name


@pytest.mark.parametrize("name", ["every", "outputs"])
def test_fields_of_samples_are_no_arguments_of_a_rollout(name):
    with pytest.raises(ArgumentError, match=rf"samples=lw.Samples\({name}=...\)"):
        lw.rollout(MECH, [0.0], [0.0], 0.1, 1, **{name: 1})


def test_parameters_of_a_run_are_those_of_the_mechanism():
    with lw.Builder("pendulum") as b:
        length = b.parameter("length", 1.0)
        b.gravity((0, -9.81, 0))
        bob = b.body("bob", 1.0, (0, -length, 0), (0.1, 0.1, 0.1))
        b.joint("revolute", b.ground, bob, "hinge", axis=(0, 0, 1))
    mech = b.build()
    sol = lw.simulate(mech, 0.1, q0=[0.5], parameters={"length": 2.0})
    assert np.array_equal(sol.q, lw.simulate(mech.with_parameters(length=2.0), 0.1, q0=[0.5]).q)
    assert not np.array_equal(sol.q[-1], lw.simulate(mech, 0.1, q0=[0.5]).q[-1])


def test_an_argument_that_nobody_knows_is_pythons_error():
    with pytest.raises(TypeError, match="stepp"):
        lw.simulate(MECH, 0.1, stepp=1.0)


@pytest.mark.parametrize("name", ["stepping", "saving"])
def test_settings_of_another_type_are_refused(name):
    with pytest.raises(ArgumentError, match=rf"{name} must be lw.{name.capitalize()}"):
        lw.simulate(MECH, 0.1, **{name: {"interval": 0.1}})


def test_few_arguments_are_left():
    assert len(signature(lw.simulate).parameters) == 12
    assert len(signature(lw.rollout).parameters) == 10


def test_an_analysis_takes_settings_of_its_simulation():
    times = np.linspace(0.2, 0.5, 4)
    sol = lw.analyse(MECH, times=times, analysis="dynamic", stepping=lw.Stepping(max_step=0.01))
    assert sol.time.tolist() == times.tolist()
    assert sol.counters.steps >= 30


@pytest.mark.parametrize(
    "settings", [{"stepping": lw.Stepping(t_start=0.1)}, {"saving": lw.Saving(interval=0.1)}], ids=["start", "interval"]
)
def test_the_times_of_an_analysis_are_its_own(settings):
    with pytest.raises(lw.errors.ModelError, match="times of an analysis"):
        lw.analyse(MECH, times=[0.0, 1.0], analysis="dynamic", **settings)


@pytest.mark.parametrize(
    "module", [settings, simulate, rollout, events, analysis, solution, storage], ids=lambda module: module.__name__
)
def test_examples_in_docstrings_hold(module):
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
