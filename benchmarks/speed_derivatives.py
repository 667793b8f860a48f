"""Rows of `speed.py`: derivatives of humanoids, closed mechanisms and long chains, and forward dynamics by M.

No compiled code is stored: first calls compile.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import linkwright as lw
from speed_table import Measurement, Row, interleaved, shown_time

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
GENERATION = "LLVM's code generation, about three quarters of it"


def _uncached() -> None:
    """Store no compiled code, and read none; on one core."""
    os.environ["LINKWRIGHT_CACHE"] = ""
    warnings.simplefilter("ignore")
    lw.set_threads(1)


def _first(call: Callable[[], Any]) -> float:
    """Seconds of work of a first call; on a busy machine less than those on the clock."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def humanoid(file: str) -> Measurement:
    """Derivatives of forward dynamics beside `pinocchio.computeABADerivatives`, one state."""
    import pinocchio as pin

    from robots import Twin, find

    _uncached()
    twin = Twin(find(file), "floating")
    state = [x[0].copy() for x in twin.states(1)]
    first = _first(lambda: twin.mech.forward_dynamics_derivatives(*state))
    ours = twin.mech.forward_dynamics_derivatives
    theirs = twin.pin_q(state[0]), twin.pin_v(state[1]), twin.pin_v(state[2])
    a, b = interleaved(
        [lambda: ours(*state), lambda: pin.computeABADerivatives(twin.model, twin.data, *theirs)], times=15
    )
    return Measurement(a / b, f"{shown_time(a)}, first call {shown_time(first)}", f"Pinocchio {shown_time(b)}")


def humanoid_compiled(file: str) -> Measurement:
    from robots import find

    _uncached()
    mech = lw.load(find(file), base="floating", mimic="independent")
    x = np.zeros(mech.nv)
    first = _first(lambda: mech.forward_dynamics_derivatives(mech.neutral(), x, x))
    return Measurement(first, shown_time(first), limits="code generation of straight code: some 0.05 ms an operation")


def cassie() -> Measurement:
    """The first derivatives of a robot with four loops, exact."""
    from robots import folder

    _uncached()
    mech = lw.load(next(folder().rglob("cassie_v2.sdf")))
    q, x = mech.neutral(), np.zeros(mech.nv)
    first = _first(lambda: mech.forward_dynamics_derivatives(q, x, x))
    return Measurement(first, shown_time(first), limits=GENERATION)


def chain_beside_pinocchio(links: int) -> Callable[[], Measurement]:
    """Derivatives of forward dynamics of a chain beside `pinocchio.computeABADerivatives`, one state."""

    def measure() -> Measurement:
        import tempfile

        import pinocchio as pin

        from linkwright.formats.urdf_writer import write_urdf
        from robots import Twin

        _uncached()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "chain.urdf"
            path.write_text(write_urdf(lw.chain(links).description))
            twin = Twin(path, "fixed")
        state = [x[0].copy() for x in twin.states(1)]
        first = _first(lambda: twin.mech.forward_dynamics_derivatives(*state))
        theirs = twin.pin_q(state[0]), twin.pin_v(state[1]), twin.pin_v(state[2])
        calls = [
            lambda: twin.mech.forward_dynamics_derivatives(*state),
            lambda: pin.computeABADerivatives(twin.model, twin.data, *theirs),
        ]
        a, b = interleaved(calls, times=5)
        ours = f"{shown_time(a)}, first call {shown_time(first)}"
        why = "the kernels: each column goes through loops over links"
        return Measurement(a / b, ours, f"Pinocchio {shown_time(b)}", why)

    return measure


def long_chain_compiled(links: int) -> Callable[[], Measurement]:
    """The first derivatives of forward dynamics of a long chain."""

    def measure() -> Measurement:
        _uncached()
        mech = lw.chain(links)
        x = np.linspace(-1.0, 1.0, mech.nv)
        first = _first(lambda: mech.forward_dynamics_derivatives(x, x, x))
        second = _first(lambda: mech.forward_dynamics_derivatives(x, x, x))
        return Measurement(first, f"{shown_time(first)}, then {shown_time(second)}")

    return measure


def long_ladder() -> Measurement:
    """The first linear model of 100 four-bars that move together: 201 rates, 100 loops."""
    from forms import ladder

    _uncached()
    mech = ladder(100)
    q = mech.assemble(mech.neutral())
    first = _first(lambda: mech.linearise(q))
    return Measurement(first, shown_time(first))


def second_derivatives() -> Measurement:
    """∂/∂q of ∂a/∂q of the Panda, by the tape."""
    from robots import find

    _uncached()
    mech = lw.load(find("panda.urdf"), mimic="independent")
    mech = mech.lock(dict.fromkeys(("panda_finger_joint1", "panda_finger_joint2"), 0.0))
    x = np.linspace(-1.0, 1.0, mech.nv)
    program = mech.program("forward_dynamics_derivatives")
    first = _first(lambda: program.jacobian(wrt=0)(x, x, x))
    return Measurement(first, shown_time(first), limits=GENERATION)


def mass_matrix_method(links: int) -> Callable[[], Measurement]:
    """`method="mass-matrix"` beside our M and h with SciPy's Cholesky."""

    def measure() -> Measurement:
        from scipy.linalg import cho_factor, cho_solve

        _uncached()
        mech = lw.chain(links)
        q, v, tau = np.random.default_rng(0).normal(size=(3, links))

        def peer() -> Any:
            m = cho_factor(mech.mass_matrix(q), overwrite_a=True, check_finite=False)
            return cho_solve(m, tau - mech.bias_forces(q, v), check_finite=False)

        peer()
        a, b = interleaved([lambda: mech.forward_dynamics(q, v, tau, method="mass-matrix"), peer])
        return Measurement(a / b, shown_time(a), f"M and SciPy {shown_time(b)}")

    return measure


G1, TALOS = "g1_29dof_rev_1_0.urdf", "talos_reduced.urdf"

ROWS = [
    Row("derivatives of forward dynamics, G1 (35)", 0.45, "× Pinocchio", lambda: humanoid(G1)),
    Row("derivatives of forward dynamics, Talos (38)", 0.45, "× Pinocchio", lambda: humanoid(TALOS)),
    Row("derivatives of forward dynamics, G1, first call", 3.0, "s", lambda: humanoid_compiled(G1)),
    Row("derivatives of forward dynamics, Talos, first call", 3.0, "s", lambda: humanoid_compiled(TALOS)),
    Row("derivatives of Cassie (28 rates, 4 loops), first call", 5.0, "s", cassie),
    Row("derivatives of a chain of 60, first call", 5.0, "s", long_chain_compiled(60)),
    Row("derivatives of a chain of 300, first call", 5.0, "s", long_chain_compiled(300)),
    Row("derivatives of a chain of 1,000, first call", 5.0, "s", long_chain_compiled(1000)),
    Row("derivatives of a chain of 300", 1.5, "× Pinocchio", chain_beside_pinocchio(300)),
    Row("linear model of a ladder of 100 four-bars, first call", 5.0, "s", long_ladder),
    Row("second derivatives of a 7-joint arm, first call", 3.0, "s", second_derivatives),
    Row("method='mass-matrix', chain of 64", 1.3, "× M and SciPy's Cholesky", mass_matrix_method(64)),
    Row("method='mass-matrix', chain of 256", 1.3, "× M and SciPy's Cholesky", mass_matrix_method(256)),
]
