"""Outputs and their derivatives: expressions of rows of a motion, put together by the chain rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.locks import cached_property
from linkwright.base.types import Floats
from linkwright.design import language
from linkwright.design.language import Reduced
from linkwright.design.quantities import Leaf, leaf
from linkwright.design.rows import Rows, Series
from linkwright.errors import ModelError
from linkwright.kernels import program_cache
from linkwright.kernels.kernel import Kernel
from linkwright.mechanism.description import Description
from linkwright.mechanism.expression import Expression
from linkwright.mechanism.quantities import titled
from linkwright.spatial.algebra import Array
from linkwright.tape.build import record

#: What an output may be.
Wanted = str | Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class Answer:
    """A value with its first and second derivatives along last axes; a series has time as its first axis."""

    value: Floats
    first: Floats | None = None
    second: Floats | None = None


@dataclass(frozen=True, eq=False)
class Output:
    """A named expression; a series is one value a time point, anything else one of the whole motion."""

    name: str
    expression: Expression
    series: bool


@dataclass(frozen=True)
class OutputRequest:
    """Of which reductions and parameters an output is a program, and the values of the other parameters."""

    inputs: tuple[str, ...]
    parameters: tuple[tuple[str, float], ...]


class Outputs:
    """The outputs of one question, and the rows that they need."""

    def __init__(self, d: Description, wanted: Mapping[str, Wanted], *, series: bool | None = None) -> None:
        self.description = d
        self.list = [output for name, one in wanted.items() for output in _outputs(d, name, one)]
        for output in self.list:
            if series is False and output.series:
                text = (
                    f"{output.name!r} is a number at every time; take one of the whole motion, as max(...) or mean(...)"
                )
                raise ModelError(text, element=output.name)
            if series is True and not output.series:
                text = f"{output.name!r} is one number of the whole motion, and not one at every time"
                raise ModelError(text, element=output.name)
        # Each row is a series, or what is reduced; those that appear twice are one.
        inner = [part.inner for output in self.list for part in language.reductions(output.expression)]
        rows = [*(output.expression for output in self.list if output.series), *inner]
        self.rows: list[Expression] = list(dict.fromkeys(rows))
        self._at = {expression: k for k, expression in enumerate(self.rows)}

    @property
    def names(self) -> list[str]:
        return [output.name for output in self.list]

    @property
    def labels(self) -> list[str]:
        """What the rows are called in messages."""
        return [repr(str(expression)) for expression in self.rows]

    @cached_property
    def series(self) -> Series:
        """All rows as one function of the state."""
        used = sorted({name for expression in self.rows for name in expression.names()} - {"TIME"})
        leaves: list[Leaf] = [leaf(self.description, n) for n in used if n not in self.description.parameters]
        rows = self.rows

        def function(names: Mapping[str, Any]) -> Array:
            return np.array([expression.evaluate(names) for expression in rows])

        return Series(len(rows), tuple(leaves), function, repr((leaves, rows)))

    def answers(self, rows: Rows, names: Sequence[str], values: Floats) -> dict[str, Answer]:
        """Every output with its derivatives, as far as the rows have them."""
        found: dict[str, Answer] = {}
        for output in self.list:
            if output.series:
                k = self._at[output.expression]
                pieces = (None if x is None else x[:, k] for x in (rows.values, rows.first, rows.second))
                found[output.name] = Answer(*pieces)  # type: ignore[arg-type]
            else:
                found[output.name] = self._number(output, rows, names, values)
        return found

    def _number(self, output: Output, rows: Rows, names: Sequence[str], values: Floats) -> Answer:
        parts = list(dict.fromkeys(language.reductions(output.expression)))
        numbers = [_reduced(part, rows, self._at[part.inner]) for part in parts]
        r = np.array([float(x.value) for x in numbers])
        outer = self._outer(output, parts, names)
        z = np.concatenate([r, values])
        value = np.asarray(outer(z))[0]
        if rows.first is None:
            return Answer(value)
        k, m = len(values), len(parts)
        dz = np.vstack([np.array([x.first for x in numbers]).reshape(m, k), np.eye(k)])
        g = outer.jacobian()(z)[0]
        if not np.isfinite(g).all():  # as at a root of nothing
            return Answer(value, np.full(k, np.nan))
        first = g @ dz
        if rows.second is None:
            return Answer(value, first)
        second = dz.T @ outer.hessian()(z) @ dz
        for slope, number in zip(g, numbers, strict=False):
            second = second + slope * number.second
        return Answer(value, first, second)

    def adjoints(self, rows: Rows, names: Sequence[str], values: Floats) -> tuple[Floats, Floats]:
        """How outputs, none of them a series, change with the rows (o, T, r), and with the parameters alone (o, k)."""
        seeds = np.zeros((len(self.list), *rows.values.shape))
        direct = np.zeros((len(self.list), len(values)))
        for o, output in enumerate(self.list):
            parts = list(dict.fromkeys(language.reductions(output.expression)))
            numbers = [float(_reduced(part, rows, self._at[part.inner]).value) for part in parts]
            g = self._outer(output, parts, names).jacobian()(np.concatenate([numbers, values]))[0]
            for slope, part in zip(g, parts, strict=False):
                k = self._at[part.inner]
                seeds[o, :, k] += slope * _weights(part.kind, rows.values[:, k], rows.time)
            direct[o] = g[len(parts) :]
        return seeds, direct

    def _outer(self, output: Output, parts: list[Reduced], names: Sequence[str]) -> Kernel:
        """The expression as a program of its reductions and the parameters."""
        keys, expression = (*(part.key for part in parts), *names), output.expression
        given = expression.names() - set(keys)
        fixed = {name: x for name, x in self.description.parameters.items() if name in given}

        def outer(z: Array) -> Array:
            known = {**fixed, **dict(zip(keys, z, strict=True))}
            return np.array([expression.evaluate(known) + 0.0 * z[0]])

        request = OutputRequest(keys, tuple(fixed.items()))
        return program_cache.kernel(repr(expression), request, lambda: record(outer, len(keys)), recent=True)


def _outputs(d: Description, name: str, wanted: Wanted) -> list[Output]:
    if callable(wanted):
        made = language.from_function(d, name, wanted)
    else:
        made = [language.from_text(d, wanted)]
    found = []
    for k, expression in enumerate(made):
        label = name if len(made) == 1 else f"{name}[{k}]"
        outside = language.varying(expression) - d.parameters.keys()
        whole = any(True for _ in language.reductions(expression))
        if whole and outside:
            text = f"{label!r} mixes {min(outside)}, which varies in time, with numbers of the whole motion"
            raise ModelError(f"{text}; put it in max(...), mean(...) or the like", element=label)
        found.append(Output(label, expression, bool(outside)))
    return found


def named(outputs: Any) -> dict[str, Wanted]:
    """Outputs by name: a text, a function, several of them, or with their names; "stroke = max(x)" names itself."""
    if isinstance(outputs, Mapping):
        return {str(name): one for name, one in outputs.items()}
    several = [outputs] if isinstance(outputs, str) or callable(outputs) else list(outputs)
    found: dict[str, Wanted] = {}
    for one in several:
        name, wanted = getattr(one, "__name__", ""), one
        if isinstance(one, str):
            name, wanted = titled(one)
        elif not callable(one):
            raise ModelError(f"an output is a text or a function, not {one!r}")
        if name in found:
            raise ModelError(f"there are two outputs {name!r}; give them names: {{'first': ..., 'second': ...}}")
        found[name] = wanted
    if not found:
        raise ModelError("no output was asked for; give a text such as 'max(block.x)', or a function")
    return found


def _reduced(part: Reduced, rows: Rows, k: int) -> Answer:
    """A number of a row of all times. The derivative of a largest value is that of the time point where it is."""
    y, t = rows.values[:, k], rows.time
    dy = None if rows.first is None else rows.first[:, k]
    ddy = None if rows.second is None else rows.second[:, k]
    if part.kind == "rms":
        return _rms(y, dy, ddy)
    weights = _weights(part.kind, y, t)
    first, second = (None if x is None else np.tensordot(weights, x, 1) for x in (dy, ddy))
    return Answer(weights @ y, first, second)


def _weights(kind: str, y: Floats, t: Floats) -> Floats:
    """How a reduction changes with each time point."""
    weights = np.zeros(len(y))
    if kind in ("max", "range"):
        weights[int(np.argmax(y))] += 1.0
    if kind in ("min", "range"):
        weights[int(np.argmin(y))] += 1.0 if kind == "min" else -1.0
    if kind == "initial":
        weights[0] = 1.0
    if kind == "final":
        weights[-1] = 1.0
    if kind == "mean":
        weights[:] = 1.0 / len(y)
    if kind == "rms":
        weights[:] = y / (len(y) * max(float(np.sqrt(np.mean(y**2))), 1e-300))
    if kind == "integral" and len(y) > 1:
        weights[:-1] += 0.5 * np.diff(t)
        weights[1:] += 0.5 * np.diff(t)
    return weights


def _rms(y: Floats, dy: Floats | None, ddy: Floats | None) -> Answer:
    value = np.sqrt(np.mean(y**2))
    if dy is None:
        return Answer(value)
    n, size = len(y), max(float(value), 1e-300)
    first = (y @ dy) / (n * size)
    if ddy is None:
        return Answer(value, first)
    if not value:  # a corner, as that of a size is
        return Answer(value, first, np.full((dy.shape[1],) * 2, np.nan))
    second = (dy.T @ dy + np.tensordot(y, ddy, 1)) / (n * size) - np.outer(first, first) / size
    return Answer(value, first, second)
