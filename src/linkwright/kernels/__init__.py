"""Programs made callable: NumPy, LLVM, C-family text, CUDA, the call path, the cache, other tools' forms.

The package is what `tape.backends.Backends` declares. Only what calls need is imported with it.
"""

from __future__ import annotations

from typing import Any

from linkwright.base.locks import Lock
from linkwright.kernels.kernel import Kernel
from linkwright.tape.program import Program

_making = Lock()


def compiled(program: Program) -> Kernel:
    """The kernel of a program, made once, whichever thread asks first."""
    if program.kernel is None:
        kernel = Kernel(program.digest, lambda: program)
        with _making:
            if program.kernel is None:
                object.__setattr__(program, "kernel", kernel)
    assert isinstance(program.kernel, Kernel)
    return program.kernel


def c_text(program: Program, name: str | None, precision: str) -> str:
    """One self-contained C99 file; its functions are named after the program, or `name`."""
    from linkwright.kernels.c import program_text  # for weight: calls need no text

    return program_text.c_text(program, name, precision)


def cuda_text(program: Program, name: str | None, precision: str) -> str:
    """One self-contained CUDA file, for nvcc and NVRTC alike."""
    from linkwright.kernels.c import program_text  # for weight: calls need no text

    return program_text.cuda_text(program, name, precision)


def to_sympy(program: Program) -> Any:
    """SymPy expressions: (symbols of the inputs, expressions of the outputs)."""
    from linkwright.kernels.interpret import conversions  # for weight: calls need no other library's form

    return conversions.to_sympy(program)


def to_casadi(program: Program) -> Any:
    """A CasADi function of the same inputs and outputs."""
    from linkwright.kernels.interpret import conversions  # for weight: calls need no other library's form

    return conversions.to_casadi(program)


def to_jax(program: Program) -> Any:
    """A function of JAX arrays, to be jitted, mapped and differentiated there."""
    from linkwright.kernels.interpret import conversions  # for weight: calls need no other library's form

    return conversions.to_jax(program)


__all__ = ["Kernel", "compiled"]
