"""Recorded data of one input and one output: arrays or CSV, checked before anything is estimated from them."""

from __future__ import annotations

import csv
import io
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import check_names, path_text, positive_number, real_array, whole_number
from linkwright.base.arrays import Floats
from linkwright.base.files import open_regular
from linkwright.errors import DataError, ExcitationError

MOST_BYTES = 1 << 30
MOST_ROWS = 20_000_000
LONGEST_LINE = 1 << 20  # characters
LONGEST_FIELD = 10_000  # characters


def read_columns(
    path: str | os.PathLike[str], choose: Callable[[list[str]], Sequence[str]]
) -> tuple[dict[str, Floats], Sequence[int]]:
    """The columns that `choose` picks of the names in the head, and the line of the file that each row is in.

    Fields are parted by commas, semicolons or tabs, whichever the head has most of. Empty lines, and those that start
    with #, are left out.
    """
    file = Path(path_text("a record", path))
    try:
        with open_regular(file) as bytes_, io.TextIOWrapper(bytes_, encoding="utf-8-sig", newline="") as stream:
            size = os.fstat(bytes_.fileno()).st_size
            if size > MOST_BYTES:
                raise DataError(f"{file} has {size:,} bytes; at most {MOST_BYTES:,} are read: cut or decimate it first")
            return _table(file, stream, choose)
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot read {file} as CSV: {error}") from error


def _table(
    file: Path, stream: TextIO, choose: Callable[[list[str]], Sequence[str]]
) -> tuple[dict[str, Floats], Sequence[int]]:
    lines = _lines(file, stream)
    skipped, head = 0, ""
    for head in lines:
        if head.strip():
            break
        skipped += 1
    separator = max(",;\t", key=head.count)
    names = [x.strip() for row in csv.reader([head], delimiter=separator, strict=True) for x in row]
    if not any(names) or (len(set(names)) != len(names) and not all(map(_is_number, names))):
        raise DataError(f"{file}: the first line must name the columns, each once; it reads {head.strip()[:80]!r}")
    if all(map(_is_number, names)):
        text = f"{file}: the first line is no head, it reads {head.strip()[:80]!r}"
        raise DataError(f"{text}: put the names of the columns in a line before it, as time,u,y", row=skipped + 1)
    chosen = list(dict.fromkeys(choose(names)))
    places = [names.index(name) for name in chosen]
    columns, at = [array("d") for _ in chosen], array("q")
    reader = csv.reader(lines, delimiter=separator, strict=True)
    for row in reader:
        if not row or all(not x.strip() for x in row):
            continue
        line = skipped + 1 + reader.line_num
        _checked_row(file, line, row, names, separator)
        if len(at) == MOST_ROWS:
            raise DataError(f"{file} has more than {MOST_ROWS:,} rows: cut or decimate it first")
        for column, place in zip(columns, places, strict=True):
            text = row[place].strip()
            try:
                # Python's numbers may have underscores and the digits of any script; those of a table do not.
                value = float(text) if text.isascii() and "_" not in text else None
            except ValueError:
                value = None
            if value is None or not isfinite(value):
                raise DataError(_fault(file, line, names[place], text, value), row=line, column=names[place])
            column.append(value)
        at.append(line)
    if not at:
        raise DataError(f"{file} has a head and no rows")
    return {name: np.frombuffer(column) for name, column in zip(chosen, columns, strict=True)}, at


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _lines(file: Path, stream: TextIO) -> Iterator[str]:
    """The lines, each of a bounded length; comments are empty lines, so that the lines can still be counted."""
    number = 0
    while line := stream.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            text = f"{file}: line {number} is longer than {LONGEST_LINE:,} characters"
            raise DataError(f"{text}, which no line of a table is: is it a CSV file?", row=number)
        yield "\n" if line.lstrip().startswith("#") else line


def _checked_row(file: Path, line: int, row: list[str], names: list[str], separator: str) -> None:
    if len(row) != len(names):
        text = f"{file}: line {line} has {len(row)} fields, and the head names {len(names)}"
        if separator == "," and len(row) > len(names):
            text += ". If its decimals are written with commas, write them with points"
        raise DataError(text, row=line)
    for name, field in zip(names, row, strict=True):
        if len(field) > LONGEST_FIELD:
            text = f"{file}: line {line}, column {name[:40]!r} has {len(field):,} characters"
            raise DataError(f"{text}; at most {LONGEST_FIELD:,} are read", row=line, column=name)


def _fault(file: Path, line: int, name: str, text: str, value: float | None) -> str:
    where, advice = f"{file}: line {line}, column {name!r} is", "Cut the record there, or fill the gap first"
    if not text:
        return f"{where} empty. {advice}"
    if value is not None:
        return f"{where} {text[:40]}. {advice}"
    fault = f"{where} {text[:40]!r}, no number"
    whole, comma, decimals = text.lstrip("+-").partition(",")
    if comma and whole.isdecimal() and decimals[:1].isdecimal():
        return f"{fault}: decimals are written with a point, {text[:40].replace(',', '.', 1)}"
    if "_" in text:
        return f"{fault}: digits are written without underscores"
    return f"{fault}. {advice}"


SHORTEST = 10  # samples
TIMES = ("time", "t", "Time", "TIME", "T", "time (s)", "t (s)", "time [s]", "t [s]")
UNEVEN = 1e-3  # of dt, that a step of the time column may differ from the mean step


@dataclass(frozen=True, eq=False)
class Record:
    """An input `u` (N) and an output `y` (N) sampled together every `dt` seconds; `r` (N) is an outside reference.

    With feedback u is what reached the plant, and r what was added from outside; None where there is none.

    >>> import linkwright as lw
    >>> u = lw.control.m_sequence(9)
    >>> record = lw.control.Record(u, 2.0 * u, 1e-3).detrend("linear")
    >>> training, validation = record.split(0.75)
    >>> len(validation), len(record.part(100)), len(record.decimate(2)), len(record.resample(2e-3))
    (128, 411, 256, 256)
    >>> record.excitation(10)[0], record.require_excitation(10) > 0.1, len(record.plot().axes)
    (10, True, 2)
    >>> t = [0.001 * k for k in range(len(u))]
    >>> lw.control.Record.from_times(t, u, 2.0 * u).dt
    0.001

    Raises `DataError` for signals that are no rows of finite numbers, of unequal length, shorter than 10 samples, or an
    input that is constant.
    """

    u: Floats
    y: Floats
    dt: float
    r: Floats | None = None

    def __post_init__(self) -> None:
        positive_number("dt, the sampling period in s,", self.dt)
        for name in ("u", "y", *(["r"] if self.r is not None else [])):
            object.__setattr__(self, name, _checked(name, getattr(self, name)))
        for name, signal in (("y", self.y), ("r", self.r)):
            if signal is not None and len(signal) != len(self.u):
                raise DataError(f"u has {len(self.u)} samples and {name} {len(signal)}: they must be equally many")
        if len(self.u) < SHORTEST:
            raise DataError(f"a record of {len(self.u)} samples is too short: at least {SHORTEST} are needed")
        if np.ptp(self.u) == 0.0:
            raise DataError(
                f"the input is constant ({self.u[0]:g}) over all {len(self.u)} samples: nothing can be learnt about "
                "the plant. Excite it, by lw.control.m_sequence for instance, or check the column"
            )

    # -- making one -----------------------------------------------------------------------------------------
    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        u: str = "u",
        y: str = "y",
        r: str | None = None,
        *,
        time: str | None = None,
        dt: float | None = None,
        uneven: str = "refuse",
    ) -> Record:
        r"""A record from columns of a CSV file `path` whose first line names them (comma, semicolon or tab).

        - `u`, `y`, `r`: names of the columns; "u", "y" and none.
        - `time`: the column of the times (s), or one called time, t, TIME or time [s]; without one, `dt` (s) must be
          given.
        - `uneven`: uneven times are refused ("refuse", the default), or with "interpolate" put on a grid.

        Rows in error messages are lines of the file. Raises `DataError` for a file that cannot be used.

        >>> import pathlib, tempfile, linkwright as lw
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rows = "".join(f"{k % 3},{k % 2}\n" for k in range(20))
        ...     written = pathlib.Path(folder, "a.csv").write_text("u,y\n" + rows)
        ...     len(lw.control.Record.read(f"{folder}/a.csv", dt=0.01))
        20
        """

        def wanted(names: list[str]) -> list[str]:
            nonlocal time
            check_names("column", (u, y, *(x for x in (r, time) if x is not None)), names)
            if time is None:
                time = next((x for x in TIMES if x in names), None)
            if time is None and dt is None:
                text = f"{path}: no column of time among {', '.join(names)}"
                raise DataError(f"{text}: name it, as time=..., or give dt=...")
            return [x for x in (time, u, y, r) if x is not None]

        columns, lines = read_columns(path, wanted)
        signals = (columns[u], columns[y], columns[r] if r is not None else None)
        if time is None:
            assert dt is not None
            return cls(signals[0], signals[1], dt, signals[2])
        return cls.from_times(columns[time], *signals, dt=dt, uneven=uneven, _lines=lines, _where=f"{path}: ")

    @classmethod
    def from_times(
        cls,
        t: ArrayLike,
        u: ArrayLike,
        y: ArrayLike,
        r: ArrayLike | None = None,
        *,
        dt: float | None = None,
        uneven: str = "refuse",
        _lines: Sequence[int] | None = None,
        _where: str = "",
    ) -> Record:
        """A record from arrays `u`, `y`, `r` (N; r None) and their times `t` (N), s.

        - `dt`: the period (s); that of the times unless given.
        - `uneven`: "refuse" (the default) raises `DataError` for times that are not even; "interpolate" puts them on a
          grid.
        """
        if uneven not in ("refuse", "interpolate"):
            raise DataError(f"uneven times are 'refuse' or 'interpolate', not {uneven!r}")
        times = _checked("t", t)
        signals = [_checked(n, x) for n, x in (("u", u), ("y", y), ("r", r)) if x is not None]
        if len(times) < SHORTEST:
            raise DataError(f"{_where}a record of {len(times)} samples is too short: at least {SHORTEST} are needed")
        if any(len(x) != len(times) for x in signals):
            raise DataError(f"{_where}t has {len(times)} samples and the signals {[len(x) for x in signals]}")
        with np.errstate(over="ignore"):
            steps = np.diff(times)
            if not np.isfinite(times[-1] - times[0]) or not np.isfinite(steps).all():
                raise DataError(f"{_where}times from {times[0]:g} to {times[-1]:g} s are too far apart; give seconds")
        row = _lines if _lines is not None else range(len(times))
        label = "line" if _lines is not None else "row"
        if np.any(steps <= 0):
            k = int(np.argmax(steps <= 0))
            raise DataError(
                f"{_where}time does not go on at {label} {row[k + 1]}: {times[k]:g} s is followed by {times[k + 1]:g} "
                "s. Sort the rows, or drop the repeated ones",
                row=int(row[k + 1]),
            )
        step = float(np.median(steps)) if dt is None else float(dt)
        if uneven == "interpolate":
            points = float(times[-1] - times[0]) / step + 1e-9
            if not points < MOST_ROWS:
                text = f"{_where}steps of {step:g} s from {times[0]:g} to {times[-1]:g} s are more than {MOST_ROWS:,}"
                raise DataError(f"{text} samples: cut the record, or give a longer dt=...")
            grid = times[0] + step * np.arange(int(np.floor(points)) + 1)
            resampled = [np.interp(grid, times, x) for x in signals]
            return cls(resampled[0], resampled[1], step, *resampled[2:])
        # Times are written with few digits: what must be even is the grid, not each difference of rounded numbers.
        grain = 2.2 * _resolution(times)
        mean = float((times[-1] - times[0]) / (len(times) - 1)) if dt is None else step
        even = np.abs(times - times[0] - mean * np.arange(len(times))).max() <= UNEVEN * mean + grain
        bad = np.abs(steps - step) > UNEVEN * step + grain
        if not even and bad.any():
            k = int(np.argmax(bad))
            missing = float(steps[k]) / step
            what = f"a gap of {missing - 1:.0f} samples" if 1.5 < missing < 1e15 else "uneven sampling"
            raise DataError(
                f"{_where}{what} at {label} {row[k + 1]}: a step of {steps[k]:.6g} s where the others are {step:.6g} s "
                f"({int(bad.sum())} such steps). Cut the record there, or pass uneven='interpolate'",
                row=int(row[k + 1]),
            )
        return cls(signals[0], signals[1], mean, *signals[2:])

    # -- working with one -----------------------------------------------------------------------------------
    def __len__(self) -> int:
        return len(self.u)

    def __repr__(self) -> str:
        signals = [("u", self.u), ("y", self.y), *([("r", self.r)] if self.r is not None else [])]
        ranges = ", ".join(f"{name} {x.min():.3g} … {x.max():.3g}" for name, x in signals)
        return f"Record: {len(self)} samples every {self.dt:g} s ({len(self) * self.dt:.4g} s), {ranges}"

    @property
    def time(self) -> Floats:
        """Times (N), s, from zero."""
        return np.asarray(np.arange(len(self)) * self.dt, np.float64)

    def _each(self, change: object) -> Record:
        assert callable(change)
        return replace(self, u=change(self.u), y=change(self.y), r=None if self.r is None else change(self.r))

    def part(self, start: int, stop: int | None = None) -> Record:
        """The samples `start` to `stop` (not included; None for the end)."""
        return self._each(lambda x: x[start:stop])

    def split(self, fraction: float = 0.75) -> tuple[Record, Record]:
        """The first `fraction` (0.75) of the samples and the rest, which a model has not seen."""
        if not 0.0 < fraction < 1.0:
            raise DataError(f"a record is split at a fraction between 0 and 1, not {fraction!r}")
        at = round(fraction * len(self))
        return self.part(0, at), self.part(at)

    def detrend(self, kind: str = "mean") -> Record:
        """Each signal without its mean (`kind` "mean", the default) or the straight line that fits best ("linear")."""
        if kind == "mean":
            return self._each(lambda x: x - x.mean())
        if kind == "linear":
            t = np.linspace(-1.0, 1.0, len(self))
            return self._each(
                lambda x: x - np.polynomial.polynomial.polyval(t, np.polynomial.polynomial.polyfit(t, x, 1))
            )
        raise DataError(f"a trend is 'mean' or 'linear', not {kind!r}")

    def decimate(self, factor: int) -> Record:
        """Every `factor`-th sample after a low-pass without phase, at 0.4 of the new sampling rate."""
        from scipy.signal import butter, sosfiltfilt  # type: ignore[import-untyped]  # weight: scipy, which has no types

        whole_number("factor, by which a record is decimated,", factor, 1)
        if factor == 1:
            return self
        if len(self) // factor < SHORTEST:
            raise DataError(f"decimated by {factor}, {len(self)} samples leave fewer than {SHORTEST}")
        low = butter(8, 0.8 / factor, output="sos")
        pad = min(len(self) - 1, 30 * int(factor))
        return replace(self._each(lambda x: sosfiltfilt(low, x, padlen=pad)[::factor]), dt=self.dt * factor)

    def resample(self, dt: float) -> Record:
        """At another period, by cubic interpolation; to a longer period low-passed first where it divides."""
        from scipy.interpolate import CubicSpline  # type: ignore[import-untyped]  # weight: scipy, which has no types

        positive_number("dt, the sampling period in s,", dt)
        ratio = dt / self.dt
        if ratio > 1.0 and abs(ratio - round(ratio)) < 1e-9:
            return self.decimate(round(ratio))
        if ratio > 1.0:
            raise DataError(
                f"from {self.dt:g} s to {dt:g} s is no whole factor ({ratio:g}): frequencies would fold. "
                "Resample to a shorter period that divides it, then decimate"
            )
        count = int(np.floor((len(self) - 1) * self.dt / dt + 1e-9)) + 1
        at = np.arange(count) * dt
        return replace(self._each(lambda x: CubicSpline(self.time, x)(at)), dt=float(dt))

    # -- is it worth fitting? -------------------------------------------------------------------------------
    def excitation(self, order: int = 50) -> tuple[int, float]:
        """(n, smallness): the input is persistently exciting of order n, at most `order` (50).

        n is the rank of the matrix of `order` shifted inputs; smallness the ratio of its last to its first singular
        value (an amplitude: 1e-4 means that some combination of shifts is 80 dB below the strongest).
        """
        order = max(1, min(int(order), len(self) // 2))
        n = len(self) - order + 1
        rows = np.lib.stride_tricks.sliding_window_view(self.u, n)  # (order, n)
        r = np.linalg.qr(rows.T, mode="r")
        s = np.linalg.svd(r, compute_uv=False)
        return int(np.sum(s > 1e-9 * s[0])), float(s[-1] / s[0])

    def require_excitation(self, order: int) -> float:
        """Raises where the input cannot determine `order` parameters of a plant; returns the smallness."""
        excited, smallness = self.excitation(order)
        if excited < order:
            sines = f" (as {excited // 2} sines would be)" if excited % 2 == 0 else ""
            raise ExcitationError(
                f"the input is persistently exciting of order {excited} only{sines}, and {order} plant coefficients "
                f"are asked for. Try a richer input (lw.control.m_sequence, multisine with at least {-(-order // 2)} "
                f"lines), or orders with nb + nf ≤ {excited}",
                order=excited,
                wanted=order,
            )
        return smallness

    def plot(self) -> object:
        """The signals over time, as a matplotlib figure."""
        from linkwright.control.identification.bode import plot_record  # weight: scipy.stats and matplotlib

        return plot_record(self)


def _checked(name: str, values: ArrayLike) -> Floats:
    try:
        signal = real_array(name, values).copy()
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} is not an array of numbers: {error}") from error
    if signal.ndim != 1:
        hint = f"; pass one channel, {name}[:, 0] for instance" if signal.ndim == 2 else ""
        raise DataError(f"{name} is one signal, an array of shape (N,), not {signal.shape}{hint}")
    bad = ~np.isfinite(signal)
    if bad.any():
        k = int(np.argmax(bad))
        raise DataError(
            f"{name} is {signal[k]} at row {k} ({int(bad.sum())} such samples): cut the record there, "
            "or fill the gap before making a record",
            row=k,
            column=name,
        )
    signal.flags.writeable = False
    return signal


def _resolution(times: Floats) -> float:
    """Half of the last digit that times are written with, at most: seen as the grain of all of them."""
    largest = float(np.abs(times).max())
    for digits in range(13):
        if np.all(np.abs(np.round(times, digits) - times) <= 1e-14 * max(largest, 1.0)):
            return 0.5 * float(10.0**-digits)
    return 1e-12 * largest
