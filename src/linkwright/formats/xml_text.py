"""What all writers of XML share: the spanning tree, names and numbers as attributes, and what a format cannot hold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any
from warnings import warn
from xml.sax.saxutils import quoteattr

from linkwright.base.checks import outside
from linkwright.base.text import first_few
from linkwright.errors import LinkwrightWarning, ModelError
from linkwright.formats.poses import HERE, Pose
from linkwright.model.checks import listed
from linkwright.model.description import Description
from linkwright.model.elements import Mimic
from linkwright.model.frames import snapped
from linkwright.model.topology import span


class TreeWriter:
    """Writes one description as a tree of bodies; subclasses give the lines of the file.

    `left_out` and `notes` are parts of the warning that tells what the file does not hold, or holds differently.
    """

    language = ""

    def __init__(self, d: Description) -> None:
        self.d, self.tree = d, span(d)
        self.left_out = self._without_place()
        self.notes: list[str] = []

    def text(self) -> str:
        """The file; what it does not hold is a warning."""
        text = "\n".join(self.lines()) + "\n"
        parts = [f"left out of the {self.language}: {'; '.join(self.left_out)}"] if self.left_out else []
        parts += [f"in the {self.language}: {'; '.join(self.notes)}"] if self.notes else []
        if parts:
            warn("; ".join(parts), LinkwrightWarning, stacklevel=outside())
        return text

    def lines(self) -> Iterator[str]:
        raise NotImplementedError

    def _without_place(self) -> list[str]:
        """What formats of robots have no place for."""
        d = self.d
        drivers, parameters = listed([x.name for x in d.drivers]), listed(list(d.parameters))
        parts = {
            "SYSTEM": d.system is not None,
            f"the drivers {drivers}": bool(d.drivers),
            "the poses of bodies and the initial state": bool(d.initial) or d.start is not None,
            f"the parameters {parameters} (their present values are written)": bool(d.parameters),
        }
        return [part for part, there in parts.items() if there]

    def refuse(self, wrong: list[str], advice: str) -> None:
        """An error that lists rods, point constraints and what else the language cannot hold, if there is anything."""
        wrong = [*(f"{type(tie).__name__} {tie.name!r}" for tie in self.d.ties), *wrong]
        if wrong:
            text = f"{self.language} cannot hold {first_few(wrong, 12)}; {advice}"
            raise ModelError(text, element=self.d.name)

    # -- the tree -------------------------------------------------------------------------------------------------
    def sides(self, i: int) -> tuple[Pose, Pose]:
        """The joint's frame on the body that carries the one at a position of the tree, and on the latter."""
        (_, ri, pi), (_, rj, pj) = (self.d.side(int(self.tree.joint[i]), side) for side in ("i", "j"))
        near, far = Pose(ri, pi), Pose(rj, pj)
        return (far, near) if self.tree.reverse[i] else (near, far)

    def step(self, i: int, frame: Pose = HERE) -> Pose:
        """A frame of the body at a position of the tree, in the body that carries it, coordinates zero."""
        near, far = self.sides(i)
        turn = self.d.kind_of(int(self.tree.joint[i])).neutral_rotation()
        r = snapped(near.r @ (turn.T if self.tree.reverse[i] else turn) @ far.r.T)
        return Pose(snapped(r @ frame.r), near.p + r @ (frame.p - far.p) + 0.0)

    def bounded(self, joint: int) -> bool:
        """Whether a joint has a lower or an upper limit."""
        return math.isfinite(self.d.lower[joint]) or math.isfinite(self.d.upper[joint])

    def mimics(self, joint: int) -> Iterator[Mimic]:
        """The couplings that a joint follows by."""
        return (m for m in self.d.mimics if m.follower == joint)


def quoted(text: str) -> str:
    """A name as an attribute with its quotes; letters that XML cannot hold are an error."""
    if any(ord(c) < 32 or c in "\ufffe\uffff" or "\ud800" <= c <= "\udfff" for c in text):
        raise ModelError(f"{text!r} has letters that XML cannot hold; rename it", element=text)
    return quoteattr(text)


def number(x: float) -> str:
    """A number that reads back as exactly this one; zero has no sign."""
    return repr(float(x) + 0.0).removesuffix(".0")


def numbers(values: Any) -> str:
    """Numbers with a space between."""
    return " ".join(number(x) for x in values)


def attributes(**values: float) -> str:
    """Attributes with numbers, in their order."""
    return " ".join(f'{key}="{number(x)}"' for key, x in values.items())


def elements(**values: float) -> str:
    """Elements with numbers as their text, in their order."""
    return "".join(f"<{key}>{number(x)}</{key}>" for key, x in values.items())
