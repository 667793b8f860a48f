"""A stand-in for the part of CuPy that the CUDA back-end uses, on the CPU: kernels run through `cuda_shim`.

Its arrays are not NumPy's, and like CuPy's refuse to become so by themselves. What the back-end does is noted:
`log` holds every launch, copy and clearing, and `captured` how many graphs were made.
"""

from __future__ import annotations

import ctypes
import sys
import types

import numpy as np

from cuda_shim import launch

log: list[tuple] = []
captured: list[list] = []
_streams: list[Stream] = []
current_device = 0


def do(what: str, action, *told) -> None:
    """Do it now, or leave it to the graph that is being captured."""
    recording = _streams[-1].recording if _streams else None
    if recording is not None:
        recording.append((what, action, told))
        return
    log.append((what, *told))
    action()


class Memory:
    def __init__(self, ptr, size, owner, device_id=0):
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id


class MemoryPointer:
    def __init__(self, mem, offset):
        self.mem, self.ptr = mem, mem.ptr + offset
        self.device_id = mem.device_id

    def __add__(self, offset):
        return MemoryPointer(self.mem, self.ptr + offset - self.mem.ptr)

    def memset_async(self, value, size, stream=None):
        do("memset", lambda: ctypes.memset(self.ptr, value, size), size)

    def copy_from_device_async(self, source, size, stream=None):
        do("copy", lambda: ctypes.memmove(self.ptr, source.ptr, size), size)


class Device:
    def __init__(self, number=0):
        self.id = int(number)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class ndarray:
    def __init__(self, shape, dtype=np.float64, memptr=None, strides=None, device=0):
        dtype = np.dtype(dtype)
        if memptr is None:
            owner = np.full(shape, np.nan, dtype) if dtype.kind == "f" else np.zeros(shape, dtype)
            memptr = MemoryPointer(Memory(owner.ctypes.data, owner.nbytes, owner, device), 0)
            view = owner
        else:
            raw = (ctypes.c_char * max(memptr.mem.size, 1)).from_address(memptr.ptr)
            view = np.ndarray(shape, dtype, raw, strides=strides)
        self._view, self.data, self.device = view, memptr, Device(device)

    @property
    def device(self):
        return self._device

    @device.setter
    def device(self, device):
        self._device = device
        if hasattr(self, "data"):
            self.data.device_id = device.id

    shape = property(lambda self: self._view.shape)
    strides = property(lambda self: self._view.strides)
    dtype = property(lambda self: self._view.dtype)
    ndim = property(lambda self: self._view.ndim)
    size = property(lambda self: self._view.size)
    nbytes = property(lambda self: self._view.nbytes)
    itemsize = property(lambda self: self._view.itemsize)
    flags = property(lambda self: types.SimpleNamespace(c_contiguous=self._view.flags.c_contiguous))

    def _like(self, view):
        made = object.__new__(ndarray)
        made._view, made.device = view, self.device
        made.data = self.data + (view.ctypes.data - self._view.ctypes.data)
        return made

    def __len__(self):
        return len(self._view)

    def __getitem__(self, key):
        if isinstance(key, ndarray):
            return asarray(self._view[key._view])
        return self._like(self._view[key])

    def __setitem__(self, key, value):
        self._view[key] = value._view

    def reshape(self, *shape):
        return self._like(self._view.reshape(*shape))

    def get(self):
        return self._view.copy()

    def copy(self):
        return asarray(self._view)

    def all(self, axis):
        return asarray(self._view.all(axis=axis))

    def __and__(self, other):
        return asarray(self._view & other._view)

    def __invert__(self):
        return asarray(~self._view)

    def sum(self):
        return self._view.sum()

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    @property
    def __cuda_array_interface__(self):
        return {}  # never looked at: CuPy's own arrays are taken directly


ndarray.__module__ = "cupy"


class Foreign:
    """An array of another library: nothing but its description."""

    def __init__(self, array, *, readonly=False, stream=None):
        self.array = array
        self.dtype = array.dtype
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.data.ptr, readonly),
            "strides": None if array.flags.c_contiguous else array.strides,
            "version": 3,
            "stream": stream,
        }


class Event:
    def __init__(self, disable_timing=False):
        self.stream = None

    def record(self, stream=None):
        self.stream = stream or get_current_stream()


class Graph:
    def __init__(self, nodes):
        self.nodes = nodes

    def launch(self, stream=None):
        log.append(("graph", len(self.nodes)))
        for what, action, told in self.nodes:
            log.append((what, *told))
            action()


class Stream:
    def __init__(self, non_blocking=False, ptr=None):
        self.ptr = id(self) if ptr is None else ptr
        self.recording = None
        self.waited = []

    def __enter__(self):
        _streams.append(self)
        return self

    def __exit__(self, *_):
        _streams.pop()

    def record(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event):
        log.append(("wait", event.stream.ptr))

    def begin_capture(self, mode=None):
        self.recording = []

    def end_capture(self):
        nodes, self.recording = self.recording, None
        captured.append(nodes)
        return Graph(nodes)


_DEFAULT = Stream(ptr=0)


def get_current_stream(device=None):
    return _streams[-1] if _streams else _DEFAULT


class RawModule:
    def __init__(self, *, code, options=()):
        assert not any("fast" in option for option in options)
        self.code = code

    def get_function(self, name):
        def call(grid, block, arguments):
            kept = list(arguments)
            words = [x.data.ptr if isinstance(x, ndarray) else x.ptr if hasattr(x, "ptr") else x for x in kept]
            do("launch", lambda: launch(self.code, name, grid[0], block[0], words) and kept, name, grid[0])

        return call


__version__ = "0"


def asarray(values):
    array = np.ascontiguousarray(values)
    made = ndarray(np.shape(values), array.dtype)
    made._view[...] = array
    return made


def concatenate(arrays):
    return asarray(np.concatenate([array._view for array in arrays]))


def empty(shape, dtype=np.float64):
    return ndarray(shape, dtype)


def zeros(shape, dtype=np.float64):
    return asarray(np.zeros(shape, dtype))


def full(shape, value, dtype=np.float64):
    return asarray(np.full(shape, value, dtype))


def ascontiguousarray(array):
    return array if array.flags.c_contiguous else asarray(array._view)


def broadcast_to(array, shape):
    return array._like(np.broadcast_to(array._view, shape))


def moveaxis(array, source, target):
    return array._like(np.moveaxis(array._view, source, target))


def isfinite(array):
    return asarray(np.isfinite(array._view))


def from_dlpack(value):
    log.append(("dlpack",))
    return value.array


cuda = types.SimpleNamespace(
    Device=Device,
    Event=Event,
    ExternalStream=lambda ptr: Stream(ptr=ptr),
    MemoryPointer=MemoryPointer,
    Stream=Stream,
    UnownedMemory=Memory,
    get_current_stream=get_current_stream,
    runtime=types.SimpleNamespace(
        getDevice=lambda: current_device,
        getDeviceCount=lambda: 1,
        getDeviceProperties=lambda number: {"name": b"a stand-in"},
        memGetInfo=lambda: (2**34, 2**34),
    ),
)


def install(monkeypatch):
    """Let `import cupy` find this module."""
    log.clear()
    captured.clear()
    monkeypatch.setitem(sys.modules, "cupy", sys.modules[__name__])
    return sys.modules[__name__]
