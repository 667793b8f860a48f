"""The buffers of a rolled recursion and the steps recorded for one signature of links: where the links' numbers
stand, what a step reads and gives.

Both ways of rolling a recursion into loops, over links (`rolled`) and over levels (`levels`), record their steps so.

A field is a number or some of every link: `written` by passes, read by passes at the link itself (`here`) or by its
children (`up`), or `summed` from the children. Plainly, every link has one row for all of them, and every number has
one place of its own: what reverse accumulation needs. Packed, as a kernel wants it that only asks for the answer, a row
holds what one pass leaves to another and is as long as its link needs, places are used again, and what goes from link
to link within one pass stands in a slot that lives as long as the children need it: two are enough for a chain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from linkwright.base.locks import cached_property
from linkwright.dynamics.traversals.traversal import Link, Shape
from linkwright.model.joint_kinds import KIND_LIST, JointKind
from linkwright.model.tree import RECORD, Tree, record_slices
from linkwright.spatial.algebra import Array
from linkwright.tape.block import Recorder
from linkwright.tape.build import ProgramBuilder, Ref
from linkwright.tape.program import ITEM, Zero
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


Ints = NDArray[np.int32]
Home = Literal["rows", "carried", "sums"]


@dataclass
class Field:
    """The passes in which a field is used, and how many numbers it is for each signature that has it."""

    sizes: dict[int, int] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)
    here: set[int] = field(default_factory=set)
    up: set[int] = field(default_factory=set)
    summed: set[int] = field(default_factory=set)

    @property
    def size(self) -> int:
        """The most that it is."""
        return max(self.sizes.values(), default=0)

    @property
    def read(self) -> bool:
        return bool(self.here or self.up)

    def needed(self, number: int) -> bool:
        """Whether anything reads what pass `number` writes."""
        return any(p > number for p in self.here) or any(p >= number for p in self.up)

    def home(self) -> Home:
        """The packed form's buffer."""
        if len(self.summed) == 1 and self.here == self.summed and not self.up:
            return "sums"
        if len(self.written) == 1 and self.up == self.written and not self.here:
            return "carried"
        return "rows"


@dataclass(frozen=True)
class Layout:
    """The buffer of each field that is read, its place in an entry of it, and the entries' lengths.

    `rows` are the places and lengths for each signature.
    """

    home: dict[str, Home]
    place: dict[str, int]
    stride: dict[Home, int]
    rows: list[tuple[dict[str, int], int]]


def layout(fields: Mapping[str, Field], signatures: int, *, packed: bool) -> Layout:
    """Place the fields, in the order in which they came up."""
    home: dict[str, Home] = {n: f.home() if packed else "rows" for n, f in fields.items() if f.read}
    place: dict[str, int] = {}
    stride: dict[Home, int] = {}
    for where in dict.fromkeys(home.values()):
        sizes = {n: fields[n].size for n in home if home[n] == where}
        places, stride[where] = _places(fields, sizes, packed=packed)
        place.update(places)
    in_rows = [n for n in home if home[n] == "rows"]
    rows = [({n: place[n] for n in in_rows}, stride.get("rows", 1))] * signatures
    if packed and not any(fields[n].up or fields[n].summed for n in in_rows):
        # Nobody else looks into a link's row.
        by_signature = [{n: fields[n].sizes[k] for n in in_rows if k in fields[n].sizes} for k in range(signatures)]
        rows = [_places(fields, sizes, packed=True) for sizes in by_signature]
    return Layout(home, place, stride, rows)


def _places(fields: Mapping[str, Field], sizes: Mapping[str, int], *, packed: bool) -> tuple[dict[str, int], int]:
    """A place for each of some fields, and the length of all."""
    place: dict[str, int] = {}
    for name, size in sizes.items():
        shared = [n for n in place if not (packed and _apart(fields[name], fields[n]))]
        place[name] = _gap([(place[n], place[n] + sizes[n]) for n in shared], size)
    return place, max((place[n] + sizes[n] for n in place), default=1)


def _apart(a: Field, b: Field) -> bool:
    """Whether one is read for the last time before the other is written, or by the step that writes it."""
    return _before(a, b) or _before(b, a)


def _before(a: Field, b: Field) -> bool:
    return bool(b.written) and not (a.up or a.summed or b.summed) and max(a.here) <= min(b.written)


def _gap(taken: Collection[tuple[int, int]], size: int) -> int:
    """The first place with room for `size` numbers."""
    at = 0
    for start, end in sorted(taken):
        if at + size <= start:
            break
        at = max(at, end)
    return at


def slots(parent: Ints) -> tuple[Ints, int]:
    """A slot for every link from its own turn to its last child's, and how many there are; slot 0 is ground's.

    No two links have one slot at the same time, in whichever direction the links are gone through: they take the
    slots in turn, and as they come breadth-first, there are about as many as links on a level.
    """
    every = np.arange(len(parent), dtype=np.int32)
    reach = int((every - parent)[parent >= 0].max(initial=0)) + 1
    return every % reach + 1, reach + 1


FRAME_SIZE = 12


class LinkData:
    """The links' numbers as data of a program, put in once they are asked for."""

    def __init__(self, tree: Tree, builder: ProgramBuilder) -> None:
        self.tree, self.builder = tree, builder
        self._slices = record_slices()

    @cached_property
    def _table(self) -> Ref:
        return self.builder.data("table", self.tree.records[0])

    @cached_property
    def _frames(self) -> Ref:
        r, p = self.tree.link_frames()
        return self.builder.data("frames", np.concatenate([r.reshape(self.tree.n, 9), p], axis=1))

    def record(self, name: str, size: int) -> Ref:
        """A number of the first record; they are `RECORD_SIZE` apart."""
        return self._table.part(self._slices[name].start, (size,))

    def frame(self, name: str, size: int) -> Ref:
        """The first link frame's R or p in its body's frame; they are `FRAME_SIZE` apart."""
        return self._frames.part(0 if name == "frame_r" else 9, (size,))


class Kept:
    """The buffers of what links keep, made as the layout says, and the columns that lead to their entries."""

    def __init__(self, tree: Tree, builder: ProgramBuilder, plan: Layout, signature_of: Any) -> None:
        self.tree, self.builder, self.plan, self.signature_of = tree, builder, plan, signature_of
        self.slots, count = slots(tree.parent) if plan.stride.keys() - {"rows"} else (tree.parent, 0)
        self.buffers: dict[str, Ref] = {}
        self.columns: dict[tuple[Home, bool], int] = {}
        lengths = np.array([length for _, length in plan.rows])
        self.even = len(set(lengths.tolist())) == 1
        self.length = int(lengths[0]) if self.even else 1
        for home, stride in plan.stride.items():
            if home != "rows":
                self.buffers[home] = builder.temporary(home, (count, stride))
            elif self.even:
                self.buffers[home] = builder.temporary(home, (tree.n + 1, self.length))
            else:
                # Of different lengths, one after another: nobody asks for ground's.
                ends = np.cumsum(lengths[signature_of])
                self.starts = np.append(0, ends[:-1])
                self.buffers[home] = builder.temporary(home, (int(ends[-1]),))
        if "sums" in self.buffers:
            builder.add(Zero(self.buffers["sums"].operand))

    def column(self, home: Home, *, up: bool) -> int:
        """The column that leads to an item's or its parent's entry."""
        if (home, up) not in self.columns:
            parent, column = self.tree.parent, self.builder.column
            if home != "rows":
                self.columns[home, up] = column(np.where(parent >= 0, self.slots[parent], 0) if up else self.slots)
            elif self.even:
                self.columns[home, up] = column(parent + 1) if up else ITEM
            else:
                self.columns[home, up] = column(self.starts)
        return self.columns[home, up]

    def operand(self, where: str, name: str, size: int, signature: int) -> Ref:
        """A field of the item itself, of its parent ("up", to be added to "add") or of a far item; "more" and
        "farther" add to one's own and to a far item's."""
        home, up = self.plan.home[name], where in ("up", "add")
        place, stride = self.plan.place[name], self.plan.stride[home]
        if home == "rows":
            stride = self.length
            place = self.plan.rows[signature][0][name] + (self.length if self.even and not up else 0)
        step = (stride, self.column(home, up=up))
        part = self.buffers[home].part(place, (size,))
        if where in ("far", "farther"):
            return part.at(far=(step,), add=where == "farther")
        return part.at(step, add=where in ("add", "more"))

    def at(self, position: int, name: str, shape: Shape) -> Ref:
        """A field of one link, or of ground at −1."""
        home = self.plan.home[name]
        if home == "rows" and position >= 0:
            start = (position + 1) * self.length if self.even else int(self.starts[position])
            return self.buffers[home].part(start + self.plan.rows[self.signature_of[position]][0][name], shape)
        return self.buffers[home].part((position + 1) * self.plan.stride[home] + self.plan.place[name], shape)
