"""Figures of series: lines that can be told apart, units, steps of what is held, and names that lead there."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from motions import crank_motion

import linkwright as lw
from linkwright.errors import LinkwrightError
from linkwright.results.solution_plots import style
from linkwright.results.status import Series

TIME = np.linspace(0.0, 1.0, 11)


def lines(figure: Figure) -> dict:
    return {line.get_label(): line for ax in figure.axes for line in ax.get_lines()}


def test_no_two_of_many_lines_look_alike() -> None:
    assert len({(color, str(dashes)) for color, dashes in map(style, range(64))}) == 64
    names = [f"joint{k}" for k in range(6)]
    figure = crank_motion(TIME).with_series({n: Series(TIME, "N m") for n in names}).plot_series()
    assert len({line.get_color() for line in lines(figure).values()}) == 6


def test_numbers_without_a_unit_are_not_labelled_one() -> None:
    figure = crank_motion(TIME).with_series({"ratio": Series(TIME, "1"), "a": Series(TIME, "m/s^2")}).plot_series()
    assert [ax.get_ylabel() for ax in figure.axes] == ["no unit", "m/s²"]


def test_forces_that_are_held_are_drawn_as_steps() -> None:
    arm = lw.chain(2)
    controller = lw.control.pid(arm, 1.0, 1.0, reference=lw.control.Hold([0.0, 0.0]))
    run = lw.control.Loop(arm, controller).run(0.02)
    drawn = {name: line.get_drawstyle() for name, line in lines(run.plot_series(list(run.series))).items()}
    first = run.drives[0]
    assert drawn[f"{first}.command"] == drawn[f"{first}.torque"] == "steps-post"
    assert drawn[f"{first}.encoder"] == "default"


def test_a_series_asked_of_plot_leads_to_plot_series() -> None:
    solution = crank_motion(TIME).with_series({"slide.command": Series(TIME, "N")})
    with pytest.raises(LinkwrightError, match=r"plot_series\('slide.command'\)"):
        solution.plot("slide.command")


def test_saving_under_the_name_of_a_table_writes_a_table(tmp_path: Path) -> None:
    solution = crank_motion(TIME)
    solution.save(tmp_path / "x.CSV")
    solution.to_csv(tmp_path / "y.csv")
    assert (tmp_path / "x.CSV").read_bytes() == (tmp_path / "y.csv").read_bytes()
