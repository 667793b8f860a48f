"""A mechanism described in Python, piece by piece; every misuse is an error at the line that makes it."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np

from linkwright.base.arguments import numbered_name
from linkwright.errors import ModelError
from linkwright.model.builder_bushings import Bushings
from linkwright.model.builder_couplings import Couplings
from linkwright.model.builder_curves import Curves
from linkwright.model.builder_friction import Frictions
from linkwright.model.builder_parts import LAW_VARIABLES, Body, Frame, Joint, name_of, packed_inertia, put
from linkwright.model.builder_scopes import PartNames
from linkwright.model.curve_contacts import fitted_curves
from linkwright.model.curve_elements import parts_of_curves
from linkwright.model.description import (
    FREE_FALL,
    GROUND,
    Description,
    Frames,
    Names,
    Start,
    joint_defaults,
    kind_number,
    with_gears,
)
from linkwright.model.elements import Array, as_numbers, is_bound, joint_losses, plain_numbers, split_bindings
from linkwright.model.expression import Expression, Name
from linkwright.model.gear_pairs import fitted
from linkwright.model.joint_kinds import KIND_LIST, KINDS
from linkwright.model.model_checks import check_numbers
from linkwright.model.placements import axes_of, axis_frame, difference, product, snapped
from linkwright.model.quantities import Numeric


class Builder(Curves, Couplings, Bushings, Frictions, PartNames):
    """Collects bodies, frames, joints, drivers and forces; `description()` checks them and gives the description.

    Any number may be an expression of parameters (`length = b.parameter("length", 0.3)`, then `length / 2`):
    its value is used, and its expression is kept as a binding. Bodies, frames and joints may be given as the
    objects that the methods return, or by name.

    >>> b = lw.Builder("crank")
    >>> length = b.parameter("length", 0.3)
    >>> hinge = b.joint("revolute", b.ground, b.body("crank", 1.0, com=(length / 2, 0, 0)), "hinge")
    >>> motor = b.driver("joint", hinge, lambda t: 2.0 * t + 0.1 * np.sin(t))
    >>> rod = b.shape("crank", "capsule", (0.02, length), "#4682b4")
    >>> dict(b.description().parameters)
    {'length': 0.3}
    """

    def __init__(self, name: str = "mechanism", *, ground: str = "ground") -> None:
        super().__init__(ground)
        self.name = name
        self._body_rows: list[tuple[Array, Array, Array]] = []
        self._unphysical: set[int] = set()  # bodies whose inertia is taken as it is
        self._losses: set[str] = set()  # forces that joints' own damping and friction are; they go first
        self._gravity: Any = np.array(FREE_FALL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A block that failed raises its own error; a finished one is checked as a whole.
        if error is None:
            self.description()

    # -- numbers ------------------------------------------------------------------------------------------
    def parameter(self, name: str, value: float) -> Name:
        """A named number, to be used in other numbers and in laws.

        - `name`: letters, digits and underscores, beginning with a letter; not TIME.
        - `value`: a finite number in SI units, angles in radians.

        Returns the `Name`, with which arithmetic makes expressions. Raises `ModelError` for a name that is taken, that
        is no identifier, or that laws of forces use (q, v, d, dd) when there are forces already.

        >>> b = lw.Builder()
        >>> length = b.parameter("length", 0.3)
        >>> link = b.body("link", mass=2.0, com=(0, 0, length / 2))
        """
        if not name.isidentifier() or name == "TIME":
            text = f"{name!r} cannot name a parameter; use a letter, then letters and digits, and not TIME"
            raise ModelError(text, element=name)
        if name in LAW_VARIABLES and self._forces:
            raise ModelError(f"{name!r} means a coordinate in the laws of forces; choose another name", element=name)
        if name in self._parameters:
            raise ModelError(f"there is a parameter {name!r} already; choose another name", element=name)
        self._parameters[name] = float(plain_numbers(value, (), f"parameter {name!r}"))
        return Name(name)

    def gravity(self, vector: Any) -> None:
        """The acceleration of free fall.

        - `vector`: three numbers or expressions in ground's axes (m/s²); without a call they are (0, 0, −9.81).

        Raises `ModelError` for anything else.

        >>> lw.Builder().gravity((0, -9.81, 0))
        """
        self._gravity = as_numbers(vector, (3,), "gravity")

    # -- bodies and frames --------------------------------------------------------------------------------
    def body(
        self,
        name: str,
        mass: Numeric = 0.0,
        com: Any = (0.0, 0.0, 0.0),
        inertia: Any = (0.0, 0.0, 0.0),
        *,
        unphysical: bool = False,
    ) -> Body:
        """A body with mass, centre of mass and inertia about it, all in the body frame.

        - `name`: unlike those of all bodies and frames.
        - `mass` (kg): a number or expression; 0.
        - `com` (m): three of them; the body's origin.
        - `inertia` (kg m²) about the centre of mass: xx, yy, zz; or xx, yy, zz, xy, xz, yz; or a symmetric 3×3; zeros.
        - `unphysical`: take plain numbers as they are even if no body can have them, as measured ones may be; False.

        Returns the `Body`. Raises `ModelError` for a name that is taken and for numbers of another shape; whether a
        body can have the inertia is checked with the whole mechanism.

        >>> b = lw.Builder()
        >>> b.body("link", 2.0, com=(0, 0, 0.1), inertia=(0.01, 0.01, 0.002)).name
        'link'
        """
        self._new_place(name)
        row = (
            as_numbers(mass, (), f"mass of {name!r}"),
            as_numbers(com, (3,), f"com of {name!r}"),
            packed_inertia(inertia, name),
        )
        if unphysical and is_bound(row[2]):
            text = f"inertia of {name!r} has symbols and is unphysical; give plain numbers, or leave out unphysical"
            raise ModelError(text, element=name)
        if unphysical:
            self._unphysical.add(len(self._body_rows))
        self._bodies[name] = Body(name, len(self._body_rows))
        self._body_rows.append(row)
        return self._bodies[name]

    def triad(
        self,
        body: Body | str,
        origin: Any = (0.0, 0.0, 0.0),
        h: Any = (0.0, 0.0, 1.0),
        f: Any = (1.0, 0.0, 0.0),
        name: str | None = None,
    ) -> Frame:
        """A frame on a body: z along h, x along the part of f that is perpendicular to h.

        - `body`: a `Body`, or the name of one.
        - `origin` (m): three numbers or expressions in the body frame; its origin.
        - `h`, `f`: directions in the body frame, of any length; z and x.
        - `name`: unlike those of all bodies and frames; a frame without a name can be used as an object only.

        Returns the `Frame`. Raises `NameNotFound` for an unknown body, `ModelError` where h and f are parallel or zero.

        >>> b = lw.Builder()
        >>> tip = b.triad(b.body("link", 1.0), origin=(0, 0, 0.3), h=(0, 1, 0), name="tip")
        """
        what = f"frame {name!r}" if name else f"a frame on {name_of(body)!r}"
        return self.frame(body, self._axes(h, f, what, name or what), origin, name)

    def frame(
        self,
        body: Body | str,
        rotation: Any = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
        origin: Any = (0.0, 0.0, 0.0),
        name: str | None = None,
        *,
        exact: bool = False,
    ) -> Frame:
        """A frame on a body, by its rotation matrix and origin in the body frame.

        - `body`: a `Body`, or the name of one.
        - `rotation`: 3×3 numbers or expressions, whose columns are the frame's axes; the body's axes.
        - `origin` (m): three of them; the body's origin.
        - `name`: as for `triad`.
        - `exact`: keep numbers of the rotation within 1e-14 of 0, 1 and −1 as they are, and do not round them; False.

        Returns the `Frame`. Raises `NameNotFound` for an unknown body, `ModelError` for numbers of another shape;
        whether the rotation is one is checked with the whole mechanism.

        >>> b = lw.Builder()
        >>> corner = b.frame(b.body("link", 1.0), origin=(0.1, 0.1, 0))
        """
        owner = self._body(body)
        what = f"frame {name!r}" if name else f"a frame on {owner.name!r}"
        r = as_numbers(rotation, (3, 3), f"rotation of {what}")
        r = r if exact or is_bound(r) else snapped(r)
        frame = Frame(owner, r, as_numbers(origin, (3,), f"origin of {what}"), name)
        if name is not None:
            self._new_place(name)
            self._frames[name] = frame
        return frame

    # -- joints -------------------------------------------------------------------------------------------
    def joint(
        self,
        kind: str,
        i: Frame | Body | str,
        j: Frame | Body | str,
        name: str | None = None,
        *,
        axis: Any = None,
        at: Any = None,
        pitch: Numeric = 0.0,
        armature: Numeric = 0.0,
        lower: float = -np.inf,
        upper: float = np.inf,
        velocity: float = np.inf,
        effort: float = np.inf,
        damping: float = 0.0,
        friction: float = 0.0,
        lossless: bool = False,
        cut: bool = False,
        actuated: bool | None = None,
        drawn: bool = False,
    ) -> Joint:
        """A joint from frame `i` (parent's side) to frame `j` (child's side); a body stands for its own frame.

        With `axis` or `at`, i and j are bodies whose axes are parallel when the coordinates are neutral: the joint
        is about `axis` (z unless given), its point is `at` in i and the origin of j. With `drawn`, `axis` and `at` are
        in ground's axes, between the bodies as they are placed, as in `.mks`. `cut` makes it a loop constraint; a
        joint has an actuator unless it is free or `actuated` says otherwise. `damping` and `friction` act on each of
        its rates: forces −damping · v − friction · tanh(v / 0.01), named "NAME damping" (with the number of the rate
        after it if there are several).

        - `kind`: fixed, revolute, prismatic (or translational), cylindrical, universal, spherical, planar, screw, free.
        - `name`: unlike those of all joints, rods and point constraints; joint1, joint2, … without one.
        - `pitch` (m/rad) of a screw joint, not zero; `armature` (kg m² or kg) at each rate, 0.
        - `lower`, `upper` (rad or m), `velocity` (rad/s or m/s), `effort` (N m or N): limits, none by default. They are
          data: a `stop` makes limits act.
        - `drawn`: the coordinates are neutral as the bodies are drawn, by `place` before; a body that was not is drawn
          with its frame on ground's. `at` (m) may be an expression then, and is the origin of j as drawn if it is not
          given. False.
        - `damping` (N m s/rad or N s/m), `friction` (N m or N): 0; `lossless`: they are data, and do not act; False.

        Returns the `Joint`. Raises `NameNotFound` for an unknown kind, body or frame, and `ModelError` for a name that
        is taken, a joint of a body with itself, or a screw joint without a pitch.

        >>> b = lw.Builder()
        >>> b.joint("revolute", b.ground, b.body("link", 1.0), "hinge", axis=(0, 1, 0), damping=0.1).kind
        'revolute'
        """
        number = kind_number(kind)
        kind = KIND_LIST[number].name
        if name is None:
            name = numbered_name("joint", self._joints, len(self._joints) + 1)
        if name in self._joints or name in self._point_constraints:
            raise ModelError(f"there is a joint {name!r} already; choose another name", element=name)
        if kind == "screw" and not isinstance(pitch, Expression) and pitch == 0.0:
            raise ModelError(f"screw joint {name!r} has no pitch; give pitch= in m/rad", element=name)
        sides = (
            (self._frame_at(i), self._frame_at(j))
            if axis is None and at is None and not drawn
            else self._at(name, kind, i, j, axis, at, drawn)
        )
        if sides[0].body == sides[1].body:
            text = f"joint {name!r} joins {sides[0].body.name!r} to itself; name two different bodies"
            raise ModelError(text, element=name)
        limits = {"lower": lower, "upper": upper, "velocity_limit": velocity, "effort_limit": effort}
        numbers = {**limits, "damping": damping, "friction": friction}
        plain = {key: float(plain_numbers(x, (), f"{key} of {name!r}")) for key, x in numbers.items()}
        losses = () if lossless else joint_losses(name, KIND_LIST[number].nv, plain["damping"], plain["friction"])
        for force in losses:
            self._law(force.law, ("v",))
            self._new_force(force.name, "")
        self._joint_rows.append(
            {
                "kind": number,
                "parent": sides[0].body.number,
                "child": sides[1].body.number,
                "ri": sides[0].rotation,
                "pi": sides[0].origin,
                "rj": sides[1].rotation,
                "pj": sides[1].origin,
                "pitch": as_numbers(pitch, (), f"pitch of {name!r}"),
                "armature": as_numbers(armature, (), f"armature of {name!r}"),
                **plain,
                "cut": cut,
                "passive": kind == "free" if actuated is None else not actuated,
            }
        )
        self._joints[name] = Joint(name, len(self._joints), kind)
        for force in losses:
            put(self._forces, force)
            self._losses.add(force.name)
        return self._joints[name]

    def _at(self, name: str, kind: str, i: Any, j: Any, axis: Any, at: Any, drawn: bool) -> tuple[Frame, Frame]:
        """The frames of a joint between two bodies at a point."""
        if isinstance(i, Frame) or isinstance(j, Frame):
            text = f"joint {name!r} has frames, which hold its place; leave out axis= and at=, or give bodies"
            raise ModelError(text, element=name)
        what = f"the axis of joint {name!r}"
        direction = as_numbers((0.0, 0.0, 1.0) if axis is None else axis, (3,), what)
        u = split_bindings("", direction, self._parameters)[0]
        if not np.isfinite(u).all() or not u.any():
            raise ModelError(f"{what} is {u.tolist()}; give it a direction", element=name)
        turn = axes_of(direction, axis_frame(u)[:, 0].tolist()) if is_bound(direction) else axis_frame(u)
        turns = turn, product(turn, KINDS[kind].neutral_rotation())
        if not drawn:
            return self.frame(i, turns[0], (0.0, 0.0, 0.0) if at is None else at), self.frame(j, turns[1])
        poses = self._drawn(i), self._drawn(j)
        point = poses[1][1] if at is None else as_numbers(at, (3,), f"the place of joint {name!r}")
        near, far = (
            self.frame(body, product(r.T, turn), product(r.T, difference(point, p)))
            for body, (r, p), turn in zip((i, j), poses, turns, strict=True)
        )
        return near, far

    def _drawn(self, body: Any) -> tuple[Array, Array]:
        """The axes and the origin of a body as it is placed; one that is not is placed on ground's frame."""
        name = self._body(body).name
        if name == self.ground.name:
            return np.eye(3), np.zeros(3)
        return self._starts.setdefault(name, (np.eye(3), np.zeros(3)))

    # -- the outcome --------------------------------------------------------------------------------------
    def _in_order(self) -> Self:
        """The builder itself; or one in which the massless bodies and joints of curves stand behind all others, as they
        do when they are read from a file."""
        names = parts_of_curves(self._point_constraints.values())
        bodies = sorted([x for x in self._bodies.values() if x != self.ground], key=lambda x: x.name in names)
        joints = sorted(self._joints.values(), key=lambda x: x.name in names)
        places = {x.number: k for k, x in enumerate(bodies)}
        numbers = {x.number: k for k, x in enumerate(joints)}
        if all(k == old for new in (places, numbers) for old, k in new.items()):
            return self
        places[GROUND] = GROUND
        other = copy(self)
        other._body_rows = [self._body_rows[x.number] for x in bodies]
        other._unphysical = {places[k] for k in self._unphysical}
        rows = [self._joint_rows[x.number] for x in joints]
        other._joint_rows = [{**row, "parent": places[row["parent"]], "child": places[row["child"]]} for row in rows]
        other._mimics = [
            (replace(m, follower=numbers[m.follower], leader=numbers[m.leader]), row) for m, row in self._mimics
        ]
        other._bodies = {self.ground.name: self.ground} | {x.name: replace(x, number=places[x.number]) for x in bodies}
        other._joints = {x.name: replace(x, number=numbers[x.number]) for x in joints}
        other._frames = {name: replace(x, body=other._bodies[x.body.name]) for name, x in self._frames.items()}
        return other

    def description(self, *, inertias: Literal["error", "warn"] = "error") -> Description:
        """The description, checked.

        - `inertias`: whether inertias that no body can have are an "error" (the default) or one warning, "warn".

        Returns the `Description`. Raises `ModelError` for a mechanism without bodies and for numbers that are not
        possible.

        >>> b = lw.Builder()
        >>> hinge = b.joint("revolute", b.ground, b.body("link", 1.0))
        >>> b.description().nb
        1
        """
        if not self._body_rows:
            raise ModelError(f"{self.name!r} has no bodies; add one with body(...)", element=self.name)
        ordered = self._in_order()
        if ordered is not self:
            return ordered.description(inertias=inertias)
        bindings: dict[tuple[str, int], Expression] = {}
        arrays: dict[str, Any] = {}

        def fill(name: str, rows: list[Array], shape: tuple[int, ...]) -> None:
            flat = [x for row in rows for x in np.asarray(row).reshape(-1)]
            stacked = np.array(flat, dtype=object if is_bound(flat) else np.float64)
            arrays[name], bound = split_bindings(name, stacked.reshape(-1, *shape), self._parameters)
            bindings.update(bound)
            if name in ("frame_r", "start_r"):  # plain ones are rounded where they are given
                some = sorted({flat // 9 for _, flat in bound})
                arrays[name][some] = snapped(arrays[name][some])

        for k, (name, shape) in enumerate((("mass", ()), ("com", (3,)), ("inertia", (6,)))):
            fill(name, [row[k] for row in self._body_rows], shape)
        for name, default in joint_defaults(1).items():
            fill(name, [row[name] for row in self._joint_rows], default.shape[1:])
        drawn = self._frames.values()
        fill("frame_r", [frame.rotation for frame in drawn], (3, 3))
        fill("frame_p", [frame.origin for frame in drawn], (3,))
        places = np.array([frame.body.number for frame in drawn], np.int32)
        frames = Frames(Names(list(self._frames)), places, arrays.pop("frame_r"), arrays.pop("frame_p"))
        fill("gear", [numbers for _, numbers in self._mimics], (2,))
        fill("gravity", [self._gravity], ())
        couplings = tuple(m for m, _ in self._mimics)
        start = None
        if self._starts:
            names = [n for n in self._bodies if n != self.ground.name]
            nowhere = (np.eye(3), np.zeros(3))
            rows = [self._starts.get(n, nowhere) for n in names]
            fill("start_r", [r for r, _ in rows], (3, 3))
            fill("start_p", [p for _, p in rows], (3,))
            placed = np.array([n in self._starts for n in names])
            start = Start(placed, arrays.pop("start_r"), arrays.pop("start_p"))
        for name in ("kind", "parent", "child"):
            arrays[name] = np.array([row[name] for row in self._joint_rows], np.int32)
        description = Description(
            name=self.name,
            body_names=Names([n for n in self._bodies if n != self.ground.name]),
            joint_names=Names(list(self._joints)),
            frames=frames,
            mimics=with_gears(couplings, arrays.pop("gear")),
            elements=tuple(sorted(self._forces.values(), key=lambda e: e.name not in self._losses)),
            drivers=tuple(self._drivers.values()),
            point_constraints=tuple(self._point_constraints.values()),
            start=start,
            initial=tuple(self._initial.values()),
            system=self._system,
            shapes=tuple(self._shapes.values()),
            traces=tuple(self._traces.values()),
            curves=tuple(self._curves.values()),
            contacts=tuple(self._contacts.values()),
            cuts=frozenset(k for k, row in enumerate(self._joint_rows) if row["cut"]),
            passive=frozenset(k for k, row in enumerate(self._joint_rows) if row["passive"]),
            parameters=dict(self._parameters),
            bindings=bindings,
            ground_name=self.ground.name,
            **arrays,
        )
        check_numbers(description, inertias=inertias, unphysical=self._unphysical)
        return fitted_curves(fitted(description))
