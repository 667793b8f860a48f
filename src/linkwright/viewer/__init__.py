"""The web animation: a motion as one HTML page that needs nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from linkwright.viewer.inline import Animation


@overload
def animate(solution: Any, path: str | os.PathLike[str], *, title: str | None = None) -> Path: ...
@overload
def animate(solution: Any, path: None = None, *, title: str | None = None, height: int | None = None) -> Animation: ...
def animate(
    solution: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    height: int | None = None,
) -> Path | Animation:
    """Write the motion of a solution as one self-contained HTML page, and give its path.

    The page holds everything that it needs and loads nothing; it can be opened from disk, sent and kept. Without a
    path it is an `Animation`, which notebooks show, `height` pixels high.
    """
    from linkwright.base.checks import path_text
    from linkwright.viewer.inline import HEIGHT, Animation
    from linkwright.viewer.page import page, write_page

    text = page(_scene(solution, title))
    if path is None:
        name = solution.description.name if title is None else title
        return Animation(text, str(name), HEIGHT if height is None else height)
    target = Path(path_text("an animation", path))
    write_page(target, text)
    return target


def _scene(solution: Any, title: str | None) -> dict[str, Any]:
    from linkwright.results.joints import one_coordinate
    from linkwright.results.series import loads
    from linkwright.results.solution import Solution
    from linkwright.viewer.scene import scene

    data = solution.arrays if isinstance(solution, Solution) else solution.data
    rates = ("velocity", "angular_velocity", "acceleration", "angular_acceleration")
    status = getattr(solution, "status", None)
    return scene(
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


__all__ = ["animate"]
