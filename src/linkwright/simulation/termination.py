"""How a run ended, in words: what went wrong, where, and what to try; and forces that jump.

Steps that are chosen by their error become short where the acceleration jumps. A law that is held between samples costs
some rejected steps per jump. One that changes its sign with a rate, as dry friction does, jumps to and fro for as long
as that joint is at rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.dynamics.functions import Request
from linkwright.mechanism import Mechanism
from linkwright.model.elements import Bushing, JointForce, PointForce
from linkwright.model.expression import numeric_values
from linkwright.results.status import Status
from linkwright.simulation.compiled_engines import Trouble, Work
from linkwright.simulation.python_laws import Law
from linkwright.simulation.samples import Rows
from linkwright.simulation.step_control import CLOSED

T = TypeVar("T")


def ended(mech: Mechanism, trouble: Trouble, last: Rows) -> Status:
    """The status of a run that could not go on from its last state."""
    t = trouble.time
    if trouble.reason == "law failed":
        return law_failed(trouble.message, t)
    if trouble.reason == "no function of the state":
        advice = "draw the numbers before and take them from a table of t; or give dt, whose steps do not shrink"
        return Status(False, trouble.message, trouble.reason, t, advice=advice)
    if trouble.reason == "rounded numbers":
        message = f"at t = {t:.9g} s the mechanism comes to a singular position{dependence(mech, trouble.state)}; its "
        message += f"redundant loops are open by {trouble.residual:.1g} of its size, which leaves open how it goes on"
        advice = "give the model's numbers with more digits, so that its loops close"
        return Status(False, message, trouble.reason, t, residual=trouble.residual, advice=advice)
    law = endless_law(mech, last, ahead=True) if trouble.reason in ("no value", "step underflow") else None
    if law is not None:
        message = f"at t = {t:.9g} s the law of {law[0]} {law[1]!r} comes to where it has no finite value"
        advice = "change the law, or end the run before"
        return Status(False, message, trouble.reason, t, law[1], trouble.residual, advice=advice)
    if trouble.reason == "no value":
        joint = first_bad_joint(mech, trouble.state)
        where = f"joint {joint!r} has" if joint else "the state has"
        message = f"at t = {t:.9g} s {where} no finite coordinate, rate or acceleration any more"
        advice = "take a smaller dt or tighter tolerances, and look for forces that grow without bound"
        return Status(False, message, "no value", t, joint, trouble.residual, advice=advice)
    if trouble.reason == "step underflow":
        joint = fastest_joint(mech, trouble.state)
        message = f"at t = {t:.9g} s no step is short enough for the tolerances; joint {joint!r} accelerates most"
        advice = "look for a force that jumps or grows without bound there, loosen rtol and atol, or try method='radau'"
        if mech.closed:
            advice = f"the mechanism may lock up there, at a dead centre of its loops or drivers; if not, {advice}"
        message += dependence(mech, trouble.state)
        return Status(False, message, "step underflow", t, joint, advice=advice)
    name = worst_constraint(mech, trouble.state)
    what = name or "the constraints"
    both = rivals(mech, name)
    if both:
        message = f"at t = {t:.9g} s drivers {both[0]!r} and {both[1]!r} of the same thing contradict each other"
        return Status(False, message, "constraint cannot be met", t, name, trouble.residual, advice="remove one")
    if trouble.residual:
        unit = "rad, or of the mechanism's length"
        gap = f"{trouble.residual:.3g} ({unit})"
        message = f"at t = {t:.9g} s {what} cannot be met any more: what is left open is {gap}"
    else:
        message = f"at t = {t:.9g} s the position is singular: {what} no longer tells how to go on"
    message += dependence(mech, trouble.state)
    advice = "the mechanism may lock up or pass a singular position there; look at its drivers, or take smaller steps"
    return Status(False, message, "constraint cannot be met", t, name, trouble.residual, advice=advice)


def law_failed(message: str, t: float) -> Status:
    """The status of a run whose law raised an error."""
    advice = "call it yourself near the last state, sol.time[-1], sol.q[-1], sol.v[-1], to see where"
    return Status(False, message, "law failed", t, advice=advice)


def interrupted(t: float, resumable: bool | None) -> Status:
    """The status of a run that a person ended; `resumable` if it has a checkpoint, None if such runs have none."""
    advice = "a run with lw.Saving(checkpoint=...) can be resumed"
    if resumable:
        advice = "continue with lw.Saving(checkpoint=..., resume=True)"
    if resumable is None:
        advice = "the samples so far are kept"
    return Status(False, f"interrupted at t = {float(t):.9g} s", "interrupted", float(t), advice=advice)


def first_bad_joint(mech: Mechanism, row: Rows | None) -> str | None:
    """The first joint of the tree with a coordinate, rate or acceleration that is no finite number."""
    if row is None:
        return None
    for joint in mech.joints:
        parts = (row.q[0, joint.q_slice], row.v[0, joint.v_slice], row.a[0, joint.v_slice])
        if not all(np.isfinite(x).all() for x in parts):
            return joint.name
    return None


def endless_law(mech: Mechanism, row: Rows, *, ahead: bool = False) -> tuple[str, str] | None:
    """What has a law without a finite value at a state or a little ahead of it: a force or a driver, and its name."""
    d, q, v, t = mech.description, row.q[0], row.v[0], float(row.t[0])
    if not (np.isfinite(q).all() and np.isfinite(v).all()):
        return None
    later = np.zeros(1)
    if ahead:
        fastest = float(np.max(np.abs(v) / mech.programs.rate_units, initial=0.0))
        later = np.append(later, np.logspace(-15, -2, 27) / (1.0 + fastest))
    times = t + later
    columns = {("driver", x.name): numeric_values(x.law, {**d.parameters, "TIME": times}) for x in d.drivers}
    if d.elements:
        there = mech.integrate(np.tile(q, (len(later), 1)), later[:, None] * v)
        values = force_values(mech, there, np.tile(v, (len(later), 1)), times)
        columns |= {("force", element.name): x for element, x in values}
    bad = {key: ~np.isfinite(np.broadcast_to(x, times.shape)) for key, x in columns.items()}
    first = [(int(np.argmax(at)), key) for key, at in bad.items() if at.any()]
    return min(first)[1] if first else None


def dependence(mech: Mechanism, row: Rows | None) -> str:
    """Which constraints depend on each other there, as the end of a sentence; nothing where the position is regular."""
    if row is None or not mech.closed or not np.isfinite(row.q).all():
        return ""
    dependent = _try(lambda: mech.singular(row.q[0], t=float(row.t[0]))) or []
    names = list(dict.fromkeys(name for name, _ in dependent))
    if len(names) > 4:
        names = [*names[:3], f"{len(names) - 3} more"]
    if not names:
        return ""
    does = "depend on each other" if len(names) > 1 else "depends on the other joints"
    return f"; it is at a dead centre, where {' and '.join(names)} {does}"


def worst_constraint(mech: Mechanism, row: Rows | None) -> str | None:
    """The constraint equation that is farthest from being met, there or, if all are, a little later."""
    return None if row is None or not mech.closed else _try(lambda: _worst(mech, row))


def _worst(mech: Mechanism, row: Rows) -> str | None:
    q, t = row.q[0], float(row.t[0])
    units = mech.programs.constraint_units
    phi = np.abs(mech.kernels.position_correction(q, t)[1]) / units
    if np.max(phi, initial=0.0) < CLOSED:
        h = 1e-3 / (float(np.max(np.abs(row.v[0]) / mech.programs.rate_units, initial=0.0)) or 1.0)
        phi = np.abs(mech.kernels.position_correction(mech.integrate(q, h * row.v[0]), t + h)[1]) / units
    return mech.constraints[int(np.argmax(np.where(np.isfinite(phi), phi, np.inf)))] if len(phi) else None


def _try(ask: Callable[[], T]) -> T | None:
    """The answer, or None: what explains the end of a run must not lose the run."""
    try:
        return ask()
    except Exception:
        return None


def rivals(mech: Mechanism, constraint: str | None) -> list[str]:
    """The drivers of what a driver's equation is about, if there are several."""
    drivers = mech.description.drivers
    driver = next((x for x in drivers if constraint is not None and constraint.startswith(f"driver {x.name!r}:")), None)
    if driver is None:
        return []
    same = [x.name for x in drivers if replace(x, name=driver.name, law=driver.law) == driver]
    return same if len(same) > 1 else []


def fastest_joint(mech: Mechanism, row: Rows | None) -> str | None:
    """The joint with the largest acceleration."""
    if row is None or not row.a.size:
        return None
    return joint_of_rate(mech, int(np.argmax(np.abs(row.a[0]) / mech.programs.rate_units)))


def joint_of_rate(mech: Mechanism, at: int) -> str | None:
    """The joint that has the rate of this number."""
    return next((joint.name for joint in mech.joints if joint.v_slice.start <= at < joint.v_slice.stop), None)


def force_values(
    mech: Mechanism, q: Floats, v: Floats, t: Floats
) -> list[tuple[JointForce | PointForce | Bushing, Floats]]:
    """The force elements with laws of one value, each with its values (n,) at states q, v (n, ·) and times t (n,);
    then bushings, six times each: force and torque on the second frame, in the axes of the first.
    """
    d = mech.description
    elements: list[JointForce | PointForce | Bushing] = [
        e for e in d.elements if isinstance(e, JointForce | PointForce)
    ]
    elements += [e for e in d.elements if isinstance(e, Bushing) for _ in range(6)]
    if not elements:
        return []
    values = mech.kernels.evaluate(Request("force_values"), q, v, t=t)
    return [(element, values[:, k]) for k, element in enumerate(elements)]


#: A step is short below this part of the longest; a change of the acceleration is a jump above this part of the largest
#: and so many times those beside it, or back again in the next step, or to and fro within the step: then the rates do
#: not change as the accelerations at both ends say.
SHORT, PART, ALONE = 0.02, 0.02, 10.0
#: Attempts that are looked at together, and how many such windows on end make a run slow.
WINDOW, ON_END = 200, 3
#: Attempts to the end, at the present rate, from which a run is slow: with a Python law, and compiled.
CALLED, COMPILED = 1e5, 2e6
#: The part of the steps that jump in a run that chatters; jumps from which a note is worth it.
CHATTERS, MANY = 0.05, 20


NO_STEPS = np.zeros(0, dtype=np.int64)


class Jumps:
    """The jumps of one run, by the points that its engine gives."""

    def __init__(self, mech: Mechanism, law: Law | None, end: float) -> None:
        self.mech, self.law, self.end = mech, law, end
        self.called = law is not None and law.program is None
        self.longest, self.largest = 0.0, np.zeros(mech.nv)
        self.count, self.first = 0, (0.0, "")
        self.passed = 0  # the jumps after which steps became long again
        self.before = 0  # the attempts when the window began
        self.window = [0.0, 0, 0]  # the time, the steps and the jumps in it
        self.slow = 0
        self.note = ""

    def look(self, rows: Rows, work: Work) -> Status | None:
        """Look at further points; the status, if the run is to end."""
        places, long = self._jumps(rows)
        if len(places):
            if not self.count:
                self.first = float(rows.t[places[0]]), self._what(rows[places[0] : places[0] + 2])
            self.count += len(places)
        if long >= 0:
            self.passed = self.count - int(np.count_nonzero(places > long))
        time = float(rows.t[-1] - rows.t[0])
        self.window = [x + y for x, y in zip(self.window, (time, len(rows) - 1, len(places)), strict=True)]
        attempts = work.steps + work.rejected - self.before
        if attempts < WINDOW:
            return None
        time, steps, jumps = self.window
        self.before, self.window = work.steps + work.rejected, [0.0, 0, 0]
        limit = CALLED if self.called else COMPILED
        if attempts * (self.end - float(rows.t[-1])) <= limit * time or jumps < CHATTERS * steps or not jumps:
            self.slow = 0
            return None
        self.slow += 1
        if self.slow < ON_END or self.note or not len(places):
            return None
        return self._chatters(rows[places[-1] : places[-1] + 2])

    def _jumps(self, rows: Rows) -> tuple[NDArray[np.int64], int]:
        """The steps in which the acceleration jumps, and the last that is not short; −1 for none."""
        h = rows.t[1:] - rows.t[:-1]
        if not len(h):
            return NO_STEPS, -1
        self.longest = max(self.longest, float(h.max()))
        self.largest = np.maximum(self.largest, np.abs(rows.a).max(axis=0))
        short = h < SHORT * self.longest
        if not short.any():
            return NO_STEPS, len(h) - 1
        long = np.flatnonzero(~short)
        change = np.diff(rows.a, axis=0) / np.where(self.largest > 0.0, self.largest, 1.0)
        padded = np.pad(change, ((1, 1), (0, 0)))
        back, on = padded[:-2], padded[2:]
        large = np.abs(change) > PART
        alone = np.abs(change) > ALONE * np.maximum(np.abs(back), np.abs(on))
        flips = (np.abs(on) > PART) & (on * change < 0.0) | (np.abs(back) > PART) & (back * change < 0.0)
        mean = 0.5 * (rows.a[1:] + rows.a[:-1])
        odd = np.abs(np.diff(rows.v, axis=0) / h[:, None] - mean) / np.where(self.largest > 0.0, self.largest, 1.0)
        within = odd > np.maximum(PART, 0.5 * np.abs(change))
        jumps = np.flatnonzero((large & (alone | flips) | within).any(axis=1) & short)
        return jumps, int(long[-1]) if len(long) else -1

    def _what(self, pair: Rows) -> str:
        """What jumps between two points."""
        if self.law is not None:
            return self.law.what
        # Where a joint is about at rest, and both points on one side of it, what jumps does so for the opposite rates.
        q, v, t = np.tile(pair.q, (2, 1)), np.concatenate([pair.v, -pair.v]), np.tile(pair.t, 2)
        changes = [(float(np.ptp(x)), element.name) for element, x in force_values(self.mech, q, v, t)]
        # The first without a value, if there is one: NumPy takes it for the largest.
        return f"force {changes[int(np.argmax([change for change, _ in changes]))][1]!r}" if changes else "a force"

    def _chatters(self, pair: Rows) -> Status | None:
        what, t = self._what(pair), float(pair.t[-1])
        at = int(np.argmax(np.abs(np.diff(pair.a, axis=0)[0])))
        joint = joint_of_rate(self.mech, at)
        message = f"at t = {t:.9g} s {what} jumps to and fro, about where joint {joint!r} comes to rest"
        advice = "make the law smooth, such as tanh(v/0.001) for sign(v); or give dt, whose steps do not shrink"
        if self.called:
            return Status(False, f"{message}; steps become too short for it", "law jumps", t, joint, advice=advice)
        self.note = f"{message}, and takes very short steps; {advice}"
        return None

    def notes(self, work: Work, *, ended_early: bool) -> list[str]:
        """What a person should know of the run.

        Where a run ended early, steps may have become short before a singular position: these are no jumps.
        """
        if self.note:
            return [self.note]
        count = self.passed if ended_early else self.count
        if count < MANY or work.rejected < count:
            return []
        t, what = self.first
        each = work.rejected / count
        text = f"{what} jumps {count} times, first at t = {t:.6g} s, at about {each:.0f} rejected steps per jump"
        return [f"{text}; where a law is held between samples, give a dt that divides the sampling time"]
