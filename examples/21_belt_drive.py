"""A carriage on an elastic belt: identify the resonance, design H∞ acceleration feedback, compare.

Run it: python examples/21_belt_drive.py    It writes out/21_belt_drive.png.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw
from linkwright import control

PERIOD = 2e-3


def drive(*, elastic: bool) -> lw.Mechanism:
    """A motor (as a mass) that pulls a carriage: through a belt, or rigidly."""
    with lw.Builder("belt drive") as b:
        motor = b.body("motor", 30.0 if elastic else 34.0)
        b.joint("prismatic", b.ground, motor, "slide", axis=(1, 0, 0))
        if elastic:
            carriage = b.body("carriage", 4.0)
            b.joint("prismatic", motor, carriage, "belt", axis=(1, 0, 0), actuated=False)
            b.joint_force("belt", -4.0 * 80.0**2 * b.coordinate("belt") - 10.0 * b.rate("belt"), name="belt's spring")
            friction = 60.0 * (b.rate("slide") / 0.005).tanh() + 20.0 * b.rate("slide")
            b.joint_force("slide", -friction, name="friction")
    return b.build()


plant, model = drive(elastic=True), drive(elastic=False)
step = control.Accelerations([0.0], [[4.0], [-4.0], [0.0]], [0.25, 0.25, 10.0], start=0.02)


def run(reference, t_end, feedback):
    """The plant under computed torque of the rigid model, with acceleration feedback around it."""
    inner = control.computed_torque(model, 900.0, 60.0, reference, joints=["slide"])
    loop = control.Loop(
        plant,
        control.Corrected(inner, feedback),
        period=PERIOD,
        drives=["slide"],
        encoders=control.Encoder(["slide"]),
        sensors=[control.Accelerometer("carriage", noise=0.02, name="carriage")],
        torque_limit=2000.0,
        delay=0.2,
    )
    motion = loop.run(t_end)
    assert motion.status, motion.status
    return motion


def experiment(compensator):
    """A record with an M-sequence as excitation: corrected and measured acceleration."""
    m = control.m_sequence(11, 3000, amplitude=8.0, hold=2)
    inside = {} if compensator is None else {0: compensator.compensator()}
    motion = run(control.Hold([0.0]), 6.0, control.AccelerationFeedback(inside, sensor="carriage", excitation={0: m}))
    return control.Record(motion.signals["correction"][:3000, 0], motion.sensors["carriage"][:3000, 0], PERIOD, r=m)


reference_model = ([150.0**2], [1.0, 300.0, 150.0**2])
design = control.repeated_design(
    experiment, reference_model, ([300.0], [1.0, 300.0]), dt=PERIOD, orders=(4, 4, 2, 2, 1)
)
print(design)
before = run(step, 0.8, control.AccelerationFeedback(sensor="carriage"))
after = run(step, 0.8, control.AccelerationFeedback({0: design.compensator.compensator()}, sensor="carriage"))

figure, (bode, time) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
last = design.rounds[-1]
w = np.geomspace(10.0, 1200.0, 400)
bode.loglog(last.measured.hertz, np.abs(last.measured.response), ".", color="0.7", label="measured")
bode.loglog(w / (2.0 * np.pi), np.abs(last.model.frequency_response(w)), label="Box–Jenkins model")
bode.set(
    xlabel="frequency (Hz)",
    ylabel="gain",
    title="From reference to measured acceleration",
    ylim=(1e-2, 20),
    xlim=(1, 200),
)
bode.legend()
t = before.time
time.plot(t, step.table(t).xdd[:, 0], color="0.4", linestyle=":", label="reference")
for motion, name in ((before, "computed torque"), (after, "with acceleration feedback")):
    a = motion.acceleration("carriage")[:, 0]
    late, shake = control.t50(t, a, 4.0, start=0.02), control.vibration(t, a, (0.15, 0.27))
    print(f"{name:28} half of the step after {1e3 * late:.1f} ms, vibration ± {shake:.2f} m/s²")
    time.plot(t, a, label=name)
time.set(xlabel="time (s)", ylabel="acceleration of the carriage (m/s²)", ylim=(-18, 8))
time.legend(loc="lower right")
shaken = [control.vibration(t, motion.acceleration("carriage")[:, 0], (0.15, 0.27)) for motion in (before, after)]
assert shaken[1] < shaken[0] / 3.0
Path("out").mkdir(exist_ok=True)
figure.savefig("out/21_belt_drive.png", dpi=120)
