"""The regressor by tapes is that of the exact polynomials, column by column."""

from typing import Any

import numpy as np
import pytest

import linkwright as lw
from linkwright.mechanism import Mechanism
from linkwright.symbolic.recursive.recursive_form import Recursive, recursive


def table() -> Mechanism:
    """Standard rows, whose joints are at the far ends of the bodies' frames; one has a motor, and one no mass."""
    heavy = {"com": (0.1, -0.2, 0.05), "inertia": (0.11, 0.12, 0.13, 0.01, 0.02, 0.005), "theta": 0.3}
    rows = [
        {**heavy, "a": 0.3, "alpha": 0.7, "d": 0.2, "mass": 2.0, "armature": 0.3},
        {"a": 0.2, "alpha": 0.4, "d": 0.0, "theta": 0.1},
        {**heavy, "a": "l", "alpha": -0.5, "d": 0.1, "mass": 1.0},
    ]
    return lw.from_dh(rows, convention="standard", parameters={"l": 0.4})


def evaluated(form: Recursive, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    space: dict[str, Any] = {}
    exec(compile(form.python("computed"), "emitted", "exec"), space)
    given = {"q": q, "dq": v, "ddq": a, "p": np.array(list(form.parameters.values()))}
    return np.array(space["computed"](*(given[i.name].tolist() for i in form.inputs)))


@pytest.mark.parametrize("mech", [table(), lw.tree(4, 2), lw.chain(3)], ids=["table", "tree", "chain"])
def test_both_regressors_have_the_same_columns(mech: Mechanism) -> None:
    eq = lw.equations(mech)
    form, exact = eq.recursive("regressor"), eq.regressor
    q, v, a = np.random.default_rng(3).normal(size=(3, mech.nv))
    assert form.columns == exact.names
    found = evaluated(form, q, v, a).reshape(mech.nv, -1)
    assert found == pytest.approx(exact.matrix(q, v, a), abs=1e-12)
    assert found @ exact.pi == pytest.approx(mech.inverse_dynamics(q, v, a), abs=1e-12)


def test_bodies_without_any_mass_have_all_their_columns() -> None:
    rows = [{"a": 0.3, "alpha": 0.0, "d": 0.0, "theta": 0.0}] * 2
    form = recursive(lw.from_dh(rows, convention="modified"), "regressor")
    assert len(form.columns) == 20
