// Names of bodies beside them, as text over the picture.

import { Vector3 } from "three";

const MOST = 80;
const TALL = 22; // pixels of one name
const widths = new WeakMap();

export class Labels {
  constructor(scene, groups) {
    this.layer = document.getElementById("labels");
    this.items = scene.bodies.slice(0, MOST).map((body, k) => {
      const text = document.createElement("span");
      text.textContent = body.name;
      this.layer.append(text);
      return { text, group: groups[k + 1], middle: new Vector3(...body.middle) };
    });
    this.point = new Vector3();
  }

  show(on) {
    this.layer.hidden = !on;
    if (on) for (const { text } of this.items) widths.set(text, text.offsetWidth);
  }

  update(camera, width, height) {
    if (this.layer.hidden) return;
    const taken = [];
    for (const { text, group, middle } of this.items) {
      const seen = this.point.copy(middle).applyQuaternion(group.quaternion).add(group.position).project(camera);
      const inside = Math.abs(seen.x) < 1.1 && Math.abs(seen.y) < 1.1 && seen.z < 1;
      text.style.visibility = inside ? "visible" : "hidden";
      const x = ((seen.x + 1) / 2) * width + 10;
      let y = ((1 - seen.y) / 2) * height - 26;
      // A name that would lie on another goes below it.
      for (const other of taken) {
        if (Math.abs(x - other.x) < 0.5 * (widths.get(text) + other.wide) + 2 && Math.abs(y - other.y) < TALL) y = other.y + TALL;
      }
      if (inside) taken.push({ x, y, wide: widths.get(text) });
      text.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
    }
  }
}
