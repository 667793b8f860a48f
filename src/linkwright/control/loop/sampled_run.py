"""`SampledRun`: the motion of a plant at its samples, with every signal that was measured, commanded and applied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.errors import ModelError, ShapeError
from linkwright.results.solution import Solution
from linkwright.results.status import Series


class SampledRun(Solution):
    """A `Solution` with one point a sample, and what went on in the loop, one row a sample.

    `command` is what the controller asked for, `torque` what acted on the drives from the sample on (with a delay of a
    fraction, what acts at the end of the period); `measured_q` and `measured_v` are what encoders showed, `sensors`
    what the others did, `signals` those of the controller. `sol.a` is the acceleration that the forces
    before the sample cause. All of them are in `series` and `data` too, as `motor1.command`, `motor1.torque`,
    `crank1.encoder`, `plate.acceleration.x`. At the last sample nothing is commanded any more: it repeats the one
    before. `saturated` and `held` count samples at which forces were cut, and at which one was not finite.
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
        """The same with all signals as series; `units` has the labels and units of sensors."""
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


class Rows:
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
