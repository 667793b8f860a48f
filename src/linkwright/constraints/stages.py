"""The parts of a mechanism that follow from each other: small groups of bodies which those before them determine.

A driven crank is known by itself, then a coupler and rocker together that it moves, and so on; what is left in the end
are larger loops, or bodies with freedom. J is block triangular in this order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints.recording import Layout
from linkwright.model.description import GROUND

#: The most bodies that are tried together, and the most groups tried around one body.
TOGETHER, GROUPS = 4, 200
#: The smallest singular value, of rows of length 1, at which a group counts as determined.
DETERMINED = 1e-6


@dataclass(frozen=True)
class Stage:
    """Bodies, with the constraints between them and bodies of stages before."""

    constraints: tuple[int, ...]
    bodies: tuple[int, ...]
    determined: bool


def unit_rows(j: Floats) -> Floats:
    """J with rows of length 1, or 0."""
    lengths = np.linalg.norm(j, axis=1, keepdims=True)
    return np.asarray(j / np.where(lengths > 0.0, lengths, 1.0))


class Stages:
    """Finds the stages at a state, given by its J as stored."""

    def __init__(self, layout: Layout, stored: Floats) -> None:
        self.layout, self.e, self.stored = layout, layout.equations, stored
        self.moving = [tuple({b for b in c.bodies if b != GROUND}) for c in self.e.constraints]
        self.on_body: list[list[int]] = [[] for _ in range(self.e.nb)]
        for k, bodies in enumerate(self.moving):
            for b in bodies:
                self.on_body[b].append(k)
        self.open = set(range(self.e.nb))

    def found(self) -> list[Stage]:
        stages: list[Stage] = []
        # From the drivers outward, so that few groups are tried in vain.
        driven = {b for k in self.e.drivers for b in self.moving[k]}
        waiting = deque(sorted(self.open, key=lambda b: (b not in driven, b)))
        while waiting:
            body = waiting.popleft()
            if body not in self.open:
                continue
            for group in self._groups(body):
                constraints = self._between(group)
                if self._determines(constraints, group):
                    stages.append(Stage(constraints, group, True))
                    self.open -= set(group)
                    waiting.extendleft(n for b in group for n in self._around(b))
                    break
        return stages + [Stage(self._between(group), group, False) for group in self._left()]

    def _around(self, body: int) -> list[int]:
        """The bodies that are not known yet and share a constraint with one."""
        return sorted({b for k in self.on_body[body] for b in self.moving[k]} & self.open - {body})

    def _groups(self, body: int) -> Iterator[tuple[int, ...]]:
        """Connected groups with a body, small ones first."""
        groups: list[tuple[int, ...]] = [(body,)]
        tried = {frozenset(groups[0])}
        for group in groups:  # grows while it is gone through
            yield group
            if len(group) == TOGETHER:
                continue
            for b in sorted({n for x in group for n in self._around(x)} - set(group)):
                larger = (*group, b)
                if frozenset(larger) not in tried and len(tried) < GROUPS:
                    tried.add(frozenset(larger))
                    groups.append(larger)

    def _between(self, group: tuple[int, ...]) -> tuple[int, ...]:
        """The constraints of a group whose other bodies are known."""
        inside = set(group)
        touching = sorted({k for b in group for k in self.on_body[b]})
        return tuple(k for k in touching if all(b in inside or b not in self.open for b in self.moving[k]))

    def _determines(self, constraints: tuple[int, ...], group: tuple[int, ...]) -> bool:
        if sum(self.e.constraints[k].form.size for k in constraints) < 6 * len(group):
            return False
        j = unit_rows(self.block(constraints, group))
        j = j[np.any(j != 0.0, axis=1)]
        return len(j) >= j.shape[1] and float(np.linalg.svd(j, compute_uv=False)[-1]) > DETERMINED

    def block(self, constraints: tuple[int, ...], group: tuple[int, ...]) -> Floats:
        """The rows of constraints and columns of bodies of J, turns as parts of the bodies' sizes."""
        rows = []
        for k in constraints:
            m, parts = self.e.constraints[k].form.size, self.layout.part_at[k]
            row = np.zeros((m, 6 * len(group)))
            for n, b in enumerate(group):
                if b in parts:
                    part = self.stored[parts[b] : parts[b] + 6 * m].reshape(m, 6)
                    row[:, 6 * n : 6 * n + 3] = part[:, :3]
                    row[:, 6 * n + 3 : 6 * n + 6] = part[:, 3:] / self.e.sizes[b]
            rows.append(row)
        return np.concatenate(rows) if rows else np.zeros((0, 6 * len(group)))

    def _left(self) -> list[tuple[int, ...]]:
        """What is not determined, by what hangs together."""
        groups = []
        left = set(self.open)
        while left:
            group = [min(left)]
            left.discard(group[0])
            for b in group:  # grows while it is gone through
                more = [n for n in self._around(b) if n in left]
                group += more
                left -= set(more)
            groups.append(tuple(sorted(group)))
        return groups
