"""What study a folder holds: its task, its plan and the values of its cases, as files that are looked at before they
are believed.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from linkwright import __version__
from linkwright.base.arrays import Floats, array_of
from linkwright.base.files import open_regular, write_bytes
from linkwright.errors import FormatError, LinkwrightError
from linkwright.results.solution_files import DAMAGE
from linkwright.sweeps.plan import Plan, is_recipe
from linkwright.sweeps.task import Task, digest_of

FORMAT, VERSION = "linkwright study", 1
MANIFEST, VALUES = "manifest.json", "values.npy"
_LARGEST_TEXT = 64 * 2**20
_ANEW = "overwrite=True begins the study anew"
#: What a study is made of, in the words of messages.
_WORDS = {
    "model": "the model",
    "names": "the swept parameters",
    "outputs": "the outputs",
    "analysis": "the kind of analysis",
    "times": "the times",
    "settings": "the settings",
    "parameters": "the other parameters",
    "cases": "the number of cases",
    "crossed": "how grid and draws are put together",
    "sampling": "the sampling",
    "seed": "the seed",
}


def study_digest(task: Task, plan: Plan) -> str:
    """The same for the same question and the same cases."""
    return digest_of([task.digest, plan.digest])


def header_of(task: Task, plan: Plan) -> dict[str, Any]:
    """A study's task and plan as plain data, with the format and the version of Linkwright."""
    recipe = {"recipe": dict(plan.recipe), "names": list(plan.names), "chunk": plan.chunk}
    head = {"format": FORMAT, "version": VERSION, "linkwright": __version__}
    return {**head, "task": task.plain(), "plan": recipe}


def write_manifest(folder: Path, task: Task, plan: Plan) -> None:
    """Write what a study is; the manifest last, since a folder with one is a study's."""
    values = io.BytesIO()
    np.save(values, plan.values, allow_pickle=False)
    write_bytes(folder / VALUES, values.getbuffer(), links=False)
    manifest = header_of(task, plan) | {"study": study_digest(task, plan)}
    manifest["plan"]["digest"] = plan.digest
    write_bytes(folder / MANIFEST, json.dumps(manifest, indent=1, allow_nan=False).encode("ascii"), links=False)


def is_manifest(file: Path) -> bool:
    """Whether a file is a study's manifest, or what is left of one; others have files of this name too."""
    try:
        with open_regular(file, links=False) as stream:
            begin = stream.read(64 * 1024)
    except OSError:
        return False
    return not begin or FORMAT.encode() in begin


def read_manifest(folder: Path) -> tuple[Task, Plan, str]:
    """The task, the plan and the digest of a study's folder."""
    file = folder / MANIFEST
    try:
        with open_regular(file, links=False) as stream:
            content = stream.read(_LARGEST_TEXT + 1)
        if len(content) > _LARGEST_TEXT:
            raise FormatError("is too large for a study's manifest; choose another folder", file=str(file))
        manifest = json.loads(content.decode("ascii"))
        if manifest["format"] != FORMAT or manifest["version"] != VERSION:
            raise FormatError(f"is not of the format {FORMAT!r}, version {VERSION}; {_ANEW}", file=str(file))
        file = folder / VALUES
        values = _values(file)
        file = folder / MANIFEST
        task = Task.of(manifest["task"])
        plan = plan_of(manifest["plan"], values)
        if plan.digest != manifest["plan"]["digest"] or plan.names != task.names:
            raise FormatError(f"does not fit the values beside it; {_ANEW}", file=str(file))
        study = str(manifest["study"])
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}; is this a study's folder?", file=str(file)) from error
    except FormatError as error:
        if error.file is not None:
            raise
        raise FormatError(f"{error}; {_ANEW}", file=str(file)) from error
    except LinkwrightError as error:  # of a task with values that no study has
        raise FormatError(f"is no study's ({error}); {_ANEW}", file=str(file)) from error
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise FormatError(f"does not have the entries of a study's manifest; {_ANEW}", file=str(file)) from error
    except DAMAGE as error:
        reason = str(error).partition(";")[0]  # without the advice to programmers after it
        raise FormatError(f"is damaged ({reason}); {_ANEW}", file=str(file)) from error
    return task, plan, study


def plan_of(plain: Any, values: Floats) -> Plan:
    """A plan from plain data and its values."""
    recipe, chunk, names = plain["recipe"], plain["chunk"], plain["names"]
    fits = (
        is_recipe(recipe)
        and type(chunk) is int
        and chunk > 0
        and isinstance(names, list)
        and all(isinstance(name, str) for name in names)
        and values.ndim == 2
        and values.shape[1] == len(names)
        and bool(np.isfinite(values).all())
    )
    if not fits:
        raise FormatError("has no plan of a study")
    values.flags.writeable = False
    return Plan(tuple(names), values, recipe, chunk)


def differences(task: Task, plan: Plan, other: Task, asked: Plan) -> list[str]:
    """What of a stored study is not as asked, in words."""
    words = _differing(task.plain(), other.plain())
    words += _differing(
        {k: x for k, x in plan.recipe.items() if k != "parameters"},
        {k: x for k, x in asked.recipe.items() if k != "parameters"},
    )
    mine, yours = plan.recipe["parameters"], asked.recipe["parameters"]
    return words + [f"the values of {name!r}" for name in yours if name in mine and mine[name] != yours[name]]


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    return [word for key, word in _WORDS.items() if key in b and a.get(key) != b[key]]


def _values(path: Path) -> Floats:
    with open_regular(path, links=False) as file:
        content = file.read(os.fstat(file.fileno()).st_size)
    values = array_of(content)
    if values.dtype != np.float64:
        raise FormatError(f"has values of type {values.dtype}; {_ANEW}", file=str(path))
    return values
