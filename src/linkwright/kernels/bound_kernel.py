"""A kernel bound to its arrays: called again and again on the same memory, without looking at it anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.base.arguments import exact_array
from linkwright.base.arrays import Floats
from linkwright.errors import ShapeError
from linkwright.kernels.variant import Port, lanes, native, wrong_dtype

if TYPE_CHECKING:
    from linkwright.kernels.kernel import Kernel


def bound(
    kernel: Kernel, inputs: Sequence[Floats], outputs: Sequence[Floats], count: int | None = None
) -> Callable[[], None]:
    """A function without arguments that computes one state, or `count` of them, from `inputs` into `outputs`.

    The arrays are held and must stay plain (float64, contiguous); change their numbers in place. For one thread. With
    `count`, an input of the port's own shape is the same for all states.
    """
    arrays, strides = checked(kernel, inputs, outputs, count)
    if not native():
        operands, out = arrays[: len(inputs)], arrays[len(inputs) :]
        return lambda: kernel(*operands, out=out if len(out) > 1 else out[0])
    if count is None:
        return kernel.variant(1).bound(arrays, strides)
    width = lanes() if count >= lanes() else 1
    variant, whole = kernel.variant(width), count // width * width
    first = variant.bound(arrays, strides, whole)
    if whole == count:
        return first
    # The last group overlaps the one before.
    ends = [array[count - width :] if stride else array for array, stride in zip(arrays, strides, strict=True)]
    last = variant.bound(ends, strides, width)

    def both() -> None:
        first()
        last()

    return both


def checked(
    kernel: Kernel, inputs: Sequence[Floats], outputs: Sequence[Floats], count: int | None = None
) -> tuple[list[Floats], list[int]]:
    """The arrays, and the numbers between two states of each: of one state, or with `count` of so many.

    With `count`, an input of the port's own shape is the same for all states.
    """
    s = kernel.signature
    ports = (*s.inputs, *s.outputs)
    arrays = [_plain(s.name, port, array) for array, port in zip((*inputs, *outputs), ports, strict=True)]
    strides = []
    for k, (array, port) in enumerate(zip(arrays, ports, strict=True)):
        wanted = port.shape if count is None else (count, *port.shape)
        same = count is not None and k < len(inputs) and array.shape == port.shape
        if not same and array.shape != wanted:
            text = f"{s.name}: {port.name} must be a contiguous float64 array of shape {wanted}, not {array.shape}"
            raise ShapeError(text, given=array.shape, wanted=wanted)
        if k >= len(inputs) and not array.flags.writeable:
            raise ShapeError(f"{s.name}: {port.name} is read-only; give a writable array")
        strides.append(0 if same else port.size)
    return arrays, strides


def _plain(program: str, port: Port, argument: Any) -> Floats:
    """The memory of an array, which the caller goes on using: it is no copy."""
    array = exact_array(f"{program}: {port.name}", argument)
    if array is None or array.dtype != np.float64:
        raise wrong_dtype(program, port.name, getattr(argument, "dtype", type(argument).__name__))
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise ShapeError(f"{program}: {port.name} must be contiguous; give numpy.ascontiguousarray({port.name})")
    return array


def marched(
    kernel: Kernel, inputs: Sequence[Floats], outputs: Sequence[Floats], count: int
) -> Callable[[int, int], None]:
    """A function (begin, number) that computes these of `count` states in their order, on one thread.

    A state's outputs may lie where the inputs of later states do. An input of the port's own shape is the same for all.
    """
    s = kernel.signature
    arrays, strides = checked(kernel, inputs, outputs, count)
    shared = [array.shape == port.shape for array, port in zip(arrays, (*s.inputs, *s.outputs), strict=True)]

    def careful(begin: int, number: int) -> None:
        for n in range(begin, begin + number):
            rows = [array if same else array[n : n + 1] for array, same in zip(arrays, shared, strict=True)]
            out = rows[len(inputs) :]
            kernel(*rows[: len(inputs)], out=out if len(out) > 1 else out[0])

    if not native():
        return careful
    variant = kernel.variant(1)

    def run(begin: int, number: int) -> None:
        if begin < 0 or begin + number > count:
            raise ShapeError(f"{s.name}: there are {count} states", given=(begin, number), wanted=(count,))
        variant.run(arrays, strides, begin, begin + number)

    return run
