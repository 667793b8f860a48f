"""Whether two descriptions are the same, field by field, with what differs in the message."""

from __future__ import annotations

import numpy as np

from linkwright.model.description import ARRAYS, Description
from linkwright.model.joint_kinds import KINDS

_NOT_SAID = ("pitch",)  # of joints other than screws


def assert_same(a: Description, b: Description, *, atol: float = 0.0, elements: bool = True) -> None:
    """Names, topology, numbers (to the last bit unless `atol` says otherwise), expressions and all the rest."""
    assert a.name == b.name
    assert list(a.body_names) == list(b.body_names)
    assert list(a.joint_names) == list(b.joint_names)
    assert list(a.frames.names) == list(b.frames.names)
    pairs = {name: (getattr(a, name), getattr(b, name)) for name in ARRAYS if name not in _NOT_SAID}
    pairs |= {name: (getattr(a, name), getattr(b, name)) for name in ("frame_r", "frame_p", "gravity", "gear")}
    screw = a.kind == list(KINDS).index("screw")
    pairs["pitch"] = (a.pitch[screw], b.pitch[screw])
    pairs["frame body"] = (a.frames.body, b.frames.body)
    assert (a.start is None) == (b.start is None)
    if a.start is not None and b.start is not None:
        pairs["placed"] = (a.start.placed, b.start.placed)
        rows = a.start.placed
        pairs["start_r"], pairs["start_p"] = (a.start_r[rows], b.start_r[rows]), (a.start_p[rows], b.start_p[rows])
    for name, (x, y) in pairs.items():
        np.testing.assert_allclose(y, x, rtol=0.0, atol=atol, err_msg=name)
    assert [(m.follower, m.leader) for m in a.mimics] == [(m.follower, m.leader) for m in b.mimics]
    # A gear without a name has one after it was written.
    assert all(m.name in ("", n.name) for m, n in zip(a.mimics, b.mimics, strict=True))
    if elements:
        assert a.elements == b.elements
    for name in (
        "drivers",
        "initial",
        "point_constraints",
        "system",
        "shapes",
        "traces",
        "cuts",
        "passive",
        "ground_name",
        "more_grounds",
    ):
        assert getattr(a, name) == getattr(b, name), name
    assert dict(a.parameters) == dict(b.parameters)
    pitches = {("pitch", k) for k in range(a.nj) if not screw[k]}
    left, right = ({k: e for k, e in d.bindings.items() if k not in pitches} for d in (a, b))
    assert left == right
    assert (a.ground_inertia is None) == (b.ground_inertia is None)
    if a.ground_inertia is not None and b.ground_inertia is not None:
        for x, y in zip(a.ground_inertia, b.ground_inertia, strict=True):
            np.testing.assert_allclose(y, x, rtol=0.0, atol=atol, err_msg="ground_inertia")
