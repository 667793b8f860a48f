"""The order in which a block's operations are emitted, and where long blocks are cut into functions.

Sines and cosines that need little else come first (several fit in a register). The code for one state waits for its
own results more than for the processor, so what most depends on goes first there. A block longer than `SEGMENT` is
cut; values that are used in a later piece than their own cross through scratch slots.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from linkwright.base.locks import cached_property
from linkwright.tape import operations as O
from linkwright.tape.block import Block, operands_of

#: At least so many operations stand in one function, and less than twice as many. Code generation grows faster than
#: linearly with the length, and registers spill more; shorter pieces pass more values through memory than they save.
SEGMENT = 1000

_CHEAP = frozenset((O.ADD, O.SUB, O.MUL, O.NEG))
_DEEP = 4  # operations that may stand between the inputs and an angle that is computed first

_CALLS = frozenset((O.SIN, O.COS, O.TAN, O.EXP, O.LOG, O.ATAN2, O.POW, O.TABLE))
_LATENCY = {O.ADD: 3, O.SUB: 3, O.MUL: 4, O.NEG: 1, O.DIV: 14, O.SQRT: 16}
_AT_ONCE = 3  # operations that begin in one cycle


class Plan:
    """What lowering asks about one block, worked out once. Values and operations are numbered as in `Block`."""

    def __init__(self, block: Block, *, whole: bool = False, late: bool = False, single: bool = False) -> None:
        """`whole` keeps the block in one piece; with `late` the last segment leaves all outputs.

        `single` is for the code that runs once for one state.
        """
        self.block, self.whole, self.late, self.single = block, whole, late, single
        self.first = block.first_operation
        self.rows = block.rows()
        self.operands = list(map(operands_of, self.rows))

    @cached_property
    def inputs(self) -> list[int]:
        """The inputs that something needs."""
        used = set(self.block.outputs.tolist()).union(*self.operands)
        return [k for k in range(self.block.first_input, self.first) if k in used]

    @cached_property
    def pairs(self) -> dict[int, tuple[int | None, int | None]]:
        """For each angle: the operations that are its sine and its cosine."""
        pairs: dict[int, tuple[int | None, int | None]] = {}
        for k, (op, a, _, _) in enumerate(self.rows):
            if op in (O.SIN, O.COS):
                sine, cosine = pairs.get(a, (None, None))
                pairs[a] = (k, cosine) if op == O.SIN else (sine, k)
        return pairs

    @cached_property
    def early(self) -> tuple[list[int], list[int]]:
        """The operations behind angles that come from inputs by few sums and products; those angles."""
        depth: dict[int, int] = {}
        for k, row in enumerate(self.rows):
            if row[0] in _CHEAP:
                below = 1
                for x in self.operands[k]:
                    below += depth.get(x, _DEEP) if x >= self.first else 0
                if below <= _DEEP:
                    depth[self.first + k] = below
        angles = [a for a in self.pairs if a < self.first or a in depth]
        needed: set[int] = set()
        stack = [a for a in angles if a >= self.first]
        while stack:
            a = stack.pop()
            if a not in needed:
                needed.add(a)
                stack += [x for x in self.operands[a - self.first] if x >= self.first]
        return sorted(a - self.first for a in needed), angles

    @cached_property
    def order(self) -> list[int]:
        """The operations as recorded, but early angles with their sines and cosines first.

        In one piece of code for one state, the rest is in the order of how much waits for it. Not where there are more
        pieces or calls of functions: too many values would have to cross.
        """
        before, angles = self.early
        front = before + [p for a in angles for p in self.pairs[a] if p is not None]
        moved = set(front)
        others = [k for k in range(len(self.rows)) if k not in moved]
        if self.single and len(self.rows) < 2 * SEGMENT and not any(self.rows[k][0] in _CALLS for k in others):
            others = self._by_urgency(others)
        return front + others

    def _by_urgency(self, todo: list[int]) -> list[int]:
        """Operations listed as a processor would begin them that always takes the one with the longest way to go."""
        here = set(todo)
        missing = dict.fromkeys(todo, 0)
        users: dict[int, list[int]] = {k: [] for k in todo}
        for k in todo:
            for x in set(self.operands[k]):
                if x - self.first in here:
                    users[x - self.first].append(k)
                    missing[k] += 1
        takes = {k: _LATENCY.get(self.rows[k][0], 4) for k in todo}
        way: dict[int, int] = {}
        for k in reversed(todo):
            way[k] = takes[k]
            for u in users[k]:
                way[k] = max(way[k], takes[k] + way[u])
        begin = dict.fromkeys(todo, 0)
        ready = [(-way[k], k) for k in todo if not missing[k]]
        heapify(ready)
        waiting: list[tuple[int, int]] = []
        listed: list[int] = []
        cycle = 0
        while ready or waiting:
            while waiting and waiting[0][0] <= cycle:
                k = heappop(waiting)[1]
                heappush(ready, (-way[k], k))
            for _ in range(min(_AT_ONCE, len(ready))):
                k = heappop(ready)[1]
                listed.append(k)
                for u in users[k]:
                    missing[u] -= 1
                    begin[u] = max(begin[u], cycle + takes[k])
                    if not missing[u]:
                        heappush(waiting, (begin[u], u))
            cycle += 1
        return listed

    @cached_property
    def segments(self) -> list[list[int]]:
        """The order, cut into pieces of about equal length."""
        n = len(self.order)
        pieces = 1 if self.whole else max(1, n // SEGMENT)
        size = max(1, -(-n // pieces))
        return [self.order[s : s + size] for s in range(0, max(n, 1), size)]

    @cached_property
    def home(self) -> dict[int, int]:
        """The segment in which each computed value is made."""
        return {self.first + k: s for s, segment in enumerate(self.segments) for k in segment}

    @cached_property
    def slots(self) -> dict[int, int]:
        """Scratch slots of the values that are used in a later segment than their own."""
        return self.block.crossing(self.segments, self.operands, late=self.late)

    @cached_property
    def outputs(self) -> list[list[int]]:
        """For each segment, the outputs that it can leave; constants and inputs are left by the first."""
        left: list[list[int]] = [[] for _ in self.segments]
        for n, value in enumerate(self.block.outputs.tolist()):
            left[-1 if self.late else self.home.get(value, 0)].append(n)
        return left
