"""`lw.equations`: the equations of motion of a mechanism in closed form, written, printed, evaluated and linearised.

F + d = M(q) q̈ + h(q, q̇) + friction + springs + g(q). The derivation is exact.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, get_args
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import check_names, first_few, path_text
from linkwright.base.arrays import Floats
from linkwright.base.files import check_place, write_text
from linkwright.errors import LinkwrightError, LinkwrightWarning, ModelError
from linkwright.mechanism import Mechanism, mechanism_of
from linkwright.symbolic.derivation.literal import Model
from linkwright.symbolic.derivation.literal import literal as made_literal
from linkwright.symbolic.derivation.model_reading import model_of
from linkwright.symbolic.derivation.polynomial_dynamics import Dynamics, Way
from linkwright.symbolic.derivation.progress import SURE, Derivation, Estimate, Progress, check_size, estimate
from linkwright.symbolic.equation_parts import FORMS, Parts, meanings
from linkwright.symbolic.equilibria.balance import Force
from linkwright.symbolic.equilibria.quarter_turns import Equilibrium
from linkwright.symbolic.equilibria.states_of_rest import Equilibria, equilibria
from linkwright.symbolic.formulas.formula import Block
from linkwright.symbolic.formulas.ring import Compiled
from linkwright.symbolic.linear.linearisation import Linearisation, Point
from linkwright.symbolic.printing import PRINTERS, Operations, Sheet, latex_block, operations
from linkwright.symbolic.printing.mathml import SHORT, html_blocks
from linkwright.symbolic.printing.printed_sheet import PARTS, SHORTEST_FIRST
from linkwright.symbolic.recursive.recursive_form import Recursive, recursive

MOST = 10_000_000  # terms: some gigabytes
_NEARLY = 2e-3  # radians: a right angle written as 1.57


def equations(
    mech: Mechanism | str | PathLike[str],
    *,
    literal: str | Collection[str] = "named",
    numbers: Collection[str] | Literal["all"] = (),
    coordinates: str = "q",
    form: str | None = None,
    way: Way = "jacobian",
    round_angles: int | None = None,
    sums: bool | None = None,
    most: int = MOST,
    progress: Progress | None = None,
) -> Equations:
    """The equations of motion of the mechanism (or model file) `mech`, whose joints form a tree.

    - `literal`: which numbers become symbols: "named" (none but the model's own parameters), "inertial" (every mass,
      centre, inertia, motor inertia and friction), "all" (lengths and gravity too), or a collection of the words mass,
      com, inertia, armature, friction, lengths, gravity. `numbers` names parameters that become numbers, or "all".
    - `coordinates`: the letters of the coordinates: q1, q2, … with the rates dq1, … and accelerations ddq1, …
    - `form`: that of the properties and printers where no other is asked for: "collected" (multiple angles),
      "expanded", "grouped" (by inertial parameter) or "recursive" (with intermediate variables). By default collected,
      and expanded where multiple angles would be long. With "recursive" nothing is derived until it is asked for.
    - `way`: M by "jacobian" or by Lagrange's "trace" form: the same in the end.
    - `round_angles`: digits to which the cosines of angles are rounded that are no multiple of 15°; without it such an
      angle becomes a symbol.
    - `sums`: basic angles are sums along parallel axes (θ2, θ2 + θ3), or every joint's own; by default what makes M
      shorter.
    - `most`: terms from which a derivation is refused, by an estimate from its first links.
    - `progress`: called with the name of each entry, how many are done and how many there are. An interruption
      (Ctrl-C) leaves what was found: see `missing`.

    Spherical and free joints are described by yaw, pitch and roll (Rz Ry Rx).

    Returns the equations, an `Equations`. Raises `NameNotFound` for a word that `form`, `way`, `literal` or `numbers`
    does not know; `ModelError` for closed loops, drivers, and mechanisms without mass; `LinkwrightError` for a
    derivation of more than `most` terms.

    >>> import linkwright as lw
    >>> eq = lw.equations(lw.chain(2))
    >>> eq.M.shape, eq.joints
    ((2, 2), ('joint1', 'joint2'))
    """
    check_names("form", () if form is None else (form,), FORMS)
    check_names("way", (way,), get_args(Way))
    source = mechanism_of(mech)
    mechanism, model = _model(source, literal, numbers, coordinates, round_angles, sums)
    _check_masses(model)
    _warn_of_near_angles(model, mechanism)
    derivation = Derivation(model, way)
    if form != "recursive":
        check_size(model, way, most)
        derivation.run(progress)
    return Equations(mechanism, derivation, form, source.parameters)


def estimated(
    source: Mechanism,
    *,
    literal: str | Collection[str] = "named",
    numbers: Collection[str] | Literal["all"] = (),
    coordinates: str = "q",
    way: Way = "jacobian",
    round_angles: int | None = None,
    sums: bool | None = None,
) -> Estimate:
    """The size and the time of `equations` with the same options, from a short trial."""
    return estimate(_model(source, literal, numbers, coordinates, round_angles, sums)[1], way)


def _model(
    source: Mechanism,
    literal: str | Collection[str],
    numbers: Collection[str] | Literal["all"],
    coordinates: str,
    digits: int | None,
    sums: bool | None,
) -> tuple[Mechanism, Model]:
    """The mechanism with its symbols, and its elementary links."""
    mechanism = Mechanism(made_literal(source.description, literal, coordinates=coordinates))
    folded = mechanism.parameters if numbers == "all" else numbers
    d = mechanism.description

    def made(sums: bool) -> Model:
        return model_of(d, coordinates=coordinates, digits=digits, sums=sums, numbers=folded)

    model = made(sums is not False)
    summed = any(len(link.angle) > 1 for link in model.links)
    if sums is None and summed and len(model.coordinates) < SURE:
        model = min((model, made(False)), key=_terms_of_mass_matrix)
    return mechanism, model


def _terms_of_mass_matrix(model: Model) -> int:
    dynamics = Dynamics(model)
    dynamics.derive_mass_matrix()
    return sum(map(len, dynamics.upper()))


class Equations(Parts):
    """The equations of motion of one mechanism, F + d = M(q) q̈ + h(q, q̇) + friction + springs + g(q).

    `M`, `C`, `h`, `g`, `friction`, `springs`, the energies and `F` are SymPy's matrices and expressions; `block` gives
    them as exact formulas. `latex`, `python`, `c`, `markdown` and `html` print them, `evaluate` computes with them.
    """

    def __init__(
        self, mechanism: Mechanism, derivation: Derivation, form: str | None, declared: Collection[str] = ()
    ) -> None:
        super().__init__(derivation, form)
        self.mechanism = mechanism
        self._declared = frozenset(declared)  # parameters that the model had before its numbers were named

    # -- printers -------------------------------------------------------------------------------------
    def sheet(
        self, form: str | None = None, parts: Sequence[str] | None = None, progress: Progress | None = None
    ) -> Sheet:
        """What the printers print: the parts of the equation that are not zero, or those named.

        - `form`: "collected", "expanded" or "grouped"; by default that of the equations.
        - `parts`: names of parts, such as `("M", "g")`; by default M, h, g, and friction and springs if there are any.
        - `progress`: called with the name of each entry, how many are written and how many there are.

        An interruption (Ctrl-C) leaves the parts that were written, and a note. Returns the `Sheet`. Raises
        `NameNotFound` for other words.

        >>> import linkwright as lw
        >>> [block.name for block in lw.equations(lw.chain(2)).sheet(parts=("M", "g")).blocks]
        ['M', 'g']
        """
        form = self._form(form)
        names, missing = list(parts or self._parts()), [*self.missing]
        written: dict[str, Block] = {}
        try:
            for name in sorted(names, key=SHORTEST_FIRST.index):
                written[name] = self.block(name, form, progress)
        except KeyboardInterrupt:
            missing += [name for name in names if name not in written]
        blocks = [written[name] for name in names if name in written]
        ring, values = self.derivation.dynamics.ring, self._named
        if form == "grouped":
            values = self.regressor.symbol_values()
        notes = self._notes()
        if missing:
            some = first_few(missing, 6)
            notes = (*notes, f"The work was interrupted: {some} are missing.")
        moving = (self.model.coordinates, ring.rates, ring.accelerations)
        words = meanings(self.mechanism, self.model.coordinates, self._declared)
        return Sheet(self.model.name, form, tuple(blocks), *moving, values, words, notes=notes)

    def _short(self) -> Sheet | None:
        """The formulas where a notebook may draw them."""
        begun = self._derivation.begun and self.form != "recursive"
        return self.sheet() if begun and self._derivation.terms() <= SHORT else None

    def _repr_html_(self) -> str:
        sheet = self._short()
        return html_blocks(repr(self)[1:-1], sheet.blocks if sheet else (), sheet.notes if sheet else self._notes())

    def _repr_latex_(self) -> str | None:
        parts = [block._repr_latex_() for block in sheet.blocks] if (sheet := self._short()) else []
        return "\n\n".join(part for part in parts if part) or None

    def _parts(self) -> list[str]:
        """The parts of the equation that are whole and not zero."""
        begun = {entry[0] for entry in self.missing}
        empty = {name for name in ("friction", "springs") if not any(getattr(self.model, name))}
        return [name for name in PARTS if name not in begun | empty]

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if self.left_out:
            notes.append(f"Not in these equations: {', '.join(self.left_out)}.")
        if any(not self.mechanism.description.kind_of(j).paired for j in range(self.mechanism.description.nj)):
            notes.append("Spherical and free joints are described by yaw, pitch and roll (Rz Ry Rx).")
        return tuple(notes)

    def recursive(
        self, quantity: str = "inverse_dynamics", *, free: Sequence[str] | None = None, regrouped: bool = True
    ) -> Recursive:
        """Form (d): a quantity with intermediate variables, from the mechanism's own recursion.

        Quantities: "inverse_dynamics", "forward_dynamics", "mass_matrix", "bias", "gravity", "regressor". `free` are
        the parameters that stay symbols, by default those of these equations; `regrouped` moves inertia that joint
        forces cannot tell apart towards the base, which leaves fewer operations.

        Returns the steps, which print as the equations do. Raises `NameNotFound` for another quantity, and `ModelError`
        for a mechanism with too many operations to be written out.

        >>> import linkwright as lw
        >>> lw.equations(lw.chain(2)).recursive("mass_matrix").shape
        (2, 2)
        """
        if free is None:
            free = tuple(name for name in self._named if name in self.mechanism.parameters)
        stem = self.model.coordinates[0].name.rstrip("0123456789")
        return recursive(
            self.mechanism, quantity, tuple(free), coordinates=stem, regrouped=regrouped, beyond=self.left_out
        )

    def count(self, form: str | None = None) -> Operations:
        """The operations that the code of a form takes; of the recursive one, those of inverse dynamics.

        `form` is that of the printers; by default that of the equations. Returns an `Operations` with additions,
        multiplications, divisions, functions and their total. Raises `NameNotFound` for another form.

        >>> import linkwright as lw
        >>> lw.equations(lw.chain(1)).count().total
        2
        """
        if self._form(form) == "recursive":
            return self.recursive().count
        return operations(self.sheet(form))

    def latex(self, form: str | None = None, *, document: bool = True) -> str:
        """A complete LaTeX document, or (document=False) its formulas alone.

        `form` is "collected", "expanded", "grouped" or "recursive", here and in the other printers; by default that of
        the equations. Returns the text. Raises `NameNotFound` for another form, and `LinkwrightError` for a document of
        more than 20,000 terms.

        >>> import linkwright as lw
        >>> lw.equations(lw.chain(1)).latex(document=False)[:3]
        '\\\\[ '
        """
        if self._form(form) == "recursive":
            return self.recursive().latex(document=document)
        return self._printed("latex", form) if document else "\n".join(map(latex_block, self.sheet(form).blocks))

    def python(self, form: str | None = None) -> str:
        """A Python module that needs nothing but `math`: a function for each part, such as M(q, p), and PARAMETERS.

        `form` as of `latex`. Returns the text. Raises `NameNotFound` for another form, and `LinkwrightError` for a
        number that floating point cannot hold.

        >>> import linkwright as lw
        >>> "def M(q):" in lw.equations(lw.chain(1)).python()
        True
        """
        return self._printed("python", form)

    def c(self, form: str | None = None) -> str:
        """A C99 file that needs nothing but `math.h`: a function for each part, and a struct of the parameters.

        `form` as of `latex`. Returns the text; raises as `python` does.

        >>> import linkwright as lw
        >>> "#include <math.h>" in lw.equations(lw.chain(1)).c()
        True
        """
        return self._printed("c", form)

    def markdown(self, form: str | None = None) -> str:
        """A page of Markdown, its formulas in dollar signs.

        `form` as of `latex`. Returns the text. Raises `NameNotFound` for another form.

        >>> import linkwright as lw
        >>> lw.equations(lw.chain(1)).markdown().splitlines()[0]
        '# chain of 1'
        """
        return self._printed("markdown", form)

    def html(self, form: str | None = None) -> str:
        """A web page that needs no network: formulas in MathML.

        `form` as of `latex`. Returns the text. Raises `NameNotFound` for another form.

        >>> import linkwright as lw
        >>> lw.equations(lw.chain(1)).html()[:15]
        '<!doctype html>'
        """
        return self._printed("html", form)

    def _printed(self, language: str, form: str | None) -> str:
        if self._form(form) == "recursive":
            return str(getattr(self.recursive(), language)())
        return PRINTERS[language](self.sheet(form))

    def save(self, path: str | PathLike[str], form: str | None = None) -> Path:
        """Write `.tex`, `.py`, `.c`, `.md` or `.html`, whole or not at all.

        The ending of `path` chooses the printer; another ending raises `LinkwrightError`. `form` is that of the
        printers. Returns the path. Raises `LinkwrightError` for a place that cannot be written too. Example:
        `lw.equations("arm.urdf").save("arm.tex", form="recursive")`.
        """
        writers = {".tex": self.latex, ".py": self.python, ".c": self.c, ".md": self.markdown, ".html": self.html}
        path = Path(path_text("a file of equations", path))
        if path.suffix not in writers:
            raise LinkwrightError(f"{path.name}: equations are saved as {', '.join(writers)}; choose such an ending")
        check_place(path)
        write_text(path, writers[path.suffix](form))
        return path

    # -- numbers --------------------------------------------------------------------------------------
    def evaluate(self, q: ArrayLike, dq: ArrayLike | None = None, **parameters: float) -> tuple[Floats, Floats, Floats]:
        """M (..., n, n), h and g (..., n) in floating point, from the exact polynomials.

        - `q`: coordinates (..., n), rad and m.
        - `dq`: their rates (..., n), rad/s and m/s; zero unless given.
        - `parameters`: values of parameters by name, in SI units; those that are not given have the model's.

        Raises `LinkwrightError` for arrays of other shapes, `NameNotFound` for other parameters. For many states take
        the mechanism's own methods.

        >>> import linkwright as lw
        >>> M, h, g = lw.equations(lw.chain(2)).evaluate([0.1, 0.2], [1.0, 0.0])
        >>> M.shape, h.shape, g.shape
        ((2, 2), (2,), (2,))
        """
        n, ring = self.n, self.derivation.dynamics.ring
        check_names("parameter", parameters, self._named)
        states = [_numbers(x, name, n) for x, name in ((q, "q"), (np.zeros(n) if dq is None else dq, "dq"))]
        x = ring.values({**self.model.values, **parameters, **ring.motion(*states)})
        h, g = (Compiled([self.polynomial(name, i) for i in range(n)])(x) for name in ("h", "g"))
        m = Compiled([self.polynomial("M", min(at), max(at)) for at in np.ndindex(n, n)])(x)
        return m.reshape(*h.shape, n), h, g

    # -- around a motion ------------------------------------------------------------------------------
    def linearise(self, point: Point | Equilibrium | None = None) -> Linearisation:
        """M δq̈ + D δq̇ + K δq = δF, and ẋ = A x + B u: along any motion, or at a point.

        A point has numbers by the symbols' names (or SymPy's symbols), the coordinates in their order, or is an
        equilibrium. Rates and accelerations that a point does not name are zero there, and "free" keeps them symbols:
        `eq.linearise({"q1": 0, "q2": np.pi / 2})`. Coordinates are rad and m. By default no symbol is fixed.

        Returns the linear model. Raises `NameNotFound` for a name that is no symbol of the equations, `ModelError` for
        a value that is no finite number, and `LinkwrightError` where the derivation was interrupted.

        >>> import linkwright as lw
        >>> lw.equations(lw.chain(2)).linearise({"q1": 0, "q2": 0}).A.shape
        (4, 4)
        """
        numbers = point.point() if isinstance(point, Equilibrium) else point
        return Linearisation(self.derivation.dynamics, numbers, self.mechanism)

    def equilibria(
        self,
        forces: Mapping[str, Force] | Sequence[Force] | None = None,
        values: Mapping[str, float] | None = None,
        *,
        starts: int = 256,
        seed: int = 0,
    ) -> Equilibria:
        """The points where gravity and springs are in balance, or held by constant forces.

        `forces` are numbers or names of parameters, by coordinate. Points that are not exact are looked for with the
        parameters' `values` (otherwise the model's) from so many starts.

        - `forces`: N m and N, by the coordinates' names or one for each coordinate; by default none.
        - `values`: values of parameters by name, in SI units.
        - `starts`: 256 by default; `seed`: of the random ones among them.

        Returns the equilibria with their stability, and notes on the search. Raises `NameNotFound` for other names, and
        `ModelError` for values that are no finite numbers.

        >>> import linkwright as lw
        >>> [point.stability for point in lw.equations(lw.chain(1)).equilibria()]
        ['unstable', 'stable']
        """
        return equilibria(self.derivation.dynamics, forces, values, starts=starts, seed=seed)


def _warn_of_near_angles(model: Model, mechanism: Mechanism) -> None:
    """An angle that became a symbol and is nearly a multiple of 15° was perhaps meant to be one."""
    for name, value in model.values.items():
        if name in mechanism.parameters or name in {q.name for q in model.coordinates}:
            continue
        steps = round(value / (np.pi / 12))
        if 0 < abs(value - steps * np.pi / 12) < _NEARLY:
            text = (
                f"the fixed angle {name} = {value:.12g} is nearly {15 * steps}° and became a symbol; if that is meant, "
                f"write it with all its digits: {float(steps * np.pi / 12)!r}"
            )
            warn(text, LinkwrightWarning, stacklevel=3)


def _numbers(x: ArrayLike, name: str, n: int) -> Floats:
    try:
        state = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise LinkwrightError(f"{name} is {x!r}; give {n} numbers") from None
    if state.shape[-1:] != (n,):
        raise LinkwrightError(f"{name} has the shape {state.shape}; these equations take (..., {n})")
    return state


def _check_masses(model: Model) -> None:
    """A mechanism without any mass has no dynamics."""
    if any(link.body is not None and link.body.weighs for link in model.links) or any(model.armature):
        return
    text = (
        f"no body of {model.name!r} has a mass; give masses, centres and inertias (numbers or symbols), or ask for "
        'literal="inertial" to have them all as symbols'
    )
    raise ModelError(text)
