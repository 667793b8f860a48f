"""A mechanism as the plant of a sampled loop: programs asked at every sample, a state under held forces, and the
recorded motion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.base.arguments import check_names, finite_array
from linkwright.base.arrays import Floats
from linkwright.dynamics.functions import FUNCTIONS, Request
from linkwright.errors import ModelError, ShapeError
from linkwright.kernels.bound_kernel import bound
from linkwright.kernels.kernel import Kernel
from linkwright.model.placements import coordinate_units
from linkwright.results.solution import Solution
from linkwright.results.status import Series
from linkwright.simulation.initialise import notes_of_moves
from linkwright.simulation.integrators import tableau_of
from linkwright.simulation.run_settings import refuse_immobile
from linkwright.simulation.step_control import CLOSED
from linkwright.simulation.step_programs import HeldKernels
from linkwright.tape.build import record
from linkwright.tape.program import Program

if TYPE_CHECKING:
    from linkwright.dynamics.programs import ProgramFactory
    from linkwright.mechanism import Mechanism


@dataclass(frozen=True)
class KinematicsRequest:
    """Which program of this module: its name, the frame that it is about, the free parameters."""

    name: str
    frame: str = ""
    free: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Recorded:
    """The functions of a mechanism as they are recorded: each takes the free parameters p last, where there are any."""

    factory: ProgramFactory
    free: tuple[str, ...]
    ranks_hold: bool

    def program(self, function: str, **options: Any) -> Program:
        free = self.free if FUNCTIONS[function].numbers else ()
        request = Request(function, free=free, form="unrolled", ranks_hold=self.ranks_hold, **options)
        return self.factory.program(request)

    def coordinate_rates(self) -> Callable[[Any, Any], Any]:
        """q̇ of q and v."""
        x = self.factory.tree.coordinates
        return (lambda q, v: v) if x.nq == x.nv else self.program("rate")

    def parameters(self, p: Any) -> tuple[Any, ...]:
        return (p,) if self.free else ()

    def record(self, function: Callable[..., Any], inputs: str, name: str) -> Program:
        """The program of a function of q and rates, by their letters, and of p, which it takes last."""
        x = self.factory.tree.coordinates
        sizes = [x.nq if letter == "q" else x.nv for letter in inputs] + ([len(self.free)] if self.free else [])
        return record(function, *sizes, name=name)


def _kernel(mech: Mechanism, request: KinematicsRequest, make: Callable[[Recorded], Program]) -> Kernel:
    """The kernel of a program of this module; parameters that nobody leaves free are those of the mechanism."""
    values = None if request.free else mech.programs.parametrised
    factory, free = (mech.programs, request.free) if values is None else (values.source, values.names)
    recorded = Recorded(factory, free, values is not None)
    return mech.kernels.further(replace(request, free=free), lambda: make(recorded), parametrised=values)


def frame_motion(mech: Mechanism, frame: str, free: tuple[str, ...] = ()) -> Kernel:
    """q, v, a [, p] → pose (4, 4), twist (6) and its rate (6) of a frame: of its origin, in ground's axes.

    The first three numbers of the rate are the acceleration of the origin, the others the angular acceleration.
    """

    def make(r: Recorded) -> Program:
        pose, moves = r.program("pose", frame=frame), r.coordinate_rates()
        twist = r.program("twist", frame=frame, reference="aligned").forward()
        still = r.parameters(np.zeros(len(r.free)))

        def motion(q: Any, v: Any, a: Any, p: Any = None) -> Any:
            w, rate = twist(q, v, *r.parameters(p), moves(q, v), a, *still)
            return pose(q, *r.parameters(p)), w, rate

        return r.record(motion, "qva", f"motion of {frame}")

    return _kernel(mech, KinematicsRequest("frame motion", frame, free), make)


def loop_kinematics(mech: Mechanism) -> Kernel:
    """q, v → Φ (m), G (m, nv) and the drift Ġv (m) of a closed mechanism's constraints: Φ̇ = G v, Φ̈ = G a + drift."""

    def make(r: Recorded) -> Program:
        projection, correction, moves = (
            r.program("velocity_projection"),
            r.program("position_correction"),
            r.coordinate_rates(),
        )
        nv = r.factory.tree.coordinates.nv
        rate = r.record(lambda q, v, p=None: projection(q, v, *r.parameters(p))[1], "qv", "rate")
        drift, still = rate.forward(), r.parameters(np.zeros(len(r.free)))

        def kinematics(q: Any, v: Any, p: Any = None) -> Any:
            more = r.parameters(p)
            still_rate = rate(q, np.zeros(nv), *more)
            g = np.stack([rate(q, row, *more) - still_rate for row in np.eye(nv)], axis=1)
            return correction(q, *more)[1], g, drift(q, v, *more, moves(q, v), np.zeros(nv), *still)[1]

        return r.record(kinematics, "qv", "loop kinematics")

    return _kernel(mech, KinematicsRequest("loop kinematics"), make)


def frame_kinematics(mech: Mechanism, frame: str) -> Kernel:
    """q, v → pose (4, 4), Jacobian (6, nv), twist (6) and the drift J̇v (6) of a frame, in ground's axes."""

    def make(r: Recorded) -> Program:
        pose, moves = r.program("pose", frame=frame), r.coordinate_rates()
        jacobian = r.program("jacobian", frame=frame, reference="aligned")
        twist = r.program("twist", frame=frame, reference="aligned").forward()
        still = np.zeros(r.factory.tree.coordinates.nv), *r.parameters(np.zeros(len(r.free)))

        def kinematics(q: Any, v: Any, p: Any = None) -> Any:
            more = r.parameters(p)
            w, drift = twist(q, v, *more, moves(q, v), *still)
            return pose(q, *more), jacobian(q, *more), w, drift

        return r.record(kinematics, "qv", f"kinematics of {frame}")

    return _kernel(mech, KinematicsRequest("frame kinematics", frame), make)


class Plant:
    """A mechanism's state q, v, its acceleration a and its joint forces tau, in arrays that stay where they are.

    Parameters in `free` get their values from `begin(parameters=...)`: plants that differ in them share their code.
    """

    def __init__(self, mech: Mechanism, method: str = "rk4", free: Sequence[str] = ()) -> None:
        tableau = tableau_of(method)
        refuse_immobile(mech)
        known = mech.parameters
        check_names("parameter", free, mech.parameters)
        nearest = mech.auxiliary.nearest_with_free(free)
        mech, self.nearest_notes = nearest.mechanism, nearest.notes
        self.mech, self.free = mech, tuple(free)
        self.q, self.v, self.a = np.zeros(mech.nq), np.zeros(mech.nv), np.zeros(mech.nv)
        self.tau, self.p = np.zeros(mech.nv), np.array([known[name] for name in self.free])
        self.summary = np.zeros(2)
        self.rounds = 0.0  # of projection, all together
        self._settings = np.zeros(3)
        self._next = np.zeros(mech.nq), np.zeros(mech.nv), np.zeros(mech.nv)
        self._kernels = HeldKernels(mech, tableau, self.free)
        self._more = [self.p] if self.free else []
        inputs = [self.q, self.v, self._settings, self.tau, *self._more]
        self._run = bound(self._kernels.advance, inputs, [*self._next, self.summary])

    def begin(
        self,
        q: ArrayLike | None,
        v: ArrayLike | None,
        parameters: Mapping[str, float] | None = None,
        tau: ArrayLike = 0.0,
    ) -> list[str]:
        """Put the plant at the nearest state to this one, under forces tau (nv); what a person should know of it."""
        mech, notes = self.mech, list(self.nearest_notes)
        self._set_parameters(parameters or {})
        if q is None:
            q, initial_rates = mech.initial_state()
            v = initial_rates if v is None else v
        rates = np.zeros(mech.nv) if v is None else v
        state = [finite_array("q0", q, (mech.nq,)).copy(), finite_array("v0", rates, (mech.nv,)).copy()]
        self.tau[:] = tau
        assembled = self._kernels.begin(*state, np.array(0.0), self.tau, *self._more)
        if mech.closed and not assembled[3][0] <= CLOSED and not self.free:
            assembled = self._kernels.begin(*mech.project(*state), np.array(0.0), self.tau)
        if mech.closed and not assembled[3][0] <= CLOSED:
            text = "the loops do not close from q0; give a state nearer to one that does, as mech.assemble finds it"
            raise ModelError(text)
        self.q[:], self.v[:], self.a[:] = assembled[:3]
        self.rounds = 0.0
        if not self.finite:
            raise ModelError("the acceleration at the start is no finite number; look at the forces and the masses")
        return notes + notes_of_moves((state[0], state[1]), (self.q, self.v), coordinate_units(mech.tree))

    def _set_parameters(self, parameters: Mapping[str, float]) -> None:
        known = self.mech.parameters
        for name, value in parameters.items():
            if name not in self.free:
                check_names("parameter", [name], known)
                text = f"parameter {name!r} is fixed in this plant; make it with free=({name!r}, ...)"
                raise ModelError(text, element=name)
            if not math.isfinite(value):
                raise ModelError(f"parameter {name!r} is {value}; give a finite number", element=name)
        self.p[:] = [float(parameters.get(name, known[name])) for name in self.free]

    def advance(self, t: float, length: float, steps: int) -> bool:
        """Go on from t by so many steps of equal length under `tau`; whether the state is good still.

        The state stays as it was if not; `summary` has the constraints' residual.
        """
        settings = self._settings
        settings[0], settings[1], settings[2] = t, length / steps, steps
        self._run()
        q, v, a = self._next
        residual = self.summary[0]
        if not (residual <= CLOSED and math.isfinite(q.dot(q) + v.dot(v) + a.dot(a))):
            return False
        self.rounds += self.summary[1]
        self.q[:], self.v[:], self.a[:] = q, v, a
        return True

    @property
    def finite(self) -> bool:
        """Whether the state has finite numbers only."""
        return all(bool(np.isfinite(x).all()) for x in (self.q, self.v, self.a))

    @property
    def failed(self) -> tuple[Floats, Floats, Floats]:
        """The state that was no good; numbers whose squares are none are infinite in it."""
        with np.errstate(over="ignore", invalid="ignore"):
            q, v, a = (np.where(np.isfinite(x * x), x, np.inf) for x in self._next)
        return q, v, a

    def observer(self, frame: str) -> tuple[Callable[[], None], Floats, Floats, Floats]:
        """A function that puts pose (4, 4), twist (6) and its rate (6) of a frame, in ground's axes, into arrays."""
        program = frame_motion(self.mech, frame, self.free)
        outputs = np.zeros((4, 4)), np.zeros(6), np.zeros(6)
        return program.bound([self.q, self.v, self.a, *self._more], list(outputs)), *outputs


def joint_positions(mech: Mechanism, joints: Any, what: str) -> tuple[tuple[str, ...], NDArray[np.int64], Any]:
    """Joints of one freedom by name, with the places of their coordinates in q and of their rates in v.

    None stands for all joints of one freedom that have an actuator.
    """
    if joints is None:
        actuated = mech.actuated
        single = [j for j in mech.joints if j.v_slice.stop - j.v_slice.start == 1 and not j.shares]
        names = [j.name for j in single if actuated[j.v_slice.start]]
        if not names:
            raise ModelError(f"no joint of {mech.name!r} has one freedom and an actuator; name them as {what}=(...)")
    else:
        names = [joints] if isinstance(joints, str) else [str(x) for x in joints]
        if not names:
            raise ModelError(f"{what} names no joint")
        if len(set(names)) < len(names):
            raise ModelError(f"{what}={tuple(names)} names a joint twice")
    chosen = [mech.joints[name] for name in names]
    for joint in chosen:
        if joint.v_slice.stop - joint.v_slice.start != 1:
            text = f"joint {joint.name!r} is {joint.kind}; {what} names joints of one freedom"
            raise ModelError(text, element=joint.name)
        if joint.shares:
            text = f"joint {joint.name!r} has no coordinate of its own: it follows {joint.mimics!r}"
            raise ModelError(f"{text}; name that one in {what}", element=joint.name)
    return tuple(names), np.array([j.q_slice.start for j in chosen]), np.array([j.v_slice.start for j in chosen])


class SampledRun(Solution):
    """A `Solution` with one point per sample, and what went on in the loop, one row per sample; `Loop.run` gives it.

    - `command`: what the controller asked for. `torque`: what acted on the `drives` from the sample on (with a delay of
      a fraction, what acts at the end of the period). At the last sample nothing is commanded any more: it repeats the
      one before.
    - `measured_q`, `measured_v`: what the encoders of the joints `encoders` showed. `sensors`: what the others did, by
      name. `signals`: those of the controller. `sol.a` is the acceleration that the forces before the sample cause.
    - `saturated`, `held`: how many samples had forces cut, and one that was not finite.

    >>> import linkwright as lw
    >>> arm = lw.chain(1)
    >>> sol = lw.control.Loop(arm, lw.control.pid(arm, 20.0, 2.0, 0.0, lw.control.Hold([0.0]))).run(0.01, [0.1])
    >>> sol.command.shape, sol.measured_q.shape, "joint1.torque" in sol.joined(arm, {}).series
    ((6, 1), (6, 1), True)

    All of them are in `series` and `data` too, as `motor1.command`, `motor1.torque`, `crank1.encoder`,
    `plate.acceleration.x`.
    """

    drives: tuple[str, ...]
    encoders: tuple[str, ...]
    command: Floats
    torque: Floats
    measured_q: Floats
    measured_v: Floats
    sensors: Mapping[str, Floats]
    signals: Mapping[str, Floats]
    saturated: int
    held: int

    @property
    def held_series(self) -> frozenset[str]:
        """Commands and the forces that acted: they are held from a sample until the next."""
        kinds = ("command", "torque", "force")
        return frozenset(f"{name}.{kind}" for name in self.drives for kind in kinds)

    def joined(self, mech: Any, units: Mapping[str, tuple[tuple[str, ...], str]]) -> SampledRun:
        """The same with all signals as series; `mech` is the plant, `units` has the labels and units of sensors."""
        series: dict[str, Series] = {}
        for k, name in enumerate(self.drives):
            turns = mech.joints[name].kind != "prismatic"
            unit, what = ("N m", "torque") if turns else ("N", "force")
            series[f"{name}.command"] = Series(self.command[:, k], unit)
            series[f"{name}.{what}"] = Series(self.torque[:, k], unit)
        for k, name in enumerate(self.encoders):
            unit = "rad" if mech.joints[name].kind != "prismatic" else "m"
            series[f"{name}.encoder"] = Series(self.measured_q[:, k], unit)
            series[f"{name}.encoder_rate"] = Series(self.measured_v[:, k], f"{unit}/s")
        for name, values in self.sensors.items():
            labels, unit = units[name]
            for k, label in enumerate(labels):
                series[f"{name}.{label}"] = Series(values[:, k], unit)
        for name, values in self.signals.items():
            for k in range(values.shape[1]):
                label = f"controller.{name}" if values.shape[1] == 1 else f"controller.{name}.{k}"
                series[label] = Series(values[:, k], "1")
        run = self.with_series(series)
        assert isinstance(run, SampledRun)
        return run


class SignalRows:
    """Arrays of numbers that grow a row at a time, by name; a name that is missing in a row is NaN there."""

    def __init__(self, samples: int) -> None:
        self.samples = samples
        self.arrays: dict[str, Floats] = {}

    def put(self, k: int, name: str, value: Any) -> None:
        """One row of one name."""
        try:
            row = np.asarray(value, dtype=np.float64).ravel()
        except (TypeError, ValueError):
            raise ModelError(f"signal {name!r} is {value!r}; a signal is a number or an array of numbers") from None
        array = self.arrays.get(name)
        if array is None:
            array = self.arrays[name] = np.full((self.samples, len(row)), np.nan)
        width = array.shape[1]
        if len(row) != width:
            text = f"signal {name!r} had {width} numbers and now has {len(row)}; a signal keeps its width"
            raise ShapeError(text, given=row.shape, wanted=(width,))
        array[k] = row

    def repeat(self, k: int) -> None:
        """Row k like the one before, where it has nothing yet."""
        for array in self.arrays.values():
            if k and np.isnan(array[k]).all():
                array[k] = array[k - 1]

    def first(self, n: int) -> dict[str, Floats]:
        """The first n rows of all."""
        return {name: np.array(array[:n]) for name, array in self.arrays.items()}
