"""Linear systems as four matrices, how they are put together, and the way to and from python-control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, eigvals, expm, matrix_balance, schur  # type: ignore[import-untyped]  # no types

from linkwright.base.arguments import positive_number, real_array
from linkwright.base.arrays import Floats
from linkwright.errors import ModelError, ShapeError

Complexes = NDArray[np.complex128]
Method = Literal["tustin", "zoh"]
_SINGULAR = 1e14  # a condition number above it leaves no digit worth having


@dataclass(frozen=True)
class System:
    """x' = A x + B u, y = C x + D u; x' is the derivative (`dt` None, the default) or the next sample (`dt` in s).

    `A` (n, n), `B` (n, inputs), `C` (outputs, n) and `D` (outputs, inputs).

    >>> import numpy as np, linkwright as lw
    >>> lag = lw.control.System([[-2.0]], [[1.0]], [[1.0]], [[0.0]])
    >>> lag.stable(), lag.poles().real.tolist(), lag.at(0.0).real.tolist(), lag.evaluate(0.0).real.tolist()
    (True, [-2.0], [[0.5]], [[0.5]])
    >>> lag.select([0], slice(1)).inputs, lag.combined(np.array([[1.0], [2.0]])).outputs, lag.to_control().nstates
    (1, 2, 1)

    Raises `ShapeError` for matrices that do not fit, `ModelError` for numbers that are not finite.
    """

    A: Floats
    B: Floats
    C: Floats
    D: Floats
    dt: float | None = None

    def __post_init__(self) -> None:
        matrices = [_matrix(getattr(self, name), f"{name} of a system") for name in "ABCD"]
        outputs, inputs = matrices[3].shape
        n = matrices[0].shape[0] if matrices[0].size else 0
        wanted = [(n, n), (n, inputs), (outputs, n), (outputs, inputs)]
        for name, matrix, shape in zip("ABCD", matrices, wanted, strict=True):
            if matrix.size != shape[0] * shape[1] or (matrix.size and matrix.shape != shape):
                text = f"{name} of a system with {n} states, {inputs} inputs and {outputs} outputs is {shape}"
                raise ShapeError(f"{text}, not {matrix.shape}", given=matrix.shape, wanted=shape)
            if not np.all(np.isfinite(matrix)):
                raise ModelError(f"{name} of a system holds numbers that are not finite; see where they come from")
            object.__setattr__(self, name, matrix.reshape(shape))
        if self.dt is not None:
            positive_number("the sampling period dt", self.dt)

    @property
    def order(self) -> int:
        """The number of states."""
        return int(self.A.shape[0])

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return int(self.D.shape[1])

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return int(self.D.shape[0])

    def poles(self) -> Complexes:
        """The eigenvalues of A: in s (1/s), or in z where sampled."""
        return np.asarray(np.linalg.eigvals(self.A) if self.order else np.zeros(0), dtype=complex)

    def stable(self) -> bool:
        """Every pole strictly left of the imaginary axis, or inside the unit circle."""
        poles = self.poles()
        return bool(np.all(poles.real < 0) if self.dt is None else np.all(np.abs(poles) < 1))

    def at(self, w: Any) -> Complexes:
        """The frequency response (..., outputs, inputs) at the frequencies `w` (...), rad/s."""
        w = real_array("w", w)
        points = 1j * w if self.dt is None else np.exp(1j * w * self.dt)
        return self.evaluate(points)

    def evaluate(self, points: Any) -> Complexes:
        """The transfer matrix (..., outputs, inputs) at complex `points` (...) s or z; infinity gives D."""
        points = np.asarray(points, dtype=complex)
        flat = points.reshape(-1)
        answer = np.broadcast_to(self.D.astype(complex), (flat.size, *self.D.shape)).copy()
        finite = np.isfinite(flat)
        if self.order and np.any(finite):
            # A triangular A: each frequency costs one back-substitution, for all of them at once.
            T, U = schur(self.A, output="complex")
            right, left = U.conj().T @ self.B, self.C @ U
            p = flat[finite]
            x = np.empty((self.order, self.inputs, p.size), dtype=complex)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                for i in range(self.order - 1, -1, -1):
                    known = right[i, :, None] + np.einsum("j,jkp->kp", T[i, i + 1 :], x[i + 1 :])
                    x[i] = known / (p - T[i, i])
                answer[finite] += np.einsum("ij,jkp->pik", left, x)
        return answer.reshape(*points.shape, *self.D.shape)

    def __neg__(self) -> System:
        return System(self.A, self.B, -self.C, -self.D, self.dt)

    def combined(self, outputs: Floats) -> System:
        """The same states and inputs; each row of `outputs` (m, outputs) is an output, of those that there are."""
        return System(self.A, self.B, outputs @ self.C, outputs @ self.D, self.dt)

    def __matmul__(self, other: System) -> System:
        """In series: first the other, then this one."""
        return series(self, other)

    def select(self, outputs: Sequence[int] | slice, inputs: Sequence[int] | slice) -> System:
        """Some of the `outputs` and `inputs`, by their numbers, with all the states."""
        return System(self.A, self.B[:, inputs], self.C[outputs], self.D[outputs][:, inputs], self.dt)

    def to_control(self) -> Any:
        """python-control's `StateSpace`. Raises `ModelError` where python-control is not installed."""
        return control_package().StateSpace(self.A, self.B, self.C, self.D, 0 if self.dt is None else self.dt)


def _matrix(numbers: Any, name: str) -> Floats:
    try:
        return np.atleast_2d(real_array(name, numbers))
    except (TypeError, ValueError):
        raise ModelError(f"{name} must be a matrix of real numbers, not {type(numbers).__name__}") from None


class HasSystem:
    """What has a controller as matrices, `system`, and gives it to python-control as `K`."""

    system: System

    @property
    def K(self) -> Any:
        """The controller as python-control's `StateSpace`."""
        return self.system.to_control()


def control_package() -> Any:
    """python-control, or an error with the command that installs it."""
    try:
        import control  # weight: python-control
    except ImportError:
        text = 'linear systems as StateSpace need python-control: pip install "linkwright[control]"'
        raise ModelError(text) from None
    return control


def system(model: Any, name: str = "the system", dt: float | None = None) -> System:
    """A `System` from a `model`: a number, matrix, (num, den), (A, B, C, D), `StateSpace` or `TransferFunction`.

    The last two are python-control's or SciPy's, whose `ZerosPolesGain` is taken too. `name` stands in messages. Plain
    numbers, (num, den) and (A, B, C, D) are sampled every `dt` (s) where dt is given, else they are continuous.

    >>> import linkwright as lw
    >>> lw.control.system(([1.0], [1.0, 2.0])).poles()
    array([-2.+0.j])

    Raises `ModelError` for anything else, `ShapeError` for matrices that do not fit.
    """
    if isinstance(model, System):
        return model
    if isinstance(model, tuple) and len(model) == 4:
        return System(*model, dt)
    if isinstance(model, tuple) and len(model) == 2:
        return from_polynomials(model[0], model[1], dt, name)
    if all(hasattr(model, m) for m in "ABCD"):
        return System(model.A, model.B, model.C, model.D, _period(model, name))
    if hasattr(model, "num") and hasattr(model, "den"):
        return _from_transfer(model, name)
    if hasattr(model, "to_tf"):
        return _from_transfer(model.to_tf(), name)
    try:
        gain = np.atleast_2d(real_array(name, model))
    except (TypeError, ValueError):
        text = "a StateSpace, a TransferFunction, (num, den), (A, B, C, D) or a number"
        raise ModelError(f"{name} must be {text}, not {type(model).__name__}") from None
    return gains(gain, dt)


def gains(D: Any, dt: float | None = None) -> System:
    """A system without states."""
    D = np.atleast_2d(np.asarray(D, dtype=float))
    return System(np.zeros((0, 0)), np.zeros((0, D.shape[1])), np.zeros((D.shape[0], 0)), D, dt)


def from_polynomials(num: Any, den: Any, dt: float | None = None, name: str = "the system") -> System:
    """One input, one output, from the coefficients of falling powers; companion form, balanced."""
    try:
        num, den = (np.atleast_1d(real_array("num and den", p)) for p in (num, den))
    except (TypeError, ValueError):
        num = den = np.zeros((0, 0))
    if num.ndim != 1 or den.ndim != 1:
        raise ModelError(f"{name} as (num, den) takes two lists of real coefficients, of falling powers")
    num, den = np.trim_zeros(num, "f"), np.trim_zeros(den, "f")
    if den.size == 0:
        raise ModelError(f"the denominator of {name} is zero")
    if num.size > den.size:
        text = "add poles well above the frequencies of interest, such as 1/(0.001 s + 1)"
        raise ModelError(f"{name} is improper: degree {num.size - 1} over {den.size - 1}; {text}")
    n = den.size - 1
    num, den = np.concatenate([np.zeros(n + 1 - num.size), num]) / den[0], den / den[0]
    A = np.zeros((n, n))
    A[1:, :-1] = np.eye(max(n - 1, 0))
    if n:
        A[0] = -den[1:]
    B = np.zeros((n, 1))
    B[:1] = 1.0
    return balanced(System(A, B, (num[1:] - num[0] * den[1:])[None, :], num[:1, None], dt))


def _from_transfer(transfer: Any, name: str) -> System:
    dt = _period(transfer, name)
    den = transfer.den
    if isinstance(den, np.ndarray) and den.ndim == 1:  # SciPy's: one input, a row of num for each output
        return stack([from_polynomials(num, den, dt, name) for num in np.atleast_2d(transfer.num)])
    fractions = [zip(*pair, strict=True) for pair in zip(transfer.num, transfer.den, strict=True)]
    return stack([row([from_polynomials(n, d, dt, name) for n, d in parts]) for parts in fractions])


def _period(of: Any, name: str) -> float | None:
    dt = getattr(of, "dt", None)
    if dt is True:
        raise ModelError(f"{name} is sampled with an unspecified period: give its dt in seconds")
    return None if dt is None or dt == 0 else float(dt)


def period(*systems: System) -> float | None:
    """The one sampling period of the systems (static gains fit to any), or an error that names both."""
    periods = {s.dt for s in systems if s.order} or {s.dt for s in systems if s.dt is not None} or {None}
    if len(periods) > 1:
        text = " and ".join(sorted("continuous" if dt is None else f"sampled every {dt:g} s" for dt in periods))
        raise ModelError(f"the systems cannot be connected: {text}; convert them first with lw.control.discretise")
    return periods.pop()


def series(after: System, before: System) -> System:
    """after · before."""
    if after.inputs != before.outputs:
        text = f"a system of {after.inputs} inputs cannot follow one of {before.outputs} outputs"
        raise ShapeError(text, given=before.outputs, wanted=after.inputs)
    n, m = before.order, after.order
    A = np.block([[before.A, np.zeros((n, m))], [after.B @ before.C, after.A]])
    B = np.vstack([before.B, after.B @ before.D])
    return System(A, B, np.hstack([after.D @ before.C, after.C]), after.D @ before.D, period(after, before))


def parallel(systems: Sequence[System]) -> System:
    """Side by side: the same inputs, the sum of the outputs."""
    return stack(systems).combined(np.tile(np.eye(systems[0].outputs), len(systems)))


def row(systems: Sequence[System]) -> System:
    """Side by side, each with one output and its own inputs: the sum of the outputs."""
    return block_diagonal(systems).combined(np.ones((1, len(systems))))


def block_diagonal(systems: Sequence[System]) -> System:
    """Side by side, each with its own inputs and outputs."""
    blocks = [block_diag(*[getattr(s, name) for s in systems]) for name in "ABCD"]
    n, m, p = (sum(getattr(s, k) for s in systems) for k in ("order", "inputs", "outputs"))
    shapes = [(n, n), (n, m), (p, n), (p, m)]
    A, B, C, D = (b.reshape(s) for b, s in zip(blocks, shapes, strict=True))
    return System(A, B, C, D, period(*systems))


def stack(systems: Sequence[System]) -> System:
    """One above the other: the same inputs, all the outputs."""
    joined = block_diagonal(systems)
    together = np.tile(np.eye(systems[0].inputs), (len(systems), 1))
    return System(joined.A, joined.B @ together, joined.C, joined.D @ together, joined.dt)


def diagonal(weights: Any, size: int, name: str, dt: float | None) -> System:
    """A weight for so many signals: a weight of one signal is repeated along the diagonal."""
    weight = system(weights, name, dt)
    if weight.inputs == weight.outputs == 1 and size > 1:
        return block_diagonal([weight] * size)
    if weight.inputs != size:
        text = (
            f"{name} has {weight.inputs} inputs where {size} signals are weighted; give one for each, or a single one"
        )
        raise ShapeError(text, given=weight.inputs, wanted=size)
    return weight


def lft(P: System, K: System) -> System:
    """The lower loop: u = K y closed around the last inputs and outputs of P (K's sign is +)."""
    m2, p2 = K.outputs, K.inputs
    B1, B2 = P.B[:, : P.inputs - m2], P.B[:, P.inputs - m2 :]
    C1, C2 = P.C[: P.outputs - p2], P.C[P.outputs - p2 :]
    D11, D12 = P.D[: P.outputs - p2, : P.inputs - m2], P.D[: P.outputs - p2, P.inputs - m2 :]
    D21, D22 = P.D[P.outputs - p2 :, : P.inputs - m2], P.D[P.outputs - p2 :, P.inputs - m2 :]
    loop = np.eye(p2) - D22 @ K.D
    if np.linalg.cond(loop) > 1e12:
        raise ModelError("the loop is not well posed: I - D22 K(∞) is singular; add a delay or a roll-off")
    # y = E (C2 x + D21 w + D22 Ck xk), u = Dk y + Ck xk.
    E = np.linalg.inv(loop)
    y = [E @ C2, E @ D22 @ K.C, E @ D21]
    u = [K.D @ y[0], K.D @ y[1] + K.C, K.D @ y[2]]
    A = np.block([[P.A + B2 @ u[0], B2 @ u[1]], [K.B @ y[0], K.A + K.B @ y[1]]])
    B = np.vstack([B1 + B2 @ u[2], K.B @ y[2]])
    C = np.hstack([C1 + D12 @ u[0], D12 @ u[1]])
    return System(A, B, C, D11 + D12 @ u[2], period(P, K))


def balanced(S: System) -> System:
    """The same system with its states scaled, so that A, B and C hold numbers of like size."""
    if not S.order:
        return S
    n = S.order
    M = np.zeros((n + 1, n + 1))
    M[:n, :n] = S.A
    M[:n, n] = np.abs(S.B).max(axis=1, initial=0.0)
    M[n, :n] = np.abs(S.C).max(axis=0, initial=0.0)
    _, (scale, _) = matrix_balance(M, permute=False, separate=True)
    t = scale[:n] / scale[n]
    if not np.all(np.isfinite(t)) or np.any(t <= 0):
        return S
    return System(S.A * t / t[:, None], S.B / t[:, None], S.C * t, S.D, S.dt)


def to_continuous(S: System) -> System:
    """z = (1 + s)/(1 − s): the same H∞ norm and Hankel singular values; an s on jΩ is ω = 2 atan(Ω)/dt."""
    if S.dt is None:
        return S
    n = S.order
    if n and np.linalg.cond(np.eye(n) + balanced(S).A) > _SINGULAR:
        text = f"a pole at z = −1, half the sampling frequency ({0.5 / S.dt:.4g} Hz)"
        advice = "damp it a little, such as to z = −0.999, or sample at another period"
        raise ModelError(f"{text}, has no place in the bilinear map: {advice}")
    M = np.linalg.inv(np.eye(n) + S.A)
    root = np.sqrt(2.0)
    return System(M @ (S.A - np.eye(n)), root * M @ S.B, root * S.C @ M, S.D - S.C @ M @ S.B)


def unmapped(w: Any, dt: float | None) -> Any:
    """The frequencies (rad/s) whose images under `to_continuous` are w."""
    return w if dt is None else 2 * np.arctan(w) / dt


def to_sampled(S: System, dt: float, a: float = 1.0) -> System:
    """s = a (z − 1)/(z + 1), the way back of `to_continuous`; a = 2/dt is Tustin's rule."""
    n = S.order
    if n and np.linalg.cond(np.eye(n) - balanced(S).A / a) > _SINGULAR:
        text = f"an unstable pole at s = {a:.4g} 1/s has no place in the bilinear map"
        raise ModelError(f'{text}: sample at another period, or by a hold (method="zoh")')
    M = np.linalg.inv(a * np.eye(n) - S.A)
    root = np.sqrt(2.0 * a)
    return System(M @ (a * np.eye(n) + S.A), root * M @ S.B, root * S.C @ M, S.D + S.C @ M @ S.B, dt)


def sampled(model: Any, dt: float, method: Method = "tustin", prewarp: float | None = None) -> System:
    """A system at the period dt; one that is sampled with it already is left alone."""
    S = system(model)
    dt = positive_number("the sampling period dt", dt)
    if S.dt is not None:
        if abs(S.dt - dt) > 1e-9 * dt:
            raise ModelError(f"a system sampled every {S.dt:g} s cannot be sampled again every {dt:g} s; resample it")
        return S
    if method == "tustin":
        if prewarp is not None and not 0 < prewarp < np.pi / dt:
            raise ModelError(f"prewarp is a frequency below {np.pi / dt:g} rad/s, half the sampling's; not {prewarp!r}")
        return to_sampled(S, dt, 2 / dt if prewarp is None else prewarp / np.tan(prewarp * dt / 2))
    if method == "zoh":
        if prewarp is not None:
            raise ModelError('prewarp belongs to method="tustin"')
        n, m = S.order, S.inputs
        held = expm(np.block([[S.A, S.B], [np.zeros((m, n + m))]]) * dt)
        return System(held[:n, :n], held[:n, n:], S.C, S.D, dt)
    raise ModelError(f'method is "tustin" or "zoh", not {method!r}')


def delay(seconds: float, dt: float | None = None, *, order: int = 3) -> System:
    """A pure delay of so many `seconds`: z⁻ᵏ where `dt` (s) is given, else its Padé approximant of an `order`, 3.

    The approximant is all-pass; with order 3 its phase is right to 1° up to ω · seconds = 3.6 rad.

    >>> import linkwright as lw
    >>> lw.control.delay(0.3, 0.1).order
    3

    Raises `ModelError` for a negative delay, or one that is no whole number of periods.
    """
    if not (np.isfinite(seconds) and seconds >= 0):
        raise ModelError(f"a delay is a number of seconds, not negative; {seconds!r} is not")
    if seconds == 0:
        return gains(1.0, dt)
    if dt is None:
        k = np.arange(order + 1)
        c = np.array([comb(order, i) / np.prod(np.arange(2 * order - i + 1, 2 * order + 1)) for i in k])
        c = c * float(seconds) ** k
        return from_polynomials((c * (-1.0) ** k)[::-1], c[::-1])
    steps = round(seconds / dt)
    if abs(steps * dt - seconds) > 1e-6 * dt:
        text = f"a delay of {seconds:g} s is no whole number of periods of {dt:g} s"
        raise ModelError(f"{text}: sample the plant with its delay, or round it")
    A = np.eye(steps, k=-1)
    return System(A, np.eye(steps, 1), np.eye(1, steps, k=steps - 1), np.zeros((1, 1)), dt)


def invariant_zeros(A: Any, B: Any, C: Any, D: Any) -> Complexes:
    """The finite zeros of a system with as many outputs as inputs: where [A − z, B; C, D] is singular."""
    pencil = np.block([[A, B], [C, D]])
    states = np.diag(np.repeat([1.0, 0.0], [len(A), len(pencil) - len(A)]))
    zeros = eigvals(pencil, states)
    return np.asarray(zeros[np.isfinite(zeros)])


def in_hertz(pole: complex, dt: float | None) -> float:
    """The frequency of a pole in Hz (of its continuous counterpart where sampled)."""
    s = pole if dt is None else np.log(pole if pole else 1e-300) / dt
    return float(abs(s) / (2 * np.pi))
