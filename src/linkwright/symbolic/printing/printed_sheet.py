"""What a printer prints: the blocks of equations with symbols, values and sentences; the quantities of equations;
names of symbols for each target.

Forms, printers and recursions read the table of quantities. The programs that it names are rows of
`dynamics.functions`.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

from linkwright.base.arguments import free_name
from linkwright.base.locks import cached_property
from linkwright.kernels.c.spelling import identifier as c_identifier
from linkwright.symbolic.formulas.formula import Block, Sum, Symbol, place, raised
from linkwright.symbolic.formulas.formula import symbols as symbols_of


@dataclass(frozen=True)
class Quantity:
    """A row of the table. The vectors q, q̇, q̈ are counted by their dots: 0, 1, 2."""

    heading: str
    symbol: str = ""  # the name by which formulas write it; "" is the quantity's own name
    of: tuple[int, ...] = (0,)  # the vectors that it depends on
    times: int | None = None  # the vector that it multiplies in the equation of motion
    recursion: str = ""  # the name of its recursive form
    program: str = ""  # the function of the mechanism that the recursive form is the program of
    meaning: str = ""  # what the recursive form computes, as the beginning of a sentence


QUANTITIES = {
    "F": Quantity(
        "Driving forces",
        recursion="inverse_dynamics",
        program="inverse_dynamics",
        meaning="The joint forces F that the accelerations need",
    ),
    "ddq": Quantity(
        "Accelerations",
        recursion="forward_dynamics",
        program="forward_dynamics",
        meaning="The accelerations that the joint forces F cause",
    ),
    "M": Quantity("Mass matrix", times=2, recursion="mass_matrix", program="mass_matrix", meaning="The mass matrix M"),
    "C": Quantity("Coriolis and centrifugal matrix", of=(0, 1), times=1),
    "h": Quantity(
        "Coriolis and centrifugal forces",
        of=(0, 1),
        recursion="bias",
        program="bias_forces",
        meaning="The velocity products h, without gravity and force elements",
    ),
    # "f" alone would be taken for the size of Coulomb friction.
    "friction": Quantity("Friction forces", symbol="F_fric", of=(0, 1)),
    "springs": Quantity("Springs", symbol="F_spring"),
    "g": Quantity(
        "Gravity forces",
        recursion="gravity",
        program="gravity_forces",
        meaning="The joint forces g that hold against gravity",
    ),
    "Y": Quantity(
        "Regressor",
        recursion="regressor",
        program="inverse_dynamics",
        meaning="The regressor Y, by which F is linear in the inertial parameters",
    ),
    "kinetic_energy": Quantity("Kinetic energy", symbol="T"),
    "potential_energy": Quantity("Potential energy", symbol="U"),
    "lagrangian": Quantity("Lagrangian", symbol="L"),
}
#: The terms of the equation of motion F + d = M q̈ + h + friction + springs + g, in this order; C q̇ may stand for h.
MOTION = ("M", "h", "C", "friction", "springs", "g")
#: The parts of the equation as they are printed, and those that are printed on request.
PARTS = ("M", "h", "g", "friction", "springs")
MORE = ("C", "kinetic_energy", "potential_energy", "lagrangian")
#: All parts by their length, so that an interruption of the writing leaves the short ones.
SHORTEST_FIRST = ("friction", "springs", "potential_energy", "g", "M", "kinetic_energy", "lagrangian", "h", "C")
#: The letter of each recursive form's results.
RECURSIONS = {row.recursion: letter for letter, row in QUANTITIES.items() if row.recursion}


_GREEK_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi "
    "psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
GREEK = dict(zip(_GREEK_NAMES.split(), "αβγδεζηθικλμνξοπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ", strict=True))
_LETTERS = {letter: name for name, letter in GREEK.items()} | {"ϑ": "theta", "ϕ": "phi", "ϵ": "epsilon", "ς": "sigma"}
_GREEK_FIRST = re.compile(rf"({'|'.join(sorted(GREEK, key=len, reverse=True))})(?=[\d_]|$)_*(.*)", re.DOTALL)
# One letter, and after it what reads as a subscript: digits (also 1_10, and 2b), a second letter (lg2), axes (Ixx1), or
# what follows "_".
_LETTER_FIRST = re.compile(r"([^\W\d_])(?:_+(.+)|([xyz]{0,3}\d*)|([^\W\d_]?\d*)|(\d+(?:_\d+)+|\d+[a-z]))", re.DOTALL)
_WORD = re.compile(r"(.*?[^\d_])_*(\d*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Split:
    """A name as a mathematician writes it: a stem (one letter, or a whole word) and a subscript."""

    stem: str
    subscript: str = ""

    @property
    def word(self) -> bool:
        """Whether the stem is a word rather than one letter."""
        return len(self.stem) != 1


def split(name: str) -> Split:
    """theta1 → θ, 1; lg2 → l, g2; Ixx1 → I, xx1; M1_10 → M, "1,10"; crank_length2 → crank_length, 2."""
    if match := _GREEK_FIRST.fullmatch(name):
        return Split(GREEK[match[1]], match[2])
    if match := _LETTER_FIRST.fullmatch(name):
        return Split(match[1], match[2] or match[3] or match[4] or (match[5] or "").replace("_", ","))
    if match := _WORD.fullmatch(name):
        return Split(match[1], match[2])
    return Split(name)


def letter(block: Block) -> Split:
    """A block's letter with its subscript."""
    row = QUANTITIES.get(block.name)
    return split(row.symbol if row and row.symbol else block.name)


def entry_letter(block: Block, place: str) -> Split:
    """The letter of one entry of a block, with its place in the subscript: M, 12."""
    whole = letter(block)
    return Split(whole.stem, f"{whole.subscript},{place}" if whole.subscript else place)


def greek_name(letter: str) -> str | None:
    """theta for θ; None for what is no Greek letter."""
    return _LETTERS.get(letter)


def folded(text: str) -> str:
    """The text in ASCII: Greek letters by name, other letters without accents, the rest by code point."""
    parts = []
    for letter in text:
        if letter.isascii():
            parts.append(letter)
        elif letter in _LETTERS:
            parts.append(_LETTERS[letter])
        else:
            plain = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
            parts.append(plain or f"u{ord(letter):x}")
    return "".join(parts)


def python_identifier(name: str, taken: Iterable[str]) -> str:
    """`name` as an identifier of Python, none of `taken`; letters stay what they are where Python allows them."""
    word = unicodedata.normalize("NFKC", name)
    if not word.isidentifier():
        word = re.sub(r"\W", "_", folded(name), flags=re.ASCII)
        word = re.sub(r"__+", "_", word).strip("_") or "x"
        word = f"x{word}" if word[0].isdigit() else word
    # A leading underscore is kept for the functions that a module brings along.
    word = word.lstrip("_") or "x"
    word = f"x{word}" if not word.isidentifier() else word
    word = f"{word}_" if keyword.iskeyword(word) else word
    used = taken if isinstance(taken, Set) else set(taken)
    return word if word not in used else free_name(f"{word}_", used, "n")


def ascii_identifier(name: str, taken: Iterable[str]) -> str:
    """`name` as an identifier of C, none of `taken`."""
    return c_identifier(folded(name), taken)


@dataclass(frozen=True)
class Sheet:
    """A set of equations to print.

    `parameters` gives a value to each parameter's name, or None where it has none; symbols of the blocks that are
    listed nowhere count as parameters without a value if that is their role, and else as variables. `meanings` may
    say of a symbol what it is.
    """

    title: str
    form: str
    blocks: tuple[Block, ...]
    coordinates: tuple[Symbol, ...]
    rates: tuple[Symbol, ...] = ()
    accelerations: tuple[Symbol, ...] = ()
    parameters: Mapping[str, float | None] = field(default_factory=dict)
    meanings: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def heading(self, block: Block) -> str:
        """The heading of a block, in words."""
        row = QUANTITIES.get(block.name)
        words = row.heading if row else block.name.replace("_", " ")
        return words[:1].upper() + words[1:]

    @cached_property
    def motion(self) -> list[tuple[Block, Quantity]]:
        """The right side of F + d = M q̈ + h + friction + springs + g, of the blocks that are there; empty without M."""
        blocks = {block.name: block for block in self.blocks}
        if "M" not in blocks:
            return []
        left_out = {"C"} if "h" in blocks else set()
        rows = {name: QUANTITIES[name] for name in MOTION if name in blocks.keys() - left_out}
        if "friction" in rows and not any(s.role == "coordinate" for s in used(blocks["friction"]).values()):
            rows["friction"] = replace(rows["friction"], of=(1,))
        return [(blocks[name], row) for name, row in rows.items()]

    @property
    def vectors(self) -> dict[str, tuple[Symbol, ...]]:
        """The coordinates, rates and accelerations, by the names of the vectors in code."""
        return {"q": self.coordinates, "dq": self.rates, "ddq": self.accelerations}

    @cached_property
    def symbols(self) -> dict[str, Symbol]:
        """Every symbol by its name: coordinates, rates, accelerations, parameters as listed, then the rest as met."""
        by_name = {s.name: s for s in (*self.coordinates, *self.rates, *self.accelerations)}
        for name in self.parameters:
            by_name.setdefault(name, Symbol(name))
        for block in self.blocks:
            for name, symbol in used(block).items():
                by_name.setdefault(name, symbol)
        return by_name

    @cached_property
    def values(self) -> dict[str, float | None]:
        """Every parameter's value, also of those that only the blocks name."""
        moving = {s.name for s in (*self.coordinates, *self.rates, *self.accelerations)}
        unlisted = {n: None for n, s in self.symbols.items() if s.role == "parameter" and n not in moving}
        return {**dict(self.parameters), **{n: v for n, v in unlisted.items() if n not in self.parameters}}

    @cached_property
    def terms(self) -> int:
        """How many terms the blocks have in all, each different entry once."""
        return sum(map(size, self.blocks))


def different(block: Block) -> tuple[list[Sum], list[int]]:
    """The different entries in order, and for each place which of them it holds.

    Long sums differ early or are one object, so that comparing them is cheaper than their hash.
    """
    distinct: list[Sum] = []
    by_length: dict[int, list[int]] = {}
    held = []
    for entry in block.entries:
        alike = by_length.setdefault(len(entry.terms), [])
        which = next((k for k in alike if distinct[k] is entry or distinct[k] == entry), None)
        if which is None:
            which = len(distinct)
            alike.append(which)
            distinct.append(entry)
        held.append(which)
    return distinct, held


def each_once(block: Block, write: Callable[[Sum], Any]) -> list[Any]:
    """What `write` makes of the entries, of each different one once."""
    distinct, held = different(block)
    written = [write(entry) for entry in distinct]
    return [written[which] for which in held]


def used(block: Block) -> dict[str, Symbol]:
    """The symbols of a block by name, in the order in which they are met."""
    met: dict[str, Symbol] = {}
    once = {id(factor): factor for entry in different(block)[0] for term in entry for factor, _ in term.factors}
    for factor in once.values():
        for name, symbol in symbols_of(raised(factor)).items():
            met.setdefault(name, symbol)
    return met


def size(block: Block) -> int:
    """The terms of a block's different entries."""
    return sum(map(terms, different(block)[0]))


def terms(formula: Sum) -> int:
    """The terms of a formula, those in its brackets included (a bracket of n terms counts n, not 1)."""
    total = 0
    for term in formula:
        inner = [terms(f) for f, _ in term.factors if isinstance(f, Sum)]
        total += sum(inner) if inner else 1
    return total


def places(block: Block) -> list[tuple[str, Sum]]:
    """The entries with their one-based place: "" (single), "2" (vector) or "12" ("1,12" beyond nine) by rows."""
    if not block.shape:
        return [("", block.entries[0])]
    if len(block.shape) == 1:
        return [(str(i + 1), entry) for i, entry in enumerate(block.entries)]
    columns, size = block.shape[1], max(block.shape)
    return [(place(divmod(k, columns), size), entry) for k, entry in enumerate(block.entries)]
