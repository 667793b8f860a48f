"""Mixed sensitivity: published γ, the paper's cost at every frequency, margins, and bad weights."""

import warnings

import numpy as np
import pytest
from linear_cases import paper_case, sampled_case
from published_designs import PUBLISHED

from linkwright.control.hinfinity.mixed_sensitivity import mixed_sensitivity
from linkwright.control.hinfinity.robustness import hinf_norm, margins
from linkwright.control.linear_systems import System, from_polynomials, gains, series
from linkwright.errors import DesignError, LinkwrightWarning, ModelError, ShapeError

pytestmark = pytest.mark.filterwarnings("ignore::linkwright.errors.LinkwrightWarning")


@pytest.mark.parametrize("case", PUBLISHED, ids=lambda c: c.name)
def test_the_verified_gamma_is_at_or_under_the_published_one(case) -> None:
    design = case.design()
    assert design.gamma_opt <= case.gamma + case.rounding
    assert design.stable
    assert design.norm.upper <= design.gamma * (1 + 1e-6)


@pytest.mark.parametrize("case", [paper_case(), paper_case(0.005), sampled_case()], ids=["1 %", "0.5 %", "sampled"])
def test_the_papers_cost_is_what_the_matrices_say(case: dict) -> None:
    design = mixed_sensitivity(**case)
    G, F, W_T = case["G"], case["filter"], case["W_T"]
    w = np.geomspace(1.0, 1500.0, 4000)
    g, f, t = (s.at(w)[:, 0, 0] for s in (G, F, W_T))
    k = design.system.at(w)[:, 0, 0] * f
    stacked = np.hypot(abs(t * k * g / (1 + g * k)), abs(case["W_S"] * g / (1 + g * k)))
    assert stacked.max() <= design.norm.upper
    assert stacked.max() == pytest.approx(design.norm.upper, rel=1e-3)


@pytest.mark.parametrize("case", [paper_case(0.005), sampled_case()], ids=["continuous", "sampled"])
def test_the_baseline_is_the_weighted_plant_alone(case: dict) -> None:
    design = mixed_sensitivity(**case)
    assert design.baseline == pytest.approx(0.5 * hinf_norm(case["G"]).upper, rel=1e-6)
    assert design.norm.upper < 0.05 * design.baseline
    assert design.cost(K=gains(0.0, design.system.dt)).upper == pytest.approx(design.baseline, rel=1e-6)


def test_the_margins_are_where_the_loop_breaks() -> None:
    case = sampled_case()
    design = mixed_sensitivity(**case)
    found, G, K = design.margins, case["G"], design.system

    def stable(factor: float) -> bool:
        plant = System(G.A, G.B, factor * G.C, factor * G.D, G.dt)
        return bool(np.isfinite(design.cost(G=plant).upper))

    assert stable(0.999 * found.gain_up)
    assert not stable(1.001 * found.gain_up)
    assert found.weighted_error >= 1 / design.norm.upper
    late = int(np.floor(found.delay / 0.002))
    line = System(np.eye(late, k=-1), np.eye(late, 1), np.eye(1, late, k=late - 1), [[0.0]], 0.002)
    one_more = System(np.eye(late + 1, k=-1), np.eye(late + 1, 1), np.eye(1, late + 1, k=late), [[0.0]], 0.002)
    assert np.isfinite(design.cost(G=series(G, line)).upper)
    assert not np.isfinite(design.cost(G=series(G, one_more)).upper)
    assert margins(G, K, filter=case["filter"]).phase == found.phase


def test_the_margins_of_a_textbook_loop() -> None:
    # L = 4/(s+1)³ crosses −180° at ω = √3 with gain 1/2.
    found = margins(from_polynomials([4.0], [1, 3, 3, 1]), 1.0)
    assert found.gain_up == pytest.approx(2.0, rel=1e-6)
    crossing = np.sqrt(4.0 ** (2 / 3) - 1)
    assert found.phase == pytest.approx(np.pi - 3 * np.arctan(crossing), rel=1e-6)
    assert found.delay == pytest.approx(found.phase / crossing, rel=1e-6)


def test_a_plant_with_two_axes_gets_a_controller_for_both() -> None:
    G = System(np.diag([-1.0, -2.0]), np.eye(2), [[1.0, 0.3], [0.1, 1.0]], np.zeros((2, 2)))
    design = mixed_sensitivity(G, W_T=from_polynomials([1.0, 1.0], [1.0, 100.0]), W_S=2.0)
    assert (design.system.inputs, design.system.outputs) == (2, 2)
    assert design.norm.upper < design.baseline
    assert design.margins.stable


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"W_S": ([1.0], [1.0, 0.0])}, DesignError, "W_S is not stable"),
        ({"W_T": None}, ModelError, "needs W_T and W_S"),
        ({"W_U": 1.0}, ModelError, "has no W_U"),
        ({"cost": "quadratic"}, ModelError, "cost is"),
        ({"W_T": np.ones((2, 2))}, ShapeError, "W_T has 2 inputs"),
        ({"W_T": from_polynomials([1.0], [1.0, 0.5], 0.01)}, ModelError, "cannot be connected"),
        ({"G": ([1.0, 0.0, 0.0], [1.0, 1.0])}, ModelError, "G is improper"),
    ],
)
def test_bad_weights_are_said_in_a_sentence(change: dict, error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        mixed_sensitivity(**{**paper_case(), **change})


def test_a_controller_that_gains_nothing_says_so() -> None:
    case = {**paper_case(0.7), "W_T": 1e4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinkwrightWarning)
        design = mixed_sensitivity(**case)
    assert any("gains little over none" in note for note in design.warnings)


def test_weights_are_spoken_of_only_where_a_hidden_mode_may_be_their_integrator() -> None:
    for pole, blamed in ((2.0, False), (0.0, True)):
        hidden = System(np.diag([-1.0, pole]), [[1.0], [0.0]], [[1.0, 1.0]], [[0.0]])
        with pytest.raises(DesignError, match="measure or drive it") as told:
            mixed_sensitivity(hidden, None, 0.5, 0.1, cost="standard")
        assert ("integrator in a weight" in str(told.value)) == blamed
