"""LLVM text of statements: one function each, or several, called one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwright.kernels.llvm.elementary import splat
from linkwright.kernels.llvm.linear_solvers import solve_text
from linkwright.kernels.llvm.run_functions import runs_text
from linkwright.tape.statements import Case, Copy, Each, Loop, Operand, Solve, Walk, Zero

if TYPE_CHECKING:
    from linkwright.kernels.llvm.module_text import Lowering

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
