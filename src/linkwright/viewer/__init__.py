"""The web animation: a motion as one HTML page that needs nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def animate(solution: Any, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
    """Write the motion of a solution as one self-contained HTML page, and give its path.

    The page holds everything that it needs and loads nothing; it can be opened from disk, sent and kept.
    """
    from linkwright.results.joints import one_coordinate
    from linkwright.results.series import loads
    from linkwright.results.solution import Solution
    from linkwright.viewer.page import page, write_page
    from linkwright.viewer.scene import scene

    data = solution.data
    rates = ("velocity", "angular_velocity", "acceleration", "angular_acceleration")
    status = getattr(solution, "status", None)
    made = scene(
        solution.description,
        solution.time,
        data["position"],
        data["orientation"],
        **{name: data[name] for name in rates if name in data},
        joints=one_coordinate(solution) if isinstance(solution, Solution) else (),
        loads=loads(solution.series) if isinstance(solution, Solution) else (),
        title=title,
        notes=() if status is None or status else (str(status),),
    )
    target = Path(path)
    write_page(target, page(made))
    return target


__all__ = ["animate"]
