"""C exports of six-joint arms: bytes of code and stack, operations, time of a call, and how far from Python's numbers.

Beside them the same functions through CasADi's code generator, compiled the same way.
Run it: python benchmarks/export.py [--quick]    It puts its table into docs/export.md.
Needs gcc and example-robot-data, and casadi for the comparison.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import subprocess
import tempfile
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np

import linkwright as lw
from linkwright.exports.c_export import measured
from table import replace_section

MODELS = Path(__file__).resolve().parents[1] / "examples" / "models"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "export.md"
FUNCTIONS = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "forward_dynamics_derivatives")
FLAGS = ["-O2", "-std=c99", "-Wall", "-Werror"]
TIMER = """
#include <stdio.h>
#include <time.h>
{declared}
int main(void)
{{
    static {real} in[64][{inputs}], out[{outputs}], work[{work}];
    double sum = 0.0, best = 1e9;
    (void)work;
    for (int k = 0; k < 64; ++k)
        for (int j = 0; j < {inputs}; ++j)
            in[k][j] = ({real})((k * 31 + j * 17) % 97) / 97;
    for (int round = 0; round < 200; ++round) {{
        const clock_t start = clock();
        for (int n = 0; n < {repeats}; ++n) {{
            {call}
            sum += (double)out[0];
        }}
        const double spent = (double)(clock() - start) / CLOCKS_PER_SEC / {repeats};
        best = spent < best ? spent : best;
    }}
    printf("%.1f %g\\n", best * 1e9, sum);
    return 0;
}}
"""


def robot(name: str) -> Path:
    """A file of the wheel example-robot-data."""
    spec = importlib.util.find_spec("cmeel")
    assert spec is not None, "pip install example-robot-data"
    assert spec.origin is not None
    folder = Path(spec.origin).parents[1] / "cmeel.prefix/share/example-robot-data/robots"
    return next(folder.rglob(name))


def compiled(folder: Path, source: str, *more: str) -> None:
    subprocess.run(["gcc", *FLAGS, *more, source, "-lm"], cwd=folder, check=True)


def timed(folder: Path, made: lw.Program, name: str, real: str, work: int, repeats: int, peer: bool = False) -> float:
    """Nanoseconds of a call, the best of many rounds."""
    ins, outs, at = [], [], 0
    for b in made.inputs:
        ins.append(f"in[n & 63] + {at}")
        at += b.size
    places = 0
    for b in made.outputs:
        outs.append(f"out + {places}")
        places += b.size
    call, declared, source = (
        f"{name}({', '.join([*ins, *outs, *(['work'] if work else [])])});",
        f'#include "{name}.h"',
        name,
    )
    if peer:  # CasADi's convention: arrays of pointers
        declared = f"int {name}(const double **, double **, long long *, double *, int);"
        call = f"const double *arg[] = {{{', '.join(ins)}}}; double *res[] = {{{', '.join(outs)}}};"
        call, source = f"{call} {name}(arg, res, 0, work, 0);", "generated"
    words = {"declared": declared, "real": real, "inputs": at, "outputs": places, "work": max(1, work)}
    (folder / "timer.c").write_text(TIMER.format(**words, call=call, repeats=repeats))
    flags = ["-O2", "-std=c99"] if peer else FLAGS
    subprocess.run(["gcc", *flags, "timer.c", f"{source}.c", "-o", "timer", "-lm"], cwd=folder, check=True)
    done = subprocess.run([str(folder / "timer")], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[0])


def error(folder: Path, mech: lw.Mechanism, function: str, precision: str, states: int) -> float:
    """The worst difference from Python over random states, over the largest number of the state's output."""
    compiled(folder, "answer.c", "-shared", "-fPIC", "-o", "answer.so")
    call = ctypes.CDLL(str(folder / "answer.so")).answer
    program = mech.program(function)
    rng = np.random.default_rng(5)
    worst, work = 0.0, np.zeros(4096, precision)
    for _ in range(states):
        given = [rng.uniform(-2, 2, b.shape).astype(precision) for b in program.inputs]
        got = [np.full(b.shape, np.nan, precision) for b in program.outputs]
        call(*(ctypes.c_void_p(a.ctypes.data) for a in (*given, *got, work)))
        wanted = program(*(x.astype(float) for x in given))
        for y, right in zip(got, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            worst = max(worst, float(np.abs(y - right).max() / max(1.0, np.abs(right).max())))
    return worst


def imported(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def casadi_row(folder: Path, mech: lw.Mechanism, function: str, repeats: int) -> tuple[str, str]:
    """Bytes and time of CasADi's own C text of the same function, by the same compiler."""
    try:
        import casadi  # noqa: F401
    except ImportError:
        return "", ""
    lw.export(mech, folder / "answer.py", function, "casadi", name="answer")
    f = imported(folder / "answer.py").build()
    f.generate("generated.c", {"mex": False})
    text = Path("generated.c").read_text()
    Path("generated.c").unlink()
    (folder / "generated.c").write_text(text)
    subprocess.run(["gcc", "-O2", "-c", "generated.c", "-o", "generated.o"], cwd=folder, check=True)
    told = subprocess.run(["size", "generated.o"], cwd=folder, capture_output=True, text=True, check=True)
    ns = timed(folder, mech.program(function), "answer", "double", max(1, f.sz_w()), repeats, peer=True)
    return told.stdout.splitlines()[1].split()[0], f"{ns:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few states, short rounds")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", lw.errors.LinkwrightWarning)
    arms = {"UR5": robot("ur5_robot.urdf"), "arm.urdf": MODELS / "arm.urdf", "PUMA 560": MODELS / "puma560.dh.toml"}
    heads = (
        "arm",
        "function",
        "precision",
        "operations",
        "code (B)",
        "stack (B)",
        "work (B)",
        "ns per call",
        "worst error",
    )
    rows = [f"| {' | '.join((*heads, 'CasADi: code (B)', 'ns per call'))} |", f"|{' --- |' * (len(heads) + 2)}"]
    for arm, path in arms.items():
        mech = lw.load(path)
        for function in FUNCTIONS:
            for precision, real in (("float64", "double"), ("float32", "float")):
                with tempfile.TemporaryDirectory() as made:
                    folder = Path(made) / "out"
                    out = lw.export(mech, folder, function, precision=precision, name="answer")
                    sources = {name: out.files[name] for name in ("answer.c", "answer.h")}
                    size = measured(sources, "answer")
                    assert size is not None
                    work = int(out.files["answer.h"].split("ANSWER_WORK ")[1].split()[0])
                    repeats = 500 if quick else 5_000
                    ns = timed(folder, out.subject.program, "answer", real, work, repeats)
                    worst = error(folder, mech, function, precision, 20 if quick else 2000)
                    # Derivatives pass through M⁻¹: last bits of the inputs change those of arm.urdf by 2e-12.
                    allowed = 1e-11 if "derivatives" in function else 1e-12
                    assert precision == "float32" or worst <= allowed
                    beside = casadi_row(folder, mech, function, repeats) if real == "double" else ("", "")
                    bytes_ = work * (8 if real == "double" else 4)
                    row = (arm, function, precision, out.subject.operations, size.text, size.stack, bytes_, f"{ns:.0f}")
                    rows.append(f"| {' | '.join(map(str, (*row, f'{worst:.1e}', *beside)))} |")
                    print(rows[-1], flush=True)
    if not quick:
        replace_section("export", "\n".join(rows), PAGE)


if __name__ == "__main__":
    main()
