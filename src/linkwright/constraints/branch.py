"""Whether two states of a mechanism are on one branch: between them its equations never become dependent.

Where J has as many independent rows as columns, det J keeps its sign along a branch and changes it where two branches
cross. With redundant equations det(J₀ᵀJ₁) tells the same of two states near each other (by Cauchy and Binet it is the
sum of the products of all such determinants), with freedom left det(J₀W⁻¹J₁ᵀ). A step that looks smooth but has the
wrong sign went from one branch to another. Each stage of a mechanism is compared by itself: equal loops that meet
their crossings at the same time would otherwise hide each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.constraints.degrees_of_freedom import independent_rows
from linkwright.constraints.kinematic_programs import Programs
from linkwright.constraints.stages import Stages

Ints = NDArray[np.int64]
#: Stages with more columns of J than this are not compared: there the smoothness of steps alone tells.
LARGEST = 300


@dataclass(frozen=True, eq=False)
class Parts:
    """Stages of equal shape: where the entries of J stand in its store, and what makes lengths of them."""

    gather: Ints  # (parts, rows, columns); the place behind the store's end is 0
    scale: Floats  # (parts, rows, columns): the arms of equations times the square root of W⁻¹
    rows: bool  # more columns than independent rows: the products are of rows


class Branch:
    """Compares states, each with the one before it."""

    def __init__(self, programs: Programs, q: Floats, angles: Floats, t: float) -> None:
        self._programs, self._start = programs, (q, angles, np.array([t]))

    @cached_property
    def parts(self) -> list[Parts]:
        """Found when first needed: many motions never come near a crossing."""
        layout = self._programs.layout
        e = layout.equations
        stored = self._programs.evaluate(*self._start, np.zeros((e.nb, 6)))[1]
        stages = Stages(layout, stored)
        shapes: dict[tuple[int, int, bool], list[tuple[Ints, Floats]]] = {}
        for stage in stages.found():
            bodies, free = list(stage.bodies), False
            if 6 * len(bodies) > LARGEST:
                continue
            rows = [row for c in stage.constraints for row in range(int(e.first[c]), int(e.first[c + 1]))]
            if not stage.determined:
                block = stages.block(stage.constraints, stage.bodies)
                dependent = set(independent_rows(block, np.sqrt(self._programs.tolerance))[1])
                free = len(rows) - len(dependent) < 6 * len(bodies)
                if free:
                    rows = [row for k, row in enumerate(rows) if k not in dependent]
            if not rows:
                continue
            number, place = {body: k for k, body in enumerate(bodies)}, {row: k for k, row in enumerate(rows)}
            gather = np.full((len(rows), 6 * len(bodies)), layout.jacobian_size, np.int64)
            for c in stage.constraints:
                for body, at in layout.part_at[c].items():
                    for k in range(e.constraints[c].form.size):
                        row = place.get(int(e.first[c]) + k)
                        if row is not None and body in number:
                            first = 6 * number[body]
                            gather[row, first : first + 6] = np.arange(at + 6 * k, at + 6 * k + 6)
            scale = np.ones((len(bodies), 6))
            scale[:, 3:] /= e.sizes[bodies][:, None]
            whole = e.arms(e.size)[rows][:, None] * scale.reshape(-1)
            shapes.setdefault((*gather.shape, free), []).append((gather, whole))
        return [
            Parts(np.stack([g for g, _ in group]), np.stack([s for _, s in group]), free)
            for (_, _, free), group in shapes.items()
        ]

    def same(self, q: Floats, angles: Floats, times: Floats) -> NDArray[np.bool_]:
        """For states (n, ...) one after another, whether each but the first is on the branch of the one before it."""
        if not self.parts:
            return np.ones(len(q) - 1, bool)
        still = np.zeros((q.shape[1], 6))
        stored = self._programs.evaluate(q, angles, np.asarray(times)[:, None], still)[1]
        return self.connects(stored[:-1], stored[1:])

    def connects(self, before: Floats, after: Floats) -> NDArray[np.bool_]:
        """For what is stored of J at both ends of steps (n, ...), whether they are on one branch."""
        same = np.ones(len(before), bool)
        ends = [np.concatenate([x, np.zeros((len(x), 1))], axis=1) for x in (before, after)]
        for part in self.parts:
            same &= agree(part, *ends).all(axis=1)
        return same


def agree(part: Parts, before: Floats, after: Floats) -> NDArray[np.bool_]:
    """For every step and every part of equal shape, whether the determinants have one sign.

    The rows are what is stored of J at both ends of the steps, and 0 behind it.
    """
    _, m, n = part.gather.shape
    first, second = before[:, part.gather] * part.scale, after[:, part.gather] * part.scale
    if m == n:  # the sign of a product is the product of the signs, and better known
        return np.asarray(np.linalg.slogdet(first)[0] * np.linalg.slogdet(second)[0] >= 0.0)
    product = first @ second.transpose(0, 1, 3, 2) if part.rows else first.transpose(0, 1, 3, 2) @ second
    return np.asarray(np.linalg.slogdet(product)[0] >= 0.0)
