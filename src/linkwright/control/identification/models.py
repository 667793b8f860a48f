"""A sampled linear model with its noise and its uncertainty, and its state-space forms."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import logm  # type: ignore[import-untyped]  # SciPy has no types
from scipy.signal import lfilter  # type: ignore[import-untyped]  # SciPy has no types

from linkwright.base.arguments import positive_number, real_array, whole_number
from linkwright.base.arrays import Floats
from linkwright.control.identification.prediction import Coefficients, Orders, Predictor, join, reflected, stable
from linkwright.control.identification.validation import (
    Band,
    ResidualTests,
    residual_tests,
    response_covariance,
    simulated_fit,
)
from linkwright.control.linear_systems import Complexes, System, delay, from_polynomials, row, series, to_continuous
from linkwright.errors import LinkwrightError

if TYPE_CHECKING:
    from linkwright.control.identification.identify import Candidate
    from linkwright.control.identification.records import Record


def realised(numerator: Floats, denominator: Floats, dt: float) -> System:
    """A transfer function in q^-1: the same coefficients in falling powers of z, once both are of one length."""
    n = max(len(numerator), len(denominator))
    num, den = (np.concatenate([p, np.zeros(n - len(p))]) for p in (numerator, denominator))
    return from_polynomials(num, den, dt)


def _unsampled(S: System, F: Floats, dt: float) -> System:
    """The continuous plant, with the denominator F where it is sampled, whose response to a held input is that of S."""
    negative = [p for p in np.roots(F) if abs(p.imag) < 1e-12 and p.real <= 0]
    if negative:
        raise LinkwrightError(
            f"a pole at z = {negative[0].real:.3g} has no real continuous counterpart. Identify with nf one "
            "smaller or larger, sample faster, or take method='tustin'"
        )
    n = S.order
    rate = np.real(logm(np.block([[S.A, S.B], [np.zeros((1, n)), np.ones((1, 1))]]))) / dt
    return System(rate[:n, :n], rate[:n, n:], S.C, S.D)


def _outside(polynomial: Floats) -> float:
    """By how much mirroring makes the polynomial smaller on the circle: the product of the moduli beyond one."""
    size = np.abs(np.roots(polynomial))
    return float(np.prod(size[size > 1.0]))


FAMILIES = ("arx", "armax", "oe", "box-jenkins")
SHARED = ("arx", "armax")  # plant and noise have one denominator


@dataclass(frozen=True)
class Pole:
    """A pole of a sampled model: `z`, and the continuous pole `s` (rad/s) with the same decay and the same frequency.

    `frequency` is the undamped natural frequency |s|/2π in Hz, `damping` the ratio −Re s/|s|.
    """

    z: complex
    s: complex

    @property
    def frequency(self) -> float:
        return abs(self.s) / (2 * np.pi)

    @property
    def damping(self) -> float:
        return -self.s.real / abs(self.s) if self.s != 0 else 1.0

    @property
    def stable(self) -> bool:
        return abs(self.z) < 1.0

    def __str__(self) -> str:
        if abs(self.z) == 0.0:
            return "a delay (pole at z = 0)"
        return f"{self.frequency:.4g} Hz, damping {self.damping:.3g}"


@dataclass(frozen=True, eq=False)
class Model:
    """y(t) = q^-delay B/F u(t) + C/D e(t), sampled every `dt` seconds; e is white with the variance `variance`.

    - `B`, `F`, `C`, `D`: coefficients of q^-1; F, C and D begin with 1 and are [1] by default; B is without its `delay`
      (samples, 1).
    - `dt`: 1.0. `variance`: 0.0. `family`: "arx", "armax", "oe" or "box-jenkins".
    - `initial`: how residuals begin, "estimate" or "zero". `notes`: what a person should know.

    Models of `identify` also carry the `covariance` of their coefficients in the order of `names` (p, p), the `record`
    they came from, the `fit` and `prediction_fit` on data that were held out, and the candidates of the order
    `selection`. Methods take frequencies `w` (n), rad/s, and a `record`.

    >>> import numpy as np, linkwright as lw
    >>> model, u, w = lw.control.Model([0.1], [1.0, -0.9]), lw.control.m_sequence(7), np.array([0.1, 1.0])
    >>> y = model.simulate(u, noise=0.1 * np.random.default_rng(0).standard_normal(127))
    >>> record = lw.control.Record(u, y, 1.0)
    >>> fitted = lw.control.identify(record, "oe", lw.control.Orders(1, 1)).with_notes("a lag")
    >>> fitted.compare(record) > 0.5, fitted.residual_tests(record).white, fitted.predict(record).shape
    (True, True, (127,))
    >>> model.frequency_response(w).shape, model.noise_response(w).shape, fitted.response_gradient(w).shape
    ((2,), (2,), (2, 2))
    >>> model.poles()[0].stable, len(model.near_modes()), model.reflect().system().order, model.matrices()[0].shape
    (True, 0, 1, (1, 1))
    >>> bool(abs(model.residuals(record)).max() < 1.0), fitted.band(w).level
    (True, 0.95)
    >>> model.continuous().nstates, model.to_control().nstates
    (1, 1)

    Raises `LinkwrightError` for coefficients that are not finite, leading ones that are not one, and another family.
    """

    B: Floats
    F: Floats = field(default_factory=lambda: np.ones(1))
    C: Floats = field(default_factory=lambda: np.ones(1))
    D: Floats = field(default_factory=lambda: np.ones(1))
    delay: int = 1
    dt: float = 1.0
    variance: float = 0.0
    family: str = "box-jenkins"
    covariance: Floats | None = None
    record: Record | None = field(default=None, repr=False)
    fit: float = float("nan")
    prediction_fit: float = float("nan")
    initial: str = "estimate"
    selection: tuple[Candidate, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in "BFCD":
            value = np.atleast_1d(np.asarray(getattr(self, name), float))
            if value.ndim != 1 or not len(value) or not np.all(np.isfinite(value)):
                raise LinkwrightError(f"{name} of a model is a list of finite coefficients, not {value!r}")
            if name != "B" and value[0] != 1.0:
                raise LinkwrightError(f"the first coefficient of {name} must be one, not {value[0]:g}: divide by it")
            object.__setattr__(self, name, value)
        if self.family not in FAMILIES:
            raise LinkwrightError(f"a model is one of {', '.join(FAMILIES)}, not {self.family!r}")
        positive_number("the sampling period dt", self.dt)
        Orders(len(self.B), len(self.F) - 1, len(self.C) - 1, len(self.D) - 1, self.delay)

    # -- what it is ---------------------------------------------------------------------------------------
    @property
    def shared(self) -> bool:
        """Whether F and D are one polynomial (ARX, ARMAX)."""
        return self.family in SHARED

    @property
    def orders(self) -> Orders:
        """The numbers of coefficients."""
        return Orders(len(self.B), len(self.F) - 1, len(self.C) - 1, len(self.D) - 1, self.delay)

    @property
    def names(self) -> list[str]:
        """The names of the coefficients, in the order of `parameters` and `covariance`."""
        return self.orders.names(self.shared)

    @property
    def parameters(self) -> Floats:
        """The coefficients (p): b0, ..., f1, ..., c1, ..., d1, ..."""
        return join(Coefficients(self.B, self.F, self.C, self.D), self.shared)

    @property
    def standard_errors(self) -> Floats:
        """The standard deviations of `parameters` (p): roots of the Cramér–Rao bound's diagonal."""
        return np.sqrt(np.diag(self._covariance()))

    @property
    def stable(self) -> bool:
        """Whether all poles of the plant are inside the unit circle."""
        return stable(self.F)

    def poles(self) -> list[Pole]:
        """The plant's poles, slowest first, with their frequencies in Hz and their damping."""
        roots = np.roots(self.F).astype(complex)
        with np.errstate(divide="ignore"):
            poles = [Pole(complex(z), complex(np.log(z) / self.dt) if z != 0 else complex(-np.inf, 0.0)) for z in roots]
        return sorted(poles, key=lambda p: (abs(p.s), p.s.imag))

    def near_modes(self) -> Floats:
        """Frequencies (n), rad/s, about modes with a damping ratio below 0.1, which lie between the lines of a grid."""
        sharp = [p for p in self.poles() if p.z.imag > 0 and p.stable and p.damping < 0.1]
        around = [abs(p.s) * (1.0 + p.damping * np.linspace(-8.0, 8.0, 65)) for p in sharp]
        return np.concatenate([np.zeros(0), *around])

    # -- responses ----------------------------------------------------------------------------------------
    def frequency_response(self, w: ArrayLike) -> Complexes:
        """G at the angular frequencies `w` (n), rad/s: q^-1 = exp(−i w dt)."""
        z = self._shift(w)
        return np.asarray(z**self.delay * _polynomial(self.B, z) / _polynomial(self.F, z))

    def noise_response(self, w: ArrayLike) -> Complexes:
        """H = C/D at the angular frequencies `w` (n), rad/s; the noise has the spectrum |H|² variance dt."""
        z = self._shift(w)
        return np.asarray(_polynomial(self.C, z) / _polynomial(self.D, z))

    def response_gradient(self, w: ArrayLike) -> Complexes:
        """∂G/∂θ (n, p) at `w` (n), rad/s."""
        z = self._shift(w)
        f = _polynomial(self.F, z)
        g = z**self.delay * _polynomial(self.B, z) / f
        nb, nf = len(self.B), len(self.F) - 1
        by_b = z[:, None] ** (self.delay + np.arange(nb)) / f[:, None]
        by_f = -(g / f)[:, None] * z[:, None] ** np.arange(1, nf + 1)
        return np.hstack([by_b, by_f, np.zeros((len(z), len(self.parameters) - nb - nf))])

    def band(self, w: ArrayLike, level: float = 0.95) -> Band:
        """The region of the frequency response at w that the noise leaves open with the probability `level` (0.95), to
        first order.
        """
        if not 0.0 < level < 1.0:
            raise LinkwrightError(f"a level lies between 0 and 1, such as 0.95, not {level!r}")
        at = np.atleast_1d(real_array("w", w))
        p = response_covariance(self.response_gradient(at), self._covariance())
        return Band(at, self.frequency_response(at), p, level)

    def simulate(self, u: ArrayLike, *, noise: ArrayLike | None = None) -> Floats:
        """The output (N) for an input `u` (N), from rest; `noise` (N) is the e that C/D filters, none by default."""
        forced = _signal("u", u)
        y = np.zeros(len(forced))
        y[self.delay :] = lfilter(self.B, self.F, forced[: max(0, len(forced) - self.delay)])
        if noise is not None:
            e = _signal("noise", noise)
            if e.shape != forced.shape:
                raise LinkwrightError(f"u has {len(forced)} samples and the noise {len(e)}: they must be equally many")
            y = y + lfilter(self.C, self.D, e)
        return y

    def residuals(self, record: Record) -> Floats:
        """The one-step prediction errors (N) on a record; its initial conditions are those that fit best."""
        predictor = Predictor(record.u, record.y, self.orders, shared=self.shared, initial=self.initial)
        if not predictor.allowed(self.parameters):
            raise LinkwrightError(
                "this model has no stable predictor: a root of C or F lies on or outside the unit circle. "
                "Identify an 'armax' model, whose predictor is stable for unstable plants too"
            )
        return predictor.residuals(predictor.start(self.parameters))

    def predict(self, record: Record, horizon: int = 1) -> Floats:
        """The output (N) predicted `horizon` samples ahead: y(t) from u up to t and y up to t − horizon."""
        impulse = np.zeros(whole_number("horizon, in samples,", horizon, 1))
        e = self.residuals(record)
        impulse[0] = 1.0
        return np.asarray(record.y - lfilter(lfilter(self.C, self.D, impulse), [1.0], e))

    # -- judgement ----------------------------------------------------------------------------------------
    def residual_tests(self, record: Record | None = None, lags: int = 25, level: float = 0.99) -> ResidualTests:
        """Whether the residuals are white and independent of past inputs, on the model's own `record` or another.

        `lags` (25) are tested, each set at the `level` 0.99. Returns `ResidualTests`.
        """
        record = self.record if record is None else record
        if record is None:
            raise LinkwrightError(
                "this model was not identified from a record: give the record to test it on, as record=..."
            )
        return residual_tests(self, record, lags, level)

    def compare(self, record: Record) -> float:
        """The fit of the simulated output on a record: 1 − |y − ŷ|/|y − mean y|; one is perfect."""
        return simulated_fit(self, record)

    # -- conversions --------------------------------------------------------------------------------------
    def matrices(self, *, noise: bool = False) -> tuple[Floats, Floats, Floats, Floats]:
        """A, B, C, D of the sampled state space from u (and e, with `noise`; False) to y; the delay is inside."""
        plant = self.system(noise=noise)
        return plant.A, plant.B, plant.C, plant.D

    def system(self, *, noise: bool = False) -> System:
        """The plant with its delay as a sampled `System`; with `noise`, [G, H] from (u, e)."""
        plant = realised(np.concatenate([np.zeros(self.delay), self.B]), self.F, self.dt)
        return row([plant, realised(self.C, self.D, self.dt)]) if noise else plant

    def to_control(self, *, noise: bool = False) -> Any:
        """The sampled plant as python-control's `StateSpace`; with `noise`, e is its second input."""
        return self.system(noise=noise).to_control()

    def continuous(self, method: str = "zoh", *, pade: int | None = None) -> Any:
        """The continuous plant as `StateSpace`, by the `method` "zoh" (its response to a held input is this model's) or
        "tustin".

        Whole samples of delay beyond the first are no poles of a continuous system: they are `dead_time`, left out
        unless `pade` says by which order of Padé approximation to include them.
        """
        held = min(self.delay, 1)
        extra = held + len(self.B) - len(self.F)
        late = realised(np.concatenate([np.zeros(held), self.B]), self.F, self.dt)
        if method == "tustin":
            flat, half = to_continuous(late), 2.0 / self.dt  # s there is s dt/2
            plant = System(half * flat.A, np.sqrt(half) * flat.B, np.sqrt(half) * flat.C, flat.D)
        elif method != "zoh":
            raise LinkwrightError(f"a sampled model becomes continuous by 'zoh' or 'tustin', not {method!r}")
        elif extra > 0:
            raise LinkwrightError(
                f"B is too long for a continuous system: {extra} of the model's poles lie at z = 0, which no held "
                f"continuous plant has. Identify with nb ≤ {len(self.F) - held} and a larger delay, or take 'tustin'"
            )
        else:
            plant = _unsampled(late, self.F, self.dt)
        if pade is not None and self.dead_time > 0.0:
            plant = series(plant, delay(self.dead_time, order=int(pade)))
        return plant.to_control()

    @property
    def dead_time(self) -> float:
        """The delay (s) beyond the one sample that every held input has."""
        return max(0, self.delay - 1) * self.dt

    def reflect(self) -> Model:
        """Unstable poles of G and H mirrored into the unit circle: |G| and the noise's spectrum stay, phases do not.

        The covariance no longer holds and is dropped.
        """
        notes = []
        if not self.stable:
            notes.append("Unstable poles were mirrored into the unit circle: |G| is as identified, its phase is not.")
        if not stable(self.D):
            notes.append("Unstable poles of the noise model were mirrored: its spectrum is as identified.")
        if not notes:
            return self
        return replace(
            self,
            B=self.B / _outside(self.F),
            F=reflected(self.F),
            D=reflected(self.D),
            variance=self.variance / _outside(self.D) ** 2,
            covariance=None,
            notes=(*self.notes, *notes),
        )

    def _covariance(self) -> Floats:
        if self.covariance is None:
            raise LinkwrightError(
                "this model has no covariance: it was written down or changed after the fit; identify it from a record"
            )
        return self.covariance

    def _shift(self, w: ArrayLike) -> Complexes:
        at = np.atleast_1d(real_array("w", w))
        return np.asarray(np.exp(-1j * at * self.dt))

    def with_notes(self, *notes: str) -> Model:
        """The same model with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    def __str__(self) -> str:
        lines = [f"{self.family} model, {self.orders}, every {self.dt:g} s"]
        values = self.parameters
        errors = self.standard_errors if self.covariance is not None else np.full(len(values), np.nan)
        for name, value, error in zip(self.names, values, errors, strict=True):
            lines.append(f"  {name:<4}{value:>13.6g}" + (f"  ± {error:.2g}" if np.isfinite(error) else ""))
        lines.append(f"  noise variance {self.variance:.4g}")
        lines += [f"  pole {pole}" for pole in self.poles() if pole.z.imag >= 0]
        if np.isfinite(self.fit):
            lines.append(
                f"  fit on held-out data {100 * self.fit:.1f} % simulated, {100 * self.prediction_fit:.1f} % predicted"
            )
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


def _polynomial(p: Floats, z: Complexes) -> Complexes:
    return np.asarray(np.polynomial.polynomial.polyval(z, p))


def _signal(name: str, values: ArrayLike) -> Floats:
    signal = real_array(name, values)
    if signal.ndim != 1:
        raise LinkwrightError(f"{name} is one signal, an array of shape (N,), not {signal.shape}")
    return signal
