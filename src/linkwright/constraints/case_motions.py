"""Kinematic motions of the cases of a study, as a batch of the programs of one mechanism.

A case goes along as long as each of its steps is good at the first try. One that needs more (a shorter step, a leap
across a dead centre, a corner of a law, a reason why it stops) is done by `Kinematics.motion`, from its start.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.constraints.accumulated_angles import undefined
from linkwright.constraints.assembly import Assembly, assemble
from linkwright.constraints.kinematics import CaseMarch, Kinematics
from linkwright.constraints.newton import Batch, drawn_states, same_forms
from linkwright.constraints.termination_reasons import Stop, tilts
from linkwright.errors import LinkwrightError
from linkwright.model.body_motion import drawn_at
from linkwright.model.parameter_cases import Cases
from linkwright.model.requested_analysis import System

Rows = NDArray[np.int64]


@dataclass(eq=False)
class CaseMotions:
    """Motions (T, n, nb, ...) of cases, NaN where a case does not come to, and why it does not."""

    q: Floats
    v: Floats
    a: Floats
    failures: dict[int, LinkwrightError | Stop] = field(default_factory=dict)

    @property
    def arrays(self) -> tuple[Floats, Floats, Floats]:
        """Position, velocity and acceleration."""
        return self.q, self.v, self.a


class CaseKinematics:
    """Position, velocity and acceleration of cases at increasing times, of least norm where freedom is left.

    A case begins at its state (nb, 7) in `starts`, or where its bodies are drawn.
    """

    def __init__(
        self, kinematics: Kinematics, cases: Cases, times: Floats, system: System, starts: dict[int, Floats]
    ) -> None:
        self.e, self.cases, self.times = kinematics.equations, cases, times
        self.system, self.starts = system, starts
        self.batch = Batch.of_cases(kinematics.programs, cases)
        self.drawn = drawn_states(self.e.description, cases)
        for row, state in starts.items():
            self.drawn[row] = state

    @cached_property
    def motions(self) -> CaseMotions:
        """The motions, as far as they are computed."""
        q, v, a = (np.empty((len(self.times), len(self.cases), self.e.nb, width)) for width in (7, 6, 6))
        return CaseMotions(q, v, a)

    def run(self, rows: Rows) -> CaseMotions:
        """The motions of some cases."""
        done = np.zeros(len(self.cases), bool)
        together = rows[self.plain[rows]]
        assembly: Assembly | None = None
        if len(together):
            t, tolerance = float(self.times[0]), self.system.assembly_tolerance
            assembly = assemble(self.batch[together], self.drawn[together], t, tolerance)
            for free in (False, True):
                chosen = np.flatnonzero((assembly.states.free == free) & assembly.closed)
                if len(chosen):
                    done[self._march(together[chosen], assembly, chosen, free)] = True
        for x in self.motions.arrays:
            x[:, ~done] = np.nan
        places = {int(row): k for k, row in enumerate(together)}
        for row in rows[~done[rows]].tolist():
            try:
                stop = self._alone(row, assembly, places.get(row))
            except LinkwrightError as error:
                self.motions.failures[row] = error
            else:
                if stop is not None:
                    self.motions.failures[row] = stop
        return self.motions

    @cached_property
    def plain(self) -> NDArray[np.bool_]:
        """Whether cases have the equations of the mechanism as it stands, and laws with values at all times."""
        plain = self.cases.possible & same_forms(self.batch, self.drawn)
        parameters = {name: x[:, None] if np.ndim(x) else x for name, x in self.cases.parameters.items()}
        for _, bad in undefined(self.e.description, parameters, self.times):
            plain &= ~bad.any(axis=-1)
        return np.asarray(plain)

    def _march(self, rows: Rows, assembly: Assembly, chosen: Rows, free: bool) -> Rows:
        """From the assembled states through all times; the rows of the cases that come to the end."""
        march = CaseMarch(self.batch[rows], assembly.states[chosen], self.times, free)
        for k, t in enumerate(self.times.tolist()):
            if k:
                march.step(t)
            if not len(march.rows):
                break
            for x, part in zip(self.motions.arrays, march.motion, strict=True):
                x[k, rows[march.rows]] = part
        finished = rows[march.rows]
        tilted = np.zeros(len(finished), bool)
        for _, flags in tilts(self.e, self.batch.inputs["records"][finished], self.motions.q[:, finished]):
            tilted |= flags.any(axis=0)
        return finished[~tilted]

    def _alone(self, row: int, assembly: Assembly | None, place: int | None) -> Stop | None:
        """A case by itself, into its column; why it does not come to its end."""
        d = self.cases.one(row)
        if row in self.starts:
            d = drawn_at(d, self.starts[row])
        kinematics = Kinematics(d)
        start = None
        if assembly is not None and place is not None:
            if not assembly.closed[place]:
                raise assembly.error(place, kinematics.programs)
            start = assembly.states[place]
        motion = kinematics.motion(
            self.times,
            assembly_tolerance=self.system.assembly_tolerance,
            lu_tolerance=self.system.lu_tolerance,
            assembled=start,
        )
        for x, part in zip(self.motions.arrays, (motion.q, motion.v, motion.a), strict=True):
            x[: len(part), row] = part
        return motion.stop
