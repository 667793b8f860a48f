// The page comes alive here: the scene is read, the view and the plots are made, and time runs.

import { Clock, listenToKeys, toggle } from "./controls.js";
import { readScene } from "./data.js";
import { Motion } from "./motion.js";
import { Plots } from "./plots.js";
import { Stage } from "./stage.js";

const element = (id) => document.getElementById(id);
const page = (window.linkwright = { ready: false, error: "", webgl: false });

function tell(text) {
  page.error = text;
  element("message").textContent = text;
  element("message").hidden = false;
}

function makeStage(scene, motion) {
  try {
    const stage = new Stage(scene, motion);
    page.webgl = true;
    return stage;
  } catch (error) {
    console.info("No 3D view:", error);
    tell("This browser does not offer WebGL, so the 3D view is left out. The plots work without it.");
    element("view").hidden = true;
    for (const id of ["reset", "joints", "triads", "trails", "names"]) element(id).disabled = true;
    return null;
  }
}

function start() {
  const scene = readScene();
  const motion = new Motion(scene);
  for (const note of scene.notes) {
    const line = document.createElement("p");
    line.textContent = note;
    line.title = note;
    element("notes").append(line);
  }
  let plots = null;
  let stage = null;
  const clock = new Clock(scene, motion, (t) => {
    stage?.pose(t);
    plots?.show(t);
  });
  plots = new Plots(scene, motion, (t) => clock.seek(t));
  toggle("panel", true, (on) => {
    element("app").classList.toggle("wide", !on);
    element("panel").setAttribute("aria-expanded", String(on));
  });
  stage = makeStage(scene, motion);
  if (stage) {
    element("reset").addEventListener("click", () => stage.frame());
    toggle("joints", scene.show.joints, (on) => stage.showJoints(on));
    toggle("triads", false, (on) => stage.showTriads(on));
    toggle("trails", true, (on) => stage.showTrails(on));
    toggle("names", false, (on) => stage.showNames(on));
    element("trails").disabled = !stage.trails.items.length;
    element("view").addEventListener("webglcontextlost", () => tell("The 3D view was lost; reload the page to have it back."));
  }
  listenToKeys(clock);

  Object.assign(page, {
    setTime: (t) => clock.seek(t),
    play: () => clock.play(),
    pause: () => clock.pause(),
    // Bodies as they are drawn now: origin in ground axes, Euler parameters e0..e3.
    poses: () =>
      scene.bodies.map((body, k) => {
        const [p, e] = [[0, 0, 0], [1, 0, 0, 0]];
        if (stage) {
          const { position, quaternion } = stage.groups[k + 1];
          return { name: body.name, position: position.toArray().map((x, i) => x + scene.origin[i]), orientation: [quaternion.w, quaternion.x, quaternion.y, quaternion.z] };
        }
        motion.pose(k, clock.t, p, e);
        return { name: body.name, position: p.map((x, i) => x + scene.origin[i]), orientation: e };
      }),
  });
  Object.defineProperties(page, {
    time: { get: () => clock.t },
    playing: { get: () => clock.playing },
    drawn: { get: () => stage?.drawn ?? 0 },
    eye: { get: () => stage?.camera.position.toArray() ?? null },
  });
  page.ready = true;
  if (!window.matchMedia("(prefers-reduced-motion: reduce)").matches) clock.play();
}

try {
  start();
} catch (error) {
  console.error(error);
  tell(`This page cannot show its motion: ${error.message}`);
}
