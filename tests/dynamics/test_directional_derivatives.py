"""Derivatives column by column: beside programs of whole matrices, differences, Pinocchio, and in their limits."""

import numpy as np
import pinocchio as pin
import pytest

import closed_mechanisms
import linkwright as lw
from closed_mechanisms import state
from linear_differences import by_differences
from linkwright.base import arguments
from linkwright.dynamics import requests
from linkwright.dynamics.directional_derivatives import derivatives
from linkwright.dynamics.functions import Request
from linkwright.dynamics.requests import RequestRules
from linkwright.errors import MemoryLimitError, ModelError, ShapeError
from linkwright.formats.urdf_writer import write_urdf
from linkwright.tape import derivative
from redundant_linkages import parallelogram
from robots import Twin, relative

FORWARD, INVERSE = "forward_dynamics_derivatives", "inverse_dynamics_derivatives"


def geared(links: int, *, gears: bool = True, springs: bool = True) -> lw.Mechanism:
    """A branched tree with dampers, springs, stops, forces between points that depend on time, and gears."""
    rng = np.random.default_rng(5)
    with lw.Builder("geared") as b:
        bodies = [b.ground]
        for k in range(links):
            com = tuple(0.3 * rng.normal(size=3))
            bodies.append(b.body(f"b{k}", 1.0 + rng.random(), com, (1.1, 1.2, 1.3)))
            parent = bodies[0] if not k else bodies[1 + int(rng.integers(max(0, k - 2), k))]
            kind = ("revolute", "prismatic", "revolute", "spherical")[k % 4]
            damping = 0.3 if springs else 0.0
            b.joint(kind, parent, bodies[-1], f"j{k}", axis=tuple(rng.normal(size=3)), damping=damping)
            if springs and k % 4 == 0:
                b.joint_spring(f"j{k}", 2.0 + k)
            if gears and k % 8 == 6:
                b.mimic(f"j{k}", f"j{k - 2}", 1.5)
        if springs:
            first, last = (b.triad(x, (0.1, 0.2, 0.3)) for x in (bodies[1], bodies[-1]))
            b.point_force(first, last, lambda d, dd: 3.0 * lw.TIME - 2.0 * d - 0.5 * dd)
    return b.build()


def states(mech: lw.Mechanism, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    if mech.closed:
        return [*state(mech), rng.normal(size=mech.nv)]
    return [mech.integrate(mech.neutral(), rng.normal(size=mech.nv)), *rng.normal(size=(2, mech.nv))]


TREES = {
    "chain": lambda: lw.chain(9),
    "all kinds": lambda: lw.random_tree(12, seed=2),
    "gears": lambda: geared(9, springs=False),
    "springs": lambda: geared(7, gears=False),
    "gears and springs": lambda: geared(8),
}


@pytest.mark.parametrize("function", [FORWARD, INVERSE])
@pytest.mark.parametrize("name", TREES)
def test_columns_of_a_tree_are_those_of_the_whole_matrices(name, function):
    mech = TREES[name]()
    arrays = states(mech)
    whole = mech.kernels.evaluate(Request(function), *arrays, t=0.4)
    for ours, expected in zip(derivatives(mech, function, *arrays, t=0.4), whole, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-11 * max(np.abs(expected).max(), 1e-3))


@pytest.mark.parametrize("name", closed_mechanisms.MECHANISMS)
def test_columns_of_a_closed_mechanism_are_those_of_the_whole_matrices_on_its_freedom(name):
    """Across the constraints there is no motion, and an extension of the equations is as good as any other."""
    mech = closed_mechanisms.MECHANISMS[name]()
    q, v, tau = states(mech)
    whole = mech.kernels.evaluate(Request(FORWARD), q, v, tau, t=0.0)
    columns = derivatives(mech, FORWARD, q, v, tau, t=0.0)
    slopes = np.stack([mech.kernels.velocity_projection(q, e)[1] for e in np.eye(mech.nv)], axis=1)
    slopes = slopes - mech.kernels.velocity_projection(q, np.zeros(mech.nv))[1][:, None]
    freedom = np.linalg.svd(slopes)[2][np.linalg.matrix_rank(slopes, 1e-9) :].T
    for ours, expected in zip(columns, whole, strict=True):
        size = max(np.abs(expected).max(), 1e-3)
        np.testing.assert_allclose(ours @ freedom, expected @ freedom, rtol=0, atol=1e-10 * size)
    np.testing.assert_allclose(columns[2], whole[2], rtol=0, atol=1e-10 * np.abs(whole[2]).max(initial=1e-3))


def extrapolated(function, scale):
    """A derivative at 0 of a function of one number, by differences of fourth order from two steps."""

    def slope(h):
        return (8.0 * (function(h) - function(-h)) - (function(2 * h) - function(-2 * h))) / (12.0 * h)

    return (16.0 * slope(0.5 * scale) - slope(scale)) / 15.0


LONG = {
    "chain of 300": (lambda: lw.chain(300), 2e-6),
    "all kinds": (lambda: lw.random_tree(150, seed=1), 1e-8),
    "gears and springs": (lambda: geared(90), 1e-8),
}


@pytest.mark.parametrize("name", LONG)
def test_derivatives_of_long_trees_are_differences(name):
    make, tolerance = LONG[name]
    mech = make()
    assert mech.programs.by_directions(FORWARD)
    q, v, tau = states(mech)
    v = 0.1 * v
    by_q, by_v, by_tau = mech.forward_dynamics_derivatives(q, v, tau, t=0.3)
    rng = np.random.default_rng(1)
    for k, matrix in enumerate((by_q, by_v, by_tau)):
        way = rng.normal(size=mech.nv)

        def moved(h, k=k, way=way):
            there = [mech.integrate(q, h * way) if k == 0 else q, v + h * way * (k == 1), tau + h * way * (k == 2)]
            return mech.forward_dynamics(*there, t=0.3)

        ours, size = matrix @ way, np.abs(matrix).max() * np.abs(way).max()
        assert np.abs(ours - extrapolated(moved, 1e-4)).max() < tolerance * size


def test_derivatives_of_a_long_chain_are_pinocchios(tmp_path):
    links = 120
    (tmp_path / "chain.urdf").write_text(write_urdf(lw.chain(links).description))
    twin = Twin(tmp_path / "chain.urdf", "fixed")
    assert twin.mech.programs.by_directions(FORWARD)
    q, v, tau = (x[0] for x in twin.states(1))
    pq, pv, pt = twin.pin_q(q), twin.pin_v(v), twin.pin_v(tau)
    pin.computeRNEADerivatives(twin.model, twin.data, pq, pv, pt)
    m = np.triu(twin.data.M) + np.triu(twin.data.M, 1).T
    for ours, theirs in zip(
        twin.mech.inverse_dynamics_derivatives(q, v, tau), (twin.data.dtau_dq, twin.data.dtau_dv, m), strict=True
    ):
        assert relative(ours, twin.ours(theirs)) < 1e-11
    pin.computeABADerivatives(twin.model, twin.data, pq, pv, pt)
    inverse = np.triu(twin.data.Minv) + np.triu(twin.data.Minv, 1).T
    matrices = twin.mech.forward_dynamics_derivatives(q, v, tau)
    for ours, theirs in zip(matrices, (twin.data.ddq_dq, twin.data.ddq_dv, inverse), strict=True):
        assert relative(ours, twin.ours(theirs)) < 1e-8


def test_code_does_not_grow_with_the_links():
    def blocks(links):
        program = lw.chain(links).program("forward_dynamics", form="rolled")
        pushed = derivative.forward_program(program, program.with_role("input")[:1], program.with_role("output")[0])
        return sum(map(len, pushed.blocks))

    assert blocks(1000) == blocks(100)


def test_a_second_call_records_nothing(monkeypatch):
    mech = lw.chain(requests.WHOLE_MATRICES[FORWARD] + 1)
    arrays = states(mech)
    first = mech.forward_dynamics_derivatives(*arrays)

    def refuse(*arguments, **options):
        raise AssertionError("recorded again")

    monkeypatch.setattr(derivative, "forward_program", refuse)
    for ours, expected in zip(mech.forward_dynamics_derivatives(*arrays), first, strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_batches_broadcast_and_shapes_are_checked():
    mech = geared(9)
    q, v, tau = states(mech)
    single = derivatives(mech, FORWARD, q, v, tau, t=0.2)
    batch = derivatives(mech, FORWARD, np.stack([q] * 3)[:, None], np.stack([v, 0 * v]), tau, t=np.array([[0.2]] * 3))
    for ours, one in zip(batch, single, strict=True):
        assert ours.shape == (3, 2, mech.nv, mech.nv)
        np.testing.assert_array_equal(ours[1, 0], one)
    with pytest.raises(ShapeError, match="v has shape"):
        derivatives(mech, FORWARD, q, v[1:], tau, t=0.0)
    with pytest.raises(ShapeError, match="do not fit together"):
        derivatives(mech, FORWARD, np.stack([q] * 3), np.stack([v] * 2), tau, t=0.0)


def test_no_states_have_no_derivatives():
    mech = geared(9)
    (q, _, tau), nv = states(mech), mech.nv
    matrices = derivatives(mech, FORWARD, q, np.zeros((0, nv)), tau, t=0.0)
    assert [x.shape for x in matrices] == [(0, nv, nv)] * 3


def test_memory_is_asked_for_before_it_is_taken(monkeypatch):
    mech = lw.chain(200)
    zero = np.zeros(mech.nv)
    monkeypatch.setattr(arguments, "available", lambda: 3 * 8 * mech.nv**2 - 1)
    with pytest.raises(MemoryLimitError, match="200 rates"):
        mech.forward_dynamics_derivatives(zero, zero, zero)


def test_a_coordinate_that_is_nan_spoils_its_state_alone():
    mech = lw.chain(120)
    q, v, tau = states(mech)
    both = np.stack([q, q])
    both[0, 60] = np.nan
    spoiled, plain = mech.forward_dynamics_derivatives(both, v, tau)[0]
    assert np.isnan(spoiled).all()
    assert np.isfinite(plain).all()


@pytest.mark.parametrize("theta", [1.0, 1e-2, 1e-5, 0.0])
def test_a_singular_position_has_no_derivatives(theta, monkeypatch):
    mech, way = parallelogram()
    q, v, tau = theta * way, 2.0 * way, np.zeros(3)
    whole = mech.forward_dynamics_derivatives(q, v, tau)
    monkeypatch.setattr(RequestRules, "by_directions", lambda self, function: True)
    for ours, expected in zip(mech.forward_dynamics_derivatives(q, v, tau), whole, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-8)
    if np.isnan(whole[0]).any():
        with pytest.raises(ModelError, match="singular position"):
            mech.linearise(q, 0 * v, tau)


def ladder(stages: int) -> lw.Mechanism:
    """Four-bars side by side, each held by the one before, with springs and gears on joints that close loops."""
    with lw.Builder("ladder") as b:
        bars = []
        for k in range(stages + 1):
            bars.append(b.body(f"bar{k}", 1.0, (0.0, 0.5, 0.0), (0.1, 0.1, 0.1)))
            b.place(bars[k], (k * 1.0, 0, 0))
            b.joint("revolute", b.triad(b.ground, (k * 1.0, 0, 0)), b.triad(bars[k]), f"pivot{k}", damping=0.2)
        for k in range(stages):
            height = 1.0 - 0.3 * (k % 2)
            coupler = b.body(f"coupler{k}", 0.5, (0.5, 0, 0), (0.05, 0.05, 0.05))
            b.place(coupler, (k * 1.0, height, 0))
            b.joint("revolute", b.triad(bars[k], (0, height, 0)), b.triad(coupler), f"near{k}")
            ends = b.triad(coupler, (1.0, 0, 0)), b.triad(bars[k + 1], (0, height, 0))
            b.joint("revolute", *ends, f"far{k}", armature=0.01, cut=True)
        b.joint_spring("pivot0", 40.0)
    return b.build()


@pytest.mark.parametrize("stages", [2, 25])
def test_linear_models_of_closed_mechanisms_of_any_size_are_differences(stages):
    """Rotors on joints that close loops have no program of whole matrices."""
    mech = ladder(stages)
    assert mech.programs.by_directions(FORWARD)
    q, v = mech.project(mech.assemble(mech.neutral() + 0.02), np.ones(mech.nv))
    v = 0.3 * v
    tau = np.random.default_rng(2).normal(size=mech.nv)
    exact, differences = mech.linearise(q, v, tau), by_differences(mech, q, v, tau, 0.0)
    assert pytest.approx(exact.A, abs=1e-6 * max(1.0, np.abs(exact.A).max())) == differences.A
    assert pytest.approx(exact.B, abs=1e-8) == differences.B
