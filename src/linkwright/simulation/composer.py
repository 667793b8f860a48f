"""A builder of programs with arithmetic on whole vectors: unrolled for short ones, loops for long ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.tape.build import ProgramBuilder, Ref, trace
from linkwright.tape.program import ITEM, Copy, Each, Loop, Program, Zero
from linkwright.tape.recorder import absolute, maximum
from linkwright.tape.running import straightened

if TYPE_CHECKING:
    from linkwright.simulation.parts import Seat

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

    def each(
        self, function: Callable[..., Any], vectors: Sequence[Ref], shared: Sequence[Ref], outputs: Sequence[Ref]
    ) -> None:
        """outputs = function(*vectors, *shared), entry by entry of the vectors, which are all of one length."""
        size = vectors[0].operand.size
        if size <= LONG:
            self.call(function, [*vectors, *shared], outputs)
            return
        self._in_loops(function, vectors, shared, outputs, size)

    def total(
        self, function: Callable[..., Any], vectors: Sequence[Ref], shared: Sequence[Ref], outputs: Sequence[Ref]
    ) -> None:
        """outputs = sums over all entries of function(*vectors, *shared), which gives one number an output."""
        size = vectors[0].operand.size
        if size <= LONG:
            self.call(function, [*vectors, *shared], outputs)
            return
        for output in outputs:
            self.add(Zero(output.operand))
        self._in_loops(function, vectors, shared, outputs, size, add=True)

    def total_weighted(
        self,
        function: Callable[..., Any],
        vectors: Sequence[Ref],
        weights: Any,
        shared: Sequence[Ref],
        outputs: Sequence[Ref],
    ) -> None:
        """As `total`, of function(*vectors, weights, *shared); the weights are numbers, one an entry."""
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

    def _in_loops(
        self,
        function: Callable[..., Any],
        vectors: Sequence[Ref],
        shared: Sequence[Ref],
        outputs: Sequence[Ref],
        size: int,
        *,
        add: bool = False,
    ) -> None:
        def part(ref: Ref, first: int, width: int, *, moves: bool) -> Ref:
            piece = ref.part(first, (width,))
            return piece.at((width, ITEM)) if moves else piece

        whole = size // WIDTH * WIDTH
        for first, width, items in ((0, WIDTH, size // WIDTH), (whole, size - whole, 1)):
            if not width:
                continue
            moves = items > 1
            ins = [*(part(v, first, width, moves=moves) for v in vectors), *shared]
            outs = [o.at(add=True) if add else part(o, first, width, moves=moves) for o in outputs]
            block, _, _ = trace(function, [r.shape for r in ins])
            self.statements.append(Each(items, (self.case(block, ins, outs),), "outward" if add else "map"))
