"""The cache of programs: what is asked of which content, recorded at most once and, in the next process, not at all.

A program is named by its content (the digest of what it is about) and the request (what is asked of it). Kernels are
shared by all who ask for the same; the last ones stay loaded though nobody holds them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from typing import Any, Literal
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from linkwright.base.locks import Lock
from linkwright.kernels.cache import stored_arrays
from linkwright.kernels.kernel import Kernel
from linkwright.tape.derivative import SparseMatrix
from linkwright.tape.program import Program

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


#: Kernels that stay loaded though nobody holds them, where the one who asks wants that.
RECENT = 64

_lock = Lock()
_kernels: WeakValueDictionary[str, Kernel] = WeakValueDictionary()
_recent: OrderedDict[str, Kernel] = OrderedDict()


def kernel(
    content: str,
    request: object,
    record: Callable[[], Program],
    *,
    seldom: bool = False,
    plain: Callable[[], Program] | None = None,
    recent: bool = False,
) -> Kernel:
    """The kernel of a request about some content; `record` makes its program where no cache has its code.

    The request's `repr` tells it from others. `seldom` and `plain` are those of `Kernel`. With `recent` the kernel is
    among those that stay loaded: for small programs that serve one caller after another.
    """
    identity = f"{content} {request!r}"
    with _lock:
        shared = _kernels.get(identity)
        if shared is None:
            shared = _kernels[identity] = Kernel(identity, record, seldom=seldom, plain=plain)
        if recent:
            _recent[identity] = shared
            _recent.move_to_end(identity)
            if len(_recent) > RECENT:
                _recent.popitem(last=False)
    return shared
