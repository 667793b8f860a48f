"""Figures that a notebook shows when they are the value of a cell, without a plotting state of matplotlib's."""

from __future__ import annotations

import io
import os
from pathlib import Path

from matplotlib.figure import Figure

from linkwright.base.files import atomic_file


class ShownFigure(Figure):
    """A figure that belongs to no window and draws itself in notebooks."""

    def _repr_png_(self) -> bytes:
        with io.BytesIO() as file:
            self.savefig(file, format="png", dpi=110)
            return file.getvalue()


def save_figure(figure: Figure, path: str | os.PathLike[str], dpi: int = 150) -> None:
    """Write a figure whole or not at all, in the format that the name's ending says."""
    with atomic_file(path) as file:
        figure.savefig(file, format=Path(path).suffix[1:].lower() or "png", dpi=dpi)
