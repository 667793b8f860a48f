"""One step of an explicit method as a program, made of the programs of a mechanism.

A step begins with the state and its acceleration and ends with the next state, projected to where it can be, and the
acceleration there: what one step ends with is all that the next one needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwright.simulation.integrators import Row, Tableau, dense_count, dense_terms, weighted
from linkwright.simulation.step_control import CONTROL, GROUPS, SETTINGS, absolute_tolerances, after, before, reached
from linkwright.simulation.step_parts import Composer, Parts, Seat
from linkwright.tape.block import absolute, maximum, where
from linkwright.tape.build import Ref
from linkwright.tape.program import Program


class Stages:
    """The derivatives of one step, in their order: those of the stages, then the one at its end."""

    def __init__(self, b: Composer, parts: Parts, tableau: Tableau, start: Sequence[Ref], tau: Ref | None) -> None:
        self.b, self.parts, self.tableau, self.tau = b, parts, tableau, tau
        self.q, self.v, a, self.t, self.h = start
        self.rates: list[Ref] = [parts.velocity(b, self.q, self.v)]
        self.accelerations: list[Ref] = [a]

    def advance(self, row: Row, q: Ref, v: Ref) -> None:
        """(q, v) = the start + h·Σ row_j K_j."""
        for y0, slopes, y in ((self.q, self.rates, q), (self.v, self.accelerations, v)):
            factors = list(row.values())

            def combined(y0: Any, *slopes_and_step: Any, factors: list[float] = factors) -> Any:
                return y0 + slopes_and_step[-1] * weighted(factors, slopes_and_step[:-1])

            self.b.each(combined, [y0, *(slopes[j] for j in row)], [self.h], [y])

    def stage(self, row: Row, c: float) -> None:
        b, parts = self.b, self.parts
        seat = parts.seat(b)
        self.advance(row, seat.q, seat.v)
        b.call(lambda t, h: t + c * h, [self.t, self.h], [seat.t])
        parts.accelerate(b, self.tau)
        self.add(seat)

    def add(self, seat: Seat) -> None:
        """The derivative of the state in the seat is the next one."""
        b, parts = self.b, self.parts
        a = b.spare("a_k", parts.nv)
        b.copy(seat.a, a)
        rate = parts.velocity(b, seat.q, seat.v)
        if rate is seat.v:
            rate = b.spare("v_k", parts.nv)
            b.copy(seat.v, rate)
        self.rates.append(rate)
        self.accelerations.append(a)

    def all(self) -> None:
        tableau = self.tableau
        for row, c in zip(tableau.a[1:], tableau.c[1:], strict=True):
            self.stage(row, c)

    def end(self, t: Ref) -> tuple[Ref, Ref] | None:
        """The state at the end of the step, projected, and its acceleration, in the seat."""
        b, parts = self.b, self.parts
        seat = parts.seat(b)
        self.raw = (seat.q, seat.v) if parts.plain else (b.spare("q_end", parts.nq), b.spare("v_end", parts.nv))
        q, v = self.raw
        b.copy(t, seat.t)
        if self.tableau.implicit_rates:
            b.each(lambda v, a, h: v + h * a, [self.v, self.accelerations[0]], [self.h], [v])
            move = b.spare("move", parts.nv)
            b.each(lambda v, h: h * v, [v], [self.h], [move])
            b.run(parts.integrate(), [self.q, move], [q])
        else:
            self.advance(self.tableau.b, q, v)
        met = None if parts.plain else parts.project(b, q, v)
        if parts.conserving:
            parts.conserve(b, self.q, self.v)
        parts.accelerate(b, self.tau)
        return met

    def changed(self) -> Ref:
        """How much projection changed the rates, as a part of what they are and of what they change by in a step."""
        b, seat = self.b, self.parts.seat(self.b)
        sums = b.number("change"), b.number("size")

        def squares(raw: Any, v: Any, a: Any, h: Any) -> Any:
            move, step = v - raw, h * a
            return move @ move, v @ v + step @ step

        b.total(squares, [self.raw[1], seat.v, seat.a], [self.h], sums)
        part = b.number("part")
        b.call(lambda change, size: np.sqrt(change / maximum(size, 1e-300)), list(sums), [part])
        return part

    def moved(self, settings: Ref, tolerances: Sequence[Ref]) -> Ref:
        """The sum of squares of what projection moved, each entry over its tolerance."""
        b, seat = self.b, self.parts.seat(self.b)
        sums = [b.number("moved") for _ in range(3)]

        def scaled(raw: Any, y: Any, shifts: Any, *numbers: Any) -> Any:
            e = (y - raw) / _scale(y, y, shifts, *numbers)
            return e @ e

        ends = zip(self.raw, (seat.q, seat.v), self.parts.entries, (tolerances[:2], tolerances[2:]), sums, strict=False)
        for raw, y, entries, group, target in ends:
            b.total_weighted(scaled, [raw, y], entries.shifts, [settings, *group], [target])
        b.call(lambda x, y: x + y, sums[:2], sums[2:])
        return sums[2]


def _scale(y0: Any, y1: Any, shifts: Any, settings: Any, shift: Any, turn: Any) -> Any:
    """The tolerance of every entry, by the absolute ones of shifts and of turns."""
    if np.asarray(shifts).dtype == bool:
        atol = np.array([shift if flag else turn for flag in shifts])
    else:  # 1 or 0, recorded
        atol = turn + shifts * (shift - turn)
    return atol + settings[SETTINGS.index("rtol")] * maximum(absolute(y0), absolute(y1))


def _start(b: Composer, parts: Parts, *names: str) -> list[Ref]:
    """Inputs q, v, a and then these, one number each."""
    return [b.input(n, (s,)) for n, s in parts.sizes.items()] + [b.input(n, ()) for n in names]


def _force(b: Composer, parts: Parts) -> Ref | None:
    return b.input("tau", (parts.nv,)) if parts.law is None else None


def _state_outputs(b: Composer, parts: Parts, names: str = "qva") -> tuple[Ref, ...]:
    return tuple(b.output(f"{n}_next", (parts.sizes[n],)) for n in names)


def _copy_seat(b: Composer, parts: Parts, outputs: Sequence[Ref]) -> None:
    seat = parts.seat(b)
    b.copies((seat.q, seat.v, seat.a), outputs)


def _summarise(b: Composer, met: Sequence[Ref] | None) -> None:
    """With constraints, an output of their residual, the rounds, and what else there is."""
    if met is not None:
        summary = b.output("summary", (len(met),))
        b.call(lambda *numbers: np.array(numbers), met, [summary])


def fixed_step(parts: Parts, tableau: Tableau) -> Program:
    """q, v, a, t, h [, tau] → the next q, v, a; with constraints also a summary: their residual, the
    rounds, and how much projection changed the rates."""
    b = Composer(f"{tableau.name} step")
    start = _start(b, parts, "t", "h")
    tau = _force(b, parts)
    q, v, a = _state_outputs(b, parts)
    stages = Stages(b, parts, tableau, start, tau)
    stages.all()
    t = b.number("t_end")
    b.call(lambda t, h: t + h, [stages.t, stages.h], [t])
    met = stages.end(t)
    _copy_seat(b, parts, (q, v, a))
    if met is not None:
        _summarise(b, (*met, stages.changed()))
    return b.build(single=False)


def attempt(parts: Parts, tableau: Tableau) -> Program:
    """q, v, a, control, settings [, tau] → the same at the next point, or as they were if the error is too large."""
    b = Composer(f"{tableau.name} attempt")
    q, v, a = _start(b, parts)
    control, settings = b.input("control", (len(CONTROL),)), b.input("settings", (len(SETTINGS),))
    tau = _force(b, parts)
    outputs = _state_outputs(b, parts)
    control_out = b.output("control_next", (len(CONTROL),))
    t, h, t_end = (b.number(n) for n in ("t", "h", "t_end"))
    b.call(before, [control, settings], [t, h, t_end])
    stages = Stages(b, parts, tableau, [q, v, a, t, h], tau)
    stages.all()
    met = stages.end(t_end)
    seat = parts.seat(b)
    there = (seat.q, seat.v, seat.a)
    stages.rates.append(parts.velocity(b, seat.q, seat.v))
    stages.accelerations.append(seat.a)
    there_reached = _reached(b, parts, control)
    tolerances = [b.number("tolerance") for _ in GROUPS]
    b.call(lambda s, *x: tuple(absolute_tolerances(s, x)), [settings, *there_reached], tolerances)
    sums = _errors(b, stages, (q, v), (seat.q, seat.v), settings, tolerances)
    if parts.exact:
        sums.append(stages.moved(settings, tolerances))
    accepted = b.number("accepted")

    def judged(control: Any, settings: Any, h: Any, t_end: Any, *arguments: Any) -> Any:
        size, errors = parts.nq + parts.nv, len(tableau.errors)
        phi, rounds = (None, 0.0 * h) if met is None else arguments[:2]
        numbers = arguments[0 if met is None else 2 :]
        there, sums = numbers[: len(GROUPS)], numbers[len(GROUPS) :]
        projection = (phi, rounds, sums[errors] if len(sums) > errors else None)
        return after(tableau, size, control, settings, h, t_end, projection, sums[:errors], there)

    b.call(judged, [control, settings, h, t_end, *(met or ()), *there_reached, *sums], [control_out, accepted])
    for new, old, out in zip(there, (q, v, a), outputs, strict=True):
        b.each(lambda new, old, yes: where(yes, new, old), [new, old], [accepted], [out])
    return b.build(single=False)


def _reached(b: Composer, parts: Parts, control: Ref) -> list[Ref]:
    """How far each group has come with the state in the seat."""
    seat = parts.seat(b)
    new = [b.number("largest") for _ in GROUPS]
    for y, entries, targets in zip((seat.q, seat.v), parts.entries, (new[:2], new[2:]), strict=True):
        for weights, target in zip((entries.shifts.astype(float), entries.turns), targets, strict=True):
            b.largest(y, weights, target)
    far = [b.number("reached") for _ in GROUPS]
    b.call(lambda control, *x: tuple(reached(control, x)), [control, *new], far)
    return far


def _errors(
    b: Composer, stages: Stages, old: Sequence[Ref], new: Sequence[Ref], settings: Ref, tolerances: Sequence[Ref]
) -> list[Ref]:
    """For each error of the method, the sum of squares of its entries, each over its tolerance."""
    rows = stages.tableau.errors
    used = sorted({j for row in rows for j in row})

    def scaled(y0: Any, y1: Any, *arguments: Any) -> Any:
        slopes, (shifts, *numbers) = dict(zip(used, arguments, strict=False)), arguments[len(used) :]
        scale = _scale(y0, y1, shifts, *numbers)
        sums = []
        for row in rows:
            e = weighted(list(row.values()), [slopes[j] for j in row]) / scale
            sums.append(e @ e)
        return tuple(sums)

    parts = []
    kinds = zip(stages.parts.entries, (tolerances[:2], tolerances[2:]), strict=True)
    for y0, y1, slopes, (entries, group) in zip(old, new, (stages.rates, stages.accelerations), kinds, strict=True):
        sums = [b.number("sum") for _ in rows]
        vectors = [y0, y1, *(slopes[j] for j in used)]
        b.total_weighted(scaled, vectors, entries.shifts, [settings, *group], sums)
        parts.append(sums)
    totals = [b.number("total") for _ in rows]
    for total, x, y in zip(totals, *parts, strict=True):
        b.call(lambda x, y: x + y, [x, y], [total])
    return totals


def ending(parts: Parts) -> Program:
    """q, v, t [, tau, p] → the nearest q and v that can be, and a; with constraints also their residual and rounds."""
    return projected(parts, "qva")


def projected(parts: Parts, names: str = "qv") -> Program:
    """q, v, t → the nearest q and v that can be; with constraints also their residual and rounds."""
    b = Composer("nearest state")
    q, v, t = b.input("q", (parts.nq,)), b.input("v", (parts.nv,)), b.input("t", ())
    accelerated = "a" in names
    tau = _force(b, parts) if accelerated else None
    outputs = _state_outputs(b, parts, names)
    b.copy(t, parts.seat(b).t)
    met = parts.project(b, q, v)
    if accelerated:
        parts.accelerate(b, tau)
    _copy_seat(b, parts, outputs)
    _summarise(b, met)
    return b.build(single=False)


def conserved(parts: Parts) -> Program:
    """q0, v0, q, v → v scaled so that the energy is what it is at q0, v0."""
    b = Composer("conserved rates")
    q0, v0, q, v = (b.input(n, (parts.nq if n[0] == "q" else parts.nv,)) for n in ("q0", "v0", "q", "v"))
    (out,) = _state_outputs(b, parts, "v")
    seat = parts.seat(b)
    b.copies((q, v), seat)
    parts.conserve(b, q0, v0)
    b.copy(seat.v, out)
    return b.build(single=False)


def slope(parts: Parts) -> Program:
    """q, v, t [, tau] → q̇, a."""
    b = Composer("slope")
    q, v, t = b.input("q", (parts.nq,)), b.input("v", (parts.nv,)), b.input("t", ())
    tau = _force(b, parts)
    rate_out, a_out = b.output("rate", (parts.nq,)), b.output("a", (parts.nv,))
    a = parts.begin(b, q, v, t, tau)
    seat = parts.seat(b)
    b.copies((parts.velocity(b, seat.q, seat.v), a), (rate_out, a_out))
    return b.build(single=False)


def between(parts: Parts, tableau: Tableau) -> Program:
    """Both ends of a step → the terms of its dense output, (terms, nq) of q and (terms, nv) of v."""
    b = Composer(f"{tableau.name} between")
    start = _start(b, parts, "t", "h")
    ends = [b.input(n, (s,)) for n, s in (("q1", parts.nq), ("v1", parts.nv), ("a1", parts.nv))]
    tau = _force(b, parts)
    count = dense_count(tableau)
    outputs = [b.output("q_terms", (count, parts.nq)), b.output("v_terms", (count, parts.nv))]
    stages = Stages(b, parts, tableau, start, tau)
    if tableau.dense:
        stages.all()
    else:  # a cubic needs no more than both ends
        nothing = tableau.stages - 1
        stages.rates += [stages.rates[0]] * nothing
        stages.accelerations += [stages.accelerations[0]] * nothing
    stages.rates.append(parts.velocity(b, ends[0], ends[1]))
    stages.accelerations.append(ends[2])
    for row, c in zip(tableau.extra_a, tableau.extra_c, strict=True):
        stages.stage(row, c)
    used = sorted({0, tableau.stages, *(j for row in tableau.dense for j in row)})

    def terms(y0: Any, y1: Any, *arguments: Any) -> Any:
        *slopes, h = arguments
        return tuple(dense_terms(tableau, y0, y1, dict(zip(used, slopes, strict=True)), h))

    for y0, y1, slopes, out in (
        (start[0], ends[0], stages.rates, outputs[0]),
        (start[1], ends[1], stages.accelerations, outputs[1]),
    ):
        n = y0.operand.size
        rows = [out.part(k * n, (n,)) for k in range(count)]
        b.each(terms, [y0, y1, *(slopes[j] for j in used)], [stages.h], rows)
    return b.build(single=False)
