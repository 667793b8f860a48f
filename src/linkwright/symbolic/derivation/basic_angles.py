"""The basic angles of a mechanism: sums along parallel axes, of which every joint's angle is a whole combination."""

from __future__ import annotations

from fractions import Fraction

from linkwright.symbolic.derivation.links import Link
from linkwright.symbolic.formulas.exact import ONE, Matrix
from linkwright.symbolic.formulas.fixed_angles import common_part
from linkwright.symbolic.formulas.formula import Symbol, number
from linkwright.symbolic.formulas.ring import Angle, Turn


class Basis:
    """Basic angles: sums along parallel axes where `sums` says so, and of which each turn is a whole combination."""

    def __init__(self, coordinates: list[Symbol], links: list[Link], sums: bool) -> None:
        self.angles: list[Angle] = []
        self.turns: dict[int, Turn] = {}
        users: dict[int, list[int]] = {}
        for k, link in enumerate(links):
            if link.turns:
                users.setdefault(link.coordinate, []).append(k)
        total: dict[int, int] = {}  # elementary link → the basic angle that is the sum up to it
        for k, link in enumerate(links):
            if not link.turns:
                continue
            q = coordinates[link.coordinate]
            if len(users[link.coordinate]) > 1 or abs(link.ratio) != 1:
                self._shared(users[link.coordinate], links, q)
                continue
            side = _parallel(link.rotations) if sums and link.axis == 2 and link.parent in total else 0
            up = total.get(link.parent, -1)
            sign = int(link.ratio)
            if side and links[link.parent].axis == 2:
                # φ = φ of the parent ± θ
                angle = dict(self.angles[up])
                angle[q] = angle.get(q, Fraction(0)) + side * sign
                self.angles.append(tuple(angle.items()))
                basic = len(self.angles) - 1
                self.turns[k] = Turn(((basic, side), (up, -side)))
            else:
                self.angles.append(((q, Fraction(1)),))
                basic = len(self.angles) - 1
                self.turns[k] = Turn(((basic, sign),))
            if side or sign == 1:
                total[k] = basic

    def _shared(self, users: list[int], links: list[Link], q: Symbol) -> None:
        """Turns by multiples of one coordinate: of their common part, if the multiples stay small."""
        if users[0] in self.turns:
            return
        ratios = [links[k].ratio for k in users]
        base = common_part(ratios)
        if base is not None:
            self.angles.append(((q, base),))
            for k in users:
                self.turns[k] = Turn(((len(self.angles) - 1, int(links[k].ratio / base)),))
            return
        position: dict[Fraction, int] = {}
        for k in users:
            size = abs(links[k].ratio)
            if size not in position:
                self.angles.append(((q, size),))
                position[size] = len(self.angles) - 1
            self.turns[k] = Turn(((position[size], 1 if links[k].ratio > 0 else -1),))


def _parallel(rotations: tuple[Matrix, ...]) -> int:
    """1 or −1 where a product of rotations keeps or turns over the z axis for certain, 0 where it does not."""
    sign = 1
    for r in rotations:
        if r[2][2] == ONE:
            continue
        if r[2][2] == number(-1):
            sign = -sign
            continue
        return 0
    return sign
