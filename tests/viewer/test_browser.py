"""The page in a browser: what it shows, how it is handled, and that nothing in it fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import DESKTOP, FLAGS, PHONE, Open, chromium, opened
from numpy.testing import assert_allclose
from reading import animated
from sample_motions import Played, chain, every_shape, slider_crank, spatial_four_bar
from test_page import WICKED

import linkwright as lw
from linkwright.model.units import Units
from linkwright.results.solution import Solution
from linkwright.viewer.shapes import PALETTE

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
pytestmark = pytest.mark.skipif(
    chromium() is None, reason="no Chromium was found; install it or set LINKWRIGHT_CHROMIUM"
)
MOTIONS: dict[str, Callable[[], Played]] = {
    "slider-crank": slider_crank,
    "small": lambda: slider_crank(scale=0.001, trace=False),
    "shapes": lambda: slider_crank(shapes=True),
    "spatial": spatial_four_bar,
    "chain": chain,
    "still": lambda: slider_crank(points=1),
    "coarse": lambda: slider_crank(points=9),
    "wicked": lambda: slider_crank(name=WICKED),
}
Opener = Callable[..., AbstractContextManager[Open]]


@pytest.fixture(scope="module")
def open_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opener]:
    folder = tmp_path_factory.mktemp("pages")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))

        def open_one(name: str = "slider-crank", solution: Any = None, **options: Any) -> AbstractContextManager[Open]:
            path: Path = folder / f"{name}.html"
            if not path.exists():
                animated(MOTIONS[name]() if solution is None else solution, path)
            return opened(browser, path, **options)

        yield open_one
        browser.close()


LONG = pytest.param("chain", marks=pytest.mark.slow)  # many bodies


@pytest.mark.parametrize("name", [*sorted(set(MOTIONS) - {"chain"}), LONG])
def test_a_page_comes_up_without_an_error_and_asks_for_nothing(open_page: Opener, name: str) -> None:
    with open_page(name) as page:
        assert page.value("[linkwright.ready, linkwright.webgl, linkwright.error]") == [True, True, ""]
        page.settle()
        assert page.errors == []
        assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
        assert len([url for url in page.requests if url.startswith("file:")]) == 1


@pytest.mark.parametrize("name", ["slider-crank", "small", "shapes", "spatial", LONG])
def test_the_picture_shows_bodies_in_their_colours(open_page: Opener, name: str) -> None:
    with open_page(name) as page:
        pixels = page.picture("#view").astype(int)
    colourful = (pixels.max(axis=-1) - pixels.min(axis=-1) > 60).mean()
    assert 0.002 < colourful < 0.5


@pytest.mark.parametrize("name", ["slider-crank", "spatial", LONG])
def test_the_whole_motion_stays_inside_the_picture(open_page: Opener, name: str) -> None:
    with open_page(name) as page:
        page.page.click("#panel")
        for t in (0.0, 1.6, 3.1, 4.7):
            page.value(f"linkwright.setTime({t})")
            pixels = page.picture("#view").astype(int)
            colourful = pixels.max(axis=-1) - pixels.min(axis=-1) > 60
            # The tools lie over the right side; the bodies do not touch any edge.
            assert colourful[:, :850].any()
            edges = (colourful[:4], colourful[-4:], colourful[:, :4])
            assert not any(edge.any() for edge in edges)


def test_every_shape_is_drawn_in_its_colour(open_page: Opener, tmp_path: Path) -> None:
    MOTIONS["every shape"] = lambda: every_shape(tmp_path)
    with open_page("every shape") as page:
        assert page.errors == []
        pixels = page.picture("#view").astype(float)
    for color in PALETTE[:6]:
        hue = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)], float)
        # Light and shade keep the direction of a colour, less its grey.
        wanted, seen = hue - hue.mean(), pixels - pixels.mean(axis=-1, keepdims=True)
        size = np.linalg.norm(seen, axis=-1)
        alike = (seen @ wanted) / (np.linalg.norm(wanted) * np.maximum(size, 1e-9))
        assert ((alike > 0.97) & (size > 35)).sum() > 150, color


def poses(page: Open) -> tuple[np.ndarray, np.ndarray]:
    found = page.value("linkwright.poses()")
    return np.array([x["position"] for x in found]), np.array([x["orientation"] for x in found])


@pytest.mark.parametrize("name", ["slider-crank", "small", "spatial", LONG])
def test_bodies_are_where_the_solution_has_them(open_page: Opener, name: str) -> None:
    motion = MOTIONS[name]()
    size = np.ptp(motion.data["position"])
    with open_page(name) as page:
        for k in (0, 7, len(motion.time) - 1):
            page.value(f"linkwright.setTime({float(motion.time[k])!r})")
            p, e = poses(page)
            assert_allclose(p, motion.data["position"][k], atol=2e-6 * size)
            assert_allclose(np.abs((e * motion.data["orientation"][k]).sum(axis=-1)), 1.0, atol=1e-6)


def test_between_time_points_bodies_follow_the_motion_closely(open_page: Opener) -> None:
    motion = MOTIONS["slider-crank"]()
    assert motion.poses is not None
    with open_page() as page:
        for t in (0.333, 2.718, 7.77):
            page.value(f"linkwright.setTime({t})")
            p, e = poses(page)
            wanted = motion.poses(t)
            assert_allclose(p, wanted[0], atol=2e-4)
            assert_allclose(np.abs((e * wanted[1]).sum(axis=-1)), 1.0, atol=1e-6)


@pytest.mark.slow
def test_between_coarse_time_points_links_stay_nearly_together(open_page: Opener) -> None:
    with open_page("coarse") as page:
        page.value("linkwright.setTime(1.5)")
        p, e = poses(page)
    angle = 2 * np.arctan2(e[0, 3], e[0, 0])
    pin = p[0] + 3 * np.array([np.cos(angle), np.sin(angle), 0])
    assert np.linalg.norm(pin - 2 * p[0]) < 0.05


def test_the_slider_moves_the_time_and_stops_it(open_page: Opener) -> None:
    with open_page() as page:
        page.page.click("#play")
        assert page.value("linkwright.playing")
        page.page.locator("#slider").fill("3.25")
        assert page.value("[linkwright.time, linkwright.playing]") == [3.25, False]
        assert page.page.inner_text("#clock") == "3.25 / 8.00 s"


def test_the_space_key_plays_and_pauses(open_page: Opener) -> None:
    with open_page() as page:
        page.page.keyboard.press(" ")
        page.until("linkwright.time > 0.05")
        assert page.page.get_attribute("#play", "aria-label") == "Pause"
        page.page.keyboard.press(" ")
        assert not page.value("linkwright.playing")
        assert page.page.get_attribute("#play", "aria-label") == "Play"


def test_the_space_key_still_plays_after_a_click_on_a_button(open_page: Opener) -> None:
    with open_page() as page:
        page.page.click("#triads")
        page.page.keyboard.press(" ")
        assert page.value("linkwright.playing")
        assert page.page.get_attribute("#triads", "aria-pressed") == "true"


def test_a_page_plays_by_itself_unless_the_reader_wants_less_motion(open_page: Opener) -> None:
    with open_page(reduced_motion="no-preference") as page:
        page.until("linkwright.time > 0")
    with open_page() as page:
        assert not page.value("linkwright.playing")


@pytest.mark.slow
@pytest.mark.parametrize("speed", ["0.1", "1", "5"])
def test_time_runs_at_the_chosen_speed(open_page: Opener, speed: str) -> None:
    with open_page(clock=True) as page:
        page.page.select_option("#speed", speed)
        page.page.click("#play")
        page.page.clock.run_for(1000)
        assert page.value("linkwright.time") == pytest.approx(float(speed), rel=0.1)


@pytest.mark.slow
def test_time_starts_again_at_the_end_or_stops_there(open_page: Opener) -> None:
    with open_page(clock=True) as page:
        page.value("linkwright.setTime(7.8)")
        page.page.click("#play")
        page.page.clock.run_for(600)
        assert page.value("linkwright.time") < 1
        page.page.click("#loop")
        page.value("linkwright.setTime(7.8)")
        page.page.click("#play")
        page.page.clock.run_for(600)
        assert page.value("[linkwright.time, linkwright.playing]") == [8, False]


def test_arrow_keys_go_from_time_point_to_time_point(open_page: Opener) -> None:
    with open_page() as page:
        page.value("linkwright.setTime(1.05)")
        for key, time in (("ArrowLeft", 1.0), ("ArrowRight", 1.1), ("ArrowRight", 1.2), ("End", 8), ("Home", 0)):
            page.page.keyboard.press(key)
            assert page.value("linkwright.time") == pytest.approx(time)


def cursor(page: Open) -> float:
    return float(page.page.get_attribute(".chart:not([hidden]) .cursor >> nth=0", "x1"))


def test_the_cursor_of_the_plots_follows_the_time(open_page: Opener) -> None:
    with open_page() as page:
        places = []
        for t in (0, 4, 8):
            page.value(f"linkwright.setTime({t})")
            places.append(cursor(page))
        assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.1)
        assert places[2] - places[0] > 200


def test_the_plots_tell_the_values_at_the_cursor(open_page: Opener) -> None:
    motion = MOTIONS["slider-crank"]()
    with open_page() as page:
        page.page.select_option("#place", label="block")
        page.value("linkwright.setTime(2)")
        told = page.page.locator(".values .x").all_inner_texts()
    for text, name in zip(told, ("position", "velocity", "acceleration"), strict=True):
        number = float(text.removeprefix("x ").replace("−", "-"))
        assert number == pytest.approx(motion.data[name][20, 2, 0], rel=1e-3)


def test_rounding_does_not_show_in_the_plots(open_page: Opener) -> None:
    with open_page("spatial") as page:
        page.page.select_option("#place", label="crank")  # which turns about ground's origin
        page.value("linkwright.setTime(2)")
        assert set(page.page.locator(".values span").all_inner_texts()) == {"x 0", "y 0", "z 0"}


def swinging() -> Any:
    b = lw.Builder("pendulum")
    b.joint("revolute", b.ground, b.body("bob", 1.0, (0, 0, -1), (0.01, 0.01, 0.01)), "pivot", axis=(0, 1, 0))
    b.initial("pivot", 1.0)
    return lw.simulate(b.build(), 1.0, saving=lw.Saving(interval=0.05))


@pytest.mark.slow
def test_the_plots_open_on_something_that_moves(open_page: Opener) -> None:
    chosen = "document.querySelector('#place').selectedOptions[0].textContent"
    with open_page("swinging", swinging()) as page:  # whose only body turns about its origin
        assert page.value(chosen) == "pivot (joint)"
    with open_page("small") as page:
        assert page.value(chosen) == "coupler"
    with open_page("still") as page:
        assert page.value(chosen)


@pytest.mark.slow
def test_long_numbers_leave_the_time_axis_where_it_is_seen(open_page: Opener) -> None:
    with open_page(viewport={"width": 1300, "height": 800}) as page:
        heads = "[...document.querySelectorAll('.chart h2')].map((h) => h.clientHeight)"
        one_line = page.value(heads)
        wide = "for (const x of document.querySelectorAll('.values span')) x.textContent = '%s'"
        page.value("linkwright.pause()")
        page.value(wide % "x −0.00384")
        assert page.value(heads) == one_line
        page.value("for (const x of document.querySelectorAll('.values')) x.style.fontSize = '18px'")
        page.settle()
        assert min(page.value(heads)) > max(one_line)
        lowest = "[...document.querySelectorAll('.drawing')].every((d) => "
        lowest += "[...d.querySelectorAll('text')].every((x) => "
        assert page.value(lowest + "x.getBoundingClientRect().bottom <= d.getBoundingClientRect().bottom + 1))")


def test_a_traced_point_has_the_velocity_of_its_place_on_the_body(open_page: Opener) -> None:
    with open_page() as page:
        page.page.select_option("#place", label="crank pin (trace)")
        page.value("linkwright.setTime(1)")
        told = page.page.locator(".chart >> nth=1").locator(".values span").all_inner_texts()
        bent = page.page.locator(".chart >> nth=2").locator(".values span").all_inner_texts()
    numbers = [[float(t[2:].replace("−", "-")) for t in texts] for texts in (told, bent)]
    assert_allclose(numbers[0], [-6 * np.sin(1), 6 * np.cos(1), 0], rtol=1e-3)
    assert_allclose(numbers[1], [-6 * np.cos(1), -6 * np.sin(1), 0], rtol=1e-3)


def test_a_joint_tells_its_angle_rate_and_acceleration(open_page: Opener) -> None:
    mech = lw.load(Path(__file__).resolve().parents[2] / "examples" / "models" / "four_bar.mks")
    solution = lw.analyse(mech, times=np.linspace(0.0, 2.0, 21))
    with open_page("four-bar", solution=solution) as page:
        page.page.select_option("#place", label="d (joint)")
        page.value("linkwright.setTime(1)")
        heads = page.page.locator(".chart h2").all_inner_texts()
        told = [float(x.replace("−", "-")) for x in page.page.locator(".values .x").all_inner_texts()]
    assert [head.split()[0].casefold() for head in heads] == ["angle", "rate", "acceleration"]
    wanted = (solution.joint("d"), solution.joint_rate("d"), solution.joint_acceleration("d"))
    assert_allclose(told, [series[10, 0] for series in wanted], rtol=1e-3)


def test_loads_have_charts_of_their_own(open_page: Opener) -> None:
    model = Path(__file__).resolve().parents[2] / "examples" / "models" / "governor.mks"
    solution = lw.analyse(model, times=np.linspace(0.0, 1.0, 21))
    with open_page("governor", solution=solution) as page:
        page.value("linkwright.setTime(0.5)")
        told = {}
        for label in ("engine (load)", "hinge1 (load)"):
            page.page.select_option("#place", label=label)
            charts = page.page.locator(".chart:visible")
            told[label] = [" ".join(head.split()) for head in charts.locator("h2").all_inner_texts()]
            values = page.page.locator(".chart:visible .values .x").all_inner_texts()
            told[f"{label} x"] = [float(x.split()[-1].replace("\u2212", "-")) for x in values]
        assert page.errors == []
    assert [head.casefold().startswith("torque n m") for head in told["engine (load)"]] == [True]
    assert [head.split()[0].casefold() for head in told["hinge1 (load)"]] == ["force", "moment"]
    assert_allclose(told["engine (load) x"], solution.series["engine.torque"].values[10], rtol=1e-3)
    wanted = [solution.series[f"hinge1.{x}"].values[10] for x in ("fx", "mx")]
    assert_allclose(told["hinge1 (load) x"], wanted, rtol=1e-3)


def test_the_page_speaks_the_units_of_the_model(open_page: Opener) -> None:
    model = Path(__file__).resolve().parents[2] / "examples" / "models" / "governor.mks"
    si = lw.analyse(model, times=np.linspace(0.0, 1.0, 21))
    units = Units(length="mm", time="ms", angle="deg")
    spoken = Solution(
        replace(si.description, units=units), si.time, si.arrays, si.iterations, si.status, si.counters, si.states
    )
    with open_page("governor-mm", solution=spoken.with_series(si.series)) as page:
        page.value("linkwright.setTime(0.5)")
        assert page.page.locator("#clock").inner_text() == "500 / 1000 ms"
        shown = {}
        for label in ("sleeve", "hinge1 (joint)", "engine (load)"):
            page.page.select_option("#place", label=label)
            charts = page.page.locator(".chart:visible")
            heads = charts.locator("h2 small").all_inner_texts()
            axis = "z" if label == "sleeve" else "x"
            values = page.page.locator(f".chart:visible .values .{axis}").all_inner_texts()
            shown[label] = heads, [float(x.split()[-1].replace("\u2212", "-")) for x in values]
        last = page.page.locator(".drawing >> nth=0").locator("text").last.text_content()
        assert page.errors == []
    assert last.endswith(" ms")
    assert [x.casefold() for x in shown["sleeve"][0]] == ["mm", "m/s", "mm/ms²"]
    place = 1e3 * si.position("sleeve")[10], si.velocity("sleeve")[10], 1e-3 * si.acceleration("sleeve")[10]
    assert_allclose(shown["sleeve"][1], [x[2] for x in place], rtol=2e-3, atol=2e-3)
    assert [x.casefold() for x in shown["hinge1 (joint)"][0]] == ["deg", "deg/ms", "deg/ms²"]
    turn = si.joint("hinge1"), 1e-3 * si.joint_rate("hinge1"), 1e-6 * si.joint_acceleration("hinge1")
    assert_allclose(shown["hinge1 (joint)"][1], [np.degrees(x[10, 0]) for x in turn], rtol=2e-2)
    assert [x.casefold() for x in shown["engine (load)"][0]] == ["n mm"]
    assert_allclose(shown["engine (load)"][1], 1e3 * si.series["engine.torque"].values[10], rtol=1e-3)


def test_a_click_on_a_plot_moves_the_time(open_page: Opener) -> None:
    with open_page() as page:
        box = page.box(".drawing >> nth=1")
        page.page.mouse.click(box["x"] + 56 + 0.25 * (box["width"] - 68), box["y"] + box["height"] / 2)
        assert page.value("linkwright.time") == pytest.approx(2.0, abs=0.05)


CONTROLS = ("#back", "#play", "#forth", "#slider", "#speed", "#loop", "#place")
TOOLS = ("#reset", "#joints", "#triads", "#trails", "#names", "#panel")


def apart(page: Open, names: tuple[str, ...]) -> None:
    boxes = {name: page.box(name) for name in names}
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            p, q = boxes[a], boxes[b]
            across = min(p["x"] + p["width"], q["x"] + q["width"]) - max(p["x"], q["x"])
            down = min(p["y"] + p["height"], q["y"] + q["height"]) - max(p["y"], q["y"])
            assert across <= 0.5 or down <= 0.5, f"{a} lies on {b}"


SCREENS = {
    "desktop": DESKTOP,
    "phone": PHONE,
    "phone on its side": {**PHONE, "viewport": {"width": 740, "height": 360}},
    "tablet": {"viewport": {"width": 820, "height": 1180}},
}


@pytest.mark.parametrize("screen", list(SCREENS))
def test_every_control_is_on_the_screen_large_enough_and_on_its_own(open_page: Opener, screen: str) -> None:
    with open_page(**SCREENS[screen]) as page:
        size = SCREENS[screen]["viewport"]
        names = (*CONTROLS, *TOOLS, "#clock")
        for name in names:
            box = page.box(name)
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= size["width"] + 0.5
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= size["height"] + 0.5
            if name != "#clock":
                assert box["height"] >= 40
                assert box["width"] >= 40
        apart(page, names)


@pytest.mark.parametrize("screen", list(SCREENS))
def test_nothing_scrolls(open_page: Opener, screen: str) -> None:
    with open_page(**SCREENS[screen]) as page:
        sides = "[d.scrollWidth - d.clientWidth, d.scrollHeight - d.clientHeight]"
        assert page.value(f"(d => {sides})(document.documentElement)") == [0, 0]
        assert page.value(f"(d => {sides})(document.body)") == [0, 0]


@pytest.mark.parametrize("screen", ["phone", "desktop"])
def test_the_picture_has_the_pixels_of_its_screen(open_page: Opener, screen: str) -> None:
    with open_page(**SCREENS[screen]) as page:
        box = page.box("#view")
        ratio = page.value("document.getElementById('view').width") / box["width"]
        # Where the processor draws, more than one and a half are not worth it.
        assert ratio == pytest.approx(min(SCREENS[screen].get("device_scale_factor", 1), 1.5), rel=0.01)


def test_a_phone_shows_one_plot_at_a_time(open_page: Opener) -> None:
    with open_page(**PHONE) as page:
        assert page.page.locator(".chart:visible").count() == 1
        page.page.click("#tabs button >> nth=2")
        assert page.page.locator(".chart:visible h2").inner_text().startswith("Acceleration")


def test_the_plots_can_be_put_away(open_page: Opener) -> None:
    with open_page() as page:
        before = page.box("#view")["width"]
        page.page.click("#panel")
        assert not page.page.locator("#plots").is_visible()
        assert page.box("#view")["width"] > before + 300
        assert page.page.get_attribute("#panel", "aria-expanded") == "false"


@pytest.mark.slow
def test_triads_joints_and_trails_come_and_go(open_page: Opener) -> None:
    with open_page() as page:
        count = page.value("linkwright.drawn")
        page.page.click("#triads")
        assert page.value("linkwright.drawn") > count + 3
        page.page.click("#triads")
        page.page.click("#joints")
        assert page.value("linkwright.drawn") < count
        page.page.click("#joints")
        page.page.click("#trails")
        assert page.value("linkwright.drawn") == count - 2


@pytest.mark.slow
def test_names_stand_beside_their_bodies_when_asked_for(open_page: Opener) -> None:
    with open_page() as page:
        assert not page.page.locator("#labels").is_visible()
        page.page.keyboard.press("n")
        assert page.page.locator("#labels span").all_inner_texts() == ["crank", "coupler", "block"]


@pytest.mark.slow
def test_the_view_turns_with_the_mouse_and_comes_back(open_page: Opener) -> None:
    with open_page() as page:
        eye = page.value("linkwright.eye")
        box = page.box("#view")
        page.page.mouse.move(box["x"] + 300, box["y"] + 300)
        page.page.mouse.down()
        page.page.mouse.move(box["x"] + 420, box["y"] + 340, steps=4)
        page.page.mouse.up()
        page.settle()
        assert not np.allclose(page.value("linkwright.eye"), eye, rtol=1e-2)
        page.page.click("#reset")
        page.settle()
        assert_allclose(page.value("linkwright.eye"), eye, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_the_page_is_light_or_dark_as_the_reader_has_it(open_page: Opener) -> None:
    grey = {}
    for scheme in ("light", "dark"):
        with open_page(color_scheme=scheme) as page:
            grey[scheme] = [page.picture(part).mean() for part in ("#view", "#plots", ".bar")]
    assert min(grey["light"]) > 190
    assert max(grey["dark"]) < 80


def test_one_time_point_is_a_picture_whose_time_stands(open_page: Opener) -> None:
    with open_page("still") as page:
        assert page.page.is_disabled("#play")
        assert page.page.is_disabled("#slider")
        assert page.page.inner_text("#clock") == "0.00 s"


def test_without_webgl_the_page_says_so_and_the_plots_work(open_page: Opener) -> None:
    with open_page(prepare="HTMLCanvasElement.prototype.getContext = () => null") as page:
        assert "WebGL" in page.page.inner_text("#message")
        page.value("linkwright.setTime(2)")
        assert page.page.inner_text(".values .x >> nth=0") == "x 2.785"
        assert_allclose(poses(page)[0], MOTIONS["slider-crank"]().data["position"][20], atol=1e-5)


def test_a_wicked_name_is_shown_as_it_is_and_does_nothing(open_page: Opener) -> None:
    with open_page("wicked") as page:
        page.settle()
        assert page.errors == []
        assert page.value("document.images.length") == 0
        shown = page.page.text_content("#title")
        assert shown is not None
        assert shown.startswith("</script><img src=x onerror=alert(1)>")


def test_every_control_has_a_name_for_those_who_cannot_see_it(open_page: Opener) -> None:
    with open_page() as page:
        unnamed = page.value(
            "[...document.querySelectorAll('button, select, input')]"
            ".filter(x => !(x.getAttribute('aria-label') || x.labels?.length || x.textContent.trim())).map(x => x.id)"
        )
        assert unnamed == []
        assert re.fullmatch(r"\d\.\d\d seconds", page.page.get_attribute("#slider", "aria-valuetext") or "")
