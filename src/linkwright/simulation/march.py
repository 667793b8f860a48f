"""Programs of rollouts: where motions begin, one step more (called again and again, on a GPU), and many steps."""

from __future__ import annotations

import numpy as np

from linkwright.simulation.composer import Composer
from linkwright.simulation.control import CLOSED
from linkwright.simulation.parts import Parts
from linkwright.simulation.steps import ending, fixed_step
from linkwright.simulation.tableaux import Tableau
from linkwright.tape.build import Ref
from linkwright.tape.functions import less_equal, where
from linkwright.tape.program import Loop, Program

MOST = 2**30  # steps of one call


def marching(parts: Parts, tableau: Tableau, *, anew: bool = False) -> Program:
    """q, v, a, n, (t_start, dt) [, tau, p] → q, v, a, n after one step more, the n-th before.

    With `anew`, a step begins with the acceleration by tau in the place of the given one, which other forces caused.
    What is left open by a step is NaN after it.
    """
    b = Composer(f"{tableau.name} march")
    sizes = {"q": parts.nq, "v": parts.nv, "a": parts.nv}
    start = [b.input(name, (size,)) for name, size in sizes.items()]
    count, settings = b.input("steps", ()), b.input("settings", (2,))
    force = [b.input("tau", (parts.nv,))] if parts.law is None else []
    free = list(parts.parameters(b).values())
    outputs = [b.output(f"{name}_there", (size,)) for name, size in sizes.items()]
    counted = b.output("steps_there", ())
    t, h = b.number("t"), b.number("h")
    b.call(lambda s, n: (s[0] + s[1] * n, s[1] + 0.0 * n), [settings, count], [t, h])
    _step(b, parts, tableau, start, [t, h, *force, *free], outputs, anew=anew)
    b.call(lambda n: n + 1.0, [count], [counted])
    return b.build(single=False)


def many_steps(parts: Parts, tableau: Tableau, *, anew: bool = False) -> Program:
    """q, v, a, (t_start, dt, done, number) [, tau, p] → q, v, a after `number` further steps, each as in `marching`."""
    b = Composer(f"{tableau.name} steps")
    sizes = {"q": parts.nq, "v": parts.nv, "a": parts.nv}
    start = [b.input(name, (size,)) for name, size in sizes.items()]
    settings = b.input("settings", (4,))
    force = [b.input("tau", (parts.nv,))] if parts.law is None else []
    free = list(parts.parameters(b).values())
    outputs = [b.output(f"{name}_there", (size,)) for name, size in sizes.items()]
    after = [b.spare(f"{name}_next", size) for name, size in sizes.items()]
    t, h, count, counted, done = (b.number(n) for n in ("t", "h", "count", "counted", "done"))
    for source, target in zip(start, outputs, strict=True):
        b.copy(source, target)
    b.call(lambda s: 0.0 * s[0], [settings], [count])
    outside, b.statements = b.statements, []
    b.call(lambda s, n: (s[0] + s[1] * (s[2] + n), s[1] + 0.0 * n), [settings, count], [t, h])
    _step(b, parts, tableau, outputs, [t, h, *force, *free], after, anew=anew)
    b.call(lambda s, n: (n + 1.0, less_equal(s[3], n + 1.0)), [settings, count], [counted, done])
    body, b.statements = tuple(b.statements), outside
    carry = [*zip(outputs, after, strict=True), (count, counted)]
    b.add(Loop(MOST, body, tuple((x.operand, y.operand) for x, y in carry), done.operand))
    return b.build(single=False)


def beginning(parts: Parts) -> Program:
    """q, v, t [, tau, p] → the nearest q and v that can be, and a; NaN where there are none."""
    b = Composer("beginning")
    sizes = {"q": parts.nq, "v": parts.nv, "a": parts.nv}
    given = [b.input("q", (parts.nq,)), b.input("v", (parts.nv,)), b.input("t", ())]
    given += [b.input("tau", (parts.nv,))] if parts.law is None else []
    given += list(parts.parameters(b).values())
    outputs = [b.output(f"{name}_there", (size,)) for name, size in sizes.items()]
    first = ending(parts)
    rest = [b.spare(f"first {port.name}", port.size) for port in first.outputs[3:]]
    made = [b.spare(f"{name}_made", size) for name, size in sizes.items()] if rest else outputs
    b.run(first, given, [*made, *rest])
    _nothing_open(b, made, rest, outputs)
    return b.build(single=False)


def _step(
    b: Composer, parts: Parts, tableau: Tableau, start: list[Ref], given: list[Ref], outputs: list[Ref], *, anew: bool
) -> None:
    """One step from q, v, a to the next; `given` is t, h, and what else a step takes."""
    begin = list(start)
    if anew:
        seat = parts.seat(b)
        for source, target in zip((*start[:2], given[0]), (seat.q, seat.v, seat.t), strict=True):
            b.copy(source, target)
        parts.accelerate(b, given[2])
        begin[2] = seat.a
    step = fixed_step(parts, tableau)
    rest = [b.spare(f"step {port.name}", port.size) for port in step.outputs[3:]]
    names = zip("qva", (parts.nq, parts.nv, parts.nv), strict=True)
    made = [b.spare(f"{name}_made", size) for name, size in names] if rest else outputs
    b.run(step, [*begin, *given], [*made, *rest])
    _nothing_open(b, made, rest, outputs)


def _nothing_open(b: Composer, made: list[Ref], rest: list[Ref], outputs: list[Ref]) -> None:
    """What was made, or NaN where constraints are left open: of `rest`, their residual comes first."""
    for x, y in zip(made, outputs, strict=True):
        if rest:
            b.each(lambda x, s: where(less_equal(s[0], CLOSED), x, np.nan), [x], rest, [y])
