"""Curves of a model file: CURVE, POINT ON CURVE and CURVE ON CURVE statements."""

from __future__ import annotations

from linkwright.formats.mks.attributes import Attributes
from linkwright.formats.mks.dimensions import Value
from linkwright.formats.mks.gear_statements import GearPairs
from linkwright.formats.mks.syntax import Fault, Item, Listed, Node, Num, Statement, Vector, Word
from linkwright.model.builder_parts import Frame
from linkwright.model.curve_elements import Curve, CurveOnCurve, PointOnCurve, U
from linkwright.model.expression import Expression
from linkwright.model.units import ANGLE, LENGTH, Dimension

_PLACES = ("triad", "associated body")
_SHAPES = ("x", "points", "circle", "line")
#: What u is of a curve that is given by these.
_PARAMETERS: dict[str, Dimension | None] = {"circle": ANGLE, "line": LENGTH, "points": LENGTH, "expressions": None}


class CurveStatements(GearPairs):
    """Reads curves and what stays on them."""

    def read_curve(self, s: Statement) -> None:
        if s.head.text.lower() != "curve":
            return
        name = self.name(s)
        self.curves.claim(name)
        labels = (*_PLACES, *_SHAPES, "y", "z", "range")
        a = Attributes(f"curve {name.text!r}", name, s.items, self.problems, labels, ("closed",), twice=())
        place = self.place_of(a.one_of(_PLACES).value, "frame", owner=a.owner, name=name.text).label
        if "z" in a:
            text = f"{a.owner} is not in a plane: x is along f of its frame and y along g; remove z, or turn the frame"
            raise Fault(a.need("z"), text)
        shape = a.one_of(_SHAPES)
        alien = [] if shape.key == "x" else [key for key in ("y", "range") if key in a]
        if alien:
            raise Fault(a.need(alien[0]), f"{a.owner} is given by its {shape.key} and has no {alien[0]!r}; remove it")
        closed = "closed" in a.flags
        if shape.key in ("circle", "line"):
            if closed:
                text = f"{a.owner} is a {shape.key}, which needs no word for that; remove it"
                raise Fault(a.flags["closed"], text)
            size = self.scope.numeric(shape.value, LENGTH)
            circle, line = (size, None) if shape.key == "circle" else (None, size)
            curve = self.b.curve(name.text, place, circle=circle, line=line)
        elif shape.key == "points":
            curve = self.b.curve(name.text, place, self._points(shape, a), closed=closed)
        else:
            curve = self._function(name, place, a, closed)
        self.curves.put(name, curve)

    def _points(self, entry: Item, a: Attributes) -> list[list[float]]:
        if not isinstance(entry.value, Listed):
            raise Fault(entry.value, f"the points of {a.owner} are a list in brackets: [(x, y), (x, y), ...]")
        rows = []
        for point in entry.value.entries:
            rows.append(self.scope.constants(point, LENGTH, 2, 3))
            if len(rows[-1]) == 3 and rows[-1][2] != 0.0:
                raise Fault(point, f"{a.owner} is not in a plane: a point has x and y in the plane of its frame")
        return [row[:2] for row in rows]

    def _function(self, name: Word, place: str, a: Attributes, closed: bool) -> Curve:
        node = a.need("range").value
        if not isinstance(node, Vector) or len(node) != 2:
            raise Fault(node, "expected the least and the largest u in parentheses, such as (0, 360 deg)")
        entries: tuple[Node, ...] = node.entries or tuple(Num(node.start, node.end, x) for x in node.values)
        ends = [(self.scope.value(entry, None), entry) for entry in entries]
        dimension = self.scope.join(ends).dimension
        self.scope.variables["u"] = Value(U, dimension=dimension)
        try:
            x, y = (self.scope.value(a.need(key).value, LENGTH).expression for key in ("x", "y"))
        finally:
            del self.scope.variables["u"]
        lower, upper = (self.scope.bound_number(*end) for end in ends)

        def shape(u: Expression) -> tuple[Expression, Expression]:
            return x, y

        return self.b.curve(name.text, place, shape, ends=(lower, upper), closed=closed)

    # -- what stays on curves ---------------------------------------------------------------------------------
    def read_on_curve(self, s: Statement) -> None:
        """POINT ON CURVE and CURVE ON CURVE."""
        if s.head.text.lower() == "curve":
            return
        name = self.name(s)
        self.joints.claim(name)
        if s.head.text.lower().split()[0] == "point":
            self._point_on_curve(s, name)
        else:
            self._curve_on_curve(s, name)

    def _point_on_curve(self, s: Statement, name: Word) -> None:
        a = self.attributes(s, "point on curve", ("curve", "point", "start"))
        curve = self._named(a.need("curve").value)
        point = a.need("point")
        end = self.place_of(point.value, "frame", owner=a.owner, name=name.text)
        self._check_bodies(curve.place, end, point, a.owner)
        start = a.get("start")
        at = None if start is None else self._start(start.value, curve)
        self._put(name, self.b.point_on_curve(curve, end.label, name.text, start=at))

    def _curve_on_curve(self, s: Statement, name: Word) -> None:
        owner = f"curve on curve {name.text!r}"
        a = Attributes(owner, name, s.items, self.problems, ("curve", "start"), ("rolling",), twice=("curve",))
        ends = a.pair("curve")
        first, second = (self._named(entry.value) for entry in ends)
        self._check_bodies(first.place, self.places.get(Word(0, 0, second.place)), ends[1], owner)
        start, at = a.get("start"), None
        if start is not None:
            node = start.value
            if not isinstance(node, Vector) or len(node) != 2:
                raise Fault(node, f"the start of {owner} is both u in parentheses, such as (0.2, 90 deg)")
            entries: tuple[Node, ...] = node.entries or tuple(Num(node.start, node.end, x) for x in node.values)
            at = [self._start(x, curve) for x, curve in zip(entries, (first, second), strict=True)]
        contact = self.b.curve_on_curve(first, second, name.text, rolling="rolling" in a.flags, start=at)
        self._put(name, contact)

    def _named(self, node: Node) -> Curve:
        if not isinstance(node, Word):
            raise Fault(node, "expected the name of a curve")
        return self.curves.get(node)

    def _check_bodies(self, place: str, other: Frame, at: Item, owner: str) -> None:
        if self.places.get(Word(0, 0, place)).body == other.body:
            raise Fault(at.value, f"{owner} is within body {other.body.name!r} alone; name a frame of another body")

    def _start(self, node: Node, curve: Curve) -> float:
        return self.scope.constant(node, _PARAMETERS[curve.kind])

    def _put(self, name: Word, thing: PointOnCurve | CurveOnCurve) -> None:
        """Make the constraint known, and its massless bodies and their joints."""
        for part in thing.parts:
            word = Word(name.start, name.end, part)
            self.places.put(word, self.b.frame(part))
            self.joints.put(word, self.b.massless_joints[part])
        self.joints.put(name, thing)
