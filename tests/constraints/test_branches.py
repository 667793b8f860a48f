"""Where branches of a motion cross or come near: a motion stays on its own, or says what it did."""

import numpy as np
import pytest
from linkages import bar, closed, four_bar_top, pin, slider_crank, unit

import linkwright as lw
from linkwright.model.expression import TIME, Name

FAR = (0.0, 0.0, 0.0)


def _turning(lengths, start, speed, side):
    """A four-bar whose law has its numbers in parameters, so that all of them share their code."""
    a, c, r, g = lengths
    far, tip = np.array([g, 0.0, 0.0]), a * unit(start)
    top = closed(tip, far, c, r, side)
    with lw.Builder("four-bar") as b:
        law = b.parameter("start", start) + b.parameter("speed", speed) * TIME
        crank, coupler, rocker = bar(b, "crank", FAR, tip), bar(b, "coupler", tip, top), bar(b, "rocker", far, top)
        b.triad(coupler, origin=(c, 0, 0), name="top")
        first = pin(b, "revolute", b.ground, FAR, crank, FAR, "A")
        pin(b, "revolute", crank, (a, 0, 0), coupler, FAR, "B")
        pin(b, "revolute", coupler, (c, 0, 0), rocker, (r, 0, 0), "C")
        pin(b, "revolute", b.ground, far, rocker, FAR, "D")
        b.driver("joint", first, law, name="motor")
    return b.build()


def parallelogram(a, g, angle):
    return a * unit(angle) + [g, 0.0, 0.0]


def antiparallelogram(a, g, angle):
    """The parallelogram's corner, mirrored at the diagonal from the crank's tip to the far pivot."""
    tip = a * unit(angle)
    d = [g, 0.0, 0.0] - tip
    d = d / np.linalg.norm(d, axis=1)[:, None]
    r = parallelogram(a, g, angle) - tip
    return tip + 2.0 * np.sum(r * d, axis=1)[:, None] * d - r


def _cases(count, seed):
    """Lengths, start, speed, side and interval of random parallelograms; half of the grids hit a change point."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        a, g = rng.uniform(0.5, 1.0), rng.uniform(1.1, 2.0)
        if rng.random() < 0.5:
            a, g = g, a
        start, speed = rng.uniform(0.4, 2.7), rng.uniform(0.5, 2.0) * rng.choice([-1.0, 1.0])
        interval = float(rng.choice([0.03, 0.1, 0.3, rng.uniform(0.02, 0.4)]))
        if k % 2:
            steps = max(1, round((np.pi - start) / abs(speed) / interval))
            speed = (np.pi - start) / (steps * interval)
        yield a, g, start, speed, float(rng.choice([-1.0, 1.0])), interval


def _stays(a, g, start, speed, side, interval):
    times = np.arange(0.0, 6.5 / abs(speed), interval)
    angle = start + speed * times
    sol = lw.analyse(_turning((a, g, a, g), start, speed, side), times=times)
    assert sol.status, sol.status
    ways = [parallelogram(a, g, angle), antiparallelogram(a, g, angle)]
    begin = four_bar_top((a, g, a, g), np.array(start), side)
    way = min(ways, key=lambda x: float(np.linalg.norm(x[0] - begin)))
    np.testing.assert_allclose(sol.position("top"), way, atol=1e-8)
    assert any("singular" in note for note in sol.status.notes)


@pytest.mark.parametrize("case", list(_cases(10, 0)), ids=lambda c: f"a={c[0]:.2f}, every {c[-1]:.2f} s")
def test_parallelograms_and_antiparallelograms_are_passed_on_their_branch_and_it_is_noted(case):
    _stays(*case)


@pytest.mark.slow
@pytest.mark.parametrize("case", list(_cases(150, 1)), ids=lambda c: f"a={c[0]:.3f}, every {c[-1]:.3f} s")
def test_many_parallelograms_are_passed_on_their_branch(case):
    _stays(*case)


@pytest.mark.parametrize("off", [1e-2, 1e-3, 1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("interval", [0.02, 0.2])
def test_branches_that_come_near_without_meeting_are_not_confused(off, interval):
    # Longer coupler and rocker: always in reach; the two ways to close it come as near as the square root of `off`.
    lengths = (1.0, 2.0 + off, 1.0 + 1.3 * off, 2.0)
    times = np.arange(0.0, 7.0, interval)
    sol = lw.analyse(_turning(lengths, 0.5, 1.0, 1.0), times=times)
    assert sol.status, sol.status
    np.testing.assert_allclose(sol.position("top"), four_bar_top(lengths, 0.5 + times, 1.0), atol=1e-7)


@pytest.mark.parametrize("off", [1e-2, 1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("interval", [0.02, 0.2])
def test_a_gap_in_the_reach_between_two_time_points_is_not_stepped_over(off, interval):
    lengths = (1.0, 2.0 - off, 1.0, 2.0)  # too short a coupler: stretched before the crank is at π
    sol = lw.analyse(_turning(lengths, 0.5, 1.0, 1.0), times=np.arange(0.0, 7.0, interval))
    assert sol.status.reason in ("out of reach", "dead centre")
    # The distance of the crank's tip from the far pivot is then 3 − off.
    reached = np.arccos((5.0 - (3.0 - off) ** 2) / 4.0) - 0.5
    assert sol.status.time == pytest.approx(reached, abs=1e-3)
    assert sol.time[-1] <= reached
    np.testing.assert_allclose(sol.position("top"), four_bar_top(lengths, 0.5 + sol.time, 1.0), atol=1e-7)


@pytest.mark.parametrize("interval", [0.01, 0.1, np.pi / 20, 0.37])
@pytest.mark.parametrize("speed", [1.0, -1.0])
def test_a_slider_crank_that_folds_is_passed_on_its_branch(interval, speed):
    """Crank and coupler are equal: at a right angle the block is over the pivot, and could stay there."""
    times = np.arange(0.0, 7.0, interval)
    sol = lw.analyse(slider_crank(1.0, 1.0, 0.3 + Name("speed") * TIME, 0.3, speed=speed), times=times)
    assert sol.status, sol.status
    angle = 0.3 + speed * times
    np.testing.assert_allclose(sol.position("block")[:, 0], 2.0 * np.cos(angle), atol=1e-8)
    np.testing.assert_allclose(sol.velocity("block")[:, 0], -2.0 * speed * np.sin(angle), atol=1e-7)
    assert any("singular" in note for note in sol.status.notes)


def test_a_dead_centre_whose_law_goes_on_smoothly_is_passed():
    """A block driven as if by a turning crank takes the crank through both its dead centres."""
    with lw.Builder("driven block") as b:
        arm = b.body("arm")
        b.place(arm, f=unit(0.8))
        b.joint("revolute", b.ground, arm, "pivot")
        law = np.sqrt(1.49 - 1.4 * np.cos(0.8 + TIME))
        b.driver("distance", b.triad(b.ground, origin=(1, 0, 0)), law, other=b.triad(arm, origin=(0.7, 0, 0)))
    sol = lw.analyse(b.build(), times=np.linspace(0.0, 6.0, 61))
    assert sol.status, sol.status
    np.testing.assert_allclose(sol.joint("pivot")[:, 0], 0.8 + sol.time, atol=1e-8)
    np.testing.assert_allclose(sol.joint_rate("pivot")[:, 0], 1.0, atol=1e-7)
    np.testing.assert_allclose(sol.angular_acceleration("arm"), 0.0, atol=1e-5)
    assert len([note for note in sol.status.notes if "singular" in note]) == 2


def _twins(lengths, count=2):
    """Equal four-bars on one crank: whatever one of them meets, all meet at the same time."""
    a, c, r, g = lengths
    far, tip = np.array([g, 0.0, 0.0]), a * unit(0.5)
    top = closed(tip, far, c, r, 1.0)
    with lw.Builder("twins") as b:
        crank = bar(b, "crank", FAR, tip)
        motor = pin(b, "revolute", b.ground, FAR, crank, FAR, "A")
        b.driver("joint", motor, 0.5 + TIME, name="motor")
        for k in range(count):
            coupler, rocker = bar(b, f"coupler{k}", tip, top), bar(b, f"rocker{k}", far, top)
            b.triad(coupler, origin=(c, 0, 0), name=f"top{k}")
            pin(b, "revolute", crank, (a, 0, 0), coupler, FAR, f"B{k}")
            pin(b, "revolute", coupler, (c, 0, 0), rocker, (r, 0, 0), f"C{k}")
            pin(b, "revolute", b.ground, far, rocker, FAR, f"D{k}")
    return b.build()


@pytest.mark.parametrize("off", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("count", [2, 40])
def test_twins_whose_branches_come_near_at_the_same_time_are_not_confused(off, count):
    lengths = (1.0, 2.0 + off, 1.0 + 1.3 * off, 2.0)
    times = np.arange(0.0, 4.0, 0.2)
    sol = lw.analyse(_twins(lengths, count), times=times)
    assert sol.status, sol.status
    for k in range(count):
        np.testing.assert_allclose(sol.position(f"top{k}"), four_bar_top(lengths, 0.5 + times, 1.0), atol=1e-7)


@pytest.mark.parametrize("count", [2, 40])
def test_twins_pass_their_change_point_on_their_branch_and_it_is_noted(count):
    times = np.arange(0.0, 4.0, 0.2)
    sol = lw.analyse(_twins((1.0, 2.0, 1.0, 2.0), count), times=times)
    assert sol.status, sol.status
    np.testing.assert_allclose(sol.position(f"top{count - 1}"), parallelogram(1.0, 2.0, 0.5 + times), atol=1e-8)
    assert any("singular" in note for note in sol.status.notes)
