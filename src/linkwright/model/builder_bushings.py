"""The bushings of a Builder: springs and dampers in six directions between two frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.model.builder_forces import Forces
from linkwright.model.builder_parts import Place, put
from linkwright.model.elements import Bushing, as_numbers
from linkwright.model.expression import Expression
from linkwright.model.model_checks import check_bushing

_ZERO = (0.0, 0.0, 0.0)


class Bushings(Forces):
    """Collects bushings."""

    def bushing(
        self,
        first: Place,
        second: Place,
        stiffness: Any,
        torsional_stiffness: Any = 0.0,
        damping: Any = 0.0,
        torsional_damping: Any = 0.0,
        *,
        preload: Any = _ZERO,
        preload_torque: Any = _ZERO,
        name: str | None = None,
    ) -> Bushing:
        """Springs and dampers along and about the three axes of the first frame, as in a rubber bushing.

        The force on the second frame is preload − stiffness · r − damping · ṙ, with r its origin in the first frame;
        the torque is preload torque − torsional stiffness · θ − torsional damping · ω for small turns, with θ the
        rotation vector of its axes in the first frame. For large ones the springs' torque is the derivative of their
        potential ½ Σ kₜ θ², up to half a turn, where θ jumps to the other side.

        - `first`, `second`: bodies or frames on two bodies, as objects or by name; a bushing without load has them in
          one place.
        - `stiffness` (N/m), `torsional_stiffness` (N m/rad; 0), `damping` (N s/m; 0), `torsional_damping` (N m s/rad;
          0): one number or expression of parameters for all three axes, or three.
        - `preload` (N), `preload_torque` (N m): three numbers or expressions, on the second frame; zeros.
        - `name`: unlike those of all drivers and forces; bushing1, bushing2, … without one.

        Returns the `Bushing`. Raises `NameNotFound` for an unknown place or parameter, and `ModelError` for two places
        on one body, a name that is taken, and a stiffness or damping that is negative.

        >>> b = lw.Builder()
        >>> mount = b.bushing(b.ground, b.body("engine", 80.0), (2e5, 2e5, 5e5), 300.0, damping=400.0, name="mount")
        >>> mount.name
        'mount'
        """
        name = self._new_force(name, "bushing")
        what = f"bushing {name!r}"
        ends = self._two(first, second, what)
        laws: list[Expression] = []
        for label, numbers in (
            ("stiffness", stiffness),
            ("torsional stiffness", torsional_stiffness),
            ("damping", damping),
            ("torsional damping", torsional_damping),
        ):
            laws += [self._law(x, (), what=what) for x in self._three(numbers, f"the {label} of {what}")]
        for label, numbers in (("preload", preload), ("preload torque", preload_torque)):
            laws += [self._law(x, (), what=what) for x in as_numbers(numbers, (3,), f"the {label} of {what}")]
        bushing = Bushing(name, *ends, tuple(laws))
        check_bushing(bushing, self._parameters)
        return put(self._forces, bushing)

    @staticmethod
    def _three(numbers: Any, what: str) -> list[Any]:
        """One number for every axis, or three."""
        single = isinstance(numbers, Expression) or np.ndim(numbers) == 0
        return [as_numbers(numbers, (), what).item()] * 3 if single else list(as_numbers(numbers, (3,), what))
