"""`ModelState`: the whole state of a controller's model, from the measured joints alone.

In a closed chain the driven joints θ determine the others through the loops: Φ(q) = 0 and q_A = θ are solved by
Newton's method from the last state, so that the branch is kept. The same matrix [G; E] gives W = ∂q/∂θ, which the
virtual cut needs: with θ as generalised coordinates, τ_A = Wᵀ τ_O, and S⁻¹ = J W for a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import first_few
from linkwright.base.arrays import Floats, Longs
from linkwright.control.loop.controller_base import Controller, Measured, Reference, Target
from linkwright.control.loop.plant import frame_kinematics, joint_positions, loop_kinematics
from linkwright.dynamics.functions import Request
from linkwright.errors import AssemblyError, ControlError, ModelError
from linkwright.model.coupling_relation import timed_couplings

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

CLOSED = 1e-10  # what may be left of the loops' equations: rad, or a part of the mechanism's length
ITERATIONS = 4
JUMP = 0.5  # that a joint may move from one sample to the next: rad, or a part of the mechanism's length
CONDITION = 1e7  # of [G; E] without units, with which half of the digits are left
MET = 1e-12  # of the measured joints, or of rad and the mechanism's length: what is nearer is met
RANK = 1e-9  # of the largest singular value


class ModelState:
    """A model of a mechanism that follows its measured joints: `update(θ, θ̇)`, then all about the state.

    - `mech`: the model. `joints`: the measured and driven ones, as many as it has degrees of freedom; those with
      actuators unless given. `frame`: one whose kinematics is wanted too; none.
    - `guess` (nq): coordinates that say which way a closed chain is assembled; those of the drawing unless given.
    - `jump`: a joint that would move by more (rad, or as a part of the mechanism's length) from one update to the next
      is an error; 0.5. `condition`: of the loops' equations, beyond which a posture is singular; 1e7.
    - `partial`: whether the joints of a tree may be some of them only; the others stay where they are until `set` is
      called. False.

    After an update: `q`, `v`; `W` (nv, n) with v = W θ̇; `drift`, the accelerations at θ̈ = 0; and of the frame, in
    ground's axes, `pose`, `twist`, `jacobian` (6, n) of θ̇ and `frame_drift`, with ẍ = jacobian θ̈ + frame_drift.
    `iterations` counts those of Newton's method, and `q_places` and `v_places` (n) are the places of the joints in q
    and v.

    >>> import numpy as np, linkwright as lw
    >>> state = lw.control.ModelState(lw.chain(2), frame="link2")
    >>> state.update(np.array([0.1, 0.2]), np.zeros(2))
    >>> state.jacobian.shape, state.forces(np.zeros(2)).round(9).tolist() == state.weights().round(9).tolist()
    ((6, 2), True)
    >>> state.start(np.zeros(2), np.zeros(2))
    >>> state.set(np.array([0.1, 0.2]), np.zeros(2))
    >>> state.check_width(np.zeros(2))

    Raises `ModelError` for joints that do not determine the mechanism; `update` raises `ControlError` where the model
    cannot follow.
    """

    def __init__(
        self,
        mech: Mechanism,
        joints: Sequence[str] | str | None = None,
        frame: str | None = None,
        *,
        guess: ArrayLike | None = None,
        jump: float = JUMP,
        condition: float = CONDITION,
        partial: bool = False,
    ) -> None:
        moving = [("driver", x.name) for x in mech.description.drivers]
        moving += [("coupling", x.name) for x in timed_couplings(mech.description)]
        if moving:
            what, name = moving[0]
            text = f"{what} {name!r} prescribes a motion; a controller's model has actuated joints in its place"
            raise ModelError(f"{text}, build it without drivers", element=name)
        self.mech, self.frame, self.jump, self.condition = mech, frame, jump, condition
        self.joints, self.q_places, self.v_places = joint_positions(mech, joints, "joints")
        self.n, self._guess = len(self.joints), guess
        nv, n = mech.nv, self.n
        if not mech.closed and n != nv and not partial:
            raise _under_actuated(mech, self.joints)
        self.q, self.v = mech.neutral(), np.zeros(nv)
        self.drift, self.iterations, self.started = np.zeros(nv), 0, False
        self.W = np.zeros((nv, n))
        if not mech.closed:
            self.W[self.v_places, np.arange(n)] = 1.0
        self._plain = not mech.closed and bool(np.array_equal(self.v_places, np.arange(nv)))
        if mech.closed:
            from scipy.linalg import lapack  # type: ignore[import-untyped]  # weight: scipy, which has no types

            self._lapack, program = lapack, loop_kinematics(mech)
            self._phi, self._g, self._bend = (np.zeros(port.shape) for port in program.outputs)
            self._loops = program.bound([self.q, self.v], [self._phi, self._g, self._bend])
            self._rows, self._limits = np.arange(0), np.zeros(0)
            self._rates, self._measured = mech.programs.rate_units, mech.programs.rate_units[self.v_places]
            self._sign = 0.0
        if frame is not None:
            kinematics = frame_kinematics(mech, frame)
            self.pose, self._j, self.twist, self._w_drift = (np.zeros(port.shape) for port in kinematics.outputs)
            self._frames = kinematics.bound([self.q, self.v], [self.pose, self._j, self.twist, self._w_drift])
            self.jacobian: Floats = np.zeros((6, n))
            self.frame_drift: Floats = np.zeros(6)

    # -- from measured joints -----------------------------------------------------------------------------
    def start(self, theta: Floats, rates: Floats) -> None:
        """Find the state from scratch: from the guess or drawing, with the joints at `theta` (n) and `rates` (n)."""
        mech = self.mech
        self.check_width(theta)
        if mech.closed:
            guess = np.array(mech.initial_state()[0] if self._guess is None else self._guess, dtype=np.float64)
            guess[self.q_places] = theta
            try:
                self.q[:] = mech.assemble(guess, fixed=self.joints)
            except AssemblyError as error:
                text = f"the model cannot be assembled with the measured joints: {error}"
                raise ControlError(text, reason="no posture", joints=self.joints) from None
            self._choose_rows()
            self._sign = 0.0
        self.started = True
        self.update(theta, rates)

    def _choose_rows(self) -> None:
        """Equations of the loops that are independent of each other and of the measured joints."""
        from scipy.linalg import qr  # weight: scipy, which trees do not need

        self.v[:] = 0.0
        self._loops()
        nv, n = self.mech.nv, self.n
        others = np.setdiff1d(np.arange(nv), self.v_places)
        whole = self.mech.programs.without_units(self._g)
        g = whole[:, others]
        sizes = np.linalg.svd(g, compute_uv=False) if g.size else np.zeros(0)
        rank = int(np.sum(sizes > RANK * max(float(np.max(sizes, initial=0.0)), 1e-300)))
        if rank < nv - n:
            names = self._weak(np.arange(len(whole)))
            text = f"with the joints {_names(self.joints)} held, {_names(names)} can still move; measure one of these"
            raise ControlError(f"{text}, or begin away from a singular position", reason="singular pose", joints=names)
        freedom = nv - int(np.linalg.matrix_rank(whole, tol=RANK * np.linalg.norm(whole, 2)))
        if n > freedom:
            text = f"the joints {_names(self.joints)} are more than the mechanism's degrees of freedom"
            raise ModelError(f"{text}; name {freedom} of them")
        _, _, order = qr(g.T, mode="economic", pivoting=True)
        self._rows = np.sort(order[:rank])
        equations = self.mech.programs.constraint_units[self._rows]
        self._limits, self._equations = CLOSED * equations, equations
        self._parts = self._rates / equations[:, None]
        self._matrix, self._right = np.zeros((nv, nv)), np.zeros(nv)
        self._matrix[rank:] = np.eye(nv)[self.v_places]  # the measured joints, held
        self._units = np.eye(nv)[rank:]

    def update(self, theta: Floats, rates: Floats) -> None:
        """The state at which the measured joints are at `theta` (n) and move at these `rates` (n)."""
        if not self.started:
            self.start(theta, rates)
            return
        self.check_width(theta)
        if not self.mech.closed:
            self.q[self.q_places] = theta
            self.v[self.v_places] = rates
        else:
            self._close(theta, rates)
        self._look()

    def check_width(self, theta: Floats) -> None:
        """Refuse measured joints `theta` that are not as many as those of the model: raises `ShapeError`."""
        if len(theta) != self.n:
            text = f"{len(theta)} joints are measured and the model has {self.n} ({_names(self.joints)})"
            raise ModelError(f"{text}; name the same joints, in the same order, for encoders and controller")

    def _close(self, theta: Floats, rates: Floats) -> None:
        """Newton's method from the last state; that is kept if it leads nowhere."""
        before = self.q.copy()
        try:
            self._newton(before, theta, rates)
        except ControlError:
            self.q[:] = before
            raise

    def _newton(self, before: Floats, theta: Floats, rates: Floats) -> None:
        mech, rows, dgetrs = self.mech, self._rows, self._lapack.dgetrs
        m = len(rows)
        a, right = self._matrix, self._right
        for self.iterations in range(ITERATIONS + 1):
            self._loops()
            a[:m] = self._g[rows] * self._parts
            lu, pivots, info = self._lapack.dgetrf(a)
            miss = theta - self.q[self.q_places]
            closed = np.all(np.abs(self._phi[rows]) <= self._limits)
            met = closed and np.all(np.abs(miss) <= MET * (self._measured + np.abs(theta)))
            if met or not self.iterations:  # on the way it may be anywhere
                self._check_regular(a, lu, info)
            if met:
                break
            if self.iterations == ITERATIONS or info > 0:
                self.q[:] = before
                self._loops()
                easy = [x for x in self._weak() if x not in self.joints]
                about = f", where {_names(easy)} move{'s' if len(easy) == 1 else ''} most easily" if easy else ""
                self._lost(f"does not close from the last one{about}")
            right[:m], right[m:] = -self._phi[rows] / self._equations, miss / self._measured
            move = dgetrs(lu, pivots, right)[0] * self._rates
            # A step may be long in one joint at the first round; what ends far away is refused below.
            self.q[:] = mech.integrate(self.q, move)
        moved = mech.difference(before, self.q)
        parts = np.abs(moved) / self._rates
        if parts.max() > self.jump:
            far = self._moving(parts)
            self._lost(f"would jump by {np.abs(moved[np.argmax(parts)]):.3g} at {_names(far)}", far)
        self._check_branch(lu, pivots)
        # Column by column: many at once are shared out to threads, which wait for each other on a busy machine.
        for k, unit in enumerate(self._units):
            self.W[:, k] = dgetrs(lu, pivots, unit)[0] * (self._rates / self._measured[k])
        self.v[:] = self.W @ rates
        self._loops()
        right[:m], right[m:] = -self._bend[rows] / self._equations, 0.0
        self.drift = dgetrs(lu, pivots, right)[0] * self._rates

    def _check_regular(self, a: Floats, lu: Floats, info: int) -> None:
        """Refuse a posture at which the loops no longer determine the joints."""
        if info > 0 or not self._lapack.dgecon(lu, np.abs(a).sum(axis=0).max())[0] * self.condition > 1.0:
            names = self._weak()
            text = f"the posture is singular: with {_names(self.joints)} held, {_names(names)} can still move"
            raise ControlError(f"{text}; keep the path away from there", reason="singular pose", joints=names)

    def _check_branch(self, lu: Floats, pivots: Any) -> None:
        """Refuse a posture behind a singular one: the determinant has another sign there."""
        swaps = int(np.count_nonzero(pivots != np.arange(len(pivots))))
        sign = float(np.prod(np.sign(np.diagonal(lu)))) * (-1.0) ** swaps
        if self._sign and sign != self._sign:
            names = self._weak()
            text = f"the posture has gone through a singular one into another branch, about {_names(names)}"
            raise ControlError(f"{text}; keep the path away from there, or sample faster", reason="jump", joints=names)
        self._sign = sign

    def _weak(self, rows: Longs | None = None) -> list[str]:
        """The joints that move most easily with the measured ones held, under these equations or the chosen ones."""
        others = np.setdiff1d(np.arange(self.mech.nv), self.v_places)
        g = self.mech.programs.without_units(self._g)[np.ix_(self._rows if rows is None else rows, others)]
        if not np.isfinite(g).all():
            return list(self.joints)
        easy = np.zeros(self.mech.nv)
        easy[others] = np.linalg.svd(g)[2][-1]
        return self._moving(easy)

    def _moving(self, direction: Floats) -> list[str]:
        """The joints with the largest parts in a direction without units."""
        large = np.abs(direction) > 0.3 * np.abs(direction).max()
        return [joint.name for joint in self.mech.joints if large[joint.v_slice].any()]

    def _lost(self, what: str, joints: Sequence[str] = ()) -> NoReturn:
        text = f"the posture for the measured joints {_names(self.joints)} {what} (warm start, {ITERATIONS} iterations)"
        advice = "they are out of reach, moved too far in one sample, or are noisy; sample faster, or slow down"
        raise ControlError(f"{text}: {advice}", reason="no posture", joints=joints or self.joints)

    # -- from a whole state -------------------------------------------------------------------------------
    def set(self, q: Floats, v: Floats) -> None:
        """Take a whole, consistent state `q` (nq), `v` (nv) as it is."""
        if q.shape != self.q.shape or v.shape != self.v.shape:
            text = f"the state has {q.shape} and {v.shape} numbers, the controller's model {self.q.shape}"
            raise ModelError(f"{text} and {self.v.shape}; control another mechanism from encoders, not from its state")
        self.q[:], self.v[:] = q, v
        if self.mech.closed:
            if not len(self._rows):
                self._choose_rows()
                self.v[:] = v
            self._sign = 0.0
            self._close(q[self.q_places], v[self.v_places])
        self.started = True
        self._look()

    def _look(self) -> None:
        if self.frame is None:
            return
        self._frames()
        if self._plain:
            self.jacobian, self.frame_drift = self._j, self._w_drift
        else:
            self.jacobian = self._j @ self.W
            self.frame_drift = self._w_drift + self._j @ self.drift

    # -- forces -------------------------------------------------------------------------------------------
    def forces(self, accelerations: Floats, *, t: float = 0.0) -> Floats:
        """The forces (n) that give the joints `accelerations` (n), at `t` (s; 0): τ = Wᵀ τ_O, the virtual cut."""
        if self._plain:
            return self.mech.inverse_dynamics(self.q, self.v, accelerations, t=t)
        a = self.W @ accelerations + self.drift
        tree = self.mech.kernels.evaluate(Request("tree_forces"), self.q, self.v, a, t=t)
        return np.asarray(self.W.T @ tree)

    def weights(self) -> Floats:
        """The forces (n) of the joints that hold gravity."""
        return np.asarray(self.W.T @ self.mech.gravity_forces(self.q))


def _under_actuated(mech: Mechanism, joints: Sequence[str]) -> ModelError:
    left = [j.name for j in mech.joints if j.v_slice.stop > j.v_slice.start and j.name not in joints]
    what = f"the joint {left[0]!r} is" if len(left) == 1 else f"{len(left)} joints ({_names(left)}) are"
    text = f"{mech.name!r} is under-actuated: {what} neither measured nor driven, and no loop determines it"
    advice = (
        "name all joints with joints=[...] if they have drives; else take pid of those that do (PidSettings.joints)"
    )
    return ModelError(f"{text}; {advice}, or a law of your own of the whole state", element=left[0])


def _names(names: Sequence[str]) -> str:
    return first_few([repr(name) for name in names], 4)


class Modelled(Controller):
    """A controller with a `ModelState`, which is brought up to date before forces are computed from it.

    Its model may differ from the plant. If the loop shows the true state of a mechanism as large as the model, that is
    taken; else the model follows the measured joints.
    """

    def __init__(self, state: ModelState, reference: Reference | None) -> None:
        self.state, self.reference = state, reference

    def start(self, measured: Measured) -> Any:
        """Find the model's first state; the forces that hold the motion as it was before."""
        self.state.started = False
        before = -measured.period
        return self.follow(before, measured, None if self.reference is None else self.reference.at(before))

    def see(self, measured: Measured) -> None:
        """Bring the model's state up to date."""
        true, state = measured.state, self.state
        if true is not None and true.q.shape == state.q.shape and true.v.shape == state.v.shape:
            state.set(true.q, true.v)
        else:
            state.update(measured.q, measured.v)

    def follow(self, t: float, measured: Measured, target: Target | None) -> Any:
        """The forces for a target, from what is measured."""
        self.see(measured)
        return self.forces(t, target)

    def forces(self, t: float, target: Target | None) -> Floats:
        """The forces (n) for a target, at the model's state."""
        raise NotImplementedError

    def law(self) -> Callable[[Any, Any, Any], Any]:
        """tau(t, q, v) of the model's whole state, for `lw.simulate`: the same law without sampling."""
        state, at = self.state, self.state.v_places

        def tau(t: float, q: Any, v: Any) -> Floats:
            state.set(np.asarray(q, dtype=np.float64), np.asarray(v, dtype=np.float64))
            forces = np.zeros(state.mech.nv)
            forces[at] = self.forces(float(t), None if self.reference is None else self.reference.at(float(t)))
            return forces

        return tau
