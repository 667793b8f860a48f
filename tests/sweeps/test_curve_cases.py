"""Sweeps and tolerances of cams: cases in a batch are what the model read with the case's values does."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import linkwright as lw
from linkwright.formats.mks.mks_reader import ModelText
from linkwright.sweeps.task import CaseReader

CAM = """MODEL cam
SYSTEM ({analysis} ANALYSIS, ending time = 1, print interval = 0.1);
PARAMETER e = 10 mm; PARAMETER r = 30 mm; PARAMETER roller = 8 mm;
BODY g (ground);
BODY shaft (origin = (0, 0, 0), mass = 1, inertia = (0.01, 0.01, 0.002));
BODY tappet (origin = (6 mm, 45 mm, 0), mass = 0.4);
HINGE crank (body = g, body = shaft, at = (0, 0, 0));
SLIDER slide (body = g, body = tappet, axis = (0, 1, 0));
CURVE disc (body = shaft, x = e + r*cos(u), y = r*sin(u), range = (0, 360 deg), closed);
CURVE wheel (body = tappet, circle = roller);
CURVE ON CURVE touch (curve = disc, curve = wheel);
SPRING back (joint = slide, stiffness = 1000, rest = -0.05);
DRIVER motor (crank.angle = 3*TIME);
{more}
ENDMODEL
"""
TIMES = np.linspace(0.0, 1.0, 11)


def model(analysis: str = "KINEMATIC", more: str = "") -> str:
    return CAM.replace("{analysis}", analysis).replace("{more}", more)


def alone(text: str, output: str, values: dict[str, float]) -> float:
    """The largest value of a body's y or of a series, of the model read with these values."""
    sol = lw.analyse(lw.Mechanism(ModelText(text).description(values)), times=TIMES)
    assert sol.status
    return float(sol.position("tappet")[:, 1].max() if output == "y" else sol.series["touch.force"].values.max())


def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts how often cases are built from the text."""
    count = [0]
    mechanism = CaseReader.mechanism

    def counted(self: CaseReader, values: object = None) -> lw.Mechanism:
        count[0] += 1
        return mechanism(self, values)  # type: ignore[arg-type]

    monkeypatch.setattr(CaseReader, "mechanism", counted)
    return count


@pytest.mark.parametrize(
    ("analysis", "text"), [("KINEMATIC", "max(tappet.y)"), ("INVERSE DYNAMIC", "max(touch.force)")]
)
def test_cases_near_each_other_are_not_read_one_by_one(
    analysis: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, count = model(analysis, 'TRACE path (body = "touch point");'), reads(monkeypatch)
    cases = {
        "e": np.array([0.0098, 0.01, 0.0101]),
        "r": np.array([0.0298, 0.0302]),
        "roller": np.array([0.0079, 0.0081]),
    }
    mech, kind = lw.Mechanism(ModelText(source).description({})), analysis.lower()
    study = lw.sweep(mech, cases, {"top": text}, analysis=kind, times=TIMES)
    assert study.ok.all(), study.reason_counts
    assert count[0] <= 1 + 3 + 3 * 2 * 2  # the base, what parameters do, and the ends of each
    what = "y" if kind == "kinematic" else "force"
    wanted = [
        alone(source, what, dict(zip(cases, row, strict=True)))
        for row in product(*map(np.ndarray.tolist, cases.values()))
    ]
    np.testing.assert_allclose(np.ravel(study["top"]), wanted, rtol=1e-9)


def test_cases_that_touch_elsewhere_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    source, count = model(), reads(monkeypatch)
    values = np.array([0.002, 0.0101, 0.018, 0.022])
    mech = lw.Mechanism(ModelText(source).description({}))
    study = lw.sweep(mech, {"e": values}, {"top": "max(tappet.y)"}, analysis="kinematic", times=TIMES)
    assert count[0] > len(values)
    np.testing.assert_allclose(study["top"], [alone(source, "y", {"e": x}) for x in values.tolist()], rtol=1e-9)


def test_tolerances_of_a_cam_are_those_of_its_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    source, count = model(), reads(monkeypatch)
    mech = lw.Mechanism(ModelText(source).description({}))
    tolerances = {"e": 1e-4, "r": 1e-4, "roller": 1e-4}
    settings = lw.ToleranceSettings(draws=2000, seed=1)
    top = lw.tolerances(mech, "top = max(tappet.y)", tolerances, times=TIMES, settings=settings)["top"]
    assert count[0] < 60

    def height(e: float, r: float, roller: float) -> float:
        turn = 3.0 * TIMES
        x = 0.006 - e * np.cos(turn)  # the roller's centre from that of the disc
        return float((e * np.sin(turn) + np.sqrt((r + roller) ** 2 - x**2)).max())

    draws = top.monte_carlo
    assert top.nominal == pytest.approx(height(0.01, 0.03, 0.008), abs=1e-12)
    halves = []
    for k in range(3):
        ends = [
            height(*(0.01, 0.03, 0.008)[:k], (0.01, 0.03, 0.008)[k] + s, *(0.01, 0.03, 0.008)[k + 1 :])
            for s in (1e-7, -1e-7)
        ]
        halves.append(abs(ends[0] - ends[1]) / 2e-7 * 1e-4)
    assert top.rss == pytest.approx(np.linalg.norm(halves), rel=1e-6)
    assert draws is not None
    assert draws.std == pytest.approx(top.rss / 3, rel=0.05)


def test_outputs_of_contact_bodies_count_from_the_drawing_of_each_case() -> None:
    source = model()
    mech = lw.Mechanism(ModelText(source).description({}))
    values = np.array([0.0099, 0.0101])
    text = '"touch along first".shift'
    study = lw.sweep(mech, {"e": values}, {"shift": f"max({text})"}, analysis="kinematic", times=TIMES)
    for got, value in zip(study["shift"], values.tolist(), strict=True):
        sol = lw.analyse(lw.Mechanism(ModelText(source).description({"e": value})), times=TIMES)
        assert got == pytest.approx(sol.joint("touch along first").max(), abs=1e-12)
