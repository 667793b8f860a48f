"""The manipulator's control step: its parts and forms, its peers, and its latency in a loop.

    python benchmarks/control_step.py [--write] [--quick] [--rounds N]

Times are the best of the rounds. Parts are native times a step, many steps in one call; forms are calls from Python, as
a controller makes them. Steps go along a path, so that forward kinematics takes the corrections that it takes in use.
The loop wakes at fixed times under SCHED_OTHER: it sleeps until shortly before, then spins. `--quick` makes it short.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import platform
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwright.studies.manipulator.geometry import LEGS, Geometry
from linkwright.studies.manipulator.kinematics import motion
from linkwright.studies.manipulator.leg_counts import leg_counts
from linkwright.studies.manipulator.machine import machine, state
from linkwright.studies.manipulator.step import ControlStep
from linkwright.tape.program import Program
from table import cpu, replace_section

Floats = NDArray[np.float64]
GEOMETRY = Geometry()
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "control_step.png"
#: The paper's tables 1 and 2, in ms on four Pentium Pro of 200 MHz.
PAPER = {"forward kinematics": 0.92, "six inverse dynamics": 6 * 0.43, "transformation": 0.19, "whole step": 3.69}
PAPER_PARALLEL = 1.02
AHEAD = 120_000  # ns before a deadline at which the loop stops sleeping


class Samples(NamedTuple):
    """Samples of a motion within the machine's range."""

    pose: Floats
    twist: Floats
    acceleration: Floats
    theta: Floats
    rate: Floats
    reference: Floats


def path(count: int, period: float) -> Samples:
    """Three circles of different speeds, up to 1 m/s and 10 m/s²."""
    t = period * np.arange(count)[:, None]
    speeds, size = np.array([9.0, 10.0, 11.0]), np.array([0.1, 0.1, 0.08])
    pose = np.zeros((count, 7))
    pose[:, :3] = GEOMETRY.home[:3] + size * np.sin(speeds * t)
    tilt, fast = 0.15, 7.0
    angle = tilt * np.sin(fast * t[:, 0])
    pose[:, 3], pose[:, 5] = np.cos(angle / 2), np.sin(angle / 2)
    twist, rise = np.zeros((count, 6)), np.zeros((count, 6))
    twist[:, :3], rise[:, :3] = size * speeds * np.cos(speeds * t), -size * speeds**2 * np.sin(speeds * t)
    twist[:, 4], rise[:, 4] = tilt * fast * np.cos(fast * t[:, 0]), -tilt * fast**2 * np.sin(fast * t[:, 0])
    q, v, _ = motion(GEOMETRY, pose, twist, rise)
    theta, rate = np.ascontiguousarray(q[..., 0]), np.ascontiguousarray(v[..., 0])
    return Samples(pose, twist, rise, theta, rate, np.concatenate([pose, twist, rise], axis=1))


def best(function: Callable[[], Any], rounds: int, steps: int) -> float:
    """Microseconds a step."""
    found = []
    for _ in range(rounds):
        begin = time.perf_counter()
        function()
        found.append(time.perf_counter() - begin)
    return min(found) / steps * 1e6


def native(program: Program, given: dict[str, Floats], count: int, rounds: int) -> float:
    """Native time of a program over `count` states one after another."""
    inputs = [np.ascontiguousarray(given[b.name]) for b in program.inputs]
    outputs = [np.zeros((count, *b.shape)) for b in program.outputs]
    run = program.marched(inputs, outputs, count)
    run(0, count)
    return best(lambda: run(0, count), rounds, count)


def parts_table(rounds: int) -> tuple[str, dict[str, float]]:
    """The paper's table 1, with ours."""
    count = 2000
    step = ControlStep(GEOMETRY, form="serial")
    parts, samples = step.parts, path(count + 1, step.period)
    given: dict[str, Floats] = {name: getattr(samples, name)[1:] for name in ("theta", "rate", "reference")}
    # What the step before left, for every sample: the search begins where it would begin in use.
    given["previous"] = np.zeros((count, 25))
    given["previous"][:, :19] = samples.reference[:-1]
    given["gains"] = step.gains
    before_legs = parts.before()
    outputs = before_legs(*(given[b.name] for b in before_legs.inputs))
    given |= {b.name: np.ascontiguousarray(x) for b, x in zip(before_legs.outputs, outputs, strict=True)}
    legs = parts.some_legs()
    given["shares 0"] = legs(given["common"])
    code = {
        "forward kinematics": native(parts.plate_found(), given, count, rounds),
        "six inverse dynamics": native(legs, given, count, rounds),
        "six, in lanes": native(parts.some_legs(order="lanes"), given, count, rounds),
        "transformation": native(parts.after([LEGS]), given, count, rounds),
        "whole step": native(parts.whole("serial"), given, count, rounds),
        "whole, in lanes": native(parts.whole("lanes"), given, count, rounds),
    }
    rounds_taken = given["rounds"]
    lines = [
        "| part | paper, serial | serial | SIMD |",
        "| --- | --- | --- | --- |",
    ]
    shown = (
        ("forward kinematics", "forward kinematics", "forward kinematics"),
        ("six inverse dynamics", "six inverse dynamics", "six, in lanes"),
        ("transformation", "transformation", "transformation"),
        ("whole step", "whole step", "whole, in lanes"),
    )
    for name, serial, lanes in shown:
        lines.append(f"| {name} | {PAPER[name]:.2f} ms | {code[serial]:.2f} µs | {code[lanes]:.2f} µs |")
    lines.append("")
    average, most = rounds_taken.mean(), int(rounds_taken.max())
    lines.append(f"Corrections of the forward kinematics: {average:.2f} on average, {most} at most.")
    return "\n".join(lines), code


def forms_table(rounds: int) -> str:
    """One Python call of every form, beside the paper's serial and parallel times and our peers."""
    count = 2000
    samples = path(count, 2e-3)
    lines = ["| one control step | time | to the serial form |", "| --- | --- | --- |"]
    times: dict[str, float] = {}
    for form in ("serial", "simd", "threads", "pipelined"):
        step = ControlStep(GEOMETRY, form=form, threads=2 if form in ("threads", "pipelined") else None)
        theta, rate, reference = (list(x) for x in samples[3:])

        def run(step: Any = step, theta: Any = theta, rate: Any = rate, reference: Any = reference) -> None:
            step.reset(samples.pose[0], samples.twist[0])
            for n in range(count):
                step(theta[n], rate[n], reference[n])

        run()
        times[form] = best(run, rounds, count)
        step.close()
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
    for text, found in peers(samples, rounds):
        lines.append(f"| {text} | {found:.1f} µs | {found / times['serial']:.1f} |")
    return "\n".join(lines)


def peers(samples: Samples, rounds: int) -> list[tuple[str, float]]:
    """What others take for the inverse dynamics and the transformation alone, from joint motion that is given."""
    count = 200
    mech = machine(GEOMETRY)
    q, v, a = (np.ascontiguousarray(x[:count]) for x in state(mech, GEOMETRY, *samples[:3]))
    step = ControlStep(GEOMETRY, form="serial")
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
    joints = [np.ascontiguousarray(x.reshape(len(x), -1)) for x in motion(GEOMETRY, *samples[:3])]
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
class Latency(NamedTuple):
    late: Floats  # µs from the time at which a step should begin to when it does
    took: Floats  # µs that it takes
    missed: int  # steps that ended after the next one's time


def latency(rate: float, count: int) -> Latency:
    """So many steps at a rate (Hz), each at its time."""
    period = round(1e9 / rate)
    around = path(min(count, 20_000), 1.0 / rate)
    theta, speed, reference = (list(x) for x in around[3:])
    step = ControlStep(GEOMETRY, form="simd", period=1.0 / rate, hold=True)
    step.reset(around.pose[0], around.twist[0])
    begun, ended = np.zeros(count, np.int64), np.zeros(count, np.int64)
    now, sleep, n = time.perf_counter_ns, time.sleep, len(theta)
    for k in range(500):
        step(theta[k], speed[k], reference[k])
    gc.collect()
    gc.disable()
    try:
        due = now() + 10_000_000
        first = due
        step.reset(around.pose[0], around.twist[0])
        for k in range(count):
            if k % n == 0 and k:  # the path begins again
                step.reset(around.pose[0], around.twist[0])
            turn = k % n
            left = due - now() - AHEAD
            if left > 0:
                sleep(left * 1e-9)
            at = now()
            while at < due:
                at = now()
            begun[k] = at
            step(theta[turn], speed[turn], reference[turn])
            ended[k] = now()
            due += period
    finally:
        gc.enable()
    wanted = first + period * np.arange(count)
    return Latency((begun - wanted) / 1e3, (ended - begun) / 1e3, int((ended > wanted + period).sum()))


def latency_table(count: int) -> tuple[str, dict[float, Latency]]:
    """Percentiles of lateness and step time at the paper's rate and at twenty times it."""
    with_slack()
    lines = [
        "| rate | steps | | 50 % | 90 % | 99 % | 99.9 % | 99.99 % | largest | past the next step's time |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    found = {}
    for rate in (500.0, 10_000.0):
        one = found[rate] = latency(rate, count)
        for name, x in (("begins late by", one.late), ("takes", one.took)):
            shown = " | ".join(f"{np.percentile(x, p):.1f} µs" for p in (50, 90, 99, 99.9, 99.99, 100))
            missed = f"{one.missed} ({100 * one.missed / count:.3f} %)" if name == "takes" else ""
            lines.append(f"| {rate:,.0f} Hz | {count:,} | {name} | {shown} | {missed} |")
    return "\n".join(lines), found


def with_slack() -> None:
    """Let sleeps end within a microsecond: by default the kernel may add 50."""
    if platform.system() == "Linux":
        ctypes.CDLL(None).prctl(29, ctypes.c_ulong(1), 0, 0, 0)


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
    parts, _ = parts_table(rounds)
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
