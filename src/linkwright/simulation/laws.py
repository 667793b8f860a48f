"""Laws of joint forces and events, written in Python: recorded into the compiled step where that can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.errors import LinkwrightError, RecordingError, ShapeError
from linkwright.kernels import numpy_backend
from linkwright.tape.build import record
from linkwright.tape.program import Program

Floats = NDArray[np.float64]
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
    reason: str = ""

    def __call__(self, t: float, q: Floats, v: Floats) -> Any:
        """The function's own answer; what it raises ends the run, and is told."""
        try:
            return self.function(t, q, v)
        except Exception as error:
            raise LawFailed(self.what, float(t), error) from error


def law(what: str, given: Any, t: float, q: Floats, v: Floats, shape: tuple[int, ...]) -> Law:
    """A law, tried at a first state as it is, then recorded; what is recorded must give the same there."""
    nq, nv = len(q), len(v)
    if isinstance(given, Program):
        _check_program(what, given, nq, nv, shape)
        return Law(what, given, given)
    value = np.asarray(given(float(t), q.copy(), v.copy()))
    if value.shape != shape:
        raise ShapeError(
            f"{what}(t, q, v) gave an array of shape {value.shape}; it must be {shape}", given=value.shape, wanted=shape
        )
    try:
        program = record(given, (), nq, nv, name=what)
        found = program.outputs
        if len(found) != 1 or found[0].shape != shape:
            raise RecordingError(f"it gives shape {found[0].shape} when recorded")
        flat = [np.array([[t]]), q[None, :], v[None, :]]
        again = numpy_backend.run(program, flat, 1)[0].reshape(shape)
        if not np.allclose(again, value.astype(float), rtol=1e-9, atol=1e-12, equal_nan=True):
            raise RecordingError("it gives other numbers when it is recorded: it must depend on t, q and v alone")
    except Exception as error:  # whatever it is, the function itself works
        return Law(what, given, None, _reason(error))
    return Law(what, given, program)


def _reason(error: Exception) -> str:
    text = str(error) if isinstance(error, LinkwrightError) else f"{type(error).__name__}: {error}"
    return text.split("\n")[0]


def _check_program(what: str, program: Program, nq: int, nv: int, shape: tuple[int, ...]) -> None:
    given = [tuple(port.shape) for port in program.inputs]
    made = [tuple(port.shape) for port in program.outputs]
    if given != [(), (nq,), (nv,)] or made != [shape]:
        raise ShapeError(
            f"{what} is a program of {given} to {made}; it must take t (), q ({nq},), v ({nv},) and give {shape}",
            given=given,
            wanted=shape,
        )
