"""`linkwright equations`: the equations of motion of a model in closed form, on the screen and in files."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

import linkwright as lw
from linkwright.base.files import check_place, write_text
from linkwright.cli.screen import (
    Bar,
    Base,
    Followers,
    Interrupted,
    Settings,
    assignments,
    console,
    grid,
    load,
    print_warning,
)
from linkwright.errors import LinkwrightError, LinkwrightWarning

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism
    from linkwright.symbolic.equations_of_motion import Equations
    from linkwright.symbolic.printing import Sheet

_SHOWN = 400  # terms that the screen still shows
_MANY = 20_000  # terms from which multiple angles take long to write
_LONG = 2.0  # seconds from which the estimate is printed
_ADVICE = "too long for the screen: write them by --latex, --html, --markdown, --python or --c FILE, or take the "
_ADVICE += "short form: --form recursive"
_LANGUAGES = ("latex", "html", "markdown", "python", "c")
_File = Path | None


def equations(
    model: Annotated[Path, typer.Argument(help="A model file: .dh.toml, .urdf or .mks.", show_default=False)],
    form: Annotated[
        str | None,
        typer.Option(
            help="'collected' (multiple angles), 'expanded', 'grouped' or 'recursive'.",
            show_default="collected, expanded where that is long",
        ),
    ] = None,
    literal: Annotated[
        str,
        typer.Option(
            help="Numbers that become symbols: 'named', 'inertial', 'all', or words with commas: mass, com, inertia, "
            "armature, friction, lengths, gravity."
        ),
    ] = "named",
    number: Annotated[
        list[str] | None, typer.Option(help="A parameter that stands for its value, or 'all'; may be repeated.")
    ] = None,
    coordinates: Annotated[str, typer.Option(help="The letters of the coordinates, such as 'theta'.")] = "q",
    latex: Annotated[_File, typer.Option(help="Write a LaTeX document.", show_default=False)] = None,
    html: Annotated[_File, typer.Option(help="Write a web page.", show_default=False)] = None,
    markdown: Annotated[_File, typer.Option(help="Write Markdown.", show_default=False)] = None,
    python: Annotated[_File, typer.Option(help="Write a Python module.", show_default=False)] = None,
    c: Annotated[_File, typer.Option("--c", help="Write a C99 file.", show_default=False)] = None,
    base_parameters: Annotated[
        bool, typer.Option("--base-parameters", help="Show the smallest set of inertial parameters.")
    ] = False,
    way: Annotated[str, typer.Option(help="The mass matrix by 'jacobian' or 'trace'.")] = "jacobian",
    round_angles: Annotated[
        int | None, typer.Option(help="Digits of cosines of angles that are no multiple of 15°.", show_default=False)
    ] = None,
    settings: Settings = None,
    base: Base = None,
    mimic: Followers = None,
) -> None:
    """Derive the equations of motion of MODEL: F + d = M(q) q̈ + h(q, q̇) + friction + g(q)."""
    targets = [(path, as_) for path, as_ in zip((latex, html, markdown, python, c), _LANGUAGES, strict=True) if path]
    _refuse_twice([path for path, _ in targets])
    for path, _ in targets:
        check_place(path)
    loaded = load(model, base=base, mimic=mimic)
    loaded.print_warnings()
    mechanism = _with_values(loaded.mechanism, settings)
    words = _literal(literal)
    options: dict[str, Any] = {"literal": words, "coordinates": coordinates, "way": way, "round_angles": round_angles}
    options["numbers"] = "all" if number and "all" in number else tuple(number or ())
    steps = form == "recursive" and not base_parameters
    if not steps:
        _print_estimate(mechanism, options)
    start = perf_counter()
    with Bar(console(sys.stderr), "deriving") as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore", LinkwrightWarning)  # of an interruption: it is printed at the end
        eq = lw.equations(mechanism, form=form, progress=bar.show, **options)
        derived = perf_counter() - start
        sheet = None if steps or base_parameters else _sheet(eq, bool(targets), bar)
        texts = [(path, _text(eq, sheet, language)) for path, language in targets]  # all, before any is written
    shown = console()
    shown.print(f"{eq!r}"[1:-1] + ("" if steps else f"; derived in {derived:.2g} s"), soft_wrap=True)
    if eq.left_out and not steps:  # steps have every force
        print_warning(f"not in these equations: {', '.join(eq.left_out)}")
    if base_parameters:
        shown.print(str(eq.base), soft_wrap=True)
    elif steps:
        _show_recursive(shown, eq, bool(targets))
    elif sheet is None:
        shown.print(_ADVICE, soft_wrap=True)
    else:
        _show(shown, sheet, bool(targets))
    for path, text in texts:
        write_text(path, text)
        shown.print(f"{path}: written", soft_wrap=True)
    lost = [note for note in (sheet.notes if sheet else ()) if "interrupted" in note]
    if lost or not (steps or eq.complete):
        raise Interrupted(" ".join(lost) or "the derivation was interrupted")


def _refuse_twice(paths: list[Path]) -> None:
    for k, path in enumerate(paths):
        if path in paths[:k]:
            raise LinkwrightError(f"{path}: two options name this file; give each its own")


def _sheet(eq: Equations, wanted: bool, bar: Bar) -> Sheet | None:
    """The formulas, unless they are long and only the screen would show them."""
    if eq.derivation.terms() <= _MANY:
        return eq.sheet(progress=bar.show)
    if not wanted:
        return None
    if eq.form == "collected":
        _print_collected(eq)
    return eq.sheet(progress=bar.show)


def _with_values(mechanism: Mechanism, settings: list[str] | None) -> Mechanism:
    """The mechanism with the values of --set."""
    from linkwright.design.tolerance_inputs import number_of_parameter  # weight: design

    units = mechanism.description.units
    asked = assignments(settings).items()
    return mechanism.with_parameters(**{x: number_of_parameter(text, f"--set {x}", x, units) for x, text in asked})


def _literal(text: str) -> str | list[str]:
    """What --literal chooses: a preset, or words."""
    from linkwright.symbolic.derivation.literal import PRESETS, WORDS  # weight: flint

    if text in PRESETS:
        return text
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in WORDS:
            raise LinkwrightError(f"--literal {word}: choose from {', '.join((*PRESETS, *WORDS))}")
    return words


def _print_estimate(mechanism: Mechanism, options: dict[str, Any]) -> None:
    """What is to come, where it will be long."""
    from linkwright.symbolic.equations_of_motion import estimated  # weight: flint

    size = estimated(mechanism, **options)
    if size.seconds > _LONG:
        console(sys.stderr).print(f"estimate: {size}; Ctrl-C keeps what is found by then", soft_wrap=True)


def _print_collected(eq: Equations) -> None:
    """How long multiple angles will be."""
    text = f"estimate: up to {eq.most():,} terms in multiple angles; --form expanded has {eq.derivation.terms():,}"
    console(sys.stderr).print(f"{text}; Ctrl-C keeps what is written by then", soft_wrap=True)


def _text(eq: Equations, sheet: Sheet | None, method: str) -> str:
    from linkwright.symbolic.printing import PRINTERS  # weight: flint

    if sheet is None:
        text: str = getattr(eq, method)("recursive")
        return text
    return PRINTERS[method](sheet)


def _show(screen: Console, sheet: Sheet, quiet: bool) -> None:
    """The formulas, or where they are long the table of their sizes."""
    from linkwright.symbolic.printing import operations, text  # weight: flint
    from linkwright.symbolic.printing.printed_sheet import places, size, terms  # weight: flint

    cost = operations(sheet)
    if sheet.terms <= _SHOWN and not quiet:
        for block in sheet.blocks:
            screen.print(f"\n{sheet.heading(block)}")
            seen = set()
            for place, formula in places(block):
                if block.symmetric and place[::-1] in seen:
                    continue
                seen.add(place)
                screen.print(f"  {block.name}{place} = {text(formula)}", soft_wrap=True)
        screen.print(f"\nas code: {cost}")
        return
    # As the page counts them: equal entries, as of a symmetric matrix, once.
    rows = [(b.name, len(b.entries), f"{size(b):,}", f"{max(map(terms, b.entries)):,}") for b in sheet.blocks]
    screen.print(grid(("part", "entries", "terms", "longest"), *rows, right=(1, 2, 3)))
    screen.print(f"as code: {cost}")
    if not quiet:
        screen.print(_ADVICE, soft_wrap=True)


def _show_recursive(screen: Console, eq: Equations, quiet: bool) -> None:
    """The steps of inverse dynamics."""
    steps = eq.recursive()
    if quiet:
        screen.print(f"recursive inverse dynamics, with intermediate variables: {steps.count}", soft_wrap=True)
    else:
        screen.print(steps.text(), soft_wrap=True, end="")
