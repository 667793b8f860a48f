r"""The laws of the common force elements, as expressions; and how to find a law's constants in an expression again.

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
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.errors import ModelError
from linkwright.model.expression import TIME, Call, Expression, Lookup, Name, Number, as_expression, replaced

Numeric = float | Expression
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
def written(function: Callable[..., Any], leaves: Sequence[Name], what: str) -> Any:
    """What a function of plain arithmetic and NumPy's functions gives for these leaves: expressions.

    It is called once, with the leaves that its parameters name, so that the law becomes data. Time is t, time or TIME.
    """
    known: dict[str, Expression] = {}
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
