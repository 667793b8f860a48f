// Plots of a point's motion over time, drawn as SVG, with a cursor at the current time.

import { floats } from "./data.js";
import { number, ticks } from "./format.js";
import { shownIn } from "./units.js";

const QUANTITIES = [
  { key: "position", title: "Position", short: "Pos", unit: "m" },
  { key: "velocity", title: "Velocity", short: "Vel", unit: "m/s" },
  { key: "acceleration", title: "Acceleration", short: "Acc", unit: "m/s^2" },
];
const AXES = ["x", "y", "z"];
const [LEFT, RIGHT, TOP, BOTTOM] = [56, 12, 8, 22];
const SINGLE = 400; // pixels of height under which one plot is shown at a time

export class Plots {
  // `seek(t)` is called when the reader points at a time.
  constructor(scene, motion, seek) {
    this.motion = motion;
    this.seek = seek;
    this.panel = document.getElementById("plots");
    this.place = document.getElementById("place");
    this.places = [
      ...scene.traces.map((trace) => ({ name: `${trace.name} (trace)`, body: trace.body, at: trace.at })),
      ...scene.bodies.map((body, k) => ({ name: body.name, body: k, at: [0, 0, 0] })),
      ...(scene.joints ?? []).map((joint) => ({ name: `${joint.name} (joint)`, joint })),
      ...(scene.loads ?? []).map((load) => ({ name: `${load.name} (load)`, load })),
    ];
    for (const [k, place] of this.places.entries()) {
      const option = document.createElement("option");
      option.value = String(k);
      option.textContent = place.name;
      this.place.append(option);
    }
    const shown = shownIn(scene);
    this.charts = QUANTITIES.map((quantity) => new Chart(quantity, motion, seek, quantity.key === "position" ? 1e-6 * scene.size : 1e-9, shown));
    document.getElementById("charts").append(...this.charts.map((chart) => chart.element));
    this.chosen = 0;
    const tabs = document.getElementById("tabs");
    this.tabs = QUANTITIES.map((quantity, k) => {
      const tab = document.createElement("button");
      tab.type = "button";
      tab.textContent = quantity.short;
      tab.setAttribute("aria-label", quantity.title);
      tab.addEventListener("click", () => this.choose(k));
      return tab;
    });
    tabs.append(...this.tabs);
    this.place.value = String(this.first(scene));
    this.place.addEventListener("change", () => this.load());
    new ResizeObserver(() => this.layout()).observe(this.panel);
    // A heading that needs another line leaves its drawing less room.
    const fit = new ResizeObserver(() => this.layout());
    for (const chart of this.charts) fit.observe(chart.drawing);
    this.load();
    this.choose(0);
  }

  // What is shown first: something that moves, a trace before a body and a body before a joint.
  first(scene) {
    const floor = 1e-6 * scene.size;
    const trace = scene.traces.findIndex(({ body, at }) => moves(this.motion.history(body, at).position, 3, floor));
    if (trace >= 0) return trace;
    const body = busiest(this.motion, floor);
    if (body >= 0) return scene.traces.length + body;
    const joint = this.places.findIndex((place) => place.joint && moves(jointHistory(place.joint).position, 1, 1e-9));
    return Math.max(0, joint);
  }

  load() {
    const place = this.places[Number(this.place.value)];
    if (!place) return;
    const history = place.load ? {} : place.joint ? jointHistory(place.joint) : this.motion.history(place.body, place.at);
    for (const [k, chart] of this.charts.entries()) {
      const sheet = place.load?.charts[k];
      chart.absent = Boolean(place.load) && !sheet;
      chart.tell(place.joint, sheet);
      chart.load(sheet ? Float64Array.from(floats(sheet.values)) : history[chart.quantity.key], place.name);
    }
    this.layout();
  }

  choose(k) {
    this.chosen = k;
    for (const [j, tab] of this.tabs.entries()) tab.setAttribute("aria-pressed", String(j === k));
    this.layout();
  }

  layout() {
    const single = this.panel.clientHeight < SINGLE;
    this.panel.classList.toggle("single", single);
    const chosen = this.charts[this.chosen]?.absent ? 0 : this.chosen;
    for (const [k, chart] of this.charts.entries()) {
      this.tabs[k].hidden = Boolean(chart.absent);
      chart.element.hidden = chart.absent || (single && k !== chosen);
      if (!chart.element.hidden) chart.draw();
    }
    this.show(this.now ?? this.motion.start);
  }

  show(t) {
    this.now = t;
    for (const chart of this.charts) if (!chart.element.hidden) chart.show(t);
  }
}

// A joint's coordinate, rate and acceleration, one number at a time point.
function jointHistory(joint) {
  const all = floats(joint.values);
  const count = all.length / 3;
  const row = (k) => Float64Array.from(all.subarray(k * count, (k + 1) * count));
  return { position: row(0), velocity: row(1), acceleration: row(2) };
}

// Whether rows of so many numbers differ from the first by more than rounding.
function moves(rows, width, floor) {
  return Boolean(rows?.some((value, k) => Math.abs(value - rows[k % width]) > floor));
}

// The body that goes the longest way; −1 if none goes farther than `floor`.
function busiest(motion, floor) {
  const way = new Float64Array(motion.bodies);
  const step = Math.max(1, Math.floor(motion.time.length / 200));
  for (let k = step; k < motion.time.length; k += step) {
    for (let b = 0; b < motion.bodies; b++) {
      const [now, was] = [(k * motion.bodies + b) * 3, ((k - step) * motion.bodies + b) * 3];
      for (let i = 0; i < 3; i++) way[b] += Math.abs(motion.position[now + i] - motion.position[was + i]);
    }
  }
  const most = Math.max(0, ...way);
  return most > floor ? way.findLastIndex((x) => x >= 0.999 * most) : -1;
}

class Chart {
  // Numbers under `least` are rounding: the page keeps seven digits of positions from the scene's middle. Numbers come
  // in SI and are shown as `shown(unit)` says.
  constructor(quantity, motion, seek, least, shown) {
    this.quantity = quantity;
    this.least = least;
    this.shown = shown;
    this.clock = shown("s");
    this.motion = motion;
    this.element = html("section", "chart");
    const head = html("h2");
    this.title = html("span");
    this.unit = html("small");
    this.values = html("span", "values");
    this.readings = AXES.map((axis) => html("span", axis));
    this.values.append(...this.readings);
    head.append(this.title, this.unit, this.values);
    this.tell(null);
    this.drawing = html("div", "drawing");
    this.svg = svg("svg", { role: "img" });
    this.back = svg("g");
    this.front = svg("g");
    this.svg.append(this.back, this.front);
    this.drawing.append(this.svg);
    this.element.append(head, this.drawing);
    const point = (event) => {
      const inside = event.clientX - this.drawing.getBoundingClientRect().left - LEFT;
      const width = this.drawing.clientWidth - LEFT - RIGHT;
      const part = Math.min(1, Math.max(0, inside / width));
      seek(motion.start + part * (motion.end - motion.start));
    };
    this.drawing.addEventListener("pointerdown", (event) => {
      this.drawing.setPointerCapture(event.pointerId);
      point(event);
    });
    this.drawing.addEventListener("pointermove", (event) => {
      if (this.drawing.hasPointerCapture(event.pointerId)) point(event);
    });
  }

  // Say what is shown: three components of a point, one number of a joint, or a load with its own heading and unit.
  tell(joint, sheet) {
    const { key, title, unit } = this.quantity;
    if (sheet) {
      this.axes = sheet.single ? AXES.slice(0, 1) : AXES;
      this.heading = this.title.textContent = sheet.heading;
      this.speak({ text: sheet.unit, factor: 1 });
      this.single = sheet.single;
      for (const [k, reading] of this.readings.entries()) reading.hidden = k >= this.axes.length;
      return;
    }
    this.axes = joint ? AXES.slice(0, 1) : AXES;
    this.heading = !joint ? title : key === "position" ? (joint.turns ? "Angle" : "Shift") : key === "velocity" ? "Rate" : title;
    this.title.textContent = this.heading;
    this.speak(this.shown(joint?.turns ? unit.replace("m", "rad") : unit));
    this.single = Boolean(joint);
    for (const [k, reading] of this.readings.entries()) reading.hidden = k >= this.axes.length;
  }

  speak({ text, factor }) {
    this.unit.textContent = text.replaceAll("^2", "²").replaceAll("^3", "³");
    this.factor = factor;
    this.floor = this.least * factor;
  }

  // Values are in SI, but for those of loads, which come as they are shown.
  load(values, name) {
    this.series = values;
    this.svg.setAttribute("aria-label", `${this.heading} of ${name} over time`);
    let [low, high] = [Infinity, -Infinity];
    for (const [k, value] of (values ?? []).entries()) {
      const x = Math.abs(value * this.factor) < this.floor ? 0 : value * this.factor;
      values[k] = x;
      if (x < low) low = x;
      if (x > high) high = x;
    }
    if (!(low <= high)) [low, high] = [-1, 1];
    // What is constant up to rounding is drawn as a line in the middle.
    const least = Math.max(1e-6 * Math.max(Math.abs(low), Math.abs(high)), this.floor);
    if (high - low < least) {
      const room = Math.abs(low) < 1e-9 ? 1 : 0.5 * Math.abs(low);
      [low, high] = [low - room, high + room];
    }
    const room = 0.06 * (high - low);
    this.range = [low - room, high + room];
  }

  x(t) {
    const span = this.motion.end - this.motion.start;
    return LEFT + (this.width - LEFT - RIGHT) * (span > 0 ? (t - this.motion.start) / span : 0.5);
  }

  y(value) {
    const [low, high] = this.range;
    return this.height - BOTTOM - ((this.height - TOP - BOTTOM) * (value - low)) / (high - low);
  }

  draw() {
    this.width = this.drawing.clientWidth;
    this.height = this.drawing.clientHeight;
    this.back.replaceChildren();
    this.front.replaceChildren();
    if (this.width < LEFT + 40 || this.height < TOP + BOTTOM + 20) return;
    if (!this.series) {
      this.back.append(label("not in this solution", this.width / 2, this.height / 2, "middle"));
      return;
    }
    const [left, right, floor] = [LEFT, this.width - RIGHT, this.height - BOTTOM];
    for (const { value, text } of ticks(...this.range, Math.max(2, Math.min(7, (floor - TOP) / 27)))) {
      const y = Math.round(this.y(value)) + 0.5;
      this.back.append(svg("line", { class: value === 0 ? "zero" : "rule", x1: left, x2: right, y1: y, y2: y }));
      this.back.append(label(text, left - 7, y + 3.5, "end"));
    }
    const { factor, text: second } = this.clock;
    const [start, end] = [this.motion.start * factor, this.motion.end * factor];
    const marks = end > start ? ticks(start, end, Math.max(2, (right - left) / 52)) : [];
    for (const [k, { value, text }] of marks.entries()) {
      const x = Math.round(this.x(value / factor)) + 0.5;
      this.back.append(svg("line", { class: "rule", x1: x, x2: x, y1: TOP, y2: floor }));
      const last = k === marks.length - 1;
      const near = x > right - 14;
      this.back.append(label(last ? `${text} ${second}` : text, near ? Math.min(x + 8, this.width - 2) : x, floor + 15, near ? "end" : "middle"));
    }
    for (const [axis, name] of this.axes.entries()) {
      this.back.append(svg("path", { class: `curve ${name}`, d: this.path(axis) }));
    }
    this.cursor = svg("line", { class: "cursor", y1: TOP, y2: floor });
    this.dots = this.axes.map((name) => svg("circle", { class: `dot ${name}`, r: 3.4 }));
    this.front.append(this.cursor, ...this.dots);
  }

  // One path of a component; where points crowd, the lowest and highest of each pixel.
  path(axis) {
    const { time } = this.motion;
    const pieces = [];
    let pen = false;
    const put = (k) => {
      const value = this.series[this.axes.length * k + axis];
      if (!Number.isFinite(value)) {
        pen = false;
        return;
      }
      pieces.push(`${pen ? "L" : "M"}${this.x(time[k]).toFixed(2)} ${this.y(value).toFixed(2)}`);
      pen = true;
    };
    const bins = Math.ceil(this.width);
    if (time.length <= 3 * bins) {
      for (let k = 0; k < time.length; k++) put(k);
      return pieces.join("");
    }
    const per = time.length / bins;
    for (let bin = 0; bin < bins; bin++) {
      const [first, last] = [Math.floor(bin * per), Math.min(time.length - 1, Math.floor((bin + 1) * per))];
      let [low, high] = [first, first];
      for (let k = first; k <= last; k++) {
        if (this.series[this.axes.length * k + axis] < this.series[this.axes.length * low + axis]) low = k;
        if (this.series[this.axes.length * k + axis] > this.series[this.axes.length * high + axis]) high = k;
      }
      put(Math.min(low, high));
      if (low !== high) put(Math.max(low, high));
    }
    put(time.length - 1);
    return pieces.join("");
  }

  // The value of a component at t, straight between time points.
  value(axis, t) {
    const { time } = this.motion;
    const k = this.motion.before(t);
    const here = this.series[this.axes.length * k + axis];
    if (k + 1 >= time.length || !(time[k + 1] > time[k])) return here;
    const s = (t - time[k]) / (time[k + 1] - time[k]);
    return here + s * (this.series[this.axes.length * (k + 1) + axis] - here);
  }

  show(t) {
    if (!this.series) return;
    const x = this.x(t);
    for (const [axis, name] of this.axes.entries()) {
      const value = this.value(axis, t);
      this.readings[axis].textContent = `${this.single ? "" : `${name} `}${reading(this.rounded(value))}`;
      if (this.cursor && Number.isFinite(value)) {
        this.dots[axis].setAttribute("cx", x.toFixed(2));
        this.dots[axis].setAttribute("cy", this.y(value).toFixed(2));
      }
    }
    if (!this.cursor) return;
    this.cursor.setAttribute("x1", x.toFixed(2));
    this.cursor.setAttribute("x2", x.toFixed(2));
  }

  // What is nothing beside the plot's range is shown as nothing: the page's numbers have seven digits.
  rounded(value) {
    return Math.abs(value) < 1e-6 * Math.max(Math.abs(this.range[0]), Math.abs(this.range[1])) ? 0 : value;
  }
}

// Short enough for three in a line.
function reading(value) {
  return number(value, Math.abs(value) < 0.01 ? 3 : 4);
}

function html(tag, kind = "", text = "") {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  if (text) made.textContent = text;
  return made;
}

function svg(tag, attributes = {}) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

function label(text, x, y, anchor) {
  const made = svg("text", { x, y, "text-anchor": anchor });
  made.textContent = text;
  return made;
}
