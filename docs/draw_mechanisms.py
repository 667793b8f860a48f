"""Draw docs/images/mechanisms.png: four mechanisms in free motion, each pose computed by forward dynamics.

Needs the extras `plot` and `test` (for the robots of the wheel example-robot-data):  python docs/draw_mechanisms.py
"""

from __future__ import annotations

import importlib.metadata
import warnings
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

import linkwright as lw

OUT = Path(__file__).parent / "images" / "mechanisms.png"
BACKGROUND, TEXT = "#0d1226", "#e8ebf5"


@dataclass
class Scene:
    """A mechanism, its initial state, its duration, the number of poses drawn and the direction of view."""

    title: str
    mech: lw.Mechanism
    q: np.ndarray
    v: np.ndarray
    seconds: float
    poses: int
    azimuth: float
    elevation: float
    colours: str
    width: float = 1.6
    damping: float = 0.0
    trail: str = ""  # a frame whose path is drawn


def robot(name: str, **options: str) -> lw.Mechanism:
    files = importlib.metadata.files("example-robot-data") or []
    path = next(f.locate() for f in files if f.name == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.errors.LinkwrightWarning)
        return lw.load(str(path), **options)


def moved(scene: Scene, dt: float = 2e-4) -> np.ndarray:
    """Coordinates over time, by semi-implicit Euler steps on each joint's manifold.

    Springs and dampers on actuated joints keep them near their initial coordinates.
    """
    mech, q, v = scene.mech, scene.q.copy(), scene.v.copy()
    actuated = np.asarray(mech.actuated)
    rows = [q]
    for _ in range(int(scene.seconds / dt)):
        stretch = mech.difference(scene.q, q)
        tau = np.where(actuated, -scene.damping * (30.0 * stretch + v), 0.0)
        v = v + dt * mech.forward_dynamics(q, v, tau)
        q = mech.integrate(q, dt * v)
        rows.append(q)
    return np.array(rows)


def segments(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """(poses, segments, 2, 3): from each body's joint to the joints and tips that it carries."""
    origin = {name: mech.pose(q, name)[:, :3, 3] for name in mech.frames}
    floating = mech.joints[0].kind == "free"
    pairs = [(body.parent, body.name) for body in mech.bodies if not (floating and body.parent == "ground")]
    carrying = {parent for parent, _ in pairs}
    d = mech.description
    for name, owner in zip(d.frames.names, d.frames.body.tolist(), strict=True):
        # The furthest merged frame of a body without children is its tip: a foot, a hand, a tool.
        if owner >= 0 and d.body_names[owner] not in carrying:
            pairs.append((d.body_names[owner], name))
    if mech.name.startswith("chain"):
        tip = mech.bodies[-1].name
        origin["tip"] = (mech.pose(q, tip) @ np.array([0.0, 0.0, 0.1, 1.0]))[:, :3]
        pairs.append((tip, "tip"))
    return np.stack([np.stack([origin[a], origin[b]], axis=1) for a, b in pairs], axis=1)


def projected(points: np.ndarray, azimuth: float, elevation: float) -> np.ndarray:
    """Across, up: a parallel projection."""
    a, e = np.radians([azimuth, elevation])
    across = np.array([-np.sin(a), np.cos(a), 0.0])
    up = np.array([-np.sin(e) * np.cos(a), -np.sin(e) * np.sin(a), np.cos(e)])
    return points @ np.stack([across, up], axis=1)


def draw(axis: plt.Axes, scene: Scene) -> None:
    path = moved(scene)
    assert np.isfinite(path).all()
    chosen = np.linspace(0, len(path) - 1, scene.poses).astype(int)
    flat = projected(segments(scene.mech, path[chosen]), scene.azimuth, scene.elevation)
    colours = plt.get_cmap(scene.colours)(np.linspace(0.25, 0.95, scene.poses))
    for k, (lines, colour) in enumerate(zip(flat, colours, strict=True)):
        last = k == scene.poses - 1
        strength = 1.0 if last else 0.35 + 0.5 * k / scene.poses
        wide = scene.width * (2.4 if last else 1.0)
        for glow, share in ((4.0, 0.06), (2.0, 0.14), (1.0, 1.0)):
            axis.add_collection(
                LineCollection(
                    list(lines), colors=[colour], linewidths=wide * glow, alpha=strength * share, capstyle="round"
                )
            )
        if last:
            joints = lines.reshape(-1, 2)
            axis.scatter(*joints.T, s=5 * wide, color="white", zorder=5, linewidths=0)
    if scene.trail:
        points = projected(scene.mech.pose(path, scene.trail)[:, :3, 3], scene.azimuth, scene.elevation)
        axis.plot(*points.T, color="white", alpha=0.35, linewidth=0.8)
    axis.set_aspect("equal")
    axis.autoscale_view()
    axis.axis("off")
    operations = sum(scene.mech.program("forward_dynamics").count().values())
    note = f"{scene.mech.nb} bodies · {scene.mech.nv} rates\nforward dynamics in {operations:,} operations"
    box = axis.get_position()
    middle = (box.x0 + box.x1) / 2
    write = axis.figure.text
    write(middle, 0.145, scene.title, color=TEXT, fontsize=17, ha="center", va="center", fontweight="bold")
    write(middle, 0.07, note, color=TEXT, alpha=0.7, fontsize=11.5, ha="center", va="center")


def scenes() -> list[Scene]:
    rng = np.random.default_rng(3)
    chain = lw.chain(30)
    q = np.full(chain.nq, 0.0)
    q[0], q[1] = 1.7, 0.5
    arm = robot("panda.urdf").lock({"panda_finger_joint1": 0.03})
    start = np.array([0.0, -0.3, 0.2, -1.2, 0.3, 1.9, 0.6])
    dog = robot("anymal.urdf", base="floating")
    q_dog, v_dog = dog.neutral(), np.zeros(dog.nv)
    for joint in dog.joints[1:]:
        at = joint.q_slice.start
        q_dog[at] = {"HAA": 0.0, "HFE": 0.7, "KFE": -1.3}[joint.name[-3:]] * (1 if joint.name[1] == "F" else -1)
    v_dog[0], v_dog[2], v_dog[4] = 3.2, 4.2, -4.0
    v_dog[6:] = 3.0 * rng.standard_normal(dog.nv - 6)
    man = robot("talos_reduced.urdf", base="floating")
    q_man, v_man = man.neutral(), np.zeros(man.nv)
    bent = {"leg_left_4": 0.9, "leg_right_4": 0.5, "leg_left_3": -0.7, "leg_right_3": -0.2, "arm_left_2": 0.5,
            "arm_right_2": -0.5, "arm_left_4": -1.2, "arm_right_4": -1.2}  # fmt: skip
    for joint in man.joints[1:]:
        q_man[joint.q_slice] = next((x for stem, x in bent.items() if joint.name.startswith(stem)), 0.0)
    v_man[0], v_man[2], v_man[4] = 4.2, 4.4, 5.6
    v_man[6:] = 1.5 * rng.standard_normal(man.nv - 6)
    return [
        Scene("A chain, let go", chain, q, np.zeros(chain.nv), 1.35, 34, 55, 15, "plasma", 1.1),
        Scene("A Panda arm, let go", arm, start, np.zeros(7), 0.6, 18, -55, 18, "viridis", 1.6, 0.0, "panda_hand_tcp"),
        Scene("ANYmal, thrown", dog, q_dog, v_dog, 0.86, 6, -72, 14, "cool", 1.5, 2.0),
        Scene("Talos, thrown", man, q_man, v_man, 0.9, 6, -80, 6, "autumn", 1.5, 6.0),
    ]  # fmt: skip


def main() -> None:
    figure, axes = plt.subplots(1, 4, figsize=(19, 5.6), width_ratios=[0.9, 0.9, 1.4, 1.4], facecolor=BACKGROUND)
    figure.subplots_adjust(left=0.01, right=0.99, top=0.97, bottom=0.19, wspace=0.05)
    for axis, scene in zip(axes, scenes(), strict=True):
        draw(axis, scene)
    OUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUT, dpi=100, facecolor=BACKGROUND)
    print(OUT)


if __name__ == "__main__":
    main()
