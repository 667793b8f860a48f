"""What the device benchmarks share: printing, timing on both sides, and a 7-joint arm for us and for MuJoCo."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

for folder in ("tests", "src"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))
if importlib.util.find_spec("platformdirs") is None:
    os.environ.setdefault("LINKWRIGHT_CACHE", "")  # a bare machine: nothing says where a cache would be
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or JAX takes three quarters of the device
import linkwright as lw  # noqa: E402
from linkwright.kernels.kernel import native  # noqa: E402

#: The Panda arm, a row a link: a, alpha in quarter turns and d of its frame (modified Denavit–Hartenberg), mass,
#: centre of mass, inertia xx yy zz xy xz yz about it; the numbers of the URDF in `example-robot-data`, hand included.
PANDA = np.loadtxt(
    """
    0       0 0.333 4.970684  0.003875  0.002081 -0.04762  0.70337  0.70661  0.009117 -0.000139  0.006772  0.019169
    0      -1 0     0.646926 -0.003141 -0.02872   0.003495 0.007962 0.02811  0.025995 -0.003925  0.010254  0.000704
    0       1 0.316 3.228604  0.027518  0.039252 -0.066502 0.037242 0.036155 0.01083  -0.004761 -0.011396 -0.012805
    0.0825  1 0     3.587895 -0.05317   0.104419  0.027454 0.025853 0.019552 0.028323  0.007796 -0.001332  0.008641
    -0.0825 -1 0.384 1.225946 -0.011953 0.041065 -0.038437 0.035549 0.029474 0.008627 -0.002117 -0.004037  0.000229
    0       1 0     1.666555  0.060149 -0.014117 -0.010517 0.001964 0.004354 0.005433  0.000109 -0.001158  0.000341
    0.088   1 0     1.495522  0.001721  0.00136   0.100485 0.01653  0.014107 0.006677  0.000395 -0.000707 -0.001051
    """.strip().splitlines()
)


def say(text: str) -> None:
    print(text, flush=True)


def reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"


# -- timing ------------------------------------------------------------------------------------------------
def on_device(call: Callable[[], Any], times: int = 21) -> float:
    """Median seconds of a call between two events of the current stream; three calls go before."""
    import cupy as cp

    for _ in range(3):
        call()
    cp.cuda.get_current_stream().synchronize()
    start, end, found = cp.cuda.Event(), cp.cuda.Event(), []
    for _ in range(times):
        start.record()
        call()
        end.record()
        end.synchronize()
        found.append(cp.cuda.get_elapsed_time(start, end) * 1e-3)
    return float(np.median(found))


def in_a_row(call: Callable[[], Any], calls: int = 10) -> float:
    """Seconds a call of several made one after another, as a simulation makes them; the median of five such rows."""
    return on_device(lambda: [call() for _ in range(calls)], 5) / calls


def on_cpu(call: Callable[[], Any], seconds: float = 2.0) -> float:
    """Median seconds of a call, of as many as fit."""
    call()
    found: list[float] = []
    while len(found) < 3 or (sum(found) < seconds and len(found) < 101):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return float(np.median(found))


def relative(result: Any, wanted: Any) -> float:
    return float(np.abs(result - wanted).max() / np.abs(wanted).max())


def panda(path: str | None) -> lw.Mechanism:
    """The arm of a URDF with its fingers locked, or of the table above."""
    if path:
        mech = lw.load(path, base="fixed", mimic="independent")
        return mech.lock({j.name: 0.0 for j in mech.joints if "finger" in j.name})
    rows = [(a, np.pi / 2 * turn, d, 0.0, "revolute", m, rest[:3], rest[3:]) for a, turn, d, m, *rest in PANDA.tolist()]
    return lw.from_dh(rows, convention="modified", name="panda")


def panda_mjcf() -> str:
    """The same table for MuJoCo."""

    def numbers(values: Any) -> str:
        return " ".join(f"{x:.17g}" for x in values)

    inside = ""
    for a, quarters, d, m, *rest in reversed(PANDA.tolist()):
        alpha = np.pi / 2 * quarters
        place = (a, -d * np.sin(alpha), d * np.cos(alpha))
        turn = (np.cos(alpha / 2), np.sin(alpha / 2), 0.0, 0.0)
        inside = (
            f'<body pos="{numbers(place)}" quat="{numbers(turn)}">'
            f'<inertial pos="{numbers(rest[:3])}" mass="{m}" fullinertia="{numbers(rest[3:])}"/>'
            f'<joint type="hinge" axis="0 0 1"/>{inside}</body>'
        )
    option = '<option gravity="0 0 -9.81"><flag contact="disable"/></option>'
    return f"<mujoco>{option}<compiler angle='radian'/><worldbody>{inside}</worldbody></mujoco>"


__all__ = ["in_a_row", "lw", "native", "on_cpu", "on_device", "panda", "panda_mjcf", "reason", "relative", "say"]
