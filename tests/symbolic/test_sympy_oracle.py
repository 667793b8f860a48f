"""The oracle of closed forms, against the numeric recursions and against itself."""

import numpy as np
import pytest
import sympy_oracle as oracle

import linkwright as lw

MOMENTS = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")


def literal(k, **row):
    """A row whose body has every number as a symbol."""
    return {
        "mass": f"m{k}",
        "com": (f"x{k}", f"y{k}", f"z{k}"),
        "inertia": tuple(f"{name}{k}" for name in MOMENTS),
        **row,
    }


ARMS = {
    "two turning": [literal(1), literal(2, a="l1", alpha=-np.pi / 2)],
    "turning and sliding": [
        literal(1, alpha=np.pi / 6, d="e1"),
        literal(2, kind="P", a="l1", alpha=np.pi / 2, theta=0.3, armature="J2"),
    ],
    "three links": [
        {"mass": "m1", "com": (0, 0, "lg1"), "damping": "V1"},
        {"alpha": np.pi / 2, "mass": "m2", "com": ("lg2", 0, 0), "friction": "f2"},
        {"a": "l2", "mass": "m3", "com": ("lg3", 0, 0), "armature": 0.2},
    ],
}


@pytest.mark.parametrize("way", [oracle.by_trace, oracle.by_lagrange])
@pytest.mark.parametrize(
    ("arm", "convention"),
    [("two turning", "standard"), ("turning and sliding", "modified"), ("three links", "modified")],
)
def test_both_ways_agree_with_the_recursions(arm, convention, way):
    rows, rng = ARMS[arm], np.random.default_rng(3)
    plain = lw.from_dh(rows, convention, gravity=(0, 0, "-g"))
    values = {name: value + 0.1 * rng.uniform() for name, value in plain.parameters.items()}
    mech = plain.with_parameters(**values)
    function = way(rows, convention).numbers(values)
    q, v = rng.uniform(-1, 1, (2, mech.nv))
    m, h, g, friction = function(q, v)
    np.testing.assert_allclose(m, mech.mass_matrix(q), atol=1e-12)
    np.testing.assert_allclose(g, mech.gravity_forces(q), atol=1e-12)
    np.testing.assert_allclose(h + g + friction, mech.bias_forces(q, v), atol=1e-12)


def test_christoffel_symbols_leave_a_skew_matrix():
    found = oracle.by_trace(ARMS["two turning"])
    rate = sum((found.M.diff(x) * dx for x, dx in zip(found.q, found.dq, strict=True)), 0 * found.M)
    twice = (rate - 2 * found.christoffel()).expand()
    assert (twice + twice.T).expand() == 0 * found.M
