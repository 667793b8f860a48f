"""The equations grouped by inertial parameter: F = Y(q, q̇, q̈)·π, the regressor Y as exact polynomials.

π has of each body that weighs and moves its ten linear parameters in *link axes about the link's origin*. Body k
(counted from 1 in the order of the tree) is carried by a joint; its link axes are those of the joint's frame on the
body, z along the joint's axis. With R and p the rotation and origin of that frame in the body's own frame, and the
description's mass m, centre of mass c and inertia I about it in body axes,

    c' = Rᵀ (c − p)                        the centre of mass from the link's origin, in link axes
    m_k = m                                mass
    (mx_k, my_k, mz_k) = m c'              first moments
    J_k = Rᵀ I R + m (c'ᵀc' E − c' c'ᵀ)    second moments about the link's origin: Jxx, Jyy, Jzz, Jxy, Jxz, Jyz

where J is the inertia matrix, so that Jxy = −∫ x y dm. Further columns: motor inertia J_k of the joint that carries
body k, on request its viscous friction V_k and Coulomb friction f_k. Springs and forces between bodies are no part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.base.locks import cached_property
from linkwright.errors import ModelError, ShapeError
from linkwright.mechanism import Mechanism
from linkwright.model.description import Description
from linkwright.model.quantities import FRICTION_SPEED
from linkwright.symbolic.derivation.literal import LETTERS, MOTOR, NONE, Model, carried
from linkwright.symbolic.derivation.model_reading import model_of
from linkwright.symbolic.derivation.polynomial_dynamics import Dynamics
from linkwright.symbolic.formulas.exact import ZERO, added, bracketed, rational, times
from linkwright.symbolic.formulas.formula import (
    Applied,
    Block,
    Factor,
    Sum,
    Symbol,
    Term,
    evaluate,
    flat,
    raised,
    symbols,
)
from linkwright.symbolic.formulas.ring import Compiled, Poly, Ring

Writer: TypeAlias = Callable[[Poly], Sum]


@dataclass(frozen=True)
class Column:
    """One parameter of π: its symbol, the number of its body, and what it is in the model's own numbers."""

    symbol: Symbol
    body: int
    letter: str
    relation: Sum

    @property
    def name(self) -> str:
        return self.symbol.name


class Regressor:
    """Y(q, q̇, q̈) with F = Y·π; its entries live in `ring`, which has no π, and M, h, g and friction in `full`."""

    def __init__(
        self,
        model: Model,
        ring: Ring,
        full: Ring,
        columns: Sequence[Column],
        parts: Mapping[str, Mapping[tuple[int, ...], Poly]],
    ) -> None:
        self.model, self.ring, self.full, self.columns = model, ring, full, tuple(columns)
        self.n = len(model.coordinates)
        self.parts = parts  # "M" by (i, j) with i ≤ j, "h", "g", "friction" by (i,): polynomials linear in π
        self._places = {at: ring.at[factor] for factor, at in full.at.items() if factor in ring.at}

    def __repr__(self) -> str:
        return f"<Regressor of {self.model.name!r}: Y has {self.n} rows and {len(self.columns)} columns>"

    @cached_property
    def entries(self) -> dict[tuple[int, int], Poly]:
        """Y by (row, column), without its zeros."""
        forces = enumerate(self._forces())
        return {(i, k): coefficient for i, force in forces for k, coefficient in self._coefficients(force)}

    def _coefficients(self, value: Poly) -> Iterator[tuple[int, Poly]]:
        """The columns whose parameter a polynomial has in it, each with what stands with the parameter, without π."""
        degrees = value.degrees()
        for k, column in enumerate(self.columns):
            if degrees[self.full.at[column.symbol]] > 0:
                slope = self.full.partial(value, column.symbol)
                yield k, slope.project_to_context(self.ring.ctx, self._places)

    def _forces(self) -> list[Poly]:
        ring, forces = self.full, []
        faster = [ring.symbol(x) for x in ring.accelerations]
        for i in range(self.n):
            total = self.parts["h"][i,] + self.parts["g"][i,] + self.parts["friction"][i,]
            for j in range(self.n):
                total = total + self.parts["M"][min(i, j), max(i, j)] * faster[j]
            forces.append(total)
        return forces

    def occurrences(self) -> Iterator[tuple[tuple[Any, ...], int, Poly]]:
        """Where each parameter stands in M, g and friction, and with what; relations in h follow from those in M."""
        for name in ("M", "g", "friction"):
            for place, whole in self.parts[name].items():
                for k, coefficient in self._coefficients(whole):
                    yield (name, *place), k, coefficient

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters π, in the order of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def relations(self) -> dict[str, Sum]:
        """What each parameter is in the model's own numbers and parameters."""
        return {column.name: column.relation for column in self.columns}

    @cached_property
    def values(self) -> dict[str, float]:
        """The values of π that the model has, by name."""
        return {column.name: float(evaluate(column.relation, self.model.values)) for column in self.columns}

    @property
    def pi(self) -> NDArray[np.float64]:
        """The values of π, in the order of the columns."""
        return np.array([self.values[name] for name in self.names])

    def symbol_values(self) -> dict[str, float]:
        """The value of each symbol that does not move, in the blocks and in the joints' laws: lengths, angles, π, …"""
        return {**_kinematic(self.model).parameters(), **self.values}

    # -- formulas -------------------------------------------------------------------------------------
    def blocks(self, write: Writer | None = None) -> dict[str, Block]:
        """Y (n × p) and pi, and M, h, g and friction as sums of parameter·(bracket); `write` makes the brackets.

        `write` makes a formula of a polynomial over `ring`; by default a flat one. Returns the `Block`s by name.

        >>> import linkwright as lw
        >>> list(lw.equations(lw.chain(1)).regressor.blocks())
        ['Y', 'pi', 'M', 'h', 'g']
        """
        write = write or self.ring.formula
        n, p = self.n, len(self.columns)
        blocks = {
            "Y": self.block("Y", range(p), write),
            "pi": Block("pi", (p,), tuple(times(1, column.symbol) for column in self.columns)),
        }
        upper = {at: self._grouped(value, write) for at, value in self.parts["M"].items()}
        entries = tuple(upper[min(i, j), max(i, j)] for i in range(n) for j in range(n))
        blocks["M"] = Block("M", (n, n), entries, symmetric=True)
        for name in ("h", "g", "friction"):
            part = self.parts[name]
            if name != "friction" or any(part.values()):
                blocks[name] = Block(name, (n,), tuple(self._grouped(part[i,], write) for i in range(n)))
        return blocks

    def block(self, name: str, columns: Sequence[int], write: Writer | None = None) -> Block:
        """Some columns of Y; `write` makes formulas of their entries."""
        write = write or self.ring.formula
        places = product(range(self.n), columns)
        entries = tuple(write(self.entries[place]) if place in self.entries else ZERO for place in places)
        return Block(name, (self.n, len(columns)), entries)

    def _grouped(self, value: Poly, write: Writer) -> Sum:
        """A polynomial that is linear in π as Σ parameter·(bracket); a bracket of one term is left out."""
        return added(*(bracketed(self.columns[k].symbol, write(x)) for k, x in self._coefficients(value)))

    # -- numbers --------------------------------------------------------------------------------------
    def matrix(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, parameters: Mapping[str, float] | None = None
    ) -> NDArray[np.float64]:
        """Y at coordinates, rates and accelerations (..., n), in the order of the model's: (..., n, p).

        `parameters` are values of lengths and angles by name, in SI units; by default the model's. Raises `ShapeError`
        for arrays of other shapes.

        >>> import linkwright as lw
        >>> y = lw.equations(lw.chain(2)).regressor
        >>> y.matrix([0.1, 0.2], [1.0, 0.0], [0.0, 0.0]).shape
        (2, 20)
        """
        states = [np.asarray(x, dtype=np.float64) for x in (q, v, a)]
        for name, x in zip("qva", states, strict=True):
            if x.shape[-1:] != (self.n,) or x.shape != states[0].shape:
                shapes = ", ".join(str(s.shape) for s in states)
                text = f"{name} of the regressor: q, v and a have shapes (..., {self.n}), not {shapes}"
                raise ShapeError(text, given=x.shape, wanted=(..., self.n))
        x = self.ring.values({**self.model.values, **(parameters or {}), **self.ring.motion(*states)})
        return self._compiled(x).reshape(*x.shape[1:], self.n, len(self.columns))

    @cached_property
    def _compiled(self) -> Compiled:
        places = [(i, k) for i in range(self.n) for k in range(len(self.columns))]
        return Compiled([self.entries.get(place, self.ring.zero) for place in places])


def regressor(
    model: Model | Description | Mechanism,
    *,
    motors: bool | None = None,
    friction: bool | None = False,
    every: bool = False,
) -> Regressor:
    """The regressor of a mechanism.

    `motors` says which joints have a column for motor inertia: those that have one (None), all, or none; `friction`
    likewise for viscous and Coulomb friction, whose speed v₀ is the model's, or the usual one (by default none).
    `every` gives moving bodies without mass their columns too; by default they have none.

    Returns the `Regressor`. Raises `ModelError` where no body moves or has mass, for friction that is neither viscous
    nor Coulomb friction, and for a parameter of the model that has the name of a column.

    >>> import linkwright as lw
    >>> from linkwright.symbolic.regressor.polynomial_regressor import regressor
    >>> regressor(lw.chain(1), motors=True).names[:4]
    ('m1', 'mx1', 'my1', 'mz1')
    """
    if not isinstance(model, Model):
        model = model_of(model if isinstance(model, Description) else model.description)
    columns, inertias = _inertial(model, every)
    rotors = [r for r in model.rotors if motors or (motors is None and r.inertia)]
    columns += [Column(Symbol(f"{MOTOR}{r.body}"), r.body, MOTOR, r.inertia) for r in rotors]
    losses = _losses(model, friction)
    columns += [column for column, _, _ in losses]
    kinematic = _kinematic(model)
    _refuse_names(model, kinematic, columns)
    constants = kinematic.constants() + [times(1, factor) for _, _, factor in losses if isinstance(factor, Applied)]
    lean = Ring(model.coordinates, model.angles, constants)
    ring = Ring(model.coordinates, model.angles, constants + [times(1, column.symbol) for column in columns])
    armature = [ZERO] * len(model.coordinates)
    for rotor in rotors:
        for i, square in rotor.at:
            armature[i] = added(armature[i], times(square, Symbol(f"{MOTOR}{rotor.body}")))
    dynamics = Dynamics(replace(kinematic, armature=tuple(armature)), ring, inertias)
    dynamics.derive_mass_matrix()
    n = dynamics.n
    lost = [ring.zero] * n
    for column, i, factor in losses:
        lost[i] = lost[i] + ring.symbol(column.symbol) * ring.symbol(factor)
    parts: dict[str, dict[tuple[int, ...], Poly]] = {
        "M": {(i, j): dynamics.m[i, j] for i in range(n) for j in range(i, n)},
        "h": {(i,): dynamics.h(i) for i in range(n)},
        "g": {(i,): dynamics.g(i) for i in range(n)},
        "friction": {(i,): lost[i] for i in range(n)},
    }
    return Regressor(model, lean, ring, columns, parts)


# -- columns --------------------------------------------------------------------------------------------------------
def _inertial(model: Model, every: bool) -> tuple[list[Column], list[list[Sum] | None]]:
    """Ten columns of each body that weighs and moves, and the same symbols by elementary link."""
    plain = Dynamics(model)
    columns: list[Column] = []
    inertias: list[list[Sum] | None] = []
    body = 0
    moving = carried((link.parent for link in model.links), (link.coordinate >= 0 for link in model.links))
    for link, moves in zip(model.links, moving, strict=True):
        body += link.body is not None
        if link.body is None or not moves or not (every or link.body.weighs):
            inertias.append(None)
            continue
        mass = plain.algebra.mass(link.body, *link.back)
        polynomials = [mass.m, *mass.mc, *(mass.j[a][b] for a, b in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))]
        ten = [Symbol(f"{letter}{body}") for letter in LETTERS]
        both = zip(ten, LETTERS, polynomials, strict=True)
        columns += [Column(s, body, letter, plain.ring.formula(x)) for s, letter, x in both]
        inertias.append([times(1, s) for s in ten])
    if not any(moving):
        raise ModelError(f"no body of {model.name!r} can move, so that its equations have no inertial parameters")
    if not columns:
        text = "has mass, so that the equations have no inertial parameters; give mass, com and inertia, or ask for "
        raise ModelError(f"no body of {model.name!r} that moves {text}every=True")
    return columns, inertias


def _losses(model: Model, friction: bool | None) -> list[tuple[Column, int, Factor]]:
    """Columns of friction with their coordinate and what they multiply: the rate, or tanh of it over v₀."""
    losses: list[tuple[Column, int, Factor]] = []
    if friction is False:
        return losses
    for i, q in enumerate(model.coordinates):
        rotor = next((r for r in model.rotors if any(at == i for at, _ in r.at)), None)
        if rotor is None:
            continue
        place = f"{rotor.body}" + (f"_{i - rotor.at[0][0] + 1}" if len(rotor.at) > 1 else "")
        rate = Symbol(f"d{q.name}", "rate", q.name)
        viscous, dry, other = _parted(flat(model.friction[i]), rate)
        if other:
            text = f"the friction of joint {model.joints[i]!r} is neither viscous nor Coulomb friction"
            raise ModelError(f"{text}; leave it out: friction=False", element=model.joints[i])
        if friction:
            usual = Applied("tanh", (times(1 / rational(FRICTION_SPEED), rate),))
            dry = dry or {usual: ZERO}
        if viscous or friction:
            losses.append((Column(Symbol(f"V{place}"), rotor.body, "V", viscous), i, rate))
        for number, (factor, size) in enumerate(dry.items(), start=1):
            name = f"f{place}" + (f"_{number}" if number > 1 else "")
            losses.append((Column(Symbol(name), rotor.body, "f", size), i, factor))
    return losses


def _parted(law: Sum, rate: Symbol) -> tuple[Sum, dict[Applied, Sum], Sum]:
    """Friction without brackets as V·rate + Σ f·tanh(…): V, f by its tanh, and the terms that are neither."""
    viscous, other = ZERO, ZERO
    dry: dict[Applied, Sum] = {}
    for term in law:
        moving = [(f, n) for f, n in term.factors if rate.name in symbols(raised(f))]
        coefficient = Sum((Term(term.number, tuple(x for x in term.factors if x not in moving)),))
        if len(moving) != 1 or any(s.role != "parameter" for s in symbols(coefficient).values()):
            other = added(other, Sum((term,)))
            continue
        factor, power = moving[0]
        if power == 1 and factor == rate:
            viscous = added(viscous, coefficient)
        elif power == 1 and isinstance(factor, Applied) and factor.function == "tanh":
            dry[factor] = added(dry.get(factor, ZERO), coefficient)
        else:
            other = added(other, Sum((term,)))
    return viscous, dry, other


def _kinematic(model: Model) -> Model:
    """The model without its own inertial numbers."""
    links = tuple(replace(link, body=None, back=((), NONE)) for link in model.links)
    return replace(model, links=links, armature=())


def _refuse_names(model: Model, kinematic: Model, columns: Sequence[Column]) -> None:
    """A parameter of π may have the name of another symbol of the equations only where it is that symbol."""
    taken = {q.name for q in model.coordinates}
    taken |= {f"{dots}{name}" for name in taken for dots in ("d", "dd")}
    for formula in kinematic.constants():
        taken |= symbols(formula).keys()
    laws = {name for formula in (*model.friction, *model.springs) for name in symbols(formula)}
    for column in columns:
        same = column.relation == times(1, column.symbol)
        if column.name in taken or (column.name in laws and not same):
            where = "lengths, angles or coordinates" if column.name in taken else "joints' forces"
            text = f"{column.name!r} is in the model's {where}, and is the name of a parameter of body {column.body}"
            raise ModelError(f"{text} in the regressor; rename it in the model", element=column.name)
