"""Programs made callable: NumPy, LLVM, C-family text, CUDA, the call path, the cache, other tools' forms."""

from __future__ import annotations

from linkwright.base.locks import Lock
from linkwright.kernels.kernel import Kernel, set_threads, threads
from linkwright.tape.program import Program

_making = Lock()


def compiled(program: Program) -> Kernel:
    """The kernel of a program, made once, whichever thread asks first."""
    if program.kernel is None:
        kernel = Kernel(program.digest, lambda: program)
        with _making:
            if program.kernel is None:
                object.__setattr__(program, "kernel", kernel)
    assert program.kernel is not None
    return program.kernel


__all__ = ["Kernel", "compiled", "set_threads", "threads"]
