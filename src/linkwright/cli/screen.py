"""What the verbs share: reading a model with its warnings, parameters, the model's table, errors and warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

import linkwright as lw
from linkwright.base.activity import shown_by
from linkwright.errors import LinkwrightError, on_one_line, visible
from linkwright.model.curve_elements import parts_of_curves

if TYPE_CHECKING:
    from linkwright.mechanism import Joint, Mechanism
    from linkwright.model.units import Units

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


def print_error(message: str) -> None:
    """One line on stderr."""
    _tell("error", "bold red", message)


def print_text(message: str) -> None:
    """An error of several lines on stderr, as it is: places in a file with the text beneath them."""
    console(sys.stderr).print(Text(message), soft_wrap=True)


def print_warning(message: str) -> None:
    """One line on stderr."""
    _tell("warning", "yellow", message)


def _tell(word: str, style: str, message: str) -> None:
    line = Text.assemble((f"{word}: ", style), " ".join(message.split()))
    console(sys.stderr).print(line, soft_wrap=True)


@contextmanager
def caught_warnings() -> Iterator[list[str]]:
    """The texts of all warnings in the block, in a list that is filled at its end."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    texts += [str(warning.message) for warning in caught]


@contextmanager
def printed_warnings() -> Iterator[None]:
    """All warnings in the block are printed at its end, each as a line."""
    with caught_warnings() as texts:
        yield
    for text in texts:
        print_warning(text)


@dataclass
class Loaded:
    """A model that was read, and the warnings of its reader."""

    mechanism: Mechanism
    warnings: list[str]

    def print_warnings(self) -> None:
        """Print the warnings, one line each."""
        for warning in self.warnings:
            print_warning(warning)


def load(path: Path | str, **options: Any) -> Loaded:
    """Read a model; options that are None are left to the reader. Warnings are stored, not printed."""
    with caught_warnings() as texts:
        mechanism = lw.load(path, **{name: value for name, value in options.items() if value is not None})
    return Loaded(mechanism, texts)


def assignments(settings: list[str] | None) -> dict[str, str]:
    """Values of parameters from NAME=VALUE, as text that the reader of the model understands."""
    from linkwright.formats.mks.values import constant  # weight: lark

    values = named_texts("--set", settings, "length=0.3 or --set 'bend=25 deg'")
    for name, value in values.items():
        if not value.strip():
            raise LinkwrightError(f"--set {name}={value}: give NAME=VALUE, as in --set length=0.3")
        constant(value, f"--set {name}")
    return values


def file_options(folders: list[Path] | None, trust: bool, arguments: list[str] | None) -> dict[str, Any]:
    """What a reader needs about other files and about code in its file; None for what was not given."""
    named = named_texts("--argument", arguments, "prefix=left")
    return {"folders": folders or None, "trust": trust or None, "arguments": named or None}


def as_options(text: str) -> str:
    """Advice that names Python's arguments, in the words of the command line."""
    words = {
        "lw.Saving(checkpoint=..., resume=True)": "--resume",
        "resume=True": "--resume",
        "leave resume out": "leave --resume out",
        "overwrite=True": "--overwrite",
        "on='local'": "--on local",
        "lw.Saving(checkpoint=...)": "--checkpoint FILE",
        "method='radau'": "--method radau",
        "a smaller dt": "a smaller --step",
        "loosen rtol and atol": "loosen --rtol",
        "precision='float64'": "--precision float64",
        "dt=0.001": "--dt 0.001",
        "function='step'": "--function step",
        "leave arduino out": "leave --arduino out",
        "time_limit=...": "--time-limit SECONDS",
        "time_limit": "--time-limit",
        "give times=...": "give --times 0:8:0.1",
        "parameters=...": "--set",
        "settings=lw.ToleranceSettings(derivatives='differences')": "--differences",
        "clearances=...": "--clearance 'pin=0.02 mm'",
        "the option 'parameters' is": "the option --set is",
        "the option 'folders' is": "the option --folder is",
        "as in crank='": "as in --crank '",
        "give fluctuation=0.05": "give --fluctuation 0.05",
        "fluctuation is ": "--fluctuation is ",
        "or leave about out": "or leave --about out",
    }
    for python, option in words.items():
        text = text.replace(python, option)
    return text


def named_texts(option: str, texts: list[str] | None, example: str) -> dict[str, str]:
    """The texts of an option NAME=VALUE by their names."""
    values: dict[str, str] = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise LinkwrightError(f"{option} {text}: give NAME=VALUE, as in {option} {example}")
        values[name.strip()] = value
    return values


def model_table(mechanism: Mechanism) -> Table:
    """One row per body with the joint that carries it, in the order of the coordinates; without those of curves."""
    inside = set(parts_of_curves(mechanism.description.point_constraints))
    units = mechanism.description.units
    mass = units.shown("kg")
    rows = [
        (
            body.name,
            f"{mass.of(body.mass):.4g}",
            joint.name,
            joint.kind,
            body.parent,
            _places(joint.q_slice),
            _places(joint.v_slice),
            f"follows {joint.mimics}" if joint.mimics else _limits(joint, units),
        )
        for body, joint in zip(mechanism.bodies, mechanism.joints, strict=True)
        if body.name not in inside
    ]
    head = ("body", f"mass {mass.text}", "joint", "kind", "parent", "q", "v", "limits")
    return grid(head, *rows, right=(1, 5, 6), fold=True)


def _places(part: slice) -> str:
    first, last = part.start, part.stop - 1
    return "" if last < first else f"{first}" if first == last else f"{first}–{last}"


def _limits(joint: Joint, units: Units) -> str:
    if joint.lower == -float("inf") and joint.upper == float("inf"):
        return ""
    unit = {"revolute": "rad", "screw": "rad", "prismatic": "m"}.get(joint.kind)
    if unit is None:
        return f"{joint.lower:.4g} … {joint.upper:.4g}"
    shown = units.shown(unit)
    return f"{shown.of(joint.lower):.4g} … {shown.of(joint.upper):.4g} {shown.text}"


def grid(*rows: tuple[Any, ...], right: tuple[int, ...] = (), fold: bool = False) -> Table:
    """A table whose first row is its heading; the columns in `right` are set flush right.

    Texts that are too long for their column are cut, or with `fold` continued in the next line.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for k, heading in enumerate(rows[0]):
        justify: Literal["right", "left"] = "right" if k in right else "left"
        table.add_column(str(heading), justify=justify, overflow="fold" if fold else "ellipsis")
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
        self._shown = 0.0
        self._activities = ExitStack()
        self._bar: Any = self.progress(screen, word) if screen.is_terminal else None

    def progress(self, screen: Console, word: str) -> Any:
        """What is shown, with one task."""
        from rich.progress import Progress  # weight: rich.progress

        bar = Progress(console=screen, transient=True)
        self._task = bar.add_task(word, total=None)
        return bar

    def __enter__(self) -> Bar:
        if self._bar is not None:
            self._bar.start()
            self._activities.enter_context(shown_by(self.activity))
        return self

    def __call__(self, done: float, total: float) -> None:
        """So many of so many time points, or seconds of simulated time."""
        self.show("time points" if isinstance(total, int) else "simulated time", done, total)

    def activity(self, word: str, done: float, total: float) -> None:
        """What the library does meanwhile: compiling, say."""
        self.show(word, done, total)

    def show(self, word: str, done: float, total: float) -> None:
        """What it is at, and how far."""
        if self._bar is not None and perf_counter() - self._shown > 0.05:
            self._shown = perf_counter()
            self._bar.update(self._task, description=word, total=total or None, completed=done)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._activities.close()
            self._bar.stop()
