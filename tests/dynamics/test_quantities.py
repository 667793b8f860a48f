"""Laws that name other joints, places and distances act as the same forces worked out by hand."""

import numpy as np
import pytest

import linkwright as lw
from linkwright.model.expression import TIME

RNG = np.random.default_rng(5)
INERTIA = (0.2, 0.3, 0.4)


def arm(add=lambda b: None) -> lw.Mechanism:
    b = lw.Builder("arm")
    for k, (kind, above) in enumerate((("revolute", "ground"), ("universal", "b0"), ("prismatic", "b1"))):
        b.body(f"b{k}", 1.0 + k, (0.1, 0.2, -0.3), INERTIA)
        b.joint(kind, above, f"b{k}", f"j{k}", axis=(0.3, 1.0, 0.2), at=(0.1, 0.0, -0.4))
    b.triad("b2", (0.3, 0.1, 0.2), name="tip")
    add(b)
    return b.build()


PLAIN = arm()
TIP = "tip"


def state() -> tuple[np.ndarray, ...]:
    return tuple(RNG.normal(size=(3, 4)))


def position(q):
    return PLAIN.pose(q, TIP)[:3, 3]


LAWS = {
    "a coordinate": (lambda b: b.coordinate("j1", 1) ** 2, lambda q, v: q[2] ** 2),
    "a rate": (lambda b: 2 * b.rate("j2") + TIME, lambda q, v: 2 * v[3] + 0.7),
    "a place": (lambda b: b.component("tip", "y"), lambda q, v: position(q)[1]),
    "a velocity": (lambda b: b.component("tip", "vz"), lambda q, v: PLAIN.twist(q, v, TIP, "aligned")[2]),
    "a turning": (lambda b: b.component("b1", "wx"), lambda q, v: PLAIN.twist(q, v, "b1", "aligned")[3]),
    "a distance": (lambda b: b.distance("tip", "ground"), lambda q, v: np.linalg.norm(position(q))),
    "its rate": (
        lambda b: b.distance_rate("ground", "tip"),
        lambda q, v: position(q) @ PLAIN.twist(q, v, TIP, "aligned")[:3] / np.linalg.norm(position(q)),
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_a_law_of_a_quantity_is_the_force_that_it_says(name):
    law, by_hand = LAWS[name]
    mech = arm(lambda b: b.joint_force("j0", law(b)))
    for _ in range(3):
        q, v, tau = state()
        force = np.array([by_hand(q, v), 0.0, 0.0, 0.0])
        wanted = PLAIN.forward_dynamics(q, v, tau + force)
        np.testing.assert_allclose(mech.forward_dynamics(q, v, tau, t=0.7), wanted, rtol=1e-10, atol=1e-10)


def free_pair(**options) -> lw.Mechanism:
    b = lw.Builder("pair")
    b.gravity((0, 0, 0))
    for k in (1, 2):
        b.joint("free", "ground", b.body(f"b{k}", float(k), (0.1, 0.2, 0.3), INERTIA), f"j{k}")
    b.triad("b1", (0.5, 0, 0.1), h=(0, 1, 0), name="tip")
    b.triad("b2", (0, 0.2, 0), h=(1, 1, 0), name="other")
    b.applied_wrench("tip", (1.0, 2.0, b.distance("tip", "other")), (0.3, TIME, 0.2), **options)
    return b.build()


@pytest.mark.parametrize("axes", ["frame", "ground", "other"])
def test_a_wrench_and_its_reaction_leave_the_momentum_of_both_bodies(axes):
    mech = free_pair(axes=axes, reaction="other")
    q = mech.integrate(mech.neutral(), RNG.normal(size=12))
    v, h = RNG.normal(size=12), 1e-6
    a = mech.forward_dynamics(q, v, np.zeros(12), t=0.3)
    assert np.max(np.abs(a)) > 0.1
    before, after = (mech.momentum(mech.integrate(q, s * h * v), v + s * h * a) for s in (-1, 1))
    np.testing.assert_allclose((after - before) / (2 * h), 0.0, atol=1e-7)


def test_axes_of_another_triad_turn_the_force():
    q = free_pair().integrate(free_pair().neutral(), RNG.normal(size=12))
    v, none = np.zeros(12), np.zeros(12)
    there = free_pair(axes="other")
    r = there.pose(q, "other")[:3, :3]
    b = lw.Builder("by hand")
    b.gravity((0, 0, 0))
    for k in (1, 2):
        b.joint("free", "ground", b.body(f"b{k}", float(k), (0.1, 0.2, 0.3), INERTIA), f"j{k}")
    b.triad("b1", (0.5, 0, 0.1), h=(0, 1, 0), name="tip")
    b.triad("b2", (0, 0.2, 0), h=(1, 1, 0), name="other")
    far = np.linalg.norm(there.pose(q, "tip")[:3, 3] - there.pose(q, "other")[:3, 3])
    b.applied_wrench("tip", r @ [1.0, 2.0, far], r @ [0.3, 0.4, 0.2], axes="ground")
    wanted = b.build().forward_dynamics(q, v, none)
    np.testing.assert_allclose(there.forward_dynamics(q, v, none, t=0.4), wanted, rtol=1e-10, atol=1e-12)


def test_the_coordinate_of_a_joint_that_closes_a_loop_can_be_named():
    def loop(law):
        b = lw.Builder("loop")
        for k, (x, y, angle) in enumerate(((0, 0, np.pi / 2), (0, 1, 0), (2, 0, np.pi / 2))):
            b.body(f"b{k}", 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1))
            b.place(f"b{k}", (x, y, 0), f=(np.cos(angle), np.sin(angle), 0))
        b.joint("revolute", "ground", "b0", "j0")
        b.joint("revolute", b.triad("b0", (1, 0, 0)), "b1", "j1")
        b.joint("revolute", b.triad("ground", (2, 0, 0)), "b2", "j2")
        b.joint("revolute", b.triad("b1", (2, 0, 0)), b.triad("b2", (1, 0, 0)), "closing", cut=True)
        b.joint_force("j0", law(b))
        return b.build()

    mech = loop(lambda b: b.coordinate("closing") + 2 * b.rate("closing"))
    q = mech.assemble()
    q, v = mech.project(q + np.array([0.3, 0.1, 0.2]), [0.5, -0.2, 0.4])
    names = [joint.name for joint in mech.joints]
    at = {name: k for k, name in enumerate(names)}
    # All axes are parallel: the angles about the loop add up.
    angle = q[at["j2"]] - q[at["j0"]] - q[at["j1"]]
    rate = v[at["j2"]] - v[at["j0"]] - v[at["j1"]]
    by_hand = loop(lambda b: float(angle + 2 * rate))
    none = np.zeros(3)
    wanted = by_hand.forward_dynamics(q, v, none)
    np.testing.assert_allclose(mech.forward_dynamics(q, v, none), wanted, rtol=1e-9, atol=1e-9)


def test_a_spring_without_length_pulls_as_hooke_says_where_its_ends_meet():
    b = lw.Builder("slide")
    b.gravity((0, 0, 0))
    b.joint("planar", "ground", b.body("puck", 2.0, inertia=INERTIA), "floor")
    b.spring("puck", "ground", 50.0, 0.0, damping=1.0)
    mech = b.build()
    still = np.zeros(3)
    assert np.array_equal(mech.forward_dynamics(still, still, still), still)
    slope = mech.forward_dynamics_derivatives(still, still, still)[0]
    assert np.allclose(slope, np.diag([-25.0, -25.0, 0.0]))
    assert np.allclose(mech.forward_dynamics([1e-9, 0, 0], still, still), [-25e-9, 0, 0], rtol=1e-9, atol=0)


def test_a_distance_of_nothing_and_its_rate_are_numbers():
    b = lw.Builder("slide")
    b.joint("planar", "ground", b.body("puck", 2.0, inertia=INERTIA), "floor")
    b.joint_force("floor", b.distance("puck", "ground") + b.distance_rate("puck", "ground") + 3.0)
    mech = b.build()
    still = np.zeros(3)
    assert np.allclose(mech.forward_dynamics(still, [1.0, 2.0, 3.0], still)[0], 1.5, atol=1e-12)
    assert np.isfinite(mech.forward_dynamics_derivatives(still, still, still)).all()
