"""Joints seen from their child's side."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.model.joint_kinds import KINDS, JointKind
from linkwright.spatial.algebra import Array
from linkwright.spatial.rotation import General, Rotation
from linkwright.spatial.transform import Transform


class Reversed(JointKind):
    """A joint whose child is nearer to ground than its parent: the same coordinates, seen from the other side."""

    def __init__(self, kind: JointKind) -> None:
        self.kind = kind
        self.name, self.nq, self.nv = f"reversed {kind.name}", kind.nq, kind.nv
        self.selects = None if kind.nv else ()
        self.steady = not kind.nv
        self.paired = kind.paired

    def terms(self, q: Array, pitch: Any) -> Array:
        return self.kind.terms(q, pitch)

    def rotation(self, terms: Array) -> Rotation:
        return General(self.kind.rotation(terms).matrix().T)

    def shift(self, terms: Array, pitch: Any) -> Array:
        return -self.kind.rotation(terms).outward(self.kind.shift(terms, pitch))

    def _across(self, terms: Array, pitch: Any, w: Array) -> Array:
        """A relative twist, turned round and taken to the axes and origin of the other triad."""
        return -self._placement(terms, pitch).inward_twist(w)

    def _placement(self, terms: Array, pitch: Any) -> Transform:
        """Triad j in triad i."""
        return Transform(self.kind.rotation(terms), self.kind.shift(terms, pitch))

    def subspace(self, terms: Array, pitch: Any) -> Array:
        s = self.kind.subspace(terms, pitch)
        columns = [self._across(terms, pitch, s[:, k]) for k in range(self.nv)]
        return np.stack(columns, axis=1) if columns else np.zeros((6, 0))

    def subspace_rate(self, terms: Array, pitch: Any, v: Array) -> Array:
        return self._across(terms, pitch, self.kind.subspace_rate(terms, pitch, v))

    def _held(self, terms: Array, pitch: Any, wrenches: Array) -> Array:
        """Columns of wrenches, taken to the axes and origin of the other triad."""
        return self._placement(terms, pitch).inward_columns(wrenches)

    def complement(self, terms: Array, pitch: Any) -> Array:
        return self._held(terms, pitch, self.kind.complement(terms, pitch))

    def dual(self, terms: Array, pitch: Any) -> Array:
        return -self._held(terms, pitch, self.kind.dual(terms, pitch))

    def rate(self, q: Array, v: Array) -> Array:
        return self.kind.rate(q, v)

    def neutral(self) -> Array:
        return self.kind.neutral()

    def checked(self, q: Array, joint: str) -> Array:
        return self.kind.checked(q, joint)

    def integrate(self, q: Array, dv: Array) -> Array:
        return self.kind.integrate(q, dv)

    def difference(self, q0: Array, q1: Array) -> Array:
        return self.kind.difference(q0, q1)


_REVERSED = {name: Reversed(kind) for name, kind in KINDS.items()}


def reverse(kind: JointKind) -> JointKind:
    """The same joint, seen from its child."""
    return _REVERSED[kind.name]
