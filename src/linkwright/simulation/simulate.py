"""`lw.simulate`: the motion of a mechanism from a state and its forces, ending in a `Solution`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.checks import check_points, finite_number, positive_number, real_array
from linkwright.base.types import Floats
from linkwright.errors import ModelError, NameNotFound
from linkwright.model import Mechanism
from linkwright.simulation.tableaux import METHODS, STIFF, tableau_of

if TYPE_CHECKING:
    from linkwright.results.solution import Solution
    from linkwright.simulation.events import Event

RTOL = 1e-8


def simulate(
    mechanism: Mechanism | str | PathLike[str],
    t_end: float = 10.0,
    *,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    tau: ArrayLike | Callable[[Any, Any, Any], Any] | None = None,
    method: str = "rk45",
    rtol: float = RTOL,
    atol: float | None = None,
    dt: float | None = None,
    max_step: float | None = None,
    t_start: float = 0.0,
    times: ArrayLike | None = None,
    interval: float | None = None,
    events: Event | Sequence[Event] = (),
    parameters: Mapping[str, float] | None = None,
    record: bool = True,
    progress: Callable[[float, float], None] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    resume: bool = False,
    conserve: str | None = None,
) -> Solution:
    """The motion from q0, v0 (by default as the model's initial conditions and drawing say) under tau, as a Solution.

    With q0 alone it begins at rest. Of a closed mechanism, the nearest state to these that closes its loops is taken.
    `parameters` gives parameters of the model other values. The times and the method are those given here: what the
    SYSTEM of a model file asks for is done by `lw.analyse`.

    tau is None, an array (nv,), or a law tau(t, q, v) in NumPy syntax, which is compiled into the integrator; a law
    that cannot be recorded is called from Python at every stage, and `sol.status.notes` says why; with record=False
    every law and event is.

    Methods: "rk45" and "dop853" with the tolerances rtol and atol, or with steps of dt; "rk4" and
    "semi-implicit-euler" with steps of dt; "radau" for stiff forces. Every step is kept, or the states at `times`, or
    every `interval`. A run that cannot go on is returned as far as it went, and `sol.status` says why; so is one that
    Ctrl-C ends.

    atol is one number for all of q and v (m, rad, m/s, rad/s). By default each entry has its own, rtol times what the
    shifts, or the turns, have reached so far, at most the mechanism's length or 1 rad, and their rates likewise: the
    same mechanism in µm or in km takes the same steps.

    conserve="energy" scales the rates after every step so that kinetic and potential energy are what they were: for
    motions under gravity alone, without tau, drivers and force elements. It takes nothing from the other errors of a
    step: these are as rtol says.
    """
    from linkwright.simulation.beginning import Settings
    from linkwright.simulation.run import Run

    mech = given = _mechanism(mechanism, parameters)
    start, end = finite_number("t_start", t_start), finite_number("t_end", t_end)
    if end <= start:
        raise ModelError(f"t_end = {end:g} is not after t_start = {start:g}")
    if method not in METHODS:
        raise NameNotFound("method", str(method), list(METHODS))
    if not mech.nv:
        raise ModelError(f"nothing moves in {mech.name!r}: it has no joint with a freedom", element=mech.name)
    step = None if dt is None else positive_number("dt", dt)
    if step is None and method != STIFF and not tableau_of(method).adaptive:
        raise ModelError(f"method={method!r} takes steps of one length: give dt, or take method='rk45'")
    if step is not None and method == STIFF:
        raise ModelError(f"method={method!r} chooses its own steps: leave dt out, or give max_step")
    settings = Settings(
        method=method,
        start=start,
        end=end,
        dt=step,
        rtol=max(positive_number("rtol", rtol), 1e-14),
        atol=None if atol is None else positive_number("atol", atol),
        longest=math.inf if max_step is None else positive_number("max_step", max_step),
        times=_times(start, end, times, interval),
        conserve=_conserved(mech, conserve, method, tau),
    )
    if progress is not None and not callable(progress):
        raise ModelError(f"progress is called with the seconds done and all seconds: give a function, not {progress!r}")
    if checkpoint is not None and not isinstance(checkpoint, str | PathLike):
        raise ModelError(f"checkpoint is the path of a file, not {checkpoint!r}")
    rounding = given.auxiliary.closing
    mech = rounding.mechanism
    q, v, notes = _state(mech, q0, v0, start)
    run = Run(mech, settings, q, v, tau, _events(events), may_record=record, model=given.description.digest)
    run.notes += [*notes, *([rounding.note] if rounding.note else [])]
    if checkpoint is not None:
        run.keep_at(fspath(checkpoint), resume=resume)
    elif resume:
        raise ModelError("resume=True needs the file to go on from: give checkpoint=...")
    solution = run.solution(progress)
    if step is not None:
        # What only methods that choose their steps look at.
        idle = [name for name, given in (("rtol", rtol != RTOL), ("atol", atol), ("max_step", max_step)) if given]
        if idle:
            note = f"{' and '.join(idle)} did nothing: steps are of dt = {step:g} s; leave dt out to have them chosen"
            solution.status = replace(solution.status, notes=(*solution.status.notes, note))
    return solution


def _conserved(mech: Mechanism, conserve: str | None, method: str, tau: Any) -> str | None:
    """What a run keeps, if that is constant in its motion."""
    if conserve is None:
        return None
    if conserve != "energy":
        raise NameNotFound("conserve", str(conserve), ["energy"])
    d = mech.description
    drives = [f"driver {x.name!r}" for x in d.drivers] + [f"force {x.name!r}" for x in d.elements]
    drives += [] if tau is None else ["tau"]
    if drives:
        text = f"conserve='energy' is for motions under gravity alone, and {drives[0]} takes or gives energy"
        raise ModelError(f"{text}; leave conserve out", element=mech.name)
    if method == STIFF:
        raise ModelError(f"method={method!r} does not conserve energy; take 'rk45' or 'dop853'")
    return conserve


def _mechanism(given: Any, parameters: Mapping[str, float] | None) -> Mechanism:
    if not isinstance(given, Mechanism | str | PathLike):
        hint = "; call its build() first" if hasattr(given, "build") else ""
        raise ModelError(f"a simulation takes a mechanism or the path of a model, not {given!r}{hint}")
    values = dict(parameters or {})
    if isinstance(given, Mechanism):
        return given.with_parameters(**values) if values else given
    from linkwright.sources import LoadOptions, load

    return load(fspath(given), **({"parameters": values} if values else LoadOptions()))


def _state(mech: Mechanism, q0: Any, v0: Any, t: float) -> tuple[Floats, Floats, tuple[str, ...]]:
    from linkwright.simulation.beginning import vector

    notes: tuple[str, ...] = ()
    if q0 is None:
        state = mech.auxiliary.initial_state(t)
        q, v, notes = state.q, state.v, state.notes
    else:
        q, v = vector("q0", q0, mech.nq, "one a coordinate"), np.zeros(mech.nv)
    v = v if v0 is None else vector("v0", v0, mech.nv, "one a rate")
    if q0 is not None and mech.nq != mech.nv:
        for joint in mech.joints:
            kind = mech.description.kind_of(mech.description.joint_names.position("joint", joint.name))
            if not kind.paired and joint.mimics is None:
                q[joint.q_slice] = kind.checked(q[joint.q_slice], joint.name)
    return q, v, notes


def _times(start: float, end: float, times: Any, interval: float | None) -> Floats | None:
    """The times asked for, or None for every step."""
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


def _events(given: Any) -> tuple[Any, ...]:
    from linkwright.simulation.events import Event

    if not isinstance(given, Event | Iterable):
        raise ModelError(f"events are lw.Event(function, ...) or a list of them, not {given!r}")
    events = (given,) if isinstance(given, Event) else tuple(given)
    for event in events:
        if not isinstance(event, Event):
            raise ModelError(f"events are lw.Event(function, ...), not {event!r}")
    return events
