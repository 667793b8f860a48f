// The time bar, the view's buttons and the keys; it holds what time it is and whether time runs.

import { decimals } from "./format.js";
import { shownIn } from "./units.js";

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10];
const PLAY = "M8 5.5v13l10.5-6.5z";
const PAUSE = "M7.5 5.5h3v13h-3zM13.5 5.5h3v13h-3z";
const element = (id) => document.getElementById(id);

export class Clock {
  // `changed(t)` is called whenever the time is another one.
  constructor(scene, motion, changed) {
    this.motion = motion;
    this.unit = shownIn(scene)("s");
    this.changed = changed;
    this.t = motion.start;
    this.playing = false;
    this.still = !(motion.end > motion.start);
    this.places = decimals((motion.end - motion.start) * this.unit.factor);
    const slider = element("slider");
    slider.min = String(motion.start);
    slider.max = String(this.still ? motion.start + 1 : motion.end);
    slider.addEventListener("input", () => this.seek(Number(slider.value)));
    this.#speeds();
    element("play").addEventListener("click", () => this.toggle());
    element("back").addEventListener("click", () => this.step(-1));
    element("forth").addEventListener("click", () => this.step(1));
    element("loop").addEventListener("click", () => press("loop", !pressed("loop")));
    for (const id of ["play", "back", "forth", "slider", "speed", "loop"]) element(id).disabled = this.still;
    this.show();
  }

  // Real time where that suits; else powers of ten of it, so that the whole takes seconds.
  #speeds() {
    const span = this.motion.end - this.motion.start;
    const base = span > 0 && (span < 0.5 || span > 150) ? 10 ** Math.round(Math.log10(span / 6)) : 1;
    const select = element("speed");
    for (const factor of SPEEDS) {
      const option = document.createElement("option");
      option.value = String(base * factor);
      option.textContent = `${Number((base * factor).toPrecision(3))}×`;
      option.selected = factor === 1;
      select.append(option);
    }
  }

  get speed() {
    return Number(element("speed").value);
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.still || this.playing) return;
    if (this.t >= this.motion.end) this.go(this.motion.start);
    this.playing = true;
    this.last = null;
    this.#button();
    const tick = (now) => {
      if (!this.playing) return;
      // A tab that was hidden goes on from where it was.
      const passed = this.last === null ? 0 : Math.min(0.1, (now - this.last) / 1000);
      this.last = now;
      this.#advance(passed * this.speed);
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  #advance(by) {
    let t = this.t + by;
    const { start, end } = this.motion;
    if (t >= end) {
      if (pressed("loop")) t = this.t < end ? end : start + ((t - start) % (end - start));
      else {
        t = end;
        this.pause();
      }
    }
    this.go(t);
  }

  pause() {
    this.playing = false;
    this.#button();
  }

  #button() {
    element("play-icon").setAttribute("d", this.playing ? PAUSE : PLAY);
    element("play").setAttribute("aria-label", this.playing ? "Pause" : "Play");
  }

  // To a time chosen by hand.
  seek(t) {
    this.pause();
    this.go(t);
  }

  step(by) {
    const k = this.motion.before(this.t);
    const between = this.t > this.motion.time[k];
    const to = by < 0 && between ? k : k + by;
    this.seek(this.motion.time[Math.min(this.motion.time.length - 1, Math.max(0, to))]);
  }

  go(t) {
    this.t = Math.min(this.motion.end, Math.max(this.motion.start, t));
    this.show();
    this.changed(this.t);
  }

  show() {
    const { start, end } = this.motion;
    const slider = element("slider");
    slider.value = String(this.t);
    slider.style.setProperty("--done", `${this.still ? 0 : (100 * (this.t - start)) / (end - start)}%`);
    const { text, factor } = this.unit;
    const now = (this.t * factor).toFixed(this.places).replace("-", "−");
    slider.setAttribute("aria-valuetext", `${now} ${text === "s" ? "seconds" : text}`);
    const rest = document.createElement("small");
    rest.textContent = this.still ? ` ${text}` : ` / ${(end * factor).toFixed(this.places)} ${text}`;
    element("clock").replaceChildren(now, rest);
  }
}

export const pressed = (id) => element(id).getAttribute("aria-pressed") === "true";

export function press(id, on) {
  element(id).setAttribute("aria-pressed", String(on));
}

// A button that is on or off; `changed(on)` is called now and at every change.
export function toggle(id, on, changed) {
  press(id, on);
  element(id).addEventListener("click", () => {
    press(id, !pressed(id));
    changed(pressed(id));
  });
  changed(on);
}

const KEYS = { r: "reset", j: "joints", t: "triads", l: "trails", n: "names", p: "panel" };

export function listenToKeys(clock) {
  // After a click by mouse or finger the space key is for the time again, not for the button.
  document.addEventListener("click", (event) => {
    if (event.detail > 0) event.target.closest?.("button")?.blur();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const on = event.target.closest?.("select, button");
    if (event.key === " " && !on) clock.toggle();
    else if (event.key === "ArrowLeft" && on?.tagName !== "SELECT") clock.step(-1);
    else if (event.key === "ArrowRight" && on?.tagName !== "SELECT") clock.step(1);
    else if (event.key === "Home" && on?.tagName !== "SELECT") clock.seek(clock.motion.start);
    else if (event.key === "End" && on?.tagName !== "SELECT") clock.seek(clock.motion.end);
    else if (KEYS[event.key] && on?.tagName !== "SELECT" && !element(KEYS[event.key]).disabled) element(KEYS[event.key]).click();
    else return;
    event.preventDefault();
  });
}
