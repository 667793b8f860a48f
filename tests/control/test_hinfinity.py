"""H∞ design: the verified γ against closed forms and SLICOT, and problems that have no answer."""

import re

import numpy as np
import pytest
from linear_cases import grid_norm, random_system

from linkwright.control.hinfinity.robustness import hinf_norm
from linkwright.control.hinfinity.synthesis import HinfSettings, hinf
from linkwright.control.linear_systems import System, from_polynomials, lft, to_continuous, to_sampled
from linkwright.errors import DesignError, ModelError, ShapeError


def random_plant(rng: np.random.Generator) -> tuple[System, int, int]:
    n, m2, p2 = (int(rng.integers(a, b)) for a, b in ((2, 7), (1, 3), (1, 3)))
    m, p = m2 + p2 + int(rng.integers(0, 3)), p2 + m2 + int(rng.integers(0, 3))
    P = System(*[rng.normal(size=shape) for shape in ((n, n), (n, m), (p, n), (p, m))])
    return P, p2, m2


def test_the_smallest_gamma_is_that_of_slicot_for_any_d() -> None:
    slycot = pytest.importorskip("slycot", reason="slycot is not installed: its sb10ad is the oracle")
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(8):
        P, nmeas, ncon = random_plant(rng)
        design = hinf(P, nmeas, ncon)
        assert design.optimal is not None
        at = (P.order, P.inputs, P.outputs, ncon, nmeas, 1.01 * design.gamma_opt, P.A, P.B, P.C, P.D)
        loop = lft(P, design.optimal)
        sizes = (loop.order, loop.inputs, loop.outputs)
        measured = slycot.ab13dd(*"CISD", *sizes, loop.A, np.eye(loop.order), loop.B, loop.C, loop.D, 1e-9)[0]
        assert measured <= design.gamma_opt * (1 + 1e-6)
        try:
            fixed = slycot.sb10ad(*at, job=4)
        except slycot.exceptions.SlycotArithmeticError:
            refused += 1  # "too small value of gamma", though a controller was just measured
            continue
        # SLICOT finds a controller a little above our optimum, and its own search ends at ours.
        assert hinf_norm(System(*fixed[5:9])).upper <= 1.0101 * design.gamma_opt
        searched = slycot.sb10ad(*at, job=1, gtol=1e-5)[0]
        assert design.gamma_opt == pytest.approx(searched, rel=2e-3)
    assert refused <= 1


def test_what_is_promised_is_measured() -> None:
    rng = np.random.default_rng(5)
    for _ in range(5):
        P, nmeas, ncon = random_plant(rng)
        design = hinf(P, nmeas, ncon)
        loop = lft(P, design.system)
        assert loop.stable()
        assert grid_norm(loop, 3000) <= design.norm.upper <= design.gamma * (1 + 1e-6)
        assert design.gamma == pytest.approx(1.05 * design.gamma_opt)
        assert design.optimal is not None
        assert hinf_norm(lft(P, design.optimal)).upper == pytest.approx(design.gamma_opt, rel=1e-6)
        accepted = [t for t in design.history if t.accepted]
        assert accepted
        assert all(t.norm <= t.gamma * (1 + 1e-5) for t in accepted)
        assert all(t.reason for t in design.history if not t.accepted)


def test_a_sampled_plant_has_the_gamma_of_its_continuous_image() -> None:
    rng = np.random.default_rng(11)
    P, nmeas, ncon = random_plant(rng)
    there = hinf(to_sampled(P, 0.01), nmeas, ncon)
    assert there.system.dt == 0.01
    assert there.stable
    assert there.gamma_opt == pytest.approx(hinf(P, nmeas, ncon).gamma_opt, rel=1e-3)
    np.testing.assert_allclose(to_continuous(to_sampled(P, 0.01)).A, P.A, atol=1e-9)


def test_the_known_optimum_of_a_scalar_plant_is_found() -> None:

    P = System([[0.0]], [[1.0, 0.0, 1.0]], [[1.0], [0.0], [1.0]], [[0, 0, 0], [0, 0, 1.0], [0, 1.0, 0]])
    # Both equations read X² (1 − γ⁻²) = 1, so X = Y = γ/√(γ² − 1), and XY = γ² at γ² = 2.
    assert hinf(P, 1, 1, settings=HinfSettings(tolerance=1e-6)).gamma_opt == pytest.approx(np.sqrt(2), rel=1e-5)


def test_a_mode_that_no_control_moves_is_named_in_hertz() -> None:
    w = 2 * np.pi * 3.0
    A = np.array([[0.0, w, 0.0], [-w, 0.2, 0.0], [0.0, 0.0, -1.0]])
    P = System(A, [[1, 0, 0.0], [0, 0, 0], [0, 0, 1]], np.eye(3), [[0, 0, 0.0], [0, 0, 1], [0, 1, 0]])
    with pytest.raises(DesignError, match=r"not stabilisable from u: the modes at 3 Hz") as told:
        hinf(P, 1, 1)
    assert abs(told.value.modes[0].imag) == pytest.approx(w, rel=1e-3)


def test_a_mode_that_is_not_seen_is_named() -> None:
    A = np.diag([0.5, -1.0])
    P = System(A, [[1, 0, 1.0], [1, 0, 1]], [[1, 1.0], [0, 0], [0, 1]], [[0, 0, 0.0], [0, 0, 1], [0, 1, 0]])
    with pytest.raises(DesignError, match="not detectable from y"):
        hinf(P, 1, 1)


def test_no_controller_under_the_limit_says_what_was_tried() -> None:
    P, nmeas, ncon = random_plant(np.random.default_rng(2))
    best = hinf(P, nmeas, ncon).gamma_opt
    with pytest.raises(DesignError, match="raise gamma_max") as told:
        hinf(P, nmeas, ncon, settings=HinfSettings(gamma_max=0.5 * best))
    assert told.value.history


def test_a_singular_problem_is_made_regular_said_and_verified_without_it() -> None:
    # No noise on y and no cost on u: D12 = 0, D21 = 0.
    P = System([[-1.0]], [[1.0, 1.0]], [[1.0], [1.0]], np.zeros((2, 2)))
    design = hinf(P, 1, 1)
    assert re.search(r"D12 has not full column rank.*D21 has not full row rank.*ε", " ".join(design.warnings))
    assert design.epsilon > 0
    assert hinf_norm(lft(P, design.system)).upper <= design.gamma
    assert design.gamma_opt < 0.1
    with pytest.raises(DesignError, match="singular"):
        hinf(P, 1, 1, settings=HinfSettings(epsilon=0.0))


def test_a_zero_on_the_imaginary_axis_is_named() -> None:
    # P12 = [s/(s+1); 0] and u is weighed by nothing else: a zero at ω = 0.
    P = System([[-1.0]], [[0.0, 1.0, -1.0]], [[1.0], [1.0]], [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    design = hinf(P, 1, 1)
    assert "P12 has zeros on the imaginary axis or the unit circle at 0 Hz" in " ".join(design.warnings)
    assert design.stable


@pytest.mark.parametrize(
    "option",
    [{"gamma_max": np.nan}, {"gamma_max": 0.0}, {"gamma_max": np.inf}, {"back_off": -0.5}, {"back_off": np.nan},
     {"epsilon": -1.0}, {"epsilon": np.nan}, {"tolerance": 0.0}, {"tolerance": np.nan}],
    ids=str,
)  # fmt: skip
def test_an_option_that_makes_no_sense_is_named(option) -> None:
    with pytest.raises(ModelError, match=f"{next(iter(option))} is"):
        HinfSettings(**option)


def test_a_sampled_pole_at_minus_one_is_said_in_a_sentence() -> None:
    P = from_polynomials([1.0, 0.2], [1.0, 1.5, 0.5], 0.1)
    both = System(P.A, np.hstack([P.B, P.B]), np.vstack([P.C, P.C]), np.eye(2), 0.1)
    with pytest.raises(ModelError, match="a pole at z = −1"):
        hinf(both, 1, 1)


def test_numbers_of_signals_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="left for the cost"):
        hinf(random_system(np.random.default_rng(0), 2, 2, 2), 2, 1)
