// The floor below a mechanism, or the board behind a planar one: faint graph paper that takes the shadow.

import { Color, Mesh, PlaneGeometry, ShaderMaterial, ShadowMaterial, Vector2 } from "three";
import { niceStep } from "./format.js";

const VERTEX = /* glsl */ `
  uniform float size;
  uniform vec2 offset;
  varying vec2 vPlane, vPaper;
  void main() {
    vPlane = position.xy / size;
    vPaper = position.xy + offset;
    gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
  }`;

const FRAGMENT = /* glsl */ `
  uniform vec3 color;
  uniform float cell, strength;
  varying vec2 vPlane, vPaper;
  float lines(float step) {
    vec2 at = vPaper / step;
    vec2 width = fwidth(at);
    vec2 near = abs(fract(at - 0.5) - 0.5) / width;
    vec2 seen = (1.0 - smoothstep(0.3, 1.3, near)) * (1.0 - smoothstep(0.15, 0.45, width));
    return max(seen.x, seen.y);
  }
  void main() {
    float fade = 1.0 - smoothstep(0.12, 0.5, length(vPlane));
    float ink = max(lines(cell) * 0.42, lines(5.0 * cell));
    gl_FragColor = vec4(color, ink * fade * strength);
    #include <colorspace_fragment>
  }`;

export class Floor {
  // `frame` has the plane's axes: x, y along it and z out of it, as columns; the group is in the scene's own origin.
  constructor({ size, cell, offset }, parent) {
    const geometry = new PlaneGeometry(size, size);
    const uniforms = {
      size: { value: size }, cell: { value: cell }, offset: { value: new Vector2(...offset) },
      color: { value: new Color() }, strength: { value: 1 },
    };
    this.paper = new Mesh(geometry, new ShaderMaterial({ vertexShader: VERTEX, fragmentShader: FRAGMENT, uniforms, transparent: true, depthWrite: false }));
    this.paper.renderOrder = -2;
    this.shadow = new Mesh(geometry, new ShadowMaterial({ color: "#0b1320", opacity: 0.2 }));
    this.shadow.material.depthWrite = false;
    this.shadow.receiveShadow = true;
    this.shadow.renderOrder = -1;
    parent.add(this.paper, this.shadow);
  }

  paint(theme) {
    const { color, strength } = this.paper.material.uniforms;
    color.value.set(theme.dark ? "#8ea0b4" : "#51657c");
    strength.value = theme.dark ? 0.24 : 0.22;
    this.shadow.material.opacity = theme.dark ? 0.5 : 0.2;
  }
}

// The small squares of the paper; every fifth line is stronger.
export const cellOf = (size) => niceStep(size, 24);
