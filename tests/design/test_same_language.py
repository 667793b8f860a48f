"""Studies and design read the same texts alike."""

import pytest
from design_models import ROOT

import linkwright as lw

TEXTS = [
    "max(pen.x) - min(pen.x)",
    "rms(pen.ay) + crank^2",
    "integral(d.rate*TIME)",
    "mean(distance(left, pen))",
    "range(distance_rate(left, pen))",
    "final(coupler_bar.alphaz) - initial(B.acceleration)",
]


def test_an_output_has_one_value_in_a_study_and_in_design() -> None:
    model = ROOT / "examples" / "models" / "four_bar.mks"
    outputs = {f"y{k}": text for k, text in enumerate(TEXTS)}
    study = lw.sweep(model, {"crank": [1.1]}, outputs)
    found = lw.sensitivities(model, outputs, {"crank": 1.1})
    for name in outputs:
        assert found.value(name) == pytest.approx(float(study[name][0]), rel=1e-9), outputs[name]
