"""`Opened`: a mechanism at one value of its parameters, whose programs leave them open and serve all values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from linkwright.base.locks import cached_property
from linkwright.dynamics.functions import FUNCTIONS, Request
from linkwright.mechanism.description import Description
from linkwright.mechanism.expression import Name
from linkwright.model import Mechanism

_MOVING = ("integrate", "difference", "rate")  # what moves coordinates alone has no parameters


class Opened(Mechanism):
    """What `base.with_parameters` gives, without a program of its own: answers come from `base` with `free` names."""

    def __init__(self, base: Mechanism, names: Sequence[str], values: Sequence[float]) -> None:
        super().__init__(base.description.with_parameters(dict(zip(names, values, strict=True))))
        self.base, self.names = base, tuple(names)
        self.values = np.array(values, dtype=np.float64)

    def with_parameters(self, **values: float) -> Self:
        return Mechanism(self.description.with_parameters(values))  # type: ignore[return-value]

    def _answer(self, request: Request, *arrays: Any, t: Any = 0.0, out: Any = None) -> Any:
        if request.function in _MOVING:
            return self.base._answer(request, *arrays, out=out)
        kernel = self.base._kernel(replace(request, free=self.names))
        time = (t,) if self._maker.needs_time and FUNCTIONS[request.function].forces else ()
        return kernel(*arrays, *time, self.values, out=out)

    def _changed(self, name: str, change: Callable[[Description], Description]) -> Mechanism:
        return Opened(self.base._changed(name, change), self.names, self.values.tolist())

    @property
    def open_by_rounding(self) -> bool:
        """Looked for where the base's loops are open: it needs a program of this mechanism alone."""
        return self.base.open_by_rounding and super().open_by_rounding

    @cached_property
    def _weighed(self) -> Mechanism:
        """With geometry for masses, whose sizes are parameters too."""
        if self.base.weighed_with_sizes is None:
            own = self.base._weighed.description
            sizes = [f"size of {name}" for name in own.body_names]
            bindings = {
                ("inertia", 6 * k + i): Name(size) * Name(size) for k, size in enumerate(sizes) for i in range(3)
            }
            lengths = np.sqrt(own.inertia[:, 0])
            parameters = {**own.parameters, **dict(zip(sizes, lengths.tolist(), strict=True))}
            made = replace(own, parameters=parameters, bindings={**own.bindings, **bindings})
            self.base.weighed_with_sizes = Mechanism(made), sizes
        shared, sizes = self.base.weighed_with_sizes
        from linkwright.constraints.equations import Equations

        lengths = Equations(self.description).sizes
        return Opened(shared, (*self.names, *sizes), [*self.values, *lengths])
