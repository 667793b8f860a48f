r"""Operation counts of the methods for arithmetic that is not specialised to a joint, as papers count them.

The same steps run over a chain whose links know nothing of themselves: C_i a full 6×6, J_i a full 6-vector (one degree
of freedom, J̇ = 0), M_i a full symmetric 6×6, all given, so that nothing folds. Counted are Iwamura and Schiehlen's
three steps: w, β and k; the way in; the way out. C_i, J_i and M_i are given there too.

Two methods ask for more, which is given likewise. Virtual work asks for the wrenches that a joint holds, Q_i a full 6×5
and T_i a full 6-vector. The assembly multiplies rotations from link to link and forms C_i of them: R_i a full 3×3 and
p_i take the place of C_i. It also needs a body's moment and inertia, which are entries of M_i.

To compare all methods, R_i and p_i can be given to each of them: products with C_i then use its structure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwright.base.arguments import whole_number
from linkwright.dynamics.methods.assembly_method import forward_dynamics
from linkwright.dynamics.methods.by_name import METHODS
from linkwright.dynamics.traversals.levels import UnrolledSheet
from linkwright.dynamics.traversals.traversal import InwardStep, Link, Shape, Unrolled
from linkwright.errors import NameNotFound
from linkwright.model.generators import chain
from linkwright.model.joint_kinds import JointKind
from linkwright.model.topology import span
from linkwright.model.tree import Tree
from linkwright.model.tree_contraction import contract
from linkwright.spatial.algebra import Array, pack
from linkwright.spatial.rotation import ArticulatedInertia, General, Transform
from linkwright.tape.block import Block
from linkwright.tape.build import trace

_UPPER = np.triu_indices(6)
ASSEMBLY = "assembly"  # not a function of a traversal, but of a sheet

#: What is known of every link; M by its upper triangle.
GIVEN: dict[str, Shape] = {
    "C": (6, 6),
    "J": (6,),
    "M": (21,),
    "Q": (6, 5),
    "T": (6,),
    "R": (3, 3),
    "p": (3,),
    "v": (),
    "tau": (),
}


def operation_counts(n: int, method: str, *, rotations: bool = False) -> tuple[int, int]:
    """Multiplications and additions of forward dynamics for a chain of `n` links, not specialised to its joints.

    - `n`: the number of links, from 1 on.
    - `method`: one of `Mechanism.forward_dynamics`.
    - `rotations`: whether every link's rotation and shift are given, in place of a full 6×6 transform; False. The
      method "assembly" always has them, so that only counts with `rotations` compare it with the others.

    Returns both numbers. A division or a square root counts as a multiplication, a subtraction or change of sign as an
    addition. Raises `NameNotFound` for another method.

    >>> lw.operation_counts(6, "articulated-body")
    (3434, 3021)
    >>> lw.operation_counts(6, "articulated-body", rotations=True)
    (2447, 2094)
    """
    return grouped(generic_forward_dynamics(n, method, rotations=rotations).count())


def generic_forward_dynamics(n: int, method: str, *, rotations: bool = False) -> Block:
    """Forward dynamics of a chain of n links: a block of `GIVEN`, each for all links, and gravity."""
    n = whole_number("the number of links n", n, 1)
    if method != ASSEMBLY and method not in METHODS:
        raise NameNotFound("method", method, [*METHODS, ASSEMBLY])
    tree = Tree(description := chain(n), span(description))

    def forward(*arrays: Array) -> Array:
        *numbers, gravity = arrays
        inputs = {**dict(zip(GIVEN, numbers, strict=True)), "a": np.zeros(n)}
        if method == ASSEMBLY:
            sheet = UnrolledSheet(GenericChain(tree, inputs, link=PlacedLink))
            return forward_dynamics(sheet, contract(tree.parent, stretch=1), gravity)
        return METHODS[method](GenericChain(tree, inputs, link=PlacedLink if rotations else GenericLink), gravity)

    block, _, _ = trace(forward, [*((n, *shape) for shape in GIVEN.values()), (3,)])
    return block


def grouped(counts: Mapping[str, int]) -> tuple[int, int]:
    """Multiplications (and divisions and roots), additions (and subtractions and changes of sign)."""
    first, second = ("mul", "div", "sqrt"), ("add", "sub", "neg")
    return sum(counts.get(k, 0) for k in first), sum(counts.get(k, 0) for k in second)


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
    """A link of which C, J and M, and Q and T, are all that is known."""

    def __init__(self, i: int, inputs: Mapping[str, Array]) -> None:
        super().__init__(
            GenericJoint(), {"armature": [0.0]}, lambda name: inputs[name][i : i + 1], parent_is_ground=i == 0
        )
        self.c, self.j, self.packed = inputs["C"][i], inputs["J"][i], inputs["M"][i]
        self.held, self.driven = inputs["Q"][i], inputs["T"][i]

    def terms(self) -> Array:
        return np.zeros(0)

    def transform(self, terms: Array) -> Any:
        return GenericTransform(self.c)

    def subspace(self, terms: Array) -> Array:
        return self.j[:, None]

    def complement(self, terms: Array) -> Array:
        return self.held

    def dual(self, terms: Array) -> Array:
        return self.driven[:, None]

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


class PlacedLink(GenericLink):
    """A generic link of which R and p are known in place of C."""

    def __init__(self, i: int, inputs: Mapping[str, Array]) -> None:
        super().__init__(i, inputs)
        self.r, self.p = inputs["R"][i], inputs["p"][i]

    def transform(self, terms: Array) -> Any:
        return Transform(General(self.r), self.p)

    def composite_inward(self, terms: Array, numbers: Array) -> Array:
        return self.transform(terms).inertia(ArticulatedInertia.from_dense(_full(numbers))).dense()[_UPPER]

    @property
    def moment(self) -> Array:
        coupling = _full(self.packed)[3:, :3]
        return np.array([coupling[2, 1], coupling[0, 2], coupling[1, 0]])

    @property
    def inertia(self) -> Array:
        return pack(_full(self.packed)[3:, 3:])


class GenericChain(Unrolled):
    """An unrolled chain of generic links."""

    def __init__(self, tree: Tree, inputs: Mapping[str, Array], link: type[GenericLink] = GenericLink) -> None:
        self.link = link
        super().__init__(tree, inputs)

    def _link(self, i: int, inputs: Mapping[str, Array], parameters: Mapping[str, Any] | None) -> Link:
        return self.link(i, inputs)

    def inward(self, step: InwardStep, below: Mapping[str, Shape]) -> None:
        super().inward(step, {name: (21,) if name == "composite" else shape for name, shape in below.items()})


def _full(packed: Array) -> Array:
    """The symmetric 6×6 of its upper triangle."""
    full = np.empty((6, 6), dtype=object)
    full[_UPPER] = packed
    full.T[_UPPER] = packed
    return full
