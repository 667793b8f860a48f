"""Transmission angles and pressure angles: how well a link that carries two forces moves the link that it leads to.

A link with two pins carries a force along the line of the pins, a block with a pin and a slide a force through the pin
across the slide. The pressure angle is that between this line and the way of the point at which the driven link takes
the force; the transmission angle is that between the line and the normal of the way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from linkwright.analysis.planar_chain import Chain, Connection, plane_of
from linkwright.base.arrays import Floats


@dataclass(frozen=True, eq=False)
class Transfer:
    """A link that carries two forces, from the `near` connection to the `far` one, by which it moves a driven link that
    a `guide` joins to ground."""

    link: str
    driven: str
    near: Connection
    far: Connection
    guide: Connection

    @property
    def name(self) -> str:
        """The link and what it moves."""
        return f"{self.link} on {self.driven}"

    def angles(self, q: Floats, normal: Floats) -> Floats:
        """(n,): the transmission angle (rad) at states (n, nb, 7), from 0 to π; NaN where there is no line."""
        near, far = (np.broadcast_to(c.point(q), (len(q), 3)) for c in (self.near, self.far))
        if self.far.kind == "slide":
            line, at = np.cross(normal, self.far.axis(q)), near
        elif self.near.kind == "slide":
            line, at = np.cross(normal, self.near.axis(q)), far
        else:
            line, at = near - far, far
        # The normal of the way: to the pivot of a driven link that turns, across the guide of one that slides.
        across = self.guide.point(q) - at if self.guide.kind == "pin" else np.cross(normal, self.guide.axis(q))
        across = np.broadcast_to(across, at.shape)
        line = np.broadcast_to(line, at.shape)
        sine = np.cross(across, line) @ normal
        cosine = np.sum(_in_plane(across, normal) * _in_plane(line, normal), axis=-1)
        none = np.hypot(sine, cosine) == 0.0
        return np.asarray(np.where(none, np.nan, np.arctan2(np.abs(sine), cosine)))


def _in_plane(x: Floats, normal: Floats) -> Floats:
    return np.asarray(x - np.multiply.outer(x @ normal, normal))


def transfers(chain: Chain, q: Floats, driven: tuple[int, ...], still: Collection[int] = ()) -> list[Transfer]:
    """The links that carry two forces, and the coupler of each four-bar and slider-crank on ground, that move a link
    which is joined to ground, away from the driven links; measured at a state (nb, 7). Links that stand `still` are
    moved by others."""
    steps = chain.distances([x for x in driven if x] or [0])
    in_loops = [(links, ends) for links, ends in chain.loops() if 0 in links and plane_of(ends, q) is not None]
    results: dict[tuple[int, int], Transfer] = {}
    for link in range(1, len(chain.names)):
        pairs = list(_pairs(chain, link))
        for links, ends in in_loops:
            k = links.index(0)
            if links[(k + 2) % 4] == link:
                pairs.append((ends[(k + 1) % 4], ends[(k + 2) % 4]))
        for one, other in pairs:
            for near, far in ((one, other), (other, one)):
                source, target = near.other(link), far.other(link)
                guide = next((c for c in chain.around[target] if 0 in c.links), None) if target else None
                if guide is None or not source or near.kind == far.kind == "slide" or link not in steps:
                    continue
                moves = steps.get(source, len(steps)) < steps[target]
                if moves and target not in driven and target not in still:
                    named = Transfer(chain.names[link], chain.names[target], near, far, guide)
                    results.setdefault((link, target), named)
    for cylinder in _cylinders(chain, driven):
        results.setdefault((-1, chain.names.index(cylinder.driven)), cylinder)
    return list(results.values())


def _cylinders(chain: Chain, driven: tuple[int, ...]) -> Iterator[Transfer]:
    """Two links that the input shifts along each other, each with one pin besides: together they carry two forces."""
    for first in driven:
        for slide in chain.around[first]:
            second = slide.other(first)
            ends = [[c for c in chain.around[link] if c is not slide] for link in (first, second)]
            if slide.kind != "slide" or second not in driven or any(len(x) != 1 for x in ends):
                continue
            near, far = ends[0][0], ends[1][0]
            target = far.other(second)
            guide = next((c for c in chain.around[target] if 0 in c.links), None) if target else None
            if guide is not None and near.kind == far.kind == "pin":
                name = f"{chain.names[first]} and {chain.names[second]}"
                yield Transfer(name, chain.names[target], near, far, guide)


def _pairs(chain: Chain, link: int) -> Iterator[tuple[Connection, Connection]]:
    ends = chain.around[link]
    if len(ends) == 2 and ends[0].other(link) != ends[1].other(link):
        yield ends[0], ends[1]
