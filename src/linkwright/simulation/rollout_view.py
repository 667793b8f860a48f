"""A rollout in a notebook: some of its motions as curves, and the shapes and ranges of its arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwright.base.html import beside, heading, shown, span, table
from linkwright.viewer.framing import spread
from linkwright.viewer.notebook import Chart, svg

if TYPE_CHECKING:
    from linkwright.simulation.rollout import Rollout

#: Motions, samples and coordinates of a rollout that are drawn.
MOTIONS, SAMPLES, COORDINATES = 24, 80, 3


def output(motions: Rollout) -> str:
    """The output for motions side by side."""
    title = heading("rollout", repr(motions).removeprefix("<Rollout: ").removesuffix(">"))
    arrays = {name: getattr(motions, name) for name in ("time", "q", "v", "a", "y", "final_q", "final_v")}
    rows = [
        (name, " × ".join(f"{n:,}" for n in array.shape), *span(array))
        for name, array in arrays.items()
        if array is not None
    ]
    return shown(title, beside(*_curves(motions)), table(("array", "shape", "least", "greatest"), rows))


def _curves(motions: Rollout) -> list[str]:
    """The first coordinates of some of the motions, each a faint line."""
    if not isinstance(motions.q, np.ndarray) or motions.q.ndim < 2 or not motions.q.size or len(motions) < 2:
        return []
    q = motions.q.reshape(-1, *motions.q.shape[-2:])
    some, when = spread(len(q), MOTIONS), spread(len(motions), SAMPLES)
    part = np.asarray(q[np.ix_(some, when)], float)
    return [
        svg(Chart(f"q[{k}]", motions.time[when], part[:, :, k].T, faint=len(some) > 1))
        for k in range(min(q.shape[-1], COORDINATES))
    ]
