"""Figures that a notebook shows when they are the value of a cell, without a plotting state of matplotlib's."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """A figure that belongs to no window and draws itself in notebooks."""

    def _repr_png_(self) -> bytes:
        with io.BytesIO() as file:
            self.savefig(file, format="png", dpi=110)
            return file.getvalue()
