"""Equations of joints in words: each constrains the motion that it is said to, and no other of its joint."""

import re

import numpy as np

import linkwright as lw
from linkwright.constraints.constrained_motions import constrained_motions, joined
from linkwright.constraints.constraint_equations import joint_frames
from linkwright.constraints.kinematics import Kinematics

MODEL = """MODEL chain
SYSTEM (KINEMATIC ANALYSIS, ending time = 1, print interval = 1);
BODY base (ground); BODY a (origin = (0.3, 0.1, 0)); BODY b (origin = (1, 0, 0.5)); BODY c (origin = (1, 1, 0.5));
BODY d (origin = (2, 1, 0));
HINGE pin (body = base, body = a, at = (0.1, 0.2, 0.3), axis = (1, 2, 3));
SLIDER guide (body = a, body = b, axis = (1, -2, 0.5));
TRIAD fork (associated body = b, origin = (0, 1, 0), h = (1, 0.2, 0), f = (0, 0, 1));
TRIAD cross (associated body = c, h = (-0.2, 1, 0.4), f = (1, 0.2, 0));
UNIVERSAL JOINT hooke (triad = fork, triad = cross);
CYLINDRICAL JOINT sleeve (body = c, body = d, at = (1.5, 1, 0), axis = (0, 3, 1));
DRIVER motor (pin.angle = 0.4);
ENDMODEL"""


def test_every_equation_constrains_the_motion_that_it_names() -> None:
    from linkwright.formats.mks.mks_reader import parse_mks

    mech = lw.Mechanism(parse_mks(MODEL))
    kinematics = Kinematics(mech.description)
    state = kinematics.assemble(0.0, 1e-9)
    programs, q = kinematics.programs, state.q
    e = programs.layout.equations
    jacobian = programs.layout.dense(programs.evaluate(q, state.angles, 0.0).jacobian, e.units)
    checked = 0
    for k, c in enumerate(e.constraints):
        if c.group != "joint":
            continue
        (r, _), (other, p) = joint_frames(e.description, q, c.source.joints[0])
        axis = r[:, 2]
        motions = constrained_motions(e, q, c, c.form.names)
        normal = np.cross(axis, other[:, 2])
        for row, motion in zip(jacobian[e.rows(k)], motions, strict=True):
            numbers = re.findall(r"-?[\d.]+(?:e-?\d+)?", motion)
            along = np.array(numbers, float) if numbers else axis
            basis = r.T if "hooke" not in str(c) or "rotation" not in motion else [normal, axis, other[:, 2]]
            body = c.bodies[1]
            for direction in basis:
                n = direction / np.linalg.norm(direction)
                turn = np.concatenate([np.cross(n, q[body, :3] - p), n])
                shift = np.concatenate([n, np.zeros(3)])
                same = abs(n @ along) > 0.99
                for kind, twist in (("rotation", turn), ("translation", shift)):
                    constrained = abs(row[6 * body : 6 * body + 6] @ (twist / e.units[body])) > 1e-9
                    assert constrained == (same and motion.startswith(kind)), (str(c), motion, kind, direction)
            checked += 1
    assert checked == 5 + 5 + 4 + 4


def test_motions_of_one_joint_are_one_phrase() -> None:
    motions = ["translation along its axis", "rotation about (0, 1, 0)", "rotation about (1, 0, 0)", "relation"]
    assert joined(motions) == "translation along its axis, rotations about (0, 1, 0) and (1, 0, 0), relation"
    assert joined(motions[:1] * 3) == "translations along its axis, its axis and its axis"
