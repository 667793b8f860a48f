"""The derivation as a row of entries: how many it will come to, how far it is, what is left of it if interrupted."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import log
from warnings import warn

from linkwright.base.activity import activity
from linkwright.base.arguments import counted
from linkwright.base.locks import cached_property
from linkwright.errors import LinkwrightError, LinkwrightWarning
from linkwright.symbolic.derivation.literal import Model
from linkwright.symbolic.derivation.polynomial_dynamics import Dynamics, Way
from linkwright.symbolic.formulas.formula import place
from linkwright.symbolic.formulas.ring import Poly

#: Called after each entry: its name, how many are done, how many there are.
Progress = Callable[[str, int, int], None]
_clock = time.thread_time  # of this thread alone: a busy machine must not end a trial before it has measured anything
_ENOUGH = 0.15  # seconds of trial after which the rest is extrapolated
SURE = 9  # coordinates below which every derivation is short
_LEAST = 5  # links that are tried at least


@dataclass(frozen=True)
class Estimate:
    """What a derivation will come to: terms of M, h and g, and seconds. Exact where `measured` says so."""

    terms: int
    seconds: float
    measured: bool

    def __str__(self) -> str:
        about = "" if self.measured else "about "
        return f"{about}{counted(self.terms, 'term')}, {about}{self.seconds:.2g} s"


class Derivation:
    """M, g and h of a model, in this order, entry by entry; entries that were found stay."""

    def __init__(self, model: Model, way: Way = "jacobian") -> None:
        self.model, self.way = model, way
        self.n = len(model.coordinates)
        self.total = self.n * (self.n + 1) // 2 + 2 * self.n
        self.begun = False
        self.g: dict[int, Poly] = {}
        self.h: dict[int, Poly] = {}

    @cached_property
    def dynamics(self) -> Dynamics:
        return Dynamics(self.model)

    @property
    def m(self) -> dict[tuple[int, int], Poly]:
        return self.dynamics.m

    def entries(self) -> Iterator[str]:
        """Finds the entries one by one, and yields the name of each."""
        for i, j in self.dynamics.mass_matrix(self.way):
            yield f"M{place((i, j), self.n)}"
        for name, vector, entry in (("g", self.g, self.dynamics.g), ("h", self.h, self.dynamics.h)):
            for i in range(self.n):
                vector[i] = entry(i)
                yield f"{name}{i + 1}"

    def run(self, progress: Progress | None = None) -> None:
        """Finds them all; an interruption ends it with a warning, and what was found stays."""
        self.begun = True
        try:
            with activity("deriving") as work:
                for name in self.entries():
                    work.at(self.done, self.total, f"deriving {name}")
                    if progress is not None:
                        progress(name, self.done, self.total)
        except KeyboardInterrupt:
            text = f"the derivation was interrupted: {self.done} of {self.total} entries are found, the rest is missing"
            warn(text, LinkwrightWarning, stacklevel=3)

    @property
    def done(self) -> int:
        """How many entries are found."""
        return len(self.dynamics.upper()) + len(self.g) + len(self.h)

    @property
    def complete(self) -> bool:
        return self.done == self.total

    def missing(self) -> list[str]:
        """The entries that were not found."""
        vectors = [f"{name}{i + 1}" for name, x in (("g", self.g), ("h", self.h)) for i in range(self.n) if i not in x]
        return [*self.dynamics.missing(), *vectors]

    def terms(self) -> int:
        """How many terms the entries have, each pair of equal entries of M once."""
        return sum(map(len, (*self.dynamics.upper(), *self.g.values(), *self.h.values())))


def estimate(model: Model, way: Way = "jacobian") -> Estimate:
    """How long a derivation will be, from the links nearest to ground: growth from one to the next goes on."""
    begun, seen = _clock(), []
    ends = [k + 1 for k, link in enumerate(model.links) if link.body is not None]
    for number, end in enumerate(ends):
        start = _clock()
        trial = Derivation(_first(model, end), way)
        deque(trial.entries(), maxlen=0)
        terms = trial.terms()
        seen.append((terms, _clock() - start))
        left = len(ends) - number - 1
        if not left:
            return Estimate(*seen[-1], measured=True)
        # The next would take as much longer as this did than the one before.
        if 2 * _clock() - begun - start > _ENOUGH and len(seen) >= _LEAST:
            more = _growth([n for n, _ in seen], left)
            return Estimate(int(min(terms * more, 1e15)), seen[-1][1] * more, measured=False)
    return Estimate(0, 0.0, measured=True)


def check_size(model: Model, way: Way, most: int) -> None:
    """A derivation that would fill the memory is refused before it begins."""
    if len(model.coordinates) < SURE:
        return
    size = estimate(model, way)
    if size.terms > most:
        text = (
            f"the equations of {model.name!r} would have {size}: more than most={most:,} terms; ask for "
            'form="recursive", which stays short, for fewer symbols (literal=, numbers=), or for a larger most='
        )
        raise LinkwrightError(text)


def _first(model: Model, end: int) -> Model:
    """The model of the first links alone."""
    links = model.links[:end]
    n = 1 + max(link.coordinate for link in links)
    angles = 1 + max((k for link in links for k, _ in link.angle), default=-1)
    parts = {name: getattr(model, name)[:n] for name in ("coordinates", "joints", "armature", "friction", "springs")}
    within = tuple(tuple((s, m) for s, m in angle if s in parts["coordinates"]) for angle in model.angles[:angles])
    return replace(model, links=links, angles=within, **parts)


def _growth(terms: list[int], left: int) -> float:
    """By how much terms grow in so many links more: as a power of the number of links, the last one.

    The power is taken over two links: axes that are parallel and crossed by turns make terms leap at every other one.
    """
    n = len(terms)
    power = log(max(terms[-1] / max(terms[-3], 1), 1.0)) / log(n / (n - 2))
    return float((1.0 + left / n) ** power)
