"""Symmetric systems in machine code, beside NumPy."""

import numpy as np
import pytest

from linkwright.kernels.llvm import compiler
from linkwright.tape.build import ProgramBuilder
from linkwright.tape.program import Solve


def program_of(n, right, chain):
    builder = ProgramBuilder("solve")
    matrix, rhs = builder.input("a", (n, n)), builder.input("b", (n, right))
    solution = builder.output("x", (n, right))
    parent = builder.column(np.arange(n) - 1) if chain else None
    method = "ltl" if chain else "cholesky"
    builder.add(Solve(method, matrix.operand, rhs.operand, solution.operand, n, n, right, parent))
    return builder.build()


@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("chain", [True, False])
@pytest.mark.parametrize("n", [15, 16, 17, 18, 19, 41, 64])
@pytest.mark.parametrize("right", [1, 3, 20])
def test_a_system_without_zeros_is_solved_along_its_rows(n, right, chain, lanes, monkeypatch):
    if lanes > compiler.lanes():
        pytest.skip(f"this processor has no registers of {lanes} doubles")
    monkeypatch.setattr(compiler, "lanes", lambda: lanes)
    monkeypatch.setenv("LINKWRIGHT_CACHE", "")
    rng = np.random.default_rng(n)
    a = rng.normal(size=(n, n))
    a = a @ a.T + n * np.eye(n)
    b = rng.normal(size=(n, right))
    expected = np.linalg.solve(a, b)
    above = np.triu(np.full((n, n), np.nan), 1)
    program = program_of(n, right, chain)
    np.testing.assert_allclose(program(a, b), expected, rtol=0, atol=1e-12)
    # The lower triangle alone is read.
    np.testing.assert_allclose(program(np.tril(a) + above, b), expected, rtol=0, atol=1e-12)
    b[0, 0] = np.nan
    assert np.isnan(program(a, b)).any()
