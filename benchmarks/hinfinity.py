"""H∞ design: published γ, ours with its verified norm, and what python-control claims beside what it reaches.

python benchmarks/hinfinity.py [--write]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from table import cpu, replace_section

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "control"))

from linear_cases import grid_norm, paper_case, sampled_case
from published_designs import PUBLISHED, disturbance_process

from linkwright.control.hinfinity.mixed_sensitivity import mixed_sensitivity
from linkwright.control.hinfinity.robustness import hinf_norm
from linkwright.control.hinfinity.synthesis import hinf
from linkwright.control.linear_systems import System, from_polynomials, lft, series
from linkwright.errors import LinkwrightWarning

LIMIT = 30.0  # seconds that another tool gets for a problem
NOISE = 1e-2  # what python-control needs on y, where the problem is singular

# Run apart: the other tool may not return. It reads P and prints its claim and its controller.
PEER = """
import json, sys
import control, numpy as np
given = json.load(sys.stdin)
P = control.ss(*[np.array(given[k]) for k in "ABCD"])
K, _, gamma, _ = control.hinfsyn(P, given["nmeas"], given["ncon"])
print(json.dumps({"gamma": gamma, **{k: np.asarray(getattr(K, k)).tolist() for k in "ABCD"}}))
"""


@dataclass(frozen=True)
class Row:
    """One problem and what came out of it."""

    name: str
    published: str
    gamma_opt: float
    norm: float
    grid: float
    seconds: float
    claim: str
    reached: str

    def __str__(self) -> str:
        cells = (self.name, self.published, f"{self.gamma_opt:.5g}", f"{self.norm:.5g}", f"{self.grid:.5g}")
        return f"| {' | '.join([*cells, f'{self.seconds:.2f} s', self.claim, self.reached])} |"


def peer(P: System, nmeas: int, ncon: int, noise: float) -> tuple[str, str]:
    """python-control's γ, and the norm of the loop with its controller on the plant as given."""
    given = P
    if noise:
        m1, p1 = P.inputs - ncon, P.outputs - nmeas
        B = np.hstack([P.B[:, :m1], np.zeros((P.order, nmeas)), P.B[:, m1:]])
        D = np.zeros((P.outputs, P.inputs + nmeas))
        D[:, :m1], D[:, m1 + nmeas :], D[p1:, m1 : m1 + nmeas] = P.D[:, :m1], P.D[:, m1:], noise * np.eye(nmeas)
        given = System(P.A, B, P.C, D)
    text = json.dumps({**{k: getattr(given, k).tolist() for k in "ABCD"}, "nmeas": nmeas, "ncon": ncon})
    try:
        run = subprocess.run(
            [sys.executable, "-c", PEER], input=text, capture_output=True, text=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return f"none in {LIMIT:.0f} s", "–"
    if run.returncode:
        lines = [line for line in run.stderr.strip().splitlines() if line.strip()]
        return f"error: {lines[-1].strip().split(': ')[-1][:60]}", "–"
    answer = json.loads(run.stdout)
    K = System(*[np.array(answer[k]) for k in "ABCD"])
    reached = hinf_norm(lft(P, K)).upper
    said = f"{answer['gamma']:.5g}"
    if reached > 1.01 * answer["gamma"]:
        said = f"**{said}**"
    return said, f"{reached:.5g}" if np.isfinite(reached) else "unstable"


def measured(name: str, published: str, make, noise: float = 0.0, sampled: bool = False) -> Row:
    """Our design, and the other tool's on the same generalised plant."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinkwrightWarning)
        design = make()
    seconds = time.perf_counter() - start
    design = getattr(design, "design", design)
    K = design.system
    loop = lft(design.plant, K)
    assert loop.stable()
    claim, reached = ("continuous only", "–") if sampled else peer(design.plant, K.inputs, K.outputs, noise)
    return Row(name, published, design.gamma_opt, design.norm.upper, grid_norm(loop), seconds, claim, reached)


def rows() -> list[Row]:
    found = []
    for case in PUBLISHED:
        printed = f"{case.gamma:.4g}"
        row = measured(f"{case.name} ({case.source})", printed, case.design)
        assert row.gamma_opt <= case.gamma + case.rounding, row
        found.append(row)
    root = from_polynomials([1 / np.sqrt(1.5), 10.0], [1.0, 1e-3])
    double = series(root, root)
    found.append(
        measured(
            "disturbance process, weight of second order with a double pole at 0.001 rad/s",
            "–",
            lambda: mixed_sensitivity(disturbance_process(), None, double, 1.0, cost="standard"),
        )
    )
    for damping, late in ((0.01, 0.004), (0.005, 0.004), (0.01, 0.0)):
        case = paper_case(damping, late)
        name = f"acceleration display, 16 Hz, ζ = {damping:g}, delay {late * 1e3:g} ms"
        found.append(measured(name, "–", lambda case=case: mixed_sensitivity(**case), NOISE))
    case = sampled_case()
    found.append(measured("the same sampled every 2 ms", "–", lambda: mixed_sensitivity(**case), sampled=True))
    # A control that costs nothing: python-control's issue 152.
    free = System([[-0.01, -0.992], [0, -0.75]], [[0.992, 0], [0, 1]], [[1, -0.8], [0, -1]], [[0.8, 0], [1, 0]])
    found.append(measured("control without cost (python-control's issue 152)", "–", lambda: hinf(free, 1, 1)))
    return found


def text() -> str:
    names = {"control": "python-control", "slycot": "slycot", "scipy": "SciPy", "numpy": "NumPy"}
    said = []
    for package, name in names.items():
        try:
            said.append(f"{name} {version(package)}")
        except PackageNotFoundError:
            said.append(f"no {name}")
    head = f"{date.today()}, {cpu()}, Python {sys.version.split()[0]}, {', '.join(said)}."
    lines = [
        head,
        "",
        "| problem | published γ | our γ_opt | our K, backed off 5 %: verified norm | dense grid | time "
        "| python-control's γ | norm that its K reaches |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(str(row) for row in rows()),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    given = parser.parse_args()
    answer = text()
    print(answer)
    if given.write:
        replace_section("hinfinity", answer)


if __name__ == "__main__":
    main()
