"""`linkwright export`: a function of a mechanism in another language, as a folder that stands alone or as one file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from linkwright.cli.screen import (
    Arguments,
    Base,
    Folders,
    Followers,
    Trust,
    console,
    file_options,
    load,
)
from linkwright.errors import LinkwrightError, NameNotFound


def export(
    model: Annotated[Path, typer.Argument(help="A model file, such as .mks, .urdf or MJCF.", show_default=False)],
    function: Annotated[
        str, typer.Option(help="A method of a mechanism, by name; or 'step', a step in time.")
    ] = "forward_dynamics",
    to: Annotated[str, typer.Option(help="The language: c (C99), cuda, casadi, jax or sympy.")] = "c",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A folder for source, README, test vector and test; or one file: x.c, x.cu, x.py.",
            show_default="standard output",
        ),
    ] = None,
    method: Annotated[str | None, typer.Option(help="The method of forward_dynamics.", show_default=False)] = None,
    frame: Annotated[str, typer.Option(help="The frame of pose, jacobian and twist.", show_default=False)] = "",
    reference: Annotated[
        str, typer.Option(help="The axes of jacobian and twist: 'body', 'aligned' or 'world'.", show_default="body")
    ] = "",
    free: Annotated[list[str] | None, typer.Option(help="A parameter left as an input; may be repeated.")] = None,
    wrenches: Annotated[bool, typer.Option("--wrenches", help="Take wrenches on the bodies as an input.")] = False,
    dt: Annotated[float | None, typer.Option(help="The length of a step (s).", show_default=False)] = None,
    name: Annotated[str | None, typer.Option(help="The name of the function.", show_default="as --function")] = None,
    precision: Annotated[
        str | None, typer.Option(help="C and CUDA: 'float64' or 'float32'.", show_default="float64; Arduino float32")
    ] = None,
    arduino: Annotated[bool, typer.Option("--arduino", help="Make the folder an Arduino library.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Write into a folder that holds other files.")] = False,
    base: Base = None,
    mimic: Followers = None,
    folder: Folders = None,
    trust: Trust = False,
    argument: Arguments = None,
) -> None:
    """Write a function of MODEL, with all its numbers, as files that need nothing else."""
    from linkwright.dynamics.functions import FUNCTIONS  # weight: dynamics
    from linkwright.exports.export import check_language, single_text  # weight: exports
    from linkwright.exports.export import export as write  # weight: exports
    from linkwright.exports.exported_function import STEP, subject  # weight: exports

    check_language(to, precision, arduino, output)
    if function not in FUNCTIONS and function != STEP:
        raise NameNotFound("function", function, [*FUNCTIONS, STEP])
    loaded = load(model, base=base, mimic=mimic, **file_options(folder, trust, argument))
    if function in ("pose", "jacobian", "twist"):
        if not frame:
            names = ", ".join(loaded.mechanism.frames[:4])
            raise LinkwrightError(f"{function} is about a frame; name it with --frame, such as one of {names}")
        reference = reference or ("" if function == "pose" else "body")
    options: dict[str, Any] = {"method": method, "frame": frame, "reference": reference, "wrenches": wrenches}
    options |= {"free": tuple(free or ()), "dt": dt, "name": name}
    if output is None:
        text = single_text(subject(loaded.mechanism, function, **options), to, precision or "float64")
        loaded.print_warnings()
        sys.stdout.write(text)
        return
    more: dict[str, Any] = {"precision": precision, "arduino": arduino, "overwrite": overwrite}
    exported = write(loaded.mechanism, output, cast(Any, function), cast(Any, to), **options, **more)
    loaded.print_warnings()
    screen = console()
    screen.print(f"{output}: {exported.subject.program!r}"[:-1].replace(": <Program ", ": ", 1), soft_wrap=True)
    if output.is_dir():
        screen.print(f"  {', '.join(sorted(exported.files))}; tested to {exported.tolerance:.2g}", soft_wrap=True)
