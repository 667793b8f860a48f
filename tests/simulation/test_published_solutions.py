"""The solutions that simulations are held against: they are what was published, or keep what must be kept."""

import numpy as np

from published import solutions
from published.problems import CORNERS, GRAVITY, SQUEEZER_START


def test_the_squeezer_s_equations_give_the_published_state() -> None:
    start = np.concatenate([SQUEEZER_START, np.zeros(7)])
    y = solutions._integrated(solutions.squeezer_equations, start, np.array([0.0, 0.03]))[:, -1]
    np.testing.assert_allclose(y[:7], solutions.SQUEEZER_AT_003[0], atol=1e-8)
    np.testing.assert_allclose(y[7:], solutions.SQUEEZER_AT_003[1], atol=1e-5)


def test_bricard_s_corners_close_and_keep_their_energy() -> None:
    start = np.array([0.5 * np.pi, 0.5 * np.pi, 0.0])
    states = solutions._integrated(solutions.bricard_equations, start, np.linspace(0.0, 2.0, 9)).T
    for x, y, rate in states:
        (p, p1, _), _ = solutions.bricard_points(x, y)
        np.testing.assert_allclose(p[5], CORNERS[5], atol=1e-10)
        a, b = p1[:5] * rate, p1[1:] * rate
        kinetic = 0.5 * np.sum(a * a + a * b + b * b) / 3.0
        potential = GRAVITY * 0.5 * np.sum(p[:5, 1] + p[1:, 1])
        np.testing.assert_allclose(kinetic + potential, -3.0 * GRAVITY, atol=1e-9)


def test_the_four_bars_turn_round_as_their_energy_says() -> None:
    t = np.linspace(0.0, 10.0, 20_001)
    phi = solutions.four_bars(3, t)["pivot0"]
    rate = np.gradient(phi, t, edge_order=2)
    # Kinetic energy ½ (4/3 + 3) φ̇² and potential energy g (2 + 3) sin φ.
    energy = 0.5 * (4.0 / 3.0 + 3.0) * rate**2 + 5.0 * GRAVITY * np.sin(phi)
    np.testing.assert_allclose(energy, energy[0], atol=2e-3)
    assert phi[-1] < phi[0] - 4.0 * np.pi
