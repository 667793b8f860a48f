"""Derivatives of simulated motion, through a fixed-step method: exact for the numbers that it computes.

Forward: tangents of the state are taken along with every step, all parameters in a batch. In reverse: the states are
kept, and the adjoints of the outputs go back through the steps, at a cost that does not grow with the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from linkwright.base.arguments import positive_number
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.design.initial_slopes import InitialState
from linkwright.design.recorded_functions import DesignRequest, Evaluator, Undefined, second_derivatives
from linkwright.errors import AssemblyError, ModelError
from linkwright.kernels.kernel import Kernel
from linkwright.mechanism import Mechanism
from linkwright.outputs.derivatives import Rows, Series
from linkwright.simulation.integrators import tableau_of
from linkwright.simulation.step_parts import Composer, Parts
from linkwright.simulation.step_programs import held_steps
from linkwright.simulation.steps import ending, fixed_step
from linkwright.spatial.algebra import Array
from linkwright.tape.build import Ref, record
from linkwright.tape.program import Program

#: Newton's rounds after every step: a step leaves a miss of its own error, a round its square.
ROUNDS = 2


class StraightParts(Parts):
    """The parts of an integrator whose projection takes a fixed number of rounds."""

    def _close(self, b: Composer, q: Ref, t: Ref, q_out: Ref) -> tuple[Ref, Ref]:
        program = self._program("position_correction")
        size, count = b.number("size"), b.number("count")
        for k in range(ROUNDS):
            there = q_out if k == ROUNDS - 1 else b.spare(f"q_round{k}", self.nq)
            dv, phi = b.spare(f"dq{k}", self.nv), b.spare(f"phi{k}", program.outputs[1].size)
            self._run(b, program, [dv, phi], q=q, t=t)
            b.run(self.integrate(), [q, dv], [there])
            if k == ROUNDS - 1:
                b.total_weighted(
                    lambda x, unit: (x / unit) @ (x / unit), [phi], self.factory.constraint_units, [], [size]
                )
            q = there
        b.call(lambda s: s * 0.0 + float(ROUNDS), [size], [count])
        return size, count


#: Of an output's size, how much half the step may change it, where the step is chosen here.
ACCURACY = 3e-5
MOST = 2**22  # steps
OPEN = 1e-16  # the sum of squares of the constraints before the last round, lengths as parts of the mechanism's


class Dynamic(Evaluator):
    """The rows of a simulated motion."""

    def __init__(
        self,
        mech: Mechanism,
        names: Sequence[str],
        series: Series,
        times: Floats,
        *,
        method: str = "rk4",
        dt: float | None = None,
    ) -> None:
        self.tableau = tableau_of(method, "method with fixed steps")
        if len(times) < 2:
            raise ModelError("a simulation needs two times or more; give times=... that increase")
        super().__init__(mech, names, series, times)
        self.dt = None if dt is None else positive_number("dt", dt)
        self.parts = StraightParts(mech.programs, free=self.names)
        self.initial_state = InitialState(self, float(times[0]))

    def __call__(self, values: Floats, order: int) -> Rows:
        if self.dt is None:
            self.dt = self._chosen(values)
        run = self._begun(values, order)
        rows = [self._rows(run, float(self.times[0]))]
        for t0, t1 in zip(self.times[:-1], self.times[1:], strict=True):
            self._advance(run, float(t0), float(t1), self.dt)
            rows.append(self._rows(run, float(t1)))
        stacked = [np.array(x) for x in zip(*rows, strict=True)]
        return Rows(self.times, *stacked)

    def _chosen(self, values: Floats) -> float:
        """A step at which half of it changes no row by more than a small part."""
        span = float(self.times[-1] - self.times[0])
        dt = min(float(np.diff(self.times).max()), span / 50.0)
        before: Floats | None = None
        while span / dt < MOST:
            self.dt = dt
            try:
                now = self(values, 0).values
            except Undefined:
                now = None
            if now is not None and before is not None:
                size = np.abs(now).max(axis=0, initial=0.0) + 1e-9
                if (np.abs(now - before) / size).max(initial=0.0) < ACCURACY:
                    return dt
            before, dt = now, 0.5 * dt
        raise Undefined(f"no step down to {dt:.3g} s follows the motion; give dt=..., or a method for stiff models")

    # -- the state and its tangents -------------------------------------------------------------------------
    def _begun(self, values: Floats, order: int, *, only_start: bool = False) -> _Run:
        try:
            q, v, *slopes = self.initial_state.at(values, order)
        except AssemblyError as error:
            raise Undefined(str(error)) from None
        run = _Run(values, order, [q, v], [(x[: len(q)], x[len(q) :]) for x in slopes])
        if not only_start:
            self._push(run, "initial acceleration", [np.array(self.times[0]), np.zeros(self.mech.nv)])
        return run

    def _advance(self, run: _Run, t0: float, t1: float, dt: float) -> None:
        number = max(1, int(np.ceil((t1 - t0) / dt * (1.0 - 1e-9))))
        settings = np.array([t0, (t1 - t0) / number, float(number)])
        worst = self._push(run, "steps", [settings, np.zeros(self.mech.nv)])
        _refuse_lost(run.state, worst, t1)

    def _push(self, run: _Run, name: str, others: list[Floats]) -> float:
        """Take the state through a program, with its tangents; the gap of the loops."""
        k = len(run.values)
        inputs = [*run.state[:2], *others, run.values]
        still = [np.zeros(np.shape(x)) for x in others]
        if run.order == 0:
            after = self._program(name, 0)(*inputs)
            run.state = [np.asarray(x) for x in after[:3]]
            return float(after[3][0]) if len(after) > 3 else 0.0
        if run.order == 1:
            tangents = [*run.first[:2], *(np.zeros((k, *x.shape)) for x in still), np.eye(k)]
            after = self._program(name, 1)(*inputs, *tangents)
            count = len(after) // 2
            run.first = [np.ascontiguousarray(x) for x in after[count : count + 3]]
        else:
            one, other = run.pairs
            zero = [np.zeros((len(one), *x.shape)) for x in still]
            eye = np.eye(k)
            directions = [[*(x[i] for x in run.first[:2]), *zero, eye[i]] for i in (one, other)]
            mixed = [*run.second[:2], *zero, np.zeros((len(one), k))]
            after = self._program(name, 2)(*inputs, *directions[0], *directions[1], *mixed)
            count = len(after) // 4
            run.first = [np.ascontiguousarray(x[run.same]) for x in after[count : count + 3]]
            run.second = [np.ascontiguousarray(x) for x in after[3 * count : 3 * count + 3]]
        run.state = [np.ascontiguousarray(x[0]) for x in after[:3]]
        return float(after[3][0][0]) if count > 3 else 0.0

    def _program(self, name: str, order: int) -> Kernel:
        """A program, or with its derivatives in given directions."""
        if order:
            return self._program(name, order - 1).forward
        parts, tableau = self.parts, self.tableau

        def steps() -> Program:
            return ending(parts) if name == "initial acceleration" else held_steps(parts, tableau)

        return self.mech.kernels.further(DesignRequest(name, self.names, method=self.tableau.name), steps)

    # -- in reverse -------------------------------------------------------------------------------------------
    def pulled(self, values: Floats, seeded: Callable[[Rows], tuple[Floats, Floats]]) -> tuple[Rows, Floats]:
        """The rows, and derivatives (o, k) of numbers that change with them, by `seeded`: (o, T, r) and (o, k)."""
        if self.dt is None:
            self.dt = self._chosen(values)
        run = self._begun(values, 1, only_start=True)
        tau = np.zeros(self.mech.nv)
        start = [*run.state, np.array(self.times[0]), tau, values]
        state = self._closed(self._straight("initial acceleration")(*start), float(self.times[0]))
        inputs: list[list[Any]] = []  # what every step was given
        samples, rows = [len(inputs)], [np.concatenate([*state, values])]
        step = self._straight("step")
        for t0, t1 in zip(self.times[:-1], self.times[1:], strict=True):
            number = max(1, int(np.ceil((t1 - t0) / self.dt * (1.0 - 1e-9))))
            h = (t1 - t0) / number
            for k in range(number):
                inputs.append([*state, np.array(t0 + k * h), np.array(h), tau, values])
                state = self._closed(step(*inputs[-1]), t1)
            samples.append(len(inputs))
            rows.append(np.concatenate([*state, values]))
        z = np.array(rows)
        outputs = Rows(self.times, np.asarray(self._outputs(z, self.times)))
        if not np.isfinite(outputs.values).all():
            raise Undefined("the motion has no finite numbers; take smaller steps, or other parameters")
        seeds, gradient = seeded(outputs)
        bars = np.einsum("otr,trz->toz", seeds, self._outputs.jacobian()(z, self.times))  # (T, o, z)
        cuts = np.cumsum([len(x) for x in state])
        adjoint = [np.zeros((len(gradient), len(x))) for x in state]
        for j in range(len(self.times) - 1, -1, -1):
            *more, alone = np.split(bars[j], cuts, axis=1)
            gradient = gradient + alone
            adjoint = [x + y for x, y in zip(adjoint, more, strict=True)]
            for k in range(samples[j] - 1, samples[j - 1] - 1 if j else -1, -1):
                adjoint, by_parameter = self._back("step", inputs[k], adjoint)
                gradient = gradient + by_parameter
        adjoint, by_parameter = self._back("initial acceleration", start, adjoint)
        slopes = [x.T for x in run.first]
        return outputs, gradient + by_parameter + adjoint[0] @ slopes[0] + adjoint[1] @ slopes[1]

    @staticmethod
    def _closed(after: Any, t: float) -> list[Floats]:
        """The state that a program gave, if its loops are closed."""
        state = [np.asarray(x) for x in after[:3]]
        _refuse_lost(state, float(after[3][0]) if len(after) > 3 else 0.0, t)
        return state

    def _back(self, name: str, inputs: list[Any], adjoint: list[Floats]) -> tuple[list[Floats], Floats]:
        """Adjoints of a program's state and parameters from those of the state after it."""
        program = self._straight(name)
        zeros = [np.zeros((len(adjoint[0]), *port.shape)) for port in program.outputs[3:]]
        bars = program.reverse(*inputs, *adjoint, *zeros)[len(program.outputs) :]
        states = 3 if name == "step" else 2
        return [np.ascontiguousarray(x) for x in bars[:states]], np.asarray(bars[-1])

    def _straight(self, name: str) -> Kernel:
        """A step, or the initial acceleration, as one block."""
        parts, tableau = self.parts, self.tableau

        def block() -> Program:
            program = ending(parts) if name == "initial acceleration" else fixed_step(parts, tableau)
            return record(lambda *x: program(*x), *(port.shape for port in program.inputs), name=name)

        return self.mech.kernels.further(DesignRequest(f"straight {name}", self.names, method=self.tableau.name), block)

    # -- rows -------------------------------------------------------------------------------------------------
    @cached_property
    def _outputs(self) -> Kernel:
        """[q, v, a, p], t → rows."""
        r, series = self.recorded, self.series
        nq, nv, k = r.nq, r.nv, len(r.free)

        def measured(q: Array, v: Array, t: Any, p: Array) -> Array:
            return r.measured(series.measures, q, v, t, p)

        def rows(z: Array, t: Any) -> Array:
            q, v, a, p = z[:nq], z[nq : nq + nv], z[nq + nv : nq + 2 * nv], z[nq + 2 * nv :]
            quantities = series.measured(measured, (q, v, t, p), (r.rate(q, v), a, 1.0, np.zeros(k)))
            return series.of(quantities, r.parameters(p), t) + 0.0 * z[0]

        return self.kernel("outputs of a simulation", rows, nq + 2 * nv + k, (), outputs=True)

    def _rows(self, run: _Run, t: float) -> tuple[Floats, ...]:
        z, at = np.concatenate([*run.state, run.values]), np.array(t)
        outputs = np.asarray(self._outputs(z, at))
        if run.order == 0:
            return (outputs,)
        k = len(run.values)
        dz = np.vstack([*(x.T for x in run.first), np.eye(k)])
        jacobian = self._outputs.jacobian()
        g = jacobian(z, at)
        first = g @ dz
        if run.order == 1:
            return outputs, first
        bends = second_derivatives(jacobian, 0, z, at)
        ddz = np.zeros((len(z), k, k))
        one, other = run.pairs
        mixed = np.concatenate([*run.second, np.zeros((len(one), k))], axis=1).T
        ddz[:, one, other] = mixed
        ddz[:, other, one] = mixed
        second = np.einsum("rij,ia,jb->rab", bends, dz, dz) + np.tensordot(g, ddz, 1)
        return outputs, first, second


def _refuse_lost(state: list[Floats], worst: float, t: float) -> None:
    if not all(np.isfinite(x).all() for x in state):
        raise Undefined(f"the motion has no finite numbers at t = {t:g}; take smaller steps, or other parameters")
    if worst > OPEN:
        raise Undefined(f"loops and drivers cannot be closed any more at t = {t:g}")


class _Run:
    """The state on its way: q, v and, once it is known, a; tangents have a leading axis of directions or pairs."""

    def __init__(self, values: Floats, order: int, state: list[Floats], slopes: list[tuple[Floats, Floats]]) -> None:
        self.values, self.order = values, order
        self.state = state
        k = len(values)
        pairs = list(combinations_with_replacement(range(k), 2))
        self.pairs = np.array([i for i, _ in pairs], int), np.array([j for _, j in pairs], int)
        self.same = np.array([pairs.index((i, i)) for i in range(k)], int)
        self.first: list[Floats] = [np.ascontiguousarray(x.T) for x in slopes[0]] if slopes else []
        self.second: list[Floats] = []
        if len(slopes) > 1:
            self.second = [np.ascontiguousarray(x[:, self.pairs[0], self.pairs[1]].T) for x in slopes[1]]
