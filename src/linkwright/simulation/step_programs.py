"""The compiled programs of a mechanism's simulations: steps, steps under held forces, rollouts.

It begins with a state and the forces that act from there on, and ends with the state some steps later, projected to
where it can be, and the acceleration there by the same forces. Parameters may be left free, so that plants that differ
in their numbers share the code.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.kernels.kernel import Kernel
from linkwright.mechanism import Mechanism
from linkwright.simulation.integrators import Tableau
from linkwright.simulation.step_control import CLOSED
from linkwright.simulation.step_parts import Composer, Parts
from linkwright.simulation.steps import Stages, ending, fixed_step
from linkwright.tape.block import less_equal, maximum, where
from linkwright.tape.build import Ref
from linkwright.tape.program import Program

MOST = 2**30  # steps of one call


class HeldKernels:
    """The kernels of a mechanism under held forces: `begin` and `advance`."""

    def __init__(self, mech: Mechanism, tableau: Tableau, free: tuple[str, ...] = ()) -> None:
        kernels = Kernels(mech, free=free)
        self.begin, self.advance = kernels.of(ending), kernels.of(held_steps, tableau)


def held_steps(parts: Parts, tableau: Tableau) -> Program:
    """q, v, (t, h, number), tau [, p] → q, v, a after `number` steps of h, and a summary: the worst residual of the
    constraints and the rounds of projection, both zero where there are none."""
    b = Composer(f"{tableau.name} steps with held forces")
    q, v = (b.input(name, (parts.sizes[name],)) for name in ("q", "v"))
    settings, tau = b.input("settings", (3,)), b.input("tau", (parts.nv,))
    parts.parameters(b)
    outputs = [b.output(f"{name}_there", (size,)) for name, size in parts.sizes.items()]
    summary = b.output("summary", (2,))
    now = [b.spare(f"{name}_now", size) for name, size in parts.sizes.items()]
    after = [b.spare(f"{name}_next", size) for name, size in parts.sizes.items()]
    t, h, count, counted, done = (b.number(n) for n in ("t", "h", "count", "counted", "done"))
    worst, rounds = b.spare("worst", 2), b.spare("worst_next", 2)
    seat = parts.seat(b)
    b.call(lambda s: (s[0] + 0.0, s[1] + 0.0, 0.0 * s[0], 0.0 * s[:2]), [settings], [t, h, count, worst])
    b.copies((q, v, parts.begin(b, q, v, t, tau)), now)
    with b.loop(MOST, [*zip(now, after, strict=True), (worst, rounds), (count, counted)], done):
        b.call(lambda s, n: s[0] + s[1] * n, [settings, count], [t])
        stages = Stages(b, parts, tableau, [*now, t, h], tau)
        stages.all()
        t_end = b.number("t_end")
        b.call(lambda t, h: t + h, [t, h], [t_end])
        met = stages.end(t_end)
        b.copies((seat.q, seat.v, seat.a), after)
        if met is None:
            b.copy(worst, rounds)
        else:
            b.call(_worst, [worst, *met], [rounds])
        b.call(lambda s, n: (n + 1.0, less_equal(s[2], n + 1.0)), [settings, count], [counted, done])
    b.copies((*now, worst), (*outputs, summary))
    return b.build(single=False)


def _worst(worst: Any, phi: Any, rounds: Any) -> Any:
    return np.array([maximum(worst[0], phi), worst[1] + rounds])


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
    b.copies(start, outputs)
    b.call(lambda s: 0.0 * s[0], [settings], [count])
    with b.loop(MOST, [*zip(outputs, after, strict=True), (count, counted)], done):
        b.call(lambda s, n: (s[0] + s[1] * (s[2] + n), s[1] + 0.0 * n), [settings, count], [t, h])
        _step(b, parts, tableau, outputs, [t, h, *constant], after, anew=anew)
        b.call(lambda s, n: (n + 1.0, less_equal(s[3], n + 1.0)), [settings, count], [counted, done])
    return b.build(single=False)


def first_point(parts: Parts) -> Program:
    """q, v, t [, tau, p] → the nearest q and v that can be, and a; NaN where there are none."""
    b = Composer("initial acceleration")
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
    q, v, a = start
    if anew:
        a = parts.begin(b, q, v, inputs[0], inputs[2])
    _closed(b, parts, fixed_step(parts, tableau), "step", [q, v, a, *inputs], outputs)


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


LANES = 8  # a batch of fewer states would run by other code, whose last bits may differ


@dataclass(frozen=True)
class StepRequest:
    """Which program of a simulation: its name in `steps`, the tableau, the law by its digest, the free parameters."""

    name: str
    tableau: str = ""
    law: str = ""
    free: tuple[str, ...] = ()
    conserving: bool = False


class Kernels:
    """The kernels for one mechanism and, where the joint forces have a recorded law, that law.

    Parameters in `free` are a last input p of those that they take part in. With `conserving`, steps keep the energy.
    """

    def __init__(
        self, mech: Mechanism, law: Program | None = None, free: tuple[str, ...] = (), *, conserving: bool = False
    ) -> None:
        # What forces do not determine is refused by the mechanism's own numbers.
        shared = not free and mech.programs.determined
        self._mech, self._parametrised = mech, mech.programs.parametrised if shared else None
        source = mech.programs
        if self._parametrised is not None:
            source, free = self._parametrised.source, self._parametrised.names
        # What programs are recorded from, and not the mechanism, which keeps the kernels.
        self._parts = Parts(source, law, free, conserving=conserving, ranks_hold=self._parametrised is not None)
        self._law = "" if law is None else law.digest
        self._kernels: dict[Hashable, Kernel] = {}  # those that were asked for
        x = mech.tree.coordinates
        self.nq, self.nv = x.nq, x.nv
        self.plain = x.nq == x.nv and not mech.closed  # q̇ = v, and every state is possible
        self.closed, self.has_law, self.conserving = mech.closed, law is not None, conserving
        self.rate_units: Floats = mech.programs.rate_units  # (nv,): the unit of each rate

    def of(self, recorder: Callable[..., Program], *tableau: Tableau, **options: bool) -> Kernel:
        """The kernel of what a function records of `Parts` with these options: a step, or a method of `Parts`."""
        parts = self._parts
        key = recorder, *(x.name for x in tableau), *options.items()
        if key in self._kernels:
            return self._kernels[key]
        name = " ".join((recorder.__name__, *(option for option, chosen in options.items() if chosen)))
        request = StepRequest(name, "".join(x.name for x in tableau), self._law, parts.free, parts.conserving)

        def record() -> Program:
            return recorder(parts, *tableau, **options)

        self._kernels[key] = kernel = self._mech.kernels.further(
            request, record, parametrised=self._parametrised, seldom=recorder is ending
        )
        return kernel


def in_batch(kernel: Kernel, *arrays: Floats) -> tuple[Floats, ...]:
    """The answers for states (n, ...), each to the same bits whatever n is; arrays for one state serve for all."""
    n = max(len(a) for a, port in zip(arrays, kernel.signature.inputs, strict=True) if a.ndim > len(port.shape))
    padded: list[Floats] = []
    for a, port in zip(arrays, kernel.signature.inputs, strict=True):
        if n < LANES and a.ndim > len(port.shape):
            last = np.repeat(a[-1:], LANES - n + 1, axis=0)
            a = last if n == 1 else np.concatenate([a[:-1], last])
        padded.append(a)
    outputs = kernel(*padded)
    return tuple(x[:n] for x in (outputs if isinstance(outputs, tuple) else (outputs,)))
