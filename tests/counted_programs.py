"""What each verb records and compiles in its first call, in a second one, with a new object, with a new value.

Run as a script, in a process that has recorded nothing yet: it writes the counts as JSON.
"""

import contextlib
import io
import json
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import linkwright as lw
from linkwright.cli.app import run
from linkwright.kernels.llvm import compiler
from linkwright.tape.block import Recorder
from linkwright.tape.program import Program

sys.path.insert(0, str(Path(__file__).parent / "design"))
from design_models import HANGING, OSCILLATOR, SWINGING

DRIVEN = SWINGING.replace("DYNAMIC", "KINEMATIC").replace(
    "INITIAL (a.angle = 40 deg, a.rate = 1 rad/s);", "DRIVER turn (a.angle = 40 deg + TIME);"
)
assert DRIVEN.count("DRIVER") == 1
MODELS = {"driven": DRIVEN, "swinging": SWINGING, "oscillator": OSCILLATOR, "hanging": HANGING}

counts: Counter[str] = Counter()


def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose calls are counted."""

    def call(*args: Any, **options: Any) -> Any:
        counts[name] += 1
        return function(*args, **options)

    return call


def loop(mech: lw.Mechanism) -> None:
    """A sampled loop about a controller."""
    reference = lw.control.MinimumJerk(np.zeros(mech.nq), np.full(mech.nq, 0.5), duration=0.02)
    follow = lw.control.computed_torque(mech, kp=400.0, kd=40.0, reference=reference)
    lw.control.Loop(mech, follow, period=2e-3, torque_limit=200.0).run(0.02)


def tolerances(mech: lw.Mechanism, size: float) -> None:
    """A dimension and two clearances, with draws."""
    settings = lw.ToleranceSettings(draws=20)
    lw.tolerances(mech, "range(d.angle)", {"crank": size}, clearances={"b": 0.01, "c": size}, settings=settings)


#: Verb → the model that it is about, and the call.
VERBS: dict[str, tuple[str, Callable[[lw.Mechanism], Any]]] = {
    "analyse": ("driven", lw.analyse),
    "assemble": ("swinging", lambda m: m.assemble()),
    "simulate": ("swinging", lambda m: lw.simulate(m, t_end=0.1)),
    "assemble with parameters": ("swinging", lambda m: m.with_parameters(crank=0.97).assemble()),
    "simulate with parameters": (
        "swinging",
        lambda m: lw.simulate(m.with_parameters(crank=0.97, heavy=2.2), t_end=0.1),
    ),
    "Loop with parameters": ("hanging", lambda m: loop(m.with_parameters(m=2.4))),
    "sweep": ("driven", lambda m: lw.sweep(m, {"crank": [0.9, 1.0]}, ["reach = max(b.angle)"])),
    "Loop": ("hanging", loop),
    "optimise": (
        "driven",
        lambda m: lw.optimise(m, "range(d.angle)", {"crank": (0.8, 1.1)}, search=lw.Search(iterations=3)),
    ),
    "optimise a simulation": (
        "oscillator",
        lambda m: lw.optimise(m, "final(block.x)", {"m": (1.0, 3.0)}, analysis=lw.AnalysisSettings(dt=0.05)),
    ),
    "optimise an equilibrium": ("hanging", lambda m: lw.optimise(m, "final(hinge.angle)", {"m": (1.0, 4.0)})),
    "sensitivities": ("driven", lambda m: lw.sensitivities(m, ["max(d.rate)", "d.acceleration"], ["crank"], order=2)),
    "sensitivities of a function": (
        "hanging",
        lambda m: lw.sensitivities(m, lambda s: s.mean(s["hinge.angle"] ** 2) * s["m"], ["m"], order=2),
    ),
    "sensitivities of a simulation": (
        "oscillator",
        lambda m: lw.sensitivities(m, "final(block.x)", ["m"], order=2, analysis=lw.AnalysisSettings(dt=0.1)),
    ),
    "tolerances": ("driven", lambda m: tolerances(m, 0.01)),
    "sensitivities in reverse": (
        "oscillator",
        lambda m: lw.sensitivities(
            m, "final(block.ax)", ["m", "start"], mode="reverse", analysis=lw.AnalysisSettings(dt=0.1)
        ),
    ),
}
#: Verbs with another value of a parameter than the calls before have had.
NEW_VALUES: dict[str, Callable[[lw.Mechanism], Any]] = {
    "analyse": lambda m: lw.analyse(m.with_parameters(crank=0.95)),
    "assemble with parameters": lambda m: m.with_parameters(crank=0.95).assemble(),
    "simulate with parameters": lambda m: lw.simulate(m.with_parameters(crank=0.95, heavy=1.8), t_end=0.1),
    "Loop with parameters": lambda m: loop(m.with_parameters(m=2.5)),
    "sweep": lambda m: lw.sweep(m, {"crank": [0.85, 1.05]}, ["reach = max(b.angle)"]),
    "optimise": lambda m: lw.optimise(m, "range(d.angle)", {"crank": (0.8, 0.9, 1.1)}, search=lw.Search(iterations=3)),
    "optimise a simulation": lambda m: lw.optimise(
        m, "final(block.x)", {"m": (1.0, 1.5, 3.0)}, analysis=lw.AnalysisSettings(dt=0.05)
    ),
    "optimise an equilibrium": lambda m: lw.optimise(m, "final(hinge.angle)", {"m": (1.0, 2.0, 4.0)}),
    "sensitivities": lambda m: lw.sensitivities(m, ["max(d.rate)", "d.acceleration"], {"crank": 0.95}, order=2),
    "tolerances": lambda m: tolerances(m, 0.02),
    "sensitivities in reverse": lambda m: lw.sensitivities(
        m, "final(block.ax)", {"m": 1.9, "start": 0.2}, mode="reverse", analysis=lw.AnalysisSettings(dt=0.1)
    ),
}


def measured(call: Callable[[], Any]) -> dict[str, int]:
    """What a call records and compiles."""
    counts.clear()
    call()
    return {name: counts[name] for name in ("programs", "recordings", "compilations")}


def main(folder: Path) -> dict[str, dict[str, dict[str, int]]]:
    """Verb → call → counts."""
    files = {name: folder / f"{name}.mks" for name in MODELS}
    for name, text in MODELS.items():
        files[name].write_text(text, encoding="utf-8")

    def command(model: str, *options: str) -> Callable[[], None]:
        def call() -> None:
            with contextlib.redirect_stdout(io.StringIO()):
                assert run(["run", str(files[model]), "--output", str(folder / "out"), *options]) == 0

        return call

    results = {
        "run": {
            "first call": measured(command("driven")),
            "second call": measured(command("driven")),
            "new value": measured(command("driven", "--set", "crank=0.95")),
        },
        "run a simulation": {
            "first call": measured(command("swinging", "--set", "crank=0.97")),
            "second call": measured(command("swinging", "--set", "crank=0.97")),
            "new value": measured(command("swinging", "--set", "crank=0.95")),
        },
    }
    for verb, (name, call) in VERBS.items():
        mech = lw.load(files[name])
        results[verb] = {
            "first call": measured(lambda: call(mech)),  # noqa: B023  (called at once)
            "second call": measured(lambda: call(mech)),  # noqa: B023
            "new object": measured(lambda: call(lw.load(files[name]))),  # noqa: B023
        }
        if verb in NEW_VALUES:
            results[verb]["new value"] = measured(lambda: NEW_VALUES[verb](mech))  # noqa: B023
    return results


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    Program.__init__ = counted("programs", Program.__init__)  # type: ignore[method-assign]
    Recorder.__init__ = counted("recordings", Recorder.__init__)  # type: ignore[method-assign]
    compiler.object_code = counted("compilations", compiler.object_code)
    compiler.CARE = 0  # code that runs a few times need not be fast
    with tempfile.TemporaryDirectory() as temporary:
        print(json.dumps(main(Path(temporary))))
