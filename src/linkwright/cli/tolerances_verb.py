"""`linkwright tolerances`: what tolerances of dimensions and clearances of joints make of outputs of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

import linkwright as lw
from linkwright.cli.run_verb import ModelFile, analysis_kind, time_points
from linkwright.cli.screen import Bar, Settings, assignments, console, grid, load, named_texts, printed_warnings
from linkwright.errors import LinkwrightError, on_one_line

if TYPE_CHECKING:
    from linkwright.design.tolerance_report import Tolerances

_ENDINGS = (".csv", ".json", ".png", ".svg", ".pdf")


def tolerances(
    model: ModelFile,
    output: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=EXPRESSION", help="One number of the motion: 'reach=max(pen.x)'; may be repeated."),
    ] = None,
    tolerance: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=SIZE", help="Of a parameter: 0.05 for ±0.05, '1 %', '0.1 mm', or LOWER:UPPER."),
    ] = None,
    clearance: Annotated[
        list[str] | None,
        typer.Option(metavar="JOINT=RADIUS", help="How far a joint's frames may be apart across its axis: '0.02 mm'."),
    ] = None,
    tilt: Annotated[
        list[str] | None, typer.Option(metavar="JOINT=ANGLE", help="How far a joint's axes may be inclined: '0.1 deg'.")
    ] = None,
    rim: Annotated[bool, typer.Option("--rim", help="Pins touch: clearances are drawn at the rim.")] = False,
    distribution: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]LAW", help="'normal', 'normal(2)', 'uniform', 'triangular'.", show_default="normal(3)"
        ),
    ] = None,
    set_: Settings = None,
    draws: Annotated[int, typer.Option(min=0, help="Of Monte Carlo; 0 for none.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 0,
    vertices: Annotated[int, typer.Option(min=0, help="Vertices of the worst case at most.")] = 256,
    second: Annotated[bool, typer.Option("--second", help="Second derivatives too.")] = False,
    differences: Annotated[
        bool, typer.Option("--differences", help="Differences in place of derivatives, as for forces.")
    ] = False,
    analysis: Annotated[
        str | None,
        typer.Option(help="'kinematic', 'dynamic', 'static' or 'inverse-dynamic'.", show_default="the model's"),
    ] = None,
    times: Annotated[
        str | None, typer.Option(metavar="START:END:INTERVAL", help="Other times.", show_default="the model's")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Processes of this machine.", show_default="one per core")
    ] = None,
    out: Annotated[
        list[Path] | None,
        typer.Option(help="A file: .csv, .json, or a figure .png, .svg, .pdf; may be repeated.", show_default=False),
    ] = None,
) -> None:
    """Print what tolerances make of outputs of MODEL: contributions, worst case, root sum of squares and Monte Carlo.

    Sizes without a unit are in the units of MODEL; of a parameter with a unit they have one too. A dimension that goes
    too far for the mechanism is named.
    """
    for path in out or ():
        if path.suffix.lower() not in _ENDINGS:
            raise LinkwrightError(f"--out {path}: tolerances are written as {', '.join(_ENDINGS)}; give such a name")
    if not output:
        raise LinkwrightError("nothing was asked for: add --output 'NAME=EXPRESSION', as in 'reach=max(pen.x)'")
    clearances = _clearances(clearance, tilt, rim)
    laws = _laws(distribution)
    sizes = named_texts("--tolerance", tolerance, "crank=0.05")
    if not sizes and not clearances:
        raise LinkwrightError("nothing varies: add --tolerance crank=0.05, or --clearance 'pin=0.02 mm'")
    loaded = load(model, parameters=assignments(set_) or None)
    loaded.print_warnings()
    screen = console()
    with printed_warnings(), Bar(screen, "tolerances") as bar:
        report = lw.tolerances(
            loaded.mechanism,
            output,
            sizes,
            clearances=clearances,
            distributions=laws,
            analysis=analysis_kind(analysis),
            times=None if times is None else time_points(times, loaded.mechanism.description.units),
            settings=lw.ToleranceSettings(
                draws,
                seed,
                vertices,
                2 if second else 1,
                "differences" if differences else "exact",
                execution=lw.Execution(workers, progress=lambda done, total: bar.show("draws", done, total)),
            ),
        )
    _print(report, screen)
    for path in out or ():
        if path.suffix.lower() in (".csv", ".json"):
            report.save(path)
        else:
            report.plot(path=path)
        screen.print(f"{path}: {'the figure' if path.suffix.lower() not in ('.csv', '.json') else 'the numbers'}")


def _print(report: Tolerances, screen: Console) -> None:
    from linkwright.design.output_tolerance import HEAD, METHODS  # weight: design

    for one in report:
        screen.print(one.title, style="bold", soft_wrap=True)
        screen.print()
        screen.print(grid(HEAD, *one.rows(), right=(1, 2, 4, 5, 6)))
        screen.print()
        screen.print(grid(METHODS, *one.methods(), right=(1, 2, 3)))
        screen.print()
        for note in one.notes:
            screen.print(on_one_line(note), soft_wrap=True)
        screen.print()
    for note in report.notes:
        screen.print(on_one_line(note), soft_wrap=True)


def _clearances(radii: list[str] | None, tilts: list[str] | None, rim: bool) -> dict[str, Any]:
    """The clearances of joints by their names."""
    by_joint: dict[str, dict[str, str]] = {}
    for option, field, texts, example in (
        ("--clearance", "radius", radii, "'pin=0.02 mm'"),
        ("--tilt", "tilt", tilts, "'slide=0.1 deg'"),
    ):
        for joint, size in named_texts(option, texts, example).items():
            by_joint.setdefault(joint, {})[field] = size
    if rim and not by_joint:
        raise LinkwrightError("--rim is of clearances; add --clearance 'pin=0.02 mm', or leave it out")
    return {joint: lw.Clearance(**sizes, spread="rim" if rim else "disc") for joint, sizes in by_joint.items()}


def _laws(texts: list[str] | None) -> Any:
    """The distribution of all parameters, or those of some by name."""
    if not texts:
        return "normal"
    if len(texts) == 1 and "=" not in texts[0]:
        return texts[0]
    return named_texts("--distribution", texts, "crank=uniform")
