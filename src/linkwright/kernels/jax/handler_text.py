"""The LLVM text of the handler of XLA's calls, and the declarations of XLA's structures that it relies on.

`@handler(frame, table)` looks in a call frame for the call's arrays and for how many states they hold, and runs the
kernel of the table over them: float64 as it is, float32 converted to it and back in pieces. Large batches are shared
out to threads, as those of other calls of kernels are.
"""

from __future__ import annotations

import re

from linkwright.kernels.kernel import THREAD_WORK
from linkwright.kernels.llvm.instructions import Writer

#: The words of a kernel's table, before the sizes and numbers of axes of its arrays, and the addresses of its data.
TABLE = ("code", "lanes.code", "scratch", "lanes.scratch", "lanes", "nin", "nout", "ndata", "threads", "work", "total")
MOST_THREADS = 64
_PIECE = 64  # states of float32 that are converted at a time
_JOB = 6  # words of a thread's job: frame, table, first state, end, whether in lanes, whether it failed
_FAILED = 5

_HEAD = "size_t struct_size; XLA_FFI_Extension_Base* extension_start; "
#: What XLA's header says of the structures that lie inside others, word by word but for `const`, ...
INSIDE = {
    "Extension_Base": "size_t struct_size; XLA_FFI_Extension_Type type; struct XLA_FFI_Extension_Base* next;",
    "Api_Version": f"{_HEAD}int major_version; int minor_version;",
    "Args": f"{_HEAD}int64_t size; XLA_FFI_ArgType* types; void** args;",
    "Rets": f"{_HEAD}int64_t size; XLA_FFI_RetType* types; void** rets;",
}
#: ... what the others begin with, ...
OUTSIDE = {
    "Buffer": f"{_HEAD}XLA_FFI_DataType dtype; void* data; int64_t rank; int64_t* dims;",
    "CallFrame": f"{_HEAD}XLA_FFI_Api* api; XLA_FFI_ExecutionContext* ctx; XLA_FFI_ExecutionStage stage; "
    "XLA_FFI_Args args; XLA_FFI_Rets rets; XLA_FFI_Attrs attrs;",
    "Metadata": "size_t struct_size; XLA_FFI_Api_Version api_version; XLA_FFI_Handler_Traits traits;",
    "Metadata_Extension": "XLA_FFI_Extension_Base extension_base; XLA_FFI_Metadata* metadata;",
    "Error_Create_Args": f"{_HEAD}char* message; XLA_FFI_Error_Code errc;",
    "Api": f"{_HEAD}XLA_FFI_Api_Version api_version; XLA_FFI_InternalApi* internal_api; "
    "_XLA_FFI_API_STRUCT_FIELD(XLA_FFI_Error_Create);",
}
#: ... and its numbers.
NUMBERS = {
    "Extension_Metadata": 1,
    "ExecutionStage_EXECUTE": 3,
    "DataType_F32": 11,
    "DataType_F64": 12,
    "Error_Code_INVALID_ARGUMENT": 3,
    "Error_Code_RESOURCE_EXHAUSTED": 8,
}
# Offsets that follow from these declarations.
_EXTENSION, _API, _STAGE, _ARGS, _RETS = 8, 16, 32, 40, 80
_COUNT, _ENTRIES = 16, 32  # in Args and Rets
_DTYPE, _DATA, _RANK, _DIMS = 16, 24, 32, 40
_EXTENSION_TYPE, _METADATA, _MAJOR, _MINOR, _TRAITS, _STATE_TYPE = 8, 24, 24, 28, 32, 40
_STATEFUL = "XLA_FFI_Handler_Traits traits; XLA_FFI_TypeId state_type_id;"  # not in all versions
_ERROR_CREATE, _ERROR_WORDS, _ERROR_SIZE = 48, 4, 28
_FRAME_SIZE, _BUFFER_SIZE = 168, 48


def layout_doubt(header: str) -> str:
    """What a header of XLA's declares in another way than is known here; "" where it agrees."""
    text = _plain(header)
    for name, fields in (INSIDE | OUTSIDE).items():
        match = re.search(rf"struct XLA_FFI_{name} {{ ([^}}]*)}}", text)
        declared = match[1].strip() if match else ""
        if not (declared == fields if name in INSIDE else declared.startswith(fields)):
            return f"XLA_FFI_{name}"
    for name, number in NUMBERS.items():
        if not re.search(rf"\bXLA_FFI_{name} = {number}\b", text):
            return f"XLA_FFI_{name}"
    return "" if len(stated_version(header)) == 2 else "XLA_FFI_API_MAJOR and XLA_FFI_API_MINOR"


#: Names of newer headers, and what the same things were called before.
_RENAMED = {
    "InternalExtension_Type": "Extension_Type",
    "InternalExtension": "Extension_Base",
    "InvokeContext": "ExecutionContext",
}


def _plain(header: str) -> str:
    """Without comments, line breaks and `const`, by the older names."""
    text = " ".join(re.sub(r"//[^\n]*|\bconst\b", "", header).split())
    for new, old in _RENAMED.items():
        text = re.sub(rf"\bXLA_FFI_{new}\b", f"XLA_FFI_{old}", text)
    return text


def stated_version(header: str) -> list[int]:
    """The major and the minor version of the interface that a header states."""
    return [int(x) for x in re.findall(r"#define XLA_FFI_API_(?:MAJOR|MINOR) (\d+)", header)]


class _Handler(Writer):
    """The text of a function of the handler."""

    def whole(self, operation: str, a: str | int, b: str | int) -> str:
        """An operation on two whole numbers, as in `add`."""
        return self.op(f"{operation} i64 {a}, {b}")

    def test(self, comparison: str, a: str, b: str | int, kind: str = "i64") -> str:
        """A comparison, as in `slt`."""
        return self.op(f"icmp {comparison} {kind} {a}, {b}")

    def either(self, condition: str, a: str, b: str, kind: str = "i64") -> str:
        """One of two values."""
        return self.op(f"select i1 {condition}, {kind} {a}, {kind} {b}")

    def least(self, a: str, b: str) -> str:
        """The smaller one of two whole numbers."""
        return self.either(self.test("slt", a, b), a, b)

    def place(self, base: str, offset: int) -> str:
        """The address `offset` bytes after a pointer."""
        return self.op(f"getelementptr i8, ptr {base}, i64 {offset}")

    def field(self, base: str, offset: int, kind: str = "i64") -> str:
        """What lies `offset` bytes after a pointer."""
        return self.op(f"load {kind}, ptr {self.place(base, offset)}")

    def word(self, name: str, kind: str = "i64") -> str:
        """A word of the table."""
        return self.field("%table", 8 * TABLE.index(name), kind)

    def entry(self, base: str, index: str, kind: str = "i64") -> str:
        """The word in place `index` of an array of words."""
        return self.op(f"load {kind}, ptr {self.at(base, index)}")

    def put(self, value: str, base: str, index: str, kind: str = "i64") -> None:
        """Write a word of an array of words."""
        self.line(f"store {kind} {value}, ptr {self.at(base, index)}")

    def variable(self, name: str, value: str) -> None:
        """A whole number that changes."""
        self.line(f"{name} = alloca i64")
        self.line(f"store i64 {value}, ptr {name}")

    def change(self, name: str, operation: str, by: str) -> None:
        """Add to a variable, multiply it, ..."""
        self.line(f"store i64 {self.whole(operation, self.op(f'load i64, ptr {name}'), by)}, ptr {name}")

    def require(self, condition: str, otherwise: str) -> None:
        """Continue if the condition holds."""
        onward = self.label("on")
        self.choose(condition, onward, otherwise)
        self.start(onward)

    def buffer(self, k: str) -> str:
        """The k-th array of the call: the inputs, then the outputs."""
        nin = self.word("nin")
        inside = self.test("slt", k, nin)
        inputs, outputs = (self.field("%frame", side + _ENTRIES, "ptr") for side in (_ARGS, _RETS))
        place = self.either(inside, k, self.whole("sub", k, nin))
        return self.entry(self.either(inside, inputs, outputs, "ptr"), place, "ptr")

    def sizes(self) -> tuple[str, str]:
        """The numbers of a state of each array, and its axes."""
        sizes = self.place("%table", 8 * len(TABLE))
        return sizes, self.at(sizes, self.whole("add", self.word("nin"), self.word("nout")))


def handler_text(header: str) -> str:
    """The text of the handler, for the interface of this header of XLA's."""
    messages = {
        "memory": "linkwright: there is not enough memory for this call",
        "frames": "linkwright: the layout of this call frame is not known",
    }
    lines = [
        "declare ptr @malloc(i64)",
        "declare void @free(ptr)",
        "declare i32 @pthread_create(ptr, ptr, ptr, ptr)",
        "declare i32 @pthread_join(i64, ptr)",
        *(f'@{key} = private constant [{len(x) + 1} x i8] c"{x}\\00"' for key, x in messages.items()),
    ]
    return "\n".join([*lines, *_run(), *_piece(), *_thread(), *_call(header, list(messages))]) + "\n"


def _run() -> list[str]:
    """`@run`: states 0..count, the last group of lanes perhaps over a part of the one before."""
    w = _Handler()
    pointers = ", ".join(f"ptr %{name}" for name in ("code", "pointers", "shifted", "strides", "scratch"))
    w.lines.append(f"define internal void @run({pointers}, i64 %width, i64 %arrays, i64 %count) {{")
    w.start("entry")
    left = w.whole("urem", "%count", "%width")
    w.line(f"call void %code(ptr %pointers, ptr %strides, ptr %scratch, i64 {w.whole('sub', '%count', left)})")
    w.choose(w.test("eq", left, 0), "done", "last")
    w.start("last")
    first = w.whole("sub", "%count", "%width")

    def shift(k: str) -> None:
        numbers = w.whole("mul", w.entry("%strides", k), first)
        w.put(w.at(w.entry("%pointers", k, "ptr"), numbers), "%shifted", k, "ptr")

    w.repeat("0", "%arrays", shift)
    w.line("call void %code(ptr %shifted, ptr %strides, ptr %scratch, i64 %width)")
    w.branch("done")
    w.start("done")
    return [*w.lines, "  ret void", "}"]


def _piece() -> list[str]:
    """`@piece`: states begin..end on this thread; whether there was no memory for it."""
    w = _Handler()
    w.lines.append("define internal i64 @piece(ptr %frame, ptr %table, i64 %begin, i64 %end, i64 %wide) {")
    w.start("entry")
    in_lanes = w.test("ne", "%wide", 0)
    code = w.either(in_lanes, w.word("lanes.code", "ptr"), w.word("code", "ptr"), "ptr")
    scratch_size = w.either(in_lanes, w.word("lanes.scratch"), w.word("scratch"))
    width = w.either(in_lanes, w.word("lanes"), "1")
    nin, ndata = w.word("nin"), w.word("ndata")
    arrays = w.whole("add", nin, w.word("nout"))
    rows = w.whole("add", arrays, ndata)
    states = w.whole("sub", "%end", "%begin")
    single = w.test("eq", w.field(w.buffer(nin), _DTYPE, "i32"), NUMBERS["DataType_F32"], "i32")
    piece = w.least(states, str(_PIECE))
    room = w.either(single, w.whole("mul", piece, w.word("total")), "0")
    # One block of memory: pointers, shifted pointers, strides, room for converted numbers, scratch on a cache line.
    words = w.whole("add", w.whole("mul", rows, 3), w.whole("add", room, scratch_size))
    memory = w.op(f"call ptr @malloc(i64 {w.whole('shl', w.whole('add', words, 8), 3)})")
    w.require(w.test("ne", memory, "null", "ptr"), "none")
    shifted = w.at(memory, rows)
    strides = w.at(shifted, rows)
    converted = w.at(strides, rows)
    behind = w.op(f"ptrtoint ptr {w.at(converted, room)} to i64")
    scratch = w.op(f"inttoptr i64 {w.whole('and', w.whole('add', behind, 63), -64)} to ptr")
    sizes, axes = w.sizes()
    addresses = w.at(axes, arrays)

    def numbers(d: str) -> None:
        place, address = w.whole("add", arrays, d), w.entry(addresses, d)
        w.put(address, memory, place)
        w.put(address, shifted, place)

    w.repeat("0", ndata, numbers)
    w.variable("%used", "0")

    def lay_out(k: str) -> None:
        array, size = w.buffer(k), w.entry(sizes, k)
        shared = w.test("eq", w.field(array, _RANK), w.entry(axes, k))  # the same numbers for every state
        stride = w.either(shared, "0", size)
        w.put(stride, strides, k)
        plain = w.at(w.field(array, _DATA, "ptr"), w.whole("mul", stride, "%begin"))
        w.put(w.either(single, w.at(converted, w.op("load i64, ptr %used")), plain, "ptr"), memory, k, "ptr")
        w.change("%used", "add", w.whole("mul", size, piece))

    def run(count: str) -> None:
        pointers = ", ".join(f"ptr {x}" for x in (code, memory, shifted, strides, scratch))
        w.line(f"call void @run({pointers}, i64 {width}, i64 {arrays}, i64 {count})")

    w.repeat("0", arrays, lay_out)
    w.choose(single, "singles", "doubles")
    w.start("doubles")
    run(states)
    w.branch("done")
    w.start("singles")

    def convert(start: str) -> None:
        left = w.least(piece, w.whole("sub", "%end", start))
        few = w.test("slt", left, width)
        count = w.either(few, width, left)
        first = w.either(few, w.whole("sub", "%end", width), start)

        def copy(k: str, *, back: bool) -> None:
            stride, ours = w.entry(strides, k), w.entry(memory, k, "ptr")
            theirs, offset = w.field(w.buffer(k), _DATA, "ptr"), w.whole("mul", stride, first)
            amount = w.either(w.test("eq", stride, 0), w.entry(sizes, k), w.whole("mul", stride, count))

            def one(j: str) -> None:
                there = w.op(f"getelementptr float, ptr {theirs}, i64 {w.whole('add', offset, j)}")
                if back:
                    x = w.entry(ours, j, "double")
                    w.line(f"store float {w.op(f'fptrunc double {x} to float')}, ptr {there}")
                else:
                    w.put(w.op(f"fpext float {w.op(f'load float, ptr {there}')} to double"), ours, j, "double")

            w.repeat("0", amount, one)

        w.repeat("0", nin, lambda k: copy(k, back=False))
        run(count)
        w.repeat(nin, arrays, lambda k: copy(k, back=True))

    w.loop("%begin", "slt i64 {}, %end", convert, lambda i: w.whole("add", i, piece))
    w.branch("done")
    w.start("done")
    w.line(f"call void @free(ptr {memory})")
    w.line("ret i64 0")
    w.start("none")
    return [*w.lines, "  ret i64 1", "}"]


def _thread() -> list[str]:
    """`@thread`: the work of one job."""
    w = _Handler()
    w.lines.append("define internal ptr @thread(ptr %job) {")
    w.start("entry")
    kinds = ("ptr", "ptr", "i64", "i64", "i64")
    words = ", ".join(f"{kind} {w.field('%job', 8 * k, kind)}" for k, kind in enumerate(kinds))
    w.put(w.op(f"call i64 @piece({words})"), "%job", str(_FAILED))
    return [*w.lines, "  ret ptr null", "}"]


def _call(header: str, messages: list[str]) -> list[str]:
    """`@handler`."""
    w = _Handler()
    w.lines.append("define ptr @handler(ptr %frame, ptr %table) {")
    w.start("entry")
    w.line(f"%jobs = alloca [{_JOB * MOST_THREADS} x i64], align 16")
    w.line(f"%ids = alloca [{MOST_THREADS} x i64], align 16")
    w.line(f"%begun = alloca [{MOST_THREADS} x i64], align 16")
    w.line(f"%error = alloca [{_ERROR_WORDS} x i64], align 16")
    w.variable("%failures", "0")
    w.variable("%batch", "1")
    extension = w.field("%frame", _EXTENSION, "ptr")
    w.choose(w.test("eq", extension, "null", "ptr"), "call", "extended")
    w.start("extended")  # XLA asks for the version, without a call
    sort = w.field(extension, _EXTENSION_TYPE, "i32")
    w.choose(w.test("eq", sort, NUMBERS["Extension_Metadata"], "i32"), "metadata", "call")
    w.start("metadata")
    metadata = w.field(extension, _METADATA, "ptr")
    for number, offset in zip((*stated_version(header), 0), (_MAJOR, _MINOR, _TRAITS), strict=True):
        w.line(f"store i32 {number}, ptr {w.place(metadata, offset)}")
    if _STATEFUL in _plain(header):
        w.line(f"store i64 0, ptr {w.place(metadata, _STATE_TYPE)}")
    w.line("ret ptr null")
    w.start("call")
    stage = w.field("%frame", _STAGE, "i32")
    w.require(w.test("eq", stage, NUMBERS["ExecutionStage_EXECUTE"], "i32"), "done")
    w.require(w.test("uge", w.field("%frame", 0), _FRAME_SIZE), "frames")
    nin = w.word("nin")
    for side, count in ((_ARGS, nin), (_RETS, w.word("nout"))):
        w.require(w.test("eq", w.field("%frame", side + _COUNT), count), "frames")
    array = w.buffer(nin)  # the first output: it has all axes of the batch
    w.require(w.test("uge", w.field(array, 0), _BUFFER_SIZE), "frames")
    dtype = w.field(array, _DTYPE, "i32")
    known = [w.test("eq", dtype, NUMBERS[f"DataType_{name}"], "i32") for name in ("F32", "F64")]
    w.require(w.op(f"or i1 {', '.join(known)}"), "frames")
    _, axes = w.sizes()
    dims = w.field(array, _DIMS, "ptr")
    lead = w.whole("sub", w.field(array, _RANK), w.entry(axes, nin))
    w.repeat("0", lead, lambda k: w.change("%batch", "mul", w.entry(dims, k)))
    states, width = w.op("load i64, ptr %batch"), w.word("lanes")
    w.require(w.test("sgt", states, 0), "done")
    loaded, in_lanes = w.test("ne", w.word("lanes.code"), 0), w.test("sge", states, width)
    wide = w.op(f"and i1 {loaded}, {in_lanes}")
    w.require(w.op(f"or i1 {wide}, {w.test('ne', w.word('code'), 0)}"), "frames")
    wide = w.op(f"zext i1 {wide} to i64")
    work = w.whole("mul", states, w.word("work"))
    shares = w.least(w.word("threads"), w.whole("sdiv", work, THREAD_WORK))
    shares = w.least(shares, w.whole("sdiv", states, width))
    several = [w.test("sge", work, 2 * THREAD_WORK), w.test("sgt", shares, 1)]
    w.choose(w.op(f"and i1 {', '.join(several)}"), "threads", "alone")
    w.start("alone")
    alone = w.op(f"call i64 @piece(ptr %frame, ptr %table, i64 0, i64 {states}, i64 {wide})")
    w.choose(w.test("eq", alone, 0), "done", "memory")
    w.start("threads")
    _shared_out(w, shares, states, wide)
    w.choose(w.test("eq", w.op("load i64, ptr %failures"), 0), "done", "memory")
    for label, code in zip(messages, ("RESOURCE_EXHAUSTED", "INVALID_ARGUMENT"), strict=True):
        w.start(label)
        w.put(str(_ERROR_SIZE), "%error", "0")
        w.put("0", "%error", "1")
        w.put(f"@{label}", "%error", "2", "ptr")
        w.put(str(NUMBERS[f"Error_Code_{code}"]), "%error", "3")
        create = w.field(w.field("%frame", _API, "ptr"), _ERROR_CREATE, "ptr")
        w.line(f"ret ptr {w.op(f'call ptr {create}(ptr %error)')}")
    w.start("done")
    return [*w.lines, "  ret ptr null", "}"]


def _shared_out(w: _Handler, shares: str, states: str, wide: str) -> None:
    """Each share on a thread of its own, the first one on this; one for which there is no thread comes later here."""

    def prepare(k: str) -> None:
        job = w.at("%jobs", k, _JOB)
        edges = (w.whole("sdiv", w.whole("mul", states, n), shares) for n in (k, w.whole("add", k, 1)))
        words = [("ptr", "%frame"), ("ptr", "%table"), *(("i64", x) for x in (*edges, wide, "0"))]
        for place, (kind, value) in enumerate(words):
            w.put(value, job, str(place), kind)

    def launch(k: str) -> None:
        arguments = f"ptr {w.at('%ids', k)}, ptr null, ptr @thread, ptr {w.at('%jobs', k, _JOB)}"
        status = w.op(f"call i32 @pthread_create({arguments})")
        w.put(w.op(f"sext i32 {status} to i64"), "%begun", k)

    def finish(k: str) -> None:
        job, wait, here, after = w.at("%jobs", k, _JOB), w.label("wait"), w.label("here"), w.label("after")
        w.choose(w.test("eq", w.entry("%begun", k), 0), wait, here)
        w.start(wait)
        w.line(f"call i32 @pthread_join(i64 {w.entry('%ids', k)}, ptr null)")
        w.branch(after)
        w.start(here)
        w.line(f"call ptr @thread(ptr {job})")
        w.branch(after)
        w.start(after)
        w.change("%failures", "or", w.field(job, 8 * _FAILED))

    w.repeat("0", shares, prepare)
    w.repeat("1", shares, launch)
    w.line("call ptr @thread(ptr %jobs)")
    w.change("%failures", "or", w.field("%jobs", 8 * _FAILED))
    w.repeat("1", shares, finish)
