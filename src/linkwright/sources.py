"""Where mechanisms come from: files, tables, generators and the builder, each as a `Mechanism`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypedDict, Unpack

from linkwright.base.checks import path_text, shown
from linkwright.errors import LinkwrightError, ModelError
from linkwright.mechanism.description import Description
from linkwright.model import Mechanism
from linkwright.tape.program import Program


class LoadOptions(TypedDict, total=False):
    """The options of model files; each format takes those of its reader."""

    parameters: Mapping[str, float | str]
    base: Literal["fixed", "floating"]
    mimic: Literal["follow", "independent"]
    fixed: Literal["merge", "keep"]
    friction: Literal["ignore", "apply"]
    angles: Literal["exact turns", "as written"]
    equality: Literal["hold", "ignore"]
    actuators: Literal["mark", "apply"]
    keyframe: str | int
    folders: Sequence[str | PathLike[str]]
    trust: bool
    arguments: Mapping[str, Any]


def load(path: str | PathLike[str], **options: Unpack[LoadOptions]) -> Mechanism:
    """The mechanism in a file; options are those of its format.

    `.mks` (parameters={name: value}), `.dh.toml`, `.urdf` (base="fixed"|"floating", mimic="follow"|"independent",
    fixed="merge"|"keep", friction="ignore"|"apply"), `.sdf` and `.world` (base, fixed, friction, angles, folders),
    `.xml`, which is MJCF (fixed, equality, friction, actuators, keyframe, folders), URDF or SDF by its outermost
    element, and `.xacro` (trust=True, arguments={name: value}, and those of URDF).
    """
    from linkwright.formats import read

    file = path_text("a model file", path)
    description = read(file, **options)
    names = [name for name in options.get("parameters") or () if name in description.parameters]
    source = _source(file, description, names, options) if names else None
    return Mechanism(description) if source is None else Mechanism(description, source=source, names=names)


def mechanism_of(model: Any, parameters: Mapping[str, float] | None = None) -> Mechanism:
    """A mechanism itself, or the one in a file, with other values of its parameters where they are given."""
    if isinstance(model, Mechanism):
        return model.with_parameters(**parameters) if parameters else model
    if not isinstance(model, str | PathLike):
        hint = "; call its build() first" if hasattr(model, "build") else ""
        raise ModelError(f"give a mechanism or the path of a model file, not {shown(model)}{hint}")
    # The reader alone knows the parameters that depend on others.
    return load(model, parameters=parameters) if parameters else load(model)


def _source(file: str, description: Description, names: Sequence[str], options: LoadOptions) -> Mechanism | None:
    """The mechanism with the file's own values, if other values of parameters are all that it differs in."""
    from linkwright.formats import read
    from linkwright.mechanism.comparison import alike

    declared: LoadOptions = {**options}
    del declared["parameters"]
    try:
        source = read(file, **declared)
        changed = source.with_parameters({name: description.parameters[name] for name in names})
    except LinkwrightError:  # the file needs these values, or makes other parts with them
        return None
    same = alike(changed, description) and changed.bindings == description.bindings
    return Mechanism(source) if same else None


def from_dh(rows: Any, convention: Literal["standard", "modified"] = "standard", **options: Any) -> Mechanism:
    """A serial mechanism from Denavit–Hartenberg rows: a, alpha, d, theta, kind, mass, com, inertia.

    The convention is "standard" or "modified"; numbers or symbols.
    """
    from linkwright.formats.dh import from_dh as read

    return Mechanism(read(rows, convention=convention, **options))


def chain(n: int, joint: str = "revolute") -> Mechanism:
    """n equal links of 0.1 m and 1 kg, joint axes alternately x and y."""
    from linkwright.mechanism import generate

    return Mechanism(generate.chain(n, joint))


def tree(n: int, branching: int = 2, joint: str = "revolute") -> Mechanism:
    """n such links, each carrying `branching` others."""
    from linkwright.mechanism import generate

    return Mechanism(generate.tree(n, branching, joint))


def random_tree(n: int, seed: int | None = 0, branching: float = 2.0, **options: Any) -> Mechanism:
    """n links with random parents, placements, inertias and joint kinds; the same for the same seed."""
    from linkwright.mechanism import generate

    return Mechanism(generate.random_tree(n, seed, branching, **options))


def load_program(path: str | PathLike[str]) -> Program:
    """A program that `Program.save` wrote."""
    from linkwright.tape.storage import load as read

    return read(path)
