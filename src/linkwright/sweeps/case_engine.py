"""The engine of parameter studies: cases of a task as a batch, by programs compiled once, in each process that
computes cases.

What cannot go in a batch is computed case by case as `lw.analyse` does it, with the same programs. A case's numbers do
not depend on which others come with it.
"""

from __future__ import annotations

import json
import os
import socket
import warnings
from collections import OrderedDict
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright import __version__
from linkwright.analysis.analyse import refuse_massless, refuse_undriven
from linkwright.base.arrays import Floats
from linkwright.base.locks import Lock
from linkwright.constraints.case_motions import CaseKinematics
from linkwright.constraints.constraint_equations import Equations
from linkwright.constraints.newton import start_state
from linkwright.constraints.termination_reasons import Stop
from linkwright.dynamics.closed.initial_state import at_initial_state
from linkwright.dynamics.closed.redundancy import warned
from linkwright.errors import LinkwrightError, LinkwrightWarning, ModelError, SlowCaseWarning
from linkwright.kernels.variant import set_threads
from linkwright.model.parameter_cases import Cases
from linkwright.outputs.output_language import output_of
from linkwright.outputs.output_values import Motions, values_of
from linkwright.results.solution import Solution
from linkwright.simulation.integrators import STIFF
from linkwright.sweeps.case_dynamics import Dynamic, add_forces, settings_of
from linkwright.sweeps.study_model import FarContacts, Readable, StudyModel
from linkwright.sweeps.task import Batch, Task, joined, reason_of, sentence
from linkwright.sweeps.tree_cases import TreeProgram, tree_motions
from linkwright.tape.build import preparing


class Kinematic:
    """The way of prescribed motions, of least norm where freedom is left."""

    def __init__(self, model: StudyModel, times: Floats, program: TreeProgram | None) -> None:
        self.model, self.times, self.program = model, times, program

    def motions(self, cases: Cases) -> Motions:
        reasons = [""] * len(cases)
        starts: dict[int, Floats] = {}
        initial = bool(self.model.base.description.initial)
        for k in range(len(cases)) if initial else np.flatnonzero(~cases.possible).tolist():
            try:
                if not cases.possible[k]:
                    self.model.task.reader.mechanism(cases.values[k])  # its reader says best what is wrong
                if initial:
                    starts[k] = self._start(cases, k)
            except LinkwrightError as error:
                reasons[k] = sentence(error)
        rows = np.flatnonzero([not reason for reason in reasons])
        kinematics = CaseKinematics(self.model.kinematics, cases, self.times, self.model.system, starts)
        if self.program is None:
            return self._of_bodies(kinematics, rows, reasons)
        motions, came = tree_motions(self.program, kinematics)
        others, size = rows[~came[rows]], bodies_at_once(self.model, self.times)
        for part in (others[k : k + size] for k in range(0, len(others), size)):
            own = cases[part]
            some = CaseKinematics(self.model.kinematics, own, self.times, self.model.system, {})
            slow = self._of_bodies(some, np.arange(len(part)), [""] * len(part))
            motions.put_motions(part, slow)
            for k, reason in zip(part.tolist(), slow.reasons, strict=True):
                reasons[k] = reason
        motions.reasons = reasons
        return motions

    def _of_bodies(self, kinematics: CaseKinematics, rows: NDArray[np.int64], reasons: list[str]) -> Motions:
        """The motions of the cases in some rows, from the poses of their bodies; reasons are added to."""
        x = kinematics.run(rows)
        for k, failure in x.failures.items():
            reasons[k] = (failure.message or failure.reason) if isinstance(failure, Stop) else sentence(failure)
        return Motions.of_bodies(kinematics.cases, self.times, x.q, x.v, x.a, reasons)

    def _start(self, cases: Cases, k: int) -> Floats:
        """The initial state of a case."""
        mech = self.model.case(cases, k)
        return start_state(Equations(at_initial_state(mech, float(self.times[0]))[0]))


NO_FORCES = "which this analysis does not compute; take analysis='dynamic' or 'inverse dynamic'"
MEMORY = 64_000_000  # bytes of motion that are kept at once
FEWEST, MOST = 8, 1024  # cases of a batch: fewer would go by other loops, whose last bits may differ
MOST_MEASURED = 4096  # cases of a batch of which only the outputs' quantities are kept


def bodies_at_once(model: StudyModel, times: Floats) -> int:
    """Cases of a batch whose bodies' motion is kept."""
    each = 8 * 19 * len(times) * max(model.base.description.nb, 1)
    return int(np.clip(MEMORY // each, FEWEST, MOST))


class Engine:
    """Runs cases of a task. Faults of the task itself are errors at once; those of a case are its reason."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.model = StudyModel(task)
        self.times = np.array(task.times, dtype=np.float64)
        d = self.model.base.description
        self.outputs = tuple(output_of(d, name, text) for name, text in task.outputs)
        if task.analysis == "kinematic":
            for output in self.outputs:
                output.refuse_forces(NO_FORCES)
        self.model.refuse_idle({name for output in self.outputs for name in output.names}, bool(task.functions))
        self.forces = tuple(dict.fromkeys(name for output in self.outputs for name in output.forces))
        self.cases = Cases(d, self.model.names, np.zeros((0, len(self.model.names))))
        self.way = self._way()
        self.readable, self.far_contacts = Readable(self.model), FarContacts(self.model)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of a case's outputs."""
        shapes = {output.name: (len(self.times),) if output.series else () for output in self.outputs}
        return {**shapes, **dict.fromkeys(self.task.functions, ())}

    def run(self, values: Floats) -> Batch:
        """The cases of these rows (n, k)."""
        rows = np.ascontiguousarray(np.atleast_2d(np.asarray(values, dtype=np.float64)))
        if rows.ndim != 2 or rows.shape[1] != len(self.task.names):
            wanted = f"(cases, {len(self.task.names)})"
            raise ModelError(f"values have shape {rows.shape}; give {wanted}, one column for each swept parameter")
        size = self._at_once()
        parts = [self._part(rows[k : k + size]) for k in range(0, len(rows), size)]
        return joined(parts) if parts else Batch({o.name: np.zeros((0,)) for o in self.outputs}, [])

    def _at_once(self) -> int:
        program = getattr(self.way, "program", None)
        if program is None:
            return bodies_at_once(self.model, self.times)
        return int(np.clip(MEMORY // (8 * program.count * len(self.times)), FEWEST, MOST_MEASURED))

    def _way(self) -> Any:
        """How cases are computed: in a batch, or (None) one after the other."""
        model, analysis = self.model, self.task.analysis
        if self.task.functions or model.read_anew:
            return None
        d = model.base.description
        if analysis != "kinematic" and not any(array in ("mass", "armature") for array, _ in d.bindings):
            refuse_massless(model.base)
        if analysis == "inverse dynamic":
            refuse_undriven(model.base)
        if model.base.auxiliary.nearest.note:  # each case has a nearest mechanism of its own that closes
            warned(model.base.auxiliary.nearest)
            return None
        prescribed = analysis == "kinematic" or (analysis == "inverse dynamic" and model.opens)
        if prescribed and self.task.settings.get("freedom", model.system.freedom) != "pivoting":
            measured = analysis == "kinematic" and bool(self.outputs)
            program = TreeProgram.of(model.base, tuple(model.names), self.outputs) if measured else None
            return Kinematic(model, self.times, program)
        side_by_side = model.opens and not model.base.programs.carried_by_constraints
        if analysis == "dynamic" and side_by_side and len(self.times) > 1:
            settings = settings_of(model, self.times, self.task.settings)
            return None if settings.method == STIFF else Dynamic(model, settings)
        return None

    def _part(self, values: Floats) -> Batch:
        reasons = self._refused(values)
        good = np.array([not reason for reason in reasons], bool)
        alone = self._alone(values)
        if good.all() and not alone.any():
            return self._computed(values, self.way)
        arrays = {name: np.full((len(values), *shape), np.nan) for name, shape in self.shapes.items()}
        for part, way in ((good & ~alone, self.way), (good & alone, None)):
            if not part.any():
                continue
            batch = self._computed(values[part], way)
            for name, x in batch.arrays.items():
                arrays[name][part] = x
            for k, reason in zip(np.flatnonzero(part).tolist(), batch.reasons, strict=True):
                reasons[k] = reason
        return Batch(arrays, reasons)

    def _alone(self, values: Floats) -> NDArray[np.bool_]:
        """(n,): which cases touch their curves elsewhere, and which simulated ones have no inertia where the base has
        some, or the other way round: loops may move such a body, by other programs than those of the others."""
        alone = self.far_contacts.of(values)
        if self.task.analysis != "dynamic" or self.way is None:
            return alone
        d = self.model.base.description
        cases = self.cases.at(values)
        for name in ("mass", "com", "inertia", "armature"):
            if cases.varies(name):
                differs = (cases.array(name) == 0.0) != (np.asarray(getattr(d, name)) == 0.0)
                alone |= differs.reshape(len(values), -1).any(axis=1)
        return alone

    def _refused(self, values: Floats) -> list[str]:
        """Why cases are refused, for reasons that programs with parameters as inputs do not see."""

        def refuse(row: Floats) -> None:
            refuse_massless(self.model.mechanism(row))

        reasons = self.readable.reasons(values)
        cases = self.cases.at(values)
        if self.task.analysis != "kinematic" and (cases.varies("mass") or cases.varies("armature")):
            massive = (cases.array("mass") > 0.0).any(axis=1) | (cases.array("armature") > 0.0).any(axis=1)
            for k in np.flatnonzero(~massive & cases.possible).tolist():
                reasons[k] = reasons[k] or reason_of(refuse, values[k])
        return reasons

    def _computed(self, values: Floats, way: Any) -> Batch:
        n = len(values)
        if way is not None and n < FEWEST:
            values = np.concatenate([values, np.repeat(values[-1:], FEWEST - n, axis=0)])
        cases = self.cases.at(values)
        numbers: dict[str, Floats] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LinkwrightWarning)
            warnings.simplefilter("always", SlowCaseWarning)  # from the thread that watches this one
            if way is not None:
                motions = way.motions(cases)
                if self.forces:
                    add_forces(self.model, motions, self.forces)
            else:
                motions, numbers = self._one_by_one(cases)
        arrays = {output.name: values_of(output, motions) for output in self.outputs}
        return Batch({name: x[:n] for name, x in {**arrays, **numbers}.items()}, motions.reasons[:n])

    def _one_by_one(self, cases: Cases) -> tuple[Motions, dict[str, Floats]]:
        """Each case on its own; what Python's functions make of it."""
        motions = Motions.empty(cases, self.times, self.forces)
        numbers = {name: np.full(len(cases), np.nan) for name in self.task.functions}
        anew = self.far_contacts.of(cases.values)
        for k in range(len(cases)):
            try:
                solution = self.model.solution(cases.values[k], self.times, anew=bool(anew[k]))
            except LinkwrightError as error:
                motions.reasons[k] = sentence(error)
                continue
            motions.put(k, solution, self.forces)
            if not solution.status:
                motions.reasons[k] = solution.status.message or solution.status.reason
                continue
            motions.reasons[k] = self._called(solution, numbers, k)
        return motions, numbers

    def _called(self, solution: Solution, numbers: dict[str, Floats], k: int) -> str:
        """Python's functions of a case; why one failed."""
        for name, function in self.task.functions.items():
            try:
                numbers[name][k] = float(function(solution))
            except Exception as error:  # whatever a user's function raises is this case's failure
                return f"the function {name!r} raised {type(error).__name__}: {error}"
        return ""


_KEPT = 4
_engines: OrderedDict[str, Any] = OrderedDict()
_lock = Lock()  # a worker of a cluster may have several threads
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_engines.clear)  # another thread of the parent may have been using them


def compute(text: str, values: Floats) -> dict[str, Any]:
    """Cases of a task that comes as JSON text: arrays, reasons, and who did it in what time."""
    with _lock:
        engine = _engines.get(text)
        if engine is None:
            set_threads(1)  # processes share the cores already: kernels take no further threads here
            with preparing():
                engine = _engines[text] = Engine(Task.of(json.loads(text)))
            while len(_engines) > _KEPT:
                _engines.popitem(last=False)
        _engines.move_to_end(text)
        return answer(engine, values)


def answer(engine: Any, values: Floats) -> dict[str, Any]:
    """What an engine makes of some cases, as plain data."""
    started = perf_counter()
    batch = run_cases(engine, np.asarray(values, float))
    return {
        "arrays": {name: np.ascontiguousarray(x, dtype=np.float64) for name, x in batch.arrays.items()},
        "reasons": list(batch.reasons),
        "version": __version__,
        "by": f"{socket.gethostname()}:{os.getpid()}",
        "seconds": perf_counter() - started,
    }


def run_cases(engine: Any, values: Floats) -> Batch:
    """The batch of these cases; where an engine fails on all of them together, those it fails on alone are rows."""
    try:
        batch: Batch = engine.run(values)
        return batch
    except MemoryError as error:
        reason = f"there was not enough memory for it ({error})".replace(" ()", "")
    except LinkwrightError as error:
        reason = sentence(error)
    except Exception as error:  # of one case, whatever it is, it must not take the others with it
        reason = f"{type(error).__name__}: {sentence(error)}"
    if len(values) == 1:
        return Batch({}, [reason or "failed"])
    half = len(values) // 2
    return joined([run_cases(engine, values[:half]), run_cases(engine, values[half:])])
