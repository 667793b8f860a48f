"""Continuous systems at a sampling period, and what a loop costs once its controller is sampled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from linkwright.base.arguments import positive_number
from linkwright.control.hinfinity.mixed_sensitivity import MixedSensitivity, Problem
from linkwright.control.hinfinity.robustness import Norm, hinf_norm
from linkwright.control.linear_systems import HasSystem, System, system, to_sampled
from linkwright.errors import DesignError, ModelError

Method = Literal["tustin", "zoh"]


@dataclass(frozen=True)
class Sampled(HasSystem):
    """A sampled controller; with a design: the cost of the sampled loop, and that of the continuous one."""

    system: System
    norm: Norm | None = None
    continuous: Norm | None = None

    def __repr__(self) -> str:
        text = f"Sampled: {self.system.order} states, every {self.system.dt:g} s"
        if self.norm is not None:
            text += f", cost {self.norm.upper:.4g}"
        if self.continuous is not None:
            text += f" ({self.continuous.upper:.4g} before it was sampled)"
        return text


def sampled(model: Any, dt: float, method: Method = "tustin", prewarp: float | None = None) -> System:
    """A system at the period dt; one that is sampled with it already is left alone."""
    S = system(model)
    dt = positive_number("the sampling period dt", dt)
    if S.dt is not None:
        if abs(S.dt - dt) > 1e-9 * dt:
            raise ModelError(f"a system sampled every {S.dt:g} s cannot be sampled again every {dt:g} s; resample it")
        return S
    if method == "tustin":
        if prewarp is not None and not 0 < prewarp < np.pi / dt:
            raise ModelError(f"prewarp is a frequency below {np.pi / dt:g} rad/s, half the sampling's; not {prewarp!r}")
        return to_sampled(S, dt, 2 / dt if prewarp is None else prewarp / np.tan(prewarp * dt / 2))
    if method == "zoh":
        if prewarp is not None:
            raise ModelError('prewarp belongs to method="tustin"')
        from scipy.linalg import expm  # type: ignore[import-untyped]  # SciPy has no types

        n, m = S.order, S.inputs
        held = expm(np.block([[S.A, S.B], [np.zeros((m, n + m))]]) * dt)
        return System(held[:n, :n], held[:n, n:], S.C, S.D, dt)
    raise ModelError(f'method is "tustin" or "zoh", not {method!r}')


def discretise(
    K: Any, dt: float, *, method: Method = "tustin", prewarp: float | None = None, loop: MixedSensitivity | None = None
) -> Sampled:
    """A continuous controller at the period dt (s): Tustin's rule, exact at prewarp (rad/s), or zero-order hold.

    loop: the design that K came from. Its plant is then sampled with a hold, its filter and weights by Tustin's rule,
    and the cost is measured again; a loop that sampling makes unstable is an error.
    """
    controller = sampled(system(K, "K"), dt, method, prewarp)
    if loop is None:
        return Sampled(controller)
    problem = sampled_problem(loop.problem, dt)
    closed = problem.loop(controller)
    if not closed.stable():
        worst = float(np.abs(closed.poles()).max())
        text = f"sampled every {dt:g} s the loop is unstable (a pole of modulus {worst:.4g})"
        raise DesignError(f"{text}: sample faster, or design with the sampled plant from the start")
    return Sampled(controller, hinf_norm(closed), loop.cost() if loop.problem.G.dt is None else None)


def sampled_problem(problem: Problem, dt: float) -> Problem:
    """The plant with a zero-order hold, weights and filter by Tustin's rule."""
    W_T, W_S, W_U = (
        None if weight is None else sampled(weight, dt) for weight in (problem.W_T, problem.W_S, problem.W_U)
    )
    return Problem(sampled(problem.G, dt, "zoh"), W_T, W_S, W_U, sampled(problem.F, dt), problem.cost)
