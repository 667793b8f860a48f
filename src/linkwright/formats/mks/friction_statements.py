"""Friction that follows reactions, in a model file: FRICTION statements with a coefficient."""

from __future__ import annotations

from linkwright.errors import ModelError
from linkwright.formats.mks.bushing_statements import BushingLoads
from linkwright.formats.mks.syntax import Fault, Statement
from linkwright.model.model_checks import FRICTION_LABELS
from linkwright.model.quantities import turns
from linkwright.model.units import LENGTH, NUMBER, RATE, SPEED, Dimension


def number_dimension(label: str, kind: str) -> Dimension:
    """The dimension of a number of friction in a joint of this kind, by its label."""
    if label == "speed":
        return RATE if turns(kind, 0) else SPEED
    return NUMBER if label == "coefficient" else LENGTH


class FrictionLoads(BushingLoads):
    """Reads what acts on a mechanism, friction that follows reactions too."""

    def read_force(self, s: Statement) -> None:
        follows = s.head.text.lower() == "friction" and any(entry.key == "coefficient" for entry in s.items)
        if not follows:
            super().read_force(s)
            return
        name = self.name(s)
        self.drivers.put(name, True)
        a = self.attributes(s, "friction", ("joint", *FRICTION_LABELS, "friction"))
        if a.count("joint") > 1:
            raise Fault(a.pair("joint")[1], f"{a.owner} acts on one joint; remove the second")
        plain = a.get("friction")
        if plain is not None:
            text = f"{a.owner} has a coefficient, and its size follows the reaction; remove 'friction', or put it into "
            raise Fault(plain, text + "a FRICTION of its own")
        joint = self.joint_of(a.need("joint").value)
        numbers = {}
        for label in FRICTION_LABELS:
            if label in a:
                node = a.need(label).value
                number = self.scope.value(node, number_dimension(label, joint.kind))
                now = self.scope.now(number, node)
                if now < 0.0 or (now == 0.0 and label == "speed"):
                    wrong = "is not positive" if label == "speed" else "is negative; give 0 or more"
                    raise Fault(node, f"the {label} of {a.owner} {wrong}")
                numbers[label.replace(" ", "_")] = number.expression
        try:
            self.b.reaction_friction(joint, **numbers, name=name.text)
        except ModelError as error:
            raise Fault(a.at, str(error)) from None
