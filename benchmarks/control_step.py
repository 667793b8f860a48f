"""The manipulator's control step: its parts and forms, its peers, and its latency in a loop.

    python benchmarks/control_step.py [--write] [--quick] [--rounds N]

Times are the best of the rounds. Parts are native times a step, many steps in one call; forms are calls from Python, as
a controller makes them. Steps go along a path, so that forward kinematics takes the corrections that it takes in use.
The loop wakes at fixed times under SCHED_OTHER: it sleeps until shortly before, then spins. `--quick` makes it short.
"""

from __future__ import annotations

import argparse
import os
import platform
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from linkwright.control import ControlStep, StepSettings, leg_counts, leg_motion
from linkwright.studies.manipulator.machine import SIX_LEG, machine, state
from linkwright.studies.manipulator.timing import (
    PAPER,
    PAPER_PARALLEL,
    Latency,
    Samples,
    best,
    form_times,
    latency,
    part_times,
    path,
)
from table import cpu, replace_section

Floats = NDArray[np.float64]
GEOMETRY = SIX_LEG
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "control_step.png"


def parts_table(rounds: int) -> str:
    """The paper's table 1, with ours."""
    found, (average, most) = part_times(GEOMETRY, rounds)
    lines = ["| part | paper, serial | serial | SIMD |", "| --- | --- | --- | --- |"]
    for name, (serial, lanes) in found.items():
        lines.append(f"| {name} | {PAPER[name]:.2f} ms | {serial:.2f} µs | {lanes:.2f} µs |")
    lines += ["", f"Corrections of the forward kinematics: {average:.2f} on average, {most} at most."]
    return "\n".join(lines)


def forms_table(rounds: int) -> str:
    """One Python call of every form, beside the paper's serial and parallel times and our peers."""
    times = form_times(GEOMETRY, rounds)
    lines = ["| one control step | time | to the serial form |", "| --- | --- | --- |"]
    names = {
        "serial": "serial",
        "simd": "SIMD: six legs in lanes",
        "threads": "threads: two that wait spinning, three legs each",
        "pipelined": "pipelined: forward kinematics beside the legs in lanes, two threads",
    }
    lines.append(f"| paper, serial | {PAPER['whole step']:.2f} ms | |")
    lines.append(f"| paper, parallel and pipelined, four processors | {PAPER_PARALLEL:.2f} ms | |")
    for form, text in names.items():
        lines.append(f"| {text} | {times[form]:.2f} µs | {times[form] / times['serial']:.2f} |")
    for text, found in peers(path(GEOMETRY, 2000, 2e-3), rounds):
        lines.append(f"| {text} | {found:.1f} µs | {found / times['serial']:.1f} |")
    return "\n".join(lines)


def peers(samples: Samples, rounds: int) -> list[tuple[str, float]]:
    """What others take for the inverse dynamics and the transformation alone, from joint motion that is given."""
    count = 200
    mech = machine(GEOMETRY)
    q, v, a = (np.ascontiguousarray(x[:count]) for x in state(mech, GEOMETRY, *samples[:3]))
    step = ControlStep(GEOMETRY, settings=StepSettings(form="serial"))
    driven = [k for k, joint in enumerate(mech.joints) if joint.name.startswith("crank")]
    wanted = mech.inverse_dynamics(q[7], v[7], a[7])[driven]
    step.reset(samples.pose[7])
    assert np.abs(step(*(x[7] for x in samples[3:])) - wanted).max() <= 1e-9 * np.abs(wanted).max()

    def ours() -> None:
        for n in range(count):
            mech.inverse_dynamics(q[n], v[n], a[n])

    ours()
    found = [("`mech.inverse_dynamics` of the closed chain, joint motion given", best(ours, rounds, count))]
    try:
        from control_step_peers import OpenChain
    except ImportError as error:
        print(f"no Pinocchio: {error}")
        return found
    chain = OpenChain(GEOMETRY)
    joints = [np.ascontiguousarray(x.reshape(len(x), -1)) for x in leg_motion(GEOMETRY, *samples[:3])]
    got = chain.torques(*(x[7] for x in joints), samples.pose[7])
    assert np.abs(got - wanted).max() <= 1e-9 * np.abs(wanted).max()

    def rnea() -> None:
        for n in range(count):
            chain.open_forces(*(x[n] for x in joints))

    def transformed() -> None:
        for n in range(count):
            chain.torques(*(x[n] for x in joints), samples.pose[n])

    found.append(("Pinocchio: `rnea` of the 36 joints alone, joint motion given", best(rnea, rounds, count)))
    found.append(("Pinocchio: `rnea`, Jacobians, and the transformation in NumPy", best(transformed, rounds, count)))
    return found


# -- the loop ----------------------------------------------------------------------------------------------
def latency_table(count: int) -> tuple[str, dict[float, Latency]]:
    """Percentiles of lateness and step time at the paper's rate and at twenty times it."""
    lines = [
        "| rate | steps | | 50 % | 90 % | 99 % | 99.9 % | 99.99 % | largest | past the next step's time |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    found = {}
    for rate in (500.0, 10_000.0):
        one = found[rate] = latency(GEOMETRY, rate, count)
        for name, x in (("begins late by", one.late), ("takes", one.took)):
            shown = " | ".join(f"{np.percentile(x, p):.1f} µs" for p in (50, 90, 99, 99.9, 99.99, 100))
            missed = f"{one.missed} ({100 * one.missed / count:.3f} %)" if name == "takes" else ""
            lines.append(f"| {rate:,.0f} Hz | {count:,} | {name} | {shown} | {missed} |")
    return "\n".join(lines), found


def picture(found: dict[float, Latency], file: Path) -> None:
    """The histograms."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True)
    for rate, one in found.items():
        for axis, x in zip(axes, (one.late, one.took), strict=True):
            edges = np.geomspace(0.05, max(1e3, x.max() * 1.1), 90)
            axis.hist(np.maximum(x, 0.05), edges, histtype="step", label=f"{rate:,.0f} Hz")
    for axis, name in zip(axes, ("begins late by", "takes"), strict=True):
        axis.set(xscale="log", yscale="log", xlabel=f"a step {name} (µs)")
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    axes[0].set_ylabel("steps")
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def counts_table() -> str:
    lines = ["| a leg's operations | |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| {name} | {number} |" for name, number in leg_counts(GEOMETRY).items())])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md and the picture into docs")
    parser.add_argument("--quick", action="store_true", help="2,000 steps in the loop, not 100,000")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    rounds = 5 if given.quick else given.rounds
    parts = parts_table(rounds)
    forms = forms_table(rounds)
    table, found = latency_table(2_000 if given.quick else 100_000)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    head = f"{cpu()}, {cores} cores, Python {platform.python_version()}, {date.today().isoformat()}."
    text = "\n\n".join([head, parts, forms, counts_table(), table])
    print(text)
    file = PICTURE if given.write else Path("out") / "control_step.png"
    picture(found, file)
    print(f"\n{file}")
    if given.write:
        replace_section("control step", text)


if __name__ == "__main__":
    main()
