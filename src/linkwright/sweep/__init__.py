"""Parameter studies: many cases of one mechanism, on this machine's cores or on a cluster, as one dataset.

The room is called as its function: `lw.sweep(model, {"length": [0.1, 0.2], "mass": lw.normal(1, 0.1)})`.
"""

from __future__ import annotations

import sys
from inspect import Signature
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linkwright.sweep.study import Study


class _Room(ModuleType):
    """A package that is called: importing a part of it must not hide the function of the same name."""

    def __call__(self, *arguments: Any, **options: Any) -> Study:
        from linkwright.sweep.launch import sweep

        return sweep(*arguments, **options)

    @property
    def __signature__(self) -> Signature:
        from inspect import signature

        from linkwright.sweep.launch import sweep

        return signature(sweep)


sys.modules[__name__].__class__ = _Room
