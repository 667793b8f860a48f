"""The forms of constraint equations: of two frames in ground, and of the pose of one frame in another.

A form is shared by every joint, rod, point constraint or driver of its kind; what differs (frames, lengths, laws) is
its record. Drivers subtract the value of their law, so that Φ_t = −ḟ and Φ_tt = −f̈ for every one of them, and Φ_qt = 0.
A coupling with TIME in it (`coupling_forms`) has a `clock`: its Φ_t, Φ_tt and Φ_qt are derivatives of its equation.

R and p are the axes and origin of the second frame in the first; w is the twist of the second relative to the first,
at its own origin in its own axes, so that Ṙ = R ω̃ and ṗ = R v. No equation but that of an absolute driver knows where
its first frame is; that one's first frame is ground.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from linkwright.model.expression import Expression
from linkwright.model.gear_pairs import rolled
from linkwright.model.joint_kinds import KINDS, JointKind, Measure
from linkwright.spatial.algebra import Array, cross, dot, skew
from linkwright.tape.block import Block, arctan2, equal, floor, where
from linkwright.tape.build import record, trace
from linkwright.tape.program import Program
from linkwright.tape.scalar import Scalar

Frame = tuple[Array, Array]  # axes (3, 3) and origin (3), in ground's axes
Equations = Callable[[Sequence[Frame], Array, Array, Any], Array]

AXES = {"f": 0, "g": 1, "h": 2}


@dataclass(frozen=True)
class Form:
    """m = len(names) equations of `sides` frames, `numbers` further constants, `angles` counted turns and a law."""

    key: str
    names: tuple[str, ...]
    equations: Equations
    sides: int = 2
    numbers: int = 0
    driven: bool = False
    clock: bool = False  # TIME stands in its equations: then that is the law, Φ_t is theirs, and Φ_qt is not 0
    #: The angles that it counts through all their turns, as measures of its frames.
    angles: Callable[[Sequence[Frame]], tuple[Measure, ...]] | None = None
    turns: int = 0
    lengths: tuple[bool, ...] = ()  # of each equation, whether it is a length; else it is an angle or a sine
    kind: str = ""  # what tables call it, where the key is not for reading

    def __post_init__(self) -> None:
        assert len(self.lengths) == len(self.names), self.key

    @property
    def size(self) -> int:
        return len(self.names)

    @property
    def has_law(self) -> bool:
        """Whether its equations have a number that depends on time alone."""
        return self.driven or self.clock


def between(first: Frame, second: Frame) -> Frame:
    """The pose of the second frame in the first."""
    (ri, pi), (rj, pj) = first, second
    return ri.T @ rj, ri.T @ (pj - pi)


def near(angle: Measure, reference: Any) -> Any:
    """The angle with this cosine and sine that is nearest to a reference."""
    c, s = np.cos(reference), np.sin(reference)
    return reference + arctan2(angle.sine * c - angle.cosine * s, angle.cosine * c + angle.sine * s)


def _beyond(angle: Measure, law: Any) -> Any:
    """How far an angle is ahead of a law, between −π and π: laws may go through any number of turns."""
    return near(angle, law) - law


@cache
def joint(kind_name: str) -> Form:
    """The equations of a joint kind."""
    kind = KINDS[kind_name]
    if kind_name == "screw":

        def turn(frames: Sequence[Frame]) -> tuple[Measure, ...]:
            return kind.measures(*between(frames[0], frames[1]))

        def screw(frames: Sequence[Frame], record: Array, turned: Array, law: Any) -> Array:
            r, p = between(frames[0], frames[1])
            return kind.equations(r, p, record[0], near(kind.measures(r, p)[0], turned[0]))

        return Form("screw joint", kind.equation_names, screw, numbers=1, angles=turn, turns=1, lengths=_lengths(kind))

    def equations(frames: Sequence[Frame], record: Array, turned: Array, law: Any) -> Array:
        return kind.equations(*between(frames[0], frames[1]), 0.0, 0.0)

    word = {"prismatic": "translational"}.get(kind_name, kind_name)
    return Form(f"{word} joint", kind.equation_names, equations, lengths=_lengths(kind))


def _lengths(kind: JointKind) -> tuple[bool, ...]:
    """Which equations of a joint kind are lengths: those that change as the second frame is shifted."""
    here = kind.equations(np.eye(3), np.zeros(3), 0.0, 0.0)
    far = kind.equations(np.eye(3), np.ones(3), 0.0, 0.0)
    return tuple(bool(x != y) for x, y in zip(here, far, strict=True))


def _screw_by_shift(frames: Sequence[Frame], record: Array, turned: Array, law: Any) -> Array:
    r, p = between(frames[0], frames[1])
    kind, pitch = KINDS["screw"], record[0]
    flat = equal(pitch, 0.0)
    about = where(flat, 0.0, p[2] / where(flat, 1.0, pitch))
    return kind.equations(r, p, pitch, near(kind.measures(r, p)[0], about))


#: A screw whose whole turns follow from its shift: nothing is counted.
SCREW_BY_SHIFT = replace(
    joint("screw"), key="screw joint by its shift", equations=_screw_by_shift, angles=None, turns=0
)


def _length(d: Array) -> Any:
    """|d|; its derivative is 0 where d is, so that the equation counts as dependent there and is not NaN."""
    return np.sqrt(dot(d, d) + 1e-300)


def _distance(frames: Sequence[Frame]) -> Any:
    return _length(frames[1][1] - frames[0][1])


ROD = Form("rod", ("length",), lambda f, n, a, law: np.array([_distance(f) - n[0]]), numbers=1, lengths=(True,))
POINT_ON_LINE = Form(
    "point on line",
    ("on the line, along f", "on the line, along g"),
    lambda f, n, a, law: between(f[0], f[1])[1][:2],
    lengths=(True, True),
)
POINT_ON_PLANE = Form(
    "point on plane", ("in the plane",), lambda f, n, a, law: between(f[0], f[1])[1][2:], lengths=(True,)
)
DISTANCE = Form(
    "distance driver",
    ("distance",),
    lambda f, n, a, law: np.array([_distance(f) - law]),
    driven=True,
    lengths=(True,),
)


@cache
def absolute(axis: int) -> Form:
    """A coordinate of a frame's origin."""
    name = "xyz"[axis]
    return Form(
        f"absolute {name} driver",
        (name,),
        lambda f, n, a, law: np.array([f[0][1][axis] - law]),
        sides=1,
        driven=True,
        lengths=(True,),
    )


@cache
def angle(first: str, second: str, about_h: bool) -> Form:
    """The angle from an axis of one frame to an axis of another: about h of the first, or between 0 and π."""
    i, j = AXES[first], AXES[second]

    def equation(frames: Sequence[Frame], record: Array, turned: Array, law: Any) -> Array:
        a, b = frames[0][0][:, i], frames[1][0][:, j]
        normal = cross(a, b)
        sine = dot(normal, frames[0][0][:, 2]) if about_h else _length(normal)
        measure = Measure(cosine=dot(a, b), sine=sine)
        if about_h:
            return np.array([_beyond(measure, law)])
        return np.array([arctan2(measure.sine, measure.cosine) - law])

    way = "about h" if about_h else "in space"
    return Form(f"angle driver {first}{second} {way}", ("angle",), equation, driven=True, lengths=(False,))


@cache
def coordinate(kind_name: str, index: int) -> Form:
    """A coordinate of a joint."""
    kind: JointKind = KINDS[kind_name]

    def equation(frames: Sequence[Frame], record: Array, turned: Array, law: Any) -> Array:
        measure = kind.measures(*between(frames[0], frames[1]))[index]
        return np.array([_beyond(measure, law) if measure.shift is None else measure.shift - law])

    lengths = (index not in kind.angles,)
    return Form(f"{kind_name} coordinate {index} driver", ("coordinate",), equation, driven=True, lengths=lengths)


@cache
def gear(follower: str, leader: str) -> Form:
    """follower's coordinate = ratio · leader's + offset, angles through all their turns; record: ratio, offset."""
    kinds = KINDS[follower], KINDS[leader]
    turning = [kind.measures(np.eye(3), np.zeros(3))[0].shift is None for kind in kinds]

    def measures(frames: Sequence[Frame]) -> list[Measure]:
        return [kind.measures(*between(*frames[2 * k : 2 * k + 2]))[0] for k, kind in enumerate(kinds)]

    def angles(frames: Sequence[Frame]) -> tuple[Measure, ...]:
        return tuple(m for m, turns in zip(measures(frames), turning, strict=True) if turns)

    def equation(frames: Sequence[Frame], record: Array, turned: Array, law: Any) -> Array:
        counted = iter(turned)
        values = [near(m, next(counted)) if m.shift is None else m.shift for m in measures(frames)]
        return np.array([values[0] - record[0] * values[1] - record[1]])

    key = f"gear of {follower} by {leader}"
    lengths = (not turning[0],)
    return Form(key, ("ratio",), equation, sides=4, numbers=2, angles=angles, turns=sum(turning), lengths=lengths)


@cache
def gear_near(follower: str, leader: str, by_follower: bool) -> Form:
    """The same without counting: one of the two, which the ratio makes the other's whole turns of, is near zero."""
    counted = gear(follower, leader)
    turning = [kind.measures(np.eye(3), np.zeros(3))[0].shift is None for kind in (KINDS[follower], KINDS[leader])]

    def equation(frames: Sequence[Frame], record: Array, turned: Array, law: Any) -> Array:
        assert counted.angles is not None
        measures = iter(counted.angles(frames))
        shifts = [
            KINDS[kind].measures(*between(*frames[2 * k : 2 * k + 2]))[0].shift
            for k, kind in enumerate((follower, leader))
        ]
        turned_by = [next(measures) if turns else None for turns in turning]
        ratio, offset = record

        def value(k: int, reference: Any) -> Any:
            angle = turned_by[k]
            return shifts[k] if angle is None else near(angle, reference)

        if by_follower:
            first = value(0, 0.0)
            return np.array([first - ratio * value(1, (first - offset) / ratio) - offset])
        second = value(1, 0.0)
        return np.array([value(0, ratio * second + offset) - ratio * second - offset])

    way = "from the follower" if by_follower else "from the leader"
    return Form(f"{counted.key}, {way}", ("ratio",), equation, sides=4, numbers=2, lengths=counted.lengths)


@cache
def gear_pair(kind: str) -> Form:
    """Two gears in mesh: what they have rolled on each other is the phase, but for whole pitches; `gear_pairs`."""

    def equation(frames: Sequence[Frame], record: Array, turned: Array, law: Any) -> Array:
        beyond = rolled(kind, *between(frames[0], frames[1]), record) - record[2]
        return np.array([beyond - record[6] * floor(beyond / record[6] + 0.5)])

    return Form(f"gear pair, {kind}", ("rolling",), equation, numbers=7, lengths=(True,))


@cache
def some(form: Form, rows: tuple[int, ...]) -> Form:
    """Some of a form's equations."""
    if len(rows) == form.size:
        return form

    def equations(frames: Sequence[Frame], record: Array, turned: Array, law: Any) -> Array:
        return form.equations(frames, record, turned, law)[list(rows)]

    names = tuple(form.names[k] for k in rows)
    lengths = tuple(form.lengths[k] for k in rows)
    return replace(form, key=f"{form.key}, {', '.join(names)}", names=names, equations=equations, lengths=lengths)


def law_rates(law: Expression, names: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """A law's value, rate and second rate in TIME."""
    known = [name for name in sorted(law.names()) if name != "TIME"]
    t, p = names["TIME"], np.array([names[name] for name in known] or [0.0])
    if "TIME" not in law.names():
        return law.evaluate(names), 0.0, 0.0

    def value(t: Array, p: Array) -> Array:
        return np.array([law.evaluate({**dict(zip(known, p, strict=False)), "TIME": t[0]}) + 0.0 * t[0]])

    once = record(value, 1, len(p)).forward()
    twice = once.forward()
    at, one, none, still = np.array([t]), np.ones(1), np.zeros(1), np.zeros(len(p))
    f, rate = once(at, p, one, still)
    second = twice(at, p, one, still, one, still, none, still)[3]
    return f[0], rate[0], second[0]


Function = Callable[..., Array]


def equations(form: Form, r: Array, p: Array, numbers: Sequence[Any], turned: Sequence[Any], law: Any) -> Array:
    """Φ (m)."""
    phi = _run(_equations_block(form), [r, p, _rest(form, numbers, turned, law)])
    return np.array(phi[: form.size])


def jacobian(form: Form, r: Array, p: Array, numbers: Sequence[Any], turned: Sequence[Any], law: Any) -> Array:
    """J (m, 6) with Φ̇ = J w + Φ_t."""
    entries = _run(_equations_block(form), [r, p, _rest(form, numbers, turned, law)])
    return np.array(entries[form.size :]).reshape(6, form.size).T


def at_many(form: Form, r: Array, p: Array, numbers: Array) -> tuple[Array, Array]:
    """Φ (S, m) and J (S, m, 6) of an undriven form that counts no turns, at poses (S, 3, 3), (S, 3) in numbers."""
    s = len(p)
    columns = [*r.reshape(s, 9).T, *p.T, *np.asarray(numbers).reshape(s, form.numbers).T, np.zeros(s)]
    with np.errstate(all="ignore"):
        entries = np.stack([np.broadcast_to(x, s) for x in _equations_block(form).evaluate(columns)], axis=1)
    return entries[:, : form.size], np.swapaxes(entries[:, form.size :].reshape(s, 6, form.size), 1, 2)


def drift(form: Form, r: Array, p: Array, numbers: Sequence[Any], turned: Sequence[Any], law: Any, w: Array) -> Array:
    """J̇ w, while the second frame moves with w."""
    return np.array(_run(_drift_block(form), [r, p, _rest(form, numbers, turned, law), w]))


def _rest(form: Form, numbers: Sequence[Any], turned: Sequence[Any], law: Any) -> Array:
    """The form's numbers, counted angles and law in one array, which has something in it."""
    return np.array([*numbers, *turned, *([law] if form.has_law else ()), 0.0])


def _size(form: Form) -> int:
    return form.numbers + form.turns + form.has_law + 1


def _run(block: Block, arrays: Sequence[Any]) -> list[Any]:
    """A block's outputs, as part of the recording that its inputs belong to if any of them does."""
    flat = [x for array in arrays for x in np.asarray(array).reshape(-1).tolist()]
    recorder = next((x.recorder for x in flat if isinstance(x, Scalar)), None)
    if recorder is None:
        return block.evaluate(flat)
    nodes = block.replay(recorder, [recorder.lift(x) for x in flat])
    return [nodes[k] for k in block.outputs.tolist()]


def _phi(form: Form) -> Function:
    def function(r: Array, p: Array, more: Array) -> Array:
        n = form.numbers
        numbers, turned = more[:n], more[n : n + form.turns]
        law = more[n + form.turns] if form.has_law else 0.0
        frames = [(r, p)] if form.sides == 1 else [(np.eye(3), np.zeros(3)), (r, p)]
        return form.equations(frames, numbers, turned, law)

    return function


@cache
def _rate(form: Form) -> Program:
    return record(_phi(form), (3, 3), 3, _size(form), name="equations").forward()


def _moving(r: Array, w: Array) -> tuple[Array, Array]:
    """Ṙ and ṗ."""
    return r @ skew(w[3:]), np.array([dot(row, w[:3]) for row in r])


@cache
def _equations_block(form: Form) -> Block:
    """Φ, then the columns of J."""

    def function(r: Array, p: Array, more: Array) -> Array:
        still = np.zeros(_size(form))
        columns = [_rate(form)(r, p, more, *_moving(r, w), still) for w in np.eye(6)]
        return np.concatenate([columns[0][0], *(column for _, column in columns)])

    return trace(function, [(3, 3), (3,), (_size(form),)])[0]


@cache
def _drift_block(form: Form) -> Block:
    still = np.zeros(_size(form))

    def rate(r: Array, p: Array, more: Array, w: Array) -> Array:
        value: Array = _rate(form)(r, p, more, *_moving(r, w), still)[1]
        return value

    program = record(rate, (3, 3), 3, _size(form), 6, name="rate").forward()

    def function(r: Array, p: Array, more: Array, w: Array) -> Array:
        value: Array = program(r, p, more, w, *_moving(r, w), still, np.zeros(6))[1]
        return value

    return trace(function, [(3, 3), (3,), (_size(form),), (6,)])[0]
