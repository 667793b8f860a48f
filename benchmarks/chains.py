"""One forward dynamics of an N-link revolute chain, beside Pinocchio as far as it gets: one run, one core, medians.

    python benchmarks/chains.py [--write]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np

import linkwright as lw
from table import replace_section

PINOCCHIO_UP_TO = 400  # beyond, its data take gigabytes


def median(call: Callable[[], Any], times: int) -> float:
    call()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return float(np.median(found))


def pinocchio_chain(n: int) -> Any:
    import pinocchio as pin

    model, parent = pin.Model(), 0
    box, place = pin.Inertia.FromBox(1.0, 0.05, 0.05, 0.1), pin.SE3(np.eye(3), np.array([0, 0, 0.05]))
    for i in range(n):
        step = pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.1 if i else 0.0]))
        kind = pin.JointModelRX() if i % 2 == 0 else pin.JointModelRY()
        parent = model.addJoint(parent, kind, step, f"j{i}")
        model.appendBodyToJoint(parent, box, place)
    return model


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/RESULTS.md")
    options = parser.parse_args()
    import pinocchio as pin

    lines = [
        f"{date.today()}, Linkwright {lw.__version__}, Pinocchio {pin.__version__}; one core.",
        "",
        "| links | first call, s | µs a call | ns a link | Pinocchio µs | ratio | error |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    rng = np.random.default_rng(0)
    for n in (7, 64, 100, 200, 400, 1000, 10_000, 100_000):
        mech = lw.chain(n)
        q, v, tau = 0.1 * rng.standard_normal((3, n))
        out = np.empty(n)
        start = time.perf_counter()
        mech.forward_dynamics(q, v, tau, out=out)
        first = time.perf_counter() - start
        forward, times = mech.forward_dynamics, max(5, min(2000, 2_000_000 // n))
        ours = median(lambda forward=forward, q=q, v=v, tau=tau, out=out: forward(q, v, tau, out=out), times)
        theirs, error = "–", "–"
        ratio = "–"
        if n <= PINOCCHIO_UP_TO:
            model = pinocchio_chain(n)
            data = model.createData()
            expected = pin.aba(model, data, q, v, tau)
            error = f"{np.abs(out - expected).max() / np.abs(expected).max():.0e}"
            peer = median(lambda m=model, d=data, q=q, v=v, tau=tau: pin.aba(m, d, q, v, tau), times)
            theirs, ratio = f"{peer * 1e6:.1f}", f"{ours / peer:.3f}"
        cells = (f"{n:,}", f"{first:.2f}", f"{ours * 1e6:.1f}", f"{ours / n * 1e9:.0f}", theirs, ratio, error)
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    if options.write:
        replace_section("chains", "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
