"""Stand-ins for PyTorch and JAX with arrays on a GPU: what Linkwright asks of them, over the memory of `fake_cupy`."""

from __future__ import annotations

import sys
import types

import numpy as np

import fake_cupy

CUDA = types.SimpleNamespace(type="cuda", index=0)
GPU = types.SimpleNamespace(platform="gpu", local_hardware_id=0)


class _Array:
    def __init__(self, array):
        self.array = array

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)
    nbytes = property(lambda self: self.array.nbytes)

    def reshape(self, shape):
        return type(self)(self.array.reshape(shape))

    def get(self):
        return self.array.get()


class Tensor(_Array):
    device, requires_grad = CUDA, False

    @property
    def __cuda_array_interface__(self):
        return fake_cupy.Foreign(self.array).__cuda_array_interface__

    def detach(self):
        return self

    def get_device(self):
        return 0

    def data_ptr(self):
        return self.array.data.ptr

    def is_contiguous(self):
        return self.array.flags.c_contiguous

    def movedim(self, source, target):
        return Tensor(fake_cupy.moveaxis(self.array, source, target))


class ArrayImpl(_Array):
    def devices(self):
        return [GPU]


Tensor.__module__, ArrayImpl.__module__ = "torch", "jaxlib._jax"


def _finite(array, **axis):
    return np.isfinite(array.get())


def install(monkeypatch):
    """Let these be the libraries that are imported; returns what PyTorch's current stream is."""
    stream = types.SimpleNamespace(cuda_stream=0)
    torch, jax = types.ModuleType("torch"), types.ModuleType("jax")
    torch.Tensor, torch.float64, torch.float32 = Tensor, np.float64, np.float32
    torch.is_grad_enabled = lambda: True
    torch.empty = lambda shape, dtype, device: Tensor(fake_cupy.empty(shape, dtype))
    torch.cuda = types.SimpleNamespace(current_stream=lambda device: stream)
    torch.isfinite = _finite
    jax.dlpack = types.SimpleNamespace(from_dlpack=ArrayImpl)
    jax.numpy = types.SimpleNamespace(isfinite=_finite)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "jax", jax)
    return stream
