"""Results in the units of the model: a model in mm, g, N, ms and degrees beside its twin in SI."""

import csv
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import linkwright as lw
from linkwright.errors import ModelError
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.mechanism import Mechanism
from linkwright.model.units import Units

#: {units} of SYSTEM, and the same numbers in them.
TEXT = """
MODEL wiper
SYSTEM (DYNAMIC ANALYSIS, starting time = 0, ending time = {end}, print interval = {every}, method = rk4,
        step = {step}{units});
PARAMETER crank = {crank};
GRAVITY (0, {g}, 0);
BODY base (ground);
BODY arm (mass = {mass}, com = ({half}, 0, 0), inertia = ({i}, {i}, {i}));
BODY block (origin = ({long}, 0, 0), mass = {mass}, inertia = ({i}, {i}, {i}));
REVOLUTE JOINT hinge (triad = base, triad = arm, lower = {low}, upper = {high});
TRIAD rail (associated body = base, origin = (0, {long}, 0), h = (1, 0, 0), f = (0, 1, 0));
TRIAD guide (associated body = block, h = (1, 0, 0), f = (0, 1, 0));
TRANSLATIONAL JOINT slide (triad = rail, triad = guide);
SPRING coil (joint = slide, stiffness = {k}, rest = 0);
TORQUE push (joint = hinge, law = {torque});
INITIAL (hinge.angle = {angle}, slide.shift = {shift});
TRIAD tip (associated body = arm, origin = (crank, 0, 0));
TRACE path (triad = tip);
ENDMODEL
"""
SI = {"end": 0.02, "every": 0.005, "step": 0.001, "units": "", "crank": "0.05 m", "g": -9.81, "mass": 0.25}
SI |= {"half": 0.025, "i": 1e-5, "long": 0.08, "low": "-20 deg", "high": "40 deg", "k": 300, "torque": 0.002}
SI |= {"angle": "15 deg", "shift": 0.003}
MM = {
    "end": 20,
    "every": 5,
    "step": 1,
    "crank": "50 mm",
    "g": -0.00981,
    "mass": 250,
    "half": 25,
    "i": 10000,
    "long": 80,
}
MM |= {"low": -20, "high": 40, "k": 0.3, "torque": 2, "angle": 15, "shift": 3}
MM |= {"units": ", length unit = mm, mass unit = g, time unit = ms, force unit = N, angle unit = degree"}
UNITS = {"m": 1e3, "m/s": 1.0, "m/s^2": 1e-3, "rad": 180 / np.pi, "rad/s": 0.18 / np.pi, "rad/s^2": 0.18e-3 / np.pi}
UNITS |= {"s": 1e3, "N": 1.0, "N m": 1e3, "kg": 1e3}
SPOKEN = {"m": "mm", "m/s": "m/s", "m/s^2": "mm/ms^2", "rad": "deg", "rad/s": "deg/ms", "rad/s^2": "deg/ms^2"}
SPOKEN |= {"s": "ms", "N": "N", "N m": "N mm", "kg": "g"}


@pytest.fixture(scope="module")
def twins():
    return tuple(lw.analyse(Mechanism(parse_mks(TEXT.format(**numbers)))) for numbers in (SI, MM))


def table(solution, path: Path):
    solution.to_csv(path)
    heads, *rows = csv.reader(path.open(encoding="utf-8"))
    return heads, np.array(rows, dtype=np.float64)


def test_numbers_inside_have_the_same_bits_whatever_the_model_is_written_in(twins):
    si, mm = twins
    assert_array_equal(si.time, mm.time)
    for name in ("position", "orientation", "velocity", "angular_velocity", "acceleration", "angular_acceleration"):
        assert_array_equal(si.arrays[name], mm.arrays[name])
    assert list(si.series) == list(mm.series)
    for name, series in si.series.items():
        assert_array_equal(series.values, mm.series[name].values)
        assert series.unit == mm.series[name].unit


def test_a_csv_table_is_in_the_models_units_and_differs_by_their_factors(twins, tmp_path):
    (heads, numbers), (heads_mm, numbers_mm) = (table(x, tmp_path / f"{k}.csv") for k, x in enumerate(twins))
    for k, (head, head_mm) in enumerate(zip(heads, heads_mm, strict=True)):
        name, bracket, unit = head.partition(" [")
        name_mm, _, unit_mm = head_mm.partition(" [")
        assert name == name_mm
        factor = UNITS[unit[:-1]] if bracket else 1.0
        assert unit_mm[:-1] == (SPOKEN[unit[:-1]] if bracket else "")
        np.testing.assert_allclose(numbers_mm[:, k], factor * numbers[:, k], rtol=4e-16, atol=0.0)
    assert "coil.force [N]" in heads_mm
    assert "push.torque [N mm]" in heads_mm
    assert "path.x [mm]" in heads_mm


def test_a_model_in_si_is_shown_in_si(twins):
    units = twins[0].description.units
    assert all(units.shown(unit).text == unit for unit in UNITS)


def test_netcdf_stores_si_and_says_so(twins, tmp_path):
    for k, solution in enumerate(twins):
        solution.save(tmp_path / f"{k}.nc")
    si, mm = (lw.open(tmp_path / f"{k}.nc") for k in range(2))
    assert_array_equal(si.position("tip"), mm.position("tip"))
    assert twins[1].data.position.attrs == {
        "units": "m",
        "long_name": "position of the body's origin",
        "model_units": "mm",
    }
    assert twins[1].data.time.attrs["units"] == "s"
    assert "model_units" not in twins[0].data.time.attrs


def test_figures_are_in_the_models_units(twins):
    si, mm = (x.plot(["tip", "hinge"], ("position", "velocity")).axes for x in twins)
    assert [ax.get_ylabel() for ax in mm] == ["position (mm)", "angle (deg)", "velocity (m/s)", "rate (deg/ms)"]
    assert {ax.get_xlabel() for ax in mm[2:]} == {"time (ms)"}
    for ax, bx, unit in zip(si, mm, ("m", "rad", "m/s", "rad/s"), strict=True):
        for a, b in zip(ax.get_lines(), bx.get_lines(), strict=True):
            np.testing.assert_allclose(b.get_xdata(), 1e3 * a.get_xdata(), rtol=1e-15)
            np.testing.assert_allclose(b.get_ydata(), UNITS[unit] * a.get_ydata(), rtol=1e-15)
    forces = twins[1].plot_series(["coil.force", "push.torque"]).axes
    assert [ax.get_ylabel() for ax in forces] == ["N", "N mm"]


def test_a_notebook_shows_the_models_units(twins):
    text = twins[1]._repr_html_()
    assert "t = 0 … 20 ms" in text
    assert "deg/ms" in text
    assert "<td>N mm</td>" in text
    assert "t = 0 … 20 ms" in repr(twins[1])


def test_a_unit_may_be_asked_for(twins):
    for sol in twins:
        assert_array_equal(sol.position("tip", unit="mm"), 1e3 * sol.position("tip"))
        assert_array_equal(sol.position("tip", unit="m"), sol.position("tip"))
        np.testing.assert_allclose(sol.velocity("tip", unit="km/h"), 3.6 * sol.velocity("tip"), rtol=1e-15)
        assert_array_equal(sol.acceleration("tip", unit="mm/s^2"), 1e3 * sol.acceleration("tip"))
        turning = sol.angular_velocity("arm", unit="rpm")
        np.testing.assert_allclose(turning, 30 / np.pi * sol.angular_velocity("arm"), rtol=4e-16)
        accelerating = sol.angular_acceleration("arm", unit="deg/s^2")
        np.testing.assert_allclose(accelerating, np.degrees(sol.angular_acceleration("arm")), rtol=4e-16)
        np.testing.assert_allclose(sol.joint("hinge", unit="deg"), np.degrees(sol.joint("hinge")), rtol=4e-16)
        assert_array_equal(sol.joint_rate("slide", unit="mm/s"), 1e3 * sol.joint_rate("slide"))
        assert_array_equal(sol.joint_acceleration("slide", unit="mm/s^2"), 1e3 * sol.joint_acceleration("slide"))
        assert_array_equal(sol.energy(unit="mJ"), 1e3 * sol.energy())
        assert_array_equal(sol.series["push.torque"].to("N mm").values, 1e3 * sol.series["push.torque"].values)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda s: s.position("tip", unit="kg"), r"the position of 'tip' is a length, and 'kg' is a mass; .*'mm'"),
        (lambda s: s.velocity("tip", unit="mm"), "the velocity of 'tip' is a velocity, and 'mm' is a length; .*'mm/s'"),
        (lambda s: s.position("tip", unit="parsec"), "there is no unit 'parsec'"),
        (lambda s: s.position("tip", unit=1000), "the unit of the position of 'tip' is 1000; give a text"),
        (lambda s: s.angular_velocity("arm", unit="Hz"), "'Hz' is a frequency; give a unit such as 'deg/s'"),
        (lambda s: s.joint("hinge", unit="mm"), "the coordinate of joint 'hinge' is an angle, and 'mm' is a length"),
        (lambda s: s.joint("slide", unit=("mm", "deg")), "the coordinate of joint 'slide' is a length, and 'deg'"),
        (lambda s: s.joint("slide", unit=("mm", "m")), "has two units of a length"),
        (lambda s: s.series["coil.force"].to("N mm"), "a series of a force has no values in 'N mm', a torque"),
        (lambda s: s.position("tip", unit="m*km^9/um^9*km^9/um^9*km^9/um^9*km^9/um^9*km^9/um^9"), "too large or too"),
    ],
)
def test_a_unit_that_does_not_fit_is_an_error(twins, ask, message):
    with pytest.raises(ModelError, match=message):
        ask(twins[0])


def test_a_joint_that_turns_and_slides_takes_a_unit_for_each():
    with lw.Builder() as b:
        body = b.body("body", 1.0, inertia=(1.0, 1.0, 1.0))
        ball = b.body("ball", 1.0, inertia=(1.0, 1.0, 1.0))
        b.joint("cylindrical", b.ground, body, "sleeve")
        b.joint("spherical", body, ball, "socket")
    sol = lw.simulate(b.build(), 0.1, v0=[1.0, 0.5, 0.0, 0.0, 0.2], saving=lw.Saving(interval=0.05))
    both = sol.joint("sleeve", unit=("mm", "deg"))
    np.testing.assert_allclose(both, sol.joint("sleeve") * [180 / np.pi, 1e3], rtol=4e-16)
    with pytest.raises(ModelError, match=r"the coordinate of joint 'sleeve' is also an angle; .* unit=\('deg', 'mm'\)"):
        sol.joint("sleeve", unit="mm")
    with pytest.raises(ModelError, match=r"the coordinate of joint 'socket' has no unit, .* leave unit out"):
        sol.joint("socket", unit="deg")
    assert sol.joint_rate("socket", unit="rpm").shape == (3, 3)


def test_a_series_with_a_unit_of_its_own_is_shown_as_it_is():
    units = Units(length="mm")
    assert units.shown("K").of(3.0) == 3.0
    assert units.shown("K").text == "K"
    assert units.shown("km").of(2.0) == 2e6
    assert units.shown("").text == ""
    huge = "km^9/um^9*km^9/um^9*km^9/um^9*km^9/um^9*km^9/um^9*m"
    assert units.shown(huge).of(1.0) == 1.0
    assert units.shown(huge).text == huge
    assert units.shown("m^9*m^9").text == "m^9*m^9"
