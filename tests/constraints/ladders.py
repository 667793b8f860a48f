"""Many four-bars: ladders (bars on pivots in a row, each joined to the next by a coupler), and fans on one crank."""

from __future__ import annotations

import numpy as np

import linkwright as lw

#: Half the length of the even bars, the couplers' length, half the length of the odd bars, from pivot to pivot.
EVEN, COUPLER, ODD, APART = 1.0, 2.7, 1.3, 3.0
START = 1.3


def odd_angle(even):
    """The angle of the odd bars when the even bars have this one: the triangle of pivot, tip and tip."""
    x, y = EVEN * np.cos(even) - APART, EVEN * np.sin(even)
    far = np.hypot(x, y)
    return np.arctan2(y, x) - np.arccos((far**2 + ODD**2 - COUPLER**2) / (2.0 * ODD * far))


def ladder(stages, law=None):
    """Every second stage is the one before, turned half round: all even bars turn alike, and all odd ones."""
    with lw.Builder(f"ladder_{stages}") as b:
        bars = []
        for k in range(stages + 1):
            angle = START if k % 2 == 0 else float(odd_angle(START))
            bars.append(b.body(f"bar{k}"))
            b.place(bars[k], (k * APART, 0, 0), f=(np.cos(angle), np.sin(angle), 0))
            b.joint("revolute", b.triad(b.ground, (k * APART, 0, 0)), b.triad(bars[k]), f"pivot{k}")
        for k in range(stages):
            side = 1.0 if k % 2 == 0 else -1.0
            tips, ends = [], []
            for n in (k, k + 1):
                half, angle = (EVEN, START) if n % 2 == 0 else (ODD, float(odd_angle(START)))
                tips.append((side * half, 0, 0))
                ends.append(np.array([n * APART + side * half * np.cos(angle), side * half * np.sin(angle), 0.0]))
            coupler = b.body(f"coupler{k}")
            b.place(coupler, ends[0], f=ends[1] - ends[0])
            b.joint("revolute", b.triad(bars[k], tips[0]), b.triad(coupler), f"near{k}")
            b.joint("revolute", b.triad(coupler, (COUPLER, 0, 0)), b.triad(bars[k + 1], tips[1]), f"far{k}")
        if law is not None:
            b.driver("joint", "pivot0", law, name="drive")
    return b.build()


def fan(arms, law):
    """Four-bars side by side along the axis of one crank."""
    even, odd = START, float(odd_angle(START))
    tip = np.array([EVEN * np.cos(even), EVEN * np.sin(even), 0.0])
    end = np.array([APART + ODD * np.cos(odd), ODD * np.sin(odd), 0.0])
    with lw.Builder(f"fan_{arms}") as b:
        crank = b.body("crank")
        b.place(crank, (0, 0, 0), f=tip)
        b.joint("revolute", b.triad(b.ground), crank, "pivot")
        for k in range(arms):
            along = np.array([0.0, 0.0, 0.1 * k])
            coupler, rocker = b.body(f"coupler{k}"), b.body(f"rocker{k}")
            b.place(coupler, tip + along, f=end - tip)
            b.place(rocker, np.array([APART, 0.0, 0.0]) + along, f=(np.cos(odd), np.sin(odd), 0))
            b.joint("revolute", b.triad(crank, (EVEN, 0, 0.1 * k)), b.triad(coupler), f"near{k}")
            b.joint("revolute", b.triad(coupler, (COUPLER, 0, 0)), b.triad(rocker, (ODD, 0, 0)), f"far{k}")
            b.joint("revolute", b.triad(b.ground, (APART, 0, 0.1 * k)), b.triad(rocker), f"end{k}")
        b.driver("joint", "pivot", law, name="drive")
    return b.build()
