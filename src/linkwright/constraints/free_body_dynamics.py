"""Dynamics of closed mechanisms of any size, rolled: bodies as free masses, all joints as constraints; and where
everything stands then.

M a = f + Jᵀλ and J a = γ, with M diagonal in the bodies' central frames: λ = (J M⁻¹Jᵀ)⁺(γ − J M⁻¹ f) by the block
elimination of `elimination`, in time that grows with the number of loops. The state is the spanning tree's (q, v), and
answers are given in its rates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from linkwright.base.locks import cached_property
from linkwright.constraints.constraint_equations import Constraint, by_form
from linkwright.constraints.constraint_forms import Form
from linkwright.constraints.elimination import Solver
from linkwright.constraints.form_programs import Pattern, Space, each, entry, row, value_block
from linkwright.constraints.masses import CentralEquations
from linkwright.constraints.program_layout import Alike, Layout, Recording
from linkwright.constraints.rolled_elements import Elements
from linkwright.constraints.tree_bodies import Carried, Records, patterns
from linkwright.model.elements import laws_of
from linkwright.model.quantities import quantities
from linkwright.spatial.algebra import Array
from linkwright.spatial.rotation import General, Transform
from linkwright.tape.build import ProgramBuilder, Ref
from linkwright.tape.program import Copy, Program, Zero


class CentralLayout(Layout):
    """Where everything stands, with the numbers of records that are trivial folded into the code."""

    equations: CentralEquations
    named = False

    def __init__(self, equations: CentralEquations, *, in_rounds: bool = False) -> None:
        self.width, self.in_rounds = equations.space.motion, in_rounds
        super().__init__(equations)

    @cached_property
    def alike(self) -> dict[Alike, list[int]]:
        groups: dict[Alike, list[int]] = {}
        for (form, moving), members in by_form(self.equations.constraints).items():
            for k in members:
                groups.setdefault((form, moving, self.patterns[k]), []).append(k)
        return groups

    @cached_property
    def patterns(self) -> list[Pattern]:
        """For each constraint, which numbers of its record are trivial."""
        constraints = self.equations.constraints
        chosen: list[Pattern] = [()] * len(constraints)
        for members in by_form(constraints).values():
            for k, pattern in zip(members, patterns([constraints[k].record for k in members]), strict=True):
                chosen[k] = pattern
        return chosen


#: A pivot below this part of its row's own size is lost. Bodies alone are some 1e5 times as mobile as in their
#: mechanism, and what rounding leaves of a redundant row, 1e-16 of its size, grows by as much.
RANK_TOLERANCE = 1e-9
ROUNDS = 2  # solutions with the factors: the first, and one that makes it exact
ROUNDS_WITHOUT_INERTIA = 4  # if something stands for a missing inertia, which each of them takes away again


class Inertial(Recording):
    """A program under construction over the masses of a mechanism."""

    layout: CentralLayout
    e: CentralEquations
    space: Space

    def __init__(self, layout: CentralLayout, name: str, inputs: Sequence[tuple[str, tuple[int, ...]]]) -> None:
        self.layout, self.e = layout, layout.equations
        e, tree = self.e, self.e.tree
        self.b = b = ProgramBuilder(name)
        self.nb, self.m = e.nb, e.count
        self.inputs = {label: b.input(label, shape) for label, shape in inputs}
        self.coordinates = self.inputs["q"]
        if "t" in self.inputs:
            self.t = self.inputs["t"].part(0, (1,))
        self.space, self.width = e.space, e.space.motion
        self.carried = c = Carried(b, tree, e.masses, e.space)
        self.q, self.r = c.x, c.r
        constraints = e.constraints
        self.numbers = Records(b, "records", [k.record for k in constraints], layout.patterns)
        self.weights = b.data("inverse inertias", e.masses.inverse)
        self.parameters = b.data("parameters", np.array(list(e.description.parameters.values()) or [0.0]))
        tolerance = self.inputs.get("tolerance")
        self.tolerance = b.data("tolerance", np.array([RANK_TOLERANCE])) if tolerance is None else tolerance
        self.angles = b.temporary("angles", (max(int(e.first_angle[-1]), 1),))
        self.laws = b.temporary("laws", (max(len(constraints), 1), 3))
        self.jacobian = b.temporary("J", (max(layout.jacobian_size, 1),))
        damping = b.data("damping", np.zeros(1))
        self.solver = Solver(b, layout.plan, self.jacobian, self.weights, damping, self.tolerance, by_size=True)
        self.solver.compliance = e.compliance
        self.twists, self.wrenches, self.motion, self.before = (
            b.temporary(name, (e.nb + 1, self.width)) for name in ("twists", "wrenches", "motion", "before")
        )
        self.phi, self.rhs, self.residual, self.change, self.multipliers = (
            b.temporary(name, (max(self.m, 1),)) for name in ("phi", "rhs", "residual", "change", "multipliers")
        )

    # -- positions --------------------------------------------------------------------------------------------
    def place(self, *, moving: bool, forced: bool = False) -> None:
        """The bodies where the coordinates put them, with their twists and with the wrenches on them."""
        b, c, d = self.b, self.carried, self.e.description
        if not moving:
            c.outward(self.coordinates, None, None, None, None)
        elif not forced:
            c.outward(self.coordinates, self.inputs["v"], self.twists, None, None)
        else:
            v, tau = self.inputs["v"], b.temporary("forces", self.inputs["tau"].shape)
            b.add(Copy(self.inputs["tau"].operand, tau.operand))
            b.add(Zero(self.wrenches.operand))
            clock = self.t if "t" in self.inputs else None
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
            if "wrenches" in self.inputs:
                self._apply(self.inputs["wrenches"])
        self._turns()

    def _apply(self, wrenches: Ref) -> None:
        """Add wrenches at the bodies' own frames, a row per position."""
        b, masses, t = self.b, self.e.masses, self.carried.tree.topology
        frames = np.concatenate([masses.axes.reshape(-1, 9), masses.com], axis=1)[t.body]

        def push(r: Array, w: Array, frame: Array) -> Array:
            central = Transform(General(frame[:9].reshape(3, 3)), frame[9:]).outward_wrench(w)
            return self.space.part(np.concatenate([self.space.axes(r) @ central[:3], central[3:]]))

        body = self.carried.body
        inputs = [row(self.r, body), row(wrenches, width=6), row(b.data("body frames", frames))]
        each(b, self.nb, push, inputs, [row(self.wrenches, body, add=True)])

    def _turns(self) -> None:
        """The counted angles of couplings, by the coordinates of their joints."""
        e, d = self.e, self.e.description
        if not int(e.first_angle[-1]):
            return
        x, position = e.tree.coordinates, {int(j): i for i, j in enumerate(e.tree.topology.joint)}
        places: list[int] = []
        factors: list[tuple[float, float]] = []
        for c in e.constraints:
            if c.source.relation is not None:
                for i, index in self._turning(c):
                    places.append(int(x.q_at[i]) + index)
                    factors.append((float(x.ratio[i]), float(x.offset[i])))
                continue
            if not c.form.turns:
                continue
            (follower, leader), (ratio, offset) = c.source.joints, c.source.gear
            back = 1.0 / ratio if ratio else 0.0
            sides = ((follower, leader, ratio, offset), (leader, follower, back, -offset * back))
            for joint, other, ratio, offset in sides:
                if not d.kind_of(joint).angles:
                    continue
                # A joint that closes a loop is taken near to what the other asks of it.
                known = joint in position
                i = position[joint if known else other]
                factor = (float(x.ratio[i]), float(x.offset[i]))
                places.append(int(x.q_at[i]))
                factors.append(factor if known else (ratio * factor[0], ratio * factor[1] + offset))
        inputs = [entry(self.coordinates, self.b.column(places)), row(self.b.data("turns", np.array(factors)))]
        each(self.b, len(places), lambda q, number: q * number[0] + number[1], inputs, [entry(self.angles)])

    def _turning(self, c: Constraint) -> list[tuple[int, int]]:
        """The angles of a coupling that its tree accumulates, by their joints' positions there and their numbers."""
        relation, position = c.source.relation, self.e.tree.joint_positions
        assert relation is not None
        names = self.e.description.joint_names
        named = [(names[c.source.joints[at]], index) for at, index in relation.coordinates]
        turning = [x for x, turns in zip(named, relation.turning, strict=True) if turns]
        return [(position[name], index) for name, index in turning if name in position]

    # -- constraints ------------------------------------------------------------------------------------------
    def _record(self, form: Form, pattern: Pattern | None, members: list[int]) -> Ref:
        assert pattern is not None
        return self.numbers.part(pattern, self.b.column([self.numbers.at[k] for k in members]))

    def constrain(self) -> None:
        """Laws, Φ and J, and the factors of J M⁻¹Jᵀ."""
        if any(c.form.driven for c in self.e.constraints):
            self.b.add(Zero(self.laws.operand))
        self.evaluate_laws()
        self.equations(self.q, self.phi)
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
        b = self.b
        inputs = [entry(self.coordinates, b.column(at)), self._law(b.column(law), 0)]
        inputs.append(row(b.data("driven", np.array(numbers))))
        outputs = [entry(self.phi, self._first(law))]
        each(b, len(chosen), lambda q, f, number: q * number[0] + number[1] - f, inputs, outputs)

    # -- the answer -------------------------------------------------------------------------------------------
    def _move(self, first: bool) -> None:
        """motion = M⁻¹ wrenches, where what stands for missing inertias is taken away by the motion before."""
        masses = self.e.masses
        parts = [self.wrenches, self.weights]
        if not first and masses.added.any():
            parts += [self.b.data(self.b.free_name("added"), masses.added), self.before]

        def motion(f: Array, w: Array, *light: Array) -> Array:
            return (f + light[0] * light[1]) * w if light else f * w

        self.each_body(motion, parts, [self.motion])

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
            b.add(Copy(self.rhs.operand, self.residual.operand))
            self.solver.push(self.motion, self.residual, -1.0)
            self.solver.give_way(self.multipliers, self.residual)
            self.solver.solve(self.residual, self.change)
            self.each_equation(lambda x, y: x + y, [self.multipliers, self.change], self.multipliers)
            self.solver.pull(self.change, self.wrenches, clear=False)
            self._move(first=False)
            if light:
                b.add(Copy(self.motion.operand, self.before.operand))
                self._move(first=False)

    def _copied(
        self, function: Callable[[Array], Array], source: tuple[Ref, list[int]], to: tuple[Ref, list[int]]
    ) -> None:
        """A function of numbers of the constraints besides the tree, from these places to those."""
        (read, rows), (write, places) = source, to
        if rows:
            inputs, outputs = ([entry(ref, self.b.column(x))] for ref, x in ((read, rows), (write, places)))
            each(self.b, len(rows), function, inputs, outputs)

    @property
    def _places(self) -> tuple[list[int], list[int]]:
        """The equations of the constraints besides the tree that are solved, here and among all of them."""
        pairs = [(row, place) for place, row in enumerate(self.e.loop_rows) if row >= 0]
        return [row for row, _ in pairs], [place for _, place in pairs]

    def select(self, source: Ref, output: Ref) -> None:
        """output = the numbers of the constraints besides the tree, 0 for equations across the plane."""
        rows, places = self._places
        self.b.add(Zero(output.operand))
        self._copied(lambda x: x, (source, rows), (output, places))

    def only_loops(self, values: Ref) -> None:
        """rhs = −values for the constraints besides the tree, 0 for the others."""
        self.b.add(Zero(self.rhs.operand))
        rows, _ = self._places
        self._copied(lambda x: -x, (values, rows), (self.rhs, rows))

    def across(self, output: Ref) -> None:
        """Φ of the constraints besides the tree that have equations across the plane, which nothing can change."""
        first = np.cumsum([0, *(c.form.size for c in self.e.loop_constraints)]).tolist()
        chosen = [
            (c, at)
            for c, at in zip(self.e.loop_constraints, first, strict=False)
            if -1 in self.e.loop_rows[at : at + c.form.size]
        ]
        b = self.b
        for (form, moving), places in by_form([c for c, _ in chosen]).items():
            members = [chosen[k] for k in places]
            inputs: list[Ref] = []
            for side, moves in enumerate(moving):
                if moves:
                    inputs += self._body(self.q, b.column([c.bodies[side] for c, _ in members]))
            records = np.array([c.record for c, _ in members])
            inputs.append(row(b.data(b.free_name("across"), records)))
            block = value_block(form, moving, self.space, (None,) * records.shape[1])
            outputs = [entry(output, b.column([at for _, at in members]), (form.size,))]
            each(b, len(members), block, inputs, outputs)


Inputs = Sequence[tuple[str, tuple[int, ...]]]


def forward_dynamics(layout: CentralLayout, inputs: Inputs, *, forces: bool = False) -> Program:
    """q, v, tau [, wrenches] [, t] → the joints' accelerations, or with `forces` the multipliers."""
    w = Inertial(layout, "constraint_forces" if forces else "forward_dynamics", inputs)
    output = w.b.output("lambda" if forces else "a", (len(w.e.loop_rows),) if forces else w.inputs["v"].shape)
    w.place(moving=True, forced=True)
    w.constrain()
    w.bias(w.q, w.twists, w.phi)
    w.each_equation(lambda x: -x, [w.phi], w.rhs)
    w.law_rates(2, w.rhs)
    w.solve()
    if forces:
        w.select(w.multipliers, output)
    else:
        w.carried.rates(w.coordinates, w.motion, output, v=w.inputs["v"], twists=w.twists)
    return w.b.build(single=True)


def position_correction(layout: CentralLayout, inputs: Inputs) -> Program:
    """q [, t] → the least change of q, in the mass metric, that closes the mechanism to first order; and Φ."""
    w = Inertial(layout, "position_correction", inputs)
    dv = w.b.output("dv", (w.e.tree.coordinates.nv,))
    phi = w.b.output("phi", (len(w.e.loop_rows),))
    w.place(moving=False)
    w.constrain()
    w.count_drivers()
    w.select(w.phi, phi)
    w.across(phi)
    return _least(w, w.phi, dv)


def velocity_projection(layout: CentralLayout, inputs: Inputs) -> Program:
    """q, v [, t] → the least change of v, in the mass metric, that keeps the mechanism closed; and J v + Φ_t."""
    w = Inertial(layout, "velocity_projection", inputs)
    dv = w.b.output("dv", (w.e.tree.coordinates.nv,))
    rate = w.b.output("rate", (len(w.e.loop_rows),))
    w.place(moving=True)
    w.constrain()
    w.b.add(Zero(w.phi.operand))
    w.time_rates(w.q, w.phi)
    w.each_equation(lambda x: -x, [w.phi], w.phi)
    w.solver.push(w.twists, w.phi, 1.0)
    w.select(w.phi, rate)
    return _least(w, w.phi, dv)


def _least(w: Inertial, missed: Ref, dv: Ref) -> Program:
    """dv = the least motion that takes away what the constraints besides the tree miss."""
    w.only_loops(missed)
    w.b.add(Zero(w.wrenches.operand))
    w.solve()
    w.carried.rates(w.coordinates, w.motion, dv)
    return w.b.build(single=False)
