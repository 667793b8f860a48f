"""Measures of responses, against series whose measures are known."""

import numpy as np
import pytest

from linkwright import control
from linkwright.errors import ModelError

TIME = np.arange(0.0, 1.0, 0.002)


def second_order(t, w):
    """The step response of w²/(s + w)²."""
    x = w * np.maximum(t, 0.0)
    return 1.0 - (1.0 + x) * np.exp(-x)


def test_half_of_the_papers_wanted_response_comes_after_seventeen_milliseconds():
    fine = np.arange(0.0, 0.2, 1e-5)
    assert control.t50(fine, 5.0 * second_order(fine, 100.0), 5.0) == pytest.approx(16.78e-3, abs=2e-5)


def test_t50_counts_from_the_step_of_the_reference():
    assert control.t50(TIME, 5.0 * second_order(TIME - 0.1, 100.0), 5.0, start=0.1) == pytest.approx(16.8e-3, abs=1e-4)


def test_a_downward_step_has_the_same_delay():
    y = second_order(TIME, 50.0)
    assert control.t50(TIME, -3.0 * y, -3.0) == control.t50(TIME, 3.0 * y, 3.0)


def test_a_level_that_is_never_reached_has_no_time():
    assert np.isnan(control.crossing_time(TIME, 0.1 * TIME, 1.0))


def test_crossings_lie_between_samples():
    assert control.crossing_time([0.0, 1.0, 2.0], [0.0, 1.0, 3.0], 2.0) == 1.5


def test_vibration_is_half_of_the_way_between_the_extremes_in_the_window():
    y = 7.0 + np.where(TIME < 0.5, 100.0, 0.4) * np.sin(2.0 * np.pi * 16.0 * TIME)
    assert control.vibration(TIME, y, (0.5, 0.99)) == pytest.approx(0.4, rel=1e-2)


def test_a_window_without_samples_is_refused():
    with pytest.raises(ModelError, match="holds 0 samples"):
        control.vibration(TIME, TIME, (3.0, 4.0))


def test_a_late_copy_of_a_move_is_late_by_that_and_has_no_overshoot():
    r = np.clip((TIME - 0.1) / 0.2, 0.0, 1.0)
    y = np.clip((TIME - 0.13) / 0.2, 0.0, 1.0)
    found = control.move(TIME, r, y)
    assert found.delay == pytest.approx(0.03, abs=1e-9)
    assert found.overshoot == 0.0
    assert found.steady_error == 0.0
    assert found.rms_error > 0.0


def test_overshoot_and_steady_error_of_a_downward_move():
    r = -np.clip(TIME / 0.2, 0.0, 1.0)
    y = r - 0.02 - 0.05 * np.exp(-((TIME - 0.3) ** 2) / 1e-3)
    found = control.move(TIME, r, y)
    assert found.overshoot == pytest.approx(0.07, rel=1e-3)
    assert found.steady_error == pytest.approx(0.02, rel=1e-6)


def test_a_move_without_a_way_is_refused():
    with pytest.raises(ModelError, match="ends where it begins"):
        control.move(TIME, 0.0 * TIME, TIME)


def test_the_distance_from_a_path_does_not_ask_when():
    angle = np.linspace(0.0, np.pi, 400)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    late = np.stack([np.cos(0.5 * angle), np.sin(0.5 * angle)], axis=1)
    assert control.path_error(circle, late) < 1e-4
    assert control.path_error(circle, 1.1 * circle) == pytest.approx(0.1, rel=1e-3)
