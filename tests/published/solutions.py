"""Solutions of the published problems that owe nothing to the package: closed forms and equations written by hand.

Each gives coordinates of joints by name, one row a time. The equations are in minimal coordinates where there are
such, and are integrated by SciPy at tolerances far beneath what is asked of a simulation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

from published.problems import CORNERS, GOVERNOR, GRAVITY, SQUEEZER, SQUEEZER_START

Floats = NDArray[np.float64]
Motion = dict[str, Floats]


def _integrated(f: Callable[[float, Floats], Floats], y0: Floats, t: Floats, *, stiff: bool = False) -> Floats:
    """States (n, T), by DOP853 at 1e-12; stiff ones by Radau at 1e-11 with the Jacobian by complex steps."""

    def jacobian(time: float, y: Floats) -> Floats:
        return np.stack([f(time, y + 1e-30j * e).imag / 1e-30 for e in np.eye(len(y))], axis=1)

    how = {"method": "Radau", "rtol": 1e-11, "jac": jacobian} if stiff else {"method": "DOP853", "rtol": 1e-12}
    found = solve_ivp(f, (0.0, float(t[-1])), y0, t_eval=t, atol=1e-14, **how)
    assert found.success, found.message
    return np.asarray(found.y)


# -- A01, A02: pendulums in closed form -----------------------------------------------------------------------------
def pendulum(t: Floats) -> Motion:
    """sin(χ/2) = k sn(K + ω t) with k = sin(χ₀/2), χ from the lowest position; it starts at −90°."""
    k = -np.sin(0.25 * np.pi)
    sn = ellipj(ellipk(k * k) + np.sqrt(GRAVITY) * t, k * k)[0]
    return {"pivot": 2.0 * np.arcsin(k * sn)}


def four_bars(n: int, t: Floats) -> Motion:
    """All uprights turn alike, like one pendulum that goes over the top; the other bars stay parallel to ground.

    T = ½ ((n + 1)/3 + n) φ̇², V = g ((n + 1)/2 + n) sin φ, so χ = φ + π/2 has χ̈ = −w sin χ with w as below, and
    χ/2 = am(K − ½ χ̇₁ t) with the rate χ̇₁ at the bottom.
    """
    w = GRAVITY * (0.5 * (n + 1) + n) / ((n + 1) / 3.0 + n)
    fastest = np.sqrt(1.0 + 4.0 * w)
    m = 4.0 * w / fastest**2
    phi = 2.0 * ellipj(ellipk(m) - 0.5 * fastest * t, m)[3] - 0.5 * np.pi
    return {f"pivot{k}": phi for k in range(n + 1)} | {f"near{k}": -phi for k in range(n)}


# -- A03: Andrews' squeezing mechanism ------------------------------------------------------------------------------
#: Coordinates and rates at t = 0.03 s as published with the test set, in the order of `ANGLES`.
SQUEEZER_AT_003 = np.array(
    [
        [15.81077119629904, 1139.920302151208],
        [-15.75637105984298, -1424.379294994111],
        [0.04082224013073101, 11.03291221937134],
        [-0.5347301163226948, 19.29337464421385],
        [0.5244099658805304, 0.5735699284790808],
        [0.5347301163226948, -19.29337464421385],
        [1.048080741042263, 0.3231791658026955],
    ]
).T


def squeezer_equations(t: float, y: Floats) -> Floats:
    """Rates of seven angles and their rates, in the published coordinates: M a = f + Gᵀλ, G a = −Ġ v."""
    p = SQUEEZER
    be, th, ga, ph, de, om, ep = y[:7]
    v = y[7:]
    vbe, vth, vga, vph, vde, vom, vep = v
    e4, f6 = p.e - p.ea, p.zf - p.fa
    m = np.zeros((7, 7))
    m[0, 0] = p.m[0] * p.ra**2 + p.m[1] * (p.rr**2 - 2 * p.da * p.rr * np.cos(th) + p.da**2) + p.i[0] + p.i[1]
    m[0, 1] = m[1, 0] = p.m[1] * (p.da**2 - p.da * p.rr * np.cos(th)) + p.i[1]
    m[1, 1] = p.m[1] * p.da**2 + p.i[1]
    m[2, 2] = p.m[2] * (p.sa**2 + p.sb**2) + p.i[2]
    m[3, 3] = p.m[3] * e4**2 + p.i[3]
    m[3, 4] = m[4, 3] = p.m[3] * (e4**2 + p.zt * e4 * np.sin(ph)) + p.i[3]
    m[4, 4] = p.m[3] * (p.zt**2 + 2 * p.zt * e4 * np.sin(ph) + e4**2) + p.m[4] * (p.ta**2 + p.tb**2) + p.i[3] + p.i[4]
    m[5, 5] = p.m[5] * f6**2 + p.i[5]
    m[5, 6] = m[6, 5] = p.m[5] * (f6**2 - p.u * f6 * np.sin(om)) + p.i[5]
    m[6, 6] = p.m[5] * (f6**2 - 2 * p.u * f6 * np.sin(om) + p.u**2) + p.m[6] * (p.ua**2 + p.ub**2) + p.i[5] + p.i[6]
    x = p.sd * np.cos(ga) + p.sc * np.sin(ga) + p.b[0] - p.c[0]
    z = p.sd * np.sin(ga) - p.sc * np.cos(ga) + p.b[1] - p.c[1]
    pull = -p.stiffness * (1.0 - p.length / np.hypot(x, z))
    f = np.array(
        [
            p.torque - p.m[1] * p.da * p.rr * vth * (vth + 2 * vbe) * np.sin(th),
            p.m[1] * p.da * p.rr * vbe**2 * np.sin(th),
            pull * (x * (p.sc * np.cos(ga) - p.sd * np.sin(ga)) + z * (p.sd * np.cos(ga) + p.sc * np.sin(ga))),
            p.m[3] * p.zt * e4 * vde**2 * np.cos(ph),
            -p.m[3] * p.zt * e4 * vph * (vph + 2 * vde) * np.cos(ph),
            -p.m[5] * p.u * f6 * vep**2 * np.cos(om),
            p.m[5] * p.u * f6 * vom * (vom + 2 * vep) * np.cos(om),
        ]
    )
    g, bias = np.zeros((6, 7)), np.zeros(6)
    # The point that all loops share, from the crank's side: rr e(β) − d e(β + θ).
    w = vbe + vth
    crank = np.array([-p.rr * np.sin(be), p.rr * np.cos(be)])
    link = np.array([p.d * np.sin(be + th), -p.d * np.cos(be + th)])
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    for k in range(3):
        g[2 * k : 2 * k + 2, 0], g[2 * k : 2 * k + 2, 1] = crank + link, link
        bias[2 * k : 2 * k + 2] = turn @ (crank * vbe**2 + link * w**2)
    arms = (  # (columns, rate) of each turning piece between a fixed point and the shared one, with its tangent
        (0, (2,), vga, -p.ss * np.array([np.cos(ga), np.sin(ga)])),
        (1, (3, 4), vph + vde, -p.e * np.array([np.cos(ph + de), np.sin(ph + de)])),
        (1, (4,), vde, -p.zt * np.array([-np.sin(de), np.cos(de)])),
        (2, (5, 6), vom + vep, -p.zf * np.array([-np.sin(om + ep), np.cos(om + ep)])),
        (2, (6,), vep, -p.u * np.array([np.cos(ep), np.sin(ep)])),
    )
    for k, columns, rate, tangent in arms:
        for column in columns:
            g[2 * k : 2 * k + 2, column] += tangent
        bias[2 * k : 2 * k + 2] += turn @ tangent * rate**2
    whole = np.block([[m, g.T], [g, np.zeros((6, 6))]])
    return np.concatenate([v, np.linalg.solve(whole, np.concatenate([f, -bias]))[:7]])


def squeezer(t: Floats) -> Motion:
    """The published equations on acceleration level; their drift is far beneath the tolerance in 0.05 s."""
    y = _integrated(squeezer_equations, np.concatenate([SQUEEZER_START, np.zeros(7)]), t)
    names = ("beta", "theta", "gamma", "phi", "delta", "omega", "epsilon")
    return dict(zip(names, y[:7], strict=True))


# -- A04: Bricard's mechanism ---------------------------------------------------------------------------------------
def _product(a: list[Floats], b: list[Floats]) -> list[Floats]:
    """Two matrices with their first two derivatives, multiplied."""
    return [a[0] @ b[0], a[1] @ b[0] + a[0] @ b[1], a[2] @ b[0] + 2.0 * a[1] @ b[1] + a[0] @ b[2]]


def bricard_points(x: float, y: float) -> tuple[Floats, tuple[float, float]]:
    """The six corners with two derivatives (3, 6, 3) along the curve of positions, and the angles' derivatives.

    Every second hinge turns alike: x and y are the angles from bar to bar, and (1 + cos x)(1 + cos y) = 1, since a
    third of the loop is a turn by 120°. The curve's parameter s is that of the flow x' = sin y (1 + cos x),
    y' = −sin x (1 + cos y), which keeps the equation.
    """
    sx, cx, sy, cy = np.sin(x), np.cos(x), np.sin(y), np.cos(y)
    x1, y1 = sy * (1.0 + cx), -sx * (1.0 + cy)
    x2, y2 = cy * (1.0 + cx) * y1 - sy * sx * x1, -cx * (1.0 + cy) * x1 + sx * sy * y1
    frame = [np.zeros((4, 4)) for _ in range(3)]
    edges = CORNERS - np.roll(CORNERS, 1, axis=0)
    axis = np.cross(edges[0], edges[1])
    frame[0][:3, :3] = np.stack([edges[0], np.cross(axis, edges[0]), axis], axis=1)
    frame[0][:3, 3], frame[0][3, 3] = CORNERS[0], 1.0
    points = np.zeros((3, 6, 3))
    for k in range(6):
        points[:, k] = [f[:3, 3] for f in frame]
        s, c, d1, d2 = (sx, cx, x1, x2) if k % 2 == 0 else (sy, cy, y1, y2)
        side = 1.0 if k % 2 == 0 else -1.0
        # A turn about the hinge, a bar along the new x, and a quarter turn about it to the next hinge.
        step = np.array([[c, 0.0, side * s, c], [s, 0.0, -side * c, s], [0.0, side, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
        slope = np.array([[-s, 0.0, side * c, -s], [c, 0.0, side * s, c], [0.0] * 4, [0.0] * 4])
        bend = np.array([[-c, 0.0, -side * s, -c], [-s, 0.0, side * c, -s], [0.0] * 4, [0.0] * 4])
        frame = _product(frame, [step, slope * d1, slope * d2 + bend * d1**2])
    return points, (x1, y1)


def bricard_equations(t: float, state: Floats) -> Floats:
    """½ m(s) ṡ² + V(s) is the energy: m s̈ + ½ m' ṡ² + V' = 0, from the corners alone, since the bars are thin."""
    x, y, rate = state
    (_, p1, p2), (x1, y1) = bricard_points(x, y)
    a1, b1, a2, b2 = p1[:5], p1[1:], p2[:5], p2[1:]
    m = np.sum(a1 * a1 + a1 * b1 + b1 * b1) / 3.0
    slope = np.sum(2.0 * a1 * a2 + a1 * b2 + a2 * b1 + 2.0 * b1 * b2) / 3.0
    weight = GRAVITY * 0.5 * np.sum(a1[:, 1] + b1[:, 1])
    return np.array([x1 * rate, y1 * rate, -(0.5 * slope * rate**2 + weight) / m])


def bricard(t: Floats) -> Motion:
    x, y, _ = _integrated(bricard_equations, np.array([0.5 * np.pi, 0.5 * np.pi, 0.0]), t)
    return {"hinge0": x - 0.5 * np.pi, "hinge1": y - 0.5 * np.pi}


# -- A05: fly-ball governor -----------------------------------------------------------------------------------------
def governor_equations(t: float, state: Floats) -> Floats:
    """Lagrange's equations of the spin ψ, the arms' angle α from the shaft and the sleeve's distance x from the top."""
    g = GOVERNOR
    _, a, x, spin, va, vx = state
    m, ms, w, length = g.arm_mass, g.sleeve_mass, g.thick, g.arm
    across = m * (length**2 / 3.0 + w**2 / 12.0) + g.ball * length**2
    along = m * w**2 / 6.0
    s, c = np.sin(a), np.cos(a)
    j = along + ms * g.sleeve**2 / 6.0 + 2.0 * (across * s**2 + along * c**2)
    slope = 4.0 * (across - along) * s * c
    side, down = 0.5 * length * s, x - 0.5 * length * c
    far = np.sqrt(side**2 + down**2)
    # ∂far/∂α and ∂far/∂x
    by_a = (side * 0.5 * length * c + down * 0.5 * length * s) / far
    by_x = down / far
    pull = g.stiffness * (far - g.length) + g.damping * (by_a * va + by_x * vx)
    lever = (0.5 * m + g.ball) * length
    return np.array(
        [
            spin,
            va,
            vx,
            -slope * va * spin / j,
            (0.25 * slope * spin**2 - GRAVITY * lever * s - pull * by_a) / across,
            GRAVITY - 2.0 * pull * by_x / ms,
        ]
    )


def governor(t: Floats) -> Motion:
    g = GOVERNOR
    start = np.array([0.0, g.angle, g.arm * np.cos(g.angle), g.speed, 0.0, 0.0])
    spin, a, x = _integrated(governor_equations, start, t, stiff=True)[:3]
    return {"spin": spin, "slide": -x, "arm0": a, "arm1": a}
