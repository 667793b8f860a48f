"""Assembly of one mechanism as one program: from a guess of the tree's coordinates, by the damped Newton method, to the
coordinates at which it is assembled.

The rounds are those of `newton.damped_newton` from where the guess draws the bodies; `assembly` starts again elsewhere
and says what cannot be assembled. The answer is NaN where that has to be asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.constraints.constraint_equations import Equations
from linkwright.constraints.constraint_forms import between
from linkwright.constraints.elimination import RANK_TOLERANCE
from linkwright.constraints.form_programs import each, entry, row
from linkwright.constraints.kinematic_programs import correction
from linkwright.constraints.newton import (
    EXACT,
    FALL,
    ITERATIONS,
    MISFIT,
    MOST,
    OPPOSITE,
    PATIENCE,
    SHIFT,
    TURN,
    TURNED,
)
from linkwright.constraints.program_layout import Layout, Recording, moved, numbers
from linkwright.constraints.tree_bodies import joint_coordinates
from linkwright.kernels.kernel import Kernel, kernel
from linkwright.model.body_motion import NUMBERS
from linkwright.model.description import GROUND
from linkwright.model.tree import Tree
from linkwright.spatial.algebra import Array
from linkwright.spatial.rotation import euler_parameters, euler_parameters_matrix
from linkwright.tape.block import absolute, less_equal, maximum, minimum, where
from linkwright.tape.build import ProgramBuilder, Ref
from linkwright.tape.program import Loop, Program, Zero

#: The links up to which the tree's joints are laid out.
LINKS = 64
TINY = 1e-300


class Assembler:
    """The assembly of one mechanism from guesses of its tree's coordinates."""

    def __init__(self, tree: Tree) -> None:
        self.tree, self.equations = tree, Equations(tree.description)

    def coordinates(self, guess: Floats, t: float) -> Floats | None:
        """The q (nq,) nearest to a guess at which the mechanism is assembled; None where `assembly` has to be asked."""
        if self._kernel is None or not isinstance(t, float | int):
            return None
        q: Floats = self._kernel(guess, np.array([t]), *self._numbers)
        return q if np.isfinite(q).all() else None

    @cached_property
    def _kernel(self) -> Kernel | None:
        if not _covers(self.tree, self.equations):
            return None
        tree, e, d = self.tree, self.equations, self.tree.description
        arrays = (d.kind, d.parent, d.child, tree.topology.joint, tree.topology.reverse)
        request = "assembly", *(x.tolist() for x in arrays)
        return kernel(e.structure, request, lambda: assembly(tree, Layout(e)), recent=True, seldom=True)

    @cached_property
    def _numbers(self) -> list[Floats]:
        """The inputs after the guess and the time."""
        d = self.tree.description
        frames = [np.asarray(getattr(d, name), np.float64).reshape(_shape(d.nj, name)) for name in NUMBERS]
        return [*frames, np.array([d.length_scale]), *numbers(self.equations).values()]


def _shape(joints: int, name: str) -> tuple[int, int]:
    return joints, {"r": 9, "p": 3}[name[0]] if name != "pitch" else 1


def _covers(tree: Tree, e: Equations) -> bool:
    """Whether the program is for such a mechanism: few links, no turns to be counted, and equations that do not depend
    on how the bodies are drawn."""
    d = tree.description
    drawn = any(driver.kind == "angle" and "h" not in driver.axes for driver in d.drivers)
    counted = bool(d.mimics) or int(e.first_angle[-1]) > 0
    frames = np.any(d.pi) or np.any(d.pj)  # which tell a length, where the drawing would otherwise
    return 0 < tree.n <= LINKS and e.count > 0 and bool(frames) and not drawn and not counted


def assembly(tree: Tree, layout: Layout) -> Program:
    """q, t, the mechanism's numbers → q at which it is assembled; NaN where the method ends elsewhere."""
    return _Assembly(tree, layout).program()


class _Assembly:
    """The recording of `assembly`."""

    def __init__(self, tree: Tree, layout: Layout) -> None:
        self.tree, self.layout, e = tree, layout, layout.equations
        self.b = b = ProgramBuilder("assembly")
        self.nb, self.m = e.nb, e.count
        self.guess, self.t = b.input("guess", (tree.coordinates.nq,)), b.input("t", (1,))
        self.frames = [b.input(name, _shape(tree.description.nj, name)) for name in NUMBERS]
        self.size = b.input("size", (1,))
        self.numbers = {name: b.input(name, x.shape) for name, x in numbers(e).items()}
        self.out = b.output("q", (tree.coordinates.nq,))
        self.angles = b.data("angles", np.zeros(1))
        self.gaps = _gaps(layout)
        self.jacobian = b.temporary("jacobian", (max(layout.jacobian_size, 1),))
        self.phi, self.norms = b.temporary("phi", (self.m,)), b.temporary("norms", (self.m,))

    def program(self) -> Program:
        b, nb = self.b, self.nb
        q, ahead, following = (b.temporary(name, (nb, 7)) for name in ("now", "ahead", "next"))
        b.call(self._drawn, [self.guess, *self.frames], [q])
        self._evaluate(q)
        self._measure_rows()
        scalars = ("miss", "merit", "damping", "idle", "left out")
        now, then = ([b.temporary(f"{name}{end}", ()) for name in scalars] for end in ("", " next"))
        b.call(lambda: (np.array(0.0), np.array(0.0), np.array(1.0)), [], now[2:])
        self._misses(now[0], now[1])
        body = self._round(q, ahead, following, now, then)
        carried = [(q, following), *zip(now, then, strict=True)]
        b.add(Loop(ITERATIONS, body, tuple((x.operand, y.operand) for x, y in carried), self.over.operand))
        b.call(self._joined, [self.guess, q, now[0], self.size, *self.frames], [self.out])
        return b.build()

    # -- the rounds -----------------------------------------------------------------------------------------------
    def _round(self, q: Ref, ahead: Ref, following: Ref, now: Sequence[Ref], then: Sequence[Ref]) -> tuple[Any, ...]:
        """The statements of one round."""
        b, nb = self.b, self.nb
        outside, b.statements = b.statements, []
        (miss, _, damping, _, left_out), usual = now, self.numbers["tolerance"]
        tolerance, strength = b.temporary("part", (1,)), b.temporary("strength", (1,))
        shift, turn, short = (b.temporary(name, ()) for name in ("shift", "turn", "short"))
        worst, total = b.temporary("worst", ()), b.temporary("total", ())
        self.over = b.temporary("over", ())
        b.call(_tolerance, [miss, left_out, self.size, usual, damping], [tolerance, strength])
        delta = self._correct(q, {"tolerance": tolerance, "damping": strength})
        for into in (shift, turn):
            b.add(Zero(into.operand))
        each(b, nb, _largest, [shift, turn, row(delta)], [shift, turn], "outward")
        b.call(_shortened, [shift, turn, self.size], [shift, short])
        each(b, nb, lambda x, d, part: moved(x, part * d), [row(q), row(delta), short], [row(ahead)])
        self._evaluate(ahead)
        self._misses(worst, total)
        taken = b.temporary("taken", ())
        inputs = [*now, tolerance, usual, shift, turn, worst, total, self.size]
        b.call(_judged, inputs, [*then, taken, self.over])
        each(b, nb, lambda x, y, yes: where(yes > 0.0, y, x), [row(q), row(ahead), taken], [row(following)])
        statements, b.statements = tuple(b.statements), outside
        return statements

    def _correct(self, q: Ref, more: dict[str, Ref]) -> Ref:
        """The correction at a state."""
        program = correction(self.layout)
        inputs = {**self.numbers, "q": q, "angles": self.angles, "t": self.t, **more}
        outputs = {port.name: self.b.temporary(f"corrected {port.name}", port.shape) for port in program.outputs}
        self.b.run(program, [inputs[port.name] for port in program.inputs], list(outputs.values()))
        return outputs["delta"]

    def _evaluate(self, q: Ref) -> None:
        """Φ and the parts of J at a state."""
        inputs = {**self.numbers, "q": q, "angles": self.angles, "t": self.t}
        outputs = {"phi": self.phi, "jacobian": self.jacobian}
        ports = self.gaps
        self.b.run(ports, [inputs[x.name] for x in ports.inputs], [outputs[x.name] for x in ports.outputs])

    def _measure_rows(self) -> None:
        """How fast each equation changes with the bodies' shifts and turns, as `Batch.row_norms`."""
        b, (rows, bodies) = self.b, self.layout.entries
        squares = b.temporary("squares", (self.m,))
        b.add(Zero(squares.operand))
        parts = self.jacobian.part(0, (6,)).at((6, b.column(np.arange(len(rows)))))

        def square(part: Array, length: Array) -> Array:
            return np.array([part[:3] @ part[:3] + (part[3:] @ part[3:]) / (length[0] * length[0])])

        lengths = entry(self.numbers["lengths"], b.column(bodies))
        each(b, len(rows), square, [parts, lengths], [entry(squares, b.column(rows), add=True)])

        def norm(x: Array, arm: Array) -> Array:
            none = less_equal(x[0], 0.0)
            return np.array([where(none, 1.0 / arm[0], np.sqrt(where(none, 1.0, x[0])))])

        each(b, self.m, norm, [entry(squares), entry(self.numbers["arms"])], [entry(self.norms)])

    def _misses(self, worst: Ref, total: Ref) -> None:
        """The largest gap (m), and the sum of the squares of all."""
        for into in (worst, total):
            self.b.add(Zero(into.operand))

        def larger(most: Array, merit: Array, phi: Array, norm: Array) -> tuple[Array, Array]:
            gap = phi[0] / norm[0]
            return maximum(most, absolute(gap)), merit + gap * gap

        inputs = [worst, total, entry(self.phi), entry(self.norms)]
        each(self.b, self.m, larger, inputs, [worst, total], "outward")

    # -- the tree -------------------------------------------------------------------------------------------------
    def _drawn(self, q: Array, *frames: Array) -> Array:
        """(nb, 7): the bodies where the tree's coordinates have them."""
        tree, x = self.tree, self.tree.coordinates
        rows: list[Any] = [None] * self.nb
        placed: list[tuple[Array, Array]] = []
        for i, j in enumerate(tree.topology.joint.tolist()):
            sides = _sides(frames, j)
            (r_up, p_up), (r_down, p_down) = sides[::-1] if tree.topology.reverse[i] else sides
            kind, pitch = tree.kinds[i], frames[4][j][0]
            up = int(tree.topology.parent[i])
            r, p = placed[up] if up >= 0 else (np.eye(3), np.zeros(3))
            terms = kind.terms(q[int(x.q_at[i]) : int(x.q_at[i]) + kind.nq], pitch)
            r_near = r @ r_up
            r_far = r_near @ kind.rotation(terms).matrix()
            origin = p + r @ p_up + r_near @ kind.shift(terms, pitch)
            turned = r_far @ r_down.T
            placed.append((turned, origin - turned @ p_down))
            rows[int(tree.topology.body[i])] = np.concatenate([placed[i][1], euler_parameters(turned)])
        return np.stack(rows)

    def _joined(self, guess: Array, states: Array, miss: Any, size: Array, *frames: Array) -> Array:
        """The tree's coordinates at states of the bodies, NaN where these do not hold the constraints."""
        d, tree, x = self.tree.description, self.tree, self.tree.coordinates
        poses = {b: (euler_parameters_matrix(states[b][3:]), states[b][:3]) for b in range(self.nb)}
        poses[GROUND] = np.eye(3), np.zeros(3)
        opposite: Any = 0.0
        at: dict[int, tuple[Array, Array]] = {}
        for j in range(d.nj):
            ends = []
            for (r, p), body in zip(_sides(frames, j), (int(d.parent[j]), int(d.child[j])), strict=True):
                turn, origin = poses[body]
                ends.append((turn @ r, origin + turn @ p))
            at[j] = between(*ends)
            for gap in d.kind_of(j).gap(at[j][0], np.zeros(3)):
                opposite = maximum(opposite, absolute(gap))
        q = list(guess)
        for i, j in enumerate(tree.topology.joint.tolist()):
            kind, first = d.kind_of(j), int(x.q_at[i])
            near = guess[first : first + kind.nq]
            q[first : first + kind.nq] = joint_coordinates(kind, *at[j], frames[4][j][0], near)
        closed = where(opposite <= OPPOSITE, less_equal(miss, EXACT * size[0]), 0.0)
        with np.errstate(invalid="ignore"):
            return np.array([where(closed, y, np.nan) for y in q])


def _sides(frames: Sequence[Array], j: int) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """R and p of a joint's frame on its parent, and of that on its child."""
    ri, pi, rj, pj, _ = frames
    return (ri[j].reshape(3, 3), pi[j]), (rj[j].reshape(3, 3), pj[j])


def _gaps(layout: Layout) -> Program:
    """q, angles, t → Φ and the parts of J."""
    w = Recording(layout, "gaps")
    phi = w.b.output("phi", (w.m,))
    w.evaluate_laws()
    w.axes(w.q)
    w.equations(w.q, phi)
    w.b.make_output(w.jacobian, "jacobian")
    return w.b.build()


def _tolerance(miss: Any, left_out: Any, size: Array, usual: Array, damping: Any) -> tuple[Array, Array]:
    """The part of a row's size below which its pivot is lost, as `newton.rank_tolerance`; and the damping."""
    part = miss / size[0]
    turned = minimum(maximum((TURNED * minimum(part, MISFIT)) ** 2, RANK_TOLERANCE), MOST)
    fewer = where(part <= MISFIT, turned, RANK_TOLERANCE)
    return np.array([where(left_out > 0.0, fewer, usual[0])]), np.array([damping])


def _largest(shift: Any, turn: Any, d: Array) -> tuple[Any, Any]:
    for k in range(3):
        shift, turn = maximum(shift, absolute(d[k])), maximum(turn, absolute(d[3 + k]))
    return shift, turn


def _shortened(shift: Any, turn: Any, size: Array) -> tuple[Any, Any]:
    """The largest shift as a part of the size, and the part of a correction that does not go too far."""
    part = shift / size[0]
    return part, minimum(1.0, minimum(TURN / maximum(turn, TINY), SHIFT / maximum(part, TINY)))


def _judged(
    miss: Any,
    merit: Any,
    damping: Any,
    idle: Any,
    left_out: Any,
    tolerance: Array,
    usual: Array,
    shift: Any,
    turn: Any,
    worst: Any,
    total: Any,
    size: Array,
) -> tuple[Any, ...]:
    """What the next round begins with, whether this one is taken, and whether it was the last."""
    fewer, largest = tolerance[0] > usual[0], maximum(turn, shift)
    still_near = where(largest < 1e-13, less_equal(total, 4.0 * merit), 0.0)
    taken = where(total < merit, 1.0, still_near)
    idle = where(total < (1.0 - FALL) * merit, 0.0, idle + 1.0)
    miss, merit = where(taken > 0.0, worst, miss), where(taken > 0.0, total, merit)
    less_damped, more = where(damping < 1e-9, 0.0, 0.1 * damping), maximum(1e-4, 10.0 * damping)
    damping = where(taken > 0.0, less_damped, where(fewer, damping, more))
    still = where(damping <= 0.0, where(largest < 1e-11, taken, 0.0), 0.0)
    stuck = maximum(still, 1.0 - taken)
    over = maximum(still, where(taken > 0.0, 0.0, less_equal(miss, EXACT * size[0])))
    over = where(fewer, 0.0, over)
    lost = where(damping <= 1e8, where(largest < np.inf, 0.0, 1.0), 1.0)
    over = maximum(maximum(over, lost), less_equal(float(PATIENCE), idle))
    left_out = where(fewer, where(stuck > 0.0, 0.0, left_out), left_out)
    return miss, merit, damping, idle, left_out, taken, over
