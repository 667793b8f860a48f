"""cam(angle, period, (end, height, law), ...) of a `.mks` text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from linkwright.errors import ModelError
from linkwright.formats.mks.dimensions import Term, Value
from linkwright.formats.mks.syntax import Applied, Fault, Node, Num, Vector, Word, did_you_mean, either
from linkwright.model.cam_programmes import DWELL, cam
from linkwright.model.expression import Expression
from linkwright.model.motion_laws import MOTION_LAWS

_LAWS = (DWELL, *MOTION_LAWS)


class ReadCam(NamedTuple):
    """The expression of a cam, about how many operations it has, and what is like its angle and like its lift."""

    expression: Expression
    operations: int
    places: list[Term]
    heights: list[Term]


def cam_expression(node: Applied, read: Callable[[Node, bool], Value], now: Callable[[Value, Node], float]) -> ReadCam:
    """What a text says of a cam.

    `read` gives the value of a node, with quantities and TIME if asked, and `now` the number that a value has.
    """
    if len(node.arguments) < 3:
        text = "a cam needs an angle, its period and segments, as in "
        raise Fault(node.function, text + "cam(crank.angle, 2*pi, (pi/2, h, rise345), (pi, 0, rise345))")
    angle, period = (read(x, True) for x in node.arguments[:2])
    segments, operations, ends = [], 0, [0.0]
    places: list[Term] = [(angle, node.arguments[0]), (period, node.arguments[1])]
    heights: list[Term] = []
    for segment in node.arguments[2:]:
        if not isinstance(segment, Vector) or len(segment) not in (2, 3):
            text = "a segment of a cam is (end, height, law) in parentheses, or (end, height) of a dwell"
            raise Fault(segment, text)
        entries = entries_of(segment)
        law = entries[2] if len(entries) == 3 else Word(segment.start, segment.end, DWELL)
        if not isinstance(law, Word) or law.text not in _LAWS:
            hint = did_you_mean(law.text, _LAWS) if isinstance(law, Word) else ""
            raise Fault(law, f"the law of a segment is {either(list(_LAWS))}{hint}")
        end, height = (read(x, False) for x in entries[:2])
        places.append((end, entries[0]))
        heights.append((height, entries[1]))
        ends.append(now(end, entries[0]))
        if not ends[-2] < ends[-1]:
            text = f"the segments of a cam end one after another; {ends[-1]:g} is not after {ends[-2]:g}"
            raise Fault(entries[0], text)
        segments.append((end.expression, height.expression, law.text))
        operations += 12 + 2 * angle.size + 4 * (end.size + height.size)
    if ends[-1] > now(period, node.arguments[1]) * (1.0 + 1e-12):
        raise Fault(node.arguments[-1], "the last segment of a cam ends beyond its period")
    try:
        lift = cam(angle.expression, period.expression, *segments)
        return ReadCam(lift, operations, places, heights)
    except ModelError as error:
        raise Fault(node, str(error)) from None


def entries_of(segment: Vector) -> tuple[Node, ...]:
    """The entries of a vector, those of plain numbers too."""
    return segment.entries or tuple(Num(segment.start, segment.end, x) for x in segment.values)
