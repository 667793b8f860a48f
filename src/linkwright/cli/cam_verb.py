"""`linkwright cam`: the profile of a plate cam from a wanted motion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import linkwright as lw
from linkwright.cli.screen import console
from linkwright.errors import LinkwrightError

_TABLES, _FIGURES = (".dxf", ".svg", ".csv"), (".png", ".pdf")


def cam(
    motion: Annotated[
        str,
        typer.Argument(
            help="The follower's motion over one turn: 'cam(angle, 360 deg, (90 deg, 20 mm, rise345), (180 deg, 0, "
            "cycloidal))', or another expression of one angle.",
        ),
    ],
    base: Annotated[str, typer.Option(metavar="RADIUS", help="Of the base circle: '40 mm'; plain numbers are metres.")],
    roller: Annotated[
        str | None, typer.Option(metavar="RADIUS", help="Of the roller.", show_default="a flat follower")
    ] = None,
    knife: Annotated[bool, typer.Option("--knife", help="The follower has an edge.")] = False,
    offset: Annotated[
        str, typer.Option(metavar="LENGTH", help="Of the follower's path, positive where it helps the rise.")
    ] = "0",
    pivot: Annotated[str, typer.Option(metavar="LENGTH", help="From the cam's axis to that of an arm.")] = "0",
    arm: Annotated[str, typer.Option(metavar="LENGTH", help="From the pivot to the roller or edge.")] = "0",
    clockwise: Annotated[bool, typer.Option("--clockwise", help="The cam turns clockwise.")] = False,
    unit: Annotated[str, typer.Option(help="Of lengths in files.")] = "mm",
    count: Annotated[int, typer.Option(min=16, help="Points of the profile.")] = 720,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="A cam that cannot be made is shown, with its faults.")
    ] = False,
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--out", help="A file: .dxf, .svg, .csv, or a figure .png, .pdf; may be repeated.", show_default=False
        ),
    ] = None,
) -> None:
    """Print sizes, pressure angle and curvature of the cam that moves a follower by MOTION, and write its profile."""
    for path in files or ():
        if path.suffix.lower() not in (*_TABLES, *_FIGURES):
            endings = ", ".join((*_TABLES, *_FIGURES))
            raise LinkwrightError(f"--out {path}: the profile of a cam is written as {endings}; give such a name")
    if roller is not None and knife:
        raise LinkwrightError("--roller and --knife exclude each other; leave one out")
    contact = "knife" if knife else "flat" if roller is None else "roller"
    follower = lw.CamFollower(contact, roller or 0.0, offset, pivot, arm)
    profile = lw.cam_profile(motion, base, follower, clockwise=clockwise, count=count, check=not anyway)
    for path in files or ():
        if path.suffix.lower() in _TABLES:
            profile.save(path, unit=unit, count=count)
        else:
            profile.plot(path)
    screen = console()
    screen.print(profile.report(), soft_wrap=True)
    for path in files or ():
        screen.print(f"{path}: {'the figure' if path.suffix.lower() in _FIGURES else 'the profile'}", soft_wrap=True)
