"""`resolved_acceleration`: task-space control of a frame through inverse dynamics, of trees and closed chains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arrays import Floats
from linkwright.control.loop.controller import Reference, Target, check_target, gains
from linkwright.control.loop.modelled import Modelled
from linkwright.control.loop.posture import ModelState
from linkwright.control.loop.task import Task
from linkwright.errors import ModelError

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

CONDITION = 1e4
#: A redundant arm's singular values are damped below this part of the largest.
NEAR = 0.02


def resolved_acceleration(
    mech: Mechanism,
    frame: str,
    kp: ArrayLike,
    kv: ArrayLike,
    reference: Reference,
    *,
    axes: Sequence[str] | str | None = None,
    joints: Sequence[str] | None = None,
    guess: ArrayLike | None = None,
    condition: float = CONDITION,
    damped: bool | None = None,
    null_damping: float = 10.0,
) -> ResolvedAcceleration:
    """Inverse dynamics at ẍ = ẍ_d + K_V (ẋ_d − ẋ) + K_P (x_d − x) of a frame (Luh, Walker and Paul; paper's eq. 5).

    The reference gives poses: position and rotation vector (6), as `lw.control.Pose` does; the error of the rotation is
    the axis and angle from where the frame is to where it should be. `axes` are the controlled directions out of
    x, y, z, rx, ry, rz in ground's axes (all six by default); kp (1/s²) and kv (1/s) are one number or one for each.

    Joint accelerations are J⁺(ẍ − J̇ v) with J = S⁻¹ of the driven joints, also of a closed chain, whose other joints
    follow from the measured ones (see `ModelState`; `guess` says which way it is assembled). A pose whose J has a
    condition beyond `condition`, turns counted by the mechanism's size, stops the run with a sentence. A redundant arm
    (or `damped=True`) takes damped least squares near such poses instead, and damps what it may do besides the task
    with `null_damping` (1/s).
    """
    state = ModelState(mech, joints, frame, guess=guess)
    return ResolvedAcceleration(state, Task(state, axes), kp, kv, reference, condition, damped, null_damping)


class ResolvedAcceleration(Modelled):
    """See `resolved_acceleration`."""

    def __init__(
        self,
        state: ModelState,
        task: Task,
        kp: ArrayLike,
        kv: ArrayLike,
        reference: Reference,
        condition: float,
        damped: bool | None,
        null_damping: float,
    ) -> None:
        super().__init__(state, reference)
        self.task, self.limit, self.null = task, float(condition), float(null_damping)
        self.kp, self.kv = gains("kp", kp, task.n), gains("kv", kv, task.n)
        check_target(reference.at(0.0), 6, "resolved_acceleration")
        self.redundant = state.n > task.n
        self.damped = self.redundant if damped is None else bool(damped)
        if not self.limit > 1.0:
            raise ModelError(f"condition must be greater than 1, not {condition!r}")
        self._error, self.condition = np.zeros(task.n), 1.0

    def forces(self, t: float, target: Target | None) -> Floats:
        """The forces (n) for a target."""
        assert target is not None
        s, task = self.state, self.task
        self._error = task.error(target)
        wanted = target.xdd[task.rows] + self.kv * task.rate_error(target) + self.kp * self._error
        u, sizes, vt = task.factors()
        self.condition = float(sizes[0] / max(sizes[-1], 1e-300))
        if not self.damped:
            task.refuse(u, sizes, vt, self.limit)
        inverse = sizes / (sizes * sizes + self._damping(sizes))

        def resolved(x: Floats) -> Floats:
            return np.asarray(task.units * (vt.T @ (inverse * (u.T @ (task.scale * x)))))

        a = resolved(wanted - s.frame_drift[task.rows])
        self.desired_rates = resolved(target.xd[task.rows])
        if self.redundant:
            rates = s.v[s.v_places] / task.units
            a = a - self.null * task.units * (rates - vt.T @ (vt @ rates))
        return s.forces(a, t=t)

    def _damping(self, sizes: Floats) -> float:
        """λ²: none far from singular poses, growing towards them (Nakamura and Hanafusa 1986)."""
        near = NEAR * sizes[0]
        if not self.damped or sizes[-1] >= near:
            return 0.0
        return float((1.0 - (sizes[-1] / near) ** 2) * near * near)

    @property
    def signals(self) -> Mapping[str, Any]:
        """The task's error, the condition of S, and the iterations of the model's posture."""
        return {"error": self._error, "condition": self.condition, "iterations": self.state.iterations}
