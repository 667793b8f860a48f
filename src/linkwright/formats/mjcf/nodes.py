"""The elements of an MJCF file and of all that it includes, as one tree; numbers and words of their attributes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from linkwright.base.arguments import shortened
from linkwright.base.arrays import Floats
from linkwright.errors import FormatError
from linkwright.formats.includes import Folder
from linkwright.formats.xml import MAX_NESTING, numbers_in

T = TypeVar("T")

#: Attributes of several numbers of which the first few may be given, over those of a default.
_PARTIAL = ("size", "gear", "gainprm", "biasprm", "dynprm", "polycoef", "stiffness", "damping")
_ORIENTATIONS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")


@dataclass(eq=False)
class Node:
    """An element: its attributes, children, file and line."""

    tag: str
    attributes: dict[str, str]
    file: str
    line: int | None
    children: list[Node] = field(default_factory=list)

    def get(self, key: str, default: str | None = None) -> str | None:
        return self.attributes.get(key, default)

    def each(self, *tags: str) -> Iterator[Node]:
        return (child for child in self.children if child.tag in tags)

    def each_in(self, section: str, *tags: str) -> Iterator[Node]:
        """The elements of all sections of a name, or those with these tags."""
        return (child for part in self.each(section) for child in part.children if not tags or child.tag in tags)

    def fail(self, message: str) -> FormatError:
        """An error about this element, which says which it is and where."""
        return FormatError(f"{self.spoken}: {message}", file=self.file, line=self.line, element=self.get("name"))

    @property
    def spoken(self) -> str:
        name = self.get("name")
        return f"<{self.tag}> {shortened(name)}" if name else f"<{self.tag}>"

    def over(self, defaults: dict[str, str]) -> Node:
        """The element with what its class says where it says nothing itself."""
        merged = {**defaults, **self.attributes}
        if any(key in self.attributes for key in _ORIENTATIONS):
            for key in _ORIENTATIONS:
                if key not in self.attributes:
                    merged.pop(key, None)
        for key in _PARTIAL:
            if key in defaults and key in self.attributes:
                first, more = self.attributes[key].split(), defaults[key].split()
                merged[key] = " ".join([*first, *more[len(first) :]])
        return Node(self.tag, merged, self.file, self.line, self.children)

    # -- attributes -----------------------------------------------------------------------------------------
    def numbers(self, key: str, least: int, most: int | None = None) -> Floats | None:
        """The numbers of an attribute, so many of them and all finite; None where it is not given."""
        text = self.get(key)
        if text is None:
            return None

        def fail(wrong: str) -> FormatError:
            return self.fail(f"{self.shown(key)} {wrong}")

        return numbers_in(text, least, least if most is None else most, fail)

    def vector(self, key: str, default: Sequence[float]) -> Floats:
        """As many numbers as the default has."""
        values = self.numbers(key, len(default))
        return np.array(default, dtype=np.float64) if values is None else values

    def padded(self, key: str, default: Sequence[float]) -> Floats:
        """Up to as many numbers as the default has, which fills up the rest."""
        values = np.array(default, dtype=np.float64)
        first = self.numbers(key, 1, len(default))
        if first is not None:
            values[: len(first)] = first
        return values

    def number(self, key: str, default: float) -> float:
        values = self.numbers(key, 1)
        return default if values is None else float(values[0])

    def not_negative(self, key: str) -> float:
        """A number that is 0 where it is not given, and never less."""
        value = self.number(key, 0.0)
        if value < 0.0:
            raise self.fail(f"has the negative {key} {value:g}; give 0 or more")
        return value

    def interval(self, key: str) -> tuple[float, float]:
        """Two numbers, the lower first."""
        low, high = self.vector(key, (0.0, 0.0)).tolist()
        if not low < high:
            raise self.fail(f"{self.shown(key)} is not from a lower to a higher number; swap them")
        return low, high

    def named(self, key: str, what: str, known: Mapping[str, T]) -> T:
        """What the name in an attribute stands for."""
        name = self.get(key)
        if name is None or name not in known:
            raise self.fail(f"{self.shown(key)} is no {what} of this model; correct the name, or add the {what}")
        return known[name]

    def shown(self, key: str) -> str:
        """An attribute in a message."""
        return f"{key}={shortened(self.get(key) or '')}"

    def word(self, key: str, default: str, allowed: Sequence[str]) -> str:
        """One of a few words."""
        value = self.get(key, default) or ""
        if value not in allowed:
            raise self.fail(f"{self.shown(key)} is not one of {', '.join(allowed)}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        return self.word(key, "true" if default else "false", ("true", "false")) == "true"

    def limited(self, key: str, ranged: str, autolimits: bool) -> bool:
        """Whether a range counts: as `key` says, and by itself where it is there."""
        word = self.word(key, "auto", ("true", "false", "auto"))
        if word == "auto":
            return autolimits and self.get(ranged) is not None
        return word == "true"


def read_nodes(path: str | os.PathLike[str], folders: Sequence[str | os.PathLike[str]]) -> tuple[Node, Folder]:
    """The model's tree with every <include> replaced by what is in its file; and where its files are."""
    folder = Folder.of(path, folders)
    root = folder.parse()
    node = _node(root, str(path))
    if node.tag != "mujoco":
        text = f"is not an MJCF model: its outermost element is <{node.tag[:80]}>, not <mujoco>"
        if node.tag == "mujocoinclude":
            text = "is a part of a model, to be included by another file (<mujocoinclude>); load that file"
        raise FormatError(text, file=str(path), line=node.line)
    node.children = _children(root, str(path), folder, 0)
    return node, folder


def _node(element: Any, file: str) -> Node:
    return Node(str(element.tag), {str(k): str(v) for k, v in element.attrib.items()}, file, element.sourceline)


def _children(element: Any, file: str, folder: Folder, depth: int) -> list[Node]:
    """The children of an element, which is `depth` deep in all files together; by recursion for included files only."""
    top = Node("", {}, file, None)
    left = [(iter(element.iterchildren()), top, depth)]
    while left:
        elements, parent, depth = left[-1]
        child = next(elements, None)
        if child is None:
            left.pop()
            continue
        node = _node(child, file)
        if depth > MAX_NESTING:
            raise node.fail(f"is nested more than {MAX_NESTING} elements deep, includes counted; flatten the model")
        if node.tag == "include":
            name = node.get("file")
            if not name:
                raise node.fail('names no file; add file="..."')
            with folder.open(name, child) as part:
                parent.children += _children(part.root, str(part.path), folder, depth)
        else:
            parent.children.append(node)
            left.append((iter(child.iterchildren()), node, depth + 1))
    return top.children
