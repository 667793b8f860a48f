"""The assembly in O(log N) levels against the articulated-body recursion, on trees of every shape and joint kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import ModelError
from linkwright.kernels.interpret.interpreter import run
from linkwright.mechanism import Mechanism
from linkwright.model.generators import random_tree
from linkwright.model.joint_kinds import KINDS
from linkwright.tape.program import Program
from shapes import SHAPES

MODELS = Path(__file__).parents[2] / "examples" / "models"


def state(mech: Mechanism, seed: int, speed: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = mech.integrate(mech.neutral(), rng.standard_normal(mech.nv))
    return q, speed * rng.standard_normal(mech.nv), rng.standard_normal(mech.nv)


def assert_agree(
    mech: Mechanism, speed: float = 1.0, form: str = "", native: bool = False, **given: np.ndarray
) -> None:
    """The assembly's program, by NumPy or in machine code, against the articulated-body recursion."""
    arrays = [*state(mech, 0, speed), *given.values()]
    options = {"wrenches": True} if given else {}
    wanted = _by_numpy(mech.program("forward_dynamics", **options), arrays)
    program = mech.program("forward_dynamics", method="assembly", form=form, **options)
    found = program(*arrays) if native else _by_numpy(program, arrays)
    assert np.abs(found - wanted).max() <= 1e-10 * np.abs(wanted).max()


def _by_numpy(program: Program, arrays: list[np.ndarray]) -> np.ndarray:
    return run(program, [x.reshape(1, -1) for x in arrays], 1)[0][0]


def shaped(shape: str, n: int, seed: int = 0) -> Mechanism:
    parent = SHAPES[shape](n).astype(np.int32)
    return Mechanism(replace(random_tree(n, seed), parent=parent))


@pytest.mark.parametrize("form", ["unrolled", "rolled"])
@pytest.mark.parametrize("seed", range(4))
def test_random_trees(form: str, seed: int) -> None:
    assert_agree(lw.random_tree(24, seed, floating=seed % 2 == 1), form=form)


@pytest.mark.compiled
@pytest.mark.parametrize("form", ["unrolled", pytest.param("rolled", marks=pytest.mark.slow)])
def test_a_mixed_tree_in_native_code(form: str) -> None:
    assert_agree(lw.random_tree(24, 1, floating=True), form=form, native=True)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_alone_and_in_a_chain(kind: str) -> None:
    for n in (1, 2, 9, 100):
        mech = lw.chain(n, joint=kind)
        if mech.nv:
            assert_agree(mech)
    if kind in ("revolute", "universal", "free"):
        assert_agree(mech, native=True)


@pytest.mark.parametrize("n", [40, 100, pytest.param(300, marks=pytest.mark.slow)])  # from 65 on rolled
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: str, n: int) -> None:
    assert_agree(shaped(shape, n), speed=1.0 if n == 40 else 0.1)


@pytest.mark.parametrize("n", [12, 90])
def test_wrenches_and_armature(n: int) -> None:
    d = random_tree(n, 5)
    rng = np.random.default_rng(n)
    mech = Mechanism(replace(d, armature=np.where(np.arange(n) % 3 == 0, 0.02, 0.0)))
    assert_agree(mech, wrenches=rng.standard_normal((n, 6)))


@pytest.mark.compiled
def test_batches() -> None:
    mech = lw.random_tree(80, 3, joints=["revolute"])
    q, v, tau = state(mech, 0)
    scale = np.linspace(0.5, 1.0, 13)[:, None]
    wanted = mech.forward_dynamics(q, scale * v, tau)
    found = mech.forward_dynamics(q, scale * v, tau, method="assembly")
    assert np.abs(found - wanted).max() <= 1e-10 * np.abs(wanted).max()


@pytest.mark.compiled
@pytest.mark.parametrize("n", [1000, 32_768])
def test_long_bent_chains(n: int) -> None:
    mech = lw.chain(n)
    rng = np.random.default_rng(n)
    q, v = rng.uniform(-0.3, 0.3, n), 0.1 * rng.standard_normal(n)
    wanted = mech.forward_dynamics(q, v, np.zeros(n))
    found = mech.forward_dynamics(q, v, np.zeros(n), method="assembly")
    assert np.abs(found - wanted).max() <= 1e-10 * np.abs(wanted).max()


def lightened(n: int, without_mass: tuple[int, ...], without_inertia: tuple[int, ...]) -> Mechanism:
    """A chain whose axes are alternately x and y, with links of nothing and point masses off their axes."""
    d = lw.chain(n).description
    mass, com, inertia = (np.array(x) for x in (d.mass, d.com, d.inertia))
    inertia[list(without_mass + without_inertia)] = 0.0
    mass[list(without_mass)] = 0.0
    com[list(without_inertia)] += 0.02, 0.03, 0.0
    return Mechanism(replace(d, mass=mass, com=com, inertia=inertia))


def test_the_published_arm_of_point_masses_is_assembled() -> None:
    assert_agree(lw.load(MODELS / "three_link.dh.toml"))


@pytest.mark.parametrize("form", ["unrolled", "rolled"])
def test_point_masses_are_assembled(form: str) -> None:
    assert_agree(lightened(40, (), tuple(range(40))), 0.1, form)


@pytest.mark.parametrize("first", [0, 1])
def test_links_of_nothing_are_assembled_wherever_stretches_end(first: int) -> None:
    assert_agree(lightened(50, tuple(range(first, 49, 2)), ()), 0.1, "rolled")


def test_a_run_of_hollow_links_is_assembled_with_the_link_that_resists() -> None:
    assert_agree(lightened(40, (14, 31), (15, 16, 32)), 0.1, "rolled")


def test_a_link_that_does_not_resist_its_joint_above_a_branch_is_named() -> None:
    with lw.Builder("fork") as b:
        solid = {"mass": 1.0, "com": (0.1, 0.0, 0.0), "inertia": (0.01, 0.02, 0.02)}
        cross, trunk, left, right = b.body("cross"), *(b.body(name, **solid) for name in ("trunk", "left", "right"))
        b.joint("revolute", b.ground, cross, axis=(1, 0, 0))
        b.joint("revolute", cross, trunk, axis=(0, 1, 0))
        b.joint("revolute", trunk, left, axis=(0, 0, 1))
        b.joint("revolute", trunk, right, axis=(0, 0, 1))
    with pytest.raises(ModelError, match=r"'cross'.*articulated-body"):
        b.build().program("forward_dynamics", method="assembly")
