"""The manipulator's open chain in Pinocchio, with the torque transformation in NumPy."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from linkwright.control import Hexapod, LinkInertia
from linkwright.studies.manipulator.machine import LEGS

Floats = NDArray[np.float64]


class OpenChain:
    """Six legs of six revolute joints from ground; the plate is the last link of the first."""

    def __init__(self, geometry: Hexapod) -> None:
        self.geometry = g = geometry
        self.model = pin.Model()
        self.model.gravity.linear = np.array([0.0, 0.0, -g.gravity])
        x, y, z = pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ
        crosses = (g.first_cross_inertia, g.second_cross_inertia)
        links = (g.crank_inertia, g.universal_inertia, g.rod_inertia, *crosses, None)
        before = {1: g.crank, 3: g.rod}  # a joint's place along the x axis of the link before
        for leg in range(LEGS):
            frame = g.frames[leg]
            at = 0
            for k, (kind, link) in enumerate(zip((z, z, y, z, y, x), links, strict=True)):
                along = pin.SE3(np.eye(3), np.array([before.get(k, 0.0), 0.0, 0.0]))
                place = pin.SE3(frame, g.base_points[leg]) if k == 0 else along
                at = self.model.addJoint(at, kind(), place, f"{leg}.{k}")
                if link is not None:
                    self.model.appendBodyToJoint(at, _inertia(link), pin.SE3.Identity())
            if leg == 0:
                plate = pin.SE3(frame.T, -frame.T @ g.wrist_points[0])
                self.model.appendBodyToJoint(at, _inertia(g.plate_inertia), plate)
        self.data = self.model.createData()

    def open_forces(self, q: Floats, v: Floats, a: Floats) -> Floats:
        """τ_O (36)."""
        return pin.rnea(self.model, self.data, q, v, a)

    def torques(self, q: Floats, v: Floats, a: Floats, pose: Floats) -> Floats:
        """τ_A (6): τ_G = Wᵀ τ_O, S from the first rows of the legs' W, all six legs in one call of NumPy each."""
        tau = pin.rnea(self.model, self.data, q, v, a)
        own = pin.computeJointJacobians(self.model, self.data, q).reshape(6, LEGS, 6).transpose(1, 0, 2).copy()
        x, y, z = pose[:3]
        own[:, :3] += np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]) @ own[:, 3:]  # to the plate's origin
        w = np.linalg.inv(own)
        total = np.einsum("lji,lj->i", w, tau.reshape(LEGS, 6))
        return np.linalg.solve(w[:, 0].T, total)


def _inertia(link: LinkInertia) -> pin.Inertia:
    return pin.Inertia(link.mass, np.array(link.com), np.diag(link.moments))
