"""A mechanism as a small drawing: bars between joints, seen as the animation sees them, where that is quick."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.html import safe
from linkwright.model.bodies import body_motion
from linkwright.model.description import GROUND, Description
from linkwright.model.topology import span
from linkwright.model.tree import Tree
from linkwright.viewer.figure import body_colors, skeleton
from linkwright.viewer.framing import view_of
from linkwright.viewer.joints import stretched
from linkwright.viewer.motion import Motion

WIDTH, HEIGHT, _EDGE = 260, 190, 16


def drawn(d: Description, q: Floats) -> str:
    """The mechanism at the coordinates q (nq,); nothing where its bodies have no finite place or no extent."""
    nothing = np.zeros((1, Tree(d, span(d)).coordinates.nv))
    poses = body_motion(d, q[None], nothing, nothing)
    values = {name: poses[name] for name in ("position", "orientation")}
    if not all(np.isfinite(x).all() for x in values.values()):
        return ""
    motion = Motion(np.zeros(1), values)
    bones, color_of = skeleton(d, motion, np.zeros((0, 3))), body_colors(d)

    def at(body: int, points: Any) -> Floats:
        return np.asarray(motion.places(body, points)[0])

    points = [at(b, p) for many in (bones.joined, bones.more) for b, p in many.items() if len(p)]
    if not points:
        return ""
    everything = np.concatenate(points)
    axes = view_of(motion, everything, d.gravity).axes[:2]
    flat = everything @ axes.T
    low, high = flat.min(axis=0), flat.max(axis=0)
    size = float(max(high[0] - low[0], high[1] - low[1]))
    if not size > 0.0:
        return ""
    wide, tall = WIDTH - 2 * _EDGE, HEIGHT - 2 * _EDGE
    scale = min(wide / max(high[0] - low[0], 1e-9 * size), tall / max(high[1] - low[1], 1e-9 * size))
    middle = 0.5 * (low + high)

    def seen(body: int, point: Any) -> tuple[float, float]:
        x, y = (at(body, point)[0] @ axes.T - middle) * scale
        return WIDTH / 2 + float(x), HEIGHT / 2 - float(y)

    parts = []
    for thing, first, second in stretched(d, d.nb):
        a, b = seen(first.body, first.p), seen(second.body, second.p)
        parts.append(f"<path {_line(a, b)} stroke='currentColor' stroke-opacity='.55' stroke-dasharray='3 2'>")
        parts.append(f"<title>{safe(thing.name)}</title></path>")
    for k in range(d.nj):
        if d.kind_of(k).name in ("prismatic", "cylindrical", "screw"):
            a, b = seen(int(d.parent[k]), d.pi[k]), seen(int(d.child[k]), d.pj[k])
            parts.append(f"<path {_line(a, b)} stroke='currentColor' stroke-opacity='.55' stroke-width='2'/>")
    for body in range(d.nb):
        name = f"<title>{safe(d.body_names[body])}</title>"
        strong = [_line(seen(body, a), seen(body, b)) for a, b in bones.bars[body]]
        slim = [_line(seen(body, a), seen(body, b)) for a, b in bones.stalks[body]]
        for lines, thick in ((strong, 5), (slim, 2.5)):
            ink = f"stroke='{color_of(body)}' stroke-width='{thick}' stroke-linecap='round'"
            parts += [f"<path {place} {ink}>{name}</path>" for place in lines]
        if not strong:
            x, y = seen(body, next(iter([*bones.joined[body], *bones.more[body]]), np.zeros(3)))
            box = f"x='{x - 6:.1f}' y='{y - 6:.1f}' width='12' height='12' rx='2'"
            parts.append(f"<rect {box} fill='{color_of(body)}'>{name}</rect>")
        elif len(bones.joined[body]) < 2 and len(bones.more[body]):
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
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    label = f'role="img" aria-label="{safe(d.name)}, drawn"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box} {label} fill="none">{"".join(parts)}</svg>'


def _line(a: tuple[float, float], b: tuple[float, float]) -> str:
    return f"d='M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}'"
