"""Where the bodies of a description are drawn; no mechanism is assembled here."""

from __future__ import annotations

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.errors import ModelError
from linkwright.model.description import GROUND, Description
from linkwright.model.joint_kinds import KINDS


def drawn(d: Description) -> tuple[Floats, Floats]:
    """Rotations and origins of the bodies as drawn; those not placed stand as joints at rest put them on the others."""
    start = None if d.start is None else (d.start.r[None], d.start.p[None])
    r, p = drawn_rows(d, d.ri[None], d.pi[None], d.rj[None], d.pj[None], start)
    return r[0], p[0]


def drawn_rows(
    d: Description, ri: Floats, pi: Floats, rj: Floats, pj: Floats, start: tuple[Floats, Floats] | None
) -> tuple[Floats, Floats]:
    """(n, nb, 3, 3) and (n, nb, 3): `drawn` for n mechanisms that differ by these numbers, the cases first."""
    n = len(ri)
    r, p = np.tile(np.eye(3), (n, d.nb, 1, 1)), np.zeros((n, d.nb, 3))
    known = np.zeros(d.nb, bool)
    if d.start is not None and start is not None:
        known |= d.start.placed
        r[:, known], p[:, known] = start[0][:, known], start[1][:, known]
    if known.all():
        return r, p
    around: dict[int, list[int]] = {}
    for j in range(d.nj):
        for body in (int(d.parent[j]), int(d.child[j])):
            around.setdefault(body, []).append(j)
    # What is placed tells more of its neighbours than ground does, which many joints reach.
    queue = [*np.flatnonzero(known).tolist(), GROUND]
    ground = np.broadcast_to(np.eye(3), (n, 3, 3)), np.zeros((n, 3))
    for here in queue:  # grows while it is gone through
        rh, ph = ground if here == GROUND else (r[:, here], p[:, here])
        for j in around.get(here, ()):
            outward = int(d.parent[j]) == here
            there = int(d.child[j] if outward else d.parent[j])
            if there == GROUND or known[there]:
                continue
            kind = KINDS[d.kind_of(j).name]
            neutral = kind.terms(kind.neutral(), d.pitch[j])
            turn = np.asarray(kind.rotation(neutral).matrix(), float)
            shift = np.asarray(kind.shift(neutral, d.pitch[j]), float)
            if outward:
                rn, pn, rf, pf = ri[:, j], pi[:, j], rj[:, j], pj[:, j]
            else:
                rn, pn, rf, pf, turn, shift = rj[:, j], pj[:, j], ri[:, j], pi[:, j], turn.T, -turn.T @ shift
            r[:, there] = rh @ rn @ turn @ rf.transpose(0, 2, 1)
            p[:, there] = ph + _turned(rh, pn + rn @ shift) - _turned(r[:, there], pf)
            known[there] = True
            queue.append(there)
    if not known.all():
        name = d.body_names[int(np.flatnonzero(~known)[0])]
        raise ModelError(f"no joint connects body {name!r} to ground; place it, or join it", element=name)
    return r, p


def _turned(r: Floats, p: Floats) -> Floats:
    return np.asarray((r @ p[:, :, None])[:, :, 0])
