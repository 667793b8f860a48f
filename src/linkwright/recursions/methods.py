"""The ways to forward dynamics by name: each a function of a traversal, gravity and whether wrenches are applied.

The traversal's input `a` is zero; what the function returns is the joint accelerations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwright.recursions import articulated_body, diagonal, mass_matrix, triangular, virtual_work

METHODS: dict[str, Callable[..., Any]] = {
    "articulated-body": articulated_body.forward_dynamics,
    "diagonal": diagonal.forward_dynamics,
    "triangular": triangular.forward_dynamics,
    "mass-matrix": mass_matrix.forward_dynamics,
    "virtual-work": virtual_work.forward_dynamics,
}
