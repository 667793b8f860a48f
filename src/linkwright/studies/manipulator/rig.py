"""The manipulator on its test rig: the plant with its faults, the controller's model of it, sensors and runs.

The plant has what the controller's model has not: rotors behind elastic gears, friction on every joint that is larger
at rest, encoders that count, torques that end, an accelerometer that is noisy. Its numbers follow from the paper where
that says something, and from what the paper saw where it does not (docs/manipulator.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from linkwright import Mechanism
from linkwright.base.arguments import positive_number
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.control import (
    AccelerationFeedback,
    Accelerometer,
    ControlStep,
    Corrected,
    Encoder,
    Hexapod,
    Hold,
    Loop,
    LoopSettings,
    PidSettings,
    Pose,
    SampledRun,
    TwoDof,
    friction,
    legs_at,
    pid,
)
from linkwright.errors import ModelError
from linkwright.studies.manipulator.machine import LEGS, MASSES, SIX_LEG, Drives, machine, state

Law = Literal["dynamic", "pid", "friction"]

MOTORS = tuple(f"motor{leg}" for leg in range(1, LEGS + 1))
CRANKS = tuple(f"crank{leg}" for leg in range(1, LEGS + 1))
SENSOR = "plate"

#: The plant's drives. At home a unit of the plate's speed upward turns each motor by 1.67 rad/m, so that the rotors
#: weigh as much as 1000 kg there, stick at 10 kN and slide at 3 kN; with them the plate rings at 16 Hz.
DRIVES = Drives(
    stiffness=80.4e3,
    damping=17.1,
    rotor_inertia=59.6,
    motor_coulomb=300.0,
    motor_static=1000.0,
    motor_viscous=100.0,
    crank_coulomb=5.0,
    crank_viscous=5.0,
    passive_coulomb=0.5,
    passive_viscous=0.2,
    friction_speed=1.8e-3,
    stribeck_speed=9.0e-3,
)
#: What 2 g upward with 70 kg on the plate, the paper's claim, asks of these motors (N m).
TORQUE_LIMIT = 3000.0
PERIOD = 2e-3
#: The paper's gains: of dynamic control (1/s², 1/s), of PID on the endplate (N/m, N s/m, N/(m s)).
DYNAMIC = (2.00e3, 2.85e2)
PID = (3.80e5, 1.75e4, 1.85e4)
#: Its friction compensation at the driven joints (N m, N m s/rad).
COMPENSATION = (60.0, 100.0)


@dataclass(frozen=True)
class Variation:
    """A plant that differs from the nominal one by factors: all masses, the gears' stiffness, all friction."""

    mass: float = 1.0
    stiffness: float = 1.0
    friction: float = 1.0

    def __post_init__(self) -> None:
        for name in ("mass", "stiffness", "friction"):
            positive_number(f"Variation.{name}, a factor,", getattr(self, name))

    @classmethod
    def drawn(cls, count: int, seed: int = 0) -> list[Variation]:
        """Plants with masses and stiffness within ± 20 % and friction within ± 50 %, evenly drawn."""
        rng = np.random.default_rng(seed)
        return [cls(*(1.0 + np.array([0.2, 0.2, 0.5]) * rng.uniform(-1.0, 1.0, 3)).tolist()) for _ in range(count)]

    def __str__(self) -> str:
        return f"mass × {self.mass:.2f}, stiffness × {self.stiffness:.2f}, friction × {self.friction:.2f}"


@dataclass(frozen=True)
class Rig:
    """A plant and its controllers; every run starts at rest at home, motors at the angles of the home pose."""

    geometry: Hexapod = SIX_LEG
    drives: Drives = DRIVES
    variation: Variation = field(default_factory=Variation)
    period: float = PERIOD
    substeps: int = 8
    delay: float = 0.1  # periods that a command takes: the step's 0.015 ms, and reading and writing
    counts: float = 2.0**20  # of an encoder, in a turn of the crank
    noise: float = 0.05  # of the accelerometer (m/s²)
    torque_limit: float = TORQUE_LIMIT
    seed: int = 0
    shared: Shared = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shared", Shared(self))

    @property
    def plant(self) -> Mechanism:
        """The machine with its drives, nominal."""
        return self.shared.plant

    @property
    def model(self) -> Mechanism:
        """The machine as the controller knows it: rigid, without rotors and friction."""
        return self.shared.model

    def varied(self, variation: Variation) -> Rig:
        """Another plant on the same rig, with the same compiled code."""
        other = replace(self, variation=variation)
        object.__setattr__(other, "shared", self.shared)
        return other

    def plain(self) -> Rig:
        """The same without what was compiled: to be sent to another process."""
        return replace(self)

    @property
    def parameters(self) -> dict[str, float]:
        """The varied plant's values of the free parameters."""
        v = self.variation
        factors = {"stiffness": v.stiffness, "damping": np.sqrt(v.stiffness * v.mass)}
        return {
            n: x * factors.get(n, v.mass if n.endswith("_mass") else v.friction) for n, x in self.shared.free.items()
        }

    def _weights(self, pose: Floats) -> Floats:
        """The torques (6) that hold the plant's masses at a pose."""
        nominal = self.model.inverse_dynamics(*state(self.model, self.geometry, pose))
        return np.asarray(nominal[self.model.actuated]) * self.variation.mass

    @cached_property
    def start(self) -> tuple[Floats, Floats, Floats]:
        """q, v and the holding torques with the motors at home's angles: the plate hangs a little lower."""
        g, stiffness = self.geometry, self.parameters["stiffness"]
        wanted, pose = legs_at(g, g.home).angles[:, 0], g.home.copy()
        for _ in range(20):
            hold = self._weights(pose)
            lead = legs_at(g, pose).angles[:, 0] + hold / stiffness - wanted
            above = pose + 1e-6 * np.eye(7)[2]
            slope = (legs_at(g, above).angles[:, 0] - legs_at(g, pose).angles[:, 0]) / 1e-6
            pose[2] -= np.mean(lead) / np.mean(slope)
        q, v, _ = state(self.plant, g, pose, torques=hold * self.drives.stiffness / stiffness)
        return q, v, hold

    def hold(self) -> Pose:
        """A reference that stays at home."""
        return Pose(Hold(self.geometry.home[:3]), np.zeros(3))

    def controller(self, law: Law, reference: Any) -> Any:
        """Dynamic control, dynamic control with friction compensation, or PID of the endplate, with the paper's gains.

        Dynamic control is the compiled step; it begins at home.
        """
        if law == "pid":
            settings = PidSettings(joints=CRANKS)
            return pid(self.model, *PID, reference, space="task", frame="plate", settings=settings)
        if law not in ("dynamic", "friction"):
            raise ModelError(f"law is {law!r}; it can be 'dynamic', 'friction' or 'pid'")
        step = self.shared.step
        step.reference = reference
        return step if law == "dynamic" else step + friction(*COMPENSATION, joints=MOTORS, velocity_scale=0.02)

    def run(
        self,
        reference: Any,
        t_end: float,
        *,
        law: Law = "dynamic",
        compensators: Mapping[int, TwoDof] | None = None,
        excitation: Mapping[int, Floats] | None = None,
        washout: float = 1.0,
        seed: int = 0,
    ) -> SampledRun:
        """Follow a reference from rest at home; with compensators, under acceleration feedback of those axes."""
        controller = self.controller(law, reference)
        if compensators or excitation:
            axes = {axis: two.compensator() for axis, two in (compensators or {}).items()}
            outer = AccelerationFeedback(axes, sensor=SENSOR, washout=washout, excitation=excitation)
            controller = Corrected(controller, outer)
        loop = self.shared.loop
        loop.controller, loop.settings = controller, replace(loop.settings, seed=self.seed + seed)
        q, v, hold = self.start
        return loop.run(t_end, q, v, tau0=hold, parameters=self.parameters)


class Shared:
    """What variations of a rig have in common: mechanisms and compiled code, each made when it is first used."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig

    @cached_property
    def plant(self) -> Mechanism:
        """The machine with its drives, nominal."""
        return machine(self.rig.geometry, drives=self.rig.drives)

    @cached_property
    def model(self) -> Mechanism:
        """The machine as the controller knows it."""
        return machine(self.rig.geometry)

    @cached_property
    def free(self) -> dict[str, float]:
        """The parameters that variations change, with their nominal values."""
        names = [f"{link}_mass" for link in MASSES] + ["stiffness", "damping"]
        names += [name for name in self.plant.parameters if name.endswith(("_coulomb", "_static", "_viscous"))]
        return {name: self.plant.parameters[name] for name in names}

    @cached_property
    def step(self) -> ControlStep:
        """The compiled control step."""
        return ControlStep(self.rig.geometry, *DYNAMIC, period=self.rig.period)

    @cached_property
    def loop(self) -> Loop:
        """The plant with its sensors and actuators, under whichever controller a run puts there."""
        rig = self.rig
        return Loop(
            self.plant,
            self.step,
            period=rig.period,
            delay=rig.delay,
            drives=MOTORS,
            encoders=Encoder(MOTORS, counts=rig.counts),
            sensors=[Accelerometer("plate", noise=rig.noise, name=SENSOR)],
            torque_limit=rig.torque_limit,
            settings=LoopSettings(substeps=rig.substeps, free=tuple(self.free)),
        )
