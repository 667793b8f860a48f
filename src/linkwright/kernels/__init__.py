"""Programs made callable: NumPy, LLVM, C-family text, CUDA, the call path, the cache, other tools' forms."""

from __future__ import annotations

from linkwright.kernels.kernel import Kernel, set_threads, threads
from linkwright.tape.program import Program


def compiled(program: Program) -> Kernel:
    """The kernel of a program, made once."""
    kernel: Kernel | None = program.__dict__.get("_kernel")
    if kernel is None:
        kernel = program.__dict__.setdefault("_kernel", Kernel(program.digest, lambda: program))
    return kernel


__all__ = ["Kernel", "compiled", "set_threads", "threads"]
