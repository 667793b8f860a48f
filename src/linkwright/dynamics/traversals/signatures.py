"""A step being recorded for one signature of links: what it reads becomes operands, what it gives is kept.

Both ways of rolling a recursion into loops, over links (`rolled`) and over levels (`levels`), record their steps so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwright.dynamics.traversals.traversal import Link, Shape
from linkwright.model.joint_kinds import KIND_LIST, JointKind
from linkwright.model.tree import RECORD, Tree, record_slices
from linkwright.spatial.algebra import Array
from linkwright.tape.recorder import Recorder
from linkwright.tape.scalar import Scalar

SPECIAL = 8  # different records up to which each has code of its own

#: Links whose number of the record equals this have code of their own, in which it is left out of the arithmetic.
TRIVIAL: dict[str, tuple[float, ...]] = {
    "gamma": (1.0, 0.0),
    "alpha": (1.0, 0.0),
    "offset": (0.0, 1.0, 0.0),
    "pitch": (0.0,),
    "armature": (0.0,),
}


#: The link frame in its body's frame, kept apart from the record: only wrenches need it.
FRAME: dict[str, Shape] = {"frame_r": (3, 3), "frame_p": (3,)}


@dataclass(frozen=True)
class Signature:
    """What the recorded code of a link depends on."""

    kind: JointKind
    parent_is_ground: bool
    known: Mapping[str, Array]  # numbers of the record that all its links have in common


@dataclass
class Recording:
    """One signature's step while its operands are not placed yet."""

    signature: int = 0
    far: int = 0  # the signature of the ancestor, in a walk
    recorder: Recorder = field(default_factory=Recorder)
    count: int = 0
    inputs: list[tuple[str, Any, int]] = field(default_factory=list)  # (where, what, size)
    outputs: list[tuple[str, Any, list[Scalar]]] = field(default_factory=list)

    def fresh(self, where: str, what: Any, shape: Shape) -> Array:
        size = int(np.prod(shape, dtype=np.int64))
        array = np.empty(size, dtype=object)
        for k in range(size):
            array[k] = self.recorder.input(self.count + k)
        self.count += size
        self.inputs.append((where, what, size))
        return array.reshape(shape)

    def leave(self, where: str, what: Any, values: Array) -> None:
        flat = np.asarray(values).reshape(-1).tolist()
        self.outputs.append((where, what, [self.recorder.lift(x) for x in flat]))


class Lazy(Mapping[str, Any]):
    """Numbers that become operands when a step first reads them."""

    def __init__(self, names: Mapping[str, Any], make: Callable[[str], Any]) -> None:
        self._names, self._make = names, make
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            if name not in self._names:
                raise KeyError(name)
            self._made[name] = self._make(name)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def recorded_link(signature: Signature, recording: Recording, suffix: str = "", still: Sequence[str] = ()) -> Link:
    """A link of a signature whose numbers and inputs become operands of the recording; `still` inputs are zero."""
    kind = signature.kind

    def number_of(name: str) -> Any:
        if name in signature.known:
            return signature.known[name]
        if name in FRAME:
            return recording.fresh("frame", name, FRAME[name])
        return recording.fresh("record" + suffix, name, RECORD[name])

    def part(name: str) -> Array:
        if name == "wrench":
            return recording.fresh("wrench", name, (6,))
        if name in still:
            return np.zeros(kind.nv)
        return recording.fresh(name, name, (kind.nq if name in ("q", "q1") else kind.nv,))

    parts = Lazy(dict.fromkeys(("q", "v", "a", "tau", "q1", "dv", "wrench")), part)
    return Link(
        kind, Lazy({**RECORD, **FRAME}, number_of), parts.__getitem__, parent_is_ground=signature.parent_is_ground
    )


def signatures(tree: Tree) -> tuple[list[Signature], Any]:
    """The signatures that a tree has, and the number of each link's."""
    rows, which = tree.records
    at = record_slices()
    if which is None:
        which = np.arange(tree.n, dtype=np.int32)
    if len(rows) <= min(SPECIAL, tree.n // 4):
        key = which.astype(np.int64)
    else:
        flags = [np.all(rows[:, at[name]] == TRIVIAL[name], axis=1) for name in TRIVIAL]
        key = sum(flag * 2**k for k, flag in enumerate(flags))[which]
    for bit in (tree.parent < 0, tree.topology.reverse):
        key = key * 2 + bit
    key = key * len(KIND_LIST) + tree.kind_numbers
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    signatures = []
    for k, i in enumerate(first.tolist()):
        mine = rows[which[number == k]]
        known = {name: mine[0, part] for name, part in at.items() if np.all(mine[:, part] == mine[0, part])}
        signatures.append(Signature(tree.kind(i), bool(tree.parent[i] < 0), known))
    return signatures, number.astype(np.int32)
