import subprocess
import sys

import numpy as np
import pytest
import sample_programs as samples

import linkwright.tape.block as F
from linkwright.errors import KernelError
from linkwright.kernels.interpret import conversions
from linkwright.kernels.interpret.conversions import to_casadi, to_sympy
from linkwright.kernels.interpret.interpreter import run
from linkwright.kernels.jax.jax_function import to_jax
from linkwright.tape.build import ProgramBuilder, record
from linkwright.tape.program import Solve

SMALL = [name for name in samples.ALL if name not in ("long_block", "bare")]

#: Long reductions made short: SymPy takes minutes over them.
SHORT = {"levels": lambda: samples.levels(5), "moved_rows": lambda: samples.moved_rows(6)}


def reference(program, inputs):
    """One state's outputs, of the buffers' shapes."""
    results = run(program, [x[:1] for x in inputs], 1)
    return [y[0].reshape(b.shape) for y, b in zip(results, program.outputs, strict=True)]


def shaped(program, inputs):
    return [x[0].reshape(b.shape) for x, b in zip(inputs, program.inputs, strict=True)]


# -- SymPy -------------------------------------------------------------------------------------------
@pytest.fixture
def sympy():
    return pytest.importorskip("sympy", reason="SymPy is not installed")


@pytest.mark.parametrize("name", [name for name in SMALL if name not in ("newton", "least-norm", "cholesky", "lu")])
def test_sympy_expressions_evaluate_to_what_numpy_gives(name, sympy):
    program = SHORT[name]() if name in SHORT else samples.ALL[name]()
    inputs = samples.arguments(program, 1, seed=4)
    symbols, outputs = to_sympy(program)
    names = [s for array in symbols for s in np.ravel(np.array(array, dtype=object))]
    values = [x for array in shaped(program, inputs) for x in np.ravel(array)]
    for expression, wanted in zip(outputs, reference(program, inputs), strict=True):
        entries = list(np.ravel(np.array(expression, dtype=object)))
        got = sympy.lambdify(names, entries, "math", cse=True, dummify=True)(*values)
        np.testing.assert_allclose(np.reshape(got, wanted.shape), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", ["cholesky", "lu", "ltl", "least-norm"])
def test_sympy_solves_in_closed_form(method, sympy):
    b = ProgramBuilder("two")
    rows = 1 if method == "least-norm" else 2
    a, y, x = b.input("a", (rows, 2)), b.input("b", (rows, 1)), b.output("x", (2, 1))
    parent = b.column([-1, 0]) if method == "ltl" else None
    b.add(Solve(method, a.operand, y.operand, x.operand, rows, 2, 1, parent))
    program = b.build()
    (a, y), (x,) = to_sympy(program)
    a = a.tomatrix()
    if method in ("cholesky", "ltl"):
        a = sympy.Matrix([[a[0, 0], a[1, 0]], [a[1, 0], a[1, 1]]])
    assert sympy.simplify(a * x.tomatrix() - y.tomatrix()) == sympy.zeros(rows, 1)


def test_sympy_keeps_whole_numbers_exact_and_names_symbols_after_inputs(sympy):
    inputs, outputs = to_sympy(record(lambda q, t: np.array([2.0 * q[0] - t, q[1] / 4.0]), 2, ()))
    q0, q1, t = sympy.symbols("q0 q1 t", real=True)
    assert list(inputs[0]) == [q0, q1]
    assert inputs[1] == t
    assert outputs[0][0] == 2 * q0 - t
    assert str(outputs[0][1]) == "0.25*q1"


def test_sympy_symbols_of_two_inputs_never_meet(sympy):
    def f(q, q1, m):
        return q[1] + q1 + m[1, 1]

    inputs, _ = to_sympy(record(f, 2, (), (2, 2)))
    names = [str(s) for array in inputs for s in np.ravel(np.array(array, dtype=object))]
    assert names == ["q_0", "q_1", "q1", "m0_0", "m0_1", "m1_0", "m1_1"]


def test_sympy_conditions_are_conditions(sympy):
    _, (y,) = to_sympy(record(lambda a, b: F.where(a < b, a, b * b), (), ()))
    a, b = sympy.symbols("a b", real=True)
    assert y == sympy.Piecewise((a, a < b), (b**2, True))


def test_sympy_refuses_a_loop_that_ends_by_its_numbers_but_unrolls_another(sympy):
    with pytest.raises(KernelError, match="ends early"):
        to_sympy(samples.newton())
    (a,), (root, taken) = to_sympy(samples.newton(count=2, early=False))
    assert taken == 2
    assert float(root[0].subs({a[0]: 1.0})) == 1.0


# -- CasADi ------------------------------------------------------------------------------------------
@pytest.fixture
def casadi():
    return pytest.importorskip("casadi", reason="CasADi is not installed")


@pytest.mark.parametrize("name", [*SMALL, "long_block"])
def test_casadi_gives_what_numpy_gives(name, casadi):
    program = samples.ALL[name]()
    function = to_casadi(program)
    for seed in range(3):
        inputs = samples.arguments(program, 1, seed)
        results = function.call([casadi.DM(x) for x in shaped(program, inputs)])
        for result, wanted in zip(results, reference(program, inputs), strict=True):
            matrix = wanted.reshape(wanted.shape[0] if wanted.ndim else 1, -1)
            np.testing.assert_allclose(np.array(result), matrix, rtol=1e-9, atol=1e-11)


def test_casadi_keeps_names_and_shapes(casadi):
    def f(q, m):
        return np.stack([m @ q, q, q])[:, :, None] * m[0]

    program = record(f, 2, (2, 2), name="my function")
    function = to_casadi(program)
    assert function.name_in() == ["q", "m"]
    assert function.name_out() == ["y"]
    assert function.size_in(1) == (2, 2)
    assert function.size_out(0) == (3, 4)
    q, m = np.array([0.3, -2.0]), np.arange(4.0).reshape(2, 2)
    np.testing.assert_allclose(np.array(function(q, m)), f(q, m).reshape(3, 4))


def test_casadi_differentiates_through_a_solver(casadi):
    program = samples.solver("cholesky")
    function = to_casadi(program)
    a, b = (casadi.DM(x) for x in shaped(program, samples.arguments(program, 1)))
    jacobian = function.jacobian()(a, b, casadi.DM(5, 2))[0]
    step = 1e-6
    moved = casadi.DM(a)
    moved[3, 1] += step
    slope = (function(moved, b) - function(a, b)) / step
    np.testing.assert_allclose(
        np.array(jacobian)[:, 5 * 1 + 3], np.array(casadi.vec(slope))[:, 0], rtol=1e-4, atol=1e-7
    )


def test_too_many_operations_are_refused_before_they_are_unrolled(casadi, monkeypatch):
    monkeypatch.setitem(conversions._UNROLLED, "CasADi", 1000)
    with pytest.raises(KernelError, match="to_jax"):
        to_casadi(samples.long_block())


@pytest.mark.parametrize(("convert", "name"), [(to_sympy, "sympy"), (to_casadi, "casadi"), (to_jax, "jax")])
def test_a_missing_library_is_named_with_the_way_to_get_it(convert, name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(KernelError, match=f"pip install {name}"):
        convert(samples.smooth())


def test_importing_interop_imports_none_of_the_libraries():
    code = "import sys, linkwright.kernels.interpret.conversions\n"
    code += "print([m for m in ('sympy', 'casadi', 'jax') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
