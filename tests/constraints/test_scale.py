"""Metres, millimetres and kilometres: a mechanism of another size moves in the same way, with the same work."""

import numpy as np
import pytest
from linkages import four_bar, kinematics, slider_crank

import linkwright as lw
from linkwright.mechanism.expression import TIME

LENGTHS = np.array([1.0, 3.0, 2.5, 3.0])
TIMES = np.linspace(0.0, 6.0, 61)


@pytest.fixture(scope="module")
def full():
    off, turn = np.array([[0.1, -0.2, 0.05], [0.3, 0.1, 0.2], [-0.2, 0.3, 0.0]]), (0.3, -0.3, 0.4)
    return lambda s: four_bar(s * LENGTHS, 0.9 + TIME, 0.9, off=s * off, turn=turn)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_the_motion_scales_and_takes_the_same_iterations(full, scale):
    one, other = lw.analyse(full(1.0), times=TIMES), lw.analyse(full(scale), times=TIMES)
    assert one.status
    assert other.status
    for name in ("crank", "coupler", "rocker"):
        for quantity in ("position", "velocity", "acceleration"):
            a, b = (getattr(sol, quantity)(name) for sol in (one, other))
            np.testing.assert_allclose(b / scale, a, atol=1e-9)
        np.testing.assert_allclose(other.angular_velocity(name), one.angular_velocity(name), atol=1e-9)
    np.testing.assert_array_equal(other.iterations[1:], one.iterations[1:])


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_freedom_is_the_same_in_every_size(full, scale):
    reports = []
    for s in (1.0, scale):
        k = kinematics(full(s))
        reports.append(k.freedom(k.assemble(0.0, 1e-3 * s), 0.0))
    assert reports[0] == reports[1]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_stop_is_told_in_every_size(scale):
    sol = lw.analyse(slider_crank(scale, 0.8 * scale, TIME, 0.0), times=TIMES)
    assert sol.status.reason == "out of reach"
    assert sol.status.time == pytest.approx(np.arcsin(0.8), abs=1e-3)
    assert sol.status.residual < 1e-2 * scale


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_a_misfit_is_found_in_every_size(scale):
    mech = four_bar(scale * np.array([1.0, 3.0, 2.5, 3.0]), None, 0.9)
    k = kinematics(mech)
    assert k.assemble(0.0, 1e-3 * scale).miss < 1e-10 * scale


def test_a_small_part_on_a_large_one_is_as_exact():
    """A crank of 1 mm drives a bar of 10 m."""
    sol = lw.analyse(slider_crank(1e-3, 10.0, 0.3 + TIME, 0.3), times=TIMES)
    assert sol.status, sol.status
    angle = 0.3 + TIMES
    exact = 1e-3 * np.cos(angle) + np.sqrt(100.0 - 1e-6 * np.sin(angle) ** 2)
    np.testing.assert_allclose(sol.position("block")[:, 0], exact, atol=1e-12)
    rate = -1e-3 * np.sin(angle) - 0.5e-6 * np.sin(2 * angle) / np.sqrt(100.0 - 1e-6 * np.sin(angle) ** 2)
    np.testing.assert_allclose(sol.velocity("block")[:, 0], rate, atol=1e-12)
