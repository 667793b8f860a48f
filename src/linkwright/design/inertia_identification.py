"""Inertial parameters of links from a recorded motion: linear least squares on the regressor, with confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import real_array
from linkwright.base.arrays import Floats
from linkwright.errors import ModelError, ShapeError


class Linear(Protocol):
    """What forces are linear in: a regressor, or its base parameters (`lw.equations(mech).base`)."""

    @property
    def names(self) -> tuple[str, ...]: ...
    def matrix(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Floats: ...


@dataclass(frozen=True, eq=False)
class Identified:
    """Identified parameters, the deviations that noise leaves them, and how well the motion distinguishes them."""

    names: tuple[str, ...]
    values: Floats
    covariance: Floats
    noise: Floats  # (n,): the standard deviation of each joint's force about the model
    condition: float  # of the scaled equations: large where the motion excites some parameters little
    samples: int

    @property
    def deviations(self) -> Floats:
        """The standard deviation of each parameter."""
        return np.sqrt(np.diag(self.covariance))

    def interval(self, confidence: float = 0.95) -> Floats:
        """(p, 2): between which values each parameter is, with this confidence."""
        from scipy.stats import norm  # type: ignore[import-untyped]  # weight: scipy

        if not 0.0 < confidence < 1.0:
            raise ModelError(f"confidence is a number between 0 and 1, not {confidence!r}")
        half = norm.ppf(0.5 + 0.5 * confidence) * self.deviations
        return np.stack([self.values - half, self.values + half], axis=1)

    def report(self) -> str:
        """A table of the parameters with their deviations."""
        wide = max(len(name) for name in self.names)
        lines = [f"{len(self.names)} parameters from {self.samples} samples, condition {self.condition:.3g}"]
        for name, value, deviation in zip(self.names, self.values, self.deviations, strict=True):
            part = f"  ({100 * deviation / abs(value):.2g} %)" if value else ""
            lines.append(f"  {name.ljust(wide)}  {value:12.6g} ± {deviation:.2g}{part}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Identified: {len(self.names)} parameters from {self.samples} samples>"


def identified(model: Linear, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike) -> Identified:
    """The parameters π of F = Y(q, q̇, q̈) π that fit measured forces best, each joint weighed by its own noise.

    Arrays are (T, n), one row per sample. A first fit shows the noise of each joint, a second one weighs by it. A
    motion that does not distinguish the parameters is an error that names them.
    """
    arrays = [real_array(name, x) for name, x in zip(("q", "v", "a", "tau"), (q, v, a, tau), strict=True)]
    for name, x in zip(("q", "v", "a", "tau"), arrays, strict=True):
        if x.ndim != 2 or x.shape != arrays[0].shape:
            text = f"{name} has shape {x.shape}; give (samples, joints), for all of q, v, a and tau alike"
            raise ShapeError(text, given=x.shape, wanted=arrays[0].shape)
        if not np.isfinite(x).all():
            raise ModelError(f"{name} has numbers that are not finite; leave these samples out", element=name)
    y = np.asarray(model.matrix(*arrays[:3]))  # (T, n, p)
    samples, joints, p = y.shape
    force = arrays[3]
    if samples * joints <= p:
        raise ModelError(f"{samples} samples of {joints} joints are too few for {p} parameters; record more")
    noise = np.ones(joints)
    for _ in range(2):
        rows = (y / noise[:, None]).reshape(-1, p)
        sizes = np.linalg.norm(rows, axis=0)
        _check(model.names, rows, sizes)
        x, _, _, s = np.linalg.lstsq(rows / sizes, (force / noise).reshape(-1), rcond=None)
        values = x / sizes
        left = force - y @ values
        noise = np.sqrt(np.sum(left**2, axis=0) / max(samples - p / joints, 1.0))
        noise = np.maximum(noise, 1e-12 * max(float(np.abs(force).max()), 1e-300))
    rows = (y / noise[:, None]).reshape(-1, p)
    scaled = rows / sizes
    covariance = np.linalg.inv(scaled.T @ scaled) / np.outer(sizes, sizes)
    return Identified(tuple(model.names), values, covariance, noise, float(s[0] / s[-1]), samples)


def _check(names: Any, rows: Floats, sizes: Floats) -> None:
    """Refuse a motion that some parameters do not show in, alone or apart from others."""
    idle = np.flatnonzero(sizes <= 1e-10 * sizes.max(initial=0.0))
    if len(idle):
        listed = ", ".join(names[k] for k in idle[:6])
        advice = "move the joints that it needs, or leave the parameter out"
        raise ModelError(f"the motion does not show {listed}; {advice}")
    u = np.linalg.svd(rows / sizes, full_matrices=False)[1:]
    if u[0][-1] < 1e-9 * u[0][0]:
        alike = np.flatnonzero(np.abs(u[1][-1]) > 0.1)
        listed = ", ".join(names[k] for k in alike[:6])
        raise ModelError(f"the motion does not tell {listed} apart; take base parameters, or a richer motion")
