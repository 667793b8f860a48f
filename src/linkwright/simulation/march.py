"""Programs of rollouts: where motions begin, one step more (called again and again, on a GPU), and many steps."""

from __future__ import annotations

import numpy as np

from linkwright.simulation.composer import Composer
from linkwright.simulation.control import CLOSED
from linkwright.simulation.parts import Parts
from linkwright.simulation.steps import ending, fixed_step
from linkwright.simulation.tableaux import Tableau
from linkwright.tape.build import Ref
from linkwright.tape.program import Program
from linkwright.tape.recorder import less_equal, where

MOST = 2**30  # steps of one call


def marching(parts: Parts, tableau: Tableau, *, anew: bool = False) -> Program:
    """q, v, a, n, (t_start, dt) [, tau, p] → q, v, a, n after one step more, the n-th before.

    With `anew`, a step begins with the acceleration by tau in the place of the given one, which other forces caused.
    What is left open by a step is NaN after it.
    """
    b = Composer(f"{tableau.name} march")
    start = [b.input(name, (size,)) for name, size in parts.sizes.items()]
    count, settings = b.input("steps", ()), b.input("settings", (2,))
    constant = _constant(b, parts)
    outputs = [b.output(f"{name}_there", (size,)) for name, size in parts.sizes.items()]
    counted = b.output("steps_there", ())
    t, h = b.number("t"), b.number("h")
    b.call(lambda s, n: (s[0] + s[1] * n, s[1] + 0.0 * n), [settings, count], [t, h])
    _step(b, parts, tableau, start, [t, h, *constant], outputs, anew=anew)
    b.call(lambda n: n + 1.0, [count], [counted])
    return b.build(single=False)


def many_steps(parts: Parts, tableau: Tableau, *, anew: bool = False) -> Program:
    """q, v, a, (t_start, dt, done, number) [, tau, p] → q, v, a after `number` further steps, each as in `marching`."""
    b = Composer(f"{tableau.name} steps")
    start = [b.input(name, (size,)) for name, size in parts.sizes.items()]
    settings = b.input("settings", (4,))
    constant = _constant(b, parts)
    outputs = [b.output(f"{name}_there", (size,)) for name, size in parts.sizes.items()]
    after = [b.spare(f"{name}_next", size) for name, size in parts.sizes.items()]
    t, h, count, counted, done = (b.number(n) for n in ("t", "h", "count", "counted", "done"))
    for source, target in zip(start, outputs, strict=True):
        b.copy(source, target)
    b.call(lambda s: 0.0 * s[0], [settings], [count])
    with b.loop(MOST, [*zip(outputs, after, strict=True), (count, counted)], done):
        b.call(lambda s, n: (s[0] + s[1] * (s[2] + n), s[1] + 0.0 * n), [settings, count], [t, h])
        _step(b, parts, tableau, outputs, [t, h, *constant], after, anew=anew)
        b.call(lambda s, n: (n + 1.0, less_equal(s[3], n + 1.0)), [settings, count], [counted, done])
    return b.build(single=False)


def beginning(parts: Parts) -> Program:
    """q, v, t [, tau, p] → the nearest q and v that can be, and a; NaN where there are none."""
    b = Composer("beginning")
    inputs = [b.input("q", (parts.nq,)), b.input("v", (parts.nv,)), b.input("t", ()), *_constant(b, parts)]
    outputs = [b.output(f"{name}_there", (size,)) for name, size in parts.sizes.items()]
    _closed(b, parts, ending(parts), "first", inputs, outputs)
    return b.build(single=False)


def _constant(b: Composer, parts: Parts) -> list[Ref]:
    """The inputs that are the same in all steps: forces that are not of a law, and free parameters."""
    force = [b.input("tau", (parts.nv,))] if parts.law is None else []
    return [*force, *parts.parameters(b).values()]


def _step(
    b: Composer, parts: Parts, tableau: Tableau, start: list[Ref], inputs: list[Ref], outputs: list[Ref], *, anew: bool
) -> None:
    """One step from q, v, a to the next; `inputs` are t, h, and what else a step takes."""
    begin = list(start)
    if anew:
        seat = parts.seat(b)
        for source, target in zip((*start[:2], inputs[0]), (seat.q, seat.v, seat.t), strict=True):
            b.copy(source, target)
        parts.accelerate(b, inputs[2])
        begin[2] = seat.a
    _closed(b, parts, fixed_step(parts, tableau), "step", [*begin, *inputs], outputs)


def _closed(b: Composer, parts: Parts, program: Program, name: str, inputs: list[Ref], outputs: list[Ref]) -> None:
    """The q, v and a of a program, or NaN where it leaves constraints open: their residual comes after these."""
    summary = [b.spare(f"{name} {port.name}", port.size) for port in program.outputs[3:]]
    if not summary:
        b.run(program, inputs, outputs)
        return
    states = [b.spare(f"{name}_made", size) for name, size in parts.sizes.items()]
    b.run(program, inputs, [*states, *summary])
    for x, y in zip(states, outputs, strict=True):
        b.each(lambda x, s: where(less_equal(s[0], CLOSED), x, np.nan), [x], summary, [y])
