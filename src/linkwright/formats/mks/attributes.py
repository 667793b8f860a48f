"""The entries of one statement, looked up by label; unknown, repeated and missing ones are reported."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Generic, TypeVar

from linkwright.formats.mks.rewriting import stem
from linkwright.formats.mks.syntax import (
    MAX_NAME,
    Fault,
    Item,
    Node,
    Problems,
    Word,
    did_you_mean,
    either,
)
from linkwright.formats.mks.values import words_of
from linkwright.formats.mks.vocabulary import meant_of_joint

T = TypeVar("T")
_ALIASES = {
    "centre of gravity": "center of gravity",
    "center of mass": "center of gravity",
    "centre of mass": "center of gravity",
    "color": "colour",
    "body": "associated body",
    "marker": "triad",
}
_TWICE = ("triad", "joint", "associated body")


class Attributes:
    """The items of a statement. `owner` is its name in messages, `at` the place of faults about missing items."""

    def __init__(
        self,
        owner: str,
        at: Node,
        items: Sequence[Item],
        problems: Problems,
        labels: Collection[str],
        flags: Collection[str] = (),
        twice: Collection[str] = _TWICE,
    ) -> None:
        self.owner, self.at, self._twice = owner, at, twice
        self.flags: dict[str, Item] = {}
        self._items: dict[str, list[Item]] = {}
        wrong = False
        for item in items:
            message = self._sorted(item, labels, flags)
            if message:
                problems.add(item if item.label is None else item.label, message)
                wrong = True
        if wrong:
            raise Fault

    def _sorted(self, item: Item, labels: Collection[str], flags: Collection[str]) -> str:
        """Put an item where it belongs; what is wrong with it."""
        if item.label is None:
            word = words_of(item.value)
            if word is None or word not in flags:
                if word is not None:
                    close = self._meant(word) or did_you_mean(word, [*flags, *labels])
                    return f"{self.owner} has no attribute {word!r}{close or self._all([*labels, *flags])}"
                return f"this value has no label; write it as one of: {', '.join(labels)}"
            if word in self.flags:
                return f"{word!r} is there twice; remove one"
            self.flags[word] = item
            return ""
        key = _ALIASES.get(item.key, item.key)
        if key not in labels:
            if not key:
                return f"{self.owner} has no such attribute{self._all(labels)}"
            if key in flags:
                return f"{key!r} takes no value; write the word alone"
            close = self._meant(key) or did_you_mean(key, labels) or self._all(labels)
            return f"{self.owner} has no attribute {item.key!r}{close}"
        items = self._items.setdefault(key, [])
        if len(items) >= (2 if key in self._twice else 1):
            return f"{item.key!r} is there {'a third time' if key in self._twice else 'twice'}; remove one"
        items.append(item)
        return ""

    def _meant(self, label: str) -> str:
        return meant_of_joint(label) if self.owner.startswith("joint ") else ""

    @staticmethod
    def _all(labels: Collection[str]) -> str:
        return f"; it takes {either(list(labels))}" if len(labels) <= 12 else ""

    def __contains__(self, key: str) -> bool:
        return key in self._items

    def count(self, key: str) -> int:
        """How often a label is there."""
        return len(self._items.get(key, ()))

    def all(self, key: str) -> Sequence[Item]:
        """The items of a label, in the order of the file."""
        return self._items.get(key, [])

    def get(self, key: str) -> Item | None:
        """The item of a label, or None."""
        return self._items[key][0] if key in self._items else None

    def need(self, key: str) -> Item:
        """The item of a label that must be there."""
        if key not in self._items:
            raise Fault(self.at, f"{self.owner} has no {key!r}; add {key} = ...")
        return self._single(key)

    def _single(self, key: str) -> Item:
        """The one item of a label, which other statements have twice."""
        items = self._items[key]
        if len(items) > 1:
            raise Fault(items[1].label or items[1], f"{items[1].key!r} is there twice; remove one")
        return items[0]

    def pair(self, key: str) -> tuple[Item, Item]:
        """The two items of a label that must be there twice."""
        items = self._items.get(key, [])
        if len(items) != 2:
            label, there = key.removeprefix("associated "), "once" if items else "nowhere"
            raise Fault(self.at, f"{self.owner} needs {label} = ... twice; it is there {there}")
        return items[0], items[1]

    def one_of(self, keys: Sequence[str]) -> Item:
        """The one item among labels of which exactly one must be there."""
        items = sorted((self._single(key) for key in keys if key in self._items), key=lambda item: item.start)
        if len(items) > 1 and items[1].label is not None:
            raise Fault(items[1].label, f"{self.owner} has {items[0].key!r} already; keep one of the two")
        if not items:
            raise Fault(self.at, f"{self.owner} needs one of {either(list(keys))}")
        return items[0]


class Registry(Generic[T]):
    """Things by name. Spelling is kept; letters are compared without their case."""

    def __init__(self, what: str, broken: Collection[str] = ()) -> None:
        self.what, self._broken = what, set(broken)
        self._things: dict[str, tuple[str, T]] = {}

    def claim(self, word: Word) -> None:
        """Refuse a name that is taken or too long."""
        key = word.text.lower()
        if not word.text.strip():
            raise Fault(word, "a name cannot be empty")
        if len(word.text) > MAX_NAME:
            raise Fault(word, f"this name has {len(word.text)} letters; {MAX_NAME} at most")
        if key in self._things:
            taken = self._things[key][0]
            case = "" if taken == word.text else " (names do not differ by the case of letters)"
            index = word.trail.rpartition(", ")[2].split()[1] if word.trail.rpartition(", ")[2][:7] == "REPEAT " else ""
            stem = f"{taken.removesuffix(']')}, " if taken.endswith("]") else f"{taken}["
            advice = f"; give it the index, as in {stem}{index}]" if index else "; choose another name"
            raise Fault(word, f"there is a {self.what} {taken!r} already{case}{advice}")

    def put(self, word: Word, thing: T) -> None:
        self.claim(word)
        self._things[word.text.lower()] = (word.text, thing)

    def spoil(self, name: str) -> None:
        """A name whose statement could not be read: looking it up ends quietly."""
        self._broken.add(name.lower())

    def find(self, name: str) -> T | None:
        """The thing of this name, or None."""
        return self._things[name.lower()][1] if name in self else None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._things

    def is_broken(self, name: str) -> bool:
        """Whether the statement of a name could not be read, or that of its repetitions."""
        return name.lower() in self._broken or stem(name) in self._broken

    def get(self, word: Word, what: str = "") -> T:
        """The thing of this name; the fault offers a close one."""
        if word.text in self:
            return self._things[word.text.lower()][1]
        if self.is_broken(word.text):
            raise Fault
        hint = did_you_mean(word.text, self.names)
        raise Fault(word, f"there is no {what or self.what} {word.text!r}{hint}")

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self._things.values()]
