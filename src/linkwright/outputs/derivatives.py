"""Outputs with derivatives: expressions over rows of a motion, put together by the chain rule.

A row is an expression of the state alone; whoever follows a motion gives its values at all time points, and their
derivatives with respect to parameters. What stands around rows, reductions over time and functions of them, is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.errors import ModelError
from linkwright.kernels.kernel import Kernel, kernel
from linkwright.model.description import Description
from linkwright.model.expression import TIME, Expression, Name
from linkwright.outputs.output_functions import REDUCTIONS, Measure, Reduced, all_parts, names_outside, reductions
from linkwright.outputs.output_language import Output, Wanted, outputs_of
from linkwright.spatial.algebra import Array
from linkwright.tape.build import record

_NO_DERIVATIVES = "which has no derivatives here; write it as an expression of distances, angles and rates"


@dataclass(frozen=True, eq=False)
class Answer:
    """A value with its first and second derivatives along last axes; a series has time as its first axis."""

    value: Floats
    first: Floats | None = None
    second: Floats | None = None


@dataclass(frozen=True, eq=False)
class Rows:
    """values (T, r); first (T, r, k) and second (T, r, k, k) are their derivatives, where they were asked for."""

    time: Floats
    values: Floats
    first: Floats | None = None
    second: Floats | None = None


@dataclass(frozen=True, eq=False)
class Series:
    """Numbers of every time point as a function of the quantities there, of TIME and of the parameters."""

    measures: tuple[Measure, ...]
    function: Callable[[Mapping[str, Any]], Array]  # names → (r,)
    labels: tuple[str, ...]  # what the numbers are called in messages
    content: str  # of the function, as a text: equal texts are equal functions

    @property
    def twice(self) -> bool:
        """Whether an acceleration is among the measures."""
        return any(measure.derivative for measure in self.measures)

    def measured(self, function: Callable[..., Array], arguments: Sequence[Any], direction: Sequence[Any]) -> Array:
        """The values of the measures: their quantities are a function of arguments, which change in this direction."""
        if not self.twice:
            return function(*arguments)
        along = record(function, *(np.shape(x) for x in arguments)).forward()
        return self.chosen(*along(*arguments, *direction))

    def chosen(self, values: Array, rates: Array) -> Array:
        """The values of the measures from those of their quantities and of the quantities' rates of change."""
        pairs = zip(self.measures, values, rates, strict=True)
        return np.array([rate if measure.derivative else value for measure, value, rate in pairs])

    def of(self, measured: Array, parameters: Mapping[str, Any], t: Any) -> Array:
        """The numbers, where the measures have these values."""
        by_name = dict(zip((measure.name for measure in self.measures), measured, strict=True))
        return np.asarray(self.function({**parameters, "TIME": t, **by_name}))


@dataclass(frozen=True)
class OutputRequest:
    """Of which rows, reductions and parameters an output is a program, and the values of the other parameters."""

    inputs: tuple[str, ...]
    parameters: tuple[tuple[str, float], ...]


class Outputs:
    """The outputs of one question, and the rows that they need."""

    def __init__(self, d: Description, wanted: Mapping[str, Wanted]) -> None:
        self.description = d
        self.list = [output for name, one in wanted.items() for output in outputs_of(d, name, one)]
        for output in self.list:
            _refuse_without_derivative(output)
        rows = [row for output in self.list for row in self._rows_of(output.expression)]
        self.rows: list[Expression] = list(dict.fromkeys(rows)) or [TIME]
        self.row_numbers = {expression: k for k, expression in enumerate(self.rows)}

    def _rows_of(self, expression: Expression) -> Iterator[Expression]:
        """The expressions of the state alone that an expression is put together from."""
        names, reduced = self.varying(expression), reductions(expression)
        if names and not reduced:
            yield expression
            return
        yield from names
        for part in reduced:
            yield from self._rows_of(part.inner)

    def varying(self, expression: Expression) -> list[Name]:
        """The names outside all reductions that vary in time."""
        return [x for x in names_outside(expression) if x.name not in self.description.parameters]

    @property
    def labels(self) -> list[str]:
        """What the rows are called in messages."""
        return [repr(str(expression)) for expression in self.rows]

    @cached_property
    def series(self) -> Series:
        """All rows as one function of the state."""
        parts = [part for row in self.rows for part in all_parts(row) if isinstance(part, Measure)]
        measures = tuple(sorted(dict.fromkeys(parts), key=lambda measure: measure.name))
        rows = self.rows

        def function(names: Mapping[str, Any]) -> Array:
            return np.array([expression.evaluate(names) for expression in rows])

        return Series(measures, function, tuple(self.labels), repr((measures, rows)))

    def answers(self, rows: Rows, names: Sequence[str], values: Floats) -> dict[str, Answer]:
        """Every output with its derivatives, as far as the rows have them."""
        chain = _Chain(self, rows, names, values)
        return {output.name: chain.answer(output.expression) for output in self.list}

    def adjoints(self, rows: Rows, names: Sequence[str], values: Floats) -> tuple[Floats, Floats]:
        """How outputs, none of them a series, change with the rows (o, T, r), and with the parameters alone (o, k)."""
        seeds = np.zeros((len(self.list), *rows.values.shape))
        direct = np.zeros((len(self.list), len(values)))
        chain = _Chain(self, rows, names, values)
        for o, output in enumerate(self.list):
            chain.pull(output.expression, np.ones(()), seeds[o], direct[o])
        return seeds, direct


def _refuse_without_derivative(output: Output) -> None:
    output.refuse_forces(_NO_DERIVATIVES)
    for part in all_parts(output.expression):
        if isinstance(part, Reduced) and REDUCTIONS[part.kind].slopes is None:
            smooth = [name for name, reduction in REDUCTIONS.items() if reduction.slopes is not None]
            near = [name for name in smooth if part.kind.endswith(name)] or smooth
            use = " or ".join(f"{name}(...)" for name in near)
            text = f"{part.kind}(...) has no derivative by the values at the time points; use {use}"
            raise ModelError(f"the output {output.name!r}: {text}", element=output.name)


class _Chain:
    """The chain rule through expressions at given rows and values of the parameters."""

    def __init__(self, outputs: Outputs, rows: Rows, names: Sequence[str], values: Floats) -> None:
        self.outputs, self.rows, self.names, self.values = outputs, rows, tuple(names), values

    def answer(self, expression: Expression) -> Answer:
        """An expression with its derivatives, as far as the rows have them: (T, ...) where it varies in time."""
        rows = self.rows
        if expression in self.outputs.row_numbers:
            k = self.outputs.row_numbers[expression]
            return Answer(*(None if x is None else x[:, k] for x in (rows.values, rows.first, rows.second)))  # type: ignore[arg-type]
        if isinstance(expression, Reduced):
            return self._reduced(expression)
        return self._composed(expression)

    def _reduced(self, expression: Reduced) -> Answer:
        """A number of all times. The derivative of a largest value is that of the time point where it is."""
        reduction, time = REDUCTIONS[expression.kind], self.rows.time
        inner = self._over_time(self.answer(expression.inner))
        value = reduction.value(inner.value[:, None], time)[0]
        if inner.first is None:
            return Answer(value)
        slopes = reduction.by_values(inner.value, time)
        first = np.tensordot(slopes, inner.first, 1)
        if inner.second is None:
            return Answer(value, first)
        second = np.tensordot(slopes, inner.second, 1)
        if reduction.curvature is not None:
            second = second + reduction.curvature(inner.value, inner.first)
        return Answer(value, first, second)

    def _over_time(self, answer: Answer) -> Answer:
        """A number of the whole motion as one at every time point; a series as it is."""
        if np.ndim(answer.value):
            return answer
        points = len(self.rows.time)
        parts = (answer.value, answer.first, answer.second)
        return Answer(*(None if x is None else np.broadcast_to(x, (points, *np.shape(x))) for x in parts))  # type: ignore[arg-type]

    def _composed(self, expression: Expression) -> Answer:
        """A function of rows, reductions and parameters, by its own derivatives and theirs."""
        parts, z = self._inputs(expression)
        outer = self._program(expression)
        value = np.asarray(outer(z))[..., 0]
        if self.rows.first is None:
            return Answer(value)
        shape, k = value.shape, len(self.values)
        firsts = [np.broadcast_to(part.first, (*shape, k))[..., None, :] for part in parts if part.first is not None]
        dz = np.concatenate([*firsts, np.broadcast_to(np.eye(k), (*shape, k, k))], axis=-2)
        g = self._slopes(expression, z)
        first = np.einsum("...z,...zk->...k", g, dz)
        if self.rows.second is None:
            return Answer(value, first)
        second = np.swapaxes(dz, -1, -2) @ outer.hessian()(z) @ dz
        for j, part in enumerate(parts):
            assert part.second is not None
            second = second + g[..., j, None, None] * part.second
        return Answer(value, first, second)

    def pull(self, expression: Expression, bar: Floats, seeds: Floats, direct: Floats) -> None:
        """Add to the adjoints of rows (T, r) and parameters (k,) what the adjoint of an expression makes of them.

        `bar` is one number, or one at each time point.
        """
        if expression in self.outputs.row_numbers:
            seeds[:, self.outputs.row_numbers[expression]] += bar
        elif isinstance(expression, Reduced):
            inner = self._over_time(self.answer(expression.inner)).value
            slopes = REDUCTIONS[expression.kind].by_values(inner, self.rows.time)
            self.pull(expression.inner, np.sum(bar) * slopes, seeds, direct)
        else:
            g = bar[..., None] * self._slopes(expression, self._inputs(expression)[1])
            parts = self._parts(expression)
            for j, part in enumerate(parts):
                self.pull(part, g[..., j], seeds, direct)
            direct += g[..., len(parts) :].reshape(-1, len(direct)).sum(axis=0)

    def _parts(self, expression: Expression) -> list[Expression]:
        """The rows and reductions that an expression is a function of."""
        return [*self.outputs.varying(expression), *reductions(expression)]

    def _inputs(self, expression: Expression) -> tuple[list[Answer], Floats]:
        """Rows and reductions of an expression, and the inputs of its program: these and the parameters, (..., z)."""
        parts = [self.answer(part) for part in self._parts(expression)]
        return parts, np.stack(np.broadcast_arrays(*(part.value for part in parts), *self.values), axis=-1)

    def _slopes(self, expression: Expression, z: Floats) -> Floats:
        g = self._program(expression).jacobian()(z)[..., 0, :]
        # As at a root of zero: NaN leaves no slope to go by.
        return np.where(np.isfinite(g).all(axis=-1, keepdims=True), g, np.nan)

    def _program(self, expression: Expression) -> Kernel:
        """The expression as a program of its rows, its reductions and the parameters."""
        parts = self._parts(expression)
        keys = (*(str(part) for part in parts), *self.names)
        others = expression.names() - set(keys)
        fixed = {name: x for name, x in self.outputs.description.parameters.items() if name in others}

        def outer(z: Array) -> Array:
            names = {**fixed, **dict(zip(keys, z, strict=True))}
            return np.array([expression.evaluate(names) + 0.0 * z[0]])

        request = OutputRequest(keys, tuple(fixed.items()))
        return kernel(repr(expression), request, lambda: record(outer, len(keys)), recent=True)
