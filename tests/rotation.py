"""The seed by which a test takes a part of a large family: another one every run, printed, and repeatable.

`LINKWRIGHT_TEST_SEED=17 make test` repeats the cases of a run that printed 17 at its end.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Case = TypeVar("Case")

# The workers of a run inherit the variable, so that all collect the same cases.
SEED = int(os.environ.setdefault("LINKWRIGHT_TEST_SEED", str(secrets.randbelow(10**6))))


def some(cases: Sequence[Case], count: int) -> list[Case]:
    """`count` of the cases by this run's seed, in their order."""
    chosen = np.random.default_rng(SEED).choice(len(cases), min(count, len(cases)), replace=False)
    return [cases[i] for i in sorted(chosen.tolist())]
