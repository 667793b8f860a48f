"""The native code of the short way: it reads a Python call in machine code, and what it relies on in CPython and NumPy.

One trampoline serves every built-in function. Its `self` is a tuple (context, fallback, lifetime); the context is a
`bytes` with the address of a table of the calls that the function knows (`callpath`). A call that is one of them runs
its kernel; every other call goes to the fallback with the same arguments. The layout of objects is tested at first use.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
import sysconfig
from functools import cache
from typing import Any
from warnings import warn

import numpy as np

from linkwright.base.arguments import outside
from linkwright.base.locks import Lock
from linkwright.errors import KernelError, LinkwrightWarning
from linkwright.kernels.llvm.compiler import Code, add_symbols, cpu, key, load, object_code, read, write
from linkwright.kernels.llvm.instructions import Writer

MAX_ARRAYS = 24  # inputs, outputs and data of a kernel
MAX_PLACES = 16  # arguments of a call

# Offsets in a 64-bit ndarray (NumPy's C structure), a tuple, a bytes object and a float.
_TYPE, _DATA, _ND, _DIMS, _DESCR, _FLAGS = 8, 16, 24, 32, 56, 64
_TUPLE_ITEMS, _TUPLE_SIZE = tuple.__basicsize__, 16  # since Python 3.14 a tuple keeps its hash before its items
_BYTES_DATA = 32
_FLOAT = 16
_PLAIN = 0x101  # C-contiguous, aligned
_WRITEABLE = 0x400
_NUMPY_ABIS = (0x0100_0009, 0x0200_0000)
_GET_ABI, NEW = 0, 93  # places in NumPy's table of functions
_DOUBLE = 12  # NumPy's number of float64

#: The words of a table, before the addresses of its calls, ...
TABLE = ("count", "texts", "ndarray", "descr", "new", "float", "scalar", "text")
#: ... and those of a call, before its slots (the kernel's arrays), its keywords, its places and its outputs' specs.
CALL = ("address", "scratch", "nargs", "nwords", "nslots", "nin", "nout", "many", "target")
#: The words of a place: what it takes, the slot that it fills, and a spec or (constant, whether it is a text).
PLACE = 6
ARRAY, TARGET, CONSTANT, NUMBER = range(4)
SPEC = 4  # words: number of axes, two extents, size in bytes


# -- what the trampoline relies on ---------------------------------------------------------------------------
@cache
def supported() -> bool:
    """Whether this interpreter and this NumPy have the layout that the trampoline reads; a warning where not."""
    reason = _doubt()
    if reason:
        warn(
            f"native calls are disabled, each call for one state takes about 10 µs longer: {reason}",
            LinkwrightWarning,
            stacklevel=outside(),
        )
    return not reason


def _doubt() -> str:
    """Why the short way is not taken here; nothing where it is."""
    if platform.python_implementation() != "CPython" or struct.calcsize("P") != 8 or sys.byteorder != "little":
        return "they are for 64-bit CPython on little-endian processors"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "free-threaded Python is not supported"
    known = (
        bytes.__basicsize__ - 1 == _BYTES_DATA
        and _arrays_as_expected()
        and _tuples_as_expected()
        and _floats_as_expected()
        and ctypes.CFUNCTYPE(ctypes.c_uint)(array_api(_GET_ABI))() in _NUMPY_ABIS
    )
    versions = f"Python {platform.python_version()} with NumPy {np.__version__}"
    return "" if known else f"the memory layout of {versions} is not known"


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
    contents = (b"abc", "def", 3.0)
    for items in (contents, type("Items", (tuple,), {"__slots__": ()})(contents)):
        at = id(items)
        inside = tuple(_word(at + _TUPLE_ITEMS + 8 * k) for k in range(3))
        if _word(at + _TUPLE_SIZE) != 3 or inside != tuple(id(x) for x in items):
            return False
    return ctypes.string_at(id(contents[0]) + _BYTES_DATA, 3) == b"abc"


def _floats_as_expected() -> bool:
    numbers = (0.1, np.float64(0.1))
    return all(ctypes.c_double.from_address(id(x) + _FLOAT).value == 0.1 for x in numbers)


def array_api(index: int) -> int:
    """The address of a function of NumPy's C interface."""
    core: Any = np._core if hasattr(np, "_core") else np.core
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = pointer(core.multiarray._ARRAY_API, None)
    return _word(int(table) + 8 * index)


# -- the code --------------------------------------------------------------------------------------------------
_CALLED = ("Py_IncRef", "Py_DecRef", "PyTuple_New", "PyTuple_SetItem", "PyObject_Vectorcall", "PyUnicode_Compare")
_loading = Lock()
_loaded: list[Code] = []


def trampoline() -> int:
    """The address of the trampoline, loaded once."""
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
    """The text of the trampoline: what it reads of objects, and where it continues."""

    def field(self, base: str, offset: int, kind: str = "i64") -> str:
        """What lies `offset` bytes after a pointer."""
        return self.op(f"load {kind}, ptr {self.op(f'getelementptr i8, ptr {base}, i64 {offset}')}")

    def entry(self, base: str, index: str, kind: str = "ptr") -> str:
        """The word in place `index` of an array of words."""
        return self.op(f"load {kind}, ptr {self.at(base, index)}")

    def words(self, base: str, names: tuple[str, ...], pointers: tuple[str, ...]) -> None:
        """Name the words that an array begins with."""
        for k, name in enumerate(names):
            self.line(f"%{name}.at = getelementptr i64, ptr {base}, i64 {k}")
            self.line(f"%{name} = load {'ptr' if name in pointers else 'i64'}, ptr %{name}.at")

    def require(self, condition: str, otherwise: str = "next") -> None:
        """Continue if the condition holds."""
        onward = self.label("on")
        self.choose(condition, onward, otherwise)
        self.start(onward)

    def require_array(self, array: str, spec: str, flags: str) -> tuple[str, str]:
        """Continue if the object is an exact ndarray of float64 with these flags and the spec's shape; its bytes'
        first address and the one after the last."""
        self.require(self.op(f"icmp eq i64 {self.field(array, _TYPE)}, %ndarray"))
        self.require(self.op(f"icmp eq i64 {self.field(array, _DESCR)}, %descr"))
        masked = self.op(f"and i32 {self.field(array, _FLAGS, 'i32')}, {flags}")
        self.require(self.op(f"icmp eq i32 {masked}, {flags}"))
        axes = self.op(f"sext i32 {self.field(array, _ND, 'i32')} to i64")
        self.require(self.op(f"icmp eq i64 {axes}, {self.field(spec, 0)}"))
        # An array without axes has no extents to read.
        extents, joined = self.field(array, _DIMS, "ptr"), self.label("joined")
        for k in (0, 1):
            look, same = self.label("look"), self.label("same")
            self.choose(self.op(f"icmp sgt i64 {axes}, {k}"), look, joined)
            self.start(look)
            equal = self.op(f"icmp eq i64 {self.field(extents, 8 * k)}, {self.field(spec, 8 * (k + 1))}")
            self.choose(equal, same, "next")
            self.start(same)
        self.branch(joined)
        self.start(joined)
        start = self.field(array, _DATA)
        return start, self.op(f"add i64 {start}, {self.field(spec, 8 * (SPEC - 1))}")


def _text() -> str:
    w = _Trampoline()
    w.lines += [
        "declare void @Py_IncRef(ptr)",
        "declare void @Py_DecRef(ptr)",
        "declare ptr @PyTuple_New(i64)",
        "declare i32 @PyTuple_SetItem(ptr, i64, ptr)",
        "declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)",
        "declare i32 @PyUnicode_Compare(ptr, ptr)",
        "define ptr @trampoline(ptr %self, ptr %args, i64 %nargs.here, ptr %kwnames) {",
    ]
    w.start("entry")
    w.line(f"%pointers = alloca [{MAX_ARRAYS + 1} x ptr], align 16")
    w.line(f"%results = alloca [{MAX_ARRAYS} x ptr], align 16")
    w.line(f"%starts = alloca [{MAX_PLACES} x i64], align 16")
    w.line(f"%stops = alloca [{MAX_PLACES} x i64], align 16")
    w.line("%made = alloca i64")
    w.line(f"%context = getelementptr i8, ptr {w.field('%self', _TUPLE_ITEMS, 'ptr')}, i64 {_BYTES_DATA}")
    w.line("%table = load ptr, ptr %context")
    w.words("%table", TABLE, ("new",))
    w.line(f"%calls = getelementptr i64, ptr %table, i64 {len(TABLE)}")
    w.choose(w.op("icmp eq ptr %kwnames, null"), "scan", "named")
    w.start("named")
    number = w.field("%kwnames", _TUPLE_SIZE)
    w.branch("scan")
    w.start("scan")  # the calls that it knows: first texts by their addresses, then by their letters
    w.line("%loose = phi i1 [ false, %entry ], [ false, %named ], [ true, %exhausted ]")
    w.line(f"%nwords.here = phi i64 [ 0, %entry ], [ {number}, %named ], [ %nwords.here, %exhausted ]")
    w.branch("each")
    w.start("each")
    w.line("%i = phi i64 [ 0, %scan ], [ %i.next, %next ]")
    w.choose(w.op("icmp slt i64 %i, %count"), "try", "exhausted")
    w.start("next")
    w.line("%i.next = add i64 %i, 1")
    w.branch("each")
    w.start("exhausted")
    again = w.op(f"and i1 {w.op('icmp ne i64 %texts, 0')}, {w.op('xor i1 %loose, true')}")
    w.choose(again, "scan", "fallback")
    _match(w)
    _outputs(w)
    _run(w)
    w.start("fallback")
    careful = w.field("%self", _TUPLE_ITEMS + 8, "ptr")
    arguments = f"ptr {careful}, ptr %args, i64 %nargs.here, ptr %kwnames"
    w.line(f"ret ptr {w.op(f'call ptr @PyObject_Vectorcall({arguments})')}")
    w.lines.append("}")
    return "\n".join(w.lines) + "\n"


def _match(w: _Trampoline) -> None:
    """Compare the call with the i-th known one, and fill the slots of its kernel."""
    w.start("try")
    known = w.at("%calls", "%i")
    w.line(f"%call = load ptr, ptr {known}")
    w.words("%call", CALL, ("address", "scratch"))
    w.line(f"%slots = getelementptr i64, ptr %call, i64 {len(CALL)}")
    w.line("%words = getelementptr i64, ptr %slots, i64 %nslots")
    w.line("%places = getelementptr i64, ptr %words, i64 %nwords")
    w.line("%nplaces = add i64 %nargs, %nwords")
    w.require(w.op("icmp eq i64 %nargs, %nargs.here"))
    w.require(w.op("icmp eq i64 %nwords, %nwords.here"))

    def keyword(k: str) -> None:
        items = w.op(f"getelementptr i8, ptr %kwnames, i64 {_TUPLE_ITEMS}")
        w.require(w.op(f"icmp eq i64 {w.entry(items, k, 'i64')}, {w.entry('%words', k, 'i64')}"))

    w.repeat("0", "%nwords", keyword)
    w.repeat("0", "%nslots", lambda s: w.line(f"store ptr {w.entry('%slots', s)}, ptr {w.at('%pointers', s)}"))
    w.repeat("0", "%nplaces", lambda p: _place(w, p))
    w.choose(w.op("icmp sge i64 %target, 0"), "apart", "matched")
    w.start("apart")  # `out` shares no byte with an input
    low, high = w.entry("%starts", "%target", "i64"), w.entry("%stops", "%target", "i64")

    def apart(p: str) -> None:
        before = w.op(f"icmp ule i64 {w.entry('%stops', p, 'i64')}, {low}")
        after = w.op(f"icmp uge i64 {w.entry('%starts', p, 'i64')}, {high}")
        itself = w.op(f"icmp eq i64 {p}, %target")
        w.require(w.op(f"or i1 {w.op(f'or i1 {before}, {after}')}, {itself}"))

    w.repeat("0", "%nplaces", apart)
    w.branch("matched")
    w.start("matched")  # a call that is made often comes to stand before others
    w.choose(w.op("icmp sgt i64 %i, 0"), "forward", "outputs")
    w.start("forward")
    here, before = w.at("%calls", "%i"), w.at("%calls", w.op("sub i64 %i, 1"))
    w.line(f"store ptr {w.op(f'load ptr, ptr {before}')}, ptr {here}")
    w.line(f"store ptr %call, ptr {before}")
    w.branch("outputs")


def _place(w: _Trampoline, p: str) -> None:
    """Check an argument, put its address into its slot, and note its bytes."""
    place, thing = w.at("%places", p, PLACE), w.entry("%args", p)
    kind, slot, spec = w.field(place, 0), w.at("%pointers", w.field(place, 8)), w.at(place, "2")
    array, other, constant, number = (w.label(x) for x in ("array", "other", "constant", "number"))
    text, done = w.label("text"), w.label("done")
    w.choose(w.op(f"icmp sle i64 {kind}, {TARGET}"), array, other)
    w.start(array)
    writable = w.op(f"icmp eq i64 {kind}, {TARGET}")
    start, stop = w.require_array(thing, spec, w.op(f"select i1 {writable}, i32 {_PLAIN | _WRITEABLE}, i32 {_PLAIN}"))
    w.line(f"store i64 {start}, ptr {slot}")
    last = w.current
    w.branch(done)
    w.start(other)
    w.choose(w.op(f"icmp eq i64 {kind}, {CONSTANT}"), constant, number)
    w.start(constant)
    wanted = w.field(spec, 0, "ptr")
    w.choose(w.op(f"icmp eq ptr {thing}, {wanted}"), done, text)
    w.start(text)
    w.require("%loose")
    w.require(w.op(f"icmp ne i64 {w.field(spec, 8)}, 0"))
    w.require(w.op(f"icmp eq i64 {w.field(thing, _TYPE)}, %text"))
    order = w.op(f"call i32 @PyUnicode_Compare(ptr {thing}, ptr {wanted})")
    w.require(w.op(f"icmp eq i32 {order}, 0"))
    compared = w.current
    w.branch(done)
    w.start(number)
    sort = w.field(thing, _TYPE)
    plain, scalar = w.op(f"icmp eq i64 {sort}, %float"), w.op(f"icmp eq i64 {sort}, %scalar")
    w.require(w.op(f"or i1 {plain}, {scalar}"))
    w.line(f"store ptr {w.op(f'getelementptr i8, ptr {thing}, i64 {_FLOAT}')}, ptr {slot}")
    counted = w.current
    w.branch(done)
    w.start(done)
    none = "".join(f", [ 0, %{label} ]" for label in (constant, compared, counted))
    first, end = (w.op(f"phi i64 [ {x}, %{last} ]{none}") for x in (start, stop))
    w.line(f"store i64 {first}, ptr {w.at('%starts', p)}")
    w.line(f"store i64 {end}, ptr {w.at('%stops', p)}")


def _outputs(w: _Trampoline) -> None:
    """Make the outputs, unless one was given: references into %results, addresses into %pointers."""
    w.start("outputs")
    w.line("store i64 0, ptr %made")
    specs = w.at("%places", "%nplaces", PLACE)
    supplied = w.op("icmp sge i64 %target, 0")
    where = w.op(f"select i1 {supplied}, i64 %target, i64 0")
    # Without arguments there is nothing to read; the address is not used then.
    source = w.op(f"select i1 {supplied}, ptr {w.at('%args', where)}, ptr %pointers")
    w.line(f"%given = select i1 {supplied}, ptr {w.op(f'load ptr, ptr {source}')}, ptr null")

    def provide(o: str) -> None:
        place = w.op(f"add i64 %nin, {o}")
        before = w.current
        w.choose(w.op("icmp ne ptr %given, null"), "provided", "make")
        w.start("make")
        spec = w.at(specs, o, SPEC)
        axes = w.op(f"trunc i64 {w.field(spec, 0)} to i32")
        kind = w.op("inttoptr i64 %ndarray to ptr")
        arguments = f"ptr {kind}, i32 {axes}, ptr {w.at(spec, '1')}, i32 {_DOUBLE}"
        fresh = w.op(f"call ptr %new({arguments}, ptr null, ptr null, i32 0, i32 0, ptr null)")
        w.choose(w.op(f"icmp eq ptr {fresh}, null"), "undo", "provided")
        w.start("provided")
        array = w.op(f"phi ptr [ %given, %{before} ], [ {fresh}, %make ]")
        w.line(f"store ptr {array}, ptr {w.at('%results', o)}")
        w.line(f"store i64 {w.field(array, _DATA)}, ptr {w.at('%pointers', place)}")
        w.line(f"store i64 {w.op(f'add i64 {o}, 1')}, ptr %made")

    w.repeat("0", "%nout", provide)


def _run(w: _Trampoline) -> None:
    """Run the kernel; return the array, or the arrays in a tuple; release what was made if memory ran out."""
    w.line("call void %address(ptr %pointers, ptr null, ptr %scratch, i64 1)")
    w.choose(w.op("icmp eq i64 %many, 0"), "one", "several")

    w.start("one")
    array = w.op("load ptr, ptr %results")
    w.choose(w.op("icmp eq ptr %given, null"), "done", "borrowed")
    w.start("borrowed")
    w.line(f"call void @Py_IncRef(ptr {array})")
    w.branch("done")
    w.start("done")
    w.line(f"ret ptr {array}")

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
