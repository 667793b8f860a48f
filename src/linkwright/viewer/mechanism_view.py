"""A mechanism in a notebook: a drawing, its sizes, and tables of bodies, joints, loops, drivers, forces, parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from linkwright.base.html import ROWS, beside, folded, heading, shown, table, vector
from linkwright.base.text import counted
from linkwright.errors import LinkwrightError
from linkwright.model.views import body_table, joint_table
from linkwright.viewer.notebook import drawn

#: Bodies up to which a mechanism is drawn, and up to which a closed one is assembled for it.
DRAWN, ASSEMBLED = 120, 40
_PLURALS = {
    "joint that closes a loop": "joints that close loops",
    "rod or point constraint": "rods and point constraints",
}
#: Tables that are short enough are open.
_OPEN = 8


def mechanism(mech: Any) -> str:
    """The output for a mechanism; of a long one the first rows, and no drawing."""
    d = mech.description
    loops = len(mech.tree.topology.loops)
    sizes = [
        ("bodies", mech.nb),
        ("coordinates nq", mech.nq),
        ("rates nv", mech.nv),
        *(
            (name, n)
            for name, n in (("loops", loops), ("rods and point constraints", len(d.ties)), ("drivers", len(d.drivers)))
            if n
        ),
        *((("mass (kg)", float(np.sum(d.mass))),) if np.any(d.mass) else ()),
        ("gravity (m/s²)", vector(d.gravity)),
    ]
    bodies = body_table(mech.bodies) if mech.nb else ""
    joints = joint_table(mech.joints) if mech.nb else ""
    return shown(
        heading(mech.name, "mechanism"),
        beside(_picture(mech), table(("", ""), sizes)),
        folded(counted(mech.nb, "body", "bodies"), bodies),
        folded(counted(mech.nb, "joint"), joints, open_=0 < mech.nb <= _OPEN),
        *_more(mech),
    )


def _picture(mech: Any) -> str:
    """The drawing as SVG, where it is quickly computed and shows something; else nothing."""
    if not 0 < mech.nb <= (ASSEMBLED if mech.closed else DRAWN):
        return ""
    try:
        q = mech.assemble() if mech.closed else mech.neutral()
    except (LinkwrightError, np.linalg.LinAlgError):
        return ""  # a mechanism that cannot be assembled has no place for its bodies
    return drawn(mech.description, q)


def _more(mech: Any) -> Iterator[str]:
    d = mech.description
    loops = mech.tree.topology.loops
    closing = (
        (d.joint_names[j], d.kind_of(j).name, d.body_name(int(d.parent[j])), d.body_name(int(d.child[j])))
        for j in loops[:ROWS]
    )
    yield _table("joint that closes a loop", ("joint", "kind", "from", "to"), closing, len(loops))
    ties = ((t.name, type(t).__name__, ", ".join(_ends(t))) for t in d.ties[:ROWS])
    yield _table("rod or point constraint", ("name", "kind", "between"), ties, len(d.ties))
    gears = (
        (m.name, d.joint_names[m.follower], d.joint_names[m.leader], float(m.ratio), float(m.offset))
        for m in d.mimics[:ROWS]
    )
    yield _table("coupling", ("name", "joint", "follows", "ratio", "offset"), gears, len(d.mimics))
    drivers = ((x.name, x.kind, x.target, _short(x.law)) for x in d.drivers[:ROWS])
    yield _table("driver", ("driver", "kind", "drives", "law"), drivers, len(d.drivers))
    forces = ((x.name, type(x).__name__, ", ".join(_ends(x))) for x in d.elements[:ROWS])
    yield _table("force", ("force", "kind", "on"), forces, len(d.elements))
    parameters = ((name, float(value)) for name, value in d.parameters.items())
    yield _table("parameter", ("parameter", "value"), parameters, len(d.parameters))


def _table(thing: str, head: Sequence[str], rows: Iterable[tuple[object, ...]], total: int) -> str:
    return folded(
        counted(total, thing, _PLURALS.get(thing, "")), table(head, rows, total) if total else "", open_=0 < total <= 4
    )


def _ends(thing: Any) -> list[str]:
    names = ("first", "second", "line", "plane", "point", "joint", "frame", "reaction")
    return [str(getattr(thing, name)) for name in names if getattr(thing, name, "")]


def _short(law: Any) -> str:
    """A law as text, without the brackets around all of it."""
    text = str(law)
    depth = [0]
    for letter in text[:-1]:
        depth.append(depth[-1] + (letter == "(") - (letter == ")"))
    return text[1:-1] if text[:1] == "(" and text[-1:] == ")" and min(depth[1:]) > 0 else text
