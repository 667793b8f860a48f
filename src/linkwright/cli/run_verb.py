"""`linkwright run`: the analysis that a model file asks for, with its table, its counters, its results and its page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, get_args

import numpy as np
import typer
from rich.table import Table

import linkwright as lw
from linkwright.base.arguments import check_names
from linkwright.cli.screen import (
    Bar,
    Settings,
    as_options,
    assignments,
    console,
    grid,
    load,
    made_folder,
    print_error,
    printed_warnings,
)
from linkwright.errors import LinkwrightError, NameNotFound, on_one_line
from linkwright.model.curve_elements import parts_of_curves
from linkwright.model.requested_analysis import FIXED_STEP_METHODS, FREEDOMS, SIMULATION_METHODS, AnalysisKind, System
from linkwright.model.units import SI, TIME, Units
from linkwright.results.status import Series

if TYPE_CHECKING:
    from rich.console import Console

    from linkwright.analysis.machine_report import MachineForces
    from linkwright.model.description import Description
    from linkwright.model.units import Shown
    from linkwright.results.solution import Solution

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
        typer.Option(
            help="How undriven degrees of freedom move: 'minimum-norm' or 'pivoting'.", show_default="the model's"
        ),
    ] = None,
    analysis: Annotated[
        str | None,
        typer.Option(help="'kinematic', 'dynamic', 'static' or 'inverse-dynamic'.", show_default="the model's"),
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="Of a simulation: rk45, dop853, rk4, ….", show_default="the model's")
    ] = None,
    rtol: Annotated[
        float | None, typer.Option(help="The relative tolerance of a simulation.", show_default="the model's")
    ] = None,
    step: Annotated[
        float | None, typer.Option(help="The step of a simulation, in seconds.", show_default="the model's")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Where a simulation keeps its state, to go on from.", show_default=False)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint.")] = False,
    forces: Annotated[
        bool,
        typer.Option(
            "--forces", help="Print the forces of a machine: on ground, in joints, of its motor; static balance."
        ),
    ] = False,
    crank: Annotated[
        str | None,
        typer.Option(metavar="JOINT", help="With --forces: the motor's joint.", show_default="the driven one"),
    ] = None,
    about: Annotated[
        str | None,
        typer.Option(metavar="FRAME", help="With --forces: the frame of ground for moments.", show_default="ground"),
    ] = None,
    fluctuation: Annotated[
        float | None,
        typer.Option(help="With --forces: of the speed, for a flywheel: (max − min)/mean.", show_default=False),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for what is written.")] = Path("out"),
    plot: Annotated[bool, typer.Option("--plot", help="Draw position, velocity and acceleration as a PNG.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Write the results as a CSV table too.")] = False,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write the animation as an HTML page.")] = True,
) -> None:
    """Analyse MODEL as its SYSTEM says: print its table, find its motion, and write results and animation.

    The exit code is 0 if the run came to its end. A run that ended early says why, and what it computed is kept.
    """
    points = _checked(times, freedom, output)
    kind = analysis_kind(analysis)
    asked = {"crank": crank, "about": about, "fluctuation": fluctuation}
    for option, value in asked.items():
        if value is not None and not forces:
            raise LinkwrightError(f"--{option} belongs to a report of forces; add --forces")
    loaded = load(model, parameters=assignments(set_) or None)
    units = loaded.mechanism.description.units
    if times is not None:
        points = time_points(times, units)
    elif loaded.mechanism.description.system is None:
        raise LinkwrightError(f"{model}: no time range; use --times, as in --times 0:8:0.1")
    loaded.print_warnings()
    name = model.name.removesuffix(".mks")
    system = loaded.mechanism.description.system or System()
    chosen = kind or system.analysis
    passing = output / f"{name}.checkpoint" if checkpoint is None and chosen == "dynamic" else None
    simulation = {"method": method, "rtol": rtol, "dt": step, "checkpoint": checkpoint or passing, "resume": resume}
    settings = {key: value for key, value in simulation.items() if value is not None and value is not False}
    _check_settings(settings, chosen, system)
    options = {"times": points, "freedom": freedom, "analysis": kind, **settings}
    machine = asked if forces else None
    if machine is not None:
        _check_machine(loaded.mechanism, machine)
    code = perform(loaded.mechanism, name, output, options, machine=machine, plot=plot, csv=csv, page=page)
    if code:
        raise typer.Exit(code)
    if passing is not None:  # a run that came to its end needs nothing to go on from
        passing.unlink(missing_ok=True)


def perform(
    mechanism: Any,
    name: str,
    output: Path,
    options: Mapping[str, Any] = MappingProxyType({}),
    *,
    machine: Mapping[str, Any] | None = None,
    plot: bool = False,
    csv: bool = False,
    page: bool = True,
) -> int:
    """Print the table, analyse, and write what is asked for into a folder; the exit code.

    `options` are those of `lw.analyse`, and of a simulation `checkpoint` and `resume`; `machine` those of
    `lw.machine_forces`, None without a report of these.
    """
    screen = console()
    screen.print(on_one_line(mechanism.name), style="bold")
    screen.print(table(mechanism.description))
    mobility = mechanism.dof().mobility
    if mobility is not None:
        screen.print(mobility.summary, soft_wrap=True)
    screen.print()
    started = perf_counter()
    arguments = {key: value for key, value in options.items() if key not in ("checkpoint", "resume")}
    checkpoint = options.get("checkpoint")
    if checkpoint is not None:
        arguments["saving"] = lw.Saving(checkpoint=checkpoint, resume=options.get("resume", False))
    with _room(None if checkpoint is None else output), Bar(screen) as progress:
        solution = lw.analyse(mechanism, progress=progress, **arguments)
    for note in solution.status.notes:
        screen.print(note, soft_wrap=True)
    screen.print(f"{solution.counters}, in {perf_counter() - started:.2f} s", soft_wrap=True)
    if len(solution):
        screen.print()
        screen.print(extremes(solution))
        screen.print()
        if solution.series:
            screen.print(largest(solution))
            screen.print()
        for line in linkage(solution):
            screen.print(line, soft_wrap=True)
    report, refusal = _machine_forces(solution, machine)
    if report is not None:
        _print_machine(screen, report)
    for written in _write(solution, report, output, name, plot=plot, csv=csv, page=page):
        screen.print(written, soft_wrap=True)
    if solution.status.reason == "interrupted" and checkpoint is not None and Path(checkpoint).exists():
        screen.print(
            f"{checkpoint}: where it stands; the same command with --resume goes on from there", soft_wrap=True
        )
    if not solution.status:
        print_error(as_options(f"{solution.status.message}; {solution.status.advice}"))
        return 1
    if refusal:
        print_error(as_options(refusal))
        return 1
    return 0


def table(description: Description) -> Table:
    """The model table: every element with its number of equations, and the count of freedom."""
    from linkwright.constraints.model_warnings import model_table  # weight: constraints

    model = model_table(description)
    rows: list[tuple[Any, ...]] = [(row.element, row.kind, row.equations) for row in _shortened(model.rows)]
    total = [
        ("", "", ""),
        ("bodies", "ground included", model.bodies),
        ("coordinates", "x, y, z, e0, e1, e2, e3 of each body", model.coordinates),
        ("equations", "", model.equations),
        ("degrees of freedom", "by count", model.degrees_of_freedom),
    ]
    return grid(("element", "kind", "equations"), *rows, *total, right=(2,))


def linkage(solution: Solution) -> list[str]:
    """What `lw.linkage_report` says of a mechanism with loops of four links in a plane; nothing of others."""
    from linkwright.analysis.linkage_report import LARGEST, linkage_report  # weight: analysis

    d = solution.description
    if not d.drivers or len(solution) * d.nb**2 > LARGEST:
        return []
    try:
        report = linkage_report(solution)
    except LinkwrightError:
        return []
    return [*report.sentences(), ""] if report.loops else []


def _check_machine(mechanism: Any, machine: Mapping[str, Any]) -> None:
    """Refuse what a report of forces cannot be about, before anything is computed."""
    from linkwright.analysis.analyse import refuse_massless  # weight: analysis
    from linkwright.analysis.machine_forces import check_request  # weight: analysis

    refuse_massless(mechanism)
    check_request(mechanism.description, **machine)


def _machine_forces(solution: Solution, machine: Mapping[str, Any] | None) -> tuple[MachineForces | None, str]:
    """The forces of a machine that are asked for, or why this motion has none."""
    if machine is None or not len(solution):
        return None, ""
    try:
        return lw.machine_forces(solution, **machine), ""
    except LinkwrightError as error:
        return None, str(error)


def _print_machine(screen: Console, report: MachineForces) -> None:
    screen.print(report.title, soft_wrap=True)
    for _, rows in report.tables():
        screen.print()
        screen.print(grid(*rows, right=tuple(range(1, len(rows[0])))))
    screen.print()
    for line in report.sentences():
        screen.print(as_options(line), soft_wrap=True)
    screen.print()


def _shortened(rows: tuple[Any, ...], most: int = 40) -> list[Any]:
    """The rows, or of a long list the first and the last."""
    from linkwright.constraints.model_warnings import Row  # weight: constraints

    if len(rows) <= most:
        return list(rows)
    left = rows[most - 5 : -5]
    return [*rows[: most - 5], Row(f"… {len(left)} more", "", sum(r.equations for r in left)), *rows[-5:]]


def extremes(solution: Solution) -> Table:
    """For every body (the first of many) where it goes, and how fast."""
    massless = parts_of_curves(solution.description.point_constraints)
    names = [name for name in solution.description.body_names if name not in massless]
    length = solution.description.length_scale
    units = solution.description.units
    metre, speed_unit, rate_unit = (units.shown(unit) for unit in ("m", "m/s", "rad/s"))
    motion = {name: getattr(solution, name) for name in ("velocity", "angular_velocity")}
    mark = "" if metre.text == "m" else f" {metre.text}"
    ends = (f"{axis} {end}{mark}" for axis in "xyz" for end in ("min", "max"))
    rows: list[tuple[Any, ...]] = [("body", *ends, "max speed", "max angular velocity")]
    speeds, turns = (max((_size(x(name)) for name in names[:20]), default=0.0) for x in motion.values())
    for name in names[:20]:
        place, speed = solution.position(name), np.linalg.norm(solution.velocity(name), axis=1)
        turning = np.linalg.norm(solution.angular_velocity(name), axis=1)
        ranges = [_tidy(x, length, metre) for axis in place.T for x in (axis.min(), axis.max())]
        fastest = ((speed.max(), speeds, speed_unit), (turning.max(), turns, rate_unit))
        rows.append((name, *ranges, *(f"{_tidy(*one)} {one[-1].text}" for one in fastest)))
    if len(names) > 20:
        rows.append((f"… {len(names) - 20} more", *[""] * 8))
    return grid(*rows)


def largest(solution: Solution) -> Table:
    """The minimum and the maximum of every series of forces (the first of many), and its last value."""
    plain: dict[str, Series] = {}
    joints: dict[str, list[Series]] = {}
    sizes = {x.unit: 0.0 for x in solution.series.values()}
    for name, series in solution.series.items():
        sizes[series.unit] = max(sizes[series.unit], _size(series.values))
        stem, _, part = name.rpartition(".")
        if part in ("fx", "fy", "fz", "mx", "my", "mz"):
            joints.setdefault(f"{stem} {'|force|' if part[0] == 'f' else '|moment|'}", []).append(series)
        else:
            plain[name] = series
    for name, parts in joints.items():
        plain[name] = Series(np.linalg.norm([part.values for part in parts], axis=0), parts[0].unit)
    rows: list[tuple[Any, ...]] = [("force", "min", "max", "at the end")]
    for name, series in plain.items():
        x, size, shown = series.values, sizes[series.unit], solution.description.units.shown(series.unit)
        rows.append((name, *(f"{_tidy(number, size, shown)} {shown.text}" for number in (x.min(), x.max(), x[-1]))))
    if len(rows) > 31:
        rows = [*rows[:31], (f"… {len(rows) - 31} more", "", "", "")]
    return grid(*rows)


def _size(values: Any) -> float:
    return float(np.max(np.abs(values), initial=0.0))


def _tidy(x: float, largest: float, shown: Shown) -> str:
    """An SI number to four digits, as it is shown; what is rounding beside the largest of its kind is zero."""
    return f"{0.0 if abs(x) < 1e-12 * largest else shown.of(x):.4g}"


@contextmanager
def _room(output: Path | None) -> Iterator[None]:
    """The folder while a run may keep its state there; one that a failure leaves empty goes again."""
    new = output is not None and not output.exists()
    if output is not None:
        made_folder(output)
    try:
        yield
    except BaseException:
        if new and output is not None:
            with suppress(OSError):
                output.rmdir()
        raise


def _write(
    solution: Solution, report: MachineForces | None, output: Path, name: str, *, plot: bool, csv: bool, page: bool
) -> list[str]:
    """Write the files; a line for each."""
    made_folder(output)
    there = len(solution) > 0
    path = output / f"{name}.nc"
    files: list[tuple[bool, str, Callable[[Path], Any], str]] = [
        (True, ".nc", solution.save, f"the results; lw.open({str(path)!r}) reads them"),
        (csv, ".csv", solution.to_csv, "the same as a table"),
        (plot and there, ".png", lambda path: solution.plot(path=path), "position, velocity and acceleration"),
        (
            plot and bool(solution.series),
            "_forces.png",
            lambda path: solution.plot_series(path=path),
            "forces and torques",
        ),
    ]
    if report is not None:
        files += [
            (csv, "_machine.csv", report.save, "the forces of the machine as a table"),
            (plot, "_machine.png", report.plot, "torque of the motor, shaking force and moment"),
        ]
    files += [
        (page and there, ".html", solution.animate, "the animation; open it in any browser"),
    ]
    lines = []
    for wanted, ending, write, what in files:
        if wanted:
            with printed_warnings():
                write(output / f"{name}{ending}")
            lines.append(f"{output / f'{name}{ending}'}: {what}")
    return lines


def _checked(times: str | None, freedom: str | None, output: Path) -> Any:
    """The times asked for; what is wrong with the options is an error before anything is read, printed or computed."""
    if freedom is not None:
        check_names("value of freedom", [freedom], FREEDOMS)
    if output.exists() and not output.is_dir():
        raise LinkwrightError(f"{output}: is a file; name a folder with --output")
    above = next(x for x in (output.absolute(), *output.absolute().parents) if x.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        reason = "is read-only for you" if above.is_dir() else "is no folder"
        raise LinkwrightError(f"{output}: cannot be written, since {above} {reason}; choose another with --output")
    return None if times is None else time_points(times)


def analysis_kind(text: str | None) -> str | None:
    """The kind of analysis that a word means."""
    if text is None:
        return None
    kinds = {kind.replace(" ", "-"): kind for kind in get_args(AnalysisKind)}
    word = text.strip().lower().replace(" ", "-").replace("_", "-")
    if word not in kinds:
        raise NameNotFound("analysis", text, list(kinds))
    chosen: str = kinds[word]
    return chosen


def _check_settings(settings: Mapping[str, Any], kind: str, system: System) -> None:
    """Refuse what no simulation takes, before anything is computed."""
    if settings and kind != "dynamic":
        option = {"dt": "--step"}.get(next(iter(settings)), f"--{next(iter(settings))}")
        raise LinkwrightError(f"{option} is for simulations, and this is {kind} analysis; add --analysis dynamic")
    method = settings.get("method", system.method)
    check_names("method", [method], SIMULATION_METHODS)
    stepless = "dt" not in settings and (system.dt is None or method != system.method)
    if method in FIXED_STEP_METHODS and stepless:
        raise LinkwrightError(f"--method {method} takes steps of one length; add --step 0.001, say")
    for key, option in (("rtol", "--rtol"), ("dt", "--step")):
        if not settings.get(key, 1.0) > 0.0:
            raise LinkwrightError(f"{option} {settings[key]:g}: give a number greater than zero")
    if settings.get("resume") and not Path(settings["checkpoint"]).exists():
        raise LinkwrightError(
            f"{settings['checkpoint']}: there is no such file to resume from; name it by --checkpoint"
        )


def time_points(text: str, units: Units = SI) -> Any:
    """The times START:END:INTERVAL in seconds, written in the units of a model."""
    from linkwright.constraints.kinematic_motion import times_of  # weight: constraints
    from linkwright.formats.mks.values import constant  # weight: lark

    parts = text.split(":")
    if len(parts) != 3 or not all(part.strip() for part in parts):
        raise LinkwrightError(f"--times {text}: give START:END:INTERVAL, as in --times 0:8:0.1")
    start, end, interval = (constant(part, f"--times {text}: a time", TIME, units).number or 0.0 for part in parts)
    if not (end >= start and interval > 0.0):
        raise LinkwrightError(f"--times {text}: the end must not be before the start, and the interval be positive")
    if (end - start) / interval > 1e7:
        raise LinkwrightError(f"--times {text}: that is more than ten million points; take a longer interval")
    return times_of(start, end, interval)
