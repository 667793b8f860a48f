"""Forces and initial conditions as statements of a `.mks` file, in the words that made them where these are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from linkwright.formats.mks.loads import allowed
from linkwright.formats.mks.values import computed
from linkwright.formats.mks.wording import Spelled, expression_text, name_text
from linkwright.model.description import Description
from linkwright.model.elements import AppliedWrench, Element, JointForce, PointForce
from linkwright.model.expression import Expression, Name, Number, replaced
from linkwright.model.force_laws import recognised
from linkwright.model.quantities import (
    COORDINATES,
    POSITIONS,
    RATES,
    VELOCITIES,
    Quantity,
    quantities,
    rate_names,
    turns,
)

_ORDER = ("stiffness", "rest", "length", "friction", "speed", "lower", "upper", "damping", "law", "effort limit")


def force_text(d: Description, force: Element) -> tuple[str, list[str]]:
    """The head and the attributes of a force."""
    if isinstance(force, AppliedWrench):
        return _wrench(d, force)
    if isinstance(force, JointForce):
        kind = d.kind_of(d.joint_names.position("joint", force.joint))
        names = COORDINATES.get(kind.name) or RATES.get(kind.name, ())
        where = name_text(force.joint) + (f".{_number(names[force.index], force.index)}" if kind.nv > 1 else "")
        coordinate = Quantity("joint", (force.joint,), force.index)
        pair = (Name("q"), Name("v"))
        spelled: dict[Expression, Expression] = {pair[1]: Spelled(quantity_text(d, replace(coordinate, rate=True)))}
        if kind.paired:
            spelled[pair[0]] = Spelled(quantity_text(d, coordinate))
        head, at = "TORQUE" if turns(kind.name, force.index) else "FORCE", [f"joint = {where}"]
    else:
        pair = (Name("d"), Name("dd"))
        ends = (force.first, force.second)
        spelled = {
            x: Spelled(quantity_text(d, Quantity("distance", ends, 0, rate)))
            for x, rate in zip(pair, (False, True), strict=True)
        }
        head, at = "FORCE", [f"triad = {name_text(end)}" for end in ends]
    kind_of_force, constants = recognised(force.law, *pair, d.parameters) or ("", {})
    if isinstance(force, PointForce):
        kind_of_force = "" if kind_of_force in ("friction", "actuator") else kind_of_force
        if "rest" in constants:
            constants["length"] = constants.pop("rest")
    if not kind_of_force or not _can_be_said(d, constants):
        return head, [*at, f"law = {_law(d, force.law, spelled)}"]
    parts = [f"{key} = {_law(d, constants[key], spelled)}" for key in _ORDER if key in constants]
    return kind_of_force.upper(), [*at, *parts]


def _can_be_said(d: Description, constants: Mapping[str, Expression]) -> bool:
    """Whether the reader takes these constants of an element, as they are now."""
    now = {key: computed(x.evaluate, d.parameters) for key, x in constants.items() if key != "law"}
    if any(x is None or not allowed(key, x) for key, x in now.items()):
        return False
    lower, upper = now.get("lower"), now.get("upper")
    return lower is None or upper is None or lower <= upper


def _wrench(d: Description, force: AppliedWrench) -> tuple[str, list[str]]:
    parts = [f"triad = {name_text(force.frame)}"]
    halves = {"force": force.laws[:3], "torque": force.laws[3:]}
    heads = [key for key, laws in halves.items() if any(law != Number(0.0) for law in laws)] or ["force"]
    for key in heads:
        parts.append(f"{key} = ({', '.join(_law(d, law, {}) for law in halves[key])})")
    if force.axes != "frame":
        # The word alone means ground's axes; in quotes it is the name of a triad.
        quoted = force.axes == "other" and force.axes_of.lower() == "ground"
        of = f'"{force.axes_of}"' if quoted else "ground" if force.axes == "ground" else name_text(force.axes_of)
        parts.append(f"axes = {of}")
    if force.reaction:
        parts.append(f"reaction = {name_text(force.reaction)}")
    return ("TORQUE" if heads == ["torque"] else "FORCE"), parts


def _law(d: Description, law: Expression, spelled: dict[Expression, Expression]) -> str:
    more: dict[Expression, Expression] = {x: Spelled(quantity_text(d, x)) for x in quantities(law)}
    return expression_text(replaced(law, {**more, **spelled}))


def quantity_text(d: Description, x: Quantity) -> str:
    """How a quantity is written."""
    if x.kind == "distance":
        return f"distance{'_rate' if x.rate else ''}({', '.join(map(name_text, x.of))})"
    if x.kind == "place":
        return f"{name_text(x.of[0])}.{(VELOCITIES if x.rate else POSITIONS)[x.index]}"
    kind = d.kind_of(d.joint_names.position("joint", x.of[0])).name
    names = rate_names(kind) if x.rate else COORDINATES[kind]
    return f"{name_text(x.of[0])}.{_number(names[x.index], x.index, 'v' if x.rate else 'q')}"


def _number(part: str, index: int, letter: str = "") -> str:
    """The name of a coordinate, or its number where places have that name too and would go first."""
    if part not in POSITIONS + VELOCITIES:
        return part
    return f"{letter or ('v' if part in VELOCITIES else 'q')}{index}"
