"""The programs of an analysis: an evaluation, one correction (for assembly), one step in time, a motion's free part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.constraints.elimination import Solver
from linkwright.constraints.form_programs import each, entry, row
from linkwright.constraints.program_layout import (
    INTEGRATED,
    ITERATIONS,
    ROUNDS,
    Layout,
    Recording,
    moved,
    numbers,
    shift_between,
    state_rates,
    unit,
)
from linkwright.kernels.kernel import Kernel, kernel
from linkwright.spatial.algebra import Array
from linkwright.tape.block import absolute, maximum, minimum, where
from linkwright.tape.build import Ref
from linkwright.tape.program import Copy, Program, Zero


class Step(NamedTuple):
    """What a step reports of itself, in the order of its output `summary`."""

    iterations: float  # of Newton's method
    rounds: float  # of integrating the undriven motion
    residual: float  # the largest |Φ|, as a length: angles by the arcs they make at the mechanism's size
    rate_residual: float  # the largest |J v + Φ_t|, as a speed
    jump: float  # from the predicted state to the one reached, as a part of the bodies' sizes
    travelled: float  # from the state before to the predicted one
    mismatch: float  # of the velocities with the accelerations over the step
    speed: float  # the larger one of both ends
    pivot: float  # the smallest that counts
    lost: float  # how many equations repeat others
    turned: float  # the largest angle that a body's angular velocity at either end makes of the step (rad)
    drift: float  # from where velocities and accelerations of both ends lead to where the step ends


class Evaluation(NamedTuple):
    """The constraint equations at a state, or at many, with the cases first."""

    laws: Floats  # (..., constraints, 3): each driver's law, its rate and second rate; of clocks −Φ_t in the middle
    jacobian: Floats  # the parts of J, as the layout has them
    phi: Floats  # Φ (..., m)
    bias: Floats  # J̇ v (..., m)
    angles: Floats  # the counted angles


def evaluation(layout: Layout) -> Program:
    """q, angles, t, v → Φ, the parts of J, the laws with their rates, J̇ v, and the angles counted at q."""
    w = Recording(layout, "evaluation")
    v = w.b.input("v", (w.nb, 6))
    phi, bias = w.b.output("phi", (w.m,)), w.b.output("bias", (w.m,))
    angles = w.b.output("angles_there", w.angles.shape)
    if w.e.timed != w.e.drivers or not w.e.drivers:
        w.b.add(Zero(w.laws.operand))
    w.evaluate_laws()
    w.axes(w.q)
    w.equations(w.q, phi)
    w.note_time_rates(w.q)
    w.bias(w.q, v, bias)
    w.count_turns(w.q, angles)
    w.b.make_output(w.jacobian, "jacobian")
    w.b.make_output(w.laws, "laws")
    return w.b.build()


def correction(layout: Layout) -> Program:
    """q, angles, t, damping → Φ, the least change of q that makes Φ zero to first order, q so changed, the pivots."""
    w = Recording(layout, "correction")
    damping = w.b.input("damping", (1,))
    phi, changed = w.b.output("phi", (w.m,)), w.b.output("changed", (w.nb, 7))
    delta = w.b.output("delta", (w.nb, 6))
    algebra = _Algebra(w, damping)
    w.evaluate_laws()
    algebra.factor(w.q, phi)
    algebra.newton(phi, delta)
    w.each_body(moved, [w.q, delta], [changed])
    w.b.make_output(algebra.solver.pivots, "pivots")
    return w.b.build()


def allowance(layout: Layout) -> Program:
    """q, angles, t, motion → motion − J⁺J motion, the part that the constraints allow."""
    w = Recording(layout, "allowance")
    motion, allowed = w.b.input("motion", (w.nb, 6)), w.b.output("allowed", (w.nb, 6))
    x = _Algebra(w, w.b.data("damping", np.zeros(1)))
    w.evaluate_laws()
    x.factor(w.q, x.residual)
    x.forbidden(motion)
    parts = [motion, x.pulled, w.weights]
    w.each_body(lambda d, z, weight: d - z * weight, parts, [allowed])
    return w.b.build()


def step(layout: Layout, free: bool) -> Program:
    """q, angles, t, v, a, h: the state at t − h → the state at t, and how it was reached (`Step`).

    With `free`, the motion has undriven degrees of freedom. The motion of least norm is taken, whose velocity is
    −J⁺Φ_t, and its position is the integral of that velocity by Hermite's formula of fourth order.
    """
    return _Step(layout, free).program()


class _Algebra:
    """Least-norm solutions on a recording's buffers."""

    def __init__(self, w: Recording, damping: Ref) -> None:
        self.w, b, m, nb = w, w.b, w.m, w.nb
        self.solver = Solver(b, w.layout.plan, w.jacobian, w.weights, damping, w.tolerance)
        self.rhs, self.residual = b.temporary("rhs", (m,)), b.temporary("residual", (m,))
        self.change = b.temporary("change", (m,))
        self.pulled = b.temporary("pulled", (nb, 6))
        self.lam = b.temporary("lambda", (m,))

    def factor(self, q: Ref, phi: Ref) -> None:
        """Φ and J at q, and the factors of J W⁻¹Jᵀ."""
        self.w.axes(q)
        self.w.equations(q, phi)
        self.solver.factor()

    def weigh(self, output: Ref) -> None:
        """output = W⁻¹ pulled."""
        w = self.w
        w.each_body(lambda z, weight: z * weight, [self.pulled, w.weights], [output])

    def forbidden(self, motion: Ref) -> None:
        """pulled = W J⁺J motion."""
        self.w.b.add(Zero(self.rhs.operand))
        self.solver.push(motion, self.rhs, 1.0)
        self.solver.solve(self.rhs, self.lam)
        self.solver.pull(self.lam, self.pulled)

    def newton(self, phi: Ref, delta: Ref) -> None:
        """delta = −J⁺ Φ."""
        self.w.each_equation(lambda x: -x, [phi], self.rhs)
        self.solver.solve(self.rhs, self.lam)
        self.solver.pull(self.lam, self.pulled)
        self.weigh(delta)

    def least(self, multipliers: Ref, motion: Ref) -> None:
        """multipliers = S⁺ rhs and motion = W⁻¹Jᵀ multipliers, once refined; `residual` is what the first try left."""
        w = self.w
        self.solver.solve(self.rhs, multipliers)
        self.solver.pull(multipliers, self.pulled)
        self.weigh(motion)
        w.b.add(Copy(self.rhs.operand, self.residual.operand))
        self.solver.push(motion, self.residual, -1.0)
        self.solver.solve(self.residual, self.change)
        self.w.each_equation(lambda x, y: x + y, [multipliers, self.change], multipliers)
        self.solver.pull(multipliers, self.pulled)
        self.weigh(motion)


class _Step:
    """The recording of `step`."""

    def __init__(self, layout: Layout, free: bool) -> None:
        self.free = free
        self.w = w = Recording(layout, "free step" if free else "step")
        b, nb = w.b, w.nb
        self.v0, self.a0, self.h = b.input("v", (nb, 6)), b.input("a", (nb, 6)), b.input("h", (1,))
        self.q, self.v = b.output("q_there", (nb, 7)), b.output("v_there", (nb, 6))
        self.a, self.angles = b.output("a_there", (nb, 6)), b.output("angles_there", w.angles.shape)
        self.summary = b.output("summary", (len(Step._fields),))
        self.algebra = _Algebra(w, b.data("damping", np.zeros(1)))
        self.predicted, self.aim = b.temporary("predicted", (nb, 7)), b.temporary("aim", (nb, 7))
        self.next, self.next_aim = b.temporary("next", (nb, 7)), b.temporary("next_aim", (nb, 7))
        self.delta, self.phi = b.temporary("delta", (nb, 6)), b.temporary("phi", (w.m,))
        self.bias, self.lambda_v = b.temporary("bias", (w.m,)), b.temporary("lambda_v", (w.m,))
        self.lambda_a, self.lifted = b.temporary("lambda_a", (w.m,)), b.temporary("lifted", (nb, 6))
        self.size, self.missed, self.done = (b.temporary(name, (1,)) for name in ("size", "missed", "done"))

    def program(self) -> Program:
        w = self.w
        w.evaluate_laws()
        b = w.b
        b.call(lambda x: 0.0 * x, [self.h], [self._figure("iterations")])
        b.call(lambda x: 0.0 * x, [self.h], [self._figure("rounds")])
        self._predict()
        if not self.free:
            self._find(self.predicted)
        else:
            self._integrate()
        w.count_turns(self.q, self.angles)
        self._report()
        return b.build()

    def _figure(self, name: str) -> Ref:
        return self.summary.part(Step._fields.index(name), (1,))

    def _predict(self) -> None:
        def ahead(q: Array, v: Array, a: Array, h: Array) -> Array:
            rate, second = state_rates(q, v, a)
            return unit(q + h[0] * (rate + (0.5 * h[0]) * second))

        self.w.each_body(ahead, [self.w.q, self.v0, self.a0], [self.predicted], self.h)

    def _find(self, guess: Ref) -> None:
        """Position by Newton's method from a guess; then velocity and acceleration."""
        self.w.b.add(Copy(guess.operand, self.q.operand))
        self.w.loop(ITERATIONS, self._newton, [(self.q, self.next)], self.done)
        self._rates()

    def _newton(self) -> None:
        """One iteration from q to next, and whether it was the last."""
        w, b = self.w, self.w.b
        self.algebra.factor(self.q, self.phi)
        self.algebra.newton(self.phi, self.delta)
        w.each_body(moved, [self.q, self.delta], [self.next])
        self._largest_part(self.delta, self.size)
        w.largest(self.phi, self.missed)

        def ended(size: Array, missed: Array, most: Array) -> Array:
            return np.array([where(size[0] < most[0], where(missed[0] <= most[1], 1.0, 0.0), 0.0)])

        b.call(ended, [self.size, self.missed, w.newton_tolerances], [self.done])
        b.call(lambda n: n + 1.0, [self._figure("iterations")], [self._figure("iterations")])

    def _rates(self) -> None:
        """v = −J⁺Φ_t and its derivative at the position found."""
        w, b, x = self.w, self.w.b, self.algebra
        x.factor(self.q, self.phi)
        b.add(Zero(x.rhs.operand))
        w.time_rates(self.q, x.rhs)
        x.least(self.lambda_v, self.v)
        w.largest(x.residual, self._figure("rate_residual"))
        w.bias(self.q, self.v, self.bias)
        w.each_equation(lambda y: -y, [self.bias], x.rhs)
        w.law_rates(2, x.rhs)
        if not self.free:
            x.least(self.lambda_a, self.a)
            return
        # v = W⁻¹Jᵀλ holds at all times, so that its derivative has a part W⁻¹J̇ᵀλ.
        w.lift(self.q, self.v, self.lambda_v, self.lifted)
        w.each_body(lambda z, weight: z * weight, [self.lifted, w.weights], [self.lifted])
        x.solver.push(self.lifted, x.rhs, -1.0)
        x.least(self.lambda_a, self.a)
        w.each_body(lambda y, z: y + z, [self.a, self.lifted], [self.a])

    def _integrate(self) -> None:
        """Rounds of `_find`, until the free part of the motion is the integral of its velocity."""
        self.w.b.add(Copy(self.predicted.operand, self.aim.operand))
        # After a loop only what it carries is defined: the outputs carry themselves.
        outputs = [(ref, ref) for ref in (self.q, self.v, self.a, self.phi, self.w.r)]
        self.w.loop(ROUNDS, self._round, [(self.aim, self.next_aim), *outputs], self.done)

    def _round(self) -> None:
        """One round from an aim to the next, and whether it was the last."""
        w, b = self.w, self.w.b
        self._find(self.aim)
        self._miss()
        x = self.algebra
        x.forbidden(self.delta)
        bound = [self.delta, x.pulled, w.weights]
        w.each_body(lambda d, z, weight: d - z * weight, bound, [self.delta])
        w.each_body(moved, [self.q, self.delta], [self.next_aim])
        self._largest_part(self.delta, self.size)
        b.call(lambda s: np.array([where(s[0] < INTEGRATED, 1.0, 0.0)]), [self.size], [self.done])
        b.call(lambda n: n + 1.0, [self._figure("rounds")], [self._figure("rounds")])

    def _miss(self) -> None:
        """delta = from the state found to where Hermite's formula of both ends' rates leads."""

        def missed(q0: Array, v0: Array, a0: Array, q: Array, v: Array, a: Array, h: Array) -> Array:
            (r0, s0), (r1, s1) = state_rates(q0, v0, a0), state_rates(q, v, a)
            sign = where(q0[3:] @ q[3:] < 0.0, -1.0, 1.0)
            r1, s1 = (np.concatenate([x[:3], sign * x[3:]]) for x in (r1, s1))
            return shift_between(q, unit(q0 + (0.5 * h[0]) * (r0 + r1 + (h[0] / 6.0) * (s0 - s1))))

        states = [self.w.q, self.v0, self.a0, self.q, self.v, self.a]
        self.w.each_body(missed, states, [self.delta], self.h)

    def _largest_part(self, shifts: Ref, into: Ref) -> None:
        """The largest shift or turn, shifts as parts of the bodies' sizes."""
        w = self.w
        w.b.add(Zero(into.operand))

        def larger(most: Array, d: Array, length: Array) -> Array:
            for k in range(6):
                most = maximum(most, absolute(d[k : k + 1] / length if k < 3 else d[k : k + 1]))
            return most

        each(w.b, w.nb, larger, [into, row(shifts), entry(w.lengths)], [into], "outward")

    def _report(self) -> None:
        """The summary but for the iterations and rounds, which are counted."""
        w, b = self.w, self.w.b
        w.largest(self.phi, self._figure("residual"))
        w.each_body(shift_between, [self.predicted, self.q], [self.delta])
        self._largest_part(self.delta, self._figure("jump"))
        w.each_body(shift_between, [w.q, self.predicted], [self.delta])
        self._largest_part(self.delta, self._figure("travelled"))

        def mismatch(v0: Array, a0: Array, v: Array, a: Array, h: Array) -> Array:
            return v - v0 - (0.5 * h[0]) * (a0 + a)

        w.each_body(mismatch, [self.v0, self.a0, self.v, self.a], [self.delta], self.h)
        self._largest_part(self.delta, self._figure("mismatch"))
        self._miss()
        self._largest_part(self.delta, self._figure("drift"))

        def turned(v0: Array, v: Array, h: Array) -> Array:
            angles = [h[0] * maximum(absolute(x), absolute(y)) for x, y in zip(v0[3:], v[3:], strict=True)]
            return np.array([0.0 * h[0]] * 3 + angles)

        w.each_body(turned, [self.v0, self.v], [self.delta], self.h)
        self._largest_part(self.delta, self._figure("turned"))
        self._largest_part(self.v0, self.size)
        self._largest_part(self.v, self._figure("speed"))
        b.call(maximum, [self._figure("speed"), self.size], [self._figure("speed")])
        self._pivots()

    def _pivots(self) -> None:
        """The smallest pivot that counts, and how many do not."""
        w, b = self.w, self.w.b
        smallest, lost = self._figure("pivot"), self._figure("lost")
        b.call(lambda h: (0.0 * h + 1.0, 0.0 * h), [self.h], [smallest, lost])
        if not w.m:
            return

        def counted(small: Array, number: Array, pivot: Array, tolerance: Array) -> tuple[Array, Array]:
            gone = pivot[0] <= tolerance[0]
            return (
                np.array([minimum(small[0], where(gone, 1.0, pivot[0]))]),
                np.array([number[0] + where(gone, 1.0, 0.0)]),
            )

        inputs = [smallest, lost, entry(self.algebra.solver.pivots), w.tolerance]
        each(b, w.m, counted, inputs, [smallest, lost], "outward")


class Programs:
    """The compiled programs of one mechanism's equations: equations that differ by numbers alone share them."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.numbers = numbers(layout.equations)

    @property
    def tolerance(self) -> float:
        """The part of a row's own size below which its pivot is lost; larger if the constraints cannot all be met."""
        return float(self.numbers["tolerance"][0])

    @tolerance.setter
    def tolerance(self, value: float) -> None:
        self.numbers["tolerance"][0] = value

    def kernel(self, name: str, record: Callable[[Layout], Program]) -> Kernel:
        """A program of these equations, by its name."""
        layout = self.layout
        return kernel(layout.equations.structure, name, lambda: record(layout), recent=True)

    @cached_property
    def evaluation(self) -> Kernel:
        """The program of `evaluate`."""
        return self.kernel("evaluation", evaluation)

    @cached_property
    def correction(self) -> Kernel:
        """The program of `correct`."""
        return self.kernel("correction", correction)

    def evaluate(self, q: Floats, angles: Floats, t: float | Floats, v: Floats | None = None) -> Evaluation:
        """The equations at states (..., nb, 7) with twists v, at rest if there are none."""
        twists = np.zeros((*q.shape[:-1], 6)) if v is None else v
        named = self._named(self.evaluation, q=q, angles=angles, t=_times(t, q), v=twists)
        return Evaluation(*(named[name] for name in ("laws", "jacobian", "phi", "bias", "angles_there")))

    def correct(self, q: Floats, angles: Floats, t: float | Floats) -> tuple[Floats, ...]:
        """Φ, the least change of q, q so changed, the pivots; without damping."""
        named = self._named(self.correction, q=q, angles=angles, t=_times(t, q), damping=np.zeros(1))
        return named["phi"], named["delta"], named["changed"], named["pivots"]

    def allowed(self, q: Floats, angles: Floats, t: float, motion: Floats) -> Floats:
        """The part of a motion (nb, 6) that the constraints allow."""
        allowance_kernel = self.kernel("allowance", allowance)
        return self._named(allowance_kernel, q=q, angles=angles, t=_times(t, q), motion=motion)["allowed"]

    def step(self, free: bool) -> Kernel:
        """The program of a step in time; for one with undriven degrees of freedom, of the least-norm motion."""
        return self.kernel(f"step {free}", lambda layout: step(layout, free))

    def _named(self, program: Kernel, **inputs: Floats) -> dict[str, Floats]:
        """The outputs of a program by their names."""
        return named(program, {**self.numbers, **inputs})


def _times(t: float | Floats, q: Floats) -> Floats:
    """(..., 1): the times of states (..., nb, 7)."""
    return np.reshape(np.asarray(t, dtype=np.float64), (*q.shape[:-2], 1))


def named(program: Kernel, inputs: Mapping[str, Floats]) -> dict[str, Floats]:
    """The outputs of a program by their names, from inputs by theirs."""
    outputs = program(*(inputs[b.name] for b in program.inputs))
    arrays = outputs if isinstance(outputs, tuple) else (outputs,)
    return dict(zip((b.name for b in program.outputs), arrays, strict=True))
