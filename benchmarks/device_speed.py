"""How near calls, studies and batches on a GPU come to their bounds, checked against the CPU before they are timed.

    python benchmarks/device.py --parts calls studies limits

`speed_device.py` has the same measurements as rows of `speed.py`.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from device_tools import in_a_row, lw, panda, reason, relative, say

MODEL = Path(__file__).resolve().parents[1] / "examples" / "models" / "slider_crank_parameters.mks"
SIZES = (1, 1024, 16_384, 131_072, 1_048_576)
FEW = 16_384  # states up to which a call has the bound of a launch
CALL, STUDY, RATE = 20e-6, 0.5, 1e10  # bounds: seconds, seconds, states a second
CASES, POINTS = 1_000_000, 81
CHECKED = {"likely": 20_000, "wide": 500}  # a case that fails takes the CPU some 15 ms
LIKELY = {"crank_length": lw.uniform(5.0, 7.0), "rod_length": lw.uniform(9.5, 11.0), "stroke": lw.uniform(2.0, 3.0)}
#: Many of which cannot be drawn, do not reach, or come near a dead centre.
WIDE = {"crank_length": lw.uniform(2.0, 10.0), "rod_length": lw.uniform(4.0, 12.0), "stroke": lw.uniform(1.0, 9.0)}
OUTPUT = "travel = range(block.x)"
SAME = 1e-10  # difference of a study's numbers to the CPU's
BLOCKS = (0, 4, 6, 8, 10, 12, 16)  # on a processor at once that a kernel is compiled for; 0: as the compiler likes


def to_the_end(call: Callable[[], Any], times: int = 300) -> float:
    """Median seconds of a call until its work is done, by the clock of the CPU."""
    import cupy as cp

    stream, seconds = cp.cuda.get_current_stream(), []
    for k in range(times + 20):
        stream.synchronize()
        begin = time.perf_counter()
        call()
        stream.synchronize()
        if k >= 20:
            seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds))


def in_python(call: Callable[[], Any], times: int = 300) -> float:
    """Median seconds until a call returns, whose work goes on."""
    import cupy as cp

    stream, seconds = cp.cuda.get_current_stream(), []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
        stream.synchronize()
    return float(np.median(seconds))


def empty_launch() -> Callable[[], Any]:
    """A kernel that does nothing, launched by CuPy."""
    import cupy as cp

    kernel = cp.RawKernel('extern "C" __global__ void nothing() {}', "nothing")
    return lambda: kernel((1,), (64,), ())


def arm_call(states: int, library: str = "cupy") -> tuple[Callable[[], Any], float]:
    """Forward dynamics of the arm with `out=` on the device, and its difference to the CPU."""
    import cupy as cp

    mech = panda(None)
    plain = np.random.default_rng(0).standard_normal((3, states, mech.nv))
    given = [cp.asarray(x) for x in plain]
    out = cp.empty((states, mech.nv))
    if library == "torch":
        import torch

        given, out = [torch.from_dlpack(x) for x in given], torch.from_dlpack(out)
    mech.forward_dynamics(*given, out=out)
    right = mech.forward_dynamics(*(x[:4096] for x in plain))
    error = relative(cp.asarray(out).get()[:4096], right)
    assert error < 1e-12, error
    return lambda: mech.forward_dynamics(*given, out=out), error


def calls(_: argparse.Namespace) -> dict[str, Any]:
    """Seconds of a call from Python until it is done, for few and for many states."""
    runs: list[dict[str, Any]] = []
    bare = to_the_end(empty_launch())
    say(f"an empty launch until it is done: {1e6 * bare:.1f} µs")
    for library in ("cupy", "torch"):
        for states in SIZES:
            try:
                call, error = arm_call(states, library)
            except Exception as failure:
                say(f"{library}: {reason(failure)}")
                break
            seconds, python, kernel = to_the_end(call), in_python(call), in_a_row(call, 50)
            bound = CALL if states <= FEW else CALL + kernel
            run = {"library": library, "states": states, "seconds": seconds, "python": python, "in_a_row": kernel}
            runs.append({**run, "bound": bound, "error": error, "met": seconds <= bound})
            say(
                f"{library}, {states:>9,} states: {1e6 * seconds:7.1f} µs until done, bound {1e6 * bound:.0f} "
                f"({'met' if seconds <= bound else 'NOT MET'}); the call returns after {1e6 * python:.1f} µs; "
                f"in a row {1e6 * kernel:.1f} µs; error {error:.0e}"
            )
    return {"empty": bare, "runs": runs}


def study(parameters: dict[str, Any], cases: int, on: str = "gpu") -> lw.Study:
    sampling = lw.Sampling("random", cases=cases, seed=1)
    return lw.sweep(MODEL, parameters, [OUTPUT], on=on, sampling=sampling)


def agreement(parameters: dict[str, Any], cases: int) -> tuple[float, int]:
    """The largest difference of a study on the GPU to that on the CPU, with the same reasons; how many cases fail."""
    gpu, cpu = study(parameters, cases), study(parameters, cases, on="local")
    assert list(gpu.reasons) == list(cpu.reasons), "other reasons than on the CPU"
    good = np.asarray(cpu.ok)
    difference = float(np.abs(gpu["travel"][good] - cpu["travel"][good]).max(initial=0.0))
    assert difference <= SAME, difference
    return difference, int((~good).sum())


def timed_study(rounds: int = 3) -> float:
    """Seconds of the study by the clock, the best of some rounds after one that compiles."""
    study(LIKELY, CASES)
    seconds = []
    for _ in range(rounds):
        begin = time.perf_counter()
        assert len(study(LIKELY, CASES)) == CASES
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def studies(_: argparse.Namespace) -> dict[str, Any]:
    """A million slider-cranks, of each one number; beside the CPU, with many cases that fail."""
    checked = {}
    for name, parameters in (("likely", LIKELY), ("wide", WIDE)):
        cases = CHECKED[name]
        difference, failed = agreement(parameters, cases)
        checked[name] = {"cases": cases, "failed": failed, "difference": difference}
        say(f"study, {name} values: {cases:,} cases, {failed:,} fail for the same reasons, apart by {difference:.0e}")
    seconds = timed_study()
    say(
        f"study of {CASES:,} slider-cranks, {POINTS} points: {seconds:.3f} s, bound {STUDY} s "
        f"({'met' if seconds <= STUDY else 'NOT MET'})"
    )
    profile = cProfile.Profile()
    profile.enable()
    study(LIKELY, CASES)
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(18)
    return {"seconds": seconds, "bound": STUDY, "checked": checked}


def arm_rate(states: int) -> float:
    """States a second of the arm's forward dynamics in float64, calls in a row."""
    return states / in_a_row(arm_call(states)[0])


def function_rate(function: str, arrays: int, states: int) -> float:
    """The same of a function of the first so many of q, v and tau."""
    import cupy as cp

    mech = panda(None)
    plain = np.random.default_rng(0).standard_normal((3, states, mech.nv))[:arrays]
    on_device, call = [cp.asarray(x) for x in plain], getattr(mech, function)
    out = call(*on_device)
    several, right = (x if isinstance(x, tuple) else (x,) for x in (out, call(*(x[:4096] for x in plain))))
    error = max(relative(x.get()[:4096], y) for x, y in zip(several, right, strict=True))
    assert error < 1e-11, error
    return states / in_a_row(lambda: call(*on_device))


def limits(_: argparse.Namespace) -> dict[str, Any]:
    """The batch's rate beside its bound, and what the kernel is made of: its registers, and other numbers of blocks."""
    import cupy as cp

    from linkwright.kernels.cuda.device_arrays import uploaded
    from linkwright.kernels.cuda.state_threads import BLOCK, states_text

    rates = {states: arm_rate(states) for states in (2**20, 2**22, 2**24)}
    best = max(rates.values())
    program = panda(None).program("forward_dynamics")
    work = sum(program.count().values())
    say(
        f"arm, float64: {best:.2e} states/s, bound {RATE:.0e} ({'met' if best >= RATE else 'NOT MET'}); "
        f"{work} operations a state, {work * best:.2e} operations/s"
    )
    text = states_text(program, "float64")
    tables, states = uploaded(program, text.outside, "float64"), 2**22
    rng = np.random.default_rng(0)
    given = [cp.asarray(rng.standard_normal((states, b.size))) for b in program.inputs]
    out = cp.empty((states, program.outputs[0].size))
    numbers = [np.int64(b.size) for b in program.inputs] + [np.int64(states)]
    assert not text.work, "the arm's kernel needs no work"
    runs = []
    for blocks in BLOCKS:
        bounds = f"__launch_bounds__({BLOCK}{f', {blocks}' if blocks else ''})"
        source = re.sub(r"__launch_bounds__\([\d, ]+\)", bounds, text.source)
        kernel = cp.RawModule(code=source).get_function(text.name)

        def call(kernel: Any = kernel) -> None:
            kernel((states // BLOCK,), (BLOCK,), (*given, out, *tables, *numbers))

        rate = states / in_a_row(call)
        run = {"blocks": blocks, "rate": rate, "registers": kernel.num_regs, "local": kernel.local_size_bytes}
        runs.append(run)
        say(f"  {bounds}: {rate:.2e} states/s, {kernel.num_regs} registers, {kernel.local_size_bytes} bytes local")
    return {"rates": {str(k): v for k, v in rates.items()}, "bound": RATE, "operations": work, "runs": runs}
