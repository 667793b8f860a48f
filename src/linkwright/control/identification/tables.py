"""Columns of numbers from CSV files, which are untrusted: row by row into arrays, never the whole text in memory."""

from __future__ import annotations

import csv
import io
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import TextIO

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.checks import path_text
from linkwright.base.files import open_regular
from linkwright.errors import DataError

MOST_BYTES = 1 << 30
MOST_ROWS = 20_000_000
LONGEST_LINE = 1 << 20  # characters
LONGEST_FIELD = 10_000  # characters


def read_columns(
    path: str | os.PathLike[str], choose: Callable[[list[str]], Sequence[str]]
) -> tuple[dict[str, Floats], Sequence[int]]:
    """The columns that `choose` picks of the names in the head, and the line of the file that each row is in.

    Fields are parted by commas, semicolons or tabs, whichever the head has most of. Empty lines, and those that start
    with #, are left out.
    """
    file = Path(path_text("a record", path))
    try:
        with open_regular(file) as bytes_, io.TextIOWrapper(bytes_, encoding="utf-8-sig", newline="") as stream:
            size = os.fstat(bytes_.fileno()).st_size
            if size > MOST_BYTES:
                raise DataError(f"{file} has {size:,} bytes; at most {MOST_BYTES:,} are read: cut or decimate it first")
            return _table(file, stream, choose)
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot read {file} as CSV: {error}") from error


def _table(
    file: Path, stream: TextIO, choose: Callable[[list[str]], Sequence[str]]
) -> tuple[dict[str, Floats], Sequence[int]]:
    lines = _lines(file, stream)
    skipped, head = 0, ""
    for head in lines:
        if head.strip():
            break
        skipped += 1
    separator = max(",;\t", key=head.count)
    names = [x.strip() for row in csv.reader([head], delimiter=separator, strict=True) for x in row]
    if not any(names) or (len(set(names)) != len(names) and not all(map(_is_number, names))):
        raise DataError(f"{file}: the first line must name the columns, each once; it reads {head.strip()[:80]!r}")
    if all(map(_is_number, names)):
        text = f"{file}: the first line is no head, it reads {head.strip()[:80]!r}"
        raise DataError(f"{text}: put the names of the columns in a line before it, as time,u,y", row=skipped + 1)
    chosen = list(dict.fromkeys(choose(names)))
    places = [names.index(name) for name in chosen]
    columns, at = [array("d") for _ in chosen], array("q")
    reader = csv.reader(lines, delimiter=separator, strict=True)
    for row in reader:
        if not row or all(not x.strip() for x in row):
            continue
        line = skipped + 1 + reader.line_num
        _checked_row(file, line, row, names, separator)
        if len(at) == MOST_ROWS:
            raise DataError(f"{file} has more than {MOST_ROWS:,} rows: cut or decimate it first")
        for column, place in zip(columns, places, strict=True):
            text = row[place].strip()
            try:
                # Python's numbers may have underscores and the digits of any script; those of a table do not.
                value = float(text) if text.isascii() and "_" not in text else None
            except ValueError:
                value = None
            if value is None or not isfinite(value):
                raise DataError(_fault(file, line, names[place], text, value), row=line, column=names[place])
            column.append(value)
        at.append(line)
    if not at:
        raise DataError(f"{file} has a head and no rows")
    return {name: np.frombuffer(column) for name, column in zip(chosen, columns, strict=True)}, at


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _lines(file: Path, stream: TextIO) -> Iterator[str]:
    """The lines, each of a bounded length; comments are empty lines, so that the lines can still be counted."""
    number = 0
    while line := stream.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            text = f"{file}: line {number} is longer than {LONGEST_LINE:,} characters"
            raise DataError(f"{text}, which no line of a table is: is it a CSV file?", row=number)
        yield "\n" if line.lstrip().startswith("#") else line


def _checked_row(file: Path, line: int, row: list[str], names: list[str], separator: str) -> None:
    if len(row) != len(names):
        text = f"{file}: line {line} has {len(row)} fields, and the head names {len(names)}"
        if separator == "," and len(row) > len(names):
            text += ". If its decimals are written with commas, write them with points"
        raise DataError(text, row=line)
    for name, field in zip(names, row, strict=True):
        if len(field) > LONGEST_FIELD:
            text = f"{file}: line {line}, column {name[:40]!r} has {len(field):,} characters"
            raise DataError(f"{text}; at most {LONGEST_FIELD:,} are read", row=line, column=name)


def _fault(file: Path, line: int, name: str, text: str, value: float | None) -> str:
    where, advice = f"{file}: line {line}, column {name!r} is", "Cut the record there, or fill the gap first"
    if not text:
        return f"{where} empty. {advice}"
    if value is not None:
        return f"{where} {text[:40]}. {advice}"
    fault = f"{where} {text[:40]!r}, no number"
    whole, comma, decimals = text.lstrip("+-").partition(",")
    if comma and whole.isdecimal() and decimals[:1].isdecimal():
        return f"{fault}: decimals are written with a point, {text[:40].replace(',', '.', 1)}"
    if "_" in text:
        return f"{fault}: digits are written without underscores"
    return f"{fault}. {advice}"
