"""Scans in runs as LLVM text: the items of a run in the lanes of vectors, and shared out to a team of threads.

`@NAME(ptrs, scratch, constants)` computes a scan alone; `@NAME_team(..., rank, size, barrier)` is one member's part.
Long runs are shared out; short ones are the first member's, while the others wait at the next barrier.

Where every operand of a case is either one for all items or a single number beside its neighbours', lanes are read and
written as they lie, and a mask leaves out those beyond the last item. Elsewhere rows are turned over into lanes, and
the items that are left over come one by one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from linkwright.kernels.llvm.function_text import Function, Start
from linkwright.kernels.llvm.instructions import vector
from linkwright.kernels.llvm.schedule import Plan
from linkwright.kernels.llvm.transpose import masked_declarations, read_tile, write_tile
from linkwright.tape.statements import ITEM, Case, Each, Operand

if TYPE_CHECKING:
    from linkwright.kernels.llvm.module_text import Lowering

_SHARE = 32  # items a member below which a run is not shared out
_PART = ", i64 %begin, i64 %end"
_TEAM = ", i64 %rank, i64 %size, ptr %barrier"
_USUAL = "ptr %ptrs, ptr %scratch, ptr %constants"


def runs_text(low: Lowering, each: Each, name: str) -> list[str]:
    """Emit the functions of a scan in runs; the name to call."""
    parts: dict[Case, list[tuple[str, int]]] = {}
    for case in each.cases:
        if case not in parts:
            parts[case] = [(_part(low, case, f"{name}_case{len(parts)}_by{w}", w), w) for w in _widths(low, case)]
    low.helper("barrier", barrier_text)
    f = low.open(f"{name}_team", _TEAM)
    assert each.runs is not None
    runs, count = each.runs, len(low.program.columns[each.runs]) - 1

    def shared(begin: str, end: str) -> str:
        """Whether a run is shared out."""
        long = f.op(f"sub i64 {end}, {begin}")
        least = f.op(f"mul i64 %size, {_SHARE}")
        several = f.op("icmp sgt i64 %size, 1")
        return f.op(f"and i1 {several}, {f.op(f'icmp sge i64 {long}, {least}')}")

    def one(r: str) -> None:
        following = f.op(f"add i64 {r}, 1")
        begin, end = f.column(runs, r), f.column(runs, following)
        wide = shared(begin, end)
        # A member's part of a shared run; of another one the first has all and the others nothing.
        size = f.op(f"sub i64 {end}, {begin}")
        ranks = [f.op(f"add i64 %rank, {k}") for k in (0, 1)]
        bounds = [f.op(f"add i64 {begin}, {_bound(f, size, rank, low.pack)}") for rank in ranks]
        first = f.op("icmp eq i64 %rank, 0")
        alone = f.op(f"select i1 {first}, i64 {end}, i64 {begin}")
        low_end = f.op(f"select i1 {wide}, i64 {bounds[0]}, i64 {begin}")
        high_end = f.op(f"select i1 {wide}, i64 {bounds[1]}, i64 {alone}")
        key = "0" if each.dispatch is None else f.column(each.dispatch, begin)

        def call(case: Case) -> None:
            start = low_end
            for part, width in parts[case]:
                f.line(f"call void @{part}({_USUAL}, i64 {start}, i64 {high_end})")
                if width > 1 and len(parts[case]) > 1:
                    left = f.op(f"srem i64 {f.op(f'sub i64 {high_end}, {start}')}, {width}")
                    start = f.op(f"sub i64 {high_end}, {left}")

        f.switch(key, each.cases, call)
        # The others wait before and after a shared run.
        last = f.op(f"icmp eq i64 {following}, {count}")
        ahead = f.op(f"select i1 {last}, i64 {r}, i64 {following}")
        after = f.op(f"add i64 {ahead}, 1")
        next_wide = shared(f.column(runs, ahead), f.column(runs, after))
        either = f.op(f"or i1 {wide}, {f.op(f'or i1 {next_wide}, {last}')}")
        wait, on = f.label("wait"), f.label("on")
        f.choose(either, wait, on)
        f.start(wait)
        f.line("call void @barrier(i64 %size, ptr %barrier)")
        f.branch(on)
        f.start(on)

    f.counted(count, inward=False, body=one)
    low.close(f)
    alone = low.open(name)
    alone.line(f"call void @{name}_team({_USUAL}, i64 0, i64 1, ptr null)")
    return low.close(alone)


def _bound(f: Function, size: str, rank: str, pack: int) -> str:
    """Where a member's part of a run begins, at whole registers: every item has the same lane, however many share."""
    even = f.op(f"sdiv i64 {f.op(f'mul i64 {size}, {rank}')}, %size")
    whole = f.op(f"sub i64 {even}, {f.op(f'srem i64 {even}, {pack}')}")
    end = f.op(f"icmp eq i64 {rank}, %size")
    return f.op(f"select i1 {end}, i64 {size}, i64 {whole}")


def _widths(low: Lowering, case: Case) -> list[int]:
    """The widths that a run is computed by, one after another: as many items as fit, then the rest."""
    if low.width > 1 or low.pack == 1:
        return [1]
    return [low.pack] if side_by_side(case) else [low.pack, 1]


def side_by_side(case: Case) -> bool:
    """Whether lanes can be read and written as they lie: results side by side, inputs too or one for all items."""
    return all(_beside(o) for o in case.outputs) and all(_beside(o) or not o.steps for o in case.inputs)


def _beside(operand: Operand) -> bool:
    """Whether an operand is one number per item, next to those of the items before and after."""
    return operand.size == 1 and operand.steps == ((1, ITEM),)


def _part(low: Lowering, case: Case, name: str, width: int) -> str:
    """A function that computes items begin..end of one case, `width` at a time."""
    if width > 1 and side_by_side(case):
        return _masked_part(low, case, name, width)
    f = low.open(name, _PART) if width == 1 else LaneFunction(low, name, width)
    last = f.op(f"sub i64 %end, {width - 1}")  # only whole groups
    f.repeat("%begin", last, lambda i: f.block(case, item=i), width)
    return low.close(f)[0]


def _masked_part(low: Lowering, case: Case, name: str, width: int) -> str:
    f = MaskedFunction(low, name, width)

    def group(i: str) -> None:
        f.mask_from(i)
        f.block(case, item=i)

    f.repeat("%begin", "%end", group, width)  # the last group, whole or not, is one of them
    return low.close(f)[0]


class MaskedFunction(Function):
    """A function over `width` neighbouring items whose numbers lie side by side; a mask leaves out those past the end.

    The lanes left out hold zeros and whatever comes of them; none of it is stored.
    """

    def __init__(self, lowering: Lowering, name: str, width: int) -> None:
        super().__init__(lowering, name, _PART)
        self.width, self.type = width, vector(width)
        self.mask = ""
        lowering.helper(f"masked{width}", lambda: masked_declarations(width))

    def mask_from(self, item: str) -> None:
        """Mask the items from `item` on that are before the end."""
        numbers = f"<{self.width} x i64>"
        lanes = "<" + ", ".join(f"i64 {k}" for k in range(self.width)) + ">"
        left = self.op(f"sub i64 %end, {item}")
        self.mask = self.op(f"icmp sgt {numbers} {self.spread(left, self.width, 'i64')}, {lanes}")

    def address(self, operand: Operand, item: str, ancestor: str = "0") -> Start:
        pointer, step, _ = super().address(operand, item, ancestor)
        return pointer, step, not operand.steps

    def _moved(self, case: Case, plan: Plan, start_of: Callable[[Operand], Start]) -> bool:
        return False  # neighbours past the end are not to be touched

    def load_at(self, start: Start, k: int | str) -> str:
        if start[2]:
            return super().load_at(start, k)
        load = f"call {self.type} @llvm.masked.load.v{self.width}f64.p0"
        return self.op(f"{load}(ptr {start[0]}, i32 8, <{self.width} x i1> {self.mask}, {self.type} zeroinitializer)")

    def store_at(self, value: str, start: Start, k: int | str) -> None:
        store = f"call void @llvm.masked.store.v{self.width}f64.p0"
        self.line(f"{store}({self.type} {value}, ptr {start[0]}, i32 8, <{self.width} x i1> {self.mask})")


class LaneFunction(Function):
    """A function over `width` neighbouring items of a run: their rows are turned over into lanes and back."""

    def __init__(self, lowering: Lowering, name: str, width: int) -> None:
        super().__init__(lowering, name, _PART)
        self.width, self.type = width, vector(width)
        self.rows: dict[str, list[str]] = {}  # a start's pointers, one per lane
        self.sizes: dict[str, int] = {}
        self.tiles: dict[tuple[str, int], list[str]] = {}
        self.results: dict[str, dict[int, str]] = {}
        self.indices: dict[tuple[int, str], list[str]] = {}
        low = self.low
        low.helper(f"masked{width}", lambda: masked_declarations(width))

    def _lanes_of(self, column: int, item: str) -> list[str]:
        """column[item], column[item + 1], ..."""
        if (column, item) not in self.indices:
            items = [item, *(self.op(f"add i64 {item}, {k}") for k in range(1, self.width))]
            self.indices[column, item] = items if column == ITEM else [self.column(column, i) for i in items]
        return self.indices[column, item]

    def address(self, operand: Operand, item: str, ancestor: str = "0") -> Start:
        low = self.low
        offsets: list[str | int] = [operand.base] * self.width
        for stride, column in operand.steps:
            for lane, index in enumerate(self._lanes_of(column, item)):
                moved = self.op(f"mul i64 {index}, {stride}")
                offsets[lane] = self.op(f"add i64 {moved}, {offsets[lane]}")
        if operand.buffer in low.place:
            base: str = "%scratch"
            offsets = [self.op(f"add i64 {o}, {low.place[operand.buffer]}") for o in offsets]
        else:
            base = self.pointer(low.pointer[operand.buffer])
        key = f"rows{len(self.rows)}"
        self.rows[key] = [self.op(f"getelementptr double, ptr {base}, i64 {o}") for o in offsets]
        self.sizes[key] = operand.size
        return key, 1, False

    def _moved(self, case: Case, plan: Plan, start_of: Callable[[Operand], Start]) -> bool:
        return False  # rows lie apart

    def load_at(self, start: Start, k: int | str) -> str:
        key, width = start[0], self.width
        tile, place = divmod(int(k), width)
        if (key, tile) not in self.tiles:
            count = min(width, self.sizes[key] - tile * width)
            rows = [self._element(pointer, 1, tile * width) for pointer in self.rows[key]]
            if count > 1:
                self.tiles[key, tile] = read_tile(self, rows, count)
            else:
                value = "poison"
                for lane, row in enumerate(rows):
                    entry = self.op(f"load double, ptr {row}, align 8")
                    value = self.op(f"insertelement {self.type} {value}, double {entry}, i32 {lane}")
                self.tiles[key, tile] = [value]
        return self.tiles[key, tile][place]

    def store_at(self, value: str, start: Start, k: int | str) -> None:
        """Keep a result; a tile is stored when it is whole."""
        key, width, place = start[0], self.width, int(k)
        results = self.results.setdefault(key, {})
        results[place] = value
        first = place // width * width
        count = min(width, self.sizes[key] - first)
        if any(first + n not in results for n in range(count)):
            return
        rows = [self._element(pointer, 1, first) for pointer in self.rows[key]]
        if count > 1:
            write_tile(self, [results[first + n] for n in range(count)], rows)
            return
        for lane, row in enumerate(rows):
            entry = self.op(f"extractelement {self.type} {results[first]}, i32 {lane}")
            self.line(f"store double {entry}, ptr {row}, align 8")


def barrier_text() -> str:
    """`@barrier(size, room)`: wait until all members have come; room holds how many have, and how often all have."""
    posix = sys.platform != "win32"
    yielding = "  %ignored = call i32 @sched_yield()" if posix else ""
    return f"""{"declare i32 @sched_yield()" if posix else ""}
define internal void @barrier(i64 %size, ptr %room) noinline {{
entry:
  %alone = icmp eq i64 %size, 1
  br i1 %alone, label %done, label %arrive
arrive:
  %times = getelementptr i64, ptr %room, i64 8
  %before = load atomic i64, ptr %times acquire, align 8
  %come = atomicrmw add ptr %room, i64 1 acq_rel
  %last = sub i64 %size, 1
  %all = icmp eq i64 %come, %last
  br i1 %all, label %open, label %wait
open:
  store atomic i64 0, ptr %room monotonic, align 8
  %after = add i64 %before, 1
  store atomic i64 %after, ptr %times release, align 8
  br label %done
wait:
  %turn = phi i64 [ 0, %arrive ], [ %next, %on ]
  %now = load atomic i64, ptr %times acquire, align 8
  %still = icmp eq i64 %now, %before
  br i1 %still, label %spin, label %done
spin:
  %next = add i64 %turn, 1
  %long = icmp sgt i64 %next, 4000
  br i1 %long, label %give, label %on
give:
{yielding}
  br label %on
on:
  br label %wait
done:
  ret void
}}"""


def team_text(low: Lowering, calls: list[str], scans: set[str]) -> str:
    """`@NAME_team(ptrs, scratch, rank, size, barrier)`: one member's part of one state."""
    low.helper("barrier", barrier_text)
    lines = [f"define void @{low.name}_team(ptr %ptrs, ptr %scratch, i64 %rank, i64 %size, ptr %barrier) {{", "entry:"]
    lines.append("  %first = icmp eq i64 %rank, 0")
    usual = "ptr %ptrs, ptr %scratch, ptr @constants"
    at, k = 0, 0
    while at < len(calls):
        if calls[at] in scans:
            lines.append(f"  call void @{calls[at]}_team({usual}, i64 %rank, i64 %size, ptr %barrier)")
            at += 1
            continue
        lines += [f"  br i1 %first, label %own{k}, label %others{k}", f"own{k}:"]
        while at < len(calls) and calls[at] not in scans:
            lines.append(f"  call void @{calls[at]}({usual})")
            at += 1
        lines += [f"  br label %others{k}", f"others{k}:", "  call void @barrier(i64 %size, ptr %barrier)"]
        k += 1
    return "\n".join([*lines, "  ret void", "}"])


__all__ = ["runs_text", "team_text"]
