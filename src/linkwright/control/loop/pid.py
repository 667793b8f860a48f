"""PID and computed-torque control of joints or of a frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arrays import Floats
from linkwright.control.loop.controller import Measured, Reference, Target, check_target, gains
from linkwright.control.loop.model_state import Modelled, ModelState
from linkwright.control.loop.task_space import CONDITION, Task
from linkwright.errors import ModelError, NameNotFound

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism


def pid(
    mech: Mechanism,
    kp: ArrayLike,
    kd: ArrayLike,
    ki: ArrayLike = 0.0,
    reference: Reference | None = None,
    *,
    space: Literal["joint", "task"] = "joint",
    frame: str | None = None,
    axes: Sequence[str] | str | None = None,
    joints: Sequence[str] | None = None,
    guess: ArrayLike | None = None,
    limit: ArrayLike | None = None,
    gravity: bool = False,
    condition: float = CONDITION,
) -> Pid:
    """u = K_P e + K_D ė + K_I Σ e·period, of joints (N m/rad, N m s/rad, ...) or of a frame (N/m, ...).

    In joint space e is the error of the measured joints, and the model is used for nothing but their names (and, with
    `gravity=True`, for the forces that hold its weight); `joints` may be some of a tree's, as of an under-actuated one.
    In task space e is that of `frame` along `axes`, metres and radians about ground's axes, u a force and moment f on
    it, and the drives give τ = Jᵀ f, which on a closed chain is S⁻ᵀ f. With `limit` forces of the drives are cut there.
    The integral stands still where a force is cut, by `limit` or by the loop, and would be driven further.
    """
    if reference is None:
        raise ModelError("pid follows a reference; give reference=..., such as lw.control.Hold(q)")
    if space not in ("joint", "task"):
        raise NameNotFound("space", str(space), ["joint", "task"])
    if (space == "task") != (frame is not None):
        raise ModelError("pid in task space needs frame=..." if frame is None else "frame= is for space='task'")
    # Joints' errors alone ask for no posture: an under-actuated tree (a crane's trolley) can be controlled, too.
    state = ModelState(mech, joints, frame, guess=guess, partial=frame is None and not gravity)
    task = Task(state, axes) if frame is not None else None
    return Pid(state, task, (kp, kd, ki), reference, limit, gravity=gravity, condition=condition)


class Pid(Modelled):
    """See `pid`."""

    def __init__(
        self,
        state: ModelState,
        task: Task | None,
        k: tuple[ArrayLike, ArrayLike, ArrayLike],
        reference: Reference,
        limit: ArrayLike | None,
        *,
        gravity: bool,
        condition: float,
    ) -> None:
        super().__init__(state, reference)
        n = state.n if task is None else task.n
        self.task, self.gravity, self.condition = task, gravity, condition
        self.kp, self.kd, self.ki = (gains(name, x, n) for name, x in zip(("kp", "kd", "ki"), k, strict=True))
        self.limit = None if limit is None else gains("limit", limit, state.n)
        check_target(reference.at(0.0), state.n if task is None else 6, "pid")
        self._needs_model = task is not None or gravity
        self.integral, self._error = np.zeros(n), np.zeros(n)
        self._period, self._cut = 0.0, np.zeros(state.n)

    def start(self, measured: Measured) -> Any:
        """Begin with no integral; the forces that hold the motion as it was before."""
        self.state.check_width(measured.q)
        self.state.started = False
        self.integral = np.zeros_like(self.integral)
        self._period = 0.0  # nothing is integrated yet
        held = self.follow(-measured.period, measured, self.before(measured))
        self._period = measured.period
        return held

    def follow(self, t: float, measured: Measured, target: Target | None) -> Any:
        """The forces for a target, from what is measured; the integral goes on."""
        self._cut = measured.cut  # the integral must not grow with its sign
        if self._needs_model:
            self.see(measured)
            return self.forces(t, target)
        return self._output(target, measured.q, measured.v)

    def forces(self, t: float, target: Target | None) -> Floats:
        """The forces (n) for a target, at the model's state."""
        s = self.state
        return self._output(target, s.q[s.q_places], s.v[s.v_places])

    def _output(self, target: Target | None, q: Floats, v: Floats) -> Floats:
        assert target is not None
        task = self.task
        if task is None:
            e, ed = target.x - q, target.xd - v
            self.desired_rates = target.xd
            turn = None
        else:
            task.refuse(*task.factors(), self.condition)
            e, ed = task.error(target), task.rate_error(target)
            turn = task.jacobian
        self._error = e
        moved = self.integral + self._period * e
        u = self._drive(e, ed, moved, turn)
        cut = self._cut if self.limit is None else self._cut + (u - np.clip(u, -self.limit, self.limit))
        if cut.any():
            # e drives a cut force further where it has its sign; in task space all of the integral stands still.
            further = e * cut > 0.0 if turn is None else np.full(len(e), True)
            moved = np.where(further, self.integral, moved)
            u = self._drive(e, ed, moved, turn)
        self.integral = moved
        return u if self.limit is None else np.clip(u, -self.limit, self.limit)

    def _drive(self, e: Floats, ed: Floats, integral: Floats, turn: Floats | None) -> Floats:
        f = self.kp * e + self.kd * ed + self.ki * integral
        u = f if turn is None else turn.T @ f
        return np.asarray(u + self.state.weights() if self.gravity else u)

    def law(self) -> Callable[[Any, Any, Any], Any]:
        """tau(t, q, v), if there is no integral."""
        if self.ki.any():
            raise ModelError("pid with ki keeps an integral between samples and has no law; run it in a Loop")
        return super().law()

    @property
    def signals(self) -> Mapping[str, Any]:
        """The error, and the integral."""
        return {"error": self._error, "integral": self.integral}


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
