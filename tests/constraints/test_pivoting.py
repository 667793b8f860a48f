"""The paper's way with freedom left keeps to its branch and tells why it stops, as the motion of least norm does."""

from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from scaled_models import scaled

SAMPLE = Path(__file__).resolve().parents[2] / "examples/models/slider_crank.mks"


@pytest.fixture
def sample(tmp_path):
    """The paper's sample with another law of block.x."""

    def analysed(law, times, more="", freedom="pivoting"):
        path = tmp_path / "sample.mks"
        path.write_text(SAMPLE.read_text().replace("8.00 + 3*sin(TIME));", f"{law});\n{more}"))
        return lw.analyse(path, times=times, freedom=freedom)

    return analysed


@pytest.mark.parametrize("interval", [0.1, 0.9, 1.5])
def test_the_branch_is_kept_at_every_print_interval(sample, interval):
    """The crank, 6, and the coupler, 10, come near to being stretched at TIME = π/2, and do not get there."""
    sol = sample("10 + 5.688*sin(TIME)", np.arange(0.0, 8.0, interval))
    assert sol.status, sol.status
    x = 10 + 5.688 * np.sin(sol.time)
    along = (x**2 + 36 - 100) / (2 * x)
    np.testing.assert_allclose(sol.position("sph1pend1")[:, 0], along, atol=1e-8)
    np.testing.assert_allclose(sol.position("sph1pend1")[:, 1], np.sqrt(36 - along**2), atol=1e-8)


@pytest.mark.parametrize("freedom", ["pivoting", "minimum-norm"])
def test_a_driver_that_asks_for_what_is_out_of_reach_is_told_with_its_time(sample, freedom):
    sol = sample("10 + 8*sin(TIME)", np.linspace(0.0, 3.0, 31), freedom=freedom)
    s = sol.status
    assert (s.ok, s.reason, s.element) == (False, "out of reach", "d1")
    assert s.time == pytest.approx(np.arcsin(6 / 8), abs=1e-5)
    assert 0.0 < s.residual < 1e-3
    assert sol.time[-1] == pytest.approx(0.8)


def test_a_law_that_jumps_is_told_with_its_size(sample):
    s = sample("8 + if(TIME < 1.03, 0, 0.5)", np.linspace(0.0, 3.0, 31)).status
    assert (s.reason, s.element, s.residual) == ("jump", "d1", 0.5)
    assert s.time == pytest.approx(1.03, abs=1e-6)


def test_a_corner_of_a_law_is_passed_with_a_note(sample):
    sol = sample("8 + abs(TIME - 1.03)", np.linspace(0.0, 3.0, 31))
    assert sol.status, sol.status
    assert "corner" in sol.status.notes[-1]
    np.testing.assert_allclose(sol.position("block")[:, 0], 8 + np.abs(sol.time - 1.03), atol=1e-9)


def test_drivers_that_contradict_are_named(sample):
    s = sample("8 + TIME", np.linspace(0.0, 3.0, 31), "DRIVER d2 (block.x = 8 + 2*TIME);").status
    assert (s.reason, s.time) == ("lock-up", 0.0)
    assert "'d1'" in s.message
    assert "'d2'" in s.message


def test_joints_are_closed_to_rounding(sample):
    sol = sample("8 + 3*sin(TIME)", np.arange(0.0, 8.0, 0.1))
    for one, other in (("rev1ground", "rev1pend1"), ("sph1pend1", "sph1pend2"), ("sph2pend2", "sph2block")):
        assert np.abs(sol.position(one) - sol.position(other)).max() < 1e-13, (one, other)
    assert np.abs(sol.position("block")[:, 1:]).max() < 1e-13
    assert np.abs(sol.position("block")[:, 0] - 8 - 3 * np.sin(sol.time)).max() < 1e-13


@pytest.mark.parametrize("length", [1e-6, 1e6])
def test_the_same_coordinates_are_held_in_every_unit_of_length(length: float) -> None:
    """A slider-crank whose rod may turn about itself."""
    mech = lw.load(SAMPLE)
    times = np.linspace(0.0, 1.0, 11)
    one, other = (lw.analyse(scaled(mech, x, 1.0), times=times, freedom="pivoting") for x in (1.0, length))
    for body in ("pend1", "pend2", "block"):
        np.testing.assert_allclose(other.velocity(body) / length, one.velocity(body), rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(other.angular_velocity(body), one.angular_velocity(body), rtol=0.0, atol=1e-9)
