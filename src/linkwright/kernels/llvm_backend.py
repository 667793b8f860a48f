"""LLVM text to machine code in this process: code generation only, since the tape is already optimised."""

from __future__ import annotations

import ctypes
import ctypes.util
import threading
from functools import cache
from typing import Any

from linkwright.errors import KernelError

_lock = threading.Lock()


@cache
def _llvm() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    library = ctypes.CDLL(ctypes.util.find_library("m") or None)
    for name in ("sin", "cos", "tan", "exp", "log", "atan2", "pow", "fma", "floor"):
        try:
            address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        except AttributeError:
            continue
        llvm.add_symbol(name, address)
    return llvm


def add_symbols(addresses: dict[str, int]) -> None:
    """Let compiled code call functions of this process by name."""
    llvm = _llvm()
    for name, address in addresses.items():
        llvm.add_symbol(name, address)


@cache
def cpu() -> tuple[str, str]:
    """The name of this CPU and its features, as LLVM says them."""
    llvm = _llvm()
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


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
    name, features = cpu()
    if lanes() == 8:
        features += ",-prefer-256-bit"
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=name, features=features, opt=level, reloc="pic", codemodel="jitdefault"
    )


def object_code(text: str, *, level: int = 2) -> bytes:
    """Compile LLVM text to an object file's bytes."""
    with _lock:
        llvm = _llvm()
        module = llvm.parse_assembly(f'target triple = "{llvm.get_process_triple()}"\n{text}')
        return _machine(level).emit_object(module)  # type: ignore[no-any-return]


class Loaded:
    """Object code linked into this process; `address(name)` of its functions while this object lives."""

    def __init__(self, code: bytes) -> None:
        with _lock:
            llvm = _llvm()
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(2))
            try:
                self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
                self._engine.finalize_object()
            except RuntimeError as error:
                raise KernelError(f"object code could not be loaded: {error}") from None

    def address(self, name: str) -> int:
        address: int = self._engine.get_function_address(name)
        if not address:
            raise KernelError(f"object code has no function {name!r}")
        return address
