"""`linkwright demo` and `linkwright bench`."""

from pathlib import Path

import pytest
from command import linkwright, one_line

from linkwright.cli import bench_verb as bench
from linkwright.cli import demo_verb as robot


@pytest.fixture(autouse=True)
def _briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robot, "BATCH", 64)
    monkeypatch.setattr(robot, "ROUNDS", 2)
    monkeypatch.setattr(robot, "SHORTEST", 1e-6)


def test_the_robot_demo_shows_a_table_dynamics_and_speed(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "demo", "robot")
    assert outcome.code == 0, outcome.err
    for part in ("panda_joint7", "degrees of freedom", "gives tau back", "forward_dynamics, one call"):
        assert part in outcome.out


def test_a_folder_for_the_robot_demo_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    outcome = linkwright(capsys, "demo", "robot", "-o", str(tmp_path / "x"))
    assert outcome.code == 1
    assert "the demonstration 'robot' writes no files" in outcome.err


def test_the_robot_demo_compares_itself_with_pinocchio(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pinocchio", reason="Pinocchio is the peer: pip install pin")
    outcome = linkwright(capsys, "demo", "robot")
    assert outcome.code == 0, outcome.err
    for part in ("Pinocchio", "ratio", "the same accelerations"):
        assert part in outcome.out


def test_the_robot_demo_has_an_arm_of_its_own_without_the_robots(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(robot, "panda", lambda: None)
    outcome = linkwright(capsys, "demo", "robot")
    assert outcome.code == 0, outcome.err
    assert "six-joint arm" in outcome.out
    assert "forward_dynamics, one call" in outcome.out


def test_the_demo_goes_from_a_model_file_to_its_animation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "demo", "--output", tmp_path)
    assert outcome.code == 0, outcome.err
    for part in ("coordinates", "28", "27", "1 undriven degree of freedom: pend2", "Newton iterations"):
        assert part in outcome.out
    assert {f.suffix for f in tmp_path.iterdir()} >= {".nc", ".html"}
    assert outcome.out.rstrip().endswith(str(tmp_path / "slider_crank.html"))


def test_a_demo_that_is_not_there_is_told_with_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'robot'" in one_line(linkwright(capsys, "demo", "robots"))


def test_times_are_told_in_fitting_units() -> None:
    assert [robot._time(x) for x in (8.1e-8, 7e-7, 2.5e-6, 0.012, 3.0)] == ["81 ns", "700 ns", "2.5 µs", "12 ms", "3 s"]


def test_bench_says_where_the_benchmarks_are_if_not_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "HOME", tmp_path)
    outcome = linkwright(capsys, "bench")
    assert outcome.code == 1
    assert "benchmarks/ of a checkout" in one_line(outcome)


def test_bench_runs_the_scripts_of_a_checkout_by_name(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").touch()
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "shared.py").write_text("print('not a benchmark')\n")
    (folder / "arms.py").write_text("if __name__ == \"__main__\":\n    print('arms are timed')\n")
    (folder / "legs.py").write_text('if __name__ == "__main__":\n    raise SystemExit(3)\n')
    monkeypatch.setattr(bench, "HOME", tmp_path)
    assert list(bench.scripts_by_name()) == ["arms", "legs"]
    outcome = linkwright(capfd, "bench", "arms")
    assert outcome.code == 0
    assert "arms are timed" in outcome.out
    assert "not a benchmark" not in outcome.out
    assert "did you mean 'arms'" in one_line(linkwright(capfd, "bench", "arm"))
    outcome = linkwright(capfd, "bench")
    assert outcome.code == 1
    assert "these benchmarks failed: legs" in outcome.err
