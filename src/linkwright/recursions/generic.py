r"""Operation counts of the methods for arithmetic that is not specialised to a joint, as papers count them.

The same steps run over a chain whose links know nothing of themselves: C_i a full 6×6, J_i a full 6-vector (one degree
of freedom, J̇ = 0), M_i a full symmetric 6×6, all given, so that nothing folds. Counted are Iwamura and Schiehlen's
three steps: w, β and k; the way in; the way out. C_i, J_i and M_i are given there too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from linkwright.errors import ModelError, NameNotFound
from linkwright.mechanism.generate import chain
from linkwright.mechanism.kinds import JointKind
from linkwright.mechanism.topology import span
from linkwright.mechanism.tree import Tree
from linkwright.recursions.link import Link
from linkwright.recursions.methods import METHODS
from linkwright.recursions.traversal import InwardStep, Shape, Unrolled
from linkwright.spatial.algebra import Array
from linkwright.spatial.transform import ArticulatedInertia
from linkwright.tape.build import trace

_UPPER = np.triu_indices(6)

#: Methods that are not a function of a traversal count for themselves: links → operations by name.
OWN: dict[str, Callable[[int], Mapping[str, int]]] = {}


def operation_counts(n: int, method: str) -> tuple[int, int]:
    """Multiplications and additions of forward dynamics for a chain of n links, not specialised to its joints.

    A division counts as a multiplication, a subtraction or change of sign as an addition.
    """
    if n < 1:
        raise ModelError(f"a mechanism needs at least 1 link, not {n}")
    if method in OWN:
        return grouped(OWN[method](n))
    if method not in METHODS:
        raise NameNotFound("method", method, [*METHODS, *OWN])
    tree = Tree(description := chain(n), span(description))

    def forward(c: Array, j: Array, m: Array, v: Array, tau: Array, gravity: Array) -> Array:
        inputs = {"C": c, "J": j, "M": m, "v": v, "tau": tau, "a": np.zeros(n)}
        return METHODS[method](GenericChain(tree, inputs), gravity)

    block, _, _ = trace(forward, [(n, 6, 6), (n, 6), (n, 21), (n,), (n,), (3,)])
    return grouped(block.count())


def grouped(counts: Mapping[str, int]) -> tuple[int, int]:
    """Multiplications (and divisions), additions (and subtractions and changes of sign)."""
    return sum(counts.get(k, 0) for k in ("mul", "div")), sum(counts.get(k, 0) for k in ("add", "sub", "neg"))


class GenericJoint(JointKind):
    """One degree of freedom along a direction that is not known to be special."""

    name, nq, nv, selects = "generic", 1, 1, None


class GenericTransform:
    """C as a full matrix."""

    def __init__(self, c: Array) -> None:
        self.c = c

    def outward(self, w: Array) -> Array:
        return self.c @ w

    def inward(self, f: Array) -> Array:
        return self.c.T @ f

    def inertia(self, i: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia.from_dense(self.c.T @ (i.dense() @ self.c))


class GenericLink(Link):
    """A link of which C, J and M are all that is known."""

    def __init__(self, i: int, inputs: Mapping[str, Array]) -> None:
        super().__init__(GenericJoint(), {"armature": [0.0]}, lambda name: inputs[name][i : i + 1], grounded=i == 0)
        self.c, self.j, self.packed = inputs["C"][i], inputs["J"][i], inputs["M"][i]

    def terms(self) -> Array:
        return np.zeros(0)

    def transform(self, terms: Array) -> Any:
        return GenericTransform(self.c)

    def subspace(self, terms: Array) -> Array:
        return self.j[:, None]

    @property
    def pitch(self) -> Any:
        return 0.0

    def rigid_inertia(self) -> ArticulatedInertia:
        return ArticulatedInertia.from_dense(_full(self.packed))

    def momentum(self, w: Array) -> Array:
        return _full(self.packed) @ w

    def composite(self) -> Array:
        return self.packed

    def composite_times(self, numbers: Array, w: Array) -> Array:
        return _full(numbers) @ w

    def composite_inward(self, terms: Array, numbers: Array) -> Array:
        return (self.c.T @ (_full(numbers) @ self.c))[_UPPER]


class GenericChain(Unrolled):
    """An unrolled chain of generic links."""

    def _link(self, i: int, inputs: Mapping[str, Array], parameters: Mapping[str, Any] | None) -> Link:
        return GenericLink(i, inputs)

    def inward(self, step: InwardStep, below: Mapping[str, Shape]) -> None:
        super().inward(step, {name: (21,) if name == "composite" else shape for name, shape in below.items()})


def _full(packed: Array) -> Array:
    """The symmetric 6×6 of its upper triangle."""
    full = np.empty((6, 6), dtype=object)
    full[_UPPER] = packed
    full.T[_UPPER] = packed
    return full
