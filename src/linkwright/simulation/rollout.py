"""`lw.rollout`: many motions of one mechanism in batches and threads of one compiled program, and how a notebook
shows them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.base.arguments import (
    check_memory,
    check_names,
    empty,
    finite_number,
    positive_number,
    real_array,
    takes_settings,
    whole_number,
)
from linkwright.base.arrays import Floats
from linkwright.base.html import beside, heading, shown, span, table
from linkwright.dynamics.closed.redundancy import warned
from linkwright.errors import ModelError, ShapeError
from linkwright.kernels.foreign_arrays import finite, library
from linkwright.mechanism import Mechanism
from linkwright.simulation.integrators import Tableau, tableau_of
from linkwright.simulation.python_laws import law as law_of
from linkwright.simulation.run_settings import Samples, refuse_immobile
from linkwright.simulation.state_derivatives import Slopes
from linkwright.simulation.step_control import CLOSED
from linkwright.simulation.step_programs import LANES, Kernels, in_batch, many_steps
from linkwright.tape.program import Program
from linkwright.viewer.notebook import Chart, svg
from linkwright.viewer.page import spread

#: Motions, samples and coordinates of a rollout that are drawn.
MOTIONS, SAMPLES, COORDINATES = 24, 80, 3


def output(motions: Rollout) -> str:
    """The output for motions side by side."""
    title = heading("rollout", repr(motions).removeprefix("<Rollout: ").removesuffix(">"))
    arrays = {name: getattr(motions, name) for name in ("time", "q", "v", "a", "y", "final_q", "final_v")}
    rows = [
        (name, " × ".join(f"{n:,}" for n in array.shape), *span(array))
        for name, array in arrays.items()
        if array is not None
    ]
    return shown(title, beside(*_curves(motions)), table(("array", "shape", "min", "max"), rows))


def _curves(motions: Rollout) -> list[str]:
    """The first coordinates of some of the motions, each a faint line."""
    if not isinstance(motions.q, np.ndarray) or motions.q.ndim < 2 or not motions.q.size or len(motions) < 2:
        return []
    q = motions.q.reshape(-1, *motions.q.shape[-2:])
    some, when = spread(len(q), MOTIONS), spread(len(motions), SAMPLES)
    part = np.asarray(q[np.ix_(some, when)], float)
    return [
        svg(Chart(f"q[{k}]", motions.time[when], part[:, :, k].T, faint=len(some) > 1))
        for k in range(min(q.shape[-1], COORDINATES))
    ]


#: Seconds that one call of native code may take: what a person who presses Ctrl-C waits.
PIECE = 0.2
KEPT = ("q", "v", "a")
_FEWER = "take fewer with lw.Samples(every=...), or choose its outputs"


@dataclass(frozen=True, eq=False)
class Rollout:
    """Motions side by side: arrays (..., samples, n), the leading axes those of the initial states.

    time: the times of the samples (s), (samples,). q, v, a: coordinates, rates and accelerations of the spanning tree,
    None where `lw.Sampling` does not ask for them; y: the values of the function that it asks for, or None. final_q,
    final_v: the last states (..., nq) and (..., nv).
    """

    time: Floats  # (samples,)
    q: Floats | None  # None where it was not asked for
    v: Floats | None
    a: Floats | None
    y: Floats | None  # what the function `outputs` gave
    final_q: Floats  # (..., nq)
    final_v: Floats

    @property
    def ok(self) -> NDArray[np.bool_]:
        """(...): whether the last state of a motion is finite."""
        good: NDArray[np.bool_] = finite(self.final_q) & finite(self.final_v)
        return good

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        states = int(np.prod(self.final_q.shape[:-1], dtype=np.int64))
        bad = int((~self.ok).sum())
        end = f"; {bad} without finite numbers at the end" if bad else ""
        return f"<Rollout: {states} motions, {len(self)} samples to t = {self.time[-1]:g} s{end}>"

    def _repr_html_(self) -> str:

        return output(self)


@takes_settings(samples=Samples)
def rollout(
    mech: Mechanism,
    q0: ArrayLike,
    v0: ArrayLike,
    dt: float,
    steps: int,
    tau: ArrayLike | Callable[[Any, Any, Any], Any] | None = None,
    *,
    method: str = "rk4",
    t_start: float = 0.0,
    parameters: Mapping[str, ArrayLike] | None = None,
    samples: Samples = Samples(),
) -> Rollout:
    """Many motions of one mechanism in steps of one length, as a Rollout.

    Main arguments:

    mech: the mechanism.

    q0, v0: the initial coordinates (..., nq) and rates (..., nv) of the spanning tree; their leading shapes, which are
    those of the batch, are broadcast.

    dt: the length of a step (s). steps: their number.

    tau: the joint forces (N, N m): None, constant (..., nv), for each step (..., steps, nv), or a law tau(t, q, v) in
    NumPy syntax. With forces for each step, "a" of a sample is by the forces of the step that ends there.

    method: "rk4" (the default), "rk45", "dop853" or "semi-implicit-euler".

    t_start: the time (s) of the initial states; 0 by default.

    parameters: other values of parameters of the model, a number for all motions or an array (...); none by default.
    They are inputs of one compiled program.

    Other arguments: `samples`, an `lw.Samples` (which steps and which arrays are stored); its defaults unless given.

    A motion that blows up, or whose loops and drivers cannot be closed any more, is NaN from there on, and the others
    continue: see `ok`. States on a GPU, of CuPy, PyTorch or JAX, run there and stay there: see docs/gpu.md. Raises
    NameNotFound for a method, output or parameter that there is not, ShapeError and DtypeError for arrays, ModelError
    for a law that cannot be compiled, ArgumentError for a field of Samples that is given as an argument.

    >>> import numpy as np, linkwright as lw
    >>> motions = lw.rollout(lw.chain(2), np.zeros((100, 2)), np.ones(2), dt=1e-3, steps=50)
    >>> motions.q.shape
    (100, 51, 2)
    """
    mech = warned(mech.auxiliary.nearest_with_free(parameters or ()))
    if any(map(library, (q0, v0, tau, *(parameters or {}).values()))):
        from linkwright.simulation.rollout_device import rollout_in_kind  # weight: kernels.cuda

        arrays = {"q0": q0, "v0": v0, "tau": tau}
        options = {"method": method, "t_start": t_start, "parameters": parameters, "samples": samples}
        return rollout_in_kind(rollout, mech, **arrays, dt=dt, steps=steps, **options)
    check(mech, method, steps, samples.every, dt, t_start)
    q, v, free = real_array("q0", q0), real_array("v0", v0), _parameters(mech, parameters or {})
    shape = leading_shape(mech, q, v, free)
    q, v = (np.array(np.broadcast_to(x, (*shape, x.shape[-1]))).reshape(-1, x.shape[-1]) for x in (q, v))
    p = np.stack([np.broadcast_to(x, shape).reshape(-1) for x in free.values()], axis=1) if free else None
    law, force, sequence = forces_of(mech, tau, shape, steps, q, v, t_start)
    kernels, tableau = Kernels(mech, law, tuple(parameters or ())), tableau_of(method)
    names, function = outputs_of(mech, samples.outputs, q, v, t_start)
    store = _Store(names, function, len(q), steps, samples.every, mech)
    work = _Work(kernels, tableau, q, v, dt, t_start, p, anew=sequence is not None)
    work.begin(force if sequence is None else sequence[:, 0])
    store.put(0, t_start, work)
    done = 0
    for k in range(1, len(store.at)):
        goal = int(store.at[k])
        while done < goal:
            if sequence is not None:
                done += work.go(1, done, sequence[:, done], store.rows(k))
            else:
                done += work.go(goal - done, done, force, store.rows(k))
        store.put(k, t_start + done * dt, work)
    return store.result(shape, t_start, dt, work)


def check(mech: Mechanism, method: str, steps: Any, every: Any, dt: Any, t_start: Any) -> None:
    tableau_of(method)
    samples = whole_number("steps", steps, 1) // whole_number("every", every, 1) + 1
    check_memory(f"rollout: {samples:,} samples", samples, _FEWER)
    positive_number("dt", dt)
    finite_number("t_start", t_start)
    refuse_immobile(mech)


def leading_shape(mech: Mechanism, q: Any, v: Any, parameters: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape of the batch of motions: of the states q (..., nq) and v (..., nv), and of parameters (...)."""
    for name, x, n in (("q0", q, mech.nq), ("v0", v, mech.nv)):
        if x.ndim < 1 or x.shape[-1] != n:
            raise ShapeError(f"{name} has shape {x.shape}; give (..., {n})", given=x.shape, wanted=(n,))
    try:
        shape = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    except ValueError:
        text = f"q0 has the leading shape {q.shape[:-1]} and v0 {v.shape[:-1]}; make them agree"
        raise ShapeError(text, given=v.shape[:-1], wanted=q.shape[:-1]) from None
    for name, x in parameters.items():
        try:
            shape = np.broadcast_shapes(shape, x.shape)
        except ValueError:
            text = f"{name} has shape {x.shape}, and the motions {shape}; make them agree"
            raise ShapeError(text, given=x.shape, wanted=shape) from None
    return shape


def _parameters(mech: Mechanism, parameters: Mapping[str, Any]) -> dict[str, Floats]:
    """The values of parameters as arrays of finite numbers, by what messages call them."""
    check_names("parameter", parameters, mech.parameters)
    arrays = {f"parameter {name!r}": real_array(f"parameter {name!r}", values) for name, values in parameters.items()}
    for name, x in zip(parameters, arrays.values(), strict=True):
        if not np.isfinite(x).all():
            raise ModelError(f"parameter {name!r} has a value that is no finite number", element=name)
    return arrays


def forces_of(
    mech: Mechanism, tau: Any, shape: tuple[int, ...], steps: int, q: Floats, v: Floats, t: float
) -> tuple[Program | None, Floats | None, Floats | None]:
    """A recorded law, or constant forces, or forces for every step (B, steps, nv)."""
    nv, states = mech.nv, len(q)
    if tau is None:
        return None, np.zeros(nv), None
    if callable(tau):
        law = law_of("tau", tau, t, *_one(mech, q, v), (nv,))
        if law.program is None:
            text = f"tau cannot be compiled into a rollout: {law.reason}; write it in NumPy syntax, or use lw.simulate"
            raise ModelError(text)
        return law.program, None, None
    force = real_array("tau", tau)
    sequence = force.ndim == len(shape) + 2 and force.shape[-2] == steps
    wanted = (*shape, steps, nv) if sequence else (*shape, nv)
    try:
        full = np.broadcast_to(force, wanted)
    except ValueError:
        text = f"tau has shape {force.shape}; give ({nv},), {(*shape, nv)}, or for every step {(*shape, steps, nv)}"
        raise ShapeError(text, given=force.shape, wanted=wanted) from None
    if sequence:
        return None, None, full.reshape(states, steps, nv)
    return None, np.ascontiguousarray(full.reshape(states, nv)), None


def _one(mech: Mechanism, q: Floats, v: Floats) -> tuple[Floats, Floats]:
    """A state at which laws are tried."""
    return (q[0], v[0]) if len(q) else (mech.neutral(), np.zeros(mech.nv))


def outputs_of(mech: Mechanism, outputs: Any, q: Floats, v: Floats, t: float) -> tuple[tuple[str, ...], Program | None]:
    if callable(outputs):
        one = _one(mech, q, v)
        shape = np.shape(outputs(t, *(x.copy() for x in one)))
        law = law_of("outputs", outputs, t, *one, shape)
        if law.program is None:
            raise ModelError(f"outputs cannot be compiled: {law.reason}; write it in NumPy syntax")
        return (), law.program
    names = (outputs,) if isinstance(outputs, str) else tuple(outputs)
    check_names("output", names, KEPT)
    return names, None


def samples_of(
    mech: Mechanism, names: tuple[str, ...], function: Program | None, steps: int, every: int
) -> tuple[NDArray[Any], dict[str, tuple[int, ...]]]:
    """The numbers of the steps after which samples are stored, and the shape of each output of one motion."""
    widths = {"q": mech.nq, "v": mech.nv, "a": mech.nv}
    shapes: dict[str, tuple[int, ...]] = {name: (widths[name],) for name in names}
    if function is not None:
        shapes["y"] = function.outputs[0].shape
    return np.unique(np.append(np.arange(0, steps + 1, every), steps)), shapes


class _Work:
    """The states now, and the kernel that takes them on."""

    def __init__(
        self,
        kernels: Kernels,
        tableau: Tableau,
        q: Floats,
        v: Floats,
        dt: float,
        t_start: float,
        p: Floats | None,
        *,
        anew: bool,
    ) -> None:
        self.kernels, self.q, self.v = kernels, q, v
        self.p = () if p is None else (np.ascontiguousarray(p),)
        self.a = np.zeros_like(v)
        self.dt, self.t_start = float(dt), float(t_start)
        self.kernel = kernels.of(many_steps, tableau, anew=anew)
        self._each = 1e-9 * max(self.kernel.signature.work, 1) * max(len(q), 1)  # seconds per step, a first guess
        self._spare: dict[str, list[Floats]] = {}

    def begin(self, tau: Floats | None) -> None:
        """Put the first states where they can be, and find their accelerations."""
        p = self.p[0] if self.p else None
        slopes = Slopes(self.kernels, None, None if tau is None else np.ascontiguousarray(tau), p)
        self.q, self.v, self.a, residuals = slopes.ended(np.full(len(self.q), self.t_start), self.q, self.v)
        is_open = ~(residuals <= CLOSED)
        for x in (self.q, self.v, self.a):
            x[is_open] = np.nan

    def go(self, most: int, done: int, tau: Floats | None, rows: Mapping[str, Floats]) -> int:
        """Some steps, as many as are not felt to take long; if they are all, they end in `rows` where there are any."""
        number = int(np.clip(PIECE / self._each, 1, most))
        since = perf_counter()
        settings = np.array([self.t_start, self.dt, float(done), float(number)])
        if len(self.q) < LANES:
            self.q, self.v, self.a = in_batch(self.kernel, self.q, self.v, self.a, settings, *_some(tau), *self.p)
        else:
            here = {"q": self.q, "v": self.v, "a": self.a}
            out = [self._target(name, x, rows if number == most else {}) for name, x in here.items()]
            self.q, self.v, self.a = self.kernel(self.q, self.v, self.a, settings, *_some(tau), *self.p, out=out)
        self._each = max((perf_counter() - since) / number, 1e-9)
        return number

    def _target(self, name: str, now: Floats, rows: Mapping[str, Floats]) -> Floats:
        """Where the next states go: their row of the samples, or one of two pieces of memory in turn."""
        if name in rows:
            return rows[name]
        spare = self._spare.setdefault(name, [np.empty_like(now), np.empty_like(now)])
        return spare[1] if now is spare[0] else spare[0]


def _some(tau: Floats | None) -> tuple[Floats, ...]:
    return () if tau is None else (np.ascontiguousarray(tau),)


class _Store:
    """The samples: one row of states for each."""

    def __init__(
        self, names: tuple[str, ...], function: Program | None, states: int, steps: int, every: int, mech: Mechanism
    ) -> None:
        self.function = function
        self.at, shapes = samples_of(mech, names, function, steps, every)
        samples, what = len(self.at), f"rollout: {len(self.at):,} samples of {states:,} motions"
        check_memory(what, samples * states * sum(math.prod(shape) for shape in shapes.values()), _FEWER)
        self.arrays = {name: empty(what, (samples, states, *shape), _FEWER) for name, shape in shapes.items()}

    def rows(self, k: int) -> dict[str, Floats]:
        """Where the states of a sample are kept."""
        return {name: array[k] for name, array in self.arrays.items() if name != "y"}

    def put(self, k: int, t: float, work: _Work) -> None:
        for name, row in self.rows(k).items():
            if not np.shares_memory(row, getattr(work, name)):
                row[...] = getattr(work, name)
        if self.function is not None:
            self.arrays["y"][k] = self.function(np.full(len(work.q), t), work.q, work.v)

    def result(self, shape: tuple[int, ...], t_start: float, dt: float, work: _Work) -> Rollout:
        def laid(name: str) -> Floats | None:
            if name not in self.arrays:
                return None
            array = np.moveaxis(self.arrays[name], 0, 1)
            return array.reshape(*shape, *array.shape[1:])

        final_q, final_v = (x.reshape(*shape, x.shape[-1]) for x in (work.q, work.v))
        q, v, a, y = (laid(name) for name in (*KEPT, "y"))
        return Rollout(t_start + dt * self.at, q, v, a, y, final_q, final_v)
