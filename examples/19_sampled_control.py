"""A five-bar draws an eight under three controllers: 500 Hz, encoders, delay, friction, and a model that is not exact.

Run it: python examples/19_sampled_control.py    It writes out/19_sampled_control.png.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

CRANKS = ("A", "B")


def five_bar(mass: float, coulomb: float) -> lw.Mechanism:
    """Two driven cranks on ground carry two rods that meet at the pen: a closed chain of two degrees of freedom."""
    with lw.Builder("five-bar") as b:
        b.gravity((0, -9.81, 0))
        left, right, left_rod, right_rod = (
            b.body(name, mass, (0.15, 0, 0), (0.001, 0.01, 0.01)) for name in ("left", "right", "left_rod", "right_rod")
        )
        b.joint("revolute", b.triad(b.ground, (-0.2, 0, 0)), b.triad(left), "A")
        b.joint("revolute", b.triad(b.ground, (0.2, 0, 0)), b.triad(right), "B")
        b.joint("revolute", b.triad(left, (0.3, 0, 0)), b.triad(left_rod), "C", actuated=False)
        b.joint("revolute", b.triad(right, (0.3, 0, 0)), b.triad(right_rod), "D", actuated=False)
        pen = b.triad(left_rod, (0.4, 0, 0), name="pen")
        b.joint("revolute", pen, b.triad(right_rod, (0.4, 0, 0)), "E", cut=True, actuated=False)
        for crank in CRANKS if coulomb else ():
            b.joint_force(crank, -coulomb * np.tanh(b.rate(crank) / 0.02))
    return b.build()


# The plant is 5 % heavier than the controller's model, and its cranks have friction.
plant, model = five_bar(1.05, 1.5), five_bar(1.0, 0.0)
start = model.assemble([2.0, 1.14, -1.2, 1.2], fixed=CRANKS)
home = model.pose(start, "pen")[:3, 3]

angle = np.linspace(0.0, 2.0 * np.pi, 41)
figure_of_eight = np.stack([0.12 * np.sin(angle), 0.06 * np.sin(2.0 * angle), 0.0 * angle], axis=1)
figure_of_eight[-1] = figure_of_eight[0]
path = lw.control.Pose(lw.control.Curve(figure_of_eight + home, 1.2, start=0.1))

axes = ("x", "y")
pid_settings = lw.control.PidSettings(axes=axes, guess=start, gravity=True)
settings = lw.control.ResolvedSettings(guess=start)
pid = lw.control.pid(model, 2000.0, 150.0, 5000.0, path, space="task", frame="pen", settings=pid_settings)
dynamic = lw.control.resolved_acceleration(model, "pen", 1600.0, 80.0, path, axes=axes, settings=settings)
helped = lw.control.resolved_acceleration(model, "pen", 1600.0, 80.0, path, axes=axes, settings=settings)
controllers = {
    "PID": pid,
    "resolved acceleration": dynamic,
    "and friction compensation": helped + lw.control.friction(1.5, velocity_scale=0.02, of="reference"),
}

# The same loop for all: encoders of 200 000 counts, rates by differences, a quarter of a period to compute, ± 30 N m.
runs = {}
for name, controller in controllers.items():
    loop = lw.control.Loop(
        plant,
        controller,
        period=2e-3,
        delay=0.25,
        encoders=lw.control.Encoder(counts=200_000),
        sensors=[lw.control.Accelerometer("pen", noise=0.05, cutoff=80.0)],
        torque_limit=30.0,
        settings=lw.control.LoopSettings(seed=1),
    )
    runs[name] = run = loop.run(1.5, start)
    assert run.status, run.status
    error = np.linalg.norm(run.position("pen") - path.table(run.time).x[:, :3], axis=1)
    print(f"{name:26} worst error {1e3 * error.max():6.2f} mm, at the end {1e3 * error[-1]:6.3f} mm")
    run.error = error

worst = [run.error.max() for run in runs.values()]
assert worst[1] < 0.7 * worst[0], worst
assert worst[2] < 0.5 * worst[1], worst
assert runs["resolved acceleration"].signals["iterations"].max() <= 4

figure, (plane, time) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
plane.plot(*path.table(run.time).x[:, :2].T, color="0.6", linewidth=4, label="reference")
for name, run in runs.items():
    plane.plot(*run.position("pen")[:, :2].T, linewidth=1.2, label=name)
    time.plot(run.time, 1e3 * run.error, label=name)
plane.set(title="The pen's path", xlabel="x (m)", ylabel="y (m)", aspect="equal")
plane.legend(fontsize=8, loc="upper center", ncols=2, bbox_to_anchor=(0.5, -0.2))
time.set(title="Distance of the pen from the reference", xlabel="time (s)", ylabel="error (mm)")
time.legend()
time.grid(alpha=0.3)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/19_sampled_control.png", dpi=120)
