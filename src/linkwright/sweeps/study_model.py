"""The model of a study: which of its parameters stay open, its cases one by one, and which of them its reader
refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from linkwright.analysis.analyse import analyse, kinematic
from linkwright.base.arrays import Bools, Floats
from linkwright.base.locks import cached_property
from linkwright.constraints.kinematics import Kinematics
from linkwright.dynamics.functions import Request
from linkwright.errors import LinkwrightError, ModelError
from linkwright.mechanism import Mechanism
from linkwright.model.curve_contacts import contacts_near, with_contacts_of
from linkwright.model.curve_elements import parts_of_curves
from linkwright.model.elements import laws_of
from linkwright.model.model_checks import alike, parameters_used
from linkwright.model.parameter_cases import Cases
from linkwright.model.requested_analysis import System
from linkwright.results.solution import Solution
from linkwright.sweeps.task import Task, reason_of

T = TypeVar("T")
_TRACES = re.compile(r"\bTRACE\b[^;]*;", re.IGNORECASE)
_AROUND = (1e-3, -1e-3, 1e-6)  # parts by which parameters are changed, to see what they do


class StudyModel:
    """The mechanism at its own values, `base`, whose parameters `names` are swept.

    `read_anew`: every case has to be built from the model's text, since the value of a swept parameter alone is kept
    somewhere in the description.

    Contacts on curves are sought anew when a model is read. A case has those of the base, as long as the place of
    contact as drawn is near that of the base, and no statement of the model or output names a body of a contact.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.base, self.names = task.reader.base, task.reader.names
        self.system = self.base.description.system or System()
        self.read_anew = self._is_read_anew()

    def mechanism(self, values: Sequence[float] | Floats) -> Mechanism:
        """The mechanism of a case."""
        if self.read_anew:
            return self.read(values)
        numbers = np.asarray(values, float).tolist()
        return self.base.with_parameters(**dict(zip(self.names, numbers, strict=True)))

    def read(self, values: Sequence[float] | Floats) -> Mechanism:
        """The mechanism of a case, built from the model's text."""
        return self.task.reader.mechanism(values)

    def case(self, cases: Cases, row: int) -> Mechanism:
        """The mechanism of one of some cases; the reader knows why an impossible one cannot be built."""
        values = cases.values[row]
        return self.mechanism(values) if cases.possible[row] else self.task.reader.mechanism(values)

    def solution(self, values: Sequence[float] | Floats, times: Floats, *, anew: bool = False) -> Solution:
        """One case, as `lw.analyse` does it; `anew` where it has to be built from the model's text."""
        mech = self.read(values) if anew else self.mechanism(values)
        if self.task.analysis == "kinematic":
            system = mech.description.system or System()
            return kinematic(mech, system, times, self.task.settings.get("freedom", system.freedom))
        return analyse(mech, times=times, analysis=self.task.analysis, **self.task.analysis_settings)

    @cached_property
    def opens(self) -> bool:
        """Whether the programs of dynamics can have the swept parameters as inputs."""
        if self.base.friction is not None:  # which no program holds: cases run one by one
            return False
        try:
            self.base.programs.check(Request("forward_dynamics", free=self.names))
        except LinkwrightError:
            return False
        return not self.read_anew

    @cached_property
    def kinematics(self) -> Kinematics:
        """The constraint equations of the base, whose programs serve all cases."""
        return Kinematics(self.base.description)

    # -- what parameters do -----------------------------------------------------------------------------------
    def refuse_idle(self, used: set[str], functions: bool) -> None:
        """An error for a swept parameter that changes nothing; outputs use those in `used` themselves."""
        if functions:
            return
        touched = parameters_used(self.base.description, kinematic=self.task.analysis == "kinematic")
        for name, swept in zip(self.task.names, self.names, strict=True):
            if swept not in touched and swept not in used and not self._changes_something(swept):
                text = f"the parameter {name!r} changes nothing in a {self.task.analysis} analysis of "
                text += f"{self.base.name!r}, and no output uses it"
                raise ModelError(f"{text}; leave it out, or sweep another", element=name)

    def _changes_something(self, name: str) -> bool:
        """Whether the model is another one when it is read with another value of a parameter."""
        base = self.base.description
        for changed in self._around([name]):
            try:
                there = self.task.reader.mechanism(changed).description
            except LinkwrightError:
                continue
            kinematic = self.task.analysis == "kinematic"
            return not alike(replace(there, parameters=base.parameters), base, kinematic=kinematic)
        return False

    @cached_property
    def shares_contacts(self) -> bool:
        """Whether cases may have the contacts on curves of the base: nobody asks for the bodies of contacts."""
        d, task = self.base.description, self.task
        names = [name.rpartition(".")[2].lower() for name in parts_of_curves(d.point_constraints)]
        asked = " ".join([_TRACES.sub("", task.model), *(text for _, text in task.outputs)]).lower()
        return bool(names) and not task.functions and not d.initial and not any(name in asked for name in names)

    def contact_is_near(self, values: Sequence[float] | Floats) -> bool:
        """Whether a case is drawn with its contacts near those of the base."""
        return contacts_near(self.read(values).description, self.base.description)

    def _is_read_anew(self) -> bool:
        """Whether other values of the swept parameters make another mechanism of the text than of the base."""
        for values in self._around(self.names):
            try:
                read = self.task.reader.mechanism(values).description
                bound = self.base.with_parameters(**dict(zip(self.names, values, strict=True))).description
            except LinkwrightError:
                continue
            if self.shares_contacts:
                read = with_contacts_of(read, bound)
            return not alike(read, bound, kinematic=self.task.analysis == "kinematic")
        return True

    def _around(self, names: Sequence[str]) -> list[list[float]]:
        """Values of all swept parameters near the model's own; those of `names` are changed."""
        start = np.array([self.base.parameters[name] for name in self.names])
        change = np.where(np.isin(self.names, names), np.where(start == 0.0, 1.0, np.abs(start)), 0.0)
        return [(start + part * change).tolist() for part in _AROUND]


class Extremes:
    """Looks at the cases with the least and the largest value of each parameter; at all where one of these has a fault.

    Reading takes longer than many a case does, so that values between those that were read are taken as good.
    """

    def __init__(self, model: StudyModel) -> None:
        self.low, self.high = (np.array([model.base.parameters[name] for name in model.names]) for _ in range(2))

    def faults(self, values: Floats, fault_of: Callable[[Floats], T]) -> list[T | None]:
        """The fault of each case, None where it was not looked at."""
        beyond = (values < self.low) | (values > self.high) | ~np.isfinite(values)
        ends = np.concatenate([np.argmin(values, axis=0), np.argmax(values, axis=0)])
        asked = [k for k in dict.fromkeys(ends.tolist()) if beyond[k].any()]
        if any(fault_of(values[k]) for k in asked):
            return [fault_of(row) if outside.any() else None for row, outside in zip(values, beyond, strict=True)]
        self.low, self.high = np.fmin(self.low, values.min(axis=0)), np.fmax(self.high, values.max(axis=0))
        return [None] * len(values)


class Readable:
    """Which cases the model's reader refuses."""

    def __init__(self, model: StudyModel) -> None:
        self.task = model.task
        laws = [law for element in model.base.description.elements for law in laws_of(element)]
        named = {name for law in laws for name in law.names()}
        self.needed = self.task.analysis != "kinematic" and not model.read_anew and not named.isdisjoint(model.names)
        self.extremes = Extremes(model)

    def reasons(self, values: Floats) -> list[str]:
        """Why cases are refused, empty where they are not."""
        if not self.needed or not len(values):
            return [""] * len(values)
        return [x or "" for x in self.extremes.faults(values, lambda row: reason_of(self.task.reader.mechanism, row))]


class FarContacts:
    """Which cases touch their curves, as drawn, far from where the base does, or cannot be read."""

    def __init__(self, model: StudyModel) -> None:
        self.model = model
        self.needed = model.shares_contacts and not model.read_anew
        self.extremes = Extremes(model)

    def of(self, values: Floats) -> Bools:
        """(n,): those that have to be built from the model's text."""
        if not self.needed or not len(values):
            return np.zeros(len(values), bool)
        return np.array(self.extremes.faults(values, self._far), dtype=bool)

    def _far(self, values: Floats) -> bool:
        try:
            return not self.model.contact_is_near(values)
        except LinkwrightError:
            return True
