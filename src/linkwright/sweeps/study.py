"""`Study`: the cases of a parameter study with their outputs, in memory or in files, and what can be asked of it."""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import path_text
from linkwright.base.arrays import Floats
from linkwright.base.files import atomic_text, kind
from linkwright.base.html import heading, line, shown, table
from linkwright.base.locks import cached_property
from linkwright.errors import LinkwrightError, ModelError, NameNotFound, on_one_line
from linkwright.model.units import PLAIN, Shown
from linkwright.outputs.output_language import output_of
from linkwright.outputs.output_units import output_shown, parameter_shown
from linkwright.results.solution import Solution
from linkwright.sweeps.plan import Plan, plan_text
from linkwright.sweeps.store import DATASET, Store
from linkwright.sweeps.stored_outputs import StoredColumn, StoredOutputs, blocks_of
from linkwright.sweeps.study_files import case_arrays, load, save
from linkwright.sweeps.study_manifest import MANIFEST, read_manifest
from linkwright.sweeps.task import MISSING, Batch, Task

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

#: The columns of `Study.summary`.
SUMMARY = ("", "min", "mean", "max", "cases of min, max")
#: A reason up to its cause: of a motion that stopped the cause stands behind the time.
_BEGINNING = re.compile(r"(?:stopped at t = [^:;]+: )?.*?(?=[:;] |$)", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w'])-?\d+\.?\d*(e[+-]?\d+)?")  # not the digits of a name
_PARTS = 20  # that are named
_ROWS = 10_000  # of a table that are written at a time


class Study:
    """The cases of a study: `values` (n, k) of the parameters `names`, and the outputs of each case.

    `data` is one xarray dataset of all; `ok` has which cases are good, and `failed` why the others are not. `best`
    has the cases with the smallest or largest of an output, `case(k)` the whole motion of one, computed anew.

    Outputs of more than 64 MiB stay in the study's folder or file: `data` reads what is sliced of it, `blocks` goes
    through an output, and `study[name]` has all of it, if memory has. Files are looked at when the study is opened,
    and their numbers are checked when they are read.

    `lw.sweep` makes one, of a `task` (model, analysis and outputs), a `plan` (the cases) and a `batch` (their outputs);
    `loaded` cases were there when it was resumed (0), and the others took so many `seconds` (0). `missing_parts` of a
    study that is computed in parts are not finished, each as `lw.StudyFolder(part=...)` takes it.

    >>> import tempfile
    >>> mech = lw.from_dh([{"a": "length", "mass": 1.0}], gravity=(0, -9.81, 0))  # falls from the horizontal
    >>> options = {"analysis": "dynamic", "times": [0.0, 0.1, 0.2]}
    >>> study = lw.sweep(mech, {"length": [0.5, 1.0]}, "fall = final(joint1.angle)", **options)
    >>> study.described(), study.scalar("fall").round(3), study.case(1).q.shape
    ('2 cases: length: 2 values 0.5 … 1', array([-0.39 , -0.196]), (3, 1))
    >>> float(study.best("fall", 1)["length"][0]), dict(study.grid().sizes), study.summary()[0]
    (0.5, {'length': 2, 'time': 3}, ('length', '0.5', '0.75', '1', ''))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study.to_csv(f"{folder}/study.csv")
    ...     study.save(f"{folder}/study.nc")
    ...     page, figure = study.animate(0, f"{folder}/case.html"), study.plot("fall", path=f"{folder}/fall.svg")
    ...     len(lw.Study.open(f"{folder}/study.nc"))
    2
    """

    def __init__(
        self,
        task: Task,
        plan: Plan,
        batch: Batch | StoredOutputs,
        *,
        loaded: int = 0,
        seconds: float = 0.0,
        missing_parts: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.task, self.plan, self._outputs = task, plan, batch
        self.missing_parts = list(missing_parts)
        #: Cases that were there already when the study was resumed, and the time that the others took (s).
        self.loaded, self.seconds = loaded, seconds

    @property
    def names(self) -> tuple[str, ...]:
        """The swept parameters."""
        return self.plan.names

    @property
    def values(self) -> Floats:
        """(n, k): the parameters of every case."""
        return self.plan.values

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of what was kept of every case."""
        return tuple(self._outputs.arrays)

    @property
    def scalar_outputs(self) -> tuple[str, ...]:
        """The names of outputs of one number per case."""
        return tuple(name for name, x in self._outputs.arrays.items() if x.ndim == 1)

    @property
    def in_memory(self) -> bool:
        """Whether all outputs are in memory; else they are read from files when they are asked for."""
        return isinstance(self._outputs, Batch)

    @property
    def reasons(self) -> list[str]:
        """Why a case failed; empty where it did not."""
        return list(self._outputs.reasons)

    @cached_property
    def ok(self) -> NDArray[np.bool_]:
        """(n,): which cases are good."""
        return np.array([not reason for reason in self._outputs.reasons], bool)

    def __len__(self) -> int:
        return len(self.plan)

    def _column(self, name: str) -> NDArray[Any] | StoredColumn:
        column = self._outputs.arrays.get(name)
        if column is not None:
            return column
        if name in self.names:
            return self.values[:, self.names.index(name)]
        raise NameNotFound("output or parameter", str(name), [*self.outputs, *self.names])

    def __getitem__(self, name: str) -> Floats:
        """An output or a parameter, a row per case: all of it in memory."""
        column = self._column(name)
        return column.whole() if isinstance(column, StoredColumn) else column

    def blocks(self, name: str) -> Iterator[tuple[slice, Floats]]:
        """The output or parameter `name` block by block: a slice of cases, and the rows of these.

        A study in memory has one block; of others, one at a time is in memory.

        >>> mech, options = lw.from_dh([{"a": "length", "mass": 1.0}]), {"analysis": "dynamic", "times": [0.0, 0.1]}
        >>> study = lw.sweep(mech, {"length": [0.5, 1.0]}, "joint1.angle", **options)
        >>> [(cases, rows.shape) for cases, rows in study.blocks("joint1.angle")]
        [(slice(0, 2, None), (2, 2))]
        """
        return blocks_of(self._column(name))

    @cached_property
    def data(self) -> xarray.Dataset:
        """All of it: dimension case, with the parameters as coordinates; series have the dimension time besides."""
        labelled = case_arrays(self.task, self.plan, self._outputs)
        if self.in_memory:
            return labelled.dataset()
        from linkwright.sweeps.lazy_datasets import lazy_dataset  # weight: xarray

        return lazy_dataset(labelled)

    def grid(self) -> xarray.Dataset:
        """The good cases as an xarray dataset with a dimension for every parameter that varies.

        Raises ModelError where a parameter is drawn from a distribution: then the cases form no grid.
        """
        for name, (law, *_) in self.plan.recipe["parameters"].items():
            if law != "list":
                raise ModelError(f"{name!r} is drawn from a distribution, so the cases are no grid; use study.data")
        varied = list(self.plan.varied) or list(self.names[:1])
        data = self.data.drop_vars([*(n for n in self.names if n not in varied), "reason"])
        if len(varied) == 1:
            return data.swap_dims(case=varied[0]).drop_vars("case")
        if isinstance(self._outputs, Batch):
            table: xarray.Dataset = data.drop_vars("case").set_index(case=varied).unstack("case")
            return table
        from linkwright.sweeps.lazy_datasets import lazy_grid  # weight: xarray

        return lazy_grid(data, self._outputs.arrays, varied)

    @cached_property
    def failed(self) -> xarray.Dataset:
        """The cases that failed, with their parameters and reasons."""
        return self.data[["reason"]].isel(case=np.flatnonzero(~self.ok))

    @property
    def missing_cases(self) -> int:
        """How many cases are not computed yet: their chunks are not in the study's folder."""
        return self._outputs.reasons.count(MISSING)

    @property
    def reason_counts(self) -> list[tuple[str, int]]:
        """How reasons of failure begin, without their numbers, and how many cases have each, the commonest first."""
        begun = (_BEGINNING.match(reason) for reason in self._outputs.reasons if reason)
        return Counter(_NUMBER.sub("…", match[0]) for match in begun if match).most_common()

    # -- the good ones --------------------------------------------------------------------------------------
    def scalar(self, name: str) -> Floats:
        """(n,): an output of one number per case, or a parameter, by its `name`; a series raises ModelError."""
        if self._column(name).ndim != 1:
            raise ModelError(f"{name!r} is a series, not one number per case; keep max({name}) or final({name}), say")
        return self[name]

    def best(self, name: str, n: int = 5, *, largest: bool = False) -> xarray.Dataset:
        """The good cases with the smallest values of an output, the smallest first.

        `name` is an output of one number per case, `n` how many cases (5 by default); `largest` (False): those with the
        largest values. Returns an xarray dataset with the parameters and outputs of these cases.
        """
        x = np.where(self.ok, self.scalar(name), np.nan)
        order = np.argsort(-x if largest else x, kind="stable")  # NaN comes last
        cases = order[: int(np.isfinite(x).sum())][:n]
        return self.data.isel(case=cases).drop_vars(["ok", "reason"]).load()

    def case(self, number: int) -> Solution:
        """The whole motion of one case, computed anew by `lw.analyse`.

        `number` counts the cases from 0. Returns a `Solution`. Raises ModelError where there is no such case, and the
        error of the analysis for a case that failed.
        """
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 <= number < len(self):
            raise ModelError(f"there is no case {number!r}; the cases of this study are 0 … {len(self) - 1}")
        return self.task.solution(self.values[number])

    def animate(self, number: int, path: str | os.PathLike[str]) -> Path:
        """Write the animation of the case `number` to `path`, as a page that any browser opens; returns the path."""
        self.case(number).animate(path)
        return Path(path)

    # -- the outside ----------------------------------------------------------------------------------------
    def plot(
        self,
        names: str | list[str] | None = None,
        kind: str | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> Figure:
        """A matplotlib figure of outputs.

        - `names`: one output or several, all by default.
        - `kind`: "lines" over a parameter (the default of grids), "scatter" for a matrix of all against all (the
          default of draws), "histogram", or "series" in time.
        - `path`: a file in .png, .svg or .pdf to which the figure is written, None by default.

        Raises LinkwrightError without matplotlib, and where these outputs cannot be drawn so.
        """
        from linkwright.sweeps.study_plots import plot  # weight: matplotlib

        return plot(self, names, kind, path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a NetCDF file that `lw.Study.open` reads; a `path` in .csv gets the table of parameters and outputs."""
        if path_text("a study", path).lower().endswith(".csv"):
            self.to_csv(path)
            return

        save(self.task, self.plan, self._outputs, path)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV table to `path`, one row per case: parameters, outputs of one number, the reason of a failure."""
        columns = [self[name] for name in (*self.names, *self.scalar_outputs)]
        with atomic_text(path) as file:
            writer = csv.writer(file)
            writer.writerow(["case", *self.names, *self.scalar_outputs, "reason"])
            for start in range(0, len(self), _ROWS):
                rows = zip(*(x[start : start + _ROWS].tolist() for x in columns), strict=True)
                for k, row in enumerate(rows, start):
                    writer.writerow([k, *map(repr, row), self._outputs.reasons[k]])

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Study:
        """The study in a file that `save` wrote, or in a study's folder, finished or not, by its `path`.

        Raises FormatError where the file is damaged or is no study's, and LinkwrightError for a folder without a study.
        """
        place = Path(path_text("a study", path))
        if not place.is_dir():
            return cls(*load(place))
        if kind(place / DATASET):
            return cls(*load(place / DATASET, links=False))
        if not kind(place / MANIFEST):
            raise LinkwrightError(f"{place}: there is no study in this folder; give one that lw.sweep kept one in")
        task, plan, _ = read_manifest(place)
        store = Store(place, task, plan)
        outputs = store.outputs()
        if kind(place / DATASET):  # the study was finished meanwhile, and its chunks removed
            return cls(*load(place / DATASET, links=False))
        return cls(task, plan, outputs, missing_parts=store.missing_parts(outputs))

    # -- what a person sees ---------------------------------------------------------------------------------
    @cached_property
    def shown_units(self) -> Mapping[str, Shown]:
        """How numbers are shown in tables, by parameter and output: in the model's units, as far as these are known."""
        d = self.task.reader.base.description
        units = dict.fromkeys(self.outputs, PLAIN) | {name: parameter_shown(d, name) for name in self.names}
        for name, text in self.task.outputs:
            units[name] = output_shown(d, output_of(d, name, text).expression)
        return units

    def summary(self) -> list[tuple[str, str, str, str, str]]:
        """Of every parameter and output of one number: name, min, mean, max in the model's units, and the cases of min
        and max."""
        rows = []
        for name in (*self.names, *self.outputs):
            shape, shown = self._column(name).shape, self.shown_units[name]
            if len(shape) != 1:
                span = f"{shape[1]} points per case" if len(shape) == 2 else "×".join(map(str, shape[1:]))
                rows.append((shown.heading(name), "", "series", "", span))
                continue
            x = self[name]
            good = np.flatnonzero(self.ok & np.isfinite(x))
            if not len(good):
                rows.append((name, "", "no value", "", ""))
                continue
            low, high = good[np.argmin(x[good])], good[np.argmax(x[good])]
            where = "" if name in self.names else f"{low}, {high}"
            least, mean, most = (f"{shown.of(number):.6g}" for number in (x[low], x[good].mean(), x[high]))
            rows.append((shown.heading(name), least, mean, most, where))
        return rows

    def __repr__(self) -> str:
        names = ", ".join(self.outputs[:6]) + ", …" * (len(self.outputs) > 6)
        return f"<Study {self.described()}; outputs {on_one_line(names)}>"

    def described(self) -> str:
        """The study in words: how many cases of what, and how many of them failed or are still to be computed."""
        missing = self.missing_cases
        failed = int((~self.ok).sum()) - missing
        ends = [f"; {failed:,} failed" if failed else "", f"; {missing:,} not computed yet" if missing else ""]
        if missing and self.missing_parts:
            ends.append(f" ({parts_text(self.missing_parts)})")
        return on_one_line(plan_text(self.plan)) + "".join(ends)

    def _repr_html_(self) -> str:
        title, _, ends = self.described().partition(": ")
        rows = self.summary()
        reasons = [line(f"{count:,} × {reason}", bad=True) for reason, count in self.reason_counts[:5]]
        return shown(heading(title, ends), table(SUMMARY, rows, len(rows)), *reasons)


def parts_text(parts: Sequence[tuple[int, int]]) -> str:
    """Parts of a study in words: parts 3, 7 of 16."""
    numbers = ", ".join(str(number) for number, _ in parts[:_PARTS]) + ", …" * (len(parts) > _PARTS)
    return f"part{'s' * (len(parts) > 1)} {numbers} of {parts[0][1]}"
