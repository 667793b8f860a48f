"""The programs that an integrator is made of: derivatives of the state, joint forces, projection; arithmetic on
whole vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from linkwright.base.locks import cached_property
from linkwright.dynamics.functions import FUNCTIONS, Request
from linkwright.dynamics.programs import ProgramFactory
from linkwright.simulation.step_control import CLOSED, ROUNDS, Entries, entries_of
from linkwright.tape.block import absolute, less_equal, maximum, minimum, where
from linkwright.tape.build import ProgramBuilder, Ref, trace
from linkwright.tape.program import ITEM, Copy, Each, Loop, Program, Zero
from linkwright.tape.runner import straightened

LONG, WIDTH = 96, 8  # numbers beyond which a vector is run through in a loop, and how many of them at a time

#: Up to so many operations a program becomes one block, whose values stay in registers. In a longer one, the code that
#: is there once and runs several times is faster: all of it does not fit where a processor keeps what it has decoded.
SMALL = 800


class Composer(ProgramBuilder):
    """A builder for programs that are made of other programs, with some arithmetic between them."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.seat: Seat | None = None  # where the states of a mechanism are looked at
        self.force: Ref | None = None
        self.parameters: Ref | None = None  # those that are given with the state

    def build(self, *, single: bool | None = None) -> Program:
        program = super().build(single=single)
        block = straightened(program) if sum(program.count().values()) <= SMALL else None
        if block is None:
            return program
        whole = ProgramBuilder(self.name)
        inputs = [whole.input(b.name, b.shape) for b in program.buffers if b.role == "input"]
        outputs = [whole.output(b.name, b.shape) for b in program.buffers if b.role == "output"]
        whole.add(Each(1, (whole.case(block, inputs, outputs),)))
        return whole.build(single=single)

    def spare(self, name: str, size: int) -> Ref:
        """A temporary of its own."""
        return self.temporary(self.free_name(name), (size,))

    def number(self, name: str) -> Ref:
        """A temporary for one number."""
        return self.temporary(self.free_name(name), ())

    def copy(self, source: Ref, target: Ref) -> None:
        self.add(Copy(source.operand, target.operand))

    @contextmanager
    def loop(self, most: int, carry: Sequence[tuple[Ref, Ref]], done: Ref) -> Iterator[None]:
        """The statements of the block are repeated until `done` is not zero, at most so many times.

        After each round the first of every pair in `carry` gets the value of the second.
        """
        outside, self.statements = self.statements, []
        yield
        body, self.statements = tuple(self.statements), outside
        self.add(Loop(most, body, tuple((x.operand, y.operand) for x, y in carry), done.operand))

    def copies(self, sources: Sequence[Ref], targets: Sequence[Ref]) -> None:
        """Copy each source to the target at its place; targets beyond the sources stay as they are."""
        for source, target in zip(sources, targets, strict=False):
            self.copy(source, target)

    def each(
        self,
        function: Callable[..., Any],
        vectors: Sequence[Ref],
        shared: Sequence[Ref],
        outputs: Sequence[Ref],
        *,
        add: bool = False,
    ) -> None:
        """outputs = function(*vectors, *shared), entry by entry of the vectors, which are all of one length.

        With `add`, each output is one number: the sum over all entries.
        """
        size = vectors[0].operand.size
        if size <= LONG:
            self.call(function, [*vectors, *shared], outputs)
            return
        for output in outputs if add else ():
            self.add(Zero(output.operand))

        def part(ref: Ref, first: int, width: int) -> Ref:
            return ref.part(first, (width,)).at((width, ITEM))

        whole = size // WIDTH * WIDTH
        for first, width, items in ((0, WIDTH, size // WIDTH), (whole, size - whole, 1)):
            if width:
                ins = [*(part(v, first, width) for v in vectors), *shared]
                outs = [o.at(add=True) if add else part(o, first, width) for o in outputs]
                block, _, _ = trace(function, [r.shape for r in ins])
                self.statements.append(Each(items, (self.case(block, ins, outs),), "outward" if add else "map"))

    def total(
        self, function: Callable[..., Any], vectors: Sequence[Ref], shared: Sequence[Ref], outputs: Sequence[Ref]
    ) -> None:
        """outputs = sums over all entries of function(*vectors, *shared), which gives one number per output."""
        self.each(function, vectors, shared, outputs, add=True)

    def total_weighted(
        self,
        function: Callable[..., Any],
        vectors: Sequence[Ref],
        weights: Any,
        shared: Sequence[Ref],
        outputs: Sequence[Ref],
    ) -> None:
        """As `total`, of function(*vectors, weights, *shared); the weights are numbers, one per entry."""
        n = len(vectors)
        if vectors[0].operand.size <= LONG:
            self.total(lambda *x: function(*x[:n], weights, *x[n:]), vectors, shared, outputs)
            return
        table = self.data(self.free_name("weights"), np.asarray(weights, dtype=np.float64))
        self.total(function, [*vectors, table], shared, outputs)

    def largest(self, vector: Ref, weights: Any, output: Ref) -> None:
        """The largest |entry|·weight; of a long vector nearly so, by a sum of eighth powers."""
        if vector.operand.size <= LONG:
            at = np.flatnonzero(weights)

            def most(x: Any) -> Any:
                parts = [absolute(x[k]) * weights[k] for k in at]
                return reduce(maximum, parts, np.array(0.0))

            self.call(most, [vector], [output])
            return

        def eighth(x: Any, weight: Any) -> Any:
            square = (x * weight) * (x * weight)
            return (square * square) @ (square * square)

        total = self.number("powers")
        self.total_weighted(eighth, [vector], weights, [], [total])
        self.call(lambda x: np.sqrt(np.sqrt(np.sqrt(x))), [total], [output])


SCALED = 0.02  # the most by which a step that keeps the energy changes that of the motion


class Seat(NamedTuple):
    """The place of a state and its acceleration in a builder."""

    q: Ref
    v: Ref
    t: Ref
    a: Ref


class Parts:
    """What is asked of a mechanism, as programs, each recorded when it is first needed.

    Parameters in `free` are an input p of the programs that they take part in: see `parameters`.
    """

    def __init__(
        self,
        factory: ProgramFactory,
        law: Program | None = None,
        free: tuple[str, ...] = (),
        *,
        conserving: bool = False,
        ranks_hold: bool = False,
    ) -> None:
        self.factory, self.law, self.free, self.ranks_hold = factory, law, free, ranks_hold
        self.conserving = conserving  # whether steps keep the energy that they begin with
        x = factory.tree.coordinates
        self.nq, self.nv = x.nq, x.nv
        self.sizes = {"q": x.nq, "v": x.nv, "a": x.nv}
        self.closed = factory.closed
        self._programs: dict[str, Program] = {}

    def _program(self, function: str) -> Program:
        if function not in self._programs:
            free = self.free if FUNCTIONS[function].numbers else ()
            request = Request(function, free=free, ranks_hold=self.ranks_hold)
            self._programs[function] = self.factory.program(request, packed=True)
        return self._programs[function]

    def dynamics(self) -> Program:
        """q, v, tau and perhaps t to a."""
        return self._program("forward_dynamics")

    def rate(self) -> Program:
        """q̇ of q and v, where it is not v."""
        return self._program("rate")

    def integrate(self) -> Program:
        """q moved by dv on its manifold."""
        return self._program("integrate")

    @cached_property
    def entries(self) -> tuple[Entries, Entries]:
        """Which entries of q and of v are shifts."""
        return entries_of(self.factory.tree)

    @property
    def plain(self) -> bool:
        """Whether q̇ = v and every state is possible."""
        return self.nq == self.nv and not self.closed

    @property
    def exact(self) -> bool:
        """Whether what projection moves is an error. Where rounded numbers leave a gap in loops that repeat their
        equations, rates and places do not quite agree, and it moves by as much."""
        return not self.plain and not (self.closed and self.factory.gap)

    # -- statements -----------------------------------------------------------------------------------
    def seat(self, b: Composer) -> Seat:
        """Where a builder's states are looked at: always the same place, so that the code is there once."""
        if b.seat is None:
            q, v, a = b.spare("q_here", self.nq), b.spare("v_here", self.nv), b.spare("a_here", self.nv)
            b.seat = Seat(q, v, b.number("t_here"), a)
        return b.seat

    def parameters(self, b: Composer) -> dict[str, Ref]:
        """The builder's input p of free parameters, by its name; nothing where none is free."""
        if self.free and b.parameters is None:
            b.parameters = b.input("p", (len(self.free),))
        return {} if b.parameters is None else {"p": b.parameters}

    def _run(self, b: Composer, program: Program, outputs: Sequence[Ref], **inputs: Ref) -> None:
        """Run a program on those of these inputs that it takes, and on the free parameters."""
        inputs |= self.parameters(b)
        b.run(program, [inputs[port.name] for port in program.inputs], outputs)

    def velocity(self, b: Composer, q: Ref, v: Ref) -> Ref:
        """q̇; where it is v, that itself."""
        if self.nq == self.nv:
            return v
        rate = b.spare("rate", self.nq)
        b.run(self.rate(), [q, v], [rate])
        return rate

    def begin(self, b: Composer, q: Ref, v: Ref, t: Ref, tau: Ref | None) -> Ref:
        """a at this state, which is put into the seat."""
        seat = self.seat(b)
        b.copies((q, v, t), seat)
        self.accelerate(b, tau)
        return seat.a

    def accelerate(self, b: Composer, tau: Ref | None) -> None:
        """a of the state in the seat; the forces are given, or those of the law."""
        seat = self.seat(b)
        if self.law is not None:
            if b.force is None:
                b.force = b.spare("tau", self.nv)
            tau = b.force
            b.run(self.law, [seat.t, seat.q, seat.v], [tau])
        assert tau is not None
        self._run(b, self.dynamics(), [seat.a], q=seat.q, v=seat.v, tau=tau, t=seat.t)

    def project(self, b: Composer, q: Ref, v: Ref) -> tuple[Ref, Ref] | None:
        """The nearest state that can be, into the seat: Euler parameters of unit length, constraints met.

        With constraints, their residual before the last round, and the rounds.
        """
        seat = self.seat(b)
        t, q_out, v_out = seat.t, seat.q, seat.v
        if not self.closed:
            self._normalise(b, q, q_out)
            b.copy(v, v_out)
            return None
        start = b.spare("q_unit", self.nq)
        self._normalise(b, q, start)
        phi, rounds = self._close(b, start, t, q_out)
        dv = b.spare("dv", self.nv)
        program = self._program("velocity_projection")
        constraint_rate = b.spare("constraint rate", program.outputs[1].size)
        self._run(b, program, [dv, constraint_rate], q=q_out, v=v, t=t)
        b.each(lambda v, dv: v + dv, [v, dv], [], [v_out])
        return phi, rounds

    def conserve(self, b: Composer, q: Ref, v: Ref) -> None:
        """Scale the rates in the seat so that the energy is what it is at q, v. Little is changed at rest."""
        seat = self.seat(b)
        energies = [b.number("energy") for _ in range(4)]
        kinetic, potential = self._program("kinetic_energy"), self._program("potential_energy")
        for (place, rates), targets in (((q, v), energies[:2]), ((seat.q, seat.v), energies[2:])):
            for program, target in ((kinetic, targets[:1]), (potential, targets[1:])):
                self._run(b, program, target, q=place, v=rates)

        def factor(t0: Any, v0: Any, t1: Any, v1: Any) -> Any:
            still = less_equal(t1, 0.0)
            part = (t0 + (v0 - v1)) / where(still, 1.0, t1)
            return np.sqrt(where(still, 1.0, minimum(maximum(part, 1.0 - SCALED), 1.0 + SCALED)))

        scale, scaled = b.number("scale"), b.spare("v_scaled", self.nv)
        b.call(factor, energies, [scale])
        b.each(lambda v, s: v * s, [seat.v], [scale], [scaled])
        b.copy(scaled, seat.v)

    def _normalise(self, b: Composer, q: Ref, q_out: Ref) -> None:
        b.copy(q, q_out)
        at = self.factory.tree.euler_parameters
        if not at:
            return
        step = (1, b.column(at))
        source, target = q.part(0, (4,)).at(step), q_out.part(0, (4,)).at(step)
        b.add(Each(len(at), (b.case(trace(lambda e: e / np.sqrt(e @ e), [(4,)])[0], [source], [target]),)))

    def _close(self, b: Composer, q: Ref, t: Ref, q_out: Ref) -> tuple[Ref, Ref]:
        """Newton's rounds on the constraints, from q; how far they were off before the last one, and how many."""
        program = self._program("position_correction")
        now, there = b.spare("q_now", self.nq), b.spare("q_there", self.nq)
        dv, phi = b.spare("dq", self.nv), b.spare("phi", program.outputs[1].size)
        size, squares, count, counted, done = (b.number(n) for n in ("size", "squares", "count", "counted", "done"))
        b.copy(q, now)
        b.call(lambda: (np.array(np.inf), np.array(0.0)), [], [squares, count])
        with b.loop(ROUNDS, [(now, there), (squares, size), (count, counted)], done):
            self._run(b, program, [dv, phi], q=now, t=t)
            b.run(self.integrate(), [now, dv], [there])
            b.total_weighted(lambda x, unit: (x / unit) @ (x / unit), [phi], self.factory.gap_units, [], [size])
            b.call(lambda s, n: (n + 1.0, less_equal(s, CLOSED * CLOSED)), [size, count], [counted, done])
        b.copy(now, q_out)
        residual = b.number("residual")
        b.call(lambda s: np.sqrt(s), [squares], [residual])
        return residual, count
