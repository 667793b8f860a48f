"""Angles are counted through all their turns, however few time points there are; laws that jump are told."""

import numpy as np
import pytest

import linkwright as lw
from linkwright.model.expression import TIME, Call, Name, as_expression

TIMES = np.arange(4.0)


def _turned(build):
    """A mechanism with the law start + 2π rate TIME on joint "r1"; both are parameters, so that code is shared."""
    with lw.Builder("turning") as b:
        law = b.parameter("start", 0.0) + b.parameter("rate", 0.1) * (2.0 * np.pi) * TIME
        build(b)
        b.driver("joint", "r1", law, name="d")
    return b.build()


@pytest.fixture(scope="module")
def spindle():
    return _turned(lambda b: b.joint("screw", b.ground, b.body("nut"), "r1", pitch=0.001))


@pytest.fixture(scope="module")
def gears():
    def build(b):
        b.joint("revolute", b.ground, b.body("wheel"), "r1")
        b.joint("revolute", b.triad(b.ground, (1, 0, 0)), b.body("pinion"), "r2")
        b.mimic("r2", "r1", 0.7123)

    return _turned(build)


@pytest.fixture(scope="module")
def rack():
    def build(b):
        b.joint("revolute", b.ground, b.body("wheel"), "r1")
        b.joint("prismatic", b.ground, b.body("rack"), "slide")
        b.mimic("slide", "r1", 0.05)

    return _turned(build)


SWEEP = [*((0.0, rate) for rate in (0.3, 0.49, 0.5, 0.51, 1.0, -2.7, 40.0)), (31.4, 0.2), (-9.0, 1.5)]


@pytest.mark.parametrize(("start", "rate"), SWEEP)
def test_a_nut_is_where_its_turns_take_it(spindle, start, rate):
    sol = lw.analyse(spindle, times=TIMES, parameters={"start": start, "rate": rate})
    assert sol.status, sol.status
    np.testing.assert_allclose(sol.position("nut")[:, 2], 0.001 * (start + 2 * np.pi * rate * TIMES), atol=1e-14)


@pytest.mark.parametrize(("start", "rate"), SWEEP)
def test_gears_keep_their_ratio(gears, start, rate):
    sol = lw.analyse(gears, times=TIMES, parameters={"start": start, "rate": rate})
    assert sol.status, sol.status
    e = sol.orientation("pinion")
    wanted = 0.7123 * (start + 2 * np.pi * rate * TIMES)
    found = 2.0 * np.arctan2(e[:, 3], e[:, 0])
    np.testing.assert_allclose(np.exp(1j * found), np.exp(1j * wanted), atol=1e-10)


@pytest.mark.parametrize(("start", "rate"), SWEEP)
def test_a_rack_is_where_its_pinion_takes_it(rack, start, rate):
    sol = lw.analyse(rack, times=TIMES, parameters={"start": start, "rate": rate})
    assert sol.status, sol.status
    np.testing.assert_allclose(sol.position("rack")[:, 2], 0.05 * (start + 2 * np.pi * rate * TIMES), atol=1e-10)


def test_a_nut_drawn_some_turns_along_stays_there():
    with lw.Builder("drawn") as b:
        nut = b.body("nut")
        b.place(nut, (0.0, 0.0, 0.001 * 10.0 * np.pi))
        b.joint("screw", b.ground, nut, "thread", pitch=0.001)
    sol = lw.analyse(b.build(), times=[0.0])
    np.testing.assert_allclose(sol.position("nut")[0, 2], 0.001 * 10.0 * np.pi, rtol=1e-12)


def _crank(law):
    with lw.Builder("crank") as b:
        b.joint("revolute", b.ground, b.triad(b.body("bar"), (1, 0, 0)), "j")
        b.driver("joint", "j", law, name="d")
    return b.build()


@pytest.mark.parametrize(
    ("law", "when"),
    [
        (Call("if", (Call("lt", (TIME, as_expression(0.55))), TIME, TIME + 0.03)), 0.55),
        (0.015 * Call("floor", (TIME / 0.3,)), 0.3),
    ],
)
def test_a_law_that_jumps_by_little_is_told(law, when):
    sol = lw.analyse(_crank(law), times=np.linspace(0.0, 2.0, 21))
    assert sol.status.reason == "jump"
    assert sol.status.element == "d"
    assert sol.status.time == pytest.approx(when, abs=1e-6)
    assert not any("corner" in note for note in sol.status.notes)


@pytest.mark.slow
def test_a_law_with_a_pole_is_not_called_a_dead_centre():
    sol = lw.analyse(_crank(np.tan(Name("TIME"))), times=np.linspace(0.0, 2.0, 21))
    assert sol.status.reason == "too fast"
    assert sol.status.time == pytest.approx(np.pi / 2, abs=1e-3)


def test_axes_that_do_not_stay_parallel_are_told():
    with lw.Builder("tilting") as b:
        body = b.body("body")
        b.joint("universal", b.ground, b.triad(body, h=(0, 1, 0), f=(1, 0, 0)), "u")
        b.driver("joint", "u", 0.3 * TIME, index=1, name="tilt")
        b.driver("angle", b.ground, TIME, other=body, name="turn")
    sol = lw.analyse(b.build(), times=np.linspace(0.0, 1.0, 11))
    assert sol.status.reason == "tilted axes"
    assert sol.status.element == "turn"
    assert len(sol) == 1


def test_a_mechanism_drawn_flat_is_told_where_it_starts():
    with lw.Builder("flat") as b:
        bars = {"crank": (0.0, 1.0), "coupler": (1.0, 3.0), "rocker": (3.0, 1.0)}
        for name, (x, _) in bars.items():
            b.place(b.body(name), (x, 0.0, 0.0))
        b.joint("revolute", b.ground, "crank", "A")
        b.joint("revolute", b.triad("crank", (1, 0, 0)), "coupler", "B")
        b.joint("revolute", b.triad("coupler", (3, 0, 0)), b.triad("rocker", (1, 0, 0)), "C")
        b.joint("revolute", b.triad(b.ground, (3, 0, 0)), "rocker", "D")
        b.driver("joint", "A", TIME, name="drive")
    sol = lw.analyse(b.build(), times=np.linspace(0.0, 1.0, 11))
    assert not sol.status
    assert "starts in a singular position" in str(sol.status)
    assert "draw the mechanism as it is then" in sol.status.advice
