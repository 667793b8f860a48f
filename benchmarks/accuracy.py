"""Rounding errors of forward dynamics: every method against the articulated-body recursion in extended precision.

    python benchmarks/accuracy.py

The recursions run over any scalar, so the reference is the same steps on NumPy's long doubles (64 bits of mantissa on
x86). The paper's form of the assembly, both accelerations as functions of both forces, is `assembly_loops`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
import linkwright as lw
from linkwright.dynamics.closed.redundancy import Blocks, Redundancy
from linkwright.dynamics.functions import FORWARD_METHODS
from linkwright.dynamics.methods import articulated_body, assembly_loops
from linkwright.dynamics.traversals.traversal import Unrolled


def exact(mech: lw.Mechanism, *state: Any) -> Any:
    long = dict(zip(("q", "v", "tau"), (x.astype(np.longdouble) for x in state), strict=True))
    a = articulated_body.forward_dynamics(Unrolled(mech.programs.tree, long), mech.gravity.astype(np.longdouble))
    return np.array(a, np.longdouble)


def errors(mech: lw.Mechanism, *state: Any, paper: bool) -> dict[str, float]:
    wanted = exact(mech, *state)
    skip = ("triangular", "mass-matrix") if mech.nv > 1000 else ()
    found = {m: mech.forward_dynamics(*state, method=m) for m in FORWARD_METHODS if m not in skip}
    if paper:
        inputs = dict(zip(("q", "v", "tau"), state, strict=True))
        tree, none = Unrolled(mech.programs.tree, inputs), Blocks(Redundancy(()), ())
        a, _ = assembly_loops.forward_dynamics(tree, mech.gravity, lambda _: [], none)
        found["assembly, the paper's form"] = np.array(a, float)
    return {name: float(np.abs(a - wanted).max() / np.abs(wanted).max()) for name, a in found.items()}


def main() -> int:
    if np.finfo(np.longdouble).eps >= np.finfo(float).eps:
        print("this machine's long double is no longer than its double; there is nothing to compare with")
        return 0
    rng = np.random.default_rng(0)
    bent = 4096
    cases = {
        f"{bent} revolute links, bent by up to 0.3 rad": (
            lw.chain(bent),
            (rng.uniform(-0.3, 0.3, bent), 0.1 * rng.standard_normal(bent), np.zeros(bent)),
        ),
        "60 prismatic links, shifts of about a metre": (lw.chain(60, joint="prismatic"), rng.standard_normal((3, 60))),
    }
    for name, (mech, state) in cases.items():
        print(f"{name}: greatest error of a, relative to the greatest a")
        for method, error in errors(mech, *state, paper=mech.nv < 1000).items():
            print(f"  {method:<28} {error:.0e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
