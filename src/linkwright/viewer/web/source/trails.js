// Trails of traced points: the whole path faintly, and what was just passed brightly, as ribbons of constant width.

import { BufferAttribute, BufferGeometry, Color, Mesh, ShaderMaterial, Vector2 } from "three";
import { rotated } from "./motion.js";

const MOST = 6000; // points of one trail

const VERTEX = /* glsl */ `
  attribute vec3 before, after;
  attribute float side, time;
  uniform vec2 screen;
  uniform float width;
  varying float vTime, vSide;
  vec2 pixel(vec4 p) { return p.xy / p.w * screen; }
  void main() {
    mat4 all = projectionMatrix * modelViewMatrix;
    vec4 here = all * vec4(position, 1.0);
    vec2 a = pixel(all * vec4(before, 1.0)), b = pixel(here), c = pixel(all * vec4(after, 1.0));
    vec2 along = c - a;
    if (dot(along, along) < 1e-6) along = vec2(1.0, 0.0);
    vec2 across = normalize(vec2(-along.y, along.x));
    here.xy += across * side * width / screen * here.w;
    vTime = time;
    vSide = side;
    gl_Position = here;
  }`;

const FRAGMENT = /* glsl */ `
  uniform vec3 color;
  uniform float now, tail, faint;
  varying float vTime, vSide;
  void main() {
    float age = now - vTime;
    float fresh = age < 0.0 ? 0.0 : 1.0 - smoothstep(0.0, tail, age);
    float edge = 1.0 - smoothstep(0.55, 1.0, abs(vSide));
    gl_FragColor = vec4(color, edge * max(faint, 0.92 * fresh));
    #include <colorspace_fragment>
  }`;

export class Trails {
  constructor(scene, motion, parent) {
    this.screen = new Vector2(1, 1);
    this.items = motion.time.length < 2 ? [] : scene.traces.map((trace) => {
      const { geometry, span } = ribbon(trace, motion);
      const uniforms = {
        screen: { value: this.screen }, width: { value: 4.4 }, color: { value: new Color(trace.color) },
        now: { value: 0 }, tail: { value: span }, faint: { value: 0.26 },
      };
      const mesh = new Mesh(geometry, new ShaderMaterial({ vertexShader: VERTEX, fragmentShader: FRAGMENT, uniforms, transparent: true, depthWrite: false, side: 2 }));
      mesh.frustumCulled = false;
      parent.add(mesh);
      return mesh;
    });
    this.start = motion.start;
  }

  resize(width, height) {
    this.screen.set(width, height);
  }

  update(t) {
    for (const mesh of this.items) mesh.material.uniforms.now.value = t - this.start;
  }

  show(on) {
    for (const mesh of this.items) mesh.visible = on;
  }
}

function ribbon(trace, motion) {
  const total = motion.time.length;
  const span = motion.end - motion.start;
  // Between coarse time points the path is filled in as the bodies go; fine ones are thinned out.
  const count = Math.min(MOST, Math.max(total, Math.min(8 * (total - 1) + 1, 1600)));
  const path = new Float32Array(3 * count);
  const times = new Float32Array(count);
  const [p, e] = [[0, 0, 0], [1, 0, 0, 0]];
  for (let k = 0; k < count; k++) {
    const t = count === total ? motion.time[k] : motion.start + (span * k) / (count - 1);
    motion.pose(trace.body, t, p, e);
    const arm = rotated(e, 0, trace.at);
    for (let i = 0; i < 3; i++) path[3 * k + i] = p[i] + arm[i];
    times[k] = t - motion.start;
  }
  const names = { position: 0, before: -1, after: 1 };
  const geometry = new BufferGeometry();
  for (const [name, shift] of Object.entries(names)) {
    const values = new Float32Array(6 * count);
    for (let k = 0; k < count; k++) {
      const from = Math.min(count - 1, Math.max(0, k + shift));
      for (let i = 0; i < 3; i++) values[6 * k + i] = values[6 * k + 3 + i] = path[3 * from + i];
    }
    geometry.setAttribute(name, new BufferAttribute(values, 3));
  }
  const [sides, twice, index] = [new Float32Array(2 * count), new Float32Array(2 * count), new Uint32Array(6 * (count - 1))];
  for (let k = 0; k < count; k++) {
    sides.set([-1, 1], 2 * k);
    twice.set([times[k], times[k]], 2 * k);
    if (k) index.set([2 * k - 2, 2 * k - 1, 2 * k, 2 * k, 2 * k - 1, 2 * k + 1], 6 * (k - 1));
  }
  geometry.setAttribute("side", new BufferAttribute(sides, 1));
  geometry.setAttribute("time", new BufferAttribute(twice, 1));
  geometry.setIndex(new BufferAttribute(index, 1));
  return { geometry, span: 0.35 * span };
}
