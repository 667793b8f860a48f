"""`linkwright sweep`: many cases of a model file, with a bar, a table, a figure, and a folder to go on from."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console

import linkwright as lw
from linkwright.base.arguments import check_names
from linkwright.cli.run_verb import ModelFile, analysis_kind, time_points
from linkwright.cli.screen import Bar, Interrupted, as_options, console, grid, load, print_warning, printed_warnings
from linkwright.errors import LinkwrightError, MksError, on_one_line
from linkwright.model.units import SI

if TYPE_CHECKING:
    from linkwright.sweeps.study import Study

_RANGE = "NAME=VALUES"
_LAW_ADVICE = "give NAME~LAW, as in --sample 'mass~normal(1,0.1)'"
_ADVICE = "give NAME=START:END:STEP, as in --set length=4:8:0.1, or NAME=VALUE,VALUE,..."


def sweep(
    model: ModelFile,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar=_RANGE, help="Values of a parameter: 4:8:0.1, or 9,10,11; they form a grid."),
    ] = None,
    sample: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME~LAW", help="A parameter that is drawn: 'mass~normal(1,0.1)', 'a~uniform(0,1)'."),
    ] = None,
    cases: Annotated[int | None, typer.Option(min=1, help="How many cases in all.", show_default=False)] = None,
    draws: Annotated[
        int | None, typer.Option(min=1, help="How many draws at every point of the grid.", show_default="100")
    ] = None,
    sampling: Annotated[str | None, typer.Option(help="'latin', 'sobol' or 'random'.", show_default="latin")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the draws.", show_default="0")] = None,
    output_value: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=EXPRESSION", help="What to keep: 'stroke=max(block.x)-min(block.x)', block.x."),
    ] = None,
    analysis: Annotated[
        str | None,
        typer.Option(help="'kinematic', 'dynamic', 'static' or 'inverse-dynamic'.", show_default="the model's"),
    ] = None,
    times: Annotated[
        str | None, typer.Option(metavar="START:END:INTERVAL", help="Other times.", show_default="the model's")
    ] = None,
    method: Annotated[str | None, typer.Option(help="Of simulations.", show_default="the model's")] = None,
    rtol: Annotated[float | None, typer.Option(help="Of simulations.", show_default="the model's")] = None,
    step: Annotated[float | None, typer.Option(help="Of simulations, in s.", show_default="the model's")] = None,
    on: Annotated[str, typer.Option(help="'local', 'gpu', or a Dask scheduler: tcp://host:8786.")] = "local",
    workers: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Processes of this machine.", show_default="one per core")
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(help="CPU time in s that a case may take; beyond, it has failed.", show_default="none"),
    ] = None,
    chunk: Annotated[int | None, typer.Option(min=1, help="Cases of one batch.", show_default=False)] = None,
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", "--out", help="The study's folder.", show_default="out/MODEL_sweep"),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the study in the folder.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the study in the folder.")] = False,
    part: Annotated[
        str | None,
        typer.Option(metavar="K/N", help="Part K of N: N such commands share the folder.", show_default="all"),
    ] = None,
    best: Annotated[str | None, typer.Option(help="List the cases with the smallest of this output.")] = None,
    largest: Annotated[bool, typer.Option("--largest", help="List those with the largest.")] = False,
    top: Annotated[int, typer.Option(min=1, max=1000, help="How many of them.")] = 5,
    plot: Annotated[bool, typer.Option("--plot/--no-plot", help="Draw the study as a PNG.")] = True,
    csv: Annotated[bool, typer.Option("--csv", help="Write the cases as a CSV table too.")] = False,
    animate: Annotated[
        list[int] | None, typer.Option(metavar="CASE", help="Write the animation of a case.", show_default=False)
    ] = None,
) -> int:
    """Run many cases of MODEL: grids of values, draws from distributions, or both.

    The folder holds study.nc and a figure, with --csv a table; while it runs, the cases that are finished. A study with
    outputs of more than 64 MiB stays in the files of its chunks. After Ctrl-C, or whatever else ends it, the same
    command with --resume goes on from there. Cases that fail are listed with reasons; the exit code is 3 if none is
    good.

    With --part 3/16, as in a job array, this command computes one of sixteen parts. All parts take the same folder, on
    one machine or several, at once or one after the other. A part that was ended goes on by the same command. When all
    are there, the command with --resume in place of --part writes figure and table.
    """
    from linkwright.sweeps.plan import make_plan, plan_text  # weight: sweeps
    from linkwright.sweeps.sweep import folder_of  # weight: sweeps

    number = None if part is None else _part(part)
    if part is not None:
        _refuse_beside_a_part(part, overwrite=overwrite, csv=csv, best=best is not None, animate=bool(animate))
    parameters = _parameters(model, set_, sample)
    drawn = lw.Sampling(sampling, draws, cases, seed)
    plan = make_plan(parameters, drawn, chunk)
    _check(best, largest, output_value, animate, len(plan))
    if out is not None and "=" in out.name:
        raise LinkwrightError(
            f"--output {out}: this is the study's folder; define an output with --output-value '{out.name}'"
        )
    folder = folder_of(model) if out is None else out
    units = load(model).mechanism.description.units if times is not None else SI
    # Of a lost connection Dask logs pages; that it is lost is reported in a line here.
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")
    screen = console()
    screen.print(plan_text(plan), soft_wrap=True)
    started = perf_counter()
    done = [0, len(plan)]
    with warnings.catch_warnings(), _CaseBar(screen, done) as bar:
        warnings.showwarning = lambda message, *_, **__: print_warning(as_options(str(message)))
        try:
            study = lw.sweep(
                model,
                parameters,
                list(output_value) if output_value else None,
                on=on,
                sampling=drawn,
                analysis=lw.AnalysisSettings(analysis_kind(analysis), method=method, rtol=rtol, dt=step),
                times=None if times is None else time_points(times, units),
                store=lw.StudyFolder(folder, resume, overwrite, number),
                execution=lw.Execution(workers, time_limit, chunk, bar),
            )
        except KeyboardInterrupt:
            progress_text = f"{done[0]:,} of {done[1]:,} cases are in {folder}"
            raise Interrupted(f"interrupted: {progress_text}; --resume goes on from there") from None
    _report_rate(study, screen, max(done[0] - study.loaded, 0), perf_counter() - started)
    if number is not None:
        return _report_part(study, screen, folder, number)
    _report(study, screen)
    if best is not None:
        _print_best(study, screen, best, largest, top)
    _write(study, folder, screen, plot=plot, csv=csv, animate=animate or [])
    return 0 if study.ok.any() else 3


# -- what is printed --------------------------------------------------------------------------------------------
def _report_rate(study: Study, screen: Console, fresh: int, seconds: float) -> None:
    rate = f", {fresh / seconds:,.0f} per second" if fresh and seconds > 0.0 else ""
    before = f"; {study.loaded:,} were there already" if study.loaded else ""
    screen.print(f"{fresh:,} case{'s' * (fresh != 1)} in {seconds:.1f} s{rate}{before}", soft_wrap=True)


def _report_part(study: Study, screen: Console, folder: Path, part: tuple[int, int]) -> int:
    """Which parts are still missing; the exit code, by the cases of this part."""
    from linkwright.sweeps.study import parts_text  # weight: sweeps

    number, parts = part
    screen.print(f"part {number} of {parts} is in {folder}", soft_wrap=True)
    if study.missing_parts:
        screen.print(f"not finished: {parts_text(study.missing_parts)}", soft_wrap=True)
    else:
        text = f"all {parts} parts are there; lw.Study.open({str(folder)!r}) reads them, and --resume in place of"
        screen.print(f"{text} --part draws them", soft_wrap=True)
    cases = np.arange(len(study)) // study.plan.chunk % parts == number - 1
    return 0 if study.ok[cases].any() or not cases.any() else 3


def _report(study: Study, screen: Console) -> None:
    from linkwright.sweeps.study import SUMMARY  # weight: sweeps

    rows = [(name, low, mean, high, where) for name, low, mean, high, where in study.summary()]
    screen.print()
    screen.print(grid(SUMMARY, *rows, right=(1, 2, 3)))
    screen.print()
    bad = int((~study.ok).sum())
    if bad:
        screen.print(f"{bad:,} of {len(study):,} cases failed:", soft_wrap=True)
        for reason, count in study.reason_counts[:8]:
            screen.print(f"  {count:,} × {on_one_line(reason)}", soft_wrap=True)
        screen.print()


def _print_best(study: Study, screen: Console, name: str, largest: bool, top: int) -> None:
    best = study.best(name, top, largest=largest)
    cases = best["case"].values.tolist()
    columns = [name, *study.names, *(x for x in study.scalar_outputs if x != name)]
    units = [study.shown_units[column] for column in columns]
    shown = [unit.of(best[column].values) for column, unit in zip(columns, units, strict=True)]
    rows = [(int(k), *(f"{numbers[row]:.6g}" for numbers in shown)) for row, k in enumerate(cases)]
    headings = [unit.heading(column) for column, unit in zip(columns, units, strict=True)]
    screen.print(grid(("case", *headings), *rows, right=tuple(range(len(columns) + 1))))
    screen.print()


def _write(study: Study, folder: Path, screen: Console, *, plot: bool, csv: bool, animate: list[int]) -> None:
    place = folder / "study.nc"
    what = f"{place if place.exists() else folder}: the whole data set"
    screen.print(f"{what}; lw.Study.open({str(folder)!r}) reads it", soft_wrap=True)
    if csv:
        study.to_csv(folder / "study.csv")
        screen.print(f"{folder / 'study.csv'}: the cases as a table", soft_wrap=True)
    if plot and study.ok.any():
        try:
            study.plot(path=folder / "study.png")
        except LinkwrightError as error:
            print_warning(f"no figure: {error}")
        else:
            screen.print(f"{folder / 'study.png'}: the figure", soft_wrap=True)
    for number in animate:
        page = folder / f"case_{number}.html"
        with printed_warnings():
            study.animate(number, page)
        screen.print(f"{page}: the animation of case {number}; open it in any browser", soft_wrap=True)


class _CaseBar(Bar):
    """A bar with rate and time left on a terminal; it leaves nothing behind."""

    def __init__(self, screen: Console, done: list[int]) -> None:
        super().__init__(screen, "cases")
        self._done, self._first, self._marks, self._started = done, -1, 0, perf_counter()

    def progress(self, screen: Console, word: str) -> Any:
        from rich.progress import (  # weight: rich
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
        bar = Progress(word, *columns, console=screen, transient=True, speed_estimate_period=120.0)
        self._task = bar.add_task(word, total=None, rate="")
        return bar

    def activity(self, word: str, done: float, total: float) -> None:
        """The bar counts cases; what is done for one of them does not move it."""

    def __call__(self, done: float, total: float) -> None:
        """So many cases of so many."""
        self._done[:] = [int(done), int(total)]
        if self._marks < 2 and done > self._first:
            # From the first chunk on: before, workers start and programs are compiled.
            self._first, self._started, self._marks = int(done), perf_counter(), self._marks + 1
        if self._bar is not None:
            rate = (done - self._first) / max(perf_counter() - self._started, 1e-9)
            shown = f"{rate:,.0f} per second" if done > self._first else ""
            self._bar.update(self._task, total=total, completed=done, rate=shown)


def _check(best: str | None, largest: bool, outputs: list[str] | None, animate: list[int] | None, cases: int) -> None:
    """Refuse what could only be refused after all cases are computed."""
    from linkwright.outputs.output_language import named  # weight: outputs

    if largest and best is None:
        raise LinkwrightError("--largest turns the order of --best round; name the output by --best")
    if best is not None and not outputs:
        text = "needs an output of one number per case; define it with --output-value 'NAME=EXPRESSION'"
        raise LinkwrightError(f"--best {best}: {text}, as in 'stroke=max(block.x)-min(block.x)'")
    if best is not None and outputs:
        check_names("output", [best], list(named(outputs)))
    for number in animate or ():
        if not 0 <= number < cases:
            raise LinkwrightError(f"--animate {number}: the cases of this study are 0 … {cases - 1}")


def _part(text: str) -> tuple[int, int]:
    """The numbers of K/N."""
    from linkwright.sweeps.plan import MOST_PARTS  # weight: sweeps

    match = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", text)
    if match is None:
        raise LinkwrightError(f"--part {text}: write the part and how many there are, as in --part 3/16")
    number, parts = int(match[1]), int(match[2])
    if not 1 <= number <= parts:
        ends = f"write --part 1/{parts} … --part {parts}/{parts}" if parts else "write --part 1/16 … --part 16/16"
        raise LinkwrightError(f"--part {text}: parts are counted from 1 to the number of all; {ends}")
    if parts > MOST_PARTS:
        raise LinkwrightError(f"--part {text}: a study has at most {MOST_PARTS:,} parts; write --part 1/{MOST_PARTS}")
    return number, parts


def _refuse_beside_a_part(part: str, *, overwrite: bool, **later: bool) -> None:
    if overwrite:
        text = f"--part {part}: --overwrite removes what other parts have computed"
        raise LinkwrightError(f"{text}; leave it out, or remove the folder first")
    for name, asked in later.items():
        if asked:
            text = f"--part {part}: --{name} is of the whole study"
            raise LinkwrightError(f"{text}; give it with --resume, without --part, when all parts are there")


# -- what is asked ----------------------------------------------------------------------------------------------
def _parameters(model: Path, lists: list[str] | None, laws: list[str] | None) -> dict[str, Any]:
    """Lists and distributions from the words of the command line; the model's reader looks at one value of each."""
    if not lists and not laws:
        raise LinkwrightError("nothing varies: add --set length=4:8:0.1, or --sample 'mass~normal(1,0.1)'")
    parameters: dict[str, Any] = {}
    first: dict[str, str] = {}
    for option, sign, texts, read, advice in (
        ("--set", "=", lists, _listed, _ADVICE),
        ("--sample", "~", laws, _drawn, _LAW_ADVICE),
    ):
        for text in texts or ():
            what = f"{option} {text}"
            name, _, values = (x.strip() for x in text.partition(sign))
            if not name or not values:
                raise LinkwrightError(f"{what}: {advice}")
            if name in parameters:
                raise LinkwrightError(f"{what}: {name} is given twice; give it once")
            parameters[name], first[name] = read(values, what)
    try:
        load(model, **({"parameters": first} if model.name.lower().endswith(".mks") else {}))
    except MksError:
        load(model)  # readable at its own values: a case that is not is one that fails, wherever it stands in the list
    _check_units(model, first)
    return parameters


def _check_units(model: Path, texts: dict[str, str]) -> None:
    """Refuse units of parameters that are plain numbers of a model that is not in SI."""
    from linkwright.formats.mks.values import constant  # weight: lark

    dimensions = {name: x for name, text in texts.items() if (x := constant(text).dimension) is not None}
    units = load(model).mechanism.description.units if dimensions else SI
    for name, dimension in dimensions.items():
        if name not in dict(units.parameters) and not units.of(dimension).is_si:
            text = f"a value of {name} is {texts[name]!r}, of a plain number of the model; leave the unit out"
            raise LinkwrightError(text)


def _listed(values: str, what: str) -> tuple[Any, str]:
    """The values of START:END:STEP or VALUE,VALUE, and the first as text."""
    if ":" not in values:
        parts = _split(values)
        return _numbers(parts, what)
    parts = [part.strip() for part in values.split(":")]
    if len(parts) != 3 or not all(parts):
        raise LinkwrightError(f"{what}: {_ADVICE}")
    (start, end, step), first = _numbers(parts, what)
    if step == 0.0 or (end - start) / step < 0.0:
        raise LinkwrightError(f"{what}: steps of {step:g} do not lead from {start:g} to {end:g}; {_ADVICE}")
    steps = (end - start) / step * (1.0 + 1e-12) + 1e-9
    if not steps < 10_000_000:
        raise LinkwrightError(f"{what}: that is {steps + 1.0:.10g} values; take longer steps")
    return start + step * np.arange(int(steps) + 1), first


def _drawn(law: str, what: str) -> tuple[Any, str]:
    """The distribution of NAME(NUMBER, ...), and its first number as text."""
    from linkwright.sweeps.distributions import distribution  # weight: sweeps

    match = re.fullmatch(r"([a-z_]+)\s*\((.*)\)", law)
    if match is None:
        raise LinkwrightError(f"{what}: {_LAW_ADVICE}")
    parts = _split(match[2])
    try:
        alike = 1 if match[1] == "lognormal" else len(parts)  # whose sigma has no unit
        numbers, first = _numbers(parts[:alike], what)
        return distribution(match[1], [*numbers, *_numbers(parts[alike:], what)[0]]), first
    except LinkwrightError as error:
        raise LinkwrightError(f"{what}: {error}" if what not in str(error) else str(error)) from None


def _split(text: str) -> list[str]:
    """The parts between commas, where these are not inside parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _numbers(texts: list[str], what: str) -> tuple[list[float], str]:
    """Values in SI units, and one of the texts, not of zero if another is there: all have a unit, or none."""
    from linkwright.formats.mks.values import constant  # weight: lark

    quantities = [constant(text, f"{what}: a value") for text in texts]
    sizes = [(quantity, text) for quantity, text in zip(quantities, texts, strict=True) if quantity.number]
    unlike = next((text for quantity, text in sizes if quantity.dimension != sizes[0][0].dimension), None)
    if unlike is not None:
        text = f"{sizes[0][1]!r} and {unlike!r} have units of two kinds, or one has none"
        raise LinkwrightError(f"{what}: {text}; give every value a unit of the same kind, or none")
    return [quantity.number or 0.0 for quantity in quantities], sizes[0][1] if sizes else "0"
