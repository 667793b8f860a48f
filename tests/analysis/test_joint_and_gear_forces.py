"""Forces of gears, mimics and what loads them: Newton and Euler close on every body, whatever acts on what joint.

A joint exerts what is on its own coordinates. A gear exerts its force on its follower's coordinate, and −ratio times
that on its leader's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
import rotation
from coupled_mechanisms import draw
from linkwright.formats.mks.mks_reader import parse_mks
from mechanism_parts import GROUND, RATES, SINGLE, Drawn, Drive, JointLoad
from newton_euler import Balance, Floats, coordinates, motion_of, power_along, rate_along

SEEDS = range(1000)
PART = 50  # seeds of one slow test
CLOSE = 1e-7  # of the wrenches that act on a body
TIMES = np.array([0.0, 0.001, 0.002])
#: How a mechanism may end its motion before its time: its own geometry, which a seed does not look at.
OUT_OF_REACH = {"constraint cannot be met", "dead centre", "lock-up", "out of reach", "no equilibrium"}
Wrench = tuple[Floats, Floats, Floats]


WHEELS = """MODEL wheels
BODY g (ground);
BODY one (mass = 1, inertia = (0.2, 0.2, 0.3));
BODY two (mass = 1, inertia = (0.1, 0.1, 0.2));
TRIAD shaft (associated body = g, origin = (1, 0, 0));
REVOLUTE JOINT j1 (triad = g, triad = one);
REVOLUTE JOINT j2 (triad = shaft, triad = two);
GEAR mesh (joint = j2, joint = j1, ratio = -0.5);
{rest}
ENDMODEL"""
TORQUES = ["mesh.torque", "d.torque", "j1.mz", "j2.mz"]


def wheels(rest: str) -> lw.Mechanism:
    return lw.Mechanism(parse_mks(WHEELS.format(rest=rest)))


@pytest.mark.parametrize("analysis", ["inverse dynamic", "dynamic"])
@pytest.mark.parametrize(
    ("rest", "wanted"),
    [
        ("TORQUE load (joint = j2, law = 20); DRIVER d (j1.angle = 10*TIME);", [-20, 10, 10, 20]),
        ("DAMPER load (joint = j2, damping = 4); DRIVER d (j1.angle = 10*TIME);", [-20, 10, 10, 20]),
        ("TORQUE load (triad = two, torque = (0, 0, 20)); DRIVER d (j1.angle = 10*TIME);", [-20, 10, 10, 0]),
        ("TORQUE load (joint = j2, law = 20); DRIVER d (j2.angle = 10*TIME);", [0, -20, 0, 0]),
        ("TORQUE load (joint = j1, law = 20); DRIVER d (j2.angle = 10*TIME);", [-40, 40, 20, 40]),
    ],
)
def test_a_load_reaches_the_driver_through_the_mesh(analysis: str, rest: str, wanted: list[float]) -> None:
    sol = lw.analyse(wheels(rest), analysis=analysis, times=[0.0, 0.1])
    for name, torque in zip(TORQUES, wanted, strict=True):
        assert sol.series[name].values == pytest.approx([torque, torque], abs=1e-9), name


def test_a_gear_of_a_tree_is_among_its_forces() -> None:
    """(0.3 + 0.5² · 0.2) a = −0.5 · 20 of the leader, and the follower turns at −0.5 a."""
    sol = lw.analyse(wheels("TORQUE load (joint = j2, law = 20);"), analysis="dynamic", times=[0.0, 0.1])
    a = -10 / 0.35
    assert sol.series["mesh.torque"].values == pytest.approx(2 * [0.2 * -0.5 * a - 20])
    assert 0.5 * sol.series["mesh.torque"].values == pytest.approx(2 * [0.3 * a])
    assert sol.series["j1.mz"].values == pytest.approx([0, 0], abs=1e-9)
    assert sol.series["j2.mz"].values == pytest.approx([20, 20])


def test_each_mimic_of_a_chain_drives_its_follower_and_what_follows_that(tmp_path: Path) -> None:
    """Wheels of 1, 2 and 3 kg m² on damped joints: j2 = −2 j1, and j3 = 0.5 j2."""
    wheel = '<link name="w{k}"><inertial><mass value="1"/><inertia ixx="9" iyy="9" izz="{k}" ixy="0" ixz="0" iyz="0"/>'
    joint = '<joint name="j{k}" type="continuous"><parent link="base"/><child link="w{k}"/><axis xyz="0 0 1"/>'
    mimics = {1: "", 2: '<mimic joint="j1" multiplier="-2"/>', 3: '<mimic joint="j2" multiplier="0.5"/>'}
    parts = (
        wheel.format(k=k) + "</inertial></link>" + joint.format(k=k) + f'<dynamics damping="0.{k}"/>{mimic}</joint>'
        for k, mimic in mimics.items()
    )
    (tmp_path / "chain.urdf").write_text(f'<robot name="r"><link name="base"/>{"".join(parts)}</robot>')
    mech = lw.load(tmp_path / "chain.urdf", friction="apply")
    sol = lw.analyse(mech, analysis="dynamic", times=[0.0, 1.0], tau=[5.0])
    rate, change = sol.v[:, 0], sol.a[:, 0]
    assert (1 + 4 * 2 + 3) * change == pytest.approx(5 - (0.1 + 4 * 0.2 + 0.3) * rate)
    third = -(3 * change + 0.3 * rate)
    assert sol.series["j3.torque"].values == pytest.approx(third)
    assert sol.series["j2.torque"].values == pytest.approx(-2 * (2 * change + 0.2 * rate) + 0.5 * third)
    assert sol.series["j1.mz"].values == pytest.approx(5 - 0.1 * rate)
    assert sol.series["j3.mz"].values == pytest.approx(0.3 * rate)


def five_bar(cut: str, more: Callable[[lw.Builder], object]) -> lw.Mechanism:
    """Four bars about z whose two cranks are geared together, −1 to 1; E, from the last bar to ground, is backwards."""
    corners = {"A": (0, 0), "B": (0, 1), "C": (1, 1.5), "D": (2, 1), "E": (2, 0)}
    bodies = ["ground", "b1", "b2", "b3", "b4", "ground"]
    origins = {"ground": np.zeros(3)} | {f"b{k + 1}": np.array([*at, 0.0]) for k, at in enumerate(corners.values())}
    with lw.Builder("geared five-bar") as b:
        for name in bodies[1:-1]:
            b.body(name, 1.0, (0.1, 0.2, 0.0), (0.1, 0.1, 0.15))
            b.place(name, origins[name])
        for k, (name, (x, y)) in enumerate(corners.items()):
            ends = (b.triad(n, np.array([x, y, 0.0]) - origins[n]) for n in bodies[k : k + 2])
            b.joint("revolute", *ends, name, cut=name == cut)
        b.mimic("E", "A", 1.0, name="mesh")
        more(b)
    return b.build()


@pytest.mark.parametrize("cut", ["B", "E"])
def test_a_geared_five_bar_passes_its_load_on(cut: str) -> None:
    """A torque on the follower, a driver on the leader: what they put in is what the bars gain."""

    def more(b: lw.Builder) -> None:
        b.gravity((0, 0, 0))
        b.joint_force("E", 20.0, name="load")
        b.driver("joint", "A", 0.7 * lw.TIME, name="motor")

    mech = five_bar(cut, more)
    sol = lw.analyse(mech, analysis="inverse dynamic", times=np.linspace(0.0, 1e-3, 3))
    torque = {name: sol.series[name].values for name in ("load.torque", "motor.torque", "A.mz", "E.mz", "mesh.torque")}
    energy = mech.kinetic_energy(sol.q, sol.v)
    gain = (energy[2] - energy[0]) / 1e-3
    assert 0.7 * (torque["motor.torque"] + torque["load.torque"])[1] == pytest.approx(gain, abs=1e-4)
    np.testing.assert_allclose(torque["A.mz"], torque["motor.torque"], atol=1e-8)
    np.testing.assert_allclose(torque["E.mz"], -20.0, atol=1e-8)  # on the bar, which is its parent


@pytest.mark.parametrize("cut", ["B", "E"])
def test_a_gear_in_a_loop_passes_on_what_a_wheel_geared_to_its_follower_takes(cut: str) -> None:
    """20 N m on a light wheel that turns three times as fast as E are as 60 N m on E."""

    def driven(b: lw.Builder) -> None:
        b.driver("joint", "A", 0.7 * lw.TIME, name="motor")

    def load(b: lw.Builder) -> None:
        driven(b)
        b.joint_force("E", 60.0, name="load")

    def train(b: lw.Builder) -> None:
        driven(b)
        b.joint("revolute", b.ground, b.body("wheel", 1e-9, inertia=(1e-9, 1e-9, 1e-9)), "W")
        b.mimic("W", "E", 3.0, name="second")
        b.joint_force("W", 20.0, name="load")

    sols, last = [], np.zeros(0)
    for more in (load, train):
        mech = five_bar(cut, more)
        sols.append(lw.analyse(mech, analysis="inverse dynamic", times=np.linspace(0.0, 0.1, 3)))
        last = mech.constraint_forces(sols[-1].q, sols[-1].v, np.zeros(mech.nv), t=sols[-1].time)
    for name in ("mesh.torque", "motor.torque", "A.mz"):
        np.testing.assert_allclose(sols[1].series[name].values, sols[0].series[name].values, atol=1e-6)
    np.testing.assert_allclose(sols[1].series["second.torque"].values, -20.0, atol=1e-6)
    np.testing.assert_allclose(sols[1].series["E.mz"].values, 0.0, atol=1e-6)
    gears = {name.split("'")[1]: row for name, row in zip(mech.constraints, last.T, strict=True) if "gear" in name}
    assert set(gears) == ({"mesh", "second"} if cut == "E" else set())
    for name, row in gears.items():
        np.testing.assert_allclose(row, sols[1].series[f"{name}.torque"].values, atol=1e-6)


@pytest.mark.parametrize(("cut", "body"), [("C", "child"), ("B", "parent")])
def test_a_force_on_a_joint_is_in_its_wrench_wherever_the_loop_is_cut(cut: str, body: str) -> None:
    mech = five_bar(cut, lambda b: b.joint_force("C", 8.0, name="push"))
    sol = lw.analyse(mech, analysis="dynamic", times=[0.0, 1e-3])
    np.testing.assert_allclose(sol.series["C.mz"].values, 8.0 if body == "child" else -8.0, atol=1e-8)


def test_a_name_that_a_gear_and_a_force_share_is_reported() -> None:
    mech = five_bar("B", lambda b: b.joint_force("E", 20.0, name="mesh"))
    sol = lw.analyse(mech, analysis="dynamic", times=[0.0, 1e-3])
    assert sol.series["mesh.torque"].values == pytest.approx([20.0, 20.0])
    assert "one 'mesh.torque' is left out: gears, drivers and forces share this name" in str(sol.status).lower()


def test_kinematic_analysis_has_no_forces() -> None:
    sol = lw.analyse(wheels("TORQUE load (joint = j2, law = 20); DRIVER d (j1.angle = TIME);"), times=[0.0, 0.1])
    assert not sol.series


@pytest.mark.parametrize("seed", rotation.some(SEEDS, 8))
def test_newton_and_euler_close_on_every_body(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKWRIGHT_BACKEND", "numpy")  # the mechanism is used once: compiling it takes longer
    check(draw(seed))


@pytest.mark.parametrize("seed", rotation.some(SEEDS, 8))
def test_newton_and_euler_close_on_every_body_with_couplings(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKWRIGHT_BACKEND", "numpy")
    check(draw(seed, couplings=True))


@pytest.mark.slow
@pytest.mark.parametrize("first", SEEDS[::PART])
def test_newton_and_euler_close_on_every_body_of_every_seed(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKWRIGHT_BACKEND", "numpy")
    ended = [end for seed in SEEDS[first : first + PART] for end in check(draw(seed))]
    assert np.mean(ended) > 0.9


def check(drawn: Drawn) -> list[bool]:
    """Every analysis of a drawn mechanism that finds forces; of each, whether it went to its end."""
    rng, mech = np.random.default_rng(drawn.seed), drawn.mech
    ended = []
    for kind in analyses(drawn):
        tau = 3.0 * rng.normal(size=mech.nv) if kind == "dynamic" else np.zeros(mech.nv)
        settings = {"method": "rk4", "dt": 0.001, "tau": tau} if kind == "dynamic" else {}
        sol = lw.analyse(mech, analysis=kind, times=TIMES[: 1 if kind == "static" else None], **settings)
        assert sol.status or sol.status.reason in OUT_OF_REACH, (kind, str(sol.status))
        assert "left out" not in str(sol.status), (kind, str(sol.status))
        ended.append(bool(sol.status))
        if len(sol):
            Check(drawn, sol, tau).all(moving=kind != "static")
    return ended


def analyses(drawn: Drawn) -> list[str]:
    prescribed = ["inverse dynamic"] if drawn.prescribed and drawn.drives else []
    return ["dynamic", *prescribed, *(["static"] if drawn.rests and drawn.seed % 2 else [])]


class Check:
    """What a solution reports of its forces, against Newton's and Euler's equations in NumPy."""

    def __init__(self, drawn: Drawn, sol: lw.Solution, tau: Floats) -> None:
        self.drawn, self.sol, self.tau = drawn, sol, tau
        self.m = motion_of(sol, list(drawn.solids))
        self.wrenches = {name: self._wrench(name, body) for name, body in self._reported()}

    def all(self, moving: bool) -> None:
        self.bodies()
        self.laws()
        self.drives()
        self.reactions()
        if self.drawn.drives and moving:  # at rest drivers hold what their laws would move
            self.power()

    # -- what is reported -------------------------------------------------------------------------------------
    def _reported(self) -> list[tuple[str, str]]:
        """The joints in the order of reactions, each with the body that its wrench is on."""
        mech, joints = self.drawn.mech, self.drawn.joints
        tree = [(x.name, body.name) for x, body in zip(mech.joints, mech.bodies, strict=True)]
        return tree + [(n, joints[n].child if joints[n].child != GROUND else joints[n].parent) for n in mech.loops]

    def _wrench(self, name: str, body: str) -> Wrench:
        """The wrench of a joint on its child, and where it is."""
        joint, series = self.drawn.joints[name], self.sol.series
        force, moment = (np.stack([series[f"{name}.{x}{k}"].values for k in "xyz"], axis=1) for x in "fm")
        if body == joint.child:
            return self.m.point(body, joint.j[1]), force, moment
        return self.m.point(body, joint.i[1]), -force, -moment

    def _scalar(self, name: str, joint: str, index: int = 0) -> Floats:
        """The series of what acts on a joint's coordinate."""
        kind = self.drawn.joints[joint].kind
        pushes = {("prismatic", 0), ("cylindrical", 1), ("planar", 0), ("planar", 1)}
        return self.sol.series[f"{name}.{'force' if (kind, index) in pushes else 'torque'}"].values

    def _drive(self, x: Drive) -> Floats:
        return self.sol.series[f"{x.name}.force"].values if x.push else self._scalar(x.name, x.joint, x.index)

    # -- checks -----------------------------------------------------------------------------------------------
    def bodies(self) -> None:
        """Joints, gears, elements and gravity move every body as it moves."""
        drawn, balance = self.drawn, Balance(self.drawn, self.m)
        balance.loads()
        balance.gears({g.name: self._scalar(g.name, g.follower) for g in drawn.gears})
        balance.couplings({c.name: self._scalar(c.name, *c.coordinates[0]) for c in drawn.couplings})
        pushes = drawn.point_constraints | {x.name: x.push for x in drawn.drives if x.push is not None}
        balance.along_lines(pushes, {name: self.sol.series[f"{name}.force"].values for name in pushes})
        for name, wrench in self.wrenches.items():
            balance.between((drawn.joints[name].child, drawn.joints[name].parent), *wrench)
        assert np.abs(balance.residual()).max() < CLOSE

    def laws(self) -> None:
        """The series of a force on a joint is its law."""
        for load in self.drawn.joint_loads:
            reported = self._scalar(load.name, load.joint, load.index)
            np.testing.assert_allclose(reported, self._value(load), rtol=1e-7, atol=1e-7)

    def _value(self, load: JointLoad) -> Floats:
        q, v, _ = coordinates(self.drawn.joints[load.joint], self.m, load.index)
        return np.broadcast_to(load.value(q, v, self.m.time), self.m.time.shape)

    def drives(self) -> None:
        """Along its freedom a joint exerts what is on its own coordinates: laws, tau, drivers, less its armature."""
        for name, joint in self.drawn.joints.items():
            exerted = power_along(joint, self.m, *self.wrenches[name])
            wanted = np.zeros((RATES[joint.kind], len(self.m.time))) + self._outside(name)[:, None]
            for load in self.drawn.joint_loads:
                if load.joint == name:
                    wanted[load.index] += self._value(load)
            for x in self.drawn.drives:
                if x.joint == name:
                    wanted[x.index] += self._drive(x)
            if joint.kind in SINGLE:
                wanted[0] -= joint.armature * coordinates(joint, self.m, 0)[2]
            scale = 1.0 + max(np.abs(part).max() for part in (*self.wrenches[name][1:], wanted))
            assert np.abs(exerted - wanted).max() < CLOSE * scale, name

    def _outside(self, name: str) -> Floats:
        """tau on a joint: followers and joints that close loops have none."""
        mech = self.drawn.mech
        if name in mech.loops or mech.joints[name].mimics in [x.name for x in mech.joints]:
            return np.zeros(RATES[self.drawn.joints[name].kind])
        return self.tau[mech.joints[name].v_slice]

    def reactions(self) -> None:
        """`mech.reactions` has the wrenches of the series, at the bodies' origins in their axes."""
        sol, m = self.sol, self.m
        rows = self.drawn.mech.reactions(sol.q, sol.v, self.tau, t=sol.time)
        assert rows.shape[1] == len(self.wrenches)
        for k, (name, body) in enumerate(self._reported()):
            at, force, moment = self.wrenches[name]
            sign = 1.0 if body == self.drawn.joints[name].child else -1.0
            moment = moment + np.cross(at - m.p[body], force)
            wanted = [sign * np.einsum("tji,tj->ti", m.r[body], x) for x in (force, moment)]
            scale = 1.0 + max(np.abs(x).max() for x in wanted)
            assert np.abs(rows[:, k] - np.concatenate(wanted, axis=1)).max() < 1e-5 * scale, name

    def power(self) -> None:
        """Drivers put in what the bodies' energy gains and the loads take, by their series and by λ."""
        drawn, m, sol = self.drawn, self.m, self.sol
        balance = Balance(drawn, m)
        balance.loads()
        put_in, size = -balance.power(), balance.power_size()
        for load in drawn.joint_loads:
            put_in -= self._value(load) * rate_along(drawn.joints[load.joint], m, load.index)
        put_in -= sol.v @ self.tau
        for coupling in drawn.couplings:
            put_in += self._scalar(coupling.name, *coupling.coordinates[0]) * balance.slopes(coupling)[-1]
        for joint in drawn.joints.values():
            if joint.armature:
                _, rate, change = coordinates(joint, m, 0)
                put_in += joint.armature * change * rate
        mech = drawn.mech
        lam = mech.constraint_forces(sol.q, sol.v, self.tau, t=sol.time)
        multipliers = {
            name.split("'")[1]: x for name, x in zip(mech.constraints, lam.T, strict=True) if "driver" in name
        }
        for forces in (multipliers, {x.name: self._drive(x) for x in drawn.drives}):
            power = sum(forces[x.name] * x.rate(m.time) for x in drawn.drives)
            assert np.abs(power - put_in).max() < 1e-5 * (1.0 + size)
