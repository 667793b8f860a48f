"""Whether two checkouts give the same numbers: every public call, analyses, simulations and a study.

    python benchmarks/unchanged.py OLD_CHECKOUT [--new CHECKOUT]

Each checkout has a process of its own; calls and inputs are those of this folder for both. A row is a call on one of
the mechanisms of calls.py, or the motion of an example's model, if both versions have it. Printed are the rows whose
largest difference is above 1e-12 of their largest number, and how many are below; the exit code is 1 if there is one
above.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
MODELS = HERE.parent / "examples" / "models"
SAME = 1e-12
SUBJECTS = ("arm", "quadruped", "humanoid", "four-bar", "six legs")
PARTS = ("position", "velocity", "acceleration", "orientation", "angular_velocity", "angular_acceleration")


def rows() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names and calls; a call may be missing in an older version, and is left out then."""
    import linkwright as lw
    from calls import Subject

    for name in SUBJECTS:
        for call, work in Subject(name).calls(batch=True).items():
            yield f"{name}: {call}", work
    for path in sorted(MODELS.glob("*.mks")):
        mech = lw.load(path)
        yield f"{path.stem}: analyse", lambda mech=mech: motion(mech, lw.analyse(mech))
        yield f"{path.stem}: simulate", lambda mech=mech: lw.simulate(mech, t_end=0.2, method="rk4", dt=1e-2).q
    lengths = {"crank_length": np.linspace(5.0, 7.0, 9), "rod_length": np.linspace(9.5, 11.0, 9)}
    outputs = ["range(block.x)", "max(block.vx)", "final(block.ax)"]
    study = MODELS / "slider_crank_parameters.mks"
    yield "slider-crank: sweep", lambda: tuple(lw.sweep(study, lengths, outputs)[name] for name in outputs)


def motion(mech: Any, solution: Any) -> tuple[Any, ...]:
    """The motion of every body."""
    return tuple(getattr(solution, part)(body.name) for body in mech.bodies for part in PARTS)


def numbers(answer: Any) -> np.ndarray:
    """All numbers of an answer, in a row."""
    parts = answer if isinstance(answer, tuple) else (answer,)
    return np.concatenate([np.asarray(part, float).reshape(-1) for part in parts])


def evaluate(file: str) -> None:
    """All rows of the version that is imported, into a file."""
    warnings.simplefilter("ignore")
    from linkwright.errors import LinkwrightError

    answers = {}
    for name, call in rows():
        try:
            answers[name] = numbers(call())
        except (LinkwrightError, AttributeError, TypeError) as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    np.savez(file, **answers)


def answers(checkout: Path, file: str) -> dict[str, np.ndarray]:
    """The answers of a checkout, in a process of its own."""
    path = os.pathsep.join([str(checkout / "src"), str(HERE), str(HERE.parent / "tests")])
    command = [sys.executable, __file__, "--worker", file]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=True, stderr=subprocess.DEVNULL)
    with np.load(file) as stored:
        return dict(stored)


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference, by the largest number; infinite where shapes or places of NaN differ."""
    if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
        return np.inf
    known = ~np.isnan(a)
    if not known.any():
        return 0.0
    return float(np.max(np.abs(a - b)[known]) / max(np.max(np.abs(a[known])), 1e-300))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path, help="a checkout, or with --worker the file to write")
    parser.add_argument("--new", type=Path, default=HERE.parent, help="the other checkout; by default this one")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        evaluate(str(options.old))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        old, new = (
            answers(checkout.resolve(), f"{folder}/{name}.npz")
            for name, checkout in (("old", options.old), ("new", options.new))
        )
    both = [name for name in new if name in old]
    above = {name: x for name in both if (x := difference(old[name], new[name])) > SAME}
    for name, x in sorted(above.items(), key=lambda row: -row[1]):
        print(f"{name}: {x:.1e}")
    print(f"{len(both) - len(above)} of {len(both)} rows differ by less than {SAME:g} of their largest number")
    return int(bool(above))


if __name__ == "__main__":
    sys.exit(main())
