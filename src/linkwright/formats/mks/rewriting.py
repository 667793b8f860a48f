"""Statements with other names and values in them: trees of pieces, copied only where something in them changes."""

from __future__ import annotations

from dataclasses import replace

from linkwright.formats.mks.syntax import (
    MAX_DEPTH,
    Applied,
    Dotted,
    Fault,
    Group,
    Indexed,
    Item,
    Listed,
    Node,
    Num,
    Path,
    Statement,
    Vector,
    Word,
)
from linkwright.model.expression import FUNCTIONS

#: In the words of a piece: it has names with indices that are not known yet, or with dots.
INDEXED, DOTTED = "[", "."
#: Attributes whose values are words of the language and no names.
_NO_NAMES = ("colour", "color", "kind", "method", "freedom")
#: Statements whose item without a label is a value.
_UNLABELLED = ("parameter", "gravity")


def stem(name: str) -> str:
    """The last name of a path without its indices, in small letters: of leg[2].rod[3] rod."""
    return name.lower().rpartition(".")[2].partition("[")[0]


def base_of(name: str) -> str:
    """A name without its indices, in small letters."""
    return name.partition("[")[0].lower()


class Rewriter:
    """Copies pieces with other leaves; what `touches` denies of the words of a piece stays as it is.

    A subclass says what becomes of words, of names with indices and of names with dots. `named`: the place is one of
    names, not of numbers.
    """

    def __init__(self) -> None:
        self._words: dict[int, frozenset[str]] = {}  # by the identity of pieces, which live as long as the statements

    def touches(self, words: frozenset[str]) -> bool:
        """Whether a piece with these words in it changes."""
        raise NotImplementedError

    def word(self, node: Word, named: bool) -> Node:
        """What stands in the place of a word."""
        return node

    def indexed(self, node: Indexed, named: bool) -> Node:
        """What stands in the place of a name with indices."""
        return node

    def dotted(self, node: Dotted | Path) -> Node:
        """What stands in the place of names with dots."""
        return node

    def words(self, node: Node | None) -> frozenset[str]:
        """The words in a piece, without indices and in small letters, INDEXED and DOTTED."""
        known = self._words.get(id(node))
        if known is not None:
            return known
        words: set[str] = set()
        if isinstance(node, Word):
            words.add(base_of(node.text))
            words.add(node.text.lower())
        elif isinstance(node, Indexed):
            words.add(INDEXED)
            for part in (node.base, *node.indices):
                words |= self.words(part)
        elif isinstance(node, Dotted | Path):
            words.add(DOTTED)
            for part in (node.name,) if isinstance(node, Dotted) else node.words:
                words |= self.words(part)
        elif isinstance(node, Item):
            words |= self.words(node.label) | self.words(node.value)
        else:
            for name in ("arguments", "entries", "items"):
                for part in getattr(node, name, ()):
                    words |= self.words(part)
        self._words[id(node)] = frozenset(words)
        return self._words[id(node)]

    def put(self, node: Node, named: bool = False) -> Node:
        """A piece with what its words stand for."""
        if isinstance(node, Num) or not self.touches(self.words(node)):
            return node
        if isinstance(node, Word):
            return self.word(node, named)
        if isinstance(node, Indexed):
            return self.indexed(node, named)
        if isinstance(node, Dotted | Path):
            return self.dotted(node)
        if isinstance(node, Applied):
            names = not node.operation and node.function.text.lower() not in FUNCTIONS
            return self._applied(node, tuple([self.put(x, names) for x in node.arguments]))
        if isinstance(node, Vector):
            return Vector(node.start, node.end, tuple([self.put(x) for x in node.entries]), node.values)
        if isinstance(node, Listed):
            return Listed(node.start, node.end, tuple([self.put(x) for x in node.entries]))
        if isinstance(node, Group):
            return Group(node.start, node.end, tuple([self.item(x) for x in node.items]))
        return node

    @staticmethod
    def _applied(node: Applied, arguments: tuple[Node, ...]) -> Applied:
        depth = 1 + max([x.depth for x in arguments if isinstance(x, Applied)], default=0)
        if depth > MAX_DEPTH:
            text = f"more than {MAX_DEPTH} operations one inside the other, with the values put in; simplify it"
            raise Fault(node.function, text)
        return Applied(node.start, node.end, node.function, arguments, depth, node.operation)

    def item(self, entry: Item, head: str = "") -> Item:
        """An entry of a statement with this head, in small letters."""
        if not self.touches(self.words(entry)):
            return entry
        label, piece = entry.label, entry.value
        if label is not None and (not isinstance(label, Word) or head == "coupling"):
            label = self.put(label)
        if entry.label is None and isinstance(piece, Word) and head not in _UNLABELLED:
            return entry  # a flag
        named = head not in _UNLABELLED and entry.key not in _NO_NAMES
        if entry.key == "axes" and isinstance(piece, Word) and piece.text.lower() == "ground":
            named = False  # the axes of ground, whatever the body ground is called
        return Item(entry.start, entry.end, label, self.put(piece, named))

    def statement(self, s: Statement, name: Word | None, trail: str) -> Statement:
        """A statement under a name."""
        head = s.head.text.lower()
        items = tuple([self.item(x, head) for x in s.items])
        return replace(s, name=name, items=items, trail=trail, index=None)
