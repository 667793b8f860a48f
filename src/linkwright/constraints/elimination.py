"""Least-norm solutions of J δ = b by a block elimination of S = J W⁻¹ Jᵀ whose order is fixed beforehand.

One block row per constraint. S = L D Lᵀ with a generalised inverse of every D: an equation that repeats those before it
has a pivot that is lost in rounding and is left out, so that redundant equations need no care. The statements are
scans over lists of small dense products: neither code nor compile time grows with the mechanism, and the time of a
mechanism whose loops are far apart grows with their number.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from linkwright.base.locks import cached_property
from linkwright.constraints.form_programs import each, entry, row
from linkwright.constraints.split_elimination import (
    MANY,
    MANY_NAMED,
    End,
    Incidence,
    Item,
    cut,
    in_runs,
    order_in_rounds,
    welds_first,
)
from linkwright.spatial.algebra import Array, Limit, Pivoted, swept, symmetric_product, unpack_symmetric
from linkwright.tape.block import Block, where
from linkwright.tape.build import ProgramBuilder, Ref, trace
from linkwright.tape.program import Case, Copy, Each, Zero

#: A pivot below this part of its row's own size is lost, if the constraints can be met: about the square of an angle
#: between equations.
RANK_TOLERANCE = 1e-11


def order(
    neighbours: Sequence[set[int]], before: Sequence[set[int]] | None = None
) -> tuple[list[int], list[list[int]]]:
    """An elimination order of small fill (least degree first), and for each node in it those that it leaves behind.

    `before` are the nodes that must go before each.
    """
    around = [set(n) for n in neighbours]
    waits = [set(n) for n in before] if before is not None else [set() for _ in around]
    released: list[list[int]] = [[] for _ in around]
    for k, others in enumerate(waits):
        for i in others:
            released[i].append(k)
    heap = [(len(n), k) for k, n in enumerate(around) if not waits[k]]
    heapq.heapify(heap)
    done = [False] * len(around)
    sequence: list[int] = []
    left: list[list[int]] = []
    while heap:
        degree, k = heapq.heappop(heap)
        if done[k] or degree != len(around[k]):
            continue
        done[k] = True
        others = around[k]
        sequence.append(k)
        left.append(sorted(others))
        for i in released[k]:
            waits[i].discard(k)
        for i in others:
            around[i] |= others
            around[i] -= {i, k}
        for i in {*others, *released[k]}:
            if not waits[i]:
                heapq.heappush(heap, (len(around[i]), i))
    return sequence, left


class Elimination:
    """The order, the fill and the lists of products for constraints of these sizes on these bodies.

    `sizes` and `first` go on, after the constraints, with what welds the pieces of bodies that were cut. With `named`
    every equation that repeats others is among the constraints; else it may be a weld's. `in_rounds`, those that do not
    touch each other are eliminated side by side; else the order is that of the least fill.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        incidences: Sequence[Incidence],
        width: int = 6,
        *,
        named: bool = True,
        in_rounds: bool = False,
    ) -> None:
        self.incidences, self.width = list(incidences), width
        self.constraints, self.count = len(sizes), sum(sizes)
        self.ends, welds = cut(len(sizes), self.incidences, MANY_NAMED if named else MANY)
        self.sizes = [*sizes, *[width] * welds]
        self.first = np.concatenate([[0], np.cumsum(self.sizes)]).astype(int).tolist()
        on_body: dict[int, list[End]] = {}
        for x in self.ends:
            on_body.setdefault(x.piece, []).append(x)
        neighbours: list[set[int]] = [set() for _ in self.sizes]
        for group in on_body.values():
            members = {x.constraint for x in group}
            for c in members:
                neighbours[c] |= members - {c}
        self.in_rounds = in_rounds
        if in_rounds:
            self.sequence, self.left, self.rounds = order_in_rounds(neighbours)
        else:
            before = welds_first(self.ends, len(self.sizes)) if named else None
            self.sequence, self.left = order(neighbours, before)
            self.rounds = [0] * len(self.sequence)
        position = {c: k for k, c in enumerate(self.sequence)}
        # Block (i, k), i after k in the order, is kept at blocks[i, k]; diagonal blocks too.
        self.blocks: dict[tuple[int, int], int] = {}
        at = 0
        for k, others in zip(self.sequence, self.left, strict=True):
            for i in (k, *others):
                self.blocks[i, k] = at
                at += self.sizes[i] * self.sizes[k]
        self.store = at
        self.pairs = [
            (x, y) if position[x.constraint] >= position[y.constraint] else (y, x)
            for group in on_body.values()
            for a, x in enumerate(group)
            for y in group[: a + 1]
        ]

    @cached_property
    def last_of_loops(self) -> set[int]:
        """Those that are eliminated when the pieces that they hold are joined already: the last of each loop. Equations
        of the others cannot repeat what went before."""
        ground = -1
        held: dict[int, set[int]] = {}
        for x in self.ends:
            held.setdefault(x.constraint, set()).add(x.piece)
        joined: dict[int, int] = {}

        def root(piece: int) -> int:
            while joined.setdefault(piece, piece) != piece:
                joined[piece] = joined[joined[piece]]
                piece = joined[piece]
            return piece

        last: set[int] = set()
        for k in self.sequence:
            pieces = held.get(k, set())
            roots = {root(piece) for piece in (pieces if len(pieces) > 1 else {*pieces, ground})}
            if len(roots) == 1:
                last.add(k)
            one = min(roots)
            joined.update(dict.fromkeys(roots, one))
        return last

    def later(self, i: int, j: int) -> tuple[int, int]:
        """A pair of constraints, the one that is eliminated later first."""
        return (i, j) if (i, j) in self.blocks else (j, i)


Key = tuple[Any, ...]


class Solver:
    """Statements that factor S and solve with it, on the buffers of a program under construction.

    `jacobian` keeps the parts of J, `weights` the six entries of W⁻¹ for every body; `damping` is one number, by which
    the diagonal of S is enlarged, and `tolerance` another: a pivot below this part of its row's own size is lost. With
    `by_size`, pivots of the last constraint of each loop are chosen by size when the code runs, so that rows that are
    nearly dependent for a moment wait; else they are in the order of the rows, by which redundant ones are named.
    """

    def __init__(
        self,
        builder: ProgramBuilder,
        plan: Elimination,
        jacobian: Ref,
        weights: Ref,
        damping: Ref,
        tolerance: Ref,
        *,
        by_size: bool = False,
    ) -> None:
        self.b, self.plan, self.tolerance = builder, plan, tolerance
        self._last_of_loops = plan.last_of_loops if by_size else set()
        self.jacobian, self.weights, self.damping = jacobian, weights, damping
        count = sum(plan.sizes)
        self._inside = builder.temporary("inside", (count,)) if count > plan.count else None
        self.s = builder.temporary("S", (plan.store,))
        self.l = builder.temporary("L", (plan.store,))
        self.g = builder.temporary("G", (sum(m * m for m in plan.sizes),))
        self.scale = builder.temporary("scale", (count,))
        self.pivots = builder.temporary("pivots", (plan.count,))
        self._weld_pivots = builder.temporary("pivots of welds", (max(count - plan.count, 1),))
        self._g_at = np.concatenate([[0], np.cumsum([m * m for m in plan.sizes])]).astype(int).tolist()
        #: Constraints of one equation that give way by this part of their multiplier: J δ + c λ = b.
        self.compliance: dict[int, float] = {}

    def _scan(self, items: Sequence[Item], case: Any) -> None:
        """Run the items in order, or level by level in rounds; those with equal keys share a case."""
        if not items:
            return
        runs = None
        if self.plan.in_rounds:
            order, begins = in_runs(items)
            items, runs = [items[k] for k in order], self.b.column(begins)
        keys = list(dict.fromkeys(key for _, key, _, _ in items))
        number = {key: k for k, key in enumerate(keys)}
        columns = [self.b.column(column) for column in np.array([places for _, _, places, _ in items]).T]
        cases = tuple(case(key, columns) for key in keys)
        dispatch = self.b.column([number[key] for _, key, _, _ in items]) if len(keys) > 1 else None
        self.b.add(Each(len(items), cases, "outward", dispatch, runs))

    # -- factors --------------------------------------------------------------------------------------------
    def factor(self) -> None:
        """S = J W⁻¹ Jᵀ, its diagonal enlarged, and S = L D Lᵀ."""
        plan, sizes = self.plan, self.plan.sizes
        self.b.add(Zero(self.s.operand))
        self._products()
        self._yield(self.s, [plan.blocks[k, k] for k in self.compliance], None)
        diagonal: list[Item] = [
            (0, (k >= plan.constraints, sizes[k]), (plan.blocks[k, k], plan.first[k], 0), k) for k in plan.sequence
        ]
        self._scan(diagonal, self._diagonal_case)
        items: list[Item] = []
        for k, others, number in zip(plan.sequence, plan.left, plan.rounds, strict=True):
            key: Key = ("pivot", sizes[k], k >= plan.constraints, k in self._last_of_loops)
            items.append((3 * number, key, (plan.blocks[k, k], self._g_at[k], plan.first[k]), k))
            for i in others:
                at = plan.blocks[i, k]
                items.append((3 * number + 1, ("scale", sizes[i], sizes[k]), (at, self._g_at[k], 0), at))
            for a, i in enumerate(others):
                for j in others[: a + 1]:
                    later, sooner = plan.later(i, j)
                    places = (plan.blocks[later, k], plan.blocks[sooner, k], plan.blocks[later, sooner])
                    key = ("update", sizes[later], sizes[sooner], sizes[k], later == sooner)
                    items.append((3 * number + 2, key, places, places[2]))
        self._scan(items, self._factor_case)

    def _products(self) -> None:
        """S = Σ over bodies, or their pieces, of the products of what is on them."""
        plan, sizes, w = self.plan, self.plan.sizes, self.plan.width
        groups: dict[Key, list[tuple[int, int, int, int]]] = {}
        for x, y in plan.pairs:
            i, k = x.constraint, y.constraint
            key = (sizes[i], sizes[k], x.sign, y.sign, x.share, x is y)
            groups.setdefault(key, []).append((x.at, y.at, x.body, plan.blocks[i, k]))
        for (m, n, one, other, share, same), rows in groups.items():
            begins = None
            if plan.in_rounds:
                order, begins = in_runs([(0, 0, (), row[3]) for row in rows])
                rows = [rows[k] for k in order]
            first, second, body, to = (self.b.column(column) for column in np.array(rows).T)
            inputs = [] if one else [entry(self.jacobian, first, (m, w))]
            inputs += [] if other or same else [entry(self.jacobian, second, (n, w))]
            inputs.append(row(self.weights, body))
            block = product_block(m, n, w, one, other, share, same)
            case = self.b.case(block, inputs, [entry(self.s, to, (m, n), add=True)])
            runs = None if begins is None else self.b.column(begins)
            self.b.add(Each(len(rows), (case,), "outward", None, runs))

    def _yield(self, target: Ref, places: list[int], multipliers: Ref | None) -> None:
        """target += c, or target −= c λ, at these places."""
        if not places:
            return
        part = self.b.data(self.b.free_name("compliance"), np.array(list(self.compliance.values())))
        inputs, output = [entry(part)], entry(target, self.b.column(places), (1,), add=True)
        if multipliers is None:
            each(self.b, len(places), lambda c: c, inputs, [output])
        else:
            inputs.append(entry(multipliers, self.b.column([self.plan.first[k] for k in self.compliance])))
            each(self.b, len(places), lambda c, x: -c * x, inputs, [output])

    def give_way(self, multipliers: Ref, rates: Ref) -> None:
        """rates −= c multipliers."""
        self._yield(rates, [self.plan.first[k] for k in self.compliance], multipliers)

    def _diagonal_case(self, key: Key, columns: Sequence[int]) -> Case:
        welds, m = key
        block = entry(self.s, columns[0], (m, m))
        inputs = [block] if welds else [block, self.damping]
        return self.b.case(diagonal_block(m, welds), inputs, [block, entry(self.scale, columns[1], (m,))])

    def _factor_case(self, key: Key, columns: Sequence[int]) -> Case:
        one, two, three = columns
        if key[0] == "pivot":
            m, welds, by_size = key[1:]
            inputs = [entry(self.s, one, (m, m)), entry(self.scale, three, (m,)), self.tolerance]
            pivots = self._weld_pivots.part(-self.plan.count, (m,)).at((1, three)) if welds else None
            outputs = [entry(self.g, two, (m, m)), pivots or entry(self.pivots, three, (m,))]
            return self.b.case(pivot_block(m, by_size), inputs, outputs)
        if key[0] == "scale":
            m, n = key[1:]
            inputs = [entry(self.s, one, (m, n)), entry(self.g, two, (n, n))]
            return self.b.case(scale_block(m, n), inputs, [entry(self.l, one, (m, n))])
        m, n, k, same = key[1:]
        inputs = [entry(self.l, one, (m, k)), entry(self.s, two, (n, k))]
        return self.b.case(update_block(m, n, k, same), inputs, [entry(self.s, three, (m, n), add=True)])

    # -- solutions ------------------------------------------------------------------------------------------
    def solve(self, rhs: Ref, multipliers: Ref) -> None:
        """multipliers = S⁺ rhs, zero for equations that were left out."""
        plan, sizes = self.plan, self.plan.sizes
        asked = multipliers
        if self._inside is not None:  # welds are asked for nothing, and what they answer is nobody's business
            multipliers = self._inside
            self.b.add(Zero(multipliers.operand))
        self.b.add(Copy(rhs.operand, multipliers.part(0, (plan.count,)).operand))
        down: list[Item] = []
        divide: list[Item] = []
        for k, others, number in zip(plan.sequence, plan.left, plan.rounds, strict=True):
            for i in others:
                places = (plan.blocks[i, k], plan.first[k], plan.first[i])
                down.append((number, ("down", sizes[i], sizes[k]), places, i))
            divide.append((0, ("divide", sizes[k]), (self._g_at[k], plan.first[k], 0), k))
        # What is divided in one scan must not be read by a later row of it undivided: two scans.
        self._scan(down, self._solve_case(multipliers))
        self._scan(divide, self._solve_case(multipliers))
        up: list[Item] = []
        for k, others, number in zip(reversed(plan.sequence), reversed(plan.left), reversed(plan.rounds), strict=True):
            for i in others:
                places = (plan.blocks[i, k], plan.first[i], plan.first[k])
                up.append((-number, ("up", sizes[i], sizes[k]), places, k))
        self._scan(up, self._solve_case(multipliers))
        if multipliers is not asked:
            self.b.add(Copy(multipliers.part(0, (plan.count,)).operand, asked.operand))

    def _solve_case(self, x: Ref) -> Any:
        def case(key: Key, columns: Sequence[int]) -> Case:
            one, two, three = columns
            if key[0] == "divide":
                m = key[1]
                part = entry(x, two, (m,))
                return self.b.case(times_block(m, m, 1.0), [entry(self.g, one, (m, m)), part], [part])
            m, n = key[1:]
            if key[0] == "down":
                inputs = [entry(self.l, one, (m, n)), entry(x, two, (n,))]
                return self.b.case(times_block(m, n, -1.0), inputs, [entry(x, three, (m,), add=True)])
            inputs = [entry(self.l, one, (m, n)), entry(x, two, (m,))]
            return self.b.case(transposed_block(m, n, -1.0), inputs, [entry(x, three, (n,), add=True)])

        return case

    def pull(self, multipliers: Ref, twists: Ref, *, clear: bool = True) -> None:
        """twists += Jᵀ multipliers; W⁻¹ is left to the caller."""
        if clear:
            self.b.add(Zero(twists.operand))
        plan, w = self.plan, self.plan.width
        items: list[Item] = [
            (0, (plan.sizes[x.constraint],), (x.at, plan.first[x.constraint], w * x.body), x.body)
            for x in plan.incidences
        ]

        def case(key: Key, columns: Sequence[int]) -> Case:
            inputs = [entry(self.jacobian, columns[0], (key[0], w)), entry(multipliers, columns[1], key)]
            return self.b.case(transposed_block(key[0], w, 1.0), inputs, [entry(twists, columns[2], (w,), add=True)])

        self._scan(items, case)

    def push(self, twists: Ref, rates: Ref, sign: float) -> None:
        """rates += sign · J twists."""
        plan, w = self.plan, self.plan.width
        items: list[Item] = [
            (0, (plan.sizes[x.constraint],), (x.at, w * x.body, plan.first[x.constraint]), x.constraint)
            for x in plan.incidences
        ]

        def case(key: Key, columns: Sequence[int]) -> Case:
            inputs = [entry(self.jacobian, columns[0], (key[0], w)), entry(twists, columns[1], (w,))]
            return self.b.case(times_block(key[0], w, sign), inputs, [entry(rates, columns[2], key, add=True)])

        self._scan(items, case)


# -- the small products -------------------------------------------------------------------------------------------
@cache
def product_block(m: int, n: int, width: int, one: int, other: int, share: int, same: bool) -> Block:
    """J W⁻¹ Jᵀ of two parts of J on a piece that has a share of its body; a weld's part is ±1 and not given."""

    def product(*arrays: Array) -> Array:
        parts = iter(arrays[:-1])
        weight = arrays[-1] * float(share) if share > 1 else arrays[-1]
        a = one * np.eye(width) if one else next(parts)
        if same:
            return unpack_symmetric(symmetric_product(a, (a * weight).T), m)
        return (a * weight) @ (other * np.eye(width) if other else next(parts)).T

    parts = [(m, width)] * (not one) + [(n, width)] * (not other and not same)
    return trace(product, [*parts, (width,)])[0]


@cache
def diagonal_block(m: int, stiff: bool) -> Block:
    """The diagonal enlarged, unless it must be stiff, and as it was."""

    def outputs(s: Array, damping: Array = (0.0,)) -> tuple[Array, Array]:
        scale = np.array([s[k, k] for k in range(m)])
        larger = [[s[i, k] * (1.0 + damping[0]) if i == k else s[i, k] for k in range(m)] for i in range(m)]
        return np.array(larger), scale

    return trace(outputs, [(m, m)] if stiff else [(m, m), (1,)])[0]


@cache
def pivot_block(m: int, by_size: bool) -> Block:
    """A generalised inverse, and the pivots as parts of the rows' own sizes."""

    def outputs(s: Array, scale: Array, tolerance: Array) -> tuple[Array, Array]:
        if by_size:
            sizes = np.array([where(x > 0.0, x, 1.0) for x in scale])
            factors = Pivoted(s, sizes, [Limit(tolerance[0], sizes)] * m)
            return factors.solve(np.eye(m)), np.array(factors.parts())
        inverse, pivots = swept(s, scale, tolerance[0])
        return inverse, np.array([p / n for p, n in zip(pivots, scale, strict=True)])

    return trace(outputs, [(m, m), (m,), (1,)])[0]


@cache
def scale_block(m: int, n: int) -> Block:
    return trace(lambda s, g: s @ g, [(m, n), (n, n)])[0]


@cache
def update_block(m: int, n: int, k: int, same: bool) -> Block:
    """−A Sᵀ, which is symmetric for one row's own block."""

    def product(a: Array, s: Array) -> Array:
        return -(unpack_symmetric(symmetric_product(s, a.T), m) if same else a @ s.T)

    return trace(product, [(m, k), (n, k)])[0]


@cache
def times_block(m: int, n: int, sign: float) -> Block:
    return trace(lambda a, x: sign * (a @ x), [(m, n), (n,)])[0]


@cache
def transposed_block(m: int, n: int, sign: float) -> Block:
    return trace(lambda a, x: sign * (a.T @ x), [(m, n), (m,)])[0]
