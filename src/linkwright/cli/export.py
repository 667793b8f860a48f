"""`linkwright export`: a function of a mechanism as one self-contained source file."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from linkwright.cli.screen import Loaded, console, load, tell_warning
from linkwright.errors import LinkwrightError, NameNotFound


def export(
    model: Annotated[Path, typer.Argument(help="A model file: .urdf or .dh.toml.", show_default=False)],
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
    base: Annotated[str | None, typer.Option(help="URDF: 'fixed' or 'floating'.", show_default="fixed")] = None,
    mimic: Annotated[str | None, typer.Option(help="URDF: 'follow' or 'independent'.", show_default="follow")] = None,
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


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all: beside its place, then moved there."""
    folder = path.parent
    if path.is_dir():
        raise LinkwrightError(f"{path}: is a directory; give a file with --output")
    if not folder.is_dir():
        raise LinkwrightError(f"{path}: there is no directory {folder}; make it first")
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        # mkstemp makes files for the owner alone; a source file has the rights that any new file would have.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
