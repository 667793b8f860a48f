"""Linkwright: multibody dynamics for Python. Describe a mechanism once; get its dynamics at native speed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from linkwright.model import Mechanism
from linkwright.sources import chain, from_dh, load, load_program, random_tree, tree

__version__ = "0.1.0"

# Where the other public names live; their modules are imported when a name is first used.
_PUBLIC = {
    "Builder": "linkwright.building",
    "Event": "linkwright.simulation.events",
    "analyse": "linkwright.analysis",
    "control": "linkwright.control",
    "equations": "linkwright.symbolic.equations",
    "gpu": "linkwright.kernels.cuda_device",
    "export": "linkwright.exports.export",
    "optimise": "linkwright.design.optimise",
    "sensitivities": "linkwright.design.sensitivity",
    "rollout": "linkwright.simulation.rollout",
    "simulate": "linkwright.simulation.simulate",
    "record": "linkwright.tape.build",
    "Program": "linkwright.tape.program",
    "Table": "linkwright.tape.table",
    "where": "linkwright.tape.functions",
    "minimum": "linkwright.tape.functions",
    "maximum": "linkwright.tape.functions",
    "sign": "linkwright.tape.functions",
    "less": "linkwright.tape.functions",
    "less_equal": "linkwright.tape.functions",
    "equal": "linkwright.tape.functions",
    "greater": "linkwright.tape.functions",
    "greater_equal": "linkwright.tape.functions",
    "set_threads": "linkwright.kernels.kernel",
    "threads": "linkwright.kernels.kernel",
    "TIME": "linkwright.mechanism.expression",
    "errors": "linkwright.errors",
    "operation_counts": "linkwright.recursions.generic",
    "Solution": "linkwright.results.solution",
    "Status": "linkwright.results.status",
    "Counters": "linkwright.results.status",
    "open": "linkwright.results.storage",
    "Study": "linkwright.sweeps.study",
    "sweep": "linkwright.sweeps.launch",
    "choice": "linkwright.sweeps.distributions",
    "lognormal": "linkwright.sweeps.distributions",
    "loguniform": "linkwright.sweeps.distributions",
    "normal": "linkwright.sweeps.distributions",
    "triangular": "linkwright.sweeps.distributions",
    "uniform": "linkwright.sweeps.distributions",
}

__all__ = [
    "TIME",
    "Builder",
    "Counters",
    "Event",
    "Mechanism",
    "Program",
    "Solution",
    "Status",
    "Study",
    "Table",
    "__version__",
    "analyse",
    "chain",
    "choice",
    "control",
    "equal",
    "equations",
    "errors",
    "export",
    "from_dh",
    "gpu",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "load",
    "load_program",
    "lognormal",
    "loguniform",
    "maximum",
    "minimum",
    "normal",
    "open",
    "operation_counts",
    "optimise",
    "random_tree",
    "record",
    "rollout",
    "sensitivities",
    "set_threads",
    "sign",
    "simulate",
    "sweep",
    "threads",
    "tree",
    "triangular",
    "uniform",
    "where",
]

if TYPE_CHECKING:
    from linkwright import control, errors
    from linkwright.analysis import analyse
    from linkwright.building import Builder
    from linkwright.design.optimise import optimise
    from linkwright.design.sensitivity import sensitivities
    from linkwright.exports.export import export
    from linkwright.kernels.cuda_device import gpu
    from linkwright.kernels.kernel import set_threads, threads
    from linkwright.mechanism.expression import TIME
    from linkwright.recursions.generic import operation_counts
    from linkwright.results.solution import Solution
    from linkwright.results.status import Counters, Status
    from linkwright.results.storage import open
    from linkwright.simulation.events import Event
    from linkwright.simulation.rollout import rollout
    from linkwright.simulation.simulate import simulate
    from linkwright.sweeps.distributions import choice, lognormal, loguniform, normal, triangular, uniform
    from linkwright.sweeps.launch import sweep
    from linkwright.sweeps.study import Study
    from linkwright.symbolic.equations import equations
    from linkwright.tape.build import record
    from linkwright.tape.functions import equal, greater, greater_equal, less, less_equal, maximum, minimum, sign, where
    from linkwright.tape.program import Program
    from linkwright.tape.table import Table


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'linkwright' has no attribute {name!r}")
    module = import_module(_PUBLIC[name])
    value = module if name in ("control", "errors") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
