"""What `linkwright run` and `linkwright check` say of planar linkages."""

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


def test_check_prints_grashofs_condition(capsys: pytest.CaptureFixture[str]) -> None:
    assert LOOP in linkwright(capsys, "check", MODELS / "four_bar.mks").out
    assert "four-bar" not in linkwright(capsys, "check", MODELS / "rssr.mks").out
