"""Bushings of a model file: read, and the words of their numbers."""

from __future__ import annotations

from typing import Any

from linkwright.formats.mks.forces_and_initial import Loads
from linkwright.formats.mks.syntax import Fault, Node, Statement, Vector
from linkwright.formats.mks.values import now_of
from linkwright.model.units import DAMPING, FORCE, STIFFNESS, TORQUE, TURN_DAMPING, Dimension

#: The numbers of a bushing in the order of its laws: their labels, the Builder's names of them and their dimensions.
NUMBERS: dict[str, tuple[str, Dimension]] = {
    "stiffness": ("stiffness", STIFFNESS),
    "torsional stiffness": ("torsional_stiffness", TORQUE),
    "damping": ("damping", DAMPING),
    "torsional damping": ("torsional_damping", TURN_DAMPING),
    "preload": ("preload", FORCE),
    "preload torque": ("preload_torque", TORQUE),
}
_LOADS = ("preload", "preload torque")


class BushingLoads(Loads):
    """Reads what acts on a mechanism, bushings too."""

    def read_bushing(self, s: Statement) -> None:
        name = self.name(s)
        self.drivers.put(name, True)
        a = self.attributes(s, "bushing", ("triad", *NUMBERS))
        ends = a.pair("triad")
        first, second = self.two_places(ends[0].value, ends[1].value, a.owner, name.text)
        if "stiffness" not in a and "torsional stiffness" not in a:
            raise Fault(a.at, f"{a.owner} has no stiffness; add stiffness = ... (one number, or one for each axis)")
        numbers: dict[str, Any] = {"stiffness": 0.0}
        for label, (keyword, dimension) in NUMBERS.items():
            if label in a:
                numbers[keyword] = self._bushing_numbers(a.owner, label, a.need(label).value, dimension)
        self.b.bushing(first, second, **numbers, name=name.text)

    def _bushing_numbers(self, owner: str, label: str, node: Node, dimension: Dimension) -> Any:
        """Three numbers by their label, or one for all axes."""
        if isinstance(node, Vector):
            entries = self.scope.vector(node, dimension, 3)
        elif label in _LOADS:
            raise Fault(node, f"the {label} of {owner} has a direction; give 3 numbers in parentheses")
        else:
            single = self.scope.value(node, dimension)
            self.scope.now(single, node)
            entries = [single.expression] * 3
        if label not in _LOADS:
            for k, x in enumerate(now_of(entries, self.scope.values)):
                if x < 0.0:
                    at = node.entries[k] if isinstance(node, Vector) and node.entries else node
                    raise Fault(at, f"the {label} of {owner} is negative; give 0 or more")
        return entries
