r"""Derivatives of the accelerations of closed mechanisms, over rates that stand side by side.

With a and λ known, R₁ = M a + h − tau − Gᵀλ and R₂ = G a − γ stay zero, so that for every change of q, v and tau

    M δa − Gᵀ δλ = −δR₁,   G δa = −δR₂   with a and λ held in δR.

The tree's share of δR₁ is that of `tree_derivatives`. A constraint between frames on links 1 and 2 knows their relative
pose, twist w = v₂ − v₁ and u = a₂ − a₁ − v₂ × w alone. In the common frame, for a rate J whose link moves the second
frame alone (+) or the first alone (−), v and V, A, Ȧ as in `dynamics_derivatives`:

    δξ = ± J,   δw = ± (v − v₁) × J by q, ± J by v
    + :  δu = A + V × v₂ − a₁ × J − V × w − v₂ × δw         by q,   Ȧ + 2 J × v₂ − J × w        by v
    − :  δu = −(A + V × v₁ + J × a₁) + v₂ × (V + J × v₁)    by q,   −Ȧ − J × v₁ + v₂ × J        by v

and the wrench W that it exerts on the second link at the multipliers λ changes the force on a rate m by

    δ(σ_m J_mᵀ W) = σ_m J_mᵀ (κ J ×* W + ∂W/∂ξ δξ)

with κ = 1 where the rate moves the second frame, less 1 where it moves m. Only forms are differentiated on the tape,
for six changes of a pose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.constraints.constraint_equations import Constraint
from linkwright.constraints.constraint_forms import drift, jacobian, law_rates
from linkwright.dynamics.closed import closed_recorders as closed
from linkwright.dynamics.functions import FUNCTIONS, Request
from linkwright.dynamics.rate_tables import Lanes, beside
from linkwright.dynamics.recording_context import RecordingContext, traced
from linkwright.dynamics.requests import RequestRules
from linkwright.dynamics.tangents import state_derivatives
from linkwright.dynamics.tree_derivatives import TreeDerivatives
from linkwright.model.elements import JointForce
from linkwright.spatial.algebra import Array, dot, force_cross, is_zero, motion_cross, skew
from linkwright.spatial.rotation import General, Transform, by_column
from linkwright.tape.block import Recorder, less_equal, where
from linkwright.tape.build import ProgramBuilder, Ref, Wiring, trace, with_every_input
from linkwright.tape.derivative_blocks import Directions, push_forward
from linkwright.tape.program import ITEM, Each, Program
from linkwright.tape.split_block import split

MOST = 64  # rates up to which the system of the constraints, which is straight code, compiles in seconds


def covers(factory: RequestRules) -> bool:
    """Whether these formulas cover a mechanism: up to so many rates, no gears on joints that close loops, no screws
    there, no couplings, and no forces but those of the tree's joints."""
    if factory.tree.coordinates.nv > MOST:
        return False
    tree_joints = set(factory.tree.joint_positions)
    elements = all(isinstance(e, JointForce) and e.joint in tree_joints for e in factory.description.elements)
    plain = all(
        c.group not in ("gear", "coupling") and (not c.form.numbers or not c.source.joints)
        for c in factory.loop_constraints
    )
    return elements and plain and not factory.coupled


@dataclass(frozen=True)
class _Between:
    """A constraint between two frames: where its equations begin, its links (−1 ground), and the rates that move its
    second frame alone, and its first alone."""

    constraint: Constraint
    first_row: int
    links: tuple[int, int]
    second_side: list[int]
    first_side: list[int]

    @property
    def size(self) -> int:
        return self.constraint.form.size


def record(factory: RequestRules, request: Request, shapes: dict[str, tuple[int, ...]]) -> Program:
    """The program of `forward_dynamics_derivatives` of a closed mechanism."""
    return _Closed(factory, request, shapes).program()


#: What the rates need of a constraint, in the common frame; the last three are (m, 6).
_FIELDS = {"v1": 6, "v2": 6, "a1": 6, "W": 6, "dW": 36}


class _Closed:
    def __init__(self, factory: RequestRules, request: Request, shapes: dict[str, tuple[int, ...]]) -> None:
        self.factory, self.request, self.shapes = factory, request, shapes
        self.builder = ProgramBuilder(request.function)
        self.inputs = {name: self.builder.input(name, shape) for name, shape in shapes.items()}
        self.nv = factory.tree.coordinates.nv
        self.m = sum(c.form.size for c in factory.loop_constraints)
        self.outputs = [self.builder.output(n, (self.nv, self.nv)) for n in FUNCTIONS[request.function].outputs]
        self.tree = TreeDerivatives(self.builder, factory.tree)
        self.between = self._frames()

    def _context(self, names: Sequence[str], arrays: Sequence[Array]) -> RecordingContext:
        return RecordingContext(self.factory, self.request, dict(zip(names, arrays, strict=True)))

    def _frames(self) -> list[_Between]:
        topology = self.factory.topology
        positions = set(map(int, topology.joint))
        order = self.tree.order
        pairs, row = [], 0
        for c in self.factory.loop_constraints:
            if not (c.source.joints and c.source.joints[0] in positions):
                one, two = (place[0] for place in self._places(c, {}))
                paths = [set(topology.path(i)) if i >= 0 else set() for i in (one, two)]
                sides = [[n for n, r in enumerate(order.rates) if r.link in path] for path in paths]
                alone = [[n for n in side if n not in other] for side, other in (sides, sides[::-1])]
                pairs.append(_Between(c, row, (one, two), alone[1], alone[0]))
            row += c.form.size
        return pairs

    def _places(self, c: Constraint, free: dict[str, Any]) -> list[Any]:
        tree = self.factory.tree
        if c.source.joints:
            return list(tree.joint_frames(c.source.joints[0], free))
        return [(-1, np.eye(3), np.zeros(3)), *(tree.place(name, free) for name in c.source.places)][-2:]

    def program(self) -> Program:
        builder, names = self.builder, list(self.shapes)
        state = [name for name in names if name != "tau"]

        def motion(*arrays: Array) -> Any:
            context = self._context(names, arrays)
            a, multipliers = closed.accelerations(context)
            return a, np.concatenate([np.asarray(x) for x in multipliers])

        block = with_every_input(traced(self.factory, motion, self.shapes)[0])
        a, multipliers = builder.temporary("a", (self.nv,)), builder.temporary("multipliers", (self.m,))
        builder.add(Each(1, (builder.case(block, list(self.inputs.values()), [a, multipliers]),)))

        def recursion(*arrays: Array) -> Any:
            context = self._context(state, arrays)
            return self.tree.recursion(context.traversal(), context.gravity)

        block = traced(self.factory, recursion, {name: self.shapes[name] for name in state})[0]
        sources = [self.inputs[name] for name in state]
        self.tree.first(block, sources)
        self.tree.accelerations(a)
        self.tree.force_derivatives()
        self.laws = self._laws(state, sources)
        self.local = self._local(state, sources, a, multipliers)
        wide = 3 * self.nv
        residuals = builder.temporary("residuals", (self.nv + self.m, wide))
        self._residuals(residuals)
        self._solve(residuals, state, sources)
        return builder.build(single=False)

    # -- local derivatives ----------------------------------------------------------------------------------
    def _laws(self, state: list[str], sources: list[Ref]) -> tuple[Ref, Array]:
        """∂ of the forces of joint laws by q and v, in the order of rates here, and where they are not zero."""
        n, numbers = self.nv, self.tree.order.numbers
        pattern = np.zeros((2, n, n), dtype=bool)
        store = self.builder.temporary("law derivatives", (2, n, n))
        if not self.factory.description.elements:
            return store, pattern

        def forces(*arrays: Array) -> Array:
            return np.asarray(self._context(state, arrays).joint_forces())

        def slopes(*arrays: Array) -> Array:
            context = self._context(state, arrays)
            rows = state_derivatives(context, forces, {name: context.inputs[name] for name in state})
            halves = [rows[numbers][:, [first + k for k in numbers]] for first in (0, n)]
            pattern[:] = [[[not is_zero(x) for x in row] for row in half] for half in halves]
            return np.array(halves, dtype=object)

        block, _, _ = trace(slopes, [self.shapes[name] for name in state])
        self.builder.add(Each(1, (self.builder.case(block, sources, [store]),)))
        return store, pattern

    def _local(self, state: list[str], sources: list[Ref], a: Ref, multipliers: Ref) -> list[dict[str, Ref]]:
        """What the rates need of every constraint."""
        placed = self.tree.placed
        stores: list[dict[str, Ref]] = []
        for pair in self.between:
            sizes = {**_FIELDS, **dict.fromkeys(("Cx", "Cw", "Cu"), 6 * pair.size)}
            name = self.builder.free_name(f"{pair.constraint.name} derivatives")
            whole = self.builder.temporary(name, (sum(sizes.values()),))
            starts = np.cumsum([0, *sizes.values()]).tolist()
            stores.append({f: whole.part(at, (size,)) for (f, size), at in zip(sizes.items(), starts, strict=False)})

            def local(links: Array, j: Array, a: Array, forces: Array, *arrays: Array, pair: _Between = pair) -> Any:
                return self._derivatives(pair, links, j, a, forces, self._context(state, arrays))

            j = Ref(self.tree.motions.whole("J"), (6, self.nv))
            shapes = [placed.ref.shape, (6, self.nv), (self.nv,), (self.m,), *(self.shapes[name] for name in state)]
            block, _, _ = trace(local, shapes)
            refs = [placed.ref, j, a, multipliers, *sources]
            self.builder.add(Each(1, (self.builder.case(block, refs, list(stores[-1].values())),)))
        return stores

    def _derivatives(
        self, pair: _Between, links: Array, j: Array, a: Array, forces: Array, context: RecordingContext
    ) -> tuple[Array, ...]:
        c, at, order = pair.constraint, self.tree.placed.at, self.tree.order

        def field(name: str, i: int) -> Array:
            first, size = at[name]
            return links[first : first + size, i]

        frames, twists, accelerations = [], [], []
        for position, r, p in self._places(c, context.parameters):
            place = Transform(General(field("R", position).reshape(3, 3)), field("o", position))
            frames.append((by_column(place.rotation.inward, r), place.p + place.rotation.inward(p)))
            twists.append(field("w", position))
            acceleration = field("b", position)
            on_path = set(self.factory.topology.path(position)) if position >= 0 else set()
            for n, rate in enumerate(order.rates):
                if rate.link in on_path:
                    acceleration = acceleration + j[:, n] * a[order.numbers[n]]
            accelerations.append(acceleration)
        (r1, p1), (r2, p2) = frames
        x = Transform(General(r2), p2)
        v1, v2 = twists
        w = v2 - v1
        u = accelerations[1] - accelerations[0] - motion_cross(v2, w)
        law = law_rates(c.law, context.constants) if c.law is not None else (0.0, 0.0, 0.0)
        numbers = [x.evaluate(context.constants) for x in c.source.numbers]

        def equations(r: Array, p: Array, w: Array, u: Array, forces: Array, numbers: Array) -> Array:
            form_at = (c.form, r, p, numbers[:-1], (), numbers[-1])
            g = jacobian(*form_at)
            return np.concatenate([g.T @ forces, g @ u + drift(*form_at, w), g.reshape(-1)])

        relative = (r1.T @ r2, r1.T @ (p2 - p1), x.outward(w), x.outward(u))
        pushes = forces[pair.first_row : pair.first_row + pair.size]
        values, by_pose, by_twist = _tangents(equations, (*relative, pushes, np.array([*numbers, law[0]])))
        m = pair.size
        gradient = np.array(values[6 + m :]).reshape(m, 6)
        wrench = x.inward(np.array(values[:6]))
        # δF = F_ξ ξ in the second frame's axes, ξ the change of its pose there: both taken to the common frame.
        stiff = by_column(x.inward, _rows_outward(x, by_pose[:6]))
        rows = [_rows_outward(x, part) for part in (by_pose[6 : 6 + m], by_twist[6 : 6 + m], gradient)]
        return v1, v2, accelerations[0], wrench, stiff.reshape(-1), *(part.reshape(-1) for part in rows)

    # -- residuals ------------------------------------------------------------------------------------------
    def _residuals(self, residuals: Ref) -> None:
        """δR₁, then δR₂, for unit changes of q, v and tau, a column each, rates in the order that they have here."""
        tree, n, wide = self.tree, self.nv, 3 * self.nv
        laws, pattern = self.laws

        def target(row: int, part: int) -> Any:
            return beside(residuals.part(part * n, (1,)), row, wide)

        def record(g: int, group: range) -> Wiring:
            lanes = Lanes(tree.motions, tree.rows, tree.turned)
            wiring, number = lanes.wiring, tree.number_here(lanes)
            by_q: list[Any] = [0.0] * n
            by_v: list[Any] = [0.0] * n
            for k in tree.order.related[g]:
                by_q[k], by_v[k] = (wiring.read(beside(x, k, n))[0] for x in (tree.by_q, tree.by_v))
            for half, rows in enumerate((by_q, by_v)):
                for k in range(n):
                    if pattern[half, k, group[0] : group[-1] + 1].any():
                        rows[k] = rows[k] - wiring.read(beside(laws, half * n + k, n))[0]
            second: list[Any] = [0.0] * (2 * self.m)
            for pair, store in zip(self.between, self.local, strict=True):
                if set(group) & {*pair.second_side, *pair.first_side}:
                    self._constraint(lanes, group, number, (pair, store), by_q, second)
            for part, rows in enumerate((by_q, by_v)):
                for k in range(n):
                    wiring.write(target(k, part), [wiring.recorder.lift(rows[k])])
                for k in range(self.m):
                    wiring.write(target(n + k, part), [wiring.recorder.lift(second[part * self.m + k])])
            for k in range(n + self.m):
                unit = where(equal_to(number, k), -1.0, 0.0) if k in group else 0.0
                wiring.write(target(k, 2), [wiring.recorder.lift(unit)])
            return wiring

        tree.each_group(record)

    def _constraint(
        self,
        lanes: Lanes,
        group: range,
        number: Any,
        of: tuple[_Between, dict[str, Ref]],
        by_q: list[Any],
        second: list[Any],
    ) -> None:
        """Add the share of one constraint for the rates of a group."""
        pair, store = of
        wiring = lanes.wiring
        shared = {name: np.array(wiring.read(ref.operand)) for name, ref in store.items()}
        v1, v2, a1, push = (shared[name] for name in ("v1", "v2", "a1", "W"))
        j, before, a, big_v, dot_a = (lanes.here(field) for field in ("J", "v", "A", "V", "dotA"))
        w = v2 - v1
        plus, minus = (self._here(side, group, number) for side in (pair.second_side, pair.first_side))
        sign = plus - minus
        turn = motion_cross(before - v1, j)
        uq = uv = np.zeros(6)
        if not is_zero(plus):
            one = a + motion_cross(big_v, v2) - motion_cross(a1, j) - motion_cross(big_v, w) - motion_cross(v2, turn)
            uq = uq + plus * one
            uv = uv + plus * (dot_a + 2.0 * motion_cross(j, v2) - motion_cross(j, w))
        if not is_zero(minus):
            other = a + motion_cross(big_v, v1) + motion_cross(j, a1)
            uq = uq - minus * (other - motion_cross(v2, big_v + motion_cross(j, v1)))
            uv = uv - minus * (dot_a + motion_cross(j, v1) - motion_cross(v2, j))
        cx, cw, cu = (shared[name].reshape(pair.size, 6) for name in ("Cx", "Cw", "Cu"))
        for k in range(pair.size):
            row = pair.first_row + k
            second[row] = second[row] + sign * (dot(cx[k], j) + dot(cw[k], turn)) + dot(cu[k], uq)
            second[self.m + row] = second[self.m + row] + sign * dot(cw[k], j) + dot(cu[k], uv)
        turned, moved = force_cross(j, push), sign * (shared["dW"].reshape(6, 6) @ j)
        for side, direction in ((pair.second_side, 1.0), (pair.first_side, -1.0)):
            for m in side:
                above = less_equal(number, float(self.tree.order.last[m]))
                follows = plus
                if direction > 0.0 and not is_zero(plus):
                    follows = where(above, 0.0, plus)
                elif direction < 0.0 and not is_zero(minus):
                    follows = plus - where(above, minus, 0.0)
                change = moved if is_zero(follows) else moved + turned * follows
                by_q[m] = by_q[m] - direction * dot(lanes.of("J", m), change)

    def _here(self, side: list[int], group: range, number: Any) -> Any:
        """1 where the rate whose turn it is moves one frame of a constraint alone, else 0."""
        here = [n for n in side if n in group]
        if not here or len(here) == len(group):
            return 1.0 if here else 0.0
        # Rates of a group follow each other: what is on the side is a run of them.
        inside = less_equal(float(here[0]), number) * less_equal(number, float(here[-1]))
        return where(inside, 1.0, 0.0)

    # -- the system -----------------------------------------------------------------------------------------
    def _solve(self, residuals: Ref, state: list[str], sources: list[Ref]) -> None:
        """δa of every column: what does not depend on the column once, the other for columns side by side."""
        n, builder, numbers = self.nv, self.builder, self.tree.order.numbers
        wide = 3 * n

        def solve(*arrays: Array) -> Array:
            *inputs, column = arrays
            context = self._context(state, inputs)
            first = np.empty(n, dtype=object)
            first[numbers] = column[:n]
            return closed.change_of(context, first[:, None], column[n:, None])[:, 0]

        block, _, _ = traced(self.factory, solve, {**{k: self.shapes[k] for k in state}, "column": (n + self.m,)})
        once, each = split(block, n + self.m)
        shared = builder.temporary("shared", (len(once.outputs),))
        builder.add(Each(1, (builder.case(once, sources, [shared]),)))
        solution = builder.temporary("solution", (n, wide))
        rows = [Ref(beside(residuals, k, wide), (1,)) for k in range(n + self.m)]
        targets = [Ref(beside(solution, k, wide), (1,)) for k in range(n)]
        case = builder.case(each, [shared, *rows], targets)
        builder.add(Each(wide, (case,), "outward", None, builder.column([0, wide])))
        back = np.argsort(numbers).tolist()

        def parts(row: Array) -> tuple[Array, ...]:
            return tuple(row.reshape(3, n)[:, back])

        block, _, _ = trace(parts, [(wide,)])
        source = solution.part(0, (wide,)).at((wide, ITEM))
        outs = [ref.part(0, (n,)).at((n, ITEM)) for ref in self.outputs]
        builder.add(Each(n, (builder.case(block, [source], outs),)))


def equal_to(number: Any, k: int) -> Any:
    """Whether a rate's number is k."""
    return less_equal(float(k), number) * less_equal(number, float(k))


def _rows_outward(x: Transform, rows: Array) -> Array:
    """Rows that take twists at a frame, as rows that take them in the frame that it is placed in."""
    return np.stack([x.inward(row) for row in np.asarray(rows)], axis=0)


def _tangents(function: Any, inputs: tuple[Array, ...]) -> tuple[list[Any], Array, Array]:
    """The outputs of function(r, p, w, ...), their changes with the pose of the second frame (·, 6), and with w."""
    block = trace(function, [np.shape(x) for x in inputs])[0]
    flat = [x for array in inputs for x in np.asarray(array).reshape(-1)]
    recorder: Recorder = next(x.recorder for x in flat if hasattr(x, "recorder"))
    nodes = [recorder.lift(x) for x in flat]
    tangents: list[Directions] = [{} for _ in nodes]
    r = inputs[0]
    for k in range(3):
        for i in range(3):
            tangents[9 + i][k] = recorder.lift(r[i, k])
        turned = r @ skew(np.eye(3)[k])
        for i, entry in enumerate(turned.reshape(-1)):
            if not is_zero(entry):
                tangents[i][3 + k] = recorder.lift(entry)
    for k in range(6):
        tangents[12 + k][6 + k] = recorder.constant(1.0)
    replayed = block.replay(recorder, nodes)
    pushed = push_forward(block, replayed, tangents)
    rows = np.array([[row.get(k, recorder.zero) for k in range(12)] for row in pushed], dtype=object)
    return [replayed[k] for k in block.outputs.tolist()], rows[:, :6], rows[:, 6:]
