"""Rows of closed mechanisms: calls for one state of plane four-bars and of a mechanism on six legs, assembly, and what
a simulation costs besides its steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import linkwright as lw
from speed_table import Measurement, Row, interleaved, python_functions, shown_time

Floats = NDArray[np.float64]
MODELS = Path(__file__).resolve().parents[1] / "examples" / "models"
#: Of the four-bars, `four_bar.xml` closes a loop by a point, and `double_four_bar.mks` two loops by revolute joints.
FOUR_BARS = ("four_bar.xml", "double_four_bar.mks")
UNITS = {"ms": 1e3, "µs": 1e6}


def moving(model: str) -> tuple[lw.Mechanism, Floats, Floats]:
    """A model's mechanism, and a state of it in motion."""
    mech = lw.load(MODELS / model)
    q, _ = mech.initial_state()
    rng = np.random.default_rng(0)
    return mech, *mech.project(mech.integrate(q, 0.05 * rng.normal(size=mech.nv)), 0.3 * rng.normal(size=mech.nv))


def calls(model: str, lead: tuple[int, ...] = ()) -> dict[str, Callable[[], Any]]:
    """Calls of a model's mechanism at a moving state, or for a batch of the same state."""
    mech, q, v = moving(model)
    guess = mech.integrate(q, 0.05 * np.random.default_rng(1).normal(size=mech.nv))
    tau = np.where(mech.actuated, 0.1, 0.0)
    a = mech.forward_dynamics(q, v, tau)
    q, v, tau, a = (np.tile(x, (*lead, 1)) for x in (q, v, tau, a))
    return {
        "forward_dynamics": lambda: mech.forward_dynamics(q, v, tau),
        "inverse_dynamics": lambda: mech.inverse_dynamics(q, v, a),
        "project": lambda: mech.project(q, v),
        "reactions": lambda: mech.reactions(q, v, tau),
        "constraint_forces": lambda: mech.constraint_forces(q, v, tau),
        "assemble": lambda: mech.assemble(q),
        "assemble from a guess": lambda: mech.assemble(guess),
    }


def one_state(function: str, model: str, unit: str) -> Measurement:
    """A warm call for one state."""
    call = calls(model)[function]
    for _ in range(3):
        call()
    (seconds,) = interleaved([call])
    return Measurement(UNITS[unit] * seconds, shown_time(seconds), limits=f"{python_functions(call)} Python functions")


def beside_forward(function: str, model: str) -> Measurement:
    """A warm call for one state, beside forward dynamics of the same mechanism."""
    table = calls(model)
    call, other = table[function], table["forward_dynamics"]
    for _ in range(3):
        call(), other()
    a, b = interleaved([call, other])
    return Measurement(a / b, shown_time(a), shown_time(b))


def batch(function: str, model: str) -> Measurement:
    """Seconds a state of a batch, beside calls of one state."""
    count = 1000
    call, other = calls(model, (count,))[function], calls(model)[function]
    call(), other()
    a, b = interleaved([call, other])
    return Measurement(a / count / b, f"{shown_time(a / count)} a state", shown_time(b))


def beyond_steps(model: str, method: str, dt: float | None) -> Measurement:
    """What a warm run takes that does not grow with its steps: seconds over evaluations of the forces, by a line."""
    mech, q, v = moving(model)
    ends = (0.02, 0.04, 0.08, 0.16) if dt else (0.2, 0.4, 0.6, 0.8)

    def run(t_end: float) -> lw.Solution:
        return lw.simulate(mech, t_end=t_end, q0=q, v0=v, method=method, dt=dt)

    for t_end in ends:
        run(t_end)
    seconds = interleaved([partial(run, t_end) for t_end in ends])
    work = [run(t_end).counters.tape_evaluations for t_end in ends]
    slope, rest = np.polyfit(work, seconds, 1)
    functions = python_functions(partial(run, ends[0]))
    texts = shown_time(float(rest)), f"{shown_time(float(slope))} an evaluation"
    return Measurement(1e3 * float(rest), *texts, f"{functions} Python functions between the call and its Solution")


BOUNDS = {"inverse_dynamics": 3.0, "project": 3.0, "reactions": 10.0, "constraint_forces": 1.0}

ROWS = [
    Row(f"`{function}`, {model}", bound, "µs", partial(one_state, function, model, "µs"))
    for model in FOUR_BARS
    for function, bound in BOUNDS.items()
]
ROWS += [
    Row(f"`{function}`, {model}, warm", 0.2, "ms", partial(one_state, function, model, "ms"))
    for model in FOUR_BARS
    for function in ("assemble", "assemble from a guess")
]
ROWS += [
    Row(f"`simulate` beyond its steps, {model}, {method}, warm", 0.5, "ms", partial(beyond_steps, model, method, dt))
    for model in FOUR_BARS
    for method, dt in (("rk4", 1e-3), ("rk45", None))
]
# No pseudo-inverse, no loop in Python: reactions are forward dynamics, once more the constraints, and a pass inward.
ROWS += [
    Row("`reactions`, six_leg.mks", 3.0, "× forward dynamics", partial(beside_forward, "reactions", "six_leg.mks")),
    Row("`assemble`, six_leg.mks, warm", 0.2, "ms", partial(one_state, "assemble", "six_leg.mks", "ms")),
]
# A batch is one call of the kernel, with as many states side by side as the processor has lanes.
ROWS += [
    Row(f"`{function}`, double_four_bar.mks, 1,000 states", 0.5, "× one state", partial(batch, function, FOUR_BARS[1]))
    for function in ("inverse_dynamics", "project", "reactions")
]
