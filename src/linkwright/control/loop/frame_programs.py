"""Programs of a mechanism that controllers and sensors ask at every sample: frames with their accelerations, loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.dynamics.functions import FUNCTIONS, Request
from linkwright.kernels.kernel import Kernel
from linkwright.tape.build import record
from linkwright.tape.program import Program

if TYPE_CHECKING:
    from linkwright.dynamics.programs import Maker
    from linkwright.mechanism import Mechanism


@dataclass(frozen=True)
class KinematicsRequest:
    """Which program of this module: its name, the frame that it is about, the free parameters."""

    name: str
    frame: str = ""
    free: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Recorded:
    """The functions of a mechanism as they are recorded: each takes the free parameters p last, where there are any."""

    maker: Maker
    free: tuple[str, ...]
    ranks_hold: bool

    def program(self, function: str, **options: Any) -> Program:
        free = self.free if FUNCTIONS[function].numbers else ()
        request = Request(function, free=free, form="unrolled", ranks_hold=self.ranks_hold, **options)
        return self.maker.program(request)

    def coordinate_rates(self) -> Callable[[Any, Any], Any]:
        """q̇ of q and v."""
        x = self.maker.tree.coordinates
        return (lambda q, v: v) if x.nq == x.nv else self.program("rate")

    def parameters(self, p: Any) -> tuple[Any, ...]:
        return (p,) if self.free else ()

    def record(self, function: Callable[..., Any], inputs: str, name: str) -> Program:
        """The program of a function of q and rates, by their letters, and of p, which it takes last."""
        x = self.maker.tree.coordinates
        sizes = [x.nq if letter == "q" else x.nv for letter in inputs] + ([len(self.free)] if self.free else [])
        return record(function, *sizes, name=name)


def _kernel(mech: Mechanism, request: KinematicsRequest, make: Callable[[Recorded], Program]) -> Kernel:
    """The kernel of a program of this module; parameters that nobody leaves free are those of the mechanism."""
    values = None if request.free else mech.programs.parametrised
    maker, free = (mech.programs, request.free) if values is None else (values.source, values.names)
    recorded = Recorded(maker, free, values is not None)
    return mech.kernels.further(replace(request, free=free), lambda: make(recorded), parametrised=values)


def frame_motion(mech: Mechanism, frame: str, free: tuple[str, ...] = ()) -> Kernel:
    """q, v, a [, p] → pose (4, 4), twist (6) and its rate (6) of a frame: of its origin, in ground's axes.

    The first three numbers of the rate are the acceleration of the origin, the others the angular acceleration.
    """

    def make(r: Recorded) -> Program:
        pose, moves = r.program("pose", frame=frame), r.coordinate_rates()
        twist = r.program("twist", frame=frame, reference="aligned").forward()
        still = r.parameters(np.zeros(len(r.free)))

        def motion(q: Any, v: Any, a: Any, p: Any = None) -> Any:
            w, rate = twist(q, v, *r.parameters(p), moves(q, v), a, *still)
            return pose(q, *r.parameters(p)), w, rate

        return r.record(motion, "qva", f"motion of {frame}")

    return _kernel(mech, KinematicsRequest("frame motion", frame, free), make)


def loop_kinematics(mech: Mechanism) -> Kernel:
    """q, v → Φ (m), G (m, nv) and the drift Ġv (m) of a closed mechanism's constraints: Φ̇ = G v, Φ̈ = G a + drift."""

    def make(r: Recorded) -> Program:
        settling, closing, moves = r.program("settling"), r.program("closing"), r.coordinate_rates()
        nv = r.maker.tree.coordinates.nv
        rate = r.record(lambda q, v, p=None: settling(q, v, *r.parameters(p))[1], "qv", "rate")
        drift, still = rate.forward(), r.parameters(np.zeros(len(r.free)))

        def kinematics(q: Any, v: Any, p: Any = None) -> Any:
            more = r.parameters(p)
            still_rate = rate(q, np.zeros(nv), *more)
            g = np.stack([rate(q, row, *more) - still_rate for row in np.eye(nv)], axis=1)
            return closing(q, *more)[1], g, drift(q, v, *more, moves(q, v), np.zeros(nv), *still)[1]

        return r.record(kinematics, "qv", "loop kinematics")

    return _kernel(mech, KinematicsRequest("loop kinematics"), make)


def frame_kinematics(mech: Mechanism, frame: str) -> Kernel:
    """q, v → pose (4, 4), Jacobian (6, nv), twist (6) and the drift J̇v (6) of a frame, in ground's axes."""

    def make(r: Recorded) -> Program:
        pose, moves = r.program("pose", frame=frame), r.coordinate_rates()
        jacobian = r.program("jacobian", frame=frame, reference="aligned")
        twist = r.program("twist", frame=frame, reference="aligned").forward()
        still = np.zeros(r.maker.tree.coordinates.nv), *r.parameters(np.zeros(len(r.free)))

        def kinematics(q: Any, v: Any, p: Any = None) -> Any:
            more = r.parameters(p)
            w, drift = twist(q, v, *more, moves(q, v), *still)
            return pose(q, *more), jacobian(q, *more), w, drift

        return r.record(kinematics, "qv", f"kinematics of {frame}")

    return _kernel(mech, KinematicsRequest("frame kinematics", frame), make)
