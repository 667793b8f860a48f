"""Redundant loops that rounded numbers leave open: the nearest mechanism that closes, and where motion is unsure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.base.checks import outside
from linkwright.constraints.nearest_mechanism import Poses, closing_mechanism
from linkwright.dynamics.closed.allowed_motions import constraint_jacobian
from linkwright.dynamics.programs import Maker
from linkwright.errors import LinkwrightWarning
from linkwright.model.bodies import body_states
from linkwright.model.description import Description
from linkwright.model.lengths import coordinate_units
from linkwright.spatial.rotation import euler_parameters_matrix

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

#: At an angle θ from a singular position, a gap ε lets rates err by about ε/θ². Motion is unsure where θ² is below so
#: many times the gap.
UNSURE = 30.0
#: The arrays of joint frames.
FRAMES = ("ri", "pi", "rj", "pj")


UNCERTAIN = "the motion is the nearest to all constraints, and uncertain near singular positions; give more digits"


@dataclass(frozen=True, eq=False)
class Closing:
    """The mechanism that is used in place of another, and what a person should know of that."""

    mechanism: Mechanism
    note: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        return (self.note,) if self.note else ()


def closing(mech: Mechanism) -> Closing:
    """The mechanism itself where its loops close; else the nearest one whose loops do, if it is within rounding."""
    return _nearest(mech, mech.programs.gap) if mech.programs.gap else Closing(mech)


def with_free(mech: Mechanism, free: Collection[str]) -> Closing:
    """The same for programs that leave parameters free; a mechanism whose joint frames these set stays as it is."""
    closing = mech.auxiliary.closing
    bound = {name for (array, _), law in mech.description.bindings.items() if array in FRAMES for name in law.names()}
    if closing.mechanism is mech or bound.isdisjoint(free):
        return closing
    return Closing(mech, f"{_open(mech.programs.gap)}, and free parameters set joint frames: {UNCERTAIN}")


def warned(closing: Closing) -> Mechanism:
    """The mechanism that is used; where it has a note, a warning of it: for answers that have no status."""
    if closing.note:
        warn(f"{closing.mechanism.name!r}: {closing.note}", LinkwrightWarning, stacklevel=outside())
    return closing.mechanism


def _open(gap: float) -> str:
    return f"redundant loops are open by {gap:.1g} of the mechanism's size, by rounded numbers"


def _nearest(mech: Mechanism, gap: float) -> Closing:
    text = _open(gap)
    changed = _description(mech.description)
    if changed is not None:
        near = type(mech)(changed)
        if not near.programs.gap:
            moved = _moved(mech.description, changed)
            return Closing(
                near,
                f"{text}: joint frames were moved by at most {moved:.1g} (rad, or of that size) to close",
            )
    return Closing(mech, f"{text}: {UNCERTAIN}")


def _description(d: Description) -> Description | None:
    """The nearest description whose joints close their loops; the other constraints take no part."""
    maker = Maker(replace(d, mimics=(), ties=(), drivers=(), elements=(), initial=(), bindings={}))
    if not maker.closed or not maker.gap:
        return None
    rank = maker.redundancy.rank(range(sum(c.form.size for c in maker.closings)))
    rank += sum(6 - kind.nv for kind in maker.tree.kinds)
    drawn = body_states(maker.description, maker.drawn)
    turns = np.moveaxis(euler_parameters_matrix(drawn[:, 3:].T), -1, 0)
    bodies = Poses(turns, drawn[:, :3] / d.length_scale)
    near = closing_mechanism(maker.description, bodies, rank, maker.gap)
    return None if near is None else replace(d, ri=near.ri, pi=near.pi, rj=near.rj, pj=near.pj)


def _moved(d: Description, other: Description) -> float:
    shifts = [np.abs(getattr(d, name) - getattr(other, name)).max() / d.length_scale for name in ("pi", "pj")]
    turns = [np.abs(getattr(d, name) - getattr(other, name)).max() for name in ("ri", "rj")]
    return float(max(*shifts, *turns))


def unsure(mech: Mechanism, q: Floats, t: Floats) -> NDArray[np.bool_]:
    """(S,): at which states of a motion a gap of rounded numbers leaves open how it goes on.

    These are beside a singular position, or nearer to one than the step that leads on from there.
    """
    gap = mech.programs.gap if mech.closed else 0.0
    ranks = mech.programs.redundancy if gap else None
    rank = ranks.rank(range(sum(c.form.size for c in mech.programs.closings))) if ranks is not None else 0
    if ranks is None or not rank:
        return np.zeros(len(q), bool)
    g = mech.programs.without_units(constraint_jacobian(mech, q, t)[0])
    regular = float(_least(np.array([position.g for position in ranks.positions]), rank).max())
    angle = _least(np.where(np.isfinite(g), g, 0.0), rank) / regular
    step = np.max(np.abs(np.diff(q, axis=0)) / coordinate_units(mech.tree)[0], axis=1, initial=0.0)
    return np.asarray((angle**2 < UNSURE * gap) | (angle < np.append(step, 0.0)))


def _least(g: Floats, rank: int) -> Floats:
    """(S,): the last singular value that counts of G (S, m, nv)."""
    return np.asarray(np.linalg.svd(g, compute_uv=False)[:, rank - 1], dtype=np.float64)
