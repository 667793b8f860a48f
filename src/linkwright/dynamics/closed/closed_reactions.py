"""Reactions of closed mechanisms: straight code where that tells them, else the pseudo-inverse of all constraints."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import real_array
from linkwright.base.arrays import Floats
from linkwright.dynamics.closed.consistent import checked_states
from linkwright.dynamics.closed.redundancy import Blocks
from linkwright.dynamics.closed.straight_code import StraightCode
from linkwright.dynamics.functions import Request
from linkwright.dynamics.joint_reactions import reactions
from linkwright.model.elements import GearPair
from linkwright.model.gear_pairs import separates

if TYPE_CHECKING:
    from linkwright.dynamics.requests import RequestRules
    from linkwright.mechanism import Mechanism

#: The most multipliers among which straight code looks for the least: it grows with their cube.
TOGETHER = 24


class JointWrenches(StraightCode):
    """The reactions of one closed mechanism: straight code, and the careful path for states that it leaves."""

    request, method = Request("joint_wrenches"), "reactions"

    def __init__(self, mech: Mechanism) -> None:
        super().__init__(mech)
        self._size = np.array(mech.programs.size)

    def wrenches(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, t: Any) -> Floats:
        """(..., nb + loops, 6), as `Mechanism.reactions` has them."""
        answer = self.at_once(q, v, tau, self._size, t=t)
        return self.plain(q, v, tau, self._size, t=t) if answer is None else answer

    def plain(self, *arrays: ArrayLike, t: ArrayLike = 0.0) -> Floats:
        mech, (q, v, tau, size) = self.mech, arrays
        states = checked_states(mech, "reactions", q=q, v=v, tau=tau)
        when = real_array("reactions: t", t)
        careful: Callable[..., Floats] = partial(reactions, mech)
        if not self.straight:
            return careful(*states, t=when)
        answers = mech.kernels.evaluate(self.request, *states, size, t=t)
        return self.completed(answers, states, [1, 1, 1, 2], when, careful)

    @property
    def covered(self) -> bool:
        return covers(self.mech.programs)


def covers(factory: RequestRules) -> bool:
    """Whether multipliers are unique, or those of few constraints that join two bodies each are not; and no teeth press
    gears apart."""
    if any(isinstance(x, GearPair) and separates(x) for x in factory.description.point_constraints):
        return False
    sizes = [c.form.size for c in factory.loop_constraints]
    blocks = Blocks(factory.redundancy, sizes)
    rank, ranks = factory.redundancy.rank(range(sum(sizes))), list(map(factory.redundancy.rank, blocks.rows))
    if rank == sum(sizes):
        return True
    repeating = [b for b, rows in enumerate(blocks.rows) if ranks[b] < len(rows)]
    of_tree = factory.topology.joint.tolist()
    constraints = [factory.loop_constraints[k] for b in repeating for k in blocks.groups[b]]
    plain = all(c.form.sides <= 2 and not {*c.source.joints} & {*of_tree} for c in constraints)
    plain = plain and all(c.group != "coupling" for c in constraints)
    few = sum(len(blocks.rows[b]) for b in repeating) <= TOGETHER
    return sum(ranks) == rank and plain and few and not factory.description.mimics
