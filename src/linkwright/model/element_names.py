"""What messages and tables call constraints and forces: words of the language with the element's name."""

from __future__ import annotations

from collections.abc import Iterable

from linkwright.model.curve_elements import PointOnCurve
from linkwright.model.elements import (
    AppliedWrench,
    Bushing,
    Coupling,
    Element,
    GearPair,
    JointForce,
    PointConstraint,
    PointForce,
    PointOnLine,
    PointOnPlane,
    ReactionFriction,
    Rod,
)

_KINDS: dict[type[PointConstraint] | type[Element], str] = {
    Rod: "rod",
    PointOnLine: "point on line",
    PointOnPlane: "point on plane",
    PointOnCurve: "point on curve",
    Coupling: "coupling",
    GearPair: "gear pair",
    JointForce: "joint force",
    PointForce: "force",
    AppliedWrench: "wrench",
    Bushing: "bushing",
    ReactionFriction: "friction",
}


def kind_of_element(element: PointConstraint | Element) -> str:
    """Which kind of constraint or force an element is: "gear pair", "bushing"."""
    if isinstance(element, PointOnCurve) and element.contact:
        return "curve on curve"
    return _KINDS[type(element)]


def names_of_elements(elements: Iterable[PointConstraint | Element]) -> list[str]:
    """Each element with its kind, as "gear pair 'mesh'"; two curves that touch are one, "curve on curve 'touch'"."""
    names = (x.label if isinstance(x, PointOnCurve) else f"{kind_of_element(x)} {x.name!r}" for x in elements)
    return list(dict.fromkeys(names))
