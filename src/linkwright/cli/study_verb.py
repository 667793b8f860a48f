"""`linkwright study`: whole studies from one command, with a report of figures and numbers."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from linkwright.base.arguments import check_names
from linkwright.cli.screen import Bar, console, print_warning
from linkwright.errors import LinkwrightWarning

STUDIES = ("parallel-manipulator",)


def study(
    name: Annotated[str, typer.Argument(help=f"The study: {', '.join(STUDIES)}.")],
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", "--out", help="The folder of the report.", show_default=f"out/{STUDIES[0]}"),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter records, fewer frequencies and plants.")] = False,
    plants: Annotated[int, typer.Option(min=0, max=1000, help="How many perturbed plants.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Of noise, sequences and perturbations.")] = 0,
    workers: Annotated[
        int | None, typer.Option(min=1, max=256, help="Processes for perturbed plants.", show_default="one per core")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in the folder.")] = False,
) -> int:
    """Run a whole study and write its report: the parallel manipulator of Nakamura, Yamane, Okada and Komine.

    The exit code is 3 where something that the paper shows was not met.
    """
    check_names("study", [name], STUDIES)
    from linkwright.studies.manipulator.manipulator_study import run_study  # weight: studies
    from linkwright.studies.manipulator.report import check_folder, summary, write_report  # weight: studies

    folder = Path("out") / name if out is None else out
    check_folder(folder, overwrite=overwrite)
    screen = console()
    with warnings.catch_warnings(record=True) as caught, Bar(screen, "study") as bar:
        warnings.simplefilter("always", LinkwrightWarning)

        def report(what: str, part: float) -> None:
            bar.show(what, part, 1.0)

        outcome = run_study(plants=plants, quick=quick, seed=seed, workers=workers, progress=report)
        report("writing the report", 1.0)
        page = write_report(outcome, folder, overwrite=overwrite)
    screen.print(summary(outcome))
    for warning in dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, LinkwrightWarning)):
        print_warning(warning)
    screen.print(f"the report: {page}", soft_wrap=True)
    return 0 if outcome.met else 3
