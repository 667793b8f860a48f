"""`lw.linkage_report`: what is asked of a planar linkage: Grashof's condition, transmission angles, mechanical
advantage, dead centres and instant centres.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike

import numpy as np

from linkwright.analysis.analyse import analyse
from linkwright.analysis.dead_centres import DeadCentre, dead_centres, extreme
from linkwright.analysis.grashof import FourLinkLoop, four_link_loops
from linkwright.analysis.instant_centres import InstantCentre, instant_centres
from linkwright.analysis.linkage_motion import Coordinate, LinkageMotion, coordinate, input_of
from linkwright.analysis.planar_chain import Chain, plane_normal
from linkwright.analysis.transmission import Transfer, transfers
from linkwright.base.arrays import Floats
from linkwright.errors import LinkwrightError, on_one_line
from linkwright.mechanism import Mechanism, mechanism_of
from linkwright.model.description import GROUND
from linkwright.model.quantities import COORDINATES
from linkwright.model.units import LENGTH
from linkwright.results.solution import Solution

#: Outputs that are chosen where none are named.
OUTPUTS = 12
#: Time points times squared bodies up to which `linkwright run` prints a report: a second or so.
LARGEST = 200_000


@dataclass(frozen=True, eq=False)
class Transmission:
    """How well a link that carries two forces moves the link that it leads to, over a motion.

    - `link`, `driven`: their names.
    - `angles` (T,): the transmission angle (rad), from 0 to π: between the line of the force and the normal of the way
      of the point where the driven link takes it. In a four-bar it is the angle between coupler and output.
    - `worst` (rad): the transmission angle farthest from π/2 on the way, also between the time points.
    - `time` (s) and `input` (rad or m): where that is.
    """

    link: str
    driven: str
    angles: Floats
    worst: float
    time: float
    input: float

    @property
    def pressure(self) -> Floats:
        """(T,): the pressure angle (rad), from 0 to π/2: between the force and the way of its point."""
        return np.asarray(np.abs(0.5 * np.pi - self.angles))

    @property
    def worst_pressure(self) -> float:
        """The largest pressure angle (rad)."""
        return abs(0.5 * math.pi - self.worst)


@dataclass(frozen=True, eq=False)
class OutputMotion:
    """How an output moves with the input.

    - `name`: of the coordinate, "rocker.angle"; `angular`: whether it is an angle.
    - `values` (T,): the coordinate (rad or m).
    - `ratio` (T,): its rate per rate of the input; ±inf at a toggle position of the input, NaN at a singular position.
    - `centres`: its dead centres.
    """

    name: str
    angular: bool
    values: Floats
    ratio: Floats
    centres: tuple[DeadCentre, ...]

    @property
    def advantage(self) -> Floats:
        """(T,): the mechanical advantage, force (torque) at the output per force (torque) at the input without losses:
        the inverse of the ratio of the rates; ±inf at a dead centre of the output."""
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / self.ratio)

    @property
    def stroke(self) -> float:
        """From the least to the greatest value (rad or m), dead centres included."""
        ends = [*self.values[np.isfinite(self.values)], *(x.output for x in self.centres)]
        return float(max(ends) - min(ends))


class LinkageReport:
    """What `lw.linkage_report` returns; angles in radians, lengths in metres.

    - `name` of the model; `normal` (3,) of the plane; `input`: the name of the input's coordinate.
    - `time` (T,) and `input_values` (T,): the points of the motion.
    - `loops`: the loops of four links, each with its lengths, its category by Grashof and the link that turns.
    - `transmission`: by "coupler on rocker", with `angles`, `pressure`, `worst` and where.
    - `outputs`: by coordinate, with `values`, `ratio`, `advantage`, `stroke` and dead `centres`.
    - `toggles`: the dead centres of the input on this motion.

    `report()` is a text, of the lines of `sentences()`; `output(name)` is that of any coordinate; `centres(time)` gives
    the instant centres. `lw.linkage_report` makes one, of a `motion` with its `chain` of links, the numbers of those
    that are `driven`, and the coordinates of `outputs`.

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
    """

    def __init__(
        self, motion: LinkageMotion, chain: Chain, driven: tuple[int, ...], outputs: Sequence[Coordinate]
    ) -> None:
        self._motion, self._chain = motion, chain
        d = motion.description
        self.name, self.input = d.name, motion.input.name
        self.normal = motion.normal
        self.time = motion.samples.time
        self.input_values = motion.series(motion.input)
        first = motion.samples.q[0]
        self.loops: tuple[FourLinkLoop, ...] = tuple(four_link_loops(chain, first, driven))
        moved = [self._transmission(x) for x in transfers(chain, first, driven)]
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
        q, _ = motion.between(s, int(s))
        driving = float(motion.value(motion.input, q, motion.at(self.input_values, s))[0])
        angle = float(transfer.angles(q, motion.normal)[0])
        time = motion.time_at(s, q)
        return transfer.name, Transmission(transfer.link, transfer.driven, angles, angle, time, driving)

    def _output(self, x: Coordinate) -> OutputMotion:
        motion = self._motion
        q, twists = motion.samples.q, motion.motion
        rates, driving = motion.rate(x, q, twists), motion.rate(motion.input, q, twists)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = rates / driving
        return OutputMotion(x.name, x.angular, motion.series(x), ratio, tuple(dead_centres(motion, x)))

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
        """The report, a line for each loop, transmission angle and output."""
        d = self._motion.description
        lines = [loop.sentence(d) for loop in self.loops]
        for name, x in self.transmission.items():
            low, high = np.degrees([np.nanmin(x.angles), np.nanmax(x.angles)])
            low, high = min(low, math.degrees(x.worst)), max(high, math.degrees(x.worst))
            lines.append(
                f"transmission angle of {name}: {low:.2f}° … {high:.2f}°, worst {math.degrees(x.worst):.2f}° (pressure "
                f"angle {math.degrees(x.worst_pressure):.2f}°) at {self._where(x.input, x.time)}"
            )
        for y in self.outputs.values():
            lines += self._output_lines(y)
        for toggle in self.toggles:
            lines.append(
                f"toggle position of the input {self.input}, a {toggle.end}: {self._where(toggle.input, toggle.time)}"
            )
        return lines

    def _ends(self, y: OutputMotion) -> list[str]:
        """The dead centres of an output, each once."""
        turn = 2.0 * np.pi if self._motion.input.angular else np.inf
        different: list[DeadCentre] = []
        for x in y.centres:
            known = (
                abs(math.remainder(x.input - z.input, turn)) < 1e-6 and abs(x.output - z.output) < 1e-6
                for z in different
            )
            if not any(known):
                different.append(x)
        return [f"{x.end} {self._text(x.output, y.angular)} at {self._where(x.input, x.time)}" for x in different]

    def _output_lines(self, y: OutputMotion) -> list[str]:
        if not np.isfinite(y.ratio).any():
            return []
        finite = y.ratio[np.isfinite(y.ratio)]
        low, high = float(finite.min()), float(finite.max())
        line = (
            f"{y.name}: moves over {self._text(y.stroke, y.angular)}, {low:.4g} … {high:.4g} per rate of {self.input}"
        )
        with np.errstate(divide="ignore"):
            least = float(1.0 / np.abs(finite).max())
        line += f"; mechanical advantage at least {least:.4g}" if np.isfinite(least) else ""
        ends = self._ends(y)
        more = f"; and {len(ends) - 6} more" if len(ends) > 6 else ""
        centres = f"dead centres: {'; '.join(ends[:6])}{more}" if ends else "no dead centre"
        return [line, f"{y.name}: {centres}"]

    def _where(self, driving: float, time: float) -> str:
        return f"{self.input} = {self._text(driving, self._motion.input.angular)} (t = {time:.6g} s)"

    def _text(self, x: float, angular: bool) -> str:
        if angular:
            return f"{math.degrees(0.0 if abs(x) < 1e-12 else x):.4f}°"
        unit = self._motion.description.units.of(LENGTH)
        return f"{x / float(unit.factor):.6g} {unit.text}"

    def report(self) -> str:
        """A text: all lines, below a title."""
        normal = ", ".join(f"{x:.4g}" for x in self.normal + 0.0)
        title = f"{self.name}: planar, normal ({normal}), input {self.input}"
        return "\n".join([title, *self.sentences()])

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
) -> LinkageReport:
    """What is asked of a planar linkage: Grashof's condition, transmission and pressure angles, mechanical advantage,
    dead centres and instant centres.

    model: a Solution, whose motion it is; or a Mechanism, or the path of a model file, of which the kinematic motion is
    computed.

    input: the coordinate that drives, "crank.angle", or the joint's name; by default what the only driver of a joint
    drives. Other drivers keep their coordinates where they are.

    outputs: coordinates of joints, and of points as "pen.x"; by default those of joints on ground that are not driven.

    times: the time points (s) of the motion of a model, by default those of its SYSTEM.

    Raises LinkwrightError if the mechanism does not move in a plane, or has more freedom than its input; NameNotFound
    for a coordinate that there is not.

    >>> import linkwright as lw
    >>> lw.linkage_report(lw.chain(1), times=[0.0, 1.0])
    Traceback (most recent call last):
    linkwright.errors.LinkwrightError: 'chain of 1' has no driver of a coordinate; name the input, as in input='joint1'
    """
    if isinstance(model, Solution):
        solution = model
    else:
        mech = mechanism_of(model)
        input_of(mech.description, input)
        solution = analyse(mech, times=times, analysis="kinematic")
    d = solution.description
    if not len(solution):
        raise LinkwrightError(f"the motion of {d.name!r} has no time point; analyse it first")
    source = input_of(d, input)
    chain = Chain(d)
    motion = LinkageMotion(solution, source, plane_normal(chain, solution))
    if not np.isfinite(motion.motion).any():
        text = f"{d.name!r} does not move with {source.name} alone: it has more degrees of freedom, or none; "
        raise LinkwrightError(text + "drive the others too, or choose another input")
    driven = driven_links(chain, source)
    named = _usual_outputs(chain, source, driven) if outputs is None else [coordinate(d, x) for x in outputs]
    return LinkageReport(motion, chain, driven, named)


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
    """The links that the input's joint joins, or whose point it moves, ground apart."""
    d, j = chain.description, source.joint
    bodies = (source.body,) if j < 0 else (int(d.parent[j]), int(d.child[j]))
    return tuple(link for link in (chain.link_of[b] for b in bodies) if link)
