"""The study's numbers as plain data: one JSON document, and time series as CSV."""

from __future__ import annotations

import csv
import io
import math
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright import __version__
from linkwright.studies.manipulator.experiments import (
    BANDWIDTHS,
    EFFORT,
    EXCITATION,
    EXCITED,
    FILTER,
    HELD,
    ORDER,
    Jump,
    Perturbed,
    Tracking,
)
from linkwright.studies.manipulator.rig import COMPENSATION, DYNAMIC, PID

if TYPE_CHECKING:
    from linkwright.control import Round
    from linkwright.studies.manipulator.manipulator_study import Study
    from linkwright.studies.manipulator.timing import Timing

#: A folder's study.json with this format is one of these reports.
FORMAT, VERSION = "linkwright study parallel-manipulator", 1
PACKAGES = ("numpy", "scipy", "llvmlite", "control", "matplotlib")
PERCENT = (50.0, 99.0, 99.9, 100.0)


def document(study: Study) -> dict[str, Any]:
    """All numbers of the study; what is not finite is null."""
    rig, design = study.rig, study.design
    numbers: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "seed": study.seed,
        "notes": study.notes,
        "seconds": study.seconds,
        "met": study.met,
        "versions": versions(),
        "machine": computer(),
        "claims": [claim._asdict() for claim in study.claims()],
        "geometry": rig.geometry,
        "rig": {
            field.name: getattr(rig, field.name) for field in fields(rig) if field.init and field.name != "geometry"
        },
        "gains": {"dynamic": DYNAMIC, "pid": PID, "friction": COMPENSATION},
        "design": {
            "bandwidths": BANDWIDTHS,
            "effort": EFFORT,
            "filter": FILTER,
            "excitation": {"amplitude": EXCITATION, "above_hz": EXCITED, "hold": HELD, "order": ORDER},
            "bandwidth_taken": study.bandwidth,
            "ended": design.ended,
            "refused": design.refused,
            "rounds": [_round(one) for one in design.rounds],
        },
        "straight": _tracking(study.straight),
        "curve": _tracking(study.curve),
        "acceleration": {
            "without": _jump(study.without),
            "with_feedback": _jump(study.with_feedback),
            "paper_response": _jump(study.paper_response),
        },
        "wave": {"frequency": study.wave.frequency},
        "sweep": _sweep(study),
        "plants": [_plant(one) for one in study.plants],
        "timing": _timing(study.timing),
    }
    return plain(numbers)  # type: ignore[no-any-return]  # a dictionary stays one


def plain(value: Any) -> Any:
    """Dictionaries, lists, numbers, text; a complex number is {re, im}, a number that is not finite is None."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain({field.name: getattr(value, field.name) for field in fields(value)})
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, complex):
        return {"re": plain(value.real), "im": plain(value.imag)}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def versions() -> dict[str, str]:
    """Of Linkwright, Python and the packages that numbers come from."""
    numbers = {"linkwright": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            numbers[name] = version(name)
    return numbers


def computer() -> dict[str, Any]:
    """The processor that times were measured on."""
    name = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {"processor": name, "cores": os.cpu_count(), "system": sys.platform}


def _tracking(one: Tracking) -> dict[str, Any]:
    return {
        law: {
            **asdict(one.moves[law]),
            "path_error": one.path[law],
            "rms_distance": one.rms[law],
            **_effort(one.runs[law]),
        }
        for law in one.moves
    }


def _jump(one: Jump) -> dict[str, Any]:
    return {"t50": one.t50, "vibration": one.vibration, **_effort(one.run)}


def _effort(run: Any) -> dict[str, Any]:
    return {"largest_torque": float(np.abs(run.torque).max()), "samples_cut": run.saturated}


def _round(one: Round) -> dict[str, Any]:
    design, margins = one.design, one.compensator.margins
    return {
        "number": one.number,
        "samples": len(one.record),
        "family": one.model.family,
        "orders": str(one.model.orders),
        "fit": one.model.fit,
        "prediction_fit": one.model.prediction_fit,
        "coefficients": dict(zip(one.model.names, one.model.parameters.tolist(), strict=True)),
        "modes": modes(one),
        "gamma_opt": design.gamma_opt,
        "gamma": design.gamma,
        "norm": {"lower": design.norm.lower, "upper": design.norm.upper},
        "baseline": design.baseline,
        "order": one.order,
        "full_order": one.full_order,
        "wanted": one.which,
        "margins": margins,
        "notes": one.notes,
    }


def modes(one: Round) -> list[dict[str, float]]:
    """The model's oscillating modes: Hz and damping ratio."""
    return [{"hertz": p.frequency, "damping": p.damping} for p in one.model.poles() if p.z.imag > 0]


def _sweep(study: Study) -> list[dict[str, Any]]:
    many = study.sweep
    rows = zip(many.frequencies, many.without, many.with_feedback, strict=True)
    return [{"hertz": f, "without": a, "with_feedback": b} for f, a, b in rows]


def _plant(one: Perturbed) -> dict[str, Any]:
    plant: dict[str, Any] = {"variation": one.variation, "without": _pair(one.without), "why": one.why}
    for which in ("fixed", "redesigned"):
        t50, vibration = one.ratios(which)
        plant[which] = {**_pair(getattr(one, which)), "t50_ratio": t50, "vibration_ratio": vibration}
    return {**plant, "bandwidth": one.bandwidth}


def _pair(measures: tuple[float, float] | None) -> dict[str, Any]:
    return dict(zip(("t50", "vibration"), measures or (None, None), strict=True))


def _timing(timing: Timing) -> dict[str, Any]:
    """In µs; of the loop's steps their percentiles."""
    numbers = {field.name: getattr(timing, field.name) for field in fields(timing)}
    numbers |= {name: percentiles(numbers[name]) for name in ("late", "took")}
    return {**numbers, "steps": len(timing.took)}


def percentiles(values: Any) -> dict[str, float]:
    """Half, 99 %, 99.9 % and all are not above."""
    known = np.asarray(values, dtype=np.float64)
    known = known[np.isfinite(known)]
    if not len(known):
        return {}
    return {f"{part:g} %": float(np.percentile(known, part)) for part in PERCENT}


# -- time series ----------------------------------------------------------------------------------------------------
def tables(study: Study) -> dict[str, str]:
    """CSV files by name: SI units, one row per sample, frequency or plant."""
    files = {name: _positions(getattr(study, name)) for name in ("straight", "curve")}
    jumps = {"without": study.without, "with": study.with_feedback, "paper": study.paper_response}
    columns: dict[str, Any] = {"time_s": study.without.time, "reference": study.without.reference}
    columns |= {f"{name}_m_per_s2": one.measured for name, one in jumps.items()}
    for name, step in jumps.items():
        columns |= {f"{name}_{motor}_N_m": step.run.torque[:, k] for k, motor in enumerate(step.run.drives)}
    files["acceleration"] = text(columns)
    wave = study.wave
    sine = {"reference": wave.reference, "without": wave.without, "with": wave.with_feedback}
    files["sine"] = text({"time_s": wave.time, **{f"{k}_m_per_s2": y for k, y in sine.items()}})
    many = study.sweep
    files["sweep"] = text(_responses(many.frequencies, {"without": many.without, "with": many.with_feedback}))
    for one in study.design.rounds:
        files[f"round{one.number}_record"] = _record(one)
        files[f"round{one.number}_response"] = _response(one)
    if study.plants:
        files["plants"] = _plants(study.plants)
    return {f"{name}.csv": rows for name, rows in files.items()}


def _responses(hertz: Any, ratios: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of frequencies, and of gain and phase of complex ratios, by their names."""
    columns = {"frequency_Hz": hertz}
    for name, ratio in ratios.items():
        columns |= {f"{name}_gain": np.abs(ratio), f"{name}_phase_deg": np.degrees(np.angle(ratio))}
    return columns


def text(columns: Mapping[str, Any]) -> str:
    """Columns of one length with a line of names; what is not finite is empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(_cells(row) for row in zip(*columns.values(), strict=True))
    return file.getvalue()


def _cells(row: Sequence[Any]) -> Iterable[str]:
    for value in row:
        yield value if isinstance(value, str) else f"{value:.9g}" if np.isfinite(value) else ""


def _positions(one: Tracking) -> str:
    columns: dict[str, Any] = {"time_s": one.time}
    for name, at in {"reference": one.reference, **one.position}.items():
        columns |= {f"{name}_{axis}_m": at[:, k] for k, axis in enumerate("xyz")}
    return text(columns)


def _record(one: Round) -> str:
    record = one.record
    columns = {"time_s": record.time, "input_m_per_s2": record.u, "output_m_per_s2": record.y}
    return text(columns | ({} if record.r is None else {"excitation_m_per_s2": record.r}))


def _response(one: Round) -> str:
    seen, model = one.measured, one.model.frequency_response(one.measured.w)
    columns = _responses(seen.hertz, {"measured": seen.response, "model": model})
    if one.model.covariance is not None:
        low, high = one.model.band(seen.w).magnitude
        columns |= {"model_gain_low": low, "model_gain_high": high}
    return text(columns | {"coherence": seen.coherence})


def _plants(plants: Sequence[Perturbed]) -> str:
    names = ("mass", "stiffness", "friction")
    columns: dict[str, Any] = {name: [getattr(one.variation, name) for one in plants] for name in names}
    for which in ("without", "fixed", "redesigned"):
        pairs = [_pair(getattr(one, which)) for one in plants]
        for name, unit in (("t50", "s"), ("vibration", "m_per_s2")):
            values = [pair[name] for pair in pairs]
            columns[f"{which}_{name}_{unit}"] = [np.nan if x is None else x for x in values]
    return text(
        columns | {"bandwidth_rad_per_s": [one.bandwidth for one in plants], "why": [one.why for one in plants]}
    )
