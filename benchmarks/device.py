"""Linkwright on a GPU: every function in three libraries, rollouts beside MuJoCo's, calls, studies and batches beside
their bounds, and chains in O(log N).

    python benchmarks/device.py --out out/device [--parts functions rollouts ...] [--minutes 8] [--most 22]
    python benchmarks/device.py --out out/device --draw [--write]    draws the picture anew from the numbers kept there

Results are checked against the CPU kernels before they are timed. Times are medians between CUDA events, from arrays
on the device to arrays on the device, after a warm-up: of calls in a row for batches, of single calls for chains, which
then hold the way from Python to the device. A part that cannot run is named with the reason.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from device_functions import functions
from device_rollouts import checked, rollouts, table
from device_speed import calls, limits, studies
from device_tools import in_a_row, lw, native, on_cpu, on_device, panda, panda_mjcf, reason, relative, say
from table import replace_section

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "device.png"

COUNTS = tuple(1 << k for k in (14, 17, 20, 22, 24))
CHECKED = 4096  # states compared with the CPU
BOUNDS = {"float64": 4e9, "float32": 1.5e10}  # states a second
ONE_THREAD_UP_TO = 1 << 18  # links that one GPU thread goes through where there is no CPU kernel
LATENCY_UP_TO, BANDWIDTH_FROM = 1 << 14, 1 << 19  # where the two regimes are fitted


# -- batches -----------------------------------------------------------------------------------------------
def batches(options: argparse.Namespace) -> dict[str, Any]:
    """States a second of forward dynamics in both precisions."""
    import cupy as cp

    mech = panda(options.panda)
    found: dict[str, Any] = {"model": options.panda or "table in this script", "runs": []}
    rng = np.random.default_rng(0)
    states = rng.standard_normal((3, max(COUNTS), mech.nv))
    for precision, bound in BOUNDS.items():
        given = [cp.asarray(x.astype(precision)) for x in states]
        first = [x[:CHECKED].astype(precision).astype(np.float64) for x in states]
        error = relative(mech.forward_dynamics(*(x[:CHECKED] for x in given)).get(), mech.forward_dynamics(*first))
        for count in COUNTS:
            arrays, out = [x[:count] for x in given], cp.empty((count, mech.nv), precision)
            seconds = in_a_row(lambda arrays=arrays, out=out: mech.forward_dynamics(*arrays, out=out))
            run = {"precision": precision, "count": count, "seconds": seconds, "rate": count / seconds, "error": error}
            found["runs"].append(run)
            say(f"panda {precision} {count:>9,} states: {count / seconds:.2e} states/s, error {error:.1e}")
        best = max(r["rate"] for r in found["runs"] if r["precision"] == precision)
        say(f"panda {precision}: best {best:.2e} states/s, wanted {bound:.1e}: {'met' if best >= bound else 'NOT MET'}")
    try:
        found["mjx"] = mjx(states, mech)
    except Exception as error:
        found["mjx"] = reason(error)
        say(f"MJX is not beside it: {reason(error)}")
    return found


def mjx(states: Any, mech: lw.Mechanism) -> list[dict[str, Any]]:
    """MJX's `forward` on the same arm, states and device, in its own float32."""
    import jax
    import mujoco
    from mujoco import mjx

    model = mjx.put_model(mujoco.MjModel.from_xml_string(panda_mjcf()))
    blank = mjx.make_data(model)

    def forward(q: Any, v: Any, tau: Any) -> Any:
        return mjx.forward(model, blank.replace(qpos=q, qvel=v, qfrc_applied=tau)).qacc

    many, found = jax.jit(jax.vmap(forward)), []
    for count in COUNTS[:-2]:
        given = [jax.device_put(x[:count].astype(np.float32)) for x in states]
        error = relative(np.asarray(many(*given))[:CHECKED], mech.forward_dynamics(*(x[:CHECKED] for x in states)))
        times = []
        for _ in range(10):
            start = time.perf_counter()
            many(*given).block_until_ready()
            times.append(time.perf_counter() - start)
        seconds = float(np.median(times))
        found.append({"count": count, "seconds": seconds, "rate": count / seconds, "error": error})
        where = jax.devices()[0].platform
        say(f"MJX ({where}) float32 {count:>9,} states: {count / seconds:.2e} states/s, error {error:.1e}")
    return found


# -- chains ------------------------------------------------------------------------------------------------
def chains(options: argparse.Namespace) -> dict[str, Any]:
    """One forward dynamics of long chains, q, v, tau on the device to a on the device, beside the serial method."""
    import cupy as cp

    found: dict[str, Any] = {"method": options.method, "runs": []}
    if not native():
        say("no llvmlite here, so no serial CPU time; the serial result to compare with is one GPU thread's")
    for k in range(options.least, options.most + 1):
        try:
            found["runs"].append(chain(1 << k, options))
        except Exception as error:
            say(f"chain of 2^{k}: {reason(error)}")
            found["runs"].append({"links": 1 << k, "failed": reason(error)})
        cp.get_default_memory_pool().free_all_blocks()
    good = [r for r in found["runs"] if "device" in r]
    if good:
        found["regimes"] = regimes(good)
        say(f"regimes: {found['regimes']}")
    return found


def chain(n: int, options: argparse.Namespace) -> dict[str, Any]:
    import cupy as cp

    from linkwright.kernels.cuda.device_kernel import ItemKernel

    mech = lw.chain(n)
    rng = np.random.default_rng(0)
    q, v, tau = 0.1 * rng.standard_normal((3, n))
    run: dict[str, Any] = {"links": n}
    start = time.perf_counter()
    program = mech.program("forward_dynamics", method=options.method, form="rolled")
    run["recorded"] = time.perf_counter() - start
    given, out = [cp.asarray(x) for x in (q, v, tau)], cp.empty(n)
    kernel = ItemKernel(program)
    start = time.perf_counter()
    kernel(*given, out=out)
    cp.cuda.get_current_stream().synchronize()
    run["first"] = time.perf_counter() - start
    run["device"] = on_device(lambda: kernel(*given, out=out))
    run["in_a_row"] = in_a_row(lambda: kernel(*given, out=out), 20)
    (made,) = kernel._kernel._kernels.values()
    run["launches"] = len(made.text.launches)
    run["bytes"] = int(cp.get_default_memory_pool().used_bytes())
    if native():
        wanted = np.empty(n)
        run["serial"] = on_cpu(lambda: mech.forward_dynamics(q, v, tau, out=wanted))
        run["error"] = relative(out.get(), wanted)
        run["ratio"] = run["serial"] / run["device"]
    elif n <= ONE_THREAD_UP_TO:
        serial = ItemKernel(mech.program("forward_dynamics", method="articulated-body", form="rolled"))
        run["error"] = relative(out.get(), serial(*given).get())
    told = ", ".join(f"{key} {value:.4g}" for key, value in run.items() if key not in ("links", "bytes"))
    say(f"chain of 2^{n.bit_length() - 1}: {told}, {run['bytes'] / n:.0f} bytes a link")
    return run


def on_threads(options: argparse.Namespace) -> dict[str, Any]:
    """The assembly on more and more CPU threads beside the serial method, seconds a call."""
    from linkwright.kernels.variant import set_threads

    n, cores = 1_000_000, os.cpu_count() or 1
    mech = lw.chain(n)
    q, v, tau = 0.1 * np.random.default_rng(0).standard_normal((3, n))
    found: dict[str, Any] = {"links": n, "serial": on_cpu(lambda: mech.forward_dynamics(q, v, tau))}
    for count in [1 << k for k in range(cores.bit_length()) if 1 << k <= cores]:
        set_threads(count)
        found[str(count)] = on_cpu(lambda: mech.forward_dynamics(q, v, tau, method="assembly"))
        say(f"{count} threads: {1e9 * found[str(count)] / n:.0f} ns a link; serial {1e9 * found['serial'] / n:.0f}")
    set_threads(None)
    return found


def regimes(runs: list[dict[str, Any]]) -> dict[str, float]:
    """Fits: a + b·log2 N seconds where launches take the time, c·N where memory does, and where these cross."""
    found: dict[str, float] = {}
    short = [(np.log2(r["links"]), r["device"]) for r in runs if r["links"] <= LATENCY_UP_TO]
    long = [r["device"] / r["links"] for r in runs if r["links"] >= BANDWIDTH_FROM]
    if len(short) >= 2:
        slope, base = np.polyfit(*np.array(short).T, 1)
        found |= {"latency": float(base), "latency_a_level": float(slope)}
    if long:
        found["seconds_a_link"] = float(np.median(long))
    if len(found) == 3:
        sizes = 2.0 ** np.linspace(5, 26, 2000)
        flat = found["latency"] + found["latency_a_level"] * np.log2(sizes)
        found["crossing"] = float(sizes[np.argmax(found["seconds_a_link"] * sizes >= flat)])
    return found


def draw(results: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    runs = [r for r in results.get("chains", {}).get("runs", ()) if "device" in r]
    if not runs:
        say("no picture: no chain was timed")
        return
    fit = results["chains"].get("regimes", {})
    n = np.array([r["links"] for r in runs], float)
    figure, axes = plt.subplots(figsize=(7.5, 5.0))
    label = f"{results['chains']['method']}, {results['device']}"
    axes.loglog(n, [r["device"] for r in runs], "o-", color="C0", label=label)
    serial = [(r["links"], r["serial"]) for r in runs if "serial" in r]
    if serial:
        axes.loglog(*np.array(serial).T, "s--", color="C3", label="articulated-body, one CPU core")
    if "latency" in fit:
        flat = fit["latency"] + fit["latency_a_level"] * np.log2(n)
        axes.loglog(n, flat, ":", color="C2", label="a + b log₂ N (launches)")
    if "seconds_a_link" in fit:
        axes.loglog(n, fit["seconds_a_link"] * n, ":", color="C1", label="c N (memory)")
    if "crossing" in fit:
        axes.axvspan(n.min(), fit["crossing"], color="C2", alpha=0.08, lw=0)
        axes.axvspan(fit["crossing"], n.max(), color="C1", alpha=0.08, lw=0)
        for end, text in ((n.min(), "O(log N): latency"), (n.max(), "bandwidth")):
            place = (np.sqrt(end * fit["crossing"]), 1.01)
            axes.annotate(text, place, xycoords=axes.get_xaxis_transform(), ha="center", va="bottom")
    axes.set_ylim(bottom=0.3 * min(min(r["device"], r.get("serial", np.inf)) for r in runs))
    axes.set_xlabel("links N")
    axes.set_ylabel("seconds a forward dynamics")
    axes.grid(True, which="both", alpha=0.2)
    axes.legend(loc="upper left")
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    say(f"picture: {path}")


def write(results: dict[str, Any]) -> None:
    """The tables of RESULTS.md, those of the parts that were run."""
    versions = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
    head = f"{results['date']}, {results['device']}, {versions}; one run."
    if "runs" in results.get("rollouts", {}):
        told = [checked(results["functions"])] if "runs" in results.get("functions", {}) else []
        replace_section("rollouts", "\n\n".join([head, *told, "\n".join(table(results["rollouts"]))]))
    if "runs" not in results.get("batches", {}) or "runs" not in results.get("chains", {}):
        return
    batches, chains = results["batches"], [r for r in results["chains"]["runs"] if "device" in r]
    lines = [head, ""]
    lines += ["| Panda, forward dynamics | states a call | states a second | error |", "| --- | --- | --- | --- |"]
    rows = [(f"Linkwright, {r['precision']}", r) for r in batches["runs"]]
    rows += [("MJX, float32", r) for r in batches["mjx"]] if isinstance(batches["mjx"], list) else []
    lines += [f"| {name} | {r['count']:,} | {r['rate']:.2e} | {r['error']:.0e} |" for name, r in rows]
    names = ["chain", "levels as launches", "H200", "calls in a row", "one CPU core there", "ratio", "difference"]
    lines += ["", f"| {' | '.join(names)} |", "| --- " * len(names) + "|"]
    for r in chains:
        times = [f"{1e3 * r[k]:.3f} ms" for k in ("device", "in_a_row", "serial")]
        cells = [f"2^{r['links'].bit_length() - 1}", str(r["launches"]), *times]
        lines.append(f"| {' | '.join(cells)} | {r['ratio']:.1f} | {r['error']:.0e} |")
    replace_section("device", "\n".join(lines))


PARTS = {
    "functions": functions,
    "calls": calls,
    "studies": studies,
    "limits": limits,
    "rollouts": rollouts,
    "batches": batches,
    "chains": chains,
    "threads": on_threads,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/device"), help="where the results go")
    parser.add_argument("--panda", help="a URDF of the arm, instead of the table in this script")
    parser.add_argument("--parts", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    parser.add_argument("--minutes", type=float, default=8.0, help="rollouts begin nothing after these")
    parser.add_argument("--method", default="assembly", help="of the chains")
    parser.add_argument("--least", type=int, default=10, help="the shortest chain has 2^LEAST links")
    parser.add_argument("--most", type=int, default=22, help="the longest chain has 2^MOST links")
    parser.add_argument("--draw", action="store_true", help="only draw the picture from the numbers in OUT")
    parser.add_argument("--write", action="store_true", help="with --draw: renew RESULTS.md and its picture too")
    options = parser.parse_args()
    kept = options.out / "device.json"
    options.until = time.perf_counter() + 60.0 * options.minutes
    if options.draw:
        results = json.loads(kept.read_text(encoding="utf-8"))
        draw(results, PICTURE if options.write else options.out / "device.png")
        if options.write:
            write(results)
        return 0
    try:
        import cupy as cp

        name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    except Exception as error:
        say(f"no GPU to measure on: {reason(error)}")
        return 0
    results: dict[str, Any] = {
        "date": str(date.today()),
        "device": name,
        "versions": {"linkwright": lw.__version__, "python": platform.python_version(), "cupy": cp.__version__},
        "native": native(),
    }
    say(f"{results['device']}, {results['versions']}, CPU kernels in {'LLVM' if native() else 'NumPy'}")
    for library in ("torch", "jax", "mujoco", "llvmlite"):
        try:
            results["versions"][library] = str(importlib.import_module(library).__version__)
        except Exception as error:
            say(f"{library} is not here: {reason(error)}")
    options.out.mkdir(parents=True, exist_ok=True)
    for part in options.parts:
        began = time.perf_counter()
        try:
            results[part] = PARTS[part](options)
        except Exception as error:
            results[part] = {"failed": reason(error)}
            say(f"{part}: {reason(error)}")
        say(f"-- {part}: {time.perf_counter() - began:.0f} s")
        kept.write_text(json.dumps(results, indent=1), encoding="utf-8")
    say(f"numbers: {kept}")
    if results.get("rollouts", {}).get("runs"):
        say("\n".join(table(results["rollouts"])))
    failed = [*results.get("functions", {}).get("failed", ()), *results.get("rollouts", {}).get("failed", ())]
    say(f"failed: {failed or 'nothing'}")
    try:
        draw(results, options.out / "device.png")
    except ImportError as error:
        say(f"no picture ({error}); draw it where Matplotlib is, with --draw")
    return 0


if __name__ == "__main__":
    sys.exit(main())
