"""Gear trains: joints that follow followers, and what that makes them of the first leader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def circle(followed: Mapping[T, T], follower: T, leader: T) -> list[T]:
    """The joints in the circle that a further gear would close, from the follower to itself; empty if there is none."""
    passed = [follower, leader]
    while passed[-1] != follower:
        if passed[-1] not in followed:
            return []
        passed.append(followed[passed[-1]])
    return passed


def of_first_leader(gears: Mapping[T, tuple[T, Any, Any]], joint: T) -> tuple[T, Any, Any]:
    """The first leader of a joint, and ratio and offset to it: q = r₂(r₁ q₁ + o₁) + o₂; itself without a gear.

    `gears` has the leader, ratio and offset of each follower; the numbers may be of any kind.
    """
    ratio, offset = 1, 0
    while joint in gears:
        joint, r, o = gears[joint]
        ratio, offset = ratio * r, ratio * o + offset
    return joint, ratio, offset
