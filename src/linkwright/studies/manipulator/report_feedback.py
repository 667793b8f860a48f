"""The report's sections about acceleration feedback: identification, design, what it does, perturbed plants, effort."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwright.studies.manipulator.experiments import (
    BANDWIDTHS,
    BOUNDS,
    EFFORT,
    EXCITATION,
    EXCITED,
    FILTER,
    PAPER_BANDWIDTH,
    STEP,
)
from linkwright.studies.manipulator.figures_design import coherent_error
from linkwright.studies.manipulator.machine_figures import LAWS
from linkwright.studies.manipulator.report_data import modes
from linkwright.studies.manipulator.report_machine import Pictures
from linkwright.studies.manipulator.report_parts import (
    Cell,
    Section,
    columns,
    escaped,
    listed,
    number,
    paragraph,
    picture,
    table,
    thousands,
)

if TYPE_CHECKING:
    from linkwright.control import Round
    from linkwright.studies.manipulator.experiments import Jump
    from linkwright.studies.manipulator.manipulator_study import Study

#: When 1 − (1 + ω t) e^(−ω t) is a half: ω t.
HALF = 1.67834699


def before_section(study: Study, pictures: Pictures) -> Section:
    """Figure 11."""
    one = study.without
    inside = paragraph(
        f"The reference acceleration jumps to {STEP:g} m/s² upward, after 0.2 s to −{STEP:g} m/s², and ends."
    )
    inside += picture(
        pictures["before"],
        "Measured acceleration over time without feedback, beside the reference.",
        f"Under dynamic control alone the motors stick at first, so that half of the step is reached after "
        f"{thousands(one.t50)} ms, and the elastic gears ring with {number(one.vibration)} m/s².",
    )
    return Section("before", "Acceleration without feedback", "fig. 11", inside)


# -- identification and design ----------------------------------------------------------------------------------------
def identification_section(study: Study, pictures: Pictures) -> Section:
    """Figure 12, per round."""
    rounds = study.design.rounds
    inside = paragraph(
        "From the reference acceleration to the measured one the controlled machine is taken as a linear system. An "
        f"M-sequence of ± {EXCITATION:g} m/s², without what is below {EXCITED:g} Hz, excites it; a Box–Jenkins "
        "model is fitted by prediction errors. From the second round on the compensator of the one before is in the "
        "loop."
    )
    for one in rounds:
        shown = ", ".join(f"{m['hertz']:.1f} Hz (damping {m['damping']:.3f})" for m in modes(one)) or "none"
        inside += picture(
            pictures[f"bode{one.number}"],
            f"Bode plot of round {one.number}: gain and phase of the model with its band, the measured response as "
            "dots, and its coherence below.",
            f"Round {one.number}: the model with its 95 % band, the response measured without a model, and the "
            f"coherence, which shows where that can be trusted. Modes of the model: {escaped(shown)}.",
        )
    return Section("identification", "Identification", "fig. 12", inside)


def design_section(study: Study, pictures: Pictures) -> Section:
    """The rounds, weights and loops."""
    design = study.design
    inside = paragraph(
        "K minimises ‖[W<sub>T</sub> K(1 + GK)<sup>−1</sup>G; W<sub>S</sub> G(1 + KG)<sup>−1</sup>]‖<sub>∞</sub>. "
        "W<sub>T</sub> lies above what the measured response differs from the model, W<sub>S</sub> says up to where "
        f"the response is to be improved; the low-pass F = {FILTER:g}/(s + {FILTER:g}) is part of the loop."
    )
    heads = columns("", numbers=("fit", "γ_opt", "verified norm", "K = 0", "states of K"))
    heads += columns("modes", "margins")
    inside += table(heads, [_row(one) for one in design.rounds], cards=True)
    notes = [f"Round {one.number}: {escaped(note)}" for one in design.rounds for note in one.notes]
    notes += [escaped(text) for text in design.refused]
    inside += listed([*notes, f"How the rounds ended: {escaped(design.ended)}."])
    for one in design.rounds:
        inside += picture(
            pictures[f"weights{one.number}"],
            f"Gains of the weights of round {one.number} over frequency, W_T above the dots of the model's error.",
            f"Round {one.number}: the weights. Dots are the error of the model where the record is coherent; "
            f"{_above(one)}",
        )
        inside += picture(
            pictures[f"loop{one.number}"],
            f"Round {one.number}: above the cost's largest singular value over frequency with and without control and "
            "γ as a line, below the loop's S and T.",
            f"Round {one.number}: an optimum of H∞ has a flat cost, here at {number(one.design.norm.upper)} "
            f"(verified); without control it reaches {_baseline(one)}. Where |S| is below 1, feedback reduces errors "
            "by so much; the dotted line is what W<sub>T</sub> allows |T| at γ<sub>opt</sub>.",
        )
    return Section("design", "H∞ design", "section 5", inside)


def _row(one: Round) -> tuple[str | Cell, ...]:
    shown = ", ".join(f"{m['hertz']:.1f} Hz, ζ {m['damping']:.3f}" for m in modes(one)) or "–"
    m = one.compensator.margins
    margins = f"gain × {number(m.gain_up)}, phase {np.degrees(m.phase):.0f}°, delay {thousands(m.delay)} ms"
    return (
        f"round {one.number}",
        f"{100.0 * one.model.fit:.1f} %",
        number(one.design.gamma_opt),
        number(one.design.norm.upper),
        _baseline(one),
        f"{one.order} of {one.full_order}",
        shown,
        margins,
    )


def _baseline(one: Round) -> str:
    return "∞ (unstable)" if one.design.baseline is None else number(one.design.baseline)


def _above(one: Round) -> str:
    """How many of the errors lie under W_T."""
    error, weight = coherent_error(one)[1:]
    good, many = int(np.sum(error <= weight)), len(error)
    if not many:
        return "here it is so nowhere."
    return f"W<sub>T</sub> lies above {'all' if good == many else good} of these {many}."


# -- what it does -----------------------------------------------------------------------------------------------------
def feedback_section(study: Study, pictures: Pictures) -> Section:
    """Figure 14, and the paper's own wanted response."""
    before, after, slow = study.without, study.with_feedback, study.paper_response
    inside = picture(
        pictures["jump"],
        "Measured acceleration with and without feedback beside the reference, and the first step at a larger scale.",
        f"Half of the step is reached after {thousands(after.t50)} ms instead of {thousands(before.t50)} ms "
        f"(× {number(after.t50 / before.t50)}; the paper: about 1/4), and the vibration is {number(after.vibration)} "
        f"m/s² instead of {number(before.vibration)} m/s² (× {number(after.vibration / before.vibration)}; the paper: "
        "about 1/3).",
    )
    heads = columns("", numbers=("t50 (ms)", "vibration (m/s²)", "t50, ratio", "vibration, ratio"))
    rows = [_jump_row(name, one, before) for name, one in (("without", before), ("with feedback", after))]
    rows.append(_jump_row("with feedback, paper's G_D", slow, before))
    inside += table(heads, rows)
    inside += "<h3>The wanted response</h3>\n" + paragraph(_why(study))
    inside += picture(
        pictures["slow"],
        "The first step with the paper's wanted response and with the faster one, beside that response itself.",
        "The dotted curve is the paper's wanted response alone: what follows it reaches half no sooner.",
    )
    return Section("feedback", "Acceleration with feedback", "fig. 14", inside)


def _why(study: Study) -> str:
    alone, quarter = 1e3 * HALF / PAPER_BANDWIDTH, 1e3 * study.without.t50 / 4.0
    w = f"{PAPER_BANDWIDTH:g}"
    text = (
        f"The paper's wanted response G<sub>D</sub> = {w}²/(s + {w})² alone needs {alone:.1f} ms to half of a step, "
        f"whatever K does; a quarter of the time without feedback is {number(quarter)} ms"
    )
    text += ", which it cannot reach. " if quarter < alone else ". "
    taken = f"Here G<sub>D</sub> = {study.bandwidth:g}²/(s + {study.bandwidth:g})² was taken: "
    if study.bandwidth == min(BANDWIDTHS):
        return f"{text}{taken}the slowest of the list."
    return (
        f"{text}{taken}the fastest of the list whose feedforward asks for no more than {EFFORT:g} times the "
        "reference's step: what the motors can do."
    )


def _jump_row(name: str, one: Jump, before: Jump) -> tuple[str, ...]:
    ratios = (number(one.t50 / before.t50), number(one.vibration / before.vibration))
    return (name, thousands(one.t50), number(one.vibration), *ratios)


def sine_section(study: Study, pictures: Pictures) -> Section:
    """Figures 15 and 16, and the sweep."""
    one, many = study.wave, study.sweep
    inside = picture(
        pictures["wave"],
        f"Acceleration for a sine of {one.frequency:g} Hz over time, without feedback and with it, beside the "
        "reference.",
        f"A sine of {one.frequency:g} Hz, near the resonance, while the plate slowly rises (at rest the motors would "
        f"stick). Above without feedback (fig. 15), below with it (fig. 16).",
    )
    top = int(np.argmax(np.abs(many.without)))
    inside += picture(
        pictures["sweep"],
        "Gain and phase over frequency by single sines, without feedback and with it.",
        f"The same by sines of {len(many.frequencies)} frequencies. Without feedback the gain has a peak of "
        f"{np.abs(many.without[top]):.2f} at {many.frequencies[top]:g} Hz; with feedback it is "
        f"{np.abs(many.with_feedback[top]):.2f} there, and {np.max(np.abs(many.with_feedback)):.2f} at most.",
    )
    return Section("sine", "Sines", "figs 15 and 16", inside)


def plants_section(study: Study, pictures: Pictures) -> Section:
    """Perturbed plants."""
    plants = study.plants
    inside = paragraph(
        f"{len(plants)} plants whose masses and gear stiffness differ by up to 20 % and whose friction by up to 50 %, "
        "drawn evenly: with the K of the nominal plant, and with one identified and designed anew."
    )
    inside += picture(
        pictures["plants"],
        "Scatter of the ratio of t50 against the ratio of vibration for each perturbed plant, with the bounds drawn.",
        "Each plant twice: with the same K (must lie in the large box) and with its own (in the small one). A ratio "
        "of 1 is what the plant does without feedback.",
    )
    named = ["plant", "mass ×", "stiffness ×", "friction ×", "without: t50 (ms)", "vibration (m/s²)"]
    named += ["same K: t50 ×", "vibration ×", "own K: t50 ×", "vibration ×", "ω (rad/s)"]
    worst = {which: _worst(study, which) for which in BOUNDS}
    rows: list[tuple[str | Cell, ...]] = []
    kinds, marks = {}, {"fixed": "worst with the same K", "redesigned": "worst with its own"}
    for k, one in enumerate(plants):
        v = one.variation
        ratios = [x for which in BOUNDS for x in _judged(one.ratios(which), BOUNDS[which])]
        remarks = [marks[which] for which in BOUNDS if worst[which] == k] + ([one.why] if one.why else [])
        if remarks:
            kinds[k] = "worst"
        numbers = (f"{v.mass:.2f}", f"{v.stiffness:.2f}", f"{v.friction:.2f}")
        alone = (thousands(one.without[0]), number(one.without[1]))
        rows.append(
            (
                str(k + 1),
                *numbers,
                *alone,
                *ratios,
                number(one.bandwidth),
                Cell(f'<span class="note">{escaped("; ".join(remarks))}</span>'),
            )
        )
    inside += table(columns(numbers=named, after=[""]), rows, kinds=kinds, caption="✗: beyond the bound")
    return Section("plants", "Perturbed plants", "", inside)


def _worst(study: Study, which: str) -> int:
    """The plant that is nearest to its bounds, or farthest beyond."""
    ratios = np.array([plant.ratios(which) for plant in study.plants]) / BOUNDS[which]
    return int(np.argmax(np.nan_to_num(ratios, nan=np.inf).max(axis=1)))


def _judged(ratios: tuple[float, float], bounds: tuple[float, float]) -> list[str | Cell]:
    cells: list[str | Cell] = []
    for ratio, bound in zip(ratios, bounds, strict=True):
        text = f"{ratio:.3f}" if np.isfinite(ratio) else "none"
        cells.append(text if ratio <= bound else Cell(f'<span class="missed">✗ {text}</span>'))
    return cells


def torque_section(study: Study, pictures: Pictures) -> Section:
    """What the motors do."""
    limit = study.rig.torque_limit
    after = study.with_feedback.run
    cut = f"it was cut at {after.saturated} of {len(after.time)} samples" if after.saturated else "it was never cut"
    inside = picture(
        pictures["torque"],
        "Largest torque of the six motors over time, straight up by three controllers, and for the acceleration steps "
        "with and without feedback, with the limit drawn.",
        f"The motors' limit is {limit:,.0f} N m. With feedback the torque jumps with the reference, to free the motors "
        f"from their friction at once; {cut}.",
    )
    shown = {f"straight up, {LAWS[law].label}": run for law, run in study.straight.runs.items()}
    shown |= {"± 5 m/s², without feedback": study.without.run, "± 5 m/s², with feedback": after}
    rows = [(name, number(float(np.abs(r.torque).max()), 4), str(r.saturated)) for name, r in shown.items()]
    heads = columns("run", numbers=("largest torque (N m)", "samples cut"))
    return Section("torque", "Motor torques", "", inside + table(heads, rows))
