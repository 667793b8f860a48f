"""Settings of `lw.sweep`: which cases there are, where a study is kept, and how its cases are computed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from linkwright.base.checks import path_text, positive_number, whole_number

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

    - `fixed`: other parameters of the model with one value for all cases, by name, in the model's units.

    `lw.sweep(model, {"mass": lw.normal(1, 0.1)}, "final(block.x)", sampling=lw.Sampling("sobol", cases=256, seed=1))`
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

    `lw.sweep(model, {"length": [1, 2]}, "max(tip.y)", store=lw.StudyFolder("out/study", resume=True))`
    """

    path: str | os.PathLike[str]
    resume: bool = False
    overwrite: bool = False

    def __post_init__(self) -> None:
        path_text("the folder of a study", self.path)

    @classmethod
    def of(cls, store: Any) -> StudyFolder | None:
        """The folder as it is given to `lw.sweep`: itself, a path, or None."""
        return store if store is None or isinstance(store, cls) else cls(store)


@dataclass(frozen=True)
class Execution:
    """How the cases of a study are computed.

    - `workers`: how many processes of this machine, one for each core by default; of on="local" alone.
    - `time_limit`: seconds of CPU time that a case may take before it counts as failed; None (the default) for as long
      as it needs.
    - `chunk`: how many cases are computed together, chosen by their number by default.
    - `progress`: a function that is called with the cases done and all cases, after every chunk.

    `lw.sweep(model, {"stiffness": [1e3, 1e9]}, "final(mass.z)", execution=lw.Execution(workers=4, time_limit=60))`
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
