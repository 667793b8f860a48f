"""Forces and initial conditions of a model file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwright.errors import LinkwrightError
from linkwright.formats.mks.attributes import Attributes
from linkwright.formats.mks.cam_segments import entries_of
from linkwright.formats.mks.curve_statements import CurveStatements
from linkwright.formats.mks.syntax import Applied, Dotted, Fault, Item, Node, Num, Statement, Vector, Word, either
from linkwright.model.builder_parts import Frame, Joint
from linkwright.model.expression import Call, Expression, Number
from linkwright.model.joint_kinds import KINDS
from linkwright.model.motion_laws import MOTION_LAWS
from linkwright.model.quantities import (
    COORDINATES,
    POSITIONS,
    RATES,
    VELOCITIES,
    Quantity,
    joint_index,
    rate_names,
    turns,
)
from linkwright.model.units import (
    ANGLE,
    DAMPING,
    FORCE,
    LENGTH,
    RATE,
    SPEED,
    STIFFNESS,
    TIME,
    TORQUE,
    TURN_DAMPING,
    Dimension,
)

HEADS = "spring damper friction stop actuator force torque"
_LABELS = {
    "spring": ("joint", "triad", "stiffness", "length", "rest", "damping"),
    "damper": ("joint", "triad", "damping"),
    "friction": ("joint", "friction", "speed"),
    "stop": ("joint", "triad", "lower", "upper", "stiffness", "damping"),
    "actuator": ("joint", "law", "effort limit"),
    "force": ("joint", "triad", "law", "force", "torque", "axes", "reaction"),
    "torque": ("joint", "triad", "law", "torque", "axes", "reaction"),
}
#: The builder's methods for forces on a joint and between two frames, each with the labels that it needs.
_ON_JOINT = {
    "spring": ("joint_spring", "stiffness"),
    "damper": ("joint_damper", "damping"),
    "friction": ("joint_friction", "friction"),
    "stop": ("stop", "stiffness"),
    "actuator": ("actuator", "law"),
    "force": ("joint_force", "law"),
    "torque": ("joint_force", "law"),
}
_BETWEEN = {
    "spring": ("spring", "stiffness", "length"),
    "damper": ("damper", "damping"),
    "stop": ("bumper", "stiffness"),
    "force": ("point_force", "law"),
}
#: The labels of a force's law and of the constants of one, in the order in which they are written.
LAW_CONSTANTS = ("stiffness", "rest", "length", "friction", "speed", "lower", "upper", "damping", "law", "effort limit")
#: What they are: of a force along a length, and of a torque about an angle.
_CONSTANT_DIMENSIONS = {
    "stiffness": (STIFFNESS, TORQUE),
    "rest": (LENGTH, ANGLE),
    "length": (LENGTH, LENGTH),
    "friction": (FORCE, TORQUE),
    "speed": (SPEED, RATE),
    "lower": (LENGTH, ANGLE),
    "upper": (LENGTH, ANGLE),
    "damping": (DAMPING, TURN_DAMPING),
    "law": (FORCE, TORQUE),
    "effort limit": (FORCE, TORQUE),
}
_ZERO = (0.0, 0.0, 0.0)
_POSITIVE = ("speed", "effort limit")
_NOT_NEGATIVE = ("stiffness", "damping", "friction", "length")


def allowed(key: str, value: float) -> bool:
    """Whether a number of a force, by its label, may have this value."""
    return value > 0.0 if key in _POSITIVE else value >= 0.0 or key not in _NOT_NEGATIVE


def _alike(part: Applied) -> list[Node]:
    """The arguments that are of one kind: angles beside angles."""
    function, arguments = part.function.text.lower(), list(part.arguments)
    if function in ("add", "sub", "lt", "le", "min", "max", "mod"):
        return arguments
    if function in ("step", *MOTION_LAWS) and len(arguments) == 5:
        return [arguments[k] for k in (0, 1, 3)]
    if function == "cam":
        return [*arguments[:2], *(entries_of(x)[0] for x in arguments[2:] if isinstance(x, Vector))]
    return []


def _terms(node: Node) -> list[Node]:
    """The terms of a sum; of anything else, itself."""
    if isinstance(node, Applied) and node.operation and node.function.text in ("add", "sub", "neg"):
        return [term for argument in node.arguments for term in _terms(argument)]
    return [node]


def force_dimension(head: str, key: str, angular: bool) -> Dimension:
    """The dimension of a number of a force or of its law, by its label; a stop's damping is of its stiffness."""
    if head == "stop" and key == "damping":
        return TIME if angular else TIME.times(LENGTH, -1)
    return _CONSTANT_DIMENSIONS[key][angular]


class Loads(CurveStatements):
    """Reads what acts on a mechanism, and how its motion begins."""

    # -- quantities ---------------------------------------------------------------------------------------
    def quantity(self, node: Node) -> Quantity:
        """What hinge.angle, hinge.rate, block.x, block.vx, distance(a, b) or distance_rate(a, b) mean."""
        if isinstance(node, Applied):
            return self._distance(node)
        assert isinstance(node, Dotted)
        part, joint = node.part.text.lower(), self.place_or_joint(node, POSITIONS + VELOCITIES)
        if isinstance(joint, Frame):
            if part not in POSITIONS + VELOCITIES:
                text = f"{joint.label!r} has {either([*POSITIONS, *VELOCITIES])}, not {node.part.text!r}"
                raise Fault(node.part, text)
            return self.b.component(joint.label, part)
        return Quantity("joint", (joint.name,), *self._index(joint, node.part))

    def _index(self, joint: Joint, part: Word) -> tuple[int, bool]:
        """The number of the coordinate or rate of a joint that a word means, and whether it is a rate."""
        for rate in (False, True):
            index = joint_index(joint.kind, part.text.lower(), int(rate))
            if index is not None:
                return index, rate
        names = [*COORDINATES.get(joint.kind, ()), *rate_names(joint.kind)]
        has = either(names) if names else "nothing that moves"
        raise Fault(part, f"joint {joint.name!r} is {joint.kind} and has {has}")

    def _distance(self, node: Applied) -> Quantity:
        what = node.function.text.lower()
        if len(node.arguments) != 2:
            raise Fault(node.function, f"{what} is between two frames, not {len(node.arguments)}")
        return Quantity("distance", self.two_places(*node.arguments, what), 0, what == "distance_rate")

    def _is_angle(self, quantity: Quantity) -> bool:
        """Whether a quantity or its rate is an angle."""
        if quantity.kind == "place":
            return quantity.rate and quantity.index >= 3
        joint = self.joints.find(quantity.of[0]) if quantity.kind == "joint" else None
        return isinstance(joint, Joint) and turns(joint.kind, quantity.index)

    def law(
        self, node: Node, dimension: Dimension | None, measure: Callable[[Node], Quantity] | None = None
    ) -> Expression:
        """An expression of TIME, parameters and quantities: all, or those that `measure` takes."""
        read = measure or self.quantity

        def measured(part: Node) -> tuple[Quantity, Dimension]:
            quantity = read(part)
            return quantity, self.dimension_of(quantity)

        expression = self.scope.value(node, dimension, time=True, measure=measured).expression
        if not self.scope.units.of(ANGLE).is_si:
            self._check_units(node)
        return expression

    def dimension_of(self, quantity: Quantity) -> Dimension:
        """Of a coordinate, a distance or a rate."""
        dimension = ANGLE if self._is_angle(quantity) else LENGTH
        return dimension.times(TIME, -1) if quantity.rate else dimension

    def read_coupling(self, s: Statement) -> None:
        name, equation = self.name(s), s.items[0]
        self.joints.claim(name)
        assert equation.label is not None
        sides = equation.label, equation.value
        for side in sides:
            if isinstance(side, Word) and self.joints.find(side.text) is not None:
                joint = self.joint_of(side)
                words = [f"{joint.name}.{part}" for part in COORDINATES.get(joint.kind, ())]
                raise Fault(side, f"{side.text!r} is a joint" + (f"; write {either(words)}" if words else ""))
        left: Expression
        right: Expression
        sign = Word(equation.start, equation.end, "sub")
        difference = Applied(equation.start, equation.end, sign, sides, 1, True)
        if isinstance(equation.label, Dotted):
            left = self._coordinate_of(equation.label)
            right = self.law(equation.value, self.dimension_of(left), self._coordinate_of)
            if not self.scope.units.of(ANGLE).is_si:
                self._check_units(difference)
        else:
            # Both sides have units, or none has: they are read as one, of the dimension of its first coordinate.
            first = next((x for x in _terms(difference) if isinstance(x, Dotted)), None)
            dimension = None if first is None else self.dimension_of(self._coordinate_of(first))
            whole = self.law(difference, dimension, self._coordinate_of)
            left, right = whole, Number(0.0)
            if isinstance(whole, Call) and whole.function == "sub":
                left, right = whole.arguments
        self.joints.put(name, self.b.coupling(name.text, left if right == Number(0.0) else (left, right)))

    def _coordinate_of(self, node: Node) -> Quantity:
        """The coordinate that a coupling names."""
        quantity = self.quantity(node)
        if quantity.kind != "joint" or quantity.rate:
            what = "a rate" if quantity.rate else f"a {quantity.kind}"
            text = f"this is {what}; couplings relate coordinates of joints, such as hinge.angle or slide.shift"
            raise Fault(node, text)
        return quantity

    def _check_units(self, node: Node) -> None:
        """Where plain angles are in degrees, refuse one beside a coordinate, which is in radians, without its unit."""
        left = [node]
        while left:
            part = left.pop()
            if not isinstance(part, Applied):
                continue
            left.extend(part.arguments)
            terms = [term for argument in _alike(part) for term in _terms(argument)]
            angles = [x for x in terms if isinstance(x, Dotted) and self._is_angle(self.quantity(x))]
            for other in terms if angles else ():
                plain = isinstance(other, Num) or (isinstance(other, Word) and other.text.lower() != "time")
                value = self.scope.value(other, None) if plain else None
                if value is not None and not value.angle and value.number != 0.0:
                    name = f"{angles[0].name.text}.{angles[0].part.text}"
                    text = f"{name} is in radians in a law, and this has no unit beside it; write it with deg or rad"
                    raise Fault(other, text)

    # -- forces -------------------------------------------------------------------------------------------
    def read_force(self, s: Statement) -> None:
        name, head = self.name(s), s.head.text.lower()
        self.drivers.put(name, True)
        a = self.attributes(s, head, _LABELS[head])
        joints, frames = a.count("joint"), a.count("triad")
        if joints and frames:
            raise Fault(a.need("triad"), f"{a.owner} acts on a joint or between frames; keep one of the two")
        if joints > 1:
            raise Fault(a.pair("joint")[1], f"{a.owner} acts on one joint; remove the second")
        if "triad" not in _LABELS[head] or joints:
            self._on_joint(a, head, name.text)
        elif frames == 1 and head in ("force", "torque"):
            self._at_place(a, name)
        elif not frames:
            one = " or at triad = ..." if head in ("force", "torque") else ""
            raise Fault(a.at, f"{a.owner} acts on nothing; give joint = ..., or triad = ... twice{one}")
        else:
            self._between(a, head, name)

    def _on_joint(self, a: Attributes, head: str, name: str) -> None:
        self._refuse(a, ("length", "force", "torque", "axes", "reaction"), "that acts on a joint")
        joint, index = self._coordinate(a.need("joint"))
        if head in ("spring", "stop") and not KINDS[joint.kind].paired:
            text = f"{a.owner} needs a coordinate; joint {joint.name!r} is {joint.kind} and has rates alone"
            raise Fault(a.need("joint").value, text)
        method, *needed = _ON_JOINT[head]
        constants = self._constants(a, head, needed, angular=turns(joint.kind, index))
        getattr(self.b, method)(joint, **constants, index=index, name=name)

    def _between(self, a: Attributes, head: str, name: Word) -> None:
        self._refuse(a, ("rest", "force", "torque", "axes", "reaction"), "between two frames")
        ends = a.pair("triad")
        first, second = self.two_places(ends[0].value, ends[1].value, a.owner, name.text)
        if head == "torque":
            raise Fault(a.at, f"{a.owner} is between two frames; give one frame, and reaction = ... for the other body")
        method, *needed = _BETWEEN[head]
        getattr(self.b, method)(first, second, **self._constants(a, head, needed, angular=False), name=name.text)

    def _at_place(self, a: Attributes, name: Word) -> None:
        self._refuse(a, ("law",), "at one frame")
        place = self.place_of(a.need("triad").value, "frame", owner=a.owner, name=name.text)
        if a.get("force") is None and a.get("torque") is None:
            raise Fault(a.at, f"{a.owner} has no size; give force = (x, y, z) or torque = (x, y, z)")
        vectors = [self._laws(a.get(key), dimension) for key, dimension in (("force", FORCE), ("torque", TORQUE))]
        axes, reaction = a.get("axes"), a.get("reaction")
        of: Any = "frame"
        if axes is not None:
            # The builder takes names that mean kinds of axes for these, and a frame for itself.
            plain = isinstance(axes.value, Word) and not axes.value.quoted and axes.value.text.lower() == "ground"
            frame = None if plain else self.place_of(axes.value, "frame")
            of = "ground" if frame is None else frame.body if frame.name is None else frame
        other = None
        if reaction is not None:
            back = self.place_of(reaction.value, "body or frame")
            if back.body == place.body:
                text = f"{a.owner} acts on {place.body.name!r}, and so does its reaction; name another body"
                raise Fault(reaction.value, text)
            other = back.label
        elif place.body == self.b.ground:
            text = f"{a.owner} acts on ground, which stays where it is; name a frame of a body that moves"
            raise Fault(a.need("triad").value, text)
        self.b.applied_wrench(place.label, *vectors, axes=of, reaction=other, name=name.text)

    def _refuse(self, a: Attributes, keys: tuple[str, ...], what: str) -> None:
        for key in keys:
            item = a.get(key)
            if item is not None and item.label is not None:
                raise Fault(item.label, f"{a.owner}, {what}, has no {key!r}; remove it")

    def _laws(self, item: Item | None, dimension: Dimension) -> Any:
        """Three numbers or laws; the third of a force in the plane is 0."""
        if item is None:
            return _ZERO
        node = item.value
        if not isinstance(node, Vector) or len(node) not in ((2, 3) if item.key == "force" else (3,)):
            raise Fault(node, f"expected {'2 or ' * (item.key == 'force')}3 numbers or laws in parentheses")
        laws = [self.law(entry, dimension) for entry in node.entries]
        return [*(laws or self.scope.vector(node, dimension, len(node))), 0.0][:3]

    def _coordinate(self, item: Item) -> tuple[Joint, int]:
        """The joint and the number of its coordinate that `joint = hinge` or `joint = hinge.angle` names."""
        node = item.value
        joint = self.joint_of(node.name if isinstance(node, Dotted) else node)
        nv = KINDS[joint.kind].nv
        if not isinstance(node, Dotted):
            if nv != 1:
                names = [f"{joint.name}.{n}" for n in COORDINATES.get(joint.kind) or RATES.get(joint.kind, ())]
                say = f"write joint = {either(names)}" if names else "it cannot move"
                raise Fault(node, f"joint {joint.name!r} is {joint.kind} and has {nv} coordinates; {say}")
            return joint, 0
        return joint, self._index(joint, node.part)[0]

    # -- numbers of forces ----------------------------------------------------------------------------------
    def _constants(self, a: Attributes, head: str, needed: list[str], *, angular: bool) -> dict[str, Expression]:
        """The numbers and the law that a force has, by the builder's names for them."""
        for key in needed:
            a.need(key)
        there = [(key, a.need(key).value) for key in LAW_CONSTANTS if key in a]
        constants = {}
        for key, node in there:
            dimension = force_dimension(head, key, angular)
            read = self.law(node, dimension) if key == "law" else self._constant(a.owner, key, node, dimension)
            constants[key.removeprefix("effort ")] = read
        return constants

    def _constant(self, owner: str, key: str, node: Node, dimension: Dimension) -> Expression:
        """A number of a force, by its label."""
        value = self.scope.value(node, dimension)
        if not allowed(key, self.scope.now(value, node)):
            wrong = "is not positive" if key in _POSITIVE else "is negative; give 0 or more"
            raise Fault(node, f"the {key} of {owner} {wrong}")
        return value.expression

    # -- how motion begins ----------------------------------------------------------------------------------
    def read_initial(self, s: Statement) -> None:
        for item in s.items:
            label = item.label
            if not isinstance(label, Dotted | Applied):
                text = "expected what begins with which value, such as: hinge.angle = 30 deg, hinge.rate = 2, "
                raise Fault(item, text + "block.x = 1, block.vx = 3 or distance(a, b) = 2")
            if isinstance(label, Applied) and label.function.text.lower() not in ("distance", "distance_rate"):
                raise Fault(label.function, f"{label.function.text!r} has no initial value; there is distance(a, b)")
            quantity = self.quantity(label)
            value = self.scope.value(item.value, self.dimension_of(quantity))
            self.scope.now(value, item.value)
            try:
                self.b.initial(quantity, value.expression)
            except LinkwrightError as error:
                raise Fault(label, str(error)) from None
