"""Prescribed motions of many time points in the spanning tree's coordinates: a few steps in series, and from these all
other points side by side.

Every point is a step of `dynamics/closed/motion_point.py` from the point in the series before it. Where one of them is
not plainly good there is no such motion, and `constraints/kinematics.py` takes over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np

from linkwright.base.arguments import empty
from linkwright.base.arrays import Floats
from linkwright.base.locks import Lock
from linkwright.constraints.kinematics import Motion
from linkwright.constraints.newton import EXACT
from linkwright.dynamics.closed.rate_system import Undetermined
from linkwright.dynamics.requests import UNROLL
from linkwright.kernels.kernel import Kernel
from linkwright.kernels.variant import Port
from linkwright.mechanism import Mechanism
from linkwright.model.body_motion import QUANTITIES, steady_signs
from linkwright.model.description import sealed
from linkwright.model.requested_analysis import System
from linkwright.results.solution import Solution, States
from linkwright.results.status import Counters, Status
from linkwright.spatial.rotation import euler_parameters
from linkwright.tape.program import Program

#: Time points from which this is tried, and for each squared rate of the tree: fewer are not worth their code.
FEWEST, EACH = 10_000, 100
#: Points of the first series, how many times as many the next one has, and the fewest points for one of a series.
SERIES, FINER, STRIDE = 128, 4, 4
#: Rates up to which steps are laid out as straight code.
MOST = 24
_STARTS = 8  # of a mechanism's motions that are kept


@dataclass(frozen=True)
class MotionProgram:
    """Which program of `motion_point`, with which free parameters and which quantities besides the motion."""

    name: str
    free: tuple[str, ...] = ()
    measures: str = ""


@dataclass(frozen=True, eq=False)
class MotionStart:
    """Where a motion begins: coordinates (nq,), Euler parameters of the bodies (nb, 4), and what is to be noted."""

    q: Floats
    orientation: Floats
    notes: tuple[str, ...]
    iterations: int


def suitable(mech: Mechanism, most: int = MOST) -> bool:
    """Whether steps of a mechanism with at most so many rates may be straight code.

    An angle between frames that no joint connects may tilt, which steps do not watch.
    """
    programs = mech.programs
    fits = programs.closed and programs.tree.n <= UNROLL and 0 < mech.nv <= most
    return fits and not any(driver.kind == "angle" for driver in mech.description.drivers)


def worthwhile(mech: Mechanism, points: Floats) -> bool:
    """Whether a motion at these times may be one of this module."""
    if points.ndim != 1 or len(points) < max(FEWEST, EACH * mech.nv**2) or not np.isfinite(points).all():
        return False
    return suitable(mech) and bool((np.diff(points) > 0.0).all())


_lock = Lock()
_starts: WeakKeyDictionary[Mechanism, dict[tuple[float, System], MotionStart]] = WeakKeyDictionary()


def start_of(
    mech: Mechanism, t: float, system: System, begin: Callable[[], tuple[Motion, Solution]]
) -> MotionStart | None:
    """The start of a motion at a time; None where it is not exact, or where code with parameters meets a freedom.

    `begin` gives the motion and its solution at that time alone.
    """
    with _lock:
        start = _starts.setdefault(mech, {}).get((t, system))
    if start is None:
        motion, solution = begin()
        undriven = motion.free and mech.programs.parametrised is not None
        if motion.stop is not None or undriven or motion.miss > EXACT * mech.description.length_scale:
            return None
        start = MotionStart(solution.q[0], solution.arrays["orientation"][0], motion.notes, motion.newton_iterations)
        with _lock:
            known = _starts[mech]
            known[t, system] = start
            if len(known) > _STARTS:
                known.pop(next(iter(known)))
    return start


def fine_motion(mech: Mechanism, points: Floats, start: MotionStart) -> Solution | None:
    """The motion at all points, or None where a step is not good."""
    kernel = _kernel(mech, "motion step")
    count = SERIES
    while STRIDE * count <= len(points):
        stride = -(-(len(points) - 1) // count)
        try:
            rows = _rows(mech, kernel, points, start, stride)
        except (Undetermined, ZeroDivisionError):  # a freedom besides redundant equations: nothing can be recorded
            return None
        if rows is not None:
            return _solution(mech, points, start, rows, -(-(len(points) - 1) // stride))
        count *= FINER
    return None


def _rows(
    mech: Mechanism, kernel: Kernel, points: Floats, start: MotionStart, stride: int
) -> tuple[Floats, ...] | None:
    """q, v, a, and positions, velocities and accelerations of the bodies at all points; None if a step is not good."""
    series = np.append(points[:-1:stride], points[-1])
    n = len(series)
    # Row k of the series is where step k begins and step k − 1 ends; the first step has no length.
    states = [np.zeros((n + 1, size)) for size in (mech.nq, mech.nv, mech.nv, 2)]
    states[0][0] = start.q
    good, bodies = np.zeros((n, 1)), [np.empty((n, mech.nb, 3)) for _ in range(3)]
    t, h = series[:, None].copy(), np.diff(series, prepend=series[0])[:, None]
    march = kernel.marched([x[:-1] for x in states] + [t, h], [x[1:] for x in states] + [good, *bodies], n)
    with np.errstate(all="ignore"):
        march(0, 1)
        for x in states[1:]:
            x[0] = x[1]
        march(0, n)
        if not good.all():
            return None
        begin = np.maximum(np.arange(-1, len(points) - 1), 0) // stride
        before = [x[1:].take(begin, axis=0) for x in states]
        ports = kernel.signature.outputs
        tests = ports[3:5]
        memory, motion = _together([port for port in ports if port not in tests], len(points))
        _, tested = _together(tests, len(points))
        q, v, a, *origins = motion
        kernel(*before, points[:, None], (points - series[begin])[:, None], out=[q, v, a, *tested, *origins])
    if not tested[1].all():
        return None
    memory.setflags(write=False)
    return tuple(motion)


def _together(ports: Sequence[Port], n: int) -> tuple[Floats, list[Floats]]:
    """A piece of memory, and an array (n, ...) in it for each port: the system hands out one large piece faster than
    many."""
    at = np.cumsum([0, *(n * port.size for port in ports)]).tolist()
    memory = empty(f"a motion of {n:,} points", (at[-1],), "take fewer points, or a smaller mechanism")
    return memory, [memory[i:j].reshape(n, *port.shape) for port, (i, j) in zip(ports, pairwise(at), strict=True)]


def _solution(mech: Mechanism, points: Floats, start: MotionStart, rows: tuple[Floats, ...], series: int) -> Solution:
    q, v, a, *origins = (sealed(x) for x in rows)
    n = len(points)
    steps = n + series
    counters = Counters(start.iterations + 2 * steps, 3 * steps, 4 * steps, steps, n)
    status = Status(True, notes=start.notes, time=float(points[-1]))
    states = States(q, v, a)
    known = dict(zip(("position", "velocity", "acceleration"), origins, strict=True))
    arrays, iterations = BodyMotions(mech, states, known, start), sealed(np.full(n, 2, np.int64))
    return Solution(mech.description, sealed(points.copy()), arrays, iterations, status, counters, states)


class BodyMotions(Mapping[str, Floats]):
    """The quantities of all bodies by name; those of turning are computed when one is first asked for."""

    def __init__(self, mech: Mechanism, states: States, known: dict[str, Floats], start: MotionStart) -> None:
        self._mech, self._states, self._known, self._start = mech, states, known, start

    def __getitem__(self, name: str) -> Floats:
        if name not in QUANTITIES:
            raise KeyError(name)
        if name not in self._known:
            x = self._states
            rotation, omega, alpha = _kernel(self._mech, "turning bodies")(x.q, x.v, x.a)
            e = np.moveaxis(euler_parameters(np.moveaxis(rotation, (-2, -1), (0, 1))), 0, -1)
            e[0] *= np.where(np.sum(e[0] * self._start.orientation, axis=-1, keepdims=True) < 0.0, -1.0, 1.0)
            steady_signs(e)
            parts = (np.ascontiguousarray(e), omega, alpha)
            names = ("orientation", "angular_velocity", "angular_acceleration")
            self._known |= {name: sealed(part) for name, part in zip(names, parts, strict=True)}
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(QUANTITIES)

    def __len__(self) -> int:
        return len(QUANTITIES)


def _kernel(mech: Mechanism, name: Literal["motion step", "turning bodies"]) -> Kernel:
    """A program of `motion_point` about a mechanism: with its source's code where that serves it."""
    parametrised = mech.programs.parametrised
    factory = mech.programs if parametrised is None else parametrised.source
    free = () if parametrised is None else parametrised.names

    def recorded() -> Program:
        # weight: the recursions, which code from the cache does not need
        from linkwright.dynamics.closed.motion_point import BodiesMoving, PointRecorder

        recorder = PointRecorder(factory, free)
        return recorder.step_program(BodiesMoving.origins) if name == "motion step" else recorder.turn_program()

    return mech.kernels.further(MotionProgram(name, free), recorded, parametrised=parametrised)
