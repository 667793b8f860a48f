"""Gear trains: a joint that follows a follower, as a joint that follows the first leader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from warnings import warn

import numpy as np

from linkwright.base.text import first_few
from linkwright.errors import LinkwrightWarning, ModelError
from linkwright.mechanism.bound import Array
from linkwright.mechanism.elements import Mimic

Gear = tuple[Mimic, Array]  # and its ratio and offset, numbers or expressions


def circle(followed: dict[int, int], follower: int, leader: int) -> list[int]:
    """The joints in the circle that a further gear would close, from the follower to itself; empty if there is none."""
    passed = [follower, leader]
    while passed[-1] != follower:
        if passed[-1] not in followed:
            return []
        passed.append(followed[passed[-1]])
    return passed


def to_first_leaders(gears: Sequence[Gear], joints: Sequence[str]) -> list[Gear]:
    """Gears between followers and their first leaders: q = r₂(r₁ q₁ + o₁) + o₂.

    The motion is the same, and so is what the gears of a train exert together on each joint. The force of a gear in the
    middle has no share of what those after it pass on, which a warning says.
    """
    leaders: dict[int, Gear] = {}
    followed: dict[int, int] = {}
    for m, numbers in gears:
        passed = circle(followed, m.follower, m.leader) if m.follower != m.leader else []
        if passed:
            name, way = joints[m.follower], " → ".join(joints[j] for j in passed)
            raise ModelError(f"joints follow each other in a circle, {way}; remove one of their gears", element=name)
        leaders.setdefault(m.follower, (m, numbers))
        followed.setdefault(m.follower, m.leader)
    trains: list[Gear] = []
    words: list[str] = []
    for m, numbers in gears:
        leader, (ratio, offset) = m.leader, numbers
        while leader in leaders and leader != m.follower:
            above, (r, o) = leaders[leader]
            leader, ratio, offset = above.leader, ratio * r, ratio * o + offset
        if leader != m.leader:
            words.append(f"{joints[m.follower]!r} of {joints[m.leader]!r} as of {joints[leader]!r}")
            numbers = np.array([ratio, offset], dtype=np.asarray(numbers).dtype)
        trains.append((replace(m, leader=leader), numbers))
    if words:
        text = f"gears of followers are taken as gears of the first leader: {first_few(words, 3)}"
        warn(f"{text}; the force of a gear between them leaves out what it passes on", LinkwrightWarning, stacklevel=4)
    return trains
