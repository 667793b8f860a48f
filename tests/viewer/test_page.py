"""The page: it holds everything, asks for nothing, and what a model calls its parts cannot act in it."""

import base64
import hashlib
import html
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from reading import animated, scene_in, scene_of
from sample_motions import Played, slider_crank

from linkwright.errors import LinkwrightError, ModelError
from linkwright.model.body_motion import QUANTITIES
from linkwright.results.solution import Solution
from linkwright.results.status import Counters, Status
from linkwright.viewer.page import page

WICKED = "</script><img src=x onerror=alert(1)><!--\u2028\u2029 & {{bundle}} {{scene}} \ud800 \"'"


class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] in ("script", "style"):
            self.scripts.append(data)


@pytest.fixture(scope="module")
def text() -> str:
    return page(scene_of(slider_crank()))


def test_a_page_names_no_other_file(text: str) -> None:
    elements = Elements(text).found
    links = [value for _, attributes in elements for name, value in attributes.items() if name in ("src", "href")]
    assert links == ["data:,"]


def test_a_page_imports_and_fetches_nothing(text: str) -> None:
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    assert not re.search(r"\bimport\s*\(", text)


def test_the_policy_allows_the_pages_own_script_and_style_alone(text: str) -> None:
    policy = next(a["content"] for tag, a in Elements(text).found if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "connect-src" not in policy
    for block in (r"<script>(.*?)</script>", r"<style>(.*?)</style>"):
        content = re.search(block, text, re.DOTALL)
        assert content
        digest = base64.b64encode(hashlib.sha256(content[1].encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_names_of_a_model_are_text_and_nothing_else() -> None:
    motion = slider_crank(name=WICKED)
    text = page(scene_of(motion, title=WICKED))
    plain = page(scene_of(slider_crank()))
    tags = [[tag for tag, _ in Elements(t).found] for t in (text, plain)]
    assert tags[0] == tags[1]
    assert scene_in(text)["name"] == WICKED
    assert "\u2028" not in text[text.index('id="scene"') :]
    assert html.escape("<img src=x onerror=alert(1)>") in text


def test_a_page_keeps_the_licence_of_what_it_contains(text: str) -> None:
    assert "The MIT License" in text
    assert "three.js authors" in text


def test_a_page_is_small(text: str) -> None:
    assert len(text) < 900_000


def test_a_page_of_a_very_long_motion_stays_under_twenty_megabytes() -> None:
    motion = slider_crank(points=2)
    points = 200_000
    data = {name: np.repeat(array[:1], points, axis=0) for name, array in motion.data.items()}
    text = page(scene_of(Played(motion.description, np.arange(float(points)), data)))
    assert 1e6 < len(text) < 20e6
    assert "of 200,000 time points are on this page" in scene_in(text)["notes"][0]


def test_animate_writes_the_page_and_gives_its_path(tmp_path: Path) -> None:
    path = animated(slider_crank(), tmp_path / "x.html", title="A title & more")
    assert path == tmp_path / "x.html"
    assert "<title>A title &amp; more</title>" in path.read_text(encoding="utf-8")


def test_a_page_with_half_a_surrogate_pair_can_be_written(tmp_path: Path) -> None:
    assert animated(slider_crank(name=WICKED), tmp_path / "x.html").stat().st_size


def test_how_a_motion_failed_is_on_the_page(tmp_path: Path) -> None:
    motion = slider_crank()
    status = Status(ok=False, message="the driver 'motor' cannot go on")
    arrays = [motion.data[name] for name in QUANTITIES]
    counts = np.zeros(len(motion.time), int)
    failed = Solution.of(
        motion.description, motion.time, *arrays, status=status, counters=Counters(), iterations=counts
    )
    text = animated(failed, tmp_path / "x.html").read_text(encoding="utf-8")
    assert scene_in(text)["notes"] == ["the driver 'motor' cannot go on."]


def test_an_empty_solution_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no time points"):
        animated(slider_crank(points=0), tmp_path / "x.html")
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(LinkwrightError, match="cannot write"):
        animated(slider_crank(), tmp_path / "gone" / "x.html")
