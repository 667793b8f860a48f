"""The regressor and the base parameters: against the recursions, Pinocchio, samples, and published counts."""

import importlib.util
import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import linkwright as lw
import robots
from linkwright.errors import LinkwrightWarning, ModelError, ShapeError
from linkwright.mechanism import Mechanism
from linkwright.symbolic.derivation.literal import LETTERS, literal
from linkwright.symbolic.derivation.model_reading import model_of
from linkwright.symbolic.derivation.polynomial_dynamics import Dynamics
from linkwright.symbolic.formulas.exact import times
from linkwright.symbolic.formulas.formula import Root, Symbol, Trig, evaluate
from linkwright.symbolic.formulas.ring import Ring
from linkwright.symbolic.printing import text
from linkwright.symbolic.regressor.base_parameters import BaseParameters, base_parameters, sampled
from linkwright.symbolic.regressor.column_relations import quotient
from linkwright.symbolic.regressor.polynomial_regressor import Regressor, regressor

needs_robots = pytest.mark.skipif(importlib.util.find_spec("cmeel") is None, reason="example-robot-data is missing")
H = math.pi / 2
#: a, alpha, d of modified Denavit–Hartenberg rows; a row of four is prismatic.
PLANAR = [(0, 0, 0), (0.5, 0, 0), (0.4, 0, 0)]
PUMA = [(0, 0, 0), (0, -H, 0.2435), (0.4318, 0, -0.0934), (-0.0203, H, 0.4331), (0, -H, 0), (0, H, 0)]
STANFORD = [(0, 0, 0), (0, -H, 0.154), (0, H, 0, "prismatic"), (0, 0, 0), (0, -H, 0), (0, H, 0)]
PANDA = [(0, 0, 0.333), (0, -H, 0), (0, H, 0.316), (0.0825, H, 0), (-0.0825, -H, 0.384), (0, H, 0), (0.088, H, 0.107)]
UR5 = [(0, 0, 0.089), (0, H, 0), (-0.425, 0, 0), (-0.392, 0, 0.109), (0, H, 0.095), (0, -H, 0.082)]
LENGTHS = ("lengths", "gravity")


def arm(places: list[tuple[Any, ...]], **options: Any) -> Mechanism:
    """An arm with ten different inertial numbers on each link."""
    rng = np.random.default_rng(1)
    rows = [
        {
            "a": a,
            "alpha": alpha,
            "d": d,
            "theta": 0.0,
            "kind": kind[0] if kind else "revolute",
            "mass": 1.0 + k,
            "com": tuple(rng.uniform(-0.1, 0.1, 3).round(3)),
            "inertia": (0.11, 0.12, 0.13, 0.01, 0.02, 0.005),
        }
        for k, (a, alpha, d, *kind) in enumerate(places)
    ]
    return lw.from_dh(rows, **{"convention": "modified", **options})


def symbolic(places: list[tuple[Any, ...]]) -> Regressor:
    """The regressor of an arm whose lengths are symbols."""
    return regressor(literal(arm(places).description, LENGTHS))


def states(n: int, size: int = 5) -> np.ndarray:
    return np.random.default_rng(2).normal(size=(3, size, n))


def written(base: BaseParameters) -> dict[str, str]:
    return {name: text(formula) for name, formula in base.relations.items()}


@pytest.mark.parametrize(
    "mech",
    [
        arm(PUMA),
        arm(STANFORD),
        arm(PUMA[:3], convention="standard"),
        lw.chain(3, joint="prismatic"),
        lw.chain(2, joint="cylindrical"),
        lw.chain(2, joint="universal"),
        lw.tree(5, 2),
        lw.random_tree(4, seed=2),
        lw.random_tree(4, seed=5),
    ],
    ids=["puma", "stanford", "standard", "prismatic", "cylindrical", "universal", "tree", "screws", "planar"],
)
def test_regressor_times_parameters_is_inverse_dynamics(mech: Mechanism) -> None:
    r = regressor(model_of(mech.description, digits=16))
    q, v, a = states(mech.nv)
    wanted = mech.inverse_dynamics(q, v, a)
    assert r.matrix(q, v, a) @ r.pi == pytest.approx(wanted, abs=1e-10 * np.abs(wanted).max())


@needs_robots
def test_columns_are_those_of_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle: pip install pin")
    path = robots.find("panda.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinkwrightWarning)
        mech = lw.load(path).lock({"panda_finger_joint1": 0.0})
    whole = pin.buildModelFromUrdf(str(path))
    fingers = [k for k, name in enumerate(whole.names) if "finger" in name]
    model = pin.buildReducedModel(whole, fingers, pin.neutral(whole))
    r = regressor(mech)
    assert r.n == model.nv == 7
    # m, m c, then xx, xy, yy, xz, yz, zz there; xx, yy, zz, xy, xz, yz here.
    order = [10 * k + e for k in range(7) for e in (0, 1, 2, 3, 4, 6, 9, 5, 7, 8)]
    theirs = np.concatenate([model.inertias[k + 1].toDynamicParameters() for k in range(7)])[order]
    assert r.pi == pytest.approx(theirs, abs=1e-12)
    data = model.createData()
    q, v, a = states(7)
    for k, y in enumerate(r.matrix(q, v, a)):
        wanted = pin.computeJointTorqueRegressor(model, data, q[k], v[k], a[k])[:, order]
        assert y == pytest.approx(wanted, abs=1e-10)


def test_grouped_blocks_are_the_model_s_equations() -> None:
    mech = arm(PUMA[:3])
    r = symbolic(PUMA[:3])
    blocks = r.blocks()
    q, v, a = states(3, 1)[:, 0]
    names = [s.name for s in (*r.ring.coordinates, *r.ring.rates, *r.ring.accelerations)]
    given = {**r.model.values, **r.values, **dict(zip(names, (*q, *v, *a), strict=True))}
    found = {name: np.array([evaluate(x, given) for x in b.entries]).reshape(b.shape) for name, b in blocks.items()}
    assert blocks["Y"].shape == (3, 30)
    assert found["M"] == pytest.approx(mech.mass_matrix(q), abs=1e-12)
    assert found["g"] == pytest.approx(mech.gravity_forces(q), abs=1e-12)
    assert found["h"] + found["g"] == pytest.approx(mech.bias_forces(q, v), abs=1e-12)
    assert found["Y"] @ found["pi"] == pytest.approx(mech.inverse_dynamics(q, v, a), abs=1e-12)


def test_grouped_entries_are_brackets_times_parameters() -> None:
    g = symbolic([(0, H, 0), (0.5, 0, 0)]).blocks()["g"]
    names = [[term.factors[0][0].name for term in entry] for entry in g.entries]
    assert names == [["mx1", "my1", "m2", "mx2", "my2"], ["mx2", "my2"]]


def test_parameters_come_from_mass_centre_and_inertia() -> None:
    mech = arm(PUMA[2:4], convention="standard")
    d = mech.description
    found = regressor(mech).values
    for k in range(2):
        r, p = d.rj[k], d.pj[k]  # the joint's triad in the body's frame
        assert np.abs(p).max() > 0.0
        m, c = d.mass[k], r.T @ (d.com[k] - p)
        xx, yy, zz, xy, xz, yz = d.inertia[k]
        j = r.T @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ r + m * (c @ c * np.eye(3) - np.outer(c, c))
        wanted = [m, *(m * c), j[0, 0], j[1, 1], j[2, 2], j[0, 1], j[0, 2], j[1, 2]]
        assert [found[f"{letter}{k + 1}"] for letter in LETTERS] == pytest.approx(wanted, abs=1e-12)


def test_relations_say_what_the_parameters_are() -> None:
    r = regressor(literal(arm(PLANAR[:1]).description))
    assert text(r.relations["mx1"]) == "m1*x1"
    assert text(r.relations["Jzz1"]) == "m1*x1^2 + m1*y1^2 + Izz1"


def test_motors_and_friction_have_columns() -> None:
    with lw.Builder("two") as b:
        up = b.body("up", 1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
        out = b.body("out", 1.0, (0.1, 0.2, 0.0), (0.1, 0.1, 0.1))
        first = b.joint("revolute", b.ground, up, "first", armature=0.2)
        second = b.joint("revolute", up, out, "second", at=(0.3, 0.0, 0.0), axis=(1.0, 0.0, 0.0))
        b.joint_damper(first, 0.3)
        b.joint_friction(second, 0.4)
    mech = b.build()
    r = regressor(mech, friction=None)
    assert r.names[20:] == ("J1", "V1", "f2")
    assert [r.values[name] for name in ("J1", "V1", "f2")] == [0.2, 0.3, 0.4]
    q, v, a = states(2)
    assert r.matrix(q, v, a) @ r.pi == pytest.approx(mech.inverse_dynamics(q, v, a), abs=1e-12)
    assert regressor(mech).names[20:] == ("J1",)
    assert regressor(mech, motors=True, friction=True).names[20:] == ("J1", "J2", "V1", "f1", "V2", "f2")
    base = base_parameters(r)
    assert text(base.relations["Jzz1R"]).endswith(" + J1")
    assert {"V1", "f2"} <= set(base.alone)


@pytest.mark.parametrize("law", [lambda q, v: -0.3 * q * v, lambda q, v: -(1.0 + 2.0 * v) * (1.0 + 3.0 * v)])
def test_friction_of_another_law_is_refused(law) -> None:
    with lw.Builder("one") as b:
        link = b.body("link", 1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
        hinge = b.joint("revolute", b.ground, link, "hinge", armature=0.1)
        b.joint_force(hinge, law)
    with pytest.raises(ModelError, match="joint 'hinge' is neither viscous nor Coulomb"):
        regressor(b.build(), friction=None)
    assert len(regressor(b.build()).names) == 11


def test_the_symbols_of_the_model_s_own_masses_do_not_disturb() -> None:
    rows = [{"a": 0, "alpha": H, "d": 0, "theta": 0, "mass": "m2", "com": ("l", 0, 0)}]
    mech = lw.from_dh(rows, convention="modified", parameters={"m2": 3.0, "l": 0.5})
    r = regressor(mech)
    assert r.values["m1"] == 3.0
    assert r.values["Jzz1"] == 0.75


# -- base parameters --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("places", "count"),
    [
        # Mayeda, Yoshida and Osuka (1990): arms of N rotational joints with parallel or perpendicular axes have
        # 7N − 4β base parameters, β joints at the base having parallel axes, and 2 fewer if these are vertical.
        (PLANAR[:1], 1),
        (PLANAR[:2], 4),
        (PLANAR, 7),
        ([(0, H, 0), (0.5, 0, 0)], 6),
        (PUMA, 36),
        (UR5, 36),
        (PANDA, 43),
        # A prismatic link that can turn shows m and mx, my, mz: 1 + 4·7 + 4.
        (STANFORD, 33),
    ],
    ids=["1R", "2R", "3R", "2R in a vertical plane", "puma", "ur5", "panda", "stanford"],
)
def test_as_many_base_parameters_as_the_formula_says(places: list[tuple[Any, ...]], count: int) -> None:
    assert base_parameters(symbolic(places)).rank == count


def test_relations_of_a_planar_arm() -> None:
    base = base_parameters(symbolic([(0, H, 0), (0.5, 0, 0)]))
    assert written(base) == {
        "mx1R": "mx1 + a2*m2",
        "my1": "my1",
        "Jzz1R": "Jzz1 + a2^2*m2",
        "mx2": "mx2",
        "my2": "my2",
        "Jzz2": "Jzz2",
    }
    assert set(base.in_combination) == {"m2", "mx1", "Jzz1"}
    assert "Jyy2" in base.without_influence
    assert len(base.without_influence) + len(base.in_combination) + len(base.alone) == 20


def test_relations_of_the_puma_are_gautier_and_khalil_s() -> None:
    found = written(base_parameters(symbolic(PUMA)))
    assert found["Jxx6R"] == "Jxx6 - Jyy6"
    assert found["Jzz5R"] == "Jzz5 + Jyy6"
    assert found["my4R"] == "my4 + mz5"
    assert found["mx2R"] == "mx2 + a3*m3 + a3*m4 + a3*m5 + a3*m6"
    assert found["Jxz2R"] == "Jxz2 - a3*d3*m3 - a3*mz3 - a3*d3*m4 - a3*d3*m5 - a3*d3*m6"


@pytest.mark.parametrize("places", [PUMA, STANFORD, UR5], ids=["puma", "stanford", "ur5"])
def test_exact_and_sampled_base_parameters_agree(places: list[tuple[Any, ...]]) -> None:
    r = symbolic(places)
    exact, numeric = base_parameters(r), sampled(r)
    assert exact.exact
    assert not numeric.exact
    assert exact.independent == numeric.independent
    assert exact.without_influence == numeric.without_influence
    assert exact.combination == pytest.approx(numeric.combination, abs=1e-9)
    rows = r.matrix(*states(r.n, 40)).reshape(-1, len(r.names))
    assert np.linalg.matrix_rank(rows, tol=1e-9 * np.abs(rows).max()) == exact.rank


@pytest.mark.parametrize(
    "mech",
    [
        arm([(0, 0, 0), (0.1, 0.3, 0.1), (0.3, 0.7, 0.2), (0.2, 1.1, 0)]),
        arm([(0, H / 3, 0), (0.2, H / 2, 0.1), (0.1, 2 * H / 3, 0.1, "prismatic")]),
        lw.tree(4, 2),
        lw.random_tree(3, seed=0),
        lw.random_tree(3, seed=6),
    ],
    ids=["any angles", "30, 45 and 60 degrees", "tree", "spherical", "universal"],
)
def test_base_parameters_give_the_same_forces(mech: Mechanism) -> None:
    r = regressor(mech)
    base = base_parameters(r)
    assert base.exact
    assert base.rank < len(r.names)
    state = states(r.n)
    wanted = r.matrix(*state) @ r.pi
    assert base.matrix(*state) @ base.beta == pytest.approx(wanted, abs=1e-9 * np.abs(wanted).max())
    assert sampled(r).rank == base.rank


def test_exact_relations_hold_for_other_lengths() -> None:
    r = symbolic(PUMA[:4])
    base = base_parameters(r)
    other = {name: value + 0.3 + 0.1 * k for k, (name, value) in enumerate(sorted(r.model.values.items()))}
    y = r.matrix(*states(4), parameters=other)
    values = {**other, **r.values}
    beta = [evaluate(formula, values) for formula in base.relations.values()]
    assert y[..., base.independent] @ beta == pytest.approx(y @ r.pi, abs=1e-10)


def test_blocks_of_base_parameters() -> None:
    base = base_parameters(symbolic(PLANAR[:2]))
    blocks = base.blocks()
    assert blocks["Yb"].shape == (2, 4)
    assert [text(x) for x in blocks["beta"].entries] == ["Jzz1R", "mx2", "my2", "Jzz2"]
    assert text(blocks["regrouped"].entries[0]) == "Jzz1 + a2^2*m2"
    assert text(blocks["Yb"].entries[0]) == "ddq1"
    assert base.values["Jzz1R"] == pytest.approx(base.regressor.values["Jzz1"] + 0.25 * 2.0)


def test_rounded_cosines_leave_it_to_samples() -> None:
    mech = arm([(0, 0, 0), (0.1, 0.3, 0), (0.3, 0.7, 0), (0.2, 0.4, 0)])
    whole = base_parameters(regressor(mech))
    rounded = base_parameters(regressor(model_of(mech.description, digits=16)))
    assert whole.exact
    assert not rounded.exact
    assert rounded.rank == whole.rank == 22
    assert rounded.combination == pytest.approx(whole.combination, abs=1e-8)


def test_quotients_lose_sines_and_roots_below() -> None:
    angle = ((Symbol("alpha"), Fraction(1)),)
    a, b, s, c, root = Symbol("a"), Symbol("b"), Trig("sin", angle), Trig("cos", angle), Root(2)
    ring = Ring((), (), [times(1, a, b, s, c, root)])
    x, y, sine, cosine, two = (ring.symbol(f) for f in (a, b, s, c, root))
    assert text(quotient(ring, 1 - cosine**2, sine)) == "sin(alpha)"
    assert text(quotient(ring, ring.one, two)) == "1/2*sqrt(2)"
    assert text(quotient(ring, x * y + y * y, x * x - y * y)) == "b/(a - b)"
    for top, below in [(x * sine + two, y + two * sine), (sine * x, sine + 2 * cosine + 3)]:
        values = {"a": 0.3, "b": 0.7, "alpha": 0.4}
        at = ring.values(values)
        wanted = ring.evaluate(top, at) / ring.evaluate(below, at)
        assert evaluate(quotient(ring, top, below), values) == pytest.approx(wanted, rel=1e-12)


# -- bad input --------------------------------------------------------------------------------------------------------
def test_no_mass_is_a_sentence() -> None:
    mech = lw.from_dh([{"a": 0.1, "alpha": 0, "d": 0, "theta": 0}], convention="modified")
    with pytest.raises(ModelError, match=r"that moves has mass.*every=True"):
        regressor(mech)
    assert regressor(mech, every=True).names[0] == "m1"


def test_nothing_that_moves_is_a_sentence() -> None:
    with lw.Builder("held") as b:
        b.joint("fixed", b.ground, b.body("block", 1.0, (0, 0, 0), (1, 1, 1)), "bolts")
    with pytest.raises(ModelError, match="no body of 'held' can move"):
        regressor(b.build())


def test_a_length_by_the_name_of_a_parameter_is_refused() -> None:
    row = {"alpha": 0, "d": 0, "theta": 0, "mass": 1.0, "com": (0.1, 0, 0)}
    mech = lw.from_dh([{**row, "a": 0}, {**row, "a": "m1"}], convention="modified", parameters={"m1": 1.0})
    with pytest.raises(ModelError, match=r"'m1' is in the model's lengths.*rename"):
        regressor(mech)


def geared(damping: str, mass: float | str = 1.0) -> Mechanism:
    """One link whose joint has a damper of this name."""
    with lw.Builder("one") as b:
        size = b.parameter(damping, 0.3)
        link = b.body("link", size if mass == damping else mass, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
        b.joint_damper(b.joint("revolute", b.ground, link, "hinge"), size)
    return b.build()


def test_a_damping_by_the_name_of_a_parameter_is_refused() -> None:
    with pytest.raises(ModelError, match=r"'mx1' is in the model's joints' forces.*rename"):
        regressor(geared("mx1"))


def test_a_damping_that_is_the_parameter_itself_is_not_refused() -> None:
    assert regressor(geared("V1"), friction=None).values["V1"] == 0.3
    assert regressor(geared("m1", mass="m1")).values["m1"] == 0.3


def test_states_of_a_wrong_shape_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"shapes \(\.\.\., 2\)"):
        symbolic(PLANAR[:2]).matrix(np.zeros(3), np.zeros(2), np.zeros(2))


def test_inertias_may_be_put_in_place_of_the_model_s() -> None:
    model = model_of(arm(PLANAR[:1]).description)
    assert Dynamics(model, inertias=[None]).masses == [None]
