"""Random mechanisms with gears: trees and closed chains of every joint kind, loaded by every element, driven or free.

`draw(seed)` makes one. The parts that it was built of are beside it, so that what a test computes of them does not go
through the package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import linkwright as lw
from mechanism_parts import (
    GROUND,
    RATES,
    SINGLE,
    Coupled,
    Drawn,
    Drive,
    Floats,
    Gear,
    Joint,
    JointLoad,
    PairLoad,
    Pose,
    Push,
    Solid,
    Wrench,
    after,
    inverse,
    moved,
    rotation,
)

#: Closed chains in space, by the kinds of their joints: one or two degrees of freedom.
CHAINS = (
    ("revolute", "spherical", "cylindrical", "revolute"),
    ("revolute", "universal", "spherical", "prismatic"),
    ("screw", "spherical", "universal", "revolute"),
    ("revolute", "spherical", "spherical", "revolute"),
    ("prismatic", "cylindrical", "planar", "revolute"),
    ("revolute", "prismatic", "screw", "revolute", "spherical"),
)


def draw(seed: int, *, couplings: bool = False) -> Drawn:
    """The mechanism of a seed; with `couplings`, relations take some of the freedom that gears and drivers leave."""
    return _Drawer(seed, couplings).draw()


class _Drawer:
    def __init__(self, seed: int, couplings: bool) -> None:
        self.couplings = couplings
        self.rng = np.random.default_rng([seed, 16])
        self.drawn = Drawn(seed, self.rng.normal(size=3) * 5.0)
        self.poses: dict[str, Pose] = {GROUND: (np.eye(3), np.zeros(3))}
        self.freedom: list[str] = []  # joints whose coordinates, one after another, could be prescribed together
        self.frames: dict[str, tuple[str, Floats]] = {}
        self.far: dict[str, str] = {}  # the outer body of a tree joint
        self.b = lw.Builder(f"seed {seed}")

    def draw(self) -> Drawn:
        rng, drawn = self.rng, self.drawn
        for k in range(1 + (rng.uniform() < 0.12)):
            [self._tree, self._plane_chain, self._space_chain][rng.integers(3)](f"{'ab'[k]}")
        for k in range(int(rng.choice([1, 1, 1, 2, 2, 3]))):
            self._wheel(k)
        if rng.uniform() < 0.3:
            self._mesh()
        if rng.uniform() < 0.4:
            self._train()
        self._build()
        for k in range(int(rng.integers(1, 3)) if self.couplings else 0):
            self._relate(f"c{k}")
        if rng.uniform() < 0.3:
            self._point_constraint()
        self._load()
        if rng.uniform() < 0.5:
            self._drive()
        else:
            for name in dict.fromkeys(self.freedom):
                if name and drawn.joints[name].kind in SINGLE:
                    self.b.initial(name, rate=float(rng.normal()))
        drawn.mech = self.b.build()
        return drawn

    # -- bodies and joints ------------------------------------------------------------------------------------
    def _body(self, name: str) -> None:
        a = self.rng.normal(size=(3, 3))
        inertia = a @ a.T
        inertia = 0.05 * (np.trace(inertia) * np.eye(3) - inertia) + 0.02 * np.eye(3)
        self.drawn.solids[name] = Solid(0.5 + self.rng.uniform(), 0.2 * self.rng.normal(size=3), inertia)

    def _frame(self) -> Pose:
        return rotation(self.rng.normal(size=3), self.rng.uniform(0.3, 2.5)), 0.5 * self.rng.normal(size=3)

    def _joint(self, kind: str, ends: tuple[str, str], here: Pose, *, cut: bool = False, rotor: float = 0.25) -> str:
        """A joint of two bodies whose poses are known, its frame on the parent at a pose in ground."""
        rng, joints = self.rng, self.drawn.joints
        name = f"j{len(joints)}"
        q, pitch = rng.uniform(-0.8, 0.8, RATES[kind]), float(rng.choice([-1, 1]) * rng.uniform(0.1, 0.5))
        if rng.uniform() < 0.4:  # the child may be nearer to ground than the parent
            ends = ends[1], ends[0]
        there = after(here, moved(kind, q, pitch))
        i, j = (after(inverse(self.poses[b]), x) for b, x in zip(ends, (here, there), strict=True))
        armature = float(rng.uniform(0.05, 0.4)) if kind in SINGLE and rng.uniform() < rotor else 0.0
        joints[name] = Joint(name, kind, *ends, i, j, q, pitch, armature, cut)
        return name

    def _grow(self, name: str, onto: str, kind: str, here: Pose) -> str:
        """A body on a joint whose frame on its parent is `here`, in ground."""
        self._body(name)
        self.poses[name] = after(here, (rotation(self.rng.normal(size=3), 0.7), 0.6 * self.rng.normal(size=3)))
        joint = self._joint(kind, (onto, name), here)
        self.far[joint] = name
        return joint

    def _tree(self, stem: str) -> None:
        kinds = [*SINGLE, *SINGLE, *SINGLE, "cylindrical", "universal", "planar", "spherical"]
        for k in range(int(self.rng.integers(2, 5))):
            onto = str(self.rng.choice([GROUND, *(n for n in self.poses if n.startswith(stem))]))
            kind = str(self.rng.choice(kinds))
            name = self._grow(f"{stem}{k}", onto, kind, after(self.poses[onto], self._frame()))
            self.freedom += [name] * (RATES[kind] if kind != "spherical" else 0)
            if kind == "spherical":
                self.freedom.append("")  # cannot be prescribed by a driver of its coordinates

    def _plane_chain(self, stem: str) -> None:
        """Bars in a plane, of which one may slide: a four-bar or a five-bar."""
        rng = self.rng
        plane, bars = self._frame(), int(rng.integers(3, 5))
        slide = int(rng.integers(bars + 1)) if rng.uniform() < 0.4 else -1
        angles = np.sort(rng.uniform(0, 2 * np.pi, bars + 1) * 0.3 + np.arange(bars + 1) * 2 * np.pi / (bars + 1))
        corners = [np.array([np.cos(x), np.sin(x), 0.0]) * rng.uniform(0.7, 1.3) for x in angles]
        self._chain(stem, ["prismatic" if k == slide else "revolute" for k in range(bars + 1)], plane, corners)
        self.freedom += self._chain_freedom[: bars - 2]

    def _space_chain(self, stem: str) -> None:
        kinds = list(CHAINS[int(self.rng.integers(len(CHAINS)))])
        self._chain(stem, kinds, None, [self.rng.normal(size=3) for _ in kinds])
        left = sum(RATES[kind] for kind in kinds) - 6
        loose = kinds.count("spherical") == 2  # the bar between turns about itself
        self.freedom += self._chain_freedom[:1] + [""] * loose + self._chain_freedom[1 : left - loose]

    def _chain(self, stem: str, kinds: list[str], plane: Pose | None, corners: list[Floats]) -> None:
        """Bodies in a row from ground to ground, the joints between them at these corners; one of them is the cut."""
        rng = self.rng
        bodies = [GROUND, *(f"{stem}{k}" for k in range(len(kinds) - 1)), GROUND]
        for name in bodies[1:-1]:
            self._body(name)
            r = rotation(rng.normal(size=3), 1.0) if plane is None else plane[0] @ rotation(np.array([0, 0, 1.0]), 1.0)
            self.poses[name] = r, rng.normal(size=3)
        cut = int(rng.integers(len(kinds)))
        names = []
        for k, (kind, corner) in enumerate(zip(kinds, corners, strict=True)):
            here = self._frame()[0], corner
            if plane is not None:
                across = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])  # h in the plane
                turn = rotation(np.array([0, 0, 1.0]), rng.uniform(0, 6))
                here = after(plane, (turn @ across if kind == "prismatic" else turn, corner))
            rotor = 0.05 if k == cut else 0.2  # a mechanism with a rotor at its cut is taken as free masses
            names.append(self._joint(kind, (bodies[k], bodies[k + 1]), here, cut=k == cut, rotor=rotor))
        self._chain_freedom = [n for n in names if self.drawn.joints[n].kind in SINGLE]

    # -- gears ------------------------------------------------------------------------------------------------
    def _couple(self, follower: str, leader: str) -> None:
        rng, joints = self.rng, self.drawn.joints
        ratio = float(rng.choice([-1, 1]) * rng.uniform(0.3, 2.5))
        if joints[follower].cut and joints[leader].cut:
            ratio = float(rng.choice([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]))
        offset = float(joints[follower].q[0] - ratio * joints[leader].q[0])
        name = f"g{len(self.drawn.gears)}" if rng.uniform() < 0.7 else ""
        self.drawn.gears.append(Gear(name or follower, follower, leader, ratio, offset))

    def _leaders(self) -> list[str]:
        """The joints that a wheel could follow."""
        following = {g.follower for g in self.drawn.gears}
        return [n for n, joint in self.drawn.joints.items() if joint.kind in SINGLE and n not in following]

    def _wheel(self, k: int) -> None:
        """One more body on a joint of one coordinate, geared to another joint: it follows, or it leads."""
        rng = self.rng
        near, leaders = str(rng.choice(list(self.poses))), self._leaders()
        name = self._grow(f"w{k}", near, str(rng.choice(SINGLE)), after(self.poses[near], self._frame()))
        if not leaders:
            self.freedom.append(name)
            return
        other = str(rng.choice(leaders))
        leads = any(g.leader == other for g in self.drawn.gears)
        self._couple(*((name, other) if leads or rng.uniform() < 0.5 else (other, name)))

    def _train(self) -> None:
        """One or two more wheels, each geared to the last follower of a train: trains of two gears and more."""
        rng, gears = self.rng, self.drawn.gears
        if not gears:
            return
        leading = {g.leader for g in gears}
        last = str(rng.choice([g.follower for g in gears if g.follower not in leading]))
        for k in range(int(rng.integers(1, 3))):
            near = str(rng.choice(list(self.poses)))
            name = self._grow(f"v{k}", near, str(rng.choice(SINGLE)), after(self.poses[near], self._frame()))
            self._couple(name, last)
            last = name
        rng.shuffle(gears)

    def _mesh(self) -> None:
        """A gear between two joints that could both be prescribed: it takes a degree of freedom."""
        free = [n for n in self.freedom if n and self.drawn.joints[n].kind in SINGLE]
        leading = {g.leader for g in self.drawn.gears}
        follower = next((n for n in free[1:] if n not in leading and n in self._leaders()), None)
        leader = next((n for n in free if n in self._leaders() and n != follower), None)
        if follower and leader:
            self._couple(follower, leader)
            self.freedom.remove(follower)

    # -- the builder ------------------------------------------------------------------------------------------
    def _build(self) -> None:
        b, drawn = self.b, self.drawn
        b.gravity(drawn.gravity)
        for name, s in drawn.solids.items():
            b.body(name, s.mass, s.com, s.inertia)
            b.place(name, self.poses[name][1], rotation=self.poses[name][0])
        for x in drawn.joints.values():
            frames = (b.frame(body, *pose) for body, pose in ((x.parent, x.i), (x.child, x.j)))
            pitch = {"pitch": x.pitch} if x.kind == "screw" else {}
            b.joint(x.kind, *frames, x.name, armature=x.armature, cut=x.cut, **pitch)
        for g in drawn.gears:
            b.mimic(g.follower, g.leader, g.ratio, g.offset, name=None if g.name == g.follower else g.name)

    # -- couplings --------------------------------------------------------------------------------------------
    def _relate(self, name: str) -> None:
        """A relation between a joint that could be prescribed and others that could: it takes a degree of freedom."""
        rng, joints = self.rng, self.drawn.joints
        free = [n for n in dict.fromkeys(self.freedom) if n and joints[n].kind in (*SINGLE, "cylindrical")]
        free = [n for n in free if self.freedom.count(n) == RATES[joints[n].kind]]
        if not free:
            return
        chosen = [str(n) for n in rng.permutation(free)[: int(rng.integers(1, 4))]]
        # Of several rates the follower is the last, so that drivers can prescribe those before it.
        places = [
            (n, int(rng.integers(RATES[joints[n].kind])) if k else RATES[joints[n].kind] - 1)
            for k, n in enumerate(chosen)
        ]
        follower, others = places[0], places[1:]
        self.freedom = [n for n in self.freedom if n != follower[0]] + [follower[0]] * (
            self.freedom.count(follower[0]) - 1
        )
        a, b, c, w = rng.normal(size=len(others)), rng.normal(size=len(others)), *rng.uniform(0.3, 1.0, 2)
        timed = float(rng.uniform() < 0.4)
        start = [joints[n].q[k] for n, k in places]
        # Angles of joints that close loops are told by the relation but for whole turns.
        plain = [not (joints[n].cut and k == 0 and joints[n].kind != "prismatic") for n, k in places]

        def change(x: Any, t: Any) -> Any:
            """What the follower's coordinate is, but for a number."""
            total = timed * 0.1 * np.sin(w * t) * (1.0 + (x[0] if plain[0] else np.cos(x[0])))
            for y, p, r, square in zip(x[1:], a, b, plain[1:], strict=True):
                total = total + p * np.sin(y + r)
                if square and plain[1]:
                    total = total + 0.2 * r * y * y * (1.0 + 0.3 * x[1])
            return total

        def slopes(x: Any, t: Any) -> Any:
            rows = []
            for k in range(len(x) + 1):  # by complex steps
                *stepped, when = (y + (1e-30j if i == k else 0.0) for i, y in enumerate((*x, t)))
                rows.append(c * ((k == 0) - np.imag(change(stepped, when)) / 1e-30))
            return rows

        coordinates = [self.b.coordinate(n, k) for n, k in places]
        constant = float(start[0] - change(start, 0.0))
        time = lw.TIME if timed else 0.0
        if rng.uniform() < 0.5:
            self.b.coupling(name, c * (coordinates[0] - constant - change(coordinates, time)))
        else:
            c = 1.0
            self.b.coupling(name, (coordinates[0], constant + change(coordinates, time)))
        self.drawn.couplings.append(Coupled(name, tuple(places), slopes))

    # -- ties -------------------------------------------------------------------------------------------------
    def _movable(self) -> list[str]:
        """Joints that a force on their outer body could move, without gears."""
        geared = {n for g in self.drawn.gears for n in (g.follower, g.leader)}
        free = [n for n in self.freedom if self.freedom.count(n) == 1]
        return [n for n in free if n in self.far and n not in geared and self.drawn.joints[n].kind in SINGLE]

    def _seen(self, end: tuple[str, Floats, str]) -> Floats:
        """Where a point is drawn, in ground."""
        return after(self.poses[end[0]], (np.eye(3), end[1]))[1]

    def _point_constraint(self) -> None:
        """A rod to ground, or a plane of ground, that takes the freedom of a joint."""
        movable = self._movable()
        if not movable:
            return
        name = str(self.rng.choice(movable))
        self.freedom.remove(name)
        point, post = self._point([self.far[name]]), self._point([GROUND])
        if self.rng.uniform() < 0.5:
            self.b.rod(point[2], post[2], float(np.linalg.norm(self._seen(point) - self._seen(post))), "rod")
            self.drawn.point_constraints["rod"] = Push((point[:2], post[:2]))
        else:
            axes = rotation(self.rng.normal(size=3), 1.1)
            plane = self.b.frame(GROUND, axes, self._seen(point) + axes[:, :2] @ self.rng.normal(size=2), "floor")
            self.b.point_on_plane(plane, point[2], "plane")
            self.drawn.point_constraints["plane"] = Push((point[:2],), (GROUND, axes[:, 2]))

    # -- loads ------------------------------------------------------------------------------------------------
    def _load(self) -> None:
        rng = self.rng
        coupled = [n for g in self.drawn.gears for n in (g.follower, g.leader)]
        names = list(self.drawn.joints)
        for k in range(int(rng.integers(3, 7))):
            name = str(rng.choice(coupled if coupled and rng.uniform() < 0.6 else names))
            self._joint_load(f"e{k}", self.drawn.joints[name])
        for k in range(int(rng.integers(0, 3))):
            self._pair_load(f"p{k}")
        for k in range(int(rng.integers(0, 3))):
            self._wrench(f"t{k}")
        if rng.uniform() < 0.5:  # so that it can come to rest
            held = [x for x in self.drawn.joints.values() if x.kind in SINGLE and not x.cut]
            for k, joint in enumerate(held):
                self._joint_load(f"s{k}", joint, "holding")
            self.drawn.rests = "" not in self.freedom and all(self.drawn.joints[n].kind in SINGLE for n in self.freedom)

    def _joint_load(self, name: str, joint: Joint, sort: str = "") -> None:
        rng, b, on = self.rng, self.b, joint.name
        a, c, w = (float(x) for x in rng.uniform(0.5, 4.0, 3))
        known = joint.kind in (*SINGLE, "cylindrical")  # else its coordinates are not measured by the test
        index = int(rng.integers(RATES[joint.kind]))
        which: dict[str, Any] = {"index": index, "name": name}
        rest = float(joint.q[index])
        loads: dict[str, tuple[Callable[[], Any], Callable[[Any, Any, Any], Any]]] = {
            "holding": (
                lambda: b.joint_spring(on, 20 * a, rest, c, **which),
                lambda q, v, t: -20 * a * (q - rest) - c * v,
            ),
            "spring": (
                lambda: b.joint_spring(on, 5 * a, 0.3, c, **which),
                lambda q, v, t: -5 * a * (q - 0.3) - c * v,
            ),
            "damper": (lambda: b.joint_damper(on, c, **which), lambda q, v, t: -c * v),
            "friction": (lambda: b.joint_friction(on, a, 0.5, **which), lambda q, v, t: -a * np.tanh(v / 0.5)),
            "actuator": (
                lambda: b.actuator(on, lambda q, t: 4 * np.sin(w * t + 1) - c * q, a, **which),
                lambda q, v, t: np.clip(4 * np.sin(w * t + 1) - c * q, -a, a),
            ),
            "stop": (  # whose motion begins in it
                lambda: b.stop(on, upper=rest - 0.1, stiffness=30 * a, damping=0.1, **which),
                lambda q, v, t: -np.maximum(0, 30 * a * np.maximum(0, q - rest + 0.1) * (1 + 0.1 * v)),
            ),
            "force": (
                lambda: b.joint_force(on, lambda t: 5 * a * np.cos(w * t) + c, **which),
                lambda q, v, t: 5 * a * np.cos(w * t) + c,
            ),
        }
        sort = sort or (str(rng.choice(list(loads)[1:])) if known else "force")
        build, value = loads[sort]
        build()
        self.drawn.joint_loads.append(JointLoad(name, on, index, value))

    def _point(self, bodies: list[str]) -> tuple[str, Floats, str]:
        """A point of one of these bodies, and the frame that names it."""
        body, at = str(self.rng.choice(bodies)), self.rng.normal(size=3)
        name = f"point {len(self.frames)}"
        self.frames[name] = body, rotation(self.rng.normal(size=3), 1.3)
        self.b.frame(*self.frames[name], at, name)
        return body, at, name

    def _pair_load(self, name: str) -> None:
        rng, b = self.rng, self.b
        first = self._point(list(self.drawn.solids))
        second = self._point([x for x in (*self.drawn.solids, GROUND) if x != first[0]])
        ends = first[2], second[2]
        a, c = (float(x) for x in rng.uniform(1.0, 8.0, 2))
        loads: list[tuple[Callable[[], Any], Callable[[Any, Any, Any], Any]]] = [
            (lambda: b.spring(*ends, a, 0.7, c, name=name), lambda d, r, t: -a * (d - 0.7) - c * r),
            (lambda: b.damper(*ends, c, name=name), lambda d, r, t: -c * r),
            (
                lambda: b.bumper(*ends, upper=0.2, stiffness=a, damping=0.05, name=name),
                lambda d, r, t: -np.maximum(0, a * np.maximum(0, d - 0.2) * (1 + 0.05 * r)),
            ),
            (
                lambda: b.point_force(*ends, lambda d, t: a * np.cos(t) + d, name=name),
                lambda d, r, t: a * np.cos(t) + d,
            ),
        ]
        build, value = loads[int(rng.integers(len(loads)))]
        build()
        self.drawn.pair_loads.append(PairLoad(name, (first[:2], second[:2]), value))

    def _wrench(self, name: str) -> None:
        rng = self.rng
        everywhere = [*self.drawn.solids, GROUND]
        body, at, frame = self._point(list(self.drawn.solids))
        start, rate = rng.normal(size=6) * 4, rng.normal(size=6)
        laws = [start[k] + rate[k] * lw.TIME for k in range(6)]
        axes: Any = ["frame", "ground", self._point(everywhere)[2]][rng.integers(3)]
        of = {"frame": self.frames[frame], "ground": (GROUND, np.eye(3))}.get(axes) or self.frames[axes]
        reaction = self._point([x for x in everywhere if x != body]) if rng.uniform() < 0.5 else None
        there = None if reaction is None else reaction[2]
        self.b.applied_wrench(frame, laws[:3], laws[3:], axes=axes, reaction=there, name=name)
        self.drawn.wrenches.append(Wrench(body, at, of, start, rate, reaction and reaction[0]))

    # -- drivers ----------------------------------------------------------------------------------------------
    def _drive(self) -> None:
        """Drivers of all degrees of freedom, or of those that can be prescribed; perhaps at a gear's other end."""
        rng, drawn = self.rng, self.drawn
        count: dict[str, int] = {}
        drawn.prescribed = "" not in self.freedom
        for k, name in enumerate(n for n in self.freedom if n):
            index = count[name] = count.get(name, -1) + 1
            partners = [n for g in drawn.gears if name in (g.follower, g.leader) for n in (g.follower, g.leader)]
            joint = drawn.joints[str(rng.choice(partners)) if partners and rng.uniform() < 0.5 else name]
            a, w = (float(x) for x in rng.uniform(0.2, 1.5, 2))
            rate = _rate(a, w)
            if name in self._movable() and rng.uniform() < 0.4:
                drawn.drives.append(self._point_drive(f"d{k}", self.far[name], a * np.sin(w * lw.TIME), rate))
                continue
            self.b.driver("joint", joint.name, joint.q[index] + a * np.sin(w * lw.TIME), index=index, name=f"d{k}")
            drawn.drives.append(Drive(f"d{k}", rate, joint.name, index))

    def _point_drive(self, name: str, body: str, change: Any, rate: Callable[[Any], Any]) -> Drive:
        """A driver of the distance of a body's point from ground's, or of its coordinate in ground."""
        point, post = self._point([body]), self._point([GROUND])
        where = self._seen(point)
        if self.rng.uniform() < 0.5:
            start = float(np.linalg.norm(where - self._seen(post)))
            self.b.driver("distance", point[2], start + 0.3 * change, other=post[2], name=name)
            return Drive(name, lambda t: 0.3 * rate(t), push=Push((point[:2], post[:2])))
        k = int(self.rng.integers(3))
        self.b.driver("absolute", point[2], float(where[k]) + 0.3 * change, coordinate="xyz"[k], name=name)
        return Drive(name, lambda t: 0.3 * rate(t), push=Push((point[:2],), (GROUND, np.eye(3)[k])))


def _rate(a: float, w: float) -> Callable[[Any], Any]:
    """That of a sin(w t)."""
    return lambda t: a * w * np.cos(w * t)
