"""`Tolerances`: what tolerances make of all outputs of a question, as a report, a figure and files."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from linkwright.base.arguments import check_names, path_text
from linkwright.base.files import atomic_text
from linkwright.base.html import heading, line, shown, table
from linkwright.design.output_tolerance import HEAD, METHODS, Contribution, MonteCarlo, OutputTolerance, WorstCase
from linkwright.errors import LinkwrightError, ModelError, on_one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Tolerances:
    """What `lw.tolerances` returns: for each output contributions, worst case, root sum of squares and Monte Carlo.

    `tolerances["reach"]` is the `OutputTolerance` of an output. Of one output alone, `contributions`, `worst_case`,
    `rss`, `std`, `nominal` and `monte_carlo` are there without its name. `report()` is a text, `plot()` a Pareto chart
    with a histogram, `save(path)` writes CSV or JSON.

    `lw.tolerances` makes one, of the name of the `model`, the outputs `by_name`, and `notes` on clearances (none by
    default).

    >>> import tempfile
    >>> arm = lw.from_dh([{"a": "length", "mass": 1.0}], gravity=(0, -9.81, 0))  # falls from the horizontal
    >>> options = {"analysis": "dynamic", "times": [0.0, 0.1], "settings": lw.ToleranceSettings(draws=50)}
    >>> fall = lw.tolerances(arm, "fall = final(joint1.angle)", {"length": "1 %"}, **options)
    >>> f"{fall.rss:.2g}", round(fall["fall"].contributions["length"].percent), fall.report()[:27]
    ('0.00049', 100, 'fall = final(joint1.angle):')
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fall.save(f"{folder}/fall.csv")
    ...     figure = fall.plot(path=f"{folder}/fall.svg")
    """

    model: str
    by_name: Mapping[str, OutputTolerance]
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> OutputTolerance:
        check_names("output", [name], self.by_name)
        return self.by_name[name]

    def __iter__(self) -> Iterator[OutputTolerance]:
        return iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs."""
        return list(self.by_name)

    @property
    def _only(self) -> OutputTolerance:
        if len(self.by_name) > 1:
            first = next(iter(self.by_name))
            raise ModelError(f"there are several outputs, {', '.join(self.by_name)}; name one, as in [{first!r}]")
        return next(iter(self.by_name.values()))

    @property
    def nominal(self) -> float:
        """The value of the only output at the nominal dimensions."""
        return self._only.nominal

    @property
    def contributions(self) -> Mapping[str, Contribution]:
        """The contributions to the only output, by dimension, the largest first."""
        return self._only.contributions

    @property
    def worst_case(self) -> WorstCase:
        """The worst case of the only output."""
        return self._only.worst_case

    @property
    def rss(self) -> float:
        """The root sum of squares of the only output's contributions."""
        return self._only.rss

    @property
    def std(self) -> float:
        """The standard deviation of the only output to first order."""
        return self._only.std

    @property
    def monte_carlo(self) -> MonteCarlo | None:
        """The draws of the only output, None without draws."""
        return self._only.monte_carlo

    def report(self) -> str:
        """A text: the tables of all outputs, and notes."""
        return "\n\n".join([*(one.report() for one in self), *self.notes])

    def __repr__(self) -> str:
        inside = "; ".join(f"{one.title} ± {one.rss:.4g} (root sum of squares)" for one in self)
        return f"<Tolerances of {on_one_line(self.model)}: {inside}>"

    def _repr_html_(self) -> str:
        parts: list[str] = []
        for one in self:
            parts += [heading(one.title), table(HEAD, one.rows(), len(one.contributions))]
            parts += [table(METHODS, one.methods()), *(line(note) for note in one.notes)]
        return shown(*parts, *(line(note) for note in self.notes))

    def plot(self, names: str | Sequence[str] | None = None, path: str | os.PathLike[str] | None = None) -> Figure:
        """A matplotlib figure: for each output a Pareto chart of the contributions, and a histogram of Monte Carlo.

        - `names`: one output or several, all by default.
        - `path`: a file in .png, .svg or .pdf to which the figure is written, None by default.

        Raises LinkwrightError without matplotlib.
        """
        from linkwright.design.tolerance_plots import plot  # weight: matplotlib

        chosen = self.outputs if names is None else [names] if isinstance(names, str) else list(names)
        return plot([self[name] for name in chosen], self.model, path)

    def save(self, path: str | os.PathLike[str], *, samples: bool = False) -> None:
        """Write a table, a row for each output and dimension, to a `path` in .csv, or all numbers to one in .json.

        `samples` (False by default): the JSON file has the samples of Monte Carlo too.
        """
        ending = Path(path_text("a table of tolerances", path)).suffix.lower()
        if ending not in (".csv", ".json"):
            raise LinkwrightError(f"{path}: tolerances are written as .csv or .json; give such a name")
        plain = [one.plain(samples) for one in self]
        with atomic_text(path) as file:
            if ending == ".json":
                content = {"model": self.model, "outputs": plain, "notes": list(self.notes)}
                file.write(json.dumps(content, indent=1, allow_nan=False) + "\n")
                return
            rows = [{"output": one["output"], **row} for one in plain for row in one["contributions"]]
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
