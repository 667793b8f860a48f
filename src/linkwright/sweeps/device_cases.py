"""Parameter studies on a GPU: prescribed motions of many cases in one launch, a thread per case, of which only the
numbers that are asked for come back.

The steps are those of `tree_cases`, with the reductions of the outputs in the same program. A case goes along while
each of its steps is good; one that needs shorter steps marches again by halves of them. What does not come to its end
so, or does not begin in regular positions, is computed by `case_engine`, as is everything that has a reason.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Bools, Floats
from linkwright.base.locks import Lock
from linkwright.constraints.batch_march import PARTS
from linkwright.constraints.case_motions import CaseKinematics
from linkwright.errors import ModelError
from linkwright.kernels.cuda.device_arrays import cupy, gpu
from linkwright.kernels.cuda.device_kernel import DeviceKernel, MarchKernel, Walked, calls_at_once
from linkwright.kernels.variant import Signature, threads
from linkwright.model.parameter_cases import Cases
from linkwright.outputs.output_functions import Reduced
from linkwright.outputs.running_reductions import RUNNING, running_parts
from linkwright.sweeps.case_engine import Engine, Kinematic
from linkwright.sweeps.study_model import StudyModel
from linkwright.sweeps.task import Batch, Task
from linkwright.sweeps.tree_cases import TreeProgram, tree_starts

#: Cases of a chunk of a study; those that a thread of the CPU assembles at a time, and those whose numbers it looks at:
#: so many that threads seldom wait for each other.
CHUNK, STARTS, LOOKS = 2**20, 2**12, 2**17


@dataclass(frozen=True, eq=False)
class _Code:
    """What runs on a device: the march, how many operations a step of it has, and where cases begin, if that suits."""

    march: MarchKernel
    work: int
    start: DeviceKernel | None


_KEPT = 8  # studies whose code is kept
_codes: OrderedDict[Any, _Code] = OrderedDict()
_lock = Lock()


def _code(program: TreeProgram, parts: Sequence[Reduced]) -> _Code:
    """The code of a study on the current device, recorded and compiled once."""
    device = int(cupy().cuda.runtime.getDevice())
    key = program.base.description.digest, program.free, repr(parts), device
    with _lock:
        code = _codes.get(key)
        if code is None:
            march, start = program.march(parts), program.drawn_start()
            begin = None if start is None else DeviceKernel(Signature.of(start, ()), start)
            code = _codes[key] = _Code(MarchKernel(march, "float64"), sum(march.count().values()), begin)
            if len(_codes) > _KEPT:
                _codes.popitem(last=False)
        _codes.move_to_end(key)
    return code


_Part = TypeVar("_Part")
_Answer = TypeVar("_Answer")


class DeviceMarch:
    """The march of a study's cases on the current device."""

    def __init__(self, model: StudyModel, program: TreeProgram, times: Floats, engine: Engine) -> None:
        parts = running_parts(engine.outputs)
        if parts is None:
            raise refusal("an output is a series, reduces what is reduced already, or needs all time points at once")
        self.model, self.program, self.times, self.parts = model, program, times, parts
        self.sizes = [RUNNING[part.kind].size for part in parts]
        code = _code(program, parts)
        self.kernel, self.work, self.start = code.march, code.work, code.start
        if self.start is not None:
            declared = Cases(model.base.description, model.names, self._declared)
            begin, good = tree_starts(program, CaseKinematics(model.kinematics, declared, times, model.system, {}))
            self.begin, self.start = begin.reshape(-1), self.start if len(good) else None

    @property
    def _declared(self) -> Floats:
        """(1, k): the swept parameters as declared."""
        return np.array([[self.model.base.parameters[name] for name in self.model.names]])

    def __call__(self, cases: Cases) -> tuple[dict[str, Floats], Bools]:
        """The reductions (n,) by name, and which cases came to the end; of the others they mean nothing."""
        n = len(cases)
        parameters = cupy().asarray(cases.values)
        q, rows = self._starts(cases, parameters)
        carried, came = np.full((n, max(sum(self.sizes), 1)), np.nan), np.zeros(n, bool)
        parts = 1
        while len(rows) and parts <= PARTS:
            sums, good = self._marched(q, _some(parameters, rows), parts)
            carried[rows[good]], came[rows[good]] = sums[good], True
            left = np.flatnonzero(~good)
            q, rows, parts = _some(q, left), rows[left], 2 * parts
        numbers, first = {}, 0
        for part, size in zip(self.parts, self.sizes, strict=True):
            numbers[part.key] = RUNNING[part.kind].end(carried[:, first : first + size].T, len(self.times))
            first += size
        return numbers, came & np.isfinite(carried).all(axis=1)

    def _starts(self, cases: Cases, parameters: Any) -> tuple[Any, NDArray[np.int64]]:
        """The coordinates of the cases that begin in regular positions, on the device, and which these are.

        Those of cases that are drawn in place are computed there, the others are assembled by threads of the CPU.
        """
        q, rows = self._drawn(cases, parameters)
        others = np.setdiff1d(np.arange(len(cases)), rows, assume_unique=True)
        if not len(others):
            return q, rows
        parts = [others[k : k + STARTS] for k in range(0, len(others), STARTS)]
        kinematics, system = self.model.kinematics, self.model.system

        def assembled(part: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
            start, good = tree_starts(self.program, CaseKinematics(kinematics, cases[part], self.times, system, {}))
            return start, part[good]

        starts = _in_threads(assembled, parts)
        placed = cupy().asarray(np.concatenate([x for x, _ in starts]))
        return cupy().concatenate([q, placed]), np.concatenate([rows, *(x for _, x in starts)])

    def _drawn(self, cases: Cases, parameters: Any) -> tuple[Any, NDArray[np.int64]]:
        """The same of those whose bodies are drawn where the constraints hold."""
        cp = cupy()
        if self.start is None:
            return cp.zeros((0, self.program.base.nq)), np.zeros(0, np.int64)
        q, closed = self.start([cp.asarray(self.begin), cp.asarray(self.times[:1]), parameters])
        parts = [slice(k, k + LOOKS) for k in range(0, len(cases), LOOKS)]
        possible = np.concatenate(_in_threads(lambda part: cases[part].possible, parts))
        rows = np.flatnonzero(possible & (closed.get()[:, 0] > 0.0))
        return _some(q, rows), rows

    def _marched(self, q: Any, parameters: Any, parts: int) -> tuple[Floats, Bools]:
        """What the reductions carry at the end, and whether all steps were good, with intervals in so many parts."""
        cp, count, nv = cupy(), len(q), self.program.base.nv
        widths = [q.shape[1], nv, nv, 2, 1, max(sum(self.sizes), 1)]
        now = [q.copy(), *(cp.zeros((count, width)) for width in widths[1:])]
        none = [None] * len(now)

        def march(whens: Floats) -> None:
            most = calls_at_once(self.work, count)
            for first in range(0, len(whens), most):
                some = whens[first : first + most]
                inputs = [Walked(x, width) for x, width in zip(now, widths, strict=True)]
                inputs += [Walked(cp.asarray(some), 0, some.shape[1]), Walked(parameters, parameters.shape[1])]
                self.kernel(inputs, now, none, count, len(some), len(some))

        # The first step has no length, and no rates to begin with: the second one is judged.
        march(np.array([[self.times[0], 0.0, 0.0, 0.0]]))
        now[4] = cp.full((count, 1), 1.0)
        march(whens_of(self.times, parts))
        return now[5].get(), now[4].get()[:, 0] > 0.0


def _some(rows: Any, which: NDArray[np.int64]) -> Any:
    """Some rows of an array on the device, in their order; itself where these are all."""
    return rows if np.array_equal(which, np.arange(len(rows))) else rows[cupy().asarray(which)]


def _in_threads(work: Callable[[_Part], _Answer], parts: Sequence[_Part]) -> list[_Answer]:
    """What work makes of each part, on all cores."""
    if not parts:
        return []
    with np.errstate(all="ignore"), ThreadPoolExecutor(threads()) as pool:
        return list(pool.map(work, parts))


def whens_of(times: Floats, parts: int) -> Floats:
    """(calls, 4): the time of each step, its length, whether it ends at one of the times, and whether at the first."""
    rows = [(float(times[0]), 0.0, 1.0, 1.0)]
    for begin, end in zip(times[:-1].tolist(), times[1:].tolist(), strict=True):
        points = np.linspace(begin, end, parts + 1)[1:-1].tolist()
        rows += [(t, t - before, 0.0, 0.0) for before, t in zip([begin, *points], points, strict=False)]
        rows.append((end, end - (points[-1] if points else begin), 1.0, 0.0))
    return np.array(rows)


def refusal(why: str) -> ModelError:
    """The error for a study that is none for a GPU."""
    text = "on='gpu' takes kinematic studies of small closed mechanisms whose outputs are one number for each case, as"
    return ModelError(f"{text} 'range(block.x)'; here {why}; use on='local'")


class DeviceEngine(Engine):
    """Runs cases of a task on the current GPU, and those that do not go there on the CPU.

    Raises KernelError without CuPy or a GPU, and ModelError for a study that is none for it.
    """

    def __init__(self, task: Task) -> None:
        gpu()
        if task.analysis != "kinematic":
            raise refusal(f"the analysis is {task.analysis}")
        super().__init__(task)
        if not isinstance(self.way, Kinematic):
            raise refusal("cases are computed one by one")
        if self.way.program is None:
            raise refusal("the mechanism or an output is such that cases are computed by the poses of bodies")
        self.march = DeviceMarch(self.model, self.way.program, self.times, self)

    def _at_once(self) -> int:
        return CHUNK

    def _computed(self, values: Floats, way: Kinematic | None) -> Batch:
        if way is not self.way:
            return super()._computed(values, way)
        cases = Cases(self.model.base.description, self.model.names, values)
        numbers, came = self.march(cases)
        with np.errstate(all="ignore"):
            arrays = {
                output.name: np.array(
                    np.broadcast_to(output.expression.evaluate({**cases.parameters, **numbers}), (len(values),)), float
                )
                for output in self.outputs
            }
        reasons, others, size = [""] * len(values), np.flatnonzero(~came), super()._at_once()
        for part in (others[k : k + size] for k in range(0, len(others), size)):
            batch = super()._computed(values[part], way)
            for name, x in batch.arrays.items():
                arrays[name][part] = x
            for k, reason in zip(part.tolist(), batch.reasons, strict=True):
                reasons[k] = reason
        return Batch(arrays, reasons)
