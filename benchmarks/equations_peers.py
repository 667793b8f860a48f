"""An arm's M, h and g in closed form, by Linkwright and as SymPy's users find them; `equations.py` times them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import linkwright as lw
from linkwright.symbolic.formulas.ring import terms

Floats = NDArray[np.float64]
Row = Mapping[str, Any]
MOMENTS = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
GRAVITY = (0.0, 0.0, "-g")


@dataclass(frozen=True)
class Point:
    """Values of the parameters by name, coordinates and rates."""

    values: Mapping[str, float]
    q: Floats
    v: Floats


@dataclass(frozen=True)
class Found:
    """What a way found: its operations, and M and h + g in numbers at each of some points."""

    operations: Callable[[], dict[str, int]]
    numbers: Callable[[Sequence[Point]], list[tuple[Floats, Floats]]]


def body(k: int) -> dict[str, Any]:
    """A body of any shape: each of its ten numbers is a symbol."""
    moments = tuple(f"{name}{k}" for name in MOMENTS)
    return {"mass": f"m{k}", "com": (f"x{k}", f"y{k}", f"z{k}"), "inertia": moments}


def spatial(n: int) -> list[Row]:
    """n turning joints, each perpendicular to the last and at a length l from it; modified DH rows."""
    first: dict[str, Any] = {"a": 0.0, "alpha": 0.0}
    later = ({"a": f"l{k - 1}", "alpha": (-1) ** (k % 2 + 1) * np.pi / 2} for k in range(2, n + 1))
    return [{**row, **body(k)} for k, row in enumerate((first, *later), 1)]


def planar(n: int) -> list[Row]:
    """n turning joints with parallel axes."""
    return [{"a": 0.0 if k == 1 else f"l{k - 1}", "alpha": 0.0, **body(k)} for k in range(1, n + 1)]


# -- Linkwright -----------------------------------------------------------------------------------------------------
def linkwright(rows: Sequence[Row]) -> Found:
    return Ours(lw.from_dh(rows, "modified", gravity=GRAVITY)).found()


class Ours:
    """What `lw.equations` gives: M, h and g as exact polynomials."""

    def __init__(self, mech: Any) -> None:
        self.equations = eq = lw.equations(mech)
        self.ring, n = eq.derivation.dynamics.ring, eq.n
        self.n = n
        self.M = [eq.polynomial("M", i, j) for i in range(n) for j in range(i, n)]
        self.h = [eq.polynomial("h", i) for i in range(n)]
        self.g = [eq.polynomial("g", i) for i in range(n)]

    def terms(self) -> dict[str, int]:
        return {name: sum(map(len, getattr(self, name))) for name in ("M", "h", "g")}

    def operations(self) -> dict[str, int]:
        """Those of each form; of the collected one as long as SymPy can hold it."""
        eq = self.equations
        steps = [eq.recursive(quantity) for quantity in ("mass_matrix", "bias")]
        found = {"recursive": sum(each.count.total for each in steps), "expanded": self._expanded()}
        if found["expanded"] < 100_000:
            found["collected"] = counted(eq.sympy("M", "collected"), eq.sympy("h", "collected") + eq.sympy("g"))
        return found

    def _expanded(self) -> int:
        """As SymPy's `count_ops` counts: a cosine, a power and a division are one each."""
        total = 0
        for p in (*self.M, *(x + y for x, y in zip(self.h, self.g, strict=True))):
            total += max(len(p) - 1, 0)
            for powers, number in terms(p):
                factors = len(powers) + (abs(number.numerator) != 1) + (number.denominator != 1)
                total += max(factors - 1, 0) + sum(n > 1 for _, n in powers)
                total += sum(type(self.ring.factor(k)).__name__ == "Trig" for k, _ in powers)
        return total

    def found(self) -> Found:
        def numbers(points: Sequence[Point]) -> list[tuple[Floats, Floats]]:
            ring, n = self.ring, self.n
            given = {name: np.array([point.values[name] for point in points]) for name in points[0].values}
            for k in range(n):
                given[ring.coordinates[k].name] = np.array([point.q[k] for point in points])
                given[ring.rates[k].name] = np.array([point.v[k] for point in points])
            x = ring.values(given, len(points))
            m = np.zeros((len(points), n, n))
            upper = [(i, j) for i in range(n) for j in range(i, n)]
            for (i, j), p in zip(upper, self.M, strict=True):
                m[:, i, j] = m[:, j, i] = ring.evaluate(p, x)
            bias = [ring.evaluate(a, x) + ring.evaluate(b, x) for a, b in zip(self.h, self.g, strict=True)]
            return list(zip(m, np.transpose(bias), strict=True))

        return Found(self.operations, numbers)


# -- SymPy ----------------------------------------------------------------------------------------------------------
def lagranges_method(rows: Sequence[Row]) -> Found:
    """`sympy.physics.mechanics.LagrangesMethod`: mass matrix and forcing."""
    from sympy.physics.mechanics import LagrangesMethod, Lagrangian, dynamicsymbols

    q = _moving("q", len(rows))
    ground, origin, bodies, fall = _bodies(rows, q, [x.diff(dynamicsymbols._t) for x in q])
    for each in bodies:
        each.potential_energy = -each.mass * each.masscenter.pos_from(origin).dot(fall)
    method = LagrangesMethod(Lagrangian(ground, *bodies), q)
    method.form_lagranges_equations()
    return _of_sympy(method.mass_matrix, -method.forcing, q, [x.diff(dynamicsymbols._t) for x in q])


def kanes_method(rows: Sequence[Row]) -> Found:
    """`sympy.physics.mechanics.KanesMethod`: mass matrix and forcing."""
    from sympy.physics.mechanics import KanesMethod, dynamicsymbols

    q, u = _moving("q", len(rows)), _moving("u", len(rows))
    ground, _, bodies, fall = _bodies(rows, q, u)
    rates = [x.diff(dynamicsymbols._t) - y for x, y in zip(q, u, strict=True)]
    method = KanesMethod(ground, q_ind=q, u_ind=u, kd_eqs=rates)
    method.kanes_equations(bodies, [(each.masscenter, each.mass * fall) for each in bodies])
    return _of_sympy(method.mass_matrix, -method.forcing, q, u)


def trace(rows: Sequence[Row], *, tidy: bool = False) -> Found:
    """The paper's formula, M_ij = Σ tr(∂T_p/∂q_j H_p ∂T_pᵀ/∂q_i), in plain SymPy; tidy: with trigsimp at every step."""
    import sympy as sp

    n = len(rows)
    q, v = sp.symbols(f"q1:{n + 1}"), sp.symbols(f"dq1:{n + 1}")
    neat = (lambda e: sp.trigsimp(sp.expand(e))) if tidy else (lambda e: e)
    fall = sp.Matrix([*map(_entry, GRAVITY), 0])
    pose, m, g = sp.eye(4), sp.zeros(n, n), sp.zeros(n, 1)
    for p, row in enumerate(rows):
        a, alpha, c, s = _entry(row["a"]), _entry(row["alpha"]), sp.cos(q[p]), sp.sin(q[p])
        ca, sa = sp.cos(alpha), sp.sin(alpha)
        step = [[c, -s, 0, a], [ca * s, ca * c, -sa, 0], [sa * s, sa * c, ca, 0], [0, 0, 0, 1]]
        pose = (pose * sp.Matrix(step)).applyfunc(neat)
        mass, centre, tensor = _inertia(row)
        moments = sp.eye(3) * tensor.trace() / 2 - tensor + mass * centre * centre.T
        pseudo = moments.row_join(mass * centre).col_join((mass * centre).T.row_join(sp.Matrix([[mass]])))
        at = sp.Matrix([*centre, 1])
        slopes = [pose.diff(q[j]) for j in range(p + 1)]
        for i in range(p + 1):
            g[i] -= mass * (fall.T * slopes[i] * at)[0]
            for j in range(i + 1):
                m[i, j] += (slopes[j] * pseudo * slopes[i].T).trace()
    m = sp.Matrix(n, n, lambda i, j: neat(m[max(i, j), min(i, j)]))
    # The paper's h_ijk = ∂M_ij/∂q_k − ½ ∂M_jk/∂q_i.
    slope = {(i, j, k): m[i, j].diff(q[k]) for i in range(n) for j in range(i, n) for k in range(n)}
    of = {(j, i, k): x for (i, j, k), x in slope.items()} | slope
    terms = [[(of[i, j, k] - of[j, k, i] / 2) * v[j] * v[k] for j in range(n) for k in range(n)] for i in range(n)]
    h = sp.Matrix([neat(sp.Add(*row)) for row in terms])
    return _of_sympy(m, h + g.applyfunc(neat), q, v)


def tidy_trace(rows: Sequence[Row]) -> Found:
    return trace(rows, tidy=True)


def _moving(stem: str, n: int) -> list[Any]:
    from sympy.physics.mechanics import dynamicsymbols

    return [dynamicsymbols(f"{stem}{k}") for k in range(1, n + 1)]


def _entry(x: Any) -> Any:
    """An entry of a table in SymPy: names are symbols, quarter turns are exact."""
    import sympy as sp

    if isinstance(x, str):
        return -sp.Symbol(x[1:]) if x.startswith("-") else sp.Symbol(x)
    return sp.pi * round(2 * x / np.pi) / 2 if x else sp.Integer(0)


def _inertia(row: Row) -> tuple[Any, Any, Any]:
    import sympy as sp

    xx, yy, zz, xy, xz, yz = map(_entry, row["inertia"])
    tensor = sp.Matrix([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return _entry(row["mass"]), sp.Matrix([_entry(x) for x in row["com"]]), tensor


def _bodies(rows: Sequence[Row], q: Sequence[Any], rates: Sequence[Any]) -> tuple[Any, Any, list[Any], Any]:
    """Ground, its origin, the rigid bodies of the arm, and gravity, as the guides of SymPy's mechanics set them up."""
    from sympy.physics.mechanics import Point as Place
    from sympy.physics.mechanics import ReferenceFrame, RigidBody, inertia

    ground, origin = ReferenceFrame("N"), Place("O")
    origin.set_vel(ground, 0)
    before, at, bodies = ground, origin, []
    for k, (row, x, rate) in enumerate(zip(rows, q, rates, strict=True), 1):
        tilted, frame = ReferenceFrame(f"T{k}"), ReferenceFrame(f"A{k}")
        tilted.orient_axis(before, before.x, _entry(row["alpha"]))
        frame.orient_axis(tilted, tilted.z, x)
        frame.set_ang_vel(tilted, rate * tilted.z)
        joint = at.locatenew(f"O{k}", _entry(row["a"]) * before.x)
        joint.v2pt_theory(at, ground, before)
        mass, centre, t = _inertia(row)
        middle = joint.locatenew(f"G{k}", centre[0] * frame.x + centre[1] * frame.y + centre[2] * frame.z)
        middle.v2pt_theory(joint, ground, frame)
        about = inertia(frame, t[0, 0], t[1, 1], t[2, 2], t[0, 1], t[1, 2], t[0, 2])
        bodies.append(RigidBody(f"B{k}", middle, frame, mass, (about, middle)))
        before, at = frame, joint
    return ground, origin, bodies, _entry(GRAVITY[2]) * ground.z


def _of_sympy(m: Any, bias: Any, q: Sequence[Any], v: Sequence[Any]) -> Found:
    """Matrices of SymPy: their `count_ops`, and their numbers by `lambdify`."""
    import sympy as sp
    from sympy.physics.mechanics import msubs

    def numbers(points: Sequence[Point]) -> list[tuple[Floats, Floats]]:
        plain = {x: sp.Symbol(f"_{k}") for k, x in enumerate((*q, *v))}
        parts = [msubs(part, plain) for part in (m, bias)]
        given = [*plain.values(), *map(sp.Symbol, points[0].values)]
        function = sp.lambdify(given, parts, "numpy", cse=True)
        found = [function(*point.q, *point.v, *point.values.values()) for point in points]
        return [(np.asarray(x, dtype=float), np.asarray(y, dtype=float).reshape(-1)) for x, y in found]

    return Found(lambda: {"operations": counted(m, bias)}, numbers)


def counted(m: Any, bias: Any) -> int:
    """SymPy's count of the operations in half of M and in h + g."""
    import sympy as sp

    n = m.shape[0]
    return int(sp.count_ops([m[i, j] for i in range(n) for j in range(i + 1)]) + sp.count_ops(list(bias)))


WAYS: dict[str, Callable[[Sequence[Row]], Found]] = {
    "Linkwright": linkwright,
    "LagrangesMethod": lagranges_method,
    "KanesMethod": kanes_method,
    "trace": trace,
    "trace, trigsimp": tidy_trace,
}


def difference(found: Found, plain: Any) -> float:
    """The largest difference from the numeric recursions at random points, relative to the largest entry.

    Symbols of a model that have no values of their own (1 or 0 then) get random ones.
    """
    rng, points, expected = np.random.default_rng(6), [], []
    for _ in range(3):
        values = {name: x + 0.1 * rng.uniform() * (x in (0.0, 1.0)) for name, x in plain.parameters.items()}
        mech = plain.with_parameters(**values)
        q, v = rng.uniform(-2, 2, (2, mech.nv))
        points.append(Point(values, q, v))
        expected.append((mech.mass_matrix(q), mech.bias_forces(q, v)))
    pairs = [
        (x, y)
        for theirs, ours in zip(found.numbers(points), expected, strict=True)
        for x, y in zip(theirs, ours, strict=True)
    ]
    return max(float(np.abs(x - y).max() / np.abs(y).max()) for x, y in pairs)
