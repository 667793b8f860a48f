"""What functions keep between calls is found, whatever made them."""

import numpy as np
import pytest
from moving_models import SWUNG, double_pendulum

import linkwright as lw
from linkwright.simulation.python_laws import Memory


def test_functions_without_a_module_are_looked_into() -> None:
    space: dict = {"__name__": None, "kept": [0]}
    exec("def law(t, q, v):\n    kept[0] += 1\n    return kept[0]", space)
    assert space["law"].__module__ is None
    memory = Memory(space["law"])
    assert memory.changed() is None
    space["law"](0, 0, 0)
    assert memory.changed() is not None
    memory.restore()
    assert space["kept"] == [0]


def test_a_law_in_code_that_has_no_module_name_runs() -> None:
    space: dict = {"lw": lw, "mech": double_pendulum(), "q0": SWUNG}
    exec("def law(t, q, v):\n    return -0.1 * v\nrun = lw.simulate(mech, 0.05, q0=q0, tau=law)", space)
    assert space["run"].status


def test_a_law_of_functions_that_sympy_made_runs() -> None:
    sympy = pytest.importorskip("sympy")
    x = sympy.Symbol("x")
    spring = sympy.lambdify(x, -2 * sympy.sin(x))

    def law(t, q, v):
        return np.array([spring(q[0]), 0.0])

    assert lw.simulate(double_pendulum(), 0.05, q0=SWUNG, tau=law).status
