"""`lw.equations`: the equations of motion of a mechanism in closed form, and what is asked of them.

F + d = M(q) q̈ + h(q, q̇) + friction + springs + g(q). The derivation is exact; forms are made when asked for, entry by
entry, and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.errors import LinkwrightError, ModelError, NameNotFound
from linkwright.model import Mechanism
from linkwright.symbolic.derivation import Derivation, Estimate, Progress, estimate
from linkwright.symbolic.dynamics import Way
from linkwright.symbolic.forms import Forms
from linkwright.symbolic.formula import Block, Sum, flat, symbols
from linkwright.symbolic.links import Model, model_of
from linkwright.symbolic.literal import literal as made_literal
from linkwright.symbolic.printing import Operations, Sheet, operations, text, to_sympy_block
from linkwright.symbolic.ring import Poly

if TYPE_CHECKING:
    from linkwright.symbolic.recursive import Recursive

Floats = NDArray[np.float64]
Form = Literal["collected", "expanded", "grouped", "recursive"]
FORMS: tuple[str, ...] = get_args(Form)
#: The blocks of the equation itself, then those that can be asked for.
PARTS = ("M", "h", "g", "friction", "springs")
MORE = ("C", "kinetic_energy", "potential_energy", "lagrangian")


def equations(
    source: Mechanism | str | PathLike[str],
    *,
    literal: str | Collection[str] = "named",
    numbers: Collection[str] | Literal["all"] = (),
    coordinates: str = "q",
    form: str = "collected",
    way: Way = "jacobian",
    round_angles: int | None = None,
    sums: bool = True,
    progress: Progress | None = None,
) -> Equations:
    """The equations of motion of a mechanism (or of a model file) whose joints form a tree.

    - `literal`: which numbers become symbols: "named" (none but the model's own parameters), "inertial" (every mass,
      centre, inertia, motor inertia and friction), "all" (lengths and gravity too), or a collection of the words mass,
      com, inertia, armature, friction, lengths, gravity. `numbers` names parameters that become numbers, or "all".
    - `coordinates`: the letters of the coordinates: q1, q2, … with the rates dq1, … and accelerations ddq1, …
    - `form`: that of the properties and printers where they are not told another: "collected" (multiple angles),
      "expanded", "grouped" (by inertial parameter) or "recursive" (with intermediate variables).
    - `way`: M by "jacobian" or by Lagrange's "trace" form: the same in the end.
    - `round_angles`: digits to which the cosines of angles are rounded that are no multiple of 15°; without it such an
      angle becomes a symbol.
    - `sums`: basic angles are sums along parallel axes (θ2, θ2 + θ3); False takes every joint's own.
    - `progress`: called with the name of each entry, how many are done and how many there are. An interruption
      (Ctrl-C) leaves what was found: see `missing`.

    Spherical and free joints are described by yaw, pitch and roll (Rz Ry Rx).
    """
    for word, known, what in ((form, FORMS, "form"), (way, get_args(Way), "way")):
        if word not in known:
            raise NameNotFound(what, str(word), list(known))
    if isinstance(source, (str, PathLike)):
        from linkwright.sources import load

        source = load(fspath(source))
    if not isinstance(source, Mechanism):
        raise ModelError(f"equations takes a mechanism or a model file, not {type(source).__name__}")
    mechanism = Mechanism(made_literal(source.description, literal, coordinates=coordinates))
    model = model_of(
        mechanism.description,
        coordinates=coordinates,
        digits=round_angles,
        sums=sums,
        numbers=mechanism.parameters if numbers == "all" else numbers,
    )
    _check_masses(model)
    derivation = Derivation(model, way)
    derivation.run(progress)
    return Equations(mechanism, derivation, form)


def estimated(
    source: Mechanism, *, literal: str | Collection[str] = "named", coordinates: str = "q", **options: Any
) -> Estimate:
    """The size and the time of `equations` with the same options, from a short trial."""
    way, round_angles = options.get("way", "jacobian"), options.get("round_angles")
    d = made_literal(source.description, literal, coordinates=coordinates)
    return estimate(model_of(d, coordinates=coordinates, digits=round_angles, sums=options.get("sums", True)), way)


class Equations:
    """The equations of motion of one mechanism. Matrices and vectors are SymPy's, in the form chosen."""

    def __init__(self, mechanism: Mechanism, derivation: Derivation, form: str) -> None:
        self.mechanism, self.derivation, self.form = mechanism, derivation, form
        self.model: Model = derivation.model
        self.n = derivation.n
        self._forms = Forms(derivation.dynamics.ring)
        self._entries: dict[tuple[str, str], Sum] = {}
        self._sympy: dict[tuple[str, str], Any] = {}

    def __repr__(self) -> str:
        state = "" if self.complete else f", {len(self.missing)} entries missing"
        return f"<Equations of {self.model.name!r}: {self.n} coordinates, {self.derivation.terms():,} terms{state}>"

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
        return self._column(s.name for s in self.derivation.dynamics.ring.rates)

    @cached_property
    def ddq(self) -> Any:
        """Their accelerations (SymPy)."""
        return self._column(s.name for s in self.derivation.dynamics.ring.accelerations)

    @cached_property
    def parameters(self) -> dict[str, float]:
        """The symbols that are no coordinates, with their values."""
        ring = self.derivation.dynamics.ring
        names = [s.name for s in ring.parameters] + [s.name for angle in ring.angles[ring.moving :] for s, _ in angle]
        for formula in (*self.model.friction, *self.model.springs):
            names += [n for n, s in symbols(formula).items() if s.role == "parameter"]
        for part in ring.opaque:
            names += [n for argument in part.arguments for n in symbols(argument)]
        values = self.model.values
        return {name: float(values[name]) for name in dict.fromkeys(names) if name in values}

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
        """A part as formulas: one of M, C, h, g, friction, springs, kinetic_energy, potential_energy, lagrangian."""
        form = self._form(form)
        if name not in PARTS + MORE:
            raise NameNotFound("part of the equations", name, list(PARTS + MORE))
        if form == "grouped" and name in ("M", "h", "g"):
            return next(block for block in self.regressor.blocks() if block.name == name)
        made = self._forms.expanded if form == "expanded" else self._forms.collected
        n = self.n
        if name in ("friction", "springs"):
            return Block(name, (n,), getattr(self.model, name))
        if name in ("M", "C"):
            places = [(i, j) for i in range(n) for j in range(n)]
            entries = []
            for k, (i, j) in enumerate(places):
                at = (min(i, j), max(i, j)) if name == "M" else (i, j)
                entries.append(self._entry(name, at, form, made))
                if progress is not None:
                    progress(f"{name}{i + 1}{j + 1}", k + 1, len(places))
            return Block(name, (n, n), tuple(entries), symmetric=name == "M")
        if name in ("h", "g"):
            vector = []
            for i in range(n):
                vector.append(self._entry(name, (i,), form, made))
                if progress is not None:
                    progress(f"{name}{i + 1}", i + 1, n)
            return Block(name, (n,), tuple(vector))
        return Block(name, (), (self._entry(name, (), form, made),))

    def _entry(self, name: str, at: tuple[int, ...], form: str, made: Callable[[Poly], Sum]) -> Sum:
        key = f"{name}{at}", form
        if key not in self._entries:
            self._entries[key] = made(self.polynomial(name, *at))
        return self._entries[key]

    def polynomial(self, name: str, *at: int) -> Poly:
        """An entry as it is kept: a polynomial of `derivation.dynamics.ring`."""
        d = self.derivation
        if name in ("M", "h", "g"):
            table: Mapping[Any, Poly] = getattr(d, name.lower())
            key = at if name == "M" else at[0]
            if key not in table:
                entry = name + ("," if self.n > 9 else "").join(str(k + 1) for k in at)
                raise LinkwrightError(f"{entry} was not reached when the derivation was interrupted; derive again")
            return table[key]
        if not self.complete and name != "potential_energy":
            raise LinkwrightError(f"{name} needs all entries of M, and the derivation was interrupted; derive again")
        if name == "C":
            return d.dynamics.coriolis(*at)
        if name == "kinetic_energy":
            return d.dynamics.kinetic
        if name == "potential_energy":
            return d.dynamics.potential
        return d.dynamics.kinetic - d.dynamics.potential

    def sympy(self, name: str, form: str | None = None) -> Any:
        """A part as SymPy's matrix or expression."""
        form = self._form(form)
        if form == "recursive":
            form = "collected"
        if (name, form) not in self._sympy:
            self._sympy[name, form] = to_sympy_block(self.block(name, form))
        return self._sympy[name, form].copy()

    def terms(self, name: str, *at: int, form: str | None = None) -> list[str]:
        """The terms of an entry as texts in the documented order, brackets multiplied out: `eq.terms("M", 1, 1)`."""
        block = self.block(name, form)
        if len(at) != len(block.shape) or any(not 1 <= k <= n for k, n in zip(at, block.shape, strict=True)):
            raise LinkwrightError(f"{name} has the shape {block.shape}; give its place by numbers from 1, not {at}")
        k = 0
        for place, n in zip(at, block.shape, strict=True):
            k = k * n + place - 1
        return [text(Sum((term,))) for term in flat(block.entries[k])]

    def _form(self, form: str | None) -> str:
        form = form or self.form
        if form not in FORMS:
            raise NameNotFound("form", form, list(FORMS))
        return form

    # -- printers -------------------------------------------------------------------------------------
    def sheet(
        self, form: str | None = None, parts: Sequence[str] | None = None, progress: Progress | None = None
    ) -> Sheet:
        """What the printers print: the parts of the equation that are not zero, or those named."""
        form = self._form(form)
        blocks = []
        for name in parts or PARTS:
            if parts is None and name in ("friction", "springs") and not any(getattr(self.model, name)):
                continue
            if parts is None and not self.complete and any(m.startswith(name) for m in self.missing):
                continue
            blocks.append(self.block(name, form, progress))
        ring = self.derivation.dynamics.ring
        return Sheet(
            self.model.name,
            form,
            tuple(blocks),
            self.model.coordinates,
            ring.rates,
            ring.accelerations,
            self.parameters,
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if self.left_out:
            notes.append(f"Not in these equations: {', '.join(self.left_out)}.")
        if not self.complete:
            notes.append(f"The derivation was interrupted: {', '.join(self.missing[:8])} and so on are missing.")
        if any(not self.mechanism.description.kind_of(j).paired for j in range(self.mechanism.description.nj)):
            notes.append("Spherical and free joints are described by yaw, pitch and roll (Rz Ry Rx).")
        return tuple(notes)

    def recursive(self, quantity: str = "inverse_dynamics", **options: Any) -> Recursive:
        """Form (d): a quantity with intermediate variables, from the mechanism's own recursion."""
        from linkwright.symbolic.recursive import recursive

        options.setdefault("free", tuple(self.parameters_of_model))
        stem = self.model.coordinates[0].name.rstrip("0123456789")
        return recursive(self.mechanism, quantity, coordinates=stem, **options)

    @property
    def parameters_of_model(self) -> list[str]:
        """The parameters that the mechanism itself has, without angles that were named here."""
        return [name for name in self.parameters if name in self.mechanism.parameters]

    def count(self, form: str | None = None) -> Operations:
        """The operations that the code of a form takes."""
        return operations(self.sheet(form))

    def latex(self, form: str | None = None, *, document: bool = True) -> str:
        """A complete LaTeX document, or (document=False) its formulas alone."""
        from linkwright.symbolic.printing import latex_block, latex_document

        if self._form(form) == "recursive":
            return self.recursive().latex(document=document)
        sheet = self.sheet(form)
        return latex_document(sheet) if document else "\n".join(latex_block(block) for block in sheet.blocks)

    def python(self, form: str | None = None) -> str:
        """A Python module that needs nothing but `math`."""
        from linkwright.symbolic.printing import python_module

        if self._form(form) == "recursive":
            return self.recursive().python("inverse_dynamics")
        return python_module(self.sheet(form))

    def c(self, form: str | None = None) -> str:
        """A C99 file that needs nothing but `math.h`."""
        from linkwright.symbolic.printing import c_source

        if self._form(form) == "recursive":
            return self.recursive().c("inverse_dynamics")
        return c_source(self.sheet(form))

    def markdown(self, form: str | None = None) -> str:
        """A page of Markdown."""
        from linkwright.symbolic.printing import markdown_page

        if self._form(form) == "recursive":
            return self.recursive().markdown()
        return markdown_page(self.sheet(form))

    def html(self, form: str | None = None) -> str:
        """A web page that needs no network: formulas in MathML."""
        from linkwright.symbolic.printing import html_page

        return html_page(self.sheet(form))

    def save(self, path: str | PathLike[str], form: str | None = None) -> Path:
        """Write `.tex`, `.py`, `.c`, `.md` or `.html`, whole or not at all."""
        from linkwright.formats.files import write_whole

        writers = {".tex": self.latex, ".py": self.python, ".c": self.c, ".md": self.markdown, ".html": self.html}
        path = Path(path)
        if path.suffix not in writers:
            raise LinkwrightError(f"{path.name}: equations are saved as {', '.join(writers)}; choose such an ending")
        write_whole(path, writers[path.suffix](form))
        return path

    # -- numbers --------------------------------------------------------------------------------------
    def evaluate(
        self, q: ArrayLike, dq: ArrayLike | None = None, **parameters: float
    ) -> tuple[Floats, Floats, Floats]:
        """M, h and g in floating point, from the exact polynomials: one state, for checks."""
        n, ring = self.n, self.derivation.dynamics.ring
        for name in parameters:
            if name not in self.parameters:
                raise NameNotFound("parameter", name, list(self.parameters))
        states = [np.asarray(x, dtype=np.float64) for x in (q, np.zeros(n) if dq is None else dq)]
        for name, state in zip(("q", "dq"), states, strict=True):
            if state.shape != (n,):
                raise LinkwrightError(f"{name} has the shape {state.shape}; these equations take ({n},)")
        given = {**self.model.values, **parameters}
        for them, state in ((ring.coordinates, states[0]), (ring.rates, states[1])):
            given.update({s.name: float(x) for s, x in zip(them, state, strict=True)})
        x = ring.values(given)
        value = {p: float(ring.evaluate(self.polynomial(*p), x)[0]) for p in self._places()}
        m = np.array([[value["M", min(i, j), max(i, j)] for j in range(n)] for i in range(n)])
        return m, np.array([value["h", i] for i in range(n)]), np.array([value["g", i] for i in range(n)])

    def _places(self) -> list[tuple[Any, ...]]:
        upper = [("M", i, j) for i in range(self.n) for j in range(i, self.n)]
        return [*upper, *((name, i) for name in ("h", "g") for i in range(self.n))]

    @cached_property
    def regressor(self) -> Any:
        """F = Y(q, q̇, q̈) π, linear in the inertial parameters π."""
        from linkwright.symbolic.grouped import regressor

        return regressor(self.model)

    @cached_property
    def base(self) -> Any:
        """The smallest set of inertial parameters that the equations depend on, with how they are made of all."""
        from linkwright.symbolic.grouped import base_parameters

        return base_parameters(self.regressor)

    @staticmethod
    def _column(names: Any) -> Any:
        import sympy

        return sympy.Matrix([sympy.Symbol(name) for name in names])


def _check_masses(model: Model) -> None:
    """A mechanism without any mass has no dynamics."""
    bodies = [link.body for link in model.links if link.body is not None]
    if any(b.mass or any(b.inertia) for b in bodies) or any(model.armature):
        return
    text = (
        f"no body of {model.name!r} has a mass; give masses, centres and inertias (numbers or symbols), or ask for "
        'literal="inertial" to have them all as symbols'
    )
    raise ModelError(text)
