"""Why a motion stopped: a driver that jumps, drivers that contradict, a place out of reach, or a dead centre."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.constraints.constraint_equations import Constraint, Equations
from linkwright.constraints.diagnosis import Relaxation
from linkwright.constraints.kinematic_motion import State, Stepper
from linkwright.constraints.kinematic_programs import Programs, Step
from linkwright.constraints.newton import (
    Assembled,
    Batch,
    about_axis,
    axis_sines,
    damped_newton_of_one,
    misses,
    moved_states,
)
from linkwright.constraints.rank import Stage, Stages, unit_rows

Flags = NDArray[np.bool_]
#: The largest sine between joint axes that an angle is measured about.
TILTED = 1e-6
#: Up to so many entries of J the equations that became dependent are looked for.
DENSE = 1_000_000
#: A group of bodies is stretched where its smallest singular value has fallen to this part of that at the start.
FALLEN = 0.2


@dataclass(frozen=True)
class Stop:
    """Where and why a motion could not go on."""

    reason: str
    message: str
    time: float
    element: str | None = None
    residual: float = 0.0
    advice: str = ""


def explain(stepper: Stepper, state: State, ahead: float, last: Step) -> Stop:
    """Why there is no step from a state towards a time a little ahead."""
    programs = stepper.programs
    e = programs.layout.equations
    jump = _jump(programs, state, ahead)
    jump = jump or _broken_relation(programs, state)
    if jump is not None:
        return jump
    if stepper.closes(last) and not stepper.consistent(last) and stepper.regular(last):
        return contradiction(programs, state.q, state.angles, state.t)
    nearest = damped_newton_of_one(programs, state.q, state.angles, ahead)
    members = _dependent(programs, state)
    driver = next((c for c in members if c.law is not None), None)
    if nearest.miss > stepper.tolerance:
        worst = next(iter(misses(programs, nearest, ahead)))
        if _redundant_driver(stepper, state, worst):
            stop = contradiction(programs, state.q, state.angles, ahead)
            return replace(stop, time=state.t, residual=nearest.miss)
        return _out_of_reach(stepper, state, nearest, ahead, driver, worst)
    if not stepper.near_singular(stepper.attempt(state, state.t)):
        return _too_fast(programs, state)
    names = ", ".join(map(str, members[:4])) or "its equations"
    message = (
        f"stopped at t = {state.t:.6g} at a dead centre: {names} become dependent there, and the motion beyond is not "
        "the continuation of the motion before"
    )
    advice = "drive another body or joint near this position, or end the motion before it"
    about = driver or (members[0] if members else _first_driver(e))
    return Stop("dead centre", message, state.t, _name(about), last.residual, advice)


def _out_of_reach(
    stepper: Stepper, state: State, nearest: Assembled, ahead: float, driver: Constraint | None, worst: Constraint
) -> Stop:
    """A place that bodies cannot reach: which of them are stretched, and the gap between them a little later."""
    programs = stepper.programs
    e = programs.layout.equations
    small = e.count * 6 * e.nb <= DENSE
    joint, bodies = (_stretched(stepper, state) if small else None) or (worst, ())
    gap, where = nearest.miss, "has a gap of"
    relaxed = Relaxation(programs, ahead).without(nearest, [joint]) if small else None
    if relaxed is not None and relaxed.residual < 0.1 * relaxed.gap:
        gap, where = relaxed.gap, "has, with the rest closed, a gap of"
    who = f"{driver} asks for what is out of reach" if driver else f"{joint} is out of reach"
    names = ", ".join(repr(e.description.body_names[b]) for b in bodies)
    who += f", where {names} are stretched" if len(bodies) > 1 else ""
    message = f"stopped at t = {state.t:.6g}: {who}; a little later {joint} {where} {gap:.2g} m"
    advice = "change the driver's law, or the lengths, so that the mechanism can follow"
    if bodies:
        advice += "; or was another assembly mode meant? Draw the bodies on its side, or give INITIAL values there"
    advice = _of_angle_in_space(driver or joint) or advice
    return Stop("out of reach", message, state.t, (driver or joint).name, gap, advice)


def _stretched(stepper: Stepper, state: State) -> tuple[Constraint, tuple[int, ...]] | None:
    """The joint inside the group of bodies whose equations are nearest to dependent, and the bodies of the group.

    Groups are found where the motion started, as each follows from those before it; none if a driver is inside.
    """
    programs, layout = stepper.programs, stepper.programs.layout
    e = layout.equations
    first, now = (Stages(layout, programs.evaluate(x.q, x.angles, x.t).jacobian) for x in (stepper.start, state))
    least: tuple[float, Stage, Floats, Floats] | None = None
    for stage in first.found():
        if stage.determined:
            before, after = (unit_rows(x.block(stage.constraints, stage.bodies)) for x in (first, now))
            left, values, right = np.linalg.svd(after, full_matrices=False)
            fallen = float(values[-1] / np.linalg.svd(before, compute_uv=False)[-1])
            if least is None or fallen < least[0]:
                least = fallen, stage, np.abs(left[:, -1]), np.abs(right[-1])
    if least is None or least[0] > FALLEN or any(e.constraints[k].law is not None for k in least[1].constraints):
        return None
    _, stage, share, motion = least
    # Of a larger group, those bodies that could move are stretched; the others hold still.
    moves = motion.reshape(-1, 6).max(axis=1)
    bodies = tuple(b for b, move in zip(stage.bodies, moves, strict=True) if move > 0.05 * moves.max())
    inside = set(bodies)
    shares, at = {}, 0
    for k in stage.constraints:
        size = e.constraints[k].form.size
        if set(e.constraints[k].bodies) <= inside:
            shares[k] = float(np.max(share[at : at + size]))
        at += size
    if not shares:
        return None
    return e.constraints[max(shares, key=lambda k: shares[k])], bodies


def contradiction(programs: Programs, q: Floats, angles: Floats, t: float) -> Stop:
    """The laws' rates cannot all be followed: which constraints ask for what the others forbid."""
    e = programs.layout.equations
    asking = [e.constraints[k] for k in _asking(programs, q, angles, t)]
    drivers = [c for c in asking if c.group == "driver"]
    about = next(iter(drivers or asking), _first_driver(e))
    if len(drivers) > 1:
        names = ", ".join(repr(c.name) for c in drivers)
        who, advice = f"the drivers {names} drive the same degree of freedom and contradict", "remove one"
    else:
        who = f"{drivers[0] if drivers else 'a driver'} asks for a motion that the joints forbid"
        advice = "the other constraints leave it no degree of freedom: remove the driver, or a constraint"
        advice = _of_angle_in_space(about) or advice
    message = f"locked up at t = {t:.6g}: {who}"
    return Stop("lock-up", message, t, _name(about), 0.0, advice)


def _of_angle_in_space(c: Constraint | None) -> str:
    """What to do about a driver that is an angle in space; nothing if it is none."""
    if c is None or not c.form.key.endswith("in space"):
        return ""
    return (
        "an angle in space lies between 0 and π and has no direction at both: draw the joint axes (z) of its frames "
        "parallel, so that it counts turns about them, or drive a joint"
    )


def _redundant_driver(stepper: Stepper, state: State, c: Constraint) -> bool:
    """Whether a constraint is a driver whose equation repeats others, so that it cannot be followed on its own."""
    if not stepper.lost or c.group != "driver":
        return False
    programs = stepper.programs
    e = programs.layout.equations
    pivots = programs.correct(state.q, state.angles, state.t)[3]
    return any(e.equation(int(row))[0] is c for row in np.flatnonzero(pivots <= programs.tolerance))


def singular_start(stepper: Stepper, start: Assembled) -> Stop | None:
    """Whether a motion cannot begin because its equations are dependent where it starts, and only there."""
    programs = stepper.programs
    e = programs.layout.equations
    shake = np.random.default_rng(0).normal(size=(e.nb, 6)) * 1e-2
    shake[:, :3] *= e.sizes[:, None]
    beside, t = moved_states(start.q, shake), stepper.start.t
    near = damped_newton_of_one(programs, beside, start.angles, t + 1e-2 * stepper.interval)
    if near.miss > stepper.tolerance or near.lost >= stepper.lost:
        return None
    message = f"cannot begin at t = {t:.6g}: the mechanism starts in a singular position, where its motion branches"
    advice = "start the time a little earlier or later, and draw the mechanism as it is then"
    return Stop("dead centre", message, t, _name(_first_driver(e)), 0.0, advice)


def tilted_axes(e: Equations, times: Floats, q: Floats) -> tuple[int, Stop] | None:
    """The first time point at which an angle driver's joint axes, drawn parallel, are not; and what to say of it."""
    worst: tuple[int, Stop] | None = None
    for name, tilted in tilts(e, e.records, q):
        if tilted.any() and (worst is None or np.argmax(tilted) < worst[0]):
            k = int(np.argmax(tilted))
            t = float(times[k])
            message = (
                f"stopped at t = {t:.6g}: driver {name!r} measures its angle about joint axes that were drawn parallel "
                "and are not any more"
            )
            advice = "drive a joint instead; or draw the joint axes apart, for an angle in space between 0 and π"
            worst = k, Stop("tilted axes", message, t, name, 0.0, advice)
    return worst


def tilts(e: Equations, records: Floats, q: Floats) -> Iterator[tuple[str, Flags]]:
    """Each driver of an angle about parallel axes, and whether these are not parallel at states (..., nb, 7)."""
    for k in e.drivers:
        if about_axis(e.constraints[k]):
            yield e.constraints[k].name, axis_sines(e, k, records, q) > TILTED


def _too_fast(programs: Programs, state: State) -> Stop:
    """A law that grows beyond all bounds: nothing is singular but it."""
    e = programs.layout.equations
    laws = programs.evaluate(state.q, state.angles, state.t).laws
    rates = {k: abs(float(laws[k, 1])) if np.isfinite(laws[k, 1]) else np.inf for k in e.timed}
    c = e.constraints[max(rates, key=lambda k: rates[k])] if rates else None
    name, what = _name(c), str(c) if c is not None and c.group == "coupling" else f"the law of driver {_name(c)!r}"
    message = f"stopped at t = {state.t:.6g}: {what} changes faster than any step can follow"
    return Stop("too fast", message, state.t, name, 0.0, "change the law, or end the motion before")


def _first_driver(e: Equations) -> Constraint | None:
    return e.constraints[e.drivers[0]] if e.drivers else None


def _name(c: Constraint | None) -> str | None:
    return None if c is None else c.name


def _jump(programs: Programs, state: State, ahead: float) -> Stop | None:
    """A law that is not continuous here."""
    e = programs.layout.equations
    one, two = (programs.evaluate(state.q, state.angles, t).laws for t in (state.t, ahead))
    for k in e.drivers:
        name = e.constraints[k].name
        if not (np.isfinite(one[k]).all() and np.isfinite(two[k]).all()):
            message = f"stopped at t = {state.t:.6g}: the law of driver {name!r} has no finite value or rate there"
            return Stop("no value", message, state.t, name, np.inf, "change the law")
        expected = (abs(one[k, 1]) + abs(two[k, 1])) * (ahead - state.t)
        unit = e.size if e.constraints[k].form.lengths[0] else 1.0
        if abs(two[k, 0] - one[k, 0]) > 1e-5 * unit + 2.0 * expected:
            size = abs(float(two[k, 0] - one[k, 0]))
            message = f"stopped at t = {state.t:.6g}: driver {name!r} jumps there by {size:.6g}"
            return Stop("jump", message, state.t, name, size, "use step(...) for a smooth change")
    return None


def _broken_relation(programs: Programs, state: State) -> Stop | None:
    """A coupling whose relation is not continuous here: it changes as much over small moves as over larger ones."""
    e = programs.layout.equations
    moves = np.random.default_rng(0).normal(size=(16, e.nb, 6))
    moves[..., :3] *= e.sizes[:, None]

    def spread(size: float) -> Floats:
        states = (moved_states(state.q, size * move) for move in moves)
        values = np.array([programs.evaluate(q, state.angles, state.t).phi for q in states])
        change: Floats = np.ptp(values, axis=0)
        return change

    couplings = [k for k, c in enumerate(e.constraints) if c.group == "coupling"]
    wide, narrow = (spread(size) if couplings else np.zeros(0) for size in (1e-3, 1e-6))
    for k in couplings:
        c, size = e.constraints[k], float(narrow[e.first[k]])
        if size > 0.1 * wide[e.first[k]] > 0.0:
            angle = f"{math.degrees(size):.3g}°" if e.description.units.angle == "deg" else f"{size:.3g} rad"
            text = f"{size:.3g} m" if c.form.lengths[0] else angle
            message = f"stopped at t = {state.t:.6g}: the relation of {c} jumps there by {text}"
            advice = "couplings need continuous functions with two derivatives, as step(...), cam(...) or rise345(...)"
            return Stop("jump", message, state.t, c.name, size, advice)
    return None


def _weighed(programs: Programs, q: Floats, angles: Floats, t: float) -> tuple[Floats, Floats]:
    """J with turns as parts of the sizes and rows of length 1, and the rates that the laws ask of these rows."""
    e = programs.layout.equations
    laws, jacobian, *_ = programs.evaluate(q, angles, t)
    norms = Batch.of_one(programs).row_norms(jacobian[None])[0]
    j = programs.layout.by_sizes(jacobian) / norms[:, None]
    rates = np.zeros(e.count)
    for k in e.timed:
        rates[e.first[k]] = laws[k, 1] / norms[e.first[k]]
    return j, rates


def _dependent(programs: Programs, state: State) -> list[Constraint]:
    """The constraints whose equations are nearest to becoming dependent, drivers first."""
    e = programs.layout.equations
    if e.count * 6 * e.nb > DENSE:
        return []
    j, _ = _weighed(programs, state.q, state.angles, state.t)
    if not np.isfinite(j).all():
        return []
    u, s, _ = np.linalg.svd(j, full_matrices=False)
    # Equations that are redundant everywhere have singular values of rounding; the one meant is the next.
    order = np.argsort(s)
    small = next((int(k) for k in order if s[k] > 1e-9 * s.max()), int(order[0]))
    share = np.abs(u[:, small])
    members = []
    for k, c in enumerate(e.constraints):
        size = float(np.max(share[e.rows(k)]))
        if size > 0.2 * share.max():
            members.append((c.law is None, -round(size / share.max(), 6), k))
    return [e.constraints[k] for _, _, k in sorted(members)]


def _asking(programs: Programs, q: Floats, angles: Floats, t: float) -> list[int]:
    """The constraints whose rates cannot be had, drivers first."""
    e = programs.layout.equations
    if e.count * 6 * e.nb > DENSE:
        return list(e.drivers)
    j, rhs = _weighed(programs, q, angles, t)
    if not (np.isfinite(j).all() and np.isfinite(rhs).all()):  # LAPACK may not come back from these
        return list(e.drivers)
    left = rhs - j @ np.linalg.lstsq(j, rhs, rcond=1e-9)[0]
    sizes = [float(np.max(np.abs(left[e.rows(k)]))) for k in range(len(e.constraints))]
    most = max(sizes, default=0.0)
    asking = [k for k, size in enumerate(sizes) if size > 0.05 * most > 0.0]
    # Shares that rounding alone tells apart are equal: then the order is that of the file.
    return sorted(asking, key=lambda k: (e.constraints[k].law is None, -round(sizes[k] / most, 6)))
