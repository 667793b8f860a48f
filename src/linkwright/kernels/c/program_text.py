"""A program as C99 or CUDA text, by one emitter, so that CUDA's text is tested where there is no GPU.

C: `void NAME(inputs, outputs, work)` for one state, and `NAME_batch(inputs, outputs, work, count)`.
CUDA: a kernel `NAME(inputs, outputs, count)` with a thread per state; where the temporaries are too many for a
thread's own memory, `NAME(inputs, outputs, work, count)` with `cuda_work_size(program)` numbers of work a state.
Arrays are (count, n), row-major; data, columns and tables are constant arrays of the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from linkwright.errors import KernelError
from linkwright.kernels.c.block_functions import (
    Function,
    Layout,
    Plan,
    Statements,
    case_functions,
    clear_text,
    layout,
    loop_text,
    plan,
)
from linkwright.kernels.c.spelling import comment, extents, function_name, helper_text, identifier, literal, numbers
from linkwright.tape.operations import Table
from linkwright.tape.program import Buffer, Program
from linkwright.tape.statements import Case, Operand, nested

_PRECISIONS = {"float64": "double", "float32": "float"}
LOCAL = 1024  # numbers that a CUDA thread keeps for itself: every resident thread reserves as much


class Outside(NamedTuple):
    """What the caller gives besides the program's arrays: "data" or "column" number so-and-so, and its C type."""

    what: str
    number: int
    kind: str


@dataclass(frozen=True)
class Dialect:
    """Where C99 and CUDA differ."""

    cuda: bool
    precision: str
    index: str  # the type of indices and counts
    segment: int  # operations in one function
    paired: bool  # whether there is a sincos
    outside: bool = False  # whether data and columns are arrays of the caller, not of the text

    @property
    def real(self) -> str:
        return _PRECISIONS[self.precision]

    @property
    def suffix(self) -> str:
        return "f" if self.precision == "float32" else ""

    @property
    def static(self) -> str:
        return "static __device__" if self.cuda else "static"

    def __post_init__(self) -> None:
        if self.precision not in _PRECISIONS:
            language = "CUDA" if self.cuda else "C"
            raise KernelError(f"no {language} text in {self.precision!r}; precision is 'float64' or 'float32'")


def c_dialect(precision: str = "float64") -> Dialect:
    return Dialect(cuda=False, precision=precision, index="long", segment=2000, paired=False)


def cuda_dialect(precision: str, *, outside: bool = False) -> Dialect:
    # A cut costs a thread's registers, so that CUDA's pieces are longer; its `long` is short on some systems.
    return Dialect(cuda=True, precision=precision, index="long long", segment=8000, paired=True, outside=outside)


def c_text(program: Program, name: str | None = None, precision: str = "float64") -> str:
    """One self-contained C99 file; its functions are named after the program, or `name`."""
    return Lowering(program, name, c_dialect(precision)).c_file()


def work_size(program: Program) -> int:
    """How many numbers of work the C function needs (`NAME_WORK` in the text)."""
    return Lowering(program, None, c_dialect()).layout.size


def cuda_text(program: Program, name: str | None = None, precision: str = "float64") -> str:
    """One self-contained CUDA file, for nvcc and NVRTC alike."""
    return Lowering(program, name, cuda_dialect(precision)).cuda_file()


def cuda_work_size(program: Program) -> int:
    """How many numbers per state the kernel's `work` array needs; 0 where the kernel has no such argument."""
    low = Lowering(program, None, cuda_dialect("float64"))
    return low.layout.size if low.step else 0


class Lowering:
    """One program on its way to text: names, the work array, constants and functions met so far."""

    def __init__(self, program: Program, name: str | None, dialect: Dialect) -> None:
        self.program, self.dialect = program, dialect
        self.name = function_name(program.name if name is None else name)
        self.names = self._buffer_names()
        self._plans: dict[Case, Plan] = {}
        crossing = max((self.plan(case).crossing for s in nested(program.statements) for case in s.cases), default=0)
        self.layout = self.laid_out(crossing)
        # Threads' work interleaved: neighbours in a thread's work are `step` apart, so that a warp reads one run.
        self.step = " * step" if dialect.cuda and self.layout.size > LOCAL else ""
        self.constants: dict[str, str] = {}
        self.helpers: dict[str, str] = {}
        self.tables: dict[Table, int] = {}
        self.functions: list[str] = []
        self.outside: dict[str, Outside] = {}
        self._case_functions: dict[tuple[Case, bool, bool], list[Function]] = {}

    def _buffer_names(self) -> list[str]:
        taken = {self.name}
        names = []
        for buffer in self.program.buffers:
            word = identifier(buffer.name, taken)
            if word.startswith(f"{self.name}_"):  # the functions of the file are named so
                word = identifier(f"x_{buffer.name}", taken)
            taken.add(word)
            names.append(word)
        return names

    # -- what functions ask for ------------------------------------------------------------------------
    def laid_out(self, crossing: int) -> Layout:
        return layout(self.program, crossing)

    def function(self, name: str, case: Case | None = None, *, moving: bool = False, walking: bool = False) -> Function:
        """A new function: that of a case, or one that calls those of cases."""
        return Function(self, name, moving=moving, walking=walking)

    def plan(self, case: Case) -> Plan:
        if case not in self._plans:
            block = self.program.blocks[case.block]
            self._plans[case] = plan(block, self.dialect.segment, late=self.late(case))
        return self._plans[case]

    def late(self, case: Case) -> bool:
        """Whether outputs may overlap inputs or each other: they are stored in order, after all is read."""
        return case.overlaps()

    def from_caller(self, f: Function, what: str, number: int, kind: str) -> str:
        """The name of something that the caller gives; the function takes it as a parameter."""
        name = f"{self.name}_{what}{number}"
        self.outside[name] = Outside(what, number, kind)
        f.uses.add(name)
        return name

    def data(self, buffer: int, f: Function) -> str:
        data = self.program.buffers[buffer].data
        assert data is not None
        if self.dialect.outside:
            return self.from_caller(f, "data", buffer, f"const {self.dialect.real} *")
        return self._numbers(f"data{buffer}", data.reshape(-1).tolist())

    def column(self, column: int, f: Function) -> str:
        if self.dialect.outside:
            return self.from_caller(f, "column", column, "const int *")
        return self._constant(f"column{column}", "int", map(str, self.program.columns[column].tolist()))

    def table(self, table: Table) -> str:
        """A table's arrays and how many pieces it has, as arguments."""
        number = self.tables.setdefault(table, len(self.tables))
        breaks = self._numbers(f"breaks{number}", table.breaks)
        pieces = self._numbers(f"pieces{number}", [c for piece in table.coefficients for c in piece])
        return f"{breaks}, {pieces}, {len(table.coefficients)}"

    def _numbers(self, stem: str, values: Iterable[float]) -> str:
        return self._constant(stem, self.dialect.real, (literal(x, self.dialect.precision) for x in values))

    def _constant(self, stem: str, kind: str, entries: Iterable[str]) -> str:
        """The name of a constant array, written at its first use."""
        name = f"{self.name}_{stem}"
        if name not in self.constants:
            self.constants[name] = numbers(f"{self.dialect.static} const {kind}", name, list(entries))
        return name

    def helper(self, method: str) -> str:
        d = self.dialect
        if method not in self.helpers:
            words = {"name": self.name, "real": d.real, "index": d.index, "static": d.static, "f": d.suffix}
            words |= {"zero": literal(0.0, d.precision), "one": literal(1.0, d.precision)}
            self.helpers[method] = helper_text(method, words, strided=bool(self.step))
        return f"{self.name}_{method}"

    def run(self, case: Case, driver: Function, *, moving: bool, walking: bool = False) -> list[str]:
        """The calls that run a case; its functions are written at its first use."""
        key = (case, moving, walking)
        if key not in self._case_functions:
            name = f"{self.name}_f{len(self._case_functions)}"
            self._case_functions[key] = case_functions(self, case, name, moving=moving, walking=walking)
            # Inlined again, the pieces would be the one long function that they are cut from.
            head = f"{self.name}_APART" if len(self._case_functions[key]) > 1 else self.dialect.static
            self.functions.extend(f.text(head) for f in self._case_functions[key] if f.lines)
        calls = []
        for function in self._case_functions[key]:
            if function.lines:
                for buffer, write in function.written.items():
                    driver.buffer(buffer, write)
                driver.uses |= function.uses & {"work", *self.outside}
                calls.append(function.call())
        return calls

    # -- the file --------------------------------------------------------------------------------------
    def driver(self, name: str) -> Function:
        """The function that runs the statements for one state."""
        f = self.function(name)
        for k in self.layout.place:
            if self.program.buffers[k].role == "input":
                source, size = self.names[k], self.program.buffers[k].size
                f.written.setdefault(k, False)
                f.lines += loop_text(self, size, f"{f.at(Operand(k, size), 'k', write=True)} = {source}[k];")
        for k, (first, size) in self.layout.clear.items():
            f.lines += clear_text(self, f, Operand(k, size, first))
        f.lines += Statements(self, f).lines(self.program.statements)
        return f

    def parts_text(self, body: Sequence[str]) -> str:
        apart: list[str] = []
        if any(f"{self.name}_APART" in text for text in self.functions):
            inline = "__noinline__ static __device__" if self.dialect.cuda else "__attribute__((noinline)) static"
            apart = [f"#define {self.name}_APART {inline}"]
            if not self.dialect.cuda:
                apart = ["#if defined(__GNUC__)", *apart, "#else", f"#define {self.name}_APART static", "#endif"]
        parts = [*self.constants.values(), *self.helpers.values(), "\n".join(apart), *self.functions, *body]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _shapes(self, buffers: Iterable[tuple[str, Buffer]]) -> str:
        shown = []
        for name, buffer in buffers:
            other = f" ({comment(buffer.name)})" if name != buffer.name else ""
            shown.append(f"{name}{extents(buffer.shape)}{other}")
        return ", ".join(shown) or "nothing"

    def signature(self, *more: str, restrict: str = "") -> str:
        arrays = [f"const {self.dialect.real} *{restrict}{self.names[k]}" for k in self.program.with_role("input")]
        arrays += [f"{self.dialect.real} *{restrict}{self.names[k]}" for k in self.program.with_role("output")]
        return ", ".join([*arrays, *more])

    def unused(self, driver: Function) -> list[str]:
        """The arrays that no statement touches: the text names them, or compilers warn."""
        return [self.names[k] for k in self.program.with_role("input", "output") if k not in driver.written]

    def definition(self, driver: Function, parameters: str, unused: Sequence[str]) -> str:
        """The driver as a function that other files call."""
        voids = (f"(void){name};" for name in unused)
        return "\n".join(
            [f"void {driver.name}({parameters})", "{", *(f"    {x}" for x in (*voids, *driver.lines)), "}"]
        )

    def call(self, driver: Function, arrays: dict[str, str]) -> str:
        """A kernel's call of the driver; `arrays` says where in each array the thread's state begins."""
        passed = {**arrays, "work": "work + state" if self.step else "work", "step": "count"}
        return f"{driver.name}({', '.join(passed.get(name, name) for _, name in driver.parameters())});"

    def local_work(self, driver: Function) -> list[str]:
        """The work array of a thread that keeps it for itself."""
        return [f"{self.dialect.real} work[{self.layout.size}];"] if "work" in driver.uses and not self.step else []

    def more_parameters(self) -> list[str]:
        """What a kernel takes besides arrays of states: the work of all threads, data and columns."""
        work = [f"{self.dialect.real} *__restrict__ work"] if self.step else []
        return work + [f"{outside.kind}__restrict__ {name}" for name, outside in self.outside.items()]

    def _header(self, notes: Sequence[str]) -> str:
        lines = [f"{comment(self.program.name)}, written by Linkwright"]
        for word, buffers in (("in: ", self.program.with_role("input")), ("out:", self.program.with_role("output"))):
            lines.append(f"{word}  {self._shapes((self.names[k], self.program.buffers[k]) for k in buffers)}")
        lines += notes
        return "\n".join([f"/* {lines[0]}", *(f" * {line}" for line in lines[1:]), " */"])

    def c_file(self) -> str:
        name, work = self.name, f"{self.dialect.real} *work"
        driver = self.driver(name)
        unused = [*self.unused(driver), *(["work"] if "work" not in driver.uses else [])]
        main = self.definition(driver, self.signature(work), unused)
        arrays = self.program.with_role("input", "output")
        moved = ", ".join([*(f"{self.names[k]} + state * {self.program.buffers[k].size}" for k in arrays), "work"])
        batch = [
            f"void {name}_batch({self.signature(work, 'long count')})",
            "{",
            "    for (long state = 0; state < count; ++state)",
            f"        {name}({moved});",
            "}",
        ]
        header = self._header(
            [
                f"work: {name}_WORK {self.dialect.real}s" + ("" if self.layout.size else "; may be NULL"),
                "Arrays are row-major; outputs must not overlap inputs.",
                f"{name}_batch runs `count` states, each array holding one state after another.",
            ]
        )
        top = ["#include <math.h>", "", f"#define {name}_WORK {self.layout.size}"]
        return "\n".join([header, *top, "", self.parts_text([main, "\n".join(batch)])])

    def cuda_file(self) -> str:
        name, names, index = self.name, self.names, self.dialect.index
        driver = self.driver(f"{name}_state")
        size = self.layout.size
        places = {names[k]: f"{names[k]} + state * {self.program.buffers[k].size}" for k in driver.written}
        parameters = self.signature(*self.more_parameters(), f"{index} count", restrict="__restrict__ ")
        kernel = [
            f'extern "C" __global__ void {name}({parameters})',
            "{",
            f"    const {index} state = ({index})blockIdx.x * blockDim.x + threadIdx.x;",
            "    if (state >= count)",
            "        return;",
            *(f"    (void){x};" for x in self.unused(driver)),
            *(f"    {line}" for line in (*self.local_work(driver), self.call(driver, places))),
            "}",
        ]
        notes = ["One thread per state; arrays are (count, n), row-major; outputs must not overlap inputs."]
        if self.step:
            notes.insert(0, f"work: {size} numbers per state, {size} * count in all")
        return self.cuda_whole(notes, [driver.text(self.dialect.static), "\n".join(kernel)])

    def cuda_whole(self, notes: Sequence[str], parts: Sequence[str]) -> str:
        """The file of these parts; `rest` ends its heading."""
        body = self.parts_text(parts)
        odd = [
            f"#ifndef {word}\n#define {word} __int_as_float({bits})\n#endif"
            for word, bits in (("INFINITY", "0x7f800000"), ("NAN", "0x7fffffff"))
            if word in body
        ]
        return "\n".join([self._header(notes), *odd, "", body])


__all__ = ["Dialect", "Lowering", "c_dialect", "c_text", "cuda_text", "cuda_work_size", "function_name", "work_size"]
