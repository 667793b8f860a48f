"""Forces of cases whose motion is known, as `Solution.series` has them."""

from __future__ import annotations

import numpy as np

from linkwright.analysis.force_series import forces
from linkwright.errors import NameNotFound
from linkwright.model.bodies import QUANTITIES
from linkwright.outputs.motions import Motions
from linkwright.results.solution import Solution
from linkwright.results.status import Counters, Status
from linkwright.sweeps.model import StudyModel


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
