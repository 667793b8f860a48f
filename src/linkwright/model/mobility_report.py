"""`Mobility`: the mobility of a mechanism explained, as counts, sentences and a table. It computes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from linkwright.base.arguments import counted, first_few

Family = Literal["planar", "spherical", "spatial"]
#: How many degrees of freedom a body has that moves in a plane, about a point, or in space.
FAMILIES: dict[Family, int] = {"planar": 3, "spherical": 3, "spatial": 6}


@dataclass(frozen=True)
class LinkageCount:
    """The Grübler–Kutzbach count of bodies and what joins them, all moving in one family of motions.

    `about` is the normal of a plane or the centre of a sphere; `held` is how many of a body's degrees of freedom within
    the family the joints take away, all together; `moving` is how many bodies move. `half_joints` are contacts of
    curves that slide, each of which holds one; they are not among the `joints`.
    """

    family: Family
    moving: int
    joints: int
    held: int
    about: tuple[float, float, float] | None = None
    bodies: tuple[str, ...] = ()
    half_joints: int = 0

    @property
    def degrees_of_freedom(self) -> int:
        """λ · moving bodies − what the joints hold."""
        return FAMILIES[self.family] * self.moving - self.held

    def __str__(self) -> str:
        point = "" if self.about is None else "(" + ", ".join(f"{x:.4g}" for x in self.about) + ")"
        why = {
            "planar": f"all move parallel to a plane with normal {point}",
            "spherical": f"all turn about the point {point}",
            "spatial": "no common plane or centre",
        }[self.family]
        freedom, joints = FAMILIES[self.family], counted(self.joints, "joint")
        if self.half_joints:
            half = counted(self.half_joints, "half joint" if self.family == "planar" else "contact")
            joints = f"{joints} and {half}" if self.joints else half
        return (
            f"{self.family} ({why}): {freedom}·{self.moving} of the moving bodies − {self.held} held by {joints} = "
            f"{_minus(self.degrees_of_freedom)}"
        )


@dataclass(frozen=True)
class JointRelaxation:
    """A joint that becomes one with more freedom: `kind` is replaced by `other`, which holds `freed` equations less.

    `motions` are those that it frees, constrained twice before: "rotations about (1, 0, 0) and (0, 1, 0)".
    """

    joint: str
    kind: str
    other: str
    freed: int
    motions: str = ""

    def __str__(self) -> str:
        return f"replace {self.kind} joint {self.joint!r} by a {self.other} joint"


@dataclass(frozen=True)
class Mobility:
    """Why a mechanism has the degrees of freedom that it has.

    `counts` are those of Grübler and Kutzbach, one for each part that moves in a family of its own; `couplings` are the
    gears, each of which takes one away; `in_space` is the count with six for every body; `by_rank` is what the
    constraint equations without drivers really leave at the drawn position. `driven` names drivers with what they
    drive, `free` describes the undriven degrees of freedom, `redundant` is how many equations follow from others, and
    `relaxations` are joints to replace so that `redundant_after` are left.
    """

    counts: tuple[LinkageCount, ...]
    couplings: int
    in_space: int
    by_rank: int
    driven: tuple[str, ...] = ()
    undriven: int = 0
    free: tuple[str, ...] = ()
    redundant: int = 0
    relaxations: tuple[JointRelaxation, ...] = ()
    redundant_after: int = 0

    @property
    def count(self) -> int:
        """The Grübler–Kutzbach count of the whole."""
        return sum(part.degrees_of_freedom for part in self.counts) - self.couplings

    @property
    def family(self) -> str:
        """That of the whole: "planar", "spherical", "spatial", or "mixed"."""
        families = {part.family for part in self.counts}
        return families.pop() if len(families) == 1 else "mixed"

    def rows(self) -> list[tuple[str, str, str]]:
        """What is counted, how, and the number: the lines of a table."""
        rows = []
        for part in self.counts:
            of = f" of {first_few(part.bodies, 4)}" if len(self.counts) > 1 else ""
            rows.append((f"Grübler–Kutzbach{of}", str(part).rpartition(" = ")[0], _minus(part.degrees_of_freedom)))
        if self.couplings:
            rows.append(("gears", "one held by each", _minus(-self.couplings)))
        if len(self.counts) > 1 or self.couplings:
            rows.append(("Grübler–Kutzbach, the whole", "sum of these", _minus(self.count)))
        if self.family != "spatial":
            rows.append(("count in space", "six for every body less all equations", _minus(self.in_space)))
        rows.append(("degrees of freedom", "by rank of the constraint equations", _minus(self.by_rank)))
        rows.append(("driven", first_few(self.driven, 4) or "no drivers", _minus(self.by_rank - self.undriven)))
        rows.append(("undriven", first_few(self.free, 4) or "nothing", _minus(self.undriven)))
        advice = "; ".join(map(str, self.relaxations[:3])) or "nothing"
        rows.append(("redundant equations", advice if self.redundant else "nothing", str(self.redundant)))
        return rows

    def sentences(self) -> list[str]:
        """The explanation, a sentence each."""
        rank, freedom = _freedom_of(self.by_rank), self._freedom()
        agrees = [f"the rank of the constraint equations agrees: {rank}"] if self.by_rank == self.count else []
        return [self._counted(), *agrees, *self._differing(), *freedom, *self._relaxed()]

    def conclusions(self) -> list[str]:
        """What follows from the table: where count and rank differ, and what is redundant, a sentence each."""
        return [*self._differing(), *self._relaxed()]

    def _counted(self) -> str:
        text = "; ".join(map(str, self.counts[:4]))
        if len(self.counts) > 4:
            text += f"; and {len(self.counts) - 4} more parts"
        if self.couplings:
            text += f"; less {counted(self.couplings, 'gear')}"
        whole = f"; together {_minus(self.count)}" if len(self.counts) > 1 or self.couplings else ""
        return f"the Grübler–Kutzbach count is {text}{whole}"

    def _differing(self) -> list[str]:
        if self.by_rank == self.count:
            return []
        more = self.by_rank - self.count
        return [
            f"the rank of the constraint equations says {_freedom_of(self.by_rank)}, {abs(more)} more than the count: "
            "special dimensions or a special position make it movable, and it binds where these are not exact"
        ]

    def _freedom(self) -> list[str]:
        lines = []
        if self.driven:
            lines.append(f"driven: {first_few(self.driven, 6)}")
        if self.undriven:
            what = counted(self.undriven, "degree of freedom is", "degrees of freedom are")
            lines.append(f"{what} undriven: {first_few(self.free, 6)}")
        return lines

    def _relaxed(self) -> list[str]:
        if not self.redundant:
            return []
        equations = counted(self.redundant, "equation is", "equations are")
        text = f"{equations} redundant, so that reactions are not unique and inexact dimensions load the joints"
        if self.relaxations:
            steps = "; ".join(self._constrained_twice())
            left = (
                f"with these {self.redundant_after} are left"
                if self.redundant_after
                else "with these none is redundant, and the count in "
            )
            left += "" if self.redundant_after else f"space is {_minus(self.by_rank)} too"
            text += f": {steps}; {left}; the choice is not unique"
        return [text]

    def _constrained_twice(self) -> Iterator[str]:
        """Which motions of joints are constrained twice, and what frees them; joints of one kind together."""
        alike: dict[tuple[str, str, str], list[JointRelaxation]] = {}
        for x in self.relaxations:
            alike.setdefault((x.motions, x.kind, x.other), []).append(x)
        for (motions, kind, other), some in alike.items():
            names = first_few([repr(x.joint) for x in some], 6)
            verb, them = ("are", "them") if some[0].freed > 1 else ("is", "it")
            joints, freed = ("joints", f"{other} joints free") if len(some) > 1 else ("joint", f"a {other} joint frees")
            yield f"the {motions} of {kind} {joints} {names} {verb} constrained twice, {freed} {them}"

    @property
    def summary(self) -> str:
        """One line: the count, the rank, what is driven and undriven, and joints to replace for redundant equations."""
        few = [
            f"{x.family} {FAMILIES[x.family]}·{x.moving} − {x.held} = {_minus(x.degrees_of_freedom)}"
            for x in self.counts
        ]
        rank = _freedom_of(self.by_rank)
        parts = [f"Grübler–Kutzbach count {first_few(few, 3)}", f"by rank {rank}"]
        parts.append(f"{self.by_rank - self.undriven} driven, {self.undriven} undriven")
        if self.redundant:
            advice = first_few([str(x) for x in self.relaxations], 2)
            parts.append(f"{self.redundant} redundant" + (f": {advice}" if advice else ""))
        return "mobility: " + "; ".join(parts)

    def __str__(self) -> str:
        return "\n".join(self.sentences())


def _minus(number: int) -> str:
    return f"−{-number}" if number < 0 else str(number)


def _freedom_of(number: int) -> str:
    return counted(number, "degree of freedom", "degrees of freedom")
