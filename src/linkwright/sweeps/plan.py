"""Which cases a study has: grids of lists, draws from distributions, or both; and the settings of `lw.sweep`."""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwright.base.arguments import check_names, path_text, positive_number, real_array, whole_number
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.errors import ModelError
from linkwright.sweeps.distributions import DISTRIBUTIONS, Distribution

#: Called with how many cases are done, and how many there are.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Sampling:
    """Which cases a study has: how often parameters with distributions are drawn, and how.

    Main arguments:

    - `method`: "latin" (a Latin hypercube, the default), "sobol" (best at powers of two) or "random"; "grid" where all
      parameters have lists.
    - `draws`: how many draws there are at every point of the grid that lists form, 100 by default.
    - `cases`: how many cases there are in all, in place of `draws`; the points of the grid take turns.
    - `seed`: a whole number, 0 by default; the same seed gives the same cases.

    Other arguments:

    - `fixed`: other parameters of the model with one value for all cases, by name, in the model's units; none by
      default.

    `lw.sweep` raises NameNotFound for another method and ModelError for numbers that cannot be used.

    >>> mech, options = lw.from_dh([{"a": "length", "mass": 1.0}]), {"analysis": "dynamic", "times": [0.0, 0.1]}
    >>> sampling = lw.Sampling("sobol", cases=4, seed=1)
    >>> len(lw.sweep(mech, {"length": lw.normal(1, 0.1)}, "final(joint1.angle)", sampling=sampling, **options))
    4
    """

    method: str | None = None
    draws: int | None = None
    cases: int | None = None
    seed: int | None = None
    fixed: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class StudyFolder:
    """The folder in which a study is kept while it runs, and afterwards.

    - `path`: the folder; it is made if it is not there. `store="folder"` is short for `store=lw.StudyFolder("folder")`.
    - `resume`: go on with the study that the folder holds, where it holds one (False by default).
    - `overwrite`: begin anew, and remove the study that the folder holds (False by default).
    - `part`: (3, 16) for the third of sixteen parts of the study, which sixteen calls compute, on one machine or
      several that share the folder, at once or one after the other; None (the default) for the whole study. A part
      goes on with what the folder has of it.

    Raises ModelError for a path that is none, and for a part that is none.

    >>> lw.StudyFolder.of("out/study"), lw.StudyFolder.of(None)  # for lw.sweep(..., store=...)
    (StudyFolder(path='out/study', resume=False, overwrite=False, part=None), None)
    """

    path: str | os.PathLike[str]
    resume: bool = False
    overwrite: bool = False
    part: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        path_text("the folder of a study", self.path)
        if self.part is None:
            return
        if not isinstance(self.part, tuple | list) or len(self.part) != 2:
            raise ModelError(f"part must be two whole numbers, as in part=(3, 16), not {self.part!r}")
        number, parts = (whole_number("part", x, 1) for x in self.part)
        if number > parts:
            raise ModelError(f"part=({number}, {parts}): there are {parts} parts, 1 … {parts}")
        if parts > MOST_PARTS:
            raise ModelError(f"part=({number}, {parts}): a study has at most {MOST_PARTS:,} parts")
        if self.overwrite:
            text = "overwrite=True removes what other parts have computed; leave it out, or remove the folder first"
            raise ModelError(f"part=({number}, {parts}): {text}")
        object.__setattr__(self, "part", (number, parts))

    @classmethod
    def of(cls, store: Any) -> StudyFolder | None:
        """The folder of a `store` as it is given to `lw.sweep`: itself, a path, or None."""
        return store if store is None or isinstance(store, cls) else cls(store)


@dataclass(frozen=True)
class Execution:
    """How the cases of a study are computed.

    - `workers`: how many processes of this machine, one for each core by default; of on="local" alone.
    - `time_limit`: seconds of CPU time that a case may take before it counts as failed; None (the default) for as long
      as it needs.
    - `chunk`: how many cases are computed together, and stored in one file; by default chosen by their number, the
      time points of each, and the size of their outputs (at most 16 MiB a chunk).
    - `progress`: a function that is called with the cases done and all cases, after every chunk; none by default.

    Raises ModelError for numbers that cannot be used.

    >>> execution = lw.Execution(workers=4, time_limit=60.0)  # for lw.sweep(..., execution=execution)
    """

    workers: int | None = None
    time_limit: float | None = None
    chunk: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        for name in ("workers", "chunk"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), 1)
        if self.time_limit is not None:
            positive_number("time_limit, in seconds of CPU time for a case,", self.time_limit)


SAMPLINGS = ("grid", "latin", "sobol", "random")
DRAWS = 100  # at every point of the grid, by default
MOST = 50_000_000
MOST_PARTS = 10_000  # of a study that several calls compute


@dataclass(frozen=True, eq=False)
class Plan:
    """The cases of a study: `values` (n, k), a row per case and a column per name, and the recipe they were made by.

    Cases are worked on in chunks of consecutive ones; which, is a matter of the plan and of nothing else.
    """

    names: tuple[str, ...]
    values: Floats
    recipe: Mapping[str, Any]
    chunk: int

    def __len__(self) -> int:
        return len(self.values)

    def divided(self, chunk: int) -> Plan:
        """The same cases in chunks of so many."""
        return Plan(self.names, self.values, self.recipe, chunk)

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return -(-len(self) // self.chunk)

    def part(self, index: int) -> slice:
        """The cases of a chunk."""
        return slice(index * self.chunk, min((index + 1) * self.chunk, len(self)))

    @cached_property
    def digest(self) -> str:
        """Of the values, in their order, and how they are divided."""
        content = f"{self.names!r} {self.values.shape} {self.chunk}".encode() + self.values.astype("<f8").tobytes()
        return hashlib.sha256(content).hexdigest()

    @property
    def varied(self) -> tuple[str, ...]:
        """The names that have more than one value."""
        return tuple(n for k, n in enumerate(self.names) if len(self) and np.ptp(self.values[:, k]) > 0.0)


def make_plan(parameters: Mapping[str, Any], sampling: Sampling | None = None, chunk: int | None = None) -> Plan:
    """The plan of parameters with lists of values, or with distributions.

    Lists make a grid, the last name fastest. Distributions are drawn together: the same draws at every point of the
    grid, or so many cases in all that the points of the grid take turns. `chunk` cases are computed together.
    """
    sampling = sampling or Sampling()
    _check(parameters, sampling)
    cases, seed, method = sampling.cases, sampling.seed, sampling.method
    lists = {name: _list(name, x) for name, x in parameters.items() if not isinstance(x, Distribution)}
    drawn = {name: x for name, x in parameters.items() if isinstance(x, Distribution)}
    points = math.prod(len(x) for x in lists.values())
    many = _many(points, bool(lists), bool(drawn), cases, sampling.draws)
    _refuse_too_many(many)
    if many != points and not drawn:
        text = f"the lists of this study make a grid of {points} cases, not {cases}; leave cases out, or "
        raise ModelError(text + "draw values, as in lw.uniform(low, high) or lw.choice([...])")
    if not drawn and method not in (None, "grid"):
        text = f"the sampling method {method!r} is of distributions, and every parameter is a list"
        raise ModelError(f"{text}; leave sampling out, or draw values, as in lw.uniform(low, high)")
    if not drawn and seed is not None:
        text = f"seed={seed} is of distributions, and every parameter is a list"
        raise ModelError(f"{text}; leave seed out, or draw values, as in lw.uniform(low, high)")
    if drawn and method == "grid":
        name = next(iter(drawn))
        text = (
            f"{name!r} is a distribution, and the sampling method 'grid' takes lists of values; use 'latin', 'sobol' or"
        )
        raise ModelError(f"{text} 'random', or give a list")
    where = np.arange(many)
    turns = cases is not None and drawn  # else every draw is at every point
    grid_row = where % points if turns else where // (many // points)
    draw_row = where if turns else where % (many // points)
    way = method or "latin"
    spread = _spread(way, len(drawn), many if turns else many // points, seed or 0) if drawn else np.zeros((1, 0))
    columns = {}
    indices = np.unravel_index(grid_row, [len(x) for x in lists.values()]) if lists else ()
    for (name, x), index in zip(lists.items(), indices, strict=True):
        columns[name] = x[index]
    for k, (name, law) in enumerate(drawn.items()):
        columns[name] = law.at(spread[:, k])[draw_row]
    names = tuple(parameters)
    values = np.stack([columns[name] for name in names], axis=1)
    values.flags.writeable = False
    recipe = {
        "parameters": {n: drawn[n].plain() if n in drawn else ["list", lists[n].tolist()] for n in names},
        "cases": many,
        "crossed": not turns,
        "sampling": way if drawn else "grid",
        "seed": int(seed or 0),
    }
    return Plan(names, values, recipe, chunk or default_chunk(many))


#: Cases of a chunk: enough for a fast batch, few enough to share the work and to be computed again.
_SMALLEST, _USUAL, _LARGEST = 16, 512, 4096
_SHARES, _LARGE_SHARES = 32, 256  # of a study that chunks are, at most, up to the usual size and beyond it
_POINTS = 2**20  # in time, of a chunk of cases that take little work at each
_BYTES, _MOST_BYTES, _FEWEST = 2**24, 2**26, 8  # of a chunk's outputs; fewer than the fewest are computed as that many


def default_chunk(cases: int, numbers: int = 1, points: int | None = None) -> int:
    """How many cases are computed together by default, and are one file of a study's folder.

    `numbers` are kept of each case. `points` are the time points of a case whose work is in proportion to them; the
    cost of others is not known beforehand.
    """
    most = _USUAL if points is None else int(np.clip(_POINTS // max(points, 1), _SMALLEST, _LARGEST))
    share = min(max(_SMALLEST, -(-cases // _SHARES)), max(_USUAL, -(-cases // _LARGE_SHARES)))
    each = 8 * max(numbers, 1)
    fits = _BYTES // each
    if fits < _FEWEST:
        fits = min(_FEWEST, max(1, _MOST_BYTES // each))
    return min(share, most, fits)


def is_recipe(plain: Any) -> bool:
    """Whether plain data, which may come from a file, is the recipe of a plan."""
    if not isinstance(plain, dict) or plain.get("sampling") not in SAMPLINGS or type(plain.get("seed")) is not int:
        return False
    parameters = plain.get("parameters")
    return isinstance(parameters, dict) and all(map(_is_law, parameters.values()))


def _is_law(plain: Any) -> bool:
    """Whether plain data is a list of values or a distribution: a word, and numbers or a list of them."""
    if not isinstance(plain, list) or len(plain) < 2 or plain[0] not in ("list", *DISTRIBUTIONS):
        return False
    of_values = plain[0] in ("list", "choice")
    numbers = plain[1] if of_values else plain[1:]
    if not isinstance(numbers, list) or not numbers:
        return False
    return all(_is_number(x) or (x is None and not of_values) for x in numbers)


def _is_number(x: Any) -> bool:
    return type(x) is float or (type(x) is int and abs(x) < 2**1000)  # a whole number of JSON may have any size


def plan_text(plan: Plan) -> str:
    """The plan in words: how many cases of what."""
    parts = []
    for name, (kind, *numbers) in plan.recipe["parameters"].items():
        if kind == "list":
            x = numbers[0]
            parts.append(f"{name} = {x[0]:g}" if len(x) == 1 else f"{name}: {len(x)} values {min(x):g} … {max(x):g}")
        else:
            flat = numbers[0] if kind == "choice" else [x for x in numbers if x is not None]
            parts.append(f"{name} ~ {kind}({', '.join(f'{x:g}' for x in flat[:6])}{', …' * (len(flat) > 6)})")
    way = plan.recipe["sampling"]
    how = "" if way == "grid" else f", drawn by {_WAYS[way]}, seed {plan.recipe['seed']}"
    return f"{len(plan):,} {'case' if len(plan) == 1 else 'cases'}: {'; '.join(parts)}{how}"


_WAYS = {"latin": "Latin hypercube", "sobol": "Sobol's sequence", "random": "chance"}


def _spread(way: str, dimensions: int, n: int, seed: int) -> Floats:
    """(n, dimensions): probabilities, spread over the unit cube."""
    if way == "random":
        return np.random.default_rng(seed).random((n, dimensions))
    from scipy.stats import qmc  # type: ignore[import-untyped]  # weight: scipy

    generator = np.random.default_rng(seed)
    if way == "latin":
        return np.asarray(qmc.LatinHypercube(dimensions, seed=generator).random(n))
    if dimensions > 21201:
        raise ModelError(f"Sobol's sequence has 21201 dimensions at most, and {dimensions} are drawn; use 'latin'")
    with warnings.catch_warnings():
        # It is balanced best at powers of two; as the documentation has it, and other numbers are no mistake.
        warnings.simplefilter("ignore", UserWarning)
        return np.asarray(qmc.Sobol(dimensions, scramble=True, seed=generator).random(n))


def _check(parameters: Mapping[str, Any], sampling: Sampling) -> None:
    if not isinstance(parameters, Mapping) or not parameters:
        raise ModelError("a study needs parameters that vary, as in {'length': [0.1, 0.2], 'mass': lw.normal(1, 0.1)}")
    if sampling.method is not None:
        check_names("sampling", [sampling.method], SAMPLINGS)
    for name, x, least in (("cases", sampling.cases, 1), ("draws", sampling.draws, 1), ("seed", sampling.seed, 0)):
        if x is not None:
            whole_number(name, x, least)
    if sampling.cases is not None and sampling.draws is not None:
        raise ModelError("cases and draws are both given; cases is the number in all, draws that at each grid point")


def _many(points: int, gridded: bool, drawn: bool, cases: int | None, draws: int | None) -> int:
    if cases is not None:
        if drawn and gridded and cases < points:
            text = f"the grid alone has {points} points, and cases={cases} is fewer; give more cases, or draws=..."
            raise ModelError(f"{text} for a number at each point")
        return int(cases)
    if draws is not None and not drawn:
        raise ModelError("draws are of distributions, and every parameter is a list; leave draws out")
    return points * (int(draws or DRAWS) if drawn else 1)


def _refuse_too_many(many: int) -> None:
    if many > MOST:
        raise ModelError(f"that is {many:,} cases, and {MOST:,} is the most; take fewer values")


def _list(name: str, numbers: Any) -> Floats:
    try:
        values = np.atleast_1d(real_array(name, numbers))
    except (TypeError, ValueError):
        text = f"parameter {name!r} varies as {numbers!r}; give a list of numbers, or a distribution such as"
        raise ModelError(f"{text} lw.uniform(low, high)", element=name) from None
    if values.ndim != 1 or not len(values):
        text = f"parameter {name!r} has values of shape {values.shape}; give one row of numbers"
        raise ModelError(text, element=name)
    if not np.isfinite(values).all():
        bad = values[~np.isfinite(values)][0]
        raise ModelError(f"parameter {name!r} has the value {bad}; give finite numbers", element=name)
    if len(values) > MOST:
        _refuse_too_many(len(values))
    return values
