"""The equations of motion over the ring: M by Jacobians or by Lagrange's trace form, C, h, g and the energies.

F + d = M(q) q̈ + h(q, q̇) + V q̇ + g(q), paper 4's eq. 20.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from linkwright.base.arguments import first_few
from linkwright.base.locks import cached_property
from linkwright.errors import LinkwrightError
from linkwright.symbolic.derivation.literal import Inertial, Link, Model, Vector
from linkwright.symbolic.formulas.exact import Matrix
from linkwright.symbolic.formulas.formula import Sum, place
from linkwright.symbolic.formulas.ring import Poly, Ring

Way = Literal["jacobian", "trace"]
Rows = list[list[Poly]]
Columns = dict[int, tuple[list[Poly], list[Poly]]]


@dataclass(frozen=True)
class Pose:
    """A link in its parent's axes: R (rows) and p."""

    r: Rows
    p: list[Poly]


@dataclass(frozen=True)
class Mass:
    """A link's ten inertial parameters in link axes: m, m c, and J about the origin."""

    m: Poly
    mc: list[Poly]
    j: Rows


class Dynamics:
    """M, h, g of a model, entry by entry; what was found stays when the work is interrupted.

    `inertias` puts other inertial parameters in the place of the model's: of each link None, or m, m c and J about the
    link's origin (xx, yy, zz, xy, xz, yz), in link axes.
    """

    def __init__(
        self, model: Model, ring: Ring | None = None, inertias: Sequence[Sequence[Sum] | None] | None = None
    ) -> None:
        self.model = model
        self.inertias = inertias
        self.ring = ring or Ring(model.coordinates, model.angles, model.constants())
        self.n = len(model.coordinates)
        self.algebra = Algebra(self.ring)
        self.m: dict[tuple[int, int], Poly] = {}
        self._slopes: dict[tuple[int, int, int], Poly] = {}

    # -- links ----------------------------------------------------------------------------------------
    @cached_property
    def poses(self) -> list[Pose]:
        return [self.algebra.pose(link) for link in self.model.links]

    @cached_property
    def masses(self) -> list[Mass | None]:
        if self.inertias is not None:
            return [None if ten is None else self.algebra.linear(ten) for ten in self.inertias]
        return [None if k.body is None else self.algebra.mass(k.body, *k.back) for k in self.model.links]

    @cached_property
    def columns(self) -> list[Columns]:
        """Each link's Jacobian in its own axes: velocity of the origin and angular velocity, by coordinate."""
        ring = self.ring
        jacobians: list[Columns] = []
        for link, pose in zip(self.model.links, self.poses, strict=True):
            here: Columns = {}
            if link.parent >= 0:
                for k, (v, w) in jacobians[link.parent].items():
                    moved = add(v, cross(w, pose.p))
                    here[k] = self.algebra.inward(pose.r, moved), self.algebra.inward(pose.r, w)
            if link.coordinate >= 0:
                v, w = here.get(link.coordinate, ([ring.zero] * 3, [ring.zero] * 3))
                v, w, ratio = list(v), list(w), ring.constant(link.ratio)
                v[link.axis] = v[link.axis] + ratio * ring.poly(link.shift)
                if link.turns:
                    w[link.axis] = w[link.axis] + ratio
                here[link.coordinate] = v, w
            jacobians.append(here)
        return jacobians

    # -- the mass matrix ------------------------------------------------------------------------------
    def mass_matrix(self, way: Way = "jacobian") -> Iterator[tuple[int, int]]:
        """Finds M entry by entry (its upper half; `m` has both), and yields the place of each."""
        entries = self._by_trace() if way == "trace" else self._by_jacobians()
        for i, j, value in entries:
            if i == j:
                value = value + self.ring.poly(self.model.armature[i])
            self.m[i, j] = self.m[j, i] = value
            yield i, j

    def derive_mass_matrix(self) -> None:
        """Finds the whole of M."""
        deque(self.mass_matrix(), maxlen=0)

    def upper(self) -> list[Poly]:
        """The entries of M on and above the diagonal, as far as they are found."""
        return [p for (i, j), p in self.m.items() if i <= j]

    def missing(self) -> list[str]:
        """The names of the entries of M that are not found yet."""
        every = ((i, j) for i in range(self.n) for j in range(i, self.n))
        return [f"M{place(at, self.n)}" for at in every if at not in self.m]

    def check_mass_matrix(self) -> None:
        """Refuses to go on with a part of M, as an interruption leaves it."""
        names = self.missing()
        if names:
            some = first_few(names, 4)
            verb = "is" if len(names) == 1 else "are"
            raise LinkwrightError(f"the derivation was interrupted: {some} {verb} missing; derive again")

    def _by_jacobians(self) -> Iterator[tuple[int, int, Poly]]:
        """M_ij = Σ m v_i·v_j + v_i·(ω_j × mc) + v_j·(ω_i × mc) + ω_i·J ω_j over the links."""
        ring = self.ring
        for i in range(self.n):
            # The momentum that a unit of rate i gives each link: m v + ω × mc, mc × v + J ω.
            momenta = []
            for mass, columns in zip(self.masses, self.columns, strict=True):
                if mass is None or i not in columns:
                    continue
                v, w = columns[i]
                line = add([mass.m * x for x in v], cross(w, mass.mc))
                turning = add(cross(mass.mc, v), [dot(row, w, ring.zero) for row in mass.j])
                momenta.append((columns, [ring.reduced(x) for x in line], [ring.reduced(x) for x in turning]))
            for j in range(i, self.n):
                total = ring.zero
                for columns, line, turning in momenta:
                    if j in columns:
                        v, w = columns[j]
                        total = total + dot(v, line, ring.zero) + dot(w, turning, ring.zero)
                yield i, j, ring.reduced(total)

    def _by_trace(self) -> Iterator[tuple[int, int, Poly]]:
        """M_ij = Σ_p tr(∂T_p/∂q_i H_p ∂T_pᵀ/∂q_j), eq. 21, with the pseudo-inertia H of eq. 12."""
        ring = self.ring
        slopes: list[list[list[list[Poly]]] | None] = []
        for mass, t in zip(self.masses, self.transforms, strict=True):
            if mass is None:
                slopes.append(None)
                continue
            slopes.append([[[ring.derivative(x, k) for x in row] for row in t] for k in range(self.n)])
        pseudo = [None if mass is None else self._pseudo_inertia(mass) for mass in self.masses]
        for i in range(self.n):
            sides = []
            for h, d in zip(pseudo, slopes, strict=True):
                if h is not None and d is not None and any(any(row) for row in d[i]):
                    columns = list(zip(*h, strict=True))
                    sides.append((d, [[ring.reduced(dot(row, c, ring.zero)) for c in columns] for row in d[i]]))
            for j in range(i, self.n):
                total = ring.zero
                for d, product in sides:
                    for row, other in zip(product, d[j], strict=True):
                        total = total + dot(row, other, ring.zero)
                yield i, j, ring.reduced(total)

    def _pseudo_inertia(self, mass: Mass) -> Rows:
        half = (mass.j[0][0] + mass.j[1][1] + mass.j[2][2]) / 2
        upper = [[(half if i == j else self.ring.zero) - mass.j[i][j] for j in range(3)] for i in range(3)]
        return [*([*row, c] for row, c in zip(upper, mass.mc, strict=True)), [*mass.mc, mass.m]]

    @cached_property
    def transforms(self) -> list[Rows]:
        """Each link's axes and origin in ground's: the three upper rows of ⁰T, eq. 3."""
        ring, matrices = self.ring, []
        for link, pose in zip(self.model.links, self.poses, strict=True):
            if link.parent < 0:
                matrices.append([[*row, x] for row, x in zip(pose.r, pose.p, strict=True)])
                continue
            up = matrices[link.parent]
            columns = [[row[c] for row in pose.r] for c in range(3)]
            matrices.append(
                [
                    [
                        *(ring.reduced(dot(row[:3], c, ring.zero)) for c in columns),
                        ring.reduced(dot(row[:3], pose.p, row[3])),
                    ]
                    for row in up
                ]
            )
        return matrices

    # -- rates ----------------------------------------------------------------------------------------
    def slope(self, i: int, j: int, k: int) -> Poly:
        """∂M_ij/∂q_k."""
        key = (min(i, j), max(i, j), k)
        if key not in self._slopes:
            self._slopes[key] = self.ring.derivative(self.m[i, j], k)
        return self._slopes[key]

    def christoffel(self, i: int, j: int, k: int) -> Poly:
        """c_ijk = ½(∂M_ij/∂q_k + ∂M_ik/∂q_j − ∂M_jk/∂q_i)."""
        return (self.slope(i, j, k) + self.slope(i, k, j) - self.slope(j, k, i)) / 2

    def coriolis(self, i: int, j: int) -> Poly:
        """C_ij = Σ_k c_ijk q̇_k, for which Ṁ − 2C is skew."""
        ring = self.ring
        return sum((self.christoffel(i, j, k) * ring.symbol(ring.rates[k]) for k in range(self.n)), ring.zero)

    def h(self, i: int) -> Poly:
        """h_i = Σ_jk c_ijk q̇_j q̇_k."""
        ring, rates = self.ring, [self.ring.symbol(x) for x in self.ring.rates]
        total = ring.zero
        for j in range(self.n):
            total = total + (self.slope(i, j, j) - self.slope(j, j, i) / 2) * (rates[j] * rates[j])
            for k in range(j + 1, self.n):
                both = self.slope(i, j, k) + self.slope(i, k, j) - self.slope(j, k, i)
                total = total + both * (rates[j] * rates[k])
        return total

    # -- gravity and energies -------------------------------------------------------------------------
    @cached_property
    def potential_energy(self) -> Poly:
        """U = −Σ g·(m p + mc), zero where every link's centre of mass is at ground's origin."""
        ring, gravity = self.ring, [self.ring.poly(x) for x in self.model.gravity]
        total = ring.zero
        seen: list[tuple[list[Poly], Poly]] = []
        for link, pose, mass in zip(self.model.links, self.poses, self.masses, strict=True):
            # Gravity in link axes, and along the way to the link's origin.
            axes, along = seen[link.parent] if link.parent >= 0 else (gravity, ring.zero)
            along = ring.reduced(along + dot(axes, pose.p, ring.zero))
            axes = self.algebra.inward(pose.r, axes)
            seen.append((axes, along))
            if mass is not None:
                total = total - ring.reduced(mass.m * along + dot(axes, mass.mc, ring.zero))
        return total

    def g(self, i: int) -> Poly:
        """g_i = ∂U/∂q_i."""
        return self.ring.derivative(self.potential_energy, i)

    @property
    def lagrangian(self) -> Poly:
        """L = T − U."""
        return self.kinetic_energy - self.potential_energy

    @property
    def kinetic_energy(self) -> Poly:
        """T = ½ q̇ᵀ M q̇."""
        ring, rates = self.ring, [self.ring.symbol(x) for x in self.ring.rates]
        total = ring.zero
        for i in range(self.n):
            for j in range(self.n):
                total = total + self.m[i, j] * (rates[i] * rates[j])
        return total / 2


@dataclass(frozen=True)
class Algebra:
    """Vectors, rotations and inertias over a ring."""

    ring: Ring
    _matrices: dict[int, tuple[Matrix, Rows]] = field(default_factory=dict)

    def matrix(self, r: Matrix) -> Rows:
        if id(r) not in self._matrices:
            self._matrices[id(r)] = r, [[self.ring.poly(x) for x in row] for row in r]
        return self._matrices[id(r)][1]

    def product(self, matrices: Sequence[Rows]) -> Rows:
        ring = self.ring
        if not matrices:
            return [[ring.one if i == j else ring.zero for j in range(3)] for i in range(3)]
        total = [list(row) for row in matrices[0]]
        for r in matrices[1:]:
            columns = list(zip(*r, strict=True))
            total = [[ring.reduced(dot(row, c, ring.zero)) for c in columns] for row in total]
        return total

    def inward(self, r: Rows, v: Sequence[Poly]) -> list[Poly]:
        """Rᵀ v."""
        return [self.ring.reduced(dot([row[c] for row in r], v, self.ring.zero)) for c in range(3)]

    def outward(self, r: Rows, v: Sequence[Poly]) -> list[Poly]:
        """R v."""
        return [self.ring.reduced(dot(row, v, self.ring.zero)) for row in r]

    def vector(self, v: Vector) -> list[Poly]:
        return [self.ring.poly(x) for x in v]

    def pose(self, link: Link) -> Pose:
        """A link's axes and origin in its parent's."""
        ring = self.ring
        r = self.product([self.matrix(x) for x in link.rotations])
        p = [ring.zero] * 3
        for turned, v in link.origins:
            p = add(p, self.outward(self.product([self.matrix(x) for x in turned]), self.vector(v)))
        if link.coordinate < 0:
            return Pose(r, p)
        if link.shift:
            q = ring.symbol(ring.coordinates[link.coordinate]) * ring.constant(link.ratio)
            far = ring.reduced(q * ring.poly(link.shift) + ring.poly(link.offset))
            p = [ring.reduced(x + row[link.axis] * far) for x, row in zip(p, r, strict=True)]
        if link.turns:
            c, s = ring.turn(link.angle)
            i, j = (link.axis + 1) % 3, (link.axis + 2) % 3
            for row in r:
                row[i], row[j] = ring.reduced(row[i] * c + row[j] * s), ring.reduced(row[j] * c - row[i] * s)
        return Pose(r, p)

    def linear(self, ten: Sequence[Sum]) -> Mass:
        """The ten linear parameters m, m c, J as they are."""
        m, x, y, z, xx, yy, zz, xy, xz, yz = (self.ring.poly(p) for p in ten)
        return Mass(m, [x, y, z], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    def mass(self, body: Inertial, turned: Sequence[Matrix], origin: Vector) -> Mass:
        """A body's inertial parameters in link axes about the link's origin."""
        ring = self.ring
        r = self.product([self.matrix(x) for x in turned])
        m = ring.poly(body.mass)
        c = self.outward(r, add(self.vector(body.com), [-x for x in self.vector(origin)]))
        xx, yy, zz, xy, xz, yz = (ring.poly(x) for x in body.inertia)
        j = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        j = self.product([r, j, [list(row) for row in zip(*r, strict=True)]])
        square = dot(c, c, ring.zero)
        for a in range(3):
            for b in range(3):
                j[a][b] = ring.reduced(j[a][b] + m * ((square if a == b else ring.zero) - c[a] * c[b]))
        return Mass(m, [ring.reduced(m * x) for x in c], j)


def dot(a: Sequence[Poly], b: Sequence[Poly], start: Poly) -> Poly:
    return sum((x * y for x, y in zip(a, b, strict=True) if x and y), start)


def add(a: Sequence[Poly], b: Sequence[Poly]) -> list[Poly]:
    return [x + y for x, y in zip(a, b, strict=True)]


def cross(a: Sequence[Poly], b: Sequence[Poly]) -> list[Poly]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
