"""The control step as programs, and as one C99 file for a controller without Python.

theta (6), rate (6), previous (26), reference (19), gains (13)  →  tau (6), state (26), report (22)

`previous` is the `state` that the step before left: pose (7), twist (6), commanded acceleration (6), torques (6), and
1 if the pose was found one period ago: 0 in the initial state, and after a step that was lost or jumped, where the
change of the pose is no twist. Then, without rates, the twist is that of `previous`.
`reference` is x_d (7), ẋ_d (6), ẍ_d (6); twists and accelerations are of the plate's origin, then angular, in ground's
axes. `gains` are K_P (6), K_V (6) and the period (s), by which the previous pose is moved ahead before the search.
`report` is a sum of `Flag`s, corrections taken, residual of the rods (m), evenness of S (1/condition, about), then for
the six legs the reach left (m), that of the reference's pose (m), and the cosine of the wrist's middle angle.

A step with a flag gives the torques of the step before; if the pose was not found, it keeps pose and twist too. So
nothing that comes out is NaN as long as `previous` is not.

The plate hangs on no leg: what it needs is a wrench on itself, which Wᵀ Jᵀ = 1 hands through any leg unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Any, Literal, NamedTuple

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.control.parallel import legs
from linkwright.control.parallel.forward_kinematics import (
    ROUNDS,
    TOLERANCE,
    Search,
    add_search,
    dot,
    evenness,
    factored,
    moved,
    solved,
    solved_transposed,
    unpacked,
)
from linkwright.control.parallel.hexapod import LEGS, Hexapod, LinkInertia
from linkwright.control.parallel.legs import minus, plus
from linkwright.kernels.c.spelling import function_name
from linkwright.spatial.rotation import euler_parameters_matrix, quaternion_product
from linkwright.tape.block import absolute, arctan2, less, less_equal, maximum, minimum, where
from linkwright.tape.build import ProgramBuilder, Ref, trace
from linkwright.tape.program import ITEM, Each, Program

STATE, REFERENCE, GAINS, REPORT = 26, 19, 13, 22
POSE, TWIST, ACCELERATION, TORQUES = slice(0, 7), slice(7, 13), slice(13, 19), slice(19, 25)
KNOWN = 25  # of a state: whether its pose was found one period ago

EVEN = 1e-6  # of S, below which it counts as singular
CLEAR = 1e-3  # of a leg's sines and cosines, below which it does
FAR = 0.1  # m (and at the plate's radius): a plate that is farther from where it was predicted has jumped
UNIT = 2e-6  # by which the square of Euler parameters may miss 1
HUGE = 1e18  # squares beyond it are no motions and no torques of a machine

_MOTION = 20  # pose, twist, acceleration, and whether the pose was found
_COMMON = 36  # what all legs need to know of the plate
_OUT = 9  # what a leg gives; with its row of S, 7 more
_ROW = 7

Order = Literal["serial", "lanes"]


class Flag(IntFlag):
    """What was wrong with a step."""

    LOST = 1  # the forward kinematics found no pose
    JUMPED = 2  # it found one too far from the last, or a leg's crank on the other side of its rod
    SINGULAR = 4  # the motors lose a direction
    UNREACHABLE = 8  # the reference's pose is out of a leg's reach
    WRIST = 16  # a wrist's middle joint is at 90°, or a crank and its rod are in line
    NOT_FINITE = 32  # rates, reference or torques are no numbers, or huge
    NO_TURN = 64  # the reference's Euler parameters are not of length 1


@dataclass(frozen=True)
class Parts:
    """What the programs of one machine are made of."""

    geometry: Hexapod
    payload: LinkInertia | None = None
    measured: bool = True  # the twist from the driven joints' rates; else from the change of the pose

    # -- blocks ------------------------------------------------------------------------------------------
    def predicted(self, previous: Any, period: Any) -> tuple[list[Any], list[Any]]:
        """Pose and twist one period after `previous`."""
        v, a = previous[TWIST], previous[ACCELERATION]
        change = [period * x for x in a]
        mean = [x + 0.5 * y for x, y in zip(v, change, strict=True)]
        pose = moved(previous[POSE], [period * x for x in mean[:3]], [period * x for x in mean[3:]])
        return pose, plus(v, change)

    def search_start(self, previous: Any, gains: Any) -> Any:
        return np.array(self.predicted(previous, gains[12])[0])

    def plate_state(
        self, rate: Any, previous: Any, gains: Any, start: Any, searched: Sequence[Any]
    ) -> tuple[list[Any], list[Any], Any, Any]:
        """Pose, twist, flags and whether the pose was found, from what the search found."""
        pose, residual, lower, ortho, driven = searched
        size = self.geometry.plate_radius
        good = less_equal(residual, TOLERANCE)
        shift = minus(pose[:3], start[:3])
        spin = [size * x for x in _turned(pose[3:], start[3:])]
        near = less_equal(dot(shift, shift) + dot(spin, spin), FAR * FAR)
        least = driven[0]
        for x in driven[1:]:
            least = minimum(least, x)
        near = near * less(0.0, -legs.KNEE * least)
        if self.measured:
            right = [b * x for b, x in zip(driven, rate, strict=True)]
            x = solved(unpacked(lower), ortho, right)
            twist = [*x[:3], *(y * (1.0 / size) for y in x[3:])]
        else:
            each = 1.0 / gains[12]
            before = previous[POSE]
            change = [*minus(pose[:3], before[:3]), *_turned(pose[3:], before[3:])]
            twist = [where(previous[KNOWN], each * x, y) for x, y in zip(change, previous[TWIST], strict=True)]
        finite = less(dot(twist, twist), HUGE)
        flag = _flag(good, Flag.LOST) + good * _flag(near, Flag.JUMPED) + good * _flag(finite, Flag.NOT_FINITE)
        use = good * near
        pose = [where(use, x, y) for x, y in zip(pose, previous[POSE], strict=True)]
        twist = [where(use * finite, x, y) for x, y in zip(twist, previous[TWIST], strict=True)]
        return pose, twist, flag, use

    def resolved(self, pose: Any, twist: Any, reference: Any, gains: Any) -> list[Any]:
        """ẍ = ẍ_d + K_V (ẋ_d − ẋ) + K_P (x_d − x); the turn that is left by its axis and angle."""
        target, speed, rise = reference[:7], reference[7:13], reference[13:]
        half = [0.5 * x for x in _turned(target[3:], pose[3:])]
        square = dot(half, half)
        sine = np.sqrt(square)
        angle = 2.0 * arctan2(sine, np.sqrt(maximum(1.0 - square, 0.0)))
        scale = where(less(square, 1e-16), 2.0, angle / sine)
        miss = [*minus(target[:3], pose[:3]), *(scale * x for x in half)]
        return [
            a + kv * (v - x) + kp * e
            for a, kv, v, x, kp, e in zip(rise, gains[6:12], speed, twist, gains[:6], miss, strict=True)
        ]

    def plate_wrench(self, turn: Any, twist: Any, rise: Any) -> list[Any]:
        """Force and moment about the plate's origin, in ground's axes, that move plate and payload."""
        back = np.array(turn).T
        w, dw = ([dot(r, u) for r in back] for u in (twist[3:], rise[3:]))
        a = plus(rise[:3], [0.0, 0.0, self.geometry.gravity])
        a = [dot(r, a) for r in back]
        f, n = legs.link_wrench(self.geometry.plate_inertia, w, dw, a)
        if self.payload is not None:
            more, turning = legs.link_wrench(self.payload, w, dw, a)
            f, n = plus(f, more), plus(n, turning)
        return [dot(r, u) for u in (f, n) for r in turn]

    def common(self, pose: Any, twist: Any, rise: Any, reference: Any) -> tuple[Any, Any]:
        """The numbers that all legs take, and the wrench that moves the plate."""
        turn, wanted = euler_parameters_matrix(pose[3:]), euler_parameters_matrix(reference[3:7])
        shared = [*pose[:3], *turn.ravel(), *twist, *rise, *reference[:3], *wanted.ravel()]
        return np.array(shared), np.array(self.plate_wrench(turn, twist, rise))

    def leg(self, *numbers: Any, rows: bool = False) -> list[Any]:
        """One leg: its constants and the common numbers, to its share of τ_G, its margins (and its row of S)."""
        g, leg, common = self.geometry, legs.leg_of(numbers[:-1]), numbers[-1]
        place, turn = common[:3], common[3:12].reshape(3, 3)
        v, w, a, dw = (common[k : k + 3] for k in range(12, 24, 3))
        at, p = legs.posture(g, leg, place, turn)
        rates = legs.joint_rates(g, leg, at, v, w)
        rise = legs.joint_accelerations(g, leg, at, rates, w, a, dw)
        force, moment = legs.share(g, leg, at, legs.newton_euler(g, at, rates, rise))
        _, wanted = legs.wrist_point(leg, common[24:27], common[27:36].reshape(3, 3))
        shares = [*force, *moment, legs.reach_margin(g, p), legs.reach_margin(g, wanted), at.c5]
        if rows:
            direction, driven = legs.row(g, leg, at)
            shares += [*direction, driven]
        return shares

    def ending(self, previous: Any, motion: Any, plate: Any, shares: Any, flag: Any, factors: Any) -> tuple[Any, ...]:
        """Torques, state and report (less corrections and residual) from the legs' shares."""
        lower, ortho, driven = factors
        size = self.geometry.plate_radius
        total = [dot([1.0] * LEGS, shares[k]) + plate[k] for k in range(6)]
        total = [*total[:3], *(x * (1.0 / size) for x in total[3:])]
        tau = [b * x for b, x in zip(driven, solved_transposed(lower, ortho, total), strict=True)]
        even = evenness(lower)
        wanted, clear = shares[7][0], minimum(shares[8][0], -legs.KNEE / self.geometry.crank * driven[0])
        for k in range(1, LEGS):
            wanted = minimum(wanted, shares[7][k])
            clear = minimum(clear, minimum(shares[8][k], -legs.KNEE / self.geometry.crank * driven[k]))
        finite = less(dot(tau, tau), HUGE)
        flag = flag + less_equal(even, EVEN) * float(Flag.SINGULAR) + _flag(less_equal(0.0, wanted), Flag.UNREACHABLE)
        # Torques that are not finite are flagged only where no other flag is the reason.
        clean = less_equal(flag, 0.0)
        clear = less(CLEAR, clear)
        flag = flag + clean * _flag(clear, Flag.WRIST) + clean * clear * _flag(finite, Flag.NOT_FINITE)
        use = less_equal(flag, 0.0)
        tau = [where(use, x, y) for x, y in zip(tau, previous[TORQUES], strict=True)]
        rise = [where(use, x, 0.0) for x in motion[ACCELERATION]]
        state = np.array([*motion[:13], *rise, *tau, motion[19]])
        margins = [_finite(x) for k in (6, 7, 8) for x in shares[k]]
        return np.array(tau), state, flag, _finite(even), margins

    # -- programs ----------------------------------------------------------------------------------------
    def whole(self, order: Order = "serial") -> Program:
        """The whole step."""
        b = ProgramBuilder("control_step")
        inputs = _inputs(b)
        middle = self._add_middle(b, inputs)
        shares = b.temporary("shares", (_OUT, LEGS))
        self._add_legs(b, middle.common, shares, order)
        self._add_end(b, inputs["previous"], middle, [shares])
        return b.build(single=False)

    def before(self) -> Program:
        """All that comes before the legs, as its own program: the inputs to `Middle`, whose parts are its outputs."""
        b = ProgramBuilder("before_the_legs")
        for ref in self._add_middle(b, _inputs(b)):
            name = b.buffers[ref.operand.buffer].name
            b.make_output(ref, name)
        return b.build(single=False)

    def some_legs(self, first: int = 0, count: int = LEGS, order: Order = "serial") -> Program:
        """Some legs as a program of their own: common (36) → shares (9, count)."""
        b = ProgramBuilder(f"legs_{first + 1}_to_{first + count}")
        common, shares = b.input("common", (_COMMON,)), b.output("shares", (_OUT, count))
        self._add_legs(b, common, shares, order, first=first)
        return b.build(single=True)

    def after(self, counts: Sequence[int]) -> Program:
        """All that comes after the legs: previous, `Middle`, shares of so many legs each, to the outputs."""
        b = ProgramBuilder("after_the_legs")
        previous = b.input("previous", (STATE,))
        middle = Middle(*(b.input(name, shape) for name, shape in Middle.shapes().items()))
        shares = [b.input(f"shares {k}", (_OUT, count)) for k, count in enumerate(counts)]
        self._add_end(b, previous, middle, shares)
        return b.build(single=False)

    def torques_ahead(self, order: Order = "serial") -> Program:
        """(previous, reference, gains) → (tau, command (12), report): at the pose predicted from the sample before.

        The command is the acceleration and the torques, as in `state`.
        """
        b = ProgramBuilder("torques_ahead")
        previous, reference = b.input("previous", (STATE,)), b.input("reference", (REFERENCE,))
        gains = b.input("gains", (GAINS,))
        tau, command, report = b.output("tau", (LEGS,)), b.output("command", (12,)), b.output("report", (REPORT,))
        common, plate = b.temporary("common", (_COMMON,)), b.temporary("plate", (6,))
        motion, flag = b.temporary("motion", (_MOTION,)), b.temporary("flag", ())
        shares = b.temporary("shares", (_OUT + _ROW, LEGS))
        size = self.geometry.plate_radius

        def middle(previous: Any, reference: Any, gains: Any) -> tuple[Any, ...]:
            pose, twist = self.predicted(previous, gains[12])
            rise = self.resolved(pose, twist, reference, gains)
            motion = np.array([*pose, *twist, *rise, 1.0])
            return *self.common(pose, twist, rise, reference), motion, _no_turn(reference)

        def end(previous: Any, motion: Any, plate: Any, flag: Any, shares: Any) -> tuple[Any, ...]:
            rods, driven = shares[_OUT : _OUT + 6], shares[_OUT + 6]
            rows = [[*rods[:3, k], *(x * (1.0 / size) for x in rods[3:, k])] for k in range(LEGS)]
            factors = (*factored(rows), driven)
            tau, state, flag, even, margins = self.ending(previous, motion, plate, shares, flag, factors)
            return tau, state[13:25], np.array([flag, 0.0, 0.0, even, *margins])

        b.call(middle, [previous, reference, gains], [common, plate, motion, flag])
        self._add_legs(b, common, shares, order)
        b.call(end, [previous, motion, plate, flag, shares], [tau, command, report])
        return b.build(single=False)

    def plate_found(self) -> Program:
        """(theta, rate, previous, gains) → (plate (13), report (3)): pose and twist; flag, corrections, residual."""
        b = ProgramBuilder("plate_found")
        theta, rate, previous = b.input("theta", (LEGS,)), b.input("rate", (LEGS,)), b.input("previous", (STATE,))
        gains = b.input("gains", (GAINS,))
        plate, report = b.output("plate", (13,)), b.output("report", (3,))
        start, search = self._add_search(b, theta, previous, gains)

        def end(rate: Any, previous: Any, gains: Any, start: Any, rounds: Any, *searched: Any) -> tuple[Any, Any]:
            pose, twist, flag, _ = self.plate_state(rate, previous, gains, start, searched)
            return np.array([*pose, *twist]), np.array([flag, rounds, _finite(searched[1])])

        b.call(end, [rate, previous, gains, start, search.rounds, *_results(search)], [plate, report])
        return b.build(single=False)

    # -- their parts -------------------------------------------------------------------------------------
    def _add_search(self, b: ProgramBuilder, theta: Ref, previous: Ref, gains: Ref) -> tuple[Ref, Search]:
        start = b.temporary("start", (7,))
        b.call(self.search_start, [previous, gains], [start])
        return start, add_search(b, self.geometry, theta, start)

    def _add_middle(self, b: ProgramBuilder, inputs: dict[str, Ref]) -> Middle:
        """Forward kinematics, and what the legs need to know."""
        start, search = self._add_search(b, inputs["theta"], inputs["previous"], inputs["gains"])
        common, plate = b.temporary("common", (_COMMON,)), b.temporary("plate", (6,))
        motion, flag = b.temporary("motion", (_MOTION,)), b.temporary("flag", ())

        def middle(rate: Any, previous: Any, reference: Any, gains: Any, start: Any, *searched: Any) -> tuple[Any, ...]:
            pose, twist, flag, known = self.plate_state(rate, previous, gains, start, searched)
            rise = self.resolved(pose, twist, reference, gains)
            motion = np.array([*pose, *twist, *rise, known])
            return *self.common(pose, twist, rise, reference), motion, flag + _no_turn(reference)

        known = [inputs[name] for name in ("rate", "previous", "reference", "gains")]
        b.call(middle, [*known, start, *_results(search)], [common, plate, motion, flag])
        return Middle(
            common, plate, motion, flag, search.lower, search.ortho, search.driven, search.rounds, search.residual
        )

    def _add_legs(self, b: ProgramBuilder, common: Ref, shares: Ref, order: Order, *, first: int = 0) -> None:
        """The map over the legs from `first` on. Its results lie by kind, then by leg: as lanes hold them."""
        kinds, count = shares.shape
        table = b.data("legs", legs.leg_table(self.geometry)[:, first : first + count])

        def neighbours(ref: Ref, number: int) -> list[Ref]:
            return [ref.part(k * count, ()).at((1, ITEM)) for k in range(number)]

        inputs, outputs = [*neighbours(table, legs.COLUMNS), common], neighbours(shares, kinds)

        def leg(*numbers: Any) -> Any:
            return np.array(self.leg(*numbers, rows=kinds > _OUT))

        block, _, _ = trace(leg, [ref.shape for ref in inputs])
        case = b.case(block, inputs, outputs)
        lanes = order == "lanes"
        b.add(Each(count, (case,), "outward" if lanes else "map", None, b.column([0, count]) if lanes else None))

    def _add_end(self, b: ProgramBuilder, previous: Ref, middle: Middle, shares: Sequence[Ref]) -> None:
        """The torque transformation, and the outputs."""
        outputs = [b.output("tau", (LEGS,)), b.output("state", (STATE,)), b.output("report", (REPORT,))]

        def end(previous: Any, plate: Any, motion: Any, flag: Any, *others: Any) -> tuple[Any, ...]:
            lower, ortho, driven, rounds, residual, *shares = others
            every = np.concatenate(shares, axis=1)
            factors = (unpacked(lower), ortho, driven)
            tau, state, flag, even, margins = self.ending(previous, motion, plate, every, flag, factors)
            return tau, state, np.array([flag, rounds, _finite(residual), even, *margins])

        b.call(end, [previous, *middle[1:], *shares], outputs)


class Middle(NamedTuple):
    """What is known before the legs begin: the numbers that all legs take, the plate's wrench and motion, factors."""

    common: Ref
    plate: Ref
    motion: Ref
    flag: Ref
    lower: Ref
    ortho: Ref
    driven: Ref
    rounds: Ref
    residual: Ref

    @staticmethod
    def shapes() -> dict[str, tuple[int, ...]]:
        """The parts' shapes, in their order."""
        sizes = ((_COMMON,), (6,), (_MOTION,), (), (LEGS * (LEGS + 1) // 2,), (LEGS, LEGS), (LEGS,), (), ())
        return dict(zip(Middle._fields, sizes, strict=True))


def _inputs(b: ProgramBuilder) -> dict[str, Ref]:
    sizes = {"theta": LEGS, "rate": LEGS, "previous": STATE, "reference": REFERENCE, "gains": GAINS}
    return {name: b.input(name, (size,)) for name, size in sizes.items()}


def _results(search: Search) -> list[Ref]:
    return [search.pose, search.residual, search.lower, search.ortho, search.driven]


def _flag(good: Any, flag: Flag) -> Any:
    return (1.0 - good) * float(flag)


def _no_turn(reference: Any) -> Any:
    """The flag of a reference without a turn; those of numbers that are none come from elsewhere too."""
    e = reference[3:7]
    return _flag(less_equal(absolute(dot(e, e) - 1.0), UNIT), Flag.NO_TURN)


def _finite(x: Any) -> Any:
    """x, or −1 where it is no number: a margin that is none."""
    return where(less(x * x, HUGE), x, -1.0)


def _turned(e: Any, before: Any) -> list[Any]:
    """The turn (rad, in ground's axes) from one orientation to another nearby: twice the sine of half its angle."""
    back = np.array([before[0], *(-x for x in before[1:])])
    turn = quaternion_product(np.array(list(e)), back)
    side = where(less(turn[0], 0.0), -2.0, 2.0)
    return [side * x for x in turn[1:]]


def c_file(program: Program, name: str, geometry: Hexapod, gains: Floats) -> str:
    """The program's text, and around it the step that keeps its own state and memory."""
    counts = sorted(program.count().items(), key=lambda entry: -entry[1])
    most = ", ".join(f"{number} {operation}" for operation, number in counts)
    total = sum(program.count().values())
    worst = f" * At most {total} operations per step, with all {ROUNDS} corrections: {most}.\n */"
    name = function_name(name)
    text = program.to_c(name=name).replace(" */", worst, 1)
    home = ", ".join(repr(float(x)) for x in geometry.home)
    numbers = ", ".join(repr(float(x)) for x in gains)
    return f"""{text}
/* The step with fixed memory of its own: {name}_start once, at rest, then {name}_next every period.
 *
 * theta, rate: the motors' angles (rad) and rates (rad/s). reference: x, y, z (m) and Euler parameters of the plate,
 * its velocity and angular velocity, its acceleration and angular acceleration, in ground's axes. tau: torques (N m).
 * report: flags, corrections, residual (m), evenness of S, then of six legs the reach left (m), that of the reference
 * (m), the cosine of the wrist's middle angle. {name}_next returns the flags:
 * 1 no pose found, 2 jumped, 4 S singular, 8 reference out of reach, 16 a leg singular, 32 not finite,
 * 64 the reference's Euler parameters are not of length 1.
 * With a flag, tau holds the torques of the step before. For one thread. */
static const double {name}_home[7] = {{{home}}};
static const double {name}_gains[13] = {{{numbers}}};
static double {name}_state[{STATE}];
static double {name}_room[{name}_WORK];

void {name}_start(const double *pose)
{{
    for (int k = 0; k < {STATE}; ++k)
        {name}_state[k] = k < 7 ? (pose ? pose[k] : {name}_home[k]) : 0.0;
}}

int {name}_next(const double *theta, const double *rate, const double *reference, double *tau, double *report)
{{
    double state[{STATE}];
    {name}(theta, rate, {name}_state, reference, {name}_gains, tau, state, report, {name}_room);
    for (int k = 0; k < {STATE}; ++k)
        {name}_state[k] = state[k];
    return (int)report[0];
}}
"""
