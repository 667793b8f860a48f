"""A sampled compensator that runs: one small matrix product a step, and never a number that is not finite."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arrays import Floats
from linkwright.errors import ShapeError

_product, _sum = np.matmul, np.add.reduce


class Compensator:
    """u from (r, y), sample by sample: x⁺ = A x + B [r; y], u = C x + D [r; y].

    An input that is not finite leaves states and output as they were; `held` counts those steps. While the caller says
    that the last output was saturated, the states from `feedback` on (the feedback controller's) are held, so that they
    do not wind up; the reference's way and the filters go on; `saturated` counts those steps.
    """

    def __init__(
        self, A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike, *, references: int, feedback: int = 0
    ) -> None:
        D = np.atleast_2d(np.asarray(D, dtype=float))
        self.outputs, inputs = D.shape
        n = np.asarray(A).shape[0] if np.asarray(A).size else 0
        self.order, self.references, self.feedback = n, references, feedback
        if not 0 <= references <= inputs:
            raise ShapeError(f"of {inputs} inputs {references} cannot be references")
        top = np.hstack([np.reshape(A, (n, n)), np.reshape(B, (n, inputs))])
        self._matrix = np.ascontiguousarray(np.vstack([top, np.hstack([np.reshape(C, (self.outputs, n)), D])]))
        self._now = np.zeros(n + inputs)
        self._next = np.zeros(n + self.outputs)
        self._single = self.outputs == 1
        self._reference, self._measured = slice(n, n + references), slice(n + references, None)
        self.reset()

    def reset(self) -> None:
        """All states and the output zero, counts too."""
        self._now[:] = 0.0
        self._next[:] = 0.0
        self._last: Any = 0.0 if self._single else np.zeros(self.outputs)
        self.held = 0
        self.saturated = 0

    @property
    def state(self) -> Floats:
        """A copy of the states."""
        return self._now[: self.order].copy()

    def step(self, r: Any, y: Any, saturated: bool = False) -> Any:
        """The output of this sample, and the states of the next; one output is a float, several an array."""
        now, after = self._now, self._next
        now[self._reference] = r
        now[self._measured] = y
        _product(self._matrix, now, after)
        # One number that is not finite makes the sum not finite.
        if not isfinite(_sum(after)):
            return self._hold()
        if saturated:
            now[: self.feedback] = after[: self.feedback]
            self.saturated += 1
        else:
            now[: self.order] = after[: self.order]
        self._last = after[self.order :].copy() if not self._single else float(after[-1])
        return self._last

    def _hold(self) -> Any:
        self.held += 1
        if np.isfinite(self._now).all():
            # Finite inputs, and yet: only the states of an unstable compensator grow that far. It starts afresh.
            self._now[:] = 0.0
        return self._last
