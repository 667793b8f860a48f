"""Timing of the control step: what is measured is there, and the steps that are timed are those in use."""

import numpy as np
import pytest

from linkwright.studies.manipulator.machine import SIX_LEG
from linkwright.studies.manipulator.timing import FORMS, PAPER, measured, path

pytestmark = pytest.mark.slow  # every form of the step is compiled


@pytest.fixture(scope="module")
def timing():
    return measured(SIX_LEG, steps=40, rate=1000.0, rounds=1)


def test_every_part_of_the_papers_table_and_every_form_is_timed(timing):
    assert set(timing.parts) == set(PAPER)
    assert set(timing.forms) == set(FORMS)
    assert all(time > 0.0 for pair in timing.parts.values() for time in pair)
    assert all(time > 0.0 for time in timing.forms.values())


def test_forward_kinematics_takes_few_corrections_in_use(timing):
    average, most = timing.corrections
    assert 0 < average <= most <= 4


def test_one_program_of_a_leg_has_fewer_operations_than_its_parts(timing):
    assert timing.counts["one program"] < timing.counts["sum of the parts"]
    parts = ("inverse kinematics", "rates and accelerations", "Newton–Euler", "Jacobian and its share")
    assert timing.counts["sum of the parts"] == sum(timing.counts[part] for part in parts)


def test_the_loop_tells_of_every_step(timing):
    assert timing.late.shape == timing.took.shape == (40,)
    assert (timing.late >= 0.0).all()
    assert (timing.took > 0.0).all()
    assert 0 <= timing.missed <= 40


def test_the_path_stays_in_the_machines_range():
    samples = path(SIX_LEG, 500, 2e-3)
    assert np.abs(samples.theta).max() < np.pi
    assert np.linalg.norm(samples.twist[:, :3], axis=1).max() > 1.0
