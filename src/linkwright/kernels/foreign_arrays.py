"""Calls with arrays of other libraries: whose they are, and answers in kind, on the device where they are.

None of these libraries is imported here: who has such an array has imported it.

On a GPU `cuda.device_kernel` does the work. In main memory PyTorch's tensors and JAX's arrays are looked at as
NumPy's, and the answers are handed back as theirs, in float32 if all that came was so. What PyTorch is to differentiate
is a kernel forward and its reverse accumulation backward, on any device: a kernel call like any other, so that
gradients of gradients work too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.errors import DtypeError, KernelError

if TYPE_CHECKING:
    from linkwright.kernels.kernel import Kernel


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
    module = {"torch": "torch", "jax": "jax.numpy", "gpu": "cupy"}.get(library(array), "numpy")
    return sys.modules[module].isfinite(array).all(-1)


def call(kernel: Kernel, arrays: Sequence[Any], out: Any = None) -> Any:
    """The answer of a kernel for inputs of which one is another library's."""
    if "device" in vars(kernel) and (answer := kernel.device.known(arrays, out)) is not None:
        return answer
    s = kernel.signature
    names = [port.name for port in s.inputs]
    names += [f"input {k}" for k in range(len(names), len(arrays))]
    kinds = check(s.name, dict(zip(names, arrays, strict=False)))
    if "torch" in kinds and differentiated(arrays):
        return differentiable_answer(kernel, arrays, out)
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


def needs_program(arrays: Sequence[Any]) -> bool:
    """Whether these go to one program alone: arrays on a GPU, and tensors that PyTorch is to differentiate."""
    return any(map(on_device, arrays)) or differentiated(arrays)


def differentiated(arrays: Sequence[Any]) -> bool:
    """Whether PyTorch is to remember what is computed of these."""
    grads = any(library(a) == "torch" and a.requires_grad for a in arrays)
    return grads and bool(sys.modules["torch"].is_grad_enabled())


def differentiable_answer(kernel: Kernel, arrays: Sequence[Any], out: Any) -> Any:
    """The outputs, as nodes of PyTorch's graph."""
    if out is not None:
        raise KernelError(
            f"{kernel.signature.name}: out= cannot take what gradients go through; leave it away or use torch.no_grad()"
        )
    outputs = _function().apply(kernel, *arrays)
    return outputs[0] if kernel.signature.single else outputs


@cache
def _function() -> Any:
    import torch  # weight: PyTorch

    class Answer(torch.autograd.Function):
        """outputs = kernel(inputs)."""

        @staticmethod
        def forward(ctx: Any, kernel: Kernel, *arrays: Any) -> Any:
            ctx.kernel = kernel
            ctx.places = [k for k, a in enumerate(arrays) if isinstance(a, torch.Tensor)]
            ctx.others = [None if isinstance(a, torch.Tensor) else a for a in arrays]
            ctx.save_for_backward(*(arrays[k] for k in ctx.places))
            outputs = kernel(*arrays)  # gradients are off here
            return outputs if isinstance(outputs, tuple) else (outputs,)

        @staticmethod
        def backward(ctx: Any, *bars: Any) -> Any:
            arrays = list(ctx.others)
            for k, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
                arrays[k] = tensor
            reverse = ctx.kernel.reverse
            adjoints = reverse(*arrays, *bars)[len(bars) :]
            gradients: list[Any] = [None] * len(arrays)
            for k in ctx.places:
                if ctx.needs_input_grad[k + 1]:
                    gradients[k] = adjoints[k].sum_to_size(arrays[k].shape).to(arrays[k].dtype)
            return (None, *gradients)

    return Answer
