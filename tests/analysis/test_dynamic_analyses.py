"""lw.analyse does what SYSTEM says: motion under forces, rest, and the forces that a motion takes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwright as lw
from linkwright.analysis import force_series
from linkwright.errors import LinkwrightError, ModelError, NameNotFound, ShapeError
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.results.status import Series

PENDULUM = """MODEL pendulum
SYSTEM ({analysis} ANALYSIS, ending time = 2, print interval = 0.01, relative tolerance = 1e-10{more});
BODY g (ground);
BODY bob (mass = 2, com = (0.5, 0, 0), inertia = (0.01, 0.1, 0.1));
TRIAD pivot (associated body = g, h = (0, -1, 0), f = (0, 0, -1));
REVOLUTE JOINT hinge (triad = pivot, triad = bob, lower = -1, upper = 1);
{rest}
ENDMODEL"""
ABOUT = 0.1 + 2 * 0.25  # the inertia about the pivot


def pendulum(analysis: str = "DYNAMIC", rest: str = "", more: str = "") -> lw.Mechanism:
    return lw.Mechanism(parse_mks(PENDULUM.format(analysis=analysis, rest=rest, more=more)))


def test_dynamic_analysis_is_the_simulation_that_system_describes() -> None:
    mech = pendulum(rest="INITIAL (hinge.angle = 0.3);")
    sol = lw.analyse(mech)
    assert sol.status
    np.testing.assert_allclose(sol.time, np.arange(0, 2.005, 0.01), atol=1e-12)
    same = lw.simulate(mech, 2.0, q0=[0.3], rtol=1e-10, saving=lw.Saving(times=sol.time))
    np.testing.assert_array_equal(sol.q, same.q)


def test_settings_of_a_simulation_override_those_of_the_model() -> None:
    mech = pendulum(rest="INITIAL (hinge.angle = 0.3);", more=", method = rk4, step = 0.01")
    assert lw.analyse(mech).counters.steps == 200
    assert lw.analyse(mech, dt=0.02).counters.steps == 100
    assert lw.analyse(mech, method="dop853").counters.steps < 100
    assert lw.analyse(mech, times=[0.0, 1.0]).time[-1] == 1.0


def test_forces_are_series_with_units() -> None:
    rest = (
        "SPRING s (joint = hinge, stiffness = 3); TORQUE t (joint = hinge, law = sin(TIME)); INITIAL (hinge.rate = 1);"
    )
    sol = lw.analyse(pendulum(rest=rest))
    assert {name: x.unit for name, x in sol.series.items()} == {
        "s.torque": "N m",
        "t.torque": "N m",
        **{f"hinge.f{x}": "N" for x in "xyz"},
        **{f"hinge.m{x}": "N m" for x in "xyz"},
    }
    np.testing.assert_allclose(sol.series["s.torque"].values, -3 * sol.q[:, 0], atol=1e-12)
    np.testing.assert_allclose(sol.series["t.torque"].values, np.sin(sol.time), atol=1e-12)
    # Newton's law of the bob: what the hinge pushes is m (a − g) of its centre.
    q, v, a = sol.q[:, 0], sol.v[:, 0], sol.a[:, 0]
    up = 2 * (0.5 * (a * np.sin(q) + v**2 * np.cos(q)) + 9.81)
    np.testing.assert_allclose(sol.series["hinge.fz"].values, up, rtol=1e-8, atol=1e-8)


def test_a_joint_beyond_its_limits_is_told_unless_a_stop_is_there() -> None:
    begin = "INITIAL (hinge.angle = 0.9, hinge.rate = 5);"
    told = "Joint 'hinge' goes beyond its limits"
    assert told in str(lw.analyse(pendulum(rest=begin)).status)
    assert told in str(lw.analyse(pendulum(rest=begin + "DAMPER oil (joint = hinge, damping = 0.01);")).status)
    stopped = lw.analyse(pendulum(rest=begin + "STOP end (joint = hinge, stiffness = 1e4);"))
    assert "limits" not in str(stopped.status)
    assert np.max(np.abs(stopped.q)) < 1.1


ENDLESS = {
    "time": "TORQUE f (joint = hinge, law = sqrt(0.05 - TIME));",
    "place": "TORQUE f (joint = hinge, law = ln(0.3 - hinge.angle)); INITIAL (hinge.rate = 3);",
}


@pytest.mark.parametrize("settings", [{}, {"method": "rk4", "dt": 1e-3}, {"method": "radau"}], ids=str)
@pytest.mark.parametrize("of", ENDLESS)
def test_a_law_without_a_value_ends_a_run_by_its_name(of: str, settings: dict[str, Any]) -> None:
    rest = "SPRING s (joint = hinge, stiffness = 1); " + ENDLESS[of]
    sol = lw.analyse(pendulum(rest=rest), **settings)
    assert not sol.status
    assert "the law of force 'f' comes to where it has no finite value" in str(sol.status)
    assert sol.status.element == "f"


def test_a_law_without_a_value_at_the_start_is_named() -> None:
    with pytest.raises(ModelError, match="the law of force 'f' has no finite value at the start"):
        lw.analyse(pendulum(rest="TORQUE f (joint = hinge, law = 1/hinge.angle); INITIAL (hinge.angle = 0);"))


@pytest.mark.parametrize("what", ["angle", "rate"])
def test_a_driver_that_says_another_beginning_is_named(what: str) -> None:
    rest = f"DRIVER m (hinge.angle = 0.5*TIME); INITIAL (hinge.{what} = 0.3);"
    with pytest.raises(ModelError, match=f"of 'hinge.{what}' is not what driver 'm' says"):
        lw.analyse(pendulum(rest=rest))


def test_drivers_of_one_joint_that_contradict_each_other_are_both_named() -> None:
    sol = lw.analyse(pendulum(rest="DRIVER d (hinge.angle = TIME); DRIVER e (hinge.angle = 2*TIME);"))
    assert not sol.status
    assert "drivers 'd' and 'e' of the same thing contradict each other" in str(sol.status)


def test_static_analysis_finds_where_forces_balance() -> None:
    sol = lw.analyse(pendulum("STATIC", "TORQUE t (joint = hinge, law = 4); INITIAL (hinge.angle = 0.1);"))
    assert len(sol) == 1
    assert sol.q[0, 0] == pytest.approx(np.arcsin(4 / (2 * 9.81 * 0.5)), abs=1e-9)
    assert sol.status


def test_static_analysis_follows_what_depends_on_time() -> None:
    sol = lw.analyse(pendulum("STATIC", "TORQUE t (joint = hinge, law = 4*TIME);"))
    assert len(sol) == 201
    np.testing.assert_allclose(sol.q[:, 0], np.arcsin(np.clip(4 * sol.time / 9.81, -1, 1)), atol=1e-8)


def test_static_analysis_keeps_what_it_found_when_there_is_no_more_rest() -> None:
    sol = lw.analyse(pendulum("STATIC", "TORQUE t (joint = hinge, law = 6*TIME);"))
    assert not sol.status
    assert sol.status.reason == "no equilibrium"
    assert sol.time[-1] == pytest.approx(9.81 / 6, abs=0.02)
    assert sol.status.advice


def test_inverse_dynamic_analysis_gives_the_drivers_forces() -> None:
    sol = lw.analyse(pendulum("INVERSE DYNAMIC", "DRIVER motor (hinge.angle = sin(2*TIME));"))
    q, a = np.sin(2 * sol.time), -4 * np.sin(2 * sol.time)
    wanted = ABOUT * a + 2 * 9.81 * 0.5 * np.sin(q)
    np.testing.assert_allclose(sol.series["motor.torque"].values, wanted, atol=1e-8)


@pytest.mark.parametrize(
    ("analysis", "rest", "told"),
    [
        ("INVERSE DYNAMIC", "", "has no drivers"),
        ("INVERSE DYNAMIC", "BODY b (mass = 1); DRIVER d (b.x = TIME);", r"leave \d degrees of freedom"),
    ],
)
def test_what_cannot_be_asked_is_told(analysis: str, rest: str, told: str) -> None:
    with pytest.raises(LinkwrightError, match=told):
        lw.analyse(pendulum(analysis, rest))


@pytest.mark.parametrize("analysis", ["dynamic", "static", "inverse dynamic"])
def test_forces_without_masses_are_refused_by_name(analysis: str) -> None:
    massless = Path(__file__).resolve().parents[2] / "examples" / "models" / "slider_crank.mks"
    with pytest.raises(LinkwrightError, match=r"no body of 'slider_crank' has a mass.*'pend1', 'pend2', 'block'"):
        lw.analyse(massless, analysis=analysis)


def test_an_unknown_analysis_and_a_setting_of_another_are_told() -> None:
    with pytest.raises(NameNotFound, match="no analysis named 'dinamic'; did you mean 'dynamic'"):
        lw.analyse(pendulum(), analysis="dinamic")
    with pytest.raises(ModelError, match="static analysis takes no 'rtol'"):
        lw.analyse(pendulum("STATIC"), rtol=1e-3)


def test_series_are_saved_and_written_as_columns(tmp_path: Path) -> None:
    sol = lw.analyse(pendulum(rest="SPRING s (joint = hinge, stiffness = 3); INITIAL (hinge.rate = 1);"))
    sol.save(tmp_path / "x.nc")
    again = lw.open(tmp_path / "x.nc")
    assert list(again.series) == list(sol.series)
    for name, x in sol.series.items():
        np.testing.assert_array_equal(again.series[name].values, x.values)
        assert again.series[name].unit == x.unit
    assert float(again.data["series"].sel(name="s.torque")[0]) == sol.series["s.torque"].values[0]
    sol.to_csv(tmp_path / "x.csv")
    heads = (tmp_path / "x.csv").read_text().splitlines()[0]
    assert "s.torque [N m]" in heads


FOUR_BARS = Path(__file__).resolve().parents[2] / "examples" / "models" / "double_four_bar.mks"


def test_forces_of_joints_are_left_out_of_long_runs_of_loops_and_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(force_series, "MOST_POINTS", 11)
    some, many = (lw.analyse(FOUR_BARS, times=np.linspace(0.0, 0.1, n)) for n in (11, 12))
    assert "base1.fx" in some.series
    assert "base1.fx" not in many.series
    assert "mech.reactions gives them" in str(many.status)


def hung(rods: int, more: str = "") -> lw.Mechanism:
    """A block of 1 kg on a vertical guide, held by rods side by side, where gravity is 10 m/s²."""
    with lw.Builder("hung") as b:
        b.gravity((0, 0, -10))
        block = b.body("block", 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
        b.joint("prismatic", b.ground, block, "guide")
        for k in range(rods):
            x = k - (rods - 1) / 2
            b.rod(b.triad(b.ground, (x, 0, 2)), b.triad(block, (x, 0, 0)), 2.0, f"rod{k + 1}")
        if more:
            b.driver("joint", "guide", 0.0, name=more)
    return b.build()


def test_rods_side_by_side_share_a_load_as_the_joints_do() -> None:
    sol = lw.analyse(hung(2), analysis="static", times=[0.0])
    assert sol.series["rod1.force"].values == pytest.approx([-5.0])
    assert sol.series["rod2.force"].values == pytest.approx([-5.0])
    assert sol.series["guide.my"].values == pytest.approx([0.0], abs=1e-9)


def test_forces_of_redundant_ties_drivers_and_joints_together_move_the_body() -> None:
    sol = lw.analyse(hung(3, "motor"), analysis="inverse dynamic", times=[0.0, 1.0])
    names = ["rod1.force", "rod2.force", "rod3.force"]
    pull = [sol.series[name].values[0] for name in names]
    assert pull == pytest.approx([-2.5, -2.5, -2.5])
    assert sol.series["motor.force"].values[0] == pytest.approx(2.5)
    assert sol.series["guide.fz"].values[0] == pytest.approx(2.5)  # the motor's, which drives it


def test_forces_of_a_motion_need_no_masses_where_others_have_some() -> None:
    """A block of 2 kg on a rail, pulled by massless bars: the crank's torque does the block's work."""
    with lw.Builder("crank and block") as b:
        crank, bar = b.body("crank"), b.body("bar")
        block = b.body("block", 2.0, (0, 0, 0), (0.1, 0.1, 0.1))
        for body, at, along in ((crank, (0, 0, 0), (0.6, 0.8, 0)), (bar, (0.6, 0.8, 0), (0.6, -0.8, 0))):
            b.place(body, at, f=along)
        b.place(block, (1.2, 0, 0))
        b.joint("revolute", b.ground, crank, "A")
        b.joint("revolute", b.triad(crank, (1, 0, 0)), bar, "B")
        b.joint("revolute", b.triad(bar, (1, 0, 0)), block, "C")
        along_x = {"h": (1, 0, 0), "f": (0, 1, 0)}
        b.joint("prismatic", b.triad(b.ground, **along_x), b.triad(block, **along_x), "rail")
        b.driver("joint", "A", 0.9 + lw.TIME, name="motor")
    sol = lw.analyse(b.build(), analysis="inverse dynamic", times=np.linspace(0.0, 0.1, 3))
    assert "left out" not in str(sol.status)
    x, phi = sol.position("block")[:, 0], 0.9 + sol.time
    assert x == pytest.approx(2 * np.cos(phi))
    power = 2.0 * (-2 * np.cos(phi)) * (-2 * np.sin(phi))  # m ẍ ẋ, at 1 rad/s
    assert sol.series["motor.torque"].values == pytest.approx(power, rel=1e-8)


def test_a_driver_of_a_joint_is_in_the_joint_s_force_as_a_spring_is() -> None:
    sol = lw.analyse(pendulum("INVERSE DYNAMIC", "DRIVER motor (hinge.angle = sin(2*TIME));"))
    axis = np.array([0.0, -1.0, 0.0])
    moment = np.stack([sol.series[f"hinge.m{x}"].values for x in "xyz"], axis=1) @ axis
    assert np.max(np.abs(moment)) > 1.0
    np.testing.assert_allclose(moment, sol.series["motor.torque"].values, atol=1e-9)


@pytest.mark.parametrize("tau", [[3.0], lambda t, q, v: 3.0 + 0.0 * q], ids=["array", "law"])
def test_forces_from_outside_are_in_the_series(tau: object) -> None:
    sol = lw.analyse(pendulum(), times=[0.0, 0.1], tau=tau)
    assert sol.series["hinge.my"].values == pytest.approx([-3.0, -3.0])


def test_a_gear_is_among_the_forces_of_a_loop() -> None:
    """Two wheels on their shafts, geared −2 to 1; the second shaft's joint is there twice, so that there is a loop."""
    with lw.Builder("wheels") as b:
        for name, inertia in (("one", 3.0), ("two", 1.0)):
            b.joint("revolute", b.ground, b.body(name, 1.0, (0, 0, 0), (2, 2, inertia)), name)
        b.joint("revolute", b.ground, "two", "again", cut=True)
        b.mimic("again", "one", -2.0, name="gear")
        b.joint_force("one", 14.0, name="push")
    sol = lw.analyse(b.build(), analysis="dynamic", times=[0.0, 0.1])
    # (3 + 4 · 1) a = 14 of the first wheel; the second turns at −2 a, and the gear alone turns it.
    assert sol.a[:, 0] == pytest.approx([2.0, 2.0])
    assert sol.series["gear.torque"].values == pytest.approx([-4.0, -4.0])
    assert sol.series["gear.torque"].unit == "N m"


def test_forces_that_cannot_be_had_are_told_and_the_motion_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object, **more: object) -> None:
        raise ModelError("no such thing; try another")

    monkeypatch.setattr(lw.Mechanism, "reactions", fails)
    sol = lw.analyse(pendulum(rest="SPRING s (joint = hinge, stiffness = 3);"))
    assert sol.status
    assert "s.torque" in sol.series
    assert "hinge.fx" not in sol.series
    assert "forces of joints are left out: no such thing; try another" in str(sol.status).lower()


def test_an_interrupt_while_forces_are_computed_keeps_the_motion(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*given: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(force_series, "forces", stopped)
    sol = lw.analyse(pendulum())
    assert sol.status
    assert len(sol) == 201
    assert not sol.series
    assert "interrupted" in str(sol.status)


def test_a_series_has_one_value_a_time_point() -> None:
    sol = lw.analyse(pendulum(), times=[0.0, 0.1])
    with pytest.raises(ShapeError, match="series 'x' has 3 values; there are 2 time points"):
        sol.with_series({"x": Series(np.zeros(3), "N")})


def test_series_are_drawn_by_unit(tmp_path: Path) -> None:
    rest = "SPRING s (joint = hinge, stiffness = 3); SPRING c (triad = bob, triad = g2, stiffness = 1, length = 1);"
    grounds = "BODY g2 (ground, origin = (0, 0, 1)); "
    sol = lw.analyse(pendulum(rest=grounds + rest.replace("triad = bob", "triad = (associated body = bob)")))
    figure = sol.plot_series(path=tmp_path / "x.png")
    assert [ax.get_ylabel() for ax in figure.axes] == ["N m", "N"]
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert len(sol.plot_series(["hinge.fx", "hinge.fz"]).axes[0].lines) == 2
    with pytest.raises(NameNotFound, match=r"no series named 'hinge\.f'"):
        sol.plot_series("hinge.f")
    assert len(lw.analyse(pendulum()).plot_series().axes) == 1


def test_one_point_is_drawn_as_one() -> None:
    sol = lw.analyse(pendulum("STATIC"))
    assert sol.plot_series().axes[0].lines[0].get_marker() == "o"
