"""Kinematic cases of a study as a batch; those that need more than plain steps one by one."""

from __future__ import annotations

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints.case_motions import CaseKinematics
from linkwright.constraints.equations import Equations
from linkwright.constraints.newton import start_state
from linkwright.constraints.termination_reasons import Stop
from linkwright.dynamics.closed.initial_state import at_initial_state
from linkwright.errors import LinkwrightError
from linkwright.model.cases import Cases
from linkwright.outputs.motions import Motions
from linkwright.sweeps.batch import sentence
from linkwright.sweeps.study_model import StudyModel


class Kinematic:
    """The way of prescribed motions, of least norm where freedom is left."""

    def __init__(self, model: StudyModel, times: Floats) -> None:
        self.model, self.times = model, times

    def motions(self, cases: Cases) -> Motions:
        reasons = [""] * len(cases)
        starts: dict[int, Floats] = {}
        for k in range(len(cases)):
            try:
                if not cases.possible[k]:
                    self.model.task.mechanism(cases.values[k])  # its reader says best what is wrong
                if self.model.base.description.initial:
                    starts[k] = self._start(cases, k)
            except LinkwrightError as error:
                reasons[k] = sentence(error)
        rows = np.flatnonzero([not reason for reason in reasons])
        x = CaseKinematics(self.model.kinematics, cases, self.times, self.model.system, starts).run(rows)
        for k, failure in x.failures.items():
            reasons[k] = (failure.message or failure.reason) if isinstance(failure, Stop) else sentence(failure)
        return Motions.of_bodies(cases, self.times, x.q, x.v, x.a, reasons)

    def _start(self, cases: Cases, k: int) -> Floats:
        """The initial state of a case."""
        mech = self.model.case(cases, k)
        return start_state(Equations(at_initial_state(mech, float(self.times[0]))[0]))
