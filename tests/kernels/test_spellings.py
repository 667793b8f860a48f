"""Tables of how back-ends write operations: none forgets one, and an operation without a spelling is named."""

from __future__ import annotations

import pytest
import sample_programs as samples

from linkwright.errors import KernelError
from linkwright.exports.python_export import CASADI, SYMPY
from linkwright.exports.python_templates import JAX
from linkwright.kernels.c.spelling import HELPERS, C
from linkwright.kernels.interpret import conversions
from linkwright.kernels.jax.jax_interpreter import JaxInterpreter
from linkwright.kernels.llvm.instructions import LLVM
from linkwright.tape import operations as O
from linkwright.tape.operations import spellings

NAMES = [operation.name for operation in O.OPERATIONS]
TABLES = {
    "C": C,
    "LLVM": LLVM,
    "CasADi modules": CASADI,
    "SymPy modules": SYMPY,
}


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_every_operation(name):
    assert len(TABLES[name]) == len(O.OPERATIONS)


@pytest.mark.parametrize(
    ("library", "algebra"),
    [
        ("sympy", conversions._SymPy),
        ("casadi", conversions._CasADi),
        ("jax", lambda p, jax: JaxInterpreter(p, jax, float)),
    ],
    ids=["SymPy", "CasADi", "JAX"],
)
def test_every_algebra_computes_every_operation(library, algebra):
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    assert all(map(callable, algebra(samples.bare(), module).functions))


def test_the_module_for_jax_has_every_operation():
    assert [name for name in NAMES if name != "table" and f'"{name}":' not in JAX] == []


def test_an_operation_without_a_spelling_is_named():
    entries = {op: name for op, name in enumerate(NAMES) if op not in (O.FLOOR, O.EQ)}
    with pytest.raises(KernelError, match="WebAssembly has no way to write floor, eq"):
        spellings("WebAssembly", entries)


@pytest.mark.parametrize("op", range(len(NAMES)), ids=NAMES)
def test_texts_name_the_operands_that_an_operation_has_and_no_others(op):
    for text in (C[op].text, CASADI[op], SYMPY[op]):
        assert [k for k in range(3) if f"{{{k}}}" in text] == list(range(O.OPERATIONS[op].arity))


def test_helpers_that_spellings_call_are_there():
    assert {spelling.helper for spelling in C} - {""} <= set(HELPERS)
