"""Whose array a value is: NumPy's, PyTorch's, JAX's, or one that another library has on a GPU.

None of these libraries is imported here: who has such an array has imported it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_OF_TYPE: dict[type, str] = {}


def library(value: Any) -> str:
    """'torch', 'jax', 'tracer' (a JAX array that is only being traced), 'gpu' (CuPy, Numba, ...), '' for the rest."""
    kind = _OF_TYPE.get(type(value))
    if kind is None:
        kind = _OF_TYPE[type(value)] = _of_type(type(value))
    if kind == "?":
        return "gpu" if hasattr(value, "__cuda_array_interface__") else ""
    return kind


def _of_type(kind: type) -> str:
    for base in kind.__mro__:
        root = base.__module__.partition(".")[0]
        if root == "numpy" or base in (float, int, list, tuple):
            return ""
        if root == "torch" and base.__name__ == "Tensor":
            return "torch"
        if root in ("jax", "jaxlib"):
            if base.__name__ == "Tracer":
                return "tracer"
            if base.__name__ in ("ArrayImpl", "Array"):
                return "jax"
    return "?"


def on_device(value: Any) -> bool:
    """Whether the value is an array on a GPU, by whichever library."""
    kind = library(value)
    if kind == "torch":
        return bool(value.device.type == "cuda")
    if kind == "jax":
        return platform(value) in ("gpu", "cuda", "rocm")
    return kind == "gpu"


def platform(value: Any) -> str:
    """Where a JAX array lies: 'cpu', 'gpu', ..."""
    return str(next(iter(value.devices())).platform)


def finite(array: Any) -> Any:
    """(...): whether all numbers along the last axis are finite, in the array's own library."""
    kind = library(array)
    if kind == "torch":
        return sys.modules["torch"].isfinite(array).all(dim=-1)
    if kind == "jax":
        return sys.modules["jax"].numpy.isfinite(array).all(axis=-1)
    if kind == "gpu":
        return sys.modules["cupy"].isfinite(array).all(axis=-1)
    return np.isfinite(array).all(axis=-1)
