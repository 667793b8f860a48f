"""Where everything stands when bodies are masses: constraints that share their code, with trivial numbers folded."""

from __future__ import annotations

from linkwright.base.locks import cached_property
from linkwright.constraints.blocks import Pattern
from linkwright.constraints.equations import by_form
from linkwright.constraints.masses import CentralEquations
from linkwright.constraints.recording import Alike, Layout
from linkwright.constraints.tree_bodies import patterns


class CentralLayout(Layout):
    """Where everything stands, with the numbers of records that are trivial folded into the code."""

    equations: CentralEquations

    def __init__(self, equations: CentralEquations, *, whole: bool = False, in_rounds: bool = False) -> None:
        self.width, self.whole, self.in_rounds = equations.space.motion, whole, in_rounds
        super().__init__(equations)

    @cached_property
    def alike(self) -> dict[Alike, list[int]]:
        groups: dict[Alike, list[int]] = {}
        for (form, moving), members in by_form(self.equations.constraints).items():
            for k in members:
                groups.setdefault((form, moving, self.patterns[k]), []).append(k)
        return groups

    @cached_property
    def patterns(self) -> list[Pattern]:
        """For each constraint, which numbers of its record are trivial."""
        constraints = self.equations.constraints
        chosen: list[Pattern] = [()] * len(constraints)
        for members in by_form(constraints).values():
            for k, pattern in zip(members, patterns([constraints[k].record for k in members]), strict=True):
                chosen[k] = pattern
        return chosen
