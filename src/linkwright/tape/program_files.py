"""Programs in files: plain arrays and a JSON header in one zip, read without trust in what it says.

The file is an uncompressed zip of `header.json` and NumPy arrays (`np.load` opens it too, no pickles). Reading
checks everything that running relies on, so that a file that loads cannot make a kernel leave its memory: every
number that a statement names, every address that an operand can take, every operand of every operation.
"""

from __future__ import annotations

import json
import math
import os
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import path_text
from linkwright.base.arrays import array_of
from linkwright.base.files import atomic_file, open_regular
from linkwright.errors import FormatError
from linkwright.tape.block import Block
from linkwright.tape.operations import Table
from linkwright.tape.program import Buffer, Program, Role
from linkwright.tape.program_checks import Invalid, validate
from linkwright.tape.statements import Case, Copy, Each, Loop, Operand, Solve, Statement, Walk, Zero

FORMAT, VERSION = "linkwright program", 1
_ARRAYS = {"numbers": "<f8", "columns": "<i4", "operations": "|u1", "arguments": "<i4", "results": "<i4"}
_UNREADABLE = (
    zipfile.BadZipFile,
    ValueError,
    EOFError,
    KeyError,
    OverflowError,
    RecursionError,
    NotImplementedError,
    OSError,
    struct.error,
)
_NESTED = 16  # loops within loops


def describe(thing: Any) -> Any:
    """Statements as JSON-ready data."""
    if isinstance(thing, tuple):
        return [describe(x) for x in thing]
    if hasattr(thing, "__dataclass_fields__"):
        return {"is": type(thing).__name__, **{f.name: describe(getattr(thing, f.name)) for f in fields(thing)}}
    return thing


def save(program: Program, path: str | os.PathLike[str]) -> None:
    """Write to `path`, whole or not at all: what stood there before stays if anything fails."""
    blocks, numbers = program.blocks, [b.data.reshape(-1) for b in program.buffers if b.data is not None]
    for block in blocks:
        numbers.append(block.constants)
        for table in block.tables:
            numbers += [np.asarray(table.breaks), np.asarray(table.coefficients).reshape(-1)]
    arrays: dict[str, Sequence[NDArray[Any]]] = {
        "numbers": numbers,
        "columns": program.columns,
        "operations": [b.op for b in blocks],
        "arguments": [b.args.reshape(-1) for b in blocks],
        "results": [b.outputs for b in blocks],
    }
    header = {
        "format": FORMAT,
        "version": VERSION,
        "name": program.name,
        "buffers": [{"name": b.name, "role": b.role, "shape": list(b.shape)} for b in program.buffers],
        "columns": [len(c) for c in program.columns],
        "blocks": [
            {
                "inputs": b.n_inputs,
                "constants": len(b.constants),
                "operations": len(b),
                "outputs": len(b.outputs),
                "tables": [len(t.coefficients) for t in b.tables],
            }
            for b in blocks
        ],
        "statements": describe(program.statements),
        "labels": {} if program.single is None else {"single": program.single},
    }
    text = json.dumps(header)
    with atomic_file(path) as target, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as file:
        # Members without a date, so that equal programs are equal files.
        file.writestr(zipfile.ZipInfo("header.json"), text)
        for name, parts in arrays.items():
            array = np.concatenate(parts) if parts else np.zeros(0)
            with file.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array.astype(_ARRAYS[name]), version=(1, 0), allow_pickle=False)


def load(path: str | os.PathLike[str]) -> Program:
    """Read a program; a file that is damaged, or not one of ours, is a `FormatError` that names it."""
    name = path_text("a program", path)
    try:
        file = open_regular(name)
    except OSError as error:
        reason = f"cannot be read: {error.strerror}; give a file that Program.save wrote"
        raise FormatError(reason, file=name) from error
    with file:
        try:
            program = _Reader(zipfile.ZipFile(file), os.fstat(file.fileno()).st_size).program()
            validate(program)
        except Invalid as error:
            raise FormatError(f"not a program that can be run: {error}", file=name) from None
        except _UNREADABLE as error:
            raise FormatError(f"not a readable program file: {error}", file=name) from None
    return program


class _Reader:
    """Header and arrays to a program of the right types; sizes are checked before anything is allocated."""

    def __init__(self, file: zipfile.ZipFile, size: int) -> None:
        members = {m.filename: m for m in file.infolist()}
        wanted = {"header.json", *(f"{name}.npy" for name in _ARRAYS)}
        if set(members) != wanted or len(file.infolist()) != len(wanted):
            raise Invalid("its members are not those of a Linkwright program")
        # Stored members cannot be larger than the file, so that memory is bounded by what is on disk.
        if any(m.compress_type != zipfile.ZIP_STORED or m.flag_bits & 1 for m in members.values()):
            raise Invalid("a member is compressed or encrypted")
        if sum(m.file_size for m in members.values()) > size:
            raise Invalid("its members are larger than the file")
        header = _expect(json.loads(file.read("header.json")), dict, "the header")
        if header.get("format") != FORMAT:
            raise Invalid("its header is not that of a Linkwright program")
        if header.get("version") != VERSION:
            raise Invalid(f"it has version {header.get('version')!r}; this Linkwright reads version {VERSION}")
        self.header = header
        self.arrays = {name: _array(file.read(f"{name}.npy"), dtype) for name, dtype in _ARRAYS.items()}
        self.at = dict.fromkeys(_ARRAYS, 0)

    def take(self, name: str, count: int) -> NDArray[Any]:
        """The next numbers of an array."""
        start = self.at[name]
        if count > len(self.arrays[name]) - start:
            raise Invalid(f"its array {name!r} is too short")
        self.at[name] = start + count
        return self.arrays[name][start : start + count]

    def program(self) -> Program:
        header = self.header
        buffers = tuple(self.buffer(_Record(b, "a buffer")) for b in _items(header, "buffers"))
        columns = tuple(self.take("columns", _count(n, "a column's length")) for n in _items(header, "columns"))
        blocks = tuple(self.block(_Record(b, "a block")) for b in _items(header, "blocks"))
        statements = tuple(_statement(s, 0) for s in _items(header, "statements"))
        for name, array in self.arrays.items():
            if self.at[name] != len(array):
                raise Invalid(f"its array {name!r} is too long")
        single = _expect(header.get("labels"), dict, "the labels").get("single")
        if single is not None:
            _expect(single, bool, "the label 'single'")
        return Program(_expect(header.get("name"), str, "the name"), buffers, blocks, columns, statements, single)

    def buffer(self, record: _Record) -> Buffer:
        name = record.text("name")
        role: Any = record.text("role")
        if role not in get_args(Role):
            raise Invalid(f"buffer {name!r} has the role {role!r}")
        shape = tuple(_count(n, f"a length of buffer {name!r}") for n in record.items("shape"))
        size = math.prod(shape)
        if len(shape) > 32 or size >= 2**31:
            raise Invalid(f"buffer {name!r} of shape {list(shape)} is too large"[:200])
        data = self.take("numbers", size).reshape(shape) if role == "data" else None
        return Buffer(name, role, shape, data)

    def block(self, record: _Record) -> Block:
        operations = record.count("operations")
        constants = self.take("numbers", record.count("constants"))
        tables = []
        for n in record.items("tables"):
            pieces = _count(n, "a table's pieces")
            breaks = self.take("numbers", pieces + 1).tolist()
            rows = self.take("numbers", 4 * pieces).reshape(-1, 4).tolist()
            tables.append(Table(tuple(breaks), tuple(map(tuple, rows))))
        return Block(
            constants,
            record.count("inputs"),
            self.take("operations", operations),
            self.take("arguments", 3 * operations).reshape(-1, 3),
            self.take("results", record.count("outputs")),
            tuple(tables),
        )


def _array(content: bytes, dtype: str) -> NDArray[Any]:
    """A one-dimensional array of this type."""
    array = array_of(content)
    if array.ndim != 1 or array.dtype != np.dtype(dtype):
        raise Invalid("an array is not of the type that it should be")
    return array


# -- JSON to statements ------------------------------------------------------------------------------
def _expect(value: Any, kind: type, what: str) -> Any:
    if type(value) is not kind:
        raise Invalid(f"{what} is {type(value).__name__}, not {kind.__name__}")
    return value


def _count(value: Any, what: str) -> int:
    if type(value) is not int or not 0 <= value < 2**31:
        raise Invalid(f"{what} is {value!r}"[:200])
    return value


def _items(header: dict[str, Any], name: str) -> list[Any]:
    return _expect(header.get(name), list, f"{name!r}")  # type: ignore[no-any-return]


class _Record:
    """A JSON object whose entries are asked for by type."""

    def __init__(self, value: Any, what: str) -> None:
        self.value: dict[str, Any] = _expect(value, dict, what)
        self.what = what

    def text(self, name: str) -> str:
        return _expect(self.value.get(name), str, f"{name!r} of {self.what}")  # type: ignore[no-any-return]

    def items(self, name: str) -> list[Any]:
        return _expect(self.value.get(name), list, f"{name!r} of {self.what}")  # type: ignore[no-any-return]

    def count(self, name: str) -> int:
        return _count(self.value.get(name), f"{name!r} of {self.what}")


#: How messages name the kinds of statements and their parts.
_WORDS: dict[type[Any], str] = {Each: "a scan", Walk: "a walk", Loop: "a loop", Solve: "a system", Zero: "a clearing"}
_WORDS |= {Copy: "a copy", Case: "a case", Operand: "an operand"}
_STATEMENTS = {kind.__name__: kind for kind in get_args(Statement)}
_SIGNED = {"buffer", "base", "steps", "far"}  # the fields whose numbers may be below zero


def _statement(value: Any, depth: int) -> Statement:
    if depth > _NESTED:
        raise Invalid("its loops are nested too deep")
    name = _Record(value, "a statement").text("is")
    if name not in _STATEMENTS:
        raise Invalid(f"there is no statement {name!r}")
    return _built(_STATEMENTS[name], value, depth)  # type: ignore[no-any-return]


def _built(kind: Any, value: Any, depth: int) -> Any:
    """A statement, or a part of one, out of JSON's object: each field is checked by its type."""
    what = _WORDS[kind]
    record = _expect(value, dict, what)
    parts = {}
    for name, declared in _field_types(kind).items():
        limits = range(1 - 2**62, 2**62) if name in _SIGNED else range(2**31)
        parts[name] = _part(declared, record.get(name), f"{name!r} of {what}", limits, depth)
    return kind(**parts)


@cache
def _field_types(kind: Any) -> dict[str, Any]:
    types = get_type_hints(kind)
    return {field.name: types[field.name] for field in fields(kind)}


def _part(kind: Any, value: Any, what: str, limits: range, depth: int) -> Any:
    """A value of this type out of JSON's; `what` names it in messages, and whole numbers are within the limits."""
    if kind is int:  # most of a file, and the same as below
        if type(value) is not int or value not in limits:
            raise Invalid(f"{what} is {value!r}"[:200])
        return value
    if kind is bool:
        return _expect(value, bool, what)
    options = get_args(kind)
    if kind == Statement:
        return _statement(value, depth + 1)
    if NoneType in options:
        return None if value is None else _part(options[0], value, what, limits, depth)
    if get_origin(kind) is tuple:
        entries = _expect(value, list, what)
        types = options[:1] * len(entries) if options[-1] is Ellipsis else options
        if len(types) != len(entries):
            raise Invalid(f"{what} has {len(entries)} parts, not {len(types)}")
        pairs = zip(types, entries, strict=True)
        inner = what if what.startswith("an entry of ") else f"an entry of {what}"
        return tuple(_part(t, entry, inner, limits, depth) for t, entry in pairs)
    if kind in _WORDS:
        return _built(kind, value, depth)
    if value not in options if options else type(value) is not kind or value not in limits:
        raise Invalid(f"{what} is {value!r}"[:200])
    return value
