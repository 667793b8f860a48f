"""Simulated cases of a study side by side, and the forces of cases whose motion is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.analysis.force_series import forces
from linkwright.base.arrays import Floats
from linkwright.constraints.assembly import assemble
from linkwright.constraints.newton import Batch, drawn_states
from linkwright.errors import LinkwrightError, NameNotFound
from linkwright.model.body_motion import NUMBERS, QUANTITIES, bodies_of_cases
from linkwright.model.parameter_cases import Cases
from linkwright.model.placements import coordinate_units, length_scale
from linkwright.outputs.output_values import Motions
from linkwright.results.solution import Solution
from linkwright.results.status import Counters, Status
from linkwright.simulation.case_simulations import Simulated, Simulations
from linkwright.simulation.initialise import Settings, is_near
from linkwright.simulation.step_control import CLOSED
from linkwright.simulation.termination import ended
from linkwright.sweeps.study_model import StudyModel
from linkwright.sweeps.task import sentence


def add_forces(model: StudyModel, motions: Motions, names: tuple[str, ...]) -> None:
    """Put the series named into motions, of every case as far as it went."""
    cases = motions.cases
    for name in names:
        motions.series[name] = np.full((len(motions.time), len(cases)), np.nan)
    for k in range(len(cases)):
        good = np.asarray(np.isfinite(motions.bodies["position"][:, k]).all(axis=(1, 2)))
        points = len(good) if good.all() else int(np.argmin(good))
        if not points:
            continue
        mech = model.mechanism(cases.values[k])
        d, time = mech.description, motions.time[:points]
        how = {"status": Status(True, time=float(time[-1])), "counters": Counters(points=points)}
        if motions.states is not None:
            states = (np.ascontiguousarray(x[:points, k]) for x in motions.states)
            solution = Solution.of_states(d, time.copy(), *states, **how, mechanism=mech)  # type: ignore[arg-type]
        else:
            arrays = [motions.bodies[name][:points, k] for name in QUANTITIES]
            none = np.zeros(points, np.int64)
            solution = Solution.of(d, time, *arrays, **how, iterations=none)  # type: ignore[arg-type]
        series, notes = forces(mech, solution, np.zeros((points, mech.nv)))
        for name in names:
            if name in series:
                motions.series[name][:points, k] = series[name].values
            elif not notes:
                raise NameNotFound("force", name, list(series))
        if notes and not motions.reasons[k] and any(name not in series for name in names):
            motions.reasons[k] = "; ".join(notes)


def settings_of(model: StudyModel, times: Floats, asked: Mapping[str, Any]) -> Settings:
    """What a simulation is asked, as `lw.analyse` asks it of the model's SYSTEM."""
    system = model.system
    method = asked.get("method") or system.method
    dt = asked.get("dt", system.dt if method == system.method else None)
    rtol = asked.get("rtol", system.rtol)
    atol = asked.get("atol", system.atol)
    return Settings(
        method=method,
        start=float(times[0]),
        end=float(times[-1]),
        dt=dt,
        rtol=max(rtol, 1e-14),
        atol=atol,
        longest=math.inf,
        times=times,
    )


class Dynamic:
    """The way of caused motions, by explicit methods."""

    def __init__(self, model: StudyModel, settings: Settings) -> None:
        self.model, self.settings = model, settings
        self.base = model.base
        self.simulations = Simulations(self.base, model.names, settings)
        self.times = self.simulations.times

    def motions(self, cases: Cases) -> Motions:
        reasons = [""] * len(cases)
        rows, q, v = self._starts(cases, reasons)
        points, n = len(self.times), len(cases)
        x = self.base
        states = tuple(np.full((points, n, width), np.nan) for width in (x.nq, x.nv, x.nv))
        if len(rows):
            p = cases.values[rows]
            rows, q, v, a, p = self._first_points(cases, rows, q, v, p, reasons)
        if len(rows):
            simulated = self.simulations.run(q, v, a, p)
            for array, part in zip(states, (simulated.q, simulated.v, simulated.a), strict=True):
                array[:, rows] = part
            for k in simulated.troubles:
                reasons[int(rows[k])] = self._why(cases, int(rows[k]), simulated, k)
        numbers = {name: cases.array(name) for name in NUMBERS}
        with np.errstate(invalid="ignore"):
            bodies = bodies_of_cases(cases.description, numbers, *states)
        return Motions(cases, self.times, bodies, reasons, (states[0], states[1], states[2]))

    def _why(self, cases: Cases, row: int, simulated: Simulated, k: int) -> str:
        trouble, last = simulated.troubles[k]
        try:
            status = ended(self.model.mechanism(cases.values[row]), trouble, last)
        except LinkwrightError as error:
            return sentence(error)
        return status.message or status.reason

    # -- initial states --------------------------------------------------------------------------------------
    def _starts(self, cases: Cases, reasons: list[str]) -> tuple[NDArray[np.int64], Floats, Floats]:
        """The cases that have an initial state, with q and v."""
        states: dict[int, tuple[Floats, Floats]] = {}
        left = np.arange(len(cases))
        if self._plain:
            rows, q, v = self._plain_starts(cases)
            states = {int(row): (q[k], v[k]) for k, row in enumerate(rows)}
            left = np.setdiff1d(left, rows)
        for row in left.tolist():
            try:
                states[row] = self.model.case(cases, row).initial_state(t=self.settings.start)
            except LinkwrightError as error:
                reasons[row] = sentence(error)
        rows = np.array(sorted(states), dtype=np.int64)
        nq, nv = self.base.nq, self.base.nv
        q = np.array([states[row][0] for row in rows.tolist()]).reshape(-1, nq)
        v = np.array([states[row][1] for row in rows.tolist()]).reshape(-1, nv)
        return rows, q, v

    @property
    def _plain(self) -> bool:
        """Whether initial conditions are of coordinates and rates of joints alone, which any value fits."""
        d, base = self.base.description, self.base
        if base.closed or base.nq != base.nv or d.mimics:
            return False
        tree = {joint.name for joint in base.joints}
        return all(x.quantity.kind == "joint" and x.quantity.of[0] in tree for x in d.initial)

    def _plain_starts(self, cases: Cases) -> tuple[NDArray[np.int64], Floats, Floats]:
        d = self.base.description
        x, topology = self.base.tree.coordinates, self.base.tree.topology
        rows = np.flatnonzero(cases.possible)
        q, v = np.zeros((len(cases), x.nq)), np.zeros((len(cases), x.nv))
        at = {d.joint_names[int(j)]: i for i, j in enumerate(topology.joint)}
        if d.start is not None and len(rows):
            kinematics, tolerance = self.model.kinematics, self.model.system.assembly_tolerance
            batch = Batch.of_cases(kinematics.programs, cases)
            assembly = assemble(batch[rows], drawn_states(d, cases)[rows], 0.0, tolerance)
            rows, drawn = rows[assembly.closed], assembly.states.q[assembly.closed]
            still = np.zeros((1, len(rows), d.nb, 6))
            at_rest = Motions.of_bodies(cases[rows], np.zeros(1), drawn[None], still, still, [""] * len(rows))
            for i, j in enumerate(topology.joint.tolist()):
                coordinates = at_rest.from_poses(j, {})[0]
                q[rows, int(x.q_at[i]) : int(x.q_at[i]) + len(coordinates)] = coordinates[:, 0].T
        for initial in d.initial:
            quantity, values = initial.quantity, cases.evaluated(initial.value)
            i = at[quantity.of[0]]
            if quantity.rate:
                v[:, int(x.v_at[i]) + quantity.index] = values
            else:
                q[:, int(x.q_at[i]) + quantity.index] = values
        good = np.isfinite(q[rows]).all(axis=1) & np.isfinite(v[rows]).all(axis=1)
        rows = rows[good]
        return rows, q[rows], v[rows]

    def _first_points(
        self, cases: Cases, rows: NDArray[np.int64], q: Floats, v: Floats, p: Floats, reasons: list[str]
    ) -> tuple[NDArray[np.int64], Floats, Floats, Floats, Floats]:
        """The nearest states that can be, and their accelerations; cases without any get a reason."""
        times = np.full(len(rows), self.settings.start)
        there, rates, a, left = self.simulations.slopes(p).ended(times, q, v)
        if self.base.closed:
            lengths = length_scale(cases.description, cases[rows].array)
            for k in range(len(rows)):
                units = coordinate_units(self.base.tree, float(lengths[k]))
                near = is_near(there[k], q[k], units[0]) and is_near(rates[k], v[k], units[1], rates=True)
                if not (left[k] <= CLOSED and near):
                    try:
                        projected = self.model.mechanism(cases.values[int(rows[k])]).project(
                            q[k], v[k], t=self.settings.start
                        )
                    except LinkwrightError as error:
                        reasons[int(rows[k])] = sentence(error)
                        continue
                    one = self.simulations.slopes(p[k : k + 1]).ended(times[:1], projected[0][None], projected[1][None])
                    there[k], rates[k], a[k] = (x[0] for x in one[:3])
        finite = np.isfinite(there).all(axis=1) & np.isfinite(rates).all(axis=1) & np.isfinite(a).all(axis=1)
        for k in np.flatnonzero(~finite).tolist():
            if not reasons[int(rows[k])]:
                reasons[int(rows[k])] = "the acceleration at the start is no finite number; look at forces and masses"
        good = finite & np.array([not reasons[int(row)] for row in rows], bool)
        return rows[good], there[good], rates[good], a[good], p[good]
