"""Motions that cannot go on, and corners that they pass: each is told with its time, its cause and what to do."""

import numpy as np
import pytest
from linkages import about_z, slider_crank, unit

import linkwright as lw
from linkwright.errors import AssemblyError, ModelError
from linkwright.model.expression import TIME, Call, Number

TIMES = np.linspace(0.0, 3.0, 31)


def _arm(*laws, stem="law"):
    """A turning arm; its angle follows these laws, all at once."""
    with lw.Builder("arm") as b:
        pivot = b.joint("revolute", b.ground, b.body("arm"), "pivot")
        for k, law in enumerate(laws, 1):
            b.driver("joint", pivot, law, name=f"{stem}{k}")
    return b.build()


def _later(when, power):
    """Zero up to a time, then growing."""
    return Call("max", (TIME - when, Number(0.0))) ** power


def _hoist(law, name="cylinder"):
    """An arm of 0.7 m on ground, its end this far from a point 1 m away from its pivot."""
    with lw.Builder("hoist") as b:
        arm = b.body("arm")
        b.place(arm, rotation=about_z(0.8))
        b.joint("revolute", b.ground, arm, "pivot")
        foot, end = b.triad(b.ground, origin=(1, 0, 0)), b.triad(arm, origin=(0.7, 0, 0))
        b.driver("distance", foot, law, other=end, name=name)
    return b.build()


@pytest.mark.parametrize(("rate", "reached"), [(0.5, 1.6), (-0.5, 1.2)])
def test_a_driver_that_asks_for_what_is_out_of_reach_is_told_with_its_time(rate, reached):
    sol = lw.analyse(_hoist(0.9 + rate * TIME), times=TIMES)
    s = sol.status
    assert (s.ok, s.reason, s.element) == (False, "out of reach", "cylinder")
    assert s.time == pytest.approx(reached, abs=1e-3)
    assert 0.0 < s.residual < 1e-3
    assert "'cylinder'" in s.message
    assert "law" in s.advice
    # What was reached is kept.
    assert sol.time[-1] == max(t for t in TIMES if t < reached)
    end = 0.7 * unit(sol.joint("pivot")[:, 0]) - [1.0, 0.0, 0.0]
    np.testing.assert_allclose(np.linalg.norm(end, axis=1), 0.9 + rate * sol.time, atol=1e-9)


@pytest.mark.parametrize("name", ["driver's seat", 'the "left" one\'s', "'"])
def test_names_with_quotes_come_out_as_they_are(name):
    reach = lw.analyse(_hoist(0.9 + 0.5 * TIME, name), times=TIMES).status
    assert (reach.reason, reach.element) == ("out of reach", name)
    assert repr(name) in reach.message
    locked = lw.analyse(_arm(TIME, TIME + _later(1.03, 2), stem=name), times=TIMES).status
    assert locked.reason == "lock-up"
    assert locked.element in (f"{name}1", f"{name}2")
    assert repr(f"{name}2") in locked.message
    with pytest.raises(AssemblyError) as told:
        lw.analyse(_hoist(3.0 + TIME, name), times=TIMES)
    assert told.value.element == name
    assert f"driver {name!r}" in told.value.misses


def test_a_crank_too_long_for_its_coupler_stops_where_that_is_stretched():
    sol = lw.analyse(slider_crank(1.0, 0.8, TIME, 0.0), times=TIMES)
    assert sol.status.reason == "out of reach"
    assert sol.status.element == "motor"
    assert sol.status.time == pytest.approx(np.arcsin(0.8), abs=1e-4)


def test_a_law_that_jumps_is_told_with_its_size():
    law = Call("if", (Call("lt", (TIME, Number(1.03))), Number(0.0), Number(0.5)))
    s = lw.analyse(_arm(law), times=TIMES).status
    assert (s.reason, s.element, s.residual) == ("jump", "law1", 0.5)
    assert s.time == pytest.approx(1.03, abs=1e-6)
    assert "step" in s.advice


@pytest.mark.parametrize("corner", [1.03, 1.0, 0.0])
def test_a_corner_of_a_law_is_passed_with_one_note(corner):
    sol = lw.analyse(_arm(Call("abs", (TIME - corner,))), times=TIMES - 0.5)
    assert sol.status
    assert len(sol.status.notes) == 1
    assert "corner" in sol.status.notes[0]
    off = np.abs(sol.time - corner) > 1e-6
    np.testing.assert_allclose(sol.joint("pivot")[:, 0], np.abs(sol.time - corner), atol=1e-8)
    np.testing.assert_allclose(sol.joint_rate("pivot")[off, 0], np.sign(sol.time - corner)[off], atol=1e-8)


@pytest.mark.parametrize("begin", [0.0, 0.55, 1.0])
def test_starting_and_stopping_smoothly_is_no_corner(begin):
    law = Call("step", (TIME, Number(begin), Number(0.2), Number(begin + 1.0), Number(1.7)))
    sol = lw.analyse(_arm(law), times=TIMES)
    assert sol.status.notes == ()
    s = np.clip(sol.time - begin, 0.0, 1.0)
    np.testing.assert_allclose(sol.joint("pivot")[:, 0], 0.2 + 1.5 * s * s * (3 - 2 * s), atol=1e-9)


def test_drivers_that_contradict_from_the_start_are_named():
    s = lw.analyse(_arm(TIME, 2.0 * TIME), times=TIMES).status
    assert (s.reason, s.time) == ("lock-up", 0.0)
    assert "'law1'" in s.message
    assert "'law2'" in s.message


@pytest.mark.parametrize("power", [2, 3])
def test_drivers_that_contradict_later_are_named(power):
    sol = lw.analyse(_arm(TIME, TIME + _later(1.5, power)), times=TIMES)
    s = sol.status
    assert s.reason == "lock-up"
    assert s.time == pytest.approx(1.5, abs=2e-3)
    assert "'law1'" in s.message
    assert "'law2'" in s.message
    assert sol.time[-1] == pytest.approx(1.5)


def test_drivers_that_say_the_same_are_redundant_and_no_harm():
    sol = lw.analyse(_arm(TIME, TIME), times=TIMES)
    assert sol.status
    assert sol.status.notes[0] == "drivers 'law2' and 'law1' drive the same degree of freedom; remove one of them"
    assert "redundant, such as driver 'law2'" in sol.status.notes[1]
    np.testing.assert_allclose(sol.joint("pivot")[:, 0], TIMES, atol=1e-9)


def test_a_driver_on_a_structure_without_freedom_is_told():
    with lw.Builder("frame") as b:
        weld = b.joint("fixed", b.ground, b.body("plate"), "weld")
        b.triad("plate", origin=(1, 0, 0), name="corner")
        b.driver("absolute", "corner", 1.0 + 0.1 * TIME, coordinate="x", name="push")
    assert weld.kind == "fixed"
    s = lw.analyse(b.build(), times=TIMES).status
    assert (s.reason, s.element, s.time) == ("lock-up", "push", 0.0)
    assert "joints forbid" in s.message


def test_drivers_that_contradict_in_position_do_not_go_together():
    with pytest.raises(AssemblyError, match=r"'law1'.*'law2'") as told:
        lw.analyse(_arm(TIME, 1.0 + TIME), times=TIMES)
    assert told.value.misses.keys() == {"driver 'law1'", "driver 'law2'"}


def test_a_law_without_a_value_at_the_start_is_an_error():
    with pytest.raises(ModelError, match=r"'law1' has no finite value at t = 0"):
        lw.analyse(_arm(np.sqrt(-1.0 - TIME)), times=TIMES)


@pytest.mark.parametrize("times", [[0.0, 0.0], [1.0, 0.5], [0.0, np.nan], []])
def test_times_that_do_not_increase_are_told(times):
    with pytest.raises(ModelError, match="increase"):
        lw.analyse(_arm(TIME), times=times)


def test_a_distance_that_becomes_zero_is_told():
    """Two points that meet have no direction from one to the other."""
    with lw.Builder("meeting") as b:
        b.joint("prismatic", b.ground, b.body("car"), axis=(1, 0, 0))
        b.place("car", (1.0, 0.0, 0.0))
        b.driver("distance", b.ground, 1.0 - TIME, other="car", name="gap")
    sol = lw.analyse(b.build(), times=TIMES)
    assert not sol.status
    assert sol.status.element == "gap"
    assert sol.status.time == pytest.approx(1.0, abs=1e-2)
    np.testing.assert_allclose(sol.position("car")[:, 0], 1.0 - sol.time, atol=1e-9)


def _leaning(tilt, law):
    """An arm on a revolute joint, drawn leaning, whose angle is driven between triads."""
    with lw.Builder("leaning") as b:
        arm = b.body("arm")
        b.place(arm, h=(0.0, -np.sin(tilt), np.cos(tilt)))
        b.joint("revolute", b.ground, arm, "pivot")
        b.driver("angle", b.triad(b.ground), law, other=arm, name="turn")
    return b.build()


@pytest.mark.parametrize("tilt", [0.0, 1e-5, 1e-2])
def test_an_angle_between_axes_that_are_drawn_roughly_parallel_counts_turns(tilt):
    sol = lw.analyse(_leaning(tilt, 3.0 * TIME), times=TIMES)
    assert sol.status, sol.status
    np.testing.assert_allclose(sol.joint("pivot")[:, 0], 3.0 * TIMES, atol=1e-9)


def test_an_angle_in_space_at_its_end_is_told_with_what_to_do():
    s = lw.analyse(_leaning(0.3, TIME), times=TIMES).status
    assert (s.ok, s.element) == (False, "turn")
    assert "parallel" in s.advice


def test_an_angle_in_space_goes_no_further_than_half_a_turn():
    sol = lw.analyse(_leaning(0.3, 1.0 + TIME), times=TIMES)
    assert sol.status.element == "turn"
    assert sol.status.time == pytest.approx(np.pi - 1.0, abs=1e-2)
    assert "π" in sol.status.advice


@pytest.mark.parametrize("times", [[0.9, 0.9 + 1e-9, 0.9 + 1e-6, 1.0, 5.0], [0.9, 3.0, 7.0, 14.0, 30.0]])
def test_times_may_be_near_each_other_or_far_apart(times):
    sol = lw.analyse(slider_crank(1.0, 3.0, TIME, 0.9), times=times)
    assert sol.status, sol.status
    t = np.array(times)
    np.testing.assert_allclose(sol.position("block")[:, 0], np.cos(t) + np.sqrt(9.0 - np.sin(t) ** 2), atol=1e-9)


def test_a_law_that_swings_faster_than_the_print_interval_is_followed():
    law = 0.9 + 0.8 * np.sin(40.0 * TIME)
    sol = lw.analyse(slider_crank(1.0, 3.0, law, 0.9), times=TIMES)
    angle = 0.9 + 0.8 * np.sin(40.0 * TIMES)
    np.testing.assert_allclose(sol.joint("A")[:, 0], angle, atol=1e-9)
    np.testing.assert_allclose(sol.position("block")[:, 0], np.cos(angle) + np.sqrt(9 - np.sin(angle) ** 2), atol=1e-9)


def test_a_law_without_a_value_ends_the_motion_and_keeps_what_was_found():
    with lw.Builder("crank") as b:
        b.joint("revolute", b.ground, b.body("bar"), "j")
        b.driver("joint", "j", np.sqrt(0.55 - TIME), name="d")
    sol = lw.analyse(b.build(), times=np.linspace(0.0, 1.0, 11))
    assert (sol.status.reason, sol.status.element, len(sol)) == ("no value", "d", 6)
    assert sol.status.time == pytest.approx(0.5)


def test_limits_are_not_applied_and_said_so():
    with lw.Builder("crank") as b:
        b.joint("revolute", b.ground, b.body("bar"), "j", upper=0.25)
        b.driver("joint", "j", TIME + 0.0, name="d")
    sol = lw.analyse(b.build(), times=np.linspace(0.0, 1.0, 11))
    assert sol.status
    assert sol.status.notes == ("joint 'j' goes beyond its limits from t = 0.3 on; they are not applied",)
