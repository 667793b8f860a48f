"""Derivatives of simulated motion and of equilibria against closed forms and differences."""

import numpy as np
import pytest
from design_models import HANGING, OSCILLATOR, SWINGING, differences, loaded

import linkwright as lw
from linkwright.errors import LinkwrightError, ModelError


def swing(p: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Where the block of the oscillator is."""
    m, k, start = p
    w = np.sqrt(k / m)
    return start * np.cos(w * t) + 2 * start / w * np.sin(w * t)


def test_an_oscillator_has_the_derivatives_of_its_closed_form(tmp_path) -> None:
    found = lw.sensitivities(
        loaded(OSCILLATOR, tmp_path), "slide.shift", order=2, analysis=lw.AnalysisSettings(dt=2e-3)
    )
    p, t = np.array([2.0, 50.0, 0.3]), found.time

    def slopes(x: np.ndarray) -> np.ndarray:
        columns = []
        for k in range(3):
            moved = x.astype(complex)
            moved[k] += 1e-30j
            columns.append(swing(moved, t).imag / 1e-30)
        return np.stack(columns, axis=-1)

    assert found.value() == pytest.approx(swing(p, t), abs=1e-9)
    assert found.gradient() == pytest.approx(slopes(p), abs=1e-8)
    assert found.hessian() == pytest.approx(differences(slopes, p), abs=1e-7)


def test_forward_and_reverse_agree(tmp_path) -> None:
    mech = loaded(OSCILLATOR, tmp_path)
    outputs = ["rms(block.ax)", "k*max(slide.shift)", "final(slide.rate) + integral(slide.shift^2)", "range(block.vx)"]
    both = [
        lw.sensitivities(mech, outputs, analysis=lw.AnalysisSettings(dt=0.01), mode=mode)
        for mode in ("forward", "reverse")
    ]
    for output in outputs:
        assert both[0].value(output) == pytest.approx(both[1].value(output), rel=1e-13)
        assert both[0].gradient(output) == pytest.approx(both[1].gradient(output), rel=1e-10, abs=1e-13)


def test_a_closed_mechanism_whose_start_depends_on_its_lengths_agrees_with_differences_of_simulations(tmp_path) -> None:
    model = loaded(SWINGING, tmp_path)
    times = np.linspace(0.0, 0.4, 5)
    outputs = {"angle": "final(d.angle)", "rate": "final(a.rate)"}
    found = lw.sensitivities(model, outputs, ("crank", "heavy"), times=times, analysis=lw.AnalysisSettings(dt=2e-3))
    back = lw.sensitivities(
        model, outputs, ("crank", "heavy"), times=times, analysis=lw.AnalysisSettings(dt=2e-3), mode="reverse"
    )

    def end(p: np.ndarray) -> np.ndarray:
        sol = lw.analyse(model.with_parameters(crank=p[0], heavy=p[1]), times=times, rtol=1e-12)
        return np.array([sol.joint("d")[-1, 0], sol.joint_rate("a")[-1, 0]])

    expected = differences(end, np.array(list(found.parameters.values())), 1e-4)
    for k, output in enumerate(outputs):
        assert found.gradient(output) == pytest.approx(expected[k], rel=1e-5, abs=1e-6)
        assert back.gradient(output) == pytest.approx(found.gradient(output), rel=1e-9)


def test_an_equilibrium_has_the_derivatives_of_its_balance(tmp_path) -> None:
    found = lw.sensitivities(loaded(HANGING, tmp_path), "final(hinge.angle)", order=2)

    def angle(p: np.ndarray) -> float:
        x = 0.0
        for _ in range(60):  # c·x + m·g·arm·cos(x) = 0
            f = p[1] * x + p[0] * 9.81 * p[2] * np.cos(x)
            x -= f / (p[1] - p[0] * 9.81 * p[2] * np.sin(x))
        return x

    p = np.array(list(found.parameters.values()))
    assert found.value() == pytest.approx(angle(p), abs=1e-10)
    assert found.gradient() == pytest.approx(differences(angle, p), abs=1e-8)
    assert found.hessian() == pytest.approx(differences(lambda x: differences(angle, x, 1e-4), p, 1e-4), abs=1e-5)


def test_a_start_that_follows_a_drawing_alone_is_refused(tmp_path) -> None:
    text = OSCILLATOR.replace("INITIAL (slide.shift = start, slide.rate = 2*start);", "")
    text = text.replace("BODY block (", "BODY block (origin = (start, 0, 0), ")
    with pytest.raises(ModelError, match="'start' moves the initial state"):
        lw.sensitivities(loaded(text, tmp_path), "final(slide.shift)", "start", analysis=lw.AnalysisSettings(dt=0.01))


def test_settings_that_do_not_fit_are_told(tmp_path) -> None:
    mech = loaded(OSCILLATOR, tmp_path)
    for match, options in {
        "'reverse' is for numbers": {"mode": "reverse"},
        "no mode named": {"mode": "sideways"},
        "no method with fixed steps named": {"analysis": lw.AnalysisSettings(method="bdf")},
        "dt must be": {"analysis": lw.AnalysisSettings(dt=-1.0)},
        "order is 1 or 2": {"order": 3},
        "no derivatives of inverse dynamic": {"analysis": "inverse dynamic"},
    }.items():
        with pytest.raises(LinkwrightError, match=match):
            lw.sensitivities(mech, "slide.shift", "k", **options)
