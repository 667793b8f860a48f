"""`lw.export`: a function of a mechanism in a language, as the files of a folder or as one file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from linkwright.base.arguments import check_names, path_text
from linkwright.base.files import check_place, write_text
from linkwright.dynamics.functions import ForwardMethod, FunctionName, Reference
from linkwright.errors import LinkwrightError
from linkwright.exports.c_export import c_files
from linkwright.exports.cuda_export import cuda_files
from linkwright.exports.export_folder import LEAST_IN_PYTHON, Vectors, check_folder, vectors, write_folder
from linkwright.exports.exported_function import Subject, subject
from linkwright.exports.python_export import module_text, python_files, straight
from linkwright.mechanism import mechanism_of

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

Language = Literal["c", "cuda", "casadi", "jax", "sympy"]
#: Each language with the ending of its files.
LANGUAGES = {"c": ".c", "cuda": ".cu", "casadi": ".py", "jax": ".py", "sympy": ".py"}
PRECISIONS = ("float64", "float32")
_COARSE = 0.01  # an error of float32 beyond which its numbers are of no use


@dataclass(frozen=True)
class Exported:
    """What an export left.

    path: of the file or folder. files: their texts, by their paths in the folder. subject: the function with its
    program. tolerance: up to which error its test passes; None for a single file.
    """

    path: Path
    files: dict[str, str]
    subject: Subject
    tolerance: float | None = None

    def __repr__(self) -> str:
        return f"<Exported {self.path}: {self.subject.name}, {len(self.files)} files>"


def export(
    mech: Mechanism | str | os.PathLike[str],
    path: str | os.PathLike[str],
    function: FunctionName | Literal["step"] = "forward_dynamics",
    to: Language = "c",
    *,
    name: str | None = None,
    method: ForwardMethod | None = None,
    frame: str = "",
    reference: Reference | Literal[""] = "",
    wrenches: bool = False,
    free: Sequence[str] = (),
    dt: float | None = None,
    precision: str | None = None,
    arduino: bool = False,
    overwrite: bool = False,
) -> Exported:
    """Write a function of a mechanism in another language; nothing that is written needs Linkwright.

    Main arguments:
        mech: the mechanism, or the path of a model file.
        path: a file that ends in .c, .cu or .py as the language does, or a folder, which gets the source, a README, a
            test vector and a test program.
        function: a method of `Mechanism` that has a program, or "step", a Runge–Kutta step of order 4.
        to: "c", "cuda", "casadi", "jax" or "sympy".

    Other arguments:
        name: of the function in the text; by default that of the function, "time_step" for a step.
        method, frame, reference, wrenches: as of `Mechanism.program`.
        free: names of parameters that become the input p.
        dt: the length of a step, in s.
        precision: "float64" or "float32", for C and CUDA; by default float64, float32 for Arduino.
        arduino: makes the folder an Arduino library.
        overwrite: lets a folder be written that holds other things; they stay.

    Returns an `Exported` with the path, the files' texts and the tolerance of the test. Raises `LinkwrightError` for
    options that exclude each other and for places that cannot be written, `NameNotFound` for unknown names.

    >>> import tempfile, linkwright as lw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     list(lw.export(lw.chain(3), f"{folder}/chain.c", "mass_matrix").files)
    ['chain.c']
    """
    target = Path(path_text("what is exported", path))
    single = check_language(to, precision, arduino, target)
    options: dict[str, Any] = {"method": method, "frame": frame, "reference": reference, "wrenches": wrenches}
    options |= {"free": free, "dt": dt, "name": name}
    chosen = precision or ("float32" if arduino else "float64")
    if single:
        check_place(target)
    else:
        check_folder(target)
    asked = subject(mechanism_of(mech), function, **options)
    if single:
        text = single_text(asked, to, chosen)
        write_text(target, text)
        return Exported(target, {target.name: text}, asked)
    vector = tested(asked, to, chosen)
    files = folder_files(asked, vector, to, chosen, arduino=arduino)
    write_folder(target, files, overwrite=overwrite)
    tolerance = max(vector.tolerance, LEAST_IN_PYTHON) if LANGUAGES[to] == ".py" else vector.tolerance
    return Exported(target, files, asked, tolerance)


def check_language(to: str, precision: str | None, arduino: bool, target: Path | None) -> bool:
    """Whether the target is one file; options that exclude each other are refused."""
    check_names("language", (to,), LANGUAGES)
    if precision is not None and precision not in PRECISIONS:
        raise LinkwrightError(f"no precision {precision!r}; it is 'float64' or 'float32'")
    if precision == "float32" and LANGUAGES[to] == ".py":
        raise LinkwrightError(f"precision 'float32' is for C and CUDA; {to} computes in the precision of its arguments")
    if arduino and to != "c":
        raise LinkwrightError(f"an Arduino library is C; leave arduino out with to={to!r}")
    single = target is None or target.suffix in (".c", ".cu", ".py", ".h", ".cpp", ".cuh")
    if single and target is not None and target.suffix != LANGUAGES[to]:
        raise LinkwrightError(f"{target}: {to} is written to a file that ends in {LANGUAGES[to]}, or to a folder")
    if single and arduino:
        raise LinkwrightError("an Arduino library is a folder; give the name of one")
    return single


def single_text(asked: Subject, to: str, precision: str) -> str:
    """The one file."""
    if to == "c":
        return asked.program.to_c(name=asked.name, precision=precision)
    if to == "cuda":
        return asked.program.to_cuda(name=asked.name, precision=precision)
    return module_text(asked, tested(asked, to, precision), to)


def tested(asked: Subject, to: str, precision: str) -> Vectors:
    """The test vector; what a library cannot hold is refused before, and float32 that is of no use after it."""
    if LANGUAGES[to] == ".py":
        straight(asked, to)
    vector = vectors(asked, precision)
    if precision == "float32" and vector.rounding > _COARSE:
        raise LinkwrightError(
            f"{asked.title} is off by {vector.rounding:.2g} of its size in float32, which is of no use; "
            "take precision='float64'"
        )
    return vector


def folder_files(asked: Subject, vector: Vectors, to: str, precision: str, *, arduino: bool = False) -> dict[str, str]:
    """The files of the folder, by their paths in it."""
    if to == "c":
        return c_files(asked, vector, precision, arduino=arduino)
    return cuda_files(asked, vector, precision) if to == "cuda" else python_files(asked, vector, to)
