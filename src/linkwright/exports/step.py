"""One step in time as a program: q, v, tau held over it to the next q and v, by the classic Runge-Kutta method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from linkwright.errors import ModelError, NameNotFound
from linkwright.simulation.integrators import tableau_of
from linkwright.simulation.step_parts import Composer, Parts
from linkwright.simulation.steps import Stages
from linkwright.tape.program import Program

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism


def step_program(mech: Mechanism, dt: float, free: Sequence[str] = ()) -> Program:
    """q, v, tau [, t] [, p] → q_next, v_next; closed mechanisms end at the nearest state that their loops allow."""
    if not mech.nv:
        raise ModelError(f"nothing moves in {mech.name!r}: it has no joint with a freedom", element=mech.name)
    for name in free:
        if name not in mech.parameters:
            raise NameNotFound("parameter", name, list(mech.parameters))
    maker = mech.programs
    parts = Parts(maker, free=tuple(free))
    b = Composer("step")
    q, v, tau = b.input("q", (parts.nq,)), b.input("v", (parts.nv,)), b.input("tau", (parts.nv,))
    t = b.input("t", ()) if maker.needs_time else b.number("t")
    parts.parameters(b)
    outputs = b.output("q_next", (parts.nq,)), b.output("v_next", (parts.nv,))
    h, t_end, a = b.number("h"), b.number("t_end"), b.spare("a", parts.nv)
    b.call(lambda: np.array(dt), [], [h])
    if not maker.needs_time:
        b.call(lambda: np.array(0.0), [], [t])
    b.call(lambda t: t + dt, [t], [t_end])
    seat = parts.seat(b)
    for source, target in ((q, seat.q), (v, seat.v), (t, seat.t)):
        b.copy(source, target)
    parts.accelerate(b, tau)
    b.copy(seat.a, a)
    stages = Stages(b, parts, tableau_of("rk4"), [q, v, a, t, h], tau)
    stages.all()
    end_q, end_v = (seat.q, seat.v) if parts.plain else (b.spare("q_end", parts.nq), b.spare("v_end", parts.nv))
    b.copy(t_end, seat.t)
    stages.advance(stages.tableau.b, end_q, end_v)
    if not parts.plain:
        parts.project(b, end_q, end_v)
    for source, target in zip((seat.q, seat.v), outputs, strict=True):
        b.copy(source, target)
    return b.build(single=False)
