"""One link as a step sees it: its joint kind, its numbers and its part of the inputs, over any scalar."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from linkwright.model.joint_kinds import JointKind
from linkwright.model.placement import placement_rotation
from linkwright.spatial.algebra import Array, inertia_times, motion_cross
from linkwright.spatial.rotation import Chain, General, joined
from linkwright.spatial.transform import ArticulatedInertia, Transform

State = Mapping[str, Array]


class Link:
    """The view of one body: `record` holds its numbers, `inputs(name)` its part of q, v, a, tau, wrenches."""

    def __init__(
        self, kind: JointKind, record: Mapping[str, Any], inputs: Callable[[str], Array], *, parent_is_ground: bool
    ) -> None:
        self.kind, self.record, self._inputs = kind, record, inputs
        self.parent_is_ground = parent_is_ground

    def __getattr__(self, name: str) -> Array:
        if name in ("q", "v", "a", "tau", "q1", "dv"):
            return self._inputs(name)
        raise AttributeError(name)

    @property
    def frame(self) -> Transform:
        """The link frame in the body's frame."""
        return Transform(General(np.asarray(self.record["frame_r"])), np.asarray(self.record["frame_p"]))

    @property
    def wrench(self) -> Array:
        """The wrench applied to the body, at the link frame in its axes."""
        return self.frame.outward_wrench(self._inputs("wrench"))

    @property
    def mass(self) -> Any:
        return self.record["mass"][0]

    @property
    def moment(self) -> Array:
        return self.record["moment"]

    @property
    def inertia(self) -> Array:
        return self.record["inertia"]

    @property
    def pitch(self) -> Any:
        return self.record["pitch"][0]

    @property
    def armature(self) -> Any:
        return self.record["armature"][0]

    def rigid_inertia(self) -> ArticulatedInertia:
        return ArticulatedInertia.rigid(self.mass, self.moment, self.inertia)

    def momentum(self, w: Array) -> Array:
        """M w of the link alone."""
        return inertia_times(self.mass, self.moment, self.inertia, w)

    def composite(self) -> Array:
        """The link's inertia as numbers that may be summed: mass, first moment, packed inertia."""
        return np.array([self.mass, *self.moment, *self.inertia])

    def composite_times(self, numbers: Array, w: Array) -> Array:
        """M w of such a sum."""
        return inertia_times(numbers[0], numbers[1:4], numbers[4:], w)

    def composite_inward(self, terms: Array, numbers: Array) -> Array:
        """Such a sum, seen from the parent frame."""
        mass, moment, inertia = self.transform(terms).rigid(numbers[0], numbers[1:4], numbers[4:])
        return np.array([mass, *moment, *inertia])

    def terms(self) -> Array:
        """The functions of q that the joint needs, its angle counted from the link frame's zero."""
        q = self.q
        terms = self.kind.terms(q, self.pitch)
        if not self.kind.turns or "rotation" in self.record:
            return terms
        angle, c, s = self.record["offset"]
        if isinstance(angle, float) and angle == 0.0:
            return terms
        if isinstance(c, float) and (c == 0.0 or s == 0.0):
            # A quarter turn only exchanges sine and cosine.
            turned = [c * terms[0] - s * terms[1], s * terms[0] + c * terms[1]]
        else:
            turned = [np.cos(q[0] + angle), np.sin(q[0] + angle)]
        return np.array([*turned, *terms[2:]])

    def transform(self, terms: Array) -> Transform:
        """The link frame in its parent's link frame."""
        kind = self.kind
        placement = placement_rotation(self.record, turning=kind.turns)
        p = self.record["p"]
        if kind.nv and not _trivial_shift(kind):
            p = p + Chain(placement).inward(kind.shift(terms, self.pitch))
        return Transform(Chain(joined((*placement, kind.rotation(terms)))), p)

    def subspace(self, terms: Array) -> Array:
        return self.kind.subspace(terms, self.pitch)

    def moving(self, terms: Array, up: Array) -> tuple[Array, Array]:
        """w of the link from its parent's, and β = w × (S v) + Ṡ v."""
        v = self.v
        joint = self.joint_twist(terms, v)
        w = self.transform(terms).outward(up) + joint
        beta = motion_cross(w, joint)
        if self.kind.selects is None:
            beta = beta + self.kind.subspace_rate(terms, self.pitch, v)
        return w, beta

    def joint_twist(self, terms: Array, v: Array) -> Array:
        """S v."""
        if self.kind.selects is not None:
            zero = np.zeros(6, dtype=object if np.asarray(v).dtype == object else float)
            for k, component in enumerate(self.kind.selects):
                zero[component] = v[k]
            return zero
        return self.subspace(terms) @ v

    def project(self, terms: Array, f: Array) -> Array:
        """Sᵀ f."""
        if self.kind.selects is not None:
            return np.array([f[k] for k in self.kind.selects])
        return self.subspace(terms).T @ f

    def complement(self, terms: Array) -> Array:
        """Q."""
        return self.kind.complement(terms, self.pitch)

    def dual(self, terms: Array) -> Array:
        """T."""
        return self.kind.dual(terms, self.pitch)

    def joint_wrench(self, terms: Array, tau: Array) -> Array:
        """T tau."""
        if self.kind.selects is not None:
            return self.joint_twist(terms, tau)
        return self.dual(terms) @ tau

    def joint_rates(self, terms: Array, w: Array) -> Array:
        """v of a twist w = S v."""
        if self.kind.selects is not None:
            return self.project(terms, w)
        return self.dual(terms).T @ w

    @property
    def geared(self) -> bool:
        """Whether its joint has an armature, as far as its structure shows."""
        return not (isinstance(self.armature, float) and self.armature == 0.0)


def _trivial_shift(kind: JointKind) -> bool:
    return type(kind).shift is JointKind.shift
