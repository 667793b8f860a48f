"""One small mechanism for each newer element of the language, with a parameter that enters the element.

Numbers with units stand in double brackets: `models` writes them as bare numbers in millimetres, newtons and degrees,
or converted to SI, digit by digit, so that both are the same mechanism to the last bit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal

#: Powers of ten that lead from a model's unit to SI; degrees keep their unit in both.
POWERS = {"mm": -3, "mm/s^2": -3, "kg*mm^2": -6, "N": 0, "N/mm": 3, "N*mm": -3, "N*s/mm": 3, "kg": 0}


@dataclass(frozen=True)
class Case:
    """A mechanism with one parameter `p`: the element and how messages name it, statements, and what is asked of it.

    `start` is the parameter's value in SI, `output` one number of a kinematic or dynamic motion that depends on it,
    `body` one that the element moves or loads.
    """

    element: str
    parameter: str
    start: float
    statements: str
    output: str
    body: str
    kind: str = "KINEMATIC"

    @property
    def free(self) -> Case:
        """The mechanism without its drivers, which moves by itself; a crank begins at 60 degrees a second."""
        statements = re.sub(r"(?m)^.*\bDRIVER\b.*\n", "", self.statements)
        if "HINGE crank" in statements:
            statements += "INITIAL (crank.rate = 60 deg/s);\n"
        return replace(self, statements=statements, kind="DYNAMIC")

    def text(self, *, si: bool = False) -> str:
        """The model as `.mks` text, in millimetres and degrees or in SI."""
        units = "" if si else ", length unit = mm, force unit = N, angle unit = degree"
        steps = ", method = rk4, step = 0.001" if self.kind == "DYNAMIC" else ""
        head = f"MODEL m\nSYSTEM ({self.kind} ANALYSIS{steps}, ending time = 0.2, print interval = 0.05{units});\n"
        text = head + f"PARAMETER p = {self.parameter};\n" + self.statements + "ENDMODEL\n"
        return re.sub(r"\[\[(-?[\d.]+) ([^\]]*)\]\]", lambda m: _number(m[1], m[2], si), text)


def _number(digits: str, unit: str, si: bool) -> str:
    if unit == "deg":
        return f"{digits} deg" if si else digits
    return format(Decimal(digits).scaleb(POWERS[unit]), "f") if si else digits


GRAVITY = "GRAVITY (0, [[-9810 mm/s^2]], 0);\nBODY g (ground);\n"
SOLID = "mass = [[0.5 kg]], inertia = ([[400 kg*mm^2]], [[400 kg*mm^2]], [[400 kg*mm^2]])"
SHAFT = f"BODY shaft ({SOLID});\nHINGE crank (body = g, body = shaft, at = (0, 0));\n"
MOTOR = "DRIVER motor (crank.angle = 90 deg*(TIME/(1 s)));\n"
TWO = (
    GRAVITY
    + SHAFT
    + f"BODY wheel (origin = ({{at}}), {SOLID});\nHINGE axle (body = g, body = wheel, at = ({{at}}));\n"
    + "TRIAD tip (body = wheel, origin = ([[7 mm]], [[2 mm]], 0));\n{gear}\n"
)
UPRIGHT = f"BODY tappet (origin = (0, [[48 mm]], 0), {SOLID});\n" + (
    "SLIDER slide (body = g, body = tappet, at = (0, [[48 mm]]), axis = (0, 1));\n"
)


def _pair(at: str, gear: str) -> str:
    return TWO.replace("{at}", at).replace("{gear}", gear) + MOTOR


CASES = {
    "coupling": Case(
        "lift", "10 mm", 0.01,
        GRAVITY + SHAFT + UPRIGHT + "COUPLING lift (slide.shift = p*(1 - cos(crank.angle)));\n" + MOTOR,
        "final(tappet.y)", "tappet",
    ),
    "spur": Case(
        "mesh", "2 mm", 0.002,
        _pair("p*21, 0", "GEAR mesh (body = shaft, body = wheel, teeth = 24, teeth = 18, module = p);"),
        "final(tip.x)", "wheel",
    ),
    "internal": Case(
        "mesh", "2 mm", 0.002,
        _pair(
            "p*18, 0",
            "GEAR mesh (kind = internal, body = shaft, body = wheel, teeth = 24, teeth = 60, module = p);",
        ),
        "final(tip.x)", "wheel",
    ),
    "rack": Case(
        "mesh", "20 mm", 0.02,
        GRAVITY + SHAFT + f"BODY slab (origin = (0, -p), {SOLID});\n"
        "SLIDER rail (body = g, body = slab, at = (0, -p), axis = (1, 0));\n"
        "TRIAD along (body = slab, h = (1, 0, 0), f = (0, 1, 0));\n"
        "GEAR mesh (kind = rack, body = shaft, triad = along, teeth = 20, radius = p);\n" + MOTOR,
        "final(slab.x)", "slab",
    ),
    "bevel": Case(
        "mesh", "2 mm", 0.002,
        GRAVITY + f"BODY shaft (origin = (0, 0, p*15), {SOLID});\n"
        "HINGE crank (body = g, body = shaft, at = (0, 0, p*15));\n"
        f"BODY wheel (origin = (p*10, 0, 0), {SOLID});\n"
        "HINGE axle (body = g, body = wheel, at = (p*10, 0, 0), axis = (1, 0, 0));\n"
        "TRIAD cone (body = wheel, h = (1, 0, 0), f = (0, 1, 0));\n"
        "TRIAD tip (body = wheel, origin = ([[1 mm]], [[7 mm]], 0));\n"
        "GEAR mesh (kind = bevel, body = shaft, triad = cone, teeth = 20, teeth = 30, module = p);\n" + MOTOR,
        "final(tip.x)", "wheel",
    ),
    "worm": Case(
        "mesh", "2 mm", 0.002,
        GRAVITY + f"BODY shaft (origin = (0, p*(10.5 + 0.5/tan(5 deg)), 0), {SOLID});\n"
        "HINGE crank (body = g, body = shaft, at = (0, p*(10.5 + 0.5/tan(5 deg)), 0), axis = (1, 0, 0));\n"
        f"BODY wheel ({SOLID});\nHINGE axle (body = g, body = wheel, at = (0, 0));\n"
        "TRIAD thread (body = shaft, h = (1, 0, 0), f = (0, 1, 0));\n"
        "TRIAD tip (body = wheel, origin = (p, [[20 mm]], 0));\n"
        "GEAR mesh (kind = worm, triad = thread, body = wheel, teeth = 1, teeth = 21, module = p,"
        " lead angle = [[5 deg]]);\n" + MOTOR,
        "final(tip.x)", "wheel",
    ),
    "belt": Case(
        "mesh", "10 mm", 0.01,
        _pair("p*7, 0", "GEAR mesh (kind = belt, body = shaft, body = wheel, teeth = 20, teeth = 40, radius = p);"),
        "final(tip.x)", "wheel",
    ),
    "point on curve": Case(
        "pin", "30 mm", 0.03,
        GRAVITY + SHAFT + UPRIGHT.replace("48", "30")
        + "CURVE slot (body = shaft, x = u, y = p - u*u/(100 mm), range = (-20 mm, 20 mm));\n"
        "POINT ON CURVE pin (curve = slot, point = tappet);\n" + MOTOR,
        "final(tappet.y)", "tappet",
    ),
    "curve on curve": Case(
        "touch", "10 mm", 0.01,
        GRAVITY + SHAFT + UPRIGHT
        + "CURVE disc (body = shaft, x = 30 mm*cos(u), y = p + 30 mm*sin(u), range = (0, 360 deg), closed);\n"
        "CURVE roller (body = tappet, circle = [[8 mm]]);\n"
        "CURVE ON CURVE touch (curve = disc, curve = roller);\n" + MOTOR,
        "final(tappet.y)", "tappet",
    ),
    "bushing": Case(
        "mount", "2 N/mm", 2000.0,
        GRAVITY + f"BODY block ({SOLID});\nFREE JOINT six (body = g, body = block, at = (0, 0));\n"
        "BUSHING mount (triad = g, triad = block, stiffness = (p, 2*p, p), torsional stiffness = [[3000 N*mm]],"
        " damping = [[0.01 N*s/mm]]);\n",
        "final(block.y)", "block", "DYNAMIC",
    ),
    "friction": Case(
        "rub", "8 mm", 0.008,
        GRAVITY + f"BODY bob (com = ([[40 mm]], 0, 0), {SOLID});\nHINGE pin (body = g, body = bob, at = (0, 0));\n"
        "FRICTION rub (joint = pin, coefficient = 0.2, radius = p);\n"
        "TRIAD tip (body = bob, origin = ([[40 mm]], 0, 0));\n",
        "final(tip.y)", "bob", "DYNAMIC",
    ),
    "repeat and part": Case(
        "", "40 mm", 0.04,
        GRAVITY + "PART arm (of, k) {\n"
        f"  BODY link (origin = ((k - 1)*p, 0), com = (p/2, 0, 0), {SOLID});\n"
        "  HINGE pin (body = of, body = link, at = ((k - 1)*p, 0));\n"
        "  TRIAD tip (body = link, origin = (p, 0, 0));\n}\n"
        "USE arm AS arm[1] (of = g, k = 1);\n"
        "REPEAT i = 2 .. 3 { USE arm AS arm[i] (of = arm[i-1].link, k = i); }\n"
        "REPEAT i = 1 .. 3 { DRIVER d[i] (arm[i].pin.angle = 30 deg*i*(TIME/(1 s))); }\n",
        "final(arm[3].tip.y)", "arm[3].link",
    ),
    "drawn in the plane": Case(
        "", "15 mm", 0.015,
        GRAVITY + f"BODY crank ({SOLID});\nBODY rod (origin = (p, 0), {SOLID});\n"
        f"BODY rocker (origin = ([[70 mm]], 0), {SOLID});\n"
        "HINGE a (body = g, body = crank, at = (0, 0));\nHINGE b (body = crank, body = rod, at = (p, 0));\n"
        "HINGE c (body = rod, body = rocker, at = ([[60 mm]], [[40 mm]]));\n"
        "HINGE d (body = g, body = rocker, at = ([[70 mm]], 0));\n"
        "TRIAD tip (body = rod, origin = ([[20 mm]], 0, 0));\nDRIVER motor (a.angle = 90 deg*(TIME/(1 s)));\n",
        "final(tip.y)", "rocker",
    ),
}  # fmt: skip
