"""Derivatives of one straight block, recorded: tangents pushed forward, adjoints pulled back.

Several directions go together: the tangents of a value are a dictionary direction → scalar, and what is not in
it is structurally zero. One direction gives the blocks of forward and reverse programs, one direction a column
or a row gives sparse Jacobians. Both directions of accumulation work on `nodes`, the values of the block replayed
in a recorder, so that everything they share is recorded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from linkwright.tape import operations as O
from linkwright.tape.block import Block
from linkwright.tape.operations import choice, differentiable, partials
from linkwright.tape.recorder import Recorder
from linkwright.tape.scalar import Scalar

Directions: TypeAlias = dict[int, Scalar]

# The conditions under which an adjoint counts: (number of a condition's node, whether it holds), outermost first.
_Guard: TypeAlias = tuple[tuple[int, bool], ...]
_Guarded: TypeAlias = dict[_Guard, Scalar]

# An adjoint under more different guards than this is summed up at once.
_GUARDS = 4


def depends(block: Block, marked: Sequence[Any]) -> list[bool]:
    """Which of the block's values change with the marked inputs."""
    flags = [False] * len(block.constants) + [bool(x) for x in marked]
    for row in block.rows():
        flags.append(any(flags[x] for x in differentiable(*row)))
    return flags


def needs(block: Block, marked: Sequence[Any]) -> list[bool]:
    """Which of the block's inputs the marked outputs change with."""
    first = block.first_operation
    flags = [False] * (first + len(block))
    for number, mark in zip(block.outputs.tolist(), marked, strict=True):
        flags[number] |= bool(mark)
    for k, row in zip(range(first + len(block) - 1, first - 1, -1), reversed(block.rows()), strict=True):
        if flags[k]:
            for x in differentiable(*row):
                flags[x] = True
    return flags[block.first_input : first]


# -- forward ---------------------------------------------------------------------------------------------
def push_forward(block: Block, nodes: Sequence[Scalar], tangents: Sequence[Directions]) -> list[Directions]:
    """The tangents of the outputs for those of the inputs."""
    none: Directions = {}
    directions: list[Directions] = [none] * len(block.constants) + list(tangents)
    for row, y in zip(block.rows(), nodes[block.first_operation :], strict=True):
        if y.value is not None or not any(directions[x] for x in differentiable(*row)):
            directions.append(none)
        else:
            directions.append(_tangents(row, y, nodes, directions))
    return [directions[k] for k in block.outputs.tolist()]


def _tangents(
    row: tuple[int, int, int, int], y: Scalar, nodes: Sequence[Scalar], directions: Sequence[Directions]
) -> Directions:
    op, operands = row[0], row[1 : 1 + O.OPERATIONS[row[0]].arity]
    if op in (O.ADD, O.SUB) and not directions[operands[1]]:
        return directions[operands[0]]
    x = tuple(nodes[k] for k in operands)
    zero = y.recorder.zero
    chosen = choice(op, x)
    tangents: Directions = {}
    if chosen is not None:
        condition, yes, no = chosen
        first, second = directions[operands[yes]], directions[operands[no]]
        for d in first | second:
            tangents[d] = condition.where(first.get(d, zero), second.get(d, zero))
    elif op == O.MUL and operands[0] == operands[1]:
        twice = 2.0 * x[0]
        tangents = {d: twice * t for d, t in directions[operands[0]].items()}
    else:
        for k, slope in zip(operands, partials(op, x, y), strict=True):
            for d, t in directions[k].items():
                term = slope * t
                known = tangents.get(d)
                tangents[d] = term if known is None else known + term
    return {d: t for d, t in tangents.items() if t.value != 0.0}


# -- reverse ---------------------------------------------------------------------------------------------
def pull_back(
    block: Block, nodes: Sequence[Scalar], adjoints: Sequence[Directions], wanted: Sequence[Any]
) -> list[Directions]:
    """The adjoints of the wanted inputs (of the others: none) for those of the outputs.

    What a `where`, min or max does not take gets its adjoint under a guard: the products of the chain rule are
    formed inside, so that the slope of a branch not taken, be it ∞, never meets a 0.
    """
    active = depends(block, wanted)
    bars: list[dict[int, _Guarded]] = [{} for _ in nodes]
    for number, directions in zip(block.outputs.tolist(), adjoints, strict=True):
        if active[number]:
            for d, bar in directions.items():
                _add(bars[number].setdefault(d, {}), (), bar)
    first = block.first_operation
    rows = block.rows()
    for k in range(first + len(rows) - 1, first - 1, -1):
        if bars[k] and nodes[k].value is None:
            merged = {d: _merged(nodes[k].recorder, terms) for d, terms in bars[k].items()}
            _contribute(rows[k - first], nodes[k], nodes, merged, active, bars)
    inputs = zip(nodes[block.first_input : first], bars[block.first_input : first], strict=True)
    totals = [{d: _total(x.recorder, _merged(x.recorder, terms)) for d, terms in bar.items()} for x, bar in inputs]
    return [{d: bar for d, bar in directions.items() if bar.value != 0.0} for directions in totals]


def _contribute(
    row: tuple[int, int, int, int],
    y: Scalar,
    nodes: Sequence[Scalar],
    merged: dict[int, _Guarded],
    active: Sequence[bool],
    bars: list[dict[int, _Guarded]],
) -> None:
    """Add one operation's adjoints, times its slopes, to those of its operands."""
    op, operands = row[0], row[1 : 1 + O.OPERATIONS[row[0]].arity]
    x = tuple(nodes[k] for k in operands)
    chosen = choice(op, x)
    if chosen is not None:
        condition, yes, no = chosen
        for place, holds in ((yes, True), (no, False)):
            if active[operands[place]]:
                for d, terms in merged.items():
                    target = bars[operands[place]].setdefault(d, {})
                    for guard, bar in terms.items():
                        inner = _within(guard, condition, holds)
                        if inner is not None:
                            _add(target, inner, bar)
        return
    if op == O.MUL and operands[0] == operands[1]:
        operands, slopes = operands[:1], (2.0 * x[0],)
    else:
        slopes = partials(op, x, y)
    for k, slope in zip(operands, slopes, strict=True):
        if active[k]:
            for d, terms in merged.items():
                target = bars[k].setdefault(d, {})
                for guard, bar in terms.items():
                    _add(target, guard, slope * bar)


def _add(terms: _Guarded, guard: _Guard, bar: Scalar) -> None:
    if bar.value != 0.0:
        known = terms.get(guard)
        terms[guard] = bar if known is None else known + bar


def _within(guard: _Guard, condition: Scalar, holds: bool) -> _Guard | None:
    """The guard with one more condition; None if they exclude each other."""
    if condition.value is not None:
        return guard if bool(condition) is holds else None
    if (condition.index, holds) in guard:
        return guard
    return None if (condition.index, not holds) in guard else (*guard, (condition.index, holds))


def _merged(recorder: Recorder, terms: _Guarded) -> _Guarded:
    """The same adjoint under as few guards as is safe.

    Two sides of one condition become a `where`. A value that also counts unguarded had better have finite
    slopes, so its guards are given up; so are more than a few, whose number would multiply upstream.
    """
    if len(terms) < 2:
        return terms
    terms = dict(terms)
    for length in range(max(map(len, terms)), 0, -1):
        for guard in [g for g in terms if len(g) == length]:
            condition, holds = guard[-1]
            other = (*guard[:-1], (condition, not holds))
            if guard in terms and other in terms:
                mine, theirs = terms.pop(guard), terms.pop(other)
                yes, no = (mine, theirs) if holds else (theirs, mine)
                _add(terms, guard[:-1], recorder.nodes[condition].where(yes, no))
    if len(terms) > _GUARDS or (() in terms and len(terms) > 1):
        return {(): _total(recorder, terms)}
    return terms


def _total(recorder: Recorder, terms: _Guarded) -> Scalar:
    """The sum of adjoints, each 0 where its guard does not hold."""
    total = recorder.zero
    for guard, bar in terms.items():
        for condition, holds in reversed(guard):
            node = recorder.nodes[condition]
            bar = node.where(bar, 0.0) if holds else node.where(0.0, bar)
        total = total + bar
    return total
