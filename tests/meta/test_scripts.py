"""Examples, pages and the README do what they say."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT, python, python_blocks

from linkwright.dynamics.functions import FORWARD_METHODS

EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]


SHORTER = {"05_hanging_chain": ("--links", "400")}  # the words that make a long example short


#: What takes long, for it compiles much or computes long; other tests see the parts of it.
LONG = {
    *("05_hanging_chain", "08_peaucellier", "09_quick_return", "10_universal_joints", "11_rssr", "12_stewart_platform"),
    *("13_pendulum", "14_double_four_bar", "15_crank_in_space", "16_governor", "17_suspension", "19_sampled_control"),
    *("20_six_leg_manipulator", "21_belt_drive", "22_coupler_curve", "23_tuned_suspension"),
    *("control.md", "hinfinity.md", "manipulator.md", "results.md", "sampled.md", "simulation.md"),
}


def marked(files: list[Path], name: Callable[[Path], str]) -> list[Any]:
    """The files as parameters of a test, the long ones slow."""
    return [pytest.param(f, id=name(f), marks=[pytest.mark.slow] if name(f) in LONG else []) for f in files]


@pytest.mark.parametrize("example", marked(EXAMPLES, lambda f: f.stem))
def test_an_example_runs_and_leaves_its_picture(example: Path, tmp_path: Path) -> None:
    result = python(str(example), *SHORTER.get(example.stem, ()), folder=tmp_path)
    assert result.returncode == 0, result.stderr
    picture = tmp_path / "out" / f"{example.stem}.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_benchmark_of_chains_tells_of_every_method_and_peer(tmp_path: Path) -> None:
    result = python(str(ROOT / "benchmarks" / "chains.py"), "--quick", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    for name in (*FORWARD_METHODS, "Pinocchio", "MuJoCo", "Drake"):
        assert re.search(rf"^\| {name} \| .* \|$", result.stdout, re.MULTILINE), result.stdout
    assert (tmp_path / "out" / "chains.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("page", marked(PAGES, lambda f: f.name))
def test_the_python_of_a_page_runs_from_top_to_bottom(page: Path) -> None:
    blocks = python_blocks(page)
    result = python("-c", "\n".join(blocks))
    assert result.returncode == 0, result.stderr


def test_the_readme_has_a_short_example() -> None:
    first = python_blocks(ROOT / "README.md")[0]
    assert len([line for line in first.splitlines() if line.strip()]) <= 12


@pytest.mark.parametrize("page", TEXTS, ids=lambda f: f.name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_examples_are_numbered_without_gaps() -> None:
    assert [int(f.name[:2]) for f in EXAMPLES] == list(range(1, len(EXAMPLES) + 1))
