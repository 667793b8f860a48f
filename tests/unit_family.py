"""Small mechanisms of every sort that are tried in all units, and what their analyses answer without units."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import linkwright as lw
from coupled_mechanisms import draw
from linkwright.errors import LinkwrightError
from linkwright.formats.mks.mks_reader import parse_mks
from scaled_models import scaled

#: A slider-crank whose slide is a rack: the pinion on it is a gear between a turn and a shift.
RACK = """MODEL rack
SYSTEM ({analysis} ANALYSIS, ending time = 0.5, print interval = 0.05);
GRAVITY (0, -9.81, 0);
BODY g (ground);
BODY crank (com = (0.1, 0, 0), mass = 1, inertia = (0.01, 0.01, 0.01));
BODY rod (origin = (0.2, 0, 0), com = (0.3, 0, 0), mass = 1, inertia = (0.02, 0.02, 0.02));
BODY block (origin = (0.8, 0, 0), h = (1, 0, 0), f = (0, 1, 0), mass = 2, inertia = (0.02, 0.02, 0.02));
BODY pinion (origin = (0.8, 0.1, 0), mass = 1, inertia = (0.005, 0.005, 0.005));
TRIAD tip (associated body = crank, origin = (0.2, 0, 0));
TRIAD eye (associated body = rod, origin = (0.6, 0, 0));
TRIAD pin (associated body = block, h = (0, 1, 0), f = (1, 0, 0));
TRIAD rail (associated body = g, h = (1, 0, 0), f = (0, 1, 0));
TRIAD axle (associated body = g, origin = (0.8, 0.1, 0));
REVOLUTE JOINT A (triad = g, triad = crank);
REVOLUTE JOINT B (triad = tip, triad = rod);
CYLINDRICAL JOINT C (triad = eye, triad = pin);
TRANSLATIONAL JOINT S (triad = rail, triad = block);
REVOLUTE JOINT P (triad = axle, triad = pinion);
GEAR mesh (joint = S, joint = P, ratio = 0.05, offset = 0.8);
SPRING k (joint = S, stiffness = 50, rest = 0.6, damping = 0.5);
SPRING kt (joint = P, stiffness = 0.1, rest = 0);
INITIAL (A.angle = 1);
{driver}
ENDMODEL
"""

#: A carriage on a spring, with a pendulum on it, and a second body hung between springs in space.
TREE = """MODEL tree
SYSTEM ({analysis} ANALYSIS, ending time = 0.5, print interval = 0.05);
GRAVITY (0, -9.81, 0);
BODY g (ground);
BODY carriage (mass = 2, inertia = (0.1, 0.1, 0.1));
BODY bob (origin = (0, -0.3, 0), mass = 1, com = (0, -0.2, 0), inertia = (0.02, 0.01, 0.02));
BODY arm (origin = (0, -0.3, 0), mass = 0.5, com = (0.2, 0, 0), inertia = (0.01, 0.02, 0.02));
TRIAD rail (associated body = g, h = (0, 1, 0), f = (1, 0, 0));
TRIAD shoe (associated body = carriage, h = (0, 1, 0), f = (1, 0, 0));
TRIAD low (associated body = carriage, origin = (0, -0.3, 0));
TRIAD end (associated body = arm, origin = (0.4, 0, 0));
TRIAD wall (associated body = g, origin = (1, 0.2, 0));
TRANSLATIONAL JOINT S (triad = rail, triad = shoe);
REVOLUTE JOINT R (triad = low, triad = bob);
REVOLUTE JOINT E (triad = bob, triad = arm);
SPRING k (joint = S, stiffness = 40, damping = 3);
SPRING kt (joint = E, stiffness = 2, rest = 0.4, damping = 0.1);
SPRING ks (triad = end, triad = wall, stiffness = 30, length = 0.3, damping = 1);
{driver}
ENDMODEL
"""

#: A pendulum on a carriage on a spring alone: its equations are short.
CARRIAGE = """MODEL carriage
GRAVITY (0, -9.81, 0);
BODY g (ground);
BODY carriage (mass = 2, inertia = (0.1, 0.1, 0.1));
BODY bob (origin = (0, -0.3, 0), mass = 1, com = (0, -0.2, 0), inertia = (0.02, 0.01, 0.02));
TRIAD rail (associated body = g, h = (0, 1, 0), f = (1, 0, 0));
TRIAD shoe (associated body = carriage, h = (0, 1, 0), f = (1, 0, 0));
TRIAD low (associated body = carriage, origin = (0, -0.3, 0));
TRANSLATIONAL JOINT S (triad = rail, triad = shoe);
REVOLUTE JOINT R (triad = low, triad = bob);
SPRING k (joint = S, stiffness = 40);
SPRING kt (joint = R, stiffness = 0.5, rest = 0.4);
ENDMODEL
"""

#: A disc cam that pushes a roller against a spring; a second weight hangs on the tappet in a bushing.
CAM = """MODEL cam_and_roller
SYSTEM (INVERSE DYNAMIC ANALYSIS, ending time = 0.5, print interval = 0.05);
GRAVITY (0, -9.81, 0);
BODY g (ground);
BODY shaft (com = (0.002, 0, 0), mass = 1, inertia = (0.01, 0.01, 0.002));
BODY tappet (origin = (0, 0.037, 0), mass = 0.4, inertia = (0.001, 0.001, 0.001));
BODY weight (origin = (0.01, 0.1, 0), mass = 0.3, inertia = (0.001, 0.001, 0.001));
TRIAD rail (associated body = g, h = (0, 1, 0), f = (1, 0, 0));
TRIAD stem (associated body = tappet, h = (0, 1, 0), f = (1, 0, 0));
TRIAD track (associated body = g, origin = (0.01, 0.1, 0), h = (0, 1, 0), f = (1, 0, 0));
TRIAD shoe (associated body = weight, h = (0, 1, 0), f = (1, 0, 0));
TRIAD top (associated body = g, origin = (0, 0.2, 0));
TRIAD seat (associated body = tappet, origin = (0.01, 0.06, 0));
REVOLUTE JOINT crank (triad = g, triad = shaft);
TRANSLATIONAL JOINT slide (triad = rail, triad = stem);
TRANSLATIONAL JOINT lift (triad = track, triad = shoe);
CURVE disc (body = shaft, x = 0.01 + 0.03*cos(u), y = 0.03*sin(u), range = (0, 2*pi), closed);
CURVE roller (body = tappet, circle = 0.008);
CURVE ON CURVE touch (curve = disc, curve = roller);
SPRING back (triad = top, triad = tappet, stiffness = 100, length = 0.3);
BUSHING rubber (triad = seat, triad = weight, stiffness = (800, 900, 700), torsional stiffness = (3, 2, 4),
         damping = 5);
DRIVER motor (crank.angle = 3*TIME);
DRIVER hand (lift.shift = 0.004*sin(7*TIME));
ENDMODEL
"""

#: A pendulum on a carriage, with friction in the pin and in the guide that follows their reactions.
RUBBING = """MODEL rubbing_pendulum
SYSTEM (DYNAMIC ANALYSIS, ending time = 0.5, print interval = 0.05, relative tolerance = 1e-10);
GRAVITY (0, -9.81, 0);
BODY g (ground);
BODY carriage (mass = 2, inertia = (0.1, 0.1, 0.1));
BODY bob (mass = 1, com = (0.3, -0.1, 0), inertia = (0.02, 0.01, 0.02));
TRIAD rail (associated body = g, h = (1, 0, 0), f = (0, 1, 0));
TRIAD shoe (associated body = carriage, h = (1, 0, 0), f = (0, 1, 0));
TRANSLATIONAL JOINT S (triad = rail, triad = shoe);
REVOLUTE JOINT R (triad = carriage, triad = bob);
SPRING k (joint = S, stiffness = 40);
FRICTION guide (joint = S, coefficient = 0.2, length = 0.4, speed = 0.05);
FRICTION pin (joint = R, coefficient = 0.3, radius = 0.05, speed = 0.3);
INITIAL (S.rate = 0.5);
ENDMODEL
"""

#: The slider-crank without the pinion.
_PINION = ("GEAR", "SPRING kt", "BODY pinion", "REVOLUTE JOINT P", "TRIAD axle")
PLAIN = "\n".join(line for line in RACK.splitlines() if not line.startswith(_PINION))

CRANK = "DRIVER d (A.angle = 1 + 6*TIME);"
SLIDE = "DRIVER d (S.shift = 0.1*sin(8*TIME)); DRIVER e (R.angle = 0.3*sin(5*TIME)); DRIVER f (E.angle = TIME^2);"
REACH = "DRIVER d (S.shift = 0.2*cos(1) + sqrt(0.36 - (0.2*sin(1))^2) + 0.3*TIME);"
TEXTS = {
    "geared slider-crank": RACK.format(analysis="DYNAMIC", driver=""),
    "driven slider-crank": RACK.format(analysis="INVERSE DYNAMIC", driver=CRANK),
    "slider-crank": PLAIN.format(analysis="DYNAMIC", driver=""),
    "tree with springs": TREE.format(analysis="DYNAMIC", driver=""),
    "driven tree": TREE.format(analysis="INVERSE DYNAMIC", driver=SLIDE),
    "carriage": CARRIAGE,
    "cam and roller": CAM,
    "rubbing pendulum": RUBBING,
    "drivers that contradict": RACK.format(analysis="KINEMATIC", driver=f"{CRANK} DRIVER e (A.angle = 1 + 7*TIME);"),
    "a slide out of reach": RACK.format(analysis="KINEMATIC", driver=REACH),
    "a law that jumps": RACK.format(analysis="KINEMATIC", driver="DRIVER d (A.angle = 1 + 0.1*floor(TIME*7));"),
    "a law with a corner": RACK.format(analysis="KINEMATIC", driver="DRIVER d (A.angle = 0.78 + abs(TIME - 0.22));"),
}


@dataclass(frozen=True)
class Unit:
    """By what lengths, masses and times are larger."""

    length: float = 1.0
    mass: float = 1.0
    time: float = 1.0

    def __str__(self) -> str:
        return f"{self.length:g} m {self.mass:g} kg {self.time:g} s"

    @property
    def force(self) -> float:
        return self.mass * self.length / self.time**2

    @property
    def torque(self) -> float:
        return self.force * self.length


@cache
def family(name: str) -> lw.Mechanism:
    """A mechanism in metres, kilograms and seconds: of `TEXTS`, or by the seed of `coupled_mechanisms.draw`."""
    return lw.Mechanism(parse_mks(TEXTS[name])) if name in TEXTS else draw(int(name)).mech


def refused(ask: Callable[[], Any]) -> Any:
    """What is answered, or the kind of error."""
    try:
        return ask()
    except LinkwrightError as error:
        return type(error)


class Asked:
    """A mechanism in a unit, and what it answers without units."""

    def __init__(self, mech: lw.Mechanism, unit: Unit) -> None:
        self.mech, self.unit = scaled(mech, unit.length, unit.mass, unit.time), unit
        long_q, self.long = self.mech.tree.shifts
        self.q_unit = np.where(long_q, unit.length, 1.0)
        self.place = np.where(self.long, unit.length, 1.0)
        self.rate = self.place / unit.time
        self.effort = np.where(self.long, unit.force, unit.torque)

    def motion(self, sol: Any) -> dict[str, Any]:
        """Positions, rates and accelerations of bodies, forces and messages."""
        u, answers = self.unit, {"messages": _unitless(str(sol.status))}
        lengths = {"position": 0, "velocity": 1, "acceleration": 2}
        for what, power in (*lengths.items(), ("angular_velocity", 1), ("angular_acceleration", 2)):
            unit = (u.length if what in lengths else 1.0) / u.time**power
            answers[what] = np.array([getattr(sol, what)(body.name) / unit for body in self.mech.bodies])
        for of, unit in {"N": u.force, "N m": u.torque, "m": u.length, "rad": 1.0, "": 1.0}.items():
            answers[of] = np.array([x.values / unit for x in sol.series.values() if x.unit == of])
        return answers

    def analyse(self, **options: Any) -> Any:
        return refused(lambda: self.motion(lw.analyse(self.mech, **options)))

    def kinematic(self) -> Any:
        return self.analyse(analysis="kinematic", times=np.linspace(0.0, 0.5 * self.unit.time, 11))

    def state(self) -> Any:
        return refused(lambda: self._state(*self.mech.initial_state()))

    def _state(self, q: Any, v: Any) -> Any:
        return np.concatenate([q / self.q_unit, v / self.rate])

    def assemble(self) -> Any:
        return refused(lambda: self.mech.assemble() / self.q_unit)

    def equilibrium(self) -> Any:
        def ask() -> Any:
            rest = self.mech.equilibrium()
            return {"q": rest.q / self.q_unit, "stable": str(rest.stable), "modes": self._modes(rest.linear)}

        return refused(ask)

    def _modes(self, linear: Any) -> Any:
        values = np.asarray(linear.eigenvalues) * self.unit.time
        return np.poly(values / 10.0).real

    def linearise(self) -> Any:
        return refused(lambda: self._modes(self.mech.linearise(*self.mech.initial_state(), np.zeros(self.mech.nv))))

    def reactions(self) -> Any:
        wrenches = refused(lambda: self.mech.reactions(*self.mech.initial_state(), np.zeros(self.mech.nv)))
        return wrenches if isinstance(wrenches, type) else wrenches / np.repeat([self.unit.force, self.unit.torque], 3)

    def dynamics(self) -> Any:
        """Forward dynamics, undone by inverse dynamics."""

        def ask() -> Any:
            q, v = self.mech.initial_state()
            a = self.mech.forward_dynamics(q, v, 0.1 * self.effort)
            tau = self.mech.inverse_dynamics(q, v, a)
            return {"a": a / self.rate * self.unit.time, "tau": tau / self.effort}

        return refused(ask)

    def simulate(self) -> Any:
        def ask() -> Any:
            times = np.linspace(0.0, 0.4, 5) * self.unit.time
            sol = lw.simulate(self.mech, times[-1], saving=lw.Saving(times=times))
            steps = float(sol.counters.steps > 0)
            return {"y": np.array([self._state(q, v) for q, v in zip(sol.q, sol.v, strict=True)]), "steps": steps} | {
                "messages": _unitless(str(sol.status))
            }

        return refused(ask)

    def equilibria(self) -> Any:
        def ask() -> Any:
            points = list(lw.equations(self.mech).equilibria(starts=64))
            return np.array(sorted((p.q / self.q_unit).round(7).tolist() for p in points))

        return refused(ask)


def _unitless(text: str) -> str:
    """A message with its numbers left out."""
    return re.sub(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", "#", text)
