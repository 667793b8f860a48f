"""How a mechanism answers: from the request of a method to arrays, by a compiled program or a native shortcut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.dynamics.described import Described
from linkwright.dynamics.functions import FUNCTIONS, ForwardMethod, FunctionName, ProgramForm, Reference, Request
from linkwright.dynamics.programs import Kernels, Maker
from linkwright.errors import NameNotFound
from linkwright.kernels.callpath import shortcut
from linkwright.tape.program import Program
from linkwright.tape.scalar import has_scalars

_LONG = 1_000_000  # operations from which the way to a kernel does not count, and threads may share its work


#: The requests of plain calls, which have a native shortcut.
_PLAIN = {name: Request(name) for name, function in FUNCTIONS.items() if function.plain}


class Answering(Described):
    """A described mechanism with the kernels of its programs: what every method of `Mechanism` calls."""

    def __init__(self, maker: Maker) -> None:
        super().__init__(maker)
        self.kernels = Kernels(maker)
        self._quick: dict[str, Callable[..., Floats]] = {}  # forward dynamics of one state by its methods

    def program(
        self,
        function: FunctionName,
        *,
        method: ForwardMethod | None = None,
        wrenches: bool = False,
        frame: str = "",
        reference: Reference | Literal[""] = "",
        free: Sequence[str] = (),
        form: ProgramForm | Literal[""] = "",
    ) -> Program:
        """The tape behind a method; parameters in `free` become the entries of a last input p.

        `form` is "unrolled" or "rolled" (a loop over links), by default what suits the number of links.
        """
        if function not in FUNCTIONS:
            raise NameNotFound("function", function, list(FUNCTIONS))
        if "reference" in FUNCTIONS[function].options:
            reference = reference or "body"
        request = Request(function, method or "", wrenches, frame, reference, tuple(free), form)
        return self.kernels.program(request)

    def _array(self, request: Request, *arrays: Any, t: Any = 0.0, out: Any = None) -> Floats:
        """The answer of a request with one output."""
        answer: Floats = self._answer(request, *arrays, t=t, out=out)
        return answer

    def _three(self, request: Request, *arrays: Any, t: Any) -> tuple[Floats, Floats, Floats]:
        """The answer of a request with three outputs."""
        first, second, third = self._answer(request, *arrays, t=t)
        return first, second, third

    def _answer(self, request: Request, *arrays: Any, t: Any = 0.0, out: Any = None) -> Any:
        """Run the program of a request; after the first plain call of one state, take the short way."""
        answer = self.kernels.evaluate(request, *arrays, t=t, out=out)
        if isinstance(arrays[0], np.ndarray) and arrays[0].ndim == 1 and not self.programs.timed(request):
            self._shorten(request, arrays)
        return answer

    def _shorten(self, request: Request, arrays: Sequence[Any]) -> None:
        """Make later calls of the method for one state native, where its program allows that."""
        name, method = request.function, request.method
        plain = request == _PLAIN.get(name) and name not in self.__dict__
        by_method = bool(method) and method not in self._quick and request == Request("forward_dynamics", method)
        if not (plain or by_method) or has_scalars(*arrays):
            return
        kernel = self.kernels.kernel(request)
        if by_method and kernel.signature.work < _LONG:
            quick = shortcut(kernel, partial(type(self)._array, self, request), name)
            if quick is not None:
                self._quick[method] = quick
        if plain:
            quick = shortcut(kernel, partial(getattr(type(self), name), self), name)
            if quick is not None:
                self.__dict__[name] = quick
