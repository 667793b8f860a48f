"""Controllers that track a reference in joint or task space: PID, computed torque, resolved acceleration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import check_names, takes_settings
from linkwright.base.arrays import Floats
from linkwright.control.loop.controller_base import Measured, Reference, Target, check_target, gains
from linkwright.control.loop.model_state import Modelled, ModelState
from linkwright.control.loop.references import turn_matrix, turn_vector
from linkwright.errors import ControlError, ModelError

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
        check_names("axis", names, AXES)
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


@dataclass(frozen=True, kw_only=True)
class ResolvedSettings:
    """Settings of `resolved_acceleration`: `settings=lw.control.ResolvedSettings(damped=True)`.

    - `guess` (nq): coordinates that say which way a closed chain is assembled; those of the drawing unless given.
    - `condition`: of J, turns counted by the mechanism's size, beyond which a pose is singular; 1e4.
    - `damped`: whether singular poses are passed by damped least squares; redundant arms' are unless given.
    - `null_damping` (1/s): how the motion of a redundant arm besides its task is damped; 10.0.

    >>> import linkwright as lw
    >>> lw.control.ResolvedSettings(condition=50.0).null_damping
    10.0

    A condition that is not greater than 1 raises `ModelError`.
    """

    guess: ArrayLike | None = None
    condition: float = CONDITION
    damped: bool | None = None
    null_damping: float = 10.0

    def __post_init__(self) -> None:
        if not self.condition > 1.0:
            raise ModelError(f"condition must be greater than 1, not {self.condition!r}")


@takes_settings(settings=ResolvedSettings)
def resolved_acceleration(
    mech: Mechanism,
    frame: str,
    kp: ArrayLike,
    kv: ArrayLike,
    reference: Reference,
    *,
    axes: Sequence[str] | str | None = None,
    joints: Sequence[str] | None = None,
    settings: ResolvedSettings | None = None,
) -> ResolvedAcceleration:
    """Inverse dynamics at ẍ = ẍ_d + K_V (ẋ_d − ẋ) + K_P (x_d − x) of a frame (Luh, Walker and Paul; paper's eq. 5).

    - `mech`: the controller's model, which may differ from the plant. `frame`: one of its frames, by name.
    - `kp` (1/s²), `kv` (1/s): one number, or one for each controlled direction.
    - `reference`: gives poses, position and rotation vector (6), as `lw.control.Pose` does; the error of the rotation
      is the axis and angle from where the frame is to where it should be.
    - `axes`: the controlled directions out of x, y, z, rx, ry, rz in ground's axes; all six unless given.
    - `joints`: those that are measured and driven, in the order of the loop's; those with actuators unless given.
    - `settings`: `ResolvedSettings`; their defaults.

    Joint accelerations are J⁺(ẍ − J̇ v) with J = S⁻¹ of the driven joints, also of a closed chain, whose other joints
    follow from the measured ones (see `ModelState`). A singular pose stops the run with a sentence. A redundant arm
    takes damped least squares near such poses instead, and damps what it may do besides the task.

    >>> import linkwright as lw
    >>> arm = lw.chain(7)
    >>> law = lw.control.resolved_acceleration(arm, "link7", 100.0, 20.0, lw.control.Pose([0.0, 0.0, 0.5]), axes="xyz")
    >>> law.redundant
    True

    Returns a `Controller`. Raises `ModelError`, `ShapeError` or `NameNotFound` for arguments that cannot be used.
    """
    s = ResolvedSettings() if settings is None else settings
    state = ModelState(mech, joints, frame, guess=s.guess)
    return ResolvedAcceleration(state, Task(state, axes), kp, kv, reference, s)


class ResolvedAcceleration(Modelled):
    """See `resolved_acceleration`."""

    def __init__(
        self,
        state: ModelState,
        task: Task,
        kp: ArrayLike,
        kv: ArrayLike,
        reference: Reference,
        settings: ResolvedSettings,
    ) -> None:
        super().__init__(state, reference)
        self.task, self.settings = task, settings
        self.kp, self.kv = gains("kp", kp, task.n), gains("kv", kv, task.n)
        check_target(reference.at(0.0), 6, "resolved_acceleration")
        self.redundant = state.n > task.n
        self.damped = self.redundant if settings.damped is None else settings.damped
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
            task.refuse(u, sizes, vt, self.settings.condition)
        inverse = sizes / (sizes * sizes + self._damping(sizes))

        def resolved(x: Floats) -> Floats:
            return np.asarray(task.units * (vt.T @ (inverse * (u.T @ (task.scale * x)))))

        a = resolved(wanted - s.frame_drift[task.rows])
        self.desired_rates = resolved(target.xd[task.rows])
        if self.redundant:
            rates = s.v[s.v_places] / task.units
            a = a - self.settings.null_damping * task.units * (rates - vt.T @ (vt @ rates))
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


@dataclass(frozen=True, kw_only=True)
class PidSettings:
    """Settings of `pid` beyond its main arguments: `settings=lw.control.PidSettings(gravity=True)`.

    - `joints`: those that are measured and driven, in the order of the loop's; those with actuators unless given. They
      may be some of a tree's, as of an under-actuated one.
    - `axes`: in task space the controlled directions out of x, y, z, rx, ry, rz; all six unless given.
    - `limit` (N m, N): forces of the drives are cut at ± this limit, one number or one for each; no limit unless given.
    - `gravity`: whether the forces that hold the model's weight are added; False.
    - `guess` (nq): coordinates that say which way a closed chain is assembled; those of the drawing unless given.
    - `condition`: of J, turns counted by the mechanism's size, beyond which a pose is singular; 1e4.

    >>> import linkwright as lw
    >>> lw.control.PidSettings(limit=5.0).gravity
    False

    `pid` checks them against its mechanism.
    """

    joints: Sequence[str] | None = None
    axes: Sequence[str] | str | None = None
    limit: ArrayLike | None = None
    gravity: bool = False
    guess: ArrayLike | None = None
    condition: float = CONDITION


@takes_settings(settings=PidSettings)
def pid(
    mech: Mechanism,
    kp: ArrayLike,
    kd: ArrayLike,
    ki: ArrayLike = 0.0,
    reference: Reference | None = None,
    *,
    space: Literal["joint", "task"] = "joint",
    frame: str | None = None,
    settings: PidSettings | None = None,
) -> Pid:
    """u = K_P e + K_D ė + K_I Σ e·period, of joints (N m/rad, N m s/rad, ...) or of a frame (N/m, ...).

    - `mech`: the controller's model. In joint space it is used for the names of joints, and for their weight.
    - `kp`, `kd`, `ki`: one number, or one for each joint or controlled direction; `ki` is 0.0.
    - `reference`: the motion to follow: of the joints, or poses (6) as `lw.control.Pose` gives them.
    - `space`: "joint", where e is the error of the measured joints; or "task", where e is that of `frame` in metres and
      radians about ground's axes, u a force and moment f on it, and the drives give τ = Jᵀ f, which on a closed chain
      is S⁻ᵀ f.
    - `frame`: in task space, a frame of the model by name.
    - `settings`: `PidSettings`; their defaults.

    The integral stands still where a force is cut, by a limit or by the loop, and would be driven further.

    >>> import linkwright as lw
    >>> arm = lw.chain(1)
    >>> lw.control.pid(arm, 20.0, 2.0, 0.0, lw.control.Hold([0.3])).kp.tolist()
    [20.0]

    Returns a `Controller`. Raises `ModelError`, `ShapeError` or `NameNotFound` for arguments that cannot be used.
    """
    if reference is None:
        raise ModelError("pid follows a reference; give reference=..., such as lw.control.Hold(q)")
    check_names("space", [space], ["joint", "task"])
    if (space == "task") != (frame is not None):
        raise ModelError("pid in task space needs frame=..." if frame is None else "frame= is for space='task'")
    s = PidSettings() if settings is None else settings
    # Joints' errors alone ask for no posture: an under-actuated tree (a crane's trolley) can be controlled, too.
    state = ModelState(mech, s.joints, frame, guess=s.guess, partial=frame is None and not s.gravity)
    return Pid(state, Task(state, s.axes) if frame is not None else None, (kp, kd, ki), reference, s)


class Pid(Modelled):
    """See `pid`."""

    def __init__(
        self,
        state: ModelState,
        task: Task | None,
        k: tuple[ArrayLike, ArrayLike, ArrayLike],
        reference: Reference,
        settings: PidSettings,
    ) -> None:
        super().__init__(state, reference)
        n = state.n if task is None else task.n
        self.task, self.settings = task, settings
        self.kp, self.kd, self.ki = (gains(name, x, n) for name, x in zip(("kp", "kd", "ki"), k, strict=True))
        self.limit = None if settings.limit is None else gains("limit", settings.limit, state.n)
        check_target(reference.at(0.0), state.n if task is None else 6, "pid")
        self._needs_model = task is not None or settings.gravity
        self.integral, self._error = np.zeros(n), np.zeros(n)
        self._period, self._cut = 0.0, np.zeros(state.n)

    def start(self, measured: Measured) -> Any:
        """Begin with no integral; the forces that hold the motion as it was before."""
        self.state.check_width(measured.q)
        self.integral = np.zeros_like(self.integral)
        self._period = 0.0  # nothing is integrated yet
        held = super().start(measured)
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
            task.refuse(*task.factors(), self.settings.condition)
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
        return np.asarray(u + self.state.weights() if self.settings.gravity else u)

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

    `mech` is the controller's model, which may differ from the plant. θ are its `joints` (those with actuators), in the
    order of the loop's encoders and drives; of a closed chain there are as many as degrees of freedom, and the other
    joints follow from the loops (`guess`, a whole q, says which way they are assembled; else the drawing does).
    `kp` (1/s²) and `kd` (1/s) are one number or one for each; the `reference` has one number for each.

    >>> import linkwright as lw
    >>> arm = lw.chain(2)
    >>> lw.control.computed_torque(arm, 100.0, 20.0, lw.control.Hold([0.3, 0.1])).kd.tolist()
    [20.0, 20.0]

    Returns a `Controller`. Raises `ModelError`, `ShapeError` or `NameNotFound` for arguments that cannot be used.
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
