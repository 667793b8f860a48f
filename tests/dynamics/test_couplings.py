"""Couplings against closed forms, gears, another integrator and finite differences: kinematics and dynamics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import linkwright as lw
import rotation
from coupled_mechanisms import draw
from linkwright.dynamics.functions import Request
from linkwright.errors import LinkwrightError, ModelError
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.formats.mks.mks_writer import write_mks
from linkwright.formats.model_files import writer
from linkwright.model.expression import tabulated

CAM = """MODEL cam
SYSTEM (KINEMATIC ANALYSIS, ending time = 2, print interval = 0.05);
PARAMETER h = 0.02;
PARAMETER k = 2;
BODY frame (ground);
BODY shaft (mass = 1, inertia = (0.01, 0.01, 0.01));
BODY tappet (mass = 0.5, inertia = (0.01, 0.01, 0.01));
BODY wheel (mass = 0.5, inertia = (0.01, 0.01, 0.02));
REVOLUTE JOINT crank (triad = frame, triad = shaft);
TRANSLATIONAL JOINT slide (triad = frame, triad = tappet);
REVOLUTE JOINT axle (triad = frame, triad = wheel);
COUPLING mesh (axle.angle = k*crank.angle + 0.2*sin(crank.angle));
COUPLING lift (slide.shift = h*(1 - cos(2*crank.angle)) + 0.001*TIME^2*sin(crank.angle));
{moved}
ENDMODEL
"""
DRIVEN = "DRIVER motor (crank.angle = 20 + 3*TIME + 0.2*TIME^2);"
LOADED = "TORQUE motor (joint = crank, law = 30*h - 0.1*crank.rate);"


def cam(moved: str = DRIVEN) -> lw.Mechanism:
    return lw.Mechanism(parse_mks(CAM.format(moved=moved)))


def tappet(t: Any) -> tuple[Any, Any, Any]:
    """The tappet's height, speed and acceleration, by the chain rule."""
    c, rate, change, h = 20 + 3 * t + 0.2 * t * t, 3 + 0.4 * t, 0.4, 0.02
    s = 0.001 * t**2
    speed = 2 * h * np.sin(2 * c) * rate + 0.002 * t * np.sin(c) + s * np.cos(c) * rate
    acceleration = h * (4 * np.cos(2 * c) * rate**2 + 2 * np.sin(2 * c) * change) + 0.002 * np.sin(c)
    acceleration = acceleration + 0.004 * t * np.cos(c) * rate + s * (np.cos(c) * change - np.sin(c) * rate**2)
    return h * (1 - np.cos(2 * c)) + s * np.sin(c), speed, acceleration


@pytest.mark.parametrize("settings", [{}, {"freedom": "pivoting"}, {"times": np.linspace(0, 2, 10_001)}])
def test_a_follower_moves_as_its_expression_of_angles_and_time(settings: dict[str, Any]) -> None:
    sol = lw.analyse(cam(), **settings)
    for reported, wanted in zip((sol.position, sol.velocity, sol.acceleration), tappet(sol.time), strict=True):
        np.testing.assert_allclose(reported("tappet")[:, 2], wanted, atol=1e-13)


def test_an_angle_that_follows_another_has_its_whole_turns() -> None:
    sol = lw.analyse(cam())
    crank = 20 + 3 * sol.time + 0.2 * sol.time**2
    np.testing.assert_allclose(sol.joint("axle")[:, 0], 2 * crank + 0.2 * np.sin(crank), atol=1e-12)


def test_the_force_on_a_follower_is_its_mass_times_its_acceleration_and_weight() -> None:
    """And the motor has the power of all: ω T = F v + what the wheels gain."""
    sol = lw.analyse(cam(), analysis="inverse dynamic")
    t, f = sol.time, {name: sol.series[name].values for name in ("lift.force", "mesh.torque", "motor.torque")}
    _, speed, acceleration = tappet(t)
    np.testing.assert_allclose(f["lift.force"], 0.5 * (acceleration + 9.81), atol=1e-12)
    crank, rate = 20 + 3 * t + 0.2 * t**2, 3 + 0.4 * t
    wheel = (2 + 0.2 * np.cos(crank)) * 0.4 - 0.2 * np.sin(crank) * rate**2
    np.testing.assert_allclose(f["mesh.torque"], 0.02 * wheel, atol=1e-12)
    by_crank = (speed - 0.002 * t * np.sin(crank)) / rate  # ∂(lift)/∂(crank)
    by_mesh = (2 + 0.2 * np.cos(crank)) * f["mesh.torque"]
    np.testing.assert_allclose(f["motor.torque"], 0.01 * 0.4 + by_mesh + by_crank * f["lift.force"], atol=1e-12)
    np.testing.assert_allclose(sol.series["slide.fz"].values, 0.0, atol=1e-12)  # the guide does not push along itself


@pytest.mark.parametrize("cut", ["", "B", "E"])
def test_a_linear_coupling_is_the_gear_that_it_says(cut: str) -> None:
    """A five-bar whose cranks are geared 1 : −0.5, by GEAR and by COUPLING, wherever its loop is cut."""

    def five_bar(couple: Callable[[lw.Builder], object]) -> lw.Mechanism:
        corners = {"A": (0, 0), "B": (0, 1), "C": (1, 1.5), "D": (2, 1), "E": (2, 0)}
        bodies = ["ground", "b1", "b2", "b3", "b4", "ground"]
        origins = {"ground": np.zeros(3)} | {f"b{k + 1}": np.array([*at, 0.0]) for k, at in enumerate(corners.values())}
        with lw.Builder("geared five-bar") as b:
            for name in bodies[1:-1]:
                b.body(name, 1.0, (0.1, 0.2, 0.0), (0.1, 0.1, 0.15))
                b.place(name, origins[name])
            b.gravity((0, -9.81, 0))
            for k, (name, (x, y)) in enumerate(corners.items()):
                ends = (b.triad(n, np.array([x, y, 0.0]) - origins[n]) for n in bodies[k : k + 2])
                b.joint("revolute", *ends, name, cut=name == cut)
            couple(b)
        return b.build()

    geared = five_bar(lambda b: b.mimic("A", "E", -0.5, name="mesh"))
    coupled = five_bar(lambda b: b.coupling("mesh", b.coordinate("A") + 0.5 * b.coordinate("E")))
    assert coupled.dof().left == geared.dof().left == 1
    runs = [
        lw.analyse(mech, analysis="dynamic", times=np.linspace(0, 0.3, 4), rtol=1e-10) for mech in (geared, coupled)
    ]
    for name in ("b1", "b3"):
        np.testing.assert_allclose(runs[1].position(name), runs[0].position(name), atol=1e-8)
    for name in ("mesh.torque", "A.fx", "C.fy", "E.mz"):
        np.testing.assert_allclose(runs[1].series[name].values, runs[0].series[name].values, atol=1e-6)


KINDS = [
    ("cylindrical", 0),
    ("cylindrical", 1),
    ("universal", 0),
    ("universal", 1),
    ("planar", 0),
    ("planar", 1),
    ("planar", 2),
    ("screw", 0),
]


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize(("kind", "index"), KINDS)
def test_every_coordinate_that_is_a_number_leads(kind: str, index: int, loop: bool) -> None:
    """Of joints of the tree, and of those that close a loop beside a free joint."""
    laws = (0.3 * lw.TIME + 0.2, 0.1 * (lw.TIME * 2.0).sin() + 0.4, 0.5 * lw.TIME)
    with lw.Builder(kind) as b:
        b.body("link", 1.0, (0.1, 0.2, 0.3), (0.1, 0.2, 0.15))
        b.body("tappet", 1.0, inertia=(0.1, 0.1, 0.1))
        b.joint("prismatic", b.ground, b.triad("tappet", h=(1, 1, 0), f=(0, 0, 1)), "slide")
        frames = (
            b.triad(b.ground, (0.1, 0, 0), (0, 1, 1), (1, 0, 0)),
            b.triad("link", (0, 0.2, 0), (1, 1, 0), (0, 0, 1)),
        )
        if loop:
            b.joint("free", b.ground, "link", "fly")
        b.joint(kind, *frames, "lead", cut=loop, **({"pitch": 0.1} if kind == "screw" else {}))
        x = b.coordinate("lead", index)
        for k in range(lw.random_tree(1, 0).nv and {"planar": 3, "screw": 1}.get(kind, 2)):
            b.driver("joint", "lead", laws[k], index=k)
        b.coupling("cam", ("slide", 0.2 * np.sin(x) + 0.1 * x * lw.TIME))
    sol = lw.analyse(b.build(), times=np.linspace(0.0, 0.5, 6))
    t = sol.time
    x, v, a = (np.array(y) for y in ((0.3 * t + 0.2, 0.1 * np.sin(2 * t) + 0.4, 0.5 * t)[index],
        (0.3 + 0 * t, 0.2 * np.cos(2 * t), 0.5 + 0 * t)[index],
        (0 * t, -0.4 * np.sin(2 * t), 0 * t)[index]))  # fmt: skip
    np.testing.assert_allclose(sol.joint("slide")[:, 0], 0.2 * np.sin(x) + 0.1 * x * t, atol=1e-12)
    np.testing.assert_allclose(sol.joint_rate("slide")[:, 0], 0.2 * np.cos(x) * v + 0.1 * (v * t + x), atol=1e-11)
    wanted = 0.2 * (np.cos(x) * a - np.sin(x) * v**2) + 0.1 * (a * t + 2 * v)
    np.testing.assert_allclose(sol.joint_acceleration("slide")[:, 0], wanted, atol=1e-10)


def bead(curve: Callable[[Any], tuple[Any, Any]]) -> lw.Mechanism:
    """A bead on a curve: a massless body on a planar joint, whose x and y follow functions of its angle."""
    with lw.Builder("bead") as b:
        b.gravity((0, -9.81, 0))
        b.joint("planar", b.ground, b.body("carrier", 0.0), "place")
        b.joint("revolute", "carrier", b.body("bead", 0.7, inertia=(1e-3, 1e-3, 1e-3)), "pin")
        angle = b.coordinate("place", 2)
        for name, index, follows in zip("xy", (0, 1), curve(angle), strict=True):
            b.coupling(name, (b.coordinate("place", index), follows))
        b.initial(angle, 0.3)
    return b.build()


def ellipse(u: Any) -> tuple[Any, Any]:
    return 0.5 * np.cos(u), 0.3 * np.sin(u)


def splines(u: Any) -> tuple[Any, Any]:
    s = np.linspace(-5, 2, 600)
    return tuple(tabulated(u, list(zip(s, y, strict=True))) for y in ellipse(s))  # type: ignore[return-value]


@pytest.mark.parametrize(("curve", "close"), [(ellipse, 1e-9), (splines, 1e-6)])
def test_a_massless_carrier_leads_a_bead_along_a_curve(curve: Callable[[Any], Any], close: float) -> None:
    mech = bead(curve)
    sol = lw.simulate(mech, t_end=1.0, rtol=1e-10)

    def rates(t: float, s: Any) -> Any:
        c, n = np.cos(s[0]), np.sin(s[0])
        push = -9.81 * 0.3 * c - (0.25 * n * c - 0.09 * n * c) * s[1] ** 2
        return [s[1], push / (0.25 * n**2 + 0.09 * c**2)]

    wanted = solve_ivp(rates, (0, 1), [0.3, 0.0], rtol=1e-12, atol=1e-13).y[:, -1]
    np.testing.assert_allclose([sol.q[-1, 2], sol.v[-1, 2]], wanted, atol=close)
    energy = mech.kinetic_energy(sol.q, sol.v) + mech.potential_energy(sol.q)
    assert np.ptp(energy) < 1e-8
    force = mech.constraint_forces(sol.q[-1], sol.v[-1], np.zeros(4))
    at = ellipse(wanted[0])
    slope = -0.5 * np.sin(wanted[0]), 0.3 * np.cos(wanted[0])
    change = rates(0, wanted)[1]
    acceleration = np.array(slope) * change - np.array(at) * wanted[1] ** 2
    np.testing.assert_allclose(force, 0.7 * (acceleration + np.array([0, 9.81])), atol=1e4 * close)


def test_two_couplings_that_say_the_same_are_named_as_redundant() -> None:
    text = CAM.replace(
        "COUPLING lift", "COUPLING again (2*axle.angle - 2*k*crank.angle = 0.4*sin(crank.angle));\nCOUPLING lift"
    )
    report = lw.Mechanism(parse_mks(text.format(moved=""))).dof()
    assert report.redundant == ("coupling 'again': relation",)
    assert report.left == 1


def test_a_coupling_and_a_driver_that_contradict_each_other_are_named() -> None:
    text = CAM.format(moved=f"{DRIVEN} DRIVER other (axle.angle = 1);")
    with pytest.raises(ModelError, match=r"'motor'.*'other'|'other'.*'motor'"):
        lw.analyse(lw.Mechanism(parse_mks(text)))


@pytest.mark.parametrize("seed", rotation.some(range(400), 3))
def test_all_forms_of_forward_dynamics_and_their_derivatives_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKWRIGHT_BACKEND", "numpy")
    mech, rng, t = draw(seed, couplings=True).mech, np.random.default_rng(seed), 0.01
    try:
        q, v = mech.initial_state(t=t)
    except ModelError:  # the seed's own geometry
        return
    v = mech.project(q, v + 0.3 * rng.normal(size=mech.nv), t=t)[1]
    tau = rng.normal(size=mech.nv)
    a = mech.forward_dynamics(q, v, tau, t=t)
    size = 1.0 + np.abs(a).max()
    methods = () if mech.programs.coupled else ("mass-matrix", "virtual-work", "assembly")
    others = [mech.forward_dynamics(q, v, tau, t=t, method=name) for name in methods]
    others.append(mech.kernels.evaluate(Request("forward_dynamics", form="rolled"), q, v, tau, t=t))
    for other in others:
        np.testing.assert_allclose(other, a, atol=1e-7 * size)
    back = mech.inverse_dynamics(q, v, a, t=t)
    np.testing.assert_allclose(mech.forward_dynamics(q, v, back, t=t), a, atol=1e-7 * size)
    h = 1e-6
    steps = [(mech.integrate(q, s * h * e), s) for e in np.eye(mech.nv) for s in (1, -1)]
    by_q = np.array([s * mech.forward_dynamics(x, v, tau, t=t) for x, s in steps]).reshape(mech.nv, 2, -1).sum(1).T
    slopes = mech.forward_dynamics_derivatives(q, v, tau, t=t)[0]
    np.testing.assert_allclose(slopes, by_q / (2 * h), atol=1e-5 * (1.0 + np.abs(slopes).max()))


def test_parameters_of_a_coupling_are_inputs() -> None:
    mech = cam(LOADED)
    other = mech.with_parameters(h=0.03)
    written = lw.Mechanism(parse_mks(CAM.format(moved=LOADED).replace("h = 0.02", "h = 0.03")))
    ends = [lw.simulate(x, t_end=0.5).q[-1] for x in (mech, other, written)]
    np.testing.assert_allclose(ends[1], ends[2], atol=1e-12)
    assert np.abs(ends[1] - ends[0]).max() > 1e-3
    q, v = written.initial_state()
    program = mech.program("forward_dynamics", free=("h", "k"))
    state = (q, v, np.zeros(3))
    np.testing.assert_allclose(
        program(*state, np.array(0.0), np.array([0.03, 2.0])), written.forward_dynamics(*state), atol=1e-12
    )


def test_studies_and_slopes_go_through_couplings() -> None:
    """max of the lift is 2 h where TIME's part is left out."""
    text = CAM.format(moved=DRIVEN).replace(" + 0.001*TIME^2*sin(crank.angle)", "")
    mech = lw.Mechanism(parse_mks(text))
    data = lw.sweep(mech, {"h": [0.01, 0.03]}, {"mean": "mean(slide.shift)", "end": "final(slide.shift)"}).data
    np.testing.assert_allclose(data["mean"].values[1], 3 * data["mean"].values[0], rtol=1e-12)
    crank = 20 + 3 * 2 + 0.2 * 4
    np.testing.assert_allclose(data["end"].values, np.array([0.01, 0.03]) * (1 - np.cos(2 * crank)), atol=1e-13)
    slopes = lw.sensitivities(mech, ["final(slide.shift)"], ["h"])
    np.testing.assert_allclose(np.ravel(slopes.gradient()), 1 - np.cos(2 * crank), atol=1e-9)


def test_a_state_of_rest_holds_couplings_and_stops_their_clocks() -> None:
    """A tappet on a spring: h(1 − cos 2φ) as the weight and the spring on the crank balance."""
    springs = "SPRING hold (joint = crank, stiffness = 2, rest = 0.5);"
    mech = cam(springs)
    rest = mech.equilibrium(t=1.0)
    phi = rest.q[0]
    lever = 2 * 0.02 * np.sin(2 * phi) + 0.001 * np.cos(phi)
    assert 2 * (phi - 0.5) + 0.5 * 9.81 * lever == pytest.approx(0.0, abs=1e-9)
    assert rest.linear.A.shape == (2, 2)
    assert rest.stable


def test_locking_a_joint_puts_its_coordinate_into_the_relation() -> None:
    mech = cam("").lock({"crank": 0.4})
    assert mech.dof().left == 0
    q = mech.assemble(t=1.0)
    np.testing.assert_allclose(q, [0.02 * (1 - np.cos(0.8)) + 0.001 * np.sin(0.4), 0.8 + 0.2 * np.sin(0.4)], atol=1e-12)
    with pytest.raises(ModelError, match=r"coupling 'mesh' does not hold where its joints are locked: 1 and 2\.16829"):
        cam("").lock({"crank": 1.0, "axle": 1.0})


def test_a_coupling_whose_turns_nothing_tells_names_the_joint_to_cut() -> None:
    def loop(relation: Callable[[Any], Any]) -> lw.Mechanism:
        with lw.Builder("loop") as b:
            b.joint("prismatic", b.ground, b.body("tappet", 1.0), "slide")
            b.joint("free", b.ground, b.body("link", 1.0, inertia=(1, 1, 1)), "fly")
            b.joint("revolute", b.ground, "link", "hinge", cut=True)
            b.coupling("spiral", ("slide", relation(b.coordinate("hinge"))))
        return b.build()

    for relation in (np.sin, lambda x: 2.0 * x + np.sin(x)):
        assert loop(relation).dof().left == 1
    with pytest.raises(ModelError, match="coupling 'spiral' names joint 'hinge', which closes a loop"):
        loop(lambda x: x * x).forward_dynamics(np.zeros(8), np.zeros(7), np.zeros(7))


@pytest.mark.parametrize("name", ["x.urdf", "x.xml", "x.sdf"])
def test_formats_of_robots_refuse_a_coupling_by_its_name(name: str, tmp_path: Any) -> None:
    with pytest.raises(ModelError, match=r"cannot hold coupling 'mesh'"):
        writer(tmp_path / name)(cam().description)


def test_closed_forms_and_controllers_refuse_what_they_cannot_take() -> None:
    with pytest.raises(ModelError, match="take away that coupling"):
        lw.equations(cam(""))
    with pytest.raises(ModelError, match="coupling 'lift' takes or gives energy"):
        lw.simulate(cam(""), t_end=0.1, stepping=lw.Stepping(conserve="energy"))


def test_a_coupling_comes_back_from_its_text() -> None:
    description = cam().description
    text = write_mks(description)
    assert "COUPLING mesh (axle.angle = k*crank.angle + 0.2*sin(crank.angle));" in text
    again = parse_mks(text)
    assert again.point_constraints == description.point_constraints
    assert again.digest == description.digest
    assert write_mks(again) == text


def test_a_builder_takes_functions_of_joints_and_refuses_other_things() -> None:
    b = lw.Builder("cams")
    for name in ("crank", "axle"):
        b.joint("revolute", b.ground, b.body(f"{name} body", 1.0, inertia=(1, 1, 1)), name)
    b.joint("spherical", b.ground, b.body("knob", 1.0), "ball")
    b.joint("cylindrical", b.ground, b.body("tube", 1.0), "guide")
    k = b.parameter("k", 2.0)
    first = b.coupling(None, ("axle", lambda crank, t: k * crank + 0.1 * np.sin(t)))
    assert first.name == "coupling1"
    assert first.relation.names() == {"axle.q0", "crank.q0", "k", "TIME"}
    second = b.coupling("both", lambda crank, axle: crank + axle)
    assert second.relation.evaluate({"crank.q0": 1.0, "axle.q0": 2.0}) == 3.0
    wrong: list[tuple[Any, str]] = [
        (("guide", 1.0), "joint 'guide' is cylindrical, which has not one coordinate"),
        (("crank", b.rate("axle")), "names the rate axle.v0"),
        (("crank", b.component("knob", "x")), "names the place knob.x"),
        (3.0, "names no coordinate"),
        (("crank", "axle", "guide"), "is a tuple of 3"),
        (("crank", lw.Builder("other").parameter("stranger", 1.0)), "stranger"),
        (lambda ball: ball, "has the parameter 'ball'"),
        (("crank", np.array([1.0, 2.0])), "coupling 'bad'"),
    ]
    for relation, message in wrong:
        with pytest.raises(LinkwrightError, match=message):
            b.coupling("bad", relation)


def test_a_long_mechanism_has_couplings_too() -> None:
    """80 wheels in a row, each turned by the one before: Σ I r² a = T."""
    n, ratio = 80, 0.9
    with lw.Builder("train") as b:
        for k in range(n):
            b.joint("revolute", b.ground, b.body(f"wheel{k}", 1.0, inertia=(1, 1, 1)), f"axle{k}")
        for k in range(1, n):
            b.coupling(f"mesh{k}", (f"axle{k}", ratio * b.coordinate(f"axle{k - 1}")))
    mech = b.build()
    tau = np.zeros(n)
    tau[0] = 3.0
    a = mech.forward_dynamics(np.zeros(n), np.zeros(n), tau)
    rates = ratio ** np.arange(n)
    np.testing.assert_allclose(a, rates * 3.0 / np.sum(rates**2), atol=1e-8)


def test_couplings_that_differ_by_numbers_share_their_code() -> None:
    def wheels(ratio: float, swing: float) -> lw.Mechanism:
        with lw.Builder("pair") as b:
            for name in ("crank", "axle"):
                b.joint("revolute", b.ground, b.body(f"{name} body", 1.0, inertia=(1, 1, 1)), name)
            b.coupling("mesh", ("axle", lambda crank: ratio * crank + swing * np.sin(crank)))
        return b.build()

    one, other = (wheels(*x).programs.loop_constraints[0] for x in ((1.5, 0.1), (1.25, 0.3)))
    assert one.form is other.form
    np.testing.assert_array_equal(one.record[-2:], [1.5, 0.1])
    np.testing.assert_array_equal(other.record[-2:], [1.25, 0.3])


def test_elliptical_gears_turn_and_load_each_other_as_ellipses_do() -> None:
    """Two equal ellipses that turn about their foci: ψ' = (1 − e²)/(1 − 2 e cos φ + e²), and T = I ψ' ψ'' ω²."""
    e, speed, inertia = 0.4, 3.0, 0.7
    with lw.Builder("ellipses") as b:
        b.gravity((0, 0, 0))
        for name in ("crank", "axle"):
            b.joint("revolute", b.ground, b.body(f"{name} body", 1.0, inertia=(inertia,) * 3), name)
        b.coupling("mesh", ("axle", lambda crank: -crank - 2 * np.arctan2(e * np.sin(crank), 1 - e * np.cos(crank))))
        b.driver("joint", "crank", speed * lw.TIME, name="motor")
    sol = lw.analyse(b.build(), analysis="inverse dynamic", times=np.linspace(0, 5, 61))
    phi = speed * sol.time
    below = 1 - 2 * e * np.cos(phi) + e**2
    ratio, change = (1 - e**2) / below, -(1 - e**2) * 2 * e * np.sin(phi) / below**2
    np.testing.assert_allclose(sol.joint_rate("axle")[:, 0], -ratio * speed, atol=1e-11)
    np.testing.assert_allclose(sol.series["mesh.torque"].values, -inertia * change * speed**2, atol=1e-10)
    np.testing.assert_allclose(sol.series["motor.torque"].values, inertia * ratio * change * speed**2, atol=1e-10)
    assert sol.joint("axle")[-1, 0] == pytest.approx(-15 - 2 * np.arctan2(e * np.sin(15), 1 - e * np.cos(15)))


@pytest.mark.parametrize(
    ("relation", "motion", "message"),
    [
        ("sin(crank.angle) = 2", "0", "coupling 'a' stays open when the rest is closed: its two sides differ by 1 rad"),
        ("slide.shift^2 = sin(crank.angle)", "0.5 + 2*TIME", "stopped at t = 1.32"),
        ("slide.shift = sqrt(1 - TIME)*crank.angle", "0.5", "coupling 'a' changes faster than any step can follow"),
        ("slide.shift = 1/TIME", "0", "have no finite value or rate: coupling 'a'"),
    ],
)
def test_a_motion_that_a_coupling_does_not_allow_ends_with_its_name(relation: str, motion: str, message: str) -> None:
    text = f"""MODEL m
BODY g (ground);
BODY shaft (mass = 1, inertia = (1, 1, 1));
BODY ram (mass = 1, inertia = (1, 1, 1));
REVOLUTE JOINT crank (triad = g, triad = shaft);
TRANSLATIONAL JOINT slide (triad = g, triad = ram);
COUPLING a ({relation});
{"" if "sin(crank.angle) = 2" in relation else f"DRIVER m (crank.angle = {motion});"}
ENDMODEL"""
    try:
        ended = str(lw.analyse(lw.Mechanism(parse_mks(text)), times=np.linspace(0, 2, 41)).status)
    except ModelError as error:
        ended = str(error)
    assert message in ended


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("right", "ends"),
    [
        (
            "rise345(b.angle, 1, 0, 1, 0.5)",
            "stopped at t = 1: the relation of coupling 'c' jumps there by 0.5 rad",
        ),
        ("mod(b.angle, 0)", "has no finite value"),
        ("b.angle/0", "division by zero"),
        ("sqrt(b.angle - 1)", "no finite value or rate: coupling 'c'"),
        ("sqrt(b.angle)", "locked up"),
        ("1/b.angle", "no finite value or rate: coupling 'c'"),
    ],
)
def test_relations_without_a_value_are_named_and_warn_of_nothing(right: str, ends: str) -> None:
    text = f"""MODEL m SYSTEM (KINEMATIC ANALYSIS, ending time = 2, print interval = 0.5);
    BODY g (ground); BODY x; BODY y; BODY z; SLIDER s (body = g, body = z, axis = (1, 0));
    HINGE a (body = g, body = x, at = (0, 0)); HINGE b (body = g, body = y, at = (1, 0));
    COUPLING c (a.angle = {right}); DRIVER d (b.angle = TIME); ENDMODEL"""
    try:
        outcome = str(lw.analyse(lw.Mechanism(parse_mks(text))).status)
    except LinkwrightError as error:
        outcome = str(error)
    assert ends in outcome


TWO_SHAFTS = """MODEL m
SYSTEM (KINEMATIC ANALYSIS, ending time = 1, print interval = 0.25);
BODY g (ground); BODY a (mass = 1, inertia = (1, 1, 1)); BODY b (mass = 1, inertia = (1, 1, 1));
HINGE h (body = g, body = a, at = (0, 0)); HINGE k (body = g, body = b, at = (1, 0));
DRIVER motor (h.angle = 2*TIME);
COUPLING c ({relation});
ENDMODEL"""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("relation", "advice"),
    [
        ("1e9*h.angle = 2e9*k.angle", "divide both sides by 1e9"),
        ("1e300*k.angle = 5e299*h.angle", "divide both sides by 1e300"),
        ("1e308*k.angle = 1e308*h.angle", "divide both sides by 1e308"),
        ("1e-200*h.angle = 2e-200*k.angle", "multiply both sides by 1e200"),
        ("1e-320*h.angle = 1e-320*k.angle", "multiply both sides by 1e320"),
    ],
)
def test_a_relation_that_drowns_other_equations_is_refused_with_what_to_do(relation: str, advice: str) -> None:
    with pytest.raises(LinkwrightError, match=f"coupling 'c' changes by .*{advice}"):
        parse_mks(TWO_SHAFTS.format(relation=relation))


@pytest.mark.parametrize("factor", ["1e-20", "1e-8", "1e5"])
def test_a_factor_of_a_relation_changes_no_motion(factor: str) -> None:
    relation = f"{factor}*h.angle = 2*{factor}*k.angle"
    sol = lw.analyse(lw.Mechanism(parse_mks(TWO_SHAFTS.format(relation=relation))))
    assert np.allclose(sol.q, np.outer(sol.time, [2.0, 1.0]), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("relation", "stopped"),
    [
        ("k.angle = 10 deg*floor(h.angle/(20 deg))", "t = 0.222222: the relation of coupling 'c' jumps there by 10°"),
        ("k.angle = mod(h.angle, 30 deg)", "t = 0.333333: the relation of coupling 'c' jumps there by 30°"),
    ],
)
def test_a_relation_that_jumps_is_named_with_the_jump_in_the_models_unit(relation: str, stopped: str) -> None:
    text = TWO_SHAFTS.format(relation=relation).replace("0.25)", "0.25, angle unit = degree)")
    sol = lw.analyse(lw.Mechanism(parse_mks(text.replace("2*TIME", "90 deg*(TIME/(1 s))"))))
    assert stopped in str(sol.status)
    assert sol.status.element == "c"


def test_a_motion_that_cannot_begin_is_a_result_without_points() -> None:
    sol = lw.analyse(lw.Mechanism(parse_mks(TWO_SHAFTS.format(relation="k.angle = 1e8*h.angle"))))
    assert not sol.status
    assert sol.q.shape == (0, 2)
