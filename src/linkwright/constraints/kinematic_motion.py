"""Motion in time: Newton's method from point to point with prediction, never on another branch without saying so.

A step is accepted when its velocities agree with its accelerations and both its ends are on one branch; else it is
halved. Where the equations become dependent (a dead centre), the step leaps across and points inside are interpolated
between both sides; where that fails, the motion stops and tells why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwright.base.arguments import check_points
from linkwright.base.arrays import Floats
from linkwright.constraints.kinematic_programs import Programs, Step
from linkwright.constraints.newton import Assembled
from linkwright.constraints.program_layout import ITERATIONS, shift_between, state_rates
from linkwright.constraints.rank import Branch
from linkwright.spatial.rotation import quaternion_product

#: How far velocities may differ from what the accelerations make of them, as a part of the speed.
MISMATCH = 0.1
#: The same as a part of the largest speed so far: a body that comes to rest, or starts, may do so at once.
REST = 1e-4
#: The same of bodies that never moved, as a part of a speed at which they would be felt to: see `Acceptance.slow`.
STILL = 1e-12
#: How far the state found may be from the predicted one: this part of the way, and this part of the bodies' sizes.
JUMP, SLACK = 0.3, 0.02
#: How far it may be from where the rates of both ends lead, as a part of the way: a law that jumps is no motion.
DRIFT = 0.01
#: What may be left of the equations unless the model says, as a part of the mechanism's size.
MISSED = 1e-9
#: The same of their rates, as a part of the speed.
FOLLOWED = 1e-6
#: How far a body may turn in a step (rad), so that the turns of joints can be counted.
TURN = 1.0
#: Below this part of the largest pivot so far the equations are taken for dependent.
SINGULAR = 1e-5
#: And below this part such a position may be near.
NEAR = 1e-2
#: Half the width of the stretch around such a position that is interpolated, in parts of the bodies' sizes or radians:
#: rounding errors of accelerations grow with its inverse cube, those of the interpolation with its fourth power.
WINDOW = 0.02
#: How far the constraints may be missed in between, as a part of the mechanism's size.
INTERPOLATED = 1e-6
#: The longest leap across such a position, in the same parts; and in print intervals, for motions that come to rest.
LEAP, LEAP_INTERVALS = 0.2, 200.0
#: The shortest step, as a part of the print interval.
SHORTEST = 1e-8
#: Up to so many entries of J its singular values are found.
DENSE = 250_000
#: The free part of a motion is integrated until halving a step changes it by less than this part of the sizes.
FREE_ERROR = 1e-10


@dataclass(eq=False)
class State:
    """Where all bodies are at a time, with their twists and the derivatives of these, and the angles counted."""

    t: float
    q: Floats
    v: Floats
    a: Floats
    angles: Floats


@dataclass
class Work:
    """What was done: see `Counters`."""

    iterations: int = 0
    rounds: int = 0
    steps: int = 0
    refused: int = 0
    notes: list[str] = field(default_factory=list)


class Acceptance:
    """What a step must show to be taken: each test is for one step or, with arrays in it, for many."""

    def __init__(self, size: Any, sizes: Floats, constraint_tolerance: float, start: Assembled) -> None:
        """Of a mechanism of this size (m), whose bodies have these sizes; or of a batch, with the cases first."""
        asked = constraint_tolerance if np.isfinite(constraint_tolerance) else MISSED * size
        self.sizes = sizes
        self.tolerance: Any = np.maximum(asked, 10.0 * start.miss)  # of Φ (m)
        self.rate_tolerance: Any = FOLLOWED * size  # of J v + Φ_t (m), for each unit of speed (1/s)
        self.slow = 0.0  # a speed (1/s) at which the whole motion takes bodies about as far as they are large
        self.interval = 0.0  # between time points (s)
        self.lost: Any = start.lost  # how many equations repeat others
        self.largest_pivot: Any = start.pivot  # so far
        self.fastest: Any = 0.0 * start.pivot  # the largest speed so far (1/s)

    def over(self, times: Floats) -> None:
        """Judge a motion over these times; a single one has no duration to judge by."""
        duration = float(times[-1] - times[0])
        self.slow = 1.0 / duration if duration else 0.0
        self.interval = print_interval(times)

    def closes(self, step: Step) -> Any:
        """Whether a position was found."""
        return (step.residual <= self.tolerance) & (step.iterations < ITERATIONS * np.maximum(step.rounds, 1.0))

    def regular(self, step: Step, largest: Any = None) -> Any:
        """Whether the equations there are as independent as elsewhere, where the pivots were as large as `largest`."""
        return (step.lost == self.lost) & (
            step.pivot >= SINGULAR * (self.largest_pivot if largest is None else largest)
        )

    def consistent(self, step: Step) -> Any:
        """Whether the laws' rates can be followed."""
        return step.rate_residual <= self.rate_tolerance * (self.slow + step.speed)

    def near(self, step: Step) -> Any:
        """Whether the state found is where the rates of both ends lead, and no body turned too far to be counted."""
        # Near a singular position accelerations change so fast that only the velocities are a measure.
        drift = np.where(step.pivot < NEAR * self.largest_pivot, JUMP, DRIFT)
        expected = (step.jump <= JUMP * step.travelled + SLACK) & (step.drift <= drift * step.travelled + 1e-9)
        return expected & (step.turned <= TURN)

    def smooth(self, step: Step, fastest: Any) -> Any:
        """Whether the velocities of both ends agree with the accelerations, where bodies were as fast as `fastest`."""
        return step.mismatch <= MISMATCH * step.speed + REST * fastest + STILL * self.slow

    def near_singular(self, step: Step) -> Any:
        """Whether a position in which the equations are dependent may be near."""
        return (step.lost != self.lost) | (step.pivot < NEAR * self.largest_pivot)

    def sound(self, step: Step, largest: Any = None) -> Any:
        """Whether the state found is one that may follow; `largest` as for `regular`."""
        return self.closes(step) & self.regular(step, largest) & self.consistent(step) & self.near(step)

    def steady(self, step: Step, fastest: Any, a: Floats) -> Any:
        """Whether velocities agree with the accelerations `a` (..., nb, 6) at the end, or bodies come to rest."""
        smooth = self.smooth(step, fastest)
        if np.all(smooth):
            return smooth
        # At rest there is no speed to compare with, but there may be an acceleration.
        parts = np.abs(a)
        parts[..., :3] /= self.sizes[..., None]
        felt = REST * self.interval * np.max(parts, axis=(-2, -1), initial=0.0)
        return smooth | (np.logical_not(self.near_singular(step)) & (step.mismatch <= felt))

    def short(self, step: Step) -> Any:
        """Whether the step is too short for the equations to have been dependent in between.

        Pivots are squared sines of angles between equations, and change no faster than the bodies move times the
        inverse of the smallest sine.
        """
        return step.pivot > 2.0 * step.travelled


class Stepper(Acceptance):
    """Steps of one mechanism; a state that is not accepted is forgotten."""

    def __init__(self, programs: Programs, assembled: Assembled, free: bool, t: float) -> None:
        e = programs.layout.equations
        super().__init__(e.size, e.sizes, float(programs.numbers["newton"][1]), assembled)
        self.programs, self.free = programs, free
        nb, turns = e.nb, max(int(e.first_angle[-1]), 1)
        self._t, self._h = np.zeros(1), np.zeros(1)
        self._q, self._v, self._a = np.zeros((nb, 7)), np.zeros((nb, 6)), np.zeros((nb, 6))
        self._angles = np.zeros(turns)
        program = programs.step(free)
        states = {"q": self._q, "angles": self._angles, "t": self._t, "v": self._v, "a": self._a, "h": self._h}
        self._out = {port.name: np.zeros(port.shape) for port in program.outputs}
        states.update(programs.numbers)
        inputs = [states[port.name] for port in program.inputs]
        self._call: Callable[[], None] = program.bound(inputs, list(self._out.values()))
        self._summary = self._out["summary"]
        self.branch = Branch(programs, assembled.q, assembled.angles, t)
        self.work = Work()
        still = np.zeros((nb, 6))
        self.start = State(t, assembled.q, still, still, assembled.angles)

    @property
    def counted(self) -> tuple[int, int]:
        """How often the equations were evaluated, and linear systems solved."""
        work, rates = self.work, 2 if self.free else 1
        return work.iterations + (1 + rates) * work.rounds, work.iterations + (3 + rates) * work.rounds

    def attempt(self, state: State, t: float) -> Step:
        """Compute the step from a state to a time; the outcome is in `found`."""
        self._q[...], self._v[...], self._a[...] = state.q, state.v, state.a
        self._angles[...] = state.angles
        self._t[0], self._h[0] = t, t - state.t
        self._call()
        step = Step._make(self._summary.tolist())
        work = self.work
        work.steps += 1
        if step.iterations == step.iterations:  # else NaN
            work.iterations += int(step.iterations)
            work.rounds += max(int(step.rounds), 1)
        return step

    def found(self, t: float) -> State:
        there = (self._out[name].copy() for name in ("q_there", "v_there", "a_there", "angles_there"))
        return State(t, *there)

    def good(self, step: Step) -> bool:
        """Whether a step may be accepted, if both its ends are on one branch or a leap is meant."""
        if not self.sound(step):
            return False
        self.fastest = max(self.fastest, step.speed)
        return bool(self.steady(step, self.fastest, self._out["a_there"]))

    def stays(self, state: State, step: Step) -> bool:
        """Whether the step last attempted from a state is good and on the state's branch."""
        if not self.good(step):
            return False
        if self.short(step) or state is self.start:
            return True
        here, angles = self._out["q_there"], self._out["angles_there"]
        ends = ((state.q, here), (state.angles, angles), (state.t, float(self._t[0])))
        return bool(self.branch.same(*(np.stack(pair) for pair in ends))[0])

    def holds(self, state: State) -> bool:
        """Whether the constraints hold at an interpolated state."""
        e = self.programs.layout.equations
        phi = self.programs.evaluate(state.q, state.angles, state.t).phi
        residual = float(np.max(np.abs(phi) * e.arms(e.size), initial=0.0))
        return bool(residual <= max(INTERPOLATED * e.size, self.tolerance))

    def dependent(self, state: State) -> bool:
        """Whether equations are dependent that elsewhere are not.

        Redundant equations may take each other's place: then pivots vanish, and the rank does not fall.
        """
        e = self.programs.layout.equations
        if e.count * 6 * e.nb > DENSE:
            return True
        stored = self.programs.evaluate(state.q, state.angles, state.t).jacobian
        sizes = np.linalg.svd(self.programs.layout.by_sizes(stored), compute_uv=False)
        return bool(sizes[e.count - self.lost - 1] < 1e-3 * sizes[0])

    def distance(self, one: State, other: State) -> float:
        """The largest shift or turn between two states, shifts as parts of the bodies' sizes."""
        d = shift_between_all(one.q, other.q)
        d[:, :3] /= self.sizes[:, None]
        return float(np.max(np.abs(d), initial=0.0))


class Follower:
    """Follows the motion to one print time after another."""

    def __init__(self, stepper: Stepper, state: State) -> None:
        self.stepper, self.state, self.interval = stepper, state, stepper.interval
        self.before = state  # the state where the last step started
        self._length = self.interval
        self._corner = -np.inf  # when the last corner of a law was passed

    def to(self, t: float) -> State | None:
        """The state at a time, or None where the motion stops; `state` is then the last good one."""
        s = self.stepper
        if t < self.state.t:
            return between(self.before, self.state, t)
        step = s.attempt(self.state, t)
        if s.stays(self.state, step) and (not s.free or step.rounds <= 1):
            s.largest_pivot = max(s.largest_pivot, step.pivot)
            self.before, self.state = self.state, s.found(t)
            return self.state
        while self.state.t < t:
            if not self._advance(t):
                return None
        if self.state.t > t:  # a leap went past it
            return between(self.before, self.state, t)
        return self.state

    def _advance(self, t: float) -> bool:
        """One accepted step towards t, as long as can be."""
        s = self.stepper
        shortest = SHORTEST * self.interval
        length = min(self._length, t - self.state.t)
        while length > shortest:
            there = t if self.state.t + 1.001 * length >= t else self.state.t + length
            if self._try(there):
                self._length = min(2.0 * length, self.interval)
                return True
            s.work.refused += 1
            length *= 0.5
        self._length = self.interval
        return self._leap() or self._kink(shortest)

    def _try(self, t: float) -> bool:
        s = self.stepper
        step = s.attempt(self.state, t)
        if not s.stays(self.state, step):
            return False
        whole = s.found(t)
        if s.free and step.rounds > 1:
            better = self._halves(whole)
            if better is None:
                return False
            whole = better
        s.largest_pivot = max(s.largest_pivot, step.pivot)
        self.before, self.state = self.state, whole
        return True

    def _halves(self, whole: State) -> State | None:
        """The same step in two halves, if the free motion is then known well enough."""
        s = self.stepper
        middle_time = 0.5 * (self.state.t + whole.t)
        if not s.stays(self.state, s.attempt(self.state, middle_time)):
            return None
        middle = s.found(middle_time)
        if not s.stays(middle, s.attempt(middle, whole.t)):
            return None
        end = s.found(whole.t)
        return end if s.distance(whole, end) <= FREE_ERROR else None

    def _leap(self) -> bool:
        """Across a position where the equations are dependent, to the nearest time after it that is regular."""
        s = self.stepper
        length = 2.0 * SHORTEST * self.interval
        # How wide a singular position is does not depend on how often results are printed.
        here = s.attempt(self.state, self.state.t)
        if not s.near_singular(here):
            return False
        longest = max(0.5 * self.interval, min(LEAP / max(here.speed, 1e-300), LEAP_INTERVALS * self.interval))
        while length < longest:
            there = self.state.t + length
            step = s.attempt(self.state, there)
            if s.good(step):
                beyond = s.found(there)
                # Pivots grow with the square of the distance from the singular position.
                near, far = (np.sqrt(max(x.pivot, 0.0)) for x in (here, step))
                middle = self.state.t + length * float(near / (near + far))
                ends = self._widened(beyond, middle, step.speed)
                if not s.holds(between(*ends, middle)):
                    return False  # out of reach in between
                self.before, self.state = ends
                if s.dependent(between(*ends, middle)):
                    s.work.notes.append(f"passed a singular position at t = {middle:.5g}")
                return True
            length *= 1.5
        return False

    def _widened(self, beyond: State, middle: float, speed: float) -> tuple[State, State]:
        """Both ends of a leap moved away from the singular position, so far that rounding errors are small there."""
        s = self.stepper
        window = min(WINDOW / max(speed, 1e-300), LEAP_INTERVALS * self.interval)
        ends = [self.state, beyond]
        for k, there in enumerate((middle - window, middle + window)):
            step = s.attempt(ends[k], there)
            if s.stays(ends[k], step) and abs(there - middle) > abs(ends[k].t - middle):
                ends[k] = s.found(there)
        return ends[0], ends[1]

    def _kink(self, shortest: float) -> bool:
        """Over a corner of a law: the velocity jumps, and the position does not."""
        s = self.stepper
        there = self.state.t + shortest
        step = s.attempt(self.state, there)
        far_from_singular = step.pivot >= 1e-3 * s.largest_pivot and step.lost == s.lost
        if s.closes(step) and s.consistent(step) and far_from_singular and step.jump < 1e-4:
            self.before, self.state = self.state, s.found(there)
            if there - self._corner > 4.0 * shortest:  # else it is the same one, but for rounding
                s.work.notes.append(
                    f"the velocity jumps at t = {there:.6g}: a driver's law, a coupling or a curve has a corner there"
                )
            self._corner = there
            return True
        return False


def between(first: State, second: State, t: float) -> State:
    """The state at a time between two near ones: the quintic through position, velocity and acceleration of both."""
    h = second.t - first.t
    s = (t - first.t) / h
    (r0, a0), (r1, a1) = (state_rates(x.q.T, x.v.T, x.a.T) for x in (first, second))
    q0, q1 = first.q.T, second.q.T
    sign = np.where(np.sum(q0[3:] * q1[3:], axis=0) < 0.0, -1.0, 1.0)
    q1, r1, a1 = (np.concatenate([x[:3], sign * x[3:]]) for x in (q1, r1, a1))
    d, u0, u1, w0, w1 = q1 - q0, h * r0, h * r1, h * h * a0, h * h * a1
    c3 = 10.0 * d - 6.0 * u0 - 4.0 * u1 - 1.5 * w0 + 0.5 * w1
    c4 = -15.0 * d + 8.0 * u0 + 7.0 * u1 + 1.5 * w0 - w1
    c5 = 6.0 * d - 3.0 * (u0 + u1) - 0.5 * (w0 - w1)
    q = q0 + s * (u0 + s * (0.5 * w0 + s * (c3 + s * (c4 + s * c5))))
    rate = (u0 + s * (w0 + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)))) / h
    second_rate = (w0 + s * (6.0 * c3 + s * (12.0 * c4 + s * 20.0 * c5))) / (h * h)
    size = np.sqrt(np.sum(q[3:] ** 2, axis=0))
    e, ed, edd = q[3:] / size, rate[3:] / size, second_rate[3:] / size
    back = np.concatenate([e[:1], -e[1:]])
    omega = 2.0 * quaternion_product(ed, back)[1:]
    alpha = 2.0 * quaternion_product(edd, back)[1:]
    v = np.concatenate([rate[:3], omega]).T
    a = np.concatenate([second_rate[:3], alpha]).T
    angles = first.angles + s * (second.angles - first.angles)
    return State(t, np.ascontiguousarray(np.concatenate([q[:3], e]).T), v.copy(), a.copy(), angles)


def shift_between_all(q: Floats, to: Floats) -> Floats:
    """`shift_between` for every body."""
    return np.ascontiguousarray(np.asarray(shift_between(q.T, to.T), dtype=np.float64).T)


def print_interval(times: Floats) -> float:
    """The longest time between two time points; 1 s for a single one."""
    return float(np.max(np.diff(times), initial=0.0)) or 1.0


def times_of(start: float, end: float, interval: float) -> Floats:
    """From start in steps of interval, and the end."""
    check_points(start, end, interval)
    count = int(np.floor((end - start) / interval * (1.0 + 1e-12) + 1e-9))
    times = start + interval * np.arange(count + 1)
    if end - times[-1] > 1e-9 * interval:
        times = np.append(times, end)
    elif count:
        times[-1] = end
    return np.asarray(times, dtype=np.float64)
