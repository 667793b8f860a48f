"""Two degrees of freedom: the reference model is followed, whatever zeros and delay the plant has."""

import numpy as np
import pytest
from linear_cases import HZ16, resonance, sampled_case

from linkwright.control.hinfinity.mixed_sensitivity import mixed_sensitivity
from linkwright.control.hinfinity.two_dof import two_dof
from linkwright.control.linear_systems import System, delay, from_polynomials, gains, sampled, series
from linkwright.control.loop.compensators import Compensator
from linkwright.errors import DesignError, ShapeError

DT = 0.002
G_D = from_polynomials([1e4], [1.0, 200.0, 1e4])
F = from_polynomials([300.0], [1.0, 300.0])
pytestmark = pytest.mark.filterwarnings("ignore::linkwright.errors.LinkwrightWarning")


def run(made, G: System, r: np.ndarray, disturbance: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """The plant's output in the loop, and the reference model's."""
    step, R = made.compensator().step, made.reference
    x, x_r, y, wanted = np.zeros(G.order), np.zeros(R.order), [], []
    for value in r:
        y.append((G.C @ x)[0])
        wanted.append((R.C @ x_r)[0] + R.D[0, 0] * value)
        x_r = R.A @ x_r + R.B[:, 0] * value
        x = G.A @ x + G.B[:, 0] * (step(value, y[-1]) + disturbance)
    return np.array(y), np.array(wanted)


def plants() -> dict[str, System]:
    w = HZ16
    resonant = [1.0, 0.2 * w, w**2]
    slow = np.polymul(resonant, [1.0, 2.0, 1.0])
    return {
        "resonance, delay": series(sampled(resonance(0.01), DT, "zoh"), delay(2 * DT, DT)),
        "zero outside": sampled(from_polynomials([-(w**2) / 50, w**2], resonant), DT, "zoh"),
        "two zeros at 0 Hz": sampled(from_polynomials([w**2, 0.0, 0.0], slow), DT, "zoh"),
        "a lag": sampled(from_polynomials([20.0], [1.0, 5.0]), DT, "zoh"),
        "unstable zeros in a pair": sampled(from_polynomials([1.0, -20.0, 400.0], np.poly([-9, -30, -40])), DT, "zoh"),
    }


@pytest.mark.parametrize("name", list(plants()))
def test_the_plant_follows_the_reference_model_exactly(name: str) -> None:
    G = plants()[name]
    made = two_dof(G, 0.0, G_D, dt=DT)
    assert made.system.stable()
    r = np.random.default_rng(0).normal(size=300)
    y, wanted = run(made, G, r)
    np.testing.assert_allclose(y, wanted, atol=1e-7 * np.abs(wanted).max())


def test_what_the_inverse_leaves_out_is_told() -> None:
    notes = {name: " ".join(two_dof(G, 0.0, G_D, dt=DT).notes) for name, G in plants().items()}
    assert "later than G_D by 2 periods" in notes["resonance, delay"]
    assert "would ring" in notes["resonance, delay"]
    assert "outside the unit circle" in notes["zero outside"]
    assert "inverted 0.1 Hz inside" in notes["two zeros at 0 Hz"]
    assert notes["a lag"] == ""


def test_the_reference_models_size_is_kept_by_a_zero_outside() -> None:
    made = two_dof(plants()["zero outside"], 0.0, G_D, dt=DT)
    w = np.array([1.0, 30.0, 100.0])
    held = sampled(G_D, DT, "zoh")
    np.testing.assert_allclose(np.abs(made.reference.at(w)), np.abs(held.at(w)), rtol=1e-9)
    assert made.reference.at([0.0])[0, 0, 0] == pytest.approx(1.0)


def test_feedback_removes_what_feedforward_does_not_know() -> None:
    case = sampled_case()
    design = mixed_sensitivity(**case)
    made = two_dof(case["G"], design.system, G_D, F, dt=DT)
    plant = series(sampled(resonance(0.01, 1.1 * HZ16), DT, "zoh"), delay(2 * DT, DT))
    y, wanted = run(made, plant, np.ones(500))
    alone, _ = run(two_dof(case["G"], 0.0, G_D, F, dt=DT), plant, np.ones(500))
    assert np.abs(y - wanted)[250:].max() < 0.2 * np.abs(alone - wanted)[250:].max()


def test_the_compensator_is_its_state_space() -> None:
    made = two_dof(plants()["resonance, delay"], from_polynomials([0.3], [1.0, 20.0]), G_D, F, dt=DT)
    S, c, x = made.system, made.compensator(), np.zeros(made.system.order)
    for r, y in np.random.default_rng(3).normal(size=(50, 2)):
        assert c.step(r, y) == pytest.approx((S.C @ x + S.D @ [r, y])[0], abs=1e-10)
        x = S.A @ x + S.B @ [r, y]
    pytest.importorskip("control")
    assert (made.K_hat.ninputs, made.K_hat.noutputs, made.K_hat.dt) == (2, 1, DT)


def test_numbers_that_are_not_finite_hold_the_output() -> None:
    made = two_dof(plants()["resonance, delay"], 0.001, G_D, F, dt=DT)
    c = made.compensator()
    last = [c.step(1.0, 0.0) for _ in range(5)][-1]
    state = c.state
    for r, y in ((np.nan, 0.0), (1.0, np.inf), (-np.inf, np.nan)):
        assert c.step(r, y) == last
    assert c.held == 3
    np.testing.assert_array_equal(c.state, state)
    assert np.isfinite(c.step(1.0, 0.0))


def test_a_saturated_output_holds_the_feedback_controller_alone() -> None:
    integrator = Compensator(
        np.diag([0.5, 1.0]), [[1.0, 0.0], [1.0, -1.0]], [[1.0, 1.0]], [[0, 0]], references=1, feedback=1
    )
    for _ in range(20):
        integrator.step(1.0, 0.0, saturated=True)
    assert integrator.state[1] == 0.0
    assert integrator.state[0] == pytest.approx(2.0, rel=1e-5)
    assert integrator.saturated == 20
    integrator.step(1.0, 0.0)
    assert integrator.state[1] == 1.0
    integrator.reset()
    assert integrator.saturated == 0
    assert not integrator.state.any()


def test_an_unstable_compensator_never_gives_infinity() -> None:
    wild = Compensator([[1e10]], [[1.0, 1.0]], [[1.0]], [[0.0, 0.0]], references=1)
    assert all(np.isfinite(wild.step(1.0, 0.0)) for _ in range(200))
    assert wild.held > 0


def test_what_cannot_be_done_is_said() -> None:
    G = plants()["resonance, delay"]
    with pytest.raises(DesignError, match="not stable: design K for the sampled plant"):
        two_dof(G, 5.0, G_D, dt=DT)
    with pytest.raises(DesignError, match="G_D is not stable"):
        two_dof(G, 0.0, from_polynomials([1.0], [1.0, 0.0]), dt=DT)
    with pytest.raises(ShapeError, match="one axis"):
        two_dof(gains(np.eye(2), DT), 0.0, G_D, dt=DT)


def test_a_zero_on_the_left_of_the_unit_circle_does_not_make_u_ring() -> None:
    dt = 0.01
    G = from_polynomials([1.0], [1.0, 0.0, 0.0])  # sampled with a hold, it has a zero at z = -1
    K = mixed_sensitivity(G, None, from_polynomials([0.5, 3.0], [1.0, 0.03]), 0.01, cost="standard").system
    made = two_dof(G, K, from_polynomials([400.0], [1.0, 40.0, 400.0]), dt=dt)
    assert "would ring" in " ".join(made.notes)
    c, held, x, u = made.compensator(), sampled(G, dt, "zoh"), np.zeros(2), []
    for _ in range(60):
        u.append(c.step(1.0, (held.C @ x)[0]))
        x = held.A @ x + held.B[:, 0] * u[-1]
    assert np.abs(np.diff(u))[30:].mean() < 1.0


def test_the_mirror_image_of_a_zero_near_the_left_of_the_circle_is_no_pole() -> None:
    G = System([[0.5, 0.0], [1.0, 0.0]], [[1.0], [0.0]], [[1.0, 1.05]], [[0.0]], DT)  # zero at z = -1.05
    poles = two_dof(G, 0.0, G_D, dt=DT).feedforward.poles()
    assert poles.real.min() > -0.1
