"""CasADi, JAX and SymPy modules: they need their library alone, and give Python's numbers and derivatives."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from export_tools import MODELS, alone, worst_error

import linkwright as lw


def imported(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def branching() -> lw.Mechanism:
    """Two arms on one base: the derivatives of one by the other's coordinates are zero."""
    with lw.Builder("branching") as b:
        b.gravity((0, -9.81, 0))
        for side, x in (("left", -0.3), ("right", 0.3)):
            upper = b.body(f"{side}_upper", 1.0, (0.1, 0, 0), (0.01, 0.02, 0.02))
            lower = b.body(f"{side}_lower", 0.5, (0.1, 0, 0), (0.01, 0.02, 0.02))
            b.joint("revolute", b.triad(b.ground, (x, 0, 0)), b.triad(upper), f"{side}_shoulder")
            b.joint("revolute", b.triad(upper, (0.2, 0, 0)), b.triad(lower), f"{side}_elbow")
    return b.build()


@pytest.mark.parametrize("to", ["casadi", "sympy", pytest.param("jax", marks=pytest.mark.slow)])
@pytest.mark.parametrize("model", ["arm.urdf", "governor.mks"])
def test_a_module_passes_its_own_test_without_linkwright(to: str, model: str, tmp_path: Path) -> None:
    pytest.importorskip(to, reason=f"{to} is not installed")
    lw.export(MODELS / model, tmp_path / "out", to=to)
    done = alone(tmp_path / "out" / "forward_dynamics.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert worst_error(done.stdout) < 1e-11


def test_a_module_whose_numbers_are_wrong_says_so(tmp_path: Path) -> None:
    lw.export(MODELS / "arm.urdf", tmp_path / "x.py", "gravity_forces", "casadi")
    file = tmp_path / "x.py"
    file.write_text(file.read_text().replace("ca.sin(", "ca.cos(", 1))
    assert alone(file).returncode == 1


def test_the_casadi_function_has_our_jacobian_and_its_sparsity(tmp_path: Path) -> None:
    ca = pytest.importorskip("casadi")
    mech = branching()
    lw.export(mech, tmp_path / "arms.py", to="casadi", name="arms")
    f = imported(tmp_path / "arms.py").build()
    q, v, tau = (ca.MX.sym(name, 4) for name in ("q", "v", "tau"))
    jacobian = ca.jacobian(f(q, v, tau), q)
    assert jacobian.nnz() == 8  # two blocks of 2 × 2
    state = np.random.default_rng(0).uniform(-1, 1, (3, 4))
    at = ca.Function("at", [q, v, tau], [jacobian])(*state)
    np.testing.assert_allclose(at.full(), mech.forward_dynamics_derivatives(*state)[0], rtol=1e-10, atol=1e-12)


def test_casadi_takes_second_derivatives_of_the_jacobian(tmp_path: Path) -> None:
    ca = pytest.importorskip("casadi")
    mech = branching()
    lw.export(mech, tmp_path / "arms.py", to="casadi", name="arms")
    f = imported(tmp_path / "arms.py").build()
    q = ca.MX.sym("q", 4)
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    hessian = ca.Function("h", [q], [ca.hessian(ca.dot(weights, f(q, np.ones(4), np.zeros(4))), q)[0]])
    at, step = np.array([0.3, -0.5, 0.9, 0.2]), 1e-5

    def slope(x: np.ndarray) -> np.ndarray:
        return weights @ mech.forward_dynamics_derivatives(x, np.ones(4), np.zeros(4))[0]

    rows = [(slope(at + step * e) - slope(at - step * e)) / (2 * step) for e in np.eye(4)]
    np.testing.assert_allclose(hessian(at).full(), rows, rtol=1e-6, atol=1e-6)


def test_matrices_keep_their_order_in_casadi(tmp_path: Path) -> None:
    ca = pytest.importorskip("casadi")
    mech = lw.load(MODELS / "arm.urdf")
    lw.export(mech, tmp_path / "x.py", "jacobian", "casadi", frame="tool")
    f = imported(tmp_path / "x.py").build()
    q = np.linspace(-1, 1, 6)
    np.testing.assert_allclose(f(q).full(), mech.jacobian(q, "tool"), rtol=1e-12, atol=1e-12)
    x = ca.MX.sym("q", 6)
    slope = ca.Function("s", [x], [ca.jtimes(f(x), x, ca.DM(np.ones(6)))])(q).full()
    step = 1e-6 * np.ones(6)
    wanted = (mech.jacobian(q + step, "tool") - mech.jacobian(q - step, "tool")) / 2e-6
    np.testing.assert_allclose(slope, wanted, rtol=1e-6, atol=1e-7)


JAX = """
import json, sys
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
from arms import arms
state = [jnp.asarray(x) for x in json.loads(sys.argv[1])]
jacobian = jax.jit(jax.jacobian(arms))(*state)
reverse = jax.grad(lambda q: arms(q, *state[1:]).sum())(state[0])
many = jax.jit(jax.vmap(arms))(*(jnp.stack([x, 2 * x]) for x in state))
print(json.dumps([jacobian.tolist(), reverse.tolist(), many.tolist()]))
"""


@pytest.mark.slow
def test_the_jax_function_is_jitted_mapped_and_derived(tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="jax is not installed")
    mech = branching()
    lw.export(mech, tmp_path / "arms.py", to="jax", name="arms")
    state = np.random.default_rng(0).uniform(-1, 1, (3, 4))
    words = [sys.executable, "-c", JAX, json.dumps(state.tolist())]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    jacobian, reverse, many = map(np.array, json.loads(done.stdout))
    wanted = mech.forward_dynamics_derivatives(*state)[0]
    np.testing.assert_allclose(jacobian, wanted, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(reverse, wanted.sum(axis=0), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(many[1], mech.forward_dynamics(*(2 * state)), rtol=1e-11)


def test_sympy_writes_the_pendulum_as_the_textbook_does(tmp_path: Path) -> None:
    sp = pytest.importorskip("sympy")
    mech = lw.from_dh([{"a": 0, "alpha": 0, "d": 0, "theta": 0, "mass": 2.0, "com": (0.5, 0, 0)}], gravity=(0, -10, 0))
    lw.export(mech, tmp_path / "swing.py", "gravity_forces", "sympy", name="swing")
    module = imported(tmp_path / "swing.py")
    (q,) = module.inputs["q"]
    assert sp.simplify(module.expression("g") - 10 * sp.cos(q)) == 0


def test_what_is_too_long_for_sympy_is_refused_with_another_way(tmp_path: Path) -> None:
    with pytest.raises(lw.errors.LinkwrightError, match=r"takes \d+ operations.*at most 20000.*casadi"):
        lw.export(lw.chain(300), tmp_path / "x.py", "inverse_dynamics", "sympy")
    assert not list(tmp_path.iterdir())


def test_loops_that_end_by_their_numbers_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(lw.errors.LinkwrightError, match=r"step of governor.*c or cuda"):
        lw.export(MODELS / "governor.mks", tmp_path / "x.py", "step", "casadi", dt=1e-3)
    assert not list(tmp_path.iterdir())


def test_what_is_promised_is_what_the_module_tests(tmp_path: Path) -> None:
    made = lw.export(MODELS / "arm.urdf", tmp_path / "out", to="sympy")
    assert f"TOLERANCE = {made.tolerance!r}" in made.files["forward_dynamics.py"]
