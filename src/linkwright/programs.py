"""From a question about a mechanism to the program that answers it: which recursion, unrolled or rolled.

`Mechanism` asks with a `Request`; the answer is a `Program`. Up to `UNROLL` links a recursion is unrolled and its
constants folded; beyond, it is rolled into loops over links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linkwright.errors import ModelError, NameNotFound
from linkwright.mechanism.description import GROUND, Description
from linkwright.mechanism.elements import JointForce
from linkwright.mechanism.expression import Expression
from linkwright.mechanism.topology import Topology, span
from linkwright.mechanism.tree import Tree
from linkwright.recipes import RECIPES, Recipe, to_body
from linkwright.recursions import elements
from linkwright.recursions.rolled import Rolled
from linkwright.recursions.traversal import Unrolled
from linkwright.spatial.algebra import Array
from linkwright.tape.build import ProgramBuilder, trace
from linkwright.tape.program import Each, Program

UNROLL = 64  # links up to which a recursion is unrolled
FORWARD_METHODS = ("articulated-body", "mass-matrix")


@dataclass(frozen=True)
class Request:
    """What is asked: a function of the mechanism and its options."""

    function: str
    method: str = ""
    wrenches: bool = False
    frame: str = ""
    reference: str = ""
    free: tuple[str, ...] = ()
    form: str = ""  # "unrolled" or "rolled" where the caller insists


class Question:
    """One request being recorded: the inputs by name, and the traversal over them."""

    def __init__(self, maker: Maker, request: Request, inputs: Mapping[str, Array]) -> None:
        self.maker, self.request, self.inputs = maker, request, dict(inputs)
        d = maker.description
        free = dict(zip(request.free, inputs["p"], strict=True)) if request.free else {}
        self.parameters: dict[str, Any] = free
        self.names = {**d.parameters, **free, "TIME": inputs.get("t", 0.0)}
        self.gravity: Array = maker.gravity(free)

    def traversal(self, only: Sequence[int] | None = None, **inputs: Array) -> Unrolled:
        """A fresh unrolled traversal over these inputs."""
        return Unrolled(self.maker.tree, {**self.inputs, **inputs}, self.parameters, only)

    def applied(self) -> bool:
        """Put the wrenches of elements and of the caller together, in body axes, as the input "wrench"."""
        maker = self.maker
        given = self.inputs.get("wrenches")
        rows: list[Any] = [np.zeros(6)] * maker.tree.n if given is None else [given[i] for i in range(maker.tree.n)]
        if maker.has_point_elements:
            t = self.traversal()
            found = elements.link_wrenches(t, maker.description.elements, maker.places(self), self.names)
            for i, wrench in found.items():
                rows[i] = rows[i] + to_body(t.links[i].record, wrench)
        elif given is None:
            return False
        self.inputs["wrench"] = rows
        return True

    def joint_forces(self) -> Array | None:
        """The generalised forces of joint laws, or None."""
        maker = self.maker
        if not any(isinstance(e, JointForce) for e in maker.description.elements):
            return None
        return elements.joint_forces(self.traversal(), maker.description.elements, maker.joint_positions, self.names)


class Maker:
    """Makes the programs of one mechanism."""

    def __init__(self, description: Description) -> None:
        self.description = description

    @cached_property
    def topology(self) -> Topology:
        return span(self.description)

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.description, self.topology)

    @cached_property
    def joint_positions(self) -> dict[str, int]:
        names = self.description.joint_names
        return {names[int(j)]: i for i, j in enumerate(self.topology.joint)}

    @property
    def has_point_elements(self) -> bool:
        return any(not isinstance(e, JointForce) for e in self.description.elements)

    @property
    def needs_time(self) -> bool:
        """Whether a force depends on TIME."""
        laws: list[Expression] = []
        for e in self.description.elements:
            laws.extend(e.laws if hasattr(e, "laws") else (e.law,))
        return any("TIME" in law.names() for law in laws)

    @property
    def has_pair_derivatives(self) -> bool:
        """Whether the recursion over pairs of bodies covers this mechanism."""
        return not self.description.elements and all(kind.steady for kind in set(self.tree.kinds))

    @property
    def coupled(self) -> bool:
        """Whether joints share coordinates."""
        return bool(self.description.mimics)

    def gravity(self, free: Mapping[str, Any]) -> Array:
        d = self.description
        entries = list(d.gravity.tolist())
        for k in range(3):
            expression = d.bindings.get(("gravity", k))
            if expression is not None and expression.names() & free.keys():
                entries[k] = expression.evaluate({**d.parameters, **free})
        return np.array(entries)

    # -- frames -----------------------------------------------------------------------------------------
    def place(self, name: str, question: Question | None = None) -> tuple[int, Array, Array]:
        """A frame by name: its link's position (−1 ground), R and p in link axes."""
        d = self.description
        body = d.body_names.find(name)
        r, p = np.eye(3), np.zeros(3)
        if body is None:
            k = d.frames.names.find(name)
            if k is not None:
                free = question.parameters if question else {}
                body = int(d.frames.body[k])
                r, p = self.tree.row("frame_r", k, free), self.tree.row("frame_p", k, free)
            elif name == d.ground_name:
                body = GROUND
            else:
                known = [*d.body_names[:2000], *d.frames.names[:2000], d.ground_name]
                raise NameNotFound("frame", name, known)
        if body == GROUND:
            return -1, r, p
        position = int(self.topology.position[body])
        record = self.tree.record(position, question.parameters if question else None)
        rl, pl = record["frame_r"], record["frame_p"]
        return position, rl.T @ r, rl.T @ (p - pl)

    def path(self, position: int) -> list[int]:
        """A position and those above it."""
        found = []
        while position >= 0:
            found.append(position)
            position = int(self.tree.parent[position])
        return found

    def places(self, question: Question) -> dict[str, tuple[int, Array, Array]]:
        """The frames that elements name."""
        names: set[str] = set()
        for e in self.description.elements:
            names.update(getattr(e, field) for field in ("first", "second", "frame") if hasattr(e, field))
        return {name: self.place(name, question) for name in names}

    def question(self, request: Request, inputs: Mapping[str, Array]) -> Question:
        """A request with its recorded inputs by name."""
        return Question(self, request, inputs)

    # -- programs -----------------------------------------------------------------------------------------
    def shapes(self, request: Request) -> dict[str, tuple[int, ...]]:
        """The inputs of a request, in order, with their shapes for one state."""
        x = self.tree.coordinates
        sizes: dict[str, tuple[int, ...]] = {"q": (x.nq,), "q1": (x.nq,)}
        sizes |= dict.fromkeys(("v", "a", "tau", "dv"), (x.nv,))
        recipe = RECIPES[request.function]
        shapes = {name: sizes[name] for name in recipe.inputs}
        if request.wrenches:
            shapes["wrenches"] = (self.tree.n, 6)
        if recipe.forces and self.needs_time:
            shapes["t"] = ()
        if request.free:
            for name in request.free:
                if name not in self.description.parameters:
                    raise NameNotFound("parameter", name, list(self.description.parameters))
            shapes["p"] = (len(request.free),)
        return shapes

    def program(self, request: Request) -> Program:
        """Record the program of a request."""
        recipe = RECIPES[request.function]
        if self.topology.loops and recipe.forces:
            loop = self.description.joint_names[self.topology.loops[0]]
            raise ModelError(
                f"joint {loop!r} closes a loop; {request.function} is for mechanisms without loops so far", element=loop
            )
        if "tau" in recipe.inputs:
            self._refuse_weightless()
        if self.rolls(request):
            return self._rolled(request, recipe)
        if recipe.dense and self.tree.n > recipe.dense:
            raise ModelError(
                f"{request.function} of {self.tree.n} links would be dense matrices; beyond {recipe.dense} links "
                "use products with them: mech.program('forward_dynamics').forward() and .reverse()"
            )
        return self._unrolled(request, recipe)

    def _refuse_weightless(self) -> None:
        """A joint that carries nothing has no acceleration to be found."""
        d, t = self.description, self.topology
        carried = np.abs(d.mass[t.body]) + np.abs(d.inertia[t.body]).sum(axis=1)
        if self.coupled or np.all(carried > 0):
            return
        for i in range(self.tree.n - 1, -1, -1):
            j = int(t.joint[i])
            if carried[i] == 0 and d.kind_of(j).nv and d.armature[j] == 0:
                raise ModelError(
                    f"joint {d.joint_names[j]!r} carries no mass, so forces do not tell its acceleration; "
                    f"give {d.body_names[int(t.body[i])]!r} a mass, give the joint an armature, or lock it",
                    element=d.joint_names[j],
                )
            if t.parent[i] >= 0:
                carried[t.parent[i]] += carried[i]

    def rolls(self, request: Request) -> bool:
        """Whether the answer is a loop over links: for many of them, or where the caller insists."""
        recipe = RECIPES[request.function]
        plain = not request.free and not (recipe.forces and self.description.elements) and not self.coupled
        able = recipe.rolled is not None and plain and request.method in ("", "articulated-body")
        if request.form == "rolled" and not able:
            raise ModelError(f"{request.function} has no rolled form for this mechanism and these options")
        return able and (request.form == "rolled" or (self.tree.n > UNROLL and request.form != "unrolled"))

    def _unrolled(self, request: Request, recipe: Recipe) -> Program:
        shapes = self.shapes(request)
        names = list(shapes)
        if recipe.finish is not None:
            return recipe.finish(self, request, shapes)

        def function(*arrays: Array) -> Any:
            return recipe.record(self.question(request, dict(zip(names, arrays, strict=True))))

        block, out_shapes, single = trace(function, list(shapes.values()))
        builder = ProgramBuilder(request.function)
        inputs = [builder.input(n, s) for n, s in shapes.items()]
        outputs = [builder.output(n, s) for n, s in zip(recipe.outputs, out_shapes, strict=True)]
        builder.add(Each(1, (builder.case(block, inputs, outputs),)))
        return builder.build(single=single)

    def _rolled(self, request: Request, recipe: Recipe) -> Program:
        assert recipe.rolled is not None
        builder = ProgramBuilder(request.function)
        inputs = {name: builder.input(name, shape) for name, shape in self.shapes(request).items()}
        if "wrenches" in inputs:
            inputs["wrench"] = inputs["wrenches"]
        traversal = Rolled(self.tree, builder, inputs, recipe.still)
        recipe.rolled(traversal, self, request)
        traversal.finish()
        return builder.build(single=True)
