"""Rollouts of states of other libraries: on a GPU all steps run there, a thread per motion, and samples stay there.

A launch takes many steps of every motion and stores its samples on the way; there are only as many launches as keep
each of them short. Tensors of PyTorch and arrays of JAX in main memory are looked at as NumPy's, and results come back
as theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from linkwright.base.arguments import GIBIBYTE, check_names
from linkwright.errors import DtypeError, KernelError, ModelError, ShapeError
from linkwright.kernels import foreign_arrays as foreign
from linkwright.kernels.back_ends import compiled
from linkwright.kernels.cuda.device_arrays import Home, cupy, home_of
from linkwright.kernels.cuda.device_kernel import DeviceKernel, MarchKernel, Walked, calls_at_once
from linkwright.kernels.foreign_arrays import library, on_device
from linkwright.kernels.variant import Signature
from linkwright.mechanism import Mechanism
from linkwright.simulation.integrators import tableau_of
from linkwright.simulation.rollout import (
    KEPT,
    Rollout,
    check,
    forces_of,
    leading_shape,
    outputs_of,
    samples_of,
)
from linkwright.simulation.run_settings import Samples
from linkwright.simulation.step_parts import Parts
from linkwright.simulation.step_programs import first_point, marching
from linkwright.tape.program import Program

Shape = tuple[int, ...]
_ROOM = 2**28  # bytes of states that are kept for a function of them
_PROGRAMS = 16  # whose code a mechanism keeps
_PRECISIONS = ("float64", "float32")


def rollout_in_kind(plain: Callable[..., Rollout], mech: Mechanism, **arguments: Any) -> Rollout:
    """The rollout of q0, v0, tau and parameters, some of them another library's; `plain` is that of NumPy arrays."""
    arrays = {name: arguments[name] for name in ("q0", "v0", "tau") if arguments.get(name) is not None}
    arrays |= {f"parameter {name!r}": value for name, value in (arguments.get("parameters") or {}).items()}
    arrays = {name: value for name, value in arrays.items() if not callable(value) or library(value)}
    kinds = foreign.check("rollout", arrays)
    values = list(arrays.values())
    if "torch" in kinds and foreign.differentiated(values):
        raise KernelError(
            "rollout: motions are not differentiated; give q0.detach() and the like, or call it inside torch.no_grad()"
        )
    if any(map(on_device, values)):
        return _on_device(mech, arrays, **arguments)
    back = foreign.in_kind(next(a for a in values if library(a)), values)
    for name in ("q0", "v0", "tau"):
        arguments[name] = foreign.as_numpy(arguments[name])
    if arguments.get("parameters"):
        arguments["parameters"] = {name: foreign.as_numpy(value) for name, value in arguments["parameters"].items()}
    motions = plain(mech, **arguments)
    names = ("q", "v", "a", "y", "final_q", "final_v")
    changed: dict[str, Any] = {n: None if getattr(motions, n) is None else back(getattr(motions, n)) for n in names}
    return replace(motions, **changed)


def _on_device(
    mech: Mechanism,
    arrays: Mapping[str, Any],
    *,
    q0: Any,
    v0: Any,
    dt: float,
    steps: int,
    tau: Any,
    method: str,
    t_start: float,
    parameters: Mapping[str, Any] | None,
    samples: Samples,
) -> Rollout:
    check(mech, method, steps, samples.every, dt, t_start)
    nowhere = np.zeros((0, mech.nq)), np.zeros((0, mech.nv))  # laws are tried where the mechanism is neutral
    law = forces_of(mech, tau, (0,), steps, *nowhere, t_start)[0] if callable(tau) and not library(tau) else None
    names, function = outputs_of(mech, samples.outputs, *nowhere, t_start)
    check_names("parameter", parameters or (), mech.parameters)
    leader = next(value for value in arrays.values() if on_device(value))
    with home_of(leader) as home:
        state = _State(mech, home, arrays)
        free = tuple(parameters or ())
        state.places(steps, law, [f"parameter {name!r}" for name in free])
        keyed = (None if law is None else law.digest, free, method, state.sequence, state.precision, home.device)
        code = _code(mech, keyed, lambda: _Code(mech, law, free, method, state.sequence, state.precision))
        store = _Store(home, state, names, function, steps, samples.every, mech)
        if state.count:
            state.begin(code, t_start)
            store.first(t_start)
            store.march(code, t_start, dt)
        return store.result(t_start, dt)


@dataclass(eq=False)
class _Code:
    """What runs on the current device for one kind of rollout."""

    mech: Mechanism
    law: Program | None
    free: tuple[str, ...]
    method: str
    sequence: bool
    precision: str

    def __post_init__(self) -> None:
        parts = Parts(self.mech.programs, self.law, self.free)
        program = first_point(parts)
        self.begin = DeviceKernel(Signature.of(program, ()), program)
        step = marching(parts, tableau_of(self.method), anew=self.sequence)
        self.march = MarchKernel(step, self.precision)
        self.work = sum(step.count().values())
        del self.mech  # which keeps this


_codes: WeakKeyDictionary[Mechanism, dict[Any, _Code]] = WeakKeyDictionary()


def _code(mech: Mechanism, key: tuple[Any, ...], make: Callable[[], _Code]) -> _Code:
    codes = _codes.setdefault(mech, {})
    code = codes.pop(key, None) or make()
    while len(codes) >= _PROGRAMS:
        codes.pop(next(iter(codes)), None)
    codes[key] = code
    return code


class _State:
    """The motions' initial states, forces and parameters as CuPy's arrays, one row per motion."""

    def __init__(self, mech: Mechanism, home: Home, arrays: Mapping[str, Any]) -> None:
        self.mech, self.home = mech, home
        self.arrays: dict[str, Any] = {}
        self.precision, self.chief = "", ""
        for name, value in arrays.items():
            if on_device(value):
                self._take(name, home.array(value))
        for name, value in arrays.items():
            if name not in self.arrays:
                self._number(name, value)
        parameters = {name: x for name, x in self.arrays.items() if name not in ("q0", "v0", "tau")}
        self.shape = leading_shape(mech, self.arrays["q0"], self.arrays["v0"], parameters)
        self.count = math.prod(self.shape)
        if mech.closed and self.precision == "float32":
            text = f"rollout: loops and drivers of {mech.name!r} cannot be kept closed in float32; give float64 arrays"
            raise DtypeError(text, given="float32", wanted="float64")

    def _take(self, name: str, array: Any) -> None:
        dtype = str(array.dtype)
        if dtype not in _PRECISIONS or (self.precision and dtype != self.precision):
            wanted = f"{self.precision}, as {self.chief} has" if self.precision else "float64 or float32"
            raise DtypeError(f"rollout: {name} has dtype {dtype}; needed is {wanted}", given=dtype, wanted=wanted)
        if int(array.device.id) != self.home.device:
            text = f"rollout: {self.chief} is on GPU {self.home.device} and {name} on GPU {array.device.id}"
            raise KernelError(f"{text}; all must be on one")
        self.arrays[name] = array
        if not self.precision:
            self.precision, self.chief = dtype, name

    def _number(self, name: str, value: Any) -> None:
        """Single numbers may come from outside."""
        if np.ndim(value):
            hint = self.home.hint.format(name=name, device=self.home.device)
            text = f"rollout: {name} is not on the GPU and {self.chief} is: give {hint}"
            raise DtypeError(text, given=type(value).__name__, wanted=f"{self.precision} on the GPU")
        self.arrays[name] = cupy().full((), float(value), self.precision)

    def _spread(self, name: str, shape: Shape, shapes: str) -> Any:
        array = self.arrays[name]
        try:
            np.broadcast_shapes(array.shape, shape)
            return cupy().ascontiguousarray(cupy().broadcast_to(array, shape))
        except ValueError:
            raise ShapeError(
                f"{name} has shape {array.shape}; give {shapes}", given=array.shape, wanted=shape
            ) from None

    def places(self, steps: int, law: Program | None, free: Sequence[str]) -> None:
        """What is given with every step: forces and parameters, where there are any."""
        cp, shape, nv = cupy(), self.shape, self.mech.nv
        self.sequence = False
        self.constant: list[Walked] = []
        self.firsts: list[Any] = []  # what the first states are given
        if law is None:
            tau = self.arrays.get("tau")
            if tau is None:
                tau = cp.zeros(nv, self.precision)
            shapes = f"({nv},), {(*shape, nv)}, or for every step {(*shape, steps, nv)}"
            self.sequence = tau.ndim == len(shape) + 2 and tau.shape[-2] == steps
            self.arrays["tau"] = tau
            if tau.shape == (nv,) or (self.sequence and tau.size == steps * nv and tau.shape[-1] == nv):
                same = cp.ascontiguousarray(tau)
                self._give(same, 0, nv if self.sequence else 0, same.reshape(-1)[:nv])
            elif self.sequence:
                forces = self._spread("tau", (*shape, steps, nv), shapes)
                self._give(forces, steps * nv, nv, forces.reshape(self.count, steps, nv)[:, 0])
            else:
                forces = self._spread("tau", (*shape, nv), shapes)
                self._give(forces, nv, 0, forces.reshape(self.count, nv))
        if free:
            p = cp.empty((self.count, len(free)), self.precision)
            for k, name in enumerate(free):
                p[:, k] = self._spread(name, shape, f"a number or {shape}").reshape(self.count)
            self._give(p, len(free), 0, p)

    def _give(self, array: Any, state: int, row: int, first: Any) -> None:
        self.constant.append(Walked(array, state, row))
        self.firsts.append(first)

    def begin(self, code: _Code, t_start: float) -> None:
        """Put the first states where they can be, and find their accelerations."""
        cp, home, count, mech = cupy(), self.home, self.count, self.mech
        sizes = {"q": mech.nq, "v": mech.nv, "a": mech.nv}
        self.now = {name: home.empty((count, n), self.precision) for name, n in sizes.items()}
        self.now["n"] = cp.zeros(count, self.precision)
        rows = [self._spread(name, (*self.shape, n), f"(..., {n})") for name, n in (("q0", mech.nq), ("v0", mech.nv))]
        rows = [x.reshape(count, x.shape[-1]) for x in rows]
        time = cp.full((), t_start, self.precision)
        code.begin([*rows, time, *self.firsts], out=[self.now[name] for name in "qva"])


class _Store:
    """The samples, and the march to them."""

    def __init__(
        self,
        home: Home,
        state: _State,
        names: tuple[str, ...],
        function: Program | None,
        steps: int,
        every: int,
        mech: Mechanism,
    ) -> None:
        self.home, self.state, self.function, self.every = home, state, function, every
        self.widths = {"q": mech.nq, "v": mech.nv, "a": mech.nv}
        self.at, shapes = samples_of(mech, names, function, steps, every)
        self.number = np.dtype(state.precision).itemsize
        rows, count = len(self.at), state.count
        try:
            order = (count, rows) if home.dense else (rows, count)
            self.arrays = {name: home.empty((*order, *shape), state.precision) for name, shape in shapes.items()}
        except MemoryError as error:
            size = self.number * rows * count * sum(math.prod(s) for s in shapes.values())
            text = f"{rows} samples of {count} motions take {size / GIBIBYTE:.3g} GiB, which GPU {home.device} has not"
            advice = "take fewer with lw.Samples(every=...), choose its outputs, or give float32"
            raise ModelError(f"{text}; {advice}") from error

    def rows(self, name: str, first: int, last: int) -> Any:
        array = self.arrays[name]
        return array[:, first:last] if self.home.dense else array[first:last]

    def first(self, t: float) -> None:
        """The sample of the initial states."""
        for name in self.arrays:
            if name != "y":
                self.rows(name, 0, 1)[...] = self._whole(self.state.now[name])
        if self.function is not None:
            self._evaluate(0, np.array([t]), *(self._whole(self.state.now[name]) for name in "qv"))

    def _whole(self, array: Any) -> Any:
        """States as a sample of them."""
        count, n = array.shape
        return array.reshape(count, 1, n) if self.home.dense else array.reshape(1, count, n)

    def march(self, code: _Code, t_start: float, dt: float) -> None:
        """All steps, in launches that are not long."""
        cp, state = cupy(), self.state
        settings = Walked(cp.asarray(np.array([t_start, dt], state.precision)), 0)
        most = calls_at_once(code.work, state.count)
        done, k = 0, 0
        while k + 1 < len(self.at):
            rows = self._rows_at_once(most, len(self.at) - 1 - k)
            goal, targets, spare = int(self.at[k + rows]), *self._targets(k + 1, k + 1 + rows)
            while done < goal:
                calls = min(goal - done, most if rows == 1 else goal - done)
                here = targets if done + calls == goal else [None] * 4
                inputs = [x._replace(array=_later(x, done)) for x in state.constant]
                now = [Walked(state.now[name], self.widths.get(name, 1)) for name in "qvan"]
                every = self.every if calls > self.every else calls
                last = [state.now[name] for name in "qvan"]
                code.march([*now, settings, *inputs], last, here, state.count, calls, every)
                done += calls
            if self.function is not None:
                self._evaluate(k + 1, t_start + dt * self.at[k + 1 : k + 1 + rows], *spare)
            k += rows

    def _rows_at_once(self, most: int, left: int) -> int:
        rows = max(1, most // self.every)
        if self.function is not None:
            size = self.number * self.state.count * (self.widths["q"] + self.widths["v"])
            rows = min(rows, max(1, _ROOM // max(size, 1)))
        return min(rows, left)

    def _targets(self, first: int, last: int) -> tuple[list[Walked | None], list[Any]]:
        """Where a launch stores q, v, a and the number of steps; and q and v, where a function needs them."""
        count, spare = self.state.count, []
        if self.function is not None:
            for name in "qv":
                n = self.widths[name]
                shape = (count, last - first, n) if self.home.dense else (last - first, count, n)
                spare.append(cupy().empty(shape, self.state.precision))
            return [*(self._walked(x) for x in spare), None, None], spare
        walked = [self._walked(self.rows(n, first, last)) if n in self.arrays else None for n in KEPT]
        return [*walked, None], []

    def _walked(self, array: Any) -> Walked:
        steps = [s // self.number for s in array.strides]
        return Walked(array, steps[0], steps[1]) if self.home.dense else Walked(array, steps[1], steps[0])

    def _evaluate(self, row: int, times: Any, q: Any, v: Any) -> None:
        """The function of some samples."""
        assert self.function is not None
        t = cupy().asarray(np.asarray(times, self.state.precision))
        t = t.reshape(1, len(times)) if self.home.dense else t.reshape(len(times), 1)
        compiled(self.function).device([t, q, v], out=self.rows("y", row, row + len(times)))

    def result(self, t_start: float, dt: float) -> Rollout:
        shape, home, state = self.state.shape, self.home, self.state

        def laid(name: str) -> Any:
            if name not in self.arrays:
                return None
            array = home.back(self.arrays[name])
            array = array if home.dense else home.turned(array)
            return array.reshape((*shape, *array.shape[1:]))

        if not state.count:
            state.now = {n: home.empty((0, self.widths[n]), state.precision) for n in "qv"}
        final = [home.back(state.now[n]).reshape((*shape, self.widths[n])) for n in "qv"]
        q, v, a, y = (laid(name) for name in (*KEPT, "y"))
        return Rollout(t_start + dt * self.at, q, v, a, y, *final)


def _later(walked: Walked, call: int) -> Any:
    """An array with a row for every call, from a call on; others as they are."""
    if not walked.row:
        return walked.array
    flat = walked.array.reshape(-1)
    return flat[call * walked.row :]
