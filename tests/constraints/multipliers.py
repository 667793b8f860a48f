"""Closed mechanisms at states that close them, and their equations of motion with multipliers, dense, in NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import linkwright as lw
from linkwright.mechanism import Mechanism
from linkwright.model.description import JOINT_ARRAYS, Names, kind_number
from linkwright.model.joint_kinds import KINDS


def tree_of(mech: lw.Mechanism) -> lw.Mechanism:
    """The spanning tree alone."""
    d, loops = mech.description, set(mech.loops)
    kept = [j for j in range(d.nj) if d.joint_names[j] not in loops]
    arrays = {name: getattr(d, name)[kept] for name in JOINT_ARRAYS}
    names = Names([d.joint_names[j] for j in kept])
    return Mechanism(replace(d, joint_names=names, cuts=frozenset(), point_constraints=(), drivers=(), **arrays))


def with_loops(tree: lw.Mechanism, q: np.ndarray, loops: list[tuple[str, str, str]], seed: int) -> lw.Mechanism:
    """The tree with further joints (kind, parent body, child body), put where they close at q."""
    rng, d = np.random.default_rng(seed), tree.description
    rows: dict[str, list] = {name: list(getattr(d, name)) for name in JOINT_ARRAYS}
    names = list(d.joint_names)
    for k, (kind, parent, child) in enumerate(loops):
        motion, pitch = KINDS[kind], 0.1 if kind == "screw" else 0.0
        at = motion.integrate(motion.neutral(), rng.uniform(-0.7, 0.7, motion.nv))
        terms = motion.terms(at, pitch)
        i, x = np.eye(4), np.eye(4)
        i[:3, :3], i[:3, 3] = lw.random_tree(1, seed + k).description.ri[0], rng.uniform(-0.2, 0.2, 3)
        x[:3, :3], x[:3, 3] = motion.rotation(terms).matrix(), motion.shift(terms, pitch)
        j = np.linalg.solve(tree.pose(q, child), tree.pose(q, parent) @ i @ x)
        bodies = [-1 if name == "ground" else d.body_names.find(name) for name in (parent, child)]
        new = {"kind": kind_number(kind), "parent": bodies[0], "child": bodies[1], "pitch": pitch}
        new |= {"ri": i[:3, :3], "pi": i[:3, 3], "rj": j[:3, :3], "pj": j[:3, 3]}
        for name in JOINT_ARRAYS:
            rows[name].append(new.get(name, np.inf if name.endswith("limit") or name == "upper" else 0.0))
        names.append(f"loop{k}")
    arrays = {name: np.array(rows[name], dtype=getattr(d, name).dtype) for name in JOINT_ARRAYS}
    cuts = frozenset(range(d.nj, d.nj + len(loops)))
    return Mechanism(replace(d, joint_names=Names(names), cuts=cuts, **arrays))


class Motion:
    """The rolled programs of a mechanism, and what they must obey."""

    def __init__(self, mech: lw.Mechanism) -> None:
        self.mech, self.tree = mech, tree_of(mech)
        self.programs = {
            name: mech.program(name, form="rolled")
            for name in ("forward_dynamics", "constraint_forces", "position_correction", "velocity_projection")
        }

    def ask(self, name: str, *arrays: np.ndarray, t: float = 0.0) -> np.ndarray:
        program = self.programs[name]
        given = [*arrays, *([t] if len(program.inputs) > len(arrays) else [])]
        return program(*given)

    def jacobian(self, q: np.ndarray, t: float) -> np.ndarray:
        """G: what the constraints miss at a unit of each rate."""
        nv = self.mech.nv
        still = self.ask("velocity_projection", q, np.zeros(nv), t=t)[1]
        return np.stack([self.ask("velocity_projection", q, e, t=t)[1] - still for e in np.eye(nv)], axis=1)

    def close(self, q: np.ndarray, t: float) -> np.ndarray:
        """The position that `nearest` leads to."""
        for _ in range(20):
            dv, phi = self.ask("position_correction", q, t=t)
            if np.abs(phi).max(initial=0.0) < 1e-13:
                break
            q = self.mech.integrate(q, dv)
        return q

    def check(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, t: float = 0.3) -> None:
        """At a closed position, from any velocity: everything that the four programs say."""
        mech, tree = self.mech, self.tree
        needs_time = len(tree.program("bias_forces").inputs) > 2
        m = tree.mass_matrix(q)
        g = self.jacobian(q, t)
        self._check_slope(q, g, t)
        # Velocities: the least change, in the metric of M, that the constraints ask for.
        dv, rate = self.ask("velocity_projection", q, v, t=t)
        pull = np.linalg.solve(m, g.T)
        held = np.linalg.pinv(g @ pull, rcond=1e-9, hermitian=True)
        size = 1.0 + np.abs(v).max()
        assert np.abs(dv + pull @ (held @ rate)).max() < 1e-9 * size
        v = v + dv
        assert np.abs(self.ask("velocity_projection", q, v, t=t)[1]).max(initial=0.0) < 1e-10 * size
        # Accelerations: Newton and Euler with the constraints' forces ...
        a, forces = (self.ask(name, q, v, tau, t=t) for name in ("forward_dynamics", "constraint_forces"))
        h = tree.bias_forces(q, v, t=t) if needs_time else tree.bias_forces(q, v)
        missed = m @ a + h - tau - g.T @ forces
        assert np.abs(missed).max() < 1e-9 * (1.0 + np.abs(m @ a).max() + np.abs(h).max() + np.abs(g.T @ forces).max())
        # ... that keep the constraints: their rates do not change.
        assert np.abs(self._drift(q, v, a, t)).max(initial=0.0) < 1e-6 * (1.0 + np.abs(a).max() + np.abs(v).max() ** 2)
        # Positions: from nearby back, at first order by the least change.
        near = mech.integrate(q, 1e-4 * v / size)
        dv, phi = self.ask("position_correction", near, t=t)
        g = self.jacobian(near, t)
        if np.linalg.matrix_rank(g, 1e-7) == len(g):
            pull = np.linalg.solve(tree.mass_matrix(near), g.T)
            right = -pull @ np.linalg.solve(g @ pull, phi)
            assert np.abs(dv - right).max() < 1e-9 * np.abs(right).max(initial=1e-6)
        assert np.abs(self.ask("position_correction", self.close(near, t), t=t)[1]).max(initial=0.0) < 1e-12

    def _check_slope(self, q: np.ndarray, g: np.ndarray, t: float) -> None:
        """G is the slope of Φ."""
        step = 1e-6
        for k, e in enumerate(np.eye(self.mech.nv)):
            ends = [
                self.ask("position_correction", self.mech.integrate(q, sign * step * e), t=t)[1] for sign in (1.0, -1.0)
            ]
            slope = (ends[0] - ends[1]) / (2.0 * step)
            assert np.allclose(slope, g[:, k], atol=1e-7 * (1.0 + np.abs(g).max()))

    def _drift(self, q: np.ndarray, v: np.ndarray, a: np.ndarray, t: float) -> np.ndarray:
        """d(G v + Φ_t)/dt along the motion, by a difference of order 4."""
        h, found = 1e-3, 0.0
        for n, weight in ((1, 8.0), (-1, -8.0), (2, -1.0), (-2, 1.0)):
            s = n * h
            there = self.mech.integrate(q, s * v)
            found = found + weight * self.ask("velocity_projection", there, v + s * a, t=t + s)[1]
        return found / (12.0 * h)
