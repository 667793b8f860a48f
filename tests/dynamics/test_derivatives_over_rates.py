"""Derivatives by statements over rates: beside those that are laid out, for trees and closed mechanisms."""

import numpy as np
import pytest

import closed_mechanisms
import linkwright as lw
from closed_mechanisms import state
from linkwright.dynamics import recorders
from linkwright.dynamics.closed import closed_derivatives, closed_recorders
from linkwright.dynamics.functions import Request
from linkwright.dynamics.programs import ProgramFactory
from linkwright.dynamics.rate_tables import RateOrder
from linkwright.dynamics.recording_context import RecordingContext, traced

REQUEST = Request("forward_dynamics_derivatives")
CLOSED = ("four_bar", "slider_with_rod", "rssr", "platform", "pen_on_line", "driven_arm")


def mixed_tree(seed=0):
    """A branched tree; joints have one rate, several that are one motion, or several that follow each other."""
    rng = np.random.default_rng(seed)
    kinds = ("free", "revolute", "universal", "spherical", "planar", "prismatic")
    kinds = (*kinds, "revolute", "universal", "revolute")
    with lw.Builder("mixed") as b:
        bodies = [b.ground]
        for k, kind in enumerate(kinds):
            com = tuple(rng.normal(size=3) * 0.3)
            bodies.append(b.body(f"b{k}", mass=1.0 + rng.random(), com=com, inertia=(1.1, 1.2, 1.3)))
            parent = bodies[0] if k == 0 else bodies[1 + int(rng.integers(max(0, k - 3), k))]
            b.joint(kind, parent, bodies[-1], f"j{k}", armature=0.1 if kind == "revolute" and k % 2 == 0 else 0.0)
    return b.build()


def laid_out(factory: ProgramFactory, arrays):
    """The derivatives as a formula of the whole state, evaluated by NumPy."""
    shapes = factory.shapes(REQUEST)

    def function(*inputs):
        context = RecordingContext(factory, REQUEST, dict(zip(shapes, inputs, strict=True)))
        if factory.closed:
            return closed_recorders.derivatives(context)
        m, factor, dq, dv = recorders._forward_derivative_parts(context)
        columns = [[-row[c] for row in d] for d in (dq, dv) for c in range(len(m))]
        columns += [list(row) for row in np.eye(len(m))]
        return np.array([factor.solve(column) for column in columns]).T

    block, _, _ = traced(factory, function, shapes)
    numbers = np.array(block.evaluate([float(x) for a in arrays for x in np.ravel(a)]), dtype=float)
    n = factory.tree.coordinates.nv
    return numbers.reshape(3, n, n) if factory.closed else numbers.reshape(n, 3, n).transpose(1, 0, 2)


def check(program, factory, arrays):
    for ours, expected in zip(program(*arrays), laid_out(factory, arrays), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-11 * max(np.abs(expected).max(), 1e-3))
    batch = program(np.stack([arrays[0]] * 9), *arrays[1:])
    for ours, one in zip(batch, program(*arrays), strict=True):
        np.testing.assert_allclose(ours[4], one, rtol=0, atol=1e-11 * max(np.abs(one).max(), 1e-3))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("straight", [True, False])
def test_derivatives_of_a_tree_are_those_that_are_laid_out(seed, straight, monkeypatch):
    monkeypatch.setattr(RateOrder, "straight", straight)
    mech = mixed_tree(seed)
    rng = np.random.default_rng(seed)
    q = mech.integrate(mech.neutral(), rng.normal(size=mech.nv))
    factory = mech.programs
    program = recorders.forward_dynamics_derivatives(factory, REQUEST, factory.shapes(REQUEST))
    assert len(program.statements) > 5  # over rates
    check(program, factory, [q, *rng.normal(size=(2, mech.nv))])


@pytest.mark.parametrize("name", CLOSED)
def test_derivatives_of_a_closed_mechanism_are_those_of_its_residuals(name):
    mech = getattr(closed_mechanisms, name)()
    factory = mech.programs
    assert closed_derivatives.covers(factory)
    shapes = factory.shapes(REQUEST)
    rng = np.random.default_rng(3)
    q, v = state(mech)
    time = [np.array(0.3)] if "t" in shapes else []
    program = closed_derivatives.record(factory, REQUEST, shapes)
    check(program, factory, [q, v, rng.normal(size=mech.nv), *time])
    moved = mech.integrate(q, 0.01 * rng.normal(size=mech.nv))
    check(program, factory, [moved, v, rng.normal(size=mech.nv), *time])


def test_a_coordinate_that_is_nan_spoils_the_derivatives():
    mech = mixed_tree()
    q, v, tau = mech.neutral(), np.zeros(mech.nv), np.zeros(mech.nv)
    for array in (q, v, tau):
        array[-1] = np.nan
        assert np.isnan(mech.forward_dynamics_derivatives(q, v, tau)[0]).any()
        array[-1] = 0.0
    assert np.isfinite(mech.forward_dynamics_derivatives(q, v, tau)[0]).all()
