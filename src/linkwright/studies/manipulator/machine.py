"""The six-leg manipulator in numbers and as a mechanism: rigid, or with elastic drives and friction.

Uniform rods with the inertias of table 3, l = √(12 I/m), make a crank of 0.51 m and a rod of 0.87 m; a disc of the
plate's inertia has a radius of 0.39 m. The base was chosen for clear legs and a low condition of S = ∂θ/∂x, about 2 in
the whole range of motion. At home the wrists' middle angles are a few degrees.

Six legs of six revolute joints: `crank1` (driven), `u1a`, `u1b` (universal, between crank and rod), `s1a`, `s1b`,
`s1c` (spherical, between rod and plate), and so on to leg 6. Bodies: `arm1` (the crank), `fork1` (the universal's
cross), `rod1`, `outer1` and `inner1` (the spherical's crosses), `plate`. The plate hangs on one leg, the `holder`; the
loops are closed at the last joints of the others.

With drives a rotor on ground (`rotor1`, joint `motor1`, driven) turns each crank through a spring and a damper,

    stiffness (θ_m − θ_c) + damping (ω_m − ω_c),

and `crank1` is passive. Friction is coulomb · tanh(ω / speed) + viscous · ω on all joints. Dimensions, masses and what
is in `Drives` are parameters (`mech.parameters`, `mech.with_parameters`); a link's moments of inertia grow with its
mass, and `payload` is a point mass at the plate's centre of mass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright import Builder, Mechanism
from linkwright.base.arguments import finite_number, positive_number
from linkwright.base.arrays import Floats
from linkwright.control import Hexapod, LinkInertia, check_reach, leg_motion, legs_at
from linkwright.errors import ModelError


def about(axis: int, angle: float) -> Floats:
    """The rotation matrix of a turn by an angle (rad) about coordinate axis 0, 1 or 2."""
    matrix, plane = np.eye(3), [(axis + 1) % 3, (axis + 2) % 3]
    matrix[np.ix_(plane, plane)] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return matrix


def universal_angles(along: Floats) -> tuple[float, float]:
    """The two angles (rad) of a universal joint whose link lies along the unit vector `along` of the fixed axes.

    The first turn is about z, the second about y of the turned axes; the link lies along x at zero angles.
    """
    return float(np.arctan2(along[1], along[0])), float(-np.arcsin(np.clip(along[2], -1.0, 1.0)))


def universal_rates(along: Floats, change: Floats) -> Floats:
    """The rates (2, rad/s) of these angles where `along` changes by `change` (1/s)."""
    flat = along[0] ** 2 + along[1] ** 2
    return np.array([(along[0] * change[1] - along[1] * change[0]) / flat, -change[2] / np.sqrt(flat)])


def universal_spin(first: float, rates: Floats) -> Floats:
    """The angular velocity (3) of the link, in the fixed axes, at a first angle (rad) and rates (2) of both angles."""
    return np.array([-np.sin(first) * rates[1], np.cos(first) * rates[1], rates[0]])


def put(mech: Mechanism, q: Floats, v: Floats, name: str, position: ArrayLike, rate: ArrayLike) -> None:
    """Set the coordinates and the rates of a joint, by its name, in q and v."""
    joint = mech.joints[name]
    q[joint.q_slice], v[joint.v_slice] = position, rate


#: Inertias from table 3, which draws rods along its z axis; here they lie along x: (x, y, z) there is (y, z, x) here.
SIX_LEG = Hexapod(
    base_radius=0.40,
    base_half_angle=np.deg2rad(30.0),
    crank_turn=np.deg2rad(45.0),
    crank=0.51,
    rod=0.87,
    plate_radius=0.39,
    plate_half_angle=np.deg2rad(15.0),
    home_height=0.75,
    turn_length=0.30,
    crank_inertia=LinkInertia(6.90, (0.255, 0.0, 0.0), (0.0123, 0.153, 0.146)),
    universal_inertia=LinkInertia(3.79, (0.0, 0.0, 0.0), (0.00938, 0.00398, 0.0114)),
    rod_inertia=LinkInertia(8.35, (0.435, 0.0, 0.0), (0.0101, 0.526, 0.525)),
    first_cross_inertia=LinkInertia(5.10, (0.0, 0.0, 0.0), (0.0197, 0.00480, 0.0171)),
    second_cross_inertia=LinkInertia(3.79, (0.0, 0.0, 0.0), (0.0152, 0.00788, 0.0133)),
    plate_inertia=LinkInertia(30.0, (0.0, 0.0, 0.0), (1.14, 1.14, 2.28)),
)
LEGS = len(SIX_LEG.directions)


#: Half the thickness of things, as parts of the crank's length.
CRANK, ROD, JOINT, HOUSING = 0.06, 0.045, 0.085, 0.13
IRON, RED, STEEL, BRASS, BLUE, WHITE = "#5b6068", "#b5382e", "#a8b0ba", "#c9a227", "#35608f", "#e9ecef"


def draw(b: Builder, p: dict[str, Any], feet: Sequence[Any], *, rotors: bool) -> None:
    """Base ring, motor housings, cranks, rods, joints and the plate, of sizes that follow the parameters p.

    `feet` are the frames that the legs stand on.
    """
    crank, rod = p["crank"], p["rod"]
    bar = 0.12 * p["plate_radius"]
    _cylinder(b, "base", b.ground, (0, 0, -0.5 * crank), (0, 0, 1), (1.5 * p["base_radius"], 0.06 * crank), IRON)
    for leg, foot in enumerate(feet, 1):
        arm, fork, link, outer, inner = (f"{body}{leg}" for body in ("arm", "fork", "rod", "outer", "inner"))
        b.shape(foot, "cylinder", (HOUSING * crank, 0.30 * crank), IRON, name=f"housing{leg}")
        post = b.triad(b.ground, [*foot.origin[:2], -0.25 * crank], name=f"post{leg}")
        b.shape(post, "cylinder", (0.6 * HOUSING * crank, 0.44 * crank), IRON, name=f"post{leg}")
        if rotors:
            b.shape(f"rotor{leg}", "cylinder", (0.4 * HOUSING * crank, 0.46 * crank), STEEL, name=f"shaft{leg}")
        _cylinder(b, f"crank{leg}", arm, (crank / 2.0, 0, 0), (1, 0, 0), (CRANK * crank, crank), RED)
        b.shape(arm, "cylinder", (0.8 * HOUSING * crank, 0.36 * crank), RED, name=f"hub{leg}")
        b.shape(fork, "cylinder", (JOINT * crank, 0.17 * crank), BRASS, name=f"fork{leg}")
        _cylinder(b, f"pin{leg}", fork, (0, 0, 0), (0, 1, 0), (0.6 * JOINT * crank, 0.22 * crank), BRASS)
        _cylinder(b, f"rod{leg}", link, (rod / 2.0, 0, 0), (1, 0, 0), (ROD * crank, rod), STEEL)
        b.shape(outer, "cylinder", (0.6 * JOINT * crank, 0.2 * crank), BRASS, name=f"outer{leg}")
        b.shape(inner, "sphere", (JOINT * crank,), BRASS, name=f"ball{leg}")
    _cylinder(b, "disc", "plate", (0, 0, 0.05), (0, 0, 1), (1.06 * p["plate_radius"], 0.04), BLUE)
    b.shape(b.triad("plate", (0.55 * p["plate_radius"], 0, 0.075), name="mark"), "box", (bar * 3, bar, 0.02), WHITE)
    b.trace("mark", BRASS, name="path")


def _cylinder(b: Builder, name: str, body: Any, at: Any, along: Any, size: Any, color: str) -> None:
    across = (0, 1, 0) if along == (1, 0, 0) else (1, 0, 0)
    b.shape(b.triad(body, at, h=along, f=across, name=f"{name}_place"), "cylinder", size, color, name=name)


LINKS = ("arm", "fork", "rod", "outer", "inner")  # a leg's bodies
MASSES = Hexapod.LINKS  # each with a mass that is a parameter
DIMENSIONS = (
    *("base_radius", "base_half_angle", "crank_turn", "crank", "rod"),
    *("plate_radius", "plate_half_angle", "gravity"),
)
ROTOR_MASS = 1.0  # kg; a rotor's axis stands still, so that its mass only loads the base
#: Joint axes in the legs' own axes, from crank to plate.
AXES = ((0, 0, 1), (0, 0, 1), (0, 1, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0))
_X_IS_AXIS = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # a frame whose joint axis (z) is x


@dataclass(frozen=True)
class Drives:
    """A motor with its gear, seen at the crank, and friction; each number is a parameter of the machine.

    Stiffness in N m/rad, damping and viscous friction in N m s/rad, rotor inertia in kg m², Coulomb friction in N m,
    speed (where Coulomb friction has 76 % of its size) in rad/s. The motors' friction is larger at rest: it goes from
    static to Coulomb friction as e^-(ω/ω_s)², ω_s the Stribeck speed. Passive joints are the universal and spherical.
    With rotors that stand still, the default plate rings at 16 Hz up and down at home.
    """

    stiffness: float = 9.2e4
    damping: float = 50.0
    rotor_inertia: float = 5.0
    motor_coulomb: float = 60.0
    motor_static: float = 60.0
    motor_viscous: float = 100.0
    crank_coulomb: float = 0.0
    crank_viscous: float = 0.0
    passive_coulomb: float = 0.5
    passive_viscous: float = 0.2
    friction_speed: float = 0.01
    stribeck_speed: float = 0.02

    def __post_init__(self) -> None:
        for name in ("stiffness", "rotor_inertia", "friction_speed", "stribeck_speed"):
            positive_number(f"Drives.{name}", getattr(self, name))
        for entry in fields(self):
            if finite_number(f"Drives.{entry.name}", getattr(self, entry.name)) < 0.0:
                text = f"Drives.{entry.name} must not be negative, not {getattr(self, entry.name)}"
                raise ModelError(text, element=entry.name)


def leg_joints(leg: int) -> tuple[str, ...]:
    """The names of a leg's six joints, from crank to plate; legs count from 1."""
    return (f"crank{leg}", f"u{leg}a", f"u{leg}b", f"s{leg}a", f"s{leg}b", f"s{leg}c")


def machine(
    geometry: Hexapod = SIX_LEG,
    *,
    drives: Drives | None = None,
    holder: int = 1,
    name: str = "six_leg",
) -> Mechanism:
    """The machine, drawn at home; with `drives`, elastic ones. `holder` is the leg whose last joint is not cut.

    31 rates of the spanning tree, 25 equations, 6 degrees of freedom; with drives 37 and 12.
    """
    g = geometry
    if holder not in range(1, LEGS + 1):
        raise ModelError(f"holder is {holder!r}; name one of the legs 1 to {LEGS}")
    legs = legs_at(g, g.home)
    check_reach(g, legs)
    b = Builder(name)
    p = _parameters(b, g)
    b.gravity((0.0, 0.0, -p["gravity"]))
    plate = b.body("plate", p["plate_mass"] + p["payload"], g.plate_inertia.com, _moments(p, g, "plate"))
    b.place(plate, g.home[:3])
    feet = [
        _leg(b, p, g, leg, legs.angles[leg - 1], cut=leg != holder, passive=drives is not None)
        for leg in range(1, LEGS + 1)
    ]
    if drives is not None:
        _drive(b, g, drives, legs.angles[:, 0])
    draw(b, p, feet, rotors=drives is not None)
    return b.build()


def state(
    mech: Mechanism,
    geometry: Hexapod,
    pose: ArrayLike,
    twist: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    *,
    torques: ArrayLike | None = None,
    knee: int = -1,
) -> tuple[Floats, Floats, Floats]:
    """q, v and a (..., nq) of the machine whose plate is at poses (..., 7) and moves so; motors turn with their cranks.

    Twist and acceleration (..., 6): of the plate's origin (m/s, m/s²), then angular (rad/s, rad/s²), in ground's axes;
    zero unless given. With elastic drives the motors lead their cranks by what their springs need for `torques`
    (..., 6, N m), such as the cranks' of the rigid machine. `Unreachable` and `SingularPose` say what is wrong.
    """
    joints = leg_motion(geometry, pose, twist, acceleration, knee=knee)
    places = {name: (leg, k) for leg in range(LEGS) for k, name in enumerate(leg_joints(leg + 1))}
    places |= {f"motor{leg + 1}": (leg, 0) for leg in range(LEGS)}
    order = np.array([places[joint.name] for joint in mech.joints]).T
    q, v, a = (x[..., order[0], order[1]] for x in joints)
    if torques is not None:
        motors = [mech.joints[f"motor{leg}"].q_slice.start for leg in range(1, LEGS + 1)]
        q[..., motors] += np.asarray(torques, dtype=np.float64) / mech.parameters["stiffness"]
    return q, v, a


def _parameters(b: Builder, g: Hexapod) -> dict[str, Any]:
    """The machine's numbers as parameters, by their names in `Hexapod`."""
    numbers = {name: getattr(g, name) for name in DIMENSIONS}
    numbers |= {f"{link}_mass": getattr(g, f"{link}_inertia").mass for link in MASSES}
    return {name: b.parameter(name, number) for name, number in {**numbers, "payload": 0.0}.items()}


def _moments(p: dict[str, Any], g: Hexapod, link: str) -> list[Any]:
    """Moments of inertia that grow with the mass: the link's shape stays."""
    mass, _, moments = getattr(g, f"{link}_inertia")
    return [moment / mass * p[f"{link}_mass"] if mass else moment for moment in moments]


def _ring(radius: Any, angle: Any) -> list[Any]:
    return [radius * angle.cos(), radius * angle.sin(), 0.0]


def _leg(b: Builder, p: dict[str, Any], g: Hexapod, leg: int, angles: Floats, *, cut: bool, passive: bool) -> Any:
    """A leg's five bodies and six joints, drawn at these angles; the frame that it stands on."""
    arm, fork, rod, outer, inner = bodies = tuple(f"{link}{leg}" for link in LINKS)
    for body, link in zip(bodies, MASSES, strict=False):
        longer = p[link] / getattr(g, link) if link in ("crank", "rod") else 1.0
        com = [x * longer for x in getattr(g, f"{link}_inertia").com]
        b.body(body, p[f"{link}_mass"], com, _moments(p, g, link))

    pair, side = float(g.directions[leg - 1]), float(g.sides[leg - 1])
    angle = pair + side * (p["base_half_angle"] + p["crank_turn"])
    x, z = (angle.cos(), angle.sin(), 0.0), (angle.sin(), -angle.cos(), 0.0)
    base = _ring(p["base_radius"], pair + side * p["base_half_angle"])
    held = _ring(p["plate_radius"], pair + side * p["plate_half_angle"])
    foot = b.frame(b.ground, np.array([x, (0.0, 0.0, 1.0), z], dtype=object).T, base, f"foot{leg}")
    wrist = b.frame("plate", np.array([(0.0, 0.0, 1.0), z, x], dtype=object).T, held, f"wrist{leg}")
    names = leg_joints(leg)
    b.joint("revolute", foot, arm, names[0], actuated=not passive)
    b.joint("revolute", arm, fork, names[1], axis=AXES[1], at=(p["crank"], 0.0, 0.0), actuated=False)
    b.joint("revolute", fork, rod, names[2], axis=AXES[2], actuated=False)
    b.joint("revolute", rod, outer, names[3], axis=AXES[3], at=(p["rod"], 0.0, 0.0), actuated=False)
    b.joint("revolute", outer, inner, names[4], axis=AXES[4], actuated=False)
    b.joint("revolute", b.frame(inner, _X_IS_AXIS), wrist, names[5], actuated=False, cut=cut)

    axes, at = g.frames[leg - 1], g.base_points[leg - 1]
    before = {fork: g.crank, outer: g.rod}  # from the body inward, along its x axis
    for body, axis, turn in zip(bodies, AXES, angles, strict=False):
        at = at + axes[:, 0] * before.get(body, 0.0)
        axes = axes @ about(axis.index(1), turn)
        b.place(body, at, rotation=axes)
    return foot


def _drive(b: Builder, g: Hexapod, drives: Drives, angles: Floats) -> None:
    """Rotors, their couplings to the cranks, and friction on all joints."""
    k = {entry.name: b.parameter(entry.name, getattr(drives, entry.name)) for entry in fields(drives)}
    across = k["rotor_inertia"] / 2.0
    for leg in range(1, LEGS + 1):
        motor, crank = f"motor{leg}", f"crank{leg}"
        rotor = b.body(f"rotor{leg}", ROTOR_MASS, inertia=(across, across, k["rotor_inertia"]))
        b.place(rotor, g.base_points[leg - 1], rotation=g.frames[leg - 1] @ about(2, angles[leg - 1]))
        b.joint("revolute", f"foot{leg}", rotor, motor)
        twisted = k["stiffness"] * (b.coordinate(motor) - b.coordinate(crank))
        torque = twisted + k["damping"] * (b.rate(motor) - b.rate(crank))
        b.joint_force(crank, torque, name=f"coupling{leg}")
        b.joint_force(motor, -torque, name=f"coupling{leg} back")
        for joint in (motor, *leg_joints(leg)):
            kind = joint[:5] if joint in (motor, crank) else "passive"
            size: Any = k[f"{kind}_coulomb"]
            if joint == motor:
                size = size + (k["motor_static"] - size) * (-((b.rate(joint) / k["stribeck_speed"]) ** 2)).exp()
            rubbing = size * (b.rate(joint) / k["friction_speed"]).tanh()
            b.joint_force(joint, -rubbing - k[f"{kind}_viscous"] * b.rate(joint), name=f"{joint} friction")
