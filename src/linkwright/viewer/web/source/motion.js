// Where bodies and their points are at any time: cubic between time points where rates are known, else straight.

import { doubles, floats } from "./data.js";

const TURN = 1.2; // radians between two time points beyond which a cubic is not trusted

export class Motion {
  constructor(scene) {
    const data = scene.data;
    this.time = doubles(data.time);
    this.bodies = scene.bodies.length;
    this.origin = scene.origin;
    for (const name of ["position", "orientation", "velocity", "angular_velocity", "acceleration", "angular_acceleration"]) {
      this[name] = data[name] === undefined ? null : floats(data[name]);
    }
  }

  get start() {
    return this.time[0];
  }

  get end() {
    return this.time[this.time.length - 1];
  }

  // The last time point that is not after t.
  before(t) {
    const time = this.time;
    let low = 0;
    let high = time.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (time[middle] <= t) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  // Write a body's position (from the scene's origin) and Euler parameters at t into p and e.
  pose(body, t, p, e) {
    const k = this.before(t);
    const at = (k * this.bodies + body) * 3;
    const turn = (k * this.bodies + body) * 4;
    const { position: x, orientation: q, velocity: v, angular_velocity: w } = this;
    const step = k + 1 < this.time.length ? this.time[k + 1] - this.time[k] : 0;
    const s = step > 0 ? Math.min(1, (t - this.time[k]) / step) : 0;
    if (s <= 0) {
      for (let i = 0; i < 3; i++) p[i] = x[at + i];
      for (let i = 0; i < 4; i++) e[i] = q[turn + i];
      return;
    }
    const next = at + this.bodies * 3;
    const turned = turn + this.bodies * 4;
    let same = 0;
    for (let i = 0; i < 4; i++) same += q[turn + i] * q[turned + i];
    const sign = same < 0 ? -1 : 1;
    const angle = 2 * Math.acos(Math.min(1, Math.abs(same)));
    const cubic = v !== null && w !== null && angle < TURN && this.#known(at, next) && this.#gentle(at, next, step);
    const s2 = s * s;
    const s3 = s2 * s;
    const [h00, h10, h01, h11] = [2 * s3 - 3 * s2 + 1, (s3 - 2 * s2 + s) * step, 3 * s2 - 2 * s3, (s3 - s2) * step];
    if (cubic) {
      for (let i = 0; i < 3; i++) p[i] = h00 * x[at + i] + h10 * v[at + i] + h01 * x[next + i] + h11 * v[next + i];
      const a = rate(w, at, q, turn);
      const b = rate(w, next, q, turned);
      for (let i = 0; i < 4; i++) e[i] = h00 * q[turn + i] + h10 * a[i] + sign * (h01 * q[turned + i] + h11 * b[i]);
    } else {
      for (let i = 0; i < 3; i++) p[i] = (1 - s) * x[at + i] + s * x[next + i];
      const half = angle / 2;
      const sine = Math.sin(half);
      const [from, to] = sine > 1e-6 ? [Math.sin((1 - s) * half) / sine, Math.sin(s * half) / sine] : [1 - s, s];
      for (let i = 0; i < 4; i++) e[i] = from * q[turn + i] + sign * to * q[turned + i];
    }
    const length = Math.hypot(e[0], e[1], e[2], e[3]);
    for (let i = 0; i < 4; i++) e[i] /= length;
  }

  #known(at, next) {
    for (let i = 0; i < 3; i++) {
      const sum = this.velocity[at + i] + this.velocity[next + i] + this.angular_velocity[at + i] + this.angular_velocity[next + i];
      if (!Number.isFinite(sum)) return false;
    }
    return true;
  }

  // Whether a cubic is close to what happened: between points that are far apart the rates say little.
  #gentle(at, next, step) {
    let miss = 0;
    let spin = 0;
    let way = 0;
    for (let i = 0; i < 3; i++) {
      const mean = 0.5 * step * (this.velocity[at + i] + this.velocity[next + i]);
      const gone = this.position[next + i] - this.position[at + i];
      miss += (gone - mean) ** 2;
      way += gone ** 2 + mean ** 2;
      spin += (this.angular_velocity[at + i] * step) ** 2 + (this.angular_velocity[next + i] * step) ** 2;
    }
    return miss <= 0.25 * way + 1e-30 && spin < 2 * TURN * TURN;
  }

  // A point of a body over all time points: { position, velocity, acceleration }, each (T × 3) or null.
  history(body, point) {
    const count = this.time.length;
    const found = { position: new Float64Array(3 * count), velocity: null, acceleration: null };
    const w = this.angular_velocity;
    const still = point[0] === 0 && point[1] === 0 && point[2] === 0;
    if (this.velocity && (w || still)) found.velocity = new Float64Array(3 * count);
    if (this.acceleration && ((w && this.angular_acceleration) || still)) found.acceleration = new Float64Array(3 * count);
    for (let k = 0; k < count; k++) {
      const at = (k * this.bodies + body) * 3;
      const arm = rotated(this.orientation, (k * this.bodies + body) * 4, point);
      for (let i = 0; i < 3; i++) found.position[3 * k + i] = this.position[at + i] + this.origin[i] + arm[i];
      const spin = w ? cross(w, at, arm, 0) : [0, 0, 0];
      if (found.velocity) for (let i = 0; i < 3; i++) found.velocity[3 * k + i] = this.velocity[at + i] + spin[i];
      if (found.acceleration) {
        const swing = still ? [0, 0, 0] : cross(this.angular_acceleration, at, arm, 0);
        const pull = still ? [0, 0, 0] : cross(w, at, spin, 0);
        for (let i = 0; i < 3; i++) found.acceleration[3 * k + i] = this.acceleration[at + i] + swing[i] + pull[i];
      }
    }
    return found;
  }
}

// ė = ½ (0, ω) e, for ω in ground axes.
function rate(w, at, q, turn) {
  const [wx, wy, wz] = [w[at], w[at + 1], w[at + 2]];
  const [e0, e1, e2, e3] = [q[turn], q[turn + 1], q[turn + 2], q[turn + 3]];
  return [
    0.5 * (-wx * e1 - wy * e2 - wz * e3),
    0.5 * (wx * e0 + wy * e3 - wz * e2),
    0.5 * (wy * e0 + wz * e1 - wx * e3),
    0.5 * (wz * e0 + wx * e2 - wy * e1),
  ];
}

function cross(a, i, b, j) {
  return [
    a[i + 1] * b[j + 2] - a[i + 2] * b[j + 1],
    a[i + 2] * b[j] - a[i] * b[j + 2],
    a[i] * b[j + 1] - a[i + 1] * b[j],
  ];
}

// A point turned by the Euler parameters at q[k].
export function rotated(q, k, point) {
  const e0 = q[k];
  const once = cross(q, k + 1, point, 0);
  const twice = cross(q, k + 1, once, 0);
  return [0, 1, 2].map((i) => point[i] + 2 * (e0 * once[i] + twice[i]));
}
