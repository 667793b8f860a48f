"""Names with dots, once it is known which names are those of parts: leg.slide.shift is the shift of (leg.slide)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkwright.formats.mks.rewriting import DOTTED, Rewriter, stem
from linkwright.formats.mks.syntax import (
    Block,
    Dotted,
    Fault,
    Node,
    Path,
    Problems,
    Statement,
    Use,
    Word,
    did_you_mean,
)

#: What is put behind the names of these statements in the names of the massless bodies that they bring along.
BROUGHT_ALONG = {"point on curve": ("along",), "curve on curve": ("point", "along first", "along second")}


class Resolution(Rewriter):
    """Names with dots, once it is known which names are those of parts: leg.slide.shift is (leg.slide).shift."""

    def __init__(
        self, instances: Mapping[str, Use], statements: list[Statement], problems: Problems, broken: set[str]
    ) -> None:
        super().__init__()
        self._instances, self._made, self._problems, self._broken = instances, statements, problems, broken
        self._names = {s.name.text.lower() for s in statements if s.name is not None}

    def resolved(self) -> list[Statement]:
        statements = []
        for s in self._made:
            self._problems.trail = s.trail
            try:
                changes = any(self.touches(self.words(x)) for x in s.items)
                statements.append(self.statement(s, s.name, s.trail) if changes else s)
            except Fault as fault:
                self._problems.add_fault(fault)
                self._broken.update(names_in([s]))
        self._problems.trail = ""
        return statements

    def touches(self, words: frozenset[str]) -> bool:
        return DOTTED in words

    def dotted(self, node: Dotted | Path) -> Node:
        words = (node.name, node.part) if isinstance(node, Dotted) else node.words
        texts = [x.text for x in words if isinstance(x, Word)]
        count = 1
        while count < len(texts) and ".".join(texts[:count]).lower() in self._instances:
            count += 1
        if count == 1 and isinstance(node, Dotted):
            return node
        if count == 1:  # names with dots in them, as the names of parts are after they have been written
            count = len(texts) - (".".join(texts).lower() not in self._names)
        name = Word(node.start, words[count - 1].end, ".".join(texts[:count]))
        last = words[-1]
        if count == len(texts):
            return name
        if count == len(texts) - 1 and isinstance(last, Word):
            return Dotted(node.start, node.end, name, last)
        hint = did_you_mean(texts[0], [use.name.text for use in self._instances.values() if use.name is not None])
        raise Fault(node, f"there is no part {'.'.join(texts[:count])!r}{hint}")


def names_in(pieces: Sequence[Statement]) -> set[str]:
    """The names of statements and parts, without their indices, that a block defines."""
    names: set[str] = set()
    for s in pieces:
        if isinstance(s, Block):
            names |= names_in(s.pieces)
        elif s.name is not None and s.head.text.lower() != "parameter":
            name = s.name.text.lower() if s.name.quoted else stem(s.name.text)
            names |= {
                name,
                *(f"{name} {word}" for word in BROUGHT_ALONG.get(" ".join(s.head.text.lower().split()), ())),
            }
    return names
