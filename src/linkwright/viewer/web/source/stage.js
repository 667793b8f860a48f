// The 3D view: renderer, light, camera, and what stands in it. It draws only when something changed.

import {
  Color, DirectionalLight, Group, HemisphereLight, Mesh, NeutralToneMapping, PCFShadowMap, PerspectiveCamera, PMREMGenerator, Quaternion, Scene,
  Matrix4, Vector3, VSMShadowMap, WebGLRenderer,
} from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { RoomEnvironment } from "three/addons/environments/RoomEnvironment.js";
import { axesGeometry, material, Solids } from "./bodies.js";
import { cellOf, Floor } from "./floor.js";
import { Labels } from "./labels.js";
import { Links } from "./links.js";
import { onTheme, theme } from "./theme.js";
import { Trails } from "./trails.js";

const MARGIN = 18; // pixels at each side
const TILT = { planar: [0.2, 0.13], spatial: [0, 0.34] }; // radians to the right and up

export class Stage {
  constructor(scene, motion) {
    this.data = scene;
    this.motion = motion;
    this.canvas = document.getElementById("view");
    this.renderer = new WebGLRenderer({ canvas: this.canvas, antialias: true, alpha: true });
    // Where the processor draws, light is simpler; #fine and #plain in the page's address choose by hand.
    this.fine = { "#fine": true, "#plain": false }[window.location.hash] ?? !drawnByProcessor(this.renderer);
    this.renderer.setPixelRatio(Math.min(window.devicePixelRatio || 1, this.fine ? 2.5 : 1.5));
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = this.fine ? VSMShadowMap : PCFShadowMap;
    this.renderer.shadowMap.autoUpdate = false;
    this.renderer.toneMapping = NeutralToneMapping;
    this.world = new Scene();
    const [right, up, toward] = scene.view.axes.map((axis) => new Vector3(...axis));
    Object.assign(this, { right, up, toward, half: new Vector3(...scene.view.half) });
    this.reach = Math.max(this.half.length(), 4 * scene.unit);
    this.camera = new PerspectiveCamera(26, 1, 0.02 * this.reach, 60 * this.reach);
    this.camera.up.copy(up);
    this.#light();
    this.#stand();
    this.#floor();
    this.controls = new OrbitControls(this.camera, this.canvas);
    this.controls.enableDamping = true;
    this.controls.dampingFactor = 0.12;
    this.controls.minDistance = 0.1 * this.reach;
    this.controls.maxDistance = 25 * this.reach;
    this.controls.addEventListener("change", () => this.ask());
    this.controls.addEventListener("start", () => (this.moved = true));
    this.paint();
    onTheme(() => this.paint());
    new ResizeObserver(() => this.resize()).observe(this.canvas.parentElement);
    this.resize();
    this.pose(motion.start);
  }

  #light() {
    if (this.fine) {
      const generator = new PMREMGenerator(this.renderer);
      this.world.environment = generator.fromScene(new RoomEnvironment(), 0.04).texture;
      generator.dispose();
      // The room is lit from its y axis; ours may be another.
      const room = new Quaternion().setFromUnitVectors(new Vector3(0, 1, 0), this.up);
      this.world.environmentRotation.setFromQuaternion(room.invert());
    }
    this.sky = new HemisphereLight("#ffffff", "#b6c0cc", 0.5);
    this.sky.position.copy(this.up);
    this.sun = new DirectionalLight("#ffffff", this.fine ? (this.data.view.planar ? 1.2 : 1.6) : 1.9);
    const [x, y, z] = this.data.view.planar ? [-0.45, 0.75, 1.5] : [-0.55, 1.5, 0.7];
    const direction = new Vector3().addScaledVector(this.right, x).addScaledVector(this.up, y).addScaledVector(this.toward, z).normalize();
    this.sun.position.copy(direction).multiplyScalar(3 * this.reach);
    this.sun.castShadow = true;
    this.sun.shadow.mapSize.setScalar(this.fine ? 2048 : 1024);
    this.#aim(direction);
    this.sun.shadow.radius = this.fine ? 5 : 2;
    this.sun.shadow.blurSamples = 16;
    this.sun.shadow.normalBias = 0.3 * this.data.unit;
    this.sun.shadow.bias = -0.0005;
    this.world.add(this.sky, this.sun, this.sun.target);
  }

  // The sun's own picture holds the box of the motion and no more, so that shadows are sharp enough.
  #aim(direction) {
    const lens = this.sun.shadow.camera;
    lens.up.copy(this.right);
    const y = this.right.clone().addScaledVector(direction, -this.right.dot(direction)).normalize();
    const x = new Vector3().crossVectors(y, direction);
    let [wide, high] = [0, 0];
    for (const corner of this.corners()) {
      wide = Math.max(wide, Math.abs(corner.dot(x)));
      high = Math.max(high, Math.abs(corner.dot(y)));
    }
    const room = 4 * this.data.unit;
    Object.assign(lens, { left: -wide - room, right: wide + room, top: high + room, bottom: -high - room, near: 1.5 * this.reach, far: 6 * this.reach });
  }

  // The corners of the box that everything stays in.
  corners() {
    return [0, 1, 2, 3, 4, 5, 6, 7].map((k) => {
      const [x, y, z] = [k & 1, k & 2, k & 4].map((bit, i) => (bit ? 1 : -1) * this.half.getComponent(i));
      return new Vector3().addScaledVector(this.right, x).addScaledVector(this.up, y).addScaledVector(this.toward, z);
    });
  }

  #stand() {
    const { data } = this;
    const solids = new Solids(data);
    const ground = solids.group(data.ground.parts);
    ground.position.set(...data.origin).negate();
    // Groups are counted from ground: body k is group k + 1.
    this.groups = [ground, ...data.bodies.map((body) => solids.group(body.parts))];
    this.world.add(...this.groups);
    this.links = new Links(data, this.motion, this.groups, this.world);
    this.trails = new Trails(data, this.motion, this.world);
    this.labels = new Labels(data, this.groups);
    this.triads = [];
  }

  // Triads are made when they are first asked for: ground's, the bodies' and those of the model.
  #makeTriads() {
    const { x, y, z } = theme();
    const geometry = axesGeometry([x, y, z]);
    const look = material();
    const add = (group, at, [e0, e1, e2, e3], length) => {
      const mesh = new Mesh(geometry, look);
      mesh.position.set(...at);
      mesh.quaternion.set(e1, e2, e3, e0);
      mesh.scale.setScalar(length);
      group.add(mesh);
      this.triads.push(mesh);
    };
    const unit = this.data.unit;
    add(this.groups[0], [0, 0, 0], [1, 0, 0, 0], 10 * unit);
    for (const group of this.groups.slice(1, 201)) add(group, [0, 0, 0], [1, 0, 0, 0], 6 * unit);
    for (const triad of this.data.triads) add(this.groups[triad.body + 1], triad.at, triad.turn, 4.8 * unit);
  }

  #floor() {
    const { planar } = this.data.view;
    const normal = planar ? this.toward : this.up;
    const along = this.right;
    const across = new Vector3().crossVectors(normal, along);
    const place = new Group();
    const at = new Vector3(...this.data.view.floor);
    place.position.copy(at).sub(new Vector3(...this.data.origin));
    place.quaternion.setFromRotationMatrix(new Matrix4().makeBasis(along, across, normal));
    const wide = 2 * Math.max(this.half.x, planar ? this.half.y : this.half.z, 0.4 * this.reach);
    this.floor = new Floor({ size: 4.2 * wide, cell: cellOf(wide), offset: [at.dot(along), at.dot(across)] }, place);
    this.world.add(place);
  }

  paint() {
    const look = theme();
    this.floor.paint(look);
    this.world.environmentIntensity = (look.dark ? 0.6 : 0.8) * (this.data.view.planar ? 0.6 : 1);
    this.sky.intensity = (look.dark ? 0.35 : 0.55) + (this.fine ? 0 : 1.5);
    this.renderer.setClearColor(new Color(look.dark ? "#0f1216" : "#eef1f4"), 0);
    this.ask();
  }

  // The default view: everything that ever happens is inside the picture and clear of what lies over it.
  frame() {
    const [aside, above] = this.data.view.planar ? TILT.planar : TILT.spatial;
    const eye = this.toward.clone().applyAxisAngle(this.up, aside);
    const side = new Vector3().crossVectors(this.up, eye).normalize();
    eye.applyAxisAngle(side, -above);
    const top = new Vector3().crossVectors(eye, side);
    const tall = Math.tan((this.camera.fov * Math.PI) / 360);
    const roomX = (this.width - 2 * MARGIN - this.covered.x) / this.width;
    const roomY = (this.height - 2 * MARGIN - this.covered.y) / this.height;
    const [slopeX, slopeY] = [tall * this.camera.aspect * roomX, tall * roomY];
    const points = this.data.view.reach.map((point) => new Vector3(...point));
    const target = this.controls.target.set(0, 0, 0);
    let distance = 0;
    // Far enough for the widest point, then centred as it is seen from there; a few rounds settle both.
    for (let round = 0; round < 6; round++) {
      const seen = points.map((point) => [side, top, eye].map((axis) => point.dot(axis) - target.dot(axis)));
      distance = Math.max(6 * this.data.unit, ...seen.map(([x, y, z]) => z + Math.max(Math.abs(x) / slopeX, Math.abs(y) / slopeY)));
      for (const [k, axis] of [side, top].entries()) {
        const slopes = seen.map((point) => point[k] / (distance - point[2]));
        target.addScaledVector(axis, 0.5 * distance * (Math.min(...slopes) + Math.max(...slopes)));
      }
    }
    // What is left of the last turn by hand must not turn the new view.
    this.controls.enableDamping = false;
    this.controls.update();
    this.camera.position.copy(eye).multiplyScalar(distance).add(target);
    this.camera.lookAt(target);
    this.controls.update();
    this.controls.enableDamping = true;
    this.moved = false;
    this.ask();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas.parentElement;
    if (!width || !height) return;
    Object.assign(this, { width, height });
    this.renderer.setSize(width, height, false);
    this.camera.aspect = width / height;
    // The middle of the picture is the middle of what the tools leave free.
    const [tools, head] = [document.querySelector(".tools"), document.querySelector(".head")];
    const column = tools.offsetHeight > 1.5 * tools.offsetWidth;
    const over = Math.min(head.offsetTop + head.offsetHeight, 0.2 * height);
    this.covered = { x: column ? width - tools.offsetLeft : 0, y: column ? over : tools.offsetTop + tools.offsetHeight };
    this.camera.setViewOffset(width, height, 0.5 * this.covered.x, -0.5 * this.covered.y, width, height);
    this.trails.resize(width, height);
    if (!this.moved) this.frame();
    this.ask();
  }

  pose(t) {
    const [p, e] = [[0, 0, 0], [1, 0, 0, 0]];
    for (let body = 0; body < this.motion.bodies; body++) {
      this.motion.pose(body, t, p, e);
      const group = this.groups[body + 1];
      group.position.set(p[0], p[1], p[2]);
      group.quaternion.set(e[1], e[2], e[3], e[0]);
    }
    this.links.update();
    this.trails.update(t);
    this.renderer.shadowMap.needsUpdate = true;
    this.ask();
  }

  showJoints(on) {
    for (const group of this.groups) if (group.userData.joints) group.userData.joints.visible = on;
    this.renderer.shadowMap.needsUpdate = true;
    this.ask();
  }

  showTriads(on) {
    if (on && !this.triads.length) this.#makeTriads();
    for (const triad of this.triads) triad.visible = on;
    this.ask();
  }

  showTrails(on) {
    this.trails.show(on);
    this.ask();
  }

  showNames(on) {
    this.labels.show(on);
    this.ask();
  }

  ask() {
    this.asked ??= requestAnimationFrame(() => {
      this.asked = undefined;
      this.draw();
    });
  }

  draw() {
    this.controls?.update();
    this.renderer.render(this.world, this.camera);
    this.labels.update(this.camera, this.width, this.height);
  }

  get drawn() {
    let count = 0;
    this.world.traverseVisible((thing) => (count += thing.isMesh ? 1 : 0));
    return count;
  }
}

function drawnByProcessor(renderer) {
  const gl = renderer.getContext();
  const known = gl.getExtension("WEBGL_debug_renderer_info");
  return /swiftshader|llvmpipe|software|basic render/i.test(known ? gl.getParameter(known.UNMASKED_RENDERER_WEBGL) : "");
}
