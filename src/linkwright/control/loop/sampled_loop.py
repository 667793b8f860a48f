"""`Loop`: a mechanism under a sampled controller, with encoders, sensors, delay, saturation and noise from a seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import finite_array, positive_number, takes_settings, whole_number
from linkwright.base.arrays import Floats
from linkwright.control.loop.controller_base import Measured, State
from linkwright.control.loop.instruments import Delay, Encoder, EncoderReader, Guard, Saturation, Sensor, Slew
from linkwright.control.loop.plant import Plant, SampledRun, SignalRows, joint_positions
from linkwright.errors import ControlError, LinkwrightError, ModelError
from linkwright.results.status import Counters, Status
from linkwright.simulation.compiled_engines import Trouble
from linkwright.simulation.integrators import tableau_of
from linkwright.simulation.samples import Rows
from linkwright.simulation.termination import ended, interrupted

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

MOST_SAMPLES = 10**8


@dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """Settings of a `Loop` beyond its main arguments: `Loop(..., settings=lw.control.LoopSettings(seed=3))`.

    - `substeps`: how many steps of `method` the plant takes in a period; 10.
    - `method`: the name of an explicit integration method, as in `lw.simulate`; "rk4".
    - `slew`: how much the force of a drive may change in a second (N m/s, N/s); no limit unless given.
    - `seed`: all random numbers of a run come from it; 0.
    - `free`: names of the plant's parameters that `run(parameters=...)` may set without compiling anew; none.
    - `patience`: after so many commands in a row that are not finite the run stops; 10.

    >>> import linkwright as lw
    >>> lw.control.LoopSettings(substeps=4).substeps
    4

    `substeps` or `patience` below 1 and a `slew` that is not greater than zero raise `ModelError`.
    """

    substeps: int = 10
    method: str = "rk4"
    slew: float | None = None
    seed: int = 0
    free: Sequence[str] = ()
    patience: int = 10

    def __post_init__(self) -> None:
        for name in ("substeps", "patience"):
            whole_number(name, getattr(self, name), 1)
        if self.slew is not None:
            positive_number("slew", self.slew)


class Loop:
    """A mechanism in a sampled loop: every `period` the controller sees what sensors show and sets the drives' forces.

    Main arguments:

    - `mech`: the plant. `controller`: an object with `start(measured)` and `step(k, t, measured)`, see `Controller`.
    - `period`: the time between two samples (s); 2e-3. Forces are held between samples.
    - `delay`: how many periods after its sample a command acts; 0.0. A half is half a period later.
    - `drives`: the joints that the controller's forces act on, in their order; those with actuators unless given.
    - `encoders`: an `Encoder`, or a number of counts a turn; exact angles with rates by difference unless given. They
      are those of the drives unless the `Encoder` names other joints.
    - `sensors`: further sensors, by whose names the controller finds their signals; none. "exact" shows the controller
      the true state besides, and exact rates.
    - `torque_limit`: forces are cut at ± this limit (N m, N), one number or one for each drive; no limit unless given.

    Other arguments: `settings`, a `LoopSettings`; its defaults unless given.

    >>> import linkwright as lw
    >>> arm = lw.chain(1)
    >>> run = lw.control.Loop(arm, lw.control.pid(arm, 20.0, 2.0, 0.0, lw.control.Hold([0.3]))).run(0.1)
    >>> bool(run.status)
    True

    A command that is not finite never reaches the plant: the last finite one is held instead. Arguments that cannot be
    used raise `ModelError`, `NameNotFound` or `ShapeError`.
    """

    @takes_settings(settings=LoopSettings)
    def __init__(
        self,
        mech: Mechanism,
        controller: Any,
        *,
        period: float = 2e-3,
        delay: float = 0.0,
        drives: Sequence[str] | str | None = None,
        encoders: Encoder | float | None = None,
        sensors: Sequence[Sensor] | str = (),
        torque_limit: ArrayLike | None = None,
        settings: LoopSettings | None = None,
    ) -> None:
        if not hasattr(controller, "step"):
            raise ModelError(f"a controller has start(measured) and step(k, t, measured); {controller!r} has not")
        if isinstance(sensors, str) and sensors != "exact":
            raise ModelError(f"sensors is a list of sensors, or 'exact', not {sensors!r}")
        self.mech, self.controller, self.delay, self.torque_limit = mech, controller, delay, torque_limit
        self.period = positive_number("period, the time between two samples in s,", period)
        self.settings = LoopSettings() if settings is None else settings
        self.drives, _, self.drive_rows = joint_positions(mech, drives, "drives")
        self.exact = sensors == "exact"
        self.sensors: tuple[Sensor, ...] = () if isinstance(sensors, str) else tuple(sensors)
        names = [x.name for x in self.sensors]
        if len(set(names)) < len(names):
            raise ModelError(f"two sensors have one name in {names}; give them names of their own with name=...")
        self.encoder = self._encoder(encoders)
        Delay(delay, np.zeros(1))
        if torque_limit is not None:
            Saturation(torque_limit, len(self.drives))
        self.plant = Plant(mech, self.settings.method, self.settings.free)

    def _encoder(self, encoders: Any) -> Encoder:
        if encoders is None:
            return Encoder(self.drives, rate="exact" if self.exact else "difference")
        if isinstance(encoders, float | int | np.number):
            return Encoder(self.drives, counts=float(encoders))
        if not isinstance(encoders, Encoder):
            raise ModelError(f"encoders is an lw.control.Encoder or a number of counts a turn, not {encoders!r}")
        encoder = copy(encoders)
        encoder.joints = encoder.joints or self.drives
        return encoder

    def run(
        self,
        t_end: float,
        q0: ArrayLike | None = None,
        v0: ArrayLike | None = None,
        *,
        tau0: ArrayLike | None = None,
        parameters: Mapping[str, float] | None = None,
    ) -> SampledRun:
        """Run from the state `q0` (nq), `v0` (nv) of the plant to `t_end` (s), in whole periods.

        By default the state is that of the plant's initial conditions. `tau0` (one force a drive, N m or N) acts before
        the first command arrives: by default what the controller's `start` gives, or zero. `parameters` maps names of
        free parameters to values; none. The run is the same to the bit whenever seed and inputs are. What stops a run
        early is in the `status` of the `SampledRun` that is returned; arguments that cannot be used raise `ModelError`
        or `ShapeError`.
        """
        duration = positive_number("t_end, the end of the run in s,", t_end)
        samples = max(1, math.ceil(duration / self.period * (1.0 - 1e-12) - 1e-9))
        if samples > MOST_SAMPLES:
            raise ModelError(f"{samples:.3g} samples are more than fit; take a longer period or a shorter run")
        return _Run(self, samples, q0, v0, tau0, parameters).all()


class _Run:
    """One run: the plant, the readers, the actuators and what is kept."""

    def __init__(self, loop: Loop, samples: int, q0: Any, v0: Any, tau0: Any, parameters: Any) -> None:
        self.loop, self.samples = loop, samples
        plant = self.plant = loop.plant
        before = np.zeros(loop.mech.nv)
        if tau0 is not None:
            tau0 = before[loop.drive_rows] = finite_array("tau0, one force a drive,", tau0, (len(loop.drives),))
        self.notes = plant.begin(q0, v0, parameters, before)
        n = len(loop.drives)
        settings = loop.settings
        seeds = np.random.SeedSequence(settings.seed).spawn(1 + len(loop.sensors))
        generators = [np.random.default_rng(s) for s in seeds]
        self.encoders: EncoderReader = loop.encoder.bind(plant, loop.period, generators[0])
        bound = zip(loop.sensors, generators[1:], strict=True)
        self.readers = [(x.name, x.bind(plant, loop.period, rng)) for x, rng in bound]
        self.guard = Guard(n, settings.patience)
        self.saturation = None if loop.torque_limit is None else Saturation(loop.torque_limit, n)
        self.slew = None if settings.slew is None else Slew(settings.slew, loop.period, n)
        state = State(plant.q, plant.v, plant.a) if loop.exact else None
        shown, names = (self.encoders.q, self.encoders.v), (self.encoders.joints, loop.drives)
        self.measured = Measured(loop.period, *shown, np.zeros(n), np.zeros(n), *names, {}, state)
        rows = samples + 1
        m = plant.mech
        self.q, self.v, self.a = np.empty((rows, m.nq)), np.empty((rows, m.nv)), np.empty((rows, m.nv))
        self.command, self.torque = np.empty((rows, n)), np.empty((rows, n))
        self.shown_q, self.shown_v = (np.empty((rows, len(self.encoders.q))) for _ in range(2))
        self.sensed, self.signals = SignalRows(rows), SignalRows(rows)
        self.tau0 = tau0
        self.substeps = 0

    def all(self) -> SampledRun:
        """Sample after sample, to the end or to what stops it."""
        status = None
        k = 0
        try:
            for k in range(self.samples):
                self._look(k)
                status = self._sample(k) if k else self._first()
                if status is not None:
                    break
            else:
                k = self.samples
                self._look(k)
                self._repeat(k)
        except KeyboardInterrupt:
            status = interrupted(k * self.loop.period, resumable=None)
            self._repeat(k)
        return self._result(k + 1, status)

    def _look(self, k: int) -> None:
        """Read all sensors, and keep what they show and what is true."""
        plant, measured = self.plant, self.measured
        self.encoders.read()
        self.q[k], self.v[k], self.a[k] = plant.q, plant.v, plant.a
        self.shown_q[k], self.shown_v[k] = self.encoders.q, self.encoders.v
        for name, read in self.readers:
            value = measured.signals[name] = read()
            self.sensed.put(k, name, value)

    def _first(self) -> Status | None:
        """The first sample: the controller is started before."""
        start = getattr(self.loop.controller, "start", None)
        try:
            held = None if start is None else start(self.measured)
        except Exception as error:
            self._repeat(0)
            return self._failed(error, 0.0)
        held = self.tau0 if self.tau0 is not None else held
        first = np.zeros(len(self.loop.drives)) if held is None else self.guard(0.0, held)
        if not np.isfinite(first).all():
            raise ModelError("the forces before the first command must be finite numbers")
        self.measured.applied[:] = first
        self.guard.last = np.array(first)
        if self.slew is not None:
            self.slew.last = np.array(first)
        self.line = Delay(self.loop.delay, first)
        return self._sample(0)

    def _sample(self, k: int) -> Status | None:
        loop, plant, guard = self.loop, self.plant, self.guard
        t = k * loop.period
        try:
            command = loop.controller.step(k, t, self.measured)
            u = guard(t, command)
            for name, value in getattr(loop.controller, "signals", {}).items():
                self.signals.put(k, name, value)
        except Exception as error:
            self._repeat(k)
            return self._failed(error, t)
        self.command[k] = command
        if guard.row >= guard.patience:
            self._repeat(k, self.command[k])
            return self._tired(t)
        asked = u
        if self.slew is not None:
            u = self.slew(u)
        if self.saturation is not None:
            u = self.saturation(t, u)
        if self.slew is not None:
            self.slew.last = u
        if u is not asked:
            self.measured.cut[:] = asked - u
        self.measured.applied[:] = u
        begin = t
        for part, force in self.line(u):
            plant.tau[self.loop.drive_rows] = force
            length = part * loop.period
            steps = max(1, round(part * loop.settings.substeps))
            self.torque[k] = force
            if not plant.advance(begin, length, steps):
                return self._lost(k, t)
            self.substeps += steps
            begin += length
        return None

    def _repeat(self, k: int, command: Floats | None = None) -> None:
        """The row of a sample at which nothing new is commanded."""
        self.command[k] = (self.command[k - 1] if k else 0.0) if command is None else command
        self.torque[k] = self.torque[k - 1] if k else self.plant.tau[self.loop.drive_rows]
        self.signals.repeat(k)

    def _failed(self, error: Exception, t: float) -> Status:
        reason = error.reason if isinstance(error, ControlError) else "controller failed"
        joint = error.joints[0] if isinstance(error, ControlError) and error.joints else None
        text = str(error) if isinstance(error, LinkwrightError) else f"it raised {type(error).__name__}: {error}"
        message = f"at t = {t:.9g} s the controller stopped: {text}"
        return Status(False, message, reason, t, joint, advice="the last forces were held; what was run is kept")

    def _tired(self, t: float) -> Status:
        g = self.guard
        message = (
            f"at t = {t:.9g} s the controller's forces were not finite {g.row} times in a row, "
            f"the first time at t = {g.first:.9g} s; none of them reached the plant"
        )
        return Status(False, message, "no finite force", t, advice="look at run.command there, and at the reference")

    def _lost(self, k: int, t: float) -> Status:
        """The status of a run whose plant has no finite or no consistent state any more, as simulations report it."""
        q, v, a = self.plant.failed
        here = Rows(np.array([t]), self.q[k : k + 1], self.v[k : k + 1], self.a[k : k + 1])
        bad = Rows(np.array([t]), q[None].copy(), v[None].copy(), a[None].copy())
        residual = float(self.plant.summary[0])
        reason = "no value" if not bad.finite[0] or not math.isfinite(residual) else "constraint cannot be met"
        status = ended(self.plant.mech, Trouble(reason, t, 0.0 if math.isnan(residual) else residual, bad), here)
        biggest = int(np.argmax(np.abs(self.torque[k])))
        note = f"drive {self.loop.drives[biggest]!r} had {self.torque[k, biggest]:.3g} then, the most of all"
        advice = "take more substeps, lower gains or a shorter period, or look for an unstable loop in run.torque"
        return Status(False, status.message, reason, t, status.element, status.residual, (note,), advice)

    def _result(self, rows: int, status: Status | None) -> SampledRun:
        loop, g, s = self.loop, self.guard, self.saturation
        notes = list(self.notes)
        if g.count:
            when = f"first at t = {g.first:.9g} s"
            notes.append(f"forces that were not finite came {g.count} times, {when}; the last finite ones were held")
        if s is not None and s.samples:
            worst = int(np.argmax(s.counts))
            notes.append(
                f"forces were cut at their limit in {s.samples} of {rows} samples, first at t = {s.first:.9g} s, "
                f"most often at {loop.drives[worst]!r}"
            )
        time = loop.period * np.arange(rows)
        if status is None:
            status = Status(True, time=float(time[-1]))
        status = replace(status, notes=(*status.notes, *notes))
        evaluations = 1 + loop.settings.substeps * tableau_of(loop.settings.method).stages  # in a period
        counters = Counters(
            newton_iterations=int(self.plant.rounds),
            tape_evaluations=max(rows - 1, 0) * evaluations,
            points=rows,
            steps=self.substeps,
        )
        states = (np.array(x[:rows]) for x in (self.q, self.v, self.a))
        mech = loop.plant.mech
        run = SampledRun.of_states(mech.description, time, *states, status=status, counters=counters, mechanism=mech)
        assert isinstance(run, SampledRun)
        run.drives, run.encoders = loop.drives, self.encoders.joints
        run.command, run.torque = np.array(self.command[:rows]), np.array(self.torque[:rows])
        run.measured_q, run.measured_v = np.array(self.shown_q[:rows]), np.array(self.shown_v[:rows])
        run.sensors, run.signals = self.sensed.first(rows), self.signals.first(rows)
        run.saturated, run.held = (0 if s is None else s.samples), g.count
        return run.joined(mech, {x.name: (x.labels, x.unit) for x in loop.sensors})
