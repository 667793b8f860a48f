"""One subject, one chain, one process: build it, time its forward dynamics, report as a line of JSON.

`chains.py` runs it, also in another interpreter: so it needs NumPy and the subject's own library, and nothing else.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

LENGTH, MASS, WIDTH = 0.1, 1.0, 0.05  # as lw.chain
SIDE, END = MASS * (WIDTH**2 + LENGTH**2) / 12, MASS * (WIDTH**2 + WIDTH**2) / 12
Forward = Callable[[], Any]  # one forward dynamics at the state given to the builder; gives the accelerations
Builder = Callable[[int, np.ndarray, np.ndarray, np.ndarray], Forward]


def state(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and tau: a bent chain, the same for all."""
    q, v, tau = 0.1 * np.random.default_rng(n).standard_normal((3, n))
    return q.copy(), v.copy(), tau.copy()


# -- subjects: each imports its library before it returns a builder, so that memory is the chain's ----------------
def linkwright(method: str) -> tuple[str, Builder]:
    import linkwright as lw

    def build(n: int, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Forward:
        mech, out = lw.chain(n), np.empty(n)
        return lambda: mech.forward_dynamics(q, v, tau, method=method, out=out)

    return lw.__version__, build


def pinocchio() -> tuple[str, Builder]:
    import pinocchio as pin

    def build(n: int, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Forward:
        model, parent = pin.Model(), 0
        box, place = pin.Inertia.FromBox(MASS, WIDTH, WIDTH, LENGTH), pin.SE3(np.eye(3), np.array([0, 0, LENGTH / 2]))
        for i in range(n):
            step = pin.SE3(np.eye(3), np.array([0.0, 0.0, LENGTH if i else 0.0]))
            parent = model.addJoint(parent, pin.JointModelRY() if i % 2 else pin.JointModelRX(), step, f"j{i}")
            model.appendBodyToJoint(parent, box, place)
        data = model.createData()
        return lambda: pin.aba(model, data, q, v, tau)

    return pin.__version__, build


def mujoco() -> tuple[str, Builder]:
    import mujoco as mj

    def build(n: int, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Forward:
        spec = mj.MjSpec()  # its XML reader would stop at some 500 nested bodies
        spec.option.disableflags |= mj.mjtDisableBit.mjDSBL_CONTACT | mj.mjtDisableBit.mjDSBL_CONSTRAINT
        body = spec.worldbody
        for i in range(n):
            body = body.add_body(
                pos=[0.0, 0.0, LENGTH if i else 0.0], mass=MASS, ipos=[0, 0, LENGTH / 2], inertia=[SIDE, SIDE, END],
                explicitinertial=True,
            )  # fmt: skip
            body.add_joint(type=mj.mjtJoint.mjJNT_HINGE, axis=[0, 1, 0] if i % 2 else [1, 0, 0])
        model = spec.compile()
        data = mj.MjData(model)
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau

        def forward() -> Any:
            mj.mj_forward(model, data)
            return data.qacc

        return forward

    return mj.__version__, build


def drake() -> tuple[str, Builder]:
    import importlib.metadata

    from pydrake.math import RigidTransform
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import FixedOffsetFrame, RevoluteJoint, SpatialInertia, UnitInertia

    def build(n: int, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Forward:
        plant = MultibodyPlant(0.0)
        middle = np.array([0.0, 0.0, LENGTH / 2])
        box = UnitInertia.SolidBox(WIDTH, WIDTH, LENGTH).ShiftFromCenterOfMass(-middle)
        frame = plant.world_frame()
        for i in range(n):
            body = plant.AddRigidBody(f"b{i}", SpatialInertia(MASS, middle, box))
            plant.AddJoint(RevoluteJoint(f"j{i}", frame, body.body_frame(), [0, 1, 0] if i % 2 else [1, 0, 0]))
            if i + 1 < n:
                end = FixedOffsetFrame(f"f{i}", body.body_frame(), RigidTransform([0.0, 0.0, LENGTH]))
                frame = plant.AddFrame(end)
        plant.Finalize()
        context = plant.CreateDefaultContext()
        plant.get_applied_generalized_force_input_port().FixValue(context, tau)
        derivatives, both = plant.AllocateTimeDerivatives(), np.concatenate([q, v])

        def forward() -> Any:
            plant.SetPositionsAndVelocities(context, both)  # so that nothing is taken from Drake's caches
            plant.CalcTimeDerivatives(context, derivatives)
            return derivatives

        return forward

    return importlib.metadata.version("drake"), build


PEERS = {"Pinocchio": pinocchio, "MuJoCo": mujoco, "Drake": drake}


# -- one measurement ------------------------------------------------------------------------------------------
def resident() -> int:
    """Bytes of memory that this process holds now (where that is not told, has held at most)."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return peak()


def peak() -> int:
    """Bytes of memory that this process has held at most."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def timed(forward: Forward, seconds: float) -> tuple[float, int]:
    """The median of a call's time over blocks of calls that fill about `seconds`, and how many blocks.

    One thread is timed by its work, so that other processes do not count; several threads by the clock.
    """
    clock = time.process_time if os.environ.get("LINKWRIGHT_THREADS") == "1" else time.perf_counter
    start = clock()
    forward()
    once = max(clock() - start, 1e-7)
    inner = max(1, min(1000, int(2e-4 / max(once, 1e-9))))
    blocks = int(np.clip(seconds / (inner * once), 3, 1000))
    found = []
    for _ in range(blocks):
        start = clock()
        for _ in range(inner):
            forward()
        found.append((clock() - start) / inner)
    return float(np.median(found)), blocks


def work(subject: str, method: str, links: str, seconds: str, answer: str) -> None:
    """Measure, and print what was found; the accelerations go into the file `answer`, if it has a name."""
    n = int(links)
    version, build = linkwright(method) if subject == "Linkwright" else PEERS[subject]()
    q, v, tau = state(n)
    before, start = resident(), time.perf_counter()
    forward = build(n, q, v, tau)
    built = time.perf_counter()
    forward()
    found = {"version": version, "load": built - start, "first": time.perf_counter() - built}
    found["call"], found["blocks"] = timed(forward, float(seconds))
    a = forward()
    found["memory"] = peak() - before
    if answer:
        np.save(answer, a.CopyToVector()[n:] if subject == "Drake" else np.asarray(a))
    print(json.dumps(found))


def entry() -> None:
    """The words of the command line are the arguments of `work`."""
    try:
        work(*sys.argv[1:])
    except Exception as error:  # the report of a row that could not be measured
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
        if isinstance(error, ModuleNotFoundError):
            reason = f"not installed in this interpreter (module {error.name})"
        print(json.dumps({"error": reason}))
        sys.exit(1)
