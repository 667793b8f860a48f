"""`linkwright demo`: a mechanism from its model file to its animation; or a robot and the speed of its dynamics."""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

import linkwright as lw
from linkwright.cli.check_verb import summary
from linkwright.cli.run_verb import perform
from linkwright.cli.screen import console, grid, load, model_table
from linkwright.errors import LinkwrightError, NameNotFound

BATCH = 10_000
ROUNDS, SHORTEST = 15, 0.01  # rounds of a timing, and the seconds that one takes at least
TITLES = {
    "forward": "forward_dynamics, one call",
    "inverse": "inverse_dynamics, one call",
    "mass": "mass_matrix, one call",
    "batch": "forward_dynamics, a state of a batch",
}
_TOLERANCE = 1e-9  # of forward dynamics undone by inverse dynamics
_FINGERS = {"panda_finger_joint1": 0.0}


def show_robot() -> None:
    """Load a robot, compute its dynamics forward and back, and time them beside Pinocchio if that is here."""
    screen = console()
    path = panda()
    started = perf_counter()
    loaded = load(path or Path(__file__).with_name("arm.dh.toml"))
    read = perf_counter() - started
    screen.print(loaded.mechanism.name, style="bold")
    screen.print(model_table(loaded.mechanism))
    screen.print()
    for line in [*summary(loaded.mechanism, loaded.mechanism.dof()), f"read in {read:.2f} s"]:
        screen.print(line, soft_wrap=True)
    loaded.print_warnings()
    arm = loaded.mechanism.lock(_FINGERS) if path else loaded.mechanism
    rng = np.random.default_rng(1)
    q, v, tau = (rng.uniform(-1.0, 1.0, (BATCH, n)) for n in (arm.nq, arm.nv, arm.nv))
    screen.print()
    screen.print("dynamics" + (" (fingers locked)" if path else ""), style="bold")
    a = _show_dynamics(screen, arm, q[0], v[0], tau[0])
    screen.print()
    screen.print(f"speed, one core, medians (a batch is {BATCH} states)", style="bold")
    peer = Pinocchio.of(path) if path else None
    _show_speed(screen, arm, peer, q, v, tau)
    if peer is not None:
        difference = peer.difference(q[0], v[0], tau[0], a)
        screen.print(f"  both give the same accelerations, to {difference:.1e}")
        _insist(difference, "Pinocchio and Linkwright")
    elif path:
        screen.print("  install Pinocchio (pip install pin) to see its times beside these", style="dim")


def _show_dynamics(screen: Console, arm: Any, q: Any, v: Any, tau: Any) -> Any:
    """One state forward and back; its acceleration."""
    started = perf_counter()
    with screen.status("compiling"):
        a = arm.forward_dynamics(q, v, tau)
    first = perf_counter() - started
    error = float(np.max(np.abs(arm.inverse_dynamics(q, v, a) - tau)))
    for name, vector in (("q", q), ("v", v), ("tau", tau), ("a", a)):
        screen.print(f"  {name:<4}" + "".join(f"{x:10.4f}" for x in vector))
    screen.print(f"  inverse dynamics of a gives tau back to {error:.1e}")
    screen.print(f"  the first answer took {first:.2f} s: compiled once, then kept on disk")
    _insist(error, "forward and inverse dynamics")
    return a


def _insist(error: float, who: str) -> None:
    if not error < _TOLERANCE:
        raise LinkwrightError(f"{who} disagree by {error:.1e}; please report this")


def _show_speed(screen: Console, arm: Any, peer: Pinocchio | None, q: Any, v: Any, tau: Any) -> None:
    works = _works(arm, q, v, tau)
    peers = {} if peer is None else peer.works(q, v, tau)
    with screen.status("timing"):
        measured = [_in_turns(work, peers.get(name)) for name, work in works.items()]
        spread = _median(works["batch"]) if lw.threads() > 1 else None
    heading = ("  work", "here") if peer is None else ("  work", "here", "Pinocchio", "ratio")
    rows = [
        (f"  {TITLES[name]}", _time(ours), _time(theirs), f"{ratio:.3f}")[: len(heading)]
        for name, (ours, theirs, ratio) in zip(works, measured, strict=True)
    ]
    screen.print(grid(heading, *rows, right=(1, 2, 3)))
    if spread is not None:
        screen.print(f"  with {lw.threads()} threads a state of the batch takes {_time(spread)}")


def panda() -> Path | None:
    """The Panda of the wheel `example-robot-data`, where that is installed."""
    from importlib.metadata import PackageNotFoundError, files  # weight: email, socket

    try:
        listed = files("example-robot-data") or []
    except PackageNotFoundError:
        return None
    urdfs = [Path(str(file.locate())) for file in listed if file.name == "panda.urdf"]
    return next((file for file in urdfs if file.exists()), None)


@dataclass
class Work:
    """Something to time: a call, and how many states it computes."""

    call: Callable[[], Any]
    states: int = 1


def _works(arm: Any, q: Any, v: Any, tau: Any) -> dict[str, Work]:
    q0, v0, tau0 = q[0].copy(), v[0].copy(), tau[0].copy()
    one, matrix, many = np.empty(arm.nv), np.empty((arm.nv, arm.nv)), np.empty((BATCH, arm.nv))
    return {
        "forward": Work(lambda: arm.forward_dynamics(q0, v0, tau0, out=one)),
        "inverse": Work(lambda: arm.inverse_dynamics(q0, v0, tau0, out=one)),
        "mass": Work(lambda: arm.mass_matrix(q0, out=matrix)),
        "batch": Work(lambda: arm.forward_dynamics(q, v, tau, out=many), BATCH),
    }


class Pinocchio:
    """The same work by Pinocchio's Python calls, on the arm without its fingers."""

    def __init__(self, pin: Any, path: Path) -> None:
        whole = pin.buildModelFromUrdf(str(path))
        held = [whole.getJointId(name) for name in whole.names if "finger" in name]
        self.pin, self.model = pin, pin.buildReducedModel(whole, held, np.zeros(whole.nq))
        self.data = self.model.createData()

    @classmethod
    def of(cls, path: Path) -> Pinocchio | None:
        """Pinocchio, or None where it is not installed."""
        try:
            return cls(import_module("pinocchio"), path)
        except ImportError:
            return None

    def difference(self, q: Any, v: Any, tau: Any, a: Any) -> float:
        """How far an acceleration is from Pinocchio's, relative to its largest entry."""
        theirs = self.pin.aba(self.model, self.data, q, v, tau)
        return float(np.max(np.abs(theirs - a)) / np.max(np.abs(a)))

    def works(self, q: Any, v: Any, tau: Any) -> dict[str, Work]:
        pin, model, data = self.pin, self.model, self.data
        q0, v0, tau0 = q[0].copy(), v[0].copy(), tau[0].copy()
        states = list(zip(q[:1000], v[:1000], tau[:1000], strict=True))
        return {
            "forward": Work(lambda: pin.aba(model, data, q0, v0, tau0)),
            "inverse": Work(lambda: pin.rnea(model, data, q0, v0, tau0)),
            "mass": Work(lambda: pin.crba(model, data, q0)),
            "batch": Work(lambda: [pin.aba(model, data, *state) for state in states], len(states)),
        }


def _in_turns(here: Work, there: Work | None) -> tuple[float, float, float]:
    """Seconds per state here and there, and the ratio, NaN without a peer: medians over rounds in which both sides take
    their turn, so that a busy machine is busy for both."""
    sides = [_Timer(work) for work in (here, there) if work is not None]
    lw.set_threads(1)
    try:
        rounds = np.array([[side.seconds() for side in sides] for _ in range(ROUNDS)])
    finally:
        lw.set_threads(None)
    if there is None:
        return float(np.median(rounds)), np.nan, np.nan
    ours, theirs = rounds.T
    return float(np.median(ours)), float(np.median(theirs)), float(np.median(ours / theirs))


def _median(work: Work) -> float:
    """Seconds per state."""
    timer = _Timer(work)
    return float(np.median([timer.seconds() for _ in range(ROUNDS)]))


class _Timer:
    """Times runs of a work that are long enough to time."""

    def __init__(self, work: Work) -> None:
        self._timer, self._states, self._number = timeit.Timer(work.call), work.states, 1
        work.call()  # the first call compiles
        while (took := self._timer.timeit(self._number)) < SHORTEST:
            self._number = max(2 * self._number, int(self._number * SHORTEST / max(took, 1e-9)))

    def seconds(self) -> float:
        return self._timer.timeit(self._number) / (self._number * self._states)


def _time(seconds: float) -> str:
    for unit, size in (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3)):
        if seconds < 1000 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


SAMPLE = Path(__file__).with_name("slider_crank.mks")


def demo(
    what: Annotated[str, typer.Argument(help="'mechanism' or 'robot'.")] = "mechanism",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The folder for what the mechanism's writes.", show_default="out"),
    ] = None,
) -> None:
    """Show what it does: a slider-crank from its file to its animation, or with 'robot' an arm's dynamics and speed."""
    if what == "robot":
        if output is not None:
            raise LinkwrightError(f"--output {output}: the demonstration 'robot' writes no files; leave it out")
        show_robot()
        return
    if what != "mechanism":
        raise NameNotFound("demonstration", what, ["mechanism", "robot"])
    output = Path("out") if output is None else output
    code = perform(load(SAMPLE).mechanism, "slider_crank", output, plot=find_spec("matplotlib") is not None)
    if code:
        raise typer.Exit(code)
    page = (output / "slider_crank.html").resolve()
    opener = {"darwin": "open", "win32": "start"}.get(sys.platform, "xdg-open")
    console().print()
    console().print(f"look at it: {opener} {page}", soft_wrap=True, style="bold")
