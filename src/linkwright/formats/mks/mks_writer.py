"""Descriptions into `.mks` text that reads back as the same description."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from warnings import catch_warnings, simplefilter, warn

import numpy as np

from linkwright.base.arguments import numbered_name
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.errors import LinkwrightWarning, ModelError
from linkwright.formats.mks.bodies_and_frames import turn_as_drawn
from linkwright.formats.mks.joints_and_drivers import ANGULAR, LIMITS, dimension_of_joint, gear_ratio
from linkwright.formats.mks.mks_reader import SETTINGS, is_safe_path, parse_mks
from linkwright.formats.mks.mks_text import (
    coupling_text,
    curve_parts,
    expression_text,
    force_text,
    gear_pair_parts,
    name_text,
    quantity_text,
    start_parts,
)
from linkwright.formats.mks.syntax import JOINT_WORDS
from linkwright.formats.mks.written_units import Speech, in_own_units
from linkwright.model.curve_contacts import drawn_starts
from linkwright.model.curve_elements import PointOnCurve, parts_of_curves
from linkwright.model.description import FREE_FALL, GROUND, LOSSES, Description, Shape
from linkwright.model.elements import Coupling, Driver, GearPair, Mimic, PointConstraint, PointOnLine, Rod
from linkwright.model.expression import Expression
from linkwright.model.gear_pairs import fitted, form_numbers
from linkwright.model.model_checks import impossible_inertias, listed
from linkwright.model.placements import are_parallel, axes_of
from linkwright.model.quantities import COORDINATES, dimension_of, drives_angle
from linkwright.model.requested_analysis import LABELS, System
from linkwright.model.units import ACCELERATION, ANGLE, INERTIA, LENGTH, MASS, PITCH, Dimension

#: The word of each kind that is written: the first.
_WORDS = {name: word for word, name in reversed(JOINT_WORDS.items())}
_ARRAYS = {"mass": MASS, "inertia": INERTIA, "pitch": PITCH, "gravity": ACCELERATION}
_ARRAYS |= dict.fromkeys(("com", "frame_p", "start_p", "pi", "pj"), LENGTH)
_EYE, _ZERO = np.eye(3).tobytes(), np.zeros(3).tobytes()
_WIDTH = 110
_ALWAYS = ("start", "end", "interval", "lu_tolerance")  # settings that are written also where they are the usual ones


def write_mks(description: Description) -> str:
    """The text of a description, in the units that it was written in.

    What the language cannot hold is left out, and listed in one warning.
    """
    left_out: list[str] = []

    def write(d: Description, speech: Speech) -> str:
        printer = _Printer(d, speech)
        text = "\n".join(printer.lines()) + "\n"
        left_out[:] = printer.left_out
        return text

    with catch_warnings():
        simplefilter("ignore", LinkwrightWarning)
        text = in_own_units(description, write, parse_mks)
    if left_out:
        warn(f"left out of the .mks text: {listed(left_out)}", LinkwrightWarning, stacklevel=2)
    return text


class _Printer:
    """Writes one description, statement by statement."""

    def __init__(self, d: Description, speech: Speech) -> None:
        self.d = d
        self.speech = speech
        self.left_out: list[str] = []
        self.losses: set[str] = set()  # forces that joints stand for
        self.forces = {x.name: x for x in d.elements}
        self._check_names()
        if not d.nb:
            text = f"{d.name!r} has no bodies that move, and a .mks file needs one"
            raise ModelError(text, element=d.name)
        # Gears may have no names; a file needs some that the others do not have.
        pairs = [x.name for x in d.point_constraints if isinstance(x, GearPair)]
        taken = {name.lower() for name in (*pairs, *(m.name for m in d.mimics))}
        self.gears: list[str] = []
        for m in d.mimics:
            self.gears.append(m.name or numbered_name("gear", taken))
            taken.add(self.gears[-1])
        self.unphysical, self.colors = impossible_inertias(d.inertia), dict(d.colors)
        self.frames_at: dict[Any, list[str]] = {}
        for k, name in enumerate(d.frames.names):
            key = self._key(int(d.frames.body[k]), "frame", k)
            self.frames_at.setdefault(key, []).append(name)

    def _check_names(self) -> None:
        d = self.d
        for what, names in (
            ("body or frame", [d.ground_name, *d.body_names, *d.frames.names]),
            ("joint", [*d.joint_names, *(constraint.name for constraint in d.point_constraints)]),
            ("gear", [x.name for x in (*d.mimics, *d.point_constraints) if x.name and isinstance(x, GearPair | Mimic)]),
            ("driver or force", [*(x.name for x in d.drivers), *self.forces]),
            ("parameter", list(d.parameters)),
            ("shape", [x.name for x in d.shapes]),
            ("trace", [x.name for x in d.traces]),
            ("curve", [x.name for x in d.curves]),
        ):
            seen: dict[str, str] = {}
            for name in names:
                other = seen.setdefault(name.lower(), name)
                if len(seen) and other is not name and other != name:
                    text = f"the {what} names {other!r} and {name!r} differ by case alone, which .mks files cannot hold"
                    raise ModelError(f"{text}; rename one", element=name)

    def lines(self) -> Iterator[str]:
        d = self.d
        yield f"MODEL {name_text(d.name) if d.name.strip() else 'mechanism'}"
        if d.system is not None:
            yield self._system(d.system)
        elif self.speech.settings:
            # The length unit says that units are all that SYSTEM is for.
            yield _filled("SYSTEM (", list(dict.fromkeys([f"length unit = {d.units.length}", *self.speech.settings])))
        for name, number in d.parameters.items():
            shown = f'"{name}"' if name.lower() in ("pi", "time") else name_text(name)
            yield f"PARAMETER {shown} = {self.speech.parameter(name, number)};"
        if tuple(d.gravity.tolist()) != FREE_FALL or self._is_bound("gravity", 0, 3):
            yield f"GRAVITY ({', '.join(self._entry('gravity', k, x) for k, x in enumerate(d.gravity.tolist()))});"
        yield ""
        yield self._ground()
        for k, name in enumerate(d.frames.names):
            if name in d.more_grounds:
                yield _statement("BODY", name, ["ground", *self._pose("frame", k)])
        massless = parts_of_curves(d.point_constraints)
        yield from (self._body(k) for k in range(d.nb) if d.body_names[k] not in massless)
        yield ""
        yield from (self._frame_at(k) for k, name in enumerate(d.frames.names) if name not in d.more_grounds)
        yield from (self._joint(k) for k in range(d.nj) if d.joint_names[k] not in massless)
        yield from (_statement("CURVE", x.name, curve_parts(x, self.speech)) for x in d.curves)
        yield from map(self._gear, range(len(d.mimics)))
        yield from (text for x in d.point_constraints if (text := self._point_constraint(x)))
        yield from map(self._driver, d.drivers)
        for force in d.elements:
            if force.name not in self.losses:
                head, parts = force_text(d, force, self.speech)
                yield _statement(head, force.name, parts)
        if d.initial:
            initial = [
                f"{quantity_text(d, x.quantity)} = {expression_text(x.value, self.speech, dimension_of(d, x.quantity))}"
                for x in d.initial
            ]
            yield _filled("INITIAL (", initial)
        yield from (text for shape in d.shapes if (text := self._shape(shape)))
        for trace in d.traces:
            yield _statement("TRACE", trace.name, [f"triad = {name_text(trace.place)}", *_colour(trace.color)])
        yield "ENDMODEL"

    # -- numbers ------------------------------------------------------------------------------------------
    def _entry(self, array: str, flat: int, value: float) -> str:
        bound = self.d.bindings.get((array, flat))
        dimension = self._dimension(array, flat)
        return self.speech.number(value, dimension) if bound is None else expression_text(bound, self.speech, dimension)

    def _dimension(self, array: str, flat: int) -> Dimension | None:
        """What a number of an array is; None for directions."""
        d = self.d
        if array == "armature":
            return dimension_of_joint(d.kind_of(flat).name, array)
        if array == "gear":
            m = d.mimics[flat // 2]
            driven, driving = (ANGLE if d.kind_of(j).name in ANGULAR else LENGTH for j in (m.follower, m.leader))
            return driven if flat % 2 else gear_ratio(driven, driving)
        return _ARRAYS.get(array)

    def _vector(self, array: str, row: int, most: int = 6) -> str:
        values = np.asarray(getattr(self.d, array)[row]).tolist()
        n = len(values)
        return f"({', '.join(self._entry(array, n * row + k, x) for k, x in enumerate(values[:most]))})"

    def _is_bound(self, array: str, row: int, size: int) -> bool:
        return bool(self.d.bindings) and any((array, size * row + k) in self.d.bindings for k in range(size))

    def _key(self, body: int, stem: str, row: int) -> Any:
        """What makes two frames one: the body, every bit, every binding."""
        r, p = self._arrays(stem)
        texts = tuple(
            repr(self.d.bindings.get((array, size * row + k)))
            for array, size in ((r, 9), (p, 3))
            if self._is_bound(array, row, size)
            for k in range(size)
        )
        return body, getattr(self.d, r)[row].tobytes(), getattr(self.d, p)[row].tobytes(), texts

    @staticmethod
    def _arrays(stem: str) -> tuple[str, str]:
        return (f"{stem}_r", f"{stem}_p") if stem in ("frame", "start") else (f"r{stem}", f"p{stem}")

    def _pose(self, stem: str, row: int) -> list[str]:
        """origin and axes, or p, q and r where they read back to the last bit."""
        r_name, p_name = self._arrays(stem)
        r, p = getattr(self.d, r_name)[row], getattr(self.d, p_name)[row]
        origin = f"origin = {self._vector(p_name, row)}"
        if self._is_bound(r_name, row, 9):
            columns = [", ".join(self._entry(r_name, 9 * row + 3 * i + j, r[i, j]) for i in range(3)) for j in range(3)]
            return [origin, f"axes = [{', '.join(f'({c})' for c in columns)}]"]
        if r.tobytes() == _EYE:
            return [origin]
        if not self._is_bound(p_name, row, 3):
            q, f = p + r[:, 2], p + r[:, 0]
            h, x = (q - p).tolist(), (f - p).tolist()
            if not are_parallel(h, x) and axes_of(h, x).tobytes() == r.tobytes():
                points = ", ".join(self._plain(x, LENGTH) for x in (p, q, f))
                return [f"pqr = [{points}]"]
        return [origin, f"axes = [{', '.join(self._plain(r[:, k], None) for k in range(3))}]"]

    def _plain(self, numbers: Floats, dimension: Dimension | None) -> str:
        return f"({', '.join(self.speech.number(float(x), dimension) for x in numbers)})"

    # -- bodies and frames --------------------------------------------------------------------------------
    def _ground(self) -> str:
        parts = ["ground"]
        if self.d.ground_inertia is not None:
            mass, com, inertia = self.d.ground_inertia
            parts.append(f"mass = {self.speech.number(mass, MASS)}")
            parts += [f"com = {self._plain(com, LENGTH)}", f"inertia = {self._plain(inertia, INERTIA)}"]
            parts += ["unphysical"] * bool(impossible_inertias(inertia[None])[0])
        return _statement("BODY", self.d.ground_name, [*parts, *_colour(self.colors.get(self.d.ground_name, ""))])

    def _body(self, k: int) -> str:
        d = self.d
        placed = d.start is not None and bool(d.start.placed[k])
        parts = self._pose("start", k) if placed else []
        bare = (d.mass[k].tobytes() + d.com[k].tobytes() + d.inertia[k].tobytes()).strip(b"\0") == b""
        bound = any(self._is_bound(array, k, n) for array, n in (("mass", 1), ("com", 3), ("inertia", 6)))
        if not bare or bound or not parts:
            parts.append(f"mass = {self._entry('mass', k, float(d.mass[k]))}")
        if d.com[k].tobytes() != _ZERO or self._is_bound("com", k, 3):
            parts.append(f"com = {self._vector('com', k)}")
        if d.inertia[k].tobytes().strip(b"\0") or self._is_bound("inertia", k, 6):
            mixed = d.inertia[k, 3:].tobytes() != _ZERO or any(("inertia", 6 * k + i) in d.bindings for i in (3, 4, 5))
            parts.append(f"inertia = {self._vector('inertia', k, 6 if mixed else 3)}")
            parts += ["unphysical"] * bool(self.unphysical[k])
        return _statement("BODY", d.body_names[k], [*parts, *_colour(self.colors.get(d.body_names[k], ""))])

    def _body_name(self, body: int) -> str:
        return name_text(self.d.body_name(body))

    def _frame_at(self, k: int) -> str:
        d = self.d
        parts = [f"associated body = {self._body_name(int(d.frames.body[k]))}", *self._pose("frame", k)]
        return _statement("TRIAD", d.frames.names[k], parts)

    # -- joints -------------------------------------------------------------------------------------------
    def _side(self, joint: int, side: str) -> str:
        body = int((self.d.parent if side == "i" else self.d.child)[joint])
        key = self._key(body, side, joint)
        if key in self.frames_at:
            # Where several frames are one, each is used in its turn, as a person would have drawn it.
            names = self.frames_at[key]
            return f"triad = {name_text(names.pop(0) if len(names) > 1 else names[0])}"
        if key[1:] == (_EYE, _ZERO, ()):
            return f"triad = {self._body_name(body)}"
        return f"triad = (associated body = {self._body_name(body)}, {', '.join(self._pose(side, joint))})"

    def _joint(self, k: int) -> str:
        d, name, kind = self.d, self.d.joint_names[k], self.d.kind_of(k)
        parts = [self._side(k, "i"), self._side(k, "j")]
        if kind.name == "screw":
            parts.append(f"pitch = {self._entry('pitch', k, float(d.pitch[k]))}")
        for label in (*LIMITS, *LOSSES):
            number = float(getattr(d, label.replace(" ", "_"))[k])
            if math.isfinite(number) and (number != 0.0 or label in LIMITS):
                parts.append(f"{label} = {self.speech.number(number, dimension_of_joint(kind.name, label))}")
        if d.armature[k] != 0.0 or self._is_bound("armature", k, 1):
            parts.append(f"armature = {self._entry('armature', k, float(d.armature[k]))}")
        parts += self._lossless(k)
        if k in d.cuts:
            parts.append("cut")
        if (k in d.passive) != (kind.name == "free"):
            parts.append("passive" if k in d.passive else "actuated")
        if self._would_turn(k, kind.name):
            parts.append("exact")
        return _statement(f"{_WORDS[kind.name].upper()} JOINT", name, parts)

    def _lossless(self, k: int) -> list[str]:
        """Whether damping and friction are only noted; those that act are forces, which this joint stands for."""
        losses = self.d.losses(k)
        if not losses:
            return []
        if any(self.forces.get(x.name) != x for x in losses):
            return ["lossless"]
        self.losses |= {x.name for x in losses}
        return []

    def _would_turn(self, k: int, kind: str) -> bool:
        d = self.d
        turns = []
        for body, r in ((int(d.parent[k]), d.ri[k]), (int(d.child[k]), d.rj[k])):
            if body == GROUND:
                turns.append(r)
            elif d.start is not None and d.start.placed[body]:
                turns.append(d.start.r[body] @ r)
        return len(turns) == 2 and turn_as_drawn(kind, turns[0], turns[1]) is not None

    @cached_property
    def _drawn_phases(self) -> dict[str, float]:
        """The phases that the gear pairs have as they are drawn."""
        pairs = [replace(x, phase=None) for x in self.d.point_constraints if isinstance(x, GearPair)]
        drawn = fitted(replace(self.d, point_constraints=tuple(pairs)))
        return {x.name: x.phase or 0.0 for x in drawn.point_constraints if isinstance(x, GearPair)}

    def _phased(self, pair: GearPair) -> GearPair:
        """The pair with the phase that it has now, or without one where that is the drawn phase."""
        phase = pair.phase or 0.0
        apart, near = phase - self._drawn_phases[pair.name], 0.0
        if pair.radius.names():  # where parameters have changed, the drawn phase has another rounding
            numbers = [float(x.evaluate(self.d.parameters)) for x in form_numbers(pair)]
            radius, phase, pitch = numbers[0], numbers[2], numbers[-1]
            apart, near = phase - self._drawn_phases[pair.name], 1e-12 * radius
            apart -= pitch * round(apart / pitch)
        same = abs(apart) <= near
        return replace(pair, phase=None if same else phase)

    # -- couplings, constraints, drivers, drawing ----------------------------------------------------------------
    def _gear(self, k: int) -> str:
        d, m = self.d, self.d.mimics[k]
        parts = [f"joint = {name_text(d.joint_names[j])}" for j in (m.follower, m.leader)]
        parts.append(f"ratio = {self._entry('gear', 2 * k, m.ratio)}")
        if m.offset != 0.0 or ("gear", 2 * k + 1) in d.bindings:
            parts.append(f"offset = {self._entry('gear', 2 * k + 1, m.offset)}")
        return _statement("GEAR", self.gears[k], parts)

    @cached_property
    def _drawn_starts(self) -> dict[str, float]:
        """Where points on curves are as they are drawn."""
        return drawn_starts(self.d)

    def _on_curve(self, x: PointOnCurve) -> str:
        """A point on a curve, or the contact that it is the first part of."""
        if not x.contact:
            start = start_parts(self.d, [x], self._drawn_starts, self.speech)
            parts = [f"curve = {name_text(x.curve.name)}", f"point = {name_text(x.point)}", *start]
            return _statement("POINT ON CURVE", x.name, parts)
        contact = next(c for c in self.d.contacts if c.name == x.contact)
        if x.name != contact.first:
            return ""
        both = [y for y in self.d.point_constraints if isinstance(y, PointOnCurve) and y.contact == x.contact]
        parts = [f"curve = {name_text(y.curve.name)}" for y in both] + ["rolling"] * bool(contact.rolling)
        return _statement(
            "CURVE ON CURVE", x.name, [*parts, *start_parts(self.d, both, self._drawn_starts, self.speech)]
        )

    def _point_constraint(self, constraint: PointConstraint) -> str:
        if isinstance(constraint, PointOnCurve):
            return self._on_curve(constraint)
        if constraint.name in [x.rolling for x in self.d.contacts]:
            return ""
        if isinstance(constraint, GearPair):
            return _statement("GEAR", constraint.name, gear_pair_parts(self._phased(constraint), self.speech))
        if isinstance(constraint, Rod):
            ends = [f"triad = {name_text(x)}" for x in (constraint.first, constraint.second)]
            return _statement("ROD", constraint.name, [*ends, f"length = {self._length(constraint.length)}"])
        if isinstance(constraint, Coupling):
            return _statement("COUPLING", constraint.name, [coupling_text(self.d, constraint, self.speech)])
        point = f"point = {name_text(constraint.point)}"
        if isinstance(constraint, PointOnLine):
            return _statement("POINT ON LINE", constraint.name, [f"line = {name_text(constraint.line)}", point])
        return _statement("POINT ON PLANE", constraint.name, [f"plane = {name_text(constraint.plane)}", point])

    def _driver(self, driver: Driver) -> str:
        d = self.d
        if driver.kind == "absolute":
            place, _, coordinate = driver.target.rpartition(".")
            what = f"{name_text(place)}.{coordinate}"
        elif driver.kind == "joint":
            kind = d.kind_of(d.joint_names.position("joint", driver.target)).name
            part = COORDINATES[kind][driver.index]
            # x and y of a place go first where a joint has the same name.
            what = f"{name_text(driver.target)}.{f'q{driver.index}' if part in 'xy' else part}"
        else:
            ends = [name_text(driver.target), name_text(driver.other or "")]
            if driver.kind == "angle":
                ends = [f"{end}.{axis}" for end, axis in zip(ends, driver.axes, strict=True)]
            what = f"{driver.kind}({', '.join(ends)})"
        law = expression_text(driver.law, self.speech, ANGLE if drives_angle(d, driver) else LENGTH)
        return _statement("DRIVER", driver.name, [f"{what} = {law}"])

    def _length(self, length: Expression) -> str:
        return expression_text(length, self.speech, LENGTH)

    def _shape(self, shape: Shape) -> str:
        sizes = [expression_text(x) if shape.kind == "mesh" else self._length(x) for x in shape.size]
        parts = [f"triad = {name_text(shape.place)}"]
        if shape.kind == "mesh":
            if not is_safe_path(shape.file):
                self.left_out.append(f"the shape {shape.name}, whose file is not below the model's folder")
                return ""
            parts += [f'mesh = "{shape.file}"', f"scale = {sizes[0]}"]
        else:
            joined = ", ".join(sizes)
            parts.append(f"{shape.kind} = {joined if len(sizes) == 1 else f'({joined})'}")
        return _statement("SHAPE", shape.name, [*parts, *_colour(shape.color)])

    def _system(self, s: System) -> str:
        usual, parts = System(), []
        for key, label in LABELS.items():
            if key in _ALWAYS or getattr(s, key) != getattr(usual, key):
                parts.append(f"{label} = {self.speech.number(getattr(s, key), SETTINGS.get(key))}")
        parts.append(f"freedom = {s.freedom.replace('-', ' ')}")
        if s.method != usual.method:
            parts.append(f"method = {s.method.replace('-', ' ')}")
        return _filled("SYSTEM (", [f"{s.analysis.upper()} ANALYSIS", *parts, *self.speech.settings])


def _statement(head: str, name: str, parts: list[str]) -> str:
    return _filled(f"{head} {name_text(name)} (", parts)


def _filled(opening: str, parts: list[str]) -> str:
    """A statement in lines that are not longer than need be: breaks stand between its parts."""
    lines, line = [], opening + parts[0]
    for part in parts[1:]:
        if len(line) + len(part) + 4 > _WIDTH:
            lines.append(line + ",")
            line = "    " + part
        else:
            line += ", " + part
    return "\n".join([*lines, line + ");"])


def _colour(color: str) -> list[str]:
    return [f'colour = "{color}"'] if color else []
