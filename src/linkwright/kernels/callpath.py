"""The short way from a Python call to native code: a built-in function that checks its arrays in machine code.

One trampoline serves every kernel. Its `self` is a tuple: (context, fallback, what must stay alive); the context
is a `bytes` of 64-bit words: the kernel's address, sizes, shapes and the addresses of types. It takes exact
ndarrays of float64, aligned, C-contiguous and of the very shape, and `out=` of the same sort that overlaps no
input; every other call goes to the fallback, the careful path, with the same arguments. The layout of arrays is
tested at first use; on any doubt there is no shortcut.

The interpreter is held while a kernel runs, so that one scratch for each function is enough.
"""

from __future__ import annotations

import ctypes
import inspect
import platform
import struct
import sys
import sysconfig
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from linkwright.base.locks import Lock
from linkwright.errors import KernelError
from linkwright.kernels.kernel import Kernel
from linkwright.kernels.llvm.compiler import Code, add_symbols, cpu, key, load, object_code, read, write
from linkwright.kernels.llvm.instructions import Writer
from linkwright.kernels.variant import native

MAX_ARRAYS = 24
MAX_WORK = 1_000_000  # operations for which the interpreter may be held

# Offsets in a 64-bit ndarray (NumPy's C structure), a tuple and a bytes object.
_TYPE, _DATA, _ND, _DIMS, _DESCR, _FLAGS = 8, 16, 24, 32, 56, 64
_TUPLE_ITEMS, _TUPLE_SIZE = 24, 16
_BYTES_DATA = 32
_PLAIN = 0x101  # C-contiguous, aligned
_WRITEABLE = 0x400

# The context: these words, the addresses of the data, then for each array its spec.
_WORDS = ("address", "nin", "nout", "scratch", "ndarray", "descr", "new", "outname", "ndata", "many")
_SPEC = 4  # words: number of axes, two extents, size in bytes
_NUMPY_ABIS = (0x0100_0009, 0x0200_0000)
_GET_ABI, _NEW = 0, 93  # places in NumPy's table of functions
_DOUBLE = 12  # NumPy's number of float64

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


def shortcut(kernel: Kernel, fallback: Callable[..., Any], name: str) -> Any:
    """A built-in function for one state of `kernel`, or None where it cannot be had or would not pay.

    `fallback` is the careful path: a function, or the partial of a method and its object. The built-in has its
    signature and docstring.
    """
    s = kernel.signature
    ports = (*s.inputs, *s.outputs)
    if not native() or not supported() or s.work > MAX_WORK or _overridden(fallback, name):
        return None
    if any(len(port.shape) > 2 for port in ports) or not s.outputs or s.single != (len(s.outputs) == 1):
        return None
    variant = kernel.variant(1)
    if len(ports) + len(variant.data) > MAX_ARRAYS:
        return None
    room = np.empty(s.scratch[1] + 8)
    words = {
        "address": variant.code.address,
        "nin": len(s.inputs),
        "nout": len(s.outputs),
        "scratch": (room.ctypes.data + 63) & ~63,
        "ndarray": id(np.ndarray),
        "descr": id(np.dtype(np.float64)),
        "new": _array_api(_NEW),
        "outname": id(sys.intern("out")),
        "ndata": len(variant.data),
        "many": 0 if s.single else 1,
    }
    numbers = [words[word] for word in _WORDS] + [d.ctypes.data for d in variant.data]
    for port in ports:
        numbers += [len(port.shape), *[*port.shape, 0, 0][:2], 8 * port.size]
    context = struct.pack(f"<{len(numbers)}Q", *numbers)
    lifetime = (variant.code.life, *variant.data, room)
    return _new_function()(ctypes.addressof(_definition(name, fallback)), Shortcut((context, fallback, lifetime)), None)


def _overridden(fallback: Callable[..., Any], name: str) -> bool:
    """Whether a subclass adds to the method that asks the kernel: the kernel alone is not its answer."""
    if not isinstance(fallback, partial):
        return False
    return sum(name in vars(kind) for kind in type(fallback.args[0]).__mro__) > 1


_definitions: dict[tuple[str, Any], _MethodDef] = {}


def _definition(name: str, fallback: Callable[..., Any]) -> _MethodDef:
    """What CPython keeps a pointer to for as long as the function lives: one for each method, never dropped.

    (A ctypes structure inside the function's own cycle could be cleared by the collector before the function.)
    """
    method = getattr(fallback, "func", fallback)
    definition = _definitions.get((name, method))
    if definition is None:
        parameters = inspect.signature(fallback).parameters.values()
        plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
        text = str(inspect.Signature(plain)).removeprefix("(")
        doc = f"{name}($self{', ' if plain else ''}{text}\n--\n\n{inspect.getdoc(method) or ''}"
        fresh = _MethodDef(name.encode(), _trampoline(), _FASTCALL_KEYWORDS, doc.encode())
        definition = _definitions.setdefault((name, method), fresh)
    return definition


# -- what the trampoline relies on ---------------------------------------------------------------------------
@cache
def supported() -> bool:
    """Whether this interpreter and this NumPy have the layout that the trampoline reads."""
    if platform.python_implementation() != "CPython" or struct.calcsize("P") != 8 or sys.byteorder != "little":
        return False
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    return (
        bytes.__basicsize__ - 1 == _BYTES_DATA
        and _arrays_as_expected()
        and _tuples_as_expected()
        and ctypes.CFUNCTYPE(ctypes.c_uint)(_array_api(_GET_ABI))() in _NUMPY_ABIS
    )


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _arrays_as_expected() -> bool:
    for array in (np.zeros(7), np.zeros((2, 5)), np.zeros((4, 6))[:, ::2], np.zeros(())):
        at = id(array)
        dims = _word(at + _DIMS)
        extents = tuple(_word(dims + 8 * k) for k in range(array.ndim))
        flags = ctypes.c_int32.from_address(at + _FLAGS).value
        expected = (
            _word(at + _TYPE) == id(np.ndarray)
            and _word(at + _DATA) == array.ctypes.data
            and ctypes.c_int32.from_address(at + _ND).value == array.ndim
            and extents == array.shape
            and _word(at + _DESCR) == id(np.dtype(np.float64))
            and flags & (_PLAIN | _WRITEABLE) == array.flags.num & (_PLAIN | _WRITEABLE)
            and (flags & _PLAIN == _PLAIN) == (array.flags.c_contiguous and array.flags.aligned)
            and bool(flags & _WRITEABLE) == array.flags.writeable
        )
        if not expected:
            return False
    return True


def _tuples_as_expected() -> bool:
    items = Shortcut((b"abc", "def", 3.0))
    at = id(items)
    inside = tuple(_word(at + _TUPLE_ITEMS + 8 * k) for k in range(3))
    return (
        _word(at + _TUPLE_SIZE) == 3
        and inside == tuple(id(x) for x in items)
        and ctypes.string_at(id(items[0]) + _BYTES_DATA, 3) == b"abc"
    )


def _array_api(index: int) -> int:
    """The address of a function of NumPy's C interface."""
    core: Any = np._core if hasattr(np, "_core") else np.core
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = pointer(core.multiarray._ARRAY_API, None)
    return _word(int(table) + 8 * index)


@cache
def _new_function() -> Any:
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return new


# -- the trampoline ------------------------------------------------------------------------------------------
_CALLED = ("Py_IncRef", "Py_DecRef", "PyTuple_New", "PyTuple_SetItem", "PyObject_Vectorcall")
_loading = Lock()
_loaded: list[Code] = []


def _trampoline() -> int:
    with _loading:
        if not _loaded:
            _loaded.append(_load_trampoline())
        return _loaded[0].address


def _load_trampoline() -> Code:
    functions = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in _CALLED}
    add_symbols({name: address or 0 for name, address in functions.items()})
    text = _text()
    name = key("trampoline", text, *cpu())
    code = read(name)
    if code is not None:
        try:
            return load(code, "trampoline")
        except KernelError:
            pass  # made anew below
    code = object_code(text)
    write(name, code)
    return load(code, "trampoline")


class _Trampoline(Writer):
    """The text of the trampoline: what it reads of arrays, and where it goes on."""

    def field(self, base: str, offset: int, kind: str = "i64") -> str:
        """What lies `offset` bytes after a pointer."""
        return self.op(f"load {kind}, ptr {self.op(f'getelementptr i8, ptr {base}, i64 {offset}')}")

    def entry(self, base: str, index: str) -> str:
        """The pointer in place `index` of an array of pointers."""
        return self.op(f"load ptr, ptr {self.at(base, index)}")

    def require(self, condition: str, otherwise: str = "fallback") -> None:
        """Go on if the condition holds."""
        onward = self.label("on")
        self.choose(condition, onward, otherwise)
        self.start(onward)

    def require_array(self, array: str, spec: str, flags: int, *, joined: str) -> tuple[str, str]:
        """Go on if the object is an exact ndarray of float64 with these flags and the spec's shape; its bytes'
        first address and the one after the last."""
        self.require(self.op(f"icmp eq i64 {self.field(array, _TYPE)}, %ndarray"))
        self.require(self.op(f"icmp eq i64 {self.field(array, _DESCR)}, %descr"))
        masked = self.op(f"and i32 {self.field(array, _FLAGS, 'i32')}, {flags}")
        self.require(self.op(f"icmp eq i32 {masked}, {flags}"))
        axes = self.op(f"sext i32 {self.field(array, _ND, 'i32')} to i64")
        self.require(self.op(f"icmp eq i64 {axes}, {self.field(spec, 0)}"))
        # An array without axes has no extents to read.
        extents = self.field(array, _DIMS, "ptr")
        for k in (0, 1):
            look, same = self.label("look"), self.label("same")
            self.choose(self.op(f"icmp sgt i64 {axes}, {k}"), look, joined)
            self.start(look)
            equal = self.op(f"icmp eq i64 {self.field(extents, 8 * k)}, {self.field(spec, 8 * (k + 1))}")
            self.choose(equal, same, "fallback")
            self.start(same)
        self.branch(joined)
        self.start(joined)
        start = self.field(array, _DATA)
        return start, self.op(f"add i64 {start}, {self.field(spec, 8 * (_SPEC - 1))}")


def _text() -> str:
    w = _Trampoline()
    w.lines += [
        "declare void @Py_IncRef(ptr)",
        "declare void @Py_DecRef(ptr)",
        "declare ptr @PyTuple_New(i64)",
        "declare i32 @PyTuple_SetItem(ptr, i64, ptr)",
        "declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)",
        "define ptr @trampoline(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {",
    ]
    w.start("entry")
    w.line(f"%pointers = alloca [{MAX_ARRAYS} x ptr], align 16")
    w.line(f"%results = alloca [{MAX_ARRAYS} x ptr], align 16")
    w.line(f"%context = getelementptr i8, ptr {w.field('%self', _TUPLE_ITEMS, 'ptr')}, i64 {_BYTES_DATA}")
    for k, name in enumerate(_WORDS):
        w.line(f"%{name}.at = getelementptr i64, ptr %context, i64 {k}")
        w.line(f"%{name} = load {'ptr' if name in ('address', 'new', 'scratch') else 'i64'}, ptr %{name}.at")
    w.line(f"%data = getelementptr i64, ptr %context, i64 {len(_WORDS)}")
    w.line("%specs = getelementptr i64, ptr %data, i64 %ndata")
    w.require(w.op("icmp eq i64 %nargs, %nin"))
    _keyword_out(w)
    _inputs(w)
    _outputs(w)
    _run(w)
    w.start("fallback")
    careful = w.field("%self", _TUPLE_ITEMS + 8, "ptr")
    w.line(f"ret ptr {w.op(f'call ptr @PyObject_Vectorcall(ptr {careful}, ptr %args, i64 %nargs, ptr %kwnames)')}")
    w.lines.append("}")
    return "\n".join(w.lines) + "\n"


def _keyword_out(w: _Trampoline) -> None:
    """%target: the array given as `out`, or null; %low and %high: its bytes."""
    before = w.current
    w.choose(w.op("icmp eq ptr %kwnames, null"), "inputs", "named")
    w.start("named")
    w.require(w.op("icmp eq i64 %many, 0"))
    w.require(w.op(f"icmp eq i64 {w.field('%kwnames', _TUPLE_SIZE)}, 1"))
    w.require(w.op(f"icmp eq i64 {w.field('%kwnames', _TUPLE_ITEMS)}, %outname"))
    array = w.entry("%args", "%nargs")
    low, high = w.require_array(array, w.at("%specs", "%nin", _SPEC), _PLAIN | _WRITEABLE, joined="out")
    after = w.current
    w.branch("inputs")
    w.start("inputs")
    w.line(f"%target = phi ptr [ null, %{before} ], [ {array}, %{after} ]")
    w.line(f"%low = phi i64 [ 0, %{before} ], [ {low}, %{after} ]")
    w.line(f"%high = phi i64 [ 0, %{before} ], [ {high}, %{after} ]")


def _inputs(w: _Trampoline) -> None:
    """Check the inputs and put their addresses into %pointers."""

    def check(i: str) -> None:
        start, end = w.require_array(w.entry("%args", i), w.at("%specs", i, _SPEC), _PLAIN, joined="in")
        before, after = w.op(f"icmp ule i64 {end}, %low"), w.op(f"icmp uge i64 {start}, %high")
        w.require(w.op(f"or i1 {before}, {after}"))
        w.line(f"store i64 {start}, ptr {w.at('%pointers', i)}")

    w.repeat("0", "%nin", check)


def _outputs(w: _Trampoline) -> None:
    """Make the outputs, unless one was given: references into %results, addresses into %pointers."""

    def provide(o: str) -> None:
        place = w.op(f"add i64 %nin, {o}")
        before = w.current
        w.choose(w.op("icmp ne ptr %target, null"), "provided", "make")
        w.start("make")
        spec = w.at("%specs", place, _SPEC)
        axes = w.op(f"trunc i64 {w.field(spec, 0)} to i32")
        kind = w.op("inttoptr i64 %ndarray to ptr")
        shape = w.at(spec, "1")
        arguments = f"ptr {kind}, i32 {axes}, ptr {shape}, i32 {_DOUBLE}"
        fresh = w.op(f"call ptr %new({arguments}, ptr null, ptr null, i32 0, i32 0, ptr null)")
        w.choose(w.op(f"icmp eq ptr {fresh}, null"), "undo", "provided")
        w.start("provided")
        array = w.op(f"phi ptr [ %target, %{before} ], [ {fresh}, %make ]")
        w.line(f"store ptr {array}, ptr {w.at('%results', o)}")
        w.line(f"store i64 {w.field(array, _DATA)}, ptr {w.at('%pointers', place)}")
        w.line(f"store i64 {w.op(f'add i64 {o}, 1')}, ptr %made")

    w.lines.insert(w.lines.index("entry:") + 1, "  %made = alloca i64")
    w.line("store i64 0, ptr %made")
    w.repeat("0", "%nout", provide)


def _run(w: _Trampoline) -> None:
    """Run the kernel; return the array, or the arrays in a tuple; release what was made if memory ran out."""
    arrays = w.op("add i64 %nin, %nout")

    def constant(d: str) -> None:
        place = w.at("%pointers", w.op(f"add i64 {arrays}, {d}"))
        w.line(f"store ptr {w.entry('%data', d)}, ptr {place}")

    w.repeat("0", "%ndata", constant)
    w.line("call void %address(ptr %pointers, ptr null, ptr %scratch, i64 1)")
    w.choose(w.op("icmp eq i64 %many, 0"), "one", "several")

    w.start("one")
    result = w.op("load ptr, ptr %results")
    w.choose(w.op("icmp eq ptr %target, null"), "done", "borrowed")
    w.start("borrowed")
    w.line(f"call void @Py_IncRef(ptr {result})")
    w.branch("done")
    w.start("done")
    w.line(f"ret ptr {result}")

    w.start("several")
    pack = w.op("call ptr @PyTuple_New(i64 %nout)")
    w.require(w.op(f"icmp ne ptr {pack}, null"), otherwise="undo")
    w.repeat(
        "0",
        "%nout",
        lambda f: w.line(f"call i32 @PyTuple_SetItem(ptr {pack}, i64 {f}, ptr {w.entry('%results', f)})"),
    )
    w.line(f"ret ptr {pack}")

    w.start("undo")
    count = w.op("load i64, ptr %made")
    w.repeat("0", count, lambda u: w.line(f"call void @Py_DecRef(ptr {w.entry('%results', u)})"))
    w.line("ret ptr null")
