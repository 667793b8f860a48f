"""What Linkwright 0.1.0 wrote, and the questions that it answered: results, studies, checkpoints, programs.

Run as a script it writes the files beside it, with the Linkwright that it finds. Those that are kept are of 0.1.0:

    git worktree add ../linkwright-0.1.0 2fd60c0
    PYTHONPATH=../linkwright-0.1.0/src python tests/old_files/written_by_0_1_0.py

Tests import it for the questions. It uses public names alone, but where runs and studies are broken off.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import linkwright as lw

FILES = Path(__file__).with_name("files_0_1_0")

#: A point on an arm, driven along a line; out of reach where the arm is short.
REACH = """MODEL reach
SYSTEM (KINEMATIC ANALYSIS, starting time = 0, ending time = 2, print interval = 0.25);
PARAMETER length = 2;
PARAMETER rate = 0.5;
BODY base (ground);
BODY arm (origin = (0, 0, 0), f = (1, 1, 0));
TRIAD pin (associated body = base, origin = (0, 0, 0));
TRIAD tip (associated body = arm, origin = (length, 0, 0));
REVOLUTE JOINT a (triad = pin, triad = arm);
DRIVER d (tip.x = 1 + rate*sin(TIME));
ENDMODEL
"""

OSCILLATOR = """MODEL oscillator
SYSTEM (DYNAMIC ANALYSIS, ending time = 1, print interval = 0.1, relative tolerance = 1e-10);
PARAMETER m = 2;
PARAMETER k = 50;
GRAVITY (0, 0, 0);
BODY wall (ground);
BODY block (mass = m, inertia = (1, 1, 1));
TRIAD rail (associated body = wall, h = (1, 0, 0), f = (0, 1, 0));
TRIAD shoe (associated body = block, h = (1, 0, 0), f = (0, 1, 0));
TRANSLATIONAL JOINT slide (triad = rail, triad = shoe);
SPRING coil (joint = slide, stiffness = k);
INITIAL (slide.shift = 0.3, slide.rate = 0);
ENDMODEL
"""

#: A study of the arm; two of its lengths are too short.
SWEEP: dict[str, Any] = {
    "parameters": {"length": [1.2, 1.4, 1.8, 2.2], "rate": [0.5, 0.7]},
    "outputs": ["height = max(sqrt(length^2 - (1 + rate*sin(TIME))^2))", "a.angle"],
    "chunk": 3,
}
#: A study of the oscillator, whose stiffness is drawn.
DRAWN: dict[str, Any] = {
    "parameters": {"m": [1.0, 2.0], "k": None},
    "outputs": ["end = final(block.x)"],
    "draws": 3,
    "sampling": "sobol",
    "seed": 5,
}

#: Name of a checkpoint → how its run of the oscillator was asked for.
RUNS: dict[str, dict[str, Any]] = {
    "adaptive": {"rtol": 1e-9, "interval": 0.1},
    "fixed": {"method": "rk4", "dt": 1e-3, "interval": 0.1},
    "stiff": {"method": "radau", "rtol": 1e-7, "interval": 0.1},
}
T_END = 20.0


def model(text: str, folder: Path) -> Path:
    """The file of a model."""
    path = folder / f"{text.split()[1]}.mks"
    path.write_text(text, encoding="ascii")
    return path


def passing() -> lw.Event:
    """An event of the oscillator: at its middle."""
    return lw.Event(lambda t, q, v: q[0], name="middle")


def branches(x: Any, y: Any) -> Any:
    """A function with most of what straight code has."""
    angle = lw.where(lw.greater(x[0], y[1]), np.sin(x[1]), np.arctan2(x[2], y[0]))
    return np.array([angle, np.sqrt(x[0] ** 2 + 1.0) / (2.0 + np.cos(y[0])), lw.minimum(x[2], y[1])]), x @ x


def arguments() -> tuple[np.ndarray, np.ndarray]:
    """Three cases of what `branches` takes."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(3, 3)), rng.normal(size=(3, 2))


def arm() -> lw.Mechanism:
    """A mechanism whose programs are loops over links where they are asked to be."""
    return lw.tree(3, 2)


PROGRAMS: dict[str, dict[str, Any]] = {
    "loop": {"function": "forward_dynamics", "form": "rolled"},
    "factors": {"function": "forward_dynamics", "method": "mass-matrix", "form": "rolled"},
    "levels": {"function": "forward_dynamics", "method": "assembly"},
    "matrices": {"function": "forward_dynamics_derivatives"},
}


def study(folder: Path, how: dict[str, Any], path: Path, **options: Any) -> lw.Study:
    """A study of a model's file, in a folder."""
    how = {**how, **options}
    parameters = {name: lw.uniform(40.0, 60.0) if x is None else x for name, x in how.pop("parameters").items()}
    sampling = lw.Sampling(how.get("sampling"), how.get("draws"), seed=how.get("seed"))
    store = lw.StudyFolder(folder, resume=how.get("resume", False))
    return lw.sweep(
        path, parameters, how["outputs"], sampling=sampling, store=store, execution=lw.Execution(chunk=how.get("chunk"))
    )


def write_begun_study(path: Path) -> None:
    """A study that was broken off after its first chunks."""
    from linkwright.sweeps.store import Store

    inner, written = Store.write, []

    def write(self: Any, *arguments: Any, **options: Any) -> None:
        inner(self, *arguments, **options)
        written.append(1)
        if len(written) == 2:
            raise KeyboardInterrupt

    Store.write = write  # type: ignore[method-assign]
    try:
        study(FILES / "begun_study", SWEEP, path)
    except KeyboardInterrupt:
        pass
    finally:
        Store.write = inner  # type: ignore[method-assign]


def write_checkpoints(mech: lw.Mechanism) -> None:
    """Runs that were broken off after some seconds of motion."""
    from linkwright.simulation import engines, stiff

    engines.PIECE = 2e-4  # seconds of work between two looks at the clock
    for name, how in RUNS.items():
        engine: Any = {"adaptive": engines.Adaptive, "fixed": engines.Fixed, "stiff": stiff.Stiff}[name]
        inner, calls = engine.advance, []

        def advance(self: Any, inner: Any = inner, calls: list[int] = calls) -> Any:
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return inner(self)

        engine.advance = advance
        stopped = lw.simulate(mech, T_END, checkpoint=FILES / f"{name}.lwc", **how)
        engine.advance = inner
        assert stopped.status.reason == "interrupted", stopped.status


def main() -> None:
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        reach, oscillator = model(REACH, Path(folder)), model(OSCILLATOR, Path(folder))
        lw.analyse(reach).save(FILES / "reach.nc")
        mech = lw.load(oscillator)
        lw.simulate(mech, 1.0, rtol=1e-10, events=passing(), interval=0.1).save(FILES / "oscillator.nc")
        study(FILES / "study", SWEEP, reach)
        study(FILES / "drawn_study", DRAWN, oscillator)
        write_begun_study(reach)
        write_checkpoints(mech)
    x, y = arguments()
    lw.record(branches, x.shape[1:], y.shape[1:]).save(FILES / "branches.lwp")
    for name, how in PROGRAMS.items():
        arm().program(**how).save(FILES / f"{name}.lwp")


if __name__ == "__main__":
    main()
