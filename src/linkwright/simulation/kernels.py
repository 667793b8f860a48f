"""The compiled programs of a mechanism's simulations: made once, kept with the mechanism and on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from linkwright.kernels.kernel import Kernel
from linkwright.simulation.tableaux import Tableau
from linkwright.tape.program import Program

if TYPE_CHECKING:
    from linkwright.model import Mechanism
    from linkwright.programs import Maker
    from linkwright.simulation.parts import Parts

Floats = NDArray[np.float64]
_LAWS = 16  # laws whose compiled steps a mechanism keeps
LANES = 8  # a batch of fewer states would run by other code, whose last bits may differ


class Kernels:
    """The kernels for one mechanism and, where the joint forces have a recorded law, that law.

    Parameters in `free` are a last input p of those that they take part in.
    """

    def __init__(
        self, maker: Maker, digest: str, law: Program | None, free: tuple[str, ...] = (), *, conserving: bool = False
    ) -> None:
        self._maker, self._law, self._free, self.conserving = maker, law, free, conserving
        self._identity = f"{digest} simulation {'' if law is None else law.digest}{f' {free}' if free else ''}"
        self._identity += " conserving" if conserving else ""
        self._kernels: dict[str, Kernel] = {}
        self._parts: Parts | None = None
        x = maker.tree.coordinates
        self.nq, self.nv = x.nq, x.nv
        self.plain = x.nq == x.nv and not maker.closed  # q̇ = v, and every state is possible
        self.closed, self.has_law = bool(maker.closed), law is not None

    @classmethod
    def opened(cls, mech: Mechanism, free: tuple[str, ...], law: Program | None = None) -> Kernels:
        """Those of a mechanism whose parameters `free` stay open."""
        if not free:
            return cls.of(mech, law)
        key = ("opened simulation", free, None if law is None else law.digest)
        kept: Kernels = mech._kept.setdefault(key, cls(mech._maker, mech.description.digest, law, free))
        return kept

    @classmethod
    def of(cls, mech: Mechanism, law: Program | None, *, conserving: bool = False) -> Kernels:
        """Those of a mechanism, made at the first call; of steps that keep the energy, if they are `conserving`."""
        if conserving:
            keeping: Kernels = mech._kept.setdefault(
                ("conserving simulation",), cls(mech._maker, mech.description.digest, None, conserving=True)
            )
            return keeping
        key = ("simulation", None if law is None else law.digest)
        made: Kernels | None = mech._kept.get(key)
        if made is None:
            laws = [k for k in list(mech._kept) if k[0] == "simulation" and k[1] is not None]
            for old in laws[: max(0, len(laws) - _LAWS + 1)]:  # a study may have a law for every case
                mech._kept.pop(old, None)
            kept: Kernels = mech._kept.setdefault(key, cls(mech._maker, mech.description.digest, law))
            return kept
        return made

    @property
    def parts(self) -> Parts:
        if self._parts is None:
            from linkwright.simulation.parts import Parts

            self._parts = Parts(self._maker, self._law, self._free, conserving=self.conserving)
        return self._parts

    @property
    def rate_units(self) -> Floats:
        """(nv,): the unit of each rate."""
        return self._maker.rate_units

    def _kernel(self, name: str, tableau: Tableau | None) -> Kernel:
        key = name if tableau is None else f"{name} {tableau.name}"
        kernel = self._kernels.get(key)
        if kernel is None:

            def make() -> Program:
                from linkwright.simulation import steps

                recorder = getattr(steps, name)
                program: Program = recorder(self.parts) if tableau is None else recorder(self.parts, tableau)
                return program

            seldom = name == "ending"
            kernel = self._kernels.setdefault(key, Kernel(f"{self._identity} {key}", make, seldom=seldom))
        return kernel

    def other(self, name: str, make: Callable[[], Program]) -> Kernel:
        """A kernel of another program, made and kept under its name."""
        kernel = self._kernels.get(name)
        if kernel is None:
            kernel = self._kernels.setdefault(name, Kernel(f"{self._identity} {name}", make))
        return kernel

    # Each is a program of `steps` of the same name.
    def fixed_step(self, tableau: Tableau) -> Kernel:
        return self._kernel("fixed_step", tableau)

    def attempt(self, tableau: Tableau) -> Kernel:
        return self._kernel("attempt", tableau)

    def between(self, tableau: Tableau) -> Kernel:
        return self._kernel("between", tableau)

    def ending(self) -> Kernel:
        return self._kernel("ending", None)

    def settled(self) -> Kernel:
        return self._kernel("settled", None)

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
    given: list[Floats] = []
    for a, port in zip(arrays, kernel.signature.inputs, strict=True):
        if n < LANES and a.ndim > len(port.shape):
            a = np.concatenate([a, np.repeat(a[-1:], LANES - n, axis=0)])
        given.append(a)
    found = kernel(*given)
    return tuple(x[:n] for x in (found if isinstance(found, tuple) else (found,)))
