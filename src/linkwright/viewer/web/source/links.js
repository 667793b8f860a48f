// What is stretched between two points of bodies: rods, and coils for springs, dampers and actuators.

import { Curve, CylinderGeometry, Mesh, MeshStandardMaterial, TubeGeometry, Vector3 } from "three";

class Coil extends Curve {
  constructor(radius, turns) {
    super();
    Object.assign(this, { radius, turns });
  }

  getPoint(s, target = new Vector3()) {
    const middle = Math.min(1, Math.max(0, (s - 0.12) / 0.76));
    const angle = 2 * Math.PI * this.turns * middle;
    const wide = this.radius * Math.min(1, 12 * middle, 12 * (1 - middle));
    return target.set(wide * Math.cos(angle), s, wide * Math.sin(angle));
  }
}

const UP = new Vector3(0, 1, 0);

export class Links {
  constructor(scene, groups, parent) {
    const unit = scene.unit;
    this.items = scene.links.map((link) => {
      const rod = link.kind === "rod";
      // A coil is made of length 1 and stretched along; its wire is thin enough that this does not show.
      const geometry = rod ? new CylinderGeometry(1, 1, 1, 16).translate(0, 0.5, 0) : new TubeGeometry(new Coil(1, 9), 320, 0.09, 8);
      const look = { color: rod ? "#8b95a1" : "#b9822c", roughness: 0.4, metalness: 0.3 };
      const mesh = new Mesh(geometry, new MeshStandardMaterial(look));
      mesh.castShadow = true;
      parent.add(mesh);
      const ends = link.ends.map((end) => ({ group: groups[end.body + 1], at: new Vector3(...end.at) }));
      return { mesh, ends, thick: rod ? 0.5 * unit : 1.7 * unit };
    });
    this.points = [new Vector3(), new Vector3()];
  }

  update() {
    const [a, b] = this.points;
    for (const { mesh, ends, thick } of this.items) {
      for (const [k, point] of this.points.entries()) point.copy(ends[k].at).applyQuaternion(ends[k].group.quaternion).add(ends[k].group.position);
      mesh.position.copy(a);
      b.sub(a);
      const length = Math.max(b.length(), 1e-9 * thick);
      mesh.quaternion.setFromUnitVectors(UP, b.divideScalar(length));
      mesh.scale.set(thick, length, thick);
    }
  }
}
