"""Linear systems: they go together, come from many forms, and tell what is wrong with them."""

import numpy as np
import pytest
from linear_cases import random_system
from scipy.signal import TransferFunction, dfreqresp, freqresp

from linkwright.control.linear_systems import (
    System,
    delay,
    from_polynomials,
    gains,
    lft,
    period,
    series,
    system,
    to_continuous,
    to_sampled,
)
from linkwright.errors import ModelError, ShapeError


def test_a_transfer_function_has_the_response_of_its_polynomials() -> None:
    S = from_polynomials([2.0, 3.0], [1.0, 0.4, 9.0])
    s = 1j * np.array([0.1, 3.0, 40.0])
    np.testing.assert_allclose(S.at(s.imag)[:, 0, 0], (2 * s + 3) / (s**2 + 0.4 * s + 9), rtol=1e-12)


def test_systems_come_from_python_control_and_go_back() -> None:
    control = pytest.importorskip("control")
    given = control.tf([[[1.0], [2.0, 1.0]]], [[[1.0, 1.0], [1.0, 3.0]]])
    S = system(given)
    assert (S.outputs, S.inputs) == (1, 2)
    w = np.array([0.3, 5.0])
    np.testing.assert_allclose(np.moveaxis(given(1j * w), -1, 0), S.at(w), rtol=1e-12)
    again = system(control.ss(S.to_control()))
    np.testing.assert_allclose(again.at(w), S.at(w), rtol=1e-12)
    assert system(control.tf([1.0], [1.0, 0.5], 0.01)).dt == 0.01


@pytest.mark.parametrize("dt", [None, 0.1])
def test_systems_of_scipy_are_systems(dt: float | None) -> None:
    clock = {} if dt is None else {"dt": dt}
    given = TransferFunction([2.0, 3.0], [1.0, 0.4, 0.9], **clock)
    w = np.array([0.1, 3.0, 10.0])
    wanted = (freqresp(given, w) if dt is None else dfreqresp(given, w * dt))[1]
    for same in (given, given.to_ss(), given.to_zpk()):
        S = system(same)
        assert S.dt == dt
        np.testing.assert_allclose(S.at(w)[:, 0, 0], wanted, rtol=1e-10)


def test_a_transfer_function_of_scipy_with_two_outputs_has_both() -> None:
    S = system(TransferFunction([[1.0, 0.0], [0.0, 2.0]], [1.0, 3.0]))
    np.testing.assert_allclose(S.at([1.0])[0, :, 0], [1j / (1j + 3), 2 / (1j + 3)], rtol=1e-12)


def test_a_series_and_a_loop_multiply_responses() -> None:
    rng = np.random.default_rng(0)
    one, other = random_system(rng, 3, 2, 2), random_system(rng, 4, 2, 2)
    w = np.array([0.7])
    np.testing.assert_allclose(series(one, other).at(w), one.at(w) @ other.at(w), rtol=1e-10)
    P, K = random_system(rng, 5, 3, 4), random_system(rng, 2, 2, 1)
    p, k = P.at(w)[0], K.at(w)[0]
    wanted = p[:2, :2] + p[:2, 2:] @ k @ np.linalg.inv(np.eye(2) - p[2:, 2:] @ k) @ p[2:, :2]
    np.testing.assert_allclose(lft(P, K).at(w)[0], wanted, rtol=1e-9)


def test_the_bilinear_map_goes_there_and_back() -> None:
    S = random_system(np.random.default_rng(1), 5, 2, 3, 0.01)
    w = np.array([3.0, 200.0])
    flat = to_continuous(S)
    np.testing.assert_allclose(flat.at(np.tan(w * 0.01 / 2)), S.at(w), rtol=1e-9)
    np.testing.assert_allclose(to_sampled(flat, 0.01).at(w), S.at(w), rtol=1e-9)


def test_a_delay_turns_the_phase_and_nothing_else() -> None:
    w = np.array([10.0, 300.0])
    np.testing.assert_allclose(delay(0.004, order=5).at(w)[:, 0, 0], np.exp(-1j * w * 0.004), rtol=1e-6)
    np.testing.assert_allclose(delay(0.006, 0.002).at(w)[:, 0, 0], np.exp(-1j * w * 0.006), rtol=1e-12)
    assert delay(0.0).order == 0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: from_polynomials([1.0, 0.0], [1.0]), "improper"),
        (lambda: from_polynomials([1.0], [0.0]), "denominator"),
        (lambda: system("G"), "must be a StateSpace"),
        (lambda: delay(0.003, 0.002), "no whole number of periods"),
        (lambda: delay(-1.0), "not negative"),
        (lambda: System([[np.nan]], [[1.0]], [[1.0]], [[0.0]]), "not finite"),
        (lambda: gains(1.0, -0.1), "sampling period"),
        (lambda: system(([[1.0, 2.0]], [1.0, 2.0])), "two lists of real coefficients"),
        (lambda: system((np.eye(2), "B", "C", "D")), "B of a system must be a matrix"),
        (lambda: to_continuous(from_polynomials([1.0], [1.0, 1.5, 0.5], 0.1)), r"pole at z = −1.*\(5 Hz\)"),
        (lambda: to_sampled(from_polynomials([1.0], [1.0, -20.0]), 0.1, 20.0), "unstable pole at s = 20"),
        (lambda: period(delay(0.002, 0.001), delay(0.002, 0.002)), "cannot be connected"),
    ],
)
def test_what_is_no_system_is_said_in_a_sentence(make, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        make()


def test_matrices_that_do_not_fit_name_the_one() -> None:
    with pytest.raises(ShapeError, match="B of a system with 2 states"):
        System(np.eye(2), np.ones((3, 1)), np.ones((1, 2)), [[0.0]])
