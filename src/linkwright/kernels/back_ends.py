"""The back-ends of programs, by name: the kernel that runs a program, and the functions that give its other forms.

This module is what `tape.program_forms.Backends` declares. Only what calls need is imported with it.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from linkwright.base.locks import Lock
from linkwright.kernels.callpath import shortcut
from linkwright.kernels.kernel import Kernel
from linkwright.tape.program import Program
from linkwright.tape.program_forms import Form

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


def shorten(program: Program) -> None:
    """Give a program its short way for arrays of one state, where there is one."""
    object.__setattr__(program, "shortened", True)
    short = shortcut(compiled(program), partial(Program.carefully, program), "call")
    if short is not None:
        object.__setattr__(program, "call", short)


#: The forms of programs besides machine code: the function that makes each, and its module, imported when first asked
#: for: calls need neither text nor another library's form.
_FORMS = {
    "C": ("linkwright.kernels.c.program_text", "c_text"),
    "CUDA": ("linkwright.kernels.c.program_text", "cuda_text"),
    "SymPy": ("linkwright.kernels.interpret.conversions", "to_sympy"),
    "CasADi": ("linkwright.kernels.interpret.conversions", "to_casadi"),
    "JAX": ("linkwright.kernels.jax.jax_function", "to_jax"),
}


def converted(program: Program, form: Form, **options: Any) -> Any:
    """The program as text, or in another library's form."""
    module, function = _FORMS[form]
    return getattr(import_module(module), function)(program, **options)
