"""Studies, derivatives and optimisation read one language: every text of docs, examples and tests means the same."""

import re
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import LinkwrightError

ROOT = Path(__file__).parents[2]
FOUR_BAR = ROOT / "examples" / "models" / "four_bar.mks"
SLIDER = ROOT / "examples" / "models" / "slider_crank_parameters.mks"
SUSPENSION = ROOT / "examples" / "models" / "suspension.mks"

#: Texts by model and swept parameter; those of docs, examples and other tests, and one for each rule of the language.
TEXTS = {
    (FOUR_BAR, "crank"): [
        "max(pen.x) - min(pen.x)",
        "rms(pen.ay) + crank^2",
        "integral(d.rate*TIME)",
        "mean(distance(left, pen))",
        "range(distance_rate(left, pen))",
        "max(distance_acceleration(left, pen))",
        "final(coupler_bar.alphaz) - initial(B.acceleration)",
        "swing = range(d.angle)",
        "range(pen.x)",
        "pen.y",
        "pen.x",
        "pen.vy",
        "c.rate",
        "pen.ay",
        "coupler_bar.alphaz",
        "coupler_bar.wz",
        "d.acceleration",
        "d.angle",
        "max(d.rate)",
        "max(d.angle)",
        "mean((pen.y - 2)^2) + 0.05*above^2",
        "mean(pen.y^2) - mean(pen.y)^2",
        "(crank - 1)^2 + 0*max(pen.x)",
        "mean((pen.x - 2)^2 + (pen.y - 2)^2) + 0.01*above^2",
        "log(max(pen.x))",
        "1*pen.y",
        "sum = coupler + rocker",
        "a.angle",
        "b.angle",
        "c.angle",
        "pen.x/pen.y",
        "max(pen.x) + pen.y",
        "rms(pen.x - mean(pen.x))",
        "curve.x",
        "PEN.X*CRANK",
        "a.q + a.q0 + b.v + b.v0 + c.a0",
        "max(min(pen.x, 2))",
        "max(min(pen.x, 2, 1.5))",
        "max(if(pen.x < 1, 1, 0))",
        "mean(step(pen.x, 0, 0, 1, 1))",
        "max(crank*pen.x)",
        "max(TIME)",
        "TIME",
        "180 deg/pi + crank^2",
        "crank^2",
        "mean(crank)",
        "atan2(pen.y, pen.x)",
        "base.x + left.y",
        "range(range(pen.x)*pen.y)",
    ],
    (SLIDER, "crank_length"): [
        "travel = max(block.x) - min(block.x)",
        "range(block.x)",
        "block.x",
        "final(pend1.y)",
        "2*block.x + TIME",
        "block.x - crank_length",
        "block.vx + block.ax",
        "pend1.wz",
        "rev1.angle",
        "rev1.rate",
        "max(abs(rev1.rate))",
        "swing = max(abs(rev1.rate))",
        "reach = max(pend1.y)",
        "trans1.shift",
        "mean(sph1pend1.z)",
    ],
}
#: Of a simulation, which both take by the same steps.
SIMULATED = [
    "final(chassis.z)",
    "heave.rate",
    "top = max(hub.z)",
    "comfort = rms(chassis.az)",
    "travel = range(distance(tower, seat))",
    "final(chassis.z)/k",
]
#: What has no derivatives is refused there, by name.
WITHOUT_DERIVATIVES = ["argmax(pen.x)", "argmin(pen.x)", "motor.torque", "a.fx"]


@pytest.mark.parametrize(("model", "parameter"), list(TEXTS), ids=lambda x: getattr(x, "stem", x))
def test_a_text_has_one_value_in_studies_and_derivatives(model: Path, parameter: str) -> None:
    texts = {f"y{k}": text.rpartition(" = ")[2] for k, text in enumerate(TEXTS[model, parameter])}
    value = 1.02 * lw.load(model).parameters[parameter]
    times = np.linspace(0.1, 5.9, 30)
    study = lw.sweep(model, {parameter: [value]}, texts, times=times)
    assert study.ok.all(), study.reasons
    found = lw.sensitivities(model, texts, {parameter: value}, times=times)
    for name, text in texts.items():
        assert found.value(name) == pytest.approx(study[name][0], rel=1e-9, abs=1e-9), text


@pytest.mark.parametrize("text", ["rms(pen.x - mean(pen.x))", "range(pen.x)/crank", "max(b.v)"])
def test_an_objective_has_the_value_that_a_study_gives_it(text: str) -> None:
    times = np.linspace(0.1, 5.9, 12)
    best = lw.optimise(FOUR_BAR, text, {"crank": (0.95, 1.05)}, times=times)
    study = lw.sweep(FOUR_BAR, {"crank": [best.parameters["crank"]]}, {"y": text}, times=times)
    assert best.value == pytest.approx(study["y"][0], rel=1e-9)


def test_a_text_has_one_value_in_simulated_studies_and_derivatives() -> None:
    texts = {f"y{k}": text.rpartition(" = ")[2] for k, text in enumerate(SIMULATED)}
    times = np.linspace(0.0, 0.5, 11)
    analysis = lw.AnalysisSettings("dynamic", method="rk4", dt=2e-3)
    study = lw.sweep(SUSPENSION, {"k": [4e4]}, texts, times=times, analysis=analysis)
    found = lw.sensitivities(SUSPENSION, texts, {"k": 4e4}, times=times, analysis=analysis)
    back = lw.sensitivities(
        SUSPENSION, {name: texts[name] for name in ("y0", "y2", "y3", "y4", "y5")}, {"k": 4e4},
        times=times, analysis=analysis, mode="reverse",
    )  # fmt: skip
    for name, text in texts.items():
        assert found.value(name) == pytest.approx(study[name][0], rel=1e-9, abs=1e-11), text
        if name in back.outputs:
            assert back.value(name) == pytest.approx(study[name][0], rel=1e-9, abs=1e-11), text
            assert back.gradient(name) == pytest.approx(found.gradient(name), rel=1e-7), text


@pytest.mark.parametrize("text", WITHOUT_DERIVATIVES)
def test_what_has_no_derivative_is_refused_by_name(text: str) -> None:
    with pytest.raises(LinkwrightError, match=re.escape(f"the output {text!r}: ")):
        lw.sensitivities(FOUR_BAR, text, "crank", times=[0.0, 1.0])


@pytest.mark.parametrize(
    "text", ["", "max(pen.x", "penn.x", "pen.q", "pen", "maximum(pen.x)", "max()", "distance(pen)", "pen.x; 1", "strok"]
)
def test_a_text_that_cannot_be_read_has_one_error(text: str) -> None:
    messages = []
    for ask in (
        lambda: lw.sweep(FOUR_BAR, {"crank": [1.0]}, {"y": text}, times=[0.0, 1.0]),
        lambda: lw.sensitivities(FOUR_BAR, {"y": text}, "crank", times=[0.0, 1.0]),
    ):
        with pytest.raises(LinkwrightError) as error:
            ask()
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_the_texts_of_the_pages_are_among_these() -> None:
    """Outputs in the code of README and docs: of lw.sweep, lw.sensitivities and lw.optimise."""
    known = {text for texts in TEXTS.values() for text in texts} | set(SIMULATED)
    pages = [ROOT / "README.md", ROOT / "docs" / "sweep.md", ROOT / "docs" / "design.md"]
    code = "\n".join(block for page in pages for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S))
    found = set(re.findall(r'"((?:\w+ = )?(?:max|min|mean|rms|range|final|initial|integral)\(.*?\))"', code))
    assert found - known == set()
    assert len(found) > 3
