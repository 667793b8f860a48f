"""Answers that PyTorch can differentiate: a kernel forward, its reverse accumulation backward, on any device.

Backward is a kernel call like any other, so that gradients of gradients work too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from linkwright.errors import KernelError
from linkwright.kernels.foreign import library

if TYPE_CHECKING:
    from linkwright.kernels.kernel import Kernel


def wanted(arrays: Sequence[Any]) -> bool:
    """Whether PyTorch is to remember what is computed of these."""
    grads = any(library(a) == "torch" and a.requires_grad for a in arrays)
    return grads and bool(sys.modules["torch"].is_grad_enabled())


def answer(kernel: Kernel, arrays: Sequence[Any], out: Any) -> Any:
    """The outputs, as nodes of PyTorch's graph."""
    if out is not None:
        raise KernelError(
            f"{kernel.signature.name}: out= cannot take what gradients go through; leave it away or use torch.no_grad()"
        )
    outputs = _function().apply(kernel, *arrays)
    return outputs[0] if kernel.signature.single else outputs


@cache
def _function() -> Any:
    import torch

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
