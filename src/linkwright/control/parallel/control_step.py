"""`ControlStep`: the whole control step of a hexapod as one call, in several forms that give the same torques."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import positive_number, takes_settings
from linkwright.base.arrays import Floats
from linkwright.control.loop.controller_base import gains
from linkwright.control.parallel.hexapod import LEGS, Hexapod, LinkInertia
from linkwright.control.parallel.leg_kinematics import SingularPose, Unreachable, check_reach, leg_motion, legs_at
from linkwright.control.parallel.step_programs_c import (
    GAINS,
    KNOWN,
    POSE,
    REFERENCE,
    REPORT,
    STATE,
    TORQUES,
    TWIST,
    Flag,
    Parts,
    c_file,
)
from linkwright.errors import ModelError, ShapeError
from linkwright.kernels.back_ends import compiled
from linkwright.kernels.bound_kernel import bound
from linkwright.kernels.thread_crew import Crew
from linkwright.kernels.variant import threads
from linkwright.spatial.rotation import exponential
from linkwright.tape.program import Program

Form = Literal["serial", "threads", "simd", "pipelined"]
Run = Callable[[Any, Any, Floats, Any, Floats], tuple[Floats, Floats, Floats]]


class StepError(ModelError):
    """A control step whose torques are of no use; carries its `report`. The step before still counts."""

    def __init__(self, message: str, *, report: Report) -> None:
        super().__init__(message)
        self.report = report


class Report(NamedTuple):
    """What a step reports besides torques."""

    flags: Flag
    iterations: int  # corrections of the forward kinematics
    residual: float  # of the rods' lengths (m)
    evenness: float  # of S with turns measured at the plate's radius: about 1/condition
    reach: Floats  # (6): how far the wrist points may go before crank and rod are in line (m)
    reference_reach: Floats  # (6): the same at the reference's pose; negative: out of reach
    wrist: Floats  # (6): the cosines of the wrists' middle angles; 0 is singular

    @classmethod
    def of(cls, numbers: Floats) -> Report:
        legs = numbers[4:].reshape(3, LEGS)
        flags, iterations, residual, evenness = numbers[:4].tolist()
        return cls(Flag(int(flags)), int(iterations), residual, evenness, *legs)


@dataclass(frozen=True, kw_only=True)
class StepSettings:
    """Settings of a `ControlStep` beyond its main arguments.

    - `rates`: "measured", the rates of the motors are inputs; or "difference", the plate's twist is the change of its
      pose since the step before. The first step, and one after a step without a pose, then takes the last twist that
      is known: that of `reset`.
    - `hold`: whether a step that fails gives the torques of the step before instead of an error; False.
    - `form`: how the legs are computed; "simd".
      - "serial": leg after leg.
      - "simd": the six legs in the lanes of vector registers.
      - "threads": the legs on threads that wait spinning, which does not pay here; `close()` gives the cores back.
      - "pipelined": as in the paper's figure 4, torques are those at the pose predicted one period ahead from the
        sample before, while the forward kinematics of this sample runs beside them for the next. A step then takes as
        long as the longer of the two; what is measured acts one period later, and in between the plate is taken to
        accelerate as commanded (an error of the acceleration δ is an error of δ T²/2 in place and δ T in speed).
    - `threads`: how many threads "threads" (1 to 6) and "pipelined" (1 or 2) use; one per core unless given.

    >>> import linkwright as lw
    >>> lw.control.StepSettings(form="serial").hold
    False

    Another form, way to rates or number of threads raises `ModelError`.
    """

    FORMS: ClassVar[tuple[Form, ...]] = get_args(Form)

    rates: Literal["measured", "difference"] = "measured"
    hold: bool = False
    form: Form = "simd"
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.form not in self.FORMS:
            raise ModelError(f"form is {self.form!r}; it can be {', '.join(map(repr, self.FORMS))}")
        if self.rates not in ("measured", "difference"):
            raise ModelError(f"rates is {self.rates!r}; it can be 'measured' or 'difference'")
        if not 1 <= self.team <= LEGS:
            raise ModelError(f"threads is {self.threads!r}; give 1 to {LEGS}")

    @property
    def team(self) -> int:
        """The number of threads."""
        return min(threads(), LEGS if self.form == "threads" else 2) if self.threads is None else self.threads


class ControlStep:
    """Torques of the six motors (N m) from their measured angles and a reference: section 2.3 of the paper.

    Forward kinematics from θ_A (6, rad), warm-started by the step before; resolved acceleration ẍ = ẍ_d + K_V (ẋ_d − ẋ)
    + K_P (x_d − x); per leg inverse kinematics, rates, accelerations, Newton–Euler; τ_A = S⁻ᵀ τ_G. Main arguments:

    - `geometry`: a `Hexapod`. `period`: the time between two steps (s); 2e-3.
    - `kp` (1/s²), `kv` (1/s): one number or six, for x, y, z and turns about them; 2000.0 and 285.0.
    - `payload`: a mass (kg) at the plate's centre of mass, or a `LinkInertia` in the plate's axes; 0.0.
    - `reference`: what a step in a loop follows, an object with `at(t)`; none unless given.

    Other arguments: `settings`, a `StepSettings` (its defaults). References are x_d (x, y, z and Euler parameters, or a
    rotation vector), twist and acceleration of the plate's origin in ground's axes, as three arrays or as one of 19
    numbers.

    >>> import numpy as np, linkwright as lw
    >>> from linkwright.studies.manipulator.machine import SIX_LEG
    >>> home, zero = SIX_LEG.home, np.zeros(6)
    >>> step = lw.control.ControlStep(SIX_LEG, reference=lw.control.Pose(home[:3]))
    >>> step.reset(home)
    >>> measured = lw.control.Measured(2e-3, lw.control.legs_at(SIX_LEG, home).angles[:, 0], zero, zero, zero)
    >>> step.start(measured)
    >>> np.allclose(step.step(0, 0.0, measured), step.follow(0.0, measured, (home, zero, zero)))
    True
    >>> len(step.program().inputs), step.state_at(home, zero, zero).shape, len(step.to_c()) > 1000
    (5, (26,), True)
    >>> step.close()

    A step that fails raises `Unreachable`, `SingularPose` or `StepError`; with `StepSettings(hold=True)` it gives the
    torques of the step before instead, and `report.flags` has the reason. Torques are never NaN.
    """

    reference: Any = None

    @takes_settings(settings=StepSettings)
    def __init__(
        self,
        geometry: Hexapod,
        kp: ArrayLike = 2.00e3,
        kv: ArrayLike = 2.85e2,
        *,
        payload: float | LinkInertia = 0.0,
        period: float = 2e-3,
        reference: Any = None,
        settings: StepSettings | None = None,
    ) -> None:
        self.geometry, self.reference = geometry, reference
        self.settings = StepSettings() if settings is None else settings
        self.period = positive_number("period, the time between two steps in s,", period)
        self.gains = np.array([*gains("kp", kp, 6), *gains("kv", kv, 6), self.period])
        self.parts = Parts(geometry, _load(geometry, payload), self.settings.rates == "measured")
        self._crew: Crew | None = None
        self._run: Run | None = None
        self._numbers = np.zeros(REPORT)
        self._speed: Any = None
        self.reset()

    # -- what is known -----------------------------------------------------------------------------------
    def reset(self, pose: ArrayLike | None = None, twist: ArrayLike | None = None) -> None:
        """Begin at `pose` (7; home unless given), about 0.1 m or less from the plate, moving with `twist` (6; 0)."""
        where = self.geometry.home if pose is None else _pose(pose)
        moving = np.zeros(6) if twist is None else _twist("twist", twist)
        check_reach(self.geometry, legs_at(self.geometry, where))
        self._first = self.state_at(where, moving, np.zeros(6), known=False)
        self._state = self._first.copy()

    @staticmethod
    def state_at(pose: ArrayLike, twist: ArrayLike, acceleration: ArrayLike, *, known: bool = True) -> Floats:
        """The state (..., 26) that a step leaves, the input `previous` of the next, with no torques: the plate is at
        `pose` (..., 7), moves with `twist` (..., 6) and is commanded `acceleration` (..., 6); `known` (True): whether
        the pose was found one period ago.
        """
        moving = np.concatenate([np.asarray(x, dtype=np.float64) for x in (pose, twist, acceleration)], axis=-1)
        torques = np.zeros((*moving.shape[:-1], LEGS))
        return np.concatenate([moving, torques, np.full((*moving.shape[:-1], 1), float(known))], axis=-1)

    @property
    def pose(self) -> Floats:
        """Where the last step found the plate: x, y, z (m) and Euler parameters."""
        return self._state[POSE].copy()

    @property
    def twist(self) -> Floats:
        """How it found it moving: velocity (m/s) and angular velocity (rad/s), in ground's axes."""
        return self._state[TWIST].copy()

    @property
    def report(self) -> Report:
        """The report of the last step."""
        return Report.of(self._numbers)

    # -- steps -------------------------------------------------------------------------------------------
    def __call__(self, theta: Any, theta_rate: Any, reference: Any) -> Floats:
        """The torques (6) for measured angles (6), rates (6; None with rates="difference") and a reference."""
        if type(reference) is not np.ndarray:
            reference = joined(reference)
        if theta_rate is None:
            theta_rate = self._no_rates()
        run = self._run or self._made()
        tau, state, numbers = run(theta, theta_rate, self._state, reference, self.gains)
        self._numbers = numbers
        if numbers[0] and not self.settings.hold:
            # Before the next step a period goes by that the pose before knows nothing of.
            self._state = self._state.copy()
            self._state[KNOWN] = 0.0
            raise self._error(theta, reference)
        self._state = state
        return tau

    def start(self, measured: Any) -> None:
        """As a controller in a loop: start at the pose of the last `reset`, whatever is `measured`."""
        self._state, self._speed = self._first, None

    def follow(self, t: float, measured: Any, target: Any) -> Floats:
        """As a controller in a loop: the torques for what is `measured` and a `target`, at any time `t` (s)."""
        if target is None:
            raise ModelError("a control step follows a reference; give ControlStep(..., reference=...)")
        self._speed = target[1]
        return self(measured.q, measured.v, target)

    @property
    def desired_rates(self) -> Floats | None:
        """As a controller in a loop: the rates (6) of the motors at which the plate would move as it should."""
        return None if self._speed is None else leg_motion(self.geometry, self.pose, self._speed, None)[1][:, 0]

    def step(self, k: int, t: float, measured: Any) -> Floats:
        """As a controller in a loop: the torques for what is `measured` at sample `k`, `t` (s), by `reference`."""
        return self.follow(t, measured, None if self.reference is None else self.reference.at(t))

    @property
    def signals(self) -> Mapping[str, Any]:
        """As a controller in a loop: what a record of the run should have."""
        return {"plate.pose": self.pose, "plate.twist": self.twist, "flags": float(self._numbers[0])}

    def close(self) -> None:
        """Give the cores of the waiting threads back; the next step takes them anew."""
        if self._crew is not None:
            self._crew.close()

    # -- programs ----------------------------------------------------------------------------------------
    def program(self) -> Program:
        """The whole step as a program (see `step_program`); for "threads" and "pipelined" the serial one."""
        return self.parts.whole("lanes" if self.settings.form == "simd" else "serial")

    def to_c(self, name: str = "control_step") -> str:
        """The step as C99, a function `name`: needs the mathematics library alone, fixed memory, bounded loops."""
        return c_file(self.parts.whole("serial"), name, self.geometry, self.gains)

    def _made(self) -> Run:
        make = {"threads": self._shared_out, "pipelined": self._pipelined}.get(self.settings.form, self.program)
        self._run = make()
        return self._run

    def _shared_out(self) -> Run:
        """Before the legs, the legs on their threads, after the legs."""
        team = self.settings.team
        crew = self._crew = Crew(team)
        edges = [LEGS * k // team for k in range(team + 1)]
        counts = [b - a for a, b in pairwise(edges)]
        before, after = self.parts.before(), self.parts.after(counts)
        inputs = [np.zeros(b.shape) for b in before.inputs]
        middle = {b.name: np.zeros(b.shape) for b in before.outputs}
        shares = [np.zeros((after.inputs[-1].shape[0], n)) for n in counts]
        outputs = [np.zeros(b.shape) for b in after.outputs]
        legs = [
            (self.parts.some_legs(first, n), [middle["common"]], [share])
            for first, n, share in zip(edges, counts, shares, strict=False)
        ]
        known = [middle[b.name] for b in after.inputs[1 : 1 + len(middle)]]
        run = crew.plan(
            legs,
            before=(before, inputs, [middle[b.name] for b in before.outputs]),
            after=(after, [inputs[2], *known, *shares], outputs),
        )

        def step(*arrays: Any) -> tuple[Floats, Floats, Floats]:
            _copy(arrays, inputs)
            run()
            tau, state, report = (x.copy() for x in outputs)
            return tau, state, report

        return step

    def _pipelined(self) -> Run:
        """The torques at the predicted pose beside the forward kinematics."""
        ahead, search = self.parts.torques_ahead("lanes"), self.parts.plate_found()
        theta, rate, state = np.zeros(LEGS), np.zeros(LEGS), np.zeros(STATE)
        reference, gains = np.zeros(REFERENCE), np.zeros(GAINS)
        tau, command, report = np.zeros(LEGS), np.zeros(12), np.zeros(REPORT)
        plate, searched = np.zeros(13), np.zeros(3)
        dynamics = (ahead, [state, reference, gains], [tau, command, report])
        kinematics = (search, [theta, rate, state, gains], [plate, searched])
        if self.settings.team > 1:
            self._crew = Crew(2)
            both: Callable[[], None] = self._crew.plan([dynamics, kinematics])
        else:
            one, two = (bound(compiled(p), inputs, outputs) for p, inputs, outputs in (dynamics, kinematics))

            def both() -> None:
                one()
                two()

        inputs = (theta, rate, state, reference, gains)

        def step(*arrays: Any) -> tuple[Floats, Floats, Floats]:
            _copy(arrays, inputs)
            both()
            numbers = report.copy()
            # Flags of the two are different ones, but for what is not finite.
            numbers[0] = float(int(report[0]) | int(searched[0]))
            numbers[1:3] = searched[1:]
            torques = (state[TORQUES] if numbers[0] else tau).copy()
            known = not int(searched[0]) & (Flag.LOST | Flag.JUMPED)
            return torques, np.concatenate([plate, command[:6], torques, [known]]), numbers

        return step

    # -- trouble -----------------------------------------------------------------------------------------
    def _no_rates(self) -> Floats:
        if self.settings.rates == "measured":
            raise ModelError("give the rates of the motors, or take StepSettings(rates='difference')")
        return np.zeros(LEGS)

    def _error(self, theta: Any, reference: Any) -> ModelError:
        """Why a step failed, and what to try."""
        report = self.report
        flags = report.flags
        wanted = np.asarray(reference, dtype=np.float64)
        bad = ", ".join(str(k + 1) for k in np.flatnonzero(~np.isfinite(np.asarray(theta, dtype=np.float64))))
        if bad:
            text = f"the measured angle of motor {bad} is not finite; check the encoders"
        elif Flag.LOST in flags:
            text = (
                f"no pose of the plate fits the measured angles (rods miss their length by {report.residual:.3g} m "
                f"after {report.iterations} corrections from the last pose); check the encoders, or reset(pose) near "
                "where the plate is"
            )
        elif Flag.JUMPED in flags:
            text = (
                "the measured angles jumped: the plate would be 0.1 m or more from where it was predicted, or a crank "
                "on the other side of its rod; check the encoders and the period, or reset(pose)"
            )
        elif not np.isfinite(wanted).all():
            text = "the reference has numbers that are not finite; check x_d and its rates"
        elif Flag.NO_TURN in flags:
            size = float(np.linalg.norm(wanted[3:7]))
            text = f"the reference's Euler parameters have the length {size:.6g}; give unit ones"
        elif Flag.UNREACHABLE in flags:
            return self._unreachable(wanted)
        elif flags & (Flag.SINGULAR | Flag.WRIST):
            return self._singular()
        else:
            text = "rates, reference or torques are not finite, or beyond 1e9; check what the step is given"
        return StepError(text, report=report)

    def _unreachable(self, wanted: Floats) -> Unreachable:
        """Which leg cannot reach the pose of a reference."""
        try:
            check_reach(self.geometry, legs_at(self.geometry, wanted[:7]))
        except Unreachable as error:
            text = f"the reference is out of reach: {error}"
            return Unreachable(text, leg=error.leg, short=error.short, index=error.index)
        reach = self.report.reference_reach
        worst = int(np.argmin(reach))
        text = f"the reference's pose is out of leg {worst + 1}'s reach; check x_d"
        return Unreachable(text, leg=worst + 1, short=-float(reach[worst]), index=())

    def _singular(self) -> SingularPose:
        """Whether the motors or a leg lose a direction."""
        report = self.report
        if Flag.SINGULAR in report.flags:
            condition = 1.0 / max(report.evenness, 1e-300)
            text = (
                f"the motors lose a direction of the plate here (condition of S about {condition:.2g}): torques "
                "would be unbounded; keep the path away from this pose"
            )
            return SingularPose(text, which="S", leg=0, condition=condition, direction=np.zeros(6))
        wrist, reach = int(np.argmin(report.wrist)), int(np.argmin(report.reach))
        folded = report.wrist[wrist] < 0.01
        leg = (wrist if folded else reach) + 1
        why = "its wrist's middle joint is at 90°" if folded else "its crank and rod are in line"
        text = f"leg {leg} is singular here: {why}; keep the path away from this pose, or turn the plate otherwise"
        size = float(report.wrist[wrist]) if folded else 1e-3
        return SingularPose(text, which="W", leg=leg, condition=1.0 / max(size, 1e-300), direction=np.zeros(6))


def joined(reference: Any) -> Floats:
    """A reference as one array (19): from x_d (7, or 6 with a rotation vector), ẋ_d (6) and ẍ_d (6)."""
    if not isinstance(reference, Sequence) or len(reference) != 3:
        text = "a reference is (x_d, its twist, its acceleration), or one array of 19 numbers"
        raise ShapeError(text, given=np.shape(reference), wanted=(REFERENCE,))
    x, xd, xdd = reference
    return np.concatenate([_pose(x), _twist("the reference's twist", xd), _twist("ẍ_d", xdd)])


def _pose(numbers: Any) -> Floats:
    pose = np.asarray(numbers, dtype=np.float64)
    if pose.shape == (6,):
        return np.concatenate([pose[:3], exponential(pose[3:])])
    if pose.shape != (7,):
        text = f"a pose has shape {pose.shape}; give x, y, z and four Euler parameters, or a rotation vector"
        raise ShapeError(text, given=pose.shape, wanted=(7,))
    size = float(np.sqrt(pose[3:] @ pose[3:]))
    if abs(size - 1.0) > 1e-6:
        raise ModelError(f"the Euler parameters of a pose have the length {size:.6g}; give unit ones")
    return pose


def _twist(name: str, numbers: Any) -> Floats:
    array = np.asarray(numbers, dtype=np.float64)
    if array.shape != (6,):
        raise ShapeError(f"{name} has shape {array.shape}; needed is (6,)", given=array.shape, wanted=(6,))
    return array


def _copy(arrays: Sequence[Any], inputs: Sequence[Floats]) -> None:
    """Copy arrays into a program's inputs."""
    for array, place in zip(arrays, inputs, strict=True):
        if np.shape(array) != place.shape:
            text = f"control_step: an array has shape {np.shape(array)}; needed is {place.shape}"
            raise ShapeError(text, given=np.shape(array), wanted=place.shape)
        place[...] = array


def _load(geometry: Hexapod, payload: float | LinkInertia) -> LinkInertia | None:
    if isinstance(payload, LinkInertia):
        return payload
    if not isinstance(payload, float | int | np.number) or not (np.isfinite(payload) and payload >= 0.0):
        raise ModelError(f"payload is {payload!r}; give a mass in kg, or an LinkInertia in the plate's axes")
    return LinkInertia(float(payload), geometry.plate_inertia.com, (0.0, 0.0, 0.0)) if payload else None
