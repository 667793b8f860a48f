"""`linkwright export`: a function of a mechanism as one self-contained source file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from linkwright.cli.screen import Base, Followers, Loaded, console, load, tell_warning
from linkwright.errors import LinkwrightError, NameNotFound
from linkwright.formats.files import write_whole


def export(
    model: Annotated[Path, typer.Argument(help="A model file: .mks, .urdf or .dh.toml.", show_default=False)],
    function: Annotated[str, typer.Option(help="A method of a mechanism, by name.")] = "forward_dynamics",
    to: Annotated[str, typer.Option(help="The language: 'c' (C99) or 'cuda'.")] = "c",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write.", show_default="standard output")
    ] = None,
    method: Annotated[str | None, typer.Option(help="The method of forward_dynamics.", show_default=False)] = None,
    frame: Annotated[str, typer.Option(help="The frame of pose, jacobian and twist.", show_default=False)] = "",
    reference: Annotated[
        str, typer.Option(help="The axes of jacobian and twist: 'body', 'aligned' or 'world'.", show_default="body")
    ] = "",
    free: Annotated[
        list[str] | None, typer.Option(help="A parameter to keep open, as an input; may be repeated.")
    ] = None,
    wrenches: Annotated[bool, typer.Option("--wrenches", help="Take wrenches on the bodies as an input.")] = False,
    name: Annotated[str | None, typer.Option(help="The name of the function.", show_default="as --function")] = None,
    precision: Annotated[str, typer.Option(help="CUDA: 'float64' or 'float32'.")] = "float64",
    base: Base = None,
    mimic: Followers = None,
) -> None:
    """Write a function of MODEL, with all its numbers, as one file that needs nothing else."""
    if to not in ("c", "cuda"):
        raise NameNotFound("language", to, ["c", "cuda"])
    if to == "c" and precision != "float64":
        raise LinkwrightError(f"C text is in float64; --precision {precision} is for --to cuda")
    loaded = load(model, base=base, mimic=mimic)
    if function in ("pose", "jacobian", "twist"):
        if not frame:
            raise LinkwrightError(f"{function} is about a frame; name it with --frame, such as one of {_some(loaded)}")
        reference = reference or ("" if function == "pose" else "body")
    program = loaded.mechanism.program(
        function, method=method, wrenches=wrenches, frame=frame, reference=reference, free=tuple(free or ())
    )
    text = program.to_c(name=name) if to == "c" else program.to_cuda(name=name, precision=precision)
    for warning in loaded.warnings:
        tell_warning(warning)
    if output is None:
        sys.stdout.write(text)
        return
    write_whole(output, text)
    console().print(f"{output}: {program!r}"[:-1].replace(": <Program ", ": ", 1), soft_wrap=True)


def _some(loaded: Loaded) -> str:
    return ", ".join(loaded.mechanism.frames[:4])
