"""The undriven degrees of freedom of a mechanism in words: which joint's coordinates describe them, and which bodies
move by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from linkwright.base.arguments import counted
from linkwright.base.arrays import Floats
from linkwright.constraints.constraint_equations import Equations, joint_frames
from linkwright.model.curve_elements import parts_of_curves
from linkwright.model.description import GROUND

#: Motions of less than this part of the largest are rounding.
MOVES = 1e-6
#: How much less the joints of several coordinates, and those between moving bodies, are preferred.
SEVERAL, INNER = 0.3, 0.8
#: And those of the massless bodies of curves.
CONTACT = 0.01


def undriven(e: Equations, q: Floats, motions: Floats) -> list[str]:
    """Sentences about the motions (6 nb, k), orthonormal and in the units of J, that nothing drives."""
    if not motions.shape[1]:
        return []
    idle, texts = _idle(e, motions)
    others = motions - idle @ (idle.T @ motions)
    count = motions.shape[1] - idle.shape[1]
    return [*_by_joints(e, q, others, count), *texts]


def _idle(e: Equations, motions: Floats) -> tuple[Floats, list[str]]:
    """Motions of one body alone between two joints or more, orthonormal, and what they are."""
    y = motions.reshape(e.nb, 6, -1)
    constraints: list[list[str]] = [[] for _ in range(e.nb)]
    for c in e.constraints:
        for b in set(c.bodies) - {GROUND}:
            constraints[b].append(c.name)
    vectors, texts = [], []
    for b in range(e.nb):
        others = np.delete(y, b, axis=0).reshape(-1, motions.shape[1])
        _, sizes, right = np.linalg.svd(others, full_matrices=True)
        alone = right[int(np.sum(sizes > MOVES)) :]
        if len(alone) and len(constraints[b]) > 1:
            vectors += list(alone @ motions.T)
            turning = np.abs(y[b][3:] @ alone.T).max() > MOVES
            what = "turns about itself" if turning else "moves by itself"
            name = e.description.body_names[b]
            times = f" ({counted(len(alone), 'degree of freedom', 'degrees of freedom')})" if len(alone) > 1 else ""
            ends = " and ".join(repr(name) for name in constraints[b][:2])
            texts.append(f"body {name!r} {what} between {ends}, which moves nothing else{times}")
    if not vectors:
        return np.zeros((len(motions), 0)), []
    basis, triangle = np.linalg.qr(np.array(vectors).T)
    return basis[:, np.abs(np.diag(triangle)) > MOVES], texts


def _by_joints(e: Equations, q: Floats, motions: Floats, count: int) -> Iterator[str]:
    """The joints whose coordinates describe so many motions, single coordinates at ground first."""
    names, rows = [], []
    d = e.description
    inside = set(parts_of_curves(d.point_constraints))
    for j in range(d.nj):
        kind = d.kind_of(j)
        if not kind.nv:
            continue
        rates, what = _rates(e, q, j) @ motions, f"{kind.name} joint {d.joint_names[j]!r}"
        preference = (1.0 if kind.nv == 1 else SEVERAL) * (1.0 if d.parent[j] == GROUND else INNER)
        preference *= CONTACT if d.joint_names[j] in inside else 1.0
        for row in rates:
            names.append(what)
            rows.append(preference * row)
    if not rows or not count:
        return
    chosen = [names[k] for k in _independent(np.array(rows), count)]
    for name in dict.fromkeys(chosen):
        times = chosen.count(name)
        yield name if times == 1 else f"{name} ({times} of its coordinates)"
    if len(chosen) < count:
        yield f"{count - len(chosen)} more of bodies without joints"


def _independent(rows: Floats, count: int) -> Iterator[int]:
    """So many rows, each the one that is largest when the rows before are projected out, as in a pivoted QR."""
    apart = rows.copy()
    first = float(np.linalg.norm(rows, axis=1).max())
    for _ in range(count):
        sizes = np.linalg.norm(apart, axis=1)
        largest = int(np.argmax(sizes))
        if sizes[largest] <= MOVES * max(first, MOVES):
            return
        yield largest
        unit = apart[largest] / sizes[largest]
        apart = apart - np.outer(apart @ unit, unit)


def _rates(e: Equations, q: Floats, j: int) -> Floats:
    """(n, 6 nb): the rates of a joint's coordinates, in its frame, as rows on the twists in the units of J."""
    d = e.description
    kind = d.kind_of(j)
    (r, p), _ = joint_frames(d, q, j)
    turns = {"revolute": [2], "universal": [0, 1, 2], "spherical": [0, 1, 2], "free": [0, 1, 2]}
    turns |= {name: [2] for name in ("cylindrical", "planar", "screw")}
    shifts = {"prismatic": [2], "cylindrical": [2], "planar": [0, 1], "free": [0, 1, 2]}
    rows = np.zeros((6, e.nb, 6))
    for body, sign in ((int(d.parent[j]), -1.0), (int(d.child[j]), 1.0)):
        if body == GROUND:
            continue
        arm = p - q[body, :3]
        # v + ω × arm: the velocity of the joint's point.
        cross = -np.array([[0.0, -arm[2], arm[1]], [arm[2], 0.0, -arm[0]], [-arm[1], arm[0], 0.0]])
        rows[:3, body, :3] += sign * r.T
        rows[:3, body, 3:] += sign * r.T @ cross
        rows[3:, body, 3:] += sign * r.T
    chosen = [*shifts.get(kind.name, []), *(3 + k for k in turns.get(kind.name, []))]
    scaled = (rows * e.units).reshape(6, -1)[chosen]
    lengths = np.array([1.0 if k < 3 else e.size for k in chosen])
    return np.asarray(scaled * lengths[:, None])
