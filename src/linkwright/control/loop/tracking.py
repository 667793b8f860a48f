"""Controllers that track a reference in joint or task space: PID, computed torque, resolved acceleration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arrays import Floats
from linkwright.control.loop.controller import Measured, Reference, Target, check_target, gains
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
