"""How the six-leg manipulator looks: shapes on its bodies, for the animation page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwright import Builder

#: Half the thickness of things, as parts of the crank's length.
CRANK, ROD, JOINT, HOUSING = 0.06, 0.045, 0.085, 0.13
IRON, RED, STEEL, BRASS, BLUE, WHITE = "#5b6068", "#b5382e", "#a8b0ba", "#c9a227", "#35608f", "#e9ecef"


def draw(b: Builder, p: dict[str, Any], feet: Sequence[Any], *, rotors: bool) -> None:
    """Base ring, motor housings, cranks, rods, joints and the plate, of sizes that follow the parameters p.

    `feet` are the frames that the legs stand on.
    """
    crank, rod = p["crank"], p["rod"]
    bar = 0.12 * p["plate_radius"]
    _cylinder(b, "base", b.ground, (0, 0, -0.5 * crank), (0, 0, 1), (1.5 * p["base_radius"], 0.06 * crank), IRON)
    for leg, foot in enumerate(feet, 1):
        arm, fork, link, outer, inner = (f"{body}{leg}" for body in ("arm", "fork", "rod", "outer", "inner"))
        b.shape(foot, "cylinder", (HOUSING * crank, 0.30 * crank), IRON, name=f"housing{leg}")
        post = b.triad(b.ground, [*foot.origin[:2], -0.25 * crank], name=f"post{leg}")
        b.shape(post, "cylinder", (0.6 * HOUSING * crank, 0.44 * crank), IRON, name=f"post{leg}")
        if rotors:
            b.shape(f"rotor{leg}", "cylinder", (0.4 * HOUSING * crank, 0.46 * crank), STEEL, name=f"shaft{leg}")
        _cylinder(b, f"crank{leg}", arm, (crank / 2.0, 0, 0), (1, 0, 0), (CRANK * crank, crank), RED)
        b.shape(arm, "cylinder", (0.8 * HOUSING * crank, 0.36 * crank), RED, name=f"hub{leg}")
        b.shape(fork, "cylinder", (JOINT * crank, 0.17 * crank), BRASS, name=f"fork{leg}")
        _cylinder(b, f"pin{leg}", fork, (0, 0, 0), (0, 1, 0), (0.6 * JOINT * crank, 0.22 * crank), BRASS)
        _cylinder(b, f"rod{leg}", link, (rod / 2.0, 0, 0), (1, 0, 0), (ROD * crank, rod), STEEL)
        b.shape(outer, "cylinder", (0.6 * JOINT * crank, 0.2 * crank), BRASS, name=f"outer{leg}")
        b.shape(inner, "sphere", (JOINT * crank,), BRASS, name=f"ball{leg}")
    _cylinder(b, "disc", "plate", (0, 0, 0.05), (0, 0, 1), (1.06 * p["plate_radius"], 0.04), BLUE)
    b.shape(b.triad("plate", (0.55 * p["plate_radius"], 0, 0.075), name="mark"), "box", (bar * 3, bar, 0.02), WHITE)
    b.trace("mark", BRASS, name="path")


def _cylinder(b: Builder, name: str, body: Any, at: Any, along: Any, size: Any, color: str) -> None:
    across = (0, 1, 0) if along == (1, 0, 0) else (1, 0, 0)
    b.shape(b.triad(body, at, h=along, f=across, name=f"{name}_place"), "cylinder", size, color, name=name)
