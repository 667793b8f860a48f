"""`Study`: the cases of a parameter study with their outputs, what can be asked of it, and where it is saved;
studies as datasets and NetCDF files.

A file has the variables of `Study.data` as plain numbers, and `header`, the bytes of a JSON text with the model, the
plan and the reasons of failed cases. Files are untrusted, and read as those of solutions are.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import path_text
from linkwright.base.arrays import Floats
from linkwright.base.files import atomic_text, check_target, kind, open_regular, write_bytes
from linkwright.base.html import heading, line, shown, table
from linkwright.base.locks import cached_property
from linkwright.errors import FormatError, LinkwrightError, ModelError, NameNotFound, on_one_line
from linkwright.results.labelled_arrays import LabelledArrays, Variable, texts
from linkwright.results.solution import Solution
from linkwright.results.solution_files import SIZE, Stored, fault
from linkwright.sweeps.plan import Plan, plan_text
from linkwright.sweeps.store import DATASET, FORMAT, MANIFEST, VERSION, Store, header_of, plan_of, read_manifest
from linkwright.sweeps.task import MISSING, Batch, Task, joined

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

_AGAIN = "write it again with Study.save"
#: The columns of `Study.summary`.
SUMMARY = ("", "min", "mean", "max", "cases of min, max")


def gathered(task: Task, plan: Plan, batches: Mapping[int, Batch]) -> Batch:
    """All cases in their order; those of chunks that are not there are failures with a reason."""
    parts = []
    for index in range(plan.chunks):
        part = plan.part(index)
        parts.append(batches.get(index) or Batch({}, [MISSING] * (part.stop - part.start)))
    batch = joined(parts)
    arrays = {name: np.full(len(plan), np.nan) for name in task.all_outputs}
    return Batch({**arrays, **batch.arrays}, batch.reasons)


def case_arrays(task: Task, plan: Plan, batch: Batch) -> LabelledArrays:
    """Dimension case, with the parameters as its labels; series have the dimension time besides."""
    expressions, cases = dict(task.outputs), ("case",)
    variables: dict[str, Variable] = {}
    for name, x in batch.arrays.items():
        variables[name] = (_dimensions(name, x, len(task.times)), x, {"long_name": expressions.get(name, name)})
    variables["ok"] = (cases, np.array([not reason for reason in batch.reasons], bool), {})
    variables["reason"] = (cases, texts(batch.reasons), {})
    labels: dict[str, Variable] = {
        "case": (cases, np.arange(len(plan)), {}),
        "time": (("time",), np.array(task.times), {"units": "s"}),
    }
    labels |= {name: (cases, plan.values[:, k], {}) for k, name in enumerate(plan.names)}
    return LabelledArrays(variables, labels, {"model": _model_name(task)})


def _dimensions(name: str, x: Floats, points: int) -> tuple[str, ...]:
    if x.ndim == 2 and x.shape[1] == points:
        return ("case", "time")
    return ("case", *(f"{name}_{k}" for k in range(1, x.ndim)))


def _model_name(task: Task) -> str:
    words = task.model.split("MODEL", 1)[-1].split(None, 1)
    return words[0].strip(';"') if words else ""


def save(task: Task, plan: Plan, batch: Batch, path: str | os.PathLike[str]) -> None:
    """Write a study, whole or not at all."""
    known = sorted({reason for reason in batch.reasons if reason})
    number = {reason: k + 1 for k, reason in enumerate(known)} | {"": 0}
    header = header_of(task, plan) | {"outputs": list(batch.arrays), "reasons": known}
    header["task"]["folder"] = ""
    content = np.frombuffer(json.dumps(header, allow_nan=False).encode("ascii"), np.uint8)
    whole = case_arrays(task, plan, batch)
    variables = {_name_in_file(name): whole.variables[name] for name in batch.arrays}
    ok = np.array([not reason for reason in batch.reasons], np.int8)
    why = np.array([number[reason] for reason in batch.reasons], np.int32)
    variables["ok"] = (("case",), ok, {})
    variables["why"] = (("case",), why, {"long_name": "number of the reason of failure, from 1"})
    variables["header"] = (("byte",), content, {"long_name": "model, plan and reasons: bytes of a JSON text"})
    source = {"source": f"Linkwright {header['linkwright']}"}
    labelled = LabelledArrays(variables, whole.labels, {**whole.attributes, **source})
    check_target(path)
    write_bytes(path, labelled.netcdf(), links=False)


def _name_in_file(name: str) -> str:
    """An output's variable: a slash, which would be a group of the file, is written as the sign of division."""
    return name.replace("/", "\N{DIVISION SLASH}")


def load(path: str | os.PathLike[str], *, links: bool = True) -> tuple[Task, Plan, Batch]:
    """What `save` wrote; without `links`, the file itself may not be a link to another."""
    import h5py  # weight: h5py

    file = path_text("a study", path)
    try:
        stream = open_regular(file, links=links)
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}; give a file that Study.save wrote", file=file) from error
    with stream:
        wrong = fault(stream.read(SIZE))
        if wrong:
            raise FormatError(f"{wrong}; give a file that Study.save wrote", file=file)
        try:
            with h5py.File(stream, "r") as archive:
                return _read(Stored(archive, file, os.fstat(stream.fileno()).st_size, _AGAIN))
        except LinkwrightError as error:
            if isinstance(error, FormatError) and error.file is not None:
                raise
            raise FormatError(f"{error}; {_AGAIN}", file=file) from error
        except OSError as error:
            text = f"cannot be read: it is no NetCDF 4 file ({error}); give a file that Study.save wrote"
            raise FormatError(text, file=file) from error
        except (RuntimeError, ValueError, TypeError, LookupError, AttributeError, MemoryError) as error:
            raise FormatError(f"is damaged ({error}); {_AGAIN}", file=file) from error


def _read(stored: Stored) -> tuple[Task, Plan, Batch]:
    header = stored.header(FORMAT, VERSION, "a study")
    task = Task.of(header["task"])
    task = Task.of({**task.plain(), "folder": str(Path(stored.file).resolve().parent)})
    names = header["plan"]["names"]
    columns = [stored.numbers(name, (None,)) for name in names]
    n = len(columns[0]) if columns else 0
    if any(len(x) != n for x in columns):
        raise stored.wrong("has parameters of different lengths")
    plan = plan_of(header["plan"], np.stack(columns, axis=1))
    known = ["", *header["reasons"]]
    why = stored.numbers("why", (n,), np.int32)
    if not all(isinstance(reason, str) for reason in known) or np.any(why < 0) or np.any(why >= len(known)):
        raise stored.wrong("has reasons that are not what they should be")
    arrays = {str(name): stored.any_numbers(_name_in_file(str(name))) for name in header["outputs"]}
    for name, x in arrays.items():
        if x.ndim < 1 or len(x) != n:
            raise stored.wrong(f"has a variable {name!r} of shape {x.shape} for {n} cases")
    return task, plan, Batch(arrays, [known[k] for k in why])


class Study:
    """The cases of a study: `values` (n, k) of the parameters `names`, and the outputs of each case.

    `data` is one xarray dataset of all; `ok` has which cases are good, and `failed` why the others are not. `best`
    has the cases with the smallest or largest of an output, `case(k)` the whole motion of one, computed anew.

    `lw.sweep` makes one, of a `task` (model, analysis and outputs), a `plan` (the cases) and a `batch` (their outputs);
    `loaded` cases were there when it was resumed (0), and the others took so many `seconds` (0).

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

    def __init__(self, task: Task, plan: Plan, batch: Batch, *, loaded: int = 0, seconds: float = 0.0) -> None:
        self.task, self.plan, self._batch = task, plan, batch
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
        return tuple(self._batch.arrays)

    @property
    def reasons(self) -> list[str]:
        """Why a case failed; empty where it did not."""
        return list(self._batch.reasons)

    @cached_property
    def ok(self) -> NDArray[np.bool_]:
        """(n,): which cases are good."""
        return np.array([not reason for reason in self._batch.reasons], bool)

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, name: str) -> Floats:
        """An output or a parameter, a row per case."""
        if name in self._batch.arrays:
            return self._batch.arrays[name]
        if name in self.names:
            return self.values[:, self.names.index(name)]
        raise NameNotFound("output or parameter", str(name), [*self.outputs, *self.names])

    @cached_property
    def data(self) -> xarray.Dataset:
        """All of it: dimension case, with the parameters as coordinates; series have the dimension time besides."""

        return case_arrays(self.task, self.plan, self._batch).dataset()

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
        table: xarray.Dataset = data.drop_vars("case").set_index(case=varied).unstack("case")
        return table

    @cached_property
    def failed(self) -> xarray.Dataset:
        """The cases that failed, with their parameters and reasons."""
        return self.data[["reason"]].isel(case=np.flatnonzero(~self.ok))

    @property
    def reason_counts(self) -> list[tuple[str, int]]:
        """How reasons of failure begin, without their numbers, and how many cases have each, the commonest first."""
        begun = (re.split(r"[:;] ", reason)[0] for reason in self._batch.reasons if reason)
        return Counter(re.sub(r"-?\d+\.?\d*(e[+-]?\d+)?", "…", reason) for reason in begun).most_common()

    # -- the good ones --------------------------------------------------------------------------------------
    def scalar(self, name: str) -> Floats:
        """(n,): an output of one number per case, or a parameter, by its `name`; a series raises ModelError."""
        x = self[name]
        if x.ndim != 1:
            raise ModelError(f"{name!r} is a series, not one number per case; keep max({name}) or final({name}), say")
        return x

    def best(self, name: str, n: int = 5, *, largest: bool = False) -> xarray.Dataset:
        """The good cases with the smallest values of an output, the smallest first.

        `name` is an output of one number per case, `n` how many cases (5 by default); `largest` (False): those with the
        largest values. Returns an xarray dataset with the parameters and outputs of these cases.
        """
        x = np.where(self.ok, self.scalar(name), np.nan)
        order = np.argsort(-x if largest else x, kind="stable")  # NaN comes last
        cases = order[: int(np.isfinite(x).sum())][:n]
        return self.data.isel(case=cases).drop_vars(["ok", "reason"])

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

        save(self.task, self.plan, self._batch, path)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV table to `path`, one row per case: parameters, outputs of one number, the reason of a failure."""
        scalars = [name for name in self.outputs if self[name].ndim == 1]
        with atomic_text(path) as file:
            writer = csv.writer(file)
            writer.writerow(["case", *self.names, *scalars, "reason"])
            columns = [self[name].tolist() for name in (*self.names, *scalars)]
            for k, row in enumerate(zip(*columns, strict=True)):
                writer.writerow([k, *map(repr, row), self._batch.reasons[k]])

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
        chunks = Store(place, task, plan).stored()
        if kind(place / DATASET):  # the study was finished meanwhile, and its chunks removed
            return cls(*load(place / DATASET, links=False))
        return cls(task, plan, gathered(task, plan, chunks))

    # -- what a person sees ---------------------------------------------------------------------------------
    def summary(self) -> list[tuple[str, str, str, str, str]]:
        """Of every parameter and output of one number: name, min, mean, max, and the cases of min and max."""
        rows = []
        for name in (*self.names, *self.outputs):
            x = self[name]
            if x.ndim != 1:
                span = f"{x.shape[1]} points per case" if x.ndim == 2 else "×".join(map(str, x.shape[1:]))
                rows.append((name, "", "series", "", span))
                continue
            good = np.flatnonzero(self.ok & np.isfinite(x))
            if not len(good):
                rows.append((name, "", "no value", "", ""))
                continue
            low, high = good[np.argmin(x[good])], good[np.argmax(x[good])]
            where = "" if name in self.names else f"{low}, {high}"
            rows.append((name, f"{x[low]:.6g}", f"{x[good].mean():.6g}", f"{x[high]:.6g}", where))
        return rows

    def __repr__(self) -> str:
        names = ", ".join(self.outputs[:6]) + ", …" * (len(self.outputs) > 6)
        return f"<Study {self.described()}; outputs {on_one_line(names)}>"

    def described(self) -> str:
        """The study in words: how many cases of what, and how many of them failed or are still to be computed."""
        missing = self._batch.reasons.count(MISSING)
        failed = int((~self.ok).sum()) - missing
        ends = (f"; {failed:,} failed" if failed else "", f"; {missing:,} not computed yet" if missing else "")
        return on_one_line(plan_text(self.plan)) + "".join(ends)

    def _repr_html_(self) -> str:
        title, _, ends = self.described().partition(": ")
        rows = self.summary()
        reasons = [line(f"{count:,} × {reason}", bad=True) for reason, count in self.reason_counts[:5]]
        return shown(heading(title, ends), table(SUMMARY, rows, len(rows)), *reasons)
