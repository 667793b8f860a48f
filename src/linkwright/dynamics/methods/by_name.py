"""The ways to forward dynamics by name: each a function of a traversal, gravity and whether wrenches are applied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwright.dynamics.methods import articulated_body, diagonal, triangular, virtual_work
from linkwright.dynamics.methods.mass_matrix import forward_dynamics

METHODS: dict[str, Callable[..., Any]] = {
    "articulated-body": articulated_body.forward_dynamics,
    "diagonal": diagonal.forward_dynamics,
    "triangular": triangular.forward_dynamics,
    "mass-matrix": forward_dynamics,
    "virtual-work": virtual_work.forward_dynamics,
}
