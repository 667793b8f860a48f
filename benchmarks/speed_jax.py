"""Rows of `speed.py`: forward dynamics inside JAX on the CPU, beside a jitted identity and beside calls of ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import linkwright as lw
from speed_table import Measurement, Row, interleaved, shown_time

ARM = Path(__file__).resolve().parent.parent / "examples" / "models" / "panda.dh.toml"


def _jax() -> Any:
    try:
        import jax
    except ImportError:
        raise SystemExit("JAX is not installed") from None
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)
    return jax


def _finished(function: Callable[..., Any], *arrays: Any) -> Callable[[], Any]:
    """A call that waits for its numbers."""
    return lambda: function(*arrays).block_until_ready()


def one_state() -> Measurement:
    """Microseconds that a jitted call takes longer than one that hands an argument back."""
    jax, mech = _jax(), lw.load(ARM)
    arrays = jax.numpy.asarray(np.random.default_rng(0).standard_normal((3, mech.nv)))
    function, identity = jax.jit(mech.program("forward_dynamics").to_jax()), jax.jit(lambda q, v, tau: tau)
    ours, least = interleaved([_finished(function, *arrays), _finished(identity, *arrays)], times=15)
    return Measurement(1e6 * (ours - least), shown_time(ours), f"jitted identity {shown_time(least)}")


def batch(states: int) -> Measurement:
    """A jitted `vmap` beside a call of ours, on one core."""
    jax, mech = _jax(), lw.load(ARM)
    lw.set_threads(1)
    states_of_arm = np.random.default_rng(0).standard_normal((3, states, mech.nv))
    function = jax.jit(jax.vmap(mech.program("forward_dynamics").to_jax()))
    call = _finished(function, *jax.numpy.asarray(states_of_arm))
    inside, ours = interleaved([call, lambda: mech.forward_dynamics(*states_of_arm)], times=15)
    return Measurement(inside / ours, shown_time(inside), f"ours outside of JAX {shown_time(ours)}")


def gradient() -> Measurement:
    """A jitted gradient beside the kernel of reverse accumulation, one state."""
    jax, mech = _jax(), lw.load(ARM)
    arrays = np.random.default_rng(0).standard_normal((3, mech.nv))
    program = mech.program("forward_dynamics")
    function, reverse = program.to_jax(), program.reverse()
    call = _finished(jax.jit(jax.grad(lambda *x: function(*x).sum())), *jax.numpy.asarray(arrays))
    least = _finished(jax.jit(lambda q, v, tau: tau), *jax.numpy.asarray(arrays))
    ones = np.ones(mech.nv)
    inside, identity, ours = interleaved([call, least, lambda: reverse(*arrays, ones)], times=15)
    texts = f"jitted identity {shown_time(identity)}, reverse program {shown_time(ours)}"
    return Measurement(1e6 * (inside - identity - ours), shown_time(inside), texts)


ROWS = [
    Row("in JAX: jitted forward dynamics, 7-joint arm", 2.0, "µs more than a jitted identity", one_state),
    Row("in JAX: `vmap` of 10³, 7-joint arm", 3.0, "× our batch", partial(batch, 1000)),
    Row("in JAX: `vmap` of 10⁴, 7-joint arm", 3.0, "× our batch", partial(batch, 10_000)),
    Row("in JAX: jitted gradient, 7-joint arm", 2.0, "µs more than identity and reverse program", gradient),
]
