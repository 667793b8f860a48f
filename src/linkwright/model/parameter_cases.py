"""One mechanism at other values of its parameters, or at many: every array of its description, with the cases first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linkwright.base.arrays import Bools, Floats
from linkwright.base.locks import cached_property
from linkwright.errors import ModelError, NameNotFound, ShapeError
from linkwright.model.description import Description, with_gears
from linkwright.model.drawing import drawn_rows
from linkwright.model.elements import size_of
from linkwright.model.expression import Expression, numeric_values
from linkwright.model.gear_pairs import check_meshes, frames_at, has_gear_pairs, misfits
from linkwright.model.model_checks import (
    NOT_NEGATIVE,
    ROTATION_TOLERANCE,
    ROTATIONS,
    check_numbers,
    impossible_inertias,
    rotation_faults,
    unusable,
)


def with_parameters(d: Description, values: Mapping[str, float]) -> Description:
    """The same mechanism with other values of its parameters."""
    if not values:
        return d
    unknown = [n for n in values if n not in d.parameters]
    if unknown:
        raise NameNotFound("parameter", unknown[0], list(d.parameters))
    parameters = dict(d.parameters)
    for name, number in values.items():
        try:
            parameters[name] = float(number)
        except (TypeError, ValueError):
            text = f"parameter {name!r} is {number!r}; give it a number in SI units (angles in radians)"
            raise ModelError(text, element=name) from None
    arrays: dict[str, Any] = {}
    for (array, flat), expression in d.bindings.items():
        if array not in arrays:
            arrays[array] = np.array(getattr(d, array), dtype=np.float64, order="C")
        arrays[array].reshape(-1)[flat] = float(numeric_values(expression, parameters))
    r, p = arrays.pop("frame_r", d.frames.r), arrays.pop("frame_p", d.frames.p)
    arrays["frames"] = replace(d.frames, r=r, p=p)
    if d.start is not None:
        r, p = arrays.pop("start_r", d.start.r), arrays.pop("start_p", d.start.p)
        arrays["start"] = replace(d.start, r=r, p=p)
    arrays["mimics"] = with_gears(d.mimics, arrays.pop("gear", d.gear))
    changed = replace(d, parameters=parameters, **arrays)
    check_numbers(changed, before=d)
    if has_gear_pairs(changed):
        check_meshes(changed)
    return changed


class Cases:
    """What `with_parameters` gives for one row of values (n, k), for all rows at once."""

    def __init__(self, description: Description, names: Sequence[str], values: Floats) -> None:
        for name in names:
            if name not in description.parameters:
                raise NameNotFound("parameter", name, list(description.parameters))
        if values.ndim != 2 or values.shape[1] != len(names):
            text = f"values of {len(names)} parameters have shape {values.shape}; give ({len(names)},) for each case"
            raise ShapeError(text, given=values.shape, wanted=(len(names),))
        self.description, self.names = description, tuple(names)
        self.values = np.ascontiguousarray(values, dtype=np.float64)
        self._made: dict[str, Floats] = {}

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Cases:
        """Some of the cases."""
        return self.at(self.values[rows])

    def at(self, values: Floats) -> Cases:
        """Cases with other values (n, k) of the same parameters."""
        others = Cases(self.description, self.names, values)
        others.__dict__["_bound"] = self._bound  # a cached property: what varies is the same
        return others

    def one(self, row: int) -> Description:
        """The description of one case."""
        return with_parameters(self.description, dict(zip(self.names, self.values[row].tolist(), strict=True)))

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """Every parameter: its values (n,), or the one number that all cases share."""
        swept = {name: self.values[:, k] for k, name in enumerate(self.names)}
        return {**self.description.parameters, **swept}

    @cached_property
    def table(self) -> Floats:
        """(n, all parameters), in the description's order."""
        columns = [np.broadcast_to(numbers, (len(self),)) for numbers in self.parameters.values()]
        return np.ascontiguousarray(np.array(columns).reshape(len(columns), len(self)).T)

    @cached_property
    def _bound(self) -> Mapping[str, Mapping[int, Expression]]:
        """The entries of arrays that change from case to case."""
        bound: dict[str, dict[int, Expression]] = {}
        swept = set(self.names)
        for (array, flat), expression in self.description.bindings.items():
            if not swept.isdisjoint(expression.names()):
                bound.setdefault(array, {})[flat] = expression
        return bound

    def varies(self, array: str) -> bool:
        """Whether any entry of an array changes from case to case."""
        return array in self._bound

    def evaluated(self, expression: Expression) -> Floats:
        """(n,): an expression of parameters, in every case."""
        return np.broadcast_to(numeric_values(expression, self.parameters), (len(self),))

    def array(self, name: str) -> Floats:
        """(n, ...): an array of the description in every case; the same memory for all where nothing changes."""
        if name not in self._made:
            base = np.asarray(getattr(self.description, name), dtype=np.float64)
            every = np.broadcast_to(base, (len(self), *base.shape))
            if name in self._bound:
                every = every.copy()
                flat = every.reshape(len(self), -1)
                for k, expression in self._bound[name].items():
                    flat[:, k] = self.evaluated(expression)
            self._made[name] = every
        return self._made[name]

    def _varying(self, name: str, width: int) -> tuple[list[int], Floats]:
        """The rows of `width` numbers of an array of which any varies, and these numbers (rows, width, n)."""
        rows = sorted({k // width for k in self._bound[name]})
        declared = np.asarray(getattr(self.description, name), dtype=np.float64).reshape(-1, width)[rows]
        numbers = np.repeat(declared[:, :, None], len(self), axis=2)
        for k, expression in self._bound[name].items():
            numbers[rows.index(k // width), k % width] = self.evaluated(expression)
        return rows, numbers

    @cached_property
    def _meshing(self) -> Bools:
        """(n,): whether the gear pairs fit where the bodies are drawn, as `check_meshes` looks at them."""
        d, good = self.description, np.ones(len(self), bool)
        if not has_gear_pairs(d):
            return good
        start = None if d.start is None else (self.array("start_r"), self.array("start_p"))
        x = self.array
        r, p = drawn_rows(d, x("ri"), x("pi"), x("rj"), x("pj"), start)
        frames = frames_at(d, r, p, x)
        for _, bad, _ in misfits(d, frames, self.evaluated):
            good &= ~bad
        return good

    @cached_property
    def possible(self) -> Bools:
        """(n,): whether a case's numbers are ones that a mechanism can have, as `check_numbers` looks at them."""
        good = np.isfinite(self.values).all(axis=1)
        n = len(self)
        for name in self._bound:
            width = 9 if name in ROTATIONS else 6 if name == "inertia" else 1
            rows, x = self._varying(name, width)
            good &= ~unusable(name, x).any(axis=(0, 1))
            if name in NOT_NEGATIVE:
                good &= (x >= 0.0).all(axis=(0, 1))
            if name in ROTATIONS:
                off, left = rotation_faults(np.moveaxis(x, 1, 2).reshape(-1, 3, 3))
                good &= ((off <= ROTATION_TOLERANCE) & ~left).reshape(-1, n).all(axis=0)
            if name == "inertia":
                bad = impossible_inertias(np.moveaxis(x, 1, 2).reshape(-1, 6)).reshape(-1, n)
                changed = (x != self.description.inertia[rows][:, :, None]).any(axis=1)
                good &= ~(bad & changed).any(axis=0)
        for constraint in self.description.point_constraints:
            size = size_of(constraint)
            if size is not None and not size.names().isdisjoint(self.names):
                good &= self.evaluated(size) > 0.0
        good &= self._meshing
        if self.varies("pitch"):
            pitch, base = self.array("pitch"), np.asarray(self.description.pitch)
            good &= ((pitch != 0.0) | (base == 0.0)).all(axis=1)
        if self.varies("lower") or self.varies("upper"):
            good &= (self.array("lower") <= self.array("upper")).all(axis=1)
        return np.asarray(good)
