"""Virtual work and assembly: on trees against articulated bodies, on closed loops against independent oracles.

Loops are given states in closed form: linkages with one freedom, whose Lagrangian equation is solved from energies
along the closed form; and random trees with joints put where they close at a random state, against the equations
of motion with multipliers, with constraints written here from the joints' geometry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import ModelError
from linkwright.kernels.interpret import interpreter as numpy_runner
from linkwright.mechanism import Mechanism
from linkwright.model.description import JOINT_ARRAYS, Frames, Names, kind_number
from linkwright.model.joint_kinds import KINDS, JointKind
from linkwright.model.topology import reverse
from robots import relative

METHODS = ("virtual-work", "assembly")
CLOSED = ("articulated-body", "virtual-work", "assembly", "mass-matrix")
methods = pytest.mark.parametrize("method", METHODS)
closed_methods = pytest.mark.parametrize("method", CLOSED)
seeds = pytest.mark.parametrize("seed", range(4))
STEP = 1e-30


def run(mech: lw.Mechanism, function: str, *arrays: np.ndarray, **options: object) -> np.ndarray:
    """A method's program by NumPy for one state."""
    program = mech.program(function, **options)
    (flat, *_) = numpy_runner.run(program, [x[None] for x in arrays], 1)
    return flat.reshape(program.outputs[0].shape)


def state(mech: lw.Mechanism, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = run(mech, "integrate", mech.neutral(), rng.standard_normal(mech.nv))
    v, tau = rng.standard_normal((2, mech.nv))
    return q, v, tau


# -- trees --------------------------------------------------------------------------------------------------
def with_armature(mech: lw.Mechanism) -> lw.Mechanism:
    """Every other joint gets an armature."""
    d = mech.description
    return Mechanism(replace(d, armature=np.where(np.arange(d.nj) % 2, 0.2, 0.0)))


#: Seeds and bases; the short run has each seed on one base.
TREES = [
    pytest.param(seed, floating, marks=[] if floating == (seed % 2 == 1) else [pytest.mark.slow])
    for seed in range(4)
    for floating in (False, True)
]


@pytest.mark.parametrize(("seed", "floating"), TREES)
@pytest.mark.parametrize(
    ("method", "form"), [("virtual-work", "unrolled"), ("virtual-work", "rolled"), ("assembly", "unrolled")]
)
def test_trees_of_every_joint_kind_move_as_articulated_bodies_do(
    seed: int, floating: bool, method: str, form: str
) -> None:
    mech = with_armature(lw.random_tree(14, seed, floating=floating))
    q, v, tau = state(mech, seed)
    push = np.random.default_rng(seed).standard_normal((mech.nb, 6))
    right = run(mech, "forward_dynamics", q, v, tau, push, wrenches=True)
    a = run(mech, "forward_dynamics", q, v, tau, push, wrenches=True, method=method, form=form)
    assert relative(a, right) < 1e-10


@pytest.mark.parametrize("kind", list(KINDS))
@methods
def test_a_chain_of_one_kind_moves_as_articulated_bodies_do(kind: str, method: str) -> None:
    mech = with_armature(lw.random_tree(4, 2, branching=1, joints=[kind]))
    q, v, tau = state(mech, 2)
    a = run(mech, "forward_dynamics", q, v, tau, method=method)
    assert np.allclose(a, run(mech, "forward_dynamics", q, v, tau), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", list(KINDS))
@methods
def test_joints_may_point_towards_ground(kind: str, method: str) -> None:
    d = lw.random_tree(4, 3, branching=1, joints=["revolute", kind, kind]).description
    # Parent and child of the joints after the first change places.
    parent, child = np.array(d.parent), np.array(d.child)
    parent[1:], child[1:] = d.child[1:], d.parent[1:]
    mech = Mechanism(replace(d, parent=parent, child=child))
    q, v, tau = state(mech, 3)
    a = run(mech, "forward_dynamics", q, v, tau, method=method)
    assert np.allclose(a, run(mech, "forward_dynamics", q, v, tau), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 65, pytest.param(200, marks=pytest.mark.slow)])
@seeds
def test_long_trees_move_as_articulated_bodies_do(n: int, seed: int) -> None:
    mech = lw.random_tree(n, seed, floating=bool(seed % 2))
    q, v, tau = state(mech, seed)
    right = run(mech, "forward_dynamics", q, v, tau)
    assert relative(run(mech, "forward_dynamics", q, v, tau, method="virtual-work"), right) < 1e-10


@methods
def test_a_single_free_body_obeys_newton_and_euler(method: str) -> None:
    mech = lw.chain(1, joint="free")
    q, v, tau = state(mech, 1)
    a = run(mech, "forward_dynamics", q, v, tau, method=method)
    assert relative(run(mech, "inverse_dynamics", q, v, a), tau) < 1e-12


@methods
def test_a_massless_body_may_ride_on_a_fixed_joint(method: str) -> None:
    with lw.Builder("lamp") as b:
        arm = b.body("arm", 1.0, (0.0, 0.0, 0.1), (0.01, 0.01, 0.001))
        plate, lamp = b.body("plate"), b.body("lamp", 0.5, (0.1, 0.0, 0.0), (0.002, 0.003, 0.004))
        b.joint("revolute", "ground", arm, axis=(0.0, 1.0, 0.0))
        b.joint("fixed", arm, plate, at=(0.0, 0.0, 0.3))
        b.joint("universal", plate, lamp, at=(0.0, 0.1, 0.0))
    mech = b.build()
    q, v, tau = state(mech, 0)
    a = run(mech, "forward_dynamics", q, v, tau, method=method)
    assert relative(a, run(mech, "forward_dynamics", q, v, tau)) < 1e-12


DEGENERATE = [
    (0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    (1.0, (0.1, 0.0, 0.0), (0.0, 0.0, 0.0)),
    (1.0, (0.0, 0.0, 0.1), (0.1, 0.1, 0.0)),
]


def cross_and_rod(*numbers: object, free: bool = False) -> lw.Mechanism:
    """A body with these inertial numbers between ground and a rod, whose mass may be a parameter."""
    with lw.Builder("cross") as b:
        mass = b.parameter("mass", 1.0) if free else 1.0
        cross, rod = b.body("cross", *numbers), b.body("rod", mass, (0.0, 0.0, 0.2), (0.01, 0.01, 0.001))
        b.joint("revolute", "ground", cross, axis=(1.0, 0.0, 0.0))
        b.joint("revolute", cross, rod, axis=(0.0, 1.0, 0.0))
    return b.build()


@pytest.mark.parametrize("numbers", DEGENERATE)
def test_virtual_work_refuses_a_moving_body_without_a_full_inertia_by_name(numbers: tuple) -> None:
    with pytest.raises(ModelError, match=r"'cross' has no mass.*articulated-body") as caught:
        cross_and_rod(*numbers).program("forward_dynamics", method="virtual-work")
    assert caught.value.element == "cross"


def test_a_free_parameter_elsewhere_does_not_hide_a_body_without_inertia_from_virtual_work() -> None:
    with pytest.raises(ModelError, match=r"'cross' has no mass.*articulated-body"):
        cross_and_rod(free=True).program("forward_dynamics", method="virtual-work", free=("mass",))


@pytest.mark.parametrize("numbers", DEGENERATE)
def test_assembly_takes_a_moving_body_without_a_full_inertia(numbers: tuple) -> None:
    mech = cross_and_rod(*numbers)
    q, v, tau = state(mech, 0)
    a = run(mech, "forward_dynamics", q, v, tau, method="assembly")
    assert relative(a, run(mech, "forward_dynamics", q, v, tau)) < 1e-12


def test_assembly_takes_a_body_without_inertia_beside_a_free_parameter() -> None:
    mech = cross_and_rod(free=True)
    q, v, tau = state(mech, 0)
    a = run(mech, "forward_dynamics", q, v, tau, np.array([2.0]), method="assembly", free=("mass",))
    assert relative(a, run(mech.with_parameters(mass=2.0), "forward_dynamics", q, v, tau)) < 1e-12


@methods
def test_a_mass_that_is_free_may_be_none_until_it_is_given(method: str) -> None:
    with lw.Builder("load") as b:
        mass = b.parameter("mass", 0.0)
        load = b.body("load", mass, (0.0, 0.0, 0.2), (0.01, 0.01, 0.001))
        b.joint("revolute", "ground", load, axis=(1.0, 0.0, 0.0))
    mech = b.build()
    q, v, tau = np.array([0.3]), np.array([0.7]), np.array([0.1])
    a = run(mech, "forward_dynamics", q, v, tau, np.array([2.0]), method=method, free=("mass",))
    assert relative(a, run(mech.with_parameters(mass=2.0), "forward_dynamics", q, v, tau)) < 1e-12


# -- linkages with one freedom --------------------------------------------------------------------------------
def lagrange(
    mech: lw.Mechanism,
    path: Callable[[complex], tuple[np.ndarray, np.ndarray]],
    angle: float,
    rate: float,
    tau: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and a of q = path(angle), from I = 2 T(q, q') and V: I θ̈ + ½ I' θ̇² + V' = tau · q', by complex steps.

    `path` gives q and q' = dq/dθ over complex numbers.
    """
    kinetic, potential = (mech.program(f"{kind}_energy").blocks[0] for kind in ("kinetic", "potential"))
    there = angle + 1j * STEP
    q, slope = path(there)
    inertia = 2.0 * kinetic.evaluate([*q, *slope])[0]
    force = tau @ slope.real - potential.evaluate([*q])[0].imag / STEP - 0.5 * inertia.imag / STEP * rate**2
    a = slope.real * (force / inertia.real) + slope.imag / STEP * rate**2
    return q.real, slope.real * rate, a


def planar_four_bar(turn: np.ndarray, lengths: tuple[float, float, float, float]) -> lw.Mechanism:
    """Crank, coupler and rocker, closed at the end of the coupler, in a plane turned by `turn`."""
    a, b, c, d = lengths
    with lw.Builder("four-bar") as m:
        m.gravity(turn @ np.array([0.0, -9.81, 0.0]))
        for name, mass, length in (("crank", 1.0, a), ("coupler", 2.0, b), ("rocker", 1.5, c)):
            m.body(name, mass, (length / 2, 0.02, 0.01), (0.002, 0.03 * length, 0.031 * length))
        m.joint("revolute", m.frame("ground", turn), "crank", "first")
        m.joint("revolute", m.frame("ground", turn, turn @ np.array([d, 0.0, 0.0])), "rocker", "last")
        m.joint("revolute", m.triad("crank", (a, 0.0, 0.0)), "coupler", "second")
        m.joint("revolute", m.triad("coupler", (b, 0.0, 0.0)), m.triad("rocker", (c, 0.0, 0.0)), "third", cut=True)
    return m.build()


def freudenstein(lengths: tuple[float, float, float, float]) -> Callable[[complex], tuple[np.ndarray, np.ndarray]]:
    """Joint angles (crank, rocker, coupler on crank) and their slopes for the crank's angle."""
    a, b, c, d = lengths

    def path(theta: complex) -> tuple[np.ndarray, np.ndarray]:
        k1, k2, k3 = d / a, d / c, (a * a - b * b + c * c + d * d) / (2 * a * c)
        x = np.cos(theta) - k1 - k2 * np.cos(theta) + k3
        y, z = -2 * np.sin(theta), k1 - (k2 + 1) * np.cos(theta) + k3
        rocker = 2 * np.arctan((-y - np.sqrt(y * y - 4 * x * z)) / (2 * x))
        e = np.array([d + c * np.cos(rocker) - a * np.cos(theta), c * np.sin(rocker) - a * np.sin(theta)])
        coupler = 2 * np.arctan(e[1] / (b + e[0]))
        slope = a * np.sin(theta - coupler) / (c * np.sin(rocker - coupler))
        across = a * np.sin(rocker - theta) / (b * np.sin(coupler - rocker))
        return np.array([theta, rocker, coupler - theta]), np.array([1.0, slope, across - 1.0])

    return path


TURNS = [np.eye(3), lw.random_tree(1, 5).description.ri[0]]


@closed_methods
@pytest.mark.parametrize("turn", TURNS, ids=["in the x-y plane", "in any plane"])
@pytest.mark.parametrize("angle", [0.3, 1.9, 4.0])
def test_a_planar_four_bar_obeys_lagrange(method: str, turn: np.ndarray, angle: float) -> None:
    lengths = (0.3, 0.8, 0.6, 0.7)
    mech, tau = planar_four_bar(turn, lengths), np.array([0.3, -0.2, 0.5])
    q, v, a = lagrange(mech, freudenstein(lengths), angle, 2.0, tau)
    assert relative(run(mech, "forward_dynamics", q, v, tau, method=method), a) < 1e-10


@closed_methods
@pytest.mark.parametrize("turn", TURNS, ids=["in the x-y plane", "in any plane"])
def test_a_parallelogram_swings_as_its_cranks_do(method: str, turn: np.ndarray) -> None:
    mech, tau = planar_four_bar(turn, (0.4, 0.7, 0.4, 0.7)), np.array([0.1, 0.2, 0.3])

    def path(theta: complex) -> tuple[np.ndarray, np.ndarray]:
        return np.array([theta, theta, -theta]), np.array([1.0, 1.0, -1.0 + 0j])

    q, v, a = lagrange(mech, path, 0.9, -1.5, tau)
    assert relative(run(mech, "forward_dynamics", q, v, tau, method=method), a) < 1e-10


def bennett(a: float, alpha: float, beta: float) -> tuple[lw.Mechanism, Callable[[complex], tuple]]:
    """Bennett's spatial four-bar: equal opposite links, sin α / a = sin β / b; and its closed form."""
    lengths, twists = (a, a * np.sin(beta) / np.sin(alpha)) * 2, (alpha, beta) * 2
    with lw.Builder("bennett") as m:
        before = m.frame("ground")
        for k in range(3):
            body = m.body(f"link{k}", 1.0 + k, (0.1, 0.02, 0.03), (0.02, 0.03, 0.04, 0.001, 0.002, 0.003))
            m.joint("revolute", before, body, f"joint{k}")
            c, s = np.cos(twists[k]), np.sin(twists[k])
            before = m.frame(body, [[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]], (lengths[k], 0.0, 0.0))
        # The last link is ground itself: its far end is ground's frame.
        c, s = np.cos(twists[3]), np.sin(twists[3])
        back = np.array([[1.0, 0.0, 0.0], [0.0, c, s], [0.0, -s, c]])
        m.joint("revolute", before, m.frame("ground", back, back @ np.array([-lengths[3], 0.0, 0.0])), "last", cut=True)
    ratio = np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2)

    def path(theta: complex) -> tuple[np.ndarray, np.ndarray]:
        t = np.tan(theta / 2)
        second = 2 * np.arctan(ratio / t)
        slope = -ratio * (1 + t * t) / (t * t + ratio * ratio)
        return np.array([theta, second, -theta]), np.array([1.0, slope, -1.0])

    return m.build(), path


@closed_methods
def test_bennetts_linkage_obeys_lagrange(method: str) -> None:
    mech, path = bennett(0.4, 0.6, 1.1)
    tau = np.array([0.4, -0.3, 0.2])
    q, v, a = lagrange(mech, path, 1.2, 1.7, tau)
    assert relative(run(mech, "forward_dynamics", q, v, tau, method=method), a) < 1e-10


@closed_methods
@pytest.mark.parametrize("closure", ["prismatic", "cylindrical", "planar"])
def test_a_slider_crank_obeys_lagrange(method: str, closure: str) -> None:
    """Crank, rod and block; the block's slide closes the loop. In the plane, fewer constraints do as well."""
    crank, rod = 0.2, 0.7
    with lw.Builder("slider-crank") as m:
        m.gravity((0.0, -9.81, 0.0))
        for name, com in (("crank", 0.1), ("rod", 0.3), ("block", 0.05)):
            m.body(name, 1.0, (com, 0.01, 0.02), (0.01, 0.02, 0.025))
        m.joint("revolute", "ground", "crank", "first")
        m.joint("revolute", m.triad("crank", (crank, 0.0, 0.0)), "rod", "second")
        m.joint("revolute", m.triad("rod", (rod, 0.0, 0.0)), "block", "third")
        h = (0.0, 1.0, 0.0) if closure == "planar" else (1.0, 0.0, 0.0)
        slide = {"h": h, "f": (0.0, 0.0, 1.0)}
        m.joint(closure, m.triad("ground", **slide), m.triad("block", **slide), "slide", cut=True)
    mech = m.build()

    def path(theta: complex) -> tuple[np.ndarray, np.ndarray]:
        second = -np.arcsin(crank / rod * np.sin(theta))
        slope = -crank * np.cos(theta) / (rod * np.cos(second))
        return np.array([theta, second - theta, -second]), np.array([1.0, slope - 1.0, -slope])

    tau = np.array([1.0, 0.5, -0.5])
    q, v, a = lagrange(mech, path, 0.8, 3.0, tau)
    assert relative(run(mech, "forward_dynamics", q, v, tau, method=method), a) < 1e-10


# -- random trees with loops ----------------------------------------------------------------------------------
def closed(
    tree: lw.Mechanism, q: np.ndarray, loops: list[tuple[str, int, int]], seed: int
) -> tuple[lw.Mechanism, lw.Mechanism]:
    """The tree with joints (kind, parent, child body; −1 ground) put where they close at q; and with frames alone."""
    rng, d = np.random.default_rng(seed), tree.description
    rows: dict[str, list] = {name: list(getattr(d, name)) for name in JOINT_ARRAYS}
    names, frames, bodies, turns, places = list(d.joint_names), [], [], [], []
    for k, (kind, parent, child) in enumerate(loops):
        motion, pitch = KINDS[kind], 0.1 if kind == "screw" else 0.0
        terms = motion.terms(motion.integrate(motion.neutral(), rng.uniform(-0.7, 0.7, motion.nv)), pitch)
        i = np.eye(4)
        i[:3, :3], i[:3, 3] = lw.random_tree(1, seed + k).description.ri[0], rng.uniform(-0.2, 0.2, 3)
        x = np.eye(4)
        x[:3, :3], x[:3, 3] = motion.rotation(terms).matrix(), motion.shift(terms, pitch)
        a, b = (np.eye(4) if body < 0 else run(tree, "pose", q, frame=d.body_names[body]) for body in (parent, child))
        j = np.linalg.solve(b, a @ i @ x)
        new = {"kind": kind_number(kind), "parent": parent, "child": child, "pitch": pitch}
        new |= {"ri": i[:3, :3], "pi": i[:3, 3], "rj": j[:3, :3], "pj": j[:3, 3]}
        for name in JOINT_ARRAYS:
            rows[name].append(new.get(name, np.inf if name.endswith("limit") or name == "upper" else 0.0))
        names.append(f"loop{k}")
        for side, body, frame in (("i", parent, i), ("j", child, j)):
            frames.append(f"{side}{k}")
            bodies.append(body)
            turns.append(frame[:3, :3])
            places.append(frame[:3, 3])
    marked = replace(d, frames=Frames(Names(frames), np.array(bodies, np.int32), np.array(turns), np.array(places)))
    arrays = {name: np.array(rows[name], dtype=getattr(d, name).dtype) for name in JOINT_ARRAYS}
    cuts = frozenset(range(d.nj, d.nj + len(loops)))
    return Mechanism(replace(marked, joint_names=Names(names), cuts=cuts, **arrays)), Mechanism(marked)


def equations(kind: str, r: np.ndarray, p: np.ndarray, pitch: float) -> list:
    """What a joint asks of triad j in triad i, at the level of positions."""
    tilt = [r[0, 2], r[1, 2]]
    return {
        "fixed": [*p, r[0, 1], *tilt],
        "revolute": [*p, *tilt],
        "prismatic": [p[0], p[1], r[0, 1], *tilt],
        "cylindrical": [p[0], p[1], *tilt],
        "universal": [*p, r[2, 2]],
        "spherical": [*p],
        "planar": [p[2], *tilt],
        "screw": [p[0], p[1], p[2] - pitch * np.arctan(r[1, 0] / r[0, 0]), *tilt],
        "free": [],
    }[kind]


class Constraints:
    """The loops' equations of a tree with marked frames, and their derivatives."""

    def __init__(self, marked: lw.Mechanism, loops: list[tuple[str, int, int]]) -> None:
        self.marked, self.loops = marked, loops
        frames = [[f"{side}{k}" for side in "ij"] for k in range(len(loops))]
        self.poses = [[marked.program("pose", frame=frame).blocks[0] for frame in pair] for pair in frames]
        self.rate = marked.program("rate").blocks[0]

    def residual(self, q: np.ndarray) -> np.ndarray:
        found: list = []
        for (kind, _, _), (pose_i, pose_j) in zip(self.loops, self.poses, strict=True):
            i, j = (np.array(b.evaluate([*q]), dtype=complex).reshape(4, 4) for b in (pose_i, pose_j))
            r, p = i[:3, :3].T @ j[:3, :3], i[:3, :3].T @ (j[:3, 3] - i[:3, 3])
            found += equations(kind, r, p, 0.1)
        return np.array(found, dtype=complex)

    def along(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """J(q) v."""
        moved = np.array([float(x) for x in self.rate.evaluate([*q, *v])])
        return self.residual(q + 1j * STEP * moved).imag / STEP

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        return np.stack([self.along(q, e) for e in np.eye(self.marked.nv)], axis=1)

    def drift(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """d(J v)/dt at constant v, by a difference of order 6."""
        h, weights = 2e-3, {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
        return sum(
            sign * w / h * self.along(run(self.marked, "integrate", q, sign * n * h * v), v)
            for n, w in weights.items()
            for sign in (1, -1)
        )


def check_with_multipliers(tree: lw.Mechanism, loops: list[tuple[str, int, int]], seed: int) -> None:
    """All methods against M a + h = tau + Jᵀ λ, J a + J̇ v = 0, at a state that closes the loops."""
    q, v, tau = state(tree, seed)
    mech, marked = closed(tree, q, loops, seed)
    assert len(mech.loops) == len(loops)
    constraints = Constraints(marked, loops)
    assert np.abs(constraints.along(q, 0.0 * v)).max(initial=0.0) < 1e-14
    j = constraints.jacobian(q)
    v = v - np.linalg.pinv(j, rcond=1e-9) @ (j @ v)
    gamma = constraints.drift(q, v)
    m, h = run(marked, "mass_matrix", q), run(marked, "bias_forces", q, v)
    kkt = np.block([[m, j.T], [j, np.zeros((len(j), len(j)))]])
    a = np.linalg.lstsq(kkt, np.concatenate([tau - h, -gamma]), rcond=1e-12)[0][: mech.nv]
    found = {method: run(mech, "forward_dynamics", q, v, tau, method=method) for method in CLOSED}
    without = run(marked, "forward_dynamics", q, v, tau)
    scale = max(1.0, np.abs(j @ without + gamma).max(initial=0.0))  # what the loops take away
    for method in CLOSED:
        assert np.abs(j @ found[method] + gamma).max(initial=0.0) < 1e-10 * scale, method
        assert relative(found[method], a) < 1e-10, method


#: Which bodies a joint closes a loop between; with ground, the short run has the kinds whose equations differ most.
PLACES = {"two bodies": (4, 7), "from ground": (-1, 6), "to ground": (5, -1)}
CLOSURES = [
    pytest.param(
        kind,
        bodies,
        marks=[] if place == "two bodies" or kind in ("revolute", "screw") else [pytest.mark.slow],
        id=f"{place}-{kind}",
    )
    for place, bodies in PLACES.items()
    for kind in KINDS
]


@pytest.mark.parametrize(("kind", "bodies"), CLOSURES)
def test_every_joint_kind_closes_a_loop(kind: str, bodies: tuple[int, int]) -> None:
    check_with_multipliers(with_armature(lw.random_tree(8, 11)), [(kind, *bodies)], 3)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_loops_on_a_floating_base_share_bodies(seed: int) -> None:
    loops = [("spherical", 3, 6), ("universal", 6, 7), ("revolute", 2, 8)]
    check_with_multipliers(lw.random_tree(9, seed, floating=True), loops, seed)


def test_a_loop_closed_twice_at_one_place_moves_as_if_closed_once() -> None:
    """Two joints that ask for the same thing: all of the second is redundant."""
    tree = lw.random_tree(8, 4)
    q, v, tau = state(tree, 4)
    once, marked = closed(tree, q, [("revolute", 3, 7)], 4)
    j = Constraints(marked, [("revolute", 3, 7)]).jacobian(q)
    v = v - np.linalg.pinv(j) @ (j @ v)
    d = once.description
    again = {name: np.concatenate([getattr(d, name), getattr(d, name)[-1:]]) for name in JOINT_ARRAYS}
    twice = Mechanism(
        replace(d, joint_names=Names([*d.joint_names, "again"]), cuts=frozenset({d.nj - 1, d.nj}), **again)
    )
    for method in CLOSED:
        right = run(once, "forward_dynamics", q, v, tau, method=method)
        assert relative(run(twice, "forward_dynamics", q, v, tau, method=method), right) < 1e-9


# -- what is refused, and what passes through ------------------------------------------------------------------
def bars(**options: object) -> lw.Builder:
    """Two bars from ground, joined at their ends by the joint `constraint`."""
    b = lw.Builder("bars")
    for k, name in enumerate(("left", "right")):
        b.body(name, 1.0, (0.0, 0.2, 0.0), (0.02, 0.001, 0.02))
        b.joint("spherical", "ground", name, f"{name} foot", at=(0.3 * k, 0.0, 0.0))
    ends = [b.triad(name, (0.0, 0.4, 0.0)) for name in ("left", "right")]
    b.joint("spherical", *ends, "tie", cut=True, **options)
    return b


@pytest.mark.parametrize("method", ["diagonal", "triangular"])
def test_other_methods_refuse_a_loop_and_name_those_that_close_it(method: str) -> None:
    with pytest.raises(ModelError, match=r"joint 'tie' closes a loop.*virtual-work, assembly or mass-matrix") as caught:
        bars().build().program("forward_dynamics", method=method)
    assert caught.value.element == "tie"


def test_other_functions_refuse_a_loop() -> None:
    with pytest.raises(ModelError, match="joint 'tie' closes a loop; inverse_dynamics_derivatives is for"):
        bars().build().program("inverse_dynamics_derivatives")


@closed_methods
def test_a_loops_joint_has_no_armature_in_a_recursion_over_the_tree(method: str) -> None:
    with pytest.raises(ModelError, match=r"'tie' has an armature but no coordinate.*cut the loop at another joint"):
        bars(armature=0.1).build().program("forward_dynamics", method=method, form="unrolled")


def welded(gap: float) -> lw.Mechanism:
    """A swinging frame of three fixed bars; the fourth corner is `gap` apart."""
    with lw.Builder("frame") as b:
        for name in ("first", "second", "third"):
            b.body(name, 1.0, (0.1, 0.0, 0.0), (0.001, 0.01, 0.01))
        b.joint("revolute", "ground", "first", axis=(0.0, 1.0, 0.0))
        b.joint("fixed", "first", "second", at=(0.2, 0.0, 0.0))
        b.joint("fixed", "first", "third", at=(0.0, 0.0, 0.2))
        ends = b.triad("second", (0.0, 0.0, 0.2)), b.triad("third", (0.2 + gap, 0.0, 0.0))
        b.joint("fixed", *ends, "corner", cut=True)
    return b.build()


@closed_methods
def test_a_corner_that_fixed_joints_hold_open_is_refused_by_name(method: str) -> None:
    with pytest.raises(ModelError, match="joint 'corner' cannot be closed") as caught:
        welded(0.01).program("forward_dynamics", method=method)
    assert caught.value.element == "corner"


@closed_methods
def test_a_corner_that_is_closed_already_changes_nothing(method: str) -> None:
    mech = welded(0.0)
    q, v, tau = np.array([0.3]), np.array([0.7]), np.array([0.1])
    d = mech.description
    rows = {name: getattr(d, name)[:-1] for name in JOINT_ARRAYS}
    open_frame = Mechanism(replace(d, joint_names=Names(d.joint_names[:-1]), cuts=frozenset(), **rows))
    a = run(mech, "forward_dynamics", q, v, tau, method=method)
    assert relative(a, run(open_frame, "forward_dynamics", q, v, tau)) < 1e-12


@closed_methods
def test_what_is_not_a_number_is_not_one_after_a_loop(method: str) -> None:
    mech = planar_four_bar(TURNS[1], (0.3, 0.8, 0.6, 0.7))
    a = run(mech, "forward_dynamics", np.array([np.nan, 0.1, 0.2]), np.zeros(3), np.zeros(3), method=method)
    assert np.isnan(a).any()


@closed_methods
def test_a_free_parameter_reaches_the_loop(method: str) -> None:
    """A triad of the loop's joint and a mass depend on a parameter that is left open."""
    with lw.Builder("pair") as b:
        length = b.parameter("length", 0.4)
        for k, name in enumerate(("left", "right")):
            b.body(name, length * 2.0, (0.0, 0.2, 0.0), (0.02, 0.001, 0.02))
            b.joint("revolute", "ground", name, f"{name} foot", at=(0.3 * k, 0.0, 0.0))
        b.body("bridge", 1.0, (0.15, 0.0, 0.0), (0.001, 0.01, 0.01))
        b.joint("revolute", b.triad("left", (0.0, length, 0.0)), "bridge")
        b.joint("spherical", b.triad("bridge", (0.3, 0.0, 0.0)), b.triad("right", (0.0, length, 0.0)), "tie", cut=True)
    mech = b.build()
    q, v, tau = np.array([0.4, 0.4, -0.4]), np.array([1.1, 1.1, -1.1]), np.array([0.2, 0.0, 0.3])
    free = run(mech, "forward_dynamics", q, v, tau, np.array([0.5]), method=method, free=("length",))
    right = run(mech.with_parameters(length=0.5), "forward_dynamics", q, v, tau, method=method)
    assert relative(free, right) < 1e-12


@closed_methods
def test_a_moment_on_the_crank_is_a_torque_of_its_joint(method: str) -> None:
    bare = planar_four_bar(np.eye(3), (0.4, 0.7, 0.4, 0.7))
    q, v, tau = np.array([0.9, 0.9, -0.9]), np.array([-1.5, -1.5, 1.5]), np.zeros(3)
    push = np.zeros((3, 6))
    push[0, :3] = [0.0, 2.0, 0.0]  # at the crank's axis: no work
    push[0, 5] = 0.7
    a = run(bare, "forward_dynamics", q, v, tau, push, wrenches=True, method=method)
    assert relative(a, run(bare, "forward_dynamics", q, v, np.array([0.7, 0.0, 0.0]), method=method)) < 1e-12


@pytest.mark.compiled
@closed_methods
def test_compiled_batches_of_loops_give_what_numpy_gives(method: str) -> None:
    lengths, rng = (0.3, 0.8, 0.6, 0.7), np.random.default_rng(0)
    mech, path = planar_four_bar(TURNS[1], lengths), freudenstein(lengths)
    q, slope = (np.array(x).real for x in zip(*(path(angle) for angle in rng.uniform(0.0, 6.0, 9)), strict=True))
    v, tau = slope * rng.standard_normal((9, 1)), rng.standard_normal((9, 3))
    a = mech.forward_dynamics(q, v, tau, method=method)
    for k in range(9):
        assert relative(a[k], run(mech, "forward_dynamics", q[k], v[k], tau[k], method=method)) < 1e-10
        assert relative(mech.forward_dynamics(q[k], v[k], tau[k], method=method), a[k]) < 1e-10


@pytest.mark.parametrize("kind", [*KINDS.values(), *map(reverse, KINDS.values())], ids=lambda kind: kind.name)
def test_a_joint_holds_what_it_does_not_free(kind: JointKind) -> None:
    """Qᵀ S = 0, Tᵀ S = 1, and Q and T together span all wrenches."""
    q = kind.integrate(kind.neutral(), np.random.default_rng(1).standard_normal(kind.nv))
    terms = kind.terms(q, 0.3)
    s, held, t = kind.subspace(terms, 0.3), kind.complement(terms, 0.3), kind.dual(terms, 0.3)
    assert np.allclose(held.T @ s, 0.0, atol=1e-15)
    assert np.allclose(t.T @ s, np.eye(kind.nv), atol=1e-14)
    assert np.linalg.matrix_rank(np.concatenate([held, t], axis=1)) == 6
