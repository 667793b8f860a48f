"""Rows of four-bars in Exudyn's hands, in the plane and in space, and the largest step that is accurate enough."""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from published import solutions
from published.problems import GRAVITY

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """What is chosen of Exudyn by trying."""

    planar: bool = True
    index2: bool = True  # the trapezoidal rule on index 2, else generalised-α on index 3
    modified: bool = True  # Newton's method with a Jacobian that is kept
    sparse: bool = False

    def __str__(self) -> str:
        rule = "trapezoidal rule of index 2" if self.index2 else "generalised-α"
        newton, solver = "modified" if self.modified else "full", "sparse" if self.sparse else "dense"
        return f"{'in the plane' if self.planar else 'in space'}, {rule}, {newton} Newton, {solver}"


@dataclass(frozen=True)
class Result:
    """Seconds of work, the largest error of a tip's place (m) and the largest change of energy, relative."""

    seconds: float
    error: float
    drift: float


def errors(n: int, t: Floats, angle: Floats, rate: Floats) -> tuple[float, float]:
    """Of the uprights' angles and rates (T, n + 1): the error of their tips, and of the energy in units of its start.

    The other bars are parallel to ground as long as the uprights are parallel to each other; this is measured too.
    """
    wanted = solutions.four_bars(n, t)["pivot0"][:, None]
    place = np.abs(2.0 * np.sin(0.5 * (angle - wanted))).max()
    mean, mean_rate = angle.mean(axis=1), rate.mean(axis=1)
    inertia, weight = (n + 1) / 3.0 + n, GRAVITY * (0.5 * (n + 1) + n)
    energy = 0.5 * inertia * mean_rate**2 + weight * np.sin(mean)
    return float(place), float(np.abs(energy / energy[0] - 1.0).max())


def run(n: int, steps: int, chosen: Settings, end: float = 10.0) -> Result | None:
    """One simulation without output to files; None if it fails. Making the model is not timed.

    Sensors keep angle and rate of the first and the last upright, at most 1,000 times.
    """
    import exudyn as exu
    import exudyn.utilities as eu

    warnings.simplefilter("ignore")
    system = exu.SystemContainer().AddSystem()
    bodies = (_planar if chosen.planar else _spatial)(system, eu, n)
    kinds = exu.OutputVariableType
    sensors = [
        system.AddSensor(eu.SensorBody(bodyNumber=b, outputVariableType=kind, storeInternal=True))
        for b in (bodies[0], bodies[n])
        for kind in (kinds.Rotation, kinds.AngularVelocity)
    ]
    system.Assemble()
    settings = exu.SimulationSettings()
    settings.solutionSettings.writeSolutionToFile = False
    settings.solutionSettings.sensorsWritePeriod = end / min(steps, 1000)
    settings.parallel.numberOfThreads = 1
    settings.timeIntegration.numberOfSteps = steps
    settings.timeIntegration.endTime = end
    settings.timeIntegration.newton.useModifiedNewton = chosen.modified
    settings.timeIntegration.verboseMode = 0
    settings.displayGlobalTimers = False
    linear, rule = exu.LinearSolverType, exu.DynamicSolverType
    settings.linearSolverType = linear.EigenSparse if chosen.sparse else linear.EXUdense
    kind = rule.TrapezoidalIndex2 if chosen.index2 else rule.GeneralizedAlpha
    begin = time.process_time()
    try:
        done = system.SolveDynamic(settings, solverType=kind, showHints=False)
    except Exception:
        return None
    took = time.process_time() - begin
    found = [system.GetSensorStoredData(s) for s in sensors]
    if done is False or found[0][-1, 0] < 0.999 * end:
        return None
    angle = np.stack([np.unwrap(found[k][:, -1]) for k in (0, 2)], axis=1)
    angle += 0.5 * np.pi - angle[0]  # in the plane, rotations count from the drawn position
    rate = np.stack([found[k][:, -1] for k in (1, 3)], axis=1)
    return Result(took, *errors(n, found[0][:, 0], angle, rate))


def _planar(system: Any, eu: Any, n: int) -> list[Any]:
    """Three coordinates a bar, two equations a pin. Uprights first."""
    ground = system.AddObject(eu.ObjectGround())

    def bar(x: float, y: float, angle: float, rates: list[float]) -> Any:
        node = system.AddNode(eu.NodeRigidBody2D(referenceCoordinates=[x, y, angle], initialVelocities=rates))
        made = system.AddObject(eu.ObjectRigidBody2D(physicsMass=1.0, physicsInertia=1.0 / 12.0, nodeNumber=node))
        at = system.AddMarker(eu.MarkerBodyMass(bodyNumber=made))
        system.AddLoad(eu.Gravity(markerNumber=at, loadVector=[0.0, -GRAVITY, 0.0]))
        return made

    def pin(one: Any, at: float, other: Any, there: float) -> None:
        places = ((one, [at, 0.0, 0.0]), (other, [there, 0.0, 0.0]))
        markers = [system.AddMarker(eu.MarkerBodyPosition(bodyNumber=b, localPosition=p)) for b, p in places]
        system.AddObject(eu.RevoluteJoint2D(markerNumbers=markers))

    uprights = [bar(k, 0.5, 0.5 * np.pi, [0.5, 0.0, -1.0]) for k in range(n + 1)]
    tops = [bar(k + 0.5, 1.0, 0.0, [1.0, 0.0, 0.0]) for k in range(n)]
    for k, upright in enumerate(uprights):
        pin(ground, float(k), upright, -0.5)
    for k, top in enumerate(tops):
        pin(uprights[k], 0.5, top, -0.5)
        pin(top, 0.5, uprights[k + 1], 0.5)
    return uprights + tops


def _spatial(system: Any, eu: Any, n: int) -> list[Any]:
    """Seven coordinates a bar; the pin that closes a loop holds its point in the plane alone, so none is redundant."""
    ground = system.AddObject(eu.ObjectGround())
    inertia = eu.RigidBodyInertia(mass=1.0, inertiaTensor=np.diag([1e-3, 1.0 / 12.0, 1.0 / 12.0]))

    def bar(x: float, y: float, angle: float, velocity: list[float], turn: float) -> Any:
        return system.CreateRigidBody(
            referencePosition=[x, y, 0.0],
            referenceRotationMatrix=eu.RotationMatrixZ(angle),
            initialVelocity=velocity,
            initialAngularVelocity=[0.0, 0.0, turn],
            inertia=inertia,
            gravity=[0.0, -GRAVITY, 0.0],
        )

    def pin(one: Any, at: float, other: Any, there: float, fixed: list[int]) -> None:
        places = ((one, [at, 0.0, 0.0]), (other, [there, 0.0, 0.0]))
        markers = [system.AddMarker(eu.MarkerBodyRigid(bodyNumber=b, localPosition=p)) for b, p in places]
        system.AddObject(eu.GenericJoint(markerNumbers=markers, constrainedAxes=fixed))

    uprights = [bar(k, 0.5, 0.5 * np.pi, [0.5, 0.0, 0.0], -1.0) for k in range(n + 1)]
    tops = [bar(k + 0.5, 1.0, 0.0, [1.0, 0.0, 0.0], 0.0) for k in range(n)]
    for k, upright in enumerate(uprights):
        pin(ground, float(k), upright, -0.5, [1, 1, 1, 1, 1, 0])
    for k, top in enumerate(tops):
        pin(uprights[k], 0.5, top, -0.5, [1, 1, 1, 1, 1, 0])
        pin(top, 0.5, uprights[k + 1], 0.5, [1, 1, 0, 0, 0, 0])
    return uprights + tops


def fastest_settings(n: int, planar: bool) -> Settings:
    """The fastest in short runs. The rule is generalised-α: that of index 2 fails where the constraints lose rank."""
    every = [Settings(planar, False, modified, sparse) for modified, sparse in product((True, False), repeat=2)]
    if n > 20:
        every = [s for s in every if s.sparse]
    found = [(r.seconds, s) for s in every if (r := run(n, 500, s, 1.0)) is not None]
    if not found:
        raise SystemExit(f"Exudyn finishes {n} four-bars with none of its settings")
    return min(found, key=lambda x: x[0])[1]


def enough_steps(n: int, chosen: Settings, wanted: float, first: int) -> int | None:
    """About the fewest steps with which the tips' error is as wanted, found by the method's second order."""
    steps = first
    for _ in range(8):
        found = run(n, steps, chosen)
        if found is not None and found.error <= wanted:
            return steps
        # Toward the wanted error by second order, at least a little, and no wild jumps where order is not seen yet.
        grow = 2.0 if found is None else float(np.clip(1.02 * np.sqrt(found.error / wanted), 1.05, 8.0))
        steps = int(steps * grow)
    return None
