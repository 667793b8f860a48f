"""The description of a mechanism: names and numbers in arrays, and how it looks. Data, no algorithms.

Body −1 is ground. Frames are given by a rotation (3, 3) and an origin (3) in the frame of their body.
A joint joins frame i on its parent body to frame j on its child body.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.errors import NameNotFound
from linkwright.model.curve_elements import Curve, CurveOnCurve
from linkwright.model.elements import Driver, Element, Initial, JointForce, Mimic, PointConstraint, joint_losses
from linkwright.model.expression import Expression
from linkwright.model.joint_kinds import KIND_LIST, KINDS, JointKind
from linkwright.model.placements import body_lengths, length_scale
from linkwright.model.requested_analysis import System
from linkwright.model.units import Units

ShapeKind = Literal["box", "cylinder", "cone", "sphere", "capsule", "mesh"]

#: How many numbers each kind of shape takes, and what they are.
SHAPE_SIZES: dict[ShapeKind, tuple[str, ...]] = {
    "box": ("x", "y", "z"),
    "cylinder": ("radius", "length"),  # centred, along h; so are cones and capsules
    "cone": ("radius", "length"),
    "sphere": ("radius",),
    "capsule": ("radius", "length"),  # length between the centres of its round ends
    "mesh": ("scale",),
}


@dataclass(frozen=True)
class Shape:
    """A shape in the axes of a body or frame, its middle at the origin; a mesh is in the file's own coordinates."""

    name: str
    place: str
    kind: ShapeKind
    size: tuple[Expression, ...]
    color: str = ""  # "#rrggbb", or empty for the viewer's choice
    file: str = ""  # of a mesh: relative to the model file


@dataclass(frozen=True)
class Trace:
    """The path of the origin of a body or frame, to be drawn as a trail."""

    name: str
    place: str
    color: str = ""


def colour_text(rgb: Sequence[float] | Floats) -> str:
    """#rrggbb of red, green and blue from 0 to 1."""
    return "#" + "".join(f"{round(255.0 * x):02x}" for x in rgb)


def colour_numbers(color: str) -> list[float]:
    """Red, green and blue from 0 to 1 of "#rrggbb"."""
    return [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]


Ints = NDArray[np.int32]
GROUND = -1
#: The acceleration of free fall of a mechanism that gives none (m/s²).
FREE_FALL = (0.0, 0.0, -9.81)
#: Names for ground, of which a file's own names leave one free.
GROUND_NAMES = ("ground", "world", "universe", "the ground")


class Names(Sequence[str]):
    """Names kept, or made from a stem and a number when asked for."""

    def __init__(self, names: Sequence[str] | None = None, *, stem: str = "", count: int = 0) -> None:
        self._names = None if names is None else tuple(names)
        self._stem, self._count = stem, count

    def __len__(self) -> int:
        return self._count if self._names is None else len(self._names)

    @overload
    def __getitem__(self, k: int) -> str: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[str]: ...
    def __getitem__(self, k: int | slice) -> str | Sequence[str]:
        if self._names is not None:
            return self._names[k]
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(self._count))]
        if not -self._count <= k < self._count:
            raise IndexError(k)
        return f"{self._stem}{k % self._count + 1}"

    def __iter__(self) -> Iterator[str]:
        return iter(self._names) if self._names is not None else (self[k] for k in range(self._count))

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self._names or ())}

    @property
    def generated(self) -> bool:
        """Whether the names come from a stem and a number: no two of those are the same."""
        return self._names is None

    def find(self, name: str) -> int | None:
        """The position of a name, or None."""
        if self._names is not None:
            return self._positions.get(name)
        number = name[len(self._stem) :] if name.startswith(self._stem) else ""
        if number.isdecimal() and str(int(number)) == number and 1 <= int(number) <= self._count:
            return int(number) - 1
        return None

    def position(self, kind: str, name: str) -> int:
        """The position of a name; an error that offers the close ones if there is none."""
        position = self.find(name)
        if position is None:
            raise NameNotFound(kind, name, list(self[:2000]))
        return position

    def key(self) -> str:
        """A text that tells two lists of names apart."""
        return f"{self._stem}*{self._count}" if self._names is None else "\0".join(self._names)


@dataclass(frozen=True, eq=False)
class Frames:
    """Named frames on bodies, besides the bodies' own: links that were merged, tools, frames."""

    names: Names = field(default_factory=lambda: Names(()))
    body: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    r: Floats = field(default_factory=lambda: np.zeros((0, 3, 3)))
    p: Floats = field(default_factory=lambda: np.zeros((0, 3)))


@dataclass(frozen=True, eq=False)
class Start:
    """Where the bodies are drawn, in ground's axes: a rough start for assembly. A row counts where `placed` says so."""

    placed: NDArray[np.bool_]
    r: Floats
    p: Floats


@dataclass(frozen=True, eq=False)
class Description:
    """What a mechanism is. Arrays have one row per body or one row per joint, in the order of the file.

    Nothing in it can be changed, so that its digest stays true: arrays that could be written are copied.
    """

    name: str
    body_names: Names
    mass: Floats
    com: Floats
    inertia: Floats  # about the centre of mass, body axes: xx, yy, zz, xy, xz, yz
    joint_names: Names
    kind: Ints  # number in KIND_LIST
    parent: Ints  # body of frame i
    child: Ints  # body of frame j
    ri: Floats
    pi: Floats
    rj: Floats
    pj: Floats
    pitch: Floats
    armature: Floats  # added to the diagonal of the mass matrix at each of the joint's rates
    lower: Floats
    upper: Floats
    velocity_limit: Floats
    effort_limit: Floats
    damping: Floats
    friction: Floats
    frames: Frames = field(default_factory=Frames)
    gravity: Floats = field(default_factory=lambda: np.array(FREE_FALL))
    mimics: tuple[Mimic, ...] = ()
    elements: tuple[Element, ...] = ()
    drivers: tuple[Driver, ...] = ()
    point_constraints: tuple[PointConstraint, ...] = ()
    start: Start | None = None  # None: bodies are where the neutral coordinates of the tree put them
    initial: tuple[Initial, ...] = ()  # values that quantities have in the initial state
    system: System | None = None
    shapes: tuple[Shape, ...] = ()
    traces: tuple[Trace, ...] = ()
    curves: tuple[Curve, ...] = ()
    contacts: tuple[CurveOnCurve, ...] = ()  # of curves, by their parts among the point constraints
    colors: tuple[tuple[str, str], ...] = ()  # of bodies, ground included, that have one: name and "#rrggbb"
    folder: str = ""  # of the model file: where meshes are
    cuts: frozenset[int] = frozenset()  # joints that the user wants as loop constraints
    passive: frozenset[int] = frozenset()  # joints without an actuator
    parameters: Mapping[str, float] = field(default_factory=dict)
    bindings: Mapping[tuple[str, int], Expression] = field(default_factory=dict)
    ground_name: str = "ground"
    more_grounds: tuple[str, ...] = ()  # frames on ground that the model file calls ground bodies too
    ground_inertia: tuple[float, Floats, Floats] | None = None
    units: Units = field(default_factory=Units)  # in which it was written, and is shown; every number here is SI

    def __post_init__(self) -> None:
        done: dict[int, Any] = {}  # one array that serves twice stays one

        def still(array: Any) -> Any:
            if id(array) not in done:
                done[id(array)] = _read_only(array)
            return done[id(array)]

        f = self.frames
        changed = {name: still(getattr(self, name)) for name in (*ARRAYS, "gravity")}
        changed["frames"] = replace(f, body=still(f.body), r=still(f.r), p=still(f.p))
        if self.start is not None:
            s = self.start
            changed["start"] = Start(still(s.placed), still(s.r), still(s.p))
        if self.ground_inertia is not None:
            mass, com, inertia = self.ground_inertia
            changed["ground_inertia"] = (mass, still(com), still(inertia))
        for name in ("parameters", "bindings"):
            changed[name] = MappingProxyType(dict(getattr(self, name)))
        for name, value in changed.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # Made anew from its fields: views of mappings cannot be pickled, and arrays come back writable.
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values.update(parameters=dict(self.parameters), bindings=dict(self.bindings))
        return _made, (type(self), values)

    @property
    def nb(self) -> int:
        return len(self.mass)

    @property
    def nj(self) -> int:
        return len(self.kind)

    @property
    def frame_r(self) -> Floats:
        """The frames' rotations, under the name that bindings use."""
        return self.frames.r

    @property
    def frame_p(self) -> Floats:
        """The frames' origins, under the name that bindings use."""
        return self.frames.p

    @property
    def start_r(self) -> Floats:
        """The rotations of the bodies as drawn, under the name that bindings use."""
        return np.zeros((0, 3, 3)) if self.start is None else self.start.r

    @property
    def start_p(self) -> Floats:
        """The origins of the bodies as drawn, under the name that bindings use."""
        return np.zeros((0, 3)) if self.start is None else self.start.p

    @property
    def gear(self) -> Floats:
        """The ratio and offset of every coupling, under the name that bindings use."""
        return np.array([(m.ratio, m.offset) for m in self.mimics]).reshape(-1, 2)

    @property
    def leaders(self) -> dict[int, tuple[int, float, float]]:
        """The leader of every follower, ratio and offset."""
        return {m.follower: (m.leader, m.ratio, m.offset) for m in self.mimics}

    def body_name(self, body: int) -> str:
        """The name of a body by its number; −1 is ground."""
        return self.ground_name if body == GROUND else self.body_names[body]

    def kind_of(self, joint: int) -> JointKind:
        return KIND_LIST[int(self.kind[joint])]

    def find_frame(self, name: str) -> tuple[int, int | None] | None:
        """The body of a frame by name and its number in `frames`, None for a body's own and ground's; None without."""
        body = GROUND if name == self.ground_name else self.body_names.find(name)
        if body is not None:
            return body, None
        k = self.frames.names.find(name)
        return None if k is None else (int(self.frames.body[k]), k)

    def frame_number(self, name: str, what: str = "body or frame") -> tuple[int, int | None]:
        """As `find_frame`; an error that offers the close names if there is none, `what` being how it calls them."""
        numbers = self.find_frame(name)
        if numbers is None:
            raise NameNotFound(what, name, [*self.body_names[:2000], *self.frames.names[:2000], self.ground_name])
        return numbers

    def frame(self, name: str) -> tuple[int, Floats, Floats]:
        """The body, rotation and origin of a frame by name: a body's own, ground's, or a further one."""
        body, k = self.frame_number(name)
        return (body, np.eye(3), np.zeros(3)) if k is None else (body, self.frames.r[k], self.frames.p[k])

    def side(self, joint: int, side: Literal["i", "j"]) -> tuple[int, Floats, Floats]:
        """The body of a joint's frame i or j, and the frame's rotation and origin there."""
        if side == "i":
            return int(self.parent[joint]), self.ri[joint], self.pi[joint]
        return int(self.child[joint]), self.rj[joint], self.pj[joint]

    def losses(self, joint: int) -> tuple[JointForce, ...]:
        """The forces that a joint's damping and friction are, where they act."""
        numbers = float(self.damping[joint]), float(self.friction[joint])
        return joint_losses(self.joint_names[joint], self.kind_of(joint).nv, *numbers)

    @cached_property
    def body_lengths(self) -> Floats:
        """(nb,): a length (m) for each body: the root mean square of its frames' distances from its origin."""
        lengths: Floats = sealed(body_lengths(self))
        return lengths

    @cached_property
    def length_scale(self) -> float:
        """A length (m) that is typical for the mechanism: every tolerance of a gap or a shift is a part of it."""
        return float(length_scale(self))

    @cached_property
    def digest(self) -> str:
        """A hash of everything that results depend on."""
        h = hashlib.sha256()
        for name in ARRAYS:
            array = getattr(self, name)
            h.update(f"{name}{array.shape}{array.dtype}".encode())
            for k in range(0, len(array), 2**13):  # an array that repeats one row is laid out in parts
                h.update(np.ascontiguousarray(array[k : k + 2**13]).data.cast("B"))
        for array in (self.frames.body, self.frames.r, self.frames.p, self.gravity, self.start_r, self.start_p):
            h.update(np.ascontiguousarray(array).tobytes())
        texts = (
            self.body_names.key(),
            self.joint_names.key(),
            self.frames.names.key(),
            repr((self.mimics, self.elements, self.drivers, self.point_constraints, self.initial)),
            repr((sorted(self.cuts), sorted(self.passive), sorted(self.parameters.items()))),
            repr(sorted((k, repr(e)) for k, e in self.bindings.items())),
            self.ground_name,
            repr([np.asarray(part).tolist() for part in self.ground_inertia or ()]),
        )
        for text in texts:
            h.update(text.encode())
            h.update(b"\1")
        return h.hexdigest()


#: The arrays of a description, one row per body or joint.
BODY_ARRAYS = ("mass", "com", "inertia")
LIMITS = ("lower", "upper", "velocity_limit", "effort_limit")
LOSSES = ("damping", "friction")
JOINT_ARRAYS = ("kind", "parent", "child", "ri", "pi", "rj", "pj", "pitch", "armature", *LIMITS, *LOSSES)
ARRAYS = BODY_ARRAYS + JOINT_ARRAYS


def with_gears(mimics: tuple[Mimic, ...], gear: Floats) -> tuple[Mimic, ...]:
    """Couplings with these ratios and offsets."""
    rows = gear.tolist()
    return tuple(replace(m, ratio=ratio, offset=offset) for m, (ratio, offset) in zip(mimics, rows, strict=True))


def _read_only(array: Any) -> Any:
    """An array that cannot be written: itself, or a copy if it could be."""
    array = np.asarray(array)
    return sealed(array.copy()) if array.flags.writeable else array


def sealed(array: Any) -> Any:
    """An array that nobody else holds, as one that cannot be written."""
    array.setflags(write=False)
    return array.view()  # whose base is read-only: a flag on it cannot be set back


def _made(kind: type[Description], values: dict[str, Any]) -> Description:
    return kind(**values)


def kind_number(name: str) -> int:
    """The number of a joint kind; `translational` is `prismatic`."""
    name = "prismatic" if name == "translational" else name
    if not isinstance(name, str) or name not in KINDS:
        raise NameNotFound("joint kind", str(name), list(KINDS))
    return list(KINDS).index(name)


def joint_defaults(n: int) -> dict[str, Any]:
    """The joint arrays that most joints leave alone."""
    eye = np.broadcast_to(np.eye(3), (n, 3, 3))
    zero3, zero = np.broadcast_to(np.zeros(3), (n, 3)), np.broadcast_to(0.0, (n,))
    inf = np.broadcast_to(np.inf, (n,))
    return {
        "ri": eye,
        "pi": zero3,
        "rj": eye,
        "pj": zero3,
        "pitch": zero,
        "armature": zero,
        "lower": np.broadcast_to(-np.inf, (n,)),
        "upper": inf,
        "velocity_limit": inf,
        "effort_limit": inf,
        "damping": zero,
        "friction": zero,
    }
