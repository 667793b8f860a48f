"""Trees of telling shapes, as parents that come before their children (−1: ground)."""

from __future__ import annotations

import numpy as np


def chain(n: int) -> np.ndarray:
    return np.arange(-1, n - 1)


def star(n: int) -> np.ndarray:
    return np.minimum(np.arange(-1, n - 1), 0)


def caterpillar(n: int) -> np.ndarray:
    """A spine with a leg on every second link."""
    return np.array([-1] + [i - 1 if i % 2 else i - 2 for i in range(1, n)])


def broom(n: int) -> np.ndarray:
    """A handle of half the links, the rest at its end."""
    return np.minimum(chain(n), n // 2)


def comb(n: int) -> np.ndarray:
    """A spine of √n links with a chain of √n on each."""
    side = int(np.sqrt(n))
    parent = chain(side).tolist()
    for k in range(n - side):
        parent.append(k % side if k < side else side + k - side)
    return np.array(parent)


def uniform(n: int) -> np.ndarray:
    """Every link on any earlier one."""
    rng = np.random.default_rng(n)
    return np.array([-1] + [int(rng.integers(i)) for i in range(1, n)])


def forest(n: int) -> np.ndarray:
    """Chains side by side, each from ground."""
    return np.where(np.arange(n) % 7 == 0, -1, chain(n))


SHAPES = {f.__name__: f for f in (chain, star, caterpillar, broom, comb, uniform, forest)}
