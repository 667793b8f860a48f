"""What is wrong with a call's arrays, said in the same words whether they lie in memory or on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwright.errors import DtypeError, ShapeError
from linkwright.kernels.libraries import on_device
from linkwright.kernels.signature import Port, Shape, Signature


def check_count(s: Signature, given: int) -> None:
    """Refuse a call with too few or too many arrays."""
    if given != len(s.inputs):
        names = ", ".join(port.name for port in s.inputs)
        raise ShapeError(
            f"{s.name} takes {len(s.inputs)} arrays ({names}); {given} were given", given=given, wanted=len(s.inputs)
        )


def wrong_shape(program: str, name: str, given: Shape, shape: Shape) -> ShapeError:
    wanted = f"(..., {', '.join(map(str, shape))})" if shape else "(...)"
    return ShapeError(f"{program}: {name} has shape {given}; needed is {wanted}", given=given, wanted=shape)


def wrong_dtype(program: str, name: str, given: Any, wanted: str = "float64") -> DtypeError:
    return DtypeError(f"{program}: {name} has dtype {given}; needed is {wanted}", given=given, wanted=wanted)


def common_lead(s: Signature, shapes: Sequence[Shape], leads: Sequence[Shape]) -> Shape:
    """The batch shape that those of the inputs broadcast to."""
    try:
        return np.broadcast_shapes(*leads)
    except ValueError:
        told = ", ".join(f"{port.name} {shape}" for shape, port in zip(shapes, s.inputs, strict=True))
        raise ShapeError(
            f"{s.name}: the batch shapes of its inputs do not fit together: {told}", given=tuple(leads)
        ) from None


def given_outputs(s: Signature, out: Any) -> list[Any]:
    """The arrays given as `out`, as many as there are outputs."""
    given = [out] if s.single else list(out) if isinstance(out, (tuple, list)) else [out]
    if len(given) != len(s.outputs):
        names = ", ".join(port.name for port in s.outputs)
        raise ShapeError(
            f"{s.name}: out needs {len(s.outputs)} arrays ({names}); {len(given)} were given",
            given=len(given),
            wanted=len(s.outputs),
        )
    return given


def wrong_out(s: Signature, port: Port, array: Any, wanted: str = "float64", gpu: int | None = None) -> DtypeError:
    """`gpu` is where the array must be, None for main memory."""
    what = str(getattr(array, "dtype", type(array).__name__))
    if on_device(array) or gpu is not None:
        what += " on a GPU" if on_device(array) else " in main memory"
    where = "" if gpu is None else f" on GPU {gpu}"
    return DtypeError(
        f"{s.name}: out ({port.name}) must be a {wanted} array{where}, not {what}", given=what, wanted=wanted
    )


def check_out(s: Signature, port: Port, given: Shape, lead: Shape, *, writable: bool) -> None:
    """Refuse an `out` of another shape than the result's, or one that must not be written to."""
    if given != lead + port.shape:
        raise ShapeError(
            f"{s.name}: out ({port.name}) has shape {given}; needed is {lead + port.shape}",
            given=given,
            wanted=lead + port.shape,
        )
    if not writable:
        raise ShapeError(f"{s.name}: out ({port.name}) is read-only; give a writable array")
