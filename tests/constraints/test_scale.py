"""Metres, millimetres and kilometres: a mechanism of another size moves in the same way, with the same work."""

import numpy as np
import pytest
from linkages import four_bar, kinematics, slider_crank

import linkwright as lw
from linkwright.errors import AssemblyError
from linkwright.model.expression import TIME

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
def test_assembly_is_as_exact_in_every_size(scale):
    k = kinematics(four_bar(scale * LENGTHS, None, 0.9, off=np.full((3, 3), 0.1 * scale)))
    assert k.assemble(0.0, 1e-3 * scale).miss < 1e-10 * scale


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e3])
def test_a_misfit_is_found_in_every_size(scale):
    """Bars that reach 6 to a pivot 8 away, in µm, mm, m and km, all with a tolerance of 1 mm."""
    with lw.Builder("short") as b:
        crank, coupler, rocker = (b.body(name) for name in ("crank", "coupler", "rocker"))
        b.place(coupler, (scale, 0, 0))
        b.place(rocker, (8 * scale, 0, 0), f=(-1, 0, 0))
        b.joint("revolute", b.ground, crank, "A")
        b.joint("revolute", b.triad(crank, origin=(scale, 0, 0)), coupler, "B")
        b.joint("revolute", b.triad(coupler, origin=(3 * scale, 0, 0)), b.triad(rocker, origin=(2 * scale, 0, 0)), "C")
        b.joint("revolute", b.triad(b.ground, origin=(8 * scale, 0, 0)), rocker, "D")
    with pytest.raises(AssemblyError, match="joint 'C' stays open") as told:
        kinematics(b.build()).assemble(0.0, 1e-3)
    np.testing.assert_allclose(list(told.value.misses.values()), 2.0 * scale, rtol=1e-3)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_rounded_numbers_leave_the_same_gap_in_every_size(scale):
    """A four-bar whose last pivot is 5e-4 of its size out of the plane of the others, by the default tolerance."""
    with lw.Builder("rounded") as b:
        crank, coupler, rocker = (b.body(name) for name in ("crank", "coupler", "rocker"))
        b.place(coupler, (scale, 0, 0))
        b.place(rocker, (3 * scale, 0, 0), f=(1, 0, 0))
        b.joint("revolute", b.ground, crank, "A")
        b.joint("revolute", b.triad(crank, origin=(scale, 0, 0)), coupler, "B")
        b.joint("revolute", b.triad(coupler, origin=(3 * scale, 0, 0)), b.triad(rocker, origin=(2 * scale, 0, 0)), "C")
        b.joint("revolute", b.triad(b.ground, origin=(3 * scale, 0, 5e-4 * scale)), rocker, "D")
    state = kinematics(b.build()).assemble(0.0)
    assert 1e-5 * scale < state.miss < 1e-3 * scale


def test_a_small_part_on_a_large_one_is_as_exact():
    """A crank of 1 mm drives a bar of 10 m."""
    sol = lw.analyse(slider_crank(1e-3, 10.0, 0.3 + TIME, 0.3), times=TIMES)
    assert sol.status, sol.status
    angle = 0.3 + TIMES
    exact = 1e-3 * np.cos(angle) + np.sqrt(100.0 - 1e-6 * np.sin(angle) ** 2)
    np.testing.assert_allclose(sol.position("block")[:, 0], exact, atol=1e-12)
    rate = -1e-3 * np.sin(angle) - 0.5e-6 * np.sin(2 * angle) / np.sqrt(100.0 - 1e-6 * np.sin(angle) ** 2)
    np.testing.assert_allclose(sol.velocity("block")[:, 0], rate, atol=1e-12)
