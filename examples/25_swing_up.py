"""A cart swings its pole up: the exported CasADi function in an optimal-control problem, solved by IPOPT.

Direct collocation (Hermite and Simpson's) finds the trajectory; a simulation with the optimal forces checks it.
Run it: python examples/25_swing_up.py    It writes out/25_swing_up.png, .html and the module out/cart_pole.py.
"""

import importlib.util
from pathlib import Path

import casadi as ca
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwright as lw

DURATION, INTERVALS, LIMIT, RAIL = 2.0, 60, 20.0, 1.0  # s, of time, N, m

with lw.Builder("cart-pole") as b:
    b.gravity((0, -9.81, 0))
    cart = b.body("cart", 1.0, (0, 0, 0), (0.01, 0.01, 0.01))
    pole = b.body("pole", 0.3, (0, -0.25, 0), (0.006, 1e-4, 0.006))
    rail, slider = b.triad(b.ground, h=(1, 0, 0), f=(0, 1, 0)), b.triad(cart, h=(1, 0, 0), f=(0, 1, 0))
    b.joint("prismatic", rail, slider, "rail")
    b.joint("revolute", b.triad(cart), b.triad(pole), "pivot", actuated=False)
    b.triad(pole, (0, -0.5, 0), name="tip")
mech = b.build()

# The module needs casadi alone, also on another machine. Its Jacobian is Linkwright's.
Path("out").mkdir(exist_ok=True)
file = lw.export(mech, "out/cart_pole.py", to="casadi", name="cart_pole").path
spec = importlib.util.spec_from_file_location(file.stem, file)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
acceleration = module.build()

# The state is (q, v), its rate (v, a); the force acts on the cart alone.
state, force = ca.MX.sym("state", 4), ca.MX.sym("force")
a = acceleration(state[:2], state[2:], ca.vertcat(force, 0))
rate = ca.Function("rate", [state, force], [ca.vertcat(state[2:], a)])

problem = ca.Opti()
x, u = problem.variable(4, INTERVALS + 1), problem.variable(1, INTERVALS + 1)
h = DURATION / INTERVALS
slopes = rate.map(INTERVALS + 1)(x, u)
before, after = x[:, :-1], x[:, 1:]
middle = (before + after) / 2 + h / 8 * (slopes[:, :-1] - slopes[:, 1:])
between = rate.map(INTERVALS)(middle, (u[:, :-1] + u[:, 1:]) / 2)
problem.subject_to(after - before == h / 6 * (slopes[:, :-1] + 4 * between + slopes[:, 1:]))
problem.subject_to(x[:, 0] == 0)
problem.subject_to(x[:, -1] == ca.DM([0, np.pi, 0, 0]))
problem.subject_to(problem.bounded(-LIMIT, u, LIMIT))
problem.subject_to(problem.bounded(-RAIL, x[0, :], RAIL))
problem.minimize(h * ca.sumsqr(u) + h * ca.sumsqr(u[:, 1:] - u[:, :-1]))
problem.set_initial(x[1, :], np.linspace(0, np.pi, INTERVALS + 1))
problem.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes", "max_iter": 500})
optimum = problem.solve()
times, plan, forces = np.linspace(0, DURATION, INTERVALS + 1), optimum.value(x), optimum.value(u)
print(f"IPOPT: {optimum.stats()['return_status']} after {optimum.stats()['iter_count']} iterations")

# The forces are linear between the time points: a law that is compiled with the mechanism.
pieces = tuple((float(f), float(d), 0.0, 0.0) for f, d in zip(forces, np.diff(forces) / h, strict=False))
law = lw.Table(tuple(times.tolist()), pieces)
motion = lw.simulate(
    mech,
    t_end=DURATION,
    q0=[0, 0],
    v0=[0, 0],
    tau=lambda t, q, v: np.array([law(t), 0.0]),
    rtol=1e-10,
    saving=lw.Saving(times=times),
)
off = np.abs(np.concatenate([motion.q, motion.v], axis=1) - plan.T)
print(f"simulated with these forces, the pole ends {off[-1, 1]:.1e} rad from upright, the cart {off[-1, 0]:.1e} m off")
assert motion.status
assert off[-1, 1] < 0.02
assert np.abs(forces).max() <= LIMIT + 1e-6
assert motion.position("tip")[-1, 1] > 0.499
motion.animate("out/25_swing_up.html")

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
left.plot(times, plan[1], "o", markersize=3, label="pole, planned (rad)")
left.plot(motion.time, motion.q[:, 1], label="pole, simulated (rad)")
left.plot(motion.time, motion.q[:, 0], label="cart, simulated (m)")
left.plot(times, forces / LIMIT, color="0.6", label="force / 20 N")
left.set(title="A swing-up by IPOPT, and its simulation", xlabel="time (s)")
left.legend(fontsize=8)
left.grid(alpha=0.3)
tip, pivot = motion.position("tip"), motion.position("cart")
for k in range(0, len(times), 4):
    right.plot([pivot[k, 0], tip[k, 0]], [pivot[k, 1], tip[k, 1]], color=plt.cm.viridis(k / len(times)))
right.plot(tip[:, 0], tip[:, 1], color="0.7", linewidth=1)
right.set(title="The pole from dark to light", xlabel="x (m)", ylabel="y (m)", aspect="equal")
figure.savefig("out/25_swing_up.png", dpi=120)
