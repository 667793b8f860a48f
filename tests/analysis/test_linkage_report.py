"""Linkage reports against the textbook's closed forms: the law of cosines, Kennedy's theorem, virtual work."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from planar_linkages import FLAT, TILTED, Floats, four_bar, lifted_arm, slider_crank

import linkwright as lw
from linkwright.analysis.grashof import four_bar_category, loop_sentences, slider_crank_category
from linkwright.errors import LinkwrightError, NameNotFound

MODELS = Path(__file__).parents[2] / "examples" / "models"
TURN = np.linspace(0.0, 2 * np.pi, 61)
START = 0.7
CRANK_ROCKER = (3.0, 1.0, 3.0, 2.5)


def angle_of(opposite: float, one: float, other: float) -> float:
    """The law of cosines."""
    return float(np.arccos((one**2 + other**2 - opposite**2) / (2 * one * other)))


def report_of(mech: lw.Mechanism, times: Floats = TURN, **options: object) -> lw.LinkageReport:
    return lw.linkage_report(mech, times=times, **options)  # type: ignore[arg-type]


@cache
def of_model(name: str) -> lw.LinkageReport:
    return lw.linkage_report(MODELS / f"{name}.mks")


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("crank", [0.0, 1e-14])
def test_a_crank_without_length_has_no_advantage(crank: float, size: float) -> None:
    lengths = 3.0 * size, crank * size, 3.0 * size, 2.5 * size
    report = report_of(four_bar(lengths, 1.2), np.linspace(0, 6, 31), outputs=["d.angle", "c.angle"])
    assert "d.angle: stands still while a.angle moves; no advantage: it does no work" in report.sentences()
    assert "advantage at least" not in report.report()
    assert np.array_equal(report.outputs["d.angle"].ratio, np.zeros(31))
    assert np.isinf(report.outputs["d.angle"].advantage).all()
    short = report_of(four_bar((3.0 * size, 1e-3 * size, 3.0 * size, 2.5 * size), 1.2), np.linspace(0, 6, 31))
    assert "mechanical advantage at least" in short.report()
    assert 1e3 < np.abs(short.outputs["d.angle"].advantage).min() < 1e4


# -- Grashof --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("lengths", "category", "turning"),
    [
        ((3, 1, 3, 2.5), "crank-rocker", "crank"),
        ((3, 2.5, 3, 1), "crank-rocker", "rocker"),
        ((1, 3, 2.5, 3), "double crank", "ground"),
        ((3, 2.5, 1, 3), "double rocker", "coupler"),
        ((5, 3, 3, 2), "triple rocker", ""),
        ((2, 1, 2, 1), "change point", ""),
    ],
)
def test_the_category_of_a_four_bar_is_grashofs(lengths: tuple[float, ...], category: str, turning: str) -> None:
    loop = report_of(four_bar(lengths, 1.2), np.linspace(0, 0.1, 3)).loops[0]
    assert (loop.category, loop.turning, loop.kind) == (category, turning, "four-bar")
    assert loop.lengths == pytest.approx(lengths)
    assert loop.links == ("ground", "crank", "coupler", "rocker")


def test_a_link_turns_fully_if_and_only_if_grashof_says_so() -> None:
    # Whether the crank turns: the diagonal must fit into the triangle with coupler and rocker at all angles.
    rng = np.random.default_rng(5)
    for g, r, c, s in rng.uniform(0.2, 1.0, (300, 4)):
        if max(g, r, c, s) > 0.5 * (g + r + c + s):
            continue
        category, turning, margin = four_bar_category((g, r, c, s))
        reaches = abs(g - r) >= abs(c - s) and g + r <= c + s
        assert reaches == (category == "double crank" or (category == "crank-rocker" and turning == 1)), (g, r, c, s)
        assert (margin > 0) == (category not in ("triple rocker", "change point"))


@pytest.mark.parametrize(
    ("sides", "frame", "category", "turning"),
    [
        ((0.3, 1.0, 0.1), 2, "slider-crank", 0),
        ((0.3, 1.0, 0.1), 3, "slider-rocker", 0),
        ((0.3, 1.0, 0.1), 0, "turning guide", 0),
        ((0.3, 1.0, 0.1), 1, "swinging guide", 0),
        ((1.0, 0.3, 0.1), 2, "slider-rocker", 1),
        ((0.3, 0.4, 0.2), 2, "non-Grashof", None),
        ((0.3, 0.4, 0.1), 2, "change point", None),
    ],
)
def test_the_category_of_a_slider_crank(
    sides: tuple[float, float, float], frame: int, category: str, turning: int | None
) -> None:
    assert slider_crank_category(*sides, frame)[:2] == (category, turning)


def test_special_four_bars_are_named() -> None:
    loops = [report_of(four_bar(x, 1.2), np.linspace(0, 0.1, 3)).loops[0] for x in ((2, 1, 2, 1), (2, 1, 1, 2))]
    assert [x.remark for x in loops] == ["parallelogram", "deltoid"]
    assert "may branch" in loops[0].sentence()


def test_loops_of_one_size_share_a_line() -> None:
    """Of a scissor lift's stages all loops but the first and the last are one rhombus."""
    lines = [x for x in of_model("scissor_lift").sentences() if "lengths" in x]
    assert len(lines) == 1
    assert lines[0].startswith("4 four-bars rise[1] – fall[1] – rise[2] – fall[2]; ")
    assert "; and 1 more: lengths 1, 1, 1, 1 m; s + l = 2 = p + q = 2: change point (rhombus), all" in lines[0]
    loop = report_of(four_bar((3, 1, 3, 2.5), 1.2), np.linspace(0, 0.1, 3)).loops[0]
    other = replace(
        loop,
        links=("ground", "crank2", "coupler2", "rocker2"),
        sides=("ground", "crank2", "coupler2", "rocker2"),
        turning="crank2",
    )
    longer = replace(loop, lengths=(3.1, 1.0, 3.0, 2.5), margin=1.4)
    lines = loop_sentences([loop, longer, other])
    assert len(lines) == 2
    assert lines[0].startswith("2 four-bars ")
    assert lines[0].endswith(f": crank-rocker, {loop.turning}, crank2 turn fully")
    assert lines[1] == longer.sentence()
    assert loop_sentences([loop]) == [loop.sentence()]
    block = of_model("slider_crank").loops[0]
    text = loop_sentences([block, block])[0]
    sizes = ", ".join(f"{x:.6g}" for x in block.lengths[:2])
    assert text.startswith("2 slider-cranks ")
    assert f": links {sizes}, offset " in text


def test_every_four_bar_of_a_six_bar_is_found() -> None:
    report = of_model("windscreen_wiper")
    assert [x.links for x in report.loops] == [
        ("cowl", "motor_crank", "rod", "arm"),
        ("cowl", "arm", "tie_rod", "arm2"),
    ]
    assert list(report.transmission) == ["rod on arm", "tie_rod on arm2"]


def test_blocks_on_lines_and_inversions_of_slider_cranks_are_links_too() -> None:
    report = of_model("quick_return")
    assert [(x.kind, x.category) for x in report.loops] == [
        ("slider-crank", "swinging guide"),
        ("double slider", "double slider"),
    ]
    assert report.transmission["stone on arm"].worst == pytest.approx(np.pi / 2)  # a stone pushes across its slot
    arm = report.outputs["arm_swings.angle"]
    assert arm.stroke == pytest.approx(2 * np.arcsin(0.5), abs=1e-9)


# -- transmission ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("axes", "scale"), [(FLAT, 1.0), (TILTED, 1e-3), (TILTED, 1e4)])
def test_transmission_angle_of_a_four_bar_by_the_law_of_cosines(axes: Floats, scale: float) -> None:
    g, r, c, s = (scale * x for x in CRANK_ROCKER)
    report = report_of(four_bar((g, r, c, s), START, axes))
    x = report.transmission["coupler on rocker"]
    diagonal = np.sqrt(g**2 + r**2 - 2 * g * r * np.cos(START + TURN))
    assert np.allclose(x.angles, np.arccos((c**2 + s**2 - diagonal**2) / (2 * c * s)), atol=1e-9)
    # The extremes: crank and frame in line.
    ends = [angle_of(g - r, c, s), angle_of(g + r, c, s)]
    worst = max(ends, key=lambda m: abs(m - np.pi / 2))
    assert x.worst == pytest.approx(worst, abs=1e-12)
    assert x.input == pytest.approx(2 * np.pi - START, abs=1e-6)
    assert x.time == pytest.approx(x.input, abs=1e-12)
    assert np.allclose(x.pressure, abs(np.pi / 2 - x.angles))


@pytest.mark.parametrize("spheres", [False, True], ids=["pins", "spheres"])
def test_pressure_angle_of_a_slider_crank(spheres: bool) -> None:
    r, c, e = 0.3, 1.0, 0.1
    report = report_of(slider_crank(r, c, e, START, TILTED, spheres=spheres))
    x = report.transmission["rod on block"]
    assert np.allclose(x.pressure, np.abs(np.arcsin((r * np.sin(START + TURN) + e) / c)), atol=1e-12)
    assert x.worst_pressure == pytest.approx(np.arcsin((r + e) / c), abs=1e-12)
    assert report.loops[0].lengths == pytest.approx((r, c, e))


# -- dead centres ---------------------------------------------------------------------------------------------------
def test_dead_centres_of_a_crank_rocker_are_where_crank_and_coupler_are_in_line() -> None:
    g, r, c, s = CRANK_ROCKER
    report = report_of(four_bar(CRANK_ROCKER, START))
    rocker = report.outputs["d.angle"]
    exact = {
        "maximum": angle_of(s, g, c - r) + np.pi - START,  # the crank points away from the coupler
        "minimum": angle_of(s, g, c + r) - START + 2 * np.pi,
    }
    assert {x.end: x.input for x in rocker.centres} == pytest.approx(exact, abs=1e-9)
    assert {x.end: x.time for x in rocker.centres} == pytest.approx(exact, abs=1e-9)
    assert rocker.stroke == pytest.approx(angle_of(c + r, g, s) - angle_of(c - r, g, s), abs=1e-9)
    assert not report.toggles


def test_dead_centres_at_the_ends_of_the_motion_are_found() -> None:
    report = report_of(slider_crank(0.3, 1.0, 0.0, 0.0))
    slide = report.outputs["slide.shift"]
    assert [x.end for x in slide.centres] == ["maximum", "minimum", "maximum"]
    assert [x.input for x in slide.centres] == pytest.approx([0.0, np.pi, 2 * np.pi], abs=1e-9)
    assert slide.stroke == pytest.approx(0.6, abs=1e-12)


def test_dead_centres_do_not_depend_on_how_the_input_moves() -> None:
    plain = report_of(four_bar(CRANK_ROCKER, START))
    stopping = report_of(four_bar(CRANK_ROCKER, START, law=lambda t: t - np.sin(t)), np.linspace(0, 2 * np.pi, 64))
    back = report_of(four_bar(CRANK_ROCKER, START, law=lambda t: 2 * np.pi - t))
    inputs = [x.input for x in plain.outputs["d.angle"].centres]
    assert [x.input for x in stopping.outputs["d.angle"].centres] == pytest.approx(inputs, abs=1e-9)
    assert [x.input for x in back.outputs["d.angle"].centres[::-1]] == pytest.approx(inputs, abs=1e-9)
    ends = [[x.end for x in one.outputs["d.angle"].centres] for one in (plain, stopping, back)]
    assert ends[0] == ends[1] == ends[2][::-1]
    first = stopping.outputs["d.angle"].centres[0]
    assert first.time - np.sin(first.time) == pytest.approx(first.input, abs=1e-9)


def test_toggles_of_another_input_are_the_dead_centres_of_the_driven_motion() -> None:
    mech = four_bar(CRANK_ROCKER, START)
    limits = report_of(mech).outputs["d.angle"].centres
    toggles = report_of(mech, input="d", outputs=["a"]).toggles
    assert [x.kind for x in toggles] == ["toggle", "toggle"]
    assert [x.output for x in toggles] == pytest.approx([x.output for x in limits], abs=1e-9)
    assert [x.time for x in toggles] == pytest.approx([x.time for x in limits], abs=1e-9)


# -- mechanical advantage -------------------------------------------------------------------------------------------
def test_mechanical_advantage_of_a_four_bar_in_closed_form() -> None:
    g, r, c, s = CRANK_ROCKER
    report = report_of(four_bar(CRANK_ROCKER, START, TILTED))
    theta = START + TURN
    tip = r * np.exp(1j * theta)
    diagonal = abs(g - tip)
    # The angles of coupler and rocker, the rocker on the left of the way from the crank's pin to its pivot.
    coupler = np.angle(g - tip) + np.arccos((diagonal**2 + c**2 - s**2) / (2 * diagonal * c))
    rocker = np.angle(tip + c * np.exp(1j * coupler) - g)
    ratio = r * np.sin(theta - coupler) / (s * np.sin(rocker - coupler))
    assert np.allclose(report.outputs["d.angle"].ratio, ratio, atol=1e-9)
    assert np.allclose(report.output("d").advantage * ratio, 1.0, atol=1e-9)


def test_mechanical_advantage_is_that_of_virtual_work() -> None:
    # A weight on the block against the torque of the motor, slow and without other masses.
    with lw.Builder("press") as b:
        bodies = [b.body(n, m) for n, m in (("wheel", 0.0), ("rod", 0.0), ("block", 2.0))]
        for body, x in zip(bodies, ((0, 0), (0, 0.3), (np.sqrt(1 - 0.09), 0.0)), strict=True):
            b.place(
                body, (*x, 0.0), f=(1, 0, 0) if body is bodies[2] else (np.sqrt(0.91), -0.3, 0) if x[1] else (0, 1, 0)
            )
        b.joint("revolute", b.ground, bodies[0], "a")
        b.joint("revolute", b.triad(bodies[0], origin=(0.3, 0, 0)), bodies[1], "b")
        b.joint("revolute", b.triad(bodies[1], origin=(1, 0, 0)), bodies[2], "c")
        ends = (b.triad(x, h=(1, 0, 0), f=(0, 1, 0)) for x in (b.ground, bodies[2]))
        b.joint("prismatic", *ends, "slide")
        b.gravity((-9.81, 0.0, 0.0))
        b.driver("joint", "a", lambda t: 0.5 + 1e-4 * t, name="motor")
    mech = b.build()
    times = np.linspace(0.0, 6e4, 50)
    sol = lw.analyse(mech, times=times, analysis="inverse dynamic")
    torque = sol.series["motor.torque"].values
    report = lw.linkage_report(sol)
    assert np.allclose(torque * report.output("slide").advantage, 2.0 * 9.81, rtol=1e-6)


# -- instant centres ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("axes", [FLAT, TILTED], ids=["flat", "tilted"])
def test_instant_centres_of_a_four_bar_are_where_its_bars_meet(axes: Floats) -> None:
    report = report_of(four_bar(CRANK_ROCKER, START, axes))
    sol = lw.analyse(four_bar(CRANK_ROCKER, START, axes), times=TURN)
    k = 20
    centres = report.centres(TURN[k])
    assert len(centres) == 6
    points = {pair: axes.T @ np.array(x.point) for pair, x in centres.items() if x.point is not None}
    left, right = np.zeros(2), np.array([3.0, 0.0])
    pin = (axes.T @ sol.position("coupler")[k])[:2]
    joined = points["coupler", "rocker"][:2]
    for pair, exact in (
        (("ground", "crank"), left),
        (("crank", "coupler"), pin),
        (("ground", "rocker"), right),
        (("ground", "coupler"), meeting(left, pin, right, joined)),
        (("crank", "rocker"), meeting(left, right, pin, joined)),
    ):
        assert np.allclose(points[pair][:2], exact, atol=1e-9), pair
        assert abs(points[pair][2]) < 1e-9
    kennedy(centres)


def test_centres_of_links_that_slide_are_at_infinity() -> None:
    report = report_of(slider_crank(0.3, 1.0, 0.1, START))
    centre = report.centres(0.5)["ground", "block"]
    assert centre.at_infinity
    assert centre.point is None
    assert np.allclose(np.abs(centre.direction), [0, 1, 0], atol=1e-12)
    kennedy(report.centres(0.5))


@pytest.mark.parametrize("name", ["peaucellier", "quick_return", "windscreen_wiper"])
def test_any_three_links_have_their_centres_on_a_line(name: str) -> None:
    report = of_model(name)
    for time in report.time[[10, 33, 77]]:
        links = {link for pair in report.centres(time) for link in pair}
        assert len(report.centres(time)) == len(links) * (len(links) - 1) // 2
        kennedy(report.centres(time))


def test_centres_exist_at_dead_centres_too() -> None:
    mech = four_bar(CRANK_ROCKER, START)
    at = report_of(mech).outputs["d.angle"].centres[0].time
    report = report_of(mech, np.array([0.0, at, 2 * at]))
    centres = report.centres(at)
    # The rocker is at rest, and the coupler turns about their pin.
    assert np.allclose(centres["ground", "coupler"].point, centres["coupler", "rocker"].point, atol=1e-7)
    assert abs(report.outputs["d.angle"].advantage[1]) > 1e8


def meeting(a: Floats, b: Floats, c: Floats, d: Floats) -> Floats:
    """Where the line through a and b meets that through c and d."""
    s = np.linalg.solve(np.column_stack([b - a, c - d]), c - a)
    return np.asarray(a + s[0] * (b - a))


def kennedy(centres: dict[tuple[str, str], object]) -> None:
    """The centres of any three links are on a line: homogeneous points of the plane z = 0 (or its turned plane)."""
    rows: dict[frozenset[str], Floats] = {}
    for pair, x in centres.items():
        if x.point is not None:  # type: ignore[attr-defined]
            row = np.append(x.point, 1.0)  # type: ignore[attr-defined]
        elif x.direction is not None:  # type: ignore[attr-defined]
            row = np.append(x.direction, 0.0)  # type: ignore[attr-defined]
        else:
            continue
        rows[frozenset(pair)] = row / np.linalg.norm(row)
    for three in combinations(sorted({link for pair in centres for link in pair}), 3):
        pairs = [frozenset(pair) for pair in combinations(three, 2)]
        if all(pair in rows for pair in pairs):
            assert np.linalg.svd(np.array([rows[pair] for pair in pairs]), compute_uv=False)[2] < 1e-9, three


# -- whole cycles, other inputs ------------------------------------------------------------------------------------
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_a_triple_rocker_binds_where_coupler_and_output_are_in_line(scale: float) -> None:
    g, r, c, s = (scale * x for x in (5.0, 3.0, 3.0, 2.0))
    report = lw.linkage_report(four_bar((g, r, c, s), START, TILTED), cycle=True)
    bound = angle_of(c + s, g, r)
    assert report.closed
    assert sorted(x.input + START for x in report.toggles) == pytest.approx([-bound, bound], abs=1e-9)
    assert report.transmission["coupler on rocker"].worst == pytest.approx(np.pi, abs=1e-6)
    assert "toggle position of the input, a maximum: a.angle = 32.4354°" in report.report()
    assert "without bound at toggle positions" in report.report()
    # The output stands still where input link and coupler are in line: stretched, above and below the frame.
    assert len(report.outputs["d.angle"].centres) == 2


def test_the_cycle_of_a_crank_rocker_is_its_driven_turn() -> None:
    driven = report_of(four_bar(CRANK_ROCKER, START))
    cycle = lw.linkage_report(four_bar(CRANK_ROCKER, START), cycle=True)
    assert not cycle.toggles
    assert np.ptp(cycle.input_values) == pytest.approx(2 * np.pi, abs=1e-9)
    for one, other in zip(cycle.outputs["d.angle"].centres, driven.outputs["d.angle"].centres, strict=True):
        assert (one.end, one.input, one.output) == (
            other.end, pytest.approx(other.input, abs=1e-9), pytest.approx(other.output, abs=1e-9)
        )  # fmt: skip
        assert np.isnan(one.time)
    assert cycle.outputs["d.angle"].time_ratio == pytest.approx(driven.outputs["d.angle"].time_ratio, abs=1e-9)


def test_a_mechanism_without_a_driver_goes_through_its_cycle() -> None:
    report = lw.linkage_report(MODELS / "double_four_bar.mks", input="base1")
    assert [x.category for x in report.loops] == ["crank-rocker", "change point"]
    assert report.closed
    assert report.outputs["base2.angle"].stroke == pytest.approx(
        angle_of(1.5 + 0.8, 1.3, 1.1) - angle_of(1.5 - 0.8, 1.3, 1.1), abs=1e-9
    )


def test_the_time_ratio_of_a_quick_return() -> None:
    report = of_model("quick_return")
    for name in ("arm_swings.angle", "ram_slides.shift"):  # sin α = crank / height = 1/2
        assert report.outputs[name].time_ratio == pytest.approx((np.pi + np.pi / 3) / (np.pi - np.pi / 3), abs=1e-9)


def test_a_parallelogram_goes_through_its_change_points() -> None:
    report = lw.linkage_report(four_bar((2, 1, 2, 1), START), cycle=True)
    ratio = report.outputs["d.angle"].ratio
    assert np.allclose(ratio[np.isfinite(ratio)], 1.0, atol=1e-9)
    assert np.ptp(report.outputs["d.angle"].values) == pytest.approx(2 * np.pi, abs=1e-4)
    exact = lw.linkage_report(four_bar((2, 1, 2, 1), np.pi / 2), times=np.linspace(0, 1.2, 13)).outputs["d.angle"]
    assert np.allclose(exact.ratio, 1.0, atol=1e-9)


def test_the_worst_place_may_be_where_the_input_turns_back() -> None:
    g, r, c, s = CRANK_ROCKER
    mech = four_bar(CRANK_ROCKER, START, law=lambda t: 0.5 + 0.4 * np.sin(t))
    x = report_of(mech, np.linspace(0, 6, 21)).transmission["coupler on rocker"]
    diagonal = np.sqrt(g**2 + r**2 - 2 * g * r * np.cos(START + 0.1))
    assert x.worst == pytest.approx(angle_of(diagonal, c, s), abs=1e-12)


@pytest.mark.parametrize("distance", [False, True])
def test_hydraulic_cylinders_are_inputs(distance: bool) -> None:
    report = report_of(lifted_arm(distance=distance), np.linspace(0, 2, 21), outputs=["pivot", "tip.y"])
    angle = report.outputs["pivot.angle"]
    foot = np.array([0.9, -0.8])
    eye = 1.2 * np.stack([np.cos(angle.values), np.sin(angle.values)], axis=-1)
    way = eye - foot
    length = np.hypot(*way.T)
    lever = (eye[:, 0] * way[:, 1] - eye[:, 1] * way[:, 0]) / length  # torque per force of the cylinder
    assert np.allclose(angle.advantage, lever, atol=1e-9)
    assert np.allclose(report.output("tip.y").ratio, 2 * np.cos(angle.values) / lever, atol=1e-9)
    if not distance:
        x = report.transmission["barrel and rod on arm"]
        assert np.allclose(np.sin(x.angles), np.abs(lever) / 1.2, atol=1e-9)
    else:
        assert report.input == "distance(foot, eye)"


def five_bar(ratio: float | None = None) -> lw.Mechanism:
    """Two cranks on ground, 3 apart, two couplers; the second crank is driven, or geared to the first."""
    with lw.Builder("five-bar") as b:
        one, two, left, right = (b.body(x) for x in ("one", "two", "left", "right"))
        for body, x in ((one, (0, 0, 0)), (two, (3, 0, 0)), (left, (0, 1, 0)), (right, (3, 1, 0))):
            b.place(body, x)
        b.joint("revolute", b.ground, one, "a")
        b.joint("revolute", b.triad(b.ground, origin=(3, 0, 0)), two, "e")
        b.joint("revolute", b.triad(one, origin=(0, 1, 0)), left, "b")
        b.joint("revolute", b.triad(two, origin=(0, 1, 0)), right, "d")
        b.joint("revolute", b.triad(left, origin=(1.5, 2, 0)), b.triad(right, origin=(-1.5, 2, 0)), "c")
        b.driver("joint", "a", lambda t: 0.3 * t, name="first")
        if ratio is None:
            b.driver("joint", "e", lambda t: 0.2 * t, name="second")
        else:
            b.mimic("e", "a", ratio)
    return b.build()


def test_geared_linkages_have_all_but_transmission_at_geared_links() -> None:
    mech, times = five_bar(2.0), np.linspace(0, 21, 91)
    report = report_of(mech, times, outputs=["e", "b", "c"])
    sol = lw.analyse(mech, times=times)
    for name in "ebc":
        assert np.allclose(0.3 * report.output(name).ratio, sol.joint_rate(name)[:, 0], atol=1e-12)
    assert not report.transmission  # both cranks drive
    assert len(report.output("c").centres) == 4
    cycle = lw.linkage_report(mech, cycle=True, outputs=["e", "c"])
    assert cycle.closed
    assert np.ptp(cycle.output("e").values) == pytest.approx(4 * np.pi, abs=1e-9)
    ends = [[(x.end, pytest.approx(x.output, abs=1e-9)) for x in r.output("c").centres] for r in (cycle, report)]
    assert ends[0] == [(x.end, x.output) for x in report.output("c").centres]


@pytest.mark.parametrize("name", ["engine", "peaucellier", "slider_crank", "windscreen_wiper"])
def test_ratios_are_those_of_the_rates_of_the_motion(name: str) -> None:
    mech = lw.load(MODELS / f"{name}.mks")
    report, sol = lw.linkage_report(mech), lw.analyse(mech, analysis="kinematic")
    place, _, word = report.input.rpartition(".")
    rate = sol.velocity(place)[:, 0] if word == "x" else sol.joint_rate(place)[:, 0]
    for output, motion in report.outputs.items():
        exact = sol.joint_rate(output.rpartition(".")[0])[:, 0]
        assert np.allclose(motion.ratio * rate, exact, atol=1e-9 * np.abs(exact).max()), output


def test_with_two_drivers_the_others_stand_still() -> None:
    # With one crank held, the coupler on it turns about their pin.
    mech = five_bar()
    with pytest.raises(LinkwrightError, match=r"has several drivers; name the input, as in input='a\.angle'"):
        report_of(mech)
    with pytest.raises(LinkwrightError, match=r"b\.angle is driven by none of 'first', 'second'"):
        report_of(mech, input="b")
    times = np.linspace(0, 1, 11)
    report = report_of(mech, times, input="a")
    assert np.allclose(report.output("e").ratio, 0.0, atol=1e-12)
    assert np.allclose(report.output("left.x").ratio, -np.cos(0.3 * times), atol=1e-9)
    # The couplers' pin keeps its distance from the pin of the crank that stands still.
    centre = np.array(report.centres(0.5)["ground", "right"].point)
    sol = lw.analyse(mech, times=times)
    assert np.allclose(centre, sol.position("right")[5], atol=1e-9)


def test_a_simulated_motion_has_a_report_too() -> None:
    mech = lw.load(MODELS / "double_four_bar.mks")
    sol = lw.analyse(mech)
    report = lw.linkage_report(sol, input="base1")
    rates = sol.joint_rate("base2")[:, 0] / sol.joint_rate("base1")[:, 0]
    moving = np.abs(sol.joint_rate("base1")[:, 0]) > 0.1
    assert np.allclose(report.output("base2").ratio[moving], rates[moving], rtol=1e-5, atol=1e-5)


# -- what is printed and refused ------------------------------------------------------------------------------------
def test_the_report_says_all_in_lines() -> None:
    text = str(of_model("four_bar"))
    for words in (
        "four_bar: planar, normal (0, 0, 1), input a.angle",
        "s + l = 4 < p + q = 5.5: crank-rocker, crank_bar turns fully",
        "worst 41.41° (pressure angle 48.59°)",
        "d.angle: dead centres: minimum 87.1340° at a.angle = 38.6248°",
    ):
        assert words in text, text


def test_series_are_written_as_a_table(tmp_path: Path) -> None:
    report = report_of(slider_crank(0.3, 1.0, 0.1, START), np.linspace(0, 1, 5))
    report.save(tmp_path / "t.csv")
    head, *rows = (tmp_path / "t.csv").read_text().splitlines()
    assert head.split(",") == [
        "time [s]",
        "a.angle [rad]",
        "slide.shift [m]",
        "rate of slide.shift [m/rad]",
        "advantage of slide.shift [1/m]",
        "transmission angle of rod on block [rad]",
    ]
    assert len(rows) == 5
    assert float(rows[-1].split(",")[3]) == report.outputs["slide.shift"].ratio[-1]
    with pytest.raises(LinkwrightError, match=r"written as \.csv"):
        report.save(tmp_path / "t.json")
    report.plot(tmp_path / "t.png")
    assert (tmp_path / "t.png").stat().st_size > 10_000
    assert "slider-crank ground" in report._repr_html_()


def test_lengths_are_in_the_units_of_the_model(tmp_path: Path) -> None:
    text = (MODELS / "four_bar.mks").read_text().replace("SYSTEM (", "SYSTEM (length unit = mm, ")
    path = tmp_path / "small.mks"
    path.write_text(text)
    assert "lengths 3, 1, 3, 2.5 mm" in lw.linkage_report(path, times=[0.0, 0.1]).report()


def test_what_is_no_planar_linkage_is_refused_by_the_joint_that_is_not() -> None:
    with pytest.raises(LinkwrightError, match="'rssr' is no planar linkage: the axis of joint 'r2' is not parallel"):
        lw.linkage_report(MODELS / "rssr.mks")
    with pytest.raises(LinkwrightError, match="has no driver of a coordinate; name the input"):
        lw.linkage_report(MODELS / "double_four_bar.mks")
    mech = four_bar(CRANK_ROCKER)
    with pytest.raises(NameNotFound, match=r"e\.angle"):
        report_of(mech, input="e.angle")
    with pytest.raises(LinkwrightError, match="a coordinate is given by its name, not by 3"):
        lw.linkage_report(mech, input=3)  # type: ignore[arg-type]
    with pytest.raises(NameNotFound, match="nothing"):
        report_of(mech, outputs=["nothing"])


def test_a_mechanism_with_more_freedom_than_its_input_is_refused() -> None:
    with lw.Builder("two bars") as b:
        one, two = b.body("one"), b.body("two")
        b.joint("revolute", b.ground, one, "a")
        b.joint("revolute", b.triad(one, origin=(1, 0, 0)), two, "b")
        b.driver("joint", "a", lambda t: t)
    with pytest.raises(LinkwrightError, match=r"does not move with a\.angle alone"):
        report_of(b.build())


@pytest.mark.parametrize("lengths", [(1, 4), (2, 3.5)], ids=["flat parallelogram", "stretched toggle"])
def test_a_four_bar_drawn_in_a_singular_position_is_to_be_drawn_elsewhere(lengths: tuple[float, float]) -> None:
    first, second = lengths
    base = 3.0 if first == 1 else 3.5
    with lw.Builder("flat") as b:
        for name in ("crank", "rod", "rocker"):
            b.body(name, 1.0, inertia=(1, 1, 1))
        b.joint("revolute", b.ground, "crank", "A", at=(0, 0, 0), drawn=True)
        b.joint("revolute", "crank", "rod", "B", at=(first, 0, 0), drawn=True)
        b.joint("revolute", "rod", "rocker", "C", at=(second, 0, 0), drawn=True)
        b.joint("revolute", b.ground, "rocker", "D", at=(base, 0.0, 0), drawn=True)
    with pytest.raises(LinkwrightError, match=r"singular position: its constraints leave 2 .*, and 1 by"):
        lw.linkage_report(b.build(), input="A")
