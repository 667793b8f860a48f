"""Laws of joint forces and events, written in Python: recorded into the compiled step where that can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.checks import shown
from linkwright.errors import DtypeError, LinkwrightError, RecordingError, ShapeError
from linkwright.kernels.interpret.interpreter import run
from linkwright.simulation.memory import Memory
from linkwright.tape.build import record
from linkwright.tape.program import Program

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


def law(what: str, function: Any, t: float, q: Floats, v: Floats, shape: tuple[int, ...], *, may: bool = True) -> Law:
    """A law, tried at a first state as it is, then recorded, if it `may` be and does the same then.

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
        _compare(function, program, t, q, v, value)
    except Exception as error:  # whatever it is, the function itself works
        if began:
            memory.restore()
        return Law(what, function, None, shape, _reason(error))
    return Law(what, function, program, shape)


def _check_memory(memory: Memory) -> None:
    changed = memory.changed()
    if changed is not None:
        raise RecordingError(f"it keeps something of its own between its calls, in {changed}")


def _compare(function: Function, program: Program, t: float, q: Floats, v: Floats, value: Floats) -> None:
    """What is recorded must give the same at the first state, and nearby wherever the function has a value."""
    for k, part in enumerate((0.0, 1e-3, -2e-3)):
        states = t + abs(part), q + part * np.cos(np.arange(len(q))), v + part * np.sin(1.0 + np.arange(len(v)))
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
