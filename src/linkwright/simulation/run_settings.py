"""Settings of simulations and rollouts beyond their main arguments, grouped by what they are about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from linkwright.errors import ModelError

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism


def refuse_immobile(mech: Mechanism) -> None:
    """Refuse a mechanism in which nothing moves."""
    if not mech.nv:
        raise ModelError(f"nothing moves in {mech.name!r}: it has no joint with a freedom", element=mech.name)


@dataclass(frozen=True, kw_only=True)
class Stepping:
    """How a simulation goes through time: `lw.simulate(..., stepping=lw.Stepping(max_step=0.01))`.

    t_start: the time (s) of the initial state; 0 by default.

    atol: the absolute tolerance of every entry of q and v (m, rad, m/s, rad/s). By default (None) each entry has its
    own tolerance: rtol times the largest shift, or turn, that the motion has reached so far, at most the mechanism's
    length or 1 rad; rates likewise. The same mechanism in µm or in km then takes the same steps.

    max_step: the longest step (s) that the step control may choose; by default (None) the whole run.

    conserve: "energy" scales the rates after every step so that kinetic and potential energy together keep their
    initial value: for motions under gravity alone, without tau, drivers and force elements. The other errors of a step
    stay as rtol says. By default (None) nothing is scaled.

    record: whether laws and events are recorded and compiled where that is possible, which is the default. With False
    all of them are called from Python.

    >>> import linkwright as lw
    >>> sol = lw.simulate(lw.chain(1), t_end=0.2, q0=[0.5], stepping=lw.Stepping(t_start=0.1, max_step=0.01))
    >>> float(sol.time[0])
    0.1
    """

    t_start: float = 0.0
    atol: float | None = None
    max_step: float | None = None
    conserve: str | None = None
    record: bool = True


@dataclass(frozen=True, kw_only=True, eq=False)
class Saving:
    """What a simulation stores and reports: `lw.simulate(..., saving=lw.Saving(interval=0.01))`.

    times: the times (s) whose states are stored, (T,) and increasing; interval: a time step (s) from the start to the
    end instead. Give one of them at most. By default (None) every step of the method is stored.

    checkpoint: the path of a file to which the run's state is written every few seconds; none by default.

    resume: with True, the run continues from the checkpoint, and its points are the same to the bit as those of a run
    that was never interrupted. False by default.

    progress: a function that is called during the run with the seconds of motion so far and those of the whole run;
    none by default.

    `lw.simulate` raises ModelError where both times and interval are given, or numbers cannot be used.

    >>> import linkwright as lw
    >>> len(lw.simulate(lw.chain(1), t_end=1.0, q0=[0.5], saving=lw.Saving(interval=0.1)))
    11
    """

    times: ArrayLike | None = None
    interval: float | None = None
    checkpoint: str | PathLike[str] | None = None
    resume: bool = False
    progress: Callable[[float, float], None] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """What a rollout stores: `lw.rollout(..., samples=lw.Samples(every=10, outputs="q"))`.

    every: how many steps lie between two samples; 1 by default. The first and the last state are always stored.

    outputs: the names of the arrays that are stored, some of "q", "v" and "a", by default ("q", "v"); or a function
    y(t, q, v) in NumPy syntax, whose values alone are stored, as `y`.

    `lw.rollout` raises ModelError for another number, NameNotFound for another name.

    >>> import numpy as np, linkwright as lw
    >>> motions = lw.rollout(lw.chain(1), np.ones((5, 1)), np.zeros(1), 1e-3, 100, samples=lw.Samples(every=50))
    >>> motions.q.shape
    (5, 3, 1)
    """

    every: int = 1
    outputs: str | tuple[str, ...] | Callable[[Any, Any, Any], Any] = ("q", "v")
