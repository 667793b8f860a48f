"""What notebooks show: sound HTML, names from files harmless, nothing from outside, and bounded however long."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import lxml.html
import numpy as np
import pytest

import linkwright as lw
from linkwright.base.html import safe, table
from linkwright.viewer.notebook import Chart, svg, thinned, ticks, together

MODELS = Path(__file__).parents[2] / "examples" / "models"
HOSTILE = '<img src=x onerror="alert(1)">'


def read(thing: Any) -> lxml.html.HtmlElement:
    """The output of a thing, parsed; it loads nothing and runs nothing but in its sandbox."""
    made = lxml.html.fragment_fromstring(thing._repr_html_(), create_parent="div")
    assert not made.xpath(".//script | .//img | .//link | .//object | .//embed | .//@onerror | .//@onload")
    assert not [a for a in made.xpath(".//@href | .//@src") if not a.startswith("data:")]
    return made


def text(made: lxml.html.HtmlElement) -> str:
    return " ".join(" ".join(made.xpath(".//text()[not(ancestor::style)]")).split())


@pytest.fixture(scope="module")
def crank() -> lw.Solution:
    return lw.analyse(MODELS / "slider_crank.mks")


@pytest.fixture(scope="module")
def hostile() -> lw.Mechanism:
    with lw.Builder(HOSTILE) as b:
        body = b.body(f"</style>{HOSTILE}", 1.0, (0, 0, -1.0))
        b.joint("revolute", b.ground, body, name=f"'>{HOSTILE}", axis=(0, 1, 0))
    return b.build()


def test_a_mechanism_shows_its_drawing_and_its_tables() -> None:
    made = read(lw.load(MODELS / "suspension.mks"))
    assert len(made.xpath(".//svg")) == 1
    assert "track" in text(made)  # a rod
    cells = made.xpath(".//details[summary='1 joint that closes a loop']//td/text()")
    assert cells == ["ball_high", "spherical", "upper", "upright"]
    assert "6 parameters" in made.xpath(".//summary/text()")


def test_every_bar_of_the_drawing_names_its_body() -> None:
    made = read(lw.load(MODELS / "four_bar.mks"))
    assert set(lw.load(MODELS / "four_bar.mks").description.body_names) <= set(made.xpath(".//svg//title/text()"))


def test_a_mechanism_that_does_not_go_together_has_tables_and_no_drawing() -> None:
    made = read(_apart())
    assert not made.xpath(".//svg")
    assert made.xpath(".//details")


def _apart() -> lw.Mechanism:
    with lw.Builder("apart") as b:
        bars = [b.body(f"bar{k}", 1.0, (0.5, 0.0, 0.0)) for k in range(2)]
        b.joint("revolute", b.ground, bars[0], name="a")
        b.joint("revolute", bars[0], bars[1], at=(1.0, 0.0, 0.0), name="b")
        b.joint("revolute", b.triad(bars[1], (1.0, 0.0, 0.0)), b.triad(b.ground, (9.0, 0.0, 0.0)), name="c")
    return b.build()


def test_a_million_links_show_their_first_rows_and_how_many_more_there_are() -> None:
    chain = lw.chain(10**6)
    for thing in (chain, chain.bodies, chain.joints):
        shown = thing._repr_html_()
        assert len(shown) < 10_000
        assert "… and 999,988 more" in shown


def test_a_motion_shows_its_status_curves_and_a_sandboxed_animation(crank: lw.Solution) -> None:
    made = read(crank)
    assert "finished." in text(made)
    assert len(made.xpath(".//svg[.//path]")) >= 4
    (frame,) = made.xpath(".//iframe")
    assert frame.get("sandbox") == "allow-scripts"
    inner = lxml.html.document_fromstring(frame.get("srcdoc"))
    (policy,) = inner.xpath(".//meta[@http-equiv]/@content")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy


def test_an_output_with_an_animation_is_small(crank: lw.Solution) -> None:
    assert len(crank._repr_html_()) < 400_000


def test_a_motion_that_stopped_says_why(crank: lw.Solution) -> None:
    status = lw.Status(ok=False, reason="lock-up", message=f"the crank is stuck {HOSTILE}", advice="shorten the rod")
    d, none = crank.description, np.zeros((0, 3, 3))
    stuck = lw.Solution.of(
        d, [], none, np.zeros((0, 3, 4)), *[none] * 4, status=status, counters=lw.Counters(), iterations=[]
    )
    made = read(stuck)
    assert "the crank is stuck" in made.xpath("string(.//p[@class='lw-bad'])")
    assert not made.xpath(".//iframe")


def moved(links: int, points: int) -> lw.Solution:
    """A chain that swings."""
    q = np.sin(np.linspace(0.0, 9.0, points))[:, None] * np.linspace(0.1, 0.2, links)
    d, time = lw.chain(links).description, np.arange(points) * 1e-3
    return lw.Solution.of_states(d, time, q, q.copy(), q.copy(), status=lw.Status(True), counters=lw.Counters())


def test_a_motion_of_many_bodies_is_told_and_not_drawn() -> None:
    made = read(moved(500, 20))
    assert not made.xpath(".//iframe | .//svg")
    assert "sol.animate()" in text(made)


@pytest.mark.parametrize("as_arrays", [False, True])
def test_a_long_motion_is_drawn_at_some_of_its_time_points(as_arrays: bool) -> None:
    long = moved(2, 100_000)
    if as_arrays:
        arrays = {name: np.array(x) for name, x in moved(2, 9000).arrays.items()}
        d, status = long.description, lw.Status(True)
        long = lw.Solution(d, np.arange(9000.0), arrays, np.zeros(9000, int), status, lw.Counters())
    made = read(long)
    assert f"1,500 of {len(long):,} time points are drawn" in text(made)
    assert made.xpath(".//iframe")
    assert len(long._repr_html_()) < 600_000


def test_an_animation_without_a_name_is_shown_and_can_be_saved(crank: lw.Solution, tmp_path: Path) -> None:
    animation = crank.animate(title=HOSTILE, height=300)
    (frame,) = read(animation).xpath(".//iframe")
    assert frame.get("height") == "300"
    assert frame.get("title") == HOSTILE
    saved = animation.save(tmp_path / "crank.html")
    crank.animate(tmp_path / "same.html", title=HOSTILE)
    assert saved.read_bytes() == (tmp_path / "same.html").read_bytes()


@pytest.mark.parametrize("height", [0, 10**6, 300.0, "300", True])
def test_a_height_that_is_none_is_told(crank: lw.Solution, height: Any) -> None:
    with pytest.raises(lw.errors.ModelError, match="height is"):
        crank.animate(height=height)


def test_reports_show_their_numbers() -> None:
    pendulum = lw.load(MODELS / "pendulum.mks")
    rest = pendulum.equilibrium()
    assert "stable" in text(read(rest))
    assert "frequency (Hz)" in text(read(rest.linear))
    assert "degrees of freedom" in text(read(pendulum.dof()))
    many = lw.rollout(pendulum, np.zeros((7, 5)), np.zeros(5), 1e-3, 20)
    assert "7 × 21 × 5" in text(read(many))


def test_a_figure_draws_itself_without_pyplot(crank: lw.Solution) -> None:
    assert crank.plot("block")._repr_png_().startswith(b"\x89PNG")


def test_names_from_files_are_text_and_no_markup(hostile: lw.Mechanism) -> None:
    sol = lw.simulate(hostile, t_end=0.1)
    for thing in (hostile, hostile.joints, hostile.bodies, sol, sol.animate()):
        read(thing)
    assert HOSTILE in text(read(hostile))


def test_letters_that_cannot_be_seen_or_written_are_replaced() -> None:
    assert safe("a\x00b\u202ec\ud800d&") == "a�b�c�d&amp;"


def test_a_table_asks_for_no_more_rows_than_it_shows() -> None:
    asked = []

    def rows() -> Any:
        for k in range(10**9):
            asked.append(k)
            yield (k,)

    assert "… and more" in table(("n",), rows())
    assert len(asked) == 13


def test_a_thinned_curve_keeps_its_peaks() -> None:
    x = np.linspace(0.0, 1.0, 100_001)
    y = np.zeros((len(x), 1))
    y[12_345], y[70_000] = 5.0, -3.0
    when, kept = thinned(x, y)
    assert len(when) == len(kept) < 400
    assert kept.max() == 5.0
    assert kept.min() == -3.0
    assert (np.diff(when) >= 0).all()


@pytest.mark.parametrize("values", [[np.nan, np.inf], [1.0, 1.0], [1e308, -1e308], [5e-324, 0.0], [np.nan, 2.0, 3.0]])
def test_a_chart_of_odd_numbers_has_finite_places(values: list[float]) -> None:
    made = svg(Chart("odd", np.arange(len(values)), np.array(values)))
    assert not re.search(r"nan|inf", made.lower())


def test_a_legend_for_several_charts_keeps_labels_at_their_colours() -> None:
    assert together([("x", "y", "z"), ("e0", "e1", "e2", "e3"), ("x", "y", "z")]) == ["x, e0", "y, e1", "z, e2", "e3"]
    assert together([]) == []


def test_ticks_are_round_and_few() -> None:
    assert ticks(0.0, 1.0, 4) == [0.0, 0.5, 1.0]
    assert ticks(-0.1, 8.0, 5) == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert ticks(1.0, 1.0, 4) == []


def test_a_notebook_lists_no_body_that_curves_bring_along() -> None:
    b = lw.Builder("cam")
    shaft, tappet = b.body("shaft", 1.0), b.body("tappet", 0.4)
    b.place(tappet, (0, 0.038, 0))
    b.joint("revolute", b.ground, shaft, "crank")
    b.joint(
        "prismatic", b.triad(b.ground, h=(0, 1, 0), f=(1, 0, 0)), b.triad(tappet, h=(0, 1, 0), f=(1, 0, 0)), "slide"
    )
    disc = b.curve("disc", shaft, lambda u: (0.03 * np.cos(u), 0.03 * np.sin(u)), closed=True)
    b.curve_on_curve(disc, b.curve("roller", tappet, circle=0.008), "touch")
    page = b.build()._repr_html_()
    assert "touch point" not in page
    assert "touch along" not in page
    assert "touch on second" not in page
    assert "curve on curve" in page
    assert "2 bodies" in page
