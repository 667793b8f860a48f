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
from linkwright.kernels.llvm_math import FAST, number, splat, vector
from linkwright.kernels.llvm_solve import solve_text
from linkwright.tape import operations as O
from linkwright.tape.block import Block
from linkwright.tape.program import ITEM, Case, Copy, Each, Loop, Operand, Program, Solve, Statement, Walk, Zero

SEGMENT = 4000  # operations in one function: beyond it, compile time grows faster than the code

_INFIX = {O.ADD: "fadd", O.SUB: "fsub", O.MUL: "fmul", O.DIV: "fdiv"}
_COMPARE = {O.LT: "olt", O.LE: "ole", O.EQ: "oeq"}
_LIBM = {O.TAN: "tan", O.EXP: "exp", O.LOG: "log", O.ATAN2: "atan2", O.POW: "pow"}
_CHEAP = frozenset((O.ADD, O.SUB, O.MUL, O.NEG))


def llvm_text(program: Program, name: str, width: int, pack: int) -> str:
    """The module's text; `pack` is how many doubles a register holds (sines of one state go together)."""
    return _Lowering(program, name, width, pack).text()


def scratch_size(program: Program, width: int) -> int:
    """How many numbers of scratch the entry needs."""
    return _Lowering(program, "f", width, 1).scratch * width


class _Lowering:
    def __init__(self, program: Program, name: str, width: int, pack: int) -> None:
        self.program, self.name, self.width, self.pack = program, name, width, pack
        self.type = vector(width)
        self.functions: list[str] = []
        self.helpers: dict[str, str] = {}
        self.pointer: dict[int, int] = {}  # buffer → position in ptrs
        self.place: dict[int, int] = {}  # buffer → place in scratch, in lane groups
        self.scratch = 0
        order = [k for role in ("input", "output", "data") for k in self._with_role(role)]
        for position, k in enumerate(order):
            self.pointer[k] = position
        self.first_column = len(order)
        for k, buffer in enumerate(program.buffers):
            if buffer.role == "temporary" or (width > 1 and buffer.role in ("input", "output")):
                self.place[k] = self.scratch
                self.scratch += buffer.size
        # One room after the buffers for values that cross segments and for solvers, used in turn.
        self.spill = self.scratch
        self.scratch += max((_spill_size(program, s) for s in _all(program.statements)), default=0)

    def _with_role(self, role: str) -> list[int]:
        return [k for k, b in enumerate(self.program.buffers) if b.role == role]

    # -- the module ------------------------------------------------------------------------------
    def text(self) -> str:
        calls: list[str] = []
        for index, statement in enumerate(self.program.statements):
            calls.extend(self.statement(statement, f"s{index}"))
        driver = self.driver(calls)
        return "\n\n".join([*self.helpers.values(), *self.functions, driver]) + "\n"

    def helper(self, key: str, make: Callable[[], str]) -> None:
        if key not in self.helpers:
            self.helpers[key] = make()

    def need_sincos(self, width: int) -> None:
        self.helper(f"sin{width}", lambda: math.libm("sin", width))
        self.helper(f"cos{width}", lambda: math.libm("cos", width))
        if width > 1:
            self.helper("sin1", lambda: math.libm("sin", 1))
            self.helper("cos1", lambda: math.libm("cos", 1))
        self.helper(f"sincos{width}", lambda: math.sincos(width))

    def need_libm(self, name: str) -> None:
        self.helper(f"{name}1", lambda: math.libm(name, 1))
        if self.width > 1:
            self.helper(f"{name}{self.width}", lambda: math.libm(name, self.width))

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
                *(f"  call void @{c}(ptr %ptrs, ptr %scratch)" for c in calls),
                "  ret void",
                "many:",
                f"  %local = alloca [{max(total, 1)} x ptr]",
                f"  call void @llvm.memcpy.p0.p0.i64(ptr %local, ptr %ptrs, i64 {8 * total}, i1 false)",
                "  %some = icmp sgt i64 %count, 0",
                "  br i1 %some, label %loop, label %done",
                "loop:",
                "  %s = phi i64 [ 0, %many ], [ %next, %loop ]",
                *(f"  call void @{c}(ptr %local, ptr %scratch)" for c in calls),
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
            return "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n" + "\n".join(lines)
        self.helper("transposes", lambda: math.transposes(self.width))
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

        def move(what: str, k: int) -> str:
            n = self.program.buffers[k].size
            return f"  call void @{what}(ptr %far{k}, i64 %st{k}, i64 {n}, ptr %near{k})"

        lines += [move("gather", k) for k in ins]
        lines += [f"  call void @{c}(ptr %ptrs, ptr %scratch)" for c in calls]
        lines += [move("scatter", k) for k in outs]
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
        """Emit the functions of a statement; the names to call, in order."""
        if isinstance(statement, Each):
            if statement.items == 1 and len(statement.cases) == 1:
                return self.straight(statement.cases[0], name)
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

    def open(self, name: str) -> _Function:
        return _Function(self, name)

    def close(self, function: _Function) -> list[str]:
        self.functions.append(function.text())
        return [function.name]

    def straight(self, case: Case, name: str) -> list[str]:
        """A block that runs once; a long one is cut into functions that pass values through scratch."""
        block = self.program.blocks[case.block]
        if len(block) <= SEGMENT:
            function = self.open(name)
            function.block(case)
            return self.close(function)
        slots, _ = _crossings(block)
        names = []
        for k, (start, end) in enumerate(_segments(block)):
            function = self.open(f"{name}_{k}")
            function.block(case, start, end, slots)
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

        f.counted(statement.target.size, inward=False, body=one)
        return self.close(f)

    def walk(self, walk: Walk, name: str) -> list[str]:
        f = self.open(name)
        kinds = len(walk.start)
        size = max(case.outputs[-1].size for case in walk.start)
        carry = f.local(size)

        def per_item(i: str) -> None:
            start = "0" if walk.dispatch is None else f.column(walk.dispatch, i)

            def begin(k: int) -> None:
                f.block(walk.start[k], item=i, carry=carry)

            f.switch(start, kinds, begin)
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

            def ahead(k: int) -> None:
                f.block(walk.step[k], item=i, ancestor=j, carry=carry)

            f.switch(pair, kinds * kinds, ahead)
            following = f.column(walk.parent, j)
            last = f.current
            f.branch(head)
            f.lines[entry_at] = f"  {j} = phi i64 [ {first}, %{before} ], [ {following}, %{last} ]"
            f.start(end)

        f.counted(walk.items, inward=False, body=per_item)
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
                f.lines.append(f"  call void @{call}(ptr %ptrs, ptr %scratch)")
            active = f.op(f"load {t}, ptr {flag}")
            mask = f.op(f"fcmp one {t} {active}, {splat(0.0, self.width)}")
            for current, following in loop.carry:
                for k in range(current.size):
                    old, new = f.load(current, "0", str(k)), f.load(following, "0", str(k))
                    f.store(f.op(f"select {bit} {mask}, {t} {new}, {t} {old}"), current, "0", str(k))
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


class _Function:
    """One function under construction: lines, names, and the addresses of operands."""

    def __init__(self, lowering: _Lowering, name: str) -> None:
        self.low, self.name = lowering, name
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.serial = 0
        self.current = "body"
        self.pointers: dict[int, str] = {}

    def text(self) -> str:
        head = f"define internal void @{self.name}(ptr noalias %ptrs, ptr noalias %scratch) {{"
        return "\n".join(
            [head, "entry:", *self.entry, "  br label %body", "body:", *self.lines, "  ret void", "}"]
        )

    def fresh(self) -> str:
        self.serial += 1
        return f"%x{self.serial}"

    def label(self, stem: str) -> str:
        self.serial += 1
        return f"{stem}{self.serial}"

    def op(self, text: str, *, at_entry: bool = False) -> str:
        name = self.fresh()
        (self.entry if at_entry else self.lines).append(f"  {name} = {text}")
        return name

    def branch(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.current = label

    def local(self, size: int) -> str:
        """Room for `size` lane groups on the stack."""
        return self.op(f"alloca [{max(size, 1)} x {self.low.type}], align 64", at_entry=True)

    def counted(self, times: int, *, inward: bool, body: Callable[[str], None]) -> None:
        """for i = 0..times−1 (or back): body(i)."""
        head, end = self.label("loop"), self.label("after")
        first, step = (times - 1, -1) if inward else (0, 1)
        before, at = self.current, 0
        self.branch(head)
        self.start(head)
        i = self.fresh()
        at = len(self.lines)
        self.lines.append("")
        body(i)
        following = self.op(f"add i64 {i}, {step}")
        again = self.op(
            f"icmp sge i64 {following}, 0" if inward else f"icmp slt i64 {following}, {times}"
        )
        self.lines[at] = f"  {i} = phi i64 [ {first}, %{before} ], [ {following}, %{self.current} ]"
        self.lines.append(f"  br i1 {again}, label %{head}, label %{end}")
        self.start(end)

    def switch(self, key: str, cases: int, body: Callable[[int], None]) -> None:
        """body(k) for the k that `key` holds."""
        if cases == 1:
            body(0)
            return
        labels = [self.label("case") for _ in range(cases)]
        end = self.label("joined")
        arms = " ".join(f"i64 {k}, label %{label}" for k, label in enumerate(labels))
        self.lines.append(f"  switch i64 {key}, label %{end} [ {arms} ]")
        for k, label in enumerate(labels):
            self.start(label)
            body(k)
            self.branch(end)
        self.start(end)

    def dispatch(self, each: Each, item: str) -> None:
        key = "0" if each.dispatch is None else self.column(each.dispatch, item)
        self.switch(key, len(each.cases), lambda k: self.block(each.cases[k], item=item))

    # -- memory --------------------------------------------------------------------------------------
    def pointer(self, position: int) -> str:
        """The address at a position of `ptrs`, loaded once a function."""
        if position not in self.pointers:
            at = self.op(f"getelementptr ptr, ptr %ptrs, i64 {position}", at_entry=True)
            self.pointers[position] = self.op(f"load ptr, ptr {at}", at_entry=True)
        return self.pointers[position]

    def column(self, column: int, item: str) -> str:
        """column[item] as i64."""
        if column == ITEM:
            return item
        base = self.pointer(self.low.first_column + column)
        at = self.op(f"getelementptr i32, ptr {base}, i64 {item}")
        value = self.op(f"load i32, ptr {at}")
        return self.op(f"sext i32 {value} to i64")

    def address(self, operand: Operand, item: str, ancestor: str = "0") -> tuple[str, int, bool]:
        """(pointer, numbers between neighbours, whether all lanes share them) of an operand's start."""
        low = self.low
        offset: str | int = operand.base
        for steps, index in ((operand.steps, item), (operand.far, ancestor)):
            for stride, column in steps:
                moved = self.op(f"mul i64 {self.column(column, index)}, {stride}")
                offset = self.op(f"add i64 {moved}, {offset}")
        if operand.buffer in low.place:
            place, width = low.place[operand.buffer], low.width
            if isinstance(offset, int):
                total: str | int = (place + offset) * width
            else:
                total = self.op(f"add i64 {offset}, {place}")
                total = self.op(f"mul i64 {total}, {width}")
            return self.op(f"getelementptr double, ptr %scratch, i64 {total}"), width, False
        base = self.pointer(low.pointer[operand.buffer])
        if offset == 0:
            return base, 1, low.width > 1
        return self.op(f"getelementptr double, ptr {base}, i64 {offset}"), 1, low.width > 1

    def load_at(self, start: tuple[str, int, bool], k: int | str) -> str:
        pointer, step, shared = start
        at = self._element(pointer, step, k)
        if not shared:
            return self.op(f"load {self.low.type}, ptr {at}, align 8")
        return self.broadcast(self.op(f"load double, ptr {at}, align 8"))

    def broadcast(self, value: str) -> str:
        """A scalar in every lane."""
        t, width = self.low.type, self.low.width
        if width == 1:
            return value
        first = self.op(f"insertelement {t} poison, double {value}, i32 0")
        return self.op(f"shufflevector {t} {first}, {t} poison, <{width} x i32> zeroinitializer")

    def store_at(self, value: str, start: tuple[str, int, bool], k: int | str) -> None:
        pointer, step, _ = start
        at = self._element(pointer, step, k)
        self.lines.append(f"  store {self.low.type} {value}, ptr {at}, align 8")

    def _element(self, pointer: str, step: int, k: int | str) -> str:
        if k == 0 or k == "0":
            return pointer
        if isinstance(k, int) or k.isdigit():
            return self.op(f"getelementptr double, ptr {pointer}, i64 {int(k) * step}")
        moved = k if step == 1 else self.op(f"mul i64 {k}, {step}")
        return self.op(f"getelementptr double, ptr {pointer}, i64 {moved}")

    def load(self, operand: Operand, item: str, k: str) -> str:
        return self.load_at(self.address(operand, item), k)

    def store(self, value: str, operand: Operand, item: str, k: str) -> None:
        self.store_at(value, self.address(operand, item), k)

    # -- a block ---------------------------------------------------------------------------------------
    def block(
        self,
        case: Case,
        start: int = 0,
        end: int | None = None,
        slots: dict[int, int] | None = None,
        *,
        item: str = "0",
        ancestor: str = "0",
        carry: str | None = None,
    ) -> None:
        """The operations start..end of a case's block; `slots` are the scratch places of values that cross."""
        low = self.low
        block = low.program.blocks[case.block]
        order = _schedule(block)
        end = len(order) if end is None else end
        slots = slots or {}
        first = block.first_operation
        here = set(order[start:end])
        names: dict[int, str] = {k: splat(x, low.width) for k, x in enumerate(block.constants.tolist())}
        starts: dict[int, tuple[str, int, bool]] = {}
        where: list[tuple[int, int]] = []  # input → (operand, place in it)
        for n, operand in enumerate(case.inputs):
            where.extend((n, k) for k in range(operand.size))

        def operand_start(n: int, operand: Operand) -> tuple[str, int, bool]:
            if n not in starts:
                if operand.buffer < 0:
                    assert carry is not None
                    starts[n] = (carry, low.width, False)
                else:
                    starts[n] = self.address(operand, item, ancestor)
            return starts[n]

        def value(k: int) -> str:
            name = names.get(k)
            if name is not None:
                return name
            if k < first:
                n, place = where[k - block.first_input]
                name = self.load_at(operand_start(n, case.inputs[n]), place)
            else:
                slot = (low.spill + slots[k]) * low.width
                at = self.op(f"getelementptr double, ptr %scratch, i64 {slot}")
                name = self.op(f"load {low.type}, ptr {at}, align 8")
            names[k] = name
            return name

        # Inputs are read before anything is written: a walk's carry and an aliasing output are safe.
        if carry is not None or item != "0":
            for k in range(block.first_input, first):
                value(k)
        rows = block.rows()
        self._operations(block, rows, order[start:end], names, value)
        for k in order[start:end]:
            if first + k in slots:
                slot = (low.spill + slots[first + k]) * low.width
                at = self.op(f"getelementptr double, ptr %scratch, i64 {slot}")
                self.lines.append(f"  store {low.type} {names[first + k]}, ptr {at}, align 8")
        final = end == len(order)
        at_output = 0
        pending: list[tuple[str, tuple[str, int, bool], int]] = []
        for n, operand in enumerate(case.outputs):
            target: tuple[str, int, bool] | None = None
            for place in range(operand.size):
                k = int(block.outputs[at_output])
                at_output += 1
                mine = (k - first) in here if k >= first else final
                if not mine:
                    continue
                if target is None:
                    if operand.buffer < 0:
                        assert carry is not None
                        target = (carry, low.width, False)
                    else:
                        target = self.address(operand, item, ancestor)
                result = value(k)
                if operand.add:
                    old = self.load_at(target, place)
                    result = self.op(f"fadd {FAST} {low.type} {old}, {result}")
                pending.append((result, target, place))
        for result, target, place in pending:
            self.store_at(result, target, place)

    def _operations(
        self,
        block: Block,
        rows: list[tuple[int, int, int, int]],
        order: Iterable[int],
        names: dict[int, str],
        value: Callable[[int], str],
    ) -> None:
        low, t, first = self.low, self.low.type, block.first_operation
        lines = self.lines
        serial = self.serial
        pairs = _trig_pairs(block)
        todo = list(order)
        here = set(todo)
        if low.width == 1 and low.pack > 1:
            todo = self._packed_sines(block, rows, todo, names, value)
            serial = self.serial
        for k in todo:
            op, a, b, c = rows[k]
            if first + k in names:
                continue
            infix = _INFIX.get(op)
            if infix is not None:
                x = names.get(a) or value(a)
                y = names.get(b) or value(b)
                self.serial += 1
                serial = self.serial
                lines.append(f"  %x{serial} = {infix} {FAST} {t} {x}, {y}")
                names[first + k] = f"%x{serial}"
            elif op == O.NEG:
                names[first + k] = self.op(f"fneg {FAST} {t} {value(a)}")
            elif op in (O.SIN, O.COS):
                low.need_sincos(low.width)
                both = self.op(f"call {{ {t}, {t} }} @sincos{low.width}({t} {value(a)})")
                for part, partner in enumerate(pairs[a]):
                    if partner in here:
                        names[first + partner] = self.op(f"extractvalue {{ {t}, {t} }} {both}, {part}")
            else:
                operands = [value(x) for x in (a, b, c)[: O.OPERATIONS[op].arity]]
                names[first + k] = self.special(op, operands, block, b)

    def _packed_sines(
        self,
        block: Block,
        rows: list[tuple[int, int, int, int]],
        order: list[int],
        names: dict[int, str],
        value: Callable[[int], str],
    ) -> list[int]:
        """The sines and cosines that need little else, several of one state in a register."""
        early, angles = _early_angles(block, rows, order, names)
        if len(angles) < 2:
            return order
        pairs, first, pack = _trig_pairs(block), block.first_operation, self.low.pack
        done: set[int] = set()
        here = set(order)
        for k in early:
            op, a, b, _ = rows[k]
            if op == O.NEG:
                names[first + k] = self.op(f"fneg {FAST} double {value(a)}")
            else:
                names[first + k] = self.op(f"{_INFIX[op]} {FAST} double {value(a)}, {value(b)}")
            done.add(k)
        t = vector(pack)
        self.low.need_sincos(pack)
        for start in range(0, len(angles), pack):
            group = angles[start : start + pack]
            packed = "zeroinitializer"
            for lane, a in enumerate(group):
                packed = self.op(f"insertelement {t} {packed}, double {value(a)}, i32 {lane}")
            both = self.op(f"call {{ {t}, {t} }} @sincos{pack}({t} {packed})")
            for part in (0, 1):
                if any(pairs[a][part] in here for a in group):
                    half = self.op(f"extractvalue {{ {t}, {t} }} {both}, {part}")
                    for lane, a in enumerate(group):
                        partner = pairs[a][part]
                        if partner is not None and partner in here:
                            names[first + partner] = self.op(f"extractelement {t} {half}, i32 {lane}")
                            done.add(partner)
        return [k for k in order if k not in done]

    def special(self, op: int, x: list[str], block: Block, table: int) -> str:
        """The operations that are not one instruction."""
        low, t, width = self.low, self.low.type, self.low.width
        bit = "i1" if width == 1 else f"<{width} x i1>"
        suffix = "f64" if width == 1 else f"v{width}f64"
        zero, one = splat(0.0, width), splat(1.0, width)
        if op in _LIBM:
            low.need_libm(_LIBM[op])
            arguments = ", ".join(f"{t} {v}" for v in x)
            return self.op(f"call {t} @{math.libm_name(_LIBM[op], width)}({arguments})")
        if op in (O.SQRT, O.ABS, O.FLOOR):
            name = {O.SQRT: "sqrt", O.ABS: "fabs", O.FLOOR: "floor"}[op]
            key = f"llvm.{name}.{suffix}"
            if not (op == O.ABS and f"sincos{width}" in low.helpers):
                low.helper(key, lambda: f"declare {t} @{key}({t})")
            return self.op(f"call {t} @{key}({t} {x[0]})")
        if op in _COMPARE:
            truth = self.op(f"fcmp {_COMPARE[op]} {t} {x[0]}, {x[1]}")
            return self.op(f"select {bit} {truth}, {t} {one}, {t} {zero}")
        if op == O.WHERE:
            truth = self.op(f"fcmp une {t} {x[0]}, {zero}")
            return self.op(f"select {bit} {truth}, {t} {x[1]}, {t} {x[2]}")
        if op in (O.MIN, O.MAX):
            # As NumPy: a NaN on either side wins.
            better = self.op(f"fcmp {'olt' if op == O.MIN else 'ogt'} {t} {x[0]}, {x[1]}")
            strange = self.op(f"fcmp uno {t} {x[0]}, {zero}")
            first = self.op(f"or {bit} {better}, {strange}")
            return self.op(f"select {bit} {first}, {t} {x[0]}, {t} {x[1]}")
        if op == O.SIGN:
            positive = self.op(f"fcmp ogt {t} {x[0]}, {zero}")
            negative = self.op(f"fcmp olt {t} {x[0]}, {zero}")
            strange = self.op(f"fcmp uno {t} {x[0]}, {zero}")
            low_side = self.op(f"select {bit} {negative}, {t} {splat(-1.0, width)}, {t} {zero}")
            either = self.op(f"select {bit} {positive}, {t} {one}, {t} {low_side}")
            return self.op(f"select {bit} {strange}, {t} {x[0]}, {t} {either}")
        if op == O.TABLE:
            data = block.tables[table]
            name = f"table{abs(hash(data)):x}"
            low.helper(name, lambda: math.table(name, data, width))
            return self.op(f"call {t} @{name}({t} {x[0]})")
        raise KernelError(f"no LLVM lowering of {O.OPERATIONS[op].name}")


# -- the order of a block's operations ---------------------------------------------------------------
def _schedule(block: Block) -> list[int]:
    """The operations as recorded, but with sines, cosines and what makes their angles first where that is little."""
    rows = block.rows()
    order = list(range(len(block)))
    early, angles = _early_angles(block, rows, order, {})
    pairs = _trig_pairs(block)
    front = early + [p for a in angles for p in pairs[a] if p is not None]
    moved = set(front)
    return front + [k for k in order if k not in moved]


def _trig_pairs(block: Block) -> dict[int, tuple[int | None, int | None]]:
    """For each angle: the operations that are its sine and its cosine."""
    pairs: dict[int, tuple[int | None, int | None]] = {}
    op = block.op
    for k in ((op == O.SIN) | (op == O.COS)).nonzero()[0].tolist():
        a = int(block.args[k, 0])
        sine, cosine = pairs.get(a, (None, None))
        pairs[a] = (k, cosine) if op[k] == O.SIN else (sine, k)
    return pairs


def _early_angles(
    block: Block, rows: list[tuple[int, int, int, int]], order: list[int], names: dict[int, str]
) -> tuple[list[int], list[int]]:
    """The angles that come from inputs by sums and products, and the operations that make them."""
    first = block.first_operation
    cheap: dict[int, int] = {}
    for k in order:
        op, a, b, _ = rows[k]
        if op in _CHEAP:
            below = 1
            for x in (a, b)[: O.OPERATIONS[op].arity]:
                if x >= first:
                    below += cheap.get(x, 100)
            if below <= 4:
                cheap[first + k] = below
    here = set(order)
    angles = []
    for a, partners in _trig_pairs(block).items():
        early = a < first or a in cheap or a in names
        if early and any(p in here for p in partners if p is not None):
            angles.append(a)
    needed: set[int] = set()
    stack = [a for a in angles if a >= first and a not in names]
    while stack:
        a = stack.pop()
        if a in needed:
            continue
        needed.add(a)
        op, x, y, _ = rows[a - first]
        stack.extend(v for v in (x, y)[: O.OPERATIONS[op].arity] if v >= first and v not in names)
    return sorted(k - first for k in needed), angles


def _segments(block: Block) -> list[tuple[int, int]]:
    n = len(block)
    pieces = -(-n // SEGMENT)
    size = -(-n // pieces)
    return [(s, min(s + size, n)) for s in range(0, n, size)]


def _crossings(block: Block) -> tuple[dict[int, int], int]:
    """Scratch slots of the values used in a later segment than their own; how many slots."""
    first, order = block.first_operation, _schedule(block)
    segment = {}
    for piece, (start, end) in enumerate(_segments(block)):
        for k in order[start:end]:
            segment[first + k] = piece
    slots: dict[int, int] = {}
    for k, (op, a, b, c) in enumerate(block.rows()):
        for x in (a, b, c)[: O.OPERATIONS[op].arity]:
            if x >= first and segment[x] != segment[first + k] and x not in slots:
                slots[x] = len(slots)
    return slots, len(slots)


def _spill_size(program: Program, statement: Statement) -> int:
    if isinstance(statement, Each) and statement.items == 1 and len(statement.cases) == 1:
        block = program.blocks[statement.cases[0].block]
        return _crossings(block)[1] if len(block) > SEGMENT else 0
    if isinstance(statement, Solve):
        return statement.rows * statement.columns + statement.columns * statement.right + 4 * statement.columns
    return 0


def _all(statements: Iterable[Statement]) -> list[Statement]:
    found: list[Statement] = []
    for s in statements:
        found.append(s)
        if isinstance(s, Loop):
            found.extend(_all(s.body))
    return found


__all__ = ["llvm_text", "number", "scratch_size"]
