"""Settings of `lw.optimise`: the solver, where it starts, and when it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from linkwright.base.checks import finite_number, whole_number
from linkwright.errors import ModelError, NameNotFound

SOLVERS = ("SLSQP", "trust-constr", "L-BFGS-B", "least-squares")


@dataclass(frozen=True)
class Search:
    """How an optimum is searched for.

    Main arguments:

    - `solver`: one of SciPy's "SLSQP", "trust-constr" and "L-BFGS-B" (bounds of parameters only), or "least-squares"
      for differences from targets; by default "least-squares" for targets without constraints, else "SLSQP".
    - `starts`: from how many places, 1 by default. The first is the model's own values; the others are drawn from
      within the bounds by a Latin hypercube, and the best end counts.
    - `seed`: of these places, a whole number, 0 by default.

    Other arguments:

    - `tolerance`: a number between 0 and 1, 1e-9 by default: the relative change of the objective at which the solver
      ends, and the part of a limit's size by which it may be overstepped, where that is more than 1e-6.
    - `iterations`: the most that a solver takes from each start, 200 by default.
    - `progress`: a function that is called with the evaluations so far and the best objective, after each evaluation.

    `lw.optimise(model, "max(block.x)", {"crank": (0.5, 1.5)}, search=lw.Search(starts=8, seed=1))`
    """

    solver: str | None = None
    starts: int = 1
    seed: int = 0
    tolerance: float = 1e-9
    iterations: int = 200
    progress: Callable[[int, float], None] | None = None

    def __post_init__(self) -> None:
        if self.solver is not None and self.solver not in SOLVERS:
            raise NameNotFound("solver", str(self.solver), list(SOLVERS))
        whole_number("starts", self.starts, 1)
        whole_number("iterations", self.iterations, 1)
        if not 0.0 < finite_number("tolerance", self.tolerance) < 1.0:
            raise ModelError(f"tolerance must be a number between 0 and 1, not {self.tolerance!r}")
