"""Programs inside JAX: machine code that XLA calls, its derivatives, and JAX's own operations."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import sample_programs as samples

import linkwright as lw
from linkwright.errors import LinkwrightWarning, ShapeError
from linkwright.kernels.back_ends import compiled as program_kernel
from linkwright.kernels.interpret.interpreter import run
from linkwright.kernels.jax import handler, jax_function
from linkwright.kernels.jax.handler_text import layout_doubt, stated_version
from linkwright.kernels.jax.jax_function import to_jax
from linkwright.kernels.jax.jax_interpreter import JaxInterpreter
from linkwright.kernels.variant import native
from linkwright.tape.build import ProgramBuilder, record, trace
from linkwright.tape.program import ITEM, Each, Zero


def reference(program, inputs):
    """The outputs of each state, of the buffers' shapes."""
    batch = len(inputs[0])
    return [y.reshape(batch, *b.shape) for y, b in zip(run(program, inputs, batch), program.outputs, strict=True)]


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


@pytest.fixture
def jax():
    module = pytest.importorskip("jax", reason="JAX is not installed")
    with module.enable_x64(True) if hasattr(module, "enable_x64") else module.experimental.enable_x64():
        yield module


@pytest.mark.parametrize("name", samples.ALL)
@pytest.mark.parametrize(("short", "long"), [(0, 1000), (100, 0)], ids=["rolled", "by operation"])
def test_operations_of_jax_give_what_numpy_gives(name, short, long, jax, monkeypatch):
    monkeypatch.setattr(JaxInterpreter, "short", short)
    for name_of_limit in ("long", "long_on_gpu"):
        monkeypatch.setattr(JaxInterpreter, name_of_limit, long)
    program = samples.ALL[name]()
    inputs = samples.arguments(program, 3)
    arrays = [x.reshape(3, *b.shape) for x, b in zip(inputs, program.inputs, strict=True)]
    results = jax.jit(jax.vmap(to_jax(program, machine_code=False)))(*arrays)
    results = results if isinstance(results, tuple) else (results,)
    for k in range(3):
        for result, wanted in zip(results, reference(program, inputs), strict=True):
            np.testing.assert_allclose(result[k], wanted[k], rtol=1e-9, atol=1e-11)


def test_jax_keeps_long_scans_as_loops_and_reverses_them(jax):
    program = chain()
    function = to_jax(program, machine_code=False)
    q = samples.arguments(program, 1)[0][0]
    text = str(jax.make_jaxpr(function)(q))
    assert len(text.splitlines()) < 200

    def total(q):
        return function(q)[1][0]

    slope = jax.jit(jax.grad(total))(q)
    for k in (0, 7, 29):
        step = np.zeros_like(q)
        step[k] = 1e-6
        np.testing.assert_allclose(slope[k], (total(q + step) - total(q - step)) / 2e-6, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("machine_code", [True, False])
def test_jax_reverses_a_loop_that_ends_early(jax, machine_code):
    function = to_jax(samples.newton(), machine_code=machine_code)
    slope = jax.jacrev(lambda a: function(a)[0])(np.array([2.0, 0.5]))
    np.testing.assert_allclose(slope, np.diag(0.5 / np.sqrt([2.0, 0.5])), atol=1e-9)


def test_jax_computes_in_the_precision_of_its_arguments(jax):
    function = to_jax(samples.smooth())
    assert function(np.ones(3, np.float32), np.float32(1.0)).dtype == np.float32
    assert function(np.ones(3), 1.0).dtype == np.float64


def test_jax_names_an_argument_of_the_wrong_shape(jax):
    with pytest.raises(ShapeError, match=r"x of program f has shape \(3,\), not \(4,\)"):
        to_jax(samples.smooth())(np.ones(4), 1.0)


# -- machine code ------------------------------------------------------------------------------------
@pytest.fixture
def called(jax):
    """JAX, where XLA calls machine code."""
    if not native():
        pytest.skip("programs do not run as machine code here")
    if reason := handler.doubt(jax):
        pytest.skip(f"XLA cannot call machine code here: {reason}")
    return jax


def outputs_of(function, arrays):
    outputs = function(*arrays)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def close(a, b, tolerance=1e-12):
    """Equal to a part of the largest number."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * (1.0 + np.abs(b).max(initial=0.0)))


@pytest.mark.parametrize("name", samples.ALL)
@pytest.mark.parametrize("batch", [1, 3, 21])
def test_machine_code_inside_jax_gives_what_numpy_gives(name, batch, called):
    program = samples.ALL[name]()
    inputs = samples.arguments(program, batch)
    arrays = [x.reshape(batch, *b.shape) for x, b in zip(inputs, program.inputs, strict=True)]
    wanted = reference(program, inputs)
    function = to_jax(program)
    assert "linkwright[" in str(called.make_jaxpr(function)(*(a[0] for a in arrays)))
    for result, right in zip(outputs_of(called.jit(called.vmap(function)), arrays), wanted, strict=True):
        np.testing.assert_allclose(result, right, rtol=1e-9, atol=1e-11)
    for result, right in zip(outputs_of(function, [a[0] for a in arrays]), wanted, strict=True):
        np.testing.assert_allclose(result, right[0], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("states", [1, 7, 8, 9, 63, 64, 65, 131])
def test_single_precision_is_computed_in_double_and_rounded(called, states):
    program = lw.chain(2).program("forward_dynamics")
    arrays = np.random.default_rng(states).standard_normal((3, states, 2)).astype(np.float32)
    result = called.jit(called.vmap(to_jax(program)))(*arrays)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, np.asarray(program(*arrays.astype(float)), np.float32))


def test_half_precision_runs_in_operations_of_jax(called):
    result = to_jax(samples.smooth())(np.ones(3, np.float16), np.float16(1.0))
    assert result.dtype == np.float16


def test_arrays_without_the_mapped_axes_are_the_same_for_all_states(called):
    program = lw.chain(2).program("forward_dynamics")
    function, rng = to_jax(program), np.random.default_rng(1)
    q, v, tau = rng.standard_normal((4, 2)), rng.standard_normal((9, 2)), rng.standard_normal((9, 4, 2))
    inner = called.vmap(function, in_axes=(None, 0, 0))
    close(called.jit(called.vmap(inner, in_axes=(0, None, 1)))(q, v, tau), program(q[:, None], v, tau.swapaxes(0, 1)))
    close(called.vmap(function, in_axes=(None, 1, None))(q[0], v.T, tau[0, 0]), program(q[0], v, tau[0, 0]))
    assert called.vmap(function)(*(np.zeros((0, 2)) for _ in range(3))).shape == (0, 2)


def test_a_large_batch_is_shared_out_to_threads(called, monkeypatch):
    monkeypatch.setattr(handler, "threads", lambda: 3)
    program = record(lambda x: np.sin(x) * np.exp(-x), 40, name="waves")
    x = np.random.default_rng(0).standard_normal((60_001, 40))
    name = handler.target(called, program_kernel(program), program.digest, len(x))
    assert handler.registered(name)["threads"] == 3
    close(called.jit(called.vmap(to_jax(program)))(x), np.sin(x) * np.exp(-x))
    single = x.astype(np.float32)
    close(called.jit(called.vmap(to_jax(program)))(single), np.sin(single) * np.exp(-single), 1e-6)


TRANSFORMS = {
    "jacfwd": lambda jax, f: jax.jacfwd(f, (0, 1, 2)),
    "jacrev": lambda jax, f: jax.jacrev(f, (0, 1, 2)),
    "hessian": lambda jax, f: jax.hessian(lambda *a: (f(*a) ** 2).sum(), (0, 2)),
    "twice in reverse": lambda jax, f: jax.jacrev(jax.jacrev(f, (0, 1)), (0, 2)),
    "twice forward": lambda jax, f: jax.jacfwd(jax.jacfwd(f)),
    "three times": lambda jax, f: jax.jacfwd(jax.jacrev(jax.jacfwd(f))),
    "transposed twice": lambda jax, f: (
        lambda q, v, tau: jax.linear_transpose(
            lambda c: jax.linear_transpose(jax.linearize(lambda x: f(q, v, x), tau)[1], tau)(c)[0], tau
        )(v)
    ),
    "through a scan": lambda jax, f: jax.grad(lambda q, v, tau: motion(jax, f, q, v, tau).sum(), (0, 1, 2)),
    "through checkpoint": lambda jax, f: jax.grad(jax.checkpoint(lambda *a: f(*a).sum()), 1),
}


def motion(jax, f, q, v, tau):
    def step(state, _):
        q, v = state
        return (q + 0.01 * v, v + 0.01 * f(q, v, tau)), None

    return jax.lax.scan(step, (q, v), None, length=5)[0][0]


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("jitted", [True, False], ids=["jitted", "at once"])
def test_derivatives_are_those_of_operations_of_jax(called, transform, jitted):
    program = lw.chain(2).program("forward_dynamics")
    arguments = np.random.default_rng(3).standard_normal((3, 2))
    codes, operations = (
        TRANSFORMS[transform](called, to_jax(program, machine_code=machine_code)) for machine_code in (True, False)
    )
    answers = (called.jit(codes) if jitted else codes)(*arguments), called.jit(operations)(*arguments)
    for a, b in zip(*map(called.tree.leaves, answers), strict=True):
        close(a, b)


MAPPED = {
    "derivatives of each state": lambda jax, f: jax.vmap(jax.jacfwd(f, (0, 1)), in_axes=(0, None, 0)),
    "adjoints of each state": lambda jax, f: jax.vmap(jax.jacrev(f, (0, 1)), in_axes=(0, None, 0)),
    "the gradient of a sum": lambda jax, f: jax.grad(
        lambda *a: (jax.vmap(f, in_axes=(0, None, 0))(*a) ** 2).sum(), (0, 1, 2)
    ),
}


@pytest.mark.parametrize("transform", MAPPED)
def test_derivatives_of_batches_are_those_of_operations_of_jax(called, transform):
    program = lw.chain(2).program("forward_dynamics")
    rng = np.random.default_rng(4)
    arguments = rng.standard_normal((11, 2)), rng.standard_normal(2), rng.standard_normal((11, 2))
    answers = [
        called.jit(MAPPED[transform](called, to_jax(program, machine_code=machine_code)))(*arguments)
        for machine_code in (True, False)
    ]
    for a, b in zip(*map(called.tree.leaves, answers), strict=True):
        close(a, b)


@pytest.mark.parametrize("name", ["smooth", "tree_scan", "walk", "elimination", "cholesky", "ltl"])
def test_programs_of_all_statements_are_differentiated(called, name):
    program = samples.ALL[name]()
    arguments = [x[0].reshape(b.shape) for x, b in zip(samples.arguments(program, 1), program.inputs, strict=True)]

    def total(machine_code):
        function = to_jax(program, machine_code=machine_code)
        return lambda *a: sum((y**2).sum() for y in outputs_of(function, a))

    numbers = tuple(range(len(arguments)))
    for derivative in (called.grad, called.jacfwd):
        ours, right = (called.jit(derivative(total(x), numbers))(*arguments) for x in (True, False))
        for a, b in zip(ours, right, strict=True):
            close(a, b, 1e-9)


def test_what_the_tape_cannot_reverse_jax_reverses_by_operations(called):
    program = samples.newton()
    assert jax_function.Callee(program).adjoint is None
    function, plain = to_jax(program), to_jax(program, machine_code=False)
    a = np.array([[2.0, 0.5], [3.0, 1.5], [0.7, 4.0]])
    gradients = [
        called.grad(lambda a, f=f: (called.vmap(lambda x: f(x)[0])(a) ** 2).sum())(a) for f in (function, plain)
    ]
    close(*gradients)


def test_programs_share_their_code_in_xla_by_content(called):
    first, second = (record(lambda x: 3.5 * x, 3, name="share") for _ in range(2))
    assert jax_function.Callee(first) == jax_function.Callee(second)
    names = {handler.target(called, program_kernel(p), p.digest, 1) for p in (first, second)}
    assert len(names) == 1


def test_code_lives_as_long_as_xla_may_call_it(called):
    import gc

    function = called.jit(to_jax(record(lambda x: 2.5 * x + 1.0, 3, name="short_life")))
    x = np.arange(3.0)
    close(function(x), 2.5 * x + 1.0)
    compiled = function.lower(x).compile()
    del function
    gc.collect()
    close(compiled(x), 2.5 * x + 1.0)


OTHER_PROCESS = """
import sys
import jax
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
import numpy as np
import linkwright as lw
program = lw.chain(3).program("forward_dynamics")
arrays = np.random.default_rng(5).standard_normal((3, 20, 3))
result = jax.jit(jax.vmap(program.to_jax()))(*arrays)
print(abs(np.asarray(result) - program(*arrays)).max())
"""


def test_what_xla_stores_on_disk_runs_in_another_process(called, tmp_path):
    for _ in range(2):
        words = [sys.executable, "-c", OTHER_PROCESS, str(tmp_path)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ)
        assert done.returncode == 0, done.stderr
        assert float(done.stdout.splitlines()[-1]) < 1e-12
    assert any(tmp_path.iterdir())


def test_a_program_is_lowered_for_other_devices_by_operations(called):
    program = lw.chain(2).program("forward_dynamics")
    arguments = [np.zeros(2)] * 3
    lowered = called.jit(to_jax(program)).trace(*arguments).lower(lowering_platforms=("cuda",)).as_text()
    assert "linkwright." not in lowered
    assert "linkwright." in called.jit(to_jax(program)).lower(*arguments).as_text()


# -- where XLA cannot call it ------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("old", "new"), [("Extension_Base", "InternalExtension"), ("ExecutionContext", "InvokeContext")]
)
def test_a_header_is_taken_by_its_older_and_by_its_newer_names(called, old, new):
    text = handler.header(called)
    assert layout_doubt(text.replace(f"XLA_FFI_{old}", f"XLA_FFI_{new}")) == ""
    assert layout_doubt(text.replace(f"XLA_FFI_{new}", f"XLA_FFI_{old}")) == ""


def test_a_header_that_declares_another_layout_is_refused(called):
    text = handler.header(called)
    assert layout_doubt(text) == ""
    assert stated_version(text)[0] == 0
    changed = text.replace("  void* data;\n  int64_t rank;", "  int64_t rank;\n  void* data;")
    assert changed != text
    assert layout_doubt(changed) == "XLA_FFI_Buffer"
    assert (
        layout_doubt(text.replace("XLA_FFI_DataType_F64 = 12", "XLA_FFI_DataType_F64 = 13")) == "XLA_FFI_DataType_F64"
    )
    assert layout_doubt(text.replace("XLA_FFI_API_MINOR ", "XLA_FFI_API_MINOR x"))
    assert layout_doubt("") == "XLA_FFI_Extension_Base"


@pytest.mark.parametrize("fault", ["doubt", "numbers", "error"])
def test_a_doubt_is_said_once_and_operations_run(called, monkeypatch, fault):
    def raised(_):
        raise RuntimeError("no such call")

    if fault == "doubt":
        monkeypatch.setattr(jax_function, "doubt", lambda _: "there is a doubt")
    else:
        monkeypatch.setattr(jax_function._Rules, "as_expected", (lambda _: False) if fault == "numbers" else raised)
    message = {"doubt": "there is a doubt", "numbers": "other numbers than NumPy", "error": "no such call"}[fault]
    jax_function._rules.cache_clear()
    try:
        with pytest.warns(LinkwrightWarning, match=message):
            function = to_jax(samples.smooth())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            to_jax(samples.smooth())
        assert "linkwright[" not in str(called.make_jaxpr(function)(np.ones(3), 1.0))
    finally:
        jax_function._rules.cache_clear()


def test_a_kernel_refuses_a_frame_of_another_number_of_arrays(called):
    program = record(lambda x: x + 1.0, 3, name="one_more")
    name = handler.target(called, program_kernel(program), program.digest, 1)
    x = np.zeros(3)
    call = called.ffi.ffi_call(name, called.ShapeDtypeStruct((3,), x.dtype))
    close(call(x), x + 1.0)
    with pytest.raises(Exception, match="layout of this call frame"):
        call(x, x).block_until_ready()
