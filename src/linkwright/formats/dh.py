"""Denavit–Hartenberg tables, standard and modified, in numbers or symbols, from Python and from `.dh.toml`.

Standard (frame i at the far end of link i):       T = Rz(θ) Tz(d) Tx(a) Rx(α), joint i about z of frame i−1.
Modified (frame i at joint i; a, α of the link before): T = Rx(α) Tx(a) Rz(θ) Tz(d), joint i about z of frame i.
"""

from __future__ import annotations

import math
import operator
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Literal
from warnings import warn

import numpy as np

from linkwright.errors import FormatError, LinkwrightWarning, ModelError, NameNotFound
from linkwright.formats.model_files import MAX_BYTES, errors_in, read_bytes
from linkwright.model.builder import Builder
from linkwright.model.description import FREE_FALL, LOSSES, Description
from linkwright.model.elements import Array, is_bound
from linkwright.model.expression import FUNCTIONS, Call, Expression, Name, Number, as_expression
from linkwright.model.placements import snapped
from linkwright.model.units import ANGLE, INERTIA, LENGTH, MASS, NUMBER, Units, in_words
from linkwright.spatial.rotation import Turn

COLUMNS = ("a", "alpha", "d", "theta", "kind", "mass", "com", "inertia", "armature", *LOSSES)
_NUMBERS = tuple(column for column in COLUMNS if column not in ("kind", "com", "inertia"))
_KINDS = {"revolute": "revolute", "R": "revolute", "r": "revolute", "prismatic": "prismatic"}
_KINDS.update(P="prismatic", p="prismatic", translational="prismatic")
_ANGLES = ("alpha", "theta")
_DIMENSIONS = {"a": LENGTH, "d": LENGTH, "mass": MASS, "com": LENGTH, "inertia": INERTIA}
#: Angles with a unit and without quotes, which TOML does not know.
_BARE_ANGLE = re.compile(
    r"(?<=[=,\[])(\s*)([-+]?(?:\d+(?:\.\d*)?|\.\d+)\s*(?:deg|degrees?|rad|radians?|°))(?=\s*[,}\]\n\r#])"
)
#: A key such as a.b.c of more parts than any table has: what reading TOML takes is the square of their number.
_LONG_KEY = re.compile(r"""(?<![\w"'.-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){30}""")
_TOP = ("name", "convention", "gravity", "link", "parameters")


def from_dh(
    rows: Iterable[Mapping[str, Any] | Sequence[Any]],
    convention: Literal["standard", "modified"] = "standard",
    *,
    parameters: Mapping[str, float] | None = None,
    gravity: Sequence[Any] = FREE_FALL,
    name: str = "DH table",
) -> Description:
    """The chain of a table; a row is a mapping, or a sequence in the order of `COLUMNS`.

    The joint's own entry (theta of a revolute joint, d of a prismatic one) is an offset added to its coordinate.
    `com` is in link frame i of the convention, `inertia` about it: xx, yy, zz (, xy, xz, yz) or 3×3. `armature` is
    the inertia of the joint's motor as the joint feels it; the joint's own forces are −damping · q̇ and
    −friction · tanh(q̇ / 0.01). A mapping may also have a `name`, and `unphysical=True` to let an inertia pass that
    no body can have, as measurements sometimes are; its numbers must be plain.

    A number, also one of `gravity`, may be a text as `.mks` has it: a symbol `"l1"`, an angle `"90 deg"`, a formula
    `"pi/2"` or `"2*l1"`; or a SymPy expression. Symbols become parameters, with the values in `parameters`, or else 1
    (9.81 for a symbol first met in gravity; 0 for one first met as a product of inertia, so that a full tensor is
    possible).
    """
    if convention not in ("standard", "modified"):
        raise NameNotFound("DH convention", str(convention), ["standard", "modified"])
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes):
        raise ModelError(f"a DH table is a list of rows, not {rows!r}")
    table = [_row(row, k) for k, row in enumerate(rows, 1)]
    if not table:
        raise ModelError("a DH table needs at least one row")
    symbols = _Symbols(dict(parameters or {}))
    for row in table:
        symbols.read(row)
    fall = symbols.numbers(gravity, "gravity", 9.81)
    symbols.finish()
    b = Builder(name)
    for symbol, value in symbols.values.items():
        b.parameter(symbol, value)
    b.gravity(fall)
    before = b.ground
    for k, row in enumerate(table, 1):
        link = b.body(row["name"], row["mass"], row["com"], row["inertia"], unphysical=row["unphysical"])
        (ri, pi), (rj, pj) = (_standard if convention == "standard" else _modified)(row)
        # The joint's own forces have the name of its damping; a symbol there needs it, so friction is on its own too.
        bound = [key for key in LOSSES if isinstance(row[key], Expression)]
        plain = {} if "damping" in bound else {key: row[key] for key in LOSSES if key not in bound}
        sides = b.frame(before, ri, pi), b.frame(link, rj, pj)
        joint = b.joint(row["kind"], *sides, f"joint{k}", armature=row["armature"], **plain)
        for key, force in (("damping", b.joint_damper), ("friction", b.joint_friction)):
            if key not in plain and as_expression(row[key]) != Number(0.0):
                _check_loss(row, key, symbols.values)
                force(joint, row[key], name=f"joint{k} {key}")
        before = link
    return b.description()


def read_dh(path: str | Path) -> Description:
    """The chain of a `.dh.toml` file: name, convention, gravity, [[link]] tables with the columns, [parameters]."""
    file = str(path)
    content = read_bytes(path, MAX_BYTES)
    try:
        data = _toml(content.decode())
    except UnicodeDecodeError as error:
        text = f"the byte 0x{content[error.start]:02x} at position {error.start} is not UTF-8; save the file as UTF-8"
        raise FormatError(text, file=file) from error
    except ValueError as error:  # of TOML, or of a number with thousands of digits
        raise FormatError(f"is not TOML: {error}", file=file) from error
    except RecursionError:
        text = "has brackets nested too deeply; a table has three levels at most"
        raise FormatError(text, file=file) from None
    for key in data:
        if key not in _TOP:
            raise FormatError(str(NameNotFound("entry", key, list(_TOP))), file=file, element=key)
    links, parameters = data.get("link", []), data.get("parameters", {})
    if not isinstance(links, list) or not links or not all(isinstance(row, dict) for row in links):
        raise FormatError("has no [[link]] tables; give one per joint, in order from the base", file=file)
    if not isinstance(parameters, dict):
        raise FormatError("parameters must be a table: [parameters], then name = number", file=file)
    name = data.get("name", Path(path).name.removesuffix(".dh.toml"))
    if not isinstance(name, str):
        raise FormatError(f'name is {name!r}; give a text: name = "..."', file=file, element="name")
    gravity = data.get("gravity", list(FREE_FALL))
    if not isinstance(gravity, list) or any(isinstance(x, bool) for x in gravity):
        raise FormatError(f"gravity is {gravity!r}; give three numbers or symbols", file=file, element="gravity")
    if "convention" not in data:
        raise FormatError('does not say its convention; add convention = "standard" or "modified"', file=file)
    try:
        with errors_in(file):
            return from_dh(links, data["convention"], parameters=parameters, gravity=gravity, name=name)
    except OverflowError as error:
        raise FormatError(f"has a number that is too large: {error}", file=file) from error


def _toml(text: str) -> dict[str, Any]:
    """What a text holds; angles such as `90 deg` may stand in it without quotes."""
    if _LONG_KEY.search(text):
        raise ValueError("a key, or a text, has more than 30 parts with dots between them")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        quoted = _BARE_ANGLE.sub(r'\1"\2"', text)
        if quoted == text:
            raise
        return tomllib.loads(quoted)


# -- rows ---------------------------------------------------------------------------------------------------
def _row(entries: Any, k: int) -> dict[str, Any]:
    """A row with all columns."""
    known = (*COLUMNS, "name", "unphysical")
    if isinstance(entries, Mapping):
        for key in entries:
            if key not in known:
                raise NameNotFound(f"column of row {k}", str(key), list(known))
        row = dict(entries)
    elif isinstance(entries, Sequence) and not isinstance(entries, str):
        if not 4 <= len(entries) <= len(COLUMNS):
            text = f"row {k} has {len(entries)} entries; give {', '.join(COLUMNS)}, at least the first four"
            raise ModelError(text, element=f"row {k}")
        row = dict(zip(COLUMNS, entries, strict=False))
    else:
        raise ModelError(f"row {k} is {entries!r}; give a mapping or a sequence", element=f"row {k}")
    kind = row.get("kind", "revolute")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise NameNotFound(f"joint kind (in row {k})", str(kind), ["revolute", "prismatic", "R", "P"])
    row["kind"] = _KINDS[kind]
    for column in _NUMBERS:
        row.setdefault(column, 0.0)
    row.setdefault("com", (0.0, 0.0, 0.0))
    row.setdefault("inertia", (0.0, 0.0, 0.0))
    row.setdefault("name", f"link{k}")
    if not isinstance(row.setdefault("unphysical", False), bool):
        raise ModelError(f"unphysical of row {k} is {row['unphysical']!r}; give true or false", element=f"row {k}")
    if not isinstance(row["name"], str):
        raise ModelError(f"name of row {k} is {row['name']!r}; give a text", element=f"row {k}")
    return row


def _check_loss(row: dict[str, Any], key: str, values: Mapping[str, float]) -> None:
    """A loss that would drive its joint is an error; those of plain joints are checked with the joint."""
    loss = as_expression(row[key])
    value = float(loss.evaluate(values))
    if value < 0.0:
        shown = f"{value:g}" if isinstance(loss, Number) else f"{loss} = {value:g}"
        raise ModelError(f"{key} of {row['name']!r} is {shown}; give it a value of 0 or more", element=row["name"])


class _Symbols:
    """The symbols of a table and their values."""

    def __init__(self, parameters: dict[str, float]) -> None:
        self.parameters = parameters
        self.values: dict[str, float] = {}

    def read(self, row: dict[str, Any]) -> None:
        """Every symbol of a row as an expression, in place."""
        where = f"of {row['name']!r}"
        for column in _NUMBERS:
            row[column] = self.number(row[column], f"{column} {where}", angle=column in _ANGLES)
        row["com"] = self.numbers(row["com"], f"com {where}")
        inertia = row["inertia"]
        if hasattr(inertia, "tolist"):  # an array, or a SymPy matrix
            inertia = inertia.tolist()
        if isinstance(inertia, (list, tuple)) and len(inertia) == 6:
            moments = [self.number(x, f"inertia {where}") for x in inertia[:3]]
            row["inertia"] = moments + [self.number(x, f"inertia {where}", 0.0) for x in inertia[3:]]
        elif isinstance(inertia, (list, tuple)) and all(isinstance(x, (list, tuple)) for x in inertia):
            # The diagonal first: a symbol that stands there too is a moment.
            for i, line in enumerate(inertia[:3]):
                self.numbers(line[i : i + 1], f"inertia {where}")
            row["inertia"] = [[self.number(x, f"inertia {where}", 0.0) for x in line] for line in inertia]
        else:
            row["inertia"] = self.numbers(inertia, f"inertia {where}")

    def numbers(self, values: Any, what: str, default: float = 1.0) -> list[Any]:
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise ModelError(f"{what} is {values!r}; give a list of numbers or symbols", element=what)
        return [self.number(x, what, default) for x in values]

    def number(self, x: Any, what: str, default: float = 1.0, *, angle: bool = False) -> float | Expression:
        """A number, or the expression of symbols, whose names are noted."""
        if isinstance(x, str):
            x = self._text(x, what, angle)
        elif angle and isinstance(x, (int, float)) and not isinstance(x, bool):
            _warn_of_angle(float(x), what)
        elif not isinstance(x, Expression) and hasattr(x, "free_symbols"):
            x = _from_sympy(x, what)
        if isinstance(x, Expression):
            for name in sorted(x.names()):
                self.values.setdefault(name, self.parameters.get(name, default))
            return x.value if isinstance(x, Number) else x
        try:
            if isinstance(x, (bool, np.bool_)):
                raise TypeError
            number = float(x)
        except (TypeError, ValueError, OverflowError):
            raise ModelError(f"{what} is {x!r}; give a number or a symbol", element=what) from None
        if not math.isfinite(number):
            raise ModelError(f"{what} is {number}; give a finite number", element=what)
        return number

    def _text(self, text: str, what: str, angle: bool) -> Expression:
        """A number, a symbol or a formula as text; pi is a number, unless it is among the values given."""
        name = text.removeprefix("-")
        if name.isidentifier() and (name.lower() != "pi" or name in self.parameters):
            return Name(name) if text == name else -Name(name)
        from linkwright.formats.mks.values import symbolic  # weight: lark

        value = symbolic(text, what)
        if value.angle and not angle:
            raise ModelError(f"{what} is {text!r}, an angle; give a number without deg and rad", element=what)
        wanted = ANGLE if angle else _DIMENSIONS.get(what.split()[0], NUMBER)
        if value.dimension is not None and not value.dimension.like(wanted):
            there, unit = in_words(value.dimension), Units().of(wanted).text
            raise ModelError(f"{what} is {text!r}, {there}; expected {in_words(wanted)} (as 5 {unit})", element=what)
        if value.number is None:
            return value.expression
        if angle and not value.angle:
            _warn_of_angle(value.number, what)
        return Number(value.number)

    def finish(self) -> None:
        """A value for a symbol that the table does not have is a mistake."""
        for name in self.parameters:
            if name not in self.values:
                raise NameNotFound("symbol in the table", name, list(self.values))


def _warn_of_angle(angle: float, what: str) -> None:
    """An angle that is a rounded part of a turn, or so large that it may be meant in degrees."""
    if not math.isfinite(angle) or angle == 0.0:
        return
    twelfths = round(angle / (math.pi / 12.0))
    exact, digits = twelfths * math.pi / 12.0, len(repr(angle).partition(".")[2].partition("e")[0])
    least = 2 if twelfths % 6 == 0 else 3
    if abs(angle) > 2.0 * math.pi and angle == round(angle):
        text = f'{what} is {angle:g} rad; write "{angle:g} deg" if degrees are meant'
    elif twelfths and 1e-14 < abs(angle - exact) <= 10.0**-digits and least <= digits:
        degrees = 15 * twelfths
        text = f'{what} is {angle!r} rad, nearly {degrees}° (by {abs(angle - exact):.1e} rad); write "{degrees} deg" '
        text += "if that is meant: a rounded angle stays in every formula, as cosines and sines that are not 0 or 1"
    else:
        return
    warn(text, LinkwrightWarning, stacklevel=2)


def _from_sympy(x: Any, what: str) -> Expression:
    """A SymPy expression, taken over node by node."""
    if not x.free_symbols:
        return Number(float(x))
    if x.is_Symbol:
        return Name(str(x.name))
    parts = [_from_sympy(part, what) for part in x.args]
    function = str(x.func.__name__).lower()
    if function in ("add", "mul"):
        return reduce(operator.add if function == "add" else operator.mul, parts)
    if function not in FUNCTIONS or FUNCTIONS[function][0] != len(parts):
        text = f"{what} has the function {x.func.__name__} in it, which expressions do not know; use another form"
        raise ModelError(text, element=what)
    return Call(function, tuple(parts))


# -- frames -------------------------------------------------------------------------------------------------
def _standard(row: dict[str, Any]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """The joint's frame on link i−1, and on link i, whose own frame is at the far end."""
    on_child = _turn(0, row["alpha"]).T
    return (_turn(2, row["theta"]), _vector(0.0, 0.0, row["d"])), (on_child, _vector(-row["a"], 0.0, 0.0))


def _modified(row: dict[str, Any]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """The joint's frame on link i−1, and on link i, which is link i's own."""
    # Beside symbols the angles stay in sight, as closed forms want them.
    tilt = _turn(0, row["alpha"], named=is_bound([row["theta"], row["d"]]))
    origin = _vector(row["a"], 0.0, 0.0) + tilt @ _vector(0.0, 0.0, row["d"])
    return (tilt @ _turn(2, row["theta"], named=is_bound(row["alpha"])), origin), (np.eye(3), np.zeros(3))


def _turn(axis: int, angle: Any, *, named: bool = False) -> Array:
    """A rotation about x (0) or z (2); if `named`, of expressions that tell the angle, where it is no quarter turn."""
    c, s = np.cos(angle), np.sin(angle)
    if not is_bound(angle):
        c, s = snapped([c, s])
        if named and c and s:
            c, s = Call("cos", (Number(angle),)), Call("sin", (Number(angle),))
    return _matrix(Turn(axis, c, s).matrix())


def _vector(*entries: Any) -> Array:
    return _matrix(list(entries))


def _matrix(entries: Any) -> Array:
    array = np.array(entries)
    return array if is_bound(array) else array.astype(np.float64) + 0.0
