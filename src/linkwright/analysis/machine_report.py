"""`MachineForces`: what shakes a machine's foundation, what its joints carry, what its motor gives, which flywheel
evens it, and whether it is statically balanced, as a report, a figure and a table. It computes none of these.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linkwright.analysis.counterweight import Against, Counterweight, counterweight
from linkwright.base.arguments import path_text
from linkwright.base.arrays import Floats
from linkwright.base.files import atomic_text
from linkwright.base.html import heading, line, shown, table
from linkwright.base.locks import cached_property
from linkwright.base.text_tables import aligned
from linkwright.errors import LinkwrightError, ModelError, on_one_line
from linkwright.results.solution import Solution
from linkwright.results.status import Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_AXES = ("x", "y", "z")


@dataclass(frozen=True, eq=False)
class JointLoads:
    """What a joint exerts, (T, 3) each, at the joint in ground's axes, on its child (of a loop joint whose child is
    ground, on its parent): `force` and `moment` with its drive, `bearing_force` and `bearing_moment` without."""

    force: Floats
    moment: Floats
    bearing_force: Floats
    bearing_moment: Floats


@dataclass(frozen=True, eq=False)
class MotorDemand:
    """What the `driver` of a joint must give: `torque` (T,) over `angle` (T,), in `unit`; of a slide, force over shift.

    `mean` and `rms` are over the time, `least` and `greatest` pairs of angle and torque. Where drivers prescribe the
    motion (`exact`) these four are those of the whole curve, not of its points alone.
    """

    driver: str
    joint: str
    unit: str
    angle: Floats
    torque: Floats
    rate: Floats
    mean: float
    rms: float
    least: tuple[float, float]
    greatest: tuple[float, float]
    exact: bool

    @property
    def peak(self) -> float:
        """The torque that is largest in size, with its sign."""
        return max(self.least[1], self.greatest[1], key=abs)

    @property
    def power(self) -> Floats:
        """(T,): torque times rate (W)."""
        return np.asarray(self.torque * self.rate)


@dataclass(frozen=True, eq=False)
class Flywheel:
    """The flywheel that lets the speed of a crank vary by no more than `fluctuation`, (ω_max − ω_min) / ω_mean.

    `inertia` (kg m²) is energy / (fluctuation · speed²): what turns with the crank needs so much in all. `crank` is
    what its body has already. `energy` (J): the largest less the smallest ∫ (mean torque − torque) dφ, at the angles
    `fastest` and `slowest` (rad). `speed` (rad/s): the crank's.
    """

    fluctuation: float
    speed: float
    energy: float
    inertia: float
    crank: float
    slowest: float
    fastest: float

    @property
    def added(self) -> float:
        """The inertia (kg m²) to add to the crank's own."""
        return max(0.0, self.inertia - self.crank)


@dataclass(frozen=True, eq=False)
class StaticBalance:
    """Gravity over the motion: `energy` (T,) is the potential energy in gravity (J), `center` (T, 3) the centre of mass
    (m), `weight` (N) that of all bodies.

    `holding`: what each driver must give at rest in these positions, by its name: the torque against gravity, springs
    and all other forces. The machine is `balanced` if none is needed, or, without drivers, if the energy is constant.
    """

    energy: Floats
    center: Floats
    weight: float
    holding: Mapping[str, Series]
    balanced: bool


@dataclass(frozen=True, eq=False)
class MachineForces:
    """What `lw.machine_forces` returns, over the times of `solution`; all vectors are in ground's axes, SI units.

    - `shaking_force`, `shaking_moment` (T, 3): what the inertia of all bodies exerts on ground, −d(momentum)/dt;
      moments are about the point `about`, a frame of ground, which is at `point` (3,).
    - `ground_force`, `ground_moment` (T, 3): all that the machine exerts on ground: shaking, weights, and forces that
      act on bodies from outside.
    - `joints`: by name, the loads of each joint with its drive and without it.
    - `static`: gravity over the motion.
    - `motor`, `flywheel`: what the crank's driver must give, and the flywheel; properties that raise ModelError where
      there is none, and say why. `motor_demand`, `flywheel_needed` are the same or None, `missing` the reasons by name.
    - `notes`: what a person should know.

    `report()` is a text, `plot()` a figure, `save(path)` writes a table, `counterweight(joint)` balances.

    >>> import tempfile, numpy as np, linkwright as lw
    >>> with lw.Builder("stirrer") as b:
    ...     arm = b.body("arm", mass=2.0, com=(0.1, 0.0, 0.0), inertia=(0.01, 0.01, 0.02))
    ...     _ = b.joint("revolute", b.ground, arm, "shaft")
    ...     _ = b.driver("joint", "shaft", 10.0 * lw.TIME, name="motor")
    >>> forces = lw.machine_forces(b.build(), times=np.linspace(0.0, 0.2 * np.pi, 9), fluctuation=0.05)
    >>> float(np.linalg.norm(forces.shaking_force, axis=1).max().round(9))  # m r ω²
    20.0
    >>> round(forces.motor.rms, 9), forces.counterweight("shaft").moment.__round__(9)
    (0.0, 0.2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     forces.save(f"{folder}/forces.csv")
    ...     figure = forces.plot(path=f"{folder}/forces.svg")
    >>> text, tables, sentences = forces.report(), forces.tables(), forces.sentences()
    """

    solution: Solution
    about: str
    point: Floats
    shaking_force: Floats
    shaking_moment: Floats
    ground_force: Floats
    ground_moment: Floats
    joints: Mapping[str, JointLoads]
    static: StaticBalance
    motor_demand: MotorDemand | None
    flywheel_needed: Flywheel | None
    missing: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def time(self) -> Floats:
        """(T,): the time points (s)."""
        return self.solution.time

    @property
    def motor(self) -> MotorDemand:
        """What the crank's driver must give."""
        if self.motor_demand is None:
            raise ModelError(self.missing["motor"], element=self.solution.description.name)
        return self.motor_demand

    @property
    def flywheel(self) -> Flywheel:
        """The flywheel for the fluctuation that was asked for."""
        if self.flywheel_needed is None:
            raise ModelError(self.missing["flywheel"], element=self.solution.description.name)
        return self.flywheel_needed

    def counterweight(self, joint: str | None = None, against: Against = "shaking") -> Counterweight:
        """The counterweight on the body that a hinge `joint` to ground turns (the crank's by default) that balances
        best `against` "shaking", by the least mean of |shaking force|², or "gravity", by the least variance of the
        potential energy. Raises ModelError for another joint, NameNotFound for an unknown one.
        """
        name = self.motor.joint if joint is None else joint
        return counterweight(self.solution, name, against, self.shaking_force, self.static.energy)

    @cached_property
    def series(self) -> dict[str, Series]:
        """Every number over time by its name: `shaking_force.x`, `ground_moment.z`, `shaft.bearing_fx`, `motor.torque`,
        `center.y`, `gravity_energy`, ….
        """
        columns: dict[str, Series] = {}

        def vector(stem: str, x: Floats, unit: str) -> None:
            columns.update({f"{stem}{axis}": Series(y, unit) for axis, y in zip(_AXES, x.T, strict=True)})

        for kind in ("shaking", "ground"):
            vector(f"{kind}_force.", getattr(self, f"{kind}_force"), "N")
            vector(f"{kind}_moment.", getattr(self, f"{kind}_moment"), "N m")
        vector("center.", self.static.center, "m")
        columns["gravity_energy"] = Series(self.static.energy, "J")
        for name, held in self.static.holding.items():
            columns[f"{name}.holding"] = held
        if self.motor_demand is not None:
            columns[f"{self.motor_demand.joint}.coordinate"] = Series(self.motor_demand.angle, self._of_angle)
            columns[f"{self.motor_demand.driver}.drive"] = Series(self.motor_demand.torque, self.motor_demand.unit)
        for name, load in self.joints.items():
            vector(f"{name}.f", load.force, "N")
            vector(f"{name}.m", load.moment, "N m")
            vector(f"{name}.bearing_f", load.bearing_force, "N")
            vector(f"{name}.bearing_m", load.bearing_moment, "N m")
        return columns

    @property
    def _of_angle(self) -> str:
        return "rad" if self.motor_demand is not None and self.motor_demand.unit == "N m" else "m"

    # -- what people read -------------------------------------------------------------------------------------
    def tables(self) -> list[tuple[str, list[tuple[str, ...]]]]:
        """Titles, and tables with their heads: shaking, motor, joints."""
        rows: list[tuple[str, ...]] = [("on ground", "x min", "x max", "y min", "y max", "z min", "z max", "largest")]
        for name, x, unit in (
            ("shaking force", self.shaking_force, "N"),
            ("shaking moment", self.shaking_moment, "N m"),
            ("whole force", self.ground_force, "N"),
            ("whole moment", self.ground_moment, "N m"),
        ):
            size = float(np.linalg.norm(x, axis=1).max())
            ends = [number(y, size) for axis in x.T for y in (axis.min(), axis.max())]
            rows.append((f"{name} ({unit})", *ends, number(size, size)))
        tables = [(f"on ground, moments about {self.about!r}", rows)]
        m = self.motor_demand
        if m is not None:
            word, angle = ("torque", "at angle") if m.unit == "N m" else ("force", "at shift")
            head = (f"driver's {word} ({m.unit})", "mean", "rms", "min", angle, "max", angle, "largest power (W)")
            size, (low, least), (high, greatest) = abs(m.peak), m.least, m.greatest
            power = number(float(np.abs(m.power).max()))
            ends = [number(least, size), self._place(low), number(greatest, size), self._place(high)]
            tables.append(("motor", [head, (m.driver, number(m.mean, size), number(m.rms, size), *ends, power)]))
        if self.joints:
            loads: list[tuple[str, ...]] = [
                ("joint", "largest force (N)", "without its drive", "largest moment (N m)", "without its drive")
            ]
            sizes = {
                name: [float(np.linalg.norm(x, axis=1).max()) for x in _parts(y)] for name, y in self.joints.items()
            }
            most = [max(sizes[name][k] for name in sizes) for k in range(4)]
            loads += [(name, *(number(x, y) for x, y in zip(sizes[name], most, strict=True))) for name in sizes]
            tables.append(("joints", loads))
        return tables

    def sentences(self) -> list[str]:
        """What is said of the flywheel and of static balance, and notes."""
        lines = []
        f = self.flywheel_needed
        if f is not None:
            rpm = f.speed * 30.0 / math.pi
            text = f"flywheel: {f.inertia:.4g} kg m² for a fluctuation of {f.fluctuation:g} at {rpm:.5g} rpm, of which "
            text += f"the crank has {f.crank:.4g} kg m²; {f.energy:.4g} J between the slowest point at "
            lines.append(f"{text}{self._place(f.slowest)} and the fastest at {self._place(f.fastest)}")
        s = self.static
        text = f"static balance: the potential energy in gravity varies by {number(np.ptp(s.energy), self._heavy)} J"
        moves = number(float(np.ptp(s.center, axis=0).max()), self.solution.description.length_scale)
        held = [
            f"{name!r} holds up to {_largest(x):.4g} {x.unit} at rest"
            for name, x in s.holding.items()
            if not s.balanced
        ]
        text += f", the centre of mass moves by {moves} m"
        ends = "balanced" if s.balanced else ", ".join(held)
        lines.append(f"{text}; {ends}" if ends else text)
        return [*lines, *self.notes]

    def report(self) -> str:
        """A text: tables of the forces on ground, the motor and the joints; flywheel and static balance; notes."""
        lines = [self.title]
        for _, rows in self.tables():
            lines += ["", *aligned(rows)]
        return "\n".join([*lines, "", *self.sentences()])

    @property
    def title(self) -> str:
        """One line: of what, over which time."""
        d, t = self.solution.description, self.time
        return f"forces of {on_one_line(d.name)}, t = {t[0]:g} … {t[-1]:g} s, moments about {on_one_line(self.about)}"

    def __repr__(self) -> str:
        size = float(np.linalg.norm(self.shaking_force, axis=1).max())
        name = on_one_line(self.solution.description.name)
        return f"<MachineForces of {name}: {len(self.time)} points, shaking force up to {size:.4g} N>"

    def _repr_html_(self) -> str:
        parts = [heading(self.title)]
        for _, (head, *rows) in self.tables():
            parts.append(table(head, rows, len(rows)))
        return shown(*parts, *(line(text) for text in self.sentences()))

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """A matplotlib figure: the motor's torque over the crank's angle with its mean, the shaking force and moment,
        and the shaking force as a polar diagram.

        - `path`: a file in .png, .svg or .pdf to which the figure is written, None by default.

        Raises LinkwrightError without matplotlib.
        """
        from linkwright.analysis.machine_plots import plot  # weight: matplotlib

        return plot(self, path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `series` as a table, a row for each time, to a `path` in .csv, whole or not at all."""
        if Path(path_text("a table of forces", path)).suffix.lower() != ".csv":
            raise LinkwrightError(f"{path}: forces are written as .csv; give such a name")
        with atomic_text(path) as file:
            writer = csv.writer(file)
            writer.writerow(["time [s]", *(f"{name} [{x.unit}]" for name, x in self.series.items())])
            columns = [self.time, *(x.values for x in self.series.values())]
            writer.writerows(zip(*(x.tolist() for x in columns), strict=True))

    @property
    def _heavy(self) -> float:
        """An energy (J) beside which rounding is small."""
        return self.static.weight * self.solution.description.length_scale

    def _place(self, x: float) -> str:
        """A place of the crank: degrees in the turn, or metres."""
        return f"{math.degrees(x):.4g}°" if self._of_angle == "rad" else f"{x:.4g} m"


def _parts(load: JointLoads) -> tuple[Floats, ...]:
    return load.force, load.bearing_force, load.moment, load.bearing_moment


def _largest(series: Series) -> float:
    return float(np.abs(series.values).max())


def number(x: float, size: float = math.inf) -> str:
    """Four digits; what is rounding beside a size is zero."""
    return f"{0.0 if abs(x) < 1e-9 * size < math.inf else x:.4g}"
