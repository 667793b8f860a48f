"""Bodies and frames of a model file: where they are drawn, how their axes are turned, and what they weigh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linkwright.base.arguments import free_name
from linkwright.base.arrays import Floats
from linkwright.errors import LinkwrightError
from linkwright.formats.mks.attributes import Attributes, Registry
from linkwright.formats.mks.colours import colour_of
from linkwright.formats.mks.parser import Parsed
from linkwright.formats.mks.syntax import Fault, Group, Item, Listed, Node, Problems, Statement, Word
from linkwright.formats.mks.values import Scope, now_of
from linkwright.model.builder import Builder
from linkwright.model.builder_parts import Body, Frame
from linkwright.model.description import GROUND_NAMES
from linkwright.model.elements import Array, is_bound
from linkwright.model.expression import Expression
from linkwright.model.model_checks import ROTATION_TOLERANCE, impossible_inertias, rotation_fault, rotation_faults
from linkwright.model.placements import are_parallel, axes_of, axis_frame
from linkwright.model.quantities import Numeric
from linkwright.model.units import INERTIA, LENGTH, MASS, Dimension

_FLIP = np.diag([1.0, -1.0, -1.0])
_QUARTERS = [
    np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    for c, s in ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))
]
_ALONG = ("revolute", "cylindrical", "screw", "planar", "prismatic")  # kinds whose h axes agree


def turn_as_drawn(kind: str, first: Floats, second: Floats) -> Floats | None:
    """The turn of the second frame's axes that makes a joint's axes agree; both are given in ground's axes.

    h axes drawn opposite are turned by π about f. The f axes of a translational joint are turned about h by that
    multiple of 90° that brings them nearest to each other. None: they agree as they are.
    """
    if kind not in _ALONG:
        return None
    turn: Floats | None = None
    if float(first[:, 2] @ second[:, 2]) < 0.0:
        turn = _FLIP
        second = second @ _FLIP
    if kind == "prismatic":
        angle = np.arctan2(float(first[:, 0] @ second[:, 1]), float(first[:, 0] @ second[:, 0]))
        quarters = round(float(angle) / (np.pi / 2)) % 4
        if quarters:
            turn = _QUARTERS[quarters] if turn is None else turn @ _QUARTERS[quarters]
    return turn


def turned(rotation: Array, turn: Floats) -> Array:
    """A rotation followed by a turn of whole quarters; numbers only change place and sign."""
    columns = []
    for k in range(3):
        source = int(np.flatnonzero(turn[:, k])[0])
        column = rotation[:, source]
        columns.append(column if turn[source, k] > 0.0 else -column)
    axes = np.stack(columns, axis=1)
    return axes if axes.dtype == object else axes + 0.0


POSE = ("origin", "pqr", "h", "f", "axes")
_SAME = 1e-9  # of the largest coordinate: by how much two descriptions of one point may differ


class Places:
    """Reads BODY and TRIAD."""

    def __init__(self, parsed: Parsed, problems: Problems, scope: Scope) -> None:
        self.parsed, self.problems, self.scope = parsed, problems, scope
        self.places: Registry[Frame] = Registry("body or frame", parsed.broken)
        self.bodies: Registry[Frame] = Registry("body", parsed.broken)
        self.drawn: dict[int, tuple[Floats, Floats]] = {-1: (np.eye(3), np.zeros(3))}
        self.body_colours: dict[int, str] = {}
        self.more_grounds: list[str] = []
        self.ground_inertia: tuple[float, Floats, Floats] | None = None
        self.where: dict[str, Node] = {}  # of the names that checks of the whole may complain about
        self.b = Builder()

    def each(self, heads: str, read: Callable[[Statement], None], spoils: tuple[Registry[Any], ...] = ()) -> None:
        """Every statement with one of these (last) words as its head; a fault ends one statement alone."""
        for statement in self.parsed.statements:
            if statement.head.text.lower().split()[-1] not in heads.split():
                continue
            self.problems.trail = statement.trail
            try:
                read(statement)
                continue
            except Fault as fault:
                self.problems.add_fault(fault)
            except LinkwrightError as error:
                self.problems.add(statement.name or statement.head, str(error))
            if statement.name is not None:
                for registry in spoils:
                    registry.spoil(statement.name.text)
        self.problems.trail = ""

    def name(self, statement: Statement) -> Word:
        assert statement.name is not None
        self.where.setdefault(statement.name.text, statement.name)
        return statement.name

    def attributes(self, s: Statement, what: str, labels: tuple[str, ...], flags: tuple[str, ...] = ()) -> Attributes:
        owner = f"{what} {s.name.text!r}" if s.name is not None else what
        return Attributes(owner, s.name or s.head, s.items, self.problems, labels, flags)

    # -- frames -------------------------------------------------------------------------------------------
    def pose(self, a: Attributes) -> tuple[Array, Array]:
        """The rotation and origin of the frame that origin, pqr, h, f and axes describe."""
        axes = a.one_of(("pqr", "axes")) if "pqr" in a or "axes" in a else None
        if axes is not None:
            for key in ("h", "f"):
                extra = a.get(key)
                if extra is not None and extra.label is not None:
                    raise Fault(extra.label, f"{a.owner} has {axes.key!r} already, which holds its axes; keep one")
        origin = a.get("origin")
        p: Array = np.zeros(3) if origin is None else self._array(self.scope.point(origin.value, LENGTH))
        if axes is not None and axes.key == "pqr":
            r, first = self._pqr(axes.value, a.owner)
            if origin is not None:
                self._check_same(p, first, origin.value, a.owner)
            p = first if origin is None else p
        elif axes is not None:
            r = self._literal(axes.value, a.owner)
        else:
            r = self._directions(a)
        return r, p

    def _vectors(self, node: Node, what: str, dimension: Dimension | None) -> list[list[Numeric]]:
        if not isinstance(node, Listed) or len(node.entries) != 3:
            raise Fault(node, f"expected {what} in brackets: [(..), (..), (..)]")
        return [self.scope.point(entry, dimension) for entry in node.entries]

    def _pqr(self, node: Node, owner: str) -> tuple[Array, Array]:
        p, q, r = self._vectors(node, "three points", LENGTH)
        h, f = (self.straight([0.0 if a == b else b - a for a, b in zip(p, x, strict=True)]) for x in (q, r))
        if are_parallel(self._now(h), self._now(f)):
            raise Fault(node, f"p, q and r of {owner} lie on one line or coincide; they must span a plane")
        return axes_of(h, f), self._array(p)

    def _literal(self, node: Node, owner: str) -> Array:
        columns = self._vectors(node, "three axes f, g, h", None)
        rotation = np.stack([self._array(c) for c in columns], axis=1)
        off, left = rotation_faults(np.array([self._now(list(rotation.reshape(-1)))]).reshape(1, 3, 3))
        if off[0] > ROTATION_TOLERANCE or left[0]:
            how = rotation_fault("are", off[0])
            raise Fault(node, f"the axes of {owner} {how}; they must be right-handed orthogonal unit vectors")
        return rotation

    def _directions(self, a: Attributes) -> Array:
        h, f = a.get("h"), a.get("f")
        if h is None and f is None:
            return np.eye(3)
        hh: list[Numeric] = [0.0, 0.0, 1.0] if h is None else self.straight(self.scope.point(h.value, None))
        if f is None and h is not None:
            if is_bound(hh):
                raise Fault(h.value, f"h of {a.owner} depends on a parameter; give f = (..) too")
            if not any(hh):
                raise Fault(h.value, f"h of {a.owner} is zero; give it a direction")
            return axis_frame(np.array(hh))
        assert f is not None
        ff = self.straight(self.scope.point(f.value, None))
        if are_parallel(self._now(hh), self._now(ff)):
            raise Fault(f.value, f"h and f of {a.owner} are parallel or zero; give two directions")
        return axes_of(hh, ff)

    def straight(self, v: list[Numeric]) -> list[Numeric]:
        """A direction that a parameter only makes longer or shorter, without the parameter.

        Axes that are constant are worth much: along a coordinate axis they stay, whatever a length becomes.
        """
        along = [k for k, x in enumerate(v) if isinstance(x, Expression) or x != 0.0]
        if len(along) != 1 or not isinstance(v[along[0]], Expression):
            return v
        value = self._now(v)[along[0]]
        return [float((value > 0.0) - (value < 0.0)) if k in along else 0.0 for k in range(3)]

    def _now(self, entries: list[Numeric]) -> list[float]:
        return now_of(entries, self.scope.values)

    def _array(self, entries: list[Any]) -> Array:
        return np.array(entries, dtype=object if is_bound(entries) else np.float64)

    def _check_same(self, p: Array, first: Array, node: Node, owner: str) -> None:
        a, b = self._now(list(p)), self._now(list(first))
        if any(abs(x - y) > _SAME * max(map(abs, (*a, *b))) for x, y in zip(a, b, strict=True)):
            text = f"the origin of {owner} is ({_listed(a)}), but its p is ({_listed(b)}); make them the same"
            raise Fault(node, text)

    # -- bodies -------------------------------------------------------------------------------------------
    def read_bodies(self) -> None:
        bodies = [s for s in self.parsed.statements if s.head.text.lower() == "body"]
        grounds = [s for s in bodies if any(_is_ground(item) for item in s.items)]
        taken = {s.name.text.lower() for s in self.parsed.statements if s.name is not None}
        # A first ground that is moved is a frame on ground like any other; ground itself needs a name then.
        first = grounds[0] if grounds and not self._is_moved(grounds[0]) else None
        spare = next(name for name in GROUND_NAMES if name not in taken)
        title = self.parsed.name.text if self.parsed.name is not None else "mechanism"
        self.b = Builder(title, ground=spare if first is None or first.name is None else first.name.text)
        self.ground = self.b.ground
        for parameter, value in self.scope.values.items():
            self.b.parameter(parameter, value)
        self.each("body", self._ground_or_body, (self.places, self.bodies))
        self._draw_at_ground()
        if not self.parsed.broken and not self.problems:
            at = self.parsed.name or Word(0, 1, "")
            if not bodies or len(bodies) == len(grounds):
                self.problems.add(at, "the model has no bodies that move; add BODY name (...);")
            elif not grounds:
                self.problems.add(at, "the model has no ground; add BODY name (ground);")

    def _draw_at_ground(self) -> None:
        """Bodies without a pose that a joint is drawn on have their frames on ground's."""
        for s in self.parsed.statements:
            for item in s.items if s.kind is not None else ():
                if item.key in ("body", "associated body") and isinstance(item.value, Word):
                    frame = self.bodies.find(item.value.text)
                    if frame is not None and frame.body.number not in self.drawn:
                        self.drawn[frame.body.number] = np.eye(3), np.zeros(3)
                        self.b.place(frame.body, exact=True)

    def _is_moved(self, s: Statement) -> bool:
        """Whether the frame of a ground body is not ground's own; what is wrong with it is reported later."""
        items = tuple(item for item in s.items if item.key in POSE)
        try:
            r, p = self.pose(Attributes("", s, items, Problems("", ""), POSE))
        except Fault:
            return False
        return is_bound(r) or is_bound(p) or not np.array_equal(r, np.eye(3)) or bool(np.any(p))

    def _ground_or_body(self, s: Statement) -> None:
        name = self.name(s)
        self.places.claim(name)
        place = (self._ground if any(_is_ground(item) for item in s.items) else self._body)(s, name)
        self.places.put(name, place)
        self.bodies.put(name, place)

    def _ground(self, s: Statement, name: Word) -> Frame:
        weights = ("mass", "com", "inertia") if name.text == self.ground.name else ()
        a = self.attributes(
            s, "ground body", (*POSE, "center of gravity", "colour", *weights), ("ground", "unphysical")
        )
        pose = self.pose(a)
        if name.text == self.ground.name:
            place = Frame(self.ground, np.eye(3), np.zeros(3), None)
            if any(key in a for key in weights):
                mass, com, inertia = self._weights(a, place.rotation, place.origin)
                if isinstance(mass, Expression) or is_bound([*com, *inertia]):
                    raise Fault(name, "mass, com and inertia of ground cannot depend on parameters; give numbers")
                self.ground_inertia = (float(mass), np.array(com, float), np.array(inertia, float))
        else:
            place = self._framed(name.text, self.ground, *pose)
            self.more_grounds.append(name.text)
        self._coloured(a, -1)
        return place

    def _coloured(self, a: Attributes, body: int) -> None:
        colour = a.get("colour")
        if colour is not None:
            self.body_colours[body] = colour_of(colour.value, self.scope)

    def _body(self, s: Statement, name: Word) -> Frame:
        a = self.attributes(
            s, "body", (*POSE, "center of gravity", "com", "mass", "inertia", "colour"), ("ground", "unphysical")
        )
        r, p = self.pose(a)
        drawn = any(key in a for key in POSE)
        centre = a.get("center of gravity")
        if centre is not None:
            if "com" in a:
                raise Fault(centre, f"{a.owner} has both a center of gravity and a com; keep one")
            if not drawn:
                p, drawn = self._array(self.scope.point(centre.value, LENGTH)), True
        mass, com, inertia = self._weights(a, r, p)
        unphysical = "unphysical" in a.flags and not is_bound(inertia)
        body = self.b.body(name.text, mass, com, inertia, unphysical=unphysical)
        if drawn:
            self.b.place(body, p, rotation=r, exact=True)
            values = self._now(list(r.reshape(-1))), self._now(list(p))
            self.drawn[body.number] = np.array(values[0]).reshape(3, 3), np.array(values[1])
        self._coloured(a, body.number)
        return Frame(body, np.eye(3), np.zeros(3), None)

    def _weights(self, a: Attributes, r: Array, p: Array) -> tuple[Numeric, Any, Any]:
        """Mass, centre of mass in the body's frame, and inertia."""
        mass: Numeric = 0.0
        weight, centre, com = a.get("mass"), a.get("center of gravity"), a.get("com")
        if weight is not None:
            mass = self.scope.numeric(weight.value, MASS)
            if self._now([mass])[0] < 0.0:
                raise Fault(weight.value, f"the mass of {a.owner} is negative; give 0 or more")
        at: Any = np.zeros(3)
        if com is not None:
            at = self.scope.point(com.value, LENGTH)
        elif centre is not None:
            drawn = self.scope.point(centre.value, LENGTH)
            apart = [0.0 if x == y else x - y for x, y in zip(drawn, p, strict=True)]
            at = r.T @ self._array(apart)
        inertia: list[Numeric] = [0.0] * 6
        tensor = a.get("inertia")
        if tensor is not None:
            inertia = self.scope.vector(tensor.value, INERTIA, 3, 6)
            inertia += [0.0] * (6 - len(inertia))
            if "unphysical" not in a.flags and impossible_inertias(np.array([self._now(inertia)]))[0]:
                text = f"no body can have the inertia of {a.owner}: xx, yy, zz (, xy, xz, yz) about the centre of "
                text += "gravity, where no moment exceeds the sum of the other two; correct it, or add: unphysical"
                raise Fault(tensor.value, text)
        return mass, at, inertia

    # -- frames -------------------------------------------------------------------------------------------
    def read_frame(self, s: Statement) -> None:
        name = self.name(s)
        self.places.claim(name)
        a = self.attributes(s, "triad", ("associated body", *POSE))
        self.places.put(name, self._on_body(a, name.text))

    def _on_body(self, a: Attributes, name: str | None) -> Frame:
        owner = self.body_of(a.need("associated body").value)
        r, p = self.pose(a)
        if owner.label in self.more_grounds:
            r, p = owner.rotation @ r, owner.origin + owner.rotation @ p
        return self._framed(name, owner.body, r, p)

    def _framed(self, name: str | None, body: Body, r: Array, p: Array) -> Frame:
        """A frame, its axes exactly as they are."""
        return Frame(body, r, p, None) if name is None else self.b.frame(body, r, p, name, exact=True)

    # -- references -----------------------------------------------------------------------------------------
    def body_of(self, node: Node) -> Frame:
        """The body that a value names."""
        if not isinstance(node, Word):
            raise Fault(node, "expected the name of a body")
        if node.text in self.places and node.text not in self.bodies:
            raise Fault(node, f"{node.text!r} is a frame, not a body; name its body")
        return self.bodies.get(node)

    def place_of(self, node: Node, what: str = "body or frame", *, owner: str = "", name: str = "") -> Frame:
        """The body or frame that a value names, or one without a name, which gets that of its owner."""
        if isinstance(node, Group) and name:
            a = Attributes(f"a frame of {owner}", node, node.items, self.problems, ("associated body", *POSE))
            word = Word(node.start, node.end, free_name(f"{name}_place", self.places))
            self.places.claim(word)
            place = self._on_body(a, word.text)
            self.places.put(word, place)
            return place
        if not isinstance(node, Word):
            raise Fault(node, f"expected the name of a {what}")
        return self.places.get(node, what)

    def side(self, item: Item, owner: str) -> Frame:
        """One side of a joint: a frame, a body, or a frame without a name."""
        if isinstance(item.value, Group):
            a = Attributes(f"a frame of {owner}", item, item.value.items, self.problems, ("associated body", *POSE))
            return self._on_body(a, None)
        return self.place_of(item.value, "frame")


def _is_ground(item: Item) -> bool:
    return item.label is None and isinstance(item.value, Word) and item.value.text.lower() == "ground"


def _listed(values: list[float]) -> str:
    return ", ".join(f"{x:g}" for x in values)
