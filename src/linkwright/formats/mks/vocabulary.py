"""What words that begin no statement, or label no attribute, mean in the language: advice for messages."""

from __future__ import annotations

_MOVED = "a DRIVER prescribes a motion, as in DRIVER d (hinge.angle = 2*TIME); an ACTUATOR exerts a force by a law"
_BODY = "a part is a BODY; a DRIVER prescribes its motion, an ACTUATOR exerts a force on its joint"
_FRAME = "a frame on a body is a TRIAD"
_GEAR = "joints that move together are a GEAR, or by any relation a COUPLING"
_ANSWERS = {
    _MOVED: "motor motors servo engine drive driven drives actuated actuate actuation powered input motion excitation "
    "rotation speed velocity rpm controller control",
    _BODY: "crank rocker coupler link lever arm bar beam part piston block wheel shaft cam follower",
    _FRAME: "frame point connector coordinate_system",
    _GEAR: "mimic coupler belt pulley pinion rack transmission",
    "a bearing is a JOINT, as in HINGE or REVOLUTE JOINT": "pivot bearing revolute_joint",
    "a guide is a JOINT, as in SLIDER or TRANSLATIONAL JOINT": "guide rail prismatic_joint",
    "a ball in a socket is a JOINT, as in BALL or SPHERICAL JOINT": "socket",
    "joints close loops by themselves; ROD, POINT ON LINE and POINT ON PLANE hold points": "constraint loop closure",
    "a law between two points is a SPRING, a DAMPER or a FORCE": "sforce gforce spdp",
    "there is no contact; a STOP limits a joint or a distance": "contact collision impact ground_contact",
    "a cable that stays tight is a ROD, one that stretches a SPRING": "cable rope tendon wire chain string",
    "bodies that move as one are held by a WELD, or FIXED JOINT": "bolt glue",
    "what is there many times is REPEAT i = 1 .. n { ... }": "for loop copy pattern array foreach",
    "an assembly is PART name (...) { ... }, and USE makes one": "assembly subsystem component macro instance",
    "mass and inertia are attributes of a BODY, as in BODY arm (mass = 2, inertia = (0.1, 1, 1))": "mass inertia",
    "a constant is a PARAMETER": "variable constant let define",
    "start values are INITIAL (...)": "start initially state",
}
_STATEMENTS = {word: answer for answer, words in _ANSWERS.items() for word in words.split()}
_KINDS = {
    "REVOLUTE JOINT": "pivot rotary rotating rotation rotational rotate turning continuous bearing",
    "TRANSLATIONAL JOINT": "sliding slide linear guide rail",
    "SPHERICAL JOINT": "ballsocket socket globe",
    "UNIVERSAL JOINT": "cardan hooke hookes gimbal",
    "FIXED JOINT": "welded rigid bolted locked",
    "FREE JOINT": "floating six_dof",
    "SCREW JOINT": "helical spindle thread",
}
_JOINTS = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_DRIVEN = "motor servo drive driver driven actuate actuation actuator powered crank input motion speed velocity torque"
_DRIVEN += " force law rpm control"


def meant(words: list[str]) -> str:
    """What the first words of a statement mean here, '' where nothing is known of them."""
    first, second = words[0].lower(), (words[1].lower() if len(words) > 1 else "")
    if second == "joint" and first in _JOINTS:
        return f"; write {_JOINTS[first]}"
    answer = _STATEMENTS.get(first)
    return f"; {answer}" if answer else ""


def meant_of_joint(label: str) -> str:
    """What an attribute that a joint does not have means here."""
    first = label.lower().split()[0] if label.strip() else ""
    return f"; a joint does not move by itself: {_MOVED}" if first in _DRIVEN.split() else ""
