"""Rollouts, linear models and equilibria in a notebook: sizes, modes, and whether they hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.display.charts import Chart, svg
from linkwright.display.markup import ROWS, beside, heading, line, number, shown, table
from linkwright.views import count

#: Motions, samples and coordinates of a rollout that are drawn, and numbers up to which they are looked through.
MOTIONS, SAMPLES, COORDINATES, LOOKED = 24, 80, 3, 4_000_000


def rollout(made: Any) -> str:
    """The output for motions side by side."""
    title = heading("rollout", repr(made).removeprefix("<Rollout: ").removesuffix(">"))
    rows = []
    arrays = {name: getattr(made, name) for name in ("time", "q", "v", "a", "y", "final_q", "final_v")}
    for name, array in arrays.items():
        if array is not None:
            rows.append((name, " × ".join(f"{n:,}" for n in array.shape), *_ends(array)))
    return shown(title, beside(*_motions(made)), table(("array", "shape", "least", "greatest"), rows))


def linearised(model: Any) -> str:
    """The output for a linear model: its sizes and its modes."""
    n, inputs = model.A.shape[0], model.B.shape[1]
    title = heading("linear model", f"ẋ = A x + B δτ: {count(n, 'state')}, {count(inputs, 'input')}")
    return shown(title, _modes(model))


def equilibrium(found: Any) -> str:
    """The output for a state of rest."""
    title = heading("equilibrium", "stable" if found.stable else "unstable: a small motion grows")
    q = ((f"q[{k}]", float(x)) for k, x in enumerate(found.q[:ROWS]))
    work = f"{count(found.iterations, 'iteration')}; accelerations left: {found.acceleration:.1e}"
    return shown(
        title, beside(table(("coordinate", "value"), q, len(found.q)), _modes(found.linear)), line(work, soft=True)
    )


def sentences(text: object) -> str:
    """The output for what is said best in a few lines."""
    return shown(*(line(part) for part in str(text).splitlines()[:ROWS]))


def _modes(model: Any) -> str:
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


def _motions(made: Any) -> list[str]:
    """The first coordinates of some of the motions, each a faint line."""
    if not isinstance(made.q, np.ndarray) or made.q.ndim < 2 or not made.q.size or len(made.time) < 2:
        return []
    q = made.q.reshape(-1, *made.q.shape[-2:])
    some = np.unique(np.linspace(0, len(q) - 1, min(len(q), MOTIONS)).astype(int))
    when = np.unique(np.linspace(0, len(made.time) - 1, min(len(made.time), SAMPLES)).astype(int))
    part = np.asarray(q[np.ix_(some, when)], float)
    shown_ = (made.time[when], part)
    return [
        svg(Chart(f"q[{k}]", shown_[0], shown_[1][:, :, k].T, faint=len(some) > 1))
        for k in range(min(q.shape[-1], COORDINATES))
    ]


def _ends(array: Any) -> tuple[object, object]:
    """The least and the greatest finite value; of arrays elsewhere than in this memory, or very large, nothing."""
    if not isinstance(array, np.ndarray) or array.size > LOOKED:
        return "", ""
    finite = array[np.isfinite(array)]
    return (float(finite.min()), float(finite.max())) if finite.size else ("", "")
