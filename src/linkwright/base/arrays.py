"""Types of arrays, and arrays out of the bytes of `.npy` files that nobody vouches for.

NumPy's own reader takes the header for Python's text, and allocates what it says.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Longs: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]


_HEAD = re.compile(
    rb"\x93NUMPY\x01\x00(..)\{'descr': '([<>|][fiu][1248])', 'fortran_order': (True|False), "
    rb"'shape': \((|[0-9]{1,18}(?:, [0-9]{1,18}){0,31},?)\), \} *\n",
    re.DOTALL,
)


def array_of(content: bytes) -> NDArray[Any]:
    """The array in the bytes of a `.npy` file of plain numbers, in this machine's order of bytes; else a ValueError."""
    head = _HEAD.match(content)
    if not head:
        raise ValueError("an array is not of a type of plain numbers")
    kind, end = np.dtype(head[2].decode("ascii")), head.end()
    shape = tuple(int(word) for word in head[4].split(b",") if word)
    if end != 10 + int.from_bytes(head[1], "little") or end + math.prod(shape) * kind.itemsize != len(content):
        raise ValueError("an array is not of the size that it should be")
    numbers = np.frombuffer(content, kind, offset=end).astype(kind.newbyteorder("="))
    return np.asarray(numbers.reshape(shape, order="F" if head[3] == b"True" else "C"), order="C")


def packed(arrays: Iterable[NDArray[Any]]) -> bytes:
    """Arrays as bytes: each as a `.npy` file, behind its length in eight bytes."""
    parts = []
    for array in arrays:
        file = io.BytesIO()
        np.lib.format.write_array(file, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
        parts += [len(file.getvalue()).to_bytes(8, "little"), file.getvalue()]
    return b"".join(parts)


def unpacked(content: bytes) -> list[NDArray[Any]]:
    """The arrays that `packed` made bytes of; a ValueError for other bytes."""
    arrays, at = [], 0
    while at < len(content):
        end = at + 8 + int.from_bytes(content[at : at + 8], "little")
        arrays.append(array_of(content[at + 8 : end]))
        at = end
    return arrays
