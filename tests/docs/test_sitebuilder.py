"""The builder of the site: small checkouts become small sites, and what is wrong is named."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import lxml.html
import pytest

sys.path.append(str(Path(__file__).parents[1] / "viewer"))
from browser import FLAGS, PHONE, chromium

from sitebuilder.__main__ import main
from sitebuilder.check import problems
from sitebuilder.plan import BrokenLink, plan
from sitebuilder.text import render, slug

ROOT = Path(__file__).resolve().parents[2]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
EXAMPLE = f'''"""An example <b>of</b> one line: it draws.

Run it.
"""
import base64
from pathlib import Path

print("1 < 2 & it counts its runs")
Path("out").mkdir()
Path("out/01_first_try.png").write_bytes(base64.b64decode("{PNG}"))
Path("out/notes.txt").write_text("notes")
with open(r"RUNS", "a") as file:
    file.write("x")
'''


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with two pages and one example."""
    root = tmp_path / "checkout"
    for folder in ("docs/notebooks", "examples/models", "src/linkwright"):
        (root / folder).mkdir(parents=True)
    (root / "src" / "linkwright" / "__init__.py").write_text('"""Nothing."""\n')
    (root / "README.md").write_text(
        "# Home\n\n<script>alert(1)</script> See [the page](docs/page.md#a-part), [one](examples/01_first_try.py), "
        "[all](examples), [the licence](LICENSE) and [elsewhere](https://example.org).\n\n```python\nx = '<b>'\n```\n"
    )
    (root / "docs" / "page.md").write_text(
        "# Page\n\n## A part\n\n[back](../README.md)\n\n| a |\n| --- |\n| 1<br>2 |\n\n<!-- a mark -->\n"
    )
    (root / "LICENSE").write_text("Do <what> you like.\n")
    (root / "examples" / "01_first_try.py").write_text(EXAMPLE.replace("RUNS", str(tmp_path / "runs")))
    return root


def build(root: Path, *words: str) -> int:
    return main(["--root", str(root), "--jobs", "1", *words])


def read(root: Path, name: str) -> lxml.html.HtmlElement:
    return lxml.html.parse(str(root / "site" / name)).getroot()


def test_pages_examples_and_linked_files_are_there_and_linked(checkout: Path) -> None:
    assert build(checkout) == 0
    home = read(checkout, "index.html")
    links = set(home.xpath("//main//a/@href"))
    assert {"docs/page.html#a-part", "examples/01_first_try.html", "examples/index.html", "files/LICENSE.html"} <= links
    assert "Do <what> you like." in read(checkout, "files/LICENSE.html").text_content()
    assert read(checkout, "docs/page.html").xpath("//h2[@id='a-part']")
    assert read(checkout, "docs/page.html").xpath("//td/br")
    assert "a mark" not in read(checkout, "docs/page.html").text_content()


def test_an_example_shows_what_it_printed_drew_and_left(checkout: Path) -> None:
    build(checkout)
    page = read(checkout, "examples/01_first_try.html")
    assert "1 < 2 & it counts its runs" in page.xpath("//pre[@class='printed']/text()")
    assert page.xpath("//img/@src") == ["01_first_try/01_first_try.png"]
    assert "01_first_try/notes.txt" in page.xpath("//main//a/@href")
    assert "import base64" in page.xpath("string(//pre[@class='code'])")
    card = read(checkout, "examples/index.html").xpath("//a[@class='card']")[0]
    assert "An example <b>of</b> one line" in card.text_content()


def test_markup_in_pages_is_text(checkout: Path) -> None:
    build(checkout)
    home = read(checkout, "index.html")
    assert not home.xpath("//script")
    assert "<script>alert(1)</script>" in home.text_content()
    assert "x = '<b>'" in home.xpath("string(//pre)")


def test_an_example_is_run_again_only_when_something_changed(checkout: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    build(checkout)
    build(checkout)
    assert runs.read_text() == "x"
    (checkout / "src" / "linkwright" / "__init__.py").write_text('"""Something."""\n')
    build(checkout)
    assert runs.read_text() == "xx"
    (checkout / ".site-cache" / "examples" / "01_first_try" / "run.json").write_text("{")
    build(checkout)
    assert runs.read_text() == "xxx"


def test_a_broken_link_fails_the_build_and_is_named(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for link, told in (("gone.md", "there is no docs/gone.md"), ("../README.md#no", "has no place 'no'")):
        (checkout / "docs" / "page.md").write_text(f"# Page\n\n## A part\n\n[x]({link})\n")
        assert build(checkout, "--quick") == 1
        assert told in capsys.readouterr().err


def test_a_failed_example_is_named_and_the_rest_is_written(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "examples" / "02_wrong.py").write_text('"""Wrong."""\nraise SystemExit("the sum is not right")\n')
    assert build(checkout) == 1
    told = capsys.readouterr().err
    assert "02_wrong.py failed" in told
    assert "the sum is not right" in told
    assert (checkout / "site" / "docs" / "page.html").exists()
    assert "It failed" in read(checkout, "examples/02_wrong.html").text_content()
    assert read(checkout, "examples/01_first_try.html").xpath("//img")


def test_a_folder_that_is_no_site_is_left_alone(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "site").mkdir()
    (checkout / "site" / "thesis.tex").write_text("years of work")
    assert build(checkout, "--quick") == 2
    assert "is not a site that was built here" in capsys.readouterr().err
    assert [f.name for f in (checkout / "site").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    "markup",
    [
        '<img src="https://example.org/x.png">',
        '<link rel="stylesheet" href="//example.org/x.css">',
        '<script src="http://example.org/x.js"></script>',
        '<p style="background: url(https://example.org/x.png)">x</p>',
        "<style>@import 'https://example.org/x.css';</style>",
        '<iframe src="https://example.org"></iframe>',
    ],
)
def test_what_would_come_from_outside_is_found(tmp_path: Path, markup: str) -> None:
    (tmp_path / "a.html").write_text(f"<!doctype html><html><body>{markup}</body></html>")
    assert problems(tmp_path)


def test_a_page_that_stands_alone_needs_a_policy(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<!doctype html><script src='https://example.org/x.js'></script>")
    assert problems(tmp_path, frozenset({"a.html"})) == ["a.html has no policy that forbids requests"]


def test_a_link_may_not_leave_the_checkout(checkout: Path) -> None:
    with pytest.raises(BrokenLink, match="there is no"):
        plan(checkout).resolve("README.md", "../secret.txt")


def test_anchors_are_those_of_github() -> None:
    taken: dict[str, int] = {}
    names = [slug(words, taken) for words in ("H∞ design", "What it is, and `why`", "A part", "A part")]
    assert names == ["h-design", "what-it-is-and-why", "a-part", "a-part-1"]


def test_a_link_with_a_script_is_no_link() -> None:
    made = lxml.html.fromstring(render("[x](javascript:alert(1)) [y](data:text/html,z)", lambda link: link).body)
    assert not made.xpath("//a")


def test_the_pages_of_this_checkout_have_no_broken_link(tmp_path: Path) -> None:
    words = ["--quick", "--out", str(tmp_path / "site"), "--cache", str(tmp_path / "cache")]
    assert main(words) == 0


def test_notebooks_are_kept_without_outputs() -> None:
    found = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
    assert len(found) >= 3
    for file in found:
        for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
            assert not cell.get("outputs"), f"{file.name} has outputs; clear them"
            assert cell.get("execution_count") is None, file.name


def notebook(*cells: str) -> str:
    made = [
        {"cell_type": "code", "id": f"c{k}", "metadata": {}, "source": c, "outputs": [], "execution_count": None}
        for k, c in enumerate(cells)
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_a_notebook_that_needs_what_is_missing_is_left_out(checkout: Path) -> None:
    study = json.loads(notebook("1"))
    study["metadata"]["linkwright"] = {"needs": ["sweep"]}
    (checkout / "docs" / "notebooks" / "study.ipynb").write_text(json.dumps(study))
    assert not plan(checkout).notebooks
    (checkout / "src" / "linkwright" / "__init__.pyi").write_text(
        "from linkwright.sweeps.sweep import sweep as sweep\n"
    )
    assert plan(checkout).notebooks


def test_every_notebook_of_the_docs_has_its_page() -> None:
    notebooks = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
    assert plan(ROOT).notebooks == notebooks


@pytest.mark.slow
def test_a_notebook_is_executed_once_and_a_failed_cell_is_named(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class_ = "class Shown:\n    def _repr_html_(self):\n        return '<b>rich</b>'\nShown()"
    place = checkout / "docs" / "notebooks"
    (place / "good.ipynb").write_text(notebook(class_, "print('<plain>')"))
    (place / "bad.ipynb").write_text(notebook("1 / 0"))
    assert build(checkout) == 1
    assert "bad.ipynb failed" in (told := capsys.readouterr()).err
    assert "ZeroDivisionError" in told.err
    page = read(checkout, "docs/notebooks/good.html")
    assert page.xpath("//div[@class='output']/b/text()") == ["rich"]
    assert page.xpath("//pre[@class='printed']/text()") == ["<plain>"]
    assert sorted(f.name for f in place.iterdir()) == ["bad.ipynb", "good.ipynb"]
    build(checkout, "--only", "good")
    assert "good.ipynb: as before" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["first_mechanism", "robot_dynamics", "equations_on_paper"])
def test_a_notebook_of_the_docs_runs(name: str, tmp_path: Path) -> None:
    assert main(["--only", name, "--out", str(tmp_path / "site"), "--cache", str(tmp_path / "cache")]) == 0


@pytest.mark.skipif(chromium() is None, reason="no Chromium was found: install it, or set LINKWRIGHT_CHROMIUM to it")
def test_a_phone_shows_a_page_without_sideways_scrolling_and_asks_for_nothing_outside(checkout: Path) -> None:
    from playwright.sync_api import sync_playwright

    table = "".join(f"|{f' {word} |' * 30}\n" for word in ("head", "---", "word"))
    long = f"# Page\n\n## A part\n\n```python\nx = '{'long ' * 60}'\n```\n\n{table}"
    (checkout / "docs" / "page.md").write_text(long)
    build(checkout)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        page = browser.new_context(**PHONE).new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        for name in ("index.html", "docs/page.html", "examples/01_first_try.html", "examples/index.html"):
            page.goto((checkout / "site" / name).as_uri())
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        page.locator(".menu summary").click()
        assert page.locator(".menu a", has_text="Overview").is_visible()
        assert not page.locator(".side").is_visible()
        browser.close()
    assert asked
    assert all(url.startswith(("file:", "data:")) for url in asked)
