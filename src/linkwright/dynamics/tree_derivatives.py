"""First derivatives of the dynamics of trees as programs: what recursions give in straight code, what follows for
each rate and each pair of related rates over rates that stand side by side.

The formulas are those of `dynamics_derivatives`. Rates are numbered here in depth-first order, so that those of a path
without branches are neighbours: a group. A statement over rates runs group by group, and its back-end may compute
neighbours in the lanes of vectors. With α and a the accelerations that joints add to those at a = 0, for links and for
rates, and Y J of what a rate moves, the wrench of a joint grows by

    f − f₀ = Y α_p + Σ (Y J) a   over the rates of the joint and of those below.

M⁻¹ acts on columns: M = LᵀDL, L⁻ᵀ first, which keeps rows that are not related to a column zero, then D⁻¹ and L⁻¹.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwright.dynamics import dynamics_derivatives as formulas
from linkwright.dynamics.dynamics_derivatives import Inertia, Matrix, Motion
from linkwright.dynamics.methods.ltdl_factor import Factor, factorise
from linkwright.dynamics.rate_tables import Lanes, RateOrder, Table, beside
from linkwright.dynamics.traversals.traversal import Unrolled, depth_first
from linkwright.model.tree import Tree
from linkwright.spatial.algebra import Array, dot, inertia_times, motion_cross
from linkwright.spatial.rotation import General, Transform
from linkwright.tape.block import equal, less_equal, where
from linkwright.tape.build import ProgramBuilder, Ref, Wiring, trace, with_every_input
from linkwright.tape.program import ITEM, Case, Each, Solve

BODY = ("mass", "moment", "inertia")


class TreeDerivatives:
    """Adds to a program what derivatives of a tree's dynamics need, for inputs q and v, in the order of rates above.

    `first` begins; `mass_matrix`, then `accelerations` or `solved_accelerations`; then `force_derivatives`.
    """

    def __init__(self, builder: ProgramBuilder, tree: Tree) -> None:
        self.builder, self.tree = builder, tree
        self.order = RateOrder(tree)
        self.n = n = len(self.order)
        self.geared = False
        body = {"mass": 1, "moment": 3, "inertia": 6}
        carried = {**body, "p": 3, "b": 9, "f0": 6}
        #: The last one is ground.
        self.placed = Table(builder, "links", {"R": 9, "o": 3, "w": 6, "b": 6, **body}, tree.n + 1)
        self.bodies = Table(builder, "bodies", carried, tree.n)
        self.motions = Table(builder, "rates", {"J": 6, "v": 6, "both": 6, "b0": 6, "rotor": 1}, n)
        self.carried = Table(builder, "carried", carried, n)
        self.rows = Table(builder, "force rows", {"YJ": 6, "BJ": 3, "V": 6, "dotA": 6, "Fv": 6, "bias": 1}, n)
        self.added = Table(builder, "added accelerations", {"alpha": 6, "g": 6}, n)
        self.turned = Table(builder, "turned forces", {"A": 6, "Fq": 6}, n)
        self.number = builder.data(builder.free_name("rate"), np.arange(n))
        self.m = builder.temporary(builder.free_name("mass"), (n, n))
        #: ∂τ/∂q and ∂τ/∂v; what is not related is not set.
        self.by_q, self.by_v = (builder.temporary(builder.free_name(f"force by {x}"), (n, n)) for x in "qv")

    # -- statements over rates ----------------------------------------------------------------------------
    def _each(self, cases: Sequence[Case], which: Sequence[int]) -> None:
        """A statement over rates; `which` is the case of each group."""
        groups = self.order.groups
        runs = self.builder.column([*(group[0] for group in groups), self.n])
        dispatch = self.builder.column([which[g] for g, group in enumerate(groups) for _ in group])
        self.builder.add(Each(self.n, tuple(cases), "outward", dispatch if len(cases) > 1 else None, runs))

    def _each_rate(self, record: Callable[[bool], Lanes]) -> None:
        """A statement with the same for all groups, but for motions of several rates: record(whether it is one)."""
        several = [any(self.order.rates[n].together > 1 for n in group) for group in self.order.groups]
        kinds = sorted(set(several))
        cases = [record(kind).wiring.case(self.builder) for kind in kinds]
        self._each(cases, [kinds.index(kind) for kind in several])

    def each_group(self, record: Callable[[int, range], Wiring]) -> None:
        """A statement with a case for each group."""
        cases = [record(g, group).case(self.builder) for g, group in enumerate(self.order.groups)]
        self._each(cases, range(len(cases)))

    def first(self, block: Any, inputs: Sequence[Ref]) -> None:
        """Run the block of `recursion`, and what follows for each link and rate without accelerations of joints."""
        tables = [self.placed.ref, self.motions.ref]
        self.builder.add(Each(1, (self.builder.case(with_every_input(block), inputs, tables),)))
        case = self._body().wiring.case(self.builder)
        self.builder.add(Each(self.tree.n, (case,), "outward", None, self.builder.column([0, self.tree.n])))
        self.builder.call(self._carry, [self.bodies.ref], [self.carried.ref])
        self._each_rate(self._rate_rows)

    def recursion(self, traversal: Unrolled, gravity: Array) -> tuple[Array, Array]:
        """The numbers of every link and of every rate at a = 0, as `placed` and `motions` have them; to be recorded."""
        motion = Motion(traversal, gravity)
        b, before = motion.accelerations(None)
        links, rates = [], []
        self.geared = any(link.geared for link in traversal.links)
        for i, link in enumerate(traversal.links):
            place = motion.place[i]
            pose = (*place.rotation.matrix().reshape(-1), *place.p)
            links.append([*pose, *motion.velocity[i], *b[i], link.mass, *link.moment, *link.inertia])
        ground = motion.ground
        pose = (*ground.rotation.matrix().reshape(-1), *ground.p)
        links.append([*pose, *np.zeros(6), *motion.ground_acceleration, *np.zeros(10)])
        for r in self.order.rates:
            i, k = r.link, r.index
            link = traversal.links[i]
            both = motion.both(i) if r.together > 1 else 2.0 * motion.before[i][k]
            rotor = link.armature if link.geared else 0.0
            rates.append([*motion.columns[i][k], *motion.before[i][k], *both, *before[i][k], rotor])
        return np.array(links, dtype=object).T, np.array(rates, dtype=object).T

    def _body(self) -> Lanes:
        """What a body has by itself, in the common frame."""
        lanes = Lanes(self.placed, target=self.bodies)
        place = Transform(General(lanes.here("R").reshape(3, 3)), lanes.here("o"))
        body = place.rigid(*(lanes.here(field)[0] if field == "mass" else lanes.here(field) for field in BODY))
        w = lanes.here("w")
        momentum, b = formulas.momentum_and_b(body, w)
        for field, values in zip(BODY, ([body[0]], *body[1:]), strict=True):
            lanes.leave(field, values)
        lanes.leave("p", momentum[:3])
        lanes.leave("b", b.reshape(-1))
        lanes.leave("f0", formulas.own_wrench(body, w, lanes.here("b")))
        return lanes

    def _carry(self, bodies: Array) -> Array:
        """What each rate carries: the sums over its link and what is below."""
        total = list(bodies.T)
        for i in reversed(depth_first(self.tree.parent.tolist())):
            if self.tree.parent[i] >= 0:
                total[self.tree.parent[i]] = total[self.tree.parent[i]] + total[i]
        return np.array([total[r.link] for r in self.order.rates], dtype=object).T

    def _carried(self, lanes: Lanes) -> tuple[Inertia, Array, Array]:
        inertia = lanes.here("mass")[0], lanes.here("moment"), lanes.here("inertia")
        return inertia, lanes.here("p"), lanes.here("b").reshape(3, 3)

    def _rate_rows(self, several: bool) -> Lanes:
        lanes = Lanes(self.motions, self.carried, target=self.rows)
        carried, j = self._carried(lanes), lanes.here("J")
        v = motion_cross(lanes.here("v"), j)
        dot_a = motion_cross(lanes.here("both"), j) if several else 2.0 * v
        yj, bj = formulas.force_rows(*carried, j)
        for field, values in (("YJ", yj), ("BJ", bj), ("V", v), ("dotA", dot_a)):
            lanes.leave(field, values)
        lanes.leave("Fv", formulas.force_by_rate(*carried, j, dot_a))
        lanes.leave("bias", [dot(j, lanes.here("f0"))])
        return lanes

    def mass_matrix(self) -> None:
        """The lower triangle of M of related rates; what stands above it has no meaning."""

        def record(g: int, group: range) -> Wiring:
            lanes = Lanes(self.motions, self.rows)
            j, number, rotor = lanes.here("J"), self.number_here(lanes), lanes.here("rotor")[0]
            for m in self.order.related[g]:
                if m >= group[0]:
                    entry = dot(lanes.of("YJ", m), j)
                    if self.geared and m in group:
                        entry = entry + where(equal(number, float(m)), rotor, 0.0)
                    lanes.wiring.write(beside(self.m, m, self.n), [entry])
            return lanes.wiring

        self.each_group(record)

    def number_here(self, lanes: Lanes) -> Any:
        """The number of the rate whose turn it is."""
        return lanes.wiring.read(self.number.part(0, (1,)).at((1, ITEM)).operand)[0]

    def lower(self, m: Array) -> Matrix:
        """The lower triangle of M from the numbers of `m`, as lists, with zeros in place."""
        lower: Matrix = [[0.0] * self.n for _ in range(self.n)]
        for n in range(self.n):
            for k in (n, *self.order.above(n)):
                lower[n][k] = m[n, k]
        return lower

    # -- accelerations of joints ----------------------------------------------------------------------------
    def accelerations(self, a: Ref) -> None:
        """What accelerations a (nv), as the mechanism numbers them, add to links and forces."""

        def add(a: Array, j: Array, yj: Array) -> tuple[Array, Array]:
            return self._sums([a[k] for k in self.order.numbers], j, yj)

        columns = [self._whole(self.motions, "J"), self._whole(self.rows, "YJ")]
        self.builder.call(add, [a, *columns], [self.added.ref.part(k * 6 * self.n, (6, self.n)) for k in (0, 1)])

    def _whole(self, table: Table, field: str) -> Ref:
        return Ref(table.whole(field), (table.at[field][1], self.n))

    def _sums(self, a: Sequence[Any], j: Array, yj: Array) -> tuple[Array, Array]:
        """α before each rate, and Σ (Y J) a of its motion and of what is below."""
        order = self.order
        alpha: list[Array] = []
        g: list[Array] = [np.zeros(6)] * self.n
        for n, r in enumerate(order.rates):
            start = n - r.index if r.together > 1 else n
            p = order.parent[start]
            alpha.append(np.zeros(6) if p < 0 else alpha[start] if n > start else self._after(alpha, a, j, p))
        for n in reversed(range(self.n)):
            g[n] = g[n] + yj[:, n] * a[n]
            if order.parent[n] >= 0:
                g[order.parent[n]] = g[order.parent[n]] + g[n]
        firsts = [n - r.index if r.together > 1 else n for n, r in enumerate(order.rates)]
        return np.array(alpha, dtype=object).T, np.array([g[n] for n in firsts], dtype=object).T

    def _after(self, alpha: list[Array], a: Sequence[Any], j: Array, n: int) -> Array:
        """α after a rate, and after the others of its motion."""
        r = self.order.rates[n]
        start = n - r.index if r.together > 1 else n
        total = alpha[start]
        for k in range(start, n + 1):
            total = total + j[:, k] * a[k]
        return total

    def force_derivatives(self) -> None:
        """∂τ/∂q and ∂τ/∂v of related rates, where the accelerations are known."""
        self._each_rate(self._turned_forces)
        self.each_group(self._pairs)

    def _turned_forces(self, several: bool) -> Lanes:
        lanes = Lanes(self.motions, self.carried, self.rows, self.added, target=self.turned)
        carried, j, alpha = self._carried(lanes), lanes.here("J"), lanes.here("alpha")
        a = formulas.a_column(lanes.here("b0") + alpha, lanes.here("v"), j)
        f = lanes.here("f0") + inertia_times(*carried[0], alpha) + lanes.here("g")
        lanes.leave("A", a)
        lanes.leave("Fq", formulas.force_by_coordinate(*carried, j, lanes.here("V"), a, f))
        return lanes

    def _pairs(self, g: int, group: range) -> Wiring:
        lanes = Lanes(self.motions, self.rows, self.turned)
        number = self.number_here(lanes)
        j, a, v, dot_a = (lanes.here(field) for field in ("J", "A", "V", "dotA"))
        fq, fv = lanes.here("Fq"), lanes.here("Fv")
        for m in self.order.related[g]:
            entries = []
            if m < group[-1]:  # some of the group are below
                entries.append([dot(lanes.of("J", m), force) for force in (fq, fv)])
            if m >= group[0]:  # and some at or above
                rows = lanes.of("YJ", m), lanes.of("BJ", m)
                whole = [(a, v), (dot_a, j)]
                entries.append([formulas.moved_as_a_whole(*rows, *columns) for columns in whole])
            by_q, by_v = entries[0]
            if len(entries) > 1:
                above = less_equal(number, float(self.order.last[m]))
                by_q, by_v = (where(above, high, low) for low, high in zip(*entries, strict=True))
            lanes.wiring.write(beside(self.by_q, m, self.n), [by_q])
            lanes.wiring.write(beside(self.by_v, m, self.n), [by_v])
        return lanes.wiring

    # -- M⁻¹ on columns ---------------------------------------------------------------------------------------
    def by_a_solver(self, tau: Ref, outputs: Sequence[Ref]) -> None:
        """`solved_accelerations` to `minus_inverse` with solvers for M: for deep trees, whose factors are many."""
        n, builder, numbers = self.n, self.builder, self.order.numbers
        driving, solved, a = (builder.temporary(builder.free_name(x), (n,)) for x in ("driving", "solved", "a"))
        right, solution = (builder.temporary(builder.free_name(x), (n, 3 * n)) for x in ("right", "solution"))
        parent = builder.column(self.order.parent)

        def drive(tau: Array, bias: Array) -> Array:
            return np.array([tau[k] - x for k, x in zip(numbers, bias[0], strict=True)], dtype=object)

        block, _, _ = trace(drive, [(n,), (1, n)])
        sources = [tau, self._whole(self.rows, "bias")]
        builder.add(Each(1, (builder.case(with_every_input(block), sources, [driving]),)))
        builder.add(Solve("ltl", self.m.operand, driving.operand, solved.operand, n, n, 1, parent))
        builder.call(lambda x: np.array([x[k] for k in np.argsort(numbers)], dtype=object), [solved], [a])
        self.accelerations(a)
        self.force_derivatives()
        self._renumbered([self.by_q, self.by_v, builder.data("minus one", -np.eye(n))], right, 3 * n)
        builder.add(Solve("ltl", self.m.operand, right.operand, solution.operand, n, n, 3 * n, parent))
        block, _, _ = trace(lambda x: -x, [(3 * n,)])
        rows = [ref.part(0, (n,)).at((n, builder.column(numbers))) for ref in outputs]
        builder.add(Each(n, (builder.case(block, [solution.part(0, (3 * n,)).at((3 * n, ITEM))], rows),)))

    def entries(self) -> list[tuple[int, int]]:
        """Where L has entries, in the order in which they are stored."""
        return [(n, k) for n in range(self.n) for k in self.order.above(n)]

    def solved_accelerations(self, tau: Ref) -> None:
        """a = M⁻¹ (tau − bias) and what it adds, with the factors of M in straight code, stored for `minus_inverse`."""
        n = self.n
        self.factor = self.builder.temporary("factors", (len(self.entries()) + n,))

        def solve(m: Array, bias: Array, tau: Array, j: Array, yj: Array) -> Any:
            factor = factorise(self.lower(m))
            a = factor.solve([tau[k] - x for k, x in zip(self.order.numbers, bias[0], strict=True)])
            stored = [dict(row) for row in factor.rows]
            numbers = [stored[i].get(k, 0.0) for i, k in self.entries()] + [-x for x in factor.inverse]
            return np.array(numbers), *self._sums(a, j, yj)

        j, bias, yj = (self._whole(*x) for x in ((self.motions, "J"), (self.rows, "bias"), (self.rows, "YJ")))
        sources = [self.m, bias, tau, j, yj]
        block, _, _ = trace(solve, [ref.shape for ref in sources])
        halves = [self.added.ref.part(k * 6 * n, (6, n)) for k in (0, 1)]
        self.builder.add(Each(1, (self.builder.case(with_every_input(block), sources, [self.factor, *halves]),)))

    def _factor(self, wiring: Wiring) -> Factor:
        numbers = wiring.read(self.factor.operand)
        rows: list[list[tuple[int, Any]]] = [[] for _ in range(self.n)]
        for (n, k), entry in zip(self.entries(), numbers, strict=False):
            rows[n].append((k, entry))
        return Factor(rows, numbers[len(numbers) - self.n :])

    def minus_inverse(self, outputs: Sequence[Ref]) -> None:
        """−M⁻¹ ∂τ/∂q, −M⁻¹ ∂τ/∂v and M⁻¹ to the outputs (nv, nv), in the mechanism's numbers."""
        n, builder = self.n, self.builder
        minus_one = builder.data("minus one", -np.eye(n))
        columns = builder.temporary("columns", (3, n, n))
        inward = [columns.part(k * n * n, (n, n)) for k in range(3)]
        for source, target in zip((self.by_q, self.by_v, minus_one), inward, strict=True):

            def record(g: int, group: range, source: Ref = source, target: Ref = target) -> Wiring:
                wiring = Wiring()
                x: list[Any] = [0.0] * n
                for m in group if source is minus_one else self.order.related[g]:
                    x[m] = wiring.read(beside(source, m, n))[0]
                self._factor(wiring).inward(x)
                for m in range(n):
                    wiring.write(beside(target, m, n), [wiring.recorder.lift(x[m])])
                return wiring

            self.each_group(record)
        if self.order.numbers != list(range(n)):
            renumbered = builder.temporary("renumbered", (3, n, n))
            self._renumbered(inward, renumbered, n, n * n)
            inward = [renumbered.part(k * n * n, (n, n)) for k in range(3)]
        for source, target in zip(inward, outputs, strict=True):
            wiring = Wiring()
            x = [wiring.read(beside(source, m, n))[0] for m in range(n)]
            self._factor(wiring).outward(x)
            for m in range(n):
                wiring.write(beside(target, self.order.numbers[m], n), [x[m]])
            builder.add(Each(n, (wiring.case(builder),), "outward", None, builder.column([0, n])))

    def _renumbered(self, matrices: Sequence[Ref], target: Ref, row: int, apart: int = 0) -> None:
        """Matrices of related rates with their columns as the mechanism numbers them, zero beside these.

        To one row after another of the target, `row` numbers each; a row of the next matrix stands behind that of the
        one before, or so many numbers `apart`.
        """
        n, builder = self.n, self.builder
        apart = apart or n
        cases = []
        for related in self.order.related:

            def move(*rows: Array, related: list[int] = related) -> tuple[Array, ...]:
                moved = np.zeros((len(rows), n), dtype=object)
                for k in related:
                    moved[:, self.order.numbers[k]] = [x[k] for x in rows]
                return tuple(moved)

            block, _, _ = trace(move, [(n,)] * len(matrices))
            sources = [matrix.part(0, (n,)).at((n, ITEM)) for matrix in matrices]
            targets = [target.part(k * apart, (n,)).at((row, ITEM)) for k in range(len(matrices))]
            cases.append(builder.case(block, sources, targets))
        which = [g for g, group in enumerate(self.order.groups) for _ in group]
        builder.add(Each(n, tuple(cases), "map", builder.column(which) if len(cases) > 1 else None))
