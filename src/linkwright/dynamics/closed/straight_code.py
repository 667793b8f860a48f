"""Straight code for the states of a closed mechanism, and a careful path for the states that it leaves: how calls
choose between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.dynamics.functions import Request
from linkwright.dynamics.requests import UNROLL
from linkwright.kernels.callpath import shortcut

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

#: The rates up to which straight code is laid out.
MOST = 40


class StraightCode:
    """A function of one closed mechanism whose program gives NaN where it does not tell the answer."""

    request: ClassVar[Request]
    method: ClassVar[str]  # of `Mechanism`

    def __init__(self, mech: Mechanism) -> None:
        self.mech = mech

    def plain(self, *arrays: ArrayLike, t: ArrayLike = 0.0) -> Floats:
        """The answer for the program's inputs, arrays of any sort; t may be the last of them."""
        raise NotImplementedError

    @property
    def covered(self) -> bool:
        """Whether the program is for such a mechanism, if it is laid out for it."""
        return True

    @cached_property
    def straight(self) -> bool:
        """Whether there is straight code."""
        p = self.mech.programs
        laid_out = 0 < p.tree.coordinates.nv <= MOST and p.tree.n <= UNROLL and not p.rotors
        laid_out = laid_out and not p.carried_by_constraints and bool(p.redundancy.positions) and not p.gap
        return laid_out and self.covered

    @cached_property
    def _timed(self) -> bool:
        return self.mech.programs.timed(self.request)

    @cached_property
    def _native(self) -> Callable[..., Floats] | None:
        """Straight code for one state in plain arrays, called natively where that can be."""
        if not self.straight:
            return None
        function: Callable[..., Floats] | None = shortcut(
            self.mech.kernels.kernel(self.request), partial(type(self)._from_plain, self), self.method
        )
        return function

    def _from_plain(self, *arrays: ArrayLike) -> Floats:
        """What the short way does not take: arrays of other sorts."""
        return self.plain(*arrays[:-1], t=arrays[-1]) if self._timed else self.plain(*arrays)

    def at_once(self, *arrays: ArrayLike, t: Any) -> Floats | None:
        """The answer for one state in plain arrays, if straight code tells it."""
        if self._native is None or not isinstance(t, float):
            return None
        when = (np.array(t, np.float64),) if self._timed else ()
        answer: Floats = self._native(*arrays, *when)
        flat = answer.reshape(-1)
        return answer if flat.item(0) == flat.item(0) else None

    def completed(
        self, answers: Floats, arrays: Sequence[Floats], dims: Sequence[int], t: Any, careful: Callable[..., Floats]
    ) -> Floats:
        """The answers of straight code for many states, with those of `careful` where they are NaN.

        `dims` are the dimensions of one state of each array, and last of an answer.
        """
        shape = answers.shape[: answers.ndim - dims[-1]]
        unknown = np.isnan(answers.reshape(*shape, -1)[..., 0])
        if unknown.any():
            pairs = zip(arrays, dims, strict=False)
            some = [np.broadcast_to(x, shape + x.shape[x.ndim - n :])[unknown] for x, n in pairs]
            answers[unknown] = careful(*some, t=np.broadcast_to(t, shape)[unknown])
        return answers
