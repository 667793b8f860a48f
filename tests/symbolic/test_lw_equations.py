"""`lw.equations`: published arms and small ones against the recursions and SymPy, options, interruption, bad input."""

from pathlib import Path

import numpy as np
import pytest
import sympy
import sympy_oracle

import linkwright as lw
from linkwright.errors import LinkwrightError, LinkwrightWarning, ModelError, NameNotFound
from linkwright.symbolic.derivation import progress as derivation
from linkwright.symbolic.derivation.literal import literal
from linkwright.symbolic.derivation.model_reading import model_of
from linkwright.symbolic.derivation.progress import Derivation, estimate
from linkwright.symbolic.equations_of_motion import Equations, estimated

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
ROWS = [
    {"alpha": 0.0, "d": "d1", "mass": "m1", "com": ("x1", 0, "z1"), "inertia": ("I1", "I1", "J1", 0, 0, "P1")},
    {"alpha": np.pi / 2, "a": "a2", "mass": "m2", "com": ("x2", "y2", 0), "inertia": ("I2", "J2", "J2", "P2", 0, 0)},
    {"alpha": -np.pi / 2, "kind": "P", "mass": "m3", "com": (0, "y3", "z3"), "inertia": ("I3", "I3", "I3")},
]


def close(eq: Equations, mech: lw.Mechanism, seed: int = 0) -> None:
    """M, h and g at random states are the recursions', relative to the largest entry."""
    random = np.random.default_rng(seed)
    for _ in range(1 if eq.derivation.terms() > 50_000 else 3):
        q, v = random.uniform(-3, 3, size=(2, eq.n))
        m, h, g = eq.evaluate(q, v)
        for found, known in (
            (m, mech.mass_matrix(q)),
            (g, mech.gravity_forces(q)),
            (h + g, mech.bias_forces(q, v)),
        ):
            np.testing.assert_allclose(found, known, rtol=0, atol=1e-10 * np.abs(known).max())


@pytest.mark.parametrize("name", ["puma560", "panda", "arm_8r", "planar_10r"])
def test_published_arms_with_every_inertial_parameter_literal_equal_the_recursions(name: str) -> None:
    mech = lw.load(MODELS / f"{name}.dh.toml")
    eq = lw.equations(mech, literal="inertial")
    assert len(eq.parameters) >= 10 * eq.n
    close(eq, lw.Mechanism(literal(mech.description, "inertial")))


def test_a_robot_of_a_urdf_file_equals_the_recursions() -> None:
    mech = lw.load(MODELS / "arm.urdf")
    close(lw.equations(MODELS / "arm.urdf", literal="all"), mech)


@pytest.mark.parametrize("oracle", [sympy_oracle.by_trace, sympy_oracle.by_lagrange])
def test_a_small_arm_has_the_equations_that_sympy_finds(oracle) -> None:
    eq = lw.equations(lw.from_dh(ROWS, "modified", gravity=(0, 0, "-g")))
    known = oracle(ROWS)
    random = np.random.default_rng(3)
    values = dict(zip(eq.parameters, random.uniform(0.5, 2.0, len(eq.parameters)), strict=True))
    q, v = random.normal(size=(2, 3))
    for found, right in zip(eq.evaluate(q, v, **values), known.numbers(values)(q, v), strict=False):
        np.testing.assert_allclose(found, right, rtol=0, atol=1e-12 * np.abs(right).max())


@pytest.mark.parametrize("form", ["collected", "expanded"])
def test_a_form_is_the_same_function_as_sympys_own(form: str) -> None:
    eq = lw.equations(lw.from_dh(ROWS[:2], "modified", gravity=(0, 0, "-g")), form=form)
    known = sympy_oracle.by_trace(ROWS[:2])
    for found, right in ((eq.M, known.M), (eq.h, known.h), (eq.g, known.g)):
        assert (found - right).applyfunc(lambda x: x.rewrite(sympy.exp).expand()) == sympy.zeros(*right.shape)


def test_the_trace_form_gives_the_same_objects_as_jacobians() -> None:
    arm = lw.load(MODELS / "puma560.dh.toml")
    first, second = (lw.equations(arm, literal="inertial", way=way) for way in ("jacobian", "trace"))
    assert first.derivation.m == second.derivation.m


def test_the_papers_hijk_gives_the_same_h_and_not_a_skew_matrix() -> None:
    d = lw.equations(lw.from_dh(ROWS, "modified")).derivation.dynamics
    ring, n = d.ring, d.n
    rates = [ring.symbol(s) for s in ring.rates]
    for i in range(n):
        total = ring.zero
        for j in range(n):
            for k in range(n):
                total = total + (d.slope(i, j, k) - d.slope(j, k, i) / 2) * rates[j] * rates[k]
        assert total == d.h(i)

    def skew(c) -> bool:
        change = [[sum((d.slope(i, j, k) * rates[k] for k in range(n)), ring.zero) for j in range(n)] for i in range(n)]
        part = [[change[i][j] - 2 * c(i, j) for j in range(n)] for i in range(n)]
        return all(part[i][j] + part[j][i] == ring.zero for i in range(n) for j in range(n))

    assert skew(d.coriolis)
    papers = [
        [sum(((d.slope(i, j, k) - d.slope(j, k, i) / 2) * rates[k] for k in range(n)), ring.zero) for j in range(n)]
        for i in range(n)
    ]
    assert not skew(lambda i, j: papers[i][j])


def test_sums_of_angles_and_single_angles_are_the_same_function_with_fewer_terms() -> None:
    chain = lw.load(MODELS / "planar_10r.dh.toml")
    both, single = (Derivation(model_of(chain.description, sums=sums)) for sums in (True, False))
    for d in (both, single):
        for _ in d.dynamics.mass_matrix():
            pass
    assert sum(map(len, both.m.values())) * 4 < sum(map(len, single.m.values()))
    values = {**both.model.values, **{s.name: 0.1 * k for k, s in enumerate(both.model.coordinates)}}
    for i, j in ((0, 0), (0, 9), (4, 7)):
        found = [d.dynamics.ring.evaluate(d.m[i, j], d.dynamics.ring.values(values)) for d in (both, single)]
        assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_parameters_named_as_numbers_stand_for_their_values() -> None:
    arm = lw.load(MODELS / "three_link.dh.toml")
    eq = lw.equations(arm, numbers=["g", "l2"])
    assert eq.terms("g", 2) == ["9.81*lg2*m2*cos(q2)", "3.924*m3*cos(q2)", "9.81*lg3*m3*cos(q2 + q3)"]
    assert lw.equations(arm, numbers="all").parameters == {}


def test_properties_are_sympy_matrices_that_belong_together() -> None:
    eq = lw.equations(MODELS / "three_link.dh.toml")
    assert sympy.expand(eq.C * eq.dq - eq.h, trig=True) == sympy.zeros(3, 1)
    t, u = eq.kinetic_energy, eq.potential_energy
    assert sympy.expand(t - (eq.dq.T * eq.M * eq.dq)[0] / 2, trig=True) == 0
    assert sympy.expand(eq.lagrangian - t + u) == 0
    assert sympy.simplify(sympy.Matrix([u.diff(q) for q in eq.q]) - eq.g) == sympy.zeros(3, 1)
    assert sympy.simplify(eq.F - eq.M * eq.ddq - eq.h - eq.g - eq.friction) == sympy.zeros(3, 1)
    assert eq.joints == ("joint1", "joint2", "joint3")


def test_what_a_caller_does_to_a_matrix_stays_with_the_caller() -> None:
    eq = lw.equations(MODELS / "three_link.dh.toml")
    m = eq.M
    m[0, 0] = 0
    assert eq.M[0, 0] != 0


def test_progress_tells_every_entry_once() -> None:
    told = []
    lw.equations(MODELS / "three_link.dh.toml", progress=lambda *words: told.append(words))
    upper = [f"M{i}{j}" for i in (1, 2, 3) for j in range(i, 4)]
    assert [name for name, _, _ in told] == [*upper, "g1", "g2", "g3", "h1", "h2", "h3"]
    assert told[-1] == ("h3", 12, 12)


def test_an_interruption_leaves_what_was_found() -> None:
    def interrupt(name: str, done: int, total: int) -> None:
        if name == "h1":
            raise KeyboardInterrupt

    with pytest.warns(LinkwrightWarning, match="the derivation was interrupted: 10 of 12 entries"):
        eq = lw.equations(MODELS / "three_link.dh.toml", progress=interrupt)
    assert not eq.complete
    assert eq.missing == ["h2", "h3"]
    assert eq.M.shape == (3, 3)
    assert [block.name for block in eq.sheet().blocks] == ["M", "g", "friction"]
    assert "h2, h3 are missing" in eq.sheet().notes[-1]
    with pytest.raises(LinkwrightError, match="h2 was not reached when the derivation was interrupted"):
        _ = eq.h


def test_an_estimate_of_a_short_derivation_is_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivation, "_ENOUGH", np.inf)
    arm = lw.load(MODELS / "puma560.dh.toml")
    guess = estimated(arm)
    assert guess.measured
    assert guess.terms == lw.equations(arm).derivation.terms()


@pytest.mark.parametrize("name", ["puma560", "panda", "planar_10r"])
def test_an_estimate_from_the_first_links_is_of_the_right_size(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(literal(lw.load(MODELS / f"{name}.dh.toml").description, "inertial"))
    made = Derivation(model)
    made.run()
    monkeypatch.setattr(derivation, "_ENOUGH", 0.0)
    begun = iter(range(-5, 10**6))  # a clock by which four links are tried
    monkeypatch.setattr(derivation, "_clock", lambda: next(begun) // 12)
    guess = estimate(model)
    assert not guess.measured
    assert made.terms() / 10 < guess.terms < 10 * made.terms()


#: What each form alone has, in words of each language: multiple angles, products of cosines, π, steps.
MARKS = {
    "collected": {".tex": r"\cos \theta_{3}", ".py": "cos_2theta2_theta3", ".c": "cos_2theta2_theta3"},
    "expanded": {".tex": r"\cos^{2}(\theta_{2} + \theta_{3})", ".py": "cos_theta2_theta3", ".c": "cos_theta2_theta3"},
    "grouped": {".tex": "J_{zz3}", ".py": "Jzz3", ".c": "Jzz3"},
    "recursive": {".tex": "c_{2}", ".py": "c2 = math.cos(theta2)", ".c": "c2 = cos("},
}


@pytest.mark.parametrize("suffix", [".tex", ".py", ".c", ".md", ".html"])
@pytest.mark.parametrize("form", MARKS)
def test_every_form_is_saved_in_every_language(form: str, suffix: str, tmp_path: Path) -> None:
    eq = lw.equations(MODELS / "three_link.dh.toml", coordinates="theta")
    text = eq.save(tmp_path / f"arm{suffix}", form).read_text()
    assert MARKS[form].get(suffix, "") in text
    others = [eq.save(tmp_path / f"other{suffix}", other).read_text() for other in MARKS if other != form]
    assert all(text.replace(form, "") != other.replace(name, "") for name, other in zip(MARKS, others, strict=False))


def test_a_long_form_is_expanded_unless_another_is_chosen() -> None:
    puma = lw.load(MODELS / "puma560.dh.toml")
    assert lw.equations(puma).form == "collected"
    assert lw.equations(puma, literal="inertial").form == "expanded"
    assert lw.equations(puma, literal="inertial", form="collected").form == "collected"


def test_the_recursive_form_derives_nothing_until_it_is_asked_for() -> None:
    rows = [{"alpha": np.pi / 2 * (k % 2), "a": 0.1, "mass": 1.0, "com": (0.1, 0.2, 0.3)} for k in range(30)]
    eq = lw.equations(lw.from_dh(rows, "modified"), literal="all", form="recursive")
    assert repr(eq) == "<Equations of 'DH table': 30 coordinates, recursive>"
    assert "def inverse_dynamics" in eq.python()
    with pytest.raises(LinkwrightError, match=r"eq.recursive\('mass_matrix'\)"):
        _ = eq.M


def test_a_derivation_that_would_fill_the_memory_is_refused_before_it_begins() -> None:
    rows = [{"alpha": np.pi / 2 * (k % 2), "a": 0.1, "mass": 1.0, "com": (0.1, 0.2, 0.3)} for k in range(30)]
    with pytest.raises(LinkwrightError, match=r'would have about .* terms.*form="recursive"'):
        lw.equations(lw.from_dh(rows, "modified"), literal="all")


def test_multiple_angles_are_never_more_than_told() -> None:
    eq = lw.equations(MODELS / "puma560.dh.toml")
    counted = sum(len(eq.terms(*place)) for place in [("M", 1, 1), ("h", 1), ("g", 2)])
    told = sum(eq._forms.most(eq.polynomial(*place)) for place in [("M", 0, 0), ("h", 0), ("g", 1)])
    assert 0 < counted <= told


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    eq = lw.equations(MODELS / "three_link.dh.toml")
    with pytest.raises(LinkwrightError, match=r"arm.docx: equations are saved as .tex, .py"):
        eq.save(tmp_path / "arm.docx")


def four_bar() -> lw.Mechanism:
    return lw.load(MODELS / "four_bar.mks")


def held_by_a_rod() -> lw.Mechanism:
    with lw.Builder("held") as b:
        arm = b.body("arm", 1.0, (0.5, 0.0, 0.0), (0.0, 0.1, 0.1))
        b.joint("spherical", b.ground, arm, "ball")
        b.rod(b.frame(b.ground, np.eye(3), (1.0, 0.0, 1.0)), b.frame(arm, np.eye(3), (1.0, 0.0, 0.0)), 1.0, "stay")
    return b.build()


@pytest.mark.parametrize(
    ("ask", "error", "told"),
    [
        (lambda: lw.equations(four_bar()), ModelError, "closed loops.*lw.simulate.*cut the loop: take away that joint"),
        (lambda: lw.equations(held_by_a_rod()), ModelError, "rod 'stay'.*take away that rod and ask"),
        (lambda: lw.equations(lw.from_dh([(0, 0, 0, 0)])), ModelError, 'no body.*has a mass.*literal="inertial"'),
        (lambda: lw.equations(3), ModelError, "give a mechanism or the path of a model file, not"),
        (lambda: lw.equations("nowhere.dh.toml"), LinkwrightError, "nowhere.dh.toml"),
        (lambda: lw.equations(MODELS / "three_link.dh.toml", form="colected"), NameNotFound, "mean 'collected'"),
        (lambda: lw.equations(MODELS / "three_link.dh.toml", way="newton"), NameNotFound, "jacobian, trace"),
        (lambda: lw.equations(MODELS / "three_link.dh.toml", literal="masses"), LinkwrightError, "mass"),
        (lambda: lw.equations(MODELS / "three_link.dh.toml", numbers=["m4"]), NameNotFound, "no parameter named 'm4'"),
        (lambda: lw.equations(MODELS / "three_link.dh.toml", coordinates="m"), ModelError, "'m1'.*coordinate"),
        (lambda: lw.equations(MODELS / "three_link.dh.toml", coordinates="1"), ModelError, "such as 'q' or 'theta'"),
        (lambda: lw.equations(MODELS / "three_link.dh.toml").evaluate([0.0]), LinkwrightError, r"take \(..., 3\)"),
        (lambda: lw.equations(MODELS / "three_link.dh.toml").evaluate([0] * 3, m7=1), NameNotFound, "'m7'"),
        (lambda: lw.equations(MODELS / "three_link.dh.toml").sympy("N"), NameNotFound, "part of the equations"),
        (lambda: lw.equations(MODELS / "three_link.dh.toml").terms("M", 4, 1), LinkwrightError, r"shape \(3, 3\)"),
    ],
)
def test_bad_input_gets_a_sentence(ask, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        ask()


def test_an_inertia_that_no_body_can_have_is_refused_when_the_table_is_read() -> None:
    with pytest.raises(ModelError, match="inertia"):
        lw.from_dh([{"mass": 1.0, "inertia": (1.0, 1.0, 5.0)}])


def test_a_symbol_that_the_table_does_not_have_is_refused() -> None:
    with pytest.raises(NameNotFound, match="'m2'"):
        lw.from_dh([{"mass": "m1"}], parameters={"m2": 1.0})


def test_the_grouped_form_has_its_own_parameters() -> None:
    eq = lw.equations(MODELS / "three_link.dh.toml", form="grouped")
    used = {str(s) for part in (eq.M, eq.h, eq.g) for s in part.free_symbols} - {str(s) for s in (*eq.q, *eq.dq)}
    assert used <= set(eq.parameters)
    assert "mx2" in used
