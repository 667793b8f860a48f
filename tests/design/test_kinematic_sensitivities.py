"""Derivatives of prescribed motion against closed forms by the complex step, and against differences."""

import numpy as np
import pytest
from design_models import ROOT, differences, rocker

import linkwright as lw
from linkwright.design.sensitivity import Problem
from linkwright.errors import LinkwrightError, ModelError
from linkwright.outputs.derivatives import Outputs
from linkwright.outputs.output_language import named

MODELS = ROOT / "examples" / "models"
TIMES = np.linspace(0.1, 5.9, 12)


def test_a_rockers_angle_has_the_derivatives_of_the_law_of_cosines() -> None:
    names = ("crank", "coupler", "rocker", "apart")
    found = lw.sensitivities(MODELS / "four_bar.mks", "d.angle", names, times=TIMES)
    p = np.array(list(found.parameters.values()))
    for i, t in enumerate(TIMES + np.radians(30)):
        for k in range(4):
            moved = p.astype(complex)
            moved[k] += 1e-30j
            assert found.gradient()[i, k] == pytest.approx(rocker(t, *moved).imag / 1e-30, rel=1e-11, abs=1e-13)


def test_first_and_second_derivatives_of_positions_rates_and_accelerations_agree_with_differences() -> None:
    outputs = ["pen.x", "c.rate", "pen.ay"]
    names = ("crank", "above")
    model = lw.load(MODELS / "four_bar.mks")
    found = lw.sensitivities(model, outputs, names, order=2, times=TIMES)
    problem = Problem(model, names, Outputs(model.description, named(outputs)), times=TIMES)

    def at(p: np.ndarray, order: int) -> np.ndarray:
        """Values or slopes of all outputs, (outputs, T, ...)."""
        answers = problem.answers(p, order)[1]
        return np.stack([answers[o].first if order else answers[o].value for o in outputs])

    p = np.array([model.parameters[n] for n in names])
    firsts, seconds = (differences(lambda x, k=order: at(x, k), p) for order in (0, 1))
    for output, first, second in zip(outputs, firsts, seconds, strict=True):
        assert found.gradient(output) == pytest.approx(first, abs=2e-9)
        assert found.hessian(output) == pytest.approx(second, abs=2e-9)
        assert np.allclose(found.hessian(output), np.swapaxes(found.hessian(output), 1, 2), atol=1e-11)


def test_values_are_those_of_the_analysis() -> None:
    found = lw.sensitivities(MODELS / "four_bar.mks", ["pen.y", "pen.vx", "coupler_bar.alphaz", "d.acceleration"])
    sol = lw.analyse(MODELS / "four_bar.mks")
    assert found.value("pen.y") == pytest.approx(sol.position("pen")[:, 1], abs=1e-12)
    assert found.value("pen.vx") == pytest.approx(sol.velocity("pen")[:, 0], abs=1e-12)
    assert found.value("coupler_bar.alphaz") == pytest.approx(sol.angular_acceleration("coupler_bar")[:, 2], abs=1e-11)
    assert found.value("d.acceleration") == pytest.approx(sol.joint_acceleration("d")[:, 0], abs=1e-11)


def test_a_spin_that_nothing_drives_does_not_disturb_what_does_not_depend_on_it() -> None:
    model = lw.load(MODELS / "slider_crank_parameters.mks")
    found = lw.sensitivities(model, "rev1.angle", times=TIMES)
    p = np.array(list(found.parameters.values()))

    def angle(x: np.ndarray) -> np.ndarray:
        values = dict(zip(found.parameters, x.tolist(), strict=True))
        return lw.analyse(model.with_parameters(**values), times=TIMES).joint("rev1")[:, 0]

    assert found.gradient() == pytest.approx(differences(angle, p), abs=1e-7)
    with pytest.raises(ModelError, match=r"'pend2.wx' depends on motion that the drivers leave free"):
        lw.sensitivities(model, "pend2.wx", times=TIMES)


def test_a_parameter_that_opens_redundant_constraints_is_refused(tmp_path) -> None:
    text = (MODELS / "four_bar.mks").read_text(encoding="utf-8")
    text = text.replace("PARAMETER crank = 1;", "PARAMETER crank = 1; PARAMETER lift = 0;")
    text = text.replace("origin = (rocker, 0, 0)", "origin = (rocker, 0, lift)")
    file = tmp_path / "lifted.mks"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ModelError, match="'lift' opens constraints that are redundant"):
        lw.sensitivities(file, "pen.x", "lift", times=TIMES)


def test_a_dead_centre_is_told_with_its_time(tmp_path) -> None:
    text = (MODELS / "four_bar.mks").read_text(encoding="utf-8")
    file = tmp_path / "rocking.mks"
    file.write_text(text.replace("DRIVER motor (a.angle = 30 deg + TIME)", "DRIVER motor (d.angle = 1.9 + 0.1*TIME)"))
    good = lw.sensitivities(file, "a.angle", "coupler", times=[0.0])
    assert np.isfinite(good.gradient()).all()
    with pytest.raises(LinkwrightError, match=r"t = "):
        lw.sensitivities(file, "a.angle", "coupler", times=np.linspace(0, 20, 41))


def test_numbers_of_the_whole_motion_may_stand_in_series_and_in_other_numbers() -> None:
    outputs = ["max(pen.x) + pen.y*TIME", "rms(pen.x - crank*mean(pen.x))", "integral(range(pen.y)/(3 + pen.x))"]
    names = ("crank", "above")
    model = lw.load(MODELS / "four_bar.mks")
    found = lw.sensitivities(model, outputs, names, order=2, times=TIMES)
    problem = Problem(model, names, Outputs(model.description, named(outputs)), times=TIMES)
    p = np.array([model.parameters[n] for n in names])
    firsts = differences(lambda x: stacked(problem, x, "value"), p)
    seconds = differences(lambda x: stacked(problem, x, "first"), p)
    start = 0
    for output in outputs:
        rows = slice(start, start + np.size(found.value(output)))
        start = rows.stop
        assert found.gradient(output).reshape(-1, 2) == pytest.approx(firsts[rows], abs=2e-8)
        assert found.hessian(output).reshape(-1, 2, 2) == pytest.approx(seconds[rows], abs=2e-8)


def stacked(problem: Problem, p: np.ndarray, part: str) -> np.ndarray:
    """Values, or slopes along a last axis, of all outputs one after the other."""
    answers = problem.answers(p, 1)[1].values()
    shape = (-1,) if part == "value" else (-1, len(p))
    return np.concatenate([np.reshape(getattr(answer, part), shape) for answer in answers])


@pytest.mark.parametrize(
    ("outputs", "parameters", "match"),
    [
        ("penn.x", "crank", "did you mean 'pen'"),
        ("pen.q", "crank", "'pen' has no 'q'; it has x, y, z"),
        ("pen.x", "crnk", "did you mean 'crank'"),
        ("pen", "crank", "name one of its quantities"),
        ("max(pen.x", "crank", "is no expression, at its end"),
        ("argmax(pen.x)", "crank", "has no derivative"),
        ("motor.torque", "crank", "no derivatives here"),
        ("pen.x", [], "no parameter was named"),
        ([], "crank", "no output was asked for"),
        (lambda s: float(s["pen.x"]), "crank", "write it in NumPy syntax"),
    ],
)
def test_bad_questions_are_answered_in_a_sentence(outputs: object, parameters: object, match: str) -> None:
    with pytest.raises(LinkwrightError, match=match):
        lw.sensitivities(MODELS / "four_bar.mks", outputs, parameters, times=[0.0, 1.0])
