"""`Solution`: how the bodies of a mechanism moved, what can be asked of it, and where it can be sent."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.base.arguments import counted, path_text
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.errors import DtypeError, ShapeError
from linkwright.model.body_motion import QUANTITIES, fitting
from linkwright.model.description import Description, sealed
from linkwright.model.joint_motion import References
from linkwright.model.topology import span
from linkwright.model.tree import Tree
from linkwright.results.labelled_arrays import motion_arrays
from linkwright.results.motion_quantities import BodyArrays, joint_motion, references_of, tree_motion
from linkwright.results.motion_queries import MotionQueries, in_unit
from linkwright.results.status import Counters, Series, Status

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from linkwright.mechanism import Mechanism
    from linkwright.viewer.page import Animation


@dataclass(frozen=True, eq=False)
class States:
    """Coordinates, rates and accelerations of the spanning tree, one row per time point."""

    q: Floats
    v: Floats
    a: Floats


@dataclass(frozen=True, eq=False)
class Occurrence:
    """An event that was met: its name, the time, and the state there."""

    name: str
    time: float
    q: Floats
    v: Floats


class Solution(MotionQueries):
    """How the bodies of a mechanism moved: positions, velocities and accelerations in ground's axes, SI units.

    `position("block", unit="mm")` and its sisters give other units. Tables, CSV files, figures, pages and notebooks are
    in the units of the model (`description.units`: those of SYSTEM in a `.mks` file); every array here is SI.

    `lw.analyse`, `lw.simulate` and `lw.open` give one. time: the time points (s), (T,). status: how the run ended; a
    run that stopped early has the points up to there. counters: the work that it took. events: the events that were
    met, each with name, time, q and v. series: forces by name, each with values (T,) and unit. description: the model.
    arrays: the motion of the bodies, by quantity. iterations: of Newton's method, (T,). states: q, v and a; None,
    events and series none by default.

    `position("block")` and its sisters take the `name` of a body, a frame, a trace or ground and give one row per time
    point; capital and small letters are the same where only one name fits. Another name is a NameNotFound.

    >>> import tempfile, linkwright as lw
    >>> sol = lw.simulate(lw.chain(2), t_end=0.5, q0=[0.9, -0.4], saving=lw.Saving(interval=0.1))
    >>> x, v, a = sol.position("link2"), sol.velocity("link2"), sol.acceleration("link2")
    >>> e, omega, alpha = sol.orientation("link2"), sol.angular_velocity("link2"), sol.angular_acceleration("link2")
    >>> x.shape, e.shape, sol.joint("joint1").shape, sol.energy().shape, bool(sol.status)
    ((6, 3), (6, 4), (6, 1), (6,), True)
    >>> rates, accelerations = sol.joint_rate("joint1"), sol.joint_acceleration("joint1")
    >>> sol.add_notes(["a note"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sol.save(f"{folder}/swing.nc")
    ...     sol.to_csv(f"{folder}/swing.csv", ["link1", "link2"])
    ...     page = sol.animate(f"{folder}/swing.html")
    ...     figure = sol.plot("link2", "position", f"{folder}/swing.svg")
    """

    def __init__(
        self,
        description: Description,
        time: Floats,
        arrays: Mapping[str, Floats],
        iterations: NDArray[np.int64],
        status: Status,
        counters: Counters,
        states: States | None = None,
        events: Sequence[Occurrence] = (),
        series: Mapping[str, Series] | None = None,
    ) -> None:
        self.description = description
        self.time = time
        self.arrays = MappingProxyType(arrays)
        self.iterations = iterations
        self.status = status
        self.counters = counters
        self.states = states
        self.events = tuple(events)
        #: What else is known at every time point: forces of drivers, elements and joints, by names as `motor.torque`.
        self.series: Mapping[str, Series] = MappingProxyType(dict(series or {}))
        self._mechanism: Mechanism | None = None
        self._dataset: xarray.Dataset | None = None

    @classmethod
    def of(
        cls,
        description: Description,
        time: ArrayLike,
        position: ArrayLike,
        orientation: ArrayLike,
        velocity: ArrayLike,
        angular_velocity: ArrayLike,
        acceleration: ArrayLike,
        angular_acceleration: ArrayLike,
        *,
        status: Status,
        counters: Counters,
        iterations: ArrayLike,
        states: States | None = None,
        events: Sequence[Occurrence] = (),
    ) -> Solution:
        """A solution of plain arrays, which are copied; bodies are in the order of the description.

        `description`, `status`, `counters`, `states` (None) and `events` (none) are as in the class. `time` (T,);
        `position`, `velocity`, `angular_velocity`, `acceleration` and `angular_acceleration` (T, nb, 3) of body origins
        in ground's axes; `orientation` (T, nb, 4), Euler parameters e0..e3 that do not change sign from one time to the
        next; `iterations` (T,). Raises ShapeError for arrays of other shapes.

        >>> import numpy as np, linkwright as lw
        >>> x, e, n = np.zeros((1, 1, 3)), np.array([[[1.0, 0.0, 0.0, 0.0]]]), [0]
        >>> ends = {"status": lw.Status(True), "counters": lw.Counters()}
        >>> len(lw.Solution.of(lw.chain(1).description, [0.0], x, e, x, x, x, x, iterations=n, **ends))
        1
        """
        when = _checked("time", time, None, "(T,)")
        motion = (position, orientation, velocity, angular_velocity, acceleration, angular_acceleration)
        points, bodies = len(when), description.nb
        arrays = {
            name: _checked(name, array, (points, bodies, size), "(time points, bodies, components)")
            for (name, (size, _, _)), array in zip(QUANTITIES.items(), motion, strict=True)
        }
        counts = _checked("iterations", iterations, (points,), "(time points,)", np.int64)
        return cls(description, when, arrays, counts, status, counters, states, events)

    @classmethod
    def of_states(
        cls,
        description: Description,
        time: ArrayLike,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        *,
        status: Status,
        counters: Counters,
        events: Sequence[Occurrence] = (),
        mechanism: Mechanism | None = None,
    ) -> Solution:
        """A solution of coordinates: `time` (T,), `q` (T, nq), `v` and `a` (T, nv) of the spanning tree.

        The motion of the bodies is computed when it is first asked for, by `mechanism` if it is given. Arrays of floats
        are not copied, but sealed. `description`, `status`, `counters` and `events` (none) are as in the class. Raises
        ShapeError for arrays of other shapes.

        >>> import linkwright as lw
        >>> ends, x = {"status": lw.Status(True), "counters": lw.Counters()}, [[0.0], [0.1]]
        >>> lw.Solution.of_states(lw.chain(1).description, [0.0, 0.1], x, x, x, **ends).position("link1").shape
        (2, 3)
        """
        when = _taken("time", time, None)
        x = Tree(description, span(description)).coordinates if mechanism is None else mechanism
        parts = (("q", q, x.nq), ("v", v, x.nv), ("a", a, x.nv))
        states = States(*(_taken(name, array, (len(when), n)) for name, array, n in parts))
        arrays = BodyArrays(description, states.q, states.v, states.a)
        none = sealed(np.zeros(len(when), np.int64))
        solution = cls(description, when, arrays, none, status, counters, states, events)
        solution._mechanism = mechanism
        return solution

    def with_series(self, series: Mapping[str, Series]) -> Solution:
        """The same with these `series` besides those it has; each has values (T,) and a unit. Raises ShapeError for
        another T.

        >>> import linkwright as lw
        >>> sol = lw.analyse(lw.chain(1), times=[0.0, 0.1], analysis="dynamic")
        >>> more = sol.with_series({"copy": next(iter(sol.series.values()))})
        """
        for name, one in series.items():
            if len(one) != len(self):
                text = f"series {name!r} has {len(one)} values; there are {len(self)} time points"
                raise ShapeError(text, given=(len(one),), wanted=(len(self),))
        extended = copy(self)
        extended._dataset = None
        extended.series = MappingProxyType({**self.series, **series})
        return extended

    def add_notes(self, notes: Iterable[str]) -> None:
        """Put further `notes`, sentences, behind those of the status."""
        self.status = replace(self.status, notes=(*self.status.notes, *notes))

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        d = self.description
        bodies, points = counted(d.nb, "body", "bodies"), counted(len(self), "point")
        when = d.units.shown("s")
        span = f", t = {when.of(self.time[0]):g} … {when.of(self.time[-1]):g} {when.text}" if len(self) else ""
        return f"<Solution {d.name!r}: {bodies}, {points}{span}; {self.status}>"

    def _repr_html_(self) -> str:
        from linkwright.results.solution_view import output  # weight: viewer

        return output(self)

    def _joint(self, name: str) -> tuple[str, tuple[Floats, Floats, Floats]]:
        names = self.description.joint_names
        if names.find(name) is None and len(fits := fitting(names, name)) == 1:
            name = fits[0]
        q, v, a = joint_motion(self, np.array([names.position("joint", name)]))
        return name, (q[..., 0].T, v[..., 0].T, a[..., 0].T)

    # -- the spanning tree --------------------------------------------------------------------------------
    @property
    def q(self) -> Floats:
        """(T, nq): the coordinates of the spanning tree, as `mechanism.joints` has them."""
        return self._tree.q

    @property
    def v(self) -> Floats:
        """(T, nv): the rates of the spanning tree."""
        return self._tree.v

    @property
    def a(self) -> Floats:
        """(T, nv): the accelerations of the spanning tree, how v changes."""
        return self._tree.a

    @cached_property
    def angle_references(self) -> References:
        """Near which values the angles of joints are, by joint and index, where drivers and others state them."""
        return references_of(self)

    @cached_property
    def _tree(self) -> States:
        if self.states is not None:
            return self.states
        return States(*(sealed(x) for x in tree_motion(self)))

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that moved."""
        if self._mechanism is None:
            from linkwright.mechanism import Mechanism  # weight: mechanism

            self._mechanism = Mechanism(self.description)
        return self._mechanism

    def energy(self, *, unit: str | None = None) -> Floats:
        """(T,): kinetic energy plus potential energy in gravity (J, or in `unit`); that of springs is not in it."""
        mech = self.mechanism
        energy = np.asarray(mech.kinetic_energy(self.q, self.v) + mech.potential_energy(self.q))
        return in_unit(energy, "J", unit, "the energy")

    # -- the outside ------------------------------------------------------------------------------------
    @property
    def data(self) -> xarray.Dataset:
        """All arrays as an xarray Dataset: dimensions time, body, axis (x, y, z) and parameter (e0..e3)."""
        if self._dataset is None:
            self._dataset = motion_arrays(self).dataset()
        return self._dataset

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the solution to a file, whole or not at all.

        path: a name in .csv gives a table in the model's units, as `to_csv` does; any other a NetCDF file in SI units
        that `lw.open` reads, with the model in it. Raises LinkwrightError if it cannot be written.
        """
        from linkwright.results.solution_files import save  # weight: h5py

        if path_text("a solution", path).lower().endswith(".csv"):
            self.to_csv(path)
        else:
            save(self, path)

    def to_csv(self, path: str | os.PathLike[str], names: str | Sequence[str] | None = None) -> None:
        """Write a table, one row per time point, in the model's units, columns as `block.x [m]` or `block.x [mm]`.

        path: the file. names: of bodies and frames, one or several; by default all bodies, then the traced points, the
        series and the joints with one coordinate. Raises NameNotFound for another name.
        """
        from linkwright.results.solution_view import write_csv  # weight: viewer

        write_csv(self, path, names)

    def plot(
        self,
        names: str | Sequence[str] | None = None,
        quantities: str | Sequence[str] = ("position", "velocity", "acceleration"),
        path: str | os.PathLike[str] | None = None,
    ) -> Figure:
        """A figure in the model's units with a column for each body, frame, trace or joint and a row for each quantity.

        names: the columns, one name or several; by default the traced points, the joints of one coordinate that move,
        and the bodies whose origins move, at most six. quantities: the rows, some of "position", "orientation",
        "velocity", "angular_velocity", "acceleration" and "angular_acceleration". path: a file in .png, .svg or .pdf to
        which the figure is written too; none by default. Raises NameNotFound for another name or quantity.
        """
        from linkwright.results.solution_plots import plot  # weight: matplotlib

        return plot(self, names, quantities, path)

    @property
    def held_series(self) -> frozenset[str]:
        """The series that keep a value until the next time point; figures draw them as steps."""
        return frozenset()

    def plot_series(
        self, names: str | Sequence[str] | None = None, path: str | os.PathLike[str] | None = None
    ) -> Figure:
        """A figure of `series` in the model's units, one pair of axes for each unit.

        names: one series or several; by default all but the components of joint forces. path: a file in .png, .svg or
        .pdf to which the figure is written too; none by default. Raises NameNotFound for another name.

        >>> import linkwright as lw
        >>> figure = lw.analyse(lw.chain(1), times=[0.0, 0.1], analysis="dynamic").plot_series()
        """
        from linkwright.results.figures import plot_series  # weight: matplotlib

        return plot_series(self, names, path)

    @overload
    def animate(self, path: str | os.PathLike[str], *, title: str | None = None, height: int | None = None) -> Path: ...
    @overload
    def animate(self, path: None = None, *, title: str | None = None, height: int | None = None) -> Animation: ...
    def animate(
        self, path: str | os.PathLike[str] | None = None, *, title: str | None = None, height: int | None = None
    ) -> Path | Animation:
        """Write an animation as one HTML file that any browser shows, and return its path.

        Without a `path`, an `Animation` that notebooks show, `height` pixels high (from 100 to 4000; 460 by default).
        `title` is the page's title; by default the model's name. Raises LinkwrightError if it cannot be written.
        """
        from linkwright.results.solution_view import animate  # weight: viewer

        return animate(self, path, title, height)


def _taken(name: str, array_like: ArrayLike, shape: tuple[int, ...] | None) -> Floats:
    """The array itself where it is plain and of the right shape, sealed."""
    plain = isinstance(array_like, np.ndarray) and array_like.dtype == np.float64 and array_like.flags.c_contiguous
    fits = plain and (np.ndim(array_like) == 1 if shape is None else np.shape(array_like) == shape)
    if fits:
        array: Floats = sealed(np.asarray(array_like))
        return array
    return np.asarray(_checked(name, array_like, shape, "(time points, components)" if shape else "(T,)"))


def _checked(
    name: str, array_like: ArrayLike, shape: tuple[int, ...] | None, meaning: str, dtype: Any = np.float64
) -> Any:
    """A read-only copy of the right shape."""
    try:
        array = np.array(array_like, order="C")
    except ValueError as error:
        raise ShapeError(f"{name} is not an array of one shape: {error}", wanted=shape) from error
    if array.size and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise DtypeError(f"{name} has dtype {array.dtype}; give {np.dtype(dtype)}", given=array.dtype, wanted=dtype)
    wrong = array.ndim != 1 if shape is None else array.shape != shape
    if wrong:
        wanted = meaning if shape is None else f"{shape}, {meaning}"
        raise ShapeError(f"{name} has shape {array.shape}; give {wanted}", given=array.shape, wanted=shape)
    return sealed(array.astype(dtype))
