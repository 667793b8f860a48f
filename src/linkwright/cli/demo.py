"""`linkwright demo`: a mechanism from its model file to its animation; or a robot and the speed of its dynamics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkwright.cli.run import perform
from linkwright.cli.screen import console, load
from linkwright.errors import NameNotFound

SAMPLE = Path(__file__).with_name("slider_crank.mks")


def demo(
    what: Annotated[str, typer.Argument(help="'mechanism' or 'robot'.")] = "mechanism",
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for what is written.")] = Path("out"),
) -> None:
    """Show what it does: a slider-crank from its file to its animation, or with 'robot' an arm's dynamics and speed."""
    if what == "robot":
        from linkwright.cli.robot import show_robot

        show_robot()
        return
    if what != "mechanism":
        raise NameNotFound("demonstration", what, ["mechanism", "robot"])
    code = perform(load(SAMPLE).mechanism, "slider_crank", output, plot=_can_plot())
    if code:
        raise typer.Exit(code)
    page = (output / "slider_crank.html").resolve()
    console().print()
    console().print(f"look at it: {_opener()} {page}", soft_wrap=True, style="bold")


def _can_plot() -> bool:
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def _opener() -> str:
    """The command that opens a page here."""
    import sys

    return {"darwin": "open", "win32": "start"}.get(sys.platform, "xdg-open")
