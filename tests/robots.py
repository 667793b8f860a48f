"""The robots of the wheel `example-robot-data`, and how Pinocchio's coordinates map to ours."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import linkwright as lw

BROKEN = {"ur3.urdf", "falcon.urdf"}


@cache
def folder() -> Path:
    spec = importlib.util.find_spec("cmeel")
    assert spec is not None, "pip install example-robot-data"
    assert spec.origin is not None
    return Path(spec.origin).parents[1] / "cmeel.prefix/share/example-robot-data/robots"


def files() -> list[Path]:
    """Every URDF of the wheel."""
    return sorted(folder().rglob("*.urdf"))


def robots() -> list[Path]:
    """The 75 that are robots."""
    return [f for f in files() if f.name not in BROKEN]


def identity(path: Path) -> str:
    return path.relative_to(folder()).as_posix().replace("/urdf", "").replace("/robots", "")


def find(name: str) -> Path:
    return next(f for f in files() if f.name == name)


class Twin:
    """A robot read by Pinocchio and by Linkwright, with random states in both conventions."""

    def __init__(self, path: Path, base: str, *, follow: bool = False, seed: int = 0) -> None:
        import pinocchio as pin

        root = pin.JointModelFreeFlyer() if base == "floating" else None
        options = {"mimic": True} if follow else {}
        if root is None:
            self.model = pin.buildModelFromUrdf(str(path), **options)
        else:
            self.model = pin.buildModelFromUrdf(str(path), root, **options)
        self.data = self.model.createData()
        self.mech = lw.load(path, base=base, mimic="follow" if follow else "independent")
        self.rng = np.random.default_rng(seed)
        self.number()

    def number(self) -> None:
        """Where each of Pinocchio's coordinates stands in ours."""
        self.v_of = np.full(self.model.nv, -1)
        self.q_of: list[tuple[int, int, str]] = []  # (Pinocchio's place, ours, kind)
        for joint in self.mech.joints:
            if joint.mimics or joint.v_slice.start == joint.v_slice.stop:
                continue
            number = self.model.getJointId(joint.name)
            iq, iv, nv = self.model.idx_qs[number], self.model.idx_vs[number], self.model.nvs[number]
            self.v_of[iv : iv + nv] = np.arange(joint.v_slice.start, joint.v_slice.stop)
            kind = "continuous" if self.model.nqs[number] == 2 and joint.kind == "revolute" else joint.kind
            self.q_of.append((iq, joint.q_slice.start, kind))
        assert (self.v_of >= 0).all()

    def states(self, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Random q, v, tau in our convention."""
        q = np.tile(self.mech.neutral(), (count, 1))
        for _, at, kind in self.q_of:
            if kind == "free":
                q[:, at : at + 3] = self.rng.uniform(-1, 1, (count, 3))
                e = self.rng.standard_normal((count, 4))
                q[:, at + 3 : at + 7] = e / np.linalg.norm(e, axis=1, keepdims=True)
            elif kind == "planar":
                q[:, at : at + 3] = self.rng.uniform(-1, 1, (count, 3))
            else:
                q[:, at] = self.rng.uniform(-1.5, 1.5, count)
        v, tau = self.rng.standard_normal((2, count, self.mech.nv))
        return q, v, tau

    def pin_q(self, q: np.ndarray) -> np.ndarray:
        """One configuration in Pinocchio's convention."""
        out = np.zeros(self.model.nq)
        for theirs, ours, kind in self.q_of:
            if kind == "free":
                out[theirs : theirs + 3] = q[ours : ours + 3]
                out[theirs + 3 : theirs + 7] = q[[ours + 4, ours + 5, ours + 6, ours + 3]]
            elif kind == "continuous":
                out[theirs : theirs + 2] = np.cos(q[ours]), np.sin(q[ours])
            elif kind == "planar":
                out[theirs : theirs + 4] = q[ours], q[ours + 1], np.cos(q[ours + 2]), np.sin(q[ours + 2])
            else:
                out[theirs] = q[ours]
        return out

    def pin_v(self, v: np.ndarray) -> np.ndarray:
        return v[self.v_of]

    def ours(self, x: np.ndarray) -> np.ndarray:
        """A vector or matrix over rates from Pinocchio's order to ours."""
        out = np.empty_like(x)
        if x.ndim == 1:
            out[self.v_of] = x
        else:
            out[np.ix_(self.v_of, self.v_of)] = x
        return out

    def columns(self, x: np.ndarray) -> np.ndarray:
        """A (6, nv) Jacobian from Pinocchio's order to ours."""
        out = np.empty_like(x)
        out[:, self.v_of] = x
        return out


def relative(a: Any, b: Any) -> float:
    """The largest difference relative to the largest entry of b (of at least 1e-6: beneath it is rounding)."""
    a, b = np.asarray(a), np.asarray(b)
    if b.size == 0:
        return 0.0
    return float(np.max(np.abs(a - b)) / max(float(np.max(np.abs(b))), 1e-6))
