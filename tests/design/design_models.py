"""Small models whose outputs are known in closed form, and differences to hold derivatives against."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

import linkwright as lw

ROOT = Path(__file__).parents[2]

OSCILLATOR = """
MODEL oscillator
SYSTEM (DYNAMIC ANALYSIS, ending time = 1.5, print interval = 0.05);
PARAMETER m = 2;
PARAMETER k = 50;
PARAMETER start = 0.3;
GRAVITY (0, 0, 0);
BODY wall (ground);
BODY block (mass = m, inertia = (1, 1, 1));
TRIAD rail (associated body = wall, h = (1, 0, 0), f = (0, 1, 0));
TRIAD shoe (associated body = block, h = (1, 0, 0), f = (0, 1, 0));
TRANSLATIONAL JOINT slide (triad = rail, triad = shoe);
SPRING coil (joint = slide, stiffness = k);
INITIAL (slide.shift = start, slide.rate = 2*start);
ENDMODEL
"""

HANGING = """
MODEL hanging
SYSTEM (STATIC ANALYSIS, ending time = 1, print interval = 1);
PARAMETER m = 3;
PARAMETER c = 40;
PARAMETER arm = 0.5;
GRAVITY (0, -9.81, 0);
BODY wall (ground);
BODY rod (mass = m, com = (arm, 0, 0), inertia = (0.01, 0.1, 0.1));
REVOLUTE JOINT hinge (triad = wall, triad = rod);
SPRING coil (joint = hinge, stiffness = c);
ENDMODEL
"""

#: A four-bar without a driver, set off by its crank; three of its equations are redundant.
SWINGING = """
MODEL swinging
SYSTEM (DYNAMIC ANALYSIS, ending time = 0.4, print interval = 0.1);
PARAMETER crank = 1;
PARAMETER heavy = 2;
GRAVITY (0, -9.81, 0);
BODY base (ground);
BODY crank_bar   (f = (1, 0.5, 0), mass = 1, com = (crank/2, 0, 0), inertia = (0.01, 0.1, 0.1));
BODY coupler_bar (origin = (crank, 0.5, 0), f = (1, 0.7, 0), mass = heavy, com = (1.5, 0, 0), inertia = (0.1, 2, 2));
BODY rocker_bar  (origin = (3, 0, 0), f = (0, 1, 0), mass = 1, com = (1, 0, 0), inertia = (0.01, 1, 1));
TRIAD right (associated body = base, origin = (3, 0, 0));
TRIAD crank_tip   (associated body = crank_bar, origin = (crank, 0, 0));
TRIAD coupler_end (associated body = coupler_bar, origin = (3, 0, 0));
TRIAD rocker_tip  (associated body = rocker_bar, origin = (2.5, 0, 0));
REVOLUTE JOINT a (triad = base, triad = crank_bar);
REVOLUTE JOINT b (triad = crank_tip, triad = coupler_bar);
REVOLUTE JOINT c (triad = coupler_end, triad = rocker_tip);
REVOLUTE JOINT d (triad = right, triad = rocker_bar);
INITIAL (a.angle = 40 deg, a.rate = 1 rad/s);
ENDMODEL
"""


def differences(value: Callable[[np.ndarray], np.ndarray], p: np.ndarray, part: float = 1e-5) -> np.ndarray:
    """Central differences along a last axis."""
    columns = []
    for k in range(len(p)):
        h = np.zeros(len(p))
        h[k] = part * max(abs(p[k]), 1.0)
        columns.append((np.asarray(value(p + h)) - np.asarray(value(p - h))) / (2 * h[k]))
    return np.stack(columns, axis=-1)


def rocker(t: float, crank: complex, coupler: complex, rocker_: complex, apart: complex) -> complex:
    """The angle of a four-bar's rocker by the law of cosines, for lengths that may be complex."""
    x, y = crank * np.cos(t) - apart, crank * np.sin(t)
    far = np.sqrt(x * x + y * y)
    across = np.arccos((rocker_**2 + far**2 - coupler**2) / (2 * rocker_ * far))
    return np.arctan(y / x) + (np.pi if x.real < 0 else 0.0) - across


def loaded(text: str, folder: Path, **values: float) -> lw.Mechanism:
    """A mechanism of a text."""
    file = folder / "model.mks"
    file.write_text(text, encoding="utf-8")
    return lw.load(file, parameters=values) if values else lw.load(file)
