"""`linkwright convert`: a model file in another language."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from linkwright.base.arguments import counted
from linkwright.base.files import check_place, write_text
from linkwright.cli.screen import (
    Arguments,
    Base,
    Fixed,
    Folders,
    Followers,
    Settings,
    Trust,
    assignments,
    console,
    file_options,
    print_warning,
    printed_warnings,
)
from linkwright.errors import LinkwrightError
from linkwright.formats.model_files import format_of, read, writer

Friction = Annotated[
    str | None,
    typer.Option(
        help="URDF, SDF, MJCF: damping and friction 'apply' or 'ignore'.", show_default="ignore for URDF, else apply"
    ),
]


def convert(
    model: Annotated[
        Path,
        typer.Argument(help="A model file: .mks, .urdf, .sdf, .xml (MJCF), .xacro or .dh.toml.", show_default=False),
    ],
    output: Annotated[
        Path, typer.Argument(help="The file to write: .mks, .urdf, .xml (MJCF) or .sdf.", show_default=False)
    ],
    set_: Settings = None,
    base: Base = None,
    mimic: Followers = None,
    fixed: Fixed = None,
    friction: Friction = None,
    folder: Folders = None,
    trust: Trust = False,
    argument: Arguments = None,
) -> None:
    """Read MODEL and write it as OUTPUT, in the language of that file's ending.

    What that language cannot hold is reported: in warnings, or, where it would be another mechanism, as an error.
    """
    write = writer(output)
    if output.exists() and model.exists() and output.resolve() == model.resolve():
        raise LinkwrightError(f"{output}: is the model itself; give another file to write")
    check_place(output)
    options: dict[str, Any] = {"base": base, "mimic": mimic, "fixed": fixed, "friction": friction}
    options.update(parameters=assignments(set_) or None, **file_options(folder, trust, argument))
    with printed_warnings():
        description = read(model, **{key: value for key, value in options.items() if value is not None})
        if not description.nb:
            text = "nothing in it moves, so that nothing would be left of it"
            hint = "; a robot that is one body moves with --base floating" if format_of(model) == "urdf" else ""
            raise LinkwrightError(f"{model}: {text}{hint}")
        text = write(description)
        write_text(output, text)
    meshes = sorted({shape.file for shape in description.shapes if shape.file})
    if meshes and output.suffix == ".mks" and output.parent.resolve() != model.parent.resolve():
        print_warning(f"meshes are looked for beside the model: copy {', '.join(meshes[:8])} to {output.parent}")
    size = f"{counted(description.nb, 'body', 'bodies')}, {counted(description.nj, 'joint')}"
    console().print(f"{output}: {description.name}, {size}", soft_wrap=True)
