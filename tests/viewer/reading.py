"""What a page or a scene holds, read back."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from sample_motions import Played

import linkwright as lw
from linkwright.viewer.page import animate
from linkwright.viewer.scene import scene


def scene_of(motion: Played, **options: Any) -> dict[str, Any]:
    return scene(motion.description, motion.time, motion.data, **options)


def animated(motion: Played | lw.Solution, path: Path, **options: Any) -> Path:
    """The path of a page with this motion."""
    if isinstance(motion, lw.Solution):
        return motion.animate(path, **options)
    return animate(scene_of(motion, **options), path)


def numbers(scene: dict[str, Any], name: str, width: int) -> np.ndarray:
    """An array of a scene's data: (T, bodies, width)."""
    raw = np.frombuffer(base64.b64decode(scene["data"][name]), "<f4")
    return raw.reshape(scene["data"]["count"], len(scene["bodies"]), width).astype(float)


def scene_in(page: str) -> dict[str, Any]:
    """The scene that a page carries."""
    found = re.search(r'<script type="application/json" id="scene">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])
