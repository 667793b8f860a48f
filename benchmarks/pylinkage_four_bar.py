"""Seconds of one motion of the four-bar of examples/models/four_bar.mks by pylinkage, with its Numba solver.

    python benchmarks/pylinkage_four_bar.py POINTS

Runs in an environment that has pylinkage and numba; `speed_analysis.py` starts it there.
"""

from __future__ import annotations

import math
import sys
import time
from statistics import median

from pylinkage.actuators import Crank
from pylinkage.components import Ground
from pylinkage.dyads import RRRDyad
from pylinkage.simulation import Linkage


def main(points: int) -> None:
    left, right = Ground(0.0, 0.0, name="left"), Ground(3.0, 0.0, name="right")
    crank = Crank(anchor=left, radius=1.0, angular_velocity=math.tau / points, name="crank")
    rocker = RRRDyad(anchor1=crank.output, anchor2=right, distance1=3.0, distance2=2.5, name="rocker")
    linkage = Linkage([left, right, crank, rocker], name="four-bar")
    linkage.set_input_velocity(crank, omega=1.0)
    seconds = []
    for _ in range(12):
        begin = time.process_time()
        linkage.step_fast_with_kinematics(points)
        seconds.append(time.process_time() - begin)
    print(median(seconds[1:]))


if __name__ == "__main__":
    main(int(sys.argv[1]))
