"""Figures of solutions: what they show, what they say, and that they need no screen."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from motions import FINISHED, crank_motion, from_coordinates
from numpy.testing import assert_array_equal

import linkwright as lw
from linkwright.errors import LinkwrightError, NameNotFound
from linkwright.model.description import Trace
from linkwright.results.solution import Solution
from linkwright.results.status import Counters, Status

TIME = np.linspace(0.0, 1.0, 21)
pytestmark = pytest.mark.filterwarnings("error")


def many(bodies: int) -> Solution:
    """A row of sliding bodies."""
    with lw.Builder("row") as b:
        for k in range(bodies):
            b.joint("prismatic", b.ground, b.body(f"slider{k}", mass=1.0, inertia=(1.0, 1.0, 1.0)))
    mech = b.build()
    return from_coordinates(mech, TIME, np.tile(TIME[:, None], bodies), np.ones((len(TIME), bodies)))


def titles(figure: Figure) -> list[str]:
    return [ax.get_title() for ax in figure.axes if ax.get_title()]


def words(figure: Figure) -> list[str]:
    """Everything that is written above the axes."""
    heads = [top for top in figure.subfigs if not top.axes]
    legends = [text.get_text() for top in heads for legend in top.legends for text in legend.get_texts()]
    return [text.get_text() for top in heads for text in top.texts] + legends


def test_a_body_has_a_column_and_each_quantity_a_row() -> None:
    figure = crank_motion(TIME).plot("crank")
    assert titles(figure) == ["crank"]
    assert [ax.get_ylabel() for ax in figure.axes] == ["position (m)", "velocity (m/s)", "acceleration (m/s²)"]
    assert figure.axes[-1].get_xlabel() == "time (s)"
    assert {"crank and block", "x", "y", "z"} == set(words(figure))


def test_the_lines_are_the_components() -> None:
    solution = crank_motion(TIME)
    figure = solution.plot(["tip", "block"], quantities="velocity")
    assert titles(figure) == ["tip", "block"]
    for k, line in enumerate(figure.axes[0].get_lines()):
        assert_array_equal(line.get_xdata(), TIME)
        assert_array_equal(line.get_ydata(), solution.velocity("tip")[:, k])


def test_a_joint_has_its_coordinate_and_its_rate() -> None:
    solution = crank_motion(TIME)
    figure = solution.plot("pivot")
    top, middle, bottom = figure.axes
    assert (top.get_ylabel(), middle.get_ylabel()) == ("angle (rad)", "rate (rad/s)")
    assert_array_equal(top.get_lines()[0].get_ydata(), solution.joint("pivot")[:, 0])
    assert_array_equal(middle.get_lines()[0].get_ydata(), solution.joint_rate("pivot")[:, 0])
    assert bottom.get_ylabel() == "acceleration (rad/s²)"
    assert_array_equal(bottom.get_lines()[0].get_ydata(), solution.joint_acceleration("pivot")[:, 0])


def test_a_joint_of_several_coordinates_says_which_line_is_which() -> None:
    mech = lw.random_tree(1, joints=["free"])
    q = np.tile(mech.neutral(), (len(TIME), 1))
    top, bottom = (
        from_coordinates(mech, TIME, q, np.zeros((len(TIME), 6))).plot("joint1", ("position", "velocity")).axes
    )
    assert [t.get_text() for t in top.get_legend().get_texts()] == [
        *("q0 (m)", "q1 (m)", "q2 (m)"),
        *("q3", "q4", "q5", "q6"),
    ]
    assert [t.get_text() for t in bottom.get_legend().get_texts()] == [
        *("v0 (m/s)", "v1 (m/s)", "v2 (m/s)"),
        *("v3 (rad/s)", "v4 (rad/s)", "v5 (rad/s)"),
    ]


def test_what_is_traced_comes_first_then_joints_that_move_then_bodies_whose_origins_move() -> None:
    solution = crank_motion(TIME)
    traced = replace(solution.description, traces=(Trace("curve", "tip"),))
    more = {"status": FINISHED, "counters": Counters(), "iterations": solution.iterations}
    assert titles(Solution.of(traced, TIME, **solution.arrays, **more).plot()) == ["tip", "pivot", "crank"]


def test_a_body_that_turns_about_its_origin_is_seen_by_its_joint_alone() -> None:
    with lw.Builder("wheel") as b:
        b.joint("revolute", b.ground, b.body("wheel", mass=1.0, inertia=(1.0, 1.0, 1.0)), name="wheel")
    figure = from_coordinates(b.build(), TIME, TIME[:, None], np.ones((21, 1))).plot(quantities="position")
    assert titles(figure) == ["wheel"]
    assert figure.axes[0].get_ylabel() == "angle (rad)"


def test_where_joints_have_several_coordinates_and_no_origin_moves_the_joints_are_shown() -> None:
    with lw.Builder("top") as b:
        b.joint("spherical", b.ground, b.body("top", mass=1.0, inertia=(1.0, 1.0, 1.0)), name="ball")
    mech = b.build()
    v = np.tile([0.3, 0.2, 0.1], (len(TIME), 1))
    q = mech.integrate(np.tile(mech.neutral(), (len(TIME), 1)), v * TIME[:, None])
    assert titles(from_coordinates(mech, TIME, q, v).plot()) == ["ball"]


def test_more_than_six_that_move_leave_the_others_out_and_say_which() -> None:
    figure = many(7).plot(quantities="position")
    assert titles(figure) == [f"joint{k + 1}" for k in range(6)]
    assert any(word.startswith("Not shown: joint7, slider0, slider1,") for word in words(figure))


def test_a_component_that_is_rounding_beside_the_others_is_drawn_as_zero() -> None:
    solution = crank_motion(TIME)
    position = solution.arrays["position"] + [0.0, 0.0, 1e-14]
    more = {"status": FINISHED, "counters": Counters(), "iterations": solution.iterations}
    arrays = {**solution.arrays, "position": position}
    noisy = Solution.of(solution.description, TIME, **arrays, **more)
    assert not noisy.plot("crank", "position").axes[0].get_lines()[2].get_ydata().any()


def test_a_row_of_rounding_alone_is_flat() -> None:
    solution = crank_motion(TIME)
    noise = 1e-16 * np.random.default_rng(0).standard_normal((21, 2, 3))
    more = {"status": FINISHED, "counters": Counters(), "iterations": solution.iterations}
    noisy = Solution.of(solution.description, TIME, **{**solution.arrays, "acceleration": noise}, **more)
    ax = noisy.plot("crank", "acceleration").axes[0]
    assert np.ptp(ax.get_ylim()) > 0.5
    assert not any(line.get_ydata().any() for line in ax.get_lines())


def test_columns_asked_for_by_name_are_all_there() -> None:
    names = [f"slider{k}" for k in range(8)]
    assert titles(many(8).plot(names, quantities="position")) == names


def test_where_nothing_moves_every_body_is_shown() -> None:
    mech = lw.chain(2)
    still = from_coordinates(mech, TIME, np.zeros((len(TIME), 2)), np.zeros((len(TIME), 2)))
    assert titles(still.plot()) == ["link1", "link2"]


def test_the_time_of_a_stop_is_marked_and_explained() -> None:
    stopped = crank_motion(TIME, status=Status(ok=False, reason="dead centre", time=1.25))
    figure = stopped.plot()
    for ax in figure.axes:
        assert [line for line in ax.get_lines() if list(line.get_xdata()) == [1.25, 1.25]]
        assert ax.get_xlim()[1] > 1.25
    assert "stopped at t = 1.25 s: dead centre" in words(figure)
    assert not any("stopped" in word for word in words(crank_motion(TIME, status=FINISHED).plot()))


def test_rounding_is_not_blown_up_to_fill_its_axes() -> None:
    solution = many(1)
    noise = 1e-17 * np.random.default_rng(0).standard_normal((len(TIME), 1, 3))
    arrays = {**solution.arrays, "velocity": solution.arrays["velocity"][:1] + noise}
    noisy = Solution.of(
        solution.description, TIME, **arrays, status=FINISHED, counters=Counters(), iterations=np.zeros(21, int)
    )
    low, high = noisy.plot(quantities="velocity").axes[0].get_ylim()
    assert high - low > 0.5


@pytest.mark.parametrize("points", [0, 1])
def test_no_or_one_point_is_drawn_too(points: int, tmp_path: Path) -> None:
    figure = crank_motion(TIME[:points]).plot("crank", path=tmp_path / "x.png")
    lines = figure.axes[0].get_lines()
    assert len(lines) == 3 * points
    assert all(line.get_marker() == "o" for line in lines)


def test_numbers_that_are_none_leave_a_gap(tmp_path: Path) -> None:
    whole = crank_motion(TIME)
    arrays = {**whole.arrays, "acceleration": np.full((21, 2, 3), np.nan)}
    broken = Solution.of(
        whole.description, TIME, **arrays, status=FINISHED, counters=Counters(), iterations=whole.iterations
    )
    broken.plot(path=tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 1000


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")])
def test_a_figure_is_written_by_its_ending(ending: str, start: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"x.{ending}"
    crank_motion(TIME).plot(path=path)
    assert path.read_bytes().startswith(start)
    assert [f.name for f in tmp_path.iterdir()] == [path.name]


def test_names_are_written_as_they_are(tmp_path: Path) -> None:
    with lw.Builder("cost $a_b$ \\frac") as b:
        b.joint("revolute", b.ground, b.body("a$x^{$_b", mass=1.0, inertia=(1.0, 1.0, 1.0)))
    solution = from_coordinates(b.build(), TIME, TIME[:, None], np.ones((21, 1)))
    figure = solution.plot("a$x^{$_b", path=tmp_path / "x.png")
    assert titles(figure) == ["a$x^{$_b"]
    assert "cost $a_b$ \\frac" in words(figure)


def test_a_name_that_is_too_long_for_its_place_is_cut() -> None:
    with lw.Builder("m" * 300) as b:
        b.joint("revolute", b.ground, b.body("b" * 300, mass=1.0, inertia=(1.0, 1.0, 1.0)))
    figure = from_coordinates(b.build(), TIME, TIME[:, None], np.ones((21, 1))).plot("b" * 300)
    assert all(len(text) < 80 and text.endswith("…") for text in (words(figure)[0], titles(figure)[0]))


def test_misuse_says_what_to_give(tmp_path: Path) -> None:
    solution = crank_motion(TIME)
    with pytest.raises(NameNotFound, match="no body, frame or joint named 'pivto'; did you mean 'pivot'"):
        solution.plot("pivto")
    with pytest.raises(NameNotFound, match=r"no quantity named 'speed'; there are: position"):
        solution.plot(quantities="speed")
    with pytest.raises(LinkwrightError, match="no quantity to plot"):
        solution.plot(quantities=())
    with pytest.raises(LinkwrightError, match="no column to plot"):
        solution.plot([])
    with pytest.raises(LinkwrightError, match=r"x\.gif: a figure's name ends in \.png, \.svg, \.pdf"):
        solution.plot(path=tmp_path / "x.gif")


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delitem(sys.modules, "linkwright.results.figures", raising=False)
    with pytest.raises(LinkwrightError, match=r'pip install "linkwright\[plot\]"'):
        crank_motion(TIME).plot()


def test_plotting_leaves_no_state_in_pyplot() -> None:
    crank_motion(TIME).plot()
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()
