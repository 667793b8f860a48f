"""The laws of springs and stops on joints, as the equations print them."""

import linkwright as lw
from linkwright.symbolic.printing import text


def test_springs_and_stops_read_as_people_write_them() -> None:
    with lw.Builder("sprung") as b:
        k = b.parameter("k", 3.0)
        arm = b.body("arm", 1.0, (0.1, 0.0, 0.2), (0.1, 0.1, 0.1))
        hinge = b.joint("revolute", b.ground, arm, "hinge")
        b.joint_spring(hinge, 5.0, 0.2)
        sled = b.body("sled", 1.0, (0.1, 0.0, 0.2), (0.1, 0.1, 0.1))
        slide = b.joint("prismatic", arm, sled, "slide")
        b.joint_spring(slide, k, 0.2)
        b.stop(slide, -0.2, 0.2, stiffness=100.0, damping=0.1)
    eq = lw.equations(b.build())
    assert [text(e) for e in eq.block("springs").entries] == ["5*(q1 - 0.2)", "k*(q2 - 0.2)"]
    assert "max(0, 100*max(0, q2 - 0.2)*(1 + 0.1*dq2))" in text(eq.block("friction").entries[1])
    assert r"F}_{\mathrm{fric}}(\boldsymbol{q}, \dot{\boldsymbol{q}})" in eq.latex()
