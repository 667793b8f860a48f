"""Every form of constraint: its Jacobian, J̇ v and J̇ᵀλ against differences of its own equations."""

from itertools import product

import numpy as np
import pytest
from linkages import skew

from linkwright.constraints import constraint_forms as forms
from linkwright.constraints.form_programs import bias_block, equations_block, lift_block
from linkwright.model.joint_kinds import KINDS

COORDINATES = [(name, k) for name, kind in KINDS.items() if name not in ("spherical", "free") for k in range(kind.nv)]
ALL = [
    *(forms.joint(name) for name, kind in KINDS.items() if kind.nv < 6),
    forms.ROD,
    forms.POINT_ON_LINE,
    forms.POINT_ON_PLANE,
    forms.DISTANCE,
    *(forms.absolute(k) for k in range(3)),
    *(forms.angle(a, b, True) for a, b in ("ff", "fg", "gf", "gg")),
    *(forms.angle(a, b, False) for a, b in ("ff", "hh", "gh")),
    *(forms.coordinate(name, k) for name, k in COORDINATES),
    *(forms.gear(a, b) for a, b in product(("revolute", "prismatic", "screw"), repeat=2)),
]
H = 1e-5


def _moving(form):
    """The patterns of moving frames that are worth a try: all, and the first or the last one still."""
    n = form.sides
    return [(True,) * n] + [tuple(k != still for k in range(n)) for still in (0, n - 1) if n > 1]


CASES = [pytest.param(f, m, id=f"{f.key}, {''.join('gm'[x] for x in m)}") for f in ALL for m in _moving(f)]


def _rotation(rng):
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


def _turned(w):
    angle = np.linalg.norm(w)
    if angle == 0.0:
        return np.eye(3)
    k = skew(w / angle)
    return np.eye(3) + np.sin(angle) * k + (1.0 - np.cos(angle)) * k @ k


def _inputs(form, moving, seed):
    """Bodies anywhere, a record with frames anywhere, angles and a law."""
    rng = np.random.default_rng(seed)
    n = sum(moving)
    states = [(rng.normal(size=3), _rotation(rng)) for _ in range(n)]
    record = [x for _ in range(form.sides) for x in (*_rotation(rng).reshape(-1), *rng.normal(size=3))]
    rest = [np.array([*record, *rng.uniform(0.5, 1.5, form.numbers)])]
    if form.turns:
        rest.append(rng.uniform(-1.0, 1.0, form.turns))
    if form.driven:
        rest.append(rng.uniform(0.5, 1.5, 1))
    return states, rest, rng


def _evaluate(block, states, rest, *more):
    flat = [x for p, r in states for x in (*p, *r.reshape(-1))]
    flat += [x for part in (*rest, *more) for x in np.ravel(part)]
    return np.array([float(x) for x in block.evaluate(flat)])


def _moved(states, twists, h):
    return [(p + h * w[:3], _turned(h * w[3:]) @ r) for (p, r), w in zip(states, twists, strict=True)]


def _split(form, moving, values):
    """Φ and J of the outputs of an equations block."""
    m, n = form.size, sum(moving)
    return values[:m], np.concatenate(values[m:].reshape(n, m, 6), axis=1)


@pytest.mark.parametrize(("form", "moving"), CASES)
def test_the_jacobian_is_the_derivative_of_the_equations(form, moving):
    states, rest, rng = _inputs(form, moving, 1)
    block = equations_block(form, moving)
    twists = rng.normal(size=(sum(moving), 6))
    _, j = _split(form, moving, _evaluate(block, states, rest))
    ahead, behind = (_split(form, moving, _evaluate(block, _moved(states, twists, h), rest))[0] for h in (H, -H))
    np.testing.assert_allclose(j @ twists.reshape(-1), (ahead - behind) / (2 * H), atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize(("form", "moving"), CASES)
def test_the_bias_is_the_derivative_of_the_jacobian_along_the_motion(form, moving):
    states, rest, rng = _inputs(form, moving, 2)
    block = equations_block(form, moving)
    twists = rng.normal(size=(sum(moving), 6))
    found = _evaluate(bias_block(form, moving), states, rest, twists)
    ahead, behind = (_split(form, moving, _evaluate(block, _moved(states, twists, h), rest))[1] for h in (H, -H))
    np.testing.assert_allclose(found, (ahead - behind) @ twists.reshape(-1) / (2 * H), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(("form", "moving"), CASES)
def test_the_lift_is_the_derivative_of_the_transposed_jacobian(form, moving):
    states, rest, rng = _inputs(form, moving, 3)
    block = equations_block(form, moving)
    twists, multipliers = rng.normal(size=(sum(moving), 6)), rng.normal(size=form.size)
    found = _evaluate(lift_block(form, moving), states, rest, twists, multipliers)
    ahead, behind = (_split(form, moving, _evaluate(block, _moved(states, twists, h), rest))[1] for h in (H, -H))
    np.testing.assert_allclose(found, (ahead - behind).T @ multipliers / (2 * H), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("reference", [-20.0, -1.0, 0.3, 3.0, 7.0, 1000.0])
def test_a_counted_angle_is_the_one_nearest_to_its_reference(reference):
    for angle in np.linspace(-3.0, 3.0, 7):
        found = forms.near(forms.Measure(cosine=np.cos(angle), sine=np.sin(angle)), reference)
        assert abs(found - reference) <= np.pi + 1e-12
        assert abs(np.exp(1j * found) - np.exp(1j * angle)) < 1e-12


def test_every_equation_has_a_name():
    for form in ALL:
        rest = _inputs(form, (True,) * form.sides, 0)
        block = equations_block(form, (True,) * form.sides)
        assert len(_evaluate(block, *rest[:2])) == form.size * (1 + 6 * form.sides)
