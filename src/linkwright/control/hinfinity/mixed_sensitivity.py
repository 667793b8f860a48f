"""Mixed-sensitivity H∞ design: weights and a plant in, a verified controller with its margins out; and what the loop
costs once the controller is sampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from linkwright.base.arguments import takes_settings
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.control.hinfinity.robustness import Margins, Norm, hinf_norm, loop_margins
from linkwright.control.hinfinity.synthesis import Design, HinfSettings, hinf
from linkwright.control.linear_systems import (
    HasSystem,
    Method,
    System,
    block_diagonal,
    diagonal,
    gains,
    lft,
    period,
    sampled,
    series,
    system,
)
from linkwright.errors import DesignError, ModelError

Cost = Literal["paper", "standard"]


@dataclass(frozen=True)
class Problem:
    """A plant with its weights and filter, all continuous or all sampled with one period."""

    G: System
    W_T: System | None
    W_S: System | None
    W_U: System | None
    F: System
    cost: Cost

    def generalised(self) -> System:
        """P of [z; y] = P [w; u]; the loop is closed with u = K y."""
        return _paper(self) if self.cost == "paper" else _standard(self)

    def loop(self, K: System) -> System:
        """From w to z, the cost, with K in place."""
        return lft(self.generalised(), K)

    def sampled(self, dt: float) -> Problem:
        """The plant with a zero-order hold at the period dt (s), weights and filter by Tustin's rule."""
        W_T, W_S, W_U = (None if weight is None else sampled(weight, dt) for weight in (self.W_T, self.W_S, self.W_U))
        return Problem(sampled(self.G, dt, "zoh"), W_T, W_S, W_U, sampled(self.F, dt), self.cost)


@dataclass(frozen=True)
class MixedSensitivity(Design):
    """A mixed-sensitivity design. `K` closes the loop with negative feedback: u = −K F y, or u = K F (r − y).

    `problem` has the plant and its weights, `baseline` is the cost of doing nothing, K = 0: None where the plant is not
    stable by itself. All else is that of a `Design`.
    """

    problem: Problem = field(kw_only=True)
    baseline: float | None = field(kw_only=True)

    @cached_property
    def margins(self) -> Margins:
        """Gain, phase and delay margins, and the multiplicative errors of G that the loop endures."""
        return loop_margins(self.problem.G, self.system, self.problem.F, self.problem.W_T)

    def cost(self, G: Any = None, K: Any = None) -> Norm:
        """The norm of the stacked cost with another plant, another controller, or both; infinite where unstable."""
        problem = self.problem if G is None else replace(self.problem, G=system(G, "G"))
        return hinf_norm(problem.loop(self.system if K is None else system(K, "K")))

    def __str__(self) -> str:
        base = "unstable" if self.baseline is None else f"{self.baseline:.6g}"
        return f"{super().__str__()}\n  without control (K = 0): {base}\n  {self.margins}"


@takes_settings(settings=HinfSettings)
def mixed_sensitivity(
    G: Any,
    W_T: Any = None,
    W_S: Any = None,
    W_U: Any = None,
    *,
    filter: Any = None,
    cost: Cost = "paper",
    dt: float | None = None,
    settings: HinfSettings | None = None,
) -> MixedSensitivity:
    """The controller that minimises a stacked cost of weighted loop functions of the plant G.

    - `G`: the plant. `W_T`, `W_S`, `W_U`: stable weights, of one signal or of all; None where there is none.
    - `filter`: a low-pass F between the plant's output and K; it is part of the loop, and K is returned without it;
      none.
    - `cost`: "paper" or "standard".
      - "paper": ‖[W_T K(I+GK)⁻¹G; W_S G(I+KG)⁻¹]‖∞ (Nakamura, Yamane, Okada, Komine): W_T bounds the plant's
        multiplicative error, W_S weighs what a disturbance at the plant's input leaves at its output; u = −K y.
      - "standard": ‖[W_S S; W_U K S; W_T T]‖∞ with S = (I+GK)⁻¹, T = GKS; any of the three may be left out.
    - `dt`: the sampling period (s) of numbers and of (num, den); None for continuous ones. G and the weights are
      continuous or all sampled with one period.
    - `settings`: the `HinfSettings` of the search for γ; their defaults.

    >>> import linkwright as lw
    >>> design = lw.control.mixed_sensitivity(([1.0], [1.0, 1.0]), W_S=([1.0], [1.0, 0.1]), W_U=0.5, cost="standard")
    >>> design.norm.upper <= design.gamma
    True

    Returns a `Design` that has `margins`, `baseline` (the cost with K = 0) and `cost(G, K)` too. Raises `ModelError`
    and `ShapeError` for systems that cannot be connected, `DesignError` for weights that are not stable, and where
    `hinf` raises it.
    """
    problem = _problem(G, W_T, W_S, W_U, filter, cost, dt)
    ny, nu = problem.F.outputs, problem.G.inputs
    P = problem.generalised()
    design = hinf(P, ny, nu, settings=settings)
    nothing = hinf_norm(problem.loop(gains(np.zeros((nu, ny)), P.dt)))
    baseline = float(nothing.upper) if np.isfinite(nothing.upper) else None
    notes = list(design.warnings)
    if cost == "paper" and baseline is not None and design.norm.upper > 0.98 * baseline:
        text = f"the controller gains little over none: {design.norm.upper:.4g} against {baseline:.4g} with K = 0"
        notes.append(f"{text}; lower W_T, or raise W_S where the plant is to be improved")
    parts = {**vars(design), "warnings": tuple(notes)}
    return MixedSensitivity(**parts, problem=problem, baseline=baseline)


def _problem(G: Any, W_T: Any, W_S: Any, W_U: Any, F: Any, cost: Cost, dt: float | None) -> Problem:
    if cost not in ("paper", "standard"):
        raise ModelError(f'cost is "paper" or "standard", not {cost!r}')
    plant = system(G, "G", dt)
    ny, nu = plant.outputs, plant.inputs
    clock = plant.dt if plant.dt is not None else dt
    if dt is not None and plant.dt is not None and abs(plant.dt - dt) > 1e-9 * dt:
        raise ModelError(f"G is sampled every {plant.dt:g} s, not every {dt:g} s, the dt that is given")
    where_T = nu if cost == "paper" else ny
    weights = {
        "W_T": None if W_T is None else diagonal(W_T, where_T, "W_T", clock),
        "W_S": None if W_S is None else diagonal(W_S, ny, "W_S", clock),
        "W_U": None if W_U is None else diagonal(W_U, nu, "W_U", clock),
    }
    if cost == "paper" and (weights["W_T"] is None or weights["W_S"] is None):
        raise ModelError('the paper\'s cost needs W_T and W_S; with cost="standard" any of them may be left out')
    if cost == "paper" and weights["W_U"] is not None:
        raise ModelError('the paper\'s cost has no W_U: put the control effort into W_T, or take cost="standard"')
    if not any(w is not None for w in weights.values()):
        raise ModelError("give at least one of W_S, W_U and W_T: without a cost there is nothing to design")
    low_pass = gains(np.eye(ny), clock) if F is None else diagonal(F, ny, "the filter", clock)
    for name, weight in [*weights.items(), ("the filter", low_pass)]:
        if weight is not None and not weight.stable():
            text = f"{name} is not stable (an integrator, or a pole on the wrong side)"
            raise DesignError(f"{text}: give it a slow stable pole instead, such as 1/(s + 0.01)")
    everything = [plant, low_pass, *(w for w in weights.values() if w is not None)]
    period(*everything)
    return Problem(plant, weights["W_T"], weights["W_S"], weights["W_U"], low_pass, cost)


def _paper(p: Problem) -> System:
    """[W_T u; W_S G (w+u); −F G (w+u)], the states of G held once."""
    nu, ny = p.G.inputs, p.G.outputs
    control, zero = np.hstack([np.zeros((nu, nu)), np.eye(nu)]), np.zeros((ny, 2 * nu))
    both = np.hstack([np.eye(nu), np.eye(nu)])
    return _behind(p.G, both, [(p.W_T, control, 0.0), (p.W_S, zero, 1.0), (p.F, zero, -1.0)])


def _standard(p: Problem) -> System:
    """[W_S e; W_U u; W_T y; F e] with e = r − y, y = G u, the states of G held once."""
    nu, ny = p.G.inputs, p.G.outputs
    reference, control = np.eye(ny, ny + nu), np.eye(nu, ny + nu, k=ny)
    blocks = [
        (p.W_S, reference, -1.0),
        (p.W_U, control, 0.0),
        (p.W_T, np.zeros((ny, ny + nu)), 1.0),
        (p.F, reference, -1.0),
    ]
    return _behind(p.G, control, blocks)


def _behind(G: System, external: Floats, blocks: Sequence[tuple[System | None, Floats, float]]) -> System:
    """Blocks behind a plant that external signals enter by the matrix `external`; P from these signals to the blocks.

    Each block has a matrix by which the external signals enter it, and a factor of the plant's output that is added.
    """
    wired = [(block, enters, factor) for block, enters, factor in blocks if block is not None]
    C = np.vstack([factor * G.C for _, _, factor in wired])
    D = np.vstack([enters + factor * G.D @ external for _, enters, factor in wired])
    front = System(G.A, G.B @ external, C, D, G.dt)
    return series(block_diagonal([block for block, _, _ in wired]), front)


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


def discretise(
    K: Any, dt: float, *, method: Method = "tustin", prewarp: float | None = None, loop: MixedSensitivity | None = None
) -> Sampled:
    """A continuous controller `K` at the period `dt` (s), as a `Sampled` with its `system` and python-control's `K`.

    - `method`: "tustin" (the default), exact at `prewarp` (rad/s, None), or "zoh", a zero-order hold.
    - `loop`: the design that K came from, None. Its plant is then sampled with a hold, its filter and weights by
      Tustin's rule, and the cost is measured again as `norm`.

    >>> import linkwright as lw
    >>> lw.control.discretise(([1.0], [1.0, 1.0]), 0.1).system.poles().real.round(6).tolist()
    [0.904762]

    Raises `ModelError` for a period, method or prewarp that cannot be used, `DesignError` where sampling makes the loop
    unstable.
    """
    controller = sampled(system(K, "K"), dt, method, prewarp)
    if loop is None:
        return Sampled(controller)
    closed = loop.problem.sampled(dt).loop(controller)
    if not closed.stable():
        worst = float(np.abs(closed.poles()).max())
        text = f"sampled every {dt:g} s the loop is unstable (a pole of modulus {worst:.4g})"
        raise DesignError(f"{text}: sample faster, or design with the sampled plant from the start")
    return Sampled(controller, hinf_norm(closed), loop.cost() if loop.problem.G.dt is None else None)
