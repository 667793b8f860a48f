"""The whole study, in order and from fixed seeds: every experiment, the design, perturbed plants, what they show."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import active_children, get_context
from signal import SIG_IGN, SIGINT, signal
from typing import NamedTuple

import numpy as np

from linkwright import threads
from linkwright.base.arguments import whole_number
from linkwright.control import Repeated, TwoDof, two_dof
from linkwright.studies.manipulator.experiments import (
    BANDWIDTHS,
    BOUNDS,
    PAPER_BANDWIDTH,
    Jump,
    Perturbed,
    Tracking,
    Wave,
    Waves,
    curve,
    designed,
    jump,
    perturbed,
    straight,
    sweep,
    wave,
)
from linkwright.studies.manipulator.rig import Rig, Variation
from linkwright.studies.manipulator.timing import Timing, measured

Progress = Callable[[str, float], None]
FREQUENCIES = (4.0, 6.0, 8.0, 10.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 20.0, 24.0, 30.0, 40.0)
QUICK_FREQUENCIES = (5.0, 10.0, 14.0, 15.0, 16.0, 20.0, 30.0)


class Claim(NamedTuple):
    """Something that the paper says and this study measures: the two values, the bound, and whether it is met.

    A claim without a bound is not judged: its `met` is None.
    """

    what: str
    paper: str
    found: str
    bound: str
    met: bool | None


@dataclass(frozen=True)
class Study:
    """The results of the study."""

    rig: Rig
    seed: int
    straight: Tracking  # figures 8 and 10
    curve: Tracking  # figure 9
    without: Jump  # figure 11
    design: Repeated  # figure 12
    with_feedback: Jump  # figure 14
    paper_response: Jump  # the same with the paper's wanted response G_D
    wave: Wave  # figures 15 and 16
    sweep: Waves
    plants: tuple[Perturbed, ...]
    timing: Timing  # tables 1 and 2
    seconds: float = 0.0
    notes: tuple[str, ...] = field(default=())

    @property
    def bandwidth(self) -> float:
        """Of the wanted response that was taken (rad/s)."""
        return BANDWIDTHS[self.design.best.which]

    def claims(self) -> list[Claim]:
        """The claims of the paper beside the results."""
        tracking, timing = _tracking_claims(self.straight, self.curve), _timing_claims(self.timing)
        return [*tracking, *_feedback_claims(self), *_plant_claims(self.plants), *timing]

    @property
    def met(self) -> bool:
        """Whether every claim that has a bound is."""
        return all(claim.met is not False for claim in self.claims())

    def __repr__(self) -> str:
        claims = self.claims()
        met, judged = counted(claims)
        lines = [f"Study, seed {self.seed}, {self.seconds:.0f} s: {met} of {judged} claims met"]
        words = {True: "met", False: "NOT met", None: "no bound"}
        lines += [f"  {words[c.met]}: {c.what}: {c.found} ({c.bound})" for c in claims]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def counted(claims: Sequence[Claim]) -> tuple[int, int]:
    """How many claims are met, of how many that have a bound."""
    judged = [claim for claim in claims if claim.met is not None]
    return sum(bool(claim.met) for claim in judged), len(judged)


def run_study(
    rig: Rig | None = None,
    *,
    plants: int = 20,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Study:
    """Run it all. `quick` takes shorter records, fewer frequencies and at most four perturbed plants.

    `progress` is called with the part that begins and how much is done (0 to 1). Perturbed plants are shared out to
    `workers` processes (by default one per core).
    """
    whole_number("plants, the number of perturbed plants,", plants)
    began = time.perf_counter()
    report = progress or (lambda what, part: None)
    bench = Rig(seed=seed) if rig is None else rig
    count = min(plants, 4) if quick else plants
    samples = 2500 if quick else 5000
    report("control step: timing", 0.0)
    timing = measured(bench.geometry, steps=2000 if quick else 20_000)
    report("straight up, by three controllers", 0.03)
    up = straight(bench)
    report("the curve, by three controllers", 0.12)
    around = curve(bench)
    report("acceleration without feedback", 0.16)
    before = jump(bench)
    report("identification and design", 0.18)
    design = designed(bench, rounds=1 if quick else 2, samples=samples, seed=seed + 1)
    two = design.compensator
    report("acceleration with feedback", 0.30)
    after = jump(bench, two)
    slow = jump(bench, _slow(design))
    report("the 16 Hz sine and the sweep", 0.33)
    sine = wave(bench, two)
    waves = sweep(bench, two, QUICK_FREQUENCIES if quick else FREQUENCIES)
    others = []
    for done, one in enumerate(_plants(bench, two, count, samples, seed, workers)):
        others.append(one)
        report(f"perturbed plant {done + 1} of {count}", 0.40 + 0.60 * (done + 1) / count)
    notes = ("a quick run: shorter records, fewer frequencies and plants",) if quick else ()
    spent = time.perf_counter() - began
    return Study(bench, seed, up, around, before, design, after, slow, sine, waves, tuple(others), timing, spent, notes)


def _slow(design: Repeated) -> TwoDof:
    """The best round's K with the wanted response of the paper."""
    last = design.best
    w = PAPER_BANDWIDTH
    return two_dof(
        last.design.problem.G, last.K, ([w * w], [1.0, 2.0 * w, w * w]), last.design.problem.F, dt=last.record.dt
    )


def _plants(rig: Rig, two: TwoDof, count: int, samples: int, seed: int, workers: int | None) -> Iterator[Perturbed]:
    variations = Variation.drawn(count, seed)
    many = min(count, workers if workers is not None else threads())
    if many <= 1:
        for variation in variations:
            yield perturbed(rig, variation, two, samples=min(samples, 4000))
        return
    jobs = [(variation, two, min(samples, 4000)) for variation in variations]
    # Spawned, because compiled code and its threads do not survive a fork.
    pool = ProcessPoolExecutor(many, mp_context=get_context("spawn"), initializer=_begin, initargs=(rig.plain(),))
    with _one_thread_each():
        todo = [pool.submit(_one, job) for job in jobs]
    try:
        for one in todo:
            yield one.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in active_children():
            child.terminate()
        raise
    pool.shutdown()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Workers that begin meanwhile have linear algebra with one thread: there are as many of them as cores."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


_RIG: list[Rig] = []


def _begin(rig: Rig) -> None:
    """The rig of a worker process; its code comes from the cache. Ctrl-C is for the parent, which ends its workers."""
    signal(SIGINT, SIG_IGN)
    _RIG[:] = [rig]


def _one(job: tuple[Variation, TwoDof, int]) -> Perturbed:
    variation, two, samples = job
    return perturbed(_RIG[0], variation, two, samples=samples)


def _tracking_claims(up: Tracking, around: Tracking) -> list[Claim]:
    def smaller(what: str, one: float, other: float, unit: str, paper: str, than: str, judged: bool = True) -> Claim:
        here = f"{1e3 * one:.3g} {unit} against {1e3 * other:.3g} {unit}"
        return Claim(
            what, paper, here, f"smaller than {than}" if judged else "–", bool(one < other) if judged else None
        )

    p, d, f = (up.moves[law] for law in ("pid", "dynamic", "friction"))
    better, further = "improved (fig. 8)", "improved further (fig. 10)"
    than, compensated = "PID's", "Friction compensation, straight up"
    path = around.path
    return [
        smaller("Straight up, delay", d.delay, p.delay, "ms", better, than),
        smaller("Straight up, overshoot", d.overshoot, p.overshoot, "mm", better, than),
        smaller("Straight up, steady error", d.steady_error, p.steady_error, "mm", better, than),
        smaller("Curve, distance from the path", path["dynamic"], path["pid"], "mm", "improved (fig. 9)", than),
        smaller(f"{compensated}: rms error", f.rms_error, d.rms_error, "mm", further, "without"),
        smaller(f"{compensated}: delay", f.delay, d.delay, "ms", further, "without"),
        smaller(f"{compensated}: steady error", f.steady_error, d.steady_error, "mm", further, "without"),
        smaller(f"{compensated}: overshoot", f.overshoot, d.overshoot, "mm", "–", "", judged=False),
        smaller("Friction compensation, curve: path", path["friction"], path["dynamic"], "mm", "–", "", judged=False),
    ]


def _feedback_claims(study: Study) -> list[Claim]:
    before, after, slow = study.without, study.with_feedback, study.paper_response
    delay, shake = after.t50 / before.t50, after.vibration / before.vibration
    w = study.sweep
    peak = int(np.argmin(np.abs(w.frequencies - 16.0)))
    lost, left = abs(w.without[peak]), abs(w.with_feedback[peak])
    flat = float(np.max(np.abs(w.with_feedback)))
    return [
        Claim(
            f"Rise delay (t50) with acceleration feedback, ω = {study.bandwidth:.0f} rad/s",
            "about 1/4",
            f"{delay:.3f} ({1e3 * before.t50:.1f} → {1e3 * after.t50:.1f} ms)",
            "≤ 1/4",
            delay <= 0.25,
        ),
        Claim(
            "The same with the paper's G_D, ω = 100 rad/s",
            "about 1/4",
            f"{slow.t50 / before.t50:.3f} ({1e3 * slow.t50:.1f} ms; G_D alone takes 16.8 ms)",
            "–",
            None,
        ),
        Claim(
            "Vibration amplitude with acceleration feedback",
            "about 1/3",
            f"{shake:.3f} ({before.vibration:.2f} → {after.vibration:.2f} m/s²)",
            "≤ 1/3",
            shake <= 1.0 / 3.0,
        ),
        Claim(
            f"Gain at {w.frequencies[peak]:g} Hz",
            "resonance removed (figs 15, 16)",
            f"{lost:.2f} → {left:.2f}; {flat:.2f} at most anywhere",
            "no peak above 1.2",
            bool(flat <= 1.2 < lost),
        ),
    ]


def _plant_claims(plants: tuple[Perturbed, ...]) -> list[Claim]:
    if not plants:
        return []
    n = len(plants)
    words = {"fixed": "the same K", "redesigned": "K redesigned for each"}
    claims = []
    for which, bounds in BOUNDS.items():
        ratios = np.array([plant.ratios(which) for plant in plants])
        good = int(np.sum((ratios <= bounds).all(axis=1)))
        worst = ratios.max(axis=0)
        claims.append(
            Claim(
                f"{n} perturbed plants, {words[which]}",
                "–",
                f"stable on {int(np.isfinite(ratios).all(axis=1).sum())}, met on {good}; "
                f"worst t50 × {worst[0]:.2f}, vibration × {worst[1]:.2f}",
                f"t50 × {bounds[0]:.2g}, vibration × {bounds[1]:.2g}",
                good == n,
            )
        )
    return claims


def _timing_claims(timing: Timing) -> list[Claim]:
    claims = []
    for form, paper, bound in (("serial", "3.69 ms", 15.0), ("simd", "1.02 ms (four processors)", 6.0)):
        took = timing.forms[form]
        claims.append(Claim(f"Control step, {form}", paper, f"{took:.2f} µs", f"≤ {bound:g} µs", took <= bound))
    return claims
