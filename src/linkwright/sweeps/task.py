"""What every case of a study has in common, as plain data: model, swept parameters, outputs, analysis; and the batch
of values that comes back.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.analysis.analyse import KINDS, analyse
from linkwright.base.arguments import check_names, path_text
from linkwright.base.locks import cached_property
from linkwright.errors import FormatError, LinkwrightError, MksError, ModelError, NameNotFound
from linkwright.formats.model_files import check_file
from linkwright.mechanism import Mechanism, load
from linkwright.model.requested_analysis import FREEDOMS, SIMULATION_METHODS
from linkwright.outputs.output_language import AnalysisSettings, kind_of, named, times_asked
from linkwright.results.solution import Solution
from linkwright.simulation.run_settings import Stepping
from linkwright.sweeps.plan import Plan

if TYPE_CHECKING:
    from linkwright.formats.mks.mks_reader import ModelText

MISSING = "not computed"  # the reason of a case whose chunk is not there


@dataclass(frozen=True, eq=False)
class Batch:
    """`arrays` by output, each (n, ...) with NaN where a case has no value; `reasons` are empty for good cases."""

    arrays: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.reasons)


def sentence(error: Exception) -> str:
    """The message of an error, on one line; of a model's text without the carets."""
    if isinstance(error, MksError):
        parts = [
            f"{p.message} ({p.excerpt.splitlines()[0].strip()})" if p.excerpt else p.message for p in error.problems
        ]
        return "; ".join(" ".join(part.split()) for part in parts)
    return " ".join(str(error).split()) or type(error).__name__


def reason_of(call: Callable[..., Any], *arguments: Any) -> str:
    """Why a call is refused, empty if it is not."""
    try:
        call(*arguments)
    except LinkwrightError as error:
        return sentence(error)
    return ""


def gathered(task: Task, plan: Plan, batches: dict[int, Batch]) -> Batch:
    """All cases in their order, with the chunks taken out of `batches`: no number is twice in memory.

    Those of chunks that are not there are failures with a reason.
    """
    shapes = {**dict.fromkeys(task.all_outputs, ()), **_shapes(batches.values())}
    arrays = {name: np.empty((len(plan), *shape)) for name, shape in shapes.items()}
    reasons: list[str] = []
    for index in range(plan.chunks):
        part = plan.part(index)
        batch = batches.pop(index, None) or Batch({}, [MISSING] * (part.stop - part.start))
        reasons += batch.reasons
        for name, array in arrays.items():
            x = batch.arrays.get(name)
            array[part] = x if x is not None and x.shape[1:] == array.shape[1:] else np.nan
    return Batch(arrays, reasons)


def joined(parts: list[Batch]) -> Batch:
    """Batches one after the other; an output that a part lacks is NaN there."""
    if len(parts) == 1:
        return parts[0]
    shapes = _shapes(parts)
    arrays: dict[str, NDArray[np.float64]] = {}
    for name, shape in shapes.items():
        rows: list[Any] = [_rows(part.arrays.get(name), len(part), shape) for part in parts]
        arrays[name] = np.concatenate(rows)
    return Batch(arrays, [reason for part in parts for reason in part.reasons])


def _shapes(parts: Iterable[Batch]) -> dict[str, tuple[int, ...]]:
    """The shapes of the outputs of a case."""
    shapes: dict[str, tuple[int, ...]] = {}
    for part in parts:
        for name, x in part.arrays.items():
            known = shapes.setdefault(name, x.shape[1:])
            # A part in which no case came far enough does not know how many numbers there would have been.
            shapes[name] = x.shape[1:] if len(x.shape[1:]) > len(known) else known
    return shapes


def _rows(x: NDArray[np.float64] | None, n: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
    if x is not None and x.shape[1:] == shape:
        return x
    return np.full((n, *shape), np.nan)


#: What an output may be: a text in the language of models, or a function of a case's `Solution`.
Output = str | Callable[["Solution"], float]
#: Settings of analyses and simulations that are plain numbers and words.
SETTINGS = ("freedom", "method", "rtol", "atol", "dt")
_WRITTEN = "<the mechanism as a text>"
_UNNAMED = "<the study's model>"  # in messages of cases, which are the same wherever they are computed
#: Names that the dataset of a study has for itself.
TAKEN = ("case", "time", "reason", "ok", "header")


class CaseReader:
    """A model's text, parsed once, and its mechanisms at values of the swept parameters and others that are fixed.

    The reader alone knows the parameters that depend on others: a value of its own makes one of them independent.
    """

    def __init__(self, text: ModelText, swept: Sequence[str], fixed: Mapping[str, float]) -> None:
        self.text, self.swept, self.fixed = text, tuple(swept), fixed

    @cached_property
    def _own(self) -> dict[str, float]:
        """The swept parameters, by their names in the model, at the model's own values."""
        values = self.text.parameter_values(self.fixed)
        spelled = {name.lower(): name for name in values}
        for name in self.swept:
            if name.lower() not in spelled:
                raise NameNotFound("parameter", name, list(values))
        for name in self.text.fixed_parameters(self.fixed).keys() & {name.lower() for name in self.swept}:
            text = f"{spelled[name]!r} says how much is repeated in the model, which is fixed when it is read"
            advice = f"sweep other parameters, with sampling=lw.Sampling(fixed={{{spelled[name]!r}: 8}})"
            raise ModelError(f"{text}; {advice}", element=spelled[name])
        values_by_name = {spelled[name.lower()]: values[spelled[name.lower()]] for name in self.swept}
        if len(values_by_name) < len(self.swept):
            raise ModelError(f"a parameter is swept twice, in other letters: {', '.join(self.swept)}; name it once")
        return values_by_name

    @property
    def names(self) -> tuple[str, ...]:
        """The swept parameters as the model spells them."""
        return tuple(self._own)

    @cached_property
    def base(self) -> Mechanism:
        """The mechanism with all swept parameters independent, each at the model's own value."""
        return Mechanism(self.text.description({**self.fixed, **self._own}))

    def mechanism(self, values: ArrayLike | None = None) -> Mechanism:
        """The mechanism of one case; without values, with the swept parameters as the model has them."""
        row = {} if values is None else dict(zip(self.swept, np.asarray(values, float).tolist(), strict=True))
        return Mechanism(self.text.description({**self.fixed, **row}, file=_UNNAMED))


@dataclass(frozen=True, eq=False)
class Task:
    """One study's question, but for the values: `model` is a text in `.mks`, `names` are the swept parameters.

    `outputs` are pairs of a name and an expression; `functions` are outputs that Python computes from a `Solution`,
    which stay in the process that made the task. `times` are the points of every case, and `settings` go to
    `lw.analyse`. All but the functions is plain data, which travels as JSON.
    """

    model: str
    names: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]
    analysis: str
    times: tuple[float, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, float] = field(default_factory=dict)  # those that have one value other than the model's
    folder: str = ""  # where the model's meshes are
    functions: Mapping[str, Callable[[Any], float]] = field(default_factory=dict)
    read: CaseReader | None = None  # of the process that made the task, which has parsed the model

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "model": self.model,
            "names": list(self.names),
            "outputs": [list(pair) for pair in self.outputs],
            "analysis": self.analysis,
            "times": list(self.times),
            "settings": dict(self.settings),
            "parameters": dict(self.parameters),
            "folder": self.folder,
            "functions": {name: _print_of(f) for name, f in self.functions.items()},
        }

    @classmethod
    def of(cls, plain: Any) -> Task:
        """The task of plain data, which may come from a file; functions are left out."""
        try:
            task = cls(
                _text(plain["model"]),
                tuple(_text(x) for x in plain["names"]),
                tuple((_text(name), _text(expression)) for name, expression in plain["outputs"]),
                _text(plain["analysis"]),
                tuple(_number(x) for x in plain["times"]),
                _settings(plain["settings"]),
                {_text(name): _number(x) for name, x in plain["parameters"].items()},
                _text(plain["folder"]),
            )
        except ValueError as error:
            raise FormatError(f"has no task of a study ({error})") from error
        except (LookupError, TypeError, AttributeError) as error:
            raise FormatError("has no task of a study") from error
        check_names("analysis", [task.analysis], KINDS)
        return task

    @cached_property
    def digest(self) -> str:
        """The same for the same question, wherever the model's meshes are."""
        plain = self.plain()
        del plain["folder"]
        return digest_of(plain)

    @property
    def all_outputs(self) -> tuple[str, ...]:
        """The names of outputs, those of functions last."""
        return (*(name for name, _ in self.outputs), *self.functions)

    @cached_property
    def reader(self) -> CaseReader:
        """The model's text, which is parsed once."""
        from linkwright.formats.mks.mks_reader import ModelText  # weight: lark

        text = ModelText(self.model, _UNNAMED, self.folder)
        return self.read or CaseReader(text, self.names, self.parameters)

    def solution(self, values: ArrayLike) -> Solution:
        """One case on its own, as `lw.analyse` does it."""
        return analyse(
            self.reader.mechanism(values), times=self.times, analysis=self.analysis, **self.analysis_settings
        )

    @property
    def analysis_settings(self) -> dict[str, Any]:
        """The settings as keyword arguments of `lw.analyse`."""
        settings = dict(self.settings)
        atol = settings.pop("atol", None)
        return settings if atol is None else {**settings, "stepping": Stepping(atol=atol)}


def digest_of(plain: Any) -> str:
    """A digest of plain data."""
    return hashlib.sha256(json.dumps(plain, sort_keys=True, allow_nan=False).encode()).hexdigest()


def make_task(
    model: Mechanism | str | os.PathLike[str],
    names: Sequence[str],
    outputs: Any = None,
    *,
    analysis: str | AnalysisSettings | None = None,
    times: ArrayLike | None = None,
    parameters: Mapping[str, float] | None = None,
) -> Task:
    """The task of a mechanism or a model file; the model has what is not given."""
    text = _model(model)
    fixed = {name: float(x) for name, x in (parameters or {}).items()}
    asked: dict[str, Output] = {} if outputs is None else named(outputs)
    expressions = tuple((name, x.strip()) for name, x in asked.items() if isinstance(x, str))
    functions = {name: x for name, x in asked.items() if not isinstance(x, str)}
    reader = CaseReader(text, names, fixed)
    try:
        d = reader.base.description
    except MksError as error:
        raise error if error.file != _WRITTEN else _unwritten(error) from error
    settings = AnalysisSettings.of(analysis)
    kind = kind_of(d, settings)
    when = tuple(times_asked(d, kind, times).tolist())
    if kind == "static" and not reader.base.programs.needs_time:
        when = when[:1]
    if outputs is None:
        expressions = tuple((f"{body}.{x}",) * 2 for body in d.body_names[:_DEFAULT_BODIES] for x in "xyz")
    _check_names(names, (*(name for name, _ in expressions), *functions))
    chosen = _settings(settings.chosen)
    plain = (text.text, tuple(names), expressions, kind, when, chosen, fixed, text.folder)
    return Task(*plain, functions, reader)


_DEFAULT_BODIES = 20


def _check_names(names: Sequence[str], outputs: Sequence[str]) -> None:
    for name in names:
        if name in TAKEN:
            text = f"a parameter named {name!r} cannot be swept: the dataset of a study has a {name!r}"
            raise ModelError(f"{text}; rename it in the model")
    for name in outputs:
        if name in TAKEN or name in names:
            what = "of the study's dataset" if name in TAKEN else "of a swept parameter"
            raise ModelError(f"the output {name!r} has a name {what}; give it another, as in 'my_{name} = ...'")


def _model(model: Mechanism | str | os.PathLike[str]) -> ModelText:
    """The text of a model."""
    from linkwright.formats.mks.mks_reader import ModelText  # weight: lark
    from linkwright.formats.mks.mks_writer import write_mks

    if not isinstance(model, Mechanism):
        path = path_text("a model file", model)
        if path.lower().endswith(".mks"):
            check_file(path)
            text = ModelText.of_file(path)
            text.folder = str(Path(path).resolve().parent)  # workers have other folders of their own
            return text
        model = load(path)
    d = model.description
    try:
        return ModelText(write_mks(d), _WRITTEN, d.folder)
    except LinkwrightError as error:
        raise _unwritten(error) from error


def _unwritten(error: LinkwrightError) -> ModelError:
    text = f"the mechanism cannot be written as a model text, which every worker of a study gets ({error})"
    return ModelError(f"{text}; give the path of its model file")


def _settings(plain: Mapping[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, value in plain.items():
        check_names("setting", [name], SETTINGS)
        settings[name] = _text(value) if name in ("freedom", "method") else _number(value)
    check_names("value of freedom", [settings.get("freedom", FREEDOMS[0])], FREEDOMS)
    check_names("method", [settings.get("method", SIMULATION_METHODS[0])], SIMULATION_METHODS)
    return settings


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise TypeError(f"{value!r} is no finite number")
    return float(value)


def _print_of(function: Callable[[Any], float]) -> str:
    """What distinguishes two functions between two runs: the name, the code, and the plain values that it holds."""
    code = getattr(function, "__code__", None)
    held = [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if _is_filled(cell)]
    held += [*(getattr(function, "__defaults__", None) or ())]
    content = b"" if code is None else _code_print(code) + _plain_print(held)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{name} {hashlib.sha256(content).hexdigest()[:16]}"


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _code_print(code: CodeType) -> bytes:
    inner = b"".join(_code_print(x) for x in code.co_consts if isinstance(x, CodeType))
    return code.co_code + repr(code.co_names).encode() + _plain_print(code.co_consts) + inner


def _plain_print(values: Iterable[Any]) -> bytes:
    """Of numbers and texts; others have no print that stays the same from run to run."""
    return repr([x for x in values if isinstance(x, int | float | complex | str | bytes)]).encode()
