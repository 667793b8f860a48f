"""The quantities of bodies, computed from the coordinates of their spanning tree when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from linkwright.base.arrays import Floats
from linkwright.model.bodies import QUANTITIES, body_motion
from linkwright.model.description import Description


class BodyArrays(Mapping[str, Floats]):
    """The quantities of all bodies by name, computed when one is first asked for."""

    def __init__(self, description: Description, q: Floats, v: Floats, a: Floats) -> None:
        self._states = description, q, v, a
        self._motion: dict[str, Floats] | None = None

    def __getitem__(self, name: str) -> Floats:
        if name not in QUANTITIES:
            raise KeyError(name)
        if self._motion is None:
            self._motion = body_motion(*self._states)
        return self._motion[name]

    def __iter__(self) -> Iterator[str]:
        return iter(QUANTITIES)

    def __len__(self) -> int:
        return len(QUANTITIES)
