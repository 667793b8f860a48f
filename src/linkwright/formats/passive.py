"""Which of a mechanism's forces are the springs, dampers and friction that other formats have too."""

from __future__ import annotations

from dataclasses import dataclass

from linkwright.mechanism.checks import listed
from linkwright.mechanism.description import Description
from linkwright.mechanism.elements import Element, JointForce, PointForce, joint_losses
from linkwright.mechanism.expression import Expression, Name, Number
from linkwright.mechanism.laws import recognised

_Q, _V, _D, _DD = Name("q"), Name("v"), Name("d"), Name("dd")
Key = tuple[int, int] | str  # a joint's number and its coordinate's, or the name of a force between two places


@dataclass
class Passive:
    """What acts on a coordinate, or between two places, by itself."""

    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    ends: tuple[str, ...] = ()


def passive_forces(d: Description) -> tuple[dict[Key, Passive], list[str], list[str]]:
    """The forces by where they act; those that are none of these; what means something else in other formats."""
    found: dict[Key, Passive] = {}
    wrong: list[str] = []
    rubbed: list[str] = []
    done = _losses(d, found, rubbed)
    for element in d.elements:
        if element.name in done:
            continue
        why = _add(d, element, found, rubbed)
        if why:
            wrong.append(f"the force {element.name!r} ({why})")
    told = [f"the friction of {listed(rubbed)} is dry there, without the creep of tanh"] if rubbed else []
    names = {element.name for element in d.elements}
    idle = [
        d.joint_names[j]
        for j in range(d.nj)
        if (d.damping[j] or d.friction[j]) and d.kind_of(j).nv and not _acting(d, j, names)
    ]
    if idle:
        told.append(f"damping and friction of {listed(idle)}, which do not act here, act there")
    return found, wrong, told


def _acting(d: Description, j: int, names: set[str]) -> bool:
    return all(force.name in names for force in _own(d, j))


def _own(d: Description, j: int) -> tuple[JointForce, ...]:
    return joint_losses(d.joint_names[j], d.kind_of(j).nv, float(d.damping[j]), float(d.friction[j]))


def _losses(d: Description, found: dict[Key, Passive], rubbed: list[str]) -> set[str]:
    """Joints' own damping and friction; the names of the forces that they are."""
    done: set[str] = set()
    for j in range(d.nj):
        kind = d.kind_of(j)
        if not kind.nv or not (d.damping[j] or d.friction[j]):
            continue
        done |= {force.name for force in _own(d, j)}
        if d.friction[j]:
            rubbed.append(d.joint_names[j])
        # A ball or a free joint has one number for all its rates.
        for k in range(kind.nv if kind.paired else 1):
            found[j, k] = Passive(damping=float(d.damping[j]), friction=float(d.friction[j]))
        if kind.name == "free":
            found[j, 3] = found[j, 0]
    return done


def _add(d: Description, element: Element, found: dict[Key, Passive], rubbed: list[str]) -> str:
    """Put a force where it acts; why not, if it cannot be."""
    if isinstance(element, JointForce):
        j = d.joint_names.position("joint", element.joint)
        if not d.kind_of(j).paired:
            return f"on {d.kind_of(j).name} joint {element.joint!r}"
        if j in d.cuts:
            return f"on {element.joint!r}, which closes a loop"
        known = recognised(element.law, _Q, _V, list(d.parameters))
        key: Key = (j, element.index)
    elif isinstance(element, PointForce):
        known = recognised(element.law, _D, _DD, list(d.parameters))
        key = element.name
    else:
        return "applied to a body by a law"
    if known is None:
        return "a law of its own"
    kind, constants = known
    if kind not in ("spring", "damper", "friction") or (kind == "friction" and isinstance(key, str)):
        return f"a {kind}"
    numbers = {name: _value(d, law) for name, law in constants.items()}
    here = found.setdefault(key, Passive())
    if isinstance(element, PointForce):
        here.ends = (element.first, element.second)
    if kind == "spring":
        if here.stiffness:
            # Two springs on one coordinate are one.
            k = here.stiffness + numbers["stiffness"]
            if k == 0.0:
                return "a spring that undoes another"
            here.rest = (here.stiffness * here.rest + numbers["stiffness"] * numbers["rest"]) / k
            here.stiffness = k
        else:
            here.stiffness, here.rest = numbers["stiffness"], numbers["rest"]
        if numbers["stiffness"] < 0.0:
            return "a spring of negative stiffness"
    here.damping += numbers.get("damping", 0.0)
    if kind == "friction":
        here.friction += numbers["friction"]
        rubbed.append(element.name)
    return "" if here.damping >= 0.0 and here.friction >= 0.0 else "a negative damping or friction"


def _value(d: Description, law: Expression) -> float:
    return float(law.value) if isinstance(law, Number) else float(law.evaluate(d.parameters))
