"""The values that SDF keeps as the text of elements: numbers, poses, switches; what is wrong is told with its line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwright.base.types import Floats
from linkwright.errors import FormatError
from linkwright.formats.poses import HERE, Pose
from linkwright.formats.xml import number
from linkwright.mechanism.frames import rpy_matrix, snapped

_INFINITE = [sign + word for sign in ("", "+", "-") for word in ("inf", "infinity")]
_HUGE = 1e16  # what SDF before 1.9 has for "no limit"


class Values:
    """Reads values of one file; `exact_turns`: angles written as 1.5708 are the quarter turns that they mean."""

    def __init__(self, file: str, exact_turns: bool = True) -> None:
        self.file, self.exact_turns = file, exact_turns

    def fail(self, element: Any, message: str, name: str | None = None) -> FormatError:
        line = None if element is None else element.sourceline
        return FormatError(message, file=self.file, line=line, element=name)

    def name(self, element: Any) -> str:
        name = str(element.get("name") or "")
        if not name:
            raise self.fail(element, f"a <{element.tag}> has no name; give it one")
        if "::" in name:
            text = f"the name {name!r} has '::', which parts the names of nested models; choose another"
            raise self.fail(element, text, name)
        return name

    def text(self, element: Any, tag: str, default: str = "") -> str:
        found = element.find(tag)
        return default if found is None else (found.text or "").strip()

    def numbers(self, element: Any, default: Sequence[float], owner: str) -> Floats:
        """The numbers in an element's text, as many as in `default`; the default where there is no element."""
        if element is None:
            return np.array(default, dtype=np.float64)
        text = element.text or ""
        try:
            values = np.array([number(word) for word in text.split()])
        except ValueError:
            raise self.fail(element, f"{owner}: <{element.tag}> {_shown(text)} is not a number", owner) from None
        if len(values) != len(default):
            message = f"{owner}: <{element.tag}> has {len(values)} numbers; {len(default)} wanted"
            raise self.fail(element, message, owner)
        if not np.isfinite(values).all():
            message = f"{owner}: <{element.tag}> {_shown(text)} is not finite; give finite numbers"
            raise self.fail(element, message, owner)
        return values

    def number(self, parent: Any, tag: str, default: float, owner: str) -> float:
        element = None if parent is None else parent.find(tag)
        return float(self.numbers(element, (default,), owner)[0])

    def not_negative(self, parent: Any, tag: str, default: float, owner: str) -> float:
        value = self.number(parent, tag, default, owner)
        if value < 0.0:
            message = f"{owner} has the negative <{tag}> {value:g}; give 0 or more"
            raise self.fail(parent.find(tag), message, owner)
        return value

    def limit(self, parent: Any, tag: str, default: float, owner: str) -> float:
        """As `number`; a limit may be infinite, which is also written as 1e16 or, for rates and efforts, as −1."""
        element = None if parent is None else parent.find(tag)
        if element is None:
            return default
        if (element.text or "").strip().lower() in _INFINITE:
            value = float(element.text)
        else:
            value = float(self.numbers(element, (default,), owner)[0])
        if tag in ("effort", "velocity"):
            return math.inf if value < 0.0 or value >= _HUGE else value
        return math.copysign(math.inf, value) if abs(value) >= _HUGE else value

    def switch(self, parent: Any, tag: str, default: bool, owner: str) -> bool:
        element = None if parent is None else parent.find(tag)
        if element is None:
            return default
        word = (element.text or "").strip().lower()
        if word not in ("0", "1", "true", "false"):
            raise self.fail(element, f"{owner}: <{tag}> {_shown(word)} is neither true nor false", owner)
        return word in ("1", "true")

    def pose(self, element: Any, owner: str) -> Pose:
        """A pose of x y z roll pitch yaw, or (1.9 on) with degrees or a quaternion x y z w."""
        if element is None or not (element.text or "").strip():
            return HERE
        form = element.get("rotation_format", "euler_rpy")
        if form == "quat_xyzw":
            x = self.numbers(element, (0.0,) * 7, owner)
            return Pose(self._quaternion(element, x[3:], owner), x[:3])
        if form != "euler_rpy":
            raise self.fail(element, f"{owner}: rotation_format={form!r}; SDF knows euler_rpy and quat_xyzw", owner)
        x = self.numbers(element, (0.0,) * 6, owner)
        degrees = element.get("degrees", "false").strip().lower() in ("1", "true")
        if self.exact_turns and not degrees:
            x[3:] = [exact_turn(word) for word in element.text.split()[3:]]
        return Pose(rpy_matrix(np.radians(x[3:]) if degrees else x[3:]), x[:3])

    def _quaternion(self, element: Any, xyzw: Floats, owner: str) -> Floats:
        size = float(np.linalg.norm(xyzw))
        if not 0.5 < size < 2.0:
            raise self.fail(
                element, f"{owner}: the quaternion of <{element.tag}> has the length {size:g}, not 1", owner
            )
        x, y, z, w = xyzw / size
        return snapped(
            [
                [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
                [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
                [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
            ]
        )


def exact_turn(word: str) -> float:
    """An angle; where it is quarter turns rounded to four decimals or more, as 1.5708, these quarter turns.

    Axes that are parallel but for such rounding would lock a loop that is free to move.
    """
    value = number(word)
    decimals = len(word.partition(".")[2]) if word.lstrip("+-").replace(".", "", 1).isdecimal() else 0
    turn = round(value / (math.pi / 2)) * (math.pi / 2) if abs(value) < 1e3 else 0.0
    return turn if turn and decimals >= 4 and abs(value - turn) <= 1.001 * 10.0**-decimals else value


def _shown(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= 80 else f"{text[:80]}…")
