"""The recursive form of the equations: intermediate variables from our own tapes, for code that costs what they cost.

What is recorded is in `recorded_forms`; here the straight tapes are given names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.base.arguments import counted
from linkwright.base.locks import cached_property
from linkwright.dynamics.programs import ProgramFactory
from linkwright.errors import ModelError, NameNotFound
from linkwright.model.description import Description
from linkwright.symbolic.formulas.formula import Role, Symbol
from linkwright.symbolic.printing.code_statements import Operations
from linkwright.symbolic.printing.printed_sheet import QUANTITIES, RECURSIONS
from linkwright.symbolic.recursive.named_steps import Steps, steps
from linkwright.symbolic.recursive.recorded_forms import RegroupedTree, regressor, unrolled
from linkwright.symbolic.recursive.recursive_printing import (
    c,
    html_listing,
    latex_listing,
    markdown_listing,
    plain_listing,
    python,
    to_sympy,
)
from linkwright.tape.block import Block
from linkwright.tape.build import record
from linkwright.tape.runner import straightened

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism
    from linkwright.tape.program import Program

_LARGEST = 200_000  # operations that are still written in seconds


@dataclass(frozen=True)
class Input:
    """One array that the code takes: its name, and a symbol for each of its numbers."""

    name: str
    symbols: tuple[Symbol, ...]
    values: tuple[float, ...] = ()  # of parameters, as the model has them
    single: bool = False  # a number, no array


@dataclass(frozen=True)
class Recursive:
    """One quantity in recursive form: `steps` (with `steps.results` in the order of `shape`), and how it prints."""

    title: str
    quantity: str
    meaning: str
    inputs: tuple[Input, ...]
    letter: str  # of the result
    shape: tuple[int, ...]
    steps: Steps
    names: tuple[Symbol, ...]  # of the results
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()  # of a regressor: the inertial parameters that its columns belong to

    def __repr__(self) -> str:
        return f"<Recursive {self.quantity} of {self.title!r}: {len(list(self.steps)):,} steps, {self.count}>"

    @cached_property
    def count(self) -> Operations:
        """How many operations the code takes."""
        return _operations(self.steps.count())

    @cached_property
    def count_once(self) -> Operations:
        """How many of them depend on parameters alone: to be computed once where those stay."""
        return _operations(self.steps.count(self.steps.once))

    @property
    def cost(self) -> tuple[str, ...]:
        """The count in sentences."""
        total, once = self.count, self.count_once.total
        sentence = f"{counted(total.total, 'operation')}: {total}." if total.total else total.sentence
        if not once:
            return (sentence,)
        return sentence, f"Of these, {once:,} {'depends' if once == 1 else 'depend'} on parameters alone."

    @property
    def parameters(self) -> dict[str, float]:
        """The free parameters with the model's values, in the order of the argument p."""
        return {s.name: x for i in self.inputs for s, x in zip(i.symbols, i.values, strict=False)}

    def __iter__(self) -> Any:
        """(name, formula) of every step."""
        return ((step.symbol, step.formula) for step in self.steps)

    def python(self, name: str | None = None) -> str:
        """A Python module of one function; it needs `math` alone.

        `name` is that of the function; by default the quantity's. Returns the text.

        >>> import linkwright as lw
        >>> "def mass_matrix(q):" in lw.equations(lw.chain(1)).recursive("mass_matrix").python()
        True
        """
        return python(self, name)

    def c(self, name: str | None = None) -> str:
        """A C99 file of one function, without memory of its own; `name` as of `python`. Returns the text.

        >>> import linkwright as lw
        >>> "void inertia(" in lw.equations(lw.chain(1)).recursive("mass_matrix").c("inertia")
        True
        """
        return c(self, name)

    def text(self, *, digits: int | None = 6) -> str:
        """The steps as lines of plain text, `c2 = cos(q2)`; numbers of so many digits, or (None) all of theirs.

        >>> import linkwright as lw
        >>> print(lw.equations(lw.chain(1)).recursive("mass_matrix").text().splitlines()[-1])
          M11 = 0.00354167
        """
        return plain_listing(self, digits)

    def latex(self, *, document: bool = False, digits: int | None = 6) -> str:
        """Displays whose lines may break over pages, alone or as a whole document; `digits` as of `text`.

        >>> import linkwright as lw
        >>> lw.equations(lw.chain(1)).recursive().latex().splitlines()[0]
        '\\\\begingroup\\\\allowdisplaybreaks'
        """
        return latex_listing(self, digits, document=document)

    def markdown(self, *, digits: int | None = 6) -> str:
        """A page of Markdown with the formulas in dollar signs; `digits` as of `text`.

        >>> import linkwright as lw
        >>> lw.equations(lw.chain(1)).recursive().markdown().splitlines()[0]
        '# chain of 1'
        """
        return markdown_listing(self, digits)

    def html(self, *, digits: int | None = 6) -> str:
        """A web page that needs no network: the steps in MathML; `digits` as of `text`.

        >>> import linkwright as lw
        >>> lw.equations(lw.chain(1)).recursive().html()[:15]
        '<!doctype html>'
        """
        return html_listing(self, digits)

    def sympy(self) -> tuple[list[tuple[Any, Any]], list[Any]]:
        """(replacements, [result]), as `sympy.cse` gives them, in plain symbols; the result is a matrix.

        >>> import linkwright as lw
        >>> replacements, (matrix,) = lw.equations(lw.chain(2)).recursive("mass_matrix").sympy()
        >>> matrix.shape
        (2, 2)
        """
        return to_sympy(self)


def recursive(
    mechanism: Mechanism | Description,
    quantity: str = "inverse_dynamics",
    free: Sequence[str] | None = None,
    *,
    coordinates: str = "q",
    regrouped: bool = True,
    beyond: Sequence[str] = (),
) -> Recursive:
    """A quantity of the equations of motion in recursive form; those in `free` (None: all) are its last argument p.

    Quantities: "inverse_dynamics" (F of q, q̇, q̈, with all that acts), "forward_dynamics" (q̈ of q, q̇, F),
    "mass_matrix" (M), "bias" (h of q, q̇: velocity products alone), "gravity" (g), "regressor" (Y of q, q̇, q̈: see
    `recorded_forms.py`). Coordinates are q1, q2, ... in the mechanism's order; another stem can be chosen. Joints whose
    rates are not the derivatives of their coordinates (spherical, free) have the rates of the tape: velocities in the
    body's frame.

    `regrouped` moves inertia that joint forces cannot separate to the body before (see `recorded_forms.py`): fewer
    operations, the same forces to rounding. `beyond` names the force elements that closed forms lack, for a note.
    """
    d = mechanism if isinstance(mechanism, Description) else mechanism.description
    row = QUANTITIES.get(RECURSIONS.get(quantity, quantity))
    if row is None or not row.recursion:
        raise NameNotFound("quantity", str(quantity), list(RECURSIONS))
    quantity = row.recursion
    names = tuple(d.parameters) if free is None else tuple(free)
    if free is None:
        geared = {n for (array, _), e in d.bindings.items() if array == "gear" for n in e.names()}
        names = tuple(n for n in names if n not in geared)
    columns: tuple[str, ...] = ()
    block: Block | None
    shape: tuple[int, ...]
    factory = ProgramFactory(d)
    if factory.closed:
        first = factory.loop_constraints[0]
        text = f"{first} closes a loop or prescribes a motion; the recursive form is for trees of joints"
        raise ModelError(f"{text}; take the tape: mech.program('forward_dynamics')", element=first.name)
    if quantity == "regressor":
        program, block, columns = regressor(d, names)
        shape = (program.outputs[0].size, len(columns))
    else:
        moving = _without_gravity(d) if quantity == "bias" else d
        program = unrolled(moving, row.program, names, RegroupedTree if regrouped else None)
        block, shape = straightened(program), program.outputs[0].shape
    inputs = _inputs(d, program, names, coordinates)
    letter = f"dd{coordinates}" if quantity == "forward_dynamics" else RECURSIONS[quantity]
    results = _results(letter, shape, coordinates, quantity)
    flat = [s for i in inputs for s in i.symbols]
    _check_names([*flat, *dict.fromkeys(results)], names, coordinates)
    if block is None or len(block) > _LARGEST:
        count = sum(program.count().values())
        text = f"{quantity} of {d.name!r} takes {count} operations, or solves a system, and has no recursive form"
        raise ModelError(f"{text}; take its tape: mech.program({row.program!r}).to_c()", element=d.name)
    if quantity == "mass_matrix":
        block = straightened(_symmetric(program)) or block
    taken = {i.name for i in inputs} | set(d.parameters)
    notes = _notes(d, quantity, regrouped, coordinates)
    if beyond and quantity in ("inverse_dynamics", "forward_dynamics"):
        notes = (f"With {', '.join(beyond)}, which the closed forms do not have.", *notes)
    named_steps = steps(block, flat, results, taken)
    return Recursive(d.name, quantity, row.meaning, inputs, letter, shape, named_steps, tuple(results), notes, columns)


def _operations(tally: Mapping[str, int]) -> Operations:
    others = dict(tally)
    additions = sum(others.pop(name, 0) for name in ("add", "sub", "neg"))
    return Operations(additions, others.pop("mul", 0), others.pop("div", 0), sum(others.values()))


def _without_gravity(d: Description) -> Description:
    """The same mechanism without gravity and force elements."""
    bindings = {key: e for key, e in d.bindings.items() if key[0] != "gravity"}
    return replace(d, gravity=np.zeros(3), elements=(), bindings=bindings)


def _symmetric(program: Program) -> Program:
    """The program with one half of a symmetric matrix for both, and nothing that only the other half needs."""

    def mirrored(*arrays: Any) -> Any:
        m = program(*arrays)
        return np.triu(m) + np.triu(m, 1).T

    return record(mirrored, *(b.shape for b in program.inputs))


def _inputs(d: Description, program: Program, free: tuple[str, ...], stem: str) -> tuple[Input, ...]:
    roles: Mapping[str, tuple[str, Role]] = {
        "q": (stem, "coordinate"),
        "v": (f"d{stem}", "rate"),
        "a": (f"dd{stem}", "acceleration"),
        "tau": ("F", "force"),
    }
    inputs = []
    for buffer in program.inputs:
        if buffer.name == "p":
            values = tuple(float(d.parameters[n]) for n in free)
            inputs.append(Input("p", tuple(Symbol(n, "parameter") for n in free), values))
        elif buffer.name == "t":
            inputs.append(Input("t", (Symbol("t", "variable"),), single=True))
        else:
            name, role = roles[buffer.name]
            inputs.append(Input(name, tuple(_numbered(name, role, k, stem) for k in range(1, buffer.size + 1))))
    return tuple(inputs)


def _numbered(letter: str, role: Role, k: int, stem: str) -> Symbol:
    return Symbol(f"{letter}{k}", role, f"{stem}{k}" if role in ("rate", "acceleration") else "")


def _results(letter: str, shape: tuple[int, ...], stem: str, quantity: str) -> list[Symbol]:
    """F1, F2, ...; M11, M12, ... (M1_10 where numbers have two digits), M of both halves by one name."""
    if len(shape) == 1:
        role: Role = "force" if letter == "F" else "variable"
        role = "acceleration" if quantity == "forward_dynamics" else role
        return [_numbered(letter, role, k, stem) for k in range(1, shape[0] + 1)]
    gap = "_" if max(shape) > 9 else ""
    pairs = [(i + 1, j + 1) for i, j in np.ndindex(shape)]
    if quantity == "mass_matrix":
        pairs = [(min(pair), max(pair)) for pair in pairs]
    return [Symbol(f"{letter}{i}{gap}{j}", "variable") for i, j in pairs]


def _check_names(symbols: Sequence[Symbol], free: Sequence[str], stem: str) -> None:
    seen: set[str] = set()
    for symbol in symbols:
        if symbol.name in seen and symbol.name in free:
            text = f"the model's parameter {symbol.name!r} has the name of a coordinate, a force or a result"
            raise ModelError(f"{text}; rename it, or choose other coordinates than {stem!r}", element=symbol.name)
        if symbol.name in seen:
            text = f"with coordinates={stem!r} two things are named {symbol.name!r}; choose another stem, as 'theta'"
            raise ModelError(text, element=symbol.name)
        seen.add(symbol.name)


def _notes(d: Description, quantity: str, regrouped: bool, stem: str) -> tuple[str, ...]:
    notes = []
    if any(not d.kind_of(j).paired for j in range(d.nj)):
        notes.append(
            f"The last four {stem} of a spherical or free joint are Euler parameters e0, e1, e2, e3, and its rates "
            f"d{stem} are velocities in the body's frame, not derivatives of {stem}: these are not the yaw, pitch and "
            "roll of the closed forms, nor their rates."
        )
    if quantity == "regressor":
        ten = "m, mx, my, mz, Jxx, Jyy, Jzz, Jxy, Jxz, Jyz"
        notes.append(f"Each body has the columns {ten}, about its link's origin in link axes; motors have J.")
    elif regrouped:
        notes.append("Inertias are regrouped towards the base where joint forces cannot tell them apart.")
    return tuple(notes)
