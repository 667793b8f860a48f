"""Kinematic cases of a study side by side; those that need more than plain steps one by one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwright.constraints.abreast import Abreast, motions
from linkwright.constraints.assembly import does_not_close
from linkwright.constraints.kinematics import Kinematics
from linkwright.errors import LinkwrightError
from linkwright.mechanism.cases import Cases
from linkwright.sweeps.batch import sentence
from linkwright.sweeps.model import StudyModel
from linkwright.sweeps.motions import Motions

Floats = NDArray[np.float64]


class Kinematic:
    """The way of prescribed motions, of least norm where freedom is left."""

    def __init__(self, model: StudyModel, times: Floats) -> None:
        self.model, self.times = model, times

    def motions(self, cases: Cases) -> Motions:
        system = self.model.system
        found = motions(self.model.kinematics, cases, self.times, system.assembly_tolerance)
        reasons = [""] * len(cases)
        for k in np.flatnonzero(~found.done).tolist():
            for x in (found.q, found.v, found.a):
                x[:, k] = np.nan
            reasons[k] = self._alone(cases, k, found)
        parts = {"position": found.q[..., :3], "orientation": found.q[..., 3:], "velocity": found.v[..., :3]}
        parts |= {"angular_velocity": found.v[..., 3:], "acceleration": found.a[..., :3]}
        parts["angular_acceleration"] = found.a[..., 3:]
        return Motions(cases, self.times, parts, reasons)

    def _alone(self, cases: Cases, k: int, found: Abreast) -> str:
        """A case by itself, into its column; why it did not come to its end."""
        system, t = self.model.system, float(self.times[0])
        try:
            if not cases.possible[k]:
                self.model.task.mechanism(cases.values[k])  # its reader says best what is wrong
            own = Kinematics(cases.one(k), self.model.kinematics)
            if k in found.open:
                raise does_not_close(own.programs, found.open[k], t)
            motion = own.motion(
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
