"""Descriptions with named numbers: the names, the values, and that nothing else changes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import ModelError, NameNotFound
from linkwright.mechanism import Mechanism
from linkwright.model.description import Description
from linkwright.model.elements import joint_losses
from linkwright.model.parameter_cases import with_parameters
from linkwright.symbolic.derivation.literal import literal

ROWS = [
    {"a": 0.0, "alpha": 0.0, "d": 0.4, "theta": 0.0, "mass": 2.0, "com": (0.0, 0.0, 0.1), "inertia": (0.1, 0.1, 0.1)},
    {"a": 0.3, "alpha": -math.pi / 2, "d": 0.0, "theta": 0.0, "mass": 1.5, "com": (0.2, 0.0, 0.0)},
    {"a": 0.5, "alpha": 0.7, "d": 0.2, "theta": 0.1, "mass": 1.0, "com": (0.1, 0.0, 0.0)},
]
TEN = ("m", "x", "y", "z", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")


def arm(convention: str = "modified", **options: object) -> Description:
    return lw.from_dh(ROWS, convention=convention, **options).description


def states(mech: Mechanism) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    q = mech.integrate(mech.neutral(), rng.uniform(-1.0, 1.0, mech.nv))
    return q, rng.standard_normal(mech.nv), rng.standard_normal(mech.nv)


def forces(d: Description, p: dict[str, float] | None = None) -> np.ndarray:
    """Inverse dynamics by the tape in which every parameter is free."""
    mech = Mechanism(d)
    names = list(d.parameters)
    program = mech.program("inverse_dynamics", free=names)
    values = {**d.parameters, **(p or {})}
    return program(*states(mech), *([np.array([values[n] for n in names])] if names else []))


@pytest.mark.parametrize("seed", range(4))
def test_a_literal_mechanism_moves_as_the_plain_one(seed: int) -> None:
    mech = lw.random_tree(6, seed)
    d = literal(mech.description, "all")
    assert forces(d) == pytest.approx(mech.inverse_dynamics(*states(mech)), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_rows_of_a_table_give_their_lengths_names(convention: str) -> None:
    plain = arm(convention)
    d = literal(plain, ["lengths"])
    assert dict(d.parameters) == pytest.approx({"d1": 0.4, "a2": 0.3, "a3": 0.5, "d3": 0.2})
    other = lw.from_dh([{**row, "a": 2 * row["a"]} for row in ROWS], convention=convention)
    expected = other.inverse_dynamics(*states(other))
    assert forces(d, {"a2": 0.6, "a3": 1.0}) == pytest.approx(expected, rel=1e-12)
    changed = with_parameters(d, {"a2": 0.6, "a3": 1.0})
    assert Mechanism(changed).inverse_dynamics(*states(other)) == pytest.approx(expected, rel=1e-12)


def test_other_places_are_named_by_body_and_axis() -> None:
    mech = lw.chain(3)
    assert dict(literal(mech.description, "lengths").parameters) == {"pz2": 0.1, "pz3": 0.1}
    tree = lw.random_tree(2, 3)
    names = set(literal(tree.description, "lengths").parameters)
    assert names == {f"{stem}{axis}{k}" for stem in "pb" for axis in "xyz" for k in (1, 2)}


def test_inertial_gives_every_moving_body_ten_symbols() -> None:
    d = literal(arm(), "inertial")
    assert set(d.parameters) == {f"{letter}{k}" for letter in TEN for k in (1, 2, 3)}
    assert d.parameters["x2"] == 0.2
    assert d.parameters["Ixy1"] == 0.0


def test_a_list_of_words_names_only_what_is_not_zero() -> None:
    assert set(literal(arm(), {"mass", "com"}).parameters) == {"m1", "z1", "m2", "x2", "m3", "x3"}


def test_without_zeros_the_preset_names_only_what_is_not_zero() -> None:
    assert "Ixy1" not in literal(arm(), "inertial", zeros=False).parameters


def test_a_body_without_mass_stays_without_unless_zeros_are_asked_for() -> None:
    rows = [*ROWS, {"a": 0.1, "alpha": 0.0, "d": 0.0, "theta": 0.0}]
    d = lw.from_dh(rows, convention="modified").description
    assert "m4" not in literal(d, "inertial").parameters
    assert literal(d, "inertial", zeros=True).parameters["m4"] == 0.0


def test_a_table_without_any_mass_becomes_a_general_arm() -> None:
    d = lw.from_dh([(0.3, 0.0, 0.0, 0.0)] * 2, convention="standard").description
    assert set(literal(d, "inertial").parameters) == {f"{letter}{k}" for letter in TEN for k in (1, 2)}


def test_what_cannot_move_keeps_its_numbers() -> None:
    with lw.Builder("plinth") as b:
        base = b.body("base", 5.0, (0.0, 0.0, 0.1), (1.0, 1.0, 1.0))
        link = b.body("link", 1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
        b.joint("fixed", b.ground, base, "bolts")
        b.joint("revolute", base, link, "hinge")
    names = set(literal(b.build().description, {"mass"}).parameters)
    assert names == {"m2"}


def test_armature_and_friction_of_joints_are_named() -> None:
    with lw.Builder("one") as b:
        link = b.body("link", 1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
        hinge = b.joint("revolute", b.ground, link, "hinge", armature=0.2)
        b.joint_damper(hinge, 0.3)
        b.joint_friction(hinge, 0.4)
    mech = b.build()
    d = literal(mech.description, {"armature", "friction"})
    assert dict(d.parameters) == {"J1": 0.2, "V1": 0.3, "f1": 0.4}
    q, v, a = states(mech)
    plain = mech.inverse_dynamics(q, v, a)
    assert forces(d) == pytest.approx(plain, rel=1e-13)
    assert forces(d, {"J1": 1.2, "V1": 2.3}) == pytest.approx(plain + a + 2.0 * v, rel=1e-12)


def test_damping_and_friction_in_one_law_are_named() -> None:
    d = lw.chain(2, "cylindrical").description
    d = replace(d, elements=joint_losses("joint2", 2, 0.3, 0.4))
    named = literal(d, {"friction"})
    assert dict(named.parameters) == {"V2_1": 0.3, "f2_1": 0.4, "V2_2": 0.3, "f2_2": 0.4}
    assert forces(named) == pytest.approx(forces(d), rel=1e-13)


def test_gravity_is_a_size_along_its_direction() -> None:
    mech = lw.from_dh(ROWS, convention="modified", gravity=(0.0, -3.0, -4.0))
    d = literal(mech.description, {"gravity"})
    assert dict(d.parameters) == {"g": 5.0}
    q = states(mech)[0]
    zero = np.zeros(3)
    twice = forces(d, {"g": 10.0}) - forces(d)
    assert twice == pytest.approx(mech.inverse_dynamics(q, zero, zero), rel=1e-12)


def test_gravity_stays_named_through_a_merge() -> None:
    d = literal(lw.chain(3).description, {"gravity"})
    locked = Mechanism(d).lock({"joint2": 0.3})
    assert locked.program("gravity_forces", free=["g"]).inputs[-1].shape == (1,)
    assert ("gravity", 2) in locked.description.bindings


def test_numbers_bound_already_stay_bound() -> None:
    rows = [{**ROWS[0], "mass": "M"}, {**ROWS[1], "a": "L"}]
    plain = lw.from_dh(rows, convention="modified", parameters={"M": 2.0, "L": 0.3}).description
    d = literal(plain, "all")
    assert {"m1", "a2"}.isdisjoint(d.parameters)
    assert {"M", "L", "m2", "d1"} <= set(d.parameters)


def test_named_adds_nothing_and_twice_is_once() -> None:
    d = literal(arm(), "all")
    assert literal(arm(), "named").parameters == {}
    assert literal(d, "all").digest == d.digest


def test_a_name_taken_by_a_parameter_is_refused() -> None:
    rows = [ROWS[0], {**ROWS[1], "mass": "m1"}]
    d = lw.from_dh(rows, convention="modified").description
    with pytest.raises(ModelError, match="parameter 'm1', and the mass of body 'link1'"):
        literal(d, "inertial")


def test_a_stem_of_coordinates_that_meets_a_parameter_is_refused() -> None:
    with pytest.raises(ModelError, match="'m1' would be both a coordinate"):
        literal(arm(), "inertial", coordinates="m")


def test_an_unknown_word_is_told_with_those_that_there_are() -> None:
    with pytest.raises(NameNotFound, match="inertia"):
        literal(arm(), "inertias")


def test_other_values_are_checked() -> None:
    d = literal(arm(), "inertial")
    with pytest.raises(ModelError, match="negative mass"):
        with_parameters(d, {"m2": -1.0})
