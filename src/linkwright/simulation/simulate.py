"""`lw.simulate`: the motion of a mechanism from a state and its forces, ending in a `Solution`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.activity import activity
from linkwright.base.arguments import (
    check_names,
    check_points,
    finite_number,
    path_text,
    positive_number,
    real_array,
    takes_settings,
)
from linkwright.base.arrays import Floats
from linkwright.errors import ModelError, NameNotFound
from linkwright.mechanism import Mechanism, mechanism_of
from linkwright.model.coupling_relation import timed_couplings
from linkwright.results.curve_ends import up_to_ends
from linkwright.results.solution import Solution
from linkwright.simulation.events import Event
from linkwright.simulation.initialise import Settings, vector
from linkwright.simulation.integrators import METHODS, STIFF, tableau_of
from linkwright.simulation.run import Run
from linkwright.simulation.run_settings import Saving, Stepping, refuse_immobile

RTOL = 1e-8


@takes_settings(stepping=Stepping, saving=Saving)
def simulate(
    mech: Mechanism | str | PathLike[str],
    t_end: float = 10.0,
    *,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    tau: ArrayLike | Callable[[Any, Any, Any], Any] | None = None,
    method: str = "rk45",
    rtol: float = RTOL,
    dt: float | None = None,
    events: Event | Sequence[Event] = (),
    parameters: Mapping[str, float] | None = None,
    stepping: Stepping = Stepping(),
    saving: Saving = Saving(),
) -> Solution:
    """The motion from an initial state under forces, as a Solution.

    Main arguments:

    mech: a Mechanism, or the path of a model file. Times, method and tolerances of the file's SYSTEM are for
    `lw.analyse`.

    t_end: the end of the motion (s); 10 by default. Its start is 0, or `stepping.t_start`.

    q0, v0: the initial coordinates (nq,) and rates (nv,) of the spanning tree. By default they follow from the model's
    initial conditions and drawing; with q0 alone the motion starts at rest. Of a closed mechanism, the nearest state
    that closes its loops is taken.

    tau: the joint forces (N, N m): None, an array (nv,), or a law tau(t, q, v) in NumPy syntax, which is compiled into
    the integrator. A law that cannot be recorded is called from Python at every stage, and `sol.status.notes` says why.

    method: "rk45" (the default) or "dop853", with steps by the tolerances or of length dt; "rk4" or
    "semi-implicit-euler", with steps of length dt; "radau" for stiff forces.

    rtol: the relative tolerance of a step; 1e-8 by default.

    dt: the length (s) of all steps. By default (None) steps are chosen by the tolerances.

    events: an `lw.Event` or several, none by default.

    parameters: other values of the model's parameters, by name; by default those of the model. A second value compiles
    nothing.

    Other arguments: `stepping`, an `lw.Stepping` (start time, absolute tolerance, longest step, energy, Python laws),
    and `saving`, an `lw.Saving` (times that are stored, checkpoint, progress); their
    defaults unless given.

    A run that cannot continue is returned as far as it went, and `sol.status` says why; so is one that Ctrl-C ends.
    Raises ModelError for arguments that contradict each other or the mechanism, ShapeError and DtypeError for arrays,
    ArgumentError for a field of Stepping or Saving that is given as an argument.

    >>> import linkwright as lw
    >>> sol = lw.simulate(lw.chain(2), t_end=1.0, q0=[0.9, -0.4], saving=lw.Saving(interval=0.1))
    >>> sol.q.shape
    (11, 2)
    """
    model = mechanism_of(mech, parameters)
    start, end = finite_number("t_start", stepping.t_start), finite_number("t_end", t_end)
    if end <= start:
        raise ModelError(f"t_end = {end:g} is not after t_start = {start:g}")
    check_names("method", [method], METHODS)
    refuse_immobile(model)
    step = None if dt is None else positive_number("dt", dt)
    if step is None and method != STIFF and not tableau_of(method).adaptive:
        raise ModelError(f"method={method!r} takes steps of one length: give dt, or take method='rk45'")
    if step is not None and method == STIFF:
        raise ModelError(f"method={method!r} chooses its own steps: leave dt out, or give lw.Stepping(max_step=...)")
    atol, max_step = stepping.atol, stepping.max_step
    settings = Settings(
        method=method,
        start=start,
        end=end,
        dt=step,
        rtol=max(positive_number("rtol", rtol), 1e-14),
        atol=None if atol is None else positive_number("atol", atol),
        longest=math.inf if max_step is None else positive_number("max_step", max_step),
        times=_times(start, end, saving),
        conserve=_conserved(model, stepping.conserve, method, tau),
    )
    progress: Any = saving.progress
    if progress is not None and not callable(progress):
        raise ModelError(f"progress is called with the seconds done and all seconds: give a function, not {progress!r}")
    checkpoint = None if saving.checkpoint is None else path_text("a checkpoint", saving.checkpoint)
    rounding = model.auxiliary.nearest
    mech = rounding.mechanism
    q, v, notes = _state(mech, q0, v0, start)
    friction, watched = mech.friction, _events(events)
    mover, law = (mech, tau) if friction is None else (friction.bare, friction.law(tau))
    digest = model.description.digest
    run = Run(mover, settings, q, v, law, watched, may_record=stepping.record, model=digest, reported=mech)
    run.notes += [*notes, *rounding.notes]
    if checkpoint is not None:
        run.keep_at(checkpoint, resume=saving.resume)
    elif saving.resume:
        raise ModelError("resume=True needs the file to continue from: give lw.Saving(checkpoint=..., resume=True)")
    with activity("simulating") as work:
        solution = up_to_ends(run.solution(progress or work.progress))
    if step is not None:
        # What only methods that choose their steps look at.
        idle = [name for name, set_ in (("rtol", rtol != RTOL), ("atol", atol), ("max_step", max_step)) if set_]
        if idle:
            note = f"{' and '.join(idle)} did nothing: steps are of dt = {step:g} s; leave dt out to have them chosen"
            solution.add_notes([note])
    return solution


def _conserved(mech: Mechanism, conserve: str | None, method: str, tau: Any) -> str | None:
    """What a run keeps, if that is constant in its motion."""
    if conserve is None:
        return None
    if conserve != "energy":
        raise NameNotFound("conserve", str(conserve), ["energy"])
    d = mech.description
    drives = [f"driver {x.name!r}" for x in d.drivers] + [f"coupling {x.name!r}" for x in timed_couplings(d)]
    drives += [f"force {x.name!r}" for x in d.elements]
    drives += [] if tau is None else ["tau"]
    if drives:
        text = f"conserve='energy' is for motions under gravity alone, and {drives[0]} takes or gives energy"
        raise ModelError(f"{text}; leave conserve out", element=mech.name)
    if method == STIFF:
        raise ModelError(f"method={method!r} does not conserve energy; take 'rk45' or 'dop853'")
    return conserve


def _state(mech: Mechanism, q0: Any, v0: Any, t: float) -> tuple[Floats, Floats, tuple[str, ...]]:
    notes: tuple[str, ...] = ()
    if q0 is None:
        state = mech.auxiliary.initial_state(t)
        q, v, notes = state.q, state.v, state.notes
    else:
        q, v = vector("q0", q0, mech.nq, "one per coordinate"), np.zeros(mech.nv)
    v = v if v0 is None else vector("v0", v0, mech.nv, "one per rate")
    if q0 is not None and mech.nq != mech.nv:
        for joint in mech.joints:
            kind = mech.description.kind_of(mech.description.joint_names.position("joint", joint.name))
            if not kind.paired and joint.mimics is None:
                q[joint.q_slice] = kind.checked(q[joint.q_slice], joint.name)
    return q, v, notes


def _times(start: float, end: float, saving: Saving) -> Floats | None:
    """The times asked for, or None for every step."""
    times, interval = saving.times, saving.interval
    if times is None and interval is None:
        return None
    if times is not None and interval is not None:
        raise ModelError("times and interval were both given; give one of them")
    if interval is not None:
        apart = positive_number("interval", interval)
        check_points(start, end, apart)
        count = math.floor((end - start) / apart * (1.0 + 1e-12) + 1e-9)
        asked = start + apart * np.arange(count + 1)
        if end - asked[-1] > 1e-9 * apart:
            return np.append(asked, end)
        asked[-1] = end
        return np.asarray(asked)
    asked = real_array("times", times).copy()
    if asked.ndim != 1 or not len(asked) or not np.isfinite(asked).all() or np.any(np.diff(asked) <= 0.0):
        raise ModelError("times must be finite numbers in one row, each larger than the one before")
    if asked[0] < start or asked[-1] > end:
        text = f"times go from {asked[0]:g} to {asked[-1]:g}, outside of t_start = {start:g} … t_end = {end:g}"
        raise ModelError(f"{text}; move the ends, or leave times out")
    return np.asarray(asked)


def _events(events: Any) -> tuple[Any, ...]:
    if not isinstance(events, Event | Iterable):
        raise ModelError(f"events are lw.Event(function, ...) or a list of them, not {events!r}")
    several = (events,) if isinstance(events, Event) else tuple(events)
    for event in several:
        if not isinstance(event, Event):
            raise ModelError(f"events are lw.Event(function, ...), not {event!r}")
    return several
