"""The short way from a Python call to native code: a built-in function that checks its arrays in machine code.

One trampoline serves every kernel. Its `self` is a tuple: (context, fallback, what must stay alive); the context
is a `bytes` of 64-bit words: the kernel's address, sizes, shapes and the addresses of types. It takes exact
ndarrays of float64, aligned, C-contiguous and of the very shape, and `out=` of the same sort that overlaps no
input; every other call goes to the fallback, the careful path, with the same arguments. The layout of arrays is
tested at first use; on any doubt there is no shortcut.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from linkwright.errors import KernelError
from linkwright.kernels import cache as disk
from linkwright.kernels import llvm_backend
from linkwright.kernels.kernel import Kernel

MAX_ARRAYS = 24
MAX_SCRATCH = 32_768  # numbers on the stack
MAX_WORK = 200_000  # operations for which the interpreter may be held

# Offsets in a 64-bit ndarray (NumPy's C structure), a tuple and the context.
_TYPE, _DATA, _ND, _DIMS, _DESCR, _FLAGS = 8, 16, 24, 32, 56, 64
_TUPLE_ITEMS, _TUPLE_SIZE = 24, 16
_BYTES_DATA = 32
_NEEDED = 0x101  # C-contiguous, aligned
_WRITEABLE = 0x400
_HEADER = 10  # words before the data pointers
_SPEC = 4  # words an array: number of axes, two extents, size in bytes

_FASTCALL_KEYWORDS = 0x0080 | 0x0002


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def shortcut(kernel: Kernel, fallback: Callable[..., Any], name: str, doc: str = "") -> Any:
    """A built-in function for one state of `kernel`, or None where it cannot be had or would not pay."""
    s = kernel.signature
    shapes = [shape for _, shape in (*s.inputs, *s.outputs)]
    if not supported() or any(len(shape) > 2 for shape in shapes) or s.work > MAX_WORK or not s.outputs:
        return None
    if s.scratch[1] > MAX_SCRATCH or (not s.single and len(s.outputs) < 2):
        return None
    variant = kernel.variant(1)
    if len(shapes) + len(variant.data) > MAX_ARRAYS:
        return None
    words = [
        variant.address,
        len(s.inputs),
        len(s.outputs),
        8 * s.scratch[1] + 64,
        id(np.ndarray),
        id(np.dtype(np.float64)),
        _array_api(93),  # PyArray_New
        id(sys.intern("out")),
        len(variant.data),
        0 if s.single else 1,
        *(d.ctypes.data for d in variant.data),
    ]
    for shape in shapes:
        extents = [*shape, 0, 0][:2]
        words += [len(shape), *extents, 8 * int(np.prod(shape, dtype=np.int64))]
    context = struct.pack(f"<{len(words)}Q", *words)
    definition = _MethodDef(name.encode(), _trampoline(), _FASTCALL_KEYWORDS, doc.encode() or None)
    kept = (kernel, variant, definition, np.dtype(np.float64))
    return _new_function()(ctypes.addressof(definition), (context, fallback, kept), None)


@cache
def supported() -> bool:
    """Whether this interpreter and this NumPy have the layout that the trampoline reads."""
    if platform.python_implementation() != "CPython" or struct.calcsize("P") != 8 or sys.byteorder != "little":
        return False
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    return bytes.__basicsize__ - 1 == _BYTES_DATA and _arrays_as_expected() and _tuples_as_expected()


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _arrays_as_expected() -> bool:
    for array in (np.zeros(7), np.zeros((2, 5)), np.zeros((4, 6))[:, ::2]):
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
            and bool(flags & 1) == array.flags.c_contiguous
            and bool(flags & 0x100) == array.flags.aligned
            and bool(flags & _WRITEABLE) == array.flags.writeable
        )
        if not expected:
            return False
    return True


def _tuples_as_expected() -> bool:
    items = (b"abc", "def", 3.0)
    at = id(items)
    inside = tuple(_word(at + _TUPLE_ITEMS + 8 * k) for k in range(3))
    return (
        _word(at + _TUPLE_SIZE) == 3
        and inside == tuple(id(x) for x in items)
        and ctypes.string_at(id(items[0]) + _BYTES_DATA, 3) == b"abc"
    )


def _array_api(index: int) -> int:
    """The address of a function of NumPy's C interface."""
    core = np._core if hasattr(np, "_core") else np.core  # type: ignore[attr-defined]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = pointer(core.multiarray._ARRAY_API, None)  # type: ignore[attr-defined]
    return _word(int(table) + 8 * index)


@cache
def _new_function() -> Any:
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return new


@cache
def _loaded_trampoline() -> llvm_backend.Loaded:
    symbols = ("Py_IncRef", "Py_DecRef", "PyTuple_New", "PyTuple_SetItem", "PyObject_Vectorcall")
    llvm_backend.add_symbols(
        {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in symbols}
    )
    text = _text()
    name = disk.key("trampoline", text, *llvm_backend.cpu())
    code = disk.read(name)
    if code is not None:
        try:
            return llvm_backend.Loaded(code)
        except KernelError:
            pass  # made anew below
    code = llvm_backend.object_code(text)
    disk.write(name, code)
    return llvm_backend.Loaded(code)


def _trampoline() -> int:
    return _loaded_trampoline().address("trampoline")


def _text() -> str:
    lines: list[str] = []
    serial = iter(range(10_000))

    def op(text: str) -> str:
        name = f"%t{next(serial)}"
        lines.append(f"  {name} = {text}")
        return name

    def field(base: str, offset: int | str, kind: str = "i64") -> str:
        at = op(f"getelementptr i8, ptr {base}, i64 {offset}")
        return op(f"load {kind}, ptr {at}")

    def every(conditions: Sequence[str], stem: str) -> None:
        """Go on if all conditions hold, else to the fallback."""
        for k, condition in enumerate(conditions):
            lines.append(f"  br i1 {condition}, label %{stem}{k}, label %fallback")
            lines.append(f"{stem}{k}:")

    def is_array(obj: str, spec: str, flags: int) -> list[str]:
        """Exact type, dtype, flags and shape; conditions that are safe to test in turn are grouped."""
        found_flags = field(obj, _FLAGS, "i32")
        masked = op(f"and i32 {found_flags}, {flags}")
        wanted_nd = field(spec, 0)
        nd = op(f"sext i32 {field(obj, _ND, 'i32')} to i64")
        return [
            op(f"icmp eq i64 {field(obj, _DESCR)}, %descr"),
            op(f"icmp eq i32 {masked}, {flags}"),
            op(f"icmp eq i64 {nd}, {wanted_nd}"),
        ]

    def extents(obj: str, spec: str, stem: str) -> None:
        """Compare the one or two extents; an array without axes has none to read."""
        nd = field(spec, 0)
        dims = field(obj, _DIMS, "ptr")
        for k in (0, 1):
            has = op(f"icmp sgt i64 {nd}, {k}")
            lines.append(f"  br i1 {has}, label %{stem}look{k}, label %{stem}ok")
            lines.append(f"{stem}look{k}:")
            same = op(f"icmp eq i64 {field(dims, 8 * k)}, {field(spec, 8 * (k + 1))}")
            lines.append(f"  br i1 {same}, label %{stem}next{k}, label %fallback")
            lines.append(f"{stem}next{k}:")
        lines.append(f"  br label %{stem}ok")
        lines.append(f"{stem}ok:")

    lines += [
        "declare void @Py_IncRef(ptr)",
        "declare void @Py_DecRef(ptr)",
        "declare ptr @PyTuple_New(i64)",
        "declare i32 @PyTuple_SetItem(ptr, i64, ptr)",
        "declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)",
        "define ptr @trampoline(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {",
        "entry:",
        f"  %ptrs = alloca [{MAX_ARRAYS} x ptr], align 16",
        f"  %results = alloca [{MAX_ARRAYS} x ptr], align 16",
    ]
    holder = field("%self", _TUPLE_ITEMS, "ptr")
    lines.append(f"  %context = getelementptr i8, ptr {holder}, i64 {_BYTES_DATA}")
    for k, name in enumerate(("address", "nin", "nout", "scratch", "ndarray", "descr", "new", "outname", "ndata", "many")):
        kind = "ptr" if name in ("address", "new") else "i64"
        lines.append(f"  %{name}.at = getelementptr i8, ptr %context, i64 {8 * k}")
        lines.append(f"  %{name} = load {kind}, ptr %{name}.at")
    lines += [
        "  %data = getelementptr i8, ptr %context, i64 80",
        "  %specs.skip = mul i64 %ndata, 8",
        "  %specs = getelementptr i8, ptr %data, i64 %specs.skip",
        "  %right = icmp eq i64 %nargs, %nin",
        "  br i1 %right, label %counted, label %fallback",
        "counted:",
        "  %plain = icmp eq ptr %kwnames, null",
        "  br i1 %plain, label %inputs, label %named",
        "named:",
    ]
    one = op(f"icmp eq i64 {field('%kwnames', _TUPLE_SIZE)}, 1")
    every([one], "onename")
    single = op("icmp eq i64 %many, 0")
    same = op(f"icmp eq i64 {field('%kwnames', _TUPLE_ITEMS)}, %outname")
    every([same, single], "outname")
    lines += [
        "  %given.at = getelementptr ptr, ptr %args, i64 %nargs",
        "  %given = load ptr, ptr %given.at",
    ]
    every([op(f"icmp eq i64 {field('%given', _TYPE)}, %ndarray")], "outtype")
    lines += [f"  %outskip = mul i64 %nin, {8 * _SPEC}", "  %outspec = getelementptr i8, ptr %specs, i64 %outskip"]
    every(is_array("%given", "%outspec", _NEEDED | _WRITEABLE), "outarray")
    extents("%given", "%outspec", "out")
    lines += [
        f"  %given.data.at = getelementptr i8, ptr %given, i64 {_DATA}",
        "  %given.data = load i64, ptr %given.data.at",
        f"  %given.bytes.at = getelementptr i8, ptr %outspec, i64 {8 * (_SPEC - 1)}",
        "  %given.bytes = load i64, ptr %given.bytes.at",
        "  %given.end = add i64 %given.data, %given.bytes",
        "  br label %inputs",
        "inputs:",
        "  %target = phi ptr [ null, %counted ], [ %given, %outok ]",
        "  %low = phi i64 [ 0, %counted ], [ %given.data, %outok ]",
        "  %high = phi i64 [ 0, %counted ], [ %given.end, %outok ]",
        "  br label %check",
        "check:",
        "  %i = phi i64 [ 0, %inputs ], [ %i.next, %accepted ]",
        "  %more = icmp slt i64 %i, %nin",
        "  br i1 %more, label %look, label %outputs",
        "look:",
        "  %arg.at = getelementptr ptr, ptr %args, i64 %i",
        "  %arg = load ptr, ptr %arg.at",
        f"  %spec.skip = mul i64 %i, {8 * _SPEC}",
        "  %spec = getelementptr i8, ptr %specs, i64 %spec.skip",
    ]
    every([op(f"icmp eq i64 {field('%arg', _TYPE)}, %ndarray")], "intype")
    every(is_array("%arg", "%spec", _NEEDED), "inarray")
    extents("%arg", "%spec", "in")
    start = field("%arg", _DATA)
    end = op(f"add i64 {start}, {field('%spec', 8 * (_SPEC - 1))}")
    before, after = op(f"icmp ule i64 {end}, %low"), op(f"icmp uge i64 {start}, %high")
    every([op(f"or i1 {before}, {after}")], "apart")
    pointer = op(f"inttoptr i64 {start} to ptr")
    place = op("getelementptr ptr, ptr %ptrs, i64 %i")
    lines += [f"  store ptr {pointer}, ptr {place}", "  br label %accepted", "accepted:"]
    lines += [
        "  %i.next = add i64 %i, 1",
        "  br label %check",
        "outputs:",
        "  %o = phi i64 [ 0, %check ], [ %o.next, %kept ]",
        "  %o.more = icmp slt i64 %o, %nout",
        "  br i1 %o.more, label %wanted, label %filled",
        "wanted:",
        "  %o.arg = add i64 %nin, %o",
        f"  %o.skip = mul i64 %o.arg, {8 * _SPEC}",
        "  %o.spec = getelementptr i8, ptr %specs, i64 %o.skip",
        "  %have = icmp ne ptr %target, null",
        "  br i1 %have, label %kept, label %make",
        "make:",
        "  %o.nd64 = load i64, ptr %o.spec",
        "  %o.nd = trunc i64 %o.nd64 to i32",
        "  %o.dims = getelementptr i8, ptr %o.spec, i64 8",
        "  %ndarray.ptr = inttoptr i64 %ndarray to ptr",
        "  %fresh = call ptr %new(ptr %ndarray.ptr, i32 %o.nd, ptr %o.dims, i32 12, ptr null, ptr null, "
        "i32 0, i32 0, ptr null)",
        "  %o.slot = getelementptr ptr, ptr %results, i64 %o",
        "  store ptr %fresh, ptr %o.slot",
        "  %failed = icmp eq ptr %fresh, null",
        "  br i1 %failed, label %undo, label %kept",
        "kept:",
        "  %array = phi ptr [ %target, %wanted ], [ %fresh, %make ]",
    ]
    lines += [
        f"  %o.data.at = getelementptr i8, ptr %array, i64 {_DATA}",
        "  %o.data = load ptr, ptr %o.data.at",
        "  %o.place = getelementptr ptr, ptr %ptrs, i64 %o.arg",
        "  store ptr %o.data, ptr %o.place",
        "  %o.keep = getelementptr ptr, ptr %results, i64 %o",
        "  store ptr %array, ptr %o.keep",
        "  %o.next = add i64 %o, 1",
        "  br label %outputs",
        "filled:",
        "  %arrays = add i64 %nin, %nout",
        "  br label %constants",
        "constants:",
        "  %d = phi i64 [ 0, %filled ], [ %d.next, %constant ]",
        "  %d.more = icmp slt i64 %d, %ndata",
        "  br i1 %d.more, label %constant, label %run",
        "constant:",
        "  %d.from = getelementptr ptr, ptr %data, i64 %d",
        "  %d.value = load ptr, ptr %d.from",
        "  %d.at = add i64 %arrays, %d",
        "  %d.place = getelementptr ptr, ptr %ptrs, i64 %d.at",
        "  store ptr %d.value, ptr %d.place",
        "  %d.next = add i64 %d, 1",
        "  br label %constants",
        "run:",
        "  %room = alloca i8, i64 %scratch, align 64",
        "  call void %address(ptr %ptrs, ptr null, ptr %room, i64 1)",
        "  %several = icmp ne i64 %many, 0",
        "  br i1 %several, label %tuple, label %one",
        "one:",
        "  %result = load ptr, ptr %results",
        "  %borrowed = icmp ne ptr %target, null",
        "  br i1 %borrowed, label %own, label %done",
        "own:",
        "  call void @Py_IncRef(ptr %result)",
        "  br label %done",
        "done:",
        "  ret ptr %result",
        "tuple:",
        "  %pack = call ptr @PyTuple_New(i64 %nout)",
        "  %nopack = icmp eq ptr %pack, null",
        "  br i1 %nopack, label %undo, label %fill",
        "fill:",
        "  %f = phi i64 [ 0, %tuple ], [ %f.next, %fill ]",
        "  %f.at = getelementptr ptr, ptr %results, i64 %f",
        "  %f.value = load ptr, ptr %f.at",
        "  %ignored = call i32 @PyTuple_SetItem(ptr %pack, i64 %f, ptr %f.value)",
        "  %f.next = add i64 %f, 1",
        "  %f.more = icmp slt i64 %f.next, %nout",
        "  br i1 %f.more, label %fill, label %packed",
        "packed:",
        "  ret ptr %pack",
        "undo:",
        "  %made = phi i64 [ %o, %make ], [ %nout, %tuple ]",
        "  br label %release",
        "release:",
        "  %u = phi i64 [ 0, %undo ], [ %u.next, %drop ]",
        "  %u.more = icmp slt i64 %u, %made",
        "  br i1 %u.more, label %drop, label %fail",
        "drop:",
        "  %u.at = getelementptr ptr, ptr %results, i64 %u",
        "  %u.value = load ptr, ptr %u.at",
        "  call void @Py_DecRef(ptr %u.value)",
        "  %u.next = add i64 %u, 1",
        "  br label %release",
        "fail:",
        "  ret ptr null",
        "fallback:",
    ]
    careful = field("%self", _TUPLE_ITEMS + 8, "ptr")
    answer = op(f"call ptr @PyObject_Vectorcall(ptr {careful}, ptr %args, i64 %nargs, ptr %kwnames)")
    lines += [f"  ret ptr {answer}", "}"]
    return "\n".join(lines) + "\n"
