"""Random MJCF models: trees of bodies with every joint, geom, orientation and default that the reader knows."""

import numpy as np

_SEQUENCES = ("xyz", "zyx", "XYZ", "zxz", "xYz")


class Writer:
    """Writes one model; the same for the same seed."""

    def __init__(self, seed: int, bodies: int = 6) -> None:
        self.rng = np.random.default_rng(seed)
        self.left = bodies
        self.joints: list[tuple[str, str]] = []
        self.bodies = 0

    def numbers(self, *values: float) -> str:
        return " ".join(f"{x:.6g}" for x in values)

    def vector(self, n: int = 3, size: float = 1.0) -> str:
        return self.numbers(*(self.rng.normal(size=n) * size))

    def one_of(self, *choices: str) -> str:
        return choices[int(self.rng.integers(len(choices)))]

    def orientation(self) -> str:
        key = self.one_of("quat", "axisangle", "xyaxes", "zaxis", "euler", "")
        n = {"quat": 4, "axisangle": 4, "xyaxes": 6, "zaxis": 3, "euler": 3}.get(key, 0)
        return f'{key}="{self.vector(n)}"' if key else ""

    def geom(self) -> str:
        kind = self.one_of("sphere", "capsule", "cylinder", "ellipsoid", "box", "mesh")
        size = f'size="{self.numbers(*self.rng.uniform(0.05, 0.2, 3))}"'
        place = f'pos="{self.vector(size=0.2)}" {self.orientation()}'
        if kind in ("capsule", "cylinder", "ellipsoid", "box") and self.rng.random() < 0.4:
            place = f'fromto="{self.vector(6, 0.3)}"'
        if kind == "mesh":
            size = f'mesh="{self.one_of("plain", "skewed")}"'
        weight = self.one_of("", 'density="300"', 'mass="0.7"', 'class="heavy"', 'group="4" mass="50"')
        return f'<geom type="{kind}" {size} {place} {weight}/>'

    def joint(self, kind: str) -> str:
        name = f"j{len(self.joints)}"
        self.joints.append((name, kind))
        rng = self.rng
        text = f'<joint name="{name}" type="{kind}" pos="{self.vector(size=0.2)}" axis="{self.vector()}"'
        text += f' armature="{rng.uniform(0.0, 0.2):.3g}" damping="{rng.uniform(0.0, 0.5):.3g}"'
        if kind in ("hinge", "slide"):
            text += self.one_of("", f' stiffness="{rng.uniform(1, 5):.3g}"', ' class="sprung"', ' frictionloss="0.3"')
            text += self.one_of("", f' ref="{rng.uniform(-0.5, 0.5):.3g}"', ' springref="0.2" range="-1 1"')
        return text + "/>"

    def body(self, top: bool) -> str:
        self.left -= 1
        self.bodies += 1
        name = f'name="b{self.bodies}"' if self.rng.random() < 0.8 else ""
        inner = []
        free = top and self.rng.random() < 0.5
        if free:
            self.joints.append((f"j{len(self.joints)}", "free"))
            inner.append(f'<joint name="{self.joints[-1][0]}" type="free" armature="0.3" damping="0.2"/>')
        else:
            kinds = self.one_of("hinge", "slide", "ball", "slide hinge hinge", "slide ball", "hinge slide", "")
            inner += [self.joint(kind) for kind in kinds.split()]
        inner += [self.geom() for _ in range(int(self.rng.integers(1, 3)))] + [self.geom().replace('group="4"', "")]
        if self.rng.random() < 0.3:
            moments = f'diaginertia="0.02 0.03 0.04" {self.orientation()}'
            inner.append(f'<inertial pos="{self.vector(size=0.1)}" mass="1.3" {moments}/>')
        while self.left > 0 and self.rng.random() < 0.6:
            child = self.body(False)
            if self.rng.random() < 0.3:
                child = f'<frame pos="{self.vector(size=0.2)}" {self.orientation()}>{child}</frame>'
            inner.append(child)
        inner.append(f'<site name="s{self.bodies}" pos="{self.vector(size=0.2)}"/>' if top else "")
        more = self.one_of("", 'childclass="heavy"') + " " + self.one_of("", 'gravcomp="0.4"')
        place = f'pos="{self.vector(size=0.5)}" {self.orientation()}'
        return f"<body {name} {place} {more}>{''.join(inner)}</body>"

    def model(self) -> str:
        trees = []
        while self.left > 0:
            trees.append(self.body(True))
        scalars = [name for name, kind in self.joints if kind in ("hinge", "slide")]
        tendon, actuators = "", ""
        if len(scalars) >= 2:
            a, b = scalars[0], scalars[-1]
            lengths = self.one_of("", 'springlength="0.1"', 'springlength="0.1 0.4"')
            tendon = f'<tendon><fixed name="t" stiffness="3" damping="0.2" {lengths}>'
            tendon += f'<joint joint="{a}" coef="0.7"/><joint joint="{b}" coef="-1.2"/></fixed></tendon>'
            actuators = f'<actuator><position name="p" joint="{a}" kp="30" kv="2" gear="1.5" ctrlrange="-1 0.2"/>'
            actuators += f'<motor joint="{b}" gear="3" forcerange="-1 1"/><velocity joint="{a}" kv="2"/>'
            law = 'gaintype="affine" gainprm="2 0.1 0.2" biastype="affine" biasprm="1 2 3"'
            actuators += f'<general joint="{b}" {law}/>'
            actuators += '<motor tendon="t" gear="2"/></actuator>'
        settings = self.one_of("", 'angle="radian"') + f' eulerseq="{self.one_of(*_SEQUENCES)}"'
        return f"""<mujoco model="random">
<compiler {settings} inertiagrouprange="0 3" {self.one_of("", 'inertiafromgeom="true"', 'settotalmass="7"')}/>
<option gravity="{self.vector(size=5.0)}"/>
<default><geom density="800"/><joint damping="0.1"/>
  <default class="heavy"><geom density="2000"/><joint armature="0.4"/>
    <default class="sprung"><joint stiffness="4" springref="0.1"/></default></default></default>
<asset><mesh name="plain" vertex="0 0 0 .2 0 0 0 .3 0 0 0 .1"/>
  <mesh name="skewed" scale=".1 .2 .3" inertia="exact" vertex="0 0 0 1 0 0 0 1 0 0 0 1 1 1 1"
   face="0 2 1 0 1 3 0 3 2 1 2 4 1 4 3 2 3 4"/></asset>
<worldbody>{"".join(trees)}</worldbody>{tendon}{actuators}</mujoco>"""
