"""The falling mechanisms of `simulation.py` in the hands of Pinocchio and MuJoCo, read from one URDF."""

from __future__ import annotations

import re
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import linkwright as lw
from robots import find

Floats = NDArray[np.float64]
#: Seconds of one core's work, and the coordinates after every step.
Run = tuple[float, Floats]
STEP = 1e-3


@dataclass(frozen=True)
class Fall:
    """A serial mechanism and the state from which it falls, without friction, limits or contact."""

    name: str
    mech: Any
    q: Floats
    v: Floats

    @property
    def urdf(self) -> str:
        """The mechanism as its peers read it."""
        from linkwright.formats.urdf_writer import write_urdf

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return write_urdf(self.mech.description)


def double_pendulum() -> Fall:
    """Two thin rods of 1 m and 1 kg on axes along y, let go from 90° and from 30° beyond it."""
    with lw.Builder("double_pendulum") as b:
        before: Any = b.ground
        for k, place in enumerate(((0, 0, 0), (0, 0, -1))):
            link = b.body(f"rod{k}", 1.0, (0, 0, -0.5), (1.0 / 12.0, 1.0 / 12.0, 1e-3))
            # Limits out of reach keep the joint's one coordinate in every peer.
            limits = {"lower": -1e6, "upper": 1e6, "velocity": 1e6, "effort": 1e6}
            b.joint("revolute", before, link, f"hinge{k}", axis=(0, 1, 0), at=place, **limits)
            before = link
    return Fall("double pendulum", b.build(), np.array([0.5 * np.pi, np.pi / 6.0]), np.zeros(2))


def panda() -> Fall:
    """The arm of seven joints with its fingers held, out of a bent posture."""
    arm = lw.load(find("panda.urdf")).lock({"panda_finger_joint1": 0.0})
    return Fall("Panda", arm, np.array([0.3, -0.5, 0.2, -1.8, 0.4, 1.2, 0.5]), np.zeros(7))


FALLS: tuple[Callable[[], Fall], ...] = (double_pendulum, panda)


# -- Pinocchio ----------------------------------------------------------------------------------------------------
def by_pinocchio(fall: Fall, steps: int, *, manifold: bool) -> Run:
    """RK4 in a Python loop over `pin.aba`; coordinates by `pin.integrate`, or by sums, since here nq = nv."""
    import pinocchio as pin

    model = _pinocchio(fall.urdf)
    data, h = model.createData(), STEP
    half, sixth, aba, integrate = 0.5 * h, h / 6.0, pin.aba, pin.integrate
    q, v, tau = fall.q.copy(), fall.v.copy(), np.zeros(model.nv)
    out = np.empty((steps + 1, model.nq))
    out[0] = q
    begin = time.process_time()
    if manifold:
        for k in range(1, steps + 1):
            a1 = aba(model, data, q, v, tau).copy()
            v2 = v + half * a1
            a2 = aba(model, data, integrate(model, q, half * v), v2, tau).copy()
            v3 = v + half * a2
            a3 = aba(model, data, integrate(model, q, half * v2), v3, tau).copy()
            v4 = v + h * a3
            a4 = aba(model, data, integrate(model, q, h * v3), v4, tau)
            q = integrate(model, q, sixth * (v + 2.0 * (v2 + v3) + v4))
            v = v + sixth * (a1 + 2.0 * (a2 + a3) + a4)
            out[k] = q
    else:
        for k in range(1, steps + 1):
            a1 = aba(model, data, q, v, tau).copy()
            v2 = v + half * a1
            a2 = aba(model, data, q + half * v, v2, tau).copy()
            v3 = v + half * a2
            a3 = aba(model, data, q + half * v2, v3, tau).copy()
            v4 = v + h * a3
            a4 = aba(model, data, q + h * v3, v4, tau)
            q = q + sixth * (v + 2.0 * (v2 + v3) + v4)
            v = v + sixth * (a1 + 2.0 * (a2 + a3) + a4)
            out[k] = q
    return time.process_time() - begin, out


@cache
def _pinocchio(urdf: str) -> Any:
    import pinocchio as pin

    model = pin.buildModelFromXML(urdf)
    assert model.nq == model.nv, "sums of coordinates need one coordinate a rate"
    return model


# -- MuJoCo -------------------------------------------------------------------------------------------------------
@cache
def _mujoco(urdf: str) -> Any:
    """MuJoCo's model with RK4, and everything off that costs time and does nothing here."""
    import mujoco

    # Without this the reader would turn the inertias that violate its inequalities into others.
    extension = '<mujoco><compiler balanceinertia="false" fusestatic="true" discardvisual="true"/></mujoco>'
    model = mujoco.MjModel.from_xml_string(re.sub(r"(<robot[^>]*>)", rf"\1{extension}", urdf, count=1))
    model.opt.timestep = STEP
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    off = mujoco.mjtDisableBit
    for flag in (off.mjDSBL_CONTACT, off.mjDSBL_CONSTRAINT, off.mjDSBL_ACTUATION, off.mjDSBL_SENSOR):
        model.opt.disableflags |= flag
    model.dof_damping[:] = 0.0
    model.dof_frictionloss[:] = 0.0
    model.dof_armature[:] = 0.0
    assert model.nq == model.nv
    return model


def by_mujoco(fall: Fall, steps: int, *, native: bool) -> Run:
    """`mj_step` in a Python loop that keeps every state, or all steps in one call of `mujoco.rollout`."""
    import mujoco
    from mujoco import rollout

    model = _mujoco(fall.urdf)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = fall.q, fall.v
    out = np.empty((steps + 1, model.nq))
    out[0] = fall.q
    if native:
        first = _mujoco_states(model, fall.q[None], fall.v[None])
        begin = time.process_time()
        states, _ = rollout.rollout(model, data, first, nstep=steps, skip_checks=False)
        took = time.process_time() - begin
        out[1:] = states[0, :, 1 : 1 + model.nq]
        return took, out
    step, q = mujoco.mj_step, data.qpos
    begin = time.process_time()
    for k in range(1, steps + 1):
        step(model, data)
        out[k] = q
    return time.process_time() - begin, out


def _mujoco_states(model: Any, q: Floats, v: Floats) -> Floats:
    """Time, positions, velocities: one row a state."""
    return np.concatenate([np.zeros((len(q), 1)), q, v], axis=1)


def rollout_by_mujoco(fall: Fall, q: Floats, v: Floats, steps: int, threads: int) -> tuple[float, Floats]:
    """Seconds on the clock of `mujoco.rollout` over all states with so many threads, and the last coordinates.

    Its pool of threads and its outputs are made before.
    """
    import mujoco
    from mujoco import rollout

    model = _mujoco(fall.urdf)
    first = _mujoco_states(model, q, v)
    states = np.zeros((len(q), steps, first.shape[1]))
    data = [mujoco.MjData(model) for _ in range(threads)]
    with rollout.Rollout(nthread=threads) as pool:
        pool.rollout(model, data, first[: 10 * threads], nstep=2)
        begin = time.perf_counter()
        pool.rollout(model, data, first, nstep=steps, state=states)
        took = time.perf_counter() - begin
    return took, states[:, -1, 1 : 1 + model.nq].copy()
