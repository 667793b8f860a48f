"""M-sequences have their period and their two-valued autocorrelation; multisines and sweeps their band."""

from typing import Any

import numpy as np
import pytest

import linkwright as lw
from linkwright.control.identification.sequences import TAPS
from linkwright.errors import LinkwrightError


def primitive_polynomial(order: int) -> int:
    """The polynomial of the shift register; bit k is the term x^k."""
    return (1 << order) | 1 | sum(1 << k for k in TAPS[order])


def is_primitive(polynomial: int) -> bool:
    """Whether x generates every non-zero residue: x^(2^n − 1) = 1, and no smaller divisor of 2^n − 1 does it."""
    order = polynomial.bit_length() - 1
    whole = (1 << order) - 1
    return _power_of_x(whole, polynomial) == 1 and all(
        _power_of_x(whole // prime, polynomial) != 1 for prime in _primes_of(whole)
    )


def _power_of_x(exponent: int, polynomial: int) -> int:
    order = polynomial.bit_length() - 1
    result, base = 1, 2
    if order == 1:
        base ^= polynomial
    while exponent:
        if exponent & 1:
            result = _product(result, base, polynomial, order)
        base = _product(base, base, polynomial, order)
        exponent >>= 1
    return result


def _product(a: int, b: int, polynomial: int, order: int) -> int:
    result = 0
    while b:
        if b & 1:
            result ^= a
        b >>= 1
        a <<= 1
        if a >> order & 1:
            a ^= polynomial
    return result


def _primes_of(number: int) -> tuple[int, ...]:
    primes, factor = [], 2
    while factor * factor <= number:
        if number % factor == 0:
            primes.append(factor)
            while number % factor == 0:
                number //= factor
        factor += 1
    return (*primes, number) if number > 1 else tuple(primes)


def circular_autocorrelation(x: np.ndarray) -> np.ndarray:
    return np.fft.irfft(np.abs(np.fft.rfft(x)) ** 2, len(x))


@pytest.mark.parametrize("order", range(2, 15))
def test_an_m_sequence_has_the_two_valued_autocorrelation_of_a_full_period(order: int) -> None:
    x = lw.control.m_sequence(order, amplitude=2.0)
    assert len(x) == 2**order - 1
    assert set(np.unique(x)) == {-2.0, 2.0}
    r = circular_autocorrelation(x) / 4.0
    np.testing.assert_allclose(r[0], len(x), rtol=1e-9)
    np.testing.assert_allclose(r[1:], -1.0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("order", range(15, 23))
def test_long_m_sequences_have_the_two_valued_autocorrelation(order: int) -> None:
    r = circular_autocorrelation(lw.control.m_sequence(order))
    np.testing.assert_allclose(r[1:], -1.0, atol=1e-4)


@pytest.mark.parametrize("order", range(2, 33))
def test_a_register_of_any_order_does_not_come_back_early(order: int) -> None:
    # x has the order 2^n − 1 modulo the polynomial: checked here by the matrix of the register over GF(2), which shares
    # nothing with the polynomial arithmetic that chose it.
    mask = primitive_polynomial(order)
    assert is_primitive(mask)
    step = np.zeros((order, order), np.int64)
    step[:-1, 1:] = np.eye(order - 1, dtype=np.int64)
    step[-1] = [mask >> k & 1 for k in range(order)]

    def power(exponent: int) -> np.ndarray:
        out, base = np.eye(order, dtype=np.int64), step
        while exponent:
            out = out @ base % 2 if exponent & 1 else out
            base, exponent = base @ base % 2, exponent >> 1
        return out

    whole = 2**order - 1
    same = np.eye(order, dtype=np.int64)
    assert np.array_equal(power(whole), same)
    rest, factors = whole, set()
    for p in range(2, 70_000):
        while rest % p == 0:
            factors.add(p)
            rest //= p
    factors |= {rest} if rest > 1 else set()
    assert all(not np.array_equal(power(whole // p), same) for p in factors)


def test_the_bits_follow_the_recurrence_of_the_polynomial() -> None:
    # The generator works in doubling blocks; the recurrence one bit at a time is the oracle.
    for order in (3, 8, 13, 32):
        bits = (lw.control.m_sequence(order, length=2000, seed=5) > 0).astype(int)
        mask = primitive_polynomial(order)
        lags = [order - k for k in range(order) if mask >> k & 1]
        for t in range(order, 2000):
            assert bits[t] == sum(bits[t - lag] for lag in lags) % 2


def test_x_plus_one_squared_is_not_primitive() -> None:
    assert not is_primitive(0b101)
    assert not is_primitive(0b11111)  # x⁴ + x³ + x² + x + 1 is irreducible, with period 5
    assert is_primitive(0b10011)


def test_a_seed_shifts_the_sequence_and_hold_stretches_it() -> None:
    a, b = lw.control.m_sequence(7, seed=1), lw.control.m_sequence(7, seed=40)
    assert any(np.array_equal(np.roll(a, k), b) for k in range(len(a)))
    assert not np.array_equal(a, b)
    np.testing.assert_array_equal(lw.control.m_sequence(7, hold=3)[::3], a)
    np.testing.assert_array_equal(lw.control.m_sequence(7, length=300)[127:254], a)


def test_a_whole_period_of_order_32_is_refused_and_part_of_it_is_not() -> None:
    with pytest.raises(LinkwrightError, match="give the number that you want"):
        lw.control.m_sequence(32)
    assert len(lw.control.m_sequence(32, length=1000)) == 1000
    with pytest.raises(LinkwrightError, match="2 to 32, not 33"):
        lw.control.m_sequence(33)


def test_a_multisine_has_its_lines_and_no_others() -> None:
    x = lw.control.multisine(500, 2e-3, (5.0, 40.0), rms=0.7, periods=2)
    lines = np.abs(np.fft.rfft(x[:500]))
    hertz = np.fft.rfftfreq(500, 2e-3)
    inside = (hertz >= 5.0) & (hertz <= 40.0)
    assert lines[inside].min() > 0.99 * lines.max()
    assert lines[~inside].max() < 1e-9 * lines.max()
    np.testing.assert_allclose(np.sqrt(np.mean(x**2)), 0.7)
    assert np.abs(x).max() < 2.2 * 0.7  # Schroeder's phases keep peaks low


@pytest.mark.parametrize("sweep", ["linear", "logarithmic"])
def test_a_sweep_goes_from_the_first_frequency_to_the_last(sweep: str) -> None:
    x = lw.control.chirp(20_000, 1e-3, (2.0, 50.0), sweep=sweep)
    crossings = np.flatnonzero(np.diff(np.sign(x)) != 0) * 1e-3
    rates = 0.5 / np.diff(crossings)
    assert rates[0] == pytest.approx(2.0, rel=0.2)
    assert rates[-1] == pytest.approx(50.0, rel=0.1)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: lw.control.multisine(100, 0.01, (10.0, 80.0)), "half the sampling, 50 Hz"),
        (lambda: lw.control.multisine(100, 0.01, (10.1, 10.4)), "take a longer period"),
        (lambda: lw.control.chirp(100, 0.01, (0.0, 10.0), sweep="logarithmic"), "sweep='linear'"),
        (lambda: lw.control.m_sequence(5, hold=0), "hold must be a whole number"),
        (lambda: lw.control.m_sequence(np.nan), "order must be a whole number"),
        (lambda: lw.control.m_sequence(5, amplitude=np.nan), "amplitude must be a finite number"),
        (lambda: lw.control.multisine(100, 0.01, (1.0, 8.0), rms=np.inf), "rms must be a finite number"),
        (lambda: lw.control.chirp(100, 0.01, (1.0, 8.0), amplitude=np.nan), "amplitude must be a finite number"),
    ],
)
def test_a_signal_that_cannot_be_says_why(call: object, told: str) -> None:
    with pytest.raises(LinkwrightError, match=told):
        call()  # type: ignore[operator]


@pytest.mark.parametrize("seed", [1.5, "a", None])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(lw.errors.LinkwrightError, match="seed is a whole number"):
        lw.control.m_sequence(7, seed=seed)
