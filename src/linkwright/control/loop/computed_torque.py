"""`computed_torque`: joint-space control through inverse dynamics, of trees and closed chains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arrays import Floats
from linkwright.control.loop.controller import Reference, Target, check_target, gains
from linkwright.control.loop.modelled import Modelled
from linkwright.control.loop.posture import ModelState

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism


def computed_torque(
    mech: Mechanism,
    kp: ArrayLike,
    kd: ArrayLike,
    reference: Reference,
    *,
    joints: Sequence[str] | None = None,
    guess: ArrayLike | None = None,
) -> ComputedTorque:
    """Inverse dynamics at θ̈ = θ̈_d + K_D (θ̇_d − θ̇) + K_P (θ_d − θ): with an exact model, ë + K_D ė + K_P e = 0.

    mech is the controller's model, which may differ from the plant. θ are its `joints` (those with actuators), in the
    order of the loop's encoders and drives; of a closed chain there are as many as degrees of freedom, and the other
    joints follow from the loops (`guess`, a whole q, says which way they are assembled; else the drawing does).
    kp (1/s²) and kd (1/s) are one number or one for each; the reference has one number for each.
    """
    return ComputedTorque(ModelState(mech, joints, guess=guess), kp, kd, reference)


class ComputedTorque(Modelled):
    """See `computed_torque`."""

    def __init__(self, state: ModelState, kp: ArrayLike, kd: ArrayLike, reference: Reference) -> None:
        super().__init__(state, reference)
        self.kp, self.kd = gains("kp", kp, state.n), gains("kd", kd, state.n)
        check_target(reference.at(0.0), state.n, "computed_torque")
        self._error = np.zeros(state.n)

    def forces(self, t: float, target: Target | None) -> Floats:
        """The forces (n) for a target."""
        assert target is not None
        s = self.state
        self._error = target.x - s.q[s.q_places]
        wanted = target.xdd + self.kd * (target.xd - s.v[s.v_places]) + self.kp * self._error
        self.desired_rates = target.xd
        return s.forces(wanted, t=t)

    @property
    def signals(self) -> Mapping[str, Any]:
        """The error of the joints, and the iterations of the model's posture."""
        return {"error": self._error, "iterations": self.state.iterations}
