"""Coordinates moved along rates and compared: joint by joint, as the joint kinds say."""

from __future__ import annotations

from typing import Any

from linkwright.recursions.link import Link, State
from linkwright.recursions.traversal import Traversal
from linkwright.spatial.algebra import Array


def integrate(traversal: Traversal) -> Any:
    """The q reached from q by dv."""
    traversal.outward(_integrate, {})
    return traversal.joint_vector("moved", coordinates=True)


def _integrate(link: Link, state: State, up: State) -> dict[str, Array]:
    return {"moved": link.kind.integrate(link.q, link.dv)}


def difference(traversal: Traversal) -> Any:
    """The dv that takes q to q1."""
    traversal.outward(_difference, {})
    return traversal.joint_vector("way")


def _difference(link: Link, state: State, up: State) -> dict[str, Array]:
    return {"way": link.kind.difference(link.q, link.q1)}


def rate(traversal: Traversal) -> Any:
    """q̇ for q and v."""
    traversal.outward(_rate, {})
    return traversal.joint_vector("rate", coordinates=True)


def _rate(link: Link, state: State, up: State) -> dict[str, Array]:
    return {"rate": link.kind.rate(link.q, link.v)}
