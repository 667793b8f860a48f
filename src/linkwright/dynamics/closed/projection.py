"""Projection of states onto the constraints: Newton's rounds as one program, and the careful path for states that it
leaves, which explains its errors.

Near is meant geometrically, by the mechanism with geometry for masses (`consistent.weighed`): shifts and turns of the
bodies count, by their sizes; masses do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.base.arguments import real_array
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.constraints.accumulated_angles import check_driver_laws
from linkwright.dynamics.closed.consistent import checked_states
from linkwright.dynamics.closed.redundancy import warned
from linkwright.dynamics.functions import Request
from linkwright.dynamics.programs import ProgramFactory
from linkwright.errors import AssemblyError
from linkwright.kernels.callpath import shortcut
from linkwright.kernels.kernel import Kernel
from linkwright.tape.block import absolute, less, maximum, minimum, where
from linkwright.tape.build import ProgramBuilder, record
from linkwright.tape.program import Loop, Program

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

ROUNDS, USUAL = 50, 5  # rounds at most, and how many there mostly are
#: What may be left of the equations: as sines, and as parts of the mechanism's length.
CLOSED = 1e-11
#: The same in units of the gap that rounded numbers leave in loops that repeat their equations.
NEARLY = 1e-8
FARTHEST = 0.5  # of one correction: rad, or a part of the mechanism's length


class Projector:
    """The projection of one closed mechanism's states."""

    def __init__(self, mech: Mechanism) -> None:
        self.mech, self._still, self._size = mech, np.zeros(mech.nv), np.array(mech.programs.size)

    def states(self, q: ArrayLike, v: ArrayLike | None, t: Any) -> tuple[Floats, Floats]:
        """The nearest q that closes the loops and the nearest v that keeps them closed, of any batch shape.

        States that are not finite become NaN; one that does not close is an AssemblyError, which tells its place in
        the batch.
        """
        if self._native is not None and isinstance(t, float):
            when = (np.array(t, np.float64),) if self._timed else ()
            nearest: tuple[Floats, Floats] = self._native(q, self._still if v is None else v, self._size, *when)
            if nearest[0].ndim == 1 and nearest[0].item(0) == nearest[0].item(0):
                return nearest
        return self._checked(q, v, t)

    def _plain(self, q: ArrayLike, v: ArrayLike, size: Floats, t: ArrayLike = 0.0) -> tuple[Floats, Floats]:
        """The same for arrays of any sort."""
        return self._checked(q, v, t)

    def _checked(self, q: ArrayLike, v: ArrayLike | None, t: Any) -> tuple[Floats, Floats]:
        states, *rates = checked_states(self.mech, "project", q=q, **({} if v is None else {"v": v}))
        rate = rates[0] if rates else np.zeros((*states.shape[:-1], self.mech.nv))
        lead = np.broadcast_shapes(states.shape[:-1], np.shape(real_array("project: t", t)))
        if self._kernel is not None and np.broadcast_shapes(lead, rate.shape[:-1]) == lead:
            places, turns = self._kernel(states, rate, self._size, *((t,) if self._timed else ()))
            if places.shape[:-1] == lead:  # t may have a batch shape that nothing depends on
                unknown = np.isnan(places[..., 0]) & np.isfinite(states).all(axis=-1) & np.isfinite(t)
                if not unknown.any():
                    return places, turns
        return self._careful(states.copy(), rate.copy(), t)

    @cached_property
    def _timed(self) -> bool:
        """Whether the kernel has an input t: a driver's law may depend on it, and forces take no part."""
        return self.mech.auxiliary.weighed.programs.needs_time

    @cached_property
    def _kernel(self) -> Kernel | None:
        """q, v, the length [, t] → the nearest state, NaN where no round closed it; None where there is a gap."""
        mech = self.mech
        if not mech.nq or mech.auxiliary.nearest.note:
            return None
        weighed = mech.auxiliary.weighed
        values = weighed.programs.parametrised
        factory, free = (weighed.programs, ()) if values is None else (values.source, values.names)
        request = ProjectionRequest(free)
        return weighed.kernels.further(
            request, lambda: projection(factory, free, ranks_hold=values is not None), parametrised=values
        )

    @cached_property
    def _native(self) -> Callable[..., Any] | None:
        """The kernel for one state in plain arrays, called natively where that can be."""
        if self._kernel is None:
            return None
        fallback = partial(Projector._plain, self)
        function: Callable[..., Any] | None = shortcut(self._kernel, fallback, "project", USUAL / ROUNDS)
        return function

    def _careful(self, states: Floats, rates: Floats, t: Any) -> tuple[Floats, Floats]:
        """Round by round, with what a person should know of a state that does not close."""
        mech = warned(self.mech.auxiliary.nearest)
        scaled = mech.auxiliary.weighed
        states = np.array(np.broadcast_to(states, (*np.broadcast_shapes(states.shape[:-1], np.shape(t)), mech.nq)))
        units, lengths = mech.programs.constraint_units, mech.programs.rate_units
        none = ~(np.isfinite(states).all(axis=-1) & np.isfinite(t))
        check_driver_laws(mech.description, np.broadcast_to(t, none.shape)[~none])
        done, best = np.array(none), np.full(none.shape, np.inf)
        for _ in range(ROUNDS):
            change, phi = scaled.kernels.position_correction(states, t)
            worst = np.max(np.abs(phi) / units, axis=-1, initial=0.0)
            done |= ~(worst < 0.5 * best) & (worst <= CLOSED)
            if done.all():
                break
            best = np.fmin(best, worst)
            # Far from closed loops a whole correction may overshoot. A closed state stays, whatever others need.
            most = np.max(np.abs(change) / lengths, axis=-1, keepdims=True, initial=0.0)
            step = change * np.minimum(1.0, FARTHEST / np.maximum(most, 1e-300))
            states = mech.integrate(states, np.where(done[..., None], 0.0, step))
        else:
            units = mech.programs.gap_units
            done |= (np.max(np.abs(phi) / units, axis=-1, initial=0.0) <= NEARLY) & bool(mech.programs.gap)
            if not done.all():
                raise _open(mech, phi, done)
        states[none] = np.nan
        for _ in range(2):
            change, _ = scaled.kernels.velocity_projection(states, rates, t)
            rates = rates + change
        return states, rates


def _open(mech: Mechanism, phi: Floats, done: NDArray[np.bool_]) -> AssemblyError:
    """The error for the first state that is not closed."""
    at = tuple(int(k) for k in np.argwhere(~done)[0])
    sizes = np.abs(phi[at])
    worst = int(np.argmax(np.where(np.isfinite(sizes), sizes / mech.programs.constraint_units, np.inf)))
    name, left = mech.constraints[worst], float(sizes[worst])
    where_ = f"this q, state {list(at)} of the batch" if at else "this q"
    text = (
        f"the loops do not close from {where_}: {name} is left open by {left:.3g}; "
        "start nearer, or use mech.assemble, which looks farther"
    )
    return AssemblyError(text, misses={name: left}, element=name)


@dataclass(frozen=True)
class ProjectionRequest:
    """What tells the program of a projection from others about a mechanism."""

    free: tuple[str, ...]
    function: str = "project"


def projection(factory: ProgramFactory, free: tuple[str, ...], *, ranks_hold: bool) -> Program:
    """q, v, the mechanism's length [, t, p] → q and v on the constraints; NaN where no round closed q."""

    def part(function: str) -> Program:
        return factory.program(Request(function, free=free, ranks_hold=ranks_hold), packed=True)

    b, x = ProgramBuilder("project"), factory.tree.coordinates
    q, v, size = b.input("q", (x.nq,)), b.input("v", (x.nv,)), b.input("size", ())
    further = {"t": b.input("t", ())} if factory.needs_time else {}
    further |= {"p": b.input("p", (len(free),))} if free else {}
    q_out, v_out = b.output("q_next", (x.nq,)), b.output("v_next", (x.nv,))
    correction, integrate, velocities = part("position_correction"), _integrate(factory), part("velocity_projection")
    shifts = factory.tree.shifts[1]
    lengths = [flag for constraint in factory.loop_constraints for flag in constraint.form.lengths]

    def judged(phi: Any, change: Any, best: Any, size: Any) -> tuple[Any, Any, Any]:
        """Whether the rounds are over, the step of this one, and the least of the sizes of Φ."""
        worst = reduce(
            maximum, [absolute(y) / (size if flag else 1.0) for y, flag in zip(phi, lengths, strict=True)], 0.0
        )
        most = reduce(
            maximum, [absolute(y) / (size if flag else 1.0) for y, flag in zip(change, shifts, strict=True)], 0.0
        )
        better, closed = less(worst, 0.5 * best), worst <= CLOSED
        step = change * minimum(1.0, FARTHEST / maximum(most, 1e-300))
        return where(better, 0.0, where(closed, 1.0, 0.0)), step, minimum(best, worst)

    now, there, moved = (b.temporary(name, (x.nq,)) for name in ("q now", "q there", "q moved"))
    change, step = b.temporary("change", (x.nv,)), b.temporary("step", (x.nv,))
    phi = b.temporary("phi", (len(lengths),))
    best, least, over, done = (b.temporary(name, ()) for name in ("best", "least", "over", "done"))
    b.call(lambda q: (q, np.array(np.inf), np.array(0.0)), [q], [now, best, over])
    outside, b.statements = b.statements, []
    b.run(correction, [{"q": now, **further}[port.name] for port in correction.inputs], [change, phi])
    b.call(judged, [phi, change, best, size], [done, step, least])
    b.run(integrate, [now, step], [moved])
    b.call(lambda over, q, moved: where(over > 0.0, q, moved), [done, now, moved], [there])
    body, b.statements = tuple(b.statements), outside
    carry = ((now.operand, there.operand), (best.operand, least.operand), (over.operand, done.operand))
    b.add(Loop(ROUNDS, body, carry, done.operand))
    names = [port.name for port in velocities.inputs]
    ports, rates = {"q": now, "v": v, **further}, b.temporary("rates", (x.nv,))

    def twice(*arrays: Any) -> Any:
        inputs = dict(zip(names, arrays, strict=True))
        once = inputs["v"] + velocities(*arrays)[0]
        return once + velocities(*{**inputs, "v": once}.values())[0]

    if factory.rolls(Request("velocity_projection")):
        once, opening = b.temporary("v once", (x.nv,)), b.temporary("opening", (len(lengths),))
        for source, target in ((v, once), (once, rates)):
            b.run(velocities, [{**ports, "v": source}[name] for name in names], [change, opening])
            b.call(lambda v, dv: v + dv, [source, change], [target])
    else:  # both rounds share what they factorise
        both = record(twice, *(port.shape for port in velocities.inputs), name="rates")
        b.run(both, [ports[name] for name in names], [rates])
    with np.errstate(invalid="ignore"):
        b.call(
            lambda over, q, v: (where(over > 0.0, q, np.nan), where(over > 0.0, v, np.nan)),
            [over, now, rates],
            [q_out, v_out],
        )
    return b.build(single=False)


def _integrate(factory: ProgramFactory) -> Program:
    return factory.program(Request("integrate"))
