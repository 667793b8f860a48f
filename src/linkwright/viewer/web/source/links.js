// What is stretched between two points of bodies: rods, and coils for springs, dampers and actuators.

import { Curve, CylinderGeometry, Mesh, MeshStandardMaterial, TubeGeometry, Vector3 } from "three";
import { rotated } from "./motion.js";

class Coil extends Curve {
  constructor(radius, length, turns) {
    super();
    Object.assign(this, { radius, length, turns });
  }

  getPoint(s, target = new Vector3()) {
    const middle = Math.min(1, Math.max(0, (s - 0.12) / 0.76));
    const angle = 2 * Math.PI * this.turns * middle;
    const wide = this.radius * Math.min(1, 12 * middle, 12 * (1 - middle));
    return target.set(wide * Math.cos(angle), s * this.length, wide * Math.sin(angle));
  }
}

const UP = new Vector3(0, 1, 0);

export class Links {
  constructor(scene, motion, groups, parent) {
    const unit = scene.unit;
    this.items = scene.links.map((link) => {
      const rod = link.kind === "rod";
      const ends = link.ends.map((end) => ({ group: groups[end.body + 1], at: new Vector3(...end.at) }));
      // A coil has the length that it starts with and is stretched from there.
      const length = rod ? 1 : Math.max(distance(scene, motion, link), 6 * unit);
      const turns = Math.min(14, Math.max(5, Math.round(length / (2.4 * unit))));
      const geometry = rod ? new CylinderGeometry(1, 1, 1, 16).translate(0, 0.5, 0) : new TubeGeometry(new Coil(1.7 * unit, length, turns), 36 * turns, 0.3 * unit, 8);
      const look = { color: rod ? "#8b95a1" : "#b9822c", roughness: 0.4, metalness: 0.3 };
      const mesh = new Mesh(geometry, new MeshStandardMaterial(look));
      mesh.castShadow = true;
      parent.add(mesh);
      return { mesh, ends, length, thick: rod ? 0.5 * unit : 1 };
    });
    this.points = [new Vector3(), new Vector3()];
  }

  update() {
    const [a, b] = this.points;
    for (const { mesh, ends, length: made, thick } of this.items) {
      for (const [k, point] of this.points.entries()) point.copy(ends[k].at).applyQuaternion(ends[k].group.quaternion).add(ends[k].group.position);
      mesh.position.copy(a);
      b.sub(a);
      const length = Math.max(b.length(), 1e-6 * made);
      mesh.quaternion.setFromUnitVectors(UP, b.divideScalar(length));
      mesh.scale.set(thick, length / made, thick);
    }
  }
}

// How far apart the ends of a link are at the start.
function distance(scene, motion, link) {
  const [p, e] = [[0, 0, 0], [1, 0, 0, 0]];
  const [a, b] = link.ends.map(({ body, at }) => {
    if (body < 0) return at.map((x, i) => x - scene.origin[i]);
    motion.pose(body, motion.start, p, e);
    return rotated(e, 0, at).map((x, i) => x + p[i]);
  });
  return Math.hypot(...a.map((x, i) => x - b[i]));
}
