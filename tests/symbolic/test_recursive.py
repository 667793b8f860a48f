"""The recursive form: emitted code against the numeric recursions, its operations counted, and its names."""

from __future__ import annotations

import ast
import ctypes
import importlib.util
import math
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwright as lw
import robots
from linkwright.errors import ModelError, NameNotFound
from linkwright.mechanism import Mechanism
from linkwright.model.description import kind_number
from linkwright.model.joint_kinds import KINDS
from linkwright.model.placements import full_inertia
from linkwright.model.topology import span
from linkwright.symbolic.derivation.literal import literal
from linkwright.symbolic.printing.printed_sheet import QUANTITIES, RECURSIONS
from linkwright.symbolic.recursive.recursive_form import Recursive, recursive

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
needs_robots = pytest.mark.skipif(importlib.util.find_spec("cmeel") is None, reason="example-robot-data is missing")
H = math.pi / 2
FORCES = [name for name in RECURSIONS if name != "regressor"]
#: Placed as a PUMA 560 is: a, alpha, d of modified Denavit–Hartenberg rows.
PLACES = [(0, 0, 0), (0, -H, 0.24), (0.43, 0, -0.09), (-0.02, H, 0.43), (0, -H, 0), (0, H, 0)]


def puma() -> Mechanism:
    rng = np.random.default_rng(5)
    rows = [
        {
            "a": a,
            "alpha": alpha,
            "d": d,
            "theta": 0.0,
            "mass": 1.0 + k,
            "com": tuple(rng.uniform(-0.1, 0.1, 3)),
            "inertia": (0.11, 0.12, 0.13, 0.01, 0.02, 0.005),
        }
        for k, (a, alpha, d) in enumerate(PLACES)
    ]
    return lw.from_dh(rows, convention="modified")


def scara() -> Mechanism:
    """A table with symbols, odd names among them."""
    rows = [
        {"a": "l1", "alpha": 0.0, "d": "double", "theta": 0.0, "mass": "m1", "com": ("lambda", 0.0, 0.0)},
        {"a": "θ", "alpha": math.pi, "d": 0.0, "theta": 0.0, "mass": "sin", "com": (0.1, "q", 0.0)},
        {"a": 0.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "kind": "prismatic", "mass": "p", "com": (0.0, 0.0, "x1")},
    ]
    values = {"l1": 0.4, "double": 0.3, "m1": 2.0, "lambda": -0.2, "θ": 0.3, "sin": 1.5, "q": 0.05, "p": 0.7, "x1": 0.2}
    return lw.from_dh(rows, convention="standard", parameters=values)


def losses() -> Mechanism:
    with lw.Builder("losses") as b:
        c = b.parameter("c", 0.3)
        arm = b.body("arm", 1.0, (0.1, 0.0, 0.2), (0.1, 0.1, 0.1))
        hinge = b.joint("revolute", b.ground, arm, "hinge", armature=0.2)
        b.joint_damper(hinge, c)
        b.joint_friction(hinge, 0.4)
        b.stop(hinge, -0.2, 0.2, stiffness=100.0, damping=0.1)
    return b.build()


def every_kind(seed: int, half: int) -> Mechanism:
    """A tree with one joint of each other kind, in a random order: two small trees take less than a large one."""
    some = np.arange(half, len(KINDS), 2)
    d = lw.random_tree(len(some), seed).description
    kind = np.random.default_rng(seed).permutation(some).astype(np.int32)
    return Mechanism(replace(d, kind=kind, pitch=np.where(kind == kind_number("screw"), 0.1, 0.0)))


MECHANISMS: dict[str, Callable[[], Mechanism]] = {
    "puma": puma,
    "puma inertial": lambda: Mechanism(literal(puma().description, "inertial")),
    "puma all": lambda: Mechanism(literal(puma().description, "all")),
    "table with symbols": scara,
    "losses": losses,
    "even kinds": lambda: every_kind(0, 0),
    "odd kinds": lambda: every_kind(0, 1),
    "even kinds literal": lambda: Mechanism(literal(every_kind(3, 0).description, "all", zeros=True)),
    "odd kinds literal": lambda: Mechanism(literal(every_kind(3, 1).description, "all", zeros=True)),
}


@cache
def mechanism(name: str) -> Mechanism:
    return MECHANISMS[name]()


@cache
def written(name: str, quantity: str, *, regrouped: bool = True) -> Recursive:
    """The form of a mechanism by its name, which several tests look at."""
    return recursive(mechanism(name), quantity, regrouped=regrouped)


def state(mech: Mechanism) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    q = mech.integrate(mech.neutral(), rng.uniform(-1.0, 1.0, mech.nv))
    return {
        "q": q,
        "dq": rng.standard_normal(mech.nv),
        "ddq": rng.standard_normal(mech.nv),
        "F": rng.uniform(size=mech.nv),
    }


def expected(mech: Mechanism, quantity: str, x: dict[str, np.ndarray]) -> np.ndarray:
    if quantity == "inverse_dynamics":
        return mech.inverse_dynamics(x["q"], x["dq"], x["ddq"])
    if quantity == "forward_dynamics":
        return mech.forward_dynamics(x["q"], x["dq"], x["F"])
    if quantity == "mass_matrix":
        return mech.mass_matrix(x["q"])
    if quantity == "gravity":
        return mech.gravity_forces(x["q"])
    still = mech.bias_forces(x["q"], np.zeros(mech.nv))
    forces = mech.kernels.applied_forces(x["q"], x["dq"])[1] - mech.kernels.applied_forces(x["q"], np.zeros(mech.nv))[1]
    return mech.bias_forces(x["q"], x["dq"]) - still + forces


def arguments(form: Recursive, x: dict[str, np.ndarray]) -> list[np.ndarray]:
    return [np.array(i.values) if i.name == "p" else x[i.name] for i in form.inputs]


def checked(form: Recursive) -> Recursive:
    """No name is given twice, and none before it is known."""
    known = {s.name for i in form.inputs for s in i.symbols}
    for symbol, formula in form:
        left = [formula]
        while left:
            node = left.pop()
            left.extend(getattr(node, "arguments", ()))
            assert not hasattr(node, "name") or node.name in known
        assert symbol.name not in known
        known.add(symbol.name)
    return form


def run_python(form: Recursive, x: dict[str, np.ndarray]) -> np.ndarray:
    space: dict[str, Any] = {}
    exec(compile(form.python("computed"), "emitted", "exec"), space)
    return np.array(space["computed"](*(a.tolist() for a in arguments(form, x))))


def operations(source: str) -> int:
    """The arithmetic in emitted Python: operators, changes of sign, functions, choices."""
    tree = ast.parse(source)
    (function,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "computed"]
    total = 0
    for node in ast.walk(function):
        if isinstance(node, ast.UnaryOp):
            total += not isinstance(node.operand, ast.Constant)
        elif isinstance(node, ast.Call):
            named = node.func.id if isinstance(node.func, ast.Name) else ""
            total += named != "float" or isinstance(node.args[0], ast.Compare)
        else:
            total += isinstance(node, (ast.BinOp, ast.IfExp))
    return total


@pytest.mark.parametrize("name", MECHANISMS)
def test_emitted_python_computes_what_the_recursions_do(name: str) -> None:
    mech = mechanism(name)
    x = state(mech)
    for quantity in FORCES:
        wanted = expected(mech, quantity, x)
        scale = max(1.0, float(np.abs(wanted).max()))
        for regrouped in (False, True):
            found = run_python(checked(written(name, quantity, regrouped=regrouped)), x)
            assert found == pytest.approx(wanted, rel=0.0, abs=1e-12 * scale), (quantity, regrouped)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_code_costs_what_the_tape_costs(name: str) -> None:
    mech = mechanism(name)
    for quantity in FORCES:
        function = QUANTITIES[RECURSIONS[quantity]].program
        form = written(name, quantity, regrouped=False)
        counted = operations(form.python("computed"))
        tape = sum(mech.program(function, free=list(form.parameters), form="unrolled").count().values())
        assert counted == form.count.total
        assert counted <= 1.15 * tape


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_free_angles_of_a_table_stay_turns(convention: str) -> None:
    angles = [-1.3, 0.4, 2.0]
    rows = [
        {"a": 0.3, "alpha": f"alpha{k}", "d": 0.1, "theta": f"beta{k}", "mass": 1.0, "com": (0.1, 0.2, 0.3)}
        for k in (1, 2, 3)
    ]
    values = {
        f"{stem}{k}": scale * x for stem, scale in (("alpha", 1.0), ("beta", -0.7)) for k, x in enumerate(angles, 1)
    }
    mech = lw.from_dh(rows, convention=convention, parameters=values)
    form = recursive(mech, "inverse_dynamics")
    x = state(mech)
    assert run_python(form, x) == pytest.approx(expected(mech, "inverse_dynamics", x), abs=1e-12)
    numeric = recursive(mech, "inverse_dynamics", free=()).count.total
    assert form.count.total - form.count_once.total < 1.25 * numeric


@pytest.mark.parametrize("quantity", ["inverse_dynamics", "gravity", "bias"])
def test_regrouped_inertias_cost_less(quantity: str) -> None:
    counts = [recursive(puma(), quantity, regrouped=choice).count.total for choice in (True, False)]
    assert counts[0] < 0.9 * counts[1]


@needs_robots
def test_the_panda_of_the_wheel_comes_out_right() -> None:
    mech = lw.load(robots.find("panda.urdf")).lock({"panda_finger_joint1": 0.0})
    x = state(mech)
    for quantity in FORCES:
        form = recursive(mech, quantity)
        wanted = expected(mech, quantity, x)
        tolerance = 1e-12 * max(1.0, float(np.abs(wanted).max()))
        assert run_python(form, x) == pytest.approx(wanted, rel=0.0, abs=tolerance)
        plain = recursive(mech, quantity, regrouped=False)
        tape = mech.program(QUANTITIES[RECURSIONS[quantity]].program).count()
        assert operations(plain.python("computed")) <= 1.15 * sum(tape.values())


@needs_gcc
@pytest.mark.parametrize("name", ["puma all", "table with symbols", "losses", "even kinds", "odd kinds"])
def test_emitted_c_compiles_without_warnings_and_agrees(name: str, tmp_path: Path) -> None:
    mech = mechanism(name)
    x = state(mech)
    for quantity in FORCES:
        form = written(name, quantity)
        source, library = tmp_path / f"{quantity}.c", tmp_path / f"{quantity}.so"
        source.write_text(form.c("computed"), encoding="ascii")
        flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
        subprocess.run(["gcc", *flags, str(source), "-o", str(library), "-lm"], check=True)
        given = arguments(form, x)
        wanted = expected(mech, quantity, x)
        out = np.full(wanted.shape, np.nan)
        pointers = [a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (*given, out)]
        ctypes.CDLL(str(library)).computed(*pointers)
        tolerance = 1e-12 * max(1.0, float(np.abs(wanted).max()))
        assert out == pytest.approx(wanted, rel=0.0, abs=tolerance), quantity


def test_sympy_gets_replacements_as_from_cse() -> None:
    sympy = pytest.importorskip("sympy")
    mech = scara()
    x = state(mech)
    form = recursive(mech, "mass_matrix")
    replacements, (result,) = form.sympy()
    values = {
        sympy.Symbol(s.name): v
        for i, a in zip(form.inputs, arguments(form, x), strict=True)
        for s, v in zip(i.symbols, a, strict=True)
    }
    for symbol, expression in replacements:
        values[symbol] = float(expression.subs(values))
    assert np.array(result.subs(values), dtype=float) == pytest.approx(mech.mass_matrix(x["q"]), abs=1e-12)


@pytest.mark.parametrize("name", ["puma all", "even kinds", "odd kinds"])
def test_the_regressor_times_the_inertial_parameters_is_inverse_dynamics(name: str) -> None:
    mech = mechanism(name)
    x, d = state(mech), mech.description
    form = recursive(mech, "regressor")
    values: dict[str, float] = {}
    t = span(d)
    for k, (body, joint, back) in enumerate(zip(t.body.tolist(), t.joint.tolist(), t.reverse.tolist(), strict=True), 1):
        r, p = (d.ri[joint], d.pi[joint]) if back else (d.rj[joint], d.pj[joint])  # the link's axes on the body
        m, c = d.mass[body], r.T @ (d.com[body] - p)
        j = r.T @ full_inertia(d.inertia[body]) @ r + m * ((c @ c) * np.eye(3) - np.outer(c, c))
        values |= {f"m{k}": m, f"mx{k}": m * c[0], f"my{k}": m * c[1], f"mz{k}": m * c[2], f"J{k}": d.armature[joint]}
        values |= {f"J{a}{b}{k}": j["xyz".index(a), "xyz".index(b)] for a, b in ("xx", "yy", "zz", "xy", "xz", "yz")}
    wanted = expected(mech, "inverse_dynamics", x)
    found = run_python(form, x) @ [values[column] for column in form.columns]
    assert found == pytest.approx(wanted, rel=0.0, abs=1e-12 * max(1.0, float(np.abs(wanted).max())))


def test_cosines_and_sines_are_named_after_their_joint() -> None:
    names = {symbol.name for symbol, _ in recursive(puma(), "inverse_dynamics")}
    assert {"c2", "s2", "c6", "s6", "F1", "F6"} <= names


def test_what_parameters_alone_give_stands_first() -> None:
    form = recursive(Mechanism(literal(puma().description, "inertial")), "inverse_dynamics")
    assert form.count_once.multiplications > 30
    parameters = set(form.parameters)
    known = set(parameters)
    for step in form.steps.once:
        left = [step.formula]
        while left:
            node = left.pop()
            left.extend(getattr(node, "arguments", ()))
            if hasattr(node, "name"):
                assert node.name in known
        known.add(step.symbol.name)


def test_the_header_says_the_cost() -> None:
    form = recursive(puma(), "inverse_dynamics")
    total = f"{form.count.total:,} operations"
    assert total in form.python().split('"""')[1]
    assert total in form.c().split("*/")[0]
    assert total in form.markdown()


def test_coordinates_may_have_another_stem() -> None:
    form = recursive(scara(), "forward_dynamics", coordinates="theta")
    assert form.inputs[0].symbols[1].name == "theta2"
    assert form.inputs[1].symbols[1].of == "theta2"
    assert form.steps.results[0].name == "ddtheta1"  # type: ignore[union-attr]


def test_latex_dots_rates_and_escapes_words() -> None:
    rows = [{"a": "long_%name2", "alpha": 0.0, "d": 0.0, "theta": 0.0, "mass": 1.0, "com": ("xg", 0.0, 0.0)}] * 2
    with pytest.raises(ModelError):
        lw.from_dh(rows, convention="standard")
    rows = [{**row, "a": "long_name2"} for row in rows]
    text = recursive(lw.from_dh(rows, convention="standard"), "inverse_dynamics").latex()
    assert r"\ddot{q}_{1}" in text
    assert r"\mathit{long\_name}_{2}" in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "mass_matrix"])
def test_a_latex_document_compiles(quantity: str, tmp_path: Path) -> None:
    form = recursive(Mechanism(literal(puma().description, "all")), quantity)
    (tmp_path / "form.tex").write_text(form.latex(document=True), encoding="ascii")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "form.tex"], cwd=tmp_path, capture_output=True
    )
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]


def test_a_loop_is_refused_with_what_to_do() -> None:
    with lw.Builder("loop") as b:
        one = b.body("one", 1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
        b.joint("revolute", b.ground, one, "first")
        b.joint("prismatic", b.ground, one, "second")
    with pytest.raises(ModelError, match="closes a loop"):
        recursive(b.build(), "inverse_dynamics")


def test_names_of_strangers_cannot_leave_a_comment_and_time_is_an_argument(tmp_path: Path) -> None:
    with lw.Builder('odd """ */ \n \\ name') as b:
        arm = b.body("arm", 1.0, (0.1, 0.0, 0.2), (0.1, 0.1, 0.1))
        hinge = b.joint("revolute", b.ground, arm, "hinge")
        b.joint_force(hinge, lambda q, v, t: np.sin(3 * t) * v - 2 * q)
    mech = b.build()
    form = recursive(mech, "inverse_dynamics")
    x = {**state(mech), "t": np.array(0.7)}
    wanted = mech.inverse_dynamics(x["q"], x["dq"], x["ddq"], t=0.7)
    assert run_python(form, x) == pytest.approx(wanted, abs=1e-13)
    assert form.c().count("*/") == 1
    if shutil.which("gcc") is not None:
        source = tmp_path / "odd.c"
        source.write_text(form.c(), encoding="ascii")
        subprocess.run(["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(source)], check=True)


def test_an_unknown_quantity_is_told_with_those_that_there_are() -> None:
    with pytest.raises(NameNotFound, match="mass_matrix"):
        recursive(puma(), "mass")


def test_a_parameter_named_as_a_coordinate_is_refused() -> None:
    rows = [{"a": "q1", "alpha": 0.0, "d": 0.0, "theta": 0.0, "mass": 1.0}]
    mech = lw.from_dh(rows, convention="standard")
    with pytest.raises(ModelError, match="'q1' has the name of a coordinate"):
        recursive(mech, "gravity")
    assert recursive(mech, "gravity", coordinates="theta").parameters == {"q1": 1.0}
