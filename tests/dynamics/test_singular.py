"""Singular positions: the constraints that depend on each other there are named, and no others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwright as lw


def parallelogram(drive: bool = False) -> lw.Mechanism:
    with lw.Builder("parallelogram") as b:
        first, coupler, second = (b.body(name, 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1)) for name in "abc")
        b.joint("revolute", b.triad(b.ground), b.triad(first), "first")
        b.joint("revolute", b.triad(first, (1, 0, 0)), b.triad(coupler), "near")
        b.joint("revolute", b.triad(b.ground, (2, 0, 0)), b.triad(second), "last")
        b.joint("revolute", b.triad(coupler, (2, 0, 0)), b.triad(second, (1, 0, 0)), "far", cut=True)
        if drive:
            b.driver("joint", "first", 0.5 * lw.TIME, name="motor")
    return b.build()


def at(mech: lw.Mechanism, angle: float) -> np.ndarray:
    q = np.zeros(mech.nq)
    for name, sign in (("first", 1.0), ("near", -1.0), ("last", 1.0)):
        q[mech.joints[name].q_slice] = sign * angle
    return q


@pytest.mark.parametrize("angle", [0.0, np.pi])
def test_a_flat_parallelogram_names_the_joint_that_closes_it(angle: float) -> None:
    mech = parallelogram()
    found = mech.singular(at(mech, angle))
    assert {name for name, _ in found} == {"joint 'far'"}
    # Flat, the loop cannot tell apart the bars' directions: along the bars it says the same thing twice.
    assert "meeting along f" in [about for _, about in found] or "meeting along g" in [about for _, about in found]


@pytest.mark.parametrize("angle", [0.7, 1.5])
def test_redundant_equations_elsewhere_are_no_singularity(angle: float) -> None:
    mech = parallelogram()
    assert mech.singular(at(mech, angle)) == []


def slider(crank: float, drive_block: bool) -> lw.Mechanism:
    """Crank and rod in line: a driver of the block cannot tell the crank where to go."""
    with lw.Builder("slider") as b:
        wheel = b.body("wheel", 1.0, (0.1, 0, 0), (0.01, 0.1, 0.1))
        rod = b.body("rod", 1.0, (0.4, 0, 0), (0.01, 0.1, 0.1))
        block = b.body("block", 1.0, (0.0, 0, 0), (0.1, 0.1, 0.1))
        b.joint("revolute", b.triad(b.ground), b.triad(wheel), "bearing")
        b.joint("revolute", b.triad(wheel, (crank, 0, 0)), b.triad(rod), "pin")
        slide = {"h": (1.0, 0.0, 0.0), "f": (0.0, 1.0, 0.0)}
        b.joint("prismatic", b.triad(b.ground, **slide), b.triad(block, **slide), "slide")
        b.joint("revolute", b.triad(rod, (1.0, 0, 0)), b.triad(block), "wrist", cut=True)
        target = "slide" if drive_block else "bearing"
        b.driver("joint", target, (1.0 + crank if drive_block else 0.0) - 0.1 * lw.TIME, name="motor")
    return b.build()


def test_a_driver_at_a_dead_centre_is_named_with_the_loop_that_it_fights() -> None:
    mech = slider(0.3, drive_block=True)
    q = np.zeros(mech.nq)
    q[mech.joints["slide"].q_slice] = 1.3
    found = {name for name, _ in mech.singular(q)}
    assert found == {"driver 'motor'", "joint 'wrist'"}


def test_a_driver_of_the_crank_passes_the_dead_centre() -> None:
    mech = slider(0.3, drive_block=False)
    q = np.zeros(mech.nq)
    q[mech.joints["slide"].q_slice] = 1.3
    assert mech.singular(q) == []


@pytest.mark.parametrize("kind", ["revolute", "spherical"])
def test_an_armature_takes_no_part_in_what_depends(kind: str) -> None:
    with lw.Builder("with a wheel") as b:
        first, coupler, second, wheel = (b.body(name, 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1)) for name in "abcd")
        b.joint("revolute", b.triad(b.ground), b.triad(first), "first", armature=0.1)
        b.joint("revolute", b.triad(first, (1, 0, 0)), b.triad(coupler), "near")
        b.joint("revolute", b.triad(b.ground, (2, 0, 0)), b.triad(second), "last")
        b.joint(kind, b.ground, wheel, "loose", armature=0.2)
        b.joint("revolute", b.triad(coupler, (2, 0, 0)), b.triad(second, (1, 0, 0)), "far", cut=True)
    mech = b.build()
    q = mech.neutral()
    assert {name for name, _ in mech.singular(q)} == {"joint 'far'"}
    plain = lw.Mechanism(replace(mech.description, armature=np.zeros(mech.description.nj)))
    assert mech.singular(q) == plain.singular(q)
