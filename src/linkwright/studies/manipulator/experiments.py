"""The paper's experiments on the rig, each as plain data: what was asked for, what came, and its measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, lfilter  # type: ignore[import-untyped]  # SciPy has no types

from linkwright.base.arrays import Floats
from linkwright.control import (
    Accelerations,
    Curve,
    Move,
    Pose,
    Record,
    Repeated,
    RoundSettings,
    SampledRun,
    Sine,
    TwoDof,
    m_sequence,
    move,
    path_error,
    repeated_design,
    t50,
    vibration,
)
from linkwright.errors import LinkwrightError
from linkwright.studies.manipulator.rig import SENSOR, Law, Rig, Variation

LAWS: tuple[Law, ...] = ("pid", "dynamic", "friction")
UP = 2  # the vertical axis

#: The wanted responses (rad/s), from the fastest: the paper has 100. See docs/manipulator.md.
BANDWIDTHS = (340.0, 320.0, 300.0, 280.0, 260.0, 240.0, 220.0, 200.0, 180.0, 160.0, 140.0, 120.0, 100.0)
PAPER_BANDWIDTH = 100.0
#: How many times the step of the reference a corrected acceleration may be at its peak. The motors can do 37 times
#: 5 m/s²; a little more is cut for a sample or three.
EFFORT = 45.0
FILTER = 300.0  # rad/s, the low-pass F
STEP, STEP_TIME, BEFORE = 5.0, 0.2, 0.02  # the acceleration of figures 11 and 14: m/s², s, s
REST = 1.0  # s after it
#: Each round's excitation: an M-sequence (m/s²) without what is below `EXCITED` Hz, which would take the plate away.
EXCITATION, EXCITED, HELD, ORDER = 30.0, 2.5, 2, 11
#: The same with a compensator in the loop, which takes away what rings: more, and slower, or friction is all one sees.
INSIDE, INSIDE_HELD = 45.0, 4
AT_REST = 0.1  # of a step: what may be left of it a second later
#: t50 and vibration of perturbed plants, over those without feedback: with the same K, and with one of their own.
BOUNDS = {"fixed": (0.6, 0.6), "redesigned": (0.25, 1.0 / 3.0)}


@dataclass(frozen=True)
class Tracking:
    """Positions under PID, dynamic control and dynamic control with friction compensation (figures 8 to 10)."""

    time: Floats
    reference: Floats  # (T, 3)
    position: Mapping[str, Floats]  # (T, 3) by law
    moves: Mapping[str, Move]  # along the main direction
    path: Mapping[str, float]  # largest distance from the reference's curve (m)
    rms: Mapping[str, float]  # of the distance from the reference in time (m)
    runs: Mapping[str, SampledRun]


@dataclass(frozen=True)
class Jump:
    """The measured acceleration for ± 5 m/s² (figures 11 and 14)."""

    time: Floats
    reference: Floats
    measured: Floats
    t50: float  # s
    vibration: float  # m/s²
    left: float  # m/s², root mean square of the acceleration a second after the motion
    run: SampledRun

    @property
    def at_rest(self) -> bool:
        """Whether the plate has come to rest: a loop that goes on ringing is not stable."""
        return bool(self.left <= AT_REST * np.abs(self.reference).max())


@dataclass(frozen=True)
class Waves:
    """Answers to sines of the reference acceleration: complex amplitude ratios at frequencies (Hz)."""

    frequencies: Floats
    without: NDArray[np.complex128]
    with_feedback: NDArray[np.complex128]


@dataclass(frozen=True)
class Wave:
    """One sine in time (figures 15 and 16)."""

    frequency: float
    time: Floats
    reference: Floats
    without: Floats
    with_feedback: Floats


@dataclass(frozen=True)
class Perturbed:
    """A perturbed plant: measures (t50 in s, vibration in m/s²) without feedback, with the fixed K, and redesigned.

    `bandwidth` is the wanted response of the redesign (rad/s); `why` says what went wrong, if something did.
    """

    variation: Variation
    without: tuple[float, float]
    fixed: tuple[float, float] | None
    redesigned: tuple[float, float] | None
    bandwidth: float = float("nan")
    why: str = ""

    def ratios(self, which: str) -> tuple[float, float]:
        """t50 and vibration over those without feedback; infinite where there is no result."""
        measures = getattr(self, which)
        if measures is None or not np.isfinite(self.without).all():
            return float("inf"), float("inf")
        return measures[0] / self.without[0], measures[1] / self.without[1]


def straight(rig: Rig, laws: Sequence[Law] = LAWS, *, acceleration: float = 10.0, time: float = 0.1) -> Tracking:
    """Up with 10 m/s² for 0.1 s, as much against it for 0.1 s, then still (figures 8 and 10)."""
    a = np.array([[0.0, 0.0, acceleration], [0.0, 0.0, -acceleration], [0.0, 0.0, 0.0]])
    reference = Accelerations(rig.geometry.home[:3], a, [time, time, 10.0], start=0.05)
    return _tracking(rig, Pose(reference, np.zeros(3)), 1.0, laws, np.array([0.0, 0.0, 1.0]))


def curve(rig: Rig, laws: Sequence[Law] = LAWS, *, radius: float = 0.1, duration: float = 0.4) -> Tracking:
    """A quarter of a circle in the horizontal plane, from lower right to upper left, in 0.4 s (figure 9)."""
    angle = np.linspace(0.0, np.pi / 2.0, 13)
    points = radius * np.stack([-np.sin(angle), 1.0 - np.cos(angle), 0.0 * angle], axis=1)
    reference = Curve(rig.geometry.home[:3] + points, duration, start=0.05)
    return _tracking(rig, Pose(reference, np.zeros(3)), 1.0, laws, np.array([-1.0, 1.0, 0.0]) / np.sqrt(2.0))


def _tracking(rig: Rig, reference: Pose, t_end: float, laws: Sequence[Law], along: Floats) -> Tracking:
    runs: dict[str, SampledRun] = {law: checked(rig.run(reference, t_end, law=law)) for law in laws}
    first = next(iter(runs.values()))
    wanted = reference.table(first.time).x[:, :3]
    position = {law: run.position("plate") for law, run in runs.items()}
    return Tracking(
        time=first.time,
        reference=wanted,
        position=position,
        moves={law: move(first.time, wanted @ along, p @ along) for law, p in position.items()},
        path={law: path_error(wanted, p) for law, p in position.items()},
        rms={law: float(np.sqrt(np.mean(np.sum((p - wanted) ** 2, axis=1)))) for law, p in position.items()},
        runs=runs,
    )


def jump(rig: Rig, two: TwoDof | None = None, *, size: float = STEP, time: float = STEP_TIME, seed: int = 0) -> Jump:
    """± 5 m/s² upward, without feedback or with a compensator of the vertical axis.

    Measured is the plate's acceleration, without the sensor's noise; the vibration is that of the second half of the
    first 0.2 s. A second of rest at the end shows whether the loop is stable.
    """
    a = np.array([[0.0, 0.0, size], [0.0, 0.0, -size], [0.0, 0.0, 0.0]])
    reference = Pose(Accelerations(rig.geometry.home[:3], a, [time, time, 10.0], start=BEFORE), np.zeros(3))
    end = BEFORE + 2.0 * time
    run = checked(rig.run(reference, end + REST, compensators=_vertical(two), seed=seed))
    y = run.acceleration("plate")[:, UP]
    window = (BEFORE + 0.5 * time, BEFORE + time)
    return Jump(
        time=run.time,
        reference=reference.table(run.time).xdd[:, UP],
        measured=y,
        t50=t50(run.time, y, size, start=BEFORE),
        vibration=vibration(run.time, y, window),
        left=float(np.sqrt(np.mean(y[run.time > end + 0.7 * REST] ** 2))),
        run=run,
    )


def excited(rig: Rig, two: TwoDof | None = None, *, axis: int = UP, samples: int = 5000, seed: int = 1) -> Record:
    """The record of an identification experiment at home: the corrected acceleration in, the measured one out."""
    size, held = (EXCITATION, HELD) if two is None else (INSIDE, INSIDE_HELD)
    m = m_sequence(ORDER, samples, amplitude=size, hold=held, seed=seed)
    m = np.asarray(lfilter(*butter(2, 2.0 * EXCITED * rig.period, "high"), m))
    compensators = None if two is None else {axis: two}
    run = rig.run(rig.hold(), samples * rig.period, compensators=compensators, excitation={axis: m}, seed=seed)
    checked(run)
    return Record(run.signals["correction"][:samples, 0], run.sensors[SENSOR][:samples, axis], rig.period, r=m)


def designed(rig: Rig, *, rounds: int = 2, samples: int = 5000, seed: int = 1) -> Repeated:
    """Identify → design → insert → repeat on the vertical axis.

    Of several rounds the best is that with the least rms error of the measured acceleration (m/s²) in a motion that no
    other experiment makes: downward, smaller and shorter.
    """

    def experiment(two: TwoDof | None) -> Record:
        return excited(rig, two, samples=samples, seed=seed)

    def judge(two: TwoDof) -> float:
        down = jump(rig, two, size=-0.8 * STEP, time=0.75 * STEP_TIME, seed=seed + 1)
        return float(np.sqrt(np.mean((down.run.sensors[SENSOR][:, UP] - down.reference) ** 2)))

    wanted = [([w * w], [1.0, 2.0 * w, w * w]) for w in BANDWIDTHS]
    low_pass = ([FILTER], [1.0, FILTER])
    settings = RoundSettings(judge=judge if rounds > 1 else None)
    return repeated_design(experiment, wanted, low_pass, dt=rig.period, effort=EFFORT, rounds=rounds, settings=settings)


def wave(rig: Rig, two: TwoDof, *, frequency: float = 16.0, amplitude: float = 3.0) -> Wave:
    """A sine of the reference acceleration, while the plate slowly rises: at rest the motors would stick."""
    runs = [_wave(rig, which, frequency, amplitude) for which in (None, two)]
    (reference, without), (_, with_feedback) = runs
    y = [run.acceleration("plate")[:, UP] for run in (without, with_feedback)]
    return Wave(frequency, without.time, reference.table(without.time).xdd[:, UP], *y)


def sweep(rig: Rig, two: TwoDof, frequencies: Sequence[float], *, amplitude: float = 3.0) -> Waves:
    """Amplitude ratios of sines, each measured over its last whole periods."""
    ratios = np.array([[_ratio(rig, which, f, amplitude) for f in frequencies] for which in (None, two)])
    return Waves(np.asarray(frequencies, dtype=np.float64), *ratios)


def _ratio(rig: Rig, two: TwoDof | None, frequency: float, amplitude: float) -> complex:
    """The complex amplitude of the measured acceleration over that of the reference."""
    reference, run = _wave(rig, two, frequency, amplitude)
    series = (run.acceleration("plate")[:, UP], reference.table(run.time).xdd[:, UP])
    measured, wanted = (_amplitude(run.time, x, frequency) for x in series)
    return measured / wanted


RISING, WAVE_START, WAVE_END = 0.15, 0.2, 1.2  # m/s, s, s


def _wave(rig: Rig, two: TwoDof | None, frequency: float, amplitude: float) -> tuple[Pose, SampledRun]:
    a = np.array([[0.0, 0.0, RISING / 0.1], [0.0, 0.0, 0.0]])
    rise = Accelerations(rig.geometry.home[:3], a, [0.1, 10.0], start=BEFORE)
    sine = Sine(np.zeros(3), [0.0, 0.0, amplitude], frequency, of="acceleration", ramp=0.1, start=WAVE_START)
    reference = Pose(rise + sine, np.zeros(3))
    return reference, checked(rig.run(reference, WAVE_END, compensators=_vertical(two)))


def _amplitude(time: Floats, value: Floats, frequency: float) -> complex:
    last = max(1, int(0.6 * frequency)) / frequency
    inside = (time >= time[-1] - last - 1e-9) & (time < time[-1] - 1e-9)
    return complex(2.0 * np.mean(value[inside] * np.exp(-2j * np.pi * frequency * time[inside])))


def perturbed(rig: Rig, variation: Variation, two: TwoDof, *, samples: int = 4000, redesign: bool = True) -> Perturbed:
    """One perturbed plant: without feedback, with the nominal plant's compensator, and with one of its own."""
    other = rig.varied(variation)
    why: list[str] = []

    def tried(what: str, make: Callable[[], Jump]) -> tuple[float, float] | None:
        try:
            outcome = make()
        except LinkwrightError as error:
            why.append(f"{what}: {error}")
            return None
        if not outcome.at_rest:
            why.append(f"{what}: a second after the motion it still shakes by {outcome.left:.2g} m/s² rms")
            return None
        return outcome.t50, outcome.vibration

    bandwidth = [float("nan")]

    def redesigned() -> Jump:
        design = designed(other, rounds=1, samples=samples)
        bandwidth[0] = BANDWIDTHS[design.best.which]
        return jump(other, design.compensator)

    without = tried("without feedback", lambda: jump(other)) or (float("nan"), float("nan"))
    fixed = tried("fixed K", lambda: jump(other, two))
    anew = tried("redesign", redesigned) if redesign else None
    return Perturbed(variation, without, fixed, anew, bandwidth[0], "; ".join(why))


def checked(run: SampledRun) -> SampledRun:
    """A run that went to its end; another one is an error with the reason."""
    if not run.status:
        raise LinkwrightError(str(run.status))
    return run


def _vertical(two: TwoDof | None) -> dict[int, TwoDof] | None:
    return None if two is None else {UP: two}
