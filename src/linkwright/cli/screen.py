"""What the verbs share: reading a model with its warnings, parameters, the model's table, how things are told."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from linkwright.errors import LinkwrightError
from linkwright.text import on_one_line, visible

if TYPE_CHECKING:
    from linkwright.model import Joint, Mechanism

#: What `--set` takes.
Base = Annotated[
    str | None, typer.Option(help="URDF, SDF: 'fixed' or 'floating'.", show_default="fixed; SDF: as the file says")
]
Followers = Annotated[str | None, typer.Option(help="URDF: 'follow' or 'independent'.", show_default="follow")]
Fixed = Annotated[
    str | None, typer.Option(help="URDF, SDF, MJCF: fixed joints, 'merge' or 'keep'.", show_default="merge")
]
Folders = Annotated[
    list[Path] | None,
    typer.Option("--folder", help="SDF, MJCF: a further folder whose files may be included; may be repeated."),
]
Trust = Annotated[bool, typer.Option("--trust", help="xacro: run the file's expressions, which may do anything.")]
Arguments = Annotated[
    list[str] | None,
    typer.Option("--argument", metavar="NAME=VALUE", help="xacro: a value of an <xacro:arg>; may be repeated."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter's value: 0.3, 1/3, 25 deg; may be repeated."),
]
_WIDE = 200  # columns where the output is no terminal


class _Screen(Console):
    """A console that shows what is in names and messages and obeys none of it: the one place where verbs print."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def console(stream: IO[str] | None = None) -> Console:
    """A console on a stream (stdout unless given); names are never read as markup nor obeyed by the terminal."""
    stream = sys.stdout if stream is None else stream
    width = None if stream.isatty() else _WIDE
    return _Screen(file=stream, markup=False, highlight=False, emoji=False, width=width)


class Interrupted(Exception):
    """Ctrl-C, with a sentence that says what is left and how to go on."""


def tell_error(message: str) -> None:
    """One line on stderr."""
    _tell("error", "bold red", message)


def tell_text(message: str) -> None:
    """An error of several lines on stderr, as it is: places in a file with the text beneath them."""
    console(sys.stderr).print(Text(message), soft_wrap=True)


def tell_warning(message: str) -> None:
    """One line on stderr."""
    _tell("warning", "yellow", message)


def _tell(word: str, style: str, message: str) -> None:
    line = Text.assemble((f"{word}: ", style), " ".join(message.split()))
    console(sys.stderr).print(line, soft_wrap=True)


@dataclass
class Loaded:
    """A model that was read, and what was said while reading."""

    mechanism: Mechanism
    warnings: list[str] = field(default_factory=list)


def load(path: Path | str, **options: Any) -> Loaded:
    """Read a model; options that are None are left to the reader. Warnings are kept, not printed."""
    import linkwright as lw

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mechanism = lw.load(path, **{name: value for name, value in options.items() if value is not None})
    return Loaded(mechanism, [str(w.message) for w in caught])


def assignments(settings: list[str] | None) -> dict[str, str]:
    """Values of parameters from NAME=VALUE, as text that the reader of the model understands."""
    from linkwright.formats.mks.constants import constant

    found: dict[str, str] = {}
    for text in settings or ():
        name, sign, value = text.partition("=")
        if not sign or not name.strip() or not value.strip():
            raise LinkwrightError(f"--set {text}: give NAME=VALUE, as in --set length=0.3 or --set 'bend=25 deg'")
        constant(value, f"--set {name.strip()}")
        found[name.strip()] = value
    return found


def file_options(folders: list[Path] | None, trust: bool, arguments: list[str] | None) -> dict[str, Any]:
    """What a reader is told about other files and about code in its file; None for what was not given."""
    named: dict[str, str] = {}
    for text in arguments or ():
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise LinkwrightError(f"--argument {text}: give NAME=VALUE, as in --argument prefix=left")
        named[name.strip()] = value
    return {"folders": folders or None, "trust": trust or None, "arguments": named or None}


def model_table(mechanism: Mechanism) -> Table:
    """One row a body with the joint that carries it, in the order of the coordinates."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, right in (
        ("body", False),
        ("mass kg", True),
        ("joint", False),
        ("kind", False),
        ("carried by", False),
        ("q", True),
        ("v", True),
        ("range", False),
    ):
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for body, joint in zip(mechanism.bodies, mechanism.joints, strict=True):
        table.add_row(
            on_one_line(body.name),
            f"{body.mass:.4g}",
            on_one_line(joint.name),
            joint.kind,
            on_one_line(body.parent),
            _places(joint.q_slice),
            _places(joint.v_slice),
            f"follows {on_one_line(joint.mimics)}" if joint.mimics else _range(joint),
        )
    return table


def _places(part: slice) -> str:
    first, last = part.start, part.stop - 1
    return "" if last < first else f"{first}" if first == last else f"{first}–{last}"


def _range(joint: Joint) -> str:
    if joint.lower == -float("inf") and joint.upper == float("inf"):
        return ""
    unit = {"revolute": " rad", "prismatic": " m"}.get(joint.kind, "")
    return f"{joint.lower:.4g} … {joint.upper:.4g}{unit}"


def grid(*rows: tuple[Any, ...], right: tuple[int, ...] = ()) -> Table:
    """A table whose first row is its heading; the columns in `right` are set flush right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for k, heading in enumerate(rows[0]):
        table.add_column(str(heading), justify="right" if k in right else "left")
    for row in rows[1:]:
        table.add_row(*(on_one_line(str(x)) for x in row))
    return table


def made_folder(output: Path) -> None:
    """The folder for what is written, made if it is not there."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise LinkwrightError(f"{output}: is a file; name a folder with --output") from None
    except OSError as error:
        raise LinkwrightError(f"{output}: cannot be made ({error.strerror}); choose another with --output") from None


class Bar:
    """A bar on a terminal, while something long runs; it leaves nothing behind."""

    def __init__(self, screen: Console, word: str = "assembling") -> None:
        self._bar: Any = None
        self._shown = 0.0
        if screen.is_terminal:
            from rich.progress import Progress

            self._bar = Progress(console=screen, transient=True)
            self._task = self._bar.add_task(word, total=None)

    def __enter__(self) -> Bar:
        if self._bar is not None:
            self._bar.start()
        return self

    def __call__(self, done: float, total: float) -> None:
        """So many of so many time points, or seconds of simulated time."""
        self.tell("time points" if isinstance(total, int) else "simulated time", done, total)

    def tell(self, word: str, done: float, total: float) -> None:
        """What it is at, and how far."""
        if self._bar is not None and perf_counter() - self._shown > 0.05:
            self._shown = perf_counter()
            self._bar.update(self._task, description=word, total=total, completed=done)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
