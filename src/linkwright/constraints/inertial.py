"""Dynamics of closed mechanisms of any size, rolled: bodies as free masses, all joints as constraints.

M a = f + Jᵀλ and J a = γ, with M diagonal in the bodies' central frames: λ = (J M⁻¹Jᵀ)⁺(γ − J M⁻¹ f) by the block
elimination of `elimination`, in time that grows with the number of loops. The state is the spanning tree's (q, v), and
answers are given in its rates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from linkwright.constraints import blocks
from linkwright.constraints.carried import Carried, Records
from linkwright.constraints.central import CentralEquations
from linkwright.constraints.central_layout import CentralLayout, Key
from linkwright.constraints.elements import Elements
from linkwright.constraints.elimination import Solver
from linkwright.constraints.equations import Constraint
from linkwright.constraints.forms import Form
from linkwright.constraints.recorded import Recording
from linkwright.mechanism.description import GROUND
from linkwright.mechanism.elements import laws_of
from linkwright.mechanism.quantities import quantities
from linkwright.spatial.algebra import Array
from linkwright.spatial.rotation import General
from linkwright.spatial.transform import Transform
from linkwright.tape.build import ProgramBuilder, Ref, trace
from linkwright.tape.program import ITEM, Copy, Each, Program, Zero

#: A pivot below this part of its row's own size is lost. Bodies alone are some 1e5 times as mobile as in their
#: mechanism, and what rounding leaves of a redundant row, 1e-16 of its size, grows by as much.
RANK_TOLERANCE = 1e-9
ROUNDS = 2  # solutions with the factors: the first, and one that makes it exact
ROUNDS_WITHOUT_INERTIA = 4  # if something stands for a missing inertia, which each of them takes away again


class Inertial(Recording):
    """A program under construction over the masses of a mechanism."""

    layout: CentralLayout
    e: CentralEquations

    def __init__(self, layout: CentralLayout, name: str, inputs: Sequence[tuple[str, tuple[int, ...]]]) -> None:
        self.layout, self.e = layout, layout.equations
        e, tree = self.e, self.e.tree
        self.b = b = ProgramBuilder(name)
        self.nb, self.m = e.nb, e.count
        self.given = {label: b.input(label, shape) for label, shape in inputs}
        self.coordinates = self.given["q"]
        if "t" in self.given:
            self.t = self.given["t"].part(0, (1,))
        self.space, self.width = e.space, e.space.motion
        self.carried = c = Carried(b, tree, e.masses, e.space)
        self.q, self.r = c.x, c.r
        constraints = e.constraints
        self.numbers = Records(b, "records", [k.record for k in constraints], layout.patterns)
        self.weights = b.data("inverse inertias", e.masses.inverse)
        self.parameters = b.data("parameters", np.array(list(e.description.parameters.values()) or [0.0]))
        given = self.given.get("tolerance")
        self.tolerance = b.data("tolerance", np.array([RANK_TOLERANCE])) if given is None else given
        self.angles = b.temporary("angles", (max(int(e.first_angle[-1]), 1),))
        self.laws = b.temporary("laws", (max(len(constraints), 1), 3))
        self.jacobian = b.temporary("J", (max(layout.jacobian_size, 1),))
        damping = b.data("damping", np.zeros(1))
        self.solver = Solver(b, layout.plan, self.jacobian, self.weights, damping, self.tolerance, by_size=True)
        self.solver.compliance = {r.constraint: 1.0 / r.armature for r in e.rotors}
        self.twists, self.wrenches, self.motion, self.before = (
            b.temporary(name, (e.nb + 1, self.width)) for name in ("twists", "wrenches", "motion", "before")
        )
        self.phi, self.rhs, self.rest, self.change, self.multipliers = (
            b.temporary(name, (max(self.m, 1),)) for name in ("phi", "rhs", "rest", "change", "multipliers")
        )

    # -- positions --------------------------------------------------------------------------------------------
    def place(self, *, moving: bool, forced: bool = False) -> None:
        """The bodies where the coordinates put them, with their twists and with the wrenches on them."""
        b, c, d = self.b, self.carried, self.e.description
        if not moving:
            c.outward(self.coordinates, None, None, None, None)
        elif not forced:
            c.outward(self.coordinates, self.given["v"], self.twists, None, None)
        else:
            v, tau = self.given["v"], b.temporary("forces", self.given["tau"].shape)
            b.add(Copy(self.given["tau"].operand, tau.operand))
            b.add(Zero(self.wrenches.operand))
            clock = self.t if "t" in self.given else None
            elements = Elements(c, clock)
            wanted = list(quantities(*(law for e in d.elements for law in laws_of(e))))
            if wanted:
                # Where bodies are may tell the forces of joints, which are put on bodies on the way to where they are.
                c.outward(self.coordinates, v, self.twists, None, None)
                elements.measure(wanted, self.coordinates, v, self.twists)
            elements.joint_forces(self.coordinates, v, tau)
            c.outward(self.coordinates, v, self.twists, tau, self.wrenches)
            elements.loop_forces(self.twists, self.wrenches)
            elements.body_forces(self.twists, self.wrenches)
            if "wrenches" in self.given:
                self._apply(self.given["wrenches"])
        self._turns()

    def _row(self, rows: Ref, column: int, *, add: bool = False) -> Ref:
        """A body's row of twists, wrenches or the like."""
        return rows.part(0, (self.width,)).at((self.width, column), add=add)

    def _axes(self, column: int) -> Ref:
        return self.r.part(0, (self.space.turn,)).at((self.space.turn, column))

    def _apply(self, given: Ref) -> None:
        """wrenches += those given at the bodies' own frames, a row a position."""
        b, masses, t = self.b, self.e.masses, self.carried.tree.topology
        frames = np.concatenate([masses.axes.reshape(-1, 9), masses.com], axis=1)[t.body]

        def push(r: Array, w: Array, frame: Array) -> Array:
            central = Transform(General(frame[:9].reshape(3, 3)), frame[9:]).outward_wrench(w)
            return self.space.part(np.concatenate([self.space.axes(r) @ central[:3], central[3:]]))

        row = self.carried.body
        inputs = [self._axes(row), given.part(0, (6,)).at((6, ITEM))]
        inputs.append(b.data("body frames", frames).part(0, (12,)).at((12, ITEM)))
        block = trace(push, [(self.space.turn,), (6,), (12,)])[0]
        b.add(Each(self.nb, (b.case(block, inputs, [self._row(self.wrenches, row, add=True)]),), "map"))

    def _turns(self) -> None:
        """The counted angles of couplings, by the coordinates of their joints."""
        e, d = self.e, self.e.description
        if not int(e.first_angle[-1]):
            return
        x, position = e.tree.coordinates, {int(j): i for i, j in enumerate(e.tree.topology.joint)}
        places: list[int] = []
        factors: list[tuple[float, float]] = []
        for c in e.constraints:
            if not c.form.turns:
                continue
            m = e.couplings[c.name]
            back = 1.0 / m.ratio if m.ratio else 0.0
            sides = ((m.follower, m.leader, m.ratio, m.offset), (m.leader, m.follower, back, -m.offset * back))
            for joint, other, ratio, offset in sides:
                if not d.kind_of(joint).angles:
                    continue
                # A joint that closes a loop is taken near to what the other asks of it.
                known = joint in position
                i = position[joint if known else other]
                own = (float(x.ratio[i]), float(x.offset[i]))
                places.append(int(x.q_at[i]))
                factors.append(own if known else (ratio * own[0], ratio * own[1] + offset))
        b = self.b
        inputs = [self.coordinates.part(0, (1,)).at((1, b.column(places)))]
        inputs.append(b.data("turns", np.array(factors)).part(0, (2,)).at((2, ITEM)))
        block = trace(lambda q, row: q * row[0] + row[1], [(1,), (2,)])[0]
        outputs = [self.angles.part(0, (1,)).at((1, ITEM))]
        b.add(Each(len(places), (b.case(block, inputs, outputs),), "map"))

    # -- constraints ------------------------------------------------------------------------------------------
    def _given_to(self, key: Key, members: list[int]) -> list[Ref]:
        form, moving, pattern = key
        inputs: list[Ref] = []
        for side, moves in enumerate(moving):
            if moves:
                body = self._rows(members, side)
                inputs += [self.q.part(0, (3,)).at((3, body)), self._axes(body)]
        inputs.append(self.numbers.part(pattern, self.b.column([self.numbers.at[k] for k in members])))
        if form.turns:
            inputs.append(self._angles(form, members, self.angles))
        if form.driven:
            inputs.append(self.laws.part(0, (1,)).at((3, self.b.column(members))))
        return inputs

    def constrain(self, *, factors: bool = True) -> None:
        """Laws, Φ and J, and the factors of J M⁻¹Jᵀ."""
        if any(c.form.driven for c in self.e.constraints):
            self.b.add(Zero(self.laws.operand))
        self.evaluate_laws()
        self.b.add(Zero(self.jacobian.operand))
        for key, members in self.layout.alike.items():
            form, moving, pattern = key
            m, row = form.size, self.b.column([int(self.e.first[k]) for k in members])
            outputs = [self.phi.part(0, (m,)).at((1, row))]
            outputs += [
                self.jacobian.part(0, (m, self.width)).at((1, at), add=True) for _, at in self._sides(members, moving)
            ]
            block = blocks.equations_block(form, moving, self.space, pattern)
            self.b.add(Each(len(members), (self.b.case(block, self._given_to(key, members), outputs),), "map"))
        if factors:
            self.solver.factor()

    def count_drivers(self) -> None:
        """Φ of drivers of the tree's own coordinates, through all turns."""
        e, d, x = self.e, self.e.description, self.e.tree.coordinates
        position = e.tree.joint_positions
        driven = [(k, driver) for k, driver in zip(e.drivers, d.drivers, strict=True) if driver.kind == "joint"]
        chosen = [(k, position[driver.target], driver.index) for k, driver in driven if driver.target in position]
        if not chosen:
            return
        numbers = [(float(x.ratio[i]), float(x.offset[i])) for _, i, _ in chosen]
        at, law = [int(x.q_at[i]) + n for _, i, n in chosen], [k for k, _, _ in chosen]
        row = [int(e.first[k]) for k in law]
        b = self.b
        inputs = [self.coordinates.part(0, (1,)).at((1, b.column(at))), self.laws.part(0, (1,)).at((3, b.column(law)))]
        inputs.append(b.data("driven", np.array(numbers)).part(0, (2,)).at((2, ITEM)))
        block = trace(lambda q, f, row: q * row[0] + row[1] - f, [(1,), (1,), (2,)])[0]
        outputs = [self.phi.part(0, (1,)).at((1, b.column(row)))]
        b.add(Each(len(chosen), (b.case(block, inputs, outputs),), "map"))

    def velocity_products(self, output: Ref) -> None:
        """output = J̇ v."""
        for key, members in self.layout.alike.items():
            form, moving, pattern = key
            row = self.b.column([int(self.e.first[k]) for k in members])
            inputs = self._given_to(key, members)
            inputs += [self._row(self.twists, body) for body, _ in self._sides(members, moving)]
            block = blocks.bias_block(form, moving, self.space, pattern)
            outputs = [output.part(0, (form.size,)).at((1, row))]
            self.b.add(Each(len(members), (self.b.case(block, inputs, outputs),), "map"))

    def rows(self, function: Callable[..., Array], inputs: list[Ref], output: Ref) -> None:
        """A function of single numbers, for every equation."""
        if self.m:
            block = trace(function, [(1,)] * len(inputs))[0]
            parts = [ref.part(0, (1,)).at((1, ITEM)) for ref in (*inputs, output)]
            self.b.add(Each(self.m, (self.b.case(block, parts[:-1], parts[-1:]),), "map"))

    # -- the answer -------------------------------------------------------------------------------------------
    def _move(self, first: bool) -> None:
        """motion = M⁻¹ wrenches, where what stands for missing inertias is taken away by the motion before."""
        masses = self.e.masses
        parts = [self.wrenches, self.weights]
        if not first and masses.added.any():
            parts += [self.b.data(self.b.free_name("added"), masses.added), self.before]

        def motion(f: Array, w: Array, *rest: Array) -> Array:
            return (f + rest[0] * rest[1]) * w if rest else f * w

        block = trace(motion, [(self.width,)] * len(parts))[0]
        rows = [self._row(ref, ITEM) for ref in (*parts, self.motion)]
        self.b.add(Each(self.nb, (self.b.case(block, rows[:-1], rows[-1:]),), "map"))

    def solve(self) -> None:
        """multipliers and motion of M a = wrenches + Jᵀλ, J a = rhs; the wrenches then have Jᵀλ in them."""
        b, light = self.b, bool(self.e.masses.added.any())
        b.add(Zero(self.multipliers.operand))
        if light:
            b.add(Zero(self.before.operand))
        self._move(first=True)
        for _ in range(ROUNDS_WITHOUT_INERTIA if light else ROUNDS):
            if not self.m:
                break
            b.add(Copy(self.rhs.operand, self.rest.operand))
            self.solver.push(self.motion, self.rest, -1.0)
            self.solver.give_way(self.multipliers, self.rest)
            self.solver.solve(self.rest, self.change)
            self.rows(lambda x, y: x + y, [self.multipliers, self.change], self.multipliers)
            self.solver.pull(self.change, self.wrenches, clear=False)
            self._move(first=False)
            if light:
                b.add(Copy(self.motion.operand, self.before.operand))
                self._move(first=False)

    def _kept(
        self, function: Callable[[Array], Array], source: tuple[Ref, list[int]], to: tuple[Ref, list[int]]
    ) -> None:
        """A function of numbers of the constraints besides the tree, from these places to those."""
        (read, rows), (write, places) = source, to
        if rows:
            block = trace(function, [(1,)])[0]
            inputs, outputs = (
                [ref.part(0, (1,)).at((1, self.b.column(x)))] for ref, x in ((read, rows), (write, places))
            )
            self.b.add(Each(len(rows), (self.b.case(block, inputs, outputs),), "map"))

    @property
    def _places(self) -> tuple[list[int], list[int]]:
        """The equations of the constraints besides the tree that are solved, here and among all of them."""
        found = [(row, place) for place, row in enumerate(self.e.kept_rows) if row >= 0]
        return [row for row, _ in found], [place for _, place in found]

    def select(self, source: Ref, output: Ref) -> None:
        """output = the numbers of the constraints besides the tree, 0 for equations across the plane."""
        rows, places = self._places
        self.b.add(Zero(output.operand))
        self._kept(lambda x: x, (source, rows), (output, places))

    def only_kept(self, values: Ref) -> None:
        """rhs = −values for the constraints besides the tree, 0 for the others."""
        self.b.add(Zero(self.rhs.operand))
        rows, _ = self._places
        self._kept(lambda x: -x, (values, rows), (self.rhs, rows))

    def across(self, output: Ref) -> None:
        """Φ of the constraints besides the tree that have equations across the plane, which nothing can change."""
        first = 0
        groups: dict[tuple[Form, tuple[bool, ...]], list[tuple[Constraint, int]]] = {}
        for c in self.e.kept:
            if -1 in self.e.kept_rows[first : first + c.form.size]:
                groups.setdefault((c.form, tuple(body != GROUND for body in c.bodies)), []).append((c, first))
            first += c.form.size
        b = self.b
        for (form, moving), members in groups.items():
            inputs: list[Ref] = []
            for side, moves in enumerate(moving):
                if moves:
                    body = b.column([c.bodies[side] for c, _ in members])
                    inputs += [self.q.part(0, (3,)).at((3, body)), self._axes(body)]
            records = np.array([c.record for c, _ in members])
            inputs.append(
                b.data(b.free_name("across"), records).part(0, records.shape[1:]).at((records.shape[1], ITEM))
            )
            block = blocks.value_block(form, moving, self.space, (None,) * records.shape[1])
            outputs = [output.part(0, (form.size,)).at((1, b.column([at for _, at in members])))]
            b.add(Each(len(members), (b.case(block, inputs, outputs),), "map"))


Inputs = Sequence[tuple[str, tuple[int, ...]]]


def forward_dynamics(layout: CentralLayout, inputs: Inputs, *, forces: bool = False) -> Program:
    """q, v, tau [, wrenches] [, t] → the joints' accelerations, or with `forces` the multipliers."""
    w = Inertial(layout, "constraint_forces" if forces else "forward_dynamics", inputs)
    output = w.b.output("lambda" if forces else "a", (len(w.e.kept_rows),) if forces else w.given["v"].shape)
    w.place(moving=True, forced=True)
    w.constrain()
    w.velocity_products(w.phi)
    w.rows(lambda x: -x, [w.phi], w.rhs)
    w.law_rates(2, w.rhs)
    w.solve()
    if forces:
        w.select(w.multipliers, output)
    else:
        w.carried.accelerations(w.coordinates, w.given["v"], w.twists, w.motion, output)
    return w.b.build(single=True)


def closing(layout: CentralLayout, inputs: Inputs) -> Program:
    """q [, t] → the least change of q, in the mass metric, that closes the mechanism to first order; and Φ."""
    w = Inertial(layout, "closing", inputs)
    dv = w.b.output("dv", (w.e.tree.coordinates.nv,))
    phi = w.b.output("phi", (len(w.e.kept_rows),))
    w.place(moving=False)
    w.constrain()
    w.count_drivers()
    w.select(w.phi, phi)
    w.across(phi)
    return _least(w, w.phi, dv)


def settling(layout: CentralLayout, inputs: Inputs) -> Program:
    """q, v [, t] → the least change of v, in the mass metric, that keeps the mechanism closed; and J v + Φ_t."""
    w = Inertial(layout, "settling", inputs)
    dv = w.b.output("dv", (w.e.tree.coordinates.nv,))
    rate = w.b.output("rate", (len(w.e.kept_rows),))
    w.place(moving=True)
    w.constrain()
    found = w.phi
    w.b.add(Zero(found.operand))
    w.law_rates(1, found)
    w.rows(lambda x: -x, [found], found)
    w.solver.push(w.twists, found, 1.0)
    w.select(found, rate)
    return _least(w, found, dv)


def jacobian(layout: CentralLayout, inputs: Inputs) -> Program:
    """q [, t] → the parts of J, one after another, as the layout's incidences say."""
    w = Inertial(layout, "jacobian", inputs)
    w.place(moving=False)
    w.constrain(factors=False)
    w.b.make_output(w.jacobian, "J")
    return w.b.build(single=True)


def _least(w: Inertial, missed: Ref, dv: Ref) -> Program:
    """dv = the least motion that takes away what the constraints besides the tree miss."""
    w.only_kept(missed)
    w.b.add(Zero(w.wrenches.operand))
    w.solve()
    w.carried.rates(w.coordinates, w.motion, dv)
    return w.b.build(single=False)
