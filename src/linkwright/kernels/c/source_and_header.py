"""C text in two files, a source and its header, for programs that other people's projects are built with.

`void NAME(inputs, outputs)` for one state, with a last argument `work` where the temporaries do not fit into registers;
`NAME_simulink(u, y)` with all inputs in one vector and all outputs in another. Valid C99 and C++; no heap, no state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwright.kernels.c.program_text import Lowering, c_dialect
from linkwright.kernels.c.spelling import comment, extents
from linkwright.tape.program import Program, Role

_ON_STACK = 4096  # numbers of work beyond which there is no function that has them on its stack


@dataclass(frozen=True)
class Argument:
    """An array of the function: what it is called in the text and in the program, and its shape for one state."""

    name: str
    called: str
    shape: tuple[int, ...]
    size: int
    macro: str  # of its size


@dataclass(frozen=True)
class PackageText:
    """The two files, and what a program that uses them has to know."""

    name: str
    real: str
    source: str
    header: str
    work: int  # numbers of work; 0: there is no such argument
    flat: bool  # whether there is a function of flat vectors
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]

    @property
    def macros(self) -> str:
        """What the names of macros begin with."""
        return self.name.upper()


def package_text(program: Program, name: str, precision: str, notes: Sequence[str] = ()) -> PackageText:
    """The source and its header; `notes` are lines about the meaning of the arrays, for the header's comment."""
    return _Package(program, name, c_dialect(precision)).files(notes)


class _Package(Lowering):
    def arguments(self, role: Role) -> tuple[Argument, ...]:
        arrays = []
        for k in self.program.with_role(role):
            buffer, name = self.program.buffers[k], self.names[k]
            # An array of no numbers has a size of 1 in prototypes, since C has no empty arrays.
            arrays.append(Argument(name, buffer.name, buffer.shape, buffer.size, f"{self.name.upper()}_SIZE_{name}"))
        return tuple(arrays)

    def files(self, notes: Sequence[str]) -> PackageText:
        driver = self.driver(self.name)
        inputs, outputs = self.arguments("input"), self.arguments("output")
        work = self.layout.size if "work" in driver.uses else 0
        main = self.definition(driver, self.prototype(work), self.unused(driver))
        flat = self.simulink(inputs, outputs, work) if work <= _ON_STACK else []
        heading = (
            f"/* {comment(self.program.name)}, written by Linkwright; what it computes is described in {self.name}.h */"
        )
        top = [heading, f'#include "{self.name}.h"', "", "#include <math.h>", ""]
        source = "\n".join([*top, self.parts_text([main, "\n".join(flat)])])
        header = self.header(inputs, outputs, work, notes)
        return PackageText(self.name, self.dialect.real, source, header, work, bool(flat), inputs, outputs)

    def prototype(self, work: int) -> str:
        macro = f"{self.name.upper()}_RESTRICT "
        return self.signature(*([f"{self.dialect.real} *{macro}work"] if work else []), restrict=macro)

    def simulink(self, inputs: Sequence[Argument], outputs: Sequence[Argument], work: int) -> list[str]:
        """The function of flat vectors; its work is on its own stack."""
        places = []
        for vector, arrays in (("u", inputs), ("y", outputs)):
            at = 0
            for a in arrays:
                places.append(f"{vector} + {at}")
                at += a.size
        local = [f"    {self.dialect.real} work[{self.name.upper()}_WORK];"] if work else []
        unused = [f"    (void){vector};" for vector, arrays in (("u", inputs), ("y", outputs)) if not arrays]
        call = ", ".join([*places, *(["work"] if work else [])])
        return [f"void {self.flat()}", "{", *unused, *local, f"    {self.name}({call});", "}"]

    def flat(self) -> str:
        m, real = self.name.upper(), self.dialect.real
        return f"{self.name}_simulink(const {real} u[{m}_SIMULINK_U], {real} y[{m}_SIMULINK_Y])"

    def _declared(self, work: int) -> list[str]:
        about = "/* All inputs one after another in u, all outputs in y: for Simulink's C Caller block and the like. */"
        return [about, f"void {self.flat()};", ""] if work <= _ON_STACK else []

    def header(self, inputs: Sequence[Argument], outputs: Sequence[Argument], work: int, notes: Sequence[str]) -> str:
        m, real = self.name.upper(), self.dialect.real
        shapes = [f"    in   {_shown(a)}" for a in inputs] + [f"    out  {_shown(a)}" for a in outputs]
        about = [f"{comment(self.program.name)}, written by Linkwright.", "", *shapes]
        about += [f"    work: {work} numbers that need no value and keep none"] if work else []
        about += ["", "Arrays are row-major and must not overlap. No heap, no state: calls may run side by side."]
        about += ["", *notes] if notes else []
        guard = f"LINKWRIGHT_{m}_H"
        sizes = [f"#define {a.macro} {a.size}" for a in (*inputs, *outputs)]
        sizes += [f"#define {m}_WORK {work}"]
        sizes += [f"#define {m}_SIMULINK_U {max(1, sum(a.size for a in inputs))}"]
        sizes += [f"#define {m}_SIMULINK_Y {max(1, sum(a.size for a in outputs))}"]
        lines = [
            "/*",
            *(f" * {_line(line)}".rstrip() for line in about),
            " */",
            f"#ifndef {guard}",
            f"#define {guard}",
            "",
            *sizes,
            "",
            "#if defined(__GNUC__) || defined(__clang__) || defined(_MSC_VER)",
            f"#define {m}_RESTRICT __restrict",
            "#elif !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L",
            f"#define {m}_RESTRICT restrict",
            "#else",
            f"#define {m}_RESTRICT",
            "#endif",
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            f"typedef {real} {self.name}_real;",
            "",
            f"void {self.name}({_broken(self.prototype(work))});",
            "",
            *self._declared(work),
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
            "#endif",
        ]
        return "\n".join(lines) + "\n"


def _shown(a: Argument) -> str:
    return f"{a.name}{extents(a.shape)}" + (f"  ({comment(a.called)})" if a.name != a.called else "")


def _broken(parameters: str) -> str:
    return "\n    " + parameters.replace(", ", ",\n    ")


def _line(text: str) -> str:
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/")
