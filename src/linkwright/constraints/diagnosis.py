"""Why a mechanism cannot be assembled: drivers that contradict, a joint that stays open, and by what.

One constraint after the other is let go, and the rest is closed: the gap that is then left at it is the whole fault
where there is one. What misses least in all constraints together shows a share of it in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwright.base.arguments import first_few
from linkwright.base.arrays import Floats
from linkwright.constraints.constraint_equations import Constraint, Equations, joint_frames, joint_sides
from linkwright.constraints.constraint_forms import between
from linkwright.constraints.kinematic_programs import Programs
from linkwright.constraints.newton import (
    EXACT,
    Assembled,
    damped,
    least,
    misses,
    moved_states,
    split,
    start_state,
    wrong_way,
)
from linkwright.errors import AssemblyError
from linkwright.model.description import GROUND, Description
from linkwright.model.quantities import angle_text, drives_angle

#: Up to so many entries of J the constraints are let go one by one, and so many of them.
DENSE, MOST = 400_000, 12
ROUNDS, CLOSE_ROUNDS, PATIENCE = 80, 6, 8
#: Parts of a gap below this part of the largest are not reported.
PART = 1e-3
#: How far one looks around a state, as a part of the mechanism's size, and how nearly motions there are the same.
ASIDE, SAME = 0.03, 1e-6
#: What is left of constraints that are closed, as a part of the mechanism's size.
CLOSED = 1e3 * EXACT
#: Gaps within this part of each other are equal: then the drawing decides.
EQUAL = 0.02


@dataclass(frozen=True, eq=False)
class Relaxed:
    """A state in which some equations hold (`residual` is what is left of them, m), and the others are missed least."""

    q: Floats
    angles: Floats
    residual: float
    gap: float


class Relaxation:
    """Closes a mechanism without some of its equations, which are then missed as little as can be."""

    def __init__(self, programs: Programs, t: float) -> None:
        self.programs, self.e, self.t = programs, programs.layout.equations, t

    def rows(self, constraints: Sequence[Constraint]) -> list[int]:
        """The numbers of some constraints' equations."""
        chosen = set(map(id, constraints))
        first = self.e.first
        return [
            row for k, c in enumerate(self.e.constraints) if id(c) in chosen for row in range(first[k], first[k + 1])
        ]

    @property
    def drivers(self) -> list[Constraint]:
        """The drivers among the constraints."""
        return [self.e.constraints[k] for k in self.e.drivers]

    def undriven(self, q: Floats, angles: Floats) -> tuple[Floats, Floats]:
        """J of the drivers, in their order, and a basis of the motions that all other constraints leave free."""
        driven = self.rows(self.drivers)
        fixed = [row for row in range(self.e.count) if row not in set(driven)]
        _, j, _ = self.evaluate(q, angles, fixed, driven)
        return j[driven], split(j[fixed], np.zeros(len(fixed)))[1]

    def without(
        self, state: Assembled | Relaxed, loose: Sequence[Constraint], left_out: Sequence[Constraint] = ()
    ) -> Relaxed:
        """From a state: all equations hold but those of `loose`, which are missed least, and those `left_out`."""
        soft = self.rows(loose)
        not_hard = {*soft, *self.rows(left_out)}
        hard = [row for row in range(self.e.count) if row not in not_hard]
        best = self._closed(self.evaluate(state.q, state.angles, hard, soft), hard, soft, ROUNDS)
        damping, idle = 0.0, 0
        for _ in range(ROUNDS if soft and self.closes(best[0]) else 0):
            relaxed, j, phi = best
            _, free = split(j[hard], -phi[hard])
            step = self.e.size * free @ damped(j[soft] @ free, -phi[soft] / self.e.size, damping)
            x = self.evaluate(self.moved(relaxed.q, step), relaxed.angles, hard, soft)
            x = self._closed(x, hard, soft, CLOSE_ROUNDS)
            if self.closes(x[0]) and x[0].gap < relaxed.gap:
                idle = 0 if x[0].gap < (1.0 - 1e-5) * relaxed.gap else idle + 1
                best, damping = x, (0.1 * damping if damping > 1e-9 else 0.0)
            else:
                idle, damping = idle + 1, max(1e-4, 10.0 * damping)
            if idle > PATIENCE or best[0].gap <= EXACT * self.e.size:
                break
        return best[0]

    def _closed(
        self, x: tuple[Relaxed, Floats, Floats], hard: Sequence[int], soft: Sequence[int], rounds: int
    ) -> tuple[Relaxed, Floats, Floats]:
        """Newton's method with shorter steps where they lead away."""
        short = 1.0
        for _ in range(rounds):
            relaxed, j, phi = x
            if relaxed.residual <= EXACT * self.e.size or short < 1e-6:
                break
            back, _ = split(j[hard], -phi[hard])
            ahead = self.evaluate(self.moved(relaxed.q, short * back), relaxed.angles, hard, soft)
            if ahead[0].residual < relaxed.residual:
                x, short = ahead, min(1.0, 2.0 * short)
            else:
                short *= 0.5
        return x

    def closes(self, state: Relaxed) -> bool:
        """Whether what must hold does."""
        return state.residual <= CLOSED * self.e.size

    def evaluate(
        self, q: Floats, angles: Floats, hard: Sequence[int], soft: Sequence[int]
    ) -> tuple[Relaxed, Floats, Floats]:
        """What is left at a state; J and Φ in metres."""
        _, stored, phi, _, angles = self.programs.evaluate(q, angles, self.t)
        units = self.e.arms(self.e.size)
        j, phi = self.programs.layout.by_sizes(stored) * units[:, None], phi * units
        residual = float(np.max(np.abs(phi[hard]), initial=0.0))
        return Relaxed(q, angles, residual, float(np.linalg.norm(phi[soft]))), j, phi

    def moved(self, q: Floats, step: Floats) -> Floats:
        delta = step.reshape(-1, 6) / self.e.arcs
        turn = float(np.max(np.abs(delta[:, 3:]), initial=0.0))
        shift = float(np.max(np.abs(delta[:, :3]), initial=0.0)) / self.e.size
        delta = delta * min(1.0, 0.7 / max(turn, 1e-300), 1.0 / max(shift, 1e-300))
        return moved_states(q, delta)


def does_not_close(programs: Programs, state: Assembled, t: float) -> AssemblyError:
    """The error for a mechanism that misses least in this state."""
    e = programs.layout.equations
    shares = misses(programs, state, t)
    undefined = {c: miss for c, miss in shares.items() if not np.isfinite(miss)}
    if undefined or not np.isfinite(state.miss):
        open_ = undefined or shares
        text = first_few([str(c) for c in open_], 6)
        reason = f"these have no finite value or rate: {text}; look for numbers that are too large or too small in them"
        return _error(t, reason, {str(c): miss for c, miss in open_.items()}, next(iter(open_)).name)
    if e.count * 6 * e.nb <= DENSE:
        relaxation = Relaxation(programs, t)
        error = _of_drivers(relaxation, state, t) or _of_gap(relaxation, state, shares, t)
        if error is not None:
            return error
    largest = {c: miss for c, miss in shares.items() if miss > 0.05 * state.miss}
    text = first_few([f"{c} by {miss:.3g} m" for c, miss in largest.items()], 6)
    return _error(
        t,
        f"where gaps are least in all constraints together, these are open: {text}; check the lengths and the "
        "drivers, or draw the bodies nearer to where they belong",
        {str(c): miss for c, miss in largest.items()},
        next(iter(largest)).name,
    )


def _error(t: float, reason: str, gaps: dict[str, float], element: str) -> AssemblyError:
    return AssemblyError(f"the mechanism cannot be assembled at t = {t:g}: {reason}", misses=gaps, element=element)


# -- drivers --------------------------------------------------------------------------------------------------------
def _of_drivers(relaxation: Relaxation, state: Assembled, t: float) -> AssemblyError | None:
    """The error where the mechanism can be assembled without its drivers: which of them ask for what is not there."""
    drivers = relaxation.drivers
    free = relaxation.without(state, (), drivers) if drivers else None
    if free is None or not relaxation.closes(free):
        return None
    driven, motions = relaxation.undriven(free.q, free.angles)
    if not motions.size:  # the state is the only one around it
        return _of_gap(relaxation, state, misses(relaxation.programs, state, t), t, rigid=True)
    gaps = {}
    for c in drivers:
        loose = [relaxation.without(x, [c]) for x in (state, free)]
        closed = [x for x in loose if relaxation.closes(x)]
        if closed:
            gaps[c] = min(closed, key=lambda x: x.gap)
    guilty = list(gaps) or drivers
    measured = {str(c): x.gap for c, x in gaps.items()} or {str(c): relaxation.without(free, [c]).gap for c in drivers}
    names = ", ".join(repr(c.name) for c in guilty)
    if len(guilty) == 1:
        c = guilty[0]
        value, reached = _prescribed(relaxation, c, gaps[c])
        text = f"{c} asks for {value}, which is out of reach; the nearest is {reached}. Change its law, or the "
        return _error(t, text + "lengths; or was another assembly mode meant?", measured, c.name)
    asked = [row for row, c in zip(driven @ motions, drivers, strict=True) if c in guilty]
    if np.linalg.matrix_rank(asked, tol=1e-6) < len(guilty):
        text = f"the drivers {names} drive the same degree of freedom and contradict each other"
        for c in guilty[-1:] if gaps else ():
            value, reached = _prescribed(relaxation, c, gaps[c])
            text += f": with the others {c.name!r} is at {reached}, and its law says {value}"
        return _error(t, f"{text}; remove one of them", measured, guilty[0].name)
    text = f"the drivers {names} together ask for what is out of reach; change their laws, or the lengths; or was "
    return _error(t, text + "another assembly mode meant?", measured, guilty[0].name)


def repeated_drivers(
    programs: Programs, q: Floats, angles: Floats, t: float, doubled: Sequence[int]
) -> tuple[tuple[str, ...], ...]:
    """Of drivers whose equations are redundant at a state, those that are so around it too, with what they repeat.

    `doubled` has their numbers among the constraints. At a dead centre a driver is redundant for a moment only.
    """
    e = programs.layout.equations
    if e.count * 6 * e.nb > DENSE:
        return ()
    relaxation = Relaxation(programs, t)
    drivers = relaxation.drivers
    driven, free = relaxation.undriven(q, angles)
    if free.shape[1]:
        aside = free @ np.random.default_rng(0).normal(size=free.shape[1])
        aside *= ASIDE * e.size / max(float(np.abs(aside).max()), 1e-300)
        start, _, _ = relaxation.evaluate(relaxation.moved(q, aside), angles, (), ())
        beside = relaxation.without(start, (), drivers)
        driven, free = relaxation.undriven(beside.q, beside.angles)
    motions = driven @ free / np.maximum(np.linalg.norm(driven, axis=1), 1e-300)[:, None]
    at = {id(c): k for k, c in enumerate(drivers)}
    named = []
    for c in (e.constraints[k] for k in doubled):
        row, others = at[id(c)], [k for k in range(len(drivers)) if k != at[id(c)]]
        shares = least(motions[others].T, motions[row])
        size, apart = (float(np.linalg.norm(x)) for x in (motions[row], motions[row] - shares @ motions[others]))
        if apart <= SAME * max(size, SAME):
            repeats = [drivers[k].name for k, share in zip(others, shares, strict=True) if abs(share) > SAME]
            named.append((c.name, *repeats))
    return tuple(named)


def _prescribed(relaxation: Relaxation, c: Constraint, state: Relaxed) -> tuple[str, str]:
    """What a driver's law says, and what it drives is at a state."""
    e = relaxation.e
    laws, _, phi, _, _ = relaxation.programs.evaluate(state.q, state.angles, relaxation.t)
    k = e.constraints.index(c)
    value, reached = float(laws[k, 0]), float(laws[k, 0] + phi[e.first[k]])
    driver = next(driver for driver in e.description.drivers if driver.name == c.name)
    if not drives_angle(e.description, driver):
        return f"{value:.6g}", f"{reached:.6g}"
    return angle_text(value), angle_text(reached)


# -- gaps -----------------------------------------------------------------------------------------------------------
def _of_gap(
    relaxation: Relaxation, state: Assembled, shares: dict[Constraint, float], t: float, rigid: bool = False
) -> AssemblyError | None:
    """The error that reports the gap at the constraint where it is least, when the rest is closed.

    Drivers are left out, except where the mechanism is `rigid` without them: then the gap is where they move it.
    """
    e = relaxation.e
    drivers = [] if rigid else relaxation.drivers
    apart = _gaps_at(relaxation, start_state(e))
    suspects = sorted((c for c in shares if c.group != "driver"), key=lambda c: -max(shares[c], apart[id(c)]))
    candidates = suspects[:MOST]
    relaxed = {c: relaxation.without(state, [c], drivers) for c in candidates}
    relaxed = {c: x for c, x in relaxed.items() if relaxation.closes(x)}
    elsewhere = any(_assembles_at(relaxation, x) for x in relaxed.values() if x.gap <= CLOSED * e.size)
    relaxed = {c: x for c, x in relaxed.items() if x.gap > CLOSED * e.size}
    if not relaxed:
        return None
    least = min(x.gap for x in relaxed.values())
    alike = [c for c, x in relaxed.items() if x.gap <= (1.0 + EQUAL) * least]
    order = {id(c): k for k, c in enumerate(e.constraints)}
    odd = _odd_joints(e, alike)
    c = max(alike, key=lambda c: (id(c) in odd, apart[id(c)] > 0.5 * least, order[id(c)]))
    gaps = {str(x): relaxed[x].gap for x in sorted(relaxed, key=lambda x: (x is not c, relaxed[x].gap))}
    wherever = ", wherever drivers move it" if drivers else ""
    text = f"{c} stays open when the rest is closed{wherever}: {_gap_in_words(e, c, relaxed[c])}"
    if rigid:
        text = f"without its drivers it is a rigid structure, which they cannot move; with them {text}"
    if elsewhere:
        text += "; or was another assembly mode meant? It exists: draw the bodies on its side, or give INITIAL values"
    return _error(t, text, gaps, c.name)


def _assembles_at(relaxation: Relaxation, state: Relaxed) -> bool:
    """Whether all constraints, drivers too, can be closed from a state: on another assembly mode than is drawn."""
    closed = relaxation.without(state, ())
    return relaxation.closes(closed) and not wrong_way(relaxation.e, closed.q)


def _gaps_at(relaxation: Relaxation, q: Floats) -> dict[int, float]:
    """The gap at each constraint where the bodies are drawn (m)."""
    e = relaxation.e
    angles = np.zeros(max(int(e.first_angle[-1]), 1))
    _, _, phi = relaxation.evaluate(q, angles, (), ())
    return {id(c): float(np.linalg.norm(phi[e.rows(k)])) for k, c in enumerate(e.constraints)}


def _gap_in_words(e: Equations, c: Constraint, state: Relaxed) -> str:
    """What is open at a constraint, and what to do about it."""
    d = e.description
    if c.group == "coupling":
        unit = "m" if c.form.lengths[0] else "rad"
        size = state.gap if c.form.lengths[0] else state.gap / e.size
        return f"its two sides differ by {size:.3g} {unit}; check its relation"
    if c.group != "joint":
        return f"its gap is {state.gap:.3g} m; check its length and its points"
    j = c.source.joints[0]
    r, p = between(*joint_frames(d, state.q, j))
    kind = d.kind_of(j)
    sides, odd = " and ".join(_side(d, j, side) for side in (0, 1)), _odd_side(d, j, e.size)
    tilt = float(np.degrees(np.arctan2(np.hypot(r[0, 2], r[1, 2]), r[2, 2])))
    angle = min(tilt, 180.0 - tilt) if kind.name != "universal" else abs(90.0 - tilt)
    across, along = float(np.hypot(p[0], p[1])), abs(float(p[2]))
    names = kind.equation_names
    if not any("along h" in name for name in names) and kind.name != "screw":
        along = 0.0
    if not any("along f" in name for name in names):
        across = 0.0
    if not any("axes" in name for name in names):
        angle = 0.0
    largest = max(across, along, np.radians(angle) * e.size)
    gaps, advice = [], []
    if np.radians(angle) * e.size > PART * largest:
        wanted = "perpendicular" if kind.name == "universal" else "parallel"
        gaps.append(f"the axes of {sides} are {angle:.3g}° out of {wanted}{odd[0]}")
        advice.append("turn one of these axes")
    if along > PART * largest:
        gaps.append(f"the origins of {sides} are {along:.3g} m apart along the joint axis, out of plane{odd[1]}")
        advice.append("move one of these points")
    if across > PART * largest:
        gaps.append(f"the origins of {sides} have a gap of {across:.3g} m across the joint axis")
        advice.append("check the lengths")
    if not gaps:
        gaps.append(f"{sides} are turned against each other by what is not allowed, {state.gap:.3g} m")
        advice.append("check their axes")
    return f"{'; '.join(gaps)}; {', '.join(advice)}, or draw the bodies nearer to where they belong"


def _odd_joints(e: Equations, constraints: Sequence[Constraint]) -> set[int]:
    """The ids of the joints on the one body whose joints do not agree with each other, if there is one such body.

    A frame that is out of plane or out of parallel is odd at its own joint, and makes the other joint of its body odd
    where the body has two. In a mechanism in space many joints are: that says nothing.
    """
    d = e.description
    joints = [c for c in constraints if c.group == "joint"]
    odd = [c for c in joints if any(_odd_side(d, c.source.joints[0], e.size))]
    return {id(c) for c in odd} if len(odd) <= 2 else set()


def _odd_side(d: Description, j: int, size: float) -> tuple[str, str]:
    """Words for the one frame of a joint whose axis, or whose origin along it, is not as its body's other joints."""
    tilted, raised = [], []
    others = [k for k in range(d.nj) if k != j and any("axes" in name for name in d.kind_of(k).equation_names)]
    for side, (body, r, origin) in enumerate(joint_sides(d, j)):
        axis, tilts, heights = r[:, 2], [], []
        for k in others:
            for other, axes, point in joint_sides(d, k):
                if other == body:
                    tilts.append(float(np.linalg.norm(np.cross(axis, axes[:, 2]))))
                    heights.append(abs(float(axis @ (point - origin))) / size)
        if tilts and min(tilts) > 1e-6:
            tilted.append(_side(d, j, side))
        if heights and max(tilts) < 1e-6 < min(heights):
            raised.append(_side(d, j, side))
    turned = f" (the axis of {tilted[0]} is not parallel to the other joints of that body)" if len(tilted) == 1 else ""
    moved = f" ({raised[0]} is not in the plane of the other joints of that body)" if len(raised) == 1 else ""
    return turned, moved


def _side(d: Description, j: int, side: int) -> str:
    """The frame of a joint on one of its bodies, by its name if it has one."""
    body, r, p = joint_sides(d, j)[side]
    of = f"body {d.body_names[body]!r}" if body != GROUND else d.ground_name
    near = 1e-9
    for k in np.flatnonzero(d.frames.body == body).tolist():
        if np.abs(d.frames.p[k] - p).max() <= near * d.length_scale and np.abs(d.frames.r[k] - r).max() <= near:
            return f"frame {d.frames.names[k]!r} on {of}"
    return f"its frame on {of}"
