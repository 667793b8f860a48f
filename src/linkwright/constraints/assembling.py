"""Assembly of many cases abreast: the damped Newton method of `assembly`, from the same starts, in lanes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from linkwright.base.types import Floats
from linkwright.constraints.assembled import (
    EXACT,
    FALL,
    ITERATIONS,
    MISFIT,
    PATIENCE,
    SHIFT,
    TURN,
    Assembled,
    rank_tolerance,
)
from linkwright.constraints.assembly import TRIES
from linkwright.constraints.case_numbers import CaseNumbers
from linkwright.constraints.counting import counted_at_start
from linkwright.constraints.equations import Equations
from linkwright.constraints.forms import between
from linkwright.constraints.kinematics import Kinematics
from linkwright.constraints.lanes import in_lanes, some
from linkwright.constraints.recorded import moved
from linkwright.mechanism.description import GROUND
from linkwright.mechanism.kinds import KINDS
from linkwright.spatial.algebra import Array
from linkwright.spatial.rotation import euler_parameters_matrix
from linkwright.tape.build import record
from linkwright.tape.functions import absolute, maximum
from linkwright.tape.program import Program

Flags = NDArray[np.bool_]
Rows = NDArray[np.int64]


@dataclass(eq=False)
class Settled:
    """States of cases: those that are `closed` go together; `open` has those that do not, by the case's number."""

    q: Floats
    angles: Floats
    miss: Floats
    pivots: Floats
    iterations: NDArray[np.int64]
    closed: Flags
    tolerance: float
    open: dict[int, Assembled] = field(default_factory=dict)

    @property
    def lost(self) -> Floats:
        """How many equations repeat others."""
        return np.asarray(np.sum(self.pivots <= self.tolerance, axis=1, dtype=np.float64))

    @property
    def pivot(self) -> Floats:
        """The smallest that counts."""
        return np.asarray(np.min(np.where(self.pivots > self.tolerance, self.pivots, 1.0), axis=1, initial=1.0))

    @property
    def free(self) -> Flags:
        """Whether freedom is left."""
        return np.asarray(6 * self.q.shape[1] > self.pivots.shape[1] - self.lost)

    def some(self, rows: Rows) -> Settled:
        """Those of some rows."""
        states = (self.q[rows], self.angles[rows], self.miss[rows], self.pivots[rows])
        return Settled(*states, self.iterations[rows], self.closed[rows], self.tolerance)

    def one(self, k: int) -> Assembled:
        """That of one row."""
        return Assembled(
            self.q[k].copy(), self.angles[k].copy(), float(self.miss[k]), self.pivots[k].copy(), int(self.iterations[k])
        )


class Settling:
    """Assembles cases at a time."""

    def __init__(self, kinematics: Kinematics, numbers: CaseNumbers, t: float, tolerance: float | None) -> None:
        self.e, self.programs, self.numbers = kinematics.equations, kinematics.programs, numbers
        self.at = np.array([t])
        self.allowed = np.minimum(np.inf if tolerance is None else tolerance, MISFIT * numbers.size)

    def assembled(self, rows: Rows, drawn: Floats | None = None) -> Settled:
        """The assembled state of each case nearest to where its bodies are drawn, or to states (rows, nb, 7).

        One whose joints close the wrong way round, or hold but for a misfit, is neither closed nor open.
        """
        e, exact = self.e, EXACT * self.numbers.size[rows]
        drawn = self.numbers.start[rows] if drawn is None else drawn
        best: Settled | None = None
        rng = np.random.default_rng(0)
        left = np.arange(len(rows))
        spent = np.zeros(len(rows), np.int64)
        for attempt in range(TRIES):
            shake = rng.normal(size=(e.nb, 6)) * (0.08 * attempt)
            q = drawn[left]
            if attempt:
                shakes = np.broadcast_to(shake, (len(left), e.nb, 6)).copy()
                shakes[:, :, :3] *= self.numbers.sizes[rows[left]][:, :, None]
                q = np.ascontiguousarray(moved(q.transpose(2, 0, 1), shakes.transpose(2, 0, 1)).transpose(1, 2, 0))
            found = self._settle(rows[left], q)
            spent[left] += found.iterations
            if best is None:
                best = found
            else:
                # What closes with axes opposite gives way to what closes as drawn, whatever rounding leaves of either.
                closes = (found.miss <= exact[left]) & ~self._wrong_way(rows[left], found.q)
                better = closes | (found.miss < best.miss[left])
                for name in ("q", "angles", "miss", "pivots"):
                    getattr(best, name)[left[better]] = getattr(found, name)[better]
            done = best.miss[left] <= exact[left]
            done &= ~self._wrong_way(rows[left], best.q[left])
            best.closed[left[done]] = True
            left = left[~done]
            # Turns are counted where bodies are drawn, case by case.
            if not len(left) or int(e.first_angle[-1]):
                break
        assert best is not None
        best.iterations = spent
        for k in left if not int(e.first_angle[-1]) else ():
            if best.miss[k] > max(self.allowed[rows[k]], exact[k]):
                best.open[int(rows[k])] = best.one(int(k))
        return best

    # -- Newton's method ------------------------------------------------------------------------------------
    def _evaluated(self, numbers: dict[str, Floats], q: Floats, angles: Floats) -> dict[str, Floats]:
        given = {**numbers, "q": q, "angles": angles, "t": self.at, "v": np.zeros((self.e.nb, 6))}
        return in_lanes(self.programs.evaluation, given, len(q))

    def _corrected(self, numbers: dict[str, Floats], q: Floats, angles: Floats, damping: Floats) -> dict[str, Floats]:
        given = {**numbers, "q": q, "angles": angles, "t": self.at, "damping": damping[:, None]}
        return in_lanes(self.programs.correction, given, len(q))

    def _settle(self, rows: Rows, q: Floats) -> Settled:
        """As `assembled.settle`, for every row."""
        n = len(rows)
        numbers = some(self.numbers.inputs, rows)
        size, sizes = self.numbers.size[rows], self.numbers.sizes[rows]
        turns = self._turns(rows, q)
        found = self._evaluated(numbers, q, turns)
        turns, norms = found["angles_there"], self._row_norms(found["jacobian"], size, sizes)
        scaled = found["phi"] / norms
        miss, merit = np.max(np.abs(scaled), axis=1, initial=0.0), np.sum(scaled**2, axis=1)
        damping, spent, idle = np.zeros(n), np.zeros(n, np.int64), np.zeros(n, np.int64)
        q = q.copy()
        at = np.arange(n)  # those that go on
        leave_out, usual = np.ones(n, bool), float(numbers["tolerance"][0])
        for _ in range(ITERATIONS):
            spent[at] += 1
            few = numbers if len(at) == n else some(numbers, at)
            tolerance = np.where(leave_out[at], rank_tolerance(miss[at] / size[at]), usual)
            fewer = tolerance > usual
            delta = self._corrected({**few, "tolerance": tolerance[:, None]}, q[at], turns[at], damping[at])["delta"]
            turn = np.max(np.abs(delta[:, :, 3:]), axis=(1, 2), initial=0.0)
            shift = np.max(np.abs(delta[:, :, :3]), axis=(1, 2), initial=0.0) / size[at]
            short = np.minimum(1.0, np.minimum(TURN / np.maximum(turn, 1e-300), SHIFT / np.maximum(shift, 1e-300)))
            steps = (short[:, None, None] * delta).transpose(2, 0, 1)
            ahead = np.ascontiguousarray(moved(q[at].transpose(2, 0, 1), steps).transpose(1, 2, 0))
            found = self._evaluated(few, ahead, turns[at])
            scaled = found["phi"] / norms[at]
            wanted = np.sum(scaled**2, axis=1)
            idle[at] = np.where(wanted < (1.0 - FALL) * merit[at], 0, idle[at] + 1)
            largest = np.maximum(turn, shift)
            taken = (wanted < merit[at]) | ((largest < 1e-13) & (wanted <= 4.0 * merit[at]))
            new, old = at[taken], at[~taken & ~fewer]
            q[new], turns[new], merit[new] = ahead[taken], found["angles_there"][taken], wanted[taken]
            miss[new] = np.max(np.abs(scaled[taken]), axis=1, initial=0.0)
            damping[new] = np.where(damping[new] < 1e-9, 0.0, 0.1 * damping[new])
            still = taken & (largest < 1e-11) & (damping[at] == 0.0)
            leave_out[at[fewer & (still | ~taken)]] = False
            over = still & ~fewer
            over |= ~taken & (miss[at] <= EXACT * size[at])
            damping[old] = np.maximum(1e-4, 10.0 * damping[old])
            over |= ~(damping[at] <= 1e8) | ~np.isfinite(largest) | (idle[at] >= PATIENCE)
            at = at[~over]
            if not len(at):
                break
        pivots = self._corrected(numbers, q, turns, np.zeros(n))["pivots"]
        return Settled(q, turns, miss, pivots, spent, np.zeros(n, bool), float(numbers["tolerance"][0]))

    def _turns(self, rows: Rows, q: Floats) -> Floats:
        e = self.e
        if not int(e.first_angle[-1]):
            return np.zeros((len(rows), 1))
        cases, t = self.numbers.cases, float(self.at[0])
        each = (Equations(cases.one(int(row))) for row in rows)
        return np.array([counted_at_start(own, state, t) for own, state in zip(each, q, strict=True)])

    def _row_norms(self, stored: Floats, size: Floats, sizes: Floats) -> Floats:
        """As `assembly.row_norms`."""
        layout = self.programs.layout
        rows, bodies = layout.entries
        parts = stored[:, : layout.jacobian_size].reshape(len(stored), -1, 6).copy()
        parts[:, :, 3:] /= sizes[:, bodies, None]
        squares = np.zeros((len(stored), self.e.count))
        each, found = np.sum(parts**2, axis=2), np.zeros(len(rows), np.int64)
        order = np.argsort(rows, kind="stable")
        first = np.searchsorted(rows[order], np.arange(self.e.count))
        found[order] = np.arange(len(rows)) - first[rows[order]]  # how many entries of its row come before
        for k in range(int(found.max(initial=-1)) + 1):
            squares[:, rows[found == k]] += each[:, found == k]
        return np.where(squares > 0.0, np.sqrt(squares), 1.0 / self.e.arms(size))

    # -- joints that close the wrong way round --------------------------------------------------------------
    def _wrong_way(self, rows: Rows, q: Floats) -> Flags:
        records = self.numbers.inputs["records"][rows]
        program = self.programs.kernel("gap", lambda layout: _gap(layout.equations))
        found = in_lanes(program, {"q": q, "records": records}, len(rows))
        return next(iter(found.values()))[:, 0] > 1.0


def _gap(e: Equations) -> Program:
    """q, records → the largest gap between the axes of any joint, as `assembled.wrong_way` measures it."""
    at = [0, *np.cumsum([len(c.record) for c in e.constraints]).tolist()]
    joints = [(c, at[k]) for k, c in enumerate(e.constraints) if c.group == "joint"]
    names = e.description.joint_names
    kinds = [KINDS[e.description.kind_of(names.position("joint", c.name)).name] for c, _ in joints]

    def gap(q: Array, records: Array) -> Array:
        def placed(body: int, first: int) -> tuple[Array, Array]:
            r, p = records[first : first + 9].reshape(3, 3), records[first + 9 : first + 12]
            if body == GROUND:
                return r, p
            turn = euler_parameters_matrix(q[body, 3:])
            return turn @ r, q[body, :3] + turn @ p

        most = 0.0 * q[0, :1]
        for (c, first), kind in zip(joints, kinds, strict=True):
            i, j = (placed(body, first + 12 * side) for side, body in enumerate(c.bodies))
            for x in np.asarray(kind.gap(between(i, j)[0], np.zeros(3))).reshape(-1):
                most = maximum(most, absolute(x + 0.0 * q[0, :1]))
        return most

    return record(gap, (e.nb, 7), (max(at[-1], 1),))
