"""Linkage reports against the textbook's closed forms: the law of cosines, Kennedy's theorem, virtual work."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from planar_linkages import FLAT, TILTED, Floats, four_bar, slider_crank

import linkwright as lw
from linkwright.analysis.grashof import four_bar_category, slider_crank_category
from linkwright.errors import LinkwrightError, NameNotFound

MODELS = Path(__file__).parents[2] / "examples" / "models"
TURN = np.linspace(0.0, 2 * np.pi, 91)
START = 0.7
CRANK_ROCKER = (3.0, 1.0, 3.0, 2.5)


def angle_of(opposite: float, one: float, other: float) -> float:
    """The law of cosines."""
    return float(np.arccos((one**2 + other**2 - opposite**2) / (2 * one * other)))


def report_of(mech: lw.Mechanism, times: Floats = TURN, **options: object) -> lw.LinkageReport:
    return lw.linkage_report(mech, times=times, **options)  # type: ignore[arg-type]


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


def test_every_four_bar_of_a_six_bar_is_found() -> None:
    report = lw.linkage_report(MODELS / "windscreen_wiper.mks")
    assert [x.links for x in report.loops] == [
        ("cowl", "motor_crank", "rod", "arm"),
        ("cowl", "arm", "tie_rod", "arm2"),
    ]
    assert list(report.transmission) == ["rod on arm", "tie_rod on arm2"]


def test_blocks_on_lines_and_inversions_of_slider_cranks_are_links_too() -> None:
    report = lw.linkage_report(MODELS / "quick_return.mks")
    assert [(x.kind, x.category) for x in report.loops] == [
        ("slider-crank", "swinging guide"),
        ("double slider", "double slider"),
    ]
    assert report.transmission["stone on arm"].worst == pytest.approx(np.pi / 2)  # a stone pushes across its slot
    arm = report.outputs["arm_swings.angle"]
    assert arm.stroke == pytest.approx(2 * np.arcsin(0.5), abs=1e-9)


# -- transmission ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("axes", [FLAT, TILTED], ids=["flat", "tilted"])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e4])
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
    report = lw.linkage_report(MODELS / f"{name}.mks")
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


# -- what is printed and refused ------------------------------------------------------------------------------------
def test_the_report_says_all_in_lines() -> None:
    text = str(lw.linkage_report(MODELS / "four_bar.mks"))
    for words in (
        "four_bar: planar, normal (0, 0, 1), input a.angle",
        "s + l = 4 < p + q = 5.5: crank-rocker, crank_bar turns fully",
        "worst 41.41° (pressure angle 48.59°)",
        "d.angle: dead centres: minimum 87.1340° at a.angle = 38.6248°",
    ):
        assert words in text, text


def test_what_is_no_planar_linkage_is_refused_by_the_joint_that_is_not() -> None:
    with pytest.raises(LinkwrightError, match="'rssr' is no planar linkage: the axis of joint 'r2' is not parallel"):
        lw.linkage_report(MODELS / "rssr.mks")
    with pytest.raises(LinkwrightError, match="has no driver of a coordinate; name the input"):
        lw.linkage_report(MODELS / "double_four_bar.mks")
    mech = four_bar(CRANK_ROCKER)
    with pytest.raises(NameNotFound, match=r"e\.angle"):
        report_of(mech, input="e.angle")
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
