"""Mechanisms in a plane, rolled: found wherever the plane is, and solved there as they are in space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwright as lw
from closed_mechanisms import solid
from linkwright.constraints import masses as central
from linkwright.constraints.form_programs import PLANAR, SPATIAL
from linkwright.mechanism import Mechanism
from linkwright.model.description import Description
from linkwright.model.topology import span
from linkwright.model.tree import Tree
from robots import relative

TURNS = {
    "z": np.eye(3),
    "x": np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    "askew": lw.random_tree(1, 5).description.ri[0],
}


def linkage(turn: np.ndarray, *, absolute: bool = False, forces: bool = True) -> lw.Mechanism:
    """Revolute, prismatic, planar and fixed joints in a plane, closed by a spherical joint and a rod.

    Bodies stand askew in it, with products of inertia, and off the plane.
    """

    def triad(body: object, at: tuple[float, float, float], turned: float = 0.0, along: object = None) -> object:
        c, s = np.cos(turned), np.sin(turned)
        h = (0.0, 0.0, 1.0) if along is None else along
        f = (c, s, 0.0) if along is None else (0.3, 0.2, 1.0)
        own = TURNS["askew"] if body is not b.ground else np.eye(3)
        way = own.T @ turn
        return b.triad(body, way @ np.array(at), h=way @ np.array(h), f=way @ np.array(f))

    with lw.Builder("linkage") as b:
        b.gravity((1.0, -7.0, 3.0))
        names = ("first", "rod", "block", "plate", "load")
        first, rod, block, plate, load = (solid(b, name, k) for k, name in enumerate(names))
        b.joint("revolute", triad(b.ground, (0, 0, 0.3)), triad(first, (0.1, 0, 0)), "a")
        b.joint("revolute", triad(first, (1, 0, 0.1), 0.4), triad(rod, (0, 0, 0.2)), "b")
        slide = (1.0, 0.4, 0.0)
        b.joint("prismatic", triad(b.ground, (0, 0.3, 0), along=slide), triad(block, (0, 0, 0.1), along=slide), "c")
        b.joint("planar", triad(b.ground, (1, 1, 0)), triad(plate, (0.2, 0, 0)), "d", actuated=False)
        b.joint("fixed", triad(block, (0.1, 0.2, 0.4)), triad(load, (0, 0, 0)), "e")
        b.joint("spherical", triad(rod, (2, 0, 0), 0.7, (0.3, 0.4, 1)), triad(block, (0, 0, 0.3)), "f", cut=True)
        b.rod(triad(plate, (0.5, 0, 0.2)), triad(rod, (1.0, 0.1, 0.5)), 1.3, "tie")
        if forces:
            b.spring(triad(b.ground, (3, 3, 1)), triad(plate, (0, 0, 0.7)), 5.0, 1.0, 0.3)
            b.joint_spring("b", 2.0, 0.1, 0.2)
            b.applied_wrench(triad(load, (0.1, 0, 0.3)), (1.0, 2.0, 3.0), (0.3, 0.2, 0.1))
            b.applied_wrench("load", (1.0, 2.0, 3.0), (0.3, 0.2, 0.1), axes="ground")
        if absolute:
            b.driver("absolute", "plate", 1.0 + 0.3 * lw.TIME, coordinate="x")
        else:
            b.driver("joint", "a", 0.4 + 0.3 * lw.TIME)
    return b.build()


def space_of(mech: lw.Mechanism) -> object:
    d: Description = mech.description
    return central.CentralEquations(Tree(d, span(d))).space


def answers(mech: lw.Mechanism, form: str) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    q, v, tau = 0.5 * rng.normal(size=mech.nq), *rng.normal(size=(2, mech.nv))
    push = rng.normal(size=(mech.nb, 6))
    found = [mech.program("forward_dynamics", form=form, wrenches=True)(q, v, tau, push, 0.2)]
    found += mech.program("position_correction", form=form)(q, 0.2)
    found += mech.program("velocity_projection", form=form)(q, v, 0.2)
    return found


@pytest.mark.parametrize("name", TURNS)
def test_a_linkage_in_any_plane_moves_as_the_unrolled_form_says(name: str) -> None:
    mech = linkage(TURNS[name])
    assert space_of(mech) is PLANAR
    for found, right in zip(answers(mech, "rolled"), answers(mech, "unrolled"), strict=True):
        assert relative(found, right) < 1e-9


def test_the_plane_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    mech = linkage(TURNS["askew"])
    in_plane = answers(mech, "rolled")
    monkeypatch.setattr(central, "plane", lambda tree: None)
    for found, right in zip(in_plane, answers(Mechanism(mech.description), "rolled"), strict=True):
        assert relative(found, right) < 1e-9


def test_a_driver_of_a_coordinate_of_ground_is_met_in_any_plane() -> None:
    mech = linkage(TURNS["askew"], absolute=True)
    for found, right in zip(answers(mech, "rolled"), answers(mech, "unrolled"), strict=True):
        assert relative(found, right) < 1e-9


@pytest.mark.parametrize("kind", ["cylindrical", "screw", "spherical", "universal", "free"])
def test_a_joint_that_leaves_the_plane_is_not_taken_for_one_in_it(kind: str) -> None:
    with lw.Builder("tree") as b:
        first, second = solid(b, "first", 0), solid(b, "second", 1)
        b.joint("revolute", b.ground, first)
        b.joint(kind, first, second, **({"pitch": 0.1} if kind == "screw" else {}))
    assert space_of(b.build()) is SPATIAL


def test_an_axis_that_is_not_quite_parallel_is_taken_as_it_is() -> None:
    with lw.Builder("tree") as b:
        first, second = solid(b, "first", 0), solid(b, "second", 1)
        b.joint("revolute", b.ground, first)
        b.joint("revolute", first, second, axis=(0.0, 1e-6, 1.0))
    assert space_of(b.build()) is SPATIAL


def test_equations_across_the_plane_are_told_though_nothing_can_change_them() -> None:
    with lw.Builder("gap") as b:
        first, second = solid(b, "first", 0), solid(b, "second", 1)
        b.joint("revolute", b.ground, first, "a")
        b.joint("revolute", b.triad(first, (1, 0, 0)), second, "b")
        b.joint("spherical", b.triad(second, (1, 0, 0)), b.triad(b.ground, (1.5, 0, 0.25)), "c", cut=True)
    mech = b.build()
    q = np.array([0.9, -1.6])
    (_, phi), (_, right) = (mech.program("position_correction", form=form)(q) for form in ("rolled", "unrolled"))
    assert np.abs(phi - right).max() < 1e-12
    assert np.abs(phi).max() >= 0.25 - 1e-12


def test_a_point_mass_in_the_plane_swings() -> None:
    with lw.Builder("pendulum") as b:
        b.gravity((0.0, -9.81, 0.0))
        b.body("rod", 2.0, (1.5, 0.0, 0.0))
        b.joint("revolute", b.ground, "rod")
        b.joint_damper(b.joint("revolute", "rod", b.body("tip", 1.0, (1.0, 0, 0), (0, 0.1, 0.1)), at=(1.5, 0, 0)), 0.1)
    mech = b.build()
    rng = np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 2))
    right, found = (mech.program("forward_dynamics", form=form)(q, v, tau) for form in ("unrolled", "rolled"))
    assert relative(found, right) < 1e-11


def test_mechanisms_that_share_a_description_but_not_gravity_differ() -> None:
    mech = linkage(TURNS["x"])
    other = Mechanism(replace(mech.description, gravity=np.array([0.0, 3.0, -2.0])))
    assert relative(answers(mech, "rolled")[0], answers(other, "rolled")[0]) > 1e-3
