"""A program as LLVM text, statement by statement: one state at a time, or `width` states in the lanes of vectors.

The entry is `void NAME(ptr ptrs, ptr strides, ptr scratch, i64 count)`: `ptrs` holds the addresses of the
inputs, outputs, data and columns in this order, `strides` how many numbers lie between two states of each
input and output, `scratch` room for `scratch_size(program, width)` numbers. With lanes, `count` is a multiple
of `width`. The text holds no address and no data of the program, so that object code can be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linkwright.kernels.llvm import instructions as math
from linkwright.kernels.llvm import transpose
from linkwright.kernels.llvm.function_text import Function
from linkwright.kernels.llvm.instructions import splat, vector
from linkwright.kernels.llvm.linear_solvers import solve_room, solve_text
from linkwright.kernels.llvm.run_functions import runs_text, team_text
from linkwright.kernels.llvm.schedule import Plan
from linkwright.tape.operations import Table
from linkwright.tape.program import Program
from linkwright.tape.statements import (
    Case,
    Copy,
    Each,
    Loop,
    Operand,
    PartialVisitor,
    Solve,
    Statement,
    Walk,
    Zero,
    nested,
)

#: Up to so many carried numbers of a loop are moved one by one; a text must not grow with the mechanism.
CARRIED = 64


def is_call(each: Each) -> bool:
    """Whether a scan is a block that runs once."""
    return each.items == 1 and len(each.cases) == 1


@dataclass(frozen=True)
class Statements:
    """A statement's functions, named `name` and so on; a visitor that gives the names to call, in order."""

    low: Lowering
    name: str

    def straight(self, case: Case) -> list[str]:
        """A block that runs once; a long one becomes several functions."""
        names = []
        segments = len(self.low.plan_of(case).segments)
        for k in range(segments):
            function = self.low.open(self.name if segments == 1 else f"{self.name}_{k}")
            function.block(case, k)
            names.extend(self.low.close(function))
        return names

    def each(self, each: Each) -> list[str]:
        if is_call(each):
            return self.straight(each.cases[0])
        if each.runs is not None and self.low.width == 1:
            self.low.scans.add(self.name)
            return runs_text(self.low, each, self.name)
        f = self.low.open(self.name)
        f.counted(each.items, inward=each.order == "inward", body=lambda i: f.dispatch(each, i))
        return self.low.close(f)

    def zero(self, zero: Zero) -> list[str]:
        f, value = self.low.open(self.name), splat(0.0, self.low.width)
        f.counted(zero.target.size, inward=False, body=lambda i: f.store(value, zero.target, "0", i))
        return self.low.close(f)

    def copy(self, copy: Copy) -> list[str]:
        f, source, target = self.low.open(self.name), copy.source, copy.target
        # A run that moves up within its buffer is copied from its end.
        up = source.buffer == target.buffer and source.base < target.base
        f.counted(target.size, inward=up, body=lambda i: f.store(f.load(source, "0", i), target, "0", i))
        return self.low.close(f)

    def solve(self, solve: Solve) -> list[str]:
        self.low.functions.append(solve_text(self.low, solve, self.name))
        return [self.name]

    def walk(self, walk: Walk) -> list[str]:
        f = self.low.open(self.name)
        size = max(case.outputs[-1].size for case in walk.start)
        carry = f.at_entry(f"alloca [{max(size, 1)} x {f.type}], align 64")

        def kind(item: str) -> str:
            return "0" if walk.dispatch is None else f.column(walk.dispatch, item)

        def per_item(i: str) -> None:
            start = kind(i)
            f.switch(start, walk.start, lambda case: f.block(case, item=i, carry=carry))

            def up(j: str) -> None:
                pair = "0"
                if walk.dispatch is not None:
                    pair = f.op(f"add i64 {f.op(f'mul i64 {start}, {len(walk.start)}')}, {kind(j)}")
                f.switch(pair, walk.step, lambda case: f.block(case, item=i, ancestor=j, carry=carry))

            f.ancestors(walk.parent, i, up)

        f.counted(walk.items, inward=walk.order == "inward", body=per_item)
        return self.low.close(f)

    def loop(self, loop: Loop) -> list[str]:
        inner: list[str] = []
        for k, statement in enumerate(loop.body):
            inner.extend(self.low.statement(statement, f"{self.name}_{k}"))
        f, t, width = self.low.open(self.name), self.low.type, self.low.width
        bit = "i1" if width == 1 else f"<{width} x i1>"
        flag = f.at_entry(f"alloca {t}")
        f.line(f"store {t} {splat(1.0, width)}, ptr {flag}")
        end = f.label("end")

        def body(_: str) -> None:
            for call in inner:
                f.line(f"call void @{call}(ptr %ptrs, ptr %scratch, ptr %constants)")
            active = f.op(f"load {t}, ptr {flag}")
            mask = f.op(f"fcmp one {t} {active}, {splat(0.0, width)}")
            for current, following in loop.carry:

                def carried(i: str, current: Operand = current, following: Operand = following) -> None:
                    old, new = f.load(current, "0", i), f.load(following, "0", i)
                    f.store(f.op(f"select {bit} {mask}, {t} {new}, {t} {old}"), current, "0", i)

                if current.size <= CARRIED:
                    for k in range(current.size):
                        carried(str(k))
                else:
                    f.counted(current.size, inward=False, body=carried)
            if loop.done is not None:
                done = f.load(loop.done, "0", "0")
                still = f.op(f"fcmp oeq {t} {done}, {splat(0.0, width)}")
                both = f.op(f"and {bit} {mask}, {still}")
                flags = f.op(f"select {bit} {both}, {t} {splat(1.0, width)}, {t} {splat(0.0, width)}")
                f.line(f"store {t} {flags}, ptr {flag}")
                if width == 1:
                    some = both
                else:
                    bits = f.op(f"bitcast {bit} {both} to i{width}")
                    some = f.op(f"icmp ne i{width} {bits}, 0")
                more = f.label("more")
                f.choose(some, more, end)
                f.start(more)

        f.counted(loop.count, inward=False, body=body)
        f.branch(end)
        f.start(end)
        return self.low.close(f)


def llvm_text(program: Program, name: str, width: int, pack: int) -> str:
    """The module's text; `pack` is how many doubles a register holds (sines of one state go together)."""
    return Lowering(program, name, width, pack).text()


def scratch_size(program: Program, width: int) -> int:
    """How many numbers of scratch the entry needs."""
    return Lowering(program, "f", width, 1).scratch * width


class Lowering:
    """One program at one width: the memory plan, and the functions made so far."""

    def __init__(self, program: Program, name: str, width: int, pack: int) -> None:
        self.program, self.name, self.width, self.pack = program, name, width, pack
        self.type = vector(width)
        self.plans: dict[tuple[int, bool, bool], Plan] = {}
        self.constants: dict[float, int] = {}
        self.functions: list[str] = []
        self.calls: dict[Statement, list[str]] = {}  # the functions of each statement
        self.helpers: dict[str, str] = {}
        self.tables: dict[Table, int] = {}
        self.scans: set[str] = set()  # the functions that a team of threads can share
        self.place: dict[int, int] = {}  # buffer → place in scratch, in lane groups
        self.scratch = 0
        order = program.with_role("input", "output", "data")
        self.pointer = {k: position for position, k in enumerate(order)}  # buffer → position in ptrs
        self.first_column = len(order)
        for k, buffer in enumerate(program.buffers):
            in_lanes = width > 1 and buffer.role in ("input", "output")
            if buffer.role == "temporary" or in_lanes or k in program.written_inputs:
                self.place[k] = self.scratch
                self.scratch += buffer.size
        # One room after the buffers for values that cross segments and for solvers, used in turn.
        self.spill = self.scratch
        room = _Room(self)
        self.scratch += max((statement.accept(room) for statement in nested(program.statements)), default=0)

    # -- the module ------------------------------------------------------------------------------
    def text(self) -> str:
        calls = self.preamble()
        for index, statement in enumerate(self.program.statements):
            calls.extend(self.statement(statement, f"s{index}"))
        driver = self.driver(calls)
        if self.scans:
            driver += "\n\n" + team_text(self, calls, self.scans)
        numbers = ", ".join(f"double {math.number(x)}" for x in self.constants) or "double 0.0"
        table = f"@constants = private constant [{max(1, len(self.constants))} x double] [{numbers}], align 64"
        return "\n\n".join([table, *self.helpers.values(), *self.functions, driver]) + "\n"

    def constant(self, value: float) -> int:
        """The place of a number in the table of constants."""
        return self.constants.setdefault(value, len(self.constants))

    def preamble(self) -> list[str]:
        """What comes before the statements: inputs that are written to are copied, unset numbers are zero."""
        calls: list[str] = []
        for k in sorted(self.program.written_inputs) if self.width == 1 else ():
            f = self.open(f"take{k}")
            whole = Operand(k, self.program.buffers[k].size)
            f.copy((f.pointer(self.pointer[k]), 1, False), f.address(whole, "0"), whole.size)
            calls += self.close(f)
        for k, unset in sorted(self.program.unset.items()):
            first, size = unset.whole
            calls += Statements(self, f"clear{k}").zero(Zero(Operand(k, size, first)))
        return calls

    def intrinsic(self, name: str, width: int, arguments: int = 1) -> str:
        """The full name of one of LLVM's own functions over lanes, declared once."""
        t, full = vector(width), f"llvm.{name}.{'f64' if width == 1 else f'v{width}f64'}"
        self.helper(full, lambda: f"declare {t} @{full}({', '.join([t] * arguments)})")
        return full

    def helper(self, key: str, make: Callable[[], str]) -> None:
        if key not in self.helpers:
            self.helpers[key] = make()

    def need_sincos(self, width: int) -> None:
        self.need_libm("sin", width)
        self.need_libm("cos", width)
        self.intrinsic("fabs", width)
        self.intrinsic("fma", width, 3)
        self.helper(f"sincos{width}", lambda: math.sincos(width))

    def need_libm(self, name: str, width: int) -> None:
        for w in sorted({1, width}):
            self.helper(f"{name}{w}", lambda w=w: math.libm(name, w))  # type: ignore[misc]

    def driver(self, calls: Sequence[str]) -> str:
        """The loop over states: advance the pointers, or move states into lanes and back."""
        ins, outs = self.program.with_role("input"), self.program.with_role("output")
        lines = [
            f"define void @{self.name}(ptr %ptrs, ptr %strides, ptr %scratch, i64 %count) {{",
            "entry:",
        ]
        total = self.first_column + len(self.program.columns)
        if self.width == 1:
            lines += [
                "  %single = icmp eq i64 %count, 1",
                "  br i1 %single, label %one, label %many",
                "one:",
                *(f"  call void @{c}(ptr %ptrs, ptr %scratch, ptr @constants)" for c in calls),
                "  ret void",
                "many:",
                f"  %local = alloca [{max(total, 1)} x ptr]",
                f"  call void @llvm.memcpy.p0.p0.i64(ptr %local, ptr %ptrs, i64 {8 * total}, i1 false)",
                "  %some = icmp sgt i64 %count, 0",
                "  br i1 %some, label %loop, label %done",
                "loop:",
                "  %s = phi i64 [ 0, %many ], [ %next, %loop ]",
                *(f"  call void @{c}(ptr %local, ptr %scratch, ptr @constants)" for c in calls),
            ]
            for k in (*ins, *outs):
                p = self.pointer[k]
                lines += [
                    f"  %lp{k} = getelementptr ptr, ptr %local, i64 {p}",
                    f"  %p{k} = load ptr, ptr %lp{k}",
                    f"  %ls{k} = getelementptr i64, ptr %strides, i64 {p}",
                    f"  %st{k} = load i64, ptr %ls{k}",
                    f"  %np{k} = getelementptr double, ptr %p{k}, i64 %st{k}",
                    f"  store ptr %np{k}, ptr %lp{k}",
                ]
            lines += [
                "  %next = add i64 %s, 1",
                "  %again = icmp slt i64 %next, %count",
                "  br i1 %again, label %loop, label %done",
                "done:",
                "  ret void",
                "}",
            ]
            self.helper("memcpy", lambda: "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
            return "\n".join(lines)
        lines += ["  br label %loop", "loop:", "  %s = phi i64 [ 0, %entry ], [ %next, %loop ]"]
        for k in (*ins, *outs):
            p = self.pointer[k]
            lines += [
                f"  %lp{k} = getelementptr ptr, ptr %ptrs, i64 {p}",
                f"  %p{k} = load ptr, ptr %lp{k}",
                f"  %ls{k} = getelementptr i64, ptr %strides, i64 {p}",
                f"  %st{k} = load i64, ptr %ls{k}",
                f"  %off{k} = mul i64 %s, %st{k}",
                f"  %far{k} = getelementptr double, ptr %p{k}, i64 %off{k}",
                f"  %near{k} = getelementptr double, ptr %scratch, i64 {self.place[k] * self.width}",
            ]

        def move(what: str, k: int) -> list[str]:
            n = self.program.buffers[k].size
            if n == 0:
                return []
            self.helper("masked", lambda: transpose.masked_declarations(self.width))
            self.helper(f"{what}{n}", lambda: transpose.mover_text(self.width, n, what))
            return [f"  call void @{what}{n}(ptr %far{k}, i64 %st{k}, ptr %near{k})"]

        lines += [line for k in ins for line in move("gather", k)]
        lines += [f"  call void @{c}(ptr %ptrs, ptr %scratch, ptr @constants)" for c in calls]
        lines += [line for k in outs for line in move("scatter", k)]
        lines += [
            f"  %next = add i64 %s, {self.width}",
            "  %again = icmp slt i64 %next, %count",
            "  br i1 %again, label %loop, label %done",
            "done:",
            "  ret void",
            "}",
        ]
        return "\n".join(lines)

    # -- statements --------------------------------------------------------------------------------
    def statement(self, statement: Statement, name: str) -> list[str]:
        """Emit the functions of a statement, once for all that are equal; the names to call, in order."""
        if statement not in self.calls:
            self.calls[statement] = statement.accept(Statements(self, name))
        return self.calls[statement]

    def open(self, name: str, extra: str = "") -> Function:
        return Function(self, name, extra)

    def close(self, function: Function) -> list[str]:
        self.functions.append(function.text())
        return [function.name]

    def plan_of(self, case: Case, *, whole: bool = False) -> Plan:
        """The plan of a case's block (in one piece, inside loops), made once."""
        key = (case.block, whole, case.overlaps())
        if key not in self.plans:
            self.plans[key] = Plan(
                self.program.blocks[case.block], whole=whole, late=key[2], single=not whole and self.width == 1
            )
        return self.plans[key]


class _Room(PartialVisitor[int]):
    """Lane groups of scratch that a statement uses in turn with the others."""

    def __init__(self, low: Lowering) -> None:
        self.low = low

    def other(self, statement: Statement) -> int:
        return 0

    def each(self, each: Each) -> int:
        return max(self.low.plan_of(each.cases[0]).slots.values(), default=-1) + 1 if is_call(each) else 0

    def solve(self, solve: Solve) -> int:
        return solve_room(solve)


__all__ = ["Lowering", "llvm_text", "scratch_size"]
