"""`linkwright bench`, on the one benchmark that counts instead of timing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command import linkwright

from linkwright.cli.bench_verb import HOME, scripts_by_name


def test_a_benchmark_that_is_not_there_is_told_with_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "bench", "complexty")
    assert outcome.code == 1
    assert "complexity" in outcome.err


@pytest.mark.slow
def test_complexity_prints_every_method_and_the_papers_formulas_and_draws_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "complexity" in scripts_by_name()
    monkeypatch.syspath_prepend(str(HOME / "benchmarks"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["complexity.py"])
    import complexity

    monkeypatch.setattr(complexity, "LINKS", (1, 2, 3, 4, 6, 8))
    monkeypatch.setattr(complexity, "SHOWN", (4, 8))
    assert complexity.main() == 0
    out = capsys.readouterr().out
    assert all(method in out for method in complexity.FORWARD_METHODS)
    assert all(formula in out for formula in ("1291N − 900", "1090N − 905", "eqs 34, 35", "837N − 703"))
    assert (tmp_path / "out" / "complexity.png").read_bytes().startswith(b"\x89PNG")
