"""`Loop`: a mechanism under a sampled controller, with encoders, sensors, delay, saturation and noise from a seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.checks import real_array
from linkwright.base.types import Floats
from linkwright.control.loop.actuators import Delay, Guard, Saturation, Slew
from linkwright.control.loop.controller import Measured, State
from linkwright.control.loop.plant import Plant, joint_positions
from linkwright.control.loop.sampled_run import Rows, SampledRun
from linkwright.control.loop.sensors import Encoder, EncoderReader, Sensor
from linkwright.errors import ControlError, LinkwrightError, ModelError, ShapeError
from linkwright.results.status import Counters, Status
from linkwright.simulation.ends import ended, interrupted
from linkwright.simulation.engines import Trouble
from linkwright.simulation.rows import Rows as States
from linkwright.simulation.tableaux import tableau_of

if TYPE_CHECKING:
    from linkwright.model import Mechanism

MOST_SAMPLES = 10**8


class Loop:
    """A mechanism in a sampled loop: every `period` the controller sees what sensors show and sets the drives' forces.

    Between samples the plant moves by `substeps` steps of `method` under forces that are held. A command acts `delay`
    periods after its sample (0.5: half a period later). `drives` are the joints that the controller's forces act on, in
    their order (by default those with actuators); `encoders` is an `Encoder`, a number of counts a turn, or nothing for
    exact angles with rates by difference, of the drives unless it names others. `sensors` are further ones, by whose
    names the controller finds their signals; "exact" shows the controller the true state besides, and exact rates.
    Forces are cut at ± `torque_limit` and may change by `slew` N m in a second. Random numbers come from `seed` alone.
    A command that is not finite never reaches the plant: the last finite one is held, and after `patience` of them in a
    row the run stops. Parameters in `free` can differ from run to run without compiling anew.
    """

    def __init__(
        self,
        mech: Mechanism,
        controller: Any,
        *,
        period: float = 2e-3,
        substeps: int = 10,
        delay: float = 0.0,
        drives: Sequence[str] | str | None = None,
        encoders: Encoder | float | None = None,
        sensors: Sequence[Sensor] | str = (),
        torque_limit: ArrayLike | None = None,
        slew: float | None = None,
        seed: int = 0,
        method: str = "rk4",
        free: Sequence[str] = (),
        patience: int = 10,
    ) -> None:
        if not hasattr(controller, "step"):
            raise ModelError(f"a controller has start(measured) and step(k, t, measured); {controller!r} has not")
        if not isinstance(period, float | int | np.number) or not 0.0 < period < math.inf:
            raise ModelError(f"period must be a time in seconds greater than zero, not {period!r}")
        for name, value in (("substeps", substeps), ("patience", patience)):
            if not isinstance(value, int | np.integer) or value < 1:
                raise ModelError(f"{name} must be a whole number from 1 on, not {value!r}")
        if isinstance(sensors, str) and sensors != "exact":
            raise ModelError(f"sensors is a list of sensors, or 'exact', not {sensors!r}")
        self.mech, self.controller, self.period = mech, controller, float(period)
        self.substeps, self.delay, self.seed, self.patience = int(substeps), delay, seed, int(patience)
        self.drives, _, self._drive_at = joint_positions(mech, drives, "drives")
        self.exact = sensors == "exact"
        self.sensors: tuple[Sensor, ...] = () if isinstance(sensors, str) else tuple(sensors)
        names = [x.name for x in self.sensors]
        if len(set(names)) < len(names):
            raise ModelError(f"two sensors have one name in {names}; give them names of their own with name=...")
        self.encoder = self._encoder(encoders)
        self.torque_limit, self.slew = torque_limit, slew
        Delay(delay, np.zeros(1))
        if torque_limit is not None:
            Saturation(torque_limit, len(self.drives))
        if slew is not None:
            Slew(slew, self.period, 1)
        self.plant = Plant(mech, method, free)
        self._evaluations = 1 + self.substeps * tableau_of(method).stages  # in a period

    def _encoder(self, given: Any) -> Encoder:
        if isinstance(given, Encoder):
            encoder = given
        elif given is None:
            encoder = Encoder(self.drives, rate="exact" if self.exact else "difference")
        elif isinstance(given, float | int | np.number):
            encoder = Encoder(self.drives, counts=float(given))
        else:
            raise ModelError(f"encoders is an lw.control.Encoder or a number of counts a turn, not {given!r}")
        if encoder.joints is None:
            encoder = copy(encoder)
            encoder.joints = self.drives
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
        """Run from the state q0, v0 of the plant (its initial conditions by default) to t_end, in whole periods.

        `tau0` acts on the drives before the first command arrives (by default what the controller's `start` gives, or
        nothing); `parameters` are values of the free ones. The run is the same to the bit whenever seed and inputs are.
        """
        if not 0.0 < t_end < math.inf:
            raise ModelError(f"t_end must be a time greater than zero, not {t_end!r}")
        samples = max(1, math.ceil(t_end / self.period * (1.0 - 1e-12) - 1e-9))
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
            tau0 = before[loop._drive_at] = _forces(tau0, len(loop.drives))
        self.notes = plant.begin(q0, v0, parameters, before)
        n = len(loop.drives)
        seeds = np.random.SeedSequence(loop.seed).spawn(1 + len(loop.sensors))
        generators = [np.random.default_rng(s) for s in seeds]
        self.encoders: EncoderReader = loop.encoder.bind(plant, loop.period, generators[0])
        bound = zip(loop.sensors, generators[1:], strict=True)
        self.readers = [(x.name, x.bind(plant, loop.period, rng)) for x, rng in bound]
        self.guard = Guard(n, loop.patience)
        self.saturation = None if loop.torque_limit is None else Saturation(loop.torque_limit, n)
        self.slew = None if loop.slew is None else Slew(loop.slew, loop.period, n)
        state = State(plant.q, plant.v, plant.a) if loop.exact else None
        shown, names = (self.encoders.q, self.encoders.v), (self.encoders.joints, loop.drives)
        self.measured = Measured(loop.period, *shown, np.zeros(n), np.zeros(n), *names, {}, state)
        rows = samples + 1
        m = plant.mech
        self.q, self.v, self.a = np.empty((rows, m.nq)), np.empty((rows, m.nv)), np.empty((rows, m.nv))
        self.command, self.torque = np.empty((rows, n)), np.empty((rows, n))
        self.shown_q, self.shown_v = (np.empty((rows, len(self.encoders.q))) for _ in range(2))
        self.sensed, self.told = Rows(rows), Rows(rows)
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
            status = interrupted(k * self.loop.period, kept=None)
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
            given = loop.controller.step(k, t, self.measured)
            u = guard(t, given)
            for name, value in getattr(loop.controller, "signals", {}).items():
                self.told.put(k, name, value)
        except Exception as error:
            self._repeat(k)
            return self._failed(error, t)
        self.command[k] = given
        if guard.row and guard.tired:
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
            plant.tau[self.loop._drive_at] = force
            length = part * loop.period
            steps = loop.substeps if part == 1.0 else max(1, round(part * loop.substeps))
            self.torque[k] = force
            if not plant.advance(begin, length, steps):
                return self._lost(k, t)
            self.substeps += steps
            begin += length
        return None

    def _repeat(self, k: int, command: Floats | None = None) -> None:
        """The row of a sample at which nothing new is commanded."""
        self.command[k] = (self.command[k - 1] if k else 0.0) if command is None else command
        self.torque[k] = self.torque[k - 1] if k else self.plant.tau[self.loop._drive_at]
        self.told.repeat(k)

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
        """The plant's state is no good any more: say why, by what simulations say."""
        q, v, a = self.plant.failed
        here = States(np.array([t]), self.q[k : k + 1], self.v[k : k + 1], self.a[k : k + 1])
        bad = States(np.array([t]), q[None].copy(), v[None].copy(), a[None].copy())
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
            status = Status(True, time=float(time[-1]), notes=tuple(notes))
        else:
            status = Status(
                status.ok,
                status.message,
                status.reason,
                status.time,
                status.element,
                status.residual,
                (*status.notes, *notes),
                status.advice,
            )
        periods = max(rows - 1, 0)
        counters = Counters(
            newton_iterations=int(self.plant.rounds),
            tape_evaluations=periods * loop._evaluations,
            points=rows,
            steps=self.substeps,
        )
        kept = (np.array(x[:rows]) for x in (self.q, self.v, self.a))
        mech = loop.plant.mech
        made = SampledRun.of_states(mech.description, time, *kept, status=status, counters=counters, mechanism=mech)
        assert isinstance(made, SampledRun)
        made.drives, made.encoders = loop.drives, self.encoders.joints
        made.command, made.torque = np.array(self.command[:rows]), np.array(self.torque[:rows])
        made.measured_q, made.measured_v = np.array(self.shown_q[:rows]), np.array(self.shown_v[:rows])
        made.sensors, made.signals = self.sensed.first(rows), self.told.first(rows)
        made.saturated, made.held = (0 if s is None else s.samples), g.count
        return made.joined(mech, {x.name: (x.labels, x.unit) for x in loop.sensors})


def _forces(tau0: Any, n: int) -> Floats:
    """Forces before the first command, one a drive."""
    try:
        forces = real_array("tau0", tau0).copy()
    except (TypeError, ValueError):
        forces = np.full(n, np.nan)
    if forces.shape != (n,):
        text = f"tau0 has shape {forces.shape}; the loop has {n} drives, give ({n},)"
        raise ShapeError(text, given=forces.shape, wanted=(n,))
    if not np.isfinite(forces).all():
        raise ModelError(f"tau0 must be finite numbers, one a drive, not {tau0!r}")
    return forces
