"""A function as C: source, header, test program with its vector, CMake, README, cost; as an Arduino library on
request.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.exports.export_folder import Vectors, operations, readme
from linkwright.exports.exported_function import Subject, plain
from linkwright.kernels.c.source_and_header import Argument, PackageText, package_text
from linkwright.kernels.c.spelling import literal, numbers

_SKETCH = """// Runs {name} on its test vector: prints the worst error and the time of a call.
#include <{name}.h>

#include "vectors.h"

void setup() {{
  Serial.begin(115200);
}}

void loop() {{
  const unsigned long start = micros();
  const double worst = {name}_worst();
  const unsigned long spent = micros() - start;
  Serial.print("{name}: worst error ");
  Serial.print(worst * 1e6);
  Serial.print("e-6, allowed ");
  Serial.print(VECTORS_TOLERANCE * 1e6);
  Serial.print(worst <= VECTORS_TOLERANCE ? "e-6: good, " : "e-6: BAD, ");
  Serial.print(spent / VECTORS_CASES);
  Serial.println(" us a call");
  delay(1000);
}}
"""

_PROPERTIES = """name={name}
version=1.0.0
author=Linkwright
maintainer=Linkwright
sentence={title}.
paragraph=Generated C without heap and state; see README.md.
category=Data Processing
url=https://www.arduino.cc/
architectures=*
includes={name}.h
"""


def arduino_files(subject: Subject, text: PackageText, vectors: str) -> dict[str, str]:
    """The files besides src/ and extras/."""
    name = text.name
    title = plain(subject.title).encode("ascii", "replace").decode()
    return {
        "library.properties": _PROPERTIES.format(name=name, title=title),
        f"examples/{name}/{name}.ino": _SKETCH.format(name=name),
        f"examples/{name}/vectors.h": vectors,
    }


FLAGS = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Werror")
_SECONDS = 60.0
_LONG = 30_000  # operations beyond which compiling takes too long to be done unasked


@dataclass(frozen=True)
class Size:
    """Bytes of code and constants, and the most stack of a call besides that of the mathematical library."""

    compiler: str
    text: int
    stack: int | None


def measured(sources: Mapping[str, str], name: str, operations: int = 0) -> Size | None:
    """The size of `name`.c, compiled alone with `FLAGS`; None without a compiler, or where it fails."""
    compiler = next((path for word in ("gcc", "clang", "cc") if (path := shutil.which(word))), None)
    if compiler is None or operations > _LONG:
        return None
    with tempfile.TemporaryDirectory(prefix="linkwright-") as temporary:
        folder = Path(temporary)
        for file, source in sources.items():
            (folder / file).write_text(source, encoding="utf-8")
        for more in (["-fstack-usage"], []):
            done = _run([compiler, *FLAGS, *more, "-c", f"{name}.c", "-o", f"{name}.o"], folder)
            if done is not None:
                break
        else:
            return None
        usage = folder / f"{name}.su"
        stack = _stack(usage.read_text(encoding="utf-8"), name) if usage.exists() else None
        text = _text(folder / f"{name}.o")
        version = (_run([compiler, "--version"], folder) or "").split("\n")[0]
        return Size(re.sub(r"[^\w .,()+~-]", "", version), text, stack) if text is not None else None


def _run(words: list[str], folder: Path) -> str | None:
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _text(file: Path) -> int | None:
    tool = shutil.which("size")
    table = _run([tool, file.name], file.parent) if tool else None
    rows = [line.split() for line in (table or "").splitlines()]
    numbers = rows[1][:2] if len(rows) > 1 and len(rows[1]) > 2 else []
    return int(numbers[0]) if numbers and numbers[0].isdigit() else None


def _stack(usage: str, name: str) -> int | None:
    """The function, one of the functions that it calls, and a solver or table under that: more never stand at once."""
    frame, calls, helpers = 0, [0], [0]
    for line in usage.splitlines():
        place, number, *_ = line.split("\t")
        if not number.isdigit():
            return None
        function = place.rsplit(":", 1)[-1]
        if function == name:
            frame = int(number)
        elif re.fullmatch(rf"{re.escape(name)}_f\d+(_\d+)?", function):
            calls.append(int(number))
        elif function != f"{name}_simulink":
            helpers.append(int(number))
    return frame + max(calls) + max(helpers)


_TEST = """/* Runs {name} on the test vector and prints the worst error; the exit code is 0 if it is small enough. */
#include <stdio.h>

#include "{name}.h"
#include "vectors.h"

int main(void)
{{
    const double worst = {name}_worst();
    printf("{name}: %d states, worst error %.3g, allowed %.3g\\n", VECTORS_CASES, worst, VECTORS_TOLERANCE);
    return worst <= VECTORS_TOLERANCE ? 0 : 1;
}}
"""

_ERROR = """/* The largest difference over the largest number of an output in its case (1 if that is less). */
static double {name}_error(const {real} *got, const {real} *wanted, int size)
{{
    double scale = 1.0, error = 0.0;
    int k;
    for (k = 0; k < size; ++k) {{
        const double x = (double)wanted[k];
        scale = x > scale ? x : -x > scale ? -x : scale;
    }}
    for (k = 0; k < size; ++k) {{
        const double d = (double)got[k] - (double)wanted[k];
        if (!(d - d == 0.0))
            return 1e300;
        error = d > error ? d : -d > error ? -d : error;
    }}
    return error / scale;
}}
"""

_LOOP = """static double {name}_worst(void)
{{
    double worst = 0.0, error;
    int n;
    for (n = 0; n < VECTORS_CASES; ++n) {{
{body}
    }}
    return worst;
}}
"""

_CMAKE = """# add_subdirectory() or FetchContent this folder, then: target_link_libraries(yours PRIVATE {name})
cmake_minimum_required(VERSION 3.10)
project({name} LANGUAGES C)

add_library({name} STATIC {source}{name}.c)
target_include_directories({name} PUBLIC {include})
set_target_properties({name} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON)
if(UNIX)
  target_link_libraries({name} PUBLIC m)
endif()

# The test program, where this is the project that is built.
if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
  enable_testing()
  add_executable(test_{name} {test}test_{name}.c)
  target_link_libraries(test_{name} PRIVATE {name})
  add_test(NAME {name} COMMAND test_{name})
endif()
"""


def c_files(subject: Subject, vectors: Vectors, precision: str, *, arduino: bool = False) -> dict[str, str]:
    """The files by their paths in the folder."""
    text = package_text(subject.program, subject.name, precision, [plain_line(x) for x in subject.notes()])
    name = subject.name
    sources = {f"{name}.c": text.source, f"{name}.h": text.header}
    size = measured(sources, name, subject.operations)
    test = {f"test_{name}.c": _TEST.format(name=name), "vectors.h": vectors_text(text, vectors, precision)}
    words = {"name": name, "source": "", "include": "${CMAKE_CURRENT_SOURCE_DIR}", "test": ""}
    if arduino:
        words |= {"source": "src/", "include": "${CMAKE_CURRENT_SOURCE_DIR}/src", "test": "extras/"}
        files = {f"src/{file}": body for file, body in sources.items()}
        files |= {f"extras/{file}": body for file, body in test.items()}
        files |= arduino_files(subject, text, test["vectors.h"])
    else:
        files = {**sources, **test}
    files["CMakeLists.txt"] = _CMAKE.format(**words)
    files["README.md"] = readme(
        subject,
        vectors,
        ("Call", _call(text)),
        ("Cost", _cost(subject, text, size)),
        ("Build and test", _build(name, arduino)),
    )
    return files


_ASCII = str.maketrans({"∂": "d", "²": "^2", "×": "x", "–": "-", "·": " ", "…": "..."})


def plain_line(text: str) -> str:
    """A line for a comment that compilers of any locale read alike."""
    return "".join(c if c.isascii() else "_" for c in text.translate(_ASCII))


def vectors_text(text: PackageText, vectors: Vectors, precision: str) -> str:
    """A header with the states and results, and the function that compares."""
    body = [f"        static {text.real} got_{a.name}[{max(1, a.size)}];" for a in text.outputs]
    if text.work:
        body.append(f"        static {text.real} work[{text.macros}_WORK];")
    arguments = [f"VECTORS_{a.name} + n * {a.size}" for a in text.inputs]
    arguments += [f"got_{a.name}" for a in text.outputs] + (["work"] if text.work else [])
    body.append(f"        {text.name}({', '.join(arguments)});")
    loop = _LOOP.format(name=text.name, body="\n".join([*body, *compared(text, "")]))
    return arrays_text(text, vectors, precision, [loop])


def compared(text: PackageText, at: str) -> list[str]:
    """Statements that compare the outputs of state n, which stand `at` in their arrays, with the test vector."""
    lines = []
    for a in text.outputs:
        if a.size:
            wanted = f"VECTORS_{a.name} + n * {a.size}, {a.size}"
            lines.append(f"        error = {text.name}_error(got_{a.name}{at.format(a.size)}, {wanted});")
            lines.append("        worst = error > worst ? error : worst;")
    return lines


def arrays_text(text: PackageText, vectors: Vectors, precision: str, more: Sequence[str] = ()) -> str:
    """A header with the states and results, the function that measures how far two arrays are apart, and more."""
    lines = [f"/* {vectors.cases} states and what Linkwright computes of them. */"]
    lines += ["#ifndef VECTORS_CASES", f"#define VECTORS_CASES {vectors.cases}"]
    lines += [f"#define VECTORS_TOLERANCE {vectors.tolerance!r}", ""]
    for arguments, arrays in ((text.inputs, vectors.inputs), (text.outputs, vectors.outputs)):
        for argument, array in zip(arguments, arrays, strict=True):
            lines += [_array(text, argument, array, precision), ""]
    lines += [_ERROR.format(name=text.name, real=text.real), *more, "#endif"]
    return "\n".join(lines) + "\n"


def _array(text: PackageText, argument: Argument, array: Floats, precision: str) -> str:
    entries = [literal(x, precision).strip("()") for x in np.asarray(array).reshape(-1).tolist()]
    return numbers(f"static const {text.real}", f"VECTORS_{argument.name}", entries)


def _call(text: PackageText) -> list[str]:
    arrays = [f"const {text.real} *{a.name}" for a in text.inputs] + [f"{text.real} *{a.name}" for a in text.outputs]
    arrays += [f"{text.real} *work"] if text.work else []
    lines = ["```c", f'#include "{text.name}.h"', "", f"void {text.name}({', '.join(arrays)});"]
    if text.flat:
        flat = f"const {text.real} u[{_total(text.inputs)}], {text.real} y[{_total(text.outputs)}]"
        lines += [f"void {text.name}_simulink({flat});"]
    lines += ["```", "", f"Sizes are macros: `{text.macros}_SIZE_…`. Arrays must not overlap."]
    if text.work:
        lines += [f"`work` has `{text.macros}_WORK` = {text.work} numbers, which need no value and keep none."]
    u = ", ".join(a.name for a in text.inputs)
    y = ", ".join(a.name for a in text.outputs)
    if text.flat:
        lines += [
            "",
            f"`{text.name}_simulink` takes all inputs in one vector u = ({u}) and gives all outputs in y = ({y}), each "
            "flattened: the signature of Simulink's C Caller block (Simulation target: include this header, add this "
            "source; the sizes are in the prototype, and the function may be marked deterministic).",
        ]
    return [*lines, "", "C99, also valid as C++. No heap, no global state: calls may run side by side."]


def _total(arguments: Sequence[Argument]) -> int:
    return max(1, sum(a.size for a in arguments))


def _cost(subject: Subject, text: PackageText, size: Size | None) -> list[str]:
    ends_early = any(statement.body for statement in subject.program.statements)  # a loop, by its numbers
    lines = [operations(subject) + ("" if ends_early else " The same for every state.")]
    width = 8 if text.real == "double" else 4
    if text.work:
        lines += ["", f"Work: {text.work} numbers, {text.work * width} bytes, given by the caller."]
    if size is None:
        lines += ["", "Code and stack were not measured: there was no compiler, or the function is long."]
    else:
        stack = (
            "" if size.stack is None else f" and at most {size.stack} bytes of stack besides the mathematical library's"
        )
        sizes = f"{size.text} bytes of code and constants{stack}"
        lines += ["", f"Measured with {size.compiler}, `{' '.join(FLAGS)}`: {sizes}."]
    return lines


def _build(name: str, arduino: bool) -> list[str]:
    source, test = ("src/", "extras/") if arduino else ("", "")
    lines = [
        "```sh",
        f"cc -std=c99 -O2 -Wall -Wextra -Werror {f'-I{source[:-1]} ' if source else ''}{source}{name}.c "
        f"{test}test_{name}.c -o test_{name} -lm && ./test_{name}",
        "cmake -B build && cmake --build build && ctest --test-dir build   # the same",
        "```",
        "",
        "In a CMake project of your own:",
        "",
        "```cmake",
        f"add_subdirectory({name})   # or FetchContent_Declare({name} SOURCE_DIR …) and FetchContent_MakeAvailable",
        f"target_link_libraries(yours PRIVATE {name})",
        "```",
    ]
    if arduino:
        lines += [
            "",
            f"As an Arduino library: put this folder into `libraries/` and open File → Examples → {plain(name)}. "
            "The sketch runs the test vector on the board and prints the worst error and the time of a call.",
        ]
    return lines
