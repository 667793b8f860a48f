"""The values that SDF has as the text of elements: numbers, poses, switches; errors have the line of the element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.text import shortened
from linkwright.formats.poses import HERE, Pose
from linkwright.formats.xml import ElementReader, number
from linkwright.model.frames import rpy_matrix, snapped
from linkwright.spatial.rotation import euler_parameters_matrix

_TRUE = ("1", "true")


class Values(ElementReader):
    """Reads values of one file; `exact_turns`: angles written as 1.5708 are the quarter turns that they mean."""

    unbounded = 1e16  # what SDF before 1.9 has for "no limit"

    def __init__(self, file: str, exact_turns: bool = True) -> None:
        super().__init__(file)
        self.exact_turns = exact_turns

    def entry(self, element: Any, key: str) -> tuple[Any, str | None, str]:
        child = element.find(key)
        text = None if child is None else child.text or ""
        return child, text, f"<{key}> {shortened((text or '').strip())}"

    def name(self, element: Any) -> str:
        name = super().name(element)
        if "::" in name:
            text = f"the name {name!r} has '::', which parts the names of nested models; choose another"
            raise self.fail(element, text, name)
        return name

    def text(self, element: Any, tag: str, default: str = "") -> str:
        text = None if element is None else self.entry(element, tag)[1]
        return default if text is None else text.strip()

    def limit(self, element: Any, key: str, default: float, owner: str) -> float:
        value = super().limit(element, key, default, owner)
        return math.inf if key in ("effort", "velocity") and value < 0.0 else value

    def switch(self, parent: Any, tag: str, default: bool, owner: str) -> bool:
        word = self.text(parent, tag, str(default)).lower()
        if word not in (*_TRUE, "0", "false"):
            raise self.fail(parent.find(tag), f"{owner}: <{tag}> {shortened(word)} is neither true nor false", owner)
        return word in _TRUE

    def pose(self, parent: Any, owner: str) -> Pose:
        """The <pose> of x y z roll pitch yaw, or (1.9 on) with degrees or a quaternion x y z w."""
        element = parent.find("pose")
        if element is None or not (element.text or "").strip():
            return HERE
        form = element.get("rotation_format", "euler_rpy")
        if form == "quat_xyzw":
            x = self.numbers(parent, "pose", (0.0,) * 7, owner)
            return Pose(self._quaternion(element, x[3:], owner), x[:3])
        if form != "euler_rpy":
            raise self.fail(element, f"{owner}: rotation_format={form!r}; SDF knows euler_rpy and quat_xyzw", owner)
        x = self.numbers(parent, "pose", (0.0,) * 6, owner)
        degrees = is_true(element, "degrees")
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
        return snapped(euler_parameters_matrix(np.array([w, x, y, z])))


def is_true(element: Any, attribute: str) -> bool:
    """Whether a switch of an element is set."""
    return str(element.get(attribute, "")).strip().lower() in _TRUE


def exact_turn(word: str) -> float:
    """An angle; where it is quarter turns rounded to four decimals or more, as 1.5708, these quarter turns.

    Axes that are parallel but for such rounding would lock a loop that is free to move.
    """
    value = number(word)
    decimals = len(word.partition(".")[2]) if word.lstrip("+-").replace(".", "", 1).isdecimal() else 0
    turn = round(value / (math.pi / 2)) * (math.pi / 2) if abs(value) < 1e3 else 0.0
    return turn if turn and decimals >= 4 and abs(value - turn) <= 1.001 * 10.0**-decimals else value
