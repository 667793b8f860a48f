"""`MachineForces`: what shakes a machine's foundation, what its joints carry, what its motor gives, which flywheel
evens it, and whether it is statically balanced, as a report, a figure and a table. It computes none of these.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linkwright.analysis.counterweight import Against, Counterweight, counterweight
from linkwright.base.arguments import path_text
from linkwright.base.arrays import Floats
from linkwright.base.files import atomic_text
from linkwright.base.html import heading, line, table
from linkwright.base.html import shown as fragment
from linkwright.base.locks import cached_property
from linkwright.base.text_tables import aligned
from linkwright.errors import LinkwrightError, ModelError, on_one_line
from linkwright.model.units import PLAIN, Shown
from linkwright.results.solution import Solution
from linkwright.results.solution_plots import unit_text
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

    `report()` is a text, `plot()` a figure, `save(path)` writes a table, all three in the model's units;
    `counterweight(joint)` balances.

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
    def _shown(self, unit: str) -> Shown:
        """How numbers of a `unit` of SI are shown in the units of the model, with its text for people."""
        shown = self.solution.description.units.shown(unit)
        return replace(shown, text=unit_text(shown.text))

    def tables(self) -> list[tuple[str, list[tuple[str, ...]]]]:
        """Titles, and tables with their heads, in the model's units: shaking, motor, joints."""
        rows: list[tuple[str, ...]] = [("on ground", "x min", "x max", "y min", "y max", "z min", "z max", "largest")]
        newton, moment = self._shown("N"), self._shown("N m")
        for name, x, unit in (
            ("shaking force", self.shaking_force, newton),
            ("shaking moment", self.shaking_moment, moment),
            ("whole force", self.ground_force, newton),
            ("whole moment", self.ground_moment, moment),
        ):
            size = float(np.linalg.norm(x, axis=1).max())
            ends = [number(y, size, unit) for axis in x.T for y in (axis.min(), axis.max())]
            rows.append((f"{name} ({unit.text})", *ends, number(size, size, unit)))
        tables = [(f"on ground, moments about {self.about!r}", rows)]
        m = self.motor_demand
        if m is not None:
            word, angle = ("torque", "at angle") if m.unit == "N m" else ("force", "at shift")
            unit, watt = self._shown(m.unit), self._shown("W")
            power = f"largest power ({watt.text})"
            head = (f"driver's {word} ({unit.text})", "mean", "rms", "min", angle, "max", angle, power)
            size, (low, least), (high, greatest) = abs(m.peak), m.least, m.greatest
            mean, rms, lower, upper = (number(x, size, unit) for x in (m.mean, m.rms, least, greatest))
            fastest = number(float(np.abs(m.power).max()), shown=watt)
            tables.append(
                ("motor", [head, (m.driver, mean, rms, lower, self._place(low), upper, self._place(high), fastest)])
            )
        if self.joints:
            apart = "without its drive"
            heads = (f"largest force ({newton.text})", apart, f"largest moment ({moment.text})", apart)
            loads: list[tuple[str, ...]] = [("joint", *heads)]
            sizes = {
                name: [float(np.linalg.norm(x, axis=1).max()) for x in _parts(y)] for name, y in self.joints.items()
            }
            most = [max(x for one in sizes.values() for x in one[k : k + 2]) for k in (0, 0, 2, 2)]
            units = (newton, newton, moment, moment)
            for name in sizes:
                loads.append((name, *(number(*x) for x in zip(sizes[name], most, units, strict=True))))
            tables.append(("joints", loads))
        return tables

    def sentences(self) -> list[str]:
        """What is said of the flywheel and of static balance, why there is no motor, and notes."""
        lines = []
        f = self.flywheel_needed
        energy, inertia, metre = (self._shown(unit) for unit in ("J", "kg*m^2", "m"))
        if f is not None:
            rpm = f.speed * 30.0 / math.pi
            text = (
                f"flywheel: {number(f.inertia, shown=inertia)} {inertia.text} for a fluctuation of {f.fluctuation:g} "
            )
            text += f"at {rpm:.5g} rpm, of which the crank has {number(f.crank, shown=inertia)} {inertia.text}; "
            text += f"{number(f.energy, shown=energy)} {energy.text} between the slowest point at "
            lines.append(f"{text}{self._place(f.slowest)} and the fastest at {self._place(f.fastest)}")
        if self.motor_demand is None:
            lines.append(f"motor: {self.missing['motor']}")
        s = self.static
        varies = number(float(np.ptp(s.energy)), self._heavy, energy)
        text = f"static balance: the potential energy in gravity varies by {varies} {energy.text}"
        size = self.solution.description.length_scale
        moves = number(float(np.ptp(s.center, axis=0).max()), size, metre)
        held = []
        if not s.balanced:
            for name, x in s.holding.items():
                unit = self._shown(x.unit)
                held.append(f"{name!r} holds up to {number(_largest(x), shown=unit)} {unit.text} at rest")
        text += f", the centre of mass moves by {moves} {metre.text}"
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
        d, second = self.solution.description, self._shown("s")
        span = f"{second.of(float(self.time[0])):g} … {second.of(float(self.time[-1])):g} {second.text}"
        return f"forces of {on_one_line(d.name)}, t = {span}, moments about {on_one_line(self.about)}"

    def __repr__(self) -> str:
        size = float(np.linalg.norm(self.shaking_force, axis=1).max())
        name, newton = on_one_line(self.solution.description.name), self._shown("N")
        largest = f"{number(size, shown=newton)} {newton.text}"
        return f"<MachineForces of {name}: {len(self.time)} points, shaking force up to {largest}>"

    def _repr_html_(self) -> str:
        parts = [heading(self.title)]
        for _, (head, *rows) in self.tables():
            parts.append(table(head, rows, len(rows)))
        return fragment(*parts, *(line(text) for text in self.sentences()))

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """A matplotlib figure: the motor's torque over the crank's angle with its mean, the shaking force and moment,
        and the shaking force as a polar diagram.

        - `path`: a file in .png, .svg or .pdf to which the figure is written, None by default.

        Raises LinkwrightError without matplotlib.
        """
        from linkwright.analysis.machine_plots import plot  # weight: matplotlib

        return plot(self, path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `series` as a table, a row for each time, to a `path` in .csv, whole or not at all.

        Numbers are in the units of the model, the time is in seconds.
        """
        if Path(path_text("a table of forces", path)).suffix.lower() != ".csv":
            raise LinkwrightError(f"{path}: forces are written as .csv; give such a name")
        with atomic_text(path) as file:
            writer = csv.writer(file)
            series = {name: x.shown(self.solution.description.units) for name, x in self.series.items()}
            writer.writerow(["time [s]", *(f"{name} [{x.unit}]" for name, x in series.items())])
            columns = [self.time, *(x.values for x in series.values())]
            writer.writerows(zip(*(x.tolist() for x in columns), strict=True))

    @property
    def _heavy(self) -> float:
        """An energy (J) beside which rounding is small."""
        return self.static.weight * self.solution.description.length_scale

    def _place(self, x: float) -> str:
        """A place of the crank: degrees in the turn, or a length."""
        metre = self._shown("m")
        return f"{math.degrees(x):.4g}°" if self._of_angle == "rad" else f"{number(x, shown=metre)} {metre.text}"


def _parts(load: JointLoads) -> tuple[Floats, ...]:
    return load.force, load.bearing_force, load.moment, load.bearing_moment


def _largest(series: Series) -> float:
    return float(np.abs(series.values).max())


def number(x: float, size: float = math.inf, shown: Shown = PLAIN) -> str:
    """Four digits of an SI number, as it is shown; what is rounding beside a size is zero."""
    return f"{0.0 if abs(x) < 1e-9 * size < math.inf else shown.of(x):.4g}"
