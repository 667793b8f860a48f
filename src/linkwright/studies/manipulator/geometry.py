"""The numbers of the paper's six-leg manipulator; its figures, and with them most dimensions, are lost.

Uniform rods with the inertias of table 3, l = √(12 I/m), make a crank of 0.51 m and a rod of 0.87 m; a disc of the
plate's inertia has a radius of 0.39 m. The base was chosen for clear legs and an even S: its condition is about 2 in
the whole range of motion. At home the wrists' middle angles are a few degrees.
"""

from __future__ import annotations

import numpy as np

from linkwright.control import Hexapod, LinkInertia

#: Inertias from table 3, which draws rods along its z axis; here they lie along x: (x, y, z) there is (y, z, x) here.
SIX_LEG = Hexapod(
    base_radius=0.40,
    base_half_angle=np.deg2rad(30.0),
    crank_turn=np.deg2rad(45.0),
    crank=0.51,
    rod=0.87,
    plate_radius=0.39,
    plate_half_angle=np.deg2rad(15.0),
    home_height=0.75,
    turn_length=0.30,
    crank_inertia=LinkInertia(6.90, (0.255, 0.0, 0.0), (0.0123, 0.153, 0.146)),
    universal_inertia=LinkInertia(3.79, (0.0, 0.0, 0.0), (0.00938, 0.00398, 0.0114)),
    rod_inertia=LinkInertia(8.35, (0.435, 0.0, 0.0), (0.0101, 0.526, 0.525)),
    first_cross_inertia=LinkInertia(5.10, (0.0, 0.0, 0.0), (0.0197, 0.00480, 0.0171)),
    second_cross_inertia=LinkInertia(3.79, (0.0, 0.0, 0.0), (0.0152, 0.00788, 0.0133)),
    plate_inertia=LinkInertia(30.0, (0.0, 0.0, 0.0), (1.14, 1.14, 2.28)),
)
LEGS = len(SIX_LEG.directions)
