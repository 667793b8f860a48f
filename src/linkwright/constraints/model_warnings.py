"""What a model may have and its author has hardly meant, and the table of its elements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints.constraint_equations import Equations
from linkwright.constraints.form_programs import plane
from linkwright.model.curve_elements import PointOnCurve, parts_of_curves
from linkwright.model.description import Description
from linkwright.model.elements import Driver
from linkwright.model.expression import Call, Expression, Name, numeric_values
from linkwright.model.quantities import Quantity, drives_angle, spoken
from linkwright.model.topology import span
from linkwright.model.tree import Tree

#: Of gravity, the part in the plane of motion below which it acts across it.
ACROSS = 1e-6
#: The first angle that an angle of so many turns is hardly meant as: two turns, in radians.
MANY_TURNS = 4.0 * np.pi
#: Bodies up to which a plane of motion is looked for.
MOST = 10_000
TIME = "TIME"


def remarks(d: Description, kind: str, times: Floats | None = None, tree: Tree | None = None) -> list[str]:
    """A line for everything odd about a model under an analysis of this kind, at these times."""
    notes: list[str] = []
    if kind != "kinematic":
        notes += _gravity(d, tree)
    notes += _degrees(d, kind)
    notes += _idle_joints(d)
    if times is not None and kind in ("kinematic", "inverse dynamic", "dynamic"):
        notes += _coarse(d, times)
    return notes


def _gravity(d: Description, tree: Tree | None) -> Iterator[str]:
    """Gravity across the plane in which all bodies move."""
    size = float(np.linalg.norm(d.gravity))
    if not size or not 0 < d.nb <= MOST:
        return
    normals = plane(tree if tree is not None else Tree(d, span(d)))
    if normals is None or np.linalg.norm(np.cross(d.gravity, normals[0])) > ACROSS * size:
        return
    fall, normal = (", ".join(f"{x:g}" for x in v + 0.0) for v in (d.gravity, normals[0]))
    upright = {1.0: f"0, {-size:g}, 0", 0.0: f"0, 0, {-size:g}"}.get(abs(float(normals[0][2])), "...")
    yield (
        f"gravity ({fall}) acts across the plane in which all bodies move (its normal is ({normal})): it loads joints "
        f"and moves nothing; write GRAVITY ({upright}) if the mechanism stands upright"
    )


def _idle_joints(d: Description) -> Iterator[str]:
    """Numbers of joints that nothing looks at."""
    if d.joint_names.generated:
        return
    limits = np.isfinite(d.lower) | np.isfinite(d.upper)
    losses = (d.damping != 0.0) | (d.friction != 0.0) | (d.armature != 0.0)
    for j in np.flatnonzero(limits | losses).tolist():
        kind, name = d.kind_of(j), d.joint_names[j]
        if not kind.nv:
            words = [word for word in ("damping", "friction", "armature") if getattr(d, word)[j]]
            words += ["limits"] * bool(limits[j])
            yield f"joint {name!r} is fixed, and does not need what it has of {' and '.join(words)}"
        elif limits[j] and kind.nq != 1:
            yield f"joint {name!r} is {kind.name}: limits are for joints of one coordinate, and do nothing here"


# -- degrees for radians --------------------------------------------------------------------------------------------
def _degrees(d: Description, kind: str) -> Iterator[str]:
    """Numbers of angles that look like degrees."""
    for driver in d.drivers:
        if drives_angle(d, driver):
            yield from _degrees_of_law(driver, d.parameters)
    for x in d.initial if kind != "static" else ():
        j = d.joint_names.find(x.quantity.of[0]) if x.quantity.kind == "joint" else None
        if j is None or x.quantity.rate or x.quantity.index not in d.kind_of(j).angles:
            continue
        value = float(x.value.evaluate(d.parameters))
        if abs(value) > MANY_TURNS and _is_round(value):
            name = spoken(d, x.quantity)
            yield f"{name!r} begins at {value:g} rad, {_in_turns(value)}; write {value:g} deg if degrees are meant"
    for j in range(d.nj) if not d.joint_names.generated else ():
        if d.kind_of(j).nq == 1 and d.kind_of(j).angles:
            limits = [float(x) for x in (d.lower[j], d.upper[j]) if np.isfinite(x)]
            if limits and all(_is_round(x) or x == 0.0 for x in limits) and max(map(abs, limits)) > MANY_TURNS:
                ends = " … ".join(f"{x:g}" for x in limits)
                yield f"joint {d.joint_names[j]!r} has limits of {ends} rad; write deg after them if degrees are meant"


def _degrees_of_law(driver: Driver, parameters: Mapping[str, float]) -> Iterator[str]:
    for factor, variable in _terms(driver.law, parameters):
        if variable is None:
            odd, unit, shown = abs(factor) > MANY_TURNS and _is_round(factor), "rad", f"{factor:g}"
        elif isinstance(variable, Name) and variable.name == TIME:
            odd, unit, shown = _like_degrees(factor), "rad/s", f"{factor:g}*TIME"
        else:
            odd, unit, shown = abs(factor) > MANY_TURNS and _like_degrees(factor), "rad", f"{factor:g}*..."
        if odd:
            degrees = shown.replace(f"{factor:g}", f"{factor:g} deg", 1)
            each = " per second" if unit == "rad/s" else ""
            yield (
                f"driver {driver.name!r} has {shown} in the law of an angle, in radians: {factor:g} {unit} is "
                f"{_in_turns(factor)}{each}; write {degrees} if degrees are meant"
            )
            return


def _terms(e: Expression, parameters: Mapping[str, float]) -> Iterator[tuple[float, Expression | None]]:
    """The terms of a sum, each as a number and what it multiplies (None: nothing)."""
    pending: list[tuple[float, Expression]] = [(1.0, e)]
    while pending:
        factor, part = pending.pop()
        number = _number(part, parameters)
        if number is not None:
            yield factor * number, None
            continue
        if isinstance(part, Call) and part.function in ("add", "sub"):
            one, other = part.arguments
            pending += [(factor, one), (-factor if part.function == "sub" else factor, other)]
        elif isinstance(part, Call) and part.function == "neg":
            pending.append((-factor, part.arguments[0]))
        elif isinstance(part, Call) and part.function == "mul":
            numbers = [_number(x, parameters) for x in part.arguments]
            k = next((k for k in (0, 1) if numbers[k] is not None), None)
            if k is None:
                yield factor, part
            else:
                pending.append((factor * (numbers[k] or 0.0), part.arguments[1 - k]))
        elif isinstance(part, Call) and part.function == "div" and _number(part.arguments[1], parameters):
            pending.append((factor / (_number(part.arguments[1], parameters) or 1.0), part.arguments[0]))
        else:
            yield factor, part


def _number(e: Expression, parameters: Mapping[str, float]) -> float | None:
    """The value of an expression without TIME, where it has one."""
    if TIME in e.names():
        return None
    value = float(numeric_values(e, parameters))
    return value if np.isfinite(value) else None


def _is_round(x: float) -> bool:
    """Whether a number is a multiple of 5, as angles in degrees are."""
    return x != 0.0 and abs(x - 5.0 * round(x / 5.0)) < 1e-9


def _like_degrees(x: float) -> bool:
    """Whether a number is a multiple of 30 or 45."""
    return x != 0.0 and any(abs(x - step * round(x / step)) < 1e-9 for step in (30.0, 45.0))


def _in_turns(x: float) -> str:
    return f"{abs(x) / (2.0 * np.pi):.3g} turns"


# -- print points -----------------------------------------------------------------------------------------------------
def _coarse(d: Description, times: Floats) -> Iterator[str]:
    """Drivers that turn so far between two print points that these do not show which way."""
    for driver in d.drivers if len(times) > 1 else ():
        if not drives_angle(d, driver):
            continue
        values = np.broadcast_to(numeric_values(driver.law, {**d.parameters, TIME: times}), times.shape)
        with np.errstate(all="ignore"):
            turned, apart = np.abs(np.diff(values)), np.diff(times)
        if not np.isfinite(turned).all():
            continue
        far = np.flatnonzero(turned > np.pi * (1.0 + 1e-9))
        if len(far):
            k = int(far[0])
            yield (
                f"driver {driver.name!r} turns by {_in_turns(turned[k])} between the print points t = {times[k]:g} and "
                f"{times[k + 1]:g} s, more than half a turn, which these cannot show; print every "
                f"{_rounded_down(0.1 * apart[k] * 2.0 * np.pi / turned[k]):g} s or oftener"
            )


def _rounded_down(x: float) -> float:
    """One digit of a positive number."""
    power = 10.0 ** np.floor(np.log10(x))
    return float(np.floor(x / power + 1e-9) * power)


@dataclass(frozen=True)
class Row:
    """Elements of one kind, or one element: how many equations it brings."""

    element: str
    kind: str
    equations: int


@dataclass(frozen=True)
class ModelTable:
    """x, y, z and four Euler parameters for every body, ground included, and what is asked of them."""

    bodies: int
    grounds: int
    rows: tuple[Row, ...]

    @property
    def coordinates(self) -> int:
        return 7 * self.bodies

    @property
    def equations(self) -> int:
        return sum(row.equations for row in self.rows)

    @property
    def degrees_of_freedom(self) -> int:
        """By count; where equations are redundant there are more."""
        return self.coordinates - self.equations


def model_table(description: Description) -> ModelTable:
    """Every element with its number of equations, in the order of the file.

    A contact of curves has those that its massless bodies leave: one, or two if it rolls.
    """
    d = description
    grounds = 1 + len(d.more_grounds)
    inside = set(parts_of_curves(d.point_constraints))
    contacts = {x.name: ("point on a curve", 1) for x in d.point_constraints if isinstance(x, PointOnCurve)}
    for x in d.contacts:
        contacts[x.first] = ("curve that rolls on a curve", 2) if x.rolling else ("curve on a curve", 1)
        inside |= {x.second, x.rolling}
    bodies = d.nb + grounds - sum(name in inside for name in d.body_names)
    rows = [Row("Euler parameters", "one of each body", bodies), Row("ground", "position and axes", 6 * grounds)]
    driven = {x.name: Quantity("joint", (x.target,), x.index) for x in d.drivers if x.kind == "joint"}
    for c in Equations(d).constraints:
        if c.name in inside:
            continue
        if c.name in contacts:
            rows.append(Row(c.name, *contacts[c.name]))
            continue
        of_joint = driven.get(c.name) if c.group == "driver" else None
        rows.append(
            Row(
                c.name,
                (c.form.kind or c.form.key) if of_joint is None else f"driver of {spoken(d, of_joint)}",
                c.form.size,
            )
        )
    rows += [Row(d.joint_names[j], "free joint", 0) for j in range(d.nj) if d.kind_of(j).nv == 6]
    return ModelTable(bodies, grounds, tuple(rows))
