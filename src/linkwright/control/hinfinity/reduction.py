"""Controllers of lower order: Hankel singular values, balanced truncation, and the order that a loop allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import schur, solve_continuous_lyapunov, solve_sylvester  # type: ignore[import-untyped]  # no types

from linkwright.base.arrays import Floats
from linkwright.control.hinfinity.robustness import Norm, hinf_norm
from linkwright.control.linear_systems import (
    HasSystem,
    System,
    gains,
    lft,
    parallel,
    series,
    system,
    to_continuous,
    to_sampled,
)
from linkwright.errors import DesignError, ModelError


@dataclass(frozen=True)
class Reduced(HasSystem):
    """A controller of lower order. `norm` is the closed-loop cost with it, `tried` the cost of each order looked at.

    `hankel` holds the Hankel singular values of the full controller's stable part, `kept` counts its unstable poles.
    """

    system: System
    hankel: Floats
    kept: int
    norm: Norm | None
    tried: dict[int, float]

    @property
    def order(self) -> int:
        """The number of states that are left."""
        return self.system.order

    def __repr__(self) -> str:
        full = self.kept + len(self.hankel)
        unstable = f", {self.kept} of them unstable" if self.kept else ""
        cost = "" if self.norm is None else f", cost {self.norm.upper:.4g}"
        return f"Reduced: {self.order} of {full} states{unstable}{cost}"


def hankel_singular_values(model: Any) -> Floats:
    """The Hankel singular values (n) of the stable part of a `model`, falling: what a balanced state contributes.

    >>> import linkwright as lw
    >>> lw.control.hankel_singular_values(([3.0], [1.0, 2.0])).round(9).tolist()
    [0.75]

    Raises `ModelError` and `ShapeError` where `lw.control.system` does.
    """
    stable = to_continuous(split(system(model))[0])
    return _balancing(stable, stable, stable.order)[0]


def reduce(K: Any, order: int | None = None, *, keep_norm: float = 0.05, loop: Any = None) -> Reduced:
    """`K` by balanced truncation, as a `Reduced`; its unstable poles are kept apart and all of them kept.

    - `order`: the number of states that stay. None takes the smallest order whose closed loop is stable and costs at
      most `keep_norm` (0.05) more than with K itself.
    - `loop`: a design (of `mixed_sensitivity` or `hinf`), or a function from a controller's `System` to the closed
      loop's. With it a chosen order is measured all the same; without it an order must be given. With a design K is
      balanced as that loop sees it too (Enns' weighting), whichever of the two costs less.

    >>> import linkwright as lw
    >>> lw.control.reduce(([1.0, 3.01], [1.0, 4.0, 3.0]), 1).order
    1

    Raises `ModelError` for an order that K cannot have, `DesignError` where the loop is not stable with that order.
    """
    full = system(K, "K")
    if order is None and loop is None:
        raise ModelError("give an order, or the loop= (a design) that decides how far K can be reduced")
    if order is not None and not 0 <= order <= full.order:
        raise ModelError(f"a controller of {full.order} states has no reduced form of order {order}")
    inside, unstable = split(full)
    stable = to_continuous(inside)
    if order is not None and order < unstable.order:
        text = f"K has {unstable.order} unstable poles, which are kept"
        raise ModelError(f"{text}: order {order} is too low, at least {unstable.order} are needed")
    values, *plain = _balancing(stable, stable, stable.order)
    design = None if loop is None else _plant(loop)
    ways = [plain] if design is None else [*_weighted(full, stable, design), plain]

    def of_order(n: int, way: list[Floats]) -> System:
        # The bilinear map keeps Gramians, so the truncation of its image is the image of the truncation.
        small = _truncated(stable, way[0], way[1], n - unstable.order)
        return parallel([small if full.dt is None else to_sampled(small, full.dt), unstable])

    def close(controller: System) -> System:
        return loop(controller) if design is None else lft(design, controller)

    if loop is None:
        assert order is not None
        return Reduced(of_order(order, plain), values, unstable.order, None, {})
    tried: dict[int, float] = {}
    most = hinf_norm(close(full)).upper * (1 + keep_norm)
    for n in range(unstable.order, full.order + 1) if order is None else (order,):
        candidates = [(hinf_norm(close(K_n)), K_n) for K_n in (of_order(n, way) for way in ways)]
        norm, candidate = min(candidates, key=lambda pair: pair[0].upper)
        tried[n] = norm.upper
        if order is not None or norm.upper <= most:
            if not np.isfinite(norm.upper):
                raise DesignError(f"with {n} states the closed loop is not stable: keep more, or leave the order out")
            return Reduced(candidate, values, unstable.order, norm, tried)
    return Reduced(full, values, unstable.order, hinf_norm(close(full)), tried)


def _plant(loop: Any) -> System | None:
    """The generalised plant of a design; None where `loop` is a function."""
    plant: System | None = getattr(loop, "plant", None)
    if plant is None and not callable(loop):
        raise ModelError(f"loop= is a design, or a function of a controller, not {type(loop).__name__}")
    return plant


def _weighted(full: System, stable: System, P: System) -> list[list[Floats]]:
    """Balancing as the loop sees the controller (Enns): what w brings to y, and what an error of u does to z."""
    nu, ny = full.outputs, full.inputs
    m1, p1 = P.inputs - nu, P.outputs - ny
    wide = P.select([*range(P.outputs), *range(p1, P.outputs)], [*range(P.inputs), *range(m1, P.inputs)])
    closed = lft(wide, full)
    if not stable.order or not closed.stable():
        return []
    closed = to_continuous(closed)
    before = series(stable, closed.select(slice(p1, None), slice(0, m1)))
    after = series(closed.select(slice(0, p1), slice(m1, None)), stable)
    return [[*_balancing(before, after, stable.order)[1:]]]


def split(S: System) -> tuple[System, System]:
    """The strictly stable part (with D) and the other one, which add up to S."""
    if not S.order:
        return S, System(S.A, S.B, S.C, np.zeros_like(S.D), S.dt)
    inside = (lambda re, im: re < 0) if S.dt is None else (lambda re, im: np.hypot(re, im) < 1 - 1e-10)
    T, U, k = schur(S.A, output="real", sort=inside)
    B, C = U.T @ S.B, S.C @ U
    T11, T12, T22 = T[:k, :k], T[:k, k:], T[k:, k:]
    # T11 X − X T22 = −T12 parts the two.
    X = solve_sylvester(T11, -T22, -T12) if 0 < k < S.order else np.zeros((k, S.order - k))
    stable = System(T11, B[:k] - X @ B[k:], C[:, :k], S.D, S.dt)
    return stable, System(T22, B[k:], C[:, k:] + C[:, :k] @ X, np.zeros_like(S.D), S.dt)


def _root(W: Floats) -> Floats:
    """R with R Rᵀ = W ≥ 0."""
    values, vectors = np.linalg.eigh((W + W.T) / 2)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _balancing(before: System, after: System, n: int) -> tuple[Floats, Floats, Floats]:
    """Hankel singular values, and the left and right factors of the square-root method.

    They are those of n states that are the last of `before`, up to which inputs reach, and the first of `after`.
    """
    if not n:
        return np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0))
    R = _root(solve_continuous_lyapunov(before.A, -before.B @ before.B.T)[-n:, -n:])
    L = _root(solve_continuous_lyapunov(after.A.T, -after.C.T @ after.C)[:n, :n])
    U, values, Vt = np.linalg.svd(L.T @ R)
    return values, L @ U, R @ Vt.T


def _truncated(S: System, left: Floats, right: Floats, n: int) -> System:
    if n == 0:
        return gains(S.D)
    # Orthonormal bases with the oblique projection between them: well defined for vanishing singular values too.
    W, V = np.linalg.qr(left[:, :n])[0], np.linalg.qr(right[:, :n])[0]
    E = W.T @ V
    M = np.linalg.solve(E, W.T)
    return System(M @ S.A @ V, M @ S.B, S.C @ V, S.D)
