"""Task space: a frame's error and Jacobian, and resolved-acceleration control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arrays import Floats
from linkwright.control.loop.controller import Reference, Target, check_target, gains
from linkwright.control.loop.model_state import Modelled, ModelState
from linkwright.control.loop.references import turn_matrix, turn_vector
from linkwright.errors import ControlError, ModelError, NameNotFound

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

AXES = ("x", "y", "z", "rx", "ry", "rz")
_WORDS = ("along x", "along y", "along z", "about x", "about y", "about z")


class Task:
    """The controlled directions of a model's frame, in ground's axes: x, y, z and turns about them, rx, ry, rz."""

    def __init__(self, state: ModelState, axes: Sequence[str] | str | None) -> None:
        self.state = state
        if axes is None:
            if state.n < 6:
                text = f"{state.n} joints cannot move {state.frame!r} in six directions; name those that are controlled"
                raise ModelError(f"{text}, such as axes=('x', 'y')", element=state.frame)
            axes = AXES
        names = list(axes)
        for name in names:
            if name not in AXES:
                raise NameNotFound("axis", str(name), list(AXES))
        if len(set(names)) < len(names) or not names:
            raise ModelError(f"axes={axes!r}: name each direction once")
        if len(names) > state.n:
            text = f"{state.n} joints cannot move {state.frame!r} in the {len(names)} directions {tuple(names)}"
            raise ModelError(f"{text}; control fewer", element=state.frame)
        self.names, self.rows = tuple(names), np.array([AXES.index(name) for name in names])
        self.n = len(names)
        self.turns = bool((self.rows >= 3).any())
        #: Turns count by how far they move a point at the mechanism's size.
        self.scale = np.where(self.rows < 3, 1.0, state.mech.programs.size)
        #: And shifts of joints as parts of it.
        self.units = state.mech.programs.rate_units[state.v_places]

    def error(self, target: Target) -> Floats:
        """What is missing to the target: metres, and radians about ground's axes."""
        pose = self.state.pose
        e = np.zeros(6)
        e[:3] = target.x[:3] - pose[:3, 3]
        if self.turns:
            e[3:] = turn_vector(turn_matrix(target.x[3:]) @ pose[:3, :3].T)
        return np.asarray(e[self.rows])

    def rate_error(self, target: Target) -> Floats:
        """What is missing to the target's twist."""
        return np.asarray((target.xd - self.state.twist)[self.rows])

    @property
    def jacobian(self) -> Floats:
        """(m, n): S⁻¹ of the controlled directions."""
        return np.asarray(self.state.jacobian[self.rows])

    def factors(self) -> tuple[Floats, Floats, Floats]:
        """Singular values and vectors of the scaled Jacobian, of rates in their units: u (m, m), s (m), vt (m, n)."""
        u, s, vt = np.linalg.svd(self.scale[:, None] * self.jacobian * self.units, full_matrices=False)
        return u, s, vt

    def refuse(self, u: Floats, s: Floats, vt: Floats, limit: float) -> None:
        """Refuse a singular pose by its joints and direction."""
        if s[-1] * limit > s[0]:
            return
        state = self.state
        way, part = u[:, -1] / self.scale, np.abs(vt[-1])
        words = _WORDS[self.rows[int(np.argmax(np.abs(way)))]]
        names = [name for name, x in zip(state.joints, part, strict=True) if x > 0.3 * part.max()]
        condition = s[0] / s[-1] if s[-1] > 0.0 else np.inf
        text = (
            f"the pose is singular (condition {condition:.3g}, limit {limit:.3g}): "
            f"the joints {', '.join(map(repr, names[:4]))} cannot move {state.frame!r} {words}"
        )
        advice = "keep the path away from there, or control fewer directions"
        raise ControlError(f"{text}; {advice}", reason="singular pose", joints=names)


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
