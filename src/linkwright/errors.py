"""One tree of exceptions; each carries the data that its message names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

#: Control characters but line breaks and tabs; what turns the direction of the text after it; and what is no character.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def visible(text: str) -> str:
    """The text with ESC as \\x1b, a right-to-left override as \\u202e, and so on; line breaks and tabs stay."""
    return text if text.isprintable() else UNSEEN.sub(_escaped, text)


def on_one_line(text: str) -> str:
    """The text as `visible` has it, with line breaks and tabs spelled out too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


class LinkwrightError(Exception):
    """The root of every error that Linkwright raises on purpose; names from files in its text are made visible.

    Errors go from process to process with the data that they carry.
    """

    def __str__(self) -> str:
        return visible(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, vars(self))


def _restored(kind: type[LinkwrightError], args: tuple[Any, ...], data: dict[str, Any]) -> LinkwrightError:
    """An error of another process: its message is put together already."""
    error: LinkwrightError = Exception.__new__(kind, *args)  # that of MemoryError refuses subclasses
    vars(error).update(data)
    return error


class ModelError(LinkwrightError, ValueError):
    """A mechanism that cannot be: it names the body or joint, and says what to change."""

    def __init__(self, message: str, *, element: str | None = None) -> None:
        super().__init__(message)
        self.element = element


class FormatError(ModelError):
    """A model file that cannot be read; carries the file and, where known, the line."""

    def __init__(
        self, message: str, *, file: str | None = None, line: int | None = None, element: str | None = None
    ) -> None:
        place = on_one_line(file or "") + (f":{line}" if line is not None else "")
        super().__init__(f"{place}: {message}" if file else message, element=element)
        self.file = file
        self.line = line


class MksError(FormatError):
    """A `.mks` file that cannot be read; its message has several lines, with a caret beneath each place.

    `problems` holds each problem that was found: its line, column, message and excerpt.
    """

    def __init__(self, problems: Sequence[Any], *, file: str) -> None:
        place = on_one_line(file)
        parts = [f"{place}:{p.line}:{p.column}: {p.message}\n{p.excerpt}".rstrip() for p in problems]
        super().__init__("\n".join(parts))
        self.problems = tuple(problems)
        self.file = file
        self.line = problems[0].line if problems else None


class NameNotFound(LinkwrightError, KeyError):
    """A name that the mechanism does not have; carries the name and the close ones."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        from difflib import get_close_matches  # weight: difflib

        by_case: dict[str, list[str]] = {}
        for one in known:
            by_case.setdefault(one.casefold(), []).append(one)
        wanted = str(name).casefold()
        close = [one for like in get_close_matches(wanted, by_case, n=3) for one in by_case[like]][:3]
        hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
        if not known:
            hint = f"; there is no {kind} at all"
        elif not hint:
            # Of many, those that resemble the name come first.
            alike = [one for one in known if wanted and wanted in one.casefold()]
            alike += [one for like in get_close_matches(wanted, by_case, n=8, cutoff=0.4) for one in by_case[like]]
            listed = known if len(known) <= 8 else list(dict.fromkeys([*alike, *known]))
            hint = f"; there are: {', '.join(listed[:8])}{', ...' if len(known) > 8 else ''}"
        self.message = f"no {kind} named {name!r}{hint}"
        super().__init__(self.message)
        self.name = name
        self.close = close

    def __str__(self) -> str:
        return visible(self.message)


class _ArrayError(LinkwrightError):
    """An array that a function does not take; carries what was given and what is wanted."""

    def __init__(self, message: str, *, given: Any = None, wanted: Any = None) -> None:
        super().__init__(message)
        self.given = given
        self.wanted = wanted


class ShapeError(_ArrayError, ValueError):
    """An array of the wrong shape; carries what was given and what is wanted."""


class DtypeError(_ArrayError, TypeError):
    """An array of the wrong dtype; carries what was given and what is wanted."""


class ArgumentError(LinkwrightError, TypeError):
    """An argument that a function does not take, or of the wrong type; says where it belongs."""

    def __init__(self, message: str, *, argument: str) -> None:
        super().__init__(message)
        self.argument = argument


class MemoryLimitError(LinkwrightError, MemoryError):
    """A request that does not fit into memory; carries the bytes that it needs and those that there are."""

    def __init__(self, message: str, *, needed: int = 0, available: int = 0) -> None:
        super().__init__(message)
        self.needed = needed
        self.available = available


class RecordingError(LinkwrightError, TypeError):
    """A function that cannot be recorded as written; says which NumPy idiom to use instead."""


class KernelError(LinkwrightError, RuntimeError):
    """A program that a back-end cannot compile or run."""


class AssemblyError(ModelError):
    """A mechanism that cannot be assembled; `misses` has the gap (m) at each element when the rest is closed."""

    def __init__(self, message: str, *, misses: dict[str, float], element: str | None = None) -> None:
        super().__init__(message, element=element)
        self.misses = misses


class JammedError(ModelError):
    """Friction that follows reactions and finds none that agree: the mechanism locks itself at `time` (s)."""

    def __init__(self, message: str, *, element: str | None = None, time: float = 0.0) -> None:
        super().__init__(message, element=element)
        self.time = time


class ControlError(LinkwrightError, RuntimeError):
    """A controller that cannot go on: `reason` in a word or two, and the joints that it is about."""

    def __init__(self, message: str, *, reason: str = "controller failed", joints: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.reason = reason
        self.joints = tuple(joints)


class DataError(LinkwrightError, ValueError):
    """Recorded data that cannot be used; carries the row (of an array, or the line of a file) and the column."""

    def __init__(self, message: str, *, row: int | None = None, column: str | None = None) -> None:
        super().__init__(message)
        self.row = row
        self.column = column


class ExcitationError(DataError):
    """An input too poor for what is asked; carries the order it is persistently exciting of, and the wanted one."""

    def __init__(self, message: str, *, order: int, wanted: int) -> None:
        super().__init__(message)
        self.order = order
        self.wanted = wanted


class UnstableModelError(LinkwrightError, ValueError):
    """An identified model that is unstable where that is refused; carries the model."""

    def __init__(self, message: str, *, model: Any) -> None:
        super().__init__(message)
        self.model = model


class DesignError(LinkwrightError, ValueError):
    """A controller that cannot be designed; carries the modes that stand in the way and the γ that were tried."""

    def __init__(self, message: str, *, modes: Sequence[complex] = (), history: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.modes = tuple(modes)
        self.history = tuple(history)


class LinkwrightWarning(UserWarning):
    """Something was repaired or slowed down; the result is still right."""

    def __str__(self) -> str:
        return visible(super().__str__())


class SlowCaseWarning(LinkwrightWarning):
    """A case of a study that takes long, and may never end; the study goes on."""
