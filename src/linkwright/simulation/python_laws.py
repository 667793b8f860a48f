"""Laws of joint forces and events, written in Python: recorded where that can be, and what they remember between
calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwright.base.arguments import shown
from linkwright.base.arrays import Floats
from linkwright.errors import DtypeError, LinkwrightError, RecordingError, ShapeError
from linkwright.kernels.interpret.interpreter import run
from linkwright.model.placements import coordinate_units
from linkwright.tape.build import record
from linkwright.tape.program import Program

if TYPE_CHECKING:
    from linkwright.model.tree import Tree

_DEPTH = 6  # how far from the function it is looked for
_MOST = 10_000  # containers that are looked at, and numbers of one array
_NOTHING = object()


class Memory:
    """The names, attributes and containers that a function reaches, with what is in them now.

    What is opaque (objects of this package, of compiled classes, with slots) is not looked into.
    """

    def __init__(self, function: Any) -> None:
        self._contents: dict[int, tuple[Any, dict[Any, Any]]] = {}
        self._walk(function, 0)

    def changed(self) -> str | None:
        """What has become another since then; None if nothing has."""
        return next((what for _, _, what in self._changes()), None)

    def restore(self) -> None:
        """Put back what was there."""
        for holder, before, _ in list(self._changes()):
            if isinstance(holder, CellType):
                holder.cell_contents = before["a name from outside"]
            elif isinstance(holder, list):
                holder[:] = before.values()
            elif isinstance(holder, set):
                holder.clear()
                holder.update(before)
            elif isinstance(holder, np.ndarray):
                holder[...] = before["numbers"]
            elif isinstance(holder, _Names):
                holder.names.update(before)
            else:
                names = holder if isinstance(holder, dict) else holder.__dict__
                names.clear()
                names.update(before)

    def _changes(self) -> Iterator[tuple[Any, dict[Any, Any], str]]:
        for holder, before in self._contents.values():
            now = _inside(holder)
            for key in (*before, *(k for k in now if k not in before)):
                one, other = before.get(key, _NOTHING), now.get(key, _NOTHING)
                alike = one.tobytes() == other.tobytes() if isinstance(holder, np.ndarray) else one is other
                if not alike:
                    yield holder, before, repr(key) if isinstance(key, str) else f"a {type(holder).__name__}"
                    break

    def _walk(self, thing: Any, depth: int) -> None:
        if depth > _DEPTH or len(self._contents) > _MOST or id(thing) in self._contents:
            return
        if isinstance(thing, MethodType | partial):
            for part in _parts(thing):
                self._walk(part, depth)
            return
        if isinstance(thing, FunctionType):
            self._walk_function(thing, depth)
            return
        if not _looked_into(thing):
            return
        inside = _inside(thing)
        if not isinstance(thing, tuple):
            self._contents[id(thing)] = thing, inside
        if not isinstance(thing, np.ndarray):
            for value in inside.values():
                self._walk(value, depth + 1)

    def _walk_function(self, function: FunctionType, depth: int) -> None:
        names = _Names(function)
        if (function.__module__ or "").split(".")[0] in ("linkwright", "numpy") or id(function) in self._contents:
            return
        self._contents[id(function)] = names, _inside(names)
        for thing in (*(function.__closure__ or ()), *(function.__defaults__ or ()), *_inside(names).values()):
            self._walk(thing, depth + 1)
        for thing in (function.__kwdefaults__ or {}, function.__dict__):
            self._walk(thing, depth + 1)


class _Names:
    """The global names that a function speaks of."""

    def __init__(self, function: FunctionType) -> None:
        self.names = function.__globals__
        self.used = set(_names(function.__code__))


def _names(code: Any) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if hasattr(inner, "co_names"):
            yield from _names(inner)


def _parts(thing: MethodType | partial[Any]) -> tuple[Any, ...]:
    if isinstance(thing, MethodType):
        return thing.__func__, thing.__self__
    return thing.func, *thing.args, thing.keywords


def _looked_into(thing: Any) -> bool:
    if isinstance(thing, np.ndarray):
        return thing.size <= _MOST
    if isinstance(thing, CellType | list | dict | set | tuple):
        return True
    if isinstance(thing, type | ModuleType) or (type(thing).__module__ or "").split(".")[0] == "linkwright":
        return False
    return isinstance(getattr(thing, "__dict__", None), dict)


def _inside(thing: Any) -> dict[Any, Any]:
    if isinstance(thing, np.ndarray):
        return {"numbers": thing.copy()}
    if isinstance(thing, _Names):
        return {name: thing.names[name] for name in thing.used if name in thing.names}
    if isinstance(thing, CellType):
        try:
            return {"a name from outside": thing.cell_contents}
        except ValueError:  # empty
            return {}
    if isinstance(thing, list | tuple):
        return dict(enumerate(thing))
    if isinstance(thing, set):
        return dict.fromkeys(thing)
    return dict(thing) if isinstance(thing, dict) else dict(thing.__dict__)


Function = Callable[[Any, Any, Any], Any]


class LawFailed(LinkwrightError):
    """A law that raised an error on the way."""

    def __init__(self, what: str, t: float, error: Exception) -> None:
        super().__init__(f"at t = {t:.9g} s {what} raised {type(error).__name__}: {error}")
        self.what, self.time = what, t


@dataclass(frozen=True)
class Law:
    """A function of t, q and v: recorded, or as it is with the reason why it could not be."""

    what: str
    function: Function
    program: Program | None
    shape: tuple[int, ...]
    reason: str = ""

    def __call__(self, t: float, q: Floats, v: Floats) -> Floats:
        """What the function gives, as numbers; what it raises ends the run, with its text in the status."""
        try:
            values = numbers(self.function(t, q, v))
            if values.shape != self.shape:
                raise ShapeError(
                    f"it gave shape {values.shape}, not {self.shape}", given=values.shape, wanted=self.shape
                )
            return values
        except Exception as error:
            raise LawFailed(self.what, float(t), error) from error


def numbers(values: Any) -> Floats:
    """A new array of what a law gave; text, None and complex numbers are none."""
    array = np.array(values)
    if array.dtype.kind == "O":
        return np.array([float(x) for x in array.flat]).reshape(array.shape)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"it gave {values!r}, which is no real number")
    return array.astype(np.float64)


class Sizes(NamedTuple):
    """Typical times, coordinates (nq,) and rates (nv,) of a run, in SI."""

    t: float
    q: Floats
    v: Floats

    @classmethod
    def of(cls, tree: Tree, duration: float) -> Sizes:
        """Those of a mechanism that moves for a duration (s)."""
        q, v = coordinate_units(tree)
        return cls(duration or 1.0, q, v / (duration or 1.0))


def law(
    what: str,
    function: Any,
    t: float,
    q: Floats,
    v: Floats,
    shape: tuple[int, ...],
    *,
    may: bool = True,
    sizes: Sizes | None = None,
) -> Law:
    """A law, tried at a first state as it is, then recorded, if it `may` be and does the same then.

    They are compared at states that differ by small parts of `sizes`, in SI unless given.
    One that keeps something between its calls is not: what recording puts there would be no numbers.
    """
    nq, nv = len(q), len(v)
    if isinstance(function, Program):
        _check_program(what, function, nq, nv, shape)
        return Law(what, function, function, shape)
    try:
        answer = function(float(t), q.copy(), v.copy())
    except Exception as error:
        raise LawFailed(what, float(t), error) from error
    try:
        value = numbers(answer)
    except (TypeError, ValueError):
        text = f"{what}(t, q, v) gave {shown(answer)}; it must give real numbers"
        raise DtypeError(text, given=type(answer).__name__, wanted="float64") from None
    if value.shape != shape:
        raise ShapeError(
            f"{what}(t, q, v) gave an array of shape {value.shape}; it must be {shape}", given=value.shape, wanted=shape
        )
    if not may:
        return Law(what, function, None, shape, "record=False")
    memory, began = Memory(function), False
    try:
        function(t + 0.0, q.copy(), v.copy())  # the first call may have filled what is kept for good
        _check_memory(memory)
        began = True
        program = record(lambda t, q, v: np.asarray(function(t, q, v)), (), nq, nv, name=what)  # lists are arrays too
        _check_memory(memory)
        outputs = program.outputs
        if len(outputs) != 1 or outputs[0].shape != shape:
            raise RecordingError(f"it gives shape {outputs[0].shape} when recorded")
        _compare(function, program, t, q, v, value, sizes or Sizes(1.0, np.ones(nq), np.ones(nv)))
    except Exception as error:  # whatever it is, the function itself works
        if began:
            memory.restore()
        return Law(what, function, None, shape, _reason(error))
    return Law(what, function, program, shape)


def _check_memory(memory: Memory) -> None:
    changed = memory.changed()
    if changed is not None:
        raise RecordingError(f"it keeps something of its own between its calls, in {changed}")


def _compare(function: Function, program: Program, t: float, q: Floats, v: Floats, value: Floats, sizes: Sizes) -> None:
    """What is recorded must give the same at the first state, and nearby wherever the function has a value."""
    for k, part in enumerate((0.0, 1e-3, -2e-3)):
        coordinates = q + part * sizes.q * np.cos(np.arange(len(q)))
        rates = v + part * sizes.v * np.sin(1.0 + np.arange(len(v)))
        states = t + abs(part) * sizes.t, coordinates, rates
        try:
            wanted = value if not k else numbers(function(states[0], states[1].copy(), states[2].copy()))
        except Exception:
            continue
        flat = [np.array([[states[0]]]), states[1][None, :], states[2][None, :]]
        again = run(program, flat, 1)[0].reshape(value.shape)
        rounding = 1e-12 * float(np.max(np.abs(wanted), initial=0.0))  # of the law's own size: forces may be tiny
        if not np.allclose(again, wanted, rtol=1e-9, atol=rounding, equal_nan=True):
            raise RecordingError("it gives other numbers when it is recorded: it must depend on t, q and v alone")


def _reason(error: Exception) -> str:
    text = str(error) if isinstance(error, LinkwrightError) else f"{type(error).__name__}: {error}"
    return text.split("\n")[0]


def _check_program(what: str, program: Program, nq: int, nv: int, shape: tuple[int, ...]) -> None:
    inputs = [tuple(port.shape) for port in program.inputs]
    outputs = [tuple(port.shape) for port in program.outputs]
    if inputs != [(), (nq,), (nv,)] or outputs != [shape]:
        raise ShapeError(
            f"{what} is a program of {inputs} to {outputs}; it must take t (), q ({nq},), v ({nv},) and give {shape}",
            given=inputs,
            wanted=shape,
        )
