"""Calls with arrays of other libraries: answered in kind, on the device where they are, without copying them.

On a GPU `cuda.device_kernel` does the work. In main memory PyTorch's tensors and JAX's arrays are looked at as
NumPy's, and the answers are handed back as theirs, in float32 if all that came was so. What PyTorch is to differentiate
goes through `interpret.torch_function`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.errors import DtypeError, KernelError
from linkwright.kernels.libraries import library, on_device, platform

if TYPE_CHECKING:
    from linkwright.kernels.kernel import Kernel


def call(kernel: Kernel, arrays: Sequence[Any], out: Any = None) -> Any:
    """The answer of a kernel for inputs of which one is another library's."""
    s = kernel.signature
    names = [port.name for port in s.inputs]
    names += [f"input {k}" for k in range(len(names), len(arrays))]
    kinds = check(s.name, dict(zip(names, arrays, strict=False)))
    if "torch" in kinds:
        from linkwright.kernels.interpret import torch_function

        if torch_function.wanted(arrays):
            return torch_function.answer(kernel, arrays, out)
    if any(map(on_device, arrays)):
        if out is not None and "jax" in kinds:
            raise KernelError(f"{s.name}: JAX arrays cannot be written to: leave out= away")
        return kernel.device(arrays, out)
    return in_memory(kernel, arrays, out)


def check(what: str, arrays: dict[str, Any]) -> set[str]:
    """The libraries of some arrays; refuses those that hold no numbers yet, or lie where nothing can be computed."""
    kinds = {name: library(value) for name, value in arrays.items()}
    for name, kind in kinds.items():
        value = arrays[name]
        if kind == "tracer":
            raise KernelError(
                f"{what}: {name} is a JAX tracer, which has no numbers: inside jit, grad and vmap use the program's "
                "own JAX function, mech.program(...).to_jax()"
            )
        where = platform(value) if kind == "jax" else value.device.type if kind == "torch" else "cpu"
        if where not in ("cpu", "gpu", "cuda", "rocm"):
            hint = f"{name}.cpu()" if kind == "torch" else f"jax.device_put({name}, jax.devices('cpu')[0])"
            raise KernelError(f"{what}: {name} is on {where}; main memory and CUDA GPUs are known: give {hint}")
    arrived = [n for n, value in arrays.items() if on_device(value)]
    for name, value in arrays.items():
        if arrived and kinds[name] and not on_device(value) and np.ndim(value):
            raise DtypeError(
                f"{what}: {name} is in main memory and {arrived[0]} on a GPU: put both in one place",
                given="main memory",
                wanted="GPU",
            )
    return set(kinds.values())


def in_memory(kernel: Any, arrays: Sequence[Any], out: Any = None) -> Any:
    """The answer for tensors of PyTorch or arrays of JAX in main memory."""
    leader = next(a for a in arrays if library(a))
    operands = [as_numpy(a) for a in arrays]
    if out is not None:
        if library(leader) == "jax":
            raise KernelError(f"{kernel.signature.name}: JAX arrays cannot be written to: leave out= away")
        targets = [as_numpy(x) for x in out] if isinstance(out, (tuple, list)) else as_numpy(out)
        kernel(*operands, out=targets)
        return out
    answer = kernel(*operands)
    back = in_kind(leader, arrays)
    return tuple(map(back, answer)) if isinstance(answer, tuple) else back(answer)


def as_numpy(value: Any) -> Any:
    """An array in main memory as NumPy's on the same memory; what is none of these libraries' stays as it is."""
    kind = library(value)
    if kind == "torch":
        try:
            return value.detach().numpy()
        except (RuntimeError, TypeError) as error:  # inside torch.func.vmap, sparse, and the like
            raise KernelError(
                f"a PyTorch tensor has no plain numbers here ({error}): give dense ones, and batches as leading axes "
                "instead of by vmap"
            ) from error
    return np.asarray(value) if kind == "jax" else value


def in_kind(leader: Any, arrays: Sequence[Any]) -> Any:
    """What makes NumPy's arrays those of a leader's library, in float32 if all `arrays` of such libraries are."""
    dtypes = [str(a.dtype).removeprefix("torch.") for a in arrays if library(a)]
    precision = "float32" if all(d == "float32" for d in dtypes) else "float64"
    if library(leader) == "torch":
        torch = sys.modules["torch"]
        return lambda array: torch.from_numpy(np.asarray(array, dtype=precision))
    jax, where = sys.modules["jax"], next(iter(leader.devices()))
    return lambda array: jax.device_put(np.asarray(array, dtype=precision), where)
