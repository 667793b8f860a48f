"""The parts of the equations of motion in their forms, and what their symbols stand for."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any, Literal, get_args

from linkwright.base.arguments import check_names, counted
from linkwright.base.collector import without_collection
from linkwright.base.locks import cached_property
from linkwright.errors import LinkwrightError
from linkwright.mechanism import Mechanism
from linkwright.model.joint_kinds import KINDS, JointKind
from linkwright.symbolic.derivation.literal import Model
from linkwright.symbolic.derivation.progress import Derivation, Progress
from linkwright.symbolic.formulas.formula import Block, Sum, Symbol, flat, place
from linkwright.symbolic.formulas.polynomial_forms import Forms
from linkwright.symbolic.formulas.ring import Poly
from linkwright.symbolic.printing import text
from linkwright.symbolic.printing.printed_sheet import MORE, PARTS, QUANTITIES
from linkwright.symbolic.regressor.base_parameters import BaseParameters, base_parameters
from linkwright.symbolic.regressor.polynomial_regressor import Regressor, regressor

_ANGLES = ("yaw", "pitch", "roll")
_BODY = {"m": "mass", "x": "centre of mass along x", "y": "centre of mass along y", "z": "centre of mass along z"}
_JOINT = {"J": "motor inertia", "V": "viscous friction", "f": "dry friction"}
_NAME = re.compile(r"(m|x|y|z|I[xyz]{2}|J|V|f)(\d+)")


def meanings(mechanism: Mechanism, coordinates: Sequence[Symbol], declared: Collection[str]) -> dict[str, str]:
    """By symbol's name; `declared` are the parameters that the model itself had, whose meaning only it knows."""
    by_name: dict[str, str] = {}
    joints = [joint for joint in mechanism.joints if not joint.shares]
    words = [f"{word} of joint {joint.name}" for joint in joints for word in _words(KINDS[joint.kind])]
    for q, word in zip(coordinates, words, strict=True):
        by_name[q.name] = word
        by_name[f"d{q.name}"], by_name[f"dd{q.name}"] = f"rate of {q.name}", f"acceleration of {q.name}"
    for name in mechanism.parameters:
        match = _NAME.fullmatch(name)
        if match is None or name in declared or not 1 <= int(match[2]) <= mechanism.nb:
            continue
        k = int(match[2]) - 1
        if match[1] in _JOINT:
            by_name[name] = f"{_JOINT[match[1]]} of joint {mechanism.joints[k].name}"
        else:
            by_name[name] = f"{_BODY.get(match[1], f'inertia {match[1][1:]}')} of body {mechanism.bodies[k].name}"
    return by_name


def _words(kind: JointKind) -> list[str]:
    """A word for each coordinate."""
    if not kind.paired:
        return [*("xyz"[: kind.nv - 3]), *_ANGLES]
    if kind.name == "planar":
        return ["x", "y", "angle"]
    words = ["shift" if length else "angle" for length in kind.lengths[0]]
    return [f"{word} {k}" for k, word in enumerate(words, 1)] if len(set(words)) < len(words) else words


Form = Literal["collected", "expanded", "grouped", "recursive"]
FORMS: tuple[str, ...] = get_args(Form)
_COLLECTED = 40_000  # terms up to which multiple angles are the form to begin with


class Parts:
    """M, C, h, g, friction, springs and energies. Matrices and vectors are SymPy's, in the form chosen."""

    def __init__(self, derivation: Derivation, form: str | None) -> None:
        self._derivation, self._chosen = derivation, form
        self.model: Model = derivation.model
        self.n = derivation.n
        self._entries: dict[tuple[str, str], Sum] = {}
        self._sympy: dict[tuple[str, str], Any] = {}

    @property
    def derivation(self) -> Derivation:
        """The polynomials; found when first asked for, where they were not before."""
        if not self._derivation.begun:
            self._derivation.run()
        return self._derivation

    @cached_property
    def form(self) -> str:
        """The form of properties and printers where no other is asked for: as chosen, or by the equations' length."""
        return self._chosen or ("collected" if self._few() else "expanded")

    @cached_property
    def _forms(self) -> Forms:
        return Forms(self.derivation.dynamics.ring)

    def __repr__(self) -> str:
        if not self._derivation.begun:
            return f"<Equations of {self.model.name!r}: {counted(self.n, 'coordinate')}, recursive>"
        size = f"{counted(self.n, 'coordinate')}, {counted(self.derivation.terms(), 'term')}"
        state = "" if self.complete else f", {len(self.missing)} of the entries missing"
        return f"<Equations of {self.model.name!r}: {size}{state}>"

    # -- what is in them ------------------------------------------------------------------------------
    @property
    def complete(self) -> bool:
        """Whether every entry was found."""
        return self.derivation.complete

    @property
    def missing(self) -> list[str]:
        """The entries that an interrupted derivation did not reach."""
        return self.derivation.missing()

    @property
    def left_out(self) -> tuple[str, ...]:
        """The force elements that are no law of one joint's coordinate and rate, and so not in the equations."""
        return self.model.left_out

    @property
    def joints(self) -> tuple[str, ...]:
        """The joint of each coordinate."""
        return self.model.joints

    @cached_property
    def q(self) -> Any:
        """The coordinates (SymPy)."""
        return self._column(s.name for s in self.model.coordinates)

    @cached_property
    def dq(self) -> Any:
        """Their rates (SymPy)."""
        return self._column(f"d{s.name}" for s in self.model.coordinates)

    @cached_property
    def ddq(self) -> Any:
        """Their accelerations (SymPy)."""
        return self._column(f"dd{s.name}" for s in self.model.coordinates)

    @property
    def parameters(self) -> dict[str, float]:
        """The symbols that are no coordinates, with their values; in the grouped form π among them."""
        return dict(self.regressor.symbol_values() if self._chosen == "grouped" else self._named)

    @cached_property
    def _named(self) -> dict[str, float]:
        """The parameters of the model, and the angles that became symbols, with their values."""
        return self.model.parameters()

    @property
    def M(self) -> Any:
        """The mass matrix."""
        return self.sympy("M")

    @property
    def C(self) -> Any:
        """The matrix of Christoffel symbols times rates: h = C q̇, Ṁ − 2C skew."""
        return self.sympy("C")

    @property
    def h(self) -> Any:
        """Coriolis and centrifugal forces."""
        return self.sympy("h")

    @property
    def g(self) -> Any:
        """Gravity's forces."""
        return self.sympy("g")

    @property
    def friction(self) -> Any:
        """What joints' dampers and friction take: viscous V·q̇, dry f·tanh(q̇/v₀)."""
        return self.sympy("friction")

    @property
    def springs(self) -> Any:
        """What joints' springs hold against the motion."""
        return self.sympy("springs")

    @property
    def kinetic_energy(self) -> Any:
        """T = ½ q̇ᵀ M q̇."""
        return self.sympy("kinetic_energy")

    @property
    def potential_energy(self) -> Any:
        """U of gravity."""
        return self.sympy("potential_energy")

    @property
    def lagrangian(self) -> Any:
        """L = T − U."""
        return self.sympy("lagrangian")

    @property
    def F(self) -> Any:
        """The whole right-hand side: M q̈ + h + friction + springs + g."""
        return self.M * self.ddq + self.h + self.friction + self.springs + self.g

    # -- forms ----------------------------------------------------------------------------------------
    def block(self, name: str, form: str | None = None, progress: Progress | None = None) -> Block:
        """A part as formulas: one of M, C, h, g, friction, springs, kinetic_energy, potential_energy, lagrangian.

        `form` is "collected", "expanded" or "grouped"; by default that of the equations. `progress` is called with the
        name of each entry, how many are written and how many there are. Returns the `Block`, of shape (n, n), (n,) or
        (). Raises `NameNotFound` for another name, and `LinkwrightError` for the recursive form, which has steps.

        >>> import linkwright as lw
        >>> lw.equations(lw.chain(2)).block("M").shape
        (2, 2)
        """
        return self._block(name, self._form(form), progress)

    def _block(self, name: str, form: str, progress: Progress | None = None, *, ordered: bool = True) -> Block:
        """`block`; terms that need not be in the documented order are not sorted, where that takes long."""
        check_names("part of the equations", (name,), PARTS + MORE)
        if form == "recursive":
            steps = QUANTITIES[name].recursion or "..."
            text = f"the recursive form is made of steps; ask for them: eq.recursive({steps!r})"
            raise LinkwrightError(text)
        if form == "grouped" and name in ("M", "h", "g"):
            return self._groups[name]
        write = self._forms.expanded if form == "expanded" else self._forms.collected
        entries_by_place = self._entries
        if form == "expanded" and not ordered:
            write, entries_by_place = self.derivation.dynamics.ring.formula, {}
        n = self.n
        if name in ("friction", "springs"):
            return Block(name, (n,), getattr(self.model, name))
        shape: tuple[int, ...] = {"M": (n, n), "C": (n, n), "h": (n,), "g": (n,)}.get(name, ())
        places = list(product(*(range(size) for size in shape)))
        entries = []
        for k, at in enumerate(places, 1):
            position = tuple(sorted(at)) if name == "M" else at
            key = f"{name}{position}", form
            if key not in entries_by_place:
                entries_by_place[key] = write(self.polynomial(name, *position))
            entries.append(entries_by_place[key])
            if progress is not None:
                progress(f"{name}{place(at, n)}", k, len(places))
        return Block(name, shape, tuple(entries), symmetric=name == "M")

    def most(self) -> int:
        """At most how many terms M, h and g have in the collected form."""
        d = self.derivation
        return sum(self._forms.most(p) for p in (*d.dynamics.upper(), *d.h.values(), *d.g.values()))

    def _few(self) -> bool:
        """Whether the collected form has few terms; it has at least those of the expanded one."""
        return self.derivation.terms() <= _COLLECTED and self.most() <= _COLLECTED

    def polynomial(self, name: str, *at: int) -> Poly:
        """An entry as it is kept: a polynomial of `derivation.dynamics.ring`."""
        d = self.derivation
        if name in ("M", "h", "g"):
            table: Mapping[Any, Poly] = getattr(d, name.lower())
            key = at if name == "M" else at[0]
            if key not in table:
                entry = f"{name}{place(at, self.n)}"
                raise LinkwrightError(f"{entry} was not reached when the derivation was interrupted; derive again")
            return table[key]
        if not self.complete and name != "potential_energy":
            raise LinkwrightError(f"{name} needs all entries of M, and the derivation was interrupted; derive again")
        if name == "C":
            return d.dynamics.coriolis(*at)
        return getattr(d.dynamics, name)

    def sympy(self, name: str, form: str | None = None) -> Any:
        """A part as SymPy's matrix or expression; `name`, `form` and what it raises as for `block`.

        >>> import linkwright as lw
        >>> lw.equations(lw.chain(2)).sympy("h").shape
        (2, 1)
        """
        from linkwright.symbolic.printing.sympy_out import to_sympy_block  # weight: SymPy

        form = self._form(form)
        if (name, form) not in self._sympy:
            with without_collection():
                self._sympy[name, form] = to_sympy_block(self._block(name, form, ordered=False))
        return self._sympy[name, form].copy()

    def terms(self, name: str, *at: int, form: str | None = None) -> list[str]:
        """The terms of an entry as texts in the documented order, brackets multiplied out: `eq.terms("M", 1, 1)`.

        `at` is the place of the entry, counted from 1: two numbers of a matrix, one of a vector, none of an energy;
        `name` and `form` as for `block`. Returns a list of texts. A place outside the part raises `LinkwrightError`.

        >>> import linkwright as lw
        >>> lw.equations(lw.chain(1)).terms("M", 1, 1)
        ['0.0035416666666666665']
        """
        block = self.block(name, form)
        if len(at) != len(block.shape) or any(not 1 <= k <= n for k, n in zip(at, block.shape, strict=True)):
            raise LinkwrightError(f"{name} has the shape {block.shape}; give its place by numbers from 1, not {at}")
        places = list(product(*map(range, block.shape)))
        entry = block.entries[places.index(tuple(k - 1 for k in at))]
        return [text(Sum((term,))) for term in flat(entry)]

    def _form(self, form: str | None) -> str:
        form = form or self.form
        check_names("form", (form,), FORMS)
        return form

    @cached_property
    def regressor(self) -> Regressor:
        """F = Y(q, q̇, q̈) π, linear in the inertial parameters π."""
        return regressor(self.model)

    @cached_property
    def base(self) -> BaseParameters:
        """The smallest set of inertial parameters that the equations depend on, with how they are made of all."""
        return base_parameters(self.regressor)

    @cached_property
    def _groups(self) -> dict[str, Block]:
        """The blocks of form (c)."""
        forms = Forms(self.regressor.ring)
        return self.regressor.blocks(forms.collected if self._few() else forms.expanded)

    @staticmethod
    def _column(names: Any) -> Any:
        import sympy  # weight: SymPy

        return sympy.Matrix([sympy.Symbol(name) for name in names])
