"""The rows of `speed.py` on a GPU; not measured where there is none."""

from __future__ import annotations

import os
from functools import partial

import linkwright as lw
from device_speed import (
    CALL,
    CASES,
    FEW,
    RATE,
    STUDY,
    WIDE,
    agreement,
    arm_call,
    arm_rate,
    function_rate,
    timed_study,
    to_the_end,
)
from device_tools import in_a_row
from linkwright.errors import KernelError
from speed_table import Measurement, Row, shown_time


def _needs_gpu() -> None:
    try:
        lw.gpu()
    except KernelError as error:
        raise SystemExit(f"no GPU: {error}") from None


def _call(states: int) -> Measurement:
    """A call until it is done; of many states, besides what calls in a row take for each."""
    _needs_gpu()
    call, _ = arm_call(states)
    seconds, kernel = to_the_end(call), in_a_row(call, 50)
    ours = seconds if states <= FEW else seconds - kernel
    limits = "Python before the launch, the launch itself, and the wait for its end"
    return Measurement(1e6 * ours, f"{shown_time(seconds)}, in a row {shown_time(kernel)}", limits=limits)


def _study() -> Measurement:
    _needs_gpu()
    agreement(WIDE, 300)
    seconds = timed_study()
    return Measurement(
        seconds, f"{shown_time(seconds)} by the clock", limits="see `benchmarks/device.py --parts studies`"
    )


def _batch() -> Measurement:
    _needs_gpu()
    rate = arm_rate(2**24)
    limits = "1,266 instructions in float64 a state keep their pipe busy for 68 % of the time (Nsight Compute); 222 "
    limits += "registers a thread leave room for two warps a scheduler, which do not hide all waits; with fewer, "
    limits += "numbers spill, and it is slower"
    return Measurement(rate, f"{rate:.3g} states/s", limits=limits)


def _function(name: str, arrays: int, states: int) -> Measurement:
    _needs_gpu()
    rate = function_rate(name, arrays, states)
    return Measurement(rate, f"{rate:.3g} states/s")


ROWS = [
    *(
        Row(f"GPU call until done, 7-joint arm, {states:,} states{extra}", 1e6 * CALL, "µs", partial(_call, states))
        for states, extra in ((1, ""), (FEW, ""), (2**20, ", less the kernel's own time"))
    ),
    Row(f"GPU study, {CASES:,} slider-cranks of 81 points", STUDY, "s", _study, cores=os.cpu_count() or 1),
    Row("GPU batch, forward dynamics, 7-joint arm, float64", RATE, "states/s", _batch, at_least=True),
    *(
        Row(
            f"GPU batch, `{name}`, 7-joint arm, float64",
            bound,
            "states/s",
            partial(_function, name, arrays, states),
            at_least=True,
        )
        for name, arrays, states, bound in (
            ("inverse_dynamics", 3, 2**22, RATE),
            ("mass_matrix", 1, 2**22, 5e9),
            ("forward_dynamics_derivatives", 3, 2**19, 2e8),
            ("inverse_dynamics_derivatives", 3, 2**19, 5e8),
        )
    ),
]
