"""Where the plate is when the cranks stand so: Newton's method on the six rods' lengths, from a pose nearby.

With the knees C_i known, d_i = p + R P_i − C_i must be as long as the rod, r:

    (|d_i|² − r²) / 2r + d̂_i · δp + (R P_i × d̂_i) · δφ = 0,   p ← p + δp,   R ← exp(δφ) R.

The six rows are orthogonalised, J = L Q, with turns measured at the plate's radius; L's diagonal shows how near the
machine is to where its motors lose a direction. The factors of the last round serve the caller: J (v, ω) = b θ̇ and
τ_A = b J⁻ᵀ τ_G, with b_i = d̂_i · ∂C_i/∂θ_i.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.control.parallel.hexapod import LEGS, Hexapod
from linkwright.control.parallel.legs import crank_end, every_leg, minus, onto_ground, plus
from linkwright.spatial.algebra import cross
from linkwright.spatial.rotation import euler_parameters_matrix, quaternion_product
from linkwright.tape.block import absolute, less_equal, maximum, minimum, where
from linkwright.tape.build import ProgramBuilder, Ref, trace
from linkwright.tape.program import Copy, Each, Loop, Program, Zero

TOLERANCE = 1e-13  # m, of every rod's length: poses then are good to 1e-12
ROUNDS = 8  # at most so many corrections
STRIDE = 0.1  # m: a longer correction leaves the neighbourhood, and perhaps the branch, of the start

Vector = Sequence[Any]


def knees(geometry: Hexapod) -> Callable[[Any], tuple[Any, Any]]:
    """Driven angles (6) to the cranks' ends C_i and ∂C_i/∂θ_i, each (6, 3) in ground's axes."""
    legs, crank = every_leg(geometry), geometry.crank

    def of(theta: Any) -> tuple[Any, Any]:
        c, s = np.cos(theta), np.sin(theta)
        ends, slopes = [], []
        for k, leg in enumerate(legs):
            ends.append(crank_end(geometry, leg, c[k], s[k]))
            slopes.append(onto_ground(leg, [-crank * s[k], crank * c[k], 0.0]))
        return np.array(ends), np.array(slopes)

    return of


def dot(a: Vector, b: Vector) -> Any:
    """a · b, summed as a tree: sums in a row would wait for each other."""
    terms = [x * y for x, y in zip(a, b, strict=True)]
    while len(terms) > 1:
        paired = [x + y for x, y in zip(terms[::2], terms[1::2], strict=False)]
        terms = paired + terms[2 * len(paired) :]
    return terms[0]


def factored(rows: Sequence[Vector]) -> tuple[list[list[Any]], list[list[Any]]]:
    """J = L Q of square rows by modified Gram–Schmidt: L's rows up to the diagonal, which holds 1/L_ii; and Q."""
    ortho: list[list[Any]] = []
    remaining = [list(row) for row in rows]
    lower: list[list[Any]] = [[] for _ in rows]
    for k, row in enumerate(remaining):
        inverse = 1.0 / np.sqrt(dot(row, row))
        q = [x * inverse for x in row]
        ortho.append(q)
        lower[k].append(inverse)
        for i in range(k + 1, len(remaining)):
            factor = dot(remaining[i], q)
            lower[i].append(factor)
            remaining[i] = [x - factor * y for x, y in zip(remaining[i], q, strict=True)]
    return lower, ortho


def solved(lower: Sequence[Vector], ortho: Sequence[Vector], right: Vector) -> list[Any]:
    """x of L Q x = right."""
    y: list[Any] = []
    for row, r in zip(lower, right, strict=True):
        left = r - dot(row[:-1], y) if y else r
        y.append(left * row[-1])
    return [dot([q[i] for q in ortho], y) for i in range(len(y))]


def solved_transposed(lower: Sequence[Vector], ortho: Sequence[Vector], right: Vector) -> list[Any]:
    """y of (L Q)ᵀ y = right."""
    n = len(lower)
    y: list[Any] = [dot(q, right) for q in ortho]
    for i in reversed(range(n)):
        below = range(i + 1, n)
        left = y[i] - dot([lower[k][i] for k in below], [y[k] for k in below]) if i + 1 < n else y[i]
        y[i] = left * lower[i][-1]
    return y


def evenness(lower: Sequence[Vector]) -> Any:
    """The smallest of L's diagonal over its largest: about 1 over the condition."""
    least = most = lower[0][-1]
    for row in lower[1:]:
        least, most = minimum(least, row[-1]), maximum(most, row[-1])
    return least / most


def packed(lower: Sequence[Vector]) -> Any:
    return np.array([x for row in lower for x in row])


def unpacked(numbers: Vector, n: int = LEGS) -> list[list[Any]]:
    return [list(numbers[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]) for i in range(n)]


def moved(pose: Vector, shift: Vector, turn: Vector) -> list[Any]:
    """A pose (7) moved by a shift and turned by a small rotation vector, in ground's axes."""
    half = [1.0, *(0.5 * x for x in turn)]
    e = quaternion_product(np.array(half), np.array(list(pose[3:])))
    size = 1.0 / np.sqrt(dot(e, e))
    return [*plus(pose[:3], shift), *(x * size for x in e)]


def correction(geometry: Hexapod, tolerance: float) -> Callable[..., tuple[Any, ...]]:
    """One round: knees, slopes, pose (7), rounds so far to the next pose, rounds, whether to end, residual, L, Q, b."""
    legs, rod, size = every_leg(geometry), geometry.rod, geometry.plate_radius

    def of(ends: Any, slopes: Any, pose: Any, count: Any) -> tuple[Any, ...]:
        r = euler_parameters_matrix(pose[3:])
        rows, misses, driven, worst = [], [], [], 0.0
        for k, leg in enumerate(legs):
            arm = [dot(r[i], leg.wrist) for i in range(3)]
            d = minus(plus(pose[:3], arm), ends[k])
            miss = (dot(d, d) - rod * rod) * (0.5 / rod)
            unit = [x * (1.0 / rod) for x in d]
            rows.append([*unit, *(x * (1.0 / size) for x in cross(arm, unit))])
            misses.append(-miss)
            driven.append(dot(unit, slopes[k]))
            worst = maximum(worst, absolute(miss))
        lower, ortho = factored(rows)
        step = solved(lower, ortho, misses)
        near = less_equal(dot(step, step), STRIDE * STRIDE)
        good = less_equal(worst, tolerance)
        go = near * (1.0 - good)
        after = moved(pose, step[:3], [x * (1.0 / size) for x in step[3:]])
        following = [where(go, a, b) for a, b in zip(after, pose, strict=True)]
        return np.array(following), count + go, 1.0 - go, worst, packed(lower), np.array(ortho), np.array(driven)

    return of


@dataclass(frozen=True)
class Search:
    """The buffers in which a search for the pose leaves its results."""

    pose: Ref
    rounds: Ref
    residual: Ref
    lower: Ref
    ortho: Ref
    driven: Ref


def add_search(
    builder: ProgramBuilder, geometry: Hexapod, theta: Ref, start: Ref, tolerance: float = TOLERANCE
) -> Search:
    """Add the search for the pose at `theta`, from the pose in `start`, to a program."""
    b = builder
    ends, slopes = b.temporary("knees", (LEGS, 3)), b.temporary("slopes", (LEGS, 3))
    b.call(knees(geometry), [theta], [ends, slopes])
    pose, count = b.temporary("pose", (7,)), b.temporary("rounds", ())
    b.add(Copy(start.operand, pose.operand))
    b.add(Zero(count.operand))
    following, counted = b.temporary("next pose", (7,)), b.temporary("next rounds", ())
    done, residual = b.temporary("done", ()), b.temporary("residual", ())
    lower, ortho = b.temporary("lower", (LEGS * (LEGS + 1) // 2,)), b.temporary("ortho", (LEGS, LEGS))
    driven = b.temporary("driven", (LEGS,))
    inputs = [ends, slopes, pose, count]
    outputs = [following, counted, done, residual, lower, ortho, driven]
    block, _, _ = trace(correction(geometry, tolerance), [x.shape for x in inputs])
    carried = ((pose.operand, following.operand), (count.operand, counted.operand))
    b.add(Loop(ROUNDS + 1, (Each(1, (b.case(block, inputs, outputs),)),), carried, done.operand))
    return Search(pose, count, residual, lower, ortho, driven)


def forward_kinematics(geometry: Hexapod, *, tolerance: float = TOLERANCE) -> Program:
    """The program (theta (6), start (7)) → (pose (7), report (3)) of `geometry`, a `Hexapod`.

    Angles are in rad, poses x, y, z (m) and e0 … e3. The report is whether the pose was found (else the pose is
    `start`), the corrections taken, and the residual of the rods' lengths (m). From the pose of one sample before, 2 or
    3 corrections are usual. `tolerance` (m, 1e-13) is that of every rod's length.

    >>> import linkwright as lw
    >>> from linkwright.studies.manipulator.machine import SIX_LEG
    >>> [port.shape for port in lw.control.forward_kinematics(SIX_LEG).inputs]
    [(6,), (7,)]

    The pose of the same branch as `start` is found: a correction that leaves its neighbourhood ends the search.
    """
    b = ProgramBuilder("forward_kinematics")
    theta, start = b.input("theta", (LEGS,)), b.input("start", (7,))
    pose, report = b.output("found", (7,)), b.output("report", (3,))
    search = add_search(b, geometry, theta, start, tolerance)

    def ending(start: Any, pose: Any, rounds: Any, residual: Any) -> tuple[Any, Any]:
        good = less_equal(residual, tolerance)
        nearest = [where(good, x, y) for x, y in zip(pose, start, strict=True)]
        return np.array(nearest), np.array([good, rounds, residual])

    b.call(ending, [start, search.pose, search.rounds, search.residual], [pose, report])
    return b.build(single=False)
