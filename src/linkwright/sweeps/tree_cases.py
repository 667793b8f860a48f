"""Prescribed motions of the cases of a study in the spanning tree's coordinates, by straight code with the parameters
as inputs; of each time point only what the outputs name is kept.

Cases that are not plainly regular, or that drivers do not determine, are left to `constraints/case_motions.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from linkwright.analysis.fine_motion import MotionProgram, suitable
from linkwright.base.arrays import Bools, Floats
from linkwright.constraints.assembly import assemble
from linkwright.constraints.batch_march import BatchMarch
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


class TreeMarch(BatchMarch):
    """Steps of cases; `there` has q, v, a, memory and the quantities of the outputs."""

    each: ClassVar[tuple[str, ...]] = ("p",)

    def __init__(self, program: TreeProgram, q: Floats, p: Floats, t: float) -> None:
        super().__init__(len(q), t)
        self.kernel, self.p = program.kernel, p
        n, nv = len(q), program.base.nv
        still = np.zeros((n, nv))
        self.there = {"q": q, "v": still, "a": still, "memory": np.zeros((n, 2))}
        # The first step has no length, and no rates to begin with: the second one is judged.
        self.tried(t)
        self.go_on(self.tried(t))

    def tried(self, t: float) -> Bools:
        n = len(self.rows)
        inputs = [self.there[name] for name in ("q", "v", "a", "memory")]
        inputs += [np.full((n, 1), t), np.full((n, 1), t - self.t), self.p]
        if n < LANES:  # fewer rows would run by other code
            inputs = [np.concatenate([x, np.repeat(x[-1:], LANES - n, axis=0)]) for x in inputs]
        q, v, a, memory, good, measures = (x[:n] for x in self.kernel(*inputs))
        self.there, self.t = {"q": q, "v": v, "a": a, "memory": memory, "measures": measures}, t
        return np.asarray(good[:, 0] > 0.0)

    def chose(self, chosen: Bools) -> None:
        """All that the march holds is in its arrays."""


class MeasuredMotions(Motions):
    """Motions of which the quantities of outputs are known (T, n, measures), and nothing else."""

    def __init__(self, cases: Cases, time: Floats, measures: Sequence[Measure]) -> None:
        super().__init__(cases, time, {}, [""] * len(cases))
        self.table = np.full((len(time), len(cases), len(measures)), np.nan)
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
        return motions, came
    march = TreeMarch(program, q, cases.values[rows], float(times[0]))
    for k, t in enumerate(times.tolist()):
        if k:
            march.step(t)
        if not len(march.rows):
            break
        if len(march.rows) == n:
            table[k] = march.there["measures"]
        else:
            table[k, rows[march.rows]] = march.there["measures"]
    came[rows[march.rows]] = True
    table[:, ~came] = np.nan
    return motions, came


def tree_starts(program: TreeProgram, kinematics: CaseKinematics) -> tuple[Floats, NDArray[np.int64]]:
    """The coordinates at the first time of the cases that begin in regular positions, and which cases these are."""
    times, batch, cases = kinematics.times, kinematics.batch, kinematics.cases
    rows = np.flatnonzero(kinematics.plain)
    if not len(rows):
        return np.zeros((0, program.base.nq)), rows
    assembly = assemble(batch[rows], kinematics.drawn[rows], float(times[0]), kinematics.system.assembly_tolerance)
    states = assembly.states
    # Whether the equations determine the motion, the steps judge: by their regularity.
    exact = assembly.closed & (states.miss <= EXACT * batch.size[rows])
    rows = rows[exact]
    if not len(rows):
        return np.zeros((0, program.base.nq)), rows
    return _coordinates(program.base, cases[rows], times[:1], states.q[exact]), rows


def _coordinates(base: Mechanism, cases: Cases, time: Floats, states: Floats) -> Floats:
    """(n, nq): the tree's coordinates where the bodies of cases are at states (n, nb, 7), with their turns."""
    still = np.zeros((1, len(cases), base.nb, 6))
    motions = Motions.of_bodies(cases, time, states[None], still, still, [""] * len(cases))
    tree = base.programs.tree
    x = tree.coordinates
    q = np.zeros((len(cases), base.nq))
    for i, j in enumerate(tree.topology.joint.tolist()):
        if not x.follows[i]:
            coordinates = motions.joint(j)[0][:, 0]
            q[:, int(x.q_at[i]) : int(x.q_at[i]) + len(coordinates)] = coordinates.T
    return q
