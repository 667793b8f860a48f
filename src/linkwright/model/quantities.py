"""What laws and initial conditions may name of a moving mechanism: coordinates, places, distances; and the laws of
the common force elements.

Each takes a coordinate x (or a distance) and its rate v, and gives the force along x:

- spring: −k (x − x₀) − c v
- damper: −c v
- friction: −F tanh(v / v₀): Coulomb friction without its jump. At v = v₀ it has 76 % of its full size and at 3 v₀
  99.5 %; below, it is a damper of F / v₀, so that a load creeps where dry friction would hold it.
- stop: k p (1 + c ṗ), never pulling, where p is how far x is beyond the limit: nothing between the limits; the
  damping c (s/m, s/rad) grows with the penetration, so that the force has no jump at the first touch.
- saturated: a law held between −limit and limit.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from linkwright.errors import ModelError, NameNotFound
from linkwright.model.expression import TIME, Call, Expression, Lookup, Name, Number, as_expression, parts, replaced
from linkwright.model.joint_kinds import KINDS
from linkwright.model.units import ANGLE, LENGTH, Dimension
from linkwright.model.units import TIME as TIMES

if TYPE_CHECKING:
    from linkwright.model.description import Description
    from linkwright.model.elements import Driver

_NAME = re.compile(r"[^\W\d][\w.\- ]*")

#: The components of a place: its origin's position, and as rates its velocity and angular velocity, in ground's axes.
POSITIONS = ("x", "y", "z")
VELOCITIES = ("vx", "vy", "vz", "wx", "wy", "wz")

#: What the coordinates of a joint are called, in their order, and which of them are angles.
COORDINATES: dict[str, tuple[str, ...]] = {
    "revolute": ("angle",),
    "screw": ("angle",),
    "prismatic": ("shift",),
    "cylindrical": ("angle", "shift"),
    "universal": ("angle1", "angle2"),
    "planar": ("x", "y", "angle"),
}
#: What the rates of a joint are called where they are not its coordinates' names with `_rate` after them.
RATES: dict[str, tuple[str, ...]] = {
    "revolute": ("rate",),
    "screw": ("rate",),
    "prismatic": ("rate",),
    "spherical": ("wx", "wy", "wz"),
    "free": VELOCITIES,
}


def rate_names(kind: str) -> tuple[str, ...]:
    """What the rates of a joint are called, in their order."""
    return RATES.get(kind) or tuple(f"{name}_rate" for name in COORDINATES.get(kind, ()))


def joint_words(kind: str, order: int) -> tuple[str, ...]:
    """What the coordinates (order 0), rates (1) or accelerations (2) of a joint are called."""
    coordinates, rates = COORDINATES.get(kind, ()), rate_names(kind)
    if order < 2:
        return rates if order else coordinates
    return ("acceleration",) if len(rates) == 1 else tuple(f"{name}_acceleration" for name in coordinates or rates)


def joint_index(kind: str, word: str, order: int) -> int | None:
    """Which coordinate, rate or acceleration of a joint a word means: its name, or q, v or a and its number."""
    names, letter = joint_words(kind, order), "qva"[order]
    if word in names:
        return names.index(word)
    coordinate = word.removesuffix("_rate")
    if order == 1 and coordinate != word and coordinate in COORDINATES.get(kind, ()):
        return COORDINATES[kind].index(coordinate)
    if word == letter and len(names) == 1:
        return 0
    if len(word) == 2 and word[0] == letter and word[1].isdecimal() and int(word[1]) < len(names):
        return int(word[1])
    return None


def turns(kind: str, index: int) -> bool:
    """Whether a coordinate (or rate) of a joint is an angle."""
    lengths = KINDS[kind].lengths[1]
    return index < len(lengths) and not lengths[index]


@dataclass(frozen=True)
class Quantity(Expression):
    """A number that depends on the state, or its rate.

    `joint`: coordinate (or rate) `index` of a joint; `place`: x, y, z of a frame's origin in ground's axes, as rates
    vx, vy, vz and wx, wy, wz; `distance`: between the origins of two frames. Metres, radians, seconds.
    """

    kind: Literal["joint", "place", "distance"]
    of: tuple[str, ...]
    index: int = 0
    rate: bool = False

    @property
    def key(self) -> str:
        """The name under which its value is found; no parameter has such a name."""
        if self.kind == "joint":
            return f"{self.of[0]}.{'v' if self.rate else 'q'}{self.index}"
        if self.kind == "place":
            return f"{self.of[0]}.{(VELOCITIES if self.rate else POSITIONS)[self.index]}"
        return f"distance{'_rate' if self.rate else ''}({', '.join(map(repr, self.of))})"

    def spoken(self, joint_kind: str = "") -> str:
        """How people write it; of a joint, its kind tells what its coordinates are called."""
        if self.kind == "distance":
            return f"distance{'_rate' if self.rate else ''}({', '.join(self.of)})"
        names = rate_names(joint_kind) if self.rate else COORDINATES.get(joint_kind, ())
        return f"{self.of[0]}.{names[self.index]}" if self.index < len(names) and self.kind == "joint" else self.key

    def evaluate(self, names: Mapping[str, Any]) -> Any:
        if self.key not in names:
            raise NameNotFound("quantity", self.key, list(names))
        return names[self.key]

    def names(self) -> frozenset[str]:
        return frozenset((self.key,))

    def __str__(self) -> str:
        return self.key


def quantities(*laws: Expression) -> Iterator[Quantity]:
    """The quantities that laws use, each once, in the order of their appearance."""
    yield from dict.fromkeys(part for part in parts(*laws) if isinstance(part, Quantity))


def spoken(description: Description, quantity: Quantity) -> str:
    """A quantity as people write it."""
    if quantity.kind != "joint":
        return quantity.spoken()
    joint = description.joint_names.position("joint", quantity.of[0])
    return quantity.spoken(description.kind_of(joint).name)


def dimension_of(description: Description, quantity: Quantity) -> Dimension:
    """The dimension of a quantity: a length or an angle, or the rate of one."""
    if quantity.kind == "joint":
        joint = description.joint_names.position("joint", quantity.of[0])
        angular = turns(description.kind_of(joint).name, quantity.index)
    else:
        angular = quantity.kind == "place" and quantity.rate and quantity.index >= len(POSITIONS)
    return (ANGLE if angular else LENGTH).times(TIMES, -1 if quantity.rate else 0)


def with_unit(description: Description, quantity: Quantity, value: float) -> str:
    """A value as people read it: angles and their rates in radians, with degrees in brackets."""
    if not dimension_of(description, quantity).angle:
        return f"{value:.6g}"
    per = "/s" if quantity.rate else ""
    return angle_text(value, per)


def angle_text(value: float, per: str = "") -> str:
    """An angle, or by `per` its rate, in radians with degrees in brackets."""
    return f"{value:.6g} rad{per} ({math.degrees(value):.6g}°{per})"


def drives_angle(d: Description, driver: Driver) -> bool:
    """Whether a driver prescribes an angle."""
    if driver.kind != "joint":
        return driver.kind == "angle"
    j = d.joint_names.find(driver.target)
    return j is not None and driver.index in d.kind_of(j).angles


def titled(text: str) -> tuple[str, str]:
    """The name and the expression of an output: "stroke = max(x)" has a name, any other text is its own."""
    name, sign, expression = text.partition("=")
    if not sign or expression.startswith("=") or not _NAME.fullmatch(name.strip()):  # a comparison, or none
        name = expression = text
    return name.strip(), expression.strip()


Numeric = float | Expression
#: The variables of laws: a coordinate and its rate, a distance and its rate.
Q, V, D, DD = Name("q"), Name("v"), Name("d"), Name("dd")
#: The speed v₀ (rad/s or m/s) at which friction has grown to tanh 1 of its size, unless a model says another.
FRICTION_SPEED = 0.01


def spring(x: Expression, v: Expression, stiffness: Numeric, neutral: Numeric, damping: Numeric = 0.0) -> Expression:
    """−stiffness · (x − rest) − damping · v; without damping, without its term."""
    law = -(as_expression(stiffness) * (x - neutral))
    return law if not isinstance(damping, Expression) and damping == 0.0 else law - as_expression(damping) * v


def damper(v: Expression, damping: Numeric) -> Expression:
    """−damping · v."""
    return -(as_expression(damping) * v)


def friction(v: Expression, size: Numeric, speed: Numeric = FRICTION_SPEED) -> Expression:
    """−size · tanh(v / speed)."""
    return -(as_expression(size) * (v / speed).tanh())


def stop(
    x: Expression, v: Expression, lower: Numeric | None, upper: Numeric | None, stiffness: Numeric, damping: Numeric
) -> Expression:
    """What pushes x back between its limits, of which one may be missing."""
    zero, k, c = Number(0.0), as_expression(stiffness), as_expression(damping)

    def push(beyond: Expression, inward: Expression) -> Expression:
        return Call("max", (zero, k * Call("max", (zero, beyond)) * inward))

    up = None if lower is None else push(as_expression(lower) - x, 1.0 - c * v)
    down = None if upper is None else push(x - upper, 1.0 + c * v)
    if up is None or down is None:
        only = -down if down is not None else up
        if only is None:
            raise ValueError("a stop has at least one limit")
        return only
    return up - down


def saturated(law: Expression, limit: Numeric) -> Expression:
    """The law between −limit and limit."""
    size = as_expression(limit)
    return Call("min", (Call("max", (law, -size)), size))


# -- laws given as Python functions ---------------------------------------------------------------------------------
def written(
    function: Callable[..., Any],
    leaves: Sequence[Name],
    what: str,
    more: Mapping[str, Expression] = MappingProxyType({}),
) -> Any:
    """What a function of plain arithmetic and NumPy's functions gives for these leaves: expressions.

    It is called once, with the leaves that its parameters name, so that the law becomes data. Time is t, time or TIME.
    `more` are further leaves by what parameters call them.
    """
    known: dict[str, Expression] = dict(more)
    for leaf in leaves:
        known |= dict.fromkeys(("t", "time", "TIME") if leaf == TIME else (leaf.name,), leaf)
    args, named = _arguments(function, known, what)
    advice = "it is called once, with names in place of numbers, so write it with arithmetic, np.sin and its like, "
    advice += "and lw.where; what only Python can compute goes to lw.simulate(tau=...)"
    try:
        law = function(*args, **named)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ModelError(f"the function of {what} cannot be taken as a law ({reason}); {advice}") from error
    return law


def _arguments(
    function: Callable[..., Any], known: dict[str, Expression], what: str
) -> tuple[list[Expression], dict[str, Expression]]:
    """What to call a function with: each parameter by its name, so that none is taken for another.

    Parameters that have a default keep it.
    """
    advice = f"its parameters are known by their names: {', '.join(known)}"
    args: list[Expression] = []
    named: dict[str, Expression] = {}
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        text = f"the function of {what} does not say what its parameters are called"
        raise ModelError(f"{text}; put it into a lambda: {advice}") from None
    for p in parameters:
        if p.default is not p.empty or p.kind is p.VAR_KEYWORD:
            continue
        if p.kind is p.VAR_POSITIONAL or p.name not in known:
            name = f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name
            raise ModelError(f"the function of {what} has the parameter {name!r}; {advice}")
        if p.kind is p.POSITIONAL_ONLY:
            args.append(known[p.name])
        else:
            named[p.name] = known[p.name]
    return args, named


def as_law(law: Any, what: str) -> Expression:
    """A number or expression as a law; anything else is a ModelError."""
    if isinstance(law, np.ndarray) and law.ndim == 0:
        law = law.item()
    if isinstance(law, Expression):
        return replaced(law, {})
    try:
        return Number(float(law))
    except (TypeError, ValueError):
        text = f"{what} has a law that is {type(law).__name__}; give a number, an expression of TIME, coordinates "
        raise ModelError(text + "and parameters, or a function of these") from None


# -- laws found again -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Slot(Name):
    """A place in a pattern that any expression of constants fills, or any at all."""

    any: bool = False


def match(pattern: Expression, law: Expression, constants: Collection[str]) -> dict[str, Expression] | None:
    """What fills the slots of a pattern to make it the law, or None; slots hold expressions of these constants."""
    filled: dict[str, Expression] = {}

    def fits(p: Expression, e: Expression) -> bool:
        if isinstance(p, Slot):
            if p.name in filled:
                return filled[p.name] == e
            filled[p.name] = e
            return p.any or e.names() <= set(constants)
        if isinstance(p, Call):
            return (
                isinstance(e, Call)
                and e.function == p.function
                and all(fits(a, b) for a, b in zip(p.arguments, e.arguments, strict=True))
            )
        return not isinstance(p, Lookup) and p == e

    return filled if fits(pattern, law) else None


def recognised(
    law: Expression, x: Expression, v: Expression, constants: Collection[str]
) -> tuple[str, dict[str, Expression]] | None:
    """The kind of element that has this law of x and v, and its constants; None if it is a law of its own."""
    k, c, low, high = Slot("stiffness"), Slot("damping"), Slot("lower"), Slot("upper")
    patterns = (
        ("spring", spring(x, v, k, Slot("rest"), c)),
        ("spring", spring(x, v, k, Slot("rest"))),
        ("damper", damper(v, c)),
        ("friction", friction(v, Slot("friction"), Slot("speed"))),
        ("stop", stop(x, v, low, high, k, c)),
        ("stop", stop(x, v, low, None, k, c)),
        ("stop", stop(x, v, None, high, k, c)),
        ("actuator", saturated(Slot("law", any=True), Slot("effort limit"))),
    )
    for kind, pattern in patterns:
        filled = match(pattern, law, constants)
        if filled is not None:
            return kind, filled
    return None
