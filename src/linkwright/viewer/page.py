"""The page: the arrays of a motion, from where it is seen, and one self-contained HTML file of it, alone or inside a
notebook.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import counted, path_text
from linkwright.base.arrays import Floats
from linkwright.base.files import write_bytes
from linkwright.base.locks import cached_property
from linkwright.errors import LinkwrightError, ModelError, ShapeError
from linkwright.model.body_motion import QUANTITIES
from linkwright.spatial.rotation import euler_parameters_matrix

#: What a page may hold of a motion, in bytes of float32 before they are written as base64.
BUDGET = 9_000_000
_SAMPLES = 240  # time points that sizes and views are judged by
_SAMPLED = 400_000  # body poses that are looked at for that


@dataclass(frozen=True, eq=False)
class Motion:
    """A motion of some bodies: time (T,), and for each quantity (T, bodies, width)."""

    time: Floats
    values: dict[str, Floats]
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return int(self.values["position"].shape[1])

    @cached_property
    def _rows(self) -> NDArray[np.intp]:
        most = int(np.clip(_SAMPLED // max(self.count, 1), 2, _SAMPLES))
        return spread(len(self.time), most)

    @cached_property
    def origins(self) -> Floats:
        """Where the bodies are at some time points (S, bodies, 3)."""
        return self.values["position"][self._rows]

    @cached_property
    def turns(self) -> Floats:
        """How the bodies are turned at these time points (S, bodies, 3, 3)."""
        return rotation_matrices(self.values["orientation"][self._rows])

    def places(self, body: int, points: Any) -> Floats:
        """Where points (n, 3) of a body come by (S, n, 3); ground, which is body −1, stays."""
        points = np.asarray(points, dtype=np.float64).reshape(-1, 3)
        if body < 0:
            return np.broadcast_to(points, (len(self.origins), *points.shape))
        places: Floats = self.origins[:, body, None, :] + points @ self.turns[:, body].transpose(0, 2, 1)
        return places

    def directions(self, body: int, direction: Any) -> Floats:
        """How a direction that is fixed to a body points (S, 3)."""
        direction = np.asarray(direction, dtype=np.float64)
        if body < 0:
            return np.broadcast_to(direction, (len(self.origins), 3))
        turned: Floats = self.turns[:, body] @ direction
        return turned


def checked(time: Any, quantities: Mapping[str, Any], bodies: int, drawn: int) -> Motion:
    """A motion that can be shown: arrays of the right shapes, finite, thinned out to what a page can hold."""
    t = np.asarray(time, dtype=np.float64)
    if t.ndim != 1:
        raise ShapeError(f"time has the shape {t.shape}; give one number per time point", given=t.shape, wanted=("T",))
    values = {}
    for name, (width, _, _) in QUANTITIES.items():
        if quantities.get(name) is None:
            continue
        array, wanted = np.asarray(quantities[name], dtype=np.float64), (len(t), bodies, width)
        if array.shape != wanted:
            raise ShapeError(f"{name} has the shape {array.shape}; give {wanted}", given=array.shape, wanted=wanted)
        values[name] = array[:, :drawn]
    if not len(t):
        raise ModelError("the solution has no time points, so that there is nothing to show; see its status for why")
    notes = []
    good = np.isfinite(t)
    for name in ("position", "orientation"):
        good &= np.isfinite(values[name]).all(axis=(1, 2))
    good &= (np.linalg.norm(values["orientation"], axis=-1) > 1e-6).all(axis=1)
    if not good.any():
        raise ModelError("the solution has no time point at which every body has a finite pose; nothing can be shown")
    if not good.all():
        t, values = t[good], {name: array[good] for name, array in values.items()}
        notes.append(f"{counted(int((~good).sum()), 'time point')} left out: the poses there are not finite")
    if (np.diff(t) < 0).any():
        raise ModelError("the times of the solution go back; sort its time points before it is shown")
    row = 8 + 4 * drawn * sum(QUANTITIES[name][0] for name in values)
    most = max(2, BUDGET // row)
    if len(t) > most:
        rows = spread(len(t), most)
        notes.append(f"{len(rows):,} of {len(t):,} time points are on this page, to keep it small")
        t, values = t[rows], {name: array[rows] for name, array in values.items()}
    e = values["orientation"]
    values["orientation"] = e / np.linalg.norm(e, axis=-1, keepdims=True)
    return Motion(t, values, tuple(notes))


def spread(count: int, most: int) -> NDArray[np.intp]:
    """At most so many numbers from 0 to count − 1, evenly, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))


def rotation_matrices(e: Floats) -> Floats:
    """The rotation matrices (..., 3, 3) of unit Euler parameters (..., 4), scalar first."""
    return np.moveaxis(euler_parameters_matrix(np.moveaxis(e, -1, 0)), (0, 1), (-2, -1))


def along(direction: Any) -> Floats:
    """A rotation whose z axis has this direction; the identity for no direction."""
    z = np.asarray(direction, dtype=np.float64)
    length = float(np.linalg.norm(z))
    if not length > 0.0:
        return np.eye(3)
    z = z / length
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


_FLAT = 1e-8  # of the motion's squares: what a planar motion may leave its plane
_THIN = 0.4  # a flat mechanism's depth, of its width


@dataclass(frozen=True, eq=False)
class View:
    """Axes of the picture as rows: right, up, and towards the eye. Planar motions are seen face-on."""

    planar: bool
    axes: Floats


def view_of(motion: Motion, points: Floats, gravity: Any) -> View:
    """The view of a motion whose bodies have these points (n, 3), in ground's axes at the first time."""
    g = np.asarray(gravity, dtype=np.float64)
    normal = _plane_normal(motion, points)
    if normal is not None:
        return View(True, _facing(normal, g))
    up = -g if np.linalg.norm(g) > 0.0 else np.array([0.0, 0.0, 1.0])
    up = up / np.linalg.norm(up)
    # The widest side across the picture, seen a little from its right.
    flat = points - points.mean(axis=0)
    flat = flat - np.outer(flat @ up, up)
    wide = _positive(np.linalg.svd(flat.T @ flat)[0][:, 0])
    if abs(wide @ up) > 0.5:
        wide = _positive(np.cross(up, [0.0, 1.0, 0.0] if abs(up[1]) < 0.9 else [0.0, 0.0, 1.0]))
    toward = np.cross(wide, up)
    turned = np.cos(0.55) * toward + np.sin(0.55) * wide
    return View(False, np.stack([np.cross(up, turned), up, turned]))


def box(corners: Floats, axes: Floats) -> tuple[Floats, Floats]:
    """The middle, in ground's axes, and the half sides of the box around points, along the picture's axes."""
    seen = corners.reshape(-1, 3) @ axes.T
    low, high = seen.min(axis=0), seen.max(axis=0)
    return 0.5 * (low + high) @ axes, 0.5 * (high - low)


def outermost(points: Floats, count: int = 96) -> Floats:
    """Those of many points (n, 3) that lie farthest out, each in one of so many directions spread over a sphere."""
    k = np.arange(count) + 0.5
    height, angle = 1.0 - 2.0 * k / count, np.pi * (1.0 + 5.0**0.5) * k
    ring = np.sqrt(1.0 - height**2)
    directions = np.stack([ring * np.cos(angle), ring * np.sin(angle), height], axis=1)
    best, value = np.zeros(count, np.intp), np.full(count, -np.inf)
    for start in range(0, len(points), 20_000):  # in pieces: a long motion of many bodies has millions of points
        far = points[start : start + 20_000] @ directions.T
        here = far.argmax(axis=0)
        better = far[here, np.arange(count)] > value
        best[better], value[better] = start + here[better], far.max(axis=0)[better]
    return points[np.unique(best)]


def _facing(normal: Floats, gravity: Floats) -> Floats:
    """The axes of a picture of a plane: up against gravity where that lies in the plane, else y, else z."""
    weight = gravity - (gravity @ normal) * normal
    if np.linalg.norm(weight) > 1e-6 * max(float(np.linalg.norm(gravity)), 1e-300):
        up = -weight
    else:
        up = np.array([0.0, 1.0, 0.0]) if abs(normal[2]) > 0.9 else np.array([0.0, 0.0, 1.0])
        up = up - (up @ normal) * normal
    up = up / np.linalg.norm(up)
    right = _positive(np.cross(up, normal))
    return np.stack([right, up, np.cross(right, up)])


def _positive(direction: Floats) -> Floats:
    """A unit vector whose largest component is positive."""
    unit = direction / np.linalg.norm(direction)
    return unit if unit[int(np.argmax(np.abs(unit)))] > 0 else -unit


def _plane_normal(motion: Motion, points: Floats) -> Floats | None:
    """The normal of the plane that everything moves in, or None where the motion is spatial."""
    spread = points - points.mean(axis=0)
    size = float(np.abs(spread).max()) or 1.0
    # Planar about n: no shift along n and no turn about anything but n; both are quadratic in n.
    shifts = ((motion.origins - motion.origins[:1]) / size).reshape(-1, 3)
    r = motion.turns @ motion.turns[0].transpose(0, 2, 1)
    spin = np.stack([r[..., 2, 1] - r[..., 1, 2], r[..., 0, 2] - r[..., 2, 0], r[..., 1, 0] - r[..., 0, 1]], axis=-1)
    spin = spin.reshape(-1, 3)
    moves = shifts.T @ shifts + np.eye(3) * (spin * spin).sum() - spin.T @ spin
    if np.trace(moves) > 1e-12:
        values, vectors = np.linalg.eigh(moves)
        free = vectors[:, values <= _FLAT * values[-1]]
        if not free.shape[1]:
            return None
    else:
        free = np.eye(3)
    # Several normals are left for a straight motion or none: the thinnest side of the mechanism, z before y before x.
    thickness = free.T @ (spread.T @ spread / size**2 + 1e-9 * np.diag([3.0, 2.0, 1.0])) @ free
    normal: Floats = free @ np.linalg.eigh(thickness)[1][:, 0]
    normal = np.where(np.abs(normal) < 1e-9, 0.0, normal)
    normal = normal / np.linalg.norm(normal)
    depth = float(np.ptp(points @ normal))
    across = points - np.outer(points @ normal, normal)
    if depth > _THIN * float(np.ptp(across, axis=0).max()):
        return None
    return normal


_SLOT = re.compile(r"\{\{(\w+)\}\}")


def page(scene: dict[str, Any]) -> str:
    """The page's text. It loads nothing: its policy forbids every request and every script but its own."""
    here = files("linkwright.viewer")
    try:
        bundle = (here / "bundle.js").read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LinkwrightError("the viewer's bundle.js is missing; build it with `make viewer`") from None
    style = (here / "style.css").read_text(encoding="utf-8")
    template = (here / "template.html").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; script-src {_hash(bundle)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    filled = {
        "policy": policy,
        "title": html.escape(" ".join(scene["title"].split()) or "Motion"),
        "style": style,
        "scene": _json(scene),
        "bundle": bundle,
    }
    # One pass, so that what is put in is never searched for places again.
    return _SLOT.sub(lambda match: filled[match[1]], template)


def _json(scene: dict[str, Any]) -> str:
    """JSON that can end no script block and start no comment in HTML; beyond ASCII everything is escaped."""
    text = json.dumps(scene, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


#: Unpacks the page and puts it in place of itself. The page's own policy goes with it.
_LOADER = (
    "const put=t=>{document.open();document.write(t);document.close()};"
    "const data=document.getElementById('page').textContent;"
    "if(window.DecompressionStream)new Response(new Blob([Uint8Array.from(atob(data),c=>c.charCodeAt(0))]).stream()"
    ".pipeThrough(new DecompressionStream('gzip'))).text().then(put);"
    "else document.body.textContent='This browser cannot unpack the animation; write it to a file: sol.animate(name)'"
)
HEIGHT = 460


class Animation:
    """The animation of a motion, which notebooks show; `save` writes it as a page. One output takes about 0.3 MB."""

    def __init__(self, text: str, title: str, height: int = HEIGHT) -> None:
        if isinstance(height, bool) or not isinstance(height, int) or not 100 <= height <= 4000:
            raise ModelError(f"height is {height!r}; give whole pixels from 100 to 4000")
        self.page, self.title, self.height = text, title, height

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it, whole or not at all, as one HTML file that any browser shows, and give its path."""
        target = Path(path_text("an animation", path))
        # A name may hold half a surrogate pair, which UTF-8 has no bytes for.
        write_bytes(target, self.page.encode("utf-8", "replace"))
        return target

    def __repr__(self) -> str:
        return f"<Animation {self.title!r}: {len(self.page) / 1e6:.1f} MB as a page; .save(name) writes it>"

    def html(self) -> str:
        """The animation as a piece of HTML: the page in a sandboxed frame."""
        return frame(self.page, self.title, self.height)

    def _repr_html_(self) -> str:
        return self.html()


def animate(
    scene: dict[str, Any], path: str | os.PathLike[str] | None = None, height: int | None = None
) -> Path | Animation:
    """Write a scene as one self-contained HTML page, and return its path.

    The page holds everything that it needs and loads nothing; it can be opened from disk, sent and stored. Without a
    path the scene becomes an `Animation`, which notebooks show, `height` pixels high.
    """
    animation = Animation(page(scene), scene["title"], HEIGHT if height is None else height)
    return animation if path is None else animation.save(path)


def frame(text: str, title: str, height: int = HEIGHT) -> str:
    """The page in a sandboxed frame: its scripts run, with an origin of their own and no way to the network."""
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None, "the page has a policy"
    allowed = policy[1].replace("script-src ", f"script-src {_hash(_LOADER)} ")
    packed = base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode("ascii")
    inner = (
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{allowed}">'
        f'<script type="text/plain" id="page">{packed}</script><body><script>{_LOADER}</script>'
    )
    about = f'title="{html.escape(" ".join(title.split()) or "Motion")}" height="{height}" loading="lazy"'
    size = 'style="width:100%;border:1px solid rgba(128,128,128,.4);border-radius:6px"'
    return f'<iframe sandbox="allow-scripts" {about} {size} srcdoc="{html.escape(inner)}"></iframe>'
