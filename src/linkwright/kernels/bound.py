"""A kernel bound to its arrays: called again and again on the same memory, without looking at it anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from linkwright.errors import ShapeError
from linkwright.kernels.kernel import Kernel, native

Floats = NDArray[np.float64]


def bound(kernel: Kernel, inputs: Sequence[Floats], outputs: Sequence[Floats]) -> Callable[[], None]:
    """A function without arguments that computes one state from `inputs` into `outputs`.

    The arrays are held and must stay plain (float64, contiguous); change their numbers in place. For one thread.
    """
    arrays, strides = checked(kernel, inputs, outputs)
    if not native():
        given = list(outputs) if len(outputs) > 1 else outputs[0]
        return lambda: kernel(*inputs, out=given)
    return kernel.variant(1).bound(arrays, strides)


def checked(kernel: Kernel, inputs: Sequence[Floats], outputs: Sequence[Floats]) -> tuple[list[Floats], list[int]]:
    """The arrays of one state, each of its port's shape, and the ports' sizes."""
    s = kernel.signature
    ports = (*s.inputs, *s.outputs)
    for array, port in zip((*inputs, *outputs), ports, strict=True):
        if array.dtype != np.float64 or array.shape != port.shape or not array.flags.c_contiguous:
            text = f"{s.name}: {port.name} must be a contiguous float64 array of shape {port.shape}, not {array.shape}"
            raise ShapeError(text, given=array.shape, wanted=port.shape)
    return [*inputs, *outputs], [port.size for port in ports]


def marched(
    kernel: Kernel, inputs: Sequence[Floats], outputs: Sequence[Floats], count: int
) -> Callable[[int, int], None]:
    """A function (begin, number) that computes these of `count` states in their order, on one thread.

    A state's outputs may lie where the inputs of later states do. An input of the port's own shape is the same for all.
    """
    s = kernel.signature
    arrays: list[Floats] = [*inputs, *outputs]
    strides: list[int] = []
    shared: list[bool] = []
    for k, (array, port) in enumerate(zip(arrays, (*s.inputs, *s.outputs), strict=True)):
        rows = (count, *port.shape)
        same = k < len(inputs) and array.shape == port.shape
        if array.dtype != np.float64 or not array.flags.c_contiguous or not (same or array.shape == rows):
            text = f"{s.name}: {port.name} must be a contiguous float64 array of shape {rows}, not {array.shape}"
            raise ShapeError(text, given=array.shape, wanted=rows)
        strides.append(0 if same else port.size)

        shared.append(same)

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
        variant.in_order(arrays, strides, begin, number)

    return run
