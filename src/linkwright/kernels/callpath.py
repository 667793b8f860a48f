"""The short way from a Python call to native code: built-in functions that know some calls.

A known call is a number of arguments, keywords in their order, constants (texts, None) and arrays of one state: exact
ndarrays of float64, aligned, C-contiguous and of the very shape. `trampoline` recognises it in machine code and runs
its kernel. Every other call goes to the fallback, the careful path, with the same arguments; on any doubt there is no
shortcut.

The interpreter is held while a kernel runs, so that one scratch for each call is enough.
"""

from __future__ import annotations

import ctypes
import inspect
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from linkwright.base.locks import Lock
from linkwright.kernels import trampoline as native_code
from linkwright.kernels.kernel import Kernel
from linkwright.kernels.trampoline import ARRAY, CONSTANT, MAX_ARRAYS, MAX_PLACES, NUMBER, TABLE, TARGET, supported
from linkwright.kernels.variant import Port, Variant, native

MAX_WORK = 1_000_000  # operations for which the interpreter may be held
MAX_CALLS = 64  # that one function knows
_FASTCALL_KEYWORDS = 0x0080 | 0x0002


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Shortcut(tuple[Any, ...]):
    """The `self` of a built-in function: (context, fallback, what must stay alive)."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """A built-in function is pickled as an attribute of its `self`: of the object whose method it shadows."""
        fallback = self[1]
        if not isinstance(fallback, partial):
            raise TypeError("a native shortcut that shadows no method cannot be pickled")
        return _itself, (fallback.args[0],)


def _itself(owner: Any) -> Any:
    return owner


@dataclass(frozen=True)
class Place:
    """What stands in one place of a call: an array or a number (for an input of the kernel, or for none), the array
    that takes its output, or a constant.
    """

    kind: int  # ARRAY, NUMBER, TARGET or CONSTANT
    input: int = -1  # which one
    constant: Any = None

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from other places; texts by their letters."""
        constant = self.constant if isinstance(self.constant, str) else id(self.constant)
        return self.kind, self.input, constant


def array_or_number(argument: Any, shape: tuple[int, ...], position: int) -> Place | None:
    """The place of an argument for an input of this shape; None where only the careful path takes it."""
    if type(argument) is np.ndarray:
        return Place(ARRAY, position) if argument.shape == shape and argument.dtype == np.float64 else None
    return Place(NUMBER, position) if not shape and type(argument) in (float, np.float64) else None


def suits(kernel: Kernel, usual: float = 1.0) -> bool:
    """Whether calls of a kernel for one state can be native, and pay; a call does the `usual` part of the work that the
    kernel does at most."""
    if not native() or not supported():
        return False
    s = kernel.signature
    ports = (*s.inputs, *s.outputs)
    if usual * s.work > MAX_WORK or any(len(port.shape) > 2 for port in ports):
        return False
    if not s.outputs or s.single != (len(s.outputs) == 1):
        return False
    return len(ports) + len(s.data) + s.columns < MAX_ARRAYS


class KnownCalls:
    """A built-in function and the calls that it knows.

    `fallback` is the careful path: a function, or the partial of a function and the object whose method is shadowed.
    The built-in has the name, the signature and the docstring of `method`.
    """

    def __init__(self, name: str, fallback: Callable[..., Any], method: Callable[..., Any]) -> None:
        self._lock = Lock()
        self._keys: set[tuple[Any, ...]] = set()
        self._lifetime: list[Any] = []
        self._table = np.zeros(len(TABLE) + MAX_CALLS, np.uint64)
        words = {
            "ndarray": id(np.ndarray),
            "descr": id(np.dtype(np.float64)),
            "new": native_code.array_api(native_code.NEW),
            "float": id(float),
            "scalar": id(np.float64),
            "text": id(str),
        }
        self._table[: len(TABLE)] = [words.get(word, 0) for word in TABLE]
        context = struct.pack("<Q", self._table.ctypes.data)
        itself = Shortcut((context, fallback, (self._table, self._lifetime)))
        self.function = _new_function()(ctypes.addressof(_definition(name, method)), itself, None)

    def knows(self, places: Sequence[Place], keywords: tuple[str, ...]) -> bool:
        """Whether the function has this call, or no room for it."""
        return len(self._keys) == MAX_CALLS or self._key(places, keywords) in self._keys

    @staticmethod
    def _key(places: Sequence[Place], keywords: tuple[str, ...]) -> tuple[Any, ...]:
        return keywords, *(place.key for place in places)

    def add(self, kernel: Kernel, places: Sequence[Place], keywords: tuple[str, ...] = ()) -> None:
        """Know a call: what stands in its places, the last ones by `keywords`. Inputs of numbers that stand in no place
        are 0. The kernel `suits`.
        """
        variant = kernel.variant(1)  # compiled before the lock is taken
        with self._lock:
            if not self.knows(places, keywords) and len(places) <= MAX_PLACES:
                self._add(kernel, variant, places, keywords)

    def _add(self, kernel: Kernel, variant: Variant, places: Sequence[Place], keywords: tuple[str, ...]) -> None:
        s = kernel.signature
        room, absent = np.empty(s.scratch[1] + 8), np.zeros(1)
        slots = [absent.ctypes.data] * len(s.inputs) + [0] * len(s.outputs) + [d.ctypes.data for d in variant.data]
        words = [sys.intern(word) for word in keywords]
        target = next((k for k, place in enumerate(places) if place.kind == TARGET), -1)
        if target >= 0 and not s.single:
            return  # one array cannot take several outputs
        numbers = [
            variant.code.address,
            (room.ctypes.data + 63) & ~63,
            len(places) - len(words),
            len(words),
            len(slots),
            len(s.inputs),
            len(s.outputs),
            0 if s.single else 1,
            target % 2**64,
            *slots,
            *map(id, words),
        ]
        for place in places:
            # What no input takes is put behind the slots.
            slot = len(s.inputs) if place.kind == TARGET else len(slots) if place.input < 0 else place.input
            numbers += [place.kind, slot, *_what(place, s.inputs, s.outputs)]
        for port in s.outputs:
            numbers += _spec(port)
        entry = np.array(numbers, np.uint64)
        constants = [place.constant for place in places]
        self._lifetime.append((entry, room, absent, variant.code.life, variant.data, words, constants))
        count = int(self._table[TABLE.index("count")])
        self._table[len(TABLE) + count] = entry.ctypes.data
        self._table[TABLE.index("texts")] |= np.uint64(any(isinstance(x, str) for x in constants))
        self._table[TABLE.index("count")] = count + 1
        self._keys.add(self._key(places, keywords))


def _what(place: Place, inputs: Sequence[Port], outputs: Sequence[Port]) -> list[int]:
    """The four words that say what a place takes."""
    if place.kind == CONSTANT:
        return [id(place.constant), int(type(place.constant) is str), 0, 0]
    if place.kind == TARGET:
        return _spec(outputs[0])
    return _spec(inputs[place.input]) if place.input >= 0 else [0, 0, 0, 8]


def _spec(port: Port) -> list[int]:
    return [len(port.shape), *[*port.shape, 0, 0][:2], 8 * port.size]


def shortcut(kernel: Kernel, fallback: Callable[..., Any], name: str, usual: float = 1.0) -> Any:
    """A built-in function for one state of `kernel`, or None where it cannot be had or would not pay; see `suits`."""
    if not suits(kernel, usual):
        return None
    calls = KnownCalls(name, fallback, fallback)
    add_plain(calls, kernel, len(kernel.inputs))
    return calls.function


def add_plain(calls: KnownCalls, kernel: Kernel, positions: int) -> None:
    """Know the call with this many inputs alone, and the one with `out=` too."""
    places = [Place(ARRAY, k) for k in range(positions)]
    calls.add(kernel, places)
    if kernel.signature.single:
        calls.add(kernel, [*places, Place(TARGET)], ("out",))


_definitions: dict[tuple[str, Any], _MethodDef] = {}


def _definition(name: str, method: Callable[..., Any]) -> _MethodDef:
    """What CPython keeps a pointer to for as long as the function lives: one for each method, never dropped.

    (A ctypes structure inside the function's own cycle could be cleared by the collector before the function.)
    """
    function = getattr(method, "func", method)
    definition = _definitions.get((name, function))
    if definition is None:
        parameters = inspect.signature(method).parameters.values()
        plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
        text = str(inspect.Signature(plain)).removeprefix("(")
        doc = f"{name}($self{', ' if plain else ''}{text}\n--\n\n{inspect.getdoc(function) or ''}"
        fresh = _MethodDef(name.encode(), native_code.trampoline(), _FASTCALL_KEYWORDS, doc.encode())
        definition = _definitions.setdefault((name, function), fresh)
    return definition


@cache
def _new_function() -> Any:
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return new
