"""Loops of four links in a plane: their lengths, and by these which link can turn fully (Grashof's condition).

Of a four-bar with shortest side s, longest l, and p and q between: s + l < p + q (Grashof, 1883). A slider-crank with
crank r, coupler c and offset e is a four-bar whose last two sides are infinite: r + e < c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from linkwright.analysis.planar_chain import Chain, Connection, plane_of
from linkwright.base.arguments import first_few
from linkwright.base.arrays import Floats
from linkwright.model.description import Description
from linkwright.model.units import Shown, Units

#: Sums of lengths that differ by less than this part are equal.
EQUAL = 1e-9
#: Loops of one size that are named.
NAMED = 3
#: A side shorter than this part of the mechanism is none.
SHORTEST = 1e-9

Kind = Literal["four-bar", "slider-crank", "double slider"]


@dataclass(frozen=True)
class FourLinkLoop:
    """A loop of four links in a plane.

    - `kind`: "four-bar" (four pins), "slider-crank" (three pins and a slide), "double slider" (two of each).
    - `links`: the names of the links around the loop, the frame first: ground, or else the link nearest to it.
    - `joints`: the names of the connections, the first between `links[0]` and `links[1]`, the last back to the frame.
    - `lengths` (m): of a four-bar those of `links`; of a slider-crank those of the two links between pins, by name in
      `sides`, and the offset of the slide's line.
    - `category`: "crank-rocker", "double crank", "double rocker", "triple rocker" or "change point" of a four-bar; of a
      slider-crank "slider-crank", "slider-rocker", "turning guide", "swinging guide", "non-Grashof" or "change point".
    - `turning`: the link that turns fully relative to its neighbours, "" if none does.
    - `margin` (m): p + q − s − l, or longer − shorter − offset: positive if a link turns, 0 at a change point.
    - `remark`: "parallelogram", "deltoid" or "rhombus" of a four-bar with equal sides, else "".
    """

    kind: Kind
    links: tuple[str, ...]
    joints: tuple[str, ...]
    sides: tuple[str, ...]
    lengths: tuple[float, ...]
    category: str
    turning: str = ""
    margin: float = 0.0
    remark: str = ""

    def sentence(self, d: Description | None = None) -> str:
        """What the loop is, in one line; lengths in the units of a description, in metres by default."""
        return loop_sentences([self], d)[0]

    @property
    def size(self) -> tuple[object, ...]:
        """What loops that differ in their names alone have in common."""
        names = self.links if self.kind == "four-bar" else self.sides
        place = names.index(self.turning) if self.turning else None
        return self.kind, tuple(f"{x:.9g}" for x in self.lengths), self.category, self.remark, place

    @property
    def at_change(self) -> bool:
        """Whether all links can be in line, so that the motion may branch."""
        return self.category == "change point"


def loop_sentences(loops: Sequence[FourLinkLoop], d: Description | None = None) -> list[str]:
    """What loops are, in a line each; those of one size, which differ in their names alone, share a line.

    Lengths are in the units of a description, in metres by default.
    """
    groups: dict[tuple[object, ...], list[FourLinkLoop]] = {}
    for loop in loops:
        groups.setdefault(loop.size, []).append(loop)
    return [_group_sentence(group, (Units() if d is None else d.units).shown("m")) for group in groups.values()]


def _group_sentence(loops: Sequence[FourLinkLoop], metre: Shown) -> str:
    loop, several = loops[0], len(loops) > 1
    text = f"{len(loops)} {loop.kind}s " if several else f"{loop.kind} "
    text += "; ".join(" – ".join(x.links) for x in loops[:NAMED])
    text += f"; and {len(loops) - NAMED} more" if len(loops) > NAMED else ""
    if loop.kind == "double slider":
        return f"{text}: any link may turn fully"
    sizes = [f"{metre.of(x):.6g}" for x in loop.lengths]
    special = f" ({loop.remark})" if loop.remark else ""
    turning = list(dict.fromkeys(x.turning for x in loops))
    turns = f", {first_few(turning, 6)} turn{'s' if len(turning) == 1 else ''} fully"
    turns = turns if loop.turning else ", no link turns fully"
    turns = ", all links can be in line, where the motion may branch" if loop.at_change else turns
    sign = "=" if loop.at_change else "<" if loop.margin > 0.0 else ">"
    if loop.kind == "four-bar":
        s, p, q, long = sorted(loop.lengths)
        sums = f"s + l = {metre.of(s + long):.6g} {sign} p + q = {metre.of(p + q):.6g}"
        return f"{text}: lengths {', '.join(sizes)} {metre.text}; {sums}: {loop.category}{special}{turns}"
    long, short = max(loop.lengths[:2]), min(loop.lengths[:2])
    sums = f"{metre.of(short + loop.lengths[2]):.6g} {sign} {metre.of(long):.6g}"
    first, second = ("links ", "") if several else (f"{name} " for name in loop.sides)
    links = f"{first}{sizes[0]}, {second}{sizes[1]}"
    return f"{text}: {links}, offset {sizes[2]} {metre.text}; shorter + offset = {sums}: {loop.category}{turns}"


def four_bar_category(lengths: Sequence[float]) -> tuple[str, int | None, float]:
    """The category of a four-bar of these lengths (frame, input, coupler, output), which link turns, and the margin.

    >>> four_bar_category((3.0, 1.0, 3.0, 2.5))
    ('crank-rocker', 1, 1.5)
    """
    s, p, q, longest = sorted(lengths)
    margin = p + q - s - longest
    if abs(margin) <= EQUAL * sum(lengths):
        return "change point", None, 0.0
    if margin < 0.0:
        return "triple rocker", None, margin
    shortest = min(range(4), key=lambda k: lengths[k])
    return ("double crank", "crank-rocker", "double rocker", "crank-rocker")[shortest], shortest, margin


def slider_crank_category(first: float, second: float, offset: float, frame: int) -> tuple[str, int | None, float]:
    """The category of a loop pin, `first` link, pin, `second` link, pin, block, slide; which of both turns; the margin.

    `frame`: 0 and 1 for the links between pins, 2 for one with the slide next to `first`, 3 for one next to `second`.
    """
    sides = (first, second)
    shorter = 0 if first <= second else 1
    margin = sides[1 - shorter] - sides[shorter] - offset
    if abs(margin) <= EQUAL * (first + second + offset):
        return "change point", None, 0.0
    if margin < 0.0:
        return "non-Grashof", None, margin
    if frame < 2:
        return ("turning guide" if frame == shorter else "swinging guide"), shorter, margin
    return ("slider-crank" if frame - 2 == shorter else "slider-rocker"), shorter, margin


def four_link_loops(chain: Chain, q: Floats, near: Sequence[int] = ()) -> list[FourLinkLoop]:
    """All loops of four links of a chain, measured at a state (nb, 7); the links `near` stand behind the frame."""
    from_ground = chain.distances([0], through_ground=True)
    size = chain.description.length_scale
    loops = []
    for links, ends in chain.loops():
        normal = plane_of(ends, q)
        frame = min(range(4), key=lambda k: from_ground.get(links[k], len(links)))
        links, ends = _turned(links, ends, frame)
        if near and links[3] in near and links[1] not in near:
            links, ends = [links[0], *links[:0:-1]], ends[::-1]
        loop = None if normal is None else _measured(chain, links, ends, q, normal, size)
        if loop is not None:
            loops.append(loop)
    return loops


def _turned(links: list[int], ends: list[Connection], first: int) -> tuple[list[int], list[Connection]]:
    return links[first:] + links[:first], ends[first:] + ends[:first]


def _measured(
    chain: Chain, links: list[int], ends: list[Connection], q: Floats, normal: Floats, size: float
) -> FourLinkLoop | None:
    """A loop whose connection k is between links k and k + 1; None if it is no linkage."""
    names, joints = tuple(chain.names[x] for x in links), tuple(c.name for c in ends)
    slides = [k for k, c in enumerate(ends) if c.kind == "slide"]
    points = np.array([c.point(q) for c in ends])
    points = points - np.outer(points @ normal, normal)
    if len(slides) == 2:
        return FourLinkLoop("double slider", names, joints, (), (), "double slider")
    if len(slides) > 2:
        return None
    if not slides:
        lengths = tuple(float(np.linalg.norm(points[k] - points[k - 1])) for k in range(4))
        if min(lengths) < SHORTEST * size:
            return None
        category, turning, margin = four_bar_category(lengths)
        turns = "" if turning is None else names[turning]
        return FourLinkLoop("four-bar", names, joints, names, lengths, category, turns, margin, _special(lengths))
    k = slides[0]  # the pins in the order of the loop: k + 1, k + 2, k + 3, between them the links k + 2 and k + 3
    pins = [points[(k + n) % 4] for n in (1, 2, 3)]
    first, second = (float(np.linalg.norm(b - a)) for a, b in ((pins[0], pins[1]), (pins[1], pins[2])))
    axis = ends[k].axis(q)
    offset = abs(float(np.cross(axis, pins[2] - pins[0]) @ normal))
    if min(first, second) < SHORTEST * size:
        return None
    offset = 0.0 if offset < EQUAL * (first + second) else offset
    # The link k + 1 has the slide and the first pin, the link k the slide and the last.
    at = {(k + 2) % 4: 0, (k + 3) % 4: 1, (k + 1) % 4: 2, k: 3}
    category, turning, margin = slider_crank_category(first, second, offset, at[0])
    sides = names[(k + 2) % 4], names[(k + 3) % 4]
    turns = "" if turning is None else sides[turning]
    lengths = (first, second, offset)
    if at[0] in (1, 3):  # the crank, or the link on the frame, comes first
        sides, lengths = sides[::-1], (second, first, offset)
    return FourLinkLoop("slider-crank", names, joints, sides, lengths, category, turns, margin)


def _special(lengths: Sequence[float]) -> str:
    """The name of a four-bar with pairs of equal sides."""

    def same(a: int, b: int) -> bool:
        return abs(lengths[a] - lengths[b]) <= EQUAL * sum(lengths)

    if same(0, 2) and same(1, 3):
        return "rhombus" if same(0, 1) else "parallelogram"
    return "deltoid" if (same(0, 1) and same(2, 3)) or (same(1, 2) and same(3, 0)) else ""
