"""Sparse matrices of derivatives as kernels: their patterns and code from the cache, recorded where it has none."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from linkwright.kernels.cache import stored_arrays
from linkwright.kernels.kernel import Kernel
from linkwright.tape.derivative import SparseMatrix

Kind = Literal["jacobian", "hessian"]
_NONE = -1  # the tangent of a matrix whose program gives its entries


def matrix(kernel: Kernel, kind: Kind, output: int, wrt: int) -> SparseMatrix:
    """The Jacobian or Hessian of a kernel's program, whose own program is a kernel too."""
    identity = f"{kernel.identity} {kind} {output} {wrt}"

    @cache
    def recorded() -> Any:
        program = kernel.differentiable
        return (program.jacobian if kind == "jacobian" else program.hessian)(output, wrt)

    def pattern() -> list[NDArray[Any]]:
        sparse = recorded()
        tangent = _NONE if sparse.tangent is None else sparse.tangent
        return [sparse.rows, sparse.cols, np.array([*sparse.shape, tangent])]

    rows, cols, (m, n, tangent) = stored_arrays(identity, "pattern", pattern)
    entries = Kernel(identity, lambda: recorded().program)
    return SparseMatrix(entries, rows, cols, (int(m), int(n)), None if tangent == _NONE else int(tangent))
