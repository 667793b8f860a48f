"""Names, numbers, expressions, forces and initial conditions as the text of a `.mks` file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwright.errors import ModelError
from linkwright.formats.mks.bushing_statements import NUMBERS
from linkwright.formats.mks.forces_and_initial import LAW_CONSTANTS, allowed, force_dimension
from linkwright.formats.mks.friction_statements import number_dimension
from linkwright.formats.mks.syntax import MAX_DEPTH, MAX_NAME
from linkwright.formats.mks.values import CALLS, CONSTANTS, computed
from linkwright.formats.mks.written_units import Speech, number_text
from linkwright.model.builder_gears import PRESSURE
from linkwright.model.curve_contacts import number, own_parameter
from linkwright.model.curve_elements import Curve, PointOnCurve, U
from linkwright.model.description import Description
from linkwright.model.elements import (
    AppliedWrench,
    Bushing,
    Coupling,
    Element,
    GearPair,
    JointForce,
    PointForce,
    ReactionFriction,
)
from linkwright.model.expression import Call, Expression, Lookup, Name, Number, replaced
from linkwright.model.gear_pairs import BELTS
from linkwright.model.model_checks import FRICTION_LABELS
from linkwright.model.quantities import (
    COORDINATES,
    DD,
    POSITIONS,
    RATES,
    VELOCITIES,
    D,
    Q,
    Quantity,
    V,
    dimension_of,
    quantities,
    rate_names,
    recognised,
    turns,
)
from linkwright.model.units import FORCE, LENGTH, TORQUE, Dimension

_PLAIN_SPEECH = Speech()
_PLAIN = re.compile(r"[^\W\d]\w*(\[(0|-?[1-9][0-9]{0,8})(,(0|-?[1-9][0-9]{0,8}))*\])?")
_COMPARED, _SUM, _PRODUCT, _SIGNED, _ATOM = range(5)
#: operation → sign, its own level, the least level of its left and right operand
_INFIX = {
    "lt": ("<", _COMPARED, _SUM, _SUM),
    "le": ("<=", _COMPARED, _SUM, _SUM),
    "add": ("+", _SUM, _SUM, _PRODUCT),
    "sub": ("-", _SUM, _SUM, _PRODUCT),
    "mul": ("*", _PRODUCT, _PRODUCT, _SIGNED),
    "div": ("/", _PRODUCT, _PRODUCT, _SIGNED),
    "pow": ("^", _SIGNED, _ATOM, _SIGNED),
}
_WRITTEN = {inside: outside for outside, inside in CALLS.items()}  # of two names for one function the last


@dataclass(frozen=True)
class Spelled(Expression):
    """A leaf whose text is known: the name of a coordinate or a distance."""

    text: str


def name_text(name: str) -> str:
    """A name as it stands in a file: in quotes unless it is a plain word, perhaps with numbers: link[3]."""
    if _PLAIN.fullmatch(name) and len(name) <= MAX_NAME:
        return name
    if not name.strip() or len(name) > MAX_NAME or re.search(r'["\n\r]', name):
        raise ModelError(f"{name[:80]!r} cannot be a name in a .mks file; rename it", element=name)
    return f'"{name}"'


def expression_text(expression: Expression, speech: Speech = _PLAIN_SPEECH, dimension: Dimension | None = None) -> str:
    """An expression whose reading, where one of a dimension is expected, gives the same tree."""
    if isinstance(expression, Number):
        return speech.literal(expression) or speech.number(expression.value, dimension)
    try:
        return speech.whole(_text(expression, 0, speech)[0], dimension)
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> ModelError:
    text = f"an expression has more than {MAX_DEPTH} operations one inside the other; .mks files cannot hold that"
    return ModelError(text)


def _text(e: Expression, depth: int, speech: Speech) -> tuple[str, int]:
    """Text and level."""
    if depth > MAX_DEPTH:
        raise _too_deep()
    if isinstance(e, Number):
        united = speech.literal(e)
        if united is not None:
            return united, _SUM if united.startswith("-") else _PRODUCT
        if e.value == math.pi:
            return "pi", _ATOM
        return number_text(e.value), _SIGNED if math.copysign(1.0, e.value) < 0.0 else _ATOM
    if isinstance(e, Spelled):
        return e.text, _ATOM
    if isinstance(e, Name):
        reserved = e.name != "TIME" and e.name.lower() in (*CONSTANTS, "time")
        text = f'"{e.name}"' if reserved else name_text(e.name)
        return speech.guarded(text, speech.parameter_dimension(e.name)), _ATOM
    if isinstance(e, Lookup):
        return _table(e, depth, speech), _ATOM
    assert isinstance(e, Call)
    if speech.is_converted(e):
        return _text(e.arguments[0], depth, speech)
    if e.function == "neg":
        operand = e.arguments[0]
        # A sign before a literal would make it a literal below zero.
        level = _ATOM + 1 if isinstance(operand, Number) or _is_neg(operand) else _SIGNED
        return f"-{_within(operand, level, depth, speech)}", _SIGNED
    if e.function in _INFIX:
        sign, binding, left, right = _INFIX[e.function]
        a, b = (_within(x, level, depth, speech) for x, level in zip(e.arguments, (left, right), strict=True))
        return (f"{a}{sign}{b}" if sign in "*/^" else f"{a} {sign} {b}"), binding
    inner = ", ".join(_text(a, depth + 1, speech)[0] for a in e.arguments)
    return f"{_WRITTEN[e.function]}({inner})", _ATOM


def _is_neg(e: Expression) -> bool:
    return isinstance(e, Call) and e.function == "neg"


def _within(e: Expression, least: int, depth: int, speech: Speech) -> str:
    text, level = _text(e, depth + 1, speech)
    return text if level >= least else f"({text})"


def _table(e: Lookup, depth: int, speech: Speech) -> str:
    points = e.table.points()
    spline = type(e.table).spline(*zip(*points, strict=True))
    mine, theirs = np.array(spline.coefficients), np.array(e.table.coefficients)
    if mine.shape != theirs.shape or not np.allclose(mine, theirs, rtol=1e-12, atol=1e-12 * np.abs(theirs).max()):
        raise ModelError("a table is no natural spline through its points; .mks files cannot hold it")
    shown = ", ".join(f"({number_text(x)}, {number_text(y)})" for x, y in points)
    return f"table({_text(e.argument, depth + 1, speech)[0]}, {shown})"


def force_text(d: Description, force: Element, speech: Speech) -> tuple[str, list[str]]:
    """The head and the attributes of a force."""
    if isinstance(force, AppliedWrench):
        return _wrench(d, force, speech)
    if isinstance(force, Bushing):
        return _bushing(d, force, speech)
    if isinstance(force, ReactionFriction):
        return _friction(d, force, speech)
    if isinstance(force, JointForce):
        kind = d.kind_of(d.joint_names.position("joint", force.joint))
        names = COORDINATES.get(kind.name) or RATES.get(kind.name, ())
        where = name_text(force.joint) + (f".{_number(names[force.index], force.index)}" if kind.nv > 1 else "")
        coordinate = Quantity("joint", (force.joint,), force.index)
        pair = (Q, V)
        spelled: dict[Expression, Expression] = {pair[1]: _spelled(d, replace(coordinate, rate=True), speech)}
        if kind.paired:
            spelled[pair[0]] = _spelled(d, coordinate, speech)
        angular = turns(kind.name, force.index)
        head, at = "TORQUE" if angular else "FORCE", [f"joint = {where}"]
    else:
        pair = (D, DD)
        ends = (force.first, force.second)
        spelled = {
            x: _spelled(d, Quantity("distance", ends, 0, rate), speech)
            for x, rate in zip(pair, (False, True), strict=True)
        }
        angular = False
        head, at = "FORCE", [f"triad = {name_text(end)}" for end in ends]
    kind_of_force, constants = recognised(force.law, *pair, d.parameters) or ("", {})
    if isinstance(force, PointForce):
        kind_of_force = "" if kind_of_force in ("friction", "actuator") else kind_of_force
        if "rest" in constants:
            constants["length"] = constants.pop("rest")
    if not kind_of_force or not _can_be_said(d, constants):
        dimension = force_dimension("force", "law", angular)
        return head, [*at, f"law = {_law(d, force.law, spelled, speech, dimension)}"]
    parts = []
    for key in LAW_CONSTANTS:
        if key in constants:
            dimension = force_dimension(kind_of_force, key, angular)
            parts.append(f"{key} = {_law(d, constants[key], spelled, speech, dimension)}")
    return kind_of_force.upper(), [*at, *parts]


def coupling_text(d: Description, coupling: Coupling, speech: Speech) -> str:
    """The relation of a coupling."""
    left, right = coupling.left, coupling.right
    if speech.is_converted(left) and right == Number(0.0):  # read as one, the difference of both sides
        inner = left.arguments[0] if isinstance(left, Call) else left
        if isinstance(inner, Call) and inner.function == "sub":
            left, right = inner.arguments
    if isinstance(left, Quantity):
        return f"{quantity_text(d, left)} = {_law(d, right, {}, speech, dimension_of(d, left))}"
    return f"{_law(d, left, {}, speech, None)} = {_law(d, right, {}, speech, None)}"


def _can_be_said(d: Description, constants: Mapping[str, Expression]) -> bool:
    """Whether the reader takes these constants of an element, as they are now."""
    now = {key: computed(x.evaluate, d.parameters) for key, x in constants.items() if key != "law"}
    if any(x is None or not allowed(key, x) for key, x in now.items()):
        return False
    lower, upper = now.get("lower"), now.get("upper")
    return lower is None or upper is None or lower <= upper


def _wrench(d: Description, force: AppliedWrench, speech: Speech) -> tuple[str, list[str]]:
    parts = [f"triad = {name_text(force.frame)}"]
    halves = {"force": force.laws[:3], "torque": force.laws[3:]}
    heads = [key for key, laws in halves.items() if any(law != Number(0.0) for law in laws)] or ["force"]
    for key in heads:
        texts = (_law(d, law, {}, speech, FORCE if key == "force" else TORQUE) for law in halves[key])
        parts.append(f"{key} = ({', '.join(texts)})")
    if force.axes != "frame":
        # The word alone means ground's axes; in quotes it is the name of a frame.
        quoted = force.axes == "other" and force.axes_of.lower() == "ground"
        of = f'"{force.axes_of}"' if quoted else "ground" if force.axes == "ground" else name_text(force.axes_of)
        parts.append(f"axes = {of}")
    if force.reaction:
        parts.append(f"reaction = {name_text(force.reaction)}")
    return ("TORQUE" if heads == ["torque"] else "FORCE"), parts


def _bushing(d: Description, bushing: Bushing, speech: Speech) -> tuple[str, list[str]]:
    parts = [f"triad = {name_text(end)}" for end in bushing.places]
    for k, (label, (_, dimension)) in enumerate(NUMBERS.items()):
        laws = bushing.laws[3 * k : 3 * k + 3]
        if label == "stiffness" or any(law != Number(0.0) for law in laws):
            texts = [_law(d, law, {}, speech, dimension) for law in laws]
            alike = not label.startswith("preload") and len(set(texts)) == 1
            three = f"({', '.join(texts)})"
            parts.append(f"{label} = {texts[0] if alike else three}")
    return "BUSHING", parts


def _friction(d: Description, friction: ReactionFriction, speech: Speech) -> tuple[str, list[str]]:
    kind = d.kind_of(d.joint_names.position("joint", friction.joint)).name
    parts = [f"joint = {name_text(friction.joint)}"]
    for label, law in zip(FRICTION_LABELS, friction.laws, strict=True):
        if label == "coefficient" or law != Number(0.0):
            parts.append(f"{label} = {_law(d, law, {}, speech, number_dimension(label, kind))}")
    return "FRICTION", parts


def _law(
    d: Description,
    law: Expression,
    spelled: dict[Expression, Expression],
    speech: Speech,
    dimension: Dimension | None,
) -> str:
    more: dict[Expression, Expression] = {x: _spelled(d, x, speech) for x in quantities(law)}
    return expression_text(replaced(law, {**more, **spelled}), speech, dimension)


def _spelled(d: Description, x: Quantity, speech: Speech) -> Spelled:
    return Spelled(speech.guarded(quantity_text(d, x), dimension_of(d, x)))


def quantity_text(d: Description, x: Quantity) -> str:
    """How a quantity is written."""
    if x.kind == "distance":
        return f"distance{'_rate' if x.rate else ''}({', '.join(map(name_text, x.of))})"
    if x.kind == "place":
        return f"{name_text(x.of[0])}.{(VELOCITIES if x.rate else POSITIONS)[x.index]}"
    kind = d.kind_of(d.joint_names.position("joint", x.of[0])).name
    names = rate_names(kind) if x.rate else COORDINATES[kind]
    return f"{name_text(x.of[0])}.{_number(names[x.index], x.index, 'v' if x.rate else 'q')}"


def _number(part: str, index: int, letter: str = "") -> str:
    """The name of a coordinate, or its number where places have that name too and would go first."""
    if part not in POSITIONS + VELOCITIES:
        return part
    return f"{letter or ('v' if part in VELOCITIES else 'q')}{index}"


def gear_pair_parts(pair: GearPair, speech: Speech) -> list[str]:
    """The entries of a gear pair's statement, which has the drawn phase where the pair has none."""
    parts = [f"triad = {name_text(place)}" for place in pair.places]
    if pair.kind != "external":
        parts.append(f"kind = {pair.kind}")
    first, second = pair.teeth
    radii = [expression_text(pair.radius, speech, LENGTH)]
    if pair.toothed:
        parts += [f"teeth = {x}" for x in pair.teeth if x]
    elif pair.kind != "rack":
        lead = abs(math.tan(pair.helix_angle)) if pair.kind == "worm" else 1.0
        radii.append(speech.number(float(pair.radius.evaluate({})) * (lead * second / first), LENGTH))
    parts += [f"radius = {text}" for text in radii]
    if pair.pressure_angle != (PRESSURE if pair.toothed and pair.kind not in BELTS else 0.0):
        parts.append(f"pressure angle = {number_text(pair.pressure_angle)} rad")
    if pair.helix_angle:
        label = "lead angle" if pair.kind == "worm" else "helix angle"
        parts.append(f"{label} = {number_text(pair.helix_angle)} rad")
    if pair.phase is not None:
        parts.append(f"phase = {speech.number(pair.phase, LENGTH)}")
    return parts


def curve_parts(curve: Curve, speech: Speech) -> list[str]:
    """The entries of a curve's statement."""
    spelled: dict[Expression, Expression] = {U: Spelled("u")}
    parts = [f"triad = {name_text(curve.place)}"]
    if curve.kind in ("circle", "line"):
        return [*parts, f"{curve.kind} = {expression_text(curve.size or Number(0.0), speech, LENGTH)}"]
    if curve.kind == "points":
        points = ", ".join(f"({speech.number(x, LENGTH)}, {speech.number(y, LENGTH)})" for x, y in curve.points)
        parts.append(f"points = [{points}]")
    else:
        if any(name.lower() == "u" for name in (curve.x + curve.y).names()):
            text = f"curve {curve.name!r} depends on a parameter 'u', which is its own parameter in a .mks file"
            raise ModelError(f"{text}; rename it", element=curve.name)
        for key, e in (("x", curve.x), ("y", curve.y)):
            parts.append(f"{key} = {expression_text(replaced(e, spelled), speech, LENGTH)}")
        parts.append(f"range = ({expression_text(curve.lower, speech)}, {expression_text(curve.upper, speech)})")
    return [*parts, *(["closed"] if curve.closed else [])]


def start_parts(
    d: Description, points: Sequence[PointOnCurve], drawn: Mapping[str, float], speech: Speech
) -> list[str]:
    """The entry of the starts of one point on a curve, or of both of a contact, where they are not as drawn."""
    starts = [number(x.start) for x in points]
    if starts == [drawn[x.name] for x in points]:
        return []
    texts = []
    for x, start in zip(points, starts, strict=True):
        curve = next(c for c in d.curves if c.name == x.curve.name)
        at = own_parameter(curve, x.curve, start, d.parameters)
        dimension = LENGTH if curve.kind in ("line", "points") else None
        texts.append(f"{number_text(at)} rad" if curve.kind == "circle" else speech.number(at, dimension))
    return [f"start = {texts[0] if len(texts) == 1 else '(' + ', '.join(texts) + ')'}"]
