"""The bodies, joints, sites and equalities of an MJCF model put into a Builder."""

from __future__ import annotations

from collections.abc import Mapping

from linkwright.formats.mjcf.actuators import Actuator
from linkwright.formats.mjcf.bodies import WORLD, Bodies, Site, claimed
from linkwright.formats.mjcf.chains import Chains
from linkwright.formats.mjcf.equalities import Equalities, follow
from linkwright.formats.mjcf.inertias import Weight
from linkwright.formats.mjcf.settings import Settings
from linkwright.formats.mjcf.tendons import Tendon
from linkwright.model.builder import Builder


def add_bodies(b: Builder, chains: Chains, weighed: list[Weight]) -> None:
    """A body for each link."""
    for link in chains.links:
        if link.body is None:
            b.body(link.name)
        else:
            weight = weighed[link.body]
            b.body(link.name, weight.mass, weight.com, 0.5 * (weight.inertia + weight.inertia.T))


def add_joints(
    b: Builder, chains: Chains, driving: list[Actuator], tendons: Mapping[str, Tendon], settings: Settings
) -> None:
    """A joint for each link; with no actuator in the model at all, every joint but a free one may have one."""
    pulled = {joint.name for one in driving if one.tendon in tendons for joint, _ in tendons[one.tendon].joints}
    taken = {link.joint.name for link in chains.links if link.joint is not None}
    losses = "damper" not in settings.disabled, "frictionloss" not in settings.disabled
    for link in chains.links:
        parent = WORLD if link.parent < 0 else chains.links[link.parent].name
        i, j = b.frame(parent, link.i.r, link.i.p), b.frame(link.name, link.j.r, link.j.p)
        joint = link.joint
        if joint is None:
            b.joint("fixed", i, j, claimed(f"{link.name} (fixed)", taken))
            continue
        damping = joint.node.numbers("damping", 1, 3)
        # A damping that is more than one number is a law of its own, made elsewhere.
        plain = float(damping[0]) if damping is not None and not damping[1:].any() else 0.0
        b.joint(
            joint.kind,
            i,
            j,
            joint.name,
            armature=joint.armature,
            lower=joint.lower,
            upper=joint.upper,
            effort=joint.effort,
            damping=plain if losses[0] else 0.0,
            friction=joint.friction if losses[1] else 0.0,
            actuated=joint.actuated or joint.name in pulled if driving else None,
        )


def add_sites(b: Builder, bodies: Bodies, taken: set[str]) -> dict[Site, str]:
    """A frame for each site, under its name unless a body has that; what they are called."""
    names: dict[Site, str] = {}
    for site in bodies.sites:
        name = site.name if site.name not in taken else f"{site.name} (site)"
        names[site] = claimed(name, taken)
        owner = WORLD if site.body < 0 else bodies.rows[site.body].name
        b.frame(owner, site.pose.r, site.pose.p, names[site])
    return names


def add_equalities(b: Builder, bodies: Bodies, holding: Equalities) -> dict[str, float]:
    """Loop joints and followers; joints that stand still are given back with where."""
    taken = {*bodies.joints, *(f"{body.name} (fixed)" for body in bodies.rows)}
    for one in holding.closures:
        first, second = (WORLD if k < 0 else bodies.rows[k].name for k in (one.first, one.second))
        i, j = b.frame(first, one.on_first.r, one.on_first.p), b.frame(second, one.on_second.r, one.on_second.p)
        b.joint(one.kind, i, j, claimed(one.name, taken), cut=True, actuated=False)
    moving, still = follow(holding.couplings)
    for coupling in moving:
        if coupling.leader is not None:
            b.mimic(coupling.follower.name, coupling.leader.name, coupling.ratio, coupling.offset)
    return still
