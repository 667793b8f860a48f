"""What a `Program` asks of the back-ends, which run it and write it as text: declared here, provided from outside.

The tape knows no back-end. `linkwright/__init__.py`, which sees every room, names the provider when the package is
imported; the provider imports the back-ends when a program first asks for one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from linkwright.tape.program import Program


#: What a program can be converted to.
Form = Literal["C", "CUDA", "SymPy", "CasADi", "JAX"]


class Compiled(Protocol):
    """A program compiled: a function of arrays of any leading batch shape."""

    def __call__(self, *arrays: Any, out: Any = None) -> Any: ...

    def bound(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Callable[[], None]: ...

    def marched(self, inputs: Sequence[Any], outputs: Sequence[Any], count: int) -> Callable[[int, int], None]: ...


class Backends(Protocol):
    """Everything that a program can be turned into."""

    def compiled(self, program: Program) -> Compiled: ...

    def shorten(self, program: Program) -> None: ...

    def converted(self, program: Program, form: Form, **options: Any) -> Any: ...


_provider: Callable[[], Backends] | None = None


def provide_backends(provider: Callable[[], Backends]) -> None:
    """Name the function that gives the back-ends; it is called whenever a program asks for one."""
    global _provider
    _provider = provider


def backends() -> Backends:
    """The back-ends of this process."""
    assert _provider is not None, "linkwright/__init__.py names the provider"
    return _provider()
