"""Least-norm solutions of the compiled elimination against NumPy and SciPy."""

from dataclasses import replace

import numpy as np
import pytest
from linkages import bar, closed, kinematics, pin, unit
from scipy.sparse import csr_array
from scipy.sparse.linalg import lsmr

import linkwright as lw
from linkwright.constraints.elimination import order
from linkwright.constraints.newton import start_state
from linkwright.model.elements import Rod
from linkwright.model.expression import as_expression


def _correction(k, q):
    """Φ, J, W⁻¹ and the compiled least change at a state, all of length-weighed coordinates."""
    e = k.equations
    turns, at = np.zeros(max(int(e.first_angle[-1]), 1)), np.zeros(1)
    phi, delta, _, pivots = k.programs.correct(q, turns, at)
    _, parts, again, _, _ = k.programs.evaluate(q, turns, at, np.zeros((e.nb, 6)))
    np.testing.assert_allclose(phi, again, atol=1e-15)
    inverse = np.ones((e.nb, 6))
    inverse[:, 3:] = e.sizes[:, None] ** -2.0
    return phi, parts, np.sqrt(inverse.reshape(-1)), delta.reshape(-1), pivots


@pytest.mark.parametrize("seed", range(3))
def test_a_correction_is_the_least_one_that_closes_random_loops(seed):
    rng = np.random.default_rng(seed)
    mech = lw.random_tree(6, 5, joints=("revolute", "cylindrical", "spherical", "universal"))
    d = mech.description
    ends = [("rod0", 0, 4), ("rod1", 1, 5)]
    rods = tuple(Rod(name, d.body_names[i], d.body_names[j], as_expression(0.4)) for name, i, j in ends)
    k = kinematics(lw.Mechanism(replace(d, point_constraints=rods)))
    q = start_state(k.equations)
    q[:, :3] += 0.02 * rng.normal(size=q[:, :3].shape)
    phi, parts, root, delta, pivots = _correction(k, q)
    j = k.programs.layout.dense(parts)
    assert np.linalg.matrix_rank(j) == len(phi) == int(np.sum(pivots > 1e-11))
    np.testing.assert_allclose(delta, -root * (np.linalg.pinv(j * root) @ phi), atol=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_redundant_equations_that_agree_change_nothing(seed):
    """A planar chain of loops at a state off by a motion in its plane: what leaves the plane is redundant."""
    rng = np.random.default_rng(seed)
    k = kinematics(_ladder(3, 2.0, 2.9))
    q = start_state(k.equations)
    q[:, :2] += 0.02 * rng.normal(size=q[:, :2].shape)
    phi, parts, root, delta, pivots = _correction(k, q)
    j = k.programs.layout.dense(parts)
    rank = np.linalg.matrix_rank(j)
    assert rank == len(phi) - 9 == int(np.sum(pivots > 1e-11))
    np.testing.assert_allclose(delta, -root * (np.linalg.pinv(j * root, rcond=1e-10) @ phi), atol=1e-10)


def _ladder(count, rocker, coupler):
    """Four-bars side by side, the rocker of one being the crank of the next."""
    with lw.Builder("ladder") as b:
        feet = [np.array([3.0 * k, 0.0, 0.0]) for k in range(count + 1)]
        tips = [feet[0] + unit(0.9)]
        bars = [bar(b, "bar0", feet[0], tips[0])]
        pin(b, "revolute", b.ground, feet[0], bars[0], (0, 0, 0), "foot0")
        lengths = [1.0, *[rocker] * count]
        for k in range(count):
            tips.append(closed(tips[k], feet[k + 1], coupler, rocker, 1.0))
            bars.append(bar(b, f"bar{k + 1}", feet[k + 1], tips[-1]))
            over = bar(b, f"coupler{k}", tips[k], tips[k + 1])
            pin(b, "revolute", b.ground, feet[k + 1], bars[-1], (0, 0, 0), f"foot{k + 1}")
            pin(b, "revolute", bars[k], (lengths[k], 0, 0), over, (0, 0, 0), f"left{k}")
            pin(b, "revolute", over, (coupler, 0, 0), bars[-1], (rocker, 0, 0), f"right{k}")
    return b.build()


def test_two_hundred_four_bars_are_corrected_as_by_sparse_least_squares():
    rng = np.random.default_rng(0)
    k = kinematics(_ladder(200, 1.0, 3.0))
    q = start_state(k.equations)
    q[:, :2] += 0.01 * rng.normal(size=q[:, :2].shape)
    phi, parts, root, delta, pivots = _correction(k, q)
    e, layout = k.equations, k.programs.layout
    rows, columns, entries = [], [], []
    for x in layout.incidences:
        m, row = e.constraints[x.constraint].form.size, int(e.first[x.constraint])
        rows.append(np.repeat(np.arange(row, row + m), 6))
        columns.append(np.tile(np.arange(6 * x.body, 6 * x.body + 6), m))
        entries.append(parts[x.at : x.at + 6 * m])
    shape = (e.count, 6 * e.nb)
    j = csr_array((np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), shape=shape)
    least = lsmr(j * root[None, :], -phi, atol=1e-15, btol=1e-15, conlim=1e14, maxiter=40_000)[0] * root
    assert int(np.sum(pivots <= 1e-11)) == 3 * 200
    np.testing.assert_allclose(delta, least, atol=1e-8)


def test_an_order_of_elimination_has_every_node_once_and_leaves_later_ones_behind():
    rng = np.random.default_rng(3)
    neighbours = [set() for _ in range(30)]
    for i, j in rng.integers(0, 30, (60, 2)).tolist():
        if i != j:
            neighbours[i].add(j)
            neighbours[j].add(i)
    sequence, left = order(neighbours)
    assert sorted(sequence) == list(range(30))
    place = {node: k for k, node in enumerate(sequence)}
    for node, rest in zip(sequence, left, strict=True):
        assert all(place[other] > place[node] for other in rest)


def test_a_chain_is_eliminated_without_fill():
    _, left = order([{1}, *({k - 1, k + 1} for k in range(1, 49)), {48}])
    assert max(map(len, left)) == 1


def _hub(count):
    """Four-bars on one crank, each with a coupler and a rocker of its own."""
    b = lw.Builder("hub")
    crank = bar(b, "crank", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    zero = np.zeros(3)
    motor = pin(b, "revolute", b.ground, zero, crank, zero, "a")
    rng = np.random.default_rng(1)
    for k in range(count):
        tip, foot = np.array([1.0, 0.0, 0.0]), np.array([rng.uniform(2.9, 3.2), 0.0, 0.0])
        length = rng.uniform(2.8, 3.2)
        joint = closed(tip, foot, length, 2.5, 1.0)
        coupler, rocker = bar(b, f"c{k}", tip, joint), bar(b, f"r{k}", foot, joint)
        pin(b, "revolute", crank, tip, coupler, zero, f"tip{k}")
        pin(b, "revolute", coupler, (length, 0.0, 0.0), rocker, (2.5, 0.0, 0.0), f"joint{k}")
        pin(b, "revolute", b.ground, foot, rocker, zero, f"foot{k}")
    b.driver("joint", motor, 0.8 * lw.TIME)
    return b.build()


def test_loops_on_one_body_move_as_each_alone_and_all_redundant_equations_are_named():
    times = np.linspace(0.0, 0.6, 7)
    few, many = lw.analyse(_hub(3), times=times), lw.analyse(_hub(20), times=times)
    assert few.status
    assert many.status
    for name in ("crank", "c0", "r0", "c2", "r2"):
        for quantity in ("position", "velocity", "acceleration", "angular_acceleration"):
            np.testing.assert_allclose(
                getattr(many, quantity)(name), getattr(few, quantity)(name), rtol=0, atol=1e-10, err_msg=name
            )
    k = kinematics(_hub(20))
    state = k.assemble(0.0)
    assert k.programs.layout.plan.sizes != [c.form.size for c in k.equations.constraints]  # the crank is in pieces
    assert int(state.lost) == 60
    assert len(k.freedom(state, 0.0).redundant) == 60
    dense = k.programs.layout.dense(k.programs.evaluate(state.q, state.angles, 0.0).jacobian, k.equations.units)
    assert np.linalg.matrix_rank(dense, 1e-9) == k.equations.count - 60


def test_the_fill_of_a_body_grows_with_its_joints():
    stores = [kinematics(_hub(count)).programs.layout.plan.store for count in (20, 40, 80)]
    assert stores[2] - stores[1] < 2.2 * (stores[1] - stores[0])


def test_an_order_keeps_what_must_go_before():
    neighbours = [{1, 2}, {0, 2, 3}, {0, 1}, {1}]
    sequence, _ = order(neighbours, [set(), set(), set(), {0, 2}])
    assert sorted(sequence) == [0, 1, 2, 3]
    assert sequence.index(3) > max(sequence.index(0), sequence.index(2))
