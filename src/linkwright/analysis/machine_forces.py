"""`lw.machine_forces`: the forces of a machine over a motion, from the motion of its bodies and the reactions of its
joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.analysis.analyse import analyse, refuse_massless
from linkwright.analysis.cycle_curve import CycleCurve, time_weights
from linkwright.analysis.machine_report import Flywheel, JointLoads, MachineForces, MotorDemand, StaticBalance
from linkwright.base.arguments import first_few
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.constraints.constraint_equations import joint_frames, joint_sides
from linkwright.dynamics.joint_reactions import bearing_load, exerted, inertial_wrenches
from linkwright.errors import LinkwrightError, ModelError, NameNotFound
from linkwright.mechanism import Mechanism, mechanism_of
from linkwright.model.body_motion import place
from linkwright.model.description import GROUND, Description
from linkwright.model.elements import AppliedWrench, Driver
from linkwright.model.placements import full_inertia
from linkwright.model.quantities import drives_angle
from linkwright.model.topology import reacting_bodies
from linkwright.results.solution import Solution
from linkwright.results.status import Series
from linkwright.spatial.rotation import euler_parameters_matrix

#: By how much a turn, a speed and a torque may differ from those of a cycle at constant speed.
WHOLE = 1e-6
#: A holding torque is rounding below this part of the weight at the arm of the mechanism's size.
BALANCED = 1e-9
SMALL = 1e-3
_ABOUT_CYCLE = "a flywheel is for a whole cycle"


def machine_forces(
    mech: Mechanism | Solution | str | PathLike[str],
    *,
    crank: str | None = None,
    about: str | None = None,
    fluctuation: float | None = None,
    times: ArrayLike | None = None,
    parameters: dict[str, float] | None = None,
) -> MachineForces:
    """The forces of a machine over a motion, as a `MachineForces`: on ground and in joints, the torque of its motor,
    the flywheel that evens it, and its static balance.

    mech: a Mechanism or the path of a model file, whose motion is that of inverse dynamic analysis unless its SYSTEM
    asks for dynamic or static analysis; or a Solution.

    crank: the motor's joint, or its driver, by name; by default the only one that is driven and turns, or the only one.

    about: ground or a frame of ground, by name, about whose origin moments on ground are; by default ground.

    fluctuation: the coefficient of fluctuation (ω_max − ω_min) / ω_mean for which a flywheel is wanted; none by
    default. The motion must be a whole cycle at constant speed.

    times: the time points (s), (T,); by default those of the model's SYSTEM.

    parameters: other values of the model's parameters, by name; none by default.

    Raises ModelError for a crank or a frame that is none and for a fluctuation without a cycle, LinkwrightError without
    masses, NameNotFound for unknown names.

    >>> import numpy as np, linkwright as lw
    >>> with lw.Builder("press") as b:
    ...     shaft = b.body("shaft", mass=5.0, inertia=(0.1, 0.1, 0.1))
    ...     _ = b.joint("revolute", b.ground, shaft, "crank")
    ...     _ = b.driver("joint", "crank", 10.0 * lw.TIME, name="motor")
    ...     _ = b.joint_force("crank", lambda q: 8.0 * np.sin(q) - 20.0, name="work")
    >>> forces = lw.machine_forces(b.build(), times=np.linspace(0.0, 0.2 * np.pi, 61), fluctuation=0.1)
    >>> f"{forces.motor.mean:.6f} {forces.motor.peak:.6f} {forces.flywheel.inertia:.6f}"  # ΔE = 16 J
    '20.000000 28.000000 1.600000'
    """
    if not isinstance(mech, Solution):
        mech = mechanism_of(mech, parameters)
    driver, missing = check_request(mech.description, crank=crank, about=about, fluctuation=fluctuation)
    solution = _motion(mech, times, parameters)
    d = solution.description
    at = place(d, d.ground_name if about is None else about)
    states = _states(solution)
    load = _from_inertia(solution, at.p)
    outside = _from_outside(solution.mechanism, solution, at.p)
    weights = _weights(solution, at.p)
    reasons = {"motor": missing, "flywheel": missing}
    motor, flywheel = None, None
    if driver is not None and f"{driver.name}.{_word(d, driver)}" not in solution.series:
        reasons["motor"] = f"the torque of driver {driver.name!r} is not among the forces of this motion"
        driver = None
    notes: tuple[str, ...] = solution.status.notes if solution.status else (str(solution.status),)
    if driver is not None:
        demand = Demand(solution, driver)
        motor = demand.motor()
        if fluctuation is not None:
            flywheel = demand.flywheel(motor, float(fluctuation))
        reasons["flywheel"] = "no flywheel was asked for; give fluctuation=0.05, say"
    if fluctuation is not None and flywheel is None:
        raise ModelError(f"there is no flywheel: {reasons['motor']}", element=d.name)
    whole = load + weights + outside
    return MachineForces(
        solution,
        d.ground_name if about is None else about,
        at.p,
        load[:, :3],
        load[:, 3:],
        whole[:, :3],
        whole[:, 3:],
        _joints(solution, states),
        _static(solution),
        motor,
        flywheel,
        reasons,
        notes,
    )


def check_request(
    d: Description, *, crank: str | None = None, about: str | None = None, fluctuation: float | None = None
) -> tuple[Driver | None, str]:
    """The driver of the motor, or why there is none. What `machine_forces` refuses of a model whatever its motion is an
    error.
    """
    if fluctuation is not None:
        _check_fluctuation(fluctuation)
    at = place(d, d.ground_name if about is None else about)
    if at.body != GROUND:
        text = (
            f"{about!r} is on {d.body_names[at.body]!r}, which moves; moments on ground are about a fixed point: name "
        )
        raise ModelError(text + f"a frame of {d.ground_name!r}, or leave about out", element=about)
    driver, missing = _crank(d, crank)
    if crank is not None and driver is None:
        raise ModelError(missing, element=crank)
    if fluctuation is not None and driver is None:
        raise ModelError(f"there is no flywheel: {missing}", element=d.name)
    return driver, missing


def _check_fluctuation(fluctuation: Any) -> None:
    good = isinstance(fluctuation, int | float | np.number) and not isinstance(fluctuation, bool)
    if not good or not 0.0 < fluctuation < 2.0:
        text = f"fluctuation is {fluctuation!r}; give the coefficient (ω_max − ω_min) / ω_mean, a number above zero "
        raise ModelError(text + "such as 0.05")


def _motion(mech: Mechanism | Solution, times: ArrayLike | None, parameters: dict[str, float] | None) -> Solution:
    """The motion with its forces, of a mechanism with these parameters or of a Solution."""
    if isinstance(mech, Solution):
        if times is not None or parameters:
            raise ModelError(
                "a Solution has its times and parameters; leave times and parameters out, or give the model"
            )
        if not len(mech):
            raise ModelError(f"the motion of {mech.description.name!r} has no time points; {mech.status}")
        refuse_massless(mech.mechanism)
        if mech.series or not mech.description.drivers:
            return mech
        return analyse(mech.mechanism, times=mech.time, analysis="inverse dynamic")
    refuse_massless(mech)
    system = mech.description.system
    kind = system.analysis if system is not None and system.analysis in ("dynamic", "static") else "inverse dynamic"
    solution = analyse(mech, times=times, analysis=kind)
    if not len(solution):
        raise ModelError(f"the motion of {mech.name!r} has no time points; {solution.status}")
    return solution


# -- on ground --------------------------------------------------------------------------------------------
def _states(solution: Solution) -> Floats:
    """(T, nb, 7)."""
    return np.concatenate([solution.arrays["position"], solution.arrays["orientation"]], axis=2)


def _axes_of(solution: Solution) -> Floats:
    """(T, nb, 3, 3)."""
    return np.moveaxis(euler_parameters_matrix(np.moveaxis(solution.arrays["orientation"], -1, 0)), (0, 1), (2, 3))


def _total(solution: Solution, wrenches: Floats, point: Floats) -> Floats:
    """(T, 6): wrenches (T, nb, 6) at the bodies' origins, in ground's axes, as one at a point."""
    arm = solution.arrays["position"] - point
    moment = wrenches[..., 3:] + np.cross(arm, wrenches[..., :3])
    return np.concatenate([wrenches[..., :3].sum(axis=1), moment.sum(axis=1)], axis=1)


def _from_inertia(solution: Solution, point: Floats) -> Floats:
    """(T, 6): −d/dt of momentum and of angular momentum about a point."""
    motion = [solution.arrays[name] for name in ("acceleration", "angular_velocity", "angular_acceleration")]
    needed = inertial_wrenches(solution.description, _axes_of(solution), *motion, weightless=True)
    return -_total(solution, needed, point)


def _weights(solution: Solution, point: Floats) -> Floats:
    """(T, 6): of all bodies."""
    d = solution.description
    force = np.broadcast_to(d.mass[:, None] * d.gravity, (len(solution), d.nb, 3))
    arm = np.einsum("tbij,bj->tbi", _axes_of(solution), d.com)
    return _total(solution, np.concatenate([force, np.cross(arm, force)], axis=2), point)


def _from_outside(mech: Mechanism, solution: Solution, point: Floats) -> Floats:
    """(T, 6): of applied wrenches without a reaction, which no body gets back."""
    d = solution.description
    outside = tuple(e for e in d.elements if isinstance(e, AppliedWrench) and not e.reaction)
    if not outside:
        return np.zeros((len(solution), 6))
    alone = Mechanism(replace(d, elements=outside))
    wrenches, _ = alone.kernels.applied_forces(solution.q, solution.v, solution.time)
    on_bodies = np.zeros((len(solution), d.nb, 6))
    on_bodies[:, mech.tree.topology.body] = wrenches
    turned = np.einsum("tbij,tbkj->tbki", _axes_of(solution), on_bodies.reshape(*on_bodies.shape[:2], 2, 3))
    return _total(solution, turned.reshape(on_bodies.shape), point)


# -- in joints --------------------------------------------------------------------------------------------
def _joints(solution: Solution, states: Floats) -> dict[str, JointLoads]:
    """The loads of all joints that the motion has forces of."""
    d, loads = solution.description, {}
    for j, body in reacting_bodies(d, solution.mechanism.tree.topology):
        name = d.joint_names[j]
        if f"{name}.fx" not in solution.series:
            continue
        parts = [solution.series[f"{name}.{part}{axis}"].values for part in "fm" for axis in "xyz"]
        whole = np.stack(parts, axis=1)
        frames = joint_frames(d, states, j)
        here = frames[1] if d.child[j] == body else frames[0]
        shift = np.asarray(frames[1][1] - here[1])
        at_second = whole.copy()
        at_second[:, 3:] -= np.cross(shift, whole[:, :3])
        bearing = bearing_load(d, j, frames, at_second)
        bearing[:, 3:] += np.cross(shift, bearing[:, :3])
        loads[name] = JointLoads(whole[:, :3], whole[:, 3:], bearing[:, :3], bearing[:, 3:])
    return loads


# -- the motor --------------------------------------------------------------------------------------------
def _crank(d: Description, name: str | None) -> tuple[Driver | None, str]:
    """The driver of the motor's joint, or why there is none."""
    on_joints = [x for x in d.drivers if x.kind == "joint"]
    if name is not None:
        for driver in on_joints:
            if name in (driver.name, driver.target):
                return driver, ""
        known = [word for x in on_joints for word in (x.name, x.target)]
        if d.joint_names.find(name) is None and name not in {x.name for x in d.drivers}:
            raise NameNotFound("driven joint or driver", name, known)
        text = f"{name!r} is no driven joint; add DRIVER motor ({name}.angle = speed*TIME)"
        return None, text + (f", or name one of {first_few(known, 6)}" if known else "")
    turning = [x for x in on_joints if drives_angle(d, x)]
    chosen = turning if len(turning) == 1 else on_joints
    if len(chosen) == 1:
        return chosen[0], ""
    if not on_joints:
        return None, f"no joint of {d.name!r} is driven; add a DRIVER of the crank's angle, as in shaft.angle = 10*TIME"
    names = first_few([x.target for x in turning or on_joints], 6)
    return (
        None,
        f"several joints of {d.name!r} are driven: {names}; name the motor's, as in crank={on_joints[0].target!r}",
    )


def _word(d: Description, driver: Driver) -> str:
    return "torque" if drives_angle(d, driver) else "force"


@dataclass(frozen=True, eq=False)
class Demand:
    """What the driver of a joint must give along a motion."""

    solution: Solution
    driver: Driver

    @property
    def key(self) -> str:
        """The name of its series."""
        return f"{self.driver.name}.{_word(self.solution.description, self.driver)}"

    @property
    def prescribed(self) -> bool:
        """Whether drivers prescribe the motion, so that it can be had at any time."""
        return len(self.solution) > 1 and bool(self.solution.status) and not self.solution.mechanism.dof().left

    def coordinate(self) -> tuple[Floats, Floats]:
        """Angle and rate (T,)."""
        index = self.driver.index
        return self.solution.joint(self.driver.target)[:, index], self.solution.joint_rate(self.driver.target)[:, index]

    def at(self, times: Floats) -> Floats:
        """(T,): the torque at other times."""
        again = analyse(self.solution.mechanism, times=times, analysis="inverse dynamic")
        if not again.status or self.key not in again.series:
            raise LinkwrightError(f"the torque of driver {self.driver.name!r} cannot be followed: {again.status}")
        return np.asarray(again.series[self.key].values)

    @cached_property
    def curve(self) -> CycleCurve | None:
        """The torque over time, where drivers prescribe the motion."""
        time = self.solution.time
        return CycleCurve.of(self.at, float(time[0]), float(time[-1]), self.rounded) if self.prescribed else None

    @property
    def rounded(self) -> float:
        """A torque beside that of weights and inertia that counts as small."""
        d, rate = self.solution.description, float(np.abs(self.coordinate()[1]).max())
        mass, length = float(d.mass.sum()), d.length_scale
        weight = mass * float(np.linalg.norm(d.gravity))
        if drives_angle(d, self.driver):
            return SMALL * (mass * (length * rate) ** 2 + weight * length)
        return SMALL * (mass * rate**2 / length + weight)

    def motor(self) -> MotorDemand:
        """The torque over the angle."""
        solution, series = self.solution, self.solution.series[self.key]
        angle, rate = self.coordinate()
        torque, time = series.values, solution.time
        curve = self.curve
        if curve is not None:
            mean, rms, ends = curve.mean(), curve.rms(), curve.extremes()
        else:
            weights = time_weights(time)
            mean, rms = float(weights @ torque), float(np.sqrt(weights @ torque**2))
            low, high = int(np.argmin(torque)), int(np.argmax(torque))
            ends = (float(time[low]), float(torque[low])), (float(time[high]), float(torque[high]))
        least, greatest = ((float(np.interp(t, time, angle)), extreme) for t, extreme in ends)
        return MotorDemand(
            self.driver.name, self.driver.target, series.unit, angle, torque, rate, mean, rms, least, greatest,
            curve is not None,
        )  # fmt: skip

    def flywheel(self, motor: MotorDemand, fluctuation: float) -> Flywheel:
        """The flywheel on the driven joint."""
        d, curve, name = self.solution.description, self.curve, self.driver.target
        if motor.unit != "N m":
            raise ModelError(f"joint {name!r} slides, and a flywheel turns; name a crank", element=name)
        if curve is None:
            text = f"{_ABOUT_CYCLE} of a motion that drivers prescribe, and that of {d.name!r} is not; use inverse "
            raise ModelError(text + "dynamic analysis, with drivers of all degrees of freedom", element=name)
        angle, rate = motor.angle, motor.rate
        turns = float(angle[-1] - angle[0]) / (2.0 * np.pi)
        speed = (angle[-1] - angle[0]) / curve.duration
        if not np.all(np.abs(rate - speed) <= WHOLE * abs(speed)) or speed == 0.0:
            text = f"{_ABOUT_CYCLE} at constant speed; {name!r} turns at {rate.min():.6g} to {rate.max():.6g} rad/s: "
            raise ModelError(text + f"drive it by {name}.angle = speed*TIME", element=name)
        if round(abs(turns)) < 1 or abs(abs(turns) - round(abs(turns))) > WHOLE:
            end = self.solution.time[0] + 2.0 * np.pi / abs(speed)
            text = (
                f"{_ABOUT_CYCLE}, and {name!r} makes {abs(turns):.6g} turns; end at {end:.9g} s, or at a whole number "
            )
            raise ModelError(text + "of turns after the start", element=name)
        torque = motor.torque
        if abs(torque[-1] - torque[0]) > WHOLE * max(abs(motor.least[1]), abs(motor.greatest[1]), self.rounded):
            text = (
                f"{_ABOUT_CYCLE}, and after {round(abs(turns))} turns of {name!r} the torque is {torque[-1]:.6g} N m "
            )
            raise ModelError(f"{text}instead of {torque[0]:.6g}; end where the machine begins again", element=name)
        sign = float(np.sign(speed))
        (low, least), (high, greatest) = curve.stored_extremes()
        if sign < 0:  # the work is −torque · |speed|
            (low, least), (high, greatest) = (high, -greatest), (low, -least)
        energy = (greatest - least) * abs(float(speed))
        slowest, fastest = (float(np.interp(t, self.solution.time, angle)) for t in (high, low))
        inertia = energy / (fluctuation * float(speed) ** 2)
        return Flywheel(fluctuation, abs(float(speed)), energy, inertia, self._own_inertia(), slowest, fastest)

    def _own_inertia(self) -> float:
        """Of the body that the joint turns on ground, about the joint's axis (kg m²), with its armature."""
        d = self.solution.description
        j = d.joint_names.position("joint", self.driver.target)
        sides = [side for side in joint_sides(d, j) if side[0] != GROUND]
        if len(sides) > 1:
            return float(d.armature[j])
        body, axes, foot = sides[0]
        axis = axes[:, 2]
        arm = np.cross(axis, d.com[body] - foot)
        return float(axis @ full_inertia(d.inertia)[body] @ axis + d.mass[body] * (arm @ arm) + d.armature[j])


# -- at rest ----------------------------------------------------------------------------------------------
def _static(solution: Solution) -> StaticBalance:
    """Gravity over the motion, and what drivers hold at rest."""
    d, mech = solution.description, solution.mechanism
    weight = float(d.mass.sum() * np.linalg.norm(d.gravity))
    energy, center = mech.potential_energy(solution.q), mech.center_of_mass(solution.q)
    holding: dict[str, Series] = {}
    if d.drivers and not mech.dof().left:
        still = np.zeros((len(solution), mech.nv))
        _, multipliers = exerted(mech, solution.q, still, still, still, solution.time)
        for driver in d.drivers:
            unit = "N m" if drives_angle(d, driver) else "N"
            holding[driver.name] = Series(multipliers["driver", driver.name][:, 0], unit)
    size = BALANCED * weight * d.length_scale
    arms: Sequence[float] = [d.length_scale if x.unit == "N" else 1.0 for x in holding.values()]
    loads = [float(np.abs(x.values).max()) * arm for x, arm in zip(holding.values(), arms, strict=True)]
    balanced = bool(np.ptp(energy) <= size) or (bool(loads) and all(x <= size for x in loads))
    return StaticBalance(energy, center, weight, holding, balanced)
