"""`linkwright convert`: a model file in another language."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from linkwright.cli.screen import Base, Fixed, Followers, Settings, assignments, console, tell_warning
from linkwright.errors import LinkwrightError
from linkwright.views import count


def convert(
    model: Annotated[Path, typer.Argument(help="A model file: .mks, .urdf or .dh.toml.", show_default=False)],
    output: Annotated[Path, typer.Argument(help="The file to write: .mks or .urdf.", show_default=False)],
    set_: Settings = None,
    base: Base = None,
    mimic: Followers = None,
    fixed: Fixed = None,
) -> None:
    """Read MODEL and write it as OUTPUT, in the language of that file's ending."""
    from linkwright.formats import read
    from linkwright.formats.files import write_whole

    write = _writer(output)
    options: dict[str, Any] = {"base": base, "mimic": mimic, "fixed": fixed, "parameters": assignments(set_) or None}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        description = read(model, **{key: value for key, value in options.items() if value is not None})
        text = write(description)
    write_whole(output, text)
    for warning in caught:
        tell_warning(str(warning.message))
    meshes = sorted({shape.file for shape in description.shapes if shape.file})
    if meshes and output.suffix == ".mks" and output.parent.resolve() != model.parent.resolve():
        tell_warning(f"meshes are looked for beside the model: copy {', '.join(meshes[:8])} to {output.parent}")
    size = f"{count(description.nb, 'body', 'bodies')}, {count(description.nj, 'joint')}"
    console().print(f"{output}: {description.name}, {size}", soft_wrap=True)


def _writer(output: Path) -> Callable[[Any], str]:
    if output.name.lower().endswith(".mks"):
        from linkwright.formats.mks.printer import write_mks

        return write_mks
    if output.name.lower().endswith(".urdf"):
        from linkwright.formats.urdf_writer import write_urdf

        return write_urdf
    raise LinkwrightError(f"{output}: models are written as .mks or .urdf; choose one of these endings")
