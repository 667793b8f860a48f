"""Every mechanism function on a GPU, for CuPy, PyTorch and JAX in both precisions, checked against the CPU."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from device_tools import in_a_row, lw, panda, reason, say

STATES = 1000
LIBRARIES = ("cupy", "torch", "jax")
BOUNDS = {"float64": 1e-11, "float32": 2e-4}  # differences to the CPU over the largest number
SHAKEN = 20.0  # or so many times what the inputs' last bits change
ALL = {
    "forward_dynamics": "qvt",
    "inverse_dynamics": "qvt",
    "mass_matrix": "q",
    "bias_forces": "qv",
    "gravity_forces": "q",
    "reactions": "qvt",
    "forward_dynamics_derivatives": "qvt",
    "inverse_dynamics_derivatives": "qvt",
    "kinetic_energy": "qv",
    "potential_energy": "q",
    "center_of_mass": "q",
    "momentum": "qv",
    "integrate": "qv",
}
FRAMES = {"pose": "q", "jacobian": "q", "twist": "qv"}
METHODS = ("mass-matrix", "triangular", "diagonal", "virtual-work", "assembly")


def questions(mech: lw.Mechanism) -> dict[str, tuple[Callable[..., Any], str]]:
    """What is asked, and of which arrays."""
    if mech.closed:
        names = ("forward_dynamics", "constraint_forces", "mass_matrix")
        return {n: (getattr(mech, n), "q" if n == "mass_matrix" else "qvt") for n in names}
    found = {name: (getattr(mech, name), given) for name, given in ALL.items()}
    last = mech.bodies[-1].name
    for name, given in FRAMES.items():
        found[name] = (lambda *x, name=name: getattr(mech, name)(*x, last)), given
    if mech.nq == mech.nv:
        for method in METHODS:
            found[method] = (lambda *x, method=method: mech.forward_dynamics(*x, method=method)), "qvt"
    return found


def states(mech: lw.Mechanism, rng: np.random.Generator) -> dict[str, Any]:
    v, tau = rng.standard_normal((2, STATES, mech.nv))
    if mech.closed:
        q, v = mech.project(np.broadcast_to(mech.assemble(), (STATES, mech.nq)), v)
    else:
        q = mech.integrate(np.broadcast_to(mech.neutral(), (STATES, mech.nq)), rng.standard_normal(v.shape))
    return {"q": np.asarray(q), "v": np.asarray(v), "t": tau}


def carrier(name: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any], type]:
    """How a library's arrays are put on the device and fetched from it, and their type."""
    module = importlib.import_module(name)
    if name == "cupy":
        return module.asarray, lambda x: x.get(), module.ndarray
    if name == "torch":
        return lambda x: module.as_tensor(x, device="cuda"), lambda x: x.cpu().numpy(), module.Tensor
    module.config.update("jax_enable_x64", True)
    return lambda x: module.device_put(x, module.devices("gpu")[0]), np.asarray, module.Array


def difference(found: Any, wanted: Any) -> float:
    worst = 0.0
    for x, y in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
        if x.shape != y.shape:
            raise ValueError(f"shape {x.shape} for {y.shape}")
        if not np.isfinite(x).all():
            return float("inf")
        worst = max(worst, float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-12)))
    return worst


def several_of(answer: Any) -> tuple[Any, ...]:
    return answer if isinstance(answer, tuple) else (answer,)


def shaken(question: Callable[..., Any], exact: list[Any], wanted: tuple[Any, ...], precision: str) -> float:
    """How far an answer moves when its inputs do by their last bits: nobody can compute it better than that."""
    bit, rng = float(np.finfo(precision).eps) / 2.0, np.random.default_rng(0)
    moved = [x * (1.0 + rng.uniform(-bit, bit, x.shape)) for x in exact]
    return difference(several_of(question(*moved)), wanted)


def functions(options: argparse.Namespace) -> dict[str, Any]:
    """Worst differences to the CPU, for each mechanism, precision and library."""
    from closed_mechanisms import four_bar

    found: dict[str, Any] = {"runs": [], "failed": []}
    carriers: dict[str, Any] = {}
    for name in LIBRARIES:
        try:
            carriers[name] = carrier(name)
        except Exception as error:
            found[name] = reason(error)
            say(f"{name}: not checked, {reason(error)}")
    rng = np.random.default_rng(3)
    mechanisms = {"panda": panda(options.panda), "tree": lw.random_tree(6, 1), "four-bar": four_bar()}
    for called, mech in mechanisms.items():
        given = states(mech, rng)
        for precision in ("float64",) if mech.closed else tuple(BOUNDS):
            rounded = {k: x.astype(precision) for k, x in given.items()}
            for name, (put, get, kind) in carriers.items():
                on_it = {k: put(x) for k, x in rounded.items()}
                worst, which = 0.0, ""
                for asked, (question, letters) in questions(mech).items():
                    try:
                        exact = [rounded[k].astype(np.float64) for k in letters]
                        wanted = several_of(question(*exact))
                        got = question(*(on_it[k] for k in letters))
                        several = several_of(got)
                        if not all(isinstance(x, kind) for x in several):
                            raise TypeError(f"gave {type(several[0]).__name__}")
                        if precision not in str(several[0].dtype):
                            raise TypeError(f"gave {several[0].dtype}")
                        error = difference(tuple(get(x) for x in several), wanted)
                        allowed = max(BOUNDS[precision], SHAKEN * shaken(question, exact, wanted, precision))
                        if not error <= allowed:
                            raise ArithmeticError(f"off by {error:.1e}, allowed {allowed:.1e}")
                    except Exception as problem:
                        found["failed"].append(f"{called} {precision} {name} {asked}: {reason(problem)}")
                        say(f"FAILED {found['failed'][-1]}")
                        continue
                    if error > worst:
                        worst, which = error, asked
                run = {"mechanism": called, "precision": precision, "library": name, "worst": worst, "in": which}
                found["runs"].append({**run, "functions": len(questions(mech))})
                say(f"{called} {precision} {name}: {len(questions(mech))} functions, worst {worst:.1e} ({which})")
    for extra in (torch_streams, torch_gradients, no_copies):
        try:
            found[extra.__name__] = extra(mechanisms["panda"])
        except Exception as error:
            found[extra.__name__] = reason(error)
        say(f"{extra.__name__}: {found[extra.__name__]}")
    return found


def torch_streams(mech: lw.Mechanism) -> str:
    """Results in a stream of PyTorch's own wait for what makes the inputs there."""
    import torch

    rng = np.random.default_rng(4)
    q, v, tau = rng.standard_normal((3, 4096, mech.nv))
    wanted = mech.forward_dynamics(q, v, tau)
    x = [torch.as_tensor(a, device="cuda") for a in (q, v, tau)]
    large = torch.randn(6000, 6000, device="cuda")
    torch.cuda.synchronize()
    worst, stream = 0.0, torch.cuda.Stream()
    for _ in range(5):
        with torch.cuda.stream(stream):
            y = [torch.full_like(a, float("nan")) for a in x]
            for _ in range(20):
                large = (large @ large) / 6000  # keeps the stream busy while the call is made
            for a, b in zip(y, x, strict=True):
                a.copy_(b)
            found = mech.forward_dynamics(*y) * 1.0
            for a in y:
                a.fill_(float("nan"))
        stream.synchronize()
        worst = max(worst, difference(found.cpu().numpy(), (wanted,)))
    return f"in order, off by {worst:.1e}" if worst < 1e-11 else f"OUT OF ORDER, off by {worst:.1e}"


def torch_gradients(mech: lw.Mechanism) -> dict[str, Any]:
    """Gradients on the device against those on the CPU, and how long they take."""
    import torch

    found: dict[str, Any] = {}
    rng = np.random.default_rng(5)
    for precision in ("float64", "float32"):
        host = [torch.tensor(a, requires_grad=True) for a in rng.standard_normal((3, 1000, mech.nv))]
        mech.forward_dynamics(*host).pow(2).sum().backward()
        x = [a.detach().to("cuda", getattr(torch, precision)).requires_grad_() for a in host]
        mech.forward_dynamics(*x).pow(2).sum().backward()
        pairs = [(a.grad.cpu().numpy(), b.grad.numpy()) for a, b in zip(x, host, strict=True)]
        found[precision] = max(difference(a, (b,)) for a, b in pairs)
        count = 1 << 20
        big = [torch.randn(count, mech.nv, device="cuda", dtype=x[0].dtype, requires_grad=True) for _ in range(3)]

        def both(big: Any = big) -> None:
            for a in big:
                a.grad = None
            mech.forward_dynamics(*big).sum().backward()

        with torch.cuda.stream(torch.cuda.default_stream()):
            found[f"{precision} states a second, forward and backward"] = count / in_a_row(both, 3)
    return found


def no_copies(mech: lw.Mechanism) -> str:
    """What a call takes of the device's memory besides its results."""
    import torch

    x = [torch.randn(1 << 20, mech.nv, device="cuda", dtype=torch.float64) for _ in range(3)]
    mech.forward_dynamics(*x)
    torch.cuda.synchronize()
    before = torch.cuda.mem_get_info()[0]
    torch.cuda.reset_peak_memory_stats()
    base = torch.cuda.memory_allocated()
    made = mech.forward_dynamics(*x)
    torch.cuda.synchronize()
    own = torch.cuda.max_memory_allocated() - base - made.numel() * 8
    return f"PyTorch {own} bytes, others {before - torch.cuda.mem_get_info()[0] - 0} bytes more than the result"
