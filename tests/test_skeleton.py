"""One arm and one long chain all the way: record → block and scan → NumPy, LLVM and C text → the Python call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from compilers import c_library, pointer
from linkwright.kernels.c.program_text import work_size
from linkwright.kernels.interpret.interpreter import run
from linkwright.tape.program import Program
from robots import find, relative


def arm() -> lw.Mechanism:
    return lw.load(find("kinova.urdf"))


def chain() -> lw.Mechanism:
    return lw.chain(200)


both = pytest.mark.parametrize("make", [arm, chain])
pytestmark = pytest.mark.filterwarnings("ignore::linkwright.errors.LinkwrightWarning")


def states(mech: lw.Mechanism) -> list[np.ndarray]:
    return list(0.3 * np.random.default_rng(0).standard_normal((3, 2, mech.nv)))


def by_c(program: Program, inputs: list[np.ndarray], folder: Path) -> np.ndarray:
    """The program's C text, compiled with every warning an error, and run for one state."""
    library = c_library(program.to_c(name="program"), folder)
    out, work = np.empty(program.outputs[0].shape), np.empty(max(1, work_size(program)))
    arrays = [*inputs, out, work]
    library.program(*map(pointer, arrays))
    return out


@both
def test_every_way_to_run_a_program_gives_the_same(make, tmp_path: Path) -> None:
    mech = make()
    q, v, tau = states(mech)
    program = mech.program("forward_dynamics")
    assert ("rows" in [b.name for b in program.buffers]) == (mech.nb > 64)
    reference = run(program, [q, v, tau], 2)[0]
    assert relative(mech.forward_dynamics(q, v, tau), reference) < 1e-10
    assert relative(mech.forward_dynamics(q[1], v[1], tau[1]), reference[1]) < 1e-10
    assert relative(by_c(program, [q[1].copy(), v[1].copy(), tau[1].copy()], tmp_path), reference[1]) < 1e-10


@both
def test_forward_and_reverse_derivatives_of_a_program_agree(make) -> None:
    mech = make()
    q, v, tau = (x[0] for x in states(mech))
    program = mech.program("inverse_dynamics")
    rng = np.random.default_rng(1)
    dq, dv, da, bar = rng.standard_normal((4, mech.nv))
    _, tangent = program.forward()(q, v, tau, dq, dv, da)
    _, *adjoints = program.reverse()(q, v, tau, bar)
    assert bar @ tangent == pytest.approx(sum(x @ y for x, y in zip((dq, dv, da), adjoints, strict=True)), rel=1e-9)


def test_a_parameter_left_open_is_an_input_of_every_way(tmp_path: Path) -> None:
    with lw.Builder("pendulum") as b:
        length = b.parameter("length", 0.7)
        bob = b.body("bob", mass=1.3, com=(0, 0, -length))
        b.joint("revolute", b.ground, bob, axis=(0, 1, 0))
    program = b.build().program("forward_dynamics", free=("length",))
    q, zero, p = np.array([0.4]), np.zeros(1), np.array([0.5])
    expected = -9.81 / 0.5 * np.sin(0.4)
    assert program(q, zero, zero, p) == pytest.approx(expected)
    assert run(program, [q[None], zero[None], zero[None], p[None]], 1)[0] == pytest.approx(expected)
    assert by_c(program, [q, zero, zero, p], tmp_path) == pytest.approx(expected)
