"""Reductions from point to point give what reductions of whole series give."""

from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright.outputs.output_functions import REDUCTIONS
from linkwright.outputs.output_language import output_of
from linkwright.outputs.running_reductions import RUNNING, running_parts

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
RNG = np.random.default_rng(2)


@pytest.mark.parametrize("kind", RUNNING)
@pytest.mark.parametrize("points", [1, 2, 33])
def test_a_reduction_from_point_to_point_is_that_of_the_series(kind, points):
    t = np.cumsum(RNG.uniform(0.1, 1.0, points))
    x = np.round(RNG.standard_normal((points, 5)), 1)  # with equal values among them
    running = RUNNING[kind]
    carried = running.start(x[0], np.full(5, t[0]))
    for k in range(1, points):
        carried = running.go_on(carried, x[k], np.full(5, t[k]))
    assert len(carried) == running.size
    np.testing.assert_array_equal(running.end(np.array(carried), points), REDUCTIONS[kind].value(x, t))


def test_a_reduction_that_needs_the_whole_series_is_not_carried(monkeypatch):
    assert set(RUNNING) <= set(REDUCTIONS)
    d = lw.load(MODELS / "four_bar.mks").description
    outputs = tuple(output_of(d, text, text) for text in ("max(pen.x)", "mean(pen.x)"))
    assert running_parts(outputs) is not None
    monkeypatch.delitem(RUNNING, "mean")
    assert running_parts(outputs) is None
