"""Where everything stands when bodies are masses: constraints that share their code, with trivial numbers folded."""

from __future__ import annotations

from linkwright.base.locks import cached_property
from linkwright.constraints.blocks import Pattern
from linkwright.constraints.carried import patterns
from linkwright.constraints.central import CentralEquations
from linkwright.constraints.forms import Form
from linkwright.constraints.recorded import Layout

Key = tuple[Form, tuple[bool, ...], Pattern]


class CentralLayout(Layout):
    """Where everything stands, with the numbers of records that are trivial folded into the code."""

    equations: CentralEquations

    def __init__(self, equations: CentralEquations, *, whole: bool = False, in_rounds: bool = False) -> None:
        self.width, self.whole, self.in_rounds = equations.space.motion, whole, in_rounds
        super().__init__(equations)

    @cached_property
    def patterns(self) -> list[Pattern]:
        """For each constraint, which numbers of its record are trivial."""
        found: list[Pattern] = [()] * len(self.equations.constraints)
        for members in self.groups.values():
            chosen = patterns([self.equations.constraints[k].record for k in members])
            for k, pattern in zip(members, chosen, strict=True):
                found[k] = pattern
        return found

    @cached_property
    def alike(self) -> dict[Key, list[int]]:
        """The constraints that share their code."""
        found: dict[Key, list[int]] = {}
        for (form, moving), members in self.groups.items():
            for k in members:
                found.setdefault((form, moving, self.patterns[k]), []).append(k)
        return found
