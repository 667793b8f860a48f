"""A request being recorded: its inputs by name, traversals over them, and the forces that act.

Recorders ask a `Context`, and do not know whether links are laid out one by one (`Question`) or rolled into a loop
(`RolledQuestion`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from linkwright.base.locks import cached_property
from linkwright.dynamics.element_forces import Elements
from linkwright.dynamics.functions import Request
from linkwright.dynamics.requests import RequestRules
from linkwright.dynamics.traversals.rolled import Rolled
from linkwright.dynamics.traversals.sheets import RolledSheet, Sheet, UnrolledSheet
from linkwright.dynamics.traversals.traversal import Traversal, Unrolled
from linkwright.spatial.algebra import Array
from linkwright.tape.build import ProgramBuilder, Ref


class Context(Protocol):
    """What the recorder of a function asks, in both forms."""

    maker: RequestRules
    request: Request
    gravity: Array
    parameters: dict[str, Any]

    def traversal(self, only: Sequence[int] | None = None, *, zero: Sequence[str] = (), **inputs: Any) -> Traversal:
        """A traversal over these inputs, those named in `zero` being zero; `only` the links at some positions count."""

    def sheet(self, **inputs: Any) -> Sheet:
        """The links for a recursion in levels."""

    def applied(self) -> bool:
        """Make the wrenches of elements and of the caller the input "wrench", in body axes; whether there are any."""

    def driven(self) -> Any:
        """tau with the forces of joint laws."""

    def joint_forces(self) -> Array | None:
        """The generalised forces of the laws of tree joints, or None."""


class Question:
    """One request recorded with every link's arithmetic laid out."""

    def __init__(self, maker: RequestRules, request: Request, inputs: Mapping[str, Array]) -> None:
        self.maker, self.request, self.inputs = maker, request, dict(inputs)
        free = dict(zip(request.free, inputs["p"], strict=True)) if request.free else {}
        self.parameters: dict[str, Any] = free
        self.constants = {**maker.description.parameters, **free, "TIME": inputs.get("t", 0.0)}
        self.gravity: Array = maker.gravity(free)

    @cached_property
    def elements(self) -> Elements:
        """The force elements, and the quantities that laws name, at this state."""
        return Elements(self.traversal(), self.constants, self.parameters)

    def traversal(self, only: Sequence[int] | None = None, *, zero: Sequence[str] = (), **inputs: Any) -> Unrolled:
        still = dict.fromkeys(zero, np.zeros(self.maker.tree.coordinates.nv))
        return Unrolled(self.maker.tree, {**self.inputs, **still, **inputs}, self.parameters, only)

    def sheet(self, **inputs: Any) -> Sheet:
        return UnrolledSheet(self.traversal(**inputs))

    def applied(self, *, loops: bool = True, more: Iterable[tuple[int, Array]] = ()) -> bool:
        """With `more` wrenches at link frames; forces on joints that close loops only with `loops`."""
        outer = self.inputs.get("wrenches")
        on_loops = self.elements.loop_wrenches() if loops else ()
        wrenches = [*self.elements.link_wrenches().items(), *on_loops, *more]
        if outer is None and not wrenches:
            return False
        rows: list[Any] = [np.zeros(6)] * self.maker.tree.n if outer is None else list(outer)
        for i, wrench in wrenches:
            rows[i] = rows[i] + self.elements.traversal.links[i].frame.inward(wrench)
        self.inputs["wrench"] = rows
        return True

    def driven(self) -> Any:
        forces = self.joint_forces()
        return self.inputs["tau"] if forces is None else self.inputs["tau"] + forces

    def joint_forces(self) -> Array | None:
        return self.elements.joint_forces


class RolledQuestion:
    """One request recorded as loops over links, for a mechanism without force elements.

    The traversal or sheet that its recorder asks for is finished by `finish`.
    """

    def __init__(self, maker: RequestRules, request: Request, builder: ProgramBuilder, *, packed: bool) -> None:
        self.maker, self.request, self.builder, self.packed = maker, request, builder, packed
        self.parameters: dict[str, Any] = {}
        self.gravity: Array = maker.gravity({})
        self.inputs = {name: builder.input(name, shape) for name, shape in maker.shapes(request).items()}
        if request.wrenches:
            self.inputs["wrench"] = self.inputs["wrenches"]
        self._loops: Rolled | RolledSheet | None = None

    def traversal(self, only: Sequence[int] | None = None, *, zero: Sequence[str] = (), **inputs: Any) -> Rolled:
        self._loops = Rolled(self.maker.tree, self.builder, {**self.inputs, **inputs}, zero, packed=self.packed)
        return self._loops

    def sheet(self, **inputs: Any) -> Sheet:
        self._loops = RolledSheet(self.maker.tree, self.builder, {**self.inputs, **inputs})
        return self._loops

    def finish(self, result: Ref, name: str) -> None:
        """Add the loops to the program, with the result as the output of this name."""
        assert self._loops is not None
        self._loops.finish(result, name)

    def applied(self) -> bool:
        return self.request.wrenches

    def driven(self) -> Any:
        return self.inputs["tau"]

    def joint_forces(self) -> Array | None:
        return None
