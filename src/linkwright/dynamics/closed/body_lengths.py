"""The lengths by which turns of bodies are compared with shifts, with parameters as inputs.

`model/placements.py` has their meaning and computes them for numbers; both sum the same squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwright.base.locks import cached_property
from linkwright.model.placements import SMALL, mean_squares
from linkwright.model.tree import Tree
from linkwright.spatial.algebra import Array

_PLACES = ("pi", "pj", "frame_p")


class BodyLengths:
    """The lengths of a mechanism's bodies as functions of its free parameters, where these move frames on bodies.

    Which bodies' frames tell a length of their own is as with the parameters as declared.
    """

    def __init__(self, tree: Tree, free: Sequence[str]) -> None:
        self.tree, self.free = tree, tuple(free)

    @cached_property
    def vary(self) -> bool:
        """Whether any free parameter moves a frame on its body."""
        bound = ((array, x) for (array, _), x in self.tree.description.bindings.items())
        return any(array in _PLACES and not x.names().isdisjoint(self.free) for array, x in bound)

    @cached_property
    def known(self) -> bool:
        """Whether the units of twists follow from these lengths alone, or do not depend on the parameters."""
        d = self.tree.description
        turning = d.mimics or any(d.kind_of(j).name == "screw" for j in range(d.nj))
        return not self.vary or (not turning and any(self._framed))

    @cached_property
    def _framed(self) -> list[bool]:
        """Which bodies' frames tell their lengths."""
        d = self.tree.description
        squares = mean_squares(d, lambda name: np.asarray(getattr(d, name), dtype=np.float64))
        flags: list[bool] = (np.sqrt(squares) > SMALL * np.sqrt(np.sum(squares) / d.nb)).tolist()
        return flags

    def _own(self, p: Array) -> tuple[list[Any], Any]:
        """What the frames of each body tell of its length, and a typical one."""
        d, parameters = self.tree.description, dict(zip(self.free, p, strict=True))

        def array(name: str) -> Any:
            rows = len(getattr(d, name))
            numbers = [[*self.tree.row(name, k, parameters)] for k in range(rows)]
            return np.array(numbers, dtype=object).reshape(rows, 3)

        squares = mean_squares(d, array)
        return [np.sqrt(x) for x in squares], np.sqrt(sum(squares, 0.0) * (1.0 / d.nb))

    def of_bodies(self, p: Array) -> list[Any]:
        """The length of each body."""
        own, typical = self._own(p)
        return [x if framed else typical for x, framed in zip(own, self._framed, strict=True)]

    def limits(self, p: Array) -> list[tuple[Any, Any]]:
        """Pairs of which the first must not be larger: where the same bodies' frames tell their lengths."""
        own, typical = self._own(p)
        pairs = zip(own, self._framed, strict=True)
        return [(SMALL * typical, x) if framed else (x, SMALL * typical) for x, framed in pairs]
