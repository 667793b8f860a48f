"""Rises, dwells and returns of a follower over a cam's period, as expressions or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwright.errors import ModelError, NameNotFound
from linkwright.model.expression import FUNCTIONS, Call, Expression, as_expression
from linkwright.model.motion_laws import MOTION_LAWS

#: The law of a segment that stays where it is.
DWELL = "dwell"


def rise(x: Any, x0: Any, y0: Any, x1: Any, y1: Any, law: str = "rise345") -> Any:
    """y0 before x0, y1 after x1, and between them a motion law of cams.

    - `x`: a number, an array or an expression, as are the others; `x0`, `x1` in its unit, x1 > x0.
    - `y0`, `y1`: the heights.
    - `law`: "harmonic" (its acceleration jumps at the ends), "cycloidal", "rise345" (the 3-4-5 polynomial; the
      default), "rise4567", "modified_sine" or "modified_trapezoid".

    Returns what x is: a number, an array or an expression. Raises `NameNotFound` for another law.

    >>> float(lw.rise(0.5, 0.0, 0.0, 1.0, 0.02))
    0.01
    """
    if law not in MOTION_LAWS:
        raise NameNotFound("motion law", str(law), list(MOTION_LAWS))
    return _applied(law, x, x0, y0, x1, y1)


def cam(angle: Any, period: Any, *segments: Sequence[Any]) -> Any:
    """A programme of rises, dwells and returns, repeated in every period.

    - `angle`: a number, an array or an expression, such as a coordinate (rad).
    - `period`: what it repeats after (rad): 2π of a cam that turns once.
    - `segments`: (end, height, law) each: the law leads to the height (m or rad) at this end (rad), from where the
      segment before ended; the first begins at 0, at the height of the last. Laws are those of `rise`, and "dwell",
      which may be left out and stays at the height before. Ends increase, the last is at most the period; the follower
      stays from there to the period's end.

    Returns what the angle is: a number, an array or an expression. Raises `ModelError` for ends that do not increase
    and dwells that change the height, `NameNotFound` for another law.

    >>> float(lw.cam(2.0, 6.0, (1.0, 0.02, "rise345"), (3.0, 0.02), (4.0, 0.0, "cycloidal")))
    0.02
    """
    if not segments:
        raise ModelError("a cam has no segments; give (end, height, law) for each rise, dwell and return")
    odd = next((segment for segment in segments if len(segment) not in (2, 3)), None)
    if odd is not None:
        raise ModelError(f"a segment of a cam is (end, height, law), not {len(odd)} values")
    turned = _applied("mod", angle, period)
    begin: Any = 0.0
    height = before = segments[-1][1]
    for segment in segments:
        end, after, law = (*segment, DWELL)[:3]
        if not isinstance(end, Expression) and not isinstance(begin, Expression) and not end > begin:
            raise ModelError(f"the segments of a cam end one after another; {end:g} is not after {begin:g}")
        if law == DWELL:
            if after != before:
                raise ModelError(
                    f"a cam dwells at the height that it has, {before}, not at {after}; give a law to move"
                )
        else:
            height = height + rise(turned, begin, 0.0, end, after - before, law)
        begin, before = end, after
    if not isinstance(begin, Expression) and not isinstance(period, Expression) and not begin <= period:
        raise ModelError(f"the last segment of a cam ends at {begin:g}, beyond its period {period:g}")
    return height


def _applied(function: str, *arguments: Any) -> Any:
    if any(isinstance(x, Expression) for x in arguments):
        return Call(function, tuple(map(as_expression, arguments)))
    return FUNCTIONS[function][1](*arguments)
