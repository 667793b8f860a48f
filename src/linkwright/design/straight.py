"""One step of a fixed-step method without a loop in it, so that it has derivatives forward and in reverse."""

from __future__ import annotations

from typing import Any

from linkwright.simulation.step_parts import Composer, Parts
from linkwright.tape.build import Ref

#: Newton's rounds after every step: a step leaves a miss of its own error, a round its square.
ROUNDS = 2


class StraightParts(Parts):
    """The parts of an integrator whose projection takes a fixed number of rounds."""

    def _close(self, b: Composer, q: Ref, t: Ref, q_out: Ref) -> tuple[Ref, Ref]:
        program = self._program("closing")
        size, count = b.number("size"), b.number("count")
        for k in range(ROUNDS):
            there = q_out if k == ROUNDS - 1 else b.spare(f"q_round{k}", self.nq)
            dv, phi = b.spare(f"dq{k}", self.nv), b.spare(f"phi{k}", program.outputs[1].size)
            inputs = {"q": q, "t": t, **self.parameters(b)}
            b.run(program, [inputs[port.name] for port in program.inputs], [dv, phi])
            b.run(self.integrate, [q, dv], [there])
            if k == ROUNDS - 1:
                b.total_weighted(lambda x, unit: _squares(x / unit), [phi], self.maker.constraint_units, [], [size])
            q = there
        b.call(lambda s: s * 0.0 + float(ROUNDS), [size], [count])
        return size, count


def _squares(x: Any) -> Any:
    return x @ x
