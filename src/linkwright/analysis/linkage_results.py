"""What a linkage report holds of each transmission and each output, and sentences about these, in the model's units."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from linkwright.analysis.dead_centres import DeadCentre
from linkwright.base.arrays import Floats
from linkwright.model.units import Units

#: Dead centres of an output that are printed.
CENTRES = 6
#: Dead centres whose coordinates (rad or m) are no more apart are the same.
SAME = 1e-6
#: Values below this part of the stroke are printed as zero.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Transmission:
    """How well a link that carries two forces moves the link that it leads to, over a motion.

    - `link`, `driven`: their names.
    - `angles` (T,): the transmission angle (rad), from 0 to π: between the line of the force and the normal of the way
      of the point where the driven link takes it. In a four-bar it is the angle between coupler and output.
    - `worst` (rad): the transmission angle farthest from π/2 on the way, also between the time points.
    - `time` (s) and `input` (rad or m): where that is.
    """

    link: str
    driven: str
    angles: Floats
    worst: float
    time: float
    input: float

    @property
    def pressure(self) -> Floats:
        """(T,): the pressure angle (rad), from 0 to π/2: between the force and the way of its point."""
        return np.asarray(np.abs(0.5 * np.pi - self.angles))

    @property
    def worst_pressure(self) -> float:
        """The largest pressure angle (rad)."""
        return abs(0.5 * math.pi - self.worst)


@dataclass(frozen=True, eq=False)
class OutputMotion:
    """How an output moves with the input.

    - `name`: of the coordinate, "rocker.angle"; `angular`: whether it is an angle.
    - `values` (T,): the coordinate (rad or m).
    - `ratio` (T,): its rate per rate of the input; ±inf at a toggle position of the input, NaN at a singular position.
    - `centres`: its dead centres.
    - `time_ratio`: of an output with two dead centres in each turn of the input, the slower stroke by the faster one
      at a constant speed of the input (quick return); else None.
    """

    name: str
    angular: bool
    values: Floats
    ratio: Floats
    centres: tuple[DeadCentre, ...]
    time_ratio: float | None = None

    @property
    def advantage(self) -> Floats:
        """(T,): the mechanical advantage, force (torque) at the output per force (torque) at the input without losses:
        the inverse of the ratio of the rates; ±inf at a dead centre of the output."""
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / self.ratio)

    @property
    def stroke(self) -> float:
        """From the least to the greatest value (rad or m), dead centres included."""
        ends = [*self.values[np.isfinite(self.values)], *(x.output for x in self.centres)]
        return float(max(ends) - min(ends))


def different(centres: tuple[DeadCentre, ...], turn: float) -> list[DeadCentre]:
    """The dead centres, each once: those of inputs that differ by whole turns (rad; inf for none) are the same."""
    once: list[DeadCentre] = []
    for x in centres:
        gaps = [max(abs(math.remainder(a, turn)) for a in (x.input - y.input, x.output - y.output)) for y in once]
        if min(gaps, default=math.inf) > SAME:
            once.append(x)
    return once


def time_ratio(centres: tuple[DeadCentre, ...], inputs: Floats) -> float | None:
    """The slower stroke by the faster one, where the input (T,) turns fully and there are two dead centres a turn."""
    turn = 2.0 * math.pi
    once = different(centres, turn)
    if np.ptp(inputs) < turn * (1.0 - 1e-9) or len(once) != 2 or once[0].end == once[1].end:
        return None
    part = (once[1].input - once[0].input) % turn / turn
    return max(part, 1.0 - part) / min(part, 1.0 - part) if 0.0 < part < 1.0 else None


@dataclass(frozen=True)
class Wording:
    """Sentences about a motion with this input, in these units; `timed`: whether it has a time."""

    units: Units
    input: str
    angular: bool
    timed: bool

    def of_transmission(self, name: str, x: Transmission) -> str:
        """A transmission, its range, and its worst place."""
        angles = np.append(x.angles[np.isfinite(x.angles)], x.worst)
        low, high, worst = (math.degrees(y) for y in (angles.min(), angles.max(), x.worst))
        return (
            f"transmission angle of {name}: {low:.2f}° … {high:.2f}°, worst {worst:.2f}° (pressure angle "
            f"{math.degrees(x.worst_pressure):.2f}°) at {self.where(x.input, x.time)}"
        )

    def of_output(self, y: OutputMotion, *, unbounded: bool) -> Iterator[str]:
        """How far an output moves, how fast (`unbounded` if the input has toggle positions), and its dead centres."""
        finite = y.ratio[np.isfinite(y.ratio)]
        if not finite.size:
            return
        if not finite.any():
            yield f"{y.name}: stands still while {self.input} moves; no advantage: it does no work"
            return
        kind = "rad" if y.angular else "m"
        source = "rad" if self.angular else "m"
        rates = self.units.shown("1" if kind == source else f"{kind}/{source}")
        forces = self.units.shown("1" if kind == source else "1/m" if self.angular else "m")
        low, high = (rates.of(float(x)) for x in (finite.min(), finite.max()))
        unit = f" {rates.text}" if kind != source else ""
        span = "without bound at toggle positions" if unbounded else f"{low:.4g} … {high:.4g}{unit}"
        line = f"{y.name}: moves over {self.text(y.stroke, y.angular)}; rate per rate of {self.input} {span}"
        fastest = float(np.abs(finite).max())
        if fastest > 0.0 and not unbounded:
            line += f", mechanical advantage at least {forces.of(1.0 / fastest):.4g}"
            line += f" {forces.text}" if kind != source else ""
        if y.time_ratio is not None:
            line += f"; time ratio of the strokes {y.time_ratio:.4f}"
        yield line
        once = different(y.centres, 2.0 * math.pi if self.angular else math.inf)
        outputs = [0.0 if abs(x.output) < ROUNDING * y.stroke else x.output for x in once]
        ends = [
            f"{x.end} {self.text(output, y.angular)} at {self.where(x.input, x.time)}"
            for x, output in zip(once, outputs, strict=True)
        ]
        more = f"; and {len(ends) - CENTRES} more" if len(ends) > CENTRES else ""
        yield f"{y.name}: dead centres: {'; '.join(ends[:CENTRES])}{more}" if ends else f"{y.name}: no dead centre"

    def of_toggles(self, toggles: tuple[DeadCentre, ...]) -> Iterator[str]:
        """Where the input binds."""
        for x in different(toggles, 2.0 * math.pi if self.angular else math.inf)[:CENTRES]:
            yield f"toggle position of the input, a {x.end}: {self.where(x.input, x.time)}"

    def where(self, driving: float, time: float) -> str:
        """A place of the motion: the value of the input, and the time."""
        second = self.units.shown("s")
        at = f" (t = {second.of(time):.6g} {second.text})" if self.timed else ""
        return f"{self.input} = {self.text(driving, self.angular)}{at}"

    def text(self, x: float, angular: bool) -> str:
        """A coordinate: angles in degrees, lengths in the unit of the model."""
        if angular:
            return f"{math.degrees(0.0 if abs(x) < 1e-12 else x):.4f}°"
        metre = self.units.shown("m")
        return f"{metre.of(x):.6g} {metre.text}"
