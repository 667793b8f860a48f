"""XML read safely: no entities, no network, no huge trees; what is wrong is said with file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.parsers import expat

from lxml import etree

from linkwright.errors import FormatError
from linkwright.formats.files import MAX_BYTES, read_bytes


class _Refused(Exception):
    """Raised inside the first pass to stop it."""


def parse_xml(path: str | Path) -> Any:
    """The root element of an XML file; each element knows its line (`sourceline`).

    A first pass looks only at declarations and stops at the first entity, before anything could expand.
    """
    file = str(path)
    data = read_bytes(path, MAX_BYTES)
    _check(data, file)
    parser = _parser(recover=False)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        # Prefixes that nobody declared (left over by xacro) are harmless; anything else is not.
        if {entry.domain for entry in parser.error_log} == {etree.ErrorDomains.NAMESPACE}:
            return etree.fromstring(data, _parser(recover=True))
        raise FormatError(f"is not well-formed XML: {error.msg}", file=file, line=error.lineno) from error


def _parser(*, recover: bool) -> Any:
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        recover=recover,
    )


def _check(data: bytes, file: str) -> None:
    """Refuse entities and outside declarations; say where the text is not well-formed."""
    parser = expat.ParserCreate()

    def entity(name: str, *_: Any) -> None:
        raise _Refused(f"declares the entity {name!r}; entities are not read: write the text out")

    def doctype(name: str, system: str | None, public: str | None, _: int) -> None:
        if system or public:
            raise _Refused(f"refers to an outside document type ({system or public}); remove the DOCTYPE line")

    parser.EntityDeclHandler = entity
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(data, True)
    except _Refused as refused:
        raise FormatError(str(refused), file=file, line=parser.CurrentLineNumber) from None
    except expat.ExpatError as error:
        message = expat.ErrorString(error.code)
        raise FormatError(f"is not well-formed XML: {message}", file=file, line=error.lineno) from None
