"""What `linkwright run` and `linkwright check` say of planar linkages."""

import re
from pathlib import Path

import pytest
from command import linkwright

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
LOOP = "s + l = 4 < p + q = 5.5: crank-rocker, crank_bar turns fully"


def test_run_prints_the_linkage_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    outcome = linkwright(capsys, "run", MODELS / "four_bar.mks", "--no-page", "--output", tmp_path)
    assert outcome.code == 0, outcome.err
    for words in (
        "mobility: Grübler–Kutzbach count planar 3·3 − 8 = 1; by rank 1 degree of freedom",
        LOOP,
        "transmission angle of coupler_bar on rocker_bar: 41.41° … 92.87°, worst 41.41°",
        "d.angle: dead centres: minimum 87.1340° at a.angle = 38.6248°",
    ):
        assert words in outcome.out, outcome.out


@pytest.mark.parametrize("name", ["rssr", "geneva"])
def test_run_prints_no_linkage_report_where_there_is_no_planar_loop(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    outcome = linkwright(capsys, "run", MODELS / f"{name}.mks", "--no-page", "--output", tmp_path)
    assert outcome.code == 0, outcome.err
    assert "transmission" not in outcome.out


def test_check_names_every_element_by_its_kind(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cam = tmp_path / "cam.mks"
    cam.write_text(
        """MODEL cam
SYSTEM (KINEMATIC ANALYSIS, ending time = 1, print interval = 0.1);
BODY base (ground); BODY shaft; BODY tappet (origin = (0, 4));
HINGE crank (body = base, body = shaft, at = (0, 0));
SLIDER slide (body = base, body = tappet, at = (0, 4), axis = (0, 1));
CURVE disc (body = shaft, x = 1 + 3*cos(u), y = 3*sin(u), range = (0, 2*pi), closed);
POINT ON CURVE touch (curve = disc, point = tappet);
DRIVER motor (crank.angle = TIME);
ENDMODEL"""
    )
    for model, words in ((cam, "point on a curve"), (MODELS / "geneva.mks", "coupling")):
        out = linkwright(capsys, "check", model).out
        assert words in out, out
        assert "function=" not in out, out


def test_check_counts_no_massless_body_of_a_curve_as_one_of_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    out = linkwright(capsys, "check", MODELS / "cam.mks").out
    assert out.count("touch along") == 1, out
    assert "1 of these bodies is massless and brought along by curves: touch along" in out
    assert re.search(r"touch +point on a curve +1\n", out), out
    assert re.search(r"bodies +ground included +3\n", out), out
    assert re.search(r"degrees of freedom +by count +0\n", out), out
    assert "5 held by 2 joints and 1 half joint" in " ".join(out.split()), out


def test_check_prints_grashofs_condition(capsys: pytest.CaptureFixture[str]) -> None:
    assert LOOP in linkwright(capsys, "check", MODELS / "four_bar.mks").out
    assert "four-bar" not in linkwright(capsys, "check", MODELS / "rssr.mks").out


def test_run_shows_no_massless_body_of_a_curve(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    outcome = linkwright(capsys, "run", MODELS / "cam.mks", "--no-page", "--output", tmp_path)
    assert outcome.code == 0, outcome.err
    assert "follower  " in outcome.out
    assert "touch along" not in outcome.out
