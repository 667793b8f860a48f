"""Reactions of closed mechanisms: Newton and Euler hold for every body, and redundant ones are of least norm."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from closed_mechanisms import MECHANISMS, Floats, four_bar, state
from coupled_mechanisms import draw
from linkwright.dynamics.closed.redundancy import constraint_jacobian
from linkwright.dynamics.joint_reactions import exerted, reactions
from redundant_linkages import bennett_rows, loop, sarrus
from rotation import some


@pytest.mark.parametrize("name", ["four-bar", "driven four-bar", "rssr", "platform"])
def test_every_body_obeys_newton_and_euler(name: str) -> None:
    """Momenta of single bodies, by differences in time along the motion, against all wrenches on them."""
    mech = MECHANISMS[name]()
    t = 0.1
    q, v = state(mech, t)
    rng = np.random.default_rng(0)
    tau = rng.normal(size=mech.nv)
    a = mech.forward_dynamics(q, v, tau, t=t)
    wrenches = mech.reactions(q, v, tau, t=t)
    d = mech.description
    total = {b: np.zeros(6) for b in range(d.nb)}
    names = [joint.name for joint in mech.joints] + list(mech.loops)
    poses = {b: mech.pose(q, d.body_names[b]) for b in total}
    for joint, wrench in zip(names, wrenches, strict=True):
        j = d.joint_names.position("joint", joint)
        own = int(d.child[j])
        other = int(d.parent[j])
        if joint in [x.name for x in mech.joints]:
            carried = d.body_names.position("body", mech.bodies[names.index(joint)].name)
            own, other = carried, other if carried == own else own
        force, moment = poses[own][:3, :3] @ wrench[:3], poses[own][:3, :3] @ wrench[3:]
        moment = moment + np.cross(poses[own][:3, 3], force)  # about ground's origin
        for body, sign in ((own, 1.0), (other, -1.0)):
            if body >= 0:
                total[body] += sign * np.concatenate([force, moment])

    def momenta(h: float) -> dict[int, np.ndarray]:
        q_h = mech.integrate(q, h * v + 0.5 * h * h * a)
        v_h = v + h * a
        found = {}
        for b in total:
            pose, twist = mech.pose(q_h, d.body_names[b]), mech.twist(q_h, v_h, d.body_names[b], "aligned")
            r, omega = pose[:3, :3], twist[3:]
            arm = r @ d.com[b]
            p = d.mass[b] * (twist[:3] + np.cross(omega, arm))
            xx, yy, zz, xy, xz, yz = d.inertia[b]
            inertia = r @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ r.T
            found[b] = np.concatenate([p, inertia @ omega + np.cross(pose[:3, 3] + arm, p)])
        return found

    h = 1e-5
    ahead, behind = momenta(h), momenta(-h)
    for b in total:
        weight = d.mass[b] * d.gravity
        centre = poses[b][:3, 3] + poses[b][:3, :3] @ d.com[b]
        wanted = (ahead[b] - behind[b]) / (2 * h) - np.concatenate([weight, np.cross(centre, weight)])
        assert total[b] == pytest.approx(wanted, abs=2e-6 * max(1.0, np.abs(wanted).max()))


def test_trees_and_their_closed_twins_agree() -> None:
    """A tree of which one joint is told by a redundant twin of it has the tree's reactions, shared by the two."""
    with lw.Builder("arm") as b:
        upper, lower = (b.body(n, 1.0, (0.4, 0.1, 0), (0.1, 0.2, 0.2)) for n in ("upper", "lower"))
        b.joint("revolute", b.ground, upper, "A", axis=(0, 1, 0))
        b.joint("revolute", upper, lower, "B", axis=(0, 1, 0), at=(1, 0, 0))
    tree = b.build()
    h = {"h": (0.0, 1.0, 0.0)}
    b.joint("revolute", b.triad(upper, (1, 0, 0), **h), b.triad(lower, **h), "B again", cut=True)
    twin = b.build()
    rng = np.random.default_rng(3)
    q, v, tau = rng.normal(size=(3, 2))
    alone, shared = tree.reactions(q, v, tau), twin.reactions(q, v, tau)
    assert shared[0] == pytest.approx(alone[0], abs=1e-9)
    assert shared[1] + shared[2] == pytest.approx(alone[1], abs=1e-9)
    drive = np.array([0, 0, 0, 0, tau[1], 0])
    assert shared[1] - drive == pytest.approx(shared[2], abs=1e-9)


def test_drivers_power_is_their_multiplier_times_their_rate() -> None:
    mech = four_bar(drive=True)
    t = 0.3
    q, v = state(mech, t)
    tau = np.zeros(mech.nv)
    a = mech.forward_dynamics(q, v, tau, t=t)
    h = 1e-5

    def energy(s: float) -> float:
        there = mech.integrate(q, s * v + 0.5 * s * s * a)
        return float(mech.kinetic_energy(there, v + s * a) + mech.potential_energy(there))

    phi_t = constraint_jacobian(mech, q, t)[1]
    power = -mech.constraint_forces(q, v, tau, t=t) @ phi_t
    assert abs(power) > 0.01
    assert (energy(h) - energy(-h)) / (2 * h) == pytest.approx(power, rel=1e-7)


@pytest.mark.compiled
def test_reactions_come_in_batches() -> None:
    mech = four_bar()
    q, v = mech.project(np.tile(mech.assemble(), (3, 1)), np.random.default_rng(1).normal(size=(3, 3)))
    tau = np.zeros((3, 3))
    many = mech.reactions(q, v, tau)
    assert many.shape == (3, 4, 6)
    assert many[2] == pytest.approx(mech.reactions(q[2], v[2], tau[2]), abs=1e-12)


def test_a_state_that_is_not_finite_has_no_reactions_and_spoils_no_other() -> None:
    mech = four_bar()
    q, v = mech.project(np.tile(mech.assemble(), (3, 1)), np.random.default_rng(0).normal(size=(3, 3)))
    tau = np.ones(3)
    right = mech.reactions(q, v, tau)
    q[1, 0] = np.nan
    found = mech.reactions(q, v, tau)
    assert np.isnan(found[1]).all()
    assert found[[0, 2]] == pytest.approx(right[[0, 2]], abs=1e-12)
    assert np.isnan(mech.reactions(q[1], v[1], tau)).all()


@pytest.mark.parametrize("name", ["slider with rod", "driven four-bar", "pen on line", "driven arm"])
def test_ties_and_drivers_exert_their_multipliers_where_these_are_the_only_ones(name: str) -> None:
    mech = MECHANISMS[name]()
    t = 0.1
    q, v = state(mech, t)
    tau = np.random.default_rng(2).normal(size=mech.nv)
    a = mech.forward_dynamics(q, v, tau, t=t)
    _, others = exerted(mech, q[None], v[None], a[None], tau[None], np.array([t]))
    named = dict(zip(mech.constraints, mech.constraint_forces(q, v, tau, t=t), strict=True))
    assert others
    for (group, element), found in others.items():
        wanted = [x for about, x in named.items() if about.startswith(f"{group} {element!r}")]
        assert found[0] == pytest.approx(wanted, rel=1e-9, abs=1e-9)


#: Random mechanisms with loops or drivers, whose gears are in no redundant loop.
STRAIGHT = (
    0,
    3,
    4,
    7,
    10,
    13,
    15,
    18,
    21,
    22,
    23,
    24,
    25,
    27,
    28,
    29,
    30,
    31,
    32,
    34,
    38,
    39,
    42,
    45,
    46,
    49,
    51,
    54,
    58,
    59,
)


def tilted() -> lw.Mechanism:
    """A plane four-bar about an axis that is none of the coordinate axes', with a pin that is welded to its crank, and
    a damper on the joint that closes the loop."""
    axis = np.array([0.3, -0.5, 0.8]) / np.linalg.norm([0.3, -0.5, 0.8])
    across = np.cross(axis, (1.0, 0.0, 0.0))
    across /= np.linalg.norm(across)
    up = np.cross(axis, across)
    corners = [x * across + y * up for x, y in ((0.0, 0.0), (0.4, 1.0), (3.0, 1.5), (3.0, 0.0))]
    with lw.Builder("tilted") as b:
        crank, pin, coupler, rocker = (b.body(n, 1.2, (0.1, 0.2, -0.1), (0.1, 0.2, 0.25)) for n in "cpkr")
        for body, corner in ((crank, 0), (pin, 1), (coupler, 1), (rocker, 3)):
            b.place(body, corners[corner])
        ends = [
            ("A", b.ground, crank, 0),
            ("B", pin, coupler, 1),
            ("D", b.ground, rocker, 3),
            ("C", rocker, coupler, 2),
        ]
        origins = {crank: corners[0], pin: corners[1], coupler: corners[1], rocker: corners[3], b.ground: corners[0]}
        b.joint("fixed", b.triad(crank, corners[1] - corners[0]), b.triad(pin), "weld")
        for name, i, j, corner in ends:
            at, to = (corners[corner] - origins[body] for body in (i, j))
            b.joint(
                "revolute", b.triad(i, at, h=axis, f=across), b.triad(j, to, h=axis, f=across), name, cut=name == "C"
            )
        b.joint_damper("C", 0.7)
    return b.build()


REDUNDANT = {
    "tilted": tilted,
    "bennett": lambda: loop("bennett", bennett_rows(0.4, 0.6, 1.1)),
    "sarrus": sarrus,
    "sarrus, of which ranks are counted where its legs are folded": lambda: sarrus(0.02),
}


def both(mech: lw.Mechanism, t: float, seed: int = 0) -> tuple[Floats, Floats]:
    """The reactions by straight code and by the pseudo-inverse."""
    rng = np.random.default_rng(seed)
    guess = (1.4, -3.7, -1.4) if mech.name == "bennett" else None  # its drawing is far from closed
    q, v = mech.project(mech.assemble(guess, t=t), rng.normal(size=mech.nv), t=t)
    tau = rng.normal(size=mech.nv)
    assert mech.auxiliary.joint_wrenches.straight
    return mech.reactions(q, v, tau, t=t), reactions(mech, q, v, tau, np.array(t))


@pytest.mark.parametrize("name", [*MECHANISMS, *REDUNDANT])
def test_straight_code_gives_the_reactions_of_the_pseudo_inverse(name: str) -> None:
    straight, careful = both({**MECHANISMS, **REDUNDANT}[name](), 0.2)
    assert straight == pytest.approx(careful, rel=1e-10, abs=1e-10 * np.abs(careful).max())


@pytest.mark.parametrize("seed", some(STRAIGHT, 5))
def test_straight_code_of_random_mechanisms_does_too(seed: int) -> None:
    mech = draw(seed).mech
    straight, careful = both(mech, 0.3)
    assert straight == pytest.approx(careful, rel=1e-9, abs=1e-10 * np.abs(careful).max())


def test_regular_states_do_not_take_the_pseudo_inverse(monkeypatch: pytest.MonkeyPatch) -> None:
    mech = four_bar()
    q, v = mech.project(np.tile(mech.assemble(), (4, 1)), np.random.default_rng(0).normal(size=(4, 3)))
    tau = np.ones(3)
    mech.reactions(q, v, tau)
    asked = []
    monkeypatch.setattr(type(mech.auxiliary.reacting), "at", lambda *x: asked.append(x))
    mech.reactions(q, v, tau)
    for k in range(4):
        mech.reactions(q[k], v[k], tau)
    assert not asked


def test_a_singular_position_takes_the_pseudo_inverse() -> None:
    with lw.Builder("parallelogram") as b:
        one, two, three = (b.body(n, 1.0, (0.1, 0.0, 0.0), (0.1, 0.2, 0.2)) for n in "abc")
        for name, i, at, j, to in (
            ("A", b.ground, (0, 0, 0), one, (0, 0, 0)),
            ("B", one, (1, 0, 0), two, (0, 0, 0)),
            ("D", b.ground, (2, 0, 0), three, (0, 0, 0)),
            ("C", two, (2, 0, 0), three, (1, 0, 0)),
        ):
            b.joint("revolute", b.triad(i, at), b.triad(j, to), name, cut=name == "C")
    mech = b.build()
    q, still, tau = np.zeros(3), np.zeros(3), np.zeros(3)
    wrenches = mech.reactions(q, still, tau)
    assert np.isfinite(wrenches).all()
    assert (wrenches == reactions(mech, q, still, tau, np.array(0.0))).all()
