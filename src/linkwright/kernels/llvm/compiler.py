"""LLVM text to machine code in this process: code generation only, since the tape is already optimised."""

from __future__ import annotations

import atexit
import ctypes
import ctypes.util
import weakref
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.locks import Lock
from linkwright.errors import KernelError

_lock = Lock(fork_waits=True)  # around every call of LLVM, which has locks of its own
atexit.register(_lock.acquire)  # a daemon thread that compiles while LLVM is being torn down would crash the process
_LIBM = ("sin", "cos", "tan", "exp", "log", "atan2", "pow", "fma", "floor")


@cache
def _llvm() -> Any:
    with _lock:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        add_symbols({name: address for name in _LIBM if (address := _libm(name))}, llvm)
        return llvm


def _libm(name: str) -> int | None:
    """The address of a function of the C library, looked for in this process first: finding a file takes long."""
    for library in (_process(), _libm_file()):
        function = getattr(library, name, None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value
    return None


@cache
def _process() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):
        return None


@cache
def _libm_file() -> ctypes.CDLL | None:
    name = ctypes.util.find_library("m")
    return ctypes.CDLL(name) if name else None


def add_symbols(addresses: dict[str, int], llvm: Any = None) -> None:
    """Let compiled code call functions of this process by name."""
    with _lock:
        llvm = llvm or _llvm()
        for name, address in addresses.items():
            llvm.add_symbol(name, address)


@cache
def cpu() -> tuple[str, str, str]:
    """What object code is for, as LLVM says it: the CPU's name and features, the system's triple."""
    with _lock:
        llvm = _llvm()
        return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), llvm.get_process_triple()


@cache
def lanes() -> int:
    """How many doubles a register of this CPU holds."""
    features = cpu()[1].split(",")
    if "+avx512f" in features:
        return 8
    if "+avx" in features:
        return 4
    return 2


def _machine(level: int) -> Any:
    """A target machine; an execution engine takes the one it is given for itself."""
    llvm = _llvm()
    name, features, _ = cpu()
    if lanes() == 8:
        features += ",-prefer-256-bit"
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=name, features=features, opt=level, reloc="pic", codemodel="jitdefault"
    )


#: The level of code generation for kernels that run often.
CARE = 2


def object_code(text: str, *, level: int = 2) -> bytes:
    """Compile LLVM text to an object file's bytes."""
    with _lock:
        return _emitted(text, level)  # its objects of LLVM are gone before the lock is free


def _emitted(text: str, level: int) -> bytes:
    module = _llvm().parse_assembly(f'target triple = "{cpu()[2]}"\n{text}')
    return _machine(level).emit_object(module)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Code:
    """A compiled function's address; its code stays loaded as long as the array `life` lives.

    An array is not seen by the garbage collector, and so neither is the code behind it: a finaliser that calls a
    kernel while the cycle around both is being cleared still finds the code.
    """

    address: int
    life: NDArray[np.uint64]
    team: int = 0  # of the function for one member of a team of threads, if there is one


_engines: dict[int, Any] = {}


def _unload(address: int) -> None:
    with _lock:
        _engines.pop(address, None)


def load(code: bytes, name: str) -> Code:
    """Link object code into this process; its function `name`."""
    with _lock:
        return _linked(code, name)


def _linked(code: bytes, name: str) -> Code:
    llvm = _llvm()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(2))
    file = llvm.ObjectFileRef.from_data(code)
    if not file:
        raise KernelError("what should be object code is none")
    try:
        engine.add_object_file(file)
        engine.finalize_object()
    except RuntimeError as error:
        raise KernelError(f"object code could not be loaded: {error}") from None
    address: int = engine.get_function_address(name)
    if not address:
        raise KernelError(f"object code has no function {name!r}")
    life = np.array(address, dtype=np.uint64)
    _engines[address] = engine
    weakref.finalize(life, _unload, address).atexit = False
    return Code(address, life, engine.get_function_address(f"{name}_team"))
