"""Rows of calls for one state: kinematics and energies beside Pinocchio, options and laws of forward dynamics."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import linkwright as lw
from calls import ratio
from speed_table import Measurement, Row, interleaved, python_functions, shown_time

KINEMATICS = ("pose", "jacobian", "twist", "momentum", "center_of_mass", "kinetic_energy", "potential_energy")


def beside_pinocchio(function: str, subject: str) -> Measurement:
    """One call beside Pinocchio's."""
    ours, theirs, quotient = ratio(subject, function)
    return Measurement(quotient, shown_time(ours), shown_time(theirs), least_call())


def least_call() -> str:
    """What a call takes of which nearly nothing is work."""
    program, q = lw.record(lambda q: q + 1.0, 7), np.zeros(7)
    program(q)
    (seconds,) = interleaved([lambda: program(q)])
    return f"the call itself: one that adds 1 to seven numbers takes {shown_time(seconds)}"


def by_method() -> Measurement:
    """The default method, named and with `out=`, against the same call without a name."""
    mech = lw.chain(7)
    q, v, tau = np.random.default_rng(0).uniform(-1, 1, (3, 7))
    out = np.empty(7)
    a, b = interleaved(
        [
            lambda: mech.forward_dynamics(q, v, tau, method="articulated-body", out=out),
            lambda: mech.forward_dynamics(q, v, tau, out=out),
        ]
    )
    return Measurement(a / b, shown_time(a), shown_time(b))


def springs(timed: bool) -> lw.Mechanism:
    """A chain of ten links with 200 springs, whose lengths at rest depend on time or do not."""
    b = lw.Builder("springs")
    links = [b.body(f"link{k}", 1.0, com=(0, 0, -0.1), inertia=(0.01, 0.01, 0.01)) for k in range(10)]
    for k, link in enumerate(links):
        b.joint(
            "revolute", links[k - 1] if k else b.ground, link, f"joint{k}", axis=(0, 1, 0), at=(0, 0, -0.2 * bool(k))
        )
    for k in range(200):
        if timed:
            b.joint_force(f"joint{k % 10}", lambda q, t, k=k: 0.01 * np.sin(t + k) - 0.1 * q)
        else:
            b.joint_spring(f"joint{k % 10}", 0.1, rest=0.01 * k)
    return b.build()


def functions_in_python(timed: bool, **options: Any) -> Measurement:
    """How many Python functions a warm call runs, on a mechanism with 200 springs."""
    mech = springs(timed)
    q, v, tau = np.random.default_rng(0).uniform(-1, 1, (3, mech.nv))
    wrenches = np.ones((mech.nb, 6))
    full = {**options, **({"wrenches": wrenches} if "wrenches" in options else {})}

    def call() -> Any:
        return mech.forward_dynamics(q, v, tau, **full)

    for _ in range(3):
        call()
    (seconds,) = interleaved([call])
    return Measurement(python_functions(call), shown_time(seconds))


def of_a_program() -> Measurement:
    """`mech.program("pose", frame=...)(q)` beside Pinocchio's pose."""
    from calls import Subject, peer_call

    subject = Subject("arm")
    q = subject.q[0].copy()
    program, theirs = subject.mech.program("pose", frame=subject.frame), peer_call(subject, "pose")
    assert theirs is not None
    program(q)
    a, b = interleaved([lambda: program(q), theirs])
    return Measurement(a / b, shown_time(a), shown_time(b), least_call())


ROWS = [
    Row(f"`{name}`, {subject}, one state", 0.35, "× Pinocchio", partial(beside_pinocchio, name, subject))
    for subject in ("arm", "humanoid")
    for name in KINEMATICS
]
ROWS += [
    Row('`program("pose", frame=...)(q)`, arm', 0.35, "× Pinocchio", of_a_program),
    Row("`forward_dynamics(method=, out=)`, 7 links", 1.15, "× without a method", by_method),
    Row("forward dynamics, 200 springs", 0, "Python functions", partial(functions_in_python, False)),
    Row("forward dynamics, 200 laws of time, `t=`", 0, "Python functions", partial(functions_in_python, True, t=0.5)),
    Row(
        "forward dynamics, 200 springs, `wrenches=`",
        0,
        "Python functions",
        partial(functions_in_python, False, wrenches=None),
    ),
]
