"""Examples, pages and the README do what they say."""

import re
from pathlib import Path

import pytest
from checkout import ROOT, python, python_blocks

from linkwright.programs import FORWARD_METHODS

EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]


SHORTER = {"05_hanging_chain": ("--links", "400")}  # the words that make a long example short


#: Compiles a mechanism of 37 rates and draws maps: half a minute.
LONG = {"20_six_leg_manipulator"}


@pytest.mark.parametrize(
    "example",
    [pytest.param(f, id=f.stem, marks=[pytest.mark.slow] if f.stem in LONG else []) for f in EXAMPLES],
)
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


@pytest.mark.parametrize("page", PAGES, ids=lambda f: f.name)
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
