r"""Linear models of the closed forms: δF = M δq̈ + D δq̇ + K δq, exactly, at a point or along any motion.

K = ∂(M q̈ + h + g + friction + springs)/∂q and D = ∂(h + friction)/∂q̇. With x = (δq, δq̇) that is ẋ = A x + B δF,
A = [[0, 1], [−M⁻¹ K, −M⁻¹ D]] and B = [[0], [M⁻¹]].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.base.arguments import check_names
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.errors import ModelError
from linkwright.symbolic.derivation.polynomial_dynamics import Dynamics
from linkwright.symbolic.formulas.calculus import derivative, replaced
from linkwright.symbolic.formulas.exact import ONE, ZERO, added, exact_number, finite, short, times
from linkwright.symbolic.formulas.formula import Block, Sum, flat, symbols
from linkwright.symbolic.formulas.ring import Compiled, Poly, Ring
from linkwright.symbolic.linear.quotients import Quotient, solved
from linkwright.symbolic.printing.mathml import html_blocks

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

Rows = list[list[Poly]]
#: What a symbol is at a point: a number, or itself.
Value = int | float | Fraction | Literal["free"]
Name = Literal["M", "D", "K", "A", "B"]
_QUICK, _QUICK_AT_POINT = 3, 6  # coordinates up to which a notebook draws M, D and K: along any motion, and at a point


#: Numbers by name or by SymPy's symbols, or those of the coordinates in their order.
Point = Mapping[str, Value] | Mapping[Any, Any] | Sequence[Any] | NDArray[Any]


class Linearisation:
    """The linear model along any motion, or at a point: M, D, K, A and B as formulas (`Block`s) and as numbers.

    `point` gives coordinates, rates, accelerations and parameters by name (or SymPy's symbols), or the coordinates
    alone in their order. Rates and accelerations that it does not name are zero there, "free" keeps them; other symbols
    that it does not name stay. The cosines of multiples of 15° are algebraic numbers, those of other angles their
    decimals. `mech` is the mechanism with these equations, whose compiled code `numeric` calls.
    """

    def __init__(self, dynamics: Dynamics, point: Point | None = None, mech: Mechanism | None = None) -> None:
        dynamics.check_mass_matrix()
        self.dynamics, self.mech = dynamics, mech
        self.n, self.model = dynamics.n, dynamics.model
        self.fixed = {} if point is None else _fixed(dynamics, point)
        self.notes = self.model.lacks("mech.linearise(q, v, tau)")

    def __repr__(self) -> str:
        motion = {s.name for s in (*self.dynamics.ring.rates, *self.dynamics.ring.accelerations)}
        place = [f"{name} = {float(x):.6g}" for name, x in self.fixed.items() if x or name not in motion]
        where = "along any motion" if not self.fixed else f"at {', '.join(place)}" if place else "at rest"
        return f"<Linearisation of {self.model.name!r} {where}: {self.n} coordinates, {2 * self.n} states>"

    def __str__(self) -> str:
        return "\n".join([repr(self)[1:-1], *self.notes])

    def _repr_html_(self) -> str:
        quick = self.n <= (_QUICK_AT_POINT if self.fixed else _QUICK)
        return html_blocks(repr(self)[1:-1], (self.M, self.D, self.K) if quick else (), self.notes)

    # -- polynomials ----------------------------------------------------------------------------------
    @cached_property
    def _laws(self) -> list[Sum]:
        """What the joints' laws hold against."""
        return [added(*parts) for parts in zip(self.model.friction, self.model.springs, strict=True)]

    @cached_property
    def _slopes(self) -> tuple[list[dict[int, Sum]], list[dict[int, Sum]]]:
        """∂law_i/∂q_j and ∂law_i/∂q̇_j, those that are not zero."""
        ring = self.dynamics.ring
        both = []
        for by in (ring.coordinates, ring.rates):
            rows = [{j: derivative(law, s) for j, s in enumerate(by)} for law in self._laws]
            both.append([{j: slope for j, slope in row.items() if slope} for row in rows])
        return both[0], both[1]

    @cached_property
    def _moved(self) -> Moved:
        """The ring of the linear model, and the way there."""
        laws = [slope for rows in self._slopes for row in rows for slope in row.values()]
        return Moved(self.dynamics.ring, laws, self.fixed)

    @property
    def ring(self) -> Ring:
        """The ring of the matrices' polynomials: with the functions in joints' laws, at the point."""
        return self._moved.ring

    @cached_property
    def _known(self) -> dict[str, Any]:
        """The values of the model's symbols and of those at the point."""
        return {**self.model.values, **{name: float(x) for name, x in self.fixed.items()}}

    @cached_property
    def _still(self) -> bool:
        return all(self.fixed.get(s.name) == 0 for s in self.dynamics.ring.rates)

    @cached_property
    def _m(self) -> Rows:
        n, m = self.n, self.dynamics.m
        upper = {(i, j): self._moved(m[i, j]) for i in range(n) for j in range(i, n)}
        return [[upper[min(i, j), max(i, j)] for j in range(n)] for i in range(n)]

    @cached_property
    def _d(self) -> Rows:
        dy, ring, rows = self.dynamics, self.dynamics.ring, []
        for i, laws in enumerate(self._slopes[1]):
            # Velocity products are of second degree in the rates: at rest they have no part.
            h = ring.zero if self._still else dy.h(i)
            row = [self._moved(ring.partial(h, rate)) for rate in ring.rates]
            rows.append([x + self._moved.law(laws[j]) if j in laws else x for j, x in enumerate(row)])
        return rows

    @cached_property
    def _k(self) -> Rows:
        dy, ring, rows = self.dynamics, self.dynamics.ring, []
        # Numbers for rates and accelerations go in before the derivatives: most terms are gone then.
        motion = [*ring.rates, *ring.accelerations]
        known = {s: self.fixed[s.name] for s in motion if s.name in self.fixed}
        numbers: dict[Any, Poly] = {s: ring.constant(x) for s, x in known.items()}
        speeds = [numbers.get(factor, x) for factor, x in zip(ring.at, ring.gens, strict=True)]
        pushed = [j for j, s in enumerate(ring.accelerations) if known.get(s) != 0]
        for i, laws in enumerate(self._slopes[0]):
            force = dy.g(i) + sum((dy.m[i, j] * ring.symbol(ring.accelerations[j]) for j in pushed), ring.zero)
            if not self._still:
                force = force + dy.h(i)
            if known:
                force = force.compose(*speeds, ctx=ring.ctx)
            row = [self._moved(ring.derivative(force, j)) for j in range(self.n)]
            rows.append([x + self._moved.law(laws[j]) if j in laws else x for j, x in enumerate(row)])
        return rows

    # -- formulas -------------------------------------------------------------------------------------
    def _block(self, name: str, rows: Rows, symmetric: bool = False) -> Block:
        entries = tuple(flat(self.ring.formula(x)) for row in rows for x in row)
        return Block(name, (self.n, self.n), entries, symmetric)

    @cached_property
    def M(self) -> Block:
        """∂F/∂q̈, the mass matrix."""
        return self._block("M", self._m, True)

    @cached_property
    def D(self) -> Block:
        """∂F/∂q̇."""
        return self._block("D", self._d)

    @cached_property
    def K(self) -> Block:
        """∂F/∂q: symmetric at rest."""
        return self._block("K", self._k)

    @cached_property
    def _quotients(self) -> list[list[Quotient]]:
        """M⁻¹ (K, D, 1)."""
        one, zero = self.ring.one, self.ring.zero
        unit = [[one if i == j else zero for j in range(self.n)] for i in range(self.n)]
        right = [[*k, *d, *e] for k, d, e in zip(self._k, self._d, unit, strict=True)]
        return solved(self.ring, self._m, right)

    @cached_property
    def A(self) -> Block:
        """ẋ = A x + B δF with x = (δq, δq̇), as formulas; an error says where M⁻¹ is too long for that."""
        n = self.n
        top = [ONE if j == i + n else ZERO for i in range(n) for j in range(2 * n)]
        low = [(-x).formula(self.ring) for row in self._quotients for x in row[: 2 * n]]
        return Block("A", (2 * n, 2 * n), (*top, *low))

    @cached_property
    def B(self) -> Block:
        """See `A`."""
        n = self.n
        low = [x.formula(self.ring) for row in self._quotients for x in row[2 * n :]]
        return Block("B", (2 * n, n), (*(ZERO for _ in range(n * n)), *low))

    def sympy(self, name: Name) -> Any:
        """One of the matrices "M", "D", "K", "A" and "B" in SymPy's symbols; another name raises `NameNotFound`.

        >>> import linkwright as lw
        >>> lw.equations(lw.chain(1)).linearise([0.0]).sympy("K").shape
        (1, 1)
        """
        check_names("matrix of the linear model", (name,), get_args(Name))
        from linkwright.symbolic.printing.sympy_out import to_sympy_block  # weight: SymPy

        return to_sympy_block(getattr(self, name))

    # -- numbers --------------------------------------------------------------------------------------
    def matrices(self, values: Mapping[str, Any] | None = None) -> tuple[Floats, Floats, Floats]:
        """M, D, K as numbers (..., n, n) with these values of the symbols, and otherwise the model's.

        `values` are numbers or arrays (...) by the symbols' names, in SI units; none by default. Raises `ModelError`
        for a symbol that has no value.

        >>> import linkwright as lw
        >>> M, D, K = lw.equations(lw.chain(1)).linearise().matrices({"q1": 0.0, "dq1": 0.0, "ddq1": 0.0})
        >>> K.shape
        (1, 1)
        """
        numbers = {**self._known, **(values or {})}
        used = {name for block in (self.M, self.D, self.K) for entry in block.entries for name in symbols(entry)}
        missing = sorted(used - set(numbers))
        if missing:
            raise ModelError(f"no value is known of {', '.join(missing)}; give it in values=", element=missing[0])
        x = self.ring.values(numbers)

        def evaluated(rows: Rows) -> Floats:
            return Compiled([p for row in rows for p in row])(x).reshape(*x.shape[1:], self.n, self.n)

        return evaluated(self._m), evaluated(self._d), evaluated(self._k)

    def state_space(self, values: Mapping[str, Any] | None = None) -> tuple[Floats, Floats]:
        """A (..., 2n, 2n) and B (..., 2n, n) as numbers; arguments and errors as for `matrices`.

        >>> import linkwright as lw
        >>> A, B = lw.equations(lw.chain(1)).linearise([0.0]).state_space()
        >>> A.shape, B.shape
        ((2, 2), (2, 1))
        """
        m, d, k = self.matrices(values)
        inverse = np.asarray(np.linalg.inv(m), np.float64)
        return _blocks(-inverse @ k, -inverse @ d, inverse)

    def numeric(
        self, q: ArrayLike, v: ArrayLike | None = None, *, a: ArrayLike | None = None, tau: ArrayLike | None = None
    ) -> tuple[Floats, Floats]:
        """A (..., 2n, 2n) and B (..., 2n, n) along a motion q, v (..., n) with the parameters' values.

        - `q`: coordinates (..., n), rad and m.
        - `v`: their rates (..., n), rad/s and m/s; zero unless given.
        - `a`: their accelerations (..., n), rad/s² and m/s²; zero unless given. Or
        - `tau`: the forces (..., n), N m and N, that cause them.

        Compiled code does it if there is a mechanism with these coordinates, otherwise the polynomials. Raises
        `ModelError` for arrays of other shapes, and for a and tau together.

        >>> import linkwright as lw
        >>> A, B = lw.equations(lw.chain(2)).linearise().numeric([0.1, 0.2])
        >>> A.shape, B.shape
        ((4, 4), (4, 2))
        """
        if a is not None and tau is not None:
            raise ModelError("give the accelerations a or the forces tau, not both: one makes the other")
        arrays = {"q": q, "v": v, "a": a, "tau": tau}
        states = {key: np.asarray(x, np.float64) for key, x in arrays.items() if x is not None}
        for key, x in states.items():
            if x.shape[-1:] != (self.n,):
                raise ModelError(f"{key} has shape {x.shape}; its last axis is the coordinates, {self.n}")
        shape = np.broadcast_shapes(*(x.shape for x in states.values()))
        full = {key: np.ascontiguousarray(np.broadcast_to(x, shape)) for key, x in states.items()}
        full.setdefault("v", np.zeros(shape))
        whole = not self.model.left_out and not self.fixed
        if self.mech is not None and whole and self.mech.nq == self.mech.nv == self.n:
            return self._by_tape(self.mech, full)
        return self._by_polynomials(full)

    def _by_tape(self, mech: Mechanism, full: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        q, v = full["q"], full["v"]
        tau = full.get("tau")
        if tau is None:
            tau = mech.inverse_dynamics(q, v, full.get("a", np.zeros(q.shape)))
        by_q, by_v, by_tau = mech.forward_dynamics_derivatives(q, v, tau)
        return _blocks(by_q, by_v, by_tau)

    def _by_polynomials(self, full: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        ring = self.dynamics.ring
        every = ring.motion(full["q"], full["v"], full.get("a"))
        motion = {name: x for name, x in every.items() if name not in self.fixed}
        if "tau" in full:
            a = self._accelerations(motion, full["tau"])
            motion.update({s.name: a[..., k] for k, s in enumerate(ring.accelerations)})
        return self.state_space(motion)

    def _accelerations(self, motion: Mapping[str, Floats], tau: Floats) -> Floats:
        dy, n = self.dynamics, self.n
        ring = Moved(dy.ring, self._laws, {})
        x = ring.ring.values({**self._known, **motion})
        held = Compiled([ring(dy.h(i) + dy.g(i)) + ring.law(law) for i, law in enumerate(self._laws)])(x)
        m = Compiled([ring(dy.m[i, j]) for i in range(n) for j in range(n)])(x).reshape(*held.shape, n)
        return np.asarray(np.linalg.solve(m, (tau - held)[..., None])[..., 0], np.float64)


class Moved:
    """Polynomials of one ring in another: with numbers in the place of symbols, and with the functions of laws."""

    def __init__(self, ring: Ring, laws: Sequence[Sum], numbers: Mapping[str, Fraction]) -> None:
        images = [replaced(times(1, factor), numbers) for factor in ring.at]
        self._laws = {law: replaced(law, numbers) for law in laws}
        if numbers:
            self.ring = Ring(ring.coordinates, (), [*images, *self._laws.values()])
        else:
            moving = ring.angles[: ring.moving]
            fixed = [x for x, factor in zip(images, ring.at, strict=True) if getattr(factor, "angle", ()) not in moving]
            self.ring = Ring(ring.coordinates, moving, [*fixed, *self._laws.values()])
        self._images = [self.ring.poly(image) for image in images]

    def __call__(self, p: Poly) -> Poly:
        return self.ring.reduced(p.compose(*self._images, ctx=self.ring.ctx))

    def law(self, formula: Sum) -> Poly:
        """A law among those that it was made with."""
        return self.ring.poly(self._laws[formula])


def _fixed(dynamics: Dynamics, point: Point) -> dict[str, Fraction]:
    """A point's numbers, exactly; what it keeps free is left out."""
    ring = dynamics.ring
    named = _named(point, [s.name for s in ring.coordinates])
    motion = [s.name for s in (*ring.rates, *ring.accelerations)]
    known = [*(s.name for s in ring.coordinates), *motion, *dynamics.model.values]
    check_names("symbol", named, known)
    numbers = {name: Fraction(0) for name in motion if name not in named}
    for name, x in named.items():
        if (isinstance(x, str) and x == "free") or _name(x) == name:
            continue
        if not finite(x):
            text = f"{name} is {short(x)} at the point; give a finite number, or 'free' to keep it"
            raise ModelError(text, element=name)
        numbers[name] = exact_number(x)
    return numbers


def _named(point: Point, coordinates: list[str]) -> dict[str, Any]:
    """What a point gives, by name."""
    if isinstance(point, Mapping):
        return {_name(key) or str(key): x for key, x in point.items()}
    if isinstance(point, np.ndarray):
        point = point.tolist()
    if not isinstance(point, Sequence) or isinstance(point, str | bytes):
        example = f"{{{coordinates[0]!r}: 0}}"
        text = f"the point is {short(point)}; give its numbers by name, {example}, those of the {len(coordinates)} "
        raise ModelError(f"{text}coordinates in their order, or an equilibrium")
    if len(point) != len(coordinates):
        text = f"the point {short(point)} has the length {len(point)}, and the coordinates are {', '.join(coordinates)}"
        raise ModelError(f"{text}; give one for each, or some by name")
    return dict(zip(coordinates, point, strict=True))


def _name(x: Any) -> str:
    """The name of a symbol, ours or SymPy's; a text is its own."""
    name = x if isinstance(x, str) else getattr(x, "name", "")
    return name if isinstance(name, str) else ""


def _blocks(by_q: Floats, by_v: Floats, by_tau: Floats) -> tuple[Floats, Floats]:
    zero, one = np.zeros_like(by_q), np.broadcast_to(np.eye(by_q.shape[-1]), by_q.shape)
    low = np.concatenate([by_q, by_v], axis=-1)
    return (
        np.concatenate([np.concatenate([zero, one], axis=-1), low], axis=-2),
        np.concatenate([zero, by_tau], axis=-2),
    )
