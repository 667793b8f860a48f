"""The public names, each from the module that it lives in: for editors and mypy, and for `__init__.py` at run time."""

from linkwright import control as control
from linkwright import errors as errors
from linkwright.analysis import analyse as analyse
from linkwright.building import Builder as Builder
from linkwright.design.optimise import optimise as optimise
from linkwright.design.sensitivity import sensitivities as sensitivities
from linkwright.design.settings import Search as Search
from linkwright.exports.export import export as export
from linkwright.kernels.cuda.device_arrays import gpu as gpu
from linkwright.kernels.execution import set_threads as set_threads
from linkwright.kernels.execution import threads as threads
from linkwright.mechanism.expression import TIME as TIME
from linkwright.model import Mechanism as Mechanism
from linkwright.outputs.question import AnalysisSettings as AnalysisSettings
from linkwright.recursions.generic import operation_counts as operation_counts
from linkwright.results.solution import Solution as Solution
from linkwright.results.status import Counters as Counters
from linkwright.results.status import Status as Status
from linkwright.results.storage import open as open
from linkwright.simulation.events import Event as Event
from linkwright.simulation.rollout import rollout as rollout
from linkwright.simulation.simulate import simulate as simulate
from linkwright.sources import chain as chain
from linkwright.sources import from_dh as from_dh
from linkwright.sources import load as load
from linkwright.sources import load_program as load_program
from linkwright.sources import random_tree as random_tree
from linkwright.sources import tree as tree
from linkwright.sweeps.distributions import choice as choice
from linkwright.sweeps.distributions import lognormal as lognormal
from linkwright.sweeps.distributions import loguniform as loguniform
from linkwright.sweeps.distributions import normal as normal
from linkwright.sweeps.distributions import triangular as triangular
from linkwright.sweeps.distributions import uniform as uniform
from linkwright.sweeps.launch import sweep as sweep
from linkwright.sweeps.settings import Execution as Execution
from linkwright.sweeps.settings import Sampling as Sampling
from linkwright.sweeps.settings import StudyFolder as StudyFolder
from linkwright.sweeps.study import Study as Study
from linkwright.symbolic.equations import equations as equations
from linkwright.tape.build import record as record
from linkwright.tape.functions import equal as equal
from linkwright.tape.functions import greater as greater
from linkwright.tape.functions import greater_equal as greater_equal
from linkwright.tape.functions import less as less
from linkwright.tape.functions import less_equal as less_equal
from linkwright.tape.functions import maximum as maximum
from linkwright.tape.functions import minimum as minimum
from linkwright.tape.functions import sign as sign
from linkwright.tape.functions import where as where
from linkwright.tape.program import Program as Program
from linkwright.tape.table import Table as Table

__version__: str
__all__: list[str]
