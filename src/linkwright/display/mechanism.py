"""A mechanism in a notebook: a drawing, its sizes, and tables of bodies, joints, loops, drivers, forces, parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from linkwright.display.markup import ROWS, Markup, beside, folded, heading, line, number, safe, shown, table
from linkwright.display.picture import picture
from linkwright.views import Body, DofReport, Joint, count

#: Tables that are short enough are open.
_OPEN = 8


def mechanism(mech: Any) -> str:
    """The output for a mechanism; of a long one the first rows, and no drawing."""
    d = mech.description
    sizes = [
        ("bodies", mech.nb),
        ("coordinates nq", mech.nq),
        ("rates nv", mech.nv),
        *((name, n) for name, n in (("loops", _loops(mech)), ("ties", len(d.ties)), ("drivers", len(d.drivers))) if n),
        *((("mass (kg)", float(np.sum(d.mass))),) if np.any(d.mass) else ()),
        ("gravity (m/s²)", ", ".join(number(float(x)) for x in d.gravity)),
    ]
    summary = table(("", ""), sizes)
    return shown(
        heading(mech.name, "mechanism"),
        beside(picture(mech), summary),
        bodies(mech),
        joints(mech),
        *_more(mech),
    )


def bodies(mech: Any) -> str:
    """The table of bodies."""
    body = _bodies(mech.bodies) if mech.nb else ""
    return folded(count(mech.nb, "body", "bodies"), body)


def joints(mech: Any) -> str:
    """The table of the joints of the spanning tree."""
    body = _joints(mech.joints) if mech.nb else ""
    return folded(count(mech.nb, "joint"), body, open_=0 < mech.nb <= _OPEN)


def view(entries: Sequence[Any]) -> str:
    """The output for `mech.bodies` or `mech.joints`."""
    if not len(entries):
        return shown(line("none"))
    return shown(_bodies(entries) if isinstance(entries[0], Body) else _joints(entries))


def _bodies(entries: Sequence[Body]) -> str:
    rows = ((b.name, b.mass, _vector(b.com), b.parent, b.joint) for b in entries[:ROWS])
    return table(("body", "mass (kg)", "centre of mass (m)", "on", "by joint"), rows, len(entries))


def _joints(entries: Sequence[Joint]) -> str:
    first = entries[:ROWS]
    bounded = any(np.isfinite((j.lower, j.upper)).any() for j in first)
    rows = (
        (j.name, j.kind, j.parent, j.child, _slice(j.q_slice), _slice(j.v_slice))
        + ((_end(j.lower), _end(j.upper)) if bounded else ())
        for j in first
    )
    head = ("joint", "kind", "from", "to", "q", "v", *(("least", "most") if bounded else ()))
    return table(head, rows, len(entries))


def freedom(report: DofReport) -> str:
    """The output for a report on degrees of freedom."""
    rows: list[tuple[str, object]] = [
        ("degrees of freedom", report.degrees_of_freedom),
        *((("driven", report.drivers), ("left", report.left)) if report.drivers else ()),
        ("bodies", report.bodies),
        ("coordinates", report.coordinates),
        ("rates", report.rates),
        *((("loop equations", report.loop_equations),) if report.loop_equations else ()),
        *((("joints that follow another", report.couplings),) if report.couplings else ()),
        *((("rank of the constraints", report.rank),) if report.rank is not None else ()),
    ]
    redundant = table(("redundant equation",), ((x,) for x in report.redundant[:ROWS]), len(report.redundant))
    return shown(
        line(str(report)),
        line(report.problem, bad=True) if report.problem else "",
        table(("", ""), rows),
        folded(count(len(report.redundant), "redundant equation"), redundant if report.redundant else ""),
    )


def _loops(mech: Any) -> int:
    return len(mech.programs.topology.loops)


def _more(mech: Any) -> Iterator[str]:
    d = mech.description
    loops = mech.programs.topology.loops
    closing = (
        (d.joint_names[j], d.kind_of(j).name, mech._name(int(d.parent[j])), mech._name(int(d.child[j])))
        for j in loops[:ROWS]
    )
    yield _table("joint that closes a loop", ("joint", "kind", "from", "to"), closing, len(loops))
    ties = ((t.name, type(t).__name__, ", ".join(_ends(t))) for t in d.ties[:ROWS])
    yield _table("tie", ("tie", "kind", "between"), ties, len(d.ties))
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


def _table(thing: str, head: Sequence[str], rows: Iterator[tuple[object, ...]], total: int) -> str:
    plural = "joints that close loops" if thing.startswith("joint ") else f"{thing}s"
    return folded(count(total, thing, plural), table(head, rows, total) if total else "", open_=0 < total <= 4)


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


def _slice(s: slice) -> str:
    size = s.stop - s.start
    return "" if not size else f"{s.start}" if size == 1 else f"{s.start} … {s.stop - 1}"


def _end(x: float) -> object:
    return float(x) if np.isfinite(x) else ""


def _vector(x: Any) -> Markup:
    return Markup(safe(", ".join(number(float(y)) for y in x), 80))
