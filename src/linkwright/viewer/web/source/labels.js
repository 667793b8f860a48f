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
      const wide = widths.get(text);
      const [x0, y0] = [((seen.x + 1) / 2) * width, ((1 - seen.y) / 2) * height];
      // Beside the body, above or below, where no other name is; in a crowd some names are left out.
      const corners = [[x0 + 10, y0 - 26], [x0 + 10, y0 + 6], [x0 - 10 - wide, y0 - 26], [x0 - 10 - wide, y0 + 6]];
      const free = corners.find(([x, y]) => !taken.some((other) => x < other.x + other.wide + 2 && other.x < x + wide + 2 && Math.abs(y - other.y) < TALL));
      text.style.visibility = inside && free ? "visible" : "hidden";
      if (!inside || !free) continue;
      const [x, y] = free;
      taken.push({ x, y, wide });
      text.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
    }
  }
}
