"""The fixed parts of exported Python modules: heads, interpreters, checks, and how a README shows their use."""

from __future__ import annotations

_HEAD = '''"""{title}: {arrays}, {what}.

Written by Linkwright; it needs {package} alone. `python THIS_FILE` runs the test vector at its end.

{notes}
"""

{imports}
'''


def _head(what: str, package: str, imports: str) -> str:
    return _HEAD.replace("{what}", what).replace("{package}", package).replace("{imports}", imports)


HEAD = {
    "casadi": _head("as a CasADi function", "casadi", "import casadi as ca\n"),
    "jax": _head(
        "as a function of JAX arrays",
        "jax",
        "import operator\n\nimport jax\nimport jax.numpy as jnp\nfrom jax import lax\n",
    ),
    "sympy": _head("as SymPy expressions", "sympy", "import sympy as sp\n"),
}

# -- CasADi ------------------------------------------------------------------------------------------------
_CASADI_INPUTS = '''
def _matrix(shape):
    """A vector is a column; of more dimensions, all but the first are put one after another."""
    rows, columns = (shape or (1,))[0], 1
    for n in shape[1:]:
        columns *= n
    return rows, columns


def _inputs():
    symbols = [ca.SX.sym(name, *_matrix(shape)) for name, shape in INPUTS.items()]
    return symbols, [x for s in symbols for x in s.T.nonzeros()]


def _outputs(values):
    matrices = []
    for shape in OUTPUTS.values():
        rows, columns = _matrix(shape)
        part, values = values[: rows * columns], values[rows * columns :]
        matrices.append(ca.reshape(ca.vertcat(ca.SX(0, 1), *(ca.SX(x) for x in part)), columns, rows).T)
    return matrices
'''

CASADI_PLAIN = (
    _CASADI_INPUTS
    + '''

def build(name=NAME, options=None):
    """The `casadi.Function`, inputs and outputs by name; CasADi derives it itself."""
    symbols, scalars = _inputs()
    return ca.Function(name, symbols, _outputs(_values(scalars)), list(INPUTS), list(OUTPUTS), options or {})
'''
)

CASADI = (
    _CASADI_INPUTS
    + '''

def jacobian(name="jac_" + NAME):
    """The derivatives of every output by every input: sparse, of exactly the entries that can be other than zero."""
    symbols, scalars = _inputs()
    values, matrices = _slopes(scalars), []
    for (output, wanted), (rows, columns) in JACOBIAN.items():
        m, n = (_matrix(shape) for shape in (OUTPUTS[output], INPUTS[wanted]))
        matrix = ca.SX(m[0] * m[1], n[0] * n[1])
        part, values = values[: len(rows)], values[len(rows) :]
        for row, column, x in zip(rows, columns, part):
            matrix[row, column] = x
        matrices.append(matrix)
    results = [ca.SX.sym("out_" + key, *_matrix(shape)) for key, shape in OUTPUTS.items()]
    words = [f"jac_{output}_{wanted}" for output, wanted in JACOBIAN]
    return ca.Function(name, [*symbols, *results], matrices, [*INPUTS, *("out_" + key for key in OUTPUTS)], words)


def build(name=NAME, options=None):
    """The `casadi.Function`, inputs and outputs by name, with `jacobian()` as its derivative.

    In MX expressions (`ca.jacobian`, `nlpsol`, `Opti`) that Jacobian and its sparsity are used; SX expressions take the
    operations in and are derived by CasADi. `options` go to `casadi.Function`.
    """
    symbols, scalars = _inputs()
    settings = {"custom_jacobian": jacobian("jac_" + name), "jac_penalty": 0, **(options or {})}
    return ca.Function(name, symbols, _outputs(_values(scalars)), list(INPUTS), list(OUTPUTS), settings)
'''
)

# -- JAX -----------------------------------------------------------------------------------------------------
JAX_TABLE = """
def _table(x, number):
    breaks = jnp.asarray(_BREAKS[number], dtype=x.dtype)
    pieces = jnp.asarray(_PIECES[number], dtype=x.dtype)
    i = jnp.clip(jnp.searchsorted(breaks, x, side="right") - 1, 0, len(_PIECES[number]) - 1)
    d, c = x - breaks[i], pieces[i]
    return ((c[3] * d + c[2]) * d + c[1]) * d + c[0]
"""

JAX = '''
#: Operations up to which the code is laid out for XLA instead of run in a loop: see `_run`.
LONG = {"cpu": 200, "gpu": 4000, "tpu": 4000}

_FUNCTIONS = {
    "neg": operator.neg, "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "sqrt": jnp.sqrt, "sin": jnp.sin, "cos": jnp.cos, "tan": jnp.tan, "atan2": jnp.arctan2, "exp": jnp.exp,
    "log": jnp.log, "pow": jnp.power, "abs": jnp.abs, "sign": jnp.sign, "min": jnp.minimum, "max": jnp.maximum,
    "floor": jnp.floor, "where": lambda c, a, b: jnp.where(c != 0, a, b),
    "lt": lambda a, b: (a < b) * jnp.ones_like(a), "le": lambda a, b: (a <= b) * jnp.ones_like(a),
    "eq": lambda a, b: (a == b) * jnp.ones_like(a),
}


def _apply(op, table, *x):
    return _table(x[0], table) if _NAMES[op] == "table" else _FUNCTIONS[_NAMES[op]](*x[: _ARITY[op]])


def _run(x):
    """The outputs of the flat inputs.

    On CPUs, XLA takes ten seconds and more for a thousand scalar operations, and what comes out is slower than a loop
    over them; on GPUs every round of a loop is a launch, and the operations as text are a hundred times faster.
    """
    known = jnp.concatenate([jnp.asarray(_CONSTANTS, dtype=x.dtype), x])
    if len(_CODE) <= LONG.get(jax.default_backend(), 200):
        values = [known[k] for k in range(len(known))]
        for op, a, b, c in _CODE:
            operands = [values[k] for k in (a, b, c)[: _ARITY[op]]]
            values.append(_apply(op, b, *operands))
        return jnp.stack([values[k] for k in _OUTPUTS]) if _OUTPUTS else x[:0]
    kinds = sorted({(op, b if _NAMES[op] == "table" else 0) for op, _, b, _ in _CODE})
    place = {kind: k for k, kind in enumerate(kinds)}
    rows = [
        (place[op, b if _NAMES[op] == "table" else 0], a, 0 if _NAMES[op] == "table" else b, c) for op, a, b, c in _CODE
    ]
    branches = [lambda a, b, c, op=op, table=table: _apply(op, table, a, b, c) for op, table in kinds]

    def step(values, now):
        (kind, a, b, c), at = now
        result = lax.switch(kind, branches, values[a], values[b], values[c])
        return lax.dynamic_update_index_in_dim(values, result, at, 0), None

    values = jnp.concatenate([known, jnp.zeros(len(_CODE), x.dtype)])
    columns = tuple(jnp.asarray(column) for column in zip(*rows))
    values, _ = lax.scan(step, values, (columns, len(known) + jnp.arange(len(_CODE))))
    return values[jnp.asarray(_OUTPUTS, dtype=int)]
'''

JAX_FUNCTION = '''
def {name}({arrays}):
    """{title}, for one state: jit it, `jax.vmap` it over batches, `jax.grad` and `jax.jacobian` it.

    It computes in the precision of its arguments; float64 needs jax.config.update("jax_enable_x64", True).
    """
    inputs = [jnp.asarray(x) for x in ({arrays},)]
    for array, (word, shape) in zip(inputs, INPUTS.items()):
        if array.shape != shape:
            raise ValueError(f"{{word}} has shape {{array.shape}}; needed is {{shape}} (jax.vmap runs over batches)")
    dtype = jnp.result_type(float, *inputs)
    values = _run(jnp.concatenate([x.astype(dtype).reshape(-1) for x in inputs]))
    outputs, at = [], 0
    for shape in OUTPUTS.values():
        size = 1
        for n in shape:
            size *= n
        outputs.append(values[at : at + size].reshape(shape))
        at += size
    return outputs[0] if SINGLE else tuple(outputs)
'''

# -- SymPy ---------------------------------------------------------------------------------------------------
SYMPY_KEEP = """
#: (symbol, expression): every intermediate result in its order, by inputs and earlier symbols.
replacements = []


def _keep(expression):
    symbol = sp.Symbol(f"x{len(replacements)}", real=True)
    replacements.append((symbol, expression))
    return symbol
"""

SYMPY = '''
def _entries(name, shape):
    """The symbols of an array: q0, q1, ...; m0_0, m0_1, ... of a matrix; t of a single number."""
    places = [""]
    for n in shape:
        places = [f"{p}{'_' if p else ''}{k}" for p in places for k in range(n)]
    return [sp.Symbol(name + p, real=True) for p in places]


#: The symbols of each input, flattened row by row.
inputs = {name: _entries(name, shape) for name, shape in INPUTS.items()}
_results = _values([x for symbols in inputs.values() for x in symbols])
#: The expressions of each output, flattened row by row, by inputs and the symbols of `replacements`.
outputs = {}
for _name, _shape in OUTPUTS.items():
    _size = int(sp.prod(_shape))
    outputs[_name], _results = [sp.sympify(x) for x in _results[:_size]], _results[_size:]


def expression(output, k=0, most=2000):
    """Number k of an output by inputs alone; of more than `most` steps it would be too long, and is refused."""
    needed, order = set(outputs[output][k].free_symbols), []
    for symbol, value in reversed(replacements):
        if symbol in needed:
            needed |= value.free_symbols
            order.append((symbol, value))
    if len(order) > most:
        raise ValueError(f"{output}[{k}] takes {len(order)} steps, too many for one expression; use `replacements`")
    known = {}
    for symbol, value in reversed(order):
        known[symbol] = value.xreplace(known)
    return outputs[output][k].xreplace(known)


def function(modules="math"):
    """A Python function of the flat inputs, one number each, to the list of all outputs' numbers."""
    arguments = [x for symbols in inputs.values() for x in symbols]
    wanted = [x for values in outputs.values() for x in values]
    return sp.lambdify(arguments, wanted, modules, cse=lambda expressions: (replacements, expressions))
'''

# -- checks --------------------------------------------------------------------------------------------------
_CHECK = '''
def check():
    """The worst error over the test vector: each output's largest difference over its largest number, or over 1."""
    worst = 0.0
{run}
        for key in OUTPUTS:
            wanted = VECTORS[key][n]
            error = max((abs(a - b) for a, b in zip(got[key], wanted)), default=0.0)
            error /= max(1.0, *map(abs, wanted), 0.0)
            worst = max(worst, error) if error == error else float("inf")
    return worst


if __name__ == "__main__":
{before}    worst = check()
    print(f"{name}: {{len(VECTORS[next(iter(OUTPUTS))])}} states, worst error {{worst:.3g}}, allowed {{TOLERANCE:.3g}}")
    raise SystemExit(0 if worst <= TOLERANCE else 1)
'''
_COUNT = "    for n in range(len(VECTORS[next(iter(OUTPUTS))])):"
_CASADI_RUN = f"""    run = build()
{_COUNT}
        arguments = []
        for key, shape in INPUTS.items():
            rows, columns = _matrix(shape)
            arguments.append(ca.reshape(ca.DM(VECTORS[key][n]), columns, rows).T)
        results = run.call(arguments)
        got = {{{{key: ca.densify(y).T.nonzeros() for key, y in zip(OUTPUTS, results)}}}}"""
_JAX_RUN = f"""    run = jax.jit({{name}})
{_COUNT}
        results = run(*(jnp.asarray(VECTORS[key][n]).reshape(shape) for key, shape in INPUTS.items()))
        results = (results,) if SINGLE else results
        got = {{{{key: [float(x) for x in y.reshape(-1)] for key, y in zip(OUTPUTS, results)}}}}"""
_SYMPY_RUN = f"""    run = function()
{_COUNT}
        results = run(*(x for key in INPUTS for x in VECTORS[key][n]))
        got = {{{{}}}}
        for key, values in outputs.items():
            got[key], results = [float(x) for x in results[: len(values)]], results[len(values) :]"""
_X64 = '    jax.config.update("jax_enable_x64", True)\n'
CHECK = {
    "casadi": _CHECK.replace("{run}", _CASADI_RUN).replace("{before}", "").lstrip(),
    "jax": _CHECK.replace("{run}", _JAX_RUN).replace("{before}", _X64).lstrip(),
    "sympy": _CHECK.replace("{run}", _SYMPY_RUN).replace("{before}", "").lstrip(),
}

USE = {
    "casadi": [
        "```python",
        "import casadi as ca",
        "import {name}",
        "",
        "f = {name}.build()             # f({arrays}), a casadi.Function with named inputs and outputs",
        "J = f.jacobian()               # sparse, by Linkwright's own derivatives where the module has them",
        "```",
        "",
        "Inside `MX` expressions (`nlpsol`, `Opti`) calls stay calls, and the module's sparse Jacobian is used.",
    ],
    "jax": [
        "```python",
        "import jax",
        'jax.config.update("jax_enable_x64", True)',
        "from {name} import {name}",
        "",
        "f = jax.jit({name})            # f({arrays}) for one state",
        "many = jax.jit(jax.vmap({name}))",
        "slope = jax.jit(jax.jacobian({name}))",
        "```",
    ],
    "sympy": [
        "```python",
        "import {name} as model",
        "",
        "model.inputs, model.outputs    # symbols and expressions, by name",
        "model.replacements             # (symbol, expression) of every intermediate result, as sympy.cse gives them",
        "model.expression('NAME', 0)    # one number of an output by inputs alone, where that is short enough",
        "f = model.function()           # ({arrays}) flattened to the outputs' numbers",
        "```",
    ],
}
