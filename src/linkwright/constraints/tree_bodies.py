"""From the coordinates of a spanning tree to its bodies and back: for one state, and rolled where joints carry the
code.

Bodies are their central frames, in rows of a `Space`; the row after the last is ground's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints.constraint_equations import joint_frames
from linkwright.constraints.constraint_forms import between
from linkwright.constraints.form_programs import Pattern, Space, entry, row
from linkwright.constraints.kinematics import Kinematics
from linkwright.constraints.masses import Masses, clean
from linkwright.constraints.newton import Assembled
from linkwright.errors import AssemblyError
from linkwright.model.body_motion import body_states, drawn_at
from linkwright.model.description import JOINT_ARRAYS, Description, Names, kind_number
from linkwright.model.joint_kinds import JointKind
from linkwright.model.model_checks import listed
from linkwright.model.placements import snapped
from linkwright.model.tree import Tree
from linkwright.spatial.algebra import Array, cross, dot, motion_cross, point_velocity
from linkwright.spatial.rotation import General, Transform, euler_parameters
from linkwright.tape.block import Block, absolute, floor, where
from linkwright.tape.build import ProgramBuilder, Ref, trace
from linkwright.tape.program import Case, Each, Order

_HELD = " (fixed)"  # what the joints that hold others are called after them
_TURN = 2.0 * np.pi


def coordinates(tree: Tree, state: Floats, near: Floats) -> Floats:
    """The tree's q where the bodies are at these states (nb, 7): of all that differ by turns, the one near a guess."""
    d, t, x = tree.description, tree.topology, tree.coordinates
    q = np.array(near, dtype=np.float64)
    for i, j in enumerate(t.joint.tolist()):
        if x.follows[i]:
            continue
        kind = d.kind_of(j)
        at = slice(int(x.q_at[i]), int(x.q_at[i]) + kind.nq)
        r, p = between(*joint_frames(d, state, j))
        q[at] = joint_coordinates(kind, r, p, d.pitch[j], near[at])
    return q


def joint_coordinates(kind: JointKind, r: Array, p: Array, pitch: Any, near: Array) -> Array:
    """A joint's coordinates at a pose of its second frame in its first; of all that differ by turns, those near a
    guess. A screw's turns are known by its shift, if it has a pitch."""
    here = list(kind.coordinates(euler_parameters(r), p, pitch))
    for k in kind.angles:
        turns = (near[k] - here[k]) / _TURN
        whole = where(turns < 0.0, -1.0, 1.0) * -floor(0.5 - absolute(turns))  # half a turn is none
        known = kind.name == "screw" and bool(pitch)
        here[k] = here[k] if known else here[k] + _TURN * whole
    if not kind.paired:
        sign = where(dot(here[-4:], near[-4:]) < 0.0, -1.0, 1.0)
        here[-4:] = [sign * x for x in here[-4:]]
    return np.array(here)


def assembled(tree: Tree, q: Floats, fixed: Sequence[int], t: float, tolerance: float | None) -> Assembled:
    """The bodies' state nearest to q at which all constraints hold, with the joints `fixed` kept as they are.

    Raises AssemblyError, which names what does not close.
    """
    held = _held(tree.description, q, fixed)
    try:
        return Kinematics(held).assemble(t, tolerance)
    except AssemblyError as error:
        names = [tree.description.joint_names[j] for j in fixed]
        raise _in_own_names(error, names, free=bool(names) and _closes(tree, q, t, tolerance)) from None


def _closes(tree: Tree, q: Floats, t: float, tolerance: float | None) -> bool:
    """Whether the mechanism can be assembled with no joint fixed."""
    try:
        Kinematics(_held(tree.description, q, ())).assemble(t, tolerance)
    except AssemblyError:
        return False
    return True


def _in_own_names(error: AssemblyError, fixed: Sequence[str], *, free: bool) -> AssemblyError:
    """The error without the joints that were added to hold others; these are to blame if all closes when `free`."""
    text, element = str(error), error.element
    if free:
        reason = text.partition(": ")[2].partition("; ")[0]
        what = "joint" if len(fixed) == 1 else "joints"
        text = (
            f"the mechanism cannot be assembled with {what} {listed(list(fixed))} as fixed: {reason}; free one of them"
        )
    names = {repr(f"{name}{_HELD}"): f"{name!r} as it is fixed" for name in fixed}
    misses = dict(error.misses)
    for added, meant in names.items():
        text = text.replace(added, meant)
        misses = {key.replace(added, meant): miss for key, miss in misses.items()}
    return AssemblyError(text, misses=misses, element=element.removesuffix(_HELD) if element else element)


def _held(d: Description, q: Floats, fixed: Sequence[int]) -> Description:
    """The mechanism drawn as q says, with each of these joints welded there by a second joint."""
    states = body_states(d, q)
    d = drawn_at(d, states)
    if not len(fixed):
        return d
    joints = np.array(fixed)
    rows = {name: np.asarray(getattr(d, name))[joints].copy() for name in JOINT_ARRAYS}
    rows["kind"][:] = kind_number("fixed")
    for k, j in enumerate(fixed):
        turn, shift = between(*joint_frames(d, states, j))
        rows["pi"][k], rows["ri"][k] = d.pi[j] + d.ri[j] @ shift, d.ri[j] @ turn
    changed: dict[str, Any] = {name: np.concatenate([getattr(d, name), rows[name]]) for name in JOINT_ARRAYS}
    names = Names([*d.joint_names, *(f"{d.joint_names[j]}{_HELD}" for j in fixed)])
    cuts = d.cuts | set(range(d.nj, d.nj + len(fixed)))
    return replace(d, joint_names=names, cuts=frozenset(cuts), **changed)


#: Joint frame on the parent (9, 3), the body's central frame in its own joint frame (9, 3), pitch; a follower's ratio
#: and offset.
RECORD = 27
PATTERNS = 8  # so many kinds of trivial numbers have code of their own


def patterns(records: Sequence[Floats]) -> list[Pattern]:
    """For each record which of its numbers are 0, 1 or −1; what only some have is left open if there are many kinds."""
    rows = np.array(records)
    trivial = np.isin(rows, (0.0, 1.0, -1.0))
    chosen = [
        tuple(x if t else None for x, t in zip(row, known, strict=True))
        for row, known in zip(rows.tolist(), trivial.tolist(), strict=True)
    ]
    if len(set(chosen)) <= PATTERNS:
        return chosen
    same = np.all(trivial & (rows == rows[0]), axis=0)
    common = tuple(x if t else None for x, t in zip(rows[0].tolist(), same, strict=True))
    return [common] * len(chosen)


class Records:
    """Records of numbers without what their patterns fix, in one buffer of data."""

    def __init__(self, builder: ProgramBuilder, name: str, records: Sequence[Floats], kinds: Sequence[Pattern]) -> None:
        pairs = zip(records, kinds, strict=True)
        parts = [np.array([x for x, p in zip(r, k, strict=True) if p is None]) for r, k in pairs]
        self.at = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(int).tolist()
        self.ref = builder.data(name, np.concatenate([*parts, np.zeros(1)]))

    def part(self, pattern: Pattern, column: int) -> Ref:
        """The open numbers of a record that begins where the column says."""
        return entry(self.ref, column, (pattern.count(None),))


@dataclass(frozen=True)
class Signature:
    """What the code of a tree joint depends on."""

    kind: JointKind
    follows: bool
    pattern: Pattern

    def numbers(self, numbers: Array) -> Array:
        """The whole record."""
        unknown = iter(numbers)
        return [next(unknown) if x is None else x for x in self.pattern]


class Carried:
    """The tree joints of a mechanism, on the buffers of a program under construction."""

    def __init__(self, builder: ProgramBuilder, tree: Tree, masses: Masses, space: Space) -> None:
        self.b, self.tree, self.masses, self.space = builder, tree, masses, space
        self.gravity = tuple((masses.world.T @ tree.description.gravity).tolist())
        n, t, x = tree.n, tree.topology, tree.coordinates
        self.nb = n
        self.body = builder.column(t.body)
        self.parent = builder.column([int(t.body[p]) if p >= 0 else n for p in t.parent.tolist()])
        self.q_at, self.v_at = builder.column(x.q_at), builder.column(x.v_at)
        numbers = [self._record(i) for i in range(n)]
        kinds: list[Pattern] = [()] * n
        for kind in set(tree.kinds):
            alike = [i for i in range(n) if tree.kinds[i] is kind]
            for i, pattern in zip(alike, patterns([numbers[i] for i in alike]), strict=True):
                kinds[i] = pattern
        self.signatures = [Signature(tree.kinds[i], bool(x.follows[i]), kinds[i]) for i in range(n)]
        self.records = Records(builder, "tree joints", numbers, kinds)
        self.record_at = builder.column(self.records.at[:-1])
        self.x, self.r = builder.temporary("origins", (n + 1, 3)), builder.temporary("axes", (n + 1, space.turn))
        self.inertia = builder.data("inertias", masses.inertia)

    def _record(self, i: int) -> Floats:
        tree, t, x = self.tree, self.tree.topology, self.tree.coordinates
        r_up, p_up, r_own, p_own = (part[0] for part in tree.sides(np.array([i])))
        up = int(t.parent[i])
        r_up, p_up = self.masses.place(int(t.body[up]) if up >= 0 else -1, r_up, p_up)
        body = int(t.body[i])
        com = self.masses.com[body]
        rc, pc = snapped(r_own.T @ self.masses.axes[body]), clean(r_own.T @ (com - p_own), com, p_own)
        last = [float(tree.description.pitch[t.joint[i]]), float(x.ratio[i]), float(x.offset[i])]
        return np.concatenate([r_up.reshape(-1), p_up, rc.reshape(-1), pc, last])

    def _each(self, positions: Sequence[int] | None, case: Any, order: Order) -> None:
        """case(signature, pick) for every position; `pick` takes a column to the chosen positions."""
        chosen = range(self.nb) if positions is None else positions
        signatures = list(dict.fromkeys(self.signatures[i] for i in chosen))
        number = {s: k for k, s in enumerate(signatures)}
        cases: tuple[Case, ...] = tuple(case(s) for s in signatures)
        dispatch = self.b.column([number[self.signatures[i]] for i in chosen]) if len(signatures) > 1 else None
        if len(chosen):
            self.b.add(Each(len(chosen), cases, order, dispatch))

    # -- outward --------------------------------------------------------------------------------------------------
    def outward(self, q: Ref, v: Ref | None, twists: Ref | None, tau: Ref | None, wrenches: Ref | None) -> None:
        """x and R of all bodies; with v their twists; with tau the wrenches of joint forces, gravity and turning."""
        turn, motion = self.space.turn, self.space.motion
        ground = [self.x.part(3 * self.nb, (3,)), self.r.part(turn * self.nb, (turn,))]
        values = [np.zeros(3), self.space.row(np.eye(3))]
        if twists is not None:
            ground.append(twists.part(motion * self.nb, (motion,)))
            values.append(np.zeros(motion))
        self.b.call(lambda: tuple(values), (), ground)
        moving, forced = v is not None, tau is not None

        def case(s: Signature) -> Case:
            kind = s.kind
            inputs = [row(self.x, self.parent), row(self.r, self.parent)]
            inputs.append(entry(q, self.q_at, (kind.nq,)))
            outputs = [row(self.x, self.body), row(self.r, self.body)]
            if v is not None and twists is not None:
                inputs += [row(twists, self.parent), entry(v, self.v_at, (kind.nv,))]
                outputs.append(row(twists, self.body))
            if tau is not None and wrenches is not None:
                inputs += [entry(tau, self.v_at, (kind.nv,)), row(self.inertia, self.body)]
                outputs += [row(wrenches, column, add=True) for column in (self.body, self.parent)]
            inputs.append(self.records.part(s.pattern, self.record_at))
            return self.b.case(_outward_block(s, self.space, moving, forced, self.gravity), inputs, outputs)

        self._each(None, case, "outward")

    # -- back -----------------------------------------------------------------------------------------------------
    def rates(self, q: Ref, motions: Ref, output: Ref, *, v: Ref | None = None, twists: Ref | None = None) -> None:
        """output (nv) = the rates of the tree's joints that motions of the bodies are.

        With the joints' rates v and the bodies' twists, the second rates, of derivatives of these twists.
        """
        motion = self.space.motion
        self.b.call(lambda: np.zeros(motion), (), [motions.part(motion * self.nb, (motion,))])
        x = self.tree.coordinates
        leading = [i for i in range(self.nb) if not x.follows[i] and self.signatures[i].kind.nv]
        whole = len(leading) == self.nb
        columns = {
            name: getattr(self, name) if whole else self.b.column(self.b.columns[getattr(self, name)][leading])
            for name in ("body", "parent", "q_at", "v_at", "record_at")
        }

        def case(s: Signature) -> Case:
            kind = s.kind
            inputs = [row(self.r, columns[side]) for side in ("parent", "body")]
            inputs += [row(motions, columns[side]) for side in ("parent", "body")]
            inputs.append(entry(q, columns["q_at"], (kind.nq,)))
            if v is not None and twists is not None:
                inputs += [row(twists, columns[side]) for side in ("parent", "body")]
                inputs.append(entry(v, columns["v_at"], (kind.nv,)))
            inputs.append(self.records.part(s.pattern, columns["record_at"]))
            outputs = [entry(output, columns["v_at"], (kind.nv,))]
            return self.b.case(_back_block(s, self.space, v is not None), inputs, outputs)

        self._each(leading, case, "map")


# -- the blocks -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Joint:
    """A tree joint at its coordinates: frame j in the parent's central frame, the body's in frame j."""

    kind: JointKind
    terms: Array
    pitch: Any
    near: Transform
    far: Transform

    @classmethod
    def at(cls, s: Signature, q: Array, record: Array) -> _Joint:
        numbers = s.numbers(record)
        r_up, p_up = np.array(numbers[:9]).reshape(3, 3), np.array(numbers[9:12])
        rc, pc = np.array(numbers[12:21]).reshape(3, 3), np.array(numbers[21:24])
        pitch, ratio, offset = numbers[24:]
        terms = s.kind.terms(q * ratio + offset if s.follows else q, pitch)
        turn, shift = s.kind.rotation(terms).matrix(), s.kind.shift(terms, pitch)
        near = Transform(General(r_up @ turn), p_up + r_up @ shift)
        return cls(s.kind, terms, pitch, near, Transform(General(rc), pc))

    def twist(self, v: Array) -> Array:
        return self.kind.subspace(self.terms, self.pitch) @ v if self.kind.nv else np.zeros(6)


@cache
def _outward_block(s: Signature, space: Space, moving: bool, forced: bool, gravity: tuple[float, ...]) -> Block:
    kind = s.kind

    def step(x: Array, r: Array, q: Array, *arrays: Array) -> tuple[Array, ...]:
        r = space.axes(r)
        inputs = list(arrays)
        joint = _Joint.at(s, q, inputs.pop())
        near, far = joint.near, joint.far
        rj = r @ near.rotation.matrix()
        r_own = rj @ far.rotation.matrix()
        outputs = [x + r @ near.p + rj @ far.p, space.row(r_own)]
        if not moving:
            return tuple(outputs)
        w, v = space.whole(inputs.pop(0)), inputs.pop(0)
        ratio = s.numbers(arrays[-1])[25]
        relative = joint.twist(v * ratio if s.follows else v)
        turning = near.rotation.outward(w[3:]) + relative[3:]
        speed = w[:3] + r @ cross(w[3:], near.p) + rj @ point_velocity(relative[:3], turning, far.p)
        spin = far.rotation.outward(turning)
        outputs.append(space.part(np.concatenate([speed, spin])))
        if not forced:
            return tuple(outputs)
        tau, inertia = inputs
        mass, moments = inertia[0], inertia[1:]
        push = kind.dual(joint.terms, joint.pitch) @ tau if kind.nv and not s.follows else np.zeros(6)
        force = rj @ push[:3]
        moment = far.outward_wrench(push)[3:]
        back = near.inward(push)
        pulled = np.concatenate([force + mass * np.array(gravity), moment - cross(spin, moments * spin)])
        outputs += [space.part(pulled), -space.part(np.concatenate([force, back[3:]]))]
        return tuple(outputs)

    shapes: list[tuple[int, ...]] = [(3,), (space.turn,), (kind.nq,)]
    shapes += [(space.motion,), (kind.nv,)] if moving else []
    shapes += [(kind.nv,), (4,)] if forced else []
    return trace(step, [*shapes, (s.pattern.count(None),)])[0]


@cache
def _back_block(s: Signature, space: Space, second: bool) -> Block:
    kind = s.kind

    def step(r_up: Array, r_own: Array, up: Array, child: Array, q: Array, *arrays: Array) -> Array:
        r_up, r_own = space.axes(r_up), space.axes(r_own)
        joint = _Joint.at(s, q, arrays[-1])

        def local(r: Array, row: Array) -> Array:
            motion = space.whole(row)
            return np.concatenate([r.T @ motion[:3], motion[3:]])

        up, child = local(r_up, up), local(r_own, child)
        if second:
            # The derivative of a twist in the body's own axes, whose linear part turns with the body.
            w_up, w_own = local(r_up, arrays[0]), local(r_own, arrays[1])
            up = np.concatenate([up[:3] - cross(w_up[3:], w_up[:3]), up[3:]])
            child = np.concatenate([child[:3] - cross(w_own[3:], w_own[:3]), child[3:]])
        relative = joint.far.inward_twist(child) - joint.near.outward(up)
        if second:
            v = arrays[2]
            turned = motion_cross(joint.far.inward_twist(w_own), joint.twist(v))
            relative = relative - turned - kind.subspace_rate(joint.terms, joint.pitch, v)
        dual: Array = kind.dual(joint.terms, joint.pitch).T @ relative
        return dual

    turn, motion = (space.turn,), (space.motion,)
    shapes: list[tuple[int, ...]] = [turn, turn, motion, motion, (kind.nq,)]
    shapes += [motion, motion, (kind.nv,)] if second else []
    return trace(step, [*shapes, (s.pattern.count(None),)])[0]
