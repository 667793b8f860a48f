"""The numbers of constraint equations in many cases of one mechanism: records, sizes, and the bodies as drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.locks import cached_property
from linkwright.base.types import Floats
from linkwright.constraints.elimination import RANK_TOLERANCE
from linkwright.constraints.equations import PARALLEL, Equations, drawn_rows
from linkwright.constraints.recorded import newton
from linkwright.mechanism.cases import Cases
from linkwright.mechanism.description import GROUND
from linkwright.mechanism.elements import Driver, PointOnLine, Rod
from linkwright.mechanism.lengths import body_lengths, length_scale
from linkwright.spatial.rotation import euler_parameters

Flags = NDArray[np.bool_]


class CaseNumbers:
    """What `Equations` and `recorded.numbers` have of one mechanism, with the cases first."""

    def __init__(self, equations: Equations, cases: Cases) -> None:
        self.e, self.cases = equations, cases

    def __len__(self) -> int:
        return len(self.cases)

    @cached_property
    def inputs(self) -> dict[str, Floats]:
        """The inputs of an analysis' programs that hold numbers."""
        weights = np.tile(self.e.units**2, (len(self), 1, 1))
        weights[:, :, 3:] *= (self.e.sizes / self.sizes)[:, :, None] ** 2
        table = self.cases.table if self.cases.table.shape[1] else np.zeros((len(self), 1))
        return {
            "records": self.records,
            "weights": weights,
            "lengths": self.sizes,
            "arms": self.e.arms(self.size) if self.e.count else np.ones((len(self), 1)),
            "parameters": table,
            "tolerance": np.array([RANK_TOLERANCE]),
            "newton": newton(self.e.description),
        }

    @cached_property
    def records(self) -> Floats:
        """(n, numbers): the records of all constraints, one behind the other."""
        parts = [np.zeros((len(self), 0)), *self._records()]
        made = np.concatenate(parts, axis=1)
        return made if made.shape[1] else np.zeros((len(self), 1))

    @cached_property
    def sizes(self) -> Floats:
        """(n, nb): as `Equations.sizes`."""
        return body_lengths(self.e.description, self.cases.array)

    @cached_property
    def size(self) -> Floats:
        """(n,): a length that is typical for each mechanism."""
        return length_scale(self.e.description, self.cases.array)

    @cached_property
    def start(self) -> Floats:
        """(n, nb, 7): the bodies as drawn."""
        r, p = self._drawn
        e = euler_parameters(np.moveaxis(r.reshape(-1, 3, 3), 0, -1))
        return np.concatenate([p, np.moveaxis(e, 0, -1).reshape(*p.shape[:2], 4)], axis=2)

    @cached_property
    def same_forms(self) -> Flags:
        """(n,): whether a case has the equations of the mechanism as it stands: what is drawn parallel decides some."""
        good = np.ones(len(self), bool)
        for driver in self.e.description.drivers:
            if driver.kind == "angle" and "h" not in driver.axes:
                one, other = (self._axis_as_drawn(x) for x in (driver.target, driver.other or ""))
                parallel = np.linalg.norm(np.cross(one, other), axis=1) < PARALLEL
                good &= parallel == self.e.drawn_parallel(driver)
        return good

    # -- from the description -------------------------------------------------------------------------------
    @cached_property
    def _drawn(self) -> tuple[Floats, Floats]:
        d, x = self.e.description, self.cases.array
        start = None if d.start is None else (x("start_r"), x("start_p"))
        return drawn_rows(d, x("ri"), x("pi"), x("rj"), x("pj"), start)

    def _axis_as_drawn(self, name: str) -> Floats:
        body, r, _ = self._frame(name)
        return r[:, :, 2] if body == GROUND else np.einsum("nij,nj->ni", self._drawn[0][:, body], r[:, :, 2])

    def _records(self) -> list[Floats]:
        """In the order of `Equations`."""
        d, x = self.e.description, self.cases.array
        made: list[Floats] = []
        for j in range(d.nj):
            if d.kind_of(j).nv < 6:
                made.append(self._of(j))
                if d.kind_of(j).name == "screw":
                    made.append(x("pitch")[:, j : j + 1])
        for k, m in enumerate(d.mimics):
            made += [self._of(m.follower), self._of(m.leader), x("gear")[:, k]]
        for tie in d.ties:
            if isinstance(tie, Rod):
                made += [self._at(tie.first), self._at(tie.second), self.cases.evaluated(tie.length)[:, None]]
            elif isinstance(tie, PointOnLine):
                made += [self._at(tie.line), self._at(tie.point)]
            else:
                made += [self._at(tie.plane), self._at(tie.point)]
        for driver in d.drivers:
            made += self._driver(driver)
        return made

    def _driver(self, driver: Driver) -> list[Floats]:
        if driver.kind == "joint":
            return [self._of(self.e.description.joint_names.position("joint", driver.target))]
        if driver.kind == "absolute":
            return [self._at(driver.target.rsplit(".", 1)[0])]
        return [self._at(driver.target), self._at(driver.other or "")]

    def _of(self, j: int) -> Floats:
        x: Any = self.cases.array
        parts = [x(name)[:, j].reshape(len(self), -1) for name in ("ri", "pi", "rj", "pj")]
        return np.concatenate(parts, axis=1)

    def _at(self, place: str) -> Floats:
        _, r, p = self._frame(place)
        return np.concatenate([r.reshape(len(self), 9), p], axis=1)

    def _frame(self, name: str) -> tuple[int, Floats, Floats]:
        d = self.e.description
        k = d.frames.names.find(name)
        if name != d.ground_name and d.body_names.find(name) is None and k is not None:
            return int(d.frames.body[k]), self.cases.array("frame_r")[:, k], self.cases.array("frame_p")[:, k]
        body = d.body_names.find(name) if name != d.ground_name else None
        n = len(self)
        return GROUND if body is None else body, np.broadcast_to(np.eye(3), (n, 3, 3)), np.zeros((n, 3))
