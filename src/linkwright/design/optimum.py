"""What an optimisation found: the best parameters, how it came there, and a sentence on how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from linkwright.base.locks import cached_property
from linkwright.errors import LinkwrightError

if TYPE_CHECKING:
    from os import PathLike

    from linkwright.mechanism import Mechanism
    from linkwright.results.status import Status


@dataclass(frozen=True)
class Visit:
    """One evaluation: the objective, how far limits were overstepped (as parts of their sizes), and where; a place
    where the mechanism cannot be evaluated has its reason."""

    value: float
    overstepped: float
    parameters: dict[str, float]
    reason: str = ""


@dataclass(eq=False)
class Optimum:
    """The best that was found, within all limits where that could be."""

    objective: str
    parameters: dict[str, float]
    value: float
    before: float
    constraints: dict[str, tuple[float, float]]  # the least and largest value of each
    status: Status
    history: list[Visit]
    evaluations: int
    gradients: int
    failures: int
    seconds: float
    model: Mechanism = field(repr=False)
    space: Any = field(repr=False)
    limits: dict[str, tuple[float, float]] = field(repr=False)
    maximise: bool = False

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism with the best parameters."""
        return self.model.with_parameters(**self.parameters)

    def report(self) -> str:
        """A text: how it ended, what was reached, and each parameter before and after."""
        word = "maximised" if self.maximise else "minimised"
        lines = [
            str(self.status),
            f"{self.objective} ({word}): {self.before:.6g} -> {self.value:.6g}",
            f"{self.evaluations} evaluations, {self.gradients} with exact derivatives"
            + (f", {self.failures} where the mechanism cannot be" if self.failures else "")
            + f", {self.seconds:.2f} s",
        ]
        wide = max(len(n) for n in self.parameters)
        for k, (name, value) in enumerate(self.parameters.items()):
            low, high = self.space.lower[k], self.space.upper[k]
            at = " (at its lower bound)" if value == low else " (at its upper bound)" if value == high else ""
            lines.append(f"  {name.ljust(wide)}  {self.space.start[k]:.6g} -> {value:.6g}{at}")
        for name, (least, most) in self.constraints.items():
            low, high = self.limits[name]
            span = f"{least:.6g}" if least == most else f"{least:.6g} … {most:.6g}"
            lines.append(f"  {name}: {span}, within {low:g} … {high:g}")
        return "\n".join(lines)

    def plot(self, path: str | PathLike[str] | None = None) -> Any:
        """A figure of the objective and of the parameters over the evaluations."""
        try:
            from linkwright.results.figures import ShownFigure, save_figure
        except ImportError as error:
            raise LinkwrightError("plots need matplotlib: pip install linkwright[plot]") from error
        good = [(k, x) for k, x in enumerate(self.history) if not x.reason]
        figure = ShownFigure(figsize=(7, 6), layout="constrained", facecolor="white")
        axes = figure.subplots(2, 1, sharex=True)
        at = [k for k, _ in good]
        axes[0].plot(at, [x.value for _, x in good], ".-")
        axes[0].set_ylabel(self.objective)
        for k, name in enumerate(self.parameters):
            scaled = [(x.parameters[name] - self.space.start[k]) / self.space.scale[k] for _, x in good]
            axes[1].plot(at, scaled, ".-", label=name)
        axes[1].set(xlabel="evaluation", ylabel="change, as a part of the range")
        axes[1].legend()
        if path is not None:
            save_figure(figure, path, dpi=120)
        return figure

    def __repr__(self) -> str:
        best = ", ".join(f"{n} = {x:.6g}" for n, x in self.parameters.items())
        return f"<Optimum of {self.objective}: {self.before:.6g} -> {self.value:.6g} at {best}; {self.status}>"
