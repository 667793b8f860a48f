"""PID: the sampled closed form of a double integrator, anti-windup, task space on trees and closed chains."""

import numpy as np
import pytest
from controlled import block, five_bar, five_bar_start, pendulum, planar_arm

import linkwright as lw
from linkwright.errors import ModelError, ShapeError

T = 0.01
SETTINGS = lw.control.PidSettings


def sampled_block(kp: float, kd: float, ki: float, goal: float, samples: int, mass: float = 2.0) -> np.ndarray:
    """Positions at the samples by the exact matrices of a double integrator with a held force."""
    x, v, total, found = 0.0, 0.0, 0.0, []
    for _ in range(samples):
        found.append(x)
        total += T * (goal - x)
        a = (kp * (goal - x) - kd * v + ki * total) / mass
        x, v = x + T * v + 0.5 * T * T * a, v + T * a
    return np.array(found)


def test_pid_on_a_double_integrator_is_the_closed_form_of_the_sampled_system() -> None:
    mech = block()
    controller = lw.control.pid(mech, 50.0, 20.0, 30.0, lw.control.Hold([1.0]))
    run = lw.control.Loop(mech, controller, period=T, sensors="exact").run(2.0, [0.0])
    assert run.status
    assert len(run) == 201
    assert np.allclose(run.q[:, 0], sampled_block(50.0, 20.0, 30.0, 1.0, 201), atol=1e-12)


def test_rates_by_difference_give_another_sampled_system_and_its_closed_form() -> None:
    mech = block()
    controller = lw.control.pid(mech, 50.0, 20.0, 0.0, lw.control.Hold([1.0]))
    run = lw.control.Loop(mech, controller, period=T).run(1.0, [0.0])
    x, v, before = 0.0, 0.0, 0.0
    for k in range(101):
        assert abs(run.q[k, 0] - x) < 1e-12
        a = (50.0 * (1.0 - x) - 20.0 * (x - before) / T) / 2.0
        before = x
        x, v = x + T * v + 0.5 * T * T * a, v + T * a


@pytest.mark.parametrize("by_loop", [False, True], ids=["its own limit", "the loop's limit"])
def test_the_integral_stands_still_while_forces_are_cut(by_loop: bool) -> None:
    mech, goal = block(), lw.control.Hold([1.0])

    def overshoot(limit: float | None) -> float:
        own = None if by_loop else limit
        controller = lw.control.pid(mech, 20.0, 15.0, 20.0, goal, settings=SETTINGS(limit=own))
        loop = lw.control.Loop(mech, controller, period=T, sensors="exact", torque_limit=limit if by_loop else None)
        run = loop.run(20.0, [0.0])
        assert abs(run.q[-1, 0] - 1.0) < 1e-3
        return float(run.q.max()) - 1.0

    def wound_up() -> float:
        x, v, total, most = 0.0, 0.0, 0.0, 0.0
        for _ in range(2000):
            total += T * (1.0 - x)
            a = float(np.clip(20.0 * (1.0 - x) - 15.0 * v + 20.0 * total, -1.0, 1.0)) / 2.0
            x, v = x + T * v + 0.5 * T * T * a, v + T * a
            most = max(most, x)
        return most - 1.0

    assert overshoot(1.0) < 0.5 * wound_up()


def test_gravity_is_held_without_an_integral_if_the_model_is_asked_for_it() -> None:
    mech = pendulum()
    controller = lw.control.pid(mech, 30.0, 5.0, 0.0, lw.control.Hold([0.8]), settings=SETTINGS(gravity=True))
    run = lw.control.Loop(mech, controller, sensors="exact").run(3.0, [0.0])
    assert abs(run.q[-1, 0] - 0.8) < 1e-6


def test_task_space_forces_are_the_transposed_jacobian_on_a_tree() -> None:
    mech = planar_arm()
    q = np.array([0.4, 0.9])
    pose = mech.pose(q, "tip")
    goal = lw.control.Pose([pose[0, 3] + 0.01, pose[1, 3] - 0.02, 0.0])
    controller = lw.control.pid(mech, 100.0, 0.0, 0.0, goal, space="task", frame="tip", settings=SETTINGS(axes="xy"))
    run = lw.control.Loop(mech, controller, sensors="exact").run(0.002, q)
    jacobian = mech.jacobian(q, "tip", "aligned")[:2]
    assert np.allclose(run.command[0], jacobian.T @ [1.0, -2.0], atol=1e-12)


def test_task_space_forces_hold_a_force_on_a_closed_chain() -> None:
    # With a force f on the pen and its S⁻ᵀ f on the cranks, virtual work vanishes: the weightless machine stays.
    mech = five_bar()
    q = five_bar_start(mech)
    goal = lw.control.Pose(mech.pose(q, "pen")[:3, 3] + np.array([0.01, 0.0, 0.0]))
    controller = lw.control.pid(mech, 1000.0, 0.0, 0.0, goal, space="task", frame="pen", settings=SETTINGS(axes="xy"))
    run = lw.control.Loop(mech, controller).run(0.002, q)
    tau = np.zeros(mech.nv)
    tau[:2] = run.command[0]
    accelerations = [mech.forward_dynamics(q, np.zeros(mech.nv), x) for x in (tau, np.zeros(mech.nv))]
    power = mech.jacobian(q, "pen", "aligned")[0] @ (accelerations[0] - accelerations[1])
    w = np.linalg.svd(mech_g(mech, q))[2][-2:].T  # the rates that the loop allows
    assert np.allclose(w.T @ tau, w.T @ (10.0 * mech.jacobian(q, "pen", "aligned")[0]), atol=1e-9)
    assert power > 0.0


def mech_g(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """The loops' Jacobian by differences of what their closing leaves open."""
    h, columns = 1e-6, []
    for unit in np.eye(mech.nv):
        ahead, behind = (mech.kernels.position_correction(mech.integrate(q, s * h * unit))[1] for s in (1.0, -1.0))
        columns.append((ahead - behind) / (2 * h))
    g = np.array(columns).T
    return g[np.abs(g).max(axis=1) > 1e-6]


def test_a_pid_without_memory_is_a_law_for_simulations() -> None:
    mech = block()
    controller = lw.control.pid(mech, 50.0, 20.0, 0.0, lw.control.Hold([1.0]))
    sol = lw.simulate(mech, 3.0, q0=[0.0], tau=controller.law(), rtol=1e-8)
    t = sol.time
    assert np.allclose(sol.q[:, 0], 1.0 - np.exp(-5.0 * t) * (1.0 + 5.0 * t), atol=1e-6)
    with pytest.raises(ModelError, match="keeps an integral"):
        lw.control.pid(mech, 50.0, 20.0, 1.0, lw.control.Hold([1.0])).law()


def test_wrong_gains_and_references_are_told() -> None:
    mech, goal = block(), lw.control.Hold([1.0])
    with pytest.raises(ShapeError, match=r"kp has shape \(2,\)"):
        lw.control.pid(mech, [1.0, 2.0], 1.0, 0.0, goal)
    with pytest.raises(ModelError, match="kd must be finite and not negative"):
        lw.control.pid(mech, 1.0, -1.0, 0.0, goal)
    with pytest.raises(ShapeError, match=r"needs \(1,\)"):
        lw.control.pid(mech, 1.0, 1.0, 0.0, lw.control.Hold([1.0, 2.0]))
    with pytest.raises(ModelError, match="needs frame="):
        lw.control.pid(mech, 1.0, 1.0, 0.0, goal, space="task")
    with pytest.raises(ModelError, match="give reference="):
        lw.control.pid(mech, 1.0, 1.0)


def crane() -> lw.Mechanism:
    with lw.Builder("crane") as b:
        along = {"h": (1, 0, 0), "f": (0, 1, 0)}
        trolley, load = b.body("cart", 10.0, (0, 0, 0), (1, 1, 1)), b.body("load", 5.0, (0, 0, -2), (1, 1, 1))
        b.joint("prismatic", b.triad(b.ground, **along), b.triad(trolley, **along), "trolley")
        b.joint("revolute", b.triad(trolley, h=(0, 1, 0)), b.triad(load, h=(0, 1, 0)), "swing", actuated=False)
    return b.build()


@pytest.mark.parametrize("joints", [None, ["trolley"]], ids=["by actuators", "named"])
def test_the_driven_joint_of_an_under_actuated_tree_is_controlled(joints: list[str] | None) -> None:
    mech = crane()
    controller = lw.control.pid(mech, 400.0, 300.0, 5.0, lw.control.Hold([1.0]), settings=SETTINGS(joints=joints))
    run = lw.control.Loop(mech, controller, period=T).run(20.0, [0.0, 0.1])
    assert run.status
    assert abs(run.q[-1, 0] - 1.0) < 0.05


def test_the_weight_of_an_under_actuated_tree_cannot_be_held_by_pid() -> None:
    with pytest.raises(ModelError, match="under-actuated: the joint 'swing'"):
        lw.control.pid(crane(), 1.0, 1.0, 0.0, lw.control.Hold([1.0]), settings=SETTINGS(gravity=True))
