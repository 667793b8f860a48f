"""Gear pairs of a model file: GEAR statements that name bodies or frames."""

from __future__ import annotations

from linkwright.formats.mks.attributes import Attributes
from linkwright.formats.mks.joints_and_drivers import Links
from linkwright.formats.mks.syntax import Fault, Item, Statement, either
from linkwright.formats.mks.values import words_of
from linkwright.model.elements import GearKind
from linkwright.model.units import ANGLE, LENGTH, NUMBER

KINDS: dict[str, GearKind] = {
    "external": "external",
    "spur": "external",
    "internal": "internal",
    "rack": "rack",
    "bevel": "bevel",
    "worm": "worm",
    "belt": "belt",
    "crossed belt": "crossed belt",
    "chain": "chain",
}
_LABELS = ("kind", "teeth", "module", "radius", "pressure angle", "helix angle", "lead angle", "phase")
_PLACES = ("associated body", "triad")
_TWICE = (*_PLACES, "teeth", "radius")


def is_gear_pair(s: Statement) -> bool:
    """Whether a GEAR is between bodies; else it couples joints."""
    return s.head.text.lower() == "gear" and not any(entry.key == "joint" for entry in s.items)


class GearPairs(Links):
    """Reads gear pairs."""

    def read_held(self, s: Statement) -> None:
        """A rod, a point constraint or a gear pair: couplings of joints, and points on curves, come later."""
        if s.head.text.lower() != "gear":
            self.read_point_constraint(s)
        elif is_gear_pair(s):
            self._read_gear_pair(s)

    def read_joint_gear(self, s: Statement) -> None:
        if not is_gear_pair(s):
            self.read_gear(s)

    def _read_gear_pair(self, s: Statement) -> None:
        name = self.name(s)
        self.gears.put(name, True)
        self.joints.claim(name)
        a = Attributes(f"gear {name.text!r}", name, s.items, self.problems, (*_PLACES, *_LABELS), twice=_TWICE)
        ends = sorted((entry for key in _PLACES for entry in a.all(key)), key=lambda entry: entry.start)
        if len(ends) != 2:
            text = f"{a.owner} needs two gears: body = ... twice (or triad = ...), or joint = ... twice for a coupling"
            raise Fault(name, text)
        first, second = self.two_places(ends[0].value, ends[1].value, a.owner, name.text)
        kind = self._kind(a.get("kind"))
        if kind != "worm" and "lead angle" in a:
            raise Fault(a.need("lead angle"), f"{a.owner} is no worm; give its helix angle")
        slanted = a.get("lead angle") or a.get("helix angle")
        pressure, phase, module = (a.get(key) for key in ("pressure angle", "phase", "module"))
        pair = self.b.gear_pair(
            first,
            second,
            kind,
            teeth=self._teeth(a),
            module=None if module is None else self.scope.numeric(module.value, LENGTH),
            radius=[self.scope.numeric(entry.value, LENGTH) for entry in a.all("radius")] or None,
            pressure_angle=None if pressure is None else self._angle(pressure),
            helix_angle=0.0 if slanted is None else self._angle(slanted),
            phase=None if phase is None else self.scope.constant(phase.value, LENGTH),
            name=name.text,
        )
        self.joints.put(name, pair)

    def _kind(self, entry: Item | None) -> GearKind:
        words = "external" if entry is None else words_of(entry.value)
        if words not in KINDS:
            assert entry is not None
            raise Fault(entry.value, f"the kind of a gear is {either(list(KINDS))}")
        return KINDS[words]

    def _angle(self, entry: Item) -> float:
        return self.scope.constant(entry.value, ANGLE)

    def _teeth(self, a: Attributes) -> list[int] | None:
        counts = []
        for entry in a.all("teeth"):
            count = self.scope.constant(entry.value, NUMBER)
            if count != count // 1:
                raise Fault(entry.value, f"{a.owner} has {count:g} teeth; give a whole number")
            counts.append(int(count))
        return counts or None
