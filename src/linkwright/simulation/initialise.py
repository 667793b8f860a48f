"""How a run begins: its settings, its first point, its first step, and the engine that goes on from there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.arguments import available, real_array
from linkwright.base.arrays import Floats
from linkwright.errors import ModelError, ShapeError
from linkwright.mechanism import Mechanism
from linkwright.model.placements import coordinate_units
from linkwright.simulation.compiled_engines import Adaptive, Engine, Fixed
from linkwright.simulation.integrators import STIFF, tableau_of
from linkwright.simulation.python_engine import Called, Stiff
from linkwright.simulation.samples import Rows
from linkwright.simulation.state_derivatives import Slopes
from linkwright.simulation.step_control import CLOSED, Tolerances, tolerances
from linkwright.simulation.termination import endless_law, first_bad_joint

_CONSISTENT = 1e-9  # how far the nearest state that closes the loops may be from one that is taken as it is
MOVED = 1e-6  # how far coordinates may be moved without a note, as a part of their sizes


@dataclass(frozen=True)
class Settings:
    """What was asked for; `times` is None for every step, `atol` for what follows from the mechanism and its motion."""

    method: str
    start: float
    end: float
    dt: float | None
    rtol: float
    atol: float | None
    longest: float
    times: Floats | None
    conserve: str | None = None


def vector(name: str, numbers: Any, size: int, meaning: str) -> Floats:
    """A copy of an array of so many finite numbers."""
    array = real_array(name, numbers).copy()
    if array.shape != (size,):
        text = f"{name} has shape {array.shape}; it must be ({size},), {meaning}"
        raise ShapeError(text, given=array.shape, wanted=(size,))
    if not np.isfinite(array).all():
        where = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ModelError(f"{name}[{where}] is {array[where]}; give finite numbers")
    return array


def first_point(mech: Mechanism, slopes: Slopes, t: float, q0: Floats, v0: Floats, notes: list[str]) -> Rows:
    """The nearest state that can be, and its acceleration."""
    units, when = coordinate_units(mech.tree), np.array([t])
    if mech.closed:
        _refuse_coarse(mech, q0, units[0])
    q, v, a, residual = slopes.ended(when, q0[None], v0[None])
    near = is_near(q[0], q0, units[0]) and is_near(v[0], v0, units[1], rates=True)
    if mech.closed and not (residual[0] <= CLOSED and near):
        closed_q, closed_v = mech.project(q0, v0, t=t)
        q, v, a, _ = slopes.ended(when, closed_q[None], closed_v[None])
        notes += notes_of_moves((q0, v0), (q[0], v[0]), units)
    row = Rows(when, q, v, a)
    if not row.finite[0]:
        unknown = endless_law(mech, row)
        if unknown is not None:
            what, name = unknown
            text = f"the law of {what} {name!r} has no finite value at the start; change it, or begin elsewhere"
            raise ModelError(text, element=name)
        joint = first_bad_joint(mech, row)
        where = f" of joint {joint!r}" if joint else ""
        text = f"the acceleration{where} at the start is no finite number; look at tau, the forces and the masses"
        raise ModelError(text, element=joint)
    return row


def _refuse_coarse(mech: Mechanism, q: Floats, units: Floats) -> None:
    """Refuse coordinates so large that rounding alone opens the loops: no step would be short enough for them."""
    coarse = np.spacing(np.abs(q)) > CLOSED * units
    for joint in mech.joints if coarse.any() else ():
        if coarse[joint.q_slice].any():
            value = float(np.max(np.abs(q[joint.q_slice])))
            text = f"joint {joint.name!r} begins at {value:.3g}, where numbers are {np.spacing(value):.2g}"
            advice = "too coarse for loops to stay closed; begin nearer to zero: whole turns may be left out"
            raise ModelError(f"{text} apart, {advice}", element=joint.name)


def is_near(x: Floats, initial: Floats, units: Floats, part: float = _CONSISTENT, *, rates: bool = False) -> bool:
    """Whether coordinates are taken as they were given, or rates, which count by their own size."""
    size = np.max(np.abs(initial) / units, initial=0.0) + (0.0 if rates else 1.0)
    return bool(np.max(np.abs(x - initial) / units, initial=0.0) <= part * size)


def notes_of_moves(
    asked: tuple[Floats, Floats], state: tuple[Floats, Floats], units: tuple[Floats, Floats]
) -> list[str]:
    """What to know of an initial state q, v that is not the one that was asked for."""
    notes = []
    if not is_near(state[0], asked[0], units[0], MOVED):
        notes.append("q0 does not close the loops; the nearest coordinates that do were taken")
    if asked[1].any() and not is_near(state[1], asked[1], units[1], MOVED, rates=True):
        notes.append("v0 does not keep the loops closed; the nearest rates that do were taken")
    return notes


def engine_of(mech: Mechanism, slopes: Slopes, s: Settings, first: Rows) -> Engine:
    """The engine for these settings, at the first point."""
    python = slopes.law is not None
    if s.dt is not None and not python:
        steps = (s.end - s.start) / s.dt
        if s.times is None and 8.0 * steps * (1 + first.q.size + 2 * first.v.size) > available():
            raise ModelError(f"{steps:.3g} steps do not fit into memory; give lw.Saving(interval=...) or a larger dt")
        return Fixed(slopes, tableau_of(s.method), first, s.end, s.dt, keep=s.times is None)
    state = first.q[0], first.v[0], first.a[0]
    length, duration = mech.description.length_scale, s.end - s.start
    tolerance = tolerances(mech.tree, mech.closed, length, duration, s.rtol, s.atol, state)
    control = (0.0, min(s.longest, s.end - s.start))
    if s.dt is None:
        order = 3 if s.method == STIFF else tableau_of(s.method).error_order
        control = (float(first_steps(slopes, s, first, tolerance, order)[0]), control[1])
    if s.method == STIFF or python:
        if s.method != STIFF:
            return Called(slopes, tableau_of(s.method), first, s.end, s.dt, control, tolerance)

        units = np.concatenate(coordinate_units(mech.tree))
        return Stiff(slopes, first, s.end, control, tolerance, units)
    return Adaptive(slopes, tableau_of(s.method), first, s.end, control, tolerance)


def first_steps(slopes: Slopes, s: Settings, first: Rows, tolerance: Tolerances, order: int) -> Floats:
    """(n,): first steps from n points, after Hairer, Nørsett and Wanner (1993), II.4; `order` is that of the error.

    Where numbers are too large for these estimates it is a millionth of the whole: the control of steps goes on from
    there.
    """

    def slope(t: Floats, y: Floats) -> Floats:
        q, v = (np.ascontiguousarray(x) for x in np.split(y, [first.q.shape[1]], axis=1))
        q, v, a, _ = slopes.ended(t, q, v)
        return np.concatenate([slopes.rates(q, v), a], axis=1)

    y = np.concatenate([first.q, first.v], axis=1)
    f = np.concatenate([slopes.rates(first.q, first.v), first.a], axis=1)
    scale = tolerance.absolute(tolerance.start) + s.rtol * np.abs(y)
    start, end, longest = s.start, s.end, min(s.longest, s.end - s.start)
    least = 1e-6 * (end - start)

    def rms(x: Floats) -> Floats:
        return np.asarray(np.sqrt(np.mean(x * x, axis=1)))

    with np.errstate(all="ignore"):
        d0, d1 = rms(y / scale), rms(f / scale)
        h0 = np.where((d0 < 1e-5) | (d1 * (end - start) < 1e-5), least, 0.01 * d0 / d1)
        h0 = np.minimum(h0, longest)
        d2 = rms((slope(start + h0, y + h0[:, None] * f) - f) / scale) / h0
        # Their formula is of numbers: times are counted in 100 h0, in which y changes by about itself.
        unit = 100.0 * h0
        most = np.maximum(d1 * unit, d2 * unit**2)
        h1 = np.where(most <= 1e-15, np.maximum(least, h0 * 1e-3), unit * (0.01 / most) ** (1.0 / (order + 1)))
        step = np.minimum(np.minimum(100.0 * h0, h1), longest)
        return np.where(np.isfinite(step) & (step > 0.0), step, least)
