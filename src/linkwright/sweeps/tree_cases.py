"""Prescribed motions of the cases of a study in the spanning tree's coordinates, by straight code with the parameters
as inputs; of each time point only what the outputs name is kept.

Cases that are not plainly regular, or that drivers do not determine, are left to `constraints/case_motions.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from linkwright.analysis.fine_motion import MotionProgram, suitable
from linkwright.base.arrays import Bools, Floats
from linkwright.constraints.assembly import assemble
from linkwright.constraints.batch_march import BatchMarch, parted
from linkwright.constraints.case_motions import CaseKinematics
from linkwright.constraints.newton import EXACT, LANES
from linkwright.dynamics.closed.rate_system import Undetermined
from linkwright.dynamics.functions import Request
from linkwright.errors import LinkwrightError
from linkwright.kernels.kernel import Kernel
from linkwright.mechanism import Mechanism
from linkwright.model.parameter_cases import Cases
from linkwright.outputs.output_functions import Measure, Reduced, all_parts
from linkwright.outputs.output_language import Output
from linkwright.outputs.output_values import Motions
from linkwright.outputs.running_reductions import RUNNING
from linkwright.spatial.algebra import Array
from linkwright.tape.block import where
from linkwright.tape.program import Program

#: Rates up to which a study's steps are straight code: a study compiles them whatever the number of its cases.
MOST = 12
#: Cases that are assembled at a time: what Newton's method keeps of so many stays in a processor's cache.
ASSEMBLED = 1024


def measures_of(outputs: Sequence[Output]) -> tuple[Measure, ...]:
    """The quantities of the state that outputs name, each once."""
    parts = (part for output in outputs for part in all_parts(output.expression))
    return tuple(dict.fromkeys(part for part in parts if isinstance(part, Measure)))


class TreeProgram:
    """The step of a mechanism with some parameters free, that measures quantities at its end."""

    def __init__(self, base: Mechanism, free: tuple[str, ...], measures: tuple[Measure, ...]) -> None:
        factory, self.measures = base.programs, measures
        wanted = [(measure.quantity, measure.order) for measure in measures]

        def recorded() -> Program:
            # weight: the recursions, which code from the cache does not need
            from linkwright.dynamics.closed.motion_point import PointRecorder

            return PointRecorder(factory, free).step_program(lambda bodies: [bodies.measured(wanted)])

        request = MotionProgram("measured step", free, repr(wanted))
        self.kernel: Kernel = base.kernels.further(request, recorded)
        self.base, self.count = base, len(measures)
        self.free = free
        self.kernel.signature  # noqa: B018  # recorded here, where an error is not a case's

    def drawn_start(self) -> Program | None:
        """The program of starts where the bodies are drawn, as `drawn_start` has it."""
        from linkwright.dynamics.closed.drawn_start import drawn_start  # weight: the recursions
        from linkwright.dynamics.closed.motion_point import PointRecorder

        return drawn_start(PointRecorder(self.base.programs, self.free))

    def march(self, parts: Sequence[Reduced]) -> Program:
        """The step with reductions of outputs in it, as `PointRecorder.march_program` has it."""
        # weight: the recursions, which code from the cache does not need
        from linkwright.dynamics.closed.motion_point import BodiesMoving, PointRecorder

        constants = dict(self.base.description.parameters)
        running = [RUNNING[part.kind] for part in parts]
        wanted = [(measure.quantity, measure.order) for measure in self.measures]

        def carry(carried: Array, bodies: BodiesMoving, t: Any, first: Any) -> Array:
            names = {**constants, **bodies.parameters, "TIME": t}
            names |= dict(zip((x.name for x in self.measures), bodies.measured(wanted), strict=True))
            numbers: list[Any] = []
            for part, reduction in zip(parts, running, strict=True):
                x = part.inner.evaluate(names)
                before = tuple(carried[len(numbers) : len(numbers) + reduction.size])
                ways = reduction.start(x, t), reduction.go_on(before, x, t)
                numbers += [where(first > 0.0, one, other) for one, other in zip(*ways, strict=True)]
            return np.array(numbers or [0.0 * t])

        width = max(sum(x.size for x in running), 1)
        return PointRecorder(self.base.programs, self.free).march_program(width, carry)

    @classmethod
    def of(cls, base: Mechanism, free: tuple[str, ...], outputs: Sequence[Output]) -> TreeProgram | None:
        """The program for outputs; None where the mechanism or an output has no such one."""
        measures, joints = measures_of(outputs), base.programs.tree.joint_positions
        if not measures or not free or not suitable(base, MOST) or base.description.initial:
            return None
        if any(x.quantity.kind == "joint" and x.quantity.of[0] not in joints for x in measures):
            return None
        try:
            base.programs.shapes(Request("velocity_projection", free=free))
            return cls(base, free, measures)
        except (LinkwrightError, Undetermined, ZeroDivisionError):
            return None


#: Quantities of the state between two steps, and steps of a motion that are computed before anything is tested.
STATE, AHEAD = ("q", "v", "a", "memory"), 8


class TreeMarch(BatchMarch):
    """Steps of cases; `there` has q, v, a, memory and the quantities of the outputs."""

    each: ClassVar[tuple[str, ...]] = ("p",)

    def __init__(self, program: TreeProgram, rows: NDArray[np.int64], q: Floats, p: Floats, t: float) -> None:
        super().__init__(len(q), t)
        self.rows = rows
        self.kernel, self.p = program.kernel, p
        self._alternating: Alternating | None = None
        n, nv = len(q), program.base.nv
        still = np.zeros((n, nv))
        self.there = {"q": q, "v": still, "a": still, "memory": np.zeros((n, 2))}
        # The first step has no length, and no rates to begin with: the second one is judged.
        self.tried(t)
        self.go_on(self.tried(t))

    def tried(self, t: float) -> Bools:
        n = len(self.rows)
        inputs = [_filled(x) for x in (*(self.there[name] for name in STATE), self.p)]
        times = [np.full((1, 1), x) for x in (t, t - self.t)]
        q, v, a, memory, good, measures = (x[:n] for x in self.kernel(*inputs[:-1], *times, inputs[-1]))
        self.there, self.t = {"q": q, "v": v, "a": a, "memory": memory, "measures": measures}, t
        return np.asarray(good[:, 0] > 0.0)

    def chose(self, chosen: Bools) -> None:
        """All that the march holds is in its arrays."""

    def through(self, times: Sequence[float], table: Floats) -> None:
        """Go on through some times, with the quantities of outputs in a table (T, cases, measures).

        All steps are taken before one is tested; cases of which one was not good go back and take them one by one.
        """
        if len(self.rows) and self.kernel.pieces(len(self.rows)) > 1:  # for threads
            self.one_by_one(times, table)
        else:
            self._by_parts(lambda group, parts: group._ahead(times, table, parts))

    def _ahead(self, times: Sequence[float], table: Floats, parts: int) -> None:
        """The same for cases that have as many parts in each interval."""
        n = len(self.rows)
        if self._alternating is None or self._alternating.p is not self.p:
            self._alternating = Alternating(self.kernel, self.there, self.p)
        before, whole = copy(self), n == table.shape[1]
        measures = table if whole else np.empty((len(times), n, table.shape[2]))
        intervals = [parted(begin, end, parts) for begin, end in pairwise([self.t, *times])]
        self.there, good = self._alternating.through(self.there, self.t, intervals, measures)
        self.t = times[-1]
        if not whole:
            table[:, self.rows] = measures
        if good.all():
            return
        others = before._some(~good)
        others.one_by_one(times, table)
        good[self._take(others)] = True
        self.go_on(good)

    def one_by_one(self, times: Sequence[float], table: Floats) -> None:
        """The same, each step tested before the next."""
        for k, t in enumerate(times):
            self.step(t)
            table[k, self.rows] = self.there["measures"]


class Alternating:
    """Steps of cases to and fro between two pieces of memory, each by one call of native code."""

    def __init__(self, kernel: Kernel, there: Mapping[str, Floats], p: Floats) -> None:
        self.p, self.n = p, len(p)
        self.times = np.zeros((2, 1))  # t and the length of the step
        self.ends = [{name: np.empty_like(_filled(x)) for name, x in there.items()} for _ in range(2)]
        rows = len(self.ends[0]["q"])
        self.good, filled = np.empty((rows, 1)), _filled(p)
        self.calls = []
        for begin, end in (self.ends, self.ends[::-1]):
            inputs = [*(begin[name] for name in STATE), *self.times, filled]
            outputs = [*(end[name] for name in STATE), self.good, end["measures"]]
            self.calls.append(kernel.bound(inputs, outputs, rows))

    def through(
        self, there: Mapping[str, Floats], t: float, intervals: Sequence[Sequence[float]], measures: Floats
    ) -> tuple[dict[str, Floats], Bools]:
        """Go from states at t through the times of intervals, with the quantities at the end of each; the last states,
        and whose steps were all good."""
        for name in STATE:
            self.ends[0][name][:] = _filled(there[name])
        all_good = np.ones_like(self.good)
        at = 0
        for k, times in enumerate(intervals):
            for ahead in times:
                self.times[0], self.times[1] = ahead, ahead - t
                self.calls[at]()
                np.minimum(all_good, self.good, out=all_good)
                t, at = ahead, 1 - at
            measures[k] = self.ends[at]["measures"][: self.n]
        end = self.ends[at]
        return {name: x[: self.n].copy() for name, x in end.items()}, all_good[: self.n, 0] > 0.0


def _filled(x: Floats) -> Floats:
    """The rows of at least a group of lanes: fewer would run by other code."""
    return x if len(x) >= LANES else np.concatenate([x, np.repeat(x[-1:], LANES - len(x), axis=0)])


class MeasuredMotions(Motions):
    """Motions of which the quantities of outputs are known (T, n, measures), once they are in the table, and nothing
    else."""

    def __init__(self, cases: Cases, time: Floats, measures: Sequence[Measure]) -> None:
        super().__init__(cases, time, {}, [""] * len(cases))
        self.table = np.empty((len(time), len(cases), len(measures)))
        self.columns = {measure: k for k, measure in enumerate(measures)}

    def measured(self, measure: Measure) -> Floats:
        return np.asarray(self.table[:, :, self.columns[measure]])

    def put_motions(self, rows: NDArray[np.int64], motions: Motions) -> None:
        """Those of some cases, which are known otherwise."""
        with np.errstate(all="ignore"):
            for measure, column in self.columns.items():
                self.table[:, rows, column] = motions.measured(measure)


def tree_motions(program: TreeProgram, kinematics: CaseKinematics) -> tuple[MeasuredMotions, Bools]:
    """The motions of cases, NaN where they did not come, and which came."""
    times, cases = kinematics.times, kinematics.cases
    n = len(cases)
    motions, came = MeasuredMotions(cases, times, program.measures), np.zeros(n, bool)
    table = motions.table
    q, rows = tree_starts(program, kinematics)
    if not len(rows):
        table[:] = np.nan
        return motions, came
    march = TreeMarch(program, rows, q, cases.values[rows], float(times[0]))
    table[0, march.rows] = march.there["measures"]
    k, ahead = 1, 1  # the first interval shows how many parts the cases need
    while k < len(times):
        march.through(times[k : k + ahead].tolist(), table[k : k + ahead])
        k, ahead = k + ahead, max(AHEAD // int(march.parts.max(initial=1)), 1)
    came[march.rows] = True
    table[:, ~came] = np.nan
    return motions, came


def tree_starts(program: TreeProgram, kinematics: CaseKinematics) -> tuple[Floats, NDArray[np.int64]]:
    """The coordinates at the first time of the cases that begin in regular positions, and which cases these are."""
    times, batch, cases = kinematics.times, kinematics.batch, kinematics.cases
    rows, assembled = np.zeros(0, np.int64), np.zeros((0, *kinematics.drawn.shape[1:]))
    plain = np.flatnonzero(kinematics.plain)
    for some in (plain[k : k + ASSEMBLED] for k in range(0, len(plain), ASSEMBLED)):
        assembly = assemble(batch[some], kinematics.drawn[some], float(times[0]), kinematics.system.assembly_tolerance)
        states = assembly.states
        # Whether the equations determine the motion, the steps judge: by their regularity.
        exact = assembly.closed & (states.miss <= EXACT * batch.size[some])
        rows, assembled = np.append(rows, some[exact]), np.concatenate([assembled, states.q[exact]])
    if not len(rows):
        return np.zeros((0, program.base.nq)), rows
    return _coordinates(program.base, cases[rows], times[:1], assembled), rows


def _coordinates(base: Mechanism, cases: Cases, time: Floats, states: Floats) -> Floats:
    """(n, nq): the tree's coordinates where the bodies of cases are at states (n, nb, 7), with their turns."""
    still = np.zeros((1, len(cases), base.nb, 6))
    motions = Motions.of_bodies(cases, time, states[None], still, still, [""] * len(cases))
    tree = base.programs.tree
    x = tree.coordinates
    q = np.zeros((len(cases), base.nq))
    for i, j in enumerate(tree.topology.joint.tolist()):
        if not x.follows[i]:
            coordinates = motions.joint_at_start(j)
            q[:, int(x.q_at[i]) : int(x.q_at[i]) + len(coordinates)] = coordinates.T
    return q
