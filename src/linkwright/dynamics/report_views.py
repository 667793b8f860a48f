"""Linear models and equilibria in a notebook: their modes, and whether they are stable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkwright.base.html import ROWS, beside, heading, line, number, shown, table
from linkwright.base.text import counted

if TYPE_CHECKING:
    from linkwright.dynamics.equilibrium import Equilibrium
    from linkwright.dynamics.linear_model import Linearised


def linearised_html(model: Linearised) -> str:
    """The output for a linear model: its sizes and its modes."""
    n, inputs = model.A.shape[0], model.B.shape[1]
    title = heading("linear model", f"ẋ = A x + B δτ: {counted(n, 'state')}, {counted(inputs, 'input')}")
    return shown(title, _modes(model))


def equilibrium_html(state: Equilibrium) -> str:
    """The output for a state of rest."""
    title = heading("equilibrium", "stable" if state.stable else "unstable: a small motion grows")
    q = ((f"q[{k}]", float(x)) for k, x in enumerate(state.q[:ROWS]))
    work = f"{counted(state.iterations, 'iteration')}; accelerations left: {state.acceleration:.1e}"
    return shown(
        title, beside(table(("coordinate", "value"), q, len(state.q)), _modes(state.linear)), line(work, soft=True)
    )


def _modes(model: Linearised) -> str:
    if not len(model.A):
        return line("nothing moves")
    if len(model.A) > 400:
        return line("its modes: model.modes", soft=True)
    least = 1e-7 * max(abs(mode.value) for mode in model.modes)  # what is less is the rounding of a zero
    rows = (
        (float(mode.frequency), round(float(mode.damping), 9) + 0.0, _complex(mode.value, least))
        if abs(mode.value) > least
        else (0.0, 0.0, "0")
        for mode in model.modes[:ROWS]
    )
    return table(("frequency (Hz)", "damping ratio", "eigenvalue (1/s)"), rows, len(model.modes))


def _complex(value: complex, least: float) -> str:
    """A complex number; parts that are less than the least are none."""
    real, imaginary = (x if abs(x) > least else 0.0 for x in (value.real, value.imag))
    if not imaginary:
        return number(real)
    return f"{number(real) if real else ''} ± {number(abs(imaginary))}i".strip()
