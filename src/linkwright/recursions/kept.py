"""The buffers of a rolled recursion: the links' numbers as data, and what links keep, as the layout says."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.base.locks import cached_property
from linkwright.model.tree import Tree, record_slices
from linkwright.recursions.layout import Home, Layout, slots
from linkwright.recursions.traversal import Shape
from linkwright.tape.build import ProgramBuilder, Ref
from linkwright.tape.program import ITEM, Zero

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
