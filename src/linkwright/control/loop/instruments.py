"""Between controller and plant: encoders, accelerometers, noise from seeds; guard, slew, saturation and delay of
commands.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, get_args

import numpy as np

from linkwright.base.arguments import check_names, finite_number, positive_number, whole_number
from linkwright.base.arrays import Floats
from linkwright.control.loop.controller_base import one_or_each
from linkwright.control.loop.plant import Plant, joint_positions
from linkwright.errors import ModelError, ShapeError

Steps = float | Sequence[float] | Mapping[str, float] | None
Rate = Literal["difference", "filtered", "exact"]


class Sensor(Protocol):
    """A further sensor: its name, the labels and the unit of its numbers, and how it is read in one run."""

    name: str
    labels: tuple[str, ...]
    unit: str

    def bind(self, plant: Plant, period: float, rng: np.random.Generator) -> Callable[[], Floats]:
        """A function that reads the plant as it is now, once a sample."""


class LowPass:
    """A first-order low-pass of `cutoff` Hz at a sampling `period` (s), `order` times in a row; exact for held inputs.

    The first call starts the filter at rest at its input.

    >>> import numpy as np, linkwright as lw
    >>> low = lw.control.LowPass(1e3, 1.0)
    >>> low.start(np.zeros(1))
    >>> [low(np.array([x])).tolist() for x in (0.0, 1.0)]
    [[0.0], [1.0]]

    Raises `ModelError` for a cutoff that is not greater than zero, or an order below 1.
    """

    def __init__(self, cutoff: float, period: float, order: int = 1) -> None:
        positive_number("cutoff, a frequency in Hz,", cutoff)
        self.gain = -math.expm1(-2.0 * math.pi * cutoff * period)
        self.order, self.state = whole_number("order", order, 1), list[Floats]()

    def start(self, x: Floats) -> None:
        """Begin at rest at `x` (n)."""
        self.state = [np.array(x, dtype=np.float64) for _ in range(self.order)]

    def __call__(self, x: Floats) -> Floats:
        """The filtered value of the next sample."""
        if not self.state:
            self.start(x)
            return self.state[-1]
        for k, y in enumerate(self.state):
            x = self.state[k] = y + self.gain * (x - y)
        return x


class Encoder:
    """Encoders of joints: `counts` a turn (or a `resolution` in rad or m), and white noise before they count.

    - `joints`: their names; those of the loop's drives unless given.
    - `counts`, `resolution`: each is one number for all joints, one for each in a list, or a mapping from joints'
      names; of a mapping both may be given, for different joints. Joints without either are exact.
    - `noise`: the standard deviation before counting (rad, m); 0.0.
    - `rate`: rates are the "difference" of two samples over the period, that "filtered" by a low-pass of `cutoff` (Hz),
      or "exact". Before the first sample the joints are taken to have moved at their first rates.

    >>> import numpy as np, linkwright as lw
    >>> arm, encoder = lw.chain(1), lw.control.Encoder(resolution=0.1)
    >>> hold = lw.control.pid(arm, 20.0, 2.0, 0.0, lw.control.Hold([0.0]))
    >>> loop = lw.control.Loop(arm, hold, encoders=encoder)
    >>> loop.run(0.01, [0.26]).measured_q[0].round(9).tolist()
    [0.3]
    >>> reader = encoder.bind(loop.plant, 2e-3, np.random.default_rng(0))
    >>> encoder.steps(loop.plant, ["joint1"]).tolist()
    [0.1]

    Raises `ModelError` or `NameNotFound` for arguments that cannot be used.
    """

    def __init__(
        self,
        joints: Sequence[str] | str | None = None,
        *,
        counts: Steps = None,
        resolution: Steps = None,
        noise: float = 0.0,
        rate: Rate = "difference",
        cutoff: float | None = None,
    ) -> None:
        both = isinstance(counts, Mapping) and isinstance(resolution, Mapping)
        if counts is not None and resolution is not None and not both:
            text = "counts and resolution were both given; give one of them"
            raise ModelError(f"{text}, or mappings from joints' names for different joints")
        self.counts, self.resolution = _steps("counts", counts), _steps("resolution", resolution)
        check_names("way to rates", [rate], get_args(Rate))
        if (rate == "filtered") != (cutoff is not None):
            raise ModelError("filtered rates need a cutoff=... in Hz" if cutoff is None else "cutoff= is for filtered")
        self.joints, self.noise, self.rate, self.cutoff = joints, _standard_deviation(noise), rate, cutoff

    def steps(self, plant: Plant, joints: Sequence[str]) -> Floats:
        """The width of a count of each of the `joints` of the `plant` (rad, m), zero where it is exact."""
        steps = np.zeros(len(joints))
        for name, numbers in (("counts", self.counts), ("resolution", self.resolution)):
            for at, value in _by_joint(name, numbers, joints):
                if steps[at]:
                    raise ModelError(f"joint {joints[at]!r} has counts and a resolution; give one", element=joints[at])
                if name == "counts" and plant.mech.joints[joints[at]].kind == "prismatic":
                    text = f"joint {joints[at]!r} slides, and has no counts a turn; give resolution=... in metres"
                    example = f"encoders=lw.control.Encoder({list(joints)!r}, resolution=1e-5)"
                    if len(joints) > 1:
                        example = f"lw.control.Encoder(counts={{...}}, resolution={{{joints[at]!r}: 1e-5}})"
                    raise ModelError(f"{text}: {example}", element=joints[at])
                steps[at] = 2.0 * math.pi / value if name == "counts" else value
        return steps

    def bind(self, plant: Plant, period: float, rng: np.random.Generator) -> EncoderReader:
        """The reader of one run, of the `plant` of a loop, its `period` (s) and the noise of `rng`."""
        return EncoderReader(self, plant, period, rng)


class EncoderReader:
    """Encoders in a run: `read` puts what they show into `q` and `v`."""

    def __init__(self, encoder: Encoder, plant: Plant, period: float, rng: np.random.Generator) -> None:
        self.joints, self._q_at, self._v_at = joint_positions(plant.mech, encoder.joints, "encoders")
        self._plant, self._period, self._rng, self._noise = plant, period, rng, encoder.noise
        steps = encoder.steps(plant, self.joints)
        self._at = np.flatnonzero(steps)
        self._step = steps[self._at]
        self._exact = encoder.rate == "exact"
        self._filter = None if encoder.cutoff is None else LowPass(encoder.cutoff, period)
        n = len(self.joints)
        self.q, self.v = np.zeros(n), np.zeros(n)
        self._began = False

    def _shown(self, q: Floats) -> Floats:
        if self._noise:
            q = q + self._noise * self._rng.standard_normal(len(q))
        if self._step.size:
            q = q.copy()
            q[self._at] = self._step * np.floor(q[self._at] / self._step + 0.5)
        return q

    def read(self) -> None:
        """What the encoders show now."""
        plant = self._plant
        true, rates = plant.q[self._q_at], plant.v[self._v_at]
        if not self._began:
            self.q[:] = self._shown(true - self._period * rates)
        shown = self._shown(true)
        if self._exact:
            self.v[:] = rates
        else:
            difference = (shown - self.q) / self._period
            if self._filter is not None:
                difference = self._filter(difference)
            self.v[:] = difference
        self.q[:] = shown
        self._began = True


class Accelerometer:
    """The acceleration (3) of the origin of a `frame` in m/s², in the `axes` "ground" or "body".

    - `noise`: the standard deviation of white noise; 0.0. `cutoff` (Hz): that of a low-pass of `order` (1) behind it;
      none.
    - `gravity`: True shows what a real one does, acceleration less gravity, 9.81 upward at rest; False.
    - `name`: of the signal; the frame's name with ".acceleration" unless given.

    At a sample it shows the acceleration by the forces that acted until then.

    >>> import linkwright as lw
    >>> arm = lw.chain(1)
    >>> hold = lw.control.pid(arm, 20.0, 2.0, 0.0, lw.control.Hold([0.0]))
    >>> loop = lw.control.Loop(arm, hold, sensors=[lw.control.Accelerometer("link1", name="tip")])
    >>> loop.run(0.01).sensors["tip"].shape
    (6, 3)

    Raises `NameNotFound` for other axes, `ModelError` for a negative noise.
    """

    unit = "m/s^2"

    def __init__(
        self,
        frame: str,
        *,
        axes: Literal["ground", "body"] = "ground",
        noise: float = 0.0,
        cutoff: float | None = None,
        order: int = 1,
        gravity: bool = False,
        name: str | None = None,
    ) -> None:
        check_names("axes", [axes], ["ground", "body"])
        self.frame, self.axes, self.noise = frame, axes, _standard_deviation(noise)
        self.cutoff, self.order, self.gravity = cutoff, order, gravity
        self.name = name or f"{frame}.acceleration"
        self.labels: tuple[str, ...] = ("x", "y", "z")

    def bind(self, plant: Plant, period: float, rng: np.random.Generator) -> Callable[[], Floats]:
        """A function that reads the `plant` of a loop, sampled with a `period` (s), with noise from `rng`.

        >>> import numpy as np, linkwright as lw
        >>> hold = lw.control.pid(lw.chain(1), 20.0, 2.0, 0.0, lw.control.Hold([0.0]))
        >>> loop = lw.control.Loop(lw.chain(1), hold)
        >>> lw.control.Accelerometer("link1").bind(loop.plant, 2e-3, np.random.default_rng(0))().shape
        (3,)
        """
        observe, pose, _, rate = plant.observer(self.frame)
        low = None if self.cutoff is None else LowPass(self.cutoff, period, self.order)
        shift, turn, noise = plant.mech.gravity if self.gravity else None, pose[:3, :3], self.noise
        in_body, linear = self.axes == "body", rate[:3]

        def read() -> Floats:
            observe()
            x = linear.copy() if shift is None else linear - shift
            if in_body:
                x = turn.T @ x
            if noise:
                x = x + noise * rng.standard_normal(3)
            return x if low is None else low(x)

        return read


def _steps(name: str, numbers: Any) -> float | tuple[float, ...] | dict[str, float] | None:
    """Checked numbers, in the form that the user chose."""
    if numbers is None:
        return None
    if isinstance(numbers, Mapping):
        return {str(joint): positive_number(f"{name} of joint {joint!r}", value) for joint, value in numbers.items()}
    if isinstance(numbers, Sequence | np.ndarray) and not isinstance(numbers, str) and np.ndim(numbers) == 1:
        return tuple(positive_number(f"{name} of an encoder", value) for value in numbers)
    return positive_number(f"{name} of an encoder", numbers)


def _by_joint(name: str, numbers: Any, joints: Sequence[str]) -> Iterator[tuple[int, float]]:
    """Pairs of a joint's place and its number."""
    if isinstance(numbers, dict):
        check_names("joint with an encoder", numbers, joints)
        for joint, value in numbers.items():
            yield list(joints).index(joint), value
    elif isinstance(numbers, tuple):
        if len(numbers) != len(joints):
            text = f"{name} of an encoder has {len(numbers)} numbers for {len(joints)} joints ({', '.join(joints[:6])})"
            raise ModelError(f"{text}; give one for each, or a mapping from their names")
        yield from enumerate(numbers)
    elif numbers is not None:
        yield from ((at, numbers) for at in range(len(joints)))


def _standard_deviation(noise: Any) -> float:
    deviation = finite_number("noise, a standard deviation,", noise)
    if deviation < 0.0:
        raise ModelError(f"noise is a standard deviation, zero or more, not {noise!r}")
    return deviation


class Saturation:
    """Forces within ± `limit` (N m, N), one number for all `n` drives or one for each; counts where it acts.

    >>> import numpy as np, linkwright as lw
    >>> lw.control.Saturation(2.0, 2)(0.0, np.array([1.0, -5.0])).tolist()
    [1.0, -2.0]

    Raises `ShapeError` for another number of limits, `ModelError` for limits that are not greater than zero.
    """

    def __init__(self, limit: Any, n: int) -> None:
        self.limit = one_or_each("torque_limit", limit, n)
        if not (self.limit > 0.0).all():
            raise ModelError(f"torque_limit must be greater than zero, not {limit!r}; leave it out for no limit")
        self.counts = np.zeros(n, np.int64)
        self.samples, self.first = 0, math.nan

    def __call__(self, t: float, u: Floats) -> Floats:
        """The forces that the drives can give."""
        cut: Floats = np.minimum(np.maximum(u, -self.limit), self.limit)
        beyond = cut != u
        if beyond.any():
            self.counts += beyond
            if not self.samples:
                self.first = t
            self.samples += 1
        return cut


class Slew:
    """Forces of `n` drives that change by at most `rate` (N m/s, N/s), every `period` (s), from `last`.

    `last` are the forces that were applied, not those that a limit behind cut: the way back starts at that limit.

    >>> import numpy as np, linkwright as lw
    >>> lw.control.Slew(10.0, 0.1, 1)(np.array([5.0])).tolist()
    [1.0]

    Raises `ModelError` for a rate that is not greater than zero.
    """

    def __init__(self, rate: float, period: float, n: int) -> None:
        self.most, self.last = positive_number("slew", rate) * period, np.zeros(n)

    def __call__(self, u: Floats) -> Floats:
        """The next forces on the way to these."""
        return np.asarray(self.last + np.clip(u - self.last, -self.most, self.most))


class Delay:
    """A command that arrives `delay` periods after its sample, whole or not: 0.5 is half a period, 1 a whole one.

    `first` (n) are the forces before the first command.

    >>> import numpy as np, linkwright as lw
    >>> line = lw.control.Delay(1.0, np.zeros(1))
    >>> [line(np.array([u]))[0][1].tolist() for u in (1.0, 2.0)]
    [[0.0], [1.0]]

    Raises `ModelError` for a delay below 0 or above 1000.
    """

    def __init__(self, delay: float, first: Floats) -> None:
        if not 0.0 <= delay <= 1000.0:
            raise ModelError(f"delay is a number of periods from 0 on, not {delay!r}")
        whole = math.floor(delay + 1e-12)
        part = delay - whole
        self.fraction = part if part > 1e-9 else 0.0
        length = whole + (2 if self.fraction else 1)
        self._line = deque((np.array(first) for _ in range(length)), maxlen=length)

    def __call__(self, u: Floats) -> tuple[tuple[float, Floats], ...]:
        """What acts in the period that begins with this command: parts of the period, and the forces in them."""
        self._line.append(u)
        if not self.fraction:
            return ((1.0, self._line[0]),)
        return ((self.fraction, self._line[0]), (1.0 - self.fraction, self._line[1]))


class Guard:
    """Lets finite commands through; in the place of another it holds the last finite one, and counts."""

    def __init__(self, n: int, patience: int) -> None:
        self.n, self.patience = n, patience
        self.last = np.zeros(n)
        self.count, self.row, self.first = 0, 0, math.nan

    def __call__(self, t: float, command: Any) -> Floats:
        """The command, or the last finite one."""
        try:
            u = np.array(command, dtype=np.float64)
        except (TypeError, ValueError):
            raise ModelError(f"the controller gave {command!r}, which is no array of {self.n} forces") from None
        if u.shape != (self.n,):
            drives = "1 drive" if self.n == 1 else f"{self.n} drives"
            text = f"the controller gave forces of shape {u.shape}; the loop has {drives}, give ({self.n},)"
            raise ShapeError(text, given=u.shape, wanted=(self.n,))
        if math.isfinite(u.dot(u)) or np.isfinite(u).all():
            self.row = 0
            self.last = u
            return u
        if not self.count:
            self.first = t
        self.count += 1
        self.row += 1
        return self.last
