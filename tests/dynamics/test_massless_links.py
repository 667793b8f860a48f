"""Links without mass inside loops: what constraints determine is answered, what nothing determines is named."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import ModelError
from robots import relative

SOLID = {"crank": (1.0, (0.5, 0, 0), (0.01, 0.1, 0.1)), "rocker": (1.0, (1.2, 0, 0), (0.01, 0.3, 0.3))}
Numbers = tuple[float, tuple[float, float, float], tuple[float, float, float]]
NONE: Numbers = (0.0, (0, 0, 0), (0, 0, 0))


def four_bar(numbers: dict[str, Numbers], cut: str = "C", *, tip: bool = False, drive: bool = False) -> lw.Mechanism:
    """A four-bar whose bodies have these numbers, and none where nothing is given."""
    with lw.Builder("four_bar") as b:
        b.gravity((0, -9.81, 0))
        crank, coupler, rocker = (b.body(n, *numbers.get(n, NONE)) for n in ("crank", "coupler", "rocker"))
        b.place(crank, (0, 0, 0), f=(0.4, 1, 0))
        b.place(coupler, (0.4, 1, 0), f=(3, 0.9, 0))
        b.place(rocker, (3, 0, 0), f=(0.4, 2.4, 0))
        b.joint("revolute", b.triad(b.ground), b.triad(crank), "A")
        b.joint("revolute", b.triad(crank, (1, 0, 0)), b.triad(coupler), "B", cut=cut == "B")
        b.joint("revolute", b.triad(b.ground, (3, 0, 0)), b.triad(rocker), "D")
        b.joint("revolute", b.triad(coupler, (3, 0, 0)), b.triad(rocker, (2.5, 0, 0)), "C", cut=cut == "C")
        if tip:
            loose = b.body("tip")
            b.place(loose, (0.4, 1, 0))
            b.joint("revolute", b.triad(crank, (1, 0, 0)), b.triad(loose), "T")
        if drive:
            b.driver("joint", "A", 1.19 + 0.3 * lw.TIME)
    return b.build()


def moving(mech: lw.Mechanism) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, v = mech.project(mech.assemble(), np.ones(mech.nv))
    return q, v, np.sin(1.0 + np.arange(mech.nv))


CASES = {
    "a coupler": (SOLID, "C"),
    "a coupler, cut elsewhere": (SOLID, "B"),
    "all but the crank": ({"crank": SOLID["crank"]}, "C"),
    "all but the rocker": ({"rocker": SOLID["rocker"]}, "C"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_link_without_mass_that_a_loop_moves_obeys_the_equations_on_the_loops_freedom(name: str) -> None:
    mech = four_bar(*CASES[name])
    q, v, tau = moving(mech)
    a = mech.forward_dynamics(q, v, tau)
    slopes = np.stack([mech.kernels.velocity_projection(q, e)[1] for e in np.eye(mech.nv)], axis=1)
    freedom = np.linalg.svd(slopes)[2][np.linalg.matrix_rank(slopes, 1e-9) :]
    assert freedom.shape == (1, 3)
    rest = mech.mass_matrix(q) @ a + mech.bias_forces(q, v) - tau
    assert np.abs(freedom @ rest).max() < 1e-10 * np.abs(tau).max()
    # The loop stays closed to second order: the rate of its residual changes by nothing.
    h = 1e-4
    ahead, back = (
        mech.kernels.velocity_projection(mech.integrate(q, s * h * v + h * h / 2 * a), v + s * h * a)[1]
        for s in (1, -1)
    )
    assert np.abs(ahead - back).max() / (2 * h) < 1e-6


@pytest.mark.parametrize("name", CASES)
def test_a_link_without_mass_moves_as_one_of_almost_none(name: str) -> None:
    numbers, cut = CASES[name]
    tiny = (1e-9, (0.1, 0, 0), (1e-9, 1e-9, 1e-9))
    light = four_bar({n: numbers.get(n, tiny) for n in ("crank", "coupler", "rocker")}, cut)
    mech = four_bar(numbers, cut)
    q, v, tau = moving(mech)
    assert relative(mech.forward_dynamics(q, v, tau), light.forward_dynamics(q, v, tau)) < 1e-7
    assert relative(mech.linearise(q, 0 * v).A, light.linearise(q, 0 * v).A) < 1e-5


def test_a_driver_moves_a_whole_chain_of_which_one_link_has_mass() -> None:
    mech = four_bar({"rocker": SOLID["rocker"]}, drive=True)
    sol = lw.simulate(mech, t_end=0.2)
    assert sol.q[-1, 0] == pytest.approx(1.19 + 0.06, abs=1e-9)


def test_a_link_without_mass_that_no_loop_moves_is_named() -> None:
    mech = four_bar(SOLID, tip=True)
    with pytest.raises(ModelError, match="joint 'T' carries no mass") as error:
        mech.forward_dynamics(*moving(mech))
    assert error.value.element == "T"


def test_loops_of_nothing_but_massless_links_are_refused() -> None:
    mech = four_bar({})
    with pytest.raises(ModelError, match="carries no mass"):
        mech.forward_dynamics(*moving(mech))


def test_a_method_that_needs_inertias_says_so_of_links_that_loops_move() -> None:
    mech = four_bar(SOLID)
    with pytest.raises(ModelError, match=r"method='mass-matrix' needs an inertia .*'virtual-work'"):
        mech.forward_dynamics(*moving(mech), method="mass-matrix")
