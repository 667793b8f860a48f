"""`.mks` files into descriptions."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from linkwright.base.arguments import counted, first_few
from linkwright.base.locks import cached_property
from linkwright.errors import FormatError, LinkwrightError, MksError, ModelError
from linkwright.formats.mks.attributes import Registry
from linkwright.formats.mks.colours import colour_of
from linkwright.formats.mks.dimensions import Value
from linkwright.formats.mks.expansion import Expanded, expanded
from linkwright.formats.mks.forces_and_initial import HEADS
from linkwright.formats.mks.friction_statements import FrictionLoads
from linkwright.formats.mks.parser import Parsed, parse
from linkwright.formats.mks.syntax import (
    Enough,
    Fault,
    Item,
    Node,
    Problem,
    Problems,
    Statement,
    Word,
    did_you_mean,
    either,
)
from linkwright.formats.mks.values import CONSTANTS, Scope, constant, words_of
from linkwright.formats.model_files import finite_arithmetic, read_bytes
from linkwright.model.description import SHAPE_SIZES, Description
from linkwright.model.expression import Number
from linkwright.model.requested_analysis import FIXED_STEP_METHODS, LABELS, LEAST_TOLERANCE, SIMULATION_METHODS
from linkwright.model.units import ACCELERATION, ANGLE, LENGTH, NUMBER, TIME, Units, in_words
from linkwright.tape.block import undisturbed

T = TypeVar("T")
_EXAMPLES = {"length": "mm", "mass": "g", "force": "N", "time": "ms", "angle": "degree"}
MAX_BYTES = 4 * 2**20
_METHODS = {name.replace("-", " "): name for name in SIMULATION_METHODS}
_FREEDOM = {"minimum norm": "minimum-norm", "pivoting": "pivoting"}
#: The settings that say units, by their labels.
UNIT_LABELS = {f"{name} unit": name for name in ("length", "mass", "force", "time", "angle")}
SETTINGS = dict.fromkeys(("start", "end", "interval", "dt"), TIME)
SETTINGS |= dict.fromkeys(("assembly_tolerance", "constraint_tolerance"), LENGTH)
_ANALYSES = ("kinematic", "dynamic", "static", "inverse dynamic")
_MOST_STEPS = 10_000_000


class ModelText:
    """A text in the language `.mks`, parsed once: its mechanism at any values of its parameters.

    `file` is its name in messages, and `folder` where its meshes are.
    """

    def __init__(self, text: str, file: str = "<text>", folder: str = "") -> None:
        if len(text) > MAX_BYTES:
            raise FormatError(f"is larger than {MAX_BYTES >> 20} MB; a model file is never that large", file=file)
        self.text, self.file, self.folder = text, file, folder

    @classmethod
    def of_file(cls, path: str | Path) -> ModelText:
        """The text of a `.mks` file."""
        file = str(path)
        data = read_bytes(path, MAX_BYTES)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            column = error.start - data.rfind(b"\n", 0, error.start)
            message = f"the byte {data[error.start]:#04x} is not UTF-8; save the file as UTF-8"
            raise MksError([Problem(line, column, message)], file=file) from None
        return cls(text, file, str(Path(path).parent))

    @cached_property
    def _parsed(self) -> tuple[Parsed, Problems]:
        """The statements, and what is wrong with their form."""
        problems = Problems(self.text.replace("\r\n", "\n").replace("\r", "\n"), self.file)
        with undisturbed(), finite_arithmetic(self.file):
            try:
                return parse(problems), problems
            except Enough:
                problems.fail()

    def description(self, parameters: Mapping[str, float | str] | None = None, *, file: str = "") -> Description:
        """The mechanism, with other values of some PARAMETERs: numbers, or text like 25 deg.

        `file` is another name of the text in messages.
        """
        name = file or self.file
        parsed, form = self._parsed
        problems = form.copy(name)
        try:
            with undisturbed(), finite_arithmetic(name):
                return replace(_read(parsed, problems, dict(parameters or {})), folder=self.folder)
        except Enough:
            problems.fail()

    def fixed_parameters(self, parameters: Mapping[str, float | str] | None = None) -> dict[str, float]:
        """The PARAMETERs that say how much is repeated, which are fixed when the text is read, by small letters."""
        return dict(self._plain(parameters).fixed)

    def repetition(self, parameters: Mapping[str, float | str] | None = None) -> str:
        """A sentence about what REPEAT and USE make of the text; nothing where there are none."""
        plain = self._plain(parameters)
        if not plain.made:
            return ""
        values = ", ".join(f"{name} = {number:g}" for name, number in plain.fixed.items())
        fixed = f"; {values} is fixed when the model is read" if values else ""
        return f"REPEAT and USE make {counted(plain.made, 'statement')}{fixed}"

    def _plain(self, parameters: Mapping[str, float | str] | None) -> Expanded:
        parsed, form = self._parsed
        problems = form.copy(self.file)
        with suppress(Enough):
            return _plain(parsed, problems, parameters or {})
        problems.fail()

    def parameter_values(self, parameters: Mapping[str, float | str] | None = None) -> dict[str, float]:
        """The values of all PARAMETERs, those that depend on others too; `parameters` gives some other values."""
        parsed, form = self._parsed
        problems = form.copy(self.file)
        values: dict[str, float] = {}
        with suppress(Enough):
            reader = _reader(parsed, problems, parameters or {})
            reader.read_units()
            reader.read_parameters(dict(parameters or {}))
            values = reader.scope.all_values()
        if problems:
            problems.fail()
        return values


def read_mks(path: str | Path, *, parameters: Mapping[str, float | str] | None = None) -> Description:
    """The mechanism of a `.mks` file; `parameters` gives some PARAMETERs other values: numbers, or text like 25 deg."""
    return ModelText.of_file(path).description(parameters)


def parse_mks(
    text: str, file: str = "<text>", *, parameters: Mapping[str, float | str] | None = None, folder: str = ""
) -> Description:
    """The mechanism of a text in the language `.mks`; `folder` is where its meshes are."""
    return ModelText(text, file, folder).description(parameters)


def _plain(parsed: Parsed, problems: Problems, parameters: Mapping[str, float | str]) -> Expanded:
    """The plain statements of a text, with these values of PARAMETERs."""
    numbers = {}
    for name, setting in parameters.items():
        number = constant(setting, f"parameter {name!r}").number if isinstance(setting, str) else setting
        if isinstance(number, int | float | np.number) and math.isfinite(number):
            numbers[name.lower()] = float(number)
    return expanded(parsed, problems, numbers)


def _reader(parsed: Parsed, problems: Problems, parameters: Mapping[str, float | str]) -> Reader:
    """A reader of a text, with these values of PARAMETERs."""
    plain = _plain(parsed, problems, parameters)
    scope = Scope(problems.text)
    scope.fixed = frozenset(plain.fixed)
    return Reader(plain.parsed, problems, scope)


def _read(parsed: Parsed, problems: Problems, parameters: dict[str, float | str]) -> Description:
    reader = _reader(parsed, problems, parameters)
    reader.read_units()
    reader.read_parameters(parameters)
    reader.each("system", reader.read_system)
    reader.read_bodies()
    reader.each("triad marker", reader.read_frame, (reader.places,))
    reader.each("joint", reader.read_joint, (reader.joints,))
    reader.each("rod line plane gear", reader.read_held, (reader.joints,))
    reader.each("curve", reader.read_curve, (reader.curves,))
    reader.each("curve", reader.read_on_curve, (reader.joints,))
    if not problems:
        reader.hold_loose_bodies()
    reader.each("gear", reader.read_joint_gear)
    reader.each("coupling", reader.read_coupling, (reader.joints,))
    reader.each("driver", reader.read_driver)
    reader.each(HEADS, reader.read_force)
    reader.each("bushing", reader.read_bushing)
    reader.each("initial", reader.read_initial)
    reader.each("gravity", reader.read_gravity)
    reader.each("shape", reader.read_shape)
    reader.each("trace", reader.read_trace)
    if problems:
        problems.fail()
    return reader.description()


class Reader(FrictionLoads):
    """Reads what concerns the whole model, and puts the description together."""

    def __init__(self, parsed: Parsed, problems: Problems, scope: Scope) -> None:
        super().__init__(parsed, problems, scope)
        self._settings: dict[str, Any] | None = None
        self._only_units = False
        self._has_gravity = False
        self.shapes: Registry[bool] = Registry("shape", parsed.broken)
        self.traces: Registry[bool] = Registry("trace", parsed.broken)

    # -- units and parameters -----------------------------------------------------------------------------
    def read_units(self) -> None:
        """What numbers without units are in: the first SYSTEM says it for the whole text."""
        system = next((s for s in self.parsed.statements if s.head.text.lower() == "system"), None)
        units = Units()
        for item in () if system is None else system.items:
            name = UNIT_LABELS.get(item.key)
            if name is None:
                continue
            try:
                if not isinstance(item.value, Word) or item.value.quoted:
                    raise Fault(item.value, f"the {item.key} is a unit, such as {_EXAMPLES[name]}")
                units = units.with_unit(name, item.value.text)
            except ModelError as error:
                self.problems.add(item.value, f"{error}; write one such as {_EXAMPLES[name]}")
            except Fault as fault:
                self.problems.add_fault(fault)
        self.scope.units = units

    def read_parameters(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            if isinstance(value, str):
                self.scope.overridden[name.lower()] = constant(value, f"parameter {name!r}")
                continue
            if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
                raise FormatError(f"parameter {name!r} is {value!r}; give a finite number", file=self.problems.file)
            self.scope.overridden[name.lower()] = Value(Number(float(value)), float(value))
        for s in self.parsed.statements:
            if s.head.text.lower() == "parameter" and s.name is not None:
                self.scope.later[s.name.text.lower()] = (s.name.start, self.problems.line_of(s.name.start))
        self.each("parameter", self._parameter)
        for misfit in self.scope.misfits:
            raise FormatError(_misfit(*misfit), file=self.problems.file, element=misfit[0])
        for key in self.scope.overridden:
            if key not in self.parsed.broken and not self.problems:
                name = next(n for n in values if n.lower() == key)
                known = f"; there are {first_few(self.scope.names, 12)}" if self.scope.names else "; the model has none"
                hint = did_you_mean(name, self.scope.names) or known
                raise FormatError(f"there is no parameter {name!r}{hint}", file=self.problems.file, element=name)

    def _parameter(self, s: Statement) -> None:
        name = self.name(s)
        Registry[bool]("parameter").claim(name)
        if not name.quoted and (name.text.lower() in CONSTANTS or name.text.lower() == "time"):
            raise Fault(name, f"{name.text!r} has a meaning of its own; choose another name")
        if not name.text.isidentifier() or name.text == "TIME":
            text = f"{name.text!r} cannot name a parameter; use a letter, then letters and digits"
            raise Fault(name, text + ("; an array is PARAMETER x = [1, 2]" if "[" in name.text else ""))
        try:
            value = self.scope.value(s.items[0].value, None)
            self.scope.now(value, s.items[0].value)
        except Fault:
            self.scope.define(name, None)
            raise
        self.scope.define(name, value)

    # -- the analysis -------------------------------------------------------------------------------------
    def read_system(self, s: Statement) -> None:
        if self._settings is not None:
            raise Fault(s.head, "there is a SYSTEM already; keep one")
        settings: dict[str, Any] = {}
        self._settings = settings
        # Units alone ask for no analysis.
        self._only_units = any(item.key in UNIT_LABELS and item.key != "angle unit" for item in s.items)
        items = []
        for entry in s.items:
            words = words_of(entry.value) if entry.label is None else None
            if words is not None and words.split()[-1] == "analysis":
                self._analysis(entry, words.removesuffix("analysis").strip(), settings)
            else:
                items.append(entry)
        a = self.attributes(
            replace(s, items=tuple(items)), "SYSTEM", (*LABELS.values(), "method", "freedom", *UNIT_LABELS)
        )
        for key, label in LABELS.items():
            item = a.get(label)
            if item is None:
                continue
            try:
                settings[key] = self._setting(item, label, key)
            except Fault as fault:  # of this setting alone: the others are read too
                self.problems.add_fault(fault)
        start, end = settings.get("start", 0.0), settings.get("end", 1.0)
        if start > end:
            raise Fault(
                a.get("ending time") or s.head, f"the ending time {end:g} is before the starting time {start:g}"
            )
        if (end - start) / settings.get("interval", 0.01) > _MOST_STEPS:
            at = a.get("print interval") or s.head
            raise Fault(at, f"this makes more than {_MOST_STEPS} points in time; make the print interval longer")
        freedom, method = a.get("freedom"), a.get("method")
        if method is not None:
            settings["method"] = chosen = _choice(method, _METHODS)
            if chosen in FIXED_STEP_METHODS and "dt" not in settings:
                raise Fault(method, f"the method {chosen} takes steps of one length; add step = ... in seconds")
            if chosen == "radau" and "dt" in settings:
                raise Fault(a.need("step"), "the method radau chooses its own steps; remove the step")
        if freedom is not None:
            settings["freedom"] = _choice(freedom, _FREEDOM)

    def _setting(self, item: Item, label: str, key: str) -> float:
        """The number of a setting."""
        value = self.scope.constant(item.value, SETTINGS.get(key, NUMBER))
        if key not in ("start", "end") and not value > 0.0:
            raise Fault(item.value, f"the {label} is not positive")
        if key == "newton_tolerance" and value < LEAST_TOLERANCE:
            raise Fault(item.value, f"the {label} is below rounding; give {LEAST_TOLERANCE:g} or more")
        return float(value)

    def _analysis(self, item: Item, kind: str, settings: dict[str, Any]) -> None:
        if "analysis" in settings:
            raise Fault(item, "the analysis is there twice; keep one")
        if kind not in _ANALYSES:
            known = either([f"{name.upper()} ANALYSIS" for name in _ANALYSES])
            raise Fault(item, f"there is no {kind!r} analysis{did_you_mean(kind, _ANALYSES) or f'; write {known}'}")
        settings["analysis"] = kind

    def read_gravity(self, s: Statement) -> None:
        if self._has_gravity:
            raise Fault(s.head, "there is a GRAVITY already; keep one")
        self._has_gravity = True
        self.b.gravity(self.scope.point(s.items[0].value, ACCELERATION))

    # -- drawing ------------------------------------------------------------------------------------------
    def read_shape(self, s: Statement) -> None:
        name = self.name(s)
        self.shapes.put(name, True)
        a = self.attributes(s, "shape", ("associated body", "triad", *SHAPE_SIZES, "scale", "colour"))
        item = a.one_of(("associated body", "triad"))
        place = self.place_of(item.value, owner=a.owner, name=name.text)
        form = a.one_of(tuple(SHAPE_SIZES))
        file, sizes = "", form.value
        if form.key == "mesh":
            file = self._mesh(form.value)
            scale = a.get("scale")
            entries: list[Any] = [1.0] if scale is None else [self.scope.numeric(scale.value, NUMBER)]
            sizes = form.value if scale is None else scale.value
        elif "scale" in a:
            raise Fault(a.need("scale"), f"{a.owner} is no mesh, so that it has no scale; give its sizes as lengths")
        elif form.key == "sphere":
            entries = [self.scope.numeric(form.value, LENGTH)]
        else:
            wanted = SHAPE_SIZES[form.key]  # type: ignore[index]
            entries = list(self.scope.vector(form.value, LENGTH, len(wanted)))
        if any(not x > 0.0 for x in self._now(entries)):
            raise Fault(sizes, f"a size of {a.owner} is not positive")
        color = self._colour(a.get("colour"), place.body.number)
        self.b.shape(place.label, form.key, entries, color, file=file, name=name.text)  # type: ignore[arg-type]

    def _mesh(self, node: Node) -> str:
        if not isinstance(node, Word) or not node.quoted:
            raise Fault(node, 'expected the file of the mesh in quotes: mesh = "part.stl"')
        file = node.text
        if not is_safe_path(file):
            raise Fault(node, "a mesh lies in the folder of the model file or below; give a path like meshes/part.stl")
        return file

    def read_trace(self, s: Statement) -> None:
        name = self.name(s)
        self.traces.put(name, True)
        a = self.attributes(s, "trace", ("associated body", "triad", "colour"))
        at = a.one_of(("associated body", "triad")).value
        place = self.place_of(at, owner=a.owner, name=name.text)
        self.b.trace(place.label, self._colour(a.get("colour"), place.body.number), name=name.text)

    def _colour(self, item: Item | None, body: int) -> str:
        return self.body_colours.get(body, "") if item is None else colour_of(item.value, self.scope)

    # -- the outcome --------------------------------------------------------------------------------------
    def description(self) -> Description:
        """The description, checked as a whole."""
        if self._settings or (self._settings is not None and not self._only_units):
            self.b.system(**self._settings)
        try:
            d = self.b.description()
        except LinkwrightError as error:
            at = self.where.get(str(getattr(error, "element", ""))) or self.parsed.name or Word(0, 1, "")
            self.problems.add(at, str(error))
            self.problems.fail()
        colours = self.body_colours.items()
        return replace(
            d,
            units=replace(self.scope.units, parameters=tuple(self.scope.parameter_units.items())),
            more_grounds=tuple(self.more_grounds),
            ground_inertia=self.ground_inertia,
            colors=tuple((d.body_name(k), colour) for k, colour in colours),
        )


def _misfit(name: str, value: Value, override: Value) -> str:
    """Why a value from outside is none of a parameter: it has another unit, or none."""
    number, wanted = override.number or 0.0, value.dimension or NUMBER
    if override.dimension is not None:
        return f"{name} is {in_words(wanted)}, and this is {in_words(override.dimension)}"
    if wanted == ANGLE:
        return f"{name} is an angle: write {number:.6g} deg or {math.radians(number):.6g} rad"
    unit = value.expression.unit if isinstance(value.expression, Number) else Units().of(wanted).text
    return f"{name} is {in_words(wanted)}: write {number:.6g} {unit}"


def is_safe_path(file: str) -> bool:
    """Whether a path is relative and stays below the folder that it starts from, on any system."""
    if not file.strip() or re.search(r'[\\:"\0-\x1f]', file) or file.startswith(("/", "~")):
        return False
    return ".." not in file.split("/")


def _choice(item: Item, choices: Mapping[str, T]) -> T:
    """What a value in words stands for."""
    words = words_of(item.value)
    if words is None or words not in choices:
        raise Fault(item.value, f"the {item.key} must be {either(list(choices))}")
    return choices[words]
