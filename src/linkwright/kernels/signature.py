"""What a kernel takes and gives, and what is wrong with a call's arrays, in the same words wherever they lie."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from linkwright.base.checks import check_memory
from linkwright.errors import DtypeError, ShapeError
from linkwright.kernels.foreign import on_device
from linkwright.tape.program import Buffer, Program

Shape = tuple[int, ...]


class Port(NamedTuple):
    """An input or output: its name, its shape for one state, and how many numbers that is."""

    name: str
    shape: Shape
    size: int

    @classmethod
    def of(cls, buffer: Buffer) -> Port:
        return cls(buffer.name, tuple(buffer.shape), buffer.size)


@dataclass(frozen=True)
class Signature:
    """What a caller must know of a program: names and shapes for one state, scratch sizes, amount of work."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    single: bool
    scratch: dict[int, int]
    work: int
    data: tuple[str, ...]  # the names of the program's data, in the order of their numbers
    columns: int  # and how many columns follow these

    @classmethod
    def of(cls, program: Program, widths: Sequence[int]) -> Signature:
        from linkwright.kernels.llvm.module_text import (
            scratch_size,  # for weight: signatures from the cache need no text
        )

        for output in program.outputs:
            what = f"{program.name}: {output.name} of shape {tuple(output.shape)}"
            check_memory(what, output.size, "take a smaller mechanism")
        return cls(
            program.name,
            tuple(map(Port.of, program.inputs)),
            tuple(map(Port.of, program.outputs)),
            program.returns_one,
            {w: scratch_size(program, w) for w in widths},
            sum(program.count().values()),
            tuple(b.name for b in program.buffers if b.role == "data"),
            len(program.columns),
        )

    def dumps(self) -> bytes:
        return json.dumps(self.__dict__).encode()

    @classmethod
    def loads(cls, text: bytes) -> Signature:
        raw = json.loads(text)
        for side in ("inputs", "outputs"):
            raw[side] = tuple(Port(name, tuple(shape), size) for name, shape, size in raw[side])
        raw["scratch"] = {int(w): n for w, n in raw["scratch"].items()}
        raw["data"] = tuple(map(str, raw["data"]))
        return cls(**raw)


def check_count(s: Signature, count: int) -> None:
    """Refuse a call with too few or too many arrays."""
    if count != len(s.inputs):
        names = ", ".join(port.name for port in s.inputs)
        raise ShapeError(
            f"{s.name} takes {len(s.inputs)} arrays ({names}); {count} were given", given=count, wanted=len(s.inputs)
        )


def wrong_shape(program: str, name: str, actual: Shape, shape: Shape) -> ShapeError:
    wanted = f"(..., {', '.join(map(str, shape))})" if shape else "(...)"
    return ShapeError(f"{program}: {name} has shape {actual}; needed is {wanted}", given=actual, wanted=shape)


def wrong_dtype(program: str, name: str, actual: Any, wanted: str = "float64") -> DtypeError:
    return DtypeError(f"{program}: {name} has dtype {actual}; needed is {wanted}", given=actual, wanted=wanted)


def common_lead(s: Signature, shapes: Sequence[Shape], leads: Sequence[Shape]) -> Shape:
    """The batch shape that those of the inputs broadcast to."""
    try:
        return np.broadcast_shapes(*leads)
    except ValueError:
        listing = ", ".join(f"{port.name} {shape}" for shape, port in zip(shapes, s.inputs, strict=True))
        raise ShapeError(
            f"{s.name}: the batch shapes of its inputs do not fit together: {listing}", given=tuple(leads)
        ) from None


def output_arrays(s: Signature, out: Any) -> list[Any]:
    """The arrays given as `out`, as many as there are outputs."""
    targets = [out] if s.single else list(out) if isinstance(out, (tuple, list)) else [out]
    if len(targets) != len(s.outputs):
        names = ", ".join(port.name for port in s.outputs)
        raise ShapeError(
            f"{s.name}: out needs {len(s.outputs)} arrays ({names}); {len(targets)} were given",
            given=len(targets),
            wanted=len(s.outputs),
        )
    return targets


def wrong_out(s: Signature, port: Port, array: Any, wanted: str = "float64", gpu: int | None = None) -> DtypeError:
    """`gpu` is where the array must be, None for main memory."""
    what = str(getattr(array, "dtype", type(array).__name__))
    if on_device(array) or gpu is not None:
        what += " on a GPU" if on_device(array) else " in main memory"
    where = "" if gpu is None else f" on GPU {gpu}"
    return DtypeError(
        f"{s.name}: out ({port.name}) must be a {wanted} array{where}, not {what}", given=what, wanted=wanted
    )


def check_out(s: Signature, port: Port, shape: Shape, lead: Shape, *, writable: bool) -> None:
    """Refuse an `out` of another shape than the result's, or one that must not be written to."""
    if shape != lead + port.shape:
        raise ShapeError(
            f"{s.name}: out ({port.name}) has shape {shape}; needed is {lead + port.shape}",
            given=shape,
            wanted=lead + port.shape,
        )
    if not writable:
        raise ShapeError(f"{s.name}: out ({port.name}) is read-only; give a writable array")
