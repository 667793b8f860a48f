"""The compiled programs of a mechanism's simulations: made once, kept with the mechanism and on disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.kernels.kernel import Kernel
from linkwright.simulation.tableaux import Tableau
from linkwright.tape.program import Program

if TYPE_CHECKING:
    from linkwright.dynamics.programs import Maker
    from linkwright.mechanism import Mechanism
    from linkwright.simulation.parts import Parts

LANES = 8  # a batch of fewer states would run by other code, whose last bits may differ


@dataclass(frozen=True)
class StepRequest:
    """Which program of a simulation: its name in `steps`, the tableau, the law by its digest, the free parameters."""

    name: str
    tableau: str = ""
    law: str = ""
    free: tuple[str, ...] = ()
    conserving: bool = False


@dataclass(frozen=True, eq=False)
class Recording:
    """What the programs of a simulation are recorded from; not the mechanism, which keeps the kernels."""

    maker: Maker
    law: Program | None
    free: tuple[str, ...]
    conserving: bool
    ranks_hold: bool = False

    @cached_property
    def parts(self) -> Parts:
        from linkwright.simulation.parts import Parts

        return Parts(self.maker, self.law, self.free, conserving=self.conserving, ranks_hold=self.ranks_hold)


class Kernels:
    """The kernels for one mechanism and, where the joint forces have a recorded law, that law.

    Parameters in `free` are a last input p of those that they take part in. With `conserving`, steps keep the energy.
    """

    def __init__(
        self, mech: Mechanism, law: Program | None = None, free: tuple[str, ...] = (), *, conserving: bool = False
    ) -> None:
        # What forces do not tell is refused by the mechanism's own numbers.
        shared = not free and mech.programs.determined
        self._mech, self._parametrised = mech, mech.programs.parametrised if shared else None
        self.recording = Recording(mech.programs, law, free, conserving)
        if self._parametrised is not None:
            source, names = self._parametrised.source, self._parametrised.names
            self.recording = Recording(source, law, names, conserving, ranks_hold=True)
        self._law = "" if law is None else law.digest
        x = mech.tree.coordinates
        self.nq, self.nv = x.nq, x.nv
        self.plain = x.nq == x.nv and not mech.closed  # q̇ = v, and every state is possible
        self.closed, self.has_law, self.conserving = mech.closed, law is not None, conserving
        self.rate_units: Floats = mech.programs.rate_units  # (nv,): the unit of each rate

    @property
    def parts(self) -> Parts:
        parts: Parts = self.recording.parts
        return parts

    def _kernel(self, name: str, tableau: Tableau | None) -> Kernel:
        recording = self.recording

        def record() -> Program:
            from linkwright.simulation import steps

            recorder = getattr(steps, name)
            arguments = (recording.parts,) if tableau is None else (recording.parts, tableau)
            program: Program = recorder(*arguments)
            return program

        return self.kernel(name, tableau, record, seldom=name == "ending")

    def kernel(
        self, name: str, tableau: Tableau | None, record: Callable[[], Program], *, seldom: bool = False
    ) -> Kernel:
        """The kernel of a program by its name and tableau; `record` makes it, and must not hold the mechanism."""
        r = self.recording
        request = StepRequest(name, "" if tableau is None else tableau.name, self._law, r.free, r.conserving)
        return self._mech.kernels.further(request, record, parametrised=self._parametrised, seldom=seldom)

    # Each is a program of `steps` of the same name.
    def fixed_step(self, tableau: Tableau) -> Kernel:
        return self._kernel("fixed_step", tableau)

    def attempt(self, tableau: Tableau) -> Kernel:
        return self._kernel("attempt", tableau)

    def between(self, tableau: Tableau) -> Kernel:
        return self._kernel("between", tableau)

    def ending(self) -> Kernel:
        return self._kernel("ending", None)

    def projected(self) -> Kernel:
        return self._kernel("projected", None)

    def conserved(self) -> Kernel:
        return self._kernel("conserved", None)

    def slope(self) -> Kernel:
        return self._kernel("slope", None)

    def rate(self) -> Kernel:
        return self._kernel("rate", None)

    def dynamics(self) -> Kernel:
        return self._kernel("dynamics", None)

    def integrate(self) -> Kernel:
        return self._kernel("integrate", None)


def in_batch(kernel: Kernel, *arrays: Floats) -> tuple[Floats, ...]:
    """The answers for states (n, ...), each to the same bits whatever n is; arrays for one state serve for all."""
    n = max(len(a) for a, port in zip(arrays, kernel.signature.inputs, strict=True) if a.ndim > len(port.shape))
    padded: list[Floats] = []
    for a, port in zip(arrays, kernel.signature.inputs, strict=True):
        if n < LANES and a.ndim > len(port.shape):
            a = np.concatenate([a, np.repeat(a[-1:], LANES - n, axis=0)])
        padded.append(a)
    outputs = kernel(*padded)
    return tuple(x[:n] for x in (outputs if isinstance(outputs, tuple) else (outputs,)))
