"""A program as LLVM text: one state at a time, or `width` states in the lanes of vectors.

The entry is `void NAME(ptr ptrs, ptr strides, ptr scratch, i64 count)`: `ptrs` holds the addresses of the
inputs, outputs, data and columns in this order, `strides` how many numbers lie between two states of each
input and output, `scratch` room for `scratch_size(program, width)` numbers. With lanes, `count` is a multiple
of `width`. The text holds no address and no data of the program, so that object code can be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from linkwright.errors import KernelError
from linkwright.kernels import llvm_math as math
from linkwright.kernels import llvm_transpose as transpose
from linkwright.kernels.llvm_function import Function
from linkwright.kernels.llvm_math import splat, vector
from linkwright.kernels.llvm_plan import Plan, tangled
from linkwright.kernels.llvm_runs import runs_text, team_text
from linkwright.kernels.llvm_solve import solve_room, solve_text
from linkwright.kernels.unset import uses
from linkwright.tape.program import Case, Copy, Each, Loop, Operand, Program, Solve, Statement, Walk, Zero
from linkwright.tape.table import Table

#: Up to so many carried numbers of a loop are moved one by one; a text must not grow with the mechanism.
CARRIED = 64


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
        self.pointer: dict[int, int] = {}  # buffer → position in ptrs
        self.place: dict[int, int] = {}  # buffer → place in scratch, in lane groups
        self.scratch = 0
        order = [k for role in ("input", "output", "data") for k in self._with_role(role)]
        for position, k in enumerate(order):
            self.pointer[k] = position
        self.first_column = len(order)
        self.uses = uses(program)
        for k, buffer in enumerate(program.buffers):
            in_lanes = width > 1 and buffer.role in ("input", "output")
            if buffer.role == "temporary" or in_lanes or k in self.uses.written_inputs:
                self.place[k] = self.scratch
                self.scratch += buffer.size
        # One room after the buffers for values that cross segments and for solvers, used in turn.
        self.spill = self.scratch
        self.scratch += max((self._spill_size(s) for s in _all(program.statements)), default=0)

    def _spill_size(self, statement: Statement) -> int:
        if isinstance(statement, Each) and _is_call(statement):
            return len(self.plan_of(statement.cases[0]).slots)
        if isinstance(statement, Solve):
            return solve_room(statement)
        return 0

    def _with_role(self, role: str) -> list[int]:
        return [k for k, b in enumerate(self.program.buffers) if b.role == role]

    # -- the module ------------------------------------------------------------------------------
    def text(self) -> str:
        calls = self.beginning()
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

    def beginning(self) -> list[str]:
        """What comes before the statements: inputs that are written to are copied, unset numbers are zero."""
        calls: list[str] = []
        for k in sorted(self.uses.written_inputs) if self.width == 1 else ():
            f = self.open(f"take{k}")
            whole = Operand(k, self.program.buffers[k].size)
            f.copy((f.pointer(self.pointer[k]), 1, False), f.address(whole, "0"), whole.size)
            calls += self.close(f)
        for k in sorted(self.uses.unset):
            calls += self.move(Zero(Operand(k, self.program.buffers[k].size)), f"clear{k}")
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
        self.helper(f"sin{width}", lambda: math.libm("sin", width))
        self.helper(f"cos{width}", lambda: math.libm("cos", width))
        if width > 1:
            self.helper("sin1", lambda: math.libm("sin", 1))
            self.helper("cos1", lambda: math.libm("cos", 1))
        self.intrinsic("fabs", width)
        self.intrinsic("fma", width, 3)
        self.helper(f"sincos{width}", lambda: math.sincos(width))

    def need_libm(self, name: str, width: int) -> None:
        for w in sorted({1, width}):
            self.helper(f"{name}{w}", lambda w=w: math.libm(name, w))  # type: ignore[misc]

    def driver(self, calls: Sequence[str]) -> str:
        """The loop over states: advance the pointers, or move states into lanes and back."""
        ins, outs = self._with_role("input"), self._with_role("output")
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
            make = transpose.gather if what == "gather" else transpose.scatter
            self.helper(f"{what}{n}", lambda: make(self.width, n))
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
            self.calls[statement] = self._statement(statement, name)
        return self.calls[statement]

    def _statement(self, statement: Statement, name: str) -> list[str]:
        if isinstance(statement, Each):
            if _is_call(statement):
                return self.straight(statement.cases[0], name)
            if statement.runs is not None and self.width == 1:
                self.scans.add(name)
                return runs_text(self, statement, name)
            return self.each(statement, name)
        if isinstance(statement, (Zero, Copy)):
            return self.move(statement, name)
        if isinstance(statement, Solve):
            text = solve_text(self, statement, name)
            self.functions.append(text)
            return [name]
        if isinstance(statement, Walk):
            return self.walk(statement, name)
        if isinstance(statement, Loop):
            return self.loop(statement, name)
        raise KernelError(f"no LLVM lowering of {type(statement).__name__}")

    def open(self, name: str, extra: str = "") -> Function:
        return Function(self, name, extra)

    def close(self, function: Function) -> list[str]:
        self.functions.append(function.text())
        return [function.name]

    def plan_of(self, case: Case, *, whole: bool = False) -> Plan:
        """The plan of a case's block (in one piece, inside loops), made once."""
        key = (case.block, whole, tangled(case))
        if key not in self.plans:
            self.plans[key] = Plan(
                self.program.blocks[case.block], whole=whole, late=key[2], single=not whole and self.width == 1
            )
        return self.plans[key]

    def straight(self, case: Case, name: str) -> list[str]:
        """A block that runs once; a long one becomes several functions."""
        names = []
        segments = len(self.plan_of(case).segments)
        for k in range(segments):
            function = self.open(name if segments == 1 else f"{name}_{k}")
            function.block(case, k)
            names.extend(self.close(function))
        return names

    def each(self, each: Each, name: str) -> list[str]:
        f = self.open(name)
        f.counted(each.items, inward=each.order == "inward", body=lambda i: f.dispatch(each, i))
        return self.close(f)

    def move(self, statement: Zero | Copy, name: str) -> list[str]:
        f = self.open(name)

        def one(i: str) -> None:
            if isinstance(statement, Zero):
                f.store(splat(0.0, self.width), statement.target, "0", i)
            else:
                f.store(f.load(statement.source, "0", i), statement.target, "0", i)

        # A run that moves up within its buffer is copied from its end.
        up = False
        if isinstance(statement, Copy) and statement.source.buffer == statement.target.buffer:
            up = statement.source.base < statement.target.base
        f.counted(statement.target.size, inward=up, body=one)
        return self.close(f)

    def walk(self, walk: Walk, name: str) -> list[str]:
        f = self.open(name)
        kinds = len(walk.start)
        size = max(case.outputs[-1].size for case in walk.start)
        carry = f.local(size)

        def per_item(i: str) -> None:
            start = "0" if walk.dispatch is None else f.column(walk.dispatch, i)

            def begin(case: Case) -> None:
                f.block(case, item=i, carry=carry)

            f.switch(start, walk.start, begin)
            head, body, end = f.label("up"), f.label("walk"), f.label("top")
            before = f.current
            first = f.column(walk.parent, i)
            f.branch(head)
            f.start(head)
            j = f.fresh()
            entry_at = len(f.lines)
            f.lines.append("")  # the phi, once the last block is known
            going = f.op(f"icmp sge i64 {j}, 0")
            f.lines.append(f"  br i1 {going}, label %{body}, label %{end}")
            f.start(body)
            pair = "0"
            if walk.dispatch is not None:
                scaled = f.op(f"mul i64 {start}, {kinds}")
                pair = f.op(f"add i64 {scaled}, {f.column(walk.dispatch, j)}")

            def ahead(case: Case) -> None:
                f.block(case, item=i, ancestor=j, carry=carry)

            f.switch(pair, walk.step, ahead)
            following = f.column(walk.parent, j)
            last = f.current
            f.branch(head)
            f.lines[entry_at] = f"  {j} = phi i64 [ {first}, %{before} ], [ {following}, %{last} ]"
            f.start(end)

        f.counted(walk.items, inward=walk.order == "inward", body=per_item)
        return self.close(f)

    def loop(self, loop: Loop, name: str) -> list[str]:
        inner: list[str] = []
        for k, statement in enumerate(loop.body):
            inner.extend(self.statement(statement, f"{name}_{k}"))
        f = self.open(name)
        t, bit = self.type, "i1" if self.width == 1 else f"<{self.width} x i1>"
        flag = f.op(f"alloca {t}", at_entry=True)
        f.lines.append(f"  store {t} {splat(1.0, self.width)}, ptr {flag}")
        end = f.label("end")

        def body(_: str) -> None:
            for call in inner:
                f.lines.append(f"  call void @{call}(ptr %ptrs, ptr %scratch, ptr %constants)")
            active = f.op(f"load {t}, ptr {flag}")
            mask = f.op(f"fcmp one {t} {active}, {splat(0.0, self.width)}")
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
                still = f.op(f"fcmp oeq {t} {done}, {splat(0.0, self.width)}")
                both = f.op(f"and {bit} {mask}, {still}")
                kept = f.op(f"select {bit} {both}, {t} {splat(1.0, self.width)}, {t} {splat(0.0, self.width)}")
                f.lines.append(f"  store {t} {kept}, ptr {flag}")
                if self.width == 1:
                    some = both
                else:
                    bits = f.op(f"bitcast {bit} {both} to i{self.width}")
                    some = f.op(f"icmp ne i{self.width} {bits}, 0")
                more = f.label("more")
                f.lines.append(f"  br i1 {some}, label %{more}, label %{end}")
                f.start(more)

        f.counted(loop.count, inward=False, body=body)
        f.branch(end)
        f.start(end)
        return self.close(f)


def _is_call(each: Each) -> bool:
    return each.items == 1 and len(each.cases) == 1


def _all(statements: Iterable[Statement]) -> list[Statement]:
    found: list[Statement] = []
    for s in statements:
        found.append(s)
        if isinstance(s, Loop):
            found.extend(_all(s.body))
    return found


__all__ = ["Lowering", "llvm_text", "scratch_size"]
