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
    s = kernel.signature
    for array, port in zip((*inputs, *outputs), (*s.inputs, *s.outputs), strict=True):
        if array.dtype != np.float64 or array.shape != port.shape or not array.flags.c_contiguous:
            text = f"{s.name}: {port.name} must be a contiguous float64 array of shape {port.shape}, not {array.shape}"
            raise ShapeError(text, given=array.shape, wanted=port.shape)
    if not native():
        given = list(outputs) if len(outputs) > 1 else outputs[0]
        return lambda: kernel(*inputs, out=given)
    variant = kernel.variant(1)
    arrays = [*inputs, *outputs]
    return variant.bound(arrays, [port.size for port in (*s.inputs, *s.outputs)])
