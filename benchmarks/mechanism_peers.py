"""The mechanisms of `mechanisms.py` in the hands of its peers, and their closed forms."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import linkwright as lw
from constraints.ladders import APART, COUPLER, EVEN, ODD, START, ladder, odd_angle

Floats = NDArray[np.float64]
MODEL = Path(__file__).parents[1] / "examples" / "models" / "slider_crank.mks"
#: The sample's crank and coupler (its block is at 8 + 3 sin t), and how far the four-bar's crank swings.
CRANK, ROD, SWING = 6.0, 10.0, 0.4


@dataclass(frozen=True)
class Work:
    """One mechanism: the model, the body that is checked, and its place, velocity and acceleration in closed form."""

    name: str
    make: Callable[[], Any]
    body: str
    closed: Callable[[Floats], tuple[Floats, Floats, Floats]]
    end: float


def slider_closed(t: Floats) -> tuple[Floats, Floats, Floats]:
    """The middle of the coupler: half way between the crank's tip 6 (cos φ, sin φ) and the block."""
    x, xd, xdd = 8.0 + 3.0 * np.sin(t), 3.0 * np.cos(t), -3.0 * np.sin(t)
    k = CRANK**2 - ROD**2
    c, cx, cxx = (x * x + k) / (2 * CRANK * x), (1 - k / x**2) / (2 * CRANK), k / (CRANK * x**3)
    s = np.sqrt(1.0 - c * c)
    turn = -cx * xd / s
    turn2 = -(cxx * xd**2 + cx * xdd + c * turn**2) / s
    tip, tip_d = CRANK * np.stack([c, s], 1), CRANK * turn[:, None] * np.stack([-s, c], 1)
    tip_dd = CRANK * (turn2[:, None] * np.stack([-s, c], 1) - turn[:, None] ** 2 * np.stack([c, s], 1))
    block = (np.stack([y, np.zeros_like(t)], 1) for y in (x, xd, xdd))
    place, rate, second = (0.5 * (a + b) for a, b in zip((tip, tip_d, tip_dd), block, strict=True))
    return place, rate, second


def four_bar_angles(t: Floats) -> tuple[list[Floats], list[Floats], list[Floats]]:
    """Angles of crank, coupler and rocker with two rates, from A e^{iθ} + B e^{iβ} = D + C e^{iψ}."""
    th, w, al = START + SWING * np.sin(t), SWING * np.cos(t), -SWING * np.sin(t)
    ps = odd_angle(th)
    be = np.angle(APART + ODD * np.exp(1j * ps) - EVEN * np.exp(1j * th))
    ps_d = EVEN * w * np.sin(th - be) / (ODD * np.sin(ps - be))
    be_d = -EVEN * w * np.sin(th - ps) / (COUPLER * np.sin(be - ps))
    side = EVEN * (al * np.sin(th - be) + w**2 * np.cos(th - be)) + COUPLER * be_d**2
    ps_dd = (side - ODD * ps_d**2 * np.cos(ps - be)) / (ODD * np.sin(ps - be))
    top = EVEN * (al * np.sin(th - ps) + w**2 * np.cos(th - ps)) + COUPLER * be_d**2 * np.cos(be - ps) - ODD * ps_d**2
    be_dd = -top / (COUPLER * np.sin(be - ps))
    return [th, be, ps], [w, be_d, ps_d], [al, be_dd, ps_dd]


def four_bar_closed(t: Floats) -> tuple[Floats, Floats, Floats]:
    """The rocker's tip."""
    (_, _, ps), (_, _, w), (_, _, al) = four_bar_angles(t)
    out, across = ODD * np.stack([np.cos(ps), np.sin(ps)], 1), ODD * np.stack([-np.sin(ps), np.cos(ps)], 1)
    place = out + np.array([APART, 0.0])
    return place, w[:, None] * across, al[:, None] * across - w[:, None] ** 2 * out


WORKS = (
    Work("slider-crank", lambda: lw.load(MODEL), "pend2", slider_closed, 8.0),
    Work("four-bar", lambda: ladder(1, START + SWING * np.sin(lw.TIME)), "bar1", four_bar_closed, 6.28),
)


def checked_point(work: Work, solution: Any) -> tuple[Floats, Floats, Floats]:
    """What the closed form gives, out of a solution: a body's origin, or the rocker's tip."""
    p, v, a = (getattr(solution, what)(work.body) for what in ("position", "velocity", "acceleration"))
    if work.name == "four-bar":
        e = solution.orientation(work.body)
        angle = 2.0 * np.arctan2(e[:, 3], e[:, 0])
        r = ODD * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], 1)
        w, al = solution.angular_velocity(work.body), solution.angular_acceleration(work.body)
        p, v, a = p + r, v + np.cross(w, r), a + np.cross(al, r) + np.cross(w, np.cross(w, r))
    return p[:, :2], v[:, :2], a[:, :2]


def errors(work: Work, t: Floats, found: tuple[Floats, Floats, Floats], after: float = 0.0) -> tuple[float, ...]:
    """The largest error of place, velocity and acceleration from a time on."""
    late = t >= after
    pairs = zip(found, work.closed(t), strict=True)
    return tuple(float(np.abs(a - b)[late].max()) if np.isfinite(a).any() else np.nan for a, b in pairs)


# -- SciPy --------------------------------------------------------------------------------------------------------
def by_scipy(work: Work, t: Floats, *, jacobian: bool) -> tuple[float, tuple[float, ...]]:
    """Points a second of `scipy.optimize.root` (hybr), each from the state before; velocity and acceleration by lstsq.

    The unknowns are 7 for a body. The equations are those of the analysis that are independent at the start, a unit
    norm a body, and for a freedom that is left its null vector times the change: the method wants as many as unknowns.
    """
    from scipy.optimize import root

    from linkwright.constraints.kinematics import Kinematics

    kinematics = Kinematics(work.make().description)
    programs, e = kinematics.programs, kinematics.equations
    start = kinematics.assemble(float(t[0]), 1e-3)
    nb, layout, rest = e.nb, programs.layout, np.zeros((e.nb, 6))
    drivers = [int(e.first[k]) for k in e.drivers]

    def rates_map(q: Floats) -> Floats:
        """From q̇ to twists."""
        g = np.zeros((6 * nb, 7 * nb))
        for k, (e0, e1, e2, e3) in enumerate(q[:, 3:]):
            g[6 * k : 6 * k + 3, 7 * k : 7 * k + 3] = np.eye(3)
            turn = [[-e1, e0, -e3, e2], [-e2, e3, e0, -e1], [-e3, -e2, e1, e0]]
            g[6 * k + 3 : 6 * k + 6, 7 * k + 3 : 7 * k + 7] = 2.0 * np.array(turn)
        return g

    first = layout.dense(programs.evaluate(start.q, start.angles, t[:1], rest)[1])
    rows: list[int] = []
    for k in range(len(first)):
        if np.linalg.matrix_rank(first[[*rows, k]], tol=1e-8) > len(rows):
            rows.append(k)
    angles = start.angles

    def solve_at(time_point: float, before: Floats) -> tuple[Floats, Floats, Floats]:
        nonlocal angles
        at = np.array([time_point])
        held = np.linalg.svd(layout.dense(programs.evaluate(before, angles, at, rest)[1])[rows])[2][len(rows) :]
        held = held @ rates_map(before)

        def phi(x: Floats) -> Floats:
            q = x.reshape(nb, 7)
            values = programs.evaluate(q, angles, at, rest)[2]
            return np.concatenate([values[rows], np.sum(q[:, 3:] ** 2, axis=1) - 1.0, held @ (x - before.reshape(-1))])

        def phi_q(x: Floats) -> Floats:
            q = x.reshape(nb, 7)
            j = layout.dense(programs.evaluate(q, angles, at, rest)[1])[rows] @ rates_map(q)
            units = np.zeros((nb, 7 * nb))
            for k in range(nb):
                units[k, 7 * k + 3 : 7 * k + 7] = 2.0 * q[k, 3:]
            return np.concatenate([j, units, held])

        found = root(phi, before.reshape(-1), jac=phi_q if jacobian else None, method="hybr", tol=1e-12)
        q = found.x.reshape(nb, 7)
        laws, parts, _, _, angles = programs.evaluate(q, angles, at, rest)
        j = layout.dense(parts)
        rhs = np.zeros(e.count)
        rhs[drivers] = laws[list(e.drivers), 1]
        v = np.linalg.lstsq(j, rhs, rcond=1e-9)[0].reshape(nb, 6)
        rhs = -programs.evaluate(q, angles, at, v)[3]
        rhs[drivers] += laws[list(e.drivers), 2]
        return q, v, np.linalg.lstsq(j, rhs, rcond=1e-9)[0].reshape(nb, 6)

    q, v, a = np.empty((len(t), nb, 7)), np.empty((len(t), nb, 6)), np.empty((len(t), nb, 6))
    state = start.q
    begin = time.process_time()
    for k, point in enumerate(t.tolist()):
        state, v[k], a[k] = solve_at(point, state)
        q[k] = state
    took = time.process_time() - begin
    body = kinematics.description.body_names.find(work.body)
    assert body is not None
    return len(t) / took, errors(work, t, checked_point(work, _Arrays(q[:, body], v[:, body], a[:, body])))


@dataclass(frozen=True)
class _Arrays:
    """One body's arrays, as a solution would give them."""

    q: Floats
    v: Floats
    a: Floats

    def position(self, _: str) -> Floats:
        return self.q[:, :3]

    def orientation(self, _: str) -> Floats:
        return self.q[:, 3:]

    def velocity(self, _: str) -> Floats:
        return self.v[:, :3]

    def angular_velocity(self, _: str) -> Floats:
        return self.v[:, 3:]

    def acceleration(self, _: str) -> Floats:
        return self.a[:, :3]

    def angular_acceleration(self, _: str) -> Floats:
        return self.a[:, 3:]


# -- Exudyn -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Settings:
    """What of Exudyn's implicit solvers is chosen by trying."""

    modified: bool = True  # Newton's method with a Jacobian that is kept
    dense: bool = True  # else its sparse linear solver
    index2: bool = False  # the trapezoidal rule on index 2, else generalised-α

    def __str__(self) -> str:
        rule = "trapezoidal rule of index 2" if self.index2 else "generalised-α"
        return f"{rule}, {'modified' if self.modified else 'full'} Newton, {'dense' if self.dense else 'sparse'}"


def fastest_settings(work: Work, how: str, rounds: int = 3) -> Settings:
    """The fastest of all settings in short runs, taken in turns."""
    every = [Settings(*choice) for choice in product((True, False), repeat=3)]
    speeds = np.array([[by_exudyn(work, 4000, how, s)[0] for s in every] for _ in range(rounds)])
    return every[int(np.argmax(np.median(speeds, axis=0)))]


def by_exudyn(work: Work, points: int, how: str, chosen: Settings | None = None) -> tuple[float, tuple[float, ...]]:
    """Points a second of Exudyn and its errors; `how` is "planar", "spatial" or "static" (planar, positions alone).

    The driver is a constraint on a coordinate, its law a symbolic user function, which Exudyn evaluates without Python.
    Dynamic runs start from consistent velocities; sensors keep place, velocity and acceleration of every body at every
    step. Making the model is not timed, and errors of the first hundredth of the time, after its start, do not count.
    """
    import exudyn as exu
    import exudyn.utilities as eu

    warnings.simplefilter("ignore")
    system = exu.SystemContainer().AddSystem()
    model = _Spatial(system, exu, eu) if how == "spatial" else _Planar(system, exu, eu)
    bodies, driver = model.slider() if work.name == "slider-crank" else model.four_bar()
    amount, symbolic = (3.0 if work.name == "slider-crank" else SWING), exu.symbolic

    def law(mbs: Any, t: Any, number: Any, offset: Any) -> Any:
        return amount * symbolic.sin(t)

    def rate(mbs: Any, t: Any, number: Any, offset: Any) -> Any:
        return amount * symbolic.cos(t)

    for name, function in (("offsetUserFunction", law), ("offsetUserFunction_t", rate)):
        system.SetObjectParameter(driver, name, eu.CreateSymbolicUserFunction(system, function, name, driver))
    kinds = exu.OutputVariableType
    sensors = [
        [
            system.AddSensor(eu.SensorBody(bodyNumber=b, localPosition=p, outputVariableType=k, storeInternal=True))
            for k in (kinds.Position, kinds.Velocity, kinds.Acceleration)
        ]
        for b, p in bodies
    ]
    system.Assemble()
    settings = exu.SimulationSettings()
    settings.solutionSettings.writeSolutionToFile = False
    settings.solutionSettings.sensorsWritePeriod = 0.999 * work.end / points
    settings.parallel.numberOfThreads = 1
    chosen = chosen or Settings()
    linear, rule = exu.LinearSolverType, exu.DynamicSolverType
    settings.linearSolverType = linear.EXUdense if chosen.dense else linear.EigenSparse
    begin = time.process_time()
    if how == "static":
        settings.staticSolver.numberOfLoadSteps = points
        settings.staticSolver.loadStepDuration = work.end
        settings.staticSolver.verboseMode = 0
        system.SolveStatic(settings)
    else:
        settings.timeIntegration.numberOfSteps = points
        settings.timeIntegration.endTime = work.end
        settings.timeIntegration.newton.useModifiedNewton = chosen.modified
        system.SolveDynamic(settings, solverType=rule.TrapezoidalIndex2 if chosen.index2 else rule.GeneralizedAlpha)
    took = time.process_time() - begin
    places, rates, seconds = (system.GetSensorStoredData(s) for s in sensors[-1])
    t = places[:, 0]
    if len(t) < points:
        raise RuntimeError(f"Exudyn stopped at t = {t[-1]:g}")
    found = (places[:, 1:3], rates[:, 1:3], seconds[:, 1:3])
    if how == "static":
        found = (found[0], np.full_like(found[1], np.nan), np.full_like(found[2], np.nan))
    return points / took, errors(work, t, found, 0.01 * work.end)


class _Planar:
    """Exudyn's bodies and joints in the plane: three coordinates a body, and no redundant equations."""

    def __init__(self, system: Any, exu: Any, eu: Any) -> None:
        self.system, self.exu, self.eu = system, exu, eu
        self.ground = system.AddObject(eu.ObjectGround())
        self.nodes: dict[int, Any] = {}

    def body(self, x: float, y: float, angle: float, rates: list[float]) -> Any:
        node = self.system.AddNode(self.eu.NodeRigidBody2D(referenceCoordinates=[x, y, angle], initialVelocities=rates))
        made = self.system.AddObject(self.eu.ObjectRigidBody2D(physicsMass=1.0, physicsInertia=1.0, nodeNumber=node))
        self.nodes[int(made)] = node
        return made

    def marker(self, body: Any, x: float, y: float) -> Any:
        return self.system.AddMarker(self.eu.MarkerBodyPosition(bodyNumber=body, localPosition=[x, y, 0.0]))

    def pin(self, one: Any, at: tuple[float, float], other: Any, there: tuple[float, float]) -> None:
        markers = [self.marker(one, *at), self.marker(other, *there)]
        self.system.AddObject(self.eu.RevoluteJoint2D(markerNumbers=markers))

    def drive(self, body: Any, coordinate: int) -> Any:
        """A constraint on a coordinate of a body, its law set later."""
        still = self.system.AddNode(self.eu.NodePointGround())
        pairs = ((still, 0), (self.nodes[int(body)], coordinate))
        markers = [self.system.AddMarker(self.eu.MarkerNodeCoordinate(nodeNumber=n, coordinate=c)) for n, c in pairs]
        return self.system.AddObject(self.eu.CoordinateConstraint(markerNumbers=markers, offset=0.0))

    def slider(self) -> tuple[list[tuple[Any, list[float]]], Any]:
        rates = [[*v[:2], w[2]] for v, w in _start(WORKS[0], ("pend1", "pend2", "block"))]
        crank = self.body(0.0, 3.0, 0.5 * np.pi, rates[0])
        rod = self.body(4.0, 3.0, float(np.arctan2(-3.0, 4.0)), rates[1])
        block = self.body(8.0, 0.0, 0.0, rates[2])
        self.pin(self.ground, (0, 0), crank, (-3, 0))
        self.pin(crank, (3, 0), rod, (-5, 0))
        self.pin(rod, (5, 0), block, (0, 0))
        make, exact = self.eu.MarkerBodyRigid, {"localPosition": [0.0, 0.0, 0.0]}
        markers = [self.system.AddMarker(make(bodyNumber=b, **exact)) for b in (self.ground, block)]
        self.system.AddObject(
            self.eu.PrismaticJoint2D(markerNumbers=markers, axisMarker0=[1, 0, 0], normalMarker1=[0, 1, 0])
        )
        return [(b, [0.0, 0.0, 0.0]) for b in (crank, block, rod)], self.drive(block, 0)

    def four_bar(self) -> tuple[list[tuple[Any, list[float]]], Any]:
        rates = [[*v[:2], w[2]] for v, w in _start(WORKS[1], ("bar0", "coupler0", "bar1"))]
        (th,), (be,), (ps,) = four_bar_angles(np.zeros(1))[0]
        crank = self.body(0.0, 0.0, th, rates[0])
        coupler = self.body(EVEN * np.cos(th), EVEN * np.sin(th), be, rates[1])
        rocker = self.body(APART, 0.0, ps, rates[2])
        self.pin(self.ground, (0, 0), crank, (0, 0))
        self.pin(crank, (EVEN, 0), coupler, (0, 0))
        self.pin(coupler, (COUPLER, 0), rocker, (ODD, 0))
        self.pin(self.ground, (APART, 0), rocker, (0, 0))
        places = [(crank, [0.0, 0.0, 0.0]), (coupler, [0.0, 0.0, 0.0]), (rocker, [ODD, 0.0, 0.0])]
        return places, self.drive(crank, 2)


class _Spatial(_Planar):
    """Exudyn's bodies and joints in space, with Euler parameters: the same joints as in the sample."""

    def solid(self, place: list[float], angle: float, start: tuple[Floats, Floats]) -> Any:
        inertia = self.eu.RigidBodyInertia(mass=1.0, inertiaTensor=np.eye(3))
        made = self.system.CreateRigidBody(
            referencePosition=place,
            referenceRotationMatrix=self.eu.RotationMatrixZ(angle),
            initialVelocity=list(start[0]),
            initialAngularVelocity=list(start[1]),
            inertia=inertia,
            returnDict=True,
        )
        self.nodes[int(made["bodyNumber"])] = made["nodeNumber"]
        return made["bodyNumber"]

    def joint(self, one: Any, at: list[float], other: Any, there: list[float], fixed: list[int]) -> None:
        make = self.eu.MarkerBodyRigid
        markers = [self.system.AddMarker(make(bodyNumber=b, localPosition=p)) for b, p in ((one, at), (other, there))]
        self.system.AddObject(self.eu.GenericJoint(markerNumbers=markers, constrainedAxes=fixed))

    def ball(self, one: Any, at: list[float], other: Any, there: list[float]) -> None:
        markers = [self.marker(one, *at[:2]), self.marker(other, *there[:2])]
        self.system.AddObject(self.eu.SphericalJoint(markerNumbers=markers))

    def slider(self) -> tuple[list[tuple[Any, list[float]]], Any]:
        start = _start(WORKS[0], ("pend1", "pend2", "block"))
        crank = self.solid([0, 3, 0], 0.5 * np.pi, start[0])
        rod = self.solid([4, 3, 0], float(np.arctan2(-3.0, 4.0)), start[1])
        block = self.solid([8, 0, 0], 0.0, start[2])
        self.joint(self.ground, [0, 0, 0], crank, [-3, 0, 0], [1, 1, 1, 1, 1, 0])
        self.ball(crank, [3, 0, 0], rod, [-5, 0, 0])
        self.ball(rod, [5, 0, 0], block, [0, 0, 0])
        self.joint(self.ground, [0, 0, 0], block, [0, 0, 0], [0, 1, 1, 1, 1, 1])
        return [(b, [0.0, 0.0, 0.0]) for b in (crank, block, rod)], self.drive(block, 0)


def _start(work: Work, names: tuple[str, ...]) -> list[tuple[Floats, Floats]]:
    """Velocities and angular velocities at the start, so that Exudyn begins without a shock."""
    solution = lw.analyse(work.make(), times=[0.0])
    return [(solution.velocity(name)[0], solution.angular_velocity(name)[0]) for name in names]
