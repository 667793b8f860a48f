"""`lw.linkage_report`: what is asked of a planar linkage: Grashof's condition, transmission angles, mechanical
advantage, dead centres and instant centres.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from linkwright.analysis.analyse import analyse
from linkwright.analysis.dead_centres import DeadCentre, dead_centres, extreme, stands_still
from linkwright.analysis.grashof import FourLinkLoop, four_link_loops, loop_sentences
from linkwright.analysis.instant_centres import InstantCentre, instant_centres
from linkwright.analysis.linkage_cycle import follow
from linkwright.analysis.linkage_motion import Coordinate, LinkageMotion, coordinate, input_of
from linkwright.analysis.linkage_results import OutputMotion, Transmission, Wording, time_ratio
from linkwright.analysis.planar_chain import Chain, plane_normal
from linkwright.analysis.transmission import Transfer, transfers
from linkwright.base.arguments import path_text
from linkwright.base.arrays import Floats
from linkwright.base.files import atomic_text
from linkwright.base.html import heading, line, shown
from linkwright.errors import LinkwrightError, on_one_line
from linkwright.mechanism import Mechanism, mechanism_of
from linkwright.model.description import GROUND
from linkwright.model.quantities import COORDINATES
from linkwright.results.solution import Solution
from linkwright.results.status import Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Outputs that are chosen where none are named.
OUTPUTS = 12
#: Time points times squared bodies up to which `linkwright run` prints a report: a second or so.
LARGEST = 200_000


class LinkageReport:
    """What `lw.linkage_report` returns; angles in radians, lengths in metres.

    - `name` of the model; `normal` (3,) of the plane; `input`: the name of the input's coordinate.
    - `time` (T,) and `input_values` (T,): the points of the motion.
    - `loops`: the loops of four links, each with its lengths, its category by Grashof and the link that turns.
    - `transmission`: by "coupler on rocker", with `angles`, `pressure`, `worst` and where.
    - `outputs`: by coordinate, with `values`, `ratio`, `advantage`, `stroke` and dead `centres`.
    - `toggles`: the dead centres of the input on this motion.
    - `closed`: False of a cycle that was cut off.

    `report()` is a text, of the lines of `sentences()`; `output(name)` is that of any coordinate; `centres(time)` gives
    the instant centres; `series` has all that varies, `save(path)` writes it as CSV, `plot(path)` draws it.
    `lw.linkage_report` makes one, of a `motion` with its `chain` of links, the numbers of those that are `driven`, and
    the coordinates of `outputs`.

    >>> import linkwright as lw
    >>> starts = {"crank": (0, 0, 0), "coupler": (0, 1, 0), "rocker": (3, 0, 0)}
    >>> with lw.Builder("crank and rocker") as b:
    ...     crank, coupler, rocker = (b.body(name) for name in starts)
    ...     for name, start in starts.items():
    ...         b.place(name, start)
    ...     joints = [
    ...         b.joint("revolute", b.ground, crank, "a"),
    ...         b.joint("revolute", b.triad(crank, origin=(0, 1, 0)), coupler, "b"),
    ...         b.joint("revolute", b.triad(coupler, origin=(3, 1.5, 0)), b.triad(rocker, origin=(0, 2.5, 0)), "c"),
    ...         b.joint("revolute", b.triad(b.ground, origin=(3, 0, 0)), rocker, "d"),
    ...     ]
    ...     motor = b.driver("joint", "a", lambda t: t)
    >>> report = lw.linkage_report(b.build(), times=np.linspace(0, 2 * np.pi, 73))
    >>> report.loops[0].category, report.loops[0].turning
    ('crank-rocker', 'crank')
    >>> [(x.end, f"{np.degrees(x.input):.3f}°") for x in report.outputs["d.angle"].centres]
    [('maximum', '144.052°'), ('minimum', '303.804°')]
    >>> np.allclose(report.output("coupler.y").ratio[0], 0.0), str(report.centres(0.0)["crank", "coupler"])
    (True, 'crank and coupler: (0, 1, 0) m')
    >>> report.report().splitlines()[1] == report.sentences()[0]
    True
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report.save(f"{folder}/linkage.csv")
    ...     figure = report.plot(f"{folder}/linkage.svg")
    """

    def __init__(
        self,
        motion: LinkageMotion,
        chain: Chain,
        driven: tuple[int, ...],
        outputs: Sequence[Coordinate],
        *,
        closed: bool = True,
    ) -> None:
        self._motion, self._chain = motion, chain
        d = motion.description
        self.name, self.input, self.normal, self.closed = d.name, motion.input.name, motion.normal, closed
        self.time = motion.solution.time
        self.input_values = motion.series(motion.input)
        first = motion.samples.q[0]
        self.loops: tuple[FourLinkLoop, ...] = tuple(four_link_loops(chain, first, driven))
        drivers = [x for x in d.drivers if x is not motion.driver]
        still = set().union(*map(chain.driven_by, drivers)) - set(driven)
        moved = [self._transmission(x) for x in transfers(chain, first, driven, still)]
        self.transmission: Mapping[str, Transmission] = {name: x for name, x in moved if x is not None}
        self.outputs: Mapping[str, OutputMotion] = {x.name: self._output(x) for x in outputs}
        self.toggles: tuple[DeadCentre, ...] = tuple(dead_centres(motion, motion.input))

    def _transmission(self, transfer: Transfer) -> tuple[str, Transmission | None]:
        motion = self._motion
        angles = transfer.angles(motion.samples.q, motion.normal)

        def pressure(q: Floats) -> float:
            return float(np.abs(0.5 * np.pi - transfer.angles(q, motion.normal))[0])

        worst = extreme(motion, np.abs(0.5 * np.pi - angles), pressure)
        if worst is None:
            return transfer.name, None
        s = worst[1]
        q = motion.state_at(s)
        driving = float(motion.value(motion.input, q, motion.at(self.input_values, s))[0])
        angle = float(transfer.angles(q, motion.normal)[0])
        time = motion.time_at(s, q)
        return transfer.name, Transmission(transfer.link, transfer.driven, angles, angle, time, driving)

    def _output(self, x: Coordinate) -> OutputMotion:
        motion = self._motion
        q, twists = motion.samples.q, motion.motion
        rates, driving = motion.rate(x, q, twists), motion.rate(motion.input, q, twists)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (0.0 if stands_still(motion, x, rates) else rates) / driving
        centres = tuple(dead_centres(motion, x))
        strokes = time_ratio(centres, self.input_values) if motion.input.angular else None
        return OutputMotion(x.name, x.angular, motion.series(x), ratio, centres, strokes)

    def output(self, name: str) -> OutputMotion:
        """The motion of any coordinate with the input: of a joint ("d" or "d.angle") or of a point ("pen.x").

        name: the coordinate. Raises NameNotFound for another name.
        """
        x = coordinate(self._motion.description, name)
        return self.outputs[x.name] if x.name in self.outputs else self._output(x)

    def centres(self, time: float) -> dict[tuple[str, str], InstantCentre]:
        """The instant centres of all pairs of links at the time point that is nearest, by the names of the pair.

        time: in seconds. Links are bodies, those that fixed joints join together as one; ground is the first.
        """
        motion, chain = self._motion, self._chain
        k = int(np.argmin(np.abs(self.time - time)))
        q, twists = motion.samples.q[k], motion.motion[k]
        if not np.isfinite(twists).all():
            raise LinkwrightError(f"at t = {self.time[k]:.6g} s the motion is not unique; ask for another time")
        first = {link: b for b, link in reversed(list(chain.link_of.items()))}
        bodies = [first[link] for link in range(len(first))]
        still = np.zeros(6)
        origins = np.array([q[b, :3] if b != GROUND else q[:, :3].mean(axis=0) for b in bodies])
        rates = np.array([twists[b] if b != GROUND else still for b in bodies])
        level = float(chain.connections[0].point(q) @ motion.normal) if chain.connections else 0.0
        names = chain.names[: len(bodies)]
        return instant_centres(names, origins, rates, motion.normal, level, motion.equations.size)

    # -- text -----------------------------------------------------------------------------------------------------
    def sentences(self) -> list[str]:
        """The report, a line for each loop (or several of one size), transmission angle and output."""
        d, motion = self._motion.description, self._motion
        wording = Wording(d.units, self.input, motion.input.angular, motion.timed)
        lines = loop_sentences(self.loops, d)
        lines += [wording.of_transmission(name, x) for name, x in self.transmission.items()]
        for y in self.outputs.values():
            lines += wording.of_output(y, unbounded=bool(self.toggles))
        lines += wording.of_toggles(self.toggles)
        if not self.closed:
            lines.append("the motion does not come back to where it began: it is cut off")
        return lines

    def report(self) -> str:
        """A text: all lines, below a title."""
        normal = ", ".join(f"{x:.4g}" for x in self.normal + 0.0)
        title = f"{self.name}: planar, normal ({normal}), input {self.input}"
        return "\n".join([title, *self.sentences()])

    @property
    def angular(self) -> bool:
        """Whether the input is an angle."""
        return self._motion.input.angular

    @property
    def series(self) -> dict[str, Series]:
        """All that varies over the motion, by name: the input, each output with its rate and its mechanical advantage
        per the input, each transmission angle; values (T,) in SI units."""
        units = {True: "rad", False: "m"}
        source = units[self.angular]
        named = {self.input: Series(self.input_values, source)}
        for name, y in self.outputs.items():
            same = y.angular == self.angular
            named[name] = Series(y.values, units[y.angular])
            named[f"rate of {name}"] = Series(y.ratio, "1" if same else f"{units[y.angular]}/{source}")
            named[f"advantage of {name}"] = Series(y.advantage, "1" if same else "1/m" if self.angular else "m")
        for name, x in self.transmission.items():
            named[f"transmission angle of {name}"] = Series(x.angles, "rad")
        return named

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """A matplotlib figure: transmission angles, and the rates of the outputs with their dead centres, over the
        input.

        - `path`: a file in .png, .svg or .pdf to which the figure is written, None by default.

        Raises LinkwrightError without matplotlib.
        """
        from linkwright.analysis.linkage_plots import plot  # weight: matplotlib

        return plot(self, path)

    def save(self, path: str | PathLike[str]) -> None:
        """Write `series` as a table, a row for each time point, to a `path` in .csv, whole or not at all.

        Lengths and angles are in the units of the model, the time is in seconds.
        """
        if not path_text("a linkage report", path).lower().endswith(".csv"):
            raise LinkwrightError(f"{path}: the series of a linkage report are written as .csv; give such a name")
        series = self.series
        units = [self._motion.description.units.shown(x.unit) for x in series.values()]
        columns = [unit.of(x.values) for x, unit in zip(series.values(), units, strict=True)]
        with atomic_text(path) as file:
            writer = csv.writer(file)
            way = "time [s]" if self._motion.timed else "way"
            writer.writerow([way, *(f"{name} [{unit.text}]" for name, unit in zip(series, units, strict=True))])
            writer.writerows(np.column_stack([self.time, *columns]).tolist())

    def _repr_html_(self) -> str:
        return shown(heading(self.report().splitlines()[0]), *(line(text) for text in self.sentences()))

    def __str__(self) -> str:
        return self.report()

    def __repr__(self) -> str:
        return f"<LinkageReport of {on_one_line(self.name)}: {len(self.loops)} loops, {len(self.outputs)} outputs>"


def linkage_report(
    model: Mechanism | Solution | str | PathLike[str],
    *,
    input: str | None = None,
    outputs: Sequence[str] | None = None,
    times: Sequence[float] | Floats | None = None,
    cycle: bool | None = None,
) -> LinkageReport:
    """What is asked of a planar linkage: Grashof's condition, transmission and pressure angles, mechanical advantage,
    dead centres and instant centres.

    model: a Solution, whose motion it is; or a Mechanism, or the path of a model file, of which the kinematic motion is
    computed.

    input: the coordinate that drives, "crank.angle", or the joint's name; by default what the only driver prescribes.
    It takes the place of its own driver, or of the only one; other drivers keep their coordinates where they are.

    outputs: coordinates of joints, and of points as "pen.x"; by default those of joints on ground that are not driven.

    times: the time points (s) of the motion of a model, by default those of its SYSTEM.

    cycle: True for all positions that the mechanism reaches from where it is drawn, wherever its driver leads, also
    through toggle positions of the input; `time` is then the length of the way. By default False for a model with
    drivers and times, and for a Solution.

    Raises LinkwrightError if the mechanism does not move in a plane, or has more freedom than its input; NameNotFound
    for a coordinate that there is not.

    >>> import linkwright as lw
    >>> lw.linkage_report(lw.chain(1), times=[0.0, 1.0])
    Traceback (most recent call last):
    linkwright.errors.LinkwrightError: 'chain of 1' has no driver of a coordinate; name the input, as in input='joint1'
    """
    if isinstance(model, Solution):
        solution = model
        whole = bool(cycle)
        if times is not None:
            raise LinkwrightError("times are those of a motion that is to be computed; give the mechanism with them")
    else:
        mech = mechanism_of(model)
        d = mech.description
        input_of(d, input)
        whole = (not d.drivers or (times is None and d.system is None)) if cycle is None else cycle
        if whole:
            times = [0.0 if d.system is None else d.system.start]
        solution = analyse(mech, times=times, analysis="kinematic")
    d = solution.description
    if not len(solution):
        raise LinkwrightError(f"the motion of {d.name!r} has no time point; analyse it first")
    source = input_of(d, input)
    chain = Chain(d)
    normal = plane_normal(chain, solution)
    motion = LinkageMotion(d, solution, source, normal)
    if not np.isfinite(motion.motion).any():
        mobility = Mechanism(d).dof().mobility
        if mobility is not None and mobility.count < mobility.by_rank:
            text = f"{d.name!r} is drawn in a singular position: its constraints leave {mobility.by_rank} degrees of "
            text += f"freedom there, and {mobility.count} by Grübler's count; draw it in another position"
            raise LinkwrightError(text)
        text = f"{d.name!r} does not move with {source.name} alone: it has more degrees of freedom, or none; "
        raise LinkwrightError(text + "drive the others too, or choose another input")
    closed = True
    if whole:
        still = float(solution.time[0])
        around, closed = follow(motion)
        motion = LinkageMotion(d, around, source, normal, still=still)
    driven = driven_links(chain, source)
    named = _usual_outputs(chain, source, driven) if outputs is None else [coordinate(d, x) for x in outputs]
    return LinkageReport(motion, chain, driven, named, closed=closed)


def _usual_outputs(chain: Chain, source: Coordinate, links: Sequence[int]) -> list[Coordinate]:
    """The coordinates of joints between ground and links other than these, that no driver drives."""
    d = chain.description
    driven = {(x.target, x.index) for x in d.drivers if x.kind == "joint"}
    names = []
    for j in range(d.nj):
        ends = chain.link_of[int(d.parent[j])], chain.link_of[int(d.child[j])]
        if 0 in ends and not set(links) & set(ends):
            name = d.joint_names[j]
            words = enumerate(COORDINATES.get(d.kind_of(j).name, ()))
            names += [f"{name}.{word}" for k, word in words if (name, k) not in driven]
    chosen = [coordinate(d, name) for name in names if name != source.name]
    return chosen[:OUTPUTS]


def driven_links(chain: Chain, source: Coordinate) -> tuple[int, ...]:
    """The links that the input's joint joins, or whose points it moves, ground apart."""
    d, j = chain.description, source.joint
    bodies = [x.body for x in source.points] if j < 0 else [int(d.parent[j]), int(d.child[j])]
    return tuple(link for link in (chain.link_of[b] for b in bodies) if link)
