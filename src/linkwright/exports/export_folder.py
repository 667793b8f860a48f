"""The folder of an export, written whole or not at all, with its README and its test vector."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.files import atomic_folder, check_target
from linkwright.errors import LinkwrightError
from linkwright.exports.exported_function import Subject, plain
from linkwright.tape.block import Block
from linkwright.tape.runner import straightened

README = "README.md"
MARK = "Written by Linkwright"  # what the README of every export says in its first lines


def check_folder(folder: Path, names: Mapping[str, str] | None = None, *, overwrite: bool = False) -> None:
    """Refuse a place that cannot become this folder; without names, only what is known before them."""
    if folder.exists() and not folder.is_dir():
        raise LinkwrightError(f"{folder}: is a file; give the name of a folder, or of a file such as model.c")
    if not folder.parent.is_dir():
        raise LinkwrightError(f"{folder}: there is no folder {folder.parent}; make it first")
    if not folder.exists() or names is None:
        return
    known = set(names)
    names_there = (p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir() or p.is_symlink())
    other = list(islice((name for name in names_there if name not in known), 4))  # the folder may be a large one
    if other and not overwrite:
        few = ", ".join(other[:3]) + (", …" if len(other) > 3 else "")
        raise LinkwrightError(
            f"{folder}: holds {few}, which is not of this export; give another folder, or overwrite=True "
            "(what has other names stays)"
        )
    taken = [name for name in names if (folder / name).exists()]
    if taken and not overwrite and not _ours(folder / README):
        raise LinkwrightError(
            f"{folder}: holds {', '.join(taken[:3])}, which no export wrote; give another folder, or overwrite=True"
        )
    for name in names:
        check_target(folder / name)


def _ours(readme: Path) -> bool:
    """Whether a README is that of an export."""
    try:
        with open(readme, encoding="utf-8") as file:
            return MARK in file.read(2000)
    except (OSError, UnicodeDecodeError):
        return False


def write_folder(folder: Path, files: Mapping[str, str], *, overwrite: bool = False) -> None:
    """Write the files beside their place, then move them there."""
    check_folder(folder, files, overwrite=overwrite)
    with atomic_folder(folder) as staging:
        for name, text in files.items():
            path = staging / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")


_NAMES = {
    "mul": "products",
    "add": "sums",
    "sub": "differences",
    "div": "quotients",
    "neg": "changes of sign",
    "sin": "sines",
    "cos": "cosines",
    "sqrt": "square roots",
}


def readme(subject: Subject, vectors: Vectors, *sections: tuple[str, Sequence[str]]) -> str:
    """The page: a heading, the sections of the language, then what is the same for all."""
    lines = [f"# {plain(subject.title)}", "", f"{_sentence(subject)} {MARK}; it needs nothing of it."]
    for title, body in (*sections, ("Arrays", _arrays(subject)), ("Test vector", _vector(vectors))):
        lines += ["", f"## {title}", "", *body]
    return "\n".join(lines) + "\n"


def _sentence(subject: Subject) -> str:
    outputs = ", ".join(f"`{b.name}`" for b in subject.program.outputs)
    inputs = ", ".join(f"`{b.name}`" for b in subject.program.inputs) or "nothing"
    more = "" if subject.dt is None else f" One Runge–Kutta step (order 4) of {subject.dt!r} s with `tau` held."
    return f"`{subject.name}` computes {outputs} from {inputs}.{more}"


def operations(subject: Subject) -> str:
    """How many operations one call takes at most, in words."""
    counts = sorted(subject.program.count().items(), key=lambda item: -item[1])
    listing = ", ".join(f"{number} {_NAMES.get(name, name)}" for name, number in counts)
    return f"At most {subject.operations} operations" + (f": {listing}." if listing else ".")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows of a Markdown table."""
    return [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]


def _arrays(subject: Subject) -> list[str]:
    rows = []
    for role, buffers in (("in", subject.program.inputs), ("out", subject.program.outputs)):
        for b in buffers:
            shape = " × ".join(map(str, b.shape)) or "one number"
            rows.append((role, f"`{b.name}`", shape, subject.meaning(b.name).replace("|", "/")))
    lines = [*table(("", "array", "shape", "what"), rows), "", "Arrays are row-major. SI units, radians."]
    order = subject.order()
    if order:
        lines += ["", "The order of the coordinates:", "", *table(("joint", "kind", "q", "v", "unit"), order[:200])]
        lines += [f"\nand {len(order) - 200} more."] if len(order) > 200 else []
    return lines


def _vector(vectors: Vectors) -> list[str]:
    return [
        f"{vectors.cases} states with the results that Linkwright computes in float64. The error of an output is its "
        "largest difference over its largest number (over 1 where that is less); "
        f"the test passes up to {vectors.tolerance:.2g}. Rounding alone is expected to make about "
        f"{vectors.rounding:.1g}."
    ]


CASES = 8
MARGIN = 30.0
LEAST = {"float64": 1e-12, "float32": 1e-5}
LEAST_IN_PYTHON = 1e-11  # its libraries order operations as they like
_WIDE = 20_000  # numbers of a case beyond which two are enough
_LONG = 200_000  # operations of a program whose rounding is not tried in float32


@dataclass(frozen=True)
class Vectors:
    """Inputs and outputs, each (cases, size).

    The error of an output is |got − wanted| over the largest number of that output in its case, or over 1 if that is
    smaller; it must be at most `tolerance`.
    """

    inputs: tuple[Floats, ...]
    outputs: tuple[Floats, ...]
    tolerance: float
    rounding: float  # the error that rounding is expected to make

    @property
    def cases(self) -> int:
        return len(self.inputs[0]) if self.inputs else len(self.outputs[0])


def vectors(subject: Subject, precision: str = "float64", cases: int = CASES) -> Vectors:
    """States near where the mechanism is drawn, the first of them at rest; only those with finite results."""
    program = subject.program
    cases = cases if sum(b.size for b in (*program.inputs, *program.outputs)) <= _WIDE else 2
    inputs = [x.reshape(cases, -1) for x in _states(subject, cases)]
    if precision == "float32":
        inputs = [x.astype(np.float32).astype(np.float64) for x in inputs]
    results = _answers(subject, inputs, cases)
    good = np.all([np.isfinite(y).all(axis=1) for y in results], axis=0) if results else np.ones(cases, bool)
    if not good.any():
        raise LinkwrightError(
            f"{subject.title} gives no finite numbers at any of {cases} states that were tried; look at its masses, "
            "and at where it is drawn: a posture where the loops leave a motion undetermined has no accelerations"
        )
    ins, outs = tuple(x[good] for x in inputs), tuple(np.ascontiguousarray(y[good]) for y in results)
    block = straightened(program) if precision == "float32" and subject.operations <= _LONG else None
    rounding = _moved(subject, ins, outs, precision) if block is None else _in_float32(block, ins, outs)
    tolerance = LEAST[precision]
    if rounding * MARGIN > tolerance:
        tolerance = float(f"{rounding * MARGIN:.1e}")
    return Vectors(ins, outs, tolerance, rounding)


def worst(got: Sequence[Floats], wanted: Sequence[Floats]) -> float:
    """The largest error, as `Vectors` defines it; infinite where a number is none."""
    largest = 0.0
    for y, right in zip(got, wanted, strict=True):
        if not right.size:
            continue
        scale = np.maximum(1.0, np.abs(right).max(axis=1, keepdims=True))
        with np.errstate(all="ignore"):
            error = float(np.max(np.abs(y - right) / scale))
        largest = max(largest, error) if math.isfinite(error) else math.inf
    return largest


def _states(subject: Subject, cases: int) -> list[Floats]:
    mech, rng = subject.mech, np.random.default_rng(7)
    try:
        home, rates = mech.initial_state()
    except LinkwrightError:
        home, rates = mech.neutral(), np.zeros(mech.nv)
    spread = np.concatenate([[0.0], np.full(cases - 1, 0.3 if mech.closed else 1.0)])[:, None]

    def near() -> Floats:
        q = mech.integrate(np.tile(home, (cases, 1)), spread * rng.uniform(-1.0, 1.0, (cases, mech.nv)))
        return np.asarray(q).reshape(cases, mech.nq)

    q, q1 = near(), near()
    v = rates + spread * rng.standard_normal((cases, mech.nv))
    if mech.closed:
        q, v = _closed(mech, q, v)
    known: dict[str, Any] = {"q": q, "q1": q1, "v": v, "t": 0.1 * np.arange(cases)}
    if mech.closed and mech.programs.needs_time:  # drivers are met at the time at which the states were found
        known["t"] = np.zeros(cases)
    known["p"] = np.tile([mech.parameters[name] for name in subject.free], (cases, 1))
    arrays = []
    for buffer in subject.program.inputs:
        random = spread.reshape(-1, *([1] * len(buffer.shape))) * rng.standard_normal((cases, *buffer.shape))
        arrays.append(np.asarray(known.get(buffer.name, random), dtype=float))
    return arrays


def _closed(mech: Any, q: Floats, v: Floats) -> tuple[Floats, Floats]:
    """The nearest states that close the loops; where none is found, the state stays, and may drop out later."""
    for k in range(len(q)):
        try:
            q[k], v[k] = mech.project(q[k], v[k])
        except LinkwrightError:
            q[k], v[k] = q[0], 0.5 * v[0]
    return q, v


def _answers(subject: Subject, inputs: Sequence[Floats], cases: int) -> list[Floats]:
    """The outputs, (cases, size) each, of inputs of that shape."""
    program = subject.program
    shaped = [x.reshape(cases, *b.shape) for x, b in zip(inputs, program.inputs, strict=True)]
    with np.errstate(all="ignore"):
        answer = program(*shaped)
    answers = [np.asarray(x) for x in (answer if isinstance(answer, tuple) else (answer,))]
    # A program without inputs has one answer for all states.
    pairs = zip(answers, program.outputs, strict=True)
    return [np.broadcast_to(y.reshape(-1, b.size) if b.size else np.zeros((1, 0)), (cases, b.size)) for y, b in pairs]


def _in_float32(block: Block, inputs: Sequence[Floats], outputs: Sequence[Floats]) -> float:
    """The error of the same operations in float32."""
    columns = [x[:, k].astype(np.float32) for x in inputs for k in range(x.shape[1])]
    with np.errstate(all="ignore"):
        values = block.evaluate(columns, np.float32)
    results, at = [], 0
    for y in outputs:
        part = [np.broadcast_to(values[at + k], len(y)) for k in range(y.shape[1])]
        results.append(np.array(part, dtype=np.float64).T.reshape(y.shape))
        at += y.shape[1]
    error = worst(results, outputs)
    return error if math.isfinite(error) else 1.0


def _moved(subject: Subject, inputs: Sequence[Floats], outputs: Sequence[Floats], precision: str) -> float:
    """What changes of the inputs' last bits change: no rounding inside can be expected to do less."""
    rng = np.random.default_rng(11)
    last = {"float64": 2.0**-51, "float32": 2.0**-22}[precision]
    moved = [x * (1.0 + last * rng.uniform(-1.0, 1.0, x.shape)) for x in inputs]
    error = worst(_answers(subject, moved, len(outputs[0]) if outputs else 0), outputs)
    return error if math.isfinite(error) else 1.0
