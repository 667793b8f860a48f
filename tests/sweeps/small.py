"""A small model for studies: a point on a crank, driven along a line, out of reach where the crank is short."""

from pathlib import Path

TEXT = """MODEL reach
SYSTEM (KINEMATIC ANALYSIS, starting time = 0, ending time = 2, print interval = 0.1);
PARAMETER length = 2;
PARAMETER rate = 0.5;
BODY base (ground);
BODY arm (origin = (0, 0, 0), f = (1, 1, 0));
TRIAD pin (associated body = base, origin = (0, 0, 0));
TRIAD tip (associated body = arm, origin = (length, 0, 0));
REVOLUTE JOINT a (triad = pin, triad = arm);
DRIVER d (tip.x = 1 + rate*sin(TIME));
ENDMODEL
"""


def written(folder: Path) -> Path:
    """The model's file."""
    file = folder / "reach.mks"
    file.write_text(TEXT)
    return file
