"""The start of a motion in the spanning tree's coordinates where the bodies are drawn in place already, with parameters
as inputs: so that the starts of many cases are one call of a program.

It only finds starts that are where the bodies are drawn, to `EXACT`, which is what `constraints/assembly.py` gives for
such drawings. All other cases are left to that.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints.newton import EXACT
from linkwright.dynamics.closed.motion_point import NONE, PointRecorder
from linkwright.model.description import GROUND
from linkwright.model.topology import driven_coordinates
from linkwright.spatial.algebra import Array, dot
from linkwright.tape.block import absolute, minimum, where
from linkwright.tape.program import Program

#: Steps of Newton's method from the start of the mechanism as declared.
STEPS = 10
#: How far a joint's axes in a loop may be from where they are as declared (a cosine), and angles from half a turn.
TILT, MARGIN = 0.5, 1e-6


def drawn_start(recorder: PointRecorder) -> Program | None:
    """q of the mechanism as declared, t, p → q where the bodies are drawn, and 1 where the constraints hold there.

    None where not all bodies are drawn, or where gears tell which turn an angle is in.
    """
    factory, tree = recorder.factory, recorder.factory.tree
    d = factory.description
    if d.start is None or not d.start.placed.all() or d.mimics:
        return None
    angles = _angles(recorder)

    def start(q: Array, t: Array, p: Array = NONE) -> Any:
        parameters = dict(zip(recorder.free, p, strict=True))
        point = recorder.point(q, t[0], p, STEPS)
        bodies = recorder.bodies(point.q, point.v, point.a, p)
        rotations = [tree.row("start_r", b, parameters) for b in range(d.nb)]
        places = [tree.row("start_p", b, parameters) for b in range(d.nb)]
        limits = [(point.gap, EXACT)]
        for shown, drawn in zip(bodies.origins()[0], places, strict=True):
            limits += [(absolute(x - y), EXACT * factory.size) for x, y in zip(shown, drawn, strict=True)]
        for shown, drawn in zip(bodies.turns()[0], rotations, strict=True):
            limits += [(absolute(x - y), EXACT) for x, y in zip(shown.reshape(-1), drawn.reshape(-1), strict=True)]
        limits += [(absolute(point.q[k]), np.pi - MARGIN) for k in angles]
        for now, declared in zip(_cosines(recorder, rotations, parameters), _declared(recorder), strict=True):
            limits.append((absolute(now - declared), TILT))
        good = reduce(minimum, [where(x <= most, 1.0, 0.0) for x, most in limits])
        return point.q, np.array([good])

    return recorder.recorded(start, recorder.nq, 1)


def _angles(recorder: PointRecorder) -> list[int]:
    """The coordinates that are angles within half a turn: those that no driver says."""
    d, x = recorder.factory.description, recorder.factory.tree.coordinates
    driven = driven_coordinates(d, {**d.parameters, "TIME": 0.0})
    joints = recorder.factory.tree.topology.joint.tolist()
    return [
        int(x.q_at[i]) + k
        for i, j in enumerate(joints)
        if d.kind_of(j).nq == d.kind_of(j).nv
        for k in d.kind_of(j).angles
        if (j, k) not in driven
    ]


def _cosines(recorder: PointRecorder, rotations: list[Any], parameters: dict[str, Any]) -> list[Any]:
    """Between the joint axes of each joint that closes a loop, and the other axes of those that do not turn."""
    d, tree = recorder.factory.description, recorder.factory.tree
    cosines: list[Any] = []
    for j in tree.topology.loops:
        kind = d.kind_of(j)
        if kind.name in ("spherical", "free"):
            continue
        frames = []
        for side, body in (("ri", int(d.parent[j])), ("rj", int(d.child[j]))):
            frame = tree.row(side, j, parameters)
            frames.append(frame if body == GROUND else np.asarray(rotations[body]) @ frame)
        first, second = frames
        cosines += [dot(first[:, k], second[:, k]) for k in ((2,) if kind.angles else (2, 0))]
    return cosines


def _declared(recorder: PointRecorder) -> Floats:
    d = recorder.factory.description
    return np.array(_cosines(recorder, [np.asarray(r, float) for r in d.start_r], {}), dtype=np.float64)
