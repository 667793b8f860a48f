"""The whole grid against Pinocchio as a table: every robot, both bases, native code; written to docs/agreement.md.

    python tests/grid.py [--write] [--only NAME]

Each entry is the largest relative error over random states; the run fails if one is over its bound.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import linkwright as lw
from linkwright.errors import ModelError
from robots import Twin, identity, relative, robots

STATES = 3
COLUMNS = {**dict.fromkeys(("inverse", "forward", "M", "pose", "J"), 1e-10), "∂inverse": 1e-8, "∂forward": 1e-8}
PAGE = Path(__file__).parents[1] / "docs" / "agreement.md"
REFERENCES = {
    "body": pin.ReferenceFrame.LOCAL,
    "world": pin.ReferenceFrame.WORLD,
    "aligned": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
}


def full(upper: np.ndarray) -> np.ndarray:
    return np.triu(upper) + np.triu(upper, 1).T


def errors(t: Twin) -> dict[str, float | None]:
    """The largest error of each column; None where there is no answer to compare."""
    mech, model, data = t.mech, t.model, t.data
    q, v, tau = t.states(STATES)
    found: dict[str, float | None] = {}

    def note(column: str, ours: Any, theirs: Any) -> None:
        error = relative(ours, theirs)
        found[column] = max(found.get(column) or 0.0, error if np.isfinite(error) else np.inf)

    try:
        forward = mech.forward_dynamics(q, v, tau)
    except ModelError:
        forward = None  # a joint that carries no mass: Pinocchio gives no number either
        found["forward"] = found["∂forward"] = None
    inverse, mass = mech.inverse_dynamics(q, v, tau), mech.mass_matrix(q)
    names = [f.name for f in model.frames if f.type == pin.FrameType.BODY and f.name in mech.frames]
    frames = sorted({names[k] for k in np.linspace(0, len(names) - 1, 3).astype(int)})
    for k in range(STATES):
        pq, pv, pt = t.pin_q(q[k]), t.pin_v(v[k]), t.pin_v(tau[k])
        note("inverse", inverse[k], t.ours(pin.rnea(model, data, pq, pv, pt)))
        note("M", mass[k], t.ours(full(pin.crba(model, data, pq))))
        if forward is not None:
            note("forward", forward[k], t.ours(pin.aba(model, data, pq, pv, pt)))
    pq, pv, pt = t.pin_q(q[0]), t.pin_v(v[0]), t.pin_v(tau[0])
    for name in frames:
        number = model.getFrameId(name, pin.FrameType.BODY)
        pin.framesForwardKinematics(model, data, pq)
        note("pose", mech.pose(q[0], name), data.oMf[number].homogeneous)
        for reference, theirs in REFERENCES.items():
            expected = t.columns(pin.computeFrameJacobian(model, data, pq, number, theirs))
            note("J", mech.jacobian(q[0], name, reference), expected)
    pin.computeRNEADerivatives(model, data, pq, pv, pt)
    for ours, expected in zip(
        mech.inverse_dynamics_derivatives(q[0], v[0], tau[0]), (data.dtau_dq, data.dtau_dv, full(data.M)), strict=True
    ):
        note("∂inverse", ours, t.ours(expected))
    if forward is not None:
        pin.computeABADerivatives(model, data, pq, pv, pt)
        theirs = (data.ddq_dq, data.ddq_dv, full(data.Minv))
        for ours, expected in zip(mech.forward_dynamics_derivatives(q[0], v[0], tau[0]), theirs, strict=True):
            note("∂forward", ours, t.ours(expected))
    return found


def compare(path: Path, base: str) -> tuple[int, int, dict[str, float | None]] | None:
    """One row: bodies, rates and errors; None for a robot that cannot move."""
    warnings.simplefilter("ignore")
    lw.set_threads(1)
    t = Twin(path, base)
    return (t.mech.nb, t.mech.nv, errors(t)) if t.mech.nv else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--only", default="", help="robots whose name contains this")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "# Agreement with Pinocchio",
        "",
        f"`make test-full` on {date.today()}: Linkwright {lw.__version__} (native code), Pinocchio {pin.__version__}; "
        f"{STATES} random states per robot, mimic joints independent. Entries are the largest error relative to the "
        "largest number; – where forces do not determine the accelerations (a joint that carries no mass: Linkwright "
        "names it, Pinocchio gives NaN).",
        "",
        "| robot | base | bodies | nv | " + " | ".join(f"{name} ≤ {bound:g}" for name, bound in COLUMNS.items()) + " |",
        "| --- |" + " --- |" * (3 + len(COLUMNS)),
    ]
    bad = compared = 0
    chosen = [(path, base) for path in robots() if options.only in path.name for base in ("fixed", "floating")]
    with ProcessPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        for (path, base), row in zip(chosen, pool.map(compare, *zip(*chosen, strict=True)), strict=True):
            if row is None:
                continue
            bodies, rates, found = row
            cells = []
            for name, bound in COLUMNS.items():
                error = found.get(name)
                compared += error is not None
                over = error is not None and not error <= bound
                bad += over
                text = "–" if error is None else f"{error:.0e}"
                cells.append(f"**{text}**" if over else text)
            lines.append(f"| {identity(path)} | {base} | {bodies} | {rates} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    lines += ["", f"{compared} comparisons, {bad} over their bound."]
    print(lines[-1])
    if options.write:
        PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if bad or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
