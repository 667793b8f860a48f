"""The model table of paper 3: bodies, coordinates, the equations of every element, degrees of freedom by count."""

from __future__ import annotations

from dataclasses import dataclass

from linkwright.constraints.equations import Equations
from linkwright.model.description import Description


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
    """Every element with its number of equations, in the order of the file."""
    d = description
    grounds = 1 + len(d.more_grounds)
    bodies = d.nb + grounds
    rows = [Row("Euler parameters", "one of each body", bodies), Row("ground", "position and axes", 6 * grounds)]
    rows += [Row(c.name, c.form.key, c.form.size) for c in Equations(d).constraints]
    rows += [Row(d.joint_names[j], "free joint", 0) for j in range(d.nj) if d.kind_of(j).nv == 6]
    return ModelTable(bodies, grounds, tuple(rows))
