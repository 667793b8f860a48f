"""How long the control step takes on this machine: its parts, its forms, and its latency at a rate.

Times are the best of several rounds. Steps go along a path, so that forward kinematics takes the corrections that it
takes in use. The loop wakes at fixed times under the system's ordinary scheduling.
"""

from __future__ import annotations

import ctypes
import gc
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from linkwright import Program
from linkwright.base.arrays import Floats
from linkwright.control import ControlStep, Hexapod, StepSettings, leg_counts, leg_motion
from linkwright.studies.manipulator.machine import LEGS

#: The paper's tables 1 and 2: ms on Pentium Pro processors of 200 MHz, one of them and four.
PAPER = {"forward kinematics": 0.92, "six inverse dynamics": 6 * 0.43, "transformation": 0.19, "whole step": 3.69}
PAPER_PARALLEL = 1.02
FORMS = StepSettings.FORMS
AHEAD = 120_000  # ns before a deadline at which the loop stops sleeping


@dataclass(frozen=True)
class Timing:
    """Times of the control step (µs)."""

    parts: dict[str, tuple[float, float]]  # native time of each part of `PAPER`: serial, in lanes
    forms: dict[str, float]  # one call from Python: "serial", "simd", "threads", "pipelined"
    corrections: tuple[float, int]  # of the forward kinematics: on average, at most
    counts: dict[str, int]  # operations of a leg's routines alone, their sum, and of the one program
    rate: float  # Hz, of the loop in which the following were measured
    late: Floats  # from the time at which a step should begin to when it does
    took: Floats  # that it takes
    missed: int  # steps that ended after the next one's time


def measured(geometry: Hexapod, *, steps: int = 20_000, rate: float = 10_000.0, rounds: int = 5) -> Timing:
    """Measure all of it; the loop makes so many `steps` at a `rate` (Hz)."""
    parts, corrections = part_times(geometry, rounds)
    forms = form_times(geometry, rounds)
    late, took, missed = latency(geometry, rate, steps)
    return Timing(parts, forms, corrections, leg_counts(geometry), rate, late, took, missed)


class Samples(NamedTuple):
    """Samples of a motion within the machine's range."""

    pose: Floats
    twist: Floats
    acceleration: Floats
    theta: Floats
    rate: Floats
    reference: Floats


def path(geometry: Hexapod, count: int, period: float) -> Samples:
    """Three circles of different speeds, up to 1 m/s and 10 m/s²."""
    t = period * np.arange(count)[:, None]
    speeds, size = np.array([9.0, 10.0, 11.0]), np.array([0.1, 0.1, 0.08])
    pose = np.zeros((count, 7))
    pose[:, :3] = geometry.home[:3] + size * np.sin(speeds * t)
    tilt, fast = 0.15, 7.0
    angle = tilt * np.sin(fast * t[:, 0])
    pose[:, 3], pose[:, 5] = np.cos(angle / 2), np.sin(angle / 2)
    twist, rise = np.zeros((count, 6)), np.zeros((count, 6))
    twist[:, :3], rise[:, :3] = size * speeds * np.cos(speeds * t), -size * speeds**2 * np.sin(speeds * t)
    twist[:, 4], rise[:, 4] = tilt * fast * np.cos(fast * t[:, 0]), -tilt * fast**2 * np.sin(fast * t[:, 0])
    q, v, _ = leg_motion(geometry, pose, twist, rise)
    theta, rate = np.ascontiguousarray(q[..., 0]), np.ascontiguousarray(v[..., 0])
    return Samples(pose, twist, rise, theta, rate, np.concatenate([pose, twist, rise], axis=1))


def best(function: Callable[[], Any], rounds: int, steps: int) -> float:
    """Microseconds a step."""
    durations = []
    for _ in range(rounds):
        begin = time.perf_counter()
        function()
        durations.append(time.perf_counter() - begin)
    return min(durations) / steps * 1e6


def native(program: Program, arrays: dict[str, Floats], count: int, rounds: int) -> float:
    """Native time of a program over `count` states one after another."""
    inputs = [np.ascontiguousarray(arrays[b.name]) for b in program.inputs]
    outputs = [np.zeros((count, *b.shape)) for b in program.outputs]
    run = program.marched(inputs, outputs, count)
    run(0, count)
    return best(lambda: run(0, count), rounds, count)


def part_times(
    geometry: Hexapod, rounds: int, count: int = 2000
) -> tuple[dict[str, tuple[float, float]], tuple[float, int]]:
    """Native times of the parts in `PAPER`, serial and in lanes; corrections of forward kinematics, mean and most."""
    step = ControlStep(geometry, settings=StepSettings(form="serial"))
    parts, samples = step.parts, path(geometry, count + 1, step.period)
    arrays: dict[str, Floats] = {name: getattr(samples, name)[1:] for name in ("theta", "rate", "reference")}
    # What the step before left, for every sample: the search begins where it would begin in use.
    arrays["previous"] = step.state_at(samples.pose[:-1], samples.twist[:-1], samples.acceleration[:-1])
    arrays["gains"] = step.gains
    before_legs = parts.before()
    outputs = before_legs(*(arrays[b.name] for b in before_legs.inputs))
    arrays |= {b.name: np.ascontiguousarray(x) for b, x in zip(before_legs.outputs, outputs, strict=True)}
    arrays["shares 0"] = parts.some_legs()(arrays["common"])
    programs = {
        "forward kinematics": (parts.plate_found(),),
        "six inverse dynamics": (parts.some_legs(), parts.some_legs(order="lanes")),
        "transformation": (parts.after([LEGS]),),
        "whole step": (parts.whole("serial"), parts.whole("lanes")),
    }
    times = {name: [native(p, arrays, count, rounds) for p in forms] for name, forms in programs.items()}
    pairs = {name: (both[0], both[-1]) for name, both in times.items()}
    return pairs, (float(arrays["rounds"].mean()), int(arrays["rounds"].max()))


def form_times(geometry: Hexapod, rounds: int, count: int = 2000) -> dict[str, float]:
    """One call from Python of every form."""
    samples = path(geometry, count, 2e-3)
    theta, rate, reference = (list(x) for x in samples[3:])
    times = {}
    for form in FORMS:
        threads = 2 if form in ("threads", "pipelined") else None
        step = ControlStep(geometry, settings=StepSettings(form=form, threads=threads))

        def run(step: ControlStep = step) -> None:
            step.reset(samples.pose[0], samples.twist[0])
            for n in range(count):
                step(theta[n], rate[n], reference[n])

        run()
        times[str(form)] = best(run, rounds, count)
        step.close()
    return times


class Latency(NamedTuple):
    """A loop's punctuality."""

    late: Floats  # µs from the time at which a step should begin to when it does
    took: Floats  # µs that it takes
    missed: int  # steps that ended after the next one's time


def latency(geometry: Hexapod, rate: float, count: int) -> Latency:
    """So many steps at a rate (Hz), each at its time: it sleeps until shortly before, and spins the rest."""
    _with_slack()
    period = round(1e9 / rate)
    around = path(geometry, min(count, 20_000), 1.0 / rate)
    theta, speed, reference = (list(x) for x in around[3:])
    step = ControlStep(geometry, period=1.0 / rate, settings=StepSettings(hold=True))
    step.reset(around.pose[0], around.twist[0])
    begun, ended = np.zeros(count, np.int64), np.zeros(count, np.int64)
    now, sleep, n = time.perf_counter_ns, time.sleep, len(theta)
    for k in range(min(500, n)):
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


def _with_slack() -> None:
    """Let sleeps end within a microsecond: by default the kernel may add 50."""
    if platform.system() == "Linux":
        ctypes.CDLL(None).prctl(29, ctypes.c_ulong(1), 0, 0, 0)
