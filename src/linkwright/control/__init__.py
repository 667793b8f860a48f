"""Control of mechanisms: controllers, sampled loops, identification and design, as `lw.control`."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

# Where each name lives; its module is imported when the name is first used.
_NAMES = {
    # controllers, and what they are made of
    "Controller": "controller",
    "Corrected": "controller",
    "Measured": "controller",
    "ModelState": "posture",
    "computed_torque": "computed_torque",
    "friction": "friction",
    "pid": "pid",
    "resolved_acceleration": "resolved",
    # the sampled loop
    "Loop": "sampled",
    "SampledRun": "sampled_run",
    "Accelerometer": "sensors",
    "Encoder": "sensors",
    "LowPass": "sensors",
    "Delay": "actuators",
    "Saturation": "actuators",
    "Slew": "actuators",
    # references
    "Accelerations": "references",
    "Curve": "references",
    "Hold": "references",
    "MinimumJerk": "references",
    "Pose": "poses",
    "Sine": "references",
    "Sweep": "references",
    "up_and_down": "references",
    # acceleration feedback, and what is measured on responses
    "AccelerationFeedback": "acceleration",
    "Washout": "acceleration",
    "crossing_time": "responses",
    "move": "responses",
    "path_error": "responses",
    "t50": "responses",
    "vibration": "responses",
    # identification
    "Model": "models",
    "Orders": "prediction",
    "Record": "records",
    "Spectrum": "spectra",
    "bode": "bode",
    "chirp": "sequences",
    "empirical": "spectra",
    "identify": "identify",
    "m_sequence": "sequences",
    "multiplicative_error": "spectra",
    "multisine": "sequences",
    "spectrum": "spectra",
    # H∞ design
    "Compensator": "compensator",
    "Design": "hinfinity",
    "System": "systems",
    "delay": "systems",
    "discretise": "discrete",
    "error_weight": "weights",
    "hankel_singular_values": "reduction",
    "hinf": "hinfinity",
    "hinf_norm": "norms",
    "magnitude_from_above": "weights",
    "margins": "margins",
    "mixed_sensitivity": "mixed_sensitivity",
    "performance_weight": "weights",
    "reduce": "reduction",
    "two_dof": "two_dof",
    # acceleration feedback, and what is measured on responses
    "Move": "responses",
    # identification and design by turns
    "Weighting": "repeated",
    "repeated_design": "repeated",
}

__all__ = [
    "AccelerationFeedback",
    "Accelerations",
    "Accelerometer",
    "Compensator",
    "Controller",
    "Corrected",
    "Curve",
    "Delay",
    "Design",
    "Encoder",
    "Hold",
    "Loop",
    "LowPass",
    "Measured",
    "MinimumJerk",
    "Model",
    "ModelState",
    "Move",
    "Orders",
    "Pose",
    "Record",
    "SampledRun",
    "Saturation",
    "Sine",
    "Slew",
    "Spectrum",
    "Sweep",
    "System",
    "Washout",
    "Weighting",
    "bode",
    "chirp",
    "computed_torque",
    "crossing_time",
    "delay",
    "discretise",
    "empirical",
    "error_weight",
    "friction",
    "hankel_singular_values",
    "hinf",
    "hinf_norm",
    "identify",
    "m_sequence",
    "magnitude_from_above",
    "margins",
    "mixed_sensitivity",
    "move",
    "multiplicative_error",
    "multisine",
    "path_error",
    "performance_weight",
    "pid",
    "reduce",
    "repeated_design",
    "resolved_acceleration",
    "spectrum",
    "t50",
    "two_dof",
    "up_and_down",
    "vibration",
]

if TYPE_CHECKING:
    from linkwright.control.acceleration import AccelerationFeedback, Washout
    from linkwright.control.actuators import Delay, Saturation, Slew
    from linkwright.control.bode import bode
    from linkwright.control.compensator import Compensator
    from linkwright.control.computed_torque import computed_torque
    from linkwright.control.controller import Controller, Corrected, Measured
    from linkwright.control.discrete import discretise
    from linkwright.control.friction import friction
    from linkwright.control.hinfinity import Design, hinf
    from linkwright.control.identify import identify
    from linkwright.control.margins import margins
    from linkwright.control.mixed_sensitivity import mixed_sensitivity
    from linkwright.control.models import Model
    from linkwright.control.norms import hinf_norm
    from linkwright.control.pid import pid
    from linkwright.control.poses import Pose
    from linkwright.control.posture import ModelState
    from linkwright.control.prediction import Orders
    from linkwright.control.records import Record
    from linkwright.control.reduction import hankel_singular_values, reduce
    from linkwright.control.references import Accelerations, Curve, Hold, MinimumJerk, Sine, Sweep, up_and_down
    from linkwright.control.repeated import Weighting, repeated_design
    from linkwright.control.resolved import resolved_acceleration
    from linkwright.control.responses import Move, crossing_time, move, path_error, t50, vibration
    from linkwright.control.sampled import Loop
    from linkwright.control.sampled_run import SampledRun
    from linkwright.control.sensors import Accelerometer, Encoder, LowPass
    from linkwright.control.sequences import chirp, m_sequence, multisine
    from linkwright.control.spectra import Spectrum, empirical, multiplicative_error, spectrum
    from linkwright.control.systems import System, delay
    from linkwright.control.two_dof import two_dof
    from linkwright.control.weights import error_weight, magnitude_from_above, performance_weight


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'linkwright.control' has no attribute {name!r}")
    value = getattr(import_module(f"linkwright.control.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """A package in which a function is not hidden by the module of its name, once that is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _NAMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
