// Solids from the scene's parts: one mesh a body and layer, so that a body costs one draw call.

import {
  BoxGeometry, BufferAttribute, BufferGeometry, CapsuleGeometry, Color, ConeGeometry, CylinderGeometry, Group, Matrix4, Mesh,
  MeshStandardMaterial, Quaternion, SphereGeometry, Vector3,
} from "three";
import { RoundedBoxGeometry } from "three/addons/geometries/RoundedBoxGeometry.js";
import { mergeGeometries, toCreasedNormals } from "three/addons/utils/BufferGeometryUtils.js";
import { counts, floats } from "./data.js";

const CREASE = 0.6; // radians: sharper edges of a mesh stay edges

export const material = () => new MeshStandardMaterial({ vertexColors: true, roughness: 0.46, metalness: 0.08 });

export class Solids {
  constructor(scene) {
    this.meshes = scene.meshes.map((mesh) => ({ vertices: floats(mesh.vertices), triangles: counts(mesh.triangles) }));
    // Many bodies are small on the screen, and need fewer facets.
    this.detail = scene.bodies.length > 300 ? 0.35 : scene.bodies.length > 60 ? 0.6 : 1;
    this.material = material();
  }

  // A group for a body: its own mesh, and its joints' in userData.joints.
  group(parts) {
    const group = new Group();
    for (const layer of ["body", "joint"]) {
      const chosen = parts.filter((part) => part.layer === layer);
      if (!chosen.length) continue;
      const geometry = mergeGeometries(chosen.map((part) => this.geometry(part)));
      const mesh = new Mesh(geometry, this.material);
      mesh.castShadow = true;
      mesh.receiveShadow = true;
      group.add(mesh);
      if (layer === "joint") group.userData.joints = mesh;
    }
    return group;
  }

  geometry(part) {
    const [e0, e1, e2, e3] = part.turn;
    const place = new Matrix4().compose(new Vector3(...part.at), new Quaternion(e1, e2, e3, e0), new Vector3(1, 1, 1));
    let made = this.raw(part).applyMatrix4(place);
    if (made.index) made = made.toNonIndexed();
    return tinted(made, part.color);
  }

  raw(part) {
    const round = Math.max(8, Math.round(40 * this.detail));
    const cap = Math.max(3, Math.round(10 * this.detail));
    const [a, b, c] = part.size;
    const upright = (made) => made.rotateX(Math.PI / 2); // three's solids stand on y, ours on z
    switch (part.kind) {
      case "box": {
        const least = Math.min(a, b, c);
        return this.detail < 1 ? new BoxGeometry(a, b, c) : new RoundedBoxGeometry(a, b, c, 3, 0.1 * least);
      }
      case "cylinder":
        return upright(new CylinderGeometry(a, a, b, round));
      case "cone":
        return upright(new ConeGeometry(a, b, round));
      case "sphere":
        return new SphereGeometry(a, round, Math.round(round / 2));
      case "capsule":
        return upright(new CapsuleGeometry(a, b, cap, Math.round(0.7 * round)));
      case "mesh":
        return this.mesh(this.meshes[part.mesh], a);
      default:
        throw new Error(`The scene has a shape of kind ${part.kind}, which this page cannot draw.`);
    }
  }

  mesh({ vertices, triangles }, scale) {
    const made = new BufferGeometry();
    made.setAttribute("position", new BufferAttribute(vertices.slice(), 3));
    made.setIndex(new BufferAttribute(triangles, 1));
    made.scale(scale, scale, scale);
    return toCreasedNormals(made.toNonIndexed(), CREASE);
  }
}

// A geometry with positions, normals and one colour: what meshes here are merged from.
export function tinted(geometry, color) {
  for (const name of Object.keys(geometry.attributes)) {
    if (name !== "position" && name !== "normal") geometry.deleteAttribute(name);
  }
  const { r, g, b } = new Color(color);
  const count = geometry.attributes.position.count;
  const colors = new Float32Array(3 * count);
  for (let k = 0; k < count; k++) colors.set([r, g, b], 3 * k);
  geometry.setAttribute("color", new BufferAttribute(colors, 3));
  return geometry;
}

// Three arrows f, g, h of length 1.
export function axesGeometry(colors) {
  const pieces = [];
  for (const [k, color] of colors.entries()) {
    const shaft = new CylinderGeometry(0.035, 0.035, 0.8, 12).translate(0, 0.4, 0);
    const tip = new ConeGeometry(0.1, 0.24, 16).translate(0, 0.88, 0);
    for (const piece of [shaft, tip]) {
      if (k === 0) piece.rotateZ(-Math.PI / 2);
      if (k === 2) piece.rotateX(Math.PI / 2);
      pieces.push(tinted(piece.toNonIndexed(), color));
    }
  }
  return mergeGeometries(pieces);
}
