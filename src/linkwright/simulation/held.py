"""Some steps of one mechanism under forces that are held, as one small program: the plant of a sampled loop.

It begins with a state and the forces that act from there on, and ends with the state some steps later, projected to
where it can be, and the acceleration there by the same forces. Parameters may be left free, so that plants that differ
in their numbers share the code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.simulation.composer import Composer
from linkwright.simulation.kernels import Kernels
from linkwright.simulation.parts import Parts
from linkwright.simulation.steps import Stages
from linkwright.simulation.tableaux import Tableau
from linkwright.tape.program import Program
from linkwright.tape.recorder import less_equal, maximum

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

MOST = 2**30  # steps of one call


class HeldKernels:
    """The kernels of a mechanism under held forces: `begin` and `advance`."""

    def __init__(self, mech: Mechanism, tableau: Tableau, free: tuple[str, ...] = ()) -> None:
        kernels = Kernels(mech, free=free)
        recording = kernels.recording
        self.begin = kernels.ending()
        self.advance = kernels.kernel("held steps", tableau, lambda: held_steps(recording.parts, tableau))


def held_steps(parts: Parts, tableau: Tableau) -> Program:
    """q, v, (t, h, number), tau [, p] → q, v, a after `number` steps of h, and a summary: the worst residual of the
    constraints and the rounds of projection, both zero where there are none."""
    b = Composer(f"{tableau.name} steps with held forces")
    start = [b.input(name, (parts.sizes[name],)) for name in ("q", "v")]
    settings, tau = b.input("settings", (3,)), b.input("tau", (parts.nv,))
    parts.parameters(b)
    outputs = [b.output(f"{name}_there", (size,)) for name, size in parts.sizes.items()]
    summary = b.output("summary", (2,))
    now = [b.spare(f"{name}_now", size) for name, size in parts.sizes.items()]
    after = [b.spare(f"{name}_next", size) for name, size in parts.sizes.items()]
    t, h, count, counted, done = (b.number(n) for n in ("t", "h", "count", "counted", "done"))
    worst, rounds = b.spare("worst", 2), b.spare("worst_next", 2)
    seat = parts.seat(b)
    for source, target in zip(start, now, strict=False):
        b.copy(source, target)
    b.call(lambda s: (s[0] + 0.0, s[1] + 0.0, 0.0 * s[0], 0.0 * s[:2]), [settings], [seat.t, h, count, worst])
    for source, target in zip(start, (seat.q, seat.v), strict=True):
        b.copy(source, target)
    parts.accelerate(b, tau)
    b.copy(seat.a, now[2])
    with b.loop(MOST, [*zip(now, after, strict=True), (worst, rounds), (count, counted)], done):
        b.call(lambda s, n: s[0] + s[1] * n, [settings, count], [t])
        stages = Stages(b, parts, tableau, [*now, t, h], tau)
        stages.all()
        t_end = b.number("t_end")
        b.call(lambda t, h: t + h, [t, h], [t_end])
        met = stages.end(t_end)
        for source, target in zip((seat.q, seat.v, seat.a), after, strict=True):
            b.copy(source, target)
        if met is None:
            b.copy(worst, rounds)
        else:
            b.call(_worst, [worst, *met], [rounds])
        b.call(lambda s, n: (n + 1.0, less_equal(s[2], n + 1.0)), [settings, count], [counted, done])
    for source, target in zip((*now, worst), (*outputs, summary), strict=True):
        b.copy(source, target)
    return b.build(single=False)


def _worst(worst: Any, phi: Any, rounds: Any) -> Any:
    return np.array([maximum(worst[0], phi), worst[1] + rounds])
