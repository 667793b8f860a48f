"""XML read safely and written: values of attributes, poses, and what is wrong with file and line.

A first pass over the text counts what is in it and stops at the first thing that a model never has, so that the tree
is built only of files that are small enough: time and memory are bounded by the constants below.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from warnings import warn
from xml.parsers import expat

import numpy as np
from lxml import etree

from linkwright.base.arguments import first_few, outside
from linkwright.base.arrays import Floats
from linkwright.errors import FormatError, LinkwrightWarning, ModelError
from linkwright.formats.model_files import MAX_BYTES, errors_in, read_bytes
from linkwright.model.description import Description
from linkwright.model.element_names import names_of_elements
from linkwright.model.elements import Mimic
from linkwright.model.model_checks import listed
from linkwright.model.placements import snapped
from linkwright.model.topology import span


@dataclass(frozen=True, eq=False)
class Pose:
    """A frame's rotation and origin in another frame."""

    r: Floats
    p: Floats

    def __matmul__(self, other: Pose) -> Pose:
        return Pose(snapped(self.r @ other.r), self.p + self.r @ other.p)

    @property
    def is_here(self) -> bool:
        """Whether the two frames are the same, to the last bit."""
        return not self.p.any() and bool(np.array_equal(self.r, np.eye(3)))

    def inverse(self) -> Pose:
        return Pose(self.r.T, -(self.r.T @ self.p))


HERE = Pose(np.eye(3), np.zeros(3))


MAX_ELEMENTS = 1_000_000  # of one model, with all that it includes
MAX_NESTING = 500
MAX_ATTRIBUTES = 200  # of one element
MAX_TOKEN = 8 * 2**20  # bytes of one tag with its attributes, or of one comment
_CHUNK = 2**16


#: A declaration that XML's grammar refuses and that other parsers of robots take: after white space, or of a version
#: that there is not.
_DECLARATION = re.compile(rb"\A(\xef\xbb\xbf)?([ \t\r\n]*)<\?xml(\s[^<>]*?)\?>")
_VERSION = re.compile(rb"""\bversion\s*=\s*(["'])1\.[0-9]+\1""")
_ENCODING = re.compile(rb"""\bencoding\s*=\s*(["'])([A-Za-z][A-Za-z0-9._-]*)\1""")


_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)


class _Refused(Exception):
    """Raised inside the first pass to stop it."""


class _AtRoot(Exception):
    """Raised inside the first pass to end it at the outermost element."""


@dataclass
class Budget:
    """How many elements and bytes may still be read."""

    elements: int
    bytes: int


def declared(data: bytes) -> bytes:
    """The text with a declaration at its very beginning and of version 1.0, if it has one; lines stay what they are."""
    declaration = _DECLARATION.match(data)
    if declaration is None or (not declaration[2] and _VERSION.search(declaration[3])):
        return data
    encoding = _ENCODING.search(declaration[3])
    encoded = b' encoding="' + encoding[2] + b'"' if encoding else b""
    lines = b"\n" * declaration[0].count(b"\n")
    return (declaration[1] or b"") + b'<?xml version="1.0"' + encoded + b"?>" + lines + data[declaration.end() :]


def parse_xml(path: str | Path) -> Any:
    """The root element of an XML file; each element knows its line (`sourceline`)."""
    return parse_bytes(read_bytes(path, MAX_BYTES), str(path))


def parse_bytes(data: bytes, file: str, budget: Budget | None = None) -> Any:
    """The root element of XML text; `budget` is lessened by what was read. Errors name `file`."""
    budget = budget or Budget(MAX_ELEMENTS, MAX_BYTES)
    budget.bytes -= len(data)
    if budget.bytes < 0:
        text = f"and the files read before it have more than {MAX_BYTES >> 20} MB together; a model never has"
        raise FormatError(text, file=file)
    data = declared(data)
    _Check(data, file, budget)
    parser = _parser(recover=False)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        # Prefixes that nobody declared (left over by xacro) are harmless; anything else is not.
        if {entry.domain for entry in parser.error_log} == {etree.ErrorDomains.NAMESPACE}:
            return etree.fromstring(data, _parser(recover=True))
        raise FormatError(f"is not well-formed XML: {error.msg}", file=file, line=error.lineno) from error


def root_tag(path: str | Path) -> str:
    """The name of an XML file's outermost element, before all of it is read."""
    data = declared(read_bytes(path, MAX_BYTES))
    return _Check(data, str(path), Budget(MAX_ELEMENTS, MAX_BYTES), only_root=True).root


def numbers_in(text: str, least: int, most: int, fail: Callable[[str], FormatError]) -> Floats:
    """The numbers in a text, so many of them and all finite; `fail` makes an error of what is wrong with the text."""
    try:
        values = np.array([number(word) for word in text.split()], dtype=np.float64)
    except ValueError:
        raise fail(f"is not {'a number' if most == 1 else 'a list of numbers'}; correct it") from None
    if not least <= len(values) <= most:
        raise fail(f"has {len(values)} numbers; {least if least == most else f'{least} to {most}'} wanted")
    if not np.isfinite(values).all():
        raise fail("is not finite; give finite numbers")
    return values


def number(word: str) -> float:
    """A number as files have it (ValueError if not); Python would take underscores and other scripts' digits too.

    It may be NaN or infinite, also from digits that no float can hold (1e400): check that it is finite.
    """
    if "_" in word or not word.isascii():
        raise ValueError(word)
    return float(word)


def _parser(*, recover: bool) -> Any:
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=True,  # the first pass has the limits
        remove_comments=True,
        remove_pis=True,
        recover=recover,
    )


class ElementReader:
    """Names and numbers of a file's elements; what is wrong is an error with file, line and the element's name.

    `owner` is always the name of the link, joint or model that an error is about.
    """

    unbounded = math.inf  # a limit of this size is none

    def __init__(self, file: str) -> None:
        self.file = file

    def entry(self, element: Any, key: str) -> tuple[Any, str | None, str]:
        """An entry of an element: the element with its line, its text (None where it is missing), and how it reads."""
        raise NotImplementedError

    def fail(self, element: Any, message: str, owner: str | None = None) -> FormatError:
        line = None if element is None else element.sourceline
        return FormatError(message, file=self.file, line=line, element=owner)

    def errors_at(self, element: Any, owner: str) -> AbstractContextManager[None]:
        """Errors of a mechanism as errors of an element."""
        return errors_in(self.file, element.sourceline, owner)

    def name(self, element: Any) -> str:
        name = str(element.get("name") or "")
        if not name:
            raise self.fail(element, f"a <{element.tag}> has no name; give it one")
        return name

    def numbers(self, element: Any, key: str, default: Sequence[float], owner: str) -> Floats:
        """The numbers of an entry, as many as in `default`; the default where there is none."""
        at, text, shown = (None, None, "") if element is None else self.entry(element, key)
        if text is None:
            return np.array(default, dtype=np.float64)

        def fail(wrong: str) -> FormatError:
            return self.fail(at, f"{owner}: {shown} {wrong}", owner)

        return numbers_in(text, len(default), len(default), fail)

    def number(self, element: Any, key: str, default: float, owner: str) -> float:
        return float(self.numbers(element, key, (default,), owner)[0])

    def not_negative(self, element: Any, key: str, default: float, owner: str, has: str) -> float:
        """As `number`; `has` begins the message about a negative one."""
        value = self.number(element, key, default, owner)
        if value < 0.0:
            raise self.fail(self.entry(element, key)[0], f"{has} {value:g}; give 0 or more", owner)
        return value

    def limit(self, element: Any, key: str, default: float, owner: str) -> float:
        """As `number`; a limit may be infinite, in words or by its size."""
        text = None if element is None else self.entry(element, key)[1]
        infinite = text is not None and _INFINITE.fullmatch(text.strip())
        value = float(text or "") if infinite else self.number(element, key, default, owner)
        return math.copysign(math.inf, value) if abs(value) >= self.unbounded else value

    def limits(self, element: Any, defaults: tuple[float, float], owner: str) -> tuple[float, float]:
        """Lower and upper limit; with the lower above the upper there is none, as Bullet and ODE have it: a warning."""
        lower, upper = (self.limit(element, k, x, owner) for k, x in zip(("lower", "upper"), defaults, strict=True))
        if lower <= upper:
            return lower, upper
        text = f"{self.file}: joint {owner!r} has the lower limit {lower:g} above its upper limit {upper:g}, which is "
        warn(text + "taken as no limit; swap them if they are meant", LinkwrightWarning, stacklevel=outside())
        return -math.inf, math.inf


class _Check:
    """The first pass: refuses entities, outside declarations and what is too much; says where text is malformed.

    With `only_root` it ends at the outermost element, whose name is `root`.
    """

    def __init__(self, data: bytes, file: str, budget: Budget, *, only_root: bool = False) -> None:
        self.budget, self.only_root = budget, only_root
        self.depth, self.root = 0, ""
        if not data.strip():
            raise FormatError("the file is empty", file=file)
        parser = expat.ParserCreate()
        parser.ordered_attributes = True
        parser.EntityDeclHandler = self._entity
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        try:
            for at in range(0, len(data), _CHUNK):
                parser.Parse(data[at : at + _CHUNK], False)
                if at + _CHUNK - parser.CurrentByteIndex > MAX_TOKEN:
                    raise _Refused(f"has a tag or a comment larger than {MAX_TOKEN >> 20} MB; a model never has one")
            parser.Parse(b"", True)
        except _AtRoot:
            return
        except _Refused as refused:
            raise FormatError(str(refused), file=file, line=parser.CurrentLineNumber) from None
        except expat.ExpatError as error:
            message = expat.ErrorString(error.code)
            raise FormatError(f"is not well-formed XML: {message}", file=file, line=error.lineno) from None
        except (LookupError, ValueError) as error:  # of Python's codecs, by the name in the declaration
            text = f"declares an encoding that is not read ({error}); save it as UTF-8"
            raise FormatError(text, file=file, line=1) from None

    def _entity(self, name: str, *_: Any) -> None:
        raise _Refused(f"declares the entity {name!r}; entities are not read: write the text out")

    def _doctype(self, name: str, system: str | None, public: str | None, _: int) -> None:
        if system or public:
            raise _Refused(f"refers to an outside document type ({system or public}); remove the DOCTYPE line")

    def _start(self, name: str, attributes: list[str]) -> None:
        if self.only_root:
            self.root = name
            raise _AtRoot
        self.depth += 1
        self.budget.elements -= 1
        if self.depth > MAX_NESTING:
            raise _Refused(f"has elements nested more than {MAX_NESTING} deep (<{name[:80]}>); a model never has")
        if self.budget.elements < 0:
            raise _Refused(f"has more than {MAX_ELEMENTS:,} elements (<{name[:80]}>); a model never has that many")
        if len(attributes) > 2 * MAX_ATTRIBUTES:
            text = f"has an element of {len(attributes) // 2} attributes (<{name[:80]}>); none may have more than "
            raise _Refused(text + f"{MAX_ATTRIBUTES}")

    def _end(self, name: str) -> None:
        self.depth -= 1


class TreeWriter:
    """Writes one description as a tree of bodies; subclasses give the lines of the file.

    `left_out` and `notes` are parts of the warning that tells what the file does not hold, or holds differently.
    """

    language = ""

    def __init__(self, d: Description) -> None:
        self.d, self.tree = d, span(d)
        self.left_out = self._without_place()
        self.notes: list[str] = []

    def text(self) -> str:
        """The file; what it does not hold is a warning."""
        text = "\n".join(self.lines()) + "\n"
        parts = [f"left out of the {self.language}: {'; '.join(self.left_out)}"] if self.left_out else []
        parts += [f"in the {self.language}: {'; '.join(self.notes)}"] if self.notes else []
        if parts:
            warn("; ".join(parts), LinkwrightWarning, stacklevel=outside())
        return text

    def lines(self) -> Iterator[str]:
        raise NotImplementedError

    def _without_place(self) -> list[str]:
        """What formats of robots have no place for."""
        d = self.d
        drivers, parameters = listed([x.name for x in d.drivers]), listed(list(d.parameters))
        parts = {
            "SYSTEM": d.system is not None,
            f"the drivers {drivers}": d.drivers,
            "the poses of bodies and the initial state": d.initial or d.start is not None,
            f"the parameters {parameters} (their present values are written)": d.parameters,
        }
        return present(parts)

    def refuse(self, wrong: list[str], advice: str) -> None:
        """An error that lists rods, point constraints and what else the language cannot hold, if there is anything."""
        wrong = [*names_of_elements(self.d.point_constraints), *wrong]
        if wrong:
            text = f"{self.language} cannot hold {first_few(wrong, 12)}; {advice}"
            raise ModelError(text, element=self.d.name)

    # -- the tree -------------------------------------------------------------------------------------------------
    def sides(self, i: int) -> tuple[Pose, Pose]:
        """The joint's frame on the body that carries the one at a position of the tree, and on the latter."""
        (_, ri, pi), (_, rj, pj) = (self.d.side(int(self.tree.joint[i]), side) for side in ("i", "j"))
        near, far = Pose(ri, pi), Pose(rj, pj)
        return (far, near) if self.tree.reverse[i] else (near, far)

    def step(self, i: int, frame: Pose = HERE) -> Pose:
        """A frame of the body at a position of the tree, in the body that carries it, coordinates zero."""
        near, far = self.sides(i)
        turn = self.d.kind_of(int(self.tree.joint[i])).neutral_rotation()
        r = snapped(near.r @ (turn.T if self.tree.reverse[i] else turn) @ far.r.T)
        return Pose(snapped(r @ frame.r), near.p + r @ (frame.p - far.p) + 0.0)

    def bounded(self, joint: int) -> bool:
        """Whether a joint has a lower or an upper limit."""
        return math.isfinite(self.d.lower[joint]) or math.isfinite(self.d.upper[joint])

    def mimics(self, joint: int) -> Iterator[Mimic]:
        """The couplings that a joint follows by."""
        return (m for m in self.d.mimics if m.follower == joint)


def present(parts: Mapping[str, object]) -> list[str]:
    """The texts about what there is: those whose value is true."""
    return [text for text, there in parts.items() if there]


def quoted(text: str) -> str:
    """A name as an attribute with its quotes; letters that XML cannot hold are an error."""
    if any(ord(c) < 32 or c in "\ufffe\uffff" or "\ud800" <= c <= "\udfff" for c in text):
        raise ModelError(f"{text!r} has letters that XML cannot hold; rename it", element=text)
    from xml.sax.saxutils import quoteattr  # weight: urllib.request, which readers do not need

    return quoteattr(text)


def number_text(x: float) -> str:
    """A number that reads back as exactly this one; zero has no sign."""
    return repr(float(x) + 0.0).removesuffix(".0")


def numbers(values: Any) -> str:
    """Numbers with a space between."""
    return " ".join(number_text(x) for x in values)


def attributes(**values: float) -> str:
    """Attributes with numbers, in their order."""
    return " ".join(f'{key}="{number_text(x)}"' for key, x in values.items())


def elements(**values: float) -> str:
    """Elements with numbers as their text, in their order."""
    return "".join(f"<{key}>{number_text(x)}</{key}>" for key, x in values.items())
