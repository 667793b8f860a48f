"""A straight block as named steps: formulas over earlier names, as few and as short as a person can follow.

Every operation of the block appears once, so that the steps cost what the tape costs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from linkwright.errors import ModelError
from linkwright.symbolic.formulas.formula import Symbol
from linkwright.tape import operations as O
from linkwright.tape.block import Block, operands_of

#: Operations in one step; more of them are split, so that a formula fits a line.
LONGEST = 10


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the tape (its number in `linkwright.tape.operations`) on formulas."""

    op: int
    arguments: tuple[Node, ...]


Node: TypeAlias = float | Symbol | Operation


@dataclass(frozen=True, slots=True)
class Step:
    """symbol = formula."""

    symbol: Symbol
    formula: Node


@dataclass(frozen=True)
class Steps:
    """`once` depends on parameters alone; then `steps`; the results are names, inputs or numbers, all by then known."""

    once: tuple[Step, ...]
    steps: tuple[Step, ...]
    results: tuple[float | Symbol, ...]

    def __iter__(self) -> Iterator[Step]:
        yield from self.once
        yield from self.steps

    @property
    def needed(self) -> set[Symbol]:
        """The symbols that operations take."""
        return {x for node in operations(self) for x in node.arguments if isinstance(x, Symbol)}

    def count(self, steps: Sequence[Step] | None = None) -> dict[str, int]:
        """How many operations of each name, in all steps or in these."""
        return dict(Counter(O.OPERATIONS[node.op].name for node in operations(self if steps is None else steps)))


def steps(block: Block, inputs: Sequence[Symbol], results: Sequence[Symbol], taken: Collection[str]) -> Steps:
    """The steps of a block whose inputs and outputs have these symbols; new names are none of `taken`."""
    if block.tables:
        raise ModelError("a force is a table of numbers, which has no formula; leave that force out of the mechanism")
    return _Making(block, inputs, results, taken).steps()


class _Making:
    def __init__(
        self, block: Block, inputs: Sequence[Symbol], results: Sequence[Symbol], taken: Collection[str]
    ) -> None:
        self.block, self.rows, self.base = block, block.rows(), block.first_operation
        self.leaves: list[float | Symbol] = [*block.constants.tolist(), *inputs]
        self.taken = {*taken, *(s.name for s in inputs), *(s.name for s in results)}
        self.outputs: dict[int, Symbol] = {}
        for x, symbol in zip(block.outputs.tolist(), results, strict=True):
            if x >= self.base:
                self.outputs.setdefault(x, symbol)
        self.states = [isinstance(leaf, Symbol) and leaf.role != "parameter" for leaf in self.leaves]
        self.coordinates = {leaf.name: k for k, leaf in enumerate(x for x in inputs if x.role == "coordinate")}
        self.counted: dict[str, int] = {}

    def named(self) -> list[bool]:
        """Which operations get a name: what is used again, cosines and sines, results, what parameters alone give."""
        uses, base = [0] * len(self.rows), self.base
        alone = [False] * len(self.rows)
        for k, row in enumerate(self.rows):
            self.states.append(any(self.states[x] for x in operands_of(row)))
            for x in operands_of(row):
                if x >= base:
                    uses[x - base] += 1
                    alone[x - base] |= self.states[base + k] and not self.states[x]
        named = [n > 1 or a or r[0] in (O.SIN, O.COS) for n, a, r in zip(uses, alone, self.rows, strict=True)]
        for x in self.outputs:
            named[x - base] = True
        # Formulas that would be too long are split at their longest part.
        size = [0] * len(self.rows)
        for k, row in enumerate(self.rows):
            parts = sorted((size[x - base], x - base) for x in operands_of(row) if x >= base and not named[x - base])
            total = 1 + sum(n for n, _ in parts)
            while total > LONGEST:
                n, x = parts.pop()
                named[x] = True
                total -= n
            size[k] = total
        return named

    def steps(self) -> Steps:
        named, base = self.named(), self.base
        nodes: list[Node] = list(self.leaves)
        once: list[Step] = []
        of_state: list[Step] = []
        last: dict[int, Step] = {}
        needed = {x for row in self.rows for x in operands_of(row)}
        for k, row in enumerate(self.rows):
            node: Node = _operation(row[0], tuple(nodes[x] for x in operands_of(row)))
            if named[k]:
                state = self.states[base + k]
                symbol = self.outputs.get(base + k) or self.name(row, state)
                step = Step(symbol, node)
                if symbol is self.outputs.get(base + k) and base + k not in needed:
                    last[base + k] = step
                else:
                    (of_state if state else once).append(step)
                node = symbol
            nodes.append(node)
        of_state += (last[x] for x in self.outputs if x in last)
        results = [nodes[x] for x in self.block.outputs.tolist()]
        return Steps(tuple(once), tuple(of_state), tuple(x for x in results if not isinstance(x, Operation)))

    # -- names ----------------------------------------------------------------------------------------------
    def name(self, row: tuple[int, int, int, int], state: bool) -> Symbol:
        """c2 and s2 for the cosine and sine of an angle of q2 alone; else t1, t2, ...; k1, ... of parameters alone."""
        if row[0] in (O.COS, O.SIN):
            letter, number = "c" if row[0] == O.COS else "s", self.coordinate(row[1])
            for more in ("", *"bcdefgh") if number else ():
                if self.take(f"{letter}{number}{more}"):
                    return Symbol(f"{letter}{number}{more}", "variable")
        letter = "t" if state else "k"
        while True:
            self.counted[letter] = self.counted.get(letter, 0) + 1
            name = f"{letter}{self.counted[letter]}"
            if self.take(name):
                return Symbol(name, "variable")

    def take(self, name: str) -> bool:
        free = name not in self.taken
        self.taken.add(name)
        return free

    def coordinate(self, x: int) -> int:
        """The number, from 1, of the one coordinate that a value depends on, among sums and multiples; or 0."""
        numbers, left = set(), [x]
        while left:
            y = left.pop()
            if y >= self.base:
                row = self.rows[y - self.base]
                if row[0] not in (O.ADD, O.SUB, O.MUL, O.NEG):
                    return 0
                left.extend(operands_of(row))
                continue
            leaf = self.leaves[y]
            if isinstance(leaf, Symbol):
                if leaf.name not in self.coordinates:
                    return 0
                numbers.add(self.coordinates[leaf.name] + 1)
        return numbers.pop() if len(numbers) == 1 else 0


def _operation(op: int, arguments: tuple[Node, ...]) -> Node:
    """The operation; −(2 x) as (−2) x, and the numbers of a sum as one: that is less work."""
    node = Operation(op, arguments)
    inner = arguments[0]
    if op == O.NEG and isinstance(inner, Operation) and inner.op == O.MUL:
        for number, x in (inner.arguments, inner.arguments[::-1]):
            if isinstance(number, float):
                return Operation(O.MUL, (-number, x))
    if op in (O.ADD, O.SUB):
        terms = _terms(node)
        numbers = [-x if minus else x for minus, x in terms if isinstance(x, float)]
        if len(numbers) > 1:
            others = [(minus, x) for minus, x in terms if not isinstance(x, float)]
            return _total([(False, sum(numbers)), *others])
    return node


def _terms(node: Node, minus: bool = False) -> list[tuple[bool, Node]]:
    """The terms of a sum within sums, with whether each is taken away."""
    if isinstance(node, Operation) and node.op in (O.ADD, O.SUB):
        a, b = node.arguments
        return _terms(a, minus) + _terms(b, minus is not (node.op == O.SUB))
    return [(minus, node)]


def _total(terms: list[tuple[bool, Node]]) -> Node:
    """The sum of terms, of which the first is not taken away."""
    (_, total), *others = terms
    for minus, x in others:
        total = Operation(O.SUB if minus else O.ADD, (total, x))
    return total


# -- what printers ask ----------------------------------------------------------------------------------------------
_FUNCTIONS = (O.SQRT, O.SIN, O.COS, O.TAN, O.ATAN2, O.EXP, O.LOG, O.POW, O.ABS, O.SIGN, O.FLOOR, O.MIN, O.MAX)
#: The functions of the tape by their names in `linkwright.model.expression`; "eq" is none of those.
NAMES = {op: O.OPERATIONS[op].name for op in (*_FUNCTIONS, O.LT, O.LE, O.EQ)} | {O.WHERE: "if"}


def negative(node: Node) -> TypeGuard[float]:
    """Whether a formula is a number below zero."""
    return isinstance(node, float) and node < 0.0


def signed(node: Node) -> list[tuple[bool, Node]]:
    """The terms of a sum with whether each is taken away; one that is not stands first, if there is one."""
    terms: list[tuple[bool, Node]] = []
    for minus, term in _terms(node):
        if negative(term):
            terms.append((not minus, -term))
        elif isinstance(term, Operation) and term.op == O.MUL and negative(term.arguments[0]):
            terms.append((not minus, Operation(O.MUL, (-term.arguments[0], term.arguments[1]))))
        else:
            terms.append((minus, term))
    first = next((k for k, (minus, _) in enumerate(terms) if not minus), 0)
    terms.insert(0, terms.pop(first))
    return terms


def operations(steps: Iterable[Step]) -> Iterator[Operation]:
    """Every operation of these steps."""
    for step in steps:
        left: list[Node] = [step.formula]
        while left:
            node = left.pop()
            if isinstance(node, Operation):
                yield node
                left.extend(node.arguments)
