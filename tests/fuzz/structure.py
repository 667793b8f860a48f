"""Changes that keep a file's outer form, so that what is inside is looked at: XML, JSON, archives, arrays, HDF5."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache
from random import Random
from typing import Any

import numpy as np
from lxml import etree

from fuzz.mutation import LARGEST, NUMBERS, ODD, Mutator, damaged, number, reworded


# -- XML ---------------------------------------------------------------------------------------------------------
def xml(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    """Elements renamed, doubled, left out, moved, nested; attributes changed, left out, added."""
    tree = _tree(data)
    if tree is None:
        return reworded(rng, data, corpus)
    root = _copied(tree)
    words = _xml_words(tuple(corpus))
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
        every = list(root.iter("*"))
        element, other = rng.choice(every), rng.choice(every)
        match rng.randrange(13):
            case 0:
                element.tag = rng.choice(words.tags)
            case 1 if element is not root:
                element.addnext(_copied(element))
            case 2 if element is not root:
                element.getparent().remove(element)
            case 3:
                if element is not other and not any(x is other for x in element.iter()):
                    other.append(element)
            case 4:
                wrapper = etree.SubElement(other, rng.choice(words.tags))
                for _ in range(rng.choice((0, 0, 1, 3, 40))):
                    wrapper = etree.SubElement(wrapper, rng.choice(words.tags))
            case 5 | 6 | 7 if element.attrib:
                name = rng.choice(sorted(element.attrib))
                _set(element, name, _value(rng, element.get(name), words.values))
            case 8 if element.attrib:
                del element.attrib[rng.choice(sorted(element.attrib))]
            case 9:
                _set(element, rng.choice(words.names), _value(rng, "1 0 0", words.values))
            case 10:
                with_text = [x for x in every if x.text and x.text.strip()] or [element]
                place = rng.choice(with_text)
                _say(place, _value(rng, place.text or "", words.values))
            case 11 if other is not root:
                inserted = _copied(rng.choice(list(_tree(rng.choice(words.sources)).iter("*"))))
                element.append(inserted)
            case _:
                name = rng.choice(("name", "type", "class", "joint", "link", "body", "file"))
                _set(element, name, rng.choice(words.values))
    return bytes(etree.tostring(root, encoding="utf-8"))[:LARGEST]


def _value(rng: Random, old: str, values: list[str]) -> str:
    words = old.split()
    match rng.randrange(6):
        case 0 | 1 if words:
            words[rng.randrange(len(words))] = number(rng)
            return " ".join(words)
        case 2:
            return rng.choice(values)
        case 3:
            return rng.choice(ODD)
        case 4 if words:
            return " ".join(words * 2 if rng.random() < 0.5 else words[:-1])
        case _:
            return rng.choice(NUMBERS)


def _set(element: Any, name: str, value: str) -> None:
    element.set(name, _legal(value))


def _say(element: Any, text: str) -> None:
    element.text = _legal(text)


def _legal(text: str) -> str:
    """XML has no control characters; those come from the mutators of texts."""
    return "".join(c for c in text if c.isprintable() or c in "\n\t")


class _XmlWords:
    def __init__(self, corpus: tuple[bytes, ...]) -> None:
        self.sources = [data for data in corpus if _tree(data) is not None]
        every = [element for data in self.sources for element in _tree(data).iter("*")]
        self.tags = sorted({element.tag for element in every if isinstance(element.tag, str)})
        self.names = sorted({"name"} | {name for element in every for name in element.attrib})
        texts = {element.text.strip() for element in every if element.text and element.text.strip()}
        self.values = sorted({value for element in every for value in element.attrib.values()} | texts)


@cache
def _xml_words(corpus: tuple[bytes, ...]) -> _XmlWords:
    return _XmlWords(corpus)


@cache
def _tree(data: bytes) -> Any:
    try:
        return etree.fromstring(data, etree.XMLParser(resolve_entities=False, remove_comments=True, remove_pis=True))
    except (etree.XMLSyntaxError, ValueError):
        return None


def _copied(element: Any) -> Any:
    made = deepcopy(element)
    made.tail = None
    return made


# -- JSON --------------------------------------------------------------------------------------------------------
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 0.5, -0.0, 1e308, 5e-324, float("nan"), float("inf"), -float("inf")),
    *(2**31 - 1, 2**31, -(2**31), 2**53, 2**63, 2**64, 10**30, "", "a", "0", "nan", "\x1b[0m", "\u202e", "é" * 50),
    *([], {}, [[]], [0], {"a": 1}, [None], ["x", "y"], [[0, 1], [1, 0]], "x" * 500),
)


def json_text(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    """Values of a JSON text exchanged for those of other kinds, left out, doubled or moved."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return reworded(rng, data, corpus)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        value = json_value(rng, value)
    if rng.random() < 0.02:
        return b"[" * 100_000
    return json.dumps(value).encode("ascii")[:LARGEST]


def json_value(rng: Random, value: Any) -> Any:
    """A JSON value with one place in it changed."""
    places: list[tuple[Any, Any]] = []
    left = [value]
    while left:
        part = left.pop()
        keys = list(part) if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ()
        for key in keys:
            places.append((part, key))
            left.append(part[key])
    if not places:
        return deepcopy(rng.choice(_VALUES))
    part, key = rng.choice(places)
    match rng.randrange(7):
        case 0:
            del part[key]
        case 1:
            other, there = rng.choice(places)
            try:
                part[key] = json.loads(json.dumps(other[there]))
            except (LookupError, ValueError):
                part[key] = None
        case 2 if isinstance(part, list):
            part.insert(rng.randrange(len(part) + 1), part[key])
        case 3 if isinstance(part, dict):
            part[rng.choice(("name", "x", "", "kind", "0"))] = part.pop(key)
        case 4 if isinstance(part[key], str):
            part[key] = reworded(rng, part[key].encode(), [part[key].encode()]).decode("utf-8", "replace")
        case 5 if isinstance(part[key], int | float) and not isinstance(part[key], bool):
            part[key] = rng.choice((part[key] + 1, -part[key], part[key] * 2, float(part[key]), str(part[key])))
        case _:
            part[key] = deepcopy(rng.choice(_VALUES))
    return value


# -- arrays and archives -----------------------------------------------------------------------------------------
_TYPES = ("<f8", ">f8", "<f4", "<i8", "<i4", "|u1", "|b1", "<c16", "<U3", "|S5", "|O", "<M8[s]", "|V8", "<f2")
#: Headers of arrays that NumPy's reader, which takes them for Python's text, stumbles over.
_HEADS = (
    *("{", "(", "(" * 500, "('''", "\\", "{'descr': '<f8'}", "{'descr': '<f8', 'fortran_order': False, 'shape': (2,)"),
    *(
        f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}"
        for kind, order, shape in (
            ("[('a', '<f8')]", False, "(1,)"),
            ("'<f8'", False, "(-1,)"),
            ("'<f8'", False, "(99999999999,)"),
            ("'<f8'", False, "(10000000000000000000000,)"),
            ("'<f8'", False, "(4294967296, 4294967296)"),
            ("'<f8'", False, "(0, 9223372036854775807)"),
            ("'<f8'", 0, "3"),
            ("'|O'", True, "(2,)"),
        )
    ),
)


def npy(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    """The header or the numbers of an array file changed."""
    if rng.random() < 0.15 or not data.startswith(b"\x93NUMPY"):
        return damaged(rng, data, corpus)
    length = int.from_bytes(data[8:10], "little")
    head, body = data[10 : 10 + length], data[10 + length :]
    match rng.randrange(5):
        case 0:
            head = rng.choice(_HEADS).encode() + b" \n"
        case 1:
            head = reworded(rng, head, [head])
        case 2:
            shape = [rng.choice((0, 1, 2, 3, 7, 100, 2**31)) for _ in range(rng.randrange(5))]
            kind = rng.choice(_TYPES)
            head = f"{{'descr': '{kind}', 'fortran_order': {rng.random() < 0.5}, 'shape': {tuple(shape)}, }}\n".encode()
        case 3:
            body = damaged(rng, body, [body])
        case _:
            return array_bytes(_numbers(rng))
    version = rng.choice((b"\x01\x00",) * 6 + (b"\x02\x00", b"\x03\x00", b"\x09\x00"))
    size = len(head).to_bytes(2 if version[0] == 1 else 4, "little")
    return (data[:6] + version + size + head + body)[:LARGEST]


def _numbers(rng: Random) -> Any:
    shape = tuple(rng.choice((0, 1, 2, 3, 5)) for _ in range(rng.randrange(4)))
    made = np.zeros(shape)
    made[...] = rng.choice((0.0, 1.0, float("nan"), float("inf"), -1.0, 1e308, 5e-324))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made.astype(rng.choice(("f8", "f8", "f4", "i8", "u1", "c16", "?")))


def array_bytes(array: Any) -> bytes:
    """An array as a `.npy` file has it."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    return file.getvalue()


def archive(member: Callable[[str], Mutator]) -> Mutator:
    """Of an archive, a member changed by the mutator of its name, left out, doubled, renamed or packed."""

    def mutate(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
        if rng.random() < 0.2:
            return damaged(rng, data, corpus)
        members = _members(data)
        if not members:
            return damaged(rng, data, corpus)
        contents = dict(members)
        packing = zipfile.ZIP_STORED
        for _ in range(rng.choice((1, 1, 2, 3))):
            if not contents:
                break
            name = rng.choice(sorted(contents))
            match rng.randrange(10):
                case 0:
                    del contents[name]
                case 1:
                    contents[rng.choice((*sorted(contents), "x.npy", "", "../x", "header", "a" * 300))] = contents[name]
                case 2 if rng.random() < 0.3:
                    packing = zipfile.ZIP_DEFLATED
                case _:
                    contents[name] = member(name)(rng, contents[name], [x for _, x in members])
        return archive_bytes(contents, packing, twice=rng.random() < 0.02)

    return mutate


def unpacked(data: bytes) -> tuple[tuple[str, bytes], ...]:
    """The members of an archive; none where it is damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            return tuple((name, file.read(name)) for name in file.namelist())
    except Exception:  # a member of the corpus that is damaged itself
        return ()


_members = cache(unpacked)  # of a corpus


def archive_bytes(contents: dict[str, bytes], packing: int = zipfile.ZIP_STORED, *, twice: bool = False) -> bytes:
    """An archive of these members; with `twice`, each has a second one of its name."""
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w") as made:
        warnings.simplefilter("ignore")  # of names that come twice
        for name, content in list(contents.items()) * (2 if twice else 1):
            info = zipfile.ZipInfo(name)
            info.compress_type = packing
            made.writestr(info, content)
    return file.getvalue()


def header_array(inner: Mutator) -> Mutator:
    """An array of bytes that are a JSON text, with that text changed."""

    def mutate(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
        if rng.random() < 0.2 or not data.startswith(b"\x93NUMPY"):
            return npy(rng, data, corpus)
        length = int.from_bytes(data[8:10], "little")
        text = data[10 + length :]
        return array_bytes(np.frombuffer(inner(rng, text, [text]), np.uint8))

    return mutate


# -- HDF5 --------------------------------------------------------------------------------------------------------
def hdf5(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    """Variables of a NetCDF file changed in kind, shape or content, left out, renamed or linked; or its bytes."""
    if rng.random() < 0.5:
        return damaged(rng, data, corpus)
    import h5py

    variables = dict(_variables(data))
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(sorted(variables))
        match rng.randrange(8):
            case 0:
                del variables[name]
                if not variables:
                    return b""
            case 1:
                variables[rng.choice(sorted(variables))] = variables[name]
            case 2:
                variables[name] = _numbers(rng)
            case 3:
                x = variables[name]
                variables[name] = x[: len(x) // 2] if x.ndim else x
            case 4 if variables[name].dtype.kind in "fiu":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    variables[name] = variables[name].astype(rng.choice(("f4", "f8", "i4", "i8", "u1", ">f8", "S3")))
            case 5:
                x = variables[name].copy()
                if x.size and x.dtype == np.float64:
                    x.flat[rng.randrange(x.size)] = rng.choice((float("nan"), float("inf"), -1.0, 1e308))
                variables[name] = x
            case _ if "header" in variables:
                text = variables["header"].tobytes()
                variables["header"] = np.frombuffer(json_text(rng, text, [text]), np.uint8)
            case _:
                pass
    file = io.BytesIO()
    with h5py.File(file, "w") as made:
        for name, x in variables.items():
            if rng.random() < 0.02:
                made[name] = rng.choice((h5py.SoftLink("/time"), h5py.ExternalLink("x.nc", "/time")))
            elif rng.random() < 0.02:
                made.create_group(name)
            else:
                packed = {"compression": "gzip"} if rng.random() < 0.02 and x.ndim and x.size else {}
                made.create_dataset(name, data=x, **packed)
    return file.getvalue()


@cache
def _variables(data: bytes) -> tuple[tuple[str, Any], ...]:
    import h5py

    with h5py.File(io.BytesIO(data), "r") as file:
        return tuple((name, x[...]) for name, x in file.items() if isinstance(x, h5py.Dataset))
