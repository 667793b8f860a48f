"""Model files to descriptions and back: the reader by the file's ending or outermost element, the writer by the ending,
and what all readers share: bounded reading, options, numbers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from linkwright.base.files import open_regular
from linkwright.errors import FormatError, LinkwrightError, ModelError, NameNotFound
from linkwright.model.description import Description

MAX_BYTES = 64 * 2**20


@contextmanager
def finite_arithmetic(file: str) -> Iterator[None]:
    """Refuse a model whose numbers overflow as they are computed with: 1e308 is a number, and its square is none."""
    try:
        with np.errstate(over="raise"):
            yield
    except FloatingPointError as error:
        text = f"has numbers too large to compute with ({error}); a model in SI units never has"
        raise FormatError(text, file=file) from error


def check_options(file: str, reader: Callable[..., Any], **options: Any) -> None:
    """Refuse values of options that a reader's annotations, which are `Literal`s, do not have."""
    hints = get_type_hints(reader)
    for option, value in options.items():
        parts = [hints[option], *get_args(hints[option])]  # a Literal, or a union of one and None
        allowed = [word for part in parts if get_origin(part) is Literal for word in get_args(part)]
        if value not in allowed and not (value is None and type(None) in parts):
            raise FormatError(f"the option {option}={value!r} must be {' or '.join(map(repr, allowed))}", file=file)


@contextmanager
def errors_in(file: str, line: int | None = None, element: str | None = None) -> Iterator[None]:
    """Errors of a mechanism that cannot be as errors of the file, which is what the user knows.

    They name the line and the element, or by default the element that the mechanism's error names.
    """
    try:
        yield
    except FormatError:
        raise
    except (ModelError, NameNotFound) as error:
        name = element or getattr(error, "element", None)
        raise FormatError(str(error), file=file, line=line, element=name) from error


def read_bytes(path: str | Path, most: int) -> bytes:
    """What is in a file of at most so many bytes."""
    try:
        with open_regular(path) as stream:
            data = stream.read(most + 1)
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}", file=str(path)) from error
    if len(data) > most:
        raise FormatError(f"is larger than {most >> 20} MB; a model file is never that large", file=str(path))
    return data


#: The formats by ending; of `.xml`, the outermost element says which.
_BY_ENDING = {
    ".mks": "mks",
    ".urdf": "urdf",
    ".dh.toml": "dh",
    ".sdf": "sdf",
    ".world": "sdf",
    ".xacro": "xacro",
    ".xml": "",
    ".mjcf": "mjcf",
}
ENDINGS = tuple(_BY_ENDING)
_BY_ROOT = {"robot": "urdf", "sdf": "sdf", "mujoco": "mjcf", "mujocoinclude": "mjcf"}
#: The modules of readers that are not called as their format is; the function is read_FORMAT.
_MODULES = {"mks": "mks.mks_reader", "sdf": "sdf.sdf_reader", "mjcf": "mjcf.mjcf_reader", "xacro": "urdf"}


def read(path: str | Path, **options: Any) -> Description:
    """The description in a model file: `.mks`, `.urdf`, `.dh.toml`, `.sdf`, `.world`, `.xacro`, or `.xml` (MJCF).

    Options are those of the format's reader.
    """
    file = str(path)
    check_file(path)
    name = format_of(path)
    reader = _reader(name)
    known = [p.name for p in inspect.signature(reader).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            if option == "parameters" and name != "dh":
                raise FormatError("a file of this format has no parameters; leave parameters=... out", file=file)
            takes = f"takes {', '.join(known)}" if known else "takes no options"
            raise FormatError(f"the option {option!r} is not one of this format's, which {takes}", file=file)
    with finite_arithmetic(file):
        return reader(path, **options)


def check_file(path: str | Path) -> None:
    """Refuse a path without a file."""
    if not Path(path).exists():
        raise FormatError("there is no such file", file=str(path))
    if Path(path).is_dir():
        raise FormatError("is a folder; give a model file", file=str(path))


def format_of(path: str | Path) -> str:
    """The format of a model file: "mks", "urdf", "dh", "sdf", "xacro" or "mjcf"."""
    name = Path(path).name.lower()
    ending = next((e for e in ENDINGS if name.endswith(e)), None)
    if ending is None:
        raise FormatError(_why_unread(Path(path).suffix), file=str(path))
    if ending != ".xml":
        return _BY_ENDING[ending]
    from linkwright.formats.xml import root_tag  # weight: lxml

    tag = root_tag(path)
    if tag not in _BY_ROOT:
        text = f"its outermost element is <{tag[:80]}>; <mujoco> (MJCF), <robot> (URDF) and <sdf> are read"
        raise FormatError(text, file=str(path))
    return _BY_ROOT[tag]


def _why_unread(suffix: str) -> str:
    """Why a file of this ending is no model, and what to do with it."""
    if suffix.lower() == ".nc":
        return "holds results, not a model; `linkwright view` shows them, and lw.open or lw.Study.open reads them"
    what = f"files ending in {suffix!r} are" if suffix else "a file without an ending is"
    return f"{what} not read as a model; the ending says the format: {', '.join(ENDINGS)}"


def _reader(name: str) -> Callable[..., Description]:
    """The reader of a format, imported when it is needed: lxml and lark are slow to import."""
    module = import_module(f"linkwright.formats.{_MODULES.get(name, name)}")
    reader: Callable[..., Description] = getattr(module, f"read_{name}")
    return reader


#: The languages that models are written in, by the endings of files: the module, in which `write_LANGUAGE` is.
_WRITERS = {
    ".mks": ("mks", "mks.mks_writer"),
    ".urdf": ("urdf", "urdf_writer"),
    ".xml": ("mjcf", "mjcf.mjcf_writer"),
    ".mjcf": ("mjcf", "mjcf.mjcf_writer"),
    ".sdf": ("sdf", "sdf.sdf_writer"),
    ".world": ("sdf", "sdf.sdf_writer"),
}


def writer(output: Path) -> Callable[[Description], str]:
    """The writer for a file, imported when it is needed: lxml and lark are slow to import."""
    ending = next((x for x in _WRITERS if output.name.lower().endswith(x)), None)
    if ending is None:
        text = "models are written as .mks, .urdf, .xml (MJCF) or .sdf; choose one of these endings"
        if output.name.lower().endswith((".dh.toml", ".xacro")):
            text = f"{output.suffix} files are read, not written; {text}"
        raise LinkwrightError(f"{output}: {text}")
    language, module = _WRITERS[ending]
    write: Callable[[Description], str] = getattr(import_module(f"linkwright.formats.{module}"), f"write_{language}")
    return write
