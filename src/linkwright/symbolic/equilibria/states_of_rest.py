"""Where a mechanism can rest: exactly, at quarter turns and by linear springs, and as numbers from many starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import pi
from typing import get_args

import numpy as np

from linkwright.base.arguments import check_names
from linkwright.base.arrays import Floats
from linkwright.errors import ModelError
from linkwright.symbolic.derivation.polynomial_dynamics import Dynamics
from linkwright.symbolic.equilibria.balance import Balance, Force, roots
from linkwright.symbolic.equilibria.quarter_turns import UNSURE, Equilibrium, Gimbals, Stability, quarters, triples
from linkwright.symbolic.formulas.exact import finite, short
from linkwright.symbolic.formulas.ring import Compiled
from linkwright.symbolic.printing.formula_writer import text
from linkwright.symbolic.printing.mathml import html_table

NEAR = 1e-6  # rad, or of the mechanism's length: what is nearer than this is one
ZERO = 1e-8  # eigenvalues below this part of the largest are none
_LISTED = 4  # points of a continuum that are listed


@dataclass(frozen=True, eq=False)
class Equilibria:
    """The states of rest that were found, exact ones first, with notes on the search."""

    points: tuple[Equilibrium, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, k: int) -> Equilibrium:
        return self.points[k]

    def __iter__(self) -> Iterator[Equilibrium]:
        return iter(self.points)

    def __repr__(self) -> str:
        kinds = {"exact": sum(p.exact for p in self.points)}
        kinds |= {kind: sum(p.stability == kind for p in self.points) for kind in get_args(Stability)}
        plural = "" if len(self.points) == 1 else "s"
        parts = [f"{len(self.points)} point{plural}", *(f"{count} {kind}" for kind, count in kinds.items() if count)]
        return f"<Equilibria: {', '.join(parts)}{'; with notes' if self.notes else ''}>"

    def _repr_html_(self) -> str:
        names = [s.name for s in self.points[0].dynamics.model.coordinates] if self.points else []
        rows = []
        for p in self.points:
            swings = ", ".join(f"{x:.4g}" for x in p.frequencies)
            rows.append([*p.written().values(), p.stability, str(p.growing), swings])
        return html_table([*names, "stability", "growing modes", "swings (Hz)"], rows, self.notes)

    def __str__(self) -> str:
        return "\n".join([*(str(p) for p in self.points), *self.notes])


def equilibria(
    dynamics: Dynamics,
    forces: Mapping[str, Force] | Sequence[Force] | None = None,
    values: Mapping[str, float] | None = None,
    *,
    starts: int = 256,
    seed: int = 0,
) -> Equilibria:
    """States of rest g(q) + springs = F.

    `forces` are constant, by coordinate: numbers, or names of parameters. Exact ones are those with every angle a
    multiple of 90° that hold for any values of the parameters; the others are found with the parameters' `values`
    (otherwise the model's) by Newton's method from so many starts, and each but for whole turns. That search finds
    what it finds: no start may lead to one.
    """
    balance = Balance(dynamics, forces)
    parameters = _values(balance, values)
    missing = sorted(balance.used - set(parameters) - {q.name for q in dynamics.model.coordinates})
    push = _pushed(balance, parameters if not missing else None)
    lacks = dynamics.model.lacks("mech.equilibrium(q0)")
    if push:
        return Equilibria((), (*lacks, push))
    exact, notes = quarters(balance, seed)
    notes = [*lacks, *notes]
    if missing:
        notes.append(f"no value is known of {', '.join(missing)}: stability and inexact points need values=")
        if triples(dynamics.model):
            notes.append("points at a pitch of ±90° may have a moment left; with values= those are told apart")
        return Equilibria(tuple(replace(e, q=e.place({})) for e in exact), tuple(notes))
    modes = _Modes(balance, parameters)
    places = [(e, e.place(parameters)) for e in exact]
    good = [(e, q) for e, q in places if np.isfinite(q).all() and modes.at_rest(q)]
    points = [Equilibrium(dynamics, q, e.free, True, e.formulas, *modes(q)) for e, q in good]
    points += _inexact(balance, parameters, modes, points, notes, starts, seed)
    notes += modes.notes
    if not points:
        notes.append(_none(balance))
    return Equilibria(tuple(points), tuple(notes))


def _values(balance: Balance, values: Mapping[str, float] | None) -> dict[str, float]:
    known = dict(balance.dynamics.model.values)
    moving = {q.name for q in balance.dynamics.model.coordinates}
    check_names("parameter", values or (), sorted({*known, *balance.used} - moving))
    for name, x in (values or {}).items():
        if not finite(x):
            raise ModelError(f"the value of {name} is {short(x)}; give a finite number", element=name)
        known[name] = float(x)
    return known


def _pushed(balance: Balance, parameters: Mapping[str, float] | None) -> str:
    """The sentence about a coordinate that something pushes wherever it is."""
    for i in balance.unbalanced(parameters):
        name, joint = balance.dynamics.model.coordinates[i].name, balance.dynamics.model.joints[i]
        push = text(balance.ring.formula(-balance.f[i]))
        return (
            f"there is no equilibrium: {name} (joint {joint!r}) is pushed by {push} wherever it is; hold it by a "
            f"force, forces={{{name!r}: ...}}, or by a spring"
        )
    return ""


def _none(balance: Balance) -> str:
    advice = "less force" if any(balance.forces) else "other values of the parameters"
    return f"no equilibrium was found: from no start did the forces come to balance; try {advice}, or more starts="


# -- inexact points -------------------------------------------------------------------------------------------------
def _inexact(
    balance: Balance,
    parameters: Mapping[str, float],
    modes: _Modes,
    exact: list[Equilibrium],
    notes: list[str],
    starts: int,
    seed: int,
) -> list[Equilibrium]:
    names = [q.name for q in balance.ring.coordinates]
    loose = [names[j] for j in balance.free]
    points: list[Equilibrium] = []
    flat, units = 0, balance.units(parameters)
    for q in roots(balance, parameters, starts, seed):
        if not modes.at_rest(q) or any(_same(balance, q, e, units) for e in (*exact, *points)):
            continue
        one = Equilibrium(balance.dynamics, q, tuple(loose), False, {}, *modes(q))
        if modes.flat(q):
            flat += 1
            if flat > _LISTED:
                continue
        points.append(one)
    if flat > _LISTED:
        notes.append(f"some equilibria are not alone but one beside the other; {_LISTED} of these are listed")
    return points


def _same(balance: Balance, q: Floats, other: Equilibrium, units: Floats) -> bool:
    fixed = [s.name not in other.free for s in balance.ring.coordinates]
    return bool((balance.apart((q - other.q) / units)[fixed] < NEAR).all())


class _Modes(Gimbals):
    """Stability and small swings, M and K with the parameters' values."""

    def __init__(self, balance: Balance, parameters: Mapping[str, float]) -> None:
        super().__init__(balance, parameters)
        dy = balance.dynamics
        if not dy.m:
            dy.derive_mass_matrix()
        dy.check_mass_matrix()
        self.compiled = Compiled([dy.m[i, j] for i in range(dy.n) for j in range(dy.n)])

    def _k(self, q: Floats) -> Floats:
        k: Floats = self.balance.at(q[None], self.parameters)[1][0]
        return k

    def flat(self, q: Floats) -> bool:
        """Whether K lets the coordinates that it has to hold move."""
        held = [j for j in range(self.balance.n) if j not in self.balance.free]
        k = self._k(q) * self.units * self.units[:, None]
        sizes = np.linalg.svd(k[np.ix_(held, held)], compute_uv=False)
        return bool(len(held)) and bool(sizes.min() <= ZERO * sizes.max())

    def __call__(self, q: Floats) -> tuple[Stability, int, Floats]:
        dy, n = self.balance.dynamics, self.balance.n
        k = self._k(q)
        k = (k + k.T) / 2.0
        m = self.compiled(dy.ring.values({**self.parameters, **dy.ring.motion(q)})).reshape(n, n)
        try:
            lower = np.linalg.cholesky(m)
            half = np.linalg.solve(lower, k)
            squares = np.asarray(np.linalg.eigvalsh(np.linalg.solve(lower, half.T)), np.float64)
            swings = True
        except np.linalg.LinAlgError:
            # Where M has no inverse the signs of K alone still decide.
            squares, swings = np.asarray(np.linalg.eigvalsh(k * self.units * self.units[:, None]), np.float64), False
        least = ZERO * np.abs(squares).max(initial=0.0)
        growing = int((squares < -least).sum())
        stability: Stability = "unstable" if growing else "stable" if (squares > least).all() else "neutral"
        frequencies = np.sqrt(squares[squares > least]) / (2.0 * pi) if swings else np.zeros(0)
        if self.locked(q):
            stability, frequencies = "unstable" if growing else "unknown", np.zeros(0)
            self.notes[UNSURE] = None
        return stability, growing, np.asarray(frequencies, np.float64)
