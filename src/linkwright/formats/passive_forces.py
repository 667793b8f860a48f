"""Which of a mechanism's forces are the springs, dampers and friction that other formats have too."""

from __future__ import annotations

from dataclasses import dataclass, replace

from linkwright.formats.xml import present
from linkwright.model.description import Description
from linkwright.model.elements import Bushing, Element, JointForce, PointForce, ReactionFriction
from linkwright.model.model_checks import listed
from linkwright.model.quantities import DD, D, Q, V, recognised

Key = tuple[int, int] | str  # a joint's number and its coordinate's, or the name of a force between two places


@dataclass
class Passive:
    """What acts on a coordinate, or between two places, by itself."""

    stiffness: float = 0.0
    reference: float = 0.0  # where the spring is slack
    damping: float = 0.0
    friction: float = 0.0
    ends: tuple[str, ...] = ()


def passive_forces(d: Description) -> tuple[dict[Key, Passive], list[str], list[str]]:
    """The forces by where they act; those that are none of these; what means something else in other formats."""
    forces: dict[Key, Passive] = {}
    wrong: list[str] = []
    rubbed: list[str] = []  # what has friction
    idle: list[str] = []  # joints whose damping and friction do not act
    losses: set[str] = set()
    names = {element.name for element in d.elements}
    for j in range(d.nj):
        of_joint = {force.name for force in d.losses(j)}
        if of_joint:
            losses |= of_joint
            _add_losses(d, j, forces, rubbed)
            idle += [] if of_joint <= names else [d.joint_names[j]]
    for element in d.elements:
        why = "" if element.name in losses else _add(d, element, forces, rubbed)
        if why:
            wrong.append(f"the force {element.name!r} ({why})")
    notes = {
        f"the friction of {listed(rubbed)} is dry there, without the creep of tanh": rubbed,
        f"damping and friction of {listed(idle)}, which do not act here, act there": idle,
    }
    return forces, wrong, present(notes)


def with_losses(d: Description) -> Description:
    """The mechanism with the damping and friction of its joints as forces."""
    return replace(d, elements=(*d.elements, *(force for j in range(d.nj) for force in d.losses(j))))


def without_losses(d: Description) -> Description:
    """The mechanism without the forces that the damping and friction of its joints are."""
    losses = {force.name for j in range(d.nj) for force in d.losses(j)}
    return replace(d, elements=tuple(force for force in d.elements if force.name not in losses))


def _add_losses(d: Description, j: int, forces: dict[Key, Passive], rubbed: list[str]) -> None:
    """A joint's own damping and friction."""
    kind = d.kind_of(j)
    if d.friction[j]:
        rubbed.append(d.joint_names[j])
    # A ball or a free joint has one number for all its rates.
    for k in range(kind.nv if kind.paired else 1):
        forces[j, k] = Passive(damping=float(d.damping[j]), friction=float(d.friction[j]))
    if kind.name == "free":
        forces[j, 3] = forces[j, 0]


def _add(d: Description, element: Element, forces: dict[Key, Passive], rubbed: list[str]) -> str:
    """Put a force where it acts; why not, if it cannot be."""
    if isinstance(element, JointForce):
        j = d.joint_names.position("joint", element.joint)
        if not d.kind_of(j).paired:
            return f"on {d.kind_of(j).name} joint {element.joint!r}"
        if j in d.cuts:
            return f"on {element.joint!r}, which closes a loop"
        known = recognised(element.law, Q, V, list(d.parameters))
        key: Key = (j, element.index)
    elif isinstance(element, PointForce):
        known = recognised(element.law, D, DD, list(d.parameters))
        key = element.name
    else:
        what = {Bushing: "a bushing", ReactionFriction: "friction that follows a reaction"}
        return what.get(type(element), "applied to a body by a law")
    if known is None:
        return "a law of its own"
    kind, constants = known
    if kind not in ("spring", "damper", "friction") or (kind == "friction" and isinstance(key, str)):
        return f"a {kind}"
    numbers = {name: float(law.evaluate(d.parameters)) for name, law in constants.items()}
    here = forces.setdefault(key, Passive())
    if isinstance(element, PointForce):
        here.ends = (element.first, element.second)
    if kind == "spring":
        if here.stiffness:
            # Two springs on one coordinate are one.
            k = here.stiffness + numbers["stiffness"]
            if k == 0.0:
                return "a spring that undoes another"
            here.reference = (here.stiffness * here.reference + numbers["stiffness"] * numbers["rest"]) / k
            here.stiffness = k
        else:
            here.stiffness, here.reference = numbers["stiffness"], numbers["rest"]
        if numbers["stiffness"] < 0.0:
            return "a spring of negative stiffness"
    here.damping += numbers.get("damping", 0.0)
    if kind == "friction":
        here.friction += numbers["friction"]
        rubbed.append(element.name)
    return "" if here.damping >= 0.0 and here.friction >= 0.0 else "a negative damping or friction"
