"""`linkwright run`: the analysis that a model file asks for, with its table, its counters, its results and its page."""

from __future__ import annotations

import warnings
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from linkwright.cli.screen import Settings, assignments, console, grid, load, tell_error, tell_warning
from linkwright.errors import LinkwrightError, NameNotFound

if TYPE_CHECKING:
    from linkwright.mechanism.description import Description
    from linkwright.results.solution import Solution

WAYS = ("minimum-norm", "pivoting")
ModelFile = Annotated[Path, typer.Argument(help="A model file: .mks.", show_default=False)]


def run(
    model: ModelFile,
    set_: Settings = None,
    times: Annotated[
        str | None,
        typer.Option(metavar="START:END:INTERVAL", help="Other times, as 0:2*pi:0.1.", show_default="the model's"),
    ] = None,
    freedom: Annotated[
        str | None,
        typer.Option(help="What becomes of freedom left: 'minimum-norm' or 'pivoting'.", show_default="the model's"),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for what is written.")] = Path("out"),
    plot: Annotated[bool, typer.Option("--plot", help="Draw position, velocity and acceleration as a PNG.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Write the results as a CSV table too.")] = False,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write the animation as an HTML page.")] = True,
) -> None:
    """Analyse MODEL as its SYSTEM says: print its table, find its motion, and write results and animation."""
    points = _checked(times, freedom, output)
    loaded = load(model, parameters=assignments(set_) or None)
    if points is None and loaded.mechanism.description.system is None:
        raise LinkwrightError(f"{model}: says no times; give them, as in --times 0:8:0.1")
    for warning in loaded.warnings:
        tell_warning(warning)
    name = model.name.removesuffix(".mks")
    code = perform(loaded.mechanism, name, output, times=points, freedom=freedom, plot=plot, csv=csv, page=page)
    if code:
        raise typer.Exit(code)


def perform(
    mechanism: Any,
    name: str,
    output: Path,
    *,
    times: Any = None,
    freedom: str | None = None,
    plot: bool = False,
    csv: bool = False,
    page: bool = True,
) -> int:
    """Print the table, analyse, and write what is asked for into a folder; the exit code."""
    import linkwright as lw

    screen = console()
    screen.print(mechanism.name, style="bold")
    screen.print(table(mechanism.description))
    screen.print()
    started = perf_counter()
    with _Progress(screen) as progress:
        solution = lw.analyse(mechanism, times=times, freedom=freedom, progress=progress)
    for note in solution.status.notes:
        screen.print(note, soft_wrap=True)
    screen.print(f"{solution.counters}, in {perf_counter() - started:.2f} s", soft_wrap=True)
    if len(solution):
        screen.print()
        screen.print(extremes(solution))
        screen.print()
    for written in _write(solution, output, name, plot=plot, csv=csv, page=page):
        screen.print(written, soft_wrap=True)
    if not solution.status:
        tell_error(f"{solution.status.message}; {solution.status.advice}")
        return 1
    return 0


def table(description: Description) -> Table:
    """The model table: every element with its number of equations, and the count of freedom."""
    from linkwright.constraints.table import model_table

    found = model_table(description)
    rows: list[tuple[Any, ...]] = [(row.element, row.kind, row.equations) for row in _shortened(found.rows)]
    total = [
        ("", "", ""),
        ("bodies", "ground included", found.bodies),
        ("coordinates", "x, y, z, e0, e1, e2, e3 of each body", found.coordinates),
        ("equations", "", found.equations),
        ("degrees of freedom", "by count", found.degrees_of_freedom),
    ]
    return grid(("element", "kind", "equations"), *rows, *total, right=(2,))


def _shortened(rows: tuple[Any, ...], most: int = 40) -> list[Any]:
    """The rows, or of a long list its beginning and end."""
    from linkwright.constraints.table import Row

    if len(rows) <= most:
        return list(rows)
    left = rows[most - 5 : -5]
    return [*rows[: most - 5], Row(f"… {len(left)} more", "", sum(r.equations for r in left)), *rows[-5:]]


def extremes(solution: Solution) -> Table:
    """For every body (the first of many) where it goes, and how fast."""
    rows: list[tuple[Any, ...]] = [("body", "x from … to", "y from … to", "z from … to", "speed to", "turning to")]
    names = solution.description.body_names
    for name in names[:20]:
        place, speed = solution.position(name), np.linalg.norm(solution.velocity(name), axis=1)
        turning = np.linalg.norm(solution.angular_velocity(name), axis=1)
        ranges = [f"{_tidy(place[:, k].min())} … {_tidy(place[:, k].max())}" for k in range(3)]
        rows.append((name, *ranges, f"{_tidy(speed.max())} m/s", f"{_tidy(turning.max())} rad/s"))
    if len(names) > 20:
        rows.append((f"… {len(names) - 20} more", "", "", "", "", ""))
    return grid(*rows)


def _tidy(x: float) -> str:
    return f"{0.0 if abs(x) < 1e-12 else x:.4g}"


def _write(solution: Solution, output: Path, name: str, *, plot: bool, csv: bool, page: bool) -> list[str]:
    """Write the files; a line for each."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise LinkwrightError(f"{output}: is a file; name a folder with --output") from None
    lines = []
    path = output / f"{name}.nc"
    solution.save(path)
    lines.append(f"{path}: the results; lw.open({str(path)!r}) reads them")
    if csv:
        solution.to_csv(output / f"{name}.csv")
        lines.append(f"{output / f'{name}.csv'}: the same as a table")
    if plot and len(solution):
        solution.plot(path=output / f"{name}.png")
        lines.append(f"{output / f'{name}.png'}: position, velocity and acceleration")
    if page and len(solution):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            solution.animate(output / f"{name}.html")
        for warning in caught:
            tell_warning(str(warning.message))
        lines.append(f"{output / f'{name}.html'}: the animation; open it in any browser")
    return lines


def _checked(times: str | None, freedom: str | None, output: Path) -> Any:
    """The times asked for; what is wrong with the options is told before anything is read, printed or computed."""
    if freedom is not None and freedom not in WAYS:
        raise NameNotFound("way with freedom", freedom, list(WAYS))
    if output.exists() and not output.is_dir():
        raise LinkwrightError(f"{output}: is a file; name a folder with --output")
    return None if times is None else _times(times)


def _times(text: str) -> Any:
    """The times START:END:INTERVAL."""
    from linkwright.constraints.motion import times_of
    from linkwright.formats.mks.constants import constant

    parts = text.split(":")
    if len(parts) != 3 or not all(part.strip() for part in parts):
        raise LinkwrightError(f"--times {text}: give START:END:INTERVAL in seconds, as in --times 0:8:0.1")
    start, end, interval = (constant(part, f"--times {text}: a time").number or 0.0 for part in parts)
    if not (end >= start and interval > 0.0):
        raise LinkwrightError(f"--times {text}: the end must not be before the start, and the interval be positive")
    if (end - start) / interval > 1e7:
        raise LinkwrightError(f"--times {text}: that is more than ten million points; take a longer interval")
    return times_of(start, end, interval)


class _Progress:
    """A bar on a terminal, while an analysis runs; it leaves nothing behind."""

    def __init__(self, screen: Console) -> None:
        self._bar: Any = None
        if screen.is_terminal:
            from rich.progress import Progress

            self._bar = Progress(console=screen, transient=True)
            self._task = self._bar.add_task("assembling", total=None)

    def __enter__(self) -> _Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __call__(self, point: int, points: int) -> None:
        if self._bar is not None and not point % 64:
            self._bar.update(self._task, description="time points", total=points, completed=point)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
