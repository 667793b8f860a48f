import subprocess
import sys

import numpy as np
import pytest
import sample_programs as samples

import linkwright.tape.block as F
from linkwright.errors import KernelError, ShapeError
from linkwright.kernels.interpret import conversions
from linkwright.kernels.interpret.conversions import to_casadi, to_jax, to_sympy
from linkwright.kernels.interpret.interpreter import run
from linkwright.tape.build import ProgramBuilder, record, trace
from linkwright.tape.program import ITEM, Each, Solve, Zero

SMALL = [name for name in samples.ALL if name not in ("long_block", "bare")]

#: Long reductions made short: SymPy takes minutes over them.
SHORT = {"levels": lambda: samples.levels(5), "moved_rows": lambda: samples.moved_rows(6)}


def reference(program, inputs):
    """One state's outputs, of the buffers' shapes."""
    results = run(program, [x[:1] for x in inputs], 1)
    return [y[0].reshape(b.shape) for y, b in zip(results, program.outputs, strict=True)]


def shaped(program, inputs):
    return [x[0].reshape(b.shape) for x, b in zip(inputs, program.inputs, strict=True)]


def chain(n=30):
    """A scan and a sum back along a chain too long to be unrolled by JAX."""
    b = ProgramBuilder("chain")
    q, y, total = b.input("q", (n,)), b.output("y", (n + 1,)), b.output("total", (n + 1,))
    kinds = b.column(np.arange(n) % 2)
    above = b.column(np.arange(n))
    b.add(Zero(y.operand))
    b.add(Zero(total.operand))
    inputs = [q.part(0, ()).at((1, ITEM)), y.part(0, ()).at((1, above))]
    blocks = [trace(f, [(), ()])[0] for f in (lambda x, p: p + np.sin(x), lambda x, p: 0.5 * p * x)]
    b.add(Each(n, tuple(b.case(k, inputs, [y.part(1, ()).at((1, ITEM))]) for k in blocks), "outward", kinds))
    block, _, _ = trace(lambda x, below: x * x + 0.9 * below, [(), ()])
    b.add(
        Each(
            n,
            (
                b.case(
                    block,
                    [y.part(1, ()).at((1, ITEM)), total.part(1, ()).at((1, ITEM))],
                    [total.part(0, ()).at((1, ITEM), add=True)],
                ),
            ),
            "inward",
        )
    )
    return b.build()


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


# -- JAX ---------------------------------------------------------------------------------------------
@pytest.fixture
def jax():
    module = pytest.importorskip("jax", reason="JAX is not installed")
    with module.enable_x64(True) if hasattr(module, "enable_x64") else module.experimental.enable_x64():
        yield module


@pytest.mark.parametrize("name", samples.ALL)
@pytest.mark.parametrize(("short", "long"), [(0, 1000), (100, 0)], ids=["rolled", "by operation"])
def test_jax_gives_what_numpy_gives(name, short, long, jax, monkeypatch):
    monkeypatch.setattr(conversions.JaxInterpreter, "short", short)
    for name_of_limit in ("long", "long_on_gpu"):
        monkeypatch.setattr(conversions.JaxInterpreter, name_of_limit, long)
    program = samples.ALL[name]()
    inputs = samples.arguments(program, 3)
    arrays = [x.reshape(3, *b.shape) for x, b in zip(inputs, program.inputs, strict=True)]
    results = jax.jit(jax.vmap(to_jax(program)))(*arrays)
    results = results if isinstance(results, tuple) else (results,)
    for k in range(3):
        for result, wanted in zip(results, reference(program, [x[k:] for x in inputs]), strict=True):
            np.testing.assert_allclose(result[k], wanted, rtol=1e-9, atol=1e-11)


def test_jax_keeps_long_scans_as_loops_and_reverses_them(jax):
    program = chain()
    function = to_jax(program)
    (q,) = shaped(program, samples.arguments(program, 1))
    text = str(jax.make_jaxpr(function)(q))
    assert len(text.splitlines()) < 200

    def total(q):
        return function(q)[1][0]

    slope = jax.jit(jax.grad(total))(q)
    for k in (0, 7, 29):
        step = np.zeros_like(q)
        step[k] = 1e-6
        np.testing.assert_allclose(slope[k], (total(q + step) - total(q - step)) / 2e-6, rtol=1e-5, atol=1e-8)


def test_jax_reverses_a_loop_that_ends_early(jax):
    function = to_jax(samples.newton())
    slope = jax.jacrev(lambda a: function(a)[0])(np.array([2.0, 0.5]))
    np.testing.assert_allclose(slope, np.diag(0.5 / np.sqrt([2.0, 0.5])), atol=1e-9)


def test_jax_computes_in_the_precision_of_its_arguments(jax):
    function = to_jax(samples.smooth())
    assert function(np.ones(3, np.float32), np.float32(1.0)).dtype == np.float32
    assert function(np.ones(3), 1.0).dtype == np.float64


def test_jax_names_an_argument_of_the_wrong_shape(jax):
    with pytest.raises(ShapeError, match=r"x of program f has shape \(3,\), not \(4,\)"):
        to_jax(samples.smooth())(np.ones(4), 1.0)


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
