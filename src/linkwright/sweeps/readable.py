"""Which cases the model's reader refuses: it alone knows the numbers that forces are made of, as a damping."""

from __future__ import annotations

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.model.elements import laws_of
from linkwright.sweeps.batch import reason_of
from linkwright.sweeps.model import StudyModel


class Readable:
    """Looks at the cases with the least and the largest value of each parameter; at all where one of these is refused.

    Reading takes longer than many a case does, so that values between those that were read are taken as good.
    """

    def __init__(self, model: StudyModel) -> None:
        self.task = model.task
        laws = [law for element in model.base.description.elements for law in laws_of(element)]
        named = {name for law in laws for name in law.names()}
        self.needed = self.task.analysis != "kinematic" and not model.read_anew and not named.isdisjoint(model.names)
        self._low, self._high = (np.array([model.base.parameters[name] for name in model.names]) for _ in range(2))

    def reasons(self, values: Floats) -> list[str]:
        """Why cases are refused, empty where they are not."""
        reasons = [""] * len(values)
        if not self.needed or not len(values):
            return reasons
        beyond = (values < self._low) | (values > self._high) | ~np.isfinite(values)
        ends = np.concatenate([np.argmin(values, axis=0), np.argmax(values, axis=0)])
        asked = [k for k in dict.fromkeys(ends.tolist()) if beyond[k].any()]
        if any(reason_of(self.task.mechanism, values[k]) for k in asked):
            return [
                reason_of(self.task.mechanism, row) if out.any() else ""
                for row, out in zip(values, beyond, strict=True)
            ]
        self._low, self._high = np.fmin(self._low, values.min(axis=0)), np.fmax(self._high, values.max(axis=0))
        return reasons
