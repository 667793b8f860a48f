"""Rollouts of a 7-joint arm on a GPU beside `mujoco.rollout` on all cores, MJX, and the same equations in JAX."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from device_tools import lw, panda, panda_mjcf, reason, say

DT = 1e-3
SIZES = ((4096, 100), (4096, 1000), (32768, 100), (32768, 1000), (262144, 100), (262144, 1000))
METHODS = {"semi-implicit-euler": "Euler", "rk4": "RK4"}  # ours and MuJoCo's
CHECKED = 64  # motions that are compared


def timed(call: Callable[[], Any], wait: Callable[[], Any], times: int = 3) -> float:
    """Median seconds of a call, waited for; one call goes before."""
    call()
    wait()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        wait()
        found.append(time.perf_counter() - start)
    return float(np.median(found))


def nothing() -> None:
    """There is nothing to wait for."""


def finished(function: Callable[..., Any], given: Any) -> Any:
    return function(*given).block_until_ready()


def start(mech: lw.Mechanism, count: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(7)
    q, v = rng.uniform(-1, 1, (2, count, mech.nv))
    return q, v, rng.normal(0, 1, (count, mech.nv))


def rollouts(options: argparse.Namespace) -> dict[str, Any]:
    """Steps a second of motions side by side."""
    import cupy as cp

    mech = panda(options.panda)
    found: dict[str, Any] = {"runs": [], "failed": []}
    wait = cp.cuda.runtime.deviceSynchronize

    def note(who: str, where: str, how: str, size: tuple[int, int], seconds: float, **more: Any) -> None:
        (method, precision), (count, steps) = how.split(), size
        rate = count * steps / seconds
        run = {"who": who, "where": where, "method": method, "precision": precision, "count": count, "steps": steps}
        found["runs"].append({**run, "seconds": seconds, "rate": rate, **more})
        told = ", ".join(f"{k} {v:.1e}" if isinstance(v, float) else f"{k} {v}" for k, v in more.items())
        say(f"{who}, {where}, {method} {precision} {count:,} × {steps}: {seconds:.4f} s, {rate:.2e} steps/s; {told}")

    def guarded(what: str, part: Callable[[], None]) -> None:
        if time.perf_counter() > options.until:
            say(f"{what}: left out, no time left")
            return
        try:
            part()
        except Exception as error:
            found["failed"].append(f"{what}: {reason(error)}")
            say(f"FAILED {what}: {reason(error)}")

    guarded("semantics", lambda: found.update(semantics=semantics(mech)))
    for method in METHODS:
        for precision in ("float64", "float32"):
            guarded(f"{method} {precision}", lambda m=method, p=precision: ours(mech, m, p, note, wait))
    guarded("CPU", lambda: on_cpu(mech, note))
    guarded("mujoco.rollout", lambda: mujoco_rollout(mech, note))
    guarded("JAX", lambda: same_in_jax(mech, note))
    for method in METHODS:
        guarded(f"MJX {method}", lambda m=method: mjx_rollout(mech, m, note))
    return found


def semantics(mech: lw.Mechanism) -> dict[str, Any]:
    """The device's rollouts are the CPU's: constant forces, sequences, laws, outputs, motions that blow up, loops."""
    from closed_mechanisms import four_bar

    q, v, tau = start(mech, CHECKED)
    sequence = np.random.default_rng(1).normal(0, 1, (CHECKED, 50, mech.nv))
    q_bad = q.copy()
    q_bad[3] = np.nan
    bar = four_bar()
    q_bar, v_bar = bar.project(np.broadcast_to(bar.assemble(), (CHECKED, bar.nq)), v[:, : bar.nv])
    cases: dict[str, tuple[Any, ...]] = {
        "constant": (mech, q, v, tau, {}),
        "samples": (mech, q, v, tau, {"samples": lw.Samples(every=7, outputs=("q", "v", "a"))}),
        "sequence": (mech, q, v, sequence, {}),
        "law": (mech, q, v, lambda t, q, v: -v - 3.0 * np.sin(q + t), {}),
        "outputs": (mech, q, v, tau, {"samples": lw.Samples(every=5, outputs=lambda t, q, v: q[:3] * t + v[:3])}),
        "blown up": (mech, q_bad, v, tau, {}),
        "four-bar": (bar, np.asarray(q_bar), np.asarray(v_bar), None, {}),
    }
    found: dict[str, Any] = {}
    for library in ("cupy", "torch", "jax"):
        try:
            from device_functions import carrier

            put, get, _ = carrier(library)
        except Exception as error:
            found[library] = reason(error)
            say(f"rollouts with {library}: {reason(error)}")
            continue
        for name, (m, *arrays, options) in cases.items():
            try:
                wanted = lw.rollout(m, *arrays[:2], DT, 50, arrays[2], **options)
                on_it = [x if x is None or callable(x) else put(x) for x in arrays]
                got = lw.rollout(m, *on_it[:2], DT, 50, on_it[2], **options)
                worst = 0.0
                for field in ("q", "v", "a", "y", "final_q", "final_v"):
                    x, y = getattr(got, field), getattr(wanted, field)
                    if y is not None:
                        x = get(x)
                        if x.shape != y.shape or (np.isnan(x) != np.isnan(y)).any():
                            raise ArithmeticError(f"{field} has another shape or other NaN")
                        worst = max(worst, float(np.nanmax(np.abs(x - y)) / np.nanmax(np.abs(y))))
                if not (get(got.ok) == wanted.ok).all():
                    raise ArithmeticError("`ok` differs")
                found[f"{library} {name}"] = worst
            except Exception as error:
                found[f"{library} {name}"] = reason(error)
            say(f"rollout on {library}, {name}: {found[f'{library} {name}']}")
    return found


def ours(mech: lw.Mechanism, method: str, precision: str, note: Callable[..., None], wait: Callable[[], Any]) -> None:
    import cupy as cp

    first = True
    for count, steps in SIZES:
        host = start(mech, count)
        q, v, tau = (cp.asarray(x.astype(precision)) for x in host)
        began = time.perf_counter()
        got = lw.rollout(
            mech, q[:CHECKED], v[:CHECKED], DT, 100, tau[:CHECKED], method=method, samples=lw.Samples(every=100)
        )
        wait()
        compiled = {"first call": time.perf_counter() - began} if first else {}
        few = [x[:CHECKED].astype(precision).astype(np.float64) for x in host]
        wanted = lw.rollout(mech, few[0], few[1], DT, 100, few[2], method=method, samples=lw.Samples(every=100)).final_q
        error = float(np.abs(got.final_q.get() - wanted).max())
        how, size = f"{method} {precision}", (count, steps)
        seconds = timed(
            partial(lw.rollout, mech, q, v, DT, steps, tau, method=method, samples=lw.Samples(every=steps)), wait
        )
        note("Linkwright", "GPU", how, size, seconds, error=error, **compiled)
        first = False
        if count * steps <= 262144 * 100:
            seconds = timed(partial(lw.rollout, mech, q, v, DT, steps, tau, method=method), wait)
            note("Linkwright", "GPU, every step kept", how, size, seconds)
        cp.get_default_memory_pool().free_all_blocks()


def on_cpu(mech: lw.Mechanism, note: Callable[..., None]) -> None:
    for method in METHODS:
        for count, steps in ((4096, 100), (32768, 100)):
            q, v, tau = start(mech, count)
            call = partial(lw.rollout, mech, q, v, DT, steps, tau, method=method, samples=lw.Samples(every=steps))
            where = f"CPU, {lw.threads()} threads"
            note("Linkwright", where, f"{method} float64", (count, steps), timed(call, nothing))


def mujoco_model(mujoco: Any, integrator: str) -> Any:
    text = panda_mjcf().replace("<option ", f'<option timestep="{DT}" integrator="{integrator}" ')
    return mujoco.MjModel.from_xml_string(text)


def mujoco_rollout(mech: lw.Mechanism, note: Callable[..., None]) -> None:
    """MuJoCo's own threads, forces held as applied ones."""
    import mujoco
    from mujoco import rollout

    cores = os.cpu_count() or 1
    for method, integrator in METHODS.items():
        model = mujoco_model(mujoco, integrator)
        datas = [mujoco.MjData(model) for _ in range(cores)]
        spec = mujoco.mjtState.mjSTATE_QFRC_APPLIED
        for count, steps in ((4096, 100), (32768, 100)) if method != "rk4" else ((4096, 100),):
            q, v, tau = start(mech, count)
            full = mujoco.mjtState.mjSTATE_FULLPHYSICS
            state = np.zeros((count, mujoco.mj_stateSize(model, full)))
            state[:, 1 : 1 + 2 * mech.nv] = np.hstack([q, v])
            control = np.repeat(tau[:, None], steps, axis=1)
            options = {"control_spec": int(spec), "nstep": steps, "persistent_pool": True}
            call = partial(rollout.rollout, model, datas, state, control, **options)
            states, _ = call()
            seconds = timed(call, nothing, 2)
            ended = lw.rollout(
                mech,
                q[:CHECKED],
                v[:CHECKED],
                DT,
                steps,
                tau[:CHECKED],
                method=method,
                samples=lw.Samples(every=steps),
            )
            error = float(np.abs(states[:CHECKED, -1, 1 : 1 + mech.nv] - ended.final_q).max())
            who, where = f"mujoco.rollout {mujoco.__version__}", f"CPU, {cores} threads"
            note(who, where, f"{method} float64", (count, steps), seconds, error=error)


def mjx_rollout(mech: lw.Mechanism, method: str, note: Callable[..., None]) -> None:
    import jax
    import mujoco
    from mujoco import mjx

    jax.config.update("jax_enable_x64", False)
    try:
        model = mjx.put_model(mujoco_model(mujoco, METHODS[method]))
        blank = mjx.make_data(model)

        def motion(q: Any, v: Any, tau: Any) -> Any:
            data = blank.replace(qpos=q, qvel=v, qfrc_applied=tau)
            return jax.lax.fori_loop(0, 100, lambda _, d: mjx.step(model, d), data).qpos

        many = jax.jit(jax.vmap(motion))
        for count in (4096, 32768, 262144):
            host = start(mech, count)
            given = [jax.device_put(x.astype(np.float32)) for x in host]
            began = time.perf_counter()
            ended = np.asarray(many(*given))
            compiled = time.perf_counter() - began
            few = [x[:CHECKED] for x in host]
            wanted = lw.rollout(
                mech, few[0], few[1], DT, 100, few[2], method=method, samples=lw.Samples(every=100)
            ).final_q
            error = float(np.abs(ended[:CHECKED] - wanted).max())
            seconds = timed(partial(finished, many, given), nothing)
            more = {"first call": compiled, "error": error}
            where = f"JAX on {jax.devices()[0].platform}"
            note(f"MJX {mujoco.__version__}", where, f"{method} float32", (count, 100), seconds, **more)
    finally:
        jax.config.update("jax_enable_x64", True)


def same_in_jax(mech: lw.Mechanism, note: Callable[..., None]) -> None:
    """The same equations as a JAX function, mapped over motions and looped over steps, compiled by XLA."""
    import jax

    jax.config.update("jax_enable_x64", True)
    dynamics = mech.program("forward_dynamics").to_jax()

    def motion(q: Any, v: Any, tau: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            q, v = state
            v = v + DT * dynamics(q, v, tau)
            return q + DT * v, v

        return jax.lax.fori_loop(0, 100, step, (q, v))[0]

    many = jax.jit(jax.vmap(motion))
    for precision in ("float32", "float64"):
        for count in (4096, 262144):
            given = [jax.device_put(x.astype(precision)) for x in start(mech, count)]
            began = time.perf_counter()
            many(*given).block_until_ready()
            compiled = time.perf_counter() - began
            seconds = timed(partial(finished, many, given), nothing)
            how = f"semi-implicit-euler {precision}"
            note("Linkwright's equations in JAX", "XLA", how, (count, 100), seconds, **{"first call": compiled})


def table(results: dict[str, Any]) -> list[str]:
    """Lines of Markdown for RESULTS.md: our largest and smallest sizes, and all of the others'."""
    lines = ["| 7-joint arm, rollouts | where | method | precision | motions × steps | steps a second | error |"]
    lines += ["| --- " * 7 + "|"]
    for r in results.get("runs", ()):
        size = (r["count"], r["steps"])
        shown = ((4096, 1000), (262144, 1000)) if r["where"] == "GPU" else ((262144, 100),)
        if r["where"].startswith("GPU") and size not in shown:
            continue
        error = f"{r['error']:.0e}" if "error" in r else ""
        cells = [r["who"], r["where"], r["method"], r["precision"], f"{size[0]:,} × {size[1]:,}", f"{r['rate']:.2e}"]
        lines.append(f"| {' | '.join([*cells, error])} |")
    return lines


def checked(results: dict[str, Any]) -> str:
    """A sentence on what was compared with the CPU."""
    runs = results["runs"]
    worst = {p: max(r["worst"] for r in runs if r["precision"] == p) for p in ("float64", "float32")}
    libraries = ", ".join(sorted({r["library"] for r in runs}))
    number = sum(r["functions"] for r in runs)
    failed = f"{len(results['failed'])} failed" if results["failed"] else "none failed"
    errors = " and ".join(f"{error:.0e} in {p}" for p, error in worst.items())
    return f"{number} answers of functions ({libraries}) compared with the CPU: {failed}; at most {errors}."
