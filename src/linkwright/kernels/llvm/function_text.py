"""One LLVM function under construction: names, loops, the addresses of operands, and the text of a block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from linkwright.kernels.llvm.instructions import FAST, INFIX, LLVM, Writer, splat, vector
from linkwright.kernels.llvm.schedule import Plan
from linkwright.tape import operations as O
from linkwright.tape.statements import ITEM, Case, Each, Operand, parts

if TYPE_CHECKING:
    from linkwright.kernels.llvm.module_text import Lowering

#: So many sines of one state go together at most, if their block is short: registers of eight doubles shut one of the
#: two units that the plain arithmetic after them runs on. And two at a time gain nothing: to bring them together costs
#: as much.
SINES = 4

_PLAIN = frozenset((0.0, 1.0, -1.0))

#: Where an operand starts: its pointer, the numbers between neighbours, whether all lanes share them.
Start = tuple[str, int, bool]


class Function(Writer):
    """One function under construction: its text, and the addresses of operands."""

    def __init__(self, lowering: Lowering, name: str, extra: str = "") -> None:
        """`extra` are parameters after the usual ones."""
        super().__init__("body")
        self.low, self.name, self.extra = lowering, name, extra
        self.width, self.type = lowering.width, lowering.type
        self.entry: list[str] = []
        self.pointers: dict[int, str] = {}

    def text(self) -> str:
        usual = "ptr noalias %ptrs, ptr noalias %scratch, ptr noalias %constants"
        head = f"define internal void @{self.name}({usual}{self.extra}) {{"
        return "\n".join([head, "entry:", *self.entry, "  br label %body", "body:", *self.lines, "  ret void", "}"])

    def at_entry(self, text: str) -> str:
        """Write an instruction before all others; the name of its value."""
        name = self.fresh()
        self.entry.append(f"  {name} = {text}")
        return name

    def counted(self, times: int, *, inward: bool, body: Callable[[str], None]) -> None:
        """for i = 0..times−1 (or back): body(i)."""
        if times > 0:
            first, end, step = (times - 1, -1, -1) if inward else (0, times, 1)
            self.repeat(str(first), str(end), body, step)

    def ancestors(self, parent: int, item: str, body: Callable[[str], None]) -> None:
        """body(j) for j = parent[item], parent[parent[item]], ... while j ≥ 0."""
        self.loop(self.column(parent, item), "sge i64 {}, 0", body, lambda j: self.column(parent, j))

    def switch(self, key: str, cases: Sequence[Case], body: Callable[[Case], None]) -> None:
        """body(cases[key]); equal cases share their code."""
        distinct = {case: self.label("case") for case in cases}
        if len(distinct) == 1:
            body(cases[0])
            return
        end = self.label("joined")
        arms = " ".join(f"i64 {k}, label %{distinct[case]}" for k, case in enumerate(cases))
        self.line(f"switch i64 {key}, label %{end} [ {arms} ]")
        for case, label in distinct.items():
            self.start(label)
            body(case)
            self.branch(end)
        self.start(end)

    def dispatch(self, each: Each, item: str) -> None:
        key = "0" if each.dispatch is None else self.column(each.dispatch, item)
        self.switch(key, each.cases, lambda case: self.block(case, item=item))

    # -- memory --------------------------------------------------------------------------------------
    def pointer(self, position: int) -> str:
        """The address at a position of `ptrs`, loaded once a function."""
        if position not in self.pointers:
            at = self.at_entry(f"getelementptr ptr, ptr %ptrs, i64 {position}")
            self.pointers[position] = self.at_entry(f"load ptr, ptr {at}")
        return self.pointers[position]

    def column(self, column: int, item: str) -> str:
        """column[item] as i64."""
        if column == ITEM:
            return item
        base = self.pointer(self.low.first_column + column)
        at = self.op(f"getelementptr i32, ptr {base}, i64 {item}")
        value = self.op(f"load i32, ptr {at}")
        return self.op(f"sext i32 {value} to i64")

    def address(self, operand: Operand, item: str, ancestor: str = "0") -> Start:
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

    def load_at(self, start: Start, k: int | str) -> str:
        pointer, step, shared = start
        at = self._element(pointer, step, k)
        if not shared:
            return self.op(f"load {self.type}, ptr {at}, align 8")
        return self.spread(self.op(f"load double, ptr {at}, align 8"), self.width)

    def store_at(self, value: str, start: Start, k: int | str) -> None:
        pointer, step, _ = start
        at = self._element(pointer, step, k)
        self.line(f"store {self.type} {value}, ptr {at}, align 8")

    def _element(self, pointer: str, step: int, k: int | str) -> str:
        if k == 0 or k == "0":
            return pointer
        if isinstance(k, int) or k.isdigit():
            return self.op(f"getelementptr double, ptr {pointer}, i64 {int(k) * step}")
        return self.at(pointer, k, step)

    def load(self, operand: Operand, item: str, k: str) -> str:
        return self.load_at(self.address(operand, item), k)

    def store(self, value: str, operand: Operand, item: str, k: str) -> None:
        self.store_at(value, self.address(operand, item), k)

    def copy(self, source: Start, target: Start, size: int) -> None:
        """`size` numbers from one place to another, the first one first."""
        self.counted(size, inward=False, body=lambda i: self.store_at(self.load_at(source, i), target, i))

    # -- a block ---------------------------------------------------------------------------------------
    def block(
        self,
        case: Case,
        segment: int = 0,
        *,
        item: str = "0",
        ancestor: str = "0",
        carry: str | None = None,
    ) -> None:
        """One segment of a case's block (short blocks have one)."""
        low = self.low
        again = carry is not None or item != "0"
        plan = low.plan_of(case, whole=again)
        block, first = plan.block, plan.first
        constants = block.constants.tolist()
        # Other numbers are read from a table at each use, where the processor spreads them over the lanes itself.
        names: dict[int, str] = {k: splat(x, self.width) for k, x in enumerate(constants) if x in _PLAIN or x != x}
        starts: dict[Operand, Start] = {}
        where = [(n, k) for n, operand in enumerate(case.inputs) for k in range(operand.size)]

        def start_of(operand: Operand) -> Start:
            if operand not in starts:
                if operand.buffer < 0:
                    assert carry is not None
                    starts[operand] = (carry, self.width, False)
                else:
                    starts[operand] = self.address(operand, item, ancestor)
            return starts[operand]

        def value(k: int) -> str:
            name = names.get(k)
            if name is None:
                if k < len(constants):
                    return self.constant(constants[k])
                if k < first:
                    n, place = where[k - block.first_input]
                    name = self.load_at(start_of(case.inputs[n]), place)
                else:
                    name = self.op(f"load {self.type}, ptr {self._slot(plan.slots[k])}, align 8")
                names[k] = name
            return name

        # Where blocks run again and again, inputs are read before anything is written.
        if again and plan.rows:
            for k in plan.inputs:
                value(k)
        if not plan.rows and self._moved(case, plan, start_of):
            return
        leaving = _Leaving(self, case, plan, segment, start_of, once=not again)
        self._operations(plan, plan.segments[segment], names, value, leaving)
        for k in plan.segments[segment]:
            if first + k in plan.slots:
                at = self._slot(plan.slots[first + k])
                self.line(f"store {self.type} {names[first + k]}, ptr {at}, align 8")
        leaving.others(value)

    def _moved(self, case: Case, plan: Plan, start_of: Callable[[Operand], Start]) -> bool:
        """A block that only moves whole runs of numbers between different buffers, as moves of memory."""
        inputs = [(operand, k) for operand in case.inputs for k in range(operand.size)]
        runs: list[tuple[Operand, int, Operand]] = []
        first = plan.block.first_input
        for target, part in parts(case.outputs, plan.block.outputs.tolist()):
            if target.add or target.buffer < 0 or not part or part[0] < first:
                return False
            source, place = inputs[part[0] - first]
            straight = part == list(range(part[0], part[0] + target.size)) and place + target.size <= source.size
            if not straight or source.buffer < 0 or any(target.buffer == o.buffer for o in case.inputs):
                return False
            runs.append((source, place, target))
        moves = []
        for source, place, target in runs:
            (here, step, shared), (there, other, _) = start_of(source), start_of(target)
            if shared or step != other:
                return False
            moves.append((self._element(here, step, place), there, 8 * step * target.size))
        self.low.helper("memcpy", lambda: "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        for here, there, size in moves:
            self.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {there}, ptr {here}, i64 {size}, i1 false)")
        return True

    def constant(self, value: float) -> str:
        """A number of the table, in every lane."""
        at = self.op(f"getelementptr double, ptr %constants, i64 {self.low.constant(value)}")
        return self.spread(self.op(f"load double, ptr {at}, align 8, !invariant.load !{{}}"), self.width)

    def _slot(self, slot: int) -> str:
        place = (self.low.spill + slot) * self.width
        return self.op(f"getelementptr double, ptr %scratch, i64 {place}")

    def _operations(
        self,
        plan: Plan,
        todo: list[int],
        names: dict[int, str],
        value: Callable[[int], str],
        leaving: _Leaving,
    ) -> None:
        low, t, first, rows = self.low, self.type, plan.first, plan.rows
        lines, here, early = self.lines, set(todo), leaving.early
        if self.width == 1 and low.pack > 1:
            self._packed_sines(plan, here, names, value)
        for k in todo:
            op, a, b, _ = rows[k]
            if first + k in names:
                continue
            infix = INFIX.get(op)
            if infix is not None:
                x = names.get(a) or value(a)
                y = names.get(b) or value(b)
                self.serial += 1
                lines.append(f"  %x{self.serial} = {infix} {FAST} {t} {x}, {y}")
                names[first + k] = f"%x{self.serial}"
                if first + k in early:
                    leaving.store(first + k, names[first + k])
            elif op in (O.SIN, O.COS):
                both = self.sincos(value(a), self.width)
                for part, partner in enumerate(plan.pairs[a]):
                    if partner is not None and partner in here:
                        names[first + partner] = self.half(both, part, self.width)
            else:
                values = [value(x) for x in plan.operands[k]]
                names[first + k] = LLVM[op](self, values, plan.block.tables[b] if op == O.TABLE else None)

    def sincos(self, x: str, width: int) -> str:
        """The sines and cosines of so many lanes, as a pair."""
        self.low.need_sincos(width)
        t = vector(width)
        return self.op(f"call {{ {t}, {t} }} @sincos{width}({t} {x})")

    def half(self, both: str, part: int, width: int) -> str:
        """The sines (0) or the cosines (1) of such a pair."""
        t = vector(width)
        return self.op(f"extractvalue {{ {t}, {t} }} {both}, {part}")

    def _packed_sines(self, plan: Plan, here: set[int], names: dict[int, str], value: Callable[[int], str]) -> None:
        """The early sines and cosines of one state, several in a register."""
        before, angles = plan.early
        pairs, first, pack = plan.pairs, plan.first, self.low.pack
        if len(plan.segments) == 1:
            pack = min(pack, SINES)
        angles = [a for a in angles if any(p in here for p in pairs[a])]
        if len(angles) <= 2:
            return
        for k in before:
            if k in here:
                op, a, b, _ = plan.rows[k]
                names[first + k] = LLVM[op](self, [value(a)] if op == O.NEG else [value(a), value(b)], None)
        t = vector(pack)
        for start in range(0, len(angles), pack):
            # No neighbours side by side: one load of both would wait for the single stores that they may come from.
            group = angles[start : start + pack]
            group = group[::2] + group[1::2]
            if 2 * len(group) <= pack:
                break
            packed = "zeroinitializer"
            for lane, a in enumerate(group):
                packed = self.op(f"insertelement {t} {packed}, double {value(a)}, i32 {lane}")
            both = self.sincos(packed, pack)
            for part in (0, 1):
                wanted = [(lane, pairs[a][part]) for lane, a in enumerate(group) if pairs[a][part] in here]
                half = self.half(both, part, pack) if wanted else ""
                for lane, partner in wanted:
                    assert partner is not None
                    names[first + partner] = self.op(f"extractelement {t} {half}, i32 {lane}")


class _Leaving:
    """The outputs of one segment on their way to memory.

    In code that runs once, a sum or a product is stored where it is computed, so that no register holds it longer.
    """

    def __init__(
        self, f: Function, case: Case, plan: Plan, segment: int, start_of: Callable[[Operand], Start], *, once: bool
    ) -> None:
        self.f, self.case, self.plan, self.start_of = f, case, plan, start_of
        self.where = [(n, k) for n, operand in enumerate(case.outputs) for k in range(operand.size)]
        self.numbers: list[int] = plan.block.outputs.tolist()
        self.constants: list[float] = plan.block.constants.tolist()
        self.left: dict[int, None] = dict.fromkeys(plan.outputs[segment])
        self.once = once and not plan.late
        self.cleared = self._cleared() if self.once else set()
        if segment == 0:
            self._clear()
        self.early: dict[int, list[int]] = {}  # value → outputs
        if self.once:
            for output in self.left:
                self.early.setdefault(self.numbers[output], []).append(output)

    def _is_zero(self, k: int) -> bool:
        return k < len(self.constants) and self.constants[k] == 0.0

    def _cleared(self) -> set[int]:
        """The operands with many zeros."""
        zeros: dict[int, int] = {}
        for (n, _), k in zip(self.where, self.numbers, strict=True):
            if self._is_zero(k) and not self.case.outputs[n].add:
                zeros[n] = zeros.get(n, 0) + 1
        return {n for n, count in zeros.items() if count >= 16}

    def _clear(self) -> None:
        """Clear these as a whole, before anything is stored."""
        for n in sorted(self.cleared):
            pointer, step, _ = self.start_of(self.case.outputs[n])
            self.f.low.helper("memset", lambda: "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            size = 8 * step * self.case.outputs[n].size
            self.f.line(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {size}, i1 false)")

    def store(self, k: int, name: str) -> None:
        """Store a value to all the outputs that it is."""
        for output in self.early[k]:
            self._put(output, name)

    def _put(self, output: int, name: str) -> None:
        f, (n, place) = self.f, self.where[output]
        operand = self.case.outputs[n]
        target = self.start_of(operand)
        if operand.add:
            name = f.op(f"fadd {FAST} {f.type} {f.load_at(target, place)}, {name}")
        f.store_at(name, target, place)
        del self.left[output]

    def others(self, value: Callable[[int], str]) -> None:
        """Store what is left."""
        todo = [x for x in self.left if not (self._is_zero(self.numbers[x]) and self.where[x][0] in self.cleared)]
        if self.plan.late:
            for output in todo:
                value(self.numbers[output])  # what is an input is read before anything is written
        for output in todo:
            self._put(output, value(self.numbers[output]))
