"""Simulation: falls beside Pinocchio and MuJoCo, rows of four-bars beside Exudyn, rollouts beside mujoco.rollout.

    python benchmarks/simulation.py [--write] [--quick] [--only falls,rows,rollout] [--rounds N]

Prints the tables; --write puts them into benchmarks/RESULTS.md. All sides of a row are timed in turns in one run, and
a cell is the best of the rounds, in seconds of one core's work (rollouts: on the clock, with all cores). Each side is
warm: models are made and compiled before. Trajectories are compared, and a difference that is too large ends the run.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

import linkwright as lw
import simulation_exudyn as exudyn
from published import problems
from simulation_peers import FALLS, STEP, Fall, by_mujoco, by_pinocchio, panda, rollout_by_mujoco
from table import cpu, replace_section

Floats = NDArray[np.float64]
#: What a ratio may be at most: ours to Pinocchio's by mechanism, to MuJoCo's, to Exudyn's, to mujoco.rollout's.
PINOCCHIO = {"double pendulum": 1.0 / 60.0, "Panda": 1.0 / 20.0}
MUJOCO, EXUDYN, ROLLOUT = 1.0 / 5.0, 1.0 / 2.0, 1.0 / 25.0
ROWS = (1, 2, 5, 10, 20, 40, 100, 200)
#: The errors of the tips' places after 10 s at which rows of four-bars are compared.
ACCURACIES = (1e-3, 1e-5)
REQUIRED_POWER = 1.1


def told(ratio: float, bound: float) -> str:
    """A ratio as 1/x with its bound; bold where it is missed."""
    text = f"1/{1.0 / ratio:.1f}" if ratio < 1.0 else f"{ratio:.2f}"
    return f"{text} ≤ 1/{1.0 / bound:.0f}" if ratio <= bound else f"**{text}** ≤ 1/{1.0 / bound:.0f}"


# -- falls --------------------------------------------------------------------------------------------------------
def by_linkwright(fall: Fall, steps: int) -> tuple[float, Floats]:
    """The whole call of `lw.simulate`: every state kept, the solution made."""
    begin = time.process_time()
    solution = lw.simulate(fall.mech, t_end=STEP * steps, q0=fall.q, v0=fall.v, method="rk4", dt=STEP)
    took = time.process_time() - begin
    if len(solution.time) != steps + 1:
        raise SystemExit(f"{fall.name}: {solution.status}")
    return took, np.asarray(solution.q)


def falls(rounds: int, steps: int = 10_000) -> list[str]:
    lines = [
        "| 10 s of falling, RK4 at 1 ms | Linkwright | Pinocchio, `pin.integrate` | Pinocchio, sums | MuJoCo, "
        "`mj_step` in a loop | MuJoCo, one call | to Pinocchio | to MuJoCo | largest difference in the first second |",
        "| --- |" + " --- |" * 8,
    ]
    for make in FALLS:
        fall = make()
        sides: dict[str, Callable[[], tuple[float, Floats]]] = {
            "ours": lambda fall=fall: by_linkwright(fall, steps),  # type: ignore[misc]
            "integrate": lambda fall=fall: by_pinocchio(fall, steps, manifold=True),  # type: ignore[misc]
            "sums": lambda fall=fall: by_pinocchio(fall, steps, manifold=False),  # type: ignore[misc]
            "loop": lambda fall=fall: by_mujoco(fall, steps, native=False),  # type: ignore[misc]
            "call": lambda fall=fall: by_mujoco(fall, steps, native=True),  # type: ignore[misc]
        }
        best, q = in_turns(sides, rounds)
        # After some seconds the falls are chaotic, and rounding decides where they are.
        off = max(float(np.abs(q[name][:1001] - q["ours"][:1001]).max()) for name in sides)
        if not off < 1e-6:
            raise SystemExit(f"{fall.name}: the trajectories are apart by {off:.2g}")
        pinocchio, mujoco = min(best["integrate"], best["sums"]), min(best["loop"], best["call"])
        cells = [f"{best[name] * 1e3:.1f} ms" for name in sides]
        cells += [told(best["ours"] / pinocchio, PINOCCHIO[fall.name]), told(best["ours"] / mujoco, MUJOCO)]
        lines.append(f"| {fall.name} ({fall.mech.nv}) | " + " | ".join(cells) + f" | {off:.0e} rad |")
    lines += ["", "Ratios are to the faster way of the two in each tool."]
    return lines


def in_turns(
    sides: dict[str, Callable[[], tuple[float, Floats]]], rounds: int
) -> tuple[dict[str, float], dict[str, Floats]]:
    """The best seconds of every side, after one run that does not count, and what came out."""
    best, out = dict.fromkeys(sides, np.inf), {}
    for name, run in sides.items():
        _, out[name] = run()
    for _ in range(rounds):
        for name, run in sides.items():
            best[name] = min(best[name], run()[0])
    return best, out


# -- rows of four-bars --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Way:
    """A method with its step or its tolerance."""

    method: str
    dt: float | None = None
    rtol: float = 1e-8

    def __str__(self) -> str:
        return f"{self.method}, {self.rtol:.0e}" if self.dt is None else f"{self.method}, {self.dt * 1e3:.3g} ms"


def ways() -> list[Way]:
    adaptive = [Way(m, rtol=float(r)) for m in ("rk45", "dop853") for r in 10.0 ** np.arange(-4.0, -10.5, -0.5)]
    return adaptive + [Way("rk4", dt=10.0 / n) for n in (250, 350, 500, 700, 1000, 1400, 2000, 2800, 4000)]


def row_by_linkwright(mech: Any, state: tuple[Floats, Floats], n: int, way: Way) -> exudyn.Result | None:
    """The whole call, with 1,000 states kept as from Exudyn."""
    how = {"rtol": way.rtol} if way.dt is None else {"dt": way.dt}
    begin = time.process_time()
    # Versions before the settings objects take the interval itself.
    saving: dict[str, Any] = {"saving": lw.Saving(interval=0.01)} if hasattr(lw, "Saving") else {"interval": 0.01}
    s = lw.simulate(mech, t_end=10.0, q0=state[0], v0=state[1], method=way.method, **saving, **how)
    took = time.process_time() - begin
    if s.time[-1] < 9.999:
        return None
    at = [mech.joints[f"pivot{k}"].v_slice.start for k in (0, n)]
    return exudyn.Result(took, *exudyn.errors(n, np.asarray(s.time), s.q[:, at], s.v[:, at]))


def fastest_way(mech: Any, state: tuple[Floats, Floats], n: int, wanted: float) -> Way:
    """The fastest way that is accurate enough."""
    found = []
    for way in ways():
        result = row_by_linkwright(mech, state, n, way)
        result = result and row_by_linkwright(mech, state, n, way)  # the first one may have compiled
        if result is not None and result.error <= wanted:
            found.append((result.seconds, way))
    if not found:
        raise SystemExit(f"{n} four-bars: no way keeps the error under {wanted:g}")
    return min(found, key=lambda x: x[0])[1]


def rows(rounds: int, quick: bool) -> list[str]:
    lines = [
        "| error of place | four-bars | Linkwright | by | Exudyn, in the plane | by | Exudyn, in space | by | ratio to "
        "the faster | energy: ours, theirs |",
        "| --- |" + " --- |" * 9,
    ]
    ours: dict[float, dict[int, float]] = {}
    for wanted in ACCURACIES[: 1 if quick else None]:
        first = int(3000 * np.sqrt(1e-3 / wanted))
        for n in ROWS:
            if n > (10 if quick else 200) or (wanted < 1e-4 and n > 20):
                continue
            problem = problems.four_bars(n)
            mech = problem.make()
            state = problem.state(mech)
            way = fastest_way(mech, state, n, wanted)
            theirs: dict[bool, tuple[exudyn.Settings, int]] = {}
            for planar in (True, False):
                if not planar and n > 20:
                    continue  # three times as slow as in the plane wherever both run
                settings = exudyn.fastest_settings(n, planar)
                steps = exudyn.enough_steps(n, settings, wanted, first)
                if steps is None:
                    raise SystemExit(f"Exudyn, {n} four-bars, {settings}: no step keeps the error under {wanted:g}")
                theirs[planar] = settings, steps
            best = row_by_linkwright(mech, state, n, way)
            others = {planar: exudyn.run(n, steps, s) for planar, (s, steps) in theirs.items()}
            assert best is not None
            for _ in range(rounds if n <= 40 else 1):
                again = row_by_linkwright(mech, state, n, way)
                best = min(best, again, key=lambda r: r.seconds) if again else best
                for planar, (s, steps) in theirs.items():
                    other, before = exudyn.run(n, steps, s), others[planar]
                    if other is not None and before is not None:
                        others[planar] = min(other, before, key=lambda r: r.seconds)
            ours.setdefault(wanted, {})[n] = best.seconds
            fastest = min((r for r in others.values() if r is not None), key=lambda r: r.seconds)
            cells = [f"{wanted * 1e3:g} mm", f"{n}", f"{best.seconds * 1e3:.2f} ms", str(way)]
            for planar in (True, False):
                result = others.get(planar)
                cells.append("–" if result is None else f"{result.seconds * 1e3:.0f} ms")
                cells.append("–" if planar not in theirs else f"{theirs[planar][1]:,} steps")
            cells += [told(best.seconds / fastest.seconds, EXUDYN), f"{best.drift:.0e}, {fastest.drift:.0e}"]
            lines.append("| " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    lines.append("")
    for wanted, times in ours.items():
        long = [n for n in times if n >= 5]
        if len(long) >= 3:
            p = float(np.polyfit(np.log(long), np.log([times[n] for n in long]), 1)[0])
            text = f"{p:.2f}" if p <= REQUIRED_POWER else f"**{p:.2f}**"
            lines.append(f"At {wanted * 1e3:g} mm our time grows with n to the power {text}, fitted from 5 on.")
    return lines


# -- rollouts -----------------------------------------------------------------------------------------------------
def rollout_states(fall: Fall, states: int) -> tuple[Floats, Floats]:
    """Postures about that from which the arm falls, with random rates."""
    rng = np.random.default_rng(0)
    q = fall.q + rng.uniform(-0.5, 0.5, (states, fall.mech.nq))
    return q, rng.standard_normal((states, fall.mech.nv))


def rollout_by_linkwright(fall: Fall, q: Floats, v: Floats, steps: int) -> tuple[float, Floats]:
    """Seconds on the clock, and the last coordinates."""
    begin = time.perf_counter()
    motions = lw.rollout(fall.mech, q, v, STEP, steps)
    return time.perf_counter() - begin, motions.final_q


def rollouts(rounds: int, states: int = 10_000, steps: int = 100) -> list[str]:
    fall, cores = panda(), len(os.sched_getaffinity(0))
    q, v = rollout_states(fall, states)
    sides: dict[str, Callable[[], tuple[float, Floats]]] = {
        "ours": lambda: rollout_by_linkwright(fall, q, v, steps),
        "theirs": lambda: rollout_by_mujoco(fall, q, v, steps, cores),
    }
    best, out = in_turns(sides, max(1, rounds // 2))
    off = float(np.abs(out["ours"] - out["theirs"]).max())
    if not off < 1e-6:
        raise SystemExit(f"rollouts are apart by {off:.2g}")
    return [
        f"{states:,} states of Panda, {steps} RK4 steps, {cores} threads each: Linkwright {best['ours'] * 1e3:.0f} ms, "
        f"`mujoco.rollout` {best['theirs'] * 1e3:.0f} ms, ratio {told(best['ours'] / best['theirs'], ROLLOUT)}; "
        f"the last coordinates differ by {off:.0e} rad at most.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="few rounds, rows up to ten")
    parser.add_argument("--only", default="falls,rows,rollout", help="which parts")
    parser.add_argument("--rounds", type=int, default=0)
    options = parser.parse_args()
    rounds = options.rounds or (2 if options.quick else 7)
    versions = ", ".join(f"{n} {metadata.version(n)}" for n in ("pin", "mujoco", "exudyn", "numpy", "llvmlite"))
    parts = [f"{cpu()}, {os.cpu_count()} cores; Python {platform.python_version()}, {versions}; {date.today()}.", ""]
    wanted = options.only.split(",")
    if "falls" in wanted:
        parts += [*falls(rounds), ""]
    if "rows" in wanted:
        parts += [*rows(rounds, options.quick), ""]
    if "rollout" in wanted:
        parts += [*rollouts(rounds, 1000 if options.quick else 10_000), ""]
    text = "\n".join(parts).rstrip()
    print(text)
    if options.write:
        replace_section("simulation", text)


if __name__ == "__main__":
    main()
