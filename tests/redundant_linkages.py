"""Linkages whose equations repeat each other in every position, with one freedom, and an oracle that knows only poses.

Each is a chain of revolute or prismatic joints whose links are given by Denavit and Hartenberg's numbers or by points,
closed by one joint or several. Nothing of what is tested here is used by the oracle: G is a difference quotient of the
gaps between poses, and the motion of one freedom obeys Lagrange's equation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import linkwright as lw

SOLID = (0.1, 0.02, 0.03), (0.02, 0.03, 0.04, 0.001, 0.002, 0.003)
Row = tuple[float, float, float]  # length a, twist α, offset d


def loop(
    name: str, rows: Sequence[Row], gravity: Sequence[float] = (0.0, 0.0, -9.81), *, beside: int = 0
) -> lw.Mechanism:
    """A single loop of revolute joints: from each axis to the next a shift d along it, then a along x and a twist.

    `beside`: so many links of a chain of their own, which make the mechanism large.
    """
    frames = []
    for a, alpha, d in rows:
        c, s = np.cos(alpha), np.sin(alpha)
        frames.append((np.array([[1.0, 0, 0], [0, c, -s], [0, s, c]]), np.array([a, 0.0, d])))
    with lw.Builder(name) as b:
        b.gravity(gravity)
        before = b.frame("ground")
        for k, (r, p) in enumerate(frames[:-1]):
            body = b.body(f"link{k}", 1.0 + k, *SOLID)
            b.joint("revolute", before, body, f"joint{k}")
            before = b.frame(body, r, p)
        r, p = frames[-1]
        b.joint("revolute", before, b.frame("ground", r.T, -r.T @ p), "last", cut=True)
        before = b.frame("ground", np.eye(3), (3.0, 0.0, 0.0))
        for k in range(beside):
            body = b.body(f"beside{k}", 1.0, (0.05, 0.0, 0.0), (0.01, 0.01, 0.01))
            b.joint("revolute", before, body, f"chain{k}")
            before = b.frame(body, np.eye(3), (0.1, 0.0, 0.0))
    return b.build()


def bennett_rows(a: float, alpha: float, beta: float, digits: int | None = None) -> list[Row]:
    """Opposite links equal, sin α / a = sin β / b; with `digits`, lengths are rounded to so many."""
    lengths = [a, a * np.sin(beta) / np.sin(alpha)]
    if digits is not None:
        lengths = [round(x, digits) for x in lengths]
    return [(lengths[0], alpha, 0.0), (lengths[1], beta, 0.0)] * 2


def bricard_rows(twist: float = np.pi / 2) -> list[Row]:
    """A trihedral 6R: a₁² + a₃² + a₅² = a₂² + a₄² + a₆², twists of a quarter by turns."""
    lengths = (0.5, 0.6, 0.7, 0.4, np.sqrt(0.5**2 + 0.7**2 + 0.45**2 - 0.6**2 - 0.4**2), 0.45)
    order = (lengths[0], lengths[1], lengths[2], lengths[3], lengths[5], lengths[4])
    twists = (twist, 3 * twist) * 3
    return [(a, alpha, 0.0) for a, alpha in zip(order, twists, strict=True)]


def line_symmetric_rows() -> list[Row]:
    """Bricard's line-symmetric 6R: the second half repeats the first."""
    return [(0.5, 0.9, 0.1), (0.4, 1.3, -0.2), (0.6, 0.7, 0.15)] * 2


def goldberg_rows(a: float = 0.5, alpha: float = 0.5, beta: float = 0.9, gamma: float = 1.2) -> list[Row]:
    """Goldberg's 5R: two Bennett linkages with a link in common, which is left out."""
    ratio = a / np.sin(alpha)
    b, c = ratio * np.sin(beta), ratio * np.sin(gamma)
    # Links a and b of the one, a and c of the other; the joints that fall together leave b + c in line.
    return [(a, alpha, 0.0), (b, beta, 0.0), (a, alpha, 0.0), (c, gamma, 0.0), (b + c, beta + gamma, 0.0)]


def _joint(b: lw.Builder, kind: str, one: object, two: object, at: Sequence[float], axis: Sequence[float], **more):
    """A joint at a point along an axis, in the axes of the drawing: all bodies are drawn at the origin."""
    h = np.array(axis, dtype=float)
    f = np.cross(h, [0.3, 0.5, 0.8])
    f /= np.linalg.norm(f)
    r = np.stack([f, np.cross(h, f), h], axis=1)
    return b.joint(kind, b.frame(one, r, np.array(at, float)), b.frame(two, r, np.array(at, float)), **more)


def sarrus(angle: float = 0.6) -> lw.Mechanism:
    """Two legs of three parallel axes each, at right angles: the platform goes straight up."""
    up, out, legs = np.sin(angle), np.cos(angle), (((1.0, 0, 0), (0.0, 1, 0)), ((0.0, 1, 0), (-1.0, 0, 0)))
    with lw.Builder("sarrus") as b:
        b.gravity((0, 0, -9.81))
        platform = b.body("platform", 2.0, (0, 0, 2 * up), (0.1, 0.1, 0.2))
        for k, (side, axis) in enumerate(legs):
            foot, knee, hip = (np.array(side) * (1 + x) + (0, 0, z) for x, z in ((0, 0), (out, up), (0, 2 * up)))
            lower = b.body(f"lower{k}", 1.0, (foot + knee) / 2, (0.1, 0.1, 0.1))
            upper = b.body(f"upper{k}", 1.0, (knee + hip) / 2, (0.1, 0.1, 0.1))
            _joint(b, "revolute", "ground", lower, foot, axis, name=f"foot{k}")
            _joint(b, "revolute", lower, upper, knee, axis, name=f"knee{k}")
            _joint(b, "revolute", upper, platform, hip, axis, name=f"hip{k}", cut=k == 1)
    return b.build()


def scissors(stages: int, angle: float = 0.6) -> lw.Mechanism:
    """A lift of crossed bars in a plane askew to all axes; its foot slides."""
    turn = lw_turn()
    wide, high = np.cos(angle), np.sin(angle)

    def at(x: float, z: float) -> np.ndarray:
        return turn @ np.array([x, 0.0, z])

    with lw.Builder("scissors") as b:
        b.gravity(turn @ (0, 0, -9.81))
        across, along = turn @ (0.0, 1.0, 0.0), turn @ (1.0, 0.0, 0.0)
        slider = b.body("slider", 0.5, at(wide, 0), (0.01, 0.01, 0.01))
        _joint(b, "prismatic", "ground", slider, at(wide, 0), along, name="slide")
        below: tuple = ("ground", slider)
        for k in range(stages):
            rising, falling = (b.body(f"{n}{k}", 1.0, at(wide / 2, (k + 0.5) * high), (0.1, 0.1, 0.1)) for n in "rf")
            _joint(b, "revolute", below[0], rising, at(0, k * high), across, name=f"left{k}")
            _joint(b, "revolute", rising, falling, at(wide / 2, (k + 0.5) * high), across, name=f"middle{k}")
            _joint(b, "revolute", below[1], falling, at(wide, k * high), across, name=f"right{k}", cut=True)
            below = (falling, rising)
    return b.build()


def lw_turn() -> np.ndarray:
    """A rotation that makes no axis another."""
    q, _ = np.linalg.qr(np.array([[0.8, 0.3, 0.5], [-0.2, 0.9, 0.3], [0.4, -0.5, 0.7]]))
    return q * np.sign(np.linalg.det(q))


def parallelogram() -> tuple[lw.Mechanism, np.ndarray]:
    """Two equal cranks and a coupler, in one line where q is zero; and how rates go together elsewhere."""
    with lw.Builder("parallelogram") as b:
        b.gravity((0.0, -9.81, 0.0))
        first, coupler, second = (b.body(n, 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1)) for n in "abc")
        b.joint("revolute", b.triad(b.ground), b.triad(first), "first")
        b.joint("revolute", b.triad(first, (1, 0, 0)), b.triad(coupler), "near")
        b.joint("revolute", b.triad(b.ground, (2, 0, 0)), b.triad(second), "last")
        b.joint("revolute", b.triad(coupler, (2, 0, 0)), b.triad(second, (1, 0, 0)), "far", cut=True)
    mech = b.build()
    way = np.zeros(3)
    for name, sign in (("first", 1.0), ("near", -1.0), ("last", 1.0)):
        way[mech.joints[name].v_slice] = sign
    return mech, way


# -- the oracle ---------------------------------------------------------------------------------------------------
_STEP, _SIDES = 2e-3, np.arange(-3, 4)
_FIRST = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60.0
_SECOND = np.array([2, -27, 270, -490, 270, -27, 2]) / 180.0


class Oracle:
    """Gaps of the joints that close loops, from poses alone, and accelerations by dense least squares."""

    def __init__(self, mech: lw.Mechanism) -> None:
        self.mech, d = mech, mech.description
        self.ends = []
        for j in mech.tree.topology.loops:
            sides = [
                (int(body), r, p) for body, r, p in ((d.parent[j], d.ri[j], d.pi[j]), (d.child[j], d.rj[j], d.pj[j]))
            ]
            self.ends.append(sides)

    def gaps(self, q: np.ndarray) -> np.ndarray:
        """(..., 5 loops): of revolute joints, between their points and between their axes."""
        parts = []
        for sides in self.ends:
            frames = []
            for body, r, p in sides:
                pose = self.mech.pose(q, self.mech.description.body_names[body]) if body >= 0 else np.eye(4)
                frames.append((pose[..., :3, :3] @ r, pose[..., :3, :3] @ p + pose[..., :3, 3]))
            (r0, p0), (r1, p1) = frames
            apart = np.einsum("...ji,...j->...i", np.broadcast_to(r0, r1.shape) if r0.ndim < r1.ndim else r0, p1 - p0)
            axis = np.einsum("...ji,...j->...i", np.broadcast_to(r0, r1.shape) if r0.ndim < r1.ndim else r0, r1[..., 2])
            parts.append(np.concatenate([apart, axis[..., :2]], axis=-1))
        return np.concatenate(parts, axis=-1)

    def along(self, q: np.ndarray, way: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first and second derivatives of the gaps along a way, by differences of sixth order."""
        values = self.gaps(q + _STEP * _SIDES[:, None] * way)
        return _FIRST @ values / _STEP, _SECOND @ values / _STEP**2

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        return np.stack([self.along(q, e)[0] for e in np.eye(self.mech.nv)], axis=1)

    def closed(self, q: np.ndarray) -> np.ndarray:
        """The nearest q without gaps."""
        for _ in range(40):
            step = np.linalg.lstsq(self.jacobian(q), -self.gaps(q), rcond=1e-6)[0]
            q = q + step * min(1.0, 0.3 / max(np.abs(step).max(), 1e-300))
        assert np.abs(self.gaps(q)).max() < 1e-9, "the guess leads nowhere"
        return q

    def freedom(self, q: np.ndarray) -> np.ndarray:
        """The rates that close no gap, one column each: those of the least singular value, and there is one."""
        return np.linalg.svd(self.jacobian(q))[2][-1:].T

    def acceleration(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        mech, z = self.mech, self.freedom(q)
        g = self.jacobian(q)
        u, s, w = np.linalg.svd(g)
        rank = mech.nv - 1
        some = w[:rank].T @ ((u[:, :rank].T @ -self.along(q, v)[1]) / s[:rank])
        m, h = mech.mass_matrix(q), mech.bias_forces(q, v)
        return some + z @ np.linalg.solve(z.T @ m @ z, z.T @ (tau - h - m @ some))
