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
    "SampledRun": "record",
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
}

__all__ = [
    "Accelerations",
    "Accelerometer",
    "Controller",
    "Corrected",
    "Curve",
    "Delay",
    "Encoder",
    "Hold",
    "Loop",
    "LowPass",
    "Measured",
    "MinimumJerk",
    "ModelState",
    "Pose",
    "SampledRun",
    "Saturation",
    "Sine",
    "Slew",
    "Sweep",
    "computed_torque",
    "friction",
    "pid",
    "resolved_acceleration",
    "up_and_down",
]

if TYPE_CHECKING:
    from linkwright.control.actuators import Delay, Saturation, Slew
    from linkwright.control.computed_torque import computed_torque
    from linkwright.control.controller import Controller, Corrected, Measured
    from linkwright.control.friction import friction
    from linkwright.control.pid import pid
    from linkwright.control.poses import Pose
    from linkwright.control.posture import ModelState
    from linkwright.control.record import SampledRun
    from linkwright.control.references import Accelerations, Curve, Hold, MinimumJerk, Sine, Sweep, up_and_down
    from linkwright.control.resolved import resolved_acceleration
    from linkwright.control.sampled import Loop
    from linkwright.control.sensors import Accelerometer, Encoder, LowPass


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
