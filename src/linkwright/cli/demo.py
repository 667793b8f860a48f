"""`linkwright demo`: a real robot's table, its dynamics forward and back, and how long they take."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import statistics
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from linkwright.cli.check import summary
from linkwright.cli.screen import console, grid, load, model_table, tell_warning
from linkwright.errors import LinkwrightError

BATCH = 10_000
_TOLERANCE = 1e-9  # of forward dynamics undone by inverse dynamics
_FINGERS = {"panda_finger_joint1": 0.0}


def demo() -> None:
    """Load a robot, compute its dynamics forward and back, and time them beside Pinocchio if that is here."""
    import linkwright as lw

    screen = console()
    path = panda()
    started = perf_counter()
    loaded = load(path or Path(__file__).with_name("arm.dh.toml"))
    mechanism = loaded.mechanism
    read = perf_counter() - started
    screen.print(f"{mechanism.name}", style="bold")
    screen.print(model_table(mechanism))
    screen.print()
    for line in summary(mechanism):
        screen.print(line, soft_wrap=True)
    for warning in loaded.warnings:
        tell_warning(warning)

    arm = mechanism.lock(_FINGERS) if path else mechanism
    rng = np.random.default_rng(1)
    q, v, tau = (rng.uniform(-1.0, 1.0, (BATCH, n)) for n in (arm.nq, arm.nv, arm.nv))
    started = perf_counter()
    with screen.status("compiling"):
        a = arm.forward_dynamics(q[0], v[0], tau[0])
    first = perf_counter() - started
    back = arm.inverse_dynamics(q[0], v[0], a)
    error = float(np.max(np.abs(back - tau[0])))
    screen.print()
    screen.print("dynamics" + (" (fingers locked)" if path else ""), style="bold")
    for name, vector in (("q", q[0]), ("v", v[0]), ("tau", tau[0]), ("a", a)):
        screen.print(f"  {name:<4}" + "".join(f"{x:10.4f}" for x in vector))
    screen.print(f"  inverse dynamics of a gives tau back to {error:.1e}")
    screen.print(f"  model read in {read:.2f} s, first answer after another {first:.2f} s (compiled once, then kept)")
    if not error < _TOLERANCE:
        raise LinkwrightError(f"forward and inverse dynamics disagree by {error:.1e}; please report this")

    with screen.status("timing"):
        ours = _ours(arm, q, v, tau)
        theirs = _pinocchio(path, q, v, tau, a) if path else None
    screen.print()
    screen.print(f"speed, one core, medians (a batch is {BATCH} states)", style="bold")
    rows: list[tuple[str, ...]] = [("  work", "here")]
    rows += [(f"  {work}", _time(seconds)) for work, seconds in ours.items()]
    if theirs is None:
        screen.print(grid(*rows, right=(1,)))
        if path and importlib.util.find_spec("pinocchio") is None:
            screen.print("  install Pinocchio (pip install pin) to see its times beside these", style="dim")
    else:
        rows[0] += ("Pinocchio", "ratio")
        for k, (work, seconds) in enumerate(ours.items(), 1):
            other = theirs.times[work]
            rows[k] += (_time(other), f"{seconds / other:.3f}")
        screen.print(grid(*rows, right=(1, 2, 3)))
        screen.print(f"  both give the same accelerations, to {theirs.difference:.1e}")
    threads = lw.threads()
    if threads > 1:
        out = np.empty_like(a, shape=(BATCH, arm.nv))
        seconds = _median(lambda: arm.forward_dynamics(q, v, tau, out=out)) / BATCH
        screen.print(f"  with {threads} threads a state of the batch takes {_time(seconds)}")


def panda() -> Path | None:
    """The Panda of the wheel `example-robot-data`, where that is installed."""
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in files if file.name == "panda.urdf"]
    return next((file for file in found if file.exists()), None)


def _ours(arm: Any, q: Any, v: Any, tau: Any) -> dict[str, float]:
    """Seconds by kind of work, on one thread."""
    import linkwright as lw

    one, many = np.empty(arm.nv), np.empty((BATCH, arm.nv))
    matrix = np.empty((arm.nv, arm.nv))
    q0, v0, tau0 = q[0].copy(), v[0].copy(), tau[0].copy()
    lw.set_threads(1)
    try:
        return {
            "forward_dynamics, one call": _median(lambda: arm.forward_dynamics(q0, v0, tau0, out=one)),
            "inverse_dynamics, one call": _median(lambda: arm.inverse_dynamics(q0, v0, tau0, out=one)),
            "mass_matrix, one call": _median(lambda: arm.mass_matrix(q0, out=matrix)),
            "forward_dynamics, a state of a batch": _median(lambda: arm.forward_dynamics(q, v, tau, out=many)) / BATCH,
        }
    finally:
        lw.set_threads(None)


@dataclass
class Peer:
    """Another library at the same work."""

    times: dict[str, float]
    difference: float


def _pinocchio(path: Path, q: Any, v: Any, tau: Any, a: Any) -> Peer | None:
    """Pinocchio's seconds for the same, or None where it is not installed."""
    try:
        pin: Any = importlib.import_module("pinocchio")
    except ImportError:
        return None
    whole = pin.buildModelFromUrdf(str(path))
    held = [whole.getJointId(name) for name in whole.names if "finger" in name]
    model = pin.buildReducedModel(whole, held, np.zeros(whole.nq))
    data = model.createData()
    theirs = pin.aba(model, data, q[0], v[0], tau[0])
    difference = float(np.max(np.abs(theirs - a)) / np.max(np.abs(a)))
    q0, v0, tau0 = q[0].copy(), v[0].copy(), tau[0].copy()
    states = list(zip(q[:1000], v[:1000], tau[:1000], strict=True))
    times = {
        "forward_dynamics, one call": _median(lambda: pin.aba(model, data, q0, v0, tau0)),
        "inverse_dynamics, one call": _median(lambda: pin.rnea(model, data, q0, v0, tau0)),
        "mass_matrix, one call": _median(lambda: pin.crba(model, data, q0)),
        "forward_dynamics, a state of a batch": _median(lambda: [pin.aba(model, data, *state) for state in states])
        / len(states),
    }
    return Peer(times, difference)


def _median(work: Callable[[], Any], repeats: int = 9, least: float = 0.02) -> float:
    """Seconds a call: the median of some runs of at least `least` seconds."""
    timer = timeit.Timer(work)
    number = 1
    while (took := timer.timeit(number)) < least:
        number = max(2 * number, int(number * least / max(took, 1e-9)))
    return statistics.median(timer.repeat(repeats, number)) / number


def _time(seconds: float) -> str:
    for unit, size in (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3)):
        if seconds < 1000 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
