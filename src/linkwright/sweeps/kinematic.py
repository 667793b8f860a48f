"""Kinematic cases of a study side by side; those that need more than plain steps one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linkwright.base.types import Floats
from linkwright.closed.starting import at_initial_state
from linkwright.constraints.abreast import Abreast, motions
from linkwright.constraints.assembled import start_state
from linkwright.constraints.diagnosis import does_not_close
from linkwright.constraints.equations import Equations
from linkwright.constraints.kinematics import Kinematics
from linkwright.errors import LinkwrightError
from linkwright.mechanism.cases import Cases
from linkwright.mechanism.description import Start
from linkwright.model import Mechanism
from linkwright.outputs.motions import Motions
from linkwright.spatial.rotation import euler_parameters_matrix
from linkwright.sweeps.batch import sentence
from linkwright.sweeps.model import StudyModel


class Kinematic:
    """The way of prescribed motions, of least norm where freedom is left."""

    def __init__(self, model: StudyModel, times: Floats) -> None:
        self.model, self.times = model, times

    def motions(self, cases: Cases) -> Motions:
        reasons = [""] * len(cases)
        starts = self._starts(cases, reasons) if self.model.base.description.initial else None
        tolerance = self.model.system.assembly_tolerance
        found = motions(self.model.kinematics, cases, self.times, tolerance, starts)
        for k in np.flatnonzero(~found.done).tolist():
            for x in (found.q, found.v, found.a):
                x[:, k] = np.nan
            if not reasons[k]:
                reasons[k] = self._alone(cases, k, found, None if starts is None else starts[k])
        parts = {"position": found.q[..., :3], "orientation": found.q[..., 3:], "velocity": found.v[..., :3]}
        parts |= {"angular_velocity": found.v[..., 3:], "acceleration": found.a[..., :3]}
        parts["angular_acceleration"] = found.a[..., 3:]
        return Motions(cases, self.times, parts, reasons)

    def _starts(self, cases: Cases, reasons: list[str]) -> dict[int, Floats]:
        """The initial states of the cases that have one; the others get their reasons."""
        starts = {}
        for k in range(len(cases)):
            try:
                mech = self._mechanism(cases, k)
                starts[k] = start_state(Equations(at_initial_state(mech, float(self.times[0]))[0]))
            except LinkwrightError as error:
                reasons[k] = sentence(error)
        return starts

    def _mechanism(self, cases: Cases, k: int) -> Mechanism:
        values = cases.values[k].tolist()
        if not cases.possible[k]:
            return self.model.task.mechanism(values)  # its reader says best what is wrong
        return self.model.mechanism(values)

    def _alone(self, cases: Cases, k: int, found: Abreast, start: Floats | None) -> str:
        """A case by itself, into its column; why it did not come to its end."""
        system, t = self.model.system, float(self.times[0])
        try:
            if not cases.possible[k]:
                self.model.task.mechanism(cases.values[k])  # its reader says best what is wrong
            d = cases.one(k)
            if start is not None:
                r = np.moveaxis(euler_parameters_matrix(start[:, 3:].T), -1, 0)
                d = replace(d, start=Start(np.ones(d.nb, bool), r, start[:, :3]))
            kinematics = Kinematics(d)
            if k in found.open:
                raise does_not_close(kinematics.programs, found.open[k], t)
            motion = kinematics.motion(
                self.times,
                assembly_tolerance=system.assembly_tolerance,
                lu_tolerance=system.lu_tolerance,
                assembled=found.assembled.get(k),
            )
        except LinkwrightError as error:
            return sentence(error)
        points = len(motion.times)
        found.q[:points, k], found.v[:points, k], found.a[:points, k] = motion.q, motion.v, motion.a
        return "" if motion.stop is None else motion.stop.message or motion.stop.reason
