"""Notebooks: small charts and drawings as SVG, and a mechanism's drawing with its tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import counted
from linkwright.base.arrays import Floats
from linkwright.base.html import ROWS, beside, folded, heading, number, safe, shown, table, vector
from linkwright.errors import LinkwrightError
from linkwright.model.body_motion import body_motion
from linkwright.model.coupling_relation import couplings
from linkwright.model.curve_elements import PointOnCurve, parts_of_curves
from linkwright.model.description import GROUND, Description
from linkwright.model.element_names import kind_of_element
from linkwright.model.elements import Coupling, PointConstraint
from linkwright.model.mechanism_views import body_table, joint_table
from linkwright.model.topology import span
from linkwright.model.tree import Tree
from linkwright.viewer.curve_parts import bodies_shown, curve_extent, curve_rims, massless_bodies
from linkwright.viewer.gear_parts import gear_rims
from linkwright.viewer.page import Motion, view_of
from linkwright.viewer.shapes import body_colors, seen_joints, skeleton, stretched

#: Colours that people with any colour vision tell apart, of a lightness that shows on white and on black.
COLOURS = ("#2f7fc1", "#d9602b", "#17a67c", "#c06fa3", "#c79200", "#62a8d8")
DASHES = ("", "6 2", "2 2", "7 2 2 2", "10 3", "3 3")
WIDTH, HEIGHT = 248, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 8, 22, 24
#: Buckets of time in which a long curve keeps its least and its greatest value.
_BUCKETS = 150


@dataclass(frozen=True, eq=False)
class Chart:
    """Curves y (T, n) over x (T,): a title, a label for each curve, and what is along the axes."""

    title: str
    x: Floats
    y: Floats
    labels: Sequence[str] = ()
    axis: str = ""
    faint: bool = False  # many curves of one kind, all alike


def svg(chart: Chart) -> str:
    """The chart; a curve is left open where it has no finite value."""
    x, y = thinned(np.asarray(chart.x, float), np.asarray(chart.y, float))
    good = np.isfinite(y)
    if not len(x) or not good.any():
        return ""
    low, high = _range(float(y[good].min()), float(y[good].max()))
    start, end = (float(x[0]), float(x[-1])) if x[-1] > x[0] else (float(x[0]) - 0.5, float(x[0]) + 0.5)
    across = (x - start) / (end - start) * (WIDTH - _LEFT - _RIGHT) + _LEFT
    with np.errstate(invalid="ignore", over="ignore"):
        down = HEIGHT - _BOTTOM - (y / (high - low) - low / (high - low)) * (HEIGHT - _TOP - _BOTTOM)
    parts = [_grid(low, high, start, end)]
    for k in range(y.shape[1]):
        ink = f'stroke="{COLOURS[0 if chart.faint else k % len(COLOURS)]}" fill="none" stroke-width="1.5"'
        dashes = "" if chart.faint else DASHES[k % len(DASHES)]
        more = f' stroke-dasharray="{dashes}"' if dashes else ' stroke-opacity=".35"' if chart.faint else ""
        parts.append(f'<path d="{_path(across, down[:, k], good[:, k])}" {ink}{more}/>')
    name = chart.title + (f": {chart.axis}" if chart.axis else "")
    parts.append(f'<text x="{_LEFT}" y="13" font-weight="600">{safe(name, 44)}</text>')
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    inside = f'<title>{safe(name, 200)}</title><g font-size="11" fill="currentColor">{"".join(parts)}</g>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {box} font-family="system-ui,sans-serif">{inside}</svg>'


def legend(labels: Sequence[str]) -> str:
    """What the curves are, once for several charts."""
    entries = []
    for k, label in enumerate(labels):
        dashes = f' stroke-dasharray="{DASHES[k % len(DASHES)]}"' if DASHES[k % len(DASHES)] else ""
        sample = f'<path d="M0 5H26" stroke="{COLOURS[k % len(COLOURS)]}" stroke-width="2" fill="none"{dashes}/>'
        drawn = f'<svg width="26" height="10" style="display:inline-block" aria-hidden="true">{sample}</svg>'
        entries.append(f'<span style="white-space:nowrap">{drawn} {safe(label)}</span>')
    return f'<p class="lw-soft">{" &nbsp; ".join(entries)}</p>' if entries else ""


def together(charts: Sequence[Sequence[str]]) -> list[str]:
    """One legend for several charts: at each place, whose colour is one, the labels that charts have there."""
    places = zip_longest(*charts, fillvalue="")
    return [", ".join(dict.fromkeys(filter(None, labels))) for labels in places]


def thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """A long curve by its least and greatest values in buckets of time, so that no peak is lost."""
    y = y.reshape(len(x), -1)
    if len(x) <= 2 * _BUCKETS + 2:
        return x, y
    edges = np.linspace(0, len(x), _BUCKETS + 1).astype(int)
    rows: list[int] = [0]
    values = [y[:1]]
    for a, b in pairwise(edges.tolist()):
        part = y[a:b]
        low: Floats = np.fmin.reduce(part, axis=0)
        high: Floats = np.fmax.reduce(part, axis=0)
        falls = part[0] > part[-1]
        first: Floats = np.where(falls, high, low)
        second: Floats = np.where(falls, low, high)
        rows += [a, b - 1]
        values += [first[None], second[None]]
    return x[np.array([*rows, len(x) - 1])], np.concatenate([*values, y[-1:]])


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers from low to high, at most so many."""
    raw = (high - low) / max(most, 1)
    if not (math.isfinite(raw) and raw > 0.0):
        return []
    power = 10.0 ** math.floor(math.log10(raw))
    if not power > 0.0:
        return []
    step = next((m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= raw), 10.0 * power)
    first = math.ceil(low / step - 1e-9)
    count = min(math.floor(high / step + 1e-9) - first + 1, most + 2)
    return [(first + k) * step for k in range(count)]


def _range(low: float, high: float) -> tuple[float, float]:
    """A little more than what the curves take, and never nothing."""
    if high - low <= 1e-9 * max(abs(low), abs(high)) or high == low:
        room = 0.5 * max(abs(low), abs(high)) or 1.0
        return low - room, high + room
    room = 0.06 * (high - low)
    return (low - room, high + room) if math.isfinite(high - low) else (low, high)


def _grid(low: float, high: float, start: float, end: float) -> str:
    parts = []
    for value in ticks(low, high, 4):
        y = HEIGHT - _BOTTOM - (value - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}" stroke="currentColor" stroke-opacity=".16"/>')
        parts.append(f'<text x="{_LEFT - 5}" y="{y + 3.5:.1f}" text-anchor="end" opacity=".75">{number(value)}</text>')
    for value in ticks(start, end, 5):
        x = _LEFT + (value - start) / (end - start) * (WIDTH - _LEFT - _RIGHT)
        place = f'x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="middle" opacity=".75"'
        parts.append(f"<text {place}>{number(value)}</text>")
    bottom = HEIGHT - _BOTTOM
    parts.append(f'<path d="M{_LEFT} {bottom}H{WIDTH - _RIGHT}" stroke="currentColor" stroke-opacity=".5"/>')
    return "".join(parts)


def _path(across: Floats, down: Floats, good: NDArray[np.bool_]) -> str:
    commands, pen = [], "M"
    for x, y, ok in zip(across.tolist(), down.tolist(), good.tolist(), strict=True):
        if ok:
            commands.append(f"{pen}{x:.1f} {y:.1f}")
        pen = "L" if ok else "M"
    # A point that stands alone shows by the round end of a line of no length.
    return commands[0] + "h.01" if len(commands) == 1 else "".join(commands)


PICTURE_WIDTH, PICTURE_HEIGHT, _EDGE = 260, 190, 16


def drawn(d: Description, q: Floats) -> str:
    """The mechanism at the coordinates q (nq,); nothing where its bodies have no finite place or no extent."""
    nothing = np.zeros((1, Tree(d, span(d)).coordinates.nv))
    poses = body_motion(d, q[None], nothing, nothing)
    values = {name: poses[name] for name in ("position", "orientation")}
    if not all(np.isfinite(x).all() for x in values.values()):
        return ""
    motion = Motion(np.zeros(1), {name: x[:, : bodies_shown(d)] for name, x in values.items()})
    bones, color_of = skeleton(d, motion, curve_extent(d, motion)), body_colors(d)

    def at(body: int, points: Any) -> Floats:
        return np.asarray(motion.places(body, points)[0])

    points = [at(b, p) for many in (bones.joined, bones.more) for b, p in many.items() if len(p)]
    rims = [*gear_rims(d, motion, bones.radius), *curve_rims(d, motion, bones.radius)]
    points += [at(body, rim) for body, rim in rims]
    if not points:
        return ""
    everything = np.concatenate(points)
    axes = view_of(motion, everything, d.gravity).axes[:2]
    flat = everything @ axes.T
    low, high = flat.min(axis=0), flat.max(axis=0)
    size = float(max(high[0] - low[0], high[1] - low[1]))
    if not size > 0.0:
        return ""
    wide, tall = PICTURE_WIDTH - 2 * _EDGE, PICTURE_HEIGHT - 2 * _EDGE
    scale = min(wide / max(high[0] - low[0], 1e-9 * size), tall / max(high[1] - low[1], 1e-9 * size))
    middle = 0.5 * (low + high)

    def seen(body: int, point: Any) -> tuple[float, float]:
        x, y = (at(body, point)[0] @ axes.T - middle) * scale
        return PICTURE_WIDTH / 2 + float(x), PICTURE_HEIGHT / 2 - float(y)

    parts = []
    for body, rim in rims:
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in (seen(body, point) for point in rim))
        ink = f"fill='{color_of(body)}' fill-opacity='.15' stroke='{color_of(body)}' stroke-width='1.2'"
        parts.append(f"<path d='M{line}z' {ink}><title>{safe(d.body_name(body))}</title></path>")
    outlined = {body for body, _ in rims}
    for thing, first, second in stretched(d, motion.count):
        a, b = seen(first.body, first.p), seen(second.body, second.p)
        parts.append(f"<path {_line(a, b)} stroke='currentColor' stroke-opacity='.55' stroke-dasharray='3 2'>")
        parts.append(f"<title>{safe(thing.name)}</title></path>")
    for k in seen_joints(d):
        if d.kind_of(k).name in ("prismatic", "cylindrical", "screw"):
            a, b = seen(int(d.parent[k]), d.pi[k]), seen(int(d.child[k]), d.pj[k])
            parts.append(f"<path {_line(a, b)} stroke='currentColor' stroke-opacity='.55' stroke-width='2'/>")
    for body in set(range(motion.count)) - massless_bodies(d):
        name = f"<title>{safe(d.body_names[body])}</title>"
        strong = [_line(seen(body, a), seen(body, b)) for a, b in bones.bars[body]]
        slim = [_line(seen(body, a), seen(body, b)) for a, b in bones.stalks[body]]
        for lines, thick in ((strong, 5), (slim, 2.5)):
            ink = f"stroke='{color_of(body)}' stroke-width='{thick}' stroke-linecap='round'"
            parts += [f"<path {place} {ink}>{name}</path>" for place in lines]
        if not strong and body not in outlined:
            x, y = seen(body, next(iter([*bones.joined[body], *bones.more[body]]), np.zeros(3)))
            box = f"x='{x - 6:.1f}' y='{y - 6:.1f}' width='12' height='12' rx='2'"
            parts.append(f"<rect {box} fill='{color_of(body)}'>{name}</rect>")
        elif strong and len(bones.joined[body]) < 2 and len(bones.more[body]):
            x, y = seen(body, bones.more[body][-1])
            parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='5' fill='{color_of(body)}'>{name}</circle>")
    for body, joined in bones.joined.items():
        for point in joined:
            x, y = seen(body, point)
            if body == GROUND:
                parts.append(
                    f"<path d='M{x:.1f} {y:.1f}l-6 10h12z' fill='currentColor' fill-opacity='.45'>"
                    f"<title>{safe(d.ground_name)}</title></path>"
                )
            parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='2.6' fill='#fff' stroke='#555' stroke-width='1.2'/>")
    box = f'viewBox="0 0 {PICTURE_WIDTH} {PICTURE_HEIGHT}" width="{PICTURE_WIDTH}" height="{PICTURE_HEIGHT}"'
    label = f'role="img" aria-label="{safe(d.name)}, drawn"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box} {label} fill="none">{"".join(parts)}</svg>'


def _line(a: tuple[float, float], b: tuple[float, float]) -> str:
    return f"d='M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}'"


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
    loops, related = len(mech.tree.topology.loops), len(list(couplings(d)))
    parts = sum(1 + bool(x.rolling) for x in d.contacts)  # of contacts, which are one each
    inside = set(parts_of_curves(d.point_constraints))
    count = mech.nb - len(inside)
    sizes = [
        ("bodies", count),
        *((("massless bodies of curves", len(inside)),) if inside else ()),
        ("coordinates nq", mech.nq),
        ("rates nv", mech.nv),
        *(
            (name, n)
            for name, n in (
                ("loops", loops),
                ("rods and point constraints", len(d.point_constraints) - related - parts),
                ("couplings", related),
                ("drivers", len(d.drivers)),
            )
            if n
        ),
        *((("mass (kg)", float(np.sum(d.mass))),) if np.any(d.mass) else ()),
        ("gravity (m/s²)", vector(d.gravity)),
    ]
    bodies = body_table([x for x in mech.bodies if x.name not in inside] if inside else mech.bodies) if mech.nb else ""
    joints = joint_table([x for x in mech.joints if x.name not in inside] if inside else mech.joints) if mech.nb else ""
    return shown(
        heading(mech.name, "mechanism"),
        beside(_picture(mech), table(("", ""), sizes)),
        folded(counted(count, "body", "bodies"), bodies),
        folded(counted(count, "joint"), joints, open_=0 < count <= _OPEN),
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
    loop_joints = (
        (d.joint_names[j], d.kind_of(j).name, d.body_name(int(d.parent[j])), d.body_name(int(d.child[j])))
        for j in loops[:ROWS]
    )
    yield _table("joint that closes a loop", ("joint", "kind", "from", "to"), loop_joints, len(loops))
    related = list(couplings(d))
    parts = {name for x in d.contacts for name in (x.second, x.rolling)}  # of contacts, which are one each
    held = [x for x in d.point_constraints if not isinstance(x, Coupling) and x.name not in parts]
    point_constraints = ((t.name, kind_of_element(t), ", ".join(_between(t, d))) for t in held[:ROWS])
    yield _table("rod or point constraint", ("name", "kind", "between"), point_constraints, len(held))
    relations = ((x.name, f"{_short(x.left)} = {_short(x.right)}") for x in related[:ROWS])
    yield _table("coupling", ("name", "relation"), relations, len(related))
    gears = (
        (m.name, d.joint_names[m.follower], d.joint_names[m.leader], float(m.ratio), float(m.offset))
        for m in d.mimics[:ROWS]
    )
    yield _table("gear", ("name", "joint", "follows", "ratio", "offset"), gears, len(d.mimics))
    drivers = ((x.name, x.kind, x.target, _short(x.law)) for x in d.drivers[:ROWS])
    yield _table("driver", ("driver", "kind", "drives", "law"), drivers, len(d.drivers))
    forces = ((x.name, kind_of_element(x), ", ".join(_ends(x))) for x in d.elements[:ROWS])
    yield _table("force", ("force", "kind", "on"), forces, len(d.elements))
    parameters = ((name, float(value)) for name, value in d.parameters.items())
    yield _table("parameter", ("parameter", "value"), parameters, len(d.parameters))


def _table(thing: str, head: Sequence[str], rows: Iterable[tuple[object, ...]], total: int) -> str:
    return folded(
        counted(total, thing, _PLURALS.get(thing, "")), table(head, rows, total) if total else "", open_=0 < total <= 4
    )


def _between(x: PointConstraint, d: Description) -> list[str]:
    """What a constraint holds together: frames, and curves by their names."""
    if not isinstance(x, PointOnCurve):
        return _ends(x)
    on = [y for y in d.point_constraints if isinstance(y, PointOnCurve) and x.contact and y.contact == x.contact]
    return [y.curve.name for y in on] or [x.curve.name, x.point]


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
